"""What becomes of each family at another temperature, in closed form (paper, "Temperature scaling").

A density p with respect to a reference measure becomes q proportional to p^(1/T). The measure matters: with
respect to Lebesgue measure a Beta distribution would change its mean, with respect to dx / (x (1 - x)) it
does not. :func:`wellcal.recalibration.apply_temperature` is the door, and has the table of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from wellcal._arrays.checks import check_rows
from wellcal._arrays.namespaces import Array, namespace, stop_gradient
from wellcal._arrays.registry import Rules
from wellcal._arrays.special import quiet
from wellcal.predictions import (
    Bernoulli,
    Beta,
    Categorical,
    DiagonalNormal,
    Dirichlet,
    Laplace,
    Mixture,
    MultivariateNormal,
    Normal,
    PowerExponential,
    Predictions,
)

Temperature: TypeAlias = Any
"""A positive number, or an array of one number through which gradients flow."""

TEMPERATURES: Rules[Callable[[Any, Temperature], Any]] = Rules("a temperature rule", exact=True)
"""Functions ``rule(predictions, T)``, by family: predictions of that family at temperature T."""


def check_supported(predictions: Predictions) -> None:
    """Reject families, or components of a mixture, that have no closed form."""
    parts = predictions.components if isinstance(predictions, Mixture) else (predictions,)
    for part in parts:
        if TEMPERATURES.find(type(part)) is None:
            where = "a Mixture with components of " if isinstance(predictions, Mixture) else ""
            known = ", ".join(family.__name__ for (family,) in TEMPERATURES)
            raise TypeError(
                f"pred: temperature scaling has no closed form for {where}{type(part).__name__}; it has one "
                f"for {known}, and for a Mixture of these"
            )


def tempered(predictions: Predictions, T: Temperature) -> Predictions:
    """Predictions at temperature T; those of a mixture component by component."""
    if isinstance(predictions, Mixture):
        # The weights have been checked; a new mixture would check and expand them again.
        return predictions.with_fields(components=tuple(tempered(part, T) for part in predictions.components))
    rule = TEMPERATURES.find(type(predictions))
    assert rule is not None
    found = rule(predictions, T)
    return found if predictions.case_index is None else found.with_index(predictions.case_index)


@TEMPERATURES.register(Bernoulli)
@quiet
def _bernoulli(pred: Bernoulli, T: Temperature) -> Bernoulli:
    ops, p = pred.ops, pred.probs
    inside = (p > 0) & (p < 1)
    safe = ops.where(inside, p, 0.5 * ops.one(p))
    logit = (ops.log(safe) - ops.log1p(-safe)) / T
    e = ops.exp(-ops.abs(logit))
    moved = ops.where(logit >= 0, ops.one(e), e) / (1.0 + e)
    return Bernoulli(ops.where(inside, moved, p), classes=pred.classes)


@TEMPERATURES.register(Categorical)
@quiet
def _categorical(pred: Categorical, T: Temperature) -> Categorical:
    ops, xp, p = pred.ops, pred.xp, pred.probs
    possible = p > 0
    logs = ops.log(ops.where(possible, p, ops.one(p)))
    lowest = ops.where(possible, logs, -float("inf") * ops.one(logs))
    peak = stop_gradient(xp.max(lowest, axis=1, keepdims=True))
    powers = ops.where(possible, ops.exp((logs - peak) / T), 0.0 * p)
    probs = powers / xp.sum(powers, axis=1, keepdims=True)
    return Categorical(probs, classes=pred.classes, support=pred.support)


@TEMPERATURES.register(Normal)
def _normal(pred: Normal, T: Temperature) -> Normal:
    return Normal(pred.loc, pred.scale * T**0.5)


@TEMPERATURES.register(DiagonalNormal)
def _diagonal_normal(pred: DiagonalNormal, T: Temperature) -> DiagonalNormal:
    return DiagonalNormal(pred.loc, pred.scale * T**0.5)


@TEMPERATURES.register(MultivariateNormal)
def _multivariate_normal(pred: MultivariateNormal, T: Temperature) -> MultivariateNormal:
    return pred.with_fields(cov=_in_range(pred.cov * T), chol=pred.chol * T**0.5)


@TEMPERATURES.register(Laplace)
def _laplace(pred: Laplace, T: Temperature) -> Laplace:
    return Laplace(pred.loc, pred.scale * T)


@TEMPERATURES.register(PowerExponential)
@quiet
def _power_exponential(pred: PowerExponential, T: Temperature) -> PowerExponential:
    factor = T ** (1.0 / pred.shape)
    if pred.cov is None:
        return PowerExponential(pred.loc, _in_range(pred.scale * factor), pred.shape)
    root = factor[:, None, None]
    return pred.with_fields(cov=_in_range(pred.cov * root**2), chol=pred.chol * root)


@TEMPERATURES.register(Beta)
def _beta(pred: Beta, T: Temperature) -> Beta:
    return Beta(pred.a / T, pred.b / T)


@TEMPERATURES.register(Dirichlet)
def _dirichlet(pred: Dirichlet, T: Temperature) -> Dirichlet:
    return Dirichlet(pred.concentration / T)


def _in_range(scale: Array) -> Array:
    """Reject scales that overflowed, or vanished: T^(1/shape) is extreme for small shapes."""
    xp = namespace(scale)
    diagonal = scale if scale.ndim == 1 else xp.linalg.diagonal(scale)
    check_rows(
        "the scale at that temperature",
        diagonal,
        xp.isfinite(diagonal) & (diagonal > 0),
        "is beyond the range of its floating-point type",
        "take a temperature nearer to 1, or double precision",
    )
    return scale
