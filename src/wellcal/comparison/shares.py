"""Which measures decide whether models differ in calibration, and how much of the error rate each has.

A difference is shown where an interval that holds for all of these measures, and for all pairs of models,
excludes zero, and the tests of the two models say that one of them is miscalibrated. p-values, verdicts and
intervals all follow from that, so that none of them says what another denies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wellcal.comparison.differences import Difference, t_quantile
from wellcal.comparison.models import SIZES, SKCE, Models, gate
from wellcal.comparison.sizes import LENGTHS

SHARES = {SKCE: 0.2, **dict.fromkeys(SIZES, 0.8)}
"""Of the error rate, for the two measures of calibration that may show a difference.

The length of the error in centre and spread, or in temperature, shows ordinary differences at half the number
of cases; the SKCE sees whatever there is."""


def shares_of(measures: Iterable[str]) -> dict[str, float]:
    """The shares of the measures that there are.

    Examples
    --------
    >>> shares_of(["SKCE", "NLL"])
    {'SKCE': 1.0}
    """
    known = {name: SHARES[name] for name in measures if name in SHARES}
    return known if len(known) > 1 else dict.fromkeys(known, 1.0)


def called(measure: str) -> str:
    """A measure as tables and pictures call it."""
    return f"error in {measure}" if measure in SIZES else measure


def explained(measures: Iterable[str]) -> list[str]:
    """What the numbers of measures are, where findings tell the same error in other units.

    Examples
    --------
    >>> explained(["SKCE", "temperature"])
    ['the error in temperature is a length: the root of twice the NLL that the best temperature would save']
    """
    return [f"the {called(name)} is {LENGTHS[name]}" for name in dict.fromkeys(measures) if name in LENGTHS]


def compared_pvalue(differences: Sequence[Difference]) -> float:
    """p-value of no difference in calibration, from those of the measures of it, each with its share."""
    return min(1.0, min(pvalue for _, pvalue in _weighted(differences)))


def clearest(differences: Iterable[Difference]) -> Difference:
    """The difference in calibration that is shown most clearly, for its share of the error rate."""
    return min(_weighted(differences), key=lambda pair: pair[1])[0]


def opposed(differences: Sequence[Difference]) -> Difference | None:
    """The measure of calibration that says the opposite of the clearest one; None where none does.

    By itself, at the whole error rate: it is no claim of its own, but what one must not be made against.

    Examples
    --------
    >>> skce = Difference("SKCE", 0.01, 0.02, 0.004, 99.0, 2.0, 0.95)
    >>> spread = Difference("centre and spread", 1.5, 1.25, 0.05, 99.0, 2.0, 0.95)
    >>> opposed([skce, spread]).measure
    'SKCE'
    """
    if not any(found.measure in SHARES for found in differences):
        return None
    first = clearest(differences)
    others = [found for found in differences if found.measure in SHARES and found.value * first.value < 0.0]
    return next((found for found in others if found.pvalue <= 1.0 - found.level), None)


def opposite_of(measure: str, differences: Sequence[Difference]) -> Difference | None:
    """The measure of calibration that says the opposite of another one; None where they agree."""
    other = opposed(differences)
    return clearest(differences) if other is not None and other.measure == measure else other


def most_shown(pairs: Sequence[Sequence[Difference]]) -> str:
    """The measure of calibration that shows differences of the most pairs; of several, the clearest one."""
    first = clearest(found for differences in pairs for found in differences).measure

    def shown(measure: str) -> tuple[int, bool]:
        found = [each for differences in pairs for each in differences if each.measure == measure]
        return sum(each.is_shown for each in found), measure == first

    return max({found.measure for found in pairs[0] if found.measure in SHARES} | {first}, key=shown)


def differences_of(
    models: Models, i: int, j: int, pairs: int = 1, scores: Mapping[str, float] | None = None
) -> tuple[Difference, ...]:
    """How far two models are apart in all measures.

    Intervals of calibration hold for all measures of it and for all `pairs` together, and only where the
    tests of the two models say that one of them is miscalibrated. `scores` has standard errors for those of
    other measures; each holds alone where there are none.
    """
    alpha, shares = 1.0 - models.level, shares_of(models.measures)
    holds = pairs * gate((models.models[i].test, models.models[j].test)) <= alpha
    found: list[Difference] = []
    for name in models.measures:
        if name in shares:
            critical = t_quantile(models.degrees, 1.0 - alpha * shares[name] / pairs)
            found.append(models.difference(name, i, j, critical, holds=holds))
        else:
            found.append(models.difference(name, i, j, None if scores is None else scores[name]))
    return tuple(found)


def _weighted(differences: Iterable[Difference]) -> list[tuple[Difference, float]]:
    differences = list(differences)
    shares = shares_of(dict.fromkeys(found.measure for found in differences))
    return [(found, found.pvalue / shares[found.measure]) for found in differences if found.measure in shares]
