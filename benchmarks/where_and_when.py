"""Studies of comparisons, of the witness and of the monitor: how often each claims what is not so."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from scipy import special

import wellcal as wc
from benchmarks import environment
from benchmarks.data_sets import CALIBRATED, SAMPLES, calibrated
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.studies import ALPHA, Rate, _one_thread, generators
from wellcal.comparison import compare
from wellcal.engines import Tiled
from wellcal.monitoring.monitor import Monitor
from wellcal.witnesses import witness

ONE_THREAD = Tiled(threads=1)
RESAMPLES = 99
STEPS = 1000


def rates_of(
    key: tuple[Any, ...],
    draw: Callable[[int, np.random.Generator], Any],
    n: int,
    pvalues: Callable[..., Sequence[float]],
    repetitions: int,
) -> list[Rate]:
    """Share of data sets on which each of several p-values of one run is at most alpha."""
    run = partial(_one_set, key=key, draw=draw, n=n, pvalues=pvalues)
    count = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(count, initializer=_one_thread) as pool:
        found = list(pool.map(run, range(repetitions), chunksize=max(1, repetitions // (count * 16))))
    return [Rate(sum(p[k] <= ALPHA for p in found), repetitions) for k in range(len(found[0]))]


def _one_set(r: int, *, key: Any, draw: Any, n: int, pvalues: Any) -> Sequence[float]:
    for_data, for_run = generators(key, r)
    y, pred = draw(n, for_data)
    return pvalues(y, pred, rng=for_run)


# -- comparison ------------------------------------------------------------------------------

COMPARISONS = ("both calibrated", "equal errors", "nearly the same", "one calibrated")
NULL = ("both calibrated", "equal errors")


def _models(kind: str, n: int, rng: np.random.Generator) -> Any:
    """Targets, and the two models in the place of one."""
    mu, one = rng.normal(size=n), np.ones(n)
    y = rng.normal(mu, 1.0)
    if kind == "both calibrated":  # one of them knows nothing about the case
        return y, (wc.Normal(mu, one), wc.Normal(0.0 * mu, np.sqrt(2.0) * one))
    shifts = {"equal errors": (0.5, -0.5), "nearly the same": (0.5, 0.6), "one calibrated": (0.0, 0.5)}[kind]
    return y, tuple(wc.Normal(mu + shift, one) for shift in shifts)


def _compared(y: Any, models: Any, *, rng: np.random.Generator) -> tuple[float, float, float]:
    found = compare(y, *models, rng=rng, n_resamples=RESAMPLES, engine=ONE_THREAD)
    error = np.hypot(float(found.a.standard_error), float(found.b.standard_error))
    unpaired = float(2.0 * special.ndtr(-abs(float(found.estimate)) / error))
    return found.pvalue, found.difference_pvalue, unpaired


def comparison(settings: Settings) -> Section:
    """Size and power of `compare`."""
    load = environment.load_average()
    names = ("compare", "difference alone", "unpaired")
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    for kind in COMPARISONS:
        for n in (64, 256):
            draw = partial(_models, kind)
            rates = rates_of(("compare", kind, n), draw, n, _compared, settings.power_sets)
            rows.append((kind, str(n), *map(str, rates)))
            if kind in NULL and not rates[0].within(ALPHA, 0.01 / 4, upper_only=True):
                failures.append(f"compare, {kind}, n = {n}: {rates[0]}")
    body = (
        f"Rejection rates at alpha = {ALPHA} of equal calibration errors, {settings.power_sets:,} data sets "
        "a cell. In the first two\nsettings the errors are equal. *Unpaired* takes the standard errors of both "
        "models as independent.\n\n"
        f"{table(('models', 'n', *names), rows)}\n\n{_verdict(failures)}\n\n{environment.describe(load)}"
    )
    return Section("compare", "Comparison of two models", body, tuple(failures))


# -- witness ---------------------------------------------------------------------------------


def _witnessed(y: Any, pred: Any, *, rng: np.random.Generator) -> tuple[float, float]:
    segments = rng.integers(0, 4, len(pred))
    options: Any = {"rng": rng, "n_resamples": RESAMPLES, "engine": ONE_THREAD}
    found = witness(y, pred, 10, segments=segments, **options)
    return found.pvalue, float(np.min(found.pvalues))


def groups(settings: Settings) -> Section:
    """Family-wise error of the statements of `witness`."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    families = (*CALIBRATED, SAMPLES)
    for family in families:
        draw = partial(calibrated, family)
        rates = rates_of(("witness", family), draw, 64, _witnessed, settings.power_sets)
        rows.append((family, *map(str, rates)))
        failures.extend(
            f"{what} on {family}: {rate}"
            for what, rate in zip(("groups", "band"), rates, strict=True)
            if not rate.within(ALPHA, 0.01 / (2 * len(families)), upper_only=True)
        )
    body = (
        f"Share of data sets from calibrated models, {settings.power_sets:,} for each family, 64 cases, "
        f"about which anything false\nis stated at alpha = {ALPHA}: that any of all groups and segments is "
        "miscalibrated, or that the witness leaves its\nband anywhere.\n\n"
        f"{table(('predictions', 'groups', 'band'), rows)}\n\n{_verdict(failures)}\n\n"
        f"{environment.describe(load)}"
    )
    return Section("witness", "False statements of the witness", body, tuple(failures))


# -- monitor ---------------------------------------------------------------------------------


def _independent(n: int, rng: np.random.Generator) -> Any:
    pred = wc.Normal(rng.normal(size=n), np.exp(0.3 * rng.normal(size=n)))
    return pred.sample(rng), pred


def _autoregressive(n: int, rng: np.random.Generator) -> Any:
    y = np.zeros(n + 1)
    for t in range(n):
        y[t + 1] = 0.8 * y[t] + rng.normal()
    return y[1:], wc.Normal(0.8 * y[:-1], np.ones(n))


def _classes(n: int, rng: np.random.Generator) -> Any:
    pred = wc.Categorical(rng.dirichlet(np.ones(3), n))
    return pred.sample(rng), pred


STREAMS: dict[str, Callable[[int, np.random.Generator], Any]] = {
    "normals": _independent,
    "autoregressive normals": _autoregressive,
    "three classes": _classes,
}
SHIFTS = ((1.0, 0), (0.5, 0), (0.25, 0), (0.5, 200))
"""In predicted standard deviations, and the case at which it begins."""


def _monitored(y: Any, pred: Any, *, rng: np.random.Generator) -> tuple[float]:
    """Anytime-valid p-value at the end: at most alpha where there was an alarm, ever."""
    return (Monitor(rng=rng, draws=19, alpha=ALPHA).update(y, pred).pvalue,)


def monitor(settings: Settings) -> Section:
    """False alarms of the monitor over 1000 steps, and how long it takes to find a shift."""
    load = environment.load_average()
    failures: list[str] = []
    rows: list[tuple[str, ...]] = []
    for name, stream in STREAMS.items():
        (rate,) = rates_of(("monitor", name), stream, STEPS, _monitored, settings.monitor_streams)
        rows.append((name, str(rate)))
        if not rate.within(ALPHA, 0.01 / len(STREAMS), upper_only=True):
            failures.append(f"{name}: {rate} over {rate.total} streams")
    delays = [_delay(shift, start, settings.monitor_streams // 5) for shift, start in SHIFTS]
    header = ("shift", "begins at", "found", "median delay", "90% within")
    body = (
        f"Share of {settings.monitor_streams:,} streams of {STEPS:,} cases from calibrated models with an "
        f"alarm at alpha = {ALPHA}, ever;\n19 draws for each case, the kernel from the first 20 "
        "predictions.\n\n"
        f"{table(('predictions', 'false alarms'), rows)}\n\n{_verdict(failures)}\n\n"
        f"Cases from the beginning of a shift of normal targets, in predicted standard deviations, to the "
        f"alarm,\nover {settings.monitor_streams // 5:,} streams of {STEPS:,} cases.\n\n"
        f"{table(header, delays)}\n\n{environment.describe(load)}"
    )
    return Section("monitor", "False alarms and delays of the monitor", body, tuple(failures))


def _delay(shift: float, start: int, streams: int) -> tuple[str, ...]:
    found: list[float] = []
    for r in range(streams):
        for_data, for_monitor = generators(("delay", shift, start), r)
        y, pred = _independent(STEPS, for_data)
        y = y + np.where(np.arange(STEPS) >= start, shift, 0.0) * pred.scale
        alarm = Monitor(rng=for_monitor, draws=19, alpha=ALPHA).update(y, pred).alarm_at
        found.append(np.inf if alarm is None else alarm - start)
    rate = Rate(int(np.isfinite(found).sum()), len(found))
    half, most = (np.quantile(found, q, method="higher") for q in (0.5, 0.9))
    return f"{shift:g}", str(start), str(rate), f"{half:.0f}", f"{most:.0f}"


def _verdict(failures: list[str]) -> str:
    if not failures:
        return "All cells are within their bounds: binomial, 1% over the table together."
    return "Out of bounds: " + "; ".join(failures) + "."
