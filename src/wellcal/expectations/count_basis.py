"""Many predictions of counts as sums of a few: distributions that differ in their mean alone.

Probabilities of a Poisson distribution, and of negative binomial ones with a common dispersion, are smooth
functions of the variance-stabilised mean s. They are interpolated by polynomials in s through a few dozen
representatives at Chebyshev points, to rounding: the last coefficients are looked at, and more points are
taken until they vanish. Thousands of predictions then cost as much as their representatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import fft

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.registry import Rules
from wellcal.expectations.continuations import windows
from wellcal.expectations.lattice import Nodes, lattice_of
from wellcal.predictions import NegativeBinomial, Poisson, Predictions
from wellcal.predictions.base import keeps_distribution

_FEWEST = 256  # predictions from which representatives pay
_SHARE = 4  # predictions for each representative, at least
_MOST = 512  # representatives
_LOOKED_AT = 48  # counts
_RESOLVED = 1e-13  # size of the last coefficients, as a probability


class OneParameter(NamedTuple):
    """Predictions that differ in one number s, in which their probabilities are smooth.

    Attributes
    ----------
    scores
        s of the predictions, ``(n,)``.
    shared
        What they have in common.
    at
        Predictions for other s.
    """

    scores: NDArray
    shared: tuple[float, ...]
    at: Callable[[NDArray], Predictions]


ONE_PARAMETER: Rules[Callable[[Any], OneParameter | None]] = Rules(
    "predictions that differ in one number", serves=keeps_distribution
)
"""How predictions of a family depend on one number, where they do."""


@ONE_PARAMETER.register(Poisson)
def _poisson(predictions: Poisson) -> OneParameter:
    def at(s: NDArray) -> Predictions:
        return Poisson(s**2)

    return OneParameter(np.sqrt(np.asarray(predictions.rate)), (), at)


@ONE_PARAMETER.register(NegativeBinomial)
def _negative_binomial(predictions: NegativeBinomial) -> OneParameter | None:
    dispersion = np.asarray(predictions.dispersion)
    if dispersion.min() < dispersion.max():
        return None
    d, root = float(dispersion[0]), float(np.sqrt(dispersion[0]))
    scores = np.arcsinh(root * np.sqrt(np.asarray(predictions.mean()))) / root

    def at(s: NDArray) -> Predictions:
        return NegativeBinomial(np.sinh(root * s) ** 2 / d, np.full(len(s), d))

    return OneParameter(scores, (d,), at)


@dataclass(frozen=True)
class CountBasis:
    """Representatives of a batch.

    Attributes
    ----------
    points
        Their scores, ``(r,)``: Chebyshev points of the second kind.
    nodes
        The lattice on which they live.
    probabilities
        Their probabilities at its nodes, ``(r, G)``.
    """

    points: NDArray
    nodes: Nodes
    probabilities: NDArray

    @property
    def size(self) -> int:
        """Number of representatives."""
        return len(self.points)

    def weights(self, predictions: Predictions) -> NDArray:
        """Weights ``(n, r)`` of the representatives in predictions (barycentric interpolation)."""
        found = one_parameter(predictions)
        assert found is not None
        signs = np.where(np.arange(len(self.points)) % 2, -1.0, 1.0)
        signs[[0, -1]] *= 0.5
        gap = found.scores[:, None] - self.points[None, :]
        exact = gap == 0.0
        terms: NDArray = signs / np.where(exact, 1.0, gap)
        terms /= terms.sum(axis=1, keepdims=True)
        return np.asarray(np.where(exact.any(axis=1, keepdims=True), exact, terms), dtype=np.float64)


def one_parameter(predictions: Predictions) -> OneParameter | None:
    """What one number says of the predictions, or None."""
    rule = ONE_PARAMETER.find(type(predictions))
    return None if rule is None else rule(predictions)


def representatives_of(predictions: Predictions) -> CountBasis | None:
    """Representatives of a batch in NumPy, or None where the predictions are few, or not alike enough."""
    n = len(predictions)
    found = one_parameter(predictions) if n >= _FEWEST else None
    if found is None or not np.isfinite(found.scores).all():
        return None
    low, high = float(found.scores.min()), float(found.scores.max())
    if not low < high:
        return None
    most = min(n // _SHARE, _MOST)
    key = type(predictions), found.shared, low, high
    known = _known.get(key)
    if known is not None and len(known.points) <= most:
        return known
    made = _representatives(found.at, low, high, most)
    if made is not None:
        while len(_known) >= _MOST_KNOWN:
            _known.pop(next(iter(_known)), None)
        _known[key] = made
    return made


_known: dict[tuple[Any, ...], CountBasis] = {}
"""Representatives by all that they depend on: a batch meets itself again as a part of others."""

_MOST_KNOWN = 8


def _representatives(
    at: Callable[[NDArray], Predictions], low: float, high: float, most: int
) -> CountBasis | None:
    """Representatives for s between two numbers, `most` of them at most."""
    size = 16 + int(7.3 * (high - low))  # what a Poisson distribution takes
    while size <= most:
        points = 0.5 * (low + high) + 0.5 * (high - low) * np.cos(np.pi * np.arange(size) / (size - 1))
        points = np.clip(points, low, high)
        points[0], points[-1] = high, low
        batch = at(points)
        low_count, high_count = windows(batch)
        if not np.isfinite(high_count).all():
            return None
        if _resolved(_around_some_counts(batch, float(low_count.min()), float(high_count.max()))):
            nodes = lattice_of([batch])
            if nodes is None:
                return None
            return CountBasis(points, nodes, np.asarray(nodes.lattice.probabilities(batch, nodes.blocks[0])))
        size += size // 5
    return None


def _around_some_counts(predictions: Predictions, lowest: float, highest: float) -> NDArray:
    """Masses ``(n, m)`` of counts here and there, each with those that it stands for.

    Together they are as large as those of all counts. Looking at these showed nothing more: what is narrow
    takes fewer points than there are to begin with, and what is wide is seen by counts that are far apart.
    """
    spaced: NDArray = np.geomspace(1.0, highest - lowest + 2.0, _LOOKED_AT)
    counts = lowest + np.unique(np.rint(spaced) - 1.0)
    with np.errstate(all="ignore"):
        found = predictions.log_prob(np.repeat(counts[:, None], len(predictions), axis=1))
        return np.exp(np.asarray(found)).T * np.gradient(counts)


def _resolved(masses: NDArray) -> bool:
    """Whether the last coefficients of probabilities at Chebyshev points, ``(r, G)``, vanish."""
    coefficients: NDArray = np.asarray(cast("Any", fft.dct(masses, type=1, axis=0)))
    last = coefficients[-3:] / (len(masses) - 1)
    return float(np.abs(last).sum(axis=1).max()) <= _RESOLVED
