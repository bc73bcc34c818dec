"""Sums over tiles against the whole matrix, for tiles and threads of all sizes."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal._arrays.chunks import tile_shape, triangle_tiles
from wellcal._arrays.namespaces import to_numpy
from wellcal.engines import Tiled
from wellcal.engines.reductions import RowAccumulator
from wellcal.kernels import Callable, Delta, ExpDistance, Gaussian, Wasserstein
from wellcal.problem.problem import Problem, prepare

from .examples import EXAMPLES, N, jax_x64

TILES = [(1, 1), (1, 3), (7, 5), (64, 64), (1000, 1000), None]
RELATIVE = 1e-12  # of the sum of |h|


@cache
def problem_of(name: str) -> Problem:
    example = EXAMPLES[name]
    return prepare(example.targets, example.build(), expectations=example.expectations)


def normals(n: int, convert: Any = np.asarray, seed: int = 3) -> Problem:
    rng = np.random.default_rng(seed)
    loc, scale = rng.normal(size=n), np.exp(rng.normal(0.0, 0.3, n))
    kernel = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)
    return prepare(convert(rng.normal(loc, 1.3 * scale)), wc.Normal(convert(loc), convert(scale)), kernel)


def matrix(problem: Problem) -> np.ndarray:
    """h for all pairs at once."""
    return to_numpy(problem.h(problem.rows, problem.rows))


def check_triangle(problem: Problem, engine: Tiled, h: np.ndarray) -> None:
    above = np.triu(h, 1)
    size = np.abs(above).sum()
    found = engine.triangle(problem)
    assert abs(float(found.total) - above.sum()) <= RELATIVE * size
    assert np.abs(to_numpy(found.rows) - (above + above.T).sum(axis=0)).max() <= RELATIVE * size


@pytest.mark.parametrize("name", EXAMPLES)
def test_tiles_of_all_sizes_give_the_sum_over_the_matrix(name: str) -> None:
    problem = problem_of(name)
    h = matrix(problem)
    assert h.shape == (N, N)
    for tile in TILES if name in ("Normal", "Categorical", "Mixture") else [(1, 3), (7, 5), None]:
        check_triangle(problem, Tiled(tile, threads=1), h)


@pytest.mark.parametrize("name", EXAMPLES)
def test_matching_rows_give_the_diagonal_of_the_matrix(name: str) -> None:
    problem = problem_of(name)
    h = matrix(problem)
    size = np.abs(h).mean()
    assert np.abs(problem.own_values() - np.diag(h)).max() <= RELATIVE * size
    assert np.abs(h - h.T).max() <= RELATIVE * size


@pytest.mark.parametrize("tile", TILES)
def test_threads_change_nothing(tile: tuple[int, int] | None) -> None:
    n = 40 if tile in ((1, 1), (1, 3)) else 301
    problem = normals(n)
    alone = Tiled(tile, threads=1).triangle(problem)
    check_triangle(problem, Tiled(tile, threads=1), matrix(problem))
    for threads in (2, 4):
        together = Tiled(tile, threads=threads).triangle(problem)
        assert together.total == alone.total
        assert np.array_equal(together.rows, alone.rows)
        for size in (2, 7, n // 2):
            first, second = (Tiled(tile, threads=t).blocks(problem, size) for t in (1, threads))
            assert first.total == second.total
            assert np.array_equal(first.rows, second.rows)


def test_as_many_threads_as_the_environment_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(4)), raising=False)
    engine, (y, pred) = Tiled((8, 4)), (np.zeros(9), wc.Normal(np.zeros(9), np.ones(9)))
    for said, threads in {"1": 1, "3": 3, "2,1": 2, "9": 4, "0": 4, "": 4, "many": 4}.items():
        monkeypatch.setenv("OMP_NUM_THREADS", said)
        assert wc.skce(y, pred, engine=engine).provenance["threads"] == threads
    assert wc.skce(y, pred, engine=Tiled((8, 4), threads=7)).provenance["threads"] == 7
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert wc.skce(y, pred, engine=engine).provenance["threads"] == 4


def test_many_tiles_are_bounded_in_flight() -> None:
    problem = normals(120)
    check_triangle(problem, Tiled((2, 3), threads=3), matrix(problem))


@pytest.mark.parametrize("tile", [(7, 5), (64, 64), None])
def test_tensors_and_jax_visit_the_same_pairs(tile: tuple[int, int] | None) -> None:
    h = matrix(normals(90))
    check_triangle(normals(90, torch.as_tensor), Tiled(tile), h)
    with jax_x64():
        check_triangle(normals(90, jnp.asarray), Tiled(tile), h)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_cases(n: int) -> None:
    h = matrix(normals(n))
    for convert in (np.asarray, torch.as_tensor):
        check_triangle(normals(n, convert), Tiled(), h)
    with jax_x64():
        check_triangle(normals(n, jnp.asarray), Tiled(), h)


def test_estimates_of_few_cases() -> None:
    y, loc, scale = np.array([0.3, -1.0, 2.0]), np.array([0.0, 0.4, 1.0]), np.array([1.0, 0.5, 2.0])
    kernel = ExpDistance(Wasserstein()) @ Gaussian()
    h = matrix(prepare(y, wc.Normal(loc, scale), kernel))

    def estimate(n: int, **options: Any) -> wc.Estimate:
        return wc.skce(y[:n], wc.Normal(loc[:n], scale[:n]), kernel=kernel, **options)

    assert estimate(1, estimator="biased").value == pytest.approx(h[0, 0], rel=1e-14)
    assert estimate(1, estimator="biased").standard_error is None
    assert estimate(2).value == pytest.approx(h[0, 1], rel=1e-14)
    assert estimate(2).standard_error is None
    assert estimate(2, estimator="biased").value == pytest.approx(h[:2, :2].mean(), rel=1e-14)
    assert estimate(3).value == pytest.approx((h[0, 1] + h[0, 2] + h[1, 2]) / 3, rel=1e-14)
    means = np.array([h[0, 1] + h[0, 2], h[0, 1] + h[1, 2], h[0, 2] + h[1, 2]]) / 2
    assert estimate(3).standard_error == pytest.approx(2 * means.std(ddof=1) / np.sqrt(3), rel=1e-13)
    block = estimate(3, estimator="block", block_size=2)
    assert block.value == pytest.approx(h[0, 1], rel=1e-14)
    assert (block.provenance["blocks"], block.provenance["dropped"]) == (1, 1)
    for options in ({}, {"estimator": "block"}):
        with pytest.raises(ValueError, match="needs at least 2 cases, found 1"):
            estimate(1, **options)


# -- options ------------------------------------------------------------------------------------------


def test_engines_say_how_they_ran() -> None:
    pred = EXAMPLES["Normal"].build()
    provenance = wc.skce(EXAMPLES["Normal"].targets, pred, engine=Tiled((8, 4), threads=3)).provenance
    assert (provenance["engine"], provenance["tile"], provenance["threads"]) == ("tiled", (8, 4), 3)
    tensors = EXAMPLES["Normal"].build(torch.as_tensor)
    provenance = wc.skce(EXAMPLES["Normal"].targets, tensors, engine="tiled").provenance
    assert "threads" not in provenance
    assert min(provenance["tile"]) > 8


@pytest.mark.parametrize("options", [{"tile": (0, 3)}, {"tile": (3,)}, {"threads": 0}])
def test_impossible_options_are_errors(options: Any) -> None:
    with pytest.raises(ValueError, match=r"two positive numbers|whole number of at least 1, found 0"):
        Tiled(**options)


def test_unknown_engines_are_errors() -> None:
    with pytest.raises(ValueError, match="unknown engine 'fast'; known are auto, tiled"):
        wc.skce(EXAMPLES["Normal"].targets, EXAMPLES["Normal"].build(), engine="fast")


def test_a_users_function_runs_once_at_a_time() -> None:
    running: list[int] = []

    def kernel(P: Any, Q: Any) -> np.ndarray:
        running.append(1)
        assert len(running) == 1
        value = np.exp(-np.abs(P.loc[:, None] - Q.loc[None, :]))
        running.pop()
        return value

    example = EXAMPLES["Normal"]
    found = wc.skce(example.targets, example.build(), kernel=Callable(kernel) @ Gaussian())
    assert found.provenance["threads"] == 1


def test_a_users_function_may_look_at_values_of_jax_arrays() -> None:
    def matches(a: Any, b: Any) -> float:
        return float(a == b)  # a traced value has no truth

    example = EXAMPLES["Categorical"]
    kernel = Callable(lambda P, Q: P.probs @ Q.probs.T) @ Callable(matches)
    expected = wc.skce(example.targets, example.build(), kernel=kernel)
    assert expected.value == pytest.approx(
        wc.skce(example.targets, example.build(), kernel=kernel.predictions @ Delta()).value
    )
    with jax_x64():
        found = wc.skce(jnp.asarray(example.targets), example.build(jnp.asarray), kernel=kernel)
        assert isinstance(found.value, jax.Array)
        assert float(found) == pytest.approx(expected.value, rel=1e-12)


# -- tiling and reductions ----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (5, 2), (4, 4), (9, 20)])
@pytest.mark.parametrize("stop", [3, 4, 5, 10, 16])
def test_tiles_cover_each_pair_once(shape: tuple[int, int], stop: int) -> None:
    visits = np.zeros((stop, stop), dtype=int)
    for i, j in triangle_tiles(3, stop, *shape):
        assert i.stop - i.start <= shape[0]
        assert j.stop - j.start <= shape[1]
        above = np.less.outer(np.arange(i.start, i.stop), np.arange(j.start, j.stop))
        assert above.any()
        visits[i.index, j.index] += above
    expected = np.triu(np.ones((stop, stop), dtype=int), 1)
    expected[:3] = 0
    assert np.array_equal(visits, expected)


def test_tiles_shrink_with_what_a_pair_costs() -> None:
    areas = []
    for width in (1, 4, 16, 64, 1000, 10**6):
        height, across = tile_shape(width, 65_536)
        assert min(height, across) >= 8
        areas.append(height * across)
    assert areas == sorted(areas, reverse=True)
    assert areas[0] == 65_536


def test_accumulators_lose_nothing() -> None:
    sums = RowAccumulator(2)
    for k in range(20_000):
        value = 1e16 if k == 0 else -1e16 if k == 19_999 else 1.0
        sums.add(slice(0, 1), slice(1, 2), np.array([value]), np.array([0.0]))
    assert sums.result().total == 19_998.0
