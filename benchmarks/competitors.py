"""Who takes part: each turns a case into a function without arguments that computes the unbiased SKCE."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import wellcal as wc
from benchmarks import scalar_loop
from benchmarks.cases import Case, ClassCase, FloatArray, NormalCase
from benchmarks.environment import available_memory, core_count
from wellcal.engines import Tiled

Run = Callable[[], float]


class UnavailableError(Exception):
    """A competitor cannot take part in a case, and why."""


@dataclass(frozen=True)
class Competitor:
    """Name, what it runs on, and how it prepares a case (imports and compilation are not timed)."""

    name: str
    threads: str
    prepare: Callable[[Case], Run]


# -- wellcal ---------------------------------------------------------------------------------


def _wellcal(case: Case, engine: Any) -> Run:
    options: Any = {"engine": engine, "precision": "float64"}

    def run() -> float:
        if isinstance(case, NormalCase):
            mu, sigma, y = case.arrays
            return wc.skce(y, wc.Normal(mu, sigma), kernel=case.kernel, **options).value
        probabilities, labels = case.arrays
        return wc.skce(labels, wc.Categorical(probabilities), **options).value

    return run


# -- NumPy, whole matrices -------------------------------------------------------------------

_MATRICES_ALIVE = 4  # n x n arrays at the peak of the expressions below
_DIFFERENCES = 2**26  # entries of the (rows, n, classes) array of differences: 512 MiB


def full_matrix_h(case: Case) -> FloatArray:
    """The matrix of h, as one would write it down from the paper."""
    return (
        _normal_matrix(*case.arrays)
        if isinstance(case, NormalCase)
        else _class_matrix(*case.arrays, case.scale)
    )


def _normal_matrix(mu: FloatArray, sigma: FloatArray, y: FloatArray) -> FloatArray:
    variance, none = sigma**2, np.zeros_like(sigma)

    def expected(m: FloatArray, v: FloatArray, other_m: FloatArray, other_v: FloatArray) -> FloatArray:
        spread = 1.0 + v[:, None] + other_v[None, :]
        return np.exp(-0.5 * (m[:, None] - other_m[None, :]) ** 2 / spread) / np.sqrt(spread)

    pairing = expected(mu, variance, mu, variance) + expected(y, none, y, none)
    pairing -= expected(mu, variance, y, none)
    pairing -= expected(y, none, mu, variance)
    distance = np.sqrt((mu[:, None] - mu[None, :]) ** 2 + (sigma[:, None] - sigma[None, :]) ** 2)
    return np.exp(-distance) * pairing


def _class_matrix(probabilities: FloatArray, labels: Any, scale: float) -> FloatArray:
    n, classes = probabilities.shape
    distance = np.empty((n, n))
    rows = max(1, _DIFFERENCES // (n * classes))
    for start in range(0, n, rows):
        part = probabilities[start : start + rows, None, :] - probabilities[None, :, :]
        distance[start : start + rows] = 0.5 * np.abs(part, out=part).sum(axis=2)
    residuals = _residuals(probabilities, labels)
    return np.exp(-distance / scale) * (residuals @ residuals.T)


def _residuals(probabilities: FloatArray, labels: Any) -> FloatArray:
    residuals = probabilities.copy()
    residuals[np.arange(len(labels)), labels] -= 1.0
    return residuals


def _numpy(case: Case) -> Run:
    needed, available = _MATRICES_ALIVE * 8 * case.n**2, available_memory()
    if available is not None and needed > 0.8 * available:
        raise UnavailableError(
            f"{_MATRICES_ALIVE} matrices of {case.n:,} x {case.n:,} need {needed / 1e9:.0f} GB, "
            f"of which {available / 1e9:.0f} GB are there"
        )

    def run() -> float:
        h = full_matrix_h(case)
        return float((h.sum() - np.trace(h)) / (case.n * (case.n - 1)))

    return run


# -- C ---------------------------------------------------------------------------------------


def _c(case: Case) -> Run:
    try:
        loop = scalar_loop.load()
    except scalar_loop.CompilationError as error:
        raise UnavailableError(str(error)) from None
    if isinstance(case, NormalCase):
        return lambda: loop.normal_skce(*case.arrays)
    return lambda: loop.class_skce(*case.arrays, case.scale)


# -- PyKeOps ---------------------------------------------------------------------------------


def _keops(case: Case) -> Run:
    try:
        pykeops = importlib.import_module("pykeops")
        pykeops.set_verbose(False)
        lazy = importlib.import_module("pykeops.numpy")
    except Exception as error:  # a broken compiler or cache shows in many ways
        raise UnavailableError(f"PyKeOps cannot be imported: {type(error).__name__}: {error}") from None
    build: Callable[..., Run] = _keops_normals if isinstance(case, NormalCase) else _keops_classes
    run = build(case, lazy.Vi, lazy.Vj)
    try:
        build(case.first(8), lazy.Vi, lazy.Vj)()  # compiles; the formula does not depend on n
    except Exception as error:
        raise UnavailableError(f"PyKeOps cannot compile: {type(error).__name__}: {error}") from None
    return run


def _keops_normals(case: NormalCase, vi: Any, vj: Any) -> Run:
    """KeOps sums over all ordered pairs: the diagonal is taken off again."""

    def run() -> float:
        mu, sigma, y = (array[:, None] for array in case.arrays)
        spread = 1.0 + sigma**2
        i, j = ([v(array) for array in (mu, sigma, y, spread)] for v in (vi, vj))
        both = i[3] + j[3] - 1.0
        pairing = (
            (-0.5 * (i[0] - j[0]) ** 2 / both).exp() * both.rsqrt()
            - (-0.5 * (i[0] - j[2]) ** 2 / i[3]).exp() * i[3].rsqrt()
            - (-0.5 * (i[2] - j[0]) ** 2 / j[3]).exp() * j[3].rsqrt()
            + (-0.5 * (i[2] - j[2]) ** 2).exp()
        )
        distance = ((i[0] - j[0]) ** 2 + (i[1] - j[1]) ** 2).sqrt()
        rows = ((-distance).exp() * pairing).sum(axis=1)
        cross = np.exp(-0.5 * (mu - y) ** 2 / spread) / np.sqrt(spread)
        diagonal = 1.0 / np.sqrt(2.0 * spread - 1.0) - 2.0 * cross + 1.0
        return float((rows - diagonal).sum() / (case.n * (case.n - 1)))

    return run


def _keops_classes(case: ClassCase, vi: Any, vj: Any) -> Run:
    def run() -> float:
        probabilities, labels = case.arrays
        residuals = _residuals(probabilities, labels)
        distance = (vi(probabilities) - vj(probabilities)).abs().sum(-1)
        h = (-0.5 / case.scale * distance).exp() * (vi(residuals) | vj(residuals))
        rows = h.sum(axis=1)[:, 0]
        return float((rows - (residuals**2).sum(axis=1)).sum() / (case.n * (case.n - 1)))

    return run


# -- all -------------------------------------------------------------------------------------

OURS = "wellcal"
COMPETITORS: tuple[Competitor, ...] = (
    Competitor(OURS, str(core_count()), lambda case: _wellcal(case, "tiled")),
    Competitor("wellcal, one thread", "1", lambda case: _wellcal(case, Tiled(threads=1))),
    Competitor("C loop, -O2", "1", _c),
    Competitor("NumPy, full matrix", f"1, BLAS {core_count()}", _numpy),
    Competitor("PyKeOps", os.environ.get("OMP_NUM_THREADS", str(core_count())), _keops),
)


def by_name(name: str) -> Competitor:
    return next(competitor for competitor in COMPETITORS if competitor.name == name)
