"""What is told where a test saw that targets are not where they should be, and no moment says it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from wellcal._arrays.namespaces import NDArray, namespace
from wellcal._arrays.ops import ops_for
from wellcal.hypotests.findings.claims import Claims, Estimator, Found
from wellcal.hypotests.findings.finding import LEVEL, Finding, perhaps
from wellcal.hypotests.parts.surprise import Surprise
from wellcal.measures.normal_scores import Standing
from wellcal.measures.wording import number_told, percent, shares_apart
from wellcal.predictions import Predictions

LEVELS, SURPRISE = "levels", "surprise"

_TENTHS = 10
_MOST_LEVELS = 2  # that are told
_EXACT = 1e-6  # of a level


class LevelClaims(Claims):
    """Which share of targets falls between the deciles of their predictions."""

    def __init__(self, standing: Standing, of: str = "predictions", *, exact: bool = False) -> None:
        """`standing` are normal scores of targets, and `of` says what has quantiles.

        `exact`: a tenth of the targets is expected in each place, which drawn ones need not tell.
        """
        self.standing, self.of, self.exact = standing, of, exact
        self.names = [f"{LEVELS} {k}" for k in range(_TENTHS)]

    def scores(self, targets: NDArray) -> NDArray:
        """The same as the estimates."""
        return np.stack([_shares(cells) for cells in self._cells(targets)])

    def expected(self, scores: NDArray) -> NDArray:
        """A tenth, or what drawn targets say where some values have a probability of their own."""
        return np.full(_TENTHS, 1.0 / _TENTHS) if self.exact else scores

    def estimator(self, targets: NDArray) -> Estimator:
        """From the tenth that each target is in."""
        cells = self._cells(targets[None])[0]
        return lambda cases: _shares(cells[cases])

    def _cells(self, targets: NDArray) -> NDArray:
        scores: NDArray = self.standing(targets)
        levels = ops_for(namespace(scores)).ndtr(scores)
        return np.minimum((_TENTHS * levels).astype(int), _TENTHS - 1)

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """The clearest tenths."""
        return [self._tenth(int(name.split()[-1]), told[name]) for name in list(told)[:_MOST_LEVELS]]

    def _tenth(self, place: int, found: Found) -> Finding:
        low, high = (percent(end / _TENTHS) for end in (place, place + 1))
        where = f"between the {low} and {high} quantiles"
        if place == 0:
            where = f"below the {high} quantile"
        elif place == _TENTHS - 1:
            where = f"above the {low} quantile"
        ends = found.share_ends
        told = shares_apart(found.estimate, ends, found.expected)
        start = f"targets fall {where} of their {self.of} {told.size} of the time"
        said = f"expected {told.right}"
        texts = f"{start} ({told.ends}), {said}", LEVELS, f"{start}, {said}"
        return perhaps(Finding(*texts, found.estimate, ends, LEVEL, found.pvalue), found.expected)


def has_tenths(predictions: Predictions, standing: Standing) -> bool:
    """Whether all predictions have deciles with a tenth of the probability between them: no atoms there.

    Examples
    --------
    >>> from wellcal import Normal
    >>> from wellcal.measures.normal_scores import standing_of
    >>> for scale in (1.0, 0.0):
    ...     pred = Normal(np.zeros(2), np.array([1.0, scale]))
    ...     print(has_tenths(pred, standing_of(pred)))
    True
    False
    """
    if not (predictions.continuous and predictions.supports("quantile")):
        return False
    levels = np.arange(1, _TENTHS) / _TENTHS
    deciles = np.stack([np.asarray(predictions.quantile(level)) for level in levels.tolist()])
    found = np.asarray(ops_for(namespace(deciles)).ndtr(standing(deciles)))
    return bool(np.abs(found - levels[:, None]).max() <= _EXACT)


def _shares(cells: NDArray) -> NDArray:
    return np.bincount(cells, minlength=_TENTHS) / max(len(cells), 1)


class SurpriseClaims(Claims):
    """How likely targets were, on average."""

    names = (SURPRISE,)

    def __init__(self, surprise: Surprise) -> None:
        self.surprise = surprise

    def scores(self, targets: NDArray) -> NDArray:
        """Mean log probability."""
        return -self.surprise(targets).mean(axis=1, keepdims=True)

    def estimator(self, targets: NDArray) -> Estimator:
        """From log probabilities of all cases."""
        logs = -self.surprise(targets[None])[0]
        return lambda cases: logs[cases].mean(keepdims=True)

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """One sentence."""
        return [_likely(found) for found in told.values()]


def _likely(found: Found) -> Finding:
    less = found.estimate < found.expected
    short = f"targets are {'less' if less else 'more'} likely than predicted"
    ends = (found.low, found.high)
    told = number_told(found.estimate, ends, _three_digits)
    sentence = f"{short}: log probability {told.size} on average ({told.ends}), "
    sentence += f"expected {_three_digits(found.expected)}"
    return Finding(sentence, SURPRISE, short, found.estimate, ends, LEVEL, found.pvalue, found.expected)


def _three_digits(value: float) -> str:
    return f"{value:.3g}"
