"""The smallest error that a test would have found: how much "not rejected" is worth.

An error in spreads, temperature or means moves the score of its size, the derivative of the log-likelihood,
by ``sqrt(n I) |log ratio|`` standard deviations, I the mean information of a case. The omnibus test looks for
other errors too, and pays for it: its power for these errors is near that of the score test at a fifteenth
of alpha, and for temperatures at a fifth of it, which simulations confirm (``python -m benchmarks --only
smallest-errors``).

That is so for many cases. Few of them show large errors alone, for which scores have another spread and are
skewed: there targets are drawn that are wrong by that much, and the share of sets is counted in which the
score is found.

Classes whose probabilities hardly differ between cases say nothing of temperatures: a coin stays a coin. What
can be wrong of them is how often each occurs, and the mean residual of a class shows it.

Cases of one cluster say less than as many independent ones. How much less is seen in the scores of the
observed targets: the variance of their sums over clusters, in units of what it were without clusters, is the
design effect, and n cases are worth n over it. A test with signs of clusters knows the spread of a sum from
the sums of clusters alone, as a t test does, and needs a larger error for it where these are few.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.checks import probability
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal.hypotests.parts.centres import centre_and_spread
from wellcal.hypotests.resampling.smooth_tails import pearson_tail
from wellcal.measures.deviations import Cases
from wellcal.measures.scores.casewise import log_prob_of_cases
from wellcal.measures.wording import counted, plain_number, share_of, wrong_phrase
from wellcal.predictions import Predictions, Quantiles
from wellcal.predictions.misspecification import (
    SHIFT,
    TEMPERATURE,
    draw_misspecified,
    kind_of_error,
    misspecified,
)

PRICE, PRICE_OF_TEMPERATURE = 15.0, 5.0
"""How many times smaller the error rate is at which a part of the omnibus test works."""

PRICE_OF_FREQUENCIES = 1.5
"""The same for how often a class occurs, where all predictions are alike; for more than two classes times
their number."""

FEW = 100
"""Cases below which sets are drawn."""

FREQUENCIES = "frequencies"
"""Kind of an error in how often a class occurs; its size is a difference of shares."""

LARGEST_DIFFERENCE = 0.5
"""The largest difference of shares that is told."""

POWER, ALPHA = 0.8, 0.05

LARGEST = 4.0
"""The largest ratio that is told: what few cases make of larger ones the score at 1 does not say."""

_CASES = 400  # whose information is looked at
_DRAWS = 4000  # targets that it is computed from, in all
_STEP = 0.02  # of logarithms of ratios
_SEED = 0
_SETS = 400  # of targets, where there are few cases
_FARTHER = 1.05  # by which a logarithm grows until an error is found
_ROUNDING = 1e-9  # information that is none
_HARDLY = 0.2  # root of the information of a case below which it hardly says anything


@dataclass(frozen=True)
class SmallestError:
    """The smallest simple error that a test would have found.

    Attributes
    ----------
    kind
        "spreads", "temperature" or "means"; "frequencies" of classes for which temperatures say nothing.
    share
        Its size, as a share of what is true; of frequencies, the difference of two shares.
    n_samples, power, alpha
        Number of cases, and power at that error rate.
    clusters
        Number of clusters of cases that depend on each other; None where all are independent.
    beyond
        Whether the smallest error is larger than `share`: there are too few cases.

    Examples
    --------
    >>> print(SmallestError("spreads", 0.12, 500))
    500 cases would have shown spreads that are 12% wrong or more (power .8)
    >>> print(SmallestError("spreads", 0.2, 500, clusters=100))
    500 cases in 100 clusters would have shown spreads that are 20% wrong or more (power about .8)
    >>> print(SmallestError("spreads", 3.0, 2, beyond=True))
    2 cases are too few to show even spreads that are wrong by a factor of 4 (power .8)
    >>> print(SmallestError("frequencies", 0.08, 400))
    400 cases would have shown frequencies that are 8 percentage points wrong or more (power .8)
    """

    kind: str
    share: float
    n_samples: int
    power: float = POWER
    alpha: float = ALPHA
    clusters: int | None = None
    beyond: bool = False

    @property
    def hopeless(self) -> bool:
        """Whether there are so few clusters that signs of them hardly ever reject."""
        return self.clusters is not None and 0.5 ** (self.clusters - 1) > self.alpha

    def __str__(self) -> str:
        what = f"a {self.kind} that is" if self.kind == "temperature" else f"{self.kind} that are"
        power = f"{self.power:.2g}".removeprefix("0")
        cases, about = how_many(self.n_samples), ""
        if self.clusters is not None:
            cases, about = f"{cases} in {self.clusters:,} clusters", "about "
        if self.hopeless:
            return f"{cases} are too few clusters to show an error of any size reliably"
        by = wrong_phrase(1.0 + self.share)
        if self.kind == FREQUENCIES:
            by = f"{counted(plain_number(100.0 * self.share), 'percentage points')} wrong"
        wrong, sure = f"{what} {by}", f"(power {about}{power})"
        if self.beyond:
            return f"{cases} are too few to show even {wrong} {sure}"
        return f"{cases} would have shown {wrong} or more {sure}"


def smallest_error(
    cases: Cases, power: float = POWER, alpha: float = ALPHA, *, pooled: bool = False
) -> SmallestError | None:
    """The smallest error that the omnibus test would have found in these predictions, whatever the targets.

    An approximation that takes some milliseconds; None for targets without such an error, and where
    predictions are certain. Where even predictions that are four times too
    large would not be found, it is `beyond` that. Targets say how alike cases of one cluster are, where there
    are clusters. Predictions that are draws are `pooled` with their targets.

    Examples
    --------
    >>> import wellcal as wc
    >>> pred = wc.Normal(np.zeros(500), np.ones(500))
    >>> found = smallest_error(Cases(np.zeros(500), pred, wc.default_kernel(pred)))
    >>> round(found.share, 2)
    0.13
    """
    predictions = cases.predictions
    kind = kind_of_error(predictions)
    if kind is None:
        return None
    few = cases.in_numpy().at_most(_CASES)
    moved = _information_of_pools(few.predictions) if pooled else information(few.predictions, kind)
    # Where all predictions are alike a temperature is no more than another frequency, in a unit in which the
    # two sides are far from equal.
    if not moved > _ROUNDING or _are_alike(cases.predictions):
        return _smallest_difference(cases.in_numpy(), power, alpha)
    worth, clusters = float(len(cases)), None
    if cases.groups is not None:
        clusters = len(np.unique(cases.groups))
        worth /= design_effect(cases.in_numpy(), kind)
    level = probability(alpha, "alpha") / (PRICE_OF_TEMPERATURE if kind == TEMPERATURE else PRICE)
    wanted = needed(probability(power, "power"), level)
    logarithm = wanted / (moved * math.sqrt(worth))
    if worth < FEW and len(few.predictions) == len(cases):
        few_sums = partial(_score_sums, few.predictions, kind, effect=len(cases) / worth, pooled=pooled)
        logarithm = _found_by_few(few_sums, logarithm, power, level)
    if clusters is not None and clusters < len(cases):
        logarithm *= needed(power, level, clusters) / wanted
    # Of predictions that are too large by so much: those that are too small are found at a smaller share.
    beyond = logarithm > math.log(LARGEST)
    ratio = LARGEST if beyond else math.exp(logarithm)
    if beyond and moved < _HARDLY:
        known = _smallest_difference(cases.in_numpy(), power, alpha)
        if known is not None and not known.beyond:
            return known
    return SmallestError(kind, share_of(ratio), len(cases), power, alpha, clusters, beyond)


def _are_alike(predictions: Any) -> bool:
    """Whether classes have the same probabilities in all cases."""
    if predictions.kind != "classes":
        return False
    p = np.asarray(to_numpy(predictions.class_probs()), dtype=np.float64)
    return bool(np.ptp(p, axis=0).max() <= _ROUNDING)


def _smallest_difference(cases: Cases, power: float, alpha: float) -> SmallestError | None:
    """The smallest error in how often a class occurs; None for other targets, and where all is certain."""
    if cases.predictions.kind != "classes":
        return None
    some: Any = (cases if cases.groups is not None else cases.at_most(_CASES)).predictions
    p = np.asarray(to_numpy(some.class_probs()), dtype=np.float64)
    place = int(np.argmax(np.mean(p * (1.0 - p), axis=0)))  # the class of which the least is known
    p, classes = p[:, place], p.shape[1]
    variance = float(np.mean(p * (1.0 - p)))
    if not variance > 0.0:
        return None
    price = PRICE_OF_FREQUENCIES * (1.0 if classes == 2 else classes)
    price = price if np.ptp(p) <= _ROUNDING else max(price, PRICE_OF_TEMPERATURE)
    level, worth, clusters = probability(alpha, "alpha") / price, float(len(cases)), None
    if cases.groups is not None:
        clusters = len(np.unique(cases.groups))
        worth /= _effect_of((cases.targets == place) - p, cases.groups)
    wanted = needed(probability(power, "power"), level)
    size = wanted * math.sqrt(variance / worth)
    if worth < FEW:
        size = _difference_found_by_few(p, size, power, level, len(p) / worth)
    if clusters is not None and clusters < len(cases):
        size *= needed(power, level, clusters) / wanted
    beyond = size > LARGEST_DIFFERENCE
    size = min(size, LARGEST_DIFFERENCE)
    return SmallestError(FREQUENCIES, size, len(cases), power, alpha, clusters, beyond)


def _difference_found_by_few(p: NDArray, size: float, power: float, level: float, effect: float) -> float:
    """A difference of shares that few cases find on either side, where it can be; `size` at least."""

    def sums(shift: float) -> NDArray:
        drawn = np.random.default_rng(_SEED).random((_SETS, len(p))) < np.clip(p + shift, 0.0, 1.0)
        found: NDArray = drawn.sum(axis=1).astype(np.float64)
        return found.mean() + (found - found.mean()) * math.sqrt(effect)

    null = sums(0.0)
    while size <= LARGEST_DIFFERENCE:
        possible = [by for by in (size, -size) if 0.0 <= p.mean() + by <= 1.0]
        if all(_share_found(sums(by), null, level) >= power for by in possible):
            break
        size *= _FARTHER
    return size


def _found_by_few(sums: Callable[[float], NDArray], logarithm: float, power: float, level: float) -> float:
    """Logarithm of a ratio from which few cases find errors on either side, as large as `logarithm` at least.

    `sums` of scores are those of sets of targets that are wrong by a ratio.
    """
    null = sums(1.0)
    while logarithm <= math.log(LARGEST):
        ratio = math.exp(logarithm)
        if all(_share_found(sums(side), null, level) >= power for side in (ratio, 1.0 / ratio)):
            break
        logarithm *= _FARTHER
    return logarithm


def _share_found(sums: NDArray, null: NDArray, level: float) -> float:
    """Share of sums of scores with an error that are beyond those without one, to either side."""
    deviation = float(null.std())
    if not deviation > 0.0:
        return 0.0
    z: NDArray = (null - null.mean()) / deviation
    x: NDArray = (sums - null.mean()) / deviation
    skewness = float((z**3).mean())
    tails = [pearson_tail(side * x, np.full(x.shape, side * skewness)) for side in (1.0, -1.0)]
    return float(np.mean(2.0 * np.minimum(*tails) <= level))


def _score_sums(predictions: Predictions, kind: str, ratio: float, *, effect: float, pooled: bool) -> NDArray:
    """Sums of scores over all cases, of sets of targets that are wrong by a ratio, ``(_SETS,)``.

    `effect` is that of clusters, by which the variance of sums is larger.
    """
    targets = draw_misspecified(predictions, kind, ratio, np.random.default_rng(_SEED), _SETS)
    scores = _among_others(predictions, targets, ratio) if pooled else _scores(predictions, kind, targets)
    sums: NDArray = scores.sum(axis=1)
    return sums.mean() + (sums - sums.mean()) * math.sqrt(effect)


def _among_others(predictions: Any, targets: NDArray, ratio: float) -> NDArray:
    """Squared residuals ``(r, n)`` of targets that were moved within their pools, which move with them."""
    count = predictions.values.shape[1]
    centre, spread = centre_and_spread(predictions)
    far: NDArray = (targets - centre) / spread
    before = far * ratio
    mean = (far - before) / count
    variance = 1.0 + (far**2 - before**2) / count - mean**2
    squares: NDArray = (far - mean) ** 2 / variance
    return squares.reshape(*squares.shape[:2], -1).sum(axis=2)


def design_effect(cases: Cases, kind: str) -> float:
    """How many times larger the variance of a sum of scores is for being summed over clusters, at least 1.

    Examples
    --------
    >>> import wellcal as wc
    >>> z, clusters = np.repeat(np.random.default_rng(0).normal(size=200), 3), np.repeat(np.arange(200), 3)
    >>> pred = wc.Normal(np.zeros(600), np.ones(600))
    >>> round(design_effect(Cases(z, pred, wc.default_kernel(pred), groups=clusters), "spreads"), 9)
    3.0
    """
    assert cases.groups is not None
    return _effect_of(_scores(cases.predictions, kind, cases.targets[None])[0], cases.groups)


def _effect_of(score: NDArray, groups: NDArray) -> float:
    """The same from scores ``(n,)`` and clusters."""
    score = score - score.mean()  # those of a likelihood have mean 0, near enough, and others have not
    _, cluster = np.unique(groups, return_inverse=True)
    sums = np.bincount(cluster, weights=score)
    alone = float(np.sum(score**2))
    return max(1.0, float(np.sum(sums**2)) / alone) if alone > 0.0 else 1.0


def needed(power: float, level: float, clusters: int | None = None) -> float:
    """Standard deviations by which a score must move to be found by a test of two sides.

    Where the standard deviation is known from so many `clusters` alone, quantiles are those of Student's t,
    and what is compared with them varies by as much more.

    Examples
    --------
    >>> round(needed(0.8, 0.05), 2), round(needed(0.8, 0.05 / PRICE), 2)
    (2.8, 3.78)
    >>> round(needed(0.8, 0.05 / PRICE, clusters=20), 2), round(needed(0.8, 0.05 / PRICE, clusters=10**6), 2)
    (4.31, 3.78)
    """
    found = float(special.ndtri(power))
    if clusters is None:
        return float(special.ndtri(1.0 - 0.5 * level)) + found
    freedom = max(clusters - 1, 1)
    beyond = float(special.stdtrit(freedom, 1.0 - 0.5 * level))
    return beyond + found * math.sqrt(1.0 + 0.5 * beyond**2 / freedom)


def information(predictions: Predictions, kind: str) -> float:
    """Root of the mean information of a case on the logarithm of a ratio, or on a shift, by drawing."""
    count = max(_DRAWS // len(predictions), 2)
    none = 0.0 if kind == SHIFT else 1.0
    targets = draw_misspecified(predictions, kind, none, np.random.default_rng(_SEED), count)
    score = _log_ratio(predictions, kind, targets)
    if score is not None:
        return math.sqrt(_mean_variance(score))
    centre, spread = centre_and_spread(predictions)
    z = (targets - centre) / spread
    if kind == SHIFT:
        return 1.0 / math.sqrt(max(float(np.mean(z**2)), 1e-300))
    squares = (z**2).reshape(*z.shape[:2], -1).sum(axis=2)
    deviation = math.sqrt(_mean_variance(squares))
    return 2.0 * float(squares.mean()) / deviation if deviation > 0.0 else 0.0


def _information_of_pools(predictions: Any) -> float:
    """The same on spreads, where a target is one of a pool of N, whose mean and spread move with it.

    The square of a standardised residual z that grows by a share changes by ``2 z**2 (1 - 1/N) - 2 z**4 / N``
    times that share.
    """
    centre, spread = centre_and_spread(predictions)
    values = np.moveaxis(np.asarray(predictions.values, dtype=np.float64), 1, 0)
    z: NDArray = (values - centre) / spread
    z = z.reshape(*z.shape[:2], -1)
    grows: NDArray = 2.0 * (1.0 - 1.0 / len(z)) * (z**2).sum(axis=2) - 2.0 / len(z) * (z**4).sum(axis=2)
    varies: NDArray = (z**2).sum(axis=2).var(axis=0)
    deviation = math.sqrt(float(varies.mean()))
    return float(grows.mean()) / deviation if deviation > _ROUNDING else 0.0


def _mean_variance(values: NDArray) -> float:
    """Mean over cases of the variance over draws, of values ``(r, n)``."""
    centred = values - values.mean(axis=0)
    return float(np.sum(centred**2)) / (values.shape[1] * (values.shape[0] - 1.0))


def _scores(predictions: Predictions, kind: str, targets: NDArray) -> NDArray:
    """What shows an error in each case ``(r, n)``: derivatives of log-likelihoods, or squared residuals."""
    score = _log_ratio(predictions, kind, targets)
    if score is not None:
        return score
    centre, spread = centre_and_spread(predictions)
    z = (targets - centre) / spread
    return (z if kind == SHIFT else z**2).reshape(*z.shape[:2], -1).sum(axis=2)


def _log_ratio(predictions: Predictions, kind: str, targets: NDArray) -> NDArray | None:
    """Derivative of the log-likelihood of targets ``(r, n, ...)``; None without a likelihood."""
    bins = isinstance(predictions, Quantiles)
    if not bins and not predictions.supports("log_prob"):
        return None
    steps = (_STEP, -_STEP) if kind == SHIFT else (math.exp(_STEP), math.exp(-_STEP))
    above, below = (misspecified(predictions, kind, step) for step in steps)
    if above.predicted is not predictions and not bins:
        return None
    targets = above.index(targets)
    with np.errstate(all="ignore"):
        high, low = (log_prob_of_cases(targets, side.true) for side in (above, below))
        score = (high - low) / (2.0 * _STEP)
    return score if np.isfinite(score).all() else None
