"""Adaptive quadrature: more atoms for predictions that need them, with a measured error.

Scalars are tried on ever finer trapezoidal rules in the normal score, row by row, and rows that stay too
coarse are handed to panels that refine themselves. The error is measured on all rows: it is the largest
change of a pairing with a point when half of the nodes are left out. Choices are made once for a batch, a
kernel and its options.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from wellcal._arrays.memo import Memo
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    is_traced,
    namespace,
    take_rows,
    to_numpy,
)
from wellcal._arrays.warnings import advise
from wellcal.expectations import panels
from wellcal.expectations.atoms import LOWERINGS, Atoms
from wellcal.expectations.count_atoms import COUNT_TAIL, MOST_ATOMS, whole_numbers
from wellcal.expectations.gauss_jacobi import LADDERS, coarser_rule, stick_atoms
from wellcal.expectations.lowering import (
    Lowering,
    at_scores,
    even_scores,
    has_own_lowering,
    has_sticks,
    is_scalar_rule,
    lower,
    quantiles_at,
)
from wellcal.expectations.quadrature_error import Probe, finite_points
from wellcal.kernels.base import Kernel
from wellcal.kernels.targets import calls_for_each_pair
from wellcal.predictions import Dirichlet, Predictions
from wellcal.predictions.batches import in_numpy


class Part(NamedTuple):
    """Atoms of some rows of a batch, all of them where `rows` is None."""

    rows: NDArray | None
    atoms: Atoms


@dataclass(frozen=True)
class Chosen:
    """Atoms in place of predictions, rows with equally many of them together.

    Attributes
    ----------
    parts
        The atoms.
    error
        Largest error of a pairing; NaN where values cannot be looked at.
    scheme
        How they were chosen, for the provenance of results.
    """

    parts: tuple[Part, ...]
    error: float
    scheme: str

    @property
    def single(self) -> Atoms:
        """The atoms of all rows, where these have equally many."""
        (part,) = self.parts
        return part.atoms


@dataclass(frozen=True)
class Effort:
    """What may be spent on a batch.

    Attributes
    ----------
    ladder
        Nodes of the trapezoidal rules that are tried, one after the other.
    accept
        Error at which a rule is taken at once.
    most
        Nodes for a row whose panels refine themselves, 0 where none do.
    even
        Whether all rows get equally many nodes, as sums over pairs of nodes need.
    """

    ladder: tuple[int, ...]
    accept: float
    most: int
    even: bool


FOR_PAIRS = Effort((16, 24, 32, 48, 64, 96, 128, 192, 256), 1e-6, 0, even=True)
"""Where pairs of nodes meet, whose number is squared."""

_ROUGH = 1e-3  # errors that a user should know of
MOST_CALLED = 1000  # nodes of all rows whose pairs are calls of a user's function, so that these take seconds


def effort_for(kernel: Kernel, cases: int) -> Effort:
    """What may be spent on pairs of nodes of so many cases.

    A function that is called for one pair at a time takes a thousand times as long as an expression on
    arrays: fewer nodes have to do then, and their error is larger.
    """
    if not calls_for_each_pair(kernel):
        return FOR_PAIRS
    first, *finer = FOR_PAIRS.ladder
    affordable = [nodes for nodes in finer if nodes * cases <= MOST_CALLED]
    return replace(FOR_PAIRS, ladder=(first, *affordable))


FOR_FEATURES = Effort((32, 64, 128), 1e-7, 8192, even=False)
"""Where nodes only make features, and many cost little."""

_MAX_NODES = 4_000_000  # of all rows that are refined: 32 MB
_TRACED_NODES = 256
"""Nodes under tracing, where errors cannot be measured: so many that gradients are right to 1e-6."""

_chosen: Memo[Chosen] = Memo()


def choose(
    predictions: Predictions, kernel: Kernel, options: Lowering, points: int, effort: Effort
) -> Chosen:
    """Atoms of a batch without a closed form, which a batch in NumPy remembers."""

    def find() -> Chosen:
        return choose_anew(predictions, kernel, options, points, effort)

    key = (kernel, options, points, effort, LOWERINGS.find(type(predictions)))
    if predictions.ops.differentiable:
        return find()
    return _chosen.get(predictions, key, find)


def choose_anew(
    predictions: Predictions, kernel: Kernel, options: Lowering, points: int, effort: Effort
) -> Chosen:
    """The same without looking at what is remembered."""
    probe = Probe(kernel, predictions.like)
    counts = predictions.target_kind == "counts" and not has_own_lowering(predictions)
    if is_traced(predictions.like):
        nodes = options.nodes or _TRACED_NODES
        atoms = whole_numbers(predictions, _longest(probe)) if counts else lower(predictions, nodes, points)
        return Chosen((Part(None, atoms),), float("nan"), atoms.scheme)
    if options.points is None and has_sticks(predictions):
        return _of_sticks(cast("Dirichlet", predictions), probe, effort, options.tolerance)
    if counts:
        return _of_counts(predictions, probe, effort)
    if not is_scalar_rule(predictions):
        return _measured(lower(predictions, options.nodes or effort.ladder[0], points), probe)
    if has_own_lowering(predictions):
        for nodes in effort.ladder if options.nodes is None else (options.nodes,):
            found = _measured(lower(predictions, nodes, points), probe)
            if found.error <= effort.accept:
                break
        return found  # pyright: ignore[reportPossiblyUnboundVariable]
    if options.nodes is not None:
        effort = replace(effort, ladder=(options.nodes,), most=0)
    accept = min(effort.accept, options.tolerance) if not effort.even else options.tolerance
    found = _Search(predictions, probe, replace(effort, accept=accept), options.tolerance).run()
    if options.nodes is None and found.error > _ROUGH and calls_for_each_pair(kernel):
        advise(
            f"the function of {kernel!r} is called for one pair of targets at a time, which leaves time for "
            f"few nodes, and expectations have an error of about {found.error:.1g}: write it for batches and "
            "take Callable(function, vectorized=True), or ask for more nodes with "
            "expectations=wc.Lowering(nodes=256)"
        )
    return found


# -- rules that are given -------------------------------------------------------------------------


def _measured(atoms: Atoms, probe: Probe) -> Chosen:
    """Atoms of a rule whose nodes cannot be chosen row by row, with their error."""
    error = 1e-13 if atoms.exact else float(np.max(halving_errors(probe, atoms)))
    return Chosen((Part(None, atoms),), error, atoms.scheme)


_COUNTS_PER_SCALE = 4.0  # a kernel over so many length scales is a polynomial of degree 15 to 1e-7
_MAX_COUNTS = 16_000_000  # atoms of all rows


def _longest(probe: Probe) -> float:
    """Counts that one panel may hold."""
    return _COUNTS_PER_SCALE * min(probe.radii(), default=np.inf)


def _of_counts(predictions: Predictions, probe: Probe, effort: Effort) -> Chosen:
    """Counts of rows with windows of about one width together; of all rows where pairs of atoms meet."""
    longest = _longest(probe)
    groups: list[tuple[NDArray | None, int]] = [(None, effort.ladder[-1])]
    if not effort.even:
        batch = in_numpy(predictions)
        width = batch.quantile(1.0 - COUNT_TAIL) - batch.quantile(COUNT_TAIL)
        classes = np.floor(np.log2(np.where(np.isfinite(width), width, 0.0) + 64.0))
        groups = []
        for size in np.unique(classes):
            rows = np.flatnonzero(classes == size)
            groups.append((rows, max(MOST_ATOMS, _MAX_COUNTS // (8 * len(rows)))))
    made: list[Chosen] = []
    for rows, most in groups:
        some = predictions if rows is None else predictions[rows]
        made.append(_measured(whole_numbers(some, longest, most), probe))
    parts = tuple(Part(rows, found.single) for (rows, _), found in zip(groups, made, strict=True))
    return Chosen(parts, max(found.error for found in made), made[-1].scheme)


_LEVELS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])  # of a prediction's mass: where pairings with points are tried


def halving_errors(probe: Probe, atoms: Atoms) -> NDArray:
    """Largest change of each row's pairing with some points when half of its atoms are left out.

    The points are atoms amid the mass and, for numbers, what lies halfway to the next one: a kernel with a
    kink may err as much with half the atoms as with all of them at one kind of point, but not at both.
    """
    return _change(probe, atoms, atoms.coarser(), points_amid(atoms))


def points_amid(atoms: Atoms) -> NDArray:
    """Atoms ``(p, b)`` or ``(p, b, d)`` amid the mass of each row and, for numbers, points between them."""
    values, index = to_numpy(atoms.values), _amid_mass(atoms)
    at = _taken(values, index)
    if values.ndim > 2:
        return at
    between = 0.5 * (at + _taken(values, np.minimum(index + 1, values.shape[1] - 1)))
    return finite_points(np.concatenate([at, between], axis=1), at[:, len(_LEVELS) // 2])


def _amid_mass(atoms: Atoms) -> NDArray:
    """Positions ``(p, b)`` of atoms amid the mass of each row."""
    below = np.cumsum(to_numpy(atoms.weights), axis=1)
    return np.stack([(below < level * below[:, -1:]).sum(axis=1) for level in _LEVELS], axis=1)


def _change(probe: Probe, atoms: Atoms, coarse: Atoms, at: NDArray) -> NDArray:
    """Largest change of each row's pairing with its points ``(p, b, ...)`` from one rule to another."""
    fine, rough = (probe.expected(to_numpy(of.weights), to_numpy(of.values), at) for of in (atoms, coarse))
    return np.abs(fine - rough).max(axis=1)


def _taken(values: NDArray, index: NDArray) -> NDArray:
    """Atoms ``(p, b)`` or ``(p, b, d)`` of each row by their positions ``(p, b)``."""
    return values[np.arange(len(values))[:, None], index]


# -- vectors on the simplex -------------------------------------------------------------------------


_FEW_POINTS = 64  # for a vector, whose pairs are summed although the tolerance is out of reach


def _of_sticks(predictions: Dirichlet, probe: Probe, effort: Effort, tolerance: float) -> Chosen:
    """Product rules for Dirichlet predictions: each row takes the first that is good enough.

    Its error is the change from the rule before, at atoms of both, at means and at corners of the simplex.
    """
    batch: Any = in_numpy(predictions)
    n, (d,) = len(batch), batch.event_shape
    others = batch.mean()[np.unique(np.linspace(0, n - 1, 4).astype(int))]
    shared = np.concatenate([others, np.eye(d)])
    ladder = [m for m in LADDERS[d] if not effort.even or m ** (d - 1) <= FOR_PAIRS.ladder[-1]]
    errors, chosen = np.full(n, np.inf), np.full(n, ladder[0])
    pending = np.arange(n)
    coarse = stick_atoms(batch, coarser_rule(ladder[0]))
    few = ladder[0], errors
    for nodes in ladder:
        if len(pending) * nodes ** (d - 1) > _MAX_NODES and nodes > ladder[0]:
            break
        some = batch[pending]
        atoms = stick_atoms(some, nodes)
        own = [_taken(np.asarray(of.values), _amid_mass(of)) for of in (atoms, coarse)]
        everywhere = np.broadcast_to(shared, (len(pending), *shared.shape))
        at = np.concatenate([*own, some.mean()[:, None, :], everywhere], axis=1)
        errors[pending], chosen[pending] = _change(probe, atoms, coarse, at), nodes
        left = ~(errors[pending] <= tolerance)
        pending = pending[left]
        if not len(pending):
            break
        coarse = replace(atoms, values=atoms.values[left], weights=atoms.weights[left], rougher=None)
        if nodes ** (d - 1) <= _FEW_POINTS:
            few = nodes, errors.copy()
    if effort.even:
        if len(pending):  # a kernel with a kink: more nodes would cost much and gain little
            chosen[:], errors = few
        chosen[:] = chosen.max(initial=ladder[0])
    sizes = [int(m) for m in np.unique(chosen)]
    groups = [(None, predictions)] if len(sizes) == 1 else []
    if not groups:
        rows = [np.flatnonzero(chosen == m) for m in sizes]
        groups = [(index, predictions[index]) for index in rows]
    made = [(index, stick_atoms(some, m)) for (index, some), m in zip(groups, sizes, strict=True)]
    words = made[0][1].scheme
    if len(sizes) > 1:
        words = words.replace(f"{sizes[0]} nodes", f"{sizes[0]} to {sizes[-1]} nodes")
    return Chosen(tuple(Part(*part) for part in made), float(errors.max()), words)


# -- scalars ----------------------------------------------------------------------------------------

_LOCAL = 14  # atoms of a row at which pairings with points are tried
_FAR = 5.0  # normal scores beyond which no point is tried
_SHARED_SCORES = np.array([0.0, -0.8, 0.7, -2.1, 1.9])
_WATCHED = 3  # of the points that all nodes of a row share: how many its panels are watched at


class _Rule(NamedTuple):
    """Nodes of some rows: scores and weights ``(S,)`` or ``(r, S)``, quantiles ``(r, S)``."""

    rows: NDArray
    scores: NDArray
    weights: NDArray
    values: NDArray

    def only(self, keep: NDArray) -> _Rule:
        """The rule of some of its rows."""
        scores, weights = (array if array.ndim == 1 else array[keep] for array in (self.scores, self.weights))
        return _Rule(self.rows[keep], scores, weights, self.values[keep])


class _Search:
    """The search for the nodes of a batch of scalars."""

    def __init__(self, predictions: Predictions, probe: Probe, effort: Effort, tolerance: float) -> None:
        self.predictions = predictions
        self.batch = in_numpy(predictions)
        self.probe, self.effort, self.tolerance = probe, effort, tolerance
        self.n = len(predictions)
        self.errors = np.full(self.n, np.inf)
        own = quantiles_at(self.batch, np.broadcast_to(_SHARED_SCORES, (self.n, len(_SHARED_SCORES))))
        self.shared = self._shared_points(own)

    def _shared_points(self, own: NDArray) -> NDArray:
        """Points at which all nodes of a row count: some of its quantiles, and where others lie."""
        centre = own[:, 0]
        others = np.quantile(finite_points(centre[:, None], centre), [0.0, 0.25, 0.75, 1.0])
        away = [centre + sign * radius for radius in self.probe.radii() for sign in (-1.0, 1.0)]
        columns = [own, *(column[:, None] for column in away)]
        columns.append(np.broadcast_to(others, (self.n, len(others))))
        return finite_points(np.concatenate(columns, axis=1), centre)

    def run(self) -> Chosen:
        rules, words = self._climb()
        hard = np.flatnonzero(~(self.errors <= self.tolerance))
        if len(hard) and self.effort.most:
            refined, kept = self._refine(hard)
            if len(kept):
                left = np.setdiff1d(np.arange(self.n), kept)
                rules = [rule.only(np.isin(rule.rows, left)) for rule in rules]
                rules = [rule for rule in rules if len(rule.rows)] + refined
                size = max(rule.values.shape[1] for rule in refined)
                words += f"; {len(kept)} of {self.n} rows by panels of up to {size} nodes"
        if self.effort.even:
            rules = [_padded(rules, self.n)]
        parts = tuple(self._part(rule, words) for rule in rules)
        return Chosen(parts, float(self.errors.max()), words)

    def _climb(self) -> tuple[list[_Rule], str]:
        """Trapezoidal rules: each row takes the first that is good enough."""
        pending = np.arange(self.n)
        found: dict[int, list[_Rule]] = {}
        for nodes in self.effort.ladder:
            rule, errors = self._trapezoidal(pending, nodes)
            self.errors[pending] = errors
            enough = errors <= self.effort.accept
            last = nodes == self.effort.ladder[-1]
            if last or enough.any():
                found[nodes] = [rule if last else rule.only(enough)]
            pending = pending[~enough]
            if not len(pending):
                break
        sizes = list(found)
        if self.effort.even and len(sizes) > 1:
            scores, weights = even_scores(sizes[-1])
            every = np.arange(self.n)
            found = {sizes[-1]: [_Rule(every, scores, weights, self._quantiles(every, scores))]}
            sizes = sizes[-1:]
        text = f"{sizes[0]} nodes" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} nodes"
        return [rule for rules in found.values() for rule in rules], (
            f"trapezoidal rule in the normal score, {text}"
        )

    def _trapezoidal(self, rows: NDArray, nodes: int) -> tuple[_Rule, NDArray]:
        scores, weights = even_scores(nodes)
        values = self._quantiles(rows, scores)
        near = np.flatnonzero(np.abs(scores) < _FAR)
        columns = near[np.unique(np.linspace(0, len(near) - 1, _LOCAL).astype(int))]
        at = np.concatenate([values[:, columns], self.shared[rows]], axis=1)
        at = finite_points(at, self.shared[rows, 0])
        fine, coarse = (
            self.probe.expected(np.broadcast_to(w, x.shape), x, at)
            for w, x in ((weights, values), (weights[1::2] / weights[1::2].sum(), values[:, 1::2]))
        )
        return _Rule(rows, scores, weights, values), np.abs(fine - coarse).max(axis=1)

    def _quantiles(self, rows: NDArray, scores: NDArray) -> NDArray:
        batch = self.batch if len(rows) == self.n else self.batch[rows]
        return quantiles_at(batch, np.broadcast_to(scores, (len(rows), scores.shape[-1])))

    def _refine(self, rows: NDArray) -> tuple[list[_Rule], NDArray]:
        """Panels for rows that are too coarse, and which of them gained by it."""

        def quantile(index: NDArray, scores: NDArray) -> NDArray:
            return quantiles_at(self.batch[rows[index]], scores)

        most = int(np.clip(_MAX_NODES // len(rows), 256, self.effort.most))
        watched = self.shared[rows][:, :_WATCHED]
        leaves, errors = panels.refine(quantile, self.probe, watched, self.tolerance, most)
        better = errors < self.errors[rows]
        self.errors[rows[better]] = errors[better]
        kept = np.flatnonzero(better)
        return _in_groups(leaves, rows, kept, self.shared[rows, 0]), rows[kept]

    def _part(self, rule: _Rule, words: str) -> Part:
        """The atoms of a rule in the library of the predictions, with their gradients."""
        every = len(rule.rows) == self.n
        predictions = self.predictions if every else self.predictions[rule.rows]
        atoms = at_scores(predictions, rule.scores, rule.weights, rule.values, words)
        return Part(None if every else rule.rows, atoms)


def _in_groups(leaves: panels.Leaves, rows: NDArray, kept: NDArray, centre: NDArray) -> list[_Rule]:
    """Panels of rows side by side, rows with about as many in a group that is filled up with weight zero."""
    first = np.searchsorted(leaves.row, kept, side="left")
    count = np.searchsorted(leaves.row, kept, side="right") - first
    classes = 2.0 ** (np.ceil(2.0 * np.log2(np.maximum(count, 1))) / 2.0)
    out: list[_Rule] = []
    for size in np.unique(classes):
        group = np.flatnonzero(classes == size)
        width = int(count[group].max())
        index = first[group, None] + np.arange(width)[None, :]
        real = np.arange(width)[None, :] < count[group, None]
        index = np.where(real, index, 0)
        low, high = leaves.low[index].reshape(-1), leaves.high[index].reshape(-1)
        shape = (len(group), width * panels.ORDER)
        filler = np.repeat(~real, panels.ORDER, axis=1)
        weights = np.where(filler, 0.0, panels.weights_in(low, high).reshape(shape))
        scores = np.where(filler, 0.0, panels.scores_in(low, high).reshape(shape))
        values = leaves.atoms[index].reshape(shape)
        values = np.where(filler, centre[kept[group], None], values)
        out.append(_Rule(rows[kept[group]], scores, weights / weights.sum(axis=1, keepdims=True), values))
    return out


def _padded(rules: list[_Rule], n: int) -> _Rule:
    """One rule for all rows, with nodes of weight zero where there are fewer."""
    if len(rules) == 1 and len(rules[0].rows) == n:
        return rules[0]
    width = max(rule.values.shape[1] for rule in rules)
    scores, weights = np.zeros((n, width)), np.zeros((n, width))
    values = np.empty((n, width))
    for rule in rules:
        size = rule.values.shape[1]
        values[rule.rows] = rule.values[:, size // 2, None]
        for into, part in ((scores, rule.scores), (weights, rule.weights), (values, rule.values)):
            into[rule.rows, :size] = part
    # Nodes that fill up stand where the middle one does.
    return _Rule(np.arange(n), scores, weights, values)


def in_order(parts: list[tuple[NDArray | None, Array]]) -> Array:
    """Rows of parts ``(rows, array)`` together in the order of the batch."""
    if len(parts) == 1 and parts[0][0] is None:
        return parts[0][1]
    xp = namespace(*(array for _, array in parts))
    order = np.argsort(np.concatenate([rows for rows, _ in parts if rows is not None]))
    together = xp.concat([array for _, array in parts], axis=0)
    return take_rows(together, order)
