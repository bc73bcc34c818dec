"""What groups of cases are made of: summaries of predictions, and segments.

Groups are made from predictions, or given by the user, and never look at targets: whatever is found in
them by chance is found as often in targets that are drawn from the predictions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.predictions import Predictions, Quantiles, Samples
from wellcal.problem.target_resampling import moments_of_others

MOST_CLASSES = 20
"""Classes that are looked at one by one: those with the largest predicted probability in total."""

_MOST_COORDINATES = 5


class Side(NamedTuple):
    """From where to where a summary goes, by its name; infinite where it has no end."""

    summary: str
    low: float
    high: float


@dataclass(frozen=True)
class Cases:
    """A group of cases.

    Attributes
    ----------
    where
        What they have in common, such as "where the predicted mean is above 4".
    mask
        Which they are, ``(n,)``.
    kind
        "all", "segment", "split" (above or below a number), "interval" or "box".
    sides
        The same by summaries of predictions, from which others can be told to be in it; None for segments.
    """

    where: str
    mask: NDArray
    kind: str
    sides: tuple[Side, ...] | None = None


@dataclass(frozen=True)
class Summary:
    """A number for each prediction.

    Attributes
    ----------
    name
        What to call it.
    values
        The numbers, ``(n,)``.
    share
        Whether it is a share.
    swapped
        Of predictions that are S draws: the number that there would be if a member of the pooled set were the
        target, and the others the draws, ``(n, S + 1)``; the target itself comes last. None for others.
    """

    name: str
    values: NDArray
    share: bool = False
    swapped: NDArray | None = None


@dataclass(frozen=True)
class Overview:
    """What all predictions decide together, and parts of them add up to.

    Attributes
    ----------
    totals
        Sums of the predicted probabilities of classes, ``(C,)``; None for other families.
    finite
        Whether all means and spreads are finite numbers.
    """

    totals: NDArray | None
    finite: bool

    @classmethod
    def of(cls, predictions: Predictions) -> Overview:
        """Of some predictions."""
        family: Any = predictions
        if predictions.kind == "classes":
            return cls(np.asarray(to_numpy(family.class_probs()), dtype=np.float64).sum(axis=0), True)
        if isinstance(predictions, Quantiles) or _holds_objects(predictions):
            return cls(None, True)
        return cls(None, all(bool(np.isfinite(values).all()) for values in _mean_and_spread(predictions)))

    def merged(self, other: Overview) -> Overview:
        """Of both together."""
        totals = None if self.totals is None or other.totals is None else self.totals + other.totals
        return Overview(totals, self.finite and other.finite)

    def common(self, most: int | None) -> NDArray:
        """The classes with the largest probability in total, so many of them or all."""
        assert self.totals is not None
        return np.argsort(-self.totals, kind="stable")[:most]


def _holds_objects(predictions: Predictions) -> bool:
    return predictions.target_kind == "objects"


def _mean_and_spread(predictions: Any) -> tuple[NDArray, NDArray]:
    with np.errstate(invalid="ignore", over="ignore"):
        mean = np.asarray(to_numpy(predictions.mean()), dtype=np.float64)
        spread = np.sqrt(np.asarray(to_numpy(predictions.variance()), dtype=np.float64))
    return mean, spread


def summaries_of(predictions: Predictions, overview: Overview | None = None) -> list[Summary]:
    """Summaries that groups for directions of all kinds are made of; classes have those of their own.

    The `overview` is that of all predictions, where these are a part of them.
    """
    family: Any = predictions
    if predictions.kind == "classes" or _holds_objects(predictions):
        return []
    if isinstance(predictions, Quantiles):
        return _of_quantiles(predictions)
    mean, spread = _mean_and_spread(predictions)
    if predictions.event_shape == ():
        if not (Overview.of(predictions) if overview is None else overview).finite:
            median = np.asarray(to_numpy(family.quantile(0.5)))
            return [
                Summary("the predicted median", median),
                Summary(
                    "the predicted interquartile range", np.asarray(to_numpy(family.interquartile_range()))
                ),
            ]
        return [
            Summary("the predicted mean", mean),
            Summary("the predicted standard deviation", spread),
        ]
    found = [
        Summary(f"the predicted mean of coordinate {c + 1}", mean[:, c])
        for c in range(min(mean.shape[1], _MOST_COORDINATES))
    ]
    return [*found, Summary("the predicted standard deviation", np.sqrt(np.mean(spread**2, axis=1)))]


def summaries_of_draws(pool: Samples) -> list[Summary]:
    """The same for draws, from the set in which each target is pooled with them; it comes last there.

    Mean and spread are those of the draws alone: if a draw is swapped with the target, of the new draws.

    Examples
    --------
    >>> mean, spread = summaries_of_draws(Samples([[1.0, 3.0, 9.0]], kind="atoms"))
    >>> mean.values, spread.values, mean.swapped
    (array([2.]), array([1.]), array([[6., 5., 2.]]))
    """
    mean, spread = moments_of_others(np.asarray(to_numpy(pool.values)))
    if not (np.isfinite(mean).all() and np.isfinite(spread).all()):
        return []
    deviation = "the predicted standard deviation"
    if pool.event_shape == ():
        return [_swapped("the predicted mean", mean), _swapped(deviation, spread)]
    found = [
        _swapped(f"the predicted mean of coordinate {c + 1}", mean[:, :, c])
        for c in range(min(mean.shape[2], _MOST_COORDINATES))
    ]
    return [*found, _swapped(deviation, np.sqrt(np.mean(spread**2, axis=2)))]


def _swapped(name: str, table: NDArray) -> Summary:
    return Summary(name, table[:, -1], swapped=table)


def _of_quantiles(predictions: Quantiles) -> list[Summary]:
    levels = predictions.levels
    middle = int(np.argmin(np.abs(levels - 0.5)))
    found = [Summary(f"the predicted {levels[middle]:.0%} quantile", predictions.values[:, middle])]
    if len(levels) > 1:
        width = predictions.values[:, -1] - predictions.values[:, 0]
        found.append(
            Summary(f"the distance from the {levels[0]:.0%} to the {levels[-1]:.0%} quantile", width)
        )
    return found
