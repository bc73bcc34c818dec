"""The guard of ratios names those that fell, and only those."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # benchmarks are not part of the installed package

from benchmarks import ratios, side_by_side  # noqa: E402
from benchmarks.ratios import Stored  # noqa: E402
from benchmarks.settings import QUICK  # noqa: E402
from benchmarks.timing import Timing  # noqa: E402


def test_what_fell_is_named_with_both_numbers():
    stored = {"a": Stored(2.0, 0.25), "b": Stored(2.0, 0.25), "c": Stored(9.0, 0.1), "d": Stored(1.0, 0.1)}
    found = {"a": 1.6, "b": 1.4, "d": float("nan"), "new": 0.1}
    fell = ratios.fallen(found, stored)
    assert [line.split(":")[0] for line in fell] == ["b", "d"]
    assert "1.40, stored are 2.00 and at least 1.50" in fell[0]


def test_ratios_are_read_as_they_were_written_and_margins_stay(tmp_path: Path):
    path = tmp_path / "ratios.csv"
    assert ratios.read(path) == {}
    ratios.write({"SKCE of 10,000 normals: linear": 12.34, "b": 0.5}, path)
    assert ratios.read(path) == {
        "SKCE of 10,000 normals: linear": Stored(12.3, ratios.MARGIN),
        "b": Stored(0.5, ratios.MARGIN),
    }
    path.write_text(path.read_text().replace(f"b,0.5,{ratios.MARGIN:g}", "b,0.5,0.1"))
    ratios.write({"b": 0.6, "c": 1.0}, path)
    assert ratios.read(path) == {"b": Stored(0.6, 0.1), "c": Stored(1.0, ratios.MARGIN)}


def test_the_stored_ratios_are_those_of_the_table():
    stored = ratios.read()
    assert len(stored) > 20
    works = {name.rsplit(": ", 1)[0] for name in stored}
    assert "SKCE of 10,000 normals" in works
    assert all(0.0 < one.margin < 1.0 and one.ratio > 0.0 for one in stored.values())


def test_ratios_are_larger_where_we_are_better():
    def nothing() -> float:
        return 0.0

    names = ("closed", "tiles", "tiles, quick", "other", "limit")
    seconds = dict(zip(names, (8.0, 4.0, 2.0, 12.0, 1.0), strict=True))
    timings = {name: Timing(0.0, [spent], [spent]) for name, spent in seconds.items()}
    engines = dict.fromkeys(names[:3], nothing)
    work = side_by_side.Work("work", engines, {"other": nothing}, {"limit": nothing})
    found = {line.name: line.ratio for line in side_by_side.lines_of(work, timings)}
    assert found == {
        "work: closed": 1.0,
        "work: tiles": 2.0,
        "work: tiles, quick": 4.0,
        "work: other": 3.0,
        "work: limit": 0.5,
    }


def test_all_at_one_piece_of_work_find_the_same_number():
    work = side_by_side.works(300)[0]
    values = [run() for run in (*work.engines.values(), *work.others.values())]
    assert values == pytest.approx([values[0]] * len(values), rel=1e-4)
    assert {"closed forms", "tiles, float64", "tiles, mixed", "linear"} <= set(work.engines)
    lines = side_by_side.held(work, QUICK)
    assert len(lines) == len(work.engines) + len(work.others) + len(work.limits)
    assert all(line.seconds > 0.0 and line.ratio > 0.0 for line in lines)
