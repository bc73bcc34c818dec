"""How results are shown to people and handed to machines."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import to_numpy
from wellcal.kernels.base import Kernel

Row = tuple[str, str]


def pvalue_text(pvalue: float) -> str:
    """A p-value with three digits.

    Examples
    --------
    >>> pvalue_text(0.04567), pvalue_text(3e-7)
    ('0.0457', '3.0e-07')
    """
    return f"{pvalue:.3g}" if pvalue >= 1e-4 else f"{pvalue:.1e}"


def text_rows(rows: Sequence[Row]) -> list[str]:
    """Names and what is told of them, in two columns.

    Examples
    --------
    >>> text_rows([("p", "0.3"), ("cases", "12")])
    ['  p      0.3', '  cases  12']
    """
    width = max(len(name) for name, _ in rows)
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
    """Values that JSON knows, numbers that it does not know as text."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Kernel):
        return repr(value)
    try:
        return float(to_numpy(value))
    except (TypeError, ValueError):
        return repr(value)
