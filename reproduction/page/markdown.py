"""Pieces of a Markdown page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    r"""A table; the first column is text, the others are numbers.

    Examples
    --------
    >>> print(*table(["name", "value"], [["a", "1"]]), sep="\n")
    | name | value |
    |---|---:|
    | a | 1 |
    <BLANKLINE>
    """
    rule = "|---|" + "---:|" * (len(head) - 1)
    return [_row(head), rule, *(_row(row) for row in rows), ""]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def paragraph(text: str) -> list[str]:
    r"""A paragraph on one line, from text that is broken for the reader of the source.

    Examples
    --------
    >>> paragraph("a\n   b")
    ['a b', '']
    """
    return [" ".join(text.split()), ""]


def image(text: str, name: str) -> list[str]:
    """A figure of the page."""
    return [f"![{text}](reproduction/figures/{name}.svg)", ""]


def number(value: float, digits: int = 3) -> str:
    """A number with that many significant digits, in powers of ten where it is small or large.

    Examples
    --------
    >>> number(0.012345), number(1.2345e-7), number(0.0)
    ('0.0123', '1.23e-07', '0')
    """
    if value == 0.0:
        return "0"
    return f"{value:#.{digits}g}".rstrip(".") if 1e-3 <= abs(value) < 1e5 else f"{value:.{digits - 1}e}"


def mark(matched: bool) -> str:
    """Whether a number is matched, in a word."""
    return "yes" if matched else "**no**"


def duration(seconds: float) -> str:
    """Seconds with a unit that suits them.

    Examples
    --------
    >>> duration(3.2e-6), duration(0.0321), duration(5.0)
    ('3.2 µs', '32 ms', '5.0 s')
    """
    for unit, size in (("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 1e3 * size * 0.9995:
            scaled = seconds / size
            return f"{scaled:.1f} {unit}" if scaled < 10 else f"{scaled:.0f} {unit}"
    return f"{seconds:.1f} s"
