"""Distributions of scipy.stats, of its older and its newer infrastructure, as predictions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray, has
from wellcal._arrays.special import quiet
from wellcal.predictions import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
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
    StudentT,
)
from wellcal.predictions.adapters._scipy_continuous import (
    ScipyContinuous,
    check_batch_shape,
    frozen_labels,
    frozen_parameters,
)
from wellcal.predictions.adapters.registry import converted

_MAX_SUPPORT = 1024
"""Size of a finite support up to which a discrete distribution is tabulated."""

Columns = dict[str, NDArray]


def is_scipy(obj: object) -> bool:
    """Whether an object behaves as distributions of scipy.stats do, of either infrastructure."""
    return not isinstance(obj, type) and (has(obj, "rvs") or (has(obj, "icdf") and has(obj, "logpdf")))


def from_scipy(obj: Any) -> Predictions:
    """A distribution of scipy.stats as predictions."""
    from scipy import stats

    if isinstance(obj, (stats.rv_continuous, stats.rv_discrete)):
        name = str(obj.name)
        raise TypeError(
            f"predictions must have parameters, and stats.{name} has none; give them, as in "
            f"stats.{name}(loc=..., scale=...)"
        )
    if hasattr(getattr(obj, "dist", None), "args"):
        return from_scipy(obj.dist)  # an object that holds one: NGBoost's distributions
    if hasattr(obj, "dist") and hasattr(obj, "args"):
        columns, labels = frozen_parameters(obj), frozen_labels(obj)
        if labels is not None:  # parameters in one order
            return _from_frozen(obj.dist(**columns), columns).with_index(labels)
        return _from_frozen(obj, columns)
    if hasattr(obj, "icdf"):
        return _from_variable(obj)
    rule = _vector_families().get(cast("type[Any]", type(obj)))
    if rule is None:
        raise _no_family(type(obj).__name__.removesuffix("_frozen"))
    return rule(obj)


@cache
def _vector_families() -> dict[type, Callable[[Any], Predictions]]:
    """Frozen distributions of vectors: each has a class of its own, which only its instances show."""
    from scipy import stats

    return {
        type(stats.multivariate_normal()): lambda d: MultivariateNormal(
            np.asarray(d.mean)[None, :], np.asarray(d.cov)[None, :, :]
        ),
        type(stats.dirichlet([1.0, 1.0])): lambda d: Dirichlet(np.asarray(d.alpha)[None, :]),
    }


def _no_family(name: str) -> TypeError:
    return TypeError(
        f"predictions of the scipy.stats distribution {name} have no family here: draw from it and give "
        "wc.Samples(values) with values of shape (n, S), or (n, S, d) for vectors"
    )


# -- older infrastructure ------------------------------------------------------------------------------


def stack_frozen(items: list[Any]) -> Predictions | None:
    """A list of single frozen distributions of one family as a batch; None if it is something else.

    Their parameters are stacked before the batch is built, so that long lists cost no more than arrays.
    """
    first = items[0]
    if not all(hasattr(item, "dist") and hasattr(item, "args") for item in items):
        return None
    if any(type(item.dist) is not type(first.dist) for item in items) or not _is_standard(first.dist):
        return None
    columns = [frozen_parameters(item) for item in items]
    for position, column in enumerate(columns):
        check_single(len(column["loc"]), position)
    stacked = {name: np.concatenate([column[name] for column in columns]) for name in columns[0]}
    return _from_frozen(first.dist(**stacked), stacked)


def check_single(n: int, position: int) -> None:
    """Reject an item of a list that is a batch: a list of these could also mean an ensemble."""
    if n != 1:
        raise ValueError(
            f"item {position} of the list is a batch of {n} distributions; a list holds one distribution for "
            "each prediction. An ensemble is wc.Mixture([wc.as_predictions(member) for member in members])"
        )


def _is_standard(dist: Any) -> bool:
    """Whether `dist` is one of the families in scipy.stats, which their parameters describe completely."""
    from scipy import stats

    return type(getattr(stats, dist.name, None)) is type(dist)


def _from_frozen(frozen: Any, columns: Columns) -> Predictions:
    rule = _scalar_families().get(cast("type[Any]", type(frozen.dist)))
    found = None if rule is None else rule(columns)
    if found is not None:
        return found
    if hasattr(frozen, "logpdf"):
        return ScipyContinuous(frozen)
    return _from_finite_support(frozen, str(frozen.dist.name), getattr(frozen.dist, "xk", None))


def _at_zero(build: Callable[[Columns], Predictions]) -> Callable[[Columns], Predictions | None]:
    """A family that has no location: None where there is one."""
    return lambda columns: None if np.any(columns["loc"] != 0) else build(columns)


def _beta(columns: Columns) -> Predictions | None:
    if np.any(columns["loc"] != 0) or np.any(columns["scale"] != 1):
        return None
    return Beta(columns["a"], columns["b"])


@quiet
def _negative_binomial(columns: Columns) -> Predictions:
    n, p = columns["n"], columns["p"]
    return NegativeBinomial(mean=n * (1.0 - p) / p, dispersion=1.0 / n)


@quiet
def _log_normal(columns: Columns) -> Predictions:
    return LogNormal(mu=np.log(columns["scale"]), sigma=columns["s"])


@cache
def _scalar_families() -> dict[type, Callable[[Columns], Predictions | None]]:
    """Families of ours by the class of the distribution; None where ours has no such location or scale."""
    from scipy import stats

    return {
        type(stats.norm): lambda c: Normal(c["loc"], c["scale"]),
        type(stats.laplace): lambda c: Laplace(c["loc"], c["scale"]),
        type(stats.t): lambda c: StudentT(c["df"], c["loc"], c["scale"]),
        type(stats.gennorm): lambda c: PowerExponential(c["loc"], c["scale"], c["beta"]),
        type(stats.gamma): _at_zero(lambda c: Gamma(c["a"], c["scale"])),
        type(stats.expon): _at_zero(lambda c: Gamma(np.ones_like(c["scale"]), c["scale"])),
        type(stats.lognorm): _at_zero(_log_normal),
        type(stats.beta): _beta,
        type(stats.bernoulli): _at_zero(lambda c: Bernoulli(c["p"])),
        type(stats.poisson): _at_zero(lambda c: Poisson(c["mu"])),
        type(stats.nbinom): _at_zero(_negative_binomial),
    }


# -- newer infrastructure ------------------------------------------------------------------------------


def _from_variable(variable: Any) -> Predictions:
    """A random variable: those with a class of their own show their parameters."""
    from scipy import stats

    if isinstance(variable, stats.Mixture):
        mixture = cast("Any", variable)
        return Mixture([converted(component) for component in mixture.components], mixture.weights)
    if isinstance(variable, stats.Normal):
        normal = cast("Any", variable)
        mu, sigma = np.asarray(normal.mu), np.asarray(normal.sigma)
        check_batch_shape(mu.shape, "Normal")
        return Normal(np.atleast_1d(mu), np.atleast_1d(sigma))
    if isinstance(variable, stats.Binomial.__mro__[1]):  # what all discrete variables derive from
        return _from_finite_support(variable, type(variable).__name__)
    return ScipyContinuous(variable)


# -- finite supports ----------------------------------------------------------------------------------


def _from_finite_support(distribution: Any, name: str, points: NDArray | None = None) -> Predictions:
    """A discrete distribution as probabilities of the values that it can take.

    Values are the whole numbers between the ends of the support unless `points` are given.
    """
    low, high = (np.asarray(end, dtype=np.float64) for end in distribution.support())
    first, last = float(np.min(low)), float(np.max(high))
    if np.isnan(first) or np.isnan(last):
        raise ValueError(f"the {name} distribution has parameters out of range: check the model's output")
    if not last - first < _MAX_SUPPORT:
        raise TypeError(
            f"the discrete distribution {name} takes values from {first:g} to {last:g}: these are too many "
            f"to tabulate (at most {_MAX_SUPPORT}) and it has no family here; draw from it and give "
            "wc.Samples(values) with values of shape (n, S)"
        )
    if points is None:
        # A support of one point needs a second one, of probability zero, to be a Categorical.
        values = np.arange(first, max(last, first + 1.0) + 1.0)
    else:
        values = np.unique(np.ravel(points)) + (first - float(np.min(points)))
    shape = np.shape(distribution.pmf(first))
    check_batch_shape(shape, name)
    probs = np.reshape(distribution.pmf(values[:, None] if shape else values), (len(values), -1)).T
    if not np.all(np.abs(np.sum(probs, axis=1) - 1.0) < 1e-6):
        raise _no_family(name)
    return Categorical(probs, support=values)
