"""One file for each method of testing calibration; importing it makes the method known by its name."""

from wellcal.hypotests.methods.aggregated import Aggregated
from wellcal.hypotests.methods.block import Block
from wellcal.hypotests.methods.bootstrap import Bootstrap
from wellcal.hypotests.methods.consistency import Consistency
from wellcal.hypotests.methods.distribution_free import DistributionFree
from wellcal.hypotests.methods.exact import Exact
from wellcal.hypotests.methods.gamma_moments import GammaMoments
from wellcal.hypotests.methods.mean_embedding import MeanEmbedding
from wellcal.hypotests.methods.multiplier import Multiplier
from wellcal.hypotests.methods.omnibus import Omnibus
from wellcal.hypotests.methods.pearson import Pearson
from wellcal.hypotests.methods.regularised import Regularised
from wellcal.hypotests.methods.spectrum import Spectrum

__all__ = [
    "Aggregated",
    "Block",
    "Bootstrap",
    "Consistency",
    "DistributionFree",
    "Exact",
    "GammaMoments",
    "MeanEmbedding",
    "Multiplier",
    "Omnibus",
    "Pearson",
    "Regularised",
    "Spectrum",
]
