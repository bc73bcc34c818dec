"""The machine and the versions that a number belongs to; no names of hosts or users."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path

from benchmarks import scalar_loop


def core_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory() -> int | None:
    """Bytes that can be had without swapping, or None where the system does not say."""
    return _meminfo("MemAvailable")


def _meminfo(key: str) -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":")), None)


def cpu_model() -> str:
    """Model of the processor; its family and stepping where the name alone says little."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name = fields.get("model name", platform.machine())
    details = [
        f"{label} {fields[key]}"
        for label, key in (("family", "cpu family"), ("model", "model"))
        if key in fields
    ]
    if "avx512f" in fields.get("flags", "").split():
        details.append("AVX-512")
    return f"{name} ({', '.join(details)})" if details else name


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def load_average() -> float | None:
    """Processes that wanted a core over the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def describe(load_before: float | None) -> str:
    """Date, machine and versions in one paragraph of Markdown."""
    memory = _meminfo("MemTotal")
    machine = f"{cpu_model()}, {core_count()} cores"
    if memory is not None:
        machine += f", {memory / 2**30:.0f} GiB"
    packages = [f"{label} {found}" for label, name in _PACKAGES if (found := version(name)) is not None]
    parts = [
        f"Measured {datetime.date.today().isoformat()} on {machine}, {platform.system()}",
        f"Python {platform.python_version()}, " + ", ".join(packages),
    ]
    compiler = scalar_loop.compiler_version()
    if compiler is not None:
        parts.append(compiler)
    if load_before is not None:
        parts.append(f"load average before the run {load_before:.1f}")
    return "; ".join(parts) + "."


_PACKAGES = (
    ("wellcal", "wellcal"),
    ("NumPy", "numpy"),
    ("SciPy", "scipy"),
    ("threadpoolctl", "threadpoolctl"),
    ("PyTorch", "torch"),
    ("PyKeOps", "pykeops"),
)
