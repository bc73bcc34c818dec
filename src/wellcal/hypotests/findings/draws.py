"""Findings about predictions that are draws, or quantiles: how often targets fall where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.carried import Ratio
from wellcal.hypotests.findings.claims import Claims, Estimator, Found
from wellcal.hypotests.findings.finding import LEVEL, Finding, perhaps
from wellcal.hypotests.findings.scalars import CENTRE, SPREAD, WIDTH, spread_finding
from wellcal.hypotests.findings.splits import Summary, fitted, log_ratio_of, mean_of, side_of
from wellcal.hypotests.findings.trends import (
    CENTRE_TREND,
    SPREAD_TREND,
    Manner,
    carried_trend,
    shares,
    spreads,
    trend_finding,
)
from wellcal.hypotests.parts.contrasts import Contrasts
from wellcal.measures.score_units import PLAIN, Units
from wellcal.measures.wording import percent, shares_apart

ABOVE, RANGE, COVERAGE, BELOW = "above", "range", "coverage", "below "

_MOST_QUANTILES = 2  # that are told
_LEAST_KNOWN = 1e-9  # of what squares of all errors are expected to be: less is rounding
_UNKNOWN = 10.0  # standard error of the logarithm of a ratio of which nothing is known
_ABOVE = "above the median of their draws"


class DrawClaims(Claims):
    """Which share of targets is above the middle of its draws, and outside of them; their spread; trends."""

    parts: ClassVar[Mapping[str, Sequence[str]]] = {
        **dict.fromkeys(("distribution", "levels", "shape", "spread", "tails"), (ABOVE, RANGE, SPREAD)),
        "trend of the centre": (CENTRE,),
        "trend of the spread": (WIDTH,),
        "curve of the centre": (CENTRE,),
    }
    trends: ClassVar[Mapping[str, str]] = {ABOVE: CENTRE, RANGE: WIDTH, SPREAD: WIDTH}

    units: Units = PLAIN

    def __init__(
        self, values: NDArray, weights: NDArray, columns: Contrasts, summaries: list[Summary]
    ) -> None:
        """`values` and `weights` of atoms ``(n, M)``."""
        self.columns, self.summaries, self.lines = columns, summaries, columns.trend
        self.names = [ABOVE, RANGE, SPREAD, *trend_names(columns.columns.shape[1], self.lines)]
        self.low, self.high = values.min(axis=1), values.max(axis=1)
        self.mean = np.sum(weights * values, axis=1)
        self.square = np.sum(weights * (values - self.mean[:, None]) ** 2, axis=1)
        order = np.argsort(values, axis=1)
        ordered = np.take_along_axis(values, order, axis=1)
        total = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
        rows = np.arange(len(values))
        lower = np.argmax(total > 0.5 - 1e-9, axis=1)
        upper = np.argmax(total > 0.5 + 1e-9, axis=1)
        self.middle = 0.5 * (ordered[rows, lower] + ordered[rows, upper])

    def scores(self, targets: NDArray) -> NDArray:
        """The same as the estimates."""
        return self._means(self._by_case(targets), slice(None))

    def estimator(self, targets: NDArray) -> Estimator:
        """From what is known of each case."""
        by_case = self._by_case(targets[None])
        return lambda cases: self._means(by_case[..., cases], cases)[0]

    def _by_case(self, targets: NDArray) -> NDArray:
        """``(4, r, n)``: above, outside, error, and what its square is expected to be."""
        above = (targets > self.middle) + 0.5 * (targets == self.middle)
        outside = (targets < self.low) | (targets > self.high)
        away = targets - self.mean
        return np.stack([above, outside, away, np.broadcast_to(self.square, away.shape)])

    def _means(self, by_case: NDArray, cases: NDArray | slice) -> NDArray:
        above, outside, _, expected = by_case[:4].mean(axis=2)
        errors = by_case[2] - by_case[2].mean(axis=1, keepdims=True)  # a shift is no spread
        squares = np.mean(errors**2, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = errors**2 / squares[:, None] - by_case[3] / expected[:, None]
            known = np.stack([above, outside, 0.5 * np.log(squares / expected)], axis=1)
        return np.concatenate([known, *self._trends(by_case, relative, cases)], axis=1)

    def _trends(self, by_case: NDArray, relative: NDArray, cases: NDArray | slice) -> list[NDArray]:
        """What goes with the prediction: targets that are above, and relative squares of errors."""
        columns = self.columns.columns[cases]
        n = len(columns)
        return [by_case[0] @ columns[:, 1:] / n, relative @ columns[:, self.lines] / n]

    def _fitted(self) -> NDArray:
        """What errors are freed of before their spread is measured, ``(n, k)``; of a pool, ones alone."""
        return self.columns.columns

    def ratios(self, targets: NDArray) -> Mapping[str, Ratio]:
        """The spread, and its trends."""
        by_case = self._by_case(targets)
        squares = (by_case[2] - by_case[2].mean(axis=1, keepdims=True)) ** 2
        lines = zip(self.lines, self._lines(by_case), strict=True)
        trends = {f"{WIDTH}{j}": Ratio(squares * line, squares, False) for j, line in lines}
        return {SPREAD: Ratio(squares, by_case[3], True), **trends}

    def _lines(self, by_case: NDArray) -> NDArray:
        """What trends of the spread go with, of each case."""
        return self.columns.columns[:, self.lines].T

    def _members(self) -> NDArray | None:
        """What is known of each member of a pool as the target, ``(4, n, S + 1)``; None without a pool."""
        return None

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """Of range and spread, which are one error, the clearer one; a shift leaves the range too."""
        above, _, error, expected = self._by_case(targets[None])[:4, 0]
        members = self._members()
        manner = shares(CENTRE_TREND, lambda v: mean_of(v - 0.5), f"targets fall {_ABOVE}", 0.5)
        each = None if members is None else members[0]
        centres = told_trend(self, told, CENTRE, manner, above, each)
        right, least = every[SPREAD].expected, _LEAST_KNOWN * float(expected.mean())

        def measure(values: NDArray) -> tuple[float, NDArray]:
            if not values[:, 1].mean() > least:  # draws that are all alike there, as zeros are
                return 0.0, np.full(len(values), _UNKNOWN / np.sqrt(len(values)))
            value, influence = log_ratio_of(values)
            return value - right, influence

        # A bias is no spread, and need not be the same on both sides.
        about, ratios = fitted(measure, self._fitted(), np.stack([error, expected], axis=1), free=1)
        each = None if members is None else np.stack([*members[2:], np.ones(members.shape[1:])], axis=-1)
        sure = bool(np.any(expected <= least))
        wide = told_trend(self, told, WIDTH, spreads(about, self.units), ratios, each, sure)
        out = [finding for finding in (centres, wide) if finding is not None]
        if ABOVE in told and centres is None:
            tied = bool(np.any(above == 0.5))
            out.append(_fall(told[ABOVE], ABOVE, f"targets fall {_ABOVE}", tied=tied))
        widths = [name for name in told if name in (RANGE, SPREAD)]  # the clearest first
        if wide is not None or (widths == [RANGE] and ABOVE in told):
            return out
        if widths[:1] == [SPREAD] and centres is not None:
            spread = self._about_trends(told[SPREAD], error, expected)
            still = not spread.low <= spread.expected <= spread.high
            return [*out, spread_finding(spread, self.units)] if still else out
        if widths[:1] == [RANGE]:
            out.append(_fall(told[RANGE], RANGE, "targets fall outside the range of their draws"))
        elif widths:
            out.append(spread_finding(told[SPREAD], self.units))
        return out

    def _about_trends(self, found: Found, error: NDArray, expected: NDArray) -> Found:
        """The spread about what goes with the prediction: errors about their mean hold that, too."""
        values = np.stack([error, expected], axis=1)
        about, freed = fitted(log_ratio_of, self.columns.columns, values, free=1)
        side = side_of(about, freed, np.ones(len(error), dtype=bool), self.groups)
        return found._replace(estimate=side.value, error=side.error)


def trend_names(columns: int, lines: Sequence[int]) -> list[str]:
    """Names of trends of the centre, in all columns but the first, and of the spread, in lines."""
    return [*(f"{CENTRE}{j}" for j in range(1, columns)), *(f"{WIDTH}{j}" for j in lines)]


class HasTrends(Protocol):
    """Claims about what goes with the prediction: which of their trends are lines, and names of groups."""

    lines: list[int]
    summaries: list[Summary]
    groups: NDArray | None


def told_trend(
    claims: HasTrends,
    told: Mapping[str, Found],
    start: str,
    manner: Manner,
    values: NDArray,
    members: NDArray | None = None,
    sure: bool = False,
) -> Finding | None:
    """The trend that the clearest of the quantities with such names has; None where none of them is told.

    `members` as in `contrast_of`, `sure` as in `trend_finding`.
    """
    names = [name for name in told if name.startswith(start)]
    if not names:
        return None
    found = told[names[0]]
    fine = not any(int(name[len(start) :]) in claims.lines for name in names)
    about = claims.summaries, found.reach, found.pvalue, claims.groups
    finding = trend_finding(manner, values, *about, fine, members, sure=sure)
    return carried_trend(finding, found.carried, found.cases)


class QuantileClaims(Claims):
    """Which share of targets is up to each quantile, and between the outermost two; and trends of these."""

    parts: ClassVar[Mapping[str, Sequence[str]]] = {
        **dict.fromkeys(("distribution", "levels", "shape", "spread", "tails"), (BELOW, COVERAGE)),
        "trend of the centre": (CENTRE,),
        "trend of the spread": (WIDTH,),
        "curve of the centre": (CENTRE,),
    }
    trends: ClassVar[Mapping[str, str]] = {COVERAGE: WIDTH}

    def __init__(
        self, levels: NDArray, values: NDArray, columns: Contrasts, summaries: list[Summary]
    ) -> None:
        self.levels, self.values = levels, values
        self.columns, self.summaries, self.lines = columns, summaries, columns.trend
        self.middle = int(np.argmin(np.abs(levels - 0.5)))
        self.several = len(levels) > 1
        trends = trend_names(columns.columns.shape[1], self.lines if self.several else ())
        self.names = [
            *(f"{BELOW}{level:g}" for level in levels),
            *([COVERAGE] if self.several else []),
            *trends,
        ]

    def scores(self, targets: NDArray) -> NDArray:
        """The same as the estimates."""
        return np.stack([self._means(self._shares(sets), slice(None)) for sets in targets])

    def estimator(self, targets: NDArray) -> Estimator:
        """From what is known of each case."""
        by_case = self._shares(targets)
        return lambda cases: self._means(by_case[:, cases], cases)

    def _shares(self, targets: NDArray) -> NDArray:
        """``(K, n)``."""
        below = [targets <= column for column in self.values.T]
        if self.several:
            below.append(below[-1] & ~below[0])
        return np.stack(below).astype(np.float64)

    def _means(self, by_case: NDArray, cases: NDArray | slice) -> NDArray:
        columns = self.columns.columns[cases]
        n = len(columns)
        trends = [by_case[self.middle] @ columns[:, 1:] / n]
        if self.several:
            trends.append(by_case[-1] @ columns[:, self.lines] / n)
        return np.concatenate([by_case.mean(axis=1), *trends])

    def expected(self, scores: NDArray) -> NDArray:
        """The levels themselves, and no trends."""
        inside = [self.levels[-1] - self.levels[0]] if self.several else []
        known = [*self.levels, *inside]
        return np.array([*known, *np.zeros(len(self.names) - len(known))])

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """Trends, coverage, and the quantiles that are clearest off; where others do not say it."""
        by_case = self._shares(targets)
        level, inside = float(self.levels[self.middle]), float(self.levels[-1] - self.levels[0])
        below = f"targets fall below their {percent(level)} quantile"
        centre = shares(CENTRE_TREND, lambda v: mean_of(v - level), below, level)
        between = self._between()
        wide = shares(SPREAD_TREND, lambda v: mean_of(v - inside), between, inside)
        trends = [
            told_trend(self, told, CENTRE, centre, by_case[self.middle]),
            told_trend(self, told, WIDTH, wide, by_case[-1]),
        ]
        out = [finding for finding in trends if finding is not None]
        if COVERAGE in told and trends[1] is None:
            out.append(_fall(told[COVERAGE], COVERAGE, between))
        names = [name for name in told if name.startswith(BELOW)]
        if trends[0] is not None:  # which quantiles are off depends on the prediction, and that is told
            return out
        if COVERAGE in told:
            names = [name for name in names if told[name].pvalue < told[COVERAGE].pvalue]
        for name in names[:_MOST_QUANTILES]:
            at = percent(told[name].expected)
            out.append(_fall(told[name], "quantile", f"targets fall below their {at} quantile"))
        return out

    def _between(self) -> str:
        low, high = (percent(float(self.levels[end])) for end in (0, -1))
        return f"targets fall between their {low} and {high} quantiles"


def _fall(found: Found, kind: str, what: str, tied: bool = False) -> Finding:
    """How often targets fall somewhere; those that are `tied` do so by halves, and scatter less for it."""
    ends = found.share_ends if not tied else (max(found.low, 0.0), min(found.high, 1.0))
    told = shares_apart(found.estimate, ends, found.expected)
    start, said = f"{what} {told.size} of the time", f"expected {told.right}"
    texts = f"{start} ({told.ends}), {said}", kind, f"{start}, {said}"
    finding = Finding(*texts, found.estimate, ends, LEVEL, found.pvalue, found.expected)
    return perhaps(finding, found.expected)
