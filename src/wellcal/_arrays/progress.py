"""Progress of long runs: a line on a terminal, a user's function, or nothing.

Loops that may take long report to :func:`reporter`: the argument `progress` of the call that they serve, or a
line of their own, which is silent for two seconds and without a terminal. A loop within a loop is silent,
since the outer one knows how long all of it takes; if the outer one says how far its current step goes, loops
within the step move it on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, TextIO, TypeVar, cast

Listener = Callable[[str, float, float], object]
"""A user's function of what is done, how much of it, and the total."""


@dataclass
class Progress:
    """Writes how far a run is, and how long the rest will take.

    Parameters
    ----------
    shown
        None shows it where standard error is a terminal. A function is called as ``shown(what, done, total)``
        instead, five times a second at most and at the end; what it raises ends the run. Its `close`, if it
        has one, is called when the run is over.
    stream
        Where to write; None takes standard error.
    patience
        Seconds of silence before the first line, from the beginning of the run: several loops that take a
        second each are a run of several seconds.
    interval
        Seconds between two lines.
    clock
        The time in seconds.
    """

    shown: bool | Listener | None = None
    stream: TextIO | None = None
    patience: float = 2.0
    interval: float = 0.2
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._last, self._width = 0.0, 0
        self._outer: str | None = None
        self._inner: str | None = None
        self._step = self._until = self._shown_done = self._total = 0.0
        self.begin()

    def begin(self) -> None:
        """Start the clock of a run."""
        self._born = self._started = self.clock()
        self.error: BaseException | None = None

    def __call__(self, what: str, done: float, total: float, until: float | None = None) -> None:
        """Report that `done` of `total` steps of `what` are done, and that the current step leads to `until`.

        A loop within the step moves it on by half of what is left, since the number of such loops is unknown;
        without `until`, and within such a loop, nothing is reported.
        """
        if self._outer in (None, what):
            self._outer, self._inner = None if done >= total else what, None
            self._step, self._total, self._shown_done = done, total, done
            self._until = done if until is None else min(until, total)
            self._report(what, done, total)
        elif self._inner in (None, what) and self._until > self._step:
            self._inner = None if done >= total else what
            share = min(done / total, 1.0) if total > 0.0 else 1.0
            moved = self._step + 0.5 * (self._until - self._step) * share
            if self._inner is None:
                self._step = moved
            if self._shown_done < moved < self._total:
                self._shown_done = moved
                self._report(self._outer, moved, self._total)

    def _report(self, what: str, done: float, total: float) -> None:
        now = self.clock()
        if done <= 0:
            self._started = now
        if callable(self.shown):
            if done >= total or now - self._last > self.interval:
                self._last = now
                try:
                    self.shown(what, done, total)
                except BaseException as error:
                    self.error = error
                    raise
            return
        stream = self._stream()
        # Without a console there is no standard error, and what replaces it need not know terminals.
        if not (getattr(stream, "isatty", lambda: False)() if self.shown is None else self.shown):
            return
        if done >= total:
            self._erase()
        elif (
            done > 0
            and now - self._born > self.patience
            and now - max(self._last, self._started) > self.interval
        ):
            left = (now - self._started) * (total - done) / done
            text = f"{what}: {done / total:4.0%}, {left:.0f} s left"
            stream.write("\r" + text.ljust(self._width))
            stream.flush()
            self._last, self._width = now, len(text)

    def _stream(self) -> TextIO:
        return sys.stderr if self.stream is None else self.stream

    def _erase(self) -> None:
        if self._width:
            self._stream().write("\r" + " " * self._width + "\r")
            self._stream().flush()
            self._width = 0

    def end(self) -> None:
        """Forget the open loops and erase the line: the run is over, or was broken off."""
        self._outer = self._inner = None
        if callable(close := getattr(self.shown, "close", None)):
            close()
        self._erase()


def as_progress(progress: object) -> Progress:
    """Convert the argument `progress`: True, False, a function, a `Progress`, or None.

    Examples
    --------
    >>> as_progress("yes")
    Traceback (most recent call last):
    TypeError: progress must be True, False, None or a function of what, done and total, found 'yes'
    """
    if isinstance(progress, Progress):
        return progress
    listens = callable(progress) and not isinstance(progress, type)  # a class hears nothing
    if progress is None or isinstance(progress, bool) or listens:
        return Progress(cast("bool | Listener | None", progress))
    from wellcal._arrays.checks import described  # NumPy, which the help of a command does not wait for

    raise TypeError(
        "progress must be True, False, None or a function of what, done and total, found "
        f"{described(progress)}"
    )


_current: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def following(progress: Progress | None) -> Generator[Progress]:
    """Let all loops within a ``with`` block report to `progress`; None keeps the progress in force.

    As a decorator, ``@following(None)`` makes the loops of a function one run.

    Examples
    --------
    >>> steps = []
    >>> with following(as_progress(lambda *step: steps.append(step))):
    ...     reporter()("pairs", 3, 3)
    >>> steps
    [('pairs', 3, 3)]
    """
    outer = _current.get()
    known = progress if progress is not None else outer if outer is not None else Progress()
    if known is not outer:
        known.begin()
    token = _current.set(known)
    try:
        yield known
    finally:
        _current.reset(token)
        if known is not outer:
            known.end()


Function = TypeVar("Function", bound=Callable[..., Any])


def reported(function: Function) -> Function:
    """Decorate a function with a keyword `progress`, which it gets as a `Progress`."""

    @wraps(function)
    def call(*arguments: Any, progress: object = None, **options: Any) -> Any:
        with following(None if progress is None else as_progress(progress)) as known:
            return function(*arguments, progress=known, **options)

    return cast("Function", call)


class Stages:
    """One run of several parts that take about as long as their weights say.

    Loops within a part move the run on. A part that is left out, or ends early, counts as done when the next
    one begins.

    Parameters
    ----------
    what
        Name of the run.
    total
        Sum of the weights of all parts.

    Examples
    --------
    >>> steps = []
    >>> with following(Progress(lambda *step: steps.append(step), interval=-1.0)):
    ...     stages = Stages("report", 4.0)
    ...     with stages.part(3.0):
    ...         reporter()("pairs", 1, 1)
    ...     stages.end()
    >>> steps
    [('report', 0.0, 4.0), ('report', 1.5, 4.0), ('report', 3.0, 4.0), ('report', 4.0, 4.0)]
    """

    def __init__(self, what: str, total: float) -> None:
        self._what, self._total, self._done, self._progress = what, total, 0.0, reporter()

    @contextmanager
    def part(self, weight: float) -> Generator[None]:
        """Move the run on by loops within a ``with`` block; an error of the listener ends it in any case."""
        end = min(self._done + weight, 0.999 * self._total)  # only the end is all of it
        self._progress(self._what, self._done, self._total, until=end)
        try:
            yield
        finally:
            if self._progress.error is not None:
                raise self._progress.error
        self._done = end
        self._progress(self._what, end, self._total)

    def end(self) -> None:
        """Report that all parts are done."""
        self._progress(self._what, self._total, self._total)


def reporter() -> Progress:
    """Return the progress that loops report to now."""
    known = _current.get()
    return Progress() if known is None else known
