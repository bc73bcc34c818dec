"""How a batch takes over its parameters: rows in one order, copied, and then read-only."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

import numpy as np

from wellcal._arrays.labels import Labels, common_labels
from wellcal._arrays.ownership import freeze, own_copy
from wellcal.predictions.fields import Parameter


def keeping(post_init: Callable[[Any], None]) -> Callable[[Any], None]:
    """``__post_init__`` of a family that takes over its parameters: in order, copied, and then read-only."""

    @wraps(post_init)
    def settled(self: Any) -> None:
        if "case_index" in vars(self):  # called by the one of a derived class
            post_init(self)
            return
        take_parameters(self)
        post_init(self)
        for name in self.__dataclass_fields__:
            freeze(getattr(self, name))

    return settled


def take_parameters(batch: Any) -> None:
    """Copy what was given, rows of columns with an index in one order; during construction only."""
    names = [name for name in batch.parameter_fields if not batch.parameter_fields[name].computed]
    given = {name: getattr(batch, name) for name in (*batch.batch_fields, *names)}
    labels: Labels | None = None
    if any(type(x) is not np.ndarray for x in given.values()):
        labels, given = _in_one_order(batch, given)
    object.__setattr__(batch, "case_index", labels)
    batch.store(**{name: own_copy(x) for name, x in given.items() if name not in batch.batch_fields})
    batch.store(**{name: given[name] for name in batch.batch_fields})


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
