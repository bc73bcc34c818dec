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
from benchmarks.studies import ALPHA, Rate, rates, rejection_rates
from reproduction.published import DATA_SETS, decision_errors
from wellcal.engines import Tiled
from wellcal.hypotests import Bootstrap, monte_carlo_pvalue
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein

ONE_THREAD = Tiled(threads=1)
PAPER_KERNEL = ExpDistance(Wasserstein()) @ Gaussian()
EXACT_METHODS = ("exact", "aggregated", "regularised", "cme", "auto")
UNTIED = ("exact", "cme")
RESAMPLES = 199
NULL_RESAMPLES = 99  # as exact as more of them


def pvalue(y: Any, pred: Any, *, rng: np.random.Generator, method: Any, **options: Any) -> float:
    """p-value of one test."""
    options.setdefault("n_resamples", RESAMPLES)
    return wc.calibration_test(y, pred, method=method, rng=rng, engine=ONE_THREAD, **options).pvalue


def _exact_tests(n_resamples: int) -> dict[str, Any]:
    return {method: partial(pvalue, method=method, n_resamples=n_resamples) for method in EXACT_METHODS}


# -- type I error of the exact tests ---------------------------------------------------------


def type_one(settings: Settings) -> Section:
    """Type I error of the exact tests, in the paper's setting and for other families."""
    load = environment.load_average()
    tests = _exact_tests(NULL_RESAMPLES)
    cells: list[tuple[str, int, dict[str, Rate], bool]] = []
    for d in (1, 10):
        for n in (4, 16, 64):
            draw = partial(_synthetic, "calibrated", d)
            found = rejection_rates(("type I", d, n), draw, n, tests, settings.data_sets)
            cells.append((f"normals, d = {d}", n, found, False))
    for family in (*CALIBRATED, SAMPLES):
        for n in (16, 64):
            draw = partial(calibrated, family)
            found = rejection_rates(("type I", family, n), draw, n, tests, settings.data_sets)
            cells.append((family, n, found, family in DISCRETE))
    count = sum(len(found) for _, _, found, _ in cells)
    failures = [
        f"{method} on {family}, n = {n}: {rate} over {rate.total} data sets"
        for family, n, found, discrete in cells
        for method, rate in found.items()
        if not rate.within(ALPHA, 0.01 / count, upper_only=discrete or method not in UNTIED)
    ]
    rows = [(family, str(n), *(str(found[m]) for m in EXACT_METHODS)) for family, n, found, _ in cells]
    body = (
        f"Rejection rates at alpha = {ALPHA} of calibrated models, {settings.data_sets:,} data sets a cell, "
        f"{NULL_RESAMPLES} resamples.\nBounds: binomial, 1% over all {count} cells together; from above only "
        "for discrete targets, and for tests whose\nstatistic is the smallest of several p-values, which tie."
        f"\n\n{table(('predictions', 'n', *EXACT_METHODS), rows)}\n\n"
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
        **_exact_tests(RESAMPLES),
        "exact, paper's kernel": partial(pvalue, method="exact", kernel=PAPER_KERNEL),
        "bootstrap, paper's kernel": partial(pvalue, method="bootstrap", kernel=PAPER_KERNEL),
        "pearson": partial(pvalue, method="pearson"),
    }
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    for model, d, n, least, limit in POWER_CELLS:
        draw = partial(_synthetic, model, d)
        found = rejection_rates(("power", model, d, n), draw, n, tests, settings.data_sets)
        reference = _published("uncalibrated", "SKCE (B = n)", d, n) if model == "uncalibrated" else None
        rows.append(
            (
                f"{model}, d = {d}",
                str(n),
                *(str(found[name]) for name in tests),
                "" if reference is None else f"{1.0 - reference:.3f}",
                f"{least:.2f}",
                "" if limit is None else f"{limit:.2f}",
            )
        )
        if not found["auto"].between(least, 1.0, 0.01 / len(POWER_CELLS)):
            failures.append(f"auto on {model}, d = {d}: power {found['auto']}, wanted {least}")
    header = ("alternative", "n", *tests, "published (bootstrap)", "wanted", "limit")
    body = (
        f"Rejection rates at alpha = {ALPHA} of miscalibrated models, {settings.data_sets:,} data sets a "
        f"cell, {RESAMPLES} resamples;\ndefault kernels but where another is named. *Wanted* is the least "
        "power that `auto` must have, *limit*\nthat of the best test that knows the kind of error but not "
        "its direction.\n\n"
        f"{table(header, rows)}\n\n{_verdict(failures)}\n\n{environment.describe(load)}"
    )
    return Section("power", "Power", body, tuple(failures))


# -- the paper's tests -----------------------------------------------------------------------

SIZES = (4, 16, 64, 256, 1024)
PUBLISHED = ("SKCE (B = 2)", "SKCE (B = √n)", "SKCE (B = n)")
OURS = "SKCE (B = n), n SKCE_u"


def paper_pvalues(y: Any, pred: Any, *, rng: np.random.Generator) -> dict[str, float]:
    """p-values of the paper's tests, the bootstrap with the authors' statistic and with n SKCE_u."""
    two, root, both = rng.spawn(3)
    options: dict[str, Any] = {"kernel": PAPER_KERNEL, "n_resamples": 1000}
    method = Bootstrap(statistic="authors")
    bootstrap = wc.calibration_test(
        y, pred, method=method, rng=both, engine=ONE_THREAD, keep_null=True, **options
    )
    shrink = 1.0 - 1.0 / len(pred)
    found = (
        pvalue(y, pred, method="block", block_size=2, rng=two, **options),
        pvalue(y, pred, method="block", block_size="sqrt", rng=root, **options),
        bootstrap.pvalue,
        monte_carlo_pvalue(shrink * bootstrap.statistic, np.asarray(bootstrap.null)),
    )
    return dict(zip((*PUBLISHED, OURS), found, strict=True))


def paper_tests(settings: Settings) -> Section:
    """Type I errors of the paper's tests beside the published ones, and those of pearson."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    cells = [(d, n) for d in (1, 10) for n in SIZES]
    for d, n in cells:
        draw = partial(_synthetic, "calibrated", d)
        for name, rate in rates(("paper", d, n), draw, n, paper_pvalues, settings.data_sets).items():
            if name not in PUBLISHED:
                rows.append((name, str(d), str(n), str(rate), "", ""))
                continue
            published = _published("calibrated", name, d, n)
            agree = _agree(
                rate, Rate(round(DATA_SETS * published), DATA_SETS), 0.01 / (len(cells) * len(PUBLISHED))
            )
            if not agree:
                failures.append(f"{name}, d = {d}, n = {n}: {rate}, published {published}")
            rows.append((name, str(d), str(n), str(rate), f"{published:.3f}", "" if agree else "differs"))
    pearson = _pearson(settings, failures)
    header = ("test", "d", "n", "ours", "published", "")
    body = (
        f"Rejection rates at alpha = {ALPHA} of the paper's calibrated models with the paper's kernel, "
        f"{settings.data_sets:,} data sets a cell;\npublished: 500. Two-sample bounds, 1% over all cells "
        "together. The bootstrap has the statistic of the\nauthors' code, and below it n SKCE_u on the same "
        "resamples. CME, whose errors depend on the locations that\nare drawn, is in docs/reproduction.md."
        f"\n\n{table(header, rows)}\n\n{_verdict(failures)}\n\n### Three cumulants\n\n{pearson}\n\n"
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
            if not rate.between(0.04, 0.065, 0.01 / 4):
                failures.append(f"pearson, d = {d}, n = {n}: {rate}, wanted [0.04, 0.065]")
    return f"`pearson` over {settings.pearson_sets:,} data sets.\n\n{table(('d', 'n', 'pearson'), rows)}"


def _agree(ours: Rate, theirs: Rate, alpha: float) -> bool:
    """Whether two rates may have one probability: Fisher's exact test."""
    from scipy import stats

    counts = [[r.rejected, r.total - r.rejected] for r in (ours, theirs)]
    return float(stats.fisher_exact(counts).pvalue) >= alpha


def _published(model: str, test: str, dimension: int, n: int) -> float:
    return decision_errors()[model, dimension, n, test].errors / DATA_SETS
