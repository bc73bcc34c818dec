"""One step of training with PyTorch: SKCE of normal predictions, forward and backward."""

from __future__ import annotations

from typing import Any

import wellcal as wc
from benchmarks.cases import Case, NormalCase
from benchmarks.competitors import Run, UnavailableError

NAME = "PyTorch, forward and backward"


def prepare(case: Case) -> Run:
    """A step that returns the loss, after gradients of means and standard deviations."""
    try:
        import torch
    except ImportError as error:
        raise UnavailableError(f"PyTorch cannot be imported: {error}") from None
    if not isinstance(case, NormalCase):
        raise UnavailableError("training is measured for normals")
    mu, sigma, y = (torch.from_numpy(array) for array in case.arrays)
    parameters: list[Any] = [mu.requires_grad_(), sigma.requires_grad_()]

    def step() -> float:
        loss: Any = wc.skce(y, wc.Normal(mu, sigma), kernel=case.kernel).value
        loss.backward()
        if not all(bool(torch.isfinite(p.grad).all()) for p in parameters):
            raise AssertionError("a gradient is not finite")
        return float(loss.detach())

    return step
