"""Predictions of classes: Bernoulli and categorical distributions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.checks import (
    check_ndim,
    check_rows,
    check_same_length,
    is_missing,
    label_array,
    one_of,
    plain_array,
    real_array,
)
from wellcal._arrays.domains import Domain, simplex, unit_interval
from wellcal._arrays.namespaces import Array, NDArray, from_numpy, is_traced, namespace, to_numpy
from wellcal._arrays.ownership import own_copy
from wellcal._arrays.parameters import as_library
from wellcal._arrays.special import (
    draw_index,
    gather,
    integer_dtype,
    log_or_minus_infinity,
    quiet,
    table_quantile,
)
from wellcal.predictions.base import Predictions
from wellcal.predictions.capabilities import CAPABILITIES
from wellcal.predictions.fields import family, parameter

_labels = Domain("labels", discrete=True)
_binary = Domain(
    "labels", lambda y: (y == 0) | (y == 1), "must be 0 or 1", "recode the two classes", discrete=True
)


@family
class Bernoulli(Predictions):
    """Probabilities of a binary target.

    Targets are booleans or the numbers 0 and 1.

    Parameters
    ----------
    probs
        Probabilities of 1 (or True), ``(n,)``.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Bernoulli(np.array([0.2, 0.9]))
    >>> pred.class_probs()
    array([[0.8, 0.2],
           [0.1, 0.9]])
    >>> pred.check_targets([True, False])
    array([1, 0])
    """

    probs: Array = parameter(unit_interval, usual=("p", "prob", "proba", "probability"))

    target_domain: ClassVar[Domain] = _binary

    def check_targets(self, y: object, name: str = "y") -> Array:
        """Targets as integers 0 and 1, ``(n,)``."""
        return self.xp.astype(super().check_targets(y, name), integer_dtype(self.xp))

    def class_probs(self) -> Array:
        """Probabilities of 0 and 1, ``(n, 2)``."""
        return self.xp.stack([1.0 - self.probs, self.probs], axis=1)

    def support_values(self) -> NDArray:
        """The values 0.0 and 1.0, as a NumPy array."""
        return np.array([0.0, 1.0])

    def labels(self) -> NDArray:
        """What targets look like: 0 and 1, as a NumPy array."""
        return np.arange(2)

    def mean(self) -> Array:
        """Means, ``(n,)``: the probabilities of 1."""
        return self.probs

    def variance(self) -> Array:
        """Variances, ``(n,)``."""
        return self.probs * (1.0 - self.probs)

    @quiet
    def log_prob(self, y: Array) -> Array:
        """Log probability of `y`; minus infinity for values other than 0 and 1."""
        ops, y = self.ops, self.argument(y, "y")
        p = self.probs
        zero, one = log_or_minus_infinity(ops, 1.0 - p), log_or_minus_infinity(ops, p)
        return ops.where(y == 1, one, ops.where(y == 0, zero, -np.inf * ops.one(p)))

    def cdf(self, y: Array) -> Array:
        """Distribution function at `y`."""
        ops, y = self.ops, self.argument(y, "y")
        p = self.probs
        return ops.where(y < 0, 0.0 * p, ops.where(y < 1, 1.0 - p, ops.one(p)))

    def quantile(self, u: Array) -> Array:
        """Quantiles at levels `u`: 0 up to the probability of 0, then 1."""
        ops, u = self.ops, self.argument(u, "u")
        p = self.probs
        # At the levels 0 and 1 the quantiles are the ends of the support, which may be one point.
        one = ((u > 1.0 - p) & (p > 0)) | (p >= 1)
        found = ops.where(one, ops.one(p), 0.0 * p)
        return ops.where((u >= 0) & (u <= 1), found, np.nan * ops.one(found))

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        return (rng.random((size, len(self))) < to_numpy(self.probs)).astype(np.int64)


@family
class Categorical(Predictions):
    """Probabilities of C classes.

    Targets are labels where `classes` are given, support values where `support` is given, and the
    numbers 0 to C - 1 otherwise. Probabilities are kept as they are given, not normalised.

    Parameters
    ----------
    probs
        Class probabilities, ``(n, C)`` with C >= 2. Rows sum to one within 1e-6 in double precision
        and 1e-3 below.
    classes
        C distinct labels, for example strings, in the order of the columns.
    support
        C distinct numbers ``(C,)`` or vectors ``(C, d)`` that the classes stand for, for ordinal and
        numeric targets: moments and quantiles are taken of these.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Categorical(np.array([[0.2, 0.8], [0.5, 0.5]]), classes=["cat", "dog"])
    >>> pred.check_targets(["dog", "cat"])
    array([1, 0])
    >>> stars = Categorical(np.array([[0.2, 0.3, 0.5]]), support=[1.0, 2.0, 5.0])
    >>> stars.mean()
    array([3.3])
    """

    probs: Array = parameter(
        simplex,
        ndim=2,
        columns=2,
        usual=("p_*", "prob_*", "proba_*"),
        named="classes",
        if_fewer="there is one for each class, and the probability of one of two is Bernoulli(probs[:, 0])",
    )
    classes: Any = None
    support: Any = None

    column_role: ClassVar[str] = "probs"
    target_domain: ClassVar[Domain] = _labels

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.classes is not None and self.support is not None:
            raise ValueError("classes and support cannot both be given: numeric labels are support")
        count = int(self.probs.shape[1])
        if self.classes is not None:
            self.store(classes=_checked_labels(self.classes, count))
        if self.support is not None:
            self.store(support=_checked_support(self.support, count))

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one target: () or, for a support of vectors, ``(d,)``."""
        return () if self.support is None else tuple(int(k) for k in self.support.shape[1:])

    # -- classes -----------------------------------------------------------------------------

    def class_probs(self) -> Array:
        """Probabilities of the classes, ``(n, C)``."""
        return self.probs

    def labels(self) -> NDArray:
        """What targets look like: the classes, the support or 0 .. C - 1, as a NumPy array."""
        if self.classes is not None:
            return self.classes
        return np.arange(int(self.probs.shape[1])) if self.support is None else self.support

    def support_values(self) -> NDArray | None:
        """The numbers that classes stand for, as a NumPy array; None for labels that are not numeric."""
        labels: Array = self.labels()
        return labels.astype(np.float64) if labels.dtype.kind in "biuf" else None

    def check_targets(self, y: object, name: str = "y") -> Array:
        """Targets as indices of classes, ``(n,)``."""
        targets = self._as_labels(y, name)
        check_ndim(targets, name, (1 + len(self.event_shape),))
        check_same_length(targets.shape[0], name, len(self), "predictions")
        index = self._find(targets, name)
        known = self.labels()
        shown = ", ".join(map(repr, known[:6].tolist())) + (", ..." if len(known) > 6 else "")
        check_rows(name, targets, index >= 0, "is not among the classes", f"the classes are {shown}")
        return index

    def _as_labels(self, y: Array, name: str) -> Array:
        """`y` as an array: of NumPy where labels are looked up, else of the predictions' library."""
        if is_traced(y):
            return y
        y = np.asarray(y) if isinstance(y, (str, bytes)) else label_array(self.align(y, name), name)
        if self.classes is None and self.support is None:
            if namespace(y) is namespace() and y.dtype.kind not in "biuf":
                raise TypeError(
                    f"{name} must be class numbers 0 .. {self.probs.shape[1] - 1}, found dtype {y.dtype}; "
                    "give the labels to Categorical as classes="
                )
            return as_library(y, self.like)
        found = to_numpy(y)
        if found.dtype.kind in "mM" and found.dtype.kind != self.labels().dtype.kind:
            raise TypeError(f"{name} must be labels as the classes are, found dtype {found.dtype}")
        return found

    def _find(self, targets: Array, name: str) -> Array:
        """Indices of classes, -1 where there is no such class; leading axes are allowed."""
        xp = self.xp
        dtype = integer_dtype(xp)
        if self.classes is None and self.support is None:
            values = targets
            if xp.isdtype(values.dtype, "bool"):
                return xp.astype(values, dtype)
            ok = (values >= 0) & (values < self.probs.shape[1])
            if xp.isdtype(values.dtype, "real floating"):
                ok = ok & (xp.floor(values) == values)
            return xp.astype(xp.where(ok, values, -xp.ones_like(values)), dtype)
        if is_traced(targets):
            return xp.astype(_find_traced(xp, targets, self.support_values(), name), dtype)
        return from_numpy(_find_labels(self.labels(), targets), self.like)

    # -- numbers -----------------------------------------------------------------------------

    def missing(self, what: str) -> str | None:
        """Why these predictions lack a method: names have no moments, and vectors no quantiles."""
        one_of(what, "method of predictions", CAPABILITIES)
        if what in ("mean", "variance", "interquartile_range", "cdf", "quantile"):
            if self.classes is not None:
                name = what.replace("_", " ")
                return f"Categorical with classes= has no {name}: labels are names; give numbers as support="
            if self.event_shape != () and what in ("cdf", "quantile"):
                return f"Categorical with a support of vectors has no {what}: it needs a support of numbers"
        return super().missing(what)

    def _values(self, what: str) -> Array:
        """The support as an array like the probabilities, or an error that says why there is no `what`."""
        self.require(what)
        return self.constant(self.support_values())

    def mean(self) -> Array:
        """Means of the support, ``(n,)`` or ``(n, d)``."""
        return self.probs @ self._values("mean")

    def variance(self) -> Array:
        """Variances of the support, ``(n,)`` or ``(n, d)``."""
        values = self._values("variance")
        mean = self.probs @ values
        if values.ndim == 1:
            return self.xp.sum(self.probs * (values - mean[:, None]) ** 2, axis=1)
        return self.xp.sum(self.probs[:, :, None] * (values - mean[:, None, :]) ** 2, axis=1)

    @quiet
    def log_prob(self, y: Array) -> Array:
        """Log probability of labels `y`; minus infinity where there is no such class."""
        targets = self._as_labels(y, "y")
        k = len(self.event_shape)
        wanted = (len(self), *self.event_shape)
        if targets.ndim > k and tuple(targets.shape[targets.ndim - 1 - k :]) != wanted:
            raise ValueError(
                f"y must be a label or end in shape {wanted}, found shape {tuple(targets.shape)}"
            )
        xp, ops = self.xp, self.ops
        index = self._find(targets, "y")
        if index.ndim == 0:
            index = xp.broadcast_to(index, (len(self),))
        safe = xp.where(index < 0, xp.zeros_like(index), index)
        found = log_or_minus_infinity(ops, gather(self.probs, safe))
        return xp.where(index < 0, -np.inf * ops.one(found), found)

    def cdf(self, y: Array) -> Array:
        """Distribution function of the support at `y`."""
        xp, values = self.xp, self._values("cdf")
        below = values <= self.argument(y, "y")[..., None]
        return xp.sum(xp.where(below, self.probs, 0.0 * self.probs), axis=-1)

    def quantile(self, u: Array) -> Array:
        """Quantiles of the support: the smallest value whose distribution function reaches `u`."""
        values = self.xp.broadcast_to(self._values("quantile"), tuple(self.probs.shape))
        return table_quantile(values, self.probs, self.argument(u, "u"))

    def interquartile_range(self) -> Array:
        """Interquartile ranges of the support, ``(n,)`` or ``(n, d)``."""
        values = self._values("interquartile_range")
        if values.ndim == 1:
            return super().interquartile_range()
        xp, shape = self.xp, tuple(self.probs.shape)
        low, high = (self.argument(u, "u", event_ndim=0) for u in (0.25, 0.75))
        tables = [xp.broadcast_to(values[:, k], shape) for k in range(values.shape[1])]
        spreads = [table_quantile(t, self.probs, high) - table_quantile(t, self.probs, low) for t in tables]
        return xp.stack(spreads, axis=1)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        return self.labels()[draw_index(to_numpy(self.probs), rng, size)]


def _checked_labels(classes: Any, count: int) -> NDArray:
    array = own_copy(to_numpy(label_array(classes, "classes")))
    if array.ndim != 1:
        raise ValueError(
            f"classes must be 1-dimensional, found shape {array.shape}; vectors are given as support"
        )
    if len(array) != count:
        raise ValueError(
            f"classes must have one label for each of the {count} columns of probs, found {len(array)}"
        )
    items = array.tolist()
    if missing := [k for k, label in enumerate(items) if label is not None and is_missing(label)]:
        raise ValueError(
            f"classes has no label in position {missing[0]}: found {items[missing[0]]!r}, which no target "
            "equals; give the class a name"
        )
    try:
        distinct = len(set(items))
    except TypeError:
        raise TypeError(
            "classes must be labels such as numbers or texts: one of them cannot be hashed"
        ) from None
    if distinct < count:
        raise ValueError("classes must be distinct: a label occurs twice")
    return array


def _checked_support(support: Any, count: int) -> NDArray:
    array = real_array(to_numpy(plain_array(support, "support")), "support", ndim=(1, 2))
    if len(array) != count:
        raise ValueError(
            f"support must have one value for each of the {count} columns of probs, found {len(array)}"
        )
    if len(np.unique(array, axis=0)) < count:
        raise ValueError(
            "support must be distinct: a value occurs twice; add up the probabilities of equal values"
        )
    return array.astype(np.float64)


def _find_labels(labels: NDArray, targets: NDArray) -> NDArray:
    """Position of each of `targets` in `labels`, -1 where it is not found."""
    if labels.ndim == 2:
        return _find_vectors(labels, targets)
    numeric = labels.dtype.kind in "biuf", targets.dtype.kind in "biuf"
    if all(numeric) or labels.dtype.kind == targets.dtype.kind != "O":
        if targets.dtype.kind == "f":
            labels = labels.astype(targets.dtype)  # 0.1 in single precision is not 0.1 in double
        order = np.argsort(labels)
        position = order[np.minimum(np.searchsorted(labels[order], targets), len(labels) - 1)]
        return np.where(labels[position] == targets, position, -1)
    table = {label: position for position, label in enumerate(labels.tolist())}
    found = [table.get(target, -1) for target in targets.ravel().tolist()]
    return np.asarray(found, dtype=np.int64).reshape(targets.shape)


def _find_vectors(labels: NDArray, targets: NDArray) -> NDArray:
    if targets.dtype.kind not in "biuf":
        raise TypeError(f"targets must be numeric, found dtype {targets.dtype}")
    if targets.dtype.kind == "f":
        labels = labels.astype(targets.dtype)
    table = {tuple(label): position for position, label in enumerate(labels.tolist())}
    rows = targets.reshape(-1, targets.shape[-1]).tolist()
    found = [table.get(tuple(row), -1) for row in rows]
    return np.asarray(found, dtype=np.int64).reshape(targets.shape[:-1])


def _find_traced(xp: Any, targets: Array, values: NDArray | None, name: str) -> Array:
    if values is None:
        raise TypeError(f"{name} cannot be traced: labels that are not numbers are looked up outside of jit")
    table = xp.asarray(values)
    same = (
        targets[..., None] == table if values.ndim == 1 else xp.all(targets[..., None, :] == table, axis=-1)
    )
    return xp.where(xp.any(same, axis=-1), xp.argmax(same, axis=-1), -1)
