"""Kernels as plain values, for JSON and back."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, cast

import numpy as np

from wellcal import kernels
from wellcal._arrays.namespaces import is_array, to_numpy
from wellcal.kernels.base import Kernel
from wellcal.kernels.parts import CLASSES, Part, field_names, name_of, own_values


def kernel_to_dict(part: Any) -> Any:
    """A kernel or metric as dictionaries, lists, numbers and texts.

    Classes of :mod:`wellcal.kernels` go by their name, others by their name and that of their module.

    Examples
    --------
    >>> from wellcal.kernels import Gaussian
    >>> kernel_to_dict(2.0 * Gaussian(0.5))
    {'kind': 'Scaled', 'factor': 2.0, 'kernel': {'kind': 'Gaussian', 'lengthscale': 0.5}}
    """
    if isinstance(part, Part) and is_dataclass(part) and "kind" not in field_names(type(part)):
        values = {name: kernel_to_dict(value) for name, value in own_values(part)}
        return {"kind": _kind(type(part)), **values}
    if isinstance(part, tuple):
        return [kernel_to_dict(item) for item in cast("tuple[Any, ...]", part)]
    if is_array(part):
        return kernel_to_dict(to_numpy(part).tolist())
    if part is None or isinstance(part, (bool, int, float, str)):
        return part
    if isinstance(part, np.generic):
        return cast("Any", part).item()
    return {"kind": "not restorable", "text": repr(part)}


def kernel_from_dict(plain: Any) -> Kernel | None:
    """The kernel again, or None where it holds a function or is of a class that has not been imported."""
    try:
        return _restore(plain)
    except _NotRestorableError:
        return None


class _NotRestorableError(Exception):
    pass


def _kind(cls: type[Part]) -> str:
    """The name of a class within the public names of the room, or everywhere."""
    return cls.__name__ if getattr(kernels, cls.__name__, None) is cls else name_of(cls)


def _class(kind: str) -> type[Part]:
    cls = CLASSES.get(kind) or getattr(kernels, kind, None)
    if not (isinstance(cls, type) and issubclass(cls, Part)):
        raise _NotRestorableError
    return cls


def _restore(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(_restore(item) for item in cast("list[Any]", plain))
    if not isinstance(plain, dict):
        return plain
    members = cast("dict[str, Any]", plain)
    values = {name: _restore(value) for name, value in members.items() if name != "kind"}
    return _class(members["kind"])(**values)
