"""Findings about two classes: how often, how extreme, and at which probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.special import bounded_log_odds
from wellcal.hypotests.findings.claims import Claims, Estimator, Found
from wellcal.hypotests.findings.finding import LEVEL, Finding, perhaps
from wellcal.hypotests.tails import normal_tail
from wellcal.measures.log_odds import fitted_line
from wellcal.measures.ranks import middle_ranks
from wellcal.measures.round_numbers import SURE
from wellcal.measures.wording import number_told, percent, shares_apart

FREQUENCY, SLOPE, GROUP = "frequency", "slope", "group "
GROUPED = "group"
"""Kind of a finding about a group."""

_GROUPS = 5
_MOST_GROUPS = 2  # that are told


class BinaryClaims(Claims):
    """Frequency of an outcome, slope of its log odds on the predicted ones, and groups of probabilities."""

    parts: ClassVar[Mapping[str, Sequence[str]]] = {
        "centre": (FREQUENCY,),
        "slope": (SLOPE,),
        "curve": (GROUP,),
        "groups": (GROUP,),
        "surprise": (FREQUENCY, SLOPE),
    }

    def __init__(
        self, probability: NDArray, outcome: str, clipped: NDArray | None = None, count: int = _GROUPS
    ) -> None:
        """`probability` of an outcome ``(n,)``, `clipped` for log odds; its name; number of groups."""
        self.probability, self.outcome, self.clipped = probability, outcome, clipped
        self.logit = bounded_log_odds(probability if clipped is None else clipped)
        weights = probability * (1.0 - probability)
        total = max(float(weights.sum()), 1e-300)
        ranks = middle_ranks(probability)
        member = np.minimum((ranks * count).astype(int), count - 1)
        self.members = [member == group for group in range(count) if np.any(member == group)]
        columns = [np.ones_like(self.logit), self.logit - float(weights @ self.logit) / total]
        self.columns = np.stack([*columns, *self.members], axis=1) / len(probability)
        self.names = [FREQUENCY, SLOPE, *(f"{GROUP}{k}" for k in range(len(self.members)))]

    def scores(self, targets: NDArray) -> NDArray:
        """Residuals times columns: these see the same as the estimates, and need no fit."""
        return (targets - self.probability) @ self.columns

    def estimator(self, targets: NDArray) -> Estimator:
        """Observed less predicted frequencies, and the slope."""
        y = targets.astype(np.float64)
        residuals = y - self.probability

        def estimate(cases: NDArray) -> NDArray:
            some = residuals[cases]
            groups = [some[group[cases]].mean() if group[cases].any() else np.nan for group in self.members]
            return np.array([some.mean(), fitted_slope(y[cases], self.logit[cases]), *groups])

        return estimate

    def expected(self, scores: NDArray) -> NDArray:
        """No difference, and slope 1."""
        return np.array([float(name == SLOPE) for name in self.names])

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """Frequency and slope; groups where these say nothing."""
        out: list[Finding] = []
        if FREQUENCY in told:
            out.append(self._frequency(told[FREQUENCY]))
        if SLOPE in told:
            out.append(slope_finding(told[SLOPE]))
        if not out:
            groups = [name for name in told if name.startswith(GROUP)]
            out = [self._group(int(name[len(GROUP) :]), told[name]) for name in groups[:_MOST_GROUPS]]
        return out

    def _frequency(self, found: Found) -> Finding:
        return occurs(self.outcome, FREQUENCY, found, float(self.probability.mean()))

    def _group(self, place: int, found: Found) -> Finding:
        some = self.probability[self.members[place]]
        between = _range(float(some.min()), float(some.max()))
        own, where = found._replace(cases=len(some)), f"where it was predicted {between}"
        manner = None if between.startswith("at") else "on average"  # what is said already
        return occurs(self.outcome, GROUPED, own, float(some.mean()), where, manner)

    def lie_on_a_line(self, targets: NDArray, alpha: float) -> bool:
        """Whether groups occur as often as the line says that fits outcomes to log odds.

        They are then off because slope or frequency is, and no more. Holm's smallest p-value decides.
        """
        intercept, slope = fitted_line(targets.astype(np.float64), self.logit)
        if np.isnan(slope):
            return False
        line = cast("NDArray", special.expit(intercept + slope * self.logit))
        off = [float(np.sum(targets[group] - line[group])) for group in self.members]
        spread = [float(np.sum(line[group] * (1.0 - line[group]))) ** 0.5 for group in self.members]
        distances = [abs(value) / max(error, 1e-300) for value, error in zip(off, spread, strict=True)]
        return 2.0 * normal_tail(max(distances)) * len(off) > alpha


class FineGroups(BinaryClaims):
    """Groups of probabilities alone, twice as many: a closer look."""

    def __init__(self, plain: BinaryClaims) -> None:
        super().__init__(plain.probability, plain.outcome, plain.clipped, 2 * _GROUPS)
        self.names = [f"_{name}" if not name.startswith(GROUP) else name for name in self.names]

    def expected(self, scores: NDArray) -> NDArray:
        """No differences."""
        return np.zeros(len(self.names))


def _range(low: float, high: float) -> str:
    """From where to where, also where both are the same in whole percents.

    Examples
    --------
    >>> _range(0.9, 1.0), _range(0.9987, 1.0), _range(0.5, 0.501), _range(1.0, 1.0)
    ('between 90% and 100%', 'above 99.8%', 'at about 50%', 'at about 100%')
    >>> _range(1.0 - 1e-12, 1.0), _range(1e-15, 0.03), _range(1e-12, 1e-10)
    ('above 99.99%', 'between 0% and 3%', 'below 0.01%')
    """
    if 0.0 < high < SURE:
        return "below 0.01%"
    if 0.995 <= low < 1.0:
        return f"above {percent(min(low, 1.0 - SURE))}"
    first, last = percent(0.0 if low < SURE else low), percent(1.0 if high > 1.0 - SURE else high)
    return f"at about {first}" if first == last else f"between {first} and {last}"


def occurs(
    what: str, kind: str, found: Found, predicted: float, where: str = "", manner: str | None = ""
) -> Finding:
    """How often something happened and was predicted, from the difference of the two.

    `where` it did, and in which `manner` it was predicted; None where that says it.
    """
    share, (low, high) = found.share(predicted)
    place = f" {where}" if where else ""
    told = shares_apart(share, (low, high), predicted)
    said = "" if manner is None else f", predicted {told.right}" + (f" {manner}" if manner else "")
    often = f"{what} occurs {told.size} of the time"
    sentence = f"{often} ({told.ends}){place}{said}"
    short = f"{often}{place}{said}"
    return perhaps(Finding(sentence, kind, short, share, (low, high), LEVEL, found.pvalue), predicted)


def how_extreme(found: Found) -> str:
    """What a slope of log odds means, as far as its interval goes.

    Examples
    --------
    >>> found = Found(-0.2, 1.0, 0.2, 2.0, 50, 0.01, 3.0)
    >>> how_extreme(found), how_extreme(found._replace(error=0.05)), how_extreme(found._replace(estimate=0.3))
    ('are too extreme, or point the wrong way', 'point the wrong way', 'are too extreme')
    """
    if found.high <= 0.0:
        return "point the wrong way"
    if found.estimate <= 0.0:
        return "are too extreme, or point the wrong way"
    return f"are {'too extreme' if found.estimate < 1.0 else 'not extreme enough'}"


def slope_finding(found: Found) -> Finding:
    """Probabilities that are too extreme, or not enough."""
    size, ends = found.estimate, (found.low, found.high)
    short = f"predicted probabilities {how_extreme(found)}"
    told = number_told(size, ends)
    sentence = f"{short}: slope {told.size} ({told.ends})"
    ratio = (size, max(ends[0], 0.0), ends[1]) if size > 0.0 else None
    return Finding(sentence, SLOPE, short, size, ends, LEVEL, found.pvalue, ratio=ratio)


def fitted_slope(y: NDArray, logit: NDArray) -> float:
    """Slope of a logistic regression of outcomes on predicted log odds; nan where it does not converge.

    Examples
    --------
    >>> x = np.linspace(-2.0, 2.0, 5)
    >>> round(fitted_slope(special.expit(0.3 + 0.7 * x), x), 6)
    0.7
    """
    return float(fitted_line(y, logit)[1])
