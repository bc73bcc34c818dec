"""Findings about draws of vectors that are pooled with their target: see `vector_pools`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.claims import Estimator, Found
from wellcal.hypotests.findings.draws import told_trend, trend_names
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.findings.scalars import CENTRE, SHIFTED, SPREAD, WIDTH, ScalarClaims
from wellcal.hypotests.findings.splits import SPREAD as PREDICTED_SPREAD
from wellcal.hypotests.findings.splits import Summary, log_spread_of, mean_of, name_of_means
from wellcal.hypotests.findings.trends import shifts, spreads
from wellcal.hypotests.findings.vector_pools import Members, VectorPool, levels_of, standardised
from wellcal.hypotests.findings.vectors import OF_ALL, SINGULAR, VectorClaims
from wellcal.hypotests.parts.contrasts import Contrasts
from wellcal.measures.score_units import AmongDraws

_DEGREE = 3  # of what errors may follow: a line and two curves
_CLEAR = 9.0  # squared standard errors up to which a trend may be chance, and is not taken out
_LEAST_SHARE = 0.05  # of what tells draws apart that must tell cases apart, for a trend to be taken out
_LEAST_KNOWN = 0.1  # of the variance of errors that must be that of targets, for correlations of these
_LEAST_SQUARE = 1e-8  # of errors, in predicted units: less is rounding
_FEWEST, _MOST_SETS = 3, 20  # draws of which one may be the target, and how many of them are
_LEAST_RIGHT = 0.01  # of squares that are 1 if draws differ at all
_NUMBERS = 30  # of each target that are in memory at a time, about


class PooledCoordinate(ScalarClaims):
    """One coordinate: trends by draws in turn, and all else by residuals about the mean of draws."""

    def __init__(self, values: NDArray, own: bool) -> None:
        """`values` of the pool, ``(n, S + 1)``; `own` as that of `VectorPool`."""
        self.pool = pool = VectorPool(values[..., None], np.array([own]))
        means, widths = (part(pool.members)[..., 0].T for part in (pool.means, pool.spreads))
        named = [(name_of_means(), means), *([(PREDICTED_SPREAD, widths)] if pool.own[0] else [])]
        summaries = [Summary(name, table[:, -1], table) for name, table in named]
        alike = Contrasts(np.ones((len(values), 1)), [], [])
        super().__init__(lambda targets: targets, alike, summaries, units=AmongDraws(pool.draws))
        self.lines = [1, _DEGREE + 1][: len(named)]
        self.shapes = list(self.names)
        self.names = [*self.shapes, *trend_names(_DEGREE + len(named), self.lines)]
        self.draws = Members(values, _DEGREE)
        turned = self.draws.in_turn(pool.apart(pool.members)[..., 0].T)
        lines = [levels_of(table) - 0.5 for _, table in named]
        self.table = np.concatenate([self.draws.table(), turned, lines]).reshape(-1, values.size)

    @cached_property
    def members(self) -> NDArray:
        """Residuals of each member as the target, ``(n, S + 1)``."""
        return self.pool.of_members()[..., 0]

    def rows(self, targets: NDArray) -> NDArray:
        """Of sets of targets ``(r, n)``, case by case ``(R, r, n)``: columns, what adds to trends, and lines.

        Trends are those of the centre. Lines, of means and of spreads where these are known, are what trends
        of the spread go with.
        """
        rows = np.take(self.table, self.draws.find(targets), axis=1)
        rows[_DEGREE : 2 * _DEGREE] /= self.pool.units(targets[..., None])[..., 0]
        return rows

    def turned(self, rows: NDArray, z: NDArray, cases: NDArray | slice) -> NDArray:
        """What adds to trends of residuals ``(r, n)``, ``(3, r, n)``: that all are too high is none."""
        here = self._others(rows, cases) * (z.mean(axis=1, keepdims=True) / self.pool.draws)
        return np.subtract(rows[_DEGREE : 2 * _DEGREE], here, out=here)

    def _others(self, rows: NDArray, cases: NDArray | slice) -> NDArray:
        """Sums of the columns of draws, ``(3, r, n)``."""
        return self.draws.total[:, None, cases] - rows[:_DEGREE]

    def trends_in(self, rows: NDArray, turned: NDArray, z: NDArray, rest: NDArray) -> NDArray:
        """Trends of the centre, and of the spread of what is left of residuals ``(r, n)``."""
        lines = standardised(rows[2 * _DEGREE :])
        by_spread = (z - z.mean(axis=1, keepdims=True)) * lines[1:]
        squares = rest**2
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.nan_to_num(squares / squares.mean(axis=1, keepdims=True) - 1.0)
        return np.concatenate([part.mean(axis=2) for part in (turned, by_spread, relative * lines)]).T

    def slopes(self, rows: NDArray, turned: NDArray, cases: NDArray | slice) -> NDArray:
        """How residuals follow the columns of where a case lies, ``(r, 3)``; 0 where that may be chance.

        Where it lies is known from draws alone, which scatter about it: two draws have as much in common as
        cases differ. Of all sums of columns, those that differ most between cases come first, by themselves.
        """
        draws, n = self.pool.draws, rows.shape[2]
        found = np.zeros((rows.shape[1], _DEGREE))
        clear = np.any(n * turned.mean(axis=2) ** 2 > _CLEAR * turned.var(axis=2), axis=0)
        if not np.any(clear):
            return found
        rows, turned = rows[:, clear], turned[:, clear]
        own, others = rows[:_DEGREE], self._others(rows, cases)
        same = self.draws.products[..., cases].sum(axis=2) - np.einsum("jrn,krn->rjk", own, own)
        pairs = np.einsum("jrn,krn->rjk", others, others) - same
        mean = others.mean(axis=2).T / draws
        square = mean[:, :, None] * mean[:, None, :]
        size, axes = np.linalg.eigh(same / (n * draws) - square)
        whole = axes * np.where(size > _LEAST_SQUARE, size, np.inf)[:, None, :] ** -0.5
        between = pairs / (n * draws * (draws - 1.0)) - square
        common, axes = np.linalg.eigh(np.swapaxes(whole, 1, 2) @ between @ whole)
        weights = whole @ axes
        added = np.einsum("rjk,jrn->rkn", weights, turned)
        trend, error = added.mean(axis=2), added.var(axis=2) / n
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.maximum(1.0 - (_CLEAR * error / trend**2) ** 2, 0.0)
            kept = np.where(common > _LEAST_SHARE, kept * trend / common, 0.0)
        found[clear] = np.einsum("rjk,rk->rj", weights, np.nan_to_num(kept))
        return found

    # -- words -----------------------------------------------------------------------------------

    def trend_of_the_centre(self, told: Mapping[str, Found], z: NDArray) -> Finding | None:
        """Where targets are too high or too low, beside what is usual where draws happen to be high."""
        found = told_trend(self, told, CENTRE, shifts(mean_of, self.units), z, self.members)
        return _with(found, told, (CENTRE, SHIFTED))

    def trend_of_the_spread(self, told: Mapping[str, Found], z: NDArray, right: float) -> Finding | None:
        """Where spreads are too small or too large."""
        if not any(name.startswith(WIDTH) for name in told):
            return None
        targets, cases = self.pool.members[-1:], slice(None)
        rows = self.rows(targets[..., 0])
        turned = self.turned(rows, self.pool.residuals(targets)[..., 0], cases)
        slopes = self.slopes(rows, turned, cases)[0]
        left = z - z.mean() - slopes @ self._others(rows, cases)[:, 0] / self.pool.draws

        def measure(values: NDArray) -> tuple[float, NDArray]:
            value, influence = log_spread_of(values)
            return value - right, influence

        found = told_trend(self, told, WIDTH, spreads(measure, self.units), left, self.members)
        return _with(found, told, (WIDTH, SPREAD))


def _with(found: Finding | None, told: Mapping[str, Found], starts: tuple[str, ...]) -> Finding | None:
    """A trend that is as clear as the clearest of what it tells."""
    if found is None:
        return None
    return replace(found, pvalue=min(one.pvalue for name, one in told.items() if name.startswith(starts)))


class _Rows(NamedTuple):
    """What is known of sets of targets, case by case: residuals, their units, and rows of coordinates."""

    z: NDArray  # (r, n, d)
    units: NDArray  # (r, n, c)
    squares: NDArray  # that residuals of cases by themselves are expected to have (r, n, c)
    each: list[NDArray]  # (R, r, n) of the chosen coordinates

    def of(self, cases: NDArray | slice) -> _Rows:
        z, units, squares = (part[:, cases] for part in (self.z, self.units, self.squares))
        return _Rows(z, units, squares, [rows[..., cases] for rows in self.each])


class Moments(NamedTuple):
    """Second moments ``(r, c, c)`` of errors without their trends, and of draws, in the same units."""

    errors: NDArray
    draws: NDArray
    number: int

    @property
    def squares(self) -> NDArray:
        """How far errors spread, relative to what they do if the model is calibrated, ``(r, c)``."""
        right = np.maximum((1.0 + 1.0 / self.number) * _diagonal(self.draws), _LEAST_RIGHT)
        return np.maximum(_diagonal(self.errors) / right, _LEAST_SQUARE)

    def said(self) -> NDArray:
        """Correlations that draws have, ``(r, c, c)``; not a number where they are all the same."""
        squares = _diagonal(self.draws)
        return _correlations(self.draws, np.where(squares > _LEAST_SQUARE, squares, np.nan))

    def seen(self) -> NDArray:
        """Correlations that targets have: the mean of draws adds its own to those of errors about it.

        Not a number where hardly anything else is in these errors.
        """
        targets = self.errors - self.draws / self.number
        squares, all_of = _diagonal(targets), _diagonal(self.errors)
        return _correlations(targets, np.where(squares > _LEAST_KNOWN * all_of, squares, np.nan))


class PooledVectors(VectorClaims):
    """The same for draws and target together.

    Correlations that were predicted are those of the draws alone, and those that are told are of targets
    without the chance in the mean of a few draws. What is looked for is their difference, which changes sides
    with the target: the pool makes its p-value.
    """

    def __init__(self, values: NDArray, *, tied: bool = False, own: NDArray | None = None) -> None:
        """`values` of the pool, ``(n, S + 1, d)``; `tied` as for all vectors, `own` as in `VectorPool`."""
        self.pool = VectorPool(values, own)
        self.unit = self.pool.units(self.pool.members[-1:])[0]
        self._take(values.shape[2], AmongDraws(self.pool.draws), tied)
        self.names = [*self.names, *(f"_{self._pair(pair)}" for pair in self.pairs)]
        apart = self.pool.apart(self.pool.members)[..., self.chosen]
        self.products = np.einsum("mna,mnb->nab", apart, apart, optimize=True)

    def _coordinate(self, place: int) -> PooledCoordinate:
        return PooledCoordinate(self.pool.members[..., place].T, bool(self.pool.own[place]))

    # -- quantities ------------------------------------------------------------------------------

    def residuals(self, targets: NDArray) -> NDArray:
        """Standardised residuals ``(r, n, d)`` of all coordinates, about the mean of the draws."""
        return self.pool.residuals(targets)

    def scores(self, targets: NDArray) -> NDArray:
        """The same as the estimates."""
        some = in_chunks(len(targets), targets[0].size * _NUMBERS)
        return np.concatenate([self._all(self._rows(targets[sets]), slice(None)) for sets in some])

    def estimator(self, targets: NDArray) -> Estimator:
        """From what is known of each case."""
        rows = self._rows(targets[None])
        return lambda cases: self._all(rows.of(cases), cases)[0]

    def expected(self, scores: NDArray) -> NDArray:
        """Correlations of calibrated models are those of their draws, and so are shapes.

        An outcome that is off is one of the targets that are drawn from its pool, and gives them tails.
        """
        among = scores if self.without is None else self.without.scores(self.without.targets).mean(axis=0)
        pairs = [name in set(map(self._pair, self.pairs)) for name in self.names]
        parts = [name.rpartition(": ") for name in self.names]
        shapes = [
            name.endswith(OF_ALL) or (bool(of) and not name.startswith((SHIFTED, SPREAD, CENTRE)))
            for of, _, name in parts
        ]
        return np.where(pairs, 0.0, np.where(shapes, among, scores))

    @cached_property
    def without(self) -> PooledVectors | None:
        """The same without the observed targets, where there are draws enough: one of them is the target."""
        if self.pool.draws < _FEWEST:
            return None
        return PooledVectors(np.moveaxis(self.pool.members[:-1], 0, 1), own=self.pool.own)

    @property
    def targets(self) -> NDArray:
        """Sets of targets that take each member of the pools once; some of them, where there are many."""
        return self.pool.members[:: -(-len(self.pool.members) // _MOST_SETS)]

    def correlations(self, targets: NDArray) -> tuple[NDArray, NDArray]:
        """Those of targets and those of draws ``(r, p)``, as findings tell them."""
        some = in_chunks(len(targets), targets[0].size * _NUMBERS)
        parts = [self._freed(self._rows(targets[sets]), slice(None))[1] for sets in some]
        seen, said = ([part(each) for each in parts] for part in (Moments.seen, Moments.said))
        return self._of_pairs(np.concatenate(seen)), self._of_pairs(np.concatenate(said))

    def freed(self, targets: NDArray) -> NDArray:
        """What trends leave of residuals of the chosen coordinates, ``(r, n, c)``."""
        return self._freed(self._rows(targets), slice(None))[0]

    def products_of_draws(self, pair: list[int]) -> NDArray:
        """Of two chosen coordinates: their variances and covariance among the draws of each case, ``(n, 3)``.

        In the units of the residuals of the observed targets.
        """
        z, units = (
            part(self.pool.members[-1:])[0][:, self.chosen][:, pair]
            for part in (self.residuals, self.pool.units)
        )
        own, draws = z / np.sqrt(1.0 + 1.0 / self.pool.draws), self.pool.draws
        at = [0, 1, 0], [0, 1, 1]
        members = self.products[:, [pair[k] for k in at[0]], [pair[k] for k in at[1]]]
        return (members / (units[:, at[0]] * units[:, at[1]]) - own[:, at[0]] * own[:, at[1]]) / (draws - 1.0)

    def _rows(self, targets: NDArray) -> _Rows:
        each = [claims.rows(targets[..., j]) for j, claims in zip(self.chosen, self._pooled(), strict=True)]
        units = self.pool.units(targets)[..., self.chosen]
        squares = self.pool.squares(targets)[..., self.chosen] / units**2
        return _Rows(self.residuals(targets), units, squares, each)

    def _pooled(self) -> list[PooledCoordinate]:
        return [claims for claims in self.alone if isinstance(claims, PooledCoordinate)]

    def _freed(self, rows: _Rows, cases: NDArray | slice) -> tuple[NDArray, Moments, list[NDArray]]:
        """What trends leave of residuals ``(r, n, c)``, second moments, and what adds to these trends."""
        z, units = rows.z[..., self.chosen], rows.units
        n, draws = z.shape[1], self.pool.draws
        rest = z - z.mean(axis=1, keepdims=True)
        errors = np.einsum("rna,rnb->rab", rest, rest, optimize=True) / max(n - 1.0, 1.0)
        # All members less the target, which is in residuals already.
        members = np.einsum("nab,rna,rnb->rab", self.products[cases], 1.0 / units, 1.0 / units, optimize=True)
        targets = np.einsum("rna,rnb->rab", z, z, optimize=True) / (1.0 + 1.0 / draws)
        within = (members - targets) / (n * (draws - 1.0))
        np.einsum("raa->ra", within)[:] = rows.squares.mean(axis=1) / (1.0 + 1.0 / draws)
        known = list(zip(self._pooled(), rows.each, strict=True))
        turned = [claims.turned(each, z[..., place], cases) for place, (claims, each) in enumerate(known)]
        slopes = [claims.slopes(each, own, cases) for (claims, each), own in zip(known, turned, strict=True)]
        for place in np.flatnonzero(np.any(slopes, axis=(0, 2))).tolist():
            followed, taken = self._trend([one[place] for one in slopes], rows.each, place, cases)
            rest[place] -= followed - followed.mean(axis=0)
            errors[place] -= taken
        return rest, Moments(errors, within, draws), turned

    def _trend(
        self, slopes: list[NDArray], each: list[NDArray], place: int, cases: NDArray | slice
    ) -> tuple[NDArray, NDArray]:
        """Trends of one set of targets in the mean of its draws ``(n, c)``, and what they add to moments.

        The scatter of draws adds to squares of the former; products of different draws have none of it.
        """
        members: list[NDArray] = []
        own: list[NDArray] = []
        for claims, slope, rows in zip(self._pooled(), slopes, each, strict=True):
            members.append(claims.draws.combined(slope, cases))
            own.append(slope @ rows[:_DEGREE, place])
        lines, target, draws = np.stack(members, axis=-1), np.stack(own, axis=-1), self.pool.draws
        total = lines.sum(axis=1) - target
        same = np.einsum("nma,nmb->ab", lines, lines) - target.T @ target
        mean = total.mean(axis=0)
        pairs = (total.T @ total - same) / (len(total) * draws * (draws - 1.0))
        return total / draws, pairs - np.outer(mean, mean) / draws**2

    def _all(self, rows: _Rows, cases: NDArray | slice) -> NDArray:
        rest, moments, turned = self._freed(rows, cases)
        squares = moments.squares
        parts: list[NDArray] = []
        for place, (claims, each) in enumerate(zip(self._pooled(), rows.each, strict=True)):
            shapes = claims.quantities(rest[..., place], cases)
            z = rows.z[..., self.chosen[place]]
            shapes[:, claims.shapes.index(SHIFTED)] = z.mean(axis=1)
            shapes[:, claims.shapes.index(SPREAD)] = 0.5 * np.log(squares[:, place])
            parts += [shapes, claims.trends_in(each, turned[place], z, rest[..., place])]
        seen, said = (
            np.arctanh(np.clip(self._of_pairs(table), -SINGULAR, SINGULAR))
            for table in (moments.seen(), moments.said())
        )
        alike = self.shapes_of_all(parts[::2])
        parts += [seen - said, 0.5 * np.log(squares.mean(axis=1))[:, None]]
        return np.concatenate([*parts, rows.z.mean(axis=(1, 2))[:, None], alike, seen], axis=1)

    # -- words -----------------------------------------------------------------------------------

    def _correlation(self, name: str, told: Mapping[str, Found], every: Mapping[str, Found]) -> Found:
        """That of targets, beside that of their draws."""
        seen, apart = every[f"_{name}"], told[name]
        return seen._replace(expected=seen.estimate - apart.estimate, pvalue=apart.pvalue)


def _diagonal(table: NDArray) -> NDArray:
    return np.einsum("raa->ra", table)


def _correlations(products: NDArray, squares: NDArray) -> NDArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.sqrt(np.maximum(squares, 1e-300))
        return products / (scale[:, :, None] * scale[:, None, :])
