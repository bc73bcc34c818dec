"""Errors that no weight was chosen on, of all kinds of predictions: they confirm what the others chose."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from benchmarks.bank.classes import draw_class, hot, occurs
from benchmarks.bank.counts import negative_binomial
from benchmarks.bank.designs import Drawn
from benchmarks.bank.ensembles import around, slope, spread_by_sign
from benchmarks.bank.errors import CONFIRM, Error
from benchmarks.bank.scalars import moved, moved_by_sign, stretched

Array = Any
Generator = np.random.Generator


# -- numbers ---------------------------------------------------------------------------------


def _z(drawn: Drawn, rng: Generator) -> Array:
    return rng.normal(size=drawn.loc.shape)


def bias_where_unsure(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Targets are too high where predicted spreads are large."""
    return around(drawn, _z(drawn, rng) + size * (drawn.scale > 1.0))


def spread_by_distance(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Spreads are too small far from the middle, and too large near it."""
    return around(drawn, _z(drawn, rng) * np.exp(size * (np.abs(drawn.loc) - np.sqrt(2.0 / np.pi))))


def flat(drawn: Drawn, size: float, rng: Generator) -> Array:
    """A share of residuals is uniform, of variance 1."""
    uniform = rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), size=len(drawn.loc))
    return around(drawn, np.where(rng.uniform(size=len(drawn.loc)) < size, uniform, _z(drawn, rng)))


def two_spreads(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Targets above the predicted mean are further from it than those below."""
    z = _z(drawn, rng)
    return around(drawn, z * np.exp(size * np.sign(z)))


def shift_and_spread(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Too high, and too narrow."""
    return around(drawn, np.exp(size) * _z(drawn, rng) + size)


def one_sided_outliers(drawn: Drawn, size: float, rng: Generator) -> Array:
    """A share of targets is three standard deviations higher."""
    return around(drawn, _z(drawn, rng) + 3.0 * (rng.uniform(size=len(drawn.loc)) < size))


def moved_with_centre(drawn: Drawn, size: float, rng: Generator) -> Array:
    return drawn.pred.sample(rng) + size * drawn.loc * drawn.scale


def factor_by_mean(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Large predictions are too small, and small ones too large."""
    return drawn.pred.sample(rng) * np.exp(size * np.sign(np.log(drawn.loc)))


def skewed(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Residuals of mean 0, variance 1 and skewness `size`."""
    if size == 0.0:
        return around(drawn, _z(drawn, rng))
    shape = (2.0 / size) ** 2
    return around(drawn, (rng.gamma(shape, size=len(drawn.loc)) - shape) / np.sqrt(shape))


# -- counts ----------------------------------------------------------------------------------


def rate_by_half(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Rates above the median are too low, those below too high."""
    side = np.sign(drawn.loc - np.median(drawn.loc))
    return rng.poisson(drawn.loc * np.exp(size * side)).astype(np.float64)


def hidden_groups(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Two groups that the model does not know, one above and one below the rate."""
    side = rng.choice([-1.0, 1.0], len(drawn.loc))
    return rng.poisson(drawn.loc * (1.0 + size * side)).astype(np.float64)


def wrong_mean(drawn: Drawn, size: float, rng: Generator) -> Array:
    return negative_binomial(drawn.loc * np.exp(size), drawn.scale, rng)


# -- probabilities ---------------------------------------------------------------------------


def too_sure_of_yes(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Over-confidence above one half only."""
    logit = special.logit(drawn.loc)
    return occurs(special.expit(np.where(logit > 0.0, (1.0 - size) * logit, logit)), rng)


def label_noise(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Outcomes are sometimes written down wrongly."""
    return occurs(drawn.loc + size * (1.0 - 2.0 * drawn.loc), rng)


def rare_but_known(drawn: Drawn, size: float, rng: Generator) -> Array:
    """The truth differs more from case to case than predicted."""
    middle = -2.5
    return occurs(special.expit(middle + (1.0 + size) * (special.logit(drawn.loc) - middle)), rng)


def noise_of_classes(drawn: Drawn, size: float, rng: Generator) -> Array:
    """A share of labels is any of the classes."""
    return draw_class((1.0 - size) * drawn.loc + size / drawn.loc.shape[1], rng)


def absorbed(drawn: Drawn, size: float, rng: Generator) -> Array:
    """A share of one class is taken for another."""
    p = np.array(drawn.loc)
    taken = size * p[:, 4]
    p[:, 3] += taken
    p[:, 4] -= taken
    return draw_class(p, rng)


def cold_by_class(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Under-confidence where the first class is improbable."""
    improbable = drawn.loc[:, :1] < np.median(drawn.loc[:, 0])
    return draw_class(drawn.loc ** (1.0 + size * improbable), rng)


# -- vectors ---------------------------------------------------------------------------------


def both_stretched(drawn: Drawn, size: float, rng: Generator) -> Array:
    return drawn.loc + np.exp(size) * drawn.scale * _z(drawn, rng)


def one_slope(drawn: Drawn, size: float, rng: Generator) -> Array:
    """The second coordinate is off by what is predicted for the first."""
    z = _z(drawn, rng)
    z[:, 1] += size * drawn.loc[:, 0]
    return drawn.loc + drawn.scale * z


def whitened_correlated(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Correlations of the first two coordinates are not those that are predicted."""
    z = _z(drawn, rng)
    z[:, 1] = size * z[:, 0] + np.sqrt(1.0 - size**2) * z[:, 1]
    return drawn.loc + np.einsum("nab,nb->na", drawn.scale, z)


ERRORS: tuple[Error, ...] = (
    Error("bias where unsure", "normals", CONFIRM, bias_where_unsure, {100: 0.57, 1000: 0.15}),
    Error("spread by distance", "normals", CONFIRM, spread_by_distance, {100: 0.64, 1000: 0.37}),
    Error("flat residuals", "normals", CONFIRM, flat, {100: 1.0, 1000: 0.35}),
    Error("two spreads", "normals", CONFIRM, two_spreads, {100: 0.25, 1000: 0.07}),
    Error("shift and spread", "normals", CONFIRM, shift_and_spread, {100: 0.16, 1000: 0.05}),
    Error("outliers on one side", "normals", CONFIRM, one_sided_outliers, {100: 0.06, 1000: 0.016}),
    Error("Laplace bias by sign", "Laplace", CONFIRM, moved_by_sign, {100: 0.45, 1000: 0.15}),
    Error("Student spread", "Student t", CONFIRM, stretched, {100: 0.25, 1000: 0.09}),
    Error("Student shift", "Student t", CONFIRM, moved, {100: 0.31, 1000: 0.098}),
    Error("Cauchy slope", "Cauchy", CONFIRM, moved_with_centre, {100: 0.76, 1000: 0.22}),
    Error("gamma factor by mean", "gamma", CONFIRM, factor_by_mean, {100: 0.22, 1000: 0.065}),
    Error("rate by half", "Poisson", CONFIRM, rate_by_half, {100: 0.18, 1000: 0.05}),
    Error("hidden groups", "Poisson", CONFIRM, hidden_groups, {100: 0.34, 1000: 0.17}),
    Error("mean of counts", "negative binomial", CONFIRM, wrong_mean, {100: 0.22, 1000: 0.079}),
    Error("too sure of yes", "binary", CONFIRM, too_sure_of_yes, {100: 0.67, 1000: 0.25}),
    Error("label noise", "binary", CONFIRM, label_noise, {100: 0.17, 1000: 0.04}),
    Error("rare but known", "rare binary", CONFIRM, rare_but_known, {100: 0.9, 1000: 0.25}),
    Error("noise of classes", "ten classes", CONFIRM, noise_of_classes, {100: 0.16, 1000: 0.047}),
    Error("one class absorbed", "ten classes", CONFIRM, absorbed, {100: 0.8, 1000: 0.22}),
    Error("cold by class", "three classes", CONFIRM, cold_by_class, {100: 1.6, 1000: 0.3}),
    Error("temperature of three", "three classes", CONFIRM, hot, {100: 0.32, 1000: 0.13}),
    Error("both stretched", "pairs", CONFIRM, both_stretched, {100: 0.13, 1000: 0.04}),
    Error("slope of one coordinate", "pairs", CONFIRM, one_slope, {100: 0.35, 1000: 0.11}),
    Error("wrong correlations", "full covariances", CONFIRM, whitened_correlated, {100: 0.22, 1000: 0.08}),
    Error("ensemble spread by sign", "ensembles", CONFIRM, spread_by_sign, {100: 0.44, 1000: 0.11}),
    Error("ensemble skew", "ensembles", CONFIRM, skewed, {100: 1.4, 1000: 0.44}),
    Error("mixture shift", "mixtures", CONFIRM, moved, {100: 0.4, 1000: 0.13}),
    Error("quantiles slope", "quantiles", CONFIRM, slope, {100: 0.33, 1000: 0.1}),
)
