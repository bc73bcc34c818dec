"""What reports say of recalibration."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.comparison.differences import paired
from wellcal.comparison.models import scores_of_cases
from wellcal.reporting.first_screen import tiles

PLAN: Any = importlib.import_module("wellcal.reporting._report")


def test_outcomes_that_were_called_impossible_do_not_end_a_report() -> None:
    """Forests give classes no probability at all, and they happen: no likelihood can choose a temperature."""
    rng = np.random.default_rng(3)
    probs = rng.dirichlet(np.full(3, 0.5), 60)
    y = np.array([rng.choice(3, p=row) for row in probs])
    probs[0] = np.eye(3)[(y[0] + 1) % 3]
    found = wc.report(y, probs, recalibrate=True, rng=0, n_resamples=99).best.mended
    assert found is not None
    assert "Brier score" in str(found)


def test_a_model_has_one_p_value_whoever_asks() -> None:
    rng = np.random.default_rng(5)
    mu = rng.normal(size=40)
    y, pred = rng.normal(mu, 1.3), wc.Normal(mu, np.ones(40))
    options: Any = {"rng": 7, "n_resamples": 99}
    alone = wc.calibration_test(y, pred, **options).pvalue
    assert wc.recalibration.cross_fit(y, pred, **options).before.pvalue == alone
    reported = wc.report(y, pred, recalibrate=True, **options).best
    assert reported.test.pvalue == alone
    assert reported.mended is not None
    assert reported.mended.pvalue_before == alone


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many cases are those from 60 on: what takes longer looks at 40."""
    monkeypatch.setattr(PLAN, "SEARCHED", 40)


@pytest.mark.usefixtures("few")
def test_scores_of_many_cases_are_those_of_all_before_and_after() -> None:
    """A test of a part that finds nothing is no reason to doubt what all cases show."""
    rng = np.random.default_rng(1)
    mu = rng.normal(size=300)
    y, pred = rng.normal(mu, 1.0), wc.Normal(mu, np.full(300, 0.8))
    report = wc.report(y, pred, recalibrate=True, rng=0, n_resamples=99)
    found = report.best.mended
    assert found is not None
    assert report.best.rejected
    assert min(found.pvalue_before, found.pvalue_after) > 0.05  # of 40 cases
    assert (found.scored, found.tested) == (300, 40)
    both = (scores_of_cases(y, batch)["NLL"] for batch in (pred, found.cross_fitted.predictions))
    assert found.differences[0] == paired("NLL", *both)
    assert found.interval.low > 0.0
    assert "before or then" not in found.verdict
    assert "in the 40 cases tested, which do not show the error before, none is found then" in found.verdict
    assert tiles(report.best, ())[2].main.startswith("NLL 0.0")
    assert any(text.startswith("The search for groups and tests after") for text in report.sampled)


@pytest.mark.usefixtures("few")
def test_where_no_likelihood_chooses_the_part_is_told() -> None:
    rng = np.random.default_rng(3)
    probs = rng.dirichlet(np.full(3, 0.5), 80)
    y = np.array([rng.choice(3, p=row) for row in probs])
    probs[::20] = np.eye(3)[(y[::20] + 1) % 3]
    report = wc.report(y, probs, recalibrate=True, rng=0, n_resamples=99)
    found = report.best.mended
    assert found is not None
    assert (found.scored, found.tested) == (40, 40)
    assert "fitted on other cases, in 40 of the cases, " in found.verdict
    assert any("recalibration looked at 40 of 80 cases" in text for text in report.sampled)
