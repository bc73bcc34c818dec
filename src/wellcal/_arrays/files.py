"""Files that are there in full or not at all, and that one process writes at a time."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import threading
import time
import warnings
from collections.abc import Generator
from pathlib import Path

_HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_CANNOT_LOCK = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
_BETWEEN_TRIES = 0.05  # seconds


class InUseError(OSError):
    """Another process is writing the file; the message says which."""


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file under a temporary name next to `path` and move it into place.

    A reader, or a crash, meets the old file or the new one and never a part of it. Nothing is left behind
    where writing fails, and the error names `path`. Where `path` is a link the file that it leads to is
    replaced; what is no file, such as ``/dev/stdout``, is written to as it is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "state.json", "{}")
    ...     print(*(found.name for found in Path(folder).iterdir()))
    state.json
    """
    data = content.encode() if isinstance(content, str) else content
    with naming(path):
        target = Path(path).resolve()
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return
        temporary = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            _write(temporary, data)
            temporary.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


def _write(path: Path, data: bytes) -> None:
    """Write a new file that has no name until it is whole, where the system has such files.

    A process that is killed while it writes then leaves nothing behind.
    """
    handle = _nameless(path.parent)
    with open(path if handle is None else handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        if handle is None:
            return
        try:
            # With a folder, which does not matter for a whole path: only then are links followed.
            os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=handle, follow_symlinks=True)
            return
        except FileExistsError:
            raise
        except OSError:  # no /proc, or a file system without links
            pass
    path.write_bytes(data)


def _nameless(folder: Path) -> int | None:
    """A handle of a file without a name in a folder; None where there are none."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            return None
        raise


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Generator[None]:
    """Let errors of the system name `path`: a full disk does not say which file it had no room for.

    Examples
    --------
    >>> with naming("results.jsonl"):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'results.jsonl'
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        told = error.strerror if error.errno != errno.ENOENT else no_folder(path) or error.strerror
        raise OSError(error.errno, told, os.fspath(path)) from error


def no_folder(path: str | os.PathLike[str]) -> str:
    """That the folder which `path` is in is not there, and what to do; empty where it is.

    Examples
    --------
    >>> no_folder("no/such/report.html"), no_folder("report.html")
    ('there is no folder no/such; make it, or write elsewhere', '')
    """
    folder = os.path.dirname(str(path))
    there = not folder or os.path.isdir(folder)
    return "" if there else f"there is no folder {folder}; make it, or write elsewhere"


# -- one writer at a time ------------------------------------------------------------------------


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], *, wait: float = 0.0) -> Generator[None]:
    """Keep other processes from writing `path`, where they ask in the same way.

    The system takes the lock back when a process ends, however it ends: none is ever left over.

    Parameters
    ----------
    path
        The file. The lock is a file next to it, which exists while somebody holds it and says who.
    wait
        Seconds to wait for another process.

    Raises
    ------
    InUseError
        Somebody else holds it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with locked(Path(folder) / "state.json"), locked(Path(folder) / "state.json"):
    ...         pass
    Traceback (most recent call last):
    wellcal._arrays.files.InUseError: ...state.json is being written by process ...
    """
    target = Path(path).resolve()
    lock = target.with_name(f".{target.name}.lock")
    with naming(path):
        handle = _acquire(lock, target, time.monotonic() + wait)
    try:
        yield
    finally:
        _release(handle, lock)


def _acquire(lock: Path, target: Path, until: float) -> int:
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            held = not _lock(handle)
            # The last holder may have removed the file after it was opened here: then it is nobody's.
            ours = not held and lock.exists() and os.path.samestat(os.fstat(handle), lock.stat())
            if ours:
                os.truncate(handle, 0)
                os.write(handle, _who().encode())
                return handle
            who = os.read(handle, 1000).decode(errors="replace") if held else ""
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if held and time.monotonic() >= until:
            raise InUseError(
                f"{target} is being written by {who or 'another process'}; wait until that has ended, or "
                "write somewhere else"
            )
        if held:
            time.sleep(_BETWEEN_TRIES)


def _release(handle: int, lock: Path) -> None:
    # Removed while it is held: whoever opened it meanwhile notices, and makes a new one.
    with contextlib.suppress(OSError):
        lock.unlink()
    os.close(handle)
    if os.name == "nt":  # which does not remove what is open
        with contextlib.suppress(OSError):
            lock.unlink()


def _who() -> str:
    program = " ".join(" ".join(["python", *sys.orig_argv[1:]]).split())[:100]
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return f"process {os.getpid()} on {socket.gethostname()} ({program}) since {since}"


def _lock(handle: int) -> bool:
    """Ask the system for the lock; whether we have it now."""
    try:
        _ask(handle)
    except OSError as error:
        if error.errno in _HELD:
            return False
        if error.errno not in _CANNOT_LOCK:
            raise
        warnings.warn(
            "this file system has no locks: see that no other process writes the same file",
            UserWarning,
            stacklevel=2,
        )
    return True


if sys.platform == "win32":
    import msvcrt

    def _ask(handle: int) -> None:
        os.lseek(handle, 1 << 30, os.SEEK_SET)  # beyond the text, which others may read
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(handle, 0, os.SEEK_SET)

else:
    import fcntl

    def _ask(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
