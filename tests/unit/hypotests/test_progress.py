"""The progress line: on terminals only, after a while, and gone at the end."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from wellcal.hypotests.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def steps(shown: bool | None, stream: Any, clock: Clock, seconds: float, count: int = 10) -> str:
    line = Progress(shown, stream, clock=clock)
    for done in range(count + 1):
        line("resamples", done, count)
        clock.now += seconds / count
    return stream.getvalue()


def test_quiet_where_there_is_no_terminal(clock: Clock) -> None:
    assert steps(None, io.StringIO(), clock, 100.0) == ""
    assert steps(None, Terminal(), clock, 100.0) != ""


def test_asked_for_or_forbidden(clock: Clock) -> None:
    assert steps(True, io.StringIO(), clock, 100.0) != ""
    assert steps(False, Terminal(), clock, 100.0) == ""


def test_short_runs_are_silent(clock: Clock) -> None:
    assert steps(True, Terminal(), clock, 1.0) == ""


def test_it_tells_what_how_far_and_how_long(clock: Clock) -> None:
    text = steps(True, Terminal(), clock, 100.0)
    assert "\rresamples:  10%, 90 s left" in text
    assert "\rresamples:  90%, 10 s left" in text
    assert "100%" not in text


def test_the_line_is_erased_at_the_end(clock: Clock) -> None:
    text = steps(True, Terminal(), clock, 100.0)
    assert text.endswith("\r")
    last = text.rstrip("\r").split("\r")[-1]
    assert last.strip() == ""
    assert len(last) == len("resamples:  90%, 10 s left")


def test_shorter_lines_cover_longer_ones(clock: Clock) -> None:
    stream = Terminal()
    line = Progress(True, stream, clock=clock)
    line("resamples", 0, 1000)
    clock.now += 10.0
    line("resamples", 1, 1000)
    clock.now += 10.0
    line("resamples", 500, 1000)
    long, short = stream.getvalue().split("\r")[1:]
    assert len(short) == len(long)
    assert "20 s left" in short


def test_lines_are_not_written_too_often(clock: Clock) -> None:
    many = steps(True, Terminal(), clock, 10.0, 10_000)
    assert many.count("\r") <= 10.0 / Progress().interval + 3


def test_a_new_run_starts_the_clock_again(clock: Clock) -> None:
    stream = Terminal()
    line = Progress(True, stream, clock=clock)
    line("pairs", 0, 10)
    clock.now += 1000.0
    line("pairs", 0, 10)
    clock.now += 4.0
    line("pairs", 5, 10)
    assert "4 s left" in stream.getvalue()


def test_standard_error_is_looked_up_when_it_is_needed(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    line = Progress(clock=clock)
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    line("pairs", 0, 10)
    clock.now += 4.0
    line("pairs", 5, 10)
    assert "pairs:" in stream.getvalue()


def test_no_standard_error_is_no_terminal(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    line = Progress(clock=clock)
    line("pairs", 0, 10)
    clock.now += 4.0
    line("pairs", 5, 10)
