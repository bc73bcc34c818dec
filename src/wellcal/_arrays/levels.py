"""One check of levels: shares between 0 and 1, wherever they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import check_ndim, numeric_array, real_number
from wellcal._arrays.namespaces import NDArray, is_traced, namespace, to_numpy

_LEAST, _PERCENTS = 2.0, 100.0  # numbers that look like percents


def check_levels(levels: Any, name: str = "levels", *, open_interval: bool = False) -> NDArray:
    """Levels ``(T,)`` between 0 and 1, both included unless the interval is open, in an array of their own.

    Examples
    --------
    >>> check_levels([0.1, 1.0])
    array([0.1, 1. ])
    >>> check_levels([0.1, 1.0], open_interval=True)
    Traceback (most recent call last):
    ValueError: levels must be numbers strictly between 0 and 1, found 1
    """
    array = np.array(to_numpy(numeric_array(levels, name)), dtype=np.float64)
    check_ndim(array, name, (1,))
    if len(array) == 0:
        raise ValueError(f"{name} is empty: at least one level is needed")
    must_be_levels(array, name, ends=not open_interval)
    return array


def must_be_levels(levels: Any, name: str, *, ends: bool = True) -> None:
    """Reject levels, a number or an array, that are not between 0 and 1; without `ends` also 0 and 1.

    What a library traces has no values to be looked at.

    Examples
    --------
    >>> import numpy as np
    >>> must_be_levels(1.0, "u")
    >>> must_be_levels(95, "u")
    Traceback (most recent call last):
    ValueError: u must be numbers between 0 and 1, found 95; levels are shares: 95% is 0.95
    >>> must_be_levels(10**400, "u")
    Traceback (most recent call last):
    ValueError: u must be numbers between 0 and 1, found inf
    >>> must_be_levels(np.array([0.5, 1.0]), "levels", ends=False)
    Traceback (most recent call last):
    ValueError: levels must be numbers strictly between 0 and 1, found 1
    """
    if isinstance(levels, (float, int)):
        inside = 0.0 <= levels <= 1.0 if ends else 0.0 < levels < 1.0
        found = real_number(levels, name)
    else:
        if is_traced(levels):
            return
        good = (levels >= 0) & (levels <= 1) if ends else (levels > 0) & (levels < 1)
        inside = bool(namespace(levels).all(good))
        found = 0.0 if inside else float(to_numpy(levels)[~to_numpy(good)].ravel()[0])
    if inside:
        return
    share = f"; levels are shares: {found:g}% is {found / _PERCENTS:g}"
    percents = share if _LEAST <= found <= _PERCENTS else ""
    where = "between" if ends else "strictly between"
    raise ValueError(f"{name} must be numbers {where} 0 and 1, found {found:g}{percents}")
