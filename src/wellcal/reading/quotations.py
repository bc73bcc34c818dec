"""Quotation marks of a CSV file, followed while its bytes pass by.

pyarrow takes the end of a file for a closing quotation mark, and a mark that was left open swallows all lines
up to the next one: rows would be lost without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.reading.errors import ReadError

_MARK, _LINE = b'"\n'
_BOM = b"\xef\xbb\xbf"
_MANY, _MOST = 10, 0.9
"""Lines within one entry that make one look at them, and how many of them look like rows if they are some."""

_NUMBERS = 2  # of a row, at least


@dataclass(frozen=True)
class Place:
    """Where an entry begins.

    Parameters
    ----------
    line
        Its line, from 1.
    row
        Its row, from 1, or 0 for the header; None where it is not known.
    """

    line: int
    row: int | None

    def __str__(self) -> str:
        if self.row is None:
            return f"line {self.line}"
        return f"row {self.row} (line {self.line})" if self.row else f"the header (line {self.line})"


@dataclass(frozen=True)
class Quoted:
    """Stretches of a text that are quoted, as pyarrow sees them: ``""`` ends one and begins the next.

    Parameters
    ----------
    opens, closes
        Positions of the marks; a stretch that began before the text opens at -1, and one that goes on after
        it closes at its length.
    """

    opens: NDArray
    closes: NDArray

    @classmethod
    def of(cls, text: bytes, delimiter: str, before: int = _LINE, inside: bool = False) -> Quoted:
        """Find them in a text after the byte `before`, which began `inside` of one or not.

        A mark opens an entry only where that begins; elsewhere outside it is a letter, as that of inches is.
        """
        data = np.frombuffer(text, dtype=np.uint8)
        marks = np.flatnonzero(data == _MARK)
        previous = np.where(marks > 0, data[marks - 1], before)
        begins = _among(delimiter.encode() + b"\n\r")[previous]
        # As files are written every other mark opens: where an entry begins, or after one that closed.
        opening = slice(int(inside), None, 2)
        if not np.all(begins[opening] | (previous[opening] == _MARK)):
            marks = _counted(marks, begins, previous == _MARK, inside)
        bounds = np.concatenate([[-1] if inside else [], marks]).astype(np.int64)
        if len(bounds) % 2:
            bounds = np.append(bounds, len(text))
        return cls(bounds[::2], bounds[1::2])

    def hold(self, positions: NDArray) -> NDArray:
        """Whether positions are in one of them."""
        k = np.searchsorted(self.opens, positions) - 1
        return (k >= 0) & (positions < np.append(self.closes, 0)[k])


def _among(signs: bytes) -> NDArray:
    """For each byte whether it is one of some."""
    found = np.zeros(256, dtype=np.bool_)
    found[list(signs)] = True
    return found


def _counted(marks: NDArray, begins: NDArray, follows: NDArray, inside: bool) -> NDArray:
    """Those marks that open or close, one by one."""
    kept: list[int] = []
    for mark, begin, follow in zip(marks.tolist(), begins.tolist(), follows.tolist(), strict=True):
        if inside or begin or (follow and kept and kept[-1] == mark - 1):
            kept.append(mark)
            inside = not inside
    return np.asarray(kept, dtype=np.int64)


def whole_rows(text: bytes, delimiter: str) -> bytes:
    r"""The rows of a text that are whole: up to the last end of a line that is not quoted.

    Examples
    --------
    >>> whole_rows(b'y,note\n1,"a\nb"\n2,"c\nd', ",")
    b'y,note\n1,"a\nb"\n'
    """
    plain = text.removeprefix(_BOM)
    ends = np.flatnonzero(_among(b"\n\r")[np.frombuffer(plain, dtype=np.uint8)])
    free = ends[~Quoted.of(plain, delimiter).hold(ends)]
    return text[: len(text) - len(plain) + int(free[-1]) + 1] if len(free) else b""


class Quotations:
    """Follows the quotation marks of a file from block to block, and refuses those that swallow rows.

    Parameters
    ----------
    name
        What errors call the file.
    delimiter
        What separates entries.
    columns
        How many entries a row has.
    skipped
        Lines of the file before those that are followed.
    """

    def __init__(self, name: str, delimiter: str, columns: int, skipped: int = 0) -> None:
        self._name, self._delimiter, self._columns = name, delimiter, columns
        self._line, self._row, self._blank = 1 + skipped, 0, False
        self._before, self._held, self._end = 0, b"", b"\n"
        self._blanks: list[bytes] = []  # how an empty line looks
        self._open: Place | None = None
        self._suspect = False  # whether what is open holds rows, by its looks

    def follow(self, block: bytes) -> None:
        """Take in the next bytes, which are UTF-8."""
        if not self._before:
            block = block.removeprefix(_BOM)
        if not self._blanks and (b"\n" in block or b"\r" in block):
            self._end = b"\n" if b"\n" in block else b"\r"
            self._blanks = [self._end * 2, *([b"\n\r\n"] if b"\r\n" in block else [])]
        text = self._held + block if self._held else block
        self._held = b""
        if text.endswith(b'"'):  # the next byte says whether it closes
            stripped = text.rstrip(b'"')
            text, self._held = stripped, text[len(stripped) :]
        if text:
            self._look(text)

    def finish(self) -> None:
        """Refuse a quotation mark that is open at the end of the file."""
        if self._held:
            text, self._held = self._held, b""
            self._look(text)
        if self._open is not None:
            raise self._error(f"a quotation mark is opened in {self._open} and never closed")

    def _look(self, text: bytes) -> None:
        lines = text.count(self._end)
        self._blank = self._blank or any(blank in bytes([self._before]) + text[:2] for blank in self._blanks)
        self._blank = self._blank or any(blank in text for blank in self._blanks)
        if b'"' not in text and self._open is None:
            self._row += lines
        else:
            self._look_at_marks(text, lines)
        self._line += lines
        self._before = text[-1]

    def _look_at_marks(self, text: bytes, lines: int) -> None:
        quoted = Quoted.of(text, self._delimiter, self._before or _LINE, self._open is not None)
        opens, closes = quoted.opens, quoted.closes
        breaks = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == self._end[0])
        holder = np.searchsorted(opens, breaks) - 1  # the last of them that opens before
        held = (breaks < closes[holder]) & (holder >= 0) if len(opens) else np.zeros(len(breaks), np.bool_)

        def place(k: int) -> Place:
            """Where the entry begins that the k-th of them is in."""
            while k > 0 and closes[k - 1] == opens[k] - 1:
                k -= 1
            if opens[k] < 0 and self._open is not None:
                return self._open
            before = int(np.searchsorted(breaks, int(opens[k])))
            row = None if self._blank else self._row + before - int(held[:before].sum())
            return Place(self._line + before, row)

        broken, counts = np.unique(holder[held], return_counts=True)
        if self._open is not None and self._open.line < self._line and 0 not in broken[:1]:
            broken, counts = np.append(0, broken), np.append(0, counts)
        self._refuse_middles(text, quoted, broken, place)
        ends_open = len(opens) > 0 and int(closes[-1]) == len(text)
        suspect = False
        for k in broken[(counts >= _MANY) | (broken == 0)].tolist():
            like = self._looks_like_rows(text[max(int(opens[k]), 0) : int(closes[k])])
            if ends_open and k == len(opens) - 1 and opens[k] >= 0:
                suspect = like  # the next block, or the end of the file, decides
            elif like or (opens[k] < 0 and self._suspect):
                closed = self._line + text[: int(closes[k])].count(self._end)
                raise self._error(
                    f"a quotation mark is opened in {place(k)} and not closed before line {closed}: what is "
                    "between looks like rows",
                    "; if these lines are one entry, write the file without its column, or as Parquet",
                )
        self._open = place(len(opens) - 1) if ends_open else None
        self._suspect = suspect
        self._row += lines - int(held.sum())

    def _refuse_middles(
        self, text: bytes, quoted: Quoted, broken: NDArray, place: Callable[[int], Place]
    ) -> None:
        """Refuse entries over several lines that go on after they were closed."""
        opens, closes = quoted.opens, quoted.closes
        # Stretches in which entries end: those that do not go on after a mark that is written twice.
        final = np.flatnonzero(np.append(opens[1:] != closes[:-1] + 1, True))
        last = final[np.searchsorted(final, broken)]
        ends = closes[last] + 1
        after = np.frombuffer(text, dtype=np.uint8)[np.minimum(ends, len(text) - 1)]
        bad = np.flatnonzero((ends < len(text)) & ~_among(self._delimiter.encode() + b"\n\r \t")[after])
        if len(bad):
            k = int(last[bad[0]])
            raise self._error(
                f"a quotation mark is opened in {place(k)} and closed in line "
                f"{self._line + text[: int(closes[k])].count(self._end)}, in the middle of an entry"
            )

    def _looks_like_rows(self, entry: bytes) -> bool:
        """Whether most lines within an entry have as many parts as a row has entries, and numbers among them.

        Every row has a target and a prediction. Names, sentences and lines of a log have commas, too.
        """
        inner, sign = entry.split(self._end)[1:-1], self._delimiter.encode()
        if self._columns < 3 or len(inner) < _MANY:
            return False
        parts = [line.split(sign) for line in inner]
        like = [own for own in parts if len(own) == self._columns and sum(map(_is_number, own)) >= _NUMBERS]
        return len(like) >= _MOST * len(inner)

    def _error(self, told: str, otherwise: str = "") -> ReadError:
        return ReadError(f"{self._name}: {told}; close it, or write it twice{otherwise}")


def _is_number(part: bytes) -> bool:
    try:
        float(part)
    except ValueError:
        return False
    return True
