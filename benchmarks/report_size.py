"""Benchmark of the promise on reports: from ten cases to a million, within two minutes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks import environment
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.streamed_files import classes, normals, run_command, write

LIMIT = 120.0
"""Seconds on the clock, from the command to the page."""

REPORTS = {
    "normals": (normals, ["--target", "y", "--normal", "mu,sigma"]),
    "three classes": (classes, ["--target", "label", "--probs", "p_*", "--normalise"]),
    "three classes, recalibrated": (
        classes,
        ["--target", "label", "--probs", "p_*", "--normalise", "--recalibrate"],
    ),
}


def reports(settings: Settings) -> Section:
    """Time and memory of a report, as a page, from a file."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path, page = Path(folder) / "cases.parquet", Path(folder) / "report.html"
        for name, (make, options) in REPORTS.items():
            for n in settings.reported:
                write(path, n, make)
                page.unlink(missing_ok=True)
                start = perf_counter()
                done = run_command("report", path, [*options, "--out", str(page)])
                seconds = perf_counter() - start
                written = page.stat().st_size if page.exists() else 0
                rows.append(
                    (
                        name,
                        f"{n:,}",
                        f"{seconds:,.1f} s",
                        f"{done.cpu_seconds:,.1f} s",
                        f"{done.peak / 1e6:,.0f} MB",
                        f"{written / 1e3:,.0f} kB",
                    )
                )
                if done.status or not written or seconds > LIMIT:
                    failures.append(f"{name}, {n:,}: status {done.status}, {seconds:,.0f} s")
    what = (
        "`wellcal report FILE --out report.html`, from Parquet to the page, each in a process of its own.\n"
        f"The page must be there within {LIMIT:.0f} seconds. Tests look at 50,000 cases at most, and pages\n"
        "say so; scores, coverage and what is said of groups are those of all."
    )
    verdict = f"**Exceeded:** {'; '.join(failures)}." if failures else "All are within the limit."
    columns = ("", "cases", "on the clock", "CPU", "peak memory", "page")
    return Section(
        "report-size",
        "Reports from ten cases to a million",
        "\n\n".join([what, table(columns, rows), verdict, environment.describe(load)]),
        tuple(failures),
    )
