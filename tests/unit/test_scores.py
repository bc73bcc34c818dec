"""Scores against scipy, and errors."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

import wellcal as wc
from wellcal.measures.estimate import estimate_text
from wellcal.measures.quantiles import QuantileCalibration, quantile_calibration
from wellcal.measures.running.means import RunningMean
from wellcal.measures.scores.casewise import mse, nll, pinball_loss

RNG = np.random.default_rng(3)
N = 40
MU, SIGMA = RNG.normal(size=N), RNG.gamma(2.0, 0.5, N)
Y = RNG.normal(MU, SIGMA)
LEVELS = np.arange(1, 20) / 20


def test_nll_of_normals():
    scores = -stats.norm.logpdf(Y, MU, SIGMA)
    found = nll(Y, wc.Normal(MU, SIGMA))
    assert found.value == pytest.approx(scores.mean(), rel=1e-13)
    assert found.standard_error == pytest.approx(stats.sem(scores), rel=1e-12)
    assert (found.name, found.n_samples) == ("NLL", N)
    assert isinstance(found.value, float)


def test_standard_errors_of_huge_and_of_many_scores():
    """Squares of scores that overflow are no reason to warn, and pieces of many scores add up."""
    zeros = wc.Normal(np.zeros(3), np.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wc.mse(np.array([1e120, 0.0, 2e120]), zeros).standard_error == np.inf
    y = np.random.default_rng(0).normal(size=50_000)
    found = wc.mse(y, wc.Normal(np.zeros(50_000), np.ones(50_000)))
    assert found.standard_error == pytest.approx(np.std(y**2, ddof=1) / np.sqrt(50_000), rel=1e-12)


def test_nll_takes_what_as_predictions_takes():
    assert float(nll(Y, (MU, SIGMA))) == float(nll(Y, wc.Normal(MU, SIGMA)))
    assert float(nll(Y, stats.norm(MU, SIGMA))) == pytest.approx(float(nll(Y, (MU, SIGMA))), rel=1e-13)


def test_nll_of_a_mixture():
    other = MU + 1.0
    pred = wc.Mixture([wc.Normal(MU, SIGMA), wc.Normal(other, SIGMA)], weights=np.array([0.3, 0.7]))
    density = 0.3 * stats.norm.pdf(Y, MU, SIGMA) + 0.7 * stats.norm.pdf(Y, other, SIGMA)
    assert float(nll(Y, pred)) == pytest.approx(-np.log(density).mean(), rel=1e-12)


def test_nll_of_classes_by_label():
    probs = RNG.dirichlet(np.ones(3), 5)
    labels = np.array(["b", "a", "c", "c", "a"])
    pred = wc.Categorical(probs, classes=["a", "b", "c"])
    chosen = probs[np.arange(5), [1, 0, 2, 2, 0]]
    assert float(nll(labels, pred)) == pytest.approx(-np.log(chosen).mean(), rel=1e-13)


def test_nll_of_an_impossible_target_is_infinite():
    assert float(nll(np.array([1]), wc.Bernoulli(np.array([0.0])))) == np.inf


def test_mse_of_numbers_and_vectors():
    assert float(mse(Y, wc.Normal(MU, SIGMA))) == pytest.approx(np.mean((Y - MU) ** 2), rel=1e-14)
    loc, y = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 3))
    assert float(mse(y, wc.DiagonalNormal(loc, 1.0))) == pytest.approx(np.mean((y - loc) ** 2), rel=1e-14)


def test_mse_of_an_ensemble_is_at_most_the_mean_of_its_members():
    members = [wc.Normal(MU + shift, SIGMA) for shift in (-1.0, 0.2, 0.9)]
    together = float(mse(Y, wc.Mixture(members)))
    assert together == pytest.approx(np.mean((Y - MU - 0.1 / 3) ** 2), rel=1e-12)
    assert together <= np.mean([float(mse(Y, member)) for member in members])


def test_mse_of_classes_needs_numbers():
    probs = np.array([[0.2, 0.8], [0.5, 0.5]])
    found = mse(np.array([10.0, 20.0]), wc.Categorical(probs, support=np.array([10.0, 20.0])))
    assert float(found) == pytest.approx(np.mean([8.0**2, 5.0**2]), rel=1e-14)
    assert float(mse(np.array([0, 1]), wc.Bernoulli(np.array([0.5, 0.9])))) == pytest.approx(0.13, rel=1e-13)
    with pytest.raises(TypeError, match="support="):
        mse(np.array([0, 1]), wc.Categorical(probs))
    with pytest.raises(TypeError, match="support="):
        mse(np.array([0, 1]), wc.Mixture([wc.Categorical(probs), wc.Categorical(probs)]))


def test_pinball_loss_by_its_definition():
    quantiles = stats.norm.ppf(LEVELS[:, None], MU, SIGMA)
    above, below = np.maximum(quantiles - Y, 0.0), np.maximum(Y - quantiles, 0.0)
    losses = (1.0 - LEVELS[:, None]) * above + LEVELS[:, None] * below
    found = pinball_loss(Y, wc.Normal(MU, SIGMA))
    assert found.value == pytest.approx(losses.mean(), rel=1e-12)
    assert found.standard_error == pytest.approx(stats.sem(losses.mean(axis=0)), rel=1e-11)


def test_pinball_loss_over_all_levels_is_half_the_crps():
    levels = (np.arange(4000) + 0.5) / 4000
    crps, _ = integrate.quad(lambda x: (stats.norm.cdf(x) - (x >= 0.7)) ** 2, -12, 12, points=[0.7])
    found = float(pinball_loss(np.array([0.7]), (np.zeros(1), np.ones(1)), levels=levels))
    assert found == pytest.approx(crps / 2.0, abs=2e-4)


def test_pinball_loss_is_smallest_at_the_true_quantile():
    y = np.random.default_rng(0).normal(size=4000)
    losses = [
        float(pinball_loss(y, wc.Normal(np.full(4000, m), 1.0), levels=[0.8])) for m in (-0.3, 0.0, 0.3)
    ]
    assert losses[1] < min(losses[0], losses[2])


@pytest.mark.parametrize("levels", [[0.0, 0.5], [1.2], [], [np.nan]])
def test_pinball_loss_rejects_levels(levels):
    with pytest.raises(ValueError, match="levels"):
        pinball_loss(Y, (MU, SIGMA), levels=levels)


def test_quantile_calibration_is_the_statistic_of_kolmogorov_and_smirnov():
    found = quantile_calibration(Y, wc.Normal(MU, SIGMA))
    known = stats.kstest(stats.norm.cdf(Y, MU, SIGMA), "uniform")
    assert float(found) == pytest.approx(known.statistic, rel=1e-12)
    assert found.levels.shape == found.frequencies.shape == (101,)
    assert found.frequencies[0] == 0.0
    assert found.frequencies[-1] == 1.0


def test_quantile_calibration_of_quantiles_counts_targets_below_each_of_them():
    """Also below the highest, above which the distribution function stays at its level."""
    levels = [0.05, 0.5, 0.95]
    values = np.tile([0.0, 1.0, 2.0], (6, 1))
    found = quantile_calibration(np.array([-1.0, 0.0, 0.5, 1.5, 3.0, 4.0]), wc.Quantiles(levels, values))
    np.testing.assert_allclose(found.levels, levels)
    np.testing.assert_allclose(found.frequencies, [2 / 6, 3 / 6, 4 / 6])
    assert found.value == pytest.approx(2 / 6 - 0.05)
    ends = quantile_calibration(np.full(6, 0.5), wc.Quantiles(levels, values), levels=[0.0, 0.5, 1.0])
    np.testing.assert_array_equal(ends.frequencies, [0.0, 1.0, 1.0])
    for absent in (0.01, 0.25):  # beyond the predicted ones, and between them
        with pytest.raises(ValueError, match=rf"predicted ones, 0.05, 0.5, 0.95, found {absent}; "):
            quantile_calibration(np.full(6, 0.5), wc.Quantiles(levels, values), levels=[0.0, absent, 1.0])


def test_the_headline_of_a_curve_says_that_it_is_over_all_levels():
    found = quantile_calibration(Y, wc.Normal(MU, SIGMA), levels=[0.5])
    assert float(found) > abs(float(found.frequencies[0]) - 0.5)
    assert "(largest deviation over all levels, " in repr(found)


def test_quantile_calibration_counts_targets_below_quantiles():
    pred = wc.Normal(MU, SIGMA)
    found = quantile_calibration(Y, pred, levels=LEVELS)
    below = [np.mean(pred.quantile(level) >= Y) for level in LEVELS]
    np.testing.assert_allclose(found.frequencies, below, atol=1e-12)


def test_quantile_calibration_refuses_discrete_and_vector_predictions():
    with pytest.raises(TypeError, match="continuous"):
        quantile_calibration(np.array([1.0]), wc.Poisson(np.array([2.0])))
    with pytest.raises(TypeError, match="one coordinate at a time"):
        quantile_calibration(np.zeros((2, 2)), wc.DiagonalNormal(np.zeros((2, 2)), 1.0))


@pytest.mark.parametrize("score", [nll, mse, pinball_loss, quantile_calibration])
def test_arguments_in_the_wrong_order(score):
    with pytest.raises(TypeError, match="truth first"):
        score(wc.Normal(MU, SIGMA), Y)
    with pytest.raises(ValueError, match="same length"):
        score(Y[:-1], wc.Normal(MU, SIGMA))


@pytest.mark.parametrize("score", [nll, mse, pinball_loss])
def test_gradients_in_torch(score):
    import torch

    mu = torch.tensor(MU, requires_grad=True)
    found = score(torch.tensor(Y), wc.Normal(mu, torch.tensor(SIGMA)))
    found.value.backward()
    assert mu.grad is not None
    step = 1e-6
    shifted = [float(score(Y, wc.Normal(MU + sign * step * np.eye(N)[3], SIGMA))) for sign in (1, -1)]
    assert float(mu.grad[3]) == pytest.approx((shifted[0] - shifted[1]) / (2 * step), rel=1e-5, abs=1e-9)
    assert float(found) == pytest.approx(float(score(Y, wc.Normal(MU, SIGMA))), rel=1e-12)


def test_a_score_that_is_not_finite_says_in_how_many_cases_and_why() -> None:
    """Also of cases with weights, and of parts; a case of weight zero does not count."""
    pred = wc.Bernoulli(np.array([0.5, 0.0, 1.0, 0.25]))
    y = np.array([1, 1, 0, 0])
    whole = wc.nll(y, pred)
    assert repr(whole).splitlines() == [
        "NLL = inf  (mean, 4 cases)",
        "  not finite  2 cases: probability or density 0 for what happened",
    ]
    assert wc.Estimate.from_json(whole.to_json()).provenance == whole.provenance
    assert wc.nll(y, pred, weights=[1, 1, 0, 1]).provenance["not_finite"] == 1
    assert "not_finite" not in wc.nll(y, pred, weights=[1, 0, 0, 1]).provenance
    parts = RunningMean("nll")
    for rows in (slice(0, 1), slice(1, 2), slice(2, 4)):
        parts = parts.updated(y[rows], pred[rows], None)
    assert parts.result().provenance == whole.provenance
    assert estimate_text(whole) == "inf (2 cases: probability or density 0 for what happened)"
    without_mean = wc.mse(np.zeros(3), wc.StudentT(np.ones(3), np.zeros(3), np.ones(3)))
    assert "3 cases: predictions without a finite mean" in repr(without_mean)


def test_intervals_of_few_scores_are_those_of_student_and_not_below_zero() -> None:
    y, pred = np.array([0.0, 3.0]), wc.Normal(np.zeros(2), np.ones(2))
    found = wc.nll(y, pred)
    interval = found.confidence_interval(0.9)
    half = stats.t.ppf(0.95, 1) * found.standard_error
    assert (interval.low, interval.high) == pytest.approx(
        (float(found) - half, float(found) + half), rel=1e-12
    )
    for score in (wc.crps, wc.mse, wc.pinball_loss):
        least = score(y, pred)
        assert float(least) < 3.0 * least.standard_error
        assert least.confidence_interval().low == 0.0
    assert interval.method == "Student"
    weights = np.r_[1.0, 1.0, np.zeros(38)]
    many = wc.Normal(np.zeros(40), np.ones(40))
    some = wc.nll(np.r_[y, np.ones(38)], many, weights=weights)  # cases of weight zero are none
    assert some.standard_error == pytest.approx(found.standard_error, rel=1e-12)
    assert some.confidence_interval(0.9).high == pytest.approx(interval.high, rel=1e-12)
    assert some.provenance["effective_cases"] == 2.0
    assert wc.nll(y, pred, weights=[1.0, 0.0]).standard_error is None
    parts = RunningMean("nll")
    for rows in (slice(0, 1), slice(1, 40)):
        parts = parts.updated(np.r_[y, np.ones(38)][rows], many[rows], weights[rows])
    assert parts.result().standard_error == pytest.approx(found.standard_error, rel=1e-12)
    clustered = replace(found, n_samples=100, provenance={"clusters": 2})
    assert clustered.confidence_interval(0.9) == interval


def test_quantiles_are_judged_at_their_own_levels_everywhere() -> None:
    rng, levels = np.random.default_rng(4), np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    mu, y = rng.normal(size=60), rng.normal(size=60)
    pred = wc.Quantiles(levels, mu[:, None] + stats.norm.ppf(levels))
    gap = y[:, None] - np.asarray(pred.values)
    losses = np.where(gap > 0, levels * gap, (levels - 1.0) * gap)
    running = wc.RunningMeasures()
    running.update(y[:20], pred[:20])
    running.update(y[20:], pred[20:])
    measured = running.result().estimates
    reported = wc.report(y, pred, n_resamples=99).models[0].scores["pinball loss"]
    for found in (wc.pinball_loss(y, pred), measured["pinball_loss"], reported):
        assert float(found) == pytest.approx(losses.mean(), rel=1e-12)
        assert found.standard_error == pytest.approx(losses.mean(axis=1).std(ddof=1) / 60**0.5, rel=1e-9)
    below = (gap <= 0.0).mean(axis=0)
    curve = measured["pit"]
    assert isinstance(curve, QuantileCalibration)
    np.testing.assert_allclose(curve.levels, levels)
    np.testing.assert_allclose(curve.frequencies, below)
