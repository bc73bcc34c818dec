"""Narrow and wide predictions of counts compared with plain sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import signal, stats

import wellcal as wc
from wellcal import kernels as k
from wellcal.problem.problem import prepare

MEANS = np.array([0.0, 0.3, 7.0, 150.0, 1000.0])
DISPERSIONS = np.array([1.0, 4.0, 0.01, 1.0, 0.5])
BATCHES = {
    "Poisson": wc.Poisson(MEANS),
    "NegativeBinomial": wc.NegativeBinomial(MEANS, DISPERSIONS),
}
TARGETS = np.array([0.0, 2.0, 9.0, 21_000.0, 777.0])
NEAR = np.array([0.0, 2.0, 9.0])
GAUSSIANS = [0.1, 1.3, 1.5, 6.0, 40.0, 900.0]


def table(predictions: Any, top: int = 26_000) -> np.ndarray:
    """Probabilities of all counts up to `top`, by scipy."""
    mean, counts = np.asarray(predictions.mean())[:, None], np.arange(top)
    if isinstance(predictions, wc.Poisson):
        return stats.poisson.pmf(counts, mean)
    dispersion = np.asarray(predictions.dispersion)[:, None]
    return stats.nbinom.pmf(counts, 1.0 / dispersion, 1.0 / (1.0 + dispersion * mean))


def by_sums(kernel: Any, p: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``E k(Z, Z')``, ``E k(Z, y)`` and ``k(y, y')`` for a kernel of differences."""
    lags = np.arange(-p.shape[1] + 1, p.shape[1])
    smooth = signal.fftconvolve(p, kernel(lags)[None, :], mode="valid", axes=1)
    return smooth @ p.T, smooth[:, y.astype(int)], kernel(y[:, None] - y[None, :])


def gaussian(scale: float) -> Any:
    return lambda x: np.exp(-0.5 * (x / scale) ** 2)


# -- expectations ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", GAUSSIANS)
@pytest.mark.parametrize("name", BATCHES)
def test_gaussian(name: str, scale: float) -> None:
    """Narrow predictions are exact; the error of wide ones is reported."""
    for P, y, exact in ((BATCHES[name][:3], NEAR, True), (BATCHES[name], TARGETS, False)):
        both, cross, observed = by_sums(gaussian(scale), table(P), y)
        kernel = k.Gaussian(scale)
        scheme = "closed" if exact else "auto"
        both_found = wc.pairing(kernel, P, P, expectations=scheme)
        cross_found = wc.pairing(kernel, P, y, expectations=scheme)
        mmd = k.ExpDistance(k.MaximumMeanDiscrepancy(kernel), 1e9, 2.0)
        estimate = wc.skce(y, P, kernel=mmd @ kernel, expectations=scheme)
        reported = 0.0 if exact else estimate.provenance["expectation_error"]
        problem = prepare(y, P, mmd @ kernel, expectations=scheme)
        allowed = 1e-12 + reported
        np.testing.assert_allclose(both_found, both, rtol=0, atol=allowed)
        np.testing.assert_allclose(cross_found, cross, rtol=0, atol=allowed)
        h = both - cross - cross.T + observed
        every = slice(None)
        np.testing.assert_allclose(problem.values(every, every), h, rtol=0, atol=4.0 * allowed)
        np.testing.assert_allclose(problem.diagonal(), np.diag(h), rtol=0, atol=4.0 * allowed)
        assert reported < 2e-6 or scale < 1.0


def test_delta_and_sums_of_kernels() -> None:
    P = BATCHES["NegativeBinomial"][:3]
    p, at = table(P), NEAR.astype(int)
    np.testing.assert_allclose(wc.pairing(k.Delta(), P, P), p @ p.T, rtol=0, atol=1e-13)
    np.testing.assert_allclose(wc.pairing(k.Delta(), P, NEAR), p[:, at], atol=1e-13)
    mixed = 2.0 * k.Delta() + k.Gaussian(5.0) * 0.5
    both, cross, _ = by_sums(lambda x: 2.0 * (x == 0) + 0.5 * gaussian(5.0)(x), p, NEAR)
    np.testing.assert_allclose(wc.pairing(mixed, P, P), both, rtol=0, atol=3e-12)
    np.testing.assert_allclose(wc.pairing(mixed, P, NEAR), cross, rtol=0, atol=3e-12)


def test_delta_of_too_many_counts_is_refused() -> None:
    wide = wc.NegativeBinomial([1000.0], [0.5])
    with pytest.raises(ValueError, match="single counts, and these NegativeBinomial predictions"):
        wc.pairing(k.Delta(), wide, wide)


def test_mixtures_of_wide_counts() -> None:
    parts = [BATCHES["Poisson"], BATCHES["NegativeBinomial"]]
    weights = np.linspace(0.1, 0.9, 10).reshape(5, 2)
    weights /= weights.sum(axis=1, keepdims=True)
    p = sum(w[:, None] * table(part) for w, part in zip(weights.T, parts, strict=True))
    both, cross, _ = by_sums(gaussian(8.0), p, TARGETS)
    P = wc.Mixture(parts, weights)
    np.testing.assert_allclose(wc.pairing(k.Gaussian(8.0), P, P), both, rtol=0, atol=1e-6)
    np.testing.assert_allclose(wc.pairing(k.Gaussian(8.0), P, TARGETS), cross, rtol=0, atol=1e-6)
    narrow = wc.Mixture([part[:3] for part in parts], weights[:3])
    found = wc.pairing(k.Gaussian(8.0), narrow, narrow, expectations="closed")
    np.testing.assert_allclose(found, both[:3, :3], rtol=0, atol=1e-12)


def test_one_prediction_unlike_all_others() -> None:
    dispersions = np.resize([0.5, 1.0, 2.0], 600)
    dispersions[17] = 1e-5
    P = wc.NegativeBinomial(np.geomspace(1.0, 800.0, 600)[::-1].copy(), dispersions)
    some = np.array([17, 16, 300])
    both = by_sums(gaussian(3.0), table(P[some]), TARGETS)[0]
    np.testing.assert_allclose(wc.pairing(k.Gaussian(3.0), P, P[some])[some], both, rtol=0, atol=1e-6)


def test_predictions_of_nothing_but_zero() -> None:
    nothing = wc.Poisson(np.zeros(2))
    np.testing.assert_array_equal(wc.pairing(k.Gaussian(2.0), nothing, np.zeros(1)), np.ones((2, 1)))


def test_quantiles_of_single_levels_are_remembered_but_not_shared() -> None:
    P = wc.Poisson(np.array([1.0, 30.0]))
    first = P.quantile(0.25)
    first[0] = 99.0
    np.testing.assert_array_equal(P.quantile(0.25), stats.poisson.ppf(0.25, [1.0, 30.0]))
