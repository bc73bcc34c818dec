"""Studies of measures: bias of calibration errors, uniform transforms, bands that hold."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import stats

import wellcal as wc
from benchmarks import environment
from benchmarks.data_sets import CALIBRATED, SAMPLES, calibrated
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.studies import ALPHA, rejection_rates, simulate
from wellcal import ece, pit, quantile_calibration, smooth_ece
from wellcal.measures.quantiles.bands import KINDS
from wellcal.measures.quantiles.checks import check_scalar

CURVE = np.linspace(0.05, 0.95, 19)


def measures(settings: Settings) -> Section:
    """Type I error of uniformity and of bands, and mean errors of calibrated and miscalibrated models."""
    load = environment.load_average()
    transforms, failures = _transforms(settings)
    bands, more = _bands(settings)
    body = "\n\n".join([transforms, bands, _errors(settings), environment.describe(load)])
    return Section("measures", "Measures of calibration", body, tuple(failures + more))


# -- transforms and bands --------------------------------------------------------------------


def _transforms(settings: Settings) -> tuple[str, list[str]]:
    """The test of Kolmogorov and Smirnov of `wc.pit`, on calibrated models."""
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    families = [family for family in (*CALIBRATED, SAMPLES) if _has_transform(family)]
    for family in families:
        draw = partial(calibrated, family)
        rate = rejection_rates(("pit", family), draw, 64, {"pit": uniformity}, settings.data_sets)["pit"]
        rows.append((family, str(rate)))
        if not rate.within(ALPHA, 0.01 / len(families)):
            failures.append(f"pit of {family}: {rate} over {rate.total} data sets")
    head = (
        f"Rejection rates of uniformity of `pit` at alpha = {ALPHA}, n = 64, "
        f"{settings.data_sets:,} data sets."
    )
    return f"{head}\n\n{table(('predictions', 'rate'), rows)}", failures


def _has_transform(family: str) -> bool:
    _, pred = calibrated(family, 2, np.random.default_rng(0))
    try:
        check_scalar(wc.as_predictions(pred), "pit")
    except TypeError:  # vectors, and classes without an order
        return False
    return True


def uniformity(y: Any, pred: Any, *, rng: np.random.Generator) -> float:
    """p-value of uniform transforms."""
    return float(stats.kstest(pit(y, pred, rng=rng), "uniform").pvalue)


def left_band(y: Any, pred: Any, *, rng: np.random.Generator, kind: str) -> float:
    """0 where the curve leaves its band of level 0.95 somewhere, else 1: a p-value at alpha = 0.05."""
    found = quantile_calibration(y, pred, levels=CURVE)
    low, high = found.band(1.0 - ALPHA, kind=kind)
    return float(np.all((found.frequencies >= low - 1e-12) & (found.frequencies <= high + 1e-12)))


def _normals(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    mu = rng.normal(size=n)
    return rng.normal(mu, 1.0), wc.Normal(mu, np.ones(n))


def _bands(settings: Settings) -> tuple[str, list[str]]:
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    tests = {kind: partial(left_band, kind=kind) for kind in KINDS}
    for n in (16, 64, 256):
        rates = rejection_rates(("band", n), _normals, n, tests, settings.data_sets)
        rows.append((str(n), *(str(rates[kind]) for kind in KINDS)))
        failures += [
            f"{kind} band, n = {n}: {rate} of curves outside"
            for kind, rate in rates.items()
            if not rate.within(ALPHA, 0.01 / 6, upper_only=True)
        ]
    head = (
        f"Share of {settings.data_sets:,} data sets of calibrated normals whose curve leaves a band of level "
        f"{1 - ALPHA} at any of 19 levels."
    )
    return f"{head}\n\n{table(('n', *KINDS), rows)}", failures


# -- bias of errors --------------------------------------------------------------------------


def _errors(settings: Settings) -> str:
    """Mean values for a calibrated model, and one that is wrong by 0.1 sin(2 pi p)."""
    rows: list[tuple[str, ...]] = []
    for wrong in (0.0, 0.1):
        for n in (100, 1000):
            run = partial(binary_errors, wrong=wrong, n=n)
            means = np.mean(simulate(("errors", wrong, n), run, settings.data_sets), axis=0)
            rows.append((f"{wrong:g}", str(n), *(f"{mean:.4f}" for mean in means)))
    head = (
        f"Mean binary errors (ten uniform bins) over {settings.data_sets:,} data sets of a model that is "
        "calibrated (0), or wrong by\n0.1 sin(2 pi p): true total variation 0 and 0.0637, true squares 0 and "
        "0.0100."
    )
    return f"{head}\n\n{table(('wrong by', 'n', *ERRORS), rows)}"


def binary_errors(for_data: np.random.Generator, _: object, *, wrong: float, n: int) -> list[float]:
    """All errors of one data set."""
    p = for_data.random(n)
    truth = np.clip(p + wrong * np.sin(2 * np.pi * p), 0.0, 1.0)
    y = (for_data.random(n) < truth).astype(int)
    return [float(measure(y, p)) for measure in ERRORS.values()]


ERRORS: dict[str, Any] = {
    "ECE": ece,
    "debiased": partial(ece, estimator="debiased"),
    "squared": partial(ece, distance="squared_euclidean"),
    "squared, debiased": partial(ece, distance="squared_euclidean", estimator="debiased"),
    "smooth": smooth_ece,
}
