"""From collections of Dask's to predictions and cases in partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import dask.array
import numpy as np

from wellcal._arrays.checks import described
from wellcal._arrays.namespaces import attribute, taker_of
from wellcal.dask.partitioned import Cases, Partitioned, Task, cases_of, on
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.adapters.registry import converted
from wellcal.predictions.base import check_truth_first
from wellcal.predictions.column_roles import from_columns, only_role, resolve


@dataclass(frozen=True)
class Unmade:
    """Predictions of a partition that are yet to be made: families refuse to be empty, partitions do not.

    Attributes
    ----------
    make
        Makes a batch of the values.
    values
        Arrays or columns of the partition.
    size
        Number of cases.
    """

    make: Callable[..., Predictions]
    values: tuple[Any, ...]
    size: int

    def __len__(self) -> int:
        return self.size

    def batch(self) -> Predictions | None:
        """The predictions; None where there is no case."""
        return self.make(*self.values) if self.size else None


# -- predictions -------------------------------------------------------------------------------


def as_partitioned(pred: object, X: object = None, **roles: Any) -> Partitioned:
    """What :func:`wellcal.as_predictions` makes of collections of Dask's.

    Probabilities are an array ``(n,)`` or ``(n, C)``, numbers and vectors a tuple of arrays, and columns of
    a data frame have a role.
    """
    if X is not None:
        raise TypeError(
            "a model predicts partitions one by one: give what ddf.map_partitions or da.map_blocks of its "
            "predict method returns, or compute() the cases X"
        )
    if isinstance(pred, Partitioned):
        if roles:
            raise TypeError(f"predictions have no role ({next(iter(roles))}=): roles are for data frames")
        return pred
    if roles:
        return _of_frame(pred, roles)
    if isinstance(pred, tuple):
        return _of_arrays(_made_of_tuple, cast("tuple[Any, ...]", pred))
    if is_array(pred):
        return _of_arrays(converted, (pred,))
    if isinstance(pred, Predictions):
        raise TypeError(
            "pred is in memory and y is in partitions; give the parameters of pred as arrays of Dask's "
            "(dask.array.from_array) to wellcal.dask.from_arrays, or compute() y"
        )
    raise TypeError(
        f"pred is {described(pred)}, which is not understood in partitions; give an array of probabilities, "
        'a tuple (mu, sigma) of arrays, wc.as_predictions(frame, normal=("mu", "sigma")), '
        "wellcal.dask.from_arrays(family, ...), or wellcal.dask.read_parquet(folder, ...)"
    )


def from_arrays(family: Callable[..., Predictions], *parameters: Any, **options: Any) -> Partitioned:
    """Predictions of any family, with parameters that are arrays of Dask's.

    Parameters
    ----------
    family
        A family, such as ``wc.StudentT``.
    parameters
        Its parameters, in the order of the constructor: arrays whose first axis is that of the cases, in the
        same partitions; numbers, which stand for all cases; or lists, such as the levels of quantiles.
    options
        Other arguments of the constructor, such as ``classes=["cat", "dog"]``.

    Examples
    --------
    >>> import dask.array as da, wellcal as wc
    >>> from_arrays(wc.StudentT, 4.0, da.zeros(6, chunks=3), da.ones(6, chunks=3))
    <Partitioned: 2 partitions, 6 cases>
    """
    # Partitions may have as many cases as draws, and a batch cannot tell which axis is which.
    known = {"axis": 1, **options} if family is Samples else options
    return _of_arrays(_Family(family, known), parameters)


@dataclass(frozen=True)
class _Family:
    family: Callable[..., Predictions]
    options: Mapping[str, Any]

    def __call__(self, *parameters: Any) -> Predictions:
        return self.family(*parameters, **self.options)


def _made_of_tuple(*values: Any) -> Predictions:
    return converted(values)


def _of_arrays(make: Callable[..., Predictions], values: tuple[Any, ...]) -> Partitioned:
    arrays = [value for value in values if is_array(value)]
    if not arrays:
        found = ", ".join(described(value) for value in values) or "none at all"
        remedy = (
            'take columns of a data frame by their names, wc.as_predictions(frame, normal=("mu", "sigma"))'
            if any(map(_is_frame, values))
            else "give arrays in memory to dask.array.from_array first, in the partitions of y"
        )
        raise TypeError(f"none of the parameters of pred is an array of Dask's, found {found}; {remedy}")
    _refuse_arrays_in_memory(values)
    sizes = _sizes(arrays[0])
    columns = [array_parts(a, sizes, len(array_parts(arrays[0], None, None, "pred"))) for a in arrays]
    places = iter(columns)
    by_value = [next(places) if is_array(value) else [value] * len(columns[0]) for value in values]
    return Partitioned(tuple(on(_unmade, make, *own) for own in zip(*by_value, strict=True)), sizes)


def _refuse_arrays_in_memory(values: tuple[Any, ...]) -> None:
    for value in values:
        if not is_array(value) and getattr(value, "ndim", 0) > 0:
            raise TypeError(
                "some parameters are in partitions and others are arrays in memory; give all as arrays of "
                "Dask's (dask.array.from_array); what all cases share is a number or a list"
            )


def _unmade(make: Callable[..., Predictions], *values: Any) -> Unmade:
    sizes = {len(value) for value in values if attribute(value, "ndim", 0) > 0}  # lists are for all cases
    if len(sizes) > 1:
        raise ValueError(f"parameters of a partition must have the same length, found {sorted(sizes)}")
    return Unmade(make, values, sizes.pop())


def _of_frame(frame: object, roles: Mapping[str, Any]) -> Partitioned:
    if not _is_frame(frame) or cast("Any", frame).ndim != 2:
        raise TypeError(f"roles are for data frames, found {described(frame)}")
    given: Any = frame
    resolve([str(name) for name in given.columns], *only_role(roles))  # what is wrong is said at once
    # Unoptimised: Dask would join partitions by the columns that are read, and those of targets otherwise.
    parts = [on(_of_columns, part, dict(roles)) for part in given.to_delayed(optimize_graph=False)]
    return Partitioned(tuple(parts))


def _of_columns(frame: Any, roles: Mapping[str, Any]) -> Unmade:
    return Unmade(MadeOfColumns(roles), (frame,), len(frame))


@dataclass(frozen=True)
class MadeOfColumns:
    """Makes predictions of columns of a data frame."""

    roles: Mapping[str, Any]

    def __call__(self, frame: Any) -> Predictions:
        return from_columns(frame, self.roles)


# -- cases -------------------------------------------------------------------------------------


def as_cases(
    y: object, pred: object, weights: object = None, labels: Mapping[str, object] | None = None
) -> Cases:
    """Targets and predictions in the same partitions, as a user gives them; labels have names for errors."""
    check_truth_first_in_partitions(y)
    predictions = as_partitioned(pred)
    count = len(predictions.parts)
    targets = column_parts(y, predictions.sizes, count, "y")
    w = None if weights is None else column_parts(weights, predictions.sizes, count, "weights")
    columns = {
        name: column_parts(column, predictions.sizes, count, name) for name, column in (labels or {}).items()
    }
    return cases_of(targets, predictions, w, columns)


def check_truth_first_in_partitions(y: object) -> None:
    """Reject predictions in the place of targets, and targets in memory."""
    if isinstance(y, Partitioned):
        raise TypeError(
            "y must be observed targets, found predictions; did you swap y and pred? the order is (y, pred), "
            "truth first"
        )
    if taker_of(y) is None and not isinstance(y, Parts):
        check_truth_first(y)
        raise TypeError(
            "y is in memory, and other arguments are in partitions; give y as an array of Dask's, too "
            "(dask.array.from_array(y, chunks=...))"
        )


@dataclass(frozen=True, eq=False)
class Parts:
    """Targets in partitions, as files have them; see :func:`wellcal.dask.read_parquet`."""

    parts: tuple[Task, ...]

    def __wellcal_function__(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """What functions of the package do with it."""
        from wellcal.dask.functions import __wellcal_function__

        return __wellcal_function__(name, arguments, options)

    def __repr__(self) -> str:
        return f"<targets: {len(self.parts)} partitions>"


def is_array(x: object) -> bool:
    """Whether an object is an array of Dask's."""
    return isinstance(x, cast("Any", dask.array).Array)


def _is_frame(x: object) -> bool:
    """Whether an object is a data frame of Dask's, or a column of one."""
    return not is_array(x) and hasattr(type(x), "npartitions") and hasattr(type(x), "to_delayed")


def column_parts(x: Any, sizes: tuple[int, ...] | None, count: int, name: str) -> Sequence[Task]:
    """What belongs to cases, in their partitions: an array, a column of a data frame, or what files have."""
    if isinstance(x, Parts):
        found = x.parts
    elif is_array(x):
        return array_parts(x, sizes, count, name)
    elif _is_frame(x) and x.ndim == 1:
        found = x.to_delayed(optimize_graph=False)
    else:
        raise TypeError(
            f"{name} must be an array of Dask's or a column of a data frame of Dask's, found {described(x)}"
        )
    return _checked_count(found, count, name)


def array_parts(
    x: Any, sizes: tuple[int, ...] | None, count: int | None, name: str = "pred"
) -> Sequence[Task]:
    """Partitions of an array along its first axis, in the sizes of others where these are known."""
    own = _sizes(x)
    if x.ndim == 0:
        raise ValueError(f"{name} must have a row for each case, found an array without axes")
    if x.ndim > 1 and any(len(chunks) > 1 for chunks in x.chunks[1:]):
        x = x.rechunk(dict.fromkeys(range(1, x.ndim), -1))
    if sizes is not None and own is not None and own != sizes:
        if sum(own) != sum(sizes):
            raise ValueError(
                f"{name} and predictions must have the same length, found {sum(own)} and {sum(sizes)}"
            )
        x = x.rechunk({0: sizes})
    found = x.to_delayed(optimize_graph=True).reshape(-1).tolist()
    return found if count is None else _checked_count(found, count, name)


def _checked_count(parts: Sequence[Task], count: int, name: str) -> Sequence[Task]:
    if len(parts) != count:
        raise ValueError(
            f"{name} is in {len(parts)} partitions and pred in {count}, of which the sizes are not known; "
            "take columns of one data frame, or compute_chunk_sizes() of both arrays"
        )
    return list(parts)


def _sizes(x: Any) -> tuple[int, ...] | None:
    """Rows of each partition of an array; None where Dask does not know them."""
    chunks = x.chunks[0] if x.ndim else ()
    return None if any(np.isnan(size) for size in chunks) else tuple(int(size) for size in chunks)
