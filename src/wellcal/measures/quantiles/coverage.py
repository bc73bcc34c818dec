"""How often targets fall into predicted intervals."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import Array, NDArray, handed_over
from wellcal._arrays.progress import Stages, following
from wellcal._arrays.schema import Check, numbers, whole
from wellcal.kernels.base import Kernel
from wellcal.measures.estimate import Estimate
from wellcal.measures.presentation import Row, html_grid, text_table
from wellcal.measures.quantiles.checks import check_standing
from wellcal.measures.quantiles.intervals import intervals_of
from wellcal.measures.quantiles.known_levels import interval_levels

LIMITS = 0.95
"""Probability with which the limits of all levels hold together."""

_SEEN = 5e-4  # by which an expectation differs from a level in what is printed


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
        for discrete ones, whose intervals cannot have every probability, and for draws what is expected
        given their values and the targets.
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
@following(None)
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
        Nominal levels of the intervals, strictly between 0 and 1; None takes 0.5, 0.8, 0.9, 0.95.
        `Quantiles` have the intervals between two levels that lie as far from 0 as from 1, and no others:
        None takes those, and the result says so.

    Returns
    -------
    IntervalCoverage
        Coverage, expected coverage, mean widths and confidence limits for each level.

    Notes
    -----
    S draws and their target are S + 1 exchangeable values if the model is calibrated. What is expected is the
    share of these values that lie in the interval of the S others: ``(k - 1) / (S + 1)`` for an interval from
    one draw to the k-th from there, less than the level where S is small, and more where values are equal.

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
    targets, predictions = check_standing(y, pred, "interval_coverage")
    held = intervals_of(predictions, targets)
    chosen, note = interval_levels(predictions, levels)
    rows: list[tuple[float, float, float]] = []
    stages = Stages("levels", float(len(chosen)))
    for level in chosen.tolist():
        with stages.part(1.0):
            found = held(level)
            rows.append((found.share, found.expected, found.width()))
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


def if_calibrated(level: float, expected: float) -> str:
    """What intervals would hold, where that is not their level: those of counts, and of few draws.

    Examples
    --------
    >>> if_calibrated(0.9, 0.952), if_calibrated(0.9, 0.9)
    (' (95.2% if calibrated)', '')
    """
    return "" if abs(expected - level) < _SEEN else f" ({100 * expected:.1f}% if calibrated)"
