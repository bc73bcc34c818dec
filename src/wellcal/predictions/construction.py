"""Construction of a batch: one case or many, rows in one order, arrays copied and then read-only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeAlias, cast

import numpy as np

from wellcal._arrays.checks import is_number, plain_array
from wellcal._arrays.copies import freeze, own_copy
from wellcal._arrays.domains import simplex
from wellcal._arrays.namespaces import attribute, is_array, is_traced, to_numpy
from wellcal.columns.labels import common_labels
from wellcal.predictions.class_names import column_names
from wellcal.predictions.fields import Parameter

_NEAR_ONE = 1e-3  # tolerance of a sum of probabilities; whether they are rounded too much is checked later

Coordinates: TypeAlias = tuple[str, tuple[Any, ...]]
"""A parameter that was a data frame, and the names of its columns."""


def frozen_init(post_init: Callable[..., None]) -> Callable[..., None]:
    """Wrap the ``__post_init__`` of a family: arrange and copy parameters before it, freeze them after it.

    Init-only arguments (such as `axis`) are passed to `arrange`.
    """

    @wraps(post_init)
    def init(self: Any, *options: Any) -> None:
        if "case_index" in vars(self):  # called by the one of a derived class
            post_init(self, *options)
            return
        _make_batch_of_one(self)
        self.arrange(*options)
        _copy_parameters(self)
        post_init(self, *options)
        for name in self.__dataclass_fields__:
            freeze(getattr(self, name))

    return init


def _make_batch_of_one(batch: Any) -> None:
    """Make rows of the parameters of a single case: numbers, or one vector each.

    They have one dimension less than those of several cases.
    """
    if batch.batch_fields:
        return
    rows: dict[str, Any] = {}
    for name, spec in batch.parameter_fields.items():
        x = getattr(batch, name)
        if spec.computed or x is None:
            continue
        rank = _rank(x)
        if rank == spec.ndim - 1 and not (spec.domain is simplex and not _sums_to_one(x)):
            rows[name] = x[None] if is_array(x) else [x]
        elif rank != 0:
            return
    batch.store(**rows)


def _rank(x: Any) -> int:
    """Return the number of dimensions; -1 for what is not numbers."""
    if is_number(x):
        return 0
    if isinstance(x, (list, tuple)):
        try:
            array = np.asarray(cast("Any", x))
        except Exception:  # ragged, or not readable: the checks that follow say so
            return -1
        return array.ndim if array.dtype.kind in "biuf" else -1
    shape = attribute(x, "shape")
    return len(cast("Any", shape)) if isinstance(shape, tuple) else -1


def _sums_to_one(x: Any) -> bool:
    try:
        return is_traced(x) or abs(float(np.sum(to_numpy(plain_array(x, "probs")))) - 1.0) <= _NEAR_ONE
    except (TypeError, ValueError):
        return False


def _copy_parameters(batch: Any) -> None:
    """Copy what was given, rows with labels in one order; during construction only."""
    given = {name: getattr(batch, name) for name in batch.batch_fields}
    specs = {name: spec for name, spec in batch.parameter_fields.items() if not spec.computed}
    given.update((name, getattr(batch, name)) for name in specs)
    labels: Any = None
    coordinates: Coordinates | None = None
    if not all(type(x) is np.ndarray for x in given.values()):
        labelled: dict[str, Any] = {}
        for key, name, x in _parts(batch, given):
            spec = specs.get(name, Parameter())
            if name in batch.batch_fields or (spec.ndim > 1 and spec.named is None):
                both = spec.ndim > 2  # one matrix for all predictions, with coordinates both ways
                coordinates = coordinates_in_order(coordinates, x, spec.called or key, of_both=both)
            if name in batch.batch_fields or spec.has_rows(x):
                labelled[key] = x
            if name in specs and is_array(x):
                given[name] = plain_array(x, spec.called or name)
        labels, labelled = common_labels(labelled)
        if labels is not None:
            parts = list(_parts(batch, given))
            given.update(dict.fromkeys(batch.batch_fields, ()))
            for key, name, x in parts:
                one = labelled.get(key, x)
                given[name] = (*given[name], one) if name in batch.batch_fields else one
    batch.store(case_index=labels, case_columns=coordinates)
    batch.store(**{name: x if name in batch.batch_fields else own_copy(x) for name, x in given.items()})


def _parts(batch: Any, given: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield a name for errors, the field and the value of each parameter, and of each batch in a list."""
    for name, x in given.items():
        if name in batch.batch_fields and isinstance(x, (list, tuple)):
            yield from ((f"{name}[{k}]", name, part) for k, part in enumerate(cast("list[Any]", x)))
        else:
            yield name, name, x


def coordinates_in_order(
    known: Coordinates | None, x: Any, name: str, *, of_both: bool = False
) -> Coordinates | None:
    """Return the names of coordinates, by default those of `x`; raise if `x` has them in another order.

    Data frames with other names, and arrays, are taken by position. `of_both` says that rows stand for
    coordinates, too, as those of a covariance.

    Examples
    --------
    >>> import pandas as pd
    >>> known = coordinates_in_order(None, pd.DataFrame({"u": [0.1], "v": [2.0]}), "loc")
    >>> coordinates_in_order(known, pd.DataFrame({"v": [2.0], "u": [0.1]}), "y")
    Traceback (most recent call last):
    ValueError: y and loc have the same columns in different orders: 'v' comes first in y and 'u' in loc; ...
    """
    own = x.case_columns if hasattr(cast("Any", type(x)), "case_columns") else (name, column_names(x))
    if own is None or own[1] is None:
        return known
    names = tuple(own[1])
    if known is None:
        return own[0], names
    if names != known[1] and Counter(names) == Counter(known[1]):
        first, other = next((a, b) for a, b in zip(names, known[1], strict=True) if a != b)
        wanted = list(known[1])
        raise ValueError(
            f"{name} and {known[0]} have the same columns in different orders: {first!r} "
            f"{'comes first' if first == names[0] else 'stands'} in {name} and {other!r} in {known[0]}; "
            "bring them into one order, as in "
            + (f"{name}.loc[{wanted!r}, {wanted!r}]" if of_both else f"{name}[{wanted!r}]")
        )
    return known
