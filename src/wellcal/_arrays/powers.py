"""Exponentials of many numbers in NumPy, by whichever function of it is quick."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray

_LOG2E = math.log2(math.e)


class Exponential(NamedTuple):
    """A function, and by what exponents are multiplied so that it is ``exp`` of them."""

    function: Callable[..., Any]
    scale: float

    def in_place(self, exponents: NDArray) -> NDArray:
        """Of exponents that were multiplied by `scale`."""
        self.function(exponents, out=exponents)
        return exponents


_PLAIN, _OF_TWO = Exponential(np.exp, 1.0), Exponential(np.exp2, _LOG2E)


def quick_exponential(kind: Any) -> Exponential:
    """The quickest for arrays of a type: powers of two, in float32 and where there are vector instructions.

    In float64 it is always ``exp``: what is exact has the same digits on all processors of a kind.

    Examples
    --------
    >>> found = quick_exponential(np.float32)
    >>> x = np.array([0.0, -1.0], dtype=np.float32)
    >>> found.in_place(x * np.float32(found.scale)).round(4).tolist()[0]
    1.0
    >>> quick_exponential(np.float64).scale
    1.0
    """
    return _OF_TWO if kind == np.float32 and vector_powers_of_two() else _PLAIN


@lru_cache(maxsize=1)
def vector_powers_of_two() -> bool:
    """Whether NumPy has vector instructions of this processor for powers of two in float32.

    Where it has none, they are made one by one, and ``exp`` is quicker.
    """
    from numpy.lib import introspect

    found: Any = introspect.opt_func_info(func_name="^exp2$").get("exp2", {}).get("ff", {})
    used = found.get("current", "baseline")
    return not used.startswith("baseline")
