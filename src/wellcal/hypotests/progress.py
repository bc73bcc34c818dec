"""A progress line for long runs: shown on a terminal, silent elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any

_PATIENCE = 2.0  # seconds of silence before the first line
_INTERVAL = 0.2


@dataclass
class Progress:
    """Writes how far a run is, and how long the rest will take.

    Parameters
    ----------
    shown
        None shows it where standard error is a terminal.
    stream
        Where to write; None takes standard error.
    """

    shown: bool | None = None
    stream: Any = None
    _started: float = field(default_factory=time.monotonic)
    _last: float = 0.0
    _width: int = 0

    def __call__(self, what: str, done: float, total: float) -> None:
        """Tell that `done` of `total` steps of `what` are done."""
        stream = sys.stderr if self.stream is None else self.stream
        shown = bool(getattr(stream, "isatty", lambda: False)()) if self.shown is None else self.shown
        now = time.monotonic()
        if done <= 0:
            self._started = now
        if not shown:
            return
        elapsed = now - self._started
        if done >= total:
            self._erase(stream)
        elif elapsed > _PATIENCE and now - self._last > _INTERVAL and done > 0:
            left = elapsed * (total - done) / done
            text = f"{what}: {done / total:4.0%}, {left:.0f} s left"
            stream.write("\r" + text.ljust(self._width))
            stream.flush()
            self._last, self._width = now, len(text)

    def _erase(self, stream: Any) -> None:
        if self._width:
            stream.write("\r" + " " * self._width + "\r")
            stream.flush()
            self._width = 0
