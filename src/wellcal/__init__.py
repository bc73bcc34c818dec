"""Tell whether a probabilistic model's predictions can be taken at their word.

A prediction is a distribution. wellcal measures how far predicted distributions are from what
happened, given the prediction, for classes, numbers, vectors, counts, ensembles and samples:

>>> import numpy as np, wellcal as wc
>>> mu = np.linspace(-1.0, 1.0, 50)
>>> estimate = wc.skce(mu, wc.Normal(mu, np.ones(50)))
"""

from wellcal import binned, engines, hypotests, kernels, scaling
from wellcal.adapters import as_predictions
from wellcal.binned import ece, mce
from wellcal.comparison import Comparison, compare
from wellcal.coverage import interval_coverage, pit
from wellcal.defaults import default_kernel
from wellcal.embedding import ucme
from wellcal.estimators import kce, skce
from wellcal.hypotests import TestResult, calibration_test
from wellcal.local_discrepancy import local_discrepancy
from wellcal.measures import confidence
from wellcal.mmce import mmce
from wellcal.monitoring import Monitor, MonitorStatus
from wellcal.pairing import pairing
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
from wellcal.proper_scores import brier, crps, energy_score
from wellcal.quadrature import Lowering
from wellcal.results import Estimate
from wellcal.scaling import TemperatureScaling
from wellcal.scores import mse, nll, pinball_loss, quantile_calibration
from wellcal.smooth import smooth_ece
from wellcal.witness import Witness, witness

__version__ = "0.1.0"

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Comparison",
    "DiagonalNormal",
    "Dirichlet",
    "Estimate",
    "Gamma",
    "Laplace",
    "LogNormal",
    "Lowering",
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
    "Witness",
    "__version__",
    "as_predictions",
    "binned",
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
