"""Weights of cases: definition by an explicit sum, laws, and what is refused."""

import jax
import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal.problem.problem import prepare

N = 12
rng = np.random.default_rng(3)
MU, SIGMA = rng.normal(size=N), np.exp(0.3 * rng.normal(size=N))
Y = rng.normal(MU + 0.4, SIGMA)
WEIGHTS = rng.gamma(0.7, size=N)
PRED = wc.Normal(MU, SIGMA)


def matrix(y=Y, pred=PRED, **options):
    problem = prepare(y, pred, **options)
    return problem.h(problem.rows, problem.rows)


FAMILIES = {
    "Normal": (Y, PRED),
    "Categorical": (rng.integers(0, 3, N), wc.Categorical(rng.dirichlet(np.ones(3), N))),
    "StudentT": (Y, wc.StudentT(4.0, MU, SIGMA)),
    "Samples": (Y, wc.Samples(rng.normal(size=(N, 4)), kind="atoms")),
    "MultivariateNormal": (
        rng.normal(size=(N, 2)),
        wc.MultivariateNormal(rng.normal(size=(N, 2)), np.tile(np.eye(2), (N, 1, 1))),
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_weighted_estimates_are_weighted_means_over_pairs(family):
    y, pred = FAMILIES[family]
    options = {"kernel": wc.default_kernel(pred), "expectations": wc.Lowering(nodes=48, points=64)}
    h, pairs = matrix(y, pred, **options), np.outer(WEIGHTS, WEIGHTS)
    biased = wc.skce(y, pred, estimator="biased", weights=WEIGHTS, **options)
    assert biased.value == pytest.approx(np.sum(pairs * h) / np.sum(pairs), rel=1e-12)
    off = pairs - np.diag(np.diag(pairs))
    unbiased = wc.skce(y, pred, weights=WEIGHTS, **options)
    assert unbiased.value == pytest.approx(np.sum(off * h) / np.sum(off), rel=1e-10, abs=1e-14)
    assert biased.standard_error is None


def test_standard_error_is_that_of_the_ratio():
    h = matrix()
    np.fill_diagonal(h, 0.0)
    estimate = wc.skce(Y, PRED, weights=WEIGHTS)
    means = h @ WEIGHTS / (WEIGHTS.sum() - WEIGHTS)
    share = WEIGHTS / WEIGHTS.sum()
    residuals = np.eye(len(share)) - share
    # The mean square of residuals, for scores of one variance, beside the variance of their mean.
    part = np.trace(residuals.T @ np.diag(share**2) @ residuals) / np.sum(share**2)
    square = 4 * np.sum(share**2 * (means - estimate.value) ** 2) / part
    assert estimate.standard_error == pytest.approx(np.sqrt(square), rel=1e-12)


def test_equal_weights_change_nothing():
    plain, weighted = wc.skce(Y, PRED), wc.skce(Y, PRED, weights=np.full(N, 3.0))
    assert weighted.value == pytest.approx(plain.value, rel=1e-12)
    assert weighted.standard_error == pytest.approx(plain.standard_error, rel=1e-12)
    assert float(wc.kce(Y, PRED, weights=[2] * N)) == pytest.approx(float(wc.kce(Y, PRED)), rel=1e-12)


def test_weight_zero_leaves_a_case_out():
    kernel = wc.default_kernel(PRED)
    weights = np.where(np.arange(N) % 3 == 0, 0.0, WEIGHTS)
    kept = weights > 0
    with_zeros = wc.skce(Y, PRED, kernel=kernel, weights=weights)
    without = wc.skce(Y[kept], PRED[kept], kernel=kernel, weights=weights[kept])
    assert with_zeros.value == pytest.approx(without.value, rel=1e-12)
    assert with_zeros.standard_error == pytest.approx(without.standard_error, rel=1e-12)


def test_whole_weights_repeat_cases_in_the_biased_estimate():
    kernel, times = wc.default_kernel(PRED), np.arange(N) % 3 + 1
    index = np.repeat(np.arange(N), times)
    repeated = wc.skce(Y[index], PRED[index], kernel=kernel, estimator="biased")
    assert wc.skce(Y, PRED, kernel=kernel, estimator="biased", weights=times).value == pytest.approx(
        repeated.value, rel=1e-12
    )


@pytest.mark.parametrize("factor", [1e-200, 7.0, 1e200])
def test_only_ratios_of_weights_matter(factor):
    scaled, plain = (wc.skce(Y, PRED, weights=w) for w in (factor * WEIGHTS, WEIGHTS))
    assert scaled.value == pytest.approx(plain.value, rel=1e-12)
    assert scaled.standard_error == pytest.approx(plain.standard_error, rel=1e-12)


def test_standard_error_needs_three_weighted_cases():
    weights = np.zeros(N)
    weights[[2, 5]] = 1.0
    assert wc.skce(Y, PRED, weights=weights).standard_error is None
    assert wc.skce(Y, PRED, weights=weights).value == pytest.approx(matrix()[2, 5], rel=1e-12)


def test_provenance_tells_what_the_weights_are_worth():
    weights = np.zeros(N)
    weights[:5] = 0.3
    assert wc.skce(Y, PRED, weights=weights).provenance["weights"] == "worth 5 cases of equal weight"


def test_torch_and_jax_agree_and_have_gradients_in_the_weights():
    kernel = wc.default_kernel(PRED)
    plain = wc.skce(Y, PRED, kernel=kernel, weights=WEIGHTS)

    def value(weights, pred=PRED):
        return wc.skce(Y, pred, kernel=kernel, weights=weights).value

    step = 1e-6 * np.eye(N)
    expected = np.array([(value(WEIGHTS + e) - value(WEIGHTS - e)) / 2e-6 for e in step])
    w = torch.tensor(WEIGHTS, requires_grad=True)
    in_torch = wc.Normal(torch.tensor(MU), torch.tensor(SIGMA))
    found = wc.skce(torch.tensor(Y), in_torch, kernel=kernel, weights=w)
    found.value.backward()
    assert float(found) == pytest.approx(plain.value, rel=1e-12)
    assert float(found.standard_error) == pytest.approx(plain.standard_error, rel=1e-12)
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-5, atol=1e-9)
    with jax.enable_x64(True):
        in_jax = wc.Normal(jax.numpy.asarray(MU), jax.numpy.asarray(SIGMA))
        function = jax.jit(lambda v: wc.skce(Y, in_jax, kernel=kernel, weights=v).value)
        assert float(function(jax.numpy.asarray(WEIGHTS))) == pytest.approx(plain.value, rel=1e-12)
        gradient = jax.grad(function)(jax.numpy.asarray(WEIGHTS))
        np.testing.assert_allclose(np.asarray(gradient), expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.where(np.arange(N) == 4, -1.0, 1.0), "weights must not be negative in row 4: found -1"),
        (np.where(np.arange(N) == 7, np.nan, 1.0), "weights is not finite in row 7"),
        (np.zeros(N), "positive for at least 2 of the cases, and all are zero"),
        (np.eye(N)[3], "positive for at least 2 of the cases, and only 1 is"),
        (np.ones(N - 1), "weights and predictions must have the same length, found 11 and 12"),
        (np.ones((N, 1)), r"weights must be 1-dimensional, found shape \(12, 1\); pass weights\[:, 0\]"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        wc.skce(Y, PRED, weights=weights)


def test_one_weighted_case_has_a_biased_estimate():
    estimate = wc.skce(Y, PRED, estimator="biased", weights=np.eye(N)[3])
    assert estimate.value == pytest.approx(matrix()[3, 3], rel=1e-12)


def test_blocks_refuse_weights():
    with pytest.raises(ValueError, match=r'weights have no meaning for estimator="block".*unbiased'):
        wc.skce(Y, PRED, estimator="block", weights=WEIGHTS)


@pytest.mark.parametrize(
    "measure",
    [
        wc.ece,
        wc.mce,
        wc.smooth_ece,
        wc.local_discrepancy,
        wc.quantile_calibration,
        wc.interval_coverage,
        wc.pit,
        wc.Monitor().update,
    ],
)
def test_measures_of_cases_that_count_alike_have_no_weights(measure):
    with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
        measure(Y, PRED, weights=WEIGHTS)
