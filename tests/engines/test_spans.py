"""Sums through a span of few predictions, against all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.engines import Linear, Tiled, choose_engine, spans
from wellcal.engines.controls import Controls
from wellcal.engines.linear import FEWEST_NEARLY_SPANNED
from wellcal.engines.spanning import spans_of
from wellcal.engines.spans import Span, Spread
from wellcal.kernels import Delta, ExpDistance, Gaussian, Hellinger, Kernel, MaximumMeanDiscrepancy
from wellcal.problem.deviations import null_deviation
from wellcal.problem.feature_form import closed_forms, in_products
from wellcal.problem.problem import Problem, prepare

# -- points -------------------------------------------------------------------------------------------


def _spread(name: str, n: int = 1500) -> Spread:
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
    return Spread(x, 0.4, rng.normal(size=(n, 5)), 1.7)


def _all_pairs(spread: Spread) -> np.ndarray:
    squared = ((spread.points[:, None] - spread.points) ** 2).sum(axis=2)
    h = spread.factor * np.exp(-spread.rate * squared) * (spread.phi @ spread.phi.T)
    np.fill_diagonal(h, 0.0)
    return h


@pytest.mark.parametrize("name", ["usual", "far from the origin", "outliers", "ties", "one point"])
def test_a_span_of_all_points_gives_sums_over_all_pairs(name: str) -> None:
    spread = _spread(name)
    span = Span(spread)
    assert span.reaches_all(1000)
    assert 1 <= span.size < 600
    h = _all_pairs(spread)
    rows = span.row_sums()
    assert abs(rows.sum() - h.sum()) <= 1e-12 * np.abs(h).sum()
    assert np.all(np.abs(rows - h.sum(axis=1)) <= 1e-12 * np.abs(h).sum())


@pytest.mark.parametrize("size", [20, 60, 150])
def test_sums_are_the_same_whether_features_are_kept_or_not(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[np.ndarray] = []
    for kept in (10**9, 0):
        monkeypatch.setattr(spans, "KEPT", kept)
        span = Span(_spread("usual"))
        span.grow(size)
        assert not span.complete
        found.append(span.row_sums())
    assert np.abs(found[0] - found[1]).max() < 1e-11 * np.abs(found[0]).max()


def test_features_of_a_case_are_as_far_off_as_it_is_from_the_span() -> None:
    spread = _spread("usual", 300)
    span = Span(spread)
    span.grow(20)
    features = np.concatenate([part for _, part in span.features()])
    assert features.shape == (300, 20)
    left = 1.0 - (features**2).sum(axis=1)
    squared = ((spread.points[:, None] - spread.points) ** 2).sum(axis=2)
    off = np.abs(np.exp(-spread.rate * squared) - features @ features.T)
    bound = np.sqrt(np.maximum(left[:, None] * left, 0.0))
    assert np.all(off <= bound + 1e-13)
    assert off.max() > 1e-4  # or there is nothing to bound


def test_cases_that_no_candidate_is_like_are_found() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(20_000, 2)) * [1.0, 0.1]
    # Not far out, not many, and in a direction of their own.
    x = np.concatenate([x, np.zeros((20_000, 1))], axis=1)
    x[[17, 5011, 13_333], 2] = 0.5, 0.6, 0.7
    spread = Spread(x, 0.5, rng.normal(size=(len(x), 2)))
    span = Span(spread)
    assert span.reaches_all(2000)
    left = np.concatenate([1.0 - (part**2).sum(axis=1) for _, part in span.features()])
    assert left.max() <= 1e-12  # and so is the error of any kernel value


def test_points_that_span_nothing_are_left_to_tiles() -> None:
    rng = np.random.default_rng(3)
    span = Span(Spread(rng.normal(size=(3000, 20)), 1.0, rng.normal(size=(3000, 2))))
    assert not span.reaches_all(500)
    assert span.size <= 64


# -- problems -----------------------------------------------------------------------------------------

N = 4000


def _gammas(kernel: Kernel | None = None, n: int = N) -> Problem:
    rng = np.random.default_rng(4)
    scale = 0.6 * np.exp(0.3 * rng.normal(size=n))
    return prepare(rng.gamma(3.0, 1.1 * scale), wc.Gamma(np.full(n, 3.0), scale), kernel)


def _counts() -> Problem:
    rng = np.random.default_rng(5)
    pred = wc.NegativeBinomial(3.0 * np.exp(0.3 * rng.normal(size=N)), np.full(N, 0.3))
    return prepare(pred.sample(rng=rng), pred)


def _classes() -> Problem:
    rng = np.random.default_rng(6)
    probs = rng.dirichlet(np.ones(4), N)
    return prepare(
        rng.integers(0, 4, N), wc.Categorical(probs), ExpDistance(Hellinger(), 2.0, power=2.0) @ Delta()
    )


def _ensembles(n: int = N, kernel: Kernel | None = None) -> Problem:
    rng = np.random.default_rng(7)
    loc, scale = rng.normal(size=n), 0.6 * np.exp(0.3 * rng.normal(size=n))
    return prepare(rng.normal(loc, scale), wc.Samples(rng.normal(loc, scale, (30, n)).T), kernel)


def _two_terms() -> Problem:
    first = ExpDistance(MaximumMeanDiscrepancy(Gaussian(1.5)), 0.4, power=2.0) @ Gaussian(1.5)
    second = ExpDistance(MaximumMeanDiscrepancy(Gaussian(2.0)), 0.8, power=2.0) @ Gaussian(0.8)
    return _gammas(first + 2.0 * second)


WHOLE = {"gammas": _gammas, "counts": _counts, "classes": _classes, "two terms": _two_terms}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_spans_give_the_sums_of_closed_forms(name: str) -> None:
    problem = WHOLE[name]()
    engine = Linear(precision="float64")
    found = engine.triangle(problem)
    with closed_forms():
        tiles = Tiled(precision="float64").triangle(problem)
    said = engine.describe(problem)
    assert said["engine"] == "linear"
    assert said["sums"].startswith("a span of")
    assert "control_error" not in said
    h = np.abs(np.asarray(problem.values(slice(0, 500), slice(500, 1000)))).mean()
    assert abs(found.total - tiles.total) <= 1e-12 * h * 0.5 * N**2
    assert np.abs(found.rows - tiles.rows).max() <= 1e-12 * h * N**2
    assert isinstance(choose_engine("auto", problem), Linear)


def test_spans_that_are_not_whole_are_held_to_control_rows() -> None:
    problem = _ensembles()
    engine = Linear()
    found, tiles = engine.triangle(problem), Tiled(precision="float64").triangle(problem)
    said = engine.describe(problem)
    assert said["sums"].startswith("a span of")
    assert 0.0 < said["control_error"] <= engine.tolerance
    h = np.asarray(problem.values(slice(0, 500), slice(500, 1000)))
    spread = np.sqrt(0.5 * N**2 * np.mean(h**2))
    assert abs(found.total - tiles.total) <= 4.0 * said["control_error"] * spread
    assert np.abs(found.rows - tiles.rows).max() <= 1e-2 * np.abs(tiles.rows).max()
    # Whoever asks for float64, or for nothing with so few cases, has tiles.
    assert Linear(precision="float64").triangle(problem).total == tiles.total
    assert type(choose_engine("auto", problem)) is Tiled


def test_many_ensembles_are_spanned_nearly_unless_float64_is_asked_for() -> None:
    problem = _ensembles(FEWEST_NEARLY_SPANNED)
    engine = choose_engine("auto", problem)
    assert type(engine) is Linear
    found, tiles = engine.triangle(problem), Tiled(precision="float64").triangle(problem)
    said = engine.describe(problem)
    assert 0.0 < said["control_error"] <= 1e-3
    spread = null_deviation(problem).value
    assert abs(found.total - tiles.total) <= 4.0 * said["control_error"] * spread
    exact = engine.at_precision("float64")
    assert exact.triangle(problem).total == tiles.total
    assert exact.describe(problem)["engine"] == "tiled"


def test_ensembles_that_are_far_apart_are_not_tried() -> None:
    """Under a short length scale hundreds of predictions do not span the others: tiles at once."""
    kernel = ExpDistance(MaximumMeanDiscrepancy(Gaussian(1.5)), 0.05, power=2.0) @ Gaussian(1.5)
    problem = _ensembles(FEWEST_NEARLY_SPANNED, kernel)
    assert Linear().supports(problem)
    assert type(choose_engine("auto", problem)) is Tiled


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-4])
def test_the_first_number_of_predictions_that_serves_is_taken(tolerance: float) -> None:
    """Those that leave too much are skipped, without a look at their sums; none that would have done is."""
    problem, tried = _ensembles(), _ensembles()
    exact = in_products(tried)
    assert exact is not None
    controls, spans = Controls.of(exact), spans_of(tried)
    left: list[float] = []
    serving: list[int] = []
    for count in (64, 128, 256, 384):
        left.append(spans.left_by(count))
        if controls.error(spans.row_sums()) <= tolerance * controls.unit.value:
            serving.append(count)
    assert left == sorted(left, reverse=True)
    engine = Linear(tolerance=tolerance)
    engine.triangle(problem)
    assert engine.describe(problem)["sums"] == f"a span of {serving[0]} predictions"


def test_beside_tiles_in_float32_fewer_predictions_pay() -> None:
    """For 20,000 ensembles 768 took 1.4 times as long as tiles in float32, and as long as others."""
    spread = Spread(np.zeros((20_000, 40)), 1.0, np.zeros((20_000, 40)))
    assert 512 <= spread.most_pivots(rounded=True) < 768 <= spread.most_pivots()


def test_a_tighter_tolerance_takes_more_predictions() -> None:
    sizes: list[int] = []
    for tolerance in (1.0, 1e-4):
        problem, engine = _ensembles(), Linear(tolerance=tolerance)
        engine.triangle(problem)
        sizes.append(int(engine.describe(problem)["sums"].split()[3]))
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize("members", [30, 50])
def test_the_unit_is_what_calibrated_predictions_would_have(members: int) -> None:
    """Targets three times too wide make h large and its sum vary: an error beside that would look small."""
    rng = np.random.default_rng(11)
    loc, scale = rng.normal(size=N), 0.6 * np.exp(0.3 * rng.normal(size=N))
    pred = wc.Samples(rng.normal(loc, scale, (members, N)).T)
    problem = prepare(rng.normal(loc, 3.0 * scale), pred)
    tiles = Tiled(precision="float64").triangle(problem)
    unit = null_deviation(problem).value
    engine = Linear(tolerance=0.01)
    found, said = engine.triangle(problem), engine.describe(problem)
    assert said["engine"] == "linear"
    assert said["control_error_observed"] < said["control_error"] <= 0.01
    assert abs(found.total - tiles.total) <= min(4.0 * said["control_error"], 0.02) * unit
    # What cannot be had by fewer predictions than are worth it is left to tiles.
    strict = Linear(tolerance=1e-9)
    assert strict.triangle(problem).total == tiles.total
    assert strict.describe(problem)["engine"] == "tiled"


def test_results_say_how_large_a_span_is_and_what_it_leaves() -> None:
    nearly, whole = _ensembles(), _gammas()
    for problem in (nearly, whole):
        Linear().triangle(problem)
    near, exact = Linear().describe(nearly), Linear().describe(whole)
    assert near["sums"] == f"a span of {near['span_size']} predictions"
    assert near["precision"] == "a span of some predictions, held to control rows"
    assert 0.0 < near["control_error"] <= 1e-3
    assert 1e-9 < near["span_left"] < 1e-2
    assert exact["precision"] == "float64: a span to rounding"
    assert exact["span_left"] <= 1e-13
    assert "control_error" not in exact


def test_sums_that_do_not_agree_mean_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _ensembles()
    exact = Tiled().triangle(problem)
    sums = Span.row_sums

    def wrong(span: Span) -> np.ndarray:
        return 1.05 * sums(span) + 0.5

    monkeypatch.setattr(Span, "row_sums", wrong)
    engine = Linear()
    assert engine.triangle(problem).total == exact.total
    assert engine.describe(problem)["engine"] == "tiled"


def test_weights_go_along() -> None:
    rng = np.random.default_rng(8)
    scale = np.exp(0.3 * rng.normal(size=N))
    options: dict[str, Any] = {"weights": rng.random(N)}
    y, pred = rng.gamma(3.0, scale), wc.Gamma(np.full(N, 3.0), scale)
    found, tiles = (wc.skce(y, pred, engine=engine, **options) for engine in ("linear", "tiled"))
    assert found.provenance["sums"].startswith("a span of")
    assert found.value == pytest.approx(tiles.value, abs=1e-9 * tiles.standard_error)
    assert found.standard_error == pytest.approx(tiles.standard_error, rel=1e-9)


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
