"""The default test of cases in partitions: the exact one that is linear in the number of cases.

Targets are drawn where the predictions are. What is drawn for a case depends on the seed, the number of the
set and the place of the case among all, so that neither the number of partitions nor that of workers changes
a p-value. What travels are sums over cases, one for each set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from wellcal._arrays.checks import flag
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.progress import reported
from wellcal._arrays.seeds import as_generator, known_seed
from wellcal.dask.beside import shuffled_estimate, told_of_all
from wellcal.dask.building import as_cases
from wellcal.dask.clustering import clusters_of, of_sample, signed_outcome
from wellcal.dask.functions import IN_MEMORY, refuse
from wellcal.dask.pairs import block_estimate
from wellcal.dask.partitioned import Cases
from wellcal.dask.parts import PartsOfAll, parts_of
from wellcal.dask.sampling import Begun, number_at_hand
from wellcal.dask.segmenting import labels_of_clusters
from wellcal.dask.sums import MOST_KEPT, Looked, SumsOfAll, drawn_locations, locations_among
from wellcal.dask.tolerating import tolerance_test
from wellcal.hypotests import _calibration_test as core
from wellcal.hypotests.automatic import linear_resamples
from wellcal.hypotests.e_values import IN_CLUSTERS
from wellcal.hypotests.findings.families import findings_of
from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.methods import Block, Omnibus, Regularised
from wellcal.hypotests.parts.part import Evaluated
from wellcal.hypotests.resampling.components import (
    missing_tail_sets,
    regularised_statistic,
    smallest_outcome,
)
from wellcal.hypotests.resampling.low_rank import ANCHORS, anchors_of, root, weights_at
from wellcal.hypotests.resampling.more_resamples import drawn_on
from wellcal.hypotests.resampling.targets import check_resampled
from wellcal.hypotests.result import TestResult
from wellcal.hypotests.setup import DEFAULT_RESAMPLES, check_resamples
from wellcal.hypotests.tolerance import WITHIN
from wellcal.measures._skce import resolve_block_size
from wellcal.measures.target_sets.resampled import check_terms
from wellcal.predictions import Predictions
from wellcal.problem import target_resampling
from wellcal.problem.at_locations import location_kernel
from wellcal.problem.target_resampling import TargetStream, sets_at_a_time, why_not_resampled

_OF_SAMPLE = "findings and pictures"
_SUPPORTED = 'method="auto", "regularised", "block", or wellcal.hypotests.Omnibus(pairs=False)'


@reported
def calibration_test(
    y: object,
    pred: object,
    *,
    kernel: Any = None,
    method: Any = "auto",
    rng: Any = None,
    n_resamples: int | None = None,
    block_size: Any = None,
    locations: Any = None,
    statistic: Any = None,
    groups: object = None,
    tolerance: float | None = None,
    expectations: Any = "auto",
    engine: Any = "auto",
    keep_null: bool = False,
    progress: Any = None,
) -> TestResult:
    """As :func:`wellcal.calibration_test`, for methods that are linear in the number of cases.

    Cases of one block of random numbers, 16,384 of them, are taken into memory, where all methods are; and
    clustered cases, as many as findings are made of.
    """
    one, several = core.split_kernels(kernel)
    options = {"block_size": block_size, "locations": locations, "statistic": statistic, "kernels": several}
    given = {name: value for name, value in options.items() if value is not None}
    if tolerance is not None:
        core.check_no_options(method, given)
        return tolerance_test(y, pred, WITHIN, tolerance, one, groups, expectations, engine)
    asked = core.resolve(method, given)
    core.check_groups(asked, groups)
    cases = as_cases(y, pred, labels=labels_of_clusters(groups))
    at_hand = cases.n if cases.n <= target_resampling.BLOCK else number_at_hand(cases)
    if cases.n <= target_resampling.BLOCK or (groups is not None and at_hand == cases.n):
        block = cases.gathered()
        return core.calibration_test(
            block.given,
            block.predictions,
            kernel=kernel,
            method=method,
            rng=rng,
            n_resamples=n_resamples,
            block_size=block_size,
            locations=locations,
            statistic=statistic,
            groups=block.labels[0] if block.labels else None,
            expectations=expectations,
            engine=engine,
            keep_null=keep_null,
            progress=progress,
        )
    refuse("calibration_test", {"engine": None if engine == "auto" else engine}, IN_MEMORY)
    begun = Begun.of(cases, one, expectations, at_hand)
    clusters = None if groups is None else clusters_of(cases)
    if clusters is not None:
        begun = of_sample(begun)
    chosen, reason = _supported(asked, begun, locations, clusters is not None)
    if isinstance(chosen, Block):
        outcome = _by_blocks(begun, chosen)
    elif clusters is not None:
        assert isinstance(chosen, Omnibus)
        count = check_resamples(DEFAULT_RESAMPLES if n_resamples is None else n_resamples)
        outcome = signed_outcome(begun, chosen, clusters, as_generator(rng), count)
    else:
        # As in memory, as long as cases in memory have an exact test.
        unasked = None if method != "auto" else linear_resamples(begun.setup, cases.n)
        count = check_resamples((unasked or DEFAULT_RESAMPLES) if n_resamples is None else n_resamples)
        outcome = _Run(begun, chosen, as_generator(rng), count, n_resamples is not None).outcome()
    setup = replace(
        begun.setup,
        n_resamples=outcome.provenance.get("n_resamples", 1),
        seed=known_seed(rng),
        linear=chosen.linear,
    )
    keep = flag(keep_null, "keep_null")
    partitions: dict[str, Any] = {"partitions": len(cases.blocks)}
    if begun.whole:
        found = replace(outcome, provenance={**outcome.provenance, **partitions})
        return core.result_of(chosen, setup, found, reason, keep)
    partitions["sample"] = f"{begun.sampled}: {_OF_SAMPLE}"
    found = replace(outcome, provenance={**outcome.provenance, **partitions})
    mean, evidence = told_of_all(begun.given, setup)
    if clusters is not None:
        evidence = IN_CLUSTERS
    estimate = shuffled_estimate(begun.cases, setup) if outcome.estimate is None else outcome.estimate
    told = setup.knowing(estimate, mean)
    return core.result_of(chosen, told, found, reason, keep, n_samples=cases.n, known_evidence=evidence)


def _supported(
    method: Method | None, begun: Begun, locations: Any, clustered: bool
) -> tuple[Omnibus | Regularised | Block, dict[str, Any]]:
    """The method, and why it is taken; or an error that says which there are."""
    n, obstacle = begun.cases.n, why_not_resampled(begun.setup.predictions)
    if obstacle is not None and clustered:
        raise TypeError(f"groups are honoured with sums over all pairs alone: {obstacle}; {IN_MEMORY}")
    if method is None and obstacle is not None and locations is None:
        return Block(), {"chosen": f"block: {obstacle}"}
    if method is None:
        found = Omnibus(pairs=False)
        reason = "omnibus: exact, and linear in the number of cases, which are too many for all pairs"
        if clustered:
            reason = "omnibus without the SKCE, asymptotic: signs of clusters take the place of drawn targets"
        return found if locations is None else replace(found, locations=locations), {"chosen": reason}
    if isinstance(method, Regularised) or (isinstance(method, Omnibus) and not method.pairs):
        return method, {}
    if isinstance(method, Block) and method == Block(method.block_size, quantiles=method.quantiles):
        return method, {}
    raise ValueError(
        f"method={method!r} is not supported for {n:,} cases in partitions; take {_SUPPORTED}, or {IN_MEMORY}"
    )


def _by_blocks(begun: Begun, method: Block) -> Outcome:
    """The test with means of blocks, which draws no targets."""
    n, setup = begun.cases.n, begun.setup
    size = resolve_block_size(method.block_size, n)
    if n // size < 2:
        raise ValueError(f"one block of {size:,} of {n:,} cases has no standard deviation; take smaller ones")
    # The problem of the sample has the kernel that h is made of: that of draws is stretched.
    found = block_estimate(begun.cases, setup.problem.kernel, size, begun.expectations)
    error = float(found.standard_error or 0.0)
    return method.in_units(setup.reported(found), error * math.sqrt(n // size), n // size, "blocks")


@dataclass(frozen=True)
class _Run:
    """One test that draws targets."""

    begun: Begun
    method: Omnibus | Regularised
    rng: np.random.Generator
    n_resamples: int
    insisted: bool

    @cached_property
    def cases(self) -> Cases:
        """Cases, cut where blocks of random numbers begin."""
        return self.begun.cases.aligned(target_resampling.BLOCK)

    def outcome(self) -> Outcome:
        """What was found."""
        setup = self.begun.setup
        some = setup.predictions
        check_resampled(some)
        check_terms([self.begun.kernel])
        parts = parts_of(self.cases, some) if isinstance(self.method, Omnibus) else None
        found = self._evaluated(self._looked(some, parts), parts, some)
        if parts is None:
            return found
        return replace(found, findings=findings_of(setup, found.pvalue, found.provenance))

    def _looked(self, some: Predictions, parts: PartsOfAll | None) -> Looked:
        """In the order in which a test of cases in memory takes its random numbers."""
        where = locations_among(self.method.locations, self.cases, some, self.rng)
        kernel = self.begun.kernel_at
        if parts is None:
            return Looked(kernel, self.begun.expectations, where, None, None, None, self.cases.n)
        anchors = drawn_locations(self.cases, anchors_of(some), self.rng)
        few = min(ANCHORS, len(anchors))
        at = location_kernel(kernel, anchors.predictions[:few], anchors, expectations=self.begun.expectations)
        roots = [root(weights) for weights in weights_at(at, few)]
        return Looked(kernel, self.begun.expectations, where, anchors, roots, parts.make, self.cases.n)

    def _evaluated(self, looked: Looked, parts: PartsOfAll | None, some: Predictions) -> Outcome:
        own = [None] * len(self.cases.blocks) if parts is None else parts.own
        sums = SumsOfAll(self.cases, own, looked, self._sets_of_a_round(looked, some))
        width = 1
        if parts is not None:
            width = parts.parts.width
            of_parts = self._sets_within(width, some)
            at_a_time = min(sums.at_a_time, of_parts)
            sums = replace(
                sums, at_a_time=at_a_time, of_parts_at_a_time=of_parts, reduce=parts.parts.remembered
            )
        of_parts, of_locations, values = sums.all(TargetStream.of(self.rng), self.n_resamples)
        weight = 1.0 if parts is None else parts.parts.weights["locations"]
        at = Evaluated("locations", weight, regularised_statistic(of_locations))
        if parts is None:
            found = smallest_outcome(self.n_resamples, [at])
            found.provenance["locations"] = len(looked.locations)
            return found
        assert isinstance(self.method, Omnibus)
        numbers = max(self.cases.n * max(1, int(np.prod(some.event_shape))), width)
        more = missing_tail_sets(self.method.tail_sets, numbers, self.n_resamples)
        tails = sums.of_parts(TargetStream.of(self.rng), more) if more else of_parts[:0]
        statistics = parts.parts.of_remembered
        skce = Evaluated("SKCE", parts.parts.weights["SKCE"], values)
        every = [*statistics(np.concatenate([of_parts, tails])), at, skce]
        found = smallest_outcome(self.n_resamples, every, null_alone=True)

        def draw(count: int) -> list[NDArray]:
            return [sums.of_parts(TargetStream.of(self.rng), count)]

        most = self.method.drawn_on(numbers, self.insisted)
        return drawn_on(found, self.n_resamples, most, of_parts[:1], draw, statistics)

    def _sets_of_a_round(self, looked: Looked, some: Predictions) -> int:
        """Sets whose sums of features one task returns."""
        if looked.anchors is None:
            return self.n_resamples
        classes = getattr(some, "n_classes", 0) or 0
        features = max(len(looked.anchors), int(classes)) * ANCHORS * len(looked.roots or [0])
        return self._sets_within(features, some)

    def _sets_within(self, width: int, some: Predictions) -> int:
        """Sets that make `width` numbers each, as many as one task may return."""
        at_a_time = sets_at_a_time(self.cases.n * max(1, int(np.prod(some.event_shape))))
        return max(1, MOST_KEPT // width // at_a_time) * at_a_time
