"""Work cut into chunks: one budget for temporary arrays, and one loop over what fits into it.

Whoever makes arrays that grow with the data asks here how much to take at a time. Results do not depend on
the sizes beyond the rounding of sums; :func:`limited` makes them small, so that tests see many chunks with
little data.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Budget:
    """Entries of arrays that are made on the way.

    Attributes
    ----------
    work
        Of a temporary array: 16 MB of float64.
    cache
        Of an array that is gone over several times, or that meets another: 1 MiB stays in a core's cache,
        and less would make threads wait for the interpreter's lock.
    """

    work: int = 2_000_000
    cache: int = 131_072


_budget = Budget()


def budget() -> Budget:
    """The budget in force."""
    return _budget


@contextmanager
def limited(*, work: int | None = None, cache: int | None = None) -> Generator[Budget]:
    """Another budget within a ``with`` block, for all threads.

    Examples
    --------
    >>> with limited(work=10):
    ...     list(in_chunks(5, 4))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    global _budget
    before = _budget
    changes = {name: value for name, value in (("work", work), ("cache", cache)) if value is not None}
    _budget = replace(before, **changes)
    try:
        yield _budget
    finally:
        _budget = before


def in_chunks(n: int, entries: float = 1, *, within: int | None = None, multiple: int = 1) -> Iterator[slice]:
    """Slices that cover 0 .. n - 1, each with as many rows of `entries` numbers as the budget holds.

    Parameters
    ----------
    n
        Number of rows.
    entries
        Numbers that one row makes.
    within
        Entries at a time; None takes ``budget().work``.
    multiple
        Lengths are multiples of this number, but for the last one.

    Examples
    --------
    >>> list(in_chunks(10, 3, within=12))
    [slice(0, 4, None), slice(4, 8, None), slice(8, 10, None)]
    >>> list(in_chunks(0))
    []
    """
    step = rows_within(entries, within)
    step = max(multiple, step - step % multiple)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def rows_within(entries: float, within: int | None = None) -> int:
    """How many rows of `entries` numbers the budget holds, at least one.

    Examples
    --------
    >>> rows_within(300, within=1000), rows_within(3000, within=1000)
    (3, 1)
    """
    return max(1, int((_budget.work if within is None else within) // max(1.0, entries)))
