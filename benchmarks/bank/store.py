"""Files of arrays: there in full or not at all."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from wellcal._arrays.files import write_whole


def slug(name: str) -> str:
    """A name for files: letters, digits and dashes.

    >>> slug("bias in abs(mean)"), slug("t_3"), slug("sd .82")
    ('bias-in-abs-mean', 't-3', 'sd-82')
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def save(path: Path, arrays: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_whole(path, content.getvalue())


def load(path: Path) -> dict[str, Any] | None:
    """Arrays of a file; None where there is none."""
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as found:
        return dict(found)
