"""Families as JAX's pytrees, so that batches pass through ``jax.jit``, ``grad`` and ``vmap``.

JAX is never imported for their sake: families wait until the first JAX array is seen.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import on_first_jax_array

_waiting: list[Any] = []
_jax_seen: list[Any] = []


def register(family: Any) -> None:
    """Make a family a pytree, now or as soon as JAX is in use."""
    _waiting.append(family)
    if _jax_seen:
        _register_all()


def _register_all() -> None:
    import jax

    _jax_seen.append(jax)
    while _waiting:
        _register(jax, _waiting.pop())


def _register(jax: Any, family: Any) -> None:
    # Fields are read on use: a class is registered before its decorator has run.
    def flatten(batch: Any) -> tuple[tuple[Any, ...], _Shared]:
        names = (*family.array_fields, *family.batch_fields)
        shared = {f.name: getattr(batch, f.name) for f in fields(family) if f.name not in names}
        return tuple(getattr(batch, name) for name in names), _Shared(
            {**shared, "case_index": batch.case_index}
        )

    def unflatten(shared: _Shared, children: Any) -> Any:
        batch: Any = object.__new__(family)
        names = (*family.array_fields, *family.batch_fields)
        batch.store(**shared.values, **dict(zip(names, children, strict=True)))
        return batch

    jax.tree_util.register_pytree_node(family, flatten, unflatten)


class _Shared:
    """Static data of JAX that all predictions share: compared by value, also NumPy arrays."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shared) and all(
            x is other.values[name] or np.array_equal(np.asarray(x), np.asarray(other.values[name]))
            for name, x in self.values.items()
        )

    def __hash__(self) -> int:
        return hash(str(self.values))


on_first_jax_array(_register_all)
