"""Runs as a whole: killed and continued, interrupted, finished; on any number of processes."""

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from typer.testing import CliRunner

from reproduction import ranks
from reproduction.__main__ import app
from reproduction.catalogue import EXPERIMENTS
from reproduction.experiments import decisions, estimators, friedman, ols, planted
from reproduction.run import Run
from reproduction.schedule import worker_pool
from reproduction.store import Store, StoreError
from reproduction.tasks import Settings

mpl.use("agg")
ROOT = Path(__file__).parents[2]
QUICK = Settings(0, quick=True)
TINY = {
    "ols": ols.Sizes(99, 3, 99),
    "estimators": estimators.Sizes((4,), 20, 9, 1),
    "tests": decisions.Sizes({4: 3, 16: 3}, 19, {4: 1, 16: 1}, {4: 199, 16: 199}, 9),
    "friedman": friedman.Sizes(9, (0,), first=(2,), scores=True),
    "planted": planted.Sizes({}),
}
FEW = friedman.Sizes(4, (2,), scores=True)
"""Four repeats, a task each."""


def with_few(experiment=EXPERIMENTS["friedman"]):
    return replace(experiment, quick=FEW, label=None, summarise=lambda found, sizes, seed: found)


class Inline(Executor):
    """Runs what it is given at once, in this process."""

    def submit(self, function, /, *arguments, **options):
        future = Future()
        future.set_result(function(*arguments, **options))
        return future


def command(*arguments):
    return CliRunner().invoke(app, [*arguments, "--quick"])


def records(path):
    """What was found, by task; without times, which are never the same twice."""
    entries = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    found = {entry["key"]: entry["record"] for entry in entries}
    assert len(found) == len(entries), "no task is done twice"
    for record in found.values():
        record.pop("seconds", None)
    return found


# Kills itself from within, as soon as the third of four records is on disk: no clock, and no race.
KILLED = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
from reproduction.catalogue import EXPERIMENTS
from reproduction.experiments import friedman
from reproduction.run import Run
from reproduction.schedule import worker_pool
from reproduction.store import Store
from reproduction.tasks import Settings

class Fatal(Store):
    def add(self, *entry):
        super().add(*entry)
        if len(self.records) == 3:
            os.kill(os.getpid(), signal.SIGKILL)

sys.modules["reproduction.run"].Store = Fatal
experiment = replace(EXPERIMENTS["friedman"], quick=friedman.{sizes!r})
with worker_pool(2) as pool:
    Run(experiment, Settings(0, quick=True), Path({out!r})).finish(pool)
"""


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    code = KILLED.format(sizes=FEW, out=str(tmp_path / "killed"))
    # Its processes hold the same pipe: this returns when they have left too. The limit only ends a failure.
    killed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, timeout=600)
    assert killed.returncode == -signal.SIGKILL

    run = Run(with_few(), QUICK, tmp_path / "killed")
    complete = run.path.read_bytes()
    assert complete.count(b"\n") == 1 + 3
    # What a kill in the middle of writing leaves behind.
    run.path.write_bytes(complete + b'{"key": "half a li')
    whole = Run(with_few(), QUICK, tmp_path / "whole")
    with worker_pool(1) as pool:
        run.finish(pool)
        whole.finish(pool)
    assert run.path.read_bytes().startswith(complete), "nothing that was done is lost or done again"
    assert len(records(run.path)) == 4
    assert records(run.path) == records(whole.path), "the same, killed or not, with any number of processes"
    assert [path.name for path in run.folder.iterdir()] == ["friedman.jsonl"]


def test_an_interrupted_run_says_how_to_go_on(tmp_path, monkeypatch):
    """The interruption comes from within, after the first record, whatever the shell does with signals."""
    add = Store.add

    def interrupted(self, *entry):
        add(self, *entry)
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "add", interrupted)
    monkeypatch.setitem(EXPERIMENTS, "friedman", with_few())
    others = set(multiprocessing.active_children())
    found = command("friedman", "--out", str(tmp_path), "--workers", "1")
    assert found.exit_code == 130
    assert "same command again" in found.output
    assert "Traceback" not in found.output
    assert len(records(tmp_path / "reproduction" / "results-quick" / "friedman.jsonl")) == 1
    left = set(multiprocessing.active_children()) - others
    assert all(wait([child.sentinel], timeout=0) for child in left), "no process is left running"


def test_processes_leave_interruptions_to_the_parent_and_run_one_thread(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with worker_pool(1) as pool:
        assert pool.submit(signal.getsignal, signal.SIGINT).result() == signal.SIG_IGN
        assert pool.submit(os.getenv, "OMP_NUM_THREADS").result() == "1"
        # Also before they could say so themselves, while they import what they need.
        assert signal.SIGINT in pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []).result()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert "OMP_NUM_THREADS" not in os.environ


def test_a_finished_run_is_not_run_again_and_not_mixed_with_another_seed(tmp_path, monkeypatch):
    experiment = replace(EXPERIMENTS["estimators"], quick=TINY["estimators"])
    run = Run(experiment, QUICK, tmp_path)
    monkeypatch.setattr(ranks, "ALPHA", 0.2)
    first = run.finish(Inline())
    before = run.path.read_bytes()
    unable = Executor()  # whose submit raises
    assert run.compute(unable) == run.compute(unable)
    assert run.finish(unable).verdict.ranking.pooled == first.verdict.ranking.pooled
    with pytest.raises(StoreError, match="other settings"):
        Run(experiment, Settings(1, quick=True), tmp_path).finish(unable)

    monkeypatch.setitem(EXPERIMENTS, "estimators", experiment)
    found = command("estimators", "--out", str(tmp_path), "--seed", "1")
    assert found.exit_code == 1
    assert "other settings" in found.output
    assert run.path.read_bytes() == before


def tiny(monkeypatch, *, published_is_ours):
    """All experiments in small sizes, with published numbers that are ours, or are not; 9 repeats suffice."""
    monkeypatch.setattr(ranks, "ALPHA", 0.2)
    for name, sizes in TINY.items():
        experiment = EXPERIMENTS[name]

        def summarise(found, sizes, seed, own=experiment.summarise):
            summary = own(found, sizes, seed)
            for key, cell in getattr(summary, "numbers", {}).items():
                middle = float(np.median(cell.repeats))
                summary.numbers[key] = replace(cell, published=middle if published_is_ours else middle + 0.4)
            return summary

        given = {"quick": sizes, "summarise": summarise}
        monkeypatch.setitem(EXPERIMENTS, name, replace(experiment, **given, problems=None))


def inline(monkeypatch):
    """Let commands compute in this process, which has imported all libraries; how many they ask for."""
    asked = []

    @contextmanager
    def pool(workers):
        asked.append(workers)
        yield Inline()

    monkeypatch.setattr(sys.modules["reproduction.__main__"], "worker_pool", pool)
    return asked


def test_the_page_shows_all_experiments(tmp_path, monkeypatch):
    tiny(monkeypatch, published_is_ours=True)
    monkeypatch.chdir(tmp_path)
    asked = inline(monkeypatch)
    done = command("--workers", "2")
    assert asked == [2]
    assert done.exit_code == 0, done.output
    assert "Page:" in done.output
    out = tmp_path / "build" / "reproduction"  # and not docs, where the full run goes
    page = (out / "reproduction.md").read_text()
    titles = ["Are the published numbers ours?", *(each.title for each in EXPERIMENTS.values())]
    assert re.findall("^## (.+)$", page, re.MULTILINE) == titles
    assert "`python -m reproduction all --seed 0 --quick`" in page
    for name, total in re.findall(r"(\w+): \d+ of (\d+) published numbers", done.output):
        assert re.search(rf"^\| {name} \| {total} \|", page, re.MULTILINE)
    figures = re.findall(r"\]\((reproduction/figures/[\w-]+)\.svg\)", page)
    assert len(figures) == 3 + 4 + 2 + 1
    for figure in figures:
        assert (out / f"{figure}.svg").read_text().startswith("<?xml")
        assert (out / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    assert str(tmp_path) not in page
    assert os.uname().nodename not in page
    assert "| date |" in page


def test_a_mismatch_ends_the_command_with_an_error_and_is_on_the_page(tmp_path, monkeypatch):
    tiny(monkeypatch, published_is_ours=False)
    inline(monkeypatch)
    found = command("estimators", "--out", str(tmp_path), "--workers", "1")
    assert found.exit_code == 1
    assert "is not matched: published" in found.output
    page = (tmp_path / "reproduction.md").read_text()
    assert "**Not as it should be:**" in page
    assert re.search(r"\| \*\*0\.100\*\* \|", page)


def test_a_planted_error_that_is_not_caught_ends_the_command_with_an_error(tmp_path, monkeypatch):
    given = {
        "quick": planted.Sizes({}),
        "problems": lambda summary: ["planted: x is not caught"],
    }
    monkeypatch.setitem(EXPERIMENTS, "planted", replace(EXPERIMENTS["planted"], **given))
    found = command("planted", "--out", str(tmp_path), "--workers", "1")
    assert found.exit_code == 1
    assert "x is not caught" in found.output


# Neither the packages of the command line nor those of figures.
BARE = """
import sys

for name in ("typer", "rich", "matplotlib", "pandas"):
    sys.modules[name] = None
from dataclasses import replace
from pathlib import Path
from reproduction import compute
from reproduction.catalogue import EXPERIMENTS
from reproduction.experiments import friedman

EXPERIMENTS["friedman"] = replace(EXPERIMENTS["friedman"], quick=friedman.{sizes!r})
if __name__ == "__main__":
    compute.main(["friedman", "--quick", "--workers", "1", "--out", {out!r}])
"""


def test_results_can_be_made_elsewhere_and_the_page_here(tmp_path):
    """With NumPy and SciPy alone; what another machine has made is not made again."""
    code = BARE.format(sizes=FEW, out=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert "friedman: 4 tasks" in done.stdout, done.stderr
    run = Run(with_few(), QUICK, tmp_path)
    assert len(run.compute(Executor())[0]) == 4  # whose submit raises
    assert "versions" in json.loads((run.folder / "machine.json").read_text())


def test_the_command_explains_itself():
    run = [sys.executable, "-m", "reproduction"]
    shown = subprocess.run([*run, "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--quick" in shown.stdout
    found = command("nothing")
    assert found.exit_code == 2
    assert "friedman" in found.output
