"""Dates and times: read as values that can be sorted and cut, and written for people."""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray

_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.]\d{1,9})?)?)?)(Z|[+-]\d{2}:?\d{2})?", re.ASCII
)


def by_its_clocks(column: Any) -> Any:
    """Return a column of times in a zone as local times; any other column as it is.

    Arrays would hold UTC, in which local midnight may be on the day before.

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
    """Convert dates, times and durations to NumPy's, in microseconds; return other labels as they are.

    Times of one zone become local times, times of several zones UTC.

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
    items: list[Any] = labels.tolist() if labels.dtype.kind == "O" else []
    if not items or not all(isinstance(item, datetime.date) for item in items):
        return labels
    zones = {str(getattr(item, "tzinfo", None)) for item in items}  # by name: offsets change in summer
    if len(zones) > 1 and "None" not in zones:
        items = [item.astimezone(datetime.UTC) for item in items]
    plain = [item.replace(tzinfo=None) if hasattr(item, "tzinfo") else item for item in items]
    return np.array(plain, dtype="M8[us]")


def read_dates(labels: NDArray) -> NDArray:
    """Read texts as dates if all of them are dates or local times of ISO 8601; return others as they are.

    Examples
    --------
    >>> read_dates(np.array(["2020-03-01", "2020-03-02 06:00"]))
    array(['2020-03-01T00:00:00.000000', '2020-03-02T06:00:00.000000'],
          dtype='datetime64[us]')
    >>> print(read_dates(np.array(["2020-03-01", "unknown"])))
    ['2020-03-01' 'unknown']
    """
    matches = [_ISO.fullmatch(text) for text in labels.tolist()] if labels.dtype.kind == "U" else []
    texts = [match[1] for match in matches if match is not None]
    if not texts or len(texts) < len(labels):
        return labels
    try:
        return np.array(texts, dtype="M8[us]")
    except ValueError:  # the 30th of February
        return labels


def round_date(low: np.datetime64, high: np.datetime64) -> np.datetime64:
    """Return a round date or time between two others: the first of a year, quarter or month, else a day.

    Examples
    --------
    >>> day = np.datetime64("2020-03-11", "us")
    >>> print(round_date(day, day + np.timedelta64(40, "D")), round_date(day, day + np.timedelta64(30, "h")))
    2020-04-01T00:00:00.000000 2020-03-12T00:00:00.000000
    """
    middle = low + (high - low) // 2
    for unit in ("Y", "3M", "M", "D", "h", "m", "s"):
        below = middle.astype(f"M8[{unit}]")
        near = [at.astype("M8[us]") for at in (below, below + 1)]
        if between := [at for at in near if low < at < high]:
            return min(between, key=lambda at: abs(at - middle))
    return middle if middle > low else high


def date_text(when: np.datetime64) -> str:
    """Write a date or time as short as it can be.

    Examples
    --------
    >>> [date_text(np.datetime64(text, "us")) for text in ("2020-03-01", "2020-03-01T06:30")]
    ['2020-03-01', '2020-03-01 06:30']
    """
    units = [unit for unit in ("D", "m", "s") if when == when.astype(f"M8[{unit}]")]
    text = str(when.astype(f"M8[{units[0]}]")) if units else str(when).rstrip("0")
    return text.replace("T", " ")


def dates_in_words(name: str, low: np.datetime64 | None, high: np.datetime64 | None) -> str:
    """Write a range of dates or times, from `low` on and before `high`, as a clause.

    Examples
    --------
    >>> low, high = np.datetime64("2020-04-01", "us"), np.datetime64("2020-07-01", "us")
    >>> dates_in_words("date", low, high), dates_in_words("date", None, low)
    ('where date is from 2020-04-01 to 2020-06-30', 'where date is before 2020-04-01')
    >>> dates_in_words("date", low, low + np.timedelta64(90, "m")), dates_in_words("date", high, None)
    ('where date is between 2020-04-01 00:00 and 2020-04-01 01:30', 'where date is 2020-07-01 or later')
    """
    if low is None:
        return f"where {name} is at any time" if high is None else f"where {name} is before {date_text(high)}"
    if high is None:
        return f"where {name} is {date_text(low)} or later"
    if all(when == when.astype("M8[D]") for when in (low, high)):  # the last day ends at midnight
        first, last = date_text(low), date_text(high - np.timedelta64(1, "D"))
        return f"where {name} is {first}" if first == last else f"where {name} is from {first} to {last}"
    texts = [text if " " in (text := date_text(when)) else f"{text} 00:00" for when in (low, high)]
    return f"where {name} is between {texts[0]} and {texts[1]}"
