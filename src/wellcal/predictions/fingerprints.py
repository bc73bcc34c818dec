"""Fingerprints of targets and predictions: the same data have the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.predictions.base import Predictions


def fingerprint(models: Iterable[tuple[str, NDArray, Predictions]]) -> str:
    """SHA-256 of names, targets and parameters of predictions, in their order.

    Examples
    --------
    >>> from wellcal.predictions import Normal
    >>> y, pred = np.zeros(2), Normal(np.zeros(2), np.ones(2))
    >>> fingerprint([("a", y, pred)]) == fingerprint([("a", y, Normal(np.zeros(2), 1.0))])
    True
    """
    found = hashlib.sha256()
    for name, targets, predictions in models:
        found.update(f"{name}:{type(predictions).__name__}".encode(errors="surrogatepass"))
        for array in (targets, *arrays_of(predictions)):
            plain = np.ascontiguousarray(array)
            found.update(f"{plain.dtype}{plain.shape}".encode())
            found.update(repr(plain.tolist()).encode() if plain.dtype.hasobject else plain.tobytes())
    return found.hexdigest()


def arrays_of(predictions: Predictions) -> Iterator[NDArray]:
    """Parameters of predictions, in NumPy."""
    for name in predictions.array_fields:
        if (array := getattr(predictions, name)) is not None:
            yield np.asarray(to_numpy(array))
    for name in predictions.batch_fields:
        for child in getattr(predictions, name):
            yield from arrays_of(child)
