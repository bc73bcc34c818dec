"""Quantities of targets that may be off, each with its evidence: from resamples, and from the cases.

Two p-values are made for each quantity, and the larger one counts. One compares it with targets drawn from
the predictions: what is ordinary if the model is calibrated. The other compares it with its own standard
error, by the jackknife over cases: what is ordinary where the model is wrong in other ways, as where spreads
that are too small make a mean look far off. Holm's procedure over all quantities says which are told.

Where cases come in clusters, clusters take the place of cases in standard errors, which are then right as the
number of clusters grows, whatever the dependence within them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.progress import reporter
from wellcal.hypotests.findings.carried import Carried, Ratio
from wellcal.hypotests.findings.finding import LEVEL, Finding, perhaps
from wellcal.hypotests.findings.reasons import ALPHA
from wellcal.hypotests.resampling.smooth_tails import first_pvalues

LOOKED_FOR = "kinds of error"
"""What is looked for, while it is."""

GROUPS = 50
"""Groups of cases, or of clusters, that the jackknife leaves out, one after the other."""

_FEW = 5.0  # cases of a kind for which a standard error is not to be trusted
_DIGITS = 12  # of a share, the others being rounding of a difference

Estimator = Callable[[NDArray], NDArray]
"""From the positions of some cases to the quantities of these ``(K,)``."""


class Found(NamedTuple):
    """A quantity: its estimate, what calibration would make of it, and its standard error.

    `clusters` is the number of clusters that the cases come in, or None where they are independent; `carried`
    that of the cases without which there would be nothing to tell, or None where these are not few.
    """

    estimate: float
    expected: float
    error: float
    reach: float
    cases: int
    pvalue: float
    distance: float
    clusters: int | None = None
    carried: int | None = None

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.estimate - self.reach * self.error

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.estimate + self.reach * self.error

    @property
    def share_ends(self) -> tuple[float, float]:
        """The interval of a share of the cases: Wilson's, which is never empty at 0 or 1."""
        n, z, p = self.independent, self.reach, self.estimate
        middle = (p + 0.5 * z**2 / n) / (1.0 + z**2 / n)
        half = z / (1.0 + z**2 / n) * float(np.sqrt(p * (1.0 - p) / n + 0.25 * (z / n) ** 2))
        return (max(middle - half, 0.0) if p > 0.0 else 0.0), (min(middle + half, 1.0) if p < 1.0 else 1.0)

    @property
    def independent(self) -> float:
        """How many independent cases would give a share this standard error."""
        if self.clusters is None:
            return float(self.cases)
        if not self.error > 0.0:
            return float(self.clusters)
        return min(max(self.estimate * (1.0 - self.estimate) / self.error**2, 1.0), float(self.cases))

    def share(self, predicted: float, cases: float | None = None) -> tuple[float, tuple[float, float]]:
        """A share of so many cases, and its interval, from the difference to what was predicted.

        By the standard error; where only a few cases are of a kind, or are not, that says too little, and
        the interval is Wilson's.
        """
        share, low, high = (
            min(max(predicted + value, 0.0), 1.0) for value in (self.estimate, self.low, self.high)
        )
        share = round(share, _DIGITS)  # all cases are all of them, and not nearly so
        count = self.cases if cases is None else int(cases)
        if count * min(share, 1.0 - share) < _FEW:
            low, high = self._replace(estimate=share, cases=count).share_ends
        return share, (low, high)

    def less(self, value: float) -> Found:
        """The same, from another zero."""
        return self._replace(estimate=self.estimate - value, expected=self.expected - value)


class Claims(ABC):
    """What may be said about the targets of a batch of predictions.

    Attributes
    ----------
    names
        Of the quantities, one for each column of `scores`; those that begin with "_" are needed by
        sentences, and are no claims.
    groups
        Number of the cluster of each case, or None where cases are independent.
    parts
        How names of quantities begin that tell the error which a part of the test looks for; all do, where
        a part is not there.
    trends
        How names of trends begin, by the name of the quantity that is told of all cases where none is.
    """

    names: Sequence[str]
    groups: NDArray | None = None
    parts: ClassVar[Mapping[str, Sequence[str]]] = {}
    trends: ClassVar[Mapping[str, str]] = {}

    @property
    def tested(self) -> list[str]:
        """Names of quantities that may be told."""
        return [name for name in self.names if not name.startswith("_")]

    def about(self, part: str) -> list[str]:
        """Names of quantities that tell the error which a part of the test looks for."""
        starts = self.parts.get(part, ())
        own = [name for name in self.tested if name.split(": ")[-1].startswith(tuple(starts))]
        return own if starts else self.tested

    def with_trends(self, names: Iterable[str]) -> list[str]:
        """Some names, and those of trends without which they would be told of all cases alike.

        A part of the test need not see a trend that is there, as where another error hides it.
        """
        some = list(names)
        starts = [name.rpartition(": ") for name in some]
        kinds = [f"{of}{colon}{self.trends[name]}" for of, colon, name in starts if name in self.trends]
        return [*some, *(name for name in self.tested if kinds and name.startswith(tuple(kinds)))]

    def within(self, groups: NDArray | None) -> Self:
        """The same claims, of cases that come in clusters."""
        self.groups = groups
        return self

    @abstractmethod
    def scores(self, targets: NDArray) -> NDArray:
        """Statistics ``(r, K)`` of sets of targets ``(r, n, ...)``, compared with those of drawn sets."""

    @abstractmethod
    def estimator(self, targets: NDArray) -> Estimator:
        """How the quantities are estimated from some of the cases."""

    def ratios(self, targets: NDArray) -> Mapping[str, Ratio]:
        """Of sets of targets ``(r, n, ...)``: those quantities that a few cases may carry, by name."""
        return {}

    def expected(self, scores: NDArray) -> NDArray:
        """Quantities of calibrated models ``(K,)``, given mean scores of drawn sets."""
        return scores

    @abstractmethod
    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """Findings, given the quantities that are off, and all of them."""


def certain(
    claims: Claims,
    every: Mapping[str, Found],
    targets: NDArray,
    names: Iterable[str],
    told: Iterable[str] | None = None,
    alpha: float = ALPHA,
) -> list[Finding]:
    """Findings about those of some quantities that are off beyond doubt, the clearest first.

    With `told`, only of these, however many were looked at.
    """
    off = significant({name: every[name] for name in names}, alpha)
    kept = set(off if told is None else told)
    found = claims.tell({name: one for name, one in off.items() if name in kept}, every, targets)
    return sorted(found, key=lambda finding: finding.pvalue)


def likely(
    claims: Claims, every: Mapping[str, Found], targets: NDArray, names: Iterable[str]
) -> list[Finding]:
    """The clearest of some quantities, where it is off by itself and no more: its finding says so."""
    some = {name: every[name] for name in names}
    first = min(some, key=lambda name: some[name].pvalue, default=None)
    if first is None or some[first].pvalue > ALPHA:
        return []
    return [perhaps(finding) for finding in claims.tell({first: some[first]}, every, targets)]


def evidence(claims: Claims, targets: NDArray, drawn: Iterable[NDArray]) -> dict[str, Found]:
    """All quantities by name."""
    rows, carried = [claims.scores(targets[None])], Carried(claims.ratios, targets)
    for sets in drawn:
        rows.append(claims.scores(sets))
        carried.add(sets)
    scores = np.concatenate(rows)
    scores = np.nan_to_num(scores, nan=0.0, posinf=1e150, neginf=-1e150)
    mean, spread = scores[1:].mean(axis=0), scores[1:].std(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.nan_to_num(np.abs(scores[0] - mean) / spread, nan=0.0, posinf=np.inf)
    by_resampling = _two_sided(np.ascontiguousarray(scores.T))
    expected = claims.expected(mean)
    groups = claims.groups
    values, errors, freedom = jackknife(claims.estimator(targets), len(targets), groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_cases = 2.0 * special.stdtr(freedom, -np.abs(values - expected) / errors)
    reach = float(special.stdtrit(freedom, 0.5 + 0.5 * LEVEL))
    return {
        name: Found(
            float(values[k]),
            float(expected[k]),
            float(errors[k]),
            reach,
            len(targets),
            max(float(by_resampling[k]), 1.0 if np.isnan(by_cases[k]) else float(by_cases[k])),
            float(distance[k]),
            None if groups is None else int(groups.max()) + 1,
            carried.by(name, float(values[k] - expected[k])),
        )
        for k, name in enumerate(claims.names)
    }


def _two_sided(values: NDArray) -> NDArray:
    """p-values ``(K,)`` of the first of all sets, for quantities ``(K, R + 1)``."""
    first, drawn = values[:, 0], values[:, 1:]
    off = np.abs(first - drawn[:, 0]) > 1e-9 * np.maximum(1.0, np.abs(drawn[:, 0]))
    least = np.minimum(first_pvalues(values), first_pvalues(-values))
    return np.where(np.ptp(drawn, axis=1) == 0.0, np.where(off, 0.0, 1.0), np.minimum(1.0, 2.0 * least))


def jackknife(estimate: Estimator, n: int, groups: NDArray | None = None) -> tuple[NDArray, NDArray, int]:
    """Estimates from all cases, their standard errors, and degrees of freedom of these.

    Cases, or the clusters `groups`, are left out some at a time.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 4.0, 5.0])
    >>> value, error, freedom = jackknife(lambda cases: x[cases].mean(keepdims=True), 4)
    >>> value, error.round(3), round(float(x.std(ddof=1) / 2.0), 3), freedom
    (array([3.]), array([0.913]), 0.913, 3)
    >>> _, error, freedom = jackknife(lambda cases: x[cases].mean(keepdims=True), 4, np.array([0, 0, 1, 1]))
    >>> error.round(3), freedom
    (array([1.5]), 1)
    """
    cases = np.arange(n)
    cluster = cases if groups is None else groups
    count = min(int(cluster.max()) + 1, GROUPS)
    member = cluster % count
    tell = reporter()
    tell(LOOKED_FOR, 0, count)
    rows: list[NDArray] = []
    with np.errstate(all="ignore"):
        for group in range(count):
            rows.append(estimate(cases[member != group]))
            tell(LOOKED_FOR, group + 1, count)
        left_out = np.stack(rows)
        errors = np.sqrt((count - 1.0) / count * np.sum((left_out - left_out.mean(axis=0)) ** 2, axis=0))
        return estimate(cases), errors, count - 1


def significant(found: Mapping[str, Found], alpha: float = ALPHA) -> dict[str, Found]:
    """Those that Holm's procedure rejects, the clearest first.

    Examples
    --------
    >>> some = {
    ...     name: Found(1.0, 0.0, 0.1, 2.0, 9, p, 3.0) for name, p in [("a", 0.03), ("b", 0.01), ("c", 0.5)]
    ... }
    >>> list(significant(some)), list(significant(some, alpha=0.07))
    (['b'], ['b', 'a'])
    """
    ordered = sorted(found, key=lambda name: (found[name].pvalue, -found[name].distance))
    kept: dict[str, Found] = {}
    for place, name in enumerate(ordered):
        if found[name].pvalue > alpha / (len(ordered) - place):
            break
        kept[name] = found[name]
    return kept
