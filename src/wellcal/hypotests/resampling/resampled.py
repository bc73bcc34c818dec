"""SKCE of the same predictions with many sets of targets.

Only what depends on the targets is computed again. Written out over a term k_P @ k_Y of the kernel,

    sum_{i<j} k_P(P_i, P_j) ( <P_i, P_j> - <P_i, d(y_j)> - <d(y_i), P_j> + <d(y_i), d(y_j)> ),

the kernel on predictions and the first summand stay. What is done about the others depends on how
:mod:`wellcal.expectations._pairing` expands the problem: features meet in one product for all target sets,
classes look their cross terms up in a table, and all else is evaluated pair by pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from wellcal._arrays.chunks import tile_shape, triangle_tiles
from wellcal._arrays.namespaces import NDArray, namespace
from wellcal._arrays.ops import ops_for
from wellcal._arrays.rows import Rows, first_array, map_rows, slice_rows
from wellcal._arrays.threads import one_blas_thread
from wellcal.expectations.bilinear import ElementForm, FiniteForm
from wellcal.expectations.decompose import Targets
from wellcal.expectations.grids import grid_positions
from wellcal.expectations.on_predictions import prediction_kernel
from wellcal.expectations.plans import FeaturePlan, GridPlan, Plan, plan
from wellcal.hypotests.base import Setup
from wellcal.hypotests.resampling.gaussian_term import GaussianTerm
from wellcal.kernels.base import Kernel, Tensor
from wellcal.predictions import Predictions
from wellcal.problem.problem import expand

_ELEMENTS = 131_072  # entries of an array that is worked on at a time
_MOST_FEATURES = 256  # beyond, evaluating pairs is cheaper
_MOST_PRODUCT = 32  # classes up to which a matrix product beats a comparison of labels
_ROWS = 256  # height of the tiles of a matrix product
_FEW_CASES = 64
_KEPT = 4_000_000  # entries of the kernel matrix on predictions that are kept between sets of targets
_ENCODED = 16_000_000  # entries of encoded targets that are held at a time

_ops = ops_for(namespace())


class Term(Protocol):
    """A term of the kernel, as far as it depends on targets."""

    @property
    def entries(self) -> int:
        """Numbers that encode one target."""
        ...

    def encode(self, targets: NDArray) -> Any:
        """Sets of targets ``(r, n, ...)`` as `tile` reads them."""
        ...

    def tile(self, kps: NDArray, i: slice, j: slice, encoded: Any) -> NDArray:
        """Sums over a tile of pairs, ``(r, q)``, for each set and each of q kernels on predictions.

        Their values there are `kps`, ``(q, len(i), len(j))``.
        """
        ...


def target_rows(scheme: Plan, targets: NDArray, predictions: Predictions) -> Rows:
    """Rows ``(r n, ...)`` of sets of targets ``(r, n, ...)``."""
    flat = targets.reshape(-1, *targets.shape[2:])
    return scheme.rows([(1.0, Targets(flat, predictions))])


# -- features --------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProductTerm:
    """Deviations of features, or of the probabilities of few classes: one product serves all sets."""

    scheme: Plan
    predictions: Predictions
    mean: NDArray
    gram: NDArray | None

    @property
    def entries(self) -> int:
        return self.mean.shape[1] * (1 if self.gram is None else 2)

    def encode(self, targets: NDArray) -> tuple[NDArray, NDArray]:
        """Mean features minus those of the targets, ``(n, r, M)``, and these times the kernel matrix."""
        r, n = targets.shape[:2]
        if isinstance(self.scheme, GridPlan):
            index = _positions(self.scheme, targets, self.predictions)
            right = np.repeat(self.mean[:, None, :], r, axis=1)
            right[np.arange(n)[:, None], np.arange(r)[None, :], index.T] -= 1.0
        else:
            flat = target_rows(self.scheme, targets, self.predictions).weights.reshape(r, n, -1)
            right = np.ascontiguousarray((self.mean[None] - flat).transpose(1, 0, 2))
        return (right if self.gram is None else right @ self.gram), right

    def tile(self, kps: NDArray, i: slice, j: slice, encoded: Any) -> NDArray:
        left, right = encoded[0][i], encoded[1][j]
        flat = right.reshape(len(right), -1)
        sums = [np.einsum("irm,irm->r", left, (kp @ flat).reshape(left.shape)) for kp in kps]
        return np.stack(sums, axis=1)


# -- many classes ----------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelTerm:
    """Many classes: cross terms are looked up in tables, and labels are compared."""

    scheme: GridPlan
    predictions: Predictions
    weights: NDArray
    smooth: NDArray
    gram: NDArray | None

    entries: int = 4

    def encode(self, targets: NDArray) -> NDArray:
        """Positions of the targets, ``(r, n)``."""
        return _positions(self.scheme, targets, self.predictions)

    def tile(self, kps: NDArray, i: slice, j: slice, encoded: NDArray) -> NDArray:
        return np.stack([self._one(kp, i, j, encoded) for kp in kps], axis=1)

    def _one(self, kp: NDArray, i: slice, j: slice, encoded: NDArray) -> NDArray:
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


def _positions(scheme: GridPlan, targets: NDArray, predictions: Predictions) -> NDArray:
    found = np.asarray(grid_positions(Targets(targets, predictions), scheme.grid))
    return np.minimum(found, len(scheme.grid) - 1)  # counts beyond have a probability below 1e-13


# -- pairs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairTerm:
    """All else, evaluated pair by pair."""

    scheme: Plan
    predictions: Predictions
    rows: Rows
    forms: tuple[ElementForm, ElementForm, ElementForm]

    @property
    def entries(self) -> int:
        return 1 + (self.predictions.event_shape[0] if self.predictions.event_shape else 1)

    @property
    def width(self) -> int:
        """Elementary evaluations for one pair and one set of targets."""
        return 2 * self.forms[1].width + self.forms[2].width

    def encode(self, targets: NDArray) -> Rows:
        """Rows ``(r, n, ...)``."""
        r, n = targets.shape[:2]
        rows = target_rows(self.scheme, targets, self.predictions)
        return map_rows(lambda value: value.reshape(r, n, *value.shape[1:]), rows)

    def tile(self, kps: NDArray, i: slice, j: slice, encoded: Rows) -> NDArray:
        weights = kps.reshape(len(kps), -1).T
        both, cross, observed = self.forms
        left, right = slice_rows(self.rows, i), slice_rows(self.rows, j)
        with np.errstate(over="ignore", under="ignore"):
            constant = np.ravel(both.tile(_ops, left, right)) @ weights
            shared_left, shared_right = _shared(left), _shared(right)
            parts: list[NDArray] = []
            count = first_array(encoded).shape[0]
            step = max(1, _ELEMENTS // max(1, len(weights) * max(1, cross.width)))
            for start in range(0, count, step):
                sets = slice(start, start + step)
                y_left, y_right = (map_rows(_part(sets, cases), encoded) for cases in (i, j))
                h = observed.batched(_ops, y_left, y_right)
                h = h - cross.batched(_ops, shared_left, y_right)
                h -= np.swapaxes(cross.batched(_ops, shared_right, y_left), 1, 2)
                parts.append(h.reshape(len(h), -1) @ weights)
        return constant + np.concatenate(parts)


def _shared(rows: Rows) -> Rows:
    """Rows of one batch that all sets of targets share."""
    return map_rows(lambda value: value[None], rows)


def _part(sets: slice, cases: slice) -> Callable[[NDArray], NDArray]:
    return lambda value: value[sets, cases]


# -- all -------------------------------------------------------------------------------------


def has_terms(kernel: Kernel) -> bool:
    """Whether a kernel is a sum of products, so that targets can be separated from predictions."""
    return all(isinstance(part, Tensor) for _, part in expand(kernel))


class TermSums:
    """Sums over pairs i < j for one kernel on targets and q kernels on predictions."""

    def __init__(self, setup: Setup, on_targets: Kernel, on_predictions: Sequence[Kernel]) -> None:
        self.setup = setup
        self.term = make_term(setup, on_targets)
        self.parts: list[tuple[Any, Rows]] = [
            prediction_kernel(kernel, setup.predictions, expectations=setup.expectations)
            for kernel in on_predictions
        ]
        self._kept: NDArray | None = None

    @property
    def cost(self) -> float:
        """Elementary evaluations for one set of targets, for choices between methods."""
        return 0.5 * self.setup.n**2 * _term_width(self.term)

    def __call__(self, targets: NDArray) -> NDArray:
        """Sums ``(r, q)`` for sets of targets ``(r, n, ...)``."""
        step = max(1, _ENCODED // max(1, self.setup.n * self.term.entries))
        return np.concatenate(
            [self._some(targets[start : start + step]) for start in range(0, len(targets), step)]
        )

    def _some(self, targets: NDArray) -> NDArray:
        encoded = self.term.encode(targets)

        def work(tile: tuple[slice, slice]) -> NDArray:
            i, j = tile
            kps = self._kernels(i, j) if self._kept is None else self._kept[:, i, j]
            return self.term.tile(kps, i, j, encoded)

        n = self.setup.n
        if self._kept is None and n * n * len(self.parts) <= _KEPT:
            self._kept = self._kernels(slice(0, n), slice(0, n))
        tiles = ((i.index, j.index) for i, j in triangle_tiles(0, n, *_shape(n, self.term)))
        total = np.zeros((len(targets), len(self.parts)))
        # Threads of BLAS would wait for each other in its many small products, also where there is one tile.
        with nullcontext() if isinstance(self.term, (ProductTerm, LabelTerm)) else one_blas_thread():
            for part in self.setup.engine.map_items(self.setup.problem, work, tiles):
                total += part
        return total

    def _kernels(self, i: slice, j: slice) -> NDArray:
        """Kernels on predictions over a tile, ``(q, len(i), len(j))``, zero where not i < j."""
        with np.errstate(over="ignore", under="ignore"):
            values = [
                _upper(form.tile(_ops, slice_rows(rows, i), slice_rows(rows, j)), i, j)
                for form, rows in self.parts
            ]
        return np.stack(values)


class ResampledSKCE:
    """n SKCE_u of a prepared case for sets of targets, with one or several kernels.

    Parameters
    ----------
    setup
        The case.
    kernels
        Kernels, each a sum of products. Those with the same kernel on targets share most of the work.
    """

    def __init__(self, setup: Setup, kernels: Sequence[Kernel]) -> None:
        self.setup = setup
        self.count = len(kernels)
        found: dict[Kernel, list[tuple[int, float, Kernel]]] = {}
        for index, kernel in enumerate(kernels):
            for factor, part in expand(kernel):
                if not isinstance(part, Tensor):
                    raise TypeError(f"{part!r} is no product of a kernel on predictions and one on targets")
                found.setdefault(part.targets, []).append((index, float(factor), part.predictions))
        self.terms = [
            (TermSums(setup, on_targets, [part for _, _, part in uses]), uses)
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
        return self.setup.factor * 2.0 * total / (self.setup.n - 1)


def _shape(n: int, term: Term) -> tuple[int, int]:
    if isinstance(term, PairTerm):
        return tile_shape(term.forms[1].width, _ELEMENTS)
    if isinstance(term, GaussianTerm):
        return tile_shape(1, _ELEMENTS // 2)
    return (_ROWS, n) if n * n <= _KEPT else (_ROWS, 8 * _ROWS)


def _upper(kp: NDArray, i: slice, j: slice) -> NDArray:
    """Kernel values where i < j, zero elsewhere."""
    if i.stop <= j.start:
        return kp
    return np.where(np.arange(i.start, i.stop)[:, None] < np.arange(j.start, j.stop)[None, :], kp, 0.0)


def _term_width(term: Term) -> float:
    if isinstance(term, (PairTerm, GaussianTerm)):
        return float(term.width)
    # A product does about sixteen multiplications in the time of one evaluation.
    return max(1.0, term.entries / 16.0)


def make_term(setup: Setup, on_targets: Kernel) -> Term:
    """The cheapest way to evaluate a kernel on targets over many sets of them."""
    predictions, observed = setup.predictions, Targets(setup.targets, setup.predictions)
    sides: list[Any] = [predictions, observed]
    many = setup.n > _FEW_CASES  # below, a few pairs are cheaper than their features
    scheme = plan(on_targets, sides, expectations=setup.expectations, many=many)
    if isinstance(scheme, FeaturePlan) and scheme.features.size > _MOST_FEATURES:
        scheme = plan(on_targets, sides, expectations=setup.expectations)
    rows = scheme.rows([(1.0, predictions)])
    form = scheme.form(rows, rows)
    if isinstance(form, FiniteForm):
        weights, image = rows
        if isinstance(scheme, FeaturePlan) or weights.shape[1] <= _MOST_PRODUCT:
            return ProductTerm(scheme, predictions, weights, form.gram)
        return LabelTerm(scheme, predictions, weights, weights if image is None else image, form.gram)
    if GaussianTerm.serves(on_targets, predictions):
        return GaussianTerm.prepare(on_targets, predictions)
    points = scheme.rows([(1.0, observed)])
    forms = tuple(scheme.form(a, b) for a, b in ((rows, rows), (rows, points), (points, points)))
    return PairTerm(scheme, predictions, rows, forms)  # pyright: ignore[reportArgumentType]
