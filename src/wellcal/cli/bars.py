"""The progress of commands: a bar with the time that is left, on a terminal and after two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from wellcal._arrays.progress import Progress

PATIENCE = 2.0
"""Seconds of silence."""


class Bar:
    """Listens to a run, and draws a bar where it takes long.

    Parameters
    ----------
    console
        Of rich, where to draw; None takes standard error.
    clock
        The time in seconds.
    """

    def __init__(self, console: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self.clock = clock
        self._what: str | None = None
        self._started = 0.0
        self._drawn: Any = None
        self._task: Any = None

    def __call__(self, what: str, done: float, total: float) -> None:
        """Draw how far it is; nothing remains of it at the end."""
        if what != self._what or done <= 0:
            self.close()
            self._what, self._started = what, self.clock()
        if done >= total:
            self.close()
        elif done > 0 and self.clock() - self._started > PATIENCE:
            seconds = (self.clock() - self._started) * (total - done) / done
            drawn = self._drawn or self._opened(what, total)
            drawn.update(self._task, completed=done, total=total, left=f"{seconds:.0f} s left", refresh=True)

    def _opened(self, what: str, total: float) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as Drawn

        console = Console(stderr=True) if self.console is None else self.console
        left = TextColumn("{task.fields[left]}")
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), left)
        self._drawn = Drawn(*columns, console=console, transient=True, auto_refresh=False)
        self._task = self._drawn.add_task(what, total=total, left="")
        self._drawn.start()
        return self._drawn

    def close(self) -> None:
        """Take the bar away."""
        if self._drawn is not None:
            self._drawn.stop()
        self._what = self._drawn = self._task = None


def on_terminal() -> Progress:
    """The progress of a command: a bar where standard error is a terminal, and else nothing."""
    shown = bool(getattr(sys.stderr, "isatty", lambda: False)())
    return Progress(Bar() if shown else False)
