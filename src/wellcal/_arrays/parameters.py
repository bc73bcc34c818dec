"""Arrays that belong together: one library, one device, one precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import real_number
from wellcal._arrays.namespaces import (
    Array,
    asarray,
    device_of,
    is_array,
    is_floating,
    namespace,
    refuse_elsewhere,
)

_IN_PARTITIONS = "wellcal.dask.from_arrays(wc.Normal, loc, scale), or another family, makes predictions of it"


def is_number(x: object) -> bool:
    """Whether `x` is a plain number, which stands for the same value in every row."""
    numbers = (int, float, np.integer, np.floating)
    return isinstance(x, numbers) and not isinstance(x, (bool, np.timedelta64))


def repeated(number: Any, name: str, like: Array) -> Array:
    """`number` in every entry of an array like `like`: its shape, library, device and precision."""
    value = real_number(number, name)
    if not np.isfinite(value):
        raise ValueError(f"{name} must be finite, found {number}")
    xp = namespace(like)
    if is_floating(like) and abs(value) > float(xp.finfo(like.dtype).max):
        raise ValueError(f"{name} is beyond the range of {like.dtype}: found {number}; take double precision")
    return xp.full_like(like, value)


def same_library(**named: object) -> Any:
    """The library that arrays share, or an error with the names of the arguments."""
    try:
        return namespace(*named.values())
    except TypeError as error:
        raise TypeError(f"{' and '.join(named)}: {error}") from None


def common_library(*given: object) -> Array | None:
    """The array among `given` that decides library, device and precision of the rest; None if there is none.

    NumPy arrays are carried into another library, never the reverse.
    """
    arrays: list[Any] = [x for x in given if is_array(x)]
    foreign = [x for x in arrays if not isinstance(x, np.ndarray)]
    namespace(*foreign)  # two foreign libraries are an error
    candidates = foreign or arrays
    return next((x for x in candidates if is_floating(x)), candidates[0] if candidates else None)


def common_library_of(**named: object) -> Array | None:
    """The same for arguments by name, which an error mentions where two of them are of foreign libraries."""
    for name, x in named.items():
        if not isinstance(x, np.ndarray):
            refuse_elsewhere(x, name, _IN_PARTITIONS)
    same_library(**{name: x for name, x in named.items() if not isinstance(x, np.ndarray)})
    return common_library(*named.values())


def same_dtype(arrays: list[Array]) -> list[Array]:
    """`arrays` of one library in the widest of their dtypes."""
    if len({str(a.dtype) for a in arrays}) == 1:
        return arrays
    xp = namespace(*arrays)
    dtype = xp.result_type(*arrays)
    return [xp.astype(a, dtype, copy=False) for a in arrays]


def as_library(x: object, like: Array, dtype: Any = None) -> Array:
    """`x` in the library and on the device of `like`, in `dtype` or its own."""
    return asarray(x, xp=namespace(like), device=device_of(like), dtype=dtype)
