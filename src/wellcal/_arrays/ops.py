"""The small set of operations that closed forms are written in.

A rule such as "Gaussian kernel, normal, normal" is one elementwise expression over the operations of
:class:`Ops`. An engine that compiles rules (to a fused CPU loop or a GPU kernel) needs to supply
these operations and nothing else; each array library gets its own instance from :func:`ops_for`.

All operations are elementwise and broadcast. Those with a removable singularity (`phi`, `root`,
`power`) are primitives because the plain expression is 0/0 in its value or in its derivative.
"""

from __future__ import annotations

import importlib
import operator
import sys
from collections.abc import Callable
from functools import cache
from typing import TypeAlias, cast

import array_api_extra as xpx
from scipy import special

from wellcal._arrays.namespaces import (
    Array,
    Namespace,
    is_jax,
    is_numpy,
    is_torch,
    through_numpy,
)

_PHI_TERMS = 18  # of the Taylor series of phi on [0, 1]: 1 / 19! is below 1e-17


Elementwise: TypeAlias = Callable[..., Array]
"""A function of arrays that broadcast, entry by entry."""

_POWER = cast("Elementwise", operator.pow)  # pyright: ignore[reportUnknownMemberType]  # of any two objects


_SPECIAL = ("erfcx", "i0e", "gammaln", "ndtr", "ndtri", "log_ndtr", "xlogy")  # by SciPy's names


class Ops:
    """Elementwise operations of one array library, derivatives included where the library has them."""

    exp: Elementwise
    expm1: Elementwise
    log: Elementwise
    log1p: Elementwise
    sqrt: Elementwise
    abs: Elementwise
    sinh: Elementwise
    atanh: Elementwise
    minimum: Elementwise
    maximum: Elementwise
    where: Elementwise
    erfcx: Elementwise
    i0e: Elementwise
    gammaln: Elementwise
    ndtr: Elementwise
    ndtri: Elementwise
    log_ndtr: Elementwise
    xlogy: Elementwise

    def __init__(self, xp: Namespace) -> None:
        self.xp = xp
        self.differentiable = is_torch(xp) or is_jax(xp)
        for name in Ops.__annotations__:
            setattr(self, name, self._special(name) if name in _SPECIAL else getattr(xp, name))
        # The subgradient at 0 matters only where there are gradients.
        self.root: Elementwise = self._root if self.differentiable else xp.sqrt
        """Square root of x >= 0, with derivative 0 at 0."""
        self.power: Elementwise = self._power if self.differentiable else _POWER
        """``x ** exponent`` for x >= 0 and exponent > 0, with derivative 0 at 0."""

    def select(
        self,
        condition: Array,
        arguments: tuple[Array, ...],
        if_true: Callable[..., Array],
        if_false: Callable[..., Array],
    ) -> Array:
        """``where(condition, if_true(*arguments), if_false(*arguments))``, each branch on its own elements.

        Eager libraries evaluate a branch only where it is chosen; JAX evaluates both everywhere, so
        a branch must stay finite, with finite derivatives, on all arguments.
        """
        return xpx.apply_where(condition, arguments, if_true, if_false, xp=self.xp)

    def amend(
        self, value: Array, condition: Array, arguments: tuple[Array, ...], function: Callable[..., Array]
    ) -> Array:
        """``where(condition, function(*arguments), value)``, for a condition that seldom holds.

        Cheaper than :meth:`select` in eager libraries: `value` is not gathered, and nothing happens
        where the condition holds nowhere. In JAX, the same demands on both branches.
        """
        if not is_jax(self.xp) and not bool(self.xp.any(condition)):
            return value
        return xpx.apply_where(condition, arguments, function, fill_value=value, xp=self.xp)

    def _root(self, x: Array) -> Array:
        """Square root of x >= 0 with derivative 0 at 0: a subgradient of a distance at itself."""
        positive = x > 0
        return self.where(positive, self.xp.sqrt(self.where(positive, x, self.one(x))), 0.0 * x)

    def _power(self, x: Array, exponent: float) -> Array:
        if exponent == 1.0:
            return x
        if exponent == 0.5:
            return self.root(x)
        if exponent == 2.0:
            return x * x
        positive = x > 0
        return self.where(positive, self.where(positive, x, self.one(x)) ** exponent, 0.0 * x)

    def phi(self, x: Array) -> Array:
        """``(1 - exp(-x)) / x`` for x >= 0, 1 at 0, with accurate derivatives everywhere."""
        if not self.differentiable:
            zero = x == 0
            safe = self.where(zero, self.one(x), x)
            return self.where(zero, self.one(x), -self.expm1(-safe) / safe)
        return self.select(x < 1.0, (x,), self._phi_series, self._phi_direct)

    def _phi_series(self, x: Array) -> Array:
        x = self.minimum(x, self.one(x))
        total = self.one(x)
        for k in range(_PHI_TERMS, 0, -1):
            total = 1.0 - x * total / (k + 1.0)
        return total

    def _phi_direct(self, x: Array) -> Array:
        x = self.maximum(x, 0.5 * self.one(x))
        return -self.expm1(-x) / x

    def one(self, x: Array) -> Array:
        """1 in the shape and dtype of `x`."""
        return self.xp.ones_like(x)

    def _special(self, name: str) -> Elementwise:
        """Return a special function of the library, or SciPy's on copies in NumPy."""
        on_numpy = getattr(special, name)
        if is_numpy(self.xp):
            return on_numpy
        native: Elementwise | None = None
        if is_torch(self.xp):
            native = getattr(sys.modules["torch"].special, name, None)
        elif is_jax(self.xp):
            native = getattr(importlib.import_module("jax.scipy.special"), name, None)
        return (lambda *arrays: through_numpy(on_numpy, *arrays)) if native is None else native


@cache
def ops_for(xp: Namespace) -> Ops:
    """The operations of array namespace `xp`.

    Examples
    --------
    >>> import numpy as np
    >>> from wellcal._arrays.namespaces import namespace
    >>> ops = ops_for(namespace(np.ones(1)))
    >>> ops.phi(np.array([0.0, 1e-9, 1.0])).round(6)
    array([1.      , 1.      , 0.632121])
    """
    return Ops(xp)
