"""Findings about counts: means, dispersion, and zeros."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import numpy as np
from scipy.special import gammaincinv

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.claims import Estimator, Found
from wellcal.hypotests.findings.finding import LEVEL, Finding, because_of, perhaps
from wellcal.hypotests.findings.scalars import CENTRE, SHIFTED, SKEW, SPREAD, TAILS, WIDTH, ScalarClaims
from wellcal.hypotests.findings.splits import Summary
from wellcal.hypotests.parts.contrasts import Contrasts
from wellcal.measures.wording import TIMES, Ends, number_told, ratio_told, shares_apart
from wellcal.measures.yardstick import in_deviations

ZEROS = "zeros"
_ALIKE = 25  # cases with like predictions that are compared with each other
_LEAST_TIMES = 1e-9  # of their predicted mean that counts are: less is rounding of none
_FEW = 4.5  # events of which there are too few for a standard error, or for anything but their number
_COMMON = 0.005  # share of zeros, predicted or observed, from which they are spoken of


class CountClaims(ScalarClaims):
    """Counts in units of their predicted standard deviations, and their zeros."""

    def __init__(
        self, centre: NDArray, spread: NDArray, columns: Contrasts, summaries: list[Summary]
    ) -> None:
        super().__init__(lambda targets: (targets - centre) / spread, columns, summaries)
        self.centre, self.variance = centre, spread**2
        self.beyond = np.maximum(self.variance - centre, 0.0)  # grows with the square of the mean
        hidden = {SKEW: "_skew", TAILS: "_tails"}
        self.names = [*(hidden.get(name, name) for name in self.names), ZEROS]
        self._centres = [self.names.index(f"{CENTRE}{j}") for j in self.centres]

    def scores(self, targets: NDArray) -> NDArray:
        """Means as ratios, and zeros beside the others."""
        return self._counts(targets, super().scores(targets), slice(None))

    def estimator(self, targets: NDArray) -> Estimator:
        """From all cases."""
        others = super().estimator(targets)
        return lambda cases: self._counts(targets[None, cases], others(cases)[None], cases)[0]

    def _counts(self, targets: NDArray, others: NDArray, cases: NDArray | slice) -> NDArray:
        centre, variance = self.centre[cases], self.variance[cases]
        total = targets.sum(axis=1)
        few = total < _FEW  # half an event more, as the logarithm of none is not known
        times = (total + 0.5 * few) / centre.sum()
        # Counts that are larger everywhere, by a factor, are so by more standard deviations where they are
        # large, and spread further: neither is another error.
        columns = self.columns.columns[cases]
        if len(columns) > columns.shape[1]:
            steeper = np.linalg.pinv(columns) @ (centre / np.sqrt(variance))
            others = others.copy()
            others[:, self._centres] -= (times - 1.0)[:, None] * steeper[self.centres]
        share = float(np.mean(self.beyond[cases] / variance))
        with np.errstate(divide="ignore"):
            wider, ratio = np.log((1.0 - share) * times + share * times**2), np.log(times)[:, None]
        zeros = np.mean(targets == 0, axis=1, keepdims=True)
        spread = others[:, 1:2] - 0.5 * wider[:, None]
        return np.concatenate([ratio, spread, others[:, 2:], zeros], axis=1)

    def tell_of(self, told: Mapping[str, Found], every: Mapping[str, Found], z: NDArray) -> list[Finding]:
        """Those of numbers, and zeros where dispersion does not explain them."""
        total = float(np.sum(self.centre + np.sqrt(self.variance) * z))
        if total < _FEW:  # which tell how many there are, and no more
            told = {name: found for name, found in told.items() if name in (SHIFTED, ZEROS)}
            least = (total + 0.5) ** -0.5  # of the logarithm of a count that is as variable as it is large
            every = {**every, SHIFTED: every[SHIFTED]._replace(error=max(every[SHIFTED].error, least))}
            told = {name: every[name] for name in told}
        if SPREAD in told and any(name.startswith((SHIFTED, CENTRE)) for name in told):
            alike = self._among_alike(told[SPREAD], z)
            told = {name: alike if name == SPREAD else found for name, found in told.items()}
            every = {**every, SPREAD: alike}
            if alike.low <= alike.expected <= alike.high:
                told.pop(SPREAD)
        if SPREAD in told:  # how much it grows with the mean is a matter of the family, not another error
            told = {name: found for name, found in told.items() if not name.startswith(WIDTH)}
        out = super().tell_of(told, every, z)
        if total < _FEW and SHIFTED in told and self.groups is None:
            out = [self._of_few(finding, total) if finding.kind == SHIFTED else finding for finding in out]
        if ZEROS not in told or max(told[ZEROS].estimate, told[ZEROS].expected) <= _COMMON:
            return out
        zeros = _zeros(told[ZEROS])
        known = told.keys() & {SHIFTED, SPREAD}
        if not known:
            return [*out, zeros]
        explained = self._zeros_of(
            every[SHIFTED].estimate if SHIFTED in known else 0.0,
            every[SPREAD].estimate - every[SPREAD].expected if SPREAD in known else 0.0,
        )
        low, high = told[ZEROS].share_ends
        if low <= explained <= high:
            return out
        # What the mean and the dispersion do not explain is the error, and they follow from it.
        clearest = min([zeros.pvalue, *(finding.pvalue for finding in out)])
        return [replace(zeros, pvalue=clearest), *out]

    def _among_alike(self, found: Found, z: NDArray) -> Found:
        """Dispersion about the means that counts of like predictions have, however far off these are.

        Means that are wrong for some predictions, and not for others, leave counts dispersed about what they
        are everywhere. Of Poisson counts that are alike, squares over their mean are one on average whatever
        their sum is; where that is zero they tell nothing.
        """
        n = len(z)
        place = np.empty(n, dtype=np.intp)
        place[np.argsort(self.centre, kind="stable")] = np.arange(n) * max(n // _ALIKE, 1) // n
        targets = self.centre + np.sqrt(self.variance) * z
        with np.errstate(invalid="ignore", divide="ignore"):
            times = (np.bincount(place, targets) / np.bincount(place, self.centre))[place]
        grown: NDArray = times * (self.variance - self.beyond) + times**2 * self.beyond
        some = np.isfinite(times) & (times > _LEAST_TIMES)
        if not some.any():
            return found
        squares = (targets - times * self.centre)[some] ** 2 / grown[some]
        count = np.bincount(place)[place][some]
        squares *= count / np.maximum(count - 1.0, 1.0)
        mean = float(squares.mean())
        clusters = np.arange(n) if self.groups is None else self.groups
        error = float(np.sqrt(np.sum(np.bincount(clusters[some], squares - mean) ** 2))) / len(squares)
        return found._replace(
            estimate=0.5 * float(np.log(max(mean, 1e-300))), error=0.5 * error / mean, expected=0.0
        )

    def _zeros_of(self, shift: float, spread: float) -> float:
        """Share of zeros among negative binomial counts of other means and spreads, given by logarithms."""
        mean = float(np.exp(shift)) * np.maximum(self.centre, 1e-300)
        times = float(np.exp(shift))
        grown: NDArray = times * (self.variance - self.beyond) + times**2 * self.beyond
        variance = float(np.exp(2.0 * spread)) * grown
        factor = np.maximum(variance / mean, 1.0 + 1e-9)
        return float(np.mean(np.exp(-mean / (factor - 1.0) * np.log(factor))))

    def shift(self, found: Found) -> Finding:
        """Counts that are too high or too low."""
        ratio, low, high = (float(np.exp(value)) for value in (found.estimate, found.low, found.high))
        return self._shifted(ratio, (low, high), found.pvalue)

    def _of_few(self, finding: Finding, total: float) -> Finding:
        """The same with an interval from the number of events alone, of which there are few."""
        ratio = cast("float", finding.size)
        tail, predicted = 0.5 * (1.0 - LEVEL), float(self.centre.sum())
        ends = gammaincinv(max(total, 0.5), tail), gammaincinv(total + 1.0, 1.0 - tail)
        low, high = (float(end) / predicted for end in ends)
        return self._shifted(ratio, (min(low, ratio), max(high, ratio)), finding.pvalue)

    def _shifted(self, ratio: float, ends: Ends, pvalue: float) -> Finding:
        low, high = ends
        how = f"{'higher' if ratio > 1.0 else 'lower'} than" if ratio < TIMES else "as high as"
        told = ratio_told(ratio, (low, high))
        short = f"counts are {told.size} {how} predicted"
        over = 1.0 / ratio, 1.0 / high, 1.0 / low
        unit = in_deviations(self.centre, np.sqrt(self.variance))
        texts = f"{short} ({told.ends})", SHIFTED, short
        finding = Finding(*texts, ratio, (low, high), LEVEL, pvalue, ratio=over, unit=unit)
        return perhaps(finding, 1.0)

    def spread(self, found: Found) -> Finding:
        """Dispersion, as a ratio of variances."""
        right = found.less(found.expected)
        ratio, low, high = (float(np.exp(2.0 * v)) for v in (right.estimate, right.low, right.high))
        short = f"counts are {'more' if ratio > 1.0 else 'less'} dispersed than predicted"
        told = number_told(ratio, (low, high))
        sentence = f"{short} (variance ratio {told.size}, {told.ends})"
        over = ratio**-0.5, high**-0.5, low**-0.5
        told = Finding(sentence, "dispersion", short, ratio, (low, high), LEVEL, found.pvalue, ratio=over)
        return because_of(told, found.carried, found.cases)


def _zeros(found: Found) -> Finding:
    ends = found.share_ends
    told = shares_apart(found.estimate, ends, found.expected)
    more = "more" if found.estimate > found.expected else "fewer"
    short = f"{more} zeros than predicted ({told.size} against {told.right})"
    sentence = f"{short[:-1]}; {told.ends})"
    return Finding(sentence, ZEROS, short, found.estimate, ends, LEVEL, found.pvalue)
