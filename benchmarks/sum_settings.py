"""Errors of sums without the square, and what is reported of them, in easy and in hard settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import wellcal as wc
from benchmarks import environment
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from wellcal.engines import Linear, Tiled
from wellcal.engines.error_control import null_scale
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein
from wellcal.problem.problem import Problem, prepare

LIGHT, ALL, COVERED = 1e-3, 1e-2, 0.95
"""Largest errors, for light tails with default length scales and for all else; share of the runs whose
reported error is at least half of the true one."""

Draw = Callable[[int, np.random.Generator], Problem]


def _normals(
    loc: Callable[[np.ndarray, np.random.Generator], np.ndarray] = lambda x, rng: x,
    scale: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda loc, x: 0.6 * np.exp(0.3 * x),
    *,
    wrong: float = 1.0,
    shorter: float = 1.0,
) -> Draw:
    """Normals whose parameters are made of standard normal numbers; targets are `wrong` times as wide."""

    def draw(n: int, rng: np.random.Generator) -> Problem:
        centre = loc(rng.normal(size=n), rng)
        spread = scale(centre, rng.normal(size=n))
        pred, kernel = wc.Normal(centre, spread), None
        if shorter != 1.0:
            kernel = ExpDistance(Wasserstein(), 0.8 / shorter) @ Gaussian(0.8 / shorter)
        return prepare(centre + wrong * spread * rng.normal(size=n), pred, kernel)

    return draw


def _laplace(n: int, rng: np.random.Generator) -> Problem:
    loc, scale = rng.normal(size=n), 0.6 * np.exp(0.3 * rng.normal(size=n))
    kernel = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)
    return prepare(rng.laplace(loc, scale), wc.Laplace(loc, scale), kernel)


def _ensembles(n: int, rng: np.random.Generator) -> Problem:
    loc, scale = rng.normal(size=n), 0.6 * np.exp(0.3 * rng.normal(size=n))
    return prepare(rng.normal(loc, scale), wc.Samples(rng.normal(loc, scale, (50, n)).T))


def _gammas(n: int, rng: np.random.Generator) -> Problem:
    scale = 0.6 * np.exp(0.3 * rng.normal(size=n))
    return prepare(rng.gamma(3.0, scale), wc.Gamma(np.full(n, 3.0), scale))


def _near_ties(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.round(x, 1) + 1e-4 * rng.normal(size=len(x))


def _clustered(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(len(x)) < 0.9, 0.5 + 1e-3 * x, x)


SETTINGS: dict[str, tuple[bool, Draw]] = {
    "normals": (True, _normals()),
    "Laplace": (True, _laplace),
    "ensembles of 50": (True, _ensembles),
    "gammas": (True, _gammas),
    "locations of t with 2 degrees": (False, _normals(lambda x, rng: rng.standard_t(2, len(x)))),
    "ties": (False, _normals(lambda x, rng: np.round(x, 1), lambda loc, x: np.round(0.6 + 0.2 * abs(x), 1))),
    "near ties": (False, _normals(_near_ties)),
    "90% in a cluster": (False, _normals(_clustered, lambda loc, x: 0.6 * np.exp(1e-3 * x))),
    "scales on a curve": (False, _normals(scale=lambda loc, x: 0.2 + 0.5 * abs(loc))),
    "sharp": (False, _normals(scale=lambda loc, x: 0.02 * np.exp(0.3 * x))),
    "length scales 10 times too small": (False, _normals(shorter=10.0)),
    "length scales 100 times too small": (False, _normals(shorter=100.0)),
    "far too sure": (False, _normals(wrong=5.0)),
}
"""Problems by name, and whether they have light tails and default length scales."""


class Run(NamedTuple):
    """Errors of a sum.

    Attributes
    ----------
    how
        How it was made.
    null, error, reported
        True error in null standard deviations; true and reported error in these or, if that is larger, in the
        standard deviation of the sum.
    """

    how: str
    null: float
    error: float
    reported: float

    @property
    def covered(self) -> bool:
        """True if the reported error is at least half of the true one."""
        return self.error <= 2.0 * self.reported + 1e-12


def run(draw: Draw, n: int, seed: int) -> Run:
    """Compare the sum that `Linear` makes with that of tiles in float64."""
    problem = draw(n, np.random.default_rng(seed))
    engine = Linear(threads=1)
    found = engine.triangle(problem)
    said: dict[str, Any] = engine.describe(problem)
    exact = Tiled(threads=1, precision="float64").triangle(problem)
    null = null_scale(problem).value
    own = float(np.sqrt(0.5 * n * np.var(exact.rows)))
    off = abs(float(found.total - exact.total))
    how = said.get("sums", "tiles")
    return Run(how, off / null, off / max(null, own), said.get("control_error", 0.0))


def sums(settings: Settings) -> Section:
    """Run all settings, and hold errors to their limits."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    everything: list[Run] = []
    for name, (light, draw) in SETTINGS.items():
        for n, seeds in settings.sum_cases:
            runs = [run(draw, n, seed) for seed in range(seeds)]
            everything += runs
            worst = max(found.null if light else found.error for found in runs)
            if worst > (LIGHT if light else ALL):
                failures.append(f"{name}, {n:,} cases: off by {worst:.1e}")
            covered = sum(found.covered for found in runs)
            ways = dict.fromkeys(found.how for found in runs)
            largest = (max(r.null for r in runs), max(r.error for r in runs), max(r.reported for r in runs))
            shown = (f"{error:.0e}" for error in largest)
            rows.append((name, f"{n:,}", ", ".join(ways), *shown, f"{covered}/{seeds}"))
    share = np.mean([found.covered for found in everything])
    if share < COVERED:
        failures.append(
            f"the reported error is less than half of the true one in {1.0 - share:.0%} of the runs"
        )
    header = ("setting", "cases", "how", "error, null sd", "error", "reported", "at least half")
    body = (
        "Sums over all pairs by `Linear` less those of tiles in float64: the largest errors of\n"
        f"{len(everything)} runs, in standard deviations that the sum would have for calibrated\n"
        "predictions, or in its own if that is larger. The last column counts runs whose reported error\n"
        f"is at least half of the true one: {share:.0%} of all. Limits: {LIGHT:g} null standard deviations\n"
        f"for the first four settings, {ALL:g} for all others.\n\n"
        f"{table(header, rows)}\n\n{environment.describe(load)}"
    )
    return Section("sums", "Errors of sums without the square", body, tuple(failures))
