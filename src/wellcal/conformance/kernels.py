"""Laws that kernels obey."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wellcal._arrays.checks import whole_number
from wellcal._arrays.seeds import as_generator
from wellcal.conformance.pairs import pair_laws
from wellcal.conformance.report import Check, Report, run
from wellcal.conformance.sample import Sample
from wellcal.conformance.spaces import prediction_laws, target_laws
from wellcal.kernels.algebra import Scaled, Sum, Tensor
from wellcal.kernels.base import Kernel, space_of
from wellcal.kernels.base import check_kernel as check_kernel_type
from wellcal.predictions.adapters import converted_argument


def check_kernel(
    kernel: Kernel,
    predictions: object,
    *,
    rng: int | np.random.Generator | None = 0,
    points: int = 40,
    draws: int = 2000,
) -> Report:
    """Check a kernel of your own on predictions like yours.

    Parameters
    ----------
    kernel
        A kernel on targets, on predictions, or on pairs of both (``k_P @ k_Y``, sums of these, and
        :class:`wellcal.kernels.Joint`). Of a tensor product the factors are checked too.
    predictions
        Predictions, or what :func:`wellcal.as_predictions` understands. Targets at which the kernel is
        evaluated are drawn from them.
    rng
        Seed or generator of these draws.
    points
        Points, and at most so many predictions, on which the matrix of the kernel is looked at.
    draws
        Draws from each of a few predictions, with which expectations are compared.

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
    The laws of a kernel on targets:

    pointwise
        A value depends on its two arguments only, not on what else is in the batch.
    finite values, symmetry
        k(x, y) is finite and equals k(y, x), to 1e-12 of the largest value.
    positive definiteness
        No eigenvalue of the matrix of n points, or of pairings of predictions, is below
        ``-1e-10 * n * max |k|``. A kernel whose ``guarantees`` say that positive definiteness is refuted
        is exempt.
    point masses
        The pairing of point masses is the value of the kernel.
    linearity
        The pairing with a mixture is the weighted sum of pairings with its components.
    simulation
        Pairings agree with averages over draws, within five standard errors and the error estimate of
        numerical expectations.
    guarantees
        ``guarantees`` answers.

    Kernels on predictions and on pairs obey the first four; for pairs these are laws of the function h
    that calibration errors are averages of, and "simulation" compares h with draws.

    Examples
    --------
    A kernel that is a function of the distance, with nothing but its formula:

    >>> from dataclasses import dataclass
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.kernels import Callable, ExpDistance, Radial, Wasserstein
    >>> @dataclass(frozen=True)
    ... class Cauchy(Radial):
    ...     lengthscale: float = 1.0
    ...
    ...     def radial(self, ops, squared):
    ...         return 1.0 / (1.0 + squared / self.lengthscale**2)
    >>> pred = wc.Normal(np.linspace(-1.0, 1.0, 20), np.linspace(0.5, 2.0, 20))
    >>> print(check_kernel(Cauchy(2.0), pred))
    Cauchy(lengthscale=2.0) with Normal: 8 laws hold
      holds: pointwise
      holds: finite values
      holds: symmetry
      holds: positive definiteness
      holds: point masses
      holds: linearity
      holds: simulation
      holds: guarantees

    A function that is no kernel, though it looks like one:

    >>> box = Callable(lambda x, y: float(abs(x - y) < 1.0), positive_definite=True)
    >>> check_kernel(ExpDistance(Wasserstein()) @ box, pred, draws=100)
    Traceback (most recent call last):
    wellcal.conformance.report.ConformanceError: positive definiteness of the targets: the matrix of 40 ...
    """
    check_kernel_type(kernel, "kernel")
    batch = converted_argument(predictions, "predictions")
    sizes = (
        whole_number(points, "points", least=2, most=10_000),
        whole_number(draws, "draws", least=2, most=10**7),
    )
    subject = f"{kernel!r} with {type(batch).__name__}"
    return run(subject, _laws(kernel, Sample.of(batch, as_generator(rng), *sizes)))


def _laws(kernel: Kernel, sample: Sample) -> Iterator[tuple[str, Check]]:
    space = space_of(kernel)
    if space == "targets":
        yield from target_laws(kernel, sample)
    elif space == "predictions":
        yield from prediction_laws(kernel, sample)
    else:
        for part in _tensors(kernel):
            yield from _named("of the predictions", prediction_laws(part.predictions, sample))
            yield from _named("of the targets", target_laws(part.targets, sample))
        yield from pair_laws(kernel, sample)


def _named(side: str, laws: Iterator[tuple[str, Check]]) -> Iterator[tuple[str, Check]]:
    return ((f"{law} {side}", check) for law, check in laws if law != "guarantees")


def _tensors(kernel: Kernel) -> list[Tensor]:
    if isinstance(kernel, Sum):
        return [part for k in kernel.kernels for part in _tensors(k)]
    if isinstance(kernel, Scaled):
        return _tensors(kernel.kernel)
    return [kernel] if isinstance(kernel, Tensor) else []
