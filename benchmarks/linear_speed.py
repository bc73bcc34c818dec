"""Time against the number of cases for tests that are linear in it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import wellcal as wc
from benchmarks import environment
from benchmarks.data_sets import synthetic
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from wellcal.hypotests import Block, MeanEmbedding, Omnibus

GROWTH = 2.0
"""Times a case may cost at the largest size what it costs at the one before: a square would be ten."""

Run = Callable[[Any, Any], Any]


def linear(settings: Settings) -> Section:
    """CPU time of each linear test, all of it: kernel, test, estimate and effect size."""
    load = environment.load_average()
    runs = _runs(settings.linear_resamples)
    times: dict[str, list[float]] = {name: [] for name in runs}
    blocks: set[str] = set()
    for n in settings.linear_cases:
        y, pred = synthetic("calibrated", 1, n, np.random.default_rng(n))
        for name, run in runs.items():
            started = time.process_time()
            result = run(y, pred)
            times[name].append(time.process_time() - started)
            blocks.add(f"{result.estimate.provenance.get('block_size')}")
    failures = [
        f"{name}: a case costs {growth:.1f} times as much in the largest data set"
        for name, found in times.items()
        if (growth := _growth(settings.linear_cases, found)) > GROWTH
    ]
    header = (
        "CPU time",
        *(f"{n:,} cases" for n in settings.linear_cases),
        "time for a case, last over first",
    )
    rows = [
        (name, *(f"{value:.3g} s" for value in found), f"{_per_case(settings.linear_cases, found):.2f}")
        for name, found in times.items()
    ]
    body = (
        "Normal predictions and the default kernel, whose scales come from a sample of the predictions.\n"
        "The time is that of all of `calibration_test`; the estimate and effect size that it reports come\n"
        f"from blocks of {', '.join(sorted(blocks))} cases. A case may cost at most {GROWTH:g} times as\n"
        "much in the largest data set as in the one before it.\n\n"
        f"{table(header, rows)}\n\n{_verdict(failures)}\n\n{environment.describe(load)}"
    )
    return Section("linear", "Tests that are linear in the number of cases", body, tuple(failures))


def _runs(resamples: int) -> dict[str, Run]:
    methods = {
        "`block` of 16 cases": Block(16),
        "`cme`, chi-square": MeanEmbedding(reference="chi2"),
        f"`cme`, {resamples} resamples": MeanEmbedding(),
        f"`regularised`, {resamples} resamples": "regularised",
        f"the linear path of `auto`, {resamples} resamples": Omnibus(pairs=False),
    }
    return {name: partial(_run, method, resamples) for name, method in methods.items()}


def _run(method: Any, resamples: int, y: Any, pred: Any) -> Any:
    with warnings.catch_warnings(action="ignore"):  # of few resamples, in quick runs
        return wc.calibration_test(y, pred, method=method, n_resamples=resamples, rng=0)


def _growth(sizes: tuple[int, ...], found: list[float]) -> float:
    return (found[-1] / sizes[-1]) / (found[-2] / sizes[-2])


def _per_case(sizes: tuple[int, ...], found: list[float]) -> float:
    return (found[-1] / sizes[-1]) / (found[0] / sizes[0])


def _verdict(failures: list[str]) -> str:
    return "All are linear." if not failures else "Not as wanted: " + "; ".join(failures) + "."
