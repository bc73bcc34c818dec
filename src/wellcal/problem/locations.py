"""Locations: pairs of prediction and target at which deviations from calibration are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import described
from wellcal._arrays.chunks import check_size
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    device_of,
    is_numpy,
    is_traced,
    namespace,
    stop_gradient,
    to_numpy,
)
from wellcal._arrays.seeds import as_generator
from wellcal._arrays.special import draw_index, integer_dtype
from wellcal.predictions import Predictions, Quantiles
from wellcal.predictions.adapters import converted_argument
from wellcal.predictions.batches import in_numpy
from wellcal.predictions.target_spaces import check_one_space

WIDENING = 1.5
"""How much further from its mean than a draw the target of a drawn location lies."""

_UNIFORM = 1.0 / 3.0  # of classes: some that are thought unlikely must be among the locations too


@dataclass(frozen=True)
class Locations:
    """J pairs of prediction and target.

    Attributes
    ----------
    predictions
        J predictions of the family of the data.
    targets
        J targets as `check_targets` of the predictions returns them.
    drawn
        Where the predictions were drawn from a batch in NumPy: that, and their positions ``(J,)`` in it.
    """

    predictions: Predictions
    targets: Array
    drawn: tuple[Predictions, NDArray] | None = None

    def __len__(self) -> int:
        return len(self.predictions)


def as_locations(given: object, predictions: Predictions, rng: int | np.random.Generator | None) -> Locations:
    """What a user gave as `locations`: a number of them to be drawn, or a tuple (predictions, targets).

    Given locations are carried into the array library of the data.
    """
    if isinstance(given, Locations):
        return given
    if isinstance(given, (int, np.integer)) and not isinstance(given, (bool, np.timedelta64)):
        return draw_locations(predictions, int(cast("int", given)), rng)
    if not isinstance(given, tuple) or len(cast("tuple[Any, ...]", given)) != 2:
        raise TypeError(
            "locations must be a number of locations to draw from the predictions, or a tuple "
            f"(predictions, targets) of equal lengths, found {described(given)}"
        )
    where, targets = cast("tuple[Any, Any]", given)
    if isinstance(targets, Predictions):
        raise TypeError("locations must be (predictions, targets), found predictions as the second entry")
    batch = in_library_of(predictions, converted_argument(where, "locations"))
    check_one_space([predictions, batch], ["pred", "the predictions of locations"])
    return Locations(batch, batch.check_targets(targets, "the targets of locations"))


def draw_locations(
    predictions: Predictions, count: int, rng: int | np.random.Generator | None = None
) -> Locations:
    """Locations from the predictions alone, as constants.

    Predictions are `count` of the data's, without replacement as long as there are enough. Targets are
    drawn from them: numbers and vectors are moved 1.5 times as far from the prediction's mean as the draw
    is, so that tails that the prediction thinks empty are looked at (unless that leaves the support);
    counts are rounded. Classes, and the bins of quantiles, are drawn uniformly one time in three. Objects
    are drawn as they are.

    A change of units of predictions and targets changes the locations alike, given the same `rng`.

    Examples
    --------
    >>> from wellcal.predictions import Normal
    >>> found = draw_locations(Normal(np.arange(5.0), 0.1), 3, rng=0)
    >>> found.predictions.loc, found.targets.round(2)
    (array([3., 4., 2.]), array([3.02, 3.92, 2.05]))
    """
    if count < 1:
        raise ValueError(f"locations must be at least one, found {count}")
    check_size(count * len(predictions), "locations", count)
    if is_traced(predictions.like):
        raise TypeError(
            "locations cannot be drawn from predictions that jax.jit traces; draw them outside, or give "
            "locations=(predictions, targets)"
        )
    generator = as_generator(rng)
    index = drawn_rows(len(predictions), count, generator)
    return locations_at(predictions[index], generator, (predictions, index))


def drawn_rows(n: int, count: int, rng: np.random.Generator) -> NDArray:
    """Which of n predictions locations are at, ``(count,)``."""
    return rng.choice(n, count, replace=count > n)


def locations_at(
    chosen: Predictions, generator: np.random.Generator, origin: tuple[Predictions, NDArray] | None = None
) -> Locations:
    """Locations at predictions that were chosen, with targets that are drawn as in :func:`draw_locations`.

    `origin` is the batch that they come from, with their positions in it, where that is at hand.
    """
    if chosen.target_kind == "objects":
        return Locations(chosen, chosen.draw(generator, 1)[0], origin)
    chosen = chosen.map_arrays(stop_gradient)
    like, xp = chosen.like, chosen.xp
    plain = in_numpy(chosen)
    if plain.kind == "classes":
        found: NDArray = _draw_class(plain.class_probs(), generator)
        dtype: Any = integer_dtype(xp)
    else:
        dtype = like.dtype
        found = (
            _draw_in_bin(plain, generator) if isinstance(plain, Quantiles) else _draw_wide(plain, generator)
        )
    drawn = origin if is_numpy(xp) else None
    return Locations(chosen, asarray(found, xp=xp, device=device_of(like), dtype=dtype), drawn)


def _draw_class(probs: NDArray, rng: np.random.Generator) -> NDArray:
    """Indices ``(J,)`` of classes, a third of them irrespective of the probabilities ``(J, C)``."""
    count, classes = probs.shape
    anywhere = rng.random(count) < _UNIFORM
    return np.where(anywhere, rng.integers(classes, size=count), draw_index(probs, rng, 1)[0])


def _draw_in_bin(batch: Quantiles, rng: np.random.Generator) -> NDArray:
    """The middle of a bin, outer bins being as wide as their neighbours."""
    probs = batch.bin_probs()
    chosen = _draw_class(np.broadcast_to(probs, (len(batch), len(probs))), rng)
    edges = batch.bin_edges()
    rows = np.arange(len(batch))
    return 0.5 * (edges[rows, chosen] + edges[rows, chosen + 1])


def _draw_wide(batch: Predictions, rng: np.random.Generator) -> NDArray:
    drawn = np.asarray(batch.draw(rng, 1)[0], dtype=np.float64)
    centre = centre_of(batch)
    if centre is None:
        return drawn
    wide = centre + WIDENING * (drawn - centre)
    if batch.target_kind == "counts":
        return np.maximum(np.rint(wide), 0.0)
    if batch.continuous and batch.supports("log_prob"):
        impossible = np.asarray(batch.log_prob(wide)) == -np.inf
        return np.where(impossible.reshape((-1,) + (1,) * (wide.ndim - 1)), drawn, wide)
    return wide


def centre_of(batch: Predictions) -> NDArray | None:
    """Means; medians where there are none; None where there are neither."""
    mean: NDArray | None = np.asarray(batch.mean()) if batch.supports("mean") else None
    if mean is not None and np.isfinite(mean).all():
        return mean
    if batch.event_shape != () or not batch.supports("quantile"):
        return None
    median = np.asarray(batch.quantile(0.5))
    return median if mean is None else np.where(np.isfinite(mean), mean, median)


def in_library_of(data: Predictions, batch: Predictions) -> Predictions:
    """`batch` in the array library, and on the device, of `data`."""
    like = data.like
    xp = namespace(like)
    if namespace(batch.like) is xp:
        return batch
    return batch.map_arrays(lambda a: asarray(to_numpy(a), xp=xp, device=device_of(like), dtype=like.dtype))
