"""Differences between models on the same cases: what each case adds, standard errors, intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import special

from wellcal._arrays.checks import flag, probability
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.schema import Check, number, text
from wellcal._arrays.special import student_t_lower_quantile
from wellcal.kernels.base import Kernel
from wellcal.measures.intervals import Interval
from wellcal.measures.presentation import Presentable, Row, plain

_ROUNDING = 1e-12  # of a number, below which two of them do not differ


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Presentable):
    """How far two models are apart in one measure, on the same cases: negative where the first is better.

    Attributes
    ----------
    measure
        What is compared, such as "NLL".
    first, second
        Its values for the two models.
    standard_error
        Of the difference; what both models share cancels.
    degrees_of_freedom
        Of the t distribution that it is compared with.
    critical
        Standard errors to either side that an interval has where nothing else is asked for.
    level
        Its nominal coverage, for all that is compared together.
    holds
        Whether the interval means anything. That of a difference in calibration does not where both models
        may be calibrated: it is then no more than noise around zero, whose standard error is not known.

    Examples
    --------
    >>> found = Difference("NLL", 1.5, 1.25, 0.125, 99.0, 2.0, 0.95)
    >>> found
    NLL: 0.25 (0 to 0.5), 1.5 and 1.25
    >>> Difference.from_json(found.to_json()) == found
    True
    """

    measure: str
    first: float
    second: float
    standard_error: float
    degrees_of_freedom: float
    critical: float
    level: float
    holds: bool = True

    added: ClassVar[Mapping[str, Any]] = {"holds": True}
    not_read: ClassVar[tuple[str, ...]] = ("value", "interval", "pvalue")

    @property
    def value(self) -> float:
        """The difference, first less second; rounding is none."""
        found = self.first - self.second
        return 0.0 if abs(found) <= self._rounding else found

    @property
    def _rounding(self) -> float:
        """What sums of the same numbers in another order may differ by."""
        return _ROUNDING * max(abs(self.first), abs(self.second))

    @property
    def is_none(self) -> bool:
        """Whether both are the same in all cases, up to rounding."""
        return self.value == 0.0 and self.critical * self.standard_error <= self._rounding

    @property
    def statistic(self) -> float:
        """The difference in units of its standard error."""
        return standardised(self.value, self.standard_error)

    @property
    def pvalue(self) -> float:
        """Two-sided p-value of no difference, for this one alone."""
        return 2.0 * float(special.stdtr(self.degrees_of_freedom, -abs(self.statistic)))

    def confidence_interval(self, level: float | None = None) -> Interval:
        """Interval of the difference, one of all that are compared; with `level` that of it alone."""
        critical = self.critical
        if level is not None:
            critical = t_quantile(self.degrees_of_freedom, probability(level, "level"))
        half = 0.0 if self.is_none else critical * self.standard_error
        return Interval(self.value - half, self.value + half, self.level if level is None else level)

    @property
    def is_shown(self) -> bool:
        """Whether there is an interval, and zero is outside."""
        found = self.confidence_interval()
        return self.holds and (found.low > 0.0 or found.high < 0.0)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        interval = self.confidence_interval()
        derived = {"value": self.value, "interval": [interval.low, interval.high], "pvalue": self.pvalue}
        return {**super().to_dict(), **plain(derived)}

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of a difference."""
        return {
            "measure": text,
            "first": number(),
            "second": number(),
            "standard_error": number(least=0.0),
            "degrees_of_freedom": number(least=0.0, infinite=True),
            "critical": number(least=0.0),
            "level": number(least=0.0, most=1.0),
            "holds": flag,
        }

    @property
    def phrase(self) -> str:
        """Value and interval."""
        if not self.holds:
            return f"{self.value:.3g} (no interval)"
        if self.is_none:
            return "0"
        found = self.confidence_interval()
        return f"{self.value:.3g} ({found.low:.3g} to {found.high:.3g})"

    def _headline(self) -> str:
        return f"{self.measure}: {self.phrase}, {self.first:.4g} and {self.second:.4g}"

    def _rows(self) -> list[Row]:
        return []

    @property
    def row(self) -> Row:
        """A line of a table."""
        return self.measure, f"{self.phrase}; {self.first:.4g} and {self.second:.4g}"


def paired(name: str, first: NDArray, second: NDArray, level: float = 0.95) -> Difference:
    """The difference of a score between two sets of predictions of the same cases, from ``(n,)`` of each."""
    n, gaps = len(first), first - second
    error = float(np.std(gaps, ddof=1)) / n**0.5
    means = float(first.mean()), float(second.mean())
    return Difference(name, *means, error, n - 1.0, t_quantile(n - 1.0, level), level)


def change_in_words(found: Difference) -> str:
    """A score before and after, and by how much it fell or rose if that is more than chance.

    Examples
    --------
    >>> change_in_words(Difference("NLL", 1.5, 1.25, 0.05, 99.0, 2.0, 0.95))
    'NLL falls from 1.5 to 1.25, by 0.25 (0.15 to 0.35)'
    >>> change_in_words(Difference("NLL", 5.45, 5.449, 0.01, 99.0, 2.0, 0.95))
    'NLL does not change clearly: 5.45 before, 5.449 after, a difference of 0.001 (-0.019 to 0.021)'
    >>> change_in_words(Difference("NLL", 5.45, 5.45, 1e-18, 99.0, 2.0, 0.95))
    'NLL does not change: 5.45'
    """
    if found.is_none:
        return f"{found.measure} does not change: {found.first:.4g}"
    ends = found.confidence_interval()
    moved = f"{found.first:.4g} to {found.second:.4g}"
    if ends.low > 0.0:
        return f"{found.measure} falls from {moved}, by {found.value:.2g} ({ends.low:.2g} to {ends.high:.2g})"
    if ends.high < 0.0:
        sizes = f"{-found.value:.2g} ({-ends.high:.2g} to {-ends.low:.2g})"
        return f"{found.measure} rises from {moved}, by {sizes}"
    return (
        f"{found.measure} does not change clearly: {found.first:.4g} before, {found.second:.4g} after, a "
        f"difference of {found.value:.2g} ({ends.low:.2g} to {ends.high:.2g})"
    )


def t_quantile(degrees: float, level: float) -> float:
    """Standard errors to either side that a t interval has."""
    return float(student_t_lower_quantile(degrees, 0.5 + 0.5 * level))


def standardised(value: float, error: float) -> float:
    """``value / error``; models that agree in all cases differ by nothing.

    Examples
    --------
    >>> standardised(0.0, 0.0), standardised(-1.0, 0.0)
    (0.0, -inf)
    """
    if error > 0.0:
        return value / error
    return 0.0 if value == 0.0 else math.copysign(math.inf, value)


def simultaneous_critical(terms: NDArray, degrees: float, level: float) -> float:
    """Standard errors that intervals of several differences need to hold together, with probability `level`.

    Parameters
    ----------
    terms
        What cases add to the deviation of each difference, ``(n, k)``: they say how differences go together.
    degrees
        Of the t distribution that each is compared with.
    level
        Coverage of all together.

    Notes
    -----
    The largest of k jointly normal variates, by 20,000 draws with a fixed seed, on the scale of the t
    distribution; never more than Bonferroni's.

    Examples
    --------
    >>> same = np.repeat(np.random.default_rng(0).normal(size=(200, 1)), 3, axis=1)
    >>> round(simultaneous_critical(same, 1e9, 0.95), 1)
    2.0
    """
    k = terms.shape[1]
    bonferroni = t_quantile(degrees, 1.0 - (1.0 - level) / k)
    scale = np.sqrt(np.sum(terms**2, axis=0))
    some = scale > 0.0
    if k == 1 or not some.any():
        return bonferroni
    unit = terms[:, some] / scale[some]
    values, vectors = np.linalg.eigh(unit.T @ unit)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = np.random.default_rng(0).normal(size=(20_000, len(values))) @ root.T
    normal = float(np.quantile(np.max(np.abs(drawn), axis=1), level))
    return min(bonferroni, t_quantile(degrees, 2.0 * float(special.ndtr(normal)) - 1.0))
