"""Speed of the tests beside what they replace, in one process, and what `auto` takes and chooses."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import wellcal as wc
from benchmarks import environment
from benchmarks.data_sets import synthetic
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.timing import take_turns
from wellcal.hypotests.passes import dense
from wellcal.hypotests.setup import make_setup

CASES = 1024
"""Number of cases that the wanted ratios are for."""

BOOTSTRAP_RESAMPLES = 1000
EXACT_RESAMPLES = 999
TIMED = 20
"""Resamples, or calls, of the simple way that are timed; its whole time is scaled from them."""


@dataclass(frozen=True)
class Comparison:
    """A test and the simple way to the same thing.

    Attributes
    ----------
    ours, simple
        Runs that return a number.
    scale
        What the time of `simple` is to be multiplied by.
    wanted
        The ratio of times, simple over ours, that is wanted at least.
    """

    title: str
    ours: Callable[[], float]
    simple: Callable[[], float]
    scale: float
    wanted: float


def test_speed(settings: Settings) -> Section:
    """Ratios of times, and `auto` over numbers of cases."""
    load = environment.load_average()
    n = settings.test_cases
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    for comparison in _comparisons(n):
        timings = take_turns(
            {"ours": comparison.ours, "simple": comparison.simple},
            budget=settings.budget,
            rounds=settings.rounds,
        )
        ours, simple = timings["ours"], timings["simple"]
        ratio = comparison.scale * simple.best / ours.best
        cpu_ratio = comparison.scale * simple.best_cpu / ours.best_cpu
        noise = max(ours.spread, simple.spread)
        rows.append(
            (
                comparison.title,
                _seconds(ours.best),
                _seconds(comparison.scale * simple.best),
                f"{ratio:.2f}",
                f"{cpu_ratio:.2f}",
                f"{comparison.wanted:.2f}",
                f"{noise:.0%}",
            )
        )
        if n == CASES and ratio < comparison.wanted:
            failures.append(f"{comparison.title}: ratio {ratio:.2f}, wanted {comparison.wanted:.2f}")
    header = ("", "wellcal", "simple way", "ratio", "CPU ratio", "wanted", "noise")
    body = (
        f"{n:,} normal predictions and the default kernel. *Simple way* is the best of several runs as well; "
        f"where it\nrepeats itself, {TIMED} repetitions were timed and scaled. *Ratio* is its time over "
        "wellcal's, *CPU ratio* the same\nfor the time of all threads together, which other programs disturb "
        "less. A time within 1.5 of another is a ratio\nof at least 0.67.\n\n"
        f"{table(header, rows)}\n\n{_verdict(failures, n)}\n\n"
        f"### What `auto` takes\n\n{_automatic(settings.auto_cases)}\n\n{environment.describe(load)}"
    )
    return Section("test-speed", "Speed of the tests", body, tuple(failures))


test_speed.__test__ = False  # pyright: ignore[reportFunctionMemberAccess]  # a benchmark, not a test case


# -- what is compared --------------------------------------------------------------------------


def _comparisons(n: int) -> list[Comparison]:
    y, pred = synthetic("calibrated", 1, n, np.random.default_rng(0))
    kernel = wc.default_kernel(pred)
    matrix = dense(make_setup(y, pred, kernel), "the benchmark")
    found = [
        Comparison(
            f"`bootstrap`, {BOOTSTRAP_RESAMPLES:,} resamples, beside `H[idx][:, idx].sum()` for each",
            lambda: _pvalue(y, pred, method="bootstrap", n_resamples=BOOTSTRAP_RESAMPLES),
            lambda: _indexed_sums(matrix),
            BOOTSTRAP_RESAMPLES / TIMED,
            15.0,
        ),
        Comparison(
            "`pearson` beside building H and one product of H with itself",
            lambda: _pvalue(y, pred, method="pearson", kernel=kernel),
            lambda: _matrix_and_product(y, pred, kernel),
            1.0,
            1.0 / 1.5,
        ),
    ]
    return found + [_exact_comparison(n, d) for d in (1, 10)]


def _exact_comparison(n: int, dimension: int) -> Comparison:
    y, pred = synthetic("calibrated", dimension, n, np.random.default_rng(dimension))
    kernel = wc.default_kernel(pred)
    return Comparison(
        f"`exact`, {EXACT_RESAMPLES} resamples, d = {dimension}, beside `skce` for each",
        lambda: _pvalue(y, pred, method="exact", n_resamples=EXACT_RESAMPLES, kernel=kernel),
        lambda: sum(float(wc.skce(y, pred, kernel=kernel)) for _ in range(TIMED)),
        (EXACT_RESAMPLES + 1) / TIMED,
        2.5,
    )


def _pvalue(y: Any, pred: Any, **options: Any) -> float:
    return wc.calibration_test(y, pred, rng=0, **options).pvalue


def _indexed_sums(matrix: np.ndarray) -> float:
    rng = np.random.default_rng(0)
    n = len(matrix)
    total = 0.0
    for _ in range(TIMED):
        index = rng.integers(n, size=n)
        total += float(matrix[index][:, index].sum())
    return total


def _matrix_and_product(y: Any, pred: Any, kernel: Any) -> float:
    """As fast as this package builds H, by threads and above the diagonal only."""
    matrix = dense(make_setup(y, pred, kernel), "the benchmark")
    return float((matrix @ matrix)[0, 0])


# -- auto --------------------------------------------------------------------------------------


def _automatic(sizes: tuple[int, ...]) -> str:
    rows: list[tuple[str, ...]] = []
    for n in sizes:
        y, pred = synthetic("calibrated", 1, n, np.random.default_rng(n))
        best = np.inf
        result: Any = None
        for _ in range(3):
            started = time.perf_counter()
            result = wc.calibration_test(y, pred, rng=0)
            best = min(best, time.perf_counter() - started)
            if best > 10.0:
                break  # once is enough
        resamples = result.provenance.get("n_resamples")
        parts = ", ".join(result.provenance.get("pvalues", {}))
        rows.append(
            (f"{n:,}", _seconds(best), result.method, parts, "" if resamples is None else f"{resamples:,}")
        )
    return table(("cases", "time", "method", "parts", "resamples"), rows)


def _verdict(failures: list[str], n: int) -> str:
    if n != CASES:
        return f"What is wanted is for {CASES:,} cases, and not judged here."
    return "All ratios are as wanted." if not failures else "Not as wanted: " + "; ".join(failures) + "."


def _seconds(value: float) -> str:
    return f"{1e3 * value:.3g} ms" if value < 0.9995 else f"{value:.3g} s"
