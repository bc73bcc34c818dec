"""Distributions of scipy.stats, of its older and its newer infrastructure, as predictions."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

import wellcal.predictions as wp
from wellcal._arrays.checks import check_rows, numeric_array
from wellcal._arrays.copies import freeze
from wellcal._arrays.namespaces import Array, NDArray, has
from wellcal._arrays.special import quiet
from wellcal.columns.labels import Labels, common_labels
from wellcal.predictions.adapters.registry import converted
from wellcal.predictions.base import Predictions, nonempty
from wellcal.predictions.fields import derived, family

_MAX_SUPPORT = 1024
"""Size of a finite support up to which a discrete distribution is tabulated."""

_SMALLEST_LEVEL = 2.0**-54  # below all positive uniform draws: a level of exactly 0 has an infinite quantile

_DRAW = "draw from it and give wc.Samples(values) with values of shape (n, S), or (n, S, d) for vectors"


Columns = dict[str, NDArray]


def is_scipy(obj: object) -> bool:
    """True if an object behaves as distributions of scipy.stats do, of either infrastructure."""
    return not isinstance(obj, type) and (has(obj, "rvs") or (has(obj, "icdf") and has(obj, "logpdf")))


def from_scipy(obj: Any) -> Predictions:
    """Convert a distribution of scipy.stats to predictions."""
    stats: Any = importlib.import_module("scipy.stats")
    if isinstance(obj, (stats.rv_continuous, stats.rv_discrete)):
        name = str(obj.name)
        raise TypeError(
            f"predictions must have parameters, found stats.{name}; give stats.{name}(loc=..., scale=...)"
        )
    if hasattr(getattr(obj, "dist", None), "args"):
        return from_scipy(obj.dist)  # an object that holds one: NGBoost's distributions
    if hasattr(obj, "dist") and hasattr(obj, "args"):
        labels, columns = frozen_parameters(obj)
        frozen = obj if labels is None else obj.dist(**columns)  # parameters in one order
        return _from_frozen(frozen, columns).with_index(labels)
    if hasattr(obj, "icdf"):
        return _from_variable(obj)
    if isinstance(obj, type(stats.multivariate_normal())):
        return wp.MultivariateNormal(np.asarray(obj.mean)[None, :], np.asarray(obj.cov)[None, :, :])
    if isinstance(obj, type(stats.dirichlet([1.0, 1.0]))):
        return wp.Dirichlet(np.asarray(obj.alpha)[None, :])
    raise _no_family(type(obj).__name__.removesuffix("_frozen"))


def _no_family(name: str) -> TypeError:
    return TypeError(f"predictions of the scipy.stats distribution {name} have no family here; {_DRAW}")


# -- older infrastructure ------------------------------------------------------------------------------


@quiet
def _from_frozen(frozen: Any, columns: Columns) -> Predictions:
    unknown: tuple[None, dict[str, float]] = None, {}
    build, standard = _FAMILIES.get(frozen.dist.name, unknown)
    known = type(frozen.dist) is type(getattr(importlib.import_module("scipy.stats"), frozen.dist.name, None))
    if build is not None and known and all(np.all(columns[name] == x) for name, x in standard.items()):
        return build(columns)
    if hasattr(frozen, "logpdf"):
        return ScipyContinuous(frozen)
    return _from_finite_support(frozen, str(frozen.dist.name), getattr(frozen.dist, "xk", None))


_FAMILIES: dict[str, tuple[Callable[[Columns], Predictions], dict[str, float]]] = {
    "norm": (lambda c: wp.Normal(c["loc"], c["scale"]), {}),
    "laplace": (lambda c: wp.Laplace(c["loc"], c["scale"]), {}),
    "t": (lambda c: wp.StudentT(c["df"], c["loc"], c["scale"]), {}),
    "gennorm": (lambda c: wp.PowerExponential(c["loc"], c["scale"], c["beta"]), {}),
    "gamma": (lambda c: wp.Gamma(c["a"], c["scale"]), {"loc": 0.0}),
    "expon": (lambda c: wp.Gamma(np.ones_like(c["scale"]), c["scale"]), {"loc": 0.0}),
    "lognorm": (lambda c: wp.LogNormal(np.log(c["scale"]), c["s"]), {"loc": 0.0}),
    "beta": (lambda c: wp.Beta(c["a"], c["b"]), {"loc": 0.0, "scale": 1.0}),
    "bernoulli": (lambda c: wp.Bernoulli(c["p"]), {"loc": 0.0}),
    "poisson": (lambda c: wp.Poisson(c["mu"]), {"loc": 0.0}),
    "nbinom": (lambda c: wp.NegativeBinomial(c["n"] * (1.0 - c["p"]) / c["p"], 1.0 / c["n"]), {"loc": 0.0}),
}
"""Families by the name of the distribution, and parameters that must have a value for it."""


# -- newer infrastructure ------------------------------------------------------------------------------


def _from_variable(variable: Any) -> Predictions:
    """Convert a random variable: those with a class of their own show their parameters."""
    stats: Any = importlib.import_module("scipy.stats")
    if isinstance(variable, stats.Mixture):
        return wp.Mixture([converted(component) for component in variable.components], variable.weights)
    if isinstance(variable, stats.Normal):
        check_batch_shape(np.shape(variable.mu), "Normal")
        return wp.Normal(np.atleast_1d(variable.mu), np.atleast_1d(variable.sigma))
    if hasattr(stats, "Binomial") and isinstance(variable, stats.Binomial.__mro__[1]):  # all discrete ones
        return _from_finite_support(variable, type(variable).__name__)
    return ScipyContinuous(variable)


# -- finite supports ----------------------------------------------------------------------------------


def _from_finite_support(distribution: Any, name: str, points: NDArray | None = None) -> Predictions:
    """Tabulate a discrete distribution at whole numbers, or at `points`."""
    first, last = float(np.min(distribution.support()[0])), float(np.max(distribution.support()[1]))
    if np.isnan(first) or np.isnan(last):
        raise ValueError(f"the {name} distribution has parameters out of range: check the model's output")
    if not last - first < _MAX_SUPPORT:
        raise TypeError(
            f"the discrete distribution {name} has no family here, and values from {first:g} to {last:g}, "
            f"more than {_MAX_SUPPORT}; {_DRAW}"
        )
    values = np.arange(first, max(last, first + 1.0) + 1.0)  # a Categorical has two values at least
    if points is not None:
        values = np.unique(np.ravel(points)) + (first - float(np.min(points)))
    shape = np.shape(distribution.pmf(first))
    check_batch_shape(shape, name)
    probs = np.reshape(distribution.pmf(values[:, None] if shape else values), (len(values), -1)).T
    if not np.all(np.abs(np.sum(probs, axis=1) - 1.0) < 1e-6):
        raise _no_family(name)
    return wp.Categorical(probs, support=values)


# -- any continuous distribution -----------------------------------------------------------------------


@family
class ScipyContinuous(Predictions):
    """Continuous distributions of a scalar target, evaluated by scipy.stats.

    For those that have no family of their own: ``stats.uniform``, ``stats.weibull_min``,
    ``stats.skewnorm`` and so on, of either infrastructure. Expectations under it are taken by quadrature
    through its quantile function. NumPy only, without gradients.

    Parameters
    ----------
    distribution
        A frozen distribution ``stats.name(...)``, or a random variable of the newer infrastructure. Its
        parameters broadcast to shape ``(n,)``; scalar parameters are a batch of one.

    Attributes
    ----------
    medians
        Medians, ``(n,)``.
    rows
        Index in `distribution` of each prediction, ``(n,)``.

    Examples
    --------
    >>> from scipy import stats
    >>> pred = ScipyContinuous(stats.uniform(loc=[0.0, 1.0], scale=2.0))
    >>> pred.quantile(0.25)
    array([0.5, 1.5])
    """

    distribution: Any
    # Of a frozen distribution, to choose rows by; the newer infrastructure does not list its parameters.
    parameters: tuple[NDArray, ...] | None
    # Number of distributions in `distribution`; None for scalar parameters.
    total: int | None
    medians: Array = derived()
    rows: Array = derived()

    def __init__(self, distribution: Any) -> None:
        labels, parameters, name = None, None, type(distribution).__name__
        if not hasattr(distribution, "logpdf"):
            raise TypeError(f"distribution must be a continuous distribution of scipy.stats, found {name}")
        if hasattr(distribution, "dist"):
            labels, columns = frozen_parameters(distribution)
            name, parameters = str(distribution.dist.name), tuple(columns.values())
        shape = np.shape(distribution.icdf(0.5)) if parameters is None else parameters[0].shape
        check_batch_shape(shape, name)
        n = shape[0] if shape else 1
        self.store(distribution=distribution, parameters=parameters, total=n if shape else None)
        self.store(medians=np.zeros(n), rows=np.arange(n))
        nonempty(self)
        medians = self.quantile(0.5)
        check_rows(
            f"the median of the {name} distribution",
            medians,
            np.isfinite(medians),
            "does not exist",
            "its parameters are out of range: check the model's output",
        )
        self.store(medians=medians, case_index=labels)
        freeze((self.medians, self.rows, self.parameters))

    def mean(self) -> Array:
        """Means, ``(n,)``; infinite or NaN where it does not exist."""
        return self._evaluate("mean", "mean")

    def variance(self) -> Array:
        """Variances, ``(n,)``; infinite or NaN where it does not exist."""
        return self._evaluate("var", "variance")

    def log_prob(self, y: object) -> Array:
        """Log density at `y`."""
        return self._evaluate("logpdf", "logpdf", self.argument(y, "y"))

    def cdf(self, y: object) -> Array:
        """Distribution function at `y`."""
        return self._evaluate("cdf", "cdf", self.argument(y, "y"))

    def quantile(self, u: object) -> Array:
        """Quantiles at levels `u`."""
        return self._evaluate("ppf", "icdf", self.argument(u, "u"))

    def upper_quantile(self, q: object) -> Array:
        """Quantiles at levels ``1 - q``, accurate for tiny `q`."""
        return self._evaluate("isf", "iccdf", self.argument(q, "q"))

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        shape = (size, len(self))
        if self.parameters is None:
            return self.quantile(np.maximum(rng.random(shape), _SMALLEST_LEVEL))
        rows = (column[self.rows] for column in self.parameters)
        return np.asarray(self.distribution.dist.rvs(*rows, size=shape, random_state=rng))

    @quiet
    def _evaluate(self, frozen_name: str, variable_name: str, x: NDArray | None = None) -> NDArray:
        """Call a method of the distribution, by the name that its infrastructure has for it."""
        given = () if x is None else (x,)
        shape = np.broadcast_shapes(*(a.shape for a in given), (len(self),))
        if self.parameters is not None:
            method = getattr(self.distribution.dist, frozen_name)
            values = method(*given, *(column[self.rows] for column in self.parameters))
        else:
            method = getattr(self.distribution, variable_name)
            values = method(*given) if self.total is None else _on_rows(method, x, self.rows, self.total)
        return np.array(np.broadcast_to(np.asarray(values, dtype=np.float64), shape))


def _on_rows(method: Any, x: NDArray | None, rows: NDArray, total: int) -> NDArray:
    """Call a method of a random variable of the newer infrastructure for some of its rows.

    These variables cannot be indexed: the method is called for all rows, as often as a row is repeated.
    """
    if x is None:
        return np.broadcast_to(method(), (total,))[rows]
    x = np.broadcast_to(x, np.broadcast_shapes(x.shape, rows.shape))
    values, left = np.empty(x.shape), np.arange(len(rows))
    while len(left):
        _, first = np.unique(rows[left], return_index=True)
        chosen, left = left[first], np.delete(left, first)
        everywhere = np.full((*x.shape[:-1], total), 0.5)  # a value that every method takes
        everywhere[..., rows[chosen]] = x[..., chosen]
        values[..., chosen] = np.asarray(method(everywhere))[..., rows[chosen]]
    return values


def frozen_parameters(frozen: Any) -> tuple[Labels | None, Columns]:
    """Return the index of a frozen distribution, and its parameters by name, broadcast to ``(n,)``.

    Shape parameters come first, in the order of the distribution, then `loc` and, for continuous
    distributions, `scale`.
    """
    dist = frozen.dist
    names = [name.strip() for name in dist.shapes.split(",")] if dist.shapes else []
    given: dict[str, Any] = {"loc": 0.0} if hasattr(frozen, "pmf") else {"loc": 0.0, "scale": 1.0}
    order = [*names, *given]
    given |= dict(zip(order, frozen.args, strict=False)) | frozen.kwds
    labels, given = common_labels({name: given[name] for name in order})
    values = [x if isinstance(x, (int, float)) else numeric_array(x, name) for name, x in given.items()]
    dtype = np.result_type(*values)  # a plain number takes the precision of the arrays it comes with
    columns = np.broadcast_arrays(
        *(np.asarray(x, dtype if dtype.kind == "f" else np.float64) for x in values)
    )
    check_batch_shape(columns[0].shape, str(dist.name))
    return labels, {name: np.array(x, ndmin=1) for name, x in zip(order, columns, strict=True)}


def check_batch_shape(shape: tuple[int, ...], name: str) -> None:
    """Raise for parameters that broadcast to more than one axis, as ``(n, 1)`` and ``(n,)`` do."""
    if len(shape) > 1:
        raise ValueError(
            f"the parameters of the {name} distribution broadcast to shape {tuple(shape)}; give shape (n,)"
        )
