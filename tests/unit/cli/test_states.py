"""The state of a monitor is kept by a run that has ended well, and by one at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
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


def test_a_monitor_whose_outcomes_fall_on_quantiles_stays_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next file is taken without them. Of the file that was refused no case is counted."""
    monkeypatch.setattr("wellcal.cli.watching.TOGETHER", 40)
    rng = np.random.default_rng(2)
    state = tmp_path / "m.json"

    def made(name: str, n: int, tied: int) -> str:
        loc = rng.normal(size=n)
        y, low, high = rng.normal(loc), loc - 1.2815515655, loc + 1.2815515655
        y[n - tied :] = low[n - tied :]
        table = np.c_[y, low, high]
        np.savetxt(tmp_path / name, table, delimiter=",", header="y,q0.1,q0.9", comments="", fmt="%.17g")
        return str(tmp_path / name)

    days = [made("1.csv", 30, 0), made("2.csv", 90, 9), made("3.csv", 30, 0)]
    columns = ("--target", "y", "--quantiles", "q0.1,q0.9", "--state", str(state))
    run("monitor", days[0], *columns)
    told = "y equals its own quantile of level 0.1 in 9 of 120 cases"
    first = run("monitor", days[1], *columns, expect=2).stderr
    assert f"2.csv: {told}, with those before; among the new ones first in row 82 (line 83): " in first
    kept = wc.Monitor.load(state)
    assert kept.n_samples == 30
    assert kept.status.refused is not None
    assert kept.status.refused.startswith(f"{told}: ")
    content = state.read_bytes()
    for _ in range(2):
        again = run("monitor", days[2], *columns, expect=2).stderr
        assert f"--state {state}: {kept.status.refused} (--restart, or another file)" in again
        assert state.read_bytes() == content
    assert " cases since the restart" in run("monitor", days[2], *columns, "--restart").stdout
    assert wc.Monitor.load(state).n_samples == 60
    assert wc.Monitor.load(state).status.refused is None
    run("monitor", days[2], *columns)


def test_a_monitor_that_is_refused_its_first_cases_says_so_again(run: Run, tmp_path: Path) -> None:
    (tmp_path / "zeros.csv").write_text("y,q0.1,q0.9\n" + "0,0,1\n" * 9)
    given = ("monitor", str(tmp_path / "zeros.csv"), "--target", "y", "--quantiles", "q0.1,q0.9")
    assert "9 of 9 cases, first in row 1 (line 2)" in run(*given, expect=2).stderr
    assert not (tmp_path / "m.json").exists()
    for where in ("zeros.csv: y equals", "m.json: y equals"):
        assert where in run(*given, "--state", str(tmp_path / "m.json"), expect=2).stderr
