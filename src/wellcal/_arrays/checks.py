"""Checks at the door: each names the argument, the first bad row and the remedy.

Under JAX tracing values cannot be looked at, so checks of values are skipped there; checks of
shapes and dtypes always run.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import (
    Array,
    asarray,
    device_of,
    is_array,
    is_floating,
    is_numpy,
    is_traced,
    namespace,
    to_numpy,
)


def real_array(x: object, name: str, *, ndim: tuple[int, ...] = (1,), like: Array | None = None) -> Array:
    """`x` as a floating array with finite values and an allowed number of dimensions.

    Integers and booleans become floats; the library and device are those of `x`, or of `like`. A
    list has no precision of its own and takes that of `like`.
    """
    array = _floating(x, name, like)
    check_ndim(array, name, ndim)
    check_rows(name, array, finite(array), "is not finite", "drop or impute that row")
    return array


def _floating(x: object, name: str, like: Array | None) -> Array:
    given: Array = x if is_array(x) else _numeric(x, name)
    if is_numpy(namespace(given)) and given.dtype.kind in "OUS":
        given = _numeric(given, name)
    xp = namespace(given)
    if not is_floating(given) and xp.isdtype(given.dtype, "complex floating"):
        raise TypeError(f"{name} must be real, found dtype {given.dtype}")
    dtype = like.dtype if like is not None and not is_array(x) and is_floating(like) else None
    if like is not None and is_numpy(xp):
        xp = namespace(like)
        given = asarray(given, xp=xp, device=device_of(like), dtype=dtype)
    return given if is_floating(given) else xp.astype(given, default_float(xp))


def _numeric(x: object, name: str) -> Array:
    """A list, a column of a data frame or an array of objects as a NumPy array of numbers."""
    try:
        array: Array = np.asarray(x)
    except ValueError:
        raise ValueError(f"{name} is ragged: its rows have different lengths") from None
    if array.dtype.kind in "OUS":
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be numeric, found dtype {array.dtype}") from None
    return array


def default_float(xp: Any) -> Any:
    """Floating dtype that integers become: float64 where the library has it enabled."""
    from wellcal._arrays.namespaces import float64

    return float64(xp)


def check_ndim(array: Array, name: str, ndim: tuple[int, ...]) -> None:
    """Reject a wrong number of dimensions; never reshape (n, 1) into (n,) on a guess."""
    if array.ndim in ndim:
        return
    wanted = " or ".join(f"{d}-dimensional" for d in ndim)
    remedy = ""
    if array.ndim == 2 and array.shape[1] == 1 and 1 in ndim:
        remedy = f"; pass {name}[:, 0] if its one column is meant"
    raise ValueError(f"{name} must be {wanted}, found shape {tuple(array.shape)}{remedy}")


def check_same_shape(reference: Array, name: str, other: Array, other_name: str) -> None:
    """Reject shapes that differ: broadcasting (n,) against (n, 1) would silently make (n, n)."""
    if tuple(reference.shape) != tuple(other.shape):
        raise ValueError(
            f"{name} and {other_name} must have the same shape, "
            f"found {tuple(reference.shape)} and {tuple(other.shape)}"
        )


def check_same_length(n: int, name: str, m: int, other_name: str) -> None:
    """Reject lengths that differ."""
    if n != m:
        raise ValueError(f"{name} and {other_name} must have the same length, found {n} and {m}")


def check_nonempty(n: int, name: str) -> None:
    """Reject an empty batch."""
    if n == 0:
        raise ValueError(f"{name} is empty: at least one row is needed")


def check_rows(name: str, array: Array, ok: Array, problem: str, remedy: str) -> None:
    """Raise ValueError unless `ok` holds everywhere, naming the first bad row of `array`.

    `ok` has the shape of `array`, or of its leading axes.
    """
    if is_traced(ok, array):
        return
    xp = namespace(ok)
    if bool(xp.all(ok)):
        return
    good = to_numpy(ok)
    row, *rest = (int(i) for i in np.argwhere(~good)[0])
    shown: Any = to_numpy(array)[(row, *rest)]
    values = np.array2string(np.asarray(shown), threshold=6, precision=6)
    column = f", column {', '.join(map(str, rest))}" if rest else ""
    bad = int(np.unique(np.argwhere(~good)[:, 0]).size)
    more = f" ({bad} rows in all)" if bad > 1 else ""
    raise ValueError(f"{name} {problem} in row {row}{column}: found {values}{more}; {remedy}")


def finite(array: Array) -> Array:
    """Elementwise finiteness."""
    return namespace(array).isfinite(array)


def probability_tolerance(array: Array) -> float:
    """How far a sum of probabilities may be from one: 1e-6 in float64, 1e-3 below.

    Softmax outputs in single precision over thousands of classes miss one by about 1e-4.
    """
    xp = namespace(array)
    return 1e-6 if array.dtype == xp.float64 else 1e-3


def positive_number(x: Any, name: str) -> Any:
    """A positive finite number, or a zero-dimensional array of one (kept, for its gradient).

    NumPy's arrays have none, and become numbers.
    """
    if is_array(x) and is_numpy(namespace(x)) and x.ndim == 0:
        x = x.item()
    if is_array(x):
        if x.ndim != 0:
            raise ValueError(f"{name} must be a number, found an array of shape {tuple(x.shape)}")
        if is_traced(x):
            return x
        value = float(to_numpy(x))
    else:
        try:
            x = value = float(x)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be a number, found {x!r}") from None
        except OverflowError:  # a whole number beyond the largest float
            value = np.inf
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be positive and finite, found {value}")
    return x


# -- options -----------------------------------------------------------------------------------


def whole_number(x: Any, name: str, *, least: int | None = None, most: int | None = None) -> int:
    """A whole number within limits, as an int: 3, ``np.int64(3)`` and 3.0 are, True and 2.5 are not.

    Examples
    --------
    >>> whole_number(99, "n_resamples", least=1)
    99
    >>> whole_number(0, "n_resamples", least=1)
    Traceback (most recent call last):
    ValueError: n_resamples must be a whole number of at least 1, found 0
    """
    whole = isinstance(x, (int, np.integer)) or (isinstance(x, (float, np.floating)) and x.is_integer())
    fits = whole and not isinstance(x, bool) and (least is None or x >= least) and (most is None or x <= most)
    if fits:
        return int(cast("int", x))
    limits = {
        (False, False): "",
        (True, False): f" of at least {least}",
        (False, True): f" of at most {most}",
        (True, True): f" between {least} and {most}",
    }[least is not None, most is not None]
    raise ValueError(f"{name} must be a whole number{limits}, found {x!r}")


def probability(x: Any, name: str) -> float:
    """A number strictly between 0 and 1: a level, an error rate.

    Examples
    --------
    >>> probability(0.95, "level")
    0.95
    >>> probability(95, "level")
    Traceback (most recent call last):
    ValueError: level must be between 0 and 1, found 95
    """
    try:
        value = float(x)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number between 0 and 1, found {x!r}") from None
    except OverflowError:  # a whole number beyond the largest float
        value = np.inf
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must be between 0 and 1, found {x}")
    return value


def one_of(x: Any, name: str, known: Iterable[str], *, or_else: str = "") -> str:
    """A word from a list; `or_else` names what else is taken, such as "or a function".

    Examples
    --------
    >>> one_of("biased", "estimator", ("biased", "unbiased"))
    'biased'
    >>> one_of("baised", "estimator", ("biased", "unbiased"))
    Traceback (most recent call last):
    ValueError: unknown estimator 'baised'; known are biased, unbiased; did you mean 'biased'?
    """
    words = list(known)
    if isinstance(x, str) and x in words:
        return x
    close = difflib.get_close_matches(x, words, n=1) if isinstance(x, str) else []
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"unknown {name} {x!r}; known are {', '.join(words)}{or_else and ' ' + or_else}{hint}")
