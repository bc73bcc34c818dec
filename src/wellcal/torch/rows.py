"""Batches of predictions as matrices with one row for each prediction, and back."""

from __future__ import annotations

import math
from typing import Any

import torch

from wellcal._arrays.namespaces import to_numpy
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.batches import concatenate, in_numpy


def template_of(predictions: Predictions) -> Predictions:
    """One prediction of the batch, in NumPy: it knows the family and what its predictions share."""
    if isinstance(predictions, Samples) and predictions.holds_objects:
        raise TypeError("Samples of objects cannot be kept as tensors; gather them and call wellcal.skce")
    return in_numpy(predictions[:1])


def check_fits(template: Predictions, earlier: Predictions) -> None:
    """Reject templates of different families, or that differ in what the predictions of a family share."""
    concatenate([earlier, template], ["earlier updates", "this update"], "updates")
    widths = [to_rows(one, None).shape[1] for one in (earlier, template)]
    if widths[0] != widths[1]:
        raise ValueError(
            f"updates must have predictions of {widths[0]} numbers each, found {widths[1]}; "
            "give samples of equal size"
        )


def to_rows(predictions: Predictions, device: torch.device | None) -> torch.Tensor:
    """Parameters of all predictions, ``(n, width)``, in double precision and without gradients."""
    parts: list[torch.Tensor] = []

    def collect(array: Any) -> Any:
        tensor = array if isinstance(array, torch.Tensor) else torch.as_tensor(to_numpy(array).copy())
        parts.append(tensor.detach().to(dtype=torch.float64, device=device).reshape(len(predictions), -1))
        return array

    predictions.map_arrays(collect)
    return torch.cat(parts, dim=1)


def from_rows(rows: torch.Tensor, template: Predictions) -> Predictions:
    """The batch whose parameters `to_rows` wrote."""
    start = 0

    def read(array: Any) -> Any:
        nonlocal start
        shape = tuple(int(k) for k in array.shape[1:])
        stop = start + math.prod(shape)
        part = rows[:, start:stop].reshape(rows.shape[0], *shape)
        start = stop
        return part if array.dtype.kind == "f" else part.to(torch.int64)

    return template.map_arrays(read)
