"""What a monitor remembers, and how it is kept in a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

import numpy as np
from scipy import special

from wellcal._arrays.checks import one_of, positive_number, probability, whole_number
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.schema import (
    Check,
    Schema,
    as_it_is,
    listed,
    mapping,
    number,
    optional,
    short,
    whole,
    word,
)
from wellcal.expectations.decompose import targets_are_indices
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel
from wellcal.kernels.plain import kernel_to_dict, read_kernel
from wellcal.measures.presentation import KERNEL
from wellcal.monitoring.bets import ETAS
from wellcal.predictions import Predictions
from wellcal.predictions.plain import (
    array_from_dict,
    array_to_dict,
    predictions_from_dict,
    predictions_to_dict,
)
from wellcal.problem.problem import check_pair_kernel

FORMAT = "wellcal monitor 2"
_EARLIER = "wellcal monitor 1"  # said n_cases
_ROUNDING = 1e-9  # of logarithms of e-values


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
    def of(cls, found: dict[str, Any], kernel: Kernel | None) -> State:
        """The state from the values that `read_state` found; `kernel` where plain values cannot hold it."""
        values = {field.name: found[field.name] for field in fields(cls) if field.name != "kernel"}
        return cls(**values, kernel=_restored_kernel(found, kernel))

    def check(self, *, alpha: float, warmup: int, memory: int, history_size: int) -> None:
        """Refuse what a monitor with these options cannot have come to."""
        kept = min(self.n_samples, memory)
        for name, found in (("predictions", self.predictions), ("targets", self.targets)):
            if (0 if found is None else len(found)) != kept:
                raise ValueError(
                    f"{name} must be those of the last {kept} cases, as n_samples and memory say, found "
                    f"{_count(found)}"
                )
        if self.predictions is not None:
            self._check_targets(self.predictions)
        if self.kernel is None and self.n_samples >= warmup:
            raise ValueError(
                f"kernel is missing: it is chosen after {warmup} cases (warmup), and n_samples is "
                f"{self.n_samples}"
            )
        if len(self.history) > min(history_size, self.n_samples):
            raise ValueError(
                f"history must have at most {min(history_size, self.n_samples)} entries, as n_samples and "
                f"history_size say, found {len(self.history)}"
            )
        now = float(special.logsumexp(self.logs)) - math.log(len(ETAS))
        if self.largest < now - _ROUNDING * max(1.0, abs(now)):
            raise ValueError(f"largest must be at least {now:.6g}, as logs say, found {self.largest:.6g}")
        reached = self.largest >= -math.log(alpha) - _ROUNDING
        if reached != (self.alarm_at is not None) or (self.alarm_at or 0) > self.n_samples:
            wanted = f"a number of cases up to {self.n_samples}" if reached else "null"
            raise ValueError(f"alarm_at must be {wanted}, as largest and alpha say, found {self.alarm_at}")

    def _check_targets(self, predictions: Predictions) -> None:
        targets = np.asarray(self.targets)
        if targets_are_indices(predictions):
            classes = int(predictions.class_probs().shape[1])
            if targets.dtype.kind not in "iu" or not ((targets >= 0) & (targets < classes)).all():
                raise ValueError(f"targets must be numbers of classes, 0 to {classes - 1}")
        else:
            predictions.check_targets(targets, "targets")


def _count(found: Any) -> str:
    return "none" if found is None else f"{len(found)}"


def _array(plain: Any, name: str) -> NDArray:
    return array_from_dict(plain, name)


_number = number()

_STORED: Mapping[str, Check] = {
    **KERNEL,
    "n_samples": whole(least=0),
    "predictions": optional(predictions_from_dict),
    "targets": optional(_array),
    "logs": lambda plain, name: np.array(listed(_number, length=len(ETAS))(plain, name)),
    "largest": number(least=0.0),
    "alarm_at": optional(whole(least=1)),
    "history": listed(_number),
}
"""Checks of what `State.to_dict` writes."""


def _restored_kernel(found: dict[str, Any], given: Kernel | None) -> Kernel | None:
    if found["kernel"] is None:
        if given is not None:
            raise ValueError("kernel was given, but the monitor has not chosen one yet; start a new monitor")
        return None
    if given is not None and repr(given) != found["kernel_text"]:
        raise ValueError(f"kernel must be the one the monitor has, {found['kernel_text']}, found {given!r}")
    restored = read_kernel(found["kernel"], found["kernel_text"], given)
    if restored is None:
        raise ValueError(
            f"the kernel {found['kernel_text']} holds a function, which a file cannot; give the kernel again "
            "as kernel="
        )
    return check_pair_kernel(restored)


def generator_to_dict(rng: np.random.Generator) -> dict[str, Any]:
    """State of a generator as plain values."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(item) for name, item in cast("dict[str, Any]", value).items()}
        return array_to_dict(value) if isinstance(value, np.ndarray) else value

    return plain(dict(rng.bit_generator.state))


_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
# NumPy does not look where they are, and would read beyond the end.
_LAST_POSITIONS = {"MT19937": ("pos", 624), "Philox": ("buffer_pos", 4)}


def generator_from_dict(plain: Any, name: str = "generator") -> np.random.Generator:
    """The generator again."""

    def restore(value: Any, path: str) -> Any:
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            if "dtype" in members:
                return array_from_dict(members, path)
            return {key: restore(item, f"{path}.{key}") for key, item in members.items()}
        return value

    state = restore(mapping(plain, name), name)
    kind = one_of(state.get("bit_generator"), f"{name}.bit_generator", _GENERATORS)
    bits: Any = getattr(np.random, kind)(0)
    _check_alike(state, dict(bits.state), name)
    try:
        bits.state = state
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError, IndexError) as error:
        raise ValueError(f"{name} is not the state of {kind}: {error}") from error
    if kind in _LAST_POSITIONS:
        key, last = _LAST_POSITIONS[kind]
        inner = state["state"] if key in state["state"] else state
        whole_number(inner[key], f"{name}.{key}", least=0, most=last)
    return np.random.Generator(bits)


def _check_alike(found: Any, known: Any, name: str) -> None:
    """Reject what differs in kind from the state of a generator: NumPy reads some of it as something else."""
    if isinstance(known, dict):
        inner = cast("dict[str, Any]", known)
        members = Schema(dict.fromkeys(inner, as_it_is))(found, name)
        for key, value in inner.items():
            _check_alike(members[key], value, f"{name}.{key}")
    elif isinstance(known, np.ndarray):
        wanted = cast("NDArray", known)
        given = cast("NDArray", found) if isinstance(found, np.ndarray) else None
        if given is None or (given.dtype, given.shape) != (wanted.dtype, wanted.shape):
            raise ValueError(f"{name} must be an array of {wanted.size} entries of {wanted.dtype}")
    elif isinstance(known, int):
        whole_number(found, name, least=0, most=1 if name.endswith("has_uint32") else None)


# -- a file ------------------------------------------------------------------------------------------


def _expectations(plain: Any, name: str) -> str | Lowering:
    if not isinstance(plain, dict):
        return word("auto", "closed")(plain, name)
    check = {
        "nodes": optional(whole(least=4)),
        "tolerance": positive_number,
        "points": optional(whole(least=4)),
    }
    return Lowering(**Schema(check)(plain, name))


_STATE = Schema(
    {
        "format": word(FORMAT),
        "alpha": probability,
        "warmup": whole(least=2),
        "draws": whole(least=1),
        "memory": whole(least=1),
        "history_size": whole(least=0),
        "expectations": _expectations,
        **_STORED,
        "generator": generator_from_dict,
    }
)


def read_state(plain: Any) -> dict[str, Any]:
    """The options and the state of a monitor, by name, from what `Monitor.to_dict` wrote."""
    given = mapping(plain, "it")
    if given.get("format") == _EARLIER and "n_cases" in given:
        given = {**given, "format": FORMAT, "n_samples": given["n_cases"]}
        del given["n_cases"]
    if given.get("format") != FORMAT:
        raise ValueError(f"format must be {FORMAT!r}, found {short(given.get('format'))}")
    return _STATE(given)
