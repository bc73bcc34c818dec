"""Sums over pairs of tensors as products of features, with derivatives in closed form, on any device.

Where kernels on targets have finitely many features, h is a sum of terms
``factor * exp(-(sum_c |x_ic - x_jc|^degree)^exponent) <f_i, f_j>``, with points x of predictions and features
f of predictions less those of targets. Tiles are as large as the budget of the device allows, so that memory
grows as n.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import combinations_with_replacement
from operator import add
from typing import Any, cast

import numpy as np

from wellcal._arrays.chunks import Chunk, Span, budget, entries_for, in_chunks, limited
from wellcal._arrays.namespaces import Array, is_on_accelerator, stop_gradient, to_numpy
from wellcal._arrays.rows import Rows, arrays_of, map_rows
from wellcal.engines.autograd import sum_with_gradient
from wellcal.engines.error_control import TOLERANCE, ControlError
from wellcal.engines.grid_sums import sum_on_grid
from wellcal.engines.kernel_sums import DecayKernel, PairSum
from wellcal.engines.pair_blocks import Piece
from wellcal.engines.reductions import Sums
from wellcal.expectations.bilinear import (
    ElementForm,
    FiniteForm,
    Form,
    WeightedForm,
    WeightedRows,
    WeightRows,
)
from wellcal.expectations.distances import EmbeddingDistance, tensor_distances
from wellcal.expectations.embedding import features_of
from wellcal.expectations.mmd import MeanDiscrepancy
from wellcal.expectations.prediction_kernels import ExpDistanceForm
from wellcal.kernels.base import is_constant
from wellcal.problem.feature_form import differentiable_features, in_products
from wellcal.problem.problem import Problem, Term, TermRows

_DIFFERENTIATED_FROM = 128  # cases: below, differentiating closed forms is as quick
_ROUNDED_FROM = 20_000  # cases on a device from which precision="auto" tries float32
_FOR_THE_MEDIAN = 10_000  # cases
_ROWS = 32  # compared with exact ones
_TINY = 1e-300  # in place of zero
_ROUNDED = "mixed: products in float32"
_SAMPLE = 65_536  # cases that principal components are computed from
# Shares of the energy of features. What is lost is of rare cases, which the sample lacks: sums of 1e8 cases
# would be off by less than a hundredth of a standard deviation.
_DROPPED, _LOST = 1e-12, 1e-7
_LARGER = 4  # times the budget of a device, for features that are made of it all in one go
_FEW, _FEW_ON_DEVICE = 4, 64  # coordinates up to which differences are quicker than `cdist` (2 ns a pair)


@dataclass(frozen=True)
class PairTerm:
    """One term of h in tensors.

    Attributes
    ----------
    points
        Points of predictions ``(n, D)`` in units of the length scale, their median at the origin.
    features
        Features of predictions less those of targets ``(n, M)``.
    lengthscale
        Length scale of the kernel on predictions.
    degree, exponent
        Distances are ``sum_c |x_ic - x_jc|^degree``, 1 or 2; the kernel is ``exp(-distance^exponent)``.
    factor
        Factor of the term.
    """

    points: Array
    features: Array
    lengthscale: float
    degree: int
    exponent: float
    factor: float

    def of(self, cases: Any) -> PairTerm:
        """Select cases by a slice or by positions in a tensor."""
        return replace(self, points=self.points[cases], features=self.features[cases])


def pair_terms(problem: Problem) -> list[PairTerm] | None:
    """Return the terms of a problem; None where targets or predictions do not meet as above.

    Examples
    --------
    >>> import torch, wellcal as wc
    >>> from wellcal.problem.problem import prepare
    >>> (term,) = pair_terms(prepare(torch.tensor([1, 0, 1]), wc.Bernoulli(torch.tensor([0.2, 0.7, 0.9]))))
    >>> term.points.shape, term.features.shape, term.degree, term.exponent
    (torch.Size([3, 1]), torch.Size([3, 2]), 1, 1.0)
    """
    terms: list[PairTerm] = []
    for term, rows in zip(problem.terms, problem.rows, strict=True):
        form, points = term.on_predictions, _points(term.on_predictions, rows)
        targets = term.on_targets
        if points is None or not isinstance(targets, FiniteForm) or targets.gram is not None:
            return None
        form = cast("ExpDistanceForm", form)
        if not isinstance(term.factor, float) or not isinstance(form.lengthscale, float):
            return None
        points, degree = stop_gradient(points), int(form.inner.degree)
        some = points[:: max(1, len(points) // _FOR_THE_MEDIAN)]
        terms.append(
            PairTerm(
                (points - some.median(dim=0).values) / form.lengthscale,
                stop_gradient(rows.on_targets.weights),
                form.lengthscale,
                degree,
                form.power / degree,
                term.factor,
            )
        )
    return terms


def _points(form: Any, rows: TermRows) -> Array | None:
    """Return the rows between which the kernel on predictions takes distances; None without such rows."""
    if not isinstance(form, ExpDistanceForm):
        return None
    inner = form.inner
    if isinstance(inner, MeanDiscrepancy):
        finite = isinstance(inner.form, FiniteForm) and inner.form.gram is None
        return rows.on_predictions.inner.weights if finite else None
    return rows.on_predictions if isinstance(inner, EmbeddingDistance) else None


def tensor_sums(
    problem: Problem, precision: str, *, square: bool = True
) -> tuple[Sums, dict[str, Any]] | None:
    """Sums over all pairs of a problem in tensors, with gradients, and how they were made.

    None where terms do not meet as above. Without the `square` they are made on a grid, where points lie in a
    plane and the reported error is small.
    """
    torch = sys.modules["torch"]
    if any(torch.autograd.forward_ad.unpack_dual(array).tangent is not None for array in problem.arrays):
        return None  # derivatives in forward mode go through the generic tiles
    if any(array.requires_grad for array in problem.arrays):
        if torch.is_grad_enabled():
            differentiable = _with_gradient(problem)
            return None if differentiable is None else (differentiable, {})
        constant = replace(problem, rows=map_rows(stop_gradient, problem.rows))
        sums = tensor_sums(constant, precision, square=square)
        problem.prepared.asked, problem.prepared.features = True, constant.prepared.features
        return sums
    if not is_constant(problem.kernel) and torch.is_grad_enabled():
        return None
    said: dict[str, Any] = {}
    grid = None if square else _on_a_grid(problem, precision)
    if grid is not None:
        rows, said, error = grid
        if error.value <= TOLERANCE:
            said = {"engine": "linear", "sums": "a grid", **said, **error.describe()}
            return Sums(0.5 * rows.sum(), rows), said
        said = {"engine_note": f"not linear: off by {error.value:.1e} standard deviations"}
    exact = in_products(problem, tensors=True)
    terms = None if exact is None else pair_terms(exact)
    if terms is None:
        return None
    features = problem.prepared.features
    rows, how = _by_tiles(terms, precision)
    return Sums(0.5 * rows.sum(), rows), ({} if features is None else features.describe()) | said | how


def _by_tiles(terms: list[PairTerm], precision: str) -> tuple[Array, dict[str, Any]]:
    """Sums of cases in float32 where that is wanted and its reported error small, and their description."""
    n, like, said = len(terms[0].features), terms[0].features, dict[str, Any]()
    if precision == "mixed" or (precision == "auto" and n >= _ROUNDED_FROM and is_on_accelerator(like)):
        single = [replace(term, points=term.points.float(), features=term.features.float()) for term in terms]
        rows = reduce(add, map(pair_sums, single))
        error = _error(terms, rows)
        if error.value <= TOLERANCE:
            return rows, {"precision": _ROUNDED, **error.describe()}
        said = {"precision_note": f"float64: float32 is off by {error.value:.1e} standard deviations"}
    return reduce(add, map(pair_sums, terms)), said


# -- without the square --------------------------------------------------------------------------


def _on_a_grid(problem: Problem, precision: str) -> tuple[Array, dict[str, Any], ControlError] | None:
    """Sums of cases on a grid, their description and error; None for points off a plane, or too far apart."""
    rounds = precision != "float64"
    exact, lost = _with_few_features(problem) if rounds else (in_products(problem, tensors=True), 0.0)
    terms = None if exact is None else pair_terms(exact)
    if exact is None or terms is None:
        return None
    sums: list[PairSum] = []
    for term in terms:
        if term.points.shape[1] > 2 or (term.degree == 1 and term.points.shape[1] > 1):
            return None
        kernel = DecayKernel(1.0, term.degree * term.exponent)
        features = term.features.float() if rounds else term.features
        found = sum_on_grid(term.points, features, kernel)
        if found is None:
            return None
        sums.append(PairSum(term.factor * found.rows, term.factor * found.bias))
    rows = reduce(add, (part.rows for part in sums))
    said: dict[str, Any] = {"features": max(term.features.shape[1] for term in terms), "lost_energy": lost}
    error = _error(terms, rows, math.fsum(part.bias for part in sums))
    return rows, said | ({"precision": _ROUNDED} if rounds else {}), error


def _with_few_features(problem: Problem) -> tuple[Problem | None, float]:
    """Return the problem with features in float32, and their lost energy; None without finite features.

    Features are made in chunks, and kept in a few coordinates: principal components of some cases.
    """
    torch, most = sys.modules["torch"], 0.0
    terms: list[Term] = []
    rows: list[TermRows] = []
    for term, own in zip(problem.terms, problem.rows, strict=True):
        features = features_of(term.on_targets, _in_float32(term.on_targets, own.on_targets))
        if features is None:
            return None, 0.0
        n, size = features.n, features.size
        some = features.of(slice(0, n, max(1, n // _SAMPLE))).double()
        energy, basis = torch.linalg.eigh(some.mT @ some)
        basis = basis[:, energy > _DROPPED * energy[-1]].float()
        values = basis.new_empty((n, basis.shape[1]))
        whole, left = some.new_zeros(()), some.new_zeros(())
        with limited(device=_LARGER * budget.device):
            for cases in in_chunks(n, 2 * size, within=entries_for(some, 4 * budget.cache)):
                part = features.of(cases)
                few = torch.mm(part, basis, out=values[cases])
                whole += torch.linalg.vector_norm(part) ** 2
                left += torch.linalg.vector_norm(torch.addmm(part, few, basis.mT, alpha=-1.0)) ** 2
        lost = float(left) / max(float(whole), _TINY)
        if lost > _LOST:
            return in_products(problem, tensors=True), 0.0
        most = max(most, lost)
        terms.append(replace(term, on_targets=FiniteForm(None, values.shape[1])))
        rows.append(own._replace(on_targets=WeightRows(values)))
    return replace(problem, terms=tuple(terms), rows=tuple(rows)), most


def _in_float32(form: Form, rows: Rows) -> Rows:
    """Return rows of measures in float32, places about their median: features see differences only."""
    if isinstance(form, WeightedForm):
        return WeightedRows(rows.weights.float(), _in_float32(form.inner, rows.inner))
    if isinstance(form, ElementForm):
        step = max(1, len(rows[0].leaf) // _FOR_THE_MEDIAN)
        middles = [x[::step].median() for x in rows[0].element.x]

        def centred(element: Any) -> Any:
            return element._replace(x=tuple(x - m for x, m in zip(element.x, middles, strict=True)))

        rows = tuple(part._replace(element=centred(part.element)) for part in rows)
    return map_rows(lambda array: array.float(), rows)


def _error(terms: Sequence[PairTerm], rows: Array, bias: float | None = None) -> ControlError:
    """Compare sums of some cases, half of them drawn in proportion to h_ii, with exact ones.

    As `ErrorControl` does for NumPy, in standard deviations of the sum itself.
    """
    torch, n = sys.modules["torch"], len(rows)
    own: Array = sum(
        term.factor * torch.linalg.vector_norm(term.features, dim=1).double() ** 2 for term in terms
    )
    chances = (0.5 / n + 0.5 * own / own.sum().clamp_min(_TINY)).cumsum(0)
    generator = torch.Generator(device=rows.device).manual_seed(0)
    drawn = torch.rand(_ROWS, generator=generator, device=rows.device, dtype=chances.dtype) * chances[-1]
    cases = torch.searchsorted(chances, drawn).clamp_max(n - 1)
    weight = 1.0 / (0.5 + 0.5 * n * own[cases] / own.sum().clamp_min(_TINY))
    exact = -own[cases]
    for some in in_chunks(n, _ROWS, within=entries_for(rows, 4 * budget.cache)):
        for term in terms:
            exact += _tile(term.of(cases), term.of(some)).sum(dim=1)
    off = to_numpy(weight * (rows[cases] - exact))
    noise = math.sqrt(0.5 * n * float(np.mean(off**2 / to_numpy(weight))))
    if bias is None:
        bias = 0.5 * n * math.hypot(np.mean(off), 2.0 * np.std(off) / math.sqrt(_ROWS))
    unit = math.sqrt(0.5 * n * float(rows.var(correction=0)))
    # Features of size one that are rounded to float32 before they cancel.
    rounding = torch.finfo(terms[0].features.dtype).eps / max(float(own.mean()) ** 0.5, _TINY)
    value = math.hypot(noise, bias) / max(unit, _TINY) + rounding
    return ControlError(value, "standard deviation of the sum itself", _ROWS)


def _with_gradient(problem: Problem) -> Sums | None:
    """Sums whose gradients are computed along with them; None where they have no closed form."""
    if problem.n < _DIFFERENTIATED_FROM or not is_constant(problem.kernel):
        return None
    exact = differentiable_features(problem, budget.device)
    terms = None if exact is None else pair_terms(exact)
    if exact is None or terms is None:
        return None
    everything = Span(0, problem.n)
    whole = Piece(Span(0, 1), problem.n, everything, everything)

    def pieces() -> Iterator[Piece]:
        yield whole

    def sums(given: Problem) -> tuple[Array, Array]:
        h = whole.value(given, given.rows, given.rows)
        return h.sum(), h.detach().sum(dim=1)

    total, rows = sum_with_gradient(
        exact, pieces, exact.n * (exact.n - 1) // 2, sums, partial(_sums_and_slopes, terms)
    )
    return Sums(total, rows)


def _sums_and_slopes(terms: Sequence[PairTerm], problem: Problem) -> tuple[Array, Array, list[Array | None]]:
    """Total, sums of cases, and derivatives of the total by all arrays of a problem, in closed form."""
    sums: list[Array] = []
    slopes: list[Array | None] = []
    for term, own, rows in zip(problem.terms, terms, problem.rows, strict=True):
        of_cases, by_features, by_points = pair_gradients(own)
        sums.append(of_cases)
        features, points = rows.on_targets.weights, _points(term.on_predictions, rows)
        slopes += [
            by_features if array is features else by_points if array is points else None
            for array in arrays_of(rows)
        ]
    total = reduce(add, sums)
    return 0.5 * total.sum(), total, slopes


# -- tiles ---------------------------------------------------------------------------------------


def _tiles(like: Array) -> Iterator[tuple[Chunk, Chunk]]:
    """Squares on and above the diagonal."""
    n, side = len(like), max(8, math.isqrt(entries_for(like, 4 * budget.cache)))
    cuts = [slice(i, min(i + side, n)) for i in range(0, n, side)]
    return combinations_with_replacement(cuts, 2)


def pair_sums(term: PairTerm) -> Array:
    """Return the sum of each case over all others ``(n,)``, in float64."""
    wide = sys.modules["torch"].float64
    rows = term.features.new_zeros(len(term.features), dtype=wide)
    for i, j in _tiles(term.features):
        h = _tile(term.of(i), term.of(j))
        if i == j:
            h.fill_diagonal_(0.0)  # all of the square: each pair is in the sums of both of its cases
        else:
            rows[j] += h.sum(dim=0, dtype=wide)
        rows[i] += h.sum(dim=1, dtype=wide)
    return rows


def _tile(a: PairTerm, b: PairTerm) -> Array:
    """Values of a term for all pairs of cases."""
    raised = _raised(a, _distances(a.points, b.points, a.degree))
    return raised.neg_().exp_().mul_((a.factor * a.features) @ b.features.mT)


def _distances(a: Array, b: Array, degree: int) -> Array:
    """``sum_c |a_ic - b_jc|^degree`` of all pairs, ``(n, m)``."""
    if a.shape[1] > (_FEW_ON_DEVICE if is_on_accelerator(a) else _FEW):
        return tensor_distances(a, b, degree)
    total: Array = None
    for _, difference in _differences(a, b):
        own = difference.abs_() if degree == 1 else difference.square_()
        own = own.squeeze(2) if own.shape[2] == 1 else own.sum(dim=2)
        total = own if total is None else total.add_(own)
    return total


def _differences(a: Array, b: Array) -> Iterator[tuple[Chunk, Array]]:
    """Differences of all pairs ``(n, m, D)``, as many coordinates at a time as there is room for."""
    step = max(1, entries_for(a, budget.cache) // (len(a) * len(b)))
    for c in range(0, a.shape[1], step):
        some = slice(c, c + step)
        yield some, a[:, None, some] - b[None, :, some]


def _raised(term: PairTerm, distance: Array) -> Array:
    """Distances to the power of the term; the same array where that is one."""
    if term.exponent == 1.0:
        return distance
    return distance.sqrt() if term.exponent == 0.5 else distance**term.exponent


# -- derivatives ---------------------------------------------------------------------------------


def pair_gradients(term: PairTerm) -> tuple[Array, Array, Array]:
    """Sums of cases over all others ``(n,)``, and derivatives of the sum over pairs i < j.

    These are by features ``(n, M)`` and by points ``(n, D)`` as predictions have them. With k the kernel and
    s the distance of a pair, ``d sum / d f_i = sum_j k_ij f_j``, and by points it is
    ``sum_j w_ij ds_ij / dx_i`` with ``w = <f_i, f_j> dk / ds``. Each tile is evaluated once for all of it.
    """
    points, features = term.points, term.features
    by_points, by_features = points.new_zeros(points.shape), features.new_zeros(features.shape)
    for i, j in _tiles(features):
        distance = _distances(points[i], points[j], term.degree)
        raised = _raised(term, distance)
        k = (-raised).exp_()
        if i == j:
            k.fill_diagonal_(0.0)
        by_features[i].addmm_(k, features[j])
        if i != j:
            by_features[j].addmm_(k.mT, features[i])
        # Pairs of equal points have a derivative of zero, the subgradient in the middle of a cone.
        weights = k.mul_(features[i] @ features[j].mT)
        if term.exponent != 1.0:
            weights.mul_(raised).div_(distance.masked_fill_(distance == 0.0, math.inf))
        _add_by_points(term, weights, i, j, by_points)
        if i != j:
            _add_by_points(term, weights.mT, j, i, by_points)
    if term.factor != 1.0:
        by_features.mul_(term.factor)
    by_points.mul_(-term.factor * term.exponent * term.degree / term.lengthscale)
    # Each pair is in the sums of both of its cases, linear in the features of either.
    return (by_features * features).sum(dim=1), by_features, by_points


def _add_by_points(term: PairTerm, weights: Array, i: Chunk, j: Chunk, by_points: Array) -> None:
    """Add ``sum_j w_ij |x_i - x_j|^(degree - 1) sign(x_i - x_j)`` of a tile to the derivatives at `i`."""
    a, b, out = term.points[i], term.points[j], by_points[i]
    if term.degree == 2:
        out.addcmul_(weights.sum(dim=1)[:, None], a).addmm_(weights, b, alpha=-1.0)
        return
    for some, difference in _differences(a, b):
        out[:, some] += difference.sign_().mul_(weights[:, :, None]).sum(dim=1)
