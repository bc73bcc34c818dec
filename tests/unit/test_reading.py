"""Tables from files: the same whatever the format, whole or in batches."""

from __future__ import annotations

import bz2
import gzip
import io
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import wellcal as wc
from wellcal.columns.frames import Table
from wellcal.reading import (
    FORMATS,
    ReadError,
    as_cases,
    case_batches,
    read_batches,
    read_cases,
    read_models,
    read_table,
)
from wellcal.reading.cases import found_columns
from wellcal.reading.sizes import FileSize, file_size
from wellcal.reading.writing import prediction_columns, with_columns, write_table

N = 7
TABLE = pa.table(
    {"y": np.arange(N) / 4, "mu": np.arange(N) / 2, "sigma": np.ones(N), "region": ["N", "S"] * 3 + ["N"]}
)


def text(delimiter: str, decimal: str = ".") -> str:
    rows = [
        ",".join(TABLE.column_names),
        *(f"{r['y']},{r['mu']},{r['sigma']},{r['region']}" for r in TABLE.to_pylist()),
    ]
    return "".join(
        row.replace(".", decimal).replace(",", delimiter)
        if decimal == "."
        else row.replace(",", delimiter).replace(".", decimal)
        for row in (f"{row}\n" for row in rows)
    )


def arrow_stream(path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)


def json_lines() -> str:
    return "".join(
        f'{{"y": {r["y"]}, "mu": {r["mu"]}, "sigma": {r["sigma"]}, "region": "{r["region"]}"}}\n'
        for r in TABLE.to_pylist()
    )


def npz(path: Path) -> None:
    np.savez(path, **{name: np.asarray(TABLE[name].to_pylist()) for name in TABLE.column_names})


def npy(path: Path) -> None:
    record = np.rec.fromarrays(
        [np.asarray(TABLE[n].to_pylist()) for n in TABLE.column_names], names=TABLE.column_names
    )
    np.save(path, np.asarray(record))


WRITERS: dict[str, Callable[[Path], object]] = {
    "p.csv": lambda path: path.write_text(text(",")),
    "windows.csv": lambda path: path.write_bytes(b"\xef\xbb\xbf" + text(",").replace("\n", "\r\n").encode()),
    "semicolons.csv": lambda path: path.write_text(text(";")),
    "p.tsv": lambda path: path.write_text(text("\t")),
    "p.csv.gz": lambda path: path.write_bytes(gzip.compress(text(",").encode())),
    "p.csv.bz2": lambda path: path.write_bytes(bz2.compress(text(",").encode())),
    "p.parquet": lambda path: pq.write_table(TABLE, path),
    "p.feather": lambda path: feather.write_feather(TABLE, path),
    "p.arrow": arrow_stream,
    "p.jsonl": lambda path: path.write_text(json_lines()),
    "p.npz": npz,
    "p.npy": npy,
    "excel.csv": lambda path: path.write_text("sep=;\n" + text(";")),
    "excel_with_a_mark.csv": lambda path: path.write_bytes(b'\xef\xbb\xbf"sep=|"\r\n' + text("|").encode()),
    "no_suffix": lambda path: path.write_text(text(",")),
}


@pytest.mark.parametrize("name", WRITERS)
def test_all_formats_hold_the_same_table(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    assert read_table(path).to_pylist() == TABLE.to_pylist()
    assert read_table(str(path), columns=["mu", "y"]).column_names == ["mu", "y"]
    batches = list(read_batches(path, ["y", "region"], rows=3))
    assert [batch.num_rows for batch in batches] == [3, 3, 1]
    assert pa.concat_tables(batches).to_pylist() == TABLE.select(["y", "region"]).to_pylist()
    with pytest.raises(ReadError, match="there is no column 'sigm'; did you mean 'sigma'"):
        read_table(path, columns=["sigm"])
    with pytest.raises(ReadError, match="there is no column 'sigm'; did you mean 'sigma'"):
        list(read_batches(path, columns=["sigm"]))


@pytest.mark.parametrize(
    "name", ["p.csv", "p.tsv", "p.parquet", "p.feather", "p.arrow", "p.jsonl", "p.npz", "p.npy"]
)
def test_standard_input_is_known_by_what_it_holds(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    WRITERS[name](tmp_path / name)
    content = (tmp_path / name).read_bytes()
    for read in (read_table, lambda path: pa.concat_tables(list(read_batches(path)))):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert read("-").to_pylist() == TABLE.to_pylist()


def test_formats_are_those_that_are_said() -> None:
    assert set(FORMATS) == {"csv", "tsv", "parquet", "arrow", "jsonl", "npz", "npy"}
    with pytest.raises(ValueError, match="unknown format 'xlsx'"):
        read_table("a.csv", format="xlsx")


def test_how_texts_are_written(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text(";", decimal=","))
    assert read_table(path, decimal=",").to_pylist() == TABLE.to_pylist()
    path.write_bytes("y,naïve\n1,é\n".encode("latin-1"))
    assert read_table(path, encoding="latin-1").to_pylist() == [{"y": 1, "naïve": "é"}]
    path.write_bytes("y,naïve\n1,é\n".encode("utf-16"))
    assert read_table(path, encoding="utf-16").to_pylist() == [{"y": 1, "naïve": "é"}]
    path.write_bytes("y,naïve\n1,é\n".encode("utf-16-le"))
    assert read_table(path, encoding="utf-16-le").to_pylist() == [{"y": 1, "naïve": "é"}]
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"):
        for mark in ("", "\ufeff") if encoding.startswith("utf-16-") else ("",):
            path.write_bytes(f"{mark}sep=|\r\ny|naïve, or not\n1|é\n".encode(encoding))
            names = [encoding, *([] if not mark else ["utf-16"])]
            for name in names:
                wanted = [{"y": 1, "naïve, or not": "é"}]
                assert read_table(path, encoding=name).to_pylist() == wanted
                assert next(read_batches(path, encoding=name)).to_pylist() == wanted
    with pytest.raises(ValueError, match=r"decimal must be '.' or ',', found ';'"):
        read_table(path, decimal=";")
    for name in ("utf-9", "base64", "rot13"):  # of which two are known, and turn no bytes into letters
        with pytest.raises(ValueError, match=f"unknown encoding '{name}'"):
            read_table(path, encoding=name)
    path.write_text('"a\nb","c,d"\n1,"x\ny"\n')
    assert read_table(path).to_pylist() == [{"a\nb": 1, "c,d": "x\ny"}]


def test_whole_numbers_may_become_others_in_a_later_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first lines say 1, and one after them 1.5: all are numbers."""
    monkeypatch.setattr("wellcal.reading.texts.BLOCK", 1 << 14)
    path = tmp_path / "p.csv"
    path.write_bytes(b"y\n" + b"1\n" * 40_000 + b"1.5\n")
    batches = list(read_batches(path))
    assert len(batches) > 1
    assert sum(batch.num_rows for batch in batches) == 40_001
    assert batches[-1]["y"].to_pylist()[-1] == 1.5
    lines = tmp_path / "p.jsonl"
    lines.write_bytes(b'{"y": 1}\n' * 4_000 + b'{"y": 1.5}')
    batches = list(read_batches(lines))
    assert len(batches) > 1
    assert sum(sum(batch["y"].to_pylist()) for batch in batches) == 4_001.5


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
@pytest.mark.parametrize("note", ["short\nand bröken", "long\n" * 15_000])
def test_no_note_changes_the_kind_of_numbers(
    note: str, encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole numbers become others in a later block; the head ends within quotes, or within its first row."""
    monkeypatch.setattr("wellcal.reading.texts.BLOCK", 1 << 17)
    path = tmp_path / "p.csv"
    rows = [f'1,"{note}",2\n', *(['1,"short\nand bröken",2\n'] * 6_000), '1.5,"a",2\n']
    path.write_text("y,note,rate\n" + "".join(rows), encoding=encoding, newline="")
    found = pa.concat_tables(list(read_batches(path, encoding=encoding)))
    assert found["y"].to_pylist() == [1.0] * 6_001 + [1.5]
    assert found["note"].to_pylist()[0] == note
    assert read_table(path, encoding=encoding)["y"].to_pylist() == found["y"].to_pylist()


CODES = [("250", "428", "V27"), ("01", "02", "03"), ("250.0", "250.00", "428.0"), ("1.1", "1.10", "1.2")]


@pytest.mark.parametrize("names", CODES)
def test_names_of_classes_say_that_targets_are_texts(names: tuple[str, ...], tmp_path: Path) -> None:
    """Whole and in parts, wherever the first target is that is no number, and if there is none."""
    a, b, c = names
    header, row = f"y,p_{a},p_{b},p_{c}\n", ",0.25,0.25,0.5\n"
    path = tmp_path / "p.csv"
    for text in (a + row, (a + row) * 4_000 + b + row + c + row):
        path.write_text(header + text)
        whole, parts = read_cases(path), list(case_batches(path))
        several = read_models(path, models={"m": {"probs": "p_*"}})
        assert whole.pred.labels().tolist() == several.models["m"].labels().tolist() == list(names)
        wanted = [line.partition(",")[0] for line in text.splitlines()]
        assert whole.y.tolist() == several.y.tolist() == wanted
        assert np.concatenate([cases.y for cases in parts]).tolist() == wanted


@pytest.mark.parametrize("names", [*CODES, ("cat", "dog", "eel")])
def test_labels_are_missing_where_numbers_would_be(names: tuple[str, ...], tmp_path: Path) -> None:
    """Whole and in parts, in the head of the file and after it; elsewhere NA may be North America."""
    a, b, c = names
    path, row = tmp_path / "p.csv", ",0.25,0.25,0.5\n"
    for y in (["NA", a, ""] + [b] * 4_000 + [c], [a] * 4_000 + [c, "nan"]):
        lines = [f"{label},NA{row}" for label in y] + [f"{a},EU{row}"]
        path.write_text(f"y,region,p_{a},p_{b},p_{c}\n" + "".join(lines))
        y.append(a)
        wanted = [label for label in y if label in names]
        whole = read_cases(path, drop_missing=True, others=["region"])
        parts = list(case_batches(path, drop_missing=True))
        assert whole.y.tolist() == np.concatenate([cases.y for cases in parts]).tolist() == wanted
        assert whole.dropped == sum(cases.dropped for cases in parts) == len(y) - len(wanted)
        assert set(whole.others["region"].tolist()) == {"NA", "EU"}
        with pytest.raises(ReadError, match=rf"values are missing in {whole.dropped} of .* rows: 'y'"):
            read_cases(path)


@pytest.mark.parametrize("name", ["NA", "None", "nan", "null"])
def test_a_class_may_be_called_as_what_is_missing(name: str, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(f"y,p_1,p_{name}\n1,0.25,0.75\n{name},0.25,0.75\nN/A,0.25,0.75\n")
    whole, (part,) = read_cases(path, drop_missing=True), case_batches(path, drop_missing=True)
    assert whole.y.tolist() == part.y.tolist() == ["1", name]
    assert whole.dropped == part.dropped == 1


def test_classes_that_are_one_number_want_texts_as_targets(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("y,p_1.1,p_1.10\n1.100,0.25,0.75\n")
    with pytest.raises(ValueError, match=r"'1.1', '1.10' are one number, .*; give targets as texts"):
        read_cases(tmp_path / "p.csv")


@pytest.mark.parametrize("names", [("0", "1", "2"), ("0.5", "1.5"), ("-1", "1"), ("0.0", "1.0")])
def test_names_that_are_numbers_stay_numbers(names: tuple[str, ...], tmp_path: Path) -> None:
    row = ",0.5" * 2 + ",0" * (len(names) - 2) + "\n"
    (tmp_path / "p.csv").write_text(
        "y," + ",".join(f"p_{name}" for name in names) + "\n" + "".join(name + row for name in names)
    )
    assert read_cases(tmp_path / "p.csv").y.tolist() == [float(name) for name in names]


def test_numbers_without_the_zeros_of_their_columns_are_the_same_classes(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("y,p_01,p_02\n1,0.25,0.75\n2,0.25,0.75\n")
    cases = read_cases(tmp_path / "p.csv")
    assert wc.brier(cases.y, cases.pred).value == wc.brier([0, 1], wc.Categorical([[0.25, 0.75]] * 2)).value


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_json_lines_in_blocks(encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case of vectors that is alone in its block is no table of columns, and a name may come late."""
    monkeypatch.setattr("wellcal.reading.texts.BLOCK", 80)
    path = tmp_path / "p.jsonl"
    path.write_text('{"y": [1.0, 2.0], "m": [0.5, 0.5], "s": [1.0, 1.0]}\n' * 5, encoding=encoding)
    options = {"encoding": encoding}
    found = list(case_batches(path, "y", diagonal_normal=("m", "s"), options=options))
    assert 1 in [len(cases.y) for cases in found]
    assert sum(len(cases.y) for cases in found) == 5
    monkeypatch.setattr("wellcal.reading.texts.BLOCK", 1 << 18)
    first = '{"y": 1, "rate": 2.0}\n' * 4_000
    path.write_text(first + '{"y": 1, "rate": 2.0, "region": "N"}\n', encoding=encoding)
    (last,) = case_batches(path, "y", poisson="rate", others=["region"], drop_missing=True, options=options)
    assert last.others["region"].tolist() == ["N"]
    path.write_text('{\n "y": [1.0, 2.0],\n "rate": [0.5, 0.5]\n}', encoding=encoding)
    with pytest.raises(ReadError, match="one JSON object that holds whole columns"):
        read_table(path, encoding=encoding)


@pytest.mark.parametrize("end", ["jsonl", "jsonl.gz"])
@pytest.mark.parametrize("labelled_first", [True, False])
def test_keys_that_a_block_of_json_omits_are_missing(
    labelled_first: bool, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a name that no block has is unknown."""
    monkeypatch.setattr("wellcal.reading.texts.BLOCK", 400)
    path = tmp_path / f"p.{end}"
    blocks = ['{"y": "a", "p_a": 0.5, "p_b": 0.5}\n' * 30, '{"p_a": 0.5, "p_b": 0.5}\n' * 20]
    written = "".join(blocks if labelled_first else reversed(blocks)).encode()
    path.write_bytes(gzip.compress(written) if end.endswith("gz") else written)
    for role in ({"probs": "p_*"}, {}):
        found = list(case_batches(path, drop_missing=True, **role))
        assert (sum(len(cases.y) for cases in found), sum(cases.dropped for cases in found)) == (30, 20)
        assert all(cases.y.tolist() == ["a"] * len(cases.y) for cases in found)
        first = r"row 31 \(line 31\)" if labelled_first else r"row 1 \(line 1\)"
        first = first if end == "jsonl" else first.partition(" \\")[0]
        with pytest.raises(ReadError, match=rf"missing in 20 of 50 rows: 'y' \(20\), the first in {first};"):
            list(case_batches(path, **role))
    batches = list(read_batches(path, ["y", "p_a"]))
    assert len(batches) > 2
    assert pa.concat_tables(batches)["y"].null_count == 20
    for columns in (["z"], lambda _: ["z"]):
        with pytest.raises(ReadError, match=r"there is no column 'z'; the columns are .*'y'"):
            next(read_batches(path, columns))


def test_keys_that_standard_input_omits_later_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wellcal.reading.texts.BLOCK", 1 << 18)
    lines = b'{"y": 1.0, "mu": 0.5, "sigma": 1.0}\n' * 9_000 + b'{"mu": 0.5, "sigma": 1.0}\n' * 9_000
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    found = list(case_batches("-", normal=("mu", "sigma"), drop_missing=True))
    assert (sum(len(cases.y) for cases in found), sum(cases.dropped for cases in found)) == (9_000, 9_000)


def test_rows_of_cases_are_counted_from_the_first_row_of_the_file(tmp_path: Path) -> None:
    """Also where the first batches have no whole row."""
    path = tmp_path / "p.csv"
    path.write_text("y,rate\n" + ",1\n" * 5 + "1,1\n,1\n2,1\n3,1\n")
    found = list(case_batches(path, poisson="rate", drop_missing=True, options={"rows": 2}))
    assert [None if cases.rows is None else cases.rows.tolist() for cases in found] == [[5], [1], None]
    assert [cases.dropped for cases in found] == [5, 1, 0]


def test_arrays_of_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", y=np.array([0, 2]), p=np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]))
    cases = read_cases(tmp_path / "p.npz", "y", probs="p_0:p_2")
    assert cases.pred.labels().tolist() == [0, 1, 2]
    np.save(tmp_path / "p.npy", np.arange(6.0).reshape(3, 2))
    assert read_table(tmp_path / "p.npy").column_names == ["c_0", "c_1"]


def test_a_file_as_cases(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text(",") + ",1,1,N\n")
    with pytest.raises(ReadError, match=r"p.csv: .* 1 of 8 rows: 'y' \(1\), .* row 8 \(line 9\)"):
        read_cases(path)
    cases = read_cases(path, drop_missing=True, others=["region"])
    assert cases.dropped == 1
    assert cases.taken == "target: y; normal: loc = mu, scale = sigma"
    assert cases.others["region"].tolist() == TABLE["region"].to_pylist()
    wanted = wc.crps(np.arange(N) / 4, wc.Normal(np.arange(N) / 2, np.ones(N)))
    assert wc.crps(cases.y, cases.pred).value == wanted.value


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.jsonl", "p.npz", "-"])
def test_a_file_as_batches_of_cases(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path: Path | str = tmp_path / name
    if name == "-":
        path = "-"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text(",").encode())))
    else:
        WRITERS[name](tmp_path / name)
    batches = list(case_batches(path, others=["region"], options={"rows": 3}))
    assert [len(cases.pred) for cases in batches] == [3, 3, 1]
    assert np.concatenate([cases.y for cases in batches]).tolist() == TABLE["y"].to_pylist()
    assert batches[-1].others["region"].tolist() == ["N"]


def test_rows_are_those_of_the_file(tmp_path: Path) -> None:
    """Counted from 1 as lines are, whichever rows are dropped, with the line where a row is one."""
    plain = "y,mu,sigma\n0.1,0,1\n,0,1\n0.3,0,1\n0.4,0,-1\n"
    for name, content, place in (
        ("p.csv", plain, r"row 4 \(line 5\): found -1"),
        ("quoted.csv", plain.replace("0.1,", '"0.1",'), r"row 4 \(line 5\): found -1"),
        ("blank.csv", plain.replace("\n0.3", "\n\n0.3"), "row 4: found -1"),
        ("p.jsonl", '{"y":1,"mu":0,"sigma":1}\n{"y":1,"mu":0,"sigma":-1}\n', r"row 2 \(line 2\): found -1"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(ReadError, match=rf"{name}: normal: .* must not be negative in {place}"):
            read_cases(tmp_path / name, drop_missing=True)
    (tmp_path / "c.csv").write_text("y,rate\n2,1.5\n-1,1.5\n")
    with pytest.raises(ReadError, match=r"c.csv: target 'y' .* in row 2 \(line 3\): found -1"):
        read_cases(tmp_path / "c.csv")
    np.savez(tmp_path / "p.npz", y=[0.1, np.inf], mu=[0.0, 0.0], sigma=[1.0, 1.0])
    with pytest.raises(ReadError, match=r"p.npz: target 'y' is not finite in row 2: found inf"):
        read_cases(tmp_path / "p.npz")


def test_names_and_labels_that_look_like_places_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("row 1,row 2,row 3\n1,2,1\n1,2,-1\n")
    with pytest.raises(ReadError, match=r"loc = row 2, scale = row 3: .* in row 2 \(line 3\): found -1"):
        read_cases(path, "row 1", normal=("row 2", "row 3"))
    with pytest.raises(ReadError, match=r"no column 'row 9'; did you mean 'row 3' or 'row 2' or 'row 1'"):
        read_cases(path, "row 9", normal=("row 2", "row 3"))
    path.write_text("y,p_a,p_b\na,0.5,0.5\nrow 7,0.5,0.5\n")
    with pytest.raises(ReadError, match=r"in row 2 \(line 3\): found 'row 7'"):
        read_cases(path, "y", probs="p_*")


def test_a_file_without_a_name_is_no_folder() -> None:
    with pytest.raises(ReadError, match="the name of the file is empty"):
        read_table("")


def test_targets_of_one_column_or_entry(tmp_path: Path) -> None:
    """An array of one column is a column; a column of lists is none of single values."""
    y, mu, sigma = np.linspace(-1.0, 1.0, 12)[:, None], np.zeros((12, 1)), np.ones(12)
    np.savez(tmp_path / "p.npz", y=y, mu=mu, sigma=sigma)
    assert read_table(tmp_path / "p.npz").column_names == ["y", "mu", "sigma"]
    np.savez(tmp_path / "twice.npz", p=np.ones((12, 2)), p_0=np.ones((12, 1)))
    with pytest.raises(ReadError, match="two arrays make a column 'p_0'"):
        read_table(tmp_path / "twice.npz")
    pq.write_table(pa.table({"y": y.tolist(), "mu": mu[:, 0], "sigma": sigma}), tmp_path / "p.parquet")
    with pytest.raises(ReadError, match=r"a single value in each row, found lists of 1; write the values"):
        read_cases(tmp_path / "p.parquet", "y", normal=("mu", "sigma"))


def test_parts_of_a_table_are_of_about_the_same_size(tmp_path: Path) -> None:
    """What says which values are missing counts as bytes: a few rows of each part were left over for it."""
    table = pa.table({f"p_{k}": pa.array(np.zeros(1000)) for k in range(5000)})
    pq.write_table(table, tmp_path / "p.parquet")
    assert [batch.num_rows for batch in read_batches(tmp_path / "p.parquet")] == [838, 162]


def test_rows_of_long_lists_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    """Though each is in one column; and those that are not asked for do not count."""
    draws = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(6_000_000)), 2000)
    table = pa.table({"y": np.zeros(3000), "draws": draws, "rate": np.ones(3000)})
    pq.write_table(table.slice(0, 0), tmp_path / "none.parquet")
    with pq.ParquetWriter(tmp_path / "p.parquet", table.schema) as writer:
        writer.write_table(table.slice(0, 0))
        writer.write_table(table)
    feather.write_feather(table, tmp_path / "p.arrow", compression="uncompressed")
    for name in ("p.parquet", "p.arrow"):
        parts = [batch.num_rows for batch in read_batches(tmp_path / name)]
        assert sum(parts) == 3000
        assert max(parts) < 2200
    assert [batch.num_rows for batch in read_batches(tmp_path / "p.parquet", ["rate"])] == [3000]
    size = file_size(tmp_path / "p.parquet")
    assert size is not None
    assert size.table == 8 * 3000 * 2002
    assert file_size(tmp_path / "none.parquet").rows == 0  # pyright: ignore[reportOptionalMemberAccess]


def test_points_that_may_separate_thousands_are_told(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("y;rate\n1.204;7\n875;3\n-2.310;4\n17;5\n1.001;6\n-3;8\n")
    with pytest.warns(UserWarning, match=r"p\.csv: column 'y' has whole .* such as '1\.204'") as notes:
        assert read_cases(path, "y", normal=("rate", 2.0)).y[0] == 1.204
    assert len(notes) == 1
    for other in ("0.204", "1.2", "1.2045", "1204"):  # decimals, or no separators
        path.write_text(f"y;rate\n{other};7\n875;3\n-2.310;4\n17;5\n1.001;6\n-3;8\n")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert read_table(path).num_rows == 6


def test_a_gap_in_a_list_is_a_missing_value() -> None:
    table = pa.table({"y": [0.5, 1.5, 2.5], "draws": [[0.0, 1.0], [None, 2.0], None]})
    for frame in (table, table.to_pandas(), pl.from_arrow(table)):
        with pytest.raises(ValueError, match=r"missing in 2 of 3 rows: 'draws' \(2\), the first in row 1"):
            as_cases(frame, "y", samples="draws")
        assert as_cases(frame, "y", samples="draws", drop_missing=True).dropped == 2


def test_a_column_of_lists_is_written_as_one(tmp_path: Path) -> None:
    table = pa.table({"y": [0.5, 1.5], "draws": [[0.0, 1.0], [1.0, 2.0]]})
    pq.write_table(table, tmp_path / "draws.parquet")
    cases = read_models(tmp_path / "draws.parquet", models={"a": {"samples": "draws"}})
    columns = prediction_columns(cases.readings["a"], wc.Samples(cases.models["a"].values + 1.0, axis=1))
    made = with_columns(cases.frame, columns)
    write_table(made, tmp_path / "out.parquet")
    assert read_table(tmp_path / "out.parquet")["draws"].to_pylist() == [[1.0, 2.0], [2.0, 3.0]]
    with pytest.raises(ValueError, match=r"out.csv: column 'draws' holds lists.*parquet"):
        write_table(made, tmp_path / "out.csv")


@pytest.mark.parametrize("end", ["jsonl", "npz", "csv", "parquet"])
def test_decimal_numbers_stay_numbers(tmp_path: Path, end: str) -> None:
    path = tmp_path / f"p.{end}"
    write_table(pa.table({"y": pa.array([Decimal("1.5")]), "name": ["a"]}), path)
    assert [float(value) for value in read_table(path)["y"].to_pylist()] == [1.5]
    assert read_table(path)["y"].type not in (pa.string(), pa.large_string())


def test_numbers_for_all_rows_are_written_beside_what_is_there() -> None:
    """Each part has a column of its own, and none takes the place of one that was not read."""
    table = pa.table({"y": [0.5], "a": [0.0], "b": [1.0], "scale": ["wide"]})
    parts = [{"normal": ("a", 1.0)}, {"normal": ("b", 2.0)}]
    _, found = found_columns(Table(table), "y", {"mixture": parts})
    normals = [wc.Normal([5.0], [7.0]), wc.Normal([6.0], [8.0])]
    columns = prediction_columns(found, wc.Mixture(normals), table.column_names)
    wanted = {"y": [0.5], "a": [5.0], "b": [6.0], "scale": ["wide"], "scale_2": [7.0], "scale_3": [8.0]}
    assert with_columns(table, columns).to_pydict() == wanted


def test_errors_say_where_a_batch_begins(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("y,rate,note\n1,2.0,a\n2,2.0,\n3,,b\n,1.0,c\n5,1.0,d\n,,e\n")
    with pytest.raises(
        ReadError, match=r"missing in 3 of 6 rows: 'y' \(2\), 'rate' \(2\), .* row 3 \(line 4\)"
    ):
        list(case_batches(path, "y", poisson="rate", options={"rows": 2}))
    found = list(case_batches(path, drop_missing=True, options={"rows": 2}))
    assert [(cases.y.tolist(), cases.dropped) for cases in found] == [([1, 2], 2), ([5], 1)]
    with pytest.raises(ReadError, match=r"p.csv: poisson: there is no column 'rat'; did you mean 'rate'"):
        list(case_batches(path, "y", poisson="rat"))
    path.write_text("y,rate\n,1.0\n1.0,\n")
    with pytest.raises(ReadError, match="a value is missing in all 2 rows"):
        list(case_batches(path, "y", poisson="rate", drop_missing=True, options={"rows": 1}))


def test_only_the_columns_that_are_needed_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first batch tells which: a column that changes its kind later does no harm."""
    monkeypatch.setattr("wellcal.reading.texts.BLOCK", 1 << 14)
    path = tmp_path / "p.csv"
    path.write_text("y,rate,note\n" + "1,2.0,1\n" * 20_000 + "1,2.0,a\n")
    assert sum(len(cases.y) for cases in case_batches(path, options={"rows": 4_000})) == 20_001


PEAKS = {
    "normal": (300_000, 24, 966e6),
    "probs": (300_000, 90, 1133e6),
    "bernoulli": (300_000, 16, 1027e6),
    "poisson": (300_000, 16, 4557e6),
    "negative_binomial": (100_000, 24, 917e6),
    "samples": (100_000, 512, 1281e6),
    "samples, 20 draws": (200_000, 168, 1110e6),
    "samples, 20 draws, fewer": (20_000, 168, 248e6),
    "samples, 400 draws": (20_000, 3208, 1443e6),
    "quantiles": (300_000, 89, 1109e6),
    "mixture": (150_000, 88, 1182e6),
    "diagonal_normal": (300_000, 72, 919e6),
}
"""Peak memory of `wellcal test` in a process of its own, as measured: cases, bytes of a row, bytes."""


@pytest.mark.parametrize("role", PEAKS)
def test_the_memory_that_a_test_needs_is_told_within_a_factor_of_two(role: str) -> None:
    rows, row, peak = PEAKS[role]
    assert 0.5 < FileSize(rows, 3, rows * row).needed(role.partition(",")[0]) / peak < 2.0


def test_a_report_tests_a_part_of_the_cases() -> None:
    size = FileSize(10_000_000, 3, 240_000_000)
    assert size.needed("normal", 50_000) < 2e9 < size.needed("normal")
    assert size.needed("normal", 20_000_000) == size.needed("normal")


def test_blanks_around_names_of_columns_are_not_part_of_them(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("y, mu , sigma\n0.5, 0.25, 1.0\n1.5, 0.75, 2.0\n")
    assert read_table(path).to_pylist()[0] == {"y": 0.5, "mu": 0.25, "sigma": 1.0}
    assert read_table(path, ["sigma", "y"]).column_names == ["sigma", "y"]
    batches = list(read_batches(path, ["mu"], rows=1))
    assert [batch.to_pylist() for batch in batches] == [[{"mu": 0.25}], [{"mu": 0.75}]]
    with pytest.raises(ReadError, match="there is no column 'tau'"):
        read_table(path, ["tau"])
    path.write_text("y,mu, mu\n0.5,0.25,1.0\n")
    with pytest.warns(UserWarning, match=r"p\.csv: 'mu', ' mu' differ by blanks around them only"):
        assert read_table(path, [" mu"]).to_pylist() == [{" mu": 1.0}]
