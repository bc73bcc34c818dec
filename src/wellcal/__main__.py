"""``python -m wellcal``, and the command ``wellcal``.

Commands end with a status, and with a sentence if a file or a pipe fails.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn, cast

INTERRUPTED = 130
"""Status of a command that was stopped with Ctrl-C, as shells have it."""

CLOSED = 141
"""Status of a command whose output nobody reads any more, as shells have it of one that SIGPIPE ended."""

CANNOT = 2
"""Status of a command that cannot read or write what it should, as of one that was called wrongly."""

_REMEDIES = {
    errno.ENOSPC: "free some space, or write somewhere else",
    errno.EDQUOT: "free some space, or write somewhere else",
    errno.EACCES: "change its permissions, or write somewhere else",
    errno.EPERM: "change its permissions, or write somewhere else",
    errno.EROFS: "write somewhere else",
    errno.ENOTDIR: "write somewhere else",
    errno.EISDIR: "write somewhere else",
}


def run_module(name: str) -> NoReturn:
    """Import a module and end with what its ``main()`` returns; for the first lines of the module itself.

    Imports take seconds, in which an interruption would end in a traceback: they happen in here.
    """
    run_command(lambda: importlib.import_module(name).main())


def run_command(command: Callable[[], int | None]) -> NoReturn:
    """End the process with what `command` returns.

    Interrupted, it ends with status 130; with 141, and nothing said, where what reads its output has ended,
    as `head` does; where a file or the standard output cannot be read or written, with a sentence and status
    2. All other exceptions are faults of the program, and shown in full.

    Examples
    --------
    >>> def full():
    ...     raise OSError(errno.ENOSPC, "No space left on device", "results.jsonl")
    >>> with contextlib.redirect_stderr(sys.stdout):
    ...     run_command(full)
    Traceback (most recent call last):
    SystemExit: 2
    """
    _open_output()
    try:
        status = _finished(command)
    except KeyboardInterrupt:
        status = _stopped()
    except BrokenPipeError:  # whoever read it has seen enough, as `head` does
        status = CLOSED
    except OSError as error:
        _say(sentence(error))
        status = CANNOT
    except Exception as error:
        if not was_interrupted(error):
            raise
        status = _stopped()
    if status in (INTERRUPTED, CLOSED, CANNOT):
        _discard_output()
    sys.exit(status)


def _stopped() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would interrupt the last words
    _say("Stopped.")
    return INTERRUPTED


def was_interrupted(error: BaseException | None) -> bool:
    """Whether an interruption is behind an error: modules in C that are being imported make others of it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _finished(command: Callable[[], int | None]) -> int | str | None:
    try:
        status = command()
    except SystemExit as end:
        status = end.code
        # Libraries of command lines end with status 1 then, which has a meaning of its own here.
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None
    if status != CANNOT:  # what went wrong was said then
        print(end="", flush=True)  # at the end of the process it would be too late to notice a full disk
    return status


def _open_output() -> None:
    """Where standard output or error are closed nobody reads them: there is no file to write to, then.

    Signs that an encoding of few does not have (ASCII, Windows' cp932) are written as those of standard
    error are, by their numbers.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - until the process ends
    out: object = sys.stdout
    if isinstance(out, io.TextIOWrapper) and out.errors in ("strict", "surrogateescape"):
        cast("io.TextIOWrapper[Any]", out).reconfigure(errors="backslashreplace")


def sentence(error: OSError) -> str:
    """What the system said, and what to do about it.

    Examples
    --------
    >>> sentence(OSError(errno.ENOSPC, "No space left on device", "docs/a.jsonl"))
    'docs/a.jsonl: No space left on device; free some space, or write somewhere else'
    """
    if error.errno is None:
        return str(error)
    what = "standard output" if error.filename is None else str(error.filename)
    remedy = _REMEDIES.get(error.errno, "")
    return f"{what}: {error.strerror}{remedy and '; ' + remedy}"


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _discard_output() -> None:
    """What is still to be written cannot be: without this the interpreter tries again, and complains."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Run the command line."""
    run_module("wellcal.cli")


if __name__ == "__main__":
    main()
