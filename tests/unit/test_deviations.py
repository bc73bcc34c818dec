"""Distances of calibrated models from their estimates: the same, however drawn targets are summed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wellcal as wc
from wellcal.measures.deviations import Cases, deviations_of

N = 20
RNG = np.random.default_rng(4)
MU, SIGMA = RNG.normal(size=N), RNG.uniform(0.5, 2.0, N)
FAMILIES: dict[str, wc.Predictions] = {
    "normals": wc.Normal(MU, SIGMA),
    "events": wc.Bernoulli(1.0 / (1.0 + np.exp(MU))),
    "classes": wc.Categorical(RNG.dirichlet(np.ones(3), N)),
    "vectors": wc.DiagonalNormal(np.stack([MU, -MU], axis=1), np.stack([SIGMA, SIGMA], axis=1)),
    "counts": wc.Poisson(3.0 * SIGMA),
    "lowered": wc.Gamma(np.full(N, 2.0), SIGMA),
    "draws": wc.Samples(RNG.normal(MU[:, None], SIGMA[:, None], (N, 4))),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_pairs_of_drawn_targets_are_those_of_the_cases(name: str) -> None:
    """Weights of one change nothing but the way: with them all of h is computed for each set."""
    pred: Any = FAMILIES[name]
    y = pred.sample(rng=0)
    cases = [Cases(y, pred, wc.default_kernel(pred), weights=weights) for weights in (None, np.ones(N))]
    apart, whole = (deviations_of(some).drawn for some in cases)
    assert apart is not None
    assert whole is not None
    assert_allclose(apart, whole, rtol=1e-9)
    assert np.ptp(apart) > 0.1 * apart.mean()
