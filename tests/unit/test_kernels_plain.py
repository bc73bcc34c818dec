"""Kernels as plain values and back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from wellcal.kernels import (
    Callable,
    Delta,
    Euclidean,
    ExpDistance,
    Gaussian,
    Hellinger,
    Joint,
    Kernel,
    Laplacian,
    Matern,
    MaximumMeanDiscrepancy,
    MixtureWasserstein,
    RationalQuadratic,
    RootCovariance,
    TotalVariation,
    Wasserstein,
    paper_kernel,
)
from wellcal.kernels import __all__ as names
from wellcal.kernels.serialization import kernel_from_dict, kernel_to_dict

METRICS = [
    Euclidean(),
    TotalVariation(),
    Hellinger(),
    Wasserstein(),
    Wasserstein(order=1),
    RootCovariance(),
    MixtureWasserstein(),
    MaximumMeanDiscrepancy(Gaussian(0.3) + 2.0 * Laplacian()),
]
ON_TARGETS = [
    Gaussian(0.1),
    Laplacian(1 / 3),
    Matern(1.5, 2.0),
    RationalQuadratic(0.7, 3.0),
    Delta(),
    Gaussian() * Laplacian(2.0),
    0.25 * Gaussian() + Delta(),
]
KERNELS: list[Kernel] = [
    *(ExpDistance(metric, 0.7, 0.9) @ Gaussian() for metric in METRICS),
    *(ExpDistance(TotalVariation()) @ kernel for kernel in ON_TARGETS),
    paper_kernel,
    2.0 * paper_kernel + ExpDistance(Wasserstein(), 3.0) @ Laplacian(),
    (ExpDistance(Wasserstein()) * ExpDistance(Euclidean())) @ Gaussian(),
    *ON_TARGETS,
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_come_back_equal(kernel: Kernel) -> None:
    text = json.dumps(kernel_to_dict(kernel), allow_nan=False)
    back = kernel_from_dict(json.loads(text))
    assert back == kernel
    assert repr(back) == repr(kernel)


def test_every_kernel_and_metric_was_tried() -> None:
    seen: set[str] = set()

    def collect(plain: Any) -> None:
        if isinstance(plain, dict):
            seen.add(plain["kind"])
        for item in plain.values() if isinstance(plain, dict) else plain if isinstance(plain, list) else []:
            collect(item)

    for kernel in KERNELS:
        collect(kernel_to_dict(kernel))
    abstract = {"Kernel", "Metric", "Radial", "TargetKernel", "Guarantees", "Proof", "paper_kernel"}
    assert seen == set(names) - abstract - {"Callable", "Joint"}


@pytest.mark.parametrize(
    "kernel",
    [
        ExpDistance(Wasserstein()) @ Callable(lambda a, b: 1.0),
        ExpDistance(MaximumMeanDiscrepancy(Callable(min))) @ Gaussian(),
        paper_kernel + Joint(lambda p, y, q, z: 1.0),
    ],
    ids=["on targets", "in a metric", "joint"],
)
def test_functions_are_told_and_not_restored(kernel: Kernel) -> None:
    plain = kernel_to_dict(kernel)
    assert "not restorable" in json.dumps(plain)
    assert kernel_from_dict(plain) is None


@pytest.mark.parametrize("value", [np.float64(0.3), np.float32(0.5), torch.tensor(0.25, dtype=torch.float64)])
def test_numbers_of_other_libraries_become_plain(value: Any) -> None:
    plain = json.loads(json.dumps(kernel_to_dict(Gaussian(value))))
    assert plain == {"kind": "Gaussian", "lengthscale": float(value)}
    back = kernel_from_dict(plain)
    assert isinstance(back, Gaussian)
    assert back.lengthscale == float(value)
