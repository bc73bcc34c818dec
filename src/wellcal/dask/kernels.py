"""The default kernel of predictions in partitions: that of the same predictions in memory."""

from __future__ import annotations

from typing import Any

from wellcal.dask.building import as_partitioned
from wellcal.dask.partitioned import Cases, Partitioned, Task, batch_of, joined, on
from wellcal.dask.watching import computed
from wellcal.kernels.base import Kernel
from wellcal.predictions import Predictions
from wellcal.predictions.batches import in_numpy
from wellcal.problem import defaults


def default_kernel(pred: object, *, expectations: Any = "auto") -> Kernel:
    """As :func:`wellcal.default_kernel`: scales come from the same 2,000 predictions."""
    return defaults.default_kernel(_sampled(as_partitioned(pred)), expectations=expectations)


def kernel_of(cases: Cases, kernel: Kernel | None, expectations: Any = "auto") -> Kernel:
    """The kernel that was given, or the default of all predictions."""
    if kernel is not None:
        return kernel
    sample = cases.rows(defaults.sampled_rows(cases.n)).predictions
    return defaults.default_kernel(sample, expectations=expectations)


def _sampled(pred: Partitioned) -> Predictions:
    """The predictions that scales are taken from."""
    sizes = pred.sizes or computed([on(_size, part) for part in pred.parts])
    chosen, start = defaults.sampled_rows(sum(sizes)), 0
    found: list[Task] = []
    for part, size in zip(pred.parts, sizes, strict=True):
        own = chosen[(chosen >= start) & (chosen < start + size)] - start
        start += size
        if len(own):
            found.append(on(_some, part, own))
    return joined(computed(found))


def _size(part: Any) -> int:
    batch = batch_of(part)
    return 0 if batch is None else len(batch)


def _some(part: Any, rows: Any) -> Predictions:
    batch = batch_of(part)
    assert batch is not None
    return in_numpy(batch[rows])
