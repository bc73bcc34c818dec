"""Text that pages and pictures can hold, and that does nothing to a terminal."""

from __future__ import annotations

import re

_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_NO_SIGNS = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def writable(text: str) -> str:
    r"""The same text, with a sign for each character that is none.

    Those are control characters, which XML 1.0 does not have and terminals obey, and halves of surrogate
    pairs, which no file in UTF-8 has either: names of models, classes and segments come from anywhere.

    Examples
    --------
    >>> writable("bell\x07, half \ud83d, whole \U0001f600")
    'bell�, half �, whole 😀'
    """
    return _NO_SIGNS.sub(_UNKNOWN, text)
