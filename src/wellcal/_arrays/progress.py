"""How far a long run is: a line on a terminal, a user's function, or nothing.

Loops that may take long report to whoever :func:`reporter` names: what the call that they serve was given as
`progress`, or else a line of their own, which is silent for two seconds and where there is no terminal. A
loop within a loop is silent, since the outer one knows how long all of it takes; where the outer one says how
far its present step goes, loops within the step move it on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TextIO, TypeVar, cast

Listener = Callable[[str, float, float], object]
"""A user's function of what is done, how much of it, and of how much."""


@dataclass
class _Step:
    """The step that a loop is in, and what loops within it have done of it.

    Each of them moves it on by half of what is left: nobody knows how many there are. Of loops within
    these nothing is said.
    """

    reached: float
    until: float
    total: float
    _open: str | None = None
    _furthest: float = 0.0

    def __post_init__(self) -> None:
        self._furthest = self.reached

    def moved(self, what: str, done: float, total: float) -> float:
        """How far the step is after so much of a loop within it: never less than before, and never all."""
        if self._open in (None, what):
            self._open = None if done >= total else what
            part = min(done / total, 1.0) if total > 0.0 else 1.0
            found = self.reached + 0.5 * (self.until - self.reached) * part
            if self._open is None:
                self.reached = found
            if self._furthest < found < self.total:
                self._furthest = found
        return self._furthest


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
    _born: float = field(init=False, repr=False)
    _started: float = field(init=False, repr=False)
    _last: float = field(default=0.0, init=False, repr=False)
    _width: int = field(default=0, init=False, repr=False)
    _open: str | None = field(default=None, init=False, repr=False)
    _step: _Step | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not callable(self.shown):
            from wellcal._arrays.checks import flag  # NumPy, which the help of a command does not wait for

            self.shown = flag(self.shown, "progress", or_none=True)
        self.begin()

    def begin(self) -> None:
        """A run begins."""
        self._born = self._started = self.clock()

    def __call__(self, what: str, done: float, total: float, until: float | None = None) -> None:
        """Say that `done` of `total` steps of `what` are done, and that the work at hand leads to `until`.

        Nothing is said of loops within others, but that they are on the way to `until`.
        """
        if self._open is not None and self._open != what:
            if self._step is not None:
                self._say(self._open, self._step.moved(what, done, total), self._step.total)
            return
        self._open = None if done >= total else what
        self._step = None if until is None else _Step(done, min(until, total), total)
        self._say(what, done, total)

    def _say(self, what: str, done: float, total: float) -> None:
        now = self.clock()
        if done <= 0:
            self._started = now
        if callable(self.shown):
            if done >= total or now - self._last > self.interval:
                self._last = now
                self.shown(what, done, total)
            return
        stream = sys.stderr if self.stream is None else self.stream
        # Without a console there is no standard error, and what replaces it need not know terminals.
        shown = bool(getattr(stream, "isatty", lambda: False)()) if self.shown is None else self.shown
        if not shown:
            return
        elapsed = now - self._started
        if done >= total:
            self._erase(stream)
        elif now - self._born > self.patience and self._is_time(now) and done > 0:
            left = elapsed * (total - done) / done
            text = f"{what}: {done / total:4.0%}, {left:.0f} s left"
            stream.write("\r" + text.ljust(self._width))
            stream.flush()
            self._last, self._width = now, len(text)

    def _is_time(self, now: float) -> bool:
        """Whether the last line, and the beginning of this loop, are long enough ago to say something."""
        return now - max(self._last, self._started) > self.interval

    def _erase(self, stream: TextIO) -> None:
        if self._width:
            stream.write("\r" + " " * self._width + "\r")
            stream.flush()
            self._width = 0

    def end(self) -> None:
        """Forget what was going on, and take its line away: the run is over, or was broken off."""
        self._open = self._step = None
        if callable(close := getattr(self.shown, "close", None)):
            close()
        self._erase(sys.stderr if self.stream is None else self.stream)


def as_progress(progress: object) -> Progress:
    """What a user gave as `progress`: True, False, a function, a `Progress`, or None.

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
    from wellcal._arrays.checks import described

    raise TypeError(
        "progress must be True, False, None or a function of what, done and total, found "
        f"{described(progress)}"
    )


_current: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def following(progress: Progress | None) -> Generator[Progress]:
    """Within it all loops report to `progress`; None leaves it to whoever was told before.

    Examples
    --------
    >>> told = []
    >>> with following(as_progress(lambda *steps: told.append(steps))):
    ...     reporter()("pairs", 3, 3)
    >>> told
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
    """Decorator of a function with a keyword `progress`, which it gets as a `Progress`."""

    @wraps(function)
    def call(*arguments: Any, progress: object = None, **options: Any) -> Any:
        with following(None if progress is None else as_progress(progress)) as known:
            return function(*arguments, progress=known, **options)

    return cast("Function", call)


_FEW = 10_000  # cases of which nothing takes long


def one_run(function: Function) -> Function:
    """Decorator of a function of targets and predictions without `progress`: its loops are one run.

    They are silent for two seconds together, and not for two seconds each. Few cases do without.
    """

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        shape = getattr(arguments[0], "shape", ()) if arguments else ()
        if shape and shape[0] < _FEW:
            return function(*arguments, **options)
        with following(None):
            return function(*arguments, **options)

    return cast("Function", call)


@dataclass
class Stages:
    """One run of several parts that take about as long as their weights say.

    Loops within a part move the run on, each by half of what is left of the part: nobody knows how many there
    are. A part that is left out, or ends early, counts as done when the next one begins.

    Parameters
    ----------
    what
        What the run is.
    total
        Sum of the weights of all parts.
    told
        Whom to tell; None takes whoever is to be told now.

    Examples
    --------
    >>> steps = []
    >>> stages = Stages("report", 4.0, Progress(lambda *step: steps.append(step), interval=-1.0))
    >>> with stages.part(3.0):
    ...     reporter()("pairs", 1, 1)
    >>> stages.end()
    >>> steps
    [('report', 0.0, 4.0), ('report', 1.5, 4.0), ('report', 3.0, 4.0), ('report', 4.0, 4.0)]
    """

    what: str
    total: float
    told: Progress | None = None
    _done: float = field(default=0.0, init=False, repr=False)
    _error: BaseException | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.told = reporter() if self.told is None else self.told
        self._say(0.0)

    def _say(self, done: float) -> None:
        assert self.told is not None
        try:
            self.told(self.what, done, self.total)
        except BaseException as error:
            self._error = error
            raise

    @contextmanager
    def part(self, weight: float) -> Generator[None]:
        """Within it loops move this run on; an error of whoever listens ends it, whatever catches it."""
        end = min(self._done + weight, self.total)
        way = _Step(self._done, end, self.total)

        def step(what: str, done: float, total: float) -> None:
            self._say(min(way.moved(what, done, total), 0.999 * self.total))

        try:
            with following(Progress(step, interval=self.told.interval if self.told else 0.2)):
                yield
        finally:
            if self._error is not None:
                raise self._error
        self._done = end
        self._say(min(end, 0.999 * self.total))

    def end(self) -> None:
        """All is done."""
        self._say(self.total)


def reporter() -> Progress:
    """Whom a loop reports to."""
    known = _current.get()
    return Progress() if known is None else known
