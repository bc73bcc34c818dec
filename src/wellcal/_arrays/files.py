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
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

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
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def check_suffix(path: str | os.PathLike[str], content: str, *known: str) -> str:
    """Return the suffix of a file name, in lower case, if it is one of `known`, and else raise.

    Examples
    --------
    >>> check_suffix("Report.HTML", "a page", ".html", ".htm")
    '.html'
    >>> check_suffix("report.pdf", "a page", ".html", ".htm")
    Traceback (most recent call last):
    ValueError: report.pdf: a page is written as .html or .htm, found the suffix .pdf
    """
    suffix = Path(path).suffix.lower()
    if suffix not in known:
        *others, last = filter(None, known)
        listed = f"{', '.join(others)} or {last}" if others else last
        found = f"found the suffix {suffix}" if suffix else "found a name without a suffix"
        raise ValueError(f"{os.fspath(path)}: {content} is written as {listed}, {found}")
    return suffix


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Generator[None]:
    """Name `path` in errors of the system: a full disk does not say which file it had no room for.

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
        missing = no_folder(path) if error.errno == errno.ENOENT else ""
        raise OSError(error.errno, missing or error.strerror, os.fspath(path)) from error


def no_folder(path: str | os.PathLike[str]) -> str:
    """Return an error message if the folder of `path` does not exist, or else "".

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
    """Keep other processes that ask in the same way from writing `path`.

    The system takes the lock back when a process ends, however it ends: none is ever left over.

    Parameters
    ----------
    path
        The file. The lock is a file next to it, which exists while it is held and names the holder.
    wait
        Seconds to wait for another process.

    Raises
    ------
    InUseError
        Another process holds it.

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
        with contextlib.suppress(OSError):  # Windows does not remove what is open
            lock.unlink()  # while it is held: a process that has opened it notices, and makes a new one
        handle.close()


def _acquire(lock: Path, target: Path, until: float) -> BinaryIO:
    while True:
        handle: BinaryIO = open(lock, "a+b", buffering=0)  # noqa: SIM115
        try:
            if not _lock(handle.fileno()):
                handle.seek(0)
                who = handle.read().decode(errors="replace") or "another process"
                if time.monotonic() >= until:
                    remedy = "wait until that has ended, or write somewhere else"
                    raise InUseError(f"{target} is being written by {who}; {remedy}")
                time.sleep(_BETWEEN_TRIES)
            elif lock.exists() and os.path.samestat(os.fstat(handle.fileno()), lock.stat()):
                handle.truncate(0)
                handle.write(_who().encode())
                return handle
        except BaseException:
            handle.close()
            raise
        handle.close()


def _who() -> str:
    program = " ".join(" ".join(["python", *sys.orig_argv[1:]]).split())[:100]
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return f"process {os.getpid()} on {socket.gethostname()} ({program}) since {since}"


def _lock(handle: int) -> bool:
    """Ask the system for the lock; True if we have it now."""
    try:
        if sys.platform == "win32":
            os.lseek(handle, 1 << 30, os.SEEK_SET)  # beyond the text, which others may read
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        if error.errno not in _CANNOT_LOCK:
            raise
        message = "this file system has no locks: see that no other process writes the same file"
        warnings.warn(message, UserWarning, stacklevel=4)
    return True
