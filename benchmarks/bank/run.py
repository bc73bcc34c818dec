"""Runs over errors and calibrated models, by processes."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bank.alternatives import ALTERNATIVES, of_half
from benchmarks.bank.levels import pvalues, stored_null
from benchmarks.bank.record import NULL, design_of, names_of_nulls, record
from benchmarks.bank.rivals import statistics
from benchmarks.bank.settings import Settings
from benchmarks.results import table
from benchmarks.studies import simulate


def chosen(only: list[str] | None, half: str, *, nulls: bool) -> list[str]:
    """Names of errors of a half, and of calibrated models; or those that were asked for."""
    errors, calibrated = [error.name for error in of_half(half)], names_of_nulls()
    if not only:
        return [*errors, *(calibrated if nulls else [])]
    groups = {"errors": errors, "nulls": calibrated}
    names = [name for each in only for name in groups.get(each, [each])]
    unknown = [name for name in names if name not in (*ALTERNATIVES, *calibrated)]
    if unknown:
        raise SystemExit(f"no such error: {', '.join(unknown)}; `list` has their names")
    return names


def described(names: list[str]) -> list[str]:
    lines: list[str] = []
    for name in names:
        design = design_of(name)
        half = "" if name.startswith(NULL) else ALTERNATIVES[name].half
        lines.append(f"{name:32s} {design.name:20s} {half:8s} {', '.join(design.rivals)}")
    return lines


def run(
    folder: Path,
    names: list[str],
    sizes: list[int],
    sets: int | None,
    settings: Settings,
    *,
    method: str = "auto",
    parts: str | None = None,
    workers: int = 0,
) -> None:
    """Store what is found for each name and number of cases."""
    planned = dict(settings.sets)
    for n in sizes:
        if sets is None and n not in planned:
            raise SystemExit(f"how many data sets of {n:,} cases? --sets says it")
        for name in names:
            started = time.perf_counter()
            done = record(
                folder,
                name,
                n,
                planned[n] if sets is None else sets,
                settings,
                method=method,
                parts=parts,
                workers=workers,
            )
            seconds = time.perf_counter() - started
            print(
                f"n = {n:5d}  {name:32s} {f'{seconds:7.1f} s' if done else 'there'}",
                file=sys.stderr,
                flush=True,
            )


# -- rivals alone ------------------------------------------------------------------------------


def rival_powers(
    name: str, n: int, size: float | None, sets: int, null: Any, settings: Settings, workers: int = 0
) -> dict[str, float]:
    """Power of the rivals of an error, on data sets that the full run does not use."""
    one = partial(_one, name=name, n=n, size=size)
    found = np.array(simulate(("bank rivals", name, n), one, sets, workers))
    rejected = np.mean(pvalues(found, null) <= settings.alpha, axis=0)
    return dict(zip(ALTERNATIVES[name].rivals, map(float, rejected), strict=True))


def _one(for_data: Any, for_tests: Any, *, name: str, n: int, size: float | None) -> Any:
    y, pred = ALTERNATIVES[name].draw(n, for_data, size)
    return statistics(y, pred, ALTERNATIVES[name].rivals, for_tests)


def print_rivals(
    names: list[str],
    sizes: list[int],
    sets: int,
    settings: Settings,
    *,
    folder: Path | None = None,
    workers: int = 0,
) -> None:
    """A table of the power of rivals; their null distributions are kept in `folder`, where one is given."""
    for n in sizes:
        nulls: dict[str, Any] = {}
        rows: list[tuple[str, ...]] = []
        for name in names:
            error = ALTERNATIVES[name]
            if error.family not in nulls:
                nulls[error.family] = stored_null(folder, error.design, n, settings.null_sets, workers)
            found = rival_powers(name, n, None, sets, nulls[error.family], settings, workers)
            best = max(found.values())
            told = ", ".join(f"{rival} {power:.2f}" for rival, power in found.items())
            inside = "" if settings.least <= best <= settings.most else "outside"
            rows.append((name, f"{error.size_at(n):g}", f"{best:.2f}", inside, told))
        print(f"n = {n}, {sets} data sets\n")
        print(table(("error", "size", "best", "", "rivals"), rows), flush=True)
