"""Mean absolute error, variance and time of the estimators of SKCE."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reproduction import published
from reproduction.compare import Agreement, compare_mean_error, compare_variance
from reproduction.experiments.synthetic import draw_cases
from reproduction.tasks import FloatArray, Record, Task, generator, pieces
from wellcal import skce
from wellcal.engines import Tiled
from wellcal.kernels import paper_kernel

Cell = tuple[str, int, int, str]
"""Model, dimension, number of cases, estimator."""

ESTIMATORS: dict[str, dict[str, Any]] = {
    "SKCE": {"estimator": "biased"},
    "SKCE (B = 2)": {"estimator": "block", "block_size": 2},
    "SKCE (B = √n)": {"estimator": "block", "block_size": "sqrt"},
    "SKCE (B = n)": {"estimator": "unbiased"},
}
_STREAM = 2  # of random numbers, different in each experiment
_TRUTH_STREAM = 20
_SECONDS_PER_PAIR = {1: 1e-7, 10: 3.3e-7}  # for both triangles, measured roughly
_SECONDS_PER_SET = 3e-3
_PIECE_SECONDS = 2.0


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment."""

    cases: tuple[int, ...]
    data_sets: int
    truth_sets: int
    truth_cases: int


FULL = Sizes(published.SIZES, 500, 1000, 1000)
QUICK = Sizes((4, 16, 64), 60, 20, 300)


def stages(sizes: Sizes, seed: int, folder: Path) -> list[list[Task]]:
    """All tasks; none waits for another, and nothing is kept in `folder`."""
    tasks: list[Task] = []
    for model_index, model in enumerate(published.MODELS):
        for d in published.DIMENSIONS:
            for n in sizes.cases:
                cost = _SECONDS_PER_SET + _SECONDS_PER_PAIR[d] * n * n / 2.0
                for part in pieces(sizes.data_sets, max(1, round(_PIECE_SECONDS / cost))):
                    place = (seed, model_index, d, n, part.start, part.stop)
                    key = f"{model} d={d} n={n} {part.start}-{part.stop}"
                    tasks.append(Task(key, estimate, place, cost * len(part)))
    for d in published.DIMENSIONS:
        cost = 0.5e-3 + 0.5 * _SECONDS_PER_PAIR[d] * sizes.truth_cases**2 / 2.0
        for part in pieces(sizes.truth_sets, max(1, round(_PIECE_SECONDS / cost))):
            place = (seed, d, sizes.truth_cases, part.start, part.stop)
            tasks.append(Task(f"truth d={d} {part.start}-{part.stop}", truth, place, cost * len(part)))
    return [tasks]


def estimate(seed: int, model_index: int, d: int, n: int, start: int, stop: int) -> Record:
    """Estimates for data sets start .. stop - 1 of a cell, and the smallest time of each estimator."""
    model, engine = published.MODELS[model_index], Tiled(threads=1)
    values: dict[str, list[float]] = defaultdict(list)
    seconds = dict.fromkeys(ESTIMATORS, float("inf"))
    for index in range(start, stop):
        y, pred = draw_cases(generator(seed, _STREAM, model_index, d, n, index), n, d, model)
        for name, options in ESTIMATORS.items():
            begin = time.perf_counter()
            found = skce(y, pred, kernel=paper_kernel, engine=engine, **options)
            seconds[name] = min(seconds[name], time.perf_counter() - begin)
            values[name].append(float(found))
    return {"model": model, "d": d, "n": n, "start": start, "values": dict(values), "seconds": seconds}


def truth(seed: int, d: int, n: int, start: int, stop: int) -> Record:
    """Unbiased estimates for large data sets of the uncalibrated model, independent of the others."""
    values: list[float] = []
    for index in range(start, stop):
        y, pred = draw_cases(generator(seed, _TRUTH_STREAM, d, n, index), n, d, "uncalibrated")
        values.append(float(skce(y, pred, kernel=paper_kernel, engine=Tiled(threads=1))))
    return {"d": d, "start": start, "truth": values}


@dataclass(frozen=True)
class CellSummary:
    """One estimator on one kind of data set, beside the published numbers where there are any."""

    mean_error: Agreement
    variance: Agreement
    seconds: float
    published_seconds: float


@dataclass(frozen=True)
class Summary:
    """What the experiment found.

    Attributes
    ----------
    cells
        By model, dimension, number of cases and estimator.
    truth
        True SKCE of the uncalibrated model by dimension, with its standard error.
    data_sets
        Number behind each of our numbers.
    """

    cells: dict[Cell, CellSummary]
    truth: dict[int, tuple[float, float]]
    data_sets: int

    @property
    def comparisons(self) -> dict[tuple[Cell, str], Agreement]:
        """All comparisons by cell and what is compared."""
        return {
            (cell, what): getattr(found, what)
            for cell, found in self.cells.items()
            for what in ("mean_error", "variance")
        }


def summarise(records: dict[str, Record], sizes: Sizes, seed: int) -> Summary:
    """Tables from the records of all tasks."""
    values, seconds, truths = _collect(records)
    centre = {d: (float(np.mean(v)), float(np.std(v, ddof=1)) / len(v) ** 0.5) for d, v in truths.items()}
    count = 2 * len(values)
    cells: dict[Cell, CellSummary] = {}
    for cell, estimates in sorted(values.items(), key=lambda item: _order(item[0])):
        model, d, _, _ = cell
        known = published.estimator_errors()[cell]
        at, error = centre[d] if model == "uncalibrated" else (0.0, 0.0)
        cells[cell] = CellSummary(
            compare_mean_error(
                estimates,
                at,
                known.mean_error,
                published_count=published.DATA_SETS,
                truth_variance=error**2,
                comparisons=count,
            ),
            compare_variance(
                estimates, known.variance, published_count=published.DATA_SETS, comparisons=count
            ),
            seconds[cell],
            known.seconds,
        )
    return Summary(cells, centre, sizes.data_sets)


def _collect(
    records: dict[str, Record],
) -> tuple[dict[Cell, FloatArray], dict[Cell, float], dict[int, FloatArray]]:
    parts: dict[Cell, list[tuple[int, list[float]]]] = defaultdict(list)
    truths: dict[int, list[tuple[int, list[float]]]] = defaultdict(list)
    seconds: dict[Cell, float] = {}
    for record in records.values():
        if "truth" in record:
            truths[record["d"]].append((record["start"], record["truth"]))
            continue
        for name, values in record["values"].items():
            cell = (record["model"], record["d"], record["n"], name)
            parts[cell].append((record["start"], values))
            seconds[cell] = min(seconds.get(cell, float("inf")), record["seconds"][name])
    # Records come in the order in which processes finish: sort, so that sums are the same every time.
    joined = {cell: np.concatenate([v for _, v in sorted(found)]) for cell, found in parts.items()}
    return joined, seconds, {d: np.concatenate([v for _, v in sorted(f)]) for d, f in truths.items()}


def _order(cell: Cell) -> tuple[Any, ...]:
    model, d, n, name = cell
    return published.MODELS.index(model), d, list(ESTIMATORS).index(name), n
