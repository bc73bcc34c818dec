"""Sets for a test of clustered cases: random signs, one for each cluster, in the place of drawn targets.

Targets drawn from the predictions are independent, and those of a cluster may not be. What a cluster adds to
a sum over cases has mean 0 under calibration once its expectation is taken off, whatever the dependence
within the cluster, and clusters are independent: multiplied by random signs its terms have the mean and the
covariance that they had. As the number of clusters grows, sums with signs have the same limit as the
observed sum, and so have all statistics that are made of them. One sign of a cluster serves all statistics,
so that these go together over sets as the observed ones do.

Drawn targets still say what independent cases would give: expectations where there is no formula, the unit
in which deviations at locations are measured, and the least spread that sums with signs are given. What is
rare and did not happen leaves terms that are small and all of one sign, whose spread says nothing.

Where terms are skewed, as squared errors are, a sum that happens to be low comes with a spread that is low,
too, and would be beyond most sets. Hall's transformation takes the first term of that off, from all sets
alike (P. Hall, 1992, On the removal of skewness by transformation): where terms are symmetric the test is
exact with it, as it is without.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from wellcal._arrays.namespaces import NDArray
from wellcal.engines.reductions import Sums
from wellcal.hypotests.draws import draw_signs
from wellcal.hypotests.parts.part import Evaluated, Parts
from wellcal.hypotests.passes import in_passes, quadratic_forms
from wellcal.hypotests.resampling.components import regularised_statistic
from wellcal.hypotests.resampling.targets import drawn_sets
from wellcal.hypotests.setup import Setup
from wellcal.problem.at_locations import LocationKernel

DRAWN = 199
"""Sets of targets that are drawn.

The error of expectations that are means over them has mean 0, is independent between clusters, and gets the
same signs as the rest: it adds half a percent to the variance of sums, with signs or without.
"""


_ALIKE = 1e-9  # sum of squares from the mean, of that from zero


class Drawn(NamedTuple):
    """What targets of independent cases give.

    Attributes
    ----------
    expected
        Expectations of what clusters add to the sums of the parts.
    spreads
        Standard deviations of these sums.
    at_locations
        Sums of deviations at locations ``(DRAWN, J)``, or None.
    """

    expected: list[NDArray]
    spreads: NDArray
    at_locations: NDArray | None


def draw_ordinary(setup: Setup, parts: Parts | None, at: LocationKernel | None, groups: NDArray) -> Drawn:
    """Draw targets from the predictions, and look at what is made of them."""
    adder = cluster_adder(groups)
    known = None if parts is None else parts.mean_terms()
    expected: list[NDArray] = [] if known is None else [adder @ block for block in known]
    sums: list[NDArray] = []
    deviations: list[NDArray] = []
    for sets in drawn_sets(setup, DRAWN):
        if parts is not None:
            sums.append(np.asarray(parts.sums(sets)))
        if at is not None:
            deviations.append(at.sums(sets))
        if parts is not None and known is None:
            for targets in sets:
                found = [adder @ block / DRAWN for block in parts.terms(targets)]
                expected = [a + b for a, b in zip(expected, found, strict=True)] if expected else found
    with np.errstate(invalid="ignore"):
        spreads = np.std(np.concatenate(sums), axis=0) if sums else np.zeros(0)
    return Drawn(expected, spreads, np.concatenate(deviations) if deviations else None)


def signs_of(setup: Setup, clusters: int) -> NDArray:
    """Signs ``(R + 1, G)``: no change for the observed set, which comes first."""
    return all_signs(setup.rng, clusters, setup.n_resamples)


def all_signs(rng: np.random.Generator, clusters: int, count: int) -> NDArray:
    """The same for so many drawn sets."""
    drawn = draw_signs(rng, clusters, count)
    return np.concatenate([np.ones((1, clusters), drawn.dtype), drawn])


def signed_parts(
    setup: Setup, parts: Parts, signs: NDArray, groups: NDArray, drawn: Drawn
) -> list[Evaluated]:
    """Statistics that are made of sums over cases."""
    adder = cluster_adder(groups)
    observed = np.concatenate([adder @ block for block in parts.terms(setup.targets)], axis=1)
    expected = np.concatenate(drawn.expected, axis=1)
    return list(parts.statistics(sums_with_signs(signs, observed, expected, drawn.spreads)))


def sums_with_signs(signs: NDArray, observed: NDArray, expected: NDArray, spreads: NDArray) -> NDArray:
    """Sums ``(R + 1, K)`` of what clusters add to them, and are expected to, each ``(G, K)``."""
    # Impossible targets do not occur under calibration: sets with signs are made without them.
    known = np.isfinite(observed) & np.isfinite(expected)
    terms = np.where(known, observed - np.where(known, expected, 0.0), 0.0)
    sums = without_skewness(signs, terms)
    sums[1:] *= _widened(terms, spreads)
    sums += np.where(known, expected, 0.0).sum(axis=0)
    sums[0, ~known.all(axis=0)] = np.inf
    return sums


def _widened(terms: NDArray, spreads: NDArray) -> NDArray:
    """Factors by which sums with signs get the spread of those of independent cases, where theirs is less."""
    own = np.sqrt(np.sum(terms**2, axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(np.isfinite(spreads) & (own > 0.0), spreads / own, 1.0)
    return np.maximum(factors, 1.0)


def without_skewness(signs: NDArray, terms: NDArray) -> NDArray:
    """Sums of terms with signs ``(R + 1, K)``, each changed by as much skewness as its terms show.

    With t a sum over the root of the sum of squared terms, and g the skewness of a sum, ``P(t <= x)`` is that
    of a normal variate plus ``g (2 x^2 + 1) / 6`` times its density, up to terms of second order. That of the
    increasing function ``t + g t^2 / 3 + g^2 t^3 / 27 + g / 6`` is normal to the same order.

    Parameters
    ----------
    signs
        Of clusters in all sets, ``(R + 1, G)``.
    terms
        What clusters add to the sums, ``(G, K)``.

    Examples
    --------
    The second set has one cluster of three below the others:

    >>> without_skewness(np.array([[1, 1, 1], [1, 1, -1]]), np.array([[1.0], [1.0], [1.0]])).round(2)
    array([[3.  ],
           [0.81]])
    """
    count = len(terms)
    root = np.sqrt(np.sum(terms**2, axis=0))
    z = terms / np.where(root > 0.0, root, 1.0)
    t = signs @ z
    # Sums of squares, and of cubes, of terms from their mean. Terms that are all alike have no skewness.
    squares = 1.0 - t * t / count
    cubes = signs @ z**3 - t * (3.0 - 2.0 * t * t / count) / count
    some = squares > _ALIKE
    g = np.where(some, cubes / np.where(some, squares, 1.0) ** 1.5, 0.0)
    return root * (t + g * (t * t / 3.0 + g * t**3 / 27.0 + 1.0 / 6.0))


def signed_locations(
    setup: Setup, at: LocationKernel, signs: NDArray, groups: NDArray, drawn: Drawn, weight: float
) -> Evaluated:
    """Deviations at locations, regularised by what their covariance is for independent cases.

    Their own covariance would not do: there may be more locations than clusters.
    """
    by_cluster = cluster_adder(groups) @ np.asarray(at.deviations(setup.targets))
    return Evaluated("locations", weight, regularised_statistic(signs @ by_cluster, unit=drawn.at_locations))


def signed_skce(setup: Setup, signs: NDArray, groups: NDArray, weight: float) -> tuple[Evaluated, Sums]:
    """The SKCE over pairs of different clusters, and the sums of h over these pairs."""
    values = np.empty(len(signs))
    sums = Sums(0.0, np.zeros(setup.n_samples))
    for some in in_passes(setup.n_samples, len(signs), np.int8):
        forms = quadratic_forms(setup, signs[some][:, groups].T)
        values[some], sums = forms.values, forms.sums
    return Evaluated("SKCE", weight, values), sums


def cluster_adder(groups: NDArray) -> sparse.csr_array:
    """From cases to sums over clusters, ``(G, n)``."""
    n = len(groups)
    return sparse.csr_array((np.ones(n), (groups, np.arange(n))), shape=(int(groups.max()) + 1, n))
