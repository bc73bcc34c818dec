"""Groups of cases in partitions, where, and in which direction, predictions are miscalibrated.

Cuts between groups come from the predictions of always the same 100,000 cases; what is found there from the
targets of all, and from sets of them that are drawn where the predictions are. So p-values are those of the
same cases in memory. What is told of single cases is told of a sample of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.progress import reported
from wellcal._arrays.seeds import as_generator
from wellcal._arrays.threads import one_blas_thread
from wellcal.dask.building import as_cases
from wellcal.dask.functions import IN_MEMORY, refuse
from wellcal.dask.pairs import Weighing
from wellcal.dask.partitioned import (
    Cases,
    Partition,
    Task,
    added,
    computed_sum,
    itself,
    on,
    summed,
)
from wellcal.dask.sampling import Begun
from wellcal.dask.segmenting import labels_of, segment_columns, segment_grids
from wellcal.dask.sums import MOST_KEPT, drawn_locations
from wellcal.dask.watching import computed, kept
from wellcal.dask.witness_sums import (
    Column,
    Outline,
    Rows,
    ScannedCases,
    Sides,
    Sought,
    directions_for,
    drawn_sums,
    outlined,
    overview_of,
    sides_of,
)
from wellcal.hypotests.findings.impossible import lost_cases, told_impossible
from wellcal.hypotests.resampling.targets import check_resampled
from wellcal.kernels.base import Kernel
from wellcal.measures.by_case import Contributions
from wellcal.predictions import Predictions
from wellcal.predictions.target_leakage import refuse_targets
from wellcal.problem import target_resampling
from wellcal.problem.locations import Locations
from wellcal.problem.target_resampling import TargetStream, sets_at_a_time
from wellcal.problem.weights import check_weights
from wellcal.witnesses.axes import ranked_rows
from wellcal.witnesses.compute import (
    Asked,
    Band,
    Means,
    contributions_in,
    group_of,
    shown_locations,
    told_segments,
)
from wellcal.witnesses.compute import witness as in_memory
from wellcal.witnesses.directions import LEVELS, Direction
from wellcal.witnesses.grid import DRAWN, has_a_grid, witness_locations
from wellcal.witnesses.regions import Grid, Listed, grids_of
from wellcal.witnesses.result import Group, Witness
from wellcal.witnesses.scan import ScanTest, Told
from wellcal.witnesses.segments import argument_of
from wellcal.witnesses.summaries import Cases as Members
from wellcal.witnesses.summaries import Overview


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
    expectations: Any = "auto",
    engine: Any = "auto",
    progress: Any = None,
) -> Witness:
    """As :func:`wellcal.witness`: groups, their p-values and the band are those of all cases."""
    refuse("witness", {"engine": None if engine == "auto" else engine}, IN_MEMORY)
    asked = Asked.of(alpha, quantile_levels, min_cases, max_groups, n_resamples)
    columns = segment_columns(segments)
    cases = as_cases(y, pred, weights, labels_of(columns))
    if cases.n <= target_resampling.BLOCK:
        some = cases.gathered()
        named = {name: column for (name, _), column in zip(columns, some.labels, strict=True)}
        return in_memory(
            some.given,
            some.predictions,
            locations,
            kernel=kernel,
            segments=None if not columns else named.get(None, named),
            weights=some.weights,
            alpha=alpha,
            quantile_levels=quantile_levels,
            min_cases=min_cases,
            max_groups=max_groups,
            rng=rng,
            n_resamples=n_resamples,
            expectations=expectations,
            progress=progress,
        )
    begun = Begun.of(cases, kernel, expectations)
    check_resampled(begun.setup.predictions)
    weighing = None if weights is None else Weighing.of(cases, 2)
    with one_blas_thread():
        run = _Run(begun, begun.cases.aligned(target_resampling.BLOCK), asked, as_generator(rng), weighing)
        return run.witness(locations, columns)


def _first_look(block: Partition) -> tuple[Overview, NDArray]:
    """What predictions decide together, and how many cases had no probability for what was observed."""
    return overview_of(block), lost_cases(block.targets, block.predictions)


@dataclass(frozen=True)
class _Run:
    """One search for groups."""

    begun: Begun
    cases: Cases
    asked: Asked
    rng: np.random.Generator
    weighing: Weighing | None

    def witness(self, given: object, columns: Sequence[tuple[str | None, Any]]) -> Witness:
        """What was found."""
        setup, asked = self.begun.setup, self.asked
        overview, lost = self.cases.total(_first_look)
        block = self.cases.rows(ranked_rows(self.cases.n))
        ranked = block.predictions
        drawn = setup.pooled is not None
        directions = directions_for(ranked, asked.levels, overview, drawn)
        for (name, _), labels in zip(columns, block.labels, strict=True):
            refuse_targets(labels, argument_of(name), block.given)
        segments = segment_grids(columns, self.cases, block.labels)
        grids = _grids(directions, [listed for listed, _ in segments])
        where = self._locations(given, ranked)
        sought = Sought(
            asked.levels,
            overview,
            _sides(directions, grids, segments),
            self.begun.kernel_at,
            self.begun.expectations,
            where,
            self.cases.n,
            None if self.weighing is None else self.weighing.largest,
            drawn,
        )
        outline, expected = self.cases.total(outlined, sought=on(itself, sought))
        scanned = ScannedCases(self.cases, sought, directions, grids, Outline(*outline), asked.min_cases)
        events = all(direction.happens for direction in directions)
        (in_cells, of_all, at), squares = self._drawn(sought, events)
        scanned.sums_of_all.append(of_all)
        if not events:
            scanned.know_squares(squares)
        test = ScanTest(scanned, in_cells)
        weight = float(self.cases.n) if self.weighing is None else self.weighing.total
        band = Band.of(at, expected, weight, asked.alpha)
        sample = self.begun.sample
        own = None if sample.weights is None else check_weights(sample.weights, setup.n_samples, None)
        by_case = contributions_in(setup, own)
        rows = Rows(sample._replace(predictions=setup.predictions), sought)

        def describe(told: Told) -> Group:
            return _described(told, scanned, in_cells[0], rows, by_case, self)

        provenance = {
            **by_case.estimate.provenance,
            "candidates": len(scanned),
            "locations": len(where),
            "sample": f"{self.begun.sampled}: estimate, scores, contributions, and which cases of a group",
            "partitions": len(self.cases.blocks),
        }
        if drawn:
            looked_at = "all cases and segments" if columns else "all cases"
            provenance["groups"] = (
                f"{looked_at}, none by prediction: groups by mean or spread of draws need cases in memory"
            )
        if self.weighing is not None:
            provenance |= self.weighing.weighted.worth  # of all cases, not of the sample
        of_segments = tuple(map(describe, told_segments(scanned, test)))
        large = {group.where for group in of_segments}
        too_small = [g.where for listed, _ in segments for g in listed.groups if g.where not in large]
        if too_small:
            provenance["segments too small"] = too_small
        if (said := told_impossible(lost)) is not None:
            provenance["impossible"] = said
        return Witness(
            estimate=by_case.estimate,
            scores=by_case.scores,
            contributions=by_case.parts,
            locations=shown_locations(given, where),
            values=band.values,
            low=-band.half,
            high=band.half,
            pvalues=band.pvalues,
            groups=tuple(map(describe, test.striking(asked.max_groups, asked.alpha))),
            segments=of_segments,
            pvalue=float(test.pvalues.min(initial=1.0)),
            alpha=asked.alpha,
            n_samples=self.cases.n,
            n_resamples=asked.n_resamples,
            kernel=setup.kernel,
            provenance=provenance,
        )

    def _locations(self, given: object, ranked: Predictions) -> Locations:
        """In the order in which random numbers are taken in memory."""
        count = DRAWN if given is None and not has_a_grid(ranked) else given
        if isinstance(count, (int, np.integer)) and not isinstance(count, bool):
            return drawn_locations(self.cases, int(cast("int", count)), self.rng)
        return replace(witness_locations(given, ranked, self.rng), drawn=None)

    def _drawn(self, sought: Sought, events: bool) -> tuple[tuple[NDArray, NDArray, NDArray], list[Task]]:
        """Sums for the observed targets and for drawn sets, in rounds of what a task can return.

        And mean squares of deviations that are no events, which are kept where the partitions are.
        """
        stream, count = TargetStream.of(self.rng), self.asked.n_resamples
        starts = self.cases.starts[:-1].tolist()
        coordinates = math.prod(self.begun.setup.targets.shape[1:])
        each = sets_at_a_time(self.cases.n * coordinates)
        most = max(1, MOST_KEPT // max(sought.cells, 1) // each) * each
        shared = on(itself, sought)
        rounds: list[Any] = []
        squares: list[Task] = [None] * len(starts)
        for first in range(0, count, most):
            options = {"sought": shared, "stream": stream, "count": min(most, count - first), "first": first}
            tasks = self.cases.map(drawn_sums, starts, **options, squares=not events)
            if events:
                rounds.append(computed_sum(tasks))
                continue
            total, *squares = kept(
                [
                    summed([task[0] for task in tasks]),
                    *(on(added, *pair) for pair in zip(squares, (task[1] for task in tasks), strict=True)),
                ]
            )
            rounds.append(computed([total])[0])
        cells, of_all, at = (np.concatenate(parts) for parts in zip(*rounds, strict=True))
        return (cells, of_all, at), [] if events else [on(_divided, own, count + 1) for own in squares]


def _grids(directions: Sequence[Direction], segments: Sequence[Listed]) -> list[list[Grid]]:
    """All cases, segments, and regions of summaries, which are shared by directions with the same ones."""
    known: dict[tuple[int, ...], list[Grid]] = {}
    found: list[list[Grid]] = []
    for direction in directions:
        key = tuple(id(summary.values) for summary in direction.summaries)
        if key not in known:
            everything = Members("in all cases", np.ones(len(direction.expected), dtype=bool), "all")
            known[key] = [Listed([everything]), *segments, *grids_of(direction.summaries)]
        found.append(known[key])
    return found


def _sides(
    directions: Sequence[Direction],
    grids: Sequence[Sequence[Grid]],
    segments: Sequence[tuple[Listed, Column]],
) -> tuple[tuple[Sides, ...], ...]:
    """The same as partitions need it; what is shared stays so."""
    known: dict[int, Sides] = {id(listed): column for listed, column in segments}
    for direction, own in zip(directions, grids, strict=True):
        for grid in own:
            if id(grid) not in known:
                known[id(grid)] = sides_of(grid, direction)
    return tuple(tuple(known[id(grid)] for grid in own) for own in grids)


def _divided(squares: NDArray, count: int) -> NDArray:
    return squares / count


def _described(
    told: Told, scanned: ScannedCases, observed: NDArray, rows: Rows, by_case: Contributions, run: _Run
) -> Group:
    """A group with numbers of all cases; which cases these are is known of the sample."""
    known = scanned.outline
    count, weight, expected, deviation = (
        scanned.over_group(told.candidate, cells)
        for cells in (known.cases, known.weights, known.weighted, observed)
    )
    inside = rows.inside(scanned.told(told.candidate))
    means = Means((deviation + expected) / weight, expected / weight, float(by_case.parts[inside].sum()))
    places = run.begun.places[inside]
    return group_of(told, means, places, run.asked.n_resamples, n_all=round(count))
