"""Numbers stay what they were: every row of the committed table, section by section."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # benchmarks are not part of the installed package

from benchmarks import regression, regression_data, regression_measures  # noqa: E402
from benchmarks.regression_rows import Row  # noqa: E402

# The slowest first, one test each: two workers then end at about the same time.
SLOW = ["jax", "metrics", "estimators: vectors and mixtures", "estimators: numbers", "torch"]
SECTIONS = SLOW + [section for section in regression.SECTIONS if section not in SLOW]


@pytest.mark.parametrize("section", SECTIONS)
def test_numbers_are_those_of_the_table(section: str):
    found = regression.compare(regression.read()[section], regression.compute(section))
    assert not found.problems, "\n".join(["", *found.problems])


def test_table_and_script_have_the_same_sections():
    assert list(regression.read()) == list(regression.SECTIONS)


def test_every_family_has_rows():
    names = [row for section in regression.read().values() for row in section]
    for family in regression_data.MAKERS:
        assert f"skce unbiased / {family}" in names


# -- the comparison itself -----------------------------------------------------------------------

COMMITTED = {
    row.name: row for row in (Row("plain", 2.0), Row("cancelled", 1e-5, 1e-12, 0.01), Row("zero", 0.0))
}


def problems_with(**values: float) -> list[str]:
    found = {name: replace(row, value=values.get(name, row.value)) for name, row in COMMITTED.items()}
    return regression.compare(COMMITTED, found).problems


def test_rounding_passes_and_anything_more_is_told():
    assert problems_with() == []
    assert problems_with(plain=2.0 + 1e-12, cancelled=1e-5 + 5e-15) == []
    for name, value in (("plain", 2.0 + 3e-12), ("cancelled", 1e-5 + 2e-14), ("zero", 1e-300)):
        (problem,) = problems_with(**{name: value})
        assert problem.startswith(f"{name}: ")
    assert len(problems_with(plain=float("nan"), zero=float("inf"))) == 2


def test_missing_and_additional_rows_are_failures():
    fewer = {name: row for name, row in COMMITTED.items() if name != "zero"}
    assert regression.compare(COMMITTED, fewer).problems == ["missing: zero"]
    assert regression.compare(fewer, COMMITTED).problems == ["not in the table: zero"]


def test_own_tolerance_does_not_count_but_that_of_the_table():
    loose = {name: replace(row, value=row.value + 1e-6, tolerance=1.0) for name, row in COMMITTED.items()}
    assert len(regression.compare(COMMITTED, loose).problems) == 3


def test_file_keeps_every_digit(tmp_path: Path):
    table = {"a section, with a comma": {"one / third": Row("one / third", 1.0 / 3.0, 1e-9, 0.01)}}
    path = tmp_path / "table.csv"
    regression.write(table, path)
    assert regression.read(path) == table
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]


def test_command_fails_where_a_number_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    section = "kernels on targets"
    monkeypatch.setattr(regression, "SECTIONS", {section: regression_measures.target_kernels})
    assert regression.main([]) == 1, "the other sections of the table are gone"
    table = {section: regression.read()[section]}
    monkeypatch.setattr(regression, "read", lambda: table)
    assert regression.main([]) == 0
    name, row = next(iter(table[section].items()))
    table[section][name] = replace(row, value=row.value * (1.0 + 1e-10))
    assert regression.main([]) == 1
    assert f"{name}: " in capsys.readouterr().out
