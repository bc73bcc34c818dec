"""Columns are guessed by their names, and by the values that they and the targets have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import wellcal as wc

PROBS = {"p_a": [0.5, 0.4], "p_b": [0.5, 0.6]}
NORMAL = {"mean": [0.0, 1.0], "std": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("columns", "roles"),
    [
        ({"y": ["a", "b"], "rate": [1.0, 2.0], **PROBS, **NORMAL}, {"probs": "p_*"}),
        ({"y": ["a", None], "rate": [1.0, 2.0], **PROBS}, {"probs": "p_*"}),
        ({"y": ["a", "b"], "rate": [1.0, 2.0], **NORMAL}, None),
        ({"y": [1, 0], "rate": [1.0, 2.0], "prob": [0.5, 0.6]}, None),
        ({"y": [1, 0], "probs": [[0.5, 0.5], [0.4, 0.6]]}, {"probs": "probs"}),
        ({"y": [1, 0], "probs": [0.5, 0.4]}, {"bernoulli": "probs"}),
        ({"y": [1.0, 0.0], "id": [8, 9], "0": [0.3, 0.4], "1": [0.7, 0.6]}, {"probs": ["0", "1"]}),
        ({"y": ["cat", "dog"], "cat": [0.3, 0.4], "dog": [0.7, 0.6]}, {"probs": ["cat", "dog"]}),
        ({"y": ["cat", "eel"], "cat": [0.3, 0.4], "dog": [0.7, 0.6]}, None),
        ({"y": [1, 0], "0": [0.3, 0.4], "1": [0.7, 0.8]}, None),
    ],
)
def test_values_decide_between_readings(columns: dict[str, Any], roles: dict[str, Any] | None) -> None:
    """One that is left is taken; where two are, or none, nothing is."""
    frame = pd.DataFrame(columns)
    if roles is None:
        with pytest.raises(ValueError, match="; say "):
            wc.guess_roles(frame)
    else:
        assert wc.guess_roles(frame).roles == roles


def test_probabilities_of_a_classifier_are_read_as_they_are() -> None:
    """Columns are numbers, as those of an array are, and the target is beside them."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), size=20)
    y = rng.integers(3, size=20)
    frame = pd.DataFrame(probs).assign(y=y)
    guess = wc.guess_roles(frame)
    pred = wc.as_predictions(frame, **guess.roles)
    assert wc.nll(y, pred).value == wc.nll(y, wc.Categorical(probs)).value
