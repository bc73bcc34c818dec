"""Which axes of an array hold draws: values as models return them, brought into the shape (n, S)."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import described, plain_array
from wellcal._arrays.namespaces import Array, attribute, namespace

_OTHERS = "axis=1 for values of shape (n, draws), axis=0 for (draws, n), axis=(0, 1) for (chain, draw, n)"


def named_draws(values: Any) -> list[str] | None:
    """Return the dimensions of an array of xarray that ArviZ calls chain, draw or sample; None without any.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> named_draws(xr.DataArray(np.zeros((4, 100, 7)), dims=("chain", "draw", "household")))
    ['chain', 'draw']
    """
    dimensions: Any = getattr(values, "dims", ())
    return [name for name in dimensions if name in ("chain", "draw", "sample")] or None


def draws_second(values: Any, axis: Any) -> Any:
    """`values` as ``(n, S)`` or ``(n, S, d)``, from an array whose `axis`, or several, holds the draws.

    Parameters
    ----------
    values
        An array, a data frame, or an array of xarray, whose axes may be given by name.
    axis
        Where the draws are. None is 1, and an error for an array whose first two axes are of one length.

    Examples
    --------
    >>> import numpy as np
    >>> draws_second(np.zeros((4, 100, 7)), (0, 1)).shape
    (7, 400)
    """
    shape = attribute(values, "shape")
    if axis is None:
        if isinstance(shape, tuple) and len(cast("Any", shape)) > 1 and shape[0] == shape[1] > 1:
            raise ValueError(
                f"values has shape {shape}, and both of its first two axes could be that of the draws: say "
                f"which, {_OTHERS}"
            )
        return values
    if type(axis) is int and axis == 1:
        return values
    if not isinstance(shape, tuple):
        values = plain_array(values, "values")
    axes = _checked(axis, values)
    if axes == [1]:
        return values
    rest = [k for k in range(values.ndim) if k not in axes]
    order = [rest[0], *axes, *rest[1:]]
    if hasattr(values, "dims"):
        names = [values.dims[k] for k in order]
        moved = values.transpose(*names)
        if len(axes) == 1:
            return moved
        drawn = names[1 : 1 + len(axes)]
        return moved.stack({"all draws": drawn}).transpose(names[0], "all draws", *names[1 + len(axes) :])
    if hasattr(values, "iloc"):
        return values.T  # its columns are the cases then, and name them
    moved = namespace(values).permute_dims(values, tuple(order))
    n, *others = moved.shape
    return namespace(moved).reshape(moved, (n, -1, *others[len(axes) :]))


def _checked(axis: Any, values: Any) -> list[int]:
    given = list(cast("Sequence[Any]", axis)) if isinstance(axis, (tuple, list)) else [axis]
    names: list[Any] = list(getattr(values, "dims", ()))
    found: list[Any] = [names.index(a) if isinstance(a, str) and a in names else a for a in given]
    ndim = int(values.ndim)
    whole = all(isinstance(a, (int, np.integer)) and not isinstance(a, bool) for a in found)
    places = [int(a) % ndim for a in found] if whole and all(-ndim <= a < ndim for a in found) else []
    if not places or len(set(places)) < len(places) or not 1 <= ndim - len(places) <= 2:
        raise ValueError(
            f"axis must say which axes of values, of shape {tuple(values.shape)}, hold the draws, and leave "
            f"one for the cases, found {described(axis)}; give {_OTHERS}"
        )
    return places


def looks_transposed(values: Array, targets: Any) -> str:
    """A question for an error about targets that do not fit, where they would fit along another axis."""
    shape, wanted = tuple(values.shape), _shape(targets)
    if not wanted:
        return ""
    if len(shape) == 3 and len(wanted) == 1 and wanted[0] == shape[2]:
        return f"transpose? values has shape {shape}: (chain, draw, n) is Samples(values, axis=(0, 1))"
    if shape[1] == wanted[0] != shape[0]:
        return f"transpose? values has shape {shape}: (draws, n) is Samples(values, axis=0)"
    return ""


def _shape(x: Any) -> tuple[int, ...]:
    found = attribute(x, "shape")
    if found is None:
        return (len(x),) if isinstance(x, Sized) else ()
    return tuple(int(k) for k in cast("Any", found)) if isinstance(found, tuple) else ()
