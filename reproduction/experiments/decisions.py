"""Errors of calibration tests on the paper's synthetic models."""

from __future__ import annotations

import functools
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction import published
from reproduction.experiments.locations import cme_pvalues
from reproduction.experiments.plant import NOTHING, Plant
from reproduction.experiments.synthetic import draw_cases, draw_data_sets, draw_test_locations
from reproduction.ranks import Repeated, proportion_scale
from reproduction.tasks import FloatArray, Record, Task, generator, pieces
from wellcal import DiagonalNormal, calibration_test
from wellcal.engines import Tiled
from wellcal.hypotests import Bootstrap, MeanEmbedding, TestResult

Cell = tuple[str, int, int, str]
"""Model, dimension, number of cases, test."""

ALPHA = 0.05
LOCATIONS = 10
REPEATS = 199
"""Splits of decisions and sets of locations among which the published ones are ranked."""

_STREAM, _LOCATION_STREAM, _TEST_STREAM, _SPLIT_STREAM = 3, 30, 31, 32
BLOCK_TESTS = ("SKCE (B = 2)", "SKCE (B = √n)")
BOOTSTRAP, OUR_BOOTSTRAP = "SKCE (B = n)", "bootstrap, n SKCE_u"
CME = "CME"
PAPER_TESTS = published.TESTS
OUR_TESTS = (OUR_BOOTSTRAP, "CME (F)", "pearson", "exact", "auto")
TESTS = (*PAPER_TESTS, *OUR_TESTS)

# Seconds for one data set on one core, measured roughly: for the exact tests, of 100 resamples.
_SECONDS = {
    "block": {
        1: {4: 6e-4, 16: 8e-4, 64: 1e-3, 256: 2e-3, 1024: 4e-3},
        10: {4: 1.2e-3, 16: 1.6e-3, 64: 2.5e-3, 256: 5e-3, 1024: 1.2e-2},
    },
    "whole": {
        1: {4: 8e-4, 16: 1e-3, 64: 1.6e-3, 256: 7e-3, 1024: 5e-2},
        10: {4: 1.8e-3, 16: 2e-3, 64: 3e-3, 256: 1.2e-2, 1024: 0.11},
    },
    "exact": {
        1: {4: 6e-4, 16: 8e-4, 64: 3.5e-3, 256: 2.2e-2, 1024: 0.2},
        10: {4: 1e-3, 16: 1.6e-3, 64: 7e-3, 256: 7e-2, 1024: 0.6},
    },
}
_CME_SECONDS = {1: 0.25, 10: 0.5}  # for a repeat at all numbers of cases, 500 data sets each
_PIECE_SECONDS = 10.0


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment.

    Attributes
    ----------
    data_sets
        Data sets for the paper's tests with SKCE, by number of cases.
    bootstrap_resamples
        Of the bootstrap test.
    our_sets, exact_resamples
        Data sets for tests that are not the paper's, and resamples of "exact" and "auto", by number of cases.
    location_sets
        Repeats of CME: sets of locations, each with its own 500 data sets of every size.
    tests, models, dimensions
        Those that are run.
    """

    data_sets: dict[int, int]
    bootstrap_resamples: int
    our_sets: dict[int, int]
    exact_resamples: dict[int, int]
    location_sets: int = REPEATS
    tests: tuple[str, ...] = PAPER_TESTS
    models: tuple[str, ...] = published.MODELS
    dimensions: tuple[int, ...] = published.DIMENSIONS

    @property
    def cases(self) -> tuple[int, ...]:
        """Numbers of cases."""
        return tuple(self.data_sets)


FULL = Sizes(
    {4: 20_000, 16: 4000, 64: 4000, 256: 2000, 1024: 1000},
    1000,
    {4: 500, 16: 500, 64: 500, 256: 100, 1024: 20},
    {4: 999, 16: 999, 64: 499, 256: 499, 1024: 499},
)
QUICK = Sizes({4: 1000, 16: 500}, 1000, {4: 20, 16: 20}, {4: 199, 16: 199}, location_sets=99)


def tasks(sizes: Sizes, seed: int, plant: Plant = NOTHING) -> list[Task]:
    """All tasks, in no order."""
    out: list[Task] = []
    for model in sizes.models:
        for d in sizes.dimensions:
            out += _cme_tasks(sizes, seed, model, d, plant)
            for n in sizes.cases:
                out += _test_tasks(sizes, seed, model, d, n, plant)
    return out


def _test_tasks(sizes: Sizes, seed: int, model: str, d: int, n: int, plant: Plant) -> list[Task]:
    out: list[Task] = []
    ours = [name for name in OUR_TESTS if name != OUR_BOOTSTRAP] if n in sizes.our_sets else []
    for name in (*(test for test in sizes.tests if test != CME), *ours):
        resamples = sizes.bootstrap_resamples if name == BOOTSTRAP else sizes.exact_resamples.get(n, 0)
        kind = "block" if name in BLOCK_TESTS else "exact" if name in ("exact", "auto") else "whole"
        cost = _SECONDS[kind][d][n] * (resamples / 100 if kind == "exact" else 1.0)
        count = sizes.data_sets[n] if name in PAPER_TESTS else sizes.our_sets[n]
        for part in pieces(count, max(1, round(_PIECE_SECONDS / cost))):
            key = f"{model} d={d} n={n} {name} {part.start}-{part.stop}"
            place = (seed, model, d, n, name, part.start, part.stop, resamples, plant)
            out.append(Task(key, decide, place, cost * len(part)))
    return out


def _cme_tasks(sizes: Sizes, seed: int, model: str, d: int, plant: Plant) -> list[Task]:
    cases = tuple(n for n in sizes.cases if n > LOCATIONS)
    if CME not in sizes.tests:
        return []
    out = [Task(f"{model} d={d} CME by the library", hold_cme, (seed, model, d, sizes.cases), 1.0)]
    cost = _CME_SECONDS[d] * sum(cases) / 1360
    for part in pieces(sizes.location_sets, max(1, round(_PIECE_SECONDS / cost))):
        place = (seed, model, d, cases, part.start, part.stop, plant)
        key = f"{model} d={d} CME {part.start}-{part.stop}"
        out.append(Task(key, repeat_cme, place, cost * len(part)))
    return out


# -- the paper's tests with SKCE, and ours ---------------------------------------------------


def _unwarned(function: Callable[..., Record]) -> Callable[..., Record]:
    """Limits are taken here where they are known to fail, and the library says so each time."""

    @functools.wraps(function)
    def unwarned(*arguments: Any) -> Record:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return function(*arguments)

    return unwarned


@_unwarned
def decide(
    seed: int, model: str, d: int, n: int, name: str, start: int, stop: int, resamples: int, plant: Plant
) -> Record:
    """Rejections by a test on its data sets start .. stop - 1, and its smallest time.

    As in the paper, each test has data sets of its own.
    """
    rejected: dict[str, int] = defaultdict(int)
    seconds, refused = float("inf"), 0
    for index in range(start, stop):
        place = (published.MODELS.index(model), d, n, TESTS.index(name), index)
        y, pred = draw_cases(generator(seed, _STREAM, *place), n, d, model, plant)
        options: dict[str, Any] = {"rng": generator(seed, _TEST_STREAM, *place), "n_resamples": resamples}
        if name == "CME (F)":
            options["locations"] = fixed_locations(seed, model, d, 0)
        begin = time.perf_counter()
        try:
            result = calibration_test(
                y,
                pred,
                kernel=plant.kernel,
                method=_method(name),
                block_size={"SKCE (B = 2)": 2, "SKCE (B = √n)": "sqrt"}.get(name),
                engine=Tiled(threads=1),
                progress=False,
                keep_null=name == BOOTSTRAP,
                **{key: value for key, value in options.items() if key != "n_resamples" or value},
            )
        except ValueError:
            if name != "CME (F)":
                raise
            refused += 1  # too few cases, or a deviation without spread in some direction
            continue
        seconds = min(seconds, time.perf_counter() - begin)
        for test, pvalue in _pvalues(name, result, plant).items():
            rejected[test] += int(pvalue <= ALPHA)
    times = {} if seconds == float("inf") else dict.fromkeys(rejected, seconds)
    place = {"model": model, "d": d, "n": n, "test": name, "count": stop - start - refused}
    return {**place, "rejected": dict(rejected), "seconds": times, "refused": refused}


def _method(name: str) -> Any:
    if name == BOOTSTRAP:
        return Bootstrap(statistic="authors")
    if name == "CME (F)":
        return MeanEmbedding(reference="F")
    return "block" if name in BLOCK_TESTS else name


def _pvalues(name: str, result: TestResult, plant: Plant) -> dict[str, float]:
    """p-values by the name of the test: the bootstrap's resamples serve both statistics."""
    if name != BOOTSTRAP:
        return {name: result.pvalue}
    found = both_bootstrap_pvalues(result)
    return {BOOTSTRAP: found[plant.statistic], OUR_BOOTSTRAP: found["skce"]}


def both_bootstrap_pvalues(result: TestResult) -> dict[str, float]:
    """p-values by both statistics, from one set of resamples of ``Bootstrap(statistic="authors")``."""
    null = np.asarray(result.null)
    statistic = result.n_samples * float(result.estimate)
    # Ties are counted, up to rounding.
    reached = null >= statistic - 1e-10 * max(abs(statistic), float(np.max(np.abs(null))))
    return {
        "authors": result.pvalue,
        "skce": (1.0 + float(np.count_nonzero(reached))) / (1.0 + len(null)),
    }


# -- CME -------------------------------------------------------------------------------------


def fixed_locations(
    seed: int, model: str, d: int, index: int, plant: Plant = NOTHING
) -> tuple[DiagonalNormal, FloatArray]:
    """The ten locations of a repeat, the same for all data sets of a model and dimension."""
    rng = generator(seed, _LOCATION_STREAM, published.MODELS.index(model), d, index)
    return draw_test_locations(rng, LOCATIONS, d, plant)


def repeat_cme(
    seed: int, model: str, d: int, cases: tuple[int, ...], start: int, stop: int, plant: Plant
) -> Record:
    """Rejections by the paper's CME test in repeats start .. stop - 1, by number of cases."""
    rejected: dict[str, list[int]] = {str(n): [] for n in cases}
    for index in range(start, stop):
        locations = fixed_locations(seed, model, d, index, plant)
        for n in cases:
            place = (published.MODELS.index(model), d, n, TESTS.index(CME), index)
            data = draw_data_sets(generator(seed, _STREAM, *place), published.DATA_SETS, n, d, model, plant)
            pvalues = cme_pvalues(data, locations, plant.lengthscale)
            rejected[str(n)].append(int(np.sum(pvalues <= ALPHA)))
    return {"model": model, "d": d, "start": start, "cme": rejected}


@_unwarned
def hold_cme(seed: int, model: str, d: int, cases: tuple[int, ...]) -> Record:
    """The library's CME test: its times, its refusals, and that it decides as the many at once."""
    locations, method = fixed_locations(seed, model, d, 0), MeanEmbedding(reference="chi2")
    seconds: dict[str, float] = {}
    refused: dict[str, str] = {}
    for n in cases:
        data = draw_data_sets(generator(seed, _LOCATION_STREAM, d, n), 10, n, d, model)
        known = cme_pvalues(data, locations) if n > LOCATIONS else np.ones(len(data.y))
        for index, expected in enumerate(known <= ALPHA):
            begin = time.perf_counter()
            try:
                found = calibration_test(
                    data.y[index],
                    data.predictions(index),
                    kernel=NOTHING.kernel,
                    method=method,
                    locations=locations,
                    engine=Tiled(threads=1),
                )
            except ValueError as error:
                refused[str(n)] = str(error)
                continue
            least = min(seconds.get(str(n), float("inf")), time.perf_counter() - begin)
            seconds[str(n)] = least
            if bool(found.pvalue <= ALPHA) != bool(expected):
                raise RuntimeError(f"CME, d = {d}, n = {n}: the library finds p = {found.pvalue:.3g}")
    return {"model": model, "d": d, "cme seconds": seconds, "cme refused": refused}


# -- summary ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellSummary:
    """Wrong decisions of one test on one kind of data set.

    Attributes
    ----------
    errors, count
        Wrong decisions, of how many.
    seconds
        Smallest time of the library; nan where it refuses.
    """

    errors: int
    count: int
    seconds: float

    @property
    def rate(self) -> float:
        """Proportion of wrong decisions."""
        return self.errors / self.count


@dataclass(frozen=True)
class Summary:
    """What the experiment found.

    Attributes
    ----------
    cells
        By model, dimension, number of cases and test.
    numbers
        Published proportions, and repeats of them: see `summarise`.
    planted
        The same with the other bootstrap statistic in place of the authors', which should not match.
    refused
        What the library says where it refuses the paper's CME test always.
    sizes
        Of the experiment.
    """

    cells: dict[Cell, CellSummary]
    numbers: dict[Cell, Repeated]
    planted: dict[Cell, Repeated]
    refused: dict[Cell, str]
    sizes: Sizes


def summarise(records: dict[str, Record], sizes: Sizes, seed: int) -> Summary:
    """Tables from the records of all tasks.

    A decision is one of two things, and the published proportion says all about the 500 that are behind it.
    If we do what the authors did, their decisions and ours are exchangeable: repeats of the published number
    are random sets of 500 of them all. CME is repeated, since its locations are drawn once for many data
    sets.
    """
    counts: dict[Cell, int] = defaultdict(int)
    rejected: dict[Cell, int] = defaultdict(int)
    seconds: dict[Cell, float] = {}
    refused: dict[Cell, str] = {}
    repeats: dict[Cell, list[tuple[int, list[int]]]] = defaultdict(list)
    for record in records.values():
        place = (record["model"], record["d"])
        for n, values in record.get("cme", {}).items():
            repeats[*place, int(n), CME].append((record["start"], values))
        for n, least in record.get("cme seconds", {}).items():
            seconds[*place, int(n), CME] = least
        for n, reason in record.get("cme refused", {}).items():
            if int(n) <= LOCATIONS:
                refused[*place, int(n), CME] = reason
        for name, times in record.get("rejected", {}).items():
            cell = (*place, record["n"], name)
            counts[cell] += record["count"]
            rejected[cell] += times
            seconds[cell] = min(seconds.get(cell, float("inf")), record["seconds"][name])
    joined = {cell: np.concatenate([v for _, v in sorted(found)]) for cell, found in repeats.items()}
    for cell, found in joined.items():
        counts[cell], rejected[cell] = published.DATA_SETS * len(found), int(found.sum())
    cells = {
        cell: CellSummary(
            _errors(cell, rejected[cell], counts[cell]), counts[cell], seconds.get(cell, float("nan"))
        )
        for cell in sorted(counts, key=_order)
    }
    ours = {cell: cells.get((*cell[:3], OUR_BOOTSTRAP), found) for cell, found in cells.items()}
    other = {cell: ours[cell] if cell[3] == BOOTSTRAP else found for cell, found in cells.items()}
    numbers, planted = (_numbers(some, joined, sizes, seed) for some in (cells, other))
    return Summary(cells, numbers, planted, refused, sizes)


def _errors(cell: Cell, rejected: Any, count: int) -> Any:
    return rejected if cell[0] == "calibrated" else count - rejected


def _numbers(
    cells: dict[Cell, CellSummary], repeats: dict[Cell, FloatArray], sizes: Sizes, seed: int
) -> dict[Cell, Repeated]:
    out: dict[Cell, Repeated] = {}
    size = published.DATA_SETS
    for index, (cell, found) in enumerate(cells.items()):
        known = published.decision_errors().get(cell)
        if known is None:
            continue
        if cell in repeats:
            drawn = _errors(cell, repeats[cell], size)
        else:
            rng = generator(seed, _SPLIT_STREAM, index)
            wrong = found.errors + known.errors
            drawn = rng.hypergeometric(wrong, found.count + size - wrong, size, size=sizes.location_sets)
        out[cell] = Repeated(known.rate, np.asarray(drawn) / size, proportion_scale(size), found.rate)
    return out


def _order(cell: Cell) -> tuple[Any, ...]:
    model, d, n, name = cell
    return published.MODELS.index(model), d, TESTS.index(name), n


def method_of(cell: Cell) -> str:
    """The test."""
    return cell[3]
