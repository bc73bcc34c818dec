"""Where a monitor stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from wellcal._arrays.checks import flag
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.schema import Check, listed, number, optional, text, whole
from wellcal.kernels.base import Kernel
from wellcal.measures.presentation import Presentable, Row, pvalue_phrase

HYPOTHESIS = "targets follow their predictions, one after the other; valid whenever one looks"
"""What a monitor tests, in words."""


@dataclass(frozen=True, eq=False, repr=False)
class MonitorStatus(Presentable):
    """Where a monitor stands.

    Attributes
    ----------
    n_samples
        Cases seen.
    e_value, log_e_value
        Evidence against calibration now, and its natural logarithm.
    pvalue
        Anytime-valid p-value, ``1 / largest e-value so far``, at most 1; None for a monitor with a
        `run_length`, which promises no such thing.
    alarm
        Whether the e-value has ever reached ``1 / alpha``, or the detector its `run_length`.
    alarm_at
        Number of cases seen when it first did, or None.
    onset, onset_interval
        The case, counted from 1, at which the change began, and the first and last case of an interval of
        level 0.95; None without an alarm.
    refused
        Why the monitor takes no more cases, since outcomes fall on their own quantiles; None where it does.
    restarted
        How many cases it had seen when it last forgot its evidence; 0 where it never did.

    Examples
    --------
    >>> MonitorStatus(300, 1.6, 0.47, 0.4, alarm=False, alarm_at=None)
    No miscalibration found in 300 cases (p = 0.4).
      e-value  1.6 after 300 cases
      tested   targets follow their predictions, one after the other; valid whenever one looks
    """

    n_samples: int
    e_value: float
    log_e_value: float
    pvalue: float | None
    alarm: bool
    alarm_at: int | None
    onset: int | None = None
    onset_interval: tuple[int, int] | None = None
    refused: str | None = None
    restarted: int = 0

    added: ClassVar[Mapping[str, Any]] = {"refused": None, "restarted": 0}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def with_trace(self, log_e_values: NDArray, log_threshold: float) -> Self:
        """The same status, which remembers how the evidence grew, for pictures."""
        self.__dict__["_trace"] = (log_e_values, log_threshold)
        return self

    @property
    def trace(self) -> tuple[NDArray, float] | None:
        """Log e-values after the most recent cases, and that of an alarm; None where they are not known."""
        return self.__dict__.get("_trace")

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of it."""
        return {
            "n_samples": whole(least=0),
            "e_value": number(least=0.0, infinite=True),
            "log_e_value": number(infinite=True),
            "pvalue": optional(number(least=0.0, most=1.0)),
            "alarm": flag,
            "alarm_at": optional(whole(least=1)),
            "onset": optional(whole(least=1)),
            "onset_interval": optional(listed(whole(least=1), length=2)),
            "refused": optional(text),
            "restarted": whole(least=0),
        }

    @property
    def verdict(self) -> str:
        """Where it stands, in one sentence."""
        sure = "" if self.pvalue is None else f" ({pvalue_phrase(self.pvalue)})"
        if self.alarm_at is None and self.refused is not None:
            return "Calibration cannot be judged: outcomes fall on their own quantiles."
        if self.alarm_at is None:
            return f"No miscalibration found in {self._looked_at}{sure}."
        alarm = f"alarm after {how_many(self.alarm_at)}"
        if self.onset is None or self.onset_interval is None:
            return f"Miscalibrated{sure}: {alarm}."
        when = since(self.onset, self.onset_interval)
        if self.onset_interval[0] > self.alarm_at:  # another change, which is the larger one
            return f"Miscalibrated{sure}: first {alarm}, most clearly {when}."
        return f"Miscalibrated{sure} {when}: {alarm}."

    @property
    def _looked_at(self) -> str:
        """The cases that the evidence is from."""
        told = how_many(max(self.n_samples - self.restarted, 0))
        return f"{told} since the restart" if self.restarted else told

    def _headline(self) -> str:
        return self.verdict

    def _rows(self) -> list[Row]:
        return [*self.standing, ("tested", HYPOTHESIS)]

    @property
    def standing(self) -> list[Row]:
        """What the evidence is called, and how much there is; and why there will be no more of it."""
        what = "detector" if self.pvalue is None else "e-value"
        evidence = (what, f"{self.e_value:.3g} after {self._looked_at}")
        return [evidence] if self.refused is None else [evidence, ("refused", self.refused)]


def since(onset: int, interval: tuple[int, int]) -> str:
    """When a change began, in words.

    Examples
    --------
    >>> since(1200, (1180, 1215))
    'since about case 1,200 (1,180 to 1,215)'
    """
    first, last = interval
    return f"since about case {onset:,} ({first:,} to {last:,})"
