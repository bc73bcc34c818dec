"""Text that pages and pictures can hold."""

from __future__ import annotations

import re

_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def writable(text: str) -> str:
    r"""The same text, with a sign for each character that XML 1.0 does not have.

    Those are control characters, and halves of surrogate pairs, which no file in UTF-8 has either: names of
    models, classes and segments come from anywhere.

    Examples
    --------
    >>> writable("bell\x07, half \ud83d, whole \U0001f600")
    'bell�, half �, whole 😀'
    """
    return _NOT_IN_XML.sub(_UNKNOWN, text)
