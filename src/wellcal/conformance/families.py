"""Laws that families of predictions obey."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from wellcal._arrays.checks import whole_number
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.seeds import as_generator
from wellcal.conformance.batches import (
    check_independence,
    check_indexing,
    check_sampling,
    check_target_rules,
)
from wellcal.conformance.densities import check_density
from wellcal.conformance.distributions import check_integral_transform, check_inverse, check_moments
from wellcal.conformance.report import Check, LawBrokenError, Report, run
from wellcal.conformance.sample import FIXED, Sample, spread
from wellcal.conformance.spaces import simulated
from wellcal.kernels.algebra import Tensor
from wellcal.kernels.base import Kernel
from wellcal.measures._skce import skce
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.adapters import converted_argument
from wellcal.problem.defaults import default_kernel

_FEW = 8  # predictions that are compared with simulation


def check_predictions(
    predictions: object,
    *,
    kernel: Kernel | None = None,
    rng: int | np.random.Generator | None = 0,
    draws: int = 4000,
) -> Report:
    """Check a family of your own.

    Parameters
    ----------
    predictions
        A batch of the family with at least two predictions, preferably ten different ones.
    kernel
        Kernel on pairs for a round trip through :func:`wellcal.skce`; the family's default where None.
    rng
        Seed or generator.
    draws
        Draws from each of a few predictions, with which the rest is compared.

    Returns
    -------
    Report
        Laws that hold, and those that do not apply.

    Raises
    ------
    ConformanceError
        At the first law that is broken, with the place and the size of the error.

    Notes
    -----
    :class:`wellcal.Predictions` says what a family defines. Laws about a method that a batch does not support
    do not apply.

    sampling
        Shapes are ``(n,) + event_shape`` and ``(size, n) + event_shape``; the same seed gives the same
        draws, another seed others.
    indexing
        Slices, lists, masks and single rows give batches of the right length that say of their rows what the
        whole batch says of them.
    independence
        Draws of one prediction, and of neighbouring predictions, are uncorrelated.
    targets
        `check_targets` takes what was sampled, and refuses other lengths, shapes and NaN.
    moments
        `mean` and `variance` agree with draws, within five standard errors.
    inverse
        `quantile` is the inverse of `cdf`, and both are non-decreasing.
    probability integral transform
        `cdf` at draws is uniform, after randomisation where it jumps (Kolmogorov-Smirnov test with error
        rate 1e-6).
    density
        `log_prob` integrates to one and, over intervals, to differences of `cdf` (scalar targets); where
        it is a probability, it agrees with frequencies of draws.
    expectations
        Expectations of the kernel on targets agree with draws.
    calibration error
        :func:`wellcal.skce` runs, gives finite values, and the biased estimate is not negative.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.predictions import family, parameter, positive
    >>> @family
    ... class Logistic(wc.Predictions):
    ...     loc: np.ndarray = parameter(unit="scale")
    ...     scale: np.ndarray = parameter(positive)
    ...
    ...     def cdf(self, y):
    ...         return 1.0 / (1.0 + np.exp(-(y - self.loc) / self.scale))
    ...
    ...     def quantile(self, u):
    ...         with np.errstate(divide="ignore"):
    ...             return self.loc + self.scale * (np.log(u) - np.log1p(-u))
    ...
    ...     def draw(self, rng, size):
    ...         return rng.logistic(self.loc, self.scale, (size, len(self)))
    >>> pred = Logistic(np.linspace(-1.0, 1.0, 10), np.linspace(0.5, 2.0, 10))
    >>> print(check_predictions(pred))
    Logistic: 8 laws hold
      holds: sampling
      holds: indexing
      holds: independence
      holds: targets
      holds: inverse
      holds: probability integral transform
      holds: expectations
      holds: calibration error
      not applicable: moments (there is neither mean nor variance)
      not applicable: density (there is no log_prob)

    A mistake in the sampler, which draws with twice the scale:

    >>> class Wrong(Logistic):
    ...     def draw(self, rng, size):
    ...         return rng.logistic(self.loc, 2.0 * self.scale, (size, len(self)))
    >>> check_predictions(Wrong(pred.loc, pred.scale))
    Traceback (most recent call last):
    wellcal.conformance.report.ConformanceError: probability integral transform: cdf at 4000 draws of ...
    """
    batch = converted_argument(predictions, "predictions")
    size = whole_number(draws, "draws", least=2, most=10**7)
    return run(type(batch).__name__, _laws(batch, kernel, as_generator(rng), size))


def _laws(
    batch: Predictions, kernel: Kernel | None, rng: np.random.Generator, size: int
) -> Iterator[tuple[str, Check]]:
    few = spread(batch, _FEW)

    @cache
    def draws() -> NDArray:
        return to_numpy(few.sample(rng, size))

    @cache
    def chosen() -> Kernel:
        return default_kernel(batch) if kernel is None else kernel

    yield "sampling", lambda: check_sampling(batch)
    yield "indexing", lambda: check_indexing(batch, rng)
    yield "independence", lambda: check_independence(draws())
    yield "targets", lambda: check_target_rules(batch, rng)
    yield "moments", lambda: check_moments(few, draws())
    yield "inverse", lambda: check_inverse(few)
    yield "probability integral transform", lambda: check_integral_transform(few, draws(), rng)
    yield "density", lambda: check_density(few, draws())
    yield "expectations", lambda: _expectations(batch, chosen(), rng, size)
    yield "calibration error", lambda: _calibration_error(batch, chosen(), rng)


def _expectations(batch: Predictions, kernel: Kernel, rng: np.random.Generator, size: int) -> str | None:
    if not isinstance(kernel, Tensor):
        return "the kernel is not a tensor product"
    simulated(kernel.targets, Sample.of(batch, rng, _FEW, size))
    return None


def _calibration_error(batch: Predictions, kernel: Kernel, rng: np.random.Generator) -> None:
    some = spread(batch, 50)
    y = some.sample(rng)
    proven = kernel.guarantees(some).positive_definite
    draws = isinstance(some, Samples) and some.kind == "draws"
    for estimator in ("unbiased", "biased", "block"):
        expectations = (
            "auto" if estimator == "unbiased" else FIXED
        )  # the choice of atoms takes most of the time
        value = float(skce(y, some, kernel=kernel, estimator=estimator, expectations=expectations))
        if not np.isfinite(value):
            raise LawBrokenError(f"the {estimator} SKCE is {value}")
        if estimator == "biased" and proven and not draws and value < -1e-12:
            raise LawBrokenError(f"the biased SKCE is negative, {value:.3g}, with {kernel!r}")
