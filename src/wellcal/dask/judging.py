"""Whether calibration can be judged by cases in partitions: ties of each are counted, and all are judged."""

from __future__ import annotations

from wellcal.dask.partitioned import Partition
from wellcal.predictions.ties import Ties, counted_only


def ties_in(block: Partition) -> Ties | None:
    """Outcomes of a partition that fall on their quantiles; None for families that have none."""
    with counted_only():
        return block.predictions.check_judged(block.targets)


def check_ties(ties: Ties | None) -> None:
    """An error where all partitions together have too many."""
    if ties is not None:
        ties.refuse()
