"""What reports are made of: groups with examples, segments, what mending would do, choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wellcal._arrays.round_numbers import how_many
from wellcal.comparison.differences import Difference, change_in_words
from wellcal.hypotests.findings.finding import Finding, together
from wellcal.hypotests.findings.reasons import ALPHA, without_pointer
from wellcal.hypotests.result import TestResult, seed_text
from wellcal.measures.estimate import Estimate
from wellcal.measures.intervals import Interval
from wellcal.measures.presentation import Presentable, Row, pvalue_phrase
from wellcal.recalibration.cross_fitting import CrossFitted

_NAMED = 3  # segments that a verdict names


@dataclass(frozen=True, eq=False, repr=False)
class ExampleCase(Presentable):
    """One case of a group, in words.

    Attributes
    ----------
    row
        Its position among the cases as they were given, from 0.
    label
        Its label in the index of a data frame, or its row in a file, "row 7", counted from 1; None where
        there is neither.
    predicted
        What the model said: "0.83 for cat, 0.10 for dog", "mean 3.2, 90% between 1.1 and 5.4".
    observed
        What happened.
    """

    row: int
    label: str | None
    predicted: str
    observed: str

    @property
    def name(self) -> str:
        """What to call it: its label, or its row."""
        return f"row {self.row:,}" if self.label is None else self.label

    def _headline(self) -> str:
        return f"{self.name}: predicted {self.predicted}; observed {self.observed}"


@dataclass(frozen=True, eq=False, repr=False)
class WorstGroup(Presentable):
    """A group of cases that are off, and examples of them.

    Attributes
    ----------
    statement
        All of it in one sentence.
    where, direction
        Which cases, and what happens there.
    observed, expected
        How often, or how large on average, it was and should have been.
    pvalue
        Adjusted for all groups and directions that were looked at.
    kind
        "all" for all cases, "split" (above or below a number), "interval" or "box".
    n_samples, share
        Number of its cases, and what part they are of those that were looked at.
    examples
        A few of its cases, which show what is said of it.
    n_resamples
        Resamples that the p-value is from; None where other cases have confirmed the group.
    interval
        95% confidence interval of `observed`, where that is a share and was looked at again in all cases.
    searched
        Number of cases that the group was found in, where numbers are those of all; else None.
    """

    statement: str
    where: str
    direction: str
    observed: float
    expected: float
    pvalue: float
    kind: str
    n_samples: int
    share: float
    examples: tuple[ExampleCase, ...] = ()
    n_resamples: int | None = None
    interval: tuple[float, float] | None = None
    searched: int | None = None

    @property
    def pvalue_floor(self) -> float | None:
        """The smallest p-value that its resamples can give, where there are any."""
        return None if self.n_resamples is None else 1.0 / (self.n_resamples + 1.0)

    def _headline(self) -> str:
        return f"{self.statement}; {pvalue_phrase(self.pvalue, self.pvalue_floor, self.n_resamples)}"

    def _points(self) -> list[str]:
        return [repr(example) for example in self.examples]


@dataclass(frozen=True, eq=False, repr=False)
class SegmentReport(Presentable):
    """The cases of one segment.

    Attributes
    ----------
    variable, where
        Name of the variable, and the cases in words: "for region = North", "where age is between 30 and 45".
    n_samples
        Number of its cases.
    test
        The calibration test of these cases alone; None where they are too few.
    pvalue
        Its p-value, adjusted for all segments that were tested (Holm); 1 where none was run.
    count
        Number of segments that were tested.
    note
        Why there is no test, or that it looked at a part of the cases; empty otherwise.
    pvalue_floor
        The same as `pvalue` where that is a bound, since tests cannot have smaller p-values from their
        resamples; None elsewhere.
    """

    variable: str
    where: str
    n_samples: int
    test: TestResult | None
    pvalue: float
    count: int
    note: str = ""
    pvalue_floor: float | None = None

    @property
    def in_part(self) -> int | None:
        """Number of cases that were tested, where these are not all; else None."""
        tested = self.n_samples if self.test is None else self.test.n_samples
        return tested if tested < self.n_samples else None

    @property
    def rejected(self) -> bool:
        """Whether it is miscalibrated, at the error rate of all segments together."""
        return self.test is not None and self.pvalue <= ALPHA

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What kind of error it is, where there is one."""
        found = self.test.findings if self.test is not None and self.rejected else ()
        return tuple(map(without_pointer, found))

    @property
    def verdict(self) -> str:
        """In one sentence, p-value adjusted."""
        if self.test is None:
            return f"Not tested {self.where}: {self.note}."
        sure = f"{pvalue_phrase(self.pvalue, self.pvalue_floor)} for {self.count} segments together"
        if not self.rejected:
            some = "" if self.in_part is None else f" in the {how_many(self.in_part)} tested"
            return f"No miscalibration found {self.where}{some} ({sure})."
        told = f": {together(self.findings)}" if self.findings else ""
        return f"Miscalibrated {self.where} ({sure}){told}."

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {"verdict": self.verdict, "rejected": self.rejected, **super().to_dict()}

    def _headline(self) -> str:
        return self.verdict

    def _rows(self) -> list[Row]:
        return [("cases", f"{self.n_samples:,}"), *([("note", self.note)] if self.note else [])]


@dataclass(frozen=True, eq=False, repr=False)
class Segments(Presentable):
    """All segments of a model.

    Attributes
    ----------
    segments
        In the order in which they were given; groups of numbers from small to large.
    hypothesis
        What was tested, in one sentence: more than calibration, for variables that the model did not use.
    """

    segments: tuple[SegmentReport, ...]
    hypothesis: str

    @property
    def rejected(self) -> tuple[SegmentReport, ...]:
        """Those that are miscalibrated, the clearest first."""
        found = [(one.test.statistic, one) for one in self.segments if one.test is not None and one.rejected]
        # p-values may all be the smallest that resamples can give, of which there are more for few cases.
        return tuple(one for _, one in sorted(found, key=lambda pair: -pair[0]))

    @property
    def verdict(self) -> str:
        """In one sentence."""
        tested = sum(one.test is not None for one in self.segments)
        if not tested:
            return "No segment has enough cases for a test."
        found = self.rejected
        if not found:
            most = max((one.in_part for one in self.segments if one.in_part is not None), default=None)
            some = "" if most is None else f", of each of which {how_many(most)} at most were tested"
            return f"No miscalibration found in any of {how_many(tested, 'segment')}{some}."
        many = "1 segment" if len(found) == 1 else f"{len(found)} segments"
        named = [one.where for one in found[:_NAMED]]
        if len(found) > _NAMED:
            named.append(f"and {len(found) - _NAMED} more")
        return f"Miscalibrated in {many} of {tested}: {'; '.join(named)}."

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {"verdict": self.verdict, **super().to_dict()}

    def _headline(self) -> str:
        return self.verdict

    def _points(self) -> list[str]:
        return [one.verdict for one in self.segments]

    def _rows(self) -> list[Row]:
        return [("tested", self.hypothesis)]


@dataclass(frozen=True, eq=False, repr=False)
class Mended(Presentable):
    """What recalibration would do, seen on cases that it was not fitted to.

    Attributes
    ----------
    remedy
        What was done, in words: "spreads times 1.27".
    before, after
        The score that is told, as the predictions are, and recalibrated on held-out cases: lower is better.
    differences
        Proper scores before less after, on the same cases, with 95% intervals: above zero where mending
        helps. The first is the one that is told.
    cross_fitted
        All of it: :class:`wellcal.recalibration.CrossFitted`.
    rejected
        Whether the report calls the model miscalibrated, by a test that may have seen more cases.
    n_samples
        Number of cases of the report.
    """

    remedy: str
    before: Estimate
    after: Estimate
    differences: tuple[Difference, ...]
    cross_fitted: CrossFitted
    rejected: bool
    n_samples: int

    @property
    def scored(self) -> int:
        """Number of cases that temperatures are fitted to, and scores are those of."""
        return len(self.cross_fitted.folds)

    @property
    def tested(self) -> int:
        """Number of cases that are tested before and after."""
        return self.cross_fitted.before.n_samples

    @property
    def score(self) -> str:
        """Name of the score that is told."""
        return self.differences[0].measure

    @property
    def gained(self) -> float:
        """How much lower the score is after mending; above zero where it helps."""
        return self.differences[0].value

    @property
    def interval(self) -> Interval:
        """95% interval of `gained`, from paired cases."""
        return self.differences[0].confidence_interval()

    @property
    def pvalue_before(self) -> float:
        """Of the calibration test before."""
        return self.cross_fitted.before.pvalue

    @property
    def pvalue_after(self) -> float:
        """Of the calibration test after; approximate, since folds share cases to fit on."""
        return self.cross_fitted.after.pvalue

    @property
    def gain(self) -> str:
        """The score that is gained, in words."""
        return change_in_words(self.differences[0])

    @property
    def verdict(self) -> str:
        """In one sentence."""
        some = f"in the {how_many(self.tested)} tested"
        before, after = self.pvalue_before <= ALPHA, self.pvalue_after <= ALPHA
        part, sure = self.tested < self.n_samples, f"({self.cross_fitted.after.pvalue_statement})"
        where = f" {some}" if part else ""
        if after:
            what = "still miscalibrated" if before or self.rejected else "miscalibrated only then"
            tested = f"{what}{where} {sure}"
        elif self.rejected and not before:  # too few cases for what all of them show
            tested = f"{some}, which do not show the error before, none is found then {sure}"
        else:
            tested = f"no miscalibration found {'then' if before else 'before or then'}{where} {sure}"
        looked = f"in {self.scored:,} of the cases, " if self.scored < self.n_samples else ""
        return f"With {self.remedy}, fitted on other cases, {looked}{self.gain}; {tested}."

    def to_dict(self) -> dict[str, Any]:
        """All but single cases, as plain values, ready for JSON."""
        fitted = self.cross_fitted.to_dict()
        del fitted["folds"]
        return {
            "verdict": self.verdict,
            "remedy": self.remedy,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "pvalue_before": self.pvalue_before,
            "pvalue_after": self.pvalue_after,
            "scored": self.scored,
            "tested": self.tested,
            "differences": [found.to_dict() for found in self.differences],
            "cross_fitted": fitted,
        }

    def _headline(self) -> str:
        return self.verdict

    def _rows(self) -> list[Row]:
        rows = [
            (found.measure, f"{found.first:.4g} before, {found.second:.4g} after")
            for found in self.differences
        ]
        return [
            *rows,
            (
                "cases",
                f"{self.scored:,}, in {len(self.cross_fitted.temperatures)} folds; {self.tested:,} tested",
            ),
        ]


@dataclass(frozen=True, eq=False, repr=False)
class Choices(Presentable):
    """What was chosen, and with what: enough to do it again.

    Attributes
    ----------
    hypothesis
        What was tested, in one sentence.
    alpha, level
        Error rate of the tests, and coverage of the intervals.
    seed
        Seed of all random numbers; None where a generator was given.
    models
        For each model, by name: method, why it was chosen, number of resamples, kernel, what is proven of it.
    versions
        Of Python, wellcal, NumPy and SciPy.
    fingerprint
        SHA-256 of targets and predictions: the same data have the same.
    """

    hypothesis: str
    alpha: float
    level: float
    seed: int | None
    models: Mapping[str, Mapping[str, str]]
    versions: Mapping[str, str]
    fingerprint: str

    @property
    def rows(self) -> tuple[Row, ...]:
        """Names and what belongs to them, for a table."""
        several = len(self.models) > 1
        found: list[Row] = [("tested", self.hypothesis)]
        for model, chosen in self.models.items():
            found.extend((f"{model}: {name}" if several else name, text) for name, text in chosen.items())
        return (
            *found,
            ("error rate", f"{self.alpha:g}"),
            ("intervals", f"{self.level:.0%}"),
            ("seed", seed_text(self.seed)),
            ("versions", ", ".join(f"{name} {number}" for name, number in self.versions.items())),
            ("data", f"SHA-256 {self.fingerprint}"),
        )

    def _headline(self) -> str:
        return "Choices made"

    def _rows(self) -> list[Row]:
        return list(self.rows)
