"""Whether densities integrate to one, and probabilities agree with frequencies."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray
from wellcal.conformance.asking import ask
from wellcal.conformance.report import LawBrokenError, require, require_close
from wellcal.predictions import Predictions

_SCORES = np.linspace(-3.75, 3.75, 31)  # normal scores of the levels between which a density is integrated
_TOLERANCE = 1e-4
_MANY = 2000  # distinct values


def check_density(few: Predictions, draws: NDArray) -> str | None:
    """Integrate `log_prob` of scalars, or compare it with frequencies where it is a probability."""
    if ask(few, "log_prob", draws[0]) is None:
        return "there is no log_prob"
    if not few.continuous:
        return _frequencies(few, draws)
    if few.event_shape != ():
        return "densities of vectors are not integrated"
    return _integral(few, draws)


# -- densities -------------------------------------------------------------------------------


def _integral(few: Predictions, draws: NDArray) -> str | None:
    levels = np.tile(special.ndtr(_SCORES)[:, None], (1, len(few)))
    edges = ask(few, "quantile", levels)
    ends = ask(few, "quantile", np.array([0.0, 1.0])[:, None] + 0.0 * levels[:2])
    if edges is None:
        edges = np.quantile(draws.astype(np.float64), special.ndtr(_SCORES), axis=0)
    if ends is None or np.isnan(ends).any():
        ends = np.array([[-np.inf], [np.inf]]) + 0.0 * edges[:2]
    usable = (np.diff(edges, axis=0) > 1e-9 * np.abs(edges).max(axis=0)).all(axis=0)
    if not usable.any():
        return "the distributions are too concentrated to integrate a density"

    def density(x: NDArray) -> NDArray:
        log_density = ask(few, "log_prob", x)
        assert log_density is not None
        if log_density.shape != x.shape:
            raise LawBrokenError(f"log_prob has shape {log_density.shape} for targets of shape {x.shape}")
        return np.exp(log_density)

    inner = _over_intervals(density, edges)
    width = edges[-1] - edges[0]
    lower = _tail(density, edges[0], ends[0], width, -1.0)
    upper = _tail(density, edges[-1], ends[1], width, 1.0)
    total = inner.sum(axis=0) + lower + upper
    require_close(
        np.where(usable, total, 1.0),
        np.ones(len(few)),
        _TOLERANCE,
        "the integral of the density",
        "probability",
    )
    cdf = ask(few, "cdf", edges)
    if cdf is not None:
        found = np.where(usable, inner, np.diff(cdf, axis=0))
        require_close(
            found,
            np.diff(cdf, axis=0),
            _TOLERANCE,
            "the integral of the density between two quantiles",
            "that of cdf",
        )
    return None


def _double_exponential() -> tuple[NDArray, NDArray]:
    """Nodes in (0, 1) as signed distances from the nearer end, and weights (Takahasi, Mori, 1974)."""
    t = np.linspace(-3.6, 3.6, 97)
    near = 1.0 / (1.0 + np.exp(np.pi * np.sinh(np.abs(t))))
    weights = np.pi * np.cosh(t) * near * (1.0 - near) * (t[1] - t[0])
    return np.where(t <= 0, near, -near), weights


def _over_intervals(density: Callable[[NDArray], NDArray], edges: NDArray) -> NDArray:
    """Integrals over the intervals between rows of `edges`; a density may be infinite at an edge."""
    position, weights = _double_exponential()
    out = np.empty((len(edges) - 1, edges.shape[1]))
    share = position[:, None]
    for k in range(len(out)):
        low, high = cast("NDArray", edges[k]), cast("NDArray", edges[k + 1])
        x = np.where(share > 0, low, high) + share * (high - low)
        inside = (x > low) & (x < high)
        values = np.where(inside, density(np.where(inside, x, 0.5 * (low + high))), 0.0)
        out[k] = (weights[:, None] * values).sum(axis=0) * (high - low)
    return out


def _tail(
    density: Callable[[NDArray], NDArray], edge: NDArray, end: NDArray, width: NDArray, sign: float
) -> NDArray:
    """Integral from an outer edge to the end of the support, which may be infinite."""
    finite = np.isfinite(end)
    near_end = np.where(finite, end, edge + sign * width)
    pair = np.stack([near_end, edge] if sign < 0 else [edge, near_end])
    bounded = np.where(near_end == edge, 0.0, _over_intervals(density, pair)[0])
    t = np.linspace(-3.4, 3.4, 129)
    with np.errstate(over="ignore"):
        reach = np.exp(0.5 * np.pi * np.sinh(t))
        weights = 0.5 * np.pi * np.cosh(t) * reach * (t[1] - t[0])
    x = edge + sign * reach[:, None] * width
    unbounded = (np.where(x == edge, 0.0, density(x)) * weights[:, None]).sum(axis=0) * width
    return np.where(finite, bounded, unbounded)


# -- probabilities ---------------------------------------------------------------------------


def _frequencies(few: Predictions, draws: NDArray) -> str | None:
    size, n = draws.shape[:2]
    if draws.dtype.kind == "O":
        return "objects are not counted"
    values, which = np.unique(draws.reshape(size * n, *few.event_shape), axis=0, return_inverse=True)
    if len(values) > _MANY:
        return f"more than {_MANY} different values were drawn"
    found = ask(few, "log_prob", np.repeat(values[:, None], n, axis=1))
    assert found is not None
    probability = np.exp(found)
    cells = which.reshape(size, n) * n + np.arange(n)
    frequency = np.bincount(cells.ravel(), minlength=len(values) * n).reshape(len(values), n) / size
    require(
        probability.sum(axis=0) <= 1.0 + 1e-3,
        lambda at: f"probabilities of prediction {at[0]} sum to {probability.sum(axis=0)[at]:.6g}",
    )
    allowed = 5.0 * np.sqrt(np.maximum(probability * (1.0 - probability), 0.0) / size) + 10.0 / size
    require_close(
        frequency,
        probability,
        allowed,
        f"the frequency among {size} draws, by value and prediction,",
        "exp(log_prob)",
    )
    return None
