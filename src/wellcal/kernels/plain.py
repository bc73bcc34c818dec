"""Kernels as plain values, for JSON and back."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, cast

import numpy as np

from wellcal import kernels
from wellcal._arrays.checks import one_of
from wellcal._arrays.namespaces import is_array, to_numpy
from wellcal._arrays.schema import Schema, as_it_is, checked, mapping, short, text
from wellcal.kernels.base import Kernel
from wellcal.kernels.parts import CLASSES, Part, field_names, name_of, own_values

_NOT_RESTORABLE = "not restorable"
_MADE_OF_PARTS = {
    "Kernel": "a kernel",
    "TargetKernel": "a kernel",
    "Metric": "a metric",
    "tuple[Kernel, ...]": "a list of kernels",
}
"""Fields of these types hold kernels and metrics."""


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
    return {"kind": _NOT_RESTORABLE, "text": repr(part)}


def kernel_from_dict(plain: Any, name: str = "kernel") -> Kernel | None:
    """The kernel again, or None where it holds a function or is of a class that has not been imported.

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
    """The kernel of a stored result, or `given`, which has to be the same, where it holds a function."""
    if plain is None:
        return None
    found = kernel_from_dict(plain, name)
    if found is None and given is not None and repr(given) != text:
        raise ValueError(f"{name} must be {text}, found {given!r}")
    return given if found is None else found


class _NotRestorableError(Exception):
    pass


def _kind(cls: type[Part]) -> str:
    """The name of a class within the public names of the room, or everywhere."""
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
    for field in fields(cls) if is_dataclass(cls) else ():
        if field.name in values and str(field.type) in _MADE_OF_PARTS:
            _check_parts(values[field.name], f"{name}.{field.name}", str(field.type))
    try:
        return cls(**values)
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{name} is not a {members['kind']}: {error}") from error


def _check_parts(value: Any, name: str, wanted: str) -> None:
    """Constructors take what they are given for a kernel or a metric."""
    several = isinstance(value, tuple)
    items = list(cast("tuple[Any, ...]", value)) if several else [value]
    fits = several == wanted.startswith("tuple") and bool(items)
    fits = fits and all(isinstance(item, Part) for item in items)
    if not fits:
        raise ValueError(f"{name} must be {_MADE_OF_PARTS[wanted]}, found {short(items)}")
