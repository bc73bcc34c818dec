"""Outcomes that predictions called impossible, and that happened.

Where the probability of what happened is zero there is no best temperature and no slope of log odds: whatever
is told of them would be the number that zeros are replaced with. The cases are counted instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.special import LEAST_PROBABILITY
from wellcal.expectations.decompose import targets_are_indices
from wellcal.hypotests.findings.binary import GROUP, GROUPED, SLOPE, BinaryClaims
from wellcal.hypotests.findings.claims import Claims, Found, significant
from wellcal.hypotests.findings.class_slopes import CLASS_SLOPE
from wellcal.hypotests.findings.classes import CONFIDENCE, TEMPERATURE, ClassClaims
from wellcal.hypotests.findings.finding import LEVEL, Finding
from wellcal.measures.wording import impossible_phrase
from wellcal.predictions import Predictions

IMPOSSIBLE = "impossible"
_NONE = np.empty(0)  # targets that sentences about shares do not ask for

OF_LOG_ODDS = (TEMPERATURE, SLOPE, CLASS_SLOPE)
"""Kinds of findings whose size is that of logarithms of probabilities."""


def impossible_finding(targets: NDArray, predictions: Predictions) -> Finding | None:
    """How many cases had no probability to speak of for the class that was observed; None where all had some.

    Examples
    --------
    >>> import wellcal as wc
    >>> print(impossible_finding(np.array([0, 2]), wc.Categorical([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])))
    1 case had probability 0 for what happened: no temperature mends that
    >>> impossible_finding(np.array([0, 1]), wc.Bernoulli([0.0, 1.0])) is None
    True
    """
    lost = lost_cases(targets, predictions)
    short = told_impossible(lost)
    if short is None:
        return None
    pvalue = min(1.0, len(targets) * LEAST_PROBABILITY) if lost[1] else 0.0
    sentence = f"{short}: no temperature mends that"
    return Finding(sentence, IMPOSSIBLE, short, int(lost[0]) / len(targets), None, LEVEL, pvalue)


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
    if not targets_are_indices(predictions):
        return np.empty(0)
    batch: Any = predictions
    probabilities = np.asarray(to_numpy(batch.class_probs()), dtype=np.float64)
    return probabilities[np.arange(len(targets)), targets]


def told_impossible(lost: NDArray) -> str | None:
    """What :func:`lost_cases` counted, in words; None where there are none."""
    count, some = map(int, lost)
    return impossible_phrase(count, LEAST_PROBABILITY if some else 0.0) if count else None


def without_log_odds(found: Iterable[Finding], claims: Claims, every: Mapping[str, Found]) -> list[Finding]:
    """Findings without those about log odds; in their place what they would be about in plain shares."""
    found = list(found)
    kept = [finding for finding in found if finding.kind not in OF_LOG_ODDS]
    if len(kept) == len(found):
        return kept
    told = {finding.kind for finding in kept}
    instead: list[Finding] = []
    if isinstance(claims, ClassClaims) and CONFIDENCE not in told:
        instead = claims.tell(significant({CONFIDENCE: every[CONFIDENCE]}), every, _NONE)
    elif isinstance(claims, BinaryClaims) and GROUPED not in told:
        groups = {name: every[name] for name in claims.names if name.startswith(GROUP)}
        instead = claims.tell(significant(groups), every, _NONE)
    return sorted([*kept, *instead], key=lambda finding: finding.pvalue)
