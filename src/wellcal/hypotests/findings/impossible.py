"""Outcomes that predictions called impossible, and that happened.

Where the probability of what happened is zero, slope and temperature depend on the number that replaces it.
It is 1 / (4 n), which changes what n cases are expected to do by a quarter of a case, and a finding says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.special import LEAST_PROBABILITY
from wellcal.hypotests.findings.finding import LEVEL, Finding
from wellcal.measures.wording import impossible_phrase
from wellcal.predictions import Predictions

IMPOSSIBLE = "impossible"


def impossible_finding(targets: NDArray, predictions: Predictions) -> Finding | None:
    """Count the cases whose observed class had no probability to speak of; None if there are none.

    Examples
    --------
    >>> import wellcal as wc
    >>> print(impossible_finding(np.array([0, 2]), wc.Categorical([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])))
    1 case had probability 0 for what happened (taken as 1 / (4 n) = 0.12 for slopes and temperatures)
    >>> impossible_finding(np.array([0, 1]), wc.Bernoulli([0.0, 1.0])) is None
    True
    """
    lost = lost_cases(targets, predictions)
    short = told_impossible(lost)
    if short is None:
        return None
    pvalue = min(1.0, len(targets) * LEAST_PROBABILITY) if lost[1] else 0.0
    sentence = f"{short} (taken as 1 / (4 n) = {0.25 / len(targets):.2g} for slopes and temperatures)"
    return Finding(sentence, IMPOSSIBLE, short, int(lost[0]) / len(targets), None, LEVEL, pvalue)


def clipped(probabilities: NDArray, targets: NDArray, predictions: Predictions) -> NDArray:
    """Return `probabilities` of classes, at least 1 / (4 n) each if an impossible class was observed.

    Examples
    --------
    >>> import wellcal as wc
    >>> p = np.array([[1.0, 0.0], [0.3, 0.7]])
    >>> clipped(p, np.array([1, 0]), wc.Categorical(p)).round(3)
    array([[0.889, 0.111],
           [0.3  , 0.7  ]])
    """
    if not lost_cases(targets, predictions)[0]:
        return probabilities
    some = np.maximum(probabilities, 0.25 / len(targets))
    return some / some.sum(axis=1, keepdims=True)


def lost_cases(targets: NDArray, predictions: Predictions) -> NDArray:
    """How many cases had no probability to speak of for what was observed, and how many of these had some.

    Counts of parts of the cases add up.
    """
    lost = _given(targets, predictions)
    lost = lost[lost < LEAST_PROBABILITY]
    return np.array([len(lost), np.count_nonzero(lost)])


def impossible_rows(targets: NDArray, predictions: Predictions) -> NDArray:
    """Which cases these are, the least probable first.

    Examples
    --------
    >>> import wellcal as wc
    >>> impossible_rows(np.array([0, 2]), wc.Categorical([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    array([1])
    """
    given = _given(targets, predictions)
    lost = np.flatnonzero(given < LEAST_PROBABILITY)
    return lost[np.argsort(given[lost], kind="stable")]


def _given(targets: NDArray, predictions: Predictions) -> NDArray:
    """Predicted probabilities of what was observed, ``(n,)``; none where classes are not predicted."""
    if predictions.kind != "classes":
        return np.empty(0)
    batch: Any = predictions
    probabilities = np.asarray(to_numpy(batch.class_probs()), dtype=np.float64)
    return probabilities[np.arange(len(targets)), targets]


def told_impossible(lost: NDArray) -> str | None:
    """What :func:`lost_cases` counted, in words; None where there are none."""
    count, some = map(int, lost)
    return impossible_phrase(count, LEAST_PROBABILITY if some else 0.0) if count else None
