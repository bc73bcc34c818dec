"""Tell whether a probabilistic model's predictions can be taken at their word.

A prediction is a distribution. wellcal measures how far predicted distributions are from what
happened, given the prediction, for classes, numbers, vectors, counts, ensembles and samples:

>>> import numpy as np, wellcal as wc
>>> mu = np.linspace(-1.0, 1.0, 50)
>>> estimate = wc.skce(mu, wc.Normal(mu, np.ones(50)))
"""

from wellcal import engines, hypotests, kernels
from wellcal.adapters import as_predictions
from wellcal.defaults import default_kernel
from wellcal.embedding import ucme
from wellcal.estimators import kce, skce
from wellcal.hypotests import TestResult, calibration_test
from wellcal.measures import confidence
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
from wellcal.quadrature import Lowering
from wellcal.results import Estimate
from wellcal.scores import mse, nll, pinball_loss, quantile_calibration

__version__ = "0.1.0"

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "DiagonalNormal",
    "Dirichlet",
    "Estimate",
    "Gamma",
    "Laplace",
    "LogNormal",
    "Lowering",
    "Mixture",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "Poisson",
    "PowerExponential",
    "Predictions",
    "Quantiles",
    "Samples",
    "StudentT",
    "TestResult",
    "__version__",
    "as_predictions",
    "calibration_test",
    "confidence",
    "default_kernel",
    "engines",
    "hypotests",
    "kce",
    "kernels",
    "mse",
    "nll",
    "pairing",
    "pinball_loss",
    "quantile_calibration",
    "skce",
    "ucme",
]
