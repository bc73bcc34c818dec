"""SKCE of a kernel of low rank, for many sets of targets: linear in the number of cases.

Some predictions and targets stand for all. With k_P(P_i, p_a) for J predictions p_a and the matrix A of
k_P between these, ``k_P(P_i, P_j)`` is about ``k_P(P_i, p) A^-1 k_P(p, P_j)`` (Nystroem), and likewise for
the kernel on targets. Both are products of features, and the sum over pairs is the squared length of one
sum over cases, less what cases add with themselves.

Where the SKCE of all pairs would take too long, this one sees what it saw: nearly all of a smooth kernel
is in a few dozen features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

from wellcal._arrays.chunks import budget, entries_for, in_chunks
from wellcal._arrays.memo import on_device
from wellcal._arrays.namespaces import Array, NDArray, concat_rows, device_of, is_numpy, namespace
from wellcal._arrays.special import FEW_CLASSES
from wellcal._arrays.threads import one_blas_thread
from wellcal.hypotests.setup import Setup
from wellcal.kernels.targets import Delta
from wellcal.predictions import Predictions
from wellcal.problem.at_locations import LocationKernel, TensorTerm
from wellcal.problem.locations import Locations, draw_locations

ANCHORS = 24
"""Predictions, and targets, that stand for all: of vectors more targets do, since these fill more room."""

MOST_ANCHORS = 96
"""Targets that stand for all, at most."""

_EACH_COORDINATE = 6  # targets for each coordinate

_LEAST_EIGENVALUE = 1e-6  # relative to the largest: what lies below is rounding, or of no weight


class FeatureSums(NamedTuple):
    """Sums over cases for r sets of targets; those of parts of the cases add up.

    Attributes
    ----------
    of_features
        Sums of products of features of predictions and targets, ``(M, r, D)``.
    own
        What cases add with themselves, ``(r,)``.
    """

    of_features: NDArray
    own: NDArray


@dataclass(frozen=True)
class _SomeTargets:
    """Features of one product of kernels, of both predictions and targets.

    Attributes
    ----------
    of_predictions
        Features of the predictions, ``(n, D)``.
    lengths
        Their squared lengths, ``(n,)``.
    to_features
        From kernel values at the targets of the locations to features, ``(J, M)``.
    mean
        Expected features of the targets, ``(n, M)``.
    """

    term: TensorTerm
    of_predictions: NDArray
    lengths: NDArray
    to_features: NDArray
    mean: NDArray

    @property
    def entries(self) -> float:
        """Numbers of one set beyond its targets: few."""
        return 0.0

    @classmethod
    def of(cls, term: TensorTerm, of_predictions: NDArray) -> _SomeTargets:
        """With the targets of the term's locations."""
        to_features = root(term.at_points())
        return cls(term, of_predictions, _lengths(of_predictions), to_features, term.mean @ to_features)

    def sums(self, targets: NDArray) -> FeatureSums:
        """Sums over cases for sets of targets ``(r, n, ...)``."""
        r, n = targets.shape[:2]
        count, features = self.to_features.shape
        sums = np.zeros((features, r, self.of_predictions.shape[1]))
        own = np.zeros(r)
        with np.errstate(under="ignore"), one_blas_thread():
            size = max(1, budget.cache // (2 * count))
            for sets, cases in product(in_chunks(r, n, within=size), list(in_chunks(n, within=size))):
                column = self.term.columns(targets[sets, cases], cases)
                values = np.stack([column(j) for j in range(count)])
                off = (self.to_features.T @ values.reshape(count, -1)).reshape(features, *values.shape[1:])
                off -= self.mean[cases].T[:, None, :]
                sums[:, sets] += off @ self.of_predictions[cases]
                own[sets] += np.einsum("mrn,mrn->rn", off, off) @ self.lengths[cases]
        return FeatureSums(sums, own)

    def on_device(self, targets: Array) -> Array:
        """Sums over pairs i != j, ``(r,)``, of tensors, for as many sets at a time as there is room for."""
        xp, n = namespace(targets), int(targets.shape[1])
        count, features = self.to_features.shape
        of_predictions, lengths, to_features, mean = (
            on_device(array, targets)
            for array in (self.of_predictions, self.lengths, self.to_features, self.mean)
        )
        found: list[Array] = []
        for sets in in_chunks(targets.shape[0], 2 * n * count, within=entries_for(targets)):
            column = self.term.columns(targets[sets], slice(0, n))
            values = xp.stack([column(j) for j in range(count)])
            off = xp.reshape(to_features.T @ xp.reshape(values, (count, -1)), (features, -1, n))
            off -= mean.T[:, None, :]
            sums = off @ of_predictions
            off *= off
            own = xp.sum(off, axis=0) @ lengths
            found.append(xp.sum(sums * sums, axis=(0, 2)) - own)
        return concat_rows(found)


@dataclass(frozen=True)
class _AllClasses:
    """Features of predictions, and all classes under a kernel that only tells them apart.

    Such a kernel is of full rank, but few of its features are not zero.
    """

    probabilities: NDArray
    of_predictions: NDArray
    lengths: NDArray
    expected: NDArray
    squares: NDArray

    @property
    def entries(self) -> float:
        """Numbers of one set: those of all cases, or of all classes."""
        return max(len(self.probabilities), self.expected.size)

    @classmethod
    def of(cls, probabilities: NDArray, of_predictions: NDArray) -> _AllClasses:
        p = probabilities
        expected, squares = p.T @ of_predictions, np.sum(p**2, axis=1)
        return cls(p, of_predictions, _lengths(of_predictions), expected, squares)

    def sums(self, targets: NDArray) -> FeatureSums:
        """Sums over cases for sets of targets ``(r, n)``."""
        p, rows = self.probabilities, np.arange(len(self.probabilities))
        (n, classes), count = p.shape, len(targets)
        if classes <= FEW_CLASSES:
            found = (targets[:, None, :] == np.arange(classes)[:, None]).reshape(-1, n).astype(np.float64)
        else:
            cells = targets + classes * np.arange(count)[:, None]
            places = cells.ravel(), np.broadcast_to(rows, targets.shape).ravel()
            found = sparse.csr_array((np.ones(targets.size), places), shape=(count * classes, n))
        sums = (found @ self.of_predictions).reshape(count, *self.expected.shape) - self.expected
        own = (1.0 - 2.0 * p[rows, targets] + self.squares) @ self.lengths
        return FeatureSums(np.swapaxes(sums, 0, 1), own)

    def on_device(self, targets: Array) -> Array:
        """Sums over pairs i != j, ``(r,)``, of tensors, one class after the other."""
        xp = namespace(targets)
        p, of_predictions, lengths, expected, squares = (
            on_device(array, targets)
            for array in (self.probabilities, self.of_predictions, self.lengths, self.expected, self.squares)
        )
        n, classes = p.shape
        rows = xp.arange(n, device=device_of(targets))
        found: list[Array] = []
        for sets in in_chunks(targets.shape[0], 2 * n, within=entries_for(targets)):
            labels = targets[sets]
            own = (1.0 - 2.0 * p[rows, labels] + squares) @ lengths
            total: Array = 0.0
            for c in range(classes):
                sums = xp.astype(labels == c, p.dtype) @ of_predictions - expected[c]
                total = total + xp.sum(sums * sums, axis=1)
            found.append(total - own)
        return concat_rows(found)


def low_rank_skce(setup: Setup, locations: Locations | None = None) -> Callable[[Array], Array]:
    """n SKCE_u for sets of targets ``(r, n, ...)``, nearly.

    Parameters
    ----------
    setup
        The case, with a kernel that is a sum of products.
    locations
        Predictions and targets that stand for all, drawn from the predictions of the case. None draws some.
    """
    few = None if locations is not None else ANCHORS  # predictions: a few of them will do in any dimension
    if locations is None:
        locations = draw_locations(setup.predictions, anchors_of(setup.predictions), setup.rng)
    at = setup.at(locations)
    assert at.locations.drawn is not None
    positions = at.locations.drawn[1][:few]
    features = LowRank.of(at, [root(weights[positions]) for weights in weights_at(at, len(positions))])

    def statistic(targets: Array) -> Array:
        if not is_numpy(namespace(targets)):
            return sum(term.on_device(targets) for term in features.terms) / (setup.n_samples - 1)
        sets = in_chunks(len(targets), features.entries, within=budget.cache)
        return np.concatenate([skce_of(features.sums(targets[some]), setup.n_samples) for some in sets])

    return statistic


@dataclass(frozen=True)
class LowRank:
    """Features of a kernel of low rank, of the cases of a batch: sums of these over any cases add up."""

    terms: tuple[_SomeTargets | _AllClasses, ...]

    @classmethod
    def of(cls, at: LocationKernel, roots: Sequence[NDArray]) -> LowRank:
        """From a kernel at locations, and for each term what makes features of k_P at the first of them."""
        some = zip(_tensor_terms(at), weights_at(at, len(roots[0])), roots, strict=True)
        return cls(tuple(_features(term, weights @ own) for term, weights, own in some))

    @property
    def entries(self) -> float:
        """Numbers that the sums of one set of targets take at most."""
        return max(term.entries for term in self.terms)

    def sums(self, targets: NDArray) -> tuple[FeatureSums, ...]:
        """Sums over cases for sets of targets, by term."""
        return tuple(term.sums(targets) for term in self.terms)


def skce_of(sums: Sequence[FeatureSums], n: int) -> NDArray:
    """n SKCE_u ``(r,)`` from sums over all n cases."""
    return np.sum([np.einsum("mrd,mrd->r", of, of) - own for of, own in sums], axis=0) / (n - 1)


def weights_at(at: LocationKernel, count: int) -> list[NDArray]:
    """k_P between cases and the first of the locations, ``(n, count)``, by term."""
    return [term.weights[:, :count] for term in _tensor_terms(at)]


def _tensor_terms(at: LocationKernel) -> list[TensorTerm]:
    return [term for term in at.terms if isinstance(term, TensorTerm)]


def anchors_of(predictions: Predictions) -> int:
    """Targets that stand for all: of d coordinates every direction needs some.

    Examples
    --------
    >>> import wellcal as wc
    >>> [anchors_of(wc.DiagonalNormal(np.zeros((2, d)), 1.0)) for d in (1, 4, 12, 40)]
    [24, 24, 72, 96]
    """
    dimension = int(np.prod(predictions.event_shape))
    return min(max(ANCHORS, _EACH_COORDINATE * dimension), MOST_ANCHORS)


def _features(term: TensorTerm, of_predictions: NDArray) -> _SomeTargets | _AllClasses:
    """Features of targets beside those of predictions."""
    if isinstance(term.kernel, Delta) and term.predictions.kind == "classes":
        probabilities = np.asarray(term.predictions.class_probs(), dtype=np.float64)
        return _AllClasses.of(probabilities, of_predictions)
    return _SomeTargets.of(term, of_predictions)


def _lengths(features: NDArray) -> NDArray:
    """Squared lengths of rows."""
    return np.sum(features**2, axis=1)


def root(matrix: NDArray) -> NDArray:
    """R with ``R R' = matrix^-1`` on the span of its larger eigenvectors."""
    values, vectors = linalg.eigh(0.5 * (matrix + matrix.T))
    some = values > _LEAST_EIGENVALUE * max(float(values[-1]), 1e-300)
    return vectors[:, some] / np.sqrt(values[some])
