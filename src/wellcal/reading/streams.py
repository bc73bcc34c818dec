"""The letters of a text file as UTF-8, with an eye on its quotation marks."""

from __future__ import annotations

import codecs
import io
from typing import BinaryIO

from wellcal.reading.quotations import Quotations


class LetterStream(io.RawIOBase):
    """A file as pyarrow reads it: UTF-8, whatever its encoding; it refuses marks that are never closed.

    Parameters
    ----------
    file
        Its bytes; closed with this stream.
    encoding
        How letters are encoded; "utf8" is passed on as it is.
    quotations
        Follows the quotation marks.
    """

    def __init__(self, file: BinaryIO, encoding: str, quotations: Quotations) -> None:
        self._file, self._quotations = file, quotations
        self._decoder = None if encoding == "utf8" else codecs.getincrementaldecoder(encoding)()
        self._ready, self._ended = b"", False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """So many bytes, and fewer at the end only."""
        while not self._ended and (size < 0 or len(self._ready) < size):
            more = self._more(size)
            self._ready = self._ready + more if self._ready else more
        if size < 0 or len(self._ready) <= size:
            found, self._ready = self._ready, b""
        else:
            found, self._ready = self._ready[:size], self._ready[size:]
        return found

    def _more(self, size: int) -> bytes:
        read = self._file.read(size)
        self._ended = not read
        more = read if self._decoder is None else self._decoder.decode(read, final=not read).encode()
        if more:
            self._quotations.follow(more)
        if self._ended:
            self._quotations.finish()
        return more

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
