"""Those who bet against a model: each on one score of the targets, with one boldness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.engines import Engine
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel
from wellcal.monitoring.bets import ETAS, log_bets, standardised
from wellcal.monitoring.pasts import past_witness
from wellcal.monitoring.scores import Scores
from wellcal.predictions import Predictions

WINDOWS = (50, 200)
"""Numbers of recent cases that witnesses are made of, beside all that are kept."""

PLACES = 20
"""Candidates at which a witness is evaluated at most: the target and the first draws."""

LEARNING = 20
"""Cases that a witness needs to see a change that is worth an alarm."""

_BOTH = (*(-eta for eta in reversed(ETAS)), *ETAS)


@dataclass(frozen=True)
class Experts:
    """All that bet on predictions of a family.

    Attributes
    ----------
    windows
        Numbers of past cases that the witnesses are made of. A witness knows its direction, and is followed.
    scores
        Scores without a past, which may be too high or too low.
    """

    windows: tuple[int, ...]
    scores: Scores

    @classmethod
    def of(cls, predictions: Predictions, memory: int, *, exchanged: bool = False) -> Experts:
        """Those for predictions like these.

        Examples
        --------
        >>> import wellcal as wc
        >>> experts = Experts.of(wc.Bernoulli([0.3]), memory=1000)
        >>> experts.count, experts.topic(0), experts.topic(16)
        (28, 'witness', 'centre')
        """
        windows = (*(size for size in WINDOWS if size < memory), memory)
        return cls(windows, Scores.of(predictions, exchanged=exchanged))

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.windows) * len(ETAS) + len(self.scores.names) * len(_BOTH)

    @property
    def lags(self) -> NDArray:
        """Cases from which each learns before it can win, ``(count,)``: witnesses have to see a change."""
        return np.where(np.arange(self.count) < len(self.windows) * len(ETAS), LEARNING, 0)

    def topic(self, k: int) -> str:
        """What expert k bets on."""
        scored = k - len(self.windows) * len(ETAS)
        return "witness" if scored < 0 else self.scores.names[scored // len(_BOTH)]

    def log_bets(
        self,
        kernel: Kernel | None,
        predictions: Predictions,
        targets: NDArray,
        candidates: NDArray,
        *,
        engine: Engine | None,
        expectations: str | Lowering,
    ) -> NDArray:
        """Logarithms of the bets on the last m of n cases, ``(m, count)``.

        Parameters
        ----------
        kernel
            Kernel of the witness; without one nobody bets on that.
        predictions, targets
            n cases, the last m of which are new.
        candidates
            ``(R + 1, m, ...)``, the targets of the new cases and draws from their predictions.
        engine, expectations
            As in `past_witness`.
        """
        n, m = len(predictions), candidates.shape[1]
        parts: list[NDArray] = [np.zeros((m, len(self.windows), len(ETAS)))]
        if kernel is not None and engine is not None:
            witness = past_witness(
                kernel,
                predictions,
                targets,
                candidates[:PLACES],
                windows=self.windows,
                engine=engine,
                expectations=expectations,
            )
            parts = [log_bets(standardised(witness))]
        if self.scores.names:
            parts.append(log_bets(self.scores.at(predictions[n - m :], candidates), _BOTH))
        return np.concatenate([_flat(part) for part in parts], axis=1)


def _flat(bets: NDArray) -> NDArray:
    return bets.reshape(len(bets), -1)
