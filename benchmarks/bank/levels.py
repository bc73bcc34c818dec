"""Null distributions of rivals, simulated from calibrated models, so that each of them has its level."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bank.designs import DESIGNS, Design
from benchmarks.bank.rivals import statistics
from benchmarks.bank.store import load, save, slug
from benchmarks.studies import simulate

Array = Any


def null_statistics(design: Design, n: int, sets: int, workers: int = 0) -> Array:
    """Statistics of a design's rivals on calibrated data sets, ``(sets, rivals)``; always the same."""
    one = partial(_one, name=design.name, n=n)
    return np.array(simulate(("bank levels", design.name, n), one, sets, workers))


def _one(for_data: np.random.Generator, for_tests: np.random.Generator, *, name: str, n: int) -> Array:
    y, pred = DESIGNS[name].calibrated(n, for_data)
    return statistics(y, pred, DESIGNS[name].rivals, for_tests)


def stored_null(folder: Path | None, design: Design, n: int, sets: int, workers: int = 0) -> Array:
    """The same from a file of `folder`, which is written where there is none; without a folder not kept."""
    if folder is None:
        return null_statistics(design, n, sets, workers)
    path = folder / f"{slug(design.name)}.levels.{n}.npz"
    found = load(path)
    names = list(design.rivals)
    if found is None or list(found["names"]) != names or len(found["statistics"]) != sets:
        found = {"names": np.array(names), "statistics": null_statistics(design, n, sets, workers)}
        save(path, found)
    return found["statistics"]


def pvalues(observed: Array, null: Array) -> Array:
    """Monte Carlo p-values of statistics ``(..., rivals)``, each among its own null distribution."""
    columns = [
        (1.0 + len(sorted_null) - np.searchsorted(sorted_null, column, side="left")) / (1.0 + len(null))
        for sorted_null, column in zip(np.sort(null, axis=0).T, np.moveaxis(observed, -1, 0), strict=True)
    ]
    return np.stack(columns, axis=-1)
