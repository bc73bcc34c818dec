"""What a monitor remembers, and how it is kept in a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import check_levels, one_of, positive_number, probability, whole_number
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.schema import (
    Check,
    Schema,
    as_it_is,
    listed,
    mapping,
    number,
    numbers,
    optional,
    short,
    whole,
    word,
)
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel
from wellcal.kernels.serialization import kernel_to_dict, read_kernel
from wellcal.measures.presentation import KERNEL
from wellcal.monitoring.evidence import Evidence
from wellcal.monitoring.experts import Experts
from wellcal.predictions import Predictions, Quantiles
from wellcal.predictions.quantile_ties import Ties
from wellcal.predictions.serialization import (
    array_from_dict,
    array_to_dict,
    predictions_from_dict,
    predictions_to_dict,
)
from wellcal.problem.problem import check_pair_kernel

FORMAT = "wellcal monitor 4"
_EARLIER = ("wellcal monitor 1", "wellcal monitor 2", "wellcal monitor 3")
_ROUNDING = 1e-9  # of logarithms of e-values

STAYS_REFUSED = (
    "a monitor that has refused cases takes no others: restart it for those to come, or begin a new one, for "
    "all of them or for another family"
)
"""What to do after the remedy for outcomes that fall on their own quantiles."""


def log_threshold(alpha: float | None, run_length: float | None) -> float:
    """Logarithm of the evidence at which there is an alarm."""
    if run_length is not None:
        return math.log(run_length)
    return math.inf if alpha is None else -math.log(alpha)


def check_run_length(x: object, name: str) -> float:
    """A mean number of cases between false alarms."""
    value = float(positive_number(x, name))
    if value <= 1.0:
        raise ValueError(f"{name} must be more than 1 case, found {value:g}")
    return value


@dataclass(frozen=True)
class Onset:
    """Where the change began that the largest evidence speaks of.

    Attributes
    ----------
    case, first, last
        The most likely case, counted from 1, and an interval of cases.
    expert
        Who won most.
    """

    case: int
    first: int
    last: int
    expert: int


@dataclass(frozen=True)
class State:
    """All that changes with a case.

    Attributes
    ----------
    n_samples, started
        Cases seen, and how many of them before the evidence began.
    predictions, targets
        The most recent of them, None before the first.
    kernel
        The kernel, None while it is not chosen yet.
    evidence
        Products of bets, None before the first.
    largest
        Largest logarithm of the e-value so far, at least 0.
    alarm_at
        Number of cases seen at the alarm, or None.
    onset
        Where the change began, by what was known at the largest evidence; None before the alarm.
    history
        Logarithms of the e-values after the most recent cases.
    ties
        Targets since the evidence began that equal their own quantiles; None where there are no quantiles.
        Where they are too many, those of the cases are among them that were refused, and not seen.
    """

    n_samples: int = 0
    started: int = 0
    predictions: Predictions | None = None
    targets: NDArray | None = None
    kernel: Kernel | None = None
    evidence: Evidence | None = None
    largest: float = 0.0
    alarm_at: int | None = None
    onset: Onset | None = None
    history: NDArray = field(default_factory=lambda: np.zeros(0))
    ties: Ties | None = None

    @property
    def refused(self) -> str | None:
        """Why no more cases are taken; None where they are.

        Cases are refused for their outcomes. If others were taken after them, these would be a selection.
        """
        refusal = None if self.ties is None else self.ties.refusal()
        return None if refusal is None else f"{refusal}; {STAYS_REFUSED}"

    def log_e_value(self, *, detector: bool) -> float:
        """Logarithm of the evidence now."""
        if self.evidence is None:
            return -math.inf if detector else 0.0
        return self.evidence.value

    def betted(
        self, bets: NDArray, lags: NDArray, *, log_threshold: float, detector: bool, history_size: int
    ) -> State:
        """The state after bets ``(m, K)`` on the last m of the cases seen; `lags` as in `Evidence.onset`."""
        m, experts = bets.shape
        before = self.evidence or Evidence.start(experts, detector=detector)
        evidence, values = before.advance(bets, detector=detector)
        alarm_at, onset = self.alarm_at, self.onset
        crossed = np.flatnonzero(values >= log_threshold - 1e-12)
        if alarm_at is None and len(crossed):
            alarm_at = self.n_samples - m + int(crossed[0]) + 1
        top = int(values.argmax())
        if alarm_at is not None and values[top] > self.largest:
            # As it was known then: what comes later may be a model that was mended.
            at_top = evidence if top == m - 1 else before.advance(bets[: top + 1], detector=detector)[0]
            expert, *found = at_top.onset(lags)
            case, first, last = (self.started + each for each in found)
            if first <= alarm_at:  # else a second change, larger than what raised the alarm
                case, last = min(case, alarm_at), min(last, alarm_at)
            onset = Onset(case, first, last, expert)
        history = np.concatenate([self.history, values])
        return replace(
            self,
            evidence=evidence,
            largest=max(self.largest, float(values[top])),
            alarm_at=alarm_at,
            onset=onset,
            history=history[max(0, len(history) - history_size) :],
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {
            "kernel": None if self.kernel is None else kernel_to_dict(self.kernel),
            "kernel_text": None if self.kernel is None else repr(self.kernel),
            "n_samples": self.n_samples,
            "started": self.started,
            "predictions": None if self.predictions is None else predictions_to_dict(self.predictions),
            "targets": None if self.targets is None else array_to_dict(self.targets),
            "evidence": None if self.evidence is None else _plain(self.evidence),
            "largest": self.largest,
            "alarm_at": self.alarm_at,
            "onset": None if self.onset is None else _plain(self.onset),
            "history": self.history.tolist(),
            "ties": None if self.ties is None else _plain(self.ties),
        }

    @classmethod
    def of(cls, found: dict[str, Any], kernel: Kernel | None) -> State:
        """The state from the values that `read_state` found; `kernel` where plain values cannot hold it."""
        values = {each.name: found[each.name] for each in fields(cls) if each.name != "kernel"}
        values["history"] = np.array(values["history"], np.float64)
        return cls(**values, kernel=_restored_kernel(found, kernel))

    def check(
        self, *, alpha: float | None, run_length: float | None, warmup: int, memory: int, history_size: int
    ) -> None:
        """Refuse what a monitor with these options cannot have come to."""
        if (alpha is None) == (run_length is None):
            raise ValueError("either alpha or run_length must be a number, and the other null")
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
        self._check_evidence(memory, detector=run_length is not None)
        since = self.n_samples - self.started
        if len(self.history) > min(history_size, since):
            raise ValueError(
                f"history must have at most {min(history_size, since)} entries, as n_samples, started and "
                f"history_size say, found {len(self.history)}"
            )
        self._check_ties(since)
        now = max(0.0, self.log_e_value(detector=run_length is not None))
        if self.largest < now - _ROUNDING * max(1.0, abs(now)):
            raise ValueError(
                f"largest must be at least {now:.6g}, as evidence says, found {self.largest:.6g}"
            )
        reached = self.largest >= log_threshold(alpha, run_length) - _ROUNDING
        if reached != (self.alarm_at is not None) or (self.alarm_at or 0) > self.n_samples:
            wanted = f"a number of cases up to {self.n_samples}" if reached else "null"
            raise ValueError(
                f"alarm_at must be {wanted}, as largest and the threshold say, found {self.alarm_at}"
            )
        if (self.onset is not None) != reached:
            raise ValueError(f"onset must be {'given' if reached else 'null'}, as alarm_at says")

    def _check_evidence(self, memory: int, *, detector: bool) -> None:
        since = self.n_samples - self.started
        if since < 0:
            raise ValueError(f"started must be at most {self.n_samples}, n_samples, found {self.started}")
        if self.evidence is None or self.predictions is None:
            if since:
                raise ValueError(f"evidence is missing: there were bets on {since} cases")
            return
        experts = Experts.of(self.predictions, memory)
        self.evidence.check(since, experts.count, detector=detector)
        if self.onset is not None:
            onset = self.onset
            if not self.started < onset.first <= onset.case <= onset.last <= self.n_samples:
                raise ValueError(
                    f"onset must be a case between {self.started + 1} and {self.n_samples}, within its "
                    f"interval, found {onset.case} from {onset.first} to {onset.last}"
                )
            if onset.expert >= experts.count:
                raise ValueError(f"onset.expert must be below {experts.count}, found {onset.expert}")

    def _check_ties(self, since: int) -> None:
        if self.ties is None:
            return
        levels, counts = check_levels(self.ties.levels, "ties.levels", open_interval=True), self.ties.counts
        if isinstance(self.predictions, Quantiles):
            levels = self.predictions.levels
        if self.ties.levels != tuple(levels.tolist()) or len(counts) != len(levels):
            raise ValueError(
                f"ties.levels and ties.counts must have the {len(levels)} levels that predictions have"
            )
        refused = self.refused is not None
        if not isinstance(self.predictions, Quantiles) and not (refused and self.predictions is None):
            raise ValueError("ties must be null, as predictions say, which have no quantiles")
        if not max(counts) <= self.ties.cases <= (self.ties.cases if refused else since):
            most = "" if refused else f"at most {since}, as n_samples and started say, and "
            raise ValueError(
                f"ties.cases must be {most}at least the largest of ties.counts, found {self.ties.cases}"
            )

    def _check_targets(self, predictions: Predictions) -> None:
        targets = np.asarray(self.targets)
        if predictions.kind == "classes":
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
_EVIDENCE = Schema(
    {
        "cases": whole(least=1),
        "value": _number,
        **dict.fromkeys(("logs", "sums", "lows"), numbers(infinite=False, nan=False)),
        **dict.fromkeys(("low_at", "late", "passed"), numbers(whole_ones=True)),
    }
)
_ONSET = Schema(
    {**dict.fromkeys(("case", "first", "last"), whole(least=1)), "expert": whole(least=0)},
)


def _evidence(plain: Any, name: str) -> Evidence:
    return Evidence(**_EVIDENCE(plain, name))


def _onset(plain: Any, name: str) -> Onset:
    return Onset(**_ONSET(plain, name))


_TIES = Schema({"cases": whole(least=1), "levels": listed(_number), "counts": listed(whole(least=0))})


def _ties(plain: Any, name: str) -> Ties:
    return Ties(**_TIES(plain, name))


def _plain(stored: Evidence | Onset | Ties) -> dict[str, Any]:
    kept = [part.name for part in fields(stored) if part.compare]  # of ties not where they are
    return {name: _plain_value(getattr(stored, name)) for name in kept}


def _plain_value(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.tolist()
    return list(cast("tuple[Any, ...]", x)) if isinstance(x, tuple) else x


_STORED: Mapping[str, Check] = {
    **KERNEL,
    "n_samples": whole(least=0),
    "started": whole(least=0),
    "predictions": optional(predictions_from_dict),
    "targets": optional(_array),
    "evidence": optional(_evidence),
    "largest": number(least=0.0),
    "alarm_at": optional(whole(least=1)),
    "onset": optional(_onset),
    "history": listed(_number),
    "ties": optional(_ties),
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
        "alpha": optional(probability),
        "run_length": optional(check_run_length),
        "warmup": whole(least=2),
        "draws": whole(least=1),
        "memory": whole(least=1),
        "history_size": whole(least=0),
        "expectations": _expectations,
        **_STORED,
        "generator": generator_from_dict,
    },
    {"ties": None},  # earlier versions did not count them
)


def read_state(plain: Any) -> dict[str, Any]:
    """The options and the state of a monitor, by name, from what `Monitor.to_dict` wrote."""
    given = mapping(plain, "it")
    found = given.get("format")
    if found in _EARLIER:
        raise ValueError(
            f"format must be {FORMAT!r}, found {found!r}: an earlier version wrote it, whose bets were "
            "others, so that its evidence cannot be continued; start a new monitor"
        )
    if found != FORMAT:
        raise ValueError(f"format must be {FORMAT!r}, found {short(found)}")
    return _STATE(given)
