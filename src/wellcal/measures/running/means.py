"""Means of scores, with weights or without."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy, widen
from wellcal.measures.estimate import NOT_FINITE, Estimate
from wellcal.measures.running.accumulator import Accumulator
from wellcal.measures.scores.casewise import (
    nll_of_cases,
    not_finite,
    pinball_of_cases,
    squared_errors,
    weights_told,
)
from wellcal.measures.scores.energy import energy_of_cases
from wellcal.measures.scores.quadratic import brier_of_cases
from wellcal.measures.scores.ranked import crps_of_cases
from wellcal.predictions.base import check_inputs
from wellcal.problem.weights import MeanOfWeighted

Scores = Callable[[Any, Any], tuple[Any, dict[str, Any]]]
"""Scores ``(n,)`` of targets and predictions, and how they were obtained."""

SCORES: dict[str, tuple[str, Scores]] = {
    "nll": ("NLL", lambda y, pred: (nll_of_cases(y, pred), {})),
    "crps": ("CRPS", lambda y, pred: crps_of_cases(*check_inputs(y, pred))),
    "brier": ("Brier score", lambda y, pred: (brier_of_cases(*check_inputs(y, pred)), {})),
    "energy_score": ("energy score", lambda y, pred: energy_of_cases(*check_inputs(y, pred))),
    "mse": ("MSE", lambda y, pred: (squared_errors(y, pred), {})),
    "pinball_loss": ("pinball loss", lambda y, pred: (pinball_of_cases(y, pred), {})),
}
"""Scores by name: what they are called in results, and how they are computed."""

_ERROR = "expectation_error"


@dataclass(frozen=True)
class RunningMean(Accumulator):
    r"""A mean of scores, as :func:`wellcal.nll` and the others have it.

    With :math:`d_i = s_i - c` for a number c near the scores it keeps :math:`\sum w`, :math:`\sum w d`,
    :math:`\sum w^2`, :math:`\sum w^2 d` and :math:`\sum w^2 d^2`, and sums of higher powers of the weights,
    from which value and standard error follow for any weights; all are one where none are given. Weights are
    relative to the largest that was seen, so that their powers are numbers.

    Parameters
    ----------
    score
        A name in `SCORES`.
    """

    score: str
    n: int = 0
    centre: float = 0.0
    unit: float = 1.0
    sums: NDArray = field(default_factory=lambda: np.zeros(len(_POWERS)))
    weighted: bool = False
    provenance: dict[str, Any] = field(default_factory=lambda: {})

    def updated(self, y: Any, pred: Any, weights: NDArray | None) -> Self:
        scores, provenance = SCORES[self.score][1](y, pred)
        values = np.asarray(to_numpy(widen(scores)), dtype=np.float64)
        w = np.ones(len(values)) if weights is None else weights
        values = np.where(w > 0, values, 0.0)  # a score of weight zero does not count, even an infinite one
        mean_of_these = float(values.mean())
        mean = mean_of_these if self.n == 0 else self.centre
        centre = mean if math.isfinite(mean) else 0.0
        with np.errstate(invalid="ignore", over="ignore"):
            d = values - centre
            unit = 1.0 if weights is None else float(w.max())
            sums = _sums_of(d, None if weights is None else w / unit if unit > 0.0 else w)
        new = replace(
            self,
            n=len(values),
            centre=centre,
            unit=unit,
            sums=sums,
            weighted=weights is not None,
            provenance={**provenance, **not_finite(mean_of_these, values)},
        )
        return new if self.n == 0 else self.merged(new)

    def merged(self, other: Self) -> Self:
        if self.n == 0 or other.n == 0:
            return other if self.n == 0 else self
        if self.weighted != other.weighted:
            raise ValueError("weights were given for some of the cases only; give them for all, or for none")
        provenance = {**other.provenance, **self.provenance}
        if _ERROR in provenance:
            provenance[_ERROR] = max(
                part.provenance[_ERROR] for part in (self, other) if _ERROR in part.provenance
            )
        if NOT_FINITE in provenance:
            provenance[NOT_FINITE] = sum(part.provenance.get(NOT_FINITE, 0) for part in (self, other))
        with np.errstate(invalid="ignore", over="ignore"):  # of infinite scores
            unit = max(self.unit, other.unit)
            mine, others = (part._in_unit(unit) for part in (self, other))
            sums = mine + _shifted(others, other.centre - self.centre)
        return replace(self, n=self.n + other.n, unit=unit, sums=sums, provenance=provenance)

    def _in_unit(self, unit: float) -> NDArray:
        """The sums with weights relative to another number, the same or a larger one."""
        return self.sums if unit == self.unit else self.sums * (self.unit / unit) ** _POWERS

    def result(self) -> Estimate:
        total, first, squares, linear, quadratic, *higher = self.sums
        if not total > 0.0:
            raise ValueError("weights are zero for all cases; one at least must be positive")
        with np.errstate(invalid="ignore"):
            shift = first / total
            spread = quadratic - 2.0 * shift * linear + shift**2 * squares
        error, known = None, dict(self.provenance)
        weighted = MeanOfWeighted.from_sums(*map(float, (total, squares, *higher)))
        if weighted.has_error:
            spread = max(float(spread), 0.0) if math.isfinite(spread) else math.nan
            error = math.sqrt(spread * weighted.factor) / float(total)
        if self.weighted:
            known |= {**weights_told(weighted), "weights": "given"}
        estimator = "weighted mean" if self.weighted else "mean"
        value = self.centre + float(shift)
        return Estimate(value, error, SCORES[self.score][0], estimator, self.n, provenance=known)


_POWERS = np.array([1, 1, 2, 2, 2, 3, 4, 5])
"""Of the weights, in the sums that are kept."""


def _sums_of(d: NDArray, w: NDArray | None) -> NDArray:
    """The sums for scores ``(n,)`` less their centre, and their weights."""
    if w is None:
        n, first = float(len(d)), d.sum()
        return np.array([n, first, n, first, (d**2).sum(), n, n, n])
    squares = w**2
    terms = (w, w * d, squares, squares * d, squares * d**2, squares * w, squares**2, squares**2 * w)
    return np.array([part.sum() for part in terms])


def _shifted(sums: NDArray, by: float) -> NDArray:
    """The same sums around a number that is smaller by `by`."""
    total, first, squares, linear, quadratic, *higher = sums
    return np.array(
        [
            total,
            first + by * total,
            squares,
            linear + by * squares,
            quadratic + 2.0 * by * linear + by**2 * squares,
            *higher,
        ]
    )
