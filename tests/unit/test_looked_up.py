"""What is computed once and looked up, and what is found in few steps: the same numbers, at less cost."""

import numpy as np
import pytest

import wellcal as wc
from wellcal._arrays.inversion import bisect_quantile
from wellcal.measures.normal_scores import score, standing_of

RNG = np.random.default_rng(0)
RATES = RNG.gamma(3.0, 2.0, size=60)
COUNTS = {
    "Poisson": wc.Poisson(RATES),
    "large": wc.Poisson(100.0 * RATES),
    "huge": wc.Poisson(np.concatenate([[0.0, 3.0], np.full(58, 1e14)])),
    "NegativeBinomial": wc.NegativeBinomial(RATES, 0.5),
    "Mixture": wc.Mixture([wc.Poisson(RATES), wc.NegativeBinomial(RATES[::-1], 2.0)]),
}


@pytest.mark.parametrize("name", COUNTS)
def test_scores_of_counts_are_the_same_number_by_number(name: str) -> None:
    batch = COUNTS[name]
    sets = batch.draw(np.random.default_rng(1), 200)
    sets[3, 5], sets[4, 5], sets[5, 7] = 1e9, -3.0, 2.5  # no count, or far from all that is expected
    standing = standing_of(batch)
    assert standing is not None
    found = np.concatenate([standing(some) for some in np.split(sets, 10)])
    middle = 0.5 * (batch.cdf(sets - 1.0) + batch.cdf(sets))
    if name == "Mixture":  # parts are added one after the other
        assert np.allclose(found, score(middle), rtol=1e-12, atol=1e-12)
    else:
        assert np.array_equal(found, score(middle))


@pytest.mark.parametrize("name", ["Poisson", "NegativeBinomial", "Mixture"])
def test_distribution_functions_of_counts_are_computed_for_few_targets(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = COUNTS[name]
    seen: list[int] = []
    for family in (wc.Poisson, wc.NegativeBinomial):
        before = family.cdf

        def counted(self: object, y: np.ndarray, before: object = before) -> np.ndarray:
            seen.append(np.size(y))
            return before(self, y)  # type: ignore[operator]

        monkeypatch.setattr(family, "cdf", counted)
    targets = batch.draw(np.random.default_rng(2), 1000)
    standing = standing_of(batch)
    assert standing is not None
    for some in np.split(targets, 50):
        standing(some)
    assert sum(seen) < 0.25 * targets.size  # two for each target, and for each part of a mixture, at first


SMOOTH = wc.Mixture([wc.Normal(RNG.normal(size=300), RNG.gamma(5.0, 0.2, size=300)) for _ in range(5)])
APART = wc.Mixture([wc.Normal(np.arange(300.0) + 1e4 * k, 1e-3) for k in range(5)])
STEPS = wc.Mixture([wc.Poisson(np.linspace(0.0, 50.0, 300)), wc.NegativeBinomial(np.full(300, 9.0), 1.0)])


@pytest.mark.parametrize("level", [1e-9, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("batch", [SMOOTH, APART, STEPS], ids=["smooth", "apart", "steps"])
def test_quantiles_of_mixtures_are_the_smallest_numbers_that_reach_a_level(
    batch: wc.Mixture, level: float
) -> None:
    found = batch.quantile(level)
    before = found - 1.0 if batch is STEPS else np.nextafter(found, -np.inf)
    assert np.all(batch.cdf(found) >= level)
    assert np.all(batch.cdf(before) < level)


@pytest.mark.parametrize(("batch", "most"), [(SMOOTH, 25), (STEPS, 12)], ids=["smooth", "steps"])
def test_quantiles_of_mixtures_take_few_evaluations(
    batch: wc.Mixture, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    before = wc.Mixture.cdf

    def counted(self: wc.Mixture, y: np.ndarray) -> np.ndarray:
        seen.append(np.size(y))
        return before(self, y)

    monkeypatch.setattr(wc.Mixture, "cdf", counted)
    batch.quantile(0.9)
    assert sum(seen) < most * len(batch)  # halving alone takes 54


def test_a_jump_in_what_was_called_smooth_is_found_all_the_same() -> None:
    found = bisect_quantile(
        lambda rows: lambda x: np.where(x < 0.3, 0.1 * x, 0.9),
        np.array([0.5, 0.02]),
        np.zeros(2),
        np.ones(2),
        smooth=True,
    )
    assert found[0] == 0.3
    assert found[1] == pytest.approx(0.2, rel=1e-15)
