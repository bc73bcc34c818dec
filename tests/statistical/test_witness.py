"""Multiplicity of the witness, by simulation with fixed seeds; `benchmarks` has the long version."""

from functools import cache
from itertools import count

import numpy as np
import pytest

import wellcal as wc
from wellcal.engines import Tiled
from wellcal.witnesses import witness

from .designs import check_rate, check_rates

ALPHA = 0.1
FAMILIES = {
    "Normal": lambda rng, n: wc.Normal(rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))),
    "Categorical": lambda rng, n: wc.Categorical(rng.dirichlet(np.ones(3), n)),
    "Poisson": lambda rng, n: wc.Poisson(rng.gamma(2.0, 2.0, n)),
}
OPTIONS = {"n_resamples": 39, "alpha": ALPHA, "engine": Tiled(threads=1)}


def draws(rng, n):
    centre = rng.normal(size=n)
    return rng.normal(centre, 1.0), wc.Samples(rng.normal(centre[:, None], 1.0, (n, 8)))


@pytest.mark.parametrize("family", [*FAMILIES, "draws"])
def test_false_statements_about_calibrated_models(family):
    """Any statement, and any departure from the band: at rate alpha, not twice that, nor a third of it."""

    @cache
    def stated(r):
        rng = np.random.default_rng([31, len(family), r])
        if family == "draws":
            y, pred = draws(rng, 40)
        else:
            pred = FAMILIES[family](rng, 40)
            y = pred.sample(rng)
        found = witness(y, pred, 10, segments=rng.integers(0, 3, 40), rng=rng, **OPTIONS)
        room = 1e-9 * (found.high - found.low)  # the set at the edge of the band may be the observed one
        outside = (found.values < found.low - room) | (found.values > found.high + room)
        assert np.array_equal(outside, found.pvalues <= ALPHA)
        return {"statements": bool(found.statements), "band": bool((found.pvalues <= ALPHA).any())}

    cells = ["statements", "band"]
    check_rates("witness, false statements", cells, map(stated, count()))
    silent = ({cell: not said for cell, said in stated(r).items()} for r in count())
    check_rates("witness is not cautious", cells, silent)


def test_false_statements_beside_a_true_one():
    """Strong control: a segment that is bad does not make a good one look bad.

    It even makes it look better: 0.105 of its p-values are at most 0.4, and 0.305 at most 0.8.
    """

    @cache
    def pvalues(r):
        rng = np.random.default_rng([32, r])
        mu, bad = rng.normal(size=60), np.arange(60) < 30
        y = rng.normal(mu + np.where(bad, 1.2, 0.0), 1.0)
        segments = np.where(bad, "b", "g")
        found = witness(y, wc.Normal(mu, np.ones(60)), 5, segments=segments, rng=rng, **OPTIONS)
        return {segment.where: segment.pvalue for segment in found.segments}

    wrong = (pvalues(r)["in segment 'g'"] <= 0.4 for r in count())
    check_rate("witness, false beside true", wrong)
    missed = (pvalues(r)["in segment 'b'"] > ALPHA for r in count())
    check_rate("witness, missed segments", missed)
