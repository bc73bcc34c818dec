"""Passes over pairs against the whole matrix, whatever the tiles, the weights and the chunks."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wellcal as wc
from wellcal._arrays.chunks import limited
from wellcal.engines import Tiled
from wellcal.hypotests import passes
from wellcal.hypotests.methods import Bootstrap, Multiplier, Pearson
from wellcal.hypotests.setup import Setup, make_setup

ENGINES = [
    Tiled(tile=(1, 1), threads=1),
    Tiled(tile=(4, 7), threads=2),
    Tiled(tile=(7, 4), threads=2),
    Tiled(tile=(100, 100), threads=1),
]


def case(n: int = 23) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    mu = rng.normal(size=n)
    return rng.normal(mu), wc.Normal(mu, rng.uniform(0.5, 1.5, n))


def whole(setup: Setup) -> Any:
    h = np.array(setup.problem.h(setup.problem.rows, setup.problem.rows))
    np.fill_diagonal(h, 0.0)
    return h


@pytest.fixture(params=ENGINES, ids=str)
def setup(request: pytest.FixtureRequest) -> Setup:
    return make_setup(*case(), rng=0, engine=request.param)


def test_dense_is_the_whole_matrix(setup: Setup) -> None:
    assert_allclose(passes.dense(setup, "this"), whole(setup), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.int8, np.float64])
def test_quadratic_forms(setup: Setup, dtype: Any) -> None:
    h = whole(setup)
    weights = np.random.default_rng(1).integers(-3, 4, (setup.n_samples, 7)).astype(dtype)
    with limited(cache=10):  # one column at a time for the largest tiles, seven for the smallest
        found = passes.quadratic_forms(setup, weights)
    assert_allclose(found.values, np.diag(weights.T.astype(float) @ h @ weights), rtol=1e-10, atol=1e-12)
    assert found.sums.total == pytest.approx(h.sum() / 2, rel=1e-11)
    assert_allclose(found.sums.rows, h.sum(axis=1), rtol=1e-10, atol=1e-13)


def test_quadratic_forms_leave_out_pairs_of_a_cluster(setup: Setup) -> None:
    groups = np.arange(setup.n_samples) % 4
    clustered = replace(setup, groups=groups)
    h = whole(setup) * (groups[:, None] != groups[None, :])
    weights = np.random.default_rng(1).normal(size=(setup.n_samples, 2))
    found = passes.quadratic_forms(clustered, weights)
    assert_allclose(found.values, np.diag(weights.T @ h @ weights), rtol=1e-10, atol=1e-12)
    assert_allclose(found.sums.rows, h.sum(axis=1), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("columns", [0, 1, 5])
def test_products(setup: Setup, columns: int) -> None:
    h = whole(setup)
    vectors = np.random.default_rng(1).normal(size=(setup.n_samples, columns))
    found = passes.products(setup, vectors)
    assert_allclose(found.values, h @ vectors, rtol=1e-10, atol=1e-12)
    assert found.squares == pytest.approx(np.sum(h**2), rel=1e-11)
    assert_allclose(found.sums.rows, h.sum(axis=1), rtol=1e-10, atol=1e-13)


def test_pooled_draws_are_scaled_back() -> None:
    """Without a kernel on predictions that sees the pool, h is that of the draws alone."""
    rng = np.random.default_rng(2)
    n, size = 9, 4
    y, draws = rng.normal(size=n), rng.normal(size=(n, size))
    flat = wc.kernels.ExpDistance(wc.kernels.MaximumMeanDiscrepancy(wc.kernels.Gaussian()), 1e9, 2.0)
    kernel = flat @ wc.kernels.Gaussian()
    pooled = make_setup(y, wc.Samples(draws), kernel, pool=True)
    plain = make_setup(y, wc.Samples(draws), kernel)
    assert pooled.pooled == size
    vectors = rng.normal(size=(n, 2))
    assert_allclose(passes.dense(pooled, "it"), passes.dense(plain, "it"), rtol=1e-9, atol=1e-12)
    a, b = passes.products(pooled, vectors), passes.products(plain, vectors)
    assert_allclose(a.values, b.values, rtol=1e-9, atol=1e-12)
    assert a.squares == pytest.approx(b.squares, rel=1e-9)
    forms = [passes.quadratic_forms(s, vectors) for s in (pooled, plain)]
    assert_allclose(forms[0].values, forms[1].values, rtol=1e-9)
    estimates = [passes.estimate_from(s, f.sums) for s, f in zip((pooled, plain), forms, strict=True)]
    assert float(estimates[0]) == pytest.approx(float(estimates[1]), rel=1e-9)
    assert estimates[0].standard_error == pytest.approx(estimates[1].standard_error, rel=1e-9)
    assert float(estimates[1]) == pytest.approx(float(wc.skce(y, wc.Samples(draws), kernel=kernel)), rel=1e-9)


def test_estimate_is_that_of_skce(setup: Setup) -> None:
    found = passes.estimate_from(setup, passes.products(setup, np.empty((setup.n_samples, 0))).sums)
    expected = wc.skce(*case(), kernel=setup.kernel)
    assert float(found) == pytest.approx(float(expected), rel=1e-11)
    assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-10)
    assert found.n_samples == expected.n_samples


def test_a_matrix_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = make_setup(*case())
    monkeypatch.setattr(passes, "LARGEST_MATRIX", 8 * 23**2 - 1)
    with pytest.raises(ValueError, match=r"23 x 23 pairs.*pearson"):
        passes.dense(setup, "this")
    monkeypatch.setattr(passes, "LARGEST_MATRIX", 8 * 23**2)
    passes.dense(setup, "this")


def test_passes_cover_all_columns_within_the_budget() -> None:
    with limited(work=32):  # four such arrays: 1024 bytes
        assert list(passes.in_passes(10, 30, np.float64)) == [slice(0, 12), slice(12, 24), slice(24, 30)]
        assert list(passes.in_passes(10, 100, np.int8, 32)) == [slice(0, 96), slice(96, 100)]
        assert list(passes.in_passes(10_000, 2, np.float64)) == [slice(0, 1), slice(1, 2)]


@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_progress_counts_all_pairs(engine: Tiled) -> None:
    told: list[tuple[float, float]] = []
    recorder: Any = lambda what, done, total: told.append((done, total))  # noqa: E731
    setup = replace(make_setup(*case(), engine=engine), progress=recorder)
    passes.products(setup, np.empty((setup.n_samples, 0)))
    done = [count for count, _ in told]
    assert done[0] == 0
    assert done == sorted(done)
    assert {total for _, total in told} == {done[-1]} == {setup.n_samples * (setup.n_samples - 1) // 2}


@pytest.mark.parametrize("method", [Bootstrap(), Multiplier("normal"), Pearson("hutchinson", 8)])
def test_the_matrix_is_never_stored(method: Any) -> None:
    n = 2500
    setup = make_setup(*case(n), rng=0, n_resamples=20, engine=Tiled(tile=(128, 128), threads=2))
    tracemalloc.start()
    method.run(setup)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A third of it is the engine's request to the C library, which is never written to.
    assert peak < passes.matrix_bytes(n) / 2
