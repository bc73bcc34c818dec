"""Where kernels are looked at: predictions, targets drawn from them, and values at these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, from_numpy, namespace, take_rows, to_numpy
from wellcal._arrays.ops import EPSILON, ops_for
from wellcal.conformance.report import LawBrokenError
from wellcal.expectations.decompose import Side, Targets, is_objects
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.plans import Notes, plan
from wellcal.kernels.base import Kernel
from wellcal.kernels.matrix import values_matrix
from wellcal.predictions import Predictions, Quantiles

FEW = 6  # predictions that are compared with simulation
BLOCK = 20  # draws that meet as many others: each block gives one independent average
FIXED = Lowering(nodes=64)  # the same atoms for the same prediction, whatever else is in the batch


@dataclass
class Sample:
    """Predictions, and targets drawn from them."""

    batch: Predictions
    few: Predictions
    targets: Array  # one of each of the batch
    drawn: NDArray  # (S, few)
    points: Array
    rng: np.random.Generator
    known: dict[str, Any] = field(default_factory=lambda: {})

    @classmethod
    def of(cls, predictions: Predictions, rng: np.random.Generator, points: int, draws: int) -> Sample:
        """Draw from at most `points` of the predictions, and more often from a few."""
        batch = spread(predictions, points)
        few = spread(batch, FEW)
        size = max(2, draws // BLOCK) * BLOCK
        targets = batch.sample(rng)
        scattered = to_numpy(few.sample(rng, -(-points // len(few))))
        flat = scattered.reshape(-1, *few.event_shape)[:points]
        owner = np.tile(np.arange(len(few)), len(scattered))[:points]
        seen = as_seen(few[owner], flat)
        return cls(batch, few, targets, to_numpy(few.sample(rng, size)), seen, rng)

    def halves(self, i: int, j: int) -> Iterator[tuple[Array, Array]]:
        """Blocks of draws of predictions i and j, from different halves so that i may be j."""
        half = len(self.drawn) // 2
        for start in range(0, half - BLOCK + 1, BLOCK):
            first, second = slice(start, start + BLOCK), slice(half + start, half + start + BLOCK)
            yield take_rows(self.draws_of(i), first), take_rows(self.draws_of(j), second)

    def draws_of(self, i: int) -> Array:
        """Draws of one of the few predictions, as kernels see them."""
        if f"draws {i}" not in self.known:
            drawn = self.drawn[:, i]
            self.known[f"draws {i}"] = as_seen(self.few[np.full(len(drawn), i)], drawn)
        return self.known[f"draws {i}"]


def spread(predictions: Predictions, count: int) -> Predictions:
    """At most `count` of the predictions, evenly from the batch."""
    n = len(predictions)
    return predictions if n <= count else predictions[np.linspace(0, n - 1, count).astype(int)]


def rounding(batch: Predictions) -> float:
    """Relative rounding error of the predictions' precision."""
    dtype = str(batch.like.dtype)
    return EPSILON if "64" in dtype or "object" in dtype else 2.0**-23


def as_seen(predictions: Predictions, targets: NDArray) -> Array:
    """Targets of matching predictions as kernels see them: numbers, or labels and objects as they are."""
    if isinstance(predictions, Quantiles):
        edges = np.concatenate([[0.0], predictions.levels, [1.0]])
        middles = 0.5 * (edges[1:] + edges[:-1])
        targets = middles[to_numpy(predictions.bins(targets))]  # only bins are compared
    if is_objects(targets):
        return targets
    return from_numpy(targets.astype(np.float64), predictions.like)


def matrix(kernel: Kernel, x: Array, y: Array) -> NDArray:
    """Values of a kernel between all pairs of points."""
    ops = ops_for(namespace() if is_objects(x) else namespace(x))
    return to_numpy(values_matrix(ops, kernel, x, y)).astype(np.float64)


def row(x: Array, i: int) -> Array:
    """Point i as a batch of one."""
    return take_rows(x, slice(i, i + 1))


def pairings(kernel: Kernel, p: Side, q: Side, expectations: str | Lowering) -> tuple[NDArray, float]:
    """Pairings of all pairs, and the estimated error of numerical expectations."""
    notes = Notes()
    scheme = plan(kernel, [p, q], expectations=expectations, notes=notes, relative=True)
    a, b = scheme.rows([(1.0, p)]), scheme.rows([(1.0, q)])
    owner = p.predictions if isinstance(p, Targets) else p
    value = to_numpy(scheme.form(a, b).tile(owner.ops, a, b)).astype(np.float64)
    return value, float(np.nan_to_num(notes.error))


def compare(found: float, averages: list[float], largest: float, error: float, what: str, draws: int) -> None:
    """Raise unless a number agrees with independent averages over draws.

    Five standard errors are allowed, four times the estimated `error` of numerical expectations, and what
    ten of `draws` contribute at most: a rare event may not have been seen.
    """
    mean, standard_error = float(np.mean(averages)), float(np.std(averages, ddof=1)) / np.sqrt(len(averages))
    allowed = 5.0 * standard_error + 4.0 * error + 10.0 * largest / draws
    if not abs(found - mean) <= allowed:
        raise LawBrokenError(
            f"{what} is {found:.6g}, but {draws} draws from each give {mean:.6g} +- {standard_error:.2g}"
        )
