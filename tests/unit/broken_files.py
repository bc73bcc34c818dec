"""A corpus of broken files, each with what must be said of it."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import pickle
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
from hypothesis import strategies as st

FUZZED = int(os.environ.get("WELLCAL_FUZZED_FILES", "40"))
"""Files that are made up for each test; `make fuzz` makes more."""

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


def zip_bytes() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
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
    "UTF-16 without its mark": ("p.csv", "y,mu\n1,2\n".encode("utf-16-le"), "encoding='utf-16-le'"),
    "comments at the top": (
        "p.csv",
        b"# Stan major = 2\n# Stan minor = 35\n" + GOOD,
        r"begin with '#', such as '# Stan major = 2'.*remove them",
    ),
    "comments below the header": (
        "p.csv",
        GOOD.replace(b"0.1", b"# Adapted\n0.1", 1),
        r"begin with '#', such as '# Adapted'.*remove them",
    ),
    "ragged": ("p.csv", b"y,mu\n1,2\n3\n4,5\n", r"row 2 \('3'\) has 1 entries where the header has 2"),
    "an open quotation": ("p.csv", b'y,mu\n1,2\n"3,4\n5,6\n', r"row 2 \(line 3\) and never closed; close it"),
    "a remark before the header": (
        "p.csv",
        b"# made by model 3\n" + GOOD,
        r"line 1 \('# made by model 3'\) is not a header: .*; remove such lines",
    ),
    "a title before the header": (
        "p.csv",
        b"# model 3, run 7\n" + GOOD,
        r"line 1 \('# model 3'\) is not a header",
    ),
    "blanks between columns": ("p.csv", GOOD.replace(b",", b" "), "separated by blanks; give delimiter=' '"),
    "names of rows, which the header has no name for": (
        "p.csv",
        b'"y","mu","sigma"\n"1",0,1,1\n"2",0,1,1\n',
        r"may begin with names of rows, such as '1'; .*row.names = FALSE",
    ),
    "names of rows, and blanks between columns": (
        "p.txt",
        b'"y" "mu" "sigma"\n"Mazda" 0 1 1\n',
        "separated by blanks, and the lines have one entry more than the header: .* such as 'Mazda'",
    ),
    "a delimiter at the end of lines": (
        "p.csv",
        b"y,mu,sigma\n0,1,1,\n0,1,1,\n",
        "end with a delimiter, and",
    ),
    "a point for a missing value": (
        "p.csv",
        b"y,mu,sigma\n0,1,1\n0,.,1\n",
        r"'mu' .*'\.' in row 2 \(line 3\)\); if '\.' says that a value is missing, leave the entry empty",
    ),
    "many blanks between columns": ("p.csv", GOOD.replace(b",", b"   "), "by blanks; write a comma"),
    "empty": ("p.csv", b"", "the file is empty"),
    "blank": ("p.csv", b"\n\n\n", "header"),
    "header only": ("p.csv", b"y,mu,sigma\n", "no rows"),
    "header only, as roles guess it": ("p.csv", b"y,mu,sigma,region\n", "columns but no rows"),
    "header only, and no end of line": ("p.csv", b"y,mu,sigma", "columns but no rows"),
    "decimal commas": (
        "p.csv",
        b"y;mu;sigma\n0,1;0,0;1,0\n",
        r"column '\w+' must hold numbers, .*read the file with decimal=','",
    ),
    "decimal commas without another delimiter": ("p.csv", b"y,mu,sigma\n0,1,0,0,1,0\n", "has 6 entries"),
    "infinity": (
        "p.csv",
        b"y,mu,sigma\n0,1,1\n0,Infinity,1\n",
        r"column 'mu' .*finite.*inf in row 2 \(line 3\)",
    ),
    "a missing value": (
        "p.csv",
        b"y,mu,sigma\n0,1,1\n0,,1\n0,NaN,1\n",
        r"missing in 2 of 3 rows: 'mu' \(2\), the first in row 2 \(line 3\)",
    ),
    "duplicate names": ("p.csv", b"y,mu,mu\n1,2,3\n", "'mu' more than once"),
    "binary called csv": ("p.csv", b"y,mu\n\x00\x01\x02", "null byte in line 2"),
    "Parquet called csv": ("p.csv", parquet_bytes(), "looks like parquet; .*format='parquet'"),
    "text called Parquet": ("p.parquet", GOOD, "does not begin as such files do"),
    "a pickle": ("p.csv", pickle.dumps({"y": [1.0] * 5}), "a pickle, which is never read"),
    "an old pickle": ("p.csv", pickle.dumps({"y": [1.0]}, protocol=2), "a pickle, which is never read"),
    "a pickle by its name": ("p.pkl", pickle.dumps([1.0] * 5, protocol=5), "a pickle, which is never read"),
    "a new Excel workbook": ("p.xlsx", zip_bytes(), "Excel workbook: save it as CSV"),
    "xz": ("p.csv.xz", lzma.compress(GOOD), "compressed by xz"),
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
        "column 'mu' .*finite.*-inf in row 1 ",
    ),
    "a JSON array": ("p.json", b'[{"y": 1.0, "mu": 0.0, "sigma": 1.0}]', "one JSON array; write one object"),
    "JSON of columns": ("p.json", b'{"y": {"0": 1.0}, "mu": [0.0]}', "holds whole columns; write one object"),
    "JSON cut off": ("p.jsonl", b'{"y": 1.0}\n{"y": 2', "row 2 is no JSON object"),
    "truncated gzip": ("p.csv.gz", gzip.compress(GOOD * 100)[:40], "cannot be read as csv"),
    "gzip without its name": ("p.csv", gzip.compress(GOOD), "gzip"),
    "Excel": ("p.csv", b"\xd0\xcf\x11\xe0" + bytes(50), "Excel"),
}
"""By what is wrong: the name of the file, what it holds, and what the sentence about it says."""

READABLE: dict[str, bytes] = {
    "p.csv": GOOD,
    "p.tsv": GOOD.replace(b",", b"\t"),
    "p.parquet": parquet_bytes(),
    "p.arrow": arrow_bytes(),
    "p.npz": npz_bytes(y=np.zeros(3), mu=np.ones(3), sigma=np.ones(3)),
    "p.npy": npy_bytes(np.arange(6.0).reshape(2, 3)),
    "p.jsonl": b'{"y": 0.5, "mu": 0.0, "sigma": 1.0}\n{"y": 1, "mu": 0, "sigma": 1}\n',
}
"""Files that can be read, to be broken."""


@st.composite
def spoilt_files(draw: st.DrawFn) -> tuple[str, bytes]:
    """A name and bytes: a readable file with other bytes in it, or without its end."""
    name = draw(st.sampled_from(sorted(READABLE)))
    content = bytearray(READABLE[name])
    for where, other in draw(st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4)), max_size=3)):
        start = int(where * len(content))
        content[start : start + len(other)] = other
    return name, bytes(content[: int(draw(st.floats(0.1, 1.5)) * len(content))])
