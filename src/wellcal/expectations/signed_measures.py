"""Predictions and targets as sums of elementary distributions.

An observed target is a Dirac distribution, a mixture is the sum of its components and a sample the
sum of its points: everything that :func:`wellcal.pairing` meets is a weighted sum of a few kinds of
elementary distributions, side by side by kind so that one rule serves all of a kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from wellcal._arrays.memo import Memo
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    device_of,
    from_numpy,
    namespace,
    take_rows,
    to_numpy,
    widen,
)
from wellcal._arrays.registry import Rules
from wellcal._arrays.rows import NODE, Rows, arrays_of, map_rows, with_arrays
from wellcal.expectations.rules.elements import (
    Element,
    FullNormals,
    Laplaces,
    Normals,
    Points,
    Poissons,
)
from wellcal.predictions import (
    Bernoulli,
    Categorical,
    DiagonalNormal,
    Laplace,
    Mixture,
    MultivariateNormal,
    Normal,
    Poisson,
    Predictions,
    Samples,
)


@dataclass(frozen=True)
class Targets:
    """Observed targets as `check_targets` of their predictions returned them."""

    values: Array
    predictions: Predictions


Side: TypeAlias = Predictions | Targets


class Components(NamedTuple):
    """K elementary distributions of one kind for each of n cases.

    Attributes
    ----------
    element
        Their parameters: a named tuple of arrays ``(n, K)``.
    weights
        Their weights ``(n, K)``, or one number for all.

    Examples
    --------
    >>> import numpy as np
    >>> from wellcal.extend import Normals
    >>> two = Components(Normals((np.array([[0.0, 1.0]]),), (np.ones((1, 2)),)), np.array([[0.3, 0.7]]))
    >>> two.kind.__name__, two.size
    ('Normals', 2)
    """

    element: Element
    weights: Array | float

    @property
    def kind(self) -> type:
        """The elementary distribution."""
        return type(self.element)

    @property
    def size(self) -> int:
        """How many there are for each case."""
        return int(self.leaf.shape[-1])

    @property
    def leaf(self) -> Array:
        """The first of the element's arrays, ``(n, K)``."""
        found: Rows = self.element
        while isinstance(found, NODE):
            found = found[0]
        return found

    def scaled(self, factor: Array | float) -> Components:
        """Weights multiplied by a number or by ``(n, 1)``."""
        weights: Array = self.weights * factor
        if not isinstance(weights, float) and weights.shape[1] != self.size:
            weights = namespace(weights).broadcast_to(weights, (weights.shape[0], self.size))
        return Components(self.element, weights)

    def weight_array(self) -> Array:
        """Weights as ``(n, K)``."""
        if not isinstance(self.weights, float):
            return self.weights
        like = self.leaf
        if is_objects(like):
            return np.full(like.shape, self.weights)
        return namespace(like).full_like(like, self.weights)


def is_objects(x: Array) -> bool:
    """Whether targets are labels or other objects, which only NumPy holds."""
    return isinstance(x, np.ndarray) and cast("NDArray", x).dtype.kind in "OUS"


def components_of(predictions: Predictions) -> list[tuple[Predictions, Array | None]]:
    """Families that a batch is made of, with their weights ``(n,)``; None is weight one."""
    if isinstance(predictions, Mixture):
        weights = widen(predictions.weights)
        return [(component, weights[:, k]) for k, component in enumerate(predictions.components)]
    return [(predictions, None)]


def weighted_sum(predictions: Predictions, values_of: Callable[[Predictions], Array]) -> Array:
    """Values ``(n, M)`` of a batch that are linear in it, from those of the families it is made of."""
    total: Array = None
    for family, weight in components_of(predictions):
        part = values_of(family)
        part = part if weight is None else part * weight[:, None]
        total = part if total is None else total + part
    return total


def dimension_of(predictions: Predictions) -> int:
    """Coordinates of a target."""
    return predictions.event_shape[0] if predictions.event_shape else 1


SignedSum: TypeAlias = list[tuple[float, Side]]
"""A signed sum of predictions and targets, such as P - d(y)."""


def signed_sum(measure: SignedSum, values_of: Callable[[Side], Array]) -> Array:
    """The sum of the values of its parts."""
    total: Array = None
    for sign, side in measure:
        part = values_of(side)
        if total is None:
            total = part if sign == 1.0 else sign * part
        else:
            total = total + sign * part
    return total


# -- families ----------------------------------------------------------------------------------


class Elementary(NamedTuple):
    """A family that is made of elementary distributions as it stands."""

    kind: type
    components: Callable[[Predictions], Components]


ELEMENTARY: Rules[Elementary] = Rules("elementary distributions", exact=True)
"""Families that consist of elementary distributions, of which kind, and how."""


Expansion: TypeAlias = Callable[[Any], Components | Element]
"""From a batch of the family that it is registered for to `Components`, or to one element for each case."""


def elementary(
    family: type[Predictions], kind: type, *, replace: bool = False
) -> Callable[[Expansion], Expansion]:
    """Register what a family is made of: elementary distributions of one kind.

    The function takes a batch of n predictions. It returns one element for each of them, a named tuple of
    arrays ``(n, 1)``; or :class:`Components`, an element of arrays ``(n, K)`` with weights ``(n, K)``. Every
    closed form of the kind then holds for the family, and for mixtures of it. A kind of your own is a named
    tuple of your own, with a closed form for each kernel. ``replace=True`` takes the place of what is there
    already.

    Examples
    --------
    A coin decides on which side of `loc` a normal lies:

    >>> import numpy as np, wellcal as wc
    >>> from wellcal.extend import Components, Normals, elementary, family, parameter, to_numpy
    >>> @family
    ... class TwoPeaks(wc.Predictions):
    ...     loc: np.ndarray = parameter()
    ...
    ...     def draw(self, rng, size):
    ...         return rng.normal(to_numpy(self.loc) + rng.choice([-1.0, 1.0], (size, len(self))), 0.5)
    >>> @elementary(TwoPeaks, Normals)
    ... def two_normals(pred):
    ...     peaks = pred.xp.stack([pred.loc - 1.0, pred.loc + 1.0], axis=1)
    ...     return Components(Normals((peaks,), (0.25 + 0.0 * peaks,)), 0.5)
    >>> from wellcal.kernels import ExpDistance, Gaussian, MaximumMeanDiscrepancy
    >>> kernel = ExpDistance(MaximumMeanDiscrepancy(Gaussian()), power=2.0) @ Gaussian()
    >>> pred = TwoPeaks(np.linspace(0.0, 1.0, 20))
    >>> wc.skce(pred.sample(rng=0), pred, kernel=kernel).provenance["expectations"]
    'closed'
    """

    def register(function: Expansion) -> Expansion:
        def components(predictions: Predictions) -> Components:
            found = function(predictions)
            return found if isinstance(found, Components) else Components(found, 1.0)

        ELEMENTARY.register(family, replace=replace)(Elementary(kind, components))
        return function

    return register


def kind_of(predictions: Predictions) -> type | None:
    """Elementary distribution that a family consists of, or None."""
    found = ELEMENTARY.found[type(predictions),]
    return None if found is None else found.kind


def elementary_components(predictions: Predictions) -> Components:
    """A batch of an elementary family as components."""
    found = ELEMENTARY.found[type(predictions),]
    assert found is not None
    return found.components(predictions)


def _column(x: Array) -> Array:
    return widen(x)[:, None]


def _columns(x: Array) -> tuple[Array, ...]:
    wide = widen(x)
    if isinstance(wide, np.ndarray):
        # Coordinates are read one after another, and far more often than they are made.
        return tuple(np.ascontiguousarray(cast("NDArray", wide).T)[:, :, None])
    return tuple(wide[:, c, None] for c in range(wide.shape[1]))


class CoordinateLines(NamedTuple):
    """Normals of vectors in NumPy, one coordinate after another.

    Attributes
    ----------
    parameters
        Locations and scales, ``(2 d, n)``.
    element
        The same as elementary distributions; where each case has the same variance in all coordinates, that
        is one array in all places.
    """

    parameters: NDArray
    element: Normals


_lines: Memo[CoordinateLines] = Memo(most=2**16)


def coordinate_lines(predictions: DiagonalNormal) -> CoordinateLines:
    """One copy of the parameters for all who go coordinate by coordinate."""

    def find() -> CoordinateLines:
        both = to_numpy(predictions.loc).T, to_numpy(predictions.scale).T
        d = len(both[0])
        lines = np.concatenate(both, out=np.empty((2 * d, len(predictions))))
        lines.flags.writeable = False
        loc, scale = lines[:d, :, None], lines[d:, :, None]
        alike = bool((scale == scale[:1]).all())
        variances = (scale[0] ** 2,) * d if alike else tuple(scale**2)
        return CoordinateLines(lines, Normals(tuple(loc), variances))

    return _lines.get(predictions, None, find)


@elementary(Normal, Normals)
def _normal(predictions: Normal) -> Normals:
    return Normals((_column(predictions.loc),), (_column(predictions.scale) ** 2,))


@elementary(DiagonalNormal, Normals)
def _diagonal_normal(predictions: DiagonalNormal) -> Normals:
    if not isinstance(predictions.loc, np.ndarray):
        return Normals(_columns(predictions.loc), _columns(widen(predictions.scale) ** 2))
    return coordinate_lines(predictions).element


@elementary(MultivariateNormal, FullNormals)
def _full_normal(predictions: MultivariateNormal) -> FullNormals:
    cov = widen(predictions.cov)
    d = cov.shape[1]
    lower = tuple(tuple(cov[:, i, j, None] for j in range(i + 1)) for i in range(d))
    return FullNormals(_columns(predictions.loc), lower)


@elementary(Laplace, Laplaces)
def _laplace(predictions: Laplace) -> Laplaces:
    return Laplaces((_column(predictions.loc),), _column(predictions.scale))


@elementary(Poisson, Poissons)
def _poisson(predictions: Poisson) -> Poissons:
    return Poissons(_column(predictions.rate))


@elementary(Samples, Points)
def _samples(predictions: Samples) -> Components:
    return points(predictions.values, predictions.weights)


def points(values: Array, weights: Array | None = None) -> Components:
    """Atoms ``(n, S)`` or ``(n, S, d)`` with weights ``(n, S)``, uniform where None."""
    uniform = 1.0 / int(values.shape[1])
    if is_objects(values):
        return Components(Points((values,)), uniform if weights is None else weights)
    x = widen(values)
    if x.ndim == 2:
        coordinates: tuple[Array, ...] = (x,)
    elif x.shape[1] == 1:
        coordinates = _columns(x[:, 0, :])
    else:
        coordinates = tuple(x[:, :, c] for c in range(x.shape[2]))
    return Components(Points(coordinates), uniform if weights is None else widen(weights))


@elementary(Bernoulli, Points)
@elementary(Categorical, Points)
def _classes(predictions: Bernoulli | Categorical) -> Components:
    """Classes as atoms, for problems where a finite family meets others."""
    labels = class_labels(predictions)
    probabilities = widen(predictions.class_probs())
    shape = (len(predictions), len(labels))
    if is_objects(labels):
        return points(np.broadcast_to(labels[None, :], shape), to_numpy(probabilities))
    xp = namespace(probabilities)
    numeric = asarray(
        labels.astype(np.float64), xp=xp, device=device_of(probabilities), dtype=probabilities.dtype
    )
    return points(xp.broadcast_to(numeric[None, ...], (shape[0], *numeric.shape)), probabilities)


def class_labels(component: Bernoulli | Categorical) -> NDArray:
    """What the targets of a finite family look like: numbers where it has them."""
    values = component.support_values()
    if values is None:
        assert isinstance(component, Categorical)
        return np.asarray(component.labels())
    return np.asarray(values)


# -- targets -----------------------------------------------------------------------------------


def target_components(side: Targets) -> Components:
    """Observed targets as one atom each."""
    family: Any = side.predictions.parts[0]
    values = side.values
    if side.predictions.kind == "classes":
        labels = class_labels(family)
        if is_objects(labels):
            values = labels[to_numpy(values)]
        else:
            values = take_rows(from_numpy(labels.astype(np.float64), widen(family.probs)), values)
    return points(values[:, None, ...])


# -- together ----------------------------------------------------------------------------------


def merged(parts: list[Components]) -> tuple[Components, ...]:
    """Components of one kind side by side."""
    if len({part.kind for part in parts}) == len(parts):
        return tuple(parts)
    by_kind: dict[type, list[Components]] = {}
    for part in parts:
        by_kind.setdefault(part.kind, []).append(part)
    return tuple(_side_by_side(same) for same in by_kind.values())


def _side_by_side(parts: list[Components]) -> Components:
    if len(parts) == 1:
        return parts[0]
    element = _joined([part.element for part in parts])
    constants = {part.weights if isinstance(part.weights, float) else None for part in parts}
    shared = constants.pop() if len(constants) == 1 else None
    return Components(element, _concat([p.weight_array() for p in parts]) if shared is None else shared)


def _joined(elements: list[Element]) -> Element:
    """Trees of one shape, arrays concatenated along their second axis."""
    arrays = zip(*map(arrays_of, elements), strict=True)
    return with_arrays(elements[0], [_concat(list(same)) for same in arrays])


def _concat(arrays: list[Array]) -> Array:
    if any(is_objects(a) for a in arrays):
        return np.concatenate(arrays, axis=1)
    return namespace(*arrays).concat(arrays, axis=1)


def point_array(element: Points) -> Array:
    """Points ``(n, K)`` for scalars and objects, ``(n, K, d)`` for vectors."""
    if len(element.x) == 1:
        return element.x[0]
    return namespace(*element.x).stack(element.x, axis=-1)


def flat_points(element: Points) -> Array:
    """All points one after another: ``(n K,)`` for scalars and objects, ``(n K, d)`` for vectors."""
    flat = [namespace(x).reshape(x, (-1,)) if not is_objects(x) else x.reshape(-1) for x in element.x]
    return flat[0] if len(flat) == 1 else namespace(*flat).stack(flat, axis=-1)


def reshaped(element: Element, shape: tuple[int, ...]) -> Element:
    """The element with all arrays in another shape."""
    return map_rows(lambda array: namespace(array).reshape(array, shape), element)
