"""SKCE of cases that come in parts: over all pairs while they are few, over blocks from then on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from wellcal._arrays.checks import whole_number
from wellcal._arrays.namespaces import NDArray
from wellcal.kernels.base import Kernel
from wellcal.measures._skce import skce
from wellcal.measures.estimate import Estimate
from wellcal.measures.running.accumulator import Accumulator, refuse_weights
from wellcal.measures.running.blocks import BLOCK, RunningBlocks
from wellcal.predictions.base import Predictions
from wellcal.predictions.batches import concatenate
from wellcal.problem.defaults import default_kernel

FEW = 2_000
"""Cases up to which all pairs are visited. The default kernel is that of the first so many predictions."""


@dataclass(frozen=True)
class RunningSKCE(Accumulator):
    """The unbiased estimate of SKCE for up to `FEW` cases, and that over blocks for more.

    Nothing is computed before there are more: neither the estimate nor the kernel, which does not look at
    targets, depends on how cases were cut into parts.

    Parameters
    ----------
    kernel
        The kernel, or None for the default.
    size
        Cases of a block, which few cases are cut into as well; None for those of many.
    """

    kernel: Kernel | None = None
    size: int | None = None
    kept: tuple[NDArray, Predictions] | None = None
    blocks: RunningBlocks | None = None

    def __post_init__(self) -> None:
        if self.size is not None:
            whole_number(self.size, "block_size", least=2)

    def updated(self, y: Any, pred: Any, weights: NDArray | None) -> Self:
        refuse_weights(weights, "SKCE over blocks", "it takes all blocks as alike; take wc.skce with weights")
        if self.blocks is not None:
            return replace(self, blocks=self.blocks.updated(y, pred, None))
        if self.kept is None:
            # Predictions without SKCE say so now, and not after thousands of cases.
            skce(y[:1], pred[:1], kernel=self.kernel, estimator="biased")
            kept = (np.array(y), pred)
        else:
            together = concatenate([self.kept[1], pred], ["earlier cases", "pred"], "parts")
            kept = (np.concatenate([self.kept[0], y]), together)
        if len(kept[1]) <= FEW:
            return replace(self, kept=kept)
        return replace(self, kept=None, blocks=self._in_blocks(*kept))

    def _in_blocks(self, y: NDArray, pred: Predictions) -> RunningBlocks:
        kernel = default_kernel(pred[:FEW]) if self.kernel is None else self.kernel
        return RunningBlocks(kernel, self.size or BLOCK).updated(y, pred, None)

    def merged(self, other: Self) -> Self:
        empty = [one.kept is None and one.blocks is None for one in (self, other)]
        if any(empty):
            return other if empty[0] else self
        if self.kernel != other.kernel or self.size != other.size:
            raise ValueError(
                "SKCE: the parts have other kernels or blocks, and cannot be added up; give both the same "
                "kernel and block_size"
            )
        if other.kept is not None:
            return self.updated(*other.kept, None)
        if self.kept is not None:
            return other.updated(*self.kept, None)
        assert self.blocks is not None
        assert other.blocks is not None
        return replace(self, blocks=self.blocks.merged(other.blocks))

    def result(self) -> Estimate:
        if self.blocks is not None:
            return self.blocks.result()
        assert self.kept is not None
        if self.size is not None:
            return self._in_blocks(*self.kept).result()
        return skce(*self.kept, kernel=self.kernel)
