"""Mean absolute error, variance and time of the estimators of SKCE."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction import published
from reproduction.experiments.batches import pair_sums, true_skce
from reproduction.experiments.plant import NOTHING, Plant
from reproduction.experiments.synthetic import SPREAD, DataSets, draw_data_sets
from reproduction.ranks import LOGARITHM, Repeated
from reproduction.tasks import FloatArray, Record, Task, generator, pieces
from wellcal import skce
from wellcal.engines import Tiled

Cell = tuple[str, int, int, str]
"""Model, dimension, number of cases, estimator."""

Number = tuple[str, int, int, str, str]
"""A cell, and which of its numbers."""

ESTIMATORS: dict[str, dict[str, Any]] = {
    "SKCE": {"estimator": "biased"},
    "SKCE (B = 2)": {"estimator": "block", "block_size": 2},
    "SKCE (B = √n)": {"estimator": "block", "block_size": "sqrt"},
    "SKCE (B = n)": {"estimator": "unbiased"},
}
NUMBERS = ("mean error", "variance")
TRUTH_ERRORS = {1: 1.6e-4, 10: 1.0e-4}
"""Standard errors of the true value that the authors used, by dimension.

It was the mean of 1000 unbiased estimates from 1000 cases each. Ours is the exact one; repeats add what
theirs had.
"""

HELD = 1e-12
"""Largest difference between the library and the sums over many data sets at once."""

_STREAM = 2  # of random numbers, different in each experiment
_TRUTH_STREAM = 20
_SECONDS = {  # for one data set by all estimators, measured roughly
    1: {4: 4e-6, 16: 1.5e-5, 64: 2.5e-4, 256: 4e-4, 1024: 2e-3},
    10: {4: 4e-6, 16: 2e-5, 64: 1.2e-4, 256: 1.1e-3, 1024: 1.2e-2},
}
_PIECE_SECONDS = 12.0


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment.

    Attributes
    ----------
    cases
        Numbers of cases.
    data_sets
        Data sets behind each number, as in the paper.
    repeats
        Repeats of the whole experiment.
    timed
        Data sets of each cell that the library estimates too: for its time, and to hold sums over many to it.
    """

    cases: tuple[int, ...]
    data_sets: int
    repeats: int
    timed: int


FULL = Sizes(published.SIZES, 500, 199, 20)
QUICK = Sizes((4, 16), 500, 99, 5)


def tasks(sizes: Sizes, seed: int, plant: Plant = NOTHING) -> list[Task]:
    """All tasks, in no order."""
    out: list[Task] = []
    for model_index, model in enumerate(published.MODELS):
        for d in published.DIMENSIONS:
            for n in sizes.cases:
                cost = _SECONDS[d][n] * sizes.data_sets
                for part in pieces(sizes.repeats, max(1, round(_PIECE_SECONDS / cost))):
                    place = (seed, model_index, d, n, part.start, part.stop, sizes.data_sets, plant)
                    key = f"{model} d={d} n={n} repeats {part.start}-{part.stop}"
                    out.append(Task(key, repeat, place, cost * len(part)))
                if sizes.timed:
                    timed = (seed, model_index, d, n, sizes.data_sets, sizes.timed)
                    out.append(Task(f"{model} d={d} n={n} times", measure, timed, 1e-3 * sizes.timed))
    return out


def data_sets(
    seed: int, model_index: int, d: int, n: int, name: str, index: int, count: int, plant: Plant
) -> DataSets:
    """Data sets of a cell in a repeat: as in the paper, each cell has its own."""
    rng = generator(seed, _STREAM, model_index, d, n, list(ESTIMATORS).index(name), index)
    return draw_data_sets(rng, count, n, d, published.MODELS[model_index], plant)


def repeat(
    seed: int, model_index: int, d: int, n: int, start: int, stop: int, count: int, plant: Plant
) -> Record:
    """Mean errors and variances in repeats start .. stop - 1 of the cells of a model, dimension and size."""
    model = published.MODELS[model_index]
    found: dict[str, dict[str, list[float]]] = {
        name: {number: [] for number in NUMBERS} for name in ESTIMATORS
    }
    for index in range(start, stop):
        truth = _used_truth(seed, model, d, index, plant)
        for name in ESTIMATORS:
            values = estimates(
                name, data_sets(seed, model_index, d, n, name, index, count, plant), plant.lengthscale
            )
            found[name]["mean error"].append(float(np.mean(np.abs(values - truth))))
            found[name]["variance"].append(float(np.var(values, ddof=1)))
    return {"model": model, "d": d, "n": n, "start": start, "found": found}


def _used_truth(seed: int, model: str, d: int, index: int, plant: Plant) -> float:
    """The value that estimates are compared with, with the error that the authors' had."""
    if model == "calibrated":
        return 0.0
    exact = true_skce(d, SPREAD * plant.spread, plant.lengthscale)
    return exact + TRUTH_ERRORS[d] * generator(seed, _TRUTH_STREAM, d, index).standard_normal()


def estimates(name: str, data: DataSets, lengthscale: float) -> FloatArray:
    """Estimates for all data sets, ``(B,)``."""
    count, n, d = data.y.shape
    size: int = {"SKCE (B = 2)": 2, "SKCE (B = √n)": math.isqrt(n), "SKCE (B = n)": n, "SKCE": n}[name]
    blocks = n // size
    centres = data.centres[:, : blocks * size].reshape(count * blocks, size)
    y = data.y[:, : blocks * size].reshape(count * blocks, size, d)
    sums = pair_sums(centres, y, data.spread, lengthscale)
    if name == "SKCE":
        return (sums.different + sums.same) / n**2
    return np.mean(sums.different.reshape(count, blocks), axis=1) / (size * (size - 1.0))


def measure(seed: int, model_index: int, d: int, n: int, count: int, timed: int) -> Record:
    """Times of the library on the first data sets of each cell, whose estimates must be ours."""
    engine = Tiled(threads=1)
    seconds: dict[str, float] = {}
    for name, options in ESTIMATORS.items():
        data = data_sets(seed, model_index, d, n, name, 0, count, NOTHING)
        first = DataSets(data.centres[:timed], data.y[:timed], data.spread)
        times: list[float] = []
        for index, known in enumerate(estimates(name, first, NOTHING.lengthscale)):
            y, pred = first.y[index], first.predictions(index)
            begin = time.perf_counter()
            found = skce(y, pred, kernel=NOTHING.kernel, engine=engine, **options)
            times.append(time.perf_counter() - begin)
            if not abs(float(found) - known) <= HELD:
                raise RuntimeError(
                    f"{name}, d = {d}, n = {n}: the library estimates {float(found):.17g}, "
                    f"the sums over many data sets {known:.17g}"
                )
        seconds[name] = min(times)
    return {"model": published.MODELS[model_index], "d": d, "n": n, "seconds": seconds}


# -- summary ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """What the experiment found.

    Attributes
    ----------
    numbers
        Published numbers and ours in each repeat.
    seconds
        Smallest time of the library in each cell.
    truth
        True SKCE of the uncalibrated model by dimension.
    sizes
        Of the experiment.
    """

    numbers: dict[Number, Repeated]
    seconds: dict[Cell, float]
    truth: dict[int, float]
    sizes: Sizes

    @property
    def cells(self) -> Iterator[Cell]:
        """Cells, in the order of the page."""
        return (number[:4] for number in self.numbers if number[4] == NUMBERS[0])


def summarise(records: dict[str, Record], sizes: Sizes, seed: int) -> Summary:
    """Tables from the records of all tasks."""
    parts: dict[Number, list[tuple[int, list[float]]]] = defaultdict(list)
    seconds: dict[Cell, float] = {}
    for record in records.values():
        place = (record["model"], record["d"], record["n"])
        for name, least in record.get("seconds", {}).items():
            seconds[*place, name] = least
        for name, found in record.get("found", {}).items():
            for number, values in found.items():
                parts[*place, name, number].append((record["start"], values))
    numbers: dict[Number, Repeated] = {}
    for number in sorted(parts, key=_order):
        known = published.estimator_errors()[number[:4]]
        value = known.mean_error if number[4] == "mean error" else known.variance
        # Records come in the order in which processes finish: repeats of all cells belong together.
        numbers[number] = Repeated(value, np.concatenate([v for _, v in sorted(parts[number])]), LOGARITHM)
    truth = {d: true_skce(d, SPREAD, 1.0) for d in published.DIMENSIONS}
    return Summary(numbers, seconds, truth, sizes)


def _order(number: Number) -> tuple[Any, ...]:
    model, d, n, name, what = number
    return published.MODELS.index(model), d, list(ESTIMATORS).index(name), n, NUMBERS.index(what)


def method_of(number: Number) -> str:
    """The estimator."""
    return number[3]
