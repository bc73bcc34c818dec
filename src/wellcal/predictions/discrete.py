"""Predictions of classes: Bernoulli and categorical distributions."""

from __future__ import annotations

from typing import Any, ClassVar, Self, cast

import numpy as np

from wellcal._arrays.checks import as_library, check_ndim, check_rows, label_array, one_of
from wellcal._arrays.domains import Domain, simplex, unit_interval
from wellcal._arrays.namespaces import Array, NDArray, from_numpy, host_copy, is_traced, namespace, to_numpy
from wellcal._arrays.special import (
    draw_index,
    gather,
    integer_dtype,
    log_or_minus_infinity,
    quiet,
    table_quantile,
)
from wellcal.predictions.base import CAPABILITIES, Predictions, check_cases
from wellcal.predictions.class_names import (
    NUMBERS_WANTED,
    advise_of_unpredicted,
    checked_labels,
    checked_support,
    class_hint,
    column_names,
    find_labels,
    find_traced,
    names_of,
    names_wanted,
    order_of,
    ordered_categories,
)
from wellcal.predictions.fields import family, parameter
from wellcal.predictions.input_hints import with_probability_hint


class FiniteFamily(Predictions):
    """Moments, distribution function and quantiles of families on finitely many atoms."""

    def atoms(self) -> tuple[Array, Array]:
        """Return atoms ``(n, S)`` or ``(n, S, d)`` and their weights ``(n, S)``."""
        raise NotImplementedError

    def _average(self, of: Array, weights: Array) -> Array:
        return self.xp.sum((weights if of.ndim == 2 else weights[:, :, None]) * of, axis=1)

    def mean(self) -> Array:
        """Means, ``(n,)`` or ``(n, d)``."""
        self.require("mean")
        return self._average(*self.atoms())

    def variance(self) -> Array:
        """Variances, ``(n,)``, or of the coordinates, ``(n, d)``."""
        self.require("variance")
        values, weights = self.atoms()
        return self._average((values - self._average(values, weights)[:, None, ...]) ** 2, weights)

    def cdf(self, y: Array) -> Array:
        """Distribution function at `y`: weight of the atoms up to and including it."""
        self.require("cdf")
        xp, (values, weights) = self.xp, self.atoms()
        return xp.sum(xp.where(values <= self.argument(y, "y")[..., None], weights, 0.0 * weights), axis=-1)

    def quantile(self, u: Array) -> Array:
        """Quantiles at levels `u`: the smallest atom whose distribution function reaches it."""
        self.require("quantile")
        return table_quantile(*self.atoms(), self.argument(u, "u"))

    def interquartile_range(self) -> Array:
        """Interquartile ranges, ``(n,)``, or of the coordinates, ``(n, d)``."""
        self.require("interquartile_range")
        values, weights = self.atoms()
        low, high = (self.argument(u, "u", event_ndim=0) for u in (0.25, 0.75))
        tables = [values] if values.ndim == 2 else [values[:, :, k] for k in range(values.shape[2])]
        ranges = [table_quantile(t, weights, high) - table_quantile(t, weights, low) for t in tables]
        return ranges[0] if values.ndim == 2 else self.xp.stack(ranges, axis=1)


class _Classes(FiniteFamily):
    """Families whose targets are labels."""

    target_domain: ClassVar[Domain] = Domain("labels", discrete=True)

    def check_targets(self, y: object, name: str = "y") -> Array:
        """Targets as indices of classes, ``(n,)``."""
        return _positions(cast("Any", self), y, name)

    @quiet
    def log_prob(self, y: Array) -> Array:
        """Log probability of labels `y`; minus infinity where there is no such class."""
        batch: Any = self
        targets = _as_given(batch, y, "y")
        k = len(self.event_shape)
        wanted = (len(self), *self.event_shape)
        if targets.ndim > k and tuple(targets.shape[targets.ndim - 1 - k :]) != wanted:
            raise ValueError(
                f"y must be a label or end in shape {wanted}, found shape {tuple(targets.shape)}"
            )
        xp, ops = self.xp, self.ops
        index = _find(batch, targets, "y")
        if index.ndim == 0:
            index = xp.broadcast_to(index, (len(self),))
        safe = xp.where(index < 0, xp.zeros_like(index), index)
        found = log_or_minus_infinity(ops, gather(self.class_probs(), safe))
        return xp.where(index < 0, -np.inf * ops.one(found), found)


@family
class Bernoulli(_Classes):
    """Probabilities of a binary target.

    Targets are booleans or the numbers 0 and 1; one of two labels where `classes` are given.

    Parameters
    ----------
    probs
        Probabilities of 1 (or True), ``(n,)``; of the second of `classes`.
    classes
        Two labels, such as ``("no", "yes")``, that stand for 0 and 1. Moments and quantiles are those of the
        numbers.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Bernoulli(np.array([0.2, 0.9]))
    >>> pred.class_probs()
    array([[0.8, 0.2],
           [0.1, 0.9]])
    >>> pred.check_targets([True, False])
    array([1, 0])
    >>> Bernoulli(np.array([0.2, 0.9]), classes=("no", "yes")).check_targets(["yes", "no"])
    array([1, 0])
    """

    probs: Array = parameter(unit_interval, usual=("p", "prob", "probs", "proba", "probability"))
    classes: Any = None

    def __post_init__(self) -> None:
        try:
            super().__post_init__()
        except ValueError as error:
            raise with_probability_hint(error, self.probs) from None
        if self.classes is not None:
            self.store(classes=checked_labels(names_of(self.classes), 2, "values 0 and 1"))

    def class_probs(self) -> Array:
        """Probabilities of 0 and 1, ``(n, 2)``."""
        return self.xp.stack([1.0 - self.probs, self.probs], axis=1)

    def atoms(self) -> tuple[Array, Array]:
        """Return 0 and 1 for each prediction, and their probabilities."""
        probs = self.class_probs()
        return self.xp.broadcast_to(self.constant(self.support_values()), tuple(probs.shape)), probs

    def support_values(self) -> NDArray:
        """The values 0.0 and 1.0, as a NumPy array."""
        return np.array([0.0, 1.0])

    def labels(self) -> NDArray:
        """Values that targets have: the classes, or 0 and 1, as a NumPy array."""
        return np.arange(2) if self.classes is None else self.classes

    def mean(self) -> Array:
        """Means, ``(n,)``: the probabilities of 1."""
        return self.probs

    def variance(self) -> Array:
        """Variances, ``(n,)``."""
        return self.probs * (1.0 - self.probs)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        drawn = (rng.random((size, len(self))) < to_numpy(self.probs)).astype(np.int64)
        return drawn if self.classes is None else self.classes[drawn]


@family
class Categorical(_Classes):
    """Probabilities of C classes.

    Targets are labels where `classes` are given, support values where `support` alone is given, and the
    numbers 0 to C - 1 otherwise. Probabilities are kept as they are given, not normalised.

    Parameters
    ----------
    probs
        Class probabilities, ``(n, C)`` with C >= 2. Rows sum to one within 1e-6 in double precision
        and 1e-3 below. The columns of a data frame name the classes, unless they are numbered from 0.
    classes
        C distinct labels, for example strings, in the order of the columns. An ordered categorical of
        pandas, or its dtype, gives grades: their places 0 .. C - 1 are the support.
    support
        C distinct numbers ``(C,)`` or vectors ``(C, d)`` that the classes stand for, for ordinal and
        numeric targets: moments and quantiles are taken of these. With `classes`, targets are labels and
        these are their numbers. Where targets are an ordered categorical of pandas, its order is taken
        for the support, and its names for the classes unless these are given.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Categorical(np.array([[0.2, 0.8], [0.5, 0.5]]), classes=["cat", "dog"])
    >>> pred.check_targets(["dog", "cat"])
    array([1, 0])
    >>> stars = Categorical(np.array([[0.2, 0.3, 0.5]]), support=[1.0, 2.0, 5.0])
    >>> stars.mean()
    array([3.3])
    >>> grades = Categorical(np.array([[0.2, 0.3, 0.5]]), classes=["low", "mid", "high"], support=[0, 1, 2])
    >>> grades.check_targets(["mid"]), grades.mean()
    (array([1]), array([1.3]))
    """

    probs: Array = parameter(
        simplex,
        ndim=2,
        columns=2,
        usual=("p_*", "prob_*", "probs_*", "proba_*", "p", "prob", "probs", "proba"),
        named="classes",
        if_fewer="there is one for each class, and the probability of one of two is Bernoulli(probs[:, 0])",
    )
    classes: Any = None
    support: Any = None

    column_role: ClassVar[str] = "probs"

    def __post_init__(self) -> None:
        try:
            super().__post_init__()
        except ValueError as error:
            raise with_probability_hint(error, self.probs) from None
        count = int(self.probs.shape[1])
        if self.support is not None:
            self.store(support=checked_support(self.support, count))
        if self.classes is not None:
            self.store(classes=checked_labels(self.classes, count))
            if self.event_shape != ():
                raise ValueError(
                    "classes with a support of vectors are not known: give a number for each class as "
                    "support, or leave out classes"
                )

    def arrange(self, *how: Any) -> None:
        """Names and order of the classes, where a data frame or an ordered categorical says them."""
        if self.classes is None and self.support is None:
            self.store(classes=column_names(self.probs))
        order = order_of(self.classes)
        self.store(classes=names_of(self.classes))
        if order is not None and self.support is None:
            self.store(support=order)

    def ordered_like(self, y: object) -> Self | None:
        """Return the classes as grades, if `y` is an ordered categorical of pandas of their names.

        It may have further categories, which are not predicted, where the classes have names.
        """
        grades = ordered_categories(y)
        found = None if grades is None else self.ordered_as(grades)
        if found is not None:
            advise_of_unpredicted(grades, found.labels())
        return found

    def ordered_as(self, grades: Any) -> Self | None:
        """Return the classes with the order of `grades`; None if these lack a class, or there is an order.

        Examples
        --------
        >>> pred = Categorical([[0.2, 0.3, 0.5]], classes=["high", "low", "mid"])
        >>> pred.ordered_as(["low", "mid", "high"]).support
        array([2., 0., 1.])
        """
        count = int(self.probs.shape[1])
        if self.support is not None or (self.classes is None and len(grades) != count):
            return None
        names = checked_labels(grades if self.classes is None else self.classes, count)
        places = find_labels(np.asarray(grades), names)
        if (places < 0).any():
            return None
        return self.with_fields(classes=names, support=np.argsort(np.argsort(places)).astype(np.float64))

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one target: () or, for a support of vectors, ``(d,)``."""
        return () if self.support is None else tuple(int(k) for k in self.support.shape[1:])

    # -- classes -----------------------------------------------------------------------------

    def class_probs(self) -> Array:
        """Probabilities of the classes, ``(n, C)``."""
        return self.probs

    def labels(self) -> NDArray:
        """Values that targets have: the classes, the support or 0 .. C - 1, as a NumPy array."""
        if self.classes is not None:
            return self.classes
        return np.arange(int(self.probs.shape[1])) if self.support is None else self.support

    def support_values(self) -> NDArray | None:
        """The numbers that classes stand for, as a NumPy array; None for labels that are not numeric."""
        labels: Array = self.labels() if self.support is None else self.support
        return labels.astype(np.float64) if labels.dtype.kind in "biuf" else None

    # -- numbers -----------------------------------------------------------------------------

    def missing(self, what: str) -> str | None:
        """Return why these predictions lack a method: names have no moments, and vectors no quantiles."""
        one_of(what, "method of predictions", CAPABILITIES)
        numeric = what in ("mean", "variance", "interquartile_range", "cdf", "quantile")
        if numeric and self.classes is not None and self.support is None:
            name = what.replace("_", " ")
            return f"Categorical has no {name}: its classes are names; {NUMBERS_WANTED}"
        return super().missing(what)

    def atoms(self) -> tuple[Array, Array]:
        """Return the support, as an array like the probabilities, for each prediction, and these."""
        values = self.constant(self.support_values())
        shape = (*self.probs.shape, *values.shape[1:])
        return self.xp.broadcast_to(values, shape), self.probs

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        return self.labels()[draw_index(to_numpy(self.probs), rng, size)]


# -- targets as positions in the list of classes -------------------------------------------------


def _positions(batch: Bernoulli | Categorical, y: object, name: str) -> Array:
    """Return targets as indices of classes, ``(n,)``; raise with the first that is no class."""
    targets = _as_given(batch, y, name)
    check_ndim(targets, name, (1 + len(batch.event_shape),), y)
    check_cases(int(targets.shape[0]), name, batch)
    index = _find(batch, targets, name)
    ok = host_copy(index) >= 0
    if not is_traced(ok) and not bool(namespace(ok).all(ok)):
        values = to_numpy(targets)
        if _are_numbered(batch) and isinstance(batch, Bernoulli):
            check_rows(name, targets, ok, "must be 0 or 1", "recode the two classes")
        hint = class_hint(batch.labels(), values, values[~to_numpy(ok)], name)
        check_rows(name, targets, ok, "is not among the classes", hint)
    return index


def _as_given(batch: Bernoulli | Categorical, y: Any, name: str) -> Array:
    """Return `y` as an array: of NumPy where labels are looked up, else of the predictions' library."""
    if is_traced(y):
        return y
    array = np.asarray(y) if isinstance(y, (str, bytes)) else label_array(batch.align(y, name), name)
    if not _are_numbered(batch):
        labels = to_numpy(array)
        if labels.dtype.kind in "mM" and labels.dtype.kind != batch.labels().dtype.kind:
            raise TypeError(f"{name} must be labels as the classes are, found dtype {labels.dtype}")
        return labels
    if type(array) is np.ndarray and array.dtype.kind not in "biuf":
        count, family_name = len(batch.labels()), type(batch).__name__
        raise TypeError(
            names_wanted(y, name, count, family_name)
            or f"{name} must be class numbers 0 .. {count - 1}, found dtype {array.dtype}; give the labels "
            f"to {family_name} as classes="
        )
    if isinstance(batch, Bernoulli) and type(array) is np.ndarray and array.dtype.kind == "f":
        check_rows(name, array, np.isfinite(array), "is not finite", "drop or impute that row")
    return as_library(array, batch.like)


def _are_numbered(batch: Bernoulli | Categorical) -> bool:
    return batch.classes is None and getattr(batch, "support", None) is None


def _find(batch: Bernoulli | Categorical, targets: Array, name: str) -> Array:
    """Return indices of classes, -1 where there is no such class; leading axes are allowed."""
    labels, values, dtype = batch.labels(), host_copy(targets), integer_dtype(batch.xp)
    if _are_numbered(batch):
        if type(values) is not np.ndarray:
            return _numbered(values, len(labels), dtype)
        return from_numpy(_numbered(values, len(labels), np.int64), batch.like)
    if is_traced(targets):
        return batch.xp.astype(find_traced(batch.xp, targets, labels, name), dtype)
    return from_numpy(find_labels(labels, values), batch.like)


def _numbered(values: Array, count: int, dtype: Any) -> Array:
    """Return `values` that are among 0 .. count - 1 as whole numbers, and -1 for others."""
    xp = namespace(values)
    if xp.isdtype(values.dtype, "bool") or (type(values) is np.ndarray and _are_below(values, count)):
        return xp.astype(values, dtype)
    ok = (values >= 0) & (values < count)
    if xp.isdtype(values.dtype, "real floating"):
        ok = ok & (xp.floor(values) == values)
    return xp.astype(xp.where(ok, values, -xp.ones_like(values)), dtype)


def _are_below(values: NDArray, count: int) -> bool:
    """True if an array holds whole numbers from 0 on that are below `count`."""
    if values.dtype.kind == "b":
        return count > 1
    return values.dtype.kind in "iu" and values.size > 0 and bool(values.min() >= 0 and values.max() < count)
