"""Where a monitor stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wellcal._arrays.deprecation import renamed_attribute
from wellcal._arrays.schema import Check, flag, number, optional, whole
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
        Anytime-valid p-value, ``1 / largest e-value so far``, at most 1.
    alarm
        Whether the e-value has ever reached ``1 / alpha``.
    alarm_at
        Number of cases seen when it first did, or None.

    Examples
    --------
    >>> MonitorStatus(300, 1.6, 0.47, 0.4, alarm=False, alarm_at=None)
    Monitor: no alarm; e-value 1.6 after 300 cases, p = 0.4
    """

    n_samples: int
    e_value: float
    log_e_value: float
    pvalue: float
    alarm: bool
    alarm_at: int | None

    n_cases = renamed_attribute("n_cases", "n_samples")

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of it."""
        return {
            "n_samples": whole(least=0),
            "e_value": number(least=0.0, infinite=True),
            "log_e_value": number(),
            "pvalue": number(least=0.0, most=1.0),
            "alarm": flag,
            "alarm_at": optional(whole(least=1)),
        }

    def _headline(self) -> str:
        found = "no alarm" if self.alarm_at is None else f"alarm after {self.alarm_at:,} cases"
        now = f"e-value {self.e_value:.3g} after {self.n_samples:,} cases"
        return f"Monitor: {found}; {now}, {pvalue_phrase(self.pvalue)}"
