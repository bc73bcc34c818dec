"""Files that cannot be read: each ends with one sentence that says what, where, and what to do."""

from __future__ import annotations

import gzip
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wellcal.reading import ReadError, as_cases, read_batches, read_cases, read_table
from wellcal.reading.quotations import Quotations

from .broken_files import BROKEN, FUZZED, GOOD, arrow_bytes, parquet_bytes, spoilt_files


@pytest.mark.parametrize("what", BROKEN)
def test_each_broken_file_is_refused_with_a_sentence(what: str, tmp_path: Path) -> None:
    name, content, message = BROKEN[what]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ReadError, match=message) as found:
        read_cases(path, "y", normal=("mu", "sigma"))
    assert str(found.value).startswith(str(path))
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 500 + len(str(path))


def test_the_corpus_has_a_good_file_too(tmp_path: Path) -> None:
    for name, content in (("a.csv", GOOD), ("a.parquet", parquet_bytes()), ("a.arrow", arrow_bytes())):
        (tmp_path / name).write_bytes(content)
        assert len(read_cases(tmp_path / name, "y", normal=("mu", "sigma")).y) == 2


def test_what_is_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "predictions.csv").write_bytes(GOOD)
    with pytest.raises(ReadError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(ReadError, match=r"no such file; did you mean 'predictions.csv'"):
        read_table(tmp_path / "prediction.csv")
    (tmp_path / "link.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(ReadError, match=r"link.csv: is a link to .*gone.csv, which is not there"):
        read_table(tmp_path / "link.csv")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    with pytest.raises(ReadError, match=r"loop.csv: is a link that leads back to itself"):
        read_table(tmp_path / "loop.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ReadError, match=r"is a pipe or a device, .*give - as the name"):
        read_table(tmp_path / "pipe.csv")
    for signs in ({"delimiter": "ab"}, {"delimiter": ""}):
        with pytest.raises(ValueError, match="must be one sign"):
            read_table(tmp_path / "predictions.csv", **signs)
    with pytest.raises(ReadError, match="null"):
        read_table("a\0b.csv")
    with pytest.raises(ReadError, match="long"):
        read_table("a" * 5000 + ".csv")
    with pytest.raises(TypeError, match="path must be"):
        read_table(3)  # pyright: ignore[reportArgumentType]
    closed = tmp_path / "closed.csv"
    closed.write_bytes(GOOD)
    closed.chmod(0)
    if os.access(closed, os.R_OK):  # nothing is closed to root

        def refuse(*_: object) -> object:
            raise PermissionError(13, "Permission denied", str(closed))

        monkeypatch.setattr("wellcal.reading.sources.opened", refuse)
    with pytest.raises(ReadError, match="may not be read by you"):
        read_table(closed)


def test_ten_thousand_columns(tmp_path: Path) -> None:
    """They are read; errors about them stay short."""
    names = [f"p_{k}" for k in range(10_000)]
    path = tmp_path / "wide.csv"
    path.write_text(",".join(["y", *names]) + "\n" + ",".join(["3", *["0.0001"] * 10_000]) + "\n")
    table = read_table(path)
    cases = as_cases(table, "y", probs="p_*")
    assert cases.pred.labels()[-1] == 9_999
    assert cases.y.tolist() == [3]
    with pytest.raises(ValueError, match="did you mean") as found:
        as_cases(table, "y", bernoulli="p_99999")
    assert len(str(found.value)) < 1000
    with pytest.raises(ValueError, match="no column matches") as found:
        as_cases(table, "y", probs="q_*")
    assert len(str(found.value)) < 1000


def test_a_batch_after_the_first_may_be_the_broken_one(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes(b"y\n" + b"1.5\n" * 30_000 + b"x\n")
    with pytest.raises(ReadError, match="column 'y' changes its kind in row 30001: invalid value 'x'"):
        list(read_batches(path))
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"y": 1}\n{"y": \n')
    with pytest.raises(ReadError, match="row 2 is no JSON object like those before it"):
        list(read_batches(path))


def test_rows_of_json_are_counted_from_1_through_all_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wellcal.reading.texts.BLOCK", 100)
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"y": 1}\n' * 40 + b"\n" + b'{"y": "a", "z": "b"\n' + b'{"y": 1}\n')
    for read in (lambda: list(read_batches(path)), lambda: read_table(path)):
        with pytest.raises(ReadError, match=r"p\.jsonl: row 41 is no JSON object"):
            read()
    path.write_bytes(b'{"y": "a')
    with pytest.raises(ReadError, match=r"row 1 is no JSON object: Missing a closing quotation mark"):
        read_table(path)


NOTES = "id,y,mu,sigma,comment\n" + "".join(f"{k},0.5,0.25,1.0,fine\n" for k in range(1, 61))
OPEN = NOTES.replace("\n21,0.5,0.25,1.0,fine", "\n21,0.5,0.25,1.0,\"5' 11")


@pytest.mark.parametrize("block", [40, 1 << 24])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OPEN, r"opened in row 21 \(line 22\) and never closed; close it, or write it twice"),
        (OPEN.replace("\n", "\r\n"), r"row 21 \(line 22\) and never closed"),
        (OPEN.replace("\n", "\r"), r"row 21 \(line 22\) and never closed"),
        (OPEN.replace("\n5,", "\n\n5,"), "opened in line 23 and never closed"),
        (OPEN.replace("\n5,", '\n"5\nand more",'), r"row 21 \(line 23\) and never closed"),
        (
            OPEN.replace("\n40,0.5,0.25,1.0,fine", '\n40,0.5,0.25,1.0,"6'),
            r"opened in row 21 \(line 22\) and closed in line 41, in the middle of an entry",
        ),
    ],
)
def test_a_quotation_mark_that_swallows_rows_is_refused(
    text: str, message: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read whole and in parts, from standard input, compressed, and in letters of two bytes."""
    follow = Quotations.follow

    def in_blocks(self: Quotations, given: bytes) -> None:
        for start in range(0, len(given), block):
            follow(self, given[start : start + block])

    monkeypatch.setattr(Quotations, "follow", in_blocks)
    (tmp_path / "a.csv").write_bytes(text.encode())
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "wide.csv").write_bytes(text.encode("utf-16"))
    for name, options in (("a.csv", {}), ("a.csv.gz", {}), ("wide.csv", {"encoding": "utf-16"}), ("-", {})):
        for read in (read_table, lambda *path, **options: list(read_batches(*path, **options))):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
            with pytest.raises(ReadError, match=message):
                read("-" if name == "-" else tmp_path / name, **options)


def test_marks_that_are_written_twice_take_one_pass() -> None:
    """Steps from one to the next would be the square of their number: minutes."""
    follower = Quotations("a.csv", ",", 3)
    follower.follow(b'y,p,note\n1,2,"' + b'{""key"": ""text""}\n' * 20_000 + b'"\n')
    follower.finish()
    with pytest.raises(ReadError, match=r"opened in row 1 \(line 2\) and closed in line 20002"):
        Quotations("a.csv", ",", 3).follow(b'y,p,note\n1,2,"' + b'{""k"": ""t""}\n' * 20_000 + b'"x\n')


def test_rows_between_two_quotation_marks_are_no_note(tmp_path: Path) -> None:
    """A mark that closes at the end of an entry, far below, shows itself by what is between."""
    path = tmp_path / "a.csv"
    path.write_text(OPEN.replace("\n40,0.5,0.25,1.0,fine", '\n40,0.5,0.25,1.0,6"'))
    with pytest.raises(
        ReadError, match=r"row 21 \(line 22\) and not closed before line 41: .* looks like rows"
    ):
        read_table(path)
    # Notes over many lines, marks that are written twice, and marks that are letters, stay as they are.
    long = '"' + "one line, of a note\n" * 150 + '""quoted""\n"'
    people = '"' + "Smith, John, born in, the year, 1970\n" * 20 + '"'  # as many commas as a row
    for note in (long, people, 'a 5" pipe', '"says ""no"" twice"', '""', '"""\n"""', 'a""b'):
        path.write_text(NOTES.replace("\n21,0.5,0.25,1.0,fine", f"\n21,0.5,0.25,1.0,{note}"))
        wanted = note[1:-1].replace('""', '"') if note.startswith('"') else note
        for table in (read_table(path), pa.concat_tables(list(read_batches(path)))):
            assert table.num_rows == 60
            assert table["comment"].to_pylist()[20] == wanted


def test_a_page_of_parquet_that_was_damaged_is_refused(tmp_path: Path) -> None:
    sink = io.BytesIO()
    table = pa.table({"y": np.arange(2000.0), "mu": np.zeros(2000), "sigma": np.ones(2000)})
    pq.write_table(table, sink, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(sink.getvalue())
    content[2000] ^= 1  # a digit of a target
    (tmp_path / "a.parquet").write_bytes(content)
    for read in (read_table, lambda path: list(read_batches(path))):
        with pytest.raises(ReadError, match=r"cannot be read as parquet: .*checksum.*copy it again"):
            read(tmp_path / "a.parquet")


# -- fuzzed ---------------------------------------------------------------------------------------------


def ends_well(call: Callable[[], object]) -> None:
    said = "something"
    try:
        call()
    except ReadError as error:
        said = str(error)
    assert said
    assert "\n" not in said


@settings(max_examples=FUZZED, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(file=spoilt_files())
def test_files_with_other_bytes_in_them(file: tuple[str, bytes], tmp_path: Path) -> None:
    name, content = file
    path = tmp_path / name
    path.write_bytes(content)
    ends_well(lambda: read_cases(path, "y", normal=("mu", "sigma")))
    ends_well(lambda: list(read_batches(path)))


@settings(max_examples=FUZZED, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode)))
def test_standard_input_with_anything_in_it(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    ends_well(lambda: read_cases("-", "y", normal=("mu", "sigma")))


def test_a_first_line_longer_than_a_block_is_read(tmp_path: Path) -> None:
    names = ["y", "mu", "sigma", *(f"{k:0>600}" for k in range(3000))]  # 2 MB
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + ",".join(["1.5"] * len(names)) + "\n")
    found = read_cases(tmp_path / "wide.csv", "y", normal=("mu", "sigma"))
    assert found.y.tolist() == [1.5]
    assert len(next(iter(read_batches(tmp_path / "wide.csv", columns=["y"])))) == 1
