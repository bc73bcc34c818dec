"""Confidence intervals, and how they were made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wellcal._arrays.schema import Check, number, word
from wellcal.kernels.base import Kernel
from wellcal.measures.presentation import Presentable, Row

NORMAL, STUDENT, EMBEDDING = "normal", "Student", "mean embedding"
"""How intervals are made."""


@dataclass(frozen=True, eq=False, repr=False)
class Interval(Presentable):
    """A confidence interval.

    Attributes
    ----------
    low, high
        Its ends.
    level
        Nominal coverage.
    method
        "normal": an estimate and its standard error; "Student": the same of a mean, with Student's quantile;
        "mean embedding": from the distance between the estimated and the true mean embedding, which holds for
        calibrated models too.

    Examples
    --------
    >>> Interval(0.01234, 0.25, 0.95)
    0.01234 to 0.25 (95%, normal)
    """

    low: float
    high: float
    level: float
    method: str = NORMAL

    def __repr__(self) -> str:
        return self._headline()  # in one line, since it stands within others

    def _headline(self) -> str:
        return f"{self.low:.4g} to {self.high:.4g} ({100.0 * self.level:.4g}%, {self.method})"

    def _rows(self) -> list[Row]:
        return [
            ("low", f"{self.low:.6g}"),
            ("high", f"{self.high:.6g}"),
            ("level", f"{100.0 * self.level:.4g}%"),
            ("method", self.method),
        ]

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """Checks of the keys that are read."""
        return {
            "low": number(infinite=True, nan=True),
            "high": number(infinite=True, nan=True),
            "level": number(least=0.0, most=1.0),
            "method": word(NORMAL, STUDENT, EMBEDDING),
        }


def read_interval(plain: Any, name: str) -> Interval:
    """The check of a stored interval."""
    return Interval.read(plain, name)
