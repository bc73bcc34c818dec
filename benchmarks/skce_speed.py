"""Benchmarks of `skce`: time and peak memory of all competitors, case by case."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from benchmarks import environment, scalar_loop
from benchmarks.cases import Case, ClassCase, NormalCase
from benchmarks.competitors import COMPETITORS, OURS, Run, UnavailableError
from benchmarks.peak import FailedRunError, peak_memory
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.timing import Timing, check_agreement, mean_magnitude, take_turns

_NORMALS = """\
Unbiased SKCE of univariate normals with `ExpDistance(Wasserstein()) @ Gaussian()`: float64, pairs i < j."""

_CLASSES = """\
Unbiased SKCE of class probabilities with the default kernel, `ExpDistance(TotalVariation(), s) @ Delta()`:
float64, pairs i < j. wellcal is called without a kernel, so that its times include finding the scale s; the
others are given it."""

_HOW = f"""\
All start from the same arrays and ran in one process, in turns after a warm-up; their values agree to
%s of the mean of |h|. *Time* is the best of the runs, *noise* how far their median is above it. *Ratio*
is a competitor's time over wellcal's. *CPU* is the time of all threads together, and *CPU ratio* the ratio of
these, which other programs on the machine disturb less. *Memory* is the peak of a fresh process above its
imports and inputs.

The C loop is compiled with `cc {" ".join(scalar_loop.FLAGS[:2])}`: scalar exponentials, no `-ffast-math`.
NumPy holds whole matrices; differences of class probabilities, which do not fit, go by blocks of rows.
PyKeOps sums over ordered pairs, twice as many; its compilation is not timed."""


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


# -- measuring -------------------------------------------------------------------------------


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

    def cpu_ratio(self, name: str) -> float:
        """The same for the time of all threads together."""
        return self.timings[name].best_cpu / self.timings[OURS].best_cpu


def compare(case: Case, settings: Settings) -> Comparison:
    """Time and weigh all competitors that can take part in `case`; their values must agree."""
    runs, absent = available(case)
    # Memory first: a competitor that crashes does so in a process of its own, and is left out here.
    peaks: dict[str, int] = {}
    for name in list(runs):
        _progress(f"{case.title}: memory of {name}")
        try:
            peaks[name] = peak_memory(name, case)
        except FailedRunError as error:
            if name == OURS:
                raise
            absent[name] = str(error)
            del runs[name]
    _progress(f"{case.title}: timing")
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

_COLUMNS = ("", "threads", "time", "ratio", "Mpairs/s", "CPU", "CPU ratio", "runs", "noise", "memory")


def _body(what: str, found: list[Comparison], load: float | None) -> str:
    parts = [what, _HOW % f"{max(comparison.difference for comparison in found):.0e}"]
    for comparison in found:
        parts.append(f"### {comparison.case.title}\n\n{_table(comparison)}")
        parts.append("\n".join([_reading(comparison), *_left_out(comparison)]))
    parts.append(f"{environment.describe(load)} {_quietness(found)}")
    return "\n\n".join(parts)


def _table(comparison: Comparison) -> str:
    rows: list[tuple[str, ...]] = []
    for competitor in COMPETITORS:
        name = competitor.name
        if name not in comparison.timings:
            continue
        timing = comparison.timings[name]
        rows.append(
            (
                name,
                competitor.threads,
                _seconds(timing.best),
                f"{comparison.ratio(name):.2f}",
                f"{comparison.case.pairs / timing.best / 1e6:.1f}",
                _seconds(timing.best_cpu),
                f"{comparison.cpu_ratio(name):.2f}",
                str(len(timing.wall)),
                f"{timing.spread:.0%}" if len(timing.wall) > 1 else "?",
                f"{comparison.peaks[name] / 1e6:,.0f} MB",
            )
        )
    return table(_COLUMNS, rows)


def _seconds(value: float) -> str:
    return f"{1e3 * value:.3g} ms" if value < 0.9995 else f"{value:.3g} s"


def _reading(comparison: Comparison) -> str:
    """The ratios in words, whichever way they fall."""
    others = [name for name in comparison.timings if name != OURS]
    said = "; ".join(f"{name}: {_in_words(comparison.ratio(name))}" for name in others)
    return f"wellcal beside {said}." if said else "wellcal ran alone."


def _in_words(ratio: float) -> str:
    if 0.95 <= ratio <= 1.05:
        return "as fast"
    return f"{ratio:.1f} times as fast" if ratio > 1.0 else f"slower, it takes {1 / ratio:.1f} times as long"


def _left_out(comparison: Comparison) -> list[str]:
    return [f"{name} is left out: {reason}." for name, reason in comparison.absent.items()]


def _quietness(found: list[Comparison]) -> str:
    """Whether the ratios can be trusted."""
    noise = max((t.spread for c in found for t in c.timings.values() if len(t.wall) > 1), default=0.0)
    if noise < 0.1:
        return f"The machine was quiet: noise at most {noise:.0%}."
    return f"The machine was busy: noise up to {noise:.0%}, so the CPU ratios say more than the ratios."
