"""Tests that draw the limit of n SKCE_u under calibration: bootstrap, multipliers, spectrum.

Under calibration n SKCE_u tends to ``sum_i lambda_i (Z_i - 1)`` with independent chi-square variables Z_i
and the eigenvalues lambda_i of h (paper, remark on the unbiased estimator). Each of these methods draws
from an estimate of that distribution.

The limit rests on h having mean 0 given either of its arguments. That fails for predictions that are a
few draws, of which the kernel on predictions sees the same errors as the expectations: the methods pool
draws with their target, after which it holds exactly. (With 5 draws and 64 cases, pooling brings type I
errors of 0.17 to 0.21 at level 0.05 down to 0.04 to 0.05.)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.engines.reductions import Sums
from wellcal.hypotests.base import Outcome, Setup, monte_carlo_pvalue
from wellcal.hypotests.passes import (
    check_finite,
    chunks,
    dense,
    estimate_from,
    quadratic_forms,
    scaled_sums,
    sums_of,
    whole_diagonal,
)
from wellcal.measures.estimate import Estimate

_DRAWN = 4_194_304  # numbers that are drawn at a time
_BITS = 32  # sign vectors that are drawn together
_FEW = 6  # units with signs below which p cannot fall under 0.05


@dataclass(frozen=True)
class Bootstrap:
    """Bootstrap of the degenerate U-statistic.

    Notes
    -----
    The statistic is n SKCE_u. A resample draws n cases with replacement and evaluates the U-statistic of
    h centred at the data, ``h(a, b) - mean_j h(a, j) - mean_i h(i, b) + mean_ij h(i, j)`` (Arcones and
    Giné, 1992). With C the number of times that each case is drawn and a = n / (n - 1) this is

        U* = (a (C' H C - C' diag H) - 2 C' H 1 + 1' H 1) / n^2,

    which is compared with SKCE_u. All resamples share one pass over the pairs; the matrix H is not
    stored. Cost: O(n^2 R) multiplications.

    References
    ----------
    Arcones, Giné (1992), On the bootstrap of U and V statistics, Annals of Statistics 20.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> y = mu + 0.8
    >>> pred = wc.Normal(mu, np.ones(100))
    >>> wc.calibration_test(y, pred, method="bootstrap", rng=0).pvalue
    0.001
    """

    name: ClassVar[str] = "bootstrap"
    exchanges_draws: ClassVar[bool] = True
    resamples: ClassVar[bool] = True
    clusters: ClassVar[bool] = False
    fewest: ClassVar[int] = 2

    def run(self, setup: Setup) -> Outcome:
        """The p-value of a prepared case."""
        n, count = setup.n, setup.n_resamples
        diagonal = whole_diagonal(setup, "the bootstrap")
        null = np.empty(count)
        sums = Sums(0.0, np.zeros(n))
        for part in chunks(n, count, bytes_each=1):
            drawn = draw_counts(setup.rng, n, part.stop - part.start)
            forms = quadratic_forms(setup, drawn.T)
            sums = forms.sums
            rows = sums.rows + diagonal
            linear = np.empty((len(drawn), 2))
            for group in _groups(n, len(drawn)):
                times = np.asarray(drawn[group], float)
                linear[group] = np.stack([(times**2 - times) @ diagonal, times @ rows], axis=1)
            pairs = forms.values + linear[:, 0]
            null[part] = pairs / (n - 1.0) - 2.0 * linear[:, 1] / n + rows.sum() / n
        estimate = estimate_from(setup, sums)
        statistic = n * float(estimate)
        pvalue = monte_carlo_pvalue(statistic, null)
        return Outcome(statistic, pvalue, "n SKCE_u", estimate, null, {"n_resamples": count})


def draw_counts(rng: np.random.Generator, n: int, count: int) -> NDArray:
    """How often each of n cases is among n draws with replacement, ``(count, n)``.

    Counting uniform draws takes a fraction of the time of multinomial variates.
    """
    out = np.empty((count, n), np.uint8)
    for group in _groups(n, count):
        size = group.stop - group.start
        drawn = rng.integers(0, n, size=(size, n)) + n * np.arange(size)[:, None]
        times = np.bincount(drawn.reshape(-1), minlength=size * n).reshape(size, n)
        if times.max() > np.iinfo(out.dtype).max:
            out = out.astype(times.dtype)
        out[group] = times
    return out


@dataclass(frozen=True)
class Multiplier:
    """Multiplier (wild) bootstrap: random signs for cases, or for clusters of them.

    Parameters
    ----------
    signs
        "rademacher": -1 or 1 with equal probability; "normal": standard normal variates.

    Notes
    -----
    The statistic is n SKCE_u, compared with ``T* = sum_{i != j} e_i e_j h_ij / (n - 1)`` for random
    multipliers e. All resamples share one pass over the pairs; the matrix H is not stored.

    Where cases come in clusters (patients, accounts), the statistic is n times the mean of h over pairs
    of different clusters, and all cases of a cluster have the same multiplier: whatever the dependence
    within clusters, both have the same limit under calibration as the number of clusters grows.

    Signs of m cases or clusters make 2^(m - 1) different values of the statistic, one of which is the
    observed one: p does not fall much below 2^(1 - m).

    References
    ----------
    Dehling, Mikosch (1994), Random quadratic forms and the bootstrap for U-statistics. Leucht, Neumann
    (2013), Dependent wild bootstrap for degenerate U- and V-statistics.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> y = mu + 0.8
    >>> pred, patient = wc.Normal(mu, np.ones(100)), np.arange(100) // 5
    >>> result = wc.calibration_test(y, pred, method="multiplier", groups=patient, rng=0)
    >>> result.provenance["clusters"], result.pvalue
    (20, 0.001)
    """

    signs: str = "rademacher"

    name: ClassVar[str] = "multiplier"
    exchanges_draws: ClassVar[bool] = True
    resamples: ClassVar[bool] = True
    clusters: ClassVar[bool] = True
    fewest: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.signs not in ("rademacher", "normal"):
            raise ValueError(f'signs must be "rademacher" or "normal", found {self.signs!r}')

    def run(self, setup: Setup) -> Outcome:
        """The p-value of a prepared case."""
        n, groups = setup.n, setup.groups
        units = n if groups is None else int(groups.max()) + 1
        sizes = np.ones(n) if groups is None else np.bincount(groups)
        self._check_units(units, "cases" if groups is None else "clusters")
        pairs = float(n**2 - np.sum(sizes**2))
        null = np.empty(setup.n_resamples)
        sums = Sums(0.0, np.zeros(n))
        for part, drawn in self._draws(setup, units):
            forms = quadratic_forms(setup, (drawn if groups is None else drawn[:, groups]).T)
            sums = forms.sums
            null[part] = n * forms.values / pairs
        provenance: dict[str, Any] = {"n_resamples": setup.n_resamples, "signs": self.signs}
        if groups is None:
            estimate = estimate_from(setup, sums)
        else:
            estimate = between_clusters(setup, sums, groups, sizes, pairs)
            provenance |= {"clusters": units, "largest_cluster": int(sizes.max())}
        statistic = n * float(estimate)
        label = "n SKCE_u" if groups is None else "n SKCE_u between clusters"
        return Outcome(statistic, monte_carlo_pvalue(statistic, null), label, estimate, null, provenance)

    def _check_units(self, units: int, what: str) -> None:
        if units < 2:
            raise ValueError(
                f"groups must name at least 2 clusters, found {units}: pairs within a cluster are not used"
            )
        if units < _FEW and self.signs == "rademacher":
            warnings.warn(
                f"{units} {what} have {2 ** (units - 1)} different patterns of signs, so that p does not "
                f"fall below about {2.0 ** (1 - units):.2g}; more {what} are needed to reject at 0.05",
                stacklevel=4,
            )
        elif units < _FEW and what == "clusters":
            warnings.warn(
                f"{units} clusters are few: the test is valid for many of them only, and rarely rejects",
                stacklevel=4,
            )

    def _draws(self, setup: Setup, units: int) -> Iterator[tuple[slice, NDArray]]:
        """Multipliers ``(r, units)`` for all resamples, in parts that one pass handles."""
        rademacher = self.signs == "rademacher"
        parts = chunks(setup.n, setup.n_resamples, 1 if rademacher else 8, _BITS if rademacher else 1)
        for part in parts:
            count = part.stop - part.start
            if rademacher:
                yield part, draw_signs(setup.rng, units, count)
            else:
                yield part, setup.rng.standard_normal((count, units))


def draw_signs(rng: np.random.Generator, n: int, count: int) -> NDArray:
    """Random signs ``(count, n)``, one for each bit that is drawn."""
    words = -(-count // _BITS)
    drawn = np.frombuffer(rng.bytes(words * n * _BITS // 8), np.uint8).reshape(words, n, _BITS // 8)
    bits = np.unpackbits(drawn, axis=2).transpose(0, 2, 1).reshape(words * _BITS, n)[:count]
    return 2 * bits.view(np.int8) - 1


def between_clusters(setup: Setup, sums: Sums, groups: NDArray, sizes: NDArray, pairs: float) -> Estimate:
    """Mean of h over pairs of different clusters, with a standard error over clusters.

    With r_g the sum of h over pairs of cluster g with others, n_g its size and m the mean, cluster g
    adds ``psi_g = 2 (r_g - m n_g (n - n_g)) / pairs`` to the error; for clusters of one case the standard
    error is that of SKCE_u.
    """
    check_finite(setup, sums.total)
    sums = scaled_sums(sums, 1.0 / setup.factor)  # the setup puts it back
    value = 2.0 * float(sums.total) / pairs
    psi = 2.0 * (np.bincount(groups, weights=sums.rows) - value * sizes * (setup.n - sizes)) / pairs
    count = len(sizes)
    error = float(np.sqrt(count / (count - 1.0) * np.sum(psi**2))) if count > 2 else None
    provenance = {
        **setup.problem.notes.as_dict(),
        **setup.engine.describe(setup.problem),
        "pairs": "between clusters",
    }
    name, kernel = "unbiased, between clusters", setup.problem.kernel
    return setup.scaled(Estimate(value, error, "SKCE", name, setup.n, kernel, provenance))


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the matrix of h as weights of chi-square variables.

    Notes
    -----
    The statistic is n SKCE_u, compared with draws of ``sum_i l_i (Z_i - 1)``, Z_i chi-square with one
    degree of freedom and l_i the eigenvalues of H / n, where H holds h_ii on its diagonal.

    The whole matrix is needed: 8 n^2 bytes and O(n^3) operations.

    References
    ----------
    Gretton, Fukumizu, Harchaoui, Sriperumbudur (2009), A fast, consistent kernel two-sample test.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> y = mu + 0.8
    >>> pred = wc.Normal(mu, np.ones(100))
    >>> wc.calibration_test(y, pred, method="spectrum", rng=0).pvalue
    0.001
    """

    name: ClassVar[str] = "spectrum"
    exchanges_draws: ClassVar[bool] = True
    resamples: ClassVar[bool] = True
    clusters: ClassVar[bool] = False
    fewest: ClassVar[int] = 2

    def run(self, setup: Setup) -> Outcome:
        """The p-value of a prepared case."""
        eigenvalues, sums = spectrum(setup, 'method="spectrum"')
        null = draw_chi_square_sum(setup.rng, eigenvalues, 1, setup.n_resamples)
        estimate = estimate_from(setup, sums)
        statistic = setup.n * float(estimate)
        provenance = {"n_resamples": setup.n_resamples, "largest_eigenvalue": float(eigenvalues[-1])}
        pvalue = monte_carlo_pvalue(statistic, null)
        return Outcome(statistic, pvalue, "n SKCE_u", estimate, null, provenance)


def spectrum(setup: Setup, what: str) -> tuple[NDArray, Sums]:
    """Eigenvalues of H / n in ascending order, and the sums of h over all pairs."""
    diagonal = whole_diagonal(setup, what)
    matrix = dense(setup, what)
    sums = sums_of(matrix)
    np.fill_diagonal(matrix, diagonal)
    return np.linalg.eigvalsh(matrix) / setup.n, sums


def draw_chi_square_sum(rng: np.random.Generator, weights: NDArray, degrees: int, count: int) -> NDArray:
    """Draws ``(count,)`` of ``sum_i w_i (Z_i - s) / s``, Z_i chi-square with s degrees of freedom."""
    out = np.empty(count)
    for group in _groups(len(weights), count):
        shape = (group.stop - group.start, len(weights))
        drawn = rng.standard_normal(shape) ** 2 if degrees == 1 else rng.chisquare(degrees, shape) / degrees
        out[group] = (drawn - 1.0) @ weights
    return out


def _groups(n: int, count: int) -> list[slice]:
    """`count` rows of n numbers, as many at a time as are drawn at once."""
    size = max(1, _DRAWN // max(n, 1))
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
