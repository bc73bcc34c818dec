"""Memory that belongs to whoever keeps it: copies of what a caller gave, which nobody can write to."""

from __future__ import annotations

from typing import Any, cast

import array_api_compat as compat
import numpy as np

from wellcal._arrays.namespaces import has, is_array, namespace


def own_copy(x: Any) -> Any:
    """`x` in memory of its own, where it is an array or something that has one; anything else as it is.

    Tensors of PyTorch keep their gradients: the copy is a step of the computation. JAX's arrays cannot be
    written to and need no copy. Lists become arrays anyway.

    Examples
    --------
    >>> given = np.zeros(2)
    >>> kept = own_copy(given)
    >>> given[0] = 1.0
    >>> kept
    array([0., 0.])
    """
    if type(x) is np.ndarray:
        return x.copy()
    if isinstance(x, np.ndarray):
        given = cast("Any", x)
        return given if isinstance(x, np.ma.MaskedArray) else np.array(given)  # masks are to be refused
    if is_array(x):
        if compat.is_torch_array(x):
            return x.clone()
        return x if compat.is_jax_array(x) else namespace(x).asarray(x, copy=True)
    if has(x, "__array__") and not isinstance(x, np.generic):
        try:
            return np.array(x)
        except Exception:  # what is wrong with it is said where it is checked
            return x
    return cast("Any", x)


def freeze(x: Any) -> None:
    """Make an array of NumPy read-only, and those of a tuple: it must be the holder's own."""
    if isinstance(x, np.ndarray):
        x.flags.writeable = False
    elif isinstance(x, tuple):
        for item in cast("tuple[Any, ...]", x):
            freeze(item)


def read_only(x: Any) -> Any:
    """`x`, or a view of it that cannot be written to where it is an array of NumPy that can be."""
    if not isinstance(x, np.ndarray) or not x.flags.writeable:
        return cast("Any", x)
    view: Any = cast("Any", x).view()
    view.flags.writeable = False
    return view
