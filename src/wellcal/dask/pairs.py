"""SKCE of cases in partitions: pairs of partitions, each of them a task.

A task has the cases of two partitions, prepares them as one problem, features included, and visits the pairs
between them. What comes back is one sum, and one number for each case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.checks import one_of
from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.progress import reported
from wellcal._arrays.threads import one_blas_thread
from wellcal.dask.building import as_cases
from wellcal.dask.functions import IN_MEMORY, refuse
from wellcal.dask.judging import check_ties, ties_in
from wellcal.dask.kernels import kernel_of
from wellcal.dask.partitioned import (
    Cases,
    Partition,
    Task,
    added,
    computed_sum,
    joined_blocks,
    on,
    summed,
)
from wellcal.dask.watching import computed
from wellcal.engines.tiled import Tiled
from wellcal.kernels.base import Kernel
from wellcal.measures._skce import check_options, resolve_block_size
from wellcal.measures.estimate import Estimate
from wellcal.measures.round_numbers import large_numbers
from wellcal.measures.running.blocks import RunningBlocks
from wellcal.predictions.quantile_ties import Ties, counted_only
from wellcal.problem.feature_form import in_features
from wellcal.problem.problem import Problem, check_pair_kernel, prepare_checked
from wellcal.problem.weights import MeanOfWeighted, WeightSums, weighted_problem

MOST_PAIRS = 1e15
"""Pairs of cases that are visited at most, those of 45 million cases: a hundred machines take an hour."""


class Moments(NamedTuple):
    """Number of cases, mean of a quantity, and sum of squared deviations from it.

    With weights: their sum of squares, the multiple of them that is nearest to a quantity, and the sum of
    squared deviations from that.
    """

    n: float
    mean: float
    squares: float

    @classmethod
    def of(cls, values: NDArray, weights: NDArray | None = None) -> Moments:
        """Of some cases."""
        w = np.ones(len(values)) if weights is None else weights
        n = float(w @ w)
        mean = float(w @ values) / n if n > 0.0 else 0.0
        return cls(n, mean, float(np.sum((values - mean * w) ** 2)))

    def merged(self, other: Moments) -> Moments:
        """Of two parts of the cases, without cancellation (Chan, Golub, LeVeque, 1983)."""
        n, gap = self.n + other.n, other.mean - self.mean
        share = other.n / n if n > 0.0 else 0.0
        squares = self.squares + other.squares + gap**2 * self.n * share
        return Moments(n, self.mean + gap * share, squares)

    def about(self, multiple: float) -> float:
        """Sum of squared deviations from another multiple of the weights."""
        return self.squares + self.n * (self.mean - multiple) ** 2


@dataclass(frozen=True)
class Weighing:
    """What weights of all cases add up to, relative to the largest of them.

    Attributes
    ----------
    largest
        The largest weight.
    total, pairs
        Sum of weights, and of products of the weights of two cases.
    weighted
        What they make of standard errors.
    others
        Of each partition, the sum of weights of all other ones.
    positive
        How many weights are not zero.
    """

    largest: float
    total: float
    pairs: float
    weighted: MeanOfWeighted
    others: NDArray
    positive: int

    @classmethod
    def of(cls, cases: Cases, at_least: int) -> Weighing:
        """Two passes over the weights: products of large ones must not overflow."""
        found = np.array(computed(cases.map(_largest_weight)))
        largest, positive = float(found[:, 0].max()), int(found[:, 1].sum())
        if positive < at_least:
            number = "all are zero" if positive == 0 else f"only {positive} is"
            raise ValueError(f"weights must be positive for at least {at_least} of the cases, and {number}")
        parts = np.array(computed(cases.map(_sums_of_weights, largest=largest)))
        totals = parts[:, 0]
        # Sums of positive terms only: one dominating weight cancels nothing.
        before = np.concatenate([[0.0], np.cumsum(totals)[:-1]])
        behind = np.concatenate([np.cumsum(totals[::-1])[::-1][1:], [0.0]])
        pairs = float(parts[:, 1].sum() + totals @ behind)
        weighted = MeanOfWeighted.from_sums(float(totals.sum()), *parts[:, 2:].sum(axis=0).tolist())
        return cls(largest, float(totals.sum()), pairs, weighted, before + behind, positive)


def _largest_weight(block: Partition | None) -> tuple[float, int]:
    if block is None or block.weights is None:
        return 0.0, 0
    return float(block.weights.max()), int(np.count_nonzero(block.weights))


def _sums_of_weights(block: Partition | None, *, largest: float) -> tuple[float, ...]:
    """Sums of weights and of pairs of them, and of the powers that standard errors need."""
    w = np.zeros(0) if block is None else relative_weights(block, largest)
    if w is None or len(w) == 0:
        return (0.0,) * 6
    found, square = WeightSums.of(w), w * w
    powers = (square, square * w, square**2, square**2 * w)
    return float(found.total), float(found.pairs), *(float(power.sum()) for power in powers)


def relative_weights(block: Partition, largest: float | None) -> NDArray | None:
    """Weights relative to the largest of all."""
    return None if block.weights is None or largest is None else block.weights / largest


@reported
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
    check_options(estimator, block_size, None, weights)
    one_of(precision, "precision", ("auto", "float64"), or_else="for cases in partitions")
    refuse("skce", {"engine": None if engine == "auto" else engine}, IN_MEMORY)
    refuse("skce", {"rng": rng}, "shuffle the rows of the files before")
    cases = as_cases(y, pred, weights)
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
    fewest = 1 if estimator == "biased" else 2
    weighing = None if weights is None else Weighing.of(cases, fewest)
    return _all_pairs(cases, chosen, estimator, expectations, weighing)


# -- all pairs ---------------------------------------------------------------------------------


def _all_pairs(
    cases: Cases, kernel: Kernel, estimator: str, expectations: Any, weighing: Weighing | None
) -> Estimate:
    used = np.flatnonzero(cases.sizes)
    n, blocks = cases.n, [cases.blocks[k] for k in used]
    largest = None if weighing is None else weighing.largest
    shared = {"kernel": kernel, "expectations": expectations, "largest": largest}
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
        if weighing is None:
            rows.append(on(_moments_of_rows, n, own[1], *others))
        else:
            around = float(weighing.others[used[k]])
            rows.append(on(_weighted_moments, blocks[k], weighing.largest, around, own[1], *others))
    traces = [task[2] for task in within]
    total, moments, (trace, ties), notes = computed(
        [summed(totals), summed(rows), summed(traces), within[0][3]]
    )
    check_ties(ties)
    if not math.isfinite(total) or math.isnan(trace):
        raise ValueError(f"h is not finite for some pairs of cases under the kernel {kernel!r}")
    provenance = {
        "precision": "float64",
        **notes,
        "engine": "dask",
        "partitions": len(blocks),
        "pairs_of_partitions": len(blocks) * (len(blocks) + 1) // 2,
    }
    whole, visited, positive = float(n), 0.5 * n * (n - 1.0), n
    if weighing is not None:
        whole, visited, positive = weighing.total, weighing.pairs, weighing.positive
        provenance |= weighing.weighted.worth
    if estimator == "biased":
        value = (2.0 * total + trace) / whole**2
        return Estimate(value, None, "SKCE", "biased", n, kernel, provenance)
    value = total / visited
    weighted = MeanOfWeighted.from_sums(*(n,) * 5) if weighing is None else weighing.weighted
    known = positive > 2 and weighted.has_error
    error = 2.0 * math.sqrt(moments.about(value) * weighted.factor) / whole if known else None
    return Estimate(value, error, "SKCE", "unbiased", n, kernel, provenance)


def within_sums(
    block: Partition, *, kernel: Kernel, expectations: Any, trace: bool, largest: float | None = None
) -> tuple[float, NDArray, tuple[float, Ties | None], dict[str, Any]]:
    """Sum of h over pairs of cases of one partition, row sums, what else adds up, and notes.

    That is the trace, where it is wanted, and outcomes that fall on quantiles.
    """
    problem = prepare_checked(block.targets, block.predictions, kernel, expectations=expectations)
    weights = relative_weights(block, largest)
    if weights is not None:
        problem = weighted_problem(problem, weights)
    own = 0.0
    if trace:
        diagonal = np.asarray(to_numpy(problem.diagonal()))
        if np.isnan(diagonal).any():
            raise ValueError(
                "the biased estimator needs at least two draws for each prediction; "
                'take estimator="unbiased", or kind="atoms" if the one value is the prediction'
            )
        own = float(diagonal.sum())
    adding = own, ties_in(block)
    if problem.n < 2:
        return 0.0, np.zeros(problem.n), adding, problem.notes.as_dict()
    sums = Tiled(threads=1, precision="float64").triangle(problem)
    return float(sums.total), np.asarray(sums.rows), adding, problem.notes.as_dict()


def between_sums(
    a: Partition, b: Partition, *, kernel: Kernel, expectations: Any, largest: float | None = None
) -> tuple[float, NDArray, NDArray]:
    """Sum of h over pairs of cases of two partitions, and sums for the cases of each."""
    both = joined_blocks([a, b])
    problem = prepare_checked(both.targets, both.predictions, kernel, expectations=expectations)
    return rectangle_sums(problem, len(a.targets), relative_weights(both, largest))


def rectangle_sums(
    problem: Problem, cut: int, weights: NDArray | None = None
) -> tuple[float, NDArray, NDArray]:
    """Sums of h, or of w_i w_j h, between the first `cut` cases of a problem and the others."""
    rest = problem.n - cut
    features = in_features(problem, float(cut) * rest)
    quick = problem if features is None else features.problem
    height, width = Tiled(threads=1).tile_shape(quick)
    right, down = np.zeros(cut), np.zeros(rest)
    total = 0.0
    with np.errstate(over="ignore", under="ignore"), one_blas_thread():
        for i in in_chunks(cut, within=height):
            for j in in_chunks(rest, within=width):
                down_here = slice(cut + j.start, cut + j.stop)
                h = np.asarray(quick.values(i, down_here))
                if weights is not None:
                    h = h * weights[i, None] * weights[down_here]
                own = h.sum(axis=1)
                right[i] += own
                down[j] += h.sum(axis=0)
                total += float(own.sum())
    return total, right, down


def _moments_of_rows(n: int, *rows: NDArray) -> Moments:
    """Moments of row means of some cases."""
    return Moments.of(added(*rows) / max(n - 1, 1))


def _weighted_moments(block: Partition, largest: float, around: float, *rows: NDArray) -> Moments:
    """Moments of weighted row means; `around` is the sum of weights of other partitions."""
    w = relative_weights(block, largest)
    assert w is not None
    return Moments.of(added(*rows) / (WeightSums.of(w).others + around), w)


# -- blocks ------------------------------------------------------------------------------------


def block_estimate(cases: Cases, kernel: Kernel, size: int, expectations: Any) -> Estimate:
    """The mean over blocks of neighbouring cases."""
    if expectations != "auto":
        refuse('skce(estimator="block")', {"expectations": expectations}, IN_MEMORY)
    found, ties = computed_sum(cases.aligned(size).map(_block_sums, empty=RunningBlocks(kernel, size)))
    check_ties(ties)
    return found.result()


def _block_sums(block: Partition, empty: RunningBlocks) -> tuple[RunningBlocks, Ties | None]:
    with counted_only():
        return empty.updated(block.given, block.predictions, None), ties_in(block)
