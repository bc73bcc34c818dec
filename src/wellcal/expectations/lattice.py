"""Counts on a few nodes: probabilities of wide predictions are smooth, and need not be kept one by one.

The counts that matter are cut into panels. In a short one every count is a node. In a long one the
probabilities of all predictions are polynomials to rounding, given by their values at the nodes t_g of a
Gauss rule for sums over whole numbers,

    p(k) = sum_g p(t_g) L_g(k),        sum_k f(k) = sum_g w_g f(t_g)  for polynomials f of degree 2 m - 1,

so that a prediction is a sum of fixed measures ``sum_k L_g(k) d(k)``, whose expectations under a kernel are
worked out once. Two dozen nodes stand for thousands of counts. Panels are halved until the last coefficients
of every prediction in orthogonal polynomials are below rounding, which is checked and not assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, widen
from wellcal.expectations.continuations import CONTINUATIONS, windows
from wellcal.expectations.count_panels import (
    QUADRATURE,
    SHORTEST,
    Panel,
    edges_of,
    gauss_rule,
    rules_over,
    sum_rule,
)
from wellcal.predictions import Predictions

_DENSE_UNTIL = 64  # counts near zero, where probabilities of small means are uneven, are always nodes
_FEW = 512  # so many counts are all nodes
_MOST = 4096  # nodes
_RESOLVED = 1e-13  # size of the last coefficients, as a probability
_LOOKED_AT = 24  # predictions whose coefficients are looked at before those of all, twice
_RUN = 64  # counts from one logarithm to the next; between, probabilities follow from their neighbours
_REACH = 9.0  # length scales beyond which a Gaussian kernel is zero to rounding


# -- the lattice of a batch ------------------------------------------------------------------


class Part(NamedTuple):
    """Points with the measures of one panel: expectations are ``sum_q f(x_q) measure[q, g]``."""

    points: NDArray
    measure: NDArray | None  # None: each point is its node
    columns: slice
    rows: slice  # of the arguments that it reaches


@dataclass(frozen=True)
class Lattice:
    """Nodes for a batch of predictions of counts."""

    panels: tuple[Panel, ...]

    @property
    def nodes(self) -> NDArray:
        """All nodes, in ascending order."""
        return np.concatenate([panel.nodes for panel in self.panels])

    @property
    def size(self) -> int:
        """Number of nodes."""
        return sum(len(panel.nodes) for panel in self.panels)

    @property
    def count(self) -> int:
        """Number of counts that they stand for."""
        return sum(panel.count for panel in self.panels)

    @property
    def dense(self) -> bool:
        """Whether every count is a node."""
        return not any(panel.long for panel in self.panels)

    def columns(self) -> list[slice]:
        """Where the nodes of each panel stand."""
        ends = np.cumsum([0, *(len(panel.nodes) for panel in self.panels)]).tolist()
        return [slice(a, b) for a, b in pairwise(ends)]

    def parts(self, lengthscale: float, at: NDArray) -> Iterator[Part]:
        """Points on which a Gaussian kernel times a polynomial is summed exactly, near arguments `at`."""
        reach = _REACH * lengthscale
        for panel, columns in zip(self.panels, self.columns(), strict=True):
            if not len(at) or at[-1] < panel.start - reach or at[0] >= panel.stop + reach:
                continue
            edges = edges_of(panel.start, panel.stop, lengthscale)
            first = np.searchsorted(at, edges[:-1] - reach)
            last = np.searchsorted(at, edges[1:] + reach)
            near = np.flatnonzero(first < last)
            if panel.long and len(near):
                rules = [sum_rule(edges[k], edges[k + 1]) for k in near]
                points = np.concatenate([x for x, _ in rules])
                measures = panel.basis(points) * np.concatenate([w for _, w in rules])[:, None]
                ends = np.cumsum([0, *(len(x) for x, _ in rules)]).tolist()
                for k, (a, b) in zip(near, pairwise(ends), strict=True):
                    yield Part(points[a:b], measures[a:b], columns, slice(int(first[k]), int(last[k])))
            elif not panel.long:
                for k in near:
                    counts = np.arange(float(edges[k]), float(edges[k + 1]))
                    start = columns.start + int(edges[k] - panel.start)
                    into = slice(start, start + len(counts))
                    yield Part(counts, None, into, slice(int(first[k]), int(last[k])))

    def smoothed(self, lengthscale: float, at: NDArray) -> NDArray:
        """``sum_k L_g(k) exp(-(k - u)^2 / (2 l^2))``, ``(len(at), size)``, for nodes g and ascending u."""
        out = np.zeros((len(at), self.size))
        for part in self.parts(lengthscale, at):
            out[part.rows, part.columns] += _values(part, lengthscale, at)
        return out

    def averaged(self, probabilities: NDArray, lengthscale: float, at: NDArray) -> NDArray:
        """E exp(-(Z - u)^2 / (2 l^2)) for predictions and u in ascending order, ``(n, len(at))``, in NumPy.

        The product with :meth:`smoothed`, part by part: most of that is zero.
        """
        out = np.zeros((len(probabilities), len(at)))
        for part in self.parts(lengthscale, at):
            out[:, part.rows] += probabilities[:, part.columns] @ _values(part, lengthscale, at).T
        return out

    def gram(self, lengthscale: float, measures: NDArray | None = None) -> NDArray:
        """The kernel between nodes, ``(size, size)``: ``p Q p'`` is E exp(-(Z - Z')^2 / (2 l^2)).

        Between measures with given values at the nodes, ``(r, size)``: the product ``(r, r)`` with these.

        Sums over counts k of L_g(k) times what the kernel makes of the measures. Near the ends of a panel
        that reaches over from the next one and changes with the length scale: short parts. Between them it is
        a polynomial, too, and a single rule sums it.
        """
        if measures is None:
            out = np.zeros((self.size, self.size))
            for columns, counts, measure, inner in self._sums(lengthscale):
                out[columns] += measure.T @ self.smoothed(lengthscale, counts)
                out[columns, columns] += 0.0 if inner is None else inner
        else:
            sums = list(self._sums(lengthscale))
            all_counts = np.concatenate([counts for _, counts, _, _ in sums])
            weighted = np.concatenate([measures[:, cols] @ measure.T for cols, _, measure, _ in sums], axis=1)
            out = weighted @ self.averaged(measures, lengthscale, all_counts).T
            for columns, _, _, inner in sums:
                own = measures[:, columns]
                out += 0.0 if inner is None else own @ inner @ own.T
        return 0.5 * (out + out.T)

    def _sums(self, lengthscale: float) -> Iterator[tuple[slice, NDArray, NDArray, NDArray | None]]:
        """For each panel: its columns, counts near its ends with the measures there, and sums of the rest."""
        reach = float(np.ceil(_REACH * lengthscale))
        for panel, columns in zip(self.panels, self.columns(), strict=True):
            ends, inner = [(panel.start, panel.stop)], None
            if panel.long and panel.count > 3.0 * reach + 2.0 * QUADRATURE:
                first, last = panel.start + reach, panel.stop - reach
                ends = [(panel.start, first), (last, panel.stop)]
                at, weights = gauss_rule(int(last - first), len(panel.nodes))
                at = at + first
                inner = (panel.basis(at) * weights[:, None]).T @ _averaged_polynomials(panel, lengthscale, at)
            rules = [rule for end in ends for rule in rules_over(*end, lengthscale)]
            counts, weights = (np.concatenate([rule[k] for rule in rules]) for k in (0, 1))
            yield columns, counts, panel.basis(counts) * weights[:, None], inner

    def positions(self, counts: NDArray) -> NDArray:
        """L_g(k), ``(len(counts), size)``: zero for counts that no prediction expects."""
        out = np.zeros((len(counts), self.size))
        for panel, columns in zip(self.panels, self.columns(), strict=True):
            inside = np.flatnonzero((counts >= panel.start) & (counts < panel.stop))
            if len(inside):
                out[inside, columns] = panel.basis(counts[inside])
        return out

    def weights(self) -> NDArray:
        """Weights of the nodes in sums over counts: p_i(t_g) p_j(t_g) is summed exactly, too."""
        return np.concatenate([panel.weights for panel in self.panels])

    def probabilities(self, predictions: Predictions, seen: Sequence[Block | None] | None = None) -> Array:
        """Probabilities at the nodes, ``(n, size)``, with derivatives where the array library has them.

        `seen` are blocks of these predictions, one for each panel, that need not be computed again.
        """
        if not predictions.ops.differentiable:
            return self._in_numpy(predictions, [None for _ in self.panels] if seen is None else seen)
        xp = predictions.xp
        counts = widen(predictions.constant(np.repeat(self.nodes[:, None], len(predictions), axis=1)))
        found = widen(predictions.log_prob(xp.floor(counts)))
        known = CONTINUATIONS.find(type(predictions))
        if not self.dense and known is not None:
            # Zero has a formula of its own: where the other is not wanted it is given another count.
            whole = xp.floor(counts) == counts
            between = known.log_prob(predictions, xp.where(whole, xp.full_like(counts, _DENSE_UNTIL), counts))
            found = xp.where(whole, found, between)
        return xp.permute_dims(xp.exp(found), (1, 0))

    def _in_numpy(self, predictions: Predictions, seen: Sequence[Block | None]) -> NDArray:
        """The same within the windows of the predictions, zero elsewhere."""
        bounds = windows(predictions)
        out = np.zeros((len(predictions), self.size))
        for panel, columns, block in zip(self.panels, self.columns(), seen, strict=True):
            if block is not None:
                out[block[0], columns] = block[1]
            elif panel.long:
                alive = np.flatnonzero((bounds[0] < panel.stop) & (bounds[1] >= panel.start))
                out[alive, columns] = between_counts(predictions[alive], panel.nodes) if len(alive) else 0.0
            else:
                _fill(out[:, columns], predictions, bounds, panel.nodes)
        return out


def _averaged_polynomials(panel: Panel, lengthscale: float, at: NDArray) -> NDArray:
    """``sum_d exp(-d^2 / (2 l^2)) L_g(t + d)`` over whole numbers d, ``(len(at), m)``, far from both ends."""
    reach = np.ceil(_REACH * lengthscale)
    rules = list(rules_over(-reach, reach + 1.0, lengthscale))
    offsets, weights = (np.concatenate([rule[k] for rule in rules]) for k in (0, 1))
    weights = weights * np.exp(-0.5 * (offsets / lengthscale) ** 2)
    return panel.summed_basis(at[:, None] + offsets[None, :], weights)


def _values(part: Part, lengthscale: float, at: NDArray) -> NDArray:
    """Expectations of a Gaussian kernel under the measures of a part, at the arguments that it reaches."""
    scaled = (at[part.rows, None] - part.points[None, :]) / lengthscale
    scaled *= scaled
    scaled *= -0.5
    values = np.exp(scaled, out=scaled)
    return values if part.measure is None else values @ part.measure


Bounds: TypeAlias = tuple[NDArray, NDArray]
"""Windows of a batch."""

Block: TypeAlias = tuple[NDArray, NDArray]
"""Rows of a batch that reach a panel, and their probabilities at its nodes."""


class Nodes(NamedTuple):
    """A lattice for some batches, and what was seen of them on its long panels."""

    lattice: Lattice
    blocks: tuple[tuple[Block | None, ...], ...]


def lattice_of(batches: Sequence[Predictions]) -> Nodes | None:
    """Nodes for batches of counts in NumPy; None where more would be needed than are allowed."""
    bounds = [windows(batch) for batch in batches]
    intervals = _merged(bounds)
    total = sum(b - a for a, b in intervals)
    smooth = all(CONTINUATIONS.find(type(batch)) is not None for batch in batches)
    if not np.isfinite(total) or (total > _MOST and not smooth):
        return None
    dense_until = float(_DENSE_UNTIL) if smooth and total > _FEW else np.inf
    open_: list[tuple[float, float]] = []
    for a, b in reversed(intervals):
        open_ += [(dense_until, b), (a, dense_until)] if a < dense_until < b else [(a, b)]
    peaks = _peaks(batches, bounds) if smooth else (np.zeros(0), np.zeros(0))
    panels: list[Panel] = []
    seen: list[list[Block | None]] = []
    size = 0
    while open_:
        a, b = open_.pop()
        long = a >= dense_until and b - a >= SHORTEST
        panel: Panel | None = None
        blocks: list[Block | None] | None = list[Block | None]([None] * len(batches))
        if not long:
            panel = Panel.over(a, b)
        elif not _holds_a_peak(a, b, peaks):
            panel = Panel.thinned(a, b)
            blocks = _as_polynomials(panel, batches, bounds)
        if panel is None or blocks is None:
            # Far from zero probabilities change with the logarithm of the count, or with its root.
            middle = float(np.floor(np.sqrt(a * b) if b > 2.0 * a else 0.5 * (a + b)))
            open_ += [(middle, b), (a, middle)]
            continue
        panels.append(panel)
        seen.append(blocks)
        size += len(panel.nodes)
        if size > _MOST:
            return None
    return Nodes(Lattice(tuple(panels)), tuple(zip(*seen, strict=True)))


def _merged(bounds: Sequence[Bounds]) -> list[tuple[float, float]]:
    """Intervals [a, b) of counts that the windows cover, in ascending order."""
    low, high = (np.concatenate([b[k] for b in bounds]) for k in (0, 1))
    order = np.argsort(low, kind="stable")
    low, reach = low[order], np.maximum.accumulate(high[order]) + 1.0
    starts = np.flatnonzero(np.concatenate([[True], low[1:] > reach[:-1]]))
    ends = np.append(starts[1:], len(low)) - 1
    return [(float(low[s]), float(reach[e])) for s, e in zip(starts, ends, strict=True)]


def _peaks(batches: Sequence[Predictions], bounds: Sequence[Bounds]) -> tuple[NDArray, NDArray]:
    """Means in ascending order, and widths of the windows around them."""
    means = np.concatenate([np.asarray(batch.mean(), dtype=np.float64) for batch in batches])
    order = np.argsort(means)
    return means[order], np.concatenate([high - low for low, high in bounds])[order]


def _holds_a_peak(start: float, stop: float, peaks: tuple[NDArray, NDArray]) -> bool:
    """Whether a prediction has its mean in a panel, and most of its window: no polynomial of few nodes."""
    first, last = np.searchsorted(peaks[0], (start, stop))
    return bool(np.min(peaks[1][first:last], initial=np.inf) < 2.0 * (stop - start))


def _as_polynomials(
    panel: Panel, batches: Sequence[Predictions], bounds: Sequence[Bounds]
) -> list[Block | None] | None:
    """Probabilities of the predictions that reach a panel; None where one is no polynomial there."""
    out: list[Block | None] = []
    for batch, (low, high) in zip(batches, bounds, strict=True):
        alive = np.flatnonzero((low < panel.stop) & (high >= panel.start))
        # Where a panel is too long a few predictions say so first: the narrowest, and some of all widths.
        by_width = alive[np.argsort((high - low)[alive])]
        some = np.concatenate([by_width[:_LOOKED_AT], by_width[_LOOKED_AT :: 1 + len(alive) // _LOOKED_AT]])
        values = np.zeros((0, len(panel.nodes)))
        for rows in (some, alive) if len(alive) else ():
            values = between_counts(batch[rows], panel.nodes)
            last = np.abs(panel.coefficients(values)[:, -3:])
            if not float(last.max()) * np.sqrt(panel.count) <= _RESOLVED:
                return None
        out.append((alive, values))
    return out


def between_counts(predictions: Predictions, nodes: NDArray) -> NDArray:
    """Probabilities at real arguments, ``(n, m)``, in NumPy."""
    known = CONTINUATIONS.find(type(predictions))
    assert known is not None
    with np.errstate(all="ignore"):
        return np.exp(known.log_prob(predictions, nodes[:, None])).T


def _fill(out: NDArray, predictions: Predictions, bounds: Bounds, counts: NDArray) -> None:
    """Write the probabilities of counts that follow each other, ``(n, m)``, within the windows."""
    known = CONTINUATIONS.find(type(predictions))
    for start in range(0, len(counts), _RUN):
        run = counts[start : start + _RUN]
        alive = np.flatnonzero((bounds[0] <= run[-1]) & (bounds[1] >= run[0]))
        if not len(alive):
            continue
        batch = predictions[alive]
        with np.errstate(all="ignore"):
            if known is None:
                values = np.exp(np.asarray(batch.log_prob(np.repeat(run[:, None], len(batch), axis=1)))).T
            else:
                # What underflows at the first count of a run is negligible in all of it.
                first = np.exp(np.asarray(batch.log_prob(np.full(len(batch), run[0]))))
                ratios = known.ratio(batch, run[:-1])
                values = np.cumprod(np.concatenate([first[:, None], ratios], axis=1), axis=1)
        out[alive, start : start + _RUN] = values
