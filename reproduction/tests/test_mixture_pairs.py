"""Pairs of components left out, against a plain double loop."""

import numpy as np
import pytest

import wellcal as wc
from reproduction.experiments.mixture_pairs import skce_of_mixtures
from wellcal.kernels import ExpDistance, Gaussian, MixtureWasserstein

KERNEL = ExpDistance(MixtureWasserstein()) @ Gaussian()
RNG = np.random.default_rng(0)
N, K = 7, 4
MEANS, SPREADS = RNG.normal(size=(K, N)), RNG.gamma(3.0, 0.3, (K, N))
Y = RNG.normal(size=N)
WEIGHTS = np.array([0.4, 0.1, 0.3, 0.2])


def mixture(weights):
    return wc.Mixture([wc.Normal(m, s) for m, s in zip(MEANS, SPREADS, strict=True)], weights=weights)


def gaussian_mean(gap, variance):
    return np.exp(-0.5 * gap**2 / (1.0 + variance)) / np.sqrt(1.0 + variance)


def h(a, b, weights, left_out):
    """h of two cases, component by component; without its factor on predictions."""
    total = 0.0
    for i in range(K):
        for j in range(K):
            if left_out and i >= 1 and j == 0:
                continue
            p, q = (MEANS[i, a], SPREADS[i, a] ** 2), (MEANS[j, b], SPREADS[j, b] ** 2)
            form = (
                gaussian_mean(p[0] - q[0], p[1] + q[1])
                - gaussian_mean(p[0] - Y[b], p[1])
                - gaussian_mean(q[0] - Y[a], q[1])
                + np.exp(-0.5 * (Y[a] - Y[b]) ** 2)
            )
            total += weights[i] * weights[j] * form
    return total


@pytest.mark.parametrize("leave_out", [False, True])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "unequal"])
def test_pairs_of_components(leave_out, weights):
    pred = mixture(weights)
    used = np.full(K, 1.0 / K) if weights is None else weights
    values = np.zeros((N, N))
    for a in range(N):
        for b in range(a + 1):
            # For two cases the unbiased estimate is h, factor on predictions included: divide it out.
            both = pred[np.array([a, b])] if a != b else pred[np.array([a, a])]
            y = np.array([Y[a], Y[b]])
            full = float(wc.skce(y, both, kernel=KERNEL)) / h(a, b, used, False)
            values[a, b] = full * h(a, b, used, leave_out)
    below, trace = np.tril(values, -1).sum(), np.trace(values)
    found = skce_of_mixtures(Y, pred, KERNEL, leave_out=leave_out)
    assert found.biased == pytest.approx((2 * below + trace) / N**2, rel=1e-9)
    assert found.unbiased == pytest.approx(2 * below / (N * (N - 1)), rel=1e-9)


def test_all_pairs_are_the_library():
    pred = mixture(None)
    found = skce_of_mixtures(Y, pred, KERNEL, leave_out=False)
    assert found.biased == pytest.approx(
        float(wc.skce(Y, pred, kernel=KERNEL, estimator="biased")), rel=1e-12
    )
    assert found.unbiased == pytest.approx(float(wc.skce(Y, pred, kernel=KERNEL)), rel=1e-12)


def test_equal_components_lose_the_share_of_pairs_left_out():
    """Ten equal members: 9 of 100 pairs are left out, whatever their values."""
    pred = wc.Mixture([wc.Normal(MEANS[0], SPREADS[0])] * 10)
    full, left = (skce_of_mixtures(Y, pred, KERNEL, leave_out=leave_out) for leave_out in (False, True))
    assert left.biased == pytest.approx(0.91 * full.biased, rel=1e-12)
