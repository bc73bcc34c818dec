"""Error rates where few cases carry a statistic: what limits make of it, and what exact tests do."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

import wellcal as wc
from benchmarks import environment
from benchmarks.data_sets import HARD, QUANTILES, synthetic
from benchmarks.data_sets import hard as draw_hard
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.studies import ALPHA, Rate, rejection_rates
from wellcal.engines import Tiled
from wellcal.hypotests import MeanEmbedding
from wellcal.kernels import paper_kernel

METHODS: dict[str, Any] = {
    "cme": "cme",
    "cme, F": MeanEmbedding(reference="F"),
    "cme, chi-square": MeanEmbedding(reference="chi2"),
    "pearson": "pearson",
}
EXACT = "cme"
CONTINUOUS = (QUANTILES, "normals, each prediction three times")
PAPER_SIZES = (64, 256)
_ONE_THREAD = Tiled(threads=1)


def pvalue(y: Any, pred: Any, *, rng: np.random.Generator, method: Any, **options: Any) -> float:
    """p-value of one test; 1 where it refuses."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return wc.calibration_test(y, pred, method=method, rng=rng, engine=_ONE_THREAD, **options).pvalue
        except ValueError:
            return 1.0


def warned(y: Any, pred: Any, *, rng: np.random.Generator, method: Any, **options: Any) -> float:
    """0 where a test warns of few cases, or refuses; 1 where it says nothing."""
    with warnings.catch_warnings(record=True, action="always") as seen:
        try:
            wc.calibration_test(y, pred, method=method, rng=rng, engine=_ONE_THREAD, **options)
        except ValueError:
            return 0.0
    return 0.0 if seen else 1.0


def hard(settings: Settings) -> Section:
    """Rejections of calibrated models, and how often it was warned of them."""
    load = environment.load_average()
    n, sets = settings.hard_cases, settings.hard_sets
    failures: list[str] = []
    rows: list[tuple[str, ...]] = []
    for setting in (*HARD, QUANTILES):
        rates = _rates(("hard", setting), partial(draw_hard, setting), n, settings)
        rows.append((setting, str(n), *_cells(rates)))
        if not rates[EXACT].within(ALPHA, 0.01 / (len(HARD) + 1), upper_only=setting not in CONTINUOUS):
            failures.append(f"{EXACT} on {setting}: {rates[EXACT]} over {sets:,} data sets")
    for d in (1, 10):
        for size in PAPER_SIZES:
            draw = partial(synthetic, "calibrated", d)
            rates = _rates(("hard", "paper", d), draw, size, settings, kernel=paper_kernel)
            rows.append((f"the paper's, d = {d}", str(size), *_cells(rates)))
    body = (
        f"Rejection rates at alpha = {ALPHA} of calibrated models, {sets:,} data sets a cell, "
        f"{settings.hard_resamples} resamples;\nrefusals count as no rejection. In brackets the share of "
        "data sets on which the method warned, or refused.\nBounds for `cme`, which is exact: binomial, 1% "
        "over its cells of few cases together, for discrete\ntargets from above only.\n\n"
        f"{table(('calibrated predictions', 'n', *METHODS), rows)}\n\n{_verdict(failures)}\n\n"
        f"{environment.describe(load)}"
    )
    return Section("hard", "Where few cases carry the statistic", body, tuple(failures))


def _rates(key: tuple[Any, ...], draw: Any, n: int, settings: Settings, **options: Any) -> dict[str, Rate]:
    options |= {"n_resamples": settings.hard_resamples}
    tests = {name: partial(pvalue, method=method, **options) for name, method in METHODS.items()}
    told = {
        f"{name} warns": partial(warned, method=method, **options)
        for name, method in METHODS.items()
        if name != EXACT
    }
    return rejection_rates((*key, n), draw, n, tests | told, settings.hard_sets)


def _cells(rates: dict[str, Rate]) -> list[str]:
    return [
        f"{rates[name]}" + (f" ({rates[f'{name} warns'].value:.2f})" if f"{name} warns" in rates else "")
        for name in METHODS
    ]


def _verdict(failures: list[str]) -> str:
    if failures:
        return "Out of bounds: " + "; ".join(failures) + "."
    return "`cme` is within its bounds everywhere."
