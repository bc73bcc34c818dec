"""Problems as differences of features, against the closed forms and against mpmath."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

import wellcal as wc
from wellcal._arrays.chunks import limited
from wellcal._arrays.compiled import l1_distances
from wellcal._arrays.namespaces import namespace
from wellcal._arrays.ops import ops_for
from wellcal.engines import Tiled
from wellcal.expectations.distances import EmbeddingDistance
from wellcal.expectations.embedding import LOST, Features, principal_components
from wellcal.expectations.separable import SeparableForm
from wellcal.kernels import (
    Delta,
    ExpDistance,
    Gaussian,
    Kernel,
    Laplacian,
    TotalVariation,
    Wasserstein,
)
from wellcal.problem import feature_form
from wellcal.problem.feature_form import in_features
from wellcal.problem.problem import FeatureProblem, Problem, prepare, some_cases
from wellcal.problem.weights import check_weights, weighted_problem

N = 240
RELATIVE = 1e-12  # of the sum of |h|
MANY = 1e12  # pairs, for which features are worth any effort
ON_NORMALS = ExpDistance(Wasserstein(), 0.8)
NARROW = ExpDistance(Wasserstein(), 0.3)
USUAL = ON_NORMALS @ Gaussian(0.9)


@pytest.fixture(autouse=True)
def few_cases_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_form, "FEWEST", 50)


def _cases(seed: int = 0) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=N), 0.6 * np.exp(0.3 * rng.normal(size=N))


def _normals(kernel: Kernel = USUAL, shift: float = 0.0) -> Problem:
    rng, loc, scale = _cases()
    return prepare(shift + rng.normal(loc, scale), wc.Normal(shift + loc, scale), kernel)


def _laplace() -> Problem:
    rng, loc, scale = _cases()
    return prepare(rng.laplace(loc, scale), wc.Laplace(loc, scale), ON_NORMALS @ Gaussian(0.9))


def _mixture() -> Problem:
    rng, loc, scale = _cases()
    pred = wc.Mixture([wc.Normal(loc, scale), wc.Normal(loc + 1.0, scale)], weights=[0.3, 0.7])
    return prepare(rng.normal(loc, scale), pred)


def _ensembles() -> Problem:
    rng, loc, scale = _cases()
    return prepare(rng.normal(loc, scale), wc.Samples(rng.normal(loc, scale, (20, N)).T))


def _lowered() -> Problem:
    rng, _, scale = _cases()
    return prepare(rng.gamma(3.0, scale), wc.Gamma(np.full(N, 3.0), scale))


def _counts() -> Problem:
    rng, _, scale = _cases()
    return prepare(rng.poisson(40.0 * scale), wc.NegativeBinomial(40.0 * scale, np.full(N, 0.3)))


def _support() -> Problem:
    rng, _, _ = _cases()
    probabilities = rng.dirichlet(np.ones(40), size=N)
    y = np.arange(40.0)[rng.integers(0, 40, N)]
    kernel = ExpDistance(TotalVariation(), 0.5) @ Gaussian(8.0)
    return prepare(y, wc.Categorical(probabilities, support=np.arange(40.0)), kernel)


def _weighted() -> Problem:
    return weighted_problem(_normals(), check_weights(np.random.default_rng(1).random(N), N, None))


def _vectors() -> Problem:
    rng, _, _ = _cases()
    loc, scale = rng.normal(size=(N, 18)), 0.6 * np.exp(0.3 * rng.normal(size=(N, 18)))
    return prepare(rng.normal(loc, scale), wc.DiagonalNormal(loc, scale))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "normals": _normals,
    "far from the origin": lambda: _normals(shift=1e6),
    "sum": lambda: _normals(ON_NORMALS @ (Gaussian(1.0) + 0.3 * Gaussian(0.4))),
    "two terms": lambda: _normals(ON_NORMALS @ Gaussian() + 2.0 * NARROW @ Gaussian(0.5)),
    "some features": lambda: _normals(ON_NORMALS @ Gaussian() + ON_NORMALS @ Laplacian()),
    "weighted": _weighted,
    "Laplace": _laplace,
    "mixture": _mixture,
    "ensembles": _ensembles,
    "lowered": _lowered,
    "counts": _counts,
    "support": _support,
}  # fmt: skip


def _found(problem: Problem) -> FeatureProblem:
    found = in_features(problem, MANY)
    assert found is not None
    return found


def _matrix(problem: Problem) -> np.ndarray:
    return np.asarray(problem.values(slice(0, problem.n), slice(0, problem.n)))


@pytest.mark.parametrize("name", PROBLEMS)
def test_products_of_differences_are_h(name: str) -> None:
    problem = PROBLEMS[name]()
    found = _found(problem)
    h, product = np.triu(_matrix(problem), 1), np.triu(_matrix(found.problem), 1)
    size = np.abs(h).sum()
    assert abs(product.sum() - h.sum()) <= RELATIVE * size
    assert np.abs((product - h).sum(axis=0)).max() <= RELATIVE * size
    assert np.abs(product - h).max() <= 1e-10 * np.abs(h).mean() * N  # each of them, too
    assert 0 < found.size < 110
    assert found.lost <= LOST


@pytest.mark.parametrize("name", ["normals", "mixture", "counts", "weighted"])
def test_order_and_tiles_change_nothing(name: str) -> None:
    problem = PROBLEMS[name]()
    size = np.abs(_matrix(problem)).sum()
    whole = Tiled(tile=(N, N), threads=1).triangle(_found(problem).problem)
    order = np.random.default_rng(3).permutation(N)
    for other in (some_cases(problem, order), some_cases(_found(problem).problem, order)):
        moved = _found(other).problem if in_features(other, MANY) else other
        sums = Tiled(tile=(7, 33), threads=2).triangle(moved)
        assert abs(sums.total - whole.total) <= RELATIVE * size
        assert np.abs(sums.rows - whole.rows[order]).max() <= RELATIVE * size


def test_what_four_terms_lose_differences_keep() -> None:
    # Predictions that are nearly certain and nearly right: h is 1e-12 of its terms.
    rng, loc, _ = _cases()
    y, scale, length = loc + 1e-3 * rng.normal(size=N), np.full(N, 1e-3), 0.9
    problem = prepare(y, wc.Normal(loc, scale), ON_NORMALS @ Gaussian(length))
    products = _matrix(_found(problem).problem)
    mp: Any = mpmath.mp.clone()
    mp.dps = 40

    def term(a: float, b: float, variance: Any) -> Any:
        spread = 1 + variance / mp.mpf(length) ** 2
        return mp.exp(-((mp.mpf(a) - mp.mpf(b)) ** 2) / (2 * mp.mpf(length) ** 2 * spread)) / mp.sqrt(spread)

    def h(i: int, j: int) -> Any:
        p, q, x, z = (float(value) for value in (loc[i], loc[j], y[i], y[j]))
        v = mp.mpf(float(scale[0])) ** 2
        pairing = term(p, q, 2 * v) - term(p, z, v) - term(x, q, v) + term(x, z, mp.mpf(0))
        return pairing * mp.exp(-abs(mp.mpf(p) - mp.mpf(q)) / mp.mpf(0.8))

    for i, j in ((0, 1), (2, 3), (5, 40), (17, 90)):
        assert abs(mp.mpf(float(products[i, j])) / h(i, j) - 1) < 1e-8


def test_exponents_of_vectors_are_products() -> None:
    problem = _vectors()
    found = _found(problem)
    h, product = _matrix(problem), _matrix(found.problem)
    assert not np.array_equal(h, product)
    assert abs(np.triu(product - h, 1).sum()) <= RELATIVE * np.abs(np.triu(h, 1)).sum()
    assert np.abs(product - h).max() <= 1e-13
    assert np.abs(found.problem.diagonal() - np.diag(h)).max() <= 1e-13
    assert found.describe() == {}


def test_a_case_far_from_all_others_is_not_left_out() -> None:
    rng, loc, scale = _cases()
    y = rng.normal(loc, scale)
    y[7] = 300.0
    problem = prepare(y, wc.Normal(loc, scale), ON_NORMALS @ Gaussian(0.9))
    found = _found(problem)
    assert np.abs(_matrix(found.problem) - _matrix(problem))[7].max() <= RELATIVE


def test_a_case_alone_in_its_direction_keeps_it() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(4000, 4)) @ rng.normal(size=(4, 60))
    x[1234] = 0.0
    x[1234, 59] = 1.0
    with limited(cache=5000):  # directions come from many chunks
        values, lost = principal_components(Features(4000, 60, lambda cases: x[cases], 1.0))
    assert values.shape[1] == 5
    assert lost <= LOST
    assert np.abs(np.sum(values**2, axis=1) - np.sum(x**2, axis=1)).max() < 1e-11


def test_fewer_cases_than_features() -> None:
    x = np.random.default_rng(0).normal(size=(50, 20)) @ np.random.default_rng(1).normal(size=(20, 300))
    values, lost = principal_components(Features(50, 300, lambda cases: x[cases], 1.0))
    assert values.shape == (50, 20)
    assert lost <= LOST
    assert np.abs(values @ values.T - x @ x.T).max() < 1e-11 * np.abs(x @ x.T).max()


def test_features_that_fill_all_directions_stay_as_they_are() -> None:
    x = np.random.default_rng(0).normal(size=(300, 20))
    found = principal_components(Features(300, 20, lambda cases: x[cases], 1.0))
    assert found.lost == 0.0
    assert np.array_equal(found.values, x)


def test_predictions_that_are_their_targets_leave_nothing() -> None:
    _, loc, _ = _cases()
    pred = wc.Samples(np.repeat(loc[:, None], 8, axis=1), kind="atoms")
    found = _found(prepare(loc, pred, ON_NORMALS @ Gaussian(0.9)))
    assert found.lost == 0.0
    assert np.abs(_matrix(found.problem)).max() < 1e-30


def test_where_there_are_no_features_closed_forms_stay() -> None:
    rng, loc, scale = _cases()
    y = rng.normal(loc, scale)
    assert in_features(prepare(y, wc.Normal(loc, scale), ON_NORMALS @ Laplacian()), MANY) is None
    wide = prepare(y, wc.Normal(loc, np.exp(9.0 * scale)), ON_NORMALS @ Gaussian(0.01))
    assert in_features(wide, MANY) is None
    spread = prepare(y * 1e8, wc.Normal(loc * 1e8, scale), ON_NORMALS @ Gaussian())
    assert in_features(spread, MANY) is None
    tensors = [torch.as_tensor(value) for value in (y, loc, scale)]
    assert in_features(prepare(tensors[0], wc.Normal(*tensors[1:]), ON_NORMALS @ Gaussian()), MANY) is None
    labels = prepare(
        rng.integers(0, 3, N),
        wc.Categorical(rng.dirichlet(np.ones(3), N)),
        ExpDistance(TotalVariation()) @ Delta(),
    )
    assert in_features(labels, MANY) is None


def _in_a_plane(name: str) -> Problem:
    rng = np.random.default_rng(8)
    n = 900
    loc, scale = rng.normal(size=(n, 2)), 0.6 * np.exp(0.3 * rng.normal(size=(n, 2)))
    pred: Any = wc.DiagonalNormal(loc, scale)
    if name == "mixtures":
        pred = wc.Mixture([pred, wc.DiagonalNormal(loc + 1.0, scale)])
    elif name == "ensembles":
        pred = wc.Samples(rng.normal(loc, scale, (20, n, 2)).transpose(1, 0, 2))
    return prepare(rng.normal(loc, scale), pred)


@pytest.mark.parametrize("name", ["mixtures", "ensembles"])
def test_measures_in_a_plane_meet_in_hundreds_of_features(name: str) -> None:
    problem = _in_a_plane(name)
    found = _found(problem)
    assert 100 < found.size < 600  # of two thousand and more
    assert found.lost <= LOST
    exact = _matrix(problem)
    assert np.abs(_matrix(found.problem) - exact).max() < RELATIVE * np.abs(exact).sum()
    assert np.abs(_matrix(found.problem) - exact).max() < 1e-11
    assert abs(_matrix(found.problem).sum() - exact.sum()) < RELATIVE * np.abs(exact).sum()
    assert in_features(_in_a_plane(name), 1e4) is None  # few pairs are not worth a look


def test_normals_in_a_plane_meet_in_products_of_exponents() -> None:
    problem = _in_a_plane("normals")
    found = _found(problem)
    assert isinstance(found.problem.terms[0].on_targets, SeparableForm)
    exact = _matrix(problem)
    assert np.abs(_matrix(found.problem) - exact).max() < 1e-14


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("classes", [1, 5, 7, 8, 90, 129])
def test_compiled_distances_are_those_of_scipy(
    classes: int, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr("wellcal._arrays.compiled.LOADING", 0.0)
    a, b = (np.random.default_rng(k).dirichlet(np.ones(classes), size=40 + k).astype(kind) for k in (1, 3))
    exact = cdist(a, b, "cityblock").astype(kind)
    assert np.array_equal(l1_distances(a, b), exact)
    a.flags.writeable = False
    assert np.array_equal(l1_distances(a[::-1], b), exact[::-1])


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("degree", [1.0, 2.0])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_differences_by_products_are_differences_to_the_last_digit(
    size: int, degree: float, kind: type
) -> None:
    rng = np.random.default_rng(size)
    a, b = (rng.normal(size=(m, size)) * 10.0 ** rng.uniform(-7, 7, (m, size)) for m in (70, 80))
    a, b = a.astype(kind), np.concatenate([b, a[:9] * (1.0 + 1e-6)]).astype(kind)
    found = EmbeddingDistance(size, degree)(ops_for(namespace(a)), a, b)
    each = [np.subtract.outer(a[:, c], b[:, c]) for c in range(size)]
    raised = [np.abs(difference) if degree == 1.0 else difference * difference for difference in each]
    assert found.dtype == kind
    assert np.array_equal(found, sum(raised[1:], start=raised[0]))


def test_results_say_how_many_features_and_what_was_lost() -> None:
    rng = np.random.default_rng(0)
    loc = rng.normal(size=1200)
    y, pred = rng.normal(loc), wc.Normal(loc, np.ones(1200))
    found = wc.skce(y, pred)
    assert 10 < found.provenance["features"] < 60
    assert found.provenance["lost_energy"] <= LOST
    assert "features" not in wc.skce(y[:40], pred[:40]).provenance
