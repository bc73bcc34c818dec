"""Partitions of predictions into bins, chosen from predictions alone.

A bin is a set of predictions, never of cases: equal predictions share a bin, whatever was observed. What is
cut is a table of features ``(n, k)``: class probabilities, or means and spreads of counts.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.checks import check_ndim, check_same_length, described, one_of, plain_array, whole_number
from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    from_numpy,
    is_traced,
    namespace,
    stop_gradient,
    to_numpy,
    widen,
)
from wellcal._arrays.special import integer_dtype

MOST_BINS = 10**7
"""Bins of a rule, at most."""

_DIVIDED = 4096  # bins that a division finds to within one, in single precision too


class Binning:
    """A rule that puts predictions into bins: derive from it for bins of your own.

    Examples
    --------
    >>> class Halves(Binning):
    ...     def cells(self, features):
    ...         return (features[:, 0] >= 0.5).astype(int)
    >>> Halves().cells(np.array([[0.2], [0.7]]))
    array([0, 1])
    """

    of_probabilities: ClassVar[bool] = False
    """Whether the features must be probabilities, and not, say, means of counts."""

    @classmethod
    def with_bins(cls, n_bins: int) -> Binning:
        """The rule with so many bins, where a number is given together with its name."""
        raise ValueError(f"n_bins has no meaning for {cls.__name__}")

    def cells(self, features: NDArray) -> NDArray:
        """Number of the bin of each row of `features` ``(n, k)``: integers ``(n,)``."""
        raise NotImplementedError

    def traced_cells(self, features: Array) -> tuple[Array, int]:
        """The same inside ``jax.jit``, where empty bins cannot be left out, and the number of all bins."""
        raise TypeError(
            "these bins cannot be found inside jax.jit; take uniform bins of one probability, or "
            "give the bins as binning=(integers), found outside"
        )


@dataclass(frozen=True)
class UniformBins(Binning):
    """Bins of equal width in each probability: the cells of a grid over the simplex.

    Bin b holds the probabilities from ``b / n_bins`` up to, and without, ``(b + 1) / n_bins``; probability 1
    belongs to the last one.

    Parameters
    ----------
    n_bins
        Bins of each probability. Two classes have one free probability, that of the second; of more
        classes all probabilities are cut.

    Examples
    --------
    >>> UniformBins(10).cells(np.array([[0.0], [0.3], [0.95], [1.0]]))
    array([0, 3, 9, 9])
    """

    n_bins: int = 10

    of_probabilities: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", whole_number(self.n_bins, "n_bins", least=1, most=MOST_BINS))

    @classmethod
    def with_bins(cls, n_bins: int) -> UniformBins:
        """So many bins of each probability."""
        return cls(n_bins)

    def edges(self, like: Array) -> NDArray:
        """Inner edges in the precision of `like`: 0.3 of single precision lies on the edge 3 / 10."""
        return (np.arange(1, self.n_bins) / self.n_bins).astype(to_numpy_dtype(like))

    def cells(self, features: NDArray) -> NDArray:
        """Number of the bin of each row."""
        codes = self._codes(features)
        columns = codes.shape[1]
        if columns == 1:
            return codes[:, 0]
        if self.n_bins**columns < 2**62:  # all cells of the grid have numbers
            return codes @ (self.n_bins ** np.arange(columns, dtype=np.int64))
        return np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)

    def _codes(self, features: NDArray) -> NDArray:
        """Number of the bin of each entry: of many by division, and then by a look at the edges beside it."""
        edges = self.edges(features)
        divided = 1 < self.n_bins <= _DIVIDED and features.size > 100 * self.n_bins
        if not divided or not (features.min() >= 0.0 and features.max() <= 2.0):
            return np.searchsorted(edges, features, side="right")
        codes = np.empty(features.shape, dtype=np.intp)
        upper, lower = np.append(edges, np.inf), np.insert(edges, 0, -np.inf)
        for rows in in_chunks(len(features), features.shape[1], within=budget.cache // 8):
            part = features[rows]
            found = np.minimum((part * self.n_bins).astype(np.intp), self.n_bins - 1)
            found += part >= upper[found]  # a product is rounded, and an edge too
            found -= part < lower[found]
            codes[rows] = found
        return codes

    def traced_cells(self, features: Array) -> tuple[Array, int]:
        """The same inside ``jax.jit``, for one probability."""
        if features.shape[1] > 1:
            return super().traced_cells(features)
        xp = namespace(features)
        edges = from_numpy(self.edges(features), features)
        above = stop_gradient(features) >= edges[None, :]
        return xp.sum(xp.astype(above, integer_dtype(xp)), axis=1), self.n_bins


@dataclass(frozen=True)
class EqualMassBins(Binning):
    """Bins of equally many cases, as far as equal predictions allow.

    One probability is cut at its quantiles. More are cut one after the other: a set of cases that is to
    become m bins is cut where its most variable probability divides it in proportion floor(m / 2) to
    ceil(m / 2), until m is 1.

    Parameters
    ----------
    n_bins
        Number of bins.

    Examples
    --------
    >>> EqualMassBins(2).cells(np.array([[0.9], [0.1], [0.2], [0.8]]))
    array([1, 0, 0, 1])
    """

    n_bins: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", whole_number(self.n_bins, "n_bins", least=1, most=MOST_BINS))

    @classmethod
    def with_bins(cls, n_bins: int) -> EqualMassBins:
        """So many bins."""
        return cls(n_bins)

    def cells(self, features: NDArray) -> NDArray:
        """Number of the bin of each row."""
        done: list[NDArray] = []
        todo = [(np.arange(len(features)), self.n_bins)]
        while todo:
            index, count = todo.pop()
            cut = None
            if count > 1 and len(index) > 1:
                # Of m bins of n cases the first n mod m have one case more than the others.
                left, size = count // 2, len(index)
                wanted = left * (size // count) + min(left, size % count)
                cut = _split(features[index], wanted, 1)
            if cut is None:
                done.append(index)
                continue
            todo += [(index[cut[1]], count - count // 2), (index[cut[0]], count // 2)]
        return _positions(done, len(features))


@dataclass(frozen=True)
class MedianVarianceBins(Binning):
    """Bins found by splitting at medians, where predictions vary most.

    Starting with all predictions in one bin, the bin with the largest variance of any probability is
    split at the median of that probability, as long as no bin becomes smaller than `min_size`.

    Parameters
    ----------
    min_size
        Smallest number of cases of a bin.
    max_bins
        Largest number of bins; None for no limit.

    References
    ----------
    J. Vaicenavicius, D. Widmann, C. Andersson, F. Lindsten, J. Roll, T. Schön (2019). Evaluating model
    calibration in classification. AISTATS.

    Examples
    --------
    >>> MedianVarianceBins(min_size=2).cells(np.array([[0.9], [0.1], [0.2], [0.8]]))
    array([1, 0, 0, 1])
    """

    min_size: int = 10
    max_bins: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "min_size", whole_number(self.min_size, "min_size", least=1))
        if self.max_bins is not None:
            object.__setattr__(self, "max_bins", whole_number(self.max_bins, "max_bins", least=1))

    @classmethod
    def with_bins(cls, n_bins: int) -> MedianVarianceBins:
        """At most so many bins."""
        return cls(max_bins=n_bins)

    def cells(self, features: NDArray) -> NDArray:
        """Number of the bin of each row."""
        done: list[NDArray] = []
        everything = np.arange(len(features))
        heap = [(-_largest_variance(features), 0, everything)]
        made = 1
        while heap:
            _, _, index = heapq.heappop(heap)
            full = self.max_bins is not None and len(done) + len(heap) + 1 >= self.max_bins
            cut = None if full else _split(features[index], len(index) // 2, self.min_size)
            if cut is None:
                done.append(index)
                continue
            for side in cut:
                part = index[side]
                heapq.heappush(heap, (-_largest_variance(features[part]), made, part))
                made += 1
        return _positions(sorted(done, key=lambda part: tuple(features[part].mean(axis=0))), len(features))


BINNINGS: dict[str, type[Binning]] = {
    "uniform": UniformBins,
    "equal_mass": EqualMassBins,
    "median_variance": MedianVarianceBins,
}


def as_binning(binning: object, n_bins: int | None, default: Binning, n: int) -> Binning | NDArray:
    """What a user gave as `binning`: a name, a rule, bins of all n cases, or None for the `default`."""
    if binning is None or isinstance(binning, str):
        rule = type(default)
        if isinstance(binning, str):
            rule = BINNINGS[one_of(binning, "binning", BINNINGS)]
        return rule() if n_bins is None else rule.with_bins(whole_number(n_bins, "n_bins", least=1))
    if n_bins is not None:
        raise ValueError(f"n_bins is for a binning that is given by name, found binning={described(binning)}")
    return binning if isinstance(binning, Binning) else _given_bins(binning, n)


def _given_bins(bins: Any, n: int) -> NDArray:
    if is_traced(bins):
        raise TypeError("binning must be known outside of jax.jit: the number of bins decides shapes")
    array = to_numpy(plain_array(bins, "binning"))
    if array.dtype.kind not in "biu":
        raise TypeError(
            f"binning must be one of {', '.join(map(repr, BINNINGS))}, a rule such as UniformBins(15), or "
            f"whole numbers (n,) that name the bin of each case, found {described(bins)}"
        )
    check_ndim(array, "binning", (1,))
    check_same_length(len(array), "binning", n, "predictions")
    return array


def numbered_bins(binning: Binning | NDArray, features: Array) -> NDArray:
    """Bins 0 .. m - 1 of all cases ``(n,)``, none of them empty."""
    if isinstance(binning, Binning):
        known = to_numpy_dtype(features).name in str(features.dtype)
        plain = features if known else widen(features)  # NumPy has no bfloat16
        cells = binning.cells(to_numpy(plain))
    else:
        cells = binning
    return compact(cells)[1]


def compact(cells: NDArray) -> tuple[NDArray, NDArray]:
    """The numbers that occur, in order, and for each of `cells` its place among them.

    Examples
    --------
    >>> compact(np.array([7, 3, 7]))
    (array([3, 7]), array([1, 0, 1]))
    """
    low, high = int(cells.min()), int(cells.max())
    if high - low > 4 * len(cells) + 1000 or high >= 2**62:
        used, places = np.unique(cells, return_inverse=True)
        return used, places.reshape(-1)
    shifted = cells.astype(np.intp, copy=False)
    shifted = shifted if low == 0 else shifted - low
    seen = np.bincount(shifted) > 0
    used = np.flatnonzero(seen) + low
    return used, shifted if seen.all() else (np.cumsum(seen) - 1)[shifted]


def to_numpy_dtype(like: Array) -> Any:
    """NumPy's name for the floating dtype of `like`; half precision of any kind counts as single."""
    name = str(like.dtype).rsplit(".", maxsplit=1)[-1]
    return np.dtype(name) if name in ("float16", "float32", "float64") else np.dtype("float32")


# -- cutting ---------------------------------------------------------------------------------


def _split(features: NDArray, wanted: int, min_size: int) -> tuple[NDArray, NDArray] | None:
    """Positions below and above a cut that leaves about `wanted` cases below, and `min_size` on each side.

    The most variable feature is cut, or the next one where equal values are in the way; None where there
    is no such cut.
    """
    n = len(features)
    if n < 2 * min_size:
        return None
    spread = np.var(features, axis=0)
    for column in np.argsort(-spread, kind="stable"):
        if not spread[column] > 0:
            return None
        values = features[:, column]
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        changes = np.flatnonzero(ordered[1:] > ordered[:-1]) + 1
        changes = changes[(changes >= min_size) & (changes <= n - min_size)]
        if len(changes):
            cut = changes[np.argmin(np.abs(changes - wanted))]
            return order[:cut], order[cut:]
    return None


def _largest_variance(features: NDArray) -> float:
    return float(np.max(np.var(features, axis=0)))


def _positions(parts: list[NDArray], n: int) -> NDArray:
    cells = np.empty(n, dtype=np.int64)
    for number, index in enumerate(parts):
        cells[index] = number
    return cells
