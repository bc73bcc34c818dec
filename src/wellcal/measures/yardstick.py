"""A calibration error in units that people know: as far off as a model whose spreads are 20% too small."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.schema import Check, flag, listed, number, optional, word
from wellcal.kernels.base import Kernel
from wellcal.measures.deviations import Cases
from wellcal.measures.presentation import Presentable, Row
from wellcal.measures.scores.casewise import log_prob_of_cases
from wellcal.measures.wording import (
    RATIOS,
    amount,
    error_phrase,
    share_of,
    worse_side,
    wrong_by,
    wrong_phrase,
)
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.alterations import altered, centre_and_scale, kind_of_error
from wellcal.problem.alternatives import OnAverage

CASES, WITH_ATOMS = 250, 100
"""Cases whose predictions a yardstick is computed from, with closed forms and without; of more, a random
part is taken.
"""

LIKELIHOODS = 20_000
"""Cases whose likelihood says in which direction a small error is, where there are so many."""

LARGEST = 10.0
"""The largest ratio that is looked at, to either side."""

LOGARITHMS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 1.6, math.log(LARGEST))
"""Logarithms of the ratios at which the calibration error is computed; between them it is interpolated."""

SLIGHT, STRONG = 0.05, 0.2
"""Shares from which an error is moderate, and strong."""

_ROUNDING = 1e-6  # KCE of the largest error, relative to that of the model, that is none


@dataclass(frozen=True, eq=False, repr=False)
class Yardstick(Presentable):
    """How far off a model is, as the size of a simple error that has the same KCE.

    A model that is perfect but for its spreads (for classes, its temperature; for counts and positive
    numbers, its means) has a KCE that grows with the size of that error. The yardstick is the size at which
    it is the estimated one. It says how large an error is, not of what kind: what is too small in some cases
    and too large in others, or an error of another kind, is told without a direction. Of a test that found
    just that error, the yardstick is the size that it found (:attr:`wellcal.TestResult.yardstick`).

    Attributes
    ----------
    kind
        What the simple model has wrong: "spreads", "temperature" or "means".
    ratio
        What it predicts over what is true: 0.79 is "21% too small". 1 for an estimate of zero.
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
        Whether the error itself has this direction. Otherwise that which is too small is told, as "wrong".
    overall
        Whether other errors were found beside one of this kind, so that it is told as the size of all.

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

    added: ClassVar[Mapping[str, Any]] = {
        "high_beyond": False,
        "other": None,
        "other_beyond": False,
        "directed": True,
        "overall": False,
    }

    @property
    def share(self) -> float:
        """Size of the error, as a share of what is true."""
        return share_of(self._told.ratio)

    @property
    def most(self) -> float | None:
        """How wrong it may be at the upper end of the interval; None where that is open.

        To either side where the interval reaches zero: on which side an error is that may be none is a matter
        of chance.
        """
        if self.low != 1.0 and not self.high_beyond:
            return self.high
        if self.high_beyond or self.other_beyond:
            return None
        ends = [self.high, *([] if self.other is None else [self.other[2]])]
        return max(ends, key=share_of)

    def most_words(self, at_most: str = " at most") -> str | None:
        """The same in words, to be read after "spreads are"; where both sides may be meant it says so."""
        if self.most is None:
            return None
        either = self.low == 1.0 and self.other is not None and self.most != 1.0
        return worse_side(self.kind, self.most, at_most) if either else wrong_phrase(self.most) + at_most

    @property
    def _told(self) -> Yardstick:
        """What is told: without a direction always that which is too small, whichever side is likelier."""
        return self if self.directed else replace(self.towards(-1), directed=False)

    def towards(self, side: int | None) -> Yardstick:
        """The same for an error of known direction, -1 for too small, or of none."""
        if side is None:
            return replace(self, directed=False)
        if side * (self.high - 1.0) >= 0.0 or self.other is None:
            return self
        ratio, low, high = self.other
        beyond = not LARGEST**-1 < ratio < LARGEST
        own = self.ratio, self.low, self.high
        return Yardstick(
            self.kind, ratio, low, high, self.level, beyond, self.other_beyond, own, self.high_beyond
        )

    @property
    def size(self) -> str:
        """In one word: "slight" below 5%, "moderate" up to 20%, "strong" above."""
        if self._told.beyond:
            return "strong"
        return "slight" if self.share < SLIGHT else "moderate" if self.share <= STRONG else "strong"

    @property
    def slight(self) -> bool:
        """Whether the error is slight, and would still be at the upper end of its interval."""
        most = self._told.most
        return self.size == "slight" and most is not None and share_of(most) < SLIGHT

    @property
    def word(self) -> str:
        """The size as far as the interval goes: "slight or more" where it reaches further, or "not known"."""
        if self._open:
            return "not known"
        return "slight or more" if self.size == "slight" and not self.slight else self.size

    @property
    def _open(self) -> bool:
        """Whether there is no more to say than that errors of all sizes are in the interval."""
        told = self._told
        far = told.beyond or told.high_beyond or (told.ratio == 1.0 and told.most is None)
        return told.low == 1.0 and far

    @property
    def sentence(self) -> str:
        """The yardstick in words: "as far off as a model whose spreads are 21% too small (12% to 33%)"."""
        told = self._told
        if self._open:
            far = f"{RATIOS[self.kind][0]} anything between right and {wrong_phrase(told.high)} or more"
            return f"{'all in all ' if self.overall else ''}as far off as a model whose {far}"
        far = "further off than" if told.beyond else "as far off as"
        model = f"{'all in all ' if self.overall else ''}{far} a model whose"
        if told.ratio != 1.0:
            wrong = f"{RATIOS[self.kind][0]} {wrong_phrase(told.ratio)}"
            return (
                f"{model} {error_phrase(self.kind, told.ratio) if self.directed else wrong} ({told._ends()})"
            )
        right = f"{model} {error_phrase(self.kind, 1.0)}"
        return right if self.most == 1.0 else f"{right}, or {self.most_words()}"

    def _ends(self) -> str:
        ends = wrong_by(min(self.low, self.high), max(self.low, self.high), self.ratio)
        if not (self.beyond or self.high_beyond):
            return ends
        return f"{amount(self.low) if self.low == self.high else ends} or more"

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
        }

    def _headline(self) -> str:
        return self.sentence[0].upper() + self.sentence[1:]

    def _rows(self) -> list[Row]:
        return [("size", self.word)]


@dataclass(frozen=True, eq=False)
class Scale:
    """KCE as a function of the size of a simple error, on the side that observed deviations are like.

    Attributes
    ----------
    kind
        The kind of error.
    side
        -1 where predictions are too small, 1 where they are too large.
    roots
        KCE at `LOGARITHMS`, zero first.
    others
        The same on the other side; None where there is no such error.
    """

    kind: str
    side: int
    roots: NDArray
    others: NDArray | None = None

    def ratio(self, root: float) -> float:
        """Predicted over true where a model has this KCE, between 0.1 and 10."""
        return _inverted(self.roots, self.side, root)

    def other_ratio(self, root: float) -> float | None:
        """The same on the other side."""
        return None if self.others is None else _inverted(self.others, -self.side, root)

    def wrong(self, root: float) -> float | None:
        """The ratio that is further from 1 of both sides; None where one of them does not reach this KCE."""
        other = self.other_ratio(root)
        if root > self.largest or (self.others is not None and root > float(self.others.max())):
            return None
        return max((self.ratio(root), *([] if other is None else [other])), key=share_of)

    @property
    def largest(self) -> float:
        """The largest KCE that it knows."""
        return float(self.roots.max())


def _inverted(roots: NDArray, side: int, root: float) -> float:
    logs = np.concatenate([[0.0], LOGARITHMS])
    increasing = np.concatenate([[True], np.diff(np.maximum.accumulate(roots)) > 0.0])
    x, y = roots[increasing], logs[increasing]
    if len(x) < 2 or root <= 0.0:
        return 1.0
    inside = min(root, float(x[-1]))
    from scipy import interpolate  # slow to load

    found: Any = interpolate.PchipInterpolator(x, y)(inside)
    return math.exp(side * float(found))


def scale_of(cases: Cases, kind: str | None = None) -> Scale | None:
    """The scale for some cases; None for families and kernels that have none.

    `kind` is that of the error; None takes the one that the family is measured by. Counts can be too little
    dispersed, which has no other side.
    """
    one_sided = kind is not None
    kind = kind_of_error(cases.predictions) if kind is None else kind
    if kind is None or len(cases) < 2:
        return None
    try:
        few, seen = _some_of(cases)
        side = -1 if one_sided else _side(seen, few.predictions, kind, few.targets)
        if len(cases) > len(few) and not one_sided:  # a few cases show no small error, nor its direction
            side = _side_of_many(cases.in_numpy(), kind) or side
        own = _roots(seen, few.predictions, kind, side)
        other = None if one_sided else _roots(seen, few.predictions, kind, -side)
    except (TypeError, ValueError):  # a kernel that does not factor, or nothing known to alter
        return None
    known = np.isfinite(own).all() and (other is None or np.isfinite(other).all())
    return Scale(kind, side, own, other) if known else None


def _some_of(cases: Cases) -> tuple[Cases, OnAverage]:
    """Cases that errors are tried on, and their calibration error for such a truth."""
    few = cases.in_numpy().at_most(CASES)
    seen = OnAverage(few.predictions, few.kernel, few.expectations)
    if seen.closed:
        return few, seen
    few = few.at_most(WITH_ATOMS)
    return few, OnAverage(few.predictions, few.kernel, few.expectations)


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
        few, seen = _some_of(cases)
        return all(bool(np.all(_roots(seen, few.predictions, kind, side, small) < root)) for side in sides)
    except (TypeError, ValueError):  # as `scale_of`
        return False


def _roots(
    seen: OnAverage,
    predictions: Predictions,
    kind: str,
    side: int,
    logarithms: tuple[float, ...] = LOGARITHMS,
) -> NDArray:
    """KCE of errors to one side, zero first."""
    ratios = np.exp(side * np.array(logarithms))
    return np.array([0.0, *(seen.root(altered(predictions, kind, ratio)) for ratio in ratios)])


def _side(seen: OnAverage, predictions: Predictions, kind: str, targets: NDArray) -> int:
    step = math.exp(LOGARITHMS[3])
    small, large = (seen.likeness(altered(predictions, kind, ratio), targets) for ratio in (1.0 / step, step))
    return -1 if small >= large else 1


def _side_of_many(cases: Cases, kind: str) -> int | None:
    """The direction of a small error in which targets are likelier; None where nothing tells."""
    some = cases.at_most(LIKELIHOODS)
    if isinstance(some.predictions, Samples):  # without likelihoods, but with a mean and a spread
        centre, spread = centre_and_scale(some.predictions)
        draws = int(some.predictions.values.shape[1])
        # Draws miss the mean too; with the target among them, or as atoms, they are all there is.
        usual = (draws + 1.0) / (draws - 1.0) if some.predictions.kind == "draws" and draws > 1 else 1.0
        beyond = float(np.sum((some.targets - centre) ** 2) - usual * np.sum(spread**2))
    else:
        step = LOGARITHMS[0]
        small, large = (_likelihood(some, kind, math.exp(side * step)) for side in (-1, 1))
        beyond = small - large
    return None if not np.isfinite(beyond) or beyond == 0.0 else -1 if beyond > 0.0 else 1


def _likelihood(cases: Cases, kind: str, ratio: float) -> float:
    """Mean log-likelihood of targets where predictions are wrong by a ratio."""
    found = altered(cases.predictions, kind, ratio)
    if not found.true.supports("log_prob"):
        return math.nan
    return float(np.mean(log_prob_of_cases(found.index(cases.targets), found.true)))


def yardstick_from(
    cases: Cases, root: float, ends: tuple[float, float], level: float, kind: str | None = None
) -> Yardstick | None:
    """The yardstick of an estimate of KCE and the ends of its interval.

    None where that error does not show: at any temperature a coin stays a coin, and what is certain certain.
    """
    scale = scale_of(cases, kind)
    if scale is None or scale.largest <= _ROUNDING * ends[1]:
        return None
    low, high = (scale.ratio(end) for end in ends)
    beyond, high_beyond = (value > scale.largest for value in (root, ends[1]))
    other, other_beyond = None, False
    if scale.others is not None:
        at, near, far = (_inverted(scale.others, -scale.side, value) for value in (root, *ends))
        other = at, near, far
        other_beyond = ends[1] > float(scale.others.max())
    return Yardstick(
        scale.kind, scale.ratio(root), low, high, level, beyond, high_beyond, other, other_beyond
    )
