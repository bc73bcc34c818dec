"""Benchmark of the promises on memory: O(n), for values and for training."""

from __future__ import annotations

from benchmarks import environment, torch_training
from benchmarks.cases import NormalCase
from benchmarks.competitors import OURS
from benchmarks.peak import peak_memory
from benchmarks.results import Section, table
from benchmarks.settings import FULL, Settings

LIMITS = {OURS: 300, torch_training.NAME: 500}
"""Largest peak above inputs and imports in MB, at the size of a full run."""


def memory(settings: Settings) -> Section:
    """Peak memory of a value and of a training step; a limit that is exceeded is an error."""
    load = environment.load_average()
    case = NormalCase(settings.memory)
    rows: list[tuple[str, ...]] = []
    for name, limit in LIMITS.items():
        peak = peak_memory(name, case) / 1e6
        if settings.memory == FULL.memory and peak >= limit:
            raise AssertionError(f"{name}, {case.title}: {peak:.0f} MB, which must be below {limit} MB")
        rows.append((name, f"{peak:.0f} MB", f"{limit} MB at {FULL.memory:,}"))
    found = table((case.title, "peak memory", "limit"), rows)
    matrix = 8 * case.n**2 / 1e6
    reading = (
        "Unbiased SKCE of univariate normals with the paper's kernel: peaks of fresh processes above their\n"
        "imports (PyTorch's among them) and inputs. "
        f"One {case.n:,} x {case.n:,} matrix alone would take {matrix:,.0f} MB."
    )
    return Section("memory", "Memory", "\n\n".join([reading, found, environment.describe(load)]))
