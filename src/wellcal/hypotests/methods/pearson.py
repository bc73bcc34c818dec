"""A curve with three cumulants of the statistic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.checks import one_of, whole_number
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.warnings import advise
from wellcal.hypotests.few_cases import FEWEST_EFFECTIVE, effective_cases
from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.passes import estimate_from
from wellcal.hypotests.setup import Setup
from wellcal.hypotests.tails import pearson_tail
from wellcal.hypotests.traces import MOST_SETS, SET, Trace, exact_trace, hutchinson_trace, sampled_trace

FEWEST_SETS = 8
"""Sets of cases from which a standard error is taken."""

SAMPLED_FROM = 12_000  # cases from which products with random vectors take more than about 2 seconds
_STEP = 1e-3  # relative, of cumulants, for the slope of the p-value
EXACT_UP_TO = 4096  # cases up to which a product of two n x n matrices is a matter of seconds


@dataclass(frozen=True)
class Pearson(Method):
    """Pearson type III curve with the first three cumulants of n SKCE_u.

    Parameters
    ----------
    traces
        "exact": by a product of the n x n matrix of h with itself; "hutchinson": by products with
        random vectors, in two passes over the pairs that do not store the matrix; "sampled": k2 and k3 from
        64 to 512 random sets of 512 cases, while the statistic is over all pairs; "auto": exact up to 4096
        cases, and sampled from 12,000 on, where random vectors would take more than about two seconds.
    probes
        Number of random vectors.

    Notes
    -----
    Under calibration T = n SKCE_u has mean 0, variance k2 and third cumulant about k3,

        k2 = 2 sum_{i != j} h_ij^2 / (n (n - 1)),
        k3 = 8 sum_{i, j, k distinct} h_ij h_jk h_ki / (n (n - 1) (n - 2)).

    With the skewness g = k3 / k2^1.5 and a = 4 / g^2, ``a + sqrt(a) T / sqrt(k2)`` is taken as a gamma
    variate of shape a, and as normal for k3 <= 0. Where h_ij = 0 for all pairs, p = 1.

    The cumulants are those of the cases that were seen, and the curve is for many of them. Where few carry
    the statistic it is wrong, and a warning is given: at alpha = 0.05 and 30 cases, calibrated binary
    predictions within 0.01 of 0 or 1 were rejected in 0.84 of data sets, since as long as nothing unlikely
    happens the cases vary far less than they could. How many cases carry it is asked of the predictions,
    ``(sum E h_ii)^2 / sum E h_ii^2``: with more than 5 no error rate above 0.10 was found. Where most cases
    are alone it is asked of the pairs, too: the same with the sum of h_ij^2 over the partners of a case in
    place of h_ii, and the lower number counts. ``method="exact"`` has no such limit.

    The sum over pairs is exact in any case. The sum over triples is the trace of the cube of H0, the
    matrix of h with a zero diagonal. Half of the random vectors V find a subspace Q in which H0 V lies
    for the most part; the trace of the cube of ``H0 - (I - QQ') H0 (I - QQ')`` is then known, and only
    the rest is left to the other half (after Meyer, Musco, Musco and Woodruff, 2021, Hutch++). The
    standard error is in the provenance.

    With "sampled", k2 and k3 are means over the pairs and triples within random sets of cases, in which
    cases of a large h_ii, or of a large sum over their pairs, are likelier, and count less in return; the
    provenance has the standard errors of the standard deviation, the skewness and the p-value that are due
    to it.

    References
    ----------
    Gretton et al. (2007), A kernel method for the two-sample-problem. Buckley, Eagleson (1988), An
    approximation to the distribution of quadratic forms in normal random variables.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> y = mu + 0.8
    >>> pred = wc.Normal(mu, np.ones(100))
    >>> bool(wc.calibration_test(y, pred, method="pearson").pvalue < 1e-6)
    True
    """

    traces: str = "auto"
    probes: int = 64

    name: ClassVar[str] = "pearson"
    resamples: ClassVar[bool] = False
    fewest: ClassVar[int] = 3

    def __post_init__(self) -> None:
        one_of(self.traces, "traces", ("auto", "exact", "hutchinson", "sampled"))
        object.__setattr__(self, "probes", whole_number(self.probes, "probes", least=4))

    def by_matrix(self, n_samples: int) -> bool:
        """Whether the sum over triples is exact for so many cases."""
        return self.traces == "exact" or (self.traces == "auto" and n_samples <= EXACT_UP_TO)

    def _way(self, setup: Setup) -> str:
        """How the sums over pairs and triples are found."""
        if self.traces != "auto":
            return self.traces
        if self.by_matrix(setup.n_samples):
            return "exact"
        return "sampled" if setup.n_samples >= SAMPLED_FROM else "hutchinson"

    def run(self, setup: Setup) -> Outcome:
        """The p-value of a prepared case."""
        n = setup.n_samples
        way = self._way(setup)
        if way == "sampled" and n < FEWEST_SETS * SET:
            raise ValueError(
                f'traces="sampled" needs {FEWEST_SETS} sets of {SET} cases, {FEWEST_SETS * SET:,} in all, '
                f'found {n:,}; take traces="auto"'
            )
        trace = self._trace(setup, way)
        estimate = estimate_from(setup, trace.sums)
        statistic = n * float(estimate)
        k2 = 2.0 * trace.squares / (n * (n - 1.0))
        share = 8.0 / (n * (n - 1.0) * (n - 2.0))
        k3 = share * trace.triples
        # h_ii know nothing of who meets whom: among many that are alone, few may be all of the statistic.
        effective = effective_cases(setup)
        if trace.squares > 0.0:
            effective = min(effective, trace.carriers)
        if effective < FEWEST_EFFECTIVE:
            advise(
                f"n SKCE_u is carried by few cases: it varies as that of {effective:.2g} cases of {n} would, "
                'and the curve of method="pearson" is for many; the p-value may be far too small: take '
                'method="exact", or more cases'
            )
        provenance: dict[str, Any] = {
            "effective_cases": effective,
            "traces": way,
            "standard_deviation": math.sqrt(k2),
            "skewness": k3 / k2**1.5 if k2 > 0 else 0.0,
        }
        if trace.error is not None:
            error = share * trace.error / k2**1.5 if k2 > 0 else 0.0
            provenance |= {"skewness_standard_error": error}
        pvalue = pearson_tail(statistic, k2, k3) if k2 > 0 else 1.0
        if trace.shares is not None and k2 > 0:
            provenance |= _errors(statistic, k2, k3, trace.shares, share * trace.unseen)
        elif trace.error is not None:
            provenance["probes"] = self.probes
        return Outcome(statistic, pvalue, "n SKCE_u", estimate, None, provenance)

    def _trace(self, setup: Setup, way: str) -> Trace:
        if way == "sampled":
            return sampled_trace(setup, SET, MOST_SETS)
        return exact_trace(setup) if way == "exact" else hutchinson_trace(setup, self.probes)


def _errors(statistic: float, k2: float, k3: float, shares: NDArray, unseen: float) -> dict[str, Any]:
    """Standard errors of what follows from k2 and k3, whose relative deviations are known for each set.

    In no set may be what would raise k3 by `unseen`.
    """
    sets = shares.shape[1]

    def error(deviations: NDArray) -> float:
        return float(np.std(deviations, ddof=1)) / math.sqrt(sets)

    def tail(a: float, b: float) -> float:
        return pearson_tail(statistic, k2 * (1.0 + a), k3 * (1.0 + b))

    slopes = [(tail(_STEP, 0.0) - tail(-_STEP, 0.0)), (tail(0.0, _STEP) - tail(0.0, -_STEP))]
    return {
        "sets_of_cases": sets,
        "standard_deviation_standard_error": math.sqrt(k2) * 0.5 * error(shares[0]),
        "skewness_standard_error": math.hypot(abs(k3) * error(shares[1] - 1.5 * shares[0]), unseen) / k2**1.5,
        "pvalue_standard_error": math.hypot(
            error(np.array(slopes) / (2.0 * _STEP) @ shares),
            pearson_tail(statistic, k2, k3 + unseen) - pearson_tail(statistic, k2, k3),
        ),
    }
