"""Sentences about errors that go with the prediction."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.finding import LEVEL, Finding
from wellcal.hypotests.findings.splits import Contrast, Side, Summary, each_split
from wellcal.hypotests.findings.wording import plain_number, span, spreads_phrase, wrong_by
from wellcal.measures.yardstick import error_phrase, percent
from wellcal.predictions.alterations import SHIFT

Measure = Callable[[NDArray], Side]
"""From values of some cases to their quantity."""


class Manner(NamedTuple):
    """How a quantity is measured in some cases, and told.

    Attributes
    ----------
    kind
        Kind of the finding.
    measure
        From values of some cases to a `Side`; zero is right.
    size
        From a `Side` to the size that is told.
    phrase
        A size in words.
    ends
        An interval of sizes in words.
    apart
        A difference in words, where neither side is off by itself.
    """

    kind: str
    measure: Measure
    size: Callable[[float], float]
    phrase: Callable[[float], str]
    ends: Callable[[float, float], str]
    apart: Callable[[float], str]


def shift_ends(low: float, high: float) -> str:
    """An interval of shifts, in the direction that the sentence names."""
    return span(low, high) if high > 0.0 and low + high > 0.0 else span(-high, -low)


def shifts(measure: Measure) -> Manner:
    """Targets that are too high or too low."""

    def phrase(size: float) -> str:
        return error_phrase(SHIFT, size)

    def apart(size: float) -> str:
        higher = "higher" if size > 0.0 else "lower"
        return f"targets are {plain_number(abs(size))} standard deviations {higher}"

    return Manner("trend of the centre", measure, float, phrase, shift_ends, apart)


def spreads(measure: Measure) -> Manner:
    """Spreads that are too small or too large: the logarithm of what is true over what was predicted."""

    def size_of(value: float) -> float:
        return float(np.exp(-value))

    def phrase(size: float) -> str:
        return spreads_phrase(size)

    def apart(size: float) -> str:
        return f"spreads are {percent(abs(1.0 - size))} {'smaller' if size < 1.0 else 'larger'}"

    return Manner("trend of the spread", measure, size_of, phrase, wrong_by, apart)


def trend_finding(
    manner: Manner, values: NDArray, summaries: list[Summary], reach: float, pvalue: float
) -> Finding | None:
    """The split that shows it best, in words; None where there is nothing to split."""
    best: Contrast | None = None
    for split in each_split(summaries):
        found = Contrast(split, manner.measure(values[split.inside]), manner.measure(values[~split.inside]))
        if best is None or found.difference.off > best.difference.off:
            best = found
    if best is None:
        return None
    return _in_words(manner, best, reach, pvalue)


def _in_words(manner: Manner, found: Contrast, reach: float, pvalue: float) -> Finding:
    sides = [(found.inside, found.split.name), (found.outside, found.split.complement)]
    clear = [side for side in sides if side[0].off > reach]
    if not clear:
        size, ends = _sized(manner, found.difference, reach)
        text = f"{manner.apart(size)} {found.split.name} than elsewhere, relative to their predictions"
        return Finding(f"{text} ({manner.ends(*ends)})", manner.kind, text, size, ends, LEVEL, pvalue)
    # The side that is off most is named; the other one is told where it is off too.
    clear.sort(key=lambda side: -abs(side[0].value))
    side, name = clear[0]
    size, ends = _sized(manner, side, reach)
    short = f"{manner.phrase(size)} {name}"
    sentence = f"{manner.phrase(size)} ({manner.ends(*ends)}) {name}"
    for other, _ in clear[1:]:
        rest, its_ends = _sized(manner, other, reach)
        elsewhere = manner.phrase(rest).split(" are ", 1)[1].replace(" standard deviations", "")
        sentence += f", and {elsewhere} ({manner.ends(*its_ends)}) elsewhere"
        short += f", and {elsewhere} elsewhere"
    return Finding(sentence, manner.kind, short, size, ends, LEVEL, pvalue)


def _sized(manner: Manner, side: Side, reach: float) -> tuple[float, tuple[float, float]]:
    ends = [manner.size(side.value + sign * reach * side.error) for sign in (-1.0, 1.0)]
    return manner.size(side.value), (min(ends), max(ends))
