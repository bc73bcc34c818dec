"""Reported errors of numerical expectations against the true ones, on batches of unlike predictions.

The oracle integrates densities of scipy.stats times the kernel over panels around each point, with panels
that shrink towards places where a density is not smooth. It knows no quantile function and no node of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wellcal as wc
from wellcal import kernels as k
from wellcal.expectations.adaptive_quadrature import FOR_FEATURES, FOR_PAIRS, choose
from wellcal.expectations.signed_measures import components_of

Profile = Callable[[Any], Any]
ONE = k.Callable(lambda P, Q: np.ones((len(P), len(Q))), vectorized=True)
TOLERANCE = wc.Lowering().tolerance

NODES = 14
X, W = (0.5 * (t + s) for t, s in zip(np.polynomial.legendre.leggauss(NODES), (1.0, 0.0), strict=True))
TINY = 1e-13  # of a length scale: nearer to a place where a density is not smooth, the kernel is constant


@dataclass(frozen=True)
class Piece:
    """A part of a distribution: below `upper`, and with the line turned round where `mirrored`."""

    exact: Any
    rough: tuple[float, ...]  # where its density is not smooth, or may be narrow
    upper: float = np.inf
    mirrored: bool = False


@dataclass(frozen=True)
class Batch:
    """Predictions, and the same as distributions of scipy.stats."""

    predictions: Any
    exact: list[list[Piece]]


def expectation_at(pieces: list[Piece], kernel: KernelCase, y: float) -> float:
    """``E k(Z, y)``."""
    return sum(_of_piece(piece, kernel, 1.0 - y if piece.mirrored else y) for piece in pieces)


def _of_piece(piece: Piece, kernel: KernelCase, y: float) -> float:
    d, scale = piece.exact, kernel.scale
    low, high = y - kernel.reach * scale, min(y + kernel.reach * scale, piece.upper)
    ends = [y + scale * np.arange(-2.0 * kernel.reach, 2.0 * kernel.reach + 1.0) / 2.0]
    gaps = np.geomspace(TINY * scale, 2.0 * kernel.reach * scale, 160)
    total = 0.0
    for s in piece.rough:
        ends += [s + gaps, s - gaps]
        if low <= s <= high:
            near = TINY * scale
            total += (d.cdf(s + near) - d.cdf(s - near)) * float(kernel.profile(abs(s - y)))
    found = np.unique(np.clip(np.concatenate(ends), low, high))
    left, width = found[:-1, None], np.diff(found)[:, None]
    keep = np.ones(len(left), dtype=bool)
    for s in piece.rough:
        keep &= ~((found[:-1] >= s - gaps[0]) & (found[1:] <= s + gaps[0]))
    x = (left + width * X)[keep]
    return total + float((d.pdf(x) * kernel.profile(np.abs(x - y)) * (width * W)[keep]).sum())


@dataclass(frozen=True)
class KernelCase:
    """A kernel, its profile, and how far it reaches in length scales."""

    kernel: k.Kernel
    profile: Profile
    scale: float
    reach: float


def gaussian(scale: float) -> KernelCase:
    return KernelCase(k.Gaussian(scale), lambda r: np.exp(-0.5 * (r / scale) ** 2), scale, 9.0)


def matern(scale: float) -> KernelCase:
    def profile(r: Any) -> Any:
        s = 3.0**0.5 * r / scale
        return (1.0 + s) * np.exp(-s)

    return KernelCase(k.Matern(1.5, scale), profile, scale, 24.0)


# -- batches -----------------------------------------------------------------------------------------------


def gammas(shape: np.ndarray, scale: np.ndarray) -> Batch:
    rows = [stats.gamma(a, scale=s) for a, s in zip(shape, scale, strict=True)]
    return Batch(wc.Gamma(shape, scale), [[Piece(d, (0.0,))] for d in rows])


def betas(a: np.ndarray, b: np.ndarray) -> Batch:
    """Near 1 densities are singular too: that half is integrated from the other end."""
    rows = [
        [Piece(stats.beta(p, q), (0.0,), 0.5), Piece(stats.beta(q, p), (0.0,), 0.5, mirrored=True)]
        for p, q in zip(a, b, strict=True)
    ]
    return Batch(wc.Beta(a, b), rows)


def students(df: np.ndarray, loc: np.ndarray, scale: np.ndarray) -> Batch:
    rows = [stats.t(*p) for p in zip(df, loc, scale, strict=True)]
    return Batch(
        wc.StudentT(df, loc, scale), [[Piece(d, (float(m),))] for d, m in zip(rows, loc, strict=True)]
    )


def log_normals(mu: np.ndarray, sigma: np.ndarray) -> Batch:
    rows = [stats.lognorm(s, scale=np.exp(m)) for m, s in zip(mu, sigma, strict=True)]
    return Batch(wc.LogNormal(mu, sigma), [[Piece(d, (0.0,))] for d in rows])


def powers(loc: np.ndarray, scale: np.ndarray, shape: np.ndarray) -> Batch:
    rows = [stats.gennorm(b, m, s) for m, s, b in zip(loc, scale, shape, strict=True)]
    return Batch(
        wc.PowerExponential(loc, scale, shape),
        [[Piece(d, (float(m),))] for d, m in zip(rows, loc, strict=True)],
    )


def weibulls(shape: np.ndarray, scale: np.ndarray) -> Batch:
    rows = [stats.weibull_min(c, scale=s) for c, s in zip(shape, scale, strict=True)]
    return Batch(wc.as_predictions(stats.weibull_min(shape, scale=scale)), [[Piece(d, (0.0,))] for d in rows])


def normals(loc: np.ndarray, scale: np.ndarray) -> Batch:
    """Lowered by kernels without a closed form."""
    rows = [stats.norm(*p) for p in zip(loc, scale, strict=True)]
    return Batch(wc.Normal(loc, scale), [[Piece(d, (float(m),))] for d, m in zip(rows, loc, strict=True)])


def laplaces(loc: np.ndarray, scale: np.ndarray) -> Batch:
    rows = [stats.laplace(*p) for p in zip(loc, scale, strict=True)]
    return Batch(wc.Laplace(loc, scale), [[Piece(d, (float(m),))] for d, m in zip(rows, loc, strict=True)])


def unlike(rng: np.random.Generator, n: int, spread: float) -> np.ndarray:
    return np.exp(spread * rng.normal(size=n))


FAMILIES: dict[str, Callable[[np.random.Generator, int], Batch]] = {
    "Gamma": lambda rng, n: gammas(unlike(rng, n, 1.5), unlike(rng, n, 1.5)),
    "Beta": lambda rng, n: betas(unlike(rng, n, 1.5), unlike(rng, n, 1.5)),
    "StudentT": lambda rng, n: students(0.7 + unlike(rng, n, 1.0), rng.normal(size=n), unlike(rng, n, 1.5)),
    "LogNormal": lambda rng, n: log_normals(rng.normal(size=n), 0.1 + 0.8 * unlike(rng, n, 0.5)),
    "PowerExponential": lambda rng, n: powers(
        rng.normal(size=n), unlike(rng, n, 1.5), rng.uniform(0.3, 6.0, n)
    ),
    "Weibull": lambda rng, n: weibulls(rng.uniform(0.3, 4.0, n), unlike(rng, n, 1.5)),
}
LOWERED_BY_MATERN = {
    **FAMILIES,
    "Normal": lambda rng, n: normals(rng.normal(size=n), unlike(rng, n, 1.5)),
    "Laplace": lambda rng, n: laplaces(rng.normal(size=n), unlike(rng, n, 1.5)),
}


# -- what is held ------------------------------------------------------------------------------------------


def errors_of(batch: Batch, case: KernelCase, rng: np.random.Generator) -> tuple[float, float]:
    """The reported error, and the largest true one: at quantiles of unlike rows, at and between atoms."""
    predictions = batch.predictions
    n = len(predictions)
    _, unlike_rows = np.unique(predictions.interquartile_range(), return_index=True)
    levels = np.array([0.01, 0.2, 0.5, 0.77, 0.97])
    own = [[float(row[0].exact.ppf(u)) for u in levels] for row in batch.exact]
    ((family, _),) = components_of(predictions)
    effort = FOR_FEATURES if isinstance(case.kernel, k.Gaussian) else FOR_PAIRS
    for rows, atoms in choose(family, case.kernel, wc.Lowering(), 64, effort).parts:
        index = np.arange(n) if rows is None else rows
        for i, x, w in zip(index, np.asarray(atoms.values), np.asarray(atoms.weights), strict=True):
            far = np.abs(x[:-1] - x[1:]) * np.minimum(w[:-1], w[1:])  # heavy neighbours that are far apart
            chosen = {int(np.argmax(w)), int(np.argmax(far)), len(x) // 2, len(x) // 3}
            own[i] += [float(x[c]) for c in chosen] + [
                float(x[c] + x[c + 1]) / 2 for c in chosen if c + 1 < len(x)
            ]
    points = np.concatenate([np.asarray(row) for row in own])
    start = np.cumsum([0, *(len(row) for row in own)])
    found = wc.pairing(case.kernel, predictions, points)
    worst = 0.0
    for i in unlike_rows:
        for c in range(start[i], start[i + 1]):
            worst = max(worst, abs(found[i, c] - expectation_at(batch.exact[i], case, points[c])))
    y = predictions.sample(rng=int(rng.integers(1000)))
    reported = wc.skce(y, predictions, kernel=ONE @ case.kernel).provenance["expectation_error"]
    return reported, worst


def test_oracle_agrees_with_closed_forms() -> None:
    batch = laplaces(np.array([0.3, -2.0]), np.array([0.7, 30.0]))
    for row in (0, 1):
        for y in (0.3, 1.0, -7.0):
            found = wc.pairing(k.Gaussian(0.5), batch.predictions[row : row + 1], [y])[0, 0]
            assert expectation_at(batch.exact[row], gaussian(0.5), y) == pytest.approx(found, rel=1e-11)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_features(family: str, seed: int) -> None:
    """With a Gaussian kernel every row reaches the tolerance, however unlike the others."""
    rng = np.random.default_rng(seed)
    batch = FAMILIES[family](rng, 16)
    scale = float(np.median(batch.predictions.interquartile_range()))
    reported, true = errors_of(batch, gaussian(scale), rng)
    assert reported >= true / 3.0
    assert reported <= 4.0 * TOLERANCE


@pytest.mark.parametrize("family", LOWERED_BY_MATERN)
def test_pairs_of_nodes(family: str) -> None:
    """Where nodes are few, the error is large for wide rows, and said to be."""
    rng = np.random.default_rng(3)
    batch = LOWERED_BY_MATERN[family](rng, 12)
    scale = float(np.median(batch.predictions.interquartile_range()))
    reported, true = errors_of(batch, matern(scale), rng)
    assert reported >= true / 3.0
    assert reported <= max(1.5 * TOLERANCE, 30.0 * true)


def one_odd_beta(rng: np.random.Generator) -> Batch:
    a = np.full(100, 2.0)
    a[int(rng.integers(100))] = 0.01
    return betas(a, a)


def one_wide_gamma(rng: np.random.Generator) -> Batch:
    scale = np.ones(100)
    scale[int(rng.integers(100))] = 1000.0
    return gammas(np.full(100, 2.0), scale)


NAMED: dict[str, Callable[[np.random.Generator], Batch]] = {
    "one odd beta": one_odd_beta,
    "gamma scales": lambda rng: gammas(np.full(40, 2.0), unlike(rng, 40, 2.0)),
    "one wide gamma": one_wide_gamma,
    "heavy tails": lambda rng: students(np.full(20, 1.5), rng.normal(size=20), unlike(rng, 20, 0.5)),
    "tiny shapes": lambda rng: gammas(rng.uniform(0.01, 0.1, 8), unlike(rng, 8, 0.5)),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_batches(name: str) -> None:
    rng = np.random.default_rng(4)
    batch = NAMED[name](rng)
    scale = float(np.median(batch.predictions.interquartile_range()))
    reported, true = errors_of(batch, gaussian(scale), rng)
    assert reported >= true / 3.0
    assert reported <= (100.0 if name == "one wide gamma" else 1.5) * TOLERANCE
