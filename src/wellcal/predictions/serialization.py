"""Batches of predictions as plain values, for JSON and back, and their fingerprints."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray, is_array, to_numpy
from wellcal._arrays.schema import Schema, as_it_is, listed, mapping, optional, text, whole
from wellcal.predictions.base import FAMILIES, Predictions


def predictions_to_dict(batch: Predictions) -> dict[str, Any]:
    """Return a batch as dictionaries, lists, numbers and texts; arrays of any library come back as NumPy's.

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
_ARRAY = Schema({"dtype": text, "shape": listed(whole(least=0)), "values": listed(as_it_is)})


def predictions_from_dict(plain: Any, name: str = "predictions") -> Predictions:
    """Return the batch again, to the last digit, and checked as when it was made."""
    found = _BATCH(plain, name)
    families = [cls for cls in FAMILIES if cls.__name__ == found["family"]]
    if not families:
        raise ValueError(
            f"{name}.family: there is no family {found['family']!r}; import the module that defines it first"
        )
    cls: Any = ([one for one in families if one.__module__ == found["module"]] or families)[-1]
    arrays = cls.parameter_fields
    schema = Schema({field.name: _array if field.name in arrays else _restore for field in fields(cls)})
    given = schema(found["fields"], f"{name}.fields")
    batch: Any = object.__new__(cls)
    batch.store(**{field.name: given[field.name] if field.init else None for field in fields(cls)})
    try:
        batch.__post_init__()
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ValueError(f"{name}.fields are not those of a {cls.__name__}: {error}") from error
    # Checks may round: what was stored is kept where it is what they return.
    for field in fields(cls):
        if field.init and _nearly(given[field.name], getattr(batch, field.name)):
            batch.store(**{field.name: given[field.name]})
    return batch


def _nearly(stored: Any, made: Any) -> bool:
    if not (is_array(stored) and is_array(made)) or made.dtype.kind != "f":
        return False
    alike = stored.dtype == made.dtype and stored.shape == made.shape
    return alike and np.allclose(stored, made, rtol=1e-12, atol=0.0)


def array_to_dict(array: Any) -> dict[str, Any]:
    """Return an array of numbers or texts as plain values."""
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
    """Return the array again, as NumPy's.

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


def fingerprint(models: Iterable[tuple[str, NDArray, Predictions]]) -> str:
    """Return the SHA-256 of names, targets and parameters of predictions, in their order.

    Examples
    --------
    >>> from wellcal.predictions import Normal
    >>> y, pred = np.zeros(2), Normal(np.zeros(2), np.ones(2))
    >>> fingerprint([("a", y, pred)]) == fingerprint([("a", y, Normal(np.zeros(2), 1.0))])
    True
    """
    digest = hashlib.sha256()
    for name, targets, predictions in models:
        digest.update(f"{name}:{type(predictions).__name__}".encode(errors="surrogatepass"))
        for array in (targets, *map(to_numpy, predictions.arrays())):
            values = np.ascontiguousarray(array)
            digest.update(f"{values.dtype}{values.shape}".encode())
            digest.update(repr(values.tolist()).encode() if values.dtype.hasobject else values.tobytes())
    return digest.hexdigest()
