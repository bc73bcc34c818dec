"""Whether a call ended as it may: with a result, or with an error that helps."""

from __future__ import annotations

import re
import signal
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import wellcal

PACKAGE = str(Path(wellcal.__file__).parent)
LONGEST = 20.0
"""CPU seconds that a call may take."""


class TooLongError(BaseException):
    """A call took longer than it may. Not an Exception, so that nobody takes it for one of their own."""


@dataclass(frozen=True)
class Ending:
    """How a call ended.

    Attributes
    ----------
    fault
        What is wrong with it; empty where nothing is.
    text
        The error, if there was one.
    """

    fault: str = ""
    text: str = ""


def judged(call: Callable[[], Any], names: Iterable[str], also: tuple[type[Exception], ...] = ()) -> Ending:
    """Call it, and say how it ended.

    Parameters
    ----------
    call
        The call.
    names
        Names of its arguments, one of which an error must mention.
    also
        Errors that are right too, besides ValueError and TypeError.
    """
    try:
        with warnings.catch_warnings(), _limited(LONGEST):
            warnings.simplefilter("ignore")
            call()
    except (KeyboardInterrupt, SystemExit):
        raise
    except TooLongError:
        return Ending(f"took more than {LONGEST:g} seconds of CPU time")
    except BaseException as error:
        return Ending(_fault(error, set(names), also), f"{type(error).__name__}: {error}")
    return Ending()


def _fault(error: BaseException, names: set[str], also: tuple[type[Exception], ...]) -> str:
    if not isinstance(error, (ValueError, TypeError, *also)):
        return f"{type(error).__name__} is neither ValueError nor TypeError, raised at {_place(error)}"
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not frames[-1].filename.startswith(PACKAGE):
        return f"the message is not our own: raised at {_place(error)}"
    if isinstance(error, also) and not isinstance(error, IndexError):
        return ""
    if not names & set(re.findall(r"\w+", str(error))):
        return f"the message names no argument: raised at {_place(error)}"
    return ""


def _place(error: BaseException) -> str:
    """Where it was raised, and the last line of ours on the way there."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(PACKAGE)]
    shown = [frames[-1]] if frames else []
    if own and own[-1] is not frames[-1]:
        shown.append(own[-1])
    return " from ".join(f"{Path(f.filename).name}:{f.lineno}" for f in shown)


@contextmanager
def _limited(seconds: float) -> Generator[None]:
    """At most so many seconds of CPU time, where there are signals."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
