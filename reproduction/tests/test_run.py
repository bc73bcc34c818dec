"""Runs as a whole: killed and gone on with, on any number of processes, from the command line."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "reproduction"]


def start(out, experiment, *options):
    command = [*COMMAND, experiment, "--quick", "--out", str(out), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)


def finish(out, experiment, *options):
    process = start(out, experiment, *options)
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 0, text
    return text


def results(out, experiment):
    return Path(out) / "reproduction" / "results-quick" / f"{experiment}.jsonl"


def records(path):
    """What was found, by task; without times, which are never the same twice."""
    entries = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    found = {entry["key"]: entry["record"] for entry in entries}
    assert len(found) == len(entries), "no task is done twice"
    for record in found.values():
        record.pop("seconds", None)
    return found


def children(pid):
    """Processes that a process has started, where the system tells."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(condition, seconds=120.0):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.005)


@pytest.mark.parametrize("experiment", ["estimators", "friedman"])
def test_a_killed_run_goes_on_where_it_stopped(tmp_path, experiment):
    path = results(tmp_path / "killed", experiment)
    process = start(tmp_path / "killed", experiment, "--workers", "2")
    wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= 3)
    workers = children(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_for(lambda: not any(map(is_running, workers)), 30.0)

    before = path.read_bytes()
    complete = before[: before.rfind(b"\n") + 1]
    done = complete.count(b"\n") - 1
    # What a kill in the middle of writing leaves behind.
    path.write_bytes(complete + b'{"key": "half a li')

    finish(tmp_path / "killed", experiment, "--workers", "1")
    assert path.read_bytes().startswith(complete), "nothing that was done is lost or done again"
    finish(tmp_path / "whole", experiment, "--workers", "3")
    whole = records(results(tmp_path / "whole", experiment))
    assert 0 < done < len(whole), "killed in the middle"
    assert records(path) == whole, "the same, killed or not, with any number of processes"

    pages = [(tmp_path / name / "reproduction.md").read_text() for name in ("killed", "whole")]
    killed, uninterrupted = (re.sub(r"[\d.]+ (µs|ms|s)\b|minutes on one core.*", "", page) for page in pages)
    assert killed == uninterrupted


def test_an_interrupted_run_says_how_to_go_on(tmp_path):
    path = results(tmp_path, "friedman")
    process = start(tmp_path, "friedman", "--workers", "1")
    wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= 2)
    os.kill(process.pid, signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "same command again" in text
    assert "Traceback" not in text


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("finished")
    assert "Page:" in finish(out, "ols")
    return out


def test_a_finished_run_is_not_run_again(finished):
    before = results(finished, "ols").read_bytes()
    finish(finished, "ols")
    assert results(finished, "ols").read_bytes() == before


def test_page_and_figures(finished):
    page = (finished / "reproduction.md").read_text()
    figures = re.findall(r"\]\((reproduction/figures/[\w-]+)\.svg\)", page)
    assert len(figures) == 3
    for figure in figures:
        assert (finished / f"{figure}.svg").read_text().startswith("<?xml")
        assert (finished / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    assert str(finished) not in page
    assert os.uname().nodename not in page
    assert "| date |" in page


def test_results_of_another_seed_are_not_mixed(finished):
    before = results(finished, "ols").read_bytes()
    process = start(finished, "ols", "--seed", "1")
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "other settings" in text
    assert results(finished, "ols").read_bytes() == before
