"""Tests of the hypothesis that a model is calibrated.

:func:`calibration_test` is the door to all of them; the classes are methods with options, to be given as
its `method`.
"""

from wellcal.hypotests.asymptotic import Bootstrap, Multiplier, Spectrum
from wellcal.hypotests.blocks import Block
from wellcal.hypotests.bounds import DistributionFree
from wellcal.hypotests.calibration import METHODS, calibration_test
from wellcal.hypotests.combined import Aggregated, Omnibus, Regularised
from wellcal.hypotests.consistency import Consistency
from wellcal.hypotests.cumulants import Gamma, Pearson
from wellcal.hypotests.exact import Exact
from wellcal.hypotests.mean_embedding import MeanEmbedding
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
