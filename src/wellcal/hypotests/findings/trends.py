"""Sentences about errors that go with the prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.finding import LEVEL, Finding
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
    amount,
    counted,
    error_phrase,
    percent,
    plain_number,
    share_span,
    shift_ends,
    span,
    wrong_by,
)
from wellcal.predictions.alterations import SHIFT, SPREADS

CENTRE_TREND, SPREAD_TREND = "trend of the centre", "trend of the spread"
CORRELATION_TREND = "trend of the correlation"

INDEPENDENT = 0.05
"""Correlations up to which predictions are called independent."""


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
        A size in words, without the place.
    again
        The same in short, for the other side.
    ends
        An interval of sizes in words, given the size between them.
    apart
        A difference in words, where neither side is off by itself, up to the place; its size in words; and an
        interval of it.
    expected
        The share that a calibrated model has, where sizes are shares.
    """

    kind: str
    measure: Measure
    size: Callable[[float], float]
    phrase: Callable[[float], str]
    again: Callable[[float], str]
    ends: Callable[[float, float, float], str]
    apart: Callable[[float], str]
    expected: float | None = None


def shifts(measure: Measure, units: Units = PLAIN) -> Manner:
    """Targets that are too high or too low."""

    def phrase(size: float) -> str:
        return error_phrase(SHIFT, size, units.unit)

    def again(size: float) -> str:
        return f"{plain_number(abs(size))} too {'high' if size > 0.0 else 'low'}"

    def apart(size: float) -> str:
        higher = "higher" if size > 0.0 else "lower"
        return f"targets are {counted(plain_number(abs(size)), units.unit)} {higher}"

    def ends(low: float, high: float, _: float) -> str:
        return shift_ends(low, high)

    return Manner(CENTRE_TREND, measure, units.shift, phrase, again, ends, apart)


def spreads(measure: Measure, units: Units = PLAIN) -> Manner:
    """Spreads that are too small or too large: the logarithm of what is true over what was predicted."""

    def size_of(value: float) -> float:
        return float(np.exp(-units.log_spread(value)))

    def phrase(size: float) -> str:
        return error_phrase(SPREADS, size)

    def again(size: float) -> str:
        return phrase(size).removeprefix("spreads are ")

    def apart(size: float) -> str:
        return f"spreads are {amount(size)} {'smaller' if size < 1.0 else 'larger'}"

    return Manner(SPREAD_TREND, measure, size_of, phrase, again, wrong_by, apart)


def shares(kind: str, measure: Measure, what: str, expected: float) -> Manner:
    """Targets that fall somewhere too often or too rarely: observed less expected shares."""

    def size_of(value: float) -> float:
        return min(max(expected + value, 0.0), 1.0)

    def phrase(size: float) -> str:
        return f"{what} {percent(size)} of the time"

    def apart(size: float) -> str:
        return f"{what} {'more' if size > expected else 'less'} often"

    def ends(low: float, high: float, _: float) -> str:
        return share_span(low, high)

    return Manner(kind, measure, size_of, phrase, percent, ends, apart, expected)


def trend_finding(
    manner: Manner,
    values: NDArray,
    summaries: list[Summary],
    reach: float,
    pvalue: float,
    groups: NDArray | None = None,
    fine: bool = False,
    members: NDArray | None = None,
) -> Finding | None:
    """The split that shows it best, in words; None where there is nothing to split."""
    best = best_contrast(manner.measure, values, summaries, groups, fine, members)
    return None if best is None else _in_words(manner, best, reach, pvalue)


def best_contrast(
    measure: Measure,
    values: NDArray,
    summaries: list[Summary],
    groups: NDArray | None,
    fine: bool = False,
    members: NDArray | None = None,
) -> Contrast | None:
    """The split whose sides differ most, in standard errors; `members` as in `contrast_of`."""
    best: Contrast | None = None
    for split in each_split(summaries, fine):
        found = contrast_of(measure, values, split, groups, members)
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
        size, ends = _sized(manner, found.difference, reach)
        text = f"{manner.apart(size)} {found.split.name} than elsewhere"
        if manner.expected is None:  # sizes of differences are told where they are no shares
            text += ", relative to their predictions"
            texts = f"{text} ({manner.ends(*ends, size)})", manner.kind, text
            return Finding(*texts, size, ends, LEVEL, pvalue, by=found.split.by)
        size, ends = _sized(manner, found.inside, reach)
        other, others = _sized(manner, found.outside, reach)
        here, there = manner.ends(*ends, size), manner.ends(*others, other)
        told = f"{percent(size)}, {here}, against {percent(other)}, {there}"
        right = _expected(manner, [found.inside, found.outside])
        if len(right) > 1:
            text += ", relative to what is expected"
            told += f"; expected {' and '.join(right)}"
        texts = f"{text} ({told})", manner.kind, text
        finding = Finding(*texts, size, ends, LEVEL, pvalue)
        return _with_sides(finding, manner, found.inside, (other, *others), found)
    # The side that is off most is named; the other one is told where it is off too.
    side, name = clear[0]
    size, ends = _sized(manner, side, reach)
    short = f"{manner.phrase(size)} {name}"
    sentence = f"{manner.phrase(size)} ({manner.ends(*ends, size)}) {name}"
    rest, its_ends = _sized(manner, found.outside if side is found.inside else found.inside, reach)
    if len(clear) > 1:
        again = manner.again(rest)
        sentence += f", and {again} ({manner.ends(*its_ends, rest)}) elsewhere"
        short += f", and {again} elsewhere"
    right = _expected(manner, [one for one, _ in clear])
    closing = f", expected {' and '.join(right)}" if right else ""
    told = Finding(sentence + closing, manner.kind, short + closing, size, ends, LEVEL, pvalue)
    return _with_sides(told, manner, side, (rest, *its_ends), found)


def _with_sides(
    told: Finding, manner: Manner, side: Side, elsewhere: tuple[float, float, float], found: Contrast
) -> Finding:
    """A finding that knows what is right on its side, what is on the other one, and what told them apart."""
    right = None if manner.expected is None else manner.size(side.usual)
    return replace(told, expected=right, elsewhere=elsewhere, by=found.split.by)


def _expected(manner: Manner, sides: list[Side]) -> list[str]:
    """Shares that are expected on some sides, once where they are the same."""
    if manner.expected is None:
        return []
    return list(dict.fromkeys(percent(manner.size(side.usual)) for side in sides))


def _sized(manner: Manner, side: Side, reach: float) -> tuple[float, tuple[float, float]]:
    """The size of a side and its interval; shares are told as they are, and not from what is usual there."""
    value = side.value + (0.0 if manner.expected is None else side.usual)
    ends = [manner.size(value + sign * reach * side.error) for sign in (-1.0, 1.0)]
    return manner.size(value), (min(ends), max(ends))


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
        sizes.append((size, low, high))
        texts.append(f"{plain_number(size)} ({span(low, high)})")
        shorts.append(plain_number(size))
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
    told = Finding(sentence, kind, short, size, ends, LEVEL, pvalue)
    return replace(told, elsewhere=sizes[1], by=found.split.by)
