"""Pairs of members left out, against a plain double loop, and against the library where none are."""

import numpy as np
import pytest

import wellcal as wc
from reproduction.experiments.decisions import both_bootstrap_pvalues
from reproduction.experiments.mixture_pairs import (
    ENSEMBLE_KERNEL,
    authors_pvalue,
    biased_skce,
    ensemble_forms,
    mixture_wasserstein,
    unbiased_skce,
)
from wellcal.hypotests import Bootstrap
from wellcal.kernels import paper_kernel

RNG = np.random.default_rng(0)
N, K = 7, 4
MEANS, SPREADS = RNG.normal(size=(K, N)), RNG.gamma(3.0, 0.3, (K, N))
Y = RNG.normal(size=N)
MEMBERS = [wc.Normal(m, s) for m, s in zip(MEANS, SPREADS, strict=True)]


def gaussian_mean(gap, variance):
    return np.exp(-0.5 * gap**2 / (1.0 + variance)) / np.sqrt(1.0 + variance)


def form(a, b, left_out):
    """The bilinear form of two cases, member by member."""
    total = 0.0
    for i in range(K):
        for j in range(K):
            if left_out and i >= 1 and j == 0:
                continue
            p, q = (MEANS[i, a], SPREADS[i, a] ** 2), (MEANS[j, b], SPREADS[j, b] ** 2)
            total += (
                gaussian_mean(p[0] - q[0], p[1] + q[1])
                - gaussian_mean(p[0] - Y[b], p[1])
                - gaussian_mean(q[0] - Y[a], q[1])
                + np.exp(-0.5 * (Y[a] - Y[b]) ** 2)
            )
    return total / K**2


@pytest.mark.parametrize("leave_out", [False, True])
def test_pairs_of_members(leave_out):
    values = np.array([[form(a, b, leave_out) for b in range(N)] for a in range(N)])
    values *= np.exp(-mixture_wasserstein(MEMBERS))
    below, trace = np.tril(values, -1).sum(), np.trace(values)
    forms = ensemble_forms(Y, MEMBERS)
    found = forms.left_out if leave_out else forms.full
    np.testing.assert_allclose(found, values, rtol=1e-9)
    assert biased_skce(found) == pytest.approx((2 * below + trace) / N**2, rel=1e-9)
    assert unbiased_skce(found) == pytest.approx(2 * below / (N * (N - 1)), rel=1e-9)


def test_all_pairs_are_the_library():
    pred, found = wc.Mixture(MEMBERS), ensemble_forms(Y, MEMBERS).full
    for estimator, mean in (("biased", biased_skce), ("unbiased", unbiased_skce)):
        known = float(wc.skce(Y, pred, kernel=ENSEMBLE_KERNEL, estimator=estimator))
        assert mean(found) == pytest.approx(known, rel=1e-12)


def test_equal_members_lose_the_share_of_pairs_left_out():
    """Ten equal members: 9 of 100 pairs are left out, whatever their values."""
    forms = ensemble_forms(Y, MEMBERS[:1] * 10)
    assert biased_skce(forms.left_out) == pytest.approx(0.91 * biased_skce(forms.full), rel=1e-12)


def test_the_authors_bootstrap_draw_by_draw():
    """Their loops, for a form that is not symmetric."""
    h = RNG.normal(size=(N, N))
    drawn = np.random.default_rng(5).integers(N, size=(50, N))
    estimate = np.mean([h[i, j] for i in range(N) for j in range(i)])
    biased = (2 * sum(h[i, j] for i in range(N) for j in range(i)) + np.trace(h)) / N**2
    reached = 0
    for draws in drawn:
        between = np.mean([h[draws[i], draws[j]] for i in range(N) for j in range(i)])
        beside = np.mean([h[i, k] for i in draws for k in range(N)])
        reached += between >= N / (N - 1) * estimate - biased + 2 * beside
    found = authors_pvalue(h, 50, np.random.default_rng(5))
    assert found == reached / 50
    assert 0.0 < found < 1.0, "an example in which draws are on both sides"


def test_for_a_symmetric_form_it_is_the_librarys():
    """Up to the chance in both: 4 standard errors of the difference."""
    n, resamples = 30, 4000
    rng = np.random.default_rng(6)
    mean = rng.normal(size=n)
    pred, y = wc.Normal(mean, 1.0), mean + 0.1 + rng.normal(size=n)
    result = wc.calibration_test(
        y, pred, kernel=paper_kernel, method=Bootstrap(statistic="authors"), n_resamples=resamples, rng=1,
        keep_null=True,
    )  # fmt: skip
    h = ensemble_forms(y, [pred]).full
    found = authors_pvalue(h, resamples, np.random.default_rng(2))
    assert found == pytest.approx(result.pvalue, abs=4 * np.sqrt(2 * found * (1 - found) / resamples))
    both = both_bootstrap_pvalues(result)
    assert both["authors"] == result.pvalue
    for statistic, pvalue in both.items():
        again = wc.calibration_test(
            y, pred, kernel=paper_kernel, method=Bootstrap(statistic=statistic), n_resamples=resamples, rng=1
        )
        assert pvalue == again.pvalue
    assert both["authors"] < both["skce"]
