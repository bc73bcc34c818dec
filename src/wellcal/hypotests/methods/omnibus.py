"""The exact test that looks for all kinds of miscalibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from wellcal._arrays.checks import whole_number
from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.clusters import check_clusters
from wellcal.hypotests.findings.families import findings_of
from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.parts.families import parts_of
from wellcal.hypotests.parts.part import Evaluated, Parts
from wellcal.hypotests.passes import between_clusters
from wellcal.hypotests.resampling.cluster_signs import (
    draw_ordinary,
    signed_locations,
    signed_parts,
    signed_skce,
    signs_of,
)
from wellcal.hypotests.resampling.components import (
    LOCATIONS,
    TAIL_SETS,
    choose_locations,
    evaluate_components,
    location_component,
    part_component,
    skce_component,
    smallest_outcome,
)
from wellcal.hypotests.resampling.more_resamples import (
    MOST_RESAMPLES,
    most_drawn,
    with_more_resamples,
)
from wellcal.hypotests.resampling.targets import check_resampled
from wellcal.hypotests.setup import Setup
from wellcal.measures.target_sets.resampled import has_terms

WITHOUT_PARTS = {"SKCE": 0.5, "locations": 0.5}
"""Weights where targets are objects, of which there are no sums."""

FEW_CLUSTERS = 20
"""Clusters below which a test with signs may reject too often, or too rarely: no rates are known there."""


@dataclass(frozen=True)
class Omnibus(Method):
    """Exact test that looks for all kinds of miscalibration at once.

    The smallest p-value, on the same resamples, of

    - the SKCE: any dependence of the error on the prediction,
    - regularised deviations at locations: fine deviations,
    - sums over cases, each made for one kind of error. For numbers: distribution of the PIT, spread, tails,
      trends of centre and spread with the prediction. For vectors: correlations, too. For classes: each
      class, log probability, slopes against the predicted probability.

    Each p-value is first divided by a weight. The choice looks at the predictions alone.

    Parameters
    ----------
    pairs
        Whether the SKCE is taken over all pairs of cases: the only part whose cost grows with their square.
        Otherwise a kernel of low rank stands in for the kernel, and all is linear in the number of cases.
    locations
        Number of locations drawn from the predictions, or ``(predictions, targets)``.
    most_resamples
        Where the observed targets are beyond all resamples, sums over cases are drawn on until they are not,
        up to so many. None takes 99,999, but no more than were asked for where somebody asked for a number
        (`n_resamples`).
    tail_sets
        Sets of targets, at least, that tails of sums over cases are fitted to: where fewer resamples are
        asked for, these sums alone see more sets; 0 for no more than were asked for.

    Notes
    -----
    With `groups` of dependent cases signs take the place of drawn targets. What a cluster adds to each sum,
    less its expectation under the predictions, is multiplied by a random sign, the same for all parts; the
    SKCE is taken over pairs of different clusters. That is valid for many clusters, not exact. Where no
    cluster has more than one case, `groups` changes nothing.

    The page on tests says which statistics and weights were tried, and what each was worth.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> pred = wc.Normal(mu, np.ones(100))
    >>> result = wc.calibration_test(mu + 0.8, pred, method="omnibus", rng=0)
    >>> result.provenance["pvalues"]["distribution"], result.provenance["pvalues"]["trend of the centre"]
    (0.001, 0.98)
    """

    pairs: bool = True
    locations: object = LOCATIONS
    most_resamples: int | None = None
    tail_sets: int = TAIL_SETS

    name: ClassVar[str] = "omnibus"
    clusters: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.most_resamples is not None:
            whole_number(self.most_resamples, "most_resamples", least=0)
        whole_number(self.tail_sets, "tail_sets", least=0)
        object.__setattr__(self, "linear", not self.pairs)

    def most_drawn(self, setup: Setup) -> int:
        """Resamples at most: more than were asked for where sums over cases can be drawn on."""
        parts = None if setup.groups is not None else parts_of(setup.predictions)
        if parts is None:
            return setup.n_resamples
        return max(setup.n_resamples, self.drawn_on(max(setup.targets.size, parts.width), setup.insisted))

    def drawn_on(self, numbers: int, insisted: bool) -> int:
        """Resamples up to which sums over cases are drawn on: what somebody asked for is what is drawn.

        One set of targets has, or makes, so many `numbers`.
        """
        unasked = 0 if insisted else MOST_RESAMPLES
        return most_drawn(numbers, unasked if self.most_resamples is None else self.most_resamples)

    def run(self, setup: Setup) -> Outcome:
        """The p-value of the smallest weighted p-value."""
        check_resampled(setup.predictions)
        parts = parts_of(setup.predictions)
        if setup.groups is not None:
            return self._clustered(setup, parts, setup.groups)
        found = smallest_outcome(setup.n_resamples, self.evaluate(setup, parts), null_alone=True)
        if parts is not None:
            most = self.drawn_on(max(setup.targets.size, parts.width), setup.insisted)
            found = with_more_resamples(setup, part_component(parts), found, most)
        return replace(found, findings=findings_of(setup, found.pvalue, found.provenance))

    def _clustered(self, setup: Setup, parts: Parts | None, groups: NDArray) -> Outcome:
        """The same with signs of clusters in the place of drawn targets."""
        sizes = np.bincount(groups)
        check_clusters(len(sizes), few=FEW_CLUSTERS)
        weights = WITHOUT_PARTS if parts is None else parts.weights
        signs = signs_of(setup, len(sizes))
        at = setup.at(choose_locations(setup, self.locations)) if has_terms(setup.kernel) else None
        drawn = draw_ordinary(setup, parts, at, groups)
        found = [] if parts is None else signed_parts(setup, parts, signs, groups, drawn)
        if at is not None:
            found.append(signed_locations(setup, at, signs, groups, drawn, weights["locations"]))
        estimate = None
        if self.pairs or not found:
            skce, sums = signed_skce(setup, signs, groups, weights["SKCE"])
            found.append(skce)
            estimate = between_clusters(setup, sums, groups, sizes)
        outcome = clustered_outcome(setup, found, sizes)
        return replace(outcome, estimate=estimate)

    def evaluate(self, setup: Setup, parts: Parts | None) -> list[Evaluated]:
        """Statistics of all parts, over the observed targets and all resamples of them."""
        weights = WITHOUT_PARTS if parts is None else parts.weights
        components = [] if parts is None else [part_component(parts)]
        separable = has_terms(setup.kernel)
        if separable:
            locations = choose_locations(setup, self.locations)
            components.append(location_component(setup, locations, weights["locations"]))
        if self.pairs or separable or not components:
            pairs = self.pairs or not separable
            components.append(skce_component(setup, weights["SKCE"], pairs=pairs))
        width = 1 if parts is None else parts.width
        return evaluate_components(setup, components, tail_sets=self.tail_sets, width=width)


def clustered_outcome(setup: Setup, found: Sequence[Evaluated], sizes: NDArray) -> Outcome:
    """The smallest p-value over sets with signs, of clusters of some `sizes`."""
    outcome = smallest_outcome(setup.n_resamples, found, null_alone=True)
    clusters = {
        "clusters": len(sizes),
        "largest_cluster": int(sizes.max()),
        "null": "signs of clusters, in the place of drawn targets: valid for many clusters",
    }
    findings = findings_of(setup, outcome.pvalue, outcome.provenance)
    return replace(outcome, provenance={**outcome.provenance, **clusters}, findings=findings)
