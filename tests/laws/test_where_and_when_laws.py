"""Laws of witness, comparison, weights and monitor over generated inputs."""

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wellcal as wc
from wellcal.comparison import compare
from wellcal.engines import Tiled
from wellcal.measures.round_numbers import round_between
from wellcal.monitoring.bets import ETAS, log_bets
from wellcal.witnesses import witness
from wellcal.witnesses.scan import MaxTest

FEW = settings(max_examples=12)
FAST = {"rng": 0, "n_resamples": 19, "alpha": 0.2, "engine": Tiled(threads=1)}


@st.composite
def cases(draw, least=6, most=14):
    n = draw(st.integers(least, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    mu, sigma = rng.normal(size=n), np.exp(0.4 * rng.normal(size=n))
    return rng.normal(mu + rng.normal(), sigma), wc.Normal(mu, sigma), rng


@FEW
@given(cases())
def test_the_order_of_cases_does_not_matter(data):
    y, pred, rng = data
    at = wc.Normal(np.array([0.0, 0.5]), np.array([1.0, 2.0])), np.array([0.2, -1.0])
    weights = rng.gamma(1.0, size=len(y)) + 0.01
    order = rng.permutation(len(y))
    kernel = wc.default_kernel(pred)
    plain = witness(y, pred, at, kernel=kernel, weights=weights, **FAST)
    shuffled = witness(y[order], pred[order], at, kernel=kernel, weights=weights[order], **FAST)
    np.testing.assert_allclose(shuffled.scores, plain.scores[order], rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(shuffled.values, plain.values, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(plain.contributions.sum(), float(plain.estimate), rtol=1e-9, atol=1e-14)


@FEW
@given(cases(), st.floats(0.1, 10.0))
def test_the_witness_is_linear_in_the_kernel(data, factor):
    y, pred, _ = data
    kernel = wc.default_kernel(pred)
    plain, scaled = (witness(y, pred, kernel=k, **FAST) for k in (kernel, factor * kernel))
    np.testing.assert_allclose(scaled.values, factor * plain.values, rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(scaled.high, factor * plain.high, rtol=1e-10, atol=1e-15)
    np.testing.assert_array_equal(scaled.pvalues, plain.pvalues)


@settings(max_examples=5)
@given(cases())
def test_squared_norm_of_the_witness(data):
    """The mean over cases of w(P_i, y_i) - E w(P_i, Z_i) is the biased SKCE."""
    y, pred, _ = data
    kernel, n = wc.default_kernel(pred), len(y)
    nodes = np.linspace(-8.0, 8.0, 101)  # the trapezoidal rule is as exact as it gets for normals
    masses = np.exp(-0.5 * nodes**2) / np.exp(-0.5 * nodes**2).sum()
    repeated = pred[np.tile(np.arange(n), 1 + len(nodes))]
    targets = np.concatenate([y, (pred.loc + nodes[:, None] * pred.scale).ravel()])
    values = witness(y, pred, (repeated, targets), kernel=kernel, **FAST).values.reshape(-1, n)
    biased = wc.skce(y, pred, kernel=kernel, estimator="biased").value
    assert np.mean(values[0] - masses @ values[1:]) == pytest.approx(biased, rel=1e-9, abs=1e-13)


@FEW
@given(cases(), st.floats(0.01, 100.0), st.floats(-10.0, 10.0))
def test_a_change_of_unit_does_not_change_a_comparison(data, unit, origin):
    y, a, rng = data
    b = wc.Normal(a.loc + rng.normal(), a.scale * np.exp(0.3 * rng.normal(size=len(y))))
    plain = compare(y, a, b, rng=0, n_resamples=99)

    def moved(pred):
        return wc.Normal(origin + unit * pred.loc, unit * pred.scale)

    changed = compare(origin + unit * y, moved(a), moved(b), rng=0, n_resamples=99)
    assert changed.statistic == pytest.approx(plain.statistic, rel=1e-6, abs=1e-8)
    assert float(changed.estimate) == pytest.approx(float(plain.estimate), rel=1e-6, abs=1e-10)


FINITE = st.floats(-1e3, 1e3).map(lambda x: round(x, 6))


@FEW
@given(hnp.arrays(float, st.tuples(st.integers(1, 3), st.integers(2, 9)), elements=FINITE))
def test_bets_are_fair_for_any_witness(u):
    count = u.shape[1]
    mean = np.mean([np.exp(log_bets(np.roll(u, k, axis=1))) for k in range(count)], axis=0)
    np.testing.assert_allclose(mean, np.ones((len(u), len(ETAS))), rtol=1e-9)


@FEW
@given(hnp.arrays(float, st.tuples(st.integers(3, 20), st.integers(1, 5)), elements=FINITE))
def test_a_sum_leaves_its_band_where_its_pvalue_is_small(sums):
    test = MaxTest.of(sums, 1e-9)
    for alpha in (0.1, 0.34, 0.5):
        outside = np.abs(sums[0]) > test.half_width(alpha) * (1.0 + 1e-9) + 1e-12
        assert (test.pvalues[outside] <= alpha + 1e-9).all()
    # By exchangeability: over all sets in the place of the observed one, p-values are uniform or larger.
    smallest = [MaxTest.of(np.roll(sums, k, axis=0), 1e-9).pvalues.min() for k in range(len(sums))]
    for alpha in (0.1, 0.34, 0.5):
        assert np.mean(np.array(smallest) <= alpha) <= alpha + 1e-9


@given(st.floats(-1e6, 1e6), st.floats(1e-9, 1e6))
def test_round_numbers_lie_strictly_between(low, gap):
    high = low + gap
    if np.nextafter(low, np.inf) < high:
        assert low < round_between(low, high) < high
