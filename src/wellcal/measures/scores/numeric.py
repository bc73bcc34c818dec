"""Continuous ranked probability scores in NumPy: closed forms in special functions, and quadrature.

Families whose distribution function no array library differentiates are scored here, in double precision.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from scipy import special

from wellcal._arrays.chunks import budget, told_chunks
from wellcal._arrays.namespaces import NDArray, namespace
from wellcal._arrays.ops import ops_for
from wellcal._arrays.special import log_gamma_ratio, poisson_log_prob, student_t_cdf
from wellcal.measures.scores.row_functions import by_rows
from wellcal.measures.scores.rules import CRPS_RULES
from wellcal.predictions import (
    Beta,
    Gamma,
    Mixture,
    NegativeBinomial,
    Poisson,
    PowerExponential,
    Samples,
    StudentT,
)

_NUMPY = ops_for(namespace())

# -- closed forms --------------------------------------------------------------------------------


@CRPS_RULES.register(StudentT)
@by_rows
def student_t_crps(batch: StudentT, y: NDArray) -> NDArray:
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
    below = student_t_cdf(df, z)
    return batch.scale * (centre + z * (2.0 * below - 1.0) - inner)


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


@CRPS_RULES.register(Gamma)
@by_rows
def gamma_crps(batch: Gamma, y: NDArray) -> NDArray:
    """Gamma distributions (Möller, Scheuerer, 2015), with the terms of size `shape` cancelled."""
    shape, scale = batch.shape, batch.scale
    z = y / scale
    possible = z > 0
    inside = np.where(possible, z, 1.0)
    below = np.where(possible, special.gammainc(shape, inside), 0.0)
    edge = np.where(possible, np.exp(poisson_log_prob(_NUMPY, shape, inside)), 0.0)
    spread = np.exp(_half_step(shape)) / math.sqrt(math.pi)
    return scale * ((z - shape) * (2.0 * below - 1.0) + 2.0 * shape * edge - spread)


@CRPS_RULES.register(PowerExponential)
@by_rows
def power_exponential_crps(batch: PowerExponential, y: NDArray) -> NDArray:
    r"""Power exponential distributions of numbers.

    With a = 1 / shape, z the standardised target and :math:`x = |z|^{1/a}`, which is compared with a gamma
    distribution, :math:`\mathrm{E}|Z - z| = |z| P(a, x) + c Q(2a, x)` for :math:`c = \Gamma(2a) / \Gamma(a)`.
    Of two gamma variables their sum and their shares are independent, so that
    :math:`\mathrm{E}|Z - Z'| = 2 c I_{1/2}(a, 2a)`.
    """
    order = 1.0 / batch.shape
    z = np.abs((y - batch.loc) / batch.scale)
    power = z**batch.shape
    mean = np.exp(log_gamma_ratio(_NUMPY, order, order))  # of |Z|
    inside = cast("NDArray", special.gammainc(order, power))
    rest = cast("NDArray", special.betainc(2.0 * order, order, 0.5) - special.gammainc(2.0 * order, power))
    return batch.scale * (z * inside + mean * rest)


@CRPS_RULES.register(Beta)
@by_rows
def beta_crps(batch: Beta, y: NDArray) -> NDArray:
    """Beta distributions (Jordan, Krüger, Lerch, 2019), with the large terms cancelled."""
    a, b = batch.a, batch.b
    mean = a / (a + b)
    inside = (y > 0) & (y < 1)
    x = np.where(inside, y, 0.5)
    below = np.where(inside, special.betainc(a, b, x), (y >= 1).astype(np.float64))
    log_edge = cast("NDArray", special.xlogy(a, x) + special.xlog1py(b, -x) - special.betaln(a, b))
    edge = np.where(inside, np.exp(log_edge), 0.0)
    # 2 B(2a, 2b) / B(a, b)^2 by the duplication formula of the gamma function.
    spread = np.exp(_half_step(a) + _half_step(b) - _half_step(a + b)) / math.sqrt(math.pi)
    return (y - mean) * (2.0 * below - 1.0) + (2.0 * edge - spread) * mean / a


@CRPS_RULES.register(Poisson)
@by_rows
def poisson_crps(batch: Poisson, y: NDArray) -> NDArray:
    """Poisson distributions (Wei, Held, 2014)."""
    rate = batch.rate
    spread = cast("NDArray", rate * (special.i0e(2.0 * rate) + special.i1e(2.0 * rate)))
    return _count_crps(batch, y, rate, rate) - spread


@CRPS_RULES.register(NegativeBinomial)
@by_rows
def negative_binomial_crps(batch: NegativeBinomial, y: NDArray) -> NDArray:
    r"""Negative binomial distributions.

    Half the mean difference of two of them is an integral of their characteristic function,
    :math:`\frac{1}{4 \pi} \int_0^\pi (1 - |\phi(t)|^2) / \sin^2(t / 2)\, dt`, which needs no hypergeometric
    function of large arguments.
    """
    mean, dispersion = batch.mean(), batch.dispersion
    spread = _negative_binomial_spread(mean, dispersion)
    return _count_crps(batch, y, mean, mean * (1.0 + dispersion * y)) - spread


def _count_crps(batch: Poisson | NegativeBinomial, y: NDArray, mean: NDArray, edge: NDArray) -> NDArray:
    """E|Z - y| of counts for which the mean shortfall ``E(mean - Z; Z <= y)`` is `edge` times P(Z = y)."""
    return (y - mean) * (2.0 * batch.cdf(y) - 1.0) + 2.0 * edge * np.exp(batch.log_prob(y))


def _negative_binomial_spread(mean: NDArray, dispersion: NDArray) -> NDArray:
    """E|Z - Z'| / 2 by the trapezoidal rule in the logit u of t / pi, analytic for |Im u| < pi / 4."""
    mean = np.asarray(mean, dtype=np.float64)
    out = np.zeros(len(mean))
    used = np.flatnonzero(mean > 0)
    step = 0.125
    for chunk in told_chunks(len(used), 512, within=budget.cache):  # a row has some 700 nodes
        rows = used[chunk]
        m, a = mean[rows, None], np.asarray(dispersion, dtype=np.float64)[rows, None]
        variance = m * (1.0 + a * m)
        low = -40.0 - 0.5 * np.log1p(4.0 * variance.max())
        u = np.arange(low, 40.0, step)[None, :]
        t = math.pi * special.expit(u)
        square = np.sin(0.5 * t) ** 2
        lost = -np.expm1(-np.log1p(4.0 * a * variance * square) / a) / square
        out[rows] = np.sum(lost * t * special.expit(-u), axis=1) * step / (4.0 * math.pi)
    return out


@by_rows
def mixture_of_counts_crps(batch: Mixture, y: NDArray) -> NDArray:
    """Mixtures of counts: the sum of squared differences of distribution functions over counts."""
    tail = 5e-14
    low = np.min([part.quantile(tail) for part in batch.components], axis=0)
    high = np.max([part.quantile(1.0 - tail) for part in batch.components], axis=0)
    size = int(np.max(high - low)) + 1
    if size > 10_000_000:
        raise ValueError(f"pred has counts over a range of {size}, too many to sum over; score its parts")
    out = np.where(y < low, low - y, np.where(y > high, y - high - 1.0, 0.0))
    for rows in told_chunks(len(y), size):
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
    for rows in told_chunks(len(y), 512, within=budget.cache):  # some 70 intervals for each component
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
    found = [_cuts_of_component(part) for part in batch.parts]
    cuts = np.concatenate(found)
    widest = np.max(np.where(np.isfinite(cuts), np.abs(cuts), 0.0), axis=0)
    return np.clip(cuts, -widest, widest)


def _cuts_of_component(part: Any) -> NDArray:
    """Atoms where there are some; else quantiles, with the median, where symmetric densities have a kink."""
    n = len(part)
    if isinstance(part, Samples):
        return part.values.T
    if part.supports("class_probs"):
        support = part.support_values()
        return np.broadcast_to(support[:, None], (len(support), n))
    lower = special.ndtr(_SCORES[_SCORES <= 0])[:, None] + np.zeros(n)
    exact = part.supports("upper_quantile")
    upper = part.upper_quantile(lower) if exact else part.quantile(1.0 - lower)
    return np.concatenate([part.quantile(lower), upper])
