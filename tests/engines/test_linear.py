"""Sums without the square, against all pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import wellcal as wc
from benchmarks import sum_settings
from wellcal.engines import Linear, Tiled, choose_engine, linear
from wellcal.engines.error_control import TOLERANCE, null_scale
from wellcal.engines.grid_sums import Grid, sum_on_grid
from wellcal.engines.kernel_sums import DecayKernel, KernelSum, PairSum, sum_pairs
from wellcal.engines.line_sums import LineSum
from wellcal.engines.nystrom import Nystrom
from wellcal.kernels import (
    Delta,
    ExpDistance,
    Gaussian,
    Hellinger,
    Kernel,
    Laplacian,
    MaximumMeanDiscrepancy,
    TotalVariation,
    Wasserstein,
)
from wellcal.problem.feature_form import closed_forms
from wellcal.problem.problem import Problem, prepare

# -- points -------------------------------------------------------------------------------------------


def _rows_of_all_pairs(x: np.ndarray, phi: np.ndarray, kernel: DecayKernel) -> np.ndarray:
    h = kernel(((x[:, None] - x) ** 2).sum(axis=2)) * (phi @ phi.T)
    np.fill_diagonal(h, 0.0)
    return h.sum(axis=1)


@pytest.mark.parametrize("rate", [0.01, 1.0, 3000.0])
def test_running_sums_are_sums_over_all_pairs(rate: float) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=400), np.round(rng.normal(size=200), 1), [50.0, -80.0]])[:, None]
    phi = rng.normal(size=(len(x), 3))
    rows = sum_pairs(LineSum(rate), x, phi).rows
    size = np.exp(-rate * np.abs(x - x.T)) * np.abs(phi @ phi.T)
    assert np.abs(rows - _rows_of_all_pairs(x, phi, DecayKernel(1.0 / rate, 1.0))).max() <= 1e-14 * size.sum()


def _points(name: str, n: int = 2000) -> np.ndarray:
    rng = np.random.default_rng(2)
    x = np.stack([rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))], axis=1)
    if name == "a cluster":
        x[: 9 * n // 10] = 1e-6 * x[: 9 * n // 10] + 0.5
    elif name == "ties":
        x[: 9 * n // 10] = np.round(x[: 9 * n // 10], 1)
    elif name == "a curve":
        x[:, 1] = np.abs(x[:, 0])
    elif name == "heavy tails":
        x[:, 0] = 10.0 * rng.standard_cauchy(n)
    elif name == "a line":
        x[:, 1] = 0.0
    return x


@pytest.mark.parametrize("name", ["usual", "a cluster", "ties", "a curve", "heavy tails", "a line"])
@pytest.mark.parametrize("length", [0.05, 0.7, 100.0])
@pytest.mark.parametrize("library", ["NumPy", "PyTorch"])
def test_sums_on_a_grid_are_sums_over_all_points(name: str, length: float, library: str) -> None:
    x, kernel = _points(name), DecayKernel(length, 1.0)
    phi = np.random.default_rng(3).normal(size=(len(x), 4))
    exact = _rows_of_all_pairs(x, phi, kernel)
    arrays: Any = (x, phi) if library == "NumPy" else (torch.tensor(x), torch.tensor(phi))
    found = sum_on_grid(*arrays, kernel)
    assert found is not None
    rows = np.asarray(found.rows)
    unit = np.sqrt(0.5 * len(x) * np.var(exact))
    # 2,000 cases in a window of 200 length scales are a few for each: the kink of the kernel shows.
    assert 0.5 * abs(rows.sum() - exact.sum()) <= 1e-2 * unit
    assert abs(found.bias) <= 2e-2 * unit
    assert np.abs(rows - exact).max() <= 1e-2 * np.abs(exact).max()


def test_a_finer_grid_is_nearer_and_half_of_it_tells_how_near() -> None:
    x, kernel = _points("usual"), DecayKernel(0.7, 1.0)
    phi = 1.0 + np.random.default_rng(3).normal(size=(len(x), 2))
    exact = _rows_of_all_pairs(x, phi, kernel)
    errors: list[float] = []
    for cells in (1 << 10, 1 << 14, 1 << 18):
        found = sum_on_grid(x, phi, kernel, cells=cells)
        assert found is not None
        errors.append(0.5 * abs(found.rows.sum() - exact.sum()))
        assert errors[-1] <= abs(found.bias)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 3e-2 * errors[0]


def _cloud(name: str, n: int = 1500) -> np.ndarray:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, 3)) * [1.0, 0.3, 0.05]
    if name == "far from the origin":
        x += 1e4
    elif name == "outliers":
        x[700:710] *= 8.0
    elif name == "ties":
        x[: n // 2] = np.round(x[: n // 2], 1)
    elif name == "one point":
        x[:] = x[0]
    return x


@pytest.mark.parametrize("name", ["usual", "far from the origin", "outliers", "ties", "one point"])
def test_pivots_that_hold_all_points_give_sums_over_all_pairs(name: str) -> None:
    x, kernel = _cloud(name), DecayKernel(1.6, 2.0)
    phi = np.random.default_rng(2).normal(size=(len(x), 5))
    method = Nystrom.of(x, kernel)
    assert 1 <= len(method.left) < 600
    rows = sum_pairs(method, x, phi).rows
    exact = _rows_of_all_pairs(x, phi, kernel)
    size = np.abs(phi @ phi.T).sum()
    assert np.abs(rows - exact).max() <= 1e-12 * size


def test_points_that_no_candidate_is_like_are_found() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(20_000, 3)) * [1.0, 0.1, 0.0]
    # Not far out, not many, and in a direction of their own.
    x[[17, 5011, 13_333], 2] = 0.5, 0.6, 0.7
    kernel = DecayKernel(1.5, 2.0)
    method = Nystrom.of(x, kernel)
    values = method._solved(kernel(((x[:, None] - (method.pivots + method.centre)) ** 2).sum(axis=2)).T)
    assert (1.0 - (values**2).sum(axis=0)).max() <= 1e-9


METHODS: dict[str, Callable[[np.ndarray], KernelSum]] = {
    "line": lambda x: LineSum(1.0),
    "grid": lambda x: Grid.of(DecayKernel(1.0, 1.0), x.min(axis=0) - 0.01, 0.05, (201, 201)),
    "pivots": lambda x: Nystrom.of(x, DecayKernel(1.0, 2.0)).first(10),
}


@pytest.mark.parametrize("name", METHODS)
def test_chunks_of_cases_add_up_to_all(name: str) -> None:
    rng = np.random.default_rng(4)
    x, phi = rng.normal(size=(600, 2 if name == "grid" else 1)), rng.normal(size=(600, 3))
    method = METHODS[name](x)
    whole = sum_pairs(method, x, phi).rows
    encoded = [method.encode(x[part]) for part in (slice(0, 100), slice(100, 600))]
    parts = [phi[:100], phi[100:]]
    states = [method.chunk(weights, own) for weights, own in zip(encoded, parts, strict=True)]
    finished = method.finish(method.merge(*states))
    rows = [method.rows(weights, own, finished) for weights, own in zip(encoded, parts, strict=True)]
    # Pivots take off the mean of khat(x, x) over a chunk.
    allowed = 1e-3 if name == "pivots" else 1e-6
    assert np.abs(np.concatenate(rows) - whole).max() <= allowed * np.abs(whole).max()
    assert finished.total == pytest.approx(0.5 * whole.sum(), rel=1e-6)


# -- problems -----------------------------------------------------------------------------------------

N = 3000
ON_NORMALS = ExpDistance(Wasserstein(), 0.8)
WIDE = ExpDistance(Wasserstein(), 2.0)


def _normals(kernel: Kernel | None = None, ties: bool = False) -> Problem:
    rng = np.random.default_rng(4)
    loc, scale = rng.normal(size=N), np.exp(0.3 * rng.normal(size=N))
    if ties:
        loc, scale = np.round(loc, 1), np.round(scale, 1) + 0.1
    return prepare(rng.normal(loc, 1.1 * scale), wc.Normal(loc, scale), kernel)


def _bernoulli() -> Problem:
    rng = np.random.default_rng(5)
    p = rng.random(N)
    return prepare((rng.random(N) < p).astype(int), wc.Bernoulli(p))


def _rates() -> Problem:
    rng = np.random.default_rng(6)
    rate = rng.gamma(3.0, 2.0, N)
    kernel = ExpDistance(Wasserstein(order=1), 3.0) @ Gaussian(2.0)
    return prepare(rng.poisson(rate), wc.Poisson(rate), kernel)


def _gammas(kernel: Kernel | None = None) -> Problem:
    rng = np.random.default_rng(4)
    scale = 0.6 * np.exp(0.3 * rng.normal(size=N))
    return prepare(rng.gamma(3.0, 1.1 * scale), wc.Gamma(np.full(N, 3.0), scale), kernel)


def _counts() -> Problem:
    rng = np.random.default_rng(5)
    pred = wc.NegativeBinomial(3.0 * np.exp(0.3 * rng.normal(size=N)), np.full(N, 0.3))
    return prepare(pred.sample(rng=rng), pred)


def _classes() -> Problem:
    rng = np.random.default_rng(6)
    kernel = ExpDistance(Hellinger(), 2.0, power=2.0) @ Delta()
    return prepare(rng.integers(0, 4, N), wc.Categorical(rng.dirichlet(np.ones(4), N)), kernel)


def _ensembles(kernel: Kernel | None = None, wrong: float = 1.0) -> Problem:
    rng = np.random.default_rng(7)
    loc, scale = rng.normal(size=N), 0.6 * np.exp(0.3 * rng.normal(size=N))
    pred = wc.Samples(rng.normal(loc, scale, (30, N)).T)
    return prepare(rng.normal(loc, wrong * scale), pred, kernel)


def _two_terms() -> Problem:
    first = ExpDistance(MaximumMeanDiscrepancy(Gaussian(1.5)), 0.4, power=2.0) @ Gaussian(1.5)
    second = ExpDistance(MaximumMeanDiscrepancy(Gaussian(2.0)), 0.8, power=2.0) @ Gaussian(0.8)
    return _gammas(first + 2.0 * second)


def _one_scale() -> Problem:
    rng = np.random.default_rng(4)
    loc = rng.normal(size=N)
    return prepare(rng.normal(loc), wc.Normal(loc, np.ones(N)), ON_NORMALS @ Gaussian())


LINE, GRID, PIVOTS = "running sums", "a grid of", "Nyström"
PROBLEMS: dict[str, tuple[str, Callable[[], Problem]]] = {
    "Bernoulli": (LINE, _bernoulli),
    "rates": (LINE, _rates),
    "normals of one scale": (LINE, _one_scale),
    "normals": (GRID, _normals),
    "ties": (GRID, lambda: _normals(ties=True)),
    "smoother": (GRID, lambda: _normals(ExpDistance(Wasserstein(), 0.8, power=1.5) @ Gaussian(0.9))),
    "two terms": (GRID, lambda: _normals(ON_NORMALS @ Gaussian() + 2.0 * (WIDE @ Gaussian(0.5)))),
    "gammas": (PIVOTS, _gammas),
    "counts": (PIVOTS, _counts),
    "classes": (PIVOTS, _classes),
    "two smooth terms": (PIVOTS, _two_terms),
    "ensembles": (PIVOTS, _ensembles),
    "ensembles, far off": (PIVOTS, lambda: _ensembles(wrong=3.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("precision", ["auto", "float64"])
def test_sums_are_those_of_tiles(name: str, precision: str) -> None:
    how, make = PROBLEMS[name]
    problem = make()
    engine = Linear(precision=precision)
    found, tiles = engine.triangle(problem), Tiled(precision="float64").triangle(problem)
    said = engine.describe(problem)
    assert said["engine"] == "linear"
    assert said["sums"].startswith(how)
    assert found.total == pytest.approx(0.5 * found.rows.sum(), rel=1e-9)
    off = abs(found.total - tiles.total)
    if how == LINE:
        assert "control_error" not in said
        size = float(np.abs(tiles.rows).sum())
        assert off <= 1e-13 * size
        assert np.abs(found.rows - tiles.rows).max() <= 1e-13 * size
        return
    unit = max(null_scale(problem).value, float(np.sqrt(0.5 * N * np.var(tiles.rows))))
    assert said["control_error"] <= TOLERANCE
    assert off <= 2.0 * said["control_error"] * unit
    assert off <= (TOLERANCE if name.endswith("far off") else 1e-3) * unit
    assert np.abs(found.rows - tiles.rows).max() <= 1e-3 * np.abs(tiles.rows).max()


@pytest.mark.parametrize("name", ["gammas", "counts"])
def test_few_pivots_hold_smooth_predictions_to_rounding(name: str) -> None:
    problem = PROBLEMS[name][1]()
    found, tiles = Linear().triangle(problem), Tiled(precision="float64").triangle(problem)
    assert abs(found.total - tiles.total) <= 1e-11 * null_scale(problem).value


@pytest.mark.parametrize("family", ["normals", "gammas"])
def test_weights_multiply_features(family: str) -> None:
    rng = np.random.default_rng(7)
    loc = rng.normal(size=N)
    options: dict[str, Any] = {"weights": rng.random(N)}
    y, pred = rng.normal(loc), wc.Normal(loc, rng.uniform(0.9, 1.1, N))
    if family == "gammas":
        y, pred = rng.gamma(3.0, np.exp(0.3 * loc)), wc.Gamma(np.full(N, 3.0), np.exp(0.3 * loc))
    found, tiles = (wc.skce(y, pred, engine=engine, **options) for engine in ("linear", "tiled"))
    assert found.provenance["engine"] == "linear"
    assert found.value == pytest.approx(tiles.value, abs=1e-3 * tiles.standard_error)
    assert found.standard_error == pytest.approx(tiles.standard_error, rel=1e-4)


@pytest.mark.parametrize(("make", "method"), [(_normals, "sum_on_grid"), (_ensembles, "sum_pairs")])
def test_control_rows_that_do_not_agree_mean_tiles(
    make: Callable[[], Problem], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make()
    exact = Tiled().triangle(problem)
    sizes: list[int] = []
    right = getattr(linear, method)

    def wrong(*args: Any, **options: Any) -> PairSum:
        sizes.append(options.get("cells", 0))
        rows, bias = right(*args, **options)
        return PairSum(1.05 * rows + 0.5, bias)

    monkeypatch.setattr(linear, method, wrong)
    engine = Linear()
    assert engine.triangle(problem).total == exact.total
    said = engine.describe(problem)
    assert said["engine"] == "tiled"
    assert said["engine_note"].startswith("not linear: by control rows sums are off by")
    assert sizes == sorted(sizes)


def test_a_tighter_tolerance_takes_more_nodes() -> None:
    sizes: list[int] = []
    for tolerance in (1.0, 1e-4):
        problem, engine = _normals(), Linear(tolerance=tolerance)
        engine.triangle(problem)
        sizes.append(int(engine.describe(problem)["sums"].split()[3].replace(",", "")))
    assert sizes[0] < sizes[1]
    with pytest.raises(ValueError, match="tolerance"):
        Linear(tolerance=0.0)


def test_unsupported_problems_are_refused_with_a_reason() -> None:
    rng = np.random.default_rng(8)
    y, loc = rng.normal(size=50), rng.normal(size=50)
    classes, kernel = wc.Categorical(rng.dirichlet(np.ones(3), 50)), ExpDistance(TotalVariation()) @ Delta()
    with pytest.raises(ValueError, match="line or in a plane"):
        wc.skce(rng.integers(0, 3, 50), classes, kernel=kernel, engine="linear")
    with pytest.raises(ValueError, match="finitely many features"):
        wc.skce(y, wc.Normal(loc, np.ones(50)), kernel=ON_NORMALS @ Laplacian(), engine="linear")
    with pytest.raises(ValueError, match="for NumPy and PyTorch"):
        wc.skce(jnp.asarray(y), wc.Normal(jnp.asarray(loc), jnp.ones(50)), engine="linear")


def test_auto_takes_it_for_many_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(choose_engine("auto", _bernoulli()), Linear)
    for make, method in ((_normals, "plane"), (_gammas, "smooth")):
        assert type(choose_engine("auto", make())) is Tiled
        monkeypatch.setitem(linear.FEWEST_CASES, method, N)
        assert isinstance(choose_engine("auto", make()), Linear)
    assert type(choose_engine("auto", _normals(ON_NORMALS @ Laplacian()))) is Tiled
    few = wc.skce([0, 1, 1], wc.Bernoulli([0.1, 0.5, 0.9]), engine="linear")
    assert few.value == wc.skce([0, 1, 1], wc.Bernoulli([0.1, 0.5, 0.9]), engine="tiled").value


def test_ensembles_that_are_far_apart_are_left_to_tiles() -> None:
    """Under a short length scale hundreds of predictions do not span the others."""
    kernel = ExpDistance(MaximumMeanDiscrepancy(Gaussian(1.5)), 0.05, power=2.0) @ Gaussian(1.5)
    problem, engine = _ensembles(kernel), Linear()
    assert engine.triangle(problem).total == Tiled().triangle(problem).total
    assert engine.describe(problem)["engine_note"] == "not linear: predictions are too far apart"


# -- sharp predictions, in blocks of features -----------------------------------------------------------


def _sharp(name: str) -> tuple[np.ndarray, wc.Normal]:
    rng = np.random.default_rng(9)
    loc, scale = rng.normal(size=N), np.full(N, 0.02)
    if name == "different scales":
        scale = rng.uniform(0.01, 0.03, N)
    elif name == "skewed":
        loc = 1e4 * np.exp(loc)
        scale = 0.3 * loc
    elif name == "ties":
        loc = np.round(loc, 2)
    elif name == "very sharp":
        scale = rng.uniform(0.001, 0.003, N)
    return rng.normal(loc, 1.1 * scale), wc.Normal(loc, scale)


@pytest.mark.parametrize("name", ["one scale", "different scales", "skewed", "ties", "very sharp"])
@pytest.mark.parametrize("precision", ["auto", "float64"])
def test_sharp_predictions_have_the_sums_of_closed_forms(name: str, precision: str) -> None:
    problem = prepare(*_sharp(name))
    engine = Linear(precision=precision)
    found = engine.triangle(problem)
    said = engine.describe(problem)
    assert said["engine"] == "linear"
    with closed_forms():
        exact = Tiled(precision="float64").triangle(prepare(*_sharp(name)))
    unit = max(null_scale(problem).value, float(np.sqrt(0.5 * N * np.var(exact.rows))))
    assert abs(found.total - exact.total) <= (5e-3 if name == "skewed" else 1e-3) * unit
    assert (
        np.abs(found.rows - exact.rows).max()
        <= (1e-2 if name == "skewed" else 2e-3) * np.abs(exact.rows).max()
    )


@pytest.mark.parametrize("name", ["mixed kernels", "weights", "Laplace"])
def test_blocks_of_other_problems(name: str) -> None:
    y, pred = _sharp("different scales")
    options: dict[str, Any] = {"weights": np.random.default_rng(1).random(N)}
    if name == "mixed kernels":
        options = {"kernel": ON_NORMALS @ (Gaussian(0.03) + 0.5 * Gaussian(0.01)) + WIDE @ Gaussian(0.02)}
    elif name == "Laplace":
        pred, options = wc.Laplace(pred.loc, pred.scale), {"kernel": ON_NORMALS @ Gaussian(0.03)}
    found = wc.skce(y, pred, engine="linear", **options)
    assert found.provenance["engine"] == "linear"
    with closed_forms():
        exact = wc.skce(y, pred, engine=Tiled(precision="float64"), **options)
    assert found.value == pytest.approx(exact.value, abs=3e-3 * exact.standard_error)
    assert found.standard_error == pytest.approx(exact.standard_error, rel=1e-3)


@pytest.mark.parametrize("name", ["one wide", "far away"])
def test_sharp_predictions_with_a_few_unlike_them_are_right_or_left_to_tiles(name: str) -> None:
    rng = np.random.default_rng(9)
    loc, scale = rng.normal(size=N), rng.uniform(0.01, 0.03, N)
    if name == "one wide":
        scale[7] = 300.0
    else:
        loc[[3, 4, 5]], loc[100] = 1e7, -1e12
    y, pred = rng.normal(loc, scale), wc.Normal(loc, scale)
    kernel = wc.default_kernel(pred)
    found = wc.skce(y, pred, kernel=kernel, engine="linear")
    exact = wc.skce(y, pred, kernel=kernel, engine=Tiled(precision="float64"))
    unit = null_scale(prepare(y, pred, kernel)).value / (0.5 * N * (N - 1))
    assert abs(found.value - exact.value) <= 1e-3 * unit


def test_errors_in_easy_and_hard_settings_are_small_and_reported() -> None:
    """The benchmark `sums` has the same with more cases and seeds."""
    runs = {name: sum_settings.run(draw, 2000, 0) for name, (_, draw) in sum_settings.SETTINGS.items()}
    for name, found in runs.items():
        light = sum_settings.SETTINGS[name][0]
        assert (found.null if light else found.error) <= (1e-3 if light else TOLERANCE), name
    assert sum(found.covered for found in runs.values()) >= len(runs) - 1


def test_sums_by_tiles_say_why() -> None:
    y, pred = _sharp("one scale")
    few = wc.skce(y[:500], pred[:500], engine="linear")
    assert few.provenance["engine"] == "tiled"
    assert few.provenance["engine_note"] == "not linear: cases are too few"
    y, pred = _sharp("different scales")
    off = wc.skce(y, pred, engine=Linear(tolerance=1e-14))
    assert off.provenance["engine"] == "tiled"
    assert "control rows" in off.provenance["engine_note"]
    assert "engine_note" not in wc.skce(y, pred, engine="linear").provenance
    exact = wc.skce(y, pred, engine=Tiled(precision="mixed"))
    assert "no product of features" in exact.provenance["precision_note"]


# -- features of ensembles, once for all kernels ---------------------------------------------------------


def test_what_an_ensemble_remembers_changes_nothing() -> None:
    rng = np.random.default_rng(9)
    values, y = rng.normal(size=(60, 20)), np.linspace(-9.0, 9.0, 60)
    fresh = wc.Samples(values)
    first = wc.skce(y, fresh).value
    assert wc.skce(y, fresh).value == first
    # Other targets reach other cells, and those of before are there already.
    for other in (0.1 * y, y + 5.0, y):
        found, alone = wc.skce(other, fresh).value, wc.skce(other, wc.Samples(values.copy())).value
        assert found == pytest.approx(alone, rel=1e-12)


def test_atoms_without_weight_have_no_features() -> None:
    rng = np.random.default_rng(10)
    values, weights = rng.normal(size=(50, 8)), rng.dirichlet(np.ones(7), 50)
    values[:, 7] = 1e3  # far from all others
    padded = wc.Samples(values, np.concatenate([weights, np.zeros((50, 1))], axis=1), kind="atoms")
    plain = wc.Samples(values[:, :7], weights, kind="atoms")
    y, kernel = rng.normal(size=50), wc.default_kernel(plain)
    found = [wc.skce(y, pred, kernel=kernel).value for pred in (padded, plain)]
    assert found[0] == pytest.approx(found[1], rel=1e-12)
