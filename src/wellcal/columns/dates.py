"""Dates and times, for people: as values that can be sorted and cut, and in words."""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray

_MONTHS = (1200, 600, 240, 120, 60, 24, 12, 6, 3, 1)
_SECONDS = (86_400, 43_200, 21_600, 10_800, 3600, 1800, 900, 300, 60, 30, 15, 5, 1)
_YEAR_ZERO = 1970 * 12  # months from there to where NumPy counts from
_WRITTEN = re.compile(
    r"(\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.]\d{1,9})?)?)?)(Z|[+-]\d{2}:?\d{2})?", re.ASCII
)
_DAY = np.timedelta64(1, "D")


def by_its_clocks(column: Any) -> Any:
    """A column as it is; one of times in a zone, of pandas, polars or narwhals, as its clocks show them.

    As arrays they would be those of Greenwich, and midnight would be on the day before.

    Examples
    --------
    >>> import pandas as pd
    >>> print(by_its_clocks(pd.Series(pd.to_datetime(["2020-04-01"]).tz_localize("Europe/Berlin")))[0])
    2020-04-01 00:00:00
    """
    kind = getattr(column, "dtype", None)
    if getattr(kind, "tz", None) is not None:
        return getattr(column, "dt", column).tz_localize(None)
    if getattr(kind, "time_zone", None) is not None:
        return column.dt.replace_time_zone(None)
    return column


def with_dates(labels: NDArray) -> NDArray:
    """Labels as they are; dates, times and durations of any kind as NumPy's, in microseconds.

    Times of one zone are those of its clocks; of several, those of Greenwich.

    Examples
    --------
    >>> with_dates(np.array([datetime.date(2020, 3, 1), datetime.datetime(2020, 3, 2, 6)], dtype=object))
    array(['2020-03-01T00:00:00.000000', '2020-03-02T06:00:00.000000'],
          dtype='datetime64[us]')
    >>> with_dates(np.array([3, 5]))
    array([3, 5])
    """
    if labels.dtype.kind in "mM":
        return labels.astype(f"{labels.dtype.kind}8[us]")
    if labels.dtype.kind != "O" or not len(labels):
        return labels
    items: list[Any] = labels.tolist()
    if not all(isinstance(item, datetime.date) for item in items):
        return labels
    zones = {str(getattr(item, "tzinfo", None)) for item in items}  # by name: summer may have one of its own
    if len(zones) > 1 and all(getattr(item, "tzinfo", None) for item in items):
        items = [item.astimezone(datetime.UTC) for item in items]
    plain = [item.replace(tzinfo=None) if hasattr(item, "tzinfo") else item for item in items]
    return np.array(plain, dtype="M8[us]")


def read_dates(labels: NDArray) -> NDArray:
    """Labels as they are; texts as dates, where all of them are dates or times of ISO 8601, year first.

    Times with a zone are those of its clocks.

    Examples
    --------
    >>> read_dates(np.array(["2020-03-01", "2020-03-02 06:00"]))
    array(['2020-03-01T00:00:00.000000', '2020-03-02T06:00:00.000000'],
          dtype='datetime64[us]')
    >>> print(read_dates(np.array(["2020-03-01", "unknown"])))
    ['2020-03-01' 'unknown']
    """
    texts: list[str] = labels.tolist() if labels.dtype.kind == "U" else []
    found: list[str] = []
    for text in texts:
        match = _WRITTEN.fullmatch(text)
        if match is None:
            return labels
        found.append(match[1])
    try:
        return np.array(found, dtype="M8[us]") if found else labels
    except ValueError:  # the 30th of February
        return labels


def round_date(low: np.datetime64, high: np.datetime64) -> np.datetime64:
    """A round date or time between two others: the first of a year, quarter or month, then days and hours.

    Examples
    --------
    >>> day = np.datetime64("2020-03-11", "us")
    >>> print(round_date(day, day + np.timedelta64(40, "D")), round_date(day, day + np.timedelta64(30, "h")))
    2020-04-01T00:00:00.000000 2020-03-12T00:00:00.000000
    """
    middle = low + (high - low) // 2
    month = int(middle.astype("M8[M]").astype(np.int64)) + _YEAR_ZERO
    for step in _MONTHS:
        below = month // step * step - _YEAR_ZERO
        near = [np.datetime64(at, "M").astype("M8[us]") for at in (below, below + step)]
        if between := [at for at in near if low < at < high]:
            return min(between, key=lambda at: abs(at - middle))
    instant = int(middle.astype(np.int64))
    for seconds in _SECONDS:
        step = seconds * 1_000_000
        below = instant // step * step
        near = [np.datetime64(at, "us") for at in (below, below + step)]
        if between := [at for at in near if low < at < high]:
            return min(between, key=lambda at: abs(at - middle))
    return middle if middle > low else high


def date_text(when: np.datetime64) -> str:
    """A date or time, no longer than it has to be.

    Examples
    --------
    >>> [date_text(np.datetime64(text, "us")) for text in ("2020-03-01", "2020-03-01T06:30")]
    ['2020-03-01', '2020-03-01 06:30']
    """
    for unit in ("D", "m", "s"):
        if when == when.astype(f"M8[{unit}]"):
            return str(when.astype(f"M8[{unit}]")).replace("T", " ")
    return str(when).replace("T", " ").rstrip("0")


def dates_in_words(name: str, low: np.datetime64 | None, high: np.datetime64 | None) -> str:
    """A range of dates or times, in words: from `low` on, and before `high`.

    Examples
    --------
    >>> low, high = np.datetime64("2020-04-01", "us"), np.datetime64("2020-07-01", "us")
    >>> dates_in_words("date", low, high), dates_in_words("date", None, low)
    ('where date is from 2020-04-01 to 2020-06-30', 'where date is before 2020-04-01')
    >>> dates_in_words("date", low, low + np.timedelta64(90, "m")), dates_in_words("date", high, None)
    ('where date is between 2020-04-01 00:00 and 2020-04-01 01:30', 'where date is 2020-07-01 or later')
    """
    if low is None or high is None:
        if high is not None:
            return f"where {name} is before {date_text(high)}"
        return f"where {name} is at any time" if low is None else f"where {name} is {date_text(low)} or later"
    if all(when == when.astype("M8[D]") for when in (low, high)):  # the day before has all until midnight
        last = high - _DAY
        if last == low:
            return f"where {name} is {date_text(low)}"
        return f"where {name} is from {date_text(low)} to {date_text(last)}"
    texts = [date_text(when) for when in (low, high)]
    return "where {} is between {} and {}".format(name, *(t if " " in t else f"{t} 00:00" for t in texts))
