"""Findings about vectors: those of numbers for each coordinate, and how coordinates go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import ClassVar, Self

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.carried import Ratio
from wellcal.hypotests.findings.claims import Claims, Estimator, Found
from wellcal.hypotests.findings.finding import LEVEL, PERHAPS, Finding
from wellcal.hypotests.findings.scalars import (
    BEYOND,
    CENTRE,
    MIDDLE,
    SHIFTED,
    SKEW,
    SPREAD,
    TAILS,
    WIDTH,
    ScalarClaims,
    shift_finding,
    spread_finding,
    tails_finding,
)
from wellcal.hypotests.findings.splits import SPREAD as PREDICTED_SPREAD
from wellcal.hypotests.findings.splits import Summary, name_of_means
from wellcal.hypotests.findings.trends import INDEPENDENT, SPREAD_TREND
from wellcal.hypotests.parts.contrasts import contrasts_of
from wellcal.hypotests.parts.vectors import chosen_coordinates
from wellcal.measures.score_units import PLAIN, Units
from wellcal.measures.wording import number_told, plain_number

ALL, TOGETHER = "all coordinates", "all coordinates: "
"""The spread of all coordinates, and how sentences about their common shift or tails begin."""

OF_ALL = " of all"
"""How names of shapes end that are means over coordinates."""

SINGULAR = 1.0 - 1e-9
"""The largest correlation that has a finite transform."""

_COMMON, _PAIR = "common shift", "coordinates "
_ALIKE = f"{TAILS}{OF_ALL}"
_SHAPES = (TAILS, BEYOND, MIDDLE)  # of which there are means over coordinates
_ROUNDING = 1e-9
_APART = 0.01  # p-value below which coordinates are off by different amounts


class VectorClaims(Claims):
    """Standardised residuals of each coordinate, their spread and tails together, and correlations.

    Squares and products of targets with heavy tails differ from one data set to the next by more than those
    of drawn targets do: parts of a test that look at these reject, too, and tails may be their reason.
    """

    parts: ClassVar[Mapping[str, Sequence[str]]] = {
        "centre": (SHIFTED, _COMMON),
        "common shift": (SHIFTED, _COMMON),
        "surprise": (SPREAD, ALL, _PAIR, _ALIKE),
        "spread": (SPREAD, ALL, _ALIKE),
        "correlation": (_PAIR, _ALIKE),
        "shape": (SKEW, TAILS),
        "trend of the centre": (CENTRE,),
        "trend of the spread": (WIDTH, _ALIKE),
        "trend of the correlation": (_PAIR, _ALIKE),
    }

    trends: ClassVar[Mapping[str, str]] = ScalarClaims.trends

    def __init__(
        self,
        centre: NDArray,
        spread: NDArray,
        mean: NDArray,
        width: NDArray,
        *,
        tied: bool = False,
    ) -> None:
        """What is predicted of coordinates, and what errors may go with.

        Parameters
        ----------
        centre, spread
            Of predictions, ``(n, d)``.
        mean, width
            Those that errors may go with, ``(n, d)``; a constant width is one that differs by chance alone.
        tied
            Whether the sum of all coordinates is known, so that they cannot be too high together.
        """
        self.centre, self.unit, self.mean, self.width = centre, spread, mean, width
        self._take(centre.shape[1], PLAIN, tied)

    def _take(self, dimension: int, units: Units, tied: bool) -> None:
        """Choose coordinates, and name what may be said of them."""
        self.units = units
        self.chosen = [int(place) for place in chosen_coordinates(dimension)]
        self.alone = [self._coordinate(j) for j in self.chosen]
        self.pairs = list(combinations(range(len(self.chosen)), 2))
        self.names = [
            *(self._name(i, name) for i, claims in enumerate(self.alone) for name in claims.names),
            *(self._pair(pair) for pair in self.pairs),
            ALL,
            f"_{_COMMON}" if tied else _COMMON,
            _ALIKE if len(self.alone) > 1 else f"_{_ALIKE}",
            *(f"{name}{OF_ALL}" for name in _SHAPES[1:]),
        ]

    def _coordinate(self, place: int) -> ScalarClaims:
        mean, width = self.mean[:, place], self.width[:, place]
        named = [Summary(name_of_means(), mean), *_summary(PREDICTED_SPREAD, width)]
        return ScalarClaims(lambda targets: targets, contrasts_of(mean, width), named, units=self.units)

    def within(self, groups: NDArray | None) -> Self:
        """The same claims, of cases that come in clusters."""
        for claims in self.alone:
            claims.within(groups)
        return super().within(groups)

    def _name(self, place: int, name: str) -> str:
        return f"{'_' * name.startswith('_')}{self.chosen[place] + 1}: {name}"

    def _pair(self, pair: tuple[int, int]) -> str:
        first, second = (self.chosen[place] + 1 for place in pair)
        return f"{_PAIR}{first} and {second}"

    def scores(self, targets: NDArray) -> NDArray:
        """The same as the estimates."""
        return self._quantities(self.residuals(targets), slice(None))

    def estimator(self, targets: NDArray) -> Estimator:
        """From residuals of all cases."""
        z = self.residuals(targets[None])
        return lambda cases: self._quantities(z[:, cases], cases)[0]

    def ratios(self, targets: NDArray) -> Mapping[str, Ratio]:
        """Those of each coordinate, and the spread of all of them."""
        z = self.residuals(targets)[..., self.chosen]
        found: dict[str, Ratio] = {}
        squares: NDArray = np.zeros(z.shape[:2])
        for place, claims in enumerate(self.alone):
            its = claims.ratios_of(z[..., place])
            found |= {self._name(place, name): ratio for name, ratio in its.items()}
            squares = squares + its[SPREAD].above / len(self.alone)
        return {**found, ALL: Ratio(squares, np.ones((1, 1)), True)}

    def residuals(self, targets: NDArray) -> NDArray:
        """Standardised residuals ``(r, n, d)`` of all coordinates."""
        return (targets - self.centre) / self.unit

    def _quantities(self, residuals: NDArray, cases: NDArray | slice) -> NDArray:
        z = residuals[..., self.chosen]
        parts = [claims.quantities(z[..., place], cases) for place, claims in enumerate(self.alone)]
        squares, correlations = self._second_moments(z, cases)
        parts.append(np.arctanh(np.clip(correlations, -SINGULAR, SINGULAR)))
        parts.append(0.5 * np.log(np.maximum(squares.mean(axis=1), 1e-300))[:, None])
        parts.append(residuals.mean(axis=(1, 2))[:, None])
        parts.append(self.shapes_of_all(parts))
        return np.concatenate(parts, axis=1)

    def shapes_of_all(self, parts: Sequence[NDArray]) -> NDArray:
        """Means over coordinates ``(r, 3)`` of the quantities of each, which come first, that tell tails."""
        each = [
            some[:, [claims.names.index(name) for name in _SHAPES]]
            for some, claims in zip(parts, self.alone, strict=False)
        ]
        return np.mean(each, axis=0)

    def _second_moments(self, z: NDArray, cases: NDArray | slice) -> tuple[NDArray, NDArray]:
        """Mean squares ``(r, c)`` of what trends leave of residuals, and correlations of its pairs."""
        rest = [claims.residuals(z[..., place], cases)[1] for place, claims in enumerate(self.alone)]
        left = np.stack(rest, axis=-1)
        squares = np.einsum("rna,rna->ra", left, left) / left.shape[1]
        products = np.einsum("rna,rnb->rab", left, left, optimize=True) / left.shape[1]
        scale = np.sqrt(np.maximum(squares, 1e-300))
        return squares, self._of_pairs(products / (scale[:, :, None] * scale[:, None, :]))

    def _of_pairs(self, table: NDArray) -> NDArray:
        """Those entries ``(r, p)`` of tables of coordinates ``(r, c, c)``."""
        first, second = (np.array([pair[end] for pair in self.pairs], dtype=int) for end in (0, 1))
        return table[:, first, second]

    def correlations(self, targets: NDArray) -> tuple[NDArray, NDArray | None]:
        """Correlations ``(r, p)`` of residuals of the pairs of coordinates, as findings tell them.

        And those that were predicted, where they are known without sets of drawn targets.
        """
        return self._second_moments(self.residuals(targets)[..., self.chosen], slice(None))[1], None

    @property
    def coordinates(self) -> list[tuple[int, int]]:
        """The pairs of coordinates, by their places in vectors."""
        return [(self.chosen[first], self.chosen[second]) for first, second in self.pairs]

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """Findings of each coordinate, and of pairs."""
        z = self.residuals(targets[None])[0][:, self.chosen]
        out: list[Finding] = []
        for place, claims in enumerate(self.alone):
            names = {name: self._name(place, name) for name in claims.names}
            its = {name: told[full] for name, full in names.items() if full in told}
            known = {name: every[full] for name, full in names.items()}
            found = claims.tell_of(its, known, z[:, place])
            out += [in_coordinate(finding, self.chosen[place] + 1) for finding in found]
        pairs = [name for name in map(self._pair, self.pairs) if name in told]
        out += [_correlated(name, self._correlation(name, told, every)) for name in pairs]
        if ALL in told:
            out = self._one_for_all(out, spread_finding(told[ALL], self.units), told[ALL], every, SPREAD)
        if _COMMON in told and self.unit.shape[1] > 1:
            common = shift_finding(told[_COMMON], self.units)
            common = replace(common, sentence=TOGETHER + common.sentence, short=TOGETHER + common.short)
            out = self._one_for_all(out, common, told[_COMMON], every, SHIFTED)
        # Spreads that go with the prediction make tails heavy.
        if _ALIKE in told and all(finding.kind != SPREAD_TREND for finding in out):
            out = self._one_for_all(out, self._tails(every), told[_ALIKE], every, TAILS)
        return out

    def _tails(self, every: Mapping[str, Found]) -> Finding:
        """Tails of all coordinates; shares among their cases are as well known as standard errors say."""
        tails, *shares = (every[f"{name}{OF_ALL}"] for name in _SHAPES)
        count = len(self.alone) * tails.cases
        known = [
            one._replace(cases=count, clusters=one.cases if one.clusters is None else one.clusters)
            for one in shares
        ]
        finding = tails_finding(tails, dict(zip(_SHAPES[1:], known, strict=True)), True)
        start = PERHAPS if finding.sentence.startswith(PERHAPS) else ""
        texts = (f"{start}{TOGETHER}{text.removeprefix(start)}" for text in (finding.sentence, finding.short))
        return replace(finding, **dict(zip(("sentence", "short"), texts, strict=True)))

    def _correlation(self, name: str, told: Mapping[str, Found], every: Mapping[str, Found]) -> Found:
        """The correlation of a pair that is told, with the one that was predicted as what is expected."""
        return told[name]

    def _one_for_all(
        self, out: list[Finding], together: Finding, found: Found, every: Mapping[str, Found], name: str
    ) -> list[Finding]:
        """One sentence for all coordinates, where none of them is off by another amount."""
        each = [every[self._name(place, name)] for place in range(len(self.chosen))]
        right = found.estimate - found.expected
        rounding = _ROUNDING * max(abs(right), 1.0)  # targets that are off alike have no error at all
        apart = [(one.estimate - one.expected - right) / max(one.error, rounding) for one in each]
        squares = float(np.sum(np.square(apart)))
        differ = float(special.gammaincc(0.5 * max(len(each) - 1, 1), 0.5 * squares)) < _APART
        said = [finding for finding in out if finding.kind == together.kind]
        alike = len(said) == len(each) and all(_agree(one, together) for one in said)
        if differ and not alike:
            return out
        return [*(finding for finding in out if finding.kind != together.kind), together]


def _summary(name: str, values: NDArray) -> list[Summary]:
    """A summary that errors may go with, unless it is the same for all cases."""
    return [Summary(name, values)] if np.ptp(values) > 0.0 else []


def _agree(one: Finding, other: Finding) -> bool:
    """Whether intervals have something in common."""
    if one.interval is None or other.interval is None:
        return False
    return max(one.interval[0], other.interval[0]) <= min(one.interval[1], other.interval[1])


def in_coordinate(finding: Finding, coordinate: int) -> Finding:
    """The same sentence about one coordinate."""
    of = f"coordinate {coordinate}: "
    return replace(finding, sentence=of + finding.sentence, short=of + finding.short, ratio=None)


def _correlated(pair: str, found: Found) -> Finding:
    size, low, high = (float(np.tanh(value)) for value in (found.estimate, found.low, found.high))
    right = float(np.tanh(found.expected))
    told = number_told(size, (low, high))
    ends = f"{told.size}, {told.ends}"
    if abs(right) < INDEPENDENT:
        short = f"{pair} are correlated ({told.size}), predicted independent"
        sentence = f"{pair} are correlated ({ends}), predicted independent"
    elif size * right < 0.0:
        short = f"{pair} have a correlation of {told.size}, predicted {plain_number(right)}"
        sentence = short.replace(", predicted", f" ({told.ends}), predicted")
    else:
        stronger = "more" if abs(size) > abs(right) else "less"
        short = f"{pair} are {stronger} strongly correlated than predicted"
        sentence = f"{short} ({ends}; predicted {plain_number(right)})"
    return Finding(sentence, "correlation", short, size, (low, high), LEVEL, found.pvalue)
