"""A first line that is no header of the lines below it, and what to do about it."""

from __future__ import annotations

from wellcal.columns.number_texts import says_number
from wellcal.reading.errors import ReadError


def comments(name: str, line: str) -> ReadError:
    """The error about lines that are comments, such as those of Stan."""
    return ReadError(
        f"{name}: there are lines that begin with '#', such as {line[:40]!r}, which are read as all others "
        "are: remove them (grep -v '^#')"
    )


def refuse_other_lines(name: str, header: list[str], row: list[str]) -> None:
    """Refuse a first line that is no header, by what is in the next one; and blanks between columns."""
    first = header[0].strip()
    if row == [""]:
        return
    if len(header) == 1 and first.startswith("#") and row[0].lstrip().startswith("#"):
        raise comments(name, first)
    if len(row) != len(header) and (first.startswith("#") or len(header) == 1):
        raise ReadError(
            f"{name}: line 1 ({first[:40]!r}) is not a header: the next line has {len(row)} entries, and it "
            f"has {len(header)}; remove such lines: names of columns come first; or say delimiter="
        )
    if len(header) > 1:
        if len(row) == len(header) + 1:
            _refuse_one_more(name, row)
        return
    names, entries = first.split(), row[0].split()
    if len(names) > 1 and says_number(entries[-1]):
        single = all(text.count(" ") + 1 == len(text.split()) for text in (header[0], row[0]))
        if len(entries) == len(names):
            remedy = "give delimiter=' '" if single else "write a comma, or one blank, between them"
            raise ReadError(f"{name}: columns are separated by blanks; {remedy}")
        if len(entries) == len(names) + 1:
            _refuse_one_more(name, entries, "columns are separated by blanks, and ")


def _refuse_one_more(name: str, row: list[str], before: str = "") -> None:
    """Refuse lines with one entry more than the header: a delimiter at their end, or names of rows."""
    if not row[-1].strip():
        raise ReadError(
            f"{name}: the lines end with a delimiter, and the header does not; write one there, too, or "
            "remove theirs"
        )
    first = row[0].strip().strip('"')
    if first == "1" or not says_number(first.replace(",", ".")):
        raise ReadError(
            f"{name}: {before}the lines have one entry more than the header: they may begin with names of "
            f"rows, such as {first[:40]!r}; write the file without these (R: write.csv(x, row.names = FALSE))"
            ", or a name for them into the header"
        )
