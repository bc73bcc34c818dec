"""What share of targets is expected between deciles: a tenth, exactly, where no value has a probability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.hypotests.findings.claims import evidence
from wellcal.hypotests.findings.levels import LevelClaims, has_tenths
from wellcal.measures.normal_scores import standing_of

N = 10
RNG = np.random.default_rng(7)
MU = RNG.normal(size=N)
SCALE = np.ones(N)
SMOOTH: dict[str, Any] = {
    "Normal": wc.Normal(MU, SCALE),
    "Gamma": wc.Gamma(2.0 * SCALE, SCALE),
    "Mixture": wc.Mixture([wc.Normal(MU, SCALE), wc.Normal(MU + 2.0, 0.5 * SCALE)], [0.7, 0.3]),
}
WITH_ATOMS: dict[str, Any] = {
    "no spread": wc.Normal(MU, np.where(np.arange(N) == 3, 0.0, 1.0)),
    "some of it has none": wc.Mixture([wc.Normal(MU, SCALE), wc.Normal(MU, 0.0 * SCALE)], [0.7, 0.3]),
    "Poisson": wc.Poisson(3.0 * SCALE),
    "Samples": wc.Samples(RNG.normal(size=(N, 7))),
}


def tenths(pred: Any) -> tuple[bool, list[float]]:
    """Whether tenths are exact, and what is expected of the tests' quantities."""
    standing = standing_of(pred)
    assert standing is not None
    exact = has_tenths(pred, standing)
    y = np.asarray(pred.sample(rng=0))
    drawn = [np.stack([np.asarray(pred.sample(rng=seed)) for seed in range(1, 100)])]
    found = evidence(LevelClaims(standing, exact=exact), y, drawn)
    return exact, [one.expected for one in found.values()]


@pytest.mark.parametrize("name", SMOOTH)
def test_a_tenth_is_a_tenth(name: str) -> None:
    assert tenths(SMOOTH[name]) == (True, [0.1] * 10)


@pytest.mark.parametrize("name", WITH_ATOMS)
def test_with_atoms_drawn_targets_say_it(name: str) -> None:
    exact, expected = tenths(WITH_ATOMS[name])
    assert not exact
    assert sum(expected) == pytest.approx(1.0)
    assert max(expected) > 0.12


def test_the_sentence() -> None:
    y = MU + np.array([-2.5, -2.2, -1.8, -1.6, -1.4, -1.2, -0.8, 0.6, 1.0, 1.4])
    found = wc.calibration_test(y, SMOOTH["Normal"], rng=0)
    told = [str(finding) for finding in found.findings if "quantile" in str(finding)]
    assert told
    assert all("expected 10%" in text for text in told)
