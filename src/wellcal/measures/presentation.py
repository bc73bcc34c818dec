"""How results are shown to people and handed to machines: the same for all of them."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import is_array, to_numpy
from wellcal.kernels.base import Kernel
from wellcal.kernels.plain import kernel_to_dict

Row = tuple[str, str]

_TINY = float(np.finfo(float).tiny)


class Presentable:
    """A result: a dataclass that says in a few methods what it found, and is shown like all others.

    `_headline` is its first line; `_points` are sentences below it, where there are any; `_rows` are names
    and what belongs to them. Dataclasses that derive from it are made with ``repr=False``.

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

    def _headline(self) -> str:
        raise NotImplementedError

    def _points(self) -> list[str]:
        return []

    def _rows(self) -> list[Row]:
        return []

    def __repr__(self) -> str:
        points = [f"  - {text}" for text in self._points()]
        return "\n".join([self._headline(), *points, *text_rows(self._rows())])

    def _repr_html_(self) -> str:
        """For notebooks: a table, below a list where there are points."""
        points = "".join(f"<li>{html.escape(text)}</li>" for text in self._points())
        if not points:
            return html_table(self._rows(), self._headline())
        return f"<p>{html.escape(self._headline())}</p><ul>{points}</ul>{html_table(self._rows())}"

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

    def to_json(self, **options: Any) -> str:
        """`to_dict` as JSON; `options` are those of ``json.dumps``."""
        return json.dumps(self.to_dict(), **options)


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
    """
    if pvalue <= _TINY:
        return f"p <= {_rounded_up(_TINY)}, the smallest number"
    if not at_floor(pvalue, floor):
        return f"p = {pvalue_text(pvalue)}"
    given = "resampling can" if n_resamples is None else f"{n_resamples:,} resamples can"
    return f"p <= {_rounded_up(pvalue)}, the smallest that {given} give"


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


def html_table(rows: Sequence[Row], caption: str | None = None) -> str:
    """The same as a table for notebooks."""
    cells = "".join(
        f'<tr><th style="text-align:left;font-weight:600">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(text)}</td></tr>'
        for name, text in rows
    )
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
        return plain(to_numpy(value).tolist())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return repr(value)
