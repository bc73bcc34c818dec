"""Peak memory of a computation above its inputs, each in a fresh process.

``python -m benchmarks.peak NAME CASE``, with the fields of the case as JSON, prints bytes.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import torch_training
from benchmarks.cases import Case, ClassCase, NormalCase
from benchmarks.competitors import Run, by_name

ROOT = Path(__file__).parents[1]
LIMIT = 400.0
"""Seconds after which a competitor is given up: PyKeOps, which keeps 1,000 classes in registers."""

_STATUS = Path("/proc/self/status")
_CASES: dict[str, Callable[..., Case]] = {"NormalCase": NormalCase, "ClassCase": ClassCase}


class FailedRunError(Exception):
    """A competitor crashed, ran out of memory or of time, and what is known about it."""


def peak_memory(name: str, case: Case) -> int:
    """Bytes that a fresh process needs at most to compute `case` above what its inputs and imports take."""
    description = json.dumps({"kind": type(case).__name__, **dataclasses.asdict(case)})
    command = [sys.executable, "-m", "benchmarks.peak", name, description]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise FailedRunError(f"one run took longer than {LIMIT:.0f} s") from None
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise FailedRunError(f"a process of its own ended with status {done.returncode}: {last[0]}")
    return int(done.stdout.split()[-1])


def _prepare(name: str, case: Case) -> Run:
    return torch_training.prepare(case) if name == torch_training.NAME else by_name(name).prepare(case)


def _measure(name: str, description: dict[str, object]) -> int:
    case = _CASES[str(description.pop("kind"))](**description)
    _ = case.arrays  # the inputs are part of the baseline
    run = _prepare(name, case)
    before = _resident("VmRSS")
    run()
    return _resident("VmHWM") - before


def _resident(field: str) -> int:
    """Resident bytes, now ("VmRSS") or at most so far ("VmHWM").

    Elsewhere than on Linux the peak serves for both. On Linux ``ru_maxrss`` starts at the parent's peak,
    which may be far above the child's; the high-water mark in ``/proc`` does not.
    """
    if _STATUS.exists():
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(field + ":"))
        return int(line.split()[1]) * 1024
    import resource  # not on every system

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    print(_measure(sys.argv[1], json.loads(sys.argv[2])))
