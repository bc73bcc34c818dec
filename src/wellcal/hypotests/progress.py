"""A progress line for long runs: shown on a terminal, silent elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

from wellcal._arrays.checks import flag


@dataclass
class Progress:
    """Writes how far a run is, and how long the rest will take.

    Parameters
    ----------
    shown
        None shows it where standard error is a terminal.
    stream
        Where to write; None takes standard error.
    patience
        Seconds of silence before the first line.
    interval
        Seconds between two lines.
    clock
        The time in seconds.
    """

    shown: bool | None = None
    stream: TextIO | None = None
    patience: float = 2.0
    interval: float = 0.2
    clock: Callable[[], float] = time.monotonic
    _started: float = field(init=False, repr=False)
    _last: float = field(default=0.0, init=False, repr=False)
    _width: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        self.shown = flag(self.shown, "progress", or_none=True)
        self._started = self.clock()

    def __call__(self, what: str, done: float, total: float) -> None:
        """Say that `done` of `total` steps of `what` are done."""
        stream = sys.stderr if self.stream is None else self.stream
        # Without a console there is no standard error, and what replaces it need not know terminals.
        shown = bool(getattr(stream, "isatty", lambda: False)()) if self.shown is None else self.shown
        now = self.clock()
        if done <= 0:
            self._started = now
        if not shown:
            return
        elapsed = now - self._started
        if done >= total:
            self._erase(stream)
        elif elapsed > self.patience and now - self._last > self.interval and done > 0:
            left = elapsed * (total - done) / done
            text = f"{what}: {done / total:4.0%}, {left:.0f} s left"
            stream.write("\r" + text.ljust(self._width))
            stream.flush()
            self._last, self._width = now, len(text)

    def _erase(self, stream: TextIO) -> None:
        if self._width:
            stream.write("\r" + " " * self._width + "\r")
            stream.flush()
            self._width = 0
