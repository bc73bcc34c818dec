"""What classes are called is no part of what was predicted: no number depends on it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wellcal as wc

rng = np.random.default_rng(0)
N = 40
P = rng.dirichlet([3.0, 1.0, 1.0, 1.0], N)
K = np.array([rng.choice(4, p=p) for p in P])
GRADES = wc.Categorical(P, support=[0, 1, 2, 3])
EVENTS, HAPPENED = wc.Bernoulli(P[:, 0]), (K == 0).astype(int)
TURNED = [2, 0, 3, 1]

SCORES: dict[str, Callable[[Any, Any], Any]] = {
    "nll": wc.nll,
    "mse": wc.mse,
    "crps": wc.crps,
    "brier": wc.brier,
    "energy_score": wc.energy_score,
    "pinball_loss": wc.pinball_loss,
    "skce": wc.skce,
    "kce": wc.kce,
    "ece": wc.ece,
    "pit": lambda y, pred: wc.pit(y, pred, rng=0),
    "coverage": lambda y, pred: wc.interval_coverage(y, pred).coverage,
    "if calibrated": lambda y, pred: wc.interval_coverage(y, pred).expected,
    "widths": lambda y, pred: wc.interval_coverage(y, pred).widths,
}
CODES = [[1, 2, 3, 4], [10, 20, 30, 40], [4, 3, 2, 1], [0.5, 0.25, 7.0, -1.0], ["d", "c", "b", "a"]]


def measured(y: Any, pred: Any) -> dict[str, Any]:
    """All of them, and those that are left out, of which recoding must make none."""
    running = wc.RunningMeasures(rng=0)
    running.update(y, pred)
    found = running.result()
    summed = {f"running {name}": float(x) for name, x in found.estimates.items()}
    return {name: np.asarray(f(y, pred), dtype=float) for name, f in SCORES.items()} | summed


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, atol=1e-15, err_msg=name)


@pytest.mark.parametrize("code", CODES, ids=str)
def test_grades_by_any_names(code: list[Any]) -> None:
    expected, names = measured(K, GRADES), np.array(code)
    assert_same(measured(names[K], wc.Categorical(P, classes=code, support=[0, 1, 2, 3])), expected)
    turned = wc.Categorical(P[:, TURNED], classes=names[TURNED], support=np.arange(4)[TURNED])
    assert_same(measured(names[K], turned), expected)
    y = pd.Series(pd.Categorical.from_codes(K.tolist(), code, ordered=True))
    assert_same(measured(y, pd.DataFrame(P, columns=code)), expected)


@pytest.mark.parametrize("code", [(1, 2), (1, 0), (0.0, 5.0), ("yes", "no")], ids=str)
def test_events_by_any_names(code: tuple[Any, Any]) -> None:
    named = wc.Bernoulli(P[:, 0], classes=code)
    assert_same(measured(np.array(code)[HAPPENED], named), measured(HAPPENED, EVENTS))


@pytest.mark.parametrize("code", [[4, 3, 2, 1], ["d", "c", "b", "a"]], ids=str)
def test_named_grades_among_numbers_are_their_numbers(code: list[Any]) -> None:
    """Names were looked for among targets that are numbers: NLL, PIT and coverage were others."""
    named, counts = wc.Categorical(P, classes=code, support=[0, 1, 2, 3]), wc.Poisson(np.full(N, 1.5))
    found, expected = wc.Mixture([named, counts]), wc.Mixture([GRADES, counts])
    for name in ("nll", "mse", "pinball_loss", "skce", "pit", "coverage", "if calibrated"):
        values = (np.asarray(SCORES[name](K, pred), dtype=float) for pred in (found, expected))
        np.testing.assert_array_equal(*values, err_msg=name)
    assert set(np.unique(wc.Mixture([named, GRADES]).draw(np.random.default_rng(0), 9))) <= {0, 1, 2, 3}


def test_classes_with_two_numbers_are_not_mixed() -> None:
    others = wc.Categorical(P, classes=["a", "b", "c", "d"], support=[0, 10, 20, 30])
    with pytest.raises(ValueError, match="the same support="):
        wc.Mixture([others, wc.Categorical(P, classes=["a", "b", "c", "d"], support=[0, 1, 2, 3])])


def test_classes_without_an_order_have_no_quantiles() -> None:
    """The pinball loss of class numbers hung on the order of the columns."""
    with pytest.raises(TypeError, match="pinball_loss needs predictions of numbers"):
        wc.pinball_loss(K, wc.Categorical(P))
