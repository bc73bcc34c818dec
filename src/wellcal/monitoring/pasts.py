"""The witness of past cases at new ones, for a batch of new cases at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from wellcal._arrays.chunks import Chunk, budget, in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.rows import Rows, slice_rows
from wellcal.engines import Engine
from wellcal.expectations.expansion import Notes, plan
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.prediction_kernels import prediction_kernel
from wellcal.expectations.signed_measures import Targets
from wellcal.kernels.algebra import Tensor
from wellcal.kernels.base import Kernel
from wellcal.kernels.targets import Joint
from wellcal.monitoring.places import shared_places
from wellcal.predictions import Predictions, Quantiles
from wellcal.problem.at_locations import location_kernel
from wellcal.problem.locations import Locations
from wellcal.problem.problem import expand

_IN_CACHE = 8  # arrays of a chunk that are in a core's cache together


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
    new = predictions[n - m :]
    each = Locations(new, flat)
    total = np.zeros((m, len(windows), count))
    for factor, part in expand(kernel):
        sums, at = _of_tensor, each
        if isinstance(part, Joint) or isinstance(new.parts[0], Quantiles):
            # Elsewhere only values of targets meet the past, not the predictions that they belong to.
            at = Locations(new[np.repeat(np.arange(m), count)], flat)
        if isinstance(part, Joint):
            sums = _of_joint
        known = (predictions, targets, at, m, windows, engine, expectations)
        total += float(factor) * sums(cast("Any", part), *known)
    sizes = np.clip(np.arange(n - m, n)[:, None], 1, windows)
    return total / sizes[:, :, None]


def _of_tensor(
    kernel: Tensor,
    predictions: Predictions,
    targets: NDArray,
    at: Locations,
    m: int,
    windows: Sequence[int],
    engine: Engine,
    expectations: Any,
) -> NDArray:
    """Sums over past cases i of k_P(P_i, P_t) (k_Y(y_i, c) - E k_Y(Z_i, c)), c a candidate of case t.

    k_P is evaluated between past and new cases once for all candidates, k_Y at places that all new cases
    share or, where there are too many of these, at the candidates of each.
    """
    n, ops, notes, count = len(predictions), predictions.ops, Notes(), len(at.targets) // m
    form, rows = prediction_kernel(kernel.predictions, predictions, expectations=expectations, notes=notes)
    places = shared_places(kernel.targets, at.predictions, at.targets, m)
    where = at if places is None else places
    seen, wanted = Targets(targets, predictions), Targets(where.targets, where.predictions)
    # Closed forms rather than features: what a case adds must not depend on which cases come with it.
    scheme = plan(
        kernel.targets, [predictions, seen, wanted], expectations=expectations, notes=notes, relative=True
    )
    left, right = scheme.rows([(1.0, seen), (-1.0, predictions)]), scheme.rows([(1.0, wanted)])
    on_targets = scheme.form(left, right)

    def gaps(past: Chunk, columns: Rows) -> NDArray:
        return np.asarray(engine.rectangle(on_targets, ops, slice_rows(left, past), columns))

    first = max(0, n - m - windows[-1])
    shared = None if places is None else gaps(slice(first, n), right)
    sums = np.zeros((m, len(windows), count if shared is None else shared.shape[1]))
    entries = min(n, windows[-1]) * max(
        form.cost.entries, on_targets.cost.entries * count if shared is None else 1
    )
    for cases in in_chunks(m, entries, within=budget.cache // _IN_CACHE):
        new = slice(n - m + cases.start, n - m + cases.stop)
        past = slice(max(0, new.start - windows[-1]), new.stop - 1)
        if past.start == past.stop:
            continue
        likeness = engine.rectangle(form, ops, slice_rows(rows, past), slice_rows(rows, new))
        bands = [_band(np.asarray(likeness), past.start, new.start, size) for size in windows]
        if shared is None:
            own = slice_rows(right, slice(cases.start * count, cases.stop * count))
            found = np.swapaxes(gaps(past, own).reshape(past.stop - past.start, -1, count), 0, 1)
            for k, band in enumerate(bands):
                sums[cases, k] = (band.T[:, None] @ found[:, -len(band) :])[:, 0]
        else:
            found = shared[past.start - first : past.stop - first]
            for k, band in enumerate(bands):
                sums[cases, k] = band.T @ found[-len(band) :]
    return sums if places is None else places.at_candidates(sums)


def _band(likeness: NDArray, start: int, new: int, size: int) -> NDArray:
    """Of rows `start`, .. and columns for cases `new`, .. only the `size` rows before each case.

    Rows without any are left out at the beginning.
    """
    stop, width = start + likeness.shape[0], likeness.shape[1]
    begin = max(start, new - size)
    if width == 1:
        return likeness[begin - start :]
    out = likeness[begin - start :].copy()
    cases = np.arange(new, new + width)
    for first, last in ((new, stop), (begin, min(stop, new + width - 1 - size))):
        if first < last:
            rows = np.arange(first, last)[:, None]
            out[first - begin : last - begin][(rows >= cases) | (rows < cases - size)] = 0.0
    return out


def _of_joint(
    kernel: Joint,
    predictions: Predictions,
    targets: NDArray,
    at: Locations,
    m: int,
    windows: Sequence[int],
    engine: Engine,
    expectations: Any,
) -> NDArray:
    """The same for a kernel that does not factor, case by case."""
    n, count = len(predictions), len(at) // m
    out = np.zeros((m, len(windows), count))
    for k, t in enumerate(range(n - m, n)):
        past, own = slice(max(0, t - windows[-1]), t), slice(k * count, (k + 1) * count)
        if past.start < past.stop:
            where = Locations(at.predictions[own], at.targets[own])
            at_where = location_kernel(
                kernel, predictions[past], where, engine=engine, expectations=expectations
            )
            found = np.asarray(at_where.deviations(targets[past]))
            out[k] = [np.sum(found[-size:], axis=0) for size in windows]
    return out
