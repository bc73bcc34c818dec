"""Errors of calibration tests on the paper's synthetic models."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reproduction import published
from reproduction.compare import Agreement, compare_proportions
from reproduction.experiments.locations import cme_pvalues
from reproduction.experiments.synthetic import draw_cases, draw_test_locations
from reproduction.tasks import FloatArray, Record, Task, generator, pieces
from wellcal import DiagonalNormal, calibration_test
from wellcal.engines import Tiled
from wellcal.hypotests import MeanEmbedding
from wellcal.kernels import paper_kernel

Cell = tuple[str, int, int, str]
"""Model, dimension, number of cases, test."""

Options = dict[str, Any]
"""Options of a test."""

ALPHA = 0.05
LOCATIONS = 10
_STREAM, _LOCATION_STREAM, _TEST_STREAM = 3, 30, 31
PAPER_TESTS = published.TESTS
CME_TESTS = ("CME", "CME (F)")
EXACT_TESTS = ("exact", "auto")
OUR_TESTS = ("CME (F)", "pearson", *EXACT_TESTS)
TESTS = (*PAPER_TESTS, *OUR_TESTS)

# Seconds for one data set on one core, measured roughly: the fast tests together, and both exact
# ones together for 100 resamples.
_FAST_SECONDS = {
    1: {4: 3e-3, 16: 9e-3, 64: 1.1e-2, 256: 2.5e-2, 1024: 0.14},
    10: {4: 6e-3, 16: 1.4e-2, 64: 1.9e-2, 256: 5e-2, 1024: 0.39},
}
_EXACT_SECONDS = {
    1: {4: 1.2e-3, 16: 1.6e-3, 64: 7e-3, 256: 4.4e-2, 1024: 0.39},
    10: {4: 1.9e-3, 16: 3.2e-3, 64: 1.5e-2, 256: 0.14, 1024: 1.25},
}
_PIECE_SECONDS = 4.0


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment.

    Attributes
    ----------
    cases
        Numbers of cases.
    data_sets
        Data sets for each cell.
    exact_sets, exact_resamples
        Data sets for the tests "exact" and "auto", and their resamples, by number of cases.
    location_sets
        Sets of locations over which CME is repeated; the first is that of the table.
    """

    cases: tuple[int, ...]
    data_sets: int
    bootstrap_resamples: int
    exact_sets: dict[int, int]
    exact_resamples: dict[int, int]
    location_sets: int


FULL = Sizes(
    published.SIZES,
    500,
    1000,
    {4: 500, 16: 500, 64: 500, 256: 500, 1024: 50},
    {4: 999, 16: 999, 64: 499, 256: 199, 1024: 199},
    20,
)
QUICK = Sizes((4, 16, 64), 40, 1000, {4: 40, 16: 40, 64: 20}, {4: 99, 16: 99, 64: 99}, 5)


def stages(sizes: Sizes, seed: int, folder: Path) -> list[list[Task]]:
    """All tasks; none waits for another, and nothing is kept in `folder`."""
    tasks: list[Task] = []
    for model_index, model in enumerate(published.MODELS):
        for d in published.DIMENSIONS:
            for n in sizes.cases:
                place = (seed, model_index, d, n)
                fast = _FAST_SECONDS[d][n]
                for part in pieces(sizes.data_sets, max(1, round(_PIECE_SECONDS / fast))):
                    key = f"{model} d={d} n={n} {part.start}-{part.stop}"
                    arguments = (
                        *place,
                        part.start,
                        part.stop,
                        sizes.bootstrap_resamples,
                        sizes.location_sets,
                    )
                    tasks.append(Task(key, run_fast, arguments, fast * len(part)))
                resamples = sizes.exact_resamples[n]
                slow = 1e-3 + _EXACT_SECONDS[d][n] * resamples / 100
                for part in pieces(sizes.exact_sets[n], max(1, round(_PIECE_SECONDS / slow))):
                    key = f"{model} d={d} n={n} exact {part.start}-{part.stop}"
                    arguments = (*place, part.start, part.stop, resamples)
                    tasks.append(Task(key, run_exact, arguments, slow * len(part)))
    return [tasks]


def fixed_locations(seed: int, d: int, index: int) -> tuple[DiagonalNormal, FloatArray]:
    """The ten locations of set `index`, the same for all data sets of a dimension."""
    return draw_test_locations(generator(seed, _LOCATION_STREAM, d, index), LOCATIONS, d)


def run_fast(
    seed: int, model_index: int, d: int, n: int, start: int, stop: int, resamples: int, location_sets: int
) -> Record:
    """The paper's tests and the fast ones of ours, on data sets start .. stop - 1 of a cell."""
    locations = fixed_locations(seed, d, 0)
    methods = skce_methods(resamples) | {"pearson": {"method": "pearson"}}
    refused = None
    if n > LOCATIONS:
        methods["CME"] = {"method": MeanEmbedding(reference="chi2"), "locations": locations}
        methods["CME (F)"] = {"method": MeanEmbedding(reference="F"), "locations": locations}
    else:
        refused = _refusal(seed, model_index, d, n, locations)
    record = run_tests(seed, model_index, d, n, range(start, stop), methods)
    record["refused"] = refused
    if refused is None:
        record["spread"] = _rejections_by_locations(
            seed, model_index, d, n, range(start, stop), location_sets
        )
    return record


def run_exact(seed: int, model_index: int, d: int, n: int, start: int, stop: int, resamples: int) -> Record:
    """The exact tests on data sets start .. stop - 1 of a cell."""
    methods: dict[str, Options] = {name: {"method": name, "n_resamples": resamples} for name in EXACT_TESTS}
    return run_tests(seed, model_index, d, n, range(start, stop), methods)


def _data(seed: int, model_index: int, d: int, n: int, index: int) -> tuple[FloatArray, DiagonalNormal]:
    rng = generator(seed, _STREAM, model_index, d, n, index)
    return draw_cases(rng, n, d, published.MODELS[model_index])


def skce_methods(resamples: int) -> dict[str, Options]:
    """The paper's tests with SKCE by name, as options of :func:`wellcal.calibration_test`."""
    return {
        "SKCE (B = 2)": {"method": "block", "block_size": 2},
        "SKCE (B = √n)": {"method": "block", "block_size": "sqrt"},
        "SKCE (B = n)": {"method": "bootstrap", "n_resamples": resamples},
    }


def run_tests(
    seed: int, model_index: int, d: int, n: int, indices: range, methods: dict[str, Options]
) -> Record:
    """p-values and smallest times of some tests on some data sets of a cell."""
    pvalues: dict[str, list[float]] = defaultdict(list)
    seconds = dict.fromkeys(methods, float("inf"))
    unbounded: dict[str, int] = defaultdict(int)
    for index in indices:
        y, pred = _data(seed, model_index, d, n, index)
        for name, options in methods.items():
            # One stream for each test: adding a test to the list does not change the others.
            rng = generator(seed, _TEST_STREAM, model_index, d, n, index, TESTS.index(name))
            begin = time.perf_counter()
            try:
                pvalue = calibration_test(
                    y, pred, kernel=paper_kernel, rng=rng, engine=Tiled(threads=1), progress=False, **options
                ).pvalue
            except ValueError:
                if name not in CME_TESTS:
                    raise
                # A deviation without spread in some direction: Q, as the paper has it, is infinite.
                pvalue = 0.0
                unbounded[name] += 1
            seconds[name] = min(seconds[name], time.perf_counter() - begin)
            pvalues[name].append(pvalue)
    place = {"model": published.MODELS[model_index], "d": d, "n": n, "start": indices.start}
    return {**place, "pvalues": dict(pvalues), "seconds": seconds, "unbounded": dict(unbounded)}


def _refusal(seed: int, model_index: int, d: int, n: int, locations: Any) -> str:
    """What the library answers where there are no more cases than locations."""
    y, pred = _data(seed, model_index, d, n, 0)
    try:
        method = MeanEmbedding(reference="chi2")
        calibration_test(y, pred, kernel=paper_kernel, method=method, locations=locations)
    except ValueError as error:
        return str(error)
    raise RuntimeError(f"the CME test accepted {n} cases for {LOCATIONS} locations")


def _rejections_by_locations(
    seed: int, model_index: int, d: int, n: int, indices: range, sets: int
) -> list[int]:
    """Rejections by the paper's CME test for each set of locations."""
    drawn = [fixed_locations(seed, d, index) for index in range(sets)]
    rejections = np.zeros(sets, dtype=int)
    for index in indices:
        rejections += cme_pvalues(*_data(seed, model_index, d, n, index), drawn) <= ALPHA
    return rejections.tolist()


# -- summary ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellSummary:
    """Wrong decisions of one test on one kind of data set.

    Attributes
    ----------
    errors, data_sets
        Wrong decisions, of how many.
    seconds
        Smallest time.
    comparison
        Beside the published proportion, where there is one.
    spread
        For CME: error rate for each set of locations, and whether the published one is compatible with it.
    """

    errors: int
    data_sets: int
    seconds: float
    comparison: Agreement | None = None
    published_seconds: float | None = None
    spread: tuple[tuple[float, bool], ...] = ()

    @property
    def rate(self) -> float:
        """Proportion of wrong decisions."""
        return self.errors / self.data_sets

    @property
    def matched(self) -> bool:
        """Whether the published proportion is compatible with ours, or for CME with some set of locations."""
        assert self.comparison is not None
        return self.comparison.matched or any(fits for _, fits in self.spread)


@dataclass(frozen=True)
class Summary:
    """What the experiment found.

    Attributes
    ----------
    cells
        By model, dimension, number of cases and test.
    refused
        What the library says for cells where it refuses.
    unbounded
        Data sets where CME found a deviation without spread, which counts as a rejection.
    sizes
        Of the experiment.
    """

    cells: dict[Cell, CellSummary]
    refused: dict[Cell, str]
    unbounded: dict[Cell, int]
    sizes: Sizes

    @property
    def compared(self) -> dict[Cell, CellSummary]:
        """Cells with a published number."""
        return {cell: found for cell, found in self.cells.items() if found.comparison is not None}


def summarise(records: dict[str, Record], sizes: Sizes, seed: int) -> Summary:
    """Tables from the records of all tasks."""
    pvalues: dict[Cell, list[float]] = defaultdict(list)
    seconds: dict[Cell, float] = {}
    spread: dict[Cell, FloatArray] = {}
    refused: dict[Cell, str] = {}
    unbounded: dict[Cell, int] = defaultdict(int)
    for record in records.values():
        place = (record["model"], record["d"], record["n"])
        for name, times in record["unbounded"].items():
            unbounded[*place, name] += times
        for name, values in record["pvalues"].items():
            cell = (*place, name)
            pvalues[cell].extend(values)
            seconds[cell] = min(seconds.get(cell, float("inf")), record["seconds"][name])
        if record.get("refused"):
            refused[*place, "CME"] = record["refused"]
        if "spread" in record:
            cell = (*place, "CME")
            spread[cell] = spread.get(cell, 0) + np.asarray(record["spread"])
    count = sum(cell in published.decision_errors() for cell in pvalues)
    cells = {
        cell: _summarise_cell(cell, np.asarray(found), seconds[cell], spread.get(cell), count)
        for cell, found in sorted(pvalues.items(), key=lambda item: _order(item[0]))
    }
    return Summary(cells, refused, dict(unbounded), sizes)


def _summarise_cell(
    cell: Cell, pvalues: FloatArray, seconds: float, spread: FloatArray | None, comparisons: int
) -> CellSummary:
    rejected, total = int(np.sum(pvalues <= ALPHA)), len(pvalues)
    errors = rejected if cell[0] == "calibrated" else total - rejected
    known = published.decision_errors().get(cell)
    if known is None:
        return CellSummary(errors, total, seconds)

    def beside(wrong: int) -> Agreement:
        return compare_proportions(
            wrong, total, known.errors, published_count=published.DATA_SETS, comparisons=comparisons
        )

    rates: tuple[tuple[float, bool], ...] = ()
    if spread is not None:
        wrong = spread if cell[0] == "calibrated" else total - spread
        rates = tuple((float(w) / total, beside(int(w)).matched) for w in wrong)
    return CellSummary(errors, total, seconds, beside(errors), known.seconds, rates)


def _order(cell: Cell) -> tuple[Any, ...]:
    model, d, n, name = cell
    return published.MODELS.index(model), d, TESTS.index(name), n
