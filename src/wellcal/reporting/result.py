"""A report: the verdict first, then all that it rests on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wellcal.comparison import Comparisons
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.result import TestResult
from wellcal.measures.estimate import Estimate
from wellcal.measures.presentation import Presentable
from wellcal.measures.quantiles import IntervalCoverage, QuantileCalibration
from wellcal.measures.yardstick import Yardstick
from wellcal.reporting.pictures import ReportFigure
from wellcal.reporting.pieces import Choices, Mended, Segments, WorstGroup
from wellcal.witnesses import Witness


@dataclass(frozen=True, eq=False, repr=False)
class ModelReport(Presentable):
    """What a report says of one model.

    Attributes
    ----------
    name
        What it is called.
    test
        What :func:`wellcal.calibration_test` found.
    kce
        Kernel calibration error; ``kce.confidence_interval()`` has its interval.
    witness
        Where it is off; None where that cannot be looked at.
    worst_groups
        Groups of cases that are off, the most striking first, with examples. None where the test found
        nothing: what is largest by chance is no finding.
    scores
        Proper scores by name, with intervals.
    coverage, quantiles, ece
        Coverage of intervals and calibration of quantiles, for numbers; expected calibration error, for
        classes; None elsewhere.
    mended
        What recalibration on held-out cases would do; None where it was not asked for, or cannot be.
    segments
        The segments that were given; None without.
    left_out
        What is missing, and why, in sentences.
    """

    name: str
    test: TestResult
    kce: Estimate
    witness: Witness | None
    worst_groups: tuple[WorstGroup, ...]
    scores: dict[str, Estimate]
    coverage: IntervalCoverage | None = None
    quantiles: QuantileCalibration | None = None
    ece: Estimate | None = None
    mended: Mended | None = None
    segments: Segments | None = None
    left_out: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """What the test found, in one sentence."""
        return self.test.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong, the clearest first: what the test says of all cases, then what is said of groups."""
        return self.test.findings

    @property
    def yardstick(self) -> Yardstick | None:
        """How far off it is, as the size of a simple error."""
        return self.test.yardstick

    @property
    def figures(self) -> dict[str, ReportFigure]:
        """Pictures, the one that shows the error best first."""
        return {}

    def _headline(self) -> str:
        return f"{self.name}: {self.verdict}"


@dataclass(frozen=True, eq=False, repr=False)
class Report(Presentable):
    """What :func:`wellcal.report` found.

    Attributes
    ----------
    models
        The models, best first where there are several.
    comparison
        Differences between them with intervals; None for a single model.
    choices
        What was chosen, and with what.
    sampled
        What was looked at in a part of the cases only, in sentences; empty where nothing was.
    n_samples
        Number of cases.
    family
        What was predicted, in words: "classification, 10 classes".
    made
        Date, as in "2026-11-15".
    citation
        How to cite it.
    """

    models: tuple[ModelReport, ...]
    comparison: Comparisons | None
    choices: Choices
    sampled: tuple[str, ...]
    n_samples: int
    family: str
    made: str
    citation: str = field(default="")

    @property
    def best(self) -> ModelReport:
        """The only model, or the first of several; `comparison` says whether others are worse."""
        return self.models[0]

    @property
    def verdict(self) -> str:
        """The answer, in one sentence for one model, and one more for several."""
        return self.best.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of the best model."""
        return self.best.findings

    @property
    def figures(self) -> dict[str, ReportFigure]:
        """Pictures by name, in the order of a page: first the one beside the verdict.

        Those of single models are in their `figures`.
        """
        return {}

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {"verdict": self.verdict, **super().to_dict()}

    def _headline(self) -> str:
        return self.verdict
