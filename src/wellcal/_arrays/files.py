"""Files that are there in full or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file under a temporary name next to `path` and move it into place.

    A reader, or a crash, meets the old file or the new one and never a part of it. Nothing is left behind
    where writing fails.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "state.json", "{}")
    ...     print(*(found.name for found in Path(folder).iterdir()))
    state.json
    """
    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
