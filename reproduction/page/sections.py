"""Sections of the page: ordinary least squares, estimators, tests."""

from __future__ import annotations

import numpy as np

from reproduction import published
from reproduction.experiments import decisions, estimators, ols
from reproduction.page.markdown import duration, image, mark, number, paragraph, table

# -- ordinary least squares ------------------------------------------------------------------


def ols_section(summary: ols.Summary, figures: list[str]) -> list[str]:
    """Figures, p-values of the repetition shown, rejections over repetitions."""
    density, quantiles, rejections = figures
    shown, resamples = summary.pvalues, summary.sizes.bootstrap_resamples
    names = {"bootstrap": "bootstrap test", "exact": "exact test", "quantiles": "quantile check"}
    rows = [
        [text, *(f"{summary.rejections[model, check] / summary.repetitions:.1%}" for model in ols.MODELS)]
        for check, text in names.items()
    ]
    return [
        *paragraph(
            """
            A straight line with constant spread is fitted to 100 cases of sin(πX) + |1 + X| ε, and
            validated on 50 others. Errors of the line at different X cancel in its quantile curve, which
            therefore stays close to the diagonal; the calibration tests condition on the prediction, and
            see them. Shown is the repetition whose curve has the median distance from the diagonal.
            """
        ),
        *image("Heat maps of the density of the data and of the model", density),
        *image("Quantile calibration curve of the model", quantiles),
        *paragraph(
            f"""
            p-values there: {number(shown["bootstrap"])} with {resamples} bootstrap samples (published: p <
            0.05), {number(shown["exact"])} by the exact test, {number(shown["quantiles"])} by the usual
            check of quantiles (the test of Kolmogorov and Smirnov that P(Y ≤ y) is uniform).
            """
        ),
        *paragraph(f"Rejections at level 0.05 in {summary.repetitions} repetitions of the whole experiment:"),
        *table(["check", *(f"rejects the {model}" for model in ols.MODELS)], rows),
        *paragraph(
            """
            The true distribution is calibrated: its rejections are false alarms, about 5 % for a test that
            keeps its level.
            """
        ),
        *image("Proportions of rejections with intervals", rejections),
    ]


# -- estimators ------------------------------------------------------------------------------


def estimators_count(summary: estimators.Summary) -> tuple[int, int]:
    """Matched and all published numbers."""
    found = [comparison.matched for comparison in summary.comparisons.values()]
    return sum(found), len(found)


def estimators_section(summary: estimators.Summary, figures: list[str]) -> list[str]:
    """Figures and tables by model and dimension."""
    truth = "; ".join(
        f"{value:.5f} ± {error:.5f} (d = {d})" for d, (value, error) in sorted(summary.truth.items())
    )
    missed = [key for key, comparison in summary.comparisons.items() if not comparison.matched]
    lines = [
        *paragraph(
            f"""
            Mean absolute error and variance of estimates over {summary.data_sets} data sets, and the
            smallest time of one estimate on one core, Python's overhead included. Bounds for mean errors
            are normal ones, from the spread of our errors, for the difference of two means (theirs over
            {published.DATA_SETS} data sets), with the error of both estimates of the true value; bounds for
            variances are normal ones for the logarithm, with a bootstrap standard error.
            """
        ),
        *paragraph(f"True SKCE of the uncalibrated model: {truth}. That of the calibrated model is zero."),
        *_missed([f"{_cell(cell)}, {what.replace('_', ' ')}" for cell, what in missed]),
    ]
    for figure in figures:
        lines += image("Errors and variances of estimators", figure)
    for model in published.MODELS:
        for d in published.DIMENSIONS:
            lines += [f"### Estimators: {model} model, d = {d}", "", *_estimators_table(summary, model, d)]
    return lines


def _estimators_table(summary: estimators.Summary, model: str, d: int) -> list[str]:
    beside = ["published", "bounds", "matched"]
    head = ["estimator", "n", "mean error", *beside, "variance", *beside, "time", "published"]
    rows: list[list[str]] = []
    for (m, dimension, n, name), cell in summary.cells.items():
        if (m, dimension) != (model, d):
            continue
        row = [name, str(n)]
        for found in (cell.mean_error, cell.variance):
            bounds = f"{number(found.low)} .. {number(found.high)}"
            row += [number(found.ours), number(found.published), bounds, mark(found.matched)]
        rows.append([*row, duration(cell.seconds), duration(cell.published_seconds)])
    return table(head, rows)


def _cell(cell: tuple[str, int, int, str]) -> str:
    model, d, n, name = cell
    return f"{name}, {model} model, d = {d}, n = {n}"


def _missed(names: list[str]) -> list[str]:
    if not names:
        return ["All published numbers are within the bounds.", ""]
    return ["Outside of the bounds:", "", *(f"- {name}" for name in names), ""]


# -- tests -----------------------------------------------------------------------------------


def tests_count(summary: decisions.Summary) -> tuple[int, int]:
    """Matched and all published numbers that can be compared."""
    found = [cell.matched for cell in summary.compared.values()]
    return sum(found), len(found)


def tests_section(summary: decisions.Summary, figures: list[str]) -> list[str]:
    """Figures and tables by model and dimension."""
    lines = _tests_text(summary)
    lines += _missed([_cell(cell) for cell, found in summary.compared.items() if not found.matched])
    for figure in figures:
        lines += image("Errors of tests", figure)
    for model in published.MODELS:
        for d in published.DIMENSIONS:
            kind = "I" if model == "calibrated" else "II"
            lines += [f"### Tests: {model} model, d = {d}, type {kind} error", ""]
            lines += _tests_table(summary, model, d)
            lines += _spread_table(summary, model, d)
    return lines


def _tests_text(summary: decisions.Summary) -> list[str]:
    sizes = summary.sizes
    exact = "; ".join(
        f"n = {n}: {sizes.exact_sets[n]} data sets, {sizes.exact_resamples[n]} resamples" for n in sizes.cases
    )
    lines = [
        *paragraph(
            f"""
            Share of wrong decisions at level 0.05 over {sizes.data_sets} data sets: rejections of the
            calibrated model, non-rejections of the uncalibrated one. The bootstrap test, `SKCE (B = n)`,
            draws {sizes.bootstrap_resamples} resamples. Beside the paper's tests stand `pearson`, `exact`
            and `auto`, all with the paper's kernel, and CME with the F distribution in place of chi-square.
            `exact` and `auto` are the costly ones ({exact}). Bounds are from Fisher's exact test of two
            proportions.
            """
        ),
        *paragraph(
            f"""
            The ten locations of CME are drawn once for each dimension, as in the paper, and the published
            ones are not known: CME is repeated for {sizes.location_sets} sets of locations on the same
            data. A published number is matched if it is compatible with one of them.
            """
        ),
    ]
    if summary.refused:
        lines += paragraph(
            f"""
            At n = 4 there are fewer cases than locations, and the covariance of CME is singular: wellcal
            refuses ("{next(iter(summary.refused.values()))}"). The published errors of these four cells are
            decisions from a singular matrix.
            """
        )
    for cell, times in summary.unbounded.items():
        if cell[3] == "CME":
            lines += paragraph(
                f"""
                {_cell(cell)}: in {times} of {summary.cells[cell].data_sets} data sets the deviations at the
                locations do not vary in some direction, up to rounding, and yet are not zero. wellcal
                refuses; the paper's statistic is infinite, and they count as rejections here.
                """
            )
    return lines


def _tests_table(summary: decisions.Summary, model: str, d: int) -> list[str]:
    head = ["test", "n", "error", "published", "bounds", "matched", "time", "published"]
    rows: list[list[str]] = []
    for name in decisions.TESTS:
        for n in summary.sizes.cases:
            cell = (model, d, n, name)
            if cell in summary.cells:
                rows.append(_tests_row(name, n, summary.cells[cell]))
            elif cell in summary.refused:
                known = published.decision_errors()[cell]
                time = duration(known.seconds)
                rows.append([name, str(n), "refused", f"{known.rate:.3f}", "", "", "", time])
    return table(head, rows)


def _tests_row(name: str, n: int, cell: decisions.CellSummary) -> list[str]:
    found = cell.comparison
    row = [name, str(n), f"{cell.rate:.3f}"]
    if found is None or cell.published_seconds is None:
        return [*row, "", "", "", duration(cell.seconds), ""]
    matched = mark(cell.matched)
    if cell.spread:
        fitting = sum(fits for _, fits in cell.spread)
        matched += f" ({fitting} of {len(cell.spread)} sets)"
    row += [f"{found.published:.3f}", f"{found.low:.3f} .. {found.high:.3f}", matched]
    return [*row, duration(cell.seconds), duration(cell.published_seconds)]


def _spread_table(summary: decisions.Summary, model: str, d: int) -> list[str]:
    rows: list[list[str]] = []
    for n in summary.sizes.cases:
        cell = summary.cells.get((model, d, n, "CME"))
        if cell is None or cell.comparison is None or not cell.spread:
            continue
        quartiles = np.quantile([rate for rate, _ in cell.spread], [0.0, 0.25, 0.5, 0.75, 1.0])
        rows.append([str(n), *(f"{q:.3f}" for q in quartiles), f"{cell.comparison.published:.3f}"])
    if not rows:
        return []
    head = ["n", "smallest", "lower quartile", "median", "upper quartile", "largest", "published"]
    return [f"CME over {summary.sizes.location_sets} drawn sets of locations:", "", *table(head, rows)]
