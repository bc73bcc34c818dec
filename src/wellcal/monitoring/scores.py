"""What a bet may be about without a look at the past: where a target lies in its own prediction.

A score is a number for every target that a case might have had. Whatever it is, a target that is drawn from
its prediction and R other draws are exchangeable, and so are their scores: bets on them are fair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.measures.normal_scores import FARTHEST, score, standing_of
from wellcal.measures.ranks import middle_ranks
from wellcal.measures.scores.casewise import log_prob_of_cases
from wellcal.monitoring.bets import standardised
from wellcal.predictions import Normal, Predictions, Quantiles

MOST_CLASSES = 10
"""Classes without an order, up to which each has a score of its own."""

CENTRE, SPREAD, LOG_PROBABILITY = "centre", "spread", "log probability"
CLASS = "class "
"""Before the number of a class."""

_UNLIKELY = 1e6  # log probabilities beyond are those of the impossible, or of the certain


@dataclass(frozen=True)
class Scores:
    """The scores that make sense for a family.

    Attributes
    ----------
    names
        What each is about.
    ordered
        Whether targets are numbers, or classes with an order: they have a centre and a spread.
    ranks
        Whether they are only ranked among the draws, where no distribution function is known.
    classes
        Number of classes that have a score each, else 0.
    """

    names: tuple[str, ...]
    ordered: bool = False
    ranks: bool = False
    classes: int = 0

    @classmethod
    def of(cls, predictions: Predictions, *, exchanged: bool = False) -> Scores:
        """Those of a family; `exchanged` where targets are compared with the draws that were given.

        Examples
        --------
        >>> import numpy as np, wellcal as wc
        >>> Scores.of(wc.Normal(np.zeros(2), 1.0)).names
        ('centre', 'spread')
        >>> Scores.of(wc.Categorical([[0.2, 0.3, 0.5]])).names
        ('log probability', 'class 0', 'class 1', 'class 2')
        """
        if predictions.target_kind == "objects":
            return cls(())
        # Of normals the log probability is the square of the score, with the other sign.
        dense = predictions.supports("log_prob") and not isinstance(predictions, Normal)
        names = (LOG_PROBABILITY,) if dense else ()
        if predictions.kind == "classes":
            count = int(predictions.class_probs().shape[1])
            first: Any = predictions.parts[0]
            support = getattr(first, "support", None)
            if count == 2:  # the square says what the log probability says
                return cls((CENTRE, *names), ordered=True)
            if support is None or np.ndim(support) != 1:
                classes = count if count <= MOST_CLASSES else 0
                return cls((*names, *(f"{CLASS}{c}" for c in range(classes))), classes=classes)
            return cls((CENTRE, SPREAD, *names), ordered=True)
        if predictions.event_shape != ():
            return cls(names)
        ranks = exchanged or not predictions.supports("cdf")
        return cls((CENTRE, SPREAD, *names), ordered=True, ranks=ranks)

    def at(self, predictions: Predictions, candidates: NDArray) -> NDArray:
        """Scores ``(m, len(names), R + 1)`` of candidates ``(R + 1, m, ...)``, the targets first.

        Parameters
        ----------
        predictions
            The m predictions.
        candidates
            Targets that the cases might have had.
        """
        count, m = candidates.shape[:2]
        found: dict[str, NDArray] = {}
        if self.ordered:
            z = score(middle_ranks(candidates.T)) if self.ranks else normal_scores(predictions, candidates).T
            # A continuous distribution gives normal scores a variance of one, which needs no estimate.
            known = bool(predictions.continuous) and not (self.ranks or isinstance(predictions, Quantiles))
            square = (z**2 - 1.0) / np.sqrt(2.0)
            found[CENTRE] = z if known else standardised(z)
            found[SPREAD] = square if known else standardised(square)
        if LOG_PROBABILITY in self.names:
            logs = np.clip(log_prob_of_cases(candidates, predictions), -_UNLIKELY, _UNLIKELY)
            found[LOG_PROBABILITY] = standardised(logs.T)
        for c in range(self.classes):
            found[f"{CLASS}{c}"] = standardised(np.equal(candidates.T, c).astype(float))
        if not self.names:
            return np.zeros((m, 0, count))
        return np.stack([found[name] for name in self.names], axis=1)


def normal_scores(predictions: Predictions, targets: NDArray) -> NDArray:
    """Where targets ``(..., n)`` stand in predictions with a distribution function, in NumPy.

    Residuals end where levels do: what is bet on is bounded.
    """
    standing = standing_of(predictions, FARTHEST)
    assert standing is not None
    return np.asarray(standing(targets), float)
