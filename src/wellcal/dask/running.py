"""Scores, ECE and coverage of cases in partitions: sums of each partition, added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from wellcal._arrays.checks import one_of
from wellcal.dask.building import as_cases
from wellcal.dask.functions import IN_MEMORY, refuse
from wellcal.dask.judging import check_ties, ties_in
from wellcal.dask.partitioned import Partition, computed_sum
from wellcal.measures.estimate import Estimate
from wellcal.measures.quantiles import IntervalCoverage
from wellcal.measures.running.accumulator import Accumulator
from wellcal.measures.running.bins import RunningECE
from wellcal.measures.running.means import RunningMean
from wellcal.measures.running.shares import RunningCoverage
from wellcal.predictions.quantile_ties import Ties, counted_only


def _score(name: str) -> Callable[..., Estimate]:
    """A mean of scores, as the function of that name has it."""

    def score(y: object, pred: object, *, weights: object = None, **options: Any) -> Estimate:
        refuse(name, options, IN_MEMORY)
        return _measured(y, pred, RunningMean(name), weights)

    return score


brier, crps, energy_score, mse, nll, pinball_loss = map(
    _score, ("brier", "crps", "energy_score", "mse", "nll", "pinball_loss")
)


def ece(
    y: object,
    pred: object,
    *,
    distance: Any = "total_variation",
    binning: Any = None,
    n_bins: int | None = None,
    reduce: str | None = None,
    estimator: str = "plug-in",
) -> Estimate:
    """As :func:`wellcal.ece`, in bins of equal width."""
    one_of(estimator, "estimator", ("plug-in", "debiased"))
    plain = {
        "distance": None if distance == "total_variation" else distance,
        "binning": None if binning == "uniform" else binning,
        "estimator": None if estimator == "plug-in" else estimator,
    }
    refuse("ece", plain, IN_MEMORY)
    return _measured(y, pred, RunningECE(n_bins, reduce))


def interval_coverage(y: object, pred: object, *, levels: Sequence[float] | None = None) -> IntervalCoverage:
    """As :func:`wellcal.interval_coverage`."""
    return cast(
        "IntervalCoverage", _measured(y, pred, RunningCoverage(None if levels is None else tuple(levels)))
    )


def _measured(y: object, pred: object, empty: Accumulator, weights: object = None) -> Estimate:
    cases = as_cases(y, pred, weights)
    found = computed_sum(cases.map(_updated, empty=empty))
    if found is None:
        raise ValueError("pred is empty: none of its partitions has a case")
    sums, ties = found
    check_ties(ties)
    return sums.result()


def _updated(block: Partition | None, empty: Accumulator) -> tuple[Accumulator, Ties | None] | None:
    """The sums of one partition, and outcomes on quantiles, which scores take as they are."""
    if block is None:
        return None
    with counted_only():
        found = empty.updated(block.given, block.predictions, block.weights)
    if isinstance(found, RunningECE) and found.chosen is not None:
        raise TypeError(
            "ece of counts and quantiles has bins of equal mass, which are chosen from all predictions at "
            f"once: not supported for cases in partitions; {IN_MEMORY}"
        )
    return found, None if isinstance(empty, RunningMean) else ties_in(block)
