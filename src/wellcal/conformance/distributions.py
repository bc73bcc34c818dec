"""Whether moments, quantiles and the distribution function agree with draws and with each other."""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy import stats

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.ops import EPSILON
from wellcal.conformance.asking import ask, in_library, levels_of, often_varied
from wellcal.conformance.report import LawBrokenError, require, require_close
from wellcal.conformance.sample import rounding
from wellcal.predictions import Predictions, Quantiles

_STANDARD_ERRORS = 5.0
_KS_LEVEL = 1e-6


def check_moments(few: Predictions, draws: NDArray) -> str | None:
    """Mean and variance agree with draws."""
    mean, variance = ask(few, "mean"), ask(few, "variance")
    if mean is None and variance is None:
        return "there is neither mean nor variance"
    size = len(draws)
    x = draws.astype(np.float64)
    drawn = x.mean(axis=0)
    slack = (1e2 * rounding(few) + 4.0 * size * EPSILON) * np.abs(x).max(axis=0)
    if mean is not None:
        stated = np.zeros_like(drawn) if variance is None else np.where(np.isfinite(variance), variance, 0.0)
        allowed = _STANDARD_ERRORS * np.sqrt(np.maximum(stated, x.var(axis=0)) / size) + slack
        exists = np.isfinite(mean)
        require_close(np.where(exists, mean, drawn), drawn, allowed, "the mean", f"the mean of {size} draws")
    if variance is not None:
        squares = (x - drawn) ** 2
        allowed = (
            _STANDARD_ERRORS * squares.std(axis=0) / np.sqrt(size) + slack**2 + 1e-12 * squares.mean(axis=0)
        )
        # Of rare counts nothing may have been drawn yet; a density has no such excuse.
        exists = np.isfinite(variance) & (often_varied(x) | few.continuous)
        spread_of_draws = squares.mean(axis=0)
        require_close(
            np.where(exists, variance, spread_of_draws),
            spread_of_draws,
            allowed,
            "the variance",
            f"the variance of {size} draws",
        )
    return None


def check_inverse(few: Predictions) -> str | None:
    """Quantiles are the inverse of the distribution function."""
    levels = np.tile(levels_of(few)[:, None], (1, len(few)))
    if few.event_shape != ():
        return "targets are vectors"
    quantiles = ask(few, "quantile", levels)
    if quantiles is None or ask(few, "cdf", quantiles) is None:
        return "there is no quantile, or no cdf"
    if quantiles.shape != levels.shape:
        raise LawBrokenError(f"quantile has shape {quantiles.shape} for levels of shape {levels.shape}")
    require(
        np.diff(quantiles, axis=0) >= 0,
        lambda at: (
            f"quantile falls between levels {levels[at]:g} and {levels[at[0] + 1, 0]:g} of prediction {at[1]}"
        ),
    )
    # A step to either side of the quantile allows for its rounding, and finds both ends of a jump of the cdf.
    width = quantiles[-1] - quantiles[0]
    accuracy = max(1e-9, 1e2 * rounding(few))
    step = accuracy * (np.abs(quantiles) + np.where(np.isfinite(width), width, 0.0)) + 1e-300
    below, above = ask(few, "cdf", quantiles - step), ask(few, "cdf", quantiles + step)
    assert below is not None
    assert above is not None
    tolerance = max(1e-6, 1e2 * rounding(few))

    def describe(at: tuple[int, ...]) -> str:
        return (
            f"quantile({levels[at]:g}) of prediction {at[1]} is {quantiles[at]:.10g}, but cdf goes from "
            f"{below[at]:.10g} to {above[at]:.10g} there"
        )

    require((below <= levels + tolerance) & (above >= levels - tolerance), describe)
    return None


def check_integral_transform(few: Predictions, draws: NDArray, rng: np.random.Generator) -> str | None:
    """The distribution function at draws is uniform."""
    if few.event_shape != () or draws.dtype.kind not in "biuf":
        return "targets are not scalar numbers"
    y = draws.astype(to_numpy(in_library(few, np.zeros(1))).dtype)
    at = ask(few, "cdf", y)
    if at is None:
        return "there is no cdf"
    # A step that no library rounds away, as some do with subnormal numbers.
    before = ask(few, "cdf", y - (4.0 * rounding(few) * np.abs(y) + 1e-30).astype(y.dtype))
    assert before is not None
    slack = 1e3 * rounding(few)
    require(
        (before >= -slack) & (at >= before - slack) & (at <= 1.0 + slack),
        lambda i: (
            f"cdf of prediction {i[1]} goes from {before[i]} to {at[i]} at {y[i]}: it must rise within [0, 1]"
        ),
    )
    uniform = np.sort(before + rng.random(y.shape) * (at - before), axis=0)
    size = len(uniform)
    low, high = (float(e) for e in (levels_of(few)[[0, -1]] if isinstance(few, Quantiles) else (0.0, 1.0)))
    inside = (uniform > low + slack) & (
        uniform < high - slack
    )  # beyond its levels a cdf of Quantiles is not known
    steps = np.arange(1, size + 1)[:, None] / size
    distance = np.where(inside, np.maximum(steps - uniform, uniform - (steps - 1.0 / size)), 0.0).max(axis=0)
    pvalue = cast("NDArray", stats.kstwo.sf(distance, size))
    require(
        pvalue >= _KS_LEVEL,
        lambda i: (
            f"cdf at {size} draws of prediction {i[0]} is not uniform: Kolmogorov-Smirnov distance "
            f"{distance[i]:.3g}, p = {pvalue[i]:.2g}"
        ),
    )
    return None
