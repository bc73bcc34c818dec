"""What is kept of each data set: p-values of `auto`, of its parts and of rivals, and statistics of parts."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import wellcal as wc
from benchmarks.bank.alternatives import ALTERNATIVES
from benchmarks.bank.designs import DESIGNS
from benchmarks.bank.levels import pvalues, stored_null
from benchmarks.bank.rivals import statistics
from benchmarks.bank.settings import Settings
from benchmarks.bank.store import load, save, slug
from benchmarks.studies import simulate
from wellcal.engines import Tiled

Array = Any
NULL = "null: "
"""What the name of a calibrated model begins with, among those of errors."""

_ONE_THREAD = Tiled(threads=1)


def names_of_nulls() -> list[str]:
    return [NULL + name for name in DESIGNS]


def design_of(name: str) -> Any:
    return DESIGNS[name.removeprefix(NULL)] if name.startswith(NULL) else ALTERNATIVES[name].design


def draw(name: str, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """A data set of an error, or of a calibrated model."""
    if name.startswith(NULL):
        return design_of(name).calibrated(n, rng)
    return ALTERNATIVES[name].draw(n, rng)


def size_of(name: str, n: int) -> float:
    """Size of the error, 0 for a calibrated model."""
    return 0.0 if name.startswith(NULL) else ALTERNATIVES[name].size_at(n)


# -- one data set ----------------------------------------------------------------------------


def one_set(
    for_data: np.random.Generator,
    for_tests: np.random.Generator,
    *,
    name: str,
    n: int,
    resamples: int,
    method: str,
    parts: str | None,
) -> dict[str, Any]:
    """p-values and statistics for one data set; rivals, `auto` and parts have generators of their own."""
    y, pred = draw(name, n, for_data)
    for_rivals, for_auto, for_parts = for_tests.spawn(3)
    found: dict[str, Any] = {"rivals": statistics(y, pred, design_of(name).rivals, for_rivals)}
    with warnings.catch_warnings(action="ignore"):  # of few resamples
        if method:
            result = wc.calibration_test(
                y, pred, method=method_of(method), n_resamples=resamples, rng=for_auto, engine=_ONE_THREAD
            )
            found["pvalue"] = result.pvalue
            found["part_pvalues"] = dict(result.provenance.get("pvalues", {}))
        if parts is not None:
            found["parts"] = _named(resolve(parts)(y, pred, resamples, for_parts))
    return found


def method_of(name: str) -> Any:
    """A method by its name, or by the address ``module:function`` of what makes it."""
    return resolve(name)() if ":" in name else name


@cache
def resolve(address: str) -> Callable[..., Any]:
    """The function of an address ``module:function``."""
    module, _, name = address.partition(":")
    return getattr(importlib.import_module(module), name)


def _named(found: Any) -> dict[str, Array]:
    """Statistics of parts by name, each ``(R + 1,)`` with the observed one first; or columns of an array."""
    if isinstance(found, Mapping):
        return {str(name): np.asarray(values, dtype=np.float32) for name, values in found.items()}
    columns = np.asarray(found, dtype=np.float32)
    return {f"part {k}": columns[:, k] for k in range(columns.shape[1])}


# -- many ------------------------------------------------------------------------------------


def path_of(folder: Path, name: str, n: int) -> Path:
    return folder / f"{slug(name)}.{n}.npz"


def parts_path_of(folder: Path, name: str, n: int) -> Path:
    return folder / f"{slug(name)}.{n}.parts.npz"


def stored_parts(folder: Path, name: str, n: int) -> tuple[list[str], Array]:
    """Names of parts and their statistics ``(sets, R + 1, parts)``, the observed ones first among R + 1."""
    found = load(parts_path_of(folder, name, n))
    if found is None:
        raise FileNotFoundError(f"{folder} has no parts of {name!r} at n = {n}; run with --parts")
    return found["names"].tolist(), found["parts"]


def record(
    folder: Path,
    name: str,
    n: int,
    sets: int,
    settings: Settings,
    *,
    method: str = "auto",
    parts: str | None = None,
    workers: int = 0,
) -> bool:
    """Run one error at one number of cases and store what is found; False where it is there already."""
    if _is_there(folder, name, n, sets, settings, method, parts):
        return False
    one = partial(one_set, name=name, n=n, resamples=settings.resamples, method=method, parts=parts)
    found = simulate(("bank", name, n), one, sets, workers)
    design = design_of(name)
    observed = np.array([each["rivals"] for each in found])
    null = stored_null(folder, design, n, settings.null_sets, workers)
    arrays: dict[str, Any] = {
        "name": np.array(name),
        "n": np.array(n),
        "size": np.array(size_of(name, n)),
        "method": np.array(method),
        "resamples": np.array(settings.resamples),
        "rival_names": np.array(design.rivals),
        "rival_statistics": observed.astype(np.float32),
        "rival_pvalues": pvalues(observed, null),
    }
    if method:
        names = _union(each["part_pvalues"] for each in found)
        arrays["pvalues"] = np.array([each["pvalue"] for each in found])
        arrays["part_names"] = np.array(names)
        arrays["part_pvalues"] = np.array(
            [[each["part_pvalues"].get(part, np.nan) for part in names] for each in found]
        )
    if parts is not None:
        save(parts_path_of(folder, name, n), _stacked([each["parts"] for each in found], parts))
    save(path_of(folder, name, n), arrays)
    return True


def _is_there(
    folder: Path, name: str, n: int, sets: int, settings: Settings, method: str, parts: str | None
) -> bool:
    """Whether so many data sets, run in the same way, are stored; changes of the library are not seen."""
    found = load(path_of(folder, name, n))
    if found is None or len(found["rival_statistics"]) < sets:
        return False
    if float(found["size"]) != size_of(name, n) or int(found["resamples"]) != settings.resamples:
        return False
    if str(found["method"]) != method or found["rival_names"].tolist() != list(design_of(name).rivals):
        return False
    if parts is None:
        return True
    with_parts = load(parts_path_of(folder, name, n))
    return (
        with_parts is not None and str(with_parts["function"]) == parts and len(with_parts["parts"]) >= sets
    )


def _stacked(found: list[dict[str, Array]], function: str) -> dict[str, Array]:
    """Statistics of parts as ``(sets, R + 1, parts)``; nan where a data set lacks a part."""
    names = _union(found)
    length = len(next(iter(found[0].values())))
    stacked = np.full((len(found), length, len(names)), np.nan, dtype=np.float32)
    for row, each in zip(stacked, found, strict=True):
        for name, values in each.items():
            row[:, names.index(name)] = values
    return {"function": np.array(function), "names": np.array(names), "parts": stacked}


def _union(found: Any) -> list[str]:
    names: dict[str, None] = {}
    for each in found:
        names |= dict.fromkeys(each)
    return list(names)
