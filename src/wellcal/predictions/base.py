"""What all families share: a frozen batch of n distributions of one kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, ClassVar, Self, cast

import numpy as np

from wellcal._arrays.checks import check_nonempty, check_same_length, real_array
from wellcal._arrays.namespaces import (
    Array,
    Namespace,
    NDArray,
    asarray,
    from_numpy,
    is_array,
    is_traced,
    namespace,
    on_first_jax_array,
    take_rows,
    to_numpy,
)
from wellcal._arrays.ops import Ops, ops_for
from wellcal._arrays.parameters import device_of

FAMILIES: list[type[Predictions]] = []


def as_generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """A NumPy generator from a seed, a generator (shared, not copied) or None (fresh entropy)."""
    return np.random.default_rng(rng)


class Predictions:
    """A frozen batch of n predicted distributions of one family.

    Subclasses are frozen dataclasses. Those of their fields that are named in `array_fields` hold one
    entry per prediction along the first axis; the others are shared by the whole batch. Parameters
    may be arrays of any supported library, and results live where the parameters do. Fields named in
    `batch_fields` hold a tuple of batches of the same length.

    Methods that take targets (`log_prob`, `cdf`) or levels (`quantile`) accept a number, or an
    array whose batch axis has length n: ``(n,)`` or ``(..., n)`` for scalar targets, ``(n, d)`` or
    ``(..., n, d)`` for vectors.
    """

    array_fields: ClassVar[tuple[str, ...]] = ()
    batch_fields: ClassVar[tuple[str, ...]] = ()
    target_kind: ClassVar[str] = "real"
    """What targets are: families with the same word check them alike."""
    continuous: ClassVar[bool] = True
    """Whether `log_prob` is a density; otherwise it is a probability."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        FAMILIES.append(cls)
        if _jax_seen:
            _register_family(_jax_seen[0], cls)

    # -- batch behaviour ---------------------------------------------------------------------

    def __len__(self) -> int:
        return int(getattr(self, self.array_fields[0]).shape[0])

    def __getitem__(self, index: Any) -> Self:
        """Sub-batch by slice, integer array or boolean mask; an integer gives a batch of one."""
        n = len(self)
        if isinstance(index, (int, np.integer)):
            given = int(cast("int", index))
            position = given + n if given < 0 else given
            if not 0 <= position < n:
                raise IndexError(f"prediction {given} of a batch of {n}")
            index = slice(position, position + 1)
        elif not isinstance(index, slice):
            index = _checked_index(index, n)
        elif (step := cast("slice[Any, Any, Any]", index).step) is not None and step < 0:
            index = np.arange(n)[index]  # not every library can step backwards

        def rows(array: Array) -> Array:
            return take_rows(array, index)

        return self.map_arrays(rows)

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    def map_arrays(self, function: Any) -> Self:
        """The same batch with `function` applied to every array; values are not checked again."""
        changed = {
            name: function(getattr(self, name))
            for name in self.array_fields
            if getattr(self, name) is not None
        }
        for name in self.batch_fields:
            changed[name] = tuple(child.map_arrays(function) for child in getattr(self, name))
        return self.with_fields(**changed)

    def with_fields(self, **changed: Any) -> Self:
        clone = object.__new__(type(self))
        for field in fields(self):  # pyright: ignore[reportArgumentType]  # subclasses are dataclasses
            value = changed[field.name] if field.name in changed else getattr(self, field.name)
            object.__setattr__(clone, field.name, value)
        return clone

    def store(self, **values: Any) -> None:
        """Store checked parameters during construction of a frozen instance."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        shape = "" if self.event_shape == () else f", targets of shape {self.event_shape}"
        return f"<{type(self).__name__}: {len(self)} predictions{shape}>"

    # -- library ---------------------------------------------------------------------------

    @property
    def like(self) -> Array:
        """An array whose library and device results share."""
        return getattr(self, self.array_fields[0])

    @property
    def xp(self) -> Namespace:
        return namespace(self.like)

    @property
    def ops(self) -> Ops:
        return ops_for(self.xp)

    # -- targets -----------------------------------------------------------------------------

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one target: () for scalars, (d,) for vectors."""
        return ()

    def check_targets(self, y: object, name: str = "y") -> Array:
        """Targets in the form that computations use, or an error naming the first bad row.

        Real targets become a floating array ``(n,)`` or ``(n, d)`` beside the predictions.
        Families of discrete targets override this.
        """
        if is_array(y) and namespace(y) is not self.xp:
            if is_traced(y):
                namespace(y, self.like)  # an error: its values are not there yet to be carried over
            y = to_numpy(y)
        array = real_array(y, name, ndim=(1 + len(self.event_shape),), like=self.like)
        check_same_length(array.shape[0], name, len(self), "predictions")
        if tuple(array.shape[1:]) != self.event_shape:
            raise ValueError(
                f"{name} must have targets of shape {self.event_shape} as the predictions have, "
                f"found {tuple(array.shape[1:])}"
            )
        return array

    def sample(self, rng: int | np.random.Generator | None = None, size: int | None = None) -> Array:
        """Draw targets from the predictions.

        Parameters
        ----------
        rng
            Seed or generator; draws are made by NumPy and handed to the predictions' library.
        size
            Number of independent draws for each prediction.

        Returns
        -------
        array
            ``(n,) + event_shape``, or ``(size, n) + event_shape``.
        """
        if size is not None and size < 0:
            raise ValueError(f"size must not be negative, found {size}")
        drawn = self.draw(as_generator(rng), 1 if size is None else int(size))
        return self._out(drawn if size is not None else drawn[0])

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        """NumPy draws of shape ``(size, n) + event_shape``."""
        raise TypeError(f"{type(self).__name__} cannot be sampled")

    def _out(self, drawn: NDArray) -> Array:
        like = self.like
        if drawn.dtype.kind not in "biuf":
            return drawn  # only NumPy holds strings and objects
        if drawn.dtype.kind == "f":
            return asarray(drawn, xp=namespace(like), device=device_of(like), dtype=like.dtype)
        return from_numpy(drawn, like)

    # -- spread ------------------------------------------------------------------------------

    def interquartile_range(self) -> Array:
        """Distance between the quartiles: ``(n,)``, or ``(n, d)`` by coordinate for vectors.

        Not differentiated in general: length scales, which are made from it, are constants.
        """
        batch: Any = self
        if self.event_shape != () or not hasattr(batch, "quantile"):
            raise TypeError(f"{type(self).__name__} has no interquartile range")
        return batch.quantile(0.75) - batch.quantile(0.25)

    # -- arguments ---------------------------------------------------------------------------

    def argument(self, x: object, name: str, event_ndim: int | None = None) -> Array:
        """Argument of `log_prob`, `cdf` or `quantile`: a number, or an array that ends in the batch shape."""
        like = self.like
        xp = namespace(like)
        # A number or list has no precision of its own: it takes that of the parameters.
        array = asarray(x, xp=xp, device=device_of(like), dtype=None if is_array(x) else like.dtype)
        if not xp.isdtype(array.dtype, "real floating"):
            array = xp.astype(array, like.dtype)
        k = len(self.event_shape) if event_ndim is None else event_ndim
        wanted = (len(self), *self.event_shape[:k])
        if array.ndim == k == 0:
            return array
        if tuple(array.shape[array.ndim - 1 - k :]) != wanted:
            what = "be a number or end" if k == 0 else "end"
            raise ValueError(f"{name} must {what} in shape {wanted}, found shape {tuple(array.shape)}")
        return array


def _checked_index(index: Any, n: int) -> Array:
    """A list, integer array or mask as an array without negative entries."""
    index = index if is_array(index) else np.asarray(index, dtype=None if len(index) else int)
    if index.ndim != 1:
        raise IndexError("predictions are indexed along one axis: give a slice, a mask or a list")
    xp = namespace(index)
    if xp.isdtype(index.dtype, "bool"):
        check_same_length(index.shape[0], "mask", n, "predictions")
        return index
    if not xp.isdtype(index.dtype, "integral"):
        raise IndexError(f"predictions are indexed by whole numbers or a mask, found dtype {index.dtype}")
    index = xp.where(index < 0, index + n, index)
    # Not every library notices: JAX returns the last row for an index beyond it.
    if not is_traced(index) and not bool(xp.all((index >= 0) & (index < n))):
        raise IndexError(f"an index is outside of a batch of {n} predictions")
    return index


_jax_seen: list[Any] = []


def _register_with_jax() -> None:
    """Make every family a pytree, so that batches pass through ``jax.jit``, ``grad`` and ``vmap``.

    Families that are defined later register themselves.
    """
    import jax

    _jax_seen.append(jax)
    for family in FAMILIES:
        _register_family(jax, family)


def _register_family(jax: Any, family: Any) -> None:
    # The fields are looked up when they are needed: a class is registered before its decorator has run.
    def names() -> list[str]:
        return [field.name for field in fields(family)]

    def flatten(batch: Predictions) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        dynamic = family.array_fields + family.batch_fields
        children = tuple(getattr(batch, name) for name in names() if name in dynamic)
        static = tuple(_Static(getattr(batch, name)) for name in names() if name not in dynamic)
        return children, static

    def unflatten(static: tuple[Any, ...], children: tuple[Any, ...]) -> Predictions:
        batch = object.__new__(family)
        dynamic = family.array_fields + family.batch_fields
        rest, leaves = iter(static), iter(children)
        for name in names():
            object.__setattr__(batch, name, next(leaves) if name in dynamic else next(rest).value)
        return batch

    jax.tree_util.register_pytree_node(family, flatten, unflatten)


class _Static:
    """A shared parameter as JAX's static data: compared by value, also where it is a NumPy array."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and bool(
            np.array_equal(np.asarray(self.value), np.asarray(other.value))
        )

    def __hash__(self) -> int:
        return hash(str(self.value))


on_first_jax_array(_register_with_jax)


def nonempty(batch: Predictions) -> None:
    """Reject a batch without predictions."""
    check_nonempty(len(batch), type(batch).__name__)
