"""What a comparison of two models found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from wellcal._arrays.checks import flag, probability
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.schema import Check, described, listed, number, text, whole
from wellcal.comparison.differences import Difference, t_quantile
from wellcal.comparison.models import LEFT_OUT, SKCE, gate
from wellcal.comparison.shares import called, clearest, explained, opposed, shares_of
from wellcal.hypotests.result import TestResult
from wellcal.kernels.base import Kernel
from wellcal.measures.estimate import Estimate, estimate_text
from wellcal.measures.intervals import Interval
from wellcal.measures.presentation import KERNEL, Presentable, Row, plain, pvalue_phrase, within

MOST_NAMES = 4
"""Models that a sentence lists."""

NAMES = ("A", "B")
"""What two models are called that have no names."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Presentable):
    """What a comparison of two models on the same cases found.

    Attributes
    ----------
    estimate
        SKCE_A - SKCE_B with its standard error: negative where A is better calibrated.
    a, b
        SKCE of each model under the common kernel.
    pvalue
        Two-sided p-value of equal calibration errors, valid also where both are zero: the larger of that of
        the differences in SKCE and in centre and spread, or of classes in temperature, with shares 1/5 and
        4/5 of the error rate, and twice the smaller p-value of `tests`.
    difference_pvalue
        p-value of the standardised difference in SKCE alone, which takes for granted that at least one model
        is miscalibrated.
    statistic
        The difference in SKCE in units of its standard error.
    differences
        Paired differences in all measures that both models have: SKCE; the length of the error in centre and
        spread, in standard deviations; NLL; CRPS or Brier score. The first two are errors of calibration;
        they decide, and their intervals hold together. The others are proper scores, in which a model can
        also be better because it says more; each has an interval of its own.
    degrees_of_freedom
        Of the t distribution that it is compared with: cases less one, or what weighted cases are worth.
    tests
        What :func:`wellcal.calibration_test` found of A and of B.
    degenerate
        Whether neither test rejects at an error rate of ``1 - level``. The difference is then no more than
        noise around zero, and neither its standard error nor its interval means anything.
    level
        Nominal coverage of the interval. Tests reject at an error rate of ``1 - level``.
    n_samples, kernel, provenance
        Number of cases, the common kernel, and how all was computed.
    names
        What the models are called.

    Examples
    --------
    >>> import wellcal as wc
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=100)
    >>> y = rng.normal(mu, 1.0)
    >>> found = wc.compare(y, wc.Normal(mu, np.ones(100)), wc.Normal(mu + 1.0, np.ones(100)), rng=0)
    >>> found.verdict, found.degenerate
    ('A is better calibrated than B', False)
    >>> found.confidence_interval().high < 0.0
    True
    """

    estimate: Estimate
    a: Estimate
    b: Estimate
    statistic: float
    pvalue: float
    difference_pvalue: float
    degrees_of_freedom: float
    tests: tuple[TestResult, TestResult]
    degenerate: bool
    level: float
    n_samples: int
    kernel: Kernel | None = None
    provenance: dict[str, Any] = field(default_factory=lambda: {})
    differences: tuple[Difference, ...] = ()
    names: tuple[str, str] = NAMES

    added: ClassVar[Mapping[str, Any]] = {"differences": (), "names": NAMES}
    not_read: ClassVar[tuple[str, ...]] = ("verdict", "interval")
    called: ClassVar[Mapping[str, str]] = {"difference": "estimate"}

    def confidence_interval(self, level: float | None = None) -> Interval:
        """t interval of SKCE_A - SKCE_B; it does not hold where the comparison is `degenerate`.

        With `level` for this difference alone. Without it is that of `differences`, which holds together with
        that of the other measure, and excludes zero only where the verdict is that the models
        differ.
        """
        if level is None and self.differences:
            return self.differences[0].confidence_interval()
        level = self.level if level is None else probability(level, "level")
        value, error = float(self.estimate), float(self.estimate.standard_error)
        half = t_quantile(self.degrees_of_freedom, level) * error
        return Interval(value - half, value + half, level)

    @property
    def verdict(self) -> str:
        """The finding in words."""
        if self.degenerate:
            return f"{_neither(self.names)} is shown to be miscalibrated, nor any difference between them"
        if self.pvalue > 1.0 - self.level:
            return (
                f"No difference in calibration is shown{_between(self.names)}"
                f"{unsure(self.tests, self.level) or some_only(self.names, self.tests, self.level)}"
            )
        if opposed(self.differences) is not None:
            return either_way(self.names, self.differences)
        sign = clearest(self.differences).value if self.differences else float(self.estimate)
        a, b = self.names
        return f"{a} is better calibrated than {b}" if sign < 0 else f"{b} is better calibrated than {a}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        interval = self.confidence_interval()
        found = super().to_dict()
        return {
            "verdict": self.verdict,
            "difference": found.pop("estimate"),
            "interval": plain([interval.low, interval.high]),
            **found,
        }

    def check_stored(self, name: str) -> None:
        if self.estimate.standard_error is None:
            raise ValueError(f"{name and name + '.'}difference.standard_error must be a number, found None")

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of a comparison."""
        estimate, rate = within(Estimate, kernel), number(least=0.0, most=1.0)
        return {
            "difference": estimate,
            "a": estimate,
            "b": estimate,
            "statistic": number(infinite=True, nan=True),
            "pvalue": rate,
            "difference_pvalue": rate,
            "degrees_of_freedom": number(least=0.0, infinite=True),
            "tests": listed(within(TestResult, kernel), length=2),
            "degenerate": flag,
            "level": probability,
            "n_samples": whole(least=1),
            **KERNEL,
            "provenance": described({}),
            "differences": listed(within(Difference, kernel)),
            "names": listed(text, length=2),
        }

    def _headline(self) -> str:
        return f"{self.verdict} ({pvalue_phrase(self.pvalue)}; {how_many(self.n_samples)})."

    @property
    def _holds(self) -> bool:
        return all(found.holds for found in self.differences) and not self.degenerate

    def _points(self) -> list[str]:
        return side_by_side(self.names, self.tests)

    def _rows(self) -> list[Row]:
        rows: list[Row] = []
        for name, estimate, test in zip(self.names, (self.a, self.b), self.tests, strict=True):
            tested = f"calibration test: {test.pvalue_statement} ({test.method})"
            rows.append((f"SKCE of {name}", f"{estimate_text(estimate)}; {tested}"))
        text = f"{float(self.estimate):.4g} (no interval)"
        if self._holds:
            found = self.confidence_interval()
            text = f"{estimate_text(self.estimate)}, interval {found.low:.4g} to {found.high:.4g}"
        rows.append((" - ".join(self.names), text))
        for found in self.differences:
            if found.measure != SKCE:
                name, text = found.row
                rows.append((f"  in {name}", text))
        if self._holds:
            rows.append(("intervals", intervals_in_words(self.differences, self.level)))
        else:
            rows.append(("note", NO_INTERVALS))
        rows += told_beside(self.differences, self.provenance)
        scores = ahead(self.names, self.differences)
        if scores:
            rows.append(("scores", f"{'; '.join(scores)}{MORE_SAID}"))
        if self.kernel is not None:
            rows.append(("kernel", f"{self.kernel!r}"))
        return rows + weighted(self.provenance)


def either_way(names: Sequence[str], differences: Sequence[Difference]) -> str:
    """Which of two models is closer by what, where measures of calibration say the opposite of each other.

    Examples
    --------
    >>> skce = Difference("SKCE", 0.01, 0.02, 0.004, 99.0, 2.0, 0.95)
    >>> spread = Difference("centre and spread", 1.5, 1.25, 0.05, 99.0, 2.0, 0.95)
    >>> either_way(("a", "b"), (skce, spread)).split(", ")[0]
    'b has the smaller error in centre and spread (1.25 against 1.5)'
    >>> either_way(("a", "b"), (skce, spread)).split(", ")[1]
    'but a the smaller SKCE (0.01 against 0.02)'
    """
    first, other = clearest(differences), opposed(differences)
    assert other is not None

    def told(found: Difference, has: str) -> str:
        less, more = sorted((found.first, found.second))
        closer = names[0] if found.value < 0 else names[1]
        return f"{closer}{has} the smaller {called(found.measure)} ({less:.3g} against {more:.3g})"

    return f"{told(first, ' has')}, but {told(other, '')}"


def _neither(names: Sequence[str]) -> str:
    return "Neither model" if tuple(names) == NAMES else f"Neither {names[0]} nor {names[1]}"


def _between(names: Sequence[str]) -> str:
    return "" if tuple(names) == NAMES else f" between {names[0]} and {names[1]}"


def names_in_words(names: Sequence[str], last: str = " and ") -> str:
    """Names with commas, and `last` before the last one.

    Examples
    --------
    >>> names_in_words(["a"]), names_in_words(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + last + names[-1]


NO_INTERVALS = (
    "differences in calibration without an interval: both models may be calibrated, and such a difference is "
    "then no more than noise"
)


def told_beside(differences: Sequence[Difference], provenance: Mapping[str, Any]) -> list[Row]:
    """What numbers of differences mean, and which scores there are no differences in."""
    rows: list[Row] = [("numbers", text) for text in explained(found.measure for found in differences)]
    return rows + ([(LEFT_OUT, str(provenance[LEFT_OUT]))] if LEFT_OUT in provenance else [])


def weighted(provenance: Mapping[str, Any]) -> list[Row]:
    """What weights are worth, and what does not use them: a calibrated model has no error under any."""
    if "weights" not in provenance:
        return []
    alike = "calibration tests, and what is said of each model, count all cases with a weight alike"
    return [("weights", f"{provenance['weights']}; {alike}")]


def unsure(tests: Sequence[TestResult], level: float) -> str:
    """Why there is no verdict where one model is miscalibrated by its own test, but not by both together."""
    least = min(test.pvalue for test in tests)
    if not least <= 1.0 - level < gate(tests):
        return ""
    return (
        f", since two tests together are not sure that either model is miscalibrated "
        f"({pvalue_phrase(gate(tests))})"
    )


def some_only(names: Sequence[str], tests: Sequence[TestResult], level: float) -> str:
    """That some models are miscalibrated and others perhaps not, which is no difference between them."""
    wrong = [name for name, test in zip(names, tests, strict=True) if test.pvalue <= 1.0 - level]
    if not wrong or len(wrong) == len(names):
        return ""
    are = "is" if len(wrong) == 1 else "are"
    which = names_in_words(wrong) if len(names) <= MOST_NAMES else f"{len(wrong)} of them"
    return f", though only {which} {are} shown to be miscalibrated"


def intervals_in_words(differences: Sequence[Difference], level: float, pairs: int = 1) -> str:
    """What intervals of differences hold for."""
    shares = shares_of(found.measure for found in differences)
    scores = [found.measure for found in differences if found.measure not in shares]
    what = list(shares) if len(shares) > 1 else []
    what += ["all pairs"] if pairs > 1 else []
    together = f", for {names_in_words(what, ', and ')} together" if what else ""
    told = f"{level:.0%}{together}"
    if not scores:
        return told
    return f"{told}; for {' and '.join(scores)} {'all pairs together' if pairs > 1 else 'each alone'}"


MORE_SAID = ": scores also count how much a model says"


def ahead(names: Sequence[str], differences: Sequence[Difference], other: bool = False) -> list[str]:
    """Which of two models has the better scores, in phrases; with `other` also than whom."""
    shares = shares_of(found.measure for found in differences)
    said: list[str] = []
    for name, rival, sign in zip(names, reversed(names), (-1.0, 1.0), strict=True):
        better = [
            found.measure
            for found in differences
            if found.measure not in shares and _beyond(sign, found.confidence_interval())
        ]
        than = f" than {rival}" if other else ""
        said += [f"{name} is better{than} in {' and '.join(better)}"] if better else []
    return said


def _beyond(sign: float, interval: Interval) -> bool:
    """Whether an interval lies on one side of zero."""
    return interval.low > 0.0 if sign > 0.0 else interval.high < 0.0


def side_by_side(names: Sequence[str], tests: Sequence[TestResult]) -> list[str]:
    """What tests found of models, in sentences, where they say so."""
    found: list[str] = []
    for name, test in zip(names, tests, strict=True):
        findings: Sequence[object] = getattr(test, "findings", ())
        found.extend(f"{name}: {finding}" for finding in findings)
    return found
