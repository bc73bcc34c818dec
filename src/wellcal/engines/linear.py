"""Sums over all pairs without the square: for predictions on a line, in a plane, or under a smooth kernel."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, repeat
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from wellcal._arrays.checks import positive_number
from wellcal._arrays.chunks import Chunk
from wellcal._arrays.namespaces import NDArray, is_numpy, is_on_accelerator, is_torch
from wellcal._arrays.rows import Rows, first_array
from wellcal._arrays.threads import one_blas_thread
from wellcal.engines.base import Support
from wellcal.engines.error_control import TOLERANCE, ErrorControl
from wellcal.engines.grid_sums import CELLS, sum_on_grid
from wellcal.engines.kernel_sums import DecayKernel, PairSum, sum_pairs
from wellcal.engines.line_sums import MOST_RUNS, LineSum
from wellcal.engines.nystrom import Nystrom
from wellcal.engines.reductions import Sums
from wellcal.engines.tiled import Tiled
from wellcal.engines.torch_pairs import tensor_sums
from wellcal.expectations.bilinear import FiniteForm, Form, WeightedForm, WeightedRows
from wellcal.expectations.distances import EmbeddingDistance
from wellcal.expectations.embedding import may_have_features
from wellcal.expectations.feature_blocks import blocks_of_features
from wellcal.expectations.mmd import MeanDiscrepancy, NormedRows
from wellcal.expectations.prediction_kernels import ExpDistanceForm
from wellcal.kernels.base import is_constant
from wellcal.problem.feature_form import FEWEST, in_products
from wellcal.problem.problem import Problem, Term, TermRows

FEWEST_ON_A_LINE = 2000
"""Cases from which "auto" takes running sums, which are exact to rounding."""

FEWEST_IN_A_PLANE = 5000
"""Cases from which "auto" takes a grid: tiles are as quick there."""

_FEWEST_ON_DEVICE = 20_000  # tensors: tiles take a few milliseconds there
_FEWEST_SHARP = 10_000  # cases from which features in blocks are quicker
_COARSE = 100_000  # cases up to which a quarter of the nodes serves at first, and all pivots are taken
_NODES_FOR_A_CASE, _CASES_FOR_A_PIVOT = 16, 16  # beyond, tiles are as quick
_PIVOTS, _MOST_PIVOTS, _WHOLE = 64, 1024, 512  # at first, at most, and where they hold candidates to rounding
_ATTEMPTS = 5
_REFINED = 0.1  # of the error that is allowed: pivots are doubled until it is no more


@dataclass(frozen=True)
class Linear(Tiled):
    """Engine whose sums over all pairs take a time that grows with n, not with its square.

    Where the kernel on predictions is ``exp(-(d / lengthscale) ** power)`` of a distance between points and
    the kernel on targets has finitely many features, the sum over all pairs is a kernel sum with one
    right-hand side for each feature. On a line (probabilities of one event, rates) it is made by running
    sums, exact to rounding; in a plane (location and scale under the 2-Wasserstein distance) on a grid, by
    FFT; under smooth kernels ``exp(-(d / lengthscale) ** 2)`` in more dimensions, such as those of the MMD,
    by the Nyström method.

    Sharp predictions have many features, which are taken in blocks, each with the cases that reach it.

    Some rows are compared with exact ones. Where the reported error (`control_error` in the provenance) is
    above `tolerance`, the grid is refined or pivots are added, and tiles are taken in the end. Everything but
    :meth:`triangle` is done by tiles; where that is, too, the provenance says why (`engine_note`).

    Parameters
    ----------
    tile, threads, precision
        Those of :class:`Tiled`. Features on a grid are in float32 unless the precision is "float64".
    tolerance
        Error of the sum that is allowed, in the standard deviation that it would have for calibrated
        predictions, or in its own if that is larger (`error_unit` in the provenance).

    Examples
    --------
    >>> import wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(10_000)
    >>> y = rng.random(10_000) < p
    >>> result = wc.skce(y, wc.Bernoulli(p), engine="linear")
    >>> result.provenance["engine"], result.provenance["sums"]
    ('linear', 'running sums on a line')
    >>> abs(result.value - wc.skce(y, wc.Bernoulli(p), engine="tiled").value) < 1e-15
    True
    """

    tolerance: float = field(default=TOLERANCE, kw_only=True)
    name: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_number(self.tolerance, "tolerance")

    def supports(self, problem: Problem) -> Support:
        """Check that predictions are points whose kernel needs no square, and that targets have features."""
        if not problem.terms:
            return Support(False, "it has no pairs to visit")
        if is_torch(problem.xp):
            flat = all(_method(term) in ("line", "plane") for term in problem.terms)
            learns = sys.modules["torch"].is_grad_enabled() and any(a.requires_grad for a in problem.arrays)
            if flat and not learns and is_constant(problem.kernel):
                return Support(True)
            return Support(False, "for tensors it needs predictions in a plane, and has no gradients")
        if not is_numpy(problem.xp):
            return Support(False, "it is for NumPy and PyTorch")
        for term in problem.terms:
            if _method(term) is None:
                return Support(
                    False,
                    "it needs predictions that are points on a line or in a plane, under ExpDistance of a "
                    "Euclidean distance between them, or power=2 with such a distance or with the MMD",
                )
            if not may_have_features(term.on_targets):
                return Support(False, "it needs a kernel on targets with finitely many features")
        return Support(True)

    def pays(self, problem: Problem) -> bool:
        """Return True if there are so many cases that it is quicker than tiles."""
        if is_torch(problem.xp):
            return problem.n >= _FEWEST_ON_DEVICE and is_on_accelerator(first_array(problem.rows))
        if not is_numpy(problem.xp) or not problem.terms:
            return False
        fewest = max(FEWEST_CASES.get(_method(term) or "", math.inf) for term in problem.terms)
        if problem.n < fewest:
            return False
        return problem.n >= _FEWEST_SHARP or fewest == FEWEST_ON_A_LINE or in_products(problem) is not None

    def triangle(self, problem: Problem) -> Sums:
        """Return sums of h over all pairs i < j."""
        if is_torch(problem.xp):
            of_tensors = tensor_sums(problem, self.precision, square=False)
            if of_tensors is None:
                return super().triangle(problem)
            problem.prepared.runs[self.name] = of_tensors[1]
            return of_tensors[0]
        with one_blas_thread():
            result = self._without_the_square(problem)
        if isinstance(result, str):
            sums = super().triangle(problem)
            problem.prepared.runs[self.name] |= {"engine_note": f"not linear: {result}"}
            return sums
        features = problem.prepared.features
        problem.prepared.runs[self.name] = (
            {} if features is None else features.describe()
        ) | result.provenance
        return Sums(0.5 * float(result.rows.sum()), result.rows)

    def describe(self, problem: Problem) -> dict[str, Any]:
        """Describe how sums were made, and how far their control rows were off."""
        run = problem.prepared.runs.get(self.name, {})
        return run if "engine" in run else {**super().describe(problem), "engine": Tiled.name}

    def _without_the_square(self, problem: Problem) -> _Result | str:
        """Refine sums until control rows agree, or say why there are none."""
        if problem.n < FEWEST:
            return "cases are too few"
        exact = in_products(problem) or problem
        made = [_TermSum.of(*parts) for parts in zip(exact.terms, exact.rows, strict=True)]
        terms = [term for term in made if term is not None]
        if len(terms) < len(made):
            return "features of the kernel on targets take longer than pairs"
        provenance: dict[str, Any] = {"engine": self.name}
        control, best, before = None, None, math.inf
        levels = [self._levels(term.points, term.kernel) for term in terms]
        for level in islice(zip(*levels, strict=False), _ATTEMPTS):
            parts = [term.sum(way) for term, way in zip(terms, level, strict=True)]
            if any(part is None for part in parts):
                break
            sums = cast("list[PairSum]", parts)
            rows, bias = np.sum([part.rows for part in sums], axis=0), sum(part.bias for part in sums)
            result = _Result(rows, provenance | {"sums": ", ".join(dict.fromkeys(way.how for way in level))})
            goal = self.tolerance * min(way.goal for way in level)
            if goal == math.inf:
                return result
            control = ErrorControl.of(exact) if control is None else control
            error = control.error(rows, bias)
            if error.value <= min(self.tolerance, before):
                rounded = any(way.single for way in level)
                precision = "mixed: products in float32" if rounded else "float64"
                best = _Result(rows, result.provenance | {"precision": precision} | error.describe())
            if error.value <= goal or error.value > 0.5 * before:
                break
            before = error.value
        if best is None and before < math.inf:
            return f"by control rows sums are off by {before:.1e} standard deviations"
        return best or "predictions are too far apart"

    def _levels(self, points: NDArray, kernel: DecayKernel) -> Iterator[_Level]:
        """Yield sums that are finer and finer, until tiles are quicker."""
        n, size = points.shape
        if size == 1 and kernel.power == 1.0:
            line = LineSum(1.0 / kernel.lengthscale)
            if line.runs(points) <= MOST_RUNS:
                yield from repeat(_Level("running sums on a line", partial(sum_pairs, line), math.inf))
        if size <= 2:
            cells = CELLS if n > _COARSE else CELLS // 4
            while cells <= max(CELLS, _NODES_FOR_A_CASE * n):
                sums, single = partial(self._on_grid, kernel, cells), self.precision != "float64"
                yield _Level(f"a grid of {cells:,} nodes", sums, single=single)
                cells *= 4
            return
        pivots = Nystrom.of(points, kernel)
        count, most = len(pivots.left), n // _CASES_FOR_A_PIVOT
        if count > (2 * _PIVOTS if n >= _COARSE else min(most, _WHOLE)):
            # For calibrated predictions the error is about what is left.
            near = np.flatnonzero(pivots.left <= _REFINED * TOLERANCE)
            count = -(-int(near[0] + 1) // _PIVOTS) * _PIVOTS if len(near) else _MOST_PIVOTS + 1
        while count <= min(_MOST_PIVOTS, most, 2 * len(pivots.left)):
            yield _Level(f"Nyström, {count:,} pivots", partial(sum_pairs, pivots.first(count)), _REFINED)
            count *= 2

    def _on_grid(self, kernel: DecayKernel, cells: int, points: NDArray, phi: NDArray) -> PairSum | None:
        features = phi if self.precision == "float64" else phi.astype(np.float32)
        return sum_on_grid(points, features, kernel, cells=cells)


class _Result(NamedTuple):
    rows: NDArray
    provenance: dict[str, Any]


class _Level(NamedTuple):
    """Way to sum over points and features, and the share of the tolerance from which none is finer."""

    how: str
    sums: Callable[[NDArray, NDArray], PairSum | None]
    goal: float = 1.0
    single: bool = False


@dataclass(frozen=True)
class _TermSum:
    """Kernel sum: points, features in blocks with the cases that have them, the kernel, and a factor."""

    points: NDArray
    blocks: Iterable[tuple[Chunk | NDArray, NDArray]]
    kernel: DecayKernel
    factor: Any

    @classmethod
    def of(cls, term: Term, rows: TermRows) -> _TermSum | None:
        form, own = cast("ExpDistanceForm", term.on_predictions), rows.on_predictions
        if isinstance(form.inner, MeanDiscrepancy):
            if not isinstance(form.inner.form, FiniteForm) or form.inner.form.gram is not None:
                return None
            own = cast("NormedRows", own).inner.weights
        blocks = _blocks(term.on_targets, rows.on_targets)
        if blocks is None:
            return None
        points = np.asarray(own)
        varies = np.ptp(points, axis=0) > 0.0
        points = points[:, varies] if varies.any() else points[:, :1]
        return cls(points, blocks, DecayKernel(cast("float", form.lengthscale), form.power), term.factor)

    def sum(self, level: _Level) -> PairSum | None:
        rows, bias = np.zeros(len(self.points)), 0.0
        for cases, phi in self.blocks:
            result = level.sums(self.points[cases], phi)
            if result is None:
                return None
            rows[cases] += self.factor * result.rows
            bias += self.factor * result.bias
        return PairSum(rows, bias)


def _blocks(form: Form, rows: Rows) -> Iterable[tuple[Chunk | NDArray, NDArray]] | None:
    """Features of all cases, or in blocks of columns with the cases that have any."""
    if isinstance(form, WeightedForm):
        weighted = cast("WeightedRows", rows)
        inner = _blocks(form.inner, weighted.inner)
        weights = np.asarray(weighted.weights)[:, None]
        return None if inner is None else [(cases, weights[cases] * phi) for cases, phi in inner]
    if isinstance(form, FiniteForm) and form.gram is None:
        return [(slice(0, len(rows.weights)), _thin(rows.weights))]
    return blocks_of_features(form, rows)


def _thin(weights: NDArray) -> NDArray:
    """Few columns with the same products: probabilities of two classes are one number."""
    if weights.shape[1] > 8:
        return weights
    values, vectors = np.linalg.eigh(weights.T @ weights)
    return weights @ vectors[:, values > 1e-15 * values[-1]]


def _method(term: Term) -> str | None:
    """Kind of sum: "line", "plane" or "smooth"."""
    form = term.on_predictions
    if not isinstance(form, ExpDistanceForm):
        return None
    distance = form.inner
    smooth = distance.degree == 2.0 and form.power == 2.0
    if isinstance(distance, MeanDiscrepancy):
        return "smooth" if smooth and may_have_features(distance.form) else None
    if not isinstance(distance, EmbeddingDistance):
        return None
    if distance.size == 1:
        return "line" if form.power == 1.0 else "plane"
    return "plane" if distance.size == 2 and distance.degree == 2.0 else "smooth" if smooth else None


FEWEST_CASES = {"line": FEWEST_ON_A_LINE, "plane": FEWEST_IN_A_PLANE, "smooth": 4000}
