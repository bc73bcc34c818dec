"""Weights of cases: what they must be, and a problem whose pairs count w_i w_j times.

Weights say how much a case counts for the population of interest: importance weights (a density ratio
between that population and the one that was observed), exposures, inverse probabilities of selection.
They are known before the target is, or at least do not depend on it given the prediction; otherwise a
calibrated model would have a weighted calibration error other than zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from wellcal._arrays.checks import check_rows, check_same_length, plain_array, real_array
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    device_of,
    is_array,
    is_traced,
    namespace,
    stop_gradient,
    to_numpy,
    widen,
)
from wellcal._arrays.rows import first_array
from wellcal.expectations.bilinear import WeightedForm, WeightedRows
from wellcal.problem.problem import Problem, Term, TermRows


def check_weights(weights: object, n: int, like: Array, *, at_least: int = 1, relative: bool = True) -> Array:
    """Weights ``(n,)`` relative to the largest, or an error naming the first bad row.

    Parameters
    ----------
    weights
        One for each case: finite and not negative.
    n
        Number of cases.
    like
        An array whose library and device the result shares; anything else gives NumPy.
    at_least
        How many of them must be positive.
    relative
        Whether they are divided by the largest, or left as they are.

    Examples
    --------
    >>> import numpy as np
    >>> check_weights([1, 2, 0], 3, np.zeros(3))
    array([0.5, 1. , 0. ])
    """
    model = like if is_array(like) and str(like.dtype) != "object" else None
    if is_array(weights) and model is not None and namespace(weights) is not namespace(model):
        if is_traced(weights):
            namespace(weights, model)  # an error: values that are not known yet cannot be moved
        weights = to_numpy(plain_array(weights, "weights"))
    array = widen(real_array(weights, "weights", like=model))
    check_same_length(int(array.shape[0]), "weights", n, "predictions")
    check_rows(
        "weights", array, array >= 0, "must not be negative", "leave a case out by giving it weight zero"
    )
    if not is_traced(array):
        positive = int(namespace(array).count_nonzero(array))
        if positive < at_least:
            found = "all are zero" if positive == 0 else f"only {positive} is"
            raise ValueError(f"weights must be positive for at least {at_least} of the cases, and {found}")
    if not relative:
        return array
    # Only their ratios matter; products of weights near 1 do not overflow.
    return array / stop_gradient(namespace(array).max(array))


def weighted_problem(problem: Problem, weights: Array) -> Problem:
    """The problem with ``w_i w_j h_ij`` in the place of h_ij, for every engine."""
    like = first_array(problem.rows)
    if namespace(like) is not namespace(weights) and not is_traced(weights):
        weights = asarray(weights, xp=namespace(like), device=device_of(like))
    terms = tuple(Term(t.factor, t.on_predictions, WeightedForm(t.on_targets)) for t in problem.terms)
    rows = tuple(TermRows(WeightedRows(weights, r.on_targets), r.on_predictions) for r in problem.rows)
    correction, redrawn = problem.self_correction, problem.redrawn

    def weighted(some: NDArray) -> Problem | None:
        found = None if redrawn is None else redrawn(some)
        return None if found is None else weighted_problem(found, weights[some])

    return replace(
        problem,
        rows=rows,
        terms=terms,
        self_correction=None if correction is None else lambda: weights**2 * correction(),
        redrawn=weighted,
    )


@dataclass(frozen=True)
class WeightSums:
    """Sums of weights that estimators divide by.

    Attributes
    ----------
    total
        ``sum_i w_i``.
    pairs
        ``sum_{i < j} w_i w_j``.
    others
        ``sum_{j != i} w_j`` for each case, ``(n,)``.
    """

    total: Array
    pairs: Array
    others: Array

    @classmethod
    def of(cls, weights: Array) -> WeightSums:
        """The sums, each from positive terms only: one dominating weight cancels nothing."""
        xp = namespace(weights)
        up = xp.cumulative_sum(weights)
        down = xp.flip(xp.cumulative_sum(xp.flip(weights)))
        zero = xp.zeros_like(weights[:1])
        before, behind = xp.concat([zero, up[:-1]]), xp.concat([down[1:], zero])
        return cls(up[-1], xp.sum(weights * behind), before + behind)


class MeanOfWeighted(NamedTuple):
    """What weights make of the standard error of a mean of scores ``sum w_i s_i / sum w_i``.

    Attributes
    ----------
    cases
        Cases of equal weight whose mean has the same variance: Kish's ``(sum w)^2 / sum w^2``.
    factor
        ``factor * sum (w_i (s_i - mean))^2 / (sum w)^2`` is the squared standard error.
    degrees
        Degrees of freedom of Student's distribution that intervals take.

    Notes
    -----
    The sum of squares follows the variances of single scores, whatever they are. But the mean lies near the
    scores of heavy cases, so that it is too small, and few squares make up most of it. Factor and degrees
    are those that make it unbiased, and match its variance (Satterthwaite), for normal scores of one
    variance: with equal weights ``n / (n - 1)`` and ``n - 1``.
    """

    cases: Any
    factor: Any
    degrees: Any

    @classmethod
    def from_sums(cls, *sums: Any, trace: Any = None) -> MeanOfWeighted:
        """From the sums of the first five powers of the weights, numbers or traced arrays.

        The trace is there where it is known better than by a difference of sums, of which one dominating
        weight leaves nothing.

        Examples
        --------
        >>> MeanOfWeighted.from_sums(4, 4, 4, 4, 4)
        MeanOfWeighted(cases=4.0, factor=1.3333333333333333, degrees=3.0)
        """
        if not is_traced(*sums) and sums[0] == sums[1] and sums[0] > 1.0:  # all are 0 or 1
            n = float(sums[0])
            return cls(n, n / (n - 1.0), n - 1.0)
        a, b, c, d = (sums[k] / sums[0] ** (k + 1) for k in (1, 2, 3, 4))
        # sum h_i^2 e_i^2 = s' G s for shares h, residuals e and scores s: the traces of G and of its square.
        trace = a - 2.0 * b + a**2 if trace is None else trace
        square = c - 4.0 * d + 4.0 * a * c + 2.0 * b**2 - 4.0 * a**2 * b + a**4
        if is_traced(a):
            missing = namespace(a).where(1.0 / a < FEWEST_CASES, math.nan, 1.0)
            return cls(1.0 / a, missing * a / trace, trace**2 / square)
        if trace <= 0.0 or square <= 0.0:  # one case, up to rounding
            return cls(max(1.0 / a, 1.0), math.inf, 1.0)
        return cls(max(1.0 / a, 1.0), a / trace, max(trace**2 / square, 1.0))

    @classmethod
    def of(cls, weights: Array) -> MeanOfWeighted:
        """From the weights ``(n,)``.

        Examples
        --------
        >>> import numpy as np
        >>> MeanOfWeighted.of(np.array([3.0, 3.0, 0.0])).factor
        2.0
        """
        xp = namespace(weights)
        share = stop_gradient(weights / xp.max(weights))
        square = share * share
        others, squares = WeightSums.of(share).others, WeightSums.of(square).others
        powers = (share, square, square * share, square**2, square**2 * share)
        found = [*map(xp.sum, powers), xp.sum(square * (others**2 + squares)) / xp.sum(share) ** 4]
        *sums, trace = found if is_traced(share) else to_numpy(xp.stack(found)).tolist()
        return cls.from_sums(*sums, trace=trace)

    @property
    def has_error(self) -> bool:
        """Whether there is a standard error: a mean that is hardly more than one score has none."""
        return bool(self.cases >= FEWEST_CASES * (1.0 - 1e-9))

    @property
    def worth(self) -> dict[str, Any]:
        """What provenances say of weights, as a number and in words."""
        return {"effective_cases": self.cases, "weights": worth_in_words(self.cases)}


FEWEST_CASES = 2.0
"""Cases of equal weight that weighted ones must be worth for a standard error."""


def worth_in_words(size: float) -> str:
    """How many cases of equal weight weighted ones are worth.

    Examples
    --------
    >>> worth_in_words(19_990.186), worth_in_words(4.51234)
    ('worth 19,990 cases of equal weight', 'worth 4.512 cases of equal weight')
    >>> worth_in_words(1.00001)
    'worth 1 case of equal weight'
    """
    told = f"{size:,.0f}" if size >= 1000.0 else f"{size:.4g}"
    return f"worth {told} {'case' if told == '1' else 'cases'} of equal weight"
