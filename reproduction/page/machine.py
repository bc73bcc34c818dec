"""What a run was made on: date, processor, versions. No names of machines or people."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import re
from pathlib import Path

import wellcal
from reproduction.schedule import available_cores

_PACKAGES = ("numpy", "scipy", "POT", "matplotlib")


def describe_machine() -> dict[str, str]:
    """Facts for the head of the page.

    Examples
    --------
    >>> sorted(describe_machine())
    ['cores', 'date', 'processor', 'system', 'versions']
    """
    versions = [f"wellcal {wellcal.__version__}", f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": _processor(),
        "cores": str(available_cores()),
        "system": platform.system(),
        "versions": ", ".join(versions),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
        if found:
            return found.group(1).strip()
    return platform.processor() or platform.machine()
