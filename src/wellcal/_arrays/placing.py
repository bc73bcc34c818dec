"""Arrays of NumPy that are read on a device again and again, and moved there once."""

from __future__ import annotations

import weakref

from wellcal._arrays.namespaces import Array, NDArray, device_of, from_numpy, is_torch, namespace

_moved: dict[int, dict[str, Array]] = {}


def placed(array: NDArray, like: Array) -> Array:
    """`array`, which nobody may change, in the library and on the device of `like`.

    It is moved once, and its copy lives as long as the array itself.

    Examples
    --------
    >>> import numpy as np, torch
    >>> known = np.ones(2)
    >>> placed(known, torch.zeros(1)) is placed(known, torch.zeros(3)), placed(known, known) is known
    (True, True)
    """
    if not is_torch(namespace(like)):
        return from_numpy(array, like)  # others compile, or change their precision: theirs are not kept
    key = id(array)
    if key not in _moved:
        _moved[key] = {}
        weakref.finalize(array, _moved.pop, key, None)
    copies = _moved[key]
    where = str(device_of(like))
    if where not in copies:
        copies[where] = from_numpy(array, like)
    return copies[where]
