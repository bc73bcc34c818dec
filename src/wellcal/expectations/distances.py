"""Distances between predictions, as forms that engines can tile: what each metric is for each family."""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from wellcal._arrays.compiled import l1_distances
from wellcal._arrays.derivatives import right_derivatives
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    device_of,
    is_numpy,
    is_torch,
    is_traced,
    namespace,
    to_numpy,
    widen,
)
from wellcal._arrays.ops import Ops
from wellcal._arrays.rows import Rows, slice_rows
from wellcal.expectations.bilinear import Cost, Distance
from wellcal.expectations.bures import BuresDistance, NormalRows, matrix_root
from wellcal.expectations.expansion import Notes
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.mmd import mean_discrepancy
from wellcal.expectations.signed_measures import coordinate_lines
from wellcal.expectations.transport import TransportDistance, TransportRows
from wellcal.kernels.metrics import (
    DISTANCES,
    Euclidean,
    MaximumMeanDiscrepancy,
    Metric,
    MixtureWasserstein,
    RootCovariance,
    UnavailableError,
    Wasserstein,
)
from wellcal.predictions import (
    Bernoulli,
    Categorical,
    DiagonalNormal,
    Laplace,
    Mixture,
    MultivariateNormal,
    Normal,
    Poisson,
    Predictions,
    Quantiles,
    Samples,
)
from wellcal.predictions.batches import concatenate, in_numpy


class PreparedDistance(NamedTuple):
    """A distance, and the rows of a batch that it reads."""

    form: Distance
    rows: Rows


class Context(NamedTuple):
    """What a rule of a distance may use, and where it says what it did."""

    expectations: str | Lowering
    notes: Notes


IN_NUMPY = 4
"""Coordinates up to which NumPy adds up differences as quickly as SciPy."""

_SMALL = 4096  # pairs, up to which the fewest calls are the quickest
_FEW_CASES = 300  # whose distances take less time than looking for columns that repeat others
_FEW_DIFFERENCES = 1500  # of coordinates in a batch, which take less time than a call of SciPy


@dataclass(frozen=True)
class EmbeddingDistance:
    """Squared Euclidean distance (degree 2) or L1 distance (degree 1) of rows ``(n, D)``.

    Differences are taken coordinate by coordinate: expanding the square would lose half the digits
    of a small distance.

    Attributes
    ----------
    size, degree
        Number of coordinates, and the power of the distance that is returned.
    """

    size: int
    degree: float = 2.0

    @property
    def cost(self) -> Cost:
        """About a quarter of a kernel evaluation for each coordinate."""
        width = max(1, self.size // 4)
        return Cost(width, width)

    def __call__(self, ops: Ops, a: Array, b: Array) -> Array:
        """Return distances of all pairs of rows, raised to the degree."""
        if is_numpy(ops.xp):
            if self.size > IN_NUMPY:
                return self._by_scipy(a, b)
            if a.ndim == 2 and a.shape[0] * b.shape[0] > _SMALL:
                return self._in_place(a, b)
        elif self.size > IN_NUMPY and is_torch(ops.xp) and not (a.requires_grad or b.requires_grad):
            return tensor_distances(a, b, self.degree)
        return self._sum(ops, a[..., :, None, :], b[..., None, :, :])

    def _by_scipy(self, a: NDArray, b: NDArray) -> NDArray:
        """Return distances by a call for each batch, or by differences where batches are small."""
        name = "sqeuclidean" if self.degree == 2.0 else "cityblock"
        if a.ndim == 2:
            return l1_distances(a, b) if self.degree == 1.0 else cdist(a, b, name).astype(a.dtype, copy=False)
        if a.shape[1] * b.shape[1] * self.size <= _FEW_DIFFERENCES:
            return self._added(a[:, :, None, :] - b[:, None, :, :])
        count = max(len(a), len(b))
        values: NDArray = np.empty((count, a.shape[1], b.shape[1]))
        for r, out in enumerate(values):
            cdist(a[r % len(a)], b[r % len(b)], name, out=out)
        return values

    def _added(self, difference: NDArray) -> NDArray:
        """The sum over coordinates, which are the last axis."""
        if self.degree == 2.0:
            return np.einsum("...c,...c->...", difference, difference)
        return np.abs(difference, out=difference).sum(axis=-1)

    def _in_place(self, a: NDArray, b: NDArray) -> NDArray:
        """The same for few coordinates in NumPy, with one array beside the result."""
        total = self._raised(np.subtract.outer(a[:, 0], b[:, 0]))
        if self.size > 1:
            other = np.empty_like(total)
            for c in range(1, self.size):
                total += self._raised(np.subtract.outer(a[:, c], b[:, c], out=other))
        return total

    def _raised(self, difference: NDArray) -> NDArray:
        if self.degree == 2.0:
            return np.multiply(difference, difference, out=difference)
        return np.abs(difference, out=difference)

    def _sum(self, ops: Ops, a: Array, b: Array) -> Array:
        total: Array = None
        for c in range(self.size):
            difference = a[..., c] - b[..., c]
            term = difference**2 if self.degree == 2.0 else ops.abs(difference)
            total = term if total is None else total + term
        return total


def tensor_distances(a: Array, b: Array, degree: float) -> Array:
    """``sum_c |a_ic - b_jc|^degree`` of tensors without gradients, all coordinates in one call.

    Examples
    --------
    >>> import torch
    >>> tensor_distances(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]), 2.0)
    tensor([[25.]])
    """
    cdist_of_tensors = sys.modules["torch"].cdist
    if degree == 1.0:
        return cdist_of_tensors(a, b, p=1.0)
    # Expanding the square would lose half the digits of a small distance.
    return cdist_of_tensors(a, b, compute_mode="donot_use_mm_for_euclid_dist").square_()


def embedded(*columns: Array, degree: float = 2.0) -> PreparedDistance:
    """Distance between points: columns ``(n,)`` or ``(n, D)`` side by side, L1 where the degree is 1."""
    xp = namespace(*columns)
    wide = [a[:, None] if a.ndim == 1 else a for a in map(widen, columns)]
    points = wide[0] if len(wide) == 1 else xp.concat(wide, axis=1)
    return PreparedDistance(EmbeddingDistance(int(points.shape[1]), degree), points)


def without_repetition(form: Distance, points: Rows) -> PreparedDistance:
    """The same distance of points in NumPy from fewer columns, where some say nothing new.

    A column that is the same for all cases adds nothing to any distance, as one standard deviation for all
    of them does; columns that repeat the one before, as that of an isotropic normal in each coordinate, count
    once, with a weight.

    Examples
    --------
    >>> loc = np.arange(1000.0)
    >>> points = np.stack([loc, np.sqrt(loc), np.sqrt(loc), np.ones(1000)], axis=1)
    >>> form, fewer = without_repetition(EmbeddingDistance(4, degree=1.0), points)
    >>> form.size, fewer[4]
    (2, array([4., 4.]))
    """
    same = PreparedDistance(form, points)
    if not isinstance(form, EmbeddingDistance) or type(points) is not np.ndarray:
        return same
    if form.size == 1 or len(points) < _FEW_CASES:
        return same
    one = points[0]
    told, new = one == points[-1], np.append(True, one[1:] != one[:-1])
    if new.all() and not told.any():
        return same  # as a rule, and two cases show it
    kept, times = points, np.ones(1)
    if told.any():
        np.logical_not(told, out=told)
        if not (points[:, ~told] == one[~told]).all():
            told = (points != one).any(axis=0)
        kept = points[:, told]
        new = np.append(True, kept[0, 1:] != kept[0, :-1])
    if not new.all():
        new[1:] = (kept[:, 1:] != kept[:, :-1]).any(axis=0)
        times = np.diff(np.append(new.nonzero()[0], len(new)))
        kept = kept[:, new]
    size = int(kept.shape[1])
    if size in (0, form.size):
        return same
    if times.max() > 1:
        kept = kept * times ** (1.0 / form.degree)
    return PreparedDistance(replace(form, size=size), kept)


def unavailable(metric: Metric, predictions: Predictions) -> UnavailableError:
    """The error of a metric that says nothing about a family."""
    return UnavailableError(
        f"{metric!r} is not available for {type(predictions).__name__} predictions; take {metric.instead}"
    )


def distance(
    metric: Metric,
    predictions: Predictions,
    *,
    expectations: str | Lowering = "auto",
    notes: Notes | None = None,
) -> PreparedDistance:
    """Prepare `metric` for a batch: the distance, and the rows it reads."""
    rule = DISTANCES.found[type(metric), type(predictions)]
    if rule is None:
        raise unavailable(metric, predictions)
    return rule(metric, predictions, Context(expectations, Notes() if notes is None else notes))


# -- parameters ------------------------------------------------------------------------------


@DISTANCES.register(Euclidean, Bernoulli)
@DISTANCES.register(Euclidean, Categorical)
def _of_probabilities(
    metric: Euclidean, predictions: Bernoulli | Categorical, how: Context
) -> PreparedDistance:
    return embedded(predictions.probs)


@DISTANCES.register(Euclidean, Normal)
@DISTANCES.register(Euclidean, DiagonalNormal)
@DISTANCES.register(Euclidean, Laplace)
@DISTANCES.register(RootCovariance, Normal)
@DISTANCES.register(RootCovariance, DiagonalNormal)
def _of_location_and_scale(
    metric: Metric, predictions: Normal | DiagonalNormal | Laplace, how: Context
) -> PreparedDistance:
    return embedded(predictions.loc, predictions.scale)


@DISTANCES.register(Euclidean, Poisson)
def _of_rates(metric: Euclidean, predictions: Poisson, how: Context) -> PreparedDistance:
    return embedded(predictions.rate)


@DISTANCES.register(Euclidean, Quantiles)
def _of_values(metric: Euclidean, predictions: Quantiles, how: Context) -> PreparedDistance:
    return embedded(predictions.values)


@DISTANCES.register(RootCovariance, MultivariateNormal)
def _of_root_covariance(
    metric: RootCovariance, predictions: MultivariateNormal, how: Context
) -> PreparedDistance:
    root = matrix_root(widen(predictions.cov))
    return embedded(predictions.loc, namespace(root).reshape(root, (len(predictions), -1)))


# -- Wasserstein -----------------------------------------------------------------------------

_LEVELS = 128  # of the quantile function, where no closed form is known


@DISTANCES.register(Wasserstein, Predictions)
def _wasserstein(metric: Wasserstein, predictions: Predictions, how: Context) -> PreparedDistance:
    if predictions.event_shape != () or not predictions.supports("quantile"):
        raise unavailable(metric, predictions)
    return _quantile_distance(predictions, metric.order, how)


@DISTANCES.register(Wasserstein, Normal)
@DISTANCES.register(Wasserstein, DiagonalNormal)
def _wasserstein_of_normals(
    metric: Wasserstein, predictions: Normal | DiagonalNormal, how: Context
) -> PreparedDistance:
    if metric.order != 2:
        return _wasserstein(metric, predictions, how)
    if isinstance(predictions, DiagonalNormal) and isinstance(predictions.loc, np.ndarray):
        return embedded(coordinate_lines(predictions).parameters.T)
    return embedded(predictions.loc, predictions.scale)


@DISTANCES.register(Wasserstein, Laplace)
def _wasserstein_of_laplace(metric: Wasserstein, predictions: Laplace, how: Context) -> PreparedDistance:
    if metric.order == 2:
        return embedded(predictions.loc, math.sqrt(2.0) * widen(predictions.scale))
    return _wasserstein(metric, predictions, how)


@DISTANCES.register(Wasserstein, MultivariateNormal)
def _wasserstein_of_full_normals(
    metric: Wasserstein, predictions: MultivariateNormal, how: Context
) -> PreparedDistance:
    if metric.order == 1:
        raise unavailable(metric, predictions)
    cov = widen(predictions.cov)
    # The best rotation between two roots moves with them, which a second derivative would see.
    root = matrix_root(right_derivatives(cov, 1, "full covariances under the Wasserstein metric"))
    return PreparedDistance(BuresDistance(), NormalRows(widen(predictions.loc), cov, root))


@DISTANCES.register(Wasserstein, Poisson)
def _wasserstein_of_poissons(metric: Wasserstein, predictions: Poisson, how: Context) -> PreparedDistance:
    if metric.order == 1:  # one dominates the other: the distance is the difference of means
        return embedded(predictions.rate, degree=1.0)
    return _wasserstein(metric, predictions, how)


@DISTANCES.register(Wasserstein, Samples)
def _wasserstein_of_samples(metric: Wasserstein, predictions: Samples, how: Context) -> PreparedDistance:
    if predictions.event_shape != () or predictions.weights is not None:
        return _wasserstein(metric, predictions, how)
    values, order = widen(predictions.values), metric.order
    ordered = namespace(values).sort(values, axis=1)
    return embedded(ordered / values.shape[1] ** (1.0 / order), degree=float(order))


@DISTANCES.register(Wasserstein, Quantiles)
def _between_quantiles(metric: Wasserstein, predictions: Quantiles, how: Context) -> PreparedDistance:
    """Distance of the given quantiles, each of which stands for the levels nearest to it."""
    edges = np.concatenate([[0.0], to_numpy(predictions.levels), [1.0]])
    share = np.diff(0.5 * (edges[1:] + edges[:-1]))
    values = widen(predictions.values)
    weights = (share / share.sum()) ** (1.0 / metric.order)
    factor = asarray(weights, xp=namespace(values), device=device_of(values))
    return embedded(values * widen(factor)[None, :], degree=float(metric.order))


def _quantile_distance(predictions: Predictions, order: int, how: Context) -> PreparedDistance:
    """L2 or L1 distance of quantile functions at levels of equal probability."""
    like = widen(predictions.like)
    if is_traced(like) or getattr(like, "requires_grad", False):
        raise ValueError(
            f"Wasserstein between {type(predictions).__name__} predictions is not differentiable; "
            "take MaximumMeanDiscrepancy(kernel), or detach the predictions"
        )
    how.notes.add_lowering(
        f"Wasserstein between {type(predictions).__name__}: {_LEVELS} quantiles",
        _quantile_error(predictions, order),
    )
    return embedded(_quantile_embedding(predictions, order, _LEVELS), degree=float(order))


def _quantile_embedding(predictions: Predictions, order: int, count: int) -> Array:
    """Quantiles at the middle of `count` intervals of equal probability; distances of these are means."""
    levels = (np.arange(count) + 0.5) / count
    like = widen(predictions.like)
    table = np.broadcast_to(levels[:, None], (count, len(predictions))).copy()
    at = asarray(table, xp=predictions.xp, device=device_of(like), dtype=like.dtype)
    values = predictions.xp.permute_dims(widen(predictions.quantile(at)), (1, 0))
    return values / count ** (1.0 / order)


_LOOKED_AT = 16  # predictions: so many of those that change most, and as many spread over the batch


def _quantile_error(predictions: Predictions, order: int) -> float:
    """Error of a distance, from its change as levels are halved once and twice.

    Distances are looked at between predictions that are hardest, whose own spread about the median changes
    most. Where tails are heavy the changes fall slowly, and what is left out is a multiple of the last.
    """
    batch = in_numpy(predictions)
    counts = (_LEVELS, _LEVELS // 2, _LEVELS // 4)
    tables = [
        np.asarray(_quantile_embedding(batch, order, count)) * count ** (1.0 / order) for count in counts
    ]
    centre = tables[0][:, _LEVELS // 2, None]
    spread = [np.mean(np.abs(table - centre) ** order, axis=1) ** (1.0 / order) for table in tables[:2]]
    hardest = np.argsort(-np.abs(spread[0] - spread[1]), kind="stable")[:_LOOKED_AT]
    others = np.linspace(0, len(batch) - 1, _LOOKED_AT).astype(int)
    some = np.unique(np.concatenate([hardest, others]))
    kind = "sqeuclidean" if order == 2 else "cityblock"
    found = [
        (cdist(table[some], table[some], kind) / count) ** (1.0 / order)
        for table, count in zip(tables, counts, strict=True)
    ]
    last, before = (np.abs(fine - coarse) for fine, coarse in itertools.pairwise(found))
    ratio = np.clip(last / np.where(before > 0.0, before, np.inf), 0.5, _SLOWEST)
    return float((last * ratio / (1.0 - ratio)).max())


_SLOWEST = 0.95  # of the ratios between changes: slower ones hardly differ from infinite distances


# -- mixtures, and all families ----------------------------------------------------------------


@DISTANCES.register(MixtureWasserstein, Predictions)
def _components_distance(
    metric: MixtureWasserstein, predictions: Predictions, how: Context
) -> PreparedDistance:
    return distance(metric.components, predictions, notes=how.notes)


@DISTANCES.register(MixtureWasserstein, Mixture)
def _mixture_wasserstein(metric: MixtureWasserstein, predictions: Mixture, how: Context) -> PreparedDistance:
    families = {type(c) for c in predictions.components}
    if len(families) > 1:
        names = ", ".join(sorted(f.__name__ for f in families))
        raise ValueError(f"MixtureWasserstein needs components of one family, found {names}")
    count, n = len(predictions.components), len(predictions)
    names = [f"component {k}" for k in range(count)]
    # Together, so that rows of different components belong to one form.
    form, rows = distance(
        metric.components, concatenate(predictions.components, names, "components"), notes=how.notes
    )
    parts = tuple(slice_rows(rows, slice(k * n, (k + 1) * n)) for k in range(count))
    return PreparedDistance(
        TransportDistance(metric, form, count), TransportRows(widen(predictions.weights), parts)
    )


@DISTANCES.register(MaximumMeanDiscrepancy, Predictions)
def _mean_discrepancy(
    metric: MaximumMeanDiscrepancy, predictions: Predictions, how: Context
) -> PreparedDistance:
    return PreparedDistance(*mean_discrepancy(metric.kernel, predictions, how.expectations, how.notes))
