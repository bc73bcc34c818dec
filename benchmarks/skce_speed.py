"""Benchmarks of `skce`: time and peak memory of all competitors, case by case."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from benchmarks import environment
from benchmarks.cases import Case, ClassCase, NormalCase
from benchmarks.competitors import COMPETITORS, OURS, Run, UnavailableError
from benchmarks.peak import peak_memory
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.timing import Timing, check_agreement, mean_magnitude, take_turns


@dataclass(frozen=True)
class Comparison:
    """What was found on one case."""

    case: Case
    timings: dict[str, Timing]
    peaks: dict[str, int]
    absent: dict[str, str]
    difference: float

    def ratio(self, name: str) -> float:
        """Time of a competitor over that of wellcal: above 1 where wellcal is faster."""
        return self.timings[name].best / self.timings[OURS].best


def normals(settings: Settings) -> Section:
    """Univariate normals, paper's kernel."""
    load = environment.load_average()
    found = [compare(NormalCase(n), settings) for n in settings.normals]
    return Section("normals", "Univariate normals", _body(_NORMALS, found, load))


def classes(settings: Settings) -> Section:
    """Class probabilities, default kernel."""
    load = environment.load_average()
    found = [compare(ClassCase.with_default_scale(n, c), settings) for n, c in settings.classes]
    return Section("classes", "Class probabilities", _body(_CLASSES, found, load))


_NORMALS = """\
Unbiased SKCE of univariate normals with `ExpDistance(Wasserstein()) @ Gaussian()`, float64, all pairs i < j."""

_CLASSES = """\
Unbiased SKCE of class probabilities with the default kernel, `ExpDistance(TotalVariation(), scale) @ Delta()`, float64,
all pairs i < j. wellcal is called without a kernel: its times include finding the scale, which the others are given."""

_HOW = """\
All start from the same arrays and ran in one process, in turns after a warm-up; their values agree to {difference} of
the mean |h|. Time is the best of the runs, "noise" how far the median is above it, "CPU" the time of all threads together.
Ratio is a competitor's time over that of wellcal. Memory is the peak of a fresh process above its imports and inputs."""


# -- measuring -------------------------------------------------------------------------------


def compare(case: Case, settings: Settings) -> Comparison:
    """Time and weigh all competitors that can take part in `case`; their values must agree."""
    _progress(f"{case.title}: preparing")
    runs, absent = available(case)
    # Memory first: what the timed runs leave in this process would be taken from the children.
    peaks: dict[str, int] = {}
    for name in runs:
        _progress(f"{case.title}: memory of {name}")
        peaks[name] = peak_memory(name, case)
    _progress(f"{case.title}: timing {', '.join(runs)}")
    timings = take_turns(runs, budget=settings.budget, rounds=settings.rounds)
    values = {name: timing.value for name, timing in timings.items()}
    return Comparison(case, timings, peaks, absent, check_agreement(values, mean_magnitude(case)))


def available(case: Case) -> tuple[dict[str, Run], dict[str, str]]:
    """Competitors that can take part in `case`, and why the others cannot."""
    runs: dict[str, Run] = {}
    absent: dict[str, str] = {}
    for competitor in COMPETITORS:
        try:
            runs[competitor.name] = competitor.prepare(case)
        except UnavailableError as reason:
            absent[competitor.name] = str(reason)
    return runs, absent


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# -- reporting -------------------------------------------------------------------------------

_COLUMNS = ("", "threads", "time", "ratio", "Mpairs/s", "CPU", "runs", "noise", "peak memory")


def _body(what: str, found: list[Comparison], load: float | None) -> str:
    difference = f"{max(comparison.difference for comparison in found):.0e}"
    parts = [what, _HOW.format(difference=difference)]
    for comparison in found:
        parts.append(f"### {comparison.case.title}\n\n{_table(comparison)}")
        parts.extend(f"- {name} is left out: {reason}." for name, reason in comparison.absent.items())
        parts.append(_reading(comparison))
    parts.append(environment.describe(load))
    return "\n\n".join(parts)


def _table(comparison: Comparison) -> str:
    rows: list[tuple[str, ...]] = []
    for competitor in COMPETITORS:
        timing = comparison.timings.get(competitor.name)
        if timing is None:
            rows.append((competitor.name, competitor.threads, *["–"] * (len(_COLUMNS) - 2)))
            continue
        rows.append(
            (
                competitor.name,
                competitor.threads,
                _seconds(timing.best),
                f"{comparison.ratio(competitor.name):.2f}",
                f"{comparison.case.pairs / timing.best / 1e6:.1f}",
                _seconds(timing.best_cpu),
                str(len(timing.wall)),
                f"{timing.spread:.0%}" if len(timing.wall) > 1 else "?",
                f"{comparison.peaks[competitor.name] / 1e6:,.0f} MB",
            )
        )
    return table(_COLUMNS, rows)


def _seconds(value: float) -> str:
    if value < 0.9995:
        return f"{1e3 * value:.3g} ms"
    return f"{value:.3g} s"


def _reading(comparison: Comparison) -> str:
    """The ratios in words, whichever way they fall."""
    said = [_said(name, comparison.ratio(name)) for name in comparison.timings if name != OURS]
    return f"wellcal {', '.join(said)}." if said else "wellcal ran alone."


def _said(name: str, ratio: float) -> str:
    if 0.95 <= ratio <= 1.05:
        return f"is as fast as {name}"
    return (
        f"is {ratio:.1f} times as fast as {name}"
        if ratio > 1.0
        else f"is {1 / ratio:.1f} times slower than {name}"
    )
