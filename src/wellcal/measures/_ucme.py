"""The calibration mean embedding at locations (paper, appendix "Calibration mean embedding")."""

from __future__ import annotations

import numpy as np

from wellcal._arrays.namespaces import float64, is_numpy, namespace
from wellcal.engines import Engine, choose_engine
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel
from wellcal.measures.estimate import Estimate, about_cases
from wellcal.predictions.base import check_inputs
from wellcal.problem.at_locations import location_kernel
from wellcal.problem.defaults import default_kernel
from wellcal.problem.locations import Locations, as_locations
from wellcal.problem.problem import outline


@about_cases
def ucme(
    y: object,
    pred: object,
    *,
    locations: object,
    kernel: Kernel | None = None,
    rng: int | np.random.Generator | None = None,
    expectations: str | Lowering = "auto",
    engine: str | Engine = "auto",
) -> Estimate:
    r"""Squared unnormalised calibration mean embedding: mean squared deviation at locations.

    .. math:: \mathrm{UCME}^2 = \frac{1}{J} \sum_{j=1}^J \Big( \frac{1}{n} \sum_{i=1}^n
              k\big((P_i, y_i), T_j\big) - \mathrm{E}\, k\big((P_i, Z_i), T_j\big) \Big)^2

    Parameters
    ----------
    y
        Observed targets, one for each prediction.
    pred
        Predictions: a batch such as ``wc.Normal(mu, sigma)``, or anything that
        :func:`wellcal.as_predictions` understands.
    locations
        J pairs ``(predictions, targets)`` of the family of `pred`, or a number J of locations to be drawn
        from the predictions: predictions among the given ones, and targets 1.5 times as far from the
        prediction's mean as a draw from it (classes: a draw, or one time in three any class).
    kernel
        Kernel on pairs of prediction and target. None chooses one for the family, with scales from the
        predictions, and reports it.
    rng
        Seed or generator for drawn locations.
    expectations
        "auto": numerical expectations, with a reported error estimate, where no closed form is
        known; "closed": an error instead; or a :class:`wellcal.Lowering` that says how.
    engine
        Name of an engine, or an engine, which evaluates the n x J values.

    Returns
    -------
    Estimate
        The plug-in estimate, never negative and biased upwards; without a standard error.

    Notes
    -----
    Under calibration n times the value converges to a weighted sum of chi-square variables;
    ``calibration_test(..., method="cme")`` is the test that goes with it. Cost: O(n J).

    References
    ----------
    Widmann, Lindsten, Zachariah (2021), appendix "Calibration mean embedding"; Chwialkowski, Ramdas,
    Sejdinovic, Gretton (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from wellcal.predictions import Normal
    >>> pred = Normal(np.zeros(4), 1.0)
    >>> at = Normal(np.zeros(2), 1.0), np.array([0.0, 2.0])
    >>> float(ucme(np.array([-1.0, 0.0, 1.0, 9.0]), pred, locations=at)) > 0
    True
    """
    targets, predictions = check_inputs(y, pred)
    predictions.check_judged(targets)
    chosen = default_kernel(predictions, expectations=expectations) if kernel is None else kernel
    where = as_locations(locations, predictions, rng)
    runner = choose_engine(engine, outline(targets, predictions, chosen))
    prepared = location_kernel(chosen, predictions, where, engine=runner, expectations=expectations)
    xp = namespace(prepared.expected)
    means = xp.mean(prepared.deviations(targets), axis=0)
    value = xp.mean(means**2)
    provenance = {
        **prepared.notes.as_dict(),
        "locations": len(where),
        "drawn": not isinstance(locations, (tuple, Locations)),
        "precision": "float64" if float64(xp) == xp.float64 else "float32",
    }
    found = float(value) if is_numpy(xp) else value
    return Estimate(found, None, "UCME^2", "plug-in", len(predictions), chosen, provenance)
