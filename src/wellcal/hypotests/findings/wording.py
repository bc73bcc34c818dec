"""Numbers and groups of cases in the words of findings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from wellcal.measures.yardstick import error_phrase, percent
from wellcal.predictions.alterations import SPREADS

Format = Callable[[float], str]

_TIMES, _ENORMOUS = 3.0, 100.0  # ratios from which factors are told, and no number any more


def plain_number(value: float) -> str:
    """A number with two digits.

    Examples
    --------
    >>> plain_number(0.3149), plain_number(0.0913), plain_number(-12.3), plain_number(-0.001)
    ('0.31', '0.09', '-12', '0')
    """
    if abs(value) < 0.005:
        return "0"
    if abs(value) >= 9.95:
        return f"{value:.0f}"
    return f"{value:.2g}" if abs(value) >= 0.995 else f"{value:.2f}".rstrip("0").rstrip(".")


def span(low: float, high: float, show: Format = plain_number) -> str:
    """An interval, with a digit more where its ends would read the same.

    Examples
    --------
    >>> span(0.152, 0.271, percent), span(0.2, 0.41)
    ('15% to 27%', '0.2 to 0.41')
    >>> span(0.048, 0.052, percent), span(0.312, 0.314)
    ('4.8% to 5.2%', '0.312 to 0.314')
    """
    ends = [show(low), show(high)]
    if ends[0] == ends[1]:
        finer = [f"{100.0 * end:.1f}%" if show is percent else f"{end:.3f}" for end in (low, high)]
        ends = finer if finer[0] != finer[1] else ends
    return " to ".join(ends)


def shift_ends(low: float, high: float) -> str:
    """An interval of shifts, in the direction that the sentence names.

    Examples
    --------
    >>> shift_ends(0.2, 0.4), shift_ends(-0.4, -0.2)
    ('0.2 to 0.4', '0.2 to 0.4')
    """
    return span(low, high) if high > 0.0 and low + high > 0.0 else span(-high, -low)


def share_span(low: float, high: float) -> str:
    """An interval of shares, which are between 0 and 1."""
    return span(min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0), percent)


def spreads_phrase(ratio: float) -> str:
    """Spreads that are wrong, from predicted over true; by a factor where it is large.

    Examples
    --------
    >>> spreads_phrase(0.79), spreads_phrase(4.23), spreads_phrase(1e5)
    ('spreads are 21% too small', 'spreads are 4.2 times too large', 'spreads are over 100 times too large')
    """
    if ratio >= _ENORMOUS:
        return f"spreads are over {_ENORMOUS:.0f} times too large"
    return error_phrase(SPREADS, ratio) if ratio < _TIMES else f"spreads are {ratio:.2g} times too large"


def wrong_by(low: float, high: float) -> str:
    """An interval of ratios of predicted and true, as `spreads_phrase` tells them.

    Examples
    --------
    >>> wrong_by(0.73, 0.85), wrong_by(1.1, 1.3), wrong_by(0.9, 1.05), wrong_by(2.9, 5.16)
    ('15% to 27%', '10% to 30%', '-5% to 10%', '2.9 to 5.2 times')
    """
    if np.sqrt(low * high) >= _TIMES:
        least = plain_number(min(low, _ENORMOUS))
        return f"{least} times or more" if high >= _ENORMOUS else f"{least} to {plain_number(high)} times"
    if low >= 1.0:
        return span(low - 1.0, high - 1.0, percent)
    if high <= 1.0:
        return span(1.0 - high, 1.0 - low, percent)
    sign = "-" if percent(high - 1.0) != "0%" else ""
    return f"{sign}{percent(high - 1.0)} to {percent(1.0 - low)}"
