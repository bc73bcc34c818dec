"""Temperature scaling of each family in closed form (paper, appendix "Temperature scaling").

A density p with respect to a reference measure becomes q proportional to p^(1/T). The measure matters: with
respect to Lebesgue measure a Beta distribution would change its mean, with respect to dx / (x (1 - x)) it
does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from wellcal._arrays.checks import check_rows, finite, positive_number
from wellcal._arrays.namespaces import Array, is_array, is_jax, namespace, stop_gradient
from wellcal._arrays.parameters import same_library
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
from wellcal.predictions.adapters import converted_argument

Temperature: TypeAlias = Any
"""A positive number, or an array of one number through which gradients flow."""

TEMPERATURES: Rules[Callable[[Any, Temperature], Any]] = Rules("a temperature rule", exact=True)
"""Functions ``rule(predictions, T)``, by family: predictions of that family at temperature T."""


def apply_temperature(pred: object, temperature: Temperature) -> Any:
    r"""Predictions at another temperature: densities :math:`q \propto p^{1/T}`, family by family.

    ======================  ===================================  =============================  =========
    family                  reference measure                    what becomes of parameters     unchanged
    ======================  ===================================  =============================  =========
    Bernoulli               counting                             logit / T                      mode
    Categorical             counting                             softmax(log(probs) / T)        mode
    Normal, DiagonalNormal  Lebesgue                             scale * T^(1/2)                mean
    MultivariateNormal      Lebesgue                             cov * T                        mean
    Laplace                 Lebesgue                             scale * T                      mean
    PowerExponential        Lebesgue                             scale * T^(1/shape)            mean
    ... of vectors          Lebesgue                             cov * T^(2/shape)              mean
    Beta                    :math:`dx / (x (1 - x))`             a / T, b / T                   mean
    Dirichlet               :math:`dx / \prod_i x_i`             concentration / T              mean
    Mixture                 that of each of its components       those of its components        see Notes
    ======================  ===================================  =============================  =========

    Families of your own are scaled by the rule that :func:`wellcal.extend.temperature` registered for them.

    Temperatures above 1 make predictions less certain, those below 1 more certain.

    Parameters
    ----------
    pred
        Predictions of one of these families, or anything that :func:`wellcal.as_predictions` understands.
    temperature
        T, a positive number, or an array of one number through which gradients flow.

    Returns
    -------
    Predictions
        Of the same family, in the same array library.

    Notes
    -----
    A power of a mixture's density is no mixture of known components. Each component is scaled by itself,
    and the weights stay: that is not temperature scaling of the mixture, and what the scaling of components
    leaves unchanged (their means, for all families but classes) is unchanged in the mixture. For an ensemble
    of classifiers, ``wc.Categorical(mixture.class_probs())`` can be scaled as a whole.

    The mean of a Categorical with a support does change: it is the order of the probabilities that stays.
    The paper's `shape` of a power exponential distribution is half of the one here, and its reference
    measure for Dirichlet distributions is meant on the simplex, in any d - 1 of the coordinates. Densities
    reported by `log_prob` are with respect to Lebesgue measure throughout; the reference measure decides
    only what becomes of the parameters.

    Other families have no such closed form, or none at all temperatures: powers of a Poisson distribution
    are not Poisson distributions, and those of a heavy tail cannot be normalised.

    References
    ----------
    Widmann, Lindsten, Zachariah (2021), appendix "Temperature scaling"; Guo, Pleiss, Sun, Weinberger (2017),
    "On calibration of modern neural networks".

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> apply_temperature(wc.Normal(np.zeros(2), np.array([1.0, 2.0])), 4.0).scale
    array([2., 4.])
    >>> apply_temperature(wc.Categorical(np.array([[0.9, 0.1]])), 2.0).probs
    array([[0.75, 0.25]])
    """
    predictions = converted_argument(pred, "pred")
    check_supported(predictions)
    T = positive_number(temperature, "temperature")
    if is_array(T) and not is_jax(namespace(T)):  # JAX takes NumPy's arrays as its own
        same_library(pred=predictions.like, temperature=T)
    return _scaled(predictions, T)


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


def family_name(predictions: Predictions) -> str:
    """How errors and representations call a family; of mixtures, with the families of components."""
    if not isinstance(predictions, Mixture):
        return type(predictions).__name__
    names = sorted({type(part).__name__ for part in predictions.components})
    return f"Mixture of {', '.join(names)}"


def _scaled(predictions: Predictions, T: Temperature) -> Predictions:
    if isinstance(predictions, Mixture):
        # The weights have been checked; a new mixture would check and expand them again.
        return predictions.with_fields(components=tuple(_scaled(part, T) for part in predictions.components))
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
    return Bernoulli(ops.where(inside, moved, p))


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
        finite(diagonal) & (diagonal > 0),
        "is beyond the range of its floating-point type",
        "take a temperature nearer to 1, or double precision",
    )
    return scale
