"""How often targets fall below predicted quantiles, with bands for a calibrated model."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wellcal._arrays.checks import check_levels
from wellcal._arrays.namespaces import Array, NDArray, stop_gradient, to_numpy
from wellcal._arrays.progress import following
from wellcal._arrays.schema import Check, numbers, whole
from wellcal.kernels.base import Kernel
from wellcal.measures.estimate import Estimate
from wellcal.measures.presentation import html_grid, text_table
from wellcal.measures.quantiles.bands import calibration_band
from wellcal.measures.quantiles.checks import check_standing
from wellcal.measures.quantiles.coverage import LIMITS
from wellcal.measures.quantiles.known_levels import quantile_columns
from wellcal.predictions import Quantiles

SHOWN_LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Levels of the table that is printed of many."""

_PRECISE = 50_000  # cases up to which the band takes the same probability at every level


@dataclass(frozen=True, eq=False, repr=False)
class QuantileCalibration(Estimate):
    """How often targets fall below predicted quantiles.

    Attributes
    ----------
    value
        Largest deviation of frequencies from levels, over all levels between 0 and 1.
    levels
        Levels of quantiles, ``(T,)``.
    frequencies
        Proportion of targets that are at most the predicted quantile of that level, ``(T,)``.
    """

    levels: Array = None
    frequencies: Array = None

    def check_stored(self, name: str) -> None:
        self._check_lengths(name, "levels", len(self.levels), "frequencies")

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Names of columns, and a row for each of some levels."""
        shown = np.arange(len(self.levels))
        if len(shown) > len(SHOWN_LEVELS):  # of many the ends, which say nothing, are left out first
            shown = np.flatnonzero((self.levels > 0.0) & (self.levels < 1.0))
        if len(shown) > len(SHOWN_LEVELS):
            nearest = [np.argmin(np.abs(self.levels[shown] - level)) for level in SHOWN_LEVELS]
            shown = shown[np.unique(nearest)]
        levels, found = np.asarray(self.levels)[shown], np.asarray(self.frequencies)[shown]
        kind = "equal_precision" if self.n_samples <= _PRECISE else "kolmogorov"
        band = calibration_band(levels, self.n_samples, LIMITS, kind)
        return ["level", "below", f"{100 * LIMITS:.0f}% of calibrated models"], [
            [f"{100 * level:.4g}%", f"{100 * below:.1f}%", f"{100 * low:.1f}% to {100 * high:.1f}%"]
            for level, below, low, high in zip(levels, found, *band, strict=True)
        ]

    def __repr__(self) -> str:
        return "\n".join([super().__repr__(), *text_table(*self._table())])

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(text)}</p>" for _, text in self._rows())
        return html_grid(*self._table(), caption=self._headline()) + notes

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of it."""
        curves = ("levels", "frequencies")
        return {**super().checks(kernel), "n_samples": whole(least=1), **dict.fromkeys(curves, numbers())}

    def band(self, level: float = 0.95, *, kind: str = "kolmogorov") -> tuple[Array, Array]:
        """Where the whole curve of a calibrated model lies with probability `level` or more.

        Parameters
        ----------
        level
            Simultaneous coverage, over all levels of quantiles at once.
        kind
            "kolmogorov": of equal width at all levels, for a curve at any levels; "equal_precision": as
            narrow in terms of probability at every level of the curve, and so narrower at both ends.

        Returns
        -------
        low, high
            Frequencies ``(T,)``. Both bands are exact for independent cases at every n.

        Examples
        --------
        >>> import numpy as np
        >>> y = np.linspace(-2, 2, 40)
        >>> low, high = quantile_calibration(y, (np.zeros(40), np.ones(40)), levels=[0.1, 0.5]).band()
        >>> low.round(3), high.round(3)
        (array([0.   , 0.29]), array([0.31, 0.71]))
        """
        return calibration_band(self.levels, self.n_samples, level, kind)


@following(None)
def quantile_calibration(
    y: object, pred: object, *, levels: Sequence[float] | Array | None = None
) -> QuantileCalibration:
    r"""Proportion of targets below predicted quantiles, for each level.

    .. math:: \tau \mapsto \frac1n \sum_i \mathbf{1}\{P_i(Y \le y_i) \le \tau\}

    Parameters
    ----------
    y
        Observed targets ``(n,)``.
    pred
        Continuous predictions of numbers, as for :func:`wellcal.nll`.
    levels
        Levels between 0 and 1 at which the curve is reported; None takes 0, 0.01 .. 1, and for `Quantiles`
        their levels: at others, but for 0 and 1, nothing is known of them.

    Returns
    -------
    QuantileCalibration
        The curve, and as its value the largest deviation from the diagonal at any level, reported or not: the
        statistic of Kolmogorov and Smirnov for uniform :math:`P_i(Y \le y_i)`. For `Quantiles` it is the
        largest one at their levels.

    Notes
    -----
    Quantile calibration is weaker than calibration: it averages over all predictions, so that errors which
    cancel between predictions stay unseen. A curve on the diagonal is no evidence of calibration.

    There are no weights: the bands are those of cases that count alike. :func:`wellcal.pinball_loss` takes
    weights.

    Examples
    --------
    >>> import numpy as np
    >>> found = quantile_calibration(np.array([-1.0, 1.0]), (np.zeros(2), np.ones(2)), levels=[0.2, 0.5, 0.9])
    >>> found
    quantile calibration = 0.341345  (largest deviation over all levels, 2 cases)
      level   below  95% of calibrated models
      20%     50.0%            0.0% to 100.0%
      50%     50.0%            0.0% to 100.0%
      90%    100.0%           50.0% to 100.0%
    >>> found.frequencies
    array([0.5, 0.5, 1. ])
    """
    targets, predictions = check_standing(y, pred, "quantile_calibration")
    if not predictions.continuous:
        raise TypeError(
            f"quantile_calibration needs continuous predictions, found {type(predictions).__name__}: below a "
            "quantile of a discrete prediction there is more than its level, calibrated or not"
        )
    if isinstance(predictions, Quantiles):
        chosen, frequencies, largest = _at_quantiles(predictions, targets, levels)
    else:
        chosen = check_levels(np.linspace(0.0, 1.0, 101) if levels is None else levels)
        below = np.sort(to_numpy(stop_gradient(predictions.cdf(targets))).astype(np.float64))
        frequencies = np.searchsorted(below, chosen, side="right") / len(below)
        steps = np.arange(len(below) + 1) / len(below)
        largest = float(max(np.max(steps[1:] - below), np.max(below - steps[:-1])))
    return QuantileCalibration(
        largest,
        None,
        "quantile calibration",
        "largest deviation over all levels",
        len(predictions),
        levels=chosen,
        frequencies=frequencies,
    )


def _at_quantiles(
    predictions: Quantiles, targets: Array, levels: Sequence[float] | Array | None
) -> tuple[NDArray, NDArray, float]:
    """Levels, shares of targets at or below their quantiles, and the largest deviation at any of these."""
    known = np.asarray(predictions.levels)
    chosen = check_levels(known if levels is None else levels)
    columns = quantile_columns(predictions, chosen)
    bins = to_numpy(stop_gradient(predictions.bins(targets)))
    # What lies in the first k bins lies below the k-th quantile.
    below = np.concatenate([[0.0], np.cumsum(np.bincount(bins, minlength=len(known) + 1)) / len(bins)])
    return chosen, below[columns], float(np.max(np.abs(below[1:-1] - known)))
