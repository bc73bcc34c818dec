"""What reports say of recalibration."""

from __future__ import annotations

from typing import Any

import numpy as np

import wellcal as wc


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
    assert wc.scaling.cross_fit(y, pred, **options).before.pvalue == alone
    reported = wc.report(y, pred, recalibrate=True, **options).best
    assert reported.test.pvalue == alone
    assert reported.mended is not None
    assert reported.mended.pvalue_before == alone
