"""Fair bets against a model: the witness of past cases at a new one, turned into e-values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from wellcal._arrays.chunks import Chunk
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.rows import slice_rows
from wellcal.engines import Engine
from wellcal.expectations.decompose import Targets
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.on_predictions import prediction_kernel
from wellcal.expectations.plans import Notes, plan
from wellcal.kernels.algebra import Tensor
from wellcal.kernels.base import Kernel
from wellcal.kernels.targets import Joint
from wellcal.predictions import Predictions
from wellcal.problem.at_locations import location_kernel
from wellcal.problem.locations import Locations
from wellcal.problem.problem import expand

ETAS = (0.1, 0.2, 0.4, 0.8)
"""How bold the bets are, in standard deviations of a score."""

_FLAT = 1e-12  # spread of a witness, relative to its size, that is rounding


def past_witness(
    kernel: Kernel,
    predictions: Predictions,
    targets: NDArray,
    candidates: NDArray,
    *,
    windows: Sequence[int],
    engine: Engine,
    expectations: str | Lowering = "auto",
) -> NDArray:
    """Witness of the cases before each of the last m, at its prediction and each of its candidates.

    Parameters
    ----------
    kernel
        Kernel on pairs of prediction and target.
    predictions, targets
        n cases in NumPy, targets as `check_targets` returned them.
    candidates
        Targets ``(R + 1, m, ...)`` that the last m cases might have had.
    windows
        Numbers of cases before it that the witnesses of a case are made of, each at most, increasing.
    engine
        Evaluates kernels between cases and candidates.
    expectations
        As in :func:`wellcal.skce`.

    Returns
    -------
    array
        ``(m, len(windows), R + 1)``; zero for a case without a past.
    """
    count, m = candidates.shape[:2]
    n = len(predictions)
    # Candidates of a case follow each other.
    flat = np.swapaxes(candidates, 0, 1).reshape(m * count, *candidates.shape[2:])
    repeated = predictions[np.repeat(np.arange(n - m, n), count)]
    at = Locations(repeated, flat)
    total = np.zeros((m, len(windows), count))
    for factor, part in expand(kernel):
        gaps = (_of_joint if isinstance(part, Joint) else _of_tensor)(
            cast("Any", part), predictions, targets, at, engine, expectations
        )
        for t in range(n - m, n):
            past = slice(max(0, t - windows[-1]), t)
            if past.start < past.stop:
                k = t - (n - m)
                sizes = [min(size, t) for size in windows]
                sums = gaps(past, t, slice(k * count, (k + 1) * count), sizes)
                total[k] += float(factor) * sums / np.array(sizes)[:, None]
    return total


Gaps = Callable[[Chunk, int, Chunk, Sequence[int]], NDArray]
"""Sums over past cases i of k((P_i, y_i), (P_t, c)) - E k((P_i, Z_i), (P_t, c)), c a candidate of case t.

One row for each of the numbers of most recent cases."""


def _of_tensor(
    kernel: Tensor,
    predictions: Predictions,
    targets: NDArray,
    at: Locations,
    engine: Engine,
    expectations: Any,
) -> Gaps:
    """k_P between the cases once for all candidates; closed forms of k_Y for all pairs at a time."""
    ops, notes = predictions.ops, Notes()
    form, rows = prediction_kernel(kernel.predictions, predictions, expectations=expectations, notes=notes)
    seen, wanted = Targets(targets, predictions), Targets(at.targets, at.predictions)
    # Closed forms rather than features: what a case adds must not depend on which cases come with it.
    scheme = plan(
        kernel.targets, [predictions, seen, wanted], expectations=expectations, notes=notes, relative=True
    )
    left, right = scheme.rows([(1.0, seen), (-1.0, predictions)]), scheme.rows([(1.0, wanted)])
    on_targets = scheme.form(left, right)

    def gaps(past: Chunk, t: int, own: Chunk, sizes: Sequence[int]) -> NDArray:
        alike = engine.rectangle(form, ops, slice_rows(rows, past), slice_rows(rows, slice(t, t + 1)))
        found = engine.rectangle(on_targets, ops, slice_rows(left, past), slice_rows(right, own))
        likeness, gap = np.asarray(alike)[:, 0], np.asarray(found)
        return np.stack([likeness[-size:] @ gap[-size:] for size in sizes])

    return gaps


def _of_joint(
    kernel: Joint,
    predictions: Predictions,
    targets: NDArray,
    at: Locations,
    engine: Engine,
    expectations: Any,
) -> Gaps:
    """The same for a kernel that does not factor."""

    def gaps(past: Chunk, t: int, own: Chunk, sizes: Sequence[int]) -> NDArray:
        where = Locations(at.predictions[own], at.targets[own])
        at_where = location_kernel(kernel, predictions[past], where, engine=engine, expectations=expectations)
        found = np.asarray(at_where.deviations(targets[past]))
        return np.stack([np.sum(found[-size:], axis=0) for size in sizes])

    return gaps


def standardised(u: NDArray) -> NDArray:
    """Scores ``(..., R + 1)`` with mean zero and variance one over the places; zero where they are all alike.

    The order of places does not matter: what is exchangeable stays so.
    """
    if not np.isfinite(u).all():
        raise ValueError("the witness is not finite: check the kernel, and what functions of yours return")
    size = np.max(np.abs(u), axis=-1, keepdims=True)
    centred = u - np.mean(u, axis=-1, keepdims=True)
    spread = np.sqrt(np.mean(centred**2, axis=-1, keepdims=True))
    flat = spread <= _FLAT * size
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, spread))


def log_bets(u: NDArray, etas: Sequence[float] = ETAS) -> NDArray:
    """log e(eta), ``(..., len(etas))``, from scores ``(..., R + 1)`` of the target and of draws.

    The mean of exp over all R + 1 places of the target is 1, whatever u: a fair bet.

    Examples
    --------
    >>> u = np.array([[2.0, 0.5, -1.0]])
    >>> shifted = [np.exp(log_bets(np.roll(u, k, axis=1))) for k in range(3)]
    >>> np.mean(shifted, axis=0).round(12)
    array([[1., 1., 1., 1.]])
    """
    bold = np.asarray(etas)[:, None] * u[..., None, :]
    most = bold.max(axis=-1)
    total = np.exp(bold - most[..., None]).sum(axis=-1)
    return bold[..., 0] - most + np.log(u.shape[-1]) - np.log(total)
