"""Energy score against known moments of norms, integration and scoringrules."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, special, stats

import wellcal as wc
from wellcal.measures.scores import crps, energy_score
from wellcal.measures.scores.energy import mean_normal_distance

RNG = np.random.default_rng(31)
N, D = 5, 3
LOC, SCALE = RNG.normal(size=(N, D)), RNG.gamma(3.0, 0.4, (N, D))
FACTOR = RNG.normal(size=(N, D, D))
COV = FACTOR @ np.swapaxes(FACTOR, 1, 2) + 0.1 * np.eye(D)
Y = RNG.normal(size=(N, D))


@pytest.mark.parametrize("d", [1, 2, 10, 200])
@pytest.mark.parametrize("power", [0.1, 0.5, 1.0, 1.9])
def test_norms_of_standard_normals(d: int, power: float) -> None:
    exact = 2 ** (power / 2) * math.exp(special.gammaln((d + power) / 2) - special.gammaln(d / 2))
    found = mean_normal_distance(np.zeros((1, d)), np.ones((1, d)), power)
    assert found == pytest.approx([exact], rel=2e-13)


@pytest.mark.parametrize("length", [1e-3, 1.0, 30.0, 1e6])
def test_norms_of_shifted_normals(length: float) -> None:
    """E||N(m, I)|| is sqrt(pi / 2) times a Laguerre function of -|m|^2 / 2."""
    mean = np.array([[0.6 * length, 0.0, -0.8 * length]])
    with mp.workdps(30):
        exact = mp.sqrt(mp.pi / 2) * mp.laguerre(0.5, 0.5, -(mp.mpf(length) ** 2) / 2)
    assert mean_normal_distance(mean, np.ones((1, 3)), 1.0) == pytest.approx([float(exact)], rel=1e-13)


def test_norms_of_normals_of_unequal_variances() -> None:
    """In the plane: the mean length of an ellipse's radius, by integration over angles."""
    a, b = 2.0, 0.03

    def radius(angle: float) -> float:
        return math.hypot(a * math.cos(angle), b * math.sin(angle))

    mean_radius = integrate.quad(radius, 0, math.pi / 2, points=[math.pi / 2 - 0.05], epsabs=1e-13)[0]
    exact = math.sqrt(math.pi / 2) * mean_radius * 2 / math.pi
    found = mean_normal_distance(np.zeros((1, 2)), np.array([[a**2, b**2]]), 1.0)
    assert found == pytest.approx([exact], rel=1e-11)


def test_points_and_nothing() -> None:
    found = mean_normal_distance(np.array([[3.0, 4.0], [0.0, 0.0]]), np.zeros((2, 2)), 1.0)
    assert found == pytest.approx([5.0, 0.0], rel=1e-14)


def test_covariances_are_rotations_of_variances() -> None:
    turn = stats.ortho_group.rvs(D, random_state=1)
    cov = np.einsum("ij,nj,kj->nik", turn, SCALE**2, turn)
    plain = energy_score(Y, wc.DiagonalNormal(LOC, SCALE)).value
    turned = energy_score(Y @ turn.T, wc.MultivariateNormal(LOC @ turn.T, cov)).value
    assert turned == pytest.approx(plain, rel=1e-12)


def test_one_coordinate_is_the_crps() -> None:
    y, loc, scale = Y[:, 0], LOC[:, 0], SCALE[:, 0]
    expected = crps(y, wc.Normal(loc, scale)).value
    assert energy_score(y, wc.Normal(loc, scale)).value == expected
    one = energy_score(y[:, None], wc.DiagonalNormal(loc[:, None], scale[:, None])).value
    assert one == pytest.approx(expected, rel=1e-13)
    members = [wc.Normal(loc, scale), wc.Normal(loc + 1, 2 * scale)]
    vectors = [wc.DiagonalNormal(m.loc[:, None], m.scale[:, None]) for m in members]
    assert energy_score(y[:, None], wc.Mixture(vectors, [0.2, 0.8])).value == pytest.approx(
        crps(y, wc.Mixture(members, [0.2, 0.8])).value, rel=1e-12
    )


@pytest.mark.parametrize(("fair", "estimator"), [(True, "fair"), (False, "nrg")])
def test_samples_against_scoringrules(scoringrules: Any, fair: bool, estimator: str) -> None:
    values = RNG.normal(size=(N, 12, D))
    expected = scoringrules.es_ensemble(Y, values, estimator=estimator)
    found = energy_score(Y, wc.Samples(values), fair=fair)
    assert found.value == pytest.approx(np.mean(expected), rel=1e-12)
    assert found.standard_error == pytest.approx(stats.sem(expected), rel=1e-10)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_mixtures_of_samples_and_tables(power: float) -> None:
    values = RNG.normal(size=(N, 6, D))
    pooled = energy_score(Y, wc.Samples(values, kind="atoms"), power=power).value
    parts = [wc.Samples(values[:, :2], kind="atoms"), wc.Samples(values[:, 2:], kind="atoms")]
    mixed = energy_score(Y, wc.Mixture(parts, [1 / 3, 2 / 3]), power=power).value
    assert mixed == pytest.approx(pooled, rel=1e-12)
    support, probs = RNG.normal(size=(4, D)), RNG.dirichlet(np.ones(4), N)
    table = wc.Categorical(probs, support=support)
    atoms = wc.Samples(np.tile(support, (N, 1, 1)), probs, kind="atoms")
    y = support[[0, 1, 2, 3, 0]]
    assert energy_score(y, table, power=power).value == pytest.approx(
        energy_score(y, atoms, power=power).value, rel=1e-12
    )


def test_a_mixture_of_normals_against_its_draws() -> None:
    pred = wc.Mixture([wc.MultivariateNormal(LOC, COV), wc.DiagonalNormal(LOC + 1, SCALE)], [0.4, 0.6])
    draws = np.swapaxes(pred.sample(5, 800), 0, 1)
    fair = energy_score(Y, wc.Samples(draws))
    # The standard deviation of a distance is about 1, of the mean over 4000 draws about 0.02.
    assert energy_score(Y, pred).value == pytest.approx(fair.value, abs=0.08)


def test_atoms_for_other_families_report_their_error() -> None:
    pred = wc.Dirichlet(RNG.gamma(2.0, 1.0, (N, D)))
    y = RNG.dirichlet(np.ones(D), N)
    found = energy_score(y, pred)
    assert found.provenance["expectations"] == "lowered"
    draws = np.swapaxes(pred.sample(3, 900), 0, 1)
    exact = energy_score(y, wc.Samples(draws)).value
    assert abs(found.value - exact) < 0.01
    assert found.provenance["expectation_error"] < 0.02


def test_scalar_families_with_another_power() -> None:
    pred = wc.Laplace(LOC[:, 0], SCALE[:, 0])
    found = energy_score(Y[:, 0], pred, power=1.2)
    draws = np.swapaxes(pred.sample(3, 1200), 0, 1)
    assert found.value == pytest.approx(energy_score(Y[:, 0], wc.Samples(draws), power=1.2).value, rel=0.05)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: energy_score(Y, wc.DiagonalNormal(LOC, SCALE), power=2.0),
            ValueError,
            "between 0.1 and 1.9",
        ),
        (
            lambda: energy_score(Y, wc.DiagonalNormal(LOC, SCALE), fair=True),
            ValueError,
            "fair is for Samples",
        ),
        (lambda: energy_score([0], wc.Categorical(np.array([[0.5, 0.5]])), power=1.5), TypeError, "support="),
        (lambda: energy_score(Y[:1], wc.Samples(Y[:1, None, :])), ValueError, "two or more"),
        (
            lambda: energy_score([0.0], wc.Quantiles([0.5], np.zeros((1, 1)))),
            TypeError,
            "whole distributions",
        ),
        (lambda: energy_score(wc.DiagonalNormal(LOC, SCALE), Y), TypeError, "truth first"),
        (
            lambda: energy_score(Y[:3], wc.DiagonalNormal(LOC, SCALE)),
            ValueError,
            "same length, found 3 and 5",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
