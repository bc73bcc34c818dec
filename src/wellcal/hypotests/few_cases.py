"""Whether enough cases carry a statistic for its limit to hold: what asymptotic methods warn of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.hypotests.resampling.targets import draw_targets, why_not_resampled
from wellcal.hypotests.setup import Setup
from wellcal.predictions import Predictions

FEWEST_EFFECTIVE = 5.0
"""Effective cases below which a sum over pairs is not near its limit."""

FEWEST_IN_A_DIRECTION = 3.5
LARGEST_EXCESS = 0.1
"""Of inverse numbers of cases that make up a direction, over that of normal deviations."""

_DRAWN = 200  # h_ii of drawn targets that effective cases are counted from, at least
_ENUMERATED = 100  # classes, or counts, up to which each is looked at instead
_LOOKED_AT = 20_000  # h_ii of classes, at most
_ROUNDING = 1e-12  # of eigenvalues of correlations


# -- sums over pairs ---------------------------------------------------------------------------


def effective_cases(setup: Setup) -> float:
    """Cases of equal weight whose h_ii would vary as little: ``(sum E h_ii)^2 / sum E h_ii^2``.

    Expectations are those under the predictions, wherever targets can be drawn from them: what is seen tells
    nothing of what is rare. Classes, and counts that are hardly ever above zero, are enumerated. Else the
    observed h_ii are taken.

    Examples
    --------
    >>> import wellcal as wc
    >>> from wellcal.hypotests.setup import make_setup
    >>> zeros = np.zeros(50, int)
    >>> [round(effective_cases(make_setup(zeros, wc.Bernoulli(np.full(50, p)))), 2) for p in (0.5, 1e-6)]
    [50.0, 0.0]
    """
    n = setup.n_samples
    if why_not_resampled(setup.predictions) is not None:
        return _worth(setup.diagonal[:, None], np.ones((n, 1)))
    listed = _listed(setup.predictions)
    if listed is None:
        count = -(-_DRAWN // n)
        sets = draw_targets(setup.predictions, np.random.default_rng(0), count, setup.targets)
        values = _diagonals_of_all(setup, sets)
        return _worth(values, np.full((n, count), 1.0 / count))
    count = listed.shape[1]
    cases = np.random.default_rng(0).permutation(n)[: max(_LOOKED_AT // count, 50)]
    sets = np.repeat(np.arange(count, dtype=setup.targets.dtype)[:, None], len(cases), axis=1)
    return _worth(_diagonals(setup, cases, sets), listed[cases]) * n / len(cases)


def _worth(values: NDArray, probabilities: NDArray) -> float:
    """``(sum E h)^2 / sum E h^2`` from values and their probabilities, each ``(n, m)``."""
    second = float(np.sum(probabilities * values**2))
    return float(np.sum(probabilities * values)) ** 2 / second if second > 0.0 else 0.0


def _diagonals(setup: Setup, cases: NDArray, sets: NDArray) -> NDArray:
    """h_ii of some cases, ``(n, m)``, if each of the sets of targets ``(m, n, ...)`` were observed."""
    predictions = setup.predictions[np.tile(cases, len(sets))]
    problem = setup.problem_of(sets.reshape(-1, *sets.shape[2:]), predictions, few_pairs=True)
    return np.asarray(to_numpy(problem.diagonal())).reshape(len(sets), -1).T


def _diagonals_of_all(setup: Setup, sets: NDArray) -> NDArray:
    """The same for all cases: at once, but where what is known of the batch can serve all sets."""
    if setup.problem.notes.lowered or setup.predictions.target_kind == "counts":  # nodes, or a grid
        return np.stack([to_numpy(setup.problem_of(targets).diagonal()) for targets in sets], axis=1)
    return _diagonals(setup, np.arange(setup.n_samples), sets)


def _listed(predictions: Predictions) -> NDArray | None:
    """Probabilities ``(n, m)`` of the targets 0 .. m - 1, where these are few and all there are."""
    if predictions.kind == "classes":
        found = np.asarray(to_numpy(predictions.class_probs()), dtype=np.float64)
        return found if found.shape[1] <= _ENUMERATED else None
    if predictions.target_kind != "counts" or not predictions.supports("log_prob"):
        return None
    counts = np.repeat(np.arange(10.0)[:, None], len(predictions), axis=1)
    found = np.exp(np.asarray(to_numpy(predictions.log_prob(counts)))).T
    return found if float(np.max(1.0 - found.sum(axis=1))) < 1e-6 else None


# -- deviations at locations -------------------------------------------------------------------


@dataclass(frozen=True)
class Directions:
    """How the covariance of deviations over cases comes about.

    Attributes
    ----------
    cases
        Cases that make up a direction, on average: ``q / sum_i l_i^2`` with the leverages l_i of the cases,
        whose sum is the number q of directions. It is n / q where all have the same, n / (q + 2) for normal
        deviations, and 1 where each direction is the work of a single case.
    excess
        ``1 / cases`` less its value for normal deviations.
    smallest
        Smallest eigenvalue of the correlations, of those that are not rounding.
    """

    cases: float
    excess: float
    smallest: float

    @property
    def few(self) -> bool:
        """Whether too few cases make up a direction for a limit to hold."""
        return self.cases < FEWEST_IN_A_DIRECTION or self.excess > LARGEST_EXCESS


def directions_of(deviations: NDArray) -> Directions:
    """How the covariance of deviations ``(n, J)`` comes about.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> directions_of(rng.normal(size=(1000, 4))).few, directions_of(rng.random((1000, 4)) < 0.001).few
    (False, True)
    """
    n = len(deviations)
    z = deviations - np.mean(deviations, axis=0)
    scales = np.max(np.abs(z), axis=0)
    z = z[:, scales > 0.0] / scales[scales > 0.0]
    z = z / np.sqrt(np.mean(z**2, axis=0))
    if z.shape[1] == 0:
        return Directions(0.0, np.inf, 0.0)
    values, vectors = np.linalg.eigh(z.T @ z / n)
    keep = values > _ROUNDING
    leverages = np.sum((z @ vectors[:, keep]) ** 2 / values[keep], axis=1) / n
    count = int(np.count_nonzero(keep))
    cases = count / float(np.sum(leverages**2))
    return Directions(cases, 1.0 / cases - (count + 2.0) / n, float(values[keep].min()))
