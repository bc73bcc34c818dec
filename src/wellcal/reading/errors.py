"""The one error about files that cannot be read."""

from __future__ import annotations

import contextlib
import errno
import importlib
from collections.abc import Generator
from typing import Any

_WORDS = {
    errno.EACCES: "may not be read by you: ask its owner, or change its permissions (chmod u+r)",
    errno.EPERM: "may not be read by you: ask its owner, or change its permissions (chmod u+r)",
    errno.EISDIR: "is a folder: name one of the files in it",
    errno.ELOOP: "is a link that leads back to itself: name the file that is meant",
}
_LONGEST = 200


class ReadError(ValueError):
    """A file cannot be read; the message says what is wrong, where, and what to do.

    Examples
    --------
    >>> from wellcal.reading import read_table
    >>> read_table("no-such-folder/predictions.csv")
    Traceback (most recent call last):
    wellcal.reading.errors.ReadError: no-such-folder/predictions.csv: there is no such file; check the path
    """


def no_rows(name: str) -> ReadError:
    """The error about a file that has names of columns, and nothing else."""
    return ReadError(f"{name}: there are columns but no rows; write at least one case")


def short(error: BaseException | str) -> str:
    """What a library said, as one line that is not too long."""
    text = " ".join(str(error).split()) or type(error).__name__
    printable = "".join(sign if sign.isprintable() else "?" for sign in text)
    return printable if len(printable) <= _LONGEST else f"{printable[: _LONGEST - 3]}..."


@contextlib.contextmanager
def reading(name: str, kind: str) -> Generator[None]:
    """Turn whatever libraries raise while they read a file into a :class:`ReadError` that names it.

    Files are foreign: pyarrow and NumPy raise errors of a dozen types about what they find in them.
    """
    try:
        yield
    except (ReadError, ImportError):
        raise
    except MemoryError:
        raise ReadError(
            f"{name}: there is not enough memory for it; name the columns that are needed (columns=), or "
            "read it in batches"
        ) from None
    except OSError as error:
        if error.errno in _WORDS:
            raise ReadError(f"{name}: {_WORDS[error.errno]}") from error
        raise ReadError(f"{name}: it cannot be read as {kind}: {short(error)}; {_remedy(kind)}") from error
    except Exception as error:
        raise ReadError(f"{name}: it cannot be read as {kind}: {short(error)}; {_remedy(kind)}") from error


def _remedy(kind: str) -> str:
    if kind in ("csv", "tsv", "jsonl"):
        return "mend the file, or say what it is with format="
    return "it may be cut off: write or copy it again, or say what it is with format="


def library(name: str) -> Any:
    """A module of pyarrow, which reads files."""
    with contextlib.suppress(ImportError):
        # pyarrow does so itself when it first makes arrays, and an interruption meanwhile would be lost.
        importlib.import_module("pandas")
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(
            f"files are read through {name}, which is not installed: pip install 'wellcal[cli]'"
        ) from None
