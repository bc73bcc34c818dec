"""CRPS against integration of its definition, and scoringrules."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, stats

import wellcal as wc
from wellcal.measures.scores import brier, crps
from wellcal.measures.scores.casewise import pinball_loss
from wellcal.measures.scores.ranked import crps_of_cases

RNG = np.random.default_rng(30)
N = 6
LOC, SCALE = RNG.normal(size=N), RNG.gamma(3.0, 0.4, N)
OTHER = RNG.gamma(3.0, 0.4, N)
Y = np.array([-3.0, -0.4, LOC[2], 0.2, 1.1, 9.0])
POSITIVE = np.array([0.0, 0.01, 0.3, 1.0, 2.5, 30.0])
UNIT = np.array([0.0, 0.02, 0.4, 0.5, 0.97, 1.0])
COUNTS = np.array([0.0, 1.0, 2.0, 3.0, 7.0, 40.0])
DF = np.array([0.6, 1.0, 1.004, 1.2, 4.0, 1e7])

CONTINUOUS: dict[str, tuple[Any, Any, Any]] = {
    "Normal": (wc.Normal(LOC, SCALE), stats.norm(LOC, SCALE), Y),
    "Laplace": (wc.Laplace(LOC, SCALE), stats.laplace(LOC, SCALE), Y),
    "StudentT": (wc.StudentT(DF, LOC, SCALE), stats.t(DF, LOC, SCALE), Y),
    "Gamma": (wc.Gamma(OTHER, SCALE), stats.gamma(OTHER, scale=SCALE), POSITIVE),
    "LogNormal": (wc.LogNormal(LOC, 0.5 * SCALE), stats.lognorm(0.5 * SCALE, scale=np.exp(LOC)), POSITIVE),
    "Beta": (wc.Beta(OTHER, SCALE), stats.beta(OTHER, SCALE), UNIT),
    "PowerExponential": (
        wc.PowerExponential(LOC, SCALE, OTHER + 0.3),
        stats.gennorm(OTHER + 0.3, LOC, SCALE),
        Y,
    ),
}


def by_definition(cdf: Any, y: float, kinks: tuple[float, ...] = ()) -> float:
    """Integral of (F(x) - 1{x >= y})^2, in pieces."""
    options: Any = {"epsabs": 1e-13, "epsrel": 1e-12, "limit": 400}
    cuts = np.unique([y, *kinks])

    def square(x: float) -> float:
        return float(cdf(x) - (x >= y)) ** 2

    total = integrate.quad(square, -np.inf, cuts[0], **options)[0]
    total += integrate.quad(lambda x: float(1.0 - cdf(x)) ** 2, cuts[-1], np.inf, **options)[0]
    for low, high in pairwise(cuts):
        middle = 0.5 * (low + high)
        total += integrate.quad(lambda x, m=middle: float(cdf(x) - (m > y)) ** 2, low, high, **options)[0]
    return total


@pytest.mark.parametrize("family", CONTINUOUS)
def test_continuous_families(family: str) -> None:
    pred, reference, y = CONTINUOUS[family]
    found, how = crps_of_cases(y, pred)
    assert how["expectations"] == "closed"
    for i in range(N):
        arguments = tuple(a[i] if np.ndim(a) else a for a in reference.args)
        named = {k: v[i] for k, v in reference.kwds.items()}
        single = reference.dist(*arguments, **named)
        edges = (0.0,) if family in ("Gamma", "LogNormal") else (0.0, 1.0) if family == "Beta" else (LOC[i],)
        # Quadrature over infinite tails of heavy-tailed distributions is good to nine digits only.
        assert found[i] == pytest.approx(by_definition(single.cdf, y[i], edges), rel=3e-9), i


def test_student_t_to_full_precision() -> None:
    """In fifty digits, on both sides of df = 1, where the usual formula has a pole."""
    z = 0.7
    df = np.array([0.51, 0.9, 0.985, 0.9999999, 1.0, 1.0000001, 1.009, 1.02, 3.0, 50.0])
    found, _ = crps_of_cases(np.full(10, z), wc.StudentT(df, np.zeros(10), 1.0))
    with mp.workdps(50):
        for value, nu in zip(found, df.tolist(), strict=True):
            v = mp.mpf(nu) + (mp.mpf(10) ** -25 if nu == 1.0 else 0)
            density = mp.gamma((v + 1) / 2) / (mp.sqrt(v * mp.pi) * mp.gamma(v / 2))
            root = mp.mpf(z) ** 2 / v
            below = mp.betainc(v / 2, mp.mpf(1) / 2, 0, 1 / (1 + root), regularized=True) / 2
            pdf = density * (1 + root) ** (-(v + 1) / 2)
            score = z * (1 - 2 * below) + 2 * pdf * (v + mp.mpf(z) ** 2) / (v - 1)
            half = mp.mpf(1) / 2
            score -= 2 * mp.sqrt(v) / (v - 1) * mp.beta(half, v - half) / mp.beta(half, v / 2) ** 2
            assert value == pytest.approx(float(score), rel=2e-13), nu


def test_a_student_t_without_a_score() -> None:
    assert crps(np.zeros(1), wc.StudentT(np.array([0.5]), np.zeros(1), 1.0)).value == np.inf


@pytest.mark.parametrize("shape", [1e-3, 1.0, 1e4, 1e10])
def test_gammas_of_any_shape(shape: float) -> None:
    """At one standard deviation above the mean; large shapes are nearly normal."""
    y = shape + np.sqrt(shape)
    found = crps(np.array([y]), wc.Gamma(np.array([shape]), 1.0)).value
    with mp.workdps(40):
        a, x = mp.mpf(shape), mp.mpf(y)
        below = mp.gammainc(a, 0, x, regularized=True) if shape < 1e5 else None
        if below is None:
            normal = crps(np.array([1.0]), wc.Normal(np.zeros(1), 1.0)).value
            assert found == pytest.approx(np.sqrt(shape) * normal, rel=2e-5)
            return
        edge = mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))
        score = (x - a) * (2 * below - 1) + 2 * a * edge - mp.gamma(a + 0.5) / mp.gamma(a) / mp.sqrt(mp.pi)
        assert found == pytest.approx(float(score), rel=1e-11)


def by_sum(cdf: Any, y: float, largest: int = 4000) -> float:
    k = np.arange(largest)
    return float(np.sum((cdf(k) - (k >= y)) ** 2))


def test_counts() -> None:
    rate = np.array([0.0, 1e-3, 0.4, 3.0, 8.0, 60.0])
    found, _ = crps_of_cases(COUNTS, wc.Poisson(rate))
    assert found == pytest.approx(
        [by_sum(stats.poisson(m).cdf, y) for m, y in zip(rate, COUNTS, strict=True)], rel=1e-12
    )
    for dispersion in (0.01, 0.3, 4.0):
        found, _ = crps_of_cases(COUNTS, wc.NegativeBinomial(rate, dispersion))
        size = 1.0 / dispersion
        expected = [
            by_sum(stats.nbinom(size, 1.0 / (1.0 + dispersion * m)).cdf, y)
            for m, y in zip(rate, COUNTS, strict=True)
        ]
        assert found == pytest.approx(expected, rel=1e-11), dispersion


def test_a_negative_binomial_of_little_dispersion_is_poisson() -> None:
    rate = np.array([0.5, 20.0, 300.0])
    y = np.array([2.0, 11.0, 350.0])
    found, _ = crps_of_cases(y, wc.NegativeBinomial(rate, 1e-13))
    assert found == pytest.approx(crps_of_cases(y, wc.Poisson(rate))[0], rel=1e-9)


@pytest.mark.parametrize(("mean", "dispersion"), [(1e5, 0.5), (1e3, 20.0), (1e-3, 5.0)])
def test_spread_of_negative_binomials(mean: float, dispersion: float) -> None:
    """Half the mean difference as a hypergeometric function, in high precision."""
    y = np.array([2.0 * round(mean)])
    found = crps(y, wc.NegativeBinomial(np.array([mean]), dispersion)).value
    pred = wc.NegativeBinomial(np.array([mean]), dispersion)
    with mp.workdps(40):
        r, m = 1 / mp.mpf(dispersion), mp.mpf(mean)
        p = 1 / (1 + mp.mpf(dispersion) * m)
        w = 4 * (1 - p) / (2 - p) ** 2
        spread = m / p * (p / (2 - p)) * mp.hyp2f1(1 - r, mp.mpf(1) / 2, 2, w)
        below, mass = float(pred.cdf(y)[0]), float(np.exp(pred.log_prob(y)[0]))
        to_target = (y[0] - mean) * (2 * below - 1) + 2 * mean * (1 + dispersion * y[0]) * mass
        assert found == pytest.approx(to_target - float(spread), rel=1e-10)


# -- mixtures, tables and samples --------------------------------------------------------------


def mixture_cdf(i: int) -> dict[str, tuple[Any, Any, tuple[float, ...]]]:
    w = np.array([0.3, 0.7])
    atoms = np.array([-1.0, 0.5, 2.0])
    return {
        "normals": (
            wc.Mixture([wc.Normal(LOC, SCALE), wc.Normal(LOC + 2, 0.1)], w),
            lambda x: 0.3 * stats.norm.cdf(x, LOC[i], SCALE[i]) + 0.7 * stats.norm.cdf(x, LOC[i] + 2, 0.1),
            (LOC[i], LOC[i] + 1.0, LOC[i] + 2, LOC[i] + 3),
        ),
        "points": (
            wc.Mixture([wc.Normal(LOC, 0.0), wc.Normal(LOC + 2, 1.0)], w),
            lambda x: 0.3 * (x >= LOC[i]) + 0.7 * stats.norm.cdf(x, LOC[i] + 2, 1.0),
            (LOC[i],),
        ),
        "families": (
            wc.Mixture([wc.Laplace(LOC, SCALE), wc.Gamma(OTHER, SCALE)], w),
            lambda x: (
                0.3 * stats.laplace.cdf(x, LOC[i], SCALE[i])
                + 0.7 * stats.gamma.cdf(x, OTHER[i], scale=SCALE[i])
            ),
            (LOC[i], 0.0),
        ),
        "with samples": (
            wc.Mixture([wc.Samples(np.tile(atoms, (N, 1)), kind="atoms"), wc.StudentT(3.0, LOC, SCALE)], w),
            lambda x: 0.3 * np.mean(atoms <= x) + 0.7 * stats.t.cdf(x, 3.0, LOC[i], SCALE[i]),
            (-1.0, 0.5, 2.0),
        ),
    }


@pytest.mark.parametrize("name", ["normals", "points", "families", "with samples"])
def test_mixtures(name: str) -> None:
    for i in range(N):
        pred, cdf, kinks = mixture_cdf(i)[name]
        found, how = crps_of_cases(Y, pred)
        assert found[i] == pytest.approx(by_definition(cdf, Y[i], kinks), rel=1e-9)
        assert how.get("expectation_error", 0.0) < 1e-8


def test_mixtures_of_counts() -> None:
    rate = np.array([0.5, 1.0, 4.0, 9.0, 3.0, 2.0])
    pred = wc.Mixture([wc.Poisson(rate), wc.NegativeBinomial(3 * rate, 0.5)], weights=[0.3, 0.7])
    found, _ = crps_of_cases(COUNTS, pred)
    for i in range(N):
        second = stats.nbinom(2.0, 1.0 / (1.0 + 1.5 * rate[i]))

        def cdf(k: Any, i: int = i, second: Any = second) -> Any:
            return 0.3 * stats.poisson.cdf(k, rate[i]) + 0.7 * second.cdf(k)

        assert found[i] == pytest.approx(by_sum(cdf, COUNTS[i]), rel=1e-11)


def test_samples_against_scoringrules(scoringrules: Any) -> None:
    values = np.round(RNG.normal(size=(N, 15)), 1)  # with ties
    for kind, fair, estimator in (("draws", None, "fair"), ("draws", False, "nrg"), ("atoms", None, "nrg")):
        found, _ = crps_of_cases(Y, wc.Samples(values, kind=kind), fair)
        assert found == pytest.approx(scoringrules.crps_ensemble(Y, values, estimator=estimator), rel=1e-12)


def test_weighted_atoms_by_all_pairs() -> None:
    values, weights = RNG.normal(size=(N, 7)), RNG.dirichlet(np.ones(7), N)
    expected = np.sum(weights * np.abs(values - Y[:, None]), axis=1) - 0.5 * np.einsum(
        "ij,ik,ijk->i", weights, weights, np.abs(values[:, :, None] - values[:, None, :])
    )
    pred = wc.Samples(values, weights, kind="atoms")
    assert crps_of_cases(Y, pred)[0] == pytest.approx(expected, rel=1e-12)
    half = wc.Samples(values[:, :3], weights[:, :3] / weights[:, :3].sum(axis=1, keepdims=True), kind="atoms")
    rest = wc.Samples(values[:, 3:], weights[:, 3:] / weights[:, 3:].sum(axis=1, keepdims=True), kind="atoms")
    share = weights[:, :3].sum(axis=1)
    both = wc.Mixture([half, rest], weights=np.stack([share, 1 - share], axis=1))
    assert crps_of_cases(Y, both)[0] == pytest.approx(expected, rel=1e-12)


def test_classes_with_a_support() -> None:
    support = np.array([3.0, -1.0, 0.5])
    probs = RNG.dirichlet(np.ones(3), N)
    y = support[[0, 1, 2, 0, 1, 2]]
    atoms = wc.Samples(np.tile(support, (N, 1)), probs, kind="atoms")
    assert crps(y, wc.Categorical(probs, support=support)).value == pytest.approx(
        crps(y, atoms).value, rel=1e-13
    )
    p = probs[:, 0]
    hit = np.array([0, 1, 1, 0, 0, 1])
    assert crps(hit, wc.Bernoulli(p)).value == pytest.approx(np.mean((p - hit) ** 2), rel=1e-13)
    assert crps(hit, wc.Bernoulli(p)).value == pytest.approx(brier(hit, p).value, rel=1e-13)


def test_pinball_loss_over_all_levels_is_half_of_it() -> None:
    """The midpoint rule over T levels misses of the order of 1 / T at both ends, where quantiles grow."""
    pred = wc.Normal(LOC, SCALE)
    errors = [
        abs(2.0 * pinball_loss(Y, pred, levels=(np.arange(t) + 0.5) / t).value - crps(Y, pred).value)
        for t in (500, 5000)
    ]
    assert errors[0] < 1e-3 / SCALE.min()
    assert errors[1] < 0.2 * errors[0]
