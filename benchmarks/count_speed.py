"""Predictions of counts beside normal ones: CPU time of the main functions, in one process."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import wellcal as wc
from benchmarks import environment
from benchmarks.results import Section, table
from benchmarks.settings import Settings

CASES = 2_000
"""Number of cases that the limits are for."""

LIMITS = {"skce": 8.0, "auto": 8.0, "witness": 8.0, "compare": 8.0}
"""CPU time that counts may take, as a multiple of that of normals."""

_TURNS = {"skce": 4, "witness": 4}
"""How many rounds take the place of one where they are short."""

MEANS = (0.5, 1e3)
DISPERSIONS = (0.5, 5.0)

Pair = tuple[Any, Any]
"""Predictions, and those of a second model that expects a tenth more."""


def counts(settings: Settings) -> Section:
    """Ratios of CPU times; every round has new predictions, so that nothing is known of them yet."""
    load = environment.load_average()
    times = {what: _times(what, settings) for what in LIMITS}
    ratios = {what: _ratios(found) for what, found in times.items()}
    failures = [
        f"{what} of {family}: {ratio:.2f} times the CPU time of normals, at most {LIMITS[what]:g} are wanted"
        for what, found in ratios.items()
        for family, ratio in found.items()
        if settings.count_cases == CASES and ratio > LIMITS[what]
    ]
    header = ("CPU time, as a multiple of that of normals", *(_title(what, settings) for what in LIMITS))
    rows = [("normal", *(f"{min(found['normal']):.3g} s" for found in times.values()))]
    rows += [
        (family, *(f"{found[family]:.2f}" for found in ratios.values()))
        for family in _families(settings.count_cases, 0)
        if family != "normal"
    ]
    rows.append(("wanted, at most", *(f"{limit:g}" for limit in LIMITS.values())))
    body = (
        f"{settings.count_cases:,} cases; means of counts are log-uniform between {MEANS[0]:g} and\n"
        f"{MEANS[1]:g}. Families take turns in one process, after a small round that is not counted. Each\n"
        f"round has predictions of its own; the best of {settings.count_rounds} is shown, and of\n"
        f"{settings.count_rounds * max(_TURNS.values())} for `skce` and `witness`, which are short.\n\n"
        f"{table(header, rows)}\n\n{_verdict(failures, settings)}\n\n{environment.describe(load)}"
    )
    return Section("counts", "Predictions of counts", body, tuple(failures))


def _title(what: str, settings: Settings) -> str:
    return f"`{what}`" if what == "skce" else f"`{what}`, {settings.count_resamples} resamples"


def _families(n: int, seed: int) -> dict[str, Pair]:
    rng = np.random.default_rng([seed, n])
    means = np.exp(rng.uniform(*np.log(MEANS), n))
    loc, scale = rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))
    differing = np.exp(rng.normal(size=n))
    out: dict[str, Pair] = {
        "normal": (wc.Normal(loc, scale), wc.Normal(loc + 0.1, scale)),
        "Poisson": (wc.Poisson(means), wc.Poisson(1.1 * means)),
    }
    dispersions = {f"dispersion {d:g}": np.full(n, d) for d in DISPERSIONS} | {
        "dispersions exp N(0, 1)": differing
    }
    for name, d in dispersions.items():
        pair = wc.NegativeBinomial(means, d), wc.NegativeBinomial(1.1 * means, d)
        out[f"negative binomial, {name}"] = pair
    return out


def _times(what: str, settings: Settings) -> dict[str, list[float]]:
    """CPU times of each family; what is left of an earlier round helps no later one."""
    out: dict[str, list[float]] = {}
    for done in range(settings.count_rounds * _TURNS.get(what, 1) + 1):
        n = settings.count_cases if done > 0 else settings.count_cases // 5
        for family, (pred, other) in _families(n, done).items():
            y = pred.sample(rng=done)
            run = run_of(what, y, pred, other, settings.count_resamples)
            started = time.process_time()
            with warnings.catch_warnings(action="ignore"):  # of few resamples, in quick runs
                run()
            if done > 0:
                out.setdefault(family, []).append(time.process_time() - started)
    return out


def run_of(what: str, y: Any, pred: Any, other: Any, resamples: int) -> Callable[[], Any]:
    """One of the main functions, to be called."""
    runs: dict[str, Callable[[], Any]] = {
        "skce": lambda: wc.skce(y, pred),
        "auto": lambda: wc.calibration_test(y, pred, n_resamples=resamples, rng=0),
        "witness": lambda: wc.witness(y, pred, n_resamples=resamples, rng=0),
        "compare": lambda: wc.compare(y, pred, other, n_resamples=resamples, rng=0),
    }
    return runs[what]


def _ratios(times: dict[str, list[float]]) -> dict[str, float]:
    reference = min(times["normal"])
    return {family: min(found) / reference for family, found in times.items() if family != "normal"}


def _verdict(failures: list[str], settings: Settings) -> str:
    if settings.count_cases != CASES:
        return f"The limits are for {CASES:,} cases."
    return "All are within the limits." if not failures else "Not as wanted: " + "; ".join(failures) + "."
