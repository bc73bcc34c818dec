"""How a batch takes over its parameters: rows in one order, copied, and then read-only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeAlias, cast

import numpy as np

from wellcal._arrays.checks import plain_array
from wellcal._arrays.domains import simplex
from wellcal._arrays.namespaces import attribute, is_array, is_traced, to_numpy
from wellcal._arrays.ownership import freeze, own_copy, read_only
from wellcal._arrays.parameters import is_number
from wellcal.columns.labels import Labels, common_labels
from wellcal.predictions.class_names import column_names
from wellcal.predictions.fields import Parameter

_WITHIN = 1e-3  # of one, where probabilities may be rounded: what is wrong with them is said later


def keeping(post_init: Callable[..., None]) -> Callable[..., None]:
    """``__post_init__`` of a family that takes over its parameters: in order, copied, and then read-only.

    What says how parameters are to be read, and is not kept, goes to `arrange`, before anything else.
    """

    @wraps(post_init)
    def settled(self: Any, *how: Any) -> None:
        if "case_index" in vars(self):  # called by the one of a derived class
            post_init(self)
            return
        one_row(self)
        self.arrange(*how)
        take_parameters(self)
        post_init(self)
        for name in self.__dataclass_fields__:
            freeze(getattr(self, name))

    return settled


def one_row(batch: Any) -> None:
    """Make a batch of one from the parameters of a single case: numbers, or one row of each vector.

    That cannot be mistaken for several cases, whose parameters have one dimension more.

    Examples
    --------
    >>> import wellcal as wc
    >>> wc.Normal(0.3, 1.0), wc.Categorical([0.2, 0.8])
    (<Normal: 1 predictions>, <Categorical: 1 predictions>)
    """
    if batch.batch_fields:
        return
    rows: dict[str, Any] = {}
    for name, spec in batch.parameter_fields.items():
        x = getattr(batch, name)
        if spec.computed or x is None:
            continue
        rank = _rank(x)
        if rank == spec.ndim - 1 and not (spec.domain is simplex and _no_row(x)):
            rows[name] = x
        elif rank != 0:
            return
    for name, x in rows.items():
        object.__setattr__(batch, name, x[None] if is_array(x) else [x])


def _no_row(x: Any) -> bool:
    """Whether these are no probabilities of classes, but something else that is in one dimension."""
    if is_traced(x):
        return False
    try:
        return abs(float(np.sum(to_numpy(plain_array(x, "probs")))) - 1.0) > _WITHIN
    except (TypeError, ValueError):
        return True


def _rank(x: Any) -> int:
    """Number of dimensions, as far as the first entries of lists say it; -1 for what are no numbers."""
    if isinstance(x, (list, tuple)):
        entries = cast("list[Any]", x)
        within = _rank(entries[0]) if entries else 0
        numbers = within > 0 or (within == 0 and all(_rank(entry) == 0 for entry in entries))
        return 1 + within if numbers else -1
    shape = attribute(x, "shape")
    if isinstance(shape, tuple):
        return len(cast("tuple[Any, ...]", shape))
    return 0 if is_number(x) else -1


def take_parameters(batch: Any) -> None:
    """Copy what was given, rows of columns with an index in one order; during construction only."""
    given = {name: getattr(batch, name) for name in batch.batch_fields}
    plain = not given
    coordinates: Coordinates | None = None
    for name, x in given.items():
        for k, part in enumerate(cast("list[Any]", x) if isinstance(x, (list, tuple)) else [x]):
            coordinates = coordinates_in_order(coordinates, part, f"{name}[{k}]")
    for name, spec in batch.parameter_fields.items():
        if not spec.computed:
            x = getattr(batch, name)
            if type(x) is not np.ndarray:
                plain = False
                if spec.ndim > 1 and spec.named is None:
                    of_both = spec.ndim > 2  # a matrix for all predictions, with coordinates both ways
                    coordinates = coordinates_in_order(coordinates, x, spec.called or name, of_both=of_both)
                x = plain_array(x, spec.called or name) if is_array(x) else x
            given[name] = x
    labels, given = (None, given) if plain else _in_one_order(batch, given)
    object.__setattr__(batch, "case_index", labels)
    object.__setattr__(batch, "case_columns", coordinates)
    own = read_only if _lent.get() else own_copy
    for name, x in given.items():
        object.__setattr__(batch, name, x if name in batch.batch_fields else own(x))


Coordinates: TypeAlias = tuple[str, tuple[Any, ...]]
"""A parameter that was a data frame, and the names of its columns."""


def coordinates_in_order(
    known: Coordinates | None, x: Any, name: str, *, of_both: bool = False
) -> Coordinates | None:
    """What is known of the names of coordinates after `x`; an error where it has the same in another order.

    Data frames with other names, and arrays, are taken by position. Where rows stand for coordinates, too, as
    those of a covariance, these are to be brought into order `of_both`.

    Examples
    --------
    >>> import pandas as pd
    >>> known = coordinates_in_order(None, pd.DataFrame({"u": [0.1], "v": [2.0]}), "loc")
    >>> coordinates_in_order(known, pd.DataFrame({"v": [2.0], "u": [0.1]}), "y")
    Traceback (most recent call last):
    ValueError: y and loc have the same columns in different orders: 'v' comes first in y and 'u' in loc; ...
    """
    found = x.case_columns if hasattr(cast("Any", type(x)), "case_columns") else (name, column_names(x))
    if found is None or found[1] is None:
        return known
    names = tuple(found[1])
    if known is None:
        return found[0], names
    for own, other in zip(names, known[1], strict=False):
        if own != other and Counter(names) == Counter(known[1]):
            wanted = list(known[1])
            raise ValueError(
                f"{name} and {known[0]} have the same columns in different orders: {own!r} "
                f"{'comes first' if own == names[0] else 'stands'} in {name} and {other!r} in {known[0]}; "
                "bring them into one order, as in "
                + (f"{name}.loc[{wanted!r}, {wanted!r}]" if of_both else f"{name}[{wanted!r}]")
            )
    return known


_lent: ContextVar[bool] = ContextVar("lent", default=False)


@contextmanager
def lent() -> Generator[None]:
    """Within it batches look at the arrays of NumPy that they are given, and take no copies.

    For predictions that are gone when a call ends: what nobody keeps, nobody can change behind its back.
    """
    token = _lent.set(True)
    try:
        yield
    finally:
        _lent.reset(token)


def all_plain(pred: object) -> bool:
    """Whether predictions are given as arrays of NumPy and nothing else: no user's code makes them."""
    parts = cast("tuple[object, ...]", pred) if type(pred) is tuple else (pred,)
    return all(type(part) is np.ndarray for part in parts)


def _in_one_order(batch: Any, given: dict[str, Any]) -> tuple[Labels | None, dict[str, Any]]:
    """Labels of all parameters and batches, and these in their order."""
    parts: dict[str, Any] = {}
    for name, x in given.items():
        if name in batch.batch_fields and isinstance(x, (list, tuple)):
            parts.update({f"{name}[{k}]": item for k, item in enumerate(cast("list[Any]", x))})
        elif batch.parameter_fields.get(name, Parameter()).has_rows(x):
            parts[name] = x
    labels, parts = common_labels(parts)
    if labels is None:
        return None, given
    for name, x in given.items():
        if name in batch.batch_fields and isinstance(x, (list, tuple)):
            given[name] = tuple(parts[f"{name}[{k}]"] for k in range(len(cast("list[Any]", x))))
        else:
            given[name] = parts.get(name, x)
    return labels, given
