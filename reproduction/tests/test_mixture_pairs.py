"""Pairs of members left out, against a plain double loop, and against the library where none are."""

import numpy as np
import pytest

import wellcal as wc
from reproduction.experiments.mixture_pairs import ENSEMBLE_KERNEL, mixture_wasserstein, skce_of_ensemble

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
    found = skce_of_ensemble(Y, MEMBERS, leave_out=leave_out)
    assert found.biased == pytest.approx((2 * below + trace) / N**2, rel=1e-9)
    assert found.unbiased == pytest.approx(2 * below / (N * (N - 1)), rel=1e-9)


def test_all_pairs_are_the_library():
    pred = wc.Mixture(MEMBERS)
    found = skce_of_ensemble(Y, MEMBERS, leave_out=False)
    for estimator in ("biased", "unbiased"):
        known = float(wc.skce(Y, pred, kernel=ENSEMBLE_KERNEL, estimator=estimator))
        assert getattr(found, estimator) == pytest.approx(known, rel=1e-12)


def test_equal_members_lose_the_share_of_pairs_left_out():
    """Ten equal members: 9 of 100 pairs are left out, whatever their values."""
    full, left = (skce_of_ensemble(Y, MEMBERS[:1] * 10, leave_out=leave_out) for leave_out in (False, True))
    assert left.biased == pytest.approx(0.91 * full.biased, rel=1e-12)
