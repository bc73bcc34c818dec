"""Dates and times as segments: cut into ranges as numbers are, and named as people name them."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import wellcal as wc
from wellcal.columns.dates import date_text, read_dates, round_date, with_dates
from wellcal.reporting.segmenting import segments_from

N = 400
DAYS = pd.date_range("2020-01-01", periods=N)
BERLIN = DAYS.tz_localize("Europe/Berlin")


def groups(given: Any, n: int = N) -> tuple[list[tuple[str, int]], list[str]]:
    found, left_out = segments_from(given, n, lambda x, name: x)
    return [(one.where, len(one.rows)) for one in found], left_out


@pytest.mark.parametrize(
    "given",
    [
        {"date": DAYS},
        {"date": DAYS.to_numpy().astype("M8[D]")},
        {"date": list(DAYS.date)},
        {"date": DAYS.strftime("%Y-%m-%d").to_numpy().astype(str)},
        {"date": list(DAYS.strftime("%Y-%m-%dT%H:%M:%SZ"))},
        {"date": list(map(str, BERLIN))},
        {"date": list(DAYS.strftime("%Y-%m-%d %H:%M:%S.123456789"))},
        {"date": pd.Series(DAYS).astype("category")},
        pd.DataFrame({"date": BERLIN}),
        {"date": list(BERLIN)},
        pl.DataFrame({"date": pd.Series(BERLIN)}),
        pa.table({"date": pa.array(pd.Series(BERLIN))}),
        pa.table({"date": pa.array(list(DAYS.date))}),
    ],
    ids=[
        "index",
        "numpy",
        "list",
        "texts",
        "zulu",
        "texts of a zone",
        "nanoseconds",
        "category",
        "zone",
        "zones",
        "polars",
        "pyarrow",
        "date32",
    ],
)
def test_dates_are_cut_as_numbers_are(given: Any) -> None:
    """Whoever counts days by hand finds as many: 31 + 29 + 31, 30 + 31 + 30, 31 + 31 + 30 + 31."""
    found, left_out = groups(given)
    assert found == [
        ("where date is before 2020-04-01", 91),
        ("where date is from 2020-04-01 to 2020-06-30", 91),
        ("where date is from 2020-07-01 to 2020-10-31", 123),
        ("where date is 2020-11-01 or later", 95),
    ]
    assert not left_out


@pytest.mark.parametrize("odd", ["2020-02-30", "spring", "1.3.2020"])
def test_texts_of_which_one_is_no_date_are_labels(odd: str) -> None:
    texts = [*DAYS.strftime("%Y-%m-%d")[1:], odd]
    assert read_dates(np.array(texts)).tolist() == texts


def test_few_dates_are_groups_of_their_own_and_times_have_hours() -> None:
    assert groups({"day": DAYS[[2, 0, 1, 0]].repeat(100)})[0] == [
        ("for day = 2020-01-01", 200),
        ("for day = 2020-01-02", 100),
        ("for day = 2020-01-03", 100),
    ]
    found, _ = groups({"time": pd.date_range("2020-01-01", periods=N, freq="7min")})
    assert found[:2] == [
        ("where time is before 2020-01-01 12:00", 103),
        ("where time is between 2020-01-01 12:00 and 2020-01-02 00:00", 103),
    ]


def test_times_of_several_zones_are_compared_as_instants() -> None:
    east, west = (datetime.timezone(datetime.timedelta(hours=hours)) for hours in (9, -8))
    times = [datetime.datetime(2020, 1, 2, 1, tzinfo=east), datetime.datetime(2020, 1, 1, 23, tzinfo=west)]
    first, second = with_dates(np.array(times, dtype=object))
    assert (date_text(first), date_text(second)) == ("2020-01-01 16:00", "2020-01-02 07:00")


@pytest.mark.parametrize("seconds", [1e-6, 0.4, 50.0, 4e3, 3e5, 9e6, 8e8, 3e10])
def test_round_dates_lie_between_and_are_short(seconds: float) -> None:
    rng = np.random.default_rng(0)
    starts = rng.integers(-5_000_000, 5_000_000, 50) * 1_000_000 + rng.integers(0, 10**6, 50)
    for start in starts.tolist():
        low = np.datetime64(start, "us")
        high = low + np.timedelta64(round(seconds * 1e6), "us")
        found = round_date(low, high)
        assert low < found <= high
        if seconds > 2 * 86_400:
            assert len(date_text(found)) == len("2020-01-01")
        if seconds > 2 * 366 * 86_400:
            assert date_text(found).endswith("-01-01")


def test_intervals_of_pandas_have_their_own_names() -> None:
    thirds = pd.cut(pd.Series(np.arange(N)), [-1, 99, 399])
    assert groups(thirds)[0] == [("in segment (-1, 99]", 100), ("in segment (99, 399]", 300)]
    assert groups({"age": thirds})[0] == [("for age = (-1, 99]", 100), ("for age = (99, 399]", 300)]


def test_what_is_left_out_agrees_with_what_was_tested() -> None:
    rng = np.random.default_rng(0)
    names = [f"shop {k}" for k in range(100)]
    few = wc.report(rng.normal(size=100), wc.Normal(np.zeros(100), 1.0), segments={"shop": names}, rng=0)
    assert few.best.segments is not None
    assert few.best.segments.verdict == "No segment has enough cases for a test."
    assert "None of the 100 groups of shop has the 10 cases that a test needs." in few.sampled
    sizes = [12, 12, *[3] * 20]
    shops = np.repeat(names[: len(sizes)], sizes)
    assert groups({"shop": shops}, len(shops))[1] == ["Of the 22 groups of shop the 2 largest were tested."]
