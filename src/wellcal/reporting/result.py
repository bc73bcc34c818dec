"""A report: the verdict first, then all that it rests on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from wellcal._arrays.round_numbers import how_many
from wellcal.comparison import Comparisons
from wellcal.comparison.result import told_beside
from wellcal.comparison.shares import called
from wellcal.hypotests.findings.class_slopes import CLASS_SLOPE
from wellcal.hypotests.findings.finding import LEVEL, Finding, together
from wellcal.hypotests.findings.reasons import ALPHA, POINTER, without_pointer
from wellcal.hypotests.findings.trends import CENTRE_TREND, SPREAD_TREND
from wellcal.hypotests.result import TestResult
from wellcal.measures.estimate import Estimate
from wellcal.measures.presentation import Presentable, Row
from wellcal.measures.quantiles import IntervalCoverage, QuantileCalibration
from wellcal.measures.quantiles.coverage import if_calibrated
from wellcal.measures.sides import either_side, way
from wellcal.measures.wording import RATIOS
from wellcal.measures.yardstick import Yardstick
from wellcal.reporting.data import ONLY, Data, ModelData
from wellcal.reporting.examples import called_impossible
from wellcal.reporting.numbers import INFINITE, known_interval
from wellcal.reporting.pieces import Choices, ExampleCase, Mended, Segments, WorstGroup
from wellcal.witnesses import Witness

UNNAMED, GROUP = "unnamed", "cases"
"""Kinds of findings: no kind of error stands out, and one that a witness tells of a group of cases."""

PLACED = {CENTRE_TREND, SPREAD_TREND, "trend of the correlation", "group", CLASS_SLOPE}
"""Kinds of findings that say for which predictions they hold."""

_NEARLY_ALL = 0.95  # share of cases that a group has which is no place

NOT_SEARCHED = "Groups of cases were not looked for"
"""How the sentence begins that says why."""

ALL_KINDS = "errors of all kinds together"
"""What the size of an error is about that was not found."""


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
        Kernel calibration error; ``kce.confidence_interval()`` has its interval. Of draws it is that
        of draws and target together, as in the test: :func:`wellcal.kce` takes a few draws for all there is.
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
    searched
        Number of cases in which groups were looked for; None where that were all, or none were looked for.
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
    searched: int | None = None

    @property
    def verdict(self) -> str:
        """What the test found, in one sentence."""
        named = [finding for finding in self.findings if finding.kind != UNNAMED]
        if named and all(finding.kind == UNNAMED for finding in self.test.findings):
            # The test names no kind of error and points to the groups, which are here.
            size = self.yardstick
            slight = ", but slightly" if size is not None and size.slight else ""
            return f"Miscalibrated ({self.test.pvalue_statement}){slight}: {together(named)}."
        return self.test.verdict.replace(POINTER, "")

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong, the clearest first: what the test says of all cases, then what is said of groups.

        None where the test does not reject: what is largest by chance is no finding.
        """
        found = tuple(map(without_pointer, self.test.findings))
        groups = [_of_group(group) for group in self.worst_groups if group.kind != "all"]
        if groups:
            found = tuple(finding for finding in found if finding.kind != UNNAMED)
        return (*found, *groups)

    @property
    def rejected(self) -> bool:
        """Whether the model is called miscalibrated."""
        return self.test.pvalue <= ALPHA

    @property
    def yardstick(self) -> Yardstick | None:
        """How far off it is, as the size of a simple error."""
        return self.test.yardstick

    def with_data(self, data: ModelData, label: Callable[[int], str | None] = lambda row: None) -> Self:
        """The same, which remembers its cases for pictures, and what these are called by their row."""
        self.__dict__.update(_data=data, _label=label)
        return self

    @property
    def data(self) -> ModelData | None:
        """Targets and predictions, for pictures; None where they are not known any more."""
        return self.__dict__.get("_data")

    @property
    def impossible(self) -> tuple[tuple[ExampleCase, ...], int]:
        """Some cases that had no probability for what happened, and how many more; none without the data."""
        return ((), 0) if self.data is None else called_impossible(self.data, self.__dict__["_label"])

    @property
    def how_large(self) -> str:
        """The size of the error, in words."""
        size, kce = self.size, self.kce.confidence_interval(LEVEL)
        measured = f"KCE = {float(self.kce):.3g} ({kce.low:.2g} to {kce.high:.2g})"
        return measured if size is None else f"{size}; {measured}"

    @property
    def size(self) -> str | None:
        """The yardstick in words: its size where an error was found, and else how large one may be."""
        size = self.yardstick
        if size is None:
            return None
        if not self.rejected:
            return _at_most(size)
        return f"{size.word}: {size.sentence}"

    @property
    def placed(self) -> Finding | None:
        """The first finding that says where an error is, by how it depends on the prediction."""
        return next((found for found in self.findings if found.kind in PLACED), None)

    @property
    def where(self) -> str:
        """Where the error is, in words."""
        if not self.rejected:
            return "groups are not looked for where no miscalibration is found"
        if self.worst_groups:
            worst = self.worst_groups[0]
            if worst.kind == "all":
                told = worst.statement.replace(" in all cases", "")
                if self.in_some_segments:
                    return f"in some segments, told below; all cases together: {told}"
                return f"everywhere: {told}"
            return f"nearly everywhere: {worst.statement}" if worst.share > _NEARLY_ALL else worst.statement
        if self.placed is not None:
            beyond = "; no single group stands out beyond that" if self.witness is not None else ""
            return f"{self.placed.short}{beyond}"
        return "no group of cases stands out" if self.witness is not None else "groups were not looked for"

    @property
    def in_some_segments(self) -> bool:
        """Whether some of the segments that were tested are miscalibrated, and others not shown to be."""
        if self.segments is None:
            return False
        return 0 < len(self.segments.rejected) < sum(one.test is not None for one in self.segments.segments)

    @property
    def not_searched(self) -> str:
        """Why groups of cases were not looked for, in one sentence; empty where they were."""
        if not self.rejected:
            return (
                "Groups of cases are not looked for where no miscalibration is found: what is largest by "
                "chance is no finding."
            )
        if self.witness is not None:
            return ""
        return next((text for text in self.left_out if text.startswith(NOT_SEARCHED)), f"{NOT_SEARCHED}.")

    def to_dict(self) -> dict[str, Any]:
        """All but single cases, as plain values, ready for JSON."""
        found = super().to_dict()
        found["test"]["null"] = None  # thousands of numbers that say nothing by themselves
        found["witness"] = None if self.witness is None else _without_cases(self.witness)
        size = self.yardstick
        derived = {
            "verdict": self.verdict,
            "findings": [finding.to_dict() for finding in self.findings],
            "yardstick": None
            if size is None
            else {"sentence": size.sentence, "size": size.size, **size.to_dict()},
        }
        return {"name": found.pop("name"), **derived, **found}

    def _headline(self) -> str:
        return f"{self.name}: {self.verdict}"

    def _points(self) -> list[str]:
        return findings_below(self.findings, self.verdict)

    def _rows(self) -> list[Row]:
        rows = [("how large", self.how_large), ("where", self.where)]
        if self.mended is not None:
            rows.append(("mending", self.mended.verdict))
        rows.extend((name, _with_interval(score)) for name, score in self.scores.items())
        if self.ece is not None:
            rows.append(("ECE", f"{float(self.ece):.3g}"))
        if self.coverage is not None:
            rows.append(("coverage", coverage_in_words(self.coverage)))
        if self.segments is not None:
            rows.append(("segments", self.segments.verdict))
        rows.extend(("left out", text) for text in self.left_out)
        return rows


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
        What was looked at in a part of the cases only, or not at all, in sentences; empty where nothing was.
    n_samples
        Number of cases.
    family
        What was predicted, in words: "classification, 10 classes".
    made
        Date, as in "2026-11-15".
    citation
        How to cite it.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 40)
    >>> found = wc.report(mu + 2.0, wc.Normal(mu, 1.0), n_resamples=99, rng=0)
    >>> found.n_samples, len(found.models), found.models[0].rejected
    (40, 1, True)
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
        """The only model, or the first of several; `tied` says which others are not shown to be worse."""
        return self.models[0]

    @property
    def tied(self) -> tuple[str, ...]:
        """Models that are not shown to be worse than the best one."""
        return () if self.comparison is None else self.comparison.tied

    @property
    def verdict(self) -> str:
        """The answer, in one sentence; for several models what differs, and that sentence for the best."""
        if self.comparison is None:
            return self.best.verdict
        compared = self.comparison.verdict
        first, _, rest = compared.partition(" ")
        first = first.capitalize() if first in ("no", "neither", "none", "which") else first
        return f"{first} {rest}. {self.best.name}: {_lowered(self.best.verdict)}"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of the best model."""
        return self.best.findings

    @property
    def line(self) -> str:
        """What the report is about, in one line: cases, family, model, date."""
        names = [model.name for model in self.models if model.name != ONLY]
        listed = ", ".join(f'"{name}"' for name in names)
        models = [f"model{'s' if len(names) > 1 else ''} {listed}"] if names else []
        return " · ".join([how_many(self.n_samples), self.family, *models, self.made])

    def with_data(self, data: Data) -> Self:
        """The same, which remembers its cases for pictures."""
        by_name = {one.name: one for one in data.models}
        for model in self.models:
            model.with_data(by_name[model.name], data.label)
        return self

    def to_dict(self) -> dict[str, Any]:
        """All but single cases, as plain values, ready for JSON."""
        found = super().to_dict()
        return {
            "verdict": self.verdict,
            "findings": [finding.to_dict() for finding in self.findings],
            "best": self.best.name,
            "tied": list(self.tied),
            **found,
        }

    def _headline(self) -> str:
        return self.verdict

    def _points(self) -> list[str]:
        if len(self.models) == 1:
            return findings_below(self.findings, self.verdict)
        return [f"{model.name}: {_lowered(model.verdict)}" for model in self.models]

    def _rows(self) -> list[Row]:
        rows: list[Row] = [("about", self.line)]
        if self.comparison is None:
            rows += self.best.in_words().rows
        else:
            for model in self.models:
                told = [_with_interval(score, name) for name, score in model.scores.items()]
                rows.append((model.name, "; ".join([model.how_large, *told])))
                rows += [(f"{model.name}: mending", model.mended.verdict)] if model.mended is not None else []
                rows += (
                    [(f"{model.name}: segments", model.segments.verdict)]
                    if model.segments is not None
                    else []
                )
                rows.extend((f"{model.name}: left out", text) for text in model.left_out)
            for pair in self.comparison.told:
                told = "; ".join(f"{called(found.measure)} {found.phrase}" for found in pair.differences)
                rows.append((f"{pair.first} - {pair.second}", told))
            rows += [("scores", text) for text in self.comparison.better_in_scores]
            rows += told_beside(self.comparison.pairs[0].differences, self.comparison.provenance)
        rows.extend(("in part", text) for text in self.sampled)
        tested = f"{self.choices.hypothesis}; error rate {self.choices.alpha:g}"
        if any(model.segments is not None for model in self.models):
            tested += (
                "; within segments of variables that the model did not use that is more than calibration"
            )
        rows.append(("tested", tested))
        return rows


def _at_most(size: Yardstick) -> str:
    """What is known of an error that was not found."""
    unknown = "cannot be said from so few cases"
    known = [bound for bound in size.bounds if not bound.open]
    if not known:
        return f"{ALL_KINDS}: how far off it is {unknown}"
    far = [f"; how far {way(size.kind, bound.ratio)} {unknown}" for bound in size.bounds if bound.open]
    model = f"a model whose {RATIOS[size.kind][0]} {either_side(size.kind, known)}"
    return f"{ALL_KINDS}: no further off than {model} (95% confidence){''.join(far)}"


def findings_below(findings: Sequence[Finding], verdict: str) -> list[str]:
    """Findings as sentences, but for a single one that the verdict tells in full."""
    sentences = [finding.sentence for finding in findings]
    return [] if len(sentences) == 1 and verdict.endswith(f": {sentences[0]}.") else sentences


def _of_group(group: WorstGroup) -> Finding:
    """What is said of a group, as a finding."""
    short = f"{group.direction} {group.where}"
    return Finding(group.statement, GROUP, short, None, None, LEVEL, group.pvalue)


def _without_cases(found: Witness) -> dict[str, Any]:
    """A witness without what it has for each case."""
    plain = found.to_dict()
    for key in ("scores", "contributions", "locations", "location_targets"):
        del plain[key]
    for group in (*plain["groups"], *plain["segments"]):
        del group["cases"]
    return plain


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _with_interval(score: Estimate, name: str = "") -> str:
    text, found = f"{name} {float(score):.4g}".strip(), known_interval(score)
    if found is None:
        return f"{text}: {score.provenance[INFINITE]}" if INFINITE in score.provenance else text
    return f"{text} ({found.low:.4g} to {found.high:.4g})"


def coverage_in_words(found: IntervalCoverage) -> str:
    """What intervals of about 90% hold, with limits of it."""
    levels = np.asarray(found.levels, dtype=float)
    k = int(np.argmin(np.abs(levels - 0.9)))
    promised = f"{100 * levels[k]:.3g}%{if_calibrated(levels[k], float(found.expected[k]))}"
    return (
        f"intervals that promise {promised} hold {100 * float(found.coverage[k]):.3g}% of the outcomes "
        f"({100 * float(found.low[k]):.3g}% to {100 * float(found.high[k]):.3g}%)"
    )
