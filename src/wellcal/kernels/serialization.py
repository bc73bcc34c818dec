"""Conversion of kernels to plain values, for JSON, and back."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, cast

import numpy as np

from wellcal import kernels
from wellcal._arrays.checks import one_of
from wellcal._arrays.namespaces import is_array, to_numpy
from wellcal._arrays.schema import Schema, as_it_is, checked, mapping, text
from wellcal.kernels.base import CLASSES, Kernel, Part, field_names, name_of, own_values

_NOT_RESTORABLE = "not restorable"


def kernel_to_dict(part: Any) -> Any:
    """Convert a kernel or metric to dictionaries, lists, numbers and texts.

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
    return {"kind": _NOT_RESTORABLE, "text": repr(part)}


def kernel_from_dict(plain: Any, name: str = "kernel") -> Kernel | None:
    """Return the kernel, or None where it holds a function or is of a class that has not been imported.

    Examples
    --------
    >>> kernel_from_dict({"kind": "Gaussian", "lengthscale": 0.5})
    Gaussian(lengthscale=0.5)
    >>> kernel_from_dict({"kind": "Gaussian", "lengthscale": -0.5})
    Traceback (most recent call last):
    ValueError: kernel is not a Gaussian: lengthscale must be positive and finite, found -0.5
    """
    try:
        found = _restore(mapping(plain, name), name)
    except _NotRestorableError:
        return None
    if not isinstance(found, Kernel):
        raise ValueError(f"{name} must be a kernel, found {found!r}")
    return found


def read_kernel(plain: Any, text: Any, given: Kernel | None, name: str = "kernel") -> Kernel | None:
    """Return the kernel of a stored result, or `given`, which must be the same, if it holds a function."""
    if plain is None:
        return None
    found = kernel_from_dict(plain, name)
    if found is None and given is not None and repr(given) != text:
        raise ValueError(f"{name} must be {text}, found {given!r}")
    return given if found is None else found


class _NotRestorableError(Exception):
    pass


def _kind(cls: type[Part]) -> str:
    """Return the public name of a class, or its full name if it is none of the package."""
    return cls.__name__ if getattr(kernels, cls.__name__, None) is cls else name_of(cls)


def _class(kind: str, name: str) -> type[Part]:
    if kind == _NOT_RESTORABLE:
        raise _NotRestorableError
    cls = CLASSES.get(kind) or getattr(kernels, kind, None)
    if isinstance(cls, type) and issubclass(cls, Part):
        return cls
    if "." in kind:  # a class of somebody's own, whose module has not been imported
        raise _NotRestorableError
    public = [each for each in kernels.__all__ if isinstance(getattr(kernels, each), type)]
    one_of(kind, f"kernel or metric {name}.kind", public)
    raise ValueError(f"{name}.kind must be a kernel or a metric, found {kind!r}")


def _restore(plain: Any, name: str) -> Any:
    if isinstance(plain, list):
        return tuple(_restore(item, f"{name}[{i}]") for i, item in enumerate(cast("list[Any]", plain)))
    if not isinstance(plain, dict):
        return plain
    members = mapping(plain, name)
    if "kind" not in members:
        raise ValueError(f"{name}.kind is missing")
    cls = _class(text(members["kind"], f"{name}.kind"), name)
    if is_dataclass(cls):
        # A length scale that is missing is not the default one: `kernel_to_dict` writes all of them.
        Schema(dict.fromkeys(("kind", *field_names(cls)), as_it_is))(members, name)
    given = {key: value for key, value in members.items() if key != "kind"}
    values = {key: checked(_restore, value, f"{name}.{key}") for key, value in given.items()}
    try:
        return cls(**values)
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{name} is not a {members['kind']}: {error}") from error
