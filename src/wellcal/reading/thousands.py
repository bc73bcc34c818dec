"""Points that look like separators of thousands, which are read as decimal points."""

from __future__ import annotations

import csv
import re

from wellcal._arrays.warnings import advise

_GROUPED = re.compile(r"-?[1-9][0-9]{0,2}\.[0-9]{3}")
_WHOLE = re.compile(r"-?[0-9]{1,3}")
_FEWEST = 3  # entries of either kind


def note_points(name: str, lines: list[str], names: list[str], delimiter: str) -> None:
    """Tell of columns of a file with semicolons whose numbers are whole, or have a point before three digits.

    Programs that write semicolons write decimals with a comma, and 1.234 for a thousand and more; decimals
    would not all be three, with none for the rest.
    """
    rows = list(csv.reader(lines, delimiter=delimiter))
    for k, column in enumerate(names):
        entries = [row[k].strip() for row in rows if len(row) == len(names) and row[k].strip()]
        grouped = [entry for entry in entries if _GROUPED.fullmatch(entry)]
        whole = sum(_WHOLE.fullmatch(entry) is not None for entry in entries)
        if min(len(grouped), whole) >= _FEWEST and len(grouped) + whole == len(entries):
            advise(
                f"{name}: column {column.strip()!r} has whole numbers, and others such as {grouped[0]!r}, of "
                "which the point is read as a decimal point: if it separates thousands, write numbers "
                "without it"
            )
            return
