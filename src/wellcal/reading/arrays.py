"""NPZ and NPY: arrays of NumPy as columns, and never an object that would have to be unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.reading.errors import ReadError, library, reading
from wellcal.reading.sources import SourceFile

_MOST_COLUMNS = 1_000_000


def array_table(source: SourceFile) -> Any:
    """Arrays as a table of pyarrow.

    Arrays ``(n,)`` and ``(n, 1)`` of an NPZ file are columns of their names, and the columns of an array
    ``p`` of shape (n, k) are ``p_0 .. p_{k-1}``. An NPY file has columns ``c_0 ..``, or those of its record
    type.
    """
    with reading(source.name, source.format):
        return _table(_columns(source), source.name)


def _columns(source: SourceFile) -> dict[str, NDArray]:
    columns: dict[str, NDArray] = {}
    arrays = _arrays(source)
    for name, array in arrays.items():
        parts = _parts(name, array, source.name)
        twice = next((part for part in parts if part in columns), None)
        if twice is not None:
            raise ReadError(f"{source.name}: two arrays make a column {twice!r}; rename one of them")
        columns.update(parts)
    if not columns:
        raise ReadError(f"{source.name}: there are no arrays in it; write it again with numpy.savez")
    first, n = next((name, len(array)) for name, array in arrays.items())
    for name, array in arrays.items():
        if len(array) != n:
            remedy = "write arrays of one length"
            if array.ndim == 2 and array.shape[1] == n:
                remedy = f"transpose? write {name}.T, of shape {array.T.shape}"
            raise ReadError(
                f"{source.name}: arrays must have a row for each case, found {n} rows in {first!r} and "
                f"{len(array)} in {name!r}; {remedy}"
            )
    return columns


def _arrays(source: SourceFile) -> Mapping[str, NDArray]:
    whole = source.whole()
    with open(whole, "rb") if isinstance(whole, str) else whole as file:  # NumPy leaves broken ones open
        try:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return {"c": cast("NDArray", found)}
            return {name: found[name] for name in found.files}
        except ValueError as error:
            if "allow_pickle" in str(error) or "Object arrays" in str(error):
                raise ReadError(
                    f"{source.name}: it holds Python objects, which are never read: unpickling may run any "
                    "code; write arrays of numbers or texts"
                ) from error
            raise
        except zipfile.BadZipFile as error:
            raise ReadError(
                f"{source.name}: it is no whole NPZ file ({error}); write or copy it again"
            ) from error


def _parts(name: str, array: NDArray, file: str) -> dict[str, NDArray]:
    if array.dtype.names is not None and array.ndim == 1:
        return {field: array[field] for field in array.dtype.names}
    if array.dtype.kind not in "biufUSmM":
        raise ReadError(
            f"{file}: array {name!r} holds values of dtype {array.dtype}; write numbers, truth values or "
            "texts"
        )
    if array.ndim == 1:
        return {"c_0" if name == "c" else name: array}
    if array.ndim == 2 and array.shape[1] == 1:
        return _parts(name, array[:, 0], file)
    if array.ndim == 2 and array.shape[1] <= _MOST_COLUMNS:
        return {f"{name}_{k}": array[:, k] for k in range(array.shape[1])}
    raise ReadError(
        f"{file}: array {name!r} has shape {array.shape}; columns come from arrays (n,) and (n, k): write "
        "one array for each"
    )


def _table(columns: dict[str, NDArray], file: str) -> Any:
    pyarrow = library("pyarrow")
    arrays: dict[str, Any] = {}
    for name, array in columns.items():
        if array.ndim > 1:
            raise ReadError(
                f"{file}: field {name!r} has vectors in it; write a field for each of their entries"
            )
        text = array.dtype.kind in "US"
        plain = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False))
        arrays[name] = pyarrow.array(plain.astype(np.str_).tolist() if text else plain)
    return pyarrow.table(arrays)
