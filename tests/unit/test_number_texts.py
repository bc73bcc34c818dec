"""Texts among numbers: the one that the reader did not take is named, with what to do about it."""

from __future__ import annotations

import io
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.csv as csv
import pytest

from wellcal.columns.frames import Table
from wellcal.columns.number_texts import SAYS_MISSING, about_entry, says_number
from wellcal.reading import ReadError, read_cases

SPELLINGS = [
    *(
        "1",
        "+1",
        "-1.5",
        "1.",
        ".5",
        "-.5",
        " 1.5 ",
        "1e5",
        "1E+5",
        "00.5",
        "inf",
        "-Infinity",
        "NAN",
        "1e400",
    ),
    *("1e", "1_000", "\uff11\uff12", "1 000", "0x1F", "1d5", "None", "-", "\xa01", "--1", "true", "1,5"),
]


def test_the_rule_is_that_of_the_reader() -> None:
    assert set(csv.ConvertOptions().null_values) == SAYS_MISSING
    for text in SPELLINGS:
        lines = io.BytesIO(f'a\n0.5\n"{text}"\n'.encode())
        assert says_number(text) == (str(csv.read_csv(lines).schema[0].type) == "double"), text


@pytest.mark.parametrize("entry", ["1_000", "\uff11\uff12", "1 000", "abc"])
def test_the_entry_that_was_not_taken_is_named(entry: str, tmp_path: Path) -> None:
    """Python takes some for numbers; what says that a value is missing was taken."""
    path = tmp_path / "p.csv"
    path.write_text(f"y,mu,sigma\n0.5,0,1\nNA,0,1\n{entry},0,1\n", encoding="utf8")
    with pytest.raises(ReadError, match=rf"found text or objects \('{entry}' in row 3 \(line 4\)\); mend"):
        read_cases(path)


def test_decimal_commas_that_were_said_are_not_at_fault(tmp_path: Path) -> None:
    path, given = tmp_path / "p.csv", {"decimal": ","}
    path.write_text("y;mu;sigma\n0,5;0;1\nabc;0;1\n")
    with pytest.raises(ReadError, match=r"\('abc' in row 2 \(line 3\)\); mend that entry"):
        read_cases(path, options=given)
    path.write_text("y;mu;sigma\n0,5;0;1\n0.7;0;1\n;0;1\n")
    with pytest.raises(ReadError, match=r"\('0.7' in row 2 .*\); that has a point, and .* decimal=','"):
        read_cases(path, options=given, drop_missing=True)


@pytest.mark.parametrize(
    ("entries", "row", "shown"), [([1, "abc"], 1, "'abc'"), ([2.0, date(2024, 1, 1)], 1, "date")]
)
def test_numbers_among_objects_are_not_at_fault(entries: list[Any], row: int, shown: str) -> None:
    with pytest.raises(TypeError, match=rf"{shown} in row {row}\)"):
        Table(pd.DataFrame({"y": pd.Series(entries, dtype=object)})).numbers(["y"])


@pytest.mark.parametrize("text", ["1,5", "1,037", "12,500.5", "1.037,5", "1,000,000", " -0,5 "])
def test_commas_have_a_remedy(text: str) -> None:
    assert "read the file with decimal=','" in about_entry(text, [text])
    assert "comma" not in about_entry(f"a{text}", [text])
