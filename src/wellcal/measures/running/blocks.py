"""SKCE over blocks of cases, in the order in which they come."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from wellcal._arrays.checks import whole_number
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.round_numbers import how_many
from wellcal.kernels.base import Kernel
from wellcal.measures._skce import skce
from wellcal.measures.estimate import Estimate
from wellcal.measures.running.accumulator import Accumulator, refuse_weights
from wellcal.predictions.base import Predictions
from wellcal.predictions.batches import concatenate
from wellcal.problem.defaults import default_kernel

BLOCK = 100
"""Cases of a block, where nobody says it."""


@dataclass(frozen=True)
class RunningBlocks(Accumulator):
    """The block estimate of SKCE, as ``skce(..., estimator="block")`` has it.

    Cases that do not fill a block wait for the next ones. The kernel, where none is given, is the default of
    the first predictions: it does not look at targets.

    Parameters
    ----------
    kernel
        The kernel, or None.
    size
        Cases of a block.
    """

    kernel: Kernel | None = None
    size: int = BLOCK
    n: int = 0
    blocks: int = 0
    mean: float = 0.0
    squares: float = 0.0
    waiting: tuple[NDArray, Predictions] | None = None

    def __post_init__(self) -> None:
        whole_number(self.size, "block_size", least=2)

    def updated(self, y: Any, pred: Any, weights: NDArray | None) -> Self:
        refuse_weights(weights, "SKCE over blocks", "it takes all blocks as alike; take wc.skce with weights")
        kernel = default_kernel(pred) if self.kernel is None else self.kernel
        targets, predictions, n = y, pred, len(pred)
        if self.waiting is not None:
            targets = np.concatenate([self.waiting[0], y])
            predictions = concatenate([self.waiting[1], pred], ["earlier cases", "pred"], "parts")
        count = len(predictions) // self.size
        used = count * self.size
        found = replace(self, kernel=kernel, n=self.n + n)
        if count:
            estimate = skce(
                targets[:used], predictions[:used], kernel=kernel, estimator="block", block_size=self.size
            )
            error = 0.0 if estimate.standard_error is None else float(estimate.standard_error)
            found = found._joined(count, float(estimate), error**2 * count * (count - 1.0))
        rest = len(predictions) - used
        waiting = (np.array(targets[used:]), predictions[used:]) if rest else None
        return replace(found, waiting=waiting)

    def _joined(self, blocks: int, mean: float, squares: float) -> Self:
        """With some blocks more, by their number, mean, and sum of squared deviations from it."""
        total = self.blocks + blocks
        gap = mean - self.mean
        return replace(
            self,
            blocks=total,
            mean=self.mean + gap * blocks / total,
            squares=self.squares + squares + gap**2 * self.blocks * blocks / total,
        )

    def merged(self, other: Self) -> Self:
        if self.n == 0 or other.n == 0:
            return other if self.n == 0 else self
        if self.kernel != other.kernel or self.size != other.size:
            raise ValueError(
                "SKCE: the parts have other kernels or blocks, and cannot be added up; give both the same "
                "kernel and block_size"
            )
        found = self
        if other.blocks:
            found = self._joined(other.blocks, other.mean, other.squares)
        found = replace(found, n=self.n + other.n)
        if other.waiting is None:
            return found
        grown = found.updated(*other.waiting, None)
        return replace(grown, n=self.n + other.n)

    def result(self) -> Estimate:
        if not self.blocks:
            raise ValueError(f"SKCE over blocks needs {how_many(self.size)} at least, found {self.n}")
        error = None
        if self.blocks > 1:
            error = math.sqrt(self.squares / (self.blocks * (self.blocks - 1.0)))
        provenance = {
            "block_size": self.size,
            "blocks": self.blocks,
            "dropped": self.n - self.blocks * self.size,
            "shuffled": False,
        }
        return Estimate(self.mean, error, "SKCE", "block", self.n, self.kernel, provenance)
