"""Whole batches: several become one, and one moves to NumPy or to another device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import array_api_compat as compat
import numpy as np

from wellcal._arrays.checks import same_dtype
from wellcal._arrays.memo import Memo
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    concat_rows,
    device_of,
    host_copy,
    is_torch,
    namespace,
    to_numpy,
)
from wellcal.predictions.base import Predictions
from wellcal.predictions.samples import Samples

_copies: Memo[Predictions] = Memo(most=100_000_000)


def in_numpy(predictions: Predictions) -> Predictions:
    """Return a batch in NumPy and float64, for what needs neither gradients nor a device.

    One that is so already is returned itself, with what is cached for it.

    Examples
    --------
    >>> from wellcal.predictions import Normal
    >>> pred = Normal(np.zeros(2), 1.0)
    >>> in_numpy(pred) is pred
    True
    """
    if all(type(a) is np.ndarray and (a.dtype.kind != "f" or a.dtype == float) for a in predictions.arrays()):
        return predictions
    return predictions.map_arrays(_in_double)


def _in_double(array: Array) -> NDArray:
    values = to_numpy(array)
    return values.astype(np.float64) if values.dtype.kind == "f" else values


def host_copies(predictions: Predictions, *others: Array) -> tuple[Any, ...]:
    """Return a batch and arrays in NumPy, floats as float64, where reading all is cheap; else as they are.

    Examples
    --------
    >>> import torch
    >>> from wellcal.predictions import Normal
    >>> batch, y = host_copies(Normal(torch.zeros(2), torch.ones(2)), torch.ones(2))
    >>> type(batch.loc).__name__, type(y).__name__
    ('ndarray', 'ndarray')
    """
    if not all(isinstance(host_copy(array), np.ndarray) for array in (*others, *predictions.arrays())):
        return (predictions, *others)
    return in_numpy(predictions), *map(_in_double, others)


def on_device_of(predictions: Predictions, like: Array) -> Any:
    """Return a batch in the library and on the device of `like`, where it is moved once.

    Examples
    --------
    >>> import torch
    >>> from wellcal.predictions import Normal
    >>> on_device_of(Normal(np.zeros(2), 1.0), torch.ones(2)).loc
    tensor([0., 0.], dtype=torch.float64)
    """
    if type(like) is np.ndarray and type(predictions.like) is np.ndarray:
        return predictions
    xp, device = namespace(like), device_of(like)

    def placed(array: Array) -> Array:
        if namespace(array) is not xp:
            return asarray(array, xp=xp, device=device)
        return array if device_of(array) == device else compat.to_device(array, device)

    if not is_torch(xp):  # JAX compiles constants into its programs
        return predictions.map_arrays(placed)
    return _copies.get(predictions, str(device), lambda: predictions.map_arrays(placed))


def concatenate(batches: Sequence[Predictions], names: Sequence[str], what: str) -> Predictions:
    """Return one batch of all predictions, which must be of one family and agree in what they share.

    Parameters
    ----------
    batches
        Batches of one family and one array library. Samples may differ in their number of values and in
        their kind: the result then consists of atoms, padded with atoms of weight zero.
    names, what
        How errors call each batch, and all of them together.

    Examples
    --------
    >>> from wellcal.predictions import Normal
    >>> parts = [Normal(np.zeros(2), 1.0), Normal(np.ones(1), 2.0)]
    >>> concatenate(parts, ["the first", "the second"], "both").scale
    array([1., 1., 2.])
    """
    first: Any = batches[0]
    for name, batch in zip(names, batches, strict=True):
        if type(batch) is not type(first):
            raise TypeError(
                f"{what} must be of one family, found {type(first).__name__} as {names[0]} and "
                f"{type(batch).__name__} as {name}"
            )
        if batch.event_shape != first.event_shape:
            raise ValueError(
                f"{what} must have targets of one shape, found {first.event_shape} in {names[0]} "
                f"and {batch.event_shape} in {name}"
            )
    if len(batches) == 1:
        return first
    if isinstance(first, Samples):
        batches = _alike(batches)
        first = batches[0]
    own = {*first.array_fields, *first.batch_fields}
    for field in [field.name for field in fields(first) if field.name not in own]:
        for name, batch in zip(names, batches, strict=True):
            if not np.array_equal(getattr(batch, field), getattr(first, field)):
                raise ValueError(
                    f"{what} must have the same {field}, and that of {name} differs from that of {names[0]}"
                )
    changed: dict[str, Any] = {}
    for field in first.batch_fields:
        groups = [getattr(batch, field) for batch in batches]
        for name, group in zip(names, groups, strict=True):
            if len(group) != len(groups[0]):
                raise ValueError(
                    f"{what} must have the same number of {field}, found {len(groups[0])} in {names[0]} and "
                    f"{len(group)} in {name}; add {field} of weight zero"
                )
        changed[field] = tuple(concatenate(members, names, what) for members in zip(*groups, strict=True))
    for field in first.array_fields:
        arrays = [getattr(batch, field) for batch in batches]
        if arrays[0] is None:
            continue
        namespace(*arrays)  # two libraries are an error
        shapes = [tuple(array.shape[1:]) for array in arrays]
        for name, shape in zip(names, shapes, strict=True):
            if shape != shapes[0]:
                raise ValueError(
                    f"{what} must have {field} of one shape beyond the first axis, found {shapes[0]} in "
                    f"{names[0]} and {shape} in {name}"
                )
        changed[field] = concat_rows(same_dtype(arrays))
    indexes: list[Any] = [batch.case_index for batch in batches]
    labelled = all(index is not None for index in indexes)  # labels of a part say nothing of the rest
    return first.with_fields(**changed).with_index(indexes[0].append(indexes[1:]) if labelled else None)


def _alike(batches: Sequence[Any]) -> list[Any]:
    """Return samples of one kind and one number of values, all or none of them with weights."""
    if len({(int(b.values.shape[1]), b.kind, b.weights is None) for b in batches}) == 1:
        return list(batches)
    size = max(int(batch.values.shape[1]) for batch in batches)
    return [_padded(batch, size) for batch in batches]


def _padded(samples: Samples, size: int) -> Samples:
    """Return samples as `size` weighted atoms; those that are added repeat the first and weigh nothing."""
    values, weights = samples.values, samples.atom_weights()
    if missing := size - int(values.shape[1]):
        values = namespace(values).concat([values, *[values[:, :1, ...]] * missing], axis=1)
        weights = namespace(weights).concat([weights, *[0.0 * weights[:, :1]] * missing], axis=1)
    return samples.with_fields(values=values, weights=weights, kind="atoms")
