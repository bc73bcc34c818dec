"""Distances between predictions, as forms that engines can tile."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import array_api_compat as compat
import numpy as np
from scipy.spatial.distance import cdist

from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    is_numpy,
    is_traced,
    namespace,
    stop_gradient,
    to_numpy,
    widen,
)
from wellcal._arrays.ops import Ops, ops_for
from wellcal.expectations._pairing import Lowering, Notes
from wellcal.expectations.decompose import Rows, components_of
from wellcal.expectations.mmd import mean_discrepancy
from wellcal.expectations.rules import hellinger
from wellcal.expectations.transport import TransportDistance
from wellcal.kernels.metrics import (
    Euclidean,
    Hellinger,
    MaximumMeanDiscrepancy,
    Metric,
    MixtureWasserstein,
    RootCovariance,
    TotalVariation,
    Wasserstein,
)
from wellcal.predictions import (
    Bernoulli,
    Categorical,
    DiagonalNormal,
    Laplace,
    LogNormal,
    Mixture,
    MultivariateNormal,
    Normal,
    Poisson,
    Predictions,
    Quantiles,
    Samples,
)


class Distance(Protocol):
    """A prepared distance: `tile` and `paired` return ``d ** degree``."""

    @property
    def degree(self) -> float:
        """Power of the distance that is returned: squares need no root."""
        ...

    @property
    def width(self) -> int:
        """Elementary evaluations for one pair."""
        ...

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array: ...

    def paired(self, ops: Ops, a: Rows, b: Rows) -> Array: ...


# -- embeddings ------------------------------------------------------------------------------


@dataclass(frozen=True)
class EmbeddingDistance:
    """Squared Euclidean distance (degree 2) or L1 distance (degree 1) of rows "e" ``(n, D)``.

    Differences are taken coordinate by coordinate: expanding the square would lose half the digits
    of a small distance.
    """

    size: int
    degree: float = 2.0

    @property
    def width(self) -> int:
        """About a quarter of a kernel evaluation for each coordinate."""
        return max(1, self.size // 4)

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array:
        if is_numpy(ops.xp) and self.size > 4:
            return cdist(a["e"], b["e"], "sqeuclidean" if self.degree == 2.0 else "cityblock")
        return self._sum(ops, a["e"][:, None, :], b["e"][None, :, :])

    def paired(self, ops: Ops, a: Rows, b: Rows) -> Array:
        return self._sum(ops, a["e"], b["e"])

    def _sum(self, ops: Ops, a: Array, b: Array) -> Array:
        total: Array = None
        for c in range(self.size):
            difference = a[..., c] - b[..., c]
            term = difference**2 if self.degree == 2.0 else ops.abs(difference)
            total = term if total is None else total + term
        return total


def _embedded(features: Array, degree: float = 2.0) -> tuple[Distance, Rows]:
    return EmbeddingDistance(int(features.shape[1]), degree), {"e": features}


def _columns(*arrays: Array) -> Array:
    xp = namespace(*arrays)
    return xp.concat([a[:, None] if a.ndim == 1 else a for a in map(widen, arrays)], axis=1)


def _euclidean(predictions: Predictions) -> tuple[Distance, Rows]:
    if isinstance(predictions, Bernoulli):
        return _embedded(_columns(predictions.probs))
    if isinstance(predictions, Categorical):
        return _embedded(widen(predictions.probs))
    if isinstance(predictions, (Normal, DiagonalNormal, Laplace)):
        return _embedded(_columns(predictions.loc, predictions.scale))
    if isinstance(predictions, Poisson):
        return _embedded(_columns(predictions.rate))
    if isinstance(predictions, Quantiles):
        return _embedded(widen(predictions.values))
    raise _unavailable(Euclidean(), predictions, "MaximumMeanDiscrepancy(kernel)")


def _total_variation(predictions: Predictions) -> tuple[Distance, Rows]:
    if isinstance(predictions, Bernoulli):
        return _embedded(_columns(predictions.probs), 1.0)
    probabilities = _class_probabilities(predictions)
    if probabilities is None:
        raise _unavailable(TotalVariation(), predictions, "Hellinger() or MaximumMeanDiscrepancy(kernel)")
    return _embedded(0.5 * probabilities, 1.0)


def _class_probabilities(predictions: Predictions) -> Array | None:
    """Class probabilities of a finite family, or of a mixture of such."""
    total: Array = None
    for component, weight in components_of(predictions):
        if not isinstance(component, (Bernoulli, Categorical)):
            return None
        part = widen(component.class_probs())
        part = part if weight is None else part * weight[:, None]
        total = part if total is None else total + part
    return total


# -- Hellinger -------------------------------------------------------------------------------


@dataclass(frozen=True)
class HellingerDistance:
    """``H^2 = 1 - BC`` from the logarithm of the Bhattacharyya coefficient, exact for near predictions."""

    kind: str
    degree: float = 2.0
    width: int = 2

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array:
        return self._value(ops, a, b, lambda v: v[:, None, ...], lambda v: v[None, :, ...])

    def paired(self, ops: Ops, a: Rows, b: Rows) -> Array:
        return self._value(ops, a, b, lambda v: v, lambda v: v)

    def _value(self, ops: Ops, a: Rows, b: Rows, left: Any, right: Any) -> Array:
        log_coefficient = hellinger.LOG_COEFFICIENTS[self.kind]
        arguments = [(left(a[name]), right(b[name])) for name in sorted(a)]
        return -ops.expm1(log_coefficient(ops, *arguments))


def _hellinger(predictions: Predictions) -> tuple[Distance, Rows]:
    probabilities = _class_probabilities(predictions)
    if probabilities is not None:
        roots = ops_for(namespace(probabilities)).root(probabilities)
        return _embedded(roots * math.sqrt(0.5))
    if isinstance(predictions, (Normal, DiagonalNormal)):
        rows = {"loc": _columns(predictions.loc), "scale": _columns(predictions.scale)}
        return HellingerDistance("normal"), rows
    if isinstance(predictions, LogNormal):
        return HellingerDistance("normal"), {
            "loc": _columns(predictions.mu),
            "scale": _columns(predictions.sigma),
        }
    if isinstance(predictions, Poisson):
        return HellingerDistance("poisson"), {"rate": widen(predictions.rate)}
    raise _unavailable(Hellinger(), predictions, "MaximumMeanDiscrepancy(kernel)")


# -- Wasserstein -----------------------------------------------------------------------------

_LEVELS = 128  # of the quantile function, where no closed form is known


def _wasserstein(predictions: Predictions, order: int, notes: Notes) -> tuple[Distance, Rows]:
    if isinstance(predictions, Quantiles):
        return _between_quantiles(predictions, order)
    if order == 2:
        closed = _wasserstein_2(predictions)
        if closed is not None:
            return closed
    elif isinstance(predictions, Poisson):
        return _embedded(
            _columns(predictions.rate), 1.0
        )  # one dominates the other: W_1 is the difference of means
    if isinstance(predictions, Samples) and predictions.event_shape == () and predictions.weights is None:
        values = widen(predictions.values)
        ordered = namespace(values).sort(values, axis=1)
        return _embedded(ordered / values.shape[1] ** (1.0 / order), float(order))
    if predictions.event_shape != () or not predictions.supports("quantile"):
        raise _unavailable(Wasserstein(order), predictions, "MaximumMeanDiscrepancy(kernel)")
    return _quantile_distance(predictions, order, notes)


def _wasserstein_2(predictions: Predictions) -> tuple[Distance, Rows] | None:
    if isinstance(predictions, (Normal, DiagonalNormal)):
        return _embedded(_columns(predictions.loc, predictions.scale))
    if isinstance(predictions, Laplace):
        return _embedded(_columns(predictions.loc, math.sqrt(2.0) * widen(predictions.scale)))
    if isinstance(predictions, MultivariateNormal):
        root = matrix_root(widen(predictions.cov))
        return BuresDistance(), {"loc": widen(predictions.loc), "cov": widen(predictions.cov), "root": root}
    return None


def _between_quantiles(predictions: Quantiles, order: int) -> tuple[Distance, Rows]:
    """Distance of the given quantiles, each of which stands for the levels nearest to it."""
    edges = np.concatenate([[0.0], to_numpy(predictions.levels), [1.0]])
    share = np.diff(0.5 * (edges[1:] + edges[:-1]))
    values = widen(predictions.values)
    weights = (share / share.sum()) ** (1.0 / order)
    factor = asarray(weights, xp=namespace(values), device=compat.device(values))
    return _embedded(values * widen(factor)[None, :], float(order))


def _quantile_distance(predictions: Any, order: int, notes: Notes) -> tuple[Distance, Rows]:
    """L2 or L1 distance of quantile functions at levels of equal probability."""
    like = widen(predictions.like)
    if is_traced(like) or getattr(like, "requires_grad", False):
        raise ValueError(
            f"Wasserstein between {type(predictions).__name__} predictions is not differentiable; "
            "take MaximumMeanDiscrepancy(kernel), or detach the predictions"
        )
    notes.add_lowering(
        f"Wasserstein between {type(predictions).__name__}: {_LEVELS} quantiles",
        _quantile_error(predictions, order),
    )
    return _embedded(_quantile_embedding(predictions, order, _LEVELS), float(order))


def _quantile_embedding(predictions: Any, order: int, count: int) -> Array:
    """Quantiles amid `count` intervals of equal probability, scaled so that distances are means."""
    levels = (np.arange(count) + 0.5) / count
    like = widen(predictions.like)
    table = np.broadcast_to(levels[:, None], (count, len(predictions))).copy()
    at = asarray(table, xp=predictions.xp, device=compat.device(like), dtype=like.dtype)
    values = predictions.xp.permute_dims(widen(predictions.quantile(at)), (1, 0))
    return values / count ** (1.0 / order)


def _quantile_error(predictions: Any, order: int) -> float:
    """Largest change of a distance between a few predictions when the levels are halved."""
    probe = predictions[np.unique(np.linspace(0, len(predictions) - 1, 8).astype(int))]
    ops = ops_for(probe.xp)
    values: list[NDArray] = []
    for count in (_LEVELS, _LEVELS // 2):
        form, rows = _embedded(_quantile_embedding(probe, order, count), float(order))
        values.append(to_numpy(form.tile(ops, rows, rows)) ** (1.0 / order))
    return float(np.abs(values[0] - values[1]).max())


@dataclass(frozen=True)
class BuresDistance:
    """Squared 2-Wasserstein distance of multivariate normals (paper, appendix "Normal distributions")."""

    degree: float = 2.0
    width: int = 64

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array:
        left = {name: value[:, None, ...] for name, value in a.items()}
        right = {name: value[None, :, ...] for name, value in b.items()}
        return self._value(ops, left, right)

    def paired(self, ops: Ops, a: Rows, b: Rows) -> Array:
        return self._value(ops, a, b)

    def _value(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """``|m - m'|^2 + min ||R - R' Q||_F^2`` over orthogonal Q, R and R' roots of the covariances.

        The traces and the root of a product in the usual formula cancel for near predictions, and leave
        half of the digits of the distance. The best Q is a constant for derivatives (envelope theorem).
        """
        xp = ops.xp
        left, _, right = xp.linalg.svd(stop_gradient(xp.matmul(b["root"], a["root"])))
        difference = a["root"] - xp.matmul(b["root"], xp.matmul(left, right))
        spread = xp.sum(difference**2, axis=(-2, -1))
        # What rounding leaves of equal covariances has a direction but no meaning.
        size = stop_gradient(xp.linalg.trace(a["cov"]) + xp.linalg.trace(b["cov"]))
        rounding = 32.0 * float(xp.finfo(spread.dtype).eps)
        spread = xp.where(spread > rounding**2 * size, spread, 0.0 * spread)
        return xp.sum((a["loc"] - b["loc"]) ** 2, axis=-1) + spread


def matrix_root(cov: Array) -> Array:
    """Symmetric square root of positive definite matrices ``(n, d, d)``, differentiable once.

    The derivative solves R dR + dR R = dS in the eigenbasis of S, which unlike the derivative of
    the eigenvectors exists where eigenvalues coincide.
    """
    xp = namespace(cov)
    ops = ops_for(xp)
    fixed = stop_gradient(cov)
    eigenvalues, vectors = xp.linalg.eigh(fixed)
    roots = ops.root(ops.maximum(eigenvalues, 0.0 * eigenvalues))
    transposed = xp.matrix_transpose(vectors)
    root = xp.matmul(vectors * roots[:, None, :], transposed)
    if not ops.differentiable:
        return root
    sums = roots[:, :, None] + roots[:, None, :]
    sums = xp.where(sums > 0, sums, xp.ones_like(sums))
    change = xp.matmul(xp.matmul(transposed, cov - fixed), vectors) / sums
    return root + xp.matmul(xp.matmul(vectors, change), transposed)


def _root_covariance(predictions: Predictions) -> tuple[Distance, Rows]:
    if isinstance(predictions, (Normal, DiagonalNormal)):
        return _embedded(_columns(predictions.loc, predictions.scale))
    if not isinstance(predictions, MultivariateNormal):
        raise _unavailable(RootCovariance(), predictions, "MaximumMeanDiscrepancy(kernel)")
    root = matrix_root(widen(predictions.cov))
    flat = namespace(root).reshape(root, (len(predictions), -1))
    return _embedded(_columns(predictions.loc, flat))


def _mixture_wasserstein(
    metric: MixtureWasserstein, predictions: Predictions, notes: Notes
) -> tuple[Distance, Rows]:
    if not isinstance(predictions, Mixture):
        return distance(metric.components, predictions, notes=notes)
    families = {type(c) for c in predictions.components}
    if len(families) > 1:
        names = ", ".join(sorted(f.__name__ for f in families))
        raise ValueError(f"MixtureWasserstein needs components of one family, found {names}")
    rows: Rows = {"w": widen(predictions.weights)}
    inner: Distance | None = None
    for k, component in enumerate(predictions.components):
        inner, part = distance(metric.components, component, notes=notes)
        rows.update({f"{k}.{name}": value for name, value in part.items()})
    assert inner is not None
    return TransportDistance(metric, inner, len(predictions.components)), rows


def _unavailable(metric: Metric, predictions: Predictions, instead: str) -> TypeError:
    return TypeError(
        f"{metric!r} is not available for {type(predictions).__name__} predictions; take {instead}"
    )


def distance(
    metric: Metric,
    predictions: Predictions,
    *,
    expectations: str | Lowering = "auto",
    notes: Notes | None = None,
) -> tuple[Distance, Rows]:
    """Prepare `metric` for a batch: the distance, and the rows it reads."""
    notes = Notes() if notes is None else notes
    if isinstance(metric, Euclidean):
        return _euclidean(predictions)
    if isinstance(metric, TotalVariation):
        return _total_variation(predictions)
    if isinstance(metric, Hellinger):
        return _hellinger(predictions)
    if isinstance(metric, Wasserstein):
        return _wasserstein(predictions, metric.order, notes)
    if isinstance(metric, RootCovariance):
        return _root_covariance(predictions)
    if isinstance(metric, MixtureWasserstein):
        return _mixture_wasserstein(metric, predictions, notes)
    if isinstance(metric, MaximumMeanDiscrepancy):
        return mean_discrepancy(metric.kernel, predictions, expectations, notes)
    raise TypeError(f"unknown metric {metric!r}")
