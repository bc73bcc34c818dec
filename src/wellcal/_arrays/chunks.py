"""Work cut into chunks and tiles: one budget for temporary arrays, and one loop over what fits into it.

Code that makes arrays that grow with the data asks here how much to take at a time. Results do not depend on
the sizes beyond the rounding of sums; :func:`limited` makes them small, so that tests see many chunks with
little data.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from wellcal._arrays.checks import described
from wellcal._arrays.namespaces import Array, NDArray, is_on_accelerator
from wellcal._arrays.progress import reporter

Chunk: TypeAlias = "slice[int, int]"
"""Rows that follow each other: a slice whose two ends are numbers."""


@dataclass
class Budget:
    """Entries of arrays that are made on the way.

    Attributes
    ----------
    work
        Of a temporary array: 16 MB of float64.
    cache
        Of an array that is read several times, or combined with another: 1 MiB stays in a core's cache,
        and less would make threads wait for the interpreter's lock.
    device
        Of a temporary array on an accelerator, where each call costs as much as millions of entries: 64 MB
        of float64.
    most
        Of an array that a user's options ask for and that cannot be cut: 8 GiB of float64.
    """

    work: int = 2_000_000
    cache: int = 131_072
    device: int = 2**23
    most: int = 2**30


budget = Budget()
"""The budget in force."""


@contextmanager
def limited(**limits: int) -> Generator[Budget]:
    """Another budget within a ``with`` block, for all threads.

    Examples
    --------
    >>> with limited(work=10):
    ...     list(in_chunks(5, 4))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    before = dict(vars(budget))
    vars(budget).update(limits)
    try:
        yield budget
    finally:
        vars(budget).update(before)


def entries_for(like: Array, on_host: int | None = None) -> int:
    """Return the entries of a temporary array next to `like`: `on_host` or ``budget.work`` off accelerators.

    Examples
    --------
    >>> entries_for(np.zeros(3)), entries_for(np.zeros(3), 10)
    (2000000, 10)
    """
    return budget.device if is_on_accelerator(like) else budget.work if on_host is None else on_host


def keep_freed_memory() -> None:
    """Let the C library keep freed arrays up to the size of temporary ones, not return each to the system.

    Its threshold for doing so adapts to the largest block freed; without this, page faults take longer
    than the arithmetic.
    """
    np.empty(budget.work)


def check_size(entries: int, name: str, value: object) -> None:
    """Reject an option that asks for more memory than there may be, with how much that is.

    Examples
    --------
    >>> check_size(10**12, "locations", 10**9)
    Traceback (most recent call last):
    ValueError: locations = 1000000000 would need arrays of 7,450 GiB, and 8 GiB are the most; take fewer
    """
    if entries > budget.most:
        size = entries * 8 // 2**30
        shown = f"{size:,}" if size < 10**15 else "more than 10^15"
        raise ValueError(
            f"{name} = {described(value)} would need arrays of {shown} GiB, and "
            f"{budget.most * 8 // 2**30} GiB are the most; take fewer"
        )


def in_chunks(n: int, entries: float = 1, *, within: int | None = None, multiple: int = 1) -> Iterator[Chunk]:
    """Slices that cover 0 .. n - 1, each with as many rows of `entries` numbers as the budget holds.

    Parameters
    ----------
    n
        Number of rows.
    entries
        Numbers that one row makes.
    within
        Entries at a time; None takes ``budget.work``.
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


def told_chunks(
    n: int, entries: float = 1, *, within: int | None = None, what: str = "cases"
) -> Iterator[Chunk]:
    """Yield chunks of work that may take long, and report progress.

    Examples
    --------
    >>> from wellcal._arrays.progress import Progress, following
    >>> with following(Progress(lambda *step: print(*step), interval=-1.0)):
    ...     rows = list(told_chunks(10, within=6))
    cases 0 10
    cases 6 10
    cases 10 10
    """
    tell = reporter()
    tell(what, 0, n)
    for rows in in_chunks(n, entries, within=within):
        yield rows
        tell(what, rows.stop, n)


def rows_within(entries: float, within: int | None = None) -> int:
    """Return the number of rows of `entries` numbers that the budget holds, at least one.

    Examples
    --------
    >>> rows_within(300, within=1000), rows_within(3000, within=1000)
    (3, 1)
    """
    return max(1, int((budget.work if within is None else within) // max(1.0, entries)))


# -- pairs of cases ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """Cases start <= i < stop."""

    start: int
    stop: int

    @property
    def index(self) -> Chunk:
        """Slice of the cases."""
        return slice(self.start, self.stop)


def tile_shape(width: int, elements: int) -> tuple[int, int]:
    """Height and width of a tile whose arrays have about `elements` entries.

    `width` counts elementary evaluations for one pair. They are spread over several arrays, about
    four of which are alive at a time.

    Examples
    --------
    >>> tile_shape(width=4, elements=65_536)
    (256, 256)
    >>> tile_shape(width=100, elements=65_536)
    (32, 81)
    """
    pairs = max(64, 4 * elements // max(4, width))
    height = max(8, 1 << (int(pairs**0.5).bit_length() - 1))
    return height, max(8, pairs // height)


def triangle_tiles(start: int, stop: int, height: int, width: int) -> Iterator[tuple[Span, Span]]:
    """Tiles that cover the pairs i < j of a range of cases; those on the diagonal hold other pairs too.

    Examples
    --------
    >>> for rows, columns in triangle_tiles(0, 5, 2, 3):
    ...     print(rows.start, rows.stop, columns.start, columns.stop)
    0 2 1 4
    0 2 4 5
    2 4 3 5
    """
    for i in range(start, stop - 1, height):
        rows = Span(i, min(i + height, stop - 1))  # the last case has no partner after it
        for j in range(i + 1, stop, width):
            yield rows, Span(j, min(j + width, stop))


def pairs_above(rows: Span, columns: Span) -> NDArray:
    """Return the mask i < j of a tile, ``(len(rows), len(columns))``, read-only.

    Examples
    --------
    >>> pairs_above(Span(4, 6), Span(4, 6))
    array([[False,  True],
           [False, False]])
    """
    return above_diagonal(rows.stop - rows.start, columns.stop - columns.start, columns.start - rows.start)


@lru_cache(maxsize=8)
def above_diagonal(height: int, width: int, shift: int = 0) -> NDArray:
    """Return the mask i < j + shift, shared by all tiles that lie alike on the diagonal."""
    above = np.less.outer(np.arange(height), np.arange(shift, shift + width))
    above.flags.writeable = False
    return above
