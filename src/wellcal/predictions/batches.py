"""What is done with whole batches: several become one, and one moves to NumPy, or to wherever arrays are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import array_api_compat as compat
import numpy as np

from wellcal._arrays.namespaces import (
    Array,
    Namespace,
    NDArray,
    asarray,
    concat_rows,
    device_of,
    host_copy,
    namespace,
    to_numpy,
)
from wellcal._arrays.parameters import same_dtype
from wellcal.predictions.base import Predictions
from wellcal.predictions.samples import Samples


def in_numpy(predictions: Predictions) -> Predictions:
    """The same batch in NumPy and float64, for what needs neither gradients nor a device.

    One that is so already is returned itself, with what is remembered of it.

    Examples
    --------
    >>> from wellcal.predictions import Normal
    >>> pred = Normal(np.zeros(2), 1.0)
    >>> in_numpy(pred) is pred
    True
    """
    moved: list[bool] = []

    def converted(array: Array) -> NDArray:
        values = to_numpy(array)
        if values.dtype.kind == "f":  # positions stay whole numbers
            values = values.astype(np.float64, copy=values is not array)  # tensors may change
        moved.append(values is not array)
        return values

    batch = predictions.map_arrays(converted)
    return batch if any(moved) else predictions


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
    arrays: list[Array] = list(others)
    predictions.map_arrays(lambda array: arrays.append(array) or array)
    copies = map(host_copy, arrays)
    if not all(isinstance(copy, np.ndarray) for copy in copies):
        return (predictions, *others)
    values = map(to_numpy, others)
    return in_numpy(predictions), *(v.astype(np.float64) if v.dtype.kind == "f" else v for v in values)


def wherever(predictions: Predictions) -> Callable[[Array], Predictions]:
    """From arrays to the same batch in their library and on their device, where it is moved once.

    Examples
    --------
    >>> import torch
    >>> from wellcal.predictions import Normal
    >>> beside = wherever(Normal(np.zeros(2), 1.0))
    >>> beside(torch.ones(2)).loc
    tensor([0., 0.], dtype=torch.float64)
    """
    moved: dict[Any, Predictions] = {}
    own = predictions.like

    def beside(like: Array) -> Predictions:
        if type(like) is np.ndarray and type(own) is np.ndarray:
            return predictions
        xp, device = namespace(like), device_of(like)
        if (xp, device) not in moved:
            moved[xp, device] = predictions.map_arrays(lambda array: _placed(array, xp, device))
        return moved[xp, device]

    return beside


def _placed(array: Array, xp: Namespace, device: Any) -> Array:
    if namespace(array) is xp:
        return array if device_of(array) == device else compat.to_device(array, device)
    return asarray(array, xp=xp, device=device)


def concatenate(batches: Sequence[Predictions], names: Sequence[str], what: str) -> Predictions:
    """One batch with the predictions of all, which must be of one family and agree in what they share.

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
    _check_shared(batches, names, what)
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
        if arrays[0] is not None:
            _check_rows_alike(arrays, names, what, field)
            changed[field] = concat_rows(same_dtype(arrays))
    return _with_labels(first.with_fields(**changed), batches)


def _with_labels(joined: Predictions, batches: Sequence[Predictions]) -> Predictions:
    """The labels of all cases, where all have some; labels of a part of them say nothing of the rest."""
    indexes: list[Any] = [batch.case_index for batch in batches]
    if all(index is None for index in indexes):
        return joined
    known = all(index is not None for index in indexes)
    return joined.with_index(indexes[0].append(indexes[1:]) if known else None)


def _check_shared(batches: Sequence[Predictions], names: Sequence[str], what: str) -> None:
    """Reject batches that differ in what a batch has in common, such as the support."""
    first: Any = batches[0]
    own = {*first.array_fields, *first.batch_fields}
    for field in [field.name for field in fields(first) if field.name not in own]:
        for name, batch in zip(names, batches, strict=True):
            if not np.array_equal(getattr(batch, field), getattr(first, field)):
                raise ValueError(
                    f"{what} must have the same {field}, and that of {name} differs from that of {names[0]}"
                )


def _check_rows_alike(arrays: list[Array], names: Sequence[str], what: str, field: str) -> None:
    namespace(*arrays)  # two libraries are an error
    for name, array in zip(names, arrays, strict=True):
        if tuple(array.shape[1:]) != tuple(arrays[0].shape[1:]):
            raise ValueError(
                f"{what} must have {field} of one shape beyond the first axis, found "
                f"{tuple(arrays[0].shape[1:])} in {names[0]} and {tuple(array.shape[1:])} in {name}"
            )


def _alike(batches: Sequence[Any]) -> list[Any]:
    """Samples of one kind and one number of values, all or none of them with weights."""
    sizes = {int(batch.values.shape[1]) for batch in batches}
    kinds = {batch.kind for batch in batches}
    weighted = {batch.weights is not None for batch in batches}
    if len(sizes) == len(kinds) == len(weighted) == 1:
        return list(batches)
    if len(sizes) == 1 and weighted == {False}:
        return [batch.with_fields(kind="atoms") for batch in batches]
    return [_padded(batch, max(sizes)) for batch in batches]


def _padded(samples: Samples, size: int) -> Samples:
    """The same as `size` weighted atoms; those that are added repeat the first and weigh nothing."""
    values, weights = samples.values, samples.atom_weights()
    missing = size - int(values.shape[1])
    if missing:
        values = _appended(values, [values[:, :1, ...]] * missing)
        weights = _appended(weights, [0.0 * weights[:, :1]] * missing)
    return samples.with_fields(values=values, weights=weights, kind="atoms")


def _appended(array: Array, more: list[Array]) -> Array:
    return namespace(array).concat([array, *more], axis=1)
