"""A kernel with other length scales."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from wellcal.kernels.base import Kernel, Tensor
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
    if rescaled(part.targets, 2.0) == part.targets:
        return tuple(rescaled(part.predictions, p) @ part.targets for p in _WITHOUT_SCALE)
    return tuple(
        rescaled(part.predictions, p) @ rescaled(part.targets, y)
        for y in _ON_TARGETS
        for p in _ON_PREDICTIONS
    )


def rescaled(kernel: Any, factor: float) -> Any:
    """A kernel with all of its own length scales multiplied; those inside of a metric stay."""
    if isinstance(kernel, tuple):
        return tuple(rescaled(part, factor) for part in kernel)
    if not is_dataclass(kernel) or isinstance(kernel, type):
        return kernel
    names = {field.name for field in fields(kernel)}
    changed: dict[str, Any] = {}
    if "lengthscale" in names:
        changed["lengthscale"] = getattr(kernel, "lengthscale") * factor  # noqa: B009
    changed.update(
        {name: rescaled(getattr(kernel, name), factor) for name in ("kernel", "kernels") if name in names}
    )
    return replace(kernel, **changed) if changed else kernel
