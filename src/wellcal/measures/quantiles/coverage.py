"""How often targets fall into predicted intervals."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.levels import check_levels
from wellcal._arrays.namespaces import Array, NDArray, from_numpy, handed_over, take_rows, to_numpy, widen
from wellcal._arrays.progress import Stages
from wellcal._arrays.schema import Check, numbers, whole
from wellcal.expectations.decompose import components_of, targets_are_indices
from wellcal.kernels.base import Kernel
from wellcal.measures.estimate import Estimate
from wellcal.measures.presentation import Row, html_grid, text_table
from wellcal.measures.quantiles._pit import distribution_at
from wellcal.measures.quantiles.checks import check_scalar
from wellcal.predictions import Categorical, Quantiles, Samples
from wellcal.predictions.base import check_inputs
from wellcal.predictions.class_names import NUMBERS_WANTED

COVERAGE_LEVELS = (0.5, 0.8, 0.9, 0.95)
LIMITS = 0.95
"""Probability with which the limits of all levels hold together."""


@dataclass(frozen=True, eq=False, repr=False)
class IntervalCoverage(Estimate):
    """How often targets fall into central prediction intervals.

    Attributes
    ----------
    value
        Largest deviation of coverage from what was expected, over levels.
    levels
        Nominal levels, ``(T,)``.
    coverage
        Proportion of targets in the intervals, ``(T,)``.
    expected
        What a calibrated model would have on average, ``(T,)``: the level for continuous predictions, more
        for discrete ones, whose intervals cannot have every probability.
    widths
        Mean widths of the intervals, ``(T,)``.
    low, high
        Exact (Clopper-Pearson) confidence limits of the coverage, which hold for all levels together with
        probability 0.95 (Bonferroni), ``(T,)``.
    """

    levels: Array = None
    coverage: Array = None
    expected: Array = None
    widths: Array = None
    low: Array = None
    high: Array = None

    def check_stored(self, name: str) -> None:
        self._check_lengths(name, "levels", len(self.levels), "coverage", "expected", "widths", "low", "high")

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Names of columns, and a row for each level."""
        limits = f"{100 * LIMITS:.0f}% limits"
        header = ["level", "covered", limits, "if calibrated", "mean width"]
        columns = (self.levels, self.coverage, self.low, self.high, self.expected, self.widths)
        rows = [
            [
                f"{100 * level:.4g}%",
                f"{100 * covered:.1f}%",
                f"{100 * low:.1f}% to {100 * high:.1f}%",
                f"{100 * expected:.1f}%",
                f"{width:.4g}",
            ]
            for level, covered, low, high, expected, width in zip(*columns, strict=True)
        ]
        return header, rows

    def __repr__(self) -> str:
        return "\n".join([super().__repr__(), *text_table(*self._table())])

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(f'{what}: {text}')}</p>" for what, text in self._rows())
        return html_grid(*self._table(), caption=self._headline()) + notes

    def _rows(self) -> list[Row]:
        note = self.provenance.get("levels")
        return [*super()._rows(), *([] if note is None else [("levels", str(note))])]

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of it."""
        curves = ("levels", "coverage", "expected", "widths", "low", "high")
        return {**super().checks(kernel), "n_samples": whole(least=1), **dict.fromkeys(curves, numbers())}


@handed_over
def interval_coverage(
    y: object, pred: object, *, levels: Sequence[float] | Array | None = None
) -> IntervalCoverage:
    r"""Coverage of central prediction intervals.

    .. math:: \frac1n \sum_i 1\{q_i(\tfrac{1 - \ell}{2}) \le y_i \le q_i(\tfrac{1 + \ell}{2})\}

    Parameters
    ----------
    y
        Observed targets ``(n,)``.
    pred
        Predictions of numbers with quantiles.
    levels
        Nominal levels of the intervals, strictly between 0 and 1; None takes 0.5, 0.8, 0.9, 0.95. For
        `Quantiles` whose levels do not reach these, None takes the intervals between two levels that lie as
        far from 0 as from 1, or those of the four that are within reach, and the result says so.

    Returns
    -------
    IntervalCoverage
        Coverage, expected coverage, mean widths and confidence limits for each level.

    Notes
    -----
    For S draws with the target among them, k draws inside of an interval make an expected coverage of
    ``(k - 1) / (S + 1)``: less than the level where S is small.

    There are no weights: the confidence limits are those of a number of hits among cases that count alike.
    :func:`wellcal.pinball_loss` takes weights.

    Examples
    --------
    >>> import numpy as np
    >>> found = interval_coverage(np.array([-3.0, 0.1, 0.5, 1.0]), (np.zeros(4), np.ones(4)), levels=[0.9])
    >>> found.coverage, found.widths.round(3)
    (array([0.75]), array([3.29]))
    >>> found
    interval coverage = 0.15  (largest deviation, 4 cases)
      level  covered      95% limits  if calibrated  mean width
      90%      75.0%  19.4% to 99.4%          90.0%        3.29
    """
    checked, predictions = check_inputs(y, pred)
    check_scalar(predictions, "interval_coverage")
    targets = _numbers(predictions, checked)
    given, note = default_levels(predictions) if levels is None else (levels, None)
    chosen = check_levels(given, open_interval=True)
    rows: list[tuple[float, float, float]] = []
    stages = Stages("levels", float(len(chosen)))
    for level in chosen:
        with stages.part(1.0):
            lower, upper = (predictions.quantile(u) for u in (0.5 - 0.5 * level, 0.5 + 0.5 * level))
            inside = to_numpy((targets >= lower) & (targets <= upper))
            expected = _expected(predictions, lower, upper, float(level))
        rows.append((float(inside.mean()), expected, float(to_numpy(widen(upper - lower)).mean())))
    stages.end()
    coverage, expected, widths = (np.array(column) for column in zip(*rows, strict=True))
    return coverage_from(chosen, coverage, expected, widths, len(predictions), note)


def coverage_from(
    levels: NDArray, coverage: NDArray, expected: NDArray, widths: NDArray, n: int, note: str | None
) -> IntervalCoverage:
    """The result for n cases, from means ``(T,)`` over them."""
    low, high = clopper_pearson(np.rint(coverage * n), n, (1.0 - LIMITS) / len(levels))
    return IntervalCoverage(
        float(np.max(np.abs(coverage - expected))),
        None,
        "interval coverage",
        "largest deviation",
        n,
        provenance={} if note is None else {"levels": note},
        levels=levels,
        coverage=coverage,
        expected=expected,
        widths=widths,
        low=low,
        high=high,
    )


def default_levels(predictions: Any) -> tuple[Sequence[float], str | None]:
    """Levels of intervals where nobody says which, and a remark where they are not the usual ones.

    Examples
    --------
    >>> from wellcal.predictions import Quantiles
    >>> default_levels(Quantiles([0.1, 0.5, 0.9], [[1.0, 2.0, 4.0]]))
    ((0.8,), 'those between two of the predicted quantiles; out of reach: 90%, 95%')
    """
    if not isinstance(predictions, Quantiles):
        return COVERAGE_LEVELS, None
    first, last = float(predictions.levels[0]), float(predictions.levels[-1])
    reach = 1.0 - 2.0 * max(first, 1.0 - last) + 1e-12
    within = tuple(level for level in COVERAGE_LEVELS if level <= reach)
    if len(within) == len(COVERAGE_LEVELS):
        return COVERAGE_LEVELS, None
    beyond = "out of reach: " + ", ".join(f"{level:.0%}" for level in COVERAGE_LEVELS if level not in within)
    below: NDArray = predictions.levels[predictions.levels < 0.5]
    sums = below[:, None] + predictions.levels[None, :]
    paired = below[np.isclose(sums, 1.0, rtol=0.0, atol=1e-9).any(axis=1)]
    if len(paired):
        spans = tuple(float(f"{1.0 - 2.0 * level:.12g}") for level in paired[::-1])
        return spans, f"those between two of the predicted quantiles; {beyond}"
    if within:
        return within, f"those within reach of the predicted quantiles; {beyond}"
    raise ValueError(
        f"the levels of the predicted quantiles, {first:g} to {last:g}, reach none of the usual intervals, "
        "and no two of them lie as far from 0 as from 1; predict such, or give levels= that are within reach"
    )


def clopper_pearson(hits: NDArray, n_samples: int, alpha: float) -> tuple[NDArray, NDArray]:
    """Exact confidence limits of proportions from numbers of `hits` among n cases, of coverage 1 - alpha.

    Examples
    --------
    >>> low, high = clopper_pearson(np.array([0.0, 5.0]), 10, 0.05)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.1871]), array([0.3085, 0.8129]))
    """
    half, misses = 0.5 * alpha, n_samples - hits
    none, all_ = hits <= 0, misses <= 0
    low = np.where(none, 0.0, special.betaincinv(np.where(none, 1.0, hits), misses + 1.0, half))
    high = np.where(all_, 1.0, special.betainccinv(hits + 1.0, np.where(all_, 1.0, misses), half))
    return low, high


def _numbers(predictions: Any, targets: Array) -> Array:
    if not targets_are_indices(predictions):
        return targets
    parts = [part for part, _ in components_of(predictions)]
    if any(isinstance(part, Categorical) and part.support is None for part in parts):
        raise TypeError(
            f"interval_coverage needs predictions of numbers, found predictions of classes; {NUMBERS_WANTED}"
        )
    values = from_numpy(np.asarray(predictions.support_values()), predictions.like)
    return take_rows(values, targets)


def _expected(predictions: Any, lower: Array, upper: Array, level: float) -> float:
    """Mean probability of the intervals."""
    if isinstance(predictions, Samples) and predictions.kind == "draws":
        values = to_numpy(predictions.values)
        inside = (values >= to_numpy(lower)[:, None]) & (values <= to_numpy(upper)[:, None])
        return float(((inside.sum(axis=1) - 1.0) / (values.shape[1] + 1.0)).mean())
    if predictions.continuous:
        return level
    batch: Any = predictions
    if targets_are_indices(batch):
        values = np.asarray(batch.support_values())
        inside = (values >= to_numpy(lower)[:, None]) & (values <= to_numpy(upper)[:, None])
        inner: NDArray = np.where(inside, to_numpy(batch.class_probs()), 0.0)
        return float(inner.sum(axis=1).mean())
    below, _ = distribution_at(predictions, lower)
    _, upto = distribution_at(predictions, upper)
    return float(to_numpy(widen(upto - below)).mean())
