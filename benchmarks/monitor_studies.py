"""Studies of the monitor: false alarms, how soon a change is found, and whether its onset is told rightly."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

import wellcal as wc
from benchmarks import environment
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.studies import ALPHA, Rate, simulate
from wellcal.engines import Tiled
from wellcal.monitoring.monitor import Monitor

TOGETHER = 250  # cases that a monitor gets at a time, until it alarms: the same as one by one
LEAST_COVERAGE = 0.85
"""Of the interval of an onset: its level of 0.95 is that of likelihood ratios, which bets are not quite."""


# -- streams ---------------------------------------------------------------------------------


def _normals(n: int, rng: np.random.Generator) -> wc.Normal:
    return wc.Normal(rng.normal(size=n), np.exp(0.3 * rng.normal(size=n)))


def _independent(n: int, rng: np.random.Generator) -> Any:
    pred = _normals(n, rng)
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
"""Streams of calibrated models."""

Change = Callable[[wc.Normal, Any], Any]
NORMAL_CHANGES: dict[str, Change] = {
    "shift 0.5": lambda pred, z: z + 0.5,
    "spread 1.4": lambda pred, z: 1.4 * z,
    "spread 0.7": lambda pred, z: 0.7 * z,
    "shift 0.7 by the sign of the mean": lambda pred, z: z + 0.7 * np.sign(pred.loc),
}
"""What becomes of the standardised targets of normal predictions."""

CLASS_CHANGES: dict[str, Callable[[Any], Any]] = {
    "classes: over-confident": lambda p: p**0.5,
    "classes: one twice as likely": lambda p: p * np.array([2.0, 1.0, 1.0]),
}
"""The probabilities that targets are drawn from, up to a factor."""

CHANGES = (*NORMAL_CHANGES, *CLASS_CHANGES)


def changed(kind: str, n: int, start: int, rng: np.random.Generator) -> Any:
    """A stream of n cases that changes after `start` of them."""
    late = np.arange(n) >= start
    if kind in CLASS_CHANGES:
        p = rng.dirichlet(np.ones(3), n)
        q = CLASS_CHANGES[kind](p)
        q = np.where(late[:, None], q / q.sum(axis=1, keepdims=True), p)
        return wc.Categorical(q).sample(rng), wc.Categorical(p)
    pred = _normals(n, rng)
    z = rng.normal(size=n)
    return pred.loc + pred.scale * np.where(late, NORMAL_CHANGES[kind](pred, z), z), pred


# -- one stream ------------------------------------------------------------------------------


def watched(
    y: Any, pred: Any, rng: np.random.Generator, *, together: int = TOGETHER, **options: Any
) -> Monitor:
    """A monitor after all cases, or soon after its alarm."""
    watch = Monitor(rng=rng, engine=Tiled(threads=1), **options)
    for start in range(0, len(pred), together):
        part = slice(start, start + together)
        if watch.update(y[part], pred[part]).alarm:
            break
    return watch


def _false_alarm(for_data: Any, for_monitor: Any, *, stream: Any, steps: int) -> tuple[bool, float, int]:
    """Whether there was an alarm, and the sum and number of what each bet won."""
    watch = watched(*stream(steps, for_data), for_monitor, alpha=ALPHA)
    history = np.concatenate([[1.0], watch.history])
    won = history[1:] / history[:-1] - 1.0
    return watch.alarm, float(won.sum()), len(won)


def _found(
    for_data: Any, for_monitor: Any, *, kind: str, start: int, after: int
) -> tuple[float, bool, int, int]:
    """Delay of the alarm, whether the interval holds the onset, its width, and how late the onset is told."""
    stream = changed(kind, start + after, start, for_data)
    status = watched(*stream, for_monitor, together=TOGETHER // 2, alpha=ALPHA).status
    if status.alarm_at is None or status.onset is None or status.onset_interval is None:
        return np.inf, False, 0, 0
    first, last = status.onset_interval
    return float(status.alarm_at - start), first <= start + 1 <= last, last - first, status.onset - start - 1


def _until_alarm(for_data: Any, for_monitor: Any, *, stream: Any, steps: int, run_length: float) -> float:
    """Cases until an alarm of a detector, or all of them."""
    watch = watched(*stream(steps, for_data), for_monitor, run_length=run_length)
    return float(watch.status.alarm_at or steps)


# -- the study -------------------------------------------------------------------------------


def monitor(settings: Settings) -> Section:
    """False alarms of the monitor, fair bets, and how long it takes to find a change, early or late."""
    load = environment.load_average()
    failures: list[str] = []
    alarms = _alarms(settings, failures)
    delays = _delays(settings, failures)
    lengths = _run_lengths(settings, failures)
    steps, streams, few = settings.monitor_steps, settings.data_sets, settings.monitor_streams
    wanted = "*Wanted* is 1.5 times the median delay of the same change at 0, and 60"
    body = (
        f"Share of {streams:,} streams of {steps:,} cases from calibrated models with an alarm at alpha = "
        f"{ALPHA}, ever.\n*Mean bet* is that of the factors of the e-value, one for each case, which is 1 "
        "for a calibrated model, with its\nstandard error.\n\n"
        f"{table(('predictions', 'false alarms', 'mean bet', 'error'), alarms)}\n\n"
        f"Cases from a change to the alarm, over {few:,} streams for each row, which are enough for a "
        f"median and end {settings.monitor_after:,}\ncases after the change; streams with an alarm before it "
        f"are left out. {wanted}\ncases. *Covered* is how often the interval holds the onset, *width* its "
        "median, *late* the median of how\nmuch too late the onset is told.\n\n"
        f"{table(DELAYS, delays)}\n\n"
        f"Mean number of cases until a false alarm with `run_length`, over {few:,} streams "
        f"that are cut\noff at {settings.monitor_longest:,} cases, with its standard error.\n\n"
        f"{table(('predictions', 'run_length', 'mean', 'error'), lengths)}\n\n"
        f"{_verdict(failures)}\n\n{environment.describe(load)}"
    )
    return Section("monitor", "False alarms and delays of the monitor", body, tuple(failures))


DELAYS = ("change", "at", "early", "found", "median", "wanted", "90% within", "covered", "width", "late")
_ENOUGH = 100  # streams from which a median is compared with what is wanted


def _alarms(settings: Settings, failures: list[str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    streams = settings.data_sets
    for name, stream in STREAMS.items():
        one = partial(_false_alarm, stream=stream, steps=settings.monitor_steps)
        alarms, won, bets = (
            np.array(x) for x in zip(*simulate(("monitor", name), one, streams), strict=True)
        )
        rate = Rate(int(alarms.sum()), streams)
        mean = 1.0 + won.sum() / bets.sum()
        error = won.std() * np.sqrt(streams) / bets.sum()  # streams are independent, and won has mean zero
        rows.append(_told((name, str(rate), f"{mean:.5f}", f"{error:.5f}")))
        if not rate.within(ALPHA, 0.01 / len(STREAMS), upper_only=True):
            failures.append(f"{name}: {rate} over {rate.total} streams")
        if abs(mean - 1.0) > stats.t.isf(3e-5, streams - 1) * error:
            failures.append(f"{name}: bets are worth {mean:.5f} on average")
    return rows


def _delays(settings: Settings, failures: list[str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    cells = len(CHANGES) * len(settings.monitor_onsets)
    for kind in CHANGES:
        wanted = np.inf
        for start in settings.monitor_onsets:
            one = partial(_found, kind=kind, start=start, after=settings.monitor_after)
            found = simulate(("delay", kind, start), one, settings.monitor_streams)
            delays, covered, widths, late = (np.array(column) for column in zip(*found, strict=True))
            early = Rate(int((delays <= 0).sum()), len(delays))
            later = delays > 0
            caught = later & np.isfinite(delays)
            half, most = (np.quantile(delays[later], q, method="higher") for q in (0.5, 0.9))
            cover = Rate(int(covered[caught].sum()), int(caught.sum()))
            rows.append(
                _told(
                    (
                        kind,
                        str(start),
                        str(early),
                        f"{caught.sum() / max(later.sum(), 1):.3f}",
                        f"{half:.0f}",
                        "" if np.isinf(wanted) else f"{wanted:.0f}",
                        f"{most:.0f}",
                        str(cover),
                        f"{np.median(widths[caught]):.0f}",
                        f"{np.median(late[caught]):.0f}",
                    )
                )
            )
            if half > wanted and len(delays) >= _ENOUGH:
                failures.append(f"{kind} at {start}: found after {half:.0f}, wanted {wanted:.0f}")
            # By chance, at 1% over the table, no coverage above the least one looks like this.
            if stats.binom.cdf(cover.rejected, cover.total, LEAST_COVERAGE) < 0.01 / cells:
                failures.append(f"onset of {kind} at {start}: covered {cover}")
            if np.isinf(wanted):
                wanted = 1.5 * half + 60.0
    return rows


def _run_lengths(settings: Settings, failures: list[str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    length = settings.monitor_run_length
    for name, stream in STREAMS.items():
        one = partial(_until_alarm, stream=stream, steps=settings.monitor_longest, run_length=length)
        found = np.array(simulate(("run length", name), one, settings.monitor_streams))
        error = found.std(ddof=1) / np.sqrt(len(found))
        rows.append(_told((name, f"{length:g}", f"{found.mean():.0f}", f"{error:.0f}")))
        if found.mean() < length - stats.t.isf(1e-3, len(found) - 1) * error:
            failures.append(f"{name}: false alarms every {found.mean():.0f} cases, promised {length:g}")
    return rows


def _told(row: tuple[str, ...]) -> tuple[str, ...]:
    """The row, which is also printed: it may have taken minutes."""
    print(" | ".join(row), file=sys.stderr, flush=True)
    return row


def _verdict(failures: list[str]) -> str:
    if not failures:
        return (
            "All cells are within their bounds: false alarms and coverage binomial, 1% over a table together."
        )
    return "Out of bounds: " + "; ".join(failures) + "."
