"""Tests of the hypothesis that a model is calibrated.

:func:`calibration_test` is the door to all of them; the classes are methods with options, to be given as
its `method`.
"""

from wellcal.hypotests._calibration_test import METHODS, calibration_test
from wellcal.hypotests.methods.asymptotic import Bootstrap, Multiplier, Spectrum
from wellcal.hypotests.methods.block import Block
from wellcal.hypotests.methods.combined import Aggregated, Omnibus, Regularised
from wellcal.hypotests.methods.consistency import Consistency
from wellcal.hypotests.methods.cumulants import Gamma, Pearson
from wellcal.hypotests.methods.distribution_free import DistributionFree
from wellcal.hypotests.methods.exact import Exact
from wellcal.hypotests.methods.mean_embedding import MeanEmbedding
from wellcal.hypotests.result import TestResult

__all__ = [
    "METHODS",
    "Aggregated",
    "Block",
    "Bootstrap",
    "Consistency",
    "DistributionFree",
    "Exact",
    "Gamma",
    "MeanEmbedding",
    "Multiplier",
    "Omnibus",
    "Pearson",
    "Regularised",
    "Spectrum",
    "TestResult",
    "calibration_test",
]
