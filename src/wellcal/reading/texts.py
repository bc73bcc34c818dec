"""CSV, TSV and JSON lines: whole, or in batches."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
from collections import Counter
from collections.abc import Generator
from typing import Any

from wellcal._arrays.warnings import advise
from wellcal.columns.frames import names_text
from wellcal.columns.number_texts import SAYS_MISSING
from wellcal.columns.selection import unknown_column
from wellcal.reading.errors import ReadError, library, no_rows, reading, short
from wellcal.reading.kinds import ChangedKindError, Kinds
from wellcal.reading.other_lines import comments, refuse_other_lines
from wellcal.reading.quotations import Quotations, whole_rows
from wellcal.reading.sources import SourceFile
from wellcal.reading.streams import LetterStream
from wellcal.reading.thousands import note_points

_DELIMITERS = (",", "\t", ";", "|")
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+): ?(.*)")
_CONVERSION = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to \S+: (.*)")
_JSON_ROW = re.compile(r"(?:JSON parse error: )?(.*?)\.? in row (\d+)")
_ONE_A_LINE = (
    "write one object in each line, without brackets around them (pandas: to_json(path, orient='records', "
    "lines=True))"
)
BLOCK = 1 << 24
"""Bytes of a file that are read at a time."""


class TextFile:
    """How the lines of a text file are to be read; see :func:`wellcal.reading.read_table`."""

    def __init__(
        self,
        source: SourceFile,
        columns: list[str] | None,
        decimal: str,
        delimiter: str | None,
        encoding: str,
    ) -> None:
        if decimal not in (".", ","):
            raise ValueError(f"decimal must be '.' or ',', found {decimal!r}")
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii()):
            raise ValueError(f"delimiter must be one sign, such as ',' or ';', found {delimiter!r}")
        self.columns, self.decimal = columns, decimal
        self._names: dict[str, str] = {}  # of columns, by how they are written in the header
        self._seen: dict[str, Any] = {}  # types of columns of JSON, in all blocks so far
        self._kinds = Kinds()
        self._goes_on = self._noted = False
        self.source, self.encoding = _told_separator(source, _encoding(source, encoding))
        _refuse_nulls(self.source, self.encoding)
        self.delimiter = delimiter or self.source.separator or _delimiter(self.source, self.encoding)

    # -- whole -------------------------------------------------------------------------------

    def table(self) -> Any:
        """The whole file as a table of pyarrow."""
        source = self.source
        with reading(source.name, source.format):
            if source.format == "jsonl":
                return self._json_table()
            arrow, names = library("pyarrow.csv"), self._header()
            try:
                with self._letters(names) as file:
                    table = arrow.read_csv(file, **self._csv_options(names))
            except ReadError:
                raise
            except Exception as error:
                raise self._explained(error) from error
            self._refuse_bytes(table.schema)
            return self._renamed(table)

    def _json_table(self) -> Any:
        json = library("pyarrow.json")
        self._refuse_array()
        with self.source.open() as file:
            text = file.read()
        if self.encoding != "utf8":
            text = text.decode(self.encoding).encode()
        try:
            # A line may be longer than a block, which pyarrow then cannot read.
            options = json.ReadOptions(block_size=max(len(text) + 1, 1 << 16), use_threads=False)
            table = json.read_json(io.BytesIO(text), read_options=options)
        except Exception as error:
            raise self._no_objects(error, 0) from error
        self._refuse_columns(table)
        return table

    # -- batches -----------------------------------------------------------------------------

    def batches(self) -> Generator[Any]:
        """Blocks of lines as batches of pyarrow, with the types that the first has; numbers are floating.

        A column that begins with whole numbers may go on with others, so that all numbers are read as such.
        """
        source = self.source
        if source.format == "jsonl":
            yield from self._json_batches()
            return
        arrow, pyarrow = library("pyarrow.csv"), library("pyarrow")
        with reading(source.name, source.format):
            names = self._header()
            options, _ = self._with_kinds_of_head(names)
            file, rows = self._letters(names), 0
            try:
                reader = arrow.open_csv(file, **options)
                self._refuse_bytes(reader.schema)
                while True:
                    try:
                        batch = pyarrow.Table.from_batches([reader.read_next_batch()])
                    except StopIteration:
                        return
                    yield self._renamed(batch)
                    rows += batch.num_rows
            except ChangedKindError as error:
                raise ReadError(
                    f"{source.name}: {error} after row {rows}; read the file whole, or write it as Parquet"
                ) from error
            except ReadError:
                raise
            except Exception as error:
                raise self._explained(error) from error
            finally:
                file.close()

    def first_rows(self) -> Any:
        """Lines that are whole in the head of the file, as a batch has them; None where that is unknown.

        Of JSON it is: what is missing has no name there, so that columns may come later.
        """
        if self.source.format == "jsonl":
            return None
        with reading(self.source.name, self.source.format):
            _, first = self._with_kinds_of_head(self._header())
            return None if first is None else self._renamed(first)

    def keep(self, kinds: Kinds) -> None:
        """Read some columns as texts, whatever they look like, and make of these what `kinds` says."""
        self._kinds = kinds

    def _with_kinds_of_head(self, names: list[str]) -> tuple[dict[str, Any], Any]:
        """Options that read columns as the kinds which they begin with, and the rows that say so.

        These are the rows that are whole in the head of the file, or in a block of it if the first is longer
        than that; None where there are none.
        """
        options = self._csv_options(names)
        first = self._rows_of_head(options)
        if first is None and not self.source.ended:
            widest = 1 if self.encoding == "utf8" else 4  # bytes of a letter that takes one there
            self.source = self.source.with_longer_head(widest * BLOCK)
            first = self._rows_of_head(options)
        if first is None:
            return options, None
        types = {**_types(first), **options["convert_options"].column_types}
        options["convert_options"].column_types = types
        return options, self._rows_of_head(options)  # read again: not every whole number can be cast

    def _rows_of_head(self, options: dict[str, Any]) -> Any:
        text = self.source.head if self.encoding == "utf8" else self._beginning().encode()
        try:
            lines = io.BytesIO(text if self.source.ended else whole_rows(text, self.delimiter))
            found = library("pyarrow.csv").read_csv(lines, **options)
        except Exception:  # what is wrong is found, and said, when it is read
            return None
        return found if found.num_rows else None

    def _letters(self, names: list[str]) -> LetterStream:
        lines = self.source.skipped.count(b"\n")
        marks = Quotations(self.source.name, self.delimiter, len(names), lines)
        return LetterStream(self.source.open(), self.encoding, marks)

    def _json_batches(self) -> Generator[Any]:
        """Blocks with the columns of those before them: a key that a block omits is a column of nulls.

        So is one that is wanted and comes later; of standard input nobody knows what comes.
        """
        for block in self._json_blocks():
            self._note_columns(block)
            if not self._seen.keys() >= set(self.columns or ()):
                self._look_ahead()
            yield self._completed(block)

    def with_later_columns(self, first: Any) -> Any:
        """The first block of JSON with the columns that only later ones have, as nulls."""
        self._look_ahead()
        return self._completed(first)

    def is_unknown_after(self, rows: int) -> str:
        """What to do where a column is not in the first rows of JSON, and the next cannot be looked at."""
        if self.source.path is not None or not self._goes_on:
            return ""
        return (
            f"{self.source.name} goes on, and what it has after its first {rows} rows is not known: write "
            "null where a value is missing, or give the name of a file, which is looked through"
        )

    def _look_ahead(self) -> None:
        """Note the columns of the whole file, where it can be read twice; it is not kept in memory."""
        if self.source.path is not None:
            for block in self._json_blocks():
                self._note_columns(block)

    def _note_columns(self, block: Any) -> None:
        is_null = library("pyarrow.types").is_null
        for column in block.schema:
            if column.name not in self._seen or is_null(self._seen[column.name]):
                self._seen[column.name] = column.type

    def _completed(self, block: Any) -> Any:
        for name, kind in self._seen.items():
            if name not in block.column_names:
                block = block.append_column(name, library("pyarrow").nulls(block.num_rows, kind))
        return block

    def _json_blocks(self) -> Generator[Any]:
        """Whole lines, a block at a time, each read by itself."""
        json = library("pyarrow.json")
        self._refuse_array()
        one_line = len(self.source.head.strip().splitlines()) == 1
        decoder = None if self.encoding == "utf8" else codecs.getincrementaldecoder(self.encoding)()
        with reading(self.source.name, "jsonl"), self.source.open() as file:
            begun, rows = b"", 0
            while True:
                read = file.read(BLOCK)
                self._goes_on = len(read) == BLOCK
                more = read if decoder is None else decoder.decode(read, final=not read).encode()
                text = begun + more
                end = text.rfind(b"\n") + 1 if read else len(text)
                whole, begun = text[:end], text[end:]
                if whole.strip():
                    try:
                        options = json.ReadOptions(block_size=len(whole) + 1, use_threads=False)
                        table = json.read_json(io.BytesIO(whole), read_options=options)
                    except Exception as error:
                        raise self._no_objects(error, rows) from error
                    if one_line:  # and not one case of many, alone in its block
                        self._refuse_columns(table)
                    rows += table.num_rows
                    yield table
                if not read:
                    return

    # -- options -----------------------------------------------------------------------------

    def _csv_options(self, names: list[str]) -> dict[str, Any]:
        arrow = library("pyarrow.csv")
        short = self._short(names)
        self._names, written = dict(zip(names, short, strict=True)), dict(zip(short, names, strict=True))
        for name in self.columns or ():
            if name not in written:
                raise ReadError(f"{self.source.name}: {unknown_column(list(written), name, 'columns')}")
        header = 8 * sum(len(name) + 3 for name in names)  # a block holds the first line at least
        return {
            "read_options": arrow.ReadOptions(use_threads=False, block_size=max(BLOCK, header)),
            "parse_options": arrow.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": arrow.ConvertOptions(
                include_columns=None if self.columns is None else [written[name] for name in self.columns],
                column_types={
                    written[name]: library("pyarrow").string()
                    for name in self._kinds.texts
                    if name in written
                },
                decimal_point=self.decimal,
                null_values=sorted(SAYS_MISSING),
                auto_dict_encode=False,
            ),
        }

    def _header(self) -> list[str]:
        """Names of columns, each once, from the first line that is not empty."""
        lines = io.StringIO(self._beginning().removeprefix("\ufeff"), newline="")
        rows = csv.reader(lines, delimiter=self.delimiter)
        names: list[str] = next((row for row in rows if row), [""])[:]
        if names == [""]:
            raise ReadError(
                f"{self.source.name}: there is no header; write the names of columns into the first line"
            )
        with contextlib.suppress(csv.Error):  # an entry that is long
            refuse_other_lines(self.source.name, names, next((row for row in rows if row), [""]))
        if any("\ufffd" in name for name in names):
            raise self._not_text("")
        if len(set(names)) < len(names):
            twice = [name for name, count in Counter(names).items() if count > 1]
            raise ReadError(
                f"{self.source.name}: the header has {names_text(twice)} more than once; rename columns"
            )
        if self.delimiter == ";" and self.decimal == "." and not self._noted:
            self._noted = True
            body = self._beginning().splitlines()[1:]
            with contextlib.suppress(csv.Error):
                note_points(self.source.name, body if self.source.ended else body[:-1], names, ";")
        return names

    def _short(self, names: list[str]) -> list[str]:
        """Names without blanks around them, which nobody sees; as they are where two would be the same."""
        short = [name.strip() for name in names]
        same = [name for name, count in Counter(short).items() if count > 1]
        if not same:
            return short
        differing = [name for name in names if name.strip() in same]
        advise(
            f"{self.source.name}: {names_text(differing)} differ by blanks around them only: names of "
            "columns are taken with their blanks; rename columns"
        )
        return names

    def _renamed(self, table: Any) -> Any:
        table = table.rename_columns([self._names.get(name, name) for name in table.column_names])
        return self._kinds.given_to(table, self.decimal)

    def _beginning(self) -> str:
        """The first lines as text."""
        return codecs.getincrementaldecoder(self.encoding)(errors="replace").decode(self.source.head)

    # -- what is wrong -----------------------------------------------------------------------

    def _refuse_bytes(self, schema: Any) -> None:
        types = library("pyarrow.types")
        for column in schema:
            if types.is_binary(column.type):
                raise self._not_text(f" in column {column.name!r}")

    def _refuse_array(self) -> None:
        if self.source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
            raise ReadError(f"{self.source.name}: it is one JSON array; {_ONE_A_LINE}")

    def _refuse_columns(self, table: Any) -> None:
        types = library("pyarrow.types")
        nested = [types.is_struct(column.type) or types.is_list(column.type) for column in table.schema]
        if table.num_rows == 1 and nested and all(nested):
            raise ReadError(
                f"{self.source.name}: it is one JSON object that holds whole columns; {_ONE_A_LINE}"
            )

    def _not_text(self, where: str) -> ReadError:
        line = _first_bad_line(self.source, self.encoding)
        place = f"{where}, line {line}" if line else where
        return ReadError(
            f"{self.source.name}: it is not {self.encoding.upper()} text{place}; give its encoding, e.g. "
            "encoding='latin-1'"
        )

    def _no_objects(self, error: Exception, before: int) -> Exception:
        """A clearer error about JSON, of which pyarrow counts rows from 0 after those `before`."""
        explained = self._explained(error)
        place = _JSON_ROW.fullmatch(short(error))
        if explained is not error or place is None:
            return explained
        row = before + int(place[2]) + 1
        like = " like those before it" if row > 1 else ""
        return ReadError(
            f"{self.source.name}: row {row} is no JSON object{like}: {place[1]}; write one object in each "
            "line, with values of one kind under each name"
        )

    def _explained(self, error: Exception) -> Exception:
        """A clearer error about what pyarrow found, where there is one."""
        name, text = self.source.name, short(error)
        if ragged := _RAGGED.search(text):
            row, wanted, got, start = ragged.groups()
            where = "a row" if row is None else f"row {int(row) - 1}"  # counted with the header
            if start.lstrip().startswith("#"):
                return comments(name, start)
            if start.count('"') % 2 or ('"' in start and int(got) < int(wanted)):
                return ReadError(
                    f"{name}: the lines are of different lengths: {where} ({start[:40]!r}) has {got} entries "
                    f"where the header has {wanted}, and a quotation mark; close it, or write it twice"
                )
            return ReadError(
                f"{name}: the lines are of different lengths: {where} ({start[:40]!r}) has {got} entries "
                f"where the header has {wanted}; quote entries with {self.delimiter!r} in them, or say "
                "delimiter="
            )
        if isinstance(error, (ReadError, MemoryError, ImportError, OSError)):
            return error
        if isinstance(error, UnicodeError) or "UTF8" in text or "UTF-8" in text:
            return self._not_text("")
        if found := _CONVERSION.search(text):
            number, row, what = found.groups()
            where = "" if row is None else f" in row {int(row) - 1}"  # counted with the header
            return ReadError(
                f"{name}: column {self._header()[int(number)].strip()!r} changes its kind{where}: {what}; "
                "mend the entry"
            )
        if "Empty CSV" in text:  # a header without the end of its line
            return no_rows(self.source.name)
        return error


def _types(table: Any) -> dict[str, Any]:
    """Types of columns that may go on otherwise than they begin: numbers, and what has no value yet."""
    types, double = library("pyarrow.types"), library("pyarrow").float64()
    return {
        column.name: double
        for column in table.schema
        if any(kind(column.type) for kind in (types.is_integer, types.is_floating, types.is_null))
    }


def _encoding(source: SourceFile, encoding: str) -> str:
    try:
        "a".encode(encoding)  # fails for those that are none of letters, such as base64
        name = codecs.lookup(encoding).name
    except (LookupError, TypeError, ValueError):
        raise ValueError(f"unknown encoding {encoding!r}; such as 'utf8', 'latin-1' or 'utf-16'") from None
    if name == "utf-8" and source.head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ReadError(f"{source.name}: it is UTF-16 text, as its first bytes say; give encoding='utf-16'")
    return "utf8" if name == "utf-8" else encoding


_MARKED = {
    "utf-16": {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"},
    "utf-32": {codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be"},
}
"""Encodings of which a mark at the beginning of a file says more."""


def _told_separator(source: SourceFile, encoding: str) -> tuple[SourceFile, str]:
    """The file without the line that says what separates columns, and the encoding of what is left of it.

    The mark of an encoding goes with that line.
    """
    marks = _MARKED.get(codecs.lookup(encoding).name, {b"": encoding})
    exact = next((name for mark, name in marks.items() if source.head.startswith(mark)), None)
    if encoding == "utf8" or exact is None:
        return source, encoding
    left = source.without_separator(exact)
    return (source, encoding) if left is source else (left, exact)


def _refuse_nulls(source: SourceFile, encoding: str) -> None:
    """Refuse what is no text: that has no null bytes, unless letters take two bytes or four."""
    head = source.head
    if b"\x00" not in head or codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")):
        return
    line = head[: head.index(b"\x00")].count(b"\n") + 1
    remedy = "say what it is with format="
    for place, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        if not any(head[place : min(len(head), 200) : 2]):
            remedy = f"if it is UTF-16, give encoding={name!r}"
    raise ReadError(f"{source.name}: it is no text: there is a null byte in line {line}; {remedy}")


def _delimiter(source: SourceFile, encoding: str) -> str:
    """What separates the names in the first line; that of the format where there is a choice."""
    usual = "\t" if source.format == "tsv" else ","
    line = source.head.decode(encoding, errors="replace").split("\n", 1)[0]
    if usual in line:
        return usual
    counts = {sign: line.count(sign) for sign in _DELIMITERS}
    most = max(counts, key=counts.__getitem__)
    return most if counts[most] else usual


def _first_bad_line(source: SourceFile, encoding: str) -> int | None:
    """Number of the first line that cannot be decoded, from 1; None where it cannot be looked for."""
    if source.path is None:
        return None
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1 + source.skipped.count(b"\n")
    with source.open() as file:
        while block := file.read(1 << 16):
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                return line + error.object[: error.start].count(b"\n")
            line += block.count(b"\n")
    return None
