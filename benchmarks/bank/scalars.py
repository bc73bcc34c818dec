"""Errors of predictions of one number: centre, spread and shape, everywhere or by the prediction."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bank.designs import Drawn
from benchmarks.bank.errors import CHOOSE, Error

Array = Any
Generator = np.random.Generator


# -- normals: standardised residuals that are not standard normal --------------------------------


def _normals(drawn: Drawn, z: Array) -> Array:
    return drawn.loc + drawn.scale * z


def _z(drawn: Drawn, rng: Generator) -> Array:
    return rng.normal(size=len(drawn.loc))


def shift(drawn: Drawn, size: float, rng: Generator) -> Array:
    return _normals(drawn, _z(drawn, rng) + size)


def slope(drawn: Drawn, size: float, rng: Generator) -> Array:
    return _normals(drawn, _z(drawn, rng) + size * drawn.loc)


def bias_by_sign(drawn: Drawn, size: float, rng: Generator) -> Array:
    return _normals(drawn, _z(drawn, rng) + size * np.sign(drawn.loc))


def bias_in_distance(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Bias that grows with the distance of the predicted mean from the middle, and is 0 on average."""
    standard = (np.abs(drawn.loc) - np.sqrt(2.0 / np.pi)) / np.sqrt(1.0 - 2.0 / np.pi)
    return _normals(drawn, _z(drawn, rng) + size * standard)


def cubic_bias(drawn: Drawn, size: float, rng: Generator) -> Array:
    cubic = (drawn.loc**3 - 3.0 * drawn.loc) / np.sqrt(6.0)
    return _normals(drawn, _z(drawn, rng) + size * np.clip(cubic, -3.0, 3.0))


def bump(drawn: Drawn, size: float, rng: Generator) -> Array:
    return _normals(drawn, _z(drawn, rng) + size * _in_the_middle(drawn))


def _in_the_middle(drawn: Drawn) -> Array:
    return (drawn.loc > 0.3) & (drawn.loc < 0.8)


def too_narrow(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Predictions are over-confident."""
    return _normals(drawn, _z(drawn, rng) * np.exp(size))


def too_wide(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Predictions are under-confident."""
    return _normals(drawn, _z(drawn, rng) * np.exp(-size))


def spread_by_sign(drawn: Drawn, size: float, rng: Generator) -> Array:
    return _normals(drawn, _z(drawn, rng) * np.exp(size * np.sign(drawn.loc)))


def spread_by_spread(drawn: Drawn, size: float, rng: Generator) -> Array:
    return _normals(drawn, _z(drawn, rng) * np.exp(size * np.sign(np.log(drawn.scale))))


def local_spread(drawn: Drawn, size: float, rng: Generator) -> Array:
    return _normals(drawn, _z(drawn, rng) * np.exp(size * _in_the_middle(drawn)))


def skew(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Gamma residuals of mean 0 and variance 1; `size` is their skewness."""
    if size == 0.0:
        return _normals(drawn, _z(drawn, rng))
    shape = (2.0 / size) ** 2
    return _normals(drawn, (rng.gamma(shape, size=len(drawn.loc)) - shape) / np.sqrt(shape))


def heavy_tails(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Student t residuals of variance 1; `size` is 1 / degrees of freedom."""
    if size == 0.0:
        return _normals(drawn, _z(drawn, rng))
    return _normals(drawn, rng.standard_t(1.0 / size, size=len(drawn.loc)) * np.sqrt(1.0 - 2.0 * size))


def bimodal(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Two equal normals at +-size, variance 1 in all."""
    side = rng.choice([-1.0, 1.0], len(drawn.loc))
    return _normals(drawn, size * side + np.sqrt(1.0 - size**2) * _z(drawn, rng))


def outliers(drawn: Drawn, size: float, rng: Generator) -> Array:
    """A share of targets has four times the spread."""
    share = rng.uniform(size=len(drawn.loc)) < size
    return _normals(drawn, np.where(share, 4.0, 1.0) * _z(drawn, rng))


def average_only(drawn: Drawn, size: float, rng: Generator) -> Array:
    """The PIT is uniform over all cases, and for half of them too wide, for the others too narrow.

    Given a positive predicted mean its density is ``1 + size cos(2 pi u)``, given a negative one
    ``1 - size cos(2 pi u)``.
    """
    levels = _waves(np.where(drawn.loc > 0.0, size, -size), rng)
    return np.asarray(drawn.pred.quantile(levels[None, :]))[0]


def _waves(height: Array, rng: Generator) -> Array:
    """Draws of density ``1 + height cos(2 pi u)`` on the unit interval, by rejection."""
    found = np.empty(len(height))
    missing = np.arange(len(height))
    while len(missing):
        u, v = rng.uniform(size=(2, len(missing)))
        h = height[missing]
        taken = v * (1.0 + np.abs(h)) < 1.0 + h * np.cos(2.0 * np.pi * u)
        found[missing[taken]] = u[taken]
        missing = missing[~taken]
    return found


# -- other families: draws that are moved or stretched -----------------------------------------------


def moved(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Targets higher by `size` predicted scales."""
    return drawn.pred.sample(rng) + size * drawn.scale


def stretched(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Targets further from the predicted centre."""
    return drawn.loc + np.exp(size) * (drawn.pred.sample(rng) - drawn.loc)


def moved_by_sign(drawn: Drawn, size: float, rng: Generator) -> Array:
    return drawn.pred.sample(rng) + size * np.sign(drawn.loc) * drawn.scale


def wrong_shape(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Gamma targets with the predicted mean and another shape, and so another spread."""
    shape = drawn.scale * np.exp(-size)
    return rng.gamma(shape, drawn.loc / shape)


def wrong_mean(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Gamma targets too large by a factor."""
    return np.exp(size) * drawn.pred.sample(rng)


ERRORS: tuple[Error, ...] = (
    Error("shift", "normals", CHOOSE, shift, {100: 0.3, 1000: 0.092}),
    Error("slope", "normals", CHOOSE, slope, {100: 0.3, 1000: 0.1}),
    Error("bias by sign of mean", "normals", CHOOSE, bias_by_sign, {100: 0.33, 1000: 0.12}),
    Error("bias in abs(mean)", "normals", CHOOSE, bias_in_distance, {100: 0.3, 1000: 0.09}),
    Error("cubic bias", "normals", CHOOSE, cubic_bias, {100: 0.55, 1000: 0.165}),
    Error("bump", "normals", CHOOSE, bump, {100: 1.2, 1000: 0.42}),
    Error("sd 1.22", "normals", CHOOSE, too_narrow, {100: 0.2, 1000: 0.068}),
    Error("sd .82", "normals", CHOOSE, too_wide, {100: 0.2, 1000: 0.06}),
    Error("spread by sign of mean", "normals", CHOOSE, spread_by_sign, {100: 0.3, 1000: 0.086}),
    Error("spread by spread", "normals", CHOOSE, spread_by_spread, {100: 0.25, 1000: 0.073}),
    Error("spread in an interval", "normals", CHOOSE, local_spread, {100: 0.6, 1000: 0.24}),
    Error("skew", "normals", CHOOSE, skew, {100: 1.0, 1000: 0.35}),
    Error("t_3", "normals", CHOOSE, heavy_tails, {100: 1.0 / 3.0, 1000: 0.15}),
    Error("t_4", "normals", CHOOSE, heavy_tails, {100: 0.25, 1000: 0.12}),
    Error("bimodal", "normals", CHOOSE, bimodal, {100: 0.84, 1000: 0.7}),
    Error("outliers", "normals", CHOOSE, outliers, {100: 0.03, 1000: 0.01}),
    Error("average only", "normals", CHOOSE, average_only, {100: 0.66, 1000: 0.2}),
    Error("Laplace shift", "Laplace", CHOOSE, moved, {100: 0.3, 1000: 0.095}),
    Error("Laplace spread", "Laplace", CHOOSE, stretched, {100: 0.25, 1000: 0.093}),
    Error("Cauchy shift", "Cauchy", CHOOSE, moved, {100: 0.4, 1000: 0.12}),
    Error("Cauchy spread", "Cauchy", CHOOSE, stretched, {100: 0.4, 1000: 0.137}),
    Error("Student bias by sign", "Student t", CHOOSE, moved_by_sign, {100: 0.45, 1000: 0.155}),
    Error("gamma shape", "gamma", CHOOSE, wrong_shape, {100: 0.4, 1000: 0.132}),
    Error("gamma mean", "gamma", CHOOSE, wrong_mean, {100: 0.18, 1000: 0.056}),
)
