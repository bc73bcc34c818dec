"""Results on disk, written as they come: one line of JSON for each record.

A line is appended and flushed to the disk in one go. A process that is killed can leave an incomplete
last line and nothing worse; it is cut off when the file is opened again, and that record is made anew. One
process at a time has a file open.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from reproduction.tasks import Record
from wellcal._arrays.files import locked, naming, write_whole
from wellcal._arrays.schema import Schema, mapping, number, parse_json, reading, text

_FIRST = Schema({"settings": mapping})
_RECORD = Schema({"key": text, "seconds": number(least=0.0), "record": mapping})


class StoreError(ValueError):
    """A file of results that cannot be continued."""


class Store:
    """Records of one experiment by key, in a file.

    Parameters
    ----------
    path
        The file; its folder is made if needed.
    settings
        What the records depend on. A file that was written under other settings is refused.

    Attributes
    ----------
    records, seconds
        Records by key, and the time that each took.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Store(Path(folder) / "a.jsonl", {"seed": 0}) as store:
    ...         store.add("first", {"value": 0.5})
    ...     with Store(Path(folder) / "a.jsonl", {"seed": 0}) as again:
    ...         print(again.records)
    {'first': {'value': 0.5}}
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self.records: dict[str, Record] = {}
        self.seconds: dict[str, float] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as opened:
            opened.enter_context(locked(path))  # before anything is read: another process may be adding to it
            complete = self._read(settings)
            self._file = opened.enter_context(open(path, "r+b" if path.exists() else "w+b"))
            self._file.truncate(complete)
            self._file.seek(complete)
            if complete == 0:
                self._append({"settings": settings})
            self._opened = opened.pop_all()

    def _read(self, settings: dict[str, Any]) -> int:
        """Fill `records`; the number of bytes that hold complete lines."""
        if not self.path.exists():
            return 0
        content = self.path.read_bytes()
        complete = content.rfind(b"\n") + 1
        lines = content[:complete].splitlines()
        for count, line in enumerate(lines, start=1):
            try:
                with reading("a line of results", f"{self.path.name}, line {count},"):
                    entry = (_FIRST if count == 1 else _RECORD)(parse_json(line))
            except ValueError as error:
                raise StoreError(f"{error}; delete the file to start anew") from None
            if count == 1:
                self._check_settings(entry["settings"], settings)
            else:
                self.records[entry["key"]] = entry["record"]
                self.seconds[entry["key"]] = entry["seconds"]
        return complete

    def _check_settings(self, found: Any, wanted: dict[str, Any]) -> None:
        if found != wanted:
            raise StoreError(
                f"{self.path.name} holds results of other settings: {found} instead of {wanted}; "
                "give another folder, or delete the file to start anew"
            )

    def _append(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        with naming(self.path):
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())

    def __contains__(self, key: str) -> bool:
        return key in self.records

    def add(self, key: str, record: Record, seconds: float = 0.0) -> None:
        """Write a record and the time it took; when this returns it is on the disk."""
        self._append({"key": key, "seconds": round(seconds, 4), "record": record})
        self.records[key] = record
        self.seconds[key] = seconds

    def close(self) -> None:
        """Close the file, and let others have it."""
        self._opened.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_through(path: Path, content: bytes) -> None:
    """Write a file that is there in full or not at all, and its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
