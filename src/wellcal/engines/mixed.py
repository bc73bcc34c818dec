"""Products in float32, after the cancellation: how far off they are is measured, and their bias removed.

Differences of features are rounded once to float32, and so are the rows that distances between predictions
are taken of. Rounding errors of pairs do not line up, so that the sum over all pairs is nearly right; what
lines up is a small bias, of sums that are accumulated in float32. Random tiles are evaluated in both
precisions: the mean difference is added to every pair, and its standard error is reported, in standard
deviations of the sum that calibrated predictions would have. Where few cases say most, they are likelier to
be in tiles, and count less there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.rows import Rows, map_rows
from wellcal._arrays.threads import one_blas_thread
from wellcal.engines.reductions import Sums
from wellcal.expectations.bilinear import FiniteForm, Form
from wellcal.expectations.distances import EmbeddingDistance
from wellcal.expectations.mmd import MeanDiscrepancy
from wellcal.expectations.on_predictions import ExpDistanceForm
from wellcal.problem.deviations import NullDeviation, null_deviation
from wellcal.problem.feature_form import in_products
from wellcal.problem.problem import Problem, Term, TermRows
from wellcal.problem.telling_cases import uneven_chances

PRECISIONS = ("auto", "float64", "mixed")

LARGEST_ERROR = 0.01
"""Standard error of the bias, in the unit above, that "mixed" may have."""

AUTO_ERROR = 1e-3
"""The same for "auto"."""

AUTO_FROM = 20_000
"""Cases from which "auto" tries float32: with fewer, float64 takes less than two seconds."""

_DROPPED = 1e-11  # share of the energy of features that is left out: less than rounding them
_ROUNDING = float(np.finfo(np.float32).eps)
_SIDE = 128  # cases on either side of a random tile
_TILES = (16, 64, 256, 1024)  # looked at in all, until they tell


@dataclass(frozen=True)
class MixedProblem:
    """A problem in float32, and what float32 does to it.

    Attributes
    ----------
    problem
        The problem, its rows in float32.
    bias
        Mean of h in float64 minus h in float32.
    error
        Standard error of the sum over all pairs that is left, in units of `unit`.
    unit
        Standard deviation of the sum for calibrated predictions.
    """

    problem: Problem
    bias: float
    error: float
    unit: NullDeviation

    def corrected(self, sums: Sums) -> Sums:
        """Sums over all pairs with the bias removed."""
        n = self.problem.n
        return Sums(sums.total + self.bias * (0.5 * n * (n - 1)), sums.rows + self.bias * (n - 1))

    def describe(self) -> dict[str, Any]:
        """For the provenance of a result."""
        return {
            "precision": "mixed: products in float32",
            "precision_bias": self.bias,
            "precision_error": self.error,
            **self.unit.describe(),
        }


def mixed_form(problem: Problem, most: float) -> MixedProblem | None:
    """The problem in float32; None where it has no feature form, or where the error would be above `most`.

    Examples
    --------
    >>> import wellcal as wc
    >>> from wellcal.problem.problem import prepare
    >>> rng = np.random.default_rng(0)
    >>> loc = rng.normal(size=2000)
    >>> found = mixed_form(prepare(rng.normal(loc), wc.Normal(loc, np.ones(2000))), 0.01)
    >>> found.error < 1e-4
    True
    """
    known = problem.kept.get("mixed")
    if known is None:
        exact = in_products(problem)
        if exact is None or not _can_be_rounded(exact):
            known = _IMPOSSIBLE
        else:
            with one_blas_thread():  # tiles are small: threads would take longer to meet than to multiply
                known = _measured(exact)
        problem.kept["mixed"] = known
    if known is _IMPOSSIBLE or not cast("MixedProblem", known).error <= most:
        return None
    return cast("MixedProblem", known)


def why_not_mixed(problem: Problem) -> str:
    """Why `mixed_form` found nothing, for the provenance of a result."""
    known = problem.kept.get("mixed")
    if isinstance(known, MixedProblem):
        return f"float32 is not exact enough, {known.error:.1e} standard deviations of the sum"
    return "without features that are quicker than closed forms, or distances that can be rounded"


_IMPOSSIBLE = object()


def _can_be_rounded(problem: Problem) -> bool:
    return all(
        isinstance(term.factor, float) and _has_plain_rows(term.on_predictions) for term in problem.terms
    )


def _has_plain_rows(form: Form | None) -> bool:
    """Whether distances between predictions are taken of their coordinates."""
    if not isinstance(form, ExpDistanceForm) or not isinstance(form.lengthscale, float):
        return False
    inner = form.inner
    if isinstance(inner, MeanDiscrepancy):
        return isinstance(inner.form, FiniteForm) and inner.form.gram is None
    return isinstance(inner, EmbeddingDistance)


def _measured(exact: Problem) -> MixedProblem:
    rounded = _rounded(exact)
    n = exact.n
    side = min(_SIDE, n // 2)
    rng = np.random.default_rng(0)
    differences: list[float] = []
    squares: list[float] = []
    unit = null_deviation(exact)
    error = math.inf
    chances = uneven_chances(exact)
    for tiles in _TILES:
        while len(differences) < tiles:
            some = _some_cases(rng, n, 2 * side, chances)
            i, j = some[:side], some[side:]
            with np.errstate(over="ignore", under="ignore"):
                h = np.asarray(exact.values(i, j))
                low = np.asarray(rounded.values(i, j), dtype=np.float64)
            often = 1.0 if chances is None else _often(chances, i, j)
            differences.append(float(np.mean(often * (h - low))))
            squares.append(0.0 if chances is None else float(np.mean(often * h**2)))
        # Large pairs that are in every tile are rounded differently in a sum over other tiles.
        again = _ROUNDING * math.sqrt(0.5 * n * (n - 1) * float(np.mean(squares)))
        error = math.hypot(
            standard_error(np.array(differences), n, unit.value), again / max(unit.value, 1e-300)
        )
        if error <= AUTO_ERROR:
            break
    return MixedProblem(rounded, float(np.mean(differences)), error, unit)


def standard_error(differences: NDArray, n: int, unit: float) -> float:
    """That of the sum over all pairs of n cases without its bias, in a standard deviation of the sum.

    Parameters
    ----------
    differences
        Means over the pairs of random tiles, of h in float64 minus h as it is rounded.
    n
        Number of cases.
    unit
        The standard deviation.
    """
    spread = float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    return 0.5 * n * (n - 1) * spread / unit if unit > 0.0 else math.inf


def _some_cases(rng: np.random.Generator, n: int, count: int, chances: NDArray | None) -> NDArray:
    """So many cases: different ones, or each drawn by itself by its chance."""
    if chances is not None:
        return rng.choice(n, count, p=chances)
    return rng.choice(n, count, replace=False) if n < 25 * count else _distinct(rng, n, count)


def _often(chances: NDArray, i: NDArray, j: NDArray) -> NDArray:
    """How often pairs of cases that were drawn count, so that their mean is that of all pairs."""
    n = len(chances)
    often = np.outer(1.0 / chances[i], 1.0 / chances[j]) / (n * (n - 1.0))
    return np.where(i[:, None] == j, 0.0, often)


def _distinct(rng: np.random.Generator, n: int, count: int) -> NDArray:
    """So many different cases of very many, without a list of all."""
    found: NDArray = np.unique(rng.integers(0, n, 2 * count))
    return rng.permutation(found)[:count]


def _rounded(problem: Problem) -> Problem:
    terms: list[Term] = []
    rows: list[TermRows] = []
    for term, own in zip(problem.terms, problem.rows, strict=True):
        form = cast("ExpDistanceForm", term.on_predictions)
        predictions = own.on_predictions
        if isinstance(form.inner, EmbeddingDistance):
            # Distances do not depend on the origin, and what is small is rounded less.
            predictions = predictions - np.median(predictions, axis=0)
        some = large_coordinates(own.on_targets.weights)
        targets = own.on_targets._replace(weights=own.on_targets.weights[:, some])
        on_targets = FiniteForm(None, targets.weights.shape[1])
        terms.append(replace(term, on_predictions=form, on_targets=on_targets))
        rows.append(TermRows(_single(targets), _single(predictions)))
    return replace(problem, terms=tuple(terms), rows=tuple(rows))


def large_coordinates(weights: NDArray) -> NDArray:
    """Coordinates that hold all but a negligible part of the sum of squares."""
    return largest_sums(np.einsum("nm,nm->m", weights, weights))


def largest_sums(squares: NDArray) -> NDArray:
    """The same from the sums of squares of all coordinates."""
    order = np.argsort(squares)
    kept = np.cumsum(squares[order]) > _DROPPED * squares.sum()
    return np.sort(order[kept])


def _single(rows: Rows) -> Rows:
    return map_rows(lambda array: array.astype(np.float32), rows)
