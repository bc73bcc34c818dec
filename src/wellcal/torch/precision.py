"""Predictions in at least single precision, whatever precision a network computes in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch

from wellcal.predictions import Predictions
from wellcal.predictions.adapters import converted_argument

_HALF = (torch.float16, torch.bfloat16)


def wide_predictions(pred: object, name: str = "pred") -> Predictions:
    """`pred` as predictions whose parameters have at least 32 bits, with gradients.

    Tensors are widened before a family is made of them: its checks would refuse probabilities of 16 bits,
    whose sums miss one by more than they allow, and there is no Cholesky factor in 16 bits. Such
    probabilities are divided by their sum.
    """
    if isinstance(pred, torch.Tensor):
        return converted_argument(_wide_probabilities(pred), name)
    if isinstance(pred, tuple):
        return converted_argument(tuple(widen_half(part) for part in cast("tuple[Any, ...]", pred)), name)
    predictions = converted_argument(pred, name)
    return predictions.map_arrays(widen_half) if _is_half(predictions) else predictions


def widen_half(x: Any) -> Any:
    """A tensor of 16-bit numbers in 32 bits; anything else as it is."""
    return x.float() if isinstance(x, torch.Tensor) and x.dtype in _HALF else x


def _wide_probabilities(probs: torch.Tensor) -> torch.Tensor:
    if probs.dtype not in _HALF:
        return probs
    wide = probs.float()
    return wide / wide.sum(dim=1, keepdim=True) if wide.ndim == 2 else wide


def _is_half(predictions: Predictions) -> bool:
    found: list[bool] = []

    def look(array: Any) -> Any:
        found.append(isinstance(array, torch.Tensor) and array.dtype in _HALF)
        return array

    predictions.map_arrays(cast("Callable[[Any], Any]", look))
    return any(found)
