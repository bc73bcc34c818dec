"""Sets of targets drawn on the device that predictions live on, by PyTorch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wellcal._arrays.chunks import entries_for
from wellcal._arrays.namespaces import Array, NDArray, from_numpy
from wellcal._arrays.registry import Rules
from wellcal.predictions import Bernoulli, Categorical, DiagonalNormal, Laplace, Normal, Predictions
from wellcal.predictions.base import keeps_distribution
from wellcal.predictions.batches import on_device_of
from wellcal.problem.drawn_targets import draw_targets

Draw = Callable[[Any, Any, int], Array]
"""From a batch of tensors, a generator of PyTorch and a number of sets to targets ``(sets, n, ...)``."""

DRAWS: Rules[Draw] = Rules("draws on a device", serves=keeps_distribution)
"""How targets are drawn in PyTorch, by family; others are drawn in NumPy, and moved."""


@DRAWS.register(Normal)
@DRAWS.register(DiagonalNormal)
def _of_normals(batch: Any, generator: Any, sets: int) -> Array:
    loc = batch.loc
    noise = loc.new_empty((sets, *loc.shape)).normal_(generator=generator)
    return noise.mul_(batch.scale).add_(loc)


@DRAWS.register(Laplace)
def _of_laplace(batch: Any, generator: Any, sets: int) -> Array:
    first, second = (
        batch.loc.new_empty((sets, *batch.loc.shape)).exponential_(generator=generator) for _ in range(2)
    )
    return first.sub_(second).mul_(batch.scale).add_(batch.loc)


@DRAWS.register(Bernoulli)
def _of_events(batch: Any, generator: Any, sets: int) -> Array:
    probs = batch.probs
    return (probs.new_empty((sets, *probs.shape)).uniform_(generator=generator) < probs).long()


@DRAWS.register(Categorical)
def _of_classes(batch: Any, generator: Any, sets: int) -> Array:
    torch = sys.modules["torch"]
    upto = batch.probs.cumsum(dim=1)
    n = int(upto.shape[0])
    level = upto.new_empty((n, sets)).uniform_(generator=generator) * upto[:, -1:]
    # Levels that reach the last class: what rounding leaves of it is its own.
    return torch.searchsorted(upto[:, :-1].contiguous(), level, right=True).mT.contiguous()


def sets_on_device(
    predictions: Predictions, like: NDArray, count: int, rng: np.random.Generator, place: Array
) -> Iterator[Array]:
    """So many sets of targets ``(r, n, ...)``, as many at a time as the device has room for.

    Parameters
    ----------
    predictions, like
        Predictions in NumPy, and targets of the form and dtype that are wanted.
    count
        Number of sets.
    rng
        Gives the seed of the device's generator: its numbers are not those of NumPy.
    place
        A tensor on the device.
    """
    torch = sys.modules["torch"]
    rule = DRAWS.find(type(predictions))
    generator = torch.Generator(device=place.device)
    generator.manual_seed(int(rng.integers(2**63)))
    batch = on_device_of(predictions, place) if rule is not None else predictions
    kind = from_numpy(like[:1], place).dtype
    size = max(1, entries_for(place) // max(1, like.size))
    for first in range(0, count, size):
        sets = min(size, count - first)
        if rule is None:
            yield from_numpy(draw_targets(predictions, rng, sets, like), place)
        else:
            yield rule(batch, generator, sets).to(kind)


def can_be_placed(predictions: Predictions, targets: NDArray) -> bool:
    """Whether targets are numbers, which tensors hold, or numbers of classes."""
    return targets.dtype.kind in "fiu" and (targets.dtype.kind == "f" or predictions.kind == "classes")
