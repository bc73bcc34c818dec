"""Cases of several families, in memory and in partitions."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np

import wellcal as wc
import wellcal.dask
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein

SMOOTH = ExpDistance(Wasserstein(), 4.0, power=2.0) @ Gaussian(10.0)
"""A kernel on vectors with which all pairs of many cases take no time."""

Example = tuple[Any, Any, tuple[Any, ...]]


def example(name: str, n: int, seed: int = 0) -> Example:
    """Targets, a family, and its parameters."""
    rng = np.random.default_rng(seed)
    mu, sigma = rng.normal(size=n), rng.uniform(0.5, 2.0, n).round(2)  # rounded: ranks have ties
    y = rng.normal(mu, 1.02 * sigma)
    probs = rng.dirichlet(np.ones(4), n)
    if name == "normal":
        return y, wc.Normal, (mu, sigma)
    if name == "bernoulli":
        return (rng.random(n) < probs[:, 0]).astype(int), wc.Bernoulli, (probs[:, 0],)
    if name == "categorical":
        return (probs.cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1), wc.Categorical, (probs,)
    if name == "poisson":
        return rng.poisson(3.0 * sigma).astype(float), wc.Poisson, (3.0 * sigma,)
    if name == "vectors":
        loc, scale = np.stack([mu, -mu], axis=1), np.stack([sigma, np.ones(n)], axis=1)
        return rng.normal(loc, scale), wc.DiagonalNormal, (loc, scale)
    if name == "quantiles":
        return y, wc.Quantiles, ([0.1, 0.5, 0.9], mu[:, None] + sigma[:, None] * np.array([-1.28, 0.0, 1.28]))
    assert name == "draws"
    return y, wc.Samples, (rng.normal(mu[:, None], sigma[:, None], (n, 5)),)


def cut(array: Any, size: int | tuple[int, ...]) -> Any:
    """An array in partitions of a size, or of several sizes; a list is for all cases."""
    return array if isinstance(array, list) else da.from_array(array, chunks=(size, *array.shape[1:]))


def partitioned(found: Example, size: int | tuple[int, ...]) -> tuple[Any, Any]:
    """Targets and predictions in partitions."""
    y, family, parameters = found
    return cut(y, size), wellcal.dask.from_arrays(family, *(cut(p, size) for p in parameters))


def in_memory(found: Example) -> tuple[Any, Any]:
    """The same in memory."""
    y, family, parameters = found
    return y, family(*parameters)


def tied(found: Example, places: Any) -> Example:
    """Quantiles of which some cases have outcomes on the median."""
    y, family, (levels, values) = found
    y = y.copy()
    y[places] = values[places, levels.index(0.5)]
    return y, family, (levels, values)
