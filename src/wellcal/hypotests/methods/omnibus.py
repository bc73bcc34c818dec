"""The exact test that looks for all kinds of miscalibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.resampling.components import (
    LOCATIONS,
    MOMENT_WEIGHTS,
    choose_locations,
    evaluate_components,
    location_component,
    moment_components,
    skce_component,
    smallest_outcome,
)
from wellcal.hypotests.resampling.resampled import has_terms
from wellcal.hypotests.resampling.targets import check_resampled
from wellcal.hypotests.setup import Setup

_PAIRS_WEIGHT = 0.5
_LOCATIONS_WEIGHT = 0.5


@dataclass(frozen=True)
class Omnibus(Method):
    """Exact test that looks for all kinds of miscalibration at once.

    The smallest p-value, on the same resamples, of

    - the SKCE (weight 1/2): any dependence of the error on the prediction,
    - regularised deviations at locations (weight 1/2): fine deviations,
    - centre (weight 1): targets off the centre of their predictions,
    - surprise (weight 1): targets less, or more, probable than promised.

    Parameters
    ----------
    pairs
        Whether the SKCE, the only part whose cost grows with the square of the number of cases, takes
        part.
    locations
        Number of locations drawn from the predictions, or ``(predictions, targets)``.

    Notes
    -----
    The page on tests says which statistics and weights were tried, and what each was worth.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> pred = wc.Normal(mu, np.ones(100))
    >>> result = wc.calibration_test(mu + 0.8, pred, method="omnibus", rng=0)
    >>> min(result.provenance["pvalues"], key=result.provenance["pvalues"].get)
    'centre'
    """

    pairs: bool = True
    locations: object = LOCATIONS

    name: ClassVar[str] = "omnibus"

    def __post_init__(self) -> None:
        object.__setattr__(self, "linear", not self.pairs)

    def floor_of_one_part(self, n_resamples: int) -> float:
        """The p-value of an error that is beyond all resamples in one part, the least weighted one, only."""
        weights = [_PAIRS_WEIGHT] * self.pairs + [_LOCATIONS_WEIGHT, *MOMENT_WEIGHTS.values()]
        return sum(weights) / min(weights) / (n_resamples + 1.0)

    def run(self, setup: Setup) -> Outcome:
        """The exact p-value of the smallest weighted p-value."""
        check_resampled(setup.predictions)
        components = moment_components(setup)
        if has_terms(setup.kernel):
            locations = choose_locations(setup, self.locations)
            components.append(location_component(setup, locations, _LOCATIONS_WEIGHT))
        if self.pairs or not components:
            components.append(skce_component(setup, weight=_PAIRS_WEIGHT))
        return smallest_outcome(setup, evaluate_components(setup, components))
