"""What a call costs before the arithmetic matters: sixteen cases, and the import."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np

import wellcal as wc
from benchmarks import environment
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.timing import take_turns
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein

CASES = 16
CALLS = 200
"""Calls that are timed together: one alone is too short for the clock."""

LIMIT = 150e-6
"""Seconds that a call with a given kernel and a batch that is already built may take."""

IMPORTS = 15
"""Fresh interpreters, of which the best counts."""

IMPORT_LIMIT = 0.15
"""Seconds that the import may take beyond NumPy and the SciPy modules used."""


def small_calls(settings: Settings) -> Section:
    """Microseconds a call, beside the same arithmetic written out for this one case."""
    load = environment.load_average()
    timings = take_turns(
        {name: _repeated(run) for name, run in _runs().items()},
        budget=settings.budget,
        rounds=settings.rounds,
    )
    plain = timings["NumPy, written out"].best_cpu
    rows = [
        (name, f"{1e6 * t.best_cpu / CALLS:.0f} µs", f"{t.best_cpu / plain:.1f}", f"{100 * t.spread:.0f}%")
        for name, t in timings.items()
    ]
    import_cost, first_use = _import_cost()
    cost = timings["given kernel"].best_cpu / CALLS
    failures = [
        f"small calls: {what} takes {found:.3g} s, and {limit:.3g} are wanted"
        for what, found, limit in (
            ("skce with a given kernel", cost, LIMIT),
            ("import wellcal", import_cost, IMPORT_LIMIT),
        )
        if found > limit
    ]
    body = "\n".join(
        [
            f"`wc.skce` of {CASES} normals; the batch is already built, and the estimate comes with its",
            "standard error. *Ratio* is the time over that of the formula written out in NumPy for this one",
            "case, without checks and without a standard error. Times are CPU times, the best of",
            f"{settings.rounds} rounds of {CALLS} calls.",
            "",
            table(("call", "time", "ratio", "noise"), rows),
            "",
            f"`import wellcal` takes {1e3 * import_cost:.0f} ms of CPU beyond NumPy and the modules of",
            f"SciPy that are used, and {1e3 * first_use:.0f} ms with a first look at `wc.skce`, which loads",
            f"the rooms behind it (best of {IMPORTS} fresh interpreters).",
            "",
            environment.describe(load),
        ]
    )
    return Section("small-calls", "Small calls", body, tuple(failures))


def _runs() -> dict[str, Callable[[], float]]:
    rng = np.random.default_rng(0)
    mu, sigma = rng.normal(size=CASES), rng.uniform(0.5, 1.5, CASES)
    y = rng.normal(mu, sigma)
    pred = wc.Normal(mu, sigma)
    kernel = ExpDistance(Wasserstein()) @ Gaussian()
    return {
        "given kernel": lambda: float(wc.skce(y, pred, kernel=kernel)),
        "default kernel": lambda: float(wc.skce(y, pred)),
        "NumPy, written out": lambda: _written_out(y, mu, sigma),
    }


def _written_out(y: np.ndarray, mu: np.ndarray, sigma: np.ndarray) -> float:
    def pairing(a: np.ndarray, b: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * (a[:, None] - b) ** 2 / (1.0 + variance)) / np.sqrt(1.0 + variance)

    v = sigma**2
    h = pairing(mu, mu, v[:, None] + v) + pairing(y, y, np.zeros(1))
    cross = pairing(mu, y, v[:, None])
    h = h - cross - cross.T
    h *= np.exp(-np.sqrt((mu[:, None] - mu) ** 2 + (sigma[:, None] - sigma) ** 2))
    return float((h.sum() - np.trace(h)) / (len(y) * (len(y) - 1)))


def _repeated(run: Callable[[], float]) -> Callable[[], float]:
    def several() -> float:
        for _ in range(CALLS - 1):
            run()
        return run()

    return several


_PROBE = """
import time, numpy, scipy.special, scipy.stats, scipy.optimize, scipy.spatial.distance, scipy.linalg
import array_api_compat.numpy, array_api_extra
start = time.process_time()
import wellcal
imported = time.process_time()
wellcal.skce
print(imported - start, time.process_time() - start)
"""


def _import_cost() -> tuple[float, float]:
    """Seconds of CPU time for the import, and with the first look at `skce`."""
    printed = [
        subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, check=True).stdout
        for _ in range(IMPORTS)
    ]
    found = [line.split() for line in printed]
    return min(float(line[0]) for line in found), min(float(line[1]) for line in found)
