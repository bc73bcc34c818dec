"""What reports say of recalibration."""

from __future__ import annotations

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
