"""The calibration mean embedding test: options, refusals, what it reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.hypotests.hotellings_statistic import cme_statistics, hotelling
from wellcal.hypotests.methods import MeanEmbedding
from wellcal.hypotests.setup import make_setup

RNG = np.random.default_rng(0)


def setup(n: int = 60, rng: int = 1, shift: float = 0.0, **options: Any) -> Any:
    generator = np.random.default_rng(1000 + rng)
    mu = generator.normal(size=n)
    return make_setup(mu + shift + generator.normal(size=n), wc.Normal(mu, 1.0), rng=rng, **options)


def test_ten_locations_are_drawn_by_default() -> None:
    found = MeanEmbedding().run(setup())
    assert found.provenance["locations"] == 10
    assert found.provenance["drawn"]
    assert found.provenance["reference"] == "F(10, 50)"
    assert found.label == "Q"
    assert 0.0 < found.pvalue <= 1.0


def test_same_seed_same_p_value() -> None:
    a, b, c = (MeanEmbedding().run(setup(60, 1)).pvalue for _ in range(3))
    assert a == b == c
    again = setup(60, 1)
    other = MeanEmbedding().run(make_setup(again.targets, again.predictions, rng=5)).pvalue
    assert other != a


def test_a_shift_is_found() -> None:
    assert MeanEmbedding(5).run(setup(200, shift=0.7)).pvalue < 1e-6
    assert MeanEmbedding(5).run(setup(200)).pvalue > 0.01


def test_p_values_are_never_zero() -> None:
    # All targets far out on one side: the deviations are alike up to what the predictions differ in.
    found = MeanEmbedding(3, reference="chi2").run(setup(4000, shift=3.0))
    assert found.pvalue >= np.finfo(float).tiny
    assert found.pvalue < 1e-200


@pytest.mark.parametrize("n", [4, 10])
def test_as_many_locations_as_cases_are_refused(n: int) -> None:
    with pytest.raises(ValueError, match=rf"{n} cases and 10 locations.*method=\"exact\" with statistic"):
        MeanEmbedding().run(setup(n))
    assert MeanEmbedding(3).run(setup(4)).pvalue > 0.0


def test_unknown_reference() -> None:
    with pytest.raises(ValueError, match="unknown reference 'normal'; known are f, chi2"):
        MeanEmbedding(reference="normal")


def test_deviations_that_do_not_vary_are_refused() -> None:
    pred = wc.Bernoulli(np.full(20, 0.5))
    with pytest.raises(ValueError, match=r"the same for all cases.*method=\"exact\""):
        MeanEmbedding(2).run(make_setup(np.ones(20, dtype=int), pred, rng=0))


def test_a_certain_deviation_beside_a_varying_one_is_refused() -> None:
    D = np.stack([RNG.normal(size=30), np.full(30, 0.2)], axis=1)
    found = hotelling(D.mean(axis=0)[None], np.cov(D, rowvar=False)[None], 30)
    assert found.certain[0]
    assert found.rank[0] == 1
    D[:, 1] = 0.0
    assert not hotelling(D.mean(axis=0)[None], np.cov(D, rowvar=False)[None], 30).certain[0]


def test_exact_test_takes_all_targets_equal() -> None:
    """Sets whose deviations do not vary get a large statistic, and no error."""
    pred = wc.Bernoulli(np.full(20, 0.5))
    statistic = cme_statistics(make_setup(np.ones(20, dtype=int), pred, rng=0), 2)
    mixed = np.array([0, 1] * 10)
    found = statistic(np.stack([np.ones(20, dtype=int), mixed, np.roll(mixed, 1)]))
    assert found[0] > 1e6
    assert np.all(found[1:] < 1e-6)


def test_exact_size_of_q() -> None:
    """Ranks of the observed statistic among drawn ones are uniform: observed and drawn go the same way."""
    ranks = []
    for seed in range(200):
        case = setup(8, seed)
        sets = np.concatenate([case.targets[None], case.predictions.draw(case.rng, 9)])
        q = cme_statistics(case, 3)(sets)
        ranks.append(int(np.sum(q >= q[0])))
    counts = np.bincount(ranks, minlength=11)[1:]
    assert counts.sum() == 200
    assert counts.max() <= 38  # 20 +- 4.2 standard deviations
    assert counts.min() >= 5


def test_one_case_more_than_locations() -> None:
    assert 0.0 < MeanEmbedding(7).run(setup(8)).pvalue <= 1.0
