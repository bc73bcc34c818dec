"""RESULTS.md: one section for each benchmark, replaced on its own, written in one step."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from wellcal._arrays.files import locked, write_whole

_WAIT = 10.0  # seconds for another run that writes; each takes milliseconds
RESULTS = Path(__file__).with_name("RESULTS.md")
HEADER = """# Benchmark results

Written by `make bench`; the text between two markers is replaced when its benchmark runs again.
"""


@dataclass(frozen=True)
class Section:
    """Title and Markdown body of a benchmark's results, and the limits that it found exceeded."""

    name: str
    title: str
    body: str
    failures: tuple[str, ...] = ()

    @property
    def markdown(self) -> str:
        return f"{_begin(self.name)}\n## {self.title}\n\n{self.body.strip()}\n{_end(self.name)}\n"


def _begin(name: str) -> str:
    return f"<!-- begin {name} -->"


def _end(name: str) -> str:
    return f"<!-- end {name} -->"


def with_section(document: str, section: Section) -> str:
    """`document` with `section` in the place of its predecessor, or at the end."""
    found = re.search(
        re.escape(_begin(section.name)) + r".*?" + re.escape(_end(section.name)) + r"\n?", document, re.S
    )
    if found:
        return document[: found.start()] + section.markdown + document[found.end() :]
    return f"{document.rstrip() or HEADER.rstrip()}\n\n{section.markdown}"


def tell(section: Section, write: bool) -> int:
    """Print a section, put it into RESULTS.md where asked to, and return 1 where something is not met."""
    print(f"## {section.title}\n\n{section.body}")
    if write:
        save(section)
    return 1 if section.failures else 0


def save(section: Section, path: Path = RESULTS) -> None:
    """Put `section` into the file at `path`; a reader sees the old file or the new one, never a part.

    Two runs at a time lose none of each other's sections: one waits for the other.
    """
    with locked(path, wait=_WAIT):
        document = path.read_text(encoding="utf-8") if path.exists() else HEADER
        write_whole(path, with_section(document, section))


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table that is also readable on a terminal: first column left, others right."""
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]

    def line(cells: tuple[str, ...]) -> str:
        padded = [
            c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = (
        "|" + "|".join("-" * (w + 2) if k == 0 else "-" * (w + 1) + ":" for k, w in enumerate(widths)) + "|"
    )
    return "\n".join([line(header), rule, *map(line, rows)])
