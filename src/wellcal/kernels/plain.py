"""Kernels as plain values, for JSON and back."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import is_array, to_numpy
from wellcal.kernels import base, metrics, targets
from wellcal.kernels.base import Kernel

_KNOWN: dict[str, type] = {
    name: part
    for module in (base, targets, metrics)
    for name, part in vars(module).items()
    if isinstance(part, type) and is_dataclass(part)
}


def kernel_to_dict(part: Any) -> Any:
    """A kernel or metric as dictionaries, lists, numbers and texts.

    Examples
    --------
    >>> from wellcal.kernels import Gaussian
    >>> kernel_to_dict(2.0 * Gaussian(0.5))
    {'kind': 'Scaled', 'factor': 2.0, 'kernel': {'kind': 'Gaussian', 'lengthscale': 0.5}}
    """
    if is_dataclass(part) and not isinstance(part, type):
        values = {field.name: kernel_to_dict(getattr(part, field.name)) for field in fields(part)}
        return {"kind": type(part).__name__, **values}
    if isinstance(part, tuple):
        return [kernel_to_dict(item) for item in part]
    if is_array(part):
        return kernel_to_dict(to_numpy(part).tolist())
    if part is None or isinstance(part, (bool, int, float, str)):
        return part
    if isinstance(part, np.generic):
        return part.item()
    return {"kind": "not restorable", "text": repr(part)}


def kernel_from_dict(plain: Any) -> Kernel | None:
    """The kernel again, or None where it holds a function, which plain values cannot."""
    try:
        return _restore(plain)
    except _NotRestorableError:
        return None


class _NotRestorableError(Exception):
    pass


def _restore(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(_restore(item) for item in plain)
    if not isinstance(plain, dict):
        return plain
    kind = plain["kind"]
    if kind not in _KNOWN:
        raise _NotRestorableError
    return _KNOWN[kind](**{name: _restore(value) for name, value in plain.items() if name != "kind"})
