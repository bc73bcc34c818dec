"""Features in fewer coordinates: those of their principal components, and how much of them is lost.

Differences of expected features are smooth, and a few dozen directions hold all but rounding of them. The
directions come from some of the cases, the outermost among them; then *all* cases are projected, and what
is left of each is measured. Where it is more than rounding, the cases that it is left of add directions of
their own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import linalg

from wellcal._arrays.chunks import budget, entries_for, in_chunks
from wellcal._arrays.namespaces import Array, NDArray, concat_rows, from_numpy, namespace, take_rows, to_numpy
from wellcal._arrays.progress import reporter
from wellcal.expectations.differences import FeatureSource
from wellcal.expectations.gaussian_features import FEATURES_OF_CASES

_DROPPED = 1e-15  # share of the energy in components that are left out
ALLOWED = 3e-14
"""Share of the energy of all cases that may be lost: sums of products change by less than 1e-12 of |h|."""

SAMPLE = 16_384
"""Cases that components are computed from, where features are few."""

_WORK = 1_000_000_000  # multiplications that finding components may take
_FEWEST = 1024
_CALLS = 1e6  # evaluations that could be made in the time that all calls take
_LOOKED_AT = 512  # cases that tell how many components there will be
_ROUNDS = 4
_ADDED = 256  # cases that add directions, in each round
_FEW = 8  # features that stay as they are
_ENOUGH = 0.8  # of the features: a rotation that keeps more is not worth its time


class Compressed(NamedTuple):
    """Features of all cases in few coordinates.

    Attributes
    ----------
    values
        ``(n, r)``.
    lost
        Share of the energy, the sum of squares, that is not in them.
    """

    values: Array
    lost: float


def effort(source: FeatureSource) -> float:
    """What making and compressing features takes, in evaluations."""
    size = float(source.size)
    cases = min(_cases(source), source.n)
    less = min(cases, size)  # the smaller side of a matrix
    components = cases * size * less / 16.0 + 0.1 * less**3
    # Fewer cases than features tell their directions in two rounds.
    projections = size**2 if source.rank is None else 2.0 * size * source.rank
    return _CALLS + components + source.n * (source.each + projections / 16.0)


def with_likely_rank(source: FeatureSource) -> FeatureSource:
    """The same features, with a guess of how many coordinates they will have: so many as some cases have.

    Of cases that fill most of the directions that they could fill, nothing is known.
    """
    rank = rank_of_some(source)
    return replace(source, rank=rank if rank <= _ENOUGH * min(source.n, _LOOKED_AT) else source.size)


def rank_of_some(source: FeatureSource) -> int:
    """How many coordinates some of the cases have: all of them have hardly less."""
    some = np.unique(np.linspace(0, source.n - 1, _LOOKED_AT).astype(int))
    return _directions(source.of(some), _DROPPED).shape[1]


def _cases(source: FeatureSource) -> int:
    """How many cases components are computed from, at most."""
    return min(SAMPLE, max(_FEWEST, _WORK // source.size**2))


def compressed(source: FeatureSource) -> Compressed:
    """The features of all cases, in as few coordinates as hold them to rounding.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 300)[:, None] ** np.arange(30)
    >>> found = compressed(FeatureSource(300, 30, lambda cases: x[cases], 1.0, lambda: np.array([0, 299])))
    >>> found.values.shape[1] < 20, found.lost <= ALLOWED
    (True, True)
    >>> bool(np.abs(found.values @ found.values.T - x @ x.T).max() < 1e-12)
    True
    """
    if source.size > _FEW:
        source, basis = _with_basis(source)
        for _ in range(_ROUNDS):
            if basis.shape[1] > _ENOUGH * source.size:
                break
            values, left, energy = _projected(source, basis)
            lost = float(left.sum())
            if lost <= ALLOWED * energy:
                return Compressed(values, lost / max(energy, 1e-300))
            basis = _widened(source, basis, left, energy)
    within = entries_for(source.of(slice(0, 1)))
    return Compressed(
        concat_rows([source.of(cases) for cases in in_chunks(source.n, source.size, within=within)]), 0.0
    )


def _with_basis(source: FeatureSource) -> tuple[FeatureSource, NDArray]:
    """Orthonormal directions ``(M, r)`` of the features of some cases; of all, if kept then."""
    count = _cases(source)
    if source.n <= count:
        features = source.of(slice(0, source.n))
        return replace(source, of=partial(take_rows, features)), _directions(features, _DROPPED)
    spread = np.linspace(0, source.n - 1, count // 2).astype(int)
    drawn = np.random.default_rng(0).choice(source.n, count // 2, replace=False)
    some = np.unique(np.concatenate([source.extremes()[:count], spread, drawn]))
    return source, _directions(source.of(some), _DROPPED)


def _directions(features: Array, share: float | None, dropped: float = 0.0) -> NDArray:
    """Principal directions of rows, but for those that hold no more than a share of their squares.

    Without a share, those that hold no more than `dropped`. Products are taken where the features are, and
    what is small comes to NumPy.
    """
    tall = features.shape[0] >= features.shape[1]
    gram = to_numpy(features.T @ features if tall else features @ features.T)
    least = dropped if share is None else share * float(np.trace(gram))
    values, vectors = linalg.eigh(gram)
    kept = np.cumsum(np.maximum(values, 0.0)) > least
    found = vectors[:, kept][:, ::-1]
    return found if tall else np.linalg.qr(to_numpy(features).T @ found)[0]


def _projected(source: FeatureSource, basis: NDArray) -> tuple[Array, Array, float]:
    """Coordinates of all cases, what each loses of its sum of squares, and all squares together."""
    if isinstance(source.of(slice(0, 1)), np.ndarray):
        return _projected_in_numpy(source, basis)
    xp, onto = None, None
    out: list[Array] = []
    left: list[Array] = []
    energy: Array = 0.0
    for cases in in_chunks(source.n, source.size, within=entries_for(source.of(slice(0, 1)))):
        features = source.of(cases)
        if xp is None:
            xp, onto = namespace(features), from_numpy(np.ascontiguousarray(basis), features)
        own = features @ onto
        squares = xp.sum(features * features, axis=1)
        out.append(own)
        left.append(xp.clip(squares - xp.sum(own * own, axis=1), min=0.0))
        energy = energy + xp.sum(squares)
    return concat_rows(out), concat_rows(left), float(energy)


def _projected_in_numpy(source: FeatureSource, basis: NDArray) -> tuple[NDArray, NDArray, float]:
    out = np.empty((source.n, basis.shape[1]))
    left = np.empty(source.n)
    energy, told = 0.0, reporter()
    told(FEATURES_OF_CASES, 0, source.n)
    for cases in in_chunks(source.n, source.size, within=4 * budget.cache):
        features = source.of(cases)
        np.matmul(features, basis, out=out[cases])
        # Directions are orthonormal: what a case loses is what its coordinates lack.
        squares = np.einsum("nm,nm->n", features, features)
        left[cases] = squares - np.einsum("nm,nm->n", out[cases], out[cases])
        energy += float(squares.sum())
        told(FEATURES_OF_CASES, cases.stop, source.n)
    return out, np.maximum(left, 0.0), energy


def _widened(source: FeatureSource, basis: NDArray, left: Array, energy: float) -> NDArray:
    """The same directions, and those of what some cases have beside them: the cases that lose most."""
    worst = np.sort(np.argsort(-to_numpy(left), kind="stable")[:_ADDED])
    features = to_numpy(source.of(worst))
    rest = features - (features @ basis) @ basis.T
    added = _directions(rest, None, 0.1 * ALLOWED * energy)
    return np.linalg.qr(np.concatenate([basis, added], axis=1))[0]
