"""Copies of arguments, which later changes by the caller do not reach, and read-only arrays."""

from __future__ import annotations

from typing import Any, cast

import array_api_compat as compat
import numpy as np

from wellcal._arrays.namespaces import has, is_array, namespace


def own_copy(x: Any) -> Any:
    """Copy `x` if it is an array or convertible to one by ``__array__``; return anything else as it is.

    Tensors of PyTorch keep their gradients: the copy is a step of the computation. JAX's arrays are immutable
    and need no copy. Lists become arrays anyway.

    Examples
    --------
    >>> given = np.zeros(2)
    >>> kept = own_copy(given)
    >>> given[0] = 1.0
    >>> kept
    array([0., 0.])
    """
    given: Any = x
    if is_array(given) and not isinstance(x, np.ndarray):
        if compat.is_torch_array(given):
            return given.clone()
        return given if compat.is_jax_array(given) else namespace(given).asarray(given, copy=True)
    if isinstance(x, (np.generic, np.ma.MaskedArray)) or not has(given, "__array__"):  # masks: refused later
        return given
    try:
        return np.array(given)
    except Exception:  # the check of the argument says what is wrong
        return given


def freeze(x: Any) -> None:
    """Make an array of NumPy, or those in a tuple, read-only; they must be copies."""
    if isinstance(x, np.ndarray):
        x.flags.writeable = False
    elif isinstance(x, tuple):
        for item in cast("tuple[Any, ...]", x):
            freeze(item)


def read_only(x: Any) -> Any:
    """Return a read-only view of an array of NumPy, and anything else as it is."""
    if not isinstance(x, np.ndarray) or not x.flags.writeable:
        return cast("Any", x)
    view: Any = cast("Any", x).view()
    view.flags.writeable = False
    return view
