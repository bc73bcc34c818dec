"""Whatever part of the omnibus test is the reason of a rejection, a finding tells it in words."""

from __future__ import annotations

import re

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


def outcome(name: str, **options: object) -> TestResult:
    y, pred = PLANTED[name].make(np.random.default_rng([len(name), 43]))
    cheap = Omnibus(pairs=False, most_resamples=0)
    return wc.calibration_test(y, pred, rng=0, n_resamples=199, method=cheap, **options)


def test_every_part_of_every_family_has_a_planted_error() -> None:
    """SKCE and locations see everything, and are told by what the others see."""
    for family, parts in PARTS.items():
        planted = {error.part for name, error in PLANTED.items() if name.startswith(family)}
        assert planted >= parts.keys() - {"SKCE", "locations"}, family


@pytest.mark.parametrize("name", PLANTED)
def test_a_part_that_rejects_is_told_first(name: str) -> None:
    planted = PLANTED[name]
    result = outcome(name)
    assert result.provenance["pvalues"][planted.part] <= 0.01
    first = result.findings[0]
    assert first.kind in planted.kinds, result.findings
    assert not first.sentence.startswith("perhaps")
    low, high = first.interval
    assert low <= first.size <= high
    assert re.search(r"\d", first.sentence)
    assert not re.search(r"nan|inf|\d\.\d{3,}", first.sentence), first.sentence
