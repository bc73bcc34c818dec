"""A closer look at single classes: probabilities of one of them that are too extreme, or not enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.special import LEAST_PROBABILITY, bounded_log_odds
from wellcal.hypotests.findings.binary import how_extreme
from wellcal.hypotests.findings.claims import Claims, Estimator, Found
from wellcal.hypotests.findings.finding import LEVEL, Finding
from wellcal.measures.log_odds import fitted_line
from wellcal.measures.wording import number_told

CLASS_SLOPE = "class slope"

_MOST_CLASSES = 50  # that are looked at
_MOST_TOLD = 3


class ClassSlopes(Claims):
    """Slopes of logistic regressions of each class on its own predicted log odds."""

    def __init__(self, probabilities: NDArray, labels: Sequence[str]) -> None:
        """`probabilities` of classes ``(n, C)``, and what these are called."""
        p = np.clip(probabilities, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
        mass = p.sum(axis=0)
        self.classes = np.sort(np.argsort(-mass, kind="stable")[:_MOST_CLASSES])
        self.labels, self.probabilities = labels, p[:, self.classes]
        self.logits = bounded_log_odds(self.probabilities)
        weights = self.probabilities * (1.0 - self.probabilities)
        self.columns = self.logits - (weights * self.logits).sum(axis=0) / weights.sum(axis=0)
        self.names = [str(k) for k in self.classes]

    def scores(self, targets: NDArray) -> NDArray:
        """Residuals times log odds, which see the same as the estimates."""
        found = [
            np.sum(((sets[:, None] == self.classes) - self.probabilities) * self.columns, axis=0)
            for sets in targets
        ]
        return np.stack(found) / targets.shape[1]

    def estimator(self, targets: NDArray) -> Estimator:
        """One step of Newton's method from the line that fits all cases."""
        y = (targets[:, None] == self.classes).astype(np.float64)
        lines = np.stack([fitted_line(y[:, k], self.logits[:, k]) for k in range(len(self.classes))])
        fitted = special.expit(lines[:, 0] + lines[:, 1] * self.logits)
        residuals, weights = y - fitted, fitted * (1.0 - fitted)
        first, second = residuals * self.logits, weights * self.logits
        third = second * self.logits

        def estimate(cases: NDArray) -> NDArray:
            a, b, c = (x[cases].sum(axis=0) for x in (weights, second, third))
            r, s = (x[cases].sum(axis=0) for x in (residuals, first))
            return lines[:, 1] + (a * s - b * r) / np.maximum(a * c - b**2, 1e-300)

        return estimate

    def expected(self, scores: NDArray) -> NDArray:
        """Slope 1."""
        return np.ones(len(self.names))

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """The clearest classes."""
        return [class_slope(self.labels, int(name), told[name]) for name in list(told)[:_MOST_TOLD]]


def class_slope(labels: Sequence[str], k: int, found: Found) -> Finding:
    """Probabilities of a class that are too extreme, or not enough."""
    size, ends = found.estimate, (found.low, found.high)
    short = f"probabilities of {labels[k]} {how_extreme(found)}"
    told = number_told(size, ends)
    sentence = f"{short}: slope {told.size} ({told.ends})"
    return Finding(sentence, CLASS_SLOPE, short, size, ends, LEVEL, found.pvalue, classes=(k,))
