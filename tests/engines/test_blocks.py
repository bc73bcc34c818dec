"""Sums over blocks: by lists of pairs and by tiles, complete blocks only, shuffled on request."""

from __future__ import annotations

from typing import Any

import array_api_strict
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal._arrays.chunks import limited
from wellcal._arrays.namespaces import to_numpy
from wellcal.engines import Tiled
from wellcal.kernels import Delta, ExpDistance, Gaussian, TotalVariation, Wasserstein
from wellcal.problem.problem import Problem, prepare

from .examples import EXAMPLES, N, jax_x64

SIZES = [2, 3, 7, 64, 65, 131]
RELATIVE = 1e-12  # of the sum of |h|

_rng = np.random.default_rng(8)
_n = 131
_loc, _scale = _rng.normal(size=_n), np.exp(_rng.normal(0.0, 0.3, _n))
_y = _rng.normal(_loc, 1.2 * _scale)
_probs, _labels = _rng.dirichlet(np.ones(600), _n), _rng.integers(0, 600, _n)


def few_numbers(convert: Any = np.asarray) -> Problem:
    """Normals: a case is a few numbers, and pairs are listed."""
    kernel = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)
    return prepare(convert(_y), wc.Normal(convert(_loc), convert(_scale)), kernel)


def many_numbers(convert: Any = np.asarray) -> Problem:
    """Many classes: pairs are matrix products, and blocks are tiled."""
    kernel = ExpDistance(TotalVariation(), 0.8) @ Delta()
    return prepare(convert(_labels), wc.Categorical(convert(_probs)), kernel)


def check_blocks(problem: Problem, size: int, engine: Tiled, h: np.ndarray) -> None:
    within = np.zeros_like(h)
    for start in range(0, problem.n - size + 1, size):
        block = slice(start, start + size)
        within[block, block] = np.triu(h[block, block], 1)
    total = np.abs(within).sum()
    found = engine.blocks(problem, size)
    assert abs(float(found.total) - within.sum()) <= RELATIVE * total
    assert to_numpy(found.rows).shape == (problem.n,)
    assert np.abs(to_numpy(found.rows) - (within + within.T).sum(axis=0)).max() <= RELATIVE * total


def matrix(problem: Problem) -> np.ndarray:
    return to_numpy(problem.h(problem.rows, problem.rows))


def shapes_of(problem: Problem, size: int, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Shapes of the values of h that blocks of a size are made of."""
    found: list[tuple[int, ...]] = []
    h = Problem.h

    def noted(own: Problem, *rows: Any) -> Any:
        values = h(own, *rows)
        found.append(tuple(values.shape))
        return values

    with monkeypatch.context() as patched:
        patched.setattr(Problem, "h", noted)
        Tiled(threads=1).blocks(problem, size)
    return found


@pytest.mark.parametrize("library", [np.asarray, torch.as_tensor])
def test_blocks_take_one_call_for_many(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair of a block of two is evaluated that is not asked for."""
    assert shapes_of(few_numbers(library), 2, monkeypatch) == [(65, 1, 1)]
    for size in (3, 11, 32, 43):
        assert shapes_of(few_numbers(library), size, monkeypatch) == [(_n // size, size - 1, size - 1)]
    assert len(shapes_of(few_numbers(library), 64, monkeypatch)) == 3  # halves: not all pairs i > j


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("build", [few_numbers, many_numbers])
def test_blocks_are_parts_of_the_matrix(build: Any, size: int) -> None:
    problem = build()
    h = matrix(problem)
    for tile in ((7, 5), (64, 64), None):
        check_blocks(problem, size, Tiled(tile, threads=1), h)


@pytest.mark.parametrize("size", [2, 7, 65])
@pytest.mark.parametrize("build", [few_numbers, many_numbers])
def test_blocks_in_other_libraries(build: Any, size: int) -> None:
    """In JAX, where each size is compiled, one size of either way of visiting blocks."""
    h = matrix(build())
    check_blocks(build(torch.as_tensor), size, Tiled(), h)
    check_blocks(build(array_api_strict.asarray), size, Tiled(), h)
    if (build, size) in ((few_numbers, 7), (many_numbers, 65)):
        with jax_x64():
            check_blocks(build(jnp.asarray), size, Tiled(), h)


@pytest.mark.parametrize("library", [np.asarray, torch.as_tensor, jnp.asarray])
def test_lists_longer_than_a_chunk(library: Any) -> None:
    with limited(cache=4), jax_x64():
        problem = few_numbers(library)
        h = matrix(few_numbers())
        for size in (2, 7):
            check_blocks(problem, size, Tiled(), h)


@pytest.mark.parametrize("name", EXAMPLES)
def test_blocks_of_every_family(name: str) -> None:
    example = EXAMPLES[name]
    problem = prepare(example.targets, example.build(), expectations=example.expectations)
    h = matrix(problem)
    for size in (2, 3, 5, N):
        check_blocks(problem, size, Tiled(), h)


# -- the estimator ------------------------------------------------------------------------------------

KERNEL = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)


def block_estimate(order: Any = slice(None), **options: Any) -> wc.Estimate:
    pred = wc.Normal(_loc[order], _scale[order])
    return wc.skce(_y[order], pred, kernel=KERNEL, estimator="block", **options)


@pytest.mark.parametrize("size", SIZES)
def test_the_block_estimator_is_the_mean_of_its_blocks(size: int) -> None:
    h, count = matrix(few_numbers()), _n // size
    means = []
    for b in range(count):
        block = h[b * size : (b + 1) * size, b * size : (b + 1) * size]
        means.append(np.triu(block, 1).sum() / (0.5 * size * (size - 1)))
    found = block_estimate(block_size=size)
    assert found.value == pytest.approx(np.mean(means), rel=1e-11)
    if count > 1:
        assert found.standard_error == pytest.approx(np.std(means, ddof=1) / np.sqrt(count), rel=1e-11)
    else:
        assert found.standard_error is None
    assert found.provenance["block_size"] == size
    assert found.provenance["blocks"] == count
    assert found.provenance["dropped"] == _n - count * size
    assert not found.provenance["shuffled"]


def test_one_block_of_all_cases_is_the_unbiased_estimator() -> None:
    unbiased = wc.skce(_y, wc.Normal(_loc, _scale), kernel=KERNEL)
    assert block_estimate(block_size=_n).value == pytest.approx(unbiased.value, rel=1e-12)


def test_cases_beyond_the_last_block_do_not_matter_and_are_reported() -> None:
    whole, cut = block_estimate(block_size=7), block_estimate(slice(0, 126), block_size=7)
    assert whole.value == cut.value
    assert whole.standard_error == cut.standard_error
    assert whole.provenance["dropped"] == 5
    assert cut.provenance["dropped"] == 0
    assert "left out  the last 5 cases" in repr(whole)
    assert "left out" not in repr(cut)


def test_shuffling_is_a_permutation_of_the_cases() -> None:
    order = np.random.default_rng(5).permutation(_n)
    shuffled = block_estimate(block_size=7, rng=5)
    assert shuffled.value == block_estimate(block_size=7, rng=np.random.default_rng(5)).value
    assert shuffled.value == pytest.approx(block_estimate(order, block_size=7).value, rel=1e-12)
    assert shuffled.value != block_estimate(block_size=7).value
    assert shuffled.provenance["shuffled"]
    generator = np.random.default_rng(5)
    assert (
        block_estimate(block_size=7, rng=generator).value != block_estimate(block_size=7, rng=generator).value
    )


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_shuffling_agrees_across_libraries(library: str) -> None:
    convert = {"torch": torch.as_tensor, "jax": jnp.asarray}[library]
    expected = block_estimate(block_size=7, rng=5)
    with jax_x64():
        pred = wc.Normal(convert(_loc), convert(_scale))
        found = wc.skce(convert(_y), pred, kernel=KERNEL, estimator="block", block_size=7, rng=5)
    assert float(found) == pytest.approx(expected.value, rel=1e-12)
    assert float(found.standard_error) == pytest.approx(expected.standard_error, rel=1e-12)


def test_block_sizes_by_name_and_by_function() -> None:
    assert block_estimate().provenance["block_size"] == 11
    assert block_estimate(block_size="sqrt").provenance["block_size"] == 11
    assert block_estimate(block_size=lambda n: n // 10).provenance["block_size"] == 13


@pytest.mark.parametrize("d", [2, 3, 10])
def test_many_blocks_of_vectors(d: int) -> None:
    """So many that features, or exponents by products, are looked for."""
    rng = np.random.default_rng(d)
    loc, scale = rng.normal(size=(20_000, d)), rng.gamma(4.0, 0.25, size=(20_000, d))
    problem = prepare(rng.normal(loc, scale), wc.DiagonalNormal(loc, scale))
    size = 100
    found = Tiled().blocks(problem, size)
    parts = [problem.values(cases, cases) for cases in (slice(k, k + size) for k in range(0, 20_000, size))]
    expected = sum(float(np.triu(h, 1).sum()) for h in parts)
    assert found.total == pytest.approx(expected, abs=1e-12 * sum(float(np.abs(h).sum()) for h in parts))
