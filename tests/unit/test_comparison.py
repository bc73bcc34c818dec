"""Comparison of two models: the U-statistic by explicit sums, kernels for two families, words, errors."""

import json
from dataclasses import replace
from itertools import combinations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from scipy import optimize, special, stats

import wellcal as wc
from wellcal.comparison import Comparison, compare, pooled_kernel
from wellcal.comparison.differences import Difference, change_in_words, simultaneous_critical
from wellcal.comparison.models import SKCE
from wellcal.comparison.result import some_only, unsure
from wellcal.comparison.shares import SHARES
from wellcal.comparison.sizes import difference_error, scores_of, size_of
from wellcal.comparison.usual import residuals_of_draws, scores_of_draws
from wellcal.displays import ComparisonDisplay
from wellcal.hypotests.parts.families import parts_of
from wellcal.hypotests.resampling import more_resamples
from wellcal.kernels import Callable, Delta, ExpDistance, Gaussian, TotalVariation, Wasserstein
from wellcal.problem.problem import prepare
from wellcal.problem.target_resampling import pool_draws
from wellcal.problem.weights import MeanOfWeighted

pytestmark = pytest.mark.filterwarnings("ignore:p = .* is the smallest", "ignore:with n_resamples")
N = 30
rng = np.random.default_rng(11)
MU, SIGMA = rng.normal(size=N), np.exp(0.2 * rng.normal(size=N))
Y = rng.normal(MU, SIGMA)
A, B = wc.Normal(MU + 0.6, SIGMA), wc.Normal(MU, 1.5 * SIGMA)
KERNEL = ExpDistance(Wasserstein()) @ Gaussian()
FAST = {"rng": 0, "n_resamples": 99}


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    """What is rejected needs no more resamples than were asked for."""
    monkeypatch.setattr(more_resamples, "MOST_DRAWS", 0)


def matrix(pred, kernel, y=Y):
    problem = prepare(y, pred, kernel)
    h = problem.h(problem.rows, problem.rows)
    np.fill_diagonal(h, 0.0)
    return h


def test_difference_is_the_u_statistic_of_q():
    found = compare(Y, A, B, kernel=KERNEL, **FAST)
    q = matrix(A, KERNEL) - matrix(B, KERNEL)
    assert float(found.estimate) == pytest.approx(q.sum() / (N * (N - 1)), rel=1e-12)
    error = np.sqrt(4.0 * np.var(q.sum(axis=1) / (N - 1), ddof=1) / N)
    assert found.estimate.standard_error == pytest.approx(error, rel=1e-10)
    assert found.statistic == pytest.approx(float(found.estimate) / error, rel=1e-10)
    assert found.degrees_of_freedom == N - 1
    assert found.difference_pvalue == pytest.approx(2.0 * stats.t.sf(abs(found.statistic), N - 1), rel=1e-10)
    assert float(found.a) == pytest.approx(wc.skce(Y, A, kernel=KERNEL).value, rel=1e-12)
    assert found.b.standard_error == pytest.approx(wc.skce(Y, B, kernel=KERNEL).standard_error, rel=1e-10)
    interval = found.confidence_interval()
    assert interval.level == 0.95  # together with that of the error in centre and spread
    assert interval.high - interval.low == pytest.approx(2 * stats.t.ppf(0.995, N - 1) * error, rel=1e-10)
    wider = found.confidence_interval(0.99)
    assert wider.high - float(found.estimate) == pytest.approx(stats.t.ppf(0.995, N - 1) * error, rel=1e-10)


def test_pvalue_needs_both_a_difference_and_a_miscalibrated_model():
    found = compare(Y, A, B, kernel=KERNEL, **FAST)
    smaller = min(test.pvalue for test in found.tests)
    skce, size = found.differences[:2]
    assert (skce.measure, skce.pvalue) == ("SKCE", found.difference_pvalue)
    shared = min(1.0, skce.pvalue / 0.2, size.pvalue / 0.8)
    assert found.pvalue == max(shared, min(1.0, 2.0 * smaller))
    assert found.tests[0].method == "omnibus"
    assert found.tests[0].kernel == KERNEL


HONEST = wc.Normal(MU, SIGMA)
DOUBTED = {
    "too wide": (HONEST, wc.Normal(MU, 1.8 * SIGMA)),
    "too narrow": (wc.Normal(MU, 0.7 * SIGMA), HONEST),
    "shifted": (wc.Normal(MU + 0.3, SIGMA), HONEST),
    "another family": (wc.Laplace(MU, 0.4 * SIGMA), HONEST),
    "honest": (HONEST, wc.Normal(MU, 1.02 * SIGMA)),
}


@pytest.mark.parametrize("kernel", [None, KERNEL])
@pytest.mark.parametrize("models", DOUBTED)
def test_the_tests_are_those_that_calibration_test_makes(models, kernel):
    """A model that `calibration_test` rejects is never said to be not shown to be miscalibrated."""
    pair = DOUBTED[models]
    found = compare(Y, *pair, kernel=kernel, **FAST)
    alone = [wc.calibration_test(Y, pred, kernel=kernel, **FAST) for pred in pair]
    assert [test.pvalue for test in found.tests] == [test.pvalue for test in alone]
    assert [test.method for test in found.tests] == [test.method for test in alone]
    assert found.degenerate == (min(test.pvalue for test in alone) > 0.05)
    assert ("Neither model is shown" in found.verdict) == found.degenerate


def test_a_wrong_spread_opens_the_gate():
    """Spread is what the SKCE alone hardly sees; here its own test does not reject, and `auto` does."""
    far = np.random.default_rng(3)
    mu = far.normal(size=100)
    y, narrow = far.normal(mu, 1.0), wc.Normal(mu, np.full(100, 0.75))
    assert wc.calibration_test(y, narrow, method="exact", **FAST).pvalue > 0.05
    assert wc.calibration_test(y, narrow, **FAST).pvalue <= 0.05
    assert not compare(y, narrow, wc.Normal(mu, np.ones(100)), **FAST).degenerate


def test_a_generator_serves_both_tests():
    found, again, other = (compare(Y, A, B, rng=np.random.default_rng(s), n_resamples=99) for s in (5, 5, 6))
    assert [t.pvalue for t in found.tests] == [t.pvalue for t in again.tests]
    assert other.statistic == found.statistic


def test_swapping_the_models_changes_the_sign_only():
    there, back = (compare(Y, *models, **FAST) for models in ((A, B), (B, A)))
    assert float(there.estimate) == pytest.approx(-float(back.estimate), rel=1e-12)
    assert there.estimate.standard_error == pytest.approx(back.estimate.standard_error, rel=1e-12)
    assert there.difference_pvalue == pytest.approx(back.difference_pvalue, rel=1e-9)
    assert there.kernel == back.kernel


def test_a_model_does_not_differ_from_itself():
    found = compare(Y, A, A, **FAST)
    assert float(found.estimate) == found.statistic == 0.0
    assert found.pvalue == found.difference_pvalue == 1.0


def test_scales_come_from_both():
    far = wc.Normal(MU + 50.0, SIGMA)
    pooled = compare(Y, A, far, **FAST).kernel
    assert pooled == wc.default_kernel(wc.Normal(np.concatenate([MU + 0.6, MU + 50.0]), np.tile(SIGMA, 2)))


def test_both_calibrated_is_said():
    found = compare(Y, wc.Normal(MU, SIGMA), wc.Normal(MU, 1.02 * SIGMA), **FAST)
    assert found.degenerate
    assert "Neither model is shown to be miscalibrated" in repr(found)
    assert "-0.0175 (no interval)" in repr(found)
    assert "both models may be calibrated" in repr(found)
    assert found.pvalue > 0.05


def test_words():
    better = compare(Y, wc.Normal(MU, SIGMA), wc.Normal(MU + 3.0, SIGMA), **FAST)
    assert better.verdict == "A is better calibrated than B"
    worse = compare(Y, wc.Normal(MU + 3.0, SIGMA), wc.Normal(MU, SIGMA), **FAST)
    assert worse.verdict == "B is better calibrated than A"
    both = compare(Y, wc.Normal(MU + 2.0, SIGMA), wc.Normal(MU - 2.0, SIGMA), **FAST)
    assert both.verdict == "No difference in calibration is shown"
    assert "intervals               95%, for SKCE, and centre and spread together; for NLL" in repr(better)
    assert "A is better calibrated than B (p" in better._repr_html_()
    plain = json.loads(better.to_json())
    assert plain["verdict"] == better.verdict
    assert plain["interval"][1] < 0 < plain["b"]["value"]
    assert len(plain["tests"]) == 2


def test_weights():
    weights = rng.gamma(1.0, size=N)
    found = compare(Y, A, B, kernel=KERNEL, weights=weights, **FAST)
    a, b = (wc.skce(Y, p, kernel=KERNEL, weights=weights).value for p in (A, B))
    assert float(found.estimate) == pytest.approx(a - b, rel=1e-11)
    q = matrix(A, KERNEL) - matrix(B, KERNEL)
    means = q @ weights / (weights.sum() - weights)
    square = np.sum(weights**2 * (means - float(found.estimate)) ** 2)
    share = weights / weights.sum()
    residuals = np.eye(N) - share  # of scores around their weighted mean
    form = residuals.T @ np.diag(share**2) @ residuals
    square *= 4.0 * np.sum(share**2) / np.trace(form) / weights.sum() ** 2
    assert found.estimate.standard_error == pytest.approx(np.sqrt(square), rel=1e-10)
    assert found.degrees_of_freedom == pytest.approx(np.trace(form) ** 2 / np.trace(form @ form))
    equal, plain = (compare(Y, A, B, weights=w, **FAST) for w in (np.full(N, 2.0), None))
    assert equal.degrees_of_freedom == pytest.approx(N - 1)
    one = compare(Y, A, B, weights=np.where(np.arange(N) == 3, 1e9, 1.0), **FAST)
    assert one.degrees_of_freedom == 1.0
    assert np.isfinite(one.confidence_interval().high)
    assert equal.statistic == pytest.approx(plain.statistic, rel=1e-10)
    with pytest.raises(ValueError, match="weights must not be negative in row 3"):
        compare(Y, A, B, weights=np.where(np.arange(N) == 3, -1.0, 1.0))


PROBS = rng.dirichlet(np.ones(2), N)
PAIRS = {
    "Normal and Laplace": (Y, A, wc.Laplace(MU, SIGMA)),
    "Normal and Samples": (Y, A, wc.Samples(rng.normal(MU[:, None], 1.0, (N, 6)))),
    "Normal and StudentT": (Y, A, wc.StudentT(5.0, MU, SIGMA)),
    "mixtures of two and three": (
        Y,
        wc.Mixture([A, B]),
        wc.Mixture([A, B, wc.Normal(MU, SIGMA)]),
    ),
    "Poisson and NegativeBinomial": (
        rng.poisson(3.0, N),
        wc.Poisson(np.full(N, 3.0)),
        wc.NegativeBinomial(rng.gamma(9.0, 1 / 3, N), np.full(N, 0.5)),
    ),
    "Categorical and an ensemble": (
        rng.integers(0, 2, N),
        wc.Categorical(PROBS),
        wc.Mixture([wc.Categorical(PROBS), wc.Categorical(PROBS[::-1])]),
    ),
    "normals of vectors": (
        rng.normal(size=(N, 2)),
        wc.DiagonalNormal(np.zeros((N, 2)), np.ones((N, 2))),
        wc.MultivariateNormal(rng.normal(size=(N, 2)), np.tile(np.eye(2), (N, 1, 1))),
    ),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_two_families(pair):
    y, a, b = PAIRS[pair]
    found = compare(y, a, b, rng=0, n_resamples=99)
    for pred, part in ((a, found.a), (b, found.b)):
        assert float(part) == pytest.approx(wc.skce(y, pred, kernel=found.kernel).value, rel=1e-6, abs=1e-12)
    assert "MaximumMeanDiscrepancy" in repr(found.kernel)
    assert found.kernel.guarantees(a).positive_definite is True
    assert 0.0 < found.pvalue <= 1.0


def test_bernoulli_and_its_categorical_agree():
    y, other = rng.integers(0, 2, N), wc.Bernoulli(rng.uniform(size=N))
    plain = compare(y, wc.Bernoulli(PROBS[:, 1]), other, **FAST)
    mixed = compare(y, wc.Categorical(PROBS), other, **FAST)
    assert repr(mixed.kernel) == repr(plain.kernel)
    assert isinstance(mixed.kernel.predictions.metric, TotalVariation)
    assert mixed.statistic == pytest.approx(plain.statistic, rel=1e-10)


def test_draws_are_compared_as_draws():
    a, b = (wc.Samples(rng.normal(MU[:, None] + s, 1.0, (N, 5))) for s in (0.0, 1.0))
    found = compare(Y, a, b, **FAST)
    assert float(found.a) == pytest.approx(wc.skce(Y, a, kernel=found.kernel).value, rel=1e-10)


def test_families_that_cannot_be_sampled_are_tested_by_cumulants():
    class Given(wc.Normal):
        draw = wc.Predictions.draw

    found = compare(Y, Given(MU, SIGMA), Given(MU + 0.6, SIGMA), kernel=KERNEL, **FAST)
    assert found.tests[0].method == "pearson"


def test_objects_need_a_kernel():
    words = np.array([["a", "b", "c"]] * 6, dtype=object)
    y = ["a", "b", "a", "c", "b", "a"]
    a, b = wc.Samples(words, kind="atoms"), wc.Samples(words[:, ::-1], kind="atoms")
    with pytest.raises(ValueError, match="have no default kernel; give ExpDistance"):
        compare(y, a, b)
    flat = Callable(lambda p, q: np.ones((len(p), len(q)))) @ Delta()
    assert isinstance(compare(y, a, b, kernel=flat, **FAST), Comparison)


@pytest.mark.parametrize("convert", [torch.tensor, jnp.asarray])
def test_other_libraries(convert):
    plain = compare(Y, A, B, **FAST)
    same = compare(
        convert(Y), wc.Normal(convert(MU + 0.6), convert(SIGMA)), wc.Normal(MU, 1.5 * SIGMA), **FAST
    )
    assert same.statistic == pytest.approx(plain.statistic, rel=1e-4)


def test_errors_name_the_model():
    with pytest.raises(ValueError, match="same length") as caught:
        compare(Y, A, wc.Normal(MU[:5], SIGMA[:5]))
    assert "pred_b" in caught.value.__notes__[0]
    with pytest.raises(TypeError, match="the order is"):
        compare(A, B, Y)
    with pytest.raises(ValueError, match="at least 3 cases, found 2"):
        compare(Y[:2], A[:2], B[:2])
    with pytest.raises(ValueError, match="level must be between 0 and 1, found"):
        compare(Y, A, B, level=1.5)
    with pytest.raises((TypeError, ValueError)) as caught:
        compare(Y, A, wc.Gamma(np.ones(N), np.ones(N)), kernel=ExpDistance(TotalVariation()) @ Gaussian())
    assert any("pred_" in note for note in caught.value.__notes__)
    with pytest.raises(
        TypeError, match="no kernel is known that serves both pred_a, Normal, and pred_b, Quantil"
    ):
        pooled_kernel(A, wc.Quantiles([0.5], MU[:, None]))
    with pytest.raises(TypeError, match=r"no kernel is known that serves both.*give all in one family"):
        compare(
            ["no"] * N,
            wc.Categorical(PROBS, classes=["no", "yes"]),
            wc.Categorical(PROBS, classes=["yes", "no"]),
        )


# -- other measures, and more models ------------------------------------------------------------------


def test_differences_by_their_definitions():
    found = {each.measure: each for each in compare(Y, A, B, **FAST).differences}
    assert list(found) == ["SKCE", "centre and spread", "NLL", "CRPS"]
    for name, score in (("NLL", wc.nll), ("CRPS", wc.crps)):
        assert found[name].first == pytest.approx(score(Y, A).value, rel=1e-12)
        assert found[name].value == pytest.approx(score(Y, A).value - score(Y, B).value, rel=1e-9)
    gaps = stats.norm.logpdf(Y, B.loc, B.scale) - stats.norm.logpdf(Y, A.loc, A.scale)
    test = stats.ttest_1samp(gaps, 0.0)
    assert found["NLL"].pvalue == pytest.approx(test.pvalue, rel=1e-9)
    low, high = test.confidence_interval(0.95)
    interval = found["NLL"].confidence_interval()
    assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-9)
    z = (Y - B.loc) / B.scale
    length = np.hypot(z.mean(), np.sqrt(2.0) * np.log(z.std()))
    assert found["centre and spread"].second == pytest.approx(length, rel=1e-12)


def test_measures_of_other_families():
    y = rng.integers(0, 2, N)
    found = compare(y, wc.Categorical(PROBS), wc.Bernoulli(np.full(N, 0.5)), **FAST)
    of_classes = ["SKCE", "temperature and frequency", "NLL", "Brier score"]
    assert [each.measure for each in found.differences] == of_classes
    assert found.differences[3].first == pytest.approx(wc.brier(y, wc.Categorical(PROBS)).value, rel=1e-12)
    draws = wc.Samples(MU[:, None] + rng.normal(size=(N, 9)))
    found = compare(Y, draws, A, **FAST)
    assert [each.measure for each in found.differences] == ["SKCE", "centre and spread", "CRPS"]
    assert np.isfinite(found.differences[1].standard_error)


def coarse(name, n, spread=1.0):
    """Targets, and predictions whose scores are not standard normal; spreads as a multiple of the true."""
    some = np.random.default_rng(6)
    mu = some.normal(size=n)
    if name == "rare counts":
        rate = 0.2 * np.exp(0.3 * mu)
        return some.poisson(rate), wc.Poisson(rate)
    if name == "quantiles":
        levels = np.array([0.1, 0.9])
        return some.normal(mu), wc.Quantiles(levels, mu[:, None] + spread * special.ndtri(levels))
    if name == "draws":
        return some.normal(mu), wc.Samples(mu[:, None] + spread * some.normal(size=(n, 5)))
    if name == "atoms":
        values = mu[:, None] + some.normal(size=(n, 4))
        y = values[np.arange(n), some.integers(4, size=n)]
        return mu + (y - mu) / spread, wc.Samples(values, kind="atoms")
    values = mu[:, None, None] + spread * some.normal(size=(n, 8, 2))
    return mu[:, None] + some.normal(size=(n, 2)), wc.Samples(values)


@pytest.mark.parametrize("name", ["rare counts", "quantiles", "draws", "atoms", "vectors of draws"])
def test_calibrated_predictions_have_no_error_however_coarse_their_scores(name):
    """About 0.03 by chance; the variance of the scores alone would make it 0.16 to 0.85."""
    y, pred = coarse(name, 4000)
    found = size_of(y, pred, np.full(4000, 1 / 4000))
    assert found.length < 0.09
    assert np.mean(found.terms) == pytest.approx(0.0, abs=1e-9)


def test_intervals_that_are_too_narrow_are_not_better_calibrated():
    y, right = coarse("quantiles", 1000)
    _, narrow = coarse("quantiles", 1000, spread=0.8)
    found = compare(y, right, narrow, rng=0, n_resamples=199)
    assert found.verdict == "A is better calibrated than B"
    assert all(each.value < 0.0 for each in found.differences[:2])


def test_what_is_usual_of_a_draw_is_what_is_scored_of_a_target():
    """A target is one of the pool: its own score is among those that are usual."""
    for name in ("draws", "vectors of draws"):
        y, pred = coarse(name, 30)
        pool = pool_draws(y, pred).values
        own = scores_of_draws(pool) if name == "draws" else residuals_of_draws(pool)
        z = scores_of(parts_of(pred), pred, y[None])[0]
        assert own[:, -1] == pytest.approx(z, rel=1e-9)


@pytest.mark.parametrize("family", ["normal", "vector", "binary", "classes", "counts", "quantiles"])
def test_length_of_an_error_and_its_terms(family):
    """Terms are derivatives with respect to the weights of cases."""
    n, far = 400, np.random.default_rng(2)
    x = far.normal(size=n)
    probs = special.softmax(1.5 * far.normal(size=(n, 4)), axis=1)
    targets, pred = {
        "normal": lambda: (x + 1.3 * far.normal(size=n) + 0.2, wc.Normal(x, np.ones(n))),
        "vector": lambda: (
            far.normal(size=(n, 2)) + 0.3,
            wc.DiagonalNormal(np.zeros((n, 2)), np.ones((n, 2))),
        ),
        "binary": lambda: (
            (far.random(n) < special.expit(x)).astype(int),
            wc.Bernoulli(special.expit(2 * x)),
        ),
        "classes": lambda: (
            (far.random(n)[:, None] > np.cumsum(probs, 1)[:, :-1]).sum(1),
            wc.Categorical(probs),
        ),
        "counts": lambda: (far.poisson(0.5 * np.exp(0.5 * x)), wc.Poisson(0.9 * np.exp(0.5 * x))),
        "quantiles": lambda: (x + far.normal(size=n), coarse("quantiles", n, 0.7)[1]),
    }[family]()
    flat = np.full(n, 1.0 / n)
    found = size_of(targets, pred, flat)
    for case in (0, 7, 100):
        step = 1e-4
        moved = flat * (1.0 - step)
        moved[case] += step
        change = (size_of(targets, pred, moved).length - found.length) / step
        assert change == pytest.approx(found.terms[case], rel=0.02, abs=2e-3)


@pytest.mark.parametrize("classes", [2, 5])
def test_length_of_an_error_of_classes_is_what_mending_gains(classes):
    """Twice the gain in log-likelihood, by a search without derivatives."""
    far = np.random.default_rng(11)
    logits = 1.5 * far.normal(size=(250, classes))
    targets = np.argmax(logits + far.gumbel(size=(250, classes)) + np.eye(classes)[0] * 0.5, axis=1)
    logs = special.log_softmax(3.0 * logits, axis=1)
    pred = wc.Bernoulli(np.exp(logs[:, 1])) if classes == 2 else wc.Categorical(np.exp(logs))

    def loss(line):
        moved = line[1] * logs + line[0] * np.eye(classes)[1] * (classes == 2)
        return -float(special.log_softmax(moved, axis=1)[np.arange(250), targets].mean())

    tight = {"xatol": 1e-8, "fatol": 1e-14}
    best = optimize.minimize(loss, [0.0, 1.0], method="Nelder-Mead", options=tight)
    found = size_of(targets, pred, np.full(250, 1 / 250))
    assert 0.5 * found.length**2 == pytest.approx(loss([0.0, 1.0]) - best.fun, rel=1e-5)
    assert found.measure == ("temperature and frequency" if classes == 2 else "temperature")


@pytest.mark.parametrize("probs", [np.full(60, 0.5), np.full(60, 0.2), np.linspace(0.0, 1.0, 60)])
def test_there_is_a_length_where_no_line_is_the_best(probs):
    """All predictions are alike, or outcomes are separated: what happened always is gained at most."""
    always = size_of(np.ones(60, dtype=int), wc.Bernoulli(probs), np.full(60, 1 / 60))
    most = np.sqrt(-2.0 * np.mean(np.log(np.maximum(probs, 1e-12))))
    assert 0.5 * most < always.length < most + 1e-3
    assert np.isfinite(always.terms).all()


def test_predictions_that_are_far_too_sure_are_worse_calibrated():
    """Those that leave no room for a residual have a large error, which stands out from none."""
    far = np.random.default_rng(12)
    odds = far.normal(0.0, 2.0, 250)
    y = (far.random(250) < special.expit(odds)).astype(int)
    right, sure = (wc.Bernoulli(special.expit(power * odds)) for power in (1.0, 5.0))
    found = compare(y, right, sure, rng=0, n_resamples=199)
    assert found.verdict == "A is better calibrated than B"
    assert "in temperature and frequency" in repr(found)


def test_equal_errors_of_classes_are_rarely_told_apart():
    """Frequencies that are too high and too low by the same: within the binomial bound of 0.04."""
    far, found = np.random.default_rng(13), 0
    flat = np.full(200, 1 / 200)
    for _ in range(400):
        odds = far.normal(0.0, 1.5, 200)
        y = (far.random(200) < special.expit(odds)).astype(int)
        a, b = (size_of(y, wc.Bernoulli(special.expit(odds + shift)), flat) for shift in (0.7, -0.7))
        gap = abs(a.length - b.length) / difference_error(a, b, flat, MeanOfWeighted.of(flat))
        found += gap > stats.t.isf(0.02, 199)
    assert found <= stats.binom.ppf(0.999, 400, 0.04)


def test_lengths_whose_direction_is_in_doubt_are_compared_with_care():
    """Two models that are hardly off, to either side: what they share may not cancel."""
    z = np.random.default_rng(5).normal(size=64)
    z = (z - z.mean()) / z.std()
    flat, pred = np.full(64, 1 / 64), wc.Normal(np.zeros(64), np.ones(64))
    a, b = (size_of(z + shift, pred, flat) for shift in (0.35, 0.05))
    assert difference_error(a, b, flat, MeanOfWeighted.of(flat)) > 0.2


def opposite(skce: float, level: float = 0.95) -> tuple[Difference, ...]:
    """Error in centre and spread of the second is smaller, p = .0001; SKCE by as many standard errors."""
    by_length = Difference("centre and spread", 0.6, 0.4, 0.05, 499.0, 2.05, level)
    return Difference(SKCE, 0.02, 0.02 + 0.005 * skce, 0.005, 499.0, 2.6, level), by_length


def test_measures_that_say_the_opposite_are_both_told():
    """What was seen: NB was called better calibrated than Poisson, with an SKCE that was clearly larger."""
    found = compare(Y, A, B, names=("Poisson", "NB"), **FAST)
    found = replace(found, pvalue=0.001, degenerate=False, differences=opposite(2.2))
    both = (
        "NB has the smaller error in centre and spread (0.4 against 0.6), but Poisson the smaller SKCE "
        "(0.02 against 0.031)"
    )
    assert found.verdict == both
    for skce in (-2.2, 1.5):  # the same side, or chance
        agreed = replace(found, differences=opposite(skce))
        assert agreed.verdict == "NB is better calibrated than Poisson"
    assert replace(found, differences=opposite(2.2, 0.99)).verdict == agreed.verdict
    given = {"Poisson": A, "NB": B, "far": wc.Normal(MU + 9.0, SIGMA)}
    several = compare(Y, given, rng=0, n_resamples=119)
    first, *others = (replace(pair, pvalue=0.001) for pair in several.pairs)
    several = replace(several, pairs=(replace(first, differences=opposite(2.2)), *others))
    assert several.verdict.endswith(f"far; {both}")
    assert len(several.decided) == 2 < len(several.shown)
    assert several.tied == (several.ranking[1],)
    agreed = replace(several, pairs=(replace(first, differences=opposite(1.5)), *others))
    assert (
        agreed.verdict
        == "NB is better calibrated than Poisson and far; Poisson is better calibrated than far"
    )
    assert agreed.tied == ()
    picture = ComparisonDisplay.from_result(several, against="NB", measure="centre and spread")
    assert picture.by_others[0] == "the SKCE says the opposite of Poisson - NB"


def test_differences_that_are_rounding_are_none():
    """What was seen: "does not change clearly: a difference of 0 (-3.8e-18 to 3.8e-18)"."""
    same = Difference("Brier score", 0.227, 0.227 + 3e-17, 2e-18, 99.0, 2.0, 0.95)
    assert change_in_words(same) == "Brier score does not change: 0.227"
    assert same.phrase == "0"
    ends = same.confidence_interval()
    assert (ends.low, ends.high) == (0.0, 0.0)
    assert (same.value, same.statistic, same.is_shown) == (0.0, 0.0, False)
    known = replace(same, second=0.227 + 1e-9, standard_error=1e-10)
    assert not known.is_none
    assert known.is_shown


MODELS = {"honest": HONEST, "far": wc.Normal(MU + 2.0, SIGMA), "wide": wc.Normal(MU, 9.0 * SIGMA)}


def test_several_models():
    options = {"kernel": KERNEL, "rng": 0, "n_resamples": 199}
    found = compare(Y, MODELS, **options)
    assert found.names == tuple(MODELS)
    assert found.ranking[0] == "honest"
    assert found.verdict.startswith("honest is better calibrated than far and wide")
    assert found.verdict in repr(found)
    assert found.verdict in found._repr_html_()
    assert wc.Comparisons.from_json(found.to_json()) == found
    # By SKCE far is farther off than wide.
    lengths = [replace(pair, differences=pair.differences[1:]) for pair in found.pairs]
    same = replace(found, pairs=tuple(pair for pair in lengths if pair.second == "wide"))
    assert same.verdict == "honest and far are better calibrated than wide"
    ties = tuple(replace(pair, pvalue=0.5) if pair.first == "honest" else pair for pair in lengths)
    assert replace(found, pairs=ties).ranking == ("honest", "far", "wide")  # far beats one more than honest
    names = tuple("abcde")
    pairs = tuple(replace(found.pairs[0], first=one, second=two) for one, two in combinations(names, 2))
    many = replace(
        found, names=names, estimates=found.estimates[:1] * 5, tests=found.tests[:1] * 5, pairs=pairs
    )
    assert many.ranking == names
    assert many.verdict == "a is better calibrated than b, c, d and e; 10 of 10 pairs differ"
    assert "a - e" in repr(many)
    assert "b - c" not in repr(many)
    assert "; error in centre and spread " in repr(found)
    two = compare(Y, HONEST, MODELS["far"], **options)
    pair = found.pairs[0]
    assert (pair.first, pair.second, pair.better, pair.worse) == ("honest", "far", "honest", "far")
    for alone, together in zip(two.differences, pair.differences, strict=True):
        assert together.value == pytest.approx(alone.value, rel=1e-12)
        assert together.standard_error == pytest.approx(alone.standard_error, rel=1e-12)
        share = SHARES.get(alone.measure, 1.0)
        assert alone.critical == pytest.approx(stats.t.ppf(1.0 - 0.025 * share, N - 1))
        assert alone.critical < together.critical <= stats.t.ppf(1.0 - 0.025 * share / 3.0, N - 1) + 1e-9
    assert [pair.pvalue for pair in found.pairs] >= [two.pvalue] * 3
    assert [test.pvalue for test in found.tests[:2]] == [test.pvalue for test in two.tests]


def test_of_many_models_the_best_and_its_ties_are_told():
    few = compare(
        Y, {"honest": HONEST, "far": MODELS["far"], "same": HONEST}, kernel=KERNEL, rng=0, n_resamples=119
    )
    names = tuple("abcdef")

    def with_ties(tied):
        pairs = tuple(
            replace(few.pairs[0], first=one, second=two, pvalue=1.0 if (one, two) in tied else 0.001)
            for one, two in combinations(names, 2)
        )
        return replace(
            few, names=names, estimates=few.estimates[:1] * 6, tests=few.tests[1:2] * 6, pairs=pairs
        )

    some = with_ties({("a", "b"), ("a", "c"), ("d", "e")})
    assert some.tied == ("b", "c")
    assert some.verdict == (
        "a is better calibrated than d, e and f; b and c are tied with it; 12 of 15 pairs differ"
    )
    first = with_ties({("a", name) for name in "bcdef"})
    assert (
        first.verdict
        == "No difference in calibration is shown between a and the others; 10 of 15 pairs differ"
    )
    none = with_ties(set(combinations(names, 2)))
    assert none.verdict == "No difference in calibration is shown between 6 models"
    wrong = replace(none, tests=(*few.tests[1:2] * 5, few.tests[0]))
    assert wrong.verdict.endswith("between 6 models, though only 5 of them are shown to be miscalibrated")
    assert with_ties(set()).verdict == "a is better calibrated than 5 others; 15 of 15 pairs differ"


def test_several_models_without_a_difference_are_tied():
    found = compare(Y, {"a": HONEST, "b": wc.Normal(MU, 1.02 * SIGMA), "c": HONEST}, **FAST)
    assert found.verdict == "No difference in calibration is shown between a, b and c"
    assert not found.shown


def excluding_zero(differences):
    ends = [found.confidence_interval() for found in differences if found.measure in SHARES and found.holds]
    return [end for end in ends if end.low > 0.0 or end.high < 0.0]


@pytest.mark.parametrize("seed", range(12))
def test_verdicts_and_intervals_say_the_same(seed):
    """A difference is shown where an interval of calibration excludes zero, and nowhere else."""
    far = np.random.default_rng([7, seed])
    mu, one = far.normal(size=60), np.ones(60)
    y = far.normal(mu, 1.0)
    a, b = wc.Normal(mu + 0.5 * np.sign(mu), one), wc.Normal(mu + 0.1, 1.2 * one)
    two = compare(y, a, b, rng=0, n_resamples=199)
    assert bool(excluding_zero(two.differences)) == (two.pvalue <= 0.05)
    shown = [found.high[0] < 0.0 or found.low[0] > 0.0 for found in map(ComparisonDisplay.from_result, [two])]
    assert shown == [two.pvalue <= 0.05]
    several = compare(y, {"a": a, "b": b, "c": wc.Normal(mu, 0.7 * one)}, rng=0)
    for pair in several.pairs:
        assert bool(excluding_zero(pair.differences)) == (pair in several.shown)


def test_one_rejection_of_two_is_not_enough_and_says_so():
    one, two = (replace(wc.calibration_test(Y, A, **FAST), pvalue=p) for p in (0.04, 0.6))
    assert unsure((one, two), 0.95).endswith("either model is miscalibrated (p = 0.08)")
    assert unsure((replace(one, pvalue=0.02), two), 0.95) == unsure((two, two), 0.95) == ""


def test_too_few_resamples_for_many_models_are_said():
    with pytest.warns(UserWarning, match=r"3 models cannot be shown; take n_resamples=119"):
        compare(Y, MODELS, rng=0, n_resamples=99)


def test_better_scores_are_no_difference_in_calibration():
    wide = compare(Y, wc.Normal(MU, SIGMA), wc.Normal(np.zeros(N), np.sqrt(1.0 + SIGMA**2)), **FAST)
    assert "A is better in NLL" in repr(wide)
    assert "scores also count how much a model says" in repr(wide)


def test_one_that_is_miscalibrated_and_one_that_may_not_be_is_said():
    """What is significant for one and not for the other is no difference between them, and reads like one."""
    one, other = compare(Y, HONEST, MODELS["far"], **FAST).tests
    assert some_only(("a", "b"), (one, other), 0.95) == ", though only b is shown to be miscalibrated"
    assert some_only(("a", "b"), (one, one), 0.95) == some_only(("a", "b"), (other, other), 0.95) == ""


def test_ties_in_calibration_are_in_the_order_of_their_scores():
    far = np.random.default_rng(2)
    mu, one = far.normal(size=200), np.ones(200)
    blunt, sharp = wc.Normal(0.0 * mu, np.sqrt(2.0) * one), wc.Normal(mu, one)
    found = compare(far.normal(mu), {"blunt": blunt, "sharp": sharp}, rng=0, n_resamples=99)
    assert not found.shown
    assert found.ranking == ("sharp", "blunt")
    assert "sharp is better than blunt in NLL and CRPS: scores also count how much" in repr(found)


def test_dictionaries_that_are_refused():
    with pytest.raises(TypeError, match="compare needs two models: give pred_a and pred_b, or a dictionary"):
        compare(Y, A)
    with pytest.raises(ValueError, match="found a dictionary with 1 of them"):
        compare(Y, {"a": A})
    with pytest.raises(ValueError, match="same length"):
        compare(Y, {"a": A, "b": B[:5]})
    stored = compare(Y, MODELS, **FAST).to_dict()
    stored["pairs"] = stored["pairs"][1:]
    with pytest.raises(ValueError, match="pairs must be all pairs of names"):
        wc.Comparisons.from_dict(stored)


def test_intervals_that_hold_together():
    """Three means of the same cases: together they need more than one does, and less than Bonferroni's."""
    far = np.random.default_rng(1)
    terms = far.normal(size=(500, 1)) + 0.5 * far.normal(size=(500, 3))
    critical = simultaneous_critical(terms, 499.0, 0.9)
    assert stats.t.ppf(0.95, 499) < critical < stats.t.ppf(1.0 - 0.1 / 6.0, 499)
    root = np.linalg.cholesky(np.corrcoef(terms.T))
    drawn = np.abs(far.normal(size=(100_000, 3)) @ root.T)
    assert np.mean(drawn.max(axis=1) <= critical) == pytest.approx(0.9, abs=0.01)


def test_a_wrong_spread_is_found():
    """Power is 0.94; of 30 fewer than 24 are found once in five thousand choices of seeds."""
    verdicts = []
    for seed in range(30):
        far = np.random.default_rng([100, seed])
        mu, one = far.normal(size=100), np.ones(100)
        y = far.normal(mu, 1.0)
        found = compare(y, wc.Normal(mu, one), wc.Normal(mu, 0.6 * one), rng=far, n_resamples=99)
        verdicts.append(found.verdict == "A is better calibrated than B")
    assert sum(verdicts) >= 24


# -- what numbers mean, and what is left out -------------------------------------------------------------


def test_a_score_that_is_infinite_is_said_to_be_left_out() -> None:
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), size=120)
    y = (p.cumsum(axis=1) < rng.uniform(size=(120, 1))).sum(axis=1)
    certain = np.eye(3)[p.argmax(axis=1)]
    wrong = int((p.argmax(axis=1) != y).sum())
    told = f"NLL, which is infinite: {{}} ({wrong} cases had probability 0 for what happened)"
    two = compare(y, p, certain, **FAST)
    several = compare(y, {"forest": certain, "soft": p}, **FAST)
    for found, name in ((two, "B"), (several, "forest")):
        assert told.format(name) in repr(found)
        clipped = "in the error in temperature probabilities count as 1e-12 at least"
        assert found.provenance["left out"] == f"{told.format(name)}; {clipped}"
        assert told.format(name) in repr(type(found).from_json(found.to_json()))
        assert "is a length: the root of twice the NLL" in repr(found)
    measures = [found.measure for found in two.differences]
    assert "NLL" not in measures
    assert "Brier score" in measures
    fine = compare(y, p, 0.5 * p + 1.0 / 6.0, **FAST)
    assert "left out" not in repr(fine)
    assert "NLL" in [found.measure for found in fine.differences]


def test_cases_of_weight_zero_count_nowhere():
    rng = np.random.default_rng(0)
    mu = rng.normal(size=120)
    counts = np.arange(120) % 2 == 0
    y = mu + np.where(counts, 1.0, 2.5) * rng.normal(size=120)
    a, b = wc.Normal(mu, np.ones(120)), wc.Normal(mu, np.full(120, 1.5))
    whole = wc.compare(y, a, b, weights=1.0 * counts, rng=0, n_resamples=99)
    part = wc.compare(y[counts], a[counts], b[counts], rng=0, n_resamples=99)
    assert [test.pvalue for test in whole.tests] == [test.pvalue for test in part.tests]
    assert whole.verdict == part.verdict
    assert [one.value for one in (whole.a, whole.b)] == pytest.approx([part.a.value, part.b.value], rel=1e-12)
    assert "count all cases with a weight alike" in repr(whole)
    several = wc.compare(list(y), {"a": a, "b": b, "c": a}, weights=1.0 * counts, rng=0, n_resamples=199)
    assert several.n_samples == 60
    assert "count all cases with a weight alike" in repr(several)
