"""Studies of the tests: type I error, power, and the paper's own numbers beside them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import wellcal as wc
from benchmarks import environment
from benchmarks.data_sets import CALIBRATED, DISCRETE, SAMPLES, calibrated, synthetic
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.studies import ALPHA, Rate, rejection_rates
from reproduction.published import DATA_SETS, decision_errors
from wellcal.engines import Tiled
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein

ONE_THREAD = Tiled(threads=1)
PAPER_KERNEL = ExpDistance(Wasserstein()) @ Gaussian()
EXACT_METHODS = ("exact", "aggregated", "regularised", "auto")
RESAMPLES = 199


def pvalue(y: Any, pred: Any, *, rng: np.random.Generator, method: Any, **options: Any) -> float:
    """p-value of one test."""
    options.setdefault("n_resamples", RESAMPLES)
    return wc.calibration_test(y, pred, method=method, rng=rng, engine=ONE_THREAD, **options).pvalue


def _exact_tests() -> dict[str, Any]:
    return {method: partial(pvalue, method=method) for method in EXACT_METHODS}


# -- type I error of the exact tests ---------------------------------------------------------


def type_one(settings: Settings) -> Section:
    """Type I error of the exact tests, in the paper's setting and for other families."""
    load = environment.load_average()
    cells: list[tuple[str, int, dict[str, Rate], bool]] = []
    for d in (1, 10):
        for n in (4, 16, 64):
            draw = partial(_synthetic, "calibrated", d)
            rates = rejection_rates(("type I", d, n), draw, n, _exact_tests(), settings.null_sets)
            cells.append((f"normals, d = {d}", n, rates, False))
    for family in (*CALIBRATED, SAMPLES):
        for n in (16, 64):
            draw = partial(calibrated, family)
            rates = rejection_rates(("type I", family, n), draw, n, _exact_tests(), settings.null_sets)
            cells.append((family, n, rates, family in DISCRETE))
    count = sum(len(rates) for _, _, rates, _ in cells)
    failures = [
        f"{method} on {family}, n = {n}: {rate} over {rate.total} data sets"
        for family, n, rates, discrete in cells
        for method, rate in rates.items()
        if not rate.within(ALPHA, 0.01 / count, upper_only=discrete)
    ]
    rows = [(family, str(n), *(str(rates[m]) for m in EXACT_METHODS)) for family, n, rates, _ in cells]
    body = (
        f"Rejection rates at alpha = {ALPHA} of calibrated models, {settings.null_sets:,} data sets a cell, "
        f"{RESAMPLES} resamples.\nBounds: binomial, 1% over all {count} cells together, for discrete targets "
        f"from above only.\n\n{table(('predictions', 'n', *EXACT_METHODS), rows)}\n\n"
        f"{_verdict(failures)}\n\n{environment.describe(load)}"
    )
    return Section("type1", "Type I error of the exact tests", body, tuple(failures))


def _verdict(failures: list[str]) -> str:
    return (
        "All cells are within their bounds."
        if not failures
        else "Out of bounds: " + "; ".join(failures) + "."
    )


def _synthetic(model: str, dimension: int, n: int, rng: np.random.Generator) -> Any:
    return synthetic(model, dimension, n, rng)


# -- power -----------------------------------------------------------------------------------

POWER_CELLS: tuple[tuple[str, int, int, float, float | None], ...] = (
    ("uncalibrated", 1, 4, 0.97, None),
    ("uncalibrated", 10, 4, 0.90, None),
    ("spread", 1, 64, 0.55, 0.82),
    ("spread", 10, 64, 0.95, 1.00),
    ("shift", 1, 64, 0.88, 0.98),
    ("shift", 10, 64, 0.50, 0.79),
)
"""Model, dimension, n, the least power wanted, and that of the best test that knows the kind of error."""


def power(settings: Settings) -> Section:
    """Power of the exact tests and of the paper's."""
    load = environment.load_average()
    tests = {
        **_exact_tests(),
        "exact, paper's kernel": partial(pvalue, method="exact", kernel=PAPER_KERNEL),
        "bootstrap, paper's kernel": partial(pvalue, method="bootstrap", kernel=PAPER_KERNEL),
        "pearson": partial(pvalue, method="pearson"),
    }
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    for model, d, n, least, limit in POWER_CELLS:
        draw = partial(_synthetic, model, d)
        rates = rejection_rates(("power", model, d, n), draw, n, tests, settings.power_sets)
        reference = _published("uncalibrated", "SKCE (B = n)", d, n) if model == "uncalibrated" else None
        rows.append(
            (
                f"{model}, d = {d}",
                str(n),
                *(str(rates[name]) for name in tests),
                "" if reference is None else f"{1.0 - reference:.3f}",
                f"{least:.2f}",
                "" if limit is None else f"{limit:.2f}",
            )
        )
        if rates["auto"].value < least:
            failures.append(f"auto on {model}, d = {d}: power {rates['auto']}, wanted {least}")
    header = ("alternative", "n", *tests, "published (bootstrap)", "wanted", "limit")
    body = (
        f"Rejection rates at alpha = {ALPHA} of miscalibrated models, {settings.power_sets:,} data sets a "
        f"cell, {RESAMPLES} resamples;\ndefault kernels but where another is named. *Wanted* is the least "
        "power that `auto` must have, *limit*\nthat of the best test that knows the kind of error but not "
        "its direction.\n\n"
        f"{table(header, rows)}\n\n{_verdict(failures)}\n\n{environment.describe(load)}"
    )
    return Section("power", "Power", body, tuple(failures))


# -- the paper's tests -----------------------------------------------------------------------

SIZES = (4, 16, 64, 256, 1024)
OURS = {
    "SKCE (B = 2)": {"method": "block", "block_size": 2},
    "SKCE (B = √n)": {"method": "block", "block_size": "sqrt"},
    "SKCE (B = n)": {"method": "bootstrap", "n_resamples": 1000},
}


def paper_tests(settings: Settings) -> Section:
    """Type I errors of the paper's tests beside the published ones, and those of pearson."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    cells = [(name, d, n) for d in (1, 10) for n in SIZES for name in OURS]
    for name, d, n in cells:
        published = _published("calibrated", name, d, n)
        tests = {name: partial(pvalue, kernel=PAPER_KERNEL, **OURS[name])}
        draw = partial(_synthetic, "calibrated", d)
        rate = rejection_rates(("paper", name, d, n), draw, n, tests, settings.paper_sets)[name]
        agree = _agree(rate, Rate(round(DATA_SETS * published), DATA_SETS), 0.01 / len(cells))
        note = "" if agree else "differs"
        if not agree:
            failures.append(f"{name}, d = {d}, n = {n}: {rate}, published {published}")
        rows.append((name, str(d), str(n), str(rate), f"{published:.3f}", note))
    pearson = _pearson(settings, failures)
    header = ("test", "d", "n", "ours", "published", "")
    body = (
        f"Rejection rates at alpha = {ALPHA} of the paper's calibrated models with the paper's kernel, "
        f"{settings.paper_sets:,} data sets a cell;\npublished: 500. Two-sample bounds, 1% over all cells "
        "together. CME, whose\nerrors depend on the locations that are drawn, is in docs/reproduction.md.\n\n"
        f"{table(header, rows)}\n\n{_verdict(failures)}\n\n### Three cumulants\n\n{pearson}\n\n"
        f"{environment.describe(load)}"
    )
    return Section("paper-tests", "The paper's tests", body, tuple(failures))


def _pearson(settings: Settings, failures: list[str]) -> str:
    rows: list[tuple[str, ...]] = []
    for d in (1, 10):
        for n in (16, 64):
            tests = {"pearson": partial(pvalue, method="pearson", kernel=PAPER_KERNEL)}
            draw = partial(_synthetic, "calibrated", d)
            rate = rejection_rates(("pearson", d, n), draw, n, tests, settings.pearson_sets)["pearson"]
            rows.append((str(d), str(n), f"{rate.value:.4f}"))
            if not 0.04 <= rate.value <= 0.065:
                failures.append(f"pearson, d = {d}, n = {n}: {rate}, wanted [0.04, 0.065]")
    return f"`pearson` over {settings.pearson_sets:,} data sets.\n\n{table(('d', 'n', 'pearson'), rows)}"


def _agree(ours: Rate, theirs: Rate, alpha: float) -> bool:
    """Whether two rates may have one probability: Fisher's exact test."""
    from scipy import stats

    counts = [[r.rejected, r.total - r.rejected] for r in (ours, theirs)]
    return float(stats.fisher_exact(counts).pvalue) >= alpha


def _published(model: str, test: str, dimension: int, n: int) -> float:
    return decision_errors()[model, dimension, n, test].errors / DATA_SETS
