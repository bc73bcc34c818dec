"""A calibration error in units that people know: as far off as a model whose spreads are 20% too small."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.checks import flag
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.schema import Check, listed, number, optional, word
from wellcal.kernels.base import Kernel
from wellcal.measures.deviations import Cases
from wellcal.measures.error_scale import LOGARITHMS, roots_of, scale_of, some_of
from wellcal.measures.presentation import Presentable, Row
from wellcal.measures.sides import Bound, Side, either_side
from wellcal.measures.wording import RATIOS, counted, plain_number, share_of, wrong_phrase
from wellcal.predictions.misspecification import MEANS, centre_and_scale, kind_of_error

SLIGHT, STRONG = 0.05, 0.2
"""Shares from which an error is moderate, and strong."""

SIZES = ("slight", "moderate", "strong")
"""Words for sizes of errors, the smallest first."""

_SLIGHT_SHIFT, _STRONG_SHIFT = 0.25, 1.0  # standard deviations: 90% intervals hold 89% and 74%
_UNIT_CASES = 400  # that tell how far predictions are from zero
_ROUNDING = 1e-6  # KCE of the largest error, relative to that of the model, that is none


@dataclass(frozen=True, eq=False, repr=False)
class Yardstick(Presentable):
    """How far off a model is, as the size of a simple error that has the same KCE.

    A model that is perfect but for its spreads (for classes, its temperature; for counts and positive
    numbers, its means) has a KCE that grows with the size of that error. The yardstick is the size at which
    it is the estimated one, and there are two of them: one too small, one too large. A finding of a test may
    say on which side the error is, and then that one is told. What is too small in some cases and too large
    in others, an error of another kind, and an estimate without a test have no side: both sizes are told. Of
    a test that found just that error, the yardstick is the size that it found
    (:attr:`wellcal.TestResult.yardstick`).

    Attributes
    ----------
    kind
        What the simple model has wrong: "spreads", "temperature" or "means".
    ratio
        What it predicts over what is true: 0.79 is "21% too small". 1 for an estimate of zero. Where there is
        no direction, that of the likelier side.
    low, high
        The same at the ends of the interval of KCE, the nearer to 1 first.
    level
        Coverage of that interval.
    beyond
        Whether the estimate is larger than that of any ratio between 0.1 and 10, so that `ratio` is a bound.
    high_beyond
        The same for the upper end of the interval, and `high`.
    other
        `ratio`, `low` and `high` of an error in the other direction that has the same KCE; None where there
        is none.
    other_beyond
        Whether the upper end of the interval is larger than that of any error in the other direction.
    directed
        Whether the error itself is known to have this direction. Otherwise both sides are told.
    overall
        Whether other errors were found beside one of this kind, so that it is told as the size of all.
    unit
        Of means: how many of their standard deviations predictions are from zero, on average, so that a share
        of a large count, which its interval does not hold, is not called slight. None where it is not known.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=400)
    >>> result = wc.calibration_test(rng.normal(mu, 1.0), wc.Normal(mu, np.full(400, 0.6)), rng=0)
    >>> result.yardstick
    As far off as a model whose spreads are 40% too small (36% to 45%)
      size  strong
    """

    kind: str
    ratio: float
    low: float
    high: float
    level: float = 0.95
    beyond: bool = False
    high_beyond: bool = False
    other: tuple[float, float, float] | None = None
    other_beyond: bool = False
    directed: bool = True
    overall: bool = False
    unit: float | None = None

    added: ClassVar[Mapping[str, Any]] = {
        "high_beyond": False,
        "other": None,
        "other_beyond": False,
        "directed": True,
        "overall": False,
        "unit": None,
    }

    @property
    def share(self) -> float:
        """Size of the error, as a share of what is true."""
        return share_of(self.ratio)

    @property
    def sides(self) -> tuple[Side, ...]:
        """The side that the error is on, or both where that is not known, the likelier one first."""
        own = Side(self.ratio, self.low, self.high, self.beyond, self.high_beyond)
        return (own,) if self.directed or self.other is None else (own, self._other_side)

    @property
    def surely_beyond(self) -> bool:
        """Whether all of the interval is larger than KCE of any ratio between 0.1 and 10."""
        return self.beyond and self.low == self.ratio

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """How far the error may go at the upper end of the interval, to each side that it may be on.

        To either side where the interval reaches zero: on which side an error is that may be none is a matter
        of chance.
        """
        likely, *rest = self.sides
        if self.low == 1.0 and self.other is not None:
            rest = [self._other_side]
        return tuple(side.bound for side in (likely, *rest))

    @property
    def _other_side(self) -> Side:
        ratio, low, high = self.other or (1.0, 1.0, 1.0)
        # Beyond the scale every KCE has the ratio at which that ends.
        return Side(ratio, low, high, self.other_beyond and ratio == high, self.other_beyond)

    @property
    def most(self) -> float | None:
        """How wrong it may be at the upper end of the interval; None where that is open on some side."""
        bounds = self.bounds
        if any(bound.open for bound in bounds):
            return None
        return max((bound.ratio for bound in bounds), key=share_of)

    def most_words(self) -> str:
        """How far it may go to each side, to be read after "spreads are"."""
        if self.other is None and self.low == 1.0 and not self.high_beyond:  # no side is known
            return f"{wrong_phrase(self.high)} at most"
        return either_side(self.kind, self.bounds, " at most")

    def towards(self, side: int | None) -> Yardstick:
        """The same for an error of known direction, -1 for too small, or of none."""
        if side is None:
            return replace(self, directed=False)
        if side * (self.high - 1.0) >= 0.0 or self.other is None:
            return replace(self, directed=True)
        other, own = self._other_side, (self.ratio, self.low, self.high)
        return replace(
            Yardstick(
                self.kind,
                other.ratio,
                other.low,
                other.high,
                self.level,
                other.beyond,
                other.high_beyond,
                own,
                self.high_beyond,
            ),
            unit=self.unit,
        )

    @property
    def size(self) -> str:
        """In one word: "slight" below 5%, "moderate" up to 20%, "strong" above.

        Where the error has no direction, the smaller of its two sizes decides: 17% too small and 25% too
        large are as far off. Means that are off by more than a quarter of a standard deviation are not
        slight, and by more than one strong, however small a share of them that is.
        """
        return min((self._size_of(side) for side in self.sides), key=SIZES.index)

    def _size_of(self, side: Side) -> str:
        share, shift = share_of(side.ratio), self._shift(side.ratio)
        if side.beyond or share > STRONG or shift > _STRONG_SHIFT:
            return "strong"
        return "slight" if share < SLIGHT and shift <= _SLIGHT_SHIFT else "moderate"

    def _shift(self, ratio: float) -> float:
        """How far means are off that are wrong by a ratio, in standard deviations; 0 where not known."""
        return 0.0 if self.unit is None or ratio == 0.0 else abs(1.0 / ratio - 1.0) * self.unit

    @property
    def slight(self) -> bool:
        """Whether the error is slight, and would still be at the upper end of its interval."""
        most = self.most
        if most is None or self.size != "slight":
            return False
        return share_of(most) < SLIGHT and self._shift(most) <= _SLIGHT_SHIFT

    @property
    def word(self) -> str:
        """The size as far as the interval goes: "slight or more" where it reaches further, or "not known"."""
        if self._open:
            return "not known"
        return "slight or more" if self.size == "slight" and not self.slight else self.size

    @property
    def _open(self) -> bool:
        """Whether there is no more to say than that errors of all sizes are in the interval."""
        return self.low == 1.0 and all(side.beyond or side.high_beyond for side in self.sides)

    @property
    def sentence(self) -> str:
        """The yardstick in words: "as far off as a model whose spreads are 21% too small (12% to 33%)".

        Without a direction it is the size on either side: "... 21% too small (12% to 33%), or 31% too large
        (14% to 62%)".
        """
        start, model = "all in all " if self.overall else "", f"a model whose {RATIOS[self.kind][0]}"
        if self._open:
            most = wrong_phrase(max((side.high for side in self.sides), key=share_of))
            return f"{start}as far off as {model} anything between right and {most} or more"
        if self.ratio == 1.0:
            most = "" if self.most == 1.0 else f", or {self.most_words()}"
            return f"{start}as far off as {model} right{most}"
        reached = [side for side in self.sides if not side.beyond]
        told = [side.sized(self.kind) + self._why_not_slight(side.ratio) for side in reached or self.sides]
        if reached:  # and on the other side no error is so far off
            told += [either_side(self.kind, [side.bound]) for side in self.sides if side.beyond]
        return f"{start}{'as far off as' if reached else 'further off than'} {model} {', or '.join(told)}"

    def _why_not_slight(self, ratio: float) -> str:
        shift = self._shift(ratio)
        if share_of(ratio) >= SLIGHT or shift <= _SLIGHT_SHIFT:
            return ""
        return f", which is {counted(plain_number(shift), 'standard deviations')}"

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of it."""
        ratio = number(least=0.0)
        return {
            "kind": word(*RATIOS),
            "ratio": ratio,
            "low": ratio,
            "high": ratio,
            "level": number(least=0.0, most=1.0),
            "beyond": flag,
            "high_beyond": flag,
            "other": optional(listed(ratio, length=3)),
            "other_beyond": flag,
            "directed": flag,
            "overall": flag,
            "unit": optional(number(least=0.0)),
        }

    def _headline(self) -> str:
        return self.sentence[0].upper() + self.sentence[1:]

    def _rows(self) -> list[Row]:
        return [("size", self.word)]


def surely_not_slight(cases: Cases, root: float, kind: str | None = None) -> bool:
    """Whether a yardstick at this KCE is not slight, by the small errors alone; False where that is not sure.

    The yardstick itself needs errors of all sizes, and an interval. It has the first size whose KCE is as
    large: where no error up to 5%, to either side, is that far off, it is larger.

    Examples
    --------
    >>> import wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 60)
    >>> cases = wc.skce(mu + 0.9, wc.Normal(mu, np.ones(60))).cases
    >>> surely_not_slight(cases, 0.3), surely_not_slight(cases, 0.001)
    (True, False)
    """
    sides = (-1, 1) if kind is None else (-1,)
    kind = kind_of_error(cases.predictions) if kind is None else kind
    if kind is None or len(cases) < 2:
        return False
    small = LOGARITHMS[: 1 + next(k for k, log in enumerate(LOGARITHMS) if -math.expm1(-log) >= SLIGHT)]
    try:
        few, seen = some_of(cases)
        return all(bool(np.all(roots_of(seen, few.predictions, kind, side, small) < root)) for side in sides)
    except (TypeError, ValueError):  # as `scale_of`
        return False


def yardstick_from(
    cases: Cases, root: float, ends: tuple[float, float], level: float, kind: str | None = None
) -> Yardstick | None:
    """The yardstick of an estimate of KCE and the ends of its interval.

    None where that error does not show: at any temperature a coin stays a coin, and what is certain certain.
    """
    scale = scale_of(cases, kind)
    if scale is None or scale.largest <= _ROUNDING * ends[1]:
        return None
    own = scale.widened(root, ends, level)
    low, high = (scale.ratio(end) for end in own)
    beyond, high_beyond = (value > scale.largest for value in (root, own[1]))
    other, other_beyond = None, False
    if scale.others is not None:
        there = scale.widened(root, ends, level, other=True)
        other = scale.other_ratio(root), scale.other_ratio(there[0]), scale.other_ratio(there[1])
        other_beyond = there[1] > float(scale.others.max())
    return Yardstick(
        scale.kind,
        scale.ratio(root),
        low,
        high,
        level,
        beyond,
        high_beyond,
        other,
        other_beyond,
        directed=other is None,  # KCE says how far off a model is, not to which side
        unit=unit_of(cases, scale.kind),
    )


def unit_of(cases: Cases, kind: str) -> float | None:
    """Mean of predictions in their standard deviations, where errors are shares of means.

    Examples
    --------
    >>> import wellcal as wc
    >>> cases = wc.skce(np.full(9, 100), wc.Poisson(np.full(9, 100.0))).cases
    >>> unit_of(cases, "means"), unit_of(cases, "spreads")
    (10.0, None)
    """
    if kind != MEANS:
        return None
    centre, spread = centre_and_scale(cases.in_numpy().at_most(_UNIT_CASES).predictions)
    return in_deviations(centre, spread)


def in_deviations(centre: NDArray, spread: NDArray) -> float | None:
    """Means in their standard deviations, on average over those that a share of them moves; None for none."""
    known = (spread > 0.0) & (centre != 0.0)
    far = float(np.mean(np.abs(centre[known]) / spread[known])) if known.any() else np.nan
    return far if np.isfinite(far) else None
