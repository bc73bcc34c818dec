"""Probability integral transform and coverage of intervals."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import wellcal as wc
from wellcal import interval_coverage, pit
from wellcal.measures.quantiles.coverage import clopper_pearson
from wellcal.predictions.quantile_ties import counted_only

RNG = np.random.default_rng(50)
N = 12
LOC, SCALE = RNG.normal(size=N), RNG.gamma(3.0, 0.4, N)
Y = RNG.normal(LOC, SCALE)


def uniforms(seed: int, n: int = N) -> Any:
    return np.random.default_rng(seed).random(n)


@pytest.mark.parametrize(
    ("pred", "reference"),
    [
        (wc.Normal(LOC, SCALE), stats.norm(LOC, SCALE)),
        (wc.StudentT(3.0, LOC, SCALE), stats.t(3.0, LOC, SCALE)),
        (wc.Mixture([wc.Laplace(LOC, SCALE), wc.Laplace(LOC, SCALE)]), stats.laplace(LOC, SCALE)),
    ],
)
def test_continuous_predictions_need_no_randomness(pred: Any, reference: Any) -> None:
    assert_allclose(pit(Y, pred), reference.cdf(Y), rtol=1e-12)
    assert_array_equal(pit(Y, pred, rng=1), pit(Y, pred, rng=2))


def test_counts_lie_between_their_neighbours() -> None:
    rate = 3.0 * SCALE
    y = RNG.poisson(rate)
    below, upto = stats.poisson.cdf(y - 1, rate), stats.poisson.cdf(y, rate)
    assert_allclose(pit(y, wc.Poisson(rate), rng=4), below + uniforms(4) * (upto - below), rtol=1e-12)
    mixed = wc.Mixture([wc.Poisson(rate), wc.Poisson(2 * rate)], [0.25, 0.75])
    below = 0.25 * below + 0.75 * stats.poisson.cdf(y - 1, 2 * rate)
    upto = 0.25 * upto + 0.75 * stats.poisson.cdf(y, 2 * rate)
    assert_allclose(pit(y, mixed, rng=4), below + uniforms(4) * (upto - below), rtol=1e-12)


def test_classes_in_the_order_of_their_support() -> None:
    probs = np.array([[0.2, 0.5, 0.3]] * 3)
    v = uniforms(5, 3)
    numbers = wc.Categorical(probs, support=[7.0, -1.0, 3.0])  # in order: 0.5, 0.3, 0.2
    assert_allclose(pit([7.0, -1.0, 3.0], numbers, rng=5), [0.8, 0.0, 0.5] + v * [0.2, 0.5, 0.3], rtol=1e-12)
    names = wc.Categorical(probs, classes=["a", "b", "c"])
    with pytest.raises(TypeError, match="pit needs an order, and 3 classes have none"):
        pit(["a", "b", "c"], names)
    assert_allclose(
        pit([1, 0, 1], np.array([0.3] * 3), rng=5), [0.7, 0, 0.7] + v * [0.3, 0.7, 0.3], rtol=1e-12
    )


def test_draws_are_ranked_and_atoms_are_not() -> None:
    values = np.array([[1.0, 2.0, 2.0, 5.0]] * 3)
    y, v = np.array([0.0, 2.0, 6.0]), uniforms(6, 3)
    draws = pit(y, wc.Samples(values), rng=6)
    assert_allclose(draws, (np.array([0, 1, 4]) + v * np.array([1, 3, 1])) / 5, rtol=1e-13)
    atoms = pit(y, wc.Samples(values, kind="atoms"), rng=6)
    assert_allclose(atoms, [0.0, 0.25 + 0.5 * v[1], 1.0], rtol=1e-13)


def test_quantiles_and_points() -> None:
    pred = wc.Quantiles([0.1, 0.6], np.array([[0.0, 1.0]] * 3))
    v = uniforms(7, 3)
    assert_allclose(pit([-1.0, 0.5, 1.5], pred, rng=7), [0.0, 0.1, 0.6] + v * [0.1, 0.5, 0.4], rtol=1e-12)
    sure = wc.Normal(np.zeros(3), 0.0)
    assert_allclose(pit([-1.0, 0.0, 2.0], sure, rng=7), [0.0, v[1], 1.0], rtol=1e-12)
    mixed = wc.Mixture([wc.Normal(np.zeros(3), 1.0), wc.Samples(np.zeros((3, 2)), kind="atoms")])
    expected = 0.5 * stats.norm.cdf([-1.0, 0.0, 2.0]) + 0.5 * np.array([0.0, v[1], 1.0])
    assert_allclose(pit([-1.0, 0.0, 2.0], mixed, rng=7), expected, rtol=1e-12)


# -- intervals -------------------------------------------------------------------------------


def test_intervals_by_hand() -> None:
    found = interval_coverage(Y, wc.Normal(LOC, SCALE), levels=[0.5, 0.9])
    z = np.abs(Y - LOC) / SCALE
    half = stats.norm.ppf([0.75, 0.95])
    assert_allclose(found.coverage, [(z <= h).mean() for h in half])
    assert_allclose(found.widths, 2 * half * SCALE.mean(), rtol=1e-12)
    assert_array_equal(found.expected, [0.5, 0.9])
    assert found.value == pytest.approx(np.max(np.abs(found.coverage - found.expected)))
    assert np.all((found.low <= found.coverage) & (found.coverage <= found.high))


def test_expected_coverage_of_discrete_predictions() -> None:
    rate = np.array([0.3, 2.0, 9.0])
    found = interval_coverage(np.array([0.0, 1.0, 30.0]), wc.Poisson(rate), levels=[0.8])
    low, high = stats.poisson.ppf(0.1, rate), stats.poisson.ppf(0.9, rate)
    mass = stats.poisson.cdf(high, rate) - stats.poisson.cdf(low - 1, rate)
    assert_allclose(found.expected, [mass.mean()], rtol=1e-12)
    assert found.coverage == pytest.approx([2 / 3])
    table = wc.Categorical(np.array([[0.1, 0.2, 0.7]]), support=[3.0, 2.0, 1.0])
    assert interval_coverage([3.0], table, levels=[0.7]).expected == pytest.approx([0.9])


def test_expected_coverage_of_draws() -> None:
    """Of 19 draws the middle 17 bound 16 of 20 equally probable gaps."""
    values = np.arange(19.0)[None, :].repeat(2, axis=0)
    found = interval_coverage([9.5, 100.0], wc.Samples(values), levels=[0.85])
    assert found.expected == pytest.approx([16 / 20])
    assert found.coverage == pytest.approx([0.5])


@pytest.mark.parametrize("size", [1, 4, 19])
def test_expected_coverage_of_draws_with_ties(size: int) -> None:
    """Of draws and target, alike if calibrated, the share that lies in the interval of all others."""
    rng = np.random.default_rng(size)
    pooled = np.where(rng.random((40, size + 1)) < 0.4, 0.0, rng.normal(1.0, 1.0, (40, size + 1)).round(1))
    untied = interval_coverage(np.zeros(1), wc.Samples(1.0 + np.arange(size)[None]), levels=[0.5, 0.8, 0.95])
    for level, fewest in zip(untied.levels, untied.expected, strict=True):
        held = [
            interval_coverage(pooled[:, i], wc.Samples(np.delete(pooled, i, axis=1)), levels=[level])
            for i in range(size + 1)
        ]
        share = np.mean([one.coverage[0] for one in held])
        assert share > fewest + 0.01
        assert_allclose([one.expected[0] for one in held], share, rtol=1e-12)


def test_confidence_limits_against_scipy() -> None:
    hits = np.array([0, 3, 10, 20])
    low, high = clopper_pearson(hits.astype(float), 20, 0.05)
    for k, a, b in zip(hits, low, high, strict=True):
        exact = stats.binomtest(int(k), 20).proportion_ci(0.95, method="exact")
        assert (a, b) == pytest.approx((exact.low, exact.high), abs=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pit(wc.Normal(LOC, SCALE), Y), TypeError, "truth first"),
        (
            lambda: pit(np.zeros((2, 2)), wc.DiagonalNormal(np.zeros((2, 2)), 1.0)),
            TypeError,
            "one coordinate",
        ),
        (lambda: pit(["a"], wc.Samples([["a", "b"]])), TypeError, "needs predictions with cdf"),
        (lambda: pit([0, 3], np.array([[0.5, 0.5]] * 2)), ValueError, "row 1"),
        (lambda: interval_coverage(Y, wc.Normal(LOC, SCALE), levels=[1.0]), ValueError, "between 0 and 1"),
        (lambda: interval_coverage([0], np.array([[0.5, 0.5]])), TypeError, "support="),
        (lambda: interval_coverage(wc.Normal(LOC, SCALE), Y), TypeError, "truth first"),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_the_table_of_quantiles_is_the_curve_with_its_band() -> None:
    rng = np.random.default_rng(0)
    found = wc.quantile_calibration(rng.normal(size=200), wc.Normal(np.zeros(200), 1.0))
    lines = repr(found).splitlines()
    assert lines[1].split("  ")[1:2] == ["level"]
    rows = [line.split() for line in lines[2:]]
    assert [row[0] for row in rows] == ["5%", "10%", "25%", "50%", "75%", "90%", "95%"]
    for level, below, low, _, high in rows:
        k = int(np.argmin(np.abs(found.levels - float(level[:-1]) / 100)))
        assert float(below[:-1]) == pytest.approx(100 * found.frequencies[k], abs=0.05)
        assert float(low[:-1]) < float(level[:-1]) < float(high[:-1])
    assert "<td" in found._repr_html_()
    few = wc.quantile_calibration(
        rng.normal(size=50), wc.Quantiles([0.1, 0.5, 0.9], np.tile([-1.3, 0.0, 1.3], (50, 1)))
    )
    assert [line.split()[0] for line in repr(few).splitlines()[2:]] == ["10%", "50%", "90%"]


# -- outcomes on quantiles ---------------------------------------------------------------------


def counted(n: int = 200) -> tuple[Any, Any]:
    """Counts, and their true quantiles: right, and nearly a third of the counts fall on the lowest."""
    rng = np.random.default_rng(3)
    rate, levels = rng.gamma(3.0, 0.5, n), np.array([0.1, 0.5, 0.9])
    return rng.poisson(rate), wc.Quantiles(levels, stats.poisson.ppf(levels, rate[:, None]))


@pytest.mark.parametrize(
    "judge",
    [
        *(wc.calibration_test, wc.report, wc.witness, wc.skce, wc.ece),
        *(pit, interval_coverage, wc.quantile_calibration, wc.displays.CoverageDisplay.computed),
        lambda y, pred: wc.Monitor().update(y, pred),
        lambda y, pred: wc.local_discrepancy(y, pred, pred),
        lambda y, pred: wc.ucme(y, pred, locations=5),
    ],
)
def test_outcomes_on_their_quantiles_are_refused_wherever_calibration_is_judged(judge: Any) -> None:
    y, pred = counted()
    with pytest.raises(wc.RowError, match=r"equals its own quantile of level 0\.5 in 76 of 200 cases, first"):
        judge(y, pred)


def test_outcomes_on_their_quantiles_have_scores_and_remedies() -> None:
    y, pred = counted()
    assert float(wc.pinball_loss(y, pred)) > 0.0
    with pytest.raises(wc.RowError, match=r"Poisson, NegativeBinomial or Categorical.*Samples") as error:
        interval_coverage(y, pred)
    assert y[error.value.row] == pred.values[error.value.row, 1]
    zeros = np.where(np.arange(200) < 30, 0.0, 1.0 + np.arange(200) / 100.0)  # an amount, often nothing
    with pytest.raises(wc.RowError, match=r"level 0\.05 in 30 of 200 cases, first in row 0"):
        wc.calibration_test(zeros, wc.Quantiles([0.05, 0.5], np.tile([0.0, 1.9], (200, 1))))


@pytest.mark.parametrize("library", [np.asarray, torch.as_tensor, jnp.asarray])
def test_outcomes_on_quantiles_of_fewer_digits_are_on_them(library: Any) -> None:
    rng = np.random.default_rng(5)
    y = np.round(rng.normal(size=200)) + 0.1
    exact = np.round(np.tile([-1.3, 0.0, 1.3], (200, 1))) + 0.1
    told: list[str] = []
    for targets, values in (
        (y, exact),
        (library(y), library(exact.astype(np.float32))),
        (y.astype(np.float32), exact),
    ):
        with pytest.raises(wc.RowError, match="equals its own quantile") as error:
            wc.skce(targets, wc.Quantiles([0.1, 0.5, 0.9], values))
        told.append(str(error.value))
    assert told == told[:1] * 3
    counts, pred = counted()
    with pytest.raises(wc.RowError, match=r"level 0\.5 in 7\d of 200 cases"):  # those of root finders
        wc.skce(counts, wc.Quantiles(pred.levels, pred.values - 1e-12))


def test_continuous_outcomes_are_never_on_quantiles_of_fewer_digits() -> None:
    rng = np.random.default_rng(6)
    loc = rng.normal(300.0, 5.0, 2000)  # temperatures
    for dtype in (np.float32, np.float64):
        values = (loc[:, None] + stats.norm.ppf([0.1, 0.5, 0.9])).astype(dtype)
        pred = wc.Quantiles([0.1, 0.5, 0.9], values)
        ties = pred.check_judged(rng.normal(loc, 1.0))
        assert ties is not None
        assert ties.cases == 2000
        assert max(ties.counts) <= 2


def ties(y: Any, levels: Any, values: Any) -> tuple[int, ...]:
    with counted_only():
        found = wc.Quantiles(levels, values).check_judged(y)
    assert found is not None
    return found.counts


@pytest.mark.parametrize("far", [1e11, 1e12, 1e18, 1e308])
def test_a_quantile_far_off_makes_no_ties_with_the_others(far: float) -> None:
    """Quantiles without a limit on one side are large numbers, since infinite ones are refused."""
    rng = np.random.default_rng(0)
    loc, limit = rng.normal(size=400), np.full(400, far)
    y = rng.normal(loc)
    assert ties(y, [0.05, 0.5, 0.99], np.c_[loc - 1.645, loc, limit]) == (0, 0, 0)
    assert ties(y, [0.01, 0.5], np.c_[-limit, loc]) == (0, 0)
    assert ties(y, [0.01, 0.5, 0.99], np.c_[-limit, loc, limit]) == (0, 0, 0)
    assert ties(y.astype(np.float32), [0.05, 0.99], np.c_[loc - 1.645, limit]) == (0, 0)
    table = wc.quantile_calibration(y, wc.Quantiles([0.05, 0.5, 0.99], np.c_[loc - 1.645, loc, limit]))
    assert_allclose(table.frequencies, np.mean(y[:, None] <= np.c_[loc - 1.645, loc, limit], axis=0))


def test_wide_skewed_and_distant_outcomes_are_on_no_quantiles() -> None:
    rng = np.random.default_rng(1)
    levels, loc = np.array([0.05, 0.5, 0.95]), rng.normal(size=400)
    y, values = rng.normal(loc), loc[:, None] + stats.norm.ppf(levels)
    for power in (10.0, 20.0, 100.0):
        assert ties(np.exp(power * y), levels, np.exp(power * values)) == (0, 0, 0)
    # Seconds since 1970, a ratio of clocks, and what is very small or large as a whole.
    for place, scale in ((1.7e9, 1.0), (1.0, 1e-12), (0.0, 1e-13), (0.0, 1e13)):
        assert ties(place + scale * y, levels, place + scale * values) == (0, 0, 0)
    # Rounding moves a number of 24 bits by half of its last one at most.
    half = 0.5 * float(np.spacing(np.float32(2020.0)))
    for scale, most in ((0.01, 2), (0.001, 30)):
        years = (2020.0 + scale * values).astype(np.float32)
        near = np.abs(2020.0 + scale * y[:, None] - years.astype(np.float64)) <= half
        counts = ties(2020.0 + scale * y, levels, years)
        assert counts == tuple(near.sum(axis=0).tolist())
        assert max(counts) <= most
    assert max(counts) >= 10


def test_outcomes_near_quantiles_that_solve_an_equation_are_on_them() -> None:
    """A root finder stops at a distance of 1e-12, or at a few last digits of what it seeks."""
    y, pred = counted()
    levels, exact = pred.levels, np.asarray(pred.values)
    spread = exact[:, -1] > exact[:, 0]  # else nothing tells a distance from a scale
    y, exact = y[spread].astype(np.float64), exact[spread]
    counts = ties(y, levels, exact)
    assert min(counts) > 10
    for values in (exact - 1e-12, exact + 2e-12, exact * (1 + 4e-16)):
        assert ties(y, levels, values) == counts
    assert ties(1e6 * y, levels, 1e6 * exact * (1 + 4e-16)) == counts
    assert ties(y - 1e-12, levels, exact) == counts  # differences, which are hardly ever exactly zero


def test_quantiles_fitted_to_the_cases_they_are_judged_by_are_told_to_be() -> None:
    y = np.linspace(-1.0, 1.0, 30)
    line = np.where(np.arange(30) < 5, y, 0.5)  # passes through as many cases as it has parameters
    with pytest.raises(wc.RowError, match=r"add centred noise .* to y; or were the .* judge held-out ones"):
        wc.calibration_test(y, wc.Quantiles([0.5], line[:, None]))


def test_a_few_ties_are_below_in_every_number() -> None:
    levels, values = [0.25, 0.75], np.tile([0.0, 1.0], (20, 1))
    y = np.repeat([-1.0, 0.0, 0.5, 1.0, 2.0], [3, 2, 9, 2, 4])
    pred = wc.Quantiles(levels, values)
    assert_allclose(wc.quantile_calibration(y, pred).frequencies, [0.25, 0.8])
    assert_allclose(interval_coverage(y, pred).coverage, [0.55])
    assert_allclose(np.mean(np.asarray(pit(y, pred)) <= 0.25), 0.25)
    assert_array_equal(np.bincount(pred.bins(y)), [5, 11, 4])
