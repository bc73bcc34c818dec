"""Misspecification: the truth that predictions miss by an error of a given kind and amount.

Errors have a kind, which follows from the family, and an amount:

============  ==============================================================================================
spreads       predicted spread over the true one: numbers and vectors that can be stretched about their
              centre, and counts that are too little dispersed (an amount below 1)
temperature   predicted temperature over the true one: classes, Beta, Dirichlet, and families with a rule
means         predicted mean over the true one: counts, and positive numbers
shift         how far targets lie above their predictions, in predicted standard deviations
============  ==============================================================================================

An amount of 0.8 of the first three is "20% too small". All of it is NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.registry import Rules
from wellcal._arrays.row_errors import Row, RowError
from wellcal._arrays.special import draw_index
from wellcal.predictions import (
    Categorical,
    DiagonalNormal,
    Gamma,
    Laplace,
    LogNormal,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Poisson,
    PowerExponential,
    Predictions,
    Quantiles,
    Samples,
    StudentT,
)
from wellcal.predictions.base import NORMAL_INTERQUARTILE_RANGE
from wellcal.predictions.temperatures import TEMPERATURES, by_rule, have_rule, tempered

SPREADS, TEMPERATURE, MEANS, SHIFT = "spreads", "temperature", "means", "shift"

AFFINE: Rules[Callable[[Any, NDArray, float, NDArray], Predictions]] = Rules("an affine rule", exact=True)
"""Functions ``rule(predictions, c, factor, shift)``: the law of ``c + factor (Y - c) + shift``."""

SCALED: Rules[Callable[[Any, float], Predictions]] = Rules("a rule for means", exact=True)
"""Functions ``rule(predictions, factor)``: predictions with means that many times larger."""

DISPERSED: Rules[Callable[[Any, float], Predictions]] = Rules("a rule for dispersion", exact=True)
"""Functions ``rule(predictions, factor)``: counts of the same mean whose variance is so many times larger."""

_DRAWS = 64  # values of each case that stand for a family without a rule
_VECTORS = 16  # values of each case for vectors
_SEED = 0


@dataclass(frozen=True)
class Misspecified:
    """Predictions with an assumed truth, in a form in which both can be compared.

    Attributes
    ----------
    predicted, true
        Batches of one family: that of the predictions if it has a rule, bins of quantiles, and draws
        elsewhere, the same ones on both sides.
    index
        From targets to those of `predicted`.
    """

    predicted: Predictions
    true: Predictions
    index: Callable[[NDArray], NDArray] = np.asarray


def kind_of_error(predictions: Predictions) -> str | None:
    """Return the kind of error that a family is measured by; None for targets that are objects."""
    if predictions.kind == "quantiles" or have_rule(predictions, AFFINE):
        return None if predictions.target_kind == "objects" else SPREADS
    for rules, kind in ((TEMPERATURES, TEMPERATURE), (SCALED, MEANS)):
        if have_rule(predictions, rules):
            return kind
    return SPREADS if predictions.target_kind == "real" and predictions.supports("sample") else None


def kinds_for(predictions: Predictions) -> list[str]:
    """Return all kinds of error that predictions can have."""
    kind = kind_of_error(predictions)
    if kind != SPREADS:
        return [] if kind is None else [kind]
    return [SPREADS, *([TEMPERATURE] if have_rule(predictions, TEMPERATURES) else []), SHIFT]


def misspecified(predictions: Predictions, kind: str, amount: float) -> Misspecified:
    """Return predictions with the truth that they miss by an error of some kind and amount.

    Examples
    --------
    >>> misspecified(Normal(np.zeros(2), np.ones(2)), SPREADS, 0.8).true.scale
    array([1.25, 1.25])
    """
    if kind == TEMPERATURE:
        return Misspecified(predictions, tempered(predictions, 1.0 / amount))
    if kind == MEANS:
        return Misspecified(predictions, by_rule(SCALED, predictions, 1.0 / amount))
    if isinstance(predictions, Quantiles):
        return _of_bins(predictions, kind, amount)
    dispersed = DISPERSED.find(type(predictions)) if kind == SPREADS else None
    if dispersed is not None:
        return Misspecified(predictions, dispersed(predictions, amount**-2))
    centre, spread = centre_and_scale(predictions)
    factor, shift = (1.0, amount * spread) if kind == SHIFT else (1.0 / amount, np.zeros_like(spread))
    predicted = predictions if have_rule(predictions, AFFINE) else _draws(predictions, _DRAWS)
    return Misspecified(predicted, by_rule(AFFINE, predicted, centre, factor, shift))


def as_atoms(found: Misspecified) -> Misspecified:
    """Return both sides as a few atoms for each case: quantiles at the same levels, or draws of one seed."""
    return Misspecified(_atoms(found.predicted), _atoms(found.true), found.index)


def _atoms(predictions: Predictions) -> Predictions:
    if isinstance(predictions, (Samples, Categorical)):
        return predictions
    if predictions.event_shape or not predictions.supports("quantile"):
        return _draws(predictions, _VECTORS if predictions.event_shape else _DRAWS)
    return Samples(predictions.quantile((np.arange(_DRAWS) + 0.5) / _DRAWS), kind="atoms", axis=1)


def _draws(predictions: Predictions, count: int) -> Samples:
    drawn = predictions.draw(np.random.default_rng(_SEED), count)
    return Samples(np.moveaxis(drawn, 0, 1), kind="atoms", axis=1)


def draw_misspecified(
    predictions: Predictions, kind: str, amount: float, rng: np.random.Generator, size: int
) -> NDArray:
    """Draw targets ``(size, n, ...)`` from the truth, as `check_targets` of the predictions returns them."""
    if kind in (TEMPERATURE, MEANS):
        true = misspecified(predictions, kind, amount).true
        if predictions.target_kind == "labels":
            return draw_index(to_numpy(true.class_probs()), rng, size)
        return true.draw(rng, size)
    if isinstance(predictions, Quantiles):
        scores = rng.standard_normal((size, len(predictions)))
        return _at_scores(predictions, scores + amount if kind == SHIFT else scores / amount)
    centre, spread = centre_and_scale(predictions)
    drawn = predictions.draw(rng, size)
    if kind == SHIFT:
        return drawn + amount * spread
    return centre + (drawn - centre) / amount


def centre_and_scale(predictions: Predictions) -> tuple[NDArray, NDArray]:
    """Return mean and standard deviation; median and interquartile range if there are no finite ones.

    Vectors have no quantiles: without finite moments they are refused.
    """
    shape = (len(predictions), *predictions.event_shape)
    centre = spread = np.full(shape, np.nan)
    if predictions.supports("mean") and predictions.supports("variance"):
        with np.errstate(invalid="ignore", over="ignore"):
            centre = np.asarray(to_numpy(predictions.mean()), dtype=np.float64)
            spread = np.sqrt(np.asarray(to_numpy(predictions.variance()), dtype=np.float64))
    bad = ~(np.isfinite(centre) & np.isfinite(spread))
    if bad.any():
        if not predictions.supports("quantile"):
            row = int(np.argmax(bad.reshape(len(bad), -1).any(axis=1)))
            raise RowError(
                "predictions must have a mean and a standard deviation that are finite, and those of ",
                Row(row),
                " are not: squares of numbers beyond 1e150 are not held",
                argument="predictions",
                remedy="change the unit",
            )
        median = np.asarray(to_numpy(predictions.quantile(0.5)))
        robust = np.asarray(to_numpy(predictions.interquartile_range())) / NORMAL_INTERQUARTILE_RANGE
        centre, spread = np.where(bad, median, centre), np.where(bad, robust, spread)
    return centre, spread


# -- by family -------------------------------------------------------------------------------


@AFFINE.register(Normal)
@AFFINE.register(DiagonalNormal)
@AFFINE.register(Laplace)
@AFFINE.register(StudentT)
@AFFINE.register(MultivariateNormal)
@AFFINE.register(PowerExponential)
def _located(pred: Any, centre: NDArray, factor: float, shift: NDArray) -> Predictions:
    loc = centre + factor * (pred.loc - centre) + shift
    if getattr(pred, "cov", None) is None:
        return pred.with_fields(loc=loc, scale=factor * pred.scale)
    return pred.with_fields(loc=loc, cov=factor**2 * pred.cov, chol=factor * pred.chol)


@AFFINE.register(Samples)
def _values(pred: Samples, centre: NDArray, factor: float, shift: NDArray) -> Predictions:
    about = centre[:, None]
    return pred.with_fields(values=about + factor * (pred.values - about) + shift[:, None])


SCALED.register(Poisson)(lambda pred, by: pred.with_fields(rate=by * pred.rate))
SCALED.register(NegativeBinomial)(lambda pred, by: NegativeBinomial(by * pred.mean(), pred.dispersion))
SCALED.register(Gamma)(lambda pred, by: pred.with_fields(scale=by * pred.scale))
SCALED.register(LogNormal)(lambda pred, by: pred.with_fields(mu=pred.mu + np.log(by)))


@DISPERSED.register(Poisson)
@DISPERSED.register(NegativeBinomial)
def _dispersed(pred: Any, factor: float) -> Predictions:
    mean, variance = (np.asarray(part, dtype=np.float64) for part in (pred.mean(), pred.variance()))
    return NegativeBinomial(mean, (factor * variance - mean) / mean**2)


# -- quantiles -------------------------------------------------------------------------------


def _of_bins(predictions: Quantiles, kind: str, amount: float) -> Misspecified:
    """Return bins whose probabilities change as if the normal scores of targets did."""
    edges = special.ndtri(np.concatenate([[0.0], predictions.levels, [1.0]]))
    moved = edges - amount if kind == SHIFT else edges * amount
    n, probs = len(predictions), np.diff(special.ndtr(moved))
    said, true = (Categorical(np.broadcast_to(p, (n, len(probs)))) for p in (predictions.bin_probs(), probs))
    return Misspecified(said, true, lambda y: np.asarray(predictions.bins(y)))


def _at_scores(predictions: Quantiles, scores: NDArray) -> NDArray:
    """Return targets with these normal scores, uniform within bins."""
    edges = predictions.bin_edges()
    levels = np.concatenate([[0.0], predictions.levels, [1.0]])
    u = special.ndtr(scores)
    chosen = np.clip(np.searchsorted(levels, u, side="left") - 1, 0, len(levels) - 2)
    share = (u - levels[chosen]) / (levels[chosen + 1] - levels[chosen])
    rows = np.arange(len(predictions))
    low, high = edges[rows, chosen], edges[rows, chosen + 1]
    return np.minimum(low + np.maximum(share, 1e-9) * (high - low), high)
