"""Arguments that are wrong, or right in an unusual form."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

import wellcal as wc

Mutation = Callable[[Any, np.random.Generator], Any]


class Odd:
    """An object of a class that nobody knows."""


class Delegating:
    """A distribution that hands everything on to another, as those of NGBoost do."""

    def __init__(self, dist: Any) -> None:
        self.dist = dist

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dist, name)


class Liar:
    """An object that has no array, and says so late."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("no array today")


class Closed:
    """An object that fails at every question, and when it is to be printed."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")

    def __repr__(self) -> str:
        raise KeyError("no text")

    def __eq__(self, other: object) -> bool:
        raise OSError("no comparison")

    def __iter__(self) -> Any:
        raise OSError("no items")

    def __len__(self) -> int:
        raise OSError("no length")

    def __bool__(self) -> bool:
        raise OSError("no truth")

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class Derived(np.ndarray):
    """An array of a class derived from NumPy's."""


def _array(x: Any) -> Any:
    """The value as an array where it is one or becomes one, else three numbers."""
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, (list, tuple)):
        try:
            array = np.asarray(x)
            return array if array.dtype.kind in "biufU" else np.array([0.2, 0.3, 0.5])
        except ValueError:
            pass
    return np.full(8, float(x)) if isinstance(x, (int, float)) else np.array([0.2, 0.3, 0.5])


def _floats(x: Any) -> Any:
    array = _array(x)
    return array.astype(float) if array.dtype.kind in "biuf" else np.linspace(0.1, 0.9, len(array))


def _with(value: float) -> Mutation:
    def mutate(x: Any, rng: np.random.Generator) -> Any:
        array = _floats(x).copy()
        array.ravel()[int(rng.integers(max(1, array.size)))] = value
        return array

    return mutate


def _torch(function: Callable[[Any, Any], Any]) -> Mutation:
    def mutate(x: Any, rng: np.random.Generator) -> Any:
        import torch

        return function(torch, torch.tensor(_floats(x)))

    return mutate


def _jax(x: Any, rng: np.random.Generator) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(_floats(x))


def _strict(x: Any, rng: np.random.Generator) -> Any:
    import array_api_strict

    return array_api_strict.asarray(_floats(x))


def _pandas(x: Any, rng: np.random.Generator) -> Any:
    import pandas as pd

    array = _floats(x)
    index = [
        pd.RangeIndex(len(array)),
        pd.Index(np.zeros(len(array))),
        pd.Index([f"case {k}" for k in range(len(array))]),
    ][int(rng.integers(3))]
    return (
        pd.Series(array, index=index)
        if array.ndim == 1
        else pd.DataFrame(array[..., 0] if array.ndim > 2 else array, index=index)
    )


def _of_functions(value: Any) -> Any:
    """A kernel whose functions return a value, whatever they are given."""
    by_hand = wc.kernels.Callable(lambda a, b: value)
    return by_hand @ by_hand


def _inside(x: Any, rng: np.random.Generator) -> Any:
    """A pair, one part of which is wrong."""
    parts = list(x) if isinstance(x, tuple) and x else [0.5, 0.5]
    k = int(rng.integers(len(parts)))
    parts[k] = mutated(parts[k], rng)
    return tuple(parts)


CONSTANTS: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 7, 2.5, 0.5, -0.5, math.nan, math.inf, -math.inf, 1e300, -1e300,
    1e-320, 10**9, 10**12, -(10**9), 10**400, 1j, "", "abc", "auto", "nan", b"x", [], (), {}, [[]],
    [None], [1, [2, 3]], ..., int, float, np, Odd, Decimal("0.5"), Fraction(1, 3), np.float32(0.5),
    np.int64(3), np.float64(math.nan), np.bool_(True), np.array(3), np.array(2.5), np.array("a"),
    np.zeros(0), np.zeros((0, 3)), np.zeros((3, 0)), np.array([object()]), {1, 2}, range(5), slice(1, 2),
    {"a": [1.0, 2.0]}, ["a", "b"], ("a",), [math.nan], [math.inf], np.datetime64("2024-01-01"),
    np.datetime64("NaT"), np.timedelta64(3, "s"),
]  # fmt: skip

MADE: list[Mutation] = [
    lambda x, rng: Odd(),
    lambda x, rng: Liar(),
    lambda x, rng: iter([0.1, 0.2]),
    lambda x, rng: Delegating(stats.norm([0.0, 1.0, 2.0], 1.0)),
    lambda x, rng: Delegating(Odd()),
    lambda x, rng: stats.norm,
    lambda x, rng: stats.norm(np.zeros((3, 1)), np.ones(3)),
    lambda x, rng: stats.poisson(3.0),
    lambda x, rng: stats.zipf(3.0),
    lambda x, rng: stats.norm(math.nan, 1.0),
    lambda x, rng: [stats.norm(0.0, 1.0), Odd()],
    lambda x, rng: wc.Normal(np.zeros(5), 1.0),
    lambda x, rng: wc.Categorical(np.full((5, 2), 0.5)),
    lambda x, rng: wc.Samples([["a", "b"], ["c", "d"]]),
    lambda x, rng: [wc.Normal(np.zeros(5), 1.0)],
    lambda x, rng: wc.kernels.Gaussian(),
    lambda x, rng: wc.kernels.Wasserstein(),
    lambda x, rng: wc.kernels.ExpDistance(wc.kernels.Wasserstein()) @ wc.kernels.Gaussian(),
    lambda x, rng: _of_functions("text"),
    lambda x, rng: _of_functions(None),
    lambda x, rng: _of_functions(math.nan),
    lambda x, rng: _of_functions(np.zeros(3)),
    lambda x, rng: _of_functions(1.0),
    lambda x, rng: wc.kernels.Joint(lambda *args: "text"),
    lambda x, rng: wc.kernels.Joint(lambda *args: np.zeros((2, 2))),
    lambda x, rng: lambda *args, **kwargs: "text",
    lambda x, rng: lambda *args, **kwargs: None,
    lambda x, rng: lambda *args, **kwargs: math.nan,
    lambda x, rng: len,
    lambda x, rng: np.random.default_rng(0),
    lambda x, rng: np.random.RandomState(0),
    lambda x, rng: Closed(),
    lambda x, rng: [Closed()],
    lambda x, rng: (Closed(), Closed()),
]

CHANGED: list[Mutation] = [
    _with(math.nan),
    _with(math.inf),
    _with(-1.0),
    _with(1e300),
    _with(1e-310),
    _with(0.0),
    _with(0.5),
    lambda x, rng: _array(x)[:-1],
    lambda x, rng: np.concatenate([_array(x)] * 2),
    lambda x, rng: _array(x)[:0],
    lambda x, rng: _array(x)[:1],
    lambda x, rng: _array(x)[..., None],
    lambda x, rng: _array(x)[None],
    lambda x, rng: _array(x).reshape(-1),
    lambda x, rng: _array(x).T,
    lambda x, rng: _floats(x) * 0.0,
    lambda x, rng: -_floats(x),
    lambda x, rng: _floats(x).astype(np.float16),
    lambda x, rng: _floats(x).astype(np.float32),
    lambda x, rng: _floats(x).astype(np.longdouble),
    lambda x, rng: _floats(x).astype(">f8"),
    lambda x, rng: _floats(x) > 0,
    lambda x, rng: _floats(x).astype(np.int8),
    lambda x, rng: np.abs(_floats(x)).astype(np.uint64),
    lambda x, rng: _floats(x).astype(complex),
    lambda x, rng: _floats(x).astype(object),
    lambda x, rng: _floats(x).astype(str),
    lambda x, rng: _floats(x).astype(bytes),
    lambda x, rng: np.where(rng.random(_floats(x).shape) < 0.3, None, _floats(x).astype(object)),
    lambda x, rng: _floats(x).astype("timedelta64[s]"),
    lambda x, rng: _floats(x).astype("int64").astype("datetime64[D]"),
    lambda x, rng: np.zeros(len(_array(x)), dtype=[("a", float), ("b", int)]),
    lambda x, rng: np.ma.masked_greater(_floats(x), 0.0),
    lambda x, rng: np.ma.array(_floats(x)),
    lambda x, rng: np.repeat(_array(x), 2, axis=0)[::2],
    lambda x, rng: _array(x)[::-1],
    lambda x, rng: np.asfortranarray(_array(x)),
    lambda x, rng: np.broadcast_to(_array(x)[:1], _array(x).shape),
    lambda x, rng: _floats(x).view(Derived),
    lambda x, rng: np.asmatrix(_floats(x)) if _floats(x).ndim <= 2 else x,
    lambda x, rng: _array(x).tolist(),
    lambda x, rng: tuple(_array(x).tolist()),
    lambda x, rng: [_array(x), _array(x)[:1]],
    lambda x, rng: [str(item) for item in _array(x).ravel()],
    lambda x, rng: dict(enumerate(_array(x).ravel().tolist())),
    _torch(lambda torch, t: t),
    _torch(lambda torch, t: t.float()),
    _torch(lambda torch, t: t.half()),
    _torch(lambda torch, t: t.bfloat16()),
    _torch(lambda torch, t: t.long()),
    _torch(lambda torch, t: t > 0),
    _torch(lambda torch, t: t.requires_grad_()),
    _torch(lambda torch, t: t.to_sparse()),
    _torch(lambda torch, t: t.to("meta")),
    _torch(lambda torch, t: t + 0j),
    _torch(lambda torch, t: t[:0]),
    _torch(lambda torch, t: t.sum()),
    _torch(lambda torch, t: t.flip(0)),
    _jax,
    _strict,
    _pandas,
    _pandas,
]


def mutated(x: Any, rng: np.random.Generator) -> Any:
    """Another value in the place of one that is right."""
    kind = rng.random()
    if isinstance(x, tuple) and rng.random() < 0.5:
        return _inside(x, rng)
    if isinstance(x, np.ndarray) or kind < 0.35:
        changes = CHANGED if kind < 0.7 else None
        if changes is not None:
            return changes[int(rng.integers(len(changes)))](x, rng)
    if kind < 0.85:
        return CONSTANTS[int(rng.integers(len(CONSTANTS)))]
    return MADE[int(rng.integers(len(MADE)))](x, rng)
