r"""Evidence against calibration as the gain of a bet: the e-value beside the p-value.

An alternative q_i to the prediction P_i gives a bet on the target, q_i(y_i) / p_i(y_i), whose expectation is
one if the target follows the prediction. Products over cases, and averages of these over alternatives that
were fixed before the targets were seen, have expectation one too:

    E = sum_k w_k prod_i q_ik(y_i) / p_i(y_i),    P(E >= 1 / alpha) <= alpha

by Markov's inequality, at every number of cases and without resampling. The bets (`likelihood_bets`) are
exactly fair: their expectations are sums, or known, and not estimated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import special

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.likelihood_bets import Bettor, bets_per_case, fair_bets, why_no_bets
from wellcal.predictions import Predictions


class Evidence(NamedTuple):
    """The logarithm of an e-value; where there is none, NaN and why."""

    log_e: float
    reason: str | None = None


IN_CLUSTERS = Evidence(math.nan, "cases of one cluster depend on each other: bets on them do not multiply")
"""Of cases that depend on each other."""

_MOST_DIGITS = 1000  # of an e-value that is shown


def evidence_against(targets: NDArray, predictions: Predictions, clusters: NDArray | None = None) -> Evidence:
    """The evidence of targets, as `check_targets` returned them, against predictions in NumPy.

    Parameters
    ----------
    targets, predictions
        The cases.
    clusters
        Number of the cluster of each case, or None. Bets on cases that depend on each other do not multiply.

    Examples
    --------
    >>> import wellcal as wc
    >>> pred = wc.Normal(np.zeros(100), np.ones(100))
    >>> y = pred.sample(rng=0)
    >>> [round(evidence_against(y + shift, pred).log_e, 1) for shift in (0.0, 0.7)]
    [-1.8, 26.9]
    >>> evidence_against(np.zeros(100), pred, clusters=np.zeros(100, int)).reason
    'cases of one cluster depend on each other: bets on them do not multiply'
    """
    n = len(predictions)
    if clusters is not None and len(np.unique(clusters)) < n:
        return IN_CLUSTERS
    reason = why_no_bets(targets, predictions)
    if reason is not None:
        return Evidence(math.nan, reason)
    return Evidence(mixed(summed_gains(fair_bets(predictions), targets, predictions)))


def summed_gains(bet: Bettor, targets: NDArray, predictions: Predictions) -> list[NDArray]:
    """Logarithms of gains on some cases together, by kind: sums over cases, a few at a time."""
    gains: list[NDArray] = []
    for chunk in in_chunks(len(predictions), bets_per_case(predictions)):
        sums = [np.sum(kind, axis=0) for kind in bet(targets[chunk], predictions[chunk])]
        gains = [before + new for before, new in zip(gains, sums, strict=True)] if gains else sums
    return gains


@dataclass(frozen=True, eq=False)
class EvidenceLater:
    """Evidence of the cases of a test, found once somebody asks.

    Attributes
    ----------
    targets, predictions, clusters
        As in `evidence_against`.
    """

    targets: NDArray
    predictions: Predictions
    clusters: NDArray | None = None

    def knowing(self, found: Evidence) -> EvidenceLater:
        """The same, of cases that are some of all, with what was found of all."""
        self.__dict__["found"] = found
        return self

    @cached_property
    def found(self) -> Evidence:
        """The same whenever it is asked for."""
        return evidence_against(self.targets, self.predictions, self.clusters)

    def log_e(self) -> float:
        """The logarithm of the e-value."""
        return self.found.log_e


def mixed(gains: list[NDArray]) -> float:
    """The logarithm of the average gain, from logarithms of gains by kind: each kind has the same weight.

    Examples
    --------
    >>> round(float(np.exp(mixed([np.log([1.0, 3.0]), np.log([4.0])]))), 12)
    3.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        each = [float(special.logsumexp(kind)) - math.log(kind.size) for kind in gains]
        return float(special.logsumexp(each)) - math.log(len(each))


def e_value_text(log_e: float) -> str:
    """An e-value for people: large ones, and small ones, as powers of ten, of a thousand digits at most.

    Examples
    --------
    >>> [e_value_text(x) for x in (0.7, 15.7, -30.0, math.inf)]
    ['2.01', '10^6.8', '10^-13.0', 'infinite']
    >>> e_value_text(1e300), e_value_text(-1e300)
    ('more than 10^1000', 'less than 10^-1000')
    """
    if math.isinf(log_e):
        return "infinite" if log_e > 0 else "0"
    decimal = log_e / math.log(10.0)
    if abs(decimal) > _MOST_DIGITS:
        return f"more than 10^{_MOST_DIGITS}" if decimal > 0 else f"less than 10^-{_MOST_DIGITS}"
    return f"{math.exp(log_e):.3g}" if abs(decimal) < 3.0 else f"10^{decimal:.1f}"
