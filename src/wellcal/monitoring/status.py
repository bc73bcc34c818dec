"""Where a monitor stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wellcal._arrays.deprecation import renamed_attribute
from wellcal._arrays.schema import Check, flag, listed, number, optional, whole
from wellcal.kernels.base import Kernel
from wellcal.measures.presentation import Presentable, pvalue_phrase


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

    Examples
    --------
    >>> MonitorStatus(300, 1.6, 0.47, 0.4, alarm=False, alarm_at=None)
    Monitor: no alarm; e-value 1.6 after 300 cases, p = 0.4
    """

    n_samples: int
    e_value: float
    log_e_value: float
    pvalue: float | None
    alarm: bool
    alarm_at: int | None
    onset: int | None = None
    onset_interval: tuple[int, int] | None = None

    n_cases = renamed_attribute("n_cases", "n_samples")

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
        }

    def _headline(self) -> str:
        found = "no alarm" if self.alarm_at is None else f"alarm after {self.alarm_at:,} cases"
        since = ""
        if self.onset is not None and self.onset_interval is not None:
            first, last = self.onset_interval
            since = f", since about case {self.onset:,} ({first:,} to {last:,})"
        what = "detector" if self.pvalue is None else "e-value"
        now = f"{what} {self.e_value:.3g} after {self.n_samples:,} cases"
        end = "" if self.pvalue is None else f", {pvalue_phrase(self.pvalue)}"
        return f"Monitor: {found}{since}; {now}{end}"
