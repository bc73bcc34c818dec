"""Benchmark of the promise on files that are larger than memory: ten million rows within a gigabyte."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import environment
from benchmarks.results import Section, table
from benchmarks.settings import Settings

LIMIT = 1000
"""Largest resident memory of a process in MB, libraries included."""

_ROWS = 1_000_000  # of a part that is written

_COMMAND = """
import json, re, sys, time
from pathlib import Path
from wellcal.__main__ import main
try:
    main()
except SystemExit as end:
    status = end.code
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(json.dumps([status or 0, peak * 1024, time.process_time()]), file=sys.stderr)
"""
"""Runs the command in this process, and says how it ended, its peak of memory, and its CPU time."""


def normals(n: int, rng: np.random.Generator) -> pa.Table:
    """Targets and normal predictions."""
    mu = rng.normal(size=n)
    return pa.table({"y": rng.normal(mu, 1.0), "mu": mu, "sigma": np.ones(n)})


def classes(n: int, rng: np.random.Generator) -> pa.Table:
    """Labels and probabilities of three classes."""
    p = rng.dirichlet(np.ones(3), size=n)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return pa.table({"label": np.minimum(y, 2), **{f"p_{k}": p[:, k] for k in range(3)}})


STREAMS = {
    "scores, coverage, PIT, blocks: normals": ("scores", normals, ["--target", "y", "--normal", "mu,sigma"]),
    "scores, ECE, PIT, blocks: three classes": (
        "scores",
        classes,
        ["--target", "label", "--probs", "p_*", "--normalise"],
    ),
    "monitor: normals": ("monitor", normals, ["--target", "y", "--normal", "mu,sigma"]),
}


class Done(NamedTuple):
    """How a command ended, its largest resident memory in bytes, and its CPU time."""

    status: int
    peak: int
    cpu_seconds: float


def run_command(command: str, path: Path, options: Sequence[str]) -> Done:
    """Run a command of wellcal on a file, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, command, str(path), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    return Done(*json.loads(done.stderr.splitlines()[-1]))


def streamed(settings: Settings) -> Section:
    """Peak memory of commands that read a file part by part."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (command, make, options) in STREAMS.items():
            n = settings.monitored if command == "monitor" else settings.streamed
            path = Path(folder) / "large.parquet"
            write(path, n, make)
            size = path.stat().st_size / 1e6
            done = run_command(command, path, options)
            peak = f"{done.peak / 1e6:,.0f} MB"
            rows.append((name, f"{n:,}", f"{size:,.0f} MB", peak, f"{done.cpu_seconds:,.0f} s"))
            if done.status or done.peak / 1e6 > LIMIT:
                failures.append(f"{name}: status {done.status}, {peak}")
    what = (
        "`wellcal scores FILE` and `wellcal monitor FILE`, each in a process of its own: the largest\n"
        f"resident memory, libraries included, which must be below {LIMIT:,} MB, and CPU time."
    )
    verdict = f"**Exceeded:** {'; '.join(failures)}." if failures else "All are within the limit."
    columns = ("", "rows of Parquet", "file", "peak memory", "CPU")
    return Section(
        "streamed",
        "Files larger than memory",
        "\n\n".join([what, table(columns, rows), verdict, environment.describe(load)]),
        tuple(failures),
    )


def write(path: Path, n: int, make: object) -> None:
    """Write n rows, a part at a time."""
    rng = np.random.default_rng(0)
    writer: pq.ParquetWriter | None = None
    for start in range(0, n, _ROWS):
        part = make(min(_ROWS, n - start), rng)  # type: ignore[operator]
        writer = pq.ParquetWriter(path, part.schema) if writer is None else writer
        writer.write_table(part)
    assert writer is not None
    writer.close()
