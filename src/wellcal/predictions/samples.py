"""Predictions known through samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import InitVar
from typing import Any, ClassVar, cast

import numpy as np

from wellcal._arrays.checks import check_ndim, described, one_of, real_array
from wellcal._arrays.domains import simplex
from wellcal._arrays.namespaces import Array, NDArray, host_copy, is_array, namespace, to_numpy
from wellcal._arrays.parameters import common_library_of
from wellcal._arrays.row_errors import Row, RowError, RowTypeError, retell
from wellcal._arrays.special import draw_index
from wellcal.predictions.atoms import Atoms
from wellcal.predictions.base import check_cases, nonempty
from wellcal.predictions.capabilities import CAPABILITIES
from wellcal.predictions.draw_axes import draws_second, looks_transposed, named_draws
from wellcal.predictions.fields import family, parameter

USUAL = ("draw_*", "draws_*", "sample_*", "samples_*", "draws", "samples")
"""Names that columns of draws usually have."""


@family
class Samples(Atoms):
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
            axis = named_draws(self.values) or (1 if self.kind == "atoms" else None)
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
        """What targets are: "objects" or "real"."""
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
        """Why these predictions lack a method: objects can only be sampled, and vectors have no quantiles."""
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
