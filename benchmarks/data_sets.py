"""Simulated data sets of the statistical studies: predictions, and targets that do or do not follow them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

import wellcal as wc

Data = tuple[Any, Any]

PREDICTED_SCALE = 0.1


def synthetic(model: str, dimension: int, n: int, rng: np.random.Generator) -> Data:
    """The paper's setting: predictions N(c 1, 0.1^2 I) with c uniform, and targets by `model`.

    "calibrated" and "uncalibrated" are the paper's models; in "spread" the targets have a standard deviation
    of 0.125, and in "shift" their first coordinate is 0.05 too large.
    """
    loc = np.repeat(rng.uniform(size=n)[:, None], dimension, axis=1)
    noise = rng.normal(size=(n, dimension))
    y = loc + (0.125 if model == "spread" else PREDICTED_SCALE) * noise
    if model == "shift":
        y[:, 0] += 0.05
    elif model == "uncalibrated":
        y[:, 0] = 0.1 + PREDICTED_SCALE * noise[:, 0]
    elif model not in ("calibrated", "spread"):
        raise ValueError(f"unknown model {model!r}")
    if dimension == 1:
        return y[:, 0], wc.Normal(loc[:, 0], np.full(n, PREDICTED_SCALE))
    return y, wc.DiagonalNormal(loc, np.full(loc.shape, PREDICTED_SCALE))


def _bernoulli(n: int, rng: np.random.Generator) -> Any:
    return wc.Bernoulli(rng.uniform(size=n))


def _categorical(n: int, rng: np.random.Generator) -> Any:
    return wc.Categorical(rng.dirichlet(np.ones(10), size=n))


def _laplace(n: int, rng: np.random.Generator) -> Any:
    return wc.Laplace(rng.normal(size=n), rng.uniform(0.5, 1.5, size=n))


def _poisson(n: int, rng: np.random.Generator) -> Any:
    return wc.Poisson(rng.gamma(2.0, 2.0, size=n))


def _ensemble(n: int, rng: np.random.Generator) -> Any:
    centre = rng.normal(size=n)
    return wc.Mixture(
        [wc.Normal(centre + 0.5 * rng.normal(size=n), rng.uniform(0.5, 1.0, size=n)) for _ in range(5)]
    )


CALIBRATED: dict[str, Callable[[int, np.random.Generator], Any]] = {
    "Bernoulli": _bernoulli,
    "Categorical, 10 classes": _categorical,
    "Laplace": _laplace,
    "Poisson": _poisson,
    "ensemble of 5 normals": _ensemble,
}
SAMPLES = "Samples of 5 draws"
DISCRETE = ("Bernoulli", "Categorical, 10 classes", "Poisson")


def _nearly_sure(within: float) -> Callable[[int, np.random.Generator], Any]:
    def batch(n: int, rng: np.random.Generator) -> Any:
        off = within * rng.uniform(size=n)
        return wc.Bernoulli(np.where(rng.uniform(size=n) < 0.5, off, 1.0 - off))

    return batch


def _hundred_classes(n: int, rng: np.random.Generator) -> Any:
    return wc.Categorical(rng.dirichlet(np.full(100, 0.3), size=n))


def _rare_counts(n: int, rng: np.random.Generator) -> Any:
    return wc.Poisson(0.01 * np.exp(0.5 * rng.normal(size=n)))


def _three_times(n: int, rng: np.random.Generator) -> Any:
    return wc.Normal(np.resize(rng.normal(size=-(-n // 3)), n), np.ones(n))


HARD: dict[str, Callable[[int, np.random.Generator], Any]] = {
    "Bernoulli within 0.01 of 0 or 1": _nearly_sure(0.01),
    "Bernoulli within 0.0001 of 0 or 1": _nearly_sure(1e-4),
    "100 classes": _hundred_classes,
    "Poisson of mean about 0.01": _rare_counts,
    "normals, each prediction three times": _three_times,
}
QUANTILES = "quantiles at five levels"


def hard(setting: str, n: int, rng: np.random.Generator) -> Data:
    """Calibrated predictions of which few cases carry a statistic."""
    if setting == QUANTILES:
        levels, loc = np.array([0.1, 0.25, 0.5, 0.75, 0.9]), rng.normal(size=n)
        return loc + rng.normal(size=n), wc.Quantiles(levels, loc[:, None] + special.ndtri(levels))
    pred = HARD[setting](n, rng)
    return pred.sample(rng), pred


def calibrated(family: str, n: int, rng: np.random.Generator) -> Data:
    """Predictions of a family, and targets drawn from them."""
    if family == SAMPLES:
        loc = rng.normal(size=n)
        both = loc[:, None] + rng.normal(size=(n, 6))  # the target is one more draw
        return both[:, 0], wc.Samples(both[:, 1:])
    pred = CALIBRATED[family](n, rng)
    return pred.sample(rng), pred
