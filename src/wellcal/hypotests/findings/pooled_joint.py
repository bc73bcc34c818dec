"""A closer look at draws of vectors that are pooled with their target, as `joint` has it for predictions.

What goes with the prediction of another coordinate is told by draws alone, too: see `vector_pools`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.claims import Estimator, Found
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.findings.joint import MOST_CENTRES, SPREAD_OF_ALL, CentreTrends, clearest_pairs
from wellcal.hypotests.findings.pooled_vectors import PooledVectors
from wellcal.hypotests.findings.splits import Summary, log_spread_of, mean_of, name_of_means
from wellcal.hypotests.findings.trends import (
    Manner,
    best_contrast,
    correlation_finding,
    shifts,
    spreads,
    trend_finding,
)
from wellcal.hypotests.findings.vector_pools import Members, errors_in_turn, levels_of, standardised

_SINGULAR = 1.0 - 1e-9


class PooledCentreTrends(CentreTrends):
    """Centres of coordinates that go with draws of another."""

    def __init__(self, vectors: PooledVectors) -> None:
        self.vectors, self.pool, self.chosen = vectors, vectors.pool, vectors.chosen
        self.others = range(min(self.pool.members.shape[2], MOST_CENTRES))
        means = self.pool.means(self.pool.members)
        tables = {name_of_means(j): means[..., j].T for j in self.others}
        if self.pool.own.any():
            tables[SPREAD_OF_ALL] = self._spread(self.pool.members).T
        self.summaries = [Summary(name, table[:, -1], table) for name, table in tables.items()]
        self.draws = [Members(self.pool.members[..., j].T, 1) for j in self.others]
        self.lines = [levels_of(table) - 0.5 for table in tables.values()]
        self.names = self._names()

    def _names(self) -> list[str]:
        return [f"{j} {k}" for j in self.chosen for k in range(len(self.lines))]

    def _spread(self, targets: NDArray) -> NDArray:
        """Spreads of the draws in all coordinates in which they are known, ``(r, n)``."""
        return np.sqrt(np.mean(self.pool.spreads(targets)[..., self.pool.own] ** 2, axis=-1))

    def _lines(self, targets: NDArray, found: list[NDArray]) -> list[NDArray]:
        """What spreads and correlations go with, by the draws, ``(r, n)``; `found`: places of targets."""
        lines = [line.reshape(-1)[place] for line, place in zip(self.lines, found, strict=False)]
        if len(self.lines) == len(lines):
            return lines
        at = self._spread(self.pool.members).T.reshape(-1)
        order = np.argsort(at)
        return [*lines, np.interp(self._spread(targets), at[order], self.lines[-1].reshape(-1)[order])]

    def _found(self, targets: NDArray) -> list[NDArray]:
        return [of.find(targets[..., j]) for j, of in zip(self.others, self.draws, strict=True)]

    def scores(self, targets: NDArray) -> NDArray:
        """The same as the estimates."""
        some = in_chunks(len(targets), targets[0].size * (2 + len(self.lines)))
        return np.concatenate([self._means(self._rows(targets[sets])) for sets in some])

    def estimator(self, targets: NDArray) -> Estimator:
        """From what is known of each case."""
        rows = self._rows(targets[None])
        return lambda cases: self._means(rows[..., cases])[0]

    def expected(self, scores: NDArray) -> NDArray:
        """There are no trends in calibrated models."""
        return np.zeros(len(self.names))

    def _rows(self, targets: NDArray) -> NDArray:
        """What each case adds ``(c k, r, n)``: draws of another coordinate, in turn, say where it lies.

        Then what these say ``(k, r, n)``, and residuals ``(c, r, n)``.
        """
        apart, units = self.pool.apart(targets), self.pool.units(targets)
        z = self.pool.residuals(targets)[..., self.chosen]
        found = self._found(targets)
        own = [of.table().reshape(-1)[place] for of, place in zip(self.draws, found, strict=True)]
        spread = self._lines(targets, found)[len(own) :]
        rows: list[NDArray] = []
        for place, a in enumerate(self.chosen):
            members = (self.pool.members[..., a] - self.pool.centre[..., a]).T
            for column, of in zip(own, self.draws, strict=True):
                total, product = of.total[0], np.sum(of.table()[0] * members, axis=1)
                turned = errors_in_turn(apart[..., a], column, total, product, self.pool.draws)
                rows.append(turned / units[..., a])
            rows += [z[..., place] * line for line in spread]
        here = [(of.total - column) / self.pool.draws for column, of in zip(own, self.draws, strict=True)]
        return np.stack([*rows, *here, *spread, *np.moveaxis(z, 2, 0)])

    def _means(self, rows: NDArray) -> NDArray:
        """All residuals of a coordinate being too high is no trend."""
        means, k, c = rows.mean(axis=2), len(self.lines), len(self.chosen)
        lines, z = means[c * k : c * k + k], means[c * k + k :]
        return means[: c * k].T - np.einsum("cr,kr->rck", z, lines).reshape(rows.shape[1], -1)

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """The group that shows it best, for each coordinate."""
        manner = shifts(mean_of, self.vectors.units)
        return self._by_groups(told, manner, self.pool.residuals(targets[None])[0][:, self.chosen])

    def _by_groups(self, told: Mapping[str, Found], manner: Manner, values: NDArray) -> list[Finding]:
        members = self.pool.of_members()[..., self.chosen]

        def trend(place: int, found: Found) -> Finding | None:
            about = self.summaries, found.reach, found.pvalue, self.groups
            return trend_finding(manner, values[:, place], *about, members=members[..., place])

        return list(self._told(told, trend))


class PooledSpreadTrends(PooledCentreTrends):
    """Spreads of coordinates that go with the draws of another."""

    def expected(self, scores: NDArray) -> NDArray:
        """What draws have, of which one is the target: an outcome that is off gives trends to its pool."""
        without = self.vectors.without
        return scores if without is None else type(self)(without).scores(without.targets).mean(axis=0)

    def _rows(self, targets: NDArray) -> NDArray:
        """What is left of residuals, and lines, ``(c + k, r, n)``."""
        freed = np.moveaxis(self.vectors.freed(targets), 2, 0)
        return np.concatenate([freed, self._lines(targets, self._found(targets))])

    def _means(self, rows: NDArray) -> NDArray:
        squares, lines = rows[: len(self.chosen)] ** 2, standardised(rows[len(self.chosen) :])
        relative = squares / np.maximum(squares.mean(axis=2, keepdims=True), 1e-300) - 1.0
        return np.einsum("crn,krn->rck", relative, lines).reshape(rows.shape[1], -1) / rows.shape[2]

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """The group that shows it best, for each coordinate."""
        return self._by_groups(
            told, spreads(log_spread_of, self.vectors.units), self.vectors.freed(targets[None])[0]
        )


class PooledCorrelationTrends(PooledSpreadTrends):
    """Correlations of pairs of coordinates that go with the draws."""

    def _names(self) -> list[str]:
        self.pairs = list(combinations(range(len(self.chosen)), 2))
        return [f"{a} {b} {k}" for a, b in self.pairs for k in range(len(self.lines))]

    def _means(self, rows: NDArray) -> NDArray:
        rest, lines = rows[: len(self.chosen)], standardised(rows[len(self.chosen) :])
        u = rest / np.sqrt(np.maximum(np.mean(rest**2, axis=2, keepdims=True), 1e-300))
        found: list[NDArray] = []
        for a, b in self.pairs:
            product = u[a] * u[b]
            found += [
                np.mean((product - product.mean(axis=1, keepdims=True)) * line, axis=1) for line in lines
            ]
        return np.stack(found, axis=1)

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """The group that shows it best, for the clearest pairs."""
        rest = self.vectors.freed(targets[None])[0]
        return clearest_pairs(told, lambda a, b, found: self._pair(a, b, rest[:, [a, b]], found))

    def _pair(self, a: int, b: int, rest: NDArray, found: Found) -> Finding | None:
        products = self.vectors.products_of_draws([a, b])
        values = np.concatenate([rest, products / self.pool.draws], axis=1)
        best = best_contrast(net_correlation_of, values, self.summaries, self.groups)
        if best is None:
            return None

        def predicted(where: NDArray) -> float:
            first, second, both = products[where].mean(axis=0)
            return float(both / np.sqrt(max(first * second, 1e-300)))

        names = " and ".join(str(self.chosen[place] + 1) for place in (a, b))
        return correlation_finding(f"coordinates {names}", best, predicted, found.reach, found.pvalue)


def net_correlation_of(values: NDArray) -> tuple[float, NDArray]:
    """Fisher's transform of a correlation of errors, less what the mean of draws adds to them.

    Parameters
    ----------
    values
        Errors of two coordinates, and what draws add to their squares and to their product, ``(n, 5)``.

    Examples
    --------
    >>> errors = np.array([[1.0, 1.0], [1.0, 0.5], [-1.0, -1.0], [-1.0, -0.5]])
    >>> alone, _ = net_correlation_of(np.c_[errors, np.zeros((4, 3))])
    >>> net, _ = net_correlation_of(np.c_[errors, np.full((4, 3), 0.25)])
    >>> round(float(np.tanh(alone)), 2), round(float(np.tanh(net)), 2)
    (0.95, 0.94)
    """
    errors = values[:, :2] - values[:, :2].mean(axis=0)
    u, v, both = (np.stack([*(errors**2).T, errors[:, 0] * errors[:, 1]], axis=1) - values[:, 2:]).T
    first, second = (max(float(part.mean()), 1e-300) for part in (u, v))
    scale = np.sqrt(first * second)
    found = min(max(float(both.mean() / scale), -_SINGULAR), _SINGULAR)
    influence = (both / scale - 0.5 * found * (u / first + v / second)) / (1.0 - found**2) / len(values)
    return float(np.arctanh(found)), influence
