"""Names of classes: their sources, their checks, and the positions of targets among them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from wellcal._arrays.checks import label_array, plain_array, real_array
from wellcal._arrays.copies import own_copy
from wellcal._arrays.namespaces import Array, NDArray, attribute, to_numpy
from wellcal._arrays.warnings import advise
from wellcal.columns.frames import names_text
from wellcal.columns.labels import is_missing

_SHOWN = 6  # names that an error lists
_WRITTEN = ("nan", "None")  # what NumPy makes of missing labels in a list of texts

NUMBERS_WANTED = "give the numbers that classes stand for as support=, or of columns their order as grades="
"""What to do where classes are asked for what numbers and grades have; commands have an option for it."""


def is_ordered(predictions: Any) -> bool:
    """True if classes are grades in an order: those that have a number each.

    Examples
    --------
    >>> import wellcal as wc
    >>> is_ordered(wc.Categorical([[0.2, 0.8]], support=[1, 2])), is_ordered(wc.Bernoulli([0.2]))
    (True, False)
    """
    support = getattr(predictions.parts[0], "support", None)
    return support is not None and np.ndim(support) == 1


def column_names(table: Any) -> Any:
    """Names of the columns of a data frame, which are those of the classes; None where it has none.

    Columns that are numbered from 0, as those of a frame that was made from an array are, have no names, and
    neither have polars' ``column_0``, ``column_1`` and so on. An ordered index of pandas stays one.

    Examples
    --------
    >>> import pandas as pd
    >>> column_names(pd.DataFrame({"no": [0.2], "yes": [0.8]}))
    ['no', 'yes']
    >>> column_names(pd.DataFrame([[0.2, 0.8]])) is None
    True
    """
    if type(table) is np.ndarray or isinstance(table, (list, tuple)):
        return None
    xarray = sys.modules.get("xarray")
    if xarray is not None and isinstance(table, xarray.DataArray):
        names = table.indexes.get(table.dims[1]) if len(table.dims) == 2 else None
    else:
        names = attribute(table, "columns")
        if names is None or callable(names) or attribute(table, "shape") is None:
            return None
        names = attribute(table, "column_names", names)  # of a table of pyarrow, whose columns are the data
    if names is None:
        return None
    listed: list[Any] = list(names)
    numbered = [list(range(len(listed))), [f"column_{k}" for k in range(len(listed))]]
    if listed in numbered:
        return None
    return names if order_of(names) is not None else listed


def order_of(labels: Any) -> NDArray | None:
    """Places of `labels` among ordered categories, from 0; None where they have no order.

    Examples
    --------
    >>> import pandas as pd
    >>> grades = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    >>> order_of(grades), order_of(pd.Categorical(["high", "low"], dtype=grades)), order_of(["low", "high"])
    (array([0., 1., 2.]), array([2., 0.]), None)
    """
    kind = ordered_categories(labels)
    if kind is None:
        return None
    physical = attribute(labels, "to_physical")  # of a column of polars
    codes = attribute(attribute(labels, "cat", labels), "codes") if physical is None else physical()
    found = np.arange(len(kind)) if codes is None else np.asarray(codes)
    return found.astype(np.float64)


def ordered_categories(x: Any) -> Any:
    """Categories of an ordered categorical of pandas (its dtype, array, index or column); None otherwise.

    An Enum of polars has them too, and columns of pyarrow that are ordered dictionaries: either of them, in a
    file of Parquet.

    Examples
    --------
    >>> import pyarrow as pa
    >>> codes = pa.array([1, 0], pa.int8())
    >>> ordered_categories(pa.DictionaryArray.from_arrays(codes, ["low", "high"], ordered=True))
    ['low', 'high']
    >>> import polars as pl
    >>> ordered_categories(pl.Series(["high", "low"], dtype=pl.Enum(["low", "high"])))
    ['low', 'high']
    """
    if type(x) is np.ndarray:
        return None
    library = type(x).__module__.partition(".")[0]
    if library == "polars":
        kind = attribute(x, "dtype", x)
        return list(kind.categories) if type(kind).__name__ == "Enum" else None
    if library == "pyarrow":
        kind = attribute(x, "type")
        if attribute(kind, "ordered") is not True:
            return None
        parts = x.unify_dictionaries().chunks if hasattr(x, "unify_dictionaries") else [x]
        return parts[0].dictionary.to_pylist() if parts else None
    if "pandas" not in sys.modules:
        return None
    of_dtype = attribute(x, "categories") is None or attribute(x, "ordered") is None
    kind: Any = attribute(x, "dtype") if of_dtype else x
    return kind.categories if attribute(kind, "ordered") is True else None


def advise_of_unpredicted(grades: Any, labels: NDArray) -> None:
    """Say which grades have no column of probabilities, where there are such.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True, action="always") as seen:
    ...     advise_of_unpredicted(["low", "high", "top"], np.array(["low", "high"]))
    >>> print(seen[0].message)
    y has the grade 'top', which is not among the classes that are predicted: it is left out of their order
    """
    places = find_labels(labels, np.asarray(grades))
    rest = [str(grade) for grade, place in zip(grades, places, strict=True) if place < 0]
    if rest:
        which, are, it = ("grade", "is", "it is") if len(rest) == 1 else ("grades", "are", "they are")
        advise(
            f"y has the {which} {names_text(rest)}, which {are} not among the classes that are predicted: "
            f"{it} left out of their order"
        )


def names_of(classes: Any) -> Any:
    """`classes` as labels: those of a dtype of pandas are its categories."""
    known = hasattr(classes, "categories") and not hasattr(classes, "__len__")
    return classes.categories if known else classes


def names_wanted(y: Any, name: str, count: int, family: str) -> str:
    """Return the remedy for targets that are names if `count` predicted classes have none; "" for others.

    Examples
    --------
    >>> print(names_wanted(["a", "b", "c"], "y", 2, "Bernoulli"))
    y has the names 'a', 'b', 'c': 3 for two classes; Categorical(probs, classes=...) has ...
    >>> names_wanted([0.5, 1.0], "y", 2, "Bernoulli")
    ''
    """
    try:
        array = to_numpy(label_array(y, name))
    except (TypeError, ValueError):
        return ""
    if array.dtype.kind not in "UTSO" or array.ndim != 1 or not all(isinstance(x, str) for x in array[:1]):
        return ""
    grades = ordered_categories(y)
    categories = attribute(attribute(y, "dtype", y), "categories")
    known = sorted({str(x) for x in array.tolist()}) if categories is None else [str(x) for x in categories]
    names, between = ("names", ", ") if grades is None else ("grades", " < ")
    has = f"{name} has the {names} {_listed(known, between)}"
    if len(known) > count:
        what = "two classes" if family == "Bernoulli" else f"{count} columns of probs"
        remedy = "Categorical(probs, classes=...) has a column for each of them"
        if len(set(array.tolist())) <= count:
            remedy = f"not all of them occur: leave those out, {name}.remove_unused_categories()"
        return f"{has}: {len(known)} for {what}; {remedy}"
    listed = _listed(known) + (", ..." if len(known) < count else "")
    of_second = f" if probs are those of {known[1]!r}" if family == "Bernoulli" and len(known) == 2 else ""
    return (
        f"{has}, and the predictions have none: say which column of probs is which, as in "
        f"{family}(probs, classes=({listed})){of_second}"
    )


def class_hint(labels: NDArray, targets: NDArray, strange: NDArray, name: str) -> str:
    """Return the hint of an error about `targets` of which some are `strange`: none of the classes.

    Examples
    --------
    >>> numbers = np.arange(3)
    >>> class_hint(numbers, np.array([1, 3]), np.array([3]), "y")
    'the classes are 0, 1, 2; if these are counted from 1, subtract 1'
    """
    known, count = labels.tolist(), len(labels)
    hint = f"the classes are {_listed(known)}"
    if any(is_missing(label) or str(label) in _WRITTEN for label in strange.ravel().tolist()):
        return f"{hint}; what is missing: drop its row of {name} and of the predictions"
    if targets.ndim > 1 or targets.dtype.kind not in "biuf":
        names, first = list(map(str, known)), str(known[0])
        for start in (first[:k] for k in range(1, len(first))):
            columns = {f"{start}{label}" for label in strange.tolist()}
            # Names of columns begin alike, and with more than a digit.
            alike = any(map(str.isalpha, start)) and all(name.startswith(start) for name in names)
            if alike and columns <= set(names):
                return f'{hint}; if these are names of columns, give as_predictions(frame, probs="{start}*")'
        return hint
    first = int(targets.min() > 0)
    counts = targets.dtype.kind != "b" and np.isin(targets, np.arange(first, first + count)).all()
    if labels.dtype.kind not in "biuf":
        hint += f"; give {name} as these"
        if counts:
            numbers = _listed(list(range(first, first + count)))
            return f"{hint}, or, if its numbers count the classes in this order, classes=[{numbers}]"
        false_and_true = targets.dtype.kind == "b" and count == 2
        return hint + (", or, if these are False and True, classes=[False, True]" if false_and_true else "")
    return hint + (
        "; if these are counted from 1, subtract 1" if counts and known == list(range(count)) else ""
    )


def _listed(labels: list[Any], between: str = ", ") -> str:
    return between.join(map(repr, labels[:_SHOWN])) + (f"{between}..." if len(labels) > _SHOWN else "")


def checked_labels(classes: Any, count: int, of_what: str = "columns of probs") -> NDArray:
    """One distinct label for each class, as an array of NumPy."""
    array = own_copy(to_numpy(label_array(classes, "classes")))
    if array.ndim != 1:
        raise ValueError(
            f"classes must be 1-dimensional, found shape {array.shape}; vectors are given as support; names "
            "of columns of several levels are those of one of them (columns.get_level_values(-1))"
        )
    if len(array) != count:
        raise ValueError(f"classes must have one label for each of the {count} {of_what}, found {len(array)}")
    items = array.tolist()
    if missing := [k for k, label in enumerate(items) if label is not None and is_missing(label)]:
        raise ValueError(
            f"classes has no label in position {missing[0]}: found {items[missing[0]]!r}, which no target "
            "equals; give the class a name"
        )
    try:
        distinct = len(set(items))
    except TypeError:
        raise TypeError(
            "classes must be labels such as numbers or texts: one of them cannot be hashed"
        ) from None
    if distinct < count:
        raise ValueError("classes must be distinct: a label occurs twice")
    return array


def checked_support(support: Any, count: int) -> NDArray:
    """One distinct number or vector for each class."""
    array = real_array(to_numpy(plain_array(support, "support")), "support", ndim=(1, 2))
    if len(array) != count:
        raise ValueError(
            f"support must have one value for each of the {count} columns of probs, found {len(array)}"
        )
    if len(np.unique(array, axis=0)) < count:
        raise ValueError(
            "support must be distinct: a value occurs twice; add up the probabilities of equal values"
        )
    return array.astype(np.float64)


def find_labels(labels: NDArray, targets: NDArray) -> NDArray:
    """Return the position of each of `targets` in `labels`, numbers or vectors; -1 for those without one."""
    vectors = labels.ndim == 2
    if vectors and targets.dtype.kind not in "biuf":
        raise TypeError(f"targets must be numeric, found dtype {targets.dtype}")
    if labels.dtype.kind in "biuf" and targets.dtype.kind == "f":
        labels = labels.astype(targets.dtype)  # 0.1 in single precision is not 0.1 in double
    numeric = labels.dtype.kind in "biuf" and targets.dtype.kind in "biuf"
    if not vectors and (numeric or labels.dtype.kind == targets.dtype.kind != "O"):
        order = np.argsort(labels)
        position = order[np.minimum(np.searchsorted(labels[order], targets), len(labels) - 1)]
        return np.where(labels[position] == targets, position, -1)
    table: dict[Any, int] = {}
    for position, label in enumerate(labels.tolist()):
        table[tuple(label) if vectors else label] = position
    rows = targets.reshape(-1, targets.shape[-1]).tolist() if vectors else targets.ravel().tolist()
    found = [table.get(tuple(row) if vectors else row, -1) for row in rows]
    return np.asarray(found, dtype=np.int64).reshape(targets.shape[:-1] if vectors else targets.shape)


def find_traced(xp: Any, targets: Array, labels: NDArray, name: str) -> Array:
    """Return the positions of targets that JAX traces, which can only be compared with numbers."""
    if labels.dtype.kind not in "biuf":
        raise TypeError(f"{name} cannot be traced: labels that are not numbers are looked up outside of jit")
    table = xp.asarray(labels.astype(np.float64))
    same = (
        targets[..., None] == table if labels.ndim == 1 else xp.all(targets[..., None, :] == table, axis=-1)
    )
    return xp.where(xp.any(same, axis=-1), xp.argmax(same, axis=-1), -1)
