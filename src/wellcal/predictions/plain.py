"""Batches of predictions as plain values, for JSON and back."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray, is_array, to_numpy
from wellcal._arrays.schema import Schema, as_it_is, listed, mapping, optional, text, whole
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


_LONGEST_TEXT = 1 << 20  # bytes of one entry of an array
_BATCH = Schema({"family": text, "module": optional(text), "fields": mapping}, {"module": None})
_ARRAY = Schema(
    {"dtype": text, "shape": listed(whole(least=0)), "values": listed(as_it_is)},
)


def predictions_from_dict(plain: Any, name: str = "predictions") -> Predictions:
    """The batch again, to the last digit, and checked as when it was made."""
    found = _BATCH(plain, name)
    cls = _family(found["family"], found["module"], name)
    known = fields(cast("Any", cls))
    declared = cls.parameter_fields
    added = {
        field.name: field.default
        for field in known
        if field.name not in declared and field.name in cls.added_fields
    }
    schema = Schema({field.name: _array if field.name in declared else _restore for field in known}, added)
    given = schema(found["fields"], f"{name}.fields")
    batch: Any = object.__new__(cls)
    for field in known:
        object.__setattr__(batch, field.name, given[field.name] if field.init else None)
    try:
        batch.__post_init__()
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ValueError(f"{name}.fields are not those of a {cls.__name__}: {error}") from error
    # Checks may round: what was stored is kept where it is what they return.
    for field in known:
        if field.init and _nearly(given[field.name], getattr(batch, field.name)):
            object.__setattr__(batch, field.name, given[field.name])
    return batch


def _nearly(stored: Any, made: Any) -> bool:
    if not (is_array(stored) and is_array(made)) or made.dtype.kind != "f":
        return False
    alike = stored.dtype == made.dtype and stored.shape == made.shape
    return alike and np.allclose(stored, made, rtol=1e-12, atol=0.0)


def _family(family: str, module: str | None, name: str) -> type[Predictions]:
    """The family of that name, defined last; of those in the same module, where there are some."""
    found = [each for each in FAMILIES if each.__name__ == family]
    if not found:
        raise ValueError(
            f"{name}.family: there is no family {family!r}; import the module that defines it first"
        )
    return ([each for each in found if each.__module__ == module] or found)[-1]


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


def array_from_dict(plain: Any, name: str = "array") -> NDArray:
    """The array again, as NumPy's.

    Examples
    --------
    >>> array_from_dict({"dtype": "<f8", "shape": [3], "values": [1.0, 2.0]}, "targets")
    Traceback (most recent call last):
    ValueError: targets.values must have 3 entries, as its shape has, found 2
    """
    found = _ARRAY(plain, name)
    values, size = found["values"], math.prod(found["shape"])
    if len(values) != size:
        raise ValueError(f"{name}.values must have {size} entries, as its shape has, found {len(values)}")
    try:
        dtype = np.dtype(found["dtype"])
        if dtype.kind not in "biufUO" or dtype.itemsize > _LONGEST_TEXT:
            raise TypeError("it must be a type of numbers, of texts or of both")
        allowed = (str, int, float) if dtype.kind in "UO" else (int, float)
        if not all(isinstance(item, allowed) for item in values):
            raise TypeError("some of them are of another type")
        array: Any = np.empty(size, dtype=dtype)
        array[:] = values
        if dtype.kind != "f" and array.tolist() != list(values):
            raise ValueError("some of them are too long or too large")
        if any(isinstance(item, float) and not math.isfinite(item) for item in array.tolist()):
            raise ValueError("some of them are not finite")
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}.values do not fit {name}.dtype, {found['dtype']!r}: {error}") from None
    return array.reshape(found["shape"])


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


_array = optional(array_from_dict)


def _restore(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return tuple(_restore(item, f"{name}[{i}]") for i, item in enumerate(cast("list[Any]", value)))
    if not isinstance(value, dict):
        return value
    members = mapping(value, name)
    return predictions_from_dict(members, name) if "family" in members else array_from_dict(members, name)
