"""Findings about numbers: where targets stand, how far they spread, and in which shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.carried import Ratio
from wellcal.hypotests.findings.claims import Claims, Estimator, Found
from wellcal.hypotests.findings.finding import LEVEL, Finding, because_of
from wellcal.hypotests.findings.splits import Summary, log_spread_of, mean_of
from wellcal.hypotests.findings.trends import carried_trend, shifts, spreads, trend_finding
from wellcal.hypotests.parts.contrasts import Contrasts
from wellcal.measures.normal_scores import Standing
from wellcal.measures.score_units import PLAIN, Units
from wellcal.measures.wording import error_phrase, percent, plain_number, shift_ends, span, wrong_by
from wellcal.predictions.alterations import SHIFT, SPREADS

SHIFTED, SPREAD, SKEW, TAILS = "shift", "spread", "skew", "tails"
CENTRE, WIDTH = "centre ", "width "
"""How names of trends begin."""

EVERYWHERE = (SHIFTED, SPREAD, SKEW, TAILS, "zeros")
"""How names of errors begin that do not go with the prediction."""

_BEYOND, _MIDDLE = "_beyond", "_middle"
_NORMAL_MAD = 0.6744897501960817
_FAR, _NEAR = 2.0, 0.5  # standard deviations that are in the tails, and in the middle
_LEAST_SPREAD = 1e-4  # of targets, in units of the predicted one: less is rounding
_END = 8.0  # scores, of families whose levels end in rounding, from which they are all alike
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
            _BEYOND,
            _MIDDLE,
        ]

    def scores(self, targets: NDArray) -> NDArray:
        """The same as the estimates."""
        return self.quantities(self.standing(targets), slice(None))

    def estimator(self, targets: NDArray) -> Estimator:
        """From normal scores of all cases."""
        z = self.standing(targets[None])
        return lambda cases: self.quantities(z[:, cases], cases)[0]

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
        return self.tell_of(told, every, self.standing(targets[None])[0])

    def tell_of(self, told: Mapping[str, Found], every: Mapping[str, Found], z: NDArray) -> list[Finding]:
        """The same from normal scores ``(n,)``."""
        _, rest = self.residuals(z[None], slice(None))
        centres = self.trend_of_the_centre(told, z)
        widths = self.trend_of_the_spread(told, rest[0], every[SPREAD].expected)
        out = [finding for finding in (centres, widths) if finding is not None]
        if SHIFTED in told and centres is None:
            out.append(self.shift(told[SHIFTED]))
            if not self.normal and abs(told[SHIFTED].estimate) > _END:
                return [_beyond_all(told[SHIFTED])]
        if SPREAD in told and widths is None:
            out.append(self.spread(told[SPREAD]))
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
        manner = shifts(mean_of, self.units)
        return trend_finding(manner, z, self.summaries, found.reach, pvalue, self.groups, fine=fine)

    def trend_of_the_spread(self, told: Mapping[str, Found], rest: NDArray, right: float) -> Finding | None:
        """Where spreads are too small or too large."""
        names = [name for name in told if name.startswith(WIDTH)]
        if not names:
            return None
        found = told[names[0]]
        pvalue = min(told[name].pvalue for name in [*names, *({SPREAD} & told.keys())])

        def measure(values: NDArray) -> tuple[float, NDArray]:
            value, influence = log_spread_of(values)
            return value - right, influence

        manner = spreads(measure, self.units)
        trend = trend_finding(manner, rest, self.summaries, found.reach, pvalue, self.groups)
        return carried_trend(trend, found.carried, found.cases)

    def shift(self, found: Found) -> Finding:
        """Targets that are too high or too low everywhere."""
        return shift_finding(found, self.units)

    def spread(self, found: Found) -> Finding:
        """Spreads that are too small or too large everywhere."""
        return spread_finding(found, self.units)


class ShapeClaims(ScalarClaims):
    """Skewness and tails alone: a closer look at families whose first look is at something else."""

    @property
    def tested(self) -> list[str]:
        """Names of quantities that may be told."""
        return [SKEW, TAILS]


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
    short = error_phrase(SHIFT, size, units.unit, ends=(low, high))
    return Finding(
        f"{short} ({shift_ends(low, high)})", SHIFTED, short, size, (low, high), LEVEL, found.pvalue
    )


def spread_finding(found: Found, units: Units = PLAIN) -> Finding:
    """Spreads that are too small or too large, from the logarithm of what is true over what was predicted."""
    from_right = found.less(found.expected)
    ratio, low, high = (
        float(np.exp(-units.log_spread(value)))
        for value in (from_right.estimate, from_right.high, from_right.low)
    )
    ends = low, high
    short = error_phrase(SPREADS, ratio, ends=ends)
    sentence = f"{short} ({wrong_by(*ends, ratio)})"
    told = Finding(sentence, SPREAD, short, ratio, ends, LEVEL, found.pvalue, ratio=(ratio, *ends))
    return because_of(told, found.carried, found.cases)


def skew_finding(found: Found) -> Finding:
    """Targets with a longer tail on one side."""
    side = "right" if found.estimate > found.expected else "left"
    short = f"targets are skewed to the {side} of their predictions"
    ends = (found.low, found.high)
    skewness = f"skewness {plain_number(found.estimate)}, {span(*ends)}"
    return Finding(f"{short} ({skewness})", SKEW, short, found.estimate, ends, LEVEL, found.pvalue)


def tails_finding(found: Found, every: Mapping[str, Found], normal: bool) -> Finding:
    """Tails that are too heavy or too light, or two peaks.

    Scores of predictions that are not `normal` are no standard deviations: what lies within so many of them
    is told as a central interval, and that of normal scores has the same share in it.
    """
    near = every[_MIDDLE]
    if near.high < _FLAT < near.expected:
        short = "targets avoid the middle of their predictions (two peaks)"
        ends = near.share_ends
        where = "within half a standard deviation"
        if not normal:
            where = f"in the {_central(_NEAR)}, with the spread put right"
        shares = (
            f"{percent(near.estimate)} of them ({span(*ends, percent)}) {where}, "
            f"{percent(near.expected)} expected"
        )
        return Finding(f"{short}: {shares}", "two peaks", short, near.estimate, ends, LEVEL, found.pvalue)
    far = every[_BEYOND]
    heavier = found.estimate > found.expected
    short = f"tails are {'heavier' if heavier else 'lighter'} than predicted"
    ends = far.share_ends
    shares = (
        f"with the spread put right, {percent(far.estimate)} of targets ({span(*ends, percent)}) are "
        f"{'beyond two standard deviations' if normal else f'outside the {_central(_FAR)}'}, "
        f"{percent(far.expected)} expected"
    )
    return Finding(f"{short}: {shares}", TAILS, short, far.estimate, ends, LEVEL, found.pvalue)
