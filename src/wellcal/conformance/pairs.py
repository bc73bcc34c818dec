"""Laws that kernels on pairs of prediction and target obey."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal.conformance.report import Check
from wellcal.conformance.sample import FIXED, Sample, as_seen, compare, matrix, row
from wellcal.conformance.spaces import answers, definite, finite, prediction_matrix, symmetric
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.algebra import Scaled, Sum, Tensor
from wellcal.kernels.base import Kernel
from wellcal.kernels.targets import Joint
from wellcal.predictions import Predictions
from wellcal.problem.problem import prepare


def pair_laws(kernel: Kernel, sample: Sample) -> Iterator[tuple[str, Check]]:
    """Laws of a kernel on pairs, as laws of the function h."""
    known: list[NDArray] = []

    def h() -> NDArray:
        if not known:
            known.append(_h_matrix(kernel, sample.batch, sample.targets)[0])
        return known[0]

    yield "finite values", lambda: finite(h(), "case")
    yield "symmetry", lambda: symmetric(h(), "case")
    yield (
        "positive definiteness",
        lambda: definite(
            h(), f"h between {len(sample.batch)} cases", kernel.guarantees(sample.batch).positive_definite
        ),
    )
    yield "simulation", lambda: _simulated_h(kernel, sample)
    yield "guarantees", lambda: answers(kernel, sample.batch)


def _h_matrix(
    kernel: Kernel, batch: Predictions, targets: Array, expectations: str | Lowering = FIXED
) -> tuple[NDArray, float]:
    problem = prepare(targets, batch, kernel, expectations=expectations)
    h = to_numpy(problem.tile(problem.rows, problem.rows)).astype(np.float64)
    return h, float(np.nan_to_num(problem.notes.error))


def _pair_values(kernel: Kernel, i: int, y: Array, j: int, z: Array, sample: Sample) -> NDArray:
    """k((P_i, y_s), (P_j, z_t)) for two of the few predictions and any number of targets."""
    if isinstance(kernel, Sum):
        parts = [_pair_values(k, i, y, j, z, sample) for k in kernel.kernels]
        return sum(parts[1:], start=parts[0])
    if isinstance(kernel, Scaled):
        return float(kernel.factor) * _pair_values(kernel.kernel, i, y, j, z, sample)
    few = sample.few
    if isinstance(kernel, Joint):
        left, right = few[np.full(y.shape[0], i)], few[np.full(z.shape[0], j)]
        return to_numpy(kernel.function(left, y, right, z)).astype(np.float64)
    assert isinstance(kernel, Tensor)
    name = f"prediction kernel {kernel.predictions!r}"
    if name not in sample.known:
        sample.known[name] = prediction_matrix(kernel.predictions, few)
    return sample.known[name][i, j] * matrix(kernel.targets, y, z)


def _simulated_h(kernel: Kernel, sample: Sample) -> None:
    few = sample.few
    raw = few.sample(sample.rng)
    seen = as_seen(few, to_numpy(raw))
    found, error = _h_matrix(kernel, few, raw, "auto")
    for i in range(len(few)):
        for j in range(i + 1, len(few)):
            a, b = row(seen, i), row(seen, j)
            fixed = _pair_values(kernel, i, a, j, b, sample)
            averages: list[float] = []
            largest = float(np.abs(fixed).max())
            for x, y in sample.halves(i, j):
                both = _pair_values(kernel, i, x, j, y, sample)
                left = _pair_values(kernel, i, x, j, b, sample)
                right = _pair_values(kernel, i, a, j, y, sample)
                averages.append(float(both.mean() - left.mean() - right.mean() + fixed.mean()))
                largest = max(largest, *(float(np.abs(v).max()) for v in (both, left, right)))
            what = f"h between predictions {i} and {j}"
            compare(found[i, j], averages, 4.0 * largest, error, what, len(sample.drawn) // 2)
