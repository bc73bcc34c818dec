"""Predictions as they would have to be if the given ones were wrong in a known way.

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
from typing import Any, TypeAlias

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
    Mixture,
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
from wellcal.predictions.normal import NORMAL_INTERQUARTILE_RANGE
from wellcal.predictions.temperatures import TEMPERATURES, tempered

SPREADS, TEMPERATURE, MEANS, SHIFT = "spreads", "temperature", "means", "shift"
KINDS = (SPREADS, TEMPERATURE, MEANS, SHIFT)

Affine: TypeAlias = Callable[[Any, NDArray, float, NDArray], Predictions]

AFFINE: Rules[Affine] = Rules("an affine rule", exact=True)
"""Functions ``rule(predictions, c, factor, shift)``: the law of ``c + factor (Y - c) + shift``."""

SCALED: Rules[Callable[[Any, float], Predictions]] = Rules("a rule for means", exact=True)
"""Functions ``rule(predictions, factor)``: predictions with means that many times larger."""

DISPERSED: Rules[Callable[[Any, float], Predictions]] = Rules("a rule for dispersion", exact=True)
"""Functions ``rule(predictions, factor)``: counts of the same mean whose variance is so many times larger."""

_DRAWS = 64  # values of each case that stand for a family without a rule
_VECTORS = 16  # the same of vectors
_SEED = 0


@dataclass(frozen=True)
class Altered:
    """What was predicted beside what would be true, in a form in which both can be compared.

    Attributes
    ----------
    predicted, true
        Batches of one family. They are the predictions themselves where the family has a rule, bins where
        it is known through quantiles, and draws elsewhere: the same ones on both sides.
    index
        From targets to those of `predicted`.
    """

    predicted: Predictions
    true: Predictions
    index: Callable[[NDArray], NDArray]


def kind_of_error(predictions: Predictions) -> str | None:
    """The kind of error that a family is measured by; None for targets that are objects."""
    if _all(predictions, AFFINE) or isinstance(predictions, Quantiles):
        return None if _holds_objects(predictions) else SPREADS
    if _all(predictions, TEMPERATURES):
        return TEMPERATURE
    if _all(predictions, SCALED):
        return MEANS
    usable = predictions.target_kind == "real" and predictions.supports("sample")
    return SPREADS if usable else None


def kinds_for(predictions: Predictions) -> list[str]:
    """All kinds of error that predictions can be altered by."""
    found = kind_of_error(predictions)
    kinds = [] if found is None else [found]
    if SPREADS in kinds:
        kinds += [TEMPERATURE] if _all(predictions, TEMPERATURES) else []
        kinds.append(SHIFT)
    return kinds


def altered(predictions: Predictions, kind: str, amount: float) -> Altered:
    """Predictions beside the truth that they miss by an error of some kind and amount.

    Examples
    --------
    >>> found = altered(Normal(np.zeros(2), np.ones(2)), SPREADS, 0.8)
    >>> found.true.scale
    array([1.25, 1.25])
    """
    if kind == TEMPERATURE:
        return Altered(predictions, tempered(predictions, 1.0 / amount), _same)
    if kind == MEANS:
        return Altered(predictions, _scaled(predictions, 1.0 / amount), _same)
    if isinstance(predictions, Quantiles):
        return _of_bins(predictions, kind, amount)
    dispersed = DISPERSED.find(type(predictions)) if kind == SPREADS else None
    if dispersed is not None:
        return Altered(predictions, dispersed(predictions, amount**-2), _same)
    centre, spread = centre_and_scale(predictions)
    factor, shift = (1.0, amount * spread) if kind == SHIFT else (1.0 / amount, np.zeros_like(spread))
    if _all(predictions, AFFINE):
        return Altered(predictions, _moved(predictions, centre, factor, shift), _same)
    drawn = np.moveaxis(predictions.draw(np.random.default_rng(_SEED), _DRAWS), 0, 1)
    said = Samples(drawn, kind="atoms", axis=1)
    return Altered(said, _moved(said, centre, factor, shift), _same)


def as_atoms(found: Altered) -> Altered:
    """Both sides by a few atoms for each case: quantiles at the same levels, or draws with the same seed."""
    said, true = (_atoms(side) for side in (found.predicted, found.true))
    return Altered(said, true, found.index)


def _atoms(predictions: Predictions) -> Predictions:
    if isinstance(predictions, (Samples, Categorical)):
        return predictions
    if predictions.event_shape == () and predictions.supports("quantile"):
        levels = (np.arange(_DRAWS) + 0.5)[:, None] / _DRAWS
        values = np.asarray(predictions.quantile(np.broadcast_to(levels, (_DRAWS, len(predictions)))))
    else:
        values = predictions.draw(
            np.random.default_rng(_SEED), _VECTORS if predictions.event_shape else _DRAWS
        )
    return Samples(np.moveaxis(values, 0, 1), kind="atoms", axis=1)


def draw_altered(
    predictions: Predictions, kind: str, amount: float, rng: np.random.Generator, size: int
) -> NDArray:
    """Targets ``(size, n, ...)`` drawn from the truth, as `check_targets` of the predictions returns them."""
    if kind in (TEMPERATURE, MEANS):
        true = altered(predictions, kind, amount).true
        if predictions.target_kind == "labels":
            return draw_index(to_numpy(true.class_probs()), rng, size)
        return true.draw(rng, size)
    if isinstance(predictions, Quantiles):
        scores = _altered_scores(rng.standard_normal((size, len(predictions))), kind, amount)
        return _at_scores(predictions, scores)
    centre, spread = centre_and_scale(predictions)
    drawn = predictions.draw(rng, size)
    if kind == SHIFT:
        return drawn + amount * spread
    return centre + (drawn - centre) / amount


def centre_and_scale(predictions: Predictions) -> tuple[NDArray, NDArray]:
    """Mean and standard deviation; median and interquartile range where there are none, or no finite ones.

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


def _same(targets: NDArray) -> NDArray:
    return targets


def _holds_objects(predictions: Predictions) -> bool:
    return predictions.target_kind == "objects"


def _all(predictions: Predictions, rules: Rules[Any]) -> bool:
    """Whether there is a rule for a family, or for all components of a mixture."""
    parts = predictions.components if isinstance(predictions, Mixture) else (predictions,)
    return all(rules.find(type(part)) is not None for part in parts)


def _moved(predictions: Predictions, centre: NDArray, factor: float, shift: NDArray) -> Predictions:
    if isinstance(predictions, Mixture):
        parts = tuple(_moved(part, centre, factor, shift) for part in predictions.components)
        return predictions.with_fields(components=parts)
    rule = AFFINE.find(type(predictions))
    assert rule is not None
    return rule(predictions, centre, factor, shift)


def _scaled(predictions: Predictions, factor: float) -> Predictions:
    if isinstance(predictions, Mixture):
        return predictions.with_fields(
            components=tuple(_scaled(part, factor) for part in predictions.components)
        )
    rule = SCALED.find(type(predictions))
    assert rule is not None
    return rule(predictions, factor)


@AFFINE.register(Normal)
@AFFINE.register(DiagonalNormal)
@AFFINE.register(Laplace)
@AFFINE.register(StudentT)
def _location_scale(pred: Any, centre: NDArray, factor: float, shift: NDArray) -> Predictions:
    loc = centre + factor * (pred.loc - centre) + shift
    return pred.with_fields(loc=loc, scale=factor * pred.scale)


@AFFINE.register(MultivariateNormal)
@AFFINE.register(PowerExponential)
def _location_matrix(pred: Any, centre: NDArray, factor: float, shift: NDArray) -> Predictions:
    if pred.cov is None:
        return _location_scale(pred, centre, factor, shift)
    loc = centre + factor * (pred.loc - centre) + shift
    return pred.with_fields(loc=loc, cov=factor**2 * pred.cov, chol=factor * pred.chol)


@AFFINE.register(Samples)
def _values(pred: Samples, centre: NDArray, factor: float, shift: NDArray) -> Predictions:
    about = centre[:, None]
    return pred.with_fields(values=about + factor * (pred.values - about) + shift[:, None])


@SCALED.register(Poisson)
def _poisson(pred: Poisson, factor: float) -> Predictions:
    return pred.with_fields(rate=factor * pred.rate)


@SCALED.register(NegativeBinomial)
def _negative_binomial(pred: NegativeBinomial, factor: float) -> Predictions:
    return NegativeBinomial(factor * pred.mean(), pred.dispersion)


@DISPERSED.register(Poisson)
@DISPERSED.register(NegativeBinomial)
def _dispersed(pred: Any, factor: float) -> Predictions:
    mean, variance = (np.asarray(part, dtype=np.float64) for part in (pred.mean(), pred.variance()))
    return NegativeBinomial(mean, (factor * variance - mean) / mean**2)


@SCALED.register(Gamma)
def _gamma(pred: Gamma, factor: float) -> Predictions:
    return pred.with_fields(scale=factor * pred.scale)


@SCALED.register(LogNormal)
def _log_normal(pred: LogNormal, factor: float) -> Predictions:
    return pred.with_fields(mu=pred.mu + np.log(factor))


# -- quantiles -------------------------------------------------------------------------------


def _of_bins(predictions: Quantiles, kind: str, amount: float) -> Altered:
    """Bins, whose probabilities change as if the normal scores of targets did."""
    edges = special.ndtri(np.concatenate([[0.0], predictions.levels, [1.0]]))
    moved = edges - amount if kind == SHIFT else edges * amount
    n, probs = len(predictions), np.diff(special.ndtr(moved))
    said = np.broadcast_to(predictions.bin_probs(), (n, len(probs)))
    true = np.broadcast_to(probs, (n, len(probs)))
    return Altered(Categorical(said), Categorical(true), lambda y: np.asarray(predictions.bins(y)))


def _altered_scores(scores: NDArray, kind: str, amount: float) -> NDArray:
    return scores + amount if kind == SHIFT else scores / amount


def _at_scores(predictions: Quantiles, scores: NDArray) -> NDArray:
    """Targets with these normal scores, uniform within bins."""
    edges = predictions.bin_edges()
    levels = np.concatenate([[0.0], predictions.levels, [1.0]])
    u = special.ndtr(scores)
    chosen = np.clip(np.searchsorted(levels, u, side="left") - 1, 0, len(levels) - 2)
    share = (u - levels[chosen]) / (levels[chosen + 1] - levels[chosen])
    rows = np.arange(len(predictions))
    low, high = edges[rows, chosen], edges[rows, chosen + 1]
    return np.minimum(low + np.maximum(share, 1e-9) * (high - low), high)
