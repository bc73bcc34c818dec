"""Options that commands share, each declared once: what is read, how, and what becomes of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from wellcal._arrays import DEFAULT_SEED

CASES, FILES, RESULT = "Cases", "How the file is written", "Run and result"
"""Panels of the help."""


@dataclass(frozen=True)
class ReadOptions:
    """Which cases are read from which file."""

    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV, TSV, Parquet, Arrow, JSON lines, NPZ or NPY; - for standard input.",
            show_default=False,
        ),
    ]
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the targets; several, or a glob, for vectors. Guessed if not given.",
            rich_help_panel=CASES,
        ),
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Names of the classes, as targets have them, in the order of the probabilities: a,b,c; of "
            "two where one probability is predicted, that one last: no,yes.",
            rich_help_panel=CASES,
        ),
    ] = None
    grades: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Names of classes that have an order, from the lowest to the highest: poor,fair,good.",
            rich_help_panel=CASES,
        ),
    ] = None
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that says which cases belong together (patients, accounts).",
            rich_help_panel=CASES,
        ),
    ] = None
    segments: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS", help="Columns whose groups are looked at one by one.", rich_help_panel=CASES
        ),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column that says how much each case counts.", rich_help_panel=CASES
        ),
    ] = None
    drop_missing: Annotated[
        bool,
        typer.Option(
            "--drop-missing",
            help="Leave out rows in which a value is missing, and say how many.",
            rich_help_panel=CASES,
        ),
    ] = False
    sort: Annotated[
        bool,
        typer.Option(
            "--sort",
            help="Sort the quantiles of each row, which may cross where they were fitted one by one.",
            rich_help_panel=CASES,
        ),
    ] = False
    normalise: Annotated[
        bool,
        typer.Option(
            "--normalise",
            help="Divide probabilities of classes by their sum, where they were rounded.",
            rich_help_panel=CASES,
        ),
    ] = False
    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="csv, tsv, parquet, arrow, jsonl, npz or npy, where the name of the file does not say it.",
            rich_help_panel=FILES,
        ),
    ] = None
    decimal: Annotated[
        str, typer.Option(metavar="SIGN", help="Decimal point of a text file.", rich_help_panel=FILES)
    ] = "."
    delimiter: Annotated[
        str | None,
        typer.Option(metavar="SIGN", help="What separates columns of a text.", rich_help_panel=FILES),
    ] = None
    encoding: Annotated[
        str, typer.Option(metavar="NAME", help="How letters are encoded.", rich_help_panel=FILES)
    ] = "utf8"
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Memory that may be used, such as 4GB; a file that needs more is refused, unread.",
            rich_help_panel=FILES,
        ),
    ] = None
    roles: dict[str, str] = field(default_factory=lambda: {})
    """Columns of the predictions, by the flag of their family."""
    versus: Sequence[tuple[str, str]] = ()
    """Those of further models."""

    @property
    def text_options(self) -> dict[str, Any]:
        """Arguments of :func:`wellcal.reading.read_table`."""
        return {
            "format": self.format,
            "decimal": self.decimal,
            "delimiter": self.delimiter,
            "encoding": self.encoding,
        }


@dataclass(frozen=True)
class RunOptions:
    """How it is computed, and where the result goes."""

    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Seed of random numbers: the same seed, the same result.", rich_help_panel=RESULT
        ),
    ] = DEFAULT_SEED
    json: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Write everything as JSON to this file; - for standard output, and nothing else there.",
            rich_help_panel=RESULT,
        ),
    ] = None


@dataclass(frozen=True)
class TestOptions(RunOptions):
    """The same for commands that test."""

    __test__ = False  # it is no test case

    resamples: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Sets of targets that are drawn from the predictions, exactly so many; if not given 999, "
            "and more where the case is clear.",
            rich_help_panel=RESULT,
        ),
    ] = None
    fail_on_reject: Annotated[
        bool,
        typer.Option(
            "--fail-on-reject",
            help="End with status 1 where the hypothesis is rejected.",
            rich_help_panel=RESULT,
        ),
    ] = False
