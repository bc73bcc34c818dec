"""Deviations from calibration at locations: the calibration mean embedding (paper, appendix of that name).

    D_ij = k((P_i, y_i), T_j) - E k((P_i, Z_i), T_j),  Z_i ~ P_i,   for locations T_j = (p_j, t_j)

A kernel that is a sum of tensor products takes k_P(P_i, p_j) and E k_Y(Z_i, t_j) once; only k_Y(y_i, t_j)
depends on the targets, so that many sets of targets cost n J kernel values each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from wellcal._arrays.chunks import Chunk, budget, entries_for, in_chunks, rows_within
from wellcal._arrays.memo import on_device
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    concat_rows,
    from_numpy,
    is_numpy,
    namespace,
)
from wellcal._arrays.threads import one_blas_thread
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.plans import Notes
from wellcal.kernels.base import Kernel
from wellcal.kernels.targets import Joint
from wellcal.predictions import Predictions
from wellcal.problem.location_terms import Term, joint_term, tensor_term
from wellcal.problem.locations import Locations, as_locations
from wellcal.problem.problem import check_pair_kernel, expand
from wellcal.problem.rectangles import InChunks, VisitsRectangles

_ROUNDING = 1e-13  # of expectations in closed form, relative to the largest at a location


def deviations(
    kernel: Kernel,
    predictions: Predictions,
    targets: Array,
    locations: Locations | tuple[object, object],
    expectations: str | Lowering = "auto",
) -> Array:
    """D ``(n, J)``, for targets as `check_targets` of the predictions returned them."""
    return location_kernel(kernel, predictions, locations, expectations=expectations).deviations(targets)


def location_kernel(
    kernel: Kernel,
    predictions: Predictions,
    locations: Locations | tuple[object, object],
    *,
    engine: VisitsRectangles | None = None,
    expectations: str | Lowering = "auto",
) -> LocationKernel:
    """Do the work on predictions and locations once, for any number of targets.

    Parameters
    ----------
    kernel
        Kernel on pairs of prediction and target.
    predictions
        Predictions of the n cases.
    locations
        From :func:`draw_locations`, or a tuple ``(predictions, targets)`` as a user gives it.
    engine
        Evaluates kernels between cases and locations; None does so in plain chunks.
    expectations
        As in :func:`ucme`.
    """
    visitor = InChunks() if engine is None else engine
    notes = Notes()
    locations = as_locations(locations, predictions, None)
    terms: list[Term] = []
    expected: Array = None
    for factor, part in expand(check_pair_kernel(kernel)):
        if isinstance(part, Joint):
            term, mean = joint_term(factor, part, predictions, locations, expectations, notes)
        else:
            term, mean = tensor_term(factor, part, predictions, locations, visitor, expectations, notes)
        terms.append(term)
        expected = mean if expected is None else expected + mean
    return LocationKernel(locations, tuple(terms), expected, notes)


@dataclass(frozen=True)
class LocationKernel:
    """A kernel between cases and locations, prepared for targets that are yet to come.

    Attributes
    ----------
    locations
        The J locations.
    expected
        E k((P_i, Z_i), T_j), ``(n, J)``.
    notes
        How expectations were obtained.
    """

    locations: Locations
    terms: tuple[Term, ...]
    expected: Array
    notes: Notes

    @property
    def n(self) -> int:
        """Number of cases."""
        return int(self.expected.shape[0])

    @property
    def precision(self) -> NDArray:
        """How exact deviations at each location are, ``(J,)``, in NumPy: rounding, numerical schemes."""
        rounding = _ROUNDING * np.max(np.abs(self.expected), axis=0)
        error = 0.0 if np.isnan(self.notes.error) else self.notes.error
        return rounding + error * sum(np.max(np.abs(term.weights), axis=0) for term in self.terms)

    def weighted(self, weights: Array) -> LocationKernel:
        """The same with D_ij multiplied by the weight ``(n,)`` of case i."""
        if bool((weights == 1.0).all()):
            return self
        column = weights[:, None]
        terms = tuple(replace(term, weights=term.weights * column) for term in self.terms)
        return replace(self, terms=terms, expected=self.expected * column)

    def values(self, targets: Array) -> Array:
        """k((P_i, y_i), T_j), ``(n, J)``, for targets in internal form, in any array library."""
        total: Array = None
        for term in self.terms:
            part = term.values(targets)
            total = part if total is None else total + part
        return total

    def deviations(self, targets: Array) -> Array:
        """D, ``(n, J)``, for targets in internal form, in any array library."""
        return self.values(targets) - self.expected

    def __call__(self, targets: NDArray) -> NDArray:
        """`sums` of D: the numerators of a statistic, for sets of targets."""
        return self.sums(targets)

    def sums(
        self,
        targets: Array,
        *,
        centred: bool = True,
        progress: Callable[[float, float], None] | None = None,
    ) -> Array:
        """Sums of D over cases, ``(R, J)``, for R sets of targets ``(R, n)`` or ``(R, n, d)``.

        Targets are arrays of NumPy, or tensors, whose sums are made on their device.

        Without `centred` the expectations, which are the same for all sets, are not subtracted. O(R n J)
        operations, in memory that does not grow with R n.
        """
        count = len(self.locations)
        if not is_numpy(namespace(targets)):
            return self._sums_of_tensors(targets, centred=centred)
        out = np.zeros((len(targets), count))
        weights = [np.ascontiguousarray(term.weights.T) for term in self.terms]
        # Products with single vectors are too small for the threads of BLAS.
        with np.errstate(over="ignore", under="ignore"), one_blas_thread():
            for sets, cases in self._chunks(len(targets), budget.cache // 4):
                part = targets[sets, cases]
                for term, by_location in zip(self.terms, weights, strict=True):
                    column = term.columns(part, cases)
                    for j in range(count):
                        out[sets, j] += column(j) @ by_location[j, cases]
                if progress is not None:
                    progress(sets.stop, len(targets))
        return out - np.sum(self.expected, axis=0) if centred else out

    def _sums_of_tensors(self, targets: Array, *, centred: bool) -> Array:
        """`sums` for numbers on a device: one location after the other, as many sets as there is room for."""
        xp, count = namespace(targets), len(self.locations)
        found: list[Array] = []
        for sets in in_chunks(targets.shape[0], targets[0].numel(), within=entries_for(targets)):
            total: Array = 0.0
            for term in self.terms:
                column = term.columns(targets[sets], slice(0, self.n))
                weights = on_device(term.weights, targets)
                total = total + xp.stack([column(j) @ weights[:, j] for j in range(count)], axis=1)
            found.append(total)
        out = concat_rows(found)
        return out - from_numpy(np.sum(self.expected, axis=0), targets) if centred else out

    def moments(
        self, targets: NDArray, *, progress: Callable[[float, float], None] | None = None
    ) -> tuple[NDArray, NDArray]:
        """Means ``(R, J)`` and covariances ``(R, J, J)`` of D over cases, likewise; n - 1 in the divisor."""
        count = len(self.locations)
        means = np.zeros((len(targets), count))
        products = np.zeros((len(targets), count, count))
        with np.errstate(over="ignore", under="ignore"), one_blas_thread():
            for sets, cases in self._chunks(len(targets), rows_within(count, 4 * budget.cache)):
                centred = self._stack(targets[sets, cases], cases)
                own = np.mean(centred, axis=2)
                centred -= own[:, :, None]
                gap = own - means[sets]
                before, now = cases.start, cases.stop - cases.start
                # Moments of two parts of the cases combine without cancellation (Chan, Golub, LeVeque, 1983).
                between = (before * now / cases.stop) * gap[:, :, None] * gap[:, None, :]
                products[sets] += centred @ np.swapaxes(centred, 1, 2) + between
                means[sets] += (now / cases.stop) * gap
                if progress is not None:
                    progress(sets.stop, len(targets))
        return means, products / max(1, self.n - 1)

    def _chunks(self, sets: int, size: int) -> Iterator[tuple[Chunk, Chunk]]:
        """Sets and cases that are handled at a time, about `size` targets of them."""
        yield from product(in_chunks(sets, self.n, within=size), list(in_chunks(self.n, within=size)))

    def _stack(self, targets: NDArray, cases: slice) -> NDArray:
        """D of some sets and cases, ``(R, J, m)``."""
        count = len(self.locations)
        out = np.empty((len(targets), count, cases.stop - cases.start))
        out[...] = -self.expected[cases].T
        for term in self.terms:
            column, weights = term.columns(targets, cases), term.weights
            for j in range(count):
                out[:, j, :] += column(j) * weights[cases, j]
        return out
