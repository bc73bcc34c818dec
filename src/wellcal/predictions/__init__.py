"""Families of predicted distributions, each a frozen batch, and what a family of your own is made of."""

from wellcal._arrays.domains import Domain, nonnegative, positive, real, simplex, unit_interval, whole_numbers
from wellcal.predictions.base import Predictions
from wellcal.predictions.counts import NegativeBinomial, Poisson
from wellcal.predictions.discrete import Bernoulli, Categorical
from wellcal.predictions.fields import derived, family, parameter
from wellcal.predictions.mixture import Mixture
from wellcal.predictions.quantiles import Quantiles
from wellcal.predictions.samples import Samples
from wellcal.predictions.scalar import Beta, Gamma, Laplace, LogNormal, Normal, StudentT
from wellcal.predictions.vectors import DiagonalNormal, Dirichlet, MultivariateNormal, PowerExponential

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "DiagonalNormal",
    "Dirichlet",
    "Domain",
    "Gamma",
    "Laplace",
    "LogNormal",
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
    "derived",
    "family",
    "nonnegative",
    "parameter",
    "positive",
    "real",
    "simplex",
    "unit_interval",
    "whole_numbers",
]
