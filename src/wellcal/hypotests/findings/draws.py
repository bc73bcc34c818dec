"""Findings about predictions that are draws, or quantiles: how often targets fall where."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.claims import Claims, Estimator, Found
from wellcal.hypotests.findings.finding import LEVEL, Finding
from wellcal.hypotests.findings.scalars import SPREAD, spread_finding
from wellcal.hypotests.findings.wording import share_span
from wellcal.measures.yardstick import percent

ABOVE, RANGE, COVERAGE, BELOW = "above", "range", "coverage", "below "

_MOST_QUANTILES = 2  # that are told


class DrawClaims(Claims):
    """Which share of targets is above the middle of its draws, and outside of them; and their spread."""

    names = (ABOVE, RANGE, SPREAD)

    def __init__(self, values: NDArray, weights: NDArray, pooled: bool) -> None:
        """`values` and `weights` of atoms ``(n, M)``; `pooled` where the target is one of them."""
        self.pooled, self.size = pooled, values.shape[1]
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
        return _means(self._by_case(targets))

    def estimator(self, targets: NDArray) -> Estimator:
        """From what is known of each case."""
        by_case = self._by_case(targets[None])
        return lambda cases: _means(by_case[..., cases])[0]

    def _by_case(self, targets: NDArray) -> NDArray:
        """``(4, r, n)``: above, outside, error, and what its square is expected to be."""
        above = (targets > self.middle) + 0.5 * (targets == self.middle)
        away = targets - self.mean
        if not self.pooled:
            outside = (targets < self.low) | (targets > self.high)
            return np.stack([above, outside, away, np.broadcast_to(self.square, away.shape)])
        outside = (targets <= self.low) | (targets >= self.high)
        # Of the draws alone: without the target, which is one of the pool.
        draws = max(self.size - 1.0, 1.0)
        error = away * np.sqrt(self.size / draws)  # (y - mean of draws) / sqrt(1 + 1 / draws)
        rest = np.maximum(self.size * self.square - error**2, 0.0)
        return np.stack([above, outside, error, rest / max(draws - 1.0, 1.0)])

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """Of range and spread, which are one error, the clearer one; a shift leaves the range too."""
        out: list[Finding] = []
        if ABOVE in told:
            out.append(_fall(told[ABOVE], ABOVE, "targets fall above the median of their draws"))
        widths = [name for name in told if name in (RANGE, SPREAD)]  # the clearest first
        if widths == [RANGE] and ABOVE in told:
            return out
        if widths[:1] == [RANGE]:
            out.append(_fall(told[RANGE], RANGE, "targets fall outside the range of the draws"))
        elif widths:
            out.append(spread_finding(told[SPREAD]))
        return out


def _means(by_case: NDArray) -> NDArray:
    above, outside, _, expected = by_case.mean(axis=2)
    squares = by_case[2].var(axis=1)  # about their own mean: a shift is no spread
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.stack([above, outside, 0.5 * np.log(squares / expected)], axis=1)


class QuantileClaims(Claims):
    """Which share of targets is up to each quantile, and between the outermost two."""

    def __init__(self, levels: NDArray, values: NDArray) -> None:
        self.levels, self.values = levels, values
        self.names = [*(f"{BELOW}{level:g}" for level in levels), *([COVERAGE] if len(levels) > 1 else [])]

    def scores(self, targets: NDArray) -> NDArray:
        """The same as the estimates."""
        return np.concatenate([self._shares(sets[None]).mean(axis=2).T for sets in targets])

    def estimator(self, targets: NDArray) -> Estimator:
        """From what is known of each case."""
        shares = self._shares(targets[None])
        return lambda cases: shares[:, 0, cases].mean(axis=1)

    def _shares(self, targets: NDArray) -> NDArray:
        """``(K, r, n)``."""
        below = [targets <= column for column in self.values.T]
        if len(below) > 1:
            below.append(below[-1] & ~below[0])
        return np.stack(below).astype(np.float64)

    def expected(self, scores: NDArray) -> NDArray:
        """The levels themselves."""
        inside = [self.levels[-1] - self.levels[0]] if len(self.levels) > 1 else []
        return np.array([*self.levels, *inside])

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """Coverage, and the quantiles that are clearest off; those only where coverage does not say it."""
        out: list[Finding] = []
        if COVERAGE in told:
            low, high = (percent(float(self.levels[end])) for end in (0, -1))
            what = f"targets fall between their {low} and {high} quantiles"
            out.append(_fall(told[COVERAGE], COVERAGE, what))
        names = [name for name in told if name.startswith(BELOW)]
        if COVERAGE in told:
            names = [name for name in names if told[name].pvalue < told[COVERAGE].pvalue]
        for name in names[:_MOST_QUANTILES]:
            level = percent(told[name].expected)
            out.append(_fall(told[name], "quantile", f"targets fall below their {level} quantile"))
        return out


def _fall(found: Found, kind: str, what: str) -> Finding:
    start = f"{what} {percent(found.estimate)} of the time"
    ends = found.share_ends
    said = f"expected {percent(found.expected)}"
    return Finding(
        f"{start} ({share_span(*ends)}), {said}",
        kind,
        f"{start}, {said}",
        found.estimate,
        ends,
        LEVEL,
        found.pvalue,
    )
