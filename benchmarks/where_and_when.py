"""Studies of comparisons, of the witness and of the monitor: how often each claims what is not so."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import special

import wellcal as wc
from benchmarks import environment
from benchmarks.data_sets import CALIBRATED, SAMPLES, calibrated
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.studies import ALPHA, Rate, rates, simulate
from wellcal.comparison import compare
from wellcal.engines import Tiled
from wellcal.monitoring.monitor import Monitor
from wellcal.witnesses import witness

ONE_THREAD = Tiled(threads=1)
RESAMPLES = 99
STEPS = 1000
TOGETHER = 50  # cases that a monitor gets at a time, until it alarms


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


def _compared(y: Any, models: Any, *, rng: np.random.Generator) -> dict[str, float]:
    found = compare(y, *models, rng=rng, n_resamples=RESAMPLES, engine=ONE_THREAD)
    error = np.hypot(float(found.a.standard_error), float(found.b.standard_error))
    return {
        "compare": found.pvalue,
        "difference alone": found.difference_pvalue,
        "unpaired": float(2.0 * special.ndtr(-abs(float(found.estimate)) / error)),
        "gate": float(found.degenerate),  # 0 where one of the models is said to be miscalibrated
    }


def comparison(settings: Settings) -> Section:
    """Size and power of `compare`."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    names: tuple[str, ...] = ()
    for kind in COMPARISONS:
        for n in (64, 256):
            found = rates(("compare", kind, n), partial(_models, kind), n, _compared, settings.data_sets)
            names = tuple(found)
            rows.append((kind, str(n), *map(str, found.values())))
            if kind in NULL and not found["compare"].within(ALPHA, 0.01 / 6, upper_only=True):
                failures.append(f"compare, {kind}, n = {n}: {found['compare']}")
            # Each of two tests may reject at alpha.
            if kind == NULL[0] and not found["gate"].within(2 * ALPHA, 0.01 / 6, upper_only=True):
                failures.append(f"gate of compare, {kind}, n = {n}: {found['gate']}")
    body = (
        f"Rejection rates at alpha = {ALPHA} of equal calibration errors, {settings.data_sets:,} data sets "
        f"a cell, {RESAMPLES} resamples. In the\nfirst two settings the errors are equal. *Unpaired* takes "
        "the standard errors of both models as independent;\n*gate* is how often at least one model is said "
        "to be miscalibrated.\n\n"
        f"{table(('models', 'n', *names), rows)}\n\n{_verdict(failures)}\n\n{environment.describe(load)}"
    )
    return Section("compare", "Comparison of two models", body, tuple(failures))


# -- witness ---------------------------------------------------------------------------------


def _witnessed(y: Any, pred: Any, *, rng: np.random.Generator) -> dict[str, float]:
    segments = rng.integers(0, 4, len(pred))
    options: Any = {"rng": rng, "n_resamples": RESAMPLES, "engine": ONE_THREAD}
    found = witness(y, pred, 10, segments=segments, **options)
    return {"groups": found.pvalue, "band": float(np.min(found.pvalues))}


def groups(settings: Settings) -> Section:
    """Family-wise error of the statements of `witness`."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    families = (*CALIBRATED, SAMPLES)
    for family in families:
        found = rates(("witness", family), partial(calibrated, family), 64, _witnessed, settings.data_sets)
        rows.append((family, *map(str, found.values())))
        failures.extend(
            f"{what} on {family}: {rate}"
            for what, rate in found.items()
            if not rate.within(ALPHA, 0.01 / (2 * len(families)), upper_only=True)
        )
    body = (
        f"Share of {settings.data_sets:,} data sets for each family from calibrated models, 64 cases, about "
        f"which anything false\nis stated at alpha = {ALPHA}: that any of all groups and segments is "
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


def watched(y: Any, pred: Any, rng: np.random.Generator) -> Monitor:
    """A monitor after all cases, or soon after its alarm."""
    watch = Monitor(rng=rng, draws=19, alpha=ALPHA)
    for start in range(0, len(pred), TOGETHER):
        part = slice(start, start + TOGETHER)
        if watch.update(y[part], pred[part]).alarm:
            break
    return watch


def _false_alarm(for_data: Any, for_monitor: Any, *, stream: Any) -> tuple[bool, float, int]:
    """Whether there was an alarm, and the sum and number of what each bet won."""
    watch = watched(*stream(STEPS, for_data), for_monitor)
    history = watch.history[watch.warmup - 1 :]
    won = history[1:] / history[:-1] - 1.0
    return watch.alarm, float(won.sum()), len(won)


def _delay(for_data: Any, for_monitor: Any, *, shift: float, start: int) -> float:
    y, pred = _independent(STEPS, for_data)
    y = y + np.where(np.arange(STEPS) >= start, shift, 0.0) * pred.scale
    alarm = watched(y, pred, for_monitor).status.alarm_at
    return np.inf if alarm is None else float(alarm - start)


def monitor(settings: Settings) -> Section:
    """False alarms of the monitor over 1000 steps, fair bets, and how long it takes to find a shift."""
    load = environment.load_average()
    streams = settings.data_sets
    failures: list[str] = []
    rows: list[tuple[str, ...]] = []
    for name, stream in STREAMS.items():
        found = simulate(("monitor", name), partial(_false_alarm, stream=stream), streams)
        alarms, won, bets = (np.array(column) for column in zip(*found, strict=True))
        rate = Rate(int(alarms.sum()), streams)
        mean = 1.0 + won.sum() / bets.sum()
        error = won.std() * np.sqrt(streams) / bets.sum()  # streams are independent, and won has mean zero
        rows.append((name, str(rate), f"{mean:.5f}", f"{error:.5f}"))
        if not rate.within(ALPHA, 0.01 / len(STREAMS), upper_only=True):
            failures.append(f"{name}: {rate} over {rate.total} streams")
        if abs(mean - 1.0) > 4.0 * error:
            failures.append(f"{name}: bets are worth {mean:.5f} on average")
    delays = [_delays(shift, start, streams) for shift, start in SHIFTS]
    header = ("shift", "begins at", "found", "median delay", "90% within")
    body = (
        f"Share of {streams:,} streams of {STEPS:,} cases from calibrated models with an "
        f"alarm at alpha = {ALPHA}, ever;\n19 draws for each case, the kernel from the first 20 "
        "predictions. *Mean bet* is that of the factors of the\ne-value, one for each case, which is 1 for a "
        "calibrated model, with its standard error.\n\n"
        f"{table(('predictions', 'false alarms', 'mean bet', 'error'), rows)}\n\n{_verdict(failures)}\n\n"
        f"Cases from the beginning of a shift of normal targets, in predicted standard deviations, to the "
        f"alarm,\nover {streams:,} streams of {STEPS:,} cases.\n\n"
        f"{table(header, delays)}\n\n{environment.describe(load)}"
    )
    return Section("monitor", "False alarms and delays of the monitor", body, tuple(failures))


def _delays(shift: float, start: int, streams: int) -> tuple[str, ...]:
    found = simulate(("delay", shift, start), partial(_delay, shift=shift, start=start), streams)
    rate = Rate(int(np.isfinite(found).sum()), len(found))
    half, most = (np.quantile(found, q, method="higher") for q in (0.5, 0.9))
    return f"{shift:g}", str(start), str(rate), f"{half:.0f}", f"{most:.0f}"


def _verdict(failures: list[str]) -> str:
    if not failures:
        return "All cells are within their bounds: binomial, 1% over the table together."
    return "Out of bounds: " + "; ".join(failures) + "."
