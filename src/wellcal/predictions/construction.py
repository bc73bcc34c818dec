"""How a batch takes over its parameters: rows in one order, copied, and then read-only."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import plain_array
from wellcal._arrays.labels import Labels, common_labels
from wellcal._arrays.namespaces import is_array
from wellcal._arrays.ownership import freeze, own_copy, read_only
from wellcal.predictions.fields import Parameter


def keeping(post_init: Callable[..., None]) -> Callable[..., None]:
    """``__post_init__`` of a family that takes over its parameters: in order, copied, and then read-only.

    What says how parameters are to be read, and is not kept, goes to `arrange`, before anything else.
    """

    @wraps(post_init)
    def settled(self: Any, *how: Any) -> None:
        if "case_index" in vars(self):  # called by the one of a derived class
            post_init(self)
            return
        self.arrange(*how)
        take_parameters(self)
        post_init(self)
        for name in self.__dataclass_fields__:
            freeze(getattr(self, name))

    return settled


def take_parameters(batch: Any) -> None:
    """Copy what was given, rows of columns with an index in one order; during construction only."""
    given = {name: getattr(batch, name) for name in batch.batch_fields}
    plain = not given
    for name, spec in batch.parameter_fields.items():
        if not spec.computed:
            x = getattr(batch, name)
            if type(x) is not np.ndarray:
                plain = False
                x = plain_array(x, spec.called or name) if is_array(x) else x
            given[name] = x
    labels, given = (None, given) if plain else _in_one_order(batch, given)
    object.__setattr__(batch, "case_index", labels)
    own = read_only if _lent.get() else own_copy
    for name, x in given.items():
        object.__setattr__(batch, name, x if name in batch.batch_fields else own(x))


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
