"""Numbers, sizes of errors and their intervals in words: the same in findings, yardsticks and verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from wellcal._arrays.round_numbers import how_many
from wellcal.measures.round_numbers import SURE, percent
from wellcal.measures.score_units import DEVIATIONS
from wellcal.predictions.misspecification import MEANS, SHIFT, SPREADS, TEMPERATURE

Format = Callable[[float], str]

RATIOS = {
    SPREADS: ("spreads are", "small", "large"),
    TEMPERATURE: ("temperature is", "low", "high"),
    MEANS: ("means are", "small", "large"),
}
"""Kinds of error whose size is predicted over true: what is wrong, and how it is called below and above 1."""

TIMES, ENORMOUS = 2.0, 100.0
"""Ratios from which factors are told in the place of percent, and no number any more."""

_MOST_DIGITS = 6
_SMALL = 0.01  # shifts below it have one digit, however many zeros come first


def plain_number(value: float) -> str:
    """A number with two digits.

    Examples
    --------
    >>> plain_number(0.3149), plain_number(0.0913), plain_number(-12.3), plain_number(-0.001)
    ('0.31', '0.09', '-12', '0')
    >>> plain_number(1234.5)
    '1,234'
    """
    if abs(value) < 0.005:
        return "0"
    if abs(value) >= 9.95:
        return f"{value:,.0f}"
    return f"{value:.2g}" if abs(value) >= 0.995 else f"{value:.2f}".rstrip("0").rstrip(".")


def span(low: float, high: float, show: Format = plain_number) -> str:
    """An interval, with more digits where its ends would read the same; one without length is a number.

    Examples
    --------
    >>> span(0.152, 0.271, percent), span(0.2, 0.41)
    ('15% to 27%', '0.2 to 0.41')
    >>> span(0.048, 0.052, percent), span(0.312, 0.314), span(0.9, 0.9)
    ('4.8% to 5.2%', '0.312 to 0.314', 'exactly 0.9')
    >>> span(999.885, 1000.171), span(12.1, 12.3)
    ('999.9 to 1,000.2', '12.1 to 12.3')
    >>> span(0.999996, 0.999998, percent), span(0.9, 0.999998, percent)
    ('over 99.99%', '90% to over 99.99%')
    """
    fine = as_fine_as(low, high, show)
    ends = [fine(low), fine(high)]
    if ends[0] != ends[1]:
        return " to ".join(ends)
    if _is_sure(low, high, show):
        return ends[0]
    exactly = math.isclose(low, high, rel_tol=1e-9, abs_tol=1e-12)
    return f"{'exactly' if exactly else 'about'} {ends[0]}"


def as_fine_as(low: float, high: float, show: Format = plain_number) -> Format:
    """How numbers are shown that are told beside an interval: with more digits where its ends need them.

    Examples
    --------
    >>> as_fine_as(0.15, 0.27, percent)(0.21), as_fine_as(0.027, 0.029, percent)(0.0281)
    ('21%', '2.8%')
    """
    if show(low) != show(high) or _is_sure(low, high, show):
        return show
    more = 0 if abs(high) >= 9.95 else 2  # digits that numbers have already
    for digits in range(1, _MOST_DIGITS):

        def finer(value: float, digits: int = digits) -> str:
            return f"{100.0 * value:.{digits}f}%" if show is percent else f"{value:,.{digits + more}f}"

        if finer(low) != finer(high):
            return finer
    return show


def _is_sure(low: float, high: float, show: Format) -> bool:
    """Whether shares are so near to 0 or 1 that no digits are told."""
    return show is percent and (0.0 < high < SURE or 1.0 - SURE < low < 1.0)


class Told(NamedTuple):
    """A size and its interval in words, with the same digits; and what is right, where that is told too."""

    size: str
    ends: str
    right: str = ""


Ends = tuple[float, float]
"""An interval, low end first."""


def number_told(value: float, ends: Ends, show: Format = plain_number) -> Told:
    """A number and its interval.

    Examples
    --------
    >>> number_told(0.3127, (0.312, 0.314)), number_told(0.21, (0.15, 0.27), percent)
    (Told(size='0.313', ends='0.312 to 0.314', right=''), Told(size='21%', ends='15% to 27%', right=''))
    """
    return Told(as_fine_as(*ends, show)(value), span(*ends, show))


def shift_told(size: float, ends: Ends) -> Told:
    """A shift and its interval, in the direction that it has; next to nothing it is not called 0.

    Examples
    --------
    >>> tuple(shift_told(-0.3, (-0.4, -0.2))), tuple(shift_told(-0.3, (-0.7, 0.1)))
    (('0.3', '0.2 to 0.4', ''), ('0.3', '-0.1 to 0.7', ''))
    >>> tuple(shift_told(0.004, (0.001, 0.02))), tuple(shift_told(0.312, (0.311, 0.313)))
    (('0.004', '0.001 to 0.02', ''), ('0.312', '0.311 to 0.313', ''))
    """
    low, high = ends if size > 0.0 else (-ends[1], -ends[0])
    return number_told(abs(size), (low, high), plain_number if abs(size) >= _SMALL else _small_number)


def _small_number(value: float) -> str:
    return f"{value:.1g}" if 0.0 < abs(value) < _SMALL else plain_number(value)


def shares_apart(seen: float, ends: Ends, said: float) -> Told:
    """A share, its interval and the share that was said, with more digits where these would read the same.

    Examples
    --------
    >>> shares_apart(0.21, (0.15, 0.27), 0.4)
    Told(size='21%', ends='15% to 27%', right='40%')
    >>> shares_apart(0.3312, (0.3303, 0.3321), 0.3333)
    Told(size='33.1%', ends='33.0% to 33.2%', right='33.3%')
    >>> shares_apart(0.3312, (0.3203, 0.3421), 0.3312)
    Told(size='33%', ends='32% to 34%', right='33%')
    >>> shares_apart(0.3312, (0.3303, 0.3321), 0.5)
    Told(size='33.1%', ends='33.0% to 33.2%', right='50%')
    """
    low, high = (min(max(end, 0.0), 1.0) for end in ends)
    near = low if said < low else high if said > high else seen  # what it must not read as, beside the share
    told = number_told(seen, (low, high), percent)
    plain = told._replace(right=percent(said))
    if plain.right not in (percent(seen), percent(near)):
        return plain
    for digits in range(1, _MOST_DIGITS):
        size, first, last, of, bound = (f"{100.0 * x:.{digits}f}%" for x in (seen, low, high, said, near))
        if of not in (size, bound) and (first != last or low == high):
            return Told(size, f"{first} to {last}", of)
    return plain


def share_of(ratio: float) -> float:
    """How much is missing from what is true, or too much of it."""
    return abs(ratio - 1.0)


def amount(ratio: float, ends: tuple[float, float] | None = None) -> str:
    """How far a ratio of predicted and true is from 1: in percent, and as a factor where it is large.

    It is told as finely as the `ends` of its interval, if they are told beside it.

    Examples
    --------
    >>> amount(0.79), amount(1.21), amount(3.41), amount(1e5)
    ('21%', '21%', '3.4 times', 'over 100 times')
    >>> amount(0.972, (0.971, 0.973)), amount(0.972, (0.9, 0.98))
    ('2.8%', '3%')
    """
    low, high = (ratio, ratio) if ends is None else (min(ends), max(ends))
    if ratio < TIMES:
        around = low < 1.0 < high  # its sides are told apart by a sign
        near, far = sorted(map(share_of, (low, high)))
        return (percent if around else as_fine_as(near, far, percent))(share_of(ratio))
    return f"over {ENORMOUS:.0f} times" if ratio >= ENORMOUS else f"{as_fine_as(low, high)(ratio)} times"


def counted(number: str, unit: str = DEVIATIONS) -> str:
    """A number of units, which are given as several.

    Examples
    --------
    >>> counted("0.3"), counted("1"), counted("1", "interquartile ranges")
    ('0.3 standard deviations', '1 standard deviation', '1 interquartile range')
    """
    return f"{number} {unit.removesuffix('s') if number == '1' else unit}"


def error_phrase(
    kind: str, ratio: float, unit: str = DEVIATIONS, *, ends: tuple[float, float] | None = None
) -> str:
    """An error in words: what is wrong, by how much, and in which direction; shifts in a unit.

    It is told as finely as the `ends` of its interval, if they are told beside it.

    Examples
    --------
    >>> error_phrase("spreads", 0.79), error_phrase("temperature", 1.5)
    ('spreads are 21% too small', 'temperature is 50% too high')
    >>> error_phrase("spreads", 0.1), error_phrase("shift", -0.3)
    ('spreads are 90% too small', 'targets are 0.3 standard deviations too low')
    >>> error_phrase("spreads", 3.41), error_phrase("means", 1.0)
    ('spreads are 3.4 times too large', 'means are right')
    >>> error_phrase("shift", 1234.5), error_phrase("shift", 1.0)
    ('targets are 1,234 standard deviations too high', 'targets are 1 standard deviation too high')
    """
    if kind == SHIFT:
        shown = shift_told(ratio, (ratio, ratio) if ends is None else ends).size
        return f"targets are {counted(shown, unit)} too {'high' if ratio > 0 else 'low'}"
    what, below, above = RATIOS[kind]
    if ratio == 1.0:
        return f"{what} right"
    return f"{what} {amount(ratio, ends)} too {below if ratio < 1.0 else above}"


def wrong_by(low: float, high: float, ratio: float) -> str:
    """An interval of ratios of predicted and true, as `error_phrase` tells the ratio between them.

    Both ends are in the unit of that ratio, percent or times, however far they are from it.

    Examples
    --------
    >>> (
    ...     wrong_by(0.73, 0.85, 0.8),
    ...     wrong_by(1.1, 1.3, 1.2),
    ...     wrong_by(0.9, 1.05, 0.97),
    ...     wrong_by(2.9, 5.16, 4.0),
    ... )
    ('15% to 27%', '10% to 30%', '-5% to 10%', '2.9 to 5.2 times')
    >>> (
    ...     wrong_by(1.6, 10.0, 3.4),
    ...     wrong_by(1.06, 5.3, 1.45),
    ...     wrong_by(40.0, 1e5, 99.0),
    ...     wrong_by(1.8, 2.05, 1.9),
    ... )
    ('1.6 to 10 times', '6% to 430%', '40 times or more', '80% to 105%')
    >>> wrong_by(1.06, 1e5, 1.45), wrong_by(0.6, 3.5, 0.9), wrong_by(0.9, 1e5, 1.2)
    ('6% or more', '-250% to 40%', '-10% or more')
    """
    if ratio >= TIMES:
        if high < ENORMOUS:
            return f"{span(low, high)} times"
        return f"{plain_number(min(low, ENORMOUS))} times or more"
    if low >= 1.0:
        ends = low - 1.0, high - 1.0
        return span(*ends, percent) if high < ENORMOUS else f"{percent(ends[0])} or more"
    if high <= 1.0:
        return span(1.0 - high, 1.0 - low, percent)
    # Around what is right: the other direction is below zero.
    above, below = (percent(0.0 if abs(end - 1.0) < SURE else share_of(end)) for end in (high, low))
    if ratio >= 1.0:
        return f"-{below} to {above}" if high < ENORMOUS else f"-{below} or more"
    if high >= ENORMOUS:
        return f"{below} at most, or the other way"
    return f"{'-' if above != '0%' else ''}{above} to {below}"


def ratio_told(ratio: float, ends: Ends) -> Told:
    """A ratio of predicted and true and its interval: how far they are from 1.

    Examples
    --------
    >>> tuple(ratio_told(0.0131, (0.0127, 0.0134))), tuple(ratio_told(2.51, (2.4, 2.6)))
    (('98.69%', '98.66% to 98.73%', ''), ('2.5 times', '2.4 to 2.6 times', ''))
    """
    return Told(amount(ratio, ends), wrong_by(*ends, ratio))


def error_told(kind: str, ratio: float, ends: Ends, unit: str = DEVIATIONS) -> Told:
    """An error in words, as `error_phrase` has it, and its interval.

    Examples
    --------
    >>> error_told("spreads", 0.79, (0.73, 0.85))
    Told(size='spreads are 21% too small', ends='15% to 27%', right='')
    >>> error_told("shift", -0.3, (-0.4, -0.2))
    Told(size='targets are 0.3 standard deviations too low', ends='0.2 to 0.4', right='')
    """
    told = shift_told(ratio, ends) if kind == SHIFT else ratio_told(ratio, ends)
    return told._replace(size=error_phrase(kind, ratio, unit, ends=ends))


def wrong_phrase(ratio: float, ends: tuple[float, float] | None = None) -> str:
    """How wrong something is, without a direction, as finely as `ends` that are told beside it.

    Examples
    --------
    >>> wrong_phrase(0.88), wrong_phrase(1.12), wrong_phrase(5.3)
    ('12% wrong', '12% wrong', 'wrong by a factor of 5.3')
    """
    if ratio < TIMES:
        return f"{amount(ratio, ends)} wrong"
    return f"wrong by a factor of {plain_number(ratio)}"


def what_is_wrong(kind: str) -> str:
    """What a kind of error is about, in the past.

    Examples
    --------
    >>> what_is_wrong("spreads"), what_is_wrong("temperature")
    ('spreads were', 'temperature was')
    """
    return RATIOS[kind][0].replace("are", "were").replace(" is", " was")


def impossible_phrase(cases: int, most: float = 0.0) -> str:
    """How many cases had probability 0 for what was observed, or at most so much.

    Examples
    --------
    >>> impossible_phrase(1), impossible_phrase(12, 1e-12)
    ('1 case had probability 0 for what happened', '12 cases had a probability below 1e-12 for what happened')
    """
    given = f"a probability below {most:g}" if most else "probability 0"
    return f"{how_many(cases)} had {given} for what happened"
