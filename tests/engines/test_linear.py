"""Sums without the square, against all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal._arrays.chunks import limited
from wellcal._arrays.namespaces import namespace
from wellcal._arrays.ops import ops_for
from wellcal.engines import Linear, Tiled, choose_engine, linear, planar
from wellcal.engines.banded import in_bands
from wellcal.engines.controls import ExactRows
from wellcal.engines.multipoles import Tree, plane_sums
from wellcal.engines.running_sums import line_sums
from wellcal.expectations.feature_bands import bands_of
from wellcal.kernels import Delta, ExpDistance, Gaussian, Kernel, Laplacian, TotalVariation, Wasserstein
from wellcal.problem.deviations import null_deviation
from wellcal.problem.feature_form import closed_forms
from wellcal.problem.problem import Problem, prepare

# -- on a line ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.01, 1.0, 3000.0])
def test_running_sums_are_sums_over_all_pairs(rate: float) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=400), np.round(rng.normal(size=200), 1), [50.0, -80.0]])
    phi = rng.normal(size=(len(x), 3))
    h = np.exp(-rate * np.abs(x[:, None] - x)) * (phi @ phi.T)
    np.fill_diagonal(h, 0.0)
    total, rows = line_sums(x, phi, rate)
    size = np.abs(h).sum()
    assert abs(total - 0.5 * h.sum()) <= 1e-14 * size
    assert np.abs(rows - h.sum(axis=1)).max() <= 1e-14 * size


def test_order_of_points_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    x, phi, order = rng.random(500), rng.normal(size=(500, 2)), rng.permutation(500)
    total, rows = line_sums(x, phi, 2.0)
    again, moved = line_sums(x[order], phi[order], 2.0)
    assert again == pytest.approx(total, abs=1e-12)
    assert np.abs(moved - rows[order]).max() < 1e-12


# -- in a plane ---------------------------------------------------------------------------------------


def _points(name: str, n: int = 1500) -> np.ndarray:
    rng = np.random.default_rng(2)
    x = np.stack([rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))], axis=1)
    if name == "a cluster":
        x[: 9 * n // 10] = 1e-6 * x[: 9 * n // 10] + 0.5
    elif name == "ties":
        x[: 9 * n // 10] = 0.5
    elif name == "a curve":
        x[:, 1] = np.abs(x[:, 0])
    elif name == "heavy tails":
        x[:, 0] = rng.standard_cauchy(n)
    return x


@pytest.mark.parametrize("name", ["usual", "a cluster", "ties", "a curve", "heavy tails"])
@pytest.mark.parametrize("length", [0.003, 0.7, 100.0])
def test_multipoles_are_sums_over_all_points(name: str, length: float) -> None:
    x = _points(name)
    phi = np.random.default_rng(3).normal(size=(len(x), 4))

    def kernel(squared: np.ndarray) -> np.ndarray:
        return np.exp(-np.sqrt(squared) / length)

    exact = kernel(((x[:, None] - x) ** 2).sum(axis=2)) @ phi
    tree = Tree.of(x, 44.0 * length)
    size = np.abs(exact).max()

    def sums(order: int, kind: type) -> np.ndarray:
        return tree.by_points(plane_sums(tree, tree.by_boxes(phi, kind), kernel, order), len(x))

    coarse, fine = (np.abs(sums(p, np.float64) - exact).max() for p in (4, 13))
    assert coarse < 5e-3 * size
    assert fine < 1e-7 * size
    single = sums(12, np.float32)
    assert single.dtype == np.float32
    assert np.abs(single - exact).max() < 1e-4 * size
    with limited(work=1):  # one box at a time, however many there are
        np.testing.assert_array_equal(sums(12, np.float32), single)


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


EXACT = {"Bernoulli": _bernoulli, "rates": _rates}
PLANAR = {
    "normals": _normals,
    "ties": lambda: _normals(ties=True),
    "smoother": lambda: _normals(ExpDistance(Wasserstein(), 0.8, power=1.5) @ Gaussian(0.9)),
    "two terms": lambda: _normals(ON_NORMALS @ Gaussian() + 2.0 * (WIDE @ Gaussian(0.5))),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_on_a_line_sums_are_those_of_tiles(name: str) -> None:
    problem = EXACT[name]()
    engine = Linear()
    found, tiles = engine.triangle(problem), Tiled(precision="float64").triangle(problem)
    assert engine.describe(problem)["sums"] == "running sums on a line"
    size = float(np.abs(tiles.rows).sum())
    assert abs(found.total - tiles.total) <= 1e-13 * size
    assert np.abs(found.rows - tiles.rows).max() <= 1e-13 * size


@pytest.mark.parametrize("name", PLANAR)
@pytest.mark.parametrize("precision", ["auto", "float64"])
def test_in_a_plane_sums_are_those_of_tiles(name: str, precision: str) -> None:
    problem = PLANAR[name]()
    engine = Linear(precision=precision)
    found, tiles = engine.triangle(problem), Tiled(precision="float64").triangle(problem)
    said = engine.describe(problem)
    assert said["sums"].startswith("multipoles")
    assert said["control_error"] <= engine.tolerance
    h = np.asarray(problem.values(slice(0, 500), slice(500, 1000)))
    spread = np.sqrt(0.5 * N * N * np.mean(h**2))
    assert abs(found.total - tiles.total) <= 4.0 * said["control_error"] * spread
    assert np.abs(found.rows - tiles.rows).max() <= 1e-4 * np.abs(tiles.rows).max()
    assert found.total == pytest.approx(0.5 * found.rows.sum(), rel=1e-9)


def test_weights_go_along() -> None:
    rng = np.random.default_rng(7)
    loc = rng.normal(size=N)
    options: dict[str, Any] = {"weights": rng.random(N)}
    y, pred = rng.normal(loc), wc.Normal(loc, np.ones(N))
    found, tiles = (wc.skce(y, pred, engine=engine, **options) for engine in ("linear", "tiled"))
    assert found.provenance["engine"] == "linear"
    assert found.value == pytest.approx(tiles.value, abs=1e-3 * tiles.standard_error)
    assert found.standard_error == pytest.approx(tiles.standard_error, rel=1e-4)


def test_controls_that_do_not_agree_mean_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _normals()
    exact = Tiled().triangle(problem)
    orders: list[int] = []

    def wrong(tree: Tree, phi: np.ndarray, kernel: Any, order: int) -> np.ndarray:
        orders.append(order)
        return 1.001 * plane_sums(tree, phi, kernel, order)

    monkeypatch.setattr(planar, "plane_sums", wrong)
    engine = Linear()
    found = engine.triangle(problem)
    assert len(orders) >= 3
    assert orders == sorted(set(orders))
    assert found.total == exact.total
    assert engine.describe(problem)["engine"] == "tiled"


def test_a_tighter_tolerance_takes_more_nodes() -> None:
    problem = _normals()
    orders: list[int] = []
    for tolerance in (1.0, 3e-6):
        engine = Linear(tolerance=tolerance)
        engine.triangle(problem)
        orders.append(int(engine.describe(problem)["sums"].split()[-1]))
    assert orders[0] < orders[1]
    with pytest.raises(ValueError, match="tolerance"):
        Linear(tolerance=0.0)


def test_what_it_does_not_support_it_says() -> None:
    rng = np.random.default_rng(8)
    y, loc = rng.normal(size=50), rng.normal(size=50)
    classes, kernel = wc.Categorical(rng.dirichlet(np.ones(3), 50)), ExpDistance(TotalVariation()) @ Delta()
    with pytest.raises(ValueError, match="line or in a plane"):
        wc.skce(rng.integers(0, 3, 50), classes, kernel=kernel, engine="linear")
    with pytest.raises(ValueError, match="finitely many features"):
        wc.skce(y, wc.Normal(loc, np.ones(50)), kernel=ON_NORMALS @ Laplacian(), engine="linear")
    with pytest.raises(ValueError, match="for NumPy"):
        wc.skce(torch.as_tensor(y), wc.Normal(torch.as_tensor(loc), torch.ones(50)), engine="linear")


def test_auto_takes_it_for_many_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(choose_engine("auto", _bernoulli()), Linear)
    normals = _normals()
    assert type(choose_engine("auto", normals)) is Tiled
    monkeypatch.setattr(linear, "FEWEST_IN_A_PLANE", N)
    assert isinstance(choose_engine("auto", normals), Linear)
    assert type(choose_engine("auto", _normals(ON_NORMALS @ Laplacian()))) is Tiled
    few = wc.skce([0, 1, 1], wc.Bernoulli([0.1, 0.5, 0.9]), engine="linear")
    assert few.value == wc.skce([0, 1, 1], wc.Bernoulli([0.1, 0.5, 0.9]), engine="tiled").value


# -- sharp predictions, in bands of features -----------------------------------------------------------


def _sharp(name: str) -> tuple[np.ndarray, wc.Normal]:
    rng = np.random.default_rng(9)
    loc, scale = rng.normal(size=N), np.full(N, 0.02)
    if name == "different scales":
        scale = rng.uniform(0.01, 0.03, N)
    elif name == "skewed":
        loc = 1e4 * np.exp(loc)
        scale = 0.3 * loc
    elif name == "one wide":
        scale = rng.uniform(0.5, 1.0, N)
        scale[7] = 300.0
    elif name == "several wide":
        scale = rng.uniform(0.5, 1.0, N)
        scale[[7, 8, 500]] = 3e3, 1e5, 400.0
    elif name == "far away":
        loc[[3, 4, 5]], loc[100] = 1e7, -1e12
    elif name == "ties":
        loc = np.round(loc, 2)
    return rng.normal(loc, 1.1 * scale), wc.Normal(loc, scale)


SHARP = ("one scale", "different scales", "skewed", "one wide", "several wide", "far away", "ties")


@pytest.mark.parametrize("name", SHARP)
@pytest.mark.parametrize("precision", ["auto", "float64"])
def test_sharp_predictions_have_the_sums_of_closed_forms(name: str, precision: str) -> None:
    problem = prepare(*_sharp(name))
    engine = Linear(precision=precision)
    found = engine.triangle(problem)
    said = engine.describe(problem)
    assert said["engine"] == "linear"
    assert said["bands"] >= 1
    with closed_forms():
        exact = Tiled(precision="float64").triangle(prepare(*_sharp(name)))
    error = 1e-5 if precision == "float64" else 1e-4
    assert abs(found.total - exact.total) <= 10.0 * error * null_deviation(problem).value
    assert np.abs(found.rows - exact.rows).max() <= error * np.abs(exact.rows).max()


def test_bands_hold_the_products_of_all_features() -> None:
    y, pred = _sharp("several wide")
    problem = prepare(y, pred)
    (term,), (rows,) = problem.terms, problem.rows
    bands = bands_of(term.on_targets, rows.on_targets)
    assert bands is not None
    assert set(bands.alone) == {7, 8, 500}
    found = np.zeros((N, N))
    for band in bands:
        features = band.source.of(slice(0, len(band.cases)))
        found[np.ix_(band.cases, band.cases)] += features @ features.T
    exact = np.asarray(term.on_targets(ops_for(namespace()), rows.on_targets, rows.on_targets))
    others = np.delete(np.arange(N), [7, 8, 500])
    assert np.abs(found - exact)[np.ix_(others, others)].max() < 1e-11
    assert np.abs(found[[7, 8, 500]]).max() == 0.0


@pytest.mark.parametrize("name", ["mixed kernels", "weights", "Laplace"])
def test_bands_of_other_problems(name: str) -> None:
    y, pred = _sharp("one scale")
    options: dict[str, Any] = {"weights": np.random.default_rng(1).random(N)}
    if name == "mixed kernels":
        options = {"kernel": ON_NORMALS @ (Gaussian(0.03) + 0.5 * Gaussian(0.01)) + WIDE @ Gaussian(0.02)}
    elif name == "Laplace":
        pred, options = wc.Laplace(pred.loc, pred.scale), {"kernel": ON_NORMALS @ Gaussian(0.03)}
    found = wc.skce(y, pred, engine="linear", **options)
    assert found.provenance["bands"] > 10
    with closed_forms():
        exact = wc.skce(y, pred, engine=Tiled(precision="float64"), **options)
    assert found.value == pytest.approx(exact.value, abs=1e-3 * exact.standard_error)
    assert found.standard_error == pytest.approx(exact.standard_error, rel=1e-4)


@pytest.mark.parametrize("name", ["one scale", "several wide"])
def test_control_rows_of_bands_are_those_of_closed_forms(name: str) -> None:
    """They are added up from the features of bands, and from the pairs of cases that are in none."""
    problem = prepare(*_sharp(name))
    (banded,) = in_bands(problem, np.float32) or [None]
    assert banded is not None
    found, exact = ExactRows.of(N), ExactRows.of(N)
    banded.row_sums(6, found)
    exact.add(problem)
    assert np.abs(found.sums - exact.sums).max() <= 1e-10 * np.abs(exact.sums).max()


def test_bands_are_taken_only_where_they_spare_work() -> None:
    """Each case is in a tree for each of its bands: a few hundred features are quicker all at once."""
    rng = np.random.default_rng(12)
    loc, scale = rng.normal(size=N), 0.6 * np.exp(0.3 * rng.normal(size=N))
    loc[:2] = -50.0, 50.0  # from here to there are 300 features
    pred = wc.Laplace(loc, scale)
    problem = prepare(rng.laplace(loc, scale), pred, ON_NORMALS @ Gaussian(1.0))
    assert in_bands(problem, np.float32) is None
    on_targets = problem.terms[0].on_targets, problem.rows[0].on_targets
    assert bands_of(*on_targets) is None  # reaching hundreds of features says so
    loc = rng.uniform(-200.0, 200.0, N)
    wide = prepare(rng.laplace(loc, scale), wc.Laplace(loc, scale), ON_NORMALS @ Gaussian(1.0))
    assert in_bands(wide, np.float32) is not None  # a tenth of all there are


def test_work_on_sharp_predictions_grows_with_cases_and_not_with_features() -> None:
    rng = np.random.default_rng(10)
    loc = rng.normal(size=N)
    each: list[float] = []
    for scale in (0.02, 0.002):
        problem = prepare(rng.normal(loc, scale), wc.Normal(loc, np.full(N, scale)))
        bands = bands_of(problem.terms[0].on_targets, problem.rows[0].on_targets)
        assert bands is not None
        each.append(bands.meetings / N)
    assert max(each) < 150.0  # features; there are 700 and 6,000


def test_auto_takes_bands_where_tiles_would_take_closed_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "FEWEST_IN_BANDS", N)
    assert isinstance(choose_engine("auto", prepare(*_sharp("one scale"))), Linear)
    assert type(choose_engine("auto", _normals())) is Tiled


def test_what_is_not_linear_says_why() -> None:
    y, pred = _sharp("one scale")
    few = wc.skce(y[:500], pred[:500], engine="linear")
    assert few.provenance["engine"] == "tiled"
    assert few.provenance["engine_note"] == "not linear: cases are too few"
    off = wc.skce(y, pred, engine=Linear(tolerance=1e-14))
    assert off.provenance["engine"] == "tiled"
    assert "control rows" in off.provenance["engine_note"]
    assert "engine_note" not in wc.skce(y, pred, engine="linear").provenance
    exact = wc.skce(y, pred, engine=Tiled(precision="mixed"))
    assert "without features" in exact.provenance["precision_note"]
