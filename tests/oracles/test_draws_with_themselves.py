"""h of a case with itself, for draws: the mean over distinct draws, written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import wellcal as wc
from wellcal.kernels import ExpDistance, Gaussian, Laplacian, MaximumMeanDiscrepancy
from wellcal.problem.problem import prepare_checked
from wellcal.problem.v_to_u_statistic import MANY_DRAWS

N = 6


def kernel_matrix(kernel: Any, a: Any, b: Any) -> Any:
    distance = cdist(a, b)
    if isinstance(kernel, Gaussian):
        return np.exp(-0.5 * (distance / kernel.lengthscale) ** 2)
    return np.exp(-distance / kernel.lengthscale)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("count", [2, 20, MANY_DRAWS, 150])
@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplacian(0.7), Gaussian(1.0) + Gaussian(0.2)], ids=str)
def test_distinct_draws_alone_count(kernel: Any, count: int, dimension: int) -> None:
    """Whether features of draws are summed, or all pairs of them."""
    rng = np.random.default_rng(count)
    draws, y = rng.normal(size=(N, count, dimension)), rng.normal(size=(N, dimension))
    pred = wc.Samples(draws[:, :, 0] if dimension == 1 else draws)
    on_predictions = ExpDistance(MaximumMeanDiscrepancy(Gaussian()), 1.0, power=2.0)
    problem = prepare_checked(y[:, 0] if dimension == 1 else y, pred, on_predictions @ kernel)
    parts = getattr(kernel, "kernels", (kernel,))
    expected = np.zeros(N)
    for part in parts:
        for i in range(N):
            pairs = kernel_matrix(part, draws[i], draws[i])
            within = (pairs.sum() - np.trace(pairs)) / (count * (count - 1.0))
            expected[i] += within - 2.0 * kernel_matrix(part, draws[i], y[i : i + 1]).mean() + 1.0
    np.testing.assert_allclose(problem.diagonal(), expected, rtol=0.0, atol=1e-12)
