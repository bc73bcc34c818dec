"""Words in lines that are no wider than they may be, by the widths of their letters."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

from wellcal._arrays.characters import writable


def wrapped_lines(text: str, width: float, size: float) -> list[str]:
    """Lines of words, none wider than so many points; a word that is too long is cut.

    Parameters
    ----------
    text
        Words; what is separated by no space, or by one that does not break, stays together where it can.
    width
        In points.
    size
        Of the font, in points.

    Examples
    --------
    >>> wrapped_lines("as wide as it may be", 60.0, 10.0)
    ['as wide as', 'it may be']
    >>> wrapped_lines("WWWWWWWW", 60.0, 10.0), wrapped_lines("iiiiiiii", 60.0, 10.0)
    (['WWWWWW', 'WW'], ['iiiiiiii'])
    """
    lines: list[str] = []
    line, used, space = "", 0.0, _advance(" ") * size
    for word in writable(text).split(" "):
        for part in _cut(word, width, size):
            wide = sum(map(_advance, part)) * size
            if line and used + space + wide > width:
                lines.append(line)
                line, used = part, wide
            else:
                line, used = (f"{line} {part}", used + space + wide) if line else (part, wide)
    return [*lines, line]


def _cut(word: str, width: float, size: float) -> list[str]:
    """A word, in parts that fit where it does not."""
    parts: list[str] = [""]
    used = 0.0
    for letter in word:
        wide = _advance(letter) * size
        if parts[-1] and used + wide > width:
            parts.append("")
            used = 0.0
        parts[-1] += letter
        used += wide
    return parts


@cache
def _advance(letter: str) -> float:
    """The width of a letter, in units of the size of its font."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    measure: Any = text_to_path.get_text_width_height_descent
    with warnings.catch_warnings():  # of letters that a font does not have: they are as wide as what is drawn
        warnings.simplefilter("ignore")
        # A letter among others has the space around it.
        wide, alone = (measure(text, FontProperties(size=100.0), False)[0] for text in (f"n{letter}n", "nn"))
    return float(wide - alone) / 100.0
