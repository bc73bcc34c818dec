"""Errors about rows carry them, through whoever adds words, up to the reader who counts as the file does."""

from __future__ import annotations

import pickle
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wellcal as wc
from wellcal.reading import ReadError, as_cases, case_batches, read_cases

SOURCES = Path(wc.__file__).parent
NAN = float("nan")

REFUSED: dict[str, tuple[Callable[[], Any], str, int]] = {
    "a parameter": (lambda: wc.Normal([0.0, 1.0, 2.0], [1.0, 1.0, -1.0]), "scale", 2),
    "a target": (lambda: wc.nll([0.0, NAN], wc.Normal([0.0, 1.0], [1.0, 1.0])), "y", 1),
    "predictions of another package": (lambda: wc.brier([0, 1], [0.2, 1.2]), "probs", 1),
    "what may be logits": (lambda: wc.brier([0, 1], [0.2, -3.0]), "probs", 1),
    "sums": (lambda: wc.Categorical([[0.5, 0.5], [0.5, 0.4]]), "probs", 1),
    "a covariance": (
        lambda: wc.MultivariateNormal(np.zeros((2, 2)), np.stack([np.eye(2), np.ones((2, 2))])),
        "cov",
        1,
    ),
    "an object among numbers": (lambda: wc.Poisson([1.0, None]), "rate", 1),
    "a row that is no sample": (lambda: wc.Samples([["a"], 3]), "values", 1),
    "ragged samples": (lambda: wc.Samples([["a", "b"], ["a"]]), "values", 0),
    "groups": (
        lambda: wc.calibration_test([0, 1, 0], [0.2, 0.7, 0.5], groups=["a", "b", None]),
        "groups",
        2,
    ),
    "one of several models": (lambda: wc.compare([0, 1], {"a": [0.2, 0.7], "b": [0.2, 1.2]}), "probs", 1),
    "columns": (
        lambda: wc.as_predictions(pd.DataFrame({"mu": [0.0, 1.0], "sd": [1.0, -2.0]}), normal=("mu", "sd")),
        "scale",
        1,
    ),
    "a column": (
        lambda: wc.as_predictions(pd.DataFrame({"p": [0.5, np.inf]}), bernoulli="p"),
        "p",
        1,
    ),
    "missing values": (
        lambda: wc.as_predictions(pd.DataFrame({"p": [0.5, NAN, NAN]}), bernoulli="p"),
        "p",
        1,
    ),
    "texts": (lambda: wc.as_predictions(pd.DataFrame({"p": ["0.5", "high"]}), bernoulli="p"), "p", 1),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_error_carries_its_row(case: str) -> None:
    call, argument, row = REFUSED[case]
    with pytest.raises(wc.RowError) as caught:
        call()
    error = caught.value
    assert (error.argument, error.row) == (argument, row)
    assert f"row {row}" in str(error)
    if error.remedy:
        assert str(error).endswith(f"; {error.remedy}")
    again: Any = pickle.loads(pickle.dumps(error))  # as it comes back from a process
    assert (type(again), str(again)) == (type(error), str(error))
    assert (again.argument, again.row, again.remedy) == (error.argument, error.row, error.remedy)


def test_what_is_of_the_wrong_type_remains_a_type_error() -> None:
    for case in ("an object among numbers", "a row that is no sample", "texts"):
        with pytest.raises(TypeError):
            REFUSED[case][0]()
    with pytest.raises(ValueError) as caught:
        REFUSED["a parameter"][0]()
    assert not isinstance(caught.value, TypeError)


def test_names_of_a_user_are_not_taken_for_rows(tmp_path: Path) -> None:
    path = tmp_path / "in row 3.csv"
    path.write_text("y,in row 1,of row 1\n0.0,1.0,1.0\n0.0,1.0,1.0\n0.5,1.0,-1.0\n")
    with pytest.raises(ReadError) as caught:
        read_cases(path, "y", normal=("in row 1", "of row 1"))
    assert str(caught.value) == (
        f"{path}: normal: loc = in row 1, scale = of row 1: scale must not be negative in row 3 (line 4): "
        "found -1.; check the model's output"
    )


def test_rows_are_counted_before_others_are_dropped(tmp_path: Path) -> None:
    frame = pd.DataFrame({"y": [NAN, 0.0, NAN, 1.0], "mu": [0.0] * 4, "sigma": [1.0, 1.0, 1.0, -1.0]})
    with pytest.raises(wc.RowError) as caught:
        as_cases(frame, drop_missing=True)
    assert caught.value.row == 3
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ReadError, match=r"negative in row 4 \(line 5\)"):
        read_cases(tmp_path / "a.csv", drop_missing=True)
    with pytest.raises(ReadError, match=r"negative in row 4 \(line 5\)"):
        list(case_batches(tmp_path / "a.csv", drop_missing=True, options={"rows": 2}))


@settings(max_examples=40)
@given(st.integers(2, 12), st.integers(1, 5), st.data())
def test_the_row_that_is_told_is_the_one_that_is_wrong(n: int, size: int, chosen: Any) -> None:
    """Wherever it is, whatever is dropped before it, and however the file is cut into parts."""
    bad = chosen.draw(st.integers(0, n - 1))
    others = st.sets(st.integers(0, n - 1).filter(lambda row: row != bad), max_size=n - 1)
    missing = chosen.draw(others)
    rows = [
        f"{'' if row in missing else 0.5},row {row},{-1.0 if row == bad else 1.0},0.0" for row in range(n)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_text("\n".join(["y,name,sigma,mu", *rows]) + "\n")
        for read in (
            lambda: read_cases(path, others=["name"], drop_missing=True),
            lambda: list(case_batches(path, others=["name"], drop_missing=True, options={"rows": size})),
        ):
            with pytest.raises(ReadError) as caught:
                read()
            assert f"must not be negative in row {bad + 1} (line {bad + 2}): found -1." in str(caught.value)
        if missing:
            with pytest.raises(ReadError) as caught:
                read_cases(path)
            first = min(missing)
            count = len(missing)
            told = f"missing in {count} of {n} rows: 'y' ({count}), the first in row {first + 1} "
            assert told in str(caught.value)


def test_two_rows_of_one_message_are_both_counted_as_the_file_does(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"y": 0.0, "s": [1.0, 2.0]}\n{"y": 0.0, "s": [1.0]}\n')
    with pytest.raises(ReadError, match=r"1 numbers in row 2 \(line 2\) and 2 in row 1 \(line 1\)"):
        read_cases(path, "y", samples="s")


def test_every_message_that_names_a_row_carries_it() -> None:
    """Readers of files count by themselves; everybody else raises an error with rows in it."""
    readers = {f"reading/{name}.py" for name in ("places", "quotations", "texts")}
    allowed = {"_arrays/row_errors.py", "reporting/pieces.py"} | readers
    found = {
        str(path.relative_to(SOURCES).as_posix())
        for path in SOURCES.rglob("*.py")
        if re.search(r"\brow \{|\brow \"\s*f?\"\{", path.read_text())
    }
    assert found <= allowed
