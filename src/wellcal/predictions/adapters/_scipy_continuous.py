"""Any continuous scalar distribution of scipy.stats as a family."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import check_rows, numeric_array
from wellcal._arrays.copies import freeze
from wellcal._arrays.namespaces import Array, NDArray
from wellcal._arrays.special import quiet
from wellcal.columns.labels import Labels, common_labels, labels_of
from wellcal.predictions.base import Predictions, nonempty
from wellcal.predictions.fields import derived, family

_SMALLEST_LEVEL = 2.0**-54  # below all positive uniform draws: a level of exactly 0 has an infinite quantile


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
        Which of the distributions in `distribution` each prediction is, ``(n,)``.

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
        if hasattr(distribution, "dist") and hasattr(distribution, "logpdf"):
            parameters = tuple(frozen_parameters(distribution).values())
            shape = parameters[0].shape
        elif hasattr(distribution, "icdf") and hasattr(distribution, "logpdf"):
            parameters = None
            shape = np.shape(distribution.icdf(0.5))
            check_batch_shape(shape, type(distribution).__name__)
        else:
            raise TypeError(
                "distribution must be a frozen continuous distribution of scipy.stats, "
                f"found {type(distribution).__name__}"
            )
        total = shape[0] if shape else None
        n = 1 if total is None else total
        self.store(distribution=distribution, parameters=parameters, total=total)
        self.store(medians=np.zeros(n), rows=np.arange(n))
        nonempty(self)
        medians = self.quantile(0.5)
        check_rows(
            f"the median of the {_name_of(distribution)} distribution",
            medians,
            np.isfinite(medians),
            "does not exist",
            "its parameters are out of range: check the model's output",
        )
        self.store(medians=medians, case_index=frozen_labels(distribution))
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
        """A method of the distribution, which each infrastructure calls by its own name."""
        given = () if x is None else (x,)
        shape = np.broadcast_shapes(*(a.shape for a in given), (len(self),))
        if self.parameters is not None:
            method = getattr(self.distribution.dist, frozen_name)
            found = method(*given, *(column[self.rows] for column in self.parameters))
        else:
            method = getattr(self.distribution, variable_name)
            found = method(*given) if self.total is None else _on_rows(method, x, self.rows, self.total)
        return np.array(np.broadcast_to(np.asarray(found, dtype=np.float64), shape))


def _on_rows(method: Any, x: NDArray | None, rows: NDArray, total: int) -> NDArray:
    """A method of a random variable of the newer infrastructure at some of its rows.

    These variables cannot be indexed, so that the method is evaluated on all rows, as often as the most
    frequent row asks.
    """
    if x is None:
        return np.broadcast_to(method(), (total,))[rows]
    if np.array_equal(rows, np.arange(total)):
        return method(x)
    x = np.broadcast_to(x, np.broadcast_shapes(x.shape, rows.shape))
    found = np.empty(x.shape)
    rank = _occurrence(rows)
    for k in range(int(rank.max(initial=-1)) + 1):
        chosen = np.flatnonzero(rank == k)
        everywhere = np.full((*x.shape[:-1], total), 0.5)  # a value that every method takes
        everywhere[..., rows[chosen]] = x[..., chosen]
        found[..., chosen] = np.asarray(method(everywhere))[..., rows[chosen]]
    return found


def _occurrence(rows: NDArray) -> NDArray:
    """How often each entry has occurred before in `rows`."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    first = np.searchsorted(ordered, ordered, side="left")
    rank = np.empty(len(rows), dtype=int)
    rank[order] = np.arange(len(rows)) - first
    return rank


def frozen_parameters(frozen: Any) -> dict[str, NDArray]:
    """Parameters of a frozen distribution by name, defaults included, broadcast to ``(n,)``.

    Shape parameters come first, in the order of the distribution, then `loc` and, for continuous
    distributions, `scale`.
    """
    dist = frozen.dist
    names = [name.strip() for name in dist.shapes.split(",")] if dist.shapes else []
    given: dict[str, Any] = {"loc": 0.0} if hasattr(frozen, "pmf") else {"loc": 0.0, "scale": 1.0}
    order = [*names, *given]
    given.update(zip(order, frozen.args, strict=False))
    given.update(frozen.kwds)
    _, given = common_labels({name: given[name] for name in order})
    values = [x if isinstance(x, (int, float)) else numeric_array(x, name) for name, x in given.items()]
    dtype = np.result_type(*values)  # a plain number takes the precision of the arrays it comes with
    if dtype.kind != "f":
        dtype = np.dtype(np.float64)
    columns = np.broadcast_arrays(*(np.asarray(x, dtype=dtype) for x in values))
    check_batch_shape(columns[0].shape, _name_of(frozen))
    return {name: np.array(column, ndmin=1) for name, column in zip(order, columns, strict=True)}


def frozen_labels(frozen: Any) -> Labels | None:
    """Labels of the cases, where parameters of a frozen distribution are columns that have an index."""
    given = (*getattr(frozen, "args", ()), *getattr(frozen, "kwds", {}).values())
    return next((labels for labels in map(labels_of, given) if labels is not None), None)


def check_batch_shape(shape: tuple[int, ...], name: str) -> None:
    """Reject parameters that broadcast to more than one axis, as ``(n, 1)`` and ``(n,)`` do."""
    if len(shape) > 1:
        raise ValueError(
            f"the parameters of the {name} distribution broadcast to shape {tuple(shape)}, and a batch has "
            "one axis; give parameters of shape (n,)"
        )


def _name_of(distribution: Any) -> str:
    dist = getattr(distribution, "dist", None)
    return type(distribution).__name__ if dist is None else str(dist.name)
