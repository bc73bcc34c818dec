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
    if _jax_seen:
        _register(_jax_seen[0], family)
    else:
        _waiting.append(family)


def _register_all() -> None:
    import jax

    _jax_seen.append(jax)
    while _waiting:
        _register(jax, _waiting.pop())


def _register(jax: Any, family: Any) -> None:
    # The fields are looked up when they are needed: a class is registered before its decorator has run.
    def names() -> list[str]:
        return [field.name for field in fields(family)]

    def flatten(batch: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        dynamic = family.array_fields + family.batch_fields
        children = tuple(getattr(batch, name) for name in names() if name in dynamic)
        static = tuple(_Static(getattr(batch, name)) for name in names() if name not in dynamic)
        return children, (*static, _Static(batch.case_index))

    def unflatten(static: tuple[Any, ...], children: tuple[Any, ...]) -> Any:
        batch = object.__new__(family)
        dynamic = family.array_fields + family.batch_fields
        rest, leaves = iter(static), iter(children)
        for name in names():
            object.__setattr__(batch, name, next(leaves) if name in dynamic else next(rest).value)
        if (index := next(rest).value) is not None:
            object.__setattr__(batch, "case_index", index)
        return batch

    jax.tree_util.register_pytree_node(family, flatten, unflatten)


class _Static:
    """A shared parameter as JAX's static data: compared by value, also where it is a NumPy array."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and (
            self.value is other.value or bool(np.array_equal(np.asarray(self.value), np.asarray(other.value)))
        )

    def __hash__(self) -> int:
        return hash(str(self.value))


on_first_jax_array(_register_all)
