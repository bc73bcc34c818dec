"""Targets drawn from predictions: under the null, from streams, on a device, and pools of exchangeable draws.

In a stream the random numbers of a case belong to its place among all cases, not to what was drawn before it.
Cases form blocks of a fixed length, and targets of one block in one batch of resamples come from a generator
of their own: a counter-based one (Philox; Salmon et al., 2011) whose counter begins at the numbers of batch
and block. So a part of the cases that begins with a block can be drawn anywhere, by itself, in any order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellcal._arrays.chunks import entries_for
from wellcal._arrays.namespaces import Array, NDArray, from_numpy, to_numpy
from wellcal._arrays.registry import Rules
from wellcal._arrays.special import draw_index
from wellcal.predictions import (
    Bernoulli,
    Beta,
    Categorical,
    DiagonalNormal,
    Gamma,
    Laplace,
    LogNormal,
    Mixture,
    MultivariateNormal,
    Normal,
    Poisson,
    Predictions,
    Samples,
    StudentT,
)
from wellcal.predictions.base import keeps_distribution
from wellcal.predictions.batches import on_device_of

IN_TURN: frozenset[type[Predictions]] = frozenset(
    {
        Bernoulli,
        Beta,
        Categorical,
        DiagonalNormal,
        Gamma,
        Laplace,
        LogNormal,
        MultivariateNormal,
        Normal,
        Poisson,
        Samples,
        StudentT,
    }
)
"""Families that take random numbers row after row: those of one row are the same, whatever comes with it."""


def unsampled_family(predictions: Predictions) -> str | None:
    """Name of the family, among the components of a mixture too, that cannot be sampled, or None."""
    for component in predictions.parts:
        if not component.supports("sample"):
            return type(component).__name__
    return None


def why_not_resampled(predictions: Predictions) -> str | None:
    """Why targets cannot be drawn from the predictions so that a test is exact, or None."""
    unsampled = unsampled_family(predictions)
    if unsampled is not None:
        return f"{unsampled} cannot be sampled; give the family a method draw(rng, size)"
    parts = list(predictions.parts) if isinstance(predictions, Mixture) else []
    if any(part.kind == "draws" for part in parts):
        return (
            'a Mixture with Samples(kind="draws") cannot be resampled exactly: draws stand for a '
            'distribution that is not known; take kind="atoms" if they are the prediction'
        )
    return None


def draw_targets(predictions: Predictions, rng: np.random.Generator, size: int, like: NDArray) -> NDArray:
    """Targets ``(size, n, ...)`` in the form that `check_targets` returns, of the dtype of `like`."""
    if predictions.kind == "classes":
        return draw_index(to_numpy(predictions.class_probs()), rng, size).astype(like.dtype, copy=False)
    drawn = predictions.draw(rng, size)
    return drawn if drawn.dtype == object else drawn.astype(like.dtype, copy=False)


def draw_in_turn(predictions: Predictions, rng: np.random.Generator, size: int, like: NDArray) -> NDArray:
    """The same ``(size, n, ...)``, drawn for one case after the other: as for each of them alone.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> pred, rng = wc.Normal(np.arange(3.0), 1.0), np.random.default_rng
    >>> alone = draw_in_turn(pred[:1], rng(0), 4, np.zeros(1))
    >>> bool((draw_in_turn(pred, rng(0), 4, np.zeros(3))[:, :1] == alone).all())
    True
    """
    n = len(predictions)
    if n == 1:
        return draw_targets(predictions, rng, size, like)
    if type(predictions) not in IN_TURN:
        return np.concatenate([draw_targets(one, rng, size, like) for one in predictions], axis=1)
    drawn = draw_targets(predictions[np.repeat(np.arange(n), size)], rng, 1, like)[0]
    return np.swapaxes(drawn.reshape(n, size, *drawn.shape[1:]), 0, 1)


# -- streams ---------------------------------------------------------------------------------------


BLOCK = 16_384
"""Cases that are drawn together: a part of the cases begins with a multiple of it."""

MOST_SETS = 100
"""Sets that are drawn at a time, at most."""

MOST_NUMBERS = 2_000_000
"""Numbers that are drawn at a time, of all cases and coordinates, unless one set has more."""


def sets_at_a_time(numbers: int) -> int:
    """Sets that are drawn together, where one has so many numbers."""
    return min(MOST_SETS, max(1, MOST_NUMBERS // max(numbers, 1)))


@dataclass(frozen=True)
class TargetStream:
    """Random targets that belong to the places of cases.

    Attributes
    ----------
    key
        Two numbers of 64 bits: what tells one stream from another.
    block
        Cases that are drawn together.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> y, pred = np.zeros(5), wc.Normal(np.arange(5.0), 1.0)
    >>> stream = TargetStream.of(np.random.default_rng(0), block=2)
    >>> (whole,) = stream.sets(pred, y, 3)
    >>> (part,) = stream.sets(pred[2:], y[2:], 3, start=2, total=5)
    >>> bool((whole[:, 2:] == part).all())
    True
    """

    key: tuple[int, int]
    block: int = field(default_factory=lambda: BLOCK)

    @classmethod
    def of(cls, rng: np.random.Generator, block: int | None = None) -> TargetStream:
        """The next stream of a generator."""
        first, second = rng.integers(2**64, size=2, dtype=np.uint64)
        return cls((int(first), int(second)), BLOCK if block is None else block)

    def sets(
        self,
        predictions: Predictions,
        like: NDArray,
        count: int,
        *,
        start: int = 0,
        total: int | None = None,
        first: int = 0,
    ) -> Iterator[NDArray]:
        """So many sets of targets, some at a time.

        Parameters
        ----------
        predictions, like
            Cases, or a part of them, and targets of the form and dtype that are wanted.
        count
            Number of sets.
        start, total
            The first case among all, a multiple of the length of blocks, and the number of all cases: for a
            part of them.
        first
            Sets that come before, and are left to others: a multiple of how many come at a time.

        Yields
        ------
        array
            Targets ``(r, n, ...)``; how many sets come at a time depends on the number of all cases.
        """
        n = len(predictions)
        if start % self.block:
            raise ValueError(f"start must be a multiple of {self.block:,}, found {start:,}")
        size = sets_at_a_time(max(1, like.size // max(n, 1)) * (n if total is None else total))
        if first % size:
            raise ValueError(f"first must be a multiple of {size}, found {first}")
        blocks = [(predictions, like)] if n <= self.block else list(self._blocks(predictions, like))
        for batch, before in enumerate(range(0, count, size), first // size):
            sets = min(size, count - before)
            drawn = [
                draw_targets(cases, self._generator(batch, start // self.block + k), sets, form)
                for k, (cases, form) in enumerate(blocks)
            ]
            yield drawn[0] if len(drawn) == 1 else np.concatenate(drawn, axis=1)

    def _blocks(self, predictions: Predictions, like: NDArray) -> Iterator[tuple[Predictions, NDArray]]:
        for first in range(0, len(predictions), self.block):
            cases = slice(first, first + self.block)
            yield predictions[cases], like[cases]

    def _generator(self, batch: int, block: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=self.key, counter=(0, 0, batch, block)))


# -- PyTorch ---------------------------------------------------------------------------------------


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


# -- predictions that are draws --------------------------------------------------------------


def stretch(draws: int) -> float:
    """How much further a target lies from the mean of its draws than from that of the pool it is part of."""
    return 1.0 + 1.0 / draws


def pool_draws(targets: NDArray, samples: Samples) -> Samples:
    """Each target among its draws, as S + 1 atoms of equal weight; the target comes last."""
    values = np.concatenate([np.asarray(samples.values), targets[:, None, ...]], axis=1)
    return Samples(values, kind="atoms", axis=1)


def moments_of_others(pool: NDArray) -> tuple[NDArray, NDArray]:
    """Mean and standard deviation of the draws, for each member of a pool ``(n, m, ...)`` as the target.

    The target itself comes last: what belongs to it is what the model's own draws say. An outcome must not
    choose its own group, and a person who has the draws must find the same cases.

    Examples
    --------
    >>> mean, spread = moments_of_others(np.array([[1.0, 3.0, 9.0]]))
    >>> mean, spread
    (array([[6., 5., 2.]]), array([[3., 4., 1.]]))
    """
    values = np.asarray(pool, dtype=np.float64)
    left = values.shape[1] - 1
    middle = np.median(values, axis=1, keepdims=True)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = values - middle  # squares of large numbers that are about the same would leave no digits
        mean = _sum_of_others(apart) / left
        variance = np.maximum(_sum_of_others(apart**2) / left - mean**2, 0.0)
        return mean + middle, np.sqrt(variance)


def _sum_of_others(values: NDArray) -> NDArray:
    """For each member of a set ``(n, m, ...)`` the sum of the others: an outlier leaves nothing behind."""
    before, after = np.zeros_like(values), np.zeros_like(values)
    np.cumsum(values[:, :-1], axis=1, out=before[:, 1:])
    np.cumsum(values[:, :0:-1], axis=1, out=after[:, -2::-1])
    return before + after
