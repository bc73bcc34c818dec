"""What a family says of itself, as NumPy numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, asarray, device_of, is_array, namespace, to_numpy
from wellcal.predictions import Predictions, Quantiles


def ask(batch: Any, method: str, *arguments: NDArray | float) -> NDArray | None:
    """What `method` returns, as NumPy numbers; None where the batch has no such method."""
    if not batch.supports(method):
        return None
    given = [in_library(batch, x) if isinstance(x, np.ndarray) else x for x in arguments]
    return to_numpy(getattr(batch, method)(*given)).astype(np.float64)


def in_library(batch: Predictions, x: NDArray) -> Array:
    """`x` in the library and precision of the predictions; labels and objects as they are."""
    like = batch.like
    if x.dtype.kind not in "biuf" or not is_array(like) or str(like.dtype) == "object":
        return x
    dtype = like.dtype if x.dtype.kind == "f" else None
    return asarray(x, xp=namespace(like), device=device_of(like), dtype=dtype)


def levels_of(batch: Predictions) -> NDArray:
    """Levels at which quantiles can be asked for."""
    if isinstance(batch, Quantiles):
        return np.linspace(float(batch.levels[0]), float(batch.levels[-1]), 9)
    return np.array([0.001, 0.05, 0.1, 0.25, 0.4, 0.5, 0.7, 0.9, 0.99, 0.999])


def often_varied(draws: NDArray) -> NDArray:
    """Whether a row varied often enough to speak of its spread, by prediction and coordinate."""
    return (draws != np.median(draws, axis=0)).sum(axis=0) >= 30
