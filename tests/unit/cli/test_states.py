"""The state of a monitor is kept by a run that has ended well, and by one at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wellcal as wc

Run = Callable[..., Any]
NORMAL = ("--target", "y", "--normal", "mu,sigma")


@pytest.mark.parametrize("where", ["file", "screen"])
def test_a_monitor_whose_result_is_lost_has_seen_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The run is made again, and must not count its cases twice."""

    def full(*_: object) -> None:
        monkeypatch.undo()
        raise OSError(28, "No space left on device")

    def shown(*_: object, **__: object) -> None:
        monkeypatch.setattr(sys.stdout, "flush", full)

    given = ("monitor", "stream.csv", *NORMAL, "--state", str(tmp_path / "m.json"))
    if where == "file":
        monkeypatch.setattr("wellcal.cli.screen.write_whole", full)
    else:
        monkeypatch.setattr("wellcal.cli.watching.show", shown)
    done = run(*given, "--json", str(tmp_path / "out.json"), expect=2)
    assert "No space left on device" in done.stderr
    assert not any(tmp_path.iterdir())


def test_two_first_runs_of_a_monitor_do_not_undo_each_other(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a run undo one that went on from the same state."""
    state, other = tmp_path / "m.json", tmp_path / "other.json"
    given = ("monitor", "stream.csv", *NORMAL, "--state", str(state))
    for before in (0, 60):
        with monkeypatch.context() as patched:
            wc.Monitor(rng=before).save(other)
            patched.setattr(
                "wellcal.cli.watching.show", lambda *_, **__: state.write_bytes(other.read_bytes())
            )
            done = run(*given, expect=2)
        assert f"--state {state}: another run has written it since this one began" in done.stderr
        assert done.stderr.endswith("run the command again, and it goes on from there\n")
        assert state.read_bytes() == other.read_bytes()
        if not before:
            state.unlink()
            run(*given)
            assert wc.Monitor.load(state).n_samples == 60
