"""Simulated data sets of the statistical studies: predictions, and targets that do or do not follow them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

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


def calibrated(family: str, n: int, rng: np.random.Generator) -> Data:
    """Predictions of a family, and targets drawn from them."""
    if family == SAMPLES:
        loc = rng.normal(size=n)
        both = loc[:, None] + rng.normal(size=(n, 6))  # the target is one more draw
        return both[:, 0], wc.Samples(both[:, 1:])
    pred = CALIBRATED[family](n, rng)
    return pred.sample(rng), pred
