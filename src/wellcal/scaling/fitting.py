"""The best temperature on given data, by likelihood or by calibration error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import optimize

from wellcal._arrays.checks import check_rows
from wellcal._arrays.chunks import budget
from wellcal._arrays.namespaces import Array, NDArray
from wellcal._arrays.ops import Ops
from wellcal._arrays.progress import Stages
from wellcal._arrays.special import quiet
from wellcal.engines import Engine, choose_engine
from wellcal.expectations.decompose import Targets
from wellcal.expectations.plans import Notes, plan
from wellcal.kernels.algebra import Tensor
from wellcal.kernels.base import Kernel
from wellcal.kernels.targets import Joint
from wellcal.measures._skce import estimate_blocks, estimate_unbiased, skce
from wellcal.predictions import Bernoulli, Categorical, Predictions
from wellcal.problem.defaults import default_kernel
from wellcal.problem.problem import Problem, Term, TermRows, expand, prepare_checked
from wellcal.scaling.class_likelihood import ClassLikelihood
from wellcal.scaling.temperature import apply_temperature

Objective = Callable[[float], float]

_REMEDY = 'drop that row or take objective="skce"'
_STEP = 0.5  # in log T: curves bend over about a unit
_TRIED, _DESCENT = 60.0, 20.0  # temperatures that are tried, about, over a grid and on the way down
_TOLERANCE, _COARSE_TOLERANCE = 1e-9, 1e-4  # in log T; the second is far below the sampling error


@dataclass(frozen=True)
class Fitted:
    """A temperature and the objective before and after.

    Attributes
    ----------
    temperature
        The best one, or 1 where none is better.
    before, after
        The objective at temperature 1 and at the best one.
    kernel
        Kernel of the objective, if it has one.
    at_bound
        Whether the best temperature is an end of the range that was searched.
    """

    temperature: float
    before: float
    after: float
    kernel: Kernel | None
    at_bound: bool


def fit_likelihood(y: Any, predictions: Any, bounds: tuple[float, float]) -> Fitted:
    """Least mean negative log-likelihood, for predictions in NumPy.

    It is convex in 1/T for every family that is scaled as a whole, since log of the normalising constant
    is: there is one minimum. For mixtures there may be several, and the grid is there for them. For classes,
    of which there may be many, derivatives find it in a few steps.
    """
    if type(predictions) in (Bernoulli, Categorical):
        return _fit_classes(y, predictions, bounds)
    _check_likelihood(y, predictions)

    stages = Stages("temperatures", _TRIED)

    @quiet
    def objective(T: float) -> float:
        with stages.part(1.0):
            return -float(apply_temperature(predictions, T).log_prob(y).mean())

    temperature, at_bound = minimise(objective, bounds)
    found = _never_worse(temperature, at_bound, objective, None)
    stages.end()
    return found


@quiet
def _fit_classes(y: Any, predictions: Any, bounds: tuple[float, float]) -> Fitted:
    """The same for classes, by Newton's method; the likelihood of a class is never infinite."""
    index, probs = predictions.check_targets(y), predictions.class_probs()
    _check_possible(np.log(probs[np.arange(len(index)), index]))
    likelihood = ClassLikelihood(probs, index)
    temperature, at_bound = likelihood.best(bounds)
    found = _never_worse(temperature, at_bound, lambda T: likelihood(1.0 / T)[0], None)
    likelihood.stages.end()
    return found


def _check_possible(now: NDArray) -> None:
    check_rows("log density of y", now, np.isfinite(now), "is not finite", _REMEDY)


@quiet
def _check_likelihood(y: Any, predictions: Any) -> None:
    """Reject targets whose likelihood is zero or infinite at one temperature or another."""
    _check_possible(predictions.log_prob(y))
    # A target on the boundary of a Beta or Dirichlet distribution has a finite density at a = 1 only.
    later = apply_temperature(predictions, 2.0).log_prob(y)
    check_rows("log density of y at temperature 2", later, later < math.inf, "is infinite", _REMEDY)


def fit_calibration(
    y: Any,
    predictions: Predictions,
    bounds: tuple[float, float],
    *,
    kernel: Kernel | None,
    estimator: str,
    block_size: Any,
    expectations: Any,
    engine: Any,
) -> Fitted:
    """Least unbiased SKCE between targets and scaled predictions, for predictions in NumPy.

    The kernel on predictions is evaluated at the predictions as given. Predictions and scaled predictions
    determine each other, so that this is an SKCE of the scaled ones too; but one that does not reward
    scaling all of them into the same distribution, which for balanced classes and T to infinity is
    calibrated, and useless.
    """
    chosen = default_kernel(predictions, expectations=expectations) if kernel is None else kernel
    if any(isinstance(part, Joint) for _, part in expand(chosen)):
        raise TypeError(
            'objective="skce" needs a kernel that is a sum of products of a kernel on predictions and one on '
            f"targets, found {chosen!r}"
        )
    stages = Stages("temperatures", _DESCENT)
    checked = predictions.check_targets(y)
    prepared = prepare_checked(checked, predictions, chosen, expectations=expectations)
    runner = choose_engine(engine, prepared)
    given = _with_stored_kernels(prepared, runner)

    def objective(T: float) -> float:
        scaled = predictions if T == 1.0 else apply_temperature(predictions, T)
        problem = _given_predictions(given, checked, scaled, expectations)
        with stages.part(1.0):
            if estimator == "block":
                return float(estimate_blocks(problem, runner, block_size, None))
            return float(estimate_unbiased(problem, runner))

    def reported(T: float) -> float:
        scaled = apply_temperature(predictions, T)
        options: dict[str, Any] = {"estimator": estimator, "block_size": block_size}
        with stages.part(1.0):
            return float(skce(y, scaled, kernel=chosen, expectations=expectations, engine=engine, **options))

    with stages.part(1.0):
        likely = _likely(y, predictions, bounds)
    temperature, at_bound = descend(objective, (1.0, likely), bounds)
    found = _never_worse(temperature, at_bound, reported, chosen)
    stages.end()
    return found


def _likely(y: Any, predictions: Any, bounds: tuple[float, float]) -> float:
    """Temperature of the largest likelihood, a place to start from; 1 where there is no likelihood."""
    try:
        return fit_likelihood(y, predictions, bounds).temperature
    except ValueError:
        return 1.0


def _given_predictions(given: Problem, checked: Array, scaled: Predictions, expectations: Any) -> Problem:
    """The problem of scaled predictions, with the kernel on predictions evaluated at those of `given`."""
    targets = Targets(checked, scaled)
    rows: list[TermRows] = []
    terms: list[Term] = []
    parts = cast("list[tuple[Any, Tensor]]", expand(given.kernel))
    for (factor, part), term, known in zip(parts, given.terms, given.rows, strict=True):
        scheme = plan(part.targets, [scaled, targets], expectations=expectations, notes=Notes())
        own = scheme.rows([(1.0, scaled), (-1.0, targets)])
        terms.append(Term(factor, term.on_predictions, scheme.form(own, own)))
        rows.append(TermRows(own, known.on_predictions))
    return replace(given, rows=tuple(rows), terms=tuple(terms))


@dataclass(frozen=True)
class _StoredKernel:
    """A kernel on predictions whose values are known: it does not change with the temperature."""

    values: NDArray
    width: int = 1
    calls_user = False

    def tile(self, ops: Ops, a: NDArray, b: NDArray) -> Array:
        """Values of all pairs of cases."""
        return self.values[np.ix_(a, b)]

    def paired(self, ops: Ops, a: NDArray, b: NDArray) -> Array:
        """Values of matching cases."""
        return self.values[a, b]


def _with_stored_kernels(problem: Problem, engine: Engine) -> Problem:
    """The same with its kernels on predictions evaluated once, where n^2 values fit into memory easily."""
    if problem.n**2 > 2 * budget.work:
        return problem
    rows: list[TermRows] = []
    terms: list[Term] = []
    for term, own in zip(problem.terms, problem.rows, strict=True):
        assert term.on_predictions is not None
        known = own.on_predictions
        values = engine.rectangle(term.on_predictions, problem.ops, known, known)
        terms.append(replace(term, on_predictions=_StoredKernel(values)))
        rows.append(TermRows(own.on_targets, np.arange(problem.n)))
    return replace(problem, rows=tuple(rows), terms=tuple(terms))


def _never_worse(temperature: float, at_bound: bool, reported: Objective, kernel: Kernel | None) -> Fitted:
    before = reported(1.0)
    after = before if temperature == 1.0 else reported(temperature)
    if not after < before:
        return Fitted(1.0, before, before, kernel, False)
    return Fitted(temperature, before, after, kernel, at_bound)


def minimise(objective: Objective, bounds: tuple[float, float]) -> tuple[float, bool]:
    """Temperature of the least value, and whether it is an end of `bounds`.

    A grid in log T finds the valley, Brent's method its floor.

    Examples
    --------
    >>> temperature, at_bound = minimise(lambda T: (T - 3.0) ** 2, (0.01, 100.0))
    >>> round(temperature, 6), at_bound
    (3.0, False)
    """
    low, high = (math.log(bound) for bound in bounds)
    grid = np.linspace(low, high, 1 + max(2, math.ceil((high - low) / _STEP)))
    values = [_comparable(objective(math.exp(u))) for u in grid]
    best = int(np.argmin(values))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    return _refined(objective, (grid[best], values[best]), ends, bounds, _TOLERANCE)


def descend(
    objective: Objective, starts: tuple[float, ...], bounds: tuple[float, float]
) -> tuple[float, bool]:
    """The same for an objective that is expensive: downhill from the best of some temperatures.

    Examples
    --------
    >>> temperature, at_bound = descend(lambda T: (T - 3.0) ** 2, (1.0, 20.0), (0.01, 100.0))
    >>> round(temperature, 4), at_bound
    (3.0, False)
    """
    low, high = (math.log(bound) for bound in bounds)
    known: dict[float, float] = {}

    def value(u: float) -> float:
        if u not in known:
            known[u] = _comparable(objective(math.exp(u)))
        return known[u]

    u = min({min(max(math.log(T), low), high) for T in starts}, key=value)
    while True:
        ends = max(u - _STEP, low), min(u + _STEP, high)
        best = min((u, *ends), key=value)  # the place itself where all are equal
        if best == u:
            return _refined(objective, (u, value(u)), ends, bounds, _COARSE_TOLERANCE)
        u = best


def _refined(
    objective: Objective,
    best: tuple[float, float],
    ends: tuple[float, float],
    bounds: tuple[float, float],
    tolerance: float,
) -> tuple[float, bool]:
    """The floor of a valley between `ends` whose best known place and value are `best`."""
    found: Any = optimize.minimize_scalar(
        lambda u: _comparable(objective(math.exp(u))),
        bounds=ends,
        method="bounded",
        options={"xatol": tolerance},
    )
    u = float(found.x if found.fun <= best[1] else best[0])
    low, high = (math.log(bound) for bound in bounds)
    return math.exp(u), min(u - low, high - u) < 1e-3


def _comparable(value: float) -> float:
    """Probabilities that underflow make an infinite objective: the worst there is, and no warning."""
    return value if math.isfinite(value) else 1e300
