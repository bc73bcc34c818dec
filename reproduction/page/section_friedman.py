"""The section of the page on the Friedman 1 problem."""

from __future__ import annotations

import numpy as np

from reproduction import published
from reproduction.experiments import friedman
from reproduction.page import placed
from reproduction.page.markdown import image, number, paragraph, table
from reproduction.verdict import Verdict

_DATA_NAMES = {"train": "training", "test": "test"}


_OWNERS = {"models": "mean over models", "ensemble": "ensemble"}


def friedman_label(place: friedman.Place) -> str:
    """A published number by name."""
    owner, data, iteration, statistic = place
    return f"{statistic}, {_OWNERS[owner]}, {_DATA_NAMES[data]} data, iteration {iteration}"


def friedman_section(summary: friedman.Summary, figures: list[str], verdict: Verdict | None) -> list[str]:
    """Figures, means over models, the ensemble and its formulas."""
    assert verdict is not None
    sizes = summary.sizes
    lines = [
        *paragraph(
            f"""
            Ten networks (10-200-50-1, ReLU) are trained for {max(sizes.compared)} iterations of Adam, as the
            authors' code does in 64 bits; the whole experiment, data included, is repeated {sizes.repeats}
            times. Figures show the first repeat: mean and range of the ten models, and their ensemble. Open
            markers are the published means and the published ensemble.
            """
        ),
        *placed.overview(verdict),
    ]
    for text, figure in zip(_FIGURES, figures, strict=False):
        lines += image(text, figure)
    lines += ["### Means over the ten models", ""]
    if summary.ours:
        lines += paragraph(
            f"""
            Ours is the mean over {sizes.repeats} repeats. p-values are those of the authors' statistic, as
            counts by resamples, like the published ones; `{friedman.OUR_PVALUE}` is the same for the
            statistic that wellcal takes if nothing else is said.
            """
        )
    lines += _table(summary, verdict, "models")
    lines += ["### The ensemble", ""]
    if summary.ours:
        lines += _ensembles_text(summary)
    lines += [
        *paragraph(
            """
            The ensemble by the published formula, over the repeats (MSE, NLL and pinball loss do not depend
            on the formula; p-values have ordered pairs of draws, as the authors' code has):
            """
        ),
        *_table(summary, verdict, "ensemble"),
    ]
    return lines + (_formulas_table(summary) if summary.ours else [])


_FIGURES = (
    "All statistics along training",
    "The first iterations, enlarged",
    "SKCE of the ensemble under both formulas and the proven kernel",
)


def _table(summary: friedman.Summary, verdict: Verdict, owner: str) -> list[str]:
    head = ["statistic", "data", "iteration", "ours", *placed.HEAD]
    rows: list[list[str]] = []
    for place in sorted(summary.numbers, key=_order):
        if place[0] != owner:
            continue
        _, data, iteration, statistic = place
        found = verdict.ranking.cells[place]
        rows.append([statistic, _DATA_NAMES[data], str(iteration), number(found.ours), *placed.cells(found)])
    if owner == "models":
        for (data, iteration), values in summary.ours.items():
            ours = [friedman.OUR_PVALUE, _DATA_NAMES[data], str(iteration), number(float(values.mean()))]
            rows.append([*ours, *[""] * len(placed.HEAD)])
    return table(head, rows)


def _order(place: friedman.Place) -> tuple[int, int, int]:
    _, data, iteration, statistic = place
    return published.STATISTICS.index(statistic), list(friedman.CASES).index(data), iteration


def _ensembles_text(summary: friedman.Summary) -> list[str]:
    ratio = {data: np.quantile(values, [0.05, 0.5, 0.95]) for data, values in summary.ratios.items()}
    times = {
        data: f"{middle:.2f} times (5 to 95 % of evaluations: {low:.2f} to {high:.2f})"
        for data, (low, middle, high) in ratio.items()
    }
    shared = len(summary.sizes.compared)
    share = {place: f"{value:.0%}" for place, value in summary.better.items()}
    return [
        *paragraph(
            """
            The kernel is the paper's, `ExpDistance(MixtureWasserstein()) @ Gaussian()`. For two mixtures of
            ten the bilinear form of h is a sum over 100 pairs of components. The code behind the published
            values leaves out the nine pairs of a component i ≥ 2 of the first mixture with component 1 of
            the second. wellcal sums over all pairs; "pairs left out" repeats the published formula.
            """
        ),
        *paragraph(
            f"""
            Over repeats, at {shared} iterations of each, all pairs give {times["train"]} the biased SKCE of
            the published formula on the training data, and {times["test"]} on the test data.
            Leaving out 9 of 100 pairs makes an ensemble look better calibrated than it is: with them left
            out, its biased SKCE is below the mean of its members in {share["train", "published formula"]}
            of the evaluations on training data and {share["test", "published formula"]} on test data; with
            all pairs, in {share["train", "ensemble"]} and {share["test", "ensemble"]}. The paper's remark
            that ensembles are consistently better than their members on average holds for the calibration
            error only in these shares.
            """
        ),
        *paragraph(
            """
            This kernel is not proven to be positive definite for mixtures. Beside it stands wellcal's
            default for mixtures, `ExpDistance(MaximumMeanDiscrepancy(k), power=2) @ k`, which is, with
            length scales from the predictions; its values are on another scale, which changes along
            training: its p-values are to be compared.
            """
        ),
    ]


def _formulas_table(summary: friedman.Summary) -> list[str]:
    known = published.friedman()
    head = [
        "data", "iteration", "mean of models", "all pairs", "pairs left out", "published", "all / left out",
        "p-value, all pairs", "proven kernel", "p-value, proven kernel",
    ]  # fmt: skip
    rows: list[list[str]] = []
    for data in friedman.CASES:
        biased, pvalue = summary.trajectories[data, "SKCE (biased)"], summary.trajectories[data, "p-value"]
        for index, iteration in enumerate(biased.iterations.tolist()):
            if (data, iteration, "SKCE (biased)") not in known or iteration == 0:
                continue
            full = float(biased.ensembles["ensemble"][index])
            left_out = float(biased.ensembles["published formula"][index])
            rows.append(
                [
                    _DATA_NAMES[data],
                    str(iteration),
                    number(float(biased.models[index].mean())),
                    number(full),
                    number(left_out),
                    number(known[data, iteration, "SKCE (biased)"].ensemble),
                    f"{full / left_out:.3f}",
                    number(float(pvalue.ensembles["ensemble"][index])),
                    number(float(biased.ensembles["proven kernel"][index])),
                    number(float(pvalue.ensembles["proven kernel"][index])),
                ]
            )
    return ["SKCE (biased) of the ensemble in the first repeat:", "", *table(head, rows)]
