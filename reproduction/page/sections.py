"""Sections of the page: ordinary least squares, estimators, tests."""

from __future__ import annotations

import numpy as np

from reproduction import published
from reproduction.experiments import decisions, estimators, ols
from reproduction.page import placed
from reproduction.page.markdown import duration, image, number, paragraph, table
from reproduction.ranks import rank
from reproduction.verdict import Verdict

# -- ordinary least squares ------------------------------------------------------------------


def ols_section(summary: ols.Summary, figures: list[str], verdict: Verdict | None) -> list[str]:
    """Figures, p-values of the repetition shown, rejections over repetitions."""
    density, quantiles, rejections = figures
    shown, resamples = summary.pvalues, summary.sizes.bootstrap_resamples
    names = {
        "bootstrap": "bootstrap test, the authors' statistic",
        "bootstrap, n SKCE_u": "bootstrap test, n SKCE_u",
        "exact": "exact test",
        "quantiles": "quantile check",
    }
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
            p-values there: {number(shown["bootstrap"])} with {resamples} bootstrap samples and the authors'
            statistic (published: p < 0.05), {number(shown["bootstrap, n SKCE_u"])} with n SKCE_u,
            {number(shown["exact"])} by the exact test, {number(shown["quantiles"])} by the usual check of
            quantiles (the test of Kolmogorov and Smirnov that P(Y ≤ y) is uniform).
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


def estimator_label(number: estimators.Number) -> str:
    """A published number by name."""
    return f"{number[4]} of {cell_label(number[:4])}"


def cell_label(cell: tuple[str, int, int, str]) -> str:
    """A cell by name."""
    model, d, n, name = cell
    return f"{name}, {model} model, d = {d}, n = {n}"


def estimators_section(summary: estimators.Summary, figures: list[str], verdict: Verdict | None) -> list[str]:
    """Figures and tables by model and dimension."""
    assert verdict is not None
    sizes = summary.sizes
    truth = "; ".join(f"{value:.5f} (d = {d})" for d, value in sorted(summary.truth.items()))
    lines = [
        *paragraph(
            f"""
            Mean absolute error and variance of estimates over {sizes.data_sets} data sets, which each number
            has for itself, as in the paper; all of it is repeated {sizes.repeats} times. "Ours" is the mean
            over repeats. Repeats are summed for many data sets at once; in each cell the library estimates
            the first {sizes.timed} of them too, to the same value within {estimators.HELD:g}, and its
            smallest time on one core, Python's overhead included, is the one shown.
            """
        ),
        *paragraph(
            f"""
            True SKCE of the uncalibrated model: {truth}, by quadrature. The authors took the mean of 1000
            estimates; repeats add the chance in that. That of the calibrated model is zero.
            """
        ),
        *placed.overview(verdict),
    ]
    for figure in figures:
        lines += image("Errors and variances of estimators", figure)
    for model in published.MODELS:
        for d in published.DIMENSIONS:
            lines += [f"### Estimators: {model} model, d = {d}", ""]
            lines += _estimators_table(summary, verdict, model, d)
    return lines


def _estimators_table(summary: estimators.Summary, verdict: Verdict, model: str, d: int) -> list[str]:
    head = ["estimator", "n", "mean error", *placed.HEAD, "variance", *placed.HEAD, "time", "published"]
    rows: list[list[str]] = []
    for cell in summary.cells:
        if cell[:2] != (model, d):
            continue
        row = [cell[3], str(cell[2])]
        for what in estimators.NUMBERS:
            found = verdict.ranking.cells[*cell, what]
            row += [number(found.ours), *placed.cells(found)]
        known = published.estimator_errors()[cell].seconds
        rows.append([*row, duration(summary.seconds[cell]), duration(known)])
    return table(head, rows)


# -- tests -----------------------------------------------------------------------------------


def tests_section(summary: decisions.Summary, figures: list[str], verdict: Verdict | None) -> list[str]:
    """Figures and tables by model and dimension."""
    assert verdict is not None
    lines = [*_tests_text(summary), *placed.overview(verdict)]
    for figure in figures:
        lines += image("Errors of tests", figure)
    for model in published.MODELS:
        for d in published.DIMENSIONS:
            kind = "I" if model == "calibrated" else "II"
            lines += [f"### Tests: {model} model, d = {d}, type {kind} error", ""]
            lines += _tests_table(summary, verdict, model, d)
            lines += _spread_table(summary, model, d)
    return lines


def _tests_text(summary: decisions.Summary) -> list[str]:
    sizes = summary.sizes
    sets = "; ".join(f"n = {n}: {count}" for n, count in sizes.data_sets.items())
    other = rank(summary.planted, group=decisions.method_of)
    ours = "; ".join(
        f"n = {n}: {count} data sets, {sizes.exact_resamples[n]} resamples"
        for n, count in sizes.our_sets.items()
    )
    lines = [
        *paragraph(
            f"""
            Share of wrong decisions at level 0.05: rejections of the calibrated model, non-rejections of the
            uncalibrated one. Each test has data sets of its own, as in the paper ({sets}). A published
            proportion says all about the {published.DATA_SETS} decisions behind it: its repeats are random
            sets of {published.DATA_SETS} from theirs and ours together, and are exact if theirs and ours are
            exchangeable.
            """
        ),
        *paragraph(
            f"""
            The bootstrap test, `SKCE (B = n)`, draws {sizes.bootstrap_resamples} resamples. The authors' code
            compares them with n / (n - 1) SKCE_u: this is `Bootstrap(statistic="authors")`, and the one that
            is compared with the published errors. `{decisions.OUR_BOOTSTRAP}` compares the same resamples
            with SKCE_u, as wellcal does if nothing else is said; put in place of the authors', all numbers
            together have p = {other.pooled:.3f}. Not in the paper are also `pearson`, `exact` and `auto`,
            all with the paper's kernel, and CME with the F distribution in place of chi-square ({ours}).
            """
        ),
        *paragraph(
            f"""
            The ten locations of CME are drawn once for each model and dimension, as in the paper, and the
            published ones are not known: CME is repeated {sizes.location_sets} times, each time with new
            locations and {published.DATA_SETS} new data sets of every size.
            """
        ),
    ]
    if summary.refused:
        lines += paragraph(
            f"""
            Not compared: {len(summary.refused)} published errors of CME at n = 4. There are fewer cases than
            locations, and the covariance is singular: wellcal refuses
            ("{next(iter(summary.refused.values()))}"). What was published there are decisions from a
            singular matrix, which depend on rounding.
            """
        )
    return lines


def _tests_table(summary: decisions.Summary, verdict: Verdict, model: str, d: int) -> list[str]:
    head = ["test", "n", "error", *placed.HEAD, "time", "published"]
    rows: list[list[str]] = []
    for name in decisions.TESTS:
        for n in summary.sizes.cases:
            cell = (model, d, n, name)
            known = published.decision_errors().get(cell)
            time = "" if known is None else duration(known.seconds)
            if cell in summary.cells:
                found = summary.cells[cell]
                beside = verdict.ranking.cells.get(cell)
                compared = [""] * len(placed.HEAD) if beside is None else placed.cells(beside)
                rows.append([name, str(n), f"{found.rate:.3f}", *compared, duration(found.seconds), time])
            elif cell in summary.refused and known is not None:
                rows.append([name, str(n), "refused", f"{known.rate:.3f}", "", "", "not compared", "", time])
    return table(head, rows)


def _spread_table(summary: decisions.Summary, model: str, d: int) -> list[str]:
    rows: list[list[str]] = []
    for n in summary.sizes.cases:
        found = summary.numbers.get((model, d, n, decisions.CME))
        if found is None:
            continue
        quartiles = np.quantile(found.repeats, [0.0, 0.25, 0.5, 0.75, 1.0])
        rows.append([str(n), *(f"{q:.3f}" for q in quartiles), f"{found.published:.3f}"])
    if not rows:
        return []
    head = ["n", "smallest", "lower quartile", "median", "upper quartile", "largest", "published"]
    return [f"CME over {summary.sizes.location_sets} repeats:", "", *table(head, rows)]
