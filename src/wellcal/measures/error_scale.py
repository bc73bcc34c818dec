"""KCE as a function of the size of a simple error: what yardsticks are read from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray
from wellcal.measures.deviations import Cases
from wellcal.measures.scores.casewise import log_prob_of_cases
from wellcal.measures.wording import share_of
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.misspecification import centre_and_scale, kind_of_error, misspecified
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
    errors, other_errors
        Standard errors of both, as shares of them: they are computed from some of the cases.
    """

    kind: str
    side: int
    roots: NDArray
    others: NDArray | None = None
    errors: NDArray | float = 0.0
    other_errors: NDArray | float = 0.0

    def ratio(self, root: float) -> float:
        """Predicted over true where a model has this KCE, between 0.1 and 10."""
        return _inverted(self.roots, self.side, root)

    def other_ratio(self, root: float) -> float:
        """The same on the other side; 1 where there is none."""
        return 1.0 if self.others is None else _inverted(self.others, -self.side, root)

    def reached(self, root: float) -> tuple[float | None, float | None]:
        """The ratios that have this KCE on both sides, the one further from 1 first.

        None where no error to that side reaches it, which is furthest; and second where there is no other.
        """
        own = self.ratio(root) if root <= self.largest else None
        if self.others is None:
            return own, None
        other = self.other_ratio(root) if root <= float(self.others.max()) else None
        further, nearer = sorted((own, other), key=_furthest, reverse=True)
        return further, nearer

    @property
    def largest(self) -> float:
        """The largest KCE that it knows."""
        return float(self.roots.max())

    def widened(
        self, root: float, ends: tuple[float, float], level: float, *, other: bool = False
    ) -> tuple[float, float]:
        """An interval of KCE whose ends are those of the error that it amounts to.

        KCE is known from all cases, and to which error it amounts from some of them: the two are as good as
        independent, and squares of half widths add up.
        """
        roots, errors = (self.others, self.other_errors) if other else (self.roots, self.errors)
        if roots is None or root <= 0.0:
            return ends
        known = np.broadcast_to(errors, roots.shape)
        share = float(np.interp(root, np.maximum.accumulate(roots), known))
        half = float(special.ndtri(0.5 + 0.5 * level)) * share * root
        low, high = ends
        return max(root - math.hypot(root - low, half), 0.0), root + math.hypot(high - root, half)


def _furthest(ratio: float | None) -> float:
    return math.inf if ratio is None else share_of(ratio)


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
        few, seen = some_of(cases)
        side = -1 if one_sided else _side(seen, few.predictions, kind, few.targets)
        if len(cases) > len(few) and not one_sided:  # a few cases show no small error, nor its direction
            side = _side_of_many(cases.in_numpy(), kind) or side
        own, errors = _roots_and_errors(seen, few.predictions, kind, side)
        other, others = (None, 0.0) if one_sided else _roots_and_errors(seen, few.predictions, kind, -side)
    except (TypeError, ValueError):  # a kernel that does not factor, or nothing known to alter
        return None
    known = np.isfinite(own).all() and (other is None or np.isfinite(other).all())
    # Of all cases there is nothing that these few do not know.
    left = math.sqrt(1.0 - len(few) / len(cases))
    return Scale(kind, side, own, other, left * errors, left * others) if known else None


def some_of(cases: Cases) -> tuple[Cases, OnAverage]:
    """Cases that errors are tried on, and their calibration error for such a truth."""
    few = cases.in_numpy().at_most(CASES)
    seen = OnAverage(few.predictions, few.kernel, few.expectations)
    if seen.closed:
        return few, seen
    few = few.at_most(WITH_ATOMS)
    return few, OnAverage(few.predictions, few.kernel, few.expectations)


def roots_of(
    seen: OnAverage,
    predictions: Predictions,
    kind: str,
    side: int,
    logarithms: tuple[float, ...] = LOGARITHMS,
) -> NDArray:
    """KCE of errors to one side, zero first."""
    return _roots_and_errors(seen, predictions, kind, side, logarithms)[0]


def _roots_and_errors(
    seen: OnAverage,
    predictions: Predictions,
    kind: str,
    side: int,
    logarithms: tuple[float, ...] = LOGARITHMS,
) -> tuple[NDArray, NDArray]:
    """The same with standard errors as shares of them; that of zero is that of the smallest error."""
    ratios = np.exp(side * np.array(logarithms))
    found = [seen.root_and_error(misspecified(predictions, kind, ratio)) for ratio in ratios]
    roots, errors = (np.array(part) for part in zip((0.0, found[0][1]), *found, strict=True))
    return roots, errors


def _side(seen: OnAverage, predictions: Predictions, kind: str, targets: NDArray) -> int:
    step = math.exp(LOGARITHMS[3])
    small, large = (
        seen.likeness(misspecified(predictions, kind, ratio), targets) for ratio in (1.0 / step, step)
    )
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
    found = misspecified(cases.predictions, kind, ratio)
    if not found.true.supports("log_prob"):
        return math.nan
    return float(np.mean(log_prob_of_cases(found.index(cases.targets), found.true)))
