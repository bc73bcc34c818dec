"""How results are shown to people and handed to machines: the same for all of them."""

from __future__ import annotations

import html
import importlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, NamedTuple, Self, cast, overload

import numpy as np

from wellcal._arrays.characters import writable
from wellcal._arrays.equality import ByValue, same
from wellcal._arrays.files import check_suffix, write_whole
from wellcal._arrays.namespaces import is_array, is_traced, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.schema import (
    Check,
    Schema,
    anything,
    as_it_is,
    optional,
    parse_json,
    read_json,
    reading,
    text,
)
from wellcal.kernels.base import Kernel
from wellcal.kernels.serialization import kernel_to_dict, read_kernel

Row = tuple[str, str]

_TINY = float(np.finfo(float).tiny)


class InWords(NamedTuple):
    """What people see of a result, for pages and terminals.

    Attributes
    ----------
    headline
        One sentence.
    points
        Sentences below it; there may be none.
    rows
        Names and what belongs to them.
    """

    headline: str
    points: list[str]
    rows: list[Row]


class Shown:
    """Something that is shown like all results: in words, on a page, in pictures, and as JSON.

    `_headline` is its first line; `_points` are sentences below it, where there are any; `_rows` are names
    and what belongs to them; `to_dict` is all of it as plain values.
    """

    def _headline(self) -> str:
        raise NotImplementedError

    def _points(self) -> list[str]:
        return []

    def _rows(self) -> list[Row]:
        return []

    def in_words(self) -> InWords:
        """What people see of it: headline, points below it, and a table of names and texts."""
        return InWords(self._headline(), self._points(), self._rows())

    @property
    def figures(self) -> Mapping[str, Any]:
        """Pictures by name, drawn when they are looked at, the most telling first.

        Each has a `title`, the `question` that it answers, matplotlib's `figure`, and `svg()`. Tests,
        estimates, comparisons, witnesses, monitors, plans and reports have some, and so have their segments
        and what is mended; a finding, a group, an example, a yardstick and a list of choices are words, whose
        pictures are those of the result that they are a part of. There are none for results that were
        stored and do not know their cases any more, for scores from another process, for estimates with
        weights, for predictions of objects, and for scores of more than 100,000 cases.
        """
        # From above: rooms that draw know results, and results no rooms that draw.
        return importlib.import_module("wellcal.reporting").pictures_of(self)

    @overload
    def to_html(self, path: None = None) -> str: ...

    @overload
    def to_html(self, path: str | os.PathLike[str]) -> None: ...

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Make a page in one file that needs nothing else: what the result says, and its pictures.

        Parameters
        ----------
        path
            Name of a file that ends in .html, written in full or not at all; None writes nothing.

        Returns
        -------
        str or None
            The page; None if it was written to `path`.
        """
        if path is not None:
            check_suffix(path, "a page", ".html", ".htm", "")
        page: str = importlib.import_module("wellcal.reporting.page").page_of(self)
        if path is None:
            return page
        return write_whole(path, page)

    def __repr__(self) -> str:
        points = [f"  - {text}" for text in self._points()]
        return writable("\n".join([self._headline(), *points, *text_rows(self._rows())]))

    def _repr_html_(self) -> str:
        """For notebooks: a table, below a list where there are points."""
        points = "".join(f"<li>{html.escape(text)}</li>" for text in self._points())
        if not points:
            return writable(html_table(self._rows(), self._headline()))
        above = f"<p>{html.escape(self._headline())}</p><ul>{points}</ul>"
        return writable(above + html_table(self._rows()))

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        raise NotImplementedError

    def to_json(self, **options: Any) -> str:
        """`to_dict` as JSON; `options` are those of ``json.dumps``."""
        return json.dumps(self.to_dict(), **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_json` to a file whose name ends in .json, in full or not at all."""
        check_suffix(path, "a result", ".json", "")
        write_whole(path, self.to_json(allow_nan=False, indent=2) + "\n")


class Presentable(Shown, ByValue):
    """A result: a dataclass that says in a few methods what it found, and is shown like all others.

    `_headline` is its first line; `_points` are sentences below it, where there are any; `_rows` are names
    and what belongs to them. Dataclasses that derive from it are made with ``repr=False``.

    Two results of one class are equal where they say the same: where all that `to_dict` writes is, and the
    kernels are. So a result that was stored as JSON is equal to the one that is read from it.

    `checks` has a check for each key that `to_dict` writes, with which `from_dict` reads it; without them a
    result cannot be read again. `not_read` are the keys that say what other keys say too.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, repr=False)
    ... class Found(Presentable):
    ...     value: float
    ...
    ...     def _headline(self):
    ...         return f"Found {self.value}"
    ...
    ...     def _rows(self):
    ...         return [("unit", "metres")]
    >>> Found(3.0)
    Found 3.0
      unit  metres
    >>> Found(3.0).to_dict()
    {'value': 3.0}
    """

    not_read: ClassVar[tuple[str, ...]] = ()
    added: ClassVar[Mapping[str, Any]] = {}
    """Keys that earlier versions did not write, and what their fields were."""
    called: ClassVar[Mapping[str, str]] = {}
    """Fields by the key that stands for them, where it is not their name."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        out: dict[str, Any] = {}
        for field in fields(cast("Any", self)):
            value = getattr(self, field.name)
            if field.name == "kernel":
                out["kernel"] = None if value is None else kernel_to_dict(value)
                out["kernel_text"] = None if value is None else repr(value)
            else:
                out[field.name] = plain(value)
        return out

    # -- read again --------------------------------------------------------------------------

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """Checks of the keys that are read; `kernel` is handed on to results within this one."""
        raise TypeError(f"{cls.__name__} is written for others to read, and cannot be read again")

    @classmethod
    def from_dict(cls, plain: dict[str, Any], *, kernel: Kernel | None = None) -> Self:
        """The result that `to_dict` described: numbers as floats, arrays as NumPy's.

        Parameters
        ----------
        plain
            What `to_dict` returned. Everything in it is checked; errors name the key.
        kernel
            The kernel, where plain values cannot hold it because there is a function in it; None leaves it
            out.
        """
        with reading(f"a stored {cls.__name__}"):
            return cls.read(plain, kernel=kernel)

    @classmethod
    def from_json(cls, given: str | bytes, *, kernel: Kernel | None = None) -> Self:
        """The result that `to_json` wrote; `kernel` as in `from_dict`."""
        with reading(f"a stored {cls.__name__}"):
            return cls.read(parse_json(given), kernel=kernel)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, kernel: Kernel | None = None) -> Self:
        """The result that `save` wrote; `kernel` as in `from_dict`."""
        with reading(f"a stored {cls.__name__}", os.fspath(path)):
            return cls.read(read_json(path), kernel=kernel)

    @classmethod
    def read(cls, plain: Any, name: str = "", *, kernel: Kernel | None = None) -> Self:
        """The same for results within others; errors name the key alone."""
        aside = dict.fromkeys(cls.not_read, anything)
        may_be_missing = {**dict.fromkeys(cls.not_read), **cls.added}
        values = Schema({**cls.checks(kernel), **aside}, may_be_missing)(plain, name)
        if "kernel" in values:
            path = f"{name}.kernel" if name else "kernel"
            values["kernel"] = read_kernel(values["kernel"], values.pop("kernel_text"), kernel, path)
        result = cls(**{cls.called.get(key, key): values[key] for key in values if key not in cls.not_read})
        result.check_stored(name)
        return result

    def check_stored(self, name: str) -> None:
        """Refuse fields that do not go together."""

    def _check_lengths(self, name: str, as_many_as: str, length: int, *keys: str) -> None:
        for key in keys:
            found = len(getattr(self, key))
            if found != length:
                path = f"{name}.{key}" if name else key
                raise ValueError(f"{path} must have as many entries as {as_many_as}, {length}, found {found}")

    def __getstate__(self) -> dict[str, Any]:
        """What travels to other processes: pictures are drawn there again."""
        return {name: value for name, value in self.__dict__.items() if name != "_pictures"}

    # -- compared ----------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self):
            return False if is_array(other) else NotImplemented
        names = [field.name for field in fields(cast("Any", self)) if field.compare]
        return all(same(_compared(getattr(self, name)), _compared(getattr(other, name))) for name in names)

    def __hash__(self) -> int:
        """From texts and whole numbers: equal results have the same, arrays and dictionaries none."""
        values = [getattr(self, field.name) for field in fields(cast("Any", self)) if field.compare]
        return hash((type(self), *(value for value in values if isinstance(value, (str, int)))))


def within(cls: type[Presentable], kernel: Kernel | None) -> Check:
    """The check of a result inside of another one, which may have the same kernel."""
    return lambda plain, name: cls.read(plain, name, kernel=kernel)


KERNEL: Mapping[str, Check] = {"kernel": as_it_is, "kernel_text": optional(text)}
"""Checks of what `to_dict` writes about a kernel."""


def _compared(value: Any) -> Any:
    """What of a field is compared: kernels and results themselves, the rest as it is written."""
    if isinstance(value, (Kernel, Presentable)) or is_traced(value):
        return value
    try:
        return plain(value)
    except Exception:  # values that cannot be looked at are compared as objects
        return value


def pvalue_text(pvalue: float) -> str:
    """A p-value with three digits.

    Examples
    --------
    >>> pvalue_text(0.04567), pvalue_text(3e-7)
    ('0.0457', '3.0e-07')
    """
    return f"{pvalue:.3g}" if pvalue >= 1e-4 else f"{pvalue:.1e}"


def pvalue_phrase(pvalue: float, floor: float | None = None, n_resamples: int | None = None) -> str:
    """A p-value as a phrase; one at its floor is a bound, and says what bounds it.

    Examples
    --------
    >>> pvalue_phrase(0.04567, 0.001, 999), pvalue_phrase(0.0)
    ('p = 0.0457', 'p <= 2.3e-308, the smallest number')
    >>> pvalue_phrase(0.001, 0.001, 999)
    'p <= 0.001, the smallest that 999 resamples can give'
    >>> pvalue_phrase(0.5, 0.5, 1)
    'p <= 0.5, the smallest that 1 resample can give'
    """
    told = pvalue_sign(pvalue, floor)
    if pvalue <= _TINY:
        return f"{told}, the smallest number"
    if not at_floor(pvalue, floor):
        return told
    given = "resampling can" if n_resamples is None else f"{how_many(n_resamples, 'resample')} can"
    return f"{told}, the smallest that {given} give"


def pvalue_sign(pvalue: float, floor: float | None = None) -> str:
    """A p-value with its sign, where there is no room for what bounds it.

    Examples
    --------
    >>> pvalue_sign(0.04567, 0.001), pvalue_sign(1 / 21053, 1 / 21053), pvalue_sign(0.0)
    ('p = 0.0457', 'p <= 4.8e-05', 'p <= 2.3e-308')
    """
    if pvalue <= _TINY:
        return f"p <= {_rounded_up(_TINY)}"
    return f"p <= {_rounded_up(pvalue)}" if at_floor(pvalue, floor) else f"p = {pvalue_text(pvalue)}"


def at_floor(pvalue: float, floor: float | None) -> bool:
    """Whether a p-value is the smallest that its resamples can give."""
    return floor is not None and pvalue <= floor * (1.0 + 1e-9)


def _rounded_up(pvalue: float) -> str:
    """As `pvalue_text`, but never below the value."""
    text = pvalue_text(pvalue)
    step = 10.0 ** (math.floor(math.log10(pvalue)) - (2 if pvalue >= 1e-4 else 1))
    return text if float(text) >= pvalue * (1.0 - 1e-9) else pvalue_text(pvalue + 0.5 * step)


def text_rows(rows: Sequence[Row]) -> list[str]:
    """Names and what belongs to them, in two columns.

    Examples
    --------
    >>> text_rows([("p", "0.3"), ("cases", "12")])
    ['  p      0.3', '  cases  12']
    """
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {name.ljust(width)}  {text}" for name, text in rows]


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table with a row of names above it, all columns but the first right-aligned.

    Examples
    --------
    >>> text_table(["level", "covered"], [["50%", "48.2%"], ["95%", "100%"]])
    ['  level  covered', '  50%      48.2%', '  95%       100%']
    """
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    aligned = [
        [cell.rjust(width) if k else cell.ljust(width) for k, (cell, width) in enumerate(pairs)]
        for pairs in (zip(line, widths, strict=True) for line in lines)
    ]
    return ["  " + "  ".join(line) for line in aligned]


def html_grid(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """The same for notebooks."""
    names = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    cells = "".join(
        "<tr>" + "".join(f'<td style="text-align:right">{html.escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><caption>{html.escape(caption)}</caption><tr>{names}</tr>{cells}</table>"


def html_table(rows: Sequence[Row], caption: str | None = None) -> str:
    """The same as a table for notebooks."""
    cells = "".join(
        f'<tr><th style="text-align:left;font-weight:600">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(text)}</td></tr>'
        for name, text in rows
    )
    if caption and not rows:  # a caption is no wider than its table
        return f'<table><tr><td style="text-align:left">{html.escape(caption)}</td></tr></table>'
    above = "" if caption is None else f"<caption>{html.escape(caption)}</caption>"
    return f"<table>{above}{cells}</table>"


def plain(value: Any) -> Any:
    """Values that JSON knows; numbers that it does not know, and anything else, as text.

    Examples
    --------
    >>> plain({"levels": np.array([0.5, np.inf]), "kind": len})
    {'levels': [0.5, 'inf'], 'kind': '<built-in function len>'}
    """
    if isinstance(value, Presentable):
        return value.to_dict()
    if isinstance(value, Kernel):
        return repr(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if is_array(value):
        numbers = to_numpy(value)
        known = numbers.dtype.kind in "biu" or (numbers.dtype.kind == "f" and np.isfinite(numbers).all())
        return numbers.tolist() if known else plain(numbers.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return repr(value)
