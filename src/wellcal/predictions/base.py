"""Base of all families: a frozen batch of n distributions of one kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from wellcal._arrays.checks import (
    as_library,
    check_same_length,
    described,
    must_be_levels,
    numeric_array,
    one_of,
    plain_array,
    real_array,
    whole_number,
)
from wellcal._arrays.chunks import budget, check_size
from wellcal._arrays.copies import freeze, read_only
from wellcal._arrays.domains import Domain, real
from wellcal._arrays.namespaces import (
    Array,
    Namespace,
    NDArray,
    asarray,
    attribute,
    device_of,
    from_numpy,
    host_copy,
    is_array,
    is_traced,
    namespace,
    refuse_elsewhere,
    take_rows,
    to_numpy,
)
from wellcal._arrays.ops import Ops, ops_for
from wellcal._arrays.seeds import fresh_generator
from wellcal.columns.labels import Labels, in_order_of, labels_of
from wellcal.predictions import pytrees
from wellcal.predictions.construction import Coordinates, coordinates_in_order, frozen_init
from wellcal.predictions.fields import KEY, Parameter, checked_parameters
from wellcal.predictions.quantile_ties import Ties

FAMILIES: list[type[Predictions]] = []


CAPABILITIES = (
    "sample",
    "mean",
    "variance",
    "log_prob",
    "cdf",
    "quantile",
    "upper_quantile",
    "interquartile_range",
    "class_probs",
)
"""What :meth:`Predictions.supports` can be asked about."""

NORMAL_INTERQUARTILE_RANGE = 1.3489795003921634
"""Interquartile range of the standard normal distribution."""


_KINDS = {"labels": "classes", "counts": "counts", "bins": "quantiles", "objects": "objects"}
"""Kinds of families by the names of their target domains."""


def at_all_levels(quantile: Callable[..., Array]) -> Callable[..., Array]:
    """The method `quantile` of a family, which sees a number, or levels that end in the batch shape.

    Levels ``(k,)`` are those of all n predictions and give ``(n, k)``, whatever k is: the shape of an answer
    must not depend on whether there happen to be as many cases as levels. Levels with more axes end in the
    batch shape, one for each prediction, or in 1, and give ``(..., n)``. Numbers that are no levels are
    refused, here for all families.
    """
    name = "q" if quantile.__name__ == "upper_quantile" else "u"

    @wraps(quantile)
    def shared(self: Any, u: Any) -> Array:
        if isinstance(u, (float, int)):
            must_be_levels(u, name)
            return quantile(self, u)
        if self.event_shape != ():
            return quantile(self, u)  # which says that vectors have none
        levels = numeric_array(u, name)
        levels = self.constant(levels) if isinstance(u, (list, tuple)) else levels
        must_be_levels(levels, name)
        n, axes = len(self), levels.ndim
        if axes == 0 or (axes > 1 and (levels.shape[-1] == n or levels.shape[-1] != 1)):
            return quantile(self, levels)  # which says what is wrong with levels that do not fit
        if axes > 1:
            return quantile(self, namespace(levels).broadcast_to(levels, (*levels.shape[:-1], n)))
        count = int(levels.shape[0])
        if n * count > budget.most:
            raise ValueError(
                f"{name} has {count:,} levels, which would make {n:,} x {count:,} quantiles, a row "
                f"for each prediction; for one level for each of them give a first axis, {name}[None, :]"
            )
        found = quantile(self, namespace(levels).broadcast_to(levels[:, None], (count, n)))
        return namespace(found).permute_dims(found, (1, 0))

    return shared


class Predictions:
    """A frozen batch of n predicted distributions of one family.

    A batch is a snapshot. Parameters are copied when it is made, so that changing an array afterwards
    changes no batch, and NumPy's copies are read-only. A tensor of PyTorch is cloned, which keeps its
    gradients; in a training loop make predictions anew in each step.

    Parameters that are columns or data frames of pandas bring their index along, and the batch remembers it:
    what belongs to its cases and has an index too (targets, weights, groups) is matched by labels, whatever
    its order, and an error where the labels differ. Anything without an index is taken by position.

    Parameters may be arrays of any supported library, and results live where the parameters do. Methods that
    take targets (`log_prob`, `cdf`) accept a number, or an array with a target for each prediction: ``(n,)``
    or ``(..., n)`` for scalar targets, ``(n, d)`` or ``(..., n, d)`` for vectors. Levels of `quantile` and
    `upper_quantile` are those of all predictions: a number gives ``(n,)``, a list or array ``(k,)`` gives
    ``(n, k)``, whatever k is, and ``(k, 1)`` gives ``(k, n)``. A level for each prediction needs two axes:
    ``(1, n)`` or ``(..., n)`` gives the same shape.

    Notes
    -----
    A family of your own is a subclass, decorated with `family`, that declares its parameters as fields and
    defines `draw`, a quantile function, or both:

    >>> import numpy as np, wellcal as wc
    >>> from wellcal.extend import family, nonnegative, parameter, positive, to_numpy
    >>> @family
    ... class Exponential(wc.Predictions):
    ...     scale: np.ndarray = parameter(positive)
    ...     target_domain = nonnegative
    ...
    ...     def quantile(self, u):
    ...         return -self.scale * self.ops.log1p(-self.argument(u, "u"))
    ...
    ...     def draw(self, rng, size):
    ...         return rng.exponential(to_numpy(self.scale), (size, len(self)))
    >>> Exponential([1.0, 2.0])[1:].sample(rng=0, size=2).shape
    (2, 1)

    What there is to define, all of it optional but one of the first two:

    draw(rng, size)
        NumPy draws of shape ``(size, n) + event_shape``.
    mean(), variance(), log_prob(y), cdf(y), quantile(u)
        What is known of the distributions; `upper_quantile(q)` too, the quantile at ``1 - q`` to full
        precision for tiny q.
    event_shape
        A property: the shape of one target where it is a vector.
    target_domain
        Which targets are possible, such as `nonnegative`; `check_targets` follows from it.
    continuous
        Whether `log_prob` is a density. By default False where the target domain is discrete.
    missing(what)
        Why a batch lacks a method that its class has, such as the quantiles of vectors.
    __post_init__()
        More checks of parameters, after those of ``super().__post_init__()``; `store` keeps what it computes.

    Within methods, `argument` checks targets and levels, `ops` has the operations of the array library (and
    `xp` its namespace), and `constant` brings NumPy's numbers into it. :mod:`wellcal.conformance` checks a
    family against simulation and the laws that all families obey.
    """

    array_fields: ClassVar[tuple[str, ...]] = ()
    """Fields with one entry for each prediction along their first axis: the declared parameters."""
    batch_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that hold a tuple of batches of the same length."""
    target_domain: ClassVar[Domain] = real
    """Which targets are possible."""
    continuous: ClassVar[bool] = True
    """Whether `log_prob` is a density; otherwise it is a probability."""
    parameter_fields: ClassVar[Mapping[str, Parameter]] = {}
    """What the fields were declared with, by name."""
    column_role: ClassVar[str] = ""
    """Keyword of :func:`wellcal.as_predictions` for columns of data frames; by default the class in words."""
    column_parameters: ClassVar[tuple[str, ...]] = ()
    """Parameters that columns are given for, all of them needed; empty for all that the family declares."""
    case_index: ClassVar[Labels | None] = None
    """Labels of the cases, an index of pandas, of a batch whose parameters had one; else None."""
    case_columns: ClassVar[Coordinates | None] = None
    """Names of the columns of a data frame that vectors of parameters were given as; else None."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        # The decorator that makes fields of them has not run yet.
        declared = {
            name: x.metadata[KEY] for name, x in own.items() if isinstance(x, Field) and KEY in x.metadata
        }
        if declared:
            cls.parameter_fields = {**cls.parameter_fields, **declared}
            if "array_fields" not in own:
                cls.array_fields = tuple(cls.parameter_fields)
        if "target_domain" in own and "continuous" not in own:
            cls.continuous = not cls.target_domain.discrete
        for name in ("quantile", "upper_quantile"):
            if callable(own.get(name)):
                setattr(cls, name, at_all_levels(own[name]))
        if "__post_init__" in own:
            cls.__post_init__ = frozen_init(own["__post_init__"])
        FAMILIES.append(cls)
        pytrees.register(cls)

    @frozen_init
    def __post_init__(self) -> None:
        if self.parameter_fields:
            self.check_parameters(*self.parameter_fields)
            nonempty(self)

    def arrange(self, *how: Any) -> None:
        """Bring what was given into the shape that parameters have; first of all during construction.

        `how` are the fields of the family that are ``InitVar``, such as the axis of draws.
        """

    def check_parameters(self, *names: str) -> None:
        """Check declared parameters and store them as arrays; during construction only."""
        known = self.parameter_fields
        given = {name: getattr(self, name) for name in names if not known[name].computed}
        given = {name: x for name, x in given.items() if x is not None or not known[name].optional}
        self.store(**checked_parameters(given, known))

    # -- cases -------------------------------------------------------------------------------

    def align(self, x: Any, name: str = "y") -> Any:
        """`x` with its rows in the order of these predictions, where both have an index.

        Parameters
        ----------
        x
            Targets, weights, or anything else with a row for each prediction.
        name
            What errors call it.

        Examples
        --------
        >>> import numpy as np, wellcal as wc
        >>> wc.Bernoulli(np.array([0.2, 0.7])).align([0, 1])
        [0, 1]
        """
        index = self.case_index
        return x if index is None else in_order_of(index, x, name, "predictions")

    def ordered_like(self, y: object) -> Self | None:
        """Return these predictions with the order of grades that targets have; None if they have none."""
        return None

    def with_index(self, index: Labels | None) -> Self:
        """Return these predictions with other labels of cases: an index of pandas, or None."""
        if index is not None:
            check_same_length(len(index), "index", len(self), "predictions")
        same = self.with_fields()
        same.store(case_index=index)
        return same

    # -- batch behaviour ---------------------------------------------------------------------

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)  # NumPy does not pickle that an array is read-only
        for value in state.values():
            freeze(value)

    def __len__(self) -> int:
        return int(getattr(self, self.array_fields[0]).shape[0])

    def __getitem__(self, index: Any) -> Self:
        """Sub-batch by slice, integer array or boolean mask; an integer gives a batch of one."""
        n = len(self)
        if isinstance(index, (int, np.integer)) and not isinstance(index, np.timedelta64):
            _check_position(cast("int", index), n)
            index = slice(cast("int", index) % n, cast("int", index) % n + 1)
        elif not isinstance(index, slice):
            is_mask = labels_of(index) is not None and str(attribute(index, "dtype")) in ("bool", "boolean")
            index = _checked_index(self.align(index, "mask") if is_mask else index, n)
        elif (cast("Any", index).step or 1) < 0:
            index = np.arange(n)[index]  # not every library can step backwards
        chosen = self.map_arrays(lambda array: take_rows(array, index))
        if self.case_index is not None:
            positions: Any = cast("Any", index) if isinstance(index, slice) else to_numpy(index)
            chosen.store(case_index=self.case_index[positions])
        return chosen

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    def map_arrays(self, function: Callable[[Array], Any]) -> Self:
        """Return the batch with `function` applied to every array; values are not checked again."""
        arrays = {name: getattr(self, name) for name in self.array_fields}
        changed = {name: function(array) for name, array in arrays.items() if array is not None}
        for name in self.batch_fields:
            changed[name] = tuple(child.map_arrays(function) for child in getattr(self, name))
        return self.with_fields(**changed)

    def with_fields(self, **changed: Any) -> Self:
        """Return the batch with some fields replaced; values are neither checked again nor copied."""
        clone = object.__new__(type(self))
        names = [field.name for field in fields(self)]  # pyright: ignore[reportArgumentType]  # a dataclass
        kept = {name: getattr(self, name) for name in (*names, "case_index", "case_columns")}
        clone.store(**{name: read_only(value) for name, value in {**kept, **changed}.items()})
        return clone

    def store(self, **values: Any) -> None:
        """Store checked parameters during construction of a frozen instance."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        shape = "" if self.event_shape == () else f", targets of shape {self.event_shape}"
        return f"<{type(self).__name__}: {len(self)} predictions{shape}>"

    # -- distributions -----------------------------------------------------------------------

    if TYPE_CHECKING:
        # Families define those that they have: ask `supports` before calling one.
        def mean(self) -> Array: ...
        def variance(self) -> Array: ...
        def log_prob(self, y: Array) -> Array: ...
        def cdf(self, y: Array) -> Array: ...
        def quantile(self, u: Array) -> Array: ...
        def upper_quantile(self, q: Array) -> Array: ...
        def class_probs(self) -> Array: ...

    def supports(self, what: str) -> bool:
        """True if these predictions have a method: "cdf", "quantile", "log_prob", "sample" and so on.

        Examples
        --------
        >>> import numpy as np, wellcal as wc
        >>> wc.Samples(np.zeros((5, 2))).supports("cdf"), wc.Samples(np.zeros((5, 2, 3))).supports("cdf")
        (True, False)
        """
        return self.missing(what) is None

    def missing(self, what: str) -> str | None:
        """Return why these predictions lack a method, as a sentence; None if they have it.

        Families override it where a method exists for some batches only.
        """
        one_of(what, "method of predictions", CAPABILITIES)
        name, cls = type(self).__name__, type(self)
        if what == "sample":
            return None if cls.draw is not Predictions.draw else f"{name} cannot be sampled"
        if what == "interquartile_range" and cls.interquartile_range is Predictions.interquartile_range:
            usable = self.supports("variance" if self.event_shape else "quantile")
            remedy = "define quantile or interquartile_range, or give a kernel with a length scale"
            return None if usable else f"{name} has no interquartile range; {remedy}"
        if not callable(getattr(cls, what, None)):
            return f"{name} has no {what}"
        scalar = what not in ("cdf", "quantile", "upper_quantile") or self.event_shape == ()
        return None if scalar else f"{name} of vectors has no {what}: only scalar targets have one"

    def require(self, what: str) -> None:
        """Raise TypeError, with the reason, where these predictions lack a method."""
        reason = self.missing(what)
        if reason is not None:
            raise TypeError(reason)

    def sample(self, rng: int | np.random.Generator | None = None, size: int | None = None) -> Array:
        """Draw targets from the predictions.

        Parameters
        ----------
        rng
            Seed or generator; None draws new numbers each time. Draws are made by NumPy and handed to the
            predictions' library.
        size
            Number of independent draws for each prediction.

        Returns
        -------
        array
            ``(n,) + event_shape``, or ``(size, n) + event_shape``.
        """
        count = 1 if size is None else whole_number(size, "size", least=0)
        check_size(count * len(self) * math.prod(self.event_shape), "size", count)
        drawn = self.draw(fresh_generator(rng), count)
        drawn = drawn[0] if size is None else drawn
        if drawn.dtype.kind not in "biuf":
            return drawn  # only NumPy holds strings and objects
        return self.constant(drawn) if drawn.dtype.kind == "f" else from_numpy(drawn, self.like)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        """NumPy draws of shape ``(size, n) + event_shape``."""
        raise TypeError(f"{type(self).__name__} cannot be sampled")

    def interquartile_range(self) -> Array:
        """Interquartile ranges, ``(n,)``; for vectors those of normals of equal variance, ``(n, d)``.

        Not differentiated in general: length scales, which are made from it, are constants.
        """
        self.require("interquartile_range")
        if self.event_shape:
            return NORMAL_INTERQUARTILE_RANGE * namespace(self.like).sqrt(self.variance())
        return self.quantile(0.75) - self.quantile(0.25)

    # -- library ---------------------------------------------------------------------------

    @property
    def like(self) -> Array:
        """An array whose library and device results share; one that is traced or has a gradient, if any."""
        first = getattr(self, self.array_fields[0])
        if type(first) is np.ndarray:
            return first
        return next((a for a in self.arrays() if is_traced(a) or getattr(a, "requires_grad", False)), first)

    def arrays(self) -> list[Array]:
        """Return all parameters that are arrays, with those of the batches that this one is made of."""
        own = [array for name in self.array_fields if (array := getattr(self, name)) is not None]
        parts = (part for name in self.batch_fields for part in getattr(self, name))
        return own + [array for part in parts for array in part.arrays()]

    @property
    def xp(self) -> Namespace:
        """Array API namespace of the parameters."""
        return namespace(self.like)

    @property
    def ops(self) -> Ops:
        """Elementwise operations of the parameters' library, such as ``ops.exp`` and ``ops.gammaln``."""
        return ops_for(self.xp)

    def constant(self, values: object) -> Array:
        """Numbers as an array in the library, on the device and in the precision of the parameters."""
        return as_library(values, self.like, self.like.dtype)

    # -- targets -----------------------------------------------------------------------------

    @property
    def target_kind(self) -> str:
        """Name of the domain of targets: families with the same name check targets alike."""
        return self.target_domain.name

    @property
    def kind(self) -> str:
        """One of "classes", "counts", "numbers", "vectors", "quantiles", "draws", "atoms" and "objects".

        Batches of one kind can be judged by the same methods. "classes" are predicted by probabilities, with
        targets as indices; "numbers" and "vectors" by any other distribution. For :class:`wellcal.Samples` it
        is the parameter of that name.

        Examples
        --------
        >>> import wellcal as wc
        >>> wc.Bernoulli([0.2]).kind, wc.Poisson([2.0]).kind, wc.Samples([[0.0, 1.0]]).kind
        ('classes', 'counts', 'draws')
        """
        numbers = "vectors" if self.event_shape else "numbers"
        return _KINDS.get(self.target_kind, numbers)

    @property
    def parts(self) -> tuple[Predictions, ...]:
        """Components of a mixture; the batch itself for other families."""
        return (self,)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one target: () for scalars, (d,) for vectors."""
        return ()

    def check_targets(self, y: object, name: str = "y") -> Array:
        """Targets in the form that computations use, or an error naming the first bad row.

        Targets become a floating array ``(n,)`` or ``(n, d)``, in the library and on the device of the
        predictions, with values in their `target_domain`.
        """
        if self.case_columns is not None:
            coordinates_in_order(self.case_columns, y, name)
        y = self.align(y, name)
        if is_array(y) and namespace(y) is not self.xp:
            if is_traced(y):
                namespace(y, self.like)  # raises: values that are not known yet cannot be moved
            y = to_numpy(plain_array(y, name))
        array = real_array(y, name, ndim=(1 + len(self.event_shape),), like=self.like)
        check_cases(int(array.shape[0]), name, self)
        if tuple(array.shape[1:]) != self.event_shape:
            raise ValueError(
                f"{name} must have targets of shape {self.event_shape} as the predictions have, "
                f"found {tuple(array.shape[1:])}"
            )
        if self.target_domain is not real:
            self.target_domain.check(host_copy(array), name)
        return array

    def check_judged(self, targets: Array, earlier: Ties | None = None) -> Ties | None:
        """Reject targets, checked before, by which calibration cannot be judged: most families have none.

        `Quantiles` reject outcomes that fall on quantiles; scores have a use for these. Where cases come in
        parts, what is returned for one is `earlier` for the next, and all are judged together.
        """
        return None

    # -- arguments ---------------------------------------------------------------------------

    def argument(self, x: object, name: str, event_ndim: int | None = None) -> Array:
        """Argument of `log_prob`, `cdf` or `quantile`: a number, or an array that ends in the batch shape."""
        like = self.like
        xp = namespace(like)
        k = len(self.event_shape) if event_ndim is None else event_ndim
        if k and self.case_columns is not None:
            coordinates_in_order(self.case_columns, x, name)
        if self.case_index is not None and attribute(x, "ndim", 0) == 1 + k:
            x = self.align(x, name)
        given = numeric_array(x, name)
        # A number or list has no precision of its own: it takes that of the parameters.
        array = asarray(given, xp=xp, device=device_of(like), dtype=None if is_array(x) else like.dtype)
        if not xp.isdtype(array.dtype, "real floating"):
            array = xp.astype(array, like.dtype)
        wanted = (len(self), *self.event_shape[:k])
        if array.ndim == k == 0:
            return array
        if tuple(array.shape[array.ndim - 1 - k :]) != wanted:
            what = "be a number or end" if k == 0 else "end"
            raise ValueError(f"{name} must {what} in shape {wanted}, found shape {tuple(array.shape)}")
        return array


class Located(Predictions):
    """Families with locations, which are their means."""

    loc: Array

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one target: () or ``(d,)``."""
        return tuple(int(k) for k in self.loc.shape[1:])

    def mean(self) -> Array:
        """Means, ``(n,)`` or ``(n, d)``."""
        return self.loc


def _checked_index(index: Any, n: int) -> Array:
    """Return a list, integer array or mask as an array without negative entries."""
    if not is_array(index) and (not isinstance(index, Iterable) or isinstance(index, (str, bytes))):
        raise TypeError(
            f"predictions are indexed by numbers, a slice, a mask or a list, found {described(index)}"
        )
    index = plain_array(index, "index of predictions")
    if type(index) is np.ndarray and not index.size:
        index = index.astype(int)  # an empty list has no type
    xp = namespace(index)
    if index.ndim != 1:
        raise IndexError(
            f"index of {n} predictions must have one axis, found shape {tuple(index.shape)}; "
            "give a slice, a mask or a list"
        )
    if xp.isdtype(index.dtype, "bool"):
        check_same_length(index.shape[0], "mask", n, "predictions")
        return index
    if not xp.isdtype(index.dtype, "integral"):
        raise IndexError(
            f"index of {n} predictions must be whole numbers or a mask, found dtype {index.dtype}"
        )
    if not is_traced(index):  # JAX would return the last row for an index beyond it
        positions = to_numpy(index)
        for entry in np.flatnonzero((positions < -n) | (positions >= n))[:1]:
            _check_position(positions[entry], n, f", entry {entry} of the index,")
    return xp.where(index < 0, index + n, index)


def _check_position(index: Any, n: int, entry: str = "") -> None:
    if not -n <= index < n:
        raise IndexError(f"index {index}{entry} is outside of a batch of {n} predictions")


def check_cases(n: int, name: str, batch: Predictions) -> None:
    """Reject targets that are not as many as predictions."""
    if n != len(batch) == 1:
        raise ValueError(
            f"{name} and predictions must have the same length, found {n} and 1: the parameters are those of "
            "a single case; give them a row for each case"
        )
    check_same_length(n, name, len(batch), "predictions")


def nonempty(batch: Predictions) -> None:
    """Reject a batch without predictions."""
    if len(batch) == 0:
        name = (*batch.batch_fields, *batch.parameter_fields)[0]
        name = batch.parameter_fields.get(name, Parameter()).called or name
        raise ValueError(f"{type(batch).__name__} is empty: at least one row is needed in {name}")


def keeps_distribution(derived: type, base: type) -> bool:
    """True if a class derived from a family still has the distributions of that family.

    It does unless it defines a method that says otherwise. What a class knows because it is a family at all
    serves every family, and classes of other kinds are none of this function's business.
    """
    if base is Predictions or not issubclass(base, Predictions):
        return True
    for name in (*CAPABILITIES, "draw"):
        own = getattr(derived, name, None)  # one that is taken away says nothing new
        if own is not getattr(base, name, None) and own is not getattr(Predictions, name, None):
            return False
    return True


# -- the door of every measure and test ----------------------------------------------------------


def check_inputs(y: object, pred: object, name: str = "pred") -> tuple[Array, Predictions]:
    """Return targets in the form that computations use, and the predictions they belong to.

    Parameters
    ----------
    y
        Observed targets, truth first.
    pred
        Predictions, or anything that :func:`wellcal.as_predictions` understands.
    name
        Name of the predictions in errors.

    Returns
    -------
    targets
        As `check_targets` of the predictions returns them.
    predictions
        A batch of :class:`wellcal.Predictions`.

    Examples
    --------
    >>> import numpy as np
    >>> targets, predictions = check_inputs([0, 1], np.array([0.2, 0.7]))
    >>> predictions
    <Bernoulli: 2 predictions>
    """
    check_truth_first(y, name)
    try:
        if isinstance(pred, Predictions):
            predictions = pred
        else:
            from wellcal.predictions.adapters import converted_argument  # it needs all families
            from wellcal.predictions.input_hints import refuse_class_pairs

            refuse_class_pairs(y, pred, name)
            predictions = converted_argument(pred, name)
        nonempty(predictions)
        if type(y) is not np.ndarray:
            predictions = predictions.ordered_like(y) or predictions
        return predictions.check_targets(y), predictions
    except (TypeError, ValueError) as error:
        from wellcal.predictions.input_hints import raise_with_hint

        raise_with_hint(error, y, pred, name)
        raise


def check_truth_first(y: object, name: str = "pred") -> None:
    """Reject predictions in the place of observed targets, or several of them in a dictionary.

    Examples
    --------
    >>> check_truth_first({"first": [0.2, 0.7], "second": [0.1, 0.9]})
    Traceback (most recent call last):
    TypeError: y must be observed targets, found a dictionary; did you swap y and pred? the order is ...
    """
    if type(y) is np.ndarray:
        return
    one = (str, bytes, int, float, np.generic)
    given: Any = y
    several = isinstance(y, Mapping) and not all(isinstance(x, one) for x in given.values())
    if several or isinstance(given, Predictions):
        found = "a dictionary" if several else "predictions"
        raise TypeError(
            f"y must be observed targets, found {found}; did you swap y and {name}? the order is (y, "
            f"{name}), truth first"
        )
    refuse_elsewhere(given, "y")


def shape_of(x: object) -> tuple[int, ...]:
    """Return the shape of an array or a list; that of nothing useful where it cannot be read."""
    if isinstance(x, (str, bytes)):
        return ()
    try:
        return tuple(np.shape(cast("Any", x)))
    except Exception:  # what is wrong with it is said where it is checked
        return (0, 0)
