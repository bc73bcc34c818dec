"""Statistics of many sets of targets of the same predictions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.setup import Setup
from wellcal.measures._skce import block_values
from wellcal.measures.target_sets.resampled import ResampledSKCE, has_terms


def skce_statistic(setup: Setup) -> Callable[[NDArray], NDArray]:
    """n SKCE_u for sets of targets: what changes only, where the kernel is a sum of products."""
    if has_terms(setup.problem.kernel):
        resampled = ResampledSKCE(setup, [setup.problem.kernel])
        return lambda sets: resampled(sets)[:, 0]

    def one(targets: NDArray) -> float:
        return 2.0 * float(setup.engine.triangle(setup.problem_of(targets)).total) / (setup.n_samples - 1)

    return lambda sets: np.array([one(targets) for targets in sets])


class BlockStatistic:
    """Unbiased SKCE over blocks, for sets of targets."""

    label = "n SKCE over blocks"

    def __init__(self, setup: Setup, size: int) -> None:
        self.setup = setup
        self.size = size
        self.used = setup.n_samples // size * size

    def __call__(self, targets: NDArray) -> NDArray:
        """Values ``(r,)`` for sets of targets ``(r, n, ...)``."""
        setup, used = self.setup, self.used
        out: list[NDArray] = []
        for some in in_chunks(len(targets), used * setup.problem.cost.entries):
            sets = targets[some, :used]
            predictions = setup.predictions[np.tile(np.arange(used), len(sets))]
            problem = setup.problem_of(sets.reshape(-1, *sets.shape[2:]), predictions)
            sums = setup.engine.blocks(problem, self.size)
            blocks = block_values(sums.rows, self.size, len(sets) * used // self.size)
            out.append(np.reshape(blocks, (len(sets), -1)).mean(axis=1))
        return setup.n_samples * np.concatenate(out)
