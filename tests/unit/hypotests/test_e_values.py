"""Evidence as a bet: every bet is exactly fair, for every family, by quadrature or enumeration."""

from __future__ import annotations

import math
import pickle
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import special

import wellcal as wc
from wellcal._arrays.chunks import limited
from wellcal.hypotests import e_values
from wellcal.hypotests.e_values import evidence_against
from wellcal.hypotests.likelihood_bets import EDGE, MOST_CLASSES, fair_bets, steps, why_no_bets
from wellcal.hypotests.sensitivity import smallest_error

COV = np.array([[[1.0, 0.6], [0.6, 2.0]]])

CONTINUOUS: dict[str, Any] = {
    "Normal": wc.Normal([0.4], [2.0]),
    "Laplace": wc.Laplace([0.4], [2.0]),
    "StudentT": wc.StudentT([3.0], [0.4], [2.0]),
    "Cauchy": wc.StudentT([1.0], [0.4], [2.0]),
    "Gamma": wc.Gamma([2.5], [1.5]),
    "Gamma, steep": wc.Gamma([0.4], [1.5]),
    "LogNormal": wc.LogNormal([0.2], [0.8]),
    "Beta": wc.Beta([2.0], [3.0]),
    "Beta, steep": wc.Beta([0.5], [0.7]),
    "PowerExponential": wc.PowerExponential([0.4], [2.0], [1.4]),
    "Mixture": wc.Mixture([wc.Normal([-1.0], [0.5]), wc.Laplace([2.0], [1.0])], [0.3, 0.7]),
}
DISCRETE: dict[str, tuple[Any, Any]] = {
    "Bernoulli": (wc.Bernoulli([0.03]), np.arange(2)),
    "Categorical": (wc.Categorical([[0.2, 0.7, 0.0, 0.1]]), np.arange(4)),
    "Categorical, rounded": (wc.Categorical([[0.2, 0.7, 0.0999995]]), np.arange(3)),
    "Categorical, many": (wc.Categorical(np.full((1, 30), 1.0 / 30.0)), np.arange(30)),
    "Mixture of classes": (wc.Mixture([wc.Bernoulli([0.2]), wc.Bernoulli([0.6])]), np.arange(2)),
    "Poisson, rare": (wc.Poisson([0.01]), np.arange(30.0)),
    "Poisson": (wc.Poisson([4.2]), np.arange(80.0)),
    "Poisson, many": (wc.Poisson([3e4]), np.arange(2.7e4, 3.3e4)),
    "Poisson, none": (wc.Poisson([0.0]), np.arange(3.0)),
    "NegativeBinomial": (wc.NegativeBinomial([4.2], [0.7]), np.arange(2000.0)),
    "Mixture of counts": (wc.Mixture([wc.Poisson([1.0]), wc.Poisson([9.0])]), np.arange(100.0)),
}


def log_gains(pred: Any, y: Any, n: int = 50) -> list[np.ndarray]:
    """Logarithms of gains ``(len(y), K)`` by kind, for targets of one prediction."""
    return fair_bets(pred, n)(np.asarray(y), pred[np.zeros(len(y), int)])


def gains(pred: Any, y: Any, n: int = 50) -> list[np.ndarray]:
    return [np.exp(kind) for kind in log_gains(pred, y, n)]


def logs(pred: Any, y: Any) -> np.ndarray:
    return np.asarray(pred[np.zeros(len(y), int)].log_prob(np.asarray(y)))


def panels(edges: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss and Legendre between edges."""
    nodes, weights = np.polynomial.legendre.leggauss(size)
    half = 0.5 * np.diff(edges)[:, None]
    return (np.asarray(edges)[:-1, None] + half * (1.0 + nodes)).ravel(), (half * weights).ravel()


# -- every factor has expectation one --------------------------------------------------------------


@pytest.mark.parametrize("name", CONTINUOUS)
def test_bets_on_numbers_are_fair(name: str) -> None:
    """By quadrature over the normal score x of the target, with breaks where the alternatives have some."""
    pred = CONTINUOUS[name]
    edge = float(special.ndtri(EDGE))
    x, weights = panels([-8.0, edge, 0.0, -edge, 8.0], 40)
    y = np.array([float(np.asarray(pred.quantile(float(u)))[0]) for u in special.ndtr(x)])
    if name == "Normal":  # nothing stops at an edge
        x, weights = panels([-30.0, 0.0, 30.0], 120)
        y = 0.4 + 2.0 * x
    density = np.log(weights) - 0.5 * x**2 - 0.5 * math.log(2.0 * math.pi)
    for kind in log_gains(pred, y):
        np.testing.assert_allclose(np.exp(density[:, None] + kind).sum(axis=0), 1.0, rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("name", DISCRETE)
def test_bets_on_classes_and_counts_are_fair(name: str) -> None:
    pred, y = DISCRETE[name]
    p = np.exp(logs(pred, y))
    for kind in gains(pred, y):
        expected = (p[p > 0.0] / p.sum()) @ kind[p > 0.0]
        np.testing.assert_allclose(expected, 1.0, rtol=0.0, atol=1e-8)
    if name == "Categorical, many":
        assert gains(pred, y)[1].shape[1] % MOST_CLASSES == 0


@pytest.mark.parametrize(
    "pred",
    [
        wc.DiagonalNormal([[0.3, -1.0]], [[1.0, 0.5]]),
        wc.MultivariateNormal([[0.3, -1.0]], COV),
        wc.PowerExponential([[0.3, -1.0]], shape=[1.6], cov=COV),
        wc.Mixture(
            [wc.MultivariateNormal([[0.3, -1.0]], COV), wc.DiagonalNormal([[2.0, 0.0]], [[1.0, 0.5]])],
            [0.4, 0.6],
        ),
    ],
    ids=lambda pred: type(pred).__name__,
)
def test_bets_on_vectors_are_fair(pred: Any) -> None:
    """By the rule of rectangles on a plane, which is exact to rounding for normals."""
    x = np.linspace(-22.0, 22.0, 265)
    y = np.stack([axis.ravel() for axis in np.meshgrid(x, x)], axis=1)
    density = logs(pred, y)[:, None] + 2.0 * math.log(x[1] - x[0])
    for kind in log_gains(pred, y, n=40):
        narrow = kind[:, kind.max(axis=0) < 500.0]  # the rest reaches beyond the plane
        np.testing.assert_allclose(np.exp(density + narrow).sum(axis=0), 1.0, rtol=0.0, atol=2e-3)
        assert narrow.shape[1] > 0.6 * kind.shape[1]


def test_bets_on_compositions_are_fair() -> None:
    """One coordinate after the other is beta distributed, and has a normal score."""
    x, weights = panels([-8.0, 0.0, 8.0], 40)
    u, v = (special.ndtr(axis).ravel() for axis in np.meshgrid(x, x))
    density = np.log(weights) - 0.5 * x**2 - 0.5 * math.log(2.0 * math.pi)
    first = special.betaincinv(0.9, 3.5, u)
    second = (1.0 - first) * special.betaincinv(1.5, 2.0, v)
    y = np.stack([first, second, 1.0 - first - second], axis=1)
    (kind,) = log_gains(wc.Dirichlet([[0.9, 1.5, 2.0]]), y, n=400)
    small = np.abs(steps("temperature", 400)) < 0.6
    total = np.add.outer(density, density).ravel()[:, None] + kind[:, small]
    np.testing.assert_allclose(np.exp(total).sum(axis=0), 1.0, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("values", [[[0.1, 0.7, 0.7, -2.0]], [[3.0]], [[0.0, 0.0]]])
def test_ranks_among_draws_are_fair(values: Any) -> None:
    """Target and draws are exchangeable: each of the pool is the target once, ties included."""
    pool = np.append(np.asarray(values)[0], 0.7)
    rest = [np.delete(pool, j)[None] for j in range(len(pool))]
    found = [gains(wc.Samples(draws), [pool[j]]) for j, draws in enumerate(rest)]
    for kind in zip(*found, strict=True):
        np.testing.assert_allclose(np.mean(kind, axis=0), 1.0, rtol=1e-9)


def test_ranks_of_coordinates_are_fair() -> None:
    pool = np.random.default_rng(0).normal(size=(6, 2))
    found = [gains(wc.Samples(np.delete(pool, j, 0)[None]), pool[j][None]) for j in range(6)]
    for kind in zip(*found, strict=True):
        np.testing.assert_allclose(np.mean(kind, axis=0), 1.0, rtol=1e-9)


def test_bins_between_quantiles_and_atoms_are_fair() -> None:
    pred = wc.Quantiles([0.1, 0.5, 0.9], [[-1.0, 0.0, 3.0]])
    for kind in gains(pred, [-2.0, -0.5, 1.0, 9.0]):
        np.testing.assert_allclose(pred.bin_probs() @ kind, 1.0, rtol=1e-9)
    atoms = wc.Samples([[1.0, 2.0, 5.0]], weights=[[0.2, 0.3, 0.5000004]], kind="atoms")
    p = np.asarray(atoms.weights)[0]
    for kind in gains(atoms, [1.0, 2.0, 5.0]):
        np.testing.assert_allclose((p / p.sum()) @ kind, 1.0, rtol=1e-9)


def test_targets_that_underflow_are_no_evidence() -> None:
    """Half of these targets are smaller than any number, and zero."""
    pred = wc.Gamma(np.full(400, 1e-3), 1.0)
    y = pred.sample(np.random.default_rng(3))
    assert 0.3 < np.mean(y == 0.0) < 0.7
    assert evidence_against(y, pred).log_e < math.log(100.0)


# -- the mixture of bets ---------------------------------------------------------------------------


def test_expectation_of_the_whole_by_enumeration() -> None:
    pred = wc.Bernoulli([0.1, 0.5, 0.8])
    p = np.asarray(pred.probs)
    total = sum(
        math.exp(evidence_against(np.array(y), pred).log_e) * float(np.prod(np.where(y, p, 1.0 - p)))
        for y in product([0, 1], repeat=3)
    )
    assert total == pytest.approx(1.0, rel=1e-12)


def test_chunks_change_nothing() -> None:
    rng = np.random.default_rng(5)
    pred = wc.Categorical(rng.dirichlet(np.ones(25), 60))
    y = pred.check_targets(pred.sample(rng))
    whole = evidence_against(y, pred).log_e
    with limited(work=5000):
        assert evidence_against(y, pred).log_e == pytest.approx(whole, rel=1e-12)


def test_a_binary_model_of_slope_one_point_four() -> None:
    """Over-confident by a factor of 1.4 in its logits: the case is clear, and a floor does not hide it."""
    rng = np.random.default_rng(0)
    logit = 1.5 * rng.normal(size=2000)
    y = rng.random(2000) < 1.0 / (1.0 + np.exp(-logit / 1.4))
    found = evidence_against(y.astype(int), wc.Bernoulli(1.0 / (1.0 + np.exp(-logit)))).log_e
    assert found > 5.0 * math.log(10.0)


def test_excluded_targets_are_infinite_evidence() -> None:
    assert evidence_against(np.array([0, 1]), wc.Bernoulli([0.5, 0.0])).log_e == math.inf
    points = wc.Normal([0.0, 1.0, 2.0], [0.0, 0.0, 1.0])
    assert evidence_against(np.array([0.0, 1.0, 2.0]), points).log_e < 1.0
    assert math.exp(min(evidence_against(np.array([0.0, 1.1, 2.0]), points).log_e, 700.0)) > 1e300


# -- where there is none ---------------------------------------------------------------------------


def test_reasons_why_there_is_none() -> None:
    y = np.zeros(4)
    pred = wc.Normal(y, 1.0)
    assert "cluster" in str(evidence_against(y, pred, np.array([0, 0, 1, 2])).reason)
    assert evidence_against(y, pred, np.arange(4)).reason is None
    between = wc.Samples(np.ones((4, 3)), kind="atoms")
    assert "between atoms" in str(why_no_bets(y, between))
    assert "objects" in str(why_no_bets(np.array(["a"]), wc.Samples([["a", "b"]])))
    edge = why_no_bets(np.array([[0.0, 1.0]]), wc.Dirichlet([[1.0, 1.0]]))
    assert "zero" in str(edge)


def test_results_hold_it() -> None:
    rng = np.random.default_rng(1)
    mu = rng.normal(size=80)
    found = wc.calibration_test(mu + 1.0 + rng.normal(size=80), wc.Normal(mu, 1.0), rng=0, n_resamples=99)
    assert found.e_value == pytest.approx(math.exp(found.log_e_value))
    assert found.e_value > 1e6
    assert "e-value" in repr(found)
    again = wc.hypotests.TestResult.from_json(found.to_json())
    assert again == found
    assert again.log_e_value == found.log_e_value
    clustered = wc.calibration_test(
        mu, wc.Normal(mu, 1.0), groups=np.repeat(np.arange(20), 4), rng=0, n_resamples=99
    )
    assert math.isnan(clustered.e_value)
    assert "cluster" in clustered.provenance["no e-value"]
    assert wc.hypotests.TestResult.from_json(clustered.to_json()) == clustered


def test_they_are_found_when_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, of the data that were tested, and in another process too; so is the error that was missed."""
    asked: list[str] = []

    def counted(name: str, function: Any) -> Any:
        def call(*given: Any, **options: Any) -> Any:
            asked.append(name)
            return function(*given, **options)

        return call

    monkeypatch.setattr(e_values, "evidence_against", counted("evidence", evidence_against))
    module = sys.modules["wellcal.hypotests._calibration_test"]
    monkeypatch.setattr(module, "smallest_error", counted("missed", smallest_error))
    pred = wc.Normal(np.zeros(60), np.ones(60))
    y = pred.sample(rng=0)
    expected = evidence_against(y.copy(), pred).log_e
    found = wc.calibration_test(y, pred, rng=0, n_resamples=99)
    other = pickle.dumps(found)
    y += 5.0
    assert found.pvalue > 0.05
    assert asked == []
    assert found.log_e_value == expected
    assert found.smallest_error is not None
    assert "no e-value" not in found.provenance
    assert str(found.smallest_error) in repr(found)
    assert asked == ["evidence", "missed"]
    assert pickle.loads(other) == found == pickle.loads(pickle.dumps(found))
    assert type(found).from_json(found.to_json()) == found
