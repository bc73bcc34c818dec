"""Tests with a tolerance, of cases in partitions: they read the estimate of all cases."""

from __future__ import annotations

from typing import Any

from wellcal._arrays.progress import reported
from wellcal._arrays.seeds import as_generator
from wellcal.dask.beside import shuffled_estimate, told_of_all
from wellcal.dask.building import as_cases
from wellcal.dask.functions import IN_MEMORY, refuse
from wellcal.dask.sampling import Begun, number_at_hand
from wellcal.dask.segmenting import labels_of_clusters
from wellcal.hypotests.tolerance import (
    BEYOND,
    ToleranceResult,
    checked_tolerance,
    over_blocks_enough,
    run_tolerance_test,
    tolerance_result,
)
from wellcal.kernels.base import Kernel


@reported
def equivalence_test(
    y: object,
    pred: object,
    *,
    tolerance: float,
    kernel: Kernel | None = None,
    groups: object = None,
    expectations: Any = "auto",
    engine: Any = "auto",
    rng: Any = None,
    progress: Any = None,
) -> ToleranceResult:
    """As :func:`wellcal.equivalence_test`."""
    as_generator(rng)
    return tolerance_test(y, pred, BEYOND, tolerance, kernel, groups, expectations, engine)


def tolerance_test(
    y: object,
    pred: object,
    hypothesis: str,
    tolerance: object,
    kernel: Kernel | None,
    groups: object,
    expectations: Any,
    engine: Any,
) -> ToleranceResult:
    """The test of one of the two hypotheses; of cases that fit into memory it is the one there."""
    delta = checked_tolerance(tolerance)
    cases = as_cases(y, pred, labels=labels_of_clusters(groups))
    count = number_at_hand(cases)
    if count == cases.n:
        block = cases.gathered()
        clusters = block.labels[0] if block.labels else None
        given = (block.given, block.predictions)
        return run_tolerance_test(*given, hypothesis, delta, kernel, clusters, expectations, engine)
    refuse(f"a test with a tolerance of {cases.n:,} cases", {"groups": groups}, IN_MEMORY)
    refuse("a test with a tolerance", {"engine": None if engine == "auto" else engine}, IN_MEMORY)
    begun = Begun.of(cases, kernel, expectations, count)
    mean, _ = told_of_all(begun.given, begun.setup)
    some = over_blocks_enough(begun.setup)
    setup = some.knowing(shuffled_estimate(begun.cases, some), mean)
    found = tolerance_result(setup, hypothesis, delta, n_samples=cases.n)
    found.provenance["partitions"] = len(cases.blocks)
    return found
