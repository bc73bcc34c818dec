"""Tell whether a probabilistic model's predictions can be taken at their word.

A prediction is a distribution. wellcal measures how far predicted distributions are from what
happened, given the prediction, for classes, numbers, vectors, counts, ensembles and samples:

>>> import numpy as np, wellcal as wc
>>> mu = np.linspace(-1.0, 1.0, 50)
>>> estimate = wc.skce(mu, wc.Normal(mu, np.ones(50)))
"""

from wellcal import engines, hypotests, kernels, scaling
from wellcal.comparison import Comparison, compare
from wellcal.expectations._pairing import pairing
from wellcal.expectations.lowering import Lowering
from wellcal.hypotests import TestResult, calibration_test
from wellcal.measures._confidence import confidence
from wellcal.measures._local_discrepancy import local_discrepancy
from wellcal.measures._mmce import mmce
from wellcal.measures._skce import kce, skce
from wellcal.measures._smooth_ece import smooth_ece
from wellcal.measures._ucme import ucme
from wellcal.measures.binned import (
    Binning,
    BinTable,
    EqualMassBins,
    MedianVarianceBins,
    UniformBins,
    ece,
    mce,
)
from wellcal.measures.estimate import Estimate
from wellcal.measures.quantiles import interval_coverage, pit, quantile_calibration
from wellcal.measures.scores import brier, crps, energy_score
from wellcal.measures.scores.casewise import mse, nll, pinball_loss
from wellcal.monitoring import Monitor, MonitorStatus
from wellcal.predictions import (
    Bernoulli,
    Beta,
    Categorical,
    DiagonalNormal,
    Dirichlet,
    Gamma,
    Laplace,
    LogNormal,
    Mixture,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Poisson,
    PowerExponential,
    Predictions,
    Quantiles,
    Samples,
    StudentT,
)
from wellcal.predictions.adapters import as_predictions
from wellcal.problem.defaults import default_kernel
from wellcal.scaling import TemperatureScaling
from wellcal.witnesses import Witness, witness

__version__ = "0.1.0"

__all__ = [
    "Bernoulli",
    "Beta",
    "BinTable",
    "Binning",
    "Categorical",
    "Comparison",
    "DiagonalNormal",
    "Dirichlet",
    "EqualMassBins",
    "Estimate",
    "Gamma",
    "Laplace",
    "LogNormal",
    "Lowering",
    "MedianVarianceBins",
    "Mixture",
    "Monitor",
    "MonitorStatus",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "Poisson",
    "PowerExponential",
    "Predictions",
    "Quantiles",
    "Samples",
    "StudentT",
    "TemperatureScaling",
    "TestResult",
    "UniformBins",
    "Witness",
    "__version__",
    "as_predictions",
    "brier",
    "calibration_test",
    "compare",
    "confidence",
    "crps",
    "default_kernel",
    "ece",
    "energy_score",
    "engines",
    "hypotests",
    "interval_coverage",
    "kce",
    "kernels",
    "local_discrepancy",
    "mce",
    "mmce",
    "mse",
    "nll",
    "pairing",
    "pinball_loss",
    "pit",
    "quantile_calibration",
    "scaling",
    "skce",
    "smooth_ece",
    "ucme",
    "witness",
]


def __getattr__(name: str) -> object:
    if name == "binned":  # deprecated: what is in it warns
        import importlib

        return importlib.import_module("wellcal.binned")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
