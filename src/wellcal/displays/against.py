"""What residuals are drawn against: where predictions lie, or how wide they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray, stop_gradient, to_numpy
from wellcal.hypotests.setup import numpy_batch
from wellcal.measures.quantiles.checks import check_scalar
from wellcal.predictions import Quantiles, Samples
from wellcal.predictions.base import NORMAL_INTERQUARTILE_RANGE
from wellcal.problem.target_resampling import pool_draws
from wellcal.witnesses.summaries import summaries_of

AGAINST = ("spread", "mean")

_ROUNDING = 1e-9  # of spreads and means that are the same


class Described(NamedTuple):
    """Numbers ``(n,)`` that tell cases apart, and what they are, in words."""

    words: str
    values: NDArray

    @property
    def differ(self) -> bool:
        """Whether they differ between cases by more than rounding."""
        # Spreads that are differences of quantiles are rounded as those are.
        return bool(np.ptp(self.values) > _ROUNDING * np.max(np.abs(self.values), initial=0.0))


def described(predictions: Any, what: str, targets: Any = None) -> Described:
    """Predicted spreads or means; the middle half and the median where moments are not finite in some case.

    Draws are described together with their targets, where these are given: too few of them to be taken
    `draws_apart`. Under calibration the target is any of these S + 1 numbers, whatever they are, so that its
    rank is uniform among cases of one spread, too. Among cases whose draws alone lie close together it is
    not.

    Examples
    --------
    >>> import wellcal as wc
    >>> described(wc.StudentT(1.0, np.arange(3.0), np.ones(3)), "mean")
    Described(words='predicted median', values=array([0., 1., 2.]))
    >>> described(wc.Samples([[1.0, 2.0]]), "mean", np.array([6.0]))
    Described(words='mean of draws and outcome', values=array([3.]))
    """
    check_scalar(predictions, "pit")
    batch: Any = numpy_batch(predictions)
    words = f"predicted {what}"
    if _are_draws(batch) and targets is not None:
        batch = pool_draws(to_numpy(stop_gradient(targets)), batch)
        words = _of_pool(what)
    if isinstance(batch, Quantiles):  # whose levels need not reach the quartiles
        centre, *widths = [
            Described(one.name.removeprefix("the "), one.values) for one in summaries_of(batch)
        ]
        equal = Described(words, np.zeros(len(batch)))  # a single level tells of no spread
        return centre if what == "mean" else next(iter(widths), equal)
    moment = "variance" if what == "spread" else "mean"
    if batch.supports(moment):
        with np.errstate(invalid="ignore", over="ignore"):
            found = batch.variance() ** 0.5 if what == "spread" else batch.mean()
        if np.isfinite(found).all():
            return Described(words, _numbers(found))
    if what == "spread":
        middle_half = batch.quantile(0.75) - batch.quantile(0.25)
        return Described("predicted spread, by quartiles", _numbers(middle_half / NORMAL_INTERQUARTILE_RANGE))
    return Described("predicted median", _numbers(batch.quantile(0.5)))


def draws_apart(predictions: Any, what: str, rng: np.random.Generator) -> tuple[Described, Samples] | None:
    """What some of the draws of each prediction say, and the other draws, among which the target is ranked.

    Given the ones, taken at random, the target is any of itself and the others under calibration, so that its
    rank is uniform wherever the ones lie. Against the mean of all draws and the target, a spread that is
    wrong would look like a trend: targets that are far off pull it along.

    None for predictions that are no draws, and where there are too few: one says where a prediction lies, two
    or more (half of them) how wide it is.

    Examples
    --------
    >>> import wellcal as wc
    >>> pred = wc.Samples([[1.0, 2.0, 4.0]])
    >>> one, others = draws_apart(pred, "mean", np.random.default_rng(0))
    >>> one.words, others.values.shape
    ('predicted mean, as told by one draw', (1, 2))
    >>> draws_apart(wc.Samples([[1.0, 2.0]]), "spread", np.random.default_rng(0)) is None
    True
    """
    check_scalar(predictions, "pit")
    taken = _taken(predictions, what)
    if not taken:
        return None
    batch: Any = numpy_batch(predictions)
    values = rng.permuted(np.asarray(batch.values, dtype=np.float64), axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        found = values[:, 0] if what == "mean" else values[:, :taken].std(axis=1, ddof=1)
    if not np.isfinite(found).all():
        return None
    return Described(words_of(predictions, what), found), Samples(values[:, taken:], axis=1)


def differing(*models: Any) -> list[str]:
    """What differs between the cases of each of some models, so that all can be drawn against it.

    Examples
    --------
    >>> import wellcal as wc
    >>> one, other = wc.Normal(np.arange(3.0), np.ones(3)), wc.Normal(np.arange(3.0), np.arange(1.0, 4.0))
    >>> differing(other), differing(one, other)
    (['spread', 'mean'], ['mean'])
    """
    return [what for what in AGAINST if all(described(model, what).differ for model in models)]


def words_of(predictions: Any, what: str) -> str:
    """What residuals are drawn against, in the words of their axis.

    Examples
    --------
    >>> import wellcal as wc
    >>> words_of(wc.Normal([0.0], [1.0]), "mean"), words_of(wc.Samples([[1.0, 2.0]]), "mean")
    ('predicted mean', 'predicted mean, as told by one draw')
    >>> words_of(wc.Samples(np.zeros((1, 8)), axis=1), "spread"), words_of(wc.Samples([[1.0]]), "mean")
    ('predicted spread, as told by half of the draws', 'mean of draws and outcome')
    """
    if not _are_draws(predictions):
        return described(predictions, what).words
    taken = _taken(predictions, what)
    if not taken:
        return _of_pool(what)
    told = "one draw" if taken == 1 else "two draws" if taken == 2 else "half of the draws"
    return f"predicted {what}, as told by {told}"


def either(words: Iterable[str]) -> str:
    """Words of several models on one axis, each of them once."""
    return " or ".join(dict.fromkeys(words))


def _are_draws(predictions: Any) -> bool:
    return predictions.kind == "draws"


def _taken(predictions: Any, what: str) -> int:
    """How many draws tell what residuals are drawn against, so that some are left; 0 where there are none."""
    count = int(predictions.values.shape[1]) if _are_draws(predictions) else 0
    wanted = 1 if what == "mean" else max(2, count // 2)
    return wanted if wanted < count else 0


def _of_pool(what: str) -> str:
    return f"{what} of draws and outcome"


def _numbers(found: Any) -> NDArray:
    return np.asarray(found, dtype=np.float64)
