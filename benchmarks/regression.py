"""Numbers that must not change: ``python -m benchmarks.regression [--write] [--only SECTION ...]``.

A change of a number in the table, `regression.csv`, needs a line in CHANGELOG.md that says why it changed.

The table has named values over families, kernels, estimators, tests and measures. They are computed
through public names alone, so that the inside can be rebuilt under them. `regression_rows` says how far each
may move, and `regression_data` where the data come from.
"""

from __future__ import annotations

if __name__ == "__main__":
    from wellcal.__main__ import run_module

    run_module("benchmarks.regression")

import argparse
import csv
import io
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import regression_measures, regression_tests
from benchmarks.regression_rows import Row, SectionFunction
from wellcal._arrays.files import write_whole

TABLE = Path(__file__).with_name("regression.csv")
HEADER = ["section", "name", "value", "tolerance", "scale"]
SECTIONS: dict[str, SectionFunction] = {**regression_measures.SECTIONS, **regression_tests.SECTIONS}

Table = dict[str, dict[str, Row]]
"""Rows by section and name."""


def compute(section: str) -> dict[str, Row]:
    """The rows of a section as the code gives them now."""
    rows: dict[str, Row] = {}
    for row in SECTIONS[section]():
        if row.name in rows:
            raise ValueError(f"two rows of {section!r} have the name {row.name!r}")
        if not np.isfinite(row.value):
            raise ValueError(f"{row.name!r} is {row.value}, which cannot be compared")
        rows[row.name] = row
    return rows


# -- the table as a file -------------------------------------------------------------------------


def read(path: Path = TABLE) -> Table:
    table: Table = {}
    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            numbers = (float(line[column]) for column in HEADER[2:])
            table.setdefault(line["section"], {})[line["name"]] = Row(line["name"], *numbers)
    return table


def write(table: Table, path: Path = TABLE) -> None:
    """The whole file in one step: an interrupted run leaves the old one."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(HEADER)
    for section, rows in table.items():
        for row in rows.values():
            # repr is the shortest text that gives the same double again.
            lines.writerow([section, row.name, repr(row.value), repr(row.tolerance), repr(row.scale)])
    write_whole(path, text.getvalue())


# -- comparison ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """What became of the rows of the table.

    Attributes
    ----------
    rows
        Number of rows that both have.
    largest
        Largest relative deviation among them, and the largest in units of what is allowed.
    problems
        A line for each row that moved too far, is missing or is new.
    """

    rows: int
    largest: float
    largest_share: float
    problems: list[str]


def compare(committed: dict[str, Row], found: dict[str, Row]) -> Comparison:
    """Rows of one section. Tolerances are those of the table, so that loosening one shows in its history."""
    problems = [f"missing: {name}" for name in committed if name not in found]
    problems += [f"not in the table: {name}" for name in found if name not in committed]
    deviations, shares = [0.0], [0.0]
    for name in committed.keys() & found.keys():
        old, new = committed[name], found[name]
        deviation = old.deviation(new.value)
        deviations.append(deviation)
        shares.append(deviation / old.tolerance)
        if deviation > old.tolerance:
            problems.append(
                f"{name}: {old.value!r} has become {new.value!r}, "
                f"a relative deviation of {deviation:.1e} where {old.tolerance:g} is allowed"
            )
    return Comparison(len(deviations) - 1, max(deviations), max(shares), sorted(problems))


def check(sections: Iterable[str], committed: Table) -> list[Comparison]:
    """Compute sections and compare them, with a line for each."""
    found: list[Comparison] = []
    for section in sections:
        started = time.perf_counter()
        comparison = compare(committed.get(section, {}), compute(section))
        seconds = time.perf_counter() - started
        print(
            f"{section:34s} {comparison.rows:4d} rows {seconds:6.1f} s   largest deviation "
            f"{comparison.largest:.1e} ({comparison.largest_share:.0%} of what is allowed)",
            flush=True,
        )
        found.append(comparison)
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.regression", description="Compare numbers with the committed table."
    )
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name} anew, all of it")
    parser.add_argument(
        "--only", nargs="+", choices=list(SECTIONS), metavar="SECTION", help=", ".join(SECTIONS)
    )
    options = parser.parse_args(arguments)
    if options.write:
        if options.only:
            parser.error("--write writes the whole table; leave --only out")
        table = {section: compute(section) for section in SECTIONS}
        write(table)
        print(f"{sum(map(len, table.values()))} rows written")
        return 0
    committed = read()
    found = check(options.only or SECTIONS, committed)
    problems = [problem for comparison in found for problem in comparison.problems]
    problems += [f"a section of the table is gone: {name}" for name in committed if name not in SECTIONS]
    rows, largest = sum(each.rows for each in found), max(each.largest for each in found)
    print(f"{rows} rows, largest relative deviation {largest:.1e}, {len(problems)} beyond tolerance")
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0
