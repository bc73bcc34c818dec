"""Parameters of a family at the door: one library, one precision, one shape."""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np

from wellcal._arrays.checks import (
    check_rows,
    check_same_shape,
    nonnegative,
    probability_tolerance,
    real_array,
)
from wellcal._arrays.namespaces import Array, asarray, is_array, is_floating, namespace


def device_of(x: Array) -> Any:
    """The device that `x` lives on."""
    return compat.device(x)  # pyright: ignore[reportUnknownMemberType]


def is_number(x: object) -> bool:
    """Whether `x` is a plain number, which stands for the same value in every row."""
    return isinstance(x, (int, float, np.integer, np.floating)) and not isinstance(x, bool)


def parameters(*, ndim: tuple[int, ...] = (1,), **given: object) -> list[Array]:
    """The parameters `given`, by name, as finite floating arrays of equal shape, library and dtype.

    A plain number is repeated to the shape of the others. Arrays of different shapes are an error,
    also where they could be broadcast: ``(n,)`` against ``(n, 1)`` would silently make ``(n, n)``.
    """
    names = list(given)
    like = common_library(*given.values())
    arrays = {
        name: real_array(x, name, ndim=ndim, like=like) for name, x in given.items() if not is_number(x)
    }
    if not arrays:
        raise TypeError(
            f"{' and '.join(names)}: only numbers were given; at least one must be an array with one entry "
            "for each prediction"
        )
    first_name, first = next(iter(arrays.items()))
    for name, array in arrays.items():
        check_same_shape(first, first_name, array, name)
    for name in names:
        if name not in arrays:
            arrays[name] = repeated(given[name], name, tuple(first.shape), first)
    return same_dtype([arrays[name] for name in names])


def repeated(number: Any, name: str, shape: tuple[int, ...], like: Array) -> Array:
    """`number` in every entry of an array of `shape` beside `like`."""
    if not np.isfinite(number):
        raise ValueError(f"{name} must be finite, found {number}")
    xp = namespace(like)
    # Shape and device come from an existing array where possible: a traced array has no device.
    if tuple(like.shape) == shape:
        return xp.full_like(like, float(number))
    return xp.full(shape, float(number), dtype=like.dtype, device=device_of(like))


def common_library(*given: object) -> Array | None:
    """The array among `given` that decides library, device and precision of the rest; None if there is none.

    NumPy arrays are carried into another library, never the reverse.
    """
    arrays: list[Any] = [x for x in given if is_array(x)]
    foreign = [x for x in arrays if not isinstance(x, np.ndarray)]
    namespace(*foreign)  # two foreign libraries are an error
    candidates = foreign or arrays
    return next((x for x in candidates if is_floating(x)), candidates[0] if candidates else None)


def same_dtype(arrays: list[Array]) -> list[Array]:
    """`arrays` of one library in the widest of their dtypes."""
    if len({str(a.dtype) for a in arrays}) == 1:
        return arrays
    xp = namespace(*arrays)
    dtype = xp.result_type(*arrays)
    return [xp.astype(a, dtype, copy=False) for a in arrays]


def check_probabilities(probs: Array, name: str) -> None:
    """Reject rows that are not probability vectors: negative entries, or a sum that is not one."""
    nonnegative(probs, name)
    total = namespace(probs).sum(probs, axis=-1)
    tolerance = probability_tolerance(probs)
    check_rows(
        f"the sum of {name}",
        total,
        abs(total - 1.0) <= tolerance,
        f"must be one within {tolerance:g}",
        f"divide each row of {name} by its sum",
    )


def check_within(array: Array, name: str, low: float, high: float) -> None:
    """Reject values outside ``[low, high]``."""
    check_rows(
        name,
        array,
        (array >= low) & (array <= high),
        f"must lie in [{low:g}, {high:g}]",
        "check its values and units",
    )


def check_whole(array: Array, name: str) -> None:
    """Reject what is not a count: negative or fractional numbers."""
    xp = namespace(array)
    check_rows(
        name,
        array,
        (array >= 0) & (xp.floor(array) == array),
        "must be a non-negative whole number",
        "counts are 0, 1, 2, ...",
    )


def as_library(x: object, like: Array, dtype: Any = None) -> Array:
    """`x` beside `like`, in `dtype` or its own."""
    return asarray(x, xp=namespace(like), device=device_of(like), dtype=dtype)
