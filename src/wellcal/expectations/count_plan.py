"""Expectations of kernels under predictions of counts: one matrix product for all pairs, however wide.

A prediction is its probabilities at the nodes of a :class:`~wellcal.expectations.lattice.Lattice`. From there
two ways lead to ``<P_i - d(y_i), P_j - d(y_j)>``, and the plan takes the one with the shorter products:

- *features* of a Gaussian kernel, of which predictions and targets are subtracted before they are multiplied;
- *nodes*: the kernel between nodes, and between nodes and targets, with the kernel between targets evaluated
  pair by pair. A few far targets, which would need features of their own, cost nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    concat_rows,
    from_numpy,
    is_traced,
    namespace,
    to_numpy,
    widen,
)
from wellcal._arrays.threads import one_blas_thread
from wellcal.expectations.bilinear import ElementForm, FiniteForm, WeightRows
from wellcal.expectations.count_basis import CountBasis, representatives_of
from wellcal.expectations.count_form import CountForm, CountRows
from wellcal.expectations.count_span import CountSpan, span_of
from wellcal.expectations.decompose import Components, Side, Targets, components_of, merged, target_components
from wellcal.expectations.gaussian_features import NORM, step_of
from wellcal.expectations.lattice import Lattice, Nodes, lattice_of
from wellcal.expectations.needed_features import around
from wellcal.kernels.algebra import Scaled, Sum
from wellcal.kernels.base import Kernel
from wellcal.kernels.targets import Delta, Gaussian
from wellcal.predictions import Predictions
from wellcal.predictions.batches import in_numpy

_PAIRS = 64  # features that cost as much as a kernel between two targets
_DEAR = 1.2  # cost of a feature: it is made from nodes first, whose own kernel a metric has asked for already

Summand: TypeAlias = tuple[float, Gaussian | Delta]


def count_summands(kernel: Kernel) -> list[Summand] | None:
    """A kernel as a weighted sum of kernels that wide counts have expectations of, or None."""
    if isinstance(kernel, Sum):
        parts = [count_summands(part) for part in kernel.kernels]
        return None if any(p is None for p in parts) else [s for p in parts if p is not None for s in p]
    if isinstance(kernel, Scaled):
        inner = count_summands(kernel.kernel)
        if inner is None or not isinstance(kernel.factor, (int, float)):
            return None
        return [(float(kernel.factor) * factor, part) for factor, part in inner]
    if type(kernel) is Delta or (type(kernel) is Gaussian and isinstance(kernel.lengthscale, float)):
        return [(1.0, kernel)]
    return None


# -- what is remembered of a batch -------------------------------------------------------------


@dataclass(frozen=True)
class _Memory:
    """The nodes of a batch, and what was made of its probabilities there, by kernel and way.

    Where predictions are sums of a few representatives (:mod:`~wellcal.expectations.count_basis`), or of
    other measures (:mod:`~wellcal.expectations.count_span`), these take the place of the nodes, and their
    weights that of the probabilities.
    """

    nodes: Nodes | None
    basis: CountBasis | CountSpan | None
    tables: dict[tuple[Kernel | None, bool], NDArray] = field(default_factory=lambda: {})
    grams: dict[Kernel, NDArray] = field(default_factory=lambda: {})

    @property
    def size(self) -> int:
        """Numbers that a prediction is given by: probabilities at nodes, or weights of representatives."""
        assert self.nodes is not None
        return self.nodes.lattice.size if self.basis is None else self.basis.size


_remembered: WeakKeyDictionary[Predictions, _Memory] = WeakKeyDictionary()

_MOST_REMEMBERED = 8_000_000  # entries of a table: 64 MB


def _memory(batches: Sequence[Predictions]) -> _Memory:
    """Nodes of batches; those of a single one in NumPy are remembered as long as it lives."""
    single = batches[0] if len(batches) == 1 and not batches[0].ops.differentiable else None
    known = None if single is None else _remembered.get(single)
    if known is None:
        components = [in_numpy(part) for batch in batches for part, _ in components_of(batch)]
        # Threads of BLAS would wait, at full speed, for the next of many small products.
        with one_blas_thread():
            known = _new_memory(components, alone=single is not None and len(components) == 1)
        if single is not None:
            _remembered[single] = known
    return known


def _new_memory(components: Sequence[Predictions], *, alone: bool) -> _Memory:
    basis = representatives_of(components[0]) if alone else None
    if basis is not None:
        return _Memory(basis.nodes, basis)
    nodes = lattice_of(components)
    spanned = span_of(components[0], nodes, _MOST_REMEMBERED) if alone and nodes is not None else None
    return (
        _Memory(nodes, None) if spanned is None else _Memory(nodes, spanned[0], {(None, False): spanned[1]})
    )


# -- the plan ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CountPlan:
    """Counts by features of a Gaussian kernel or, where there are no `centres`, by nodes.

    Attributes
    ----------
    kernel, summands
        The kernel, and the simple kernels that it is a sum of.
    memory
        Nodes, and what is known of single batches there.
    centres
        Numbers of the features, centred at multiples of a fraction of the length scale.
    """

    kernel: Kernel
    summands: tuple[Summand, ...]
    memory: _Memory
    centres: NDArray | None

    @property
    def lattice(self) -> Lattice:
        """The nodes."""
        assert self.memory.nodes is not None
        return self.memory.nodes.lattice

    @property
    def size(self) -> int:
        """Length of the products."""
        return self.memory.size if self.centres is None else len(self.centres)

    def rows(self, measure: list[tuple[float, Side]]) -> WeightRows | CountRows:
        """Features of a measure; or its probabilities at the nodes, and its targets."""
        if self.centres is not None:
            total: Array = None
            for sign, side in measure:
                part = self.of_targets(side) if isinstance(side, Targets) else self.mean(side)
                total = sign * part if total is None else total + sign * part
            return WeightRows(total)
        return self._by_nodes(measure)

    def form(self, left: WeightRows | CountRows, right: WeightRows | CountRows) -> FiniteForm | CountForm:
        """Matrix products."""
        if isinstance(left, CountRows) or isinstance(right, CountRows):
            sides = [rows.targets if isinstance(rows, CountRows) else () for rows in (left, right)]
            return CountForm(ElementForm.between(self.kernel, 1, *sides), self.size, self.gram())
        return FiniteForm(self.gram() if self.centres is None else None, self.size)

    def _by_nodes(self, measure: list[tuple[float, Side]]) -> WeightRows | CountRows:
        mean: Array = None
        image: Array = None
        cross: Array = None
        targets: list[Components] = []
        for sign, side in measure:
            if isinstance(side, Targets):
                part = sign * self.of_targets(side)
                cross = part if cross is None else cross + part
                targets.append(target_components(side).scaled(sign))
            else:
                part = self.probabilities(side)
                mean = sign * part if mean is None else mean + sign * part
                part = self.image(side)
                image = sign * part if image is None else image + sign * part
        if cross is None:
            return WeightRows(mean, image)
        points = merged(targets)
        if mean is None:
            return CountRows(cross, cross, points)
        xp = namespace(mean)
        left, right = xp.concat([image + cross, mean], axis=1), xp.concat([mean, cross], axis=1)
        return CountRows(left, right, points)

    # -- predictions ---------------------------------------------------------------------------

    def probabilities(self, predictions: Predictions) -> Array:
        """Probabilities at the nodes, ``(n, G)``."""
        return self._remember((None, False), predictions, self._probabilities)

    def image(self, predictions: Predictions) -> Array:
        """Products of the probabilities with the kernel between nodes, or with the features of nodes."""
        return self._remember((self.kernel, self.centres is None), predictions, self._image)

    def mean(self, predictions: Predictions) -> Array:
        """Mean features, ``(n, M)``."""
        assert self.centres is not None
        found, own = self.image(predictions), self._own_centres()
        if len(own) == len(self.centres):
            return found
        # Features that are there for targets alone are zero for predictions, to rounding. So is the next one
        # of their own, which takes the place: it ends a run, as far from all counts as a feature reaches.
        place = np.minimum(np.searchsorted(own, self.centres), len(own) - 1)
        return namespace(found).take(found, from_numpy(place, found), axis=1)

    def _remember(
        self,
        key: tuple[Kernel | None, bool],
        predictions: Predictions,
        make: Callable[[Predictions], Array],
    ) -> Array:
        if not self._is_own(predictions):
            return make(predictions)
        found = self.memory.tables.get(key)
        if found is None:
            with one_blas_thread():
                found = make(predictions)
            if found.size <= _MOST_REMEMBERED:
                self.memory.tables[key] = found
        return found

    def _is_own(self, predictions: Predictions) -> bool:
        """Whether the memory is that of this batch."""
        return _remembered.get(predictions) is self.memory

    def _probabilities(self, predictions: Predictions) -> Array:
        if self.memory.basis is not None:
            return self.memory.basis.weights(predictions)
        seen = (
            self.memory.nodes.blocks if self.memory.nodes is not None and self._is_own(predictions) else None
        )
        total: Array = None
        for k, (component, weight) in enumerate(components_of(predictions)):
            part = self.lattice.probabilities(component, None if seen is None else seen[k])
            part = part if weight is None else part * weight[:, None]
            total = part if total is None else total + part
        return total

    def _image(self, predictions: Predictions) -> Array:
        if predictions.ops.differentiable or self.centres is None or self.memory.basis is not None:
            table = self.gram() if self.centres is None else self._features()
            if not predictions.ops.differentiable:
                batches = self._in_chunks(predictions)
                return concat_rows([self.probabilities(batch) @ table for batch in batches])
            probabilities = self.probabilities(predictions)
            return namespace(probabilities).matmul(probabilities, widen(from_numpy(table, probabilities)))
        scale, at = self._feature_scale()
        batches = self._in_chunks(predictions)
        return NORM * concat_rows([self.lattice.averaged(self.probabilities(b), scale, at) for b in batches])

    def _in_chunks(self, predictions: Predictions) -> list[Predictions]:
        """The predictions, or parts of them whose probabilities fit the memory."""
        chunks = list(in_chunks(len(predictions), self.memory.size, within=_MOST_REMEMBERED))
        return [predictions] if len(chunks) == 1 else [predictions[rows] for rows in chunks]

    def _own_centres(self) -> NDArray:
        return centres_of(self.lattice, self._gaussian.lengthscale)

    @property
    def _gaussian(self) -> Gaussian:
        kernel = self.summands[0][1]
        assert isinstance(kernel, Gaussian)
        return kernel

    def _features(self) -> NDArray:
        """Features of the measures that nodes, or representatives, stand for: ``(G, M)``."""
        return NORM * self._smoothed(*self._feature_scale()).T

    def _smoothed(self, lengthscale: float, at: NDArray) -> NDArray:
        """Expectations of a Gaussian kernel under nodes or representatives, ``(len(at), G)``."""
        if self.memory.basis is None:
            return self.lattice.smoothed(lengthscale, at)
        return self.lattice.averaged(self.memory.basis.probabilities, lengthscale, at).T

    def _feature_scale(self) -> tuple[float, NDArray]:
        """Length scale of features, and where they are centred."""
        scale = float(self._gaussian.lengthscale)
        return scale / math.sqrt(2.0), self._own_centres() * step_of(scale)

    def gram(self) -> NDArray:
        """The kernel between nodes, or between representatives."""
        if self.kernel not in self.memory.grams:
            with one_blas_thread():
                self.memory.grams[self.kernel] = self._gram()
        return self.memory.grams[self.kernel]

    def _gram(self) -> NDArray:
        measures = None if self.memory.basis is None else self.memory.basis.probabilities
        total = np.zeros((self.memory.size, self.memory.size))
        for factor, kernel in self.summands:
            if isinstance(kernel, Gaussian):
                total += factor * self.lattice.gram(float(kernel.lengthscale), measures)
            else:
                weights = self.lattice.weights()
                total += factor * (
                    np.diag(weights) if measures is None else (measures * weights) @ measures.T
                )
        return total

    # -- targets -------------------------------------------------------------------------------

    def of_targets(self, side: Targets) -> Array:
        """Features of targets; without features, the kernel between targets and nodes: ``(n, ...)``."""
        counts, codes = np.unique(to_numpy(side.values).astype(np.float64), return_inverse=True)
        like = widen(components_of(side.predictions)[0][0].like)
        with one_blas_thread():
            found = self.at(counts)
        return from_numpy(found[codes.reshape(-1)], like)

    def at(self, counts: NDArray) -> NDArray:
        """The same for counts in ascending order, in NumPy."""
        if self.centres is not None:
            scale = float(self._gaussian.lengthscale)
            gap = (counts[:, None] - self.centres[None, :] * step_of(scale)) / scale
            with np.errstate(under="ignore"):
                return NORM * np.exp(-gap * gap)
        total = np.zeros((len(counts), self.memory.size))
        for factor, kernel in self.summands:
            if isinstance(kernel, Gaussian):
                total += factor * self._smoothed(float(kernel.lengthscale), counts)
            else:
                found = self.lattice.positions(counts)
                basis = self.memory.basis
                total += factor * (found if basis is None else found @ basis.probabilities.T)
        return total

    def describe(self) -> str:
        """How expectations are found, for the provenance of a result."""
        counts = self.lattice.count
        nodes = f"{self.lattice.size} nodes for {counts} counts, exact to 1e-13"
        if self.memory.basis is not None:
            nodes = f"{self.memory.size} representatives on {nodes}"
        return nodes if self.centres is None else f"{self.size} features of {nodes}"


def centres_of(lattice: Lattice, lengthscale: float, targets: Sequence[NDArray] = ()) -> NDArray:
    """Numbers of the features that counts of a lattice, and targets, reach."""
    step = step_of(lengthscale)
    cells: list[NDArray] = [
        np.arange(np.rint(p.start / step), np.rint(p.stop / step) + 1.0) for p in lattice.panels
    ]
    cells += [np.unique(np.rint(counts / step)) for counts in targets]
    occupied: NDArray = np.unique(np.concatenate(cells))
    # Long runs reach beyond their two ends only.
    gap = np.concatenate([[True], np.diff(occupied) > 1.0, [True]])
    return np.union1d(occupied, around(occupied[gap[:-1] | gap[1:]]))


def plan_of_counts(kernel: Kernel, sides: Sequence[Side]) -> CountPlan | None:
    """A plan for predictions of counts; None where another is better, or values cannot be looked at."""
    summands = count_summands(kernel)
    batches = [side for side in sides if not isinstance(side, Targets)]
    distinct = list({id(batch): batch for batch in batches}.values())
    components = [part for batch in distinct for part, _ in components_of(batch)]
    targets = [side.values for side in sides if isinstance(side, Targets)]
    if summands is None or not components or is_traced(*(p.like for p in components), *targets):
        return None
    memory = _memory(distinct)
    if memory.nodes is None:
        return None
    lattice = memory.nodes.lattice
    by_nodes = 2 * memory.size + _PAIRS if targets else memory.size
    by_grid = lattice.count if lattice.dense else math.inf
    if len(summands) == 1 and isinstance(summands[0][1], Gaussian) and summands[0][0] == 1.0:
        scale = float(summands[0][1].lengthscale)
        if lattice.count / step_of(scale) < 4 * by_nodes:
            centres = centres_of(lattice, scale, [to_numpy(y).astype(np.float64) for y in targets])
            if _DEAR * len(centres) <= by_nodes and len(centres) <= by_grid:
                return CountPlan(kernel, tuple(summands), memory, centres)
    return None if by_grid <= by_nodes else CountPlan(kernel, tuple(summands), memory, None)
