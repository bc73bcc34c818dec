"""Results on disk: complete lines survive, incomplete ones are made anew."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reproduction.store import Store, StoreError, write_through

SETTINGS = {"experiment": "x", "seed": 0}


def test_records_are_there_again(tmp_path):
    path = tmp_path / "deep" / "x.jsonl"
    with Store(path, SETTINGS) as store:
        store.add("a", {"value": 0.1 + 0.2, "names": ["√n"]}, 1.25)
        assert "a" in store
    with Store(path, SETTINGS) as store:
        assert store.records == {"a": {"value": 0.1 + 0.2, "names": ["√n"]}}
        assert store.seconds == {"a": 1.25}


def test_a_record_is_on_disk_as_soon_as_it_is_added(tmp_path):
    path = tmp_path / "x.jsonl"
    store = Store(path, SETTINGS)
    store.add("a", {"value": 1})
    assert json.loads(path.read_text().splitlines()[-1])["record"] == {"value": 1}
    store.close()


@pytest.mark.parametrize("cut", [1, 10, 20])
def test_an_incomplete_last_line_is_cut_off(tmp_path, cut):
    path = tmp_path / "x.jsonl"
    with Store(path, SETTINGS) as store:
        store.add("a", {"value": 1})
        store.add("b", {"value": 2})
    complete = path.read_bytes()
    path.write_bytes(complete[:-cut])
    with Store(path, SETTINGS) as store:
        assert set(store.records) == {"a"}
        store.add("b", {"value": 2})
    assert path.read_bytes() == complete


def test_a_file_cut_within_its_first_line_starts_anew(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"settings": {"exp')
    with Store(path, SETTINGS) as store:
        store.add("a", {})
    with Store(path, SETTINGS) as store:
        assert set(store.records) == {"a"}


def test_other_settings_are_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    Store(path, SETTINGS).close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="other settings"):
        Store(path, {**SETTINGS, "seed": 1})
    assert path.read_bytes() == before


def test_damage_in_the_middle_is_not_passed_over(tmp_path):
    path = tmp_path / "x.jsonl"
    with Store(path, SETTINGS) as store:
        store.add("a", {})
    path.write_bytes(path.read_bytes() + b'{"key": "b", \n{"key": "c", "seconds": 0, "record": {}}\n')
    with pytest.raises(StoreError, match="line 3"):
        Store(path, SETTINGS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"[]", "it must be a dictionary"),
        (b"{}", "key is missing"),
        (b'{"key": 3, "seconds": 0, "record": {}}', "key must be a text, found 3"),
        (b'{"key": "b", "seconds": -1, "record": {}}', "seconds must be a number of at least 0, found -1"),
        (b'{"key": "b", "seconds": NaN, "record": {}}', "seconds must be"),
        (b'{"key": "b", "seconds": 0, "record": 5}', "record must be a dictionary, found 5"),
        (b"\xff", "it is not UTF-8"),
        (b"[" * 100_000, "it is nested too deeply"),
    ],
)
def test_lines_that_are_no_results_are_named(tmp_path, line, message):
    path = tmp_path / "x.jsonl"
    with Store(path, SETTINGS) as store:
        store.add("a", {})
    before = path.read_bytes() + line + b"\n"
    path.write_bytes(before)
    with pytest.raises(StoreError, match=rf"x\.jsonl, line 3, is not .*{message}.*; delete the file"):
        Store(path, SETTINGS)
    assert path.read_bytes() == before


def test_what_is_not_a_number_cannot_be_stored(tmp_path):
    with (
        Store(tmp_path / "x.jsonl", SETTINGS) as store,
        pytest.raises(ValueError, match="not JSON compliant"),
    ):
        store.add("a", {"value": float("nan")})


def test_write_through_leaves_no_temporary_file(tmp_path):
    path = tmp_path / "folder" / "file"
    write_through(path, b"one")
    write_through(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


ANOTHER = """
import sys
from pathlib import Path
from reproduction.store import Store

with Store(Path(sys.argv[1]), {"experiment": "x", "seed": 0}) as store:
    store.add("theirs", {"value": 1})
    print("open", flush=True)
    sys.stdin.read()
    store.add("last", {"value": 2})
"""


def test_two_processes_do_not_write_one_store(tmp_path):
    """Pipes keep the order: ours is refused while theirs is open, and loses nothing of what it wrote."""
    path = tmp_path / "x.jsonl"
    command = [sys.executable, "-c", ANOTHER, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], **pipes) as other:
        assert other.stdout.readline() == "open\n"
        with pytest.raises(OSError, match=rf"x\.jsonl is being written by process {other.pid} on "):
            Store(path, SETTINGS)
        other.communicate()
    with Store(path, SETTINGS) as store:
        assert store.records == {"theirs": {"value": 1}, "last": {"value": 2}}
    assert [found.name for found in tmp_path.iterdir()] == ["x.jsonl"]


def test_a_store_that_was_refused_can_be_opened_later(tmp_path):
    path = tmp_path / "x.jsonl"
    Store(path, SETTINGS).close()
    with pytest.raises(StoreError, match="other settings"):
        Store(path, {**SETTINGS, "seed": 1})
    Store(path, SETTINGS).close()


def test_a_full_disk_is_told_with_the_file(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Store(tmp_path / "x.jsonl", SETTINGS) as store:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"No space left on device: '.*x\.jsonl'"):
            store.add("a", {})
        assert "a" not in store
