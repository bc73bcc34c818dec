"""Gradients are finite wherever the loss is, and are those of the NumPy value, at extreme parameters too."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal import kernels as k
from wellcal.torch import SKCELoss

from .examples import jax_x64

NODES = wc.Lowering(nodes=256)
SCALES = (1e-6, 1e-3, 1.0, 1e3, 1e6)
SHAPES = (0.005, 0.02, 0.1, 0.5, 0.99, 1.0, 3.0, 30.0, 1e4)

Grid = tuple[Any, ...]


def product(*axes: Any) -> Grid:
    """All combinations, an array for each parameter."""
    return tuple(np.array(column) for column in zip(*itertools.product(*axes), strict=True))


GRIDS: dict[str, Grid] = {
    "Normal": product((-3.0, 1e3), SCALES),
    "Laplace": product((-3.0, 1e3), SCALES),
    "StudentT": product((0.1, 0.5, 1.0, 2.0, 30.0, 1e6), (0.3,), SCALES),
    "Gamma": product(SHAPES, SCALES),
    "LogNormal": product((-10.0, 0.3, 10.0), (1e-6, 0.1, 1.0, 10.0)),
    "Beta": product(SHAPES, SHAPES),
    "PowerExponential": product((0.3,), SCALES, (0.1, 0.3, 0.9, 1.0, 2.0, 20.0)),
    "Poisson": product((0.0, 1e-6, 1e-3, 1.0, 30.0)),
    "NegativeBinomial": product((1e-6, 1e-3, 3.0), (1e-6, 1e-2, 4.0)),
    "Bernoulli": product((0.0, 1e-6, 0.3, 1.0 - 1e-6, 1.0)),
    "Dirichlet": (np.array([[1, 1, 1], [1, 2, 1], [5, 1, 0.2]])[None] * np.array(SHAPES)[:, None, None],),
    "DiagonalNormal": tuple(a[:, None] + np.zeros(2) for a in product((-3.0, 1e3), SCALES)),
}
GRIDS["Dirichlet"] = (GRIDS["Dirichlet"][0].reshape(-1, 3),)


def make(family: str, parameters: Any) -> Any:
    return getattr(wc, family)(*parameters)


def observed(family: str, parameters: Any) -> Any:
    """Possible targets, not far from the centre of the predictions."""
    if family == "DiagonalNormal":
        return parameters[0] + 0.5 * parameters[1]
    if family == "Dirichlet":
        return np.full((len(parameters[0]), 3), 1 / 3)
    levels = np.linspace(0.3, 0.7, len(parameters[0]))
    return np.asarray(make(family, parameters).quantile(levels[None]))[0]


def kernel(lengthscale: float) -> k.Kernel:
    on_targets = k.Gaussian(lengthscale)
    return k.ExpDistance(k.MaximumMeanDiscrepancy(on_targets), lengthscale=0.5, power=2.0) @ on_targets


KERNELS: dict[str, Callable[[Any], k.Kernel | None]] = {
    "given": lambda pred: kernel(0.7),
    "default": lambda pred: None,
}


@pytest.mark.parametrize("choice", KERNELS)
@pytest.mark.parametrize("family", GRIDS)
def test_gradients_in_torch_are_finite(family: str, choice: str) -> None:
    parameters = [torch.tensor(p, requires_grad=True) for p in GRIDS[family]]
    y = torch.tensor(observed(family, GRIDS[family]))
    pred = make(family, parameters)
    loss = SKCELoss(kernel=KERNELS[choice](pred), expectations=wc.Lowering(nodes=32, points=16))(y, pred)
    assert torch.isfinite(loss)
    for found in torch.autograd.grad(loss, parameters):
        assert torch.isfinite(found).all()


@pytest.mark.parametrize("family", ["Gamma", "Beta", "PowerExponential"])
def test_gradients_in_jax_are_finite(family: str) -> None:
    grid = tuple(p[:: max(1, len(p) // 12)] for p in GRIDS[family])
    y = observed(family, grid)
    options: Any = {"kernel": kernel(0.7), "expectations": wc.Lowering(nodes=16, points=16)}
    with jax_x64():
        both = jax.value_and_grad(lambda given: wc.skce(jnp.asarray(y), make(family, given), **options).value)
        value, found = jax.jit(both)([jnp.asarray(p) for p in grid])
        assert np.isfinite(float(value))
        assert all(np.isfinite(np.asarray(g)).all() for g in found)


# -- agreement ---------------------------------------------------------------------------------

UNIT = (1e-6, 1.0, 1e6)

RESOLVED: dict[str, tuple[Callable[[float], Grid], tuple[float, ...]]] = {
    "Normal": (lambda s: product((-0.4 * s, 0.6 * s), (0.5 * s, s)), UNIT),
    "Laplace": (lambda s: product((-0.4 * s, 0.6 * s), (0.5 * s, s)), UNIT),
    "StudentT": (lambda s: product((3.0, 5.0, 1e3), (0.3 * s,), (0.2 * s,)), UNIT),
    "Gamma": (lambda s: product((0.005, 0.02, 0.5, 1.0, 3.0), (s,)), UNIT),
    "LogNormal": (lambda s: product((-0.4, 0.2), (1e-3, 0.5)), (1.0,)),
    "Beta": (lambda s: product((0.02, 0.5, 1.0, 8.0), (0.7, 3.0)), (1.0,)),
    "Beta, the other end": (lambda s: product((0.7, 3.0), (0.02, 0.5, 1.0, 8.0)), (1.0,)),
    "PowerExponential": (lambda s: product((0.3 * s,), (0.5 * s,), (0.9, 1.0, 2.0, 5.0)), UNIT),
    "Poisson": (lambda s: product((0.01, 1.0, 7.0)), (1.0,)),
    "NegativeBinomial": (lambda s: product((0.01, 1.0, 7.0), (0.01, 1.0)), (1.0,)),
}
"""Parameters that 256 nodes resolve under a kernel of length scale 0.7 s, and s."""


@pytest.mark.parametrize(("name", "scale"), [(n, s) for n, (_, scales) in RESOLVED.items() for s in scales])
def test_gradients_are_those_of_the_numpy_value(name: str, scale: float) -> None:
    family = name.split(",")[0]
    grid = RESOLVED[name][0](scale)
    chosen, y = kernel(0.7 * scale), observed(family, grid)

    def value(parameters: Any) -> float:
        found = wc.skce(y, make(family, parameters), kernel=chosen, expectations=NODES, estimator="biased")
        assert found.provenance.get("expectation_error", 0.0) < 1e-5
        return float(found)

    tensors = [torch.tensor(p, requires_grad=True) for p in grid]
    pred = make(family, tensors)
    options: Any = {"kernel": chosen, "expectations": NODES, "estimator": "biased"}
    loss = wc.skce(torch.tensor(y), pred, **options).value
    assert float(loss.detach()) == pytest.approx(value(grid), abs=1e-13)
    gradients = [g.numpy() for g in torch.autograd.grad(loss, tensors)]
    rng = np.random.default_rng(0)
    for _ in range(2):
        # Every parameter in a unit of its own: locations move by parts of the scale.
        direction = [rng.uniform(-1.0, 1.0, p.shape) * np.abs(p) for p in grid]
        found = sum(float(np.sum(g * d)) for g, d in zip(gradients, direction, strict=True))
        size = sum(float(np.sum(np.abs(g * d))) for g, d in zip(gradients, direction, strict=True))
        by_step = [
            (value(_moved(grid, direction, h)) - value(_moved(grid, direction, -h))) / (2.0 * h)
            for h in (1e-3, 2e-3)
        ]
        expected = by_step[0] + (by_step[0] - by_step[1]) / 3.0  # errors of order h^2 cancel
        assert found == pytest.approx(expected, abs=2e-5 * size)


def _moved(grid: Grid, direction: list[Any], step: float) -> Grid:
    return tuple(p + step * d for p, d in zip(grid, direction, strict=True))


# -- equal predictions -------------------------------------------------------------------------

EQUAL: dict[str, Grid] = {
    "Gamma": (2.0, 1.3),
    "Beta": (0.7, 2.1),
    "StudentT": (3.0, 0.1, 2.0),
    "LogNormal": (0.3, 0.7),
    "NegativeBinomial": (3.0, 0.5),
    "Poisson": (2.7,),
    "Normal": (0.3, 0.7),
    "Laplace": (0.3, 0.7),
    "PowerExponential": (0.3, 0.7, 1.3),
    "Bernoulli": (0.3,),
}


@pytest.mark.parametrize("family", EQUAL)
def test_scales_of_equal_predictions_are_one_in_every_library(family: str) -> None:
    same = [np.full(5, value) for value in EQUAL[family]]
    rounded = [value * (1.0 + 2.3e-16 * np.arange(5)) for value in same]  # they differ in the last place
    apart = [value * (1.0 + 1e-4 * np.arange(5)) for value in same]
    libraries: list[Any] = [np.asarray, torch.tensor]
    if family in ("Normal", "Gamma"):
        libraries.append(jnp.asarray)
    with jax_x64():
        for library in libraries:
            for parameters, expected in ((same, True), (rounded, True), (apart, False)):
                pred = make(family, [library(p) for p in parameters])
                found: Any = wc.default_kernel(pred, expectations=wc.Lowering(nodes=32))
                assert (found.predictions.lengthscale == 1.0) is expected


def test_losses_of_equal_predictions_have_moderate_gradients() -> None:
    parameters = [torch.full((6,), v, dtype=torch.float64, requires_grad=True) for v in EQUAL["Gamma"]]
    loss = SKCELoss()(torch.linspace(0.5, 4.0, 6, dtype=torch.float64), wc.Gamma(*parameters))
    for found in torch.autograd.grad(loss, parameters):
        assert float(found.abs().max()) < 1.0
