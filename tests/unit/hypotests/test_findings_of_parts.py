"""Whatever part of the omnibus test is the reason of a rejection, a finding tells it in words."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

import wellcal as wc
from wellcal.hypotests import Omnibus, TestResult
from wellcal.hypotests.parts import binary, classes, scalars, vectors

from .part_designs import PLANTED

PARTS = {
    "numbers": scalars.CONTINUOUS,
    "counts": scalars.COUNTS,
    "vectors": vectors.WEIGHTS,
    "two classes": binary.WEIGHTS,
    "classes": classes.WEIGHTS,
}


OPPOSITES = (
    ("too small", "too large"),
    ("too high", "too low"),
    ("higher than predicted", "lower than predicted"),
    ("more dispersed", "less dispersed"),
    ("more zeros", "fewer zeros"),
    ("too extreme", "not extreme enough"),
    ("heavier", "lighter"),
    ("skewed to the right", "skewed to the left"),
    ("more likely", "less likely"),
    ("more strongly correlated", "less strongly correlated"),
)
SCOPE = re.compile(r"^(coordinate \d+|coordinates \d+ and \d+)|(where .*?|for .*? = \S+)(?=,| \(|$)")


def outcome(name: str) -> TestResult:
    y, pred = PLANTED[name].make(np.random.default_rng([len(name), 43]))
    cheap = Omnibus(pairs=False, most_resamples=0)
    return wc.calibration_test(y, pred, rng=0, n_resamples=199, method=cheap)


def test_every_part_of_every_family_has_a_planted_error() -> None:
    """SKCE and locations see everything, and are told by what the others see."""
    for family, parts in PARTS.items():
        planted = {error.part for name, error in PLANTED.items() if name.startswith(family)}
        assert planted >= parts.keys() - {"SKCE", "locations"}, family


@pytest.mark.parametrize("name", PLANTED)
def test_a_part_that_rejects_is_told_first_and_not_contradicted(name: str) -> None:
    planted = PLANTED[name]
    result = outcome(name)
    assert result.provenance["pvalues"][planted.part] <= 0.01
    first = result.findings[0]
    assert first.kind in planted.kinds, result.findings
    assert not contradictions([finding.sentence for finding in result.findings])
    assert not first.sentence.startswith("perhaps")
    low, high = first.interval
    assert low <= first.size <= high
    assert re.search(r"\d", first.sentence)
    assert not re.search(r"nan|inf|\d\.\d{3,}", first.sentence), first.sentence


def contradictions(sentences: list[str]) -> list[tuple[str, str]]:
    """Pairs of sentences that say opposite things of the same cases.

    A sentence that names no cases, or no coordinate, is about all of them.
    """

    def about(sentence: str) -> tuple[str, str]:
        parts = [match.group(0) for match in SCOPE.finditer(sentence)]
        coordinate = next((part for part in parts if part.startswith("coord")), "")
        return coordinate, next((part for part in parts if not part.startswith("coord")), "")

    def same(one: str, other: str) -> bool:
        return not one or not other or one == other

    return [
        (one, other)
        for one, other in combinations(sentences, 2)
        if all(map(same, about(one), about(other)))
        and any(
            (a in one and b in other and a not in other and b not in one)
            or (b in one and a in other and b not in other and a not in one)
            for a, b in OPPOSITES
        )
    ]


def test_what_contradicts() -> None:
    high = "targets are 0.3 standard deviations too high (0.2 to 0.4)"
    low = "targets are 0.2 standard deviations too low (0.1 to 0.3) where the predicted mean is above 4"
    assert contradictions([high, low])
    assert contradictions([f"all coordinates: {high}", f"coordinate 2: {low}"])
    assert not contradictions([f"coordinate 1: {high}", f"coordinate 2: {low}"])
    assert not contradictions([high.replace(" (", " where the predicted mean is below 2 ("), low])
    assert contradictions(["spreads are 20% too small (9% to 30%)", "spreads are 3.4 times too large"])
