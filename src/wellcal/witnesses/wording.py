"""Numbers in plain words."""

from __future__ import annotations

from wellcal.measures.round_numbers import percent

_TIMES = {3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten"}
_PARTS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 10: "a tenth"}
_MOST_DIGITS = 4  # after the point, of shares that are nearly the same
_SAME = 1e-4  # by which a ratio differs from 1 and nobody cares
_HARDLY = 0.01  # ratio below which something that was predicted hardly happens
_TENTHS = 1.1  # ratio from which on tenths tell it from 1
_NEAR = 0.05  # relative distance within which a ratio is called by a whole number


def how_often(observed: float, expected: float) -> str:
    """How often something happened, compared with how often it was predicted.

    Examples
    --------
    >>> how_often(0.3, 0.1)
    'three times as often as predicted'
    >>> how_often(0.35, 0.7)
    'half as often as predicted'
    >>> how_often(0.14, 0.1)
    '1.4 times as often as predicted'
    >>> how_often(0.0958, 0.1), how_often(0.07, 0.1), how_often(0.0001, 0.1)
    ('4% less often than predicted', '30% less often than predicted', 'hardly ever')
    """
    if expected <= 0.0:
        return "though it was never predicted"
    if observed <= 0.0:
        return "in no case"
    ratio = observed / expected
    if ratio < _HARDLY:
        return "hardly ever"
    nearest = round(ratio)
    if abs(ratio - 1.0) < _SAME:
        return "as often as predicted"
    if nearest >= 3 and abs(ratio / nearest - 1.0) <= _NEAR:
        return f"{_TIMES.get(nearest) or _short(ratio, 3)} times as often as predicted"
    if abs(ratio / 2.0 - 1.0) <= _NEAR:
        return "twice as often as predicted"
    inverse = round(1.0 / ratio)
    if inverse in _PARTS and abs(ratio * inverse - 1.0) <= _NEAR:
        return f"{_PARTS[inverse]} as often as predicted"
    if ratio < 1.0:
        return f"{percent(1.0 - ratio)} less often than predicted"
    if ratio < _TENTHS:
        return f"{percent(ratio - 1.0)} more often than predicted"
    return f"{_short(ratio)} times as often as predicted"


def how_far(ratio: float, place: str) -> str:
    """How far from a place something is, compared with how far it was predicted to be.

    Examples
    --------
    >>> how_far(1.43, "it"), how_far(1.042, "it")
    ('1.4 times as far from it as predicted', '4% further from it than predicted')
    >>> how_far(0.71, "it")
    '29% nearer to it than predicted'
    """
    if ratio < 1.0:
        return f"{percent(1.0 - ratio)} nearer to {place} than predicted"
    if ratio < _TENTHS:
        return f"{percent(ratio - 1.0)} further from {place} than predicted"
    return f"{_short(ratio)} times as far from {place} as predicted"


def _short(ratio: float, digits: int = 2) -> str:
    return f"{float(f'{ratio:.{digits}g}'):,g}"


def share_text(share: float) -> str:
    """A share, small ones with more digits.

    Examples
    --------
    >>> share_text(0.314), share_text(0.0072)
    ('31%', '0.72%')
    """
    return percent(share, 0.095, 2)


def shares_text(*shares: float) -> tuple[str, ...]:
    """Shares beside each other, with so many digits that they can be told apart.

    Examples
    --------
    >>> shares_text(0.314, 0.1), shares_text(0.5007, 0.5), shares_text(0.25, 0.25)
    (('31%', '10%'), ('50.1%', '50.0%'), ('25%', '25%'))
    """
    told = tuple(map(share_text, shares))
    for digits in range(1, _MOST_DIGITS):
        if len(set(told)) == len(set(shares)):
            break
        told = tuple(f"{100.0 * share:.{digits}f}%" for share in shares)
    return told
