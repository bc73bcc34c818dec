"""Findings about numbers: where targets stand, how far they spread, and in which shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.carried import Ratio
from wellcal.hypotests.findings.claims import Claims, Estimator, Found
from wellcal.hypotests.findings.finding import LEVEL, Finding, because_of, perhaps
from wellcal.hypotests.findings.reasons import ALPHA
from wellcal.hypotests.findings.splits import Summary, fitted, log_spread_of, mean_of
from wellcal.hypotests.findings.trends import carried_trend, shifts, spreads, trend_finding
from wellcal.hypotests.parts.contrasts import Contrasts
from wellcal.measures.bent_units import BentUnits
from wellcal.measures.normal_scores import Standing
from wellcal.measures.score_units import PLAIN, InUnits, Units
from wellcal.measures.wording import error_told, number_told, percent, shares_apart
from wellcal.predictions.misspecification import SHIFT, SPREADS

SHIFTED, SPREAD, SKEW, TAILS = "shift", "spread", "skew", "tails"
CENTRE, WIDTH = "centre ", "width "
"""How names of trends begin."""

EVERYWHERE = (SHIFTED, SPREAD, SKEW, TAILS, "zeros")
"""How names of errors begin that do not go with the prediction."""

BEYOND, MIDDLE = "_beyond", "_middle"
"""Shares of targets in the tails and in the middle."""

_OFF_BY, _RATIO = ("_off by", "_off by, plain"), ("_ratio", "_ratio, plain")  # in units of the targets
_NORMAL_MAD = 0.6744897501960817
_FAR, _NEAR = 2.0, 0.5  # standard deviations that are in the tails, and in the middle
_LEAST_SPREAD = 1e-4  # of targets, in units of the predicted one: less is rounding
_END = 8.0  # scores, of families whose levels end in rounding, from which they are all alike
_RESIDUALS = 2  # column of what is known of each case where scores are bent
_FLAT = 0.289  # share of uniform variates in the middle: with less there are two peaks


class ScalarClaims(Claims):
    """Normal scores, less what goes with the prediction, by their moments.

    Parameters
    ----------
    standing
        Normal scores of targets.
    columns
        What errors may go with.
    summaries
        Predicted centre and spread, by name, which groups of cases are named after.
    normal
        Whether scores are residuals: those of other families bend where they are shifted or stretched, which
        is then no finding of its own.
    units
        From scores to sizes of errors.
    """

    parts: ClassVar[Mapping[str, Sequence[str]]] = {
        "distribution": EVERYWHERE,
        "levels": EVERYWHERE,
        "shape": EVERYWHERE,
        "spread": (SPREAD, SHIFTED, "zeros"),
        "tails": (SKEW, TAILS, "zeros"),
        "trend of the centre": (CENTRE,),
        "trend of the spread": (WIDTH,),
        "curve of the centre": (CENTRE,),
    }
    trends: ClassVar[Mapping[str, str]] = {SHIFTED: CENTRE, SPREAD: WIDTH}

    def __init__(
        self,
        standing: Standing,
        columns: Contrasts,
        summaries: list[Summary],
        normal: bool = True,
        units: Units = PLAIN,
    ) -> None:
        self.standing, self.columns, self.summaries, self.normal = standing, columns, summaries, normal
        self.units = units
        others = range(1, columns.columns.shape[1])
        self.centres, self.widths = list(others), list(columns.trend)
        self.names = [
            SHIFTED,
            SPREAD,
            SKEW,
            TAILS,
            *(f"{CENTRE}{j}" for j in self.centres),
            *(f"{WIDTH}{j}" for j in self.widths),
            BEYOND,
            MIDDLE,
        ]
        if units.known:
            self.names += [name for pair in zip(_OFF_BY, _RATIO, strict=True) for name in pair]

    def scores(self, targets: NDArray) -> NDArray:
        """The same as the estimates; sizes in units of the targets are not compared with anything."""
        found = self.quantities(self.standing(targets), slice(None))
        return np.pad(found, ((0, 0), (0, 4))) if self.units.known else found

    def estimator(self, targets: NDArray) -> Estimator:
        """From normal scores of all cases."""
        z = self.standing(targets[None])
        if not self.units.known:
            return lambda cases: self.quantities(z[:, cases], cases)[0]
        places = [self.names.index(name) for name in (SHIFTED, SPREAD)]
        seen = self.quantities(z, slice(None))[0][places]
        sizes, slopes = self.units.together(*seen.tolist())
        residuals = self.units.residuals(targets)

        def estimate(cases: NDArray) -> NDArray:
            found = self.quantities(z[:, cases], cases)[0]
            sized = sizes + slopes @ (found[places] - seen)
            if residuals is None:
                return np.concatenate([found, sized, sized])
            some = residuals[cases]
            return np.concatenate([found, sized, [some.mean(), 0.5 * np.log(max(float(some.var()), 1e-30))]])

        return estimate

    def residuals(self, z: NDArray, cases: NDArray | slice) -> tuple[NDArray, NDArray]:
        """Coefficients of the columns ``(r, k)``, and what is left of scores ``(r, n)``."""
        columns = self.columns.columns[cases]
        n, k = columns.shape
        if n <= k:
            columns = columns[:, :1]
        coefficients = z @ np.linalg.pinv(columns).T
        rest = (z - coefficients @ columns.T) * np.sqrt(n / max(n - columns.shape[1], 1))
        full = np.zeros((len(z), k))
        full[:, : columns.shape[1]] = coefficients
        return full, rest

    def quantities(self, z: NDArray, cases: NDArray | slice) -> NDArray:
        """Quantities ``(r, K)`` of scores ``(r, n)``."""
        coefficients, rest = self.residuals(z, cases)
        spread = np.sqrt(np.maximum(np.mean(rest**2, axis=1), _LEAST_SPREAD**2))
        u = rest / spread[:, None]
        width = (u**2 - 1.0) @ self.columns.columns[cases][:, self.widths] / u.shape[1]
        size = np.abs(rest)
        unit = np.median(size, axis=1, keepdims=True) / _NORMAL_MAD
        parts = [
            z.mean(axis=1, keepdims=True),
            np.log(spread)[:, None],
            np.mean(u * u * u, axis=1, keepdims=True),  # a power takes a hundred times as long
            _kurtosis(u)[:, None],
            coefficients[:, self.centres],
            width,
            np.mean(size > _FAR * unit, axis=1, keepdims=True),
            np.mean(np.abs(u) < _NEAR, axis=1, keepdims=True),
        ]
        return np.concatenate(parts, axis=1)

    def ratios(self, targets: NDArray) -> Mapping[str, Ratio]:
        """The spread and its trends, which are means of squares."""
        return self.ratios_of(self.standing(targets))

    def ratios_of(self, z: NDArray) -> Mapping[str, Ratio]:
        """The same from normal scores ``(r, n)``."""
        squares = self.residuals(z, slice(None))[1] ** 2
        lines = self.columns.columns.T
        trends = {f"{WIDTH}{j}": Ratio(squares * lines[j], squares, False) for j in self.widths}
        return {SPREAD: Ratio(squares, np.ones((1, 1)), True), **trends}

    def expected(self, scores: NDArray) -> NDArray:
        """Calibrated models are on their centres, whatever a few resamples say."""
        exact = np.array([name == SHIFTED or name.startswith((CENTRE, WIDTH)) for name in self.names])
        return np.where(exact & (np.abs(scores) < 0.02), 0.0, scores)

    # -- words -----------------------------------------------------------------------------------

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """Findings; those that others explain are left out."""
        z = self.standing(targets[None])[0]
        return self.tell_of(told, every, self._each(z, targets) if isinstance(self.units, BentUnits) else z)

    def _each(self, z: NDArray, targets: NDArray) -> NDArray:
        """Of bent scores: these, numbers of cases, and residuals where there are any, ``(n, 2 or 3)``."""
        assert isinstance(self.units, BentUnits)
        residuals = self.units.residuals(targets)
        more = [] if residuals is None else [residuals]
        return np.stack([z, np.arange(len(z)), *more], axis=1)

    def tell_of(self, told: Mapping[str, Found], every: Mapping[str, Found], z: NDArray) -> list[Finding]:
        """The same from normal scores ``(n,)``; of bent ones with numbers of cases and residuals."""
        centres = self.trend_of_the_centre(told, z)
        widths = self.trend_of_the_spread(told, z, every[SPREAD].expected)
        out = [finding for finding in (centres, widths) if finding is not None]
        # What goes with the prediction is not told of all cases again.
        apart = {SHIFTED: centres, SPREAD: widths}
        single = {name: told[name] for name, trend in apart.items() if name in told and trend is None}
        if SHIFTED in single and not self.normal and abs(single[SHIFTED].estimate) > _END:
            return [*out, _beyond_all(single[SHIFTED])]
        if isinstance(self.units, BentUnits):
            out += self.bent(single, every, alone=not out)
        elif self.units.known and any(every[name].pvalue <= ALPHA for name in (SKEW, TAILS)):
            # Of another shape scores have other means and spreads, whatever those of the targets are.
            out += self.bent(single, every, alone=not out and not {SKEW, TAILS} & told.keys())
        else:
            out += [self.shift(single[SHIFTED])] if SHIFTED in single else []
            out += [self.spread(single[SPREAD])] if SPREAD in single else []
        if out and not self.normal:
            return out
        if SKEW in told:
            out.append(skew_finding(told[SKEW]))
        # Spreads that are too small for some and too large for others make tails heavy.
        if TAILS in told and widths is None:
            out.append(tails_finding(told[TAILS], every, self.normal))
        return out

    def trend_of_the_centre(self, told: Mapping[str, Found], z: NDArray) -> Finding | None:
        """Where targets are too high or too low."""
        names = [name for name in told if name.startswith(CENTRE)]
        if not names:
            return None
        found = told[names[0]]
        pvalue = min(told[name].pvalue for name in [*names, *({SHIFTED} & told.keys())])
        # Lines are told by halves and quarters; curves, where there is no line, by finer groups too.
        fine = not any(int(name[len(CENTRE) :]) in self.columns.trend for name in names)
        about = self.summaries, found.reach, pvalue, self.groups, fine
        if not isinstance(self.units, BentUnits):
            return trend_finding(shifts(mean_of, self.units), z, *about)
        units, plain = self.units, _mean_of_residuals if z.shape[1] > _RESIDUALS else None

        def measure(some: NDArray) -> tuple[float, NDArray]:
            mean, of_mean = mean_of(some[:, 0])
            spread, of_spread = log_spread_of(some[:, 0] - mean)
            found = units.among(some[:, 1].astype(np.intp)).together(mean, spread)
            return float(found.sizes[0]), found.slopes[0, 0] * of_mean + found.slopes[0, 1] * of_spread

        return trend_finding(shifts(measure, InUnits(units.unit)), z, *about, also=plain, sure=True)

    def trend_of_the_spread(self, told: Mapping[str, Found], z: NDArray, right: float) -> Finding | None:
        """Where spreads are too small or too large."""
        names = [name for name in told if name.startswith(WIDTH)]
        if not names:
            return None
        found = told[names[0]]
        pvalue = min(told[name].pvalue for name in [*names, *({SPREAD} & told.keys())])

        def measure(values: NDArray) -> tuple[float, NDArray]:
            value, influence = log_spread_of(values)
            return value - right, influence

        about = self.summaries, found.reach, pvalue, self.groups
        if isinstance(self.units, BentUnits):
            trend = self._bent_spreads(z, right, *about)
        else:
            within, values = fitted(measure, self.columns.columns, z)
            trend = trend_finding(spreads(within, self.units), values, *about)
        return carried_trend(trend, found.carried, found.cases)

    def _bent_spreads(
        self,
        z: NDArray,
        right: float,
        summaries: list[Summary],
        reach: float,
        pvalue: float,
        groups: NDArray | None,
    ) -> Finding | None:
        """Where spreads of targets are off, and not those of scores alone: a shift stretches these, too."""
        assert isinstance(self.units, BentUnits)
        units, known = self.units, z.shape[1] > _RESIDUALS
        freed = [0, _RESIDUALS] if known else [0]

        def measure(some: NDArray) -> tuple[float, NDArray]:
            scores, cases = some[:, len(freed)], some[:, len(freed) + 1].astype(np.intp)
            mean, of_mean = mean_of(scores)
            spread, of_spread = log_spread_of(some[:, 0])
            found = units.among(cases).together(mean, spread - right)
            return float(found.sizes[1]), found.slopes[1, 0] * of_mean + found.slopes[1, 1] * of_spread

        columns, each = self.columns.columns, z[:, [*freed, 0, 1]]
        within, values = fitted(measure, columns, each, free=len(freed))
        plain = fitted(lambda some: log_spread_of(some[:, 1]), columns, each, free=len(freed))[0]
        about, also = (summaries, reach, pvalue, groups), plain if known else None
        return trend_finding(spreads(within), values, *about, also=also, sure=True)

    def shift(self, found: Found) -> Finding:
        """Targets that are too high or too low everywhere."""
        return shift_finding(found, self.units)

    def spread(self, found: Found) -> Finding:
        """Spreads that are too small or too large everywhere."""
        return spread_finding(found, self.units)

    def bent(self, told: Mapping[str, Found], every: Mapping[str, Found], *, alone: bool) -> list[Finding]:
        """The same where scores are bent, or their shape is wrong, in units of the targets.

        Sizes are had in two ways: from scores, which few cases cannot carry, and from residuals, whatever the
        shape of the targets is. Intervals hold both. A mean or a spread of scores may be off while that of
        the targets is not. That follows from another error; where there is none, it is told as what it is.
        """
        out: list[Finding] = []
        if SHIFTED in told and not (off := _either(every, _OFF_BY)).low <= 0.0 <= off.high:
            out.append(shift_finding(off._replace(pvalue=told[SHIFTED].pvalue), InUnits(self.units.unit)))
        if SPREAD in told and not (ratio := _either(every, _RATIO)).low <= 0.0 <= ratio.high:
            seen = told[SPREAD]
            out.append(spread_finding(ratio._replace(pvalue=seen.pvalue, carried=seen.carried)))
        if out or not alone:
            return out
        tellers = {SHIFTED: place_finding, SPREAD: middle_finding}
        return [tellers[name](found) for name, found in told.items()]


class ShapeClaims(ScalarClaims):
    """Skewness and tails alone: a closer look at families whose first look is at something else."""

    @property
    def tested(self) -> list[str]:
        """Names of quantities that may be told."""
        return [SKEW, TAILS]


def _either(every: Mapping[str, Found], names: tuple[str, str]) -> Found:
    """A quantity that is had in two ways, with an interval that holds those of both."""
    both = [every[name] for name in names]
    low, high = min(found.low for found in both), max(found.high for found in both)
    return both[0]._replace(estimate=0.5 * (low + high), error=0.5 * (high - low) / both[0].reach)


def _mean_of_residuals(some: NDArray) -> tuple[float, NDArray]:
    """How far targets of some cases are off, whatever their shape is."""
    return mean_of(some[:, _RESIDUALS])


def _kurtosis(u: NDArray) -> NDArray:
    """Ratio of the fourth and second L-moment ``(r,)``: .123 for normal, 0 for uniform or equal variates."""
    n = u.shape[1]
    x = (2.0 * np.arange(n) + 1.0) / n - 1.0
    ordered = np.sort(u, axis=1)
    second = ordered @ x
    return (ordered @ (2.5 * x**3 - 1.5 * x)) / np.where(second > 0.0, second, 1.0)


def _central(deviations: float) -> str:
    """The interval that holds what lies within so many standard deviations of a normal distribution."""
    return f"predicted central {percent(2.0 * float(ndtr(deviations)) - 1.0)} interval"


def _beyond_all(found: Found) -> Finding:
    """Targets so far off that levels are 0 or 1: how far, and how they spread there, cannot be told."""
    side, ends = "high" if found.estimate > 0.0 else "low", (found.low, found.high)
    short = f"targets are {_END:.0f} standard deviations or more too {side}"
    return Finding(short, SHIFTED, short, found.estimate, ends, LEVEL, found.pvalue)


def shift_finding(found: Found, units: Units = PLAIN) -> Finding:
    """Targets that are too high or too low."""
    size, low, high = (units.shift(value) for value in (found.estimate, found.low, found.high))
    short, ends, _ = error_told(SHIFT, size, (low, high), units.unit)
    return Finding(f"{short} ({ends})", SHIFTED, short, size, (low, high), LEVEL, found.pvalue)


def spread_finding(found: Found, units: Units = PLAIN) -> Finding:
    """Spreads that are too small or too large, from the logarithm of what is true over what was predicted."""
    from_right = found.less(found.expected)
    ratio, low, high = (
        float(np.exp(-units.log_spread(value)))
        for value in (from_right.estimate, from_right.high, from_right.low)
    )
    ends = low, high
    short, ends_told, _ = error_told(SPREADS, ratio, ends)
    sentence = f"{short} ({ends_told})"
    told = Finding(sentence, SPREAD, short, ratio, ends, LEVEL, found.pvalue, ratio=(ratio, *ends))
    return because_of(told, found.carried, found.cases)


def place_finding(found: Found) -> Finding:
    """Targets that lie high or low in their predictions, while their mean does not."""
    ends = found.low, found.high
    short = f"targets lie too {'high' if found.estimate > 0.0 else 'low'} in their predictions"
    told = number_told(found.estimate, ends)
    scores = f"mean normal score {told.size}, {told.ends}"
    return Finding(f"{short} ({scores})", SHIFTED, short, found.estimate, ends, LEVEL, found.pvalue)


def middle_finding(found: Found) -> Finding:
    """Targets that are nearer to the middle of their predictions than these say, or farther from it."""
    off = found.less(found.expected)
    ratio, low, high = (float(np.exp(value)) for value in (off.estimate, off.low, off.high))
    how = "closer to" if ratio < 1.0 else "farther from"
    short = f"targets lie {how} the middle of their predictions than predicted"
    told = number_told(ratio, (low, high))
    times = f"normal scores spread {told.size} times as far as they should, {told.ends}"
    return Finding(f"{short} ({times})", SPREAD, short, ratio, (low, high), LEVEL, found.pvalue)


def skew_finding(found: Found) -> Finding:
    """Targets with a longer tail on one side."""
    side = "right" if found.estimate > found.expected else "left"
    short = f"targets are skewed to the {side} of their predictions"
    ends = (found.low, found.high)
    told = number_told(found.estimate, ends)
    sentence = f"{short} (skewness {told.size}, {told.ends})"
    return Finding(sentence, SKEW, short, found.estimate, ends, LEVEL, found.pvalue)


def tails_finding(found: Found, every: Mapping[str, Found], normal: bool) -> Finding:
    """Tails that are too heavy or too light, or two peaks.

    Scores of predictions that are not `normal` are no standard deviations: what lies within so many of them
    is told as a central interval, and that of normal scores has the same share in it.
    """
    near = every[MIDDLE]
    if near.high < _FLAT < near.expected:
        short = "targets avoid the middle of their predictions (two peaks)"
        ends = near.share_ends
        where = "within half a standard deviation"
        if not normal:
            where = f"in the {_central(_NEAR)}, with the spread put right"
        told = shares_apart(near.estimate, ends, near.expected)
        shares = f"{told.size} of them ({told.ends}) {where}, {told.right} expected"
        return Finding(f"{short}: {shares}", "two peaks", short, near.estimate, ends, LEVEL, found.pvalue)
    far = every[BEYOND]
    heavier = found.estimate > found.expected
    short = f"tails are {'heavier' if heavier else 'lighter'} than predicted"
    ends = far.share_ends
    told = shares_apart(far.estimate, ends, far.expected)
    shares = (
        f"with the spread put right, {told.size} of targets ({told.ends}) are "
        f"{'beyond two standard deviations' if normal else f'outside the {_central(_FAR)}'}, "
        f"{told.right} expected"
    )
    told_of = Finding(f"{short}: {shares}", TAILS, short, far.estimate, ends, LEVEL, found.pvalue)
    return perhaps(told_of, far.expected)
