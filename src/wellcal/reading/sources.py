"""Where a file comes from: its path or standard input, its format, and its first bytes."""

from __future__ import annotations

import codecs
import difflib
import gzip
import io
import os
import re
import stat
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from wellcal._arrays.checks import one_of
from wellcal.reading.errors import ReadError, library, reading

FORMATS = ("csv", "tsv", "parquet", "arrow", "jsonl", "npz", "npy")
"""Formats that are read."""

HEAD = 1 << 16
"""How many bytes are looked at to say what a file is."""

_LINES, _LONGEST = 4, 1 << 26
"""Lines of a text that are looked at, at least, however long they are up to so many bytes."""

SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".npz": "npz",
    ".npy": "npy",
}
"""Formats by the end of the name."""

_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_SIGNATURES = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
}
_OTHER_KINDS = {
    b"\x1f\x8b": "gzip: give it a name that ends in .gz, or - as the name and what gzip -dc says as input",
    b"\xd0\xcf\x11\xe0": "an Excel workbook: save it as CSV",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a picture",
    **{
        bytes([0x80, protocol]): "a pickle, which is never read: it may run any code; write Parquet or NPZ"
        for protocol in range(2, 6)
    },
    b"\xfd7zXZ": "compressed by xz: compress it by gzip, or give - as the name and what xz -dc says as input",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: give it a name that ends in .zst, or - as the name and what "
    "zstd -dc says as input",
    b"FEA1": "Feather of version 1: write it again as version 2",
    b"SQLite format 3": "a database: export a table as CSV",
}
_SEPARATOR = re.compile('\ufeff?"?sep=([\x01-\x7f])"?\r?\n', re.IGNORECASE)
_SEPARATOR_BYTES = 64  # that such a line has at most, in any encoding
TEXTS = ("csv", "tsv", "jsonl")
"""Formats that are lines of letters."""


@dataclass(frozen=True)
class SourceFile:
    """A file that is there, with what it is.

    Parameters
    ----------
    name
        What errors call it.
    path
        Where it is; None for standard input.
    format
        One of `FORMATS`.
    compression
        How it is compressed as a whole, as pyarrow calls it, or None.
    head
        Its first bytes, not compressed; of a text a few lines at least.
    ended
        Whether there are no bytes after these.
    skipped
        Bytes before these, which are no data: the line ``sep=;`` that spreadsheets write.
    separator
        What separates columns, where that line says so.
    """

    name: str
    path: Path | None
    format: str
    compression: str | None
    head: bytes
    ended: bool
    skipped: bytes = b""
    separator: str | None = None

    def open(self) -> BinaryIO:
        """Its bytes from the beginning, not compressed; standard input goes on after its head."""
        if self.path is None:
            return cast("BinaryIO", io.BufferedReader(_Chained(self.head, sys.stdin.buffer), HEAD))
        file = opened(self.path, self.compression)
        file.read(len(self.skipped))
        return file

    def with_longer_head(self, size: int) -> SourceFile:
        """The same file with so many of its first bytes, where there are as many."""
        if self.ended or len(self.head) >= size:
            return self
        if self.path is None:
            head = self.head + sys.stdin.buffer.read(size - len(self.head))
        else:
            with self.open() as file:
                head = file.read(size)
        return replace(self, head=head, ended=len(head) < size)

    def in_hand(self) -> SourceFile:
        """The same file, which can be read again: of standard input that takes all of its bytes."""
        if self.path is not None or self.ended:
            return self
        return replace(self, head=self.head + sys.stdin.buffer.read(), ended=True)

    def without_separator(self, encoding: str) -> SourceFile:
        """A table as text without the line that says what separates its columns, if it begins with one."""
        if self.format not in ("csv", "tsv"):
            return self
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        found = _SEPARATOR.match(decoder.decode(self.head[:_SEPARATOR_BYTES]))
        if found is None:
            return self
        size = len(found[0].encode(encoding))
        return replace(self, head=self.head[size:], skipped=self.head[:size], separator=found[1])

    def whole(self) -> Any:
        """What can be read in any order: the path, or all bytes in memory."""
        if self.path is not None and self.compression is None:
            return str(self.path)
        with self.open() as file:
            return io.BytesIO(file.read())


class _Chained(io.RawIOBase):
    """Bytes that were read already, and then the rest of a stream."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            self._head = self._rest.read(max(len(buffer), HEAD))
        count = min(len(buffer), len(self._head))
        buffer[:count], self._head = self._head[:count], self._head[count:]
        return count


def source_file(path: str | os.PathLike[str], format: str | None) -> SourceFile:
    """Find a file and say what it is: by `format`, by the end of its name, else by its first bytes."""
    if not isinstance(cast("Any", path), (str, os.PathLike)):
        raise TypeError(
            f"path must be the path of a file, or '-' for standard input, found {type(path).__name__}"
        )
    if format is not None:
        one_of(format, "format", FORMATS)
    if os.fspath(path) == "-":
        name = "standard input"
        if cast("Any", sys.stdin) is None:
            raise ReadError(f"{name}: it is closed; give the data to it, or the name of a file")
        with reading(name, "data"):
            head, ended = _first_bytes(sys.stdin.buffer, name)
        kind = format or _by_content(name, head) or _by_text(head)
        return SourceFile(name, None, kind, None, head, ended).without_separator("utf8")
    given = Path(path)
    name = os.fspath(path)
    _look(given, name)
    suffixes = [suffix.lower() for suffix in given.suffixes]
    compression = _COMPRESSED.get(suffixes[-1]) if suffixes else None
    suffix = (suffixes[-2:-1] if compression else suffixes[-1:]) or [""]
    with reading(name, format or SUFFIXES.get(suffix[0], "data")), opened(given, compression) as file:
        head, ended = _first_bytes(file, name)
    if not head:
        raise ReadError(f"{name}: the file is empty; write it again")
    by_content = _by_content(name, head)
    by_name = SUFFIXES.get(suffix[0])
    if format is None and by_name is not None and by_content not in (None, by_name):
        raise ReadError(
            f"{name}: it is called {suffix[0]} but looks like {by_content}; rename it, or give "
            f"format={by_content!r}"
        )
    if format is None and by_name in ("npy", "npz", "parquet", "arrow") and by_content is None:
        raise ReadError(
            f"{name}: it is called {suffix[0]} but does not begin as such files do; write or copy it again, "
            "or say what it is with format="
        )
    kind = format or by_name or by_content or _by_text(head)
    return SourceFile(name, given, kind, compression, head, ended).without_separator("utf8")


def _first_bytes(file: BinaryIO, name: str) -> tuple[bytes, bool]:
    """The first bytes of a file, and whether it ends with them."""
    more = file.read(HEAD)
    parts, lines = [more], 0
    if _by_content(name, more) is None:
        lines = more.count(b"\n") + more.count(b"\r")
        while len(more) == HEAD and lines < _LINES and len(parts) * HEAD < _LONGEST:
            more = file.read(HEAD)
            parts.append(more)
            lines += more.count(b"\n") + more.count(b"\r")
    return b"".join(parts), len(more) < HEAD


def _look(path: Path, name: str) -> None:
    if not name:
        raise ReadError("the name of the file is empty: name one")
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise ReadError(
                f"{name}: is a link to {os.readlink(path)}, which is not there; name the file that is meant"
            ) from None
        raise ReadError(f"{name}: there is no such file{_close_files(path)}") from None
    except (OSError, ValueError) as error:  # a name that is too long, or has a null in it
        with reading(name, "data"):
            raise error
        raise
    if stat.S_ISDIR(mode):
        raise ReadError(f"{name}: is a folder: name one of the files in it")
    if not stat.S_ISREG(mode):  # looked at more than once, and gone after the first time
        raise ReadError(
            f"{name}: is a pipe or a device, not a file: give - as the name, and the data as standard input"
        )


def _close_files(path: Path) -> str:
    try:
        there = [found.name for found in path.parent.iterdir() if not found.is_dir()]
    except OSError:
        return "; check the path"
    close = difflib.get_close_matches(path.name, there, n=1)
    return f"; did you mean {close[0]!r}, which is in the same folder?" if close else "; check the path"


def opened(path: Path, compression: str | None) -> BinaryIO:
    """The bytes of a file, not compressed."""
    if compression is None:
        return open(path, "rb")
    if compression == "gzip":
        return cast("BinaryIO", gzip.open(path, "rb"))
    pyarrow = library("pyarrow")
    return pyarrow.CompressedInputStream(pyarrow.OSFile(str(path)), compression)


def _by_content(name: str, head: bytes) -> str | None:
    for signature, kind in _SIGNATURES.items():
        if head.startswith(signature):
            if kind == "npz":
                _refuse_other_archives(name, head)
            return kind
    for signature, what in _OTHER_KINDS.items():
        if head.startswith(signature):
            raise ReadError(f"{name}: it is {what}")
    return None


def _refuse_other_archives(name: str, head: bytes) -> None:
    """Workbooks are zip archives, as NPZ files are: the name of the first entry tells them apart."""
    first = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    if first and not first.endswith(b".npy"):
        raise ReadError(
            f"{name}: it is a zip archive without arrays of NumPy, such as an Excel workbook: save it as CSV"
        )


def _by_text(head: bytes) -> str:
    if head.lstrip().startswith(b"{"):
        return "jsonl"
    first = head.split(b"\n", 1)[0]
    return "tsv" if b"\t" in first and b"," not in first else "csv"
