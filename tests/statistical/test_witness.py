"""Multiplicity of the witness, by simulation with fixed seeds; `benchmarks` has the long version."""

import numpy as np
import pytest
from scipy import stats

import wellcal as wc
from wellcal.engines import Tiled
from wellcal.witnesses import witness

FAMILIES = {
    "Normal": lambda rng, n: wc.Normal(rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))),
    "Categorical": lambda rng, n: wc.Categorical(rng.dirichlet(np.ones(3), n)),
    "Poisson": lambda rng, n: wc.Poisson(rng.gamma(2.0, 2.0, n)),
}
OPTIONS = {"n_resamples": 39, "alpha": 0.1, "engine": Tiled(threads=1)}
REPEATS = 120


def draws(rng, n):
    centre = rng.normal(size=n)
    return rng.normal(centre, 1.0), wc.Samples(rng.normal(centre[:, None], 1.0, (n, 8)))


@pytest.mark.parametrize("family", [*FAMILIES, "draws"])
def test_false_statements_about_calibrated_models(family):
    """Any statement, and any departure from the band: at most the level, within binomial error."""
    rng = np.random.default_rng(len(family))
    false = np.zeros(2)
    repeats = REPEATS if family in ("Normal", "Categorical") else 50
    for _ in range(repeats):
        if family == "draws":
            y, pred = draws(rng, 40)
        else:
            pred = FAMILIES[family](rng, 40)
            y = pred.sample(rng)
        found = witness(y, pred, 10, segments=rng.integers(0, 3, 40), rng=rng, **OPTIONS)
        false += [bool(found.statements), bool((found.pvalues <= 0.1).any())]
    assert (false <= stats.binom.ppf(0.9995, repeats, 0.1)).all()
    assert (false >= stats.binom.ppf(0.0005, repeats, 0.1)).all()  # and, of many, no bound is loose


def test_false_statements_beside_a_true_one():
    """Strong control: a segment that is bad does not make a good one look bad."""
    rng = np.random.default_rng(9)
    wrong = right = 0
    for _ in range(REPEATS):
        mu, bad = rng.normal(size=60), np.arange(60) < 30
        y = rng.normal(mu + np.where(bad, 1.2, 0.0), 1.0)
        found = witness(
            y, wc.Normal(mu, np.ones(60)), 5, segments=np.where(bad, "b", "g"), rng=rng, **OPTIONS
        )
        by_name = {segment.where: segment.pvalue for segment in found.segments}
        right += by_name["in segment 'b'"] <= 0.1
        wrong += by_name["in segment 'g'"] <= 0.1
    assert wrong <= stats.binom.ppf(0.9995, REPEATS, 0.1)
    assert right > 0.9 * REPEATS
