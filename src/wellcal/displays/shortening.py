"""Names that stand side by side, cut so that they stay different."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from wellcal._arrays.characters import writable

_BEFORE = 4  # letters that are kept of what long names have in common


def cut_apart(texts: Sequence[str], most: int) -> list[str]:
    """Texts of so many letters at most, which are different where they were.

    Long ones lose their end; where some would then be the same, the middle, or what all begin with; and where
    that is not enough they are numbered.

    Examples
    --------
    >>> cut_apart(["short", "a class with a long name"], 12)
    ['short', 'a class wit…']
    >>> cut_apart(["a class with number 10", "a class with number 11"], 12)
    ['a cla…ber 10', 'a cla…ber 11']
    >>> cut_apart(["the same words, then one, the same end", "the same words, then two, the same end"], 12)
    ['…hen one, t…', '…hen two, t…']
    """
    shown = [writable(text) for text in texts]
    letters = zip(*(text for text in shown if len(text) > most), strict=False)
    common = sum(1 for _ in takewhile(lambda some: len(set(some)) == 1, letters))
    begun = max(common - _BEFORE, 0)
    ways = [
        [_cut(text, most, 0) for text in shown],
        [_cut(text, most, most // 2) for text in shown],
        [text if len(text) <= most else _cut(f"…{text[begun:]}", most, 0) for text in shown],
    ]
    apart = next((cut for cut in ways if len(set(cut)) == len(set(texts))), None)
    if apart is not None:
        return apart
    numbers = {text: f" {number}" for number, text in enumerate(dict.fromkeys(texts), 1)}
    return [
        _cut(one, most - len(numbers[text]), 0) + numbers[text]
        for one, text in zip(shown, texts, strict=True)
    ]


def _cut(text: str, most: int, end: int) -> str:
    """A text without its middle, of which so many letters of the end are kept."""
    return text if len(text) <= most else f"{text[: most - end - 1]}…{text[len(text) - end :]}"
