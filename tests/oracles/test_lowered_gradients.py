"""Gradients of lowered families compared with differences of the value, under smooth kernels and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal.kernels import ExpDistance, Gaussian, Laplacian, Matern, MaximumMeanDiscrepancy

from ..engines.examples import jax_x64

ROWS = 4
KERNELS = [Gaussian(0.8), Laplacian(0.8), Matern(1.5, 0.8), Matern(2.5, 0.8)]
_rng = np.random.default_rng(0)
LOC, SCALE, SHAPE = _rng.normal(size=ROWS), _rng.uniform(0.5, 2.0, ROWS), _rng.uniform(0.9, 3.0, ROWS)
FAMILIES: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "StudentT": (wc.StudentT, [2.0 + SHAPE, LOC, SCALE]),
    "Gamma": (wc.Gamma, [SHAPE, SCALE]),
    "Beta": (wc.Beta, [SHAPE, SCALE]),
    "LogNormal": (wc.LogNormal, [LOC, 0.4 * SCALE]),
    "PowerExponential": (wc.PowerExponential, [LOC, SCALE, SHAPE]),
    "NegativeBinomial": (wc.NegativeBinomial, [5.0 * SCALE, SHAPE]),
}


def differences(value: Callable[..., float], parameters: list[np.ndarray]) -> np.ndarray:
    out: list[float] = []
    for k in range(len(parameters)):
        for row in range(ROWS):
            around: list[float] = []
            for step in (1e-5, -1e-5):
                moved = [p.copy() for p in parameters]
                moved[k][row] += step
                around.append(value(*moved))
            out.append((around[0] - around[1]) / 2e-5)
    return np.array(out)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_are_those_of_the_value(name: str, kernel: Any) -> None:
    family, parameters = FAMILIES[name]
    y = family(*parameters).sample(rng=1)
    product = ExpDistance(MaximumMeanDiscrepancy(kernel), power=2.0) @ kernel

    def value(targets: Any, parameters: Any) -> Any:
        return wc.skce(targets, family(*parameters), kernel=product, estimator="biased").value

    expected = differences(lambda *moved: float(value(y, moved)), parameters)
    assert np.abs(expected).max() > 1e-3
    tensors = [torch.tensor(p, requires_grad=True) for p in parameters]
    found = torch.autograd.grad(value(torch.tensor(y), tensors), tensors)
    np.testing.assert_allclose(np.concatenate([g.numpy() for g in found]), expected, rtol=0.0, atol=1e-6)
    with jax_x64():
        arrays = [jax.numpy.asarray(p) for p in parameters]
        traced = jax.grad(lambda free: value(jax.numpy.asarray(y), free))(arrays)
        np.testing.assert_allclose(np.concatenate(traced), expected, rtol=0.0, atol=1e-6)
