"""Columns of a text whose entries stand for themselves: codes, versions, identifiers."""

from __future__ import annotations

import io
import re
from typing import Any

from wellcal.columns.number_texts import SAYS_MISSING
from wellcal.reading.errors import library

_NOT_PLAIN = r"^\s*(\+|-?0[0-9]|[0-9]+[eE][0-9]+\s*$)"  # programs write exponents with a sign
_WHOLE = r"^\s*-?[0-9]{16,}\s*$"  # with more digits than every number holds
_PADDED = r"{point}[0-9]+0\s*$"


def in_codes(texts: Any) -> tuple[Any, Any]:
    """The different texts of a column of pyarrow, and for each row which of them it has."""
    encoded = texts.dictionary_encode().combine_chunks()
    return encoded.dictionary, encoded.indices


def as_spelled(texts: Any, decimal: str = ".", *, exactly: bool = True) -> Any:
    """A column of texts as what they say, unless that would be written otherwise than they are.

    Numbers are numbers, unless one has zeros before it or a plus sign, looks like a code (12e3), has more
    digits than a number holds, or some end in zeros after the decimal point while others have another number
    of decimals: 1.10 is a version beside 1.9, and a price beside 1.95. Truth values are True and False; TRUE
    is a text, as times of day are. Dates are dates.

    Parameters
    ----------
    texts
        A chunked array of pyarrow.
    decimal
        The sign before decimals.
    exactly
        Whether texts stay texts where something would be lost; otherwise they are what pyarrow finds in them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> def kind(*texts):
    ...     return str(as_spelled(pa.chunked_array([list(texts)])).type)
    >>> kind("1.10", "1.9"), kind("1.10", "1.95"), kind("02602"), kind("12", ""), kind("10935374292672221319")
    ('string', 'double', 'string', 'int64', 'string')
    >>> kind("12e3", "100"), kind("1e-05", "1.5e+20")
    ('string', 'double')
    """
    pyarrow, arrow = library("pyarrow"), library("pyarrow.csv")
    distinct, codes = in_codes(texts)
    lines = io.BytesIO()
    arrow.write_csv(pyarrow.table({"": distinct}), lines)  # each in quotes, so that none is lost
    lines.seek(0)
    found = arrow.read_csv(
        lines,
        read_options=arrow.ReadOptions(use_threads=False, block_size=len(lines.getvalue()) + 1),
        parse_options=arrow.ParseOptions(newlines_in_values=True),
        convert_options=arrow.ConvertOptions(decimal_point=decimal, null_values=sorted(SAYS_MISSING)),
    )[0].combine_chunks()
    if exactly and not _is_kept(distinct, found, decimal):
        return texts
    return pyarrow.chunked_array([found.take(codes)])


def _is_kept(texts: Any, found: Any, decimal: str) -> bool:
    """Whether what was found in texts says all that these do."""
    types, compute = library("pyarrow.types"), library("pyarrow.compute")
    if types.is_boolean(found.type):
        return set(compute.drop_null(compute.if_else(found.is_null(), None, texts)).to_pylist()) <= {
            "True",
            "False",
        }
    if not (types.is_integer(found.type) or types.is_floating(found.type)):
        return not types.is_time(found.type)
    if compute.any(compute.match_substring_regex(texts, _NOT_PLAIN)).as_py():
        return False
    if types.is_floating(found.type):
        long = compute.match_substring_regex(texts, _WHOLE)
        if any(int(float(text)) != int(text) for text in texts.filter(long).to_pylist()):
            return False
    padded = compute.match_substring_regex(texts, _PADDED.format(point=re.escape(decimal)))
    if not compute.any(padded).as_py():
        return True
    point = compute.find_substring(texts, decimal)
    decimals = compute.subtract(compute.utf8_length(texts), point).filter(compute.greater_equal(point, 0))
    return len(compute.unique(decimals)) == 1
