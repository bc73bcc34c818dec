"""A calibration error in units that people know: as far off as a model whose spreads are 20% too small."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import interpolate

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.schema import Check, flag, number, word
from wellcal.kernels.base import Kernel
from wellcal.measures.deviations import Cases
from wellcal.measures.presentation import Presentable, Row
from wellcal.measures.scores.casewise import log_prob_of_cases
from wellcal.measures.wording import RATIOS, amount, error_phrase, share_of, wrong_by, wrong_phrase
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.alterations import altered, centre_and_scale, kind_of_error
from wellcal.problem.alternatives import OnAverage

CASES, WITH_ATOMS = 250, 100
"""Cases whose predictions a yardstick is computed from, with closed forms and without; of more, a random
part is taken.
"""

LIKELIHOODS = 20_000
"""Cases whose likelihood says in which direction a small error is, where there are so many."""

LOGARITHMS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 1.6, math.log(10.0))
"""Logarithms of the ratios at which the calibration error is computed; between them it is interpolated."""

SLIGHT, STRONG = 0.05, 0.2
"""Shares from which an error is moderate, and strong."""

_ROUNDING = 1e-6  # KCE of the largest error, relative to that of the model, that is none


@dataclass(frozen=True, eq=False, repr=False)
class Yardstick(Presentable):
    """How far off a model is, as the size of a simple error that has the same KCE.

    A model that is perfect but for its spreads (for classes, its temperature; for counts and positive
    numbers, its means) has a KCE that grows with the size of that error. The yardstick is the size at which
    it is the estimated one. It says how large an error is, not of what kind.

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

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=400)
    >>> result = wc.calibration_test(rng.normal(mu, 1.0), wc.Normal(mu, np.full(400, 0.6)), rng=0)
    >>> result.yardstick
    As far off as a model whose spreads are 44% too small (32% to 56%)
      size  strong
    """

    kind: str
    ratio: float
    low: float
    high: float
    level: float = 0.95
    beyond: bool = False
    high_beyond: bool = False

    added: ClassVar[Mapping[str, Any]] = {"high_beyond": False}

    @property
    def share(self) -> float:
        """Size of the error, as a share of what is true."""
        return share_of(self.ratio)

    @property
    def size(self) -> str:
        """In one word: "slight" below 5%, "moderate" up to 20%, "strong" above."""
        if self.beyond:
            return "strong"
        return "slight" if self.share < SLIGHT else "moderate" if self.share <= STRONG else "strong"

    @property
    def slight(self) -> bool:
        """Whether the error is slight, and not strong at the upper end of its interval either."""
        bounded = not self.high_beyond and share_of(self.high) <= STRONG
        return self.size == "slight" and bounded

    @property
    def sentence(self) -> str:
        """The yardstick in words: "as far off as a model whose spreads are 21% too small (12% to 33%)"."""
        further = "further off than" if self.beyond else "as far off as"
        model = f"{further} a model whose {error_phrase(self.kind, self.ratio)}"
        if self.ratio != 1.0:
            return f"{model} ({self._ends()})"
        most = "or more" if self.high_beyond else "at most"
        return model if self.high == 1.0 else f"{model}, or {wrong_phrase(self.high)} {most}"

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
        }

    def _headline(self) -> str:
        return self.sentence[0].upper() + self.sentence[1:]

    def _rows(self) -> list[Row]:
        known = self.size != "slight" or self.slight
        return [("size", self.size if known else "slight, or more: the interval reaches further")]


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
    """

    kind: str
    side: int
    roots: NDArray

    def ratio(self, root: float) -> float:
        """Predicted over true where a model has this KCE, between 0.1 and 10."""
        logs = np.concatenate([[0.0], LOGARITHMS])
        increasing = np.concatenate([[True], np.diff(np.maximum.accumulate(self.roots)) > 0.0])
        x, y = self.roots[increasing], logs[increasing]
        if len(x) < 2 or root <= 0.0:
            return 1.0
        inside = min(root, float(x[-1]))
        found: Any = interpolate.PchipInterpolator(x, y)(inside)
        return math.exp(self.side * float(found))

    @property
    def largest(self) -> float:
        """The largest KCE that it knows."""
        return float(self.roots.max())


def scale_of(cases: Cases) -> Scale | None:
    """The scale for some cases; None for families and kernels that have none."""
    kind = kind_of_error(cases.predictions)
    if kind is None or len(cases) < 2:
        return None
    few = cases.in_numpy().at_most(CASES)
    try:
        seen = OnAverage(few.predictions, few.kernel, few.expectations)
        if not seen.closed:
            few = few.at_most(WITH_ATOMS)
            seen = OnAverage(few.predictions, few.kernel, few.expectations)
        side = _side(seen, few.predictions, kind, few.targets)
        if len(cases) > len(few):  # a few cases show no small error, nor its direction
            side = _side_of_many(cases.in_numpy(), kind) or side
        ratios = np.exp(side * np.array(LOGARITHMS))
        roots = [seen.root(altered(few.predictions, kind, ratio)) for ratio in ratios]
    except (TypeError, ValueError):  # a kernel that does not factor, or nothing known to alter
        return None
    return Scale(kind, side, np.array([0.0, *roots])) if np.isfinite(roots).all() else None


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


def yardstick_from(cases: Cases, root: float, ends: tuple[float, float], level: float) -> Yardstick | None:
    """The yardstick of an estimate of KCE and the ends of its interval.

    None where that error does not show: at any temperature a coin stays a coin, and what is certain certain.
    """
    scale = scale_of(cases)
    if scale is None or scale.largest <= _ROUNDING * ends[1]:
        return None
    low, high = (scale.ratio(end) for end in ends)
    beyond, high_beyond = (value > scale.largest for value in (root, ends[1]))
    return Yardstick(scale.kind, scale.ratio(root), low, high, level, beyond, high_beyond)
