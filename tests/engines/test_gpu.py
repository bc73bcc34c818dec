"""CUDA devices: the same numbers, computed and returned there, gradients and memory included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal._arrays.namespaces import to_numpy
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein

from .examples import EXAMPLES, Y, mean_size

pytestmark = pytest.mark.gpu

ESTIMATORS = ("unbiased", "biased", "block")
KERNEL = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)


def on_device(x: Any) -> Any:
    return x if np.asarray(x).dtype.kind == "U" else torch.as_tensor(x, device="cuda")


def normals(n: int, **options: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    loc, scale = rng.normal(size=n), np.exp(rng.normal(0.0, 0.3, n))
    y = torch.tensor(rng.normal(loc, scale), device="cuda")
    return y, torch.tensor(loc, device="cuda", **options), torch.tensor(scale, device="cuda", **options)


@pytest.mark.parametrize("name", EXAMPLES)
def test_estimates_agree_with_numpy(name: str) -> None:
    example = EXAMPLES[name]
    options: dict[str, Any] = {"expectations": example.expectations}
    size = mean_size(example.targets, example.build(), **options)
    for estimator in ESTIMATORS:
        expected = wc.skce(example.targets, example.build(), estimator=estimator, **options)
        pred = example.build(on_device)
        for y in (on_device(example.targets), example.targets):
            found = wc.skce(y, pred, estimator=estimator, **options)
            assert found.value.device.type == "cuda"
            assert found.value.dtype == torch.float64
            assert abs(float(found) - expected.value) <= 1e-12 * size
            assert repr(found.kernel) == repr(expected.kernel)


@pytest.mark.parametrize("name", EXAMPLES)
def test_pairings_live_on_the_device(name: str) -> None:
    example = EXAMPLES[name]
    options: dict[str, Any] = {"expectations": example.expectations}
    kernel = wc.default_kernel(example.build(), **options).targets
    expected = wc.pairing(kernel, example.build(), example.build(), **options)
    found = wc.pairing(kernel, example.build(on_device), example.build(on_device), **options)
    assert found.device.type == "cuda"
    assert np.abs(to_numpy(found) - expected).max() <= 1e-12 * np.abs(expected).mean()


@pytest.mark.parametrize("name", EXAMPLES)
def test_gradients_agree_with_those_of_the_processor(name: str) -> None:
    example = EXAMPLES[name]
    rows = np.array([0, 1, 1, 2, 3, 4])
    y = example.targets[rows]
    options: dict[str, Any] = {"expectations": example.expectations}
    kernel = wc.default_kernel(example.build(rows=rows), **options)
    for estimator in ESTIMATORS:
        gradients = []
        for device in ("cpu", "cuda"):
            free = [torch.tensor(x, device=device, requires_grad=True) for x in example.free(rows)]
            wc.skce(
                y, example.from_free(*free), kernel=kernel, estimator=estimator, **options
            ).value.backward()
            assert all(x.grad.device.type == device for x in free)
            gradients.append([x.grad.cpu() for x in free])
        for here, there in zip(*gradients, strict=True):
            torch.testing.assert_close(there, here, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("tile", [(64, 64), (200, 130), None])
def test_tiles_and_blocks_on_the_device(tile: Any) -> None:
    y, loc, scale = normals(700)
    expected = wc.skce(to_numpy(y), wc.Normal(to_numpy(loc), to_numpy(scale)), kernel=KERNEL)
    engine = wc.engines.Tiled(tile)
    found = wc.skce(y, wc.Normal(loc, scale), kernel=KERNEL, engine=engine)
    assert float(found) == pytest.approx(expected.value, rel=1e-9)
    assert float(found.standard_error) == pytest.approx(expected.standard_error, rel=1e-9)
    for size in (2, 7, 65, 600):
        options: dict[str, Any] = {"kernel": KERNEL, "estimator": "block", "block_size": size}
        here = wc.skce(to_numpy(y), wc.Normal(to_numpy(loc), to_numpy(scale)), **options)
        there = wc.skce(y, wc.Normal(loc, scale), engine=engine, **options)
        assert float(there) == pytest.approx(here.value, rel=1e-9)


def test_training_needs_no_matrix_of_pairs() -> None:
    """20,000 cases within 500 MB; the matrix of pairs would have 3200."""
    y, loc, scale = normals(20_000, requires_grad=True)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.max_memory_allocated()
    wc.skce(y, wc.Normal(loc, scale), kernel=KERNEL).value.backward()
    assert torch.isfinite(loc.grad).all()
    assert torch.cuda.max_memory_allocated() - before < 500e6


def test_single_precision_on_the_device() -> None:
    loc = torch.tensor(
        EXAMPLES["Normal"].parameters[0], dtype=torch.float32, device="cuda", requires_grad=True
    )
    scale = torch.ones(len(loc), device="cuda")
    estimate = wc.skce(Y, wc.Normal(loc, scale), kernel=KERNEL)
    assert estimate.value.dtype == torch.float64
    estimate.value.backward()
    assert loc.grad.dtype == torch.float32
