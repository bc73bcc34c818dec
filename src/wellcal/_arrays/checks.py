"""Checks at the door: each names the argument, the first bad row and the remedy.

Under JAX tracing values cannot be looked at, so checks of values are skipped there; checks of
shapes and dtypes always run.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from numbers import Real
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    device_of,
    float64,
    from_numpy,
    host_copy,
    is_array,
    is_floating,
    is_numpy,
    is_traced,
    namespace,
    refuse_elsewhere,
    to_numpy,
)
from wellcal._arrays.row_errors import Row, RowError, RowTypeError

LEAST, MOST = 1e-152, 1e151
"""Positive parameters lie between these, so that their squares are floating-point numbers."""


def real_array(
    x: object,
    name: str,
    *,
    ndim: tuple[int, ...] = (1,),
    like: Array | None = None,
) -> Array:
    """`x` as a floating array with finite values and an allowed number of dimensions.

    Integers and booleans become floats; the library and device are those of `x`, or of `like`. A
    list has no precision of its own and takes that of `like`.
    """
    array = _floating(x, name, like)
    check_ndim(array, name, ndim, x)
    seen = host_copy(array)
    check_rows(name, seen, namespace(seen).isfinite(seen), "is not finite", "drop or impute that row")
    return array


def numeric_array(x: Any, name: str) -> Array:
    """`x` as an array of real numbers, of its own library or of NumPy; values and shape are not looked at."""
    given: Array = x if type(x) is np.ndarray else plain_array(x, name)
    xp = namespace(given)
    if is_numpy(xp):
        if given.dtype.kind not in "fiub":
            return _numeric(given, name)
        # Special functions know neither longer numbers than these nor those of other machines.
        if given.dtype.itemsize <= 8 and given.dtype.isnative:
            return given
        return given.astype(np.float64 if given.dtype.kind == "f" else given.dtype.newbyteorder("="))
    if not is_floating(given) and xp.isdtype(given.dtype, "complex floating"):
        raise TypeError(f"{name} must be real, found dtype {given.dtype}; give the part that is meant")
    return given


def _floating(x: object, name: str, like: Array | None) -> Array:
    given = numeric_array(x, name)
    if type(x) is np.ndarray is type(like) and given.dtype.kind == "f":
        return given
    xp = namespace(given)
    dtype = like.dtype if like is not None and not is_array(x) and is_floating(like) else None
    if like is not None and is_numpy(xp):
        xp = namespace(like)
        try:
            given = asarray(given, xp=xp, device=device_of(like), dtype=dtype)
        except TypeError as error:
            raise TypeError(f"{name} cannot be carried into another array library: {error}") from error
    if is_floating(given):
        return given
    if type(values := host_copy(given)) is np.ndarray:  # JAX would compile a program for the conversion
        return from_numpy(values.astype(np.float64), given)
    return xp.astype(given, float64(xp))


_NO_NUMBERS = {
    "c": ("real", "give the part that is meant"),
    "M": ("numbers, not dates", "give the time since a date in a unit of your choice"),
    "m": ("numbers, not durations", "divide by a unit of time, as in x / np.timedelta64(1, 's')"),
    "V": ("numbers, not records", "give one field, as in x['name']"),
}
"""Kinds of NumPy's arrays that are no numbers: what is wanted instead, and the remedy."""


def plain_array(x: Any, name: str) -> Array:
    """`x` as an array of its own library, or as NumPy's where it is none: a list, a column of a data frame.

    Masked arrays, whose masks nothing here would respect, and tensors without values in memory are refused.

    Examples
    --------
    >>> plain_array(np.ma.masked_greater([1.0, 5.0, 9.0], 4.0), "y")
    Traceback (most recent call last):
    TypeError: y is a masked array, and 2 of its 3 entries are masked; drop or impute these
    """
    if type(x) is np.ndarray:
        return x
    if isinstance(x, np.ndarray):
        return _plain_numpy(x, name)
    if is_array(x):
        _check_in_memory(x, name)
        return x
    if isinstance(x, (str, bytes)):
        raise TypeError(f"{name} must be an array or a list, found the one string {x!r}")
    if isinstance(x, (set, frozenset, dict)):
        kind = cast("Any", x).__class__.__name__
        raise TypeError(f"{name} must be an array or a list, found a {kind}, which has no order")
    if isinstance(x, Iterator):
        raise TypeError(f"{name} must be an array or a list, found an iterator; give list({name})")
    try:
        # A column of pyarrow in chunks says another label where its dictionary has none; in one piece, None.
        return np.asarray(x.combine_chunks() if hasattr(x, "combine_chunks") else x)
    except ValueError:
        raise ValueError(f"{name} is ragged: its rows have different lengths") from None
    except Exception as error:
        raise TypeError(
            f"{name} cannot be read as an array, found {type(x).__name__}: {error}; give an array or a list"
        ) from error


def _plain_numpy(x: Any, name: str) -> NDArray:
    """An array of a class derived from NumPy's, as NumPy's."""
    if isinstance(x, np.ma.MaskedArray):
        masked = int(cast("Any", np.ma).count_masked(x))
        remedy = "drop or impute these" if masked else f"give {name}.data"
        total = cast("Any", x).size
        raise TypeError(f"{name} is a masked array, and {masked} of its {total} entries are masked; {remedy}")
    return np.asarray(x)


def _check_in_memory(x: Any, name: str) -> None:
    """Reject tensors whose values are not there, or not one after the other."""
    if getattr(x, "is_meta", False) is True:
        raise TypeError(f"{name} is a tensor on the device 'meta', which has no values; give one that has")
    layout = getattr(x, "layout", None)
    if (layout is not None and str(layout).startswith("torch.") and str(layout) != "torch.strided") or (
        getattr(x, "is_nested", False) is True
    ):
        raise TypeError(f"{name} is a tensor of layout {layout}; give a dense one, as in {name}.to_dense()")
    if getattr(x, "is_quantized", False) is True:
        raise TypeError(f"{name} is a quantised tensor; give {name}.dequantize()")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numeric(array: Array, name: str) -> Array:
    """An array of NumPy that holds numbers of another kind: objects that are numbers become floats."""
    kind = array.dtype.kind
    items = array.astype(str).ravel().tolist() if kind in "US" else array.ravel().tolist()
    if kind in "US" and items:
        first = next((k for k, text in enumerate(items) if not _is_number(text)), 0)
        wanted, remedy = "numeric, not texts", "convert them to numbers"
    elif kind == "O":
        first = next((k for k, x in enumerate(items) if not isinstance(x, (Real, Decimal, np.bool_))), None)
        wanted, remedy = "numeric", "convert it to numbers, and drop or impute missing ones"
    else:
        wanted, remedy = _NO_NUMBERS.get(kind, ("numeric", "convert it"))
        raise TypeError(f"{name} must be {wanted}, found dtype {array.dtype}; {remedy}")
    if first is not None:
        what = f"{name} must be {wanted}, found dtype {array.dtype} with {described(items[first])} in "
        row = int(np.unravel_index(first, array.shape)[0]) if array.ndim else 0
        raise RowTypeError(what, Row(row), argument=name, remedy=remedy)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be numeric, found dtype {array.dtype}") from None


def label_array(x: Any, name: str) -> Array:
    """`x` as an array of labels: numbers, texts, dates or objects, not complex numbers or records."""
    array = plain_array(x, name)
    if is_numpy(namespace(array)) and array.dtype.kind in "cV":
        raise TypeError(
            f"{name} must be labels, found dtype {array.dtype}; {_NO_NUMBERS[array.dtype.kind][1]}"
        )
    return array


def described(item: Any) -> str:
    """A value for an error, or its type where it is long to write."""
    try:
        text = repr(item)
    except Exception:
        text = ""
    return text if 0 < len(text) <= 40 else f"an object of type {type(item).__name__}"


def check_ndim(array: Array, name: str, ndim: tuple[int, ...], given: object = None) -> None:
    """Reject a wrong number of dimensions; never reshape (n, 1) into (n,) on a guess.

    The remedy is one for what was `given`, which may be a data frame.
    """
    if array.ndim in ndim:
        return
    wanted = " or ".join(f"{d}-dimensional" for d in ndim)
    remedy = ""
    if array.ndim == 2 and array.shape[1] == 1 and 1 in ndim:
        taken = (
            ".iloc[:, 0]" if hasattr(given, "iloc") else "[0]" if hasattr(given, "column_names") else "[:, 0]"
        )
        remedy = f"; pass {name}{taken} if its one column is meant"
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


def check_rows(
    name: str, array: Array, ok: Array, problem: str, remedy: str, *, argument: str | None = None
) -> None:
    """Raise :class:`RowError` unless `ok` holds everywhere, naming the first bad row of `array`.

    `ok` has the shape of `array`, or of its leading axes. `argument` is what was given, where `name` is
    something that was computed from it.
    """
    if is_traced(ok, array):
        return
    xp = namespace(ok)
    if bool(xp.all(ok)):
        return
    good = to_numpy(ok)
    if good.ndim == 0:
        raise ValueError(f"{name} {problem}: found {to_numpy(array)}")
    row, *rest = (int(i) for i in np.argwhere(~good)[0])
    shown: Any = to_numpy(array)[(row, *rest)]
    values = np.array2string(np.asarray(shown), threshold=6, precision=6)
    if np.ndim(shown) == 0 and values.endswith(".") and float(values) != float(shown):
        values = np.format_float_positional(shown)  # 1.0000000001 is not 1
    column = f", column {', '.join(map(str, rest))}" if rest else ""
    bad = int(np.unique(np.argwhere(~good)[:, 0]).size)
    more = f" ({bad} rows in all)" if bad > 1 else ""
    parts = (f"{name} {problem} in ", Row(row), f"{column}: found {values}{more}")
    raise RowError(*parts, argument=name if argument is None else argument, remedy=remedy)


def real_number(x: Any, name: str, wanted: str = "a number") -> float:
    """A number, from anything that stands for one: 2, ``np.float32(2)``, ``Decimal(2)``, not "2" or 2j.

    Examples
    --------
    >>> real_number("2", "power")
    Traceback (most recent call last):
    TypeError: power must be a number, found '2'
    """
    if isinstance(x, np.ma.MaskedArray) or is_array(x):
        x = numeric_array(x, name)
        if x.ndim != 0:
            raise TypeError(f"{name} must be {wanted}, found an array of shape {tuple(x.shape)}")
        return float(to_numpy(x))
    if not isinstance(x, (str, bytes)):
        try:
            return float(x)
        except OverflowError:  # a whole number beyond the largest float
            return math.inf if x > 0 else -math.inf
        except Exception:
            pass
    raise TypeError(f"{name} must be {wanted}, found {described(x)}")


def positive_number(x: Any, name: str) -> Any:
    """A positive finite number, or a zero-dimensional array of one, kept for its gradient.

    Arrays of NumPy, which have none, become numbers. A tensor that requires a gradient is a parameter that
    training changes: it is kept itself, any other is copied.
    """
    if type(x) is float and LEAST <= x <= MOST:
        return x
    x = cast("Any", x)
    if is_array(x) and x.ndim != 0:
        raise ValueError(f"{name} must be a number, found an array of shape {tuple(x.shape)}")
    if is_traced(x):
        return x
    value = real_number(x, name)
    if isinstance(x, np.ndarray) or not is_array(x):
        x = value
    elif getattr(x, "requires_grad", None) is False:
        x = x.clone()
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be positive and finite, found {value}")
    if not LEAST <= value <= MOST:
        raise ValueError(f"{name} must lie between {LEAST:g} and {MOST:g}, found {value}; change the unit")
    return x


# -- options -----------------------------------------------------------------------------------


def call_given(function: Callable[..., Any], name: str, *arguments: Any) -> Any:
    """Call a user's function; if it does not take these arguments, the error names it.

    Errors from inside of the function are the user's own and pass.

    Examples
    --------
    >>> call_given(int, "statistic", [1], [2])
    Traceback (most recent call last):
    TypeError: statistic is not a function of what it is given: 'list' object ...
    """
    try:
        return function(*arguments)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise TypeError(f"{name} is not a function of what it is given: {error}") from error
        raise


def flag(x: Any, name: str, *, or_none: bool = False) -> Any:
    """True or False, and None where that has a meaning.

    Examples
    --------
    >>> flag(True, "keep_null")
    True
    >>> flag("yes", "keep_null")
    Traceback (most recent call last):
    TypeError: keep_null must be True or False, found 'yes'
    """
    if isinstance(x, (bool, np.bool_)):
        return bool(cast("Any", x))
    if x is None and or_none:
        return None
    wanted = "True, False or None" if or_none else "True or False"
    raise TypeError(f"{name} must be {wanted}, found {described(x)}")


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
    whole = (isinstance(x, (int, np.integer)) and not isinstance(x, (bool, np.timedelta64))) or (
        isinstance(x, (float, np.floating)) and x.is_integer()
    )
    if whole and (least is None or x >= least) and (most is None or x <= most):
        return int(cast("int", x))
    raise ValueError(f"{name} must be a whole number{limits_text(least, most)}, found {described(x)}")


def limits_text(least: float | None, most: float | None) -> str:
    """Limits of a number in words; None is no limit.

    Examples
    --------
    >>> limits_text(1, None), limits_text(0.0, 0.5)
    (' of at least 1', ' between 0 and 0.5')
    """
    if least is not None and most is not None:
        return f" between {_plain(least)} and {_plain(most)}"
    if least is not None:
        return f" of at least {_plain(least)}"
    return "" if most is None else f" of at most {_plain(most)}"


def _plain(limit: float) -> str:
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


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
    value = real_number(x, name, "a number between 0 and 1")
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
    raise ValueError(
        f"unknown {name} {described(x)}; known are {', '.join(words)}{or_else and ' ' + or_else}{hint}"
    )


# -- levels ------------------------------------------------------------------------------------


def check_levels(levels: Any, name: str = "levels", *, open_interval: bool = False) -> NDArray:
    """Levels ``(T,)`` between 0 and 1, both included unless the interval is open, in an array of their own.

    Examples
    --------
    >>> check_levels([0.1, 1.0])
    array([0.1, 1. ])
    >>> check_levels([0.1, 1.0], open_interval=True)
    Traceback (most recent call last):
    ValueError: levels must be numbers strictly between 0 and 1, found 1
    """
    array = np.array(to_numpy(numeric_array(levels, name)), dtype=np.float64)
    check_ndim(array, name, (1,))
    if len(array) == 0:
        raise ValueError(f"{name} is empty: at least one level is needed")
    must_be_levels(array, name, open_interval=open_interval)
    return array


def must_be_levels(levels: Any, name: str, *, open_interval: bool = False) -> None:
    """Reject levels, a number or an array, that are not between 0 and 1; traced values pass.

    Examples
    --------
    >>> must_be_levels(1.0, "u")
    >>> must_be_levels(95, "u")
    Traceback (most recent call last):
    ValueError: u must be numbers between 0 and 1, found 95; levels are shares: 95% is 0.95
    >>> must_be_levels(10**400, "u")
    Traceback (most recent call last):
    ValueError: u must be numbers between 0 and 1, found inf
    >>> must_be_levels(np.array([0.5, 1.0]), "levels", open_interval=True)
    Traceback (most recent call last):
    ValueError: levels must be numbers strictly between 0 and 1, found 1
    """
    if is_traced(levels) or (isinstance(levels, float) and 0.0 < levels < 1.0):
        return
    values = np.asarray(real_number(levels, name) if isinstance(levels, (float, int)) else to_numpy(levels))
    inside = (values > 0.0) & (values < 1.0) if open_interval else (values >= 0.0) & (values <= 1.0)
    if inside.all():
        return
    found = float(values[~inside].flat[0])
    hint = f"; levels are shares: {found:g}% is {found / 100:g}" if 2.0 <= found <= 100.0 else ""
    where = "strictly between" if open_interval else "between"
    raise ValueError(f"{name} must be numbers {where} 0 and 1, found {found:g}{hint}")


# -- arrays that belong together: one library, one device, one precision --------------------------


_IN_PARTITIONS = "wellcal.dask.from_arrays(wc.Normal, loc, scale), or another family, makes predictions of it"


def is_number(x: object) -> bool:
    """True if `x` is a plain number, which stands for the same value in every row."""
    numbers = (int, float, np.integer, np.floating)
    return isinstance(x, numbers) and not isinstance(x, (bool, np.timedelta64))


def repeated(number: Any, name: str, like: Array) -> Array:
    """`number` in every entry of an array like `like`: its shape, library, device and precision."""
    value = real_number(number, name)
    if not np.isfinite(value):
        raise ValueError(f"{name} must be finite, found {number}")
    xp = namespace(like)
    if is_floating(like) and abs(value) > float(xp.finfo(like.dtype).max):
        raise ValueError(f"{name} is beyond the range of {like.dtype}: found {number}; take double precision")
    return xp.full_like(like, value)


def same_library(**named: object) -> Any:
    """The library that arrays share, or an error with the names of the arguments."""
    try:
        return namespace(*named.values())
    except TypeError as error:
        raise TypeError(f"{' and '.join(named)}: {error}") from None


def common_library_of(**named: object) -> Array | None:
    """Return the array that decides library, device and precision of all arguments; None if there is none.

    NumPy arrays are carried into another library, never the reverse. Two other libraries are an error that
    names the arguments.
    """
    arrays: list[Any] = [x for x in named.values() if is_array(x)]
    others = {name: x for name, x in named.items() if not isinstance(x, np.ndarray)}
    for name, x in others.items():
        refuse_elsewhere(x, name, _IN_PARTITIONS)
    same_library(**others)
    candidates = [x for x in arrays if not isinstance(x, np.ndarray)] or arrays
    return next((x for x in candidates if is_floating(x)), candidates[0] if candidates else None)


def same_dtype(arrays: list[Array]) -> list[Array]:
    """`arrays` of one library in the widest of their dtypes."""
    if len({str(a.dtype) for a in arrays}) == 1:
        return arrays
    xp = namespace(*arrays)
    dtype = xp.result_type(*arrays)
    return [xp.astype(a, dtype, copy=False) for a in arrays]


def as_library(x: object, like: Array, dtype: Any = None) -> Array:
    """`x` in the library and on the device of `like`, in `dtype` or its own."""
    return asarray(x, xp=namespace(like), device=device_of(like), dtype=dtype)
