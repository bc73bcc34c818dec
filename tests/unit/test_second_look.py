"""Groups that were found in some of the cases are told as they are in all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import wellcal as wc
from wellcal.reporting.first_screen import where
from wellcal.witnesses import looking_again as module
from wellcal.witnesses.looking_again import as_computed, combined, second_look

N, SOME = 6000, 1000
PLAN = sys.modules[wc.report.__module__]

Case = tuple[Any, Any, Callable[[Any], Any]]


def rows(seed: int = 0) -> Any:
    return np.sort(np.random.default_rng(seed).permutation(N)[:SOME])


def normals(rng: np.random.Generator) -> Case:
    """Too high where the mean is above 1."""
    mu = rng.normal(size=N)
    y = rng.normal(mu + 0.8 * (mu > 1.0), 1.0)
    return y, wc.Normal(mu, np.ones(N)), lambda pred: pred.loc


def counts(rng: np.random.Generator) -> Case:
    rate = rng.uniform(1.0, 9.0, N)
    return rng.poisson(rate * (1.0 + 0.5 * (rate > 6.0))), wc.Poisson(rate), lambda pred: pred.rate


def draws(rng: np.random.Generator) -> Case:
    mu = rng.normal(size=N)
    y = rng.normal(mu + 1.0 * (mu > 1.0), 1.0)
    pred = wc.Samples(rng.normal(mu[:, None], 1.0, (N, 15)))
    return y, pred, lambda pred: None


def classes(rng: np.random.Generator) -> Case:
    """25 of them, more than are looked at one by one; one is more frequent than predicted."""
    logits = rng.normal(size=(N, 25)) + np.linspace(0.0, 2.0, 25)
    p = special.softmax(logits, axis=1)
    logits[:, 20] += 0.9
    upto = special.softmax(logits, axis=1).cumsum(axis=1)
    y = np.minimum((upto < rng.uniform(size=(N, 1))).sum(axis=1), 24)
    return y, wc.Categorical(p), lambda pred: None


def vectors(rng: np.random.Generator) -> Case:
    mu = rng.normal(size=(N, 2))
    y = rng.normal(mu + np.array([0.0, 0.6]) * (mu[:, :1] > 0.5), 1.0)
    return y, wc.DiagonalNormal(mu, np.ones((N, 2))), lambda pred: None


CASES = {"normals": normals, "counts": counts, "draws": draws, "classes": classes, "vectors": vectors}


def looked_at(name: str, seed: int = 0) -> tuple[Any, Any, Any, Any, Any]:
    y, pred, summary = CASES[name](np.random.default_rng(seed))
    some = rows()
    found = wc.witness(y[some], pred[some], n_resamples=199)
    return found, second_look(found, as_computed(y, pred), pred, some), y, pred, summary


@pytest.mark.parametrize("name", CASES)
def test_what_is_planted_holds_and_counts_all_cases(name: str) -> None:
    found, looked, *_ = looked_at(name)
    assert [one.before for one in looked] == [group for group in found.groups if group.pvalue <= found.alpha]
    first = looked[0]
    assert first.holds
    assert first.after.where == first.before.where
    assert first.after.direction.split()[0] == first.before.direction.split()[0]
    some, every = set(rows()[first.before.cases].tolist()), set(first.after.cases.tolist())
    assert len(every) > 3 * len(some)
    # Membership is told by the number in the sentence: a case or two may be at it.
    assert len(some - every) <= 1
    assert len((every & set(rows().tolist())) - some) <= 1


def test_numbers_are_those_of_the_file() -> None:
    """Counted again without the code under test."""
    _, looked, y, pred, _ = looked_at("normals")
    group, rule = looked[0].after, looked[0].after.rule
    (side,) = rule.sides
    assert side.summary == "the predicted mean"
    inside = (pred.loc > side.low) & (pred.loc <= side.high)
    assert np.array_equal(group.cases, np.flatnonzero(inside))
    level = rule.levels[0]
    assert rule.direction.startswith("targets exceed the predicted")
    happened = y[inside] > pred.loc[inside] + special.ndtri(level)
    assert group.observed == pytest.approx(happened.mean(), rel=1e-12)
    assert group.expected == pytest.approx(1.0 - level, rel=1e-9)
    low, high = stats.binomtest(int(happened.sum()), len(happened)).proportion_ci(method="wilson")
    assert looked[0].interval == pytest.approx((low, high), rel=1e-9)
    assert f"{int(inside.sum()):,} cases" in group.statement


def test_parts_of_the_cases_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    _, whole, *_ = looked_at("draws")
    monkeypatch.setattr(module, "AT_A_TIME", 777)
    _, parts, *_ = looked_at("draws")
    assert [one.after.statement for one in parts] == [one.after.statement for one in whole]
    assert [one.after.pvalue for one in parts] == pytest.approx([one.after.pvalue for one in whole])
    assert all(np.array_equal(a.after.cases, b.after.cases) for a, b in zip(parts, whole, strict=True))


def test_what_only_some_cases_have_does_not_hold() -> None:
    """The searched cases are off, the others are not."""
    rng = np.random.default_rng(0)
    mu = rng.normal(size=N)
    y, some = rng.normal(mu, 1.0), rows()
    y[some] += 0.5 * (mu[some] > 0.0)
    pred = wc.Normal(mu, np.ones(N))
    found = wc.witness(y[some], pred[some], n_resamples=199)
    assert found.statements
    looked = second_look(found, y, pred, some)
    assert [one.holds for one in looked] == [False] * len(looked)
    assert all(one.after.pvalue > one.before.pvalue for one in looked)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("others", [10, 1000, 100_000])
def test_a_combined_pvalue_is_uniform(alpha: float, others: int) -> None:
    places = (np.arange(400) + 0.5) / 400
    found = [combined(float(a), float(b), 1000, others) <= alpha for a in places[::4] for b in places]
    assert np.mean(found) == pytest.approx(alpha, abs=0.004)


def report_of(y: Any, pred: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(PLAN, "SEARCHED", SOME)
    return wc.report(y, pred, n_resamples=99)


def test_a_report_tells_what_all_cases_say(monkeypatch: pytest.MonkeyPatch) -> None:
    y, pred, _ = normals(np.random.default_rng(0))
    told = report_of(y, pred, monkeypatch)
    (worst, *_) = told.best.worst_groups
    assert (worst.searched, told.best.searched) == (SOME, SOME)
    assert worst.n_samples > SOME / 4
    assert worst.share == pytest.approx(worst.n_samples / N)
    assert worst.interval[0] < worst.observed < worst.interval[1]
    assert "(" in worst.statement
    assert f"{worst.n_samples:,} cases" in worst.statement
    tile = where(told.best)
    assert tile.more.endswith(f"Looked for in {SOME:,} cases drawn at random, and seen in all.")
    assert any("groups are told as they are in all of them" in text for text in told.sampled)
    assert told.best.witness.groups[0].statement == worst.statement
    shown = wc.displays.WitnessDisplay.from_result(told.best.witness)
    assert shown.rows[0] == worst.statement
    assert shown.n_samples == N
    assert all(example.row < N for example in worst.examples)


def test_a_report_leaves_out_what_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is off in another way, which the test finds; the group is one of the searched cases alone."""
    rng = np.random.default_rng(0)
    mu = rng.normal(size=N)
    pred = wc.Normal(mu, np.ones(N))
    y = rng.normal(mu, 1.3)
    seen: list[Any] = []
    real = PLAN.second_look

    def spoiled(found: Any, targets: Any, predictions: Any, searched: Any) -> Any:
        seen.extend(found.groups)
        right = np.array(predictions.loc) + rng.normal(size=N)  # all others follow their predictions
        return real(found, right, predictions, searched)

    monkeypatch.setattr(PLAN, "second_look", spoiled)
    told = report_of(y, pred, monkeypatch).best
    assert told.rejected
    assert seen
    assert told.worst_groups == ()
    assert any("that stood out in 1,000 cases, but not in all 6,000" in text for text in told.left_out)
    assert "Looked for in 1,000 cases drawn at random." in where(told).more


def test_segments_and_stored_groups_have_no_rule() -> None:
    y, pred, _ = normals(np.random.default_rng(0))
    some = rows()
    found = wc.witness(y[some], pred[some], segments=np.repeat(["a", "b"], SOME // 2), n_resamples=99)
    assert all(group.rule is None for group in found.segments)
    assert all(group.rule is not None for group in found.groups)
    again = wc.Witness.from_json(found.to_json())
    assert all(group.rule is None for group in again.groups)
    assert second_look(again, y, pred, some) == ()
