"""The paper's own table of times, cell by cell: ours on one core beside those published."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import wellcal as wc
from benchmarks import environment
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.timing import one_thread, take_turns
from reproduction import published
from reproduction.experiments.decisions import fixed_locations
from reproduction.experiments.estimators import ESTIMATORS
from reproduction.experiments.plant import NOTHING
from reproduction.experiments.synthetic import draw_data_sets
from wellcal.engines import Tiled
from wellcal.hypotests import Block, MeanEmbedding

LONG = 1e-3
"""Published seconds from which a cell must be met as it stands; below, the fixed cost of a call is added."""
RESAMPLES = 1000
REPEATED = 3e-3
"""Seconds that are timed together at least: one short call is too short for the clock."""

Run = Callable[[], float]


@dataclass(frozen=True)
class Cell:
    """Estimator or test, dimension, and number of cases, with the smallest time published for it."""

    name: str
    is_test: bool
    d: int
    n: int

    @property
    def seconds(self) -> float:
        """The smaller of the two models."""
        found = published.decision_errors() if self.is_test else published.estimator_errors()
        return min(found[model, self.d, self.n, self.name].seconds for model in published.MODELS)

    def run(self) -> Run | None:
        """The call; None where the library refuses it, as a statistic of more locations than cases."""
        data = draw_data_sets(np.random.default_rng(self.n), 1, self.n, self.d, "calibrated", NOTHING)
        y, pred = data.y[0], data.predictions(0)
        options: dict[str, Any] = {"kernel": NOTHING.kernel, "engine": Tiled(threads=1)}
        if not self.is_test:
            options |= ESTIMATORS[self.name]
            return lambda: float(wc.skce(y, pred, **options))
        if self.name == "CME":
            locations = fixed_locations(0, "calibrated", self.d, 0)
            if self.n <= len(locations[1]):
                return None
            options |= {"method": MeanEmbedding(reference="chi2"), "locations": locations}
        elif self.name == "SKCE (B = n)":
            options |= {"method": "bootstrap", "n_resamples": RESAMPLES, "rng": 0}
        else:
            options["method"] = Block(2 if self.name == "SKCE (B = 2)" else "sqrt")
        return lambda: float(wc.calibration_test(y, pred, **options).pvalue)


@dataclass(frozen=True)
class Timed:
    """A cell, its CPU time, and what it may take."""

    cell: Cell
    ours: float
    limit: float

    @property
    def ratio(self) -> float:
        return self.limit / self.ours


def paper_speed(settings: Settings) -> Section:
    """All cells, estimators and tests, of both dimensions."""
    load = environment.load_average()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the paper's tests are run where they are known to fail
        with one_thread():
            found = [timed for line in _lines(settings) for timed in _timed(line, settings)]
    rows = [
        (
            f"{'test' if t.cell.is_test else 'estimator'} {t.cell.name}",
            str(t.cell.d),
            f"{t.cell.n:,}",
            _shown(t.cell.seconds),
            _shown(t.ours),
            _shown(t.limit),
            f"{t.ratio:.2f}",
        )
        for t in found
    ]
    failures = tuple(
        f"{t.cell.name}{' (test)' if t.cell.is_test else ''}, d = {t.cell.d}, n = {t.cell.n}: {t.ratio:.2f}"
        for t in found
        if t.ratio < (1.0 if t.cell.seconds >= LONG else 1.0 - settings.paper_noise)
    )
    body = "\n".join(
        [
            "CPU times on one core beside the smallest that were published (Julia, one core of 3.6 GHz; the",
            "smaller of the two models). *Limit* is the published time where that is a millisecond or more,",
            "and else the published time on top of what the same call costs at the smallest number of cases.",
            "*Ratio* is the limit over ours: 1 or more is wanted; where the fixed cost of a call is in it, a",
            f"noise of {settings.paper_noise:.0%} is let pass. The paper's CME test is refused where there",
            "are no more cases than locations.",
            "",
            table(("", "d", "n", "published", "ours", "limit", "ratio"), rows),
            "",
            "All are as wanted." if not failures else "Not as wanted: " + "; ".join(failures) + ".",
            "",
            environment.describe(load),
        ]
    )
    return Section("paper-speed", "The paper's table of times", body, failures)


def _lines(settings: Settings) -> Iterator[list[Cell]]:
    """Cells by what grows with the number of cases."""
    for is_test, names in ((False, published.ESTIMATORS), (True, published.TESTS)):
        for name in names:
            for d in published.DIMENSIONS:
                yield [Cell(name, is_test, d, n) for n in published.SIZES if n <= settings.paper_cases]


def _timed(line: list[Cell], settings: Settings) -> list[Timed]:
    """Times of the cells of a line, which take turns."""
    runs = {cell: run for cell in line if (run := cell.run()) is not None}
    single = take_turns({str(cell.n): run for cell, run in runs.items()}, budget=settings.budget, rounds=2)
    calls = {cell: max(1, round(REPEATED / max(single[str(cell.n)].best_cpu, 1e-5))) for cell in runs}
    timings = take_turns(
        {str(cell.n): _repeated(run, calls[cell]) for cell, run in runs.items()},
        budget=settings.budget,
        rounds=settings.rounds,
    )
    ours = {cell: timings[str(cell.n)].best_cpu / calls[cell] for cell in runs}
    fixed = ours[min(ours, key=lambda cell: cell.n)]
    return [
        Timed(cell, seconds, cell.seconds if cell.seconds >= LONG else cell.seconds + fixed)
        for cell, seconds in ours.items()
    ]


def _repeated(run: Run, calls: int) -> Run:
    def several() -> float:
        for _ in range(calls - 1):
            run()
        return run()

    return several


def _shown(seconds: float) -> str:
    return f"{1e6 * seconds:.3g} µs" if seconds < LONG else f"{1e3 * seconds:.3g} ms"
