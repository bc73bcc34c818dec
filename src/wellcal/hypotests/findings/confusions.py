"""A closer look at classes: which of them occurs in the place of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.special import LEAST_PROBABILITY
from wellcal.hypotests.findings.claims import Claims, Estimator, Found
from wellcal.hypotests.findings.classes import GRADE, without_kind
from wellcal.hypotests.findings.finding import LEVEL, Finding, perhaps
from wellcal.hypotests.findings.reasons import ALPHA
from wellcal.measures.wording import shares_apart

SWAPPED, CONFUSED = "swapped", "confused"

_MOST_CLASSES = 12  # that are looked at: those that are the likeliest most often
_LEAST_CASES = 10  # of which a class is the likeliest
_MOST_TOLD = 2


class Confusions(Claims):
    """How often each class occurs where another is the likeliest, less how often that was predicted."""

    def __init__(self, probabilities: NDArray, labels: Sequence[str]) -> None:
        """`probabilities` of classes ``(n, C)``, and what these are called."""
        self.labels, self.probabilities = labels, probabilities
        self.top = probabilities.argmax(axis=1)
        often = np.bincount(self.top, minlength=len(labels))
        first = np.argsort(-often, kind="stable")[:_MOST_CLASSES]
        self.classes = np.sort(first[often[first] >= _LEAST_CASES])
        self.member = (self.top[:, None] == self.classes).astype(np.float64)  # (n, A)
        self.cells = [
            (a, b) for a in range(len(self.classes)) for b in range(len(labels)) if b != self.classes[a]
        ]
        if len(labels) > _MOST_CLASSES:
            kept = {int(k) for k in self.classes}
            self.cells = [(a, b) for a, b in self.cells if b in kept]
        self.names = [f"{self.classes[a]} {b}" for a, b in self.cells]
        self._rows, self._columns = (
            np.array([cell[end] for cell in self.cells], dtype=int) for end in (0, 1)
        )
        self.predicted = self._pick(self.member.T @ probabilities) / np.maximum(
            self.member.sum(axis=0)[self._rows], 1.0
        )

    def _pick(self, table: NDArray) -> NDArray:
        return table[self._rows, self._columns]

    def scores(self, targets: NDArray) -> NDArray:
        """Sums of residuals where a class is the likeliest."""
        out = np.empty((len(targets), len(self.cells)))
        for place, sets in enumerate(targets):
            out[place] = self._pick(self._table(sets, slice(None)))
        return out / targets.shape[1]

    def _table(self, targets: NDArray, cases: NDArray | slice) -> NDArray:
        found = (targets[:, None] == np.arange(len(self.labels))) - self.probabilities[cases]
        return self.member[cases].T @ found

    def estimator(self, targets: NDArray) -> Estimator:
        """Means of residuals where a class is the likeliest."""

        def estimate(cases: NDArray) -> NDArray:
            often = self.member[cases].sum(axis=0)[self._rows]
            return self._pick(self._table(targets[cases], cases)) / np.where(often > 0.0, often, np.nan)

        return estimate

    def expected(self, scores: NDArray) -> NDArray:
        """No difference."""
        return np.zeros(len(self.names))

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """Pairs that are taken for each other; where there are none, classes in the place of others."""
        pairs = self.swaps(told)
        if pairs:
            return [self.swapped(a, b, told) for a, b in pairs]
        return [self._confused(name, told[name]) for name in list(told)[:_MOST_TOLD]]

    def swaps(self, told: Mapping[str, Found]) -> list[tuple[int, int]]:
        """Pairs of which each class occurs more often than predicted where the other is the likeliest."""
        more = {name for name, found in told.items() if found.estimate > 0.0}
        pairs = [(int(a), int(b)) for a, b in (name.split() for name in told if name in more)]
        return [(a, b) for a, b in pairs if a < b and f"{b} {a}" in more]

    def likelier_swaps(self, every: Mapping[str, Found], targets: NDArray) -> list[tuple[int, int]]:
        """Pairs whose two sides are off by themselves, and with which swapped targets are surely likelier.

        Of many classes each is the likeliest for a few cases only, and one side of a pair says little.
        """
        off = {name: found for name, found in every.items() if found.pvalue <= ALPHA}
        least = -float(special.ndtri(ALPHA / max(len(self.cells) / 2.0, 1.0)))
        return [pair for pair in self.swaps(off) if self._gained(*pair, targets) > least]

    def _gained(self, a: int, b: int, targets: NDArray) -> float:
        """By how much targets are likelier with two classes swapped, in standard errors."""
        both = np.log(np.maximum(self.probabilities[:, [a, b]], LEAST_PROBABILITY))
        gain = (both[:, 1] - both[:, 0]) * ((targets == a) * 1.0 - (targets == b))
        added = gain if self.groups is None else np.bincount(self.groups, gain)
        return float(added.sum()) / max(float(np.sqrt(np.sum(added**2))), 1e-300)

    def _where(self, name: str, found: Found) -> tuple[str, str, float, tuple[float, float]]:
        """In words, with an interval and without; share, and its interval."""
        a, b = map(int, name.split())
        said = float(self.predicted[self.names.index(name)])
        often = self.member.sum(axis=0)[self._rows[self.names.index(name)]]
        share, (low, high) = found.share(said, often)
        first, second = (without_kind(self.labels[k]) for k in (a, b))
        told = shares_apart(share, (low, high), said)
        start = f"where {first} is the most probable class, {second} occurs {told.size} of the time"
        end = f", predicted {told.right}"
        return f"{start} ({told.ends}){end}", f"{start}{end}", share, (low, high)

    def swapped(self, a: int, b: int, every: Mapping[str, Found]) -> Finding:
        """Two classes that are taken for each other."""
        name, other = f"{a} {b}", f"{b} {a}"
        both = " and ".join(without_kind(self.labels[k]) for k in (a, b))
        kind = "grades" if self.labels[a].startswith(GRADE) else "classes"
        short = f"{kind} {both} are taken for each other"
        sentence, _, share, ends = self._where(name, every[name])
        again, *_ = self._where(other, every[other])
        pvalue = max(every[name].pvalue, every[other].pvalue)
        texts = f"{short}: {sentence}; {again}", SWAPPED, short
        return Finding(*texts, share, ends, LEVEL, pvalue, classes=(a, b))

    def _confused(self, name: str, found: Found) -> Finding:
        sentence, short, share, ends = self._where(name, found)
        said = float(self.predicted[self.names.index(name)])
        a, b = map(int, name.split())
        texts = sentence, CONFUSED, short
        return perhaps(Finding(*texts, share, ends, LEVEL, found.pvalue, classes=(b, a)), said)
