"""Lines below a verdict, from what results say of themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wellcal.cli.inputs import described
from wellcal.cli.screen import end, show

LONG = ("kernel", "proven", "chosen", "alternatives", "parts", "statistic", "lowered", "resamples")
"""Rows of results that are for those who ask for everything."""


def lines_of(result: Any, *more: tuple[str, str], points: int = 5) -> list[str]:
    """Points and rows of a result, without those that only a validator reads.

    Parameters
    ----------
    result
        A result that is shown like all others.
    more
        Rows that are put after its own.
    points
        How many points are shown at most.
    """
    from wellcal.measures.presentation import text_rows

    _, told, rows = result.in_words()
    shown = [f"  - {text}" for text in told[:points]]
    if len(told) > points:
        shown.append(f"  - and {len(told) - points} more")
    return [*shown, *text_rows([*(row for row in rows if row[0].strip() not in LONG), *more])]


def conclude(
    command: str,
    verdict: str,
    lines: Sequence[str],
    *,
    given: Any,
    cases: Any,
    options: Any,
    result: Any,
    rejected: bool,
    bad: bool | None = None,
) -> None:
    """Show a result of cases that were read, write it as JSON where that is wanted, and end.

    Parameters
    ----------
    command, verdict, lines, bad
        As in :func:`wellcal.cli.screen.show`; `bad` is `rejected` where it is not given.
    given, cases, options
        What was asked for, and the cases that were read.
    result
        What JSON holds.
    rejected
        Whether a hypothesis was rejected: status 1 under ``--fail-on-reject``.
    """

    def content() -> dict[str, Any]:
        return {
            **described(given, cases),
            "seed": options.seed,
            "rejected": bool(rejected),
            "result": result.to_dict(),
        }

    show(command, verdict, lines, to=options.json, content=content, bad=rejected if bad is None else bad)
    end(rejected, options.fail_on_reject)
