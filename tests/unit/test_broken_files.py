"""Files that cannot be read: each ends with one sentence that says what, where, and what to do."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wellcal.reading import ReadError, as_cases, read_batches, read_cases, read_table

TABLE = pa.table({"y": [0.1, 0.2], "mu": [0.0, 1.0], "sigma": [1.0, 2.0]})


def parquet_bytes() -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink)
    return sink.getvalue()


def arrow_bytes() -> bytes:
    sink = io.BytesIO()
    feather.write_feather(TABLE, sink, compression="uncompressed")
    return sink.getvalue()


def npz_bytes(**arrays: object) -> bytes:
    sink = io.BytesIO()
    np.savez(sink, **arrays)  # pyright: ignore[reportArgumentType]
    return sink.getvalue()


def npy_bytes(array: object) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array)  # pyright: ignore[reportArgumentType]
    return sink.getvalue()


GOOD = b"y,mu,sigma\n0.1,0.0,1.0\n0.2,1.0,2.0\n"

BROKEN: dict[str, tuple[str, bytes, str]] = {
    "truncated Parquet": ("p.parquet", parquet_bytes()[:-20], r"parquet: .*cut off"),
    "Parquet with a broken middle": (
        "p.parquet",
        parquet_bytes()[:4] + b"\xff" * 40 + parquet_bytes()[44:],
        r"cannot be read as parquet",
    ),
    "truncated Arrow": ("p.arrow", arrow_bytes()[:-30], "cannot be read as arrow"),
    "wrong encoding": ("p.csv", b"y,mu\n1,2\ncaf\xe9,3\n", r"not UTF8 text in column 'y', line 3; .*latin-1"),
    "wrong encoding in the header": ("p.csv", b"caf\xe9,mu\n1,2\n", "not UTF8 text, line 1"),
    "UTF-16": ("p.csv", "y,mu\n1,2\n".encode("utf-16"), "encoding='utf-16'"),
    "ragged": ("p.csv", b"y,mu\n1,2\n3\n4,5\n", r"row 1 \('3'\) has 1 entries where the header has 2"),
    "empty": ("p.csv", b"", "the file is empty"),
    "blank": ("p.csv", b"\n\n\n", "header"),
    "header only": ("p.csv", b"y,mu,sigma\n", "no rows"),
    "decimal commas": (
        "p.csv",
        b"y;mu;sigma\n0,1;0,0;1,0\n",
        r"column '\w+' must hold numbers, .*decimal comma: .*decimal=','",
    ),
    "decimal commas without another delimiter": ("p.csv", b"y,mu,sigma\n0,1,0,0,1,0\n", "has 6 entries"),
    "infinity": ("p.csv", b"y,mu,sigma\n0,1,1\n0,Infinity,1\n", r"column 'mu' .*finite.*inf in row 1"),
    "a missing value": (
        "p.csv",
        b"y,mu,sigma\n0,1,1\n0,,1\n0,NaN,1\n",
        r"2 missing values in 'mu' \(2\), .*row 1",
    ),
    "duplicate names": ("p.csv", b"y,mu,mu\n1,2,3\n", "'mu' more than once"),
    "binary called csv": ("p.csv", b"y,mu\n\x00\x01\x02", "null byte in line 2"),
    "Parquet called csv": ("p.csv", parquet_bytes(), "looks like parquet; .*format='parquet'"),
    "text called Parquet": ("p.parquet", GOOD, "does not begin as such files do"),
    "a pickle": ("p.csv", pickle.dumps({"y": [1.0] * 5}), "a pickle, which is never read"),
    "pickled objects in NPY": ("p.npy", npy_bytes(np.array([{}], dtype=object)), "never read"),
    "pickled objects in NPZ": ("p.npz", npz_bytes(y=np.array([{}], dtype=object)), "never read"),
    "truncated NPZ": ("p.npz", npz_bytes(y=np.zeros(50))[:100], "no whole NPZ file"),
    "truncated NPY": ("p.npy", npy_bytes(np.zeros(50))[:200], "cannot be read as npy"),
    "arrays of two lengths": (
        "p.npz",
        npz_bytes(y=np.zeros(3), mu=np.zeros(2)),
        "3 rows in 'y' and 2 in 'mu'",
    ),
    "an array of matrices": ("p.npz", npz_bytes(y=np.zeros((3, 2, 2))), r"shape \(3, 2, 2\)"),
    "complex numbers": ("p.npy", npy_bytes(np.zeros(3, dtype=complex)), "dtype complex128"),
    "JSON with Infinity": (
        "p.jsonl",
        b'{"y": 1, "mu": -Infinity, "sigma": 1}\n',
        "column 'mu' .*finite.*-inf in row 0",
    ),
    "JSON cut off": ("p.jsonl", b'{"y": 1.0}\n{"y": 2', "cannot be read as jsonl"),
    "truncated gzip": ("p.csv.gz", gzip.compress(GOOD * 100)[:40], "cannot be read as csv"),
    "gzip without its name": ("p.csv", gzip.compress(GOOD), "gzip"),
    "Excel": ("p.csv", b"\xd0\xcf\x11\xe0" + bytes(50), "Excel"),
}


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
    with pytest.raises(ReadError, match="changes its kind"):
        list(read_batches(path))
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"y": 1}\n{"y": \n')
    with pytest.raises(ReadError, match="no JSON object"):
        list(read_batches(path))


# -- fuzzed ---------------------------------------------------------------------------------------------

READABLE: dict[str, bytes] = {
    "p.csv": GOOD,
    "p.tsv": GOOD.replace(b",", b"\t"),
    "p.parquet": parquet_bytes(),
    "p.arrow": arrow_bytes(),
    "p.npz": npz_bytes(y=np.zeros(3), mu=np.ones(3), sigma=np.ones(3)),
    "p.npy": npy_bytes(np.arange(6.0).reshape(2, 3)),
    "p.jsonl": b'{"y": 0.5, "mu": 0.0, "sigma": 1.0}\n{"y": 1, "mu": 0, "sigma": 1}\n',
}


def ends_well(call: Callable[[], object]) -> None:
    said = "something"
    try:
        call()
    except ReadError as error:
        said = str(error)
    assert said
    assert "\n" not in said


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(READABLE)),
    places=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4)), max_size=3),
    end=st.floats(0.1, 1.5),
)
def test_files_with_other_bytes_in_them(
    name: str, places: list[tuple[float, bytes]], end: float, tmp_path: Path
) -> None:
    content = bytearray(READABLE[name])
    for where, given_bytes in places:
        start = int(where * len(content))
        content[start : start + len(given_bytes)] = given_bytes
    path = tmp_path / name
    path.write_bytes(bytes(content[: int(end * len(content))]))
    ends_well(lambda: read_cases(path, "y", normal=("mu", "sigma")))
    ends_well(lambda: list(read_batches(path)))


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode)))
def test_standard_input_with_anything_in_it(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    ends_well(lambda: read_cases("-", "y", normal=("mu", "sigma")))
