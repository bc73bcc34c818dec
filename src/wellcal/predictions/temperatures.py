"""Families at another temperature, in closed form (paper, "Temperature scaling").

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


def have_rule(predictions: Predictions, rules: Rules[Any]) -> bool:
    """True if there is a rule for a family, or for all components of a mixture."""
    return all(rules.find(type(part)) is not None for part in predictions.parts)


def by_rule(rules: Rules[Any], predictions: Predictions, *arguments: Any) -> Any:
    """Return predictions changed by the rule of their family; those of a mixture component by component."""
    if isinstance(predictions, Mixture):
        # The weights have been checked; a new mixture would check and expand them again.
        parts = (by_rule(rules, part, *arguments) for part in predictions.components)
        return predictions.with_fields(components=tuple(parts))
    rule = rules.find(type(predictions))
    assert rule is not None
    return rule(predictions, *arguments).with_index(predictions.case_index)


def check_supported(predictions: Predictions) -> None:
    """Reject families, or components of a mixture, that have no closed form."""
    for part in predictions.parts:
        if not have_rule(part, TEMPERATURES):
            where = "a Mixture with components of " if isinstance(predictions, Mixture) else ""
            known = ", ".join(family.__name__ for (family,) in TEMPERATURES)
            raise TypeError(
                f"pred: temperature scaling has no closed form for {where}{type(part).__name__}; it has one "
                f"for {known}, and for a Mixture of these"
            )


def tempered(predictions: Predictions, T: Temperature) -> Predictions:
    """Return predictions at temperature T; those of a mixture component by component."""
    return by_rule(TEMPERATURES, predictions, T)


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
@TEMPERATURES.register(DiagonalNormal)
def _normal(pred: Normal | DiagonalNormal, T: Temperature) -> Predictions:
    return type(pred)(pred.loc, pred.scale * T**0.5)


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
