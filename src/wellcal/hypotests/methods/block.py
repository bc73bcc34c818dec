"""The test with the mean of the calibration error over blocks of cases."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.checks import one_of, whole_number
from wellcal._arrays.namespaces import Array, NDArray
from wellcal._arrays.rows import Rows
from wellcal.engines.reductions import Sums
from wellcal.hypotests.draws import draw_chi_square_sum
from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.passes import check_finite, eigenvalues_of
from wellcal.hypotests.pvalues import monte_carlo_pvalue, tie_width
from wellcal.hypotests.setup import Setup
from wellcal.hypotests.tails import normal_tail, student_tail
from wellcal.measures._skce import BlockSize, block_values, estimate_from_block_sums, resolve_block_size
from wellcal.measures.estimate import Estimate
from wellcal.problem.problem import Problem, some_cases


@dataclass(frozen=True)
class Block(Method):
    """Mean of SKCE over blocks of cases: linear in the number of cases for a fixed block size.

    Parameters
    ----------
    block_size
        Cases in a block B: an integer, "sqrt", a function of n, or None for floor(sqrt(n)). An
        incomplete last block is left out and reported.
    n_blocks
        Number of blocks s instead; B is then floor(n / s), and cases beyond s B are left out.
    variance
        "blocks": empirical standard deviation of the block values; "pairs": from the mean of h^2 over
        the pairs within blocks, which holds under calibration only and is better for few blocks.
    quantiles
        "normal", or "t" with s - 1 degrees of freedom, for few blocks of many cases.
    null
        "normal", or "weighted_chi2" for a fixed number of blocks.
    shuffle
        Whether to put the cases into a random order first.

    Notes
    -----
    With eta_b the unbiased estimate in block b, the statistic is their mean over its standard error,

        z = sqrt(s) SKCE_B / sd(eta),   or   z = sqrt(s B (B - 1)) SKCE_B / (sqrt(2) sigma)

    with sigma^2 the mean of h^2 over pairs within blocks, and p = P(Z >= z). Blocks may be of a fixed
    size or grow with n (paper, remarks on fixed and on increasing block sizes).

    Where all blocks have the same value, their standard deviation is no measure of error: the second
    formula is taken then, and the result says so. Where h is 0 for all pairs, z = 0 and p = 1.

    For a fixed number of blocks and B growing, ``B SKCE_B`` tends to ``sum_i lambda_i (Z_i - s) / s``
    with Z_i chi-square of s degrees of freedom (paper, corollary on a fixed number of blocks).
    ``null="weighted_chi2"`` draws from it with the eigenvalues of H / n for lambda_i, which needs the
    whole matrix of h.

    References
    ----------
    Widmann, Lindsten, Zachariah (2021), appendix "Calibration tests". Zaremba, Gretton, Blaschko (2013),
    B-tests. Chwialkowski et al. (2015), Fast two-sample testing.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> y = mu + 0.5
    >>> pred = wc.Normal(mu, np.ones(100))
    >>> result = wc.calibration_test(y, pred, method=wc.hypotests.Block(5, variance="pairs"))
    >>> result.provenance["blocks"], bool(result.pvalue < 0.01)
    (20, True)
    """

    block_size: BlockSize = None
    n_blocks: int | None = None
    variance: str = "blocks"
    quantiles: str = "normal"
    null: str = "normal"
    shuffle: bool = False

    name: ClassVar[str] = "block"
    resamples: ClassVar[bool] = False
    few_pairs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of(self.variance, "variance", ("blocks", "pairs"))
        one_of(self.quantiles, "quantiles", ("normal", "t"))
        one_of(self.null, "null", ("normal", "weighted_chi2"))
        if self.block_size is not None and self.n_blocks is not None:
            raise ValueError("give block_size or n_blocks, not both")
        if self.quantiles == "t" and self.variance == "pairs":
            raise ValueError(
                'quantiles="t" goes with variance="blocks": it has blocks - 1 degrees of freedom'
            )
        if self.null == "weighted_chi2":
            if (self.variance, self.quantiles) != ("blocks", "normal"):
                raise ValueError('null="weighted_chi2" has no use for variance and quantiles; leave them out')
            object.__setattr__(self, "resamples", True)

    def run(self, setup: Setup) -> Outcome:
        """The p-value of a prepared case."""
        size, count = self._layout(setup.n_samples)
        if count == 1 and self.null == "normal" and self.variance == "blocks":
            smaller = f"a block_size of at most {setup.n_samples // 2}, " if setup.n_samples >= 4 else ""
            raise ValueError(
                f"one block of {size} of {setup.n_samples} cases has no standard deviation; take {smaller}"
                'variance="pairs" or null="weighted_chi2"'
            )
        problem = setup.problem
        if self.shuffle:
            problem = some_cases(problem, setup.rng.permutation(setup.n_samples))
        if count < setup.n_samples // size:
            problem = some_cases(problem, slice(0, count * size))  # room for more blocks than were asked for
        sums = setup.engine.blocks(problem, size)
        check_finite(setup, sums.total)
        estimate = self._estimate(setup, problem, sums, size, count)
        if self.null == "weighted_chi2":
            return _weighted_chi_square(setup, estimate, size, count)
        values = np.asarray(block_values(sums.rows, size, count))
        return self._studentised(setup, problem, estimate, values, size)

    def _layout(self, n: int) -> tuple[int, int]:
        """Cases in a block, and number of blocks."""
        if self.n_blocks is None:
            size = resolve_block_size(self.block_size, n)
            return size, n // size
        count = whole_number(self.n_blocks, f"n_blocks of {n} cases", least=1, most=n // 2)
        return n // count, count

    def _estimate(self, setup: Setup, problem: Problem, sums: Sums, size: int, count: int) -> Estimate:
        found = estimate_from_block_sums(problem, setup.engine, sums, size, shuffled=self.shuffle)
        left_out = {**found.provenance, "dropped": setup.n_samples - count * size}
        return setup.reported(replace(found, n_samples=setup.n_samples, provenance=left_out))

    def _studentised(
        self, setup: Setup, problem: Problem, estimate: Estimate, values: NDArray, size: int
    ) -> Outcome:
        count = len(values)
        provenance: dict[str, Any] = {}
        variance = self.variance
        spread = float(np.std(values, ddof=1)) if variance == "blocks" else 0.0
        if variance == "blocks" and spread <= tie_width(values):
            variance, provenance["note"] = "pairs", "all blocks have the same value"
        if variance == "pairs":
            pairs = 0.5 * size * (size - 1.0)
            squares = float(setup.engine.blocks(_squared(problem), size).total)
            spread = math.sqrt(squares / (count * pairs)) / math.sqrt(pairs)
        found = self.in_units(estimate, spread, count, variance)
        return replace(found, provenance={**provenance, **found.provenance})

    def in_units(self, estimate: Estimate, spread: float, count: int, variance: str) -> Outcome:
        """The p-value of an estimate over blocks, from the standard deviation of a block and their number.

        `variance` says what that was found from.
        """
        z = math.sqrt(count) * float(estimate) / spread if spread > 0.0 else 0.0
        student = self.quantiles == "t" and variance == "blocks"
        known: dict[str, Any] = choices(estimate)
        known |= {"variance": variance, "quantiles": "t" if student else "normal"}
        if spread == 0.0:
            return Outcome(0.0, 1.0, "z", estimate, None, {**known, "note": "h is 0 for all pairs"})
        pvalue = student_tail(z, count - 1) if student else normal_tail(z)
        return Outcome(z, pvalue, "t" if student else "z", estimate, None, known)


def _weighted_chi_square(setup: Setup, estimate: Estimate, size: int, count: int) -> Outcome:
    eigenvalues = eigenvalues_of(setup, 'null="weighted_chi2"')[0]
    null = draw_chi_square_sum(setup.rng, eigenvalues, count, setup.n_resamples)
    statistic = size * float(estimate)
    provenance = {**choices(estimate), "null": "weighted chi-square", "n_resamples": setup.n_resamples}
    return Outcome(statistic, monte_carlo_pvalue(statistic, null), "B SKCE_B", estimate, null, provenance)


def choices(estimate: Estimate) -> dict[str, Any]:
    """What an estimate says of its blocks."""
    return {key: estimate.provenance[key] for key in ("block_size", "blocks", "dropped", "shuffled")}


class _Squared(Problem):
    """A problem whose pairs have the value h^2, for engines to sum."""

    def h(self, a: Rows, b: Rows) -> Array:
        return super().h(a, b) ** 2


def _squared(problem: Problem) -> Problem:
    return _Squared(
        problem.n,
        problem.rows,
        problem.terms,
        problem.kernel,
        problem.notes,
        problem.xp,
        problem.self_correction,
    )
