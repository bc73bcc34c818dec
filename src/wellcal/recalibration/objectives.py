"""Temperature of the largest likelihood, or of the least calibration error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

from wellcal._arrays.checks import check_rows
from wellcal._arrays.chunks import budget, told_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.progress import Stages
from wellcal._arrays.special import quiet
from wellcal.engines import choose_engine
from wellcal.kernels.base import Kernel
from wellcal.kernels.targets import Joint
from wellcal.measures._skce import estimate_blocks, estimate_unbiased, skce
from wellcal.predictions import Bernoulli, Categorical, Predictions
from wellcal.problem.defaults import default_kernel
from wellcal.problem.problem import expand, prepare_checked
from wellcal.recalibration.temperature import apply_temperature

Objective = Callable[[float], float]

_REMEDY = 'drop that row or take objective="skce"'
_STEP = 0.5  # in log T: curves bend over about a unit
_NEWTON_STEPS = 200  # at most; halvings alone take a hundred from one end of the widest bounds to the other
_EVALUATIONS = {"newton": 10.0, "grid": 60.0, "descent": 20.0}  # about, for the remaining time
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


# -- likelihood ----------------------------------------------------------------------------------------


def fit_likelihood(y: Any, predictions: Any, bounds: tuple[float, float]) -> Fitted:
    """Minimise the mean negative log-likelihood of predictions in NumPy.

    It is convex in 1/T for every family that is scaled as a whole, since log of the normalising constant
    is: there is one minimum. For mixtures there may be several, and the grid is there for them. For classes,
    of which there may be many, derivatives find it in a few steps.
    """
    if type(predictions) in (Bernoulli, Categorical):
        return _fit_classes(y, predictions, bounds)
    _check_likelihood(y, predictions)
    stages = Stages("temperatures", _EVALUATIONS["grid"])

    @quiet
    def objective(T: float) -> float:
        with stages.part(1.0):
            return -float(apply_temperature(predictions, T).log_prob(y).mean())

    width = math.log(bounds[1] / bounds[0])
    count = 1 + max(2, math.ceil(width / _STEP))
    starts = np.geomspace(*bounds, count)
    temperature, at_bound = minimise(
        objective, starts, bounds, step=width / (count - 1), tolerance=_TOLERANCE
    )
    result = _never_worse(temperature, at_bound, objective, None)
    stages.end()
    return result


@quiet
def _fit_classes(y: Any, predictions: Any, bounds: tuple[float, float]) -> Fitted:
    index, probs = predictions.check_targets(y), predictions.class_probs()
    _check_possible(np.log(probs[np.arange(len(index)), index]))
    likelihood = ClassLikelihood(probs, index)
    temperature, at_bound = likelihood.best(bounds)
    result = _never_worse(temperature, at_bound, lambda T: likelihood(1.0 / T)[0], None)
    likelihood.stages.end()
    return result


def _check_possible(now: NDArray) -> None:
    check_rows("log density of y", now, np.isfinite(now), "is not finite", _REMEDY)


@quiet
def _check_likelihood(y: Any, predictions: Any) -> None:
    """Reject targets whose likelihood is zero or infinite at one temperature or another."""
    _check_possible(predictions.log_prob(y))
    # A target on the boundary of a Beta or Dirichlet distribution has a finite density at a = 1 only.
    later = apply_temperature(predictions, 2.0).log_prob(y)
    check_rows("log density of y at temperature 2", later, later < math.inf, "is infinite", _REMEDY)


class ClassLikelihood:
    r"""Mean negative log-likelihood of observed classes as a function of b = 1/T, with two derivatives.

    With :math:`l_c` the logarithms of probabilities it is the mean of
    :math:`\log \sum_c \exp(b l_c) - b l_y`, which is convex in b.

    Parameters
    ----------
    probs
        Class probabilities ``(n, C)``; those of observed classes must be positive.
    index
        Observed classes ``(n,)``.

    Examples
    --------
    >>> likelihood = ClassLikelihood(np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([1, 0]))
    >>> value, slope, curvature = likelihood(1.0)
    >>> abs(value + 0.5 * math.log(0.75 * 0.5)) < 1e-15
    True
    """

    def __init__(self, probs: NDArray, index: NDArray) -> None:
        possible = probs > 0
        # A class of probability zero has none at any temperature, and no logarithm.
        self.possible = None if possible.all() else possible
        self.logs = np.log(probs if self.possible is None else np.where(possible, probs, 1.0))
        self.logs -= np.log(probs.max(axis=1))[:, None]
        self.at_target = float(self.logs[np.arange(len(index)), index].mean())
        self.stages = Stages("temperatures", _EVALUATIONS["newton"])

    def __call__(self, b: float) -> tuple[float, float, float]:
        """Return the value and two derivatives at b; one of the stages, which the caller ends."""
        with self.stages.part(1.0):
            return self._evaluate(b)

    def _evaluate(self, b: float) -> tuple[float, float, float]:
        n, classes = self.logs.shape
        ones = np.ones(classes)
        total = slope = curvature = 0.0
        for rows in told_chunks(n, classes, within=budget.cache // 4):
            logs = self.logs[rows]
            weights = b * logs
            np.exp(weights, out=weights)
            if self.possible is not None:
                weights *= self.possible[rows]
            mass = weights @ ones
            weights *= logs
            mean = (weights @ ones) / mass
            weights *= logs
            total += float(np.log(mass).sum())
            slope += float(mean.sum())
            curvature += float(((weights @ ones) / mass - mean * mean).sum())
        return total / n - b * self.at_target, slope / n - self.at_target, curvature / n

    def best(self, bounds: tuple[float, float]) -> tuple[float, bool]:
        """Return the best temperature by Newton's method, and True if it is an end of `bounds`."""
        lowest, highest = 1.0 / bounds[1], 1.0 / bounds[0]
        low, high = lowest, highest  # the slope is negative left of the minimum, and positive right of it
        b, tried = min(max(1.0, low), high), set[float]()
        for _ in range(_NEWTON_STEPS):
            _, slope, curvature = self(b)
            tried.add(b)
            if slope == 0.0:
                break
            low, high = (b, high) if slope < 0.0 else (low, b)
            step = slope / curvature if curvature > 0.0 else math.copysign(math.inf, slope)
            if abs(step) <= 1e-14 * b or high - low <= 1e-14 * high:
                break
            moved = b - step
            if not low < moved < high:
                # An end of the bounds is the minimum where the slope says so; an end of a bracket is none.
                end = high if slope < 0.0 else low
                moved = math.sqrt(low * high) if end in tried else end
            b = moved
        at_bound = min(math.log(b / lowest), math.log(highest / b)) < 1e-3
        return 1.0 / b, at_bound


# -- calibration error -----------------------------------------------------------------------------------


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
    """Minimise the unbiased SKCE between targets and scaled predictions in NumPy.

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
    stages = Stages("temperatures", _EVALUATIONS["descent"])
    checked = predictions.check_targets(y)
    given = prepare_checked(checked, predictions, chosen, expectations=expectations)
    runner = choose_engine(engine, given)

    def objective(T: float) -> float:
        scaled = predictions if T == 1.0 else apply_temperature(predictions, T)
        problem = prepare_checked(checked, scaled, chosen, expectations=expectations, like=given)
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
    temperature, at_bound = minimise(objective, (1.0, likely), bounds, tolerance=_COARSE_TOLERANCE)
    result = _never_worse(temperature, at_bound, reported, chosen)
    stages.end()
    return result


def _likely(y: Any, predictions: Any, bounds: tuple[float, float]) -> float:
    """Return the temperature of the largest likelihood, or 1 where there is no likelihood."""
    try:
        return fit_likelihood(y, predictions, bounds).temperature
    except ValueError:
        return 1.0


def _never_worse(temperature: float, at_bound: bool, reported: Objective, kernel: Kernel | None) -> Fitted:
    before = reported(1.0)
    after = before if temperature == 1.0 else reported(temperature)
    if not after < before:
        return Fitted(1.0, before, before, kernel, False)
    return Fitted(temperature, before, after, kernel, at_bound)


# -- search ----------------------------------------------------------------------------------------------


def minimise(
    objective: Objective,
    starts: Iterable[float],
    bounds: tuple[float, float],
    *,
    step: float = _STEP,
    tolerance: float,
) -> tuple[float, bool]:
    """Return the temperature at the floor of a valley, and True if it is an end of `bounds`.

    Downhill from the best of some temperatures by steps in log T, then Brent's method between the last ones.

    Examples
    --------
    >>> temperature, at_bound = minimise(lambda T: (T - 3.0) ** 2, (1.0, 20.0), (0.01, 100.0), tolerance=1e-6)
    >>> round(temperature, 4), at_bound
    (3.0, False)
    """
    low, high = (math.log(bound) for bound in bounds)
    values: dict[float, float] = {}

    def value(u: float) -> float:
        if u not in values:
            at = objective(math.exp(u))
            # Probabilities that underflow make an infinite objective: the worst there is, and no warning.
            values[u] = at if math.isfinite(at) else 1e300
        return values[u]

    u = min({min(max(math.log(T), low), high) for T in starts}, key=lambda u: (value(u), u))
    while True:
        ends = max(u - step, low), min(u + step, high)
        best = min((u, *ends), key=value)  # the place itself where all are equal
        if best == u:
            break
        u = best
    floor: Any = optimize.minimize_scalar(value, bounds=ends, method="bounded", options={"xatol": tolerance})
    u = float(floor.x if floor.fun <= value(u) else u)
    return math.exp(u), min(u - low, high - u) < 1e-3
