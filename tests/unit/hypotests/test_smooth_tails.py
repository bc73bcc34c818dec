"""The rank of the observed set, where only the tails that count are evaluated."""

from __future__ import annotations

import numpy as np
import pytest

from wellcal.hypotests.parts.part import Evaluated
from wellcal.hypotests.resampling import smooth_tails
from wellcal.hypotests.resampling.components import observed_rank, smallest_ranks
from wellcal.hypotests.resampling.smooth_tails import pearson_tail


def screened_designs(count: int) -> dict[str, np.ndarray]:
    """Statistics over sets, whose first set is far off, or not, among tails of all kinds."""
    rng = np.random.default_rng(11)
    normal, heavy = rng.normal(size=(3, count)), rng.standard_cauchy((3, count))
    far, ties = rng.gamma(0.5, size=(3, count)), rng.poisson(2.0, (3, count)).astype(float)
    far[1, :2], ties[0, :3] = (40.0, 39.0), 20.0
    infinite = normal**2
    infinite[2, :2] = np.inf
    constant = np.ones((3, count))
    constant[0] = normal[0]
    apart = np.zeros((3, count))
    apart[1, 0] = 1.0
    return {
        "ordinary": normal,
        "squares": normal**2 + np.eye(3, count) * 30.0,
        "no moments": np.abs(heavy),
        "far off to the left": -(far**2),
        "two far off": far,
        "ties": ties,
        "infinite": infinite,
        "one that varies": constant,
        "one set alone": apart,
    }


@pytest.mark.parametrize("count", [30, 3000])
@pytest.mark.parametrize("name", screened_designs(5))
def test_the_rank_of_the_observed_set_alone_is_the_same(name: str, count: int) -> None:
    values = screened_designs(count)[name]
    for first in range(0, count, count // 15):
        order = np.roll(np.arange(count), -first)
        parts = [Evaluated(str(k), w, values[k, order]) for k, w in enumerate((1.0, 0.3, 0.05))]
        found = smallest_ranks(parts)
        assert observed_rank(parts) == (found.pvalues[0], found.floor)


def test_few_tails_are_evaluated_where_the_observed_set_is_far_off(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[int] = []

    def counted(x: np.ndarray, skewness: np.ndarray) -> np.ndarray:
        evaluated.append(x.size)
        return pearson_tail(x, skewness)

    monkeypatch.setattr(smooth_tails, "pearson_tail", counted)
    values = np.random.default_rng(0).gamma(2.0, size=(5, 10_000))
    values[3, 0] = 30.0
    assert observed_rank([Evaluated("a", 1.0, row) for row in values])[0] == 1e-4
    assert sum(evaluated) <= 0.02 * values.size


def test_tails_are_smallest_at_an_end_of_an_interval_of_skewness() -> None:
    """Beyond the mean they rise with the skewness, fall, or do first one and then the other."""
    skewness = np.concatenate([np.linspace(-0.5, 5.0, 200), np.geomspace(5.1, 300.0, 100)])
    for x in (0.0, 0.3, 1.0, 1.5, 1.7, 2.0, 3.0, 6.0, 20.0):
        tails = pearson_tail(np.full(len(skewness), x), skewness)
        steps = np.sign(np.diff(tails) * (np.abs(np.diff(tails)) > 1e-9 * tails[1:]))
        assert (np.diff(steps[steps != 0.0]) <= 0.0).all()
