"""Findings about classes: how often each occurs, and how extreme probabilities are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, cast

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.special import LEAST_PROBABILITY
from wellcal.hypotests.findings.binary import occurs
from wellcal.hypotests.findings.claims import Claims, Estimator, Found
from wellcal.hypotests.findings.finding import LEVEL, Finding, perhaps
from wellcal.hypotests.parts.classes import counted
from wellcal.measures.sharpness import best_sharpness
from wellcal.measures.wording import error_told, shares_apart

CLASS, TEMPERATURE, CONFIDENCE = "class ", "temperature", "confidence"

GRADE = "grade "
"""How names of classes begin that have an order."""


def without_kind(label: str) -> str:
    """The name of a class or grade alone.

    Examples
    --------
    >>> without_kind("class 'cat'"), without_kind("grade 3")
    ("'cat'", '3')
    """
    return label.removeprefix(CLASS).removeprefix(GRADE)


_MOST_CLASSES = 5  # that are told
_LEAST_CASES = 20  # that say anything about a temperature
_CLEAR = 2.6  # standard errors: an error rate of .01, as of all that is told beside other findings

_STEPS, _LONGEST = 8, 2.0  # of Newton's method, and what is added to log odds in one of them
_SINGULAR = 1e-9  # of singular values: what is added to all classes changes nothing


class ClassClaims(Claims):
    """Frequencies of classes, temperature, and how often the most probable class is right."""

    parts: ClassVar[Mapping[str, Sequence[str]]] = {
        "surprise": (TEMPERATURE, CONFIDENCE),
        "one class": (CLASS,),
        "classes": (CLASS,),
        "slopes": (TEMPERATURE, CONFIDENCE),
    }

    def __init__(self, probabilities: NDArray, labels: Sequence[str], clipped: NDArray | None = None) -> None:
        """`probabilities` of classes ``(n, C)``, `clipped` for their logarithms, and names of classes."""
        self.probabilities, self.labels = probabilities, labels
        self.clipped = probabilities if clipped is None else clipped
        self.logs = np.log(np.maximum(self.clipped, LEAST_PROBABILITY))
        self.top = probabilities.argmax(axis=1)
        self.confidence = probabilities.max(axis=1)
        self.predicted = probabilities.mean(axis=0)
        self.names = [*(f"{CLASS}{k}" for k in range(len(labels))), TEMPERATURE, CONFIDENCE]

    def scores(self, targets: NDArray) -> NDArray:
        """Frequencies, mean log probability, and hits."""
        shares = counted(targets, len(self.labels)) / targets.shape[1]
        logs = self.logs[np.arange(targets.shape[1]), targets].mean(axis=1, keepdims=True)
        hits = (targets == self.top).mean(axis=1, keepdims=True)
        right = float(self.confidence.mean())
        return np.concatenate([shares - self.predicted, logs, hits - right], axis=1)

    def estimator(self, targets: NDArray) -> Estimator:
        """Differences of frequencies from predicted ones, and the logarithm of the temperature."""
        power, slope, bend = best_sharpness(self.logs, targets)
        hits = (targets == self.top) - self.confidence
        count = len(self.labels)

        def estimate(cases: NDArray) -> NDArray:
            shares = np.bincount(targets[cases], minlength=count) / len(cases)
            # One step of Newton's method from where all cases are.
            moved = power + slope[cases].sum() / max(float(bend[cases].sum()), 1e-300)
            temperature = -np.log(moved) if moved > 0.0 else np.nan
            classes = shares - self.probabilities[cases].mean(axis=0)
            return np.array([*classes, temperature, hits[cases].mean()])

        return estimate

    def expected(self, scores: NDArray) -> NDArray:
        """No difference, and temperature 1."""
        return np.zeros(len(self.names))

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """Temperature and classes; without one, how often the most probable class is right.

        Where a class occurs more or less often than predicted, its probabilities look too extreme, or not
        extreme enough: that is told where it is more than this.
        """
        out: list[Finding] = []
        classes = [int(name[len(CLASS) :]) for name in told if name.startswith(CLASS)]
        follows = bool(classes) and frequencies_explain(self.logs, targets, classes, self.groups)
        if TEMPERATURE in told and not follows:
            out.append(_temperature(told[TEMPERATURE]))
        elif CONFIDENCE in told and not follows:
            out.append(self._likeliest(told[CONFIDENCE]))
        for k in classes[:_MOST_CLASSES]:
            found = occurs(self.labels[k], "class", told[f"{CLASS}{k}"], float(self.predicted[k]))
            out.append(replace(found, classes=(k,)))
        return out

    def _likeliest(self, found: Found) -> Finding:
        said = float(self.confidence.mean())
        share, (low, high) = found.share(said)
        told = shares_apart(share, (low, high), said)
        start = f"the most probable class is right {told.size} of the time"
        sentence = f"{start} ({told.ends}), predicted {told.right}"
        short = f"{start}, predicted {told.right}"
        finding = Finding(sentence, CONFIDENCE, short, share, (low, high), LEVEL, found.pvalue, said)
        return perhaps(finding, said)


def tempered(probabilities: NDArray, targets: NDArray) -> NDArray:
    """Probabilities with the temperature put right."""
    logs = np.log(np.maximum(probabilities, LEAST_PROBABILITY))
    return special.softmax(best_sharpness(logs, targets).power * logs, axis=1)


def temperature_is_right(probabilities: NDArray, targets: NDArray, without: Sequence[int]) -> bool:
    """Whether nothing is wrong with the temperature of all classes but some, given that none of these occurs.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = special.softmax(rng.normal(size=(300, 4)), axis=1)
    >>> y = (p.cumsum(axis=1) < rng.uniform(size=(300, 1))).sum(axis=1)
    >>> (
    ...     temperature_is_right(p, y, [0]),
    ...     temperature_is_right(special.softmax(3.0 * np.log(p), axis=1), y, [0]),
    ... )
    (True, False)
    """
    others = [k for k in range(probabilities.shape[1]) if k not in set(without)]
    some = np.isin(targets, others)
    if len(others) < 2 or some.sum() < _LEAST_CASES:
        return True
    logs = np.log(np.maximum(probabilities[some][:, others], LEAST_PROBABILITY))
    p = special.softmax(logs, axis=1)
    slope = logs[np.arange(len(logs)), np.searchsorted(others, targets[some])] - np.sum(p * logs, axis=1)
    error = max(float(np.sqrt(np.sum(slope**2))), 1e-300)
    return abs(float(slope.sum())) <= _CLEAR * error


def frequencies_explain(
    logs: NDArray, targets: NDArray, classes: Sequence[int], groups: NDArray | None = None
) -> bool:
    """Whether the temperature is right once some classes occur as often as they do, by a test of its score.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> logs = rng.normal(size=(900, 3))
    >>> upto = special.softmax(logs + [1.0, 0.0, 0.0], axis=1).cumsum(axis=1)
    >>> y = (upto < rng.uniform(size=(900, 1))).sum(axis=1)
    >>> frequencies_explain(logs, y, [0]), frequencies_explain(2.0 * logs, y, [0])
    (True, False)
    """
    happened: NDArray = targets[:, None] == np.asarray(classes)
    p, added = np.exp(logs), np.zeros(logs.shape[1])
    off = happened - p[:, classes]
    for _ in range(_STEPS):
        p = cast("NDArray", special.softmax(logs + added, axis=1))
        own: NDArray = p[:, classes]
        off = happened - own
        information: NDArray = np.diag(own.sum(axis=0)) - own.T @ own
        step = cast("NDArray", np.linalg.lstsq(information, off.sum(axis=0), rcond=_SINGULAR)[0])
        added[classes] += np.clip(step, -_LONGEST, _LONGEST)
    slope: NDArray = logs[np.arange(len(logs)), targets] - np.sum(p * logs, axis=1)
    left: NDArray = slope - off @ np.linalg.lstsq(off, slope, rcond=_SINGULAR)[0]
    added_up = left if groups is None else np.bincount(groups, left)
    return abs(float(added_up.sum())) <= _CLEAR * max(float(np.sqrt(np.sum(added_up**2))), 1e-300)


def _temperature(found: Found) -> Finding:
    size, low, high = (float(np.exp(value)) for value in (found.estimate, found.low, found.high))
    short = f"probabilities are {'too extreme' if size > 1.0 else 'not extreme enough'}"
    ratio = 1.0 / size, 1.0 / high, 1.0 / low
    told = error_told(TEMPERATURE, ratio[0], ratio[1:])
    sentence = f"{short}: {told.size} ({told.ends})"
    return Finding(sentence, TEMPERATURE, short, size, (low, high), LEVEL, found.pvalue, ratio=ratio)
