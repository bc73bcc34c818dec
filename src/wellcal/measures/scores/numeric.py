"""Continuous ranked probability scores in NumPy: closed forms in special functions, and quadrature.

Families whose distribution function no array library differentiates are scored here, in double precision.
Derivatives by their parameters, which have no closed form in general, are five-point differences; those by
targets are exact.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import Array, NDArray, is_jax, is_torch, namespace, stop_gradient, widen
from wellcal._arrays.ops import ops_for
from wellcal._arrays.special import log_gamma_ratio, on_numpy, poisson_log_prob, quiet
from wellcal.predictions import Mixture

RowFunction = Callable[[Any, NDArray], NDArray]
"""Scores ``(n,)`` of a NumPy batch and its targets ``(n,)``."""

_NUMPY = ops_for(namespace(np.empty(0)))
_STEP = 1e-3  # of differences, relative: the error of order h^4 is then as small as rounding
_ROWS = 256  # handled at a time

# -- closed forms --------------------------------------------------------------------------------


def student_t_crps(batch: Any, y: NDArray) -> NDArray:
    r"""Student t distributions, infinite for df <= 1/2.

    From :math:`c + \int_0^z (2 F - 1)`, with c the score at the median: unlike the usual form it has no
    pole at df = 1, and holds below.
    """
    df = batch.df
    z = (y - batch.loc) / batch.scale
    half_log = 0.5 * np.log1p(z * z / df)
    density = np.exp(_half_step(0.5 * df)) / np.sqrt(math.pi * df)  # at the median
    inner = 2.0 * density * df * half_log * _phi((df - 1.0) * half_log)
    centre = 2.0 * df * density * _spread_ratio(df)
    return batch.scale * (centre + z * (2.0 * special.stdtr(df, z) - 1.0) - inner)


def _spread_ratio(df: NDArray) -> NDArray:
    """``(1 - B(1/2, df - 1/2) / B(1/2, df / 2)) / (df - 1)``, log 2 at df = 1 and infinite for df <= 1/2."""
    x = df - 1.0
    exists = df > 0.5
    safe = np.where(exists, df, 1.0)
    direct = _half_step(0.5 * safe) - _half_step(safe - 0.5)
    near = np.abs(x) < 0.01
    # log Gamma(1/2 + x) - log Gamma(1 + x) less the same of x / 2, by powers of x.
    series = np.zeros_like(x)
    for k in range(9, 0, -1):
        step = float(special.polygamma(k - 1, 0.5) - special.polygamma(k - 1, 1.0))
        series = x * (step * (1.0 - 0.5**k) / math.factorial(k) + series)
    log_ratio = np.where(near, series, direct)
    small = np.where(x == 0, 1.0, x)
    found = np.where(x == 0, math.log(2.0), -np.expm1(log_ratio) / small)
    return np.where(exists, found, np.inf)


def _phi(x: NDArray) -> NDArray:
    """``(1 - exp(-x)) / x``, also for x < 0."""
    zero = x == 0
    safe = np.where(zero, 1.0, x)
    return np.where(zero, 1.0, -np.expm1(-safe) / safe)


def _half_step(x: NDArray) -> NDArray:
    """``log Gamma(x + 1/2) - log Gamma(x)``."""
    return log_gamma_ratio(_NUMPY, x, 0.5 * np.ones_like(x))


def gamma_crps(batch: Any, y: NDArray) -> NDArray:
    """Gamma distributions (Möller, Scheuerer, 2015), with the terms of size `shape` cancelled."""
    shape, scale = batch.shape, batch.scale
    z = y / scale
    possible = z > 0
    inside = np.where(possible, z, 1.0)
    below = np.where(possible, special.gammainc(shape, inside), 0.0)
    edge = np.where(possible, np.exp(poisson_log_prob(_NUMPY, shape, inside)), 0.0)
    spread = np.exp(_half_step(shape)) / math.sqrt(math.pi)
    return scale * ((z - shape) * (2.0 * below - 1.0) + 2.0 * shape * edge - spread)


def beta_crps(batch: Any, y: NDArray) -> NDArray:
    """Beta distributions (Jordan, Krüger, Lerch, 2019), with the large terms cancelled."""
    a, b = batch.a, batch.b
    mean = a / (a + b)
    inside = (y > 0) & (y < 1)
    x = np.where(inside, y, 0.5)
    below = np.where(inside, special.betainc(a, b, x), (y >= 1).astype(np.float64))
    edge = np.where(inside, np.exp(special.xlogy(a, x) + special.xlog1py(b, -x) - special.betaln(a, b)), 0.0)
    # 2 B(2a, 2b) / B(a, b)^2 by the duplication formula of the gamma function.
    spread = np.exp(_half_step(a) + _half_step(b) - _half_step(a + b)) / math.sqrt(math.pi)
    return (y - mean) * (2.0 * below - 1.0) + (2.0 * edge - spread) * mean / a


def poisson_crps(batch: Any, y: NDArray) -> NDArray:
    """Poisson distributions (Wei, Held, 2014)."""
    rate = batch.rate
    spread = rate * (special.i0e(2.0 * rate) + special.i1e(2.0 * rate))
    return _count_crps(batch, y, rate, rate) - spread


def negative_binomial_crps(batch: Any, y: NDArray) -> NDArray:
    r"""Negative binomial distributions.

    Half the mean difference of two of them is an integral of their characteristic function,
    :math:`\frac{1}{4 \pi} \int_0^\pi (1 - |\phi(t)|^2) / \sin^2(t / 2)\, dt`, which needs no hypergeometric
    function of large arguments.
    """
    mean, dispersion = batch.mean(), batch.dispersion
    spread = _negative_binomial_spread(mean, dispersion)
    return _count_crps(batch, y, mean, mean * (1.0 + dispersion * y)) - spread


def _count_crps(batch: Any, y: NDArray, mean: NDArray, edge: NDArray) -> NDArray:
    """E|Z - y| of counts for which the mean shortfall ``E(mean - Z; Z <= y)`` is `edge` times P(Z = y)."""
    return (y - mean) * (2.0 * batch.cdf(y) - 1.0) + 2.0 * edge * np.exp(batch.log_prob(y))


def _negative_binomial_spread(mean: NDArray, dispersion: NDArray) -> NDArray:
    """E|Z - Z'| / 2 by the trapezoidal rule in the logit u of t / pi, analytic for |Im u| < pi / 4."""
    mean = np.asarray(mean, dtype=np.float64)
    out = np.zeros(len(mean))
    used = np.flatnonzero(mean > 0)
    step = 0.125
    for start in range(0, len(used), _ROWS):
        rows = used[start : start + _ROWS]
        m, a = mean[rows, None], np.asarray(dispersion, dtype=np.float64)[rows, None]
        variance = m * (1.0 + a * m)
        low = -40.0 - 0.5 * np.log1p(4.0 * variance.max())
        u = np.arange(low, 40.0, step)[None, :]
        t = math.pi * special.expit(u)
        square = np.sin(0.5 * t) ** 2
        lost = -np.expm1(-np.log1p(4.0 * a * variance * square) / a) / square
        out[rows] = np.sum(lost * t * special.expit(-u), axis=1) * step / (4.0 * math.pi)
    return out


def mixture_of_counts_crps(batch: Any, y: NDArray) -> NDArray:
    """Mixtures of counts: the sum of squared differences of distribution functions over counts."""
    tail = 5e-14
    low = np.min([part.quantile(tail) for part in batch.components], axis=0)
    high = np.max([part.quantile(1.0 - tail) for part in batch.components], axis=0)
    size = int(np.max(high - low)) + 1
    if size > 10_000_000:
        raise ValueError(f"pred has counts over a range of {size}, too many to sum over; score its parts")
    out = np.where(y < low, low - y, np.where(y > high, y - high - 1.0, 0.0))
    step = max(1, 2_000_000 // size)
    for start in range(0, len(y), step):
        rows = slice(start, min(start + step, len(y)))
        k = low[rows] + np.arange(float(size))[:, None]
        gap = batch[rows].cdf(k) - (k >= y[rows])
        out[rows] += np.sum(np.where(k <= high[rows], gap, 0.0) ** 2, axis=0)
    return out


# -- quadrature ----------------------------------------------------------------------------------

_SCORES = np.arange(-8.0, 8.25, 0.5)
"""Normal scores of the quantiles between which the integrand is taken to be smooth."""


def quadrature_crps(batch: Any, y: NDArray, nodes: int = 16) -> NDArray:
    r"""Score by quadrature of the distribution function, :math:`\int (F(x) - 1\{x \ge y\})^2\, dx`.

    Gauss-Legendre rules of `nodes` points between quantiles of all components, points where a
    distribution function has a kink or a jump, and the target.
    """
    points, weights = np.polynomial.legendre.leggauss(nodes)
    out = np.empty(len(y))
    for start in range(0, len(y), _ROWS):
        rows = slice(start, min(start + _ROWS, len(y)))
        part, at = batch[rows], y[rows]
        cuts = np.sort(np.concatenate([_cuts(part), at[None, :]]), axis=0)
        middle, half = 0.5 * (cuts[1:] + cuts[:-1]), 0.5 * (cuts[1:] - cuts[:-1])
        above = middle > at
        total = np.zeros(len(at))
        for point, weight in zip(points, weights, strict=True):
            gap = part.cdf(middle + point * half) - above
            total += weight * np.sum(half * gap**2, axis=0)
        out[rows] = total
    return out


def _cuts(batch: Any) -> NDArray:
    """Points ``(m, n)`` between which the distribution function is smooth."""
    parts = batch.components if isinstance(batch, Mixture) else (batch,)
    n = len(batch)
    found: list[NDArray] = []
    for part in parts:
        if hasattr(part, "values") and hasattr(part, "kind"):
            found.append(part.values.T)  # atoms: all jumps
            continue
        support = part.support_values() if hasattr(part, "support_values") else None
        if support is not None:
            found.append(np.broadcast_to(support[:, None], (len(support), n)))
            continue
        lower = special.ndtr(_SCORES[_SCORES <= 0])[:, None] + np.zeros(n)
        found.append(part.quantile(lower))
        found.append(
            part.upper_quantile(lower) if hasattr(part, "upper_quantile") else part.quantile(1.0 - lower)
        )
        if hasattr(part, "loc"):
            found.append(part.loc[None, :])
    cuts = np.concatenate(found)
    widest = np.max(np.where(np.isfinite(cuts), np.abs(cuts), 0.0), axis=0)
    return np.clip(cuts, -widest, widest)


# -- into array libraries --------------------------------------------------------------------------


def by_rows(function: RowFunction, predictions: Any, y: Array) -> Array:
    """A NumPy function of single predictions and targets, in any library and with derivatives."""
    leaves: list[Array] = []
    predictions.map_arrays(leaves.append)
    leaves = [widen(leaf) for leaf in leaves]
    y = widen(y)
    names = _leaf_names(predictions)
    n = len(predictions)

    def rebuilt(arrays: tuple[NDArray, ...]) -> Any:
        rest = iter(arrays)

        def concrete(_: Array) -> NDArray:
            return np.asarray(next(rest), dtype=np.float64)

        return predictions.map_arrays(concrete)

    @quiet
    def value(*arrays: NDArray) -> NDArray:
        return function(rebuilt(arrays[:-1]), np.asarray(arrays[-1], dtype=np.float64))

    def evaluate(*arrays: Array) -> Array:
        return on_numpy(value, *arrays, shape=(n,))

    def derivatives(arrays: tuple[Array, ...]) -> list[Array]:
        found = [
            on_numpy(_difference(value, k, names[k]), *arrays, shape=tuple(leaf.shape))
            for k, leaf in enumerate(leaves)
        ]
        if predictions.continuous:
            by_target = on_numpy(_target_slope(rebuilt), *arrays, shape=(n,))
        else:
            by_target = 0.0 * stop_gradient(arrays[-1])  # counts cannot move a little
        return [*found, by_target]

    xp = namespace(leaves[0])
    if is_jax(xp):
        return _in_jax(evaluate, derivatives, leaves, y)
    result = evaluate(*leaves, y)
    if is_torch(xp):
        result = _in_torch(result, derivatives, leaves, y)
    return result


def _in_torch(result: Array, derivatives: Any, leaves: list[Array], y: Array) -> Array:
    arrays = (*leaves, y)
    if not any(a.requires_grad for a in arrays) or not sys.modules["torch"].is_grad_enabled():
        return result
    for array, slope in zip(arrays, derivatives(arrays), strict=True):
        if array.requires_grad:
            result = result + _rows(slope * (array - array.detach()))
    return result


def _in_jax(evaluate: Any, derivatives: Any, leaves: list[Array], y: Array) -> Array:
    jax = sys.modules["jax"]

    @jax.custom_jvp
    def score(*arrays: Array) -> Array:
        return evaluate(*arrays)

    @score.defjvp
    def slope(primals: Any, tangents: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        moved = sum(_rows(d * t) for d, t in zip(derivatives(primals), tangents, strict=True))
        return score(*primals), moved

    return score(*leaves, y)


def _rows(x: Array) -> Array:
    """Sums over all axes but the first."""
    return x if x.ndim == 1 else namespace(x).sum(x, axis=tuple(range(1, x.ndim)))


def _target_slope(rebuilt: Callable[[tuple[NDArray, ...]], Any]) -> Callable[..., NDArray]:
    def slope(*arrays: NDArray) -> NDArray:
        return 2.0 * rebuilt(arrays[:-1]).cdf(np.asarray(arrays[-1], dtype=np.float64)) - 1.0

    return slope


def _leaf_names(batch: Any) -> list[str]:
    """Names of the arrays of a batch in the order in which its `map_arrays` meets them."""
    own = [name for name in batch.array_fields if getattr(batch, name) is not None]
    return own + [
        name for field in batch.batch_fields for child in getattr(batch, field) for name in _leaf_names(child)
    ]


def _difference(value: Callable[..., NDArray], k: int, name: str) -> Callable[..., NDArray]:
    """Derivatives of row functions by argument k, one trailing entry at a time."""

    @quiet
    def slope(*given: NDArray) -> NDArray:
        arrays = [np.asarray(a, dtype=np.float64) for a in given]
        leaf = arrays[k]
        flat = leaf.reshape(len(leaf), -1)
        out = np.empty_like(flat)

        def at(column: int, shift: NDArray) -> NDArray:
            moved = flat.copy()
            moved[:, column] += shift
            return value(*arrays[:k], moved.reshape(leaf.shape), *arrays[k + 1 :])

        for column in range(flat.shape[1]):
            h = _step(name, flat[:, column], arrays, k)
            centred = (
                8.0 * (at(column, h) - at(column, -h)) - (at(column, 2.0 * h) - at(column, -2.0 * h))
            ) / 12.0
            edge = (flat[:, column] == 0) & (name not in _FREE)
            forward = 2.0 * at(column, h) - 1.5 * at(column, 0.0 * h) - 0.5 * at(column, 2.0 * h)
            out[:, column] = np.where(edge, forward, centred) / h
        return out.reshape(leaf.shape)

    return slope


_FREE = ("loc", "mu", "values", "weights")
"""Parameters that may take either sign here; a positive one that is zero can only grow."""


def _step(name: str, values: NDArray, arrays: list[NDArray], k: int) -> NDArray:
    if name == "weights":
        return np.full(len(values), _STEP)
    if name in ("loc", "mu"):
        return _STEP * arrays[k + 1]  # their scale comes next
    if name == "values":
        spread = np.ptp(arrays[k].reshape(len(values), -1), axis=1)
        return _STEP * np.where(spread > 0, spread, 1.0)
    return _STEP * np.where(values > 0, values, 0.01)
