"""Benchmark of the promises on memory: O(n), for values and for training."""

from __future__ import annotations

from benchmarks import environment, torch_training
from benchmarks.cases import NormalCase
from benchmarks.competitors import OURS
from benchmarks.peak import peak_memory
from benchmarks.results import Section, table
from benchmarks.settings import Settings

LIMITS = {OURS: 300, torch_training.NAME: 500}
"""Largest peak above inputs and imports in MB for 20,000 predictions."""


def memory(settings: Settings) -> Section:
    """Peak memory of a value and of a training step."""
    load = environment.load_average()
    case = NormalCase(settings.memory)
    peaks = {name: peak_memory(name, case) / 1e6 for name in LIMITS}
    rows = [(name, f"{peak:.0f} MB", f"{LIMITS[name]} MB") for name, peak in peaks.items()]
    what = (
        "Unbiased SKCE of univariate normals with the paper's kernel: peaks of fresh processes above their\n"
        "imports (PyTorch's among them) and inputs. "
        f"One {case.n:,} x {case.n:,} matrix alone would take {8 * case.n**2 / 1e6:,.0f} MB."
    )
    failures = tuple(
        f"{name}, {case.title}: {peak:.0f} MB, which is above the limit of {LIMITS[name]} MB"
        for name, peak in peaks.items()
        if peak >= LIMITS[name]
    )
    verdict = f"**Exceeded:** {'; '.join(failures)}." if failures else "Both are within their limits."
    body = [what, table((case.title, "peak memory", "limit"), rows), verdict, environment.describe(load)]
    return Section("memory", "Memory", "\n\n".join(body), failures)
