"""Features in fewer coordinates: those of their principal components, and how much of them is lost.

Differences of expected features are smooth, and a few dozen directions hold all but rounding of them. The
directions come from some of the cases, the outermost among them; then *all* cases are projected, and what
is left of each is measured. Where it is more than rounding, the cases that it is left of add directions of
their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.progress import reporter
from wellcal.expectations.differences import FeatureSource

_DROPPED = 1e-15  # share of the energy in components that are left out
ALLOWED = 3e-14
"""Share of the energy of all cases that may be lost: sums of products change by less than 1e-12 of |h|."""

SAMPLE = 16_384
"""Cases that components are computed from, where features are few."""

_WORK = 1_000_000_000  # multiplications that finding components may take
_FEWEST = 1024
_CALLS = 1e6  # evaluations that could be made in the time that all calls take
_ROUNDS = 4
_ADDED = 256  # cases that add directions, in each round
_STEPS = "features of cases"  # what progress is told of
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

    values: NDArray
    lost: float


def effort(source: FeatureSource) -> float:
    """What making and compressing features takes, in evaluations."""
    size = float(source.size)
    components = min(_cases(source), source.n) * size**2 / 16.0 + 0.1 * size**3
    return _CALLS + components + source.n * (source.each + size**2 / 16.0)


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
        basis = _basis(source)
        for _ in range(_ROUNDS):
            if basis.shape[1] > _ENOUGH * source.size:
                break
            values, left, energy = _projected(source, basis)
            if float(left.sum()) <= ALLOWED * energy:
                return Compressed(values, float(left.sum()) / max(energy, 1e-300))
            basis = _widened(source, basis, left, energy)
    parts = [source.of(cases) for cases in in_chunks(source.n, source.size)]
    return Compressed(parts[0] if len(parts) == 1 else np.concatenate(parts), 0.0)


def _basis(source: FeatureSource) -> NDArray:
    """Orthonormal directions ``(M, r)`` of the features of some cases."""
    count = _cases(source)
    some: NDArray = np.arange(source.n)
    if source.n > count:
        spread = np.linspace(0, source.n - 1, count // 2).astype(int)
        drawn = np.random.default_rng(0).choice(source.n, count // 2, replace=False)
        some = np.unique(np.concatenate([source.extremes()[:count], spread, drawn]))
    features = source.of(some)
    return _directions(features, _DROPPED * float(np.vdot(features, features)))


def _directions(features: NDArray, dropped: float) -> NDArray:
    """Principal directions of rows, but for those that hold no more than `dropped` of their squares."""
    if len(features) >= features.shape[1]:
        values, vectors = linalg.eigh(features.T @ features)
    else:
        values, left = linalg.eigh(features @ features.T)
        vectors = features.T @ left
    kept = np.cumsum(np.maximum(values, 0.0)) > dropped
    found = vectors[:, kept][:, ::-1]
    return found if len(features) >= features.shape[1] else np.linalg.qr(found)[0]


def _projected(source: FeatureSource, basis: NDArray) -> tuple[NDArray, NDArray, float]:
    """Coordinates of all cases, what each loses of its sum of squares, and all squares together."""
    out = np.empty((source.n, basis.shape[1]))
    left = np.empty(source.n)
    energy, told = 0.0, reporter()
    told(_STEPS, 0, source.n)
    for cases in in_chunks(source.n, source.size, within=4 * budget.cache):
        features = source.of(cases)
        np.matmul(features, basis, out=out[cases])
        # Directions are orthonormal: what a case loses is what its coordinates lack.
        squares = np.einsum("nm,nm->n", features, features)
        left[cases] = squares - np.einsum("nm,nm->n", out[cases], out[cases])
        energy += float(squares.sum())
        told(_STEPS, cases.stop, source.n)
    return out, np.maximum(left, 0.0), energy


def _widened(source: FeatureSource, basis: NDArray, left: NDArray, energy: float) -> NDArray:
    """The same directions, and those of what some cases have beside them: the cases that lose most."""
    worst = np.sort(np.argsort(-left, kind="stable")[:_ADDED])
    features = source.of(worst)
    rest = features - (features @ basis) @ basis.T
    return np.linalg.qr(np.concatenate([basis, _directions(rest, 0.1 * ALLOWED * energy)], axis=1))[0]
