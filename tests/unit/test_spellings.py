"""How labels are written in text files: targets are found among classes, others keep their spelling."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from wellcal.reading import ReadError, case_batches, read_cases, read_models
from wellcal.reading.spellings import as_spelled


@pytest.mark.parametrize("names", [("01", "10", "11"), ("-1", "+1", "2")])
@pytest.mark.parametrize("order", [1, -1])
def test_no_target_is_lost_where_its_like_are_far_from_it(
    names: tuple[str, ...], order: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its text or by its number, whichever of them the first lines have; a strange one is told alike."""
    monkeypatch.setattr("wellcal.reading.sources.HEAD", 512)
    row, path = ",0.25,0.25,0.5\n", tmp_path / "p.csv"
    spelled = [str(int(name)) for name in names] * 40 + [*names] * 40
    y = sorted(spelled, key=lambda text: order * (len(text) + (text in names)))
    header = "y," + ",".join(f"p_{name}" for name in names) + "\n"
    path.write_text(header + "".join(label + row for label in y))
    whole, parts = read_cases(path), list(case_batches(path))
    wanted = [next(name for name in names if int(name) == int(label)) for label in y]
    assert whole.y.tolist() == np.concatenate([cases.y for cases in parts]).tolist() == wanted
    assert whole.pred.labels().tolist() == list(names)
    path.write_text(header + "".join(label + row for label in [*y, "7"]))
    for read in (lambda: read_cases(path), lambda: list(case_batches(path))):
        with pytest.raises(ReadError, match=rf"in row {len(y) + 1} .* found '7'; the classes are [^;]*$"):
            read()


@pytest.mark.parametrize("names", [("0", "1"), ("0.0", "1.0"), ("False", "True"), ("cat", "dog")])
def test_a_strange_target_after_the_head_is_told_as_in_the_whole_file(
    names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wellcal.reading.sources.HEAD", 512)
    path, row = tmp_path / "p.csv", ",0.25,0.75\n"
    path.write_text(f"y,p_{names[0]},p_{names[1]}\n" + (names[1] + row) * 60 + "V27" + row)
    for read in (lambda: read_cases(path), lambda: list(case_batches(path))):
        with pytest.raises(ReadError, match=r"in row 61 \(line 62\): found 'V27'"):
            read()


@pytest.mark.parametrize("note", ['"' + "long\n" * 200 + '"', "short"])
@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("source", ["file", "-"])
def test_labels_are_texts_where_no_row_is_whole_in_the_head(
    note: str, end: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wellcal.reading.sources.HEAD", 512)
    content = f"note,y,p_250,p_V27\n{note},250,0.4,0.6{end}"
    path: Path | str = "-" if source == "-" else tmp_path / "p.csv"
    (tmp_path / "p.csv").write_text(content)
    for read in (lambda: [read_cases(path)], lambda: list(case_batches(path))):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        assert [cases.y.tolist() for cases in read()] == [["250"]]


def test_columns_called_by_codes_are_guessed_in_parts_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wellcal.reading.sources.HEAD", 512)
    path, row = tmp_path / "p.csv", "0.25,0.25,0.5,{}\n"
    for last in ("V27", "428"):
        path.write_text("250,428,V27,y\n" + row.format(250) * 60 + row.format(last))
        whole, parts = read_cases(path), list(case_batches(path))
        assert whole.taken == parts[0].taken == "target: y; probs: probs = 250 .. V27 (3 columns)"
        assert whole.y.tolist() == np.concatenate([cases.y for cases in parts]).tolist()
        assert whole.y.tolist() == ["250"] * 60 + [last]


def test_whole_numbers_that_nobody_asked_for_are_of_no_matter(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("id,y,p_cat,p_dog\n" + "5864005320643522590,cat,0.4,0.6\n" * 3)
    (cases,) = case_batches(path)
    assert cases.y.tolist() == read_cases(path).y.tolist() == ["cat"] * 3


SPELLED: dict[tuple[str, ...], list[object]] = {
    ("1", "2.5", "1e-05"): [1.0, 2.5, 1e-05],
    ("1.0", "1", ""): [1.0, 1.0, None],
    ("0.50", "12.25", "7"): [0.5, 12.25, 7.0],  # a number of decimals that all have
    ("5864005320643522590", "1"): [5864005320643522590, 1],
    ("True", "False", "NA"): [True, False, None],
}


@pytest.mark.parametrize("texts", SPELLED)
def test_numbers_are_numbers_where_these_say_all(texts: tuple[str, ...]) -> None:
    assert as_spelled(pa.chunked_array([list(texts)])).to_pylist() == SPELLED[texts]


WRITTEN = [
    ("1.1", "1.10"),
    ("1.10", "1.9"),
    ("02602", "12602"),
    ("-01", "1"),
    ("+1", "1"),
    ("10935374292672221319", "10935374292672221320"),
    ("10935374292672221319", "0.5"),
    ("TRUE", "FALSE"),
    ("10:00", "12:00"),
    ("NA", "EU", ""),
    ('a "b"', "c\nd,e"),
]


@pytest.mark.parametrize("texts", WRITTEN)
def test_what_numbers_would_lose_are_texts(
    texts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As segments and as groups, whole and in parts, unless the first of these are numbers: refused then."""
    assert as_spelled(pa.chunked_array([list(texts)])).to_pylist() == list(texts)
    given = [text for text in texts if text]
    entries = ['"' + text.replace('"', '""') + '"' for text in given]
    path, others = tmp_path / "p.csv", {"code": "--segments"}
    path.write_text("code,y,rate\n" + "".join(f"{entry},1,2.5\n" for entry in entries * 200))
    monkeypatch.setattr("wellcal.reading.texts.BLOCK", 1 << 10)
    parts = list(case_batches(path, others=others))
    assert len(parts) > 1
    whole = read_cases(path, others=others).others["code"].tolist()
    assert whole == np.concatenate([part.others["code"] for part in parts]).tolist() == given * 200
    path.write_text("code,y,rate\n" + "7,1,2.5\n" * 400 + "".join(f"{entry},1,2.5\n" for entry in entries))
    assert read_cases(path, others=others).others["code"].tolist() == ["7"] * 400 + given
    with pytest.raises(
        ReadError, match=r"p.csv: column 'code' changes its kind from numbers to texts after row"
    ):
        list(case_batches(path, others=others))


def test_weights_are_numbers_however_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("w,y,rate\n1.5,1,2.5\n1.50,1,2.5\n01,1,2.5\n")
    for others in (["w"], {"w": "--weights"}):
        assert read_cases(tmp_path / "p.csv", others=others).others["w"].tolist() == [1.5, 1.5, 1.0]


def test_other_columns_of_a_frame(tmp_path: Path) -> None:
    path, models = tmp_path / "p.csv", {"a": {"poisson": "rate"}}
    path.write_text("zip,n,y,rate\n02602,1.50,1,2.50\n12602,2.25,2,2.50\n")
    for how, zips, numbers in (
        ("inferred", [2602, 12602], [1.5, 2.25]),
        ("spelled", ["02602", "12602"], [1.5, 2.25]),
        ("written", ["02602", "12602"], ["1.50", "2.25"]),
    ):
        frame = read_models(path, models=models, other_columns=how).frame
        assert frame.to_pydict() == {"zip": zips, "n": numbers, "y": [1, 2], "rate": [2.5, 2.5]}
    with pytest.raises(ValueError, match="unknown other_columns 'texts'"):
        read_models(path, models=models, other_columns="texts")


@pytest.mark.parametrize("others", [{"ver,zip": "--segments"}, {"ver": "--segments", "zip": "--groups"}])
def test_several_columns_keep_their_spelling_and_so_do_classes(
    others: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "p.csv"
    rows = ["1.10,02602,1.10", "1.1,2602,1.1", "1.9,10001,1.1"]
    path.write_text("ver,zip,y,p_1.1,p_1.10\n" + "".join(f"{row},0.5,0.5\n" for row in rows))
    models = read_models(path, models={"a": {}}, others=others)
    for cases in (read_cases(path, others=others), models, *case_batches(path, others=others)):
        assert cases.y.tolist() == ["1.10", "1.1", "1.1"]
        assert cases.others["ver"].tolist() == ["1.10", "1.1", "1.9"]
        assert cases.others["zip"].tolist() == ["02602", "2602", "10001"]


@pytest.mark.parametrize("source", ["file", "-"])
def test_first_lines_that_say_too_little_change_no_spelling(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first lines have no V27, and the role says that targets are classes."""
    monkeypatch.setattr("wellcal.reading.sources.HEAD", 512)
    content = "y,rate,p_01,p_V27,zip\n" + "1,2,0.5,0.5,02602\n" * 60 + "V27,2,0.5,0.5,2602\n"
    (tmp_path / "p.csv").write_text(content)
    path: Path | str = tmp_path / "p.csv"
    if source == "-":
        path = "-"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    cases = read_cases(path, others={"zip": "segments"}, probs="p_*")
    assert cases.y.tolist() == ["01"] * 60 + ["V27"]
    assert cases.others["zip"].tolist() == ["02602"] * 60 + ["2602"]
