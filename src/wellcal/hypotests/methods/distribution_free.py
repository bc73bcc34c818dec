"""The test whose p-value holds for every distribution and every number of cases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.checks import one_of, positive_number
from wellcal._arrays.namespaces import to_numpy
from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.passes import check_finite, estimate_from
from wellcal.hypotests.setup import Setup
from wellcal.hypotests.tails import positive
from wellcal.kernels.base import Kernel
from wellcal.measures._skce import BlockSize, estimate_blocks, resolve_block_size


@dataclass(frozen=True)
class DistributionFree(Method):
    """A bound on the p-value that holds for every distribution: valid at any n, and very cautious.

    Parameters
    ----------
    estimator
        "block": the mean over blocks, in time linear in n for a fixed block size; "biased": the plug-in
        estimate over all pairs, whose bound needs a positive definite kernel.
    block_size
        Only for "block": as for the block estimator of :func:`wellcal.skce`.
    bound
        A bound b of ``|h|``. None takes it from the kernel; a kernel that is a user's own function does not
        say what it is, and a kernel class of a user does where it declares its `supremum`.

    Notes
    -----
    h is the sum of two terms k and E E k with a plus sign and two terms E k with a minus sign. Where
    0 <= k <= K, as for all kernels of this package, either sign adds up to at most 2 K, so that
    ``|h| <= b = 2 K``. A kernel that takes values of both signs, ``|k| <= K``, has only ``|h| <= b = 4 K``.

    "block": each block is a U-statistic that averages over ways to cut it into floor(B / 2) independent
    pairs. By Hoeffding (1963, section 5), for a mean s over floor(n / B) blocks,

        p = exp(-floor(n / B) floor(B / 2) s^2 / (2 b^2))   for s > 0, and p = 1 for s <= 0.

    "biased": SKCE_b is the squared norm of a mean of n independent elements of a Hilbert space, each of
    squared norm h_ii <= b and mean 0 under calibration. The norm has an expectation of at most
    sqrt(b / n) and changes by at most 2 sqrt(b) / n with one case, so that by McDiarmid's inequality

        p = exp(-max(sqrt(n SKCE_b / b) - 1, 0)^2 / 2).

    References
    ----------
    Widmann, Lindsten, Zachariah (2019), Calibration tests in multi-class classification, with the sign
    of the estimate and odd blocks taken into account.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> y = mu + 4.0
    >>> pred = wc.Normal(mu, np.ones(100))
    >>> result = wc.calibration_test(y, pred, method=wc.hypotests.DistributionFree("biased"))
    >>> result.provenance["bound"], bool(result.pvalue < 0.05)
    (2.0, True)
    """

    estimator: str = "block"
    block_size: BlockSize = 2
    bound: float | None = None

    name: ClassVar[str] = "distribution_free"
    resamples: ClassVar[bool] = False

    def __post_init__(self) -> None:
        one_of(self.estimator, "estimator", ("block", "biased"))
        if self.bound is not None:
            object.__setattr__(self, "bound", float(positive_number(self.bound, "bound")))

    def run(self, setup: Setup) -> Outcome:
        """The p-value of a prepared case."""
        bound = bound_of_h(setup.kernel) if self.bound is None else self.bound
        return self._block(setup, bound) if self.estimator == "block" else self._biased(setup, bound)

    def _block(self, setup: Setup, bound: float) -> Outcome:
        n = setup.n_samples
        size = resolve_block_size(self.block_size, n)
        estimate = setup.reported(estimate_blocks(setup.problem, setup.engine, size, None))
        value = float(estimate)
        check_finite(setup, value)
        _check_bound(abs(value), bound, "the block estimate")
        pairs = (n // size) * (size // 2)
        pvalue = positive(math.exp(-0.5 * pairs * (max(value, 0.0) / bound) ** 2))
        provenance = {"bound": bound, "block_size": size, "independent_pairs": pairs}
        return Outcome(value, pvalue, "SKCE_B", estimate, None, provenance)

    def _biased(self, setup: Setup, bound: float) -> Outcome:
        n, problem = setup.n_samples, setup.problem
        provenance: dict[str, Any] = {"bound": bound}
        proven = setup.kernel.guarantees(setup.predictions).positive_definite
        if proven is False:
            raise ValueError(
                f'estimator="biased" needs a positive definite kernel, which {setup.kernel!r} is not; '
                'take estimator="block"'
            )
        if proven is None:
            provenance["note"] = "holds if the kernel is positive definite, which is not proven"
        # A squared norm has all pairs of a draw with itself in it, which the diagonal for draws leaves out.
        diagonal = np.asarray(to_numpy(problem.own_values()))
        check_finite(setup, diagonal)
        _check_bound(float(np.max(np.abs(diagonal))), bound, "h of a case with itself")
        sums = setup.engine.triangle(problem)
        value = (2.0 * float(sums.total) + float(np.sum(diagonal))) / n**2
        excess = max(math.sqrt(max(n * value / bound, 0.0)) - 1.0, 0.0)
        pvalue = positive(math.exp(-0.5 * excess**2))
        return Outcome(value, pvalue, "SKCE_b", estimate_from(setup, sums), None, provenance)


def bound_of_h(kernel: Kernel) -> float:
    """``2 sup k`` for a nonnegative kernel whose largest value is known.

    Examples
    --------
    >>> from wellcal.kernels import Gaussian, paper_kernel
    >>> bound_of_h(paper_kernel), bound_of_h(3.0 * paper_kernel + paper_kernel)
    (2.0, 8.0)
    """
    if kernel.supremum is None:
        raise ValueError(
            f"a bound of |h| is not known for {kernel!r}; give it, as in DistributionFree(bound=...): twice "
            "the largest value of a kernel that is never negative, else four times its largest absolute value"
        )
    return 2.0 * kernel.supremum


def _check_bound(found: float, bound: float, what: str) -> None:
    if found > bound * (1.0 + 1e-9):
        raise ValueError(f"bound says that |h| <= {bound:g}, but {what} is {found:.6g}; give a larger bound")
