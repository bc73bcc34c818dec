"""Parts for classes: each class and all of them, probabilities as a whole, and slopes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import linalg, special

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.memo import on_device
from wellcal._arrays.namespaces import Array, NDArray, device_of, is_numpy, namespace
from wellcal._arrays.special import bounded_log_odds, look_up
from wellcal.hypotests.parts.part import Evaluated, Parts, in_sets, length
from wellcal.hypotests.resampling.smooth_tails import two_sided

WEIGHTS = {
    "surprise": 0.45,
    "one class": 1.0,
    "classes": 0.12,
    "slopes": 0.15,
    "SKCE": 0.4,
    "locations": 0.05,
}
"""Weights of the parts, chosen on one half of a bank of alternatives: benchmarks/bank."""

_ALIKE = 1e-10  # differences of log odds, up to which they are rounding
_MOST_CLASSES = 256  # whose covariance matrix is inverted


class ClassTotals(NamedTuple):
    """Sums over cases that statistics of classes are in units of; those of parts of the cases add up.

    Attributes
    ----------
    expected, variances
        Of the counts of each class, ``(C,)``.
    slope_variances
        Of the sums of slopes, ``(C,)``.
    products
        Of probabilities, ``(C, C)``; None for many classes.
    """

    expected: NDArray
    variances: NDArray
    slope_variances: NDArray
    products: NDArray | None

    @classmethod
    def of(cls, p: NDArray, slope: NDArray) -> ClassTotals:
        """Of probabilities ``(n, C)`` and log odds about their centre."""
        spread = p * (1.0 - p)
        products = p.T @ p if p.shape[1] <= _MOST_CLASSES else None
        return cls(p.sum(axis=0), spread.sum(axis=0), (spread * slope**2).sum(axis=0), products)

    @property
    def known_slopes(self) -> NDArray:
        """Variances of the sums of slopes; zero where all log odds are the same, but for rounding."""
        return np.where(self.slope_variances > _ALIKE**2 * self.variances, self.slope_variances, 0.0)


def slope_sums(p: NDArray) -> tuple[NDArray, NDArray]:
    """Sums ``(C,)`` of variances of classes, and of log odds weighted by these: they add up."""
    spread = p * (1.0 - p)
    return spread.sum(axis=0), (spread * bounded_log_odds(p)).sum(axis=0)


class ClassParts(Parts):
    """Counts of classes, total log probability, and residuals of each class against its own logit."""

    weights = WEIGHTS

    def __init__(
        self, probabilities: NDArray, centre: NDArray | None = None, totals: ClassTotals | None = None
    ) -> None:
        """From probabilities ``(n, C)``; and from the `totals` of all cases, where these are only some.

        So is `centre`, the log odds of each class that slopes are taken about.
        """
        self.probabilities = p = probabilities
        with np.errstate(divide="ignore"):
            self.surprisal = -np.log(p)
        if centre is None:
            total, weighted = slope_sums(p)
            centre = weighted / np.maximum(total, 1e-300)
        self.slope = bounded_log_odds(p) - centre
        self.expected_slopes = (p * self.slope).sum(axis=0)
        self.totals = ClassTotals.of(p, self.slope) if totals is None else totals
        self.first_cells: NDArray = p.shape[1] * np.arange(len(p))  # of each case, in tables (n, C)

    def sums(self, targets: Array) -> Array:
        """Sums ``(r, 1 + 2 C)``: surprise, counts of classes, and slopes."""
        n, count = self.probabilities.shape
        some = in_sets(targets, max(n, count) if is_numpy(namespace(targets)) else n * count)
        return namespace(targets).concat([self._some(sets) for sets in some])

    def _some(self, targets: Array) -> Array:
        xp = namespace(targets)
        surprisal, slope, expected = (
            on_device(x, targets) for x in (self.surprisal, self.slope, self.expected_slopes)
        )
        cells = targets + on_device(self.first_cells, targets)
        surprise = xp.sum(look_up(xp.reshape(surprisal, (-1,)), cells), axis=1)[:, None]
        counts, slopes = _by_class(targets, slope, cells)
        return xp.concat([surprise, counts, slopes - expected], axis=1)

    def terms(self, targets: NDArray) -> Iterator[NDArray]:
        """Surprise, class, and slopes of each case."""
        rows: NDArray = np.arange(len(targets))
        yield self.surprisal[rows, targets][:, None]
        found = (targets[:, None] == np.arange(self.probabilities.shape[1])).astype(np.float64)
        yield found
        yield (found - self.probabilities) * self.slope

    def mean_terms(self) -> Iterator[NDArray]:
        """Entropy and probabilities; residuals have mean 0."""
        p = self.probabilities
        yield -special.xlogy(p, p).sum(axis=1)[:, None]
        yield p
        yield np.zeros_like(p)

    def statistics(self, sums: NDArray) -> Iterator[Evaluated]:
        """One statistic for each kind of error."""
        return self.of_remembered(self.remembered(sums))

    @property
    def width(self) -> int:
        """Counts and slopes are as many as classes."""
        return 1 + 2 * self.probabilities.shape[1]

    def remembered(self, sums: NDArray) -> NDArray:
        """Surprise, and what is made of counts and slopes: four numbers, whatever the number of classes."""
        count = self.probabilities.shape[1]
        found = np.empty((len(sums), 4))
        found[:, 0] = sums[:, 0]
        for sets in in_chunks(len(sums), count):
            counts, slopes = sums[sets, 1 : 1 + count], sums[sets, 1 + count :]
            found[sets, 1] = self._deviances(counts).max(axis=1)
            found[sets, 2] = self._together(counts - self.totals.expected)
            found[sets, 3] = _in_units(slopes, self.totals.known_slopes)
        return found

    def of_remembered(self, rows: NDArray) -> Iterator[Evaluated]:
        """Only surprise is held against other sets."""
        yield self.part("surprise", two_sided(rows[:, 0]))
        yield self.part("one class", rows[:, 1])
        yield self.part("classes", rows[:, 2])
        yield self.part("slopes", rows[:, 3])

    def _deviances(self, counts: NDArray) -> NDArray:
        """Likelihood ratios of the counts of single classes: counts that are too low are bounded."""
        expected, variances = self.totals.expected, self.totals.variances
        some = _known(variances)
        if not some.any():
            return np.zeros((len(counts), 1))
        # With signs for clusters in the place of drawn targets, what stands for a count may be negative.
        observed, expected = np.maximum(counts[:, some], 0.0), expected[some]
        ratio = special.xlogy(observed, np.maximum(observed, 1.0) / expected) - (observed - expected)
        return expected / variances[some] * 2.0 * ratio

    def _together(self, residuals: NDArray) -> NDArray:
        """Squared length of the residuals in units of their covariance."""
        if self.totals.products is None:  # too many classes for more than their variances
            return _in_units(residuals, self.totals.variances)
        values, vectors = self._axes
        return length(residuals @ vectors / np.sqrt(values))

    @cached_property
    def _axes(self) -> tuple[NDArray, NDArray]:
        """Variances of counts along axes, where there are any, and the axes."""
        values, vectors = linalg.eigh(np.diag(self.totals.expected) - self.totals.products)
        keep = _known(values)
        return values[keep], vectors[:, keep]


def _known(variances: NDArray) -> NDArray:
    """Where there is variance beyond rounding."""
    return variances > 1e-9 * max(float(variances.max()), 1e-300)


def _in_units(sums: NDArray, variances: NDArray) -> NDArray:
    """Squared length of sums, each in units of its standard deviation where it has one."""
    some = _known(variances)
    return length(sums[:, some] / np.sqrt(variances[some]))


def _by_class(targets: Array, values: Array, cells: Array) -> tuple[Array, Array]:
    """How often each class occurs, ``(r, C)``, and sums ``(r, C)`` of what cases give theirs, of ``(n, C)``.

    NumPy counts, whatever the number of classes; the standard for array libraries has nothing like it, and
    labels are compared there. `cells` are the places of targets in the values.
    """
    xp, count = namespace(targets), values.shape[1]
    if not is_numpy(xp):
        classes = xp.arange(count, dtype=targets.dtype, device=device_of(targets))
        hits = xp.astype(targets[..., None] == classes, values.dtype)
        return xp.sum(hits, axis=1), xp.sum(hits * values, axis=1)
    return counted(targets, count), counted(targets, count, look_up(values.ravel(), cells))


def counted(targets: NDArray, count: int, weights: NDArray | None = None) -> NDArray:
    """How often each of so many classes occurs in sets of targets ``(r, n)``, or the sum of its weights.

    Examples
    --------
    >>> counted(np.array([[0, 2, 2], [1, 1, 1]]), 3)
    array([[1, 0, 2],
           [0, 3, 0]])
    """
    sets = len(targets)
    places = (targets + count * np.arange(sets)[:, None]).ravel()
    flat = None if weights is None else weights.ravel()
    return np.bincount(places, weights=flat, minlength=count * sets).reshape(sets, count)
