"""The default test of clustered cases in partitions: signs of clusters in the place of drawn targets.

Cases of a cluster may lie in several partitions. What each partition adds to the sums of a cluster travels,
and adds up; signs are drawn once, for all clusters, as in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.dask.partitioned import Cases, Partition, itself, on
from wellcal.dask.parts import parts_of
from wellcal.dask.sampling import Begun
from wellcal.dask.sums import Looked, SumsOfAll, in_parts, locations_among
from wellcal.hypotests.clusters import check_clusters, number_clusters
from wellcal.hypotests.method import Outcome
from wellcal.hypotests.methods import Omnibus
from wellcal.hypotests.methods.omnibus import FEW_CLUSTERS, clustered_outcome
from wellcal.hypotests.parts.part import Evaluated
from wellcal.hypotests.resampling.cluster_signs import (
    DRAWN,
    all_signs,
    cluster_adder,
    sums_with_signs,
)
from wellcal.hypotests.resampling.components import regularised_statistic
from wellcal.measures.target_sets.resampled import check_terms
from wellcal.predictions.target_leakage import GROUPS, refuse_targets
from wellcal.problem import target_resampling
from wellcal.problem.at_locations import location_kernel
from wellcal.problem.target_resampling import TargetStream

MOST_SIGNS = 2_000_000_000
"""Signs that are drawn at most: two million clusters in a thousand sets."""


@dataclass(frozen=True)
class Clusters:
    """Clusters of some cases, in the order of their labels.

    Attributes
    ----------
    labels
        Different labels, ``(g,)``.
    sizes
        Numbers of cases.
    sums
        What each adds to sums over cases, ``(g, k)``.
    """

    labels: NDArray
    sizes: NDArray
    sums: NDArray

    @classmethod
    def of(cls, labels: NDArray, sums: NDArray | None = None) -> Clusters:
        """Of what each case adds, ``(n, k)``."""
        found, member, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        by_case = np.zeros((len(labels), 0)) if sums is None else sums
        return cls(found, sizes, cluster_adder(member) @ by_case)

    def merged(self, other: Clusters) -> Clusters:
        """Of the cases of both."""
        labels, member = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        adder = cluster_adder(member)
        sizes = np.concatenate([self.sizes, other.sizes])
        return Clusters(labels, adder @ sizes, adder @ np.concatenate([self.sums, other.sums]))


def clusters_of(cases: Cases) -> Clusters | None:
    """Clusters of all cases, and how large they are; None where no cluster has two cases."""
    found = cases.total(_clusters)
    return None if len(found.labels) == cases.n else found


def _clusters(block: Partition | None) -> Clusters | None:
    return None if block is None else Clusters.of(block.labels[0])


def of_sample(begun: Begun) -> Begun:
    """The same, whose sample knows the clusters of its cases."""
    setup = begun.setup
    numbers = number_clusters(begun.sample.labels[0], setup.n_samples)
    if numbers is not None:
        refuse_targets(begun.sample.labels[0], "groups", begun.sample.given, GROUPS)
    return replace(begun, setup=replace(setup, groups=numbers))


def signed_outcome(
    begun: Begun, method: Omnibus, clusters: Clusters, rng: np.random.Generator, count: int
) -> Outcome:
    """What `Omnibus` without pairs finds of clusters; random numbers come in the order of memory."""
    cases, setup = begun.cases.aligned(target_resampling.BLOCK), replace(begun.setup, n_resamples=count)
    check_clusters(len(clusters.labels), few=FEW_CLUSTERS)
    if len(clusters.labels) * (count + 1.0) > MOST_SIGNS:
        most = int(MOST_SIGNS // len(clusters.labels)) - 1
        raise ValueError(
            f"{len(clusters.labels):,} clusters in {count:,} sets have more signs than fit into memory; take "
            f"n_resamples={max(most, 1)}, or sample whole clusters"
        )
    check_terms([begun.kernel])
    some = setup.predictions
    parts = parts_of(cases, some)
    signs = all_signs(rng, len(clusters.labels), count)
    where = locations_among(method.locations, cases, some, rng)
    looked = Looked(begun.kernel_at, begun.expectations, where, None, None, parts.make, cases.n)
    stream = TargetStream.of(rng)
    of_parts, at, _ = SumsOfAll(cases, parts.own, looked, DRAWN).drawn(stream, DRAWN)
    starts = cases.starts[:-1].tolist()
    found = cases.total(_added_by_clusters, parts.own, starts, looked=on(itself, looked), stream=stream)
    width = of_parts.shape[1]
    observed, expected, deviations = np.split(found.sums, [width, 2 * width], axis=1)
    with np.errstate(invalid="ignore"):
        spreads = np.std(of_parts, axis=0)
    statistics = list(parts.parts.statistics(sums_with_signs(signs, observed, expected, spreads)))
    weight = parts.parts.weights["locations"]
    statistics.append(Evaluated("locations", weight, regularised_statistic(signs @ deviations, unit=at)))
    return clustered_outcome(setup, statistics, found.sizes)


def _added_by_clusters(
    block: Partition, own: NDArray | None, start: int, *, looked: Looked, stream: TargetStream
) -> Clusters:
    """What clusters add to sums of parts, are expected to, and to deviations at locations."""
    total: Clusters | None = None
    for low, some in in_parts(block):
        mine = None if own is None else own[low : low + len(some.targets)]
        parts = looked.make(some.predictions, mine)
        observed = np.concatenate(list(parts.terms(some.targets)), axis=1)
        known = parts.mean_terms()
        if known is not None:
            expected: Any = np.concatenate(list(known), axis=1)
        else:
            expected = np.zeros(observed.shape)
            place: dict[str, int] = {"start": start + low, "total": looked.n}
            for sets in stream.sets(some.predictions, some.targets, DRAWN, **place):
                for targets in sets:
                    expected += np.concatenate(list(parts.terms(targets)), axis=1) / DRAWN
        at = location_kernel(
            looked.kernel, some.predictions, looked.locations, expectations=looked.expectations
        )
        deviations = np.asarray(at.deviations(some.targets))
        found = Clusters.of(some.labels[0], np.concatenate([observed, expected, deviations], axis=1))
        total = found if total is None else total.merged(found)
    assert total is not None
    return total
