"""Batches of predictions as plain values, for JSON and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray, is_array, to_numpy
from wellcal.predictions.base import FAMILIES, Predictions


def predictions_to_dict(batch: Predictions) -> dict[str, Any]:
    """A batch as dictionaries, lists, numbers and texts. Arrays of any library come back as NumPy's.

    Examples
    --------
    >>> from wellcal.predictions import Normal
    >>> plain = predictions_to_dict(Normal(np.array([0.5]), np.array([2.0])))
    >>> plain["family"], plain["fields"]["loc"]
    ('Normal', {'dtype': '<f8', 'shape': [1], 'values': [0.5]})
    >>> predictions_from_dict(plain).scale
    array([2.])
    """
    known: Any = batch
    return {
        "family": type(batch).__name__,
        "module": type(batch).__module__,
        "fields": {field.name: _plain(getattr(batch, field.name)) for field in fields(known)},
    }


def predictions_from_dict(plain: dict[str, Any]) -> Predictions:
    """The batch again, to the last digit. Values were checked when the batch was made."""
    batch: Any = object.__new__(_family(plain["family"], plain.get("module")))
    for field in fields(batch):
        object.__setattr__(batch, field.name, _restore(plain["fields"][field.name]))
    return batch


def _family(name: str, module: str | None) -> type[Predictions]:
    """The family of that name, defined last; of those in the same module, where there are some."""
    found = [family for family in FAMILIES if family.__name__ == name]
    if not found:
        raise ValueError(f"there is no family {name!r}; import the module that defines it first")
    return ([family for family in found if family.__module__ == module] or found)[-1]


def array_to_dict(array: Any) -> dict[str, Any]:
    """An array of numbers or texts as plain values."""
    values: NDArray = to_numpy(array)
    if values.dtype.kind not in "biufU" and not all(
        isinstance(item, (str, int, float)) for item in values.ravel().tolist()
    ):
        raise TypeError(
            "objects cannot be written as JSON, only numbers and texts can; give what is to be kept as "
            "numbers, or pickle it"
        )
    dtype = "object" if values.dtype.kind == "O" else values.dtype.str
    return {"dtype": dtype, "shape": list(values.shape), "values": values.ravel().tolist()}


def array_from_dict(plain: dict[str, Any]) -> NDArray:
    """The array again, as NumPy's."""
    return np.array(plain["values"], dtype=np.dtype(plain["dtype"])).reshape(plain["shape"])


def _plain(value: Any) -> Any:
    if isinstance(value, Predictions):
        return predictions_to_dict(value)
    if is_array(value):
        return array_to_dict(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, np.generic):
        return cast("Any", value).item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a parameter of type {type(value).__name__} cannot be written as JSON")


def _restore(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_restore(item) for item in cast("list[Any]", value))
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    return predictions_from_dict(members) if "family" in members else array_from_dict(members)
