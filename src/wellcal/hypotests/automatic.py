"""The method that `method="auto"` stands for: the strongest test that fits a budget, exact where it can be.

The budget counts operations. It looks at the predictions and the number of cases only, never at the
targets, which would spoil exactness, nor at the clock, which would make results irreproducible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.warnings import advise
from wellcal.expectations.rules.elements import CALL
from wellcal.hypotests.method import Method
from wellcal.hypotests.methods import Block, Multiplier, Omnibus, Pearson
from wellcal.hypotests.resampling.components import LOCATIONS
from wellcal.hypotests.resampling.low_rank import ANCHORS, anchors_of
from wellcal.hypotests.resampling.targets import draw_targets, unsampled_family, why_not_resampled
from wellcal.hypotests.setup import DEFAULT_RESAMPLES, Setup
from wellcal.kernels.targets import calls_for_each_pair
from wellcal.measures.round_numbers import large_numbers
from wellcal.measures.target_sets.resampled import ResampledSKCE, has_terms
from wellcal.problem.locations import centre_of

PAIRS_BUDGET = 1e8
"""Evaluations for exact tests over all pairs, beyond which a kernel of low rank stands in: some tenths of a
second.

What a pair takes is asked from whoever evaluates it (:class:`~wellcal.expectations.bilinear.Cost`): a
covariance matrix or a Laplace distribution takes ten times what a normal one does.
"""

JOINT_BUDGET = 5e9
"""The same for kernels that are no sums of products, for which nothing can stand in: some ten seconds."""

LINEAR_BUDGET = 3e10
"""Evaluations for exact tests that are linear in the number of cases: about a minute of one core."""

DRAWN_TARGETS = 50_000 * DEFAULT_RESAMPLES
"""Targets that are drawn unasked: a test of more cases than a report tests takes no longer."""

EVALUATIONS_PER_SECOND = 5e8
"""What a core does, roughly: for a word on how long something takes, and for nothing else."""

TRIANGLE_BUDGET = 1e11
"""Evaluations for one pass over all pairs."""

FEWEST_RESAMPLES = 199


@dataclass(frozen=True)
class Choice:
    """A method, how many resamples it gets, and why."""

    method: Method
    n_resamples: int
    reason: str
    alternatives: str


def choose(setup: Setup) -> Choice:
    """The strongest test that fits the budget.

    Where somebody insists on a number of resamples it is drawn, if some fit the budget at all, and a warning
    says how long that takes where it exceeds the budget; otherwise there are fewer.
    """
    wanted, insist = setup.n_resamples, setup.insisted
    obstacle = why_not_resampled(setup.predictions)
    if setup.groups is not None:
        return _clustered(setup, obstacle)
    if obstacle is None:
        exact = _exact(setup, wanted, insist)
        if exact is not None:
            return exact
        obstacle = f"{setup.n_samples:,} cases are too many for exact tests"
        if insist:
            advise(
                f'n_resamples={wanted} has no effect: {obstacle}, and method="auto" takes one without '
                'resamples; method="omnibus" draws them, and takes long'
            )
    triangle = 0.5 * setup.n_samples**2 * _cost(setup)
    if triangle <= TRIANGLE_BUDGET:
        return Choice(
            Pearson(),
            wanted,
            f"pearson: {obstacle}",
            "block is cheaper and weaker; error rates of bootstrap and spectrum are further from alpha",
        )
    return Choice(
        Block(),
        wanted,
        f"block: {obstacle}, and {_too_many(triangle)}",
        "pearson is stronger and would take all pairs",
    )


def _too_many(triangle: float) -> str:
    return " evaluations over all pairs exceed ".join(large_numbers(triangle, TRIANGLE_BUDGET))


def _clustered(setup: Setup, obstacle: str | None) -> Choice:
    """Cases that depend on each other: signs, one for each cluster; one pass over the pairs."""
    if obstacle is not None:
        return Choice(
            Multiplier(),
            setup.n_resamples,
            f"multiplier: cases are clustered, and its signs are one for each cluster; {obstacle}",
            "none of the others honours groups",
        )
    triangle = 0.5 * setup.n_samples**2 * _cost(setup)
    affordable = triangle <= TRIANGLE_BUDGET
    without = f"; without the SKCE: {_too_many(triangle)}"
    return Choice(
        Omnibus(pairs=affordable),
        setup.n_resamples,
        "min-p over SKCE, locations and sums for kinds of error, asymptotic: cases are clustered, and signs, "
        f"one for each cluster, take the place of drawn targets{'' if affordable else without}",
        "multiplier takes the SKCE alone; none of the others honours groups",
    )


def _exact(setup: Setup, wanted: int, insist: bool) -> Choice | None:
    by_pairs = pairs_cost(setup)
    if not has_terms(setup.kernel):
        affordable = _affordable(by_pairs, JOINT_BUDGET, wanted, insist)
        return None if affordable is None else _all_pairs(by_pairs, affordable, JOINT_BUDGET)
    if by_pairs * wanted <= PAIRS_BUDGET:
        return _all_pairs(by_pairs, wanted, PAIRS_BUDGET)
    affordable = _affordable(linear_cost(setup), LINEAR_BUDGET, wanted, insist, setup.n_samples)
    if affordable is None:
        return None
    return Choice(
        Omnibus(pairs=False),
        affordable,
        "exact min-p over SKCE, locations and sums for kinds of error, linear in the number of cases: the "
        f"kernel of the SKCE is of low rank, since all pairs of {wanted:,} resamples would take at least "
        f"{' evaluations, more than '.join(large_numbers(by_pairs * wanted, PAIRS_BUDGET))}",
        "method='omnibus' takes all pairs; pearson and block are asymptotic",
    )


def _all_pairs(cost: float, n_resamples: int, budget: float) -> Choice:
    return Choice(
        Omnibus(),
        n_resamples,
        f"exact min-p over SKCE, locations and sums for kinds of error: {n_resamples:,} resamples take "
        + (" evaluations, within " if cost * n_resamples <= budget else " evaluations, more than ").join(
            large_numbers(cost * n_resamples, budget)
        ),
        "regularised is cheaper; pearson and block are asymptotic",
    )


def _affordable(cost: float, budget: float, wanted: int, insist: bool, n: int = 1) -> int | None:
    """Resamples of n cases that fit the budget, as many as wanted at most; None where too few do.

    All that are wanted, with a word on how long it takes, where somebody insists on them.
    """
    if cost * min(wanted, FEWEST_RESAMPLES) > budget:
        return None
    fitting = int(min(wanted, max(budget // cost, 1), max(DRAWN_TARGETS // n, FEWEST_RESAMPLES)))
    if not insist:
        return fitting
    if cost * wanted <= budget:
        return wanted
    minutes = cost * wanted / EVALUATIONS_PER_SECOND / 60.0
    advise(
        f"n_resamples={wanted} takes about {minutes:.2g} minutes of one core (progress=True shows how far it "
        f"is); without n_resamples {fitting:,} are drawn"
    )
    return wanted


def pairs_cost(setup: Setup) -> float:
    """Evaluations of the SKCE for one set of targets; a lower bound where that is too many already."""
    least = 0.5 * setup.n_samples**2
    if not has_terms(setup.kernel):
        return least * _cost(setup)
    if least * setup.n_resamples > PAIRS_BUDGET:
        return least
    return ResampledSKCE(replace(setup, targets=_typical_targets(setup)), [setup.kernel]).cost


def linear_resamples(setup: Setup, n: int) -> int | None:
    """Resamples that n cases like those of a setup get unasked, in a test that is linear in their number.

    None where too few fit the budget.
    """
    cost = linear_cost(setup) / setup.n_samples * n
    return _affordable(cost, LINEAR_BUDGET, DEFAULT_RESAMPLES, False, n)


def linear_cost(setup: Setup) -> float:
    """Evaluations of all that is linear in the number of cases, for one set of targets.

    Kernels at locations and at anchors, and products of features at anchors: sixteen in the time of one
    evaluation. Calls of a user's function for one pair of targets take far longer.
    """
    each = CALL if calls_for_each_pair(setup.kernel) else _coordinates(setup)
    anchors = anchors_of(setup.predictions)
    return setup.n_samples * ((LOCATIONS + anchors) * each + anchors * (anchors + ANCHORS) / 16.0)


def _cost(setup: Setup) -> float:
    """Evaluations for one pair."""
    return setup.problem_of(_typical_targets(setup)).cost.evaluations


def _typical_targets(setup: Setup) -> NDArray:
    """Targets to measure cost with: it depends on how far they lie off, and observed ones must not count."""
    predictions = setup.predictions
    if unsampled_family(predictions) is None:
        return draw_targets(predictions, np.random.default_rng(0), 1, setup.targets)[0]
    centre = centre_of(predictions)
    return setup.targets if centre is None else centre.astype(setup.targets.dtype, copy=False)


def _coordinates(setup: Setup) -> int:
    shape = setup.predictions.event_shape
    return int(shape[0]) if shape else 1
