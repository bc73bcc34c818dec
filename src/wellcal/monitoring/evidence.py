r"""Evidence over all times at which a change may have begun, and over all ways of betting on it.

A bettor who starts at case s with a capital of one has :math:`\prod_{i = s}^t e_i` after case t. What is
given to bettors who start at each time, with shares :math:`\pi_s` that sum to one, is

.. math:: E_t = \sum_{s \le t} \pi_s \prod_{i = s}^t e_i + \sum_{s > t} \pi_s,

a martingale with mean one where each :math:`e_i` has mean one given the past. It needs one number:
:math:`A_t = e_t (A_{t - 1} + \pi_t)`. With :math:`\pi_s = 1` and nothing held back it is an e-detector (Shin,
Ramdas, Rinaldo, 2024): the mean number of cases until it reaches c is at least c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray

LEVEL = 0.95
"""Coverage of the interval of an onset, where the best bets are likelihood ratios."""

_FAVOURED = 0.35  # share of the capital for the very beginning
_EARLY, _FLAT = 2.0, 300.0  # cases within which the two parts hardly fall
GRID = 4  # steps in which the early end of an interval is kept
_WIDTH = np.log(2.0 / (1.0 - LEVEL))
"""What the logarithm of a likelihood may lose within the interval of an onset.

Before the onset the product of bets, read backwards, exceeds exp(w) with probability at most exp(-w) (Ville's
inequality), and after it so does the product of their inverses, if the bets are likelihood ratios: 2 exp(-w)
in all."""


def held_back(t: NDArray | int) -> Any:
    """Share of the capital that starts after case t: from 1 at t = 0 down to 0, slowly.

    A third of it favours changes at the very beginning, and falls like ``1 / log t``, about as slowly as a
    sum of shares can. The rest does not care within the first hundreds of cases, and falls like
    ``1 / sqrt(t)``: until the millionth case that leaves more for each start.

    Examples
    --------
    >>> held_back(0), round(held_back(100), 2), round(held_back(10_000), 2)
    (1.0, 0.62, 0.14)
    """
    share = _FAVOURED * math.log(_EARLY) / np.log(_EARLY + t) + (1.0 - _FAVOURED) / np.sqrt(1.0 + t / _FLAT)
    return share if isinstance(t, np.ndarray) else float(share)


@dataclass(frozen=True)
class Evidence:
    """Products of bets of K experts, from all times at which they may have started.

    Attributes
    ----------
    cases
        Cases since the start, t.
    value
        Logarithm of E_t.
    logs
        Logarithms of A_t for each expert, which has a share of 1 / K.
    sums
        Logarithms of the products of all bets since the start.
    lows, low_at
        The lowest of these sums, and after how many cases it was: the most likely onset of a change that an
        expert bets on is the case after that.
    late
        The last number of cases after which the sum was within the width of an interval of its lowest.
    passed
        After how many cases the sum first fell below levels of a grid, ``(K, 5)``, the lowest first.
    """

    cases: int
    value: float
    logs: NDArray
    sums: NDArray
    lows: NDArray
    low_at: NDArray
    late: NDArray
    passed: NDArray

    @classmethod
    def start(cls, experts: int, *, detector: bool) -> Evidence:
        """Before the first case."""
        none = np.zeros(experts, np.int64)
        zero = np.zeros(experts)
        start = np.full(experts, -np.inf)
        passed = np.zeros((experts, GRID + 1), np.int64)
        return cls(0, -np.inf if detector else 0.0, start, zero, zero, none, none, passed)

    def advance(self, bets: NDArray, *, detector: bool) -> tuple[Evidence, NDArray]:
        """The evidence after m more cases, and the logarithm of E after each of them.

        Parameters
        ----------
        bets
            Logarithms of the bets, ``(m, K)``.
        detector
            Whether everybody starts with a capital of one, for an average run length.
        """
        m, experts = bets.shape
        held = np.zeros(m + 1) if detector else held_back(np.arange(self.cases, self.cases + m + 1))
        shares = np.ones(m) if detector else held[:-1] - held[1:]
        starts = np.log(shares / experts)
        path = np.empty((m, experts))
        logs = self.logs
        for i in range(m):  # one after the other: the same for a batch as for single cases
            logs = np.logaddexp(logs, starts[i]) + bets[i]
            path[i] = logs
        most = path.max(axis=1)
        with np.errstate(divide="ignore"):
            values = np.logaddexp(most + np.log(np.exp(path - most[:, None]).sum(axis=1)), np.log(held[1:]))
        return self._moved(float(values[-1]), logs, bets), values

    def _moved(self, value: float, logs: NDArray, bets: NDArray) -> Evidence:
        m = len(bets)
        sums = np.cumsum(np.concatenate([self.sums[None], bets]), axis=0)
        lows = np.minimum.accumulate(np.concatenate([self.lows[None], sums[1:]]), axis=0)
        times = self.cases + np.arange(1, m + 1)[:, None]
        new = np.where(lows[1:] < lows[:-1], times, 0).max(axis=0)
        near = np.where(sums[1:] <= lows[1:] + _WIDTH, times, 0).max(axis=0)
        depth = np.floor(lows * (-GRID / _WIDTH)).astype(np.int64)
        wanted = depth[-1][:, None] - np.arange(GRID + 1)
        above = (depth[:, :, None] < wanted).sum(axis=0)  # how many of the m + 1 sums were not as low yet
        back = np.clip(np.arange(GRID + 1) - (depth[-1] - depth[0])[:, None], 0, None)
        passed = np.where(above > 0, self.cases + above, np.take_along_axis(self.passed, back, axis=1))
        return Evidence(
            cases=self.cases + m,
            value=value,
            logs=logs,
            sums=sums[-1],
            lows=lows[-1],
            low_at=np.maximum(self.low_at, new),
            late=np.maximum(self.late, near),
            passed=passed,
        )

    def onset(self, lags: NDArray) -> tuple[int, int, int, int]:
        """The best expert, the case at which the change that it bets on began, and an interval of cases.

        All starts of all experts belong to the interval whose product of bets is at most ``exp(w)`` times
        below the largest of all, w being the width.

        Parameters
        ----------
        lags
            How many cases each expert has to learn from before it can win: the interval begins as much
            earlier.
        """
        won = self.sums - self.lows
        best = int(np.argmax(won))
        room = _WIDTH - (won[best] - won)
        near = np.flatnonzero(room >= 0)
        # The next coarser level of the grid.
        column = np.clip(np.ceil(room * (GRID / _WIDTH)), 0, GRID).astype(np.int64)
        first = int(np.min(self.passed[near, column[near]] - lags[near]))
        case, first, last = (
            # There is nothing to have won after the last case.
            min(max(int(x), 0), self.cases - 1) + 1
            for x in (self.low_at[best], first, self.late[near].max())
        )
        return best, case, first, last

    def check(self, cases: int, experts: int, *, detector: bool) -> None:
        """Refuse what `experts` experts cannot have come to after so many cases."""
        if self.cases != cases:
            raise ValueError(
                f"evidence.cases must be {cases}, as n_samples and started say, found {self.cases}"
            )
        for name in ("logs", "sums", "lows", "low_at", "late"):
            found = np.shape(getattr(self, name))
            if found != (experts,):
                raise ValueError(
                    f"evidence.{name} must have {experts} entries, as many as experts, found {found}"
                )
        if self.passed.shape != (experts, GRID + 1):
            raise ValueError(
                f"evidence.passed must have {experts} rows of {GRID + 1}, found shape {self.passed.shape}"
            )
        now = float(np.logaddexp.reduce(self.logs))
        now = now if detector else float(np.logaddexp(now, np.log(held_back(self.cases))))
        if abs(self.value - now) > 1e-9 * max(1.0, abs(now)):
            raise ValueError(f"evidence.value must be {now:.6g}, as logs say, found {self.value:.6g}")
        ordered = (self.passed[:, -1] <= self.low_at) & (self.low_at <= self.late) & (self.late <= cases)
        if not (ordered & (self.passed.min(axis=1) >= 0) & (self.lows <= np.minimum(self.sums, 0.0))).all():
            raise ValueError("evidence must have passed <= low_at <= late <= cases, and lows <= sums")
