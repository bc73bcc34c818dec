"""SKCE of the same predictions with many sets of targets.

Only what depends on the targets is computed again. Written out over a term k_P @ k_Y of the kernel,

    sum_{i<j} k_P(P_i, P_j) ( <P_i, P_j> - <P_i, d(y_j)> - <d(y_i), P_j> + <d(y_i), d(y_j)> ),

the kernel on predictions and the first summand stay. What is done about the others depends on how
:mod:`wellcal.expectations.expansion` expands the problem: features meet in one product for all target sets,
classes look their cross terms up in a table, and all else is evaluated pair by pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from wellcal._arrays.chunks import Chunk, budget, in_chunks, tile_shape, triangle_tiles
from wellcal._arrays.namespaces import NDArray, namespace
from wellcal._arrays.ops import ops_for
from wellcal._arrays.progress import Progress
from wellcal._arrays.rows import Rows, first_array, map_rows, slice_rows
from wellcal._arrays.threads import one_blas_thread
from wellcal.engines import Engine
from wellcal.expectations.bilinear import ElementForm, Prepared
from wellcal.expectations.expansion import ElementPlan, FeaturePlan, GridPlan, Plan, plan
from wellcal.expectations.features import FeatureGrid
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.prediction_kernels import prediction_kernel
from wellcal.expectations.signed_measures import Side, Targets
from wellcal.kernels.algebra import Tensor
from wellcal.kernels.base import Kernel
from wellcal.measures.target_sets.feature_terms import (
    ENCODED,
    KEPT,
    LargeProducts,
    ProductTerm,
    ResampledTerm,
    TableTerm,
    grid_index,
    target_rows,
)
from wellcal.measures.target_sets.gaussian_term import GaussianTerm
from wellcal.predictions import Predictions
from wellcal.problem.problem import Problem, expand

_ops = ops_for(namespace())


class CasesAtHand(Protocol):
    """What sums over sets of targets need to know of the cases: a test's setup does, for example."""

    @property
    def targets(self) -> NDArray:
        """Targets as those of the sets are: the observed ones, or one of the sets."""
        ...

    @property
    def predictions(self) -> Predictions:
        """What the targets were predicted by."""
        ...

    @property
    def expectations(self) -> str | Lowering:
        """How expectations without a closed form are computed."""
        ...

    @property
    def problem(self) -> Problem:
        """Both of them prepared."""
        ...

    @property
    def n_samples(self) -> int:
        """Number of cases."""
        ...

    @property
    def engine(self) -> Engine:
        """Who visits the pairs."""
        ...

    @property
    def progress(self) -> Progress:
        """To be called as ``progress(what, done, total)`` now and then."""
        ...


@dataclass(frozen=True)
class Ways:
    """Which way of evaluating a kernel on targets is taken when.

    Attributes
    ----------
    most_features
        Features beyond which evaluating pairs is cheaper.
    most_products
        Features of scalars beyond which tables of them are cheaper than products.
    most_classes
        Classes up to which a matrix product beats a comparison of labels.
    few_cases
        Cases up to which a few pairs are cheaper than their features.
    rows
        Height of the tiles of a matrix product.
    exponents
        Whether exponents of a Gaussian kernel between vectors come from matrix products.
    """

    most_features: int = 256
    most_products: int = 96
    most_classes: int = 32
    few_cases: int = 64
    rows: int = 256
    exponents: bool = True


MEASURED = Ways()
"""The ways that were found to be the quickest."""


# -- many classes ----------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelTerm(LargeProducts):
    """Many classes: cross terms are looked up in tables, and labels are compared."""

    scheme: GridPlan
    predictions: Predictions
    weights: NDArray
    smooth: NDArray
    gram: NDArray | None

    @property
    def entries(self) -> int:
        return 4

    @property
    def cost(self) -> float:
        """A comparison of labels; a look into a table takes twice as long."""
        return 2.0 if self.gram is None else 4.0

    def encode(self, targets: NDArray) -> NDArray:
        """Positions of the targets, ``(r, n)``."""
        return grid_index(self.scheme, targets, self.predictions)

    def tile(self, kps: NDArray, i: Chunk, j: Chunk, encoded: NDArray) -> NDArray:
        return np.stack([self._one(kp, i, j, encoded) for kp in kps], axis=1)

    def _one(self, kp: NDArray, i: Chunk, j: Chunk, encoded: NDArray) -> NDArray:
        # The tables hold sum_i kp_ij <P_i, d(c)> for each j and class c, and the same the other way round.
        left, right = self.smooth[i], self.smooth[j]
        constant = float(np.einsum("ij,ij->", kp, left @ self.weights[j].T))
        for_right, for_left = kp.T @ left, kp @ right
        out = np.full(len(encoded), constant)
        a, b = np.arange(len(left)), np.arange(len(right))
        for r, labels in enumerate(encoded):
            out[r] -= for_right[b, labels[j]].sum() + for_left[a, labels[i]].sum()
            out[r] += self._between(kp, labels[i], labels[j])
        return out

    def _between(self, kp: NDArray, left: NDArray, right: NDArray) -> float:
        if self.gram is None:
            return float(np.einsum("ij,ij->", kp, left[:, None] == right[None, :]))
        return float(np.einsum("ij,ij->", kp, self.gram[left][:, right]))


# -- pairs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairTerm:
    """All else, evaluated pair by pair."""

    scheme: Plan
    predictions: Predictions
    rows: Rows
    forms: tuple[ElementForm, ElementForm, ElementForm]

    small_products: ClassVar[bool] = True

    @property
    def entries(self) -> int:
        return 1 + (self.predictions.event_shape[0] if self.predictions.event_shape else 1)

    @property
    def cost(self) -> float:
        """Predictions with targets, both ways round, and targets with targets."""
        return 2.0 * self.forms[1].cost.evaluations + self.forms[2].cost.evaluations

    def tile_shape(self, n: int) -> tuple[int, int]:
        """Tiles that fit the cache."""
        return tile_shape(self.forms[1].cost.entries, budget.cache)

    def encode(self, targets: NDArray) -> Rows:
        """Rows ``(r, n, ...)``."""
        r, n = targets.shape[:2]
        rows = target_rows(self.scheme, targets, self.predictions)
        return map_rows(lambda value: value.reshape(r, n, *value.shape[1:]), rows)

    def tile(self, kps: NDArray, i: Chunk, j: Chunk, encoded: Rows) -> NDArray:
        weights = kps.reshape(len(kps), -1).T
        both, cross, observed = self.forms
        left, right = slice_rows(self.rows, i), slice_rows(self.rows, j)
        with np.errstate(over="ignore", under="ignore"):
            constant = np.ravel(both(_ops, left, right)) @ weights
            shared_left, shared_right = _shared(left), _shared(right)
            parts: list[NDArray] = []
            count = first_array(encoded).shape[0]
            for sets in in_chunks(count, len(weights) * max(1, cross.cost.entries), within=budget.cache):
                y_left, y_right = (map_rows(_part(sets, cases), encoded) for cases in (i, j))
                h = observed(_ops, y_left, y_right)
                h = h - cross(_ops, shared_left, y_right)
                h -= np.swapaxes(cross(_ops, shared_right, y_left), 1, 2)
                parts.append(h.reshape(len(h), -1) @ weights)
        return constant + np.concatenate(parts)


def _shared(rows: Rows) -> Rows:
    """Rows of one batch that all sets of targets share."""
    return map_rows(lambda value: value[None], rows)


def _part(sets: Chunk, cases: Chunk) -> Callable[[NDArray], NDArray]:
    return lambda value: value[sets, cases]


# -- all -------------------------------------------------------------------------------------


def has_terms(kernel: Kernel) -> bool:
    """Whether a kernel is a sum of products, so that targets can be separated from predictions."""
    return all(isinstance(part, Tensor) for _, part in expand(kernel))


def check_terms(kernels: Sequence[Kernel]) -> None:
    """Raise an error unless targets can be separated from predictions in all of the kernels."""
    for kernel in kernels:
        if not has_terms(kernel):
            raise TypeError(
                f"{kernel!r} does not separate predictions from targets, which this method needs; "
                'take a sum of products such as ExpDistance(metric) @ Gaussian(), or method="exact"'
            )


class TermSums:
    """Sums over pairs i < j for one kernel on targets and q kernels on predictions."""

    def __init__(
        self, cases: CasesAtHand, on_targets: Kernel, on_predictions: Sequence[Kernel], ways: Ways
    ) -> None:
        self.cases = cases
        self.term = make_term(cases, on_targets, ways)
        self.parts: list[Prepared] = [
            prediction_kernel(kernel, cases.predictions, expectations=cases.expectations)
            for kernel in on_predictions
        ]
        self._kept: NDArray | None = None

    @property
    def cost(self) -> float:
        """Elementary evaluations for one set of targets, for choices between methods."""
        return 0.5 * self.cases.n_samples**2 * self.term.cost

    def __call__(self, targets: NDArray) -> NDArray:
        """Sums ``(r, q)`` for sets of targets ``(r, n, ...)``."""
        entries = self.cases.n_samples * self.term.entries
        sets = in_chunks(len(targets), entries, within=ENCODED * budget.work)
        return np.concatenate([self._some(targets[some]) for some in sets])

    def _some(self, targets: NDArray) -> NDArray:
        encoded = self.term.encode(targets)

        def work(tile: tuple[Chunk, Chunk]) -> NDArray:
            i, j = tile
            kps = self._kernels(i, j) if self._kept is None else self._kept[:, i, j]
            return self.term.tile(kps, i, j, encoded)

        n = self.cases.n_samples
        if self._kept is None and n * n * len(self.parts) <= KEPT * budget.work:
            self._kept = self._kernels(slice(0, n), slice(0, n))
        tiles = [(i.index, j.index) for i, j in triangle_tiles(0, n, *self.term.tile_shape(n))]
        total = np.zeros((len(targets), len(self.parts)))
        with one_blas_thread() if self.term.small_products else nullcontext():  # also where there is one tile
            found = self.cases.engine.map_items(self.cases.problem, work, tiles)
            for done, part in enumerate(found, 1):
                total += part
                self.cases.progress("tiles", done, len(tiles))
        return total

    def _kernels(self, i: Chunk, j: Chunk) -> NDArray:
        """Kernels on predictions over a tile, ``(q, len(i), len(j))``, zero where not i < j."""
        with np.errstate(over="ignore", under="ignore"):
            values = [
                _upper(form(_ops, slice_rows(rows, i), slice_rows(rows, j)), i, j)
                for form, rows in self.parts
            ]
        return np.stack(values)


class ResampledSKCE:
    """n SKCE_u of a prepared case for sets of targets, with one or several kernels.

    Parameters
    ----------
    cases
        Predictions, and targets of the same form.
    kernels
        Kernels, each a sum of products. Those with the same kernel on targets share most of the work.
    ways
        Which way of evaluating them is taken when.
    """

    def __init__(self, cases: CasesAtHand, kernels: Sequence[Kernel], ways: Ways = MEASURED) -> None:
        self.cases = cases
        self.count = len(kernels)
        found: dict[Kernel, list[tuple[int, float, Kernel]]] = {}
        for index, kernel in enumerate(kernels):
            for factor, part in expand(kernel):
                if not isinstance(part, Tensor):
                    raise TypeError(f"{part!r} is no product of a kernel on predictions and one on targets")
                found.setdefault(part.targets, []).append((index, float(factor), part.predictions))
        self.terms = [
            (TermSums(cases, on_targets, [part for _, _, part in uses], ways), uses)
            for on_targets, uses in found.items()
        ]

    @property
    def cost(self) -> float:
        """Elementary evaluations for one set of targets, for choices between methods."""
        return sum(sums.cost for sums, _ in self.terms)

    def __call__(self, targets: NDArray) -> NDArray:
        """Values ``(r, number of kernels)`` for sets of targets ``(r, n, ...)``."""
        total = np.zeros((len(targets), self.count))
        for sums, uses in self.terms:
            values = sums(targets)
            for column, (index, factor, _) in enumerate(uses):
                total[:, index] += factor * values[:, column]
        return 2.0 * total / (self.cases.n_samples - 1)


def _upper(kp: NDArray, i: Chunk, j: Chunk) -> NDArray:
    """Kernel values where i < j, zero elsewhere."""
    if i.stop <= j.start:
        return kp
    return np.where(np.arange(i.start, i.stop)[:, None] < np.arange(j.start, j.stop)[None, :], kp, 0.0)


def _by_tables(scheme: FeaturePlan, ways: Ways) -> bool:
    features = scheme.features
    if not isinstance(features, FeatureGrid):
        return True
    return len(features.centres) == 1 and features.size > ways.most_products


def make_term(cases: CasesAtHand, on_targets: Kernel, ways: Ways = MEASURED) -> ResampledTerm[Any]:
    """The cheapest way to evaluate a kernel on targets over many sets of them."""
    predictions = cases.predictions
    sides: list[Side] = [predictions, Targets(cases.targets, predictions)]
    many = cases.n_samples > ways.few_cases
    scheme = plan(on_targets, sides, expectations=cases.expectations, many=many)
    if isinstance(scheme, FeaturePlan) and scheme.features.size > ways.most_features:
        scheme = plan(on_targets, sides, expectations=cases.expectations)
    if isinstance(scheme, FeaturePlan) and _by_tables(scheme, ways):
        return TableTerm(ways.rows, scheme, scheme.rows([(1.0, predictions)]).weights)
    if isinstance(scheme, (FeaturePlan, GridPlan)):
        weights, image = rows = scheme.rows([(1.0, predictions)])
        gram = scheme.form(rows, rows).gram
        if isinstance(scheme, GridPlan) and weights.shape[1] > ways.most_classes:
            smooth = weights if image is None else image
            return LabelTerm(ways.rows, scheme, predictions, weights, smooth, gram)
        return ProductTerm(ways.rows, scheme, predictions, weights, gram)
    gaussian = GaussianTerm.prepare(on_targets, predictions) if ways.exponents else None
    if gaussian is not None:
        return gaussian
    assert isinstance(scheme, ElementPlan)
    rows, points = (scheme.rows([(1.0, side)]) for side in sides)
    forms = scheme.form(rows, rows), scheme.form(rows, points), scheme.form(points, points)
    return PairTerm(scheme, predictions, rows, forms)
