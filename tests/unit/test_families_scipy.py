"""Moments, densities, distribution functions and quantiles of scalars against scipy.stats and mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import wellcal.predictions as wp
from wellcal._arrays.namespaces import namespace
from wellcal._arrays.ops import ops_for
from wellcal._arrays.special import betaln, log_gamma_ratio

RNG = np.random.default_rng(20)
N = 40


def log_uniform(low: float, high: float) -> np.ndarray:
    return np.exp(RNG.uniform(np.log(low), np.log(high), N))


LOC = RNG.normal(0.0, 3.0, N)
SCALE = log_uniform(1e-3, 1e3)
DF = log_uniform(0.3, 1e4)
SHAPE = log_uniform(0.2, 200.0)
OTHER = log_uniform(0.2, 200.0)
EXPONENT = log_uniform(0.4, 6.0)
SIGMA = log_uniform(0.05, 2.0)
PROBS = RNG.uniform(0.0, 1.0, N)
RATE = log_uniform(1e-3, 1e4)
DISPERSION = log_uniform(1e-4, 1e2)

CONTINUOUS: dict[str, tuple[wp.Predictions, Any]] = {
    "Normal": (wp.Normal(LOC, SCALE), stats.norm(LOC, SCALE)),
    "Laplace": (wp.Laplace(LOC, SCALE), stats.laplace(LOC, SCALE)),
    "StudentT": (wp.StudentT(DF, LOC, SCALE), stats.t(DF, LOC, SCALE)),
    "Gamma": (wp.Gamma(SHAPE, SCALE), stats.gamma(SHAPE, scale=SCALE)),
    "LogNormal": (wp.LogNormal(LOC, SIGMA), stats.lognorm(SIGMA, scale=np.exp(LOC))),
    "Beta": (wp.Beta(SHAPE, OTHER), stats.beta(SHAPE, OTHER)),
    "PowerExponential": (wp.PowerExponential(LOC, SCALE, EXPONENT), stats.gennorm(EXPONENT, LOC, SCALE)),
}
DISCRETE: dict[str, tuple[wp.Predictions, Any]] = {
    "Bernoulli": (wp.Bernoulli(PROBS), stats.bernoulli(PROBS)),
    "Poisson": (wp.Poisson(RATE), stats.poisson(RATE)),
    "NegativeBinomial": (
        wp.NegativeBinomial(RATE, DISPERSION),
        stats.nbinom(1.0 / DISPERSION, 1.0 / (1.0 + DISPERSION * RATE)),
    ),
}
LEVELS = np.array([1e-8, 1e-3, 0.1, 0.25, 0.5, 0.6, 0.9, 0.999])[:, None] * np.ones(N)


def both(examples: dict[str, tuple[wp.Predictions, Any]]) -> Any:
    return pytest.mark.parametrize(("pred", "reference"), examples.values(), ids=list(examples))


@both({name: example for name, example in (CONTINUOUS | DISCRETE).items() if name != "NegativeBinomial"})
def test_moments(pred: Any, reference: Any) -> None:
    mean = pred.mean()
    if isinstance(pred, wp.StudentT):  # without a mean, scipy.stats reports an infinite one
        assert np.array_equal(np.isnan(mean), DF <= 1)
        mean = np.where(DF <= 1, np.inf, mean)
    assert_allclose(mean, reference.mean(), rtol=1e-12)
    assert_allclose(pred.variance(), reference.var(), rtol=1e-12)


@pytest.mark.parametrize(
    "pred", [wp.Poisson([3.0]), wp.NegativeBinomial([3.0], 0.4), wp.NegativeBinomial([3.0], 2.5)]
)
def test_moments_of_counts_are_those_of_their_probabilities(pred: Any) -> None:
    k = np.arange(2000.0)
    probs = np.exp(pred.log_prob(k[:, None]))[:, 0]
    assert_allclose(probs.sum(), 1.0, rtol=1e-12)
    assert_allclose(pred.mean(), k @ probs, rtol=1e-12)
    assert_allclose(pred.variance(), (k - k @ probs) ** 2 @ probs, rtol=1e-12)
    assert_allclose(pred.cdf(k[:40, None])[:, 0], np.cumsum(probs)[:40], rtol=1e-12)


def student_t_log_density(y: np.ndarray) -> np.ndarray:
    """By mpmath: scipy.stats loses digits for many degrees of freedom."""

    def one(y: float, df: float, loc: float, scale: float) -> float:
        df, z = mpmath.mpf(df), (mpmath.mpf(y) - loc) / scale
        constant = mpmath.loggamma((df + 1) / 2) - mpmath.loggamma(df / 2) - mpmath.log(mpmath.pi * df) / 2
        return float(constant - mpmath.log(scale) - (df + 1) / 2 * mpmath.log1p(z * z / df))

    with mpmath.workdps(30):
        return np.vectorize(one)(y, DF, LOC, SCALE)


@both(CONTINUOUS)
def test_density_and_distribution_function(pred: Any, reference: Any) -> None:
    y = reference.ppf(LEVELS)
    expected = student_t_log_density(y) if isinstance(pred, wp.StudentT) else reference.logpdf(y)
    # The logarithm passes through zero: its error is measured against the size of its terms.
    assert_allclose(pred.log_prob(y), expected, rtol=1e-12, atol=2e-12)
    assert_allclose(pred.cdf(y), reference.cdf(y), rtol=1e-12)
    assert_allclose(pred.log_prob(y[3]), pred.log_prob(y)[3], rtol=0)
    assert_allclose(pred.cdf(0.25), reference.cdf(0.25), rtol=1e-12)
    assert_allclose(pred.log_prob(0.25), pred.log_prob(np.full(N, 0.25)), rtol=0)


@both(CONTINUOUS)
def test_quantile(pred: Any, reference: Any) -> None:
    assert_allclose(pred.quantile(LEVELS), reference.ppf(LEVELS), rtol=1e-11, atol=1e-15)
    assert_allclose(pred.quantile(LEVELS[4:5])[0], reference.ppf(LEVELS[4]), rtol=1e-11, atol=1e-15)
    assert_allclose(pred.quantile(0.3), reference.ppf(0.3), rtol=1e-11)
    assert_allclose(pred.quantile(0.0), reference.ppf(0.0))
    assert_allclose(pred.quantile(1.0), reference.ppf(1.0))
    for level in (1.5, -0.5):
        with pytest.raises(ValueError, match="u must be numbers between 0 and 1, found"):
            pred.quantile(level)
    assert_allclose(pred.interquartile_range(), reference.ppf(0.75) - reference.ppf(0.25), rtol=1e-9)


@both(CONTINUOUS)
def test_upper_quantile_is_the_quantile_of_the_complement(pred: Any, reference: Any) -> None:
    q = np.array([0.5, 0.25, 1.0 / 64])[:, None] * np.ones(N)  # 1 - q is exact
    assert_allclose(pred.upper_quantile(q), pred.quantile(1.0 - q), rtol=1e-11, atol=1e-15)
    tiny = 1e-30
    assert_allclose(pred.upper_quantile(tiny), reference.isf(tiny), rtol=1e-11)


@both(DISCRETE)
def test_discrete_distribution(pred: Any, reference: Any) -> None:
    y = np.maximum(reference.ppf(np.maximum(LEVELS, 1e-6)), 0.0)
    assert_allclose(pred.log_prob(y), reference.logpmf(y), rtol=1e-11, atol=1e-11)
    assert_allclose(pred.cdf(y), reference.cdf(y), rtol=1e-10)
    assert_allclose(pred.cdf(y + 0.5), pred.cdf(y), rtol=0)
    assert_allclose(pred.cdf(-0.5), 0.0)
    for impossible in (-1.0, 0.5, 2.5):
        assert np.all(pred.log_prob(impossible) == -np.inf)


@both(DISCRETE)
def test_discrete_quantile_inverts_the_distribution_function(pred: Any, reference: Any) -> None:
    for u in LEVELS:
        k = pred.quantile(u[None])[0]
        assert np.all(k == np.floor(k))
        assert np.all(pred.cdf(k) >= u)
        assert np.all((k == 0) | (pred.cdf(k - 1) < u))
    assert_allclose(pred.quantile(LEVELS), reference.ppf(LEVELS))
    assert_allclose(pred.quantile(0.0), 0.0)  # scipy.stats has -1, outside the support
    assert_allclose(pred.quantile(1.0), reference.ppf(1.0))
    with pytest.raises(ValueError, match="u must be numbers between 0 and 1, found 2; levels are shares"):
        pred.quantile(2.0)


def test_boundary_of_the_support() -> None:
    assert_allclose(wp.Poisson([0.0, 0.0]).log_prob([0.0, 1.0]), [0.0, -np.inf])
    assert_allclose(wp.NegativeBinomial([0.0, 0.0], 1.0).log_prob([0.0, 1.0]), [0.0, -np.inf])
    a, b = [0.5, 1.0, 2.0, 1.0], [1.0, 1.0, 1.0, 3.0]
    for y in (0.0, 1.0, -0.1, 1.1):
        assert_allclose(wp.Beta(a, b).log_prob(y), stats.beta.logpdf(y, a, b))
        assert_allclose(wp.Beta(a, b).cdf(y), stats.beta.cdf(y, a, b))
    gamma = wp.Gamma([0.5, 1.0, 2.0], 2.0)
    assert_allclose(gamma.log_prob(0.0), [np.inf, -np.log(2.0), -np.inf])
    for y in (0.0, -1.0):
        assert_allclose(gamma.cdf(y), 0.0)
        assert_allclose(wp.LogNormal([0.0], 1.0).log_prob(y), -np.inf)
        assert_allclose(wp.LogNormal([0.0], 1.0).cdf(y), 0.0)
    assert_allclose(gamma.log_prob(-1.0), -np.inf)
    assert_allclose(wp.Bernoulli([0.0, 1.0]).log_prob(1), [-np.inf, 0.0])
    assert_allclose(wp.Bernoulli([0.0, 1.0]).quantile(0.0), [0.0, 1.0])
    assert_allclose(wp.Bernoulli([0.0, 1.0]).quantile(1.0), [0.0, 1.0])


def test_zero_scale_is_a_point_prediction() -> None:
    pred = wp.Normal([1.0, 2.0], [0.0, 0.0])
    assert_allclose(pred.cdf([1.0, 1.9]), [1.0, 0.0])
    assert_allclose(pred.log_prob([1.0, 1.9]), [np.inf, -np.inf])
    for u in (0.0, 0.3, 1.0):
        assert_allclose(pred.quantile(u), [1.0, 2.0])
        assert_allclose(pred.upper_quantile(u), [1.0, 2.0])
    assert_allclose(pred.sample(0), [1.0, 2.0])


def test_moments_of_student_t_exist_where_they_exist() -> None:
    pred = wp.StudentT([0.5, 1.0, 1.5, 2.0, 3.0], np.ones(5), 2.0)
    assert_allclose(pred.mean(), [np.nan, np.nan, 1.0, 1.0, 1.0])
    assert_allclose(pred.variance(), [np.nan, np.nan, np.inf, np.inf, 12.0])


@pytest.mark.parametrize("df", [0.3, 1.0, 2.5, 30.0, 1e4])
@pytest.mark.parametrize("u", [0.3, 2e-3, 5e-4, 1e-8, 1e-60, 1e-90])
def test_student_t_quantile_far_in_the_tail(df: float, u: float) -> None:
    pred = wp.StudentT([df], [0.0], 1.0)
    (t,) = pred.quantile(u)
    with mpmath.workdps(40):
        x = mpmath.mpf(df) / (df + mpmath.mpf(t) ** 2)
        back = mpmath.betainc(mpmath.mpf(df) / 2, 0.5, 0, x, regularized=True) / 2
        # One rounding of t changes the distribution function by t * density relative to itself.
        slope = abs(t) * mpmath.exp(pred.log_prob(t)[0]) / mpmath.mpf(u)
        error = abs(back / mpmath.mpf(u) - 1)
    assert error < 1e-13 * slope
    assert_allclose(pred.upper_quantile(u), -pred.quantile(u), rtol=0)


@pytest.mark.parametrize("u", [0.2, 1e-3, 1e-12, 1e-100])
@pytest.mark.parametrize("a", [0.3, 2.0, 150.0])
def test_quantiles_far_in_both_tails(a: float, u: float) -> None:
    """The exact probability beyond a quantile is the level, up to one rounding of the quantile."""

    def check(x: float, probability: Any, log_density: float) -> None:
        slope = max(1.0, abs(x) * float(mpmath.exp(log_density) / probability))
        assert abs(probability / mpmath.mpf(u) - 1) < 2e-14 * slope

    with mpmath.workdps(40):
        gamma = wp.Gamma([a], 1.0)
        (low,), (high,) = gamma.quantile(u), gamma.upper_quantile(u)
        if low > 0:  # otherwise it is below the smallest positive number
            check(low, mpmath.gammainc(a, 0, low, regularized=True), gamma.log_prob(low)[0])
        check(high, mpmath.gammainc(a, high, mpmath.inf, regularized=True), gamma.log_prob(high)[0])
        beta = wp.Beta([a], 3.0)
        (low,) = beta.quantile(u)
        if low > 1e-300:
            check(low, mpmath.betainc(a, 3, 0, low, regularized=True), beta.log_prob(low)[0])
        power = wp.PowerExponential([0.0], 1.0, a)
        (low,), (high,) = power.quantile(u), power.upper_quantile(u)
        assert low == -high
        tail = mpmath.gammainc(1 / mpmath.mpf(a), mpmath.mpf(high) ** a, mpmath.inf, regularized=True) / 2
        check(high, tail, power.log_prob(high)[0])


@pytest.mark.parametrize(
    ("a", "b"), [(1e-3, 1e-3), (0.5, 1e6), (11.9, 12.1), (40.0, 13.0), (1e6, 2e6), (3.0, 1e10)]
)
def test_normalising_constants_do_not_cancel(a: float, b: float) -> None:
    ops = ops_for(namespace())
    x, y = np.array([a]), np.array([b])
    with mpmath.workdps(60):
        exact = mpmath.log(mpmath.beta(mpmath.mpf(a), mpmath.mpf(b)))
        ratio = mpmath.loggamma(mpmath.mpf(a) + mpmath.mpf(b)) - mpmath.loggamma(b)
    assert_allclose(betaln(ops, x, y), float(exact), rtol=5e-15)
    assert_allclose(betaln(ops, y, x), float(exact), rtol=5e-15)
    assert_allclose(log_gamma_ratio(ops, y, x), float(ratio), rtol=5e-15)


def test_negative_binomial_tends_to_poisson() -> None:
    k = np.arange(30.0)
    nearly = wp.NegativeBinomial(np.full(30, 7.0), 1e-10)
    poisson = wp.Poisson(np.full(30, 7.0))
    assert_allclose(nearly.log_prob(k), poisson.log_prob(k), rtol=1e-8)
    assert_allclose(nearly.cdf(k), poisson.cdf(k), rtol=1e-7)
