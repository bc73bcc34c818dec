"""Whether calibration can be judged by cases in partitions: ties of each are counted, and all are judged."""

from __future__ import annotations

from wellcal.dask.partitioned import Cases, Partition
from wellcal.predictions.quantile_ties import Ties, counted_only


def ties_in(block: Partition | None) -> Ties | None:
    """Outcomes of a partition that fall on their quantiles; None for families that have none."""
    if block is None:
        return None
    with counted_only():
        return block.predictions.check_judged(block.targets)


def check_ties(ties: Ties | None) -> None:
    """An error where all partitions together have too many; rows are counted over all of them."""
    if ties is not None:
        ties.refuse(located=True)


def check_judged(cases: Cases, sample: Partition) -> None:
    """An error where there are too many ties among all cases, of which some are at hand.

    How many there are in a sample says too little: ties that chance would hide in the sample are seen in all
    cases, and may be too many there. It tells whether the family has any, and only then are all looked at.

    Examples
    --------
    >>> import dask.array as da, numpy as np, wellcal as wc
    >>> from wellcal.dask import from_arrays
    >>> from wellcal.dask.building import as_cases
    >>> y = np.where(np.arange(60) < 50, 1.0, 0.0)
    >>> medians = from_arrays(wc.Quantiles, [0.5], da.zeros((60, 1), chunks=(20, 1)))
    >>> cases = as_cases(da.from_array(y, chunks=20), medians)
    >>> check_judged(cases, cases.rows(np.arange(10)))
    Traceback (most recent call last):
    wellcal.RowError: y equals its own quantile of level 0.5 in 10 of 60 cases, first in row 50: ...
    """
    found = ties_in(sample)
    if found is not None:
        check_ties(found if len(sample.targets) == cases.n else cases.total(ties_in))
