"""A monitor is kept in a file, and goes on from there."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wellcal._arrays.equality import ByState
from wellcal._arrays.files import InUseError, check_suffix, locked, write_whole
from wellcal._arrays.schema import parse_json, reading
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel
from wellcal.monitoring.state import FORMAT, State, generator_to_dict, read_state

_WHAT = "the state of a monitor"
_WAIT = 10.0  # seconds for another process that saves; it takes milliseconds


class ChangedError(InUseError):
    """Another process has written the file meanwhile, and what it wrote would be lost."""


class Kept(ByState):
    """Options and state as plain values, compared, written to files and read again."""

    if TYPE_CHECKING:
        alpha: float | None
        run_length: float | None
        warmup: int
        draws: int
        memory: int
        history_size: int
        expectations: str | Lowering
        _rng: np.random.Generator
        _state: State
        _files: dict[str, str]

        def __init__(self, kernel: Kernel | None = None, **options: Any) -> None: ...

    def compared(self) -> dict[str, Any]:
        """What decides whether two monitors are equal: all that is stored of them."""
        return {**self.to_dict(), "kernel": self._state.kernel}

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON: `from_dict` continues exactly from here."""
        options = self.expectations
        return {
            "format": FORMAT,
            "alpha": self.alpha,
            "run_length": self.run_length,
            "warmup": self.warmup,
            "draws": self.draws,
            "memory": self.memory,
            "history_size": self.history_size,
            "expectations": vars(options) if isinstance(options, Lowering) else options,
            **self._state.to_dict(),
            "generator": generator_to_dict(self._rng),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any], *, kernel: Kernel | None = None) -> Self:
        """The monitor that `to_dict` described.

        Parameters
        ----------
        plain
            What `to_dict` returned.
        kernel
            Only for a kernel that holds a function, which plain values cannot: the same kernel again.
        """
        with reading(_WHAT):
            return cls._read(plain, kernel)

    @classmethod
    def _read(cls, plain: Any, kernel: Kernel | None) -> Self:
        found = read_state(plain)
        names = ("alpha", "run_length", "warmup", "memory", "history_size")
        monitor = cls(
            alpha=found["alpha"],
            run_length=found["run_length"],
            warmup=found["warmup"],
            draws=found["draws"],
            memory=found["memory"],
            history=found["history_size"],
            rng=found["generator"],
            expectations=found["expectations"],
        )
        monitor._state = State.of(found, kernel)
        monitor._state.check(**{name: found[name] for name in names})
        return monitor

    def save(self, path: str | os.PathLike[str], *, new: bool = False) -> None:
        """Write the state to a JSON file; whoever reads it sees the old state or the new one.

        Two processes that monitor the same cases must not share a file: each would undo what the other has
        seen. A file that this monitor has loaded or saved before, and that somebody else has changed since,
        is left as it is, with an error.

        Parameters
        ----------
        path
            The file.
        new
            Whether it must not be there yet, unless this monitor has written it.
        """
        check_suffix(path, "a monitor", ".json", "")
        content = json.dumps(self.to_dict(), allow_nan=False).encode()
        where = os.path.realpath(path)
        with locked(path, wait=_WAIT):
            expected, there = self._files.get(where), _digest(where)
            if (new or expected is not None) and there not in (expected, None):
                raise ChangedError(
                    f"{os.fspath(path)} was changed by another process since this monitor was begun, or last "
                    "read or wrote it: load it again, or save to another file"
                )
            write_whole(path, content)
            self._files[where] = hashlib.sha256(content).hexdigest()

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, kernel: Kernel | None = None) -> Self:
        """The monitor whose state `save` wrote; `kernel` as in `from_dict`."""
        content = Path(path).read_bytes()
        with reading(_WHAT, os.fspath(path)):
            monitor = cls._read(parse_json(content), kernel)
        monitor._files[os.path.realpath(path)] = hashlib.sha256(content).hexdigest()
        return monitor


def _digest(path: str) -> str | None:
    """What a file holds, in short; None where it is gone."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except FileNotFoundError:
        return None
