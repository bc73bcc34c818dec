"""Whether a few cases carry a finding about spreads, which a mean of squares does not tell.

One target that is twenty standard deviations off makes the variance of four hundred others look twice as
large. So the cases that add most are left out, one after the other. A few of them carry the error where the
others are as calibrated models are. That must not be so because what is left has lost its largest squares:
drawn targets lose as many, and what the others show beyond these is less than half of the error. Spreads that
are wrong in all cases show as much of it as before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray

_SHARE = 100  # one of so many cases may be left out
_SETS = 39  # of drawn targets
_CHANCE = 0.99  # share of calibrated models, of which the other cases must look like one
_LEFT = 0.5  # of the error: a few cases carry the larger part of it


class Ratio(NamedTuple):
    """A quantity that is the ratio of two sums over cases, or half the logarithm of one, with its terms.

    Attributes
    ----------
    above, below
        Terms of sets of targets ``(r, n)``, or what these are broadcast from.
    spread
        Whether it is half the logarithm, which is zero for spreads that are right.
    """

    above: NDArray
    below: NDArray
    spread: bool

    def less(self, most: int, sign: float) -> NDArray:
        """The quantity of all cases, and without those that add most, one after the other ``(r, most + 1)``.

        Examples
        --------
        >>> squares = np.array([[1.0, 9.0, 1.0, 1.0]])
        >>> np.exp(2.0 * Ratio(squares, np.ones((1, 1)), True).less(1, 1.0))
        array([[3., 1.]])
        """
        added = sign * (self.above - self.below if self.spread else self.above)
        order = np.argsort(added, axis=1)
        # From the smallest on: beside a very large one differences would be rounding.
        sums = [
            np.cumsum(np.take_along_axis(terms, order, axis=1), axis=1)[:, : -most - 2 : -1]
            for terms in np.broadcast_arrays(self.above, self.below)
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = sums[0] / sums[1]
            return 0.5 * np.log(found) if self.spread else found


Ratios = Callable[[NDArray], Mapping[str, Ratio]]
"""From sets of targets ``(r, n, ...)`` to those quantities that a few cases may carry, by name."""


class Carried:
    """How many cases carry each of some quantities, from what is left without these.

    Parameters
    ----------
    ratios
        How quantities are made up.
    targets
        The observed ones, ``(n, ...)``.
    """

    def __init__(self, ratios: Ratios, targets: NDArray) -> None:
        self._ratios, self._most = ratios, -(-len(targets) // _SHARE)
        known: Mapping[str, Ratio] = ratios(targets[None]) if len(targets) > self._most + 1 else {}
        self._signs = {name: sign for name, ratio in known.items() if (sign := _sign(ratio))}
        self._seen = {name: known[name].less(self._most, sign)[0] for name, sign in self._signs.items()}
        self._drawn: dict[str, list[NDArray]] = {name: [] for name in self._signs}
        self._count = 0

    def add(self, sets: NDArray) -> None:
        """Look at drawn sets of targets ``(r, n, ...)``, until there are enough."""
        some = sets[: _SETS - self._count]
        if not self._signs or not len(some):
            return
        self._count += len(some)
        ratios = self._ratios(some)
        for name, sign in self._signs.items():
            self._drawn[name].append(ratios[name].less(self._most, sign))

    def by(self, name: str, off: float) -> int | None:
        """How many cases carry an error of this size; None where not so few do.

        The others are then off by no more than calibrated models are, and by half of it at most when these
        have lost as many cases, too.
        """
        sign = self._signs.get(name, 0.0)
        if not off * sign > 0.0 or self._count < 2:
            return None
        drawn, seen = np.concatenate(self._drawn[name]), self._seen[name]
        if not (np.isfinite(seen).all() and np.isfinite(drawn).all()):  # residuals beyond what squares hold
            return None
        usual = drawn.mean(axis=0)
        others = abs(off) + sign * (seen - seen[0])
        fairly = others - sign * (usual - usual[0])
        reach = (
            float(special.stdtrit(self._count - 1, 0.5 + 0.5 * _CHANCE)) * (1.0 + 1.0 / self._count) ** 0.5
        )
        gone = (others <= reach * drawn[:, 0].std(ddof=1)) & (fairly <= _LEFT * abs(off))
        return int(np.argmax(gone)) if gone.any() else None


def _sign(ratio: Ratio) -> float:
    """On which side of what is right it is; zero for spreads that are small, which few cases do not make."""
    if ratio.spread:
        return float(ratio.above.mean() > ratio.below.mean())
    return float(np.sign(ratio.above.mean()))
