"""What pages are made of: verdicts, tiles, tables, pictures and sections, as templates set them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

_ONE_DIAGRAM = 640  # pixels: no diagram by itself is wider


@dataclass(frozen=True)
class Said:
    """A verdict in pieces that are set differently; together they are its sentence.

    Attributes
    ----------
    word, chance, sign, rest
        What was found, how sure it is, which stands in parentheses, the sign after these, and what follows.
    kind
        "wrong", "slight", "open" (nothing found) or "met" (within a tolerance): its colour.
    """

    word: str
    chance: str
    sign: str
    rest: str
    kind: str


def said(verdict: str, kind: str) -> Said:
    """The pieces of a verdict.

    Examples
    --------
    >>> found = said("Miscalibrated (p = 0.002): spreads are 21% too small (15% to 27%).", "wrong")
    >>> found.word, found.chance, found.sign, found.rest
    ('Miscalibrated', 'p = 0.002', ':', 'spreads are 21% too small (15% to 27%).')
    >>> said("Calibrated within the tolerance: at most 5% off.", "met").word
    'Calibrated within the tolerance:'
    """
    word, opened, after = verdict.partition(" (p ")
    if not opened:
        word, colon, rest = verdict.partition(": ")
        return Said(f"{word}{colon.strip()}", "", "", rest, kind)
    chance, _, after = after.partition(")")
    sign, _, rest = after.partition(" ")
    return Said(word, f"p {chance}", sign, rest, kind)


@dataclass(frozen=True)
class Cell:
    """What stands in a table: a text, the number that it is sorted by, and small print below it."""

    text: str
    value: float | str | None = None
    number: bool = False
    under: str = ""
    href: str = ""


NOTHING = Cell("–", value="", number=True)
"""In the place of a number that there is not."""


def number_cell(text: str, value: float, under: str = "") -> Cell:
    """A number, as it is shown and as it is."""
    return Cell(text, repr(float(value)) if value == value else "", number=True, under=under)


@dataclass(frozen=True)
class Table:
    """A table with names of columns, by each of which a reader may sort it where that makes sense."""

    header: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    sortable: bool = True


@dataclass(frozen=True)
class Picture:
    """A picture in a page.

    Attributes
    ----------
    anchor
        Where links lead to it.
    svg
        Safe to be set as it is.
    caption, kind
        The question that it answers, and what kind of picture it is.
    width, ratio
        How wide it is drawn, in pixels, so that its letters have their size; and width over height.
    """

    anchor: str
    svg: Any
    caption: str = ""
    kind: str = ""
    width: int = 400
    ratio: float = 1.0

    @property
    def broad(self) -> bool:
        """Whether it has too little room beside words."""
        return self.ratio >= 1.2

    @property
    def wide(self) -> bool:
        """Whether it has several diagrams in a row, which need all of the paper."""
        return self.width > _ONE_DIAGRAM


@dataclass(frozen=True)
class Tile:
    """One of the three answers of the first screen, with a way to more."""

    title: str
    main: str
    more: str = ""
    href: str = ""
    go: str = ""


@dataclass(frozen=True)
class Link:
    """A way to another place of the page."""

    href: str
    text: str


# -- sections --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A part of a section, with a heading and a place to go to where it has them."""

    kind: ClassVar[str]
    """Which of the templates shows it."""

    heading: str = field(default="", kw_only=True)
    anchor: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Beside(Block):
    """Words, with a picture beside them."""

    kind: ClassVar[str] = "beside"
    title: str
    texts: Sequence[str] = ()
    picture: Picture | None = None
    links: Sequence[Link] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Note:
    """Words with a table below them."""

    title: str
    text: str
    table: Table | None = None


@dataclass(frozen=True)
class Notes(Block):
    """Notes side by side, where there is room."""

    kind: ClassVar[str] = "notes"
    notes: Sequence[Note]


@dataclass(frozen=True)
class TableBlock(Block):
    """A table."""

    kind: ClassVar[str] = "table"
    table: Table


@dataclass(frozen=True)
class Pictures(Block):
    """Pictures side by side, where there is room."""

    kind: ClassVar[str] = "pictures"
    pictures: Sequence[Picture]


@dataclass(frozen=True)
class Pairs(Block):
    """Names and what belongs to them."""

    kind: ClassVar[str] = "pairs"
    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Texts(Block):
    """Paragraphs."""

    kind: ClassVar[str] = "texts"
    texts: Sequence[str]


@dataclass(frozen=True)
class Code(Block):
    """Text as it is, to be copied."""

    kind: ClassVar[str] = "code"
    text: str


@dataclass(frozen=True)
class Part:
    """A section of a page, and how it is called in the list of them."""

    anchor: str
    short: str
    title: str
    blocks: Sequence[Block]
    lead: Sequence[str] = field(default=())
