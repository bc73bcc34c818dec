"""Distances between probabilities and densities: total variation and Hellinger's distance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from wellcal._arrays.namespaces import (
    Array,
    namespace,
    widen,
)
from wellcal._arrays.ops import Ops, ops_for
from wellcal.expectations.bilinear import Cost
from wellcal.expectations.distances import Context, PreparedDistance, embedded, unavailable
from wellcal.expectations.signed_measures import weighted_sum
from wellcal.kernels.metrics import (
    DISTANCES,
    Hellinger,
    TotalVariation,
)
from wellcal.predictions import (
    Bernoulli,
    Categorical,
    DiagonalNormal,
    LogNormal,
    Mixture,
    Normal,
    Poisson,
    Predictions,
)


@DISTANCES.register(TotalVariation, Bernoulli)
def _total_variation_of_bernoulli(
    metric: TotalVariation, predictions: Bernoulli, how: Context
) -> PreparedDistance:
    return embedded(predictions.probs, degree=1.0)


@DISTANCES.register(TotalVariation, Categorical)
@DISTANCES.register(TotalVariation, Mixture)
def _total_variation(metric: TotalVariation, predictions: Predictions, how: Context) -> PreparedDistance:
    probabilities = _class_probabilities(predictions)
    if probabilities is None:
        raise unavailable(metric, predictions)
    return embedded(0.5 * probabilities, degree=1.0)


def _class_probabilities(predictions: Predictions) -> Array | None:
    """Class probabilities of a finite family, or of a mixture of such."""
    if not all(isinstance(family, (Bernoulli, Categorical)) for family in predictions.parts):
        return None
    return weighted_sum(predictions, lambda family: widen(family.class_probs()))


_Pair = tuple[Array, Array]


def _normal_coefficient(ops: Ops, loc: _Pair, scale: _Pair) -> Array:
    """Log Bhattacharyya coefficient of normals with independent coordinates along the last axis.

    With t = s^2 + s'^2 each coordinate gives ``log(1 - (s - s')^2 / t) / 2 - (m - m')^2 / (4 t)``.
    """
    total = scale[0] ** 2 + scale[1] ** 2
    spread = 0.5 * ops.log1p(-((scale[0] - scale[1]) ** 2) / total)
    return ops.xp.sum(spread - 0.25 * (loc[0] - loc[1]) ** 2 / total, axis=-1)


def _poisson_coefficient(ops: Ops, rate: _Pair) -> Array:
    """Return ``-(sqrt(a) - sqrt(b))^2 / 2``, summed over the last axis."""
    return -0.5 * ops.xp.sum((ops.root(rate[0]) - ops.root(rate[1])) ** 2, axis=-1)


class LocationScale(NamedTuple):
    """Rows of normals, ``(n, d)`` each."""

    loc: Array
    scale: Array


@dataclass(frozen=True)
class HellingerDistance:
    """``H^2 = 1 - BC`` from the logarithm of the Bhattacharyya coefficient, exact for near predictions.

    The coefficient takes a pair of arrays for each array ``(n, d)`` of the rows.
    """

    log_coefficient: Callable[..., Array]
    degree: float = 2.0

    @property
    def cost(self) -> Cost:
        """Two logarithms and an exponential."""
        return Cost(2.0, entries=2)

    def __call__(self, ops: Ops, a: tuple[Array, ...], b: tuple[Array, ...]) -> Array:
        """Return squared distances of all pairs of rows."""
        pairs = ((x[..., :, None, :], y[..., None, :, :]) for x, y in zip(a, b, strict=True))
        return -ops.expm1(self.log_coefficient(ops, *pairs))


@DISTANCES.register(Hellinger, Bernoulli)
@DISTANCES.register(Hellinger, Categorical)
@DISTANCES.register(Hellinger, Mixture)
def _hellinger_of_classes(metric: Hellinger, predictions: Predictions, how: Context) -> PreparedDistance:
    probabilities = _class_probabilities(predictions)
    if probabilities is None:
        raise unavailable(metric, predictions)
    return embedded(ops_for(namespace(probabilities)).root(probabilities) * math.sqrt(0.5))


@DISTANCES.register(Hellinger, Normal)
@DISTANCES.register(Hellinger, DiagonalNormal)
def _hellinger_of_normals(
    metric: Hellinger, predictions: Normal | DiagonalNormal, how: Context
) -> PreparedDistance:
    return _between_normals(predictions.loc, predictions.scale)


@DISTANCES.register(Hellinger, LogNormal)
def _hellinger_of_log_normals(metric: Hellinger, predictions: LogNormal, how: Context) -> PreparedDistance:
    return _between_normals(predictions.mu, predictions.sigma)


def _between_normals(loc: Array, scale: Array) -> PreparedDistance:
    rows = LocationScale(*(embedded(parameter).rows for parameter in (loc, scale)))
    return PreparedDistance(HellingerDistance(_normal_coefficient), rows)


@DISTANCES.register(Hellinger, Poisson)
def _hellinger_of_poissons(metric: Hellinger, predictions: Poisson, how: Context) -> PreparedDistance:
    return PreparedDistance(HellingerDistance(_poisson_coefficient), (widen(predictions.rate)[:, None],))
