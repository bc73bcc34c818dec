"""The exact test with deviations at locations in units of their spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.resampling.components import (
    LOCATIONS,
    choose_locations,
    evaluate_components,
    location_component,
    smallest_outcome,
)
from wellcal.hypotests.resampling.targets import check_resampled
from wellcal.hypotests.setup import Setup
from wellcal.measures.target_sets.resampled import check_terms


@dataclass(frozen=True)
class Regularised(Method):
    """Exact test with deviations at locations, each direction in units of its own spread.

    The deviations of the calibration mean embedding at J locations are weighed by a regularised inverse
    of their covariance over all sets of targets, at several strengths, which sees fine deviations such as
    over-confidence that the plain SKCE hardly notices. Linear in the number of cases.

    Parameters
    ----------
    locations
        Number of locations drawn from the predictions, or ``(predictions, targets)``.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> pred = wc.Normal(mu, np.ones(100))
    >>> result = wc.calibration_test(mu + 0.8, pred, method="regularised", locations=20, rng=0)
    >>> result.provenance["locations"], result.pvalue
    (20, 0.001)
    """

    locations: object = LOCATIONS

    name: ClassVar[str] = "regularised"
    linear: ClassVar[bool] = True

    def run(self, setup: Setup) -> Outcome:
        """The exact p-value of the smallest p-value over strengths of regularisation."""
        check_resampled(setup.predictions)
        check_terms([setup.kernel])
        locations = choose_locations(setup, self.locations)
        found = smallest_outcome(
            setup.n_resamples, evaluate_components(setup, [location_component(setup, locations)])
        )
        found.provenance["locations"] = len(locations)
        return found
