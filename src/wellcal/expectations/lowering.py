"""Lowering: a prediction without a closed form becomes a weighted sum of atoms.

Five schemes, each stated in the provenance of a result:

- counts: a window of whole numbers that holds all but 1e-13 of the mass; where it is wide some of them stand
  for their neighbors (see `count_atoms`).
- other scalar targets: the trapezoidal rule in the normal score t, with atoms Q(Phi(t)) at the quantile
  function Q. In this variable densities of all our families are smooth and fall off like a normal,
  where the rule converges faster than any power of the spacing (Trefethen, Weideman, 2014). Every
  second atom forms the coarser rule that the error estimate compares with.
- vectors of few coordinates on the simplex: a product of Gauss rules (see `sticks`).
- other vectors with a transform from the unit cube: a Sobol' sequence with a fixed scramble.
- anything that can only be sampled: Monte Carlo with a fixed seed.

Gradients. Atoms at quantiles move with the parameters, so that the derivative of a sum over atoms is that of
its value; of vectors the weights change (see `score_gradients`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.checks import positive_number, whole_number
from wellcal._arrays.derivatives import right_derivatives
from wellcal._arrays.memo import Memo
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    device_of,
    is_traced,
    namespace,
    stop_gradient,
    through_numpy,
    widen,
)
from wellcal.expectations.atoms import LOWERINGS, Atoms
from wellcal.expectations.count_atoms import whole_numbers
from wellcal.expectations.gauss_jacobi import MOST_COORDINATES, nodes_within, stick_atoms
from wellcal.expectations.score_gradients import (
    change,
    dirichlet_atoms,
    scored_weights,
    times_likelihood_ratio,
    within_reach,
)
from wellcal.predictions import (
    DiagonalNormal,
    Dirichlet,
    LogNormal,
    MultivariateNormal,
    Normal,
    PowerExponential,
    Predictions,
)
from wellcal.predictions.batches import in_numpy

_RANGE = 8.25  # in normal scores: the mass beyond is 1.6e-16
_SEED = 20210101  # of the Sobol' scramble and of Monte Carlo: results are reproducible

_MOST_ATOMS = 2**20
"""Atoms of one prediction, at most."""


@dataclass(frozen=True)
class Lowering:
    """How to replace predictions by atoms, where no closed form exists.

    Parameters
    ----------
    nodes
        Atoms for each scalar prediction. None chooses between 16 and 256 so that the estimated
        error of a pairing stays below `tolerance` if it can.
    tolerance
        Target for the estimated error of a pairing.
    points
        Atoms for each vector prediction, a power of two. None takes 64 points of a Sobol' sequence; and for
        Dirichlet predictions of up to four coordinates as many nodes of a product rule as `tolerance` needs.

    Examples
    --------
    >>> Lowering(nodes=64)
    Lowering(nodes=64, tolerance=1e-06, points=None)
    """

    nodes: int | None = None
    tolerance: float = 1e-6
    points: int | None = None

    def __post_init__(self) -> None:
        if self.nodes is not None and whole_number(self.nodes, "nodes", least=4, most=_MOST_ATOMS) % 2:
            raise ValueError(f"nodes must be an even number of at least 4, found {self.nodes}")
        positive_number(self.tolerance, "tolerance")
        points = whole_number(self.for_vectors, "points", least=4, most=_MOST_ATOMS)
        if points & (points - 1):
            raise ValueError(f"points must be a power of two of at least 4, found {self.points}")

    @property
    def for_vectors(self) -> int:
        """Atoms of a vector whose number is not chosen by looking."""
        return 64 if self.points is None else self.points


_atoms: Memo[Atoms] = Memo()


def lower(predictions: Predictions, nodes: int, points: int) -> Atoms:
    """Replace each prediction by weighted atoms.

    Atoms of NumPy predictions are remembered as long as the predictions live: the kernel on
    predictions, the kernel on targets and their length scales all ask for them.
    """
    if predictions.ops.differentiable:
        return _lower(predictions, nodes, points)
    return _atoms.get(predictions, (nodes, points), lambda: _lower(predictions, nodes, points))


def _lower(predictions: Predictions, nodes: int, points: int) -> Atoms:
    own = LOWERINGS.find(type(predictions))
    if own is not None:
        return own(predictions, nodes, points)
    if predictions.target_kind == "counts":
        return whole_numbers(predictions)
    if is_scalar_rule(predictions):
        return _by_quantiles(predictions, nodes)
    return _by_sampling(predictions, points)


def is_scalar_rule(predictions: Predictions) -> bool:
    """Whether `lower` uses the rule whose number of nodes can be chosen; counts have a lattice."""
    number = predictions.event_shape == () and predictions.target_kind != "counts"
    return number and predictions.supports("quantile")


def has_own_lowering(predictions: Predictions) -> bool:
    """Whether somebody registered how the family becomes atoms."""
    own = LOWERINGS.find(type(predictions))
    return own is not None and own is not _by_radius


def has_sticks(predictions: Predictions) -> bool:
    """Whether the product rule for the simplex applies, whose number of nodes can be chosen."""
    own = LOWERINGS.find(type(predictions))
    return own is by_sticks and predictions.event_shape[0] <= MOST_COORDINATES


# -- scalar targets --------------------------------------------------------------------------


def even_scores(nodes: int) -> tuple[NDArray, NDArray]:
    """Scores and weights of the trapezoidal rule.

    Nodes lie symmetrically about 0 and never on it, so that halving keeps a rule of equal spacing.
    """
    step = 2.0 * _RANGE / nodes
    scores = -_RANGE + step * (np.arange(nodes) + 0.5)
    mass = np.exp(-0.5 * scores**2)
    return scores, mass / mass.sum()


def _by_quantiles(predictions: Predictions, nodes: int) -> Atoms:
    scores, weights = even_scores(nodes)
    scheme = f"trapezoidal rule in the normal score, {nodes} nodes"
    values = None if _has_moving_atoms(predictions) else _quantiles(predictions, scores)
    return at_scores(predictions, scores, weights, values, scheme)


def at_scores(
    predictions: Predictions, scores: NDArray, weights: NDArray, values: Array | None, scheme: str
) -> Atoms:
    """Atoms at normal scores ``(S,)`` or ``(n, S)`` with weights of the same shape, which sum to one.

    `values` are the quantiles there, ``(n, S)``; where atoms move with the parameters they are not needed.
    """
    xp, like = predictions.xp, widen(predictions.like)
    here: Any = {"xp": xp, "device": device_of(like), "dtype": like.dtype}
    size = (len(predictions), scores.shape[-1])
    shared = xp.broadcast_to(asarray(weights, **here), size)
    if isinstance(predictions, (Normal, LogNormal)) and _has_moving_atoms(predictions):
        return Atoms(_moving_atoms(predictions, scores), shared, scheme, nested=True)
    assert values is not None
    return Atoms(_moving_quantiles(predictions, asarray(values, **here), scores), shared, scheme, nested=True)


_STEP = 1e-5
"""Relative step of a parameter: differences of quantiles are then right to 1e-10."""


def _moving_quantiles(predictions: Predictions, values: Array, scores: NDArray) -> Array:
    """Return quantiles ``(n, S)`` with their derivatives by the parameters, from differences.

    Differences do not ask for a density, which may be infinite where quantiles are too small for a number.
    """
    values = within_reach(values)
    if not predictions.ops.differentiable:
        return values
    fields = [name for name in predictions.array_fields if getattr(predictions, name) is not None]
    arrays = [widen(getattr(predictions, name)) for name in fields]
    varying = [k for k, array in enumerate(arrays) if getattr(array, "requires_grad", True)]

    def slopes(*numbers: NDArray) -> NDArray:
        parameters = {name: np.asarray(x, dtype=np.float64) for name, x in zip(fields, numbers, strict=True)}
        table = np.broadcast_to(scores, (len(parameters[fields[0]]), scores.shape[-1]))
        out = np.empty((len(varying), *table.shape))
        for row, k in enumerate(varying):
            declared = predictions.parameter_fields.get(fields[k])
            unit = parameters.get(declared.unit or fields[k]) if declared else None
            size = np.abs(parameters[fields[k]] if unit is None else unit)
            step = _STEP * np.where(size > 0.0, size, 1.0)
            upper, lower = (
                quantiles_at(predictions.with_fields(**{**parameters, fields[k]: moved}), table)
                for moved in (parameters[fields[k]] + step, parameters[fields[k]] - step)
            )
            with np.errstate(over="ignore", invalid="ignore"):
                out[row] = (upper - lower) / (2.0 * step[:, None])
        return within_reach(np.where(np.isfinite(out), out, 0.0))

    fixed = [stop_gradient(array) for array in arrays]
    found = through_numpy(slopes, *fixed, shape=(len(varying), *values.shape))
    for row, k in enumerate(varying):
        name = f"the {fields[k]} of {type(predictions).__name__}"
        values = values + found[row, ...] * change(right_derivatives(arrays[k], 1, name))
    return values


def _has_moving_atoms(predictions: Predictions) -> bool:
    """Whether the quantile function is differentiable in the parameters."""
    return type(predictions) in (Normal, LogNormal)


def _moving_atoms(predictions: Normal | LogNormal, scores: NDArray) -> Array:
    xp = predictions.xp
    loc, scale = (
        (predictions.loc, predictions.scale)
        if isinstance(predictions, Normal)
        else (predictions.mu, predictions.sigma)
    )
    loc, scale = widen(loc), widen(scale)
    t = asarray(scores, xp=xp, device=device_of(loc), dtype=loc.dtype)
    values = loc[:, None] + scale[:, None] * t
    if isinstance(predictions, Normal):
        return values
    with np.errstate(over="ignore", under="ignore"):
        return within_reach(xp.exp(values))


def _quantiles(predictions: Predictions, scores: NDArray) -> Array:
    """Quantiles ``(n, S)`` at the levels of normal scores ``(S,)``."""
    like = widen(predictions.like)
    if not is_traced(like):
        table = np.broadcast_to(scores, (len(predictions), len(scores)))
        return quantiles_at(in_numpy(predictions), table)
    xp = predictions.xp

    def levels(of: NDArray) -> Array:
        level = np.repeat(special.ndtr(of)[:, None], len(predictions), axis=1)
        return asarray(level, xp=xp, device=device_of(like), dtype=like.dtype)

    split = int((scores <= 0).sum()) if predictions.supports("upper_quantile") else len(scores)
    parts = [predictions.quantile(levels(scores[:split]))]
    if split < len(scores):
        parts.append(predictions.upper_quantile(levels(-scores[split:])))
    return stop_gradient(widen(xp.permute_dims(xp.concat(parts, axis=0), (1, 0))))


def quantiles_at(batch: Predictions, scores: NDArray) -> NDArray:
    """Quantiles of a batch in NumPy at normal scores ``(n, S)``, each from the tail that is nearer."""
    if not batch.supports("upper_quantile"):
        return np.ascontiguousarray(batch.quantile(special.ndtr(scores.T)).T)
    lower_half, level = scores <= 0.0, special.ndtr(-np.abs(scores))
    out = np.empty(scores.shape)
    # Rows or columns are nearly always on one side as a whole; the few that are not are evaluated on both.
    by_column = len(scores) > 0 and bool((scores == scores[:1]).all())
    axis = 0 if by_column else 1
    for side, method in ((lower_half, batch.quantile), (~lower_half, batch.upper_quantile)):
        some = np.flatnonzero(side.any(axis=axis))
        if by_column:
            found = method(level[:, some].T).T
            out[:, some] = np.where(side[:, some], found, out[:, some])
        elif len(some):
            method = getattr(batch[some], method.__name__)
            out[some] = np.where(side[some], method(level[some].T).T, out[some])
    return out


# -- vectors ---------------------------------------------------------------------------------


def _sobol(points: int, dimensions: int) -> NDArray:
    """Points of a Sobol' sequence with a fixed scramble, inside the unit cube."""
    from scipy.stats import qmc  # slow to load, and seldom needed

    # The argument is called `rng` from SciPy 1.15 on, which takes both names.
    sequence = qmc.Sobol(dimensions, scramble=True, seed=np.random.default_rng(_SEED))
    return np.clip(sequence.random(points), 1e-15, 1.0 - 1e-15)


def _of_equal_weight(values: Array, scheme: str = "scrambled Sobol' sequence, {} points") -> Atoms:
    """Atoms ``(n, S, ...)`` that weigh the same; `scheme` has a place for their number."""
    n, points = values.shape[:2]
    weights = namespace(values).full((n, points), 1.0 / points, dtype=values.dtype, device=device_of(values))
    return Atoms(values, weights, scheme.format(points))


def _scored(predictions: Predictions, atoms: Atoms) -> Atoms:
    """Let the parameters act on the weights."""
    values = within_reach(atoms.values)
    return replace(atoms, values=values, weights=scored_weights(predictions, values, atoms.weights))


@LOWERINGS.register(DiagonalNormal)
@LOWERINGS.register(MultivariateNormal)
def _by_affine_map(predictions: DiagonalNormal | MultivariateNormal, nodes: int, points: int) -> Atoms:
    like = widen(predictions.like)
    uniform = _sobol(points, predictions.event_shape[0])
    z = asarray(special.ndtri(uniform), xp=predictions.xp, device=device_of(like), dtype=like.dtype)
    return _of_equal_weight(_affine(predictions, z))


@LOWERINGS.register(Dirichlet)
def by_sticks(predictions: Dirichlet, nodes: int, points: int) -> Atoms:
    """Dirichlet predictions: a product of Gauss rules; of many coordinates quotients of gamma quantiles."""
    if predictions.event_shape[0] <= MOST_COORDINATES:
        return stick_atoms(predictions, nodes_within(points, predictions.event_shape[0]))
    values, log_density = dirichlet_atoms(predictions, _sobol(points, predictions.event_shape[0]))
    atoms = _of_equal_weight(values)
    return replace(atoms, weights=times_likelihood_ratio(atoms.weights, log_density))


@LOWERINGS.register(PowerExponential)
def _by_radius(predictions: PowerExponential, nodes: int, points: int) -> Atoms:
    if predictions.event_shape == ():
        return _by_quantiles(predictions, nodes)
    values = _elliptical_atoms(predictions, _sobol(points, predictions.event_shape[0] + 1))
    predictions = predictions.with_fields(
        loc=right_derivatives(predictions.loc, 1, "locations of vectors of PowerExponential"),
        shape=right_derivatives(predictions.shape, 1, "the shape of PowerExponential"),
        chol=right_derivatives(predictions.chol, 1, "matrices of PowerExponential"),
    )
    return _scored(predictions, _of_equal_weight(values))


def _affine(predictions: DiagonalNormal | MultivariateNormal, z: Array) -> Array:
    loc = widen(predictions.loc)
    xp = namespace(loc)
    if isinstance(predictions, DiagonalNormal):
        return loc[:, None, :] + widen(predictions.scale)[:, None, :] * z[None, :, :]
    return loc[:, None, :] + xp.matmul(z[None, :, :], xp.matrix_transpose(widen(predictions.chol)))


def _elliptical_atoms(predictions: PowerExponential, uniform: NDArray) -> Array:
    """A uniform direction times a radius, q^beta / 2 being Gamma(d / (2 beta)) (Gomez et al., 1998)."""
    loc, chol, shape = (
        stop_gradient(widen(a)) for a in (predictions.loc, predictions.chol, predictions.shape)
    )
    xp = namespace(loc)
    d = predictions.event_shape[0]
    normal = special.ndtri(uniform[:, :d])
    direction = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    place: Any = {"xp": xp, "device": device_of(loc), "dtype": loc.dtype}
    level = asarray(uniform[:, d], **place)
    beta = 0.5 * shape[:, None]
    radius = through_numpy(special.gammaincinv, d / (2.0 * beta), level[None, :])
    radius = (2.0 * radius) ** (0.5 / beta)
    directions = xp.matmul(asarray(direction, **place)[None, :, :], xp.matrix_transpose(chol))
    return loc[:, None, :] + radius[:, :, None] * directions


def _by_sampling(predictions: Predictions, points: int) -> Atoms:
    if is_traced(predictions.like):
        raise TypeError(f"{type(predictions).__name__} can only be sampled, which jax.jit cannot trace")
    draws = predictions.sample(np.random.default_rng(_SEED), points)
    xp = namespace(draws)
    values = widen(xp.permute_dims(draws, (1, 0, *range(2, draws.ndim))))
    return _scored(predictions, _of_equal_weight(values, "Monte Carlo, {} draws with a fixed seed"))
