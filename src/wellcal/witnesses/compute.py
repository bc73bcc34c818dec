"""`witness`: where, and in which direction, predictions are miscalibrated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from wellcal._arrays.checks import check_levels, probability, whole_number
from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.copies import own_copy
from wellcal._arrays.namespaces import Array, NDArray, from_numpy, handed_over, is_array
from wellcal._arrays.progress import Listener, as_progress, reported
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.threads import one_blas_thread
from wellcal.engines import Engine
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.signed_measures import is_objects
from wellcal.hypotests.findings.impossible import impossible_finding
from wellcal.hypotests.resampling.targets import check_resampled, target_sets, users_form
from wellcal.hypotests.setup import MOST_RESAMPLES, Setup, check_resamples, make_setup
from wellcal.kernels.base import Kernel
from wellcal.measures.by_case import Contributions, contributions
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.adapters import as_predictions
from wellcal.predictions.alignment import per_case
from wellcal.predictions.target_leakage import without_targets
from wellcal.problem.at_locations import LocationKernel
from wellcal.problem.locations import Locations
from wellcal.problem.problem import Problem, prepare_checked
from wellcal.problem.weights import check_weights
from wellcal.witnesses.candidates import Candidates, Scanned
from wellcal.witnesses.directions import LEVELS, directions_of
from wellcal.witnesses.grid import witness_locations
from wellcal.witnesses.result import Group, Rule, Witness
from wellcal.witnesses.scan import MaxTest, ScanTest, Told
from wellcal.witnesses.segments import segments_of
from wellcal.witnesses.summaries import Cases
from wellcal.witnesses.swapped import SwappedCandidates

_ROUNDING = 1e-12  # of a sum over cases, relative to the sum of what is subtracted


@handed_over
@reported
def witness(
    y: object,
    pred: object,
    locations: object = None,
    *,
    kernel: Kernel | None = None,
    segments: object = None,
    weights: object = None,
    alpha: float = 0.05,
    quantile_levels: Sequence[float] = LEVELS,
    min_cases: int = 10,
    max_groups: int = 5,
    rng: int | np.random.Generator | None = None,
    n_resamples: int = 999,
    expectations: str | Lowering = "auto",
    engine: str | Engine = "auto",
    progress: bool | Listener | None = None,
) -> Witness:
    r"""Find where, and in which direction, predictions are miscalibrated.

    The witness function

    .. math:: w(p, t) = \frac1n \sum_i k_P(P_i, p) \big(k_Y(y_i, t) - \mathrm{E}\, k_Y(Z_i, t)\big),
              \qquad Z_i \sim P_i,

    is positive where targets like t are seen more often than predictions like p promise. The result also says
    what single cases contribute to the calibration error, which groups of cases are miscalibrated, and how.

    Parameters
    ----------
    y
        Observed targets, one for each prediction.
    pred
        Predictions: a batch such as ``wc.Normal(mu, sigma)``, or anything that
        :func:`wellcal.as_predictions` understands.
    locations
        Where to look at the witness: J pairs ``(predictions, targets)``; a number of locations to be drawn
        from the predictions; or None for a grid of some of the predictions, each with several of its
        quantiles (classes: each class at several of its predicted probabilities).
    kernel
        Kernel on pairs of prediction and target; None chooses one for the family, with scales from the
        predictions.
    segments
        Groups of cases to be looked at: one label, number or date for each case (a list, an array, a column
        of a data frame), or several such lists by name (a dictionary, a data frame). Numbers and dates of
        which there are more than ten are cut into four groups. Labels must not be made from the targets.
    weights
        How much each case counts, as in :func:`wellcal.skce`.
    alpha
        Probability that the band is left anywhere, or that any group is called miscalibrated, where the
        model is calibrated.
    quantile_levels
        Levels of the predicted quantiles that targets are compared with.
    min_cases
        Cases that a group has at least.
    max_groups
        Groups in the result at most, segments not counted.
    rng, n_resamples
        Seed or generator, None for the default seed, 0; and number of sets of targets that are drawn from the
        predictions.
    expectations, engine
        As in :func:`wellcal.skce`.
    progress
        Whether to show how far a long run is; None does where standard error is a terminal. A function is
        called as ``progress(what, done, total)``, and ends the run by raising an error.

    Returns
    -------
    Witness
        Values with a band, scores and contributions of cases, groups and segments with statements in
        plain words.

    Notes
    -----
    Groups are "all cases", those above, below and between values of a summary of the prediction (mean and
    spread; for classes the probability of the class), boxes of two summaries, and the segments. Values are
    at up to 31 shares of the cases for one summary, and up to 13 for each of two. A group of nearly all cases
    is none: what errs in more than 95% of them is told of all. A direction compares how
    often something happens in a group with how often it was predicted: that a target exceeds a predicted
    quantile, that a class occurs; for vectors, the mean of a coordinate and the distance from the predicted
    mean; for objects, the likeness to the prediction by the kernel. p-values come from targets that are
    drawn from the predictions: the largest standardised deviation over all groups and directions, each less
    what is usual among groups of its kind and size, is compared with its values in these sets, so that the
    probability of any false statement is at most `alpha`, exactly, at every number of cases. The band for
    the witness is made in the same way over the locations.

    Of groups that say the same, the one is told under which the targets are most likely, less a price for
    each number in its description, and after it only what other cases add. Its ends are moved to where the
    targets are most likely, between any two cases; its p-value is then that of a significant group within
    it, for if that one errs, it does.

    Predictions that are draws (``Samples(kind="draws")``) exchange their target with one of their draws, and
    mean, spread and quantiles are those of what are then the draws: groups of the observed targets are made
    of the draws alone. What is expected in a group is the mean over all that are in it when they are the
    target: draws that happen to lie close together leave out more targets than others, of a calibrated model
    too.

    Cost: that of :func:`wellcal.skce` for the contributions, O(R n) for each location and direction, O(R) for
    each group. A million normals take some two minutes and 2.5 GB.

    References
    ----------
    Widmann, Lindsten, Zachariah (2021); Westfall, Young (1993), "Resampling-based multiple testing".

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.uniform(0.0, 8.0, 400)
    >>> y = rng.normal(mu + np.where(mu > 4.0, 1.0, 0.0), 1.0)
    >>> found = witness(y, wc.Normal(mu, np.ones(400)), rng=1, n_resamples=199)
    >>> bool(abs(found.contributions.sum() - float(found.estimate)) < 1e-12)
    True
    >>> print(found.groups[0].statement)
    targets exceed the predicted ...
    """
    asked = Asked.of(alpha, quantile_levels, min_cases, max_groups, n_resamples)
    alpha, count = asked.alpha, asked.n_resamples
    setup = make_setup(
        y,
        pred,
        kernel,
        rng=rng,
        n_resamples=count,
        expectations=expectations,
        engine=engine,
        pool=True,
        progress=as_progress(progress),
    )
    if setup.n_samples < 2:
        raise ValueError(f"a witness needs at least 2 cases, found {setup.n_samples}; collect more")
    check_resampled(setup.predictions)
    n = setup.n_samples
    weights = per_case(weights, "weights", y, pred)
    w: NDArray = np.ones(n) if weights is None else check_weights(weights, n, np.ones(n), at_least=2)
    in_order = without_targets(
        lambda column, name: per_case(column, name, y, pred), users_form(setup.predictions, setup.targets)
    )
    given = segments_of(segments, n, in_order)
    by_case = contributions_in(setup, None if weights is None else w)
    with one_blas_thread():  # small products, with much else between them: its threads would only wait
        where = witness_locations(locations, setup.predictions, setup.rng)
        prepared = setup.at(where).weighted(w)
        candidates = _candidates(setup, asked, given, w)
        at_locations, in_groups = _resample(setup, prepared, candidates)
    band = Band.of(at_locations, _summed_sizes(prepared.expected), float(w.sum()), alpha)
    test = ScanTest(candidates, in_groups)
    groups, of_segments = _groups(setup, candidates, test, by_case.parts, asked.max_groups, alpha)
    provenance = {**by_case.estimate.provenance, "candidates": len(candidates), "locations": len(where)}
    large = {group.where for group in of_segments}
    too_small = [cases.where for cases in given if cases.where not in large]
    if too_small:
        provenance["segments too small"] = too_small
    if (lost := impossible_finding(setup.targets, setup.predictions)) is not None:
        provenance["impossible"] = lost.short
    like = as_predictions(pred).like

    def returned(array: NDArray) -> Array:
        """In the library of the input, and on its device."""
        return from_numpy(array, like) if is_array(like) and not is_objects(like) else array

    return Witness(
        estimate=by_case.estimate,
        scores=returned(by_case.scores),
        contributions=returned(by_case.parts),
        locations=shown_locations(locations, where),
        values=returned(band.values),
        low=returned(-band.half),
        high=returned(band.half),
        pvalues=returned(band.pvalues),
        groups=groups,
        segments=of_segments,
        pvalue=float(test.pvalues.min(initial=1.0)),
        alpha=alpha,
        n_samples=n,
        n_resamples=count,
        kernel=setup.kernel,
        provenance=provenance,
    )


@dataclass(frozen=True)
class Asked:
    """What a user asked of a witness, checked."""

    alpha: float
    levels: tuple[float, ...]
    min_cases: int
    max_groups: int
    n_resamples: int

    @classmethod
    def of(cls, alpha: Any, levels: Any, min_cases: Any, max_groups: Any, n_resamples: Any) -> Asked:
        """Check what was asked."""
        alpha = probability(alpha, "alpha")
        return cls(
            alpha,
            tuple(check_levels(levels, "quantile_levels", open_interval=True).tolist()),
            whole_number(min_cases, "min_cases", least=1),
            whole_number(max_groups, "max_groups", least=1),
            enough_resamples(n_resamples, alpha),
        )


class Band(NamedTuple):
    """The witness at locations, half of the width of its band, and p-values there, each ``(J,)``."""

    values: NDArray
    half: NDArray
    pvalues: NDArray

    @classmethod
    def of(cls, sums: NDArray, expected: NDArray, weight: float, alpha: float) -> Band:
        """From sums at locations for sets of targets, the observed first, and those of what is subtracted."""
        # An error of expectations is the same in all sets of targets; what is left is rounding.
        test = MaxTest.of(sums, _ROUNDING * expected)
        half = np.where(test.scale > 0, test.half_width(alpha), np.abs(sums[0]))
        return cls(sums[0] / weight, half / weight, test.pvalues)


def _summed_sizes(expected: NDArray) -> NDArray:
    """Sums of absolute values over cases, ``(J,)``."""
    count = expected.shape[1]
    parts = [np.sum(np.abs(expected[cases]), axis=0) for cases in in_chunks(len(expected), count)]
    return np.sum(parts, axis=0)


def enough_resamples(n_resamples: object, alpha: float) -> int:
    """Number of resamples, with which something can be shown at the error rate `alpha`."""
    count = check_resamples(n_resamples)
    if 1.0 / (count + 1.0) > alpha:
        enough = int(np.ceil(min(20.0 / alpha, MOST_RESAMPLES))) - 1
        raise ValueError(
            f"with n_resamples={count} no p-value is below {1.0 / (count + 1.0):.2g}, and nothing can be "
            f"shown at alpha={alpha:g}; take n_resamples={enough}"
        )
    return count


def shown_locations(given: object, locations: Locations) -> tuple[Predictions, Any]:
    """Locations as the user gave them, or would have."""
    if isinstance(given, tuple):
        predictions, targets = cast("tuple[Any, Any]", given)
        return as_predictions(predictions), own_copy(targets)
    return locations.predictions, users_form(locations.predictions, np.asarray(locations.targets))


def contributions_in(setup: Setup, weights: NDArray | None) -> Contributions:
    """Estimate and contributions, for the predictions as they were given."""
    problem: Problem = setup.problem
    if setup.pooled is not None:
        problem = prepare_checked(setup.targets, setup.given, setup.kernel, expectations=setup.expectations)
    return contributions(problem, setup.engine, weights)


def _candidates(
    setup: Setup, asked: Asked, segments: Sequence[Cases], weights: NDArray
) -> Candidates | SwappedCandidates:
    """What is looked at: of draws, groups that follow from those that are the draws in a set of targets."""
    directions = directions_of(setup, asked.levels)
    if setup.pooled is None:
        return Candidates(directions, segments, weights, asked.min_cases)
    pool = np.asarray(cast("Samples", setup.predictions).values)
    return SwappedCandidates(directions, pool, segments, weights, asked.min_cases)


def _resample(
    setup: Setup, prepared: LocationKernel, candidates: Candidates | SwappedCandidates
) -> tuple[NDArray, NDArray]:
    """Sums at locations and in cells of groups, ``(R + 1, J)`` and ``(R + 1, C)``, the observed set first."""
    if isinstance(candidates, Candidates):
        pairs = [(prepared.sums(targets), candidates.sums(targets)) for targets in target_sets(setup)]
    else:
        pairs = [
            (prepared.sums(targets), candidates.sums(targets, members))
            for targets, members in swapped_sets(setup)
        ]
    return np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])


def swapped_sets(setup: Setup) -> Iterator[tuple[NDArray, NDArray]]:
    """The sets of `target_sets` for draws, and which members of the pooled sets these are, ``(r, n)``."""
    pool = np.asarray(cast("Samples", setup.predictions).values)
    n, size = pool.shape[:2]
    places = Samples(np.broadcast_to(np.arange(float(size)), (n, size)), kind="atoms")
    for found in target_sets(replace(setup, predictions=places, targets=np.full(n, size - 1.0))):
        members = found.astype(np.intp)
        yield pool[np.arange(n), members], members


def _groups(
    setup: Setup,
    candidates: Candidates | SwappedCandidates,
    test: ScanTest,
    parts: NDArray,
    most: int,
    alpha: float,
) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
    """The most striking groups, and all segments in their most striking direction."""
    w, observed = candidates.weights, setup.targets[None]

    def describe(told: Told) -> Group:
        direction = told.candidate.direction
        inside = np.flatnonzero(told.candidate.cases.mask)
        values = np.asarray(direction.of(observed)[0][inside], dtype=np.float64)
        found = float(np.average(values, weights=w[inside]))
        means = Means(found, candidates.promised(told.candidate), float(parts[inside].sum()))
        group = group_of(told, means, inside, setup.n_resamples)
        return group.described_by(group.rule, values - direction.expected[inside])

    groups = test.striking(most, alpha)
    return tuple(map(describe, groups)), tuple(map(describe, told_segments(candidates, test)))


def told_segments(candidates: Scanned, test: ScanTest) -> list[Told]:
    """All segments, each in its most striking direction."""
    best: dict[str, int] = {}
    for k, where in candidates.segments():
        known = best.setdefault(where, k)
        if abs(test.z[k]) > abs(test.z[known]):
            best[where] = k
    return [test.told(k) for k in best.values()]


class Means(NamedTuple):
    """What a direction measures over a group, what was expected, and its part of the estimate."""

    observed: float
    expected: float
    contribution: float


def group_of(told: Told, means: Means, cases: NDArray, n_resamples: int, n_all: int | None = None) -> Group:
    """A group that is told; of `n_all` cases, where those at hand are some of them."""
    group = told.candidate.cases
    direction = told.candidate.direction
    what, numbers = direction.describe(means.observed, means.expected)
    size = len(cases) if n_all is None else n_all
    known = group.sides is not None and direction.name
    rule = Rule(group.sides or (), direction.name, direction.levels, direction.label) if known else None
    found = Group(
        statement=f"{what} {group.where} ({numbers}; {how_many(size)})",
        where=group.where,
        direction=what,
        observed=means.observed,
        expected=means.expected,
        statistic=told.z,
        pvalue=told.pvalue,
        contribution=means.contribution,
        cases=cases,
        kind=group.kind,
        n_resamples=n_resamples,
        n_all=n_all,
    )
    return found.described_by(rule)
