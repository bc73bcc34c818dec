"""Numbers of things in words."""

from __future__ import annotations


def how_many(count: int, what: str = "case") -> str:
    """A number of things, one of which is `what`.

    Examples
    --------
    >>> how_many(1), how_many(1234), how_many(0, "group"), how_many(1, "row")
    ('1 case', '1,234 cases', '0 groups', '1 row')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"
