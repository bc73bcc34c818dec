"""A finding: one sentence about one kind of error, with its size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.schema import Check, listed, number, optional, text, whole
from wellcal.kernels.base import Kernel
from wellcal.measures.presentation import Presentable, Row, pvalue_sign

LEVEL = 0.95
"""Coverage of the intervals of findings."""

_IN_A_SENTENCE = 3  # findings that a verdict names
_LONG = 140  # characters from which a sentence is too long for a verdict


@dataclass(frozen=True, eq=False, repr=False)
class Finding(Presentable):
    """One kind of error that a test found; ``str(finding)`` is its sentence.

    Attributes
    ----------
    sentence
        In words, with numbers and intervals.
    kind
        Of which kind the error is: "shift", "spread", "correlation" ...
    short
        The sentence without intervals, for a headline.
    size
        The number that the sentence tells first: standard deviations for shifts (interquartile ranges
        where a family has no finite variance), predicted over true for spreads and temperatures, and what
        is named otherwise; None where there is none.
    interval
        Its confidence interval, low end first.
    level
        Coverage of the interval.
    pvalue
        How clear the finding is by itself, before all findings are looked at together.
    expected
        For the share of targets that fall somewhere, and for how likely they are on average: what a
        calibrated model has. None elsewhere.
    ratio
        Predicted over true, and the ends of its interval, where spreads, temperature or means are wrong in
        all cases alike: the size of the error, and what :attr:`wellcal.TestResult.yardstick` tells. None
        elsewhere.
    elsewhere
        Where the size is that of some cases: the same of all others, and the ends of its interval. None
        elsewhere.
    by
        What these cases are told by, such as "predicted mean". None elsewhere.
    unit
        Where `ratio` is of means: these in their standard deviations, on average. None elsewhere.
    classes
        Places of the classes, among the columns of probabilities, that it is about, the one that shows it
        best first. None where it is about all of them, or there are none.
    carried
        How many cases carry it, which the sentence tells: without these there would be no such finding. None
        where it does not rest on a few cases.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=400)
    >>> result = wc.calibration_test(rng.normal(mu, 1.0), wc.Normal(mu, np.full(400, 0.7)), rng=0)
    >>> str(result.findings[0])
    'spreads are 31% too small (25% to 36%)'
    >>> result.findings[0].kind, round(result.findings[0].size, 2)
    ('spread', 0.7)
    """

    sentence: str
    kind: str
    short: str
    size: float | None
    interval: tuple[float, float] | None
    level: float
    pvalue: float
    expected: float | None = None
    ratio: tuple[float, float, float] | None = None
    elsewhere: tuple[float, float, float] | None = None
    by: str | None = None
    unit: float | None = None
    classes: tuple[int, ...] | None = None
    carried: int | None = None

    added: ClassVar[Mapping[str, Any]] = dict.fromkeys(
        ("expected", "ratio", "elsewhere", "by", "unit", "classes", "carried")
    )

    def __str__(self) -> str:
        return self.sentence

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of it."""
        return {
            "sentence": text,
            "kind": text,
            "short": text,
            "size": optional(number(infinite=True)),
            "interval": optional(listed(number(infinite=True), length=2)),
            "level": number(least=0.0, most=1.0),
            "pvalue": number(least=0.0, most=1.0),
            "expected": optional(number(infinite=True)),
            "ratio": optional(listed(number(least=0.0, infinite=True), length=3)),
            "elsewhere": optional(listed(number(infinite=True), length=3)),
            "by": optional(text),
            "unit": optional(number(least=0.0)),
            "classes": optional(listed(whole(least=0))),
            "carried": optional(whole(least=1)),
        }

    def _headline(self) -> str:
        return self.sentence

    def _rows(self) -> list[Row]:
        rows = [("kind", self.kind), ("p", pvalue_sign(self.pvalue).removeprefix("p ").removeprefix("= "))]
        if self.size is not None and self.interval is not None:
            low, high = self.interval
            rows.insert(1, ("size", f"{self.size:.3g}  ({self.level:.0%}: {low:.3g} to {high:.3g})"))
        return rows


PERHAPS = "perhaps "
"""How sentences begin that are not certain."""


def perhaps(finding: Finding, right: float | None = None) -> Finding:
    """A finding as one that is not certain; with the value that is `right`, only where its interval has it.

    Examples
    --------
    >>> found = Finding("it is", "class", "it is", 0.5, (0.2, 0.8), LEVEL, 0.01)
    >>> str(perhaps(found)), str(perhaps(found, 0.3)), str(perhaps(found, 0.9))
    ('perhaps it is', 'perhaps it is', 'it is')
    """
    low, high = (-math.inf, math.inf) if finding.interval is None or right is None else finding.interval
    if finding.sentence.startswith(PERHAPS) or (right is not None and not low <= right <= high):
        return finding
    return replace(finding, sentence=PERHAPS + finding.sentence, short=PERHAPS + finding.short)


def because_of(finding: Finding, carried: int | None, cases: int) -> Finding:
    """A finding that says how many of the cases carry it, where they are few.

    It is then no error that all cases have alike, and no yardstick.

    Examples
    --------
    >>> found = Finding(
    ...     "it is (2 to 3)", "spread", "it is", 2.5, (2.0, 3.0), LEVEL, 0.01, ratio=(2.5, 2.0, 3.0)
    ... )
    >>> few = because_of(found, 3, 1500)
    >>> str(few), few.short, few.ratio
    ('it is (2 to 3), because of 3 of 1,500 cases', 'it is, because of 3 of 1,500 cases', None)
    >>> because_of(found, None, 1500) is found
    True
    """
    if carried is None:
        return finding
    words = f", because of {carried:,} of {how_many(cases)}"
    texts = {"sentence": finding.sentence + words, "short": finding.short + words}
    return replace(finding, **texts, ratio=None, carried=carried)


def together(findings: Sequence[Finding]) -> str:
    """Findings in one sentence: a single one with its interval if it is not too long, others without."""
    if len(findings) == 1 and len(findings[0].sentence) <= _LONG:
        return findings[0].sentence
    more = len(findings) - _IN_A_SENTENCE
    told = "; ".join(finding.short for finding in findings[:_IN_A_SENTENCE])
    return f"{told}; and {more} more" if more > 0 else told
