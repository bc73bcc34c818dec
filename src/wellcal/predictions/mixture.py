"""Mixtures of predictions: ensembles and mixture density models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, cast

import numpy as np

from wellcal._arrays.checks import one_of, same_library
from wellcal._arrays.chunks import budget, told_chunks
from wellcal._arrays.domains import simplex
from wellcal._arrays.inversion import bisect_quantile
from wellcal._arrays.namespaces import Array, NDArray, is_array, is_numpy, namespace, stop_gradient, to_numpy
from wellcal._arrays.special import draw_index, log_or_minus_infinity, on_numpy, quiet
from wellcal.predictions.base import CAPABILITIES, Predictions, nonempty
from wellcal.predictions.fields import family, first_of, parameter
from wellcal.predictions.samples import weight_rows

_NEEDED = {"quantile": ("cdf", "quantile"), "variance": ("mean", "variance")}
"""Methods of components that a method of a mixture calls, other than the one of its own name."""


@family
class Mixture(Predictions):
    """Mixtures: prediction i is ``sum_k weights[i, k] * components[k][i]``.

    An ensemble of K models is a mixture with one component for each model. Components may be of
    different families as long as they predict the same kind of target: all of them classes with the
    same labels, or all of them numbers, or all of them vectors of one length. Components that are
    mixtures themselves are merged into this one.

    Parameters
    ----------
    components
        K batches of n predictions each.
    weights
        None for equal weights, ``(K,)``, or ``(n, K)`` for weights of their own in every row:
        non-negative, summing to one within 1e-6 in double precision and 1e-3 below.

    Examples
    --------
    >>> import numpy as np
    >>> from wellcal.predictions import Normal
    >>> members = [Normal(np.array([-1.0, 0.0]), 1.0), Normal(np.array([1.0, 0.0]), 1.0)]
    >>> pred = Mixture(members)
    >>> pred.variance()
    array([2., 1.])
    >>> pred.weights
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """

    components: Sequence[Predictions]
    weights: Array = parameter(simplex, ndim=2, default=None)

    batch_fields: ClassVar[tuple[str, ...]] = ("components",)

    def __post_init__(self) -> None:
        components = _batches(self.components)
        _check_compatible(components)
        weights = _full_weights(self.weights, components)
        components, weights = _flatten(components, weights)
        self.store(components=_in_one_unit(components), weights=weights)
        nonempty(self)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one target."""
        return self.components[0].event_shape

    @property
    def parts(self) -> tuple[Predictions, ...]:
        """The components."""
        return tuple(self.components)

    # -- targets -----------------------------------------------------------------------------

    @property
    def shares_labels(self) -> bool:
        """True if all components predict the same classes, so that targets are class indices."""
        return _share_labels(self.components)

    @property
    def target_kind(self) -> str:
        """Name of the domain of targets that all components share, else "real"."""
        kinds = {component.target_kind for component in self.components}
        if kinds == {"labels"}:
            return "labels" if self.shares_labels else "real"
        return kinds.pop() if len(kinds) == 1 else "real"

    @property
    def continuous(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return all(component.continuous for component in self.components)

    def check_targets(self, y: object, name: str = "y") -> Array:
        """Targets as the components take them; real numbers where their families differ."""
        if self.target_kind == "real":
            return super().check_targets(y, name)
        return self.components[0].check_targets(y, name)

    def class_probs(self) -> Array:
        """Probabilities of the classes, ``(n, C)``, where all components predict the same classes."""
        self.require("class_probs")
        return self._sum((component.class_probs() for component in self.components), vectors=True)

    def labels(self) -> NDArray:
        """Values that targets have, as a NumPy array, if all components predict the same classes."""
        self.require("class_probs")
        return cast("Any", self.components[0]).labels()

    def support_values(self) -> NDArray | None:
        """The numbers that classes stand for; None for labels that are not numeric."""
        self.require("class_probs")
        return cast("Any", self.components[0]).support_values()

    # -- what there is -----------------------------------------------------------------------

    def missing(self, what: str) -> str | None:
        """Return why this mixture lacks a method: most often because one of its components does."""
        one_of(what, "method of predictions", CAPABILITIES)
        if what == "class_probs":
            alike = "this Mixture has no classes: its components do not predict the same ones"
            return None if self.shares_labels else alike
        if what == "log_prob" and len({component.continuous for component in self.components}) > 1:
            return "this Mixture has no log_prob: some of its components are discrete and some are not"
        if what == "interquartile_range":
            return self.missing("quantile" if self.event_shape == () else "variance")
        needed = _NEEDED.get(what, (what,))
        for component in self.components:
            for method in needed:
                reason = component.missing(method)
                if reason is not None:
                    return f"this Mixture has no {what}: {reason}"
        return super().missing(what)

    # -- distribution ------------------------------------------------------------------------

    def _sum(self, values: Iterable[Array], *, vectors: bool) -> Array:
        """Return the weighted sum of values of the components, ``(..., n)``, or vectors ``(n, d)``."""
        weights = (self.weights[:, k] for k in range(len(self.components)))
        return sum((w[:, None] if vectors else w) * x for w, x in zip(weights, values, strict=True))

    def mean(self) -> Array:
        """Means, ``(n,)`` or ``(n, d)``."""
        self.require("mean")
        return self._sum((part.mean() for part in self.components), vectors=self.event_shape != ())

    def variance(self) -> Array:
        """Variances, ``(n,)`` or ``(n, d)``: of the components, and between their means."""
        self.require("variance")
        mean = self.mean()
        parts = (part.variance() + (part.mean() - mean) ** 2 for part in self.components)
        return self._sum(parts, vectors=self.event_shape != ())

    @quiet
    def log_prob(self, y: Array) -> Array:
        """Log density at `y` (log probability, where all components are discrete), ``(n,)``."""
        self.require("log_prob")
        xp, ops = self.xp, self.ops
        logs = xp.stack([component.log_prob(y) for component in self.components], axis=-1)
        used = self.weights > 0
        logs, used = xp.broadcast_arrays(logs, used)
        peak = xp.max(stop_gradient(ops.where(used, logs, -np.inf * ops.one(logs))), axis=-1)
        peak = ops.where(xp.isfinite(peak), peak, 0.0 * ops.one(peak))
        # A component of weight zero must neither overflow nor hide the others, however likely it finds y.
        shifted = logs - peak[..., None]
        shifted = ops.where(used, shifted, ops.minimum(shifted, 0.0 * ops.one(shifted)))
        return peak + log_or_minus_infinity(ops, xp.sum(self.weights * ops.exp(shifted), axis=-1))

    def cdf(self, y: Array) -> Array:
        """Distribution function at `y`, for scalar targets."""
        self.require("cdf")
        return self._sum((part.cdf(y) for part in self.components), vectors=False)

    def quantile(self, u: Array) -> Array:
        """Quantiles at levels `u`, for scalar targets: by bisection to floating-point precision."""
        self.require("quantile")
        level = self.argument(u, "u", event_ndim=0)

        def on_batch(*arrays: NDArray) -> NDArray:
            rest = iter(arrays[:-1])
            return _quantile(self.map_arrays(lambda _: next(rest)), arrays[-1])

        shape = np.broadcast_shapes(tuple(level.shape), (len(self),))
        return on_numpy(on_batch, *self.arrays(), level, shape=shape)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        chosen = draw_index(to_numpy(self.weights), rng, size)
        drawn = np.stack([component.draw(rng, size) for component in self.components])
        index = chosen.reshape((1, *chosen.shape) + (1,) * len(self.event_shape))
        return np.take_along_axis(drawn, index, axis=0)[0]


def _batches(components: Any) -> tuple[Predictions, ...]:
    if isinstance(components, Predictions) or not isinstance(components, Sequence):
        raise TypeError(f"components must be a list of predictions, found {type(components).__name__}")
    batches = tuple(cast("Sequence[Any]", components))
    if not batches:
        raise ValueError("components is empty: at least one component is needed")
    for k, batch in enumerate(batches):
        if not isinstance(batch, Predictions):
            raise TypeError(f"components must be predictions, found {type(batch).__name__} as component {k}")
    return batches


def _check_compatible(components: tuple[Any, ...]) -> None:
    first = components[0]
    same_library(**{f"components[{k}]": component.like for k, component in enumerate(components)})
    for k, component in enumerate(components):
        if len(component) != len(first):
            raise ValueError(
                f"components must have the same length, found {len(first)} in component 0 "
                f"and {len(component)} in component {k}"
            )
        if component.event_shape != first.event_shape:
            raise ValueError(
                f"components must predict targets of one shape, found {first.event_shape} in component 0 "
                f"and {component.event_shape} in component {k}"
            )
        if component.target_kind in ("bins", "objects"):
            raise TypeError(
                f"component {k} is {type(component).__name__} of {component.target_kind}, which cannot be "
                "mixed"
            )
    if _share_labels(components):
        return
    for k, component in enumerate(components):
        if component.target_kind == "labels" and getattr(component, "support", None) is None:
            raise ValueError(
                f"component {k} predicts classes and not all other components predict the same ones; "
                "give all components the same labels, or numbers as support= to mix it with numeric ones"
            )


def _in_one_unit(components: tuple[Any, ...]) -> tuple[Predictions, ...]:
    """Return components whose targets mean the same: classes with the same numbers, or numbers alone.

    Targets are numbers unless all predict the same classes, and no component may look for its names then.
    """
    if not _share_labels(components):
        named = (getattr(component, "classes", None) is not None for component in components)
        return tuple(c.with_fields(classes=None) if n else c for c, n in zip(components, named, strict=True))
    known = [c.support_values() for c in components if c.supports("mean") and c.supports("class_probs")]
    if any(not np.array_equal(numbers, known[0]) for numbers in known):
        raise ValueError(
            "components predict the same classes and give them different numbers; give all the same support="
        )
    return components


def _share_labels(components: Sequence[Any]) -> bool:
    if any(component.target_kind != "labels" for component in components):
        return False
    first = components[0].labels()
    return all(np.array_equal(component.labels(), first) for component in components[1:])


def _full_weights(weights: Any, components: tuple[Any, ...]) -> Array:
    """Return weights as an array ``(n, K)``, in the library and on the device of the components."""
    like, count = components[0].like, len(components)
    n = len(components[0])
    if weights is None:
        xp = namespace(like)
        return xp.stack([xp.full_like(first_of(like), 1.0 / count)] * count, axis=1)
    if is_array(weights) and not is_numpy(namespace(weights)):
        same_library(components=like, weights=weights)
    return weight_rows(weights, n, count, like, f" for {count} components of {n} predictions")


def _flatten(components: tuple[Predictions, ...], weights: Array) -> tuple[tuple[Predictions, ...], Array]:
    """Components that are mixtures replaced by theirs, with the products of the weights."""
    if not any(isinstance(component, Mixture) for component in components):
        return components, weights
    flat = tuple(part for component in components for part in component.parts)
    columns = [
        weights[:, k : k + 1] * component.weights if isinstance(component, Mixture) else weights[:, k : k + 1]
        for k, component in enumerate(components)
    ]
    return flat, namespace(weights).concat(columns, axis=1)


def _quantile(batch: Mixture, u: NDArray) -> NDArray:
    shape = np.broadcast_shapes(u.shape, (len(batch),))
    levels = np.broadcast_to(u, shape).reshape(-1)
    cases = np.broadcast_to(np.arange(len(batch)), shape).reshape(-1)
    found = np.empty(len(levels))
    parts = told_chunks(len(levels), len(batch.components), within=budget.cache, what="quantiles")
    for some in parts:
        found[some] = _quantiles_of_cases(batch, cases[some], levels[some].astype(np.float64))
    return found.reshape(shape)


def _quantiles_of_cases(batch: Mixture, cases: NDArray, level: NDArray) -> NDArray:
    """Quantiles ``(m,)`` of single cases, each at its level."""
    usable = (level >= 0) & (level <= 1)
    level = np.where(usable, level, 0.5)
    some = batch[cases]
    low, high = np.full(level.shape, np.inf), np.full(level.shape, -np.inf)
    for k, component in enumerate(some.components):
        found = component.quantile(level[None, :])[0]
        used = some.weights[:, k] > 0
        low = np.where(used, np.minimum(low, found), low)
        high = np.where(used, np.maximum(high, found), high)
    whole = batch.kind == "counts"
    found = bisect_quantile(
        lambda rows: some[rows].cdf, level, low, high, smooth=batch.continuous, whole=whole
    )
    return np.where(usable, found, np.nan)
