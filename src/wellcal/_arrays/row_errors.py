"""Errors about single rows, which carry the row numbers, the argument and the remedy.

A reader of files counts rows as the file does, and a caller that knows a better remedy gives it, without
taking a sentence to pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Self


@dataclass(frozen=True)
class Row:
    """A row, counted from 0, as part of a message."""

    number: int

    def __str__(self) -> str:
        return f"row {self.number}"


class RowError(ValueError):
    """Rows of what was given cannot be used.

    Parameters
    ----------
    parts
        What is wrong, in pieces: words, and rows between them.
    argument
        Name of what was given.
    remedy
        What to do about it.

    Notes
    -----
    ``error.argument`` and ``error.remedy`` are as given, ``error.row`` is the first row that the message is
    about, counted from 0.

    Examples
    --------
    >>> import wellcal as wc
    >>> try:
    ...     wc.Normal([0.0, 1.0, 2.0], [1.0, -1.0, 1.0])
    ... except wc.RowError as error:
    ...     print(error.argument, error.row, error.remedy, sep=" | ")
    scale | 1 | check the model's output
    """

    def __init__(self, *parts: str | Row, argument: str = "", remedy: str = "") -> None:
        super().__init__(*parts)  # pickled with them
        self.argument = argument
        self.remedy = remedy

    @property
    def row(self) -> int:
        """The first row that the message is about, counted from 0."""
        return next(part.number for part in self.args if isinstance(part, Row))

    def __str__(self) -> str:
        return self.told()

    def told(self, place: Callable[[int], str] | None = None) -> str:
        """The message, with other words for its rows where there are better ones.

        Examples
        --------
        >>> error = RowError("y is not finite in ", Row(3), ": found nan", remedy="drop that row")
        >>> error.told(lambda row: f"line {row + 2}")
        'y is not finite in line 5: found nan; drop that row'
        """
        pieces = (
            place(part.number) if place is not None and isinstance(part, Row) else str(part)
            for part in self.args
        )
        return "".join(pieces) + (f"; {self.remedy}" if self.remedy else "")

    def counted(self, number: Callable[[int], int]) -> Self:
        """Return the error with its rows counted in another way."""
        return self._like(
            tuple(Row(number(part.number)) if isinstance(part, Row) else part for part in self.args)
        )

    def retold(self, before: str, remedy: str) -> Self:
        """Return the error with words before it, and another remedy."""
        return self._like((before, *self.args), remedy=remedy)

    def _like(self, parts: tuple[Any, ...], **changed: Any) -> Self:
        made = type(self).__new__(type(self))
        made.args = parts
        vars(made).update(vars(self) | changed)
        return made


class RowTypeError(RowError, TypeError):
    """Rows of what was given are of the wrong type: an error about rows, and a TypeError."""


# As users call it, and see it below a traceback.
RowError.__module__ = "wellcal"
__test__ = {"RowError": RowError.__doc__}


def retell(error: TypeError | ValueError, before: str = "", *, more: str = "") -> NoReturn:
    """Raise an error again, with words before it and a further remedy; one about rows remains one.

    Parameters
    ----------
    error
        What was raised.
    before
        Words before its message.
    more
        What else may be wrong, or can be done about it.

    Examples
    --------
    >>> retell(ValueError("y and predictions must have the same length"), more="transpose?")
    Traceback (most recent call last):
    ValueError: y and predictions must have the same length; transpose?
    """
    if isinstance(error, RowError):
        raise error.retold(before, "; ".join(filter(None, (error.remedy, more)))) from error
    kind = TypeError if isinstance(error, TypeError) else ValueError
    raise kind(f"{before}{error}" + (f"; {more}" if more else "")) from error
