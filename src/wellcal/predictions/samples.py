"""Predictions by samples."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import InitVar
from typing import Any, ClassVar, cast

import numpy as np

from wellcal._arrays.checks import check_ndim, common_library_of, described, one_of, plain_array, real_array
from wellcal._arrays.domains import simplex
from wellcal._arrays.namespaces import Array, NDArray, attribute, host_copy, is_array, namespace, to_numpy
from wellcal._arrays.row_errors import Row, RowError, RowTypeError, retell
from wellcal._arrays.special import draw_index
from wellcal.predictions.base import CAPABILITIES, check_cases, nonempty, shape_of
from wellcal.predictions.discrete import FiniteFamily
from wellcal.predictions.fields import family, parameter

USUAL = ("draw_*", "draws_*", "sample_*", "samples_*", "draws", "samples")
"""Names that columns of draws usually have."""


@family
class Samples(FiniteFamily):
    """Predictions given by S values each.

    Parameters
    ----------
    values
        ``(n, S)`` for scalar targets, ``(n, S, d)`` for vectors, or n rows of S objects of any type (an
        array of dtype object, or nested lists) for use with a callable kernel.
    weights
        Weights of the values, ``(n, S)`` or ``(S,)``: non-negative, summing to one within 1e-6 in double
        precision and 1e-3 below; only with ``kind="atoms"``. Rows of different sizes are padded with any
        finite value of weight zero.
    kind
        ``"draws"``: the values are independent, equally weighted draws from the prediction.
        ``"atoms"``: the values with their weights are the prediction.
    axis
        Which axis of `values` holds the samples, or which ones: 1 for ``(n, S)`` and ``(n, S, d)``, 0 for
        ``(S, n)``, ``(0, 1)`` for ``(chain, draw, n)``; names of dimensions for an array of xarray. None is
        the dimensions that xarray calls chain, draw or sample, and else 1, unless the first two axes of
        draws have one length, which is an error: both would fit.

    Notes
    -----
    Moments, distribution function and quantiles are those of the weighted values, for draws too; the
    variance divides by S, not S - 1. There is no `log_prob`.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Samples(np.array([[1.0, 2.0, 3.0, 4.0]]))
    >>> pred.mean(), pred.quantile(0.5)
    (array([2.5]), array([2.]))
    >>> len(Samples(np.zeros((4, 250, 30)), axis=(0, 1)))  # 4 chains, 250 draws, 30 cases
    30
    >>> ragged = Samples([[1.0, 2.0], [5.0, 0.0]], weights=[[0.5, 0.5], [1.0, 0.0]], kind="atoms")
    >>> ragged.mean()
    array([1.5, 5. ])
    """

    values: Array = parameter(ndim=2, usual=USUAL)
    weights: Array = parameter(simplex, ndim=2, default=None)
    kind: str = "draws"  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
    axis: InitVar[Any] = None

    continuous: ClassVar[bool] = False

    def arrange(self, *how: Any) -> None:
        """Bring the draws to the second axis."""
        one_of(self.kind, "kind", ("draws", "atoms"))
        axis = how[0] if how else 1  # nothing is said where a stored batch is read
        if axis is None:
            # Atoms are a list that somebody made for each prediction; draws are what a model returned.
            axis = _named_draws(self.values) or (1 if self.kind == "atoms" else None)
        self.store(values=draws_second(self.values, axis))

    def __post_init__(self, axis: Any = None) -> None:
        if self.weights is not None and self.kind == "draws":
            raise ValueError('weights need kind="atoms": draws from the prediction are equally weighted')
        values = _values(self.values, common_library_of(values=self.values, weights=self.weights))
        if values.shape[1] == 0:
            raise ValueError(f"values has no samples, found shape {tuple(values.shape)}")
        self.store(values=values)
        nonempty(self)
        if self.weights is not None:
            n, size = (int(k) for k in values.shape[:2])
            like = None if self.holds_objects else values
            self.store(weights=weight_rows(self.weights, n, size, like))

    @property
    def holds_objects(self) -> bool:
        """True if the values are objects, which only a callable kernel can compare."""
        return str(self.values.dtype) == "object"

    @property
    def target_kind(self) -> str:
        """Name of the domain of targets: "objects" or "real"."""
        return "objects" if self.holds_objects else super().target_kind

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one target: () or ``(d,)``."""
        return tuple(int(k) for k in self.values.shape[2:])

    def check_targets(self, y: object, name: str = "y") -> Array:
        """Targets as a floating array ``(n,)`` or ``(n, d)``, or as an array ``(n,)`` of objects."""
        if not self.holds_objects:
            try:
                return super().check_targets(y, name)
            except ValueError as error:
                if not (hint := looks_transposed(self.values, y)):
                    raise
                retell(error, more=hint)
        y = self.align(y, name)
        if isinstance(y, (str, bytes)) or not isinstance(y, Iterable):
            raise TypeError(f"{name} must be one object for each prediction, found {type(y).__name__}")
        items: list[Any] = list(cast("Iterable[Any]", y))
        check_cases(len(items), name, self)
        return _as_objects([[item] for item in items])[:, 0]

    def atoms(self) -> tuple[Array, Array]:
        """Return the values and their weights."""
        return self.values, self.atom_weights()

    def atom_weights(self) -> Array:
        """Weights of the values, ``(n, S)``: ``1 / S`` where none were given."""
        if self.weights is not None:
            return self.weights
        n, size = self.values.shape[:2]
        if self.holds_objects:
            return np.full((n, size), 1.0 / size)
        flat = self.values if self.values.ndim == 2 else self.values[:, :, 0]
        return self.xp.full_like(flat, 1.0 / size)

    def missing(self, what: str) -> str | None:
        """Return why these predictions lack a method: objects can only be sampled."""
        one_of(what, "method of predictions", CAPABILITIES)
        if self.holds_objects and what != "sample":
            return f"Samples of objects have no {what.replace('_', ' ')}"
        return super().missing(what)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        values = to_numpy(self.values)
        if self.weights is None:
            index = rng.integers(values.shape[1], size=(size, len(self)))
        else:
            index = draw_index(to_numpy(self.weights), rng, size)
        return values[np.arange(len(self)), index]


def _values(values: Any, like: Array | None) -> Array:
    """Return an array of numbers, or one of objects ``(n, S)``."""
    if is_array(values):
        if namespace(values) is namespace() and values.dtype.kind in "OUS":
            check_ndim(values, "values", (2,))
            return values.astype(object)
        return real_array(values, "values", ndim=(2, 3), like=like)
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, dict, set, frozenset)):
        kind = cast("Any", values).__class__.__name__
        raise TypeError(f"values must be an array or rows of samples, found {kind}")
    values = cast("Any", values)
    try:
        numeric = np.asarray(values).dtype.kind not in "OUS"
    except Exception:
        numeric = False  # rows of different lengths, or objects, which are sequences or fail when asked
    return real_array(values, "values", ndim=(2, 3), like=like) if numeric else _object_table(values)


def _items(x: Any, row: int | None = None) -> list[Any]:
    try:
        return list(x)
    except Exception as error:
        problem = f"values cannot be read, found {type(x).__name__}: {error}"
        if row is None:
            raise TypeError(problem) from error
        raise RowTypeError(Row(row), f" of {problem}", argument="values") from error


def _object_table(values: Any) -> NDArray:
    rows: list[list[Any]] = []
    for i, row in enumerate(_items(values)):
        if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
            raise RowTypeError(
                f"values must hold a row of samples for each prediction, found {described(row)} as ",
                Row(i),
                argument="values",
                remedy="one sample each is [[sample], ...]",
            )
        rows.append(_items(row, i))
        if len(rows[i]) != len(rows[0]):
            raise RowError(
                "values is ragged: ",
                Row(0),
                f" has {len(rows[0])} samples and ",
                Row(i),
                f" has {len(rows[i])}",
                argument="values",
                remedy='pad the rows to one length and give the padding weight zero (weights=, kind="atoms")',
            )
    return _as_objects(rows)


def _as_objects(rows: list[list[Any]]) -> NDArray:
    """Return rows of objects, which may be sequences, as an array with an entry for each."""
    table = np.empty((len(rows), len(rows[0]) if rows else 0), dtype=object)
    for i, row in enumerate(rows):
        for j, item in enumerate(row):
            table[i, j] = item
    return table


def weight_rows(weights: Any, n: int, count: int, like: Array | None, what: str = "") -> Array:
    """Return weights ``(n, count)`` from given ones, which may be the same for all cases."""
    array = real_array(weights, "weights", ndim=(1, 2), like=like)
    if tuple(array.shape) not in ((count,), (n, count)):
        raise ValueError(
            f"weights must have shape ({count},) or ({n}, {count}){what}, found {tuple(array.shape)}"
        )
    seen = host_copy(array)
    simplex.check(seen if seen.ndim == 2 else seen[None, :], "weights")
    return namespace(array).broadcast_to(array, (n, count))


# -- axes of draws -----------------------------------------------------------------------------

_OTHERS = "axis=1 for values of shape (n, draws), axis=0 for (draws, n), axis=(0, 1) for (chain, draw, n)"


def _named_draws(values: Any) -> list[str] | None:
    """Return the dimensions of an array of xarray called chain, draw or sample; None without any."""
    xarray = sys.modules.get("xarray")
    if xarray is None or not isinstance(values, xarray.DataArray):
        return None
    return [name for name in values.dims if name in ("chain", "draw", "sample")] or None


def draws_second(values: Any, axis: Any) -> Any:
    """Return values as ``(n, S)`` or ``(n, S, d)`` from an array that has the draws along `axis`.

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
    if hasattr(values, "dims"):
        drawn, names = ([values.dims[k] for k in some] for some in (axes, rest))
        if len(drawn) > 1:
            values, drawn = values.stack({"all draws": drawn}), ["all draws"]
        return values.transpose(names[0], *drawn, *names[1:])
    if hasattr(values, "iloc"):
        return values.T  # its columns are the cases then, and name them
    moved = namespace(values).permute_dims(values, (rest[0], *axes, *rest[1:]))
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
    """Return a hint about targets that do not fit, if they would fit along another axis."""
    shape, wanted = tuple(values.shape), shape_of(targets)
    if not wanted:
        return ""
    if len(shape) == 3 and len(wanted) == 1 and wanted[0] == shape[2]:
        return f"transpose? values has shape {shape}: (chain, draw, n) is Samples(values, axis=(0, 1))"
    if shape[1] == wanted[0] != shape[0]:
        return f"transpose? values has shape {shape}: (draws, n) is Samples(values, axis=0)"
    return ""
