"""Files that are there in full or not at all, and one writer at a time."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from wellcal._arrays import files
from wellcal._arrays.files import InUseError, locked, naming, write_whole

# Takes the lock, says so, and holds it until its input ends: pipes keep the order, no clock does.
HOLDER = """
import sys
from wellcal._arrays.files import locked

with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
print("released", flush=True)
sys.stdin.close()
"""


@contextmanager
def holder(path: Path) -> Generator[subprocess.Popen[str]]:
    """Another process that holds the lock of a file."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_another_process_is_named_and_gives_the_lock_back(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    with holder(path) as process:
        with pytest.raises(InUseError) as refused, locked(path):
            pass
        text = str(refused.value)
        assert str(path) in text
        assert f"process {process.pid} on " in text
        assert "wait until that has ended" in text
        process.communicate()  # ends its input, and waits for its end
        with locked(path):
            pass
    assert not list(tmp_path.iterdir())


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    with holder(path) as process:
        process.kill()
        process.wait()
        with locked(path):
            pass


def test_waiting_ends_when_the_other_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    with holder(path) as process:
        ending = threading.Thread(target=process.communicate)
        ending.start()
        with locked(path, wait=600.0):  # the limit only ends a failure
            assert process.wait() == 0
        ending.join()


def test_links_to_one_file_have_one_lock(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "state.json")
    with locked(tmp_path / "state.json"), pytest.raises(InUseError), locked(tmp_path / "link"):
        pass


def test_a_lock_is_released_after_an_error(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), locked(tmp_path / "a"):
            raise ZeroDivisionError


def test_file_systems_without_locks_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_here(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(files.fcntl, "flock", none_here)
    with pytest.warns(UserWarning, match="no locks"), locked(tmp_path / "a"):
        pass


# -- whole files ----------------------------------------------------------------------------------


def test_threads_do_not_share_a_temporary_file(tmp_path: Path) -> None:
    path, both = tmp_path / "a", threading.Barrier(2)

    def write(letter: str) -> None:
        both.wait()
        write_whole(path, letter * 100_000)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in ("a" * 100_000, "b" * 100_000)
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


def test_a_full_disk_leaves_the_old_file_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.json"
    write_whole(path, "old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*state\.json'"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a disk that is always full")
def test_what_is_no_file_is_not_replaced() -> None:
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_whole("/dev/full", "new")
    assert Path("/dev/full").is_char_device()


def test_folders_and_missing_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"there is no folder .*nowhere; make it.*nowhere/state\.json"):
        write_whole(tmp_path / "nowhere" / "state.json", "")
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, "")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="'here'"), naming("here"):
        (tmp_path / "file" / "below").read_text()
