"""Tests with a tolerance, of whether a model is further off than that, or surely not.

Both read the interval of KCE (:mod:`wellcal.measures.deviations`) the other way round: the p-value is the
smallest alpha whose interval of level ``1 - alpha`` excludes the hypothesis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from wellcal._arrays.checks import real_number
from wellcal._arrays.namespaces import handed_over
from wellcal._arrays.progress import Listener, Stages, reported
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.schema import Check, number, optional, word
from wellcal._arrays.seeds import as_generator
from wellcal.engines import Engine
from wellcal.expectations.lowering import Lowering
from wellcal.hypotests.findings.reasons import ALPHA
from wellcal.hypotests.result import TestResult, clusters_text
from wellcal.hypotests.setup import ENOUGH_BLOCKS, Setup, make_setup
from wellcal.hypotests.tails import student_tail
from wellcal.kernels.base import Kernel
from wellcal.measures.error_scale import LARGEST, scale_of
from wellcal.measures.presentation import Row
from wellcal.measures.sides import Bound, either_side
from wellcal.measures.wording import what_is_wrong
from wellcal.measures.yardstick import Yardstick, yardstick_from

WITHIN, BEYOND = "KCE <= tolerance", "KCE >= tolerance"
"""Hypotheses: rejected where a model is too far off, and where it is surely near enough."""


def checked_tolerance(tolerance: object) -> float:
    """A calibration error that is small enough, in units of KCE.

    Examples
    --------
    >>> checked_tolerance(-1)
    Traceback (most recent call last):
    ValueError: tolerance must be a KCE, a finite number above 0, found -1
    """
    value = real_number(tolerance, "tolerance")
    if not 0.0 < value < math.inf:
        raise ValueError(f"tolerance must be a KCE, a finite number above 0, found {tolerance}")
    return value


@dataclass(frozen=True, eq=False, repr=False)
class ToleranceResult(TestResult):
    """What a test with a tolerance found, beside all that other tests find.

    Attributes
    ----------
    tolerance
        The tolerance, in units of KCE.
    hypothesis
        What was tested: "KCE <= tolerance" by ``calibration_test(..., tolerance=)``, "KCE >= tolerance" by
        `equivalence_test`.
    low, high
        Ends of the 95% interval of KCE.
    tolerated
        The error in spreads, temperature or means that the tolerance amounts to, predicted over true: of both
        directions the one in which it is larger. None where no error of up to ten times is so far off, and
        where there is no yardstick.
    tolerated_otherwise
        The same in the other direction; None where no error is so far off there either.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 200)
    >>> result = wc.calibration_test(mu + 0.9, wc.Normal(mu, np.ones(200)), tolerance=0.1)
    >>> result.hypothesis, bool(result.pvalue < 0.05)
    ('KCE <= tolerance', True)
    """

    tolerance: float = 0.0
    hypothesis: str = WITHIN
    low: float = 0.0
    high: float = 0.0
    tolerated: float | None = None
    tolerated_otherwise: float | None = None

    added: ClassVar[Mapping[str, object]] = {**TestResult.added, "tolerated_otherwise": None}

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of it."""
        return {
            **super().checks(kernel),
            "tolerance": number(least=0.0),
            "hypothesis": word(WITHIN, BEYOND),
            "low": number(least=0.0),
            "high": number(least=0.0, infinite=True),
            "tolerated": optional(number(least=0.0)),
            "tolerated_otherwise": optional(number(least=0.0)),
        }

    @property
    def rejected(self) -> bool:
        """Whether the hypothesis is rejected at an error rate of 5%."""
        return self.pvalue <= ALPHA

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        p = self.pvalue_statement
        tolerated = f"and {_shown(self.tolerance)} is tolerated"
        most = f"KCE may be as large as {_shown(self.high)}, {tolerated}"
        if self.hypothesis == WITHIN:
            if not self.rejected:
                return f"No miscalibration beyond the tolerance found ({p}): {most}."
            return (
                f"Miscalibrated beyond the tolerance ({p}): at 95% confidence KCE is above "
                f"{_shown(self.low)}, {tolerated}."
            )
        if not self.rejected:
            return f"Not shown to be calibrated within the tolerance ({p}): {most}."
        yardstick, wrong = self.estimate.known_yardstick, ""
        if yardstick is not None:
            wrong = f", as if {what_is_wrong(yardstick.kind)} {self._at_most(yardstick)}"
        return f"Calibrated within the tolerance: at 95% confidence KCE is below {_shown(self.high)}{wrong}."

    @staticmethod
    def _at_most(yardstick: Yardstick) -> str:
        """How wrong a model may be to each side; a tolerance that allows for all errors to one is large."""
        return yardstick.most_words() + (": the tolerance is a large one" if yardstick.most is None else "")

    def _tolerated(self, kind: str) -> str:
        """The error that the tolerance amounts to, on each side."""
        further, nearer = self.tolerated, self.tolerated_otherwise
        known = [Bound(ratio) for ratio in (further, nearer) if ratio is not None]
        sides = [LARGEST, 1.0 / LARGEST] if nearer is None else [LARGEST if nearer < 1.0 else 1.0 / LARGEST]
        far = [Bound(ratio, open=True) for ratio in sides] if further is None else []
        return either_side(kind, [*known, *far])

    def _headline(self) -> str:
        return self.verdict

    def _rows(self) -> list[Row]:
        yardstick = self.estimate.known_yardstick
        tolerance = _shown(self.tolerance)
        if yardstick is not None:
            tolerance += f", as if {what_is_wrong(yardstick.kind)} {self._tolerated(yardstick.kind)}"
        rows: list[Row] = [
            ("tolerance", tolerance),
            ("KCE", f"{_shown(self.statistic)}, at 95% confidence {_shown(self.low)} to {_shown(self.high)}"),
        ]
        if yardstick is not None:
            rows.append(("yardstick", yardstick.sentence))
        kept = {"effect size", "kernel", "proven"}
        rest = [row for row in super()._rows() if row[0] in kept]
        cases = f"{self.n_samples:,}{clusters_text(self.provenance)}"
        return [*rows, ("tested", self.hypothesis), *rest, ("cases", cases)]


def _shown(value: float) -> str:
    return f"{value:.3g}"


@handed_over
@reported
def equivalence_test(
    y: object,
    pred: object,
    *,
    tolerance: float,
    kernel: Kernel | None = None,
    groups: object = None,
    expectations: str | Lowering = "auto",
    engine: str | Engine = "auto",
    rng: int | np.random.Generator | None = None,
    progress: bool | Listener | None = None,
) -> ToleranceResult:
    """Test the hypothesis that a model is miscalibrated by a tolerance or more.

    A small p-value says that the model is calibrated *within the tolerance*: the question that people have
    when there are so many cases that a test of exact calibration rejects every model.

    Parameters
    ----------
    y, pred, kernel, groups, expectations, engine, progress
        As in :func:`calibration_test`.
    tolerance
        The KCE from which a model counts as miscalibrated, in units of the kernel; the result says to which
        error in spreads, temperature or means it amounts.
    rng
        Seed or generator, as other tests take one: nothing here depends on it.

    Returns
    -------
    ToleranceResult
        The p-value of ``KCE >= tolerance``, the interval of KCE, and the yardstick beside it.

    Notes
    -----
    The hypothesis is rejected where the upper end of the confidence interval of KCE lies below the tolerance
    (:meth:`wellcal.Estimate.confidence_interval`); the p-value is the smallest alpha at which it does, and
    at least ``1 / (draws + 1)``. As the interval is, the test is cautious: at the boundary it rejects
    less often than alpha. There is nothing random in it that a seed would change.

    Where cases are so many that the SKCE is estimated over blocks, a hundred at least, the p-value is that
    of its mean over blocks, by Student's distribution: an approximation, by which a model at the boundary is
    called calibrated in up to 7% of data sets with a hundred blocks, and in 6% with four hundred.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=500)
    >>> y = rng.normal(mu, 1.0)
    >>> result = wc.equivalence_test(y, wc.Normal(mu, np.ones(500)), tolerance=0.1)
    >>> bool(result.pvalue <= 0.05), bool(result.high < 0.1)
    (True, True)
    """
    as_generator(rng)
    return run_tolerance_test(y, pred, BEYOND, tolerance, kernel, groups, expectations, engine)


def run_tolerance_test(
    y: object,
    pred: object,
    hypothesis: str,
    tolerance: object,
    kernel: Kernel | None,
    groups: object,
    expectations: str | Lowering,
    engine: str | Engine,
) -> ToleranceResult:
    """The test of one of the two hypotheses."""
    delta = checked_tolerance(tolerance)
    setup = make_setup(y, pred, kernel, groups=groups, expectations=expectations, engine=engine, pool=True)
    if setup.n_samples < 2:
        raise ValueError(f"a test with a tolerance needs at least 2 cases, found {setup.n_samples}")
    return tolerance_result(over_blocks_enough(setup), hypothesis, delta)


def over_blocks_enough(setup: Setup) -> Setup:
    """The same, whose estimate over blocks has blocks enough for a p-value to be read from it."""
    return replace(setup, fewest_blocks=ENOUGH_BLOCKS)


def tolerance_result(
    setup: Setup, hypothesis: str, delta: float, n_samples: int | None = None
) -> ToleranceResult:
    """The same of a case that is prepared, or knows the estimate of `n_samples` cases that it has some of."""
    stages = Stages("test with a tolerance", 3.0)
    with stages.part(1.0):
        estimate = setup.estimate
    with stages.part(1.0):
        deviations = estimate.deviations()
        interval = estimate.confidence_interval(1.0 - ALPHA)
    low, high = (math.sqrt(max(end, 0.0)) for end in (interval.low, interval.high))
    if deviations is None:
        root, floor = math.sqrt(max(float(estimate), 0.0)), None
        blocks = estimate.blocks or 0
        if blocks < ENOUGH_BLOCKS:
            raise ValueError(
                f"a test with a tolerance over blocks needs at least {ENOUGH_BLOCKS} of them, so "
                f"{2 * ENOUGH_BLOCKS} cases, found {how_many(n_samples or setup.n_samples)}"
            )
        distance = (delta**2 - float(estimate)) / float(estimate.standard_error)
        pvalue = student_tail(distance if hypothesis == BEYOND else -distance, blocks - 1)
    else:
        root, floor = deviations.root, deviations.floor
        pvalue = deviations.pvalue(delta - root if hypothesis == BEYOND else root - delta)
    with stages.part(1.0):
        # Of the KCE that is told and compared with the tolerance, not of another estimate of it.
        cases = estimate.cases
        if cases is not None:
            size = yardstick_from(cases, root, (low, high), interval.level)
            told = replace(estimate, known_yardstick=size).with_cases(cases)
            estimate = told.with_deviations_of(estimate)
        size = estimate.known_yardstick
        scale = None if size is None else scale_of(setup.cases)
        effect_size = setup.effect_size(estimate)
    further, nearer = (None, None) if scale is None else scale.reached(delta)
    stages.end()
    return ToleranceResult(
        statistic=root,
        pvalue=pvalue,
        method="tolerance",
        statistic_label="KCE",
        estimate=estimate,
        effect_size=effect_size,
        n_samples=setup.n_samples if n_samples is None else n_samples,
        kernel=setup.kernel,
        guarantees=setup.kernel.guarantees(setup.predictions),
        provenance={
            **setup.problem.notes.as_dict(),
            "interval": interval.method,
            **({} if setup.groups is None else {"clusters": int(setup.groups.max()) + 1}),
            "no e-value": "an e-value speaks against exact calibration, which is not the hypothesis here",
        },
        pvalue_floor=floor,
        tolerance=delta,
        hypothesis=hypothesis,
        low=low,
        high=high,
        tolerated=further,
        tolerated_otherwise=nearer,
    )
