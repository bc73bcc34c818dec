"""Sentences about errors that go with the prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.finding import LEVEL, Finding, because_of, perhaps
from wellcal.hypotests.findings.splits import (
    Contrast,
    Measure,
    Side,
    Summary,
    contrast_of,
    each_split,
)
from wellcal.measures.score_units import PLAIN, Units
from wellcal.measures.wording import (
    Ends,
    Told,
    counted,
    error_told,
    number_told,
    plain_number,
    ratio_told,
    shares_apart,
    shift_told,
)
from wellcal.predictions.misspecification import SHIFT, SPREADS

CENTRE_TREND, SPREAD_TREND = "trend of the centre", "trend of the spread"
CORRELATION_TREND = "trend of the correlation"

INDEPENDENT = 0.05
"""Correlations up to which predictions are called independent."""


class Sized(NamedTuple):
    """A size and its interval; and the size that is right, where sizes are shares."""

    size: float
    ends: Ends
    right: float | None = None


Tell = Callable[[Sized], Told]
"""A size in words, and its interval with as many digits."""


class Manner(NamedTuple):
    """How a quantity is measured in some cases, and told.

    Attributes
    ----------
    kind
        Kind of the finding.
    measure
        From values of some cases to a quantity; zero is right.
    size
        From a quantity to the size that is told.
    phrase
        A size in words, without the place, and its interval.
    again
        The same in short, for the other side.
    apart
        A difference in words, where neither side is off by itself, up to the place, and its interval.
    expected
        The share that a calibrated model has, where sizes are shares.
    """

    kind: str
    measure: Measure
    size: Callable[[float], float]
    phrase: Tell
    again: Tell
    apart: Tell
    expected: float | None = None


def shifts(measure: Measure, units: Units = PLAIN) -> Manner:
    """Targets that are too high or too low."""

    def phrase(sized: Sized) -> Told:
        return error_told(SHIFT, sized.size, sized.ends, units.unit)

    def again(sized: Sized) -> Told:
        told = shift_told(sized.size, sized.ends)
        return told._replace(size=f"{told.size} too {'high' if sized.size > 0.0 else 'low'}")

    def apart(sized: Sized) -> Told:
        told, higher = shift_told(sized.size, sized.ends), "higher" if sized.size > 0.0 else "lower"
        return told._replace(size=f"targets are {counted(told.size, units.unit)} {higher}")

    return Manner(CENTRE_TREND, measure, units.shift, phrase, again, apart)


def spreads(measure: Measure, units: Units = PLAIN) -> Manner:
    """Spreads that are too small or too large: the logarithm of what is true over what was predicted."""

    def size_of(value: float) -> float:
        return float(np.exp(-units.log_spread(value)))

    def phrase(sized: Sized) -> Told:
        return error_told(SPREADS, sized.size, sized.ends)

    def again(sized: Sized) -> Told:
        told = phrase(sized)
        return told._replace(size=told.size.removeprefix("spreads are "))

    def apart(sized: Sized) -> Told:
        told, smaller = ratio_told(sized.size, sized.ends), "smaller" if sized.size < 1.0 else "larger"
        return told._replace(size=f"spreads are {told.size} {smaller}")

    return Manner(SPREAD_TREND, measure, size_of, phrase, again, apart)


def shares(kind: str, measure: Measure, what: str, expected: float) -> Manner:
    """Targets that fall somewhere too often or too rarely: observed less expected shares."""

    def size_of(value: float) -> float:
        return min(max(expected + value, 0.0), 1.0)

    def again(sized: Sized) -> Told:
        return shares_apart(sized.size, sized.ends, expected if sized.right is None else sized.right)

    def phrase(sized: Sized) -> Told:
        told = again(sized)
        return told._replace(size=f"{what} {told.size} of the time")

    def apart(sized: Sized) -> Told:
        return again(sized)._replace(size=f"{what} {'more' if sized.size > expected else 'less'} often")

    return Manner(kind, measure, size_of, phrase, again, apart, expected)


def trend_finding(
    manner: Manner,
    values: NDArray,
    summaries: list[Summary],
    reach: float,
    pvalue: float,
    groups: NDArray | None = None,
    fine: bool = False,
    members: NDArray | None = None,
    also: Measure | None = None,
    sure: bool = False,
) -> Finding | None:
    """The split that shows it best, in words; None where there is nothing to split.

    Where it is had in two ways, `also` by another measure, intervals hold both. With `sure` it is None, too,
    where nothing is off on either side, nor apart, in the units in which it is told; without, that is not
    certain.
    """
    best = best_contrast(manner.measure, values, summaries, groups, fine, members, also, reach)
    if best is None:
        return None
    off = bool(clear_sides(best, reach)) or best.difference.off > reach
    if off or sure:
        return _in_words(manner, best, reach, pvalue) if off else None
    return perhaps(_in_words(manner, best, reach, pvalue))


def carried_trend(told: Finding | None, carried: int | None, cases: int) -> Finding | None:
    """A trend of the spread as one that a few cases carry; not where both sides are off, which these do not.

    Examples
    --------
    >>> one = Finding("it is here", SPREAD_TREND, "it is here", 0.5, (0.4, 0.7), LEVEL, 0.01)
    >>> str(carried_trend(replace(one, elsewhere=(0.9, 0.8, 1.1)), 2, 300))
    'it is here, because of 2 of 300 cases'
    >>> str(carried_trend(replace(one, elsewhere=(0.9, 0.8, 0.95)), 2, 300))
    'it is here'
    """
    if told is None or (told.elsewhere is not None and not told.elsewhere[1] <= 1.0 <= told.elsewhere[2]):
        return told
    return because_of(told, carried, cases)


def best_contrast(
    measure: Measure,
    values: NDArray,
    summaries: list[Summary],
    groups: NDArray | None,
    fine: bool = False,
    members: NDArray | None = None,
    also: Measure | None = None,
    reach: float = 1.0,
) -> Contrast | None:
    """The split whose sides differ most, in standard errors; `members` as in `contrast_of`.

    With `also` intervals of so many standard errors hold those of both measures.
    """
    best: Contrast | None = None
    for split in each_split(summaries, fine):
        found = contrast_of(measure, values, split, groups, members)
        if also is not None:
            found = found.or_as(contrast_of(also, values, split, groups, members), reach)
        if best is None or found.difference.off > best.difference.off:
            best = found
    return best


def clear_sides(found: Contrast, reach: float) -> list[tuple[Side, str]]:
    """Sides that are off by themselves, the one that is off most first, and what they are called."""
    sides = [(found.inside, found.split.name), (found.outside, found.split.complement)]
    return sorted((side for side in sides if side[0].off > reach), key=lambda side: -abs(side[0].value))


def _in_words(manner: Manner, found: Contrast, reach: float, pvalue: float) -> Finding:
    clear = clear_sides(found, reach)
    if not clear:
        apart = _sized(manner, found.difference, reach)
        told = manner.apart(apart)
        text = f"{told.size} {found.split.name} than elsewhere"
        if manner.expected is None:  # sizes of differences are told where they are no shares
            text += ", relative to their predictions"
            texts = f"{text} ({told.ends})", manner.kind, text
            return Finding(*texts, apart.size, apart.ends, LEVEL, pvalue, by=found.split.by)
        sized, other = (_sized(manner, side, reach) for side in (found.inside, found.outside))
        here, there = manner.again(sized), manner.again(other)
        numbers = f"{here.size}, {here.ends}, against {there.size}, {there.ends}"
        right = _expected(here, there)
        if len(right) > 1:
            text += ", relative to what is expected"
            numbers += f"; expected {' and '.join(right)}"
        texts = f"{text} ({numbers})", manner.kind, text
        return _with_sides(texts, sized, other, pvalue, found)
    # The side that is off most is named; the other one is told where it is off too.
    side, name = clear[0]
    sized = _sized(manner, side, reach)
    other = _sized(manner, found.outside if side is found.inside else found.inside, reach)
    told = manner.phrase(sized)
    short, sentence = f"{told.size} {name}", f"{told.size} ({told.ends}) {name}"
    right = _expected(told)
    if len(clear) > 1:
        again = manner.again(other)
        sentence += f", and {again.size} ({again.ends}) elsewhere"
        short += f", and {again.size} elsewhere"
        right = _expected(told, again)
    closing = f", expected {' and '.join(right)}" if right else ""
    return _with_sides((sentence + closing, manner.kind, short + closing), sized, other, pvalue, found)


def _with_sides(
    texts: tuple[str, str, str], sized: Sized, other: Sized, pvalue: float, found: Contrast
) -> Finding:
    """A finding that knows what is right on its side, what is on the other one, and what told them apart."""
    told = Finding(*texts, sized.size, sized.ends, LEVEL, pvalue)
    return replace(told, expected=sized.right, elsewhere=(other.size, *other.ends), by=found.split.by)


def _expected(*told: Told) -> list[str]:
    """Shares that are expected on some sides, once where they are the same."""
    return list(dict.fromkeys(one.right for one in told if one.right))


def _sized(manner: Manner, side: Side, reach: float) -> Sized:
    """The size of a side and its interval; shares are told as they are, and not from what is usual there."""
    share = manner.expected is not None
    value = side.value + (side.usual if share else 0.0)
    ends = [manner.size(value + sign * reach * side.error) for sign in (-1.0, 1.0)]
    return Sized(manner.size(value), (min(ends), max(ends)), manner.size(side.usual) if share else None)


def correlation_finding(
    pair: str, found: Contrast, predicted: Callable[[NDArray], float], reach: float, pvalue: float
) -> Finding:
    """A correlation that goes with the prediction, from Fisher's transforms on both sides of a split."""
    sides = [(found.inside, found.split.inside), (found.outside, ~found.split.inside)]
    right = [predicted(where) for _, where in sides]
    off = [abs(side.value - np.arctanh(r)) for (side, _), r in zip(sides, right, strict=True)]
    first = 0 if off[0] >= off[1] else 1
    texts: list[str] = []
    shorts: list[str] = []
    sizes: list[tuple[float, float, float]] = []
    for place in (first, 1 - first):
        side = sides[place][0]
        size, low, high = (
            float(np.tanh(v))
            for v in (side.value, side.value - reach * side.error, side.value + reach * side.error)
        )
        told = number_told(size, (low, high))
        sizes.append((size, low, high))
        texts.append(f"{told.size} ({told.ends})")
        shorts.append(told.size)
    where = found.split.name if first == 0 else found.split.complement
    # Predicted ones are known from a few draws.
    said = [
        plain_number(right[place]) if abs(right[place]) >= INDEPENDENT else "0"
        for place in (first, 1 - first)
    ]
    start, end = f"{pair} have a correlation of ", f"predicted {' and '.join(dict.fromkeys(said))}"
    end = "predicted independent" if set(said) == {"0"} else end
    sentence = f"{start}{texts[0]} {where}, and of {texts[1]} elsewhere, {end}"
    short = f"{start}{shorts[0]} {where}, and of {shorts[1]} elsewhere, {end}"
    size, low, high = sizes[0]
    ends, kind = (low, high), CORRELATION_TREND
    finding = Finding(sentence, kind, short, size, ends, LEVEL, pvalue)
    return replace(finding, elsewhere=sizes[1], by=found.split.by)
