"""Tests of the hypothesis that a model is calibrated.

:func:`calibration_test` is the door to all of them; the classes are methods with options, to be given as
its `method`. A test of your own derives from :class:`Method`.
"""

from wellcal.hypotests._calibration_test import calibration_test
from wellcal.hypotests._plan import PowerPlan, plan
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.method import METHODS, Method, Outcome
from wellcal.hypotests.methods import (
    Aggregated,
    Block,
    Bootstrap,
    Consistency,
    DistributionFree,
    Exact,
    GammaMoments,
    MeanEmbedding,
    Multiplier,
    Omnibus,
    Pearson,
    Regularised,
    Spectrum,
)
from wellcal.hypotests.pvalues import monte_carlo_pvalue
from wellcal.hypotests.resampling.targets import target_sets
from wellcal.hypotests.result import TestResult
from wellcal.hypotests.setup import Setup
from wellcal.hypotests.tolerance import ToleranceResult, equivalence_test

__all__ = [
    "METHODS",
    "Aggregated",
    "Block",
    "Bootstrap",
    "Consistency",
    "DistributionFree",
    "Exact",
    "Finding",
    "GammaMoments",
    "MeanEmbedding",
    "Method",
    "Multiplier",
    "Omnibus",
    "Outcome",
    "Pearson",
    "PowerPlan",
    "Regularised",
    "Setup",
    "Spectrum",
    "TestResult",
    "ToleranceResult",
    "calibration_test",
    "equivalence_test",
    "monte_carlo_pvalue",
    "plan",
    "target_sets",
]
