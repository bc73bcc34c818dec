"""What a monitor remembers, and how it is kept in a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.kernels.base import Kernel
from wellcal.kernels.plain import kernel_from_dict, kernel_to_dict
from wellcal.monitoring.bets import ETAS
from wellcal.predictions import Predictions
from wellcal.predictions.plain import (
    array_from_dict,
    array_to_dict,
    predictions_from_dict,
    predictions_to_dict,
)


@dataclass(frozen=True)
class State:
    """All that changes with a case.

    Attributes
    ----------
    n_samples
        Cases seen.
    predictions, targets
        The most recent of them, None before the first.
    kernel
        The kernel, None while it is not chosen yet.
    logs
        Logarithms of the products of bets, one for each of the boldnesses.
    largest
        Largest logarithm of the e-value so far.
    alarm_at
        Number of cases seen at the alarm, or None.
    history
        Logarithms of the e-values after the most recent cases.
    """

    n_samples: int = 0
    predictions: Predictions | None = None
    targets: NDArray | None = None
    kernel: Kernel | None = None
    logs: NDArray = field(default_factory=lambda: np.zeros(len(ETAS)))
    largest: float = 0.0
    alarm_at: int | None = None
    history: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {
            "kernel": None if self.kernel is None else kernel_to_dict(self.kernel),
            "kernel_text": None if self.kernel is None else repr(self.kernel),
            "n_samples": self.n_samples,
            "predictions": None if self.predictions is None else predictions_to_dict(self.predictions),
            "targets": None if self.targets is None else array_to_dict(self.targets),
            "logs": self.logs.tolist(),
            "largest": self.largest,
            "alarm_at": self.alarm_at,
            "history": list(self.history),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any], kernel: Kernel | None) -> State:
        """The state again; `kernel` where plain values cannot hold it."""
        predictions, targets = plain["predictions"], plain["targets"]
        return cls(
            n_samples=plain["n_samples"],
            predictions=None if predictions is None else predictions_from_dict(predictions),
            targets=None if targets is None else array_from_dict(targets),
            kernel=_restored_kernel(plain, kernel),
            logs=np.array(plain["logs"]),
            largest=plain["largest"],
            alarm_at=plain["alarm_at"],
            history=tuple(plain["history"]),
        )


def _restored_kernel(plain: dict[str, Any], given: Kernel | None) -> Kernel | None:
    if plain["kernel"] is None:
        if given is not None:
            raise ValueError("kernel was given, but the monitor has not chosen one yet; start a new monitor")
        return None
    restored = kernel_from_dict(plain["kernel"])
    if restored is None and given is None:
        raise ValueError(
            f"the kernel {plain['kernel_text']} holds a function, which a file cannot; give the kernel again "
            "as kernel="
        )
    if given is not None and repr(given) != plain["kernel_text"]:
        raise ValueError(f"kernel must be the one the monitor has, {plain['kernel_text']}, found {given!r}")
    return given if restored is None else restored


def generator_to_dict(rng: np.random.Generator) -> dict[str, Any]:
    """State of a generator as plain values."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(item) for name, item in cast("dict[str, Any]", value).items()}
        return array_to_dict(value) if isinstance(value, np.ndarray) else value

    return plain(dict(rng.bit_generator.state))


def generator_from_dict(given: dict[str, Any]) -> np.random.Generator:
    """The generator again."""

    def restore(value: Any) -> Any:
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            if "dtype" in members:
                return array_from_dict(members)
            return {name: restore(item) for name, item in members.items()}
        return value

    state = restore(given)
    bits: Any = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)
