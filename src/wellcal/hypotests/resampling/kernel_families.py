"""A kernel with other length scales."""

from __future__ import annotations

from wellcal.kernels.algebra import Tensor
from wellcal.kernels.base import Kernel
from wellcal.problem.problem import expand

_ON_TARGETS = (0.25, 0.5, 1.0, 2.0)
_ON_PREDICTIONS = (0.5, 1.0, 4.0)
_WITHOUT_SCALE = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


def kernel_family(kernel: Kernel) -> tuple[Kernel, ...]:
    """The kernel with its length scales multiplied by several factors.

    Twelve kernels where the kernel on targets has a length scale: a quarter, half, once and twice that of
    targets by half, once and four times that of predictions. Seven, from an eighth to eight times that of
    predictions, where it has none.

    Examples
    --------
    >>> from wellcal.kernels import Delta, ExpDistance, TotalVariation
    >>> family = kernel_family(ExpDistance(TotalVariation(), 0.5) @ Delta())
    >>> [k.predictions.lengthscale for k in family]
    [0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0]
    """
    parts = expand(kernel)
    if len(parts) != 1 or not isinstance(parts[0][1], Tensor):
        return (kernel,)  # a sum covers several scales already
    part = parts[0][1]
    if part.targets.rescaled(2.0) == part.targets:
        return tuple(part.predictions.rescaled(p) @ part.targets for p in _WITHOUT_SCALE)
    return tuple(
        part.predictions.rescaled(p) @ part.targets.rescaled(y) for y in _ON_TARGETS for p in _ON_PREDICTIONS
    )
