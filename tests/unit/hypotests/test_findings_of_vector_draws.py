"""Draws of vectors: trends by the draws alone, and correlations of targets beside those of draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

import wellcal as wc
from wellcal.displays import CorrelationsDisplay
from wellcal.hypotests.findings.families import claims_of, findings_in
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.findings.pooled_joint import (
    PooledCentreTrends,
    PooledCorrelationTrends,
    PooledSpreadTrends,
)
from wellcal.hypotests.findings.pooled_vectors import PooledVectors
from wellcal.hypotests.findings.reasons import NO_REASONS, Reasons
from wellcal.problem.target_resampling import pool_draws

N = 200
ROOTS = {size: np.linalg.cholesky([[1.0, size], [size, 1.0]]) for size in (0.0, 0.5, 0.8)}


def told(y: Any, draws: Any, reasons: Reasons = NO_REASONS) -> tuple[Finding, ...]:
    return findings_in(y, pool_draws(y, wc.Samples(draws)), True, reasons=reasons)


def made(
    seed: int,
    *,
    draws: int = 5,
    differ: float = 0.3,
    spread: float = 1.0,
    true: float = 0.0,
    said: float = 0.0,
    n: int = N,
) -> tuple[Any, Any, Any]:
    """Where cases lie, targets, and draws: of any spread and correlation."""
    rng = np.random.default_rng([seed, draws])
    mu = differ * rng.normal(size=(n, 2))
    y = mu + spread * rng.normal(size=(n, 2)) @ ROOTS[true].T
    return mu, y, mu[:, None] + rng.normal(size=(n, draws, 2)) @ ROOTS[said].T


def net(y: Any, draws: Any) -> tuple[float, float]:
    """Correlations of targets, without the chance in the mean of draws, and of draws, by their definition."""
    within = np.mean([np.cov(one.T) for one in draws], axis=0)
    targets = np.cov((y - draws.mean(axis=1)).T) - within / draws.shape[1]
    one, other = (float(table[0, 1] / np.sqrt(table[0, 0] * table[1, 1])) for table in (targets, within))
    return one, other


# -- trends ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("draws", "spread"), [(2, 2.0), (3, 1.6), (5, 0.6)])
def test_a_wrong_spread_is_no_trend(draws: int, spread: float) -> None:
    """An outcome that is far off pulls the mean of draws and outcome: that is not where cases lie."""
    _, y, values = made(0, draws=draws, spread=spread)
    (found,) = told(y, values, Reasons(clear=("trend of the centre", "trend of the spread")))
    assert found.kind == "spread"
    assert found.interval is not None
    assert found.interval[0] < 1.0 / spread < found.interval[1]


@pytest.mark.parametrize("shift", [1.0, 30.0])
def test_targets_that_are_all_too_high_are_no_trend(shift: float) -> None:
    """They are the highest of their pools, and leave draws at the lower levels of these."""
    _, y, values = made(1, draws=4)
    (found,) = told(y + shift, values)
    assert (found.kind, found.size) == ("shift", pytest.approx(shift, rel=0.15))


def test_groups_are_told_by_the_draws_alone() -> None:
    """Whoever has the draws finds the same cases; a trend is no spread and no correlation."""
    rng = np.random.default_rng(2)
    mu = rng.normal(size=(400, 2)) @ ROOTS[0.8].T
    y, values = 1.8 * mu + rng.normal(size=(400, 2)), mu[:, None] + rng.normal(size=(400, 5, 2))
    findings = told(y, values)
    assert {found.kind for found in findings} == {"trend of the centre"}
    (found,) = [one for one in findings if str(one).startswith("coordinate 1: ")]
    assert found.by == "predicted mean"
    _, _, place = str(found).partition("where the predicted mean is ")
    side, cut = place.split(",")[0].split()
    pool = np.concatenate([values, y[:, None]], axis=1)[..., 0]
    means = (pool.sum(axis=1, keepdims=True) - pool) / 5.0
    inside = (means > float(cut)) == (side == "above")
    # In units of draws, beside what any member has that is the target in such a group.
    unit = np.sqrt(np.mean(pool[:, :-1].var(axis=1, ddof=1)))
    every = np.sqrt(np.mean([np.delete(pool, k, axis=1).var(axis=1, ddof=1) for k in range(6)]))
    usual = np.mean((pool - means)[inside]) / every
    size = np.mean((pool - means)[inside[:, -1], -1]) / unit - usual
    assert found.size == pytest.approx(size, rel=1e-9)


def test_a_trend_with_another_coordinate_is_told_by_its_draws() -> None:
    mu, y, values = made(3, differ=1.0, n=400)
    y = y + np.stack([0.6 * mu[:, 1], 0.0 * mu[:, 0]], axis=1)
    (found,) = told(y, values, Reasons(clear=("trend of the centre",)))
    assert (found.kind, found.by) == ("trend of the centre", "predicted mean of coordinate 2")


@pytest.mark.parametrize("digits", [1, 6])
def test_all_members_of_a_pool_of_vectors_are_treated_alike(digits: int) -> None:
    """Sets of targets have the same scores whichever member was observed: p-values by exchange are exact."""
    rng = np.random.default_rng(3)
    scale = np.exp(2.0 * rng.normal(size=(60, 1, 2)))
    values = (scale * rng.normal(2.0, 1.0, (60, 9, 2))).round(digits)
    places = np.argsort(rng.random((5, 60, 9)), axis=2)
    swapped = np.take_along_axis(values, places[0][..., None], axis=1)
    sets = np.stack([values[np.arange(60), place[:, 0]] for place in places])
    first, second = (claims_of(wc.Samples(one, kind="atoms"), True) for one in (values, swapped))
    assert isinstance(first, PooledVectors)
    assert isinstance(second, PooledVectors)
    assert first.names == second.names
    assert "1: width 4" in first.names  # spreads differ by more than chance
    np.testing.assert_allclose(first.scores(sets), second.scores(sets), atol=1e-7, rtol=1e-7)
    for look in (PooledCentreTrends, PooledSpreadTrends, PooledCorrelationTrends):
        one, other = (look(claims).scores(sets) for claims in (first, second))
        np.testing.assert_allclose(one, other, atol=1e-7, rtol=1e-7)


def test_a_single_draw_tells_of_no_trend() -> None:
    """It cannot say where a case lies and be compared with the target, too."""
    _, y, values = made(4, draws=1, spread=1.8)
    assert told(y, values) == ()


def test_draws_of_whole_numbers_may_be_all_the_same() -> None:
    """Spreads of zero are no reason to take each case in its own unit."""
    _, y, values = made(0, spread=1.6, differ=1.0)
    assert [found.kind for found in told(y.round(), values.round())] == ["spread"]


# -- correlations ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("true", "said", "draws"), [(0.0, 0.8, 5), (0.8, 0.0, 5), (0.8, 0.0, 2)])
def test_correlations_of_targets_and_draws_are_told(true: float, said: float, draws: int) -> None:
    """Errors about the mean of a few draws have the correlation of these, too, and pools that of both."""
    _, y, values = made(5, draws=draws, true=true, said=said)
    (found,) = told(y, values)
    seen, predicted = net(y, values)
    assert (found.kind, found.size) == ("correlation", pytest.approx(seen, abs=1e-9))
    assert found.interval is not None
    assert found.interval[0] < true < found.interval[1]
    words = found.sentence.partition("predicted ")[2].rpartition("predicted ")[2].rstrip(")")
    assert (0.0 if words == "independent" else float(words)) == pytest.approx(predicted, abs=0.05)


def test_correlations_that_are_right_are_not_told_where_spreads_are_wrong() -> None:
    _, y, values = made(6, spread=0.6, true=0.5, said=0.5)
    assert [found.kind for found in told(y, values)] == ["spread"]


def test_a_correlation_that_goes_with_a_prediction_is_told_by_draws() -> None:
    rng = np.random.default_rng(7)
    mu, noise = rng.normal(size=(400, 2)), rng.normal(size=(400, 2))
    size = np.where(mu[:, 0] > 0.0, 0.9, 0.0)
    noise[:, 1] = size * noise[:, 0] + np.sqrt(1.0 - size**2) * noise[:, 1]
    y, values = mu + noise, mu[:, None] + rng.normal(size=(400, 5, 2)) @ ROOTS[0.5].T
    findings = told(y, values, Reasons(clear=("trend of the correlation",)))
    (found,) = [one for one in findings if one.kind == "trend of the correlation"]
    assert found.by == "predicted mean of coordinate 1"
    assert found.elsewhere is not None
    cut = float(str(found).split(" where the predicted mean of coordinate 1 is ")[1].split()[1].strip(","))
    inside = values[..., 0].mean(axis=1) > cut
    sides = [net(y[some], values[some]) for some in (inside, ~inside)]
    assert sorted([found.size, found.elsewhere[0]]) == pytest.approx(
        sorted(one for one, _ in sides), abs=0.05
    )
    assert all(f"{said:.2g}" in str(found).split("predicted ")[-1] for _, said in sides)


def test_the_picture_of_correlations_has_those_of_findings() -> None:
    _, y, values = made(5, true=0.0, said=0.8)
    (found,) = told(y, values)
    seen, predicted = net(y, values)
    shown = CorrelationsDisplay.computed(y, wc.Samples(values), test=False)
    assert shown.correlations[0] == pytest.approx(found.size, abs=1e-12)
    assert shown.predicted[0] == pytest.approx(predicted, abs=1e-9)
    assert shown.low[0] < predicted < shown.high[0]
    assert seen < shown.low[0]
    texts = [" ".join(text.get_text().split()) for text in shown.plot().figure_.findobj(Text)]
    (words,) = [text for text in texts if "chance" in text]
    assert words.endswith("without the chance in the mean of draws; line in the band: what was predicted.")


def test_targets_that_hardly_spread_have_no_correlation() -> None:
    """What is left of errors is the chance in the mean of draws."""
    _, y, values = made(8, spread=0.05, true=0.8)
    assert {found.kind for found in told(y, values)} == {"spread"}
    shown = CorrelationsDisplay.computed(y, wc.Samples(values), test=False)
    assert shown.correlations[0] == pytest.approx(shown.predicted[0])
