"""Cases are not cut by their outcome: groups of it differ from any prediction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fuzz.mutations import Closed

import wellcal as wc
from wellcal.predictions.target_leakage import is_same
from wellcal.reading import as_cases
from wellcal.reporting.segmenting import segments_alone

N = 60
RNG = np.random.default_rng(0)
MU = RNG.normal(size=N)
Y = RNG.normal(MU)
NORMAL = wc.Normal(MU, np.ones(N))
PROBS = np.full((N, 3), 1.0 / 3.0)
LABELS = np.array(["a", "b", "c"])[RNG.integers(0, 3, N)]
CLASSES = wc.Categorical(PROBS, classes=["a", "b", "c"])

LOOKS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "witness": lambda y, pred, segments: wc.witness(y, pred, segments=segments, n_resamples=39, rng=0),
    "report": lambda y, pred, segments: wc.report(y, pred, segments=segments, n_resamples=39, rng=0),
    "segments alone": lambda y, pred, segments: segments_alone(y, pred, segments, n_resamples=39),
}


@pytest.mark.parametrize("look", LOOKS)
def test_the_target_is_no_segment(look: str) -> None:
    reason = r"is the target itself, and cases that are cut by their outcome .*: cut by what was known before"
    with pytest.raises(ValueError, match=rf"segments\['price'\] {reason}"):
        LOOKS[look](Y, NORMAL, {"price": Y.copy()})
    with pytest.raises(ValueError, match=f"^segments {reason}"):
        LOOKS[look](LABELS, CLASSES, pd.Series(LABELS, dtype="category"))
    order = RNG.permutation(N)
    shuffled = pd.Series(Y).iloc[order]
    with pytest.raises(ValueError, match=reason):
        LOOKS[look](pd.Series(Y), NORMAL, pd.DataFrame({"of all": shuffled}))


def test_other_columns_are() -> None:
    assert wc.witness(Y, NORMAL, segments={"mu": MU, "-y": -Y}, n_resamples=39, rng=0).segments
    first = np.where(np.arange(N) == N - 1, Y + 1.0, Y)  # all but one
    assert not is_same(first, Y)
    assert is_same(list(LABELS), pd.Series(LABELS))
    assert is_same(Y, np.column_stack([MU, Y]))  # one coordinate of vectors
    assert not is_same(np.ones(4), np.ones(4))  # cuts nothing
    assert not is_same(None, Y)
    assert not is_same(Closed(), Y)


def test_clusters_are_not_outcomes() -> None:
    pred, y = wc.Bernoulli(np.full(N, 0.5)), RNG.integers(0, 2, N)
    with pytest.raises(ValueError, match="groups is the target itself, and clusters are cases that depend"):
        wc.calibration_test(y, pred, groups=y, rng=0, n_resamples=39)
    found = wc.calibration_test(Y, NORMAL, groups=Y, rng=0, n_resamples=39)  # every case stands alone
    assert "clusters" not in found.provenance


def test_columns_of_a_file() -> None:
    frame = pd.DataFrame({"y": Y, "mu": MU, "sigma": np.ones(N)})
    for word, why in {"--segments": "are cut by their outcome", "groups": "clusters are cases"}.items():
        with pytest.raises(ValueError, match=f"column 'y' is both the target and {word}: .*{why}"):
            as_cases(frame, "y", normal=("mu", "sigma"), others={"y": word})
    assert np.array_equal(as_cases(frame, "y", normal=("mu", "sigma"), others=["y"]).others["y"], Y)
