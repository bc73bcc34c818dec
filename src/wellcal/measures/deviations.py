"""How far the estimated mean embedding of deviations may lie from the true one: intervals of KCE and SKCE.

KCE is the norm of mu = E k_P(P, .) (P - d(Y)), its estimate that of the mean over cases. By the triangle
inequality the two differ by ``||mu_hat - mu||`` at most, whatever KCE is: an interval made of the quantiles
of that distance holds at zero too, where the estimate is not normal. The distance is drawn in two ways, and
the larger quantile counts: from normal multipliers of centred deviations, and as the KCE of targets that are
drawn from the predictions, which is the distance of a calibrated model, exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal._arrays.progress import Progress, reporter
from wellcal.engines import Engine, choose_engine
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel
from wellcal.measures.target_sets.resampled import ResampledSKCE, has_terms
from wellcal.predictions import Predictions
from wellcal.predictions.batches import in_numpy
from wellcal.problem.problem import Problem, prepare_checked
from wellcal.problem.target_resampling import draw_targets, pool_draws, stretch, why_not_resampled
from wellcal.problem.weights import weighted_problem

MULTIPLIERS = 999
"""Vectors of multipliers."""

MOST_CASES = 1000
"""Cases from which the law of the distance is estimated; of more, a random part is taken."""

MATRIX_BUDGET = 3e7
"""Evaluations for the matrix of h of these cases, below which there are as many of them."""

DRAWN_BUDGET = 6e7
"""Evaluations for sets of drawn targets: a third of a second on one core."""

DRAWN_SETS = (999, 199)
"""Sets of drawn targets, where all cases can be taken, and where they cannot."""

_FEWEST = 30  # cases from which drawn targets are worth their time
_SEED = 0  # an interval is a function of the data
_STEPS = 40  # of the power method


@dataclass(frozen=True, eq=False)
class Cases:
    """What an estimate was made from, kept for what is asked of it later.

    Attributes
    ----------
    targets, predictions
        Targets as `check_targets` of the predictions returned them. Predictions that are draws may be pooled
        with their targets, as tests do; the kernel is then the one for them.
    kernel, expectations
        The kernel on pairs, and how its expectations are computed.
    weights, groups
        Weights of cases, and numbers of their clusters, or None.
    """

    targets: Array
    predictions: Predictions
    kernel: Kernel
    expectations: str | Lowering = "auto"
    weights: Array | None = None
    groups: NDArray | None = None

    def __len__(self) -> int:
        return len(self.predictions)

    def same_as(self, other: Cases) -> bool:
        """Whether these are the same cases, seen by the same kernel; cases that are only alike may not be."""
        plain = self.weights is other.weights is None and self.groups is other.groups is None
        kernels = (self.kernel, self.expectations) == (other.kernel, other.expectations)
        return (
            plain
            and self.predictions is other.predictions
            and kernels
            and bool(np.array_equal(to_numpy(self.targets), to_numpy(other.targets)))
        )

    def in_numpy(self) -> Cases:
        """The same in NumPy."""
        predictions = self.predictions
        if predictions.target_kind != "objects":
            predictions = in_numpy(predictions)
        targets, weights = self.targets, self.weights
        return Cases(
            to_numpy(targets),
            predictions,
            self.kernel,
            self.expectations,
            None if weights is None else to_numpy(weights),
            self.groups,
        )

    def some(self, index: NDArray) -> Cases:
        """Some of the cases; those of NumPy only."""
        return Cases(
            self.targets[index],
            self.predictions[index],
            self.kernel,
            self.expectations,
            None if self.weights is None else self.weights[index],
            None if self.groups is None else self.groups[index],
        )

    def at_most(self, count: int) -> Cases:
        """So many of the cases, or whole clusters, chosen at random with a fixed seed, in their order."""
        if len(self) <= count:
            return self
        rng = np.random.default_rng(_SEED)
        if self.groups is None:
            return self.some(np.sort(rng.permutation(len(self))[:count]))
        order = rng.permutation(int(self.groups.max()) + 1)
        within = np.cumsum(np.bincount(self.groups)[order]) <= count
        within[:2] = True  # one cluster says nothing of others
        positions = np.flatnonzero(np.isin(self.groups, order[within]))
        groups = np.unique(self.groups[positions], return_inverse=True)[1]
        return replace(self.some(positions), groups=groups)

    def problem(self, targets: NDArray | None = None, like: Problem | None = None) -> Problem:
        """All of it prepared, its pairs weighted; or with other targets, like what `unweighted` returned."""
        problem = self.unweighted(targets, like)
        return problem if self.weights is None else weighted_problem(problem, self.weights)

    def unweighted(self, targets: NDArray | None = None, like: Problem | None = None) -> Problem:
        """The same without weights."""
        chosen = self.targets if targets is None else targets
        return prepare_checked(
            chosen, self.predictions, self.kernel, expectations=self.expectations, like=like
        )

    @property
    def worth(self) -> float:
        """Cases of equal weight, or clusters, whose mean varies as much."""
        shares = np.ones(len(self)) if self.weights is None else np.asarray(self.weights, float)
        if self.groups is not None:
            shares = np.bincount(self.groups, weights=shares)
        return float(shares.sum() ** 2 / np.sum(shares**2))


@dataclass(frozen=True, eq=False)
class Deviations:
    """An estimate of KCE, and draws of its distance from the truth.

    Attributes
    ----------
    root
        The estimate: the root of the mean of h over all pairs, those of a case with itself included.
    multipliers
        Distances by normal multipliers.
    drawn
        Distances of a calibrated model, by targets drawn from the predictions; None where they cannot be
        drawn, or take too long.
    total, largest
        Sum and largest of the eigenvalues of the covariance of the mean embedding.
    """

    root: float
    multipliers: NDArray
    drawn: NDArray | None
    total: float
    largest: float

    def radius(self, level: float) -> float:
        """The distance that is not exceeded with probability `level`.

        Beyond what the number of multipliers resolves it is the bound of Gaussian concentration,
        ``sqrt(total) + sqrt(2 largest log(1 / (1 - level)))``.
        """
        found = _quantile(self.multipliers, level)
        if found is None:
            bound = math.sqrt(self.total) + math.sqrt(-2.0 * self.largest * math.log1p(-level))
            found = max(bound, float(self.multipliers.max()))
        if self.drawn is None:
            return found
        drawn = _quantile(self.drawn, level)
        return max(found, float(self.drawn.max()) if drawn is None else drawn)

    def ends(self, level: float) -> tuple[float, float]:
        """Ends of the interval of KCE."""
        radius = self.radius(level)
        return max(self.root - radius, 0.0), self.root + radius

    def pvalue(self, distance: float) -> float:
        """The smallest ``1 - level`` whose interval does not reach so far; 1 where it always does."""
        if distance <= 0.0:
            return 1.0
        parts = [self.multipliers] if self.drawn is None else [self.multipliers, self.drawn]
        return max((1.0 + float(np.count_nonzero(part >= distance))) / (len(part) + 1.0) for part in parts)

    @property
    def floor(self) -> float:
        """The smallest p-value that so many draws can give."""
        counts = [len(self.multipliers)] + ([] if self.drawn is None else [len(self.drawn)])
        return 1.0 / (min(counts) + 1.0)


def _quantile(draws: NDArray, level: float) -> float | None:
    """The draw that a further one exceeds with probability ``1 - level`` at most; None where none is."""
    position = math.ceil(round((len(draws) + 1) * level, 9))
    return None if position > len(draws) else float(np.partition(draws, position - 1)[position - 1])


def deviations_of(cases: Cases, square: float | None = None, *, biased: bool = False) -> Deviations:
    """The estimate of KCE from cases, and draws of its distance from the truth.

    Parameters
    ----------
    cases
        At least two cases, or clusters.
    square
        The estimate of SKCE over all pairs, where it is known. Without it, or where pairs are few enough,
        it is computed from the cases that the distance is estimated from.
    biased
        Whether `square` is the biased estimate.

    Examples
    --------
    >>> import wellcal as wc
    >>> y, pred = np.linspace(-2.0, 2.0, 40), wc.Normal(np.zeros(40), np.ones(40))
    >>> found = deviations_of(Cases(y, pred, wc.default_kernel(pred)))
    >>> low, high = found.ends(0.95)
    >>> low < found.root < high
    True
    """
    cases = cases.in_numpy()
    n = len(cases)
    if cases.worth <= 1.0 or n < 2:
        if cases.groups is not None:
            raise ValueError("groups must name at least 2 clusters for an interval, found 1")
        raise ValueError("an interval needs at least 2 cases that count, found 1; collect more")
    few = cases.at_most(_cases_within(MATRIX_BUDGET, _cost(cases), n))
    matrix = _matrix(few.problem())
    shares = _shares(few)
    if len(few) == n or square is None:
        mean = float(matrix.sum()) / shares[1]
    else:
        mean = _mean_of_all(cases, square, biased)
    draws, total, largest = _by_multipliers(few, matrix, shares)
    # The law of sqrt(worth) times the distance does not depend on the number of cases.
    scale = math.sqrt(few.worth / cases.worth)
    drawn = None if cases.groups is not None else _by_drawn_targets(cases)
    return Deviations(math.sqrt(max(mean, 0.0)), scale * draws, drawn, scale**2 * total, scale**2 * largest)


def _cost(cases: Cases) -> float:
    return max(cases.at_most(64).problem().cost.evaluations, 1.0)


def _cases_within(budget: float, cost: float, n: int) -> int:
    return min(n, MOST_CASES, max(int(math.sqrt(budget / cost)), 100))


def _shares(cases: Cases) -> tuple[NDArray, float]:
    """Share of each case in the mean, and the square of the sum of weights."""
    weights = np.ones(len(cases)) if cases.weights is None else np.asarray(cases.weights, float)
    return weights / weights.sum(), float(weights.sum()) ** 2


def _matrix(problem: Problem) -> NDArray:
    """h of all pairs, those of a case with itself and of a draw with itself included."""
    n, out = problem.n, np.empty((problem.n, problem.n))
    with np.errstate(over="ignore", under="ignore"):
        for some in in_chunks(n, n * problem.cost.entries):
            out[some] = problem.values(some, slice(0, n))
    if not np.isfinite(out).all():
        raise ValueError(
            f"h is not finite for some pairs of cases under the kernel {problem.kernel!r}; check the values "
            "that it returns"
        )
    return out


def _mean_of_all(cases: Cases, square: float, biased: bool) -> float:
    """Mean of h over all pairs, those of a draw with itself included, from an estimate of SKCE."""
    problem = cases.problem()
    own = float(np.sum(to_numpy(problem.own_values())))
    _, total = _shares(cases)
    if biased:
        return square + (own - float(np.sum(to_numpy(problem.diagonal())))) / total
    weights = np.ones(len(cases)) if cases.weights is None else np.asarray(cases.weights, float)
    return (square * (total - float(np.sum(weights**2))) + own) / total


def _by_multipliers(
    cases: Cases, matrix: NDArray, shares: tuple[NDArray, float]
) -> tuple[NDArray, float, float]:
    """Norms of the centred mean under normal multipliers, and sum and largest of their eigenvalues."""
    share, total = shares
    scaled = matrix / total  # weights are in it
    rows = scaled.sum(axis=1)
    # Inner products of w_i (phi_i - mu_hat): row i of the weighted matrix sums to <w_i phi_i, mu_hat>.
    centred = scaled - np.multiply.outer(share, rows) - np.multiply.outer(rows, share)
    centred += np.multiply.outer(share, share) * rows.sum()
    if cases.groups is not None:
        clusters = int(cases.groups.max()) + 1
        member = np.zeros((clusters, len(cases)))
        member[cases.groups, np.arange(len(cases))] = 1.0
        centred = member @ centred @ member.T
    worth = cases.worth
    centred *= worth / (worth - 1.0)
    rng = np.random.default_rng(_SEED)
    multipliers = rng.standard_normal((MULTIPLIERS, len(centred)))
    squares = np.vecdot(multipliers, multipliers @ centred)
    return np.sqrt(np.maximum(squares, 0.0)), max(float(np.trace(centred)), 0.0), _largest(centred)


def _largest(matrix: NDArray) -> float:
    """The largest eigenvalue of a positive semidefinite matrix, by the power method."""
    vector = np.random.default_rng(_SEED).standard_normal(len(matrix))
    value = 0.0
    for _ in range(_STEPS):
        image = matrix @ vector
        value = float(np.linalg.norm(image)) / max(float(np.linalg.norm(vector)), 1e-300)
        if value == 0.0:
            break
        vector = image / np.linalg.norm(image)
    return value


# -- drawn targets ---------------------------------------------------------------------------


def _by_drawn_targets(cases: Cases) -> NDArray | None:
    """KCE of targets drawn from the predictions; None where it takes too long, or cannot be done."""
    predictions: Any = cases.predictions
    if predictions.kind == "draws":
        # Draws and target are exchangeable, and the pool of them stands for the prediction.
        draws = int(predictions.values.shape[1])
        pooled = pool_draws(cases.targets, predictions)
        kernel = stretch(draws) ** 2 * cases.kernel
        cases = Cases(cases.targets, pooled, kernel, cases.expectations, cases.weights)
    if why_not_resampled(cases.predictions) is not None:
        return None
    cost = _cost(cases)
    most, fewer = DRAWN_SETS
    n = len(cases)
    if 0.5 * n**2 * most * cost <= DRAWN_BUDGET and _together(cases, cases.at_most(64).problem()):
        return _drawn_roots(cases, most)
    size = int(math.sqrt(2.0 * DRAWN_BUDGET / (fewer * cost)))
    if size < min(n, _FEWEST):
        return None
    few = cases.at_most(size)
    return math.sqrt(few.worth / cases.worth) * _drawn_roots(few, fewer)


@dataclass(frozen=True)
class _Drawn:
    """Cases whose targets are drawn, as sums over many sets of targets want them."""

    targets: NDArray
    predictions: Predictions
    expectations: str | Lowering
    problem: Problem
    engine: Engine
    progress: Progress

    @property
    def n_samples(self) -> int:
        """Number of cases."""
        return self.problem.n


def _drawn_roots(cases: Cases, count: int) -> NDArray:
    n = len(cases)
    sets = draw_targets(cases.predictions, np.random.default_rng(_SEED), count, cases.targets)
    squares = np.empty(count)
    problem = cases.unweighted(sets[0])
    together = _together(cases, problem)
    like = None if together else problem
    # Where targets are apart from predictions, what does not depend on targets is found once for all sets.
    apart = cases.weights is None and has_terms(cases.kernel)
    for some in in_chunks(count, n * problem.cost.entries, within=None if together else 1):
        squares[some] = _squares(cases, sets[some], like, pairs=not apart)
    if apart:
        engine = choose_engine("auto", problem)
        drawn = _Drawn(sets[0], cases.predictions, cases.expectations, problem, engine, reporter())
        squares += (n - 1.0) / n**2 * ResampledSKCE(drawn, [cases.kernel])(sets)[:, 0]
    return np.sqrt(np.maximum(squares, 0.0))


def _together(cases: Cases, problem: Problem) -> bool:
    """Whether many sets of targets are one problem: where what is known of a batch need not be shared."""
    return not problem.notes.lowered and cases.predictions.target_kind != "counts"


def _squares(cases: Cases, sets: NDArray, like: Problem | None, *, pairs: bool) -> NDArray:
    """Mean of h over all pairs for sets of targets ``(r, n, ...)``; one set is `like` another.

    Without `pairs`, only what those of a case with itself contribute.
    """
    n, count = len(cases), len(sets)
    tiled = cases if count == 1 else cases.some(np.tile(np.arange(n), count))
    problem = tiled.problem(sets.reshape(-1, *sets.shape[2:]), like)
    rows = to_numpy(problem.own_values())
    if pairs:
        rows = rows + to_numpy(choose_engine("auto", problem).blocks(problem, n).rows)
    return np.asarray(rows).reshape(count, n).sum(axis=1) / _shares(cases)[1]
