"""Tests that a specialist would choose, as statistics that are large where predictions are wrong.

Their null distributions are simulated, from calibrated models with the same predictions (`levels`): the
limits that textbooks give are off at a hundred cases for most of them, and only tests of one level compare.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from benchmarks.bank.seen import Seen

Array = Any

GROUPS = 10
NAMED_CLASS = 0  # errors of one class are those of this one, and rivals that know a class know it
_STEPS = 25


@dataclass(frozen=True)
class Rival:
    """A test beside `auto`.

    Attributes
    ----------
    name
        What tables call it.
    directed
        Whether it knows what to look for: a moment, a trend, a class. The others look at a whole
        distribution, or at all of a reliability diagram.
    statistic
        From a data set to a number that is large where predictions are wrong.
    told
        Whether it was told the error itself: the class, the coordinate, the curve. It shows what could be
        found, and no test that looks for everything is held to it.
    """

    name: str
    directed: bool
    statistic: Callable[[Seen], float]
    told: bool = False


# -- the PIT ---------------------------------------------------------------------------------


def kolmogorov_smirnov(seen: Seen) -> float:
    u, steps = seen.u, np.arange(len(seen.u) + 1) / len(seen.u)
    return float(max(np.max(steps[1:] - u), np.max(u - steps[:-1])))


def anderson_darling(seen: Seen) -> float:
    z, n = np.sort(seen.z), len(seen.z)
    odd = 2.0 * np.arange(1, n + 1) - 1.0
    return float(-n - np.mean(odd * (special.log_ndtr(z) + special.log_ndtr(-z[::-1]))))


def neyman(seen: Seen) -> float:
    """The smooth test with four Legendre polynomials."""
    x = 2.0 * seen.u - 1.0
    sums = [np.sqrt(2 * k + 1) * np.sum(special.eval_legendre(k, x)) for k in range(1, 5)]
    return float(np.sum(np.square(sums)) / len(x))


def likelihood_ratio(z: Array) -> float:
    """Mean and variance of normal scores against 0 and 1."""
    return float(len(z) * (np.mean(z**2) - 1.0 - np.log(np.var(z))))


def score4(seen: Seen) -> float:
    z = seen.z
    scores = np.stack([z, (z**2 - 1.0) / np.sqrt(2.0)])
    factors = np.stack([np.ones_like(z), seen.ranks])
    return float(np.sum((scores @ factors.T) ** 2) / len(z))


def reset(seen: Seen) -> float:
    """Ramsey's idea: residuals against curves of the predicted centre, quadratic and cubic in its rank."""
    x = seen.ranks / np.sqrt(3.0)  # ranks are uniform on (-1, 1)
    sums = [np.sqrt(2 * k + 1) * np.sum(seen.z * special.eval_legendre(k, x)) for k in (2, 3)]
    return float(np.sum(np.square(sums)) / len(x))


def breusch_pagan(seen: Seen) -> float:
    """Squared residuals against the rank of the predicted spread."""
    z = seen.z
    return float(abs(np.sum((z**2 - 1.0) * seen.spread_ranks)) / np.sqrt(2.0 * len(z)))


# -- numbers ---------------------------------------------------------------------------------


def dispersion(seen: Seen) -> float:
    """Pearson's chi-square over the number of cases, on either side of 1."""
    return float(abs(np.log(seen.variance_ratio)))


def correlation(seen: Seen) -> float:
    """Fisher's z of the two coordinates."""
    r = np.corrcoef(seen.scores, rowvar=False)[0, 1]
    return float(abs(np.arctanh(r)) * np.sqrt(len(seen.scores) - 3.0))


def correlation_trend(seen: Seen) -> float:
    """Products of the two coordinates against the rank of the first predicted mean."""
    ranks = seen.ranks.reshape(seen.scores.shape)[:, 0]
    return float(abs(np.sum(seen.scores[:, 0] * seen.scores[:, 1] * ranks)) / np.sqrt(len(ranks)))


# -- probabilities ---------------------------------------------------------------------------


def spiegelhalter(seen: Seen) -> float:
    y, p = seen.binary
    slope = 1.0 - 2.0 * p
    return float(abs(np.sum((y - p) * slope)) / np.sqrt(np.sum(slope**2 * p * (1.0 - p))))


def hosmer_lemeshow(seen: Seen) -> float:
    """Ten groups of equal size by predicted probability."""
    y, p = seen.binary
    total = 0.0
    for rows in np.array_split(np.argsort(p, kind="stable"), GROUPS):
        expected, variance = np.sum(p[rows]), np.sum(p[rows] * (1.0 - p[rows]))
        total += (np.sum(y[rows]) - expected) ** 2 / max(float(variance), 1e-9)
    return float(total)


def cox(seen: Seen) -> float:
    return intercept_and_slope(*seen.binary)


def cox_one_class(seen: Seen) -> float:
    return intercept_and_slope(seen.hits[:, NAMED_CLASS], seen.probs[:, NAMED_CLASS])


def intercept_and_slope(y: Array, p: Array) -> float:
    """Likelihood ratio of a logistic regression on the logit of `p` against intercept 0 and slope 1."""
    x = special.logit(np.clip(p, 1e-12, 1.0 - 1e-12))
    design = np.stack([np.ones_like(x), x], axis=1)

    def fit(b: Array) -> float:
        eta = design @ b
        return float(np.sum(y * eta - np.logaddexp(0.0, eta)))

    start = np.array([0.0, 1.0])
    b, found = start, fit(start)
    first = found
    for _ in range(_STEPS):
        mean = special.expit(design @ b)
        information = (design * (mean * (1.0 - mean))[:, None]).T @ design
        step = np.linalg.solve(information + 1e-9 * np.eye(2), design.T @ (y - mean))
        while (value := fit(b + step)) < found and np.max(np.abs(step)) > 1e-9:
            step = 0.5 * step
        if value <= found + 1e-10:
            break
        b, found = b + step, value
    return 2.0 * (found - first)


def log_score(seen: Seen) -> float:
    """Sum of log probabilities, standardised by its mean and variance under the predictions."""
    logs = np.log(np.maximum(seen.probs, 1e-300))
    mean = np.sum(seen.probs * logs, axis=1)
    variance = np.sum(seen.probs * logs**2, axis=1) - mean**2
    return float(abs(np.sum(seen.hits * logs) - np.sum(mean)) / np.sqrt(np.sum(variance)))


def class_count(seen: Seen) -> float:
    """How often one class occurs, standardised."""
    y, p = seen.hits[:, NAMED_CLASS], seen.probs[:, NAMED_CLASS]
    return float(abs(np.sum(y - p)) / np.sqrt(np.sum(p * (1.0 - p))))


def class_counts(seen: Seen) -> float:
    """Chi-square of how often each class occurs."""
    off, p = np.sum(seen.hits - seen.probs, axis=0)[1:], seen.probs[:, 1:]  # the first one follows
    return float(off @ np.linalg.solve(np.diag(np.sum(p, axis=0)) - p.T @ p, off))


RIVALS: dict[str, Rival] = {
    rival.name: rival
    for rival in (
        Rival("KS", False, kolmogorov_smirnov),
        Rival("AD", False, anderson_darling),
        Rival("Neyman-4", False, neyman),
        Rival("Berkowitz", False, lambda seen: likelihood_ratio(seen.z)),
        Rival("score4", True, score4),
        Rival("RESET", True, reset, told=True),
        Rival("Breusch-Pagan", True, breusch_pagan, told=True),
        Rival("dispersion", True, dispersion),
        Rival("correlation", True, correlation),
        Rival("correlation trend", True, correlation_trend, told=True),
        Rival("one coordinate", True, lambda seen: likelihood_ratio(seen.first_coordinate), told=True),
        Rival("Spiegelhalter", True, spiegelhalter),
        Rival("HL", False, hosmer_lemeshow),
        Rival("Cox", True, cox),
        Rival("Cox, one class", True, cox_one_class, told=True),
        Rival("log score", True, log_score),
        Rival("class count", True, class_count, told=True),
        Rival("class counts", True, class_counts),
    )
}


def statistics(y: Array, pred: Any, names: tuple[str, ...], rng: np.random.Generator) -> Array:
    """Statistics of rivals for a data set, in the order of their names."""
    seen = Seen(y, pred, rng)
    return np.array([RIVALS[name].statistic(seen) for name in names])
