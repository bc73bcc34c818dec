"""Parameters of a family, declared once: storage, checks, slicing and JAX's pytrees follow from fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from typing import Any, Literal, TypeVar, cast, dataclass_transform

from wellcal._arrays.checks import (
    check_same_length,
    check_same_shape,
    common_library_of,
    is_number,
    real_array,
    repeated,
    same_dtype,
)
from wellcal._arrays.domains import Domain, real
from wellcal._arrays.namespaces import Array, attribute, host_copy

KEY = "wellcal parameter"
"""Key of a parameter in the metadata of its field."""


@dataclass(frozen=True)
class Parameter:
    """Declaration of a field that has one entry for each prediction; see :func:`parameter`."""

    domain: Domain = real
    ndim: int = 1
    unit: str | None = None
    columns: int = 1
    if_fewer: str = ""
    remedy: str = ""
    called: str | None = None
    own_length: bool = False
    optional: bool = False
    computed: bool = False
    usual: tuple[str, ...] = ()
    named: Literal["classes", "levels"] | None = None

    def has_rows(self, x: object) -> bool:
        """True if `x` has a row for each prediction, rather than one that all of them share."""
        shape = attribute(x, "shape")
        return isinstance(shape, tuple) and len(cast("tuple[Any, ...]", shape)) >= self.ndim

    def check(self, array: Array, name: str) -> None:
        """Reject vectors that are too short, and values outside of the domain."""
        if array.ndim > 1 and array.shape[1] < self.columns:
            wanted = "has no columns" if self.columns == 1 else f"must have at least {self.columns} columns"
            remedy = f"; {self.if_fewer}" if self.if_fewer else ""
            raise ValueError(f"{name} {wanted}, found shape {tuple(array.shape)}{remedy}")
        self.domain.check(array, name, self.remedy)


def parameter(
    domain: Domain = real,
    *,
    ndim: int = 1,
    unit: str | None = None,
    columns: int = 1,
    if_fewer: str = "",
    remedy: str = "",
    called: str | None = None,
    own_length: bool = False,
    usual: tuple[str, ...] = (),
    named: Literal["classes", "levels"] | None = None,
    default: Any = MISSING,
) -> Any:
    """A field of a family with one entry for each prediction.

    It is checked when a batch is made: a floating array without NaN or infinity, of one array library and
    precision with the other parameters, and of their shape. A plain number is repeated in all rows.

    Parameters
    ----------
    domain
        Where its values come from: `real`, `positive`, `nonnegative`, `unit_interval`, `simplex` (rows that
        are probability vectors), or a :class:`Domain` of your own.
    ndim
        1 for a number in each prediction, ``(n,)``; 2 for a vector, ``(n, d)``; 3 for a matrix.
    unit
        Name of the positive parameter that says how far is far for this one: the scale of a location.
        Numerical derivatives take their steps in it.
    columns, if_fewer
        Least length of vectors, and what to do where one is shorter.
    remedy
        What to do about values outside of the domain; empty takes what the domain says.
    called
        Its name in errors, where that differs from the field's.
    own_length
        Whether its vectors may be of another length than those of the other parameters.
    usual
        Names that columns of data frames with this parameter usually have, in small letters, by which
        :func:`wellcal.guess_roles` finds it; globs such as ``p_*`` for vectors.
    named
        The field of the family that the names of a vector's columns are read into: names of classes, or
        levels.
    default
        As in `dataclasses.field`; None makes the parameter optional.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.extend import family, parameter, positive
    >>> @family
    ... class Triangle(wc.Predictions):
    ...     centre: np.ndarray = parameter(unit="width")
    ...     width: np.ndarray = parameter(positive)
    >>> Triangle(np.zeros(3), 2.0).width
    array([2., 2., 2.])
    >>> Triangle(np.zeros(2), [1.0, -1.0])
    Traceback (most recent call last):
    wellcal.RowError: width must be positive in row 1: found -1.; check the model's output
    """
    optional = default is None
    spec = Parameter(
        domain, ndim, unit, columns, if_fewer, remedy, called, own_length, optional, usual=usual, named=named
    )
    return field(default=default, metadata={KEY: spec})


def derived(*, init: Literal[False] = False) -> Any:
    """A field that is computed from parameters in ``__post_init__``, with one entry for each prediction.

    Nobody gives it to the constructor: `init` says so to checkers of types, and is never anything else.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.extend import positive
    >>> @family
    ... class Precise(wc.Predictions):
    ...     precision: np.ndarray = parameter(positive)
    ...     scale: np.ndarray = derived()
    ...
    ...     def __post_init__(self):
    ...         super().__post_init__()
    ...         self.store(scale=self.precision**-0.5)
    >>> Precise([4.0, 25.0])[1:].scale
    array([0.2])
    """
    return field(init=init, default=None, metadata={KEY: Parameter(computed=True)})


Class = TypeVar("Class", bound=type)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(parameter, derived, field))
def family(cls: Class) -> Class:
    """Make `cls`, which derives from :class:`wellcal.Predictions`, a family, with its parameters as fields.

    The same as ``dataclass(frozen=True, repr=False, eq=False)``: batches do not change after they were
    made, and are compared by identity. :func:`parameter` has an example.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> @family
    ... class Certain(wc.Predictions):
    ...     value: np.ndarray = parameter()
    ...
    ...     def draw(self, rng, size):
    ...         return np.broadcast_to(self.value, (size, len(self)))
    >>> Certain([1.0, 2.0]).sample(rng=0)
    array([1., 2.])
    """
    return cast("Class", dataclass(frozen=True, repr=False, eq=False)(cls))


def checked_parameters(
    given: Mapping[str, object], specs: Mapping[str, Parameter], *, like: Array | None = None
) -> dict[str, Array]:
    """The parameters `given`, by name, as finite floating arrays of one length, library and dtype.

    A plain number is repeated to the shape of the others. Arrays of different shapes are an error, also where
    they could be broadcast: ``(n,)`` against ``(n, 1)`` would silently make ``(n, n)``. The library is that
    of `like`, if there is one.
    """
    called = {name: specs[name].called or name for name in given}
    like = common_library_of(**{called[name]: x for name, x in given.items()}) if like is None else like
    arrays = {
        name: real_array(x, called[name], ndim=(specs[name].ndim,), like=like)
        for name, x in given.items()
        if not is_number(x) or len(given) == 1
    }
    if not arrays:
        raise TypeError(
            f"{' and '.join(called.values())}: only numbers were given; at least one must be an array with "
            "one entry for each prediction"
        )
    first = next(iter(arrays))
    models: dict[int, str] = {}
    for name, array in arrays.items():
        model = name if specs[name].own_length else models.setdefault(array.ndim, name)
        check_same_shape(arrays[model], called[model], array, called[name])
        check_same_length(array.shape[0], called[name], arrays[first].shape[0], called[first])

    for name, x in given.items():
        if name not in arrays:
            model, ndim = arrays.get(models.get(specs[name].ndim, "")), specs[name].ndim
            if model is None and ndim > 1:
                raise ValueError(f"{called[name]} must be {ndim}-dimensional, found the number {x}")
            arrays[name] = repeated(x, called[name], first_of(arrays[first]) if model is None else model)
    found = dict(zip(given, same_dtype([arrays[name] for name in given]), strict=True))
    for name, array in found.items():
        specs[name].check(host_copy(array), called[name])
    return found


def first_of(array: Array) -> Array:
    """Return the first entry of each row, ``(n,)``."""
    return array[(slice(None), *(0,) * (array.ndim - 1))]
