"""The exact test that looks for all kinds of miscalibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wellcal._arrays.checks import whole_number
from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.parts.part import Evaluated
from wellcal.hypotests.resampling.components import (
    LOCATIONS,
    choose_locations,
    evaluate_components,
    location_component,
    part_component,
    skce_component,
    smallest_outcome,
)
from wellcal.hypotests.resampling.more_resamples import MOST_RESAMPLES, with_more_resamples
from wellcal.hypotests.resampling.resampled import has_terms
from wellcal.hypotests.resampling.targets import check_resampled
from wellcal.hypotests.setup import Setup

PAIRS_WEIGHT = 0.5
LOCATIONS_WEIGHT = 0.5


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
    most_resamples
        Where the observed targets are beyond all resamples, sums over cases are drawn on until they are not,
        up to so many; 0 for no more than were asked for.

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
    most_resamples: int = MOST_RESAMPLES

    name: ClassVar[str] = "omnibus"

    def __post_init__(self) -> None:
        whole_number(self.most_resamples, "most_resamples", least=0)
        object.__setattr__(self, "linear", not self.pairs)

    def run(self, setup: Setup) -> Outcome:
        """The exact p-value of the smallest weighted p-value."""
        found = smallest_outcome(setup, self.evaluate(setup))
        cheap = part_component(setup)
        return found if cheap is None else with_more_resamples(setup, cheap, found, self.most_resamples)

    def evaluate(self, setup: Setup) -> list[Evaluated]:
        """Statistics of all parts, over the observed targets and all resamples of them."""
        check_resampled(setup.predictions)
        parts = part_component(setup)
        components = [] if parts is None else [parts]
        if has_terms(setup.kernel):
            locations = choose_locations(setup, self.locations)
            components.append(location_component(setup, locations, LOCATIONS_WEIGHT))
        if self.pairs or not components:
            components.append(skce_component(setup, weight=PAIRS_WEIGHT))
        return evaluate_components(setup, components)
