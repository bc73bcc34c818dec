"""The benchmarks compare like with like: every competitor computes the same number. Times are not tested."""

from __future__ import annotations

import ast
import math
import re
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # benchmarks are not part of the installed package

from benchmarks import (  # noqa: E402
    competitors,
    peak,
    peers,
    planted_errors,
    results,
    scalar_loop,
    skce_speed,
    studies,
    timing,
)
from benchmarks.__main__ import STUDIES, main  # noqa: E402
from benchmarks.cases import Case, ClassCase, NormalCase  # noqa: E402
from benchmarks.results import Section  # noqa: E402
from benchmarks.settings import FULL, QUICK  # noqa: E402

CASES = [
    NormalCase(2),
    NormalCase(37),
    ClassCase.with_default_scale(41, 2),
    ClassCase.with_default_scale(30, 7),
]


def by_definition(case: Case) -> float:
    """The unbiased estimator, pair by pair in plain Python."""
    h = normal_h if isinstance(case, NormalCase) else class_h
    values = [h(case, i, j) for i in range(case.n) for j in range(i + 1, case.n)]
    return sum(values) / len(values)


def normal_h(case: NormalCase, i: int, j: int) -> float:
    mu, sigma, y = case.arrays

    def k(a: float, b: float, variance: float) -> float:
        return np.exp(-0.5 * (a - b) ** 2 / (1 + variance)) / np.sqrt(1 + variance)

    v, w = sigma[i] ** 2, sigma[j] ** 2
    pairing = k(mu[i], mu[j], v + w) - k(mu[i], y[j], v) - k(y[i], mu[j], w) + k(y[i], y[j], 0)
    return np.exp(-np.hypot(mu[i] - mu[j], sigma[i] - sigma[j])) * pairing


def class_h(case: ClassCase, i: int, j: int) -> float:
    p, labels = case.arrays
    unit = np.eye(case.classes)
    pairing = (p[i] - unit[labels[i]]) @ (p[j] - unit[labels[j]])
    return np.exp(-0.5 * np.abs(p[i] - p[j]).sum() / case.scale) * pairing


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_competitors_agree_with_the_definition(case: Case):
    runs, absent = skce_speed.available(case)
    assert {competitors.OURS, "wellcal, one thread", "NumPy, full matrix"} <= set(runs)
    assert set(runs) | set(absent) == {competitor.name for competitor in competitors.COMPETITORS}
    assert all(absent.values()), "who is absent says why"
    for name, run in runs.items():
        assert run() == pytest.approx(by_definition(case), rel=1e-11, abs=1e-14), name


def test_c_loop_takes_part_where_there_is_a_compiler():
    runs, absent = skce_speed.available(NormalCase(5))
    assert ("C loop, -O2" in runs) == (scalar_loop.compiler_version() is not None), absent


def test_matrices_beyond_memory_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(competitors, "available_memory", lambda: 10**9)
    _, absent = skce_speed.available(NormalCase(20_000))
    assert "GB" in absent["NumPy, full matrix"]


def test_disagreement_is_an_error():
    assert timing.check_agreement({"a": 1.0, "b": 1.0 + 1e-14}, 1.0) < timing.AGREEMENT
    for wrong in (1.0 + 1e-9, float("nan")):
        with pytest.raises(AssertionError, match="disagree"):
            timing.check_agreement({"a": 1.0, "b": wrong}, 1.0)


def test_turns_alternate_and_a_slow_competitor_runs_once():
    calls: list[str] = []
    clock = iter(range(10_000))

    def run(name: str) -> float:
        calls.append(name)
        return float(next(clock))

    found = timing.take_turns({"a": lambda: run("a"), "b": lambda: run("b")}, budget=math.inf, rounds=2)
    assert calls == ["a", "b"] * 3
    assert [len(t.wall) for t in found.values()] == [2, 2]
    once = timing.take_turns({"a": lambda: run("a")}, budget=0.0, rounds=5)
    assert len(once["a"].wall) == 1


def test_an_absent_peer_is_named_and_a_slow_one_of_ours_fails():
    def spin(turns: int) -> float:
        return float(sum(range(turns)) * 0 + 1)

    contest = peers.Contest(
        "spinning",
        lambda: spin(30_000),
        (
            peers.Peer("slower", ("math",), lambda _: lambda: spin(600_000)),
            peers.Peer("faster", ("math",), lambda _: lambda: spin(10)),
            peers.Peer("missing", ("no_such_library",), lambda _: lambda: 1.0),
        ),
    )
    slower, faster, missing = peers.held(contest, QUICK)
    assert slower.ratio is not None
    assert slower.failure is None
    assert faster.failure is not None
    assert missing.ratio is None
    assert "no_such_library" in missing.remark
    assert "| absent |" in peers.shown([slower, faster, missing])


def test_a_peer_that_finds_another_number_is_an_error():
    contest = peers.Contest("one", lambda: 1.0, (peers.Peer("two", ("math",), lambda _: lambda: 2.0),))
    with pytest.raises(AssertionError, match="wellcal finds 1 and two 2"):
        peers.held(contest, QUICK)


def test_failure_of_a_child_is_told():
    with pytest.raises(peak.FailedRunError, match=r"status 1: .*StopIteration"):
        peak.peak_memory("nobody", NormalCase(3))


def test_peak_memory_sees_whole_matrices():
    n = 1500
    assert peak.peak_memory("NumPy, full matrix", NormalCase(n)) > 3 * 8 * n**2


def test_a_competitor_that_crashes_is_left_out(monkeypatch: pytest.MonkeyPatch):
    def crash(name: str, case: Case) -> int:
        if name == "NumPy, full matrix":
            raise peak.FailedRunError("killed")
        return 10**6

    monkeypatch.setattr(skce_speed, "peak_memory", crash)
    comparison = skce_speed.compare(NormalCase(16), QUICK)
    assert comparison.absent["NumPy, full matrix"] == "killed"
    assert "NumPy, full matrix" not in comparison.timings
    assert competitors.OURS in comparison.timings


def test_report_has_a_row_for_everyone_who_ran(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(skce_speed, "peak_memory", lambda name, case: 10**6)
    comparison = skce_speed.compare(NormalCase(64), QUICK)
    body = skce_speed._body("what", [comparison], 0.0)
    for name in comparison.timings:
        assert f"| {name} " in body
    for name in comparison.absent:
        assert f"{name} is left out" in body


def test_sections_are_replaced_one_by_one(tmp_path: Path):
    path = tmp_path / "RESULTS.md"
    for name, body in [("one", "first"), ("two", "second"), ("one", "again")]:
        results.save(Section(name, f"Title {name}", body), path)
    text = path.read_text()
    assert text.startswith("# Benchmark results")
    assert "first" not in text
    assert text.index("again") < text.index("second")
    assert [file.name for file in tmp_path.iterdir()] == ["RESULTS.md"]


def test_two_runs_lose_none_of_each_others_sections(tmp_path: Path):
    """Each waits for the other between reading the file and writing it."""
    path, together = tmp_path / "RESULTS.md", threading.Barrier(4)

    def run(name: str) -> None:
        together.wait()
        for _ in range(5):
            results.save(Section(name, f"Title {name}", "body"), path)

    runs = [threading.Thread(target=run, args=(name,)) for name in ("one", "two", "three", "four")]
    for each in runs:
        each.start()
    for each in runs:
        each.join()
    assert path.read_text().count("## Title") == 4
    assert [file.name for file in tmp_path.iterdir()] == ["RESULTS.md"]


def test_command_line_explains_itself(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "--quick" in capsys.readouterr().out


def test_every_study_has_two_thousand_data_sets():
    """One number for all of them, which no study cuts down."""
    assert FULL.data_sets >= 2000
    assert all(getattr(FULL, name) >= FULL.data_sets for name in vars(FULL) if name.endswith("_sets"))
    for path in (ROOT / "benchmarks").glob("*.py"):
        assert not re.search(r"_sets\s*//|min\(.*_sets|_sets, \d", path.read_text()), path.name


def test_studies_do_not_depend_on_the_number_of_processes():
    alone, shared = (studies.simulate(("same",), drawn, 7, workers) for workers in (1, 2))
    assert alone == shared
    assert len(set(alone)) == 7


def test_a_study_that_was_broken_off_goes_on(tmp_path: Path):
    """What a folder holds is not computed again; another cell, or another number of data sets, is."""
    studies.keep_in(tmp_path)
    try:
        first = studies.simulate(("kept", 0.5), drawn, 3, 1)
        assert studies.simulate(("kept", 0.5), never_drawn, 3, 1) == first
        for key, count in ((("kept", "0.5"), 3), (("kept", 0.5), 2)):
            with pytest.raises(AssertionError, match="drawn again"):
                studies.simulate(key, never_drawn, count, 1)
    finally:
        studies.keep_in(None)
    assert studies.kept_file(("kept", 0.5), 3) is None
    assert len(list(tmp_path.iterdir())) == 1


def never_drawn(for_data: np.random.Generator, for_tests: np.random.Generator) -> float:
    raise AssertionError("drawn again")


def drawn(for_data: np.random.Generator, for_tests: np.random.Generator) -> float:
    return float(for_data.random() + for_tests.random())


STUDIES_IN_WORDS = re.compile(r"([\d,]+) (?:data sets|streams|estimates)")


@pytest.mark.parametrize("name", STUDIES)
def test_tables_come_from_the_settings_that_are_committed(name: str) -> None:
    """RESULTS.md has a section for each study, with as many data sets as the settings say now."""
    text = results.RESULTS.read_text(encoding="utf-8")
    section = text.split(f"<!-- begin {name} -->")[1].split(f"<!-- end {name} -->")[0]
    found = {int(number.replace(",", "")) for number in STUDIES_IN_WORDS.findall(section)}
    assert FULL.data_sets in found
    # Medians of delays and means of run lengths need fewer streams than rates of alarms.
    fewer = {FULL.monitor_streams} if name == "monitor" else set[int]()
    assert found <= {FULL.data_sets, FULL.pearson_sets} | fewer
    assert "level 0.05" not in section


def test_planted_errors_are_chosen_by_their_seed_and_each_changes_the_code():
    first, again, other = (planted_errors.chosen(60, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 60
    for mutant in first:
        source = (ROOT / mutant.path).read_text(encoding="utf-8")
        changed = mutant.apply(source)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)), mutant


def test_rooms_get_planted_errors_by_their_size():
    by_room = Counter(mutant.room for mutant in planted_errors.chosen(200, 0))
    assert by_room["hypotests"] > by_room["monitoring"] > 0
