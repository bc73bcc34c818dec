"""Local discrepancies against linear algebra written out, and where they are known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal import local_discrepancy
from wellcal.kernels import Callable, Delta, ExpDistance, Gaussian, Laplacian, Wasserstein

RNG = np.random.default_rng(8)
N = 25
MU, SIGMA = RNG.normal(size=N), RNG.gamma(5.0, 0.2, N)
Y = RNG.normal(MU + 0.5, SIGMA)
PRED = wc.Normal(MU, SIGMA)
KERNEL = ExpDistance(Wasserstein(), lengthscale=0.7) @ Gaussian(1.3)


def normal_gram(y: Any, mu: Any, sigma: Any, scale: float) -> Any:
    """<P_i - d(y_i), P_j - d(y_j)> of a Gaussian kernel, one expectation after the other."""

    def mean(gap: Any, variance: Any) -> Any:
        total = scale**2 + variance
        return scale / np.sqrt(total) * np.exp(-(gap**2) / (2 * total))

    s = sigma**2
    return (
        mean(y[:, None] - y, 0.0)
        - mean(y[:, None] - mu, s[None, :])
        - mean(mu[:, None] - y, s[:, None])
        + mean(mu[:, None] - mu, s[:, None] + s)
    )


@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_against_linear_algebra(ridge: float) -> None:
    at = wc.Normal(np.array([-1.0, 0.3]), np.array([0.5, 2.0]))
    k = np.exp(-np.hypot(MU[:, None] - MU, SIGMA[:, None] - SIGMA) / 0.7)
    right = np.exp(-np.hypot(MU[:, None] - at.loc, SIGMA[:, None] - at.scale) / 0.7)
    weights = np.linalg.inv(k + N * ridge * np.eye(N)) @ right
    square = np.diag(weights.T @ normal_gram(Y, MU, SIGMA, 1.3) @ weights)
    found = local_discrepancy(Y, PRED, at, kernel=KERNEL, regularisation=ridge)
    assert found.values == pytest.approx(np.sqrt(square), rel=1e-9)
    assert len(found) == 2
    assert found.regularisation == ridge


def test_groups_of_equal_predictions() -> None:
    """A kernel that is one for equal predictions and zero otherwise averages over equal predictions.

    With two classes and frequencies f, the discrepancy is sqrt(2) |f - p|, less n_g / (n_g + n lambda).
    """
    p = np.repeat([0.2, 0.7], [10, 30])
    y = np.concatenate([np.arange(10) < 5, np.arange(30) < 12]).astype(int)
    same = Callable(lambda a, b: (a.probs[:, None] == b.probs[None, :]).astype(float)) @ Delta()
    at = wc.Bernoulli(np.array([0.2, 0.7, 0.5]))
    ridge = 1e-3
    found = local_discrepancy(y, wc.Bernoulli(p), at, kernel=same, regularisation=ridge).values
    shrunk = np.array([10 / (10 + 40 * ridge), 30 / (30 + 40 * ridge), 0.0])
    assert found == pytest.approx(shrunk * math.sqrt(2) * np.array([0.3, 0.3, 0.0]), rel=1e-9)


def test_strong_regularisation_gives_the_kernel_error() -> None:
    """For a constant kernel on predictions all weights are equal, and the value is that of KCE."""
    constant = Callable(lambda a, b: np.ones((len(a), len(b)))) @ Laplacian(1.0)
    found = local_discrepancy(Y, PRED, PRED[:1], kernel=constant, regularisation=1e-6).values[0]
    assert found == pytest.approx(wc.kce(Y, PRED, kernel=constant).value, rel=1e-5)


def test_defaults_and_repr() -> None:
    found = local_discrepancy(Y, PRED)
    assert found.values.shape == (N,)
    assert found.regularisation == N**-0.25
    assert found.kernel == wc.default_kernel(PRED)
    assert "25 cases" in repr(found)
    assert np.all(found.values >= 0)


def test_gradient() -> None:
    shift = torch.tensor(0.3, requires_grad=True, dtype=torch.float64)

    def value(s: Any) -> Any:
        mu, sigma = torch.as_tensor(MU), torch.as_tensor(SIGMA)
        at = wc.Normal(torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
        return local_discrepancy(torch.as_tensor(Y), wc.Normal(mu + s, sigma), at, kernel=KERNEL).values[0]

    value(shift).backward()
    h = 1e-5
    slope = float(value(shift.detach() + h) - value(shift.detach() - h)) / (2 * h)
    assert shift.grad is not None
    assert float(shift.grad) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: local_discrepancy(Y, PRED, wc.Laplace(MU, SIGMA)), TypeError, "one family"),
        (lambda: local_discrepancy(Y, PRED, kernel=KERNEL + KERNEL), TypeError, "one tensor product"),
        (lambda: local_discrepancy(Y, PRED, kernel=Gaussian()), TypeError, "pairs"),
        (
            lambda: local_discrepancy(Y, PRED, regularisation=-1.0),
            ValueError,
            "regularisation must be positive",
        ),
        (lambda: local_discrepancy(PRED, Y), TypeError, "truth first"),
        (
            lambda: local_discrepancy(np.zeros(9000), (np.zeros(9000), np.ones(9000))),
            ValueError,
            "at most 8192",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
