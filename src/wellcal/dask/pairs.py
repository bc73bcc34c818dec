"""SKCE of cases in partitions: pairs of partitions, each of them a task.

A task has the cases of two partitions, prepares them as one problem, features included, and visits the pairs
between them. What comes back is one sum, and one number for each case.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.checks import one_of
from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.progress import as_progress, following
from wellcal._arrays.round_numbers import large_numbers
from wellcal._arrays.threads import one_blas_thread
from wellcal.dask.building import as_cases
from wellcal.dask.functions import IN_MEMORY, refuse
from wellcal.dask.kernels import kernel_of
from wellcal.dask.partitioned import (
    Cases,
    Partition,
    Task,
    added,
    computed,
    computed_sum,
    joined_blocks,
    on,
    summed,
)
from wellcal.engines.tiled import Tiled
from wellcal.kernels.base import Kernel
from wellcal.measures._skce import ESTIMATORS, resolve_block_size
from wellcal.measures.estimate import Estimate
from wellcal.measures.running.blocks import RunningBlocks
from wellcal.problem.feature_form import in_features
from wellcal.problem.problem import Problem, check_pair_kernel, prepare_checked

MOST_PAIRS = 1e15
"""Pairs of cases that are visited at most, those of 45 million cases: a hundred machines take two hours."""


class Moments(NamedTuple):
    """Number of cases, mean of a quantity, and sum of squared deviations from it."""

    n: float
    mean: float
    squares: float

    @classmethod
    def of(cls, values: NDArray) -> Moments:
        """Of some cases."""
        mean = float(values.mean())
        return cls(len(values), mean, float(np.sum((values - mean) ** 2)))

    def merged(self, other: Moments) -> Moments:
        """Of two parts of the cases, without cancellation (Chan, Golub, LeVeque, 1983)."""
        n, gap = self.n + other.n, other.mean - self.mean
        squares = self.squares + other.squares + gap**2 * self.n * other.n / n
        return Moments(n, self.mean + gap * other.n / n, squares)


def skce(
    y: object,
    pred: object,
    *,
    kernel: Kernel | None = None,
    estimator: str = "unbiased",
    block_size: Any = None,
    rng: Any = None,
    weights: object = None,
    expectations: Any = "auto",
    engine: Any = "auto",
    precision: str = "auto",
    progress: Any = None,
) -> Estimate:
    """As :func:`wellcal.skce`: "unbiased" and "biased" over pairs of partitions, "block" over each."""
    one_of(estimator, "estimator", ESTIMATORS)
    one_of(precision, "precision", ("auto", "float64"), or_else="for cases in partitions")
    if estimator != "block" and block_size is not None:
        raise ValueError(f'block_size is for estimator="block" only, found estimator={estimator!r}')
    unknown = {"weights": weights, "engine": None if engine == "auto" else engine, "progress": progress}
    refuse("skce", unknown, IN_MEMORY)
    refuse("skce", {"rng": rng}, "shuffle the rows of the files before")
    cases = as_cases(y, pred)
    n = cases.n
    if n < (1 if estimator == "biased" else 2):
        raise ValueError(f"the {estimator} estimator needs at least 2 cases, found {n}")
    chosen = check_pair_kernel(kernel_of(cases, kernel, expectations))
    if estimator == "block":
        return block_estimate(cases, chosen, resolve_block_size(block_size, n), expectations)
    if 0.5 * n * n > MOST_PAIRS:
        raise ValueError(
            f"{n:,} cases have {' pairs, more than '.join(large_numbers(0.5 * n * n, MOST_PAIRS))}; take "
            'estimator="block", or wc.calibration_test, both linear in the number of cases'
        )
    return _all_pairs(cases, chosen, estimator, expectations)


# -- all pairs ---------------------------------------------------------------------------------


def _all_pairs(cases: Cases, kernel: Kernel, estimator: str, expectations: Any) -> Estimate:
    n, blocks = cases.n, [block for block, size in zip(cases.blocks, cases.sizes, strict=True) if size]
    shared = {"kernel": kernel, "expectations": expectations}
    within = [on(within_sums, block, trace=estimator == "biased", **shared) for block in blocks]
    pairs = {
        (a, b): on(between_sums, blocks[a], blocks[b], **shared)
        for a, b in combinations(range(len(blocks)), 2)
    }
    totals = [*(task[0] for task in within), *(task[0] for task in pairs.values())]
    rows: list[Task] = []
    for k, own in enumerate(within):
        others = [pairs[k, b][1] for b in range(k + 1, len(blocks))]
        others += [pairs[a, k][2] for a in range(k)]
        rows.append(on(_moments_of_rows, n, own[1], *others))
    traces = [task[2] for task in within]
    total, moments, trace, notes = computed([summed(totals), summed(rows), summed(traces), within[0][3]])
    if not math.isfinite(total) or math.isnan(trace):
        raise ValueError(f"h is not finite for some pairs of cases under the kernel {kernel!r}")
    provenance = {
        "precision": "float64",
        **notes,
        "engine": "dask",
        "partitions": len(blocks),
        "pairs_of_partitions": len(blocks) * (len(blocks) + 1) // 2,
    }
    if estimator == "biased":
        value = (2.0 * total + trace) / n**2
        return Estimate(value, None, "SKCE", "biased", n, kernel, provenance)
    error = 2.0 * math.sqrt(moments.squares / ((n - 1.0) * n)) if n > 2 else None
    return Estimate(total / (0.5 * n * (n - 1.0)), error, "SKCE", "unbiased", n, kernel, provenance)


def within_sums(
    block: Partition, *, kernel: Kernel, expectations: Any, trace: bool
) -> tuple[float, NDArray, float, dict[str, Any]]:
    """Sum of h over pairs of cases of one partition, row sums, the trace where it is wanted, and notes."""
    problem = prepare_checked(block.targets, block.predictions, kernel, expectations=expectations)
    own = 0.0
    if trace:
        diagonal = np.asarray(to_numpy(problem.diagonal()))
        if np.isnan(diagonal).any():
            raise ValueError(
                "the biased estimator needs at least two draws for each prediction; "
                'take estimator="unbiased", or kind="atoms" if the one value is the prediction'
            )
        own = float(diagonal.sum())
    if problem.n < 2:
        return 0.0, np.zeros(problem.n), own, problem.notes.as_dict()
    with following(as_progress(False)):  # Dask shows how far it is
        sums = Tiled(threads=1, precision="float64").triangle(problem)
    return float(sums.total), np.asarray(sums.rows), own, problem.notes.as_dict()


def between_sums(
    a: Partition, b: Partition, *, kernel: Kernel, expectations: Any
) -> tuple[float, NDArray, NDArray]:
    """Sum of h over pairs of cases of two partitions, and sums for the cases of each."""
    both = joined_blocks([a._replace(weights=None), b._replace(weights=None)])
    problem = prepare_checked(both.targets, both.predictions, kernel, expectations=expectations)
    return rectangle_sums(problem, len(a.targets))


def rectangle_sums(problem: Problem, cut: int) -> tuple[float, NDArray, NDArray]:
    """Sums of h between the first `cut` cases of a problem and the others."""
    rest = problem.n - cut
    features = in_features(problem, float(cut) * rest)
    quick = problem if features is None else features.problem
    height, width = Tiled(threads=1).tile_shape(quick)
    right, down = np.zeros(cut), np.zeros(rest)
    total = 0.0
    with np.errstate(over="ignore", under="ignore"), one_blas_thread():
        for i in in_chunks(cut, within=height):
            for j in in_chunks(rest, within=width):
                h = np.asarray(quick.values(i, slice(cut + j.start, cut + j.stop)))
                own = h.sum(axis=1)
                right[i] += own
                down[j] += h.sum(axis=0)
                total += float(own.sum())
    return total, right, down


def _moments_of_rows(n: int, *rows: NDArray) -> Moments:
    """Moments of row means of some cases."""
    return Moments.of(added(*rows) / max(n - 1, 1))


# -- blocks ------------------------------------------------------------------------------------


def block_estimate(cases: Cases, kernel: Kernel, size: int, expectations: Any) -> Estimate:
    """The mean over blocks of neighbouring cases."""
    if expectations != "auto":
        refuse('skce(estimator="block")', {"expectations": expectations}, IN_MEMORY)
    found = computed_sum(cases.aligned(size).map(_block_sums, empty=RunningBlocks(kernel, size)))
    return found.result()


def _block_sums(block: Partition, empty: RunningBlocks) -> RunningBlocks:
    with following(as_progress(False)):
        return empty.updated(block.given, block.predictions, None)
