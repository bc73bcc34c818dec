"""What there is to know of predicted distributions, and how to ask whether a batch knows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from wellcal._arrays.checks import must_be_levels, numeric_array, one_of, whole_number
from wellcal._arrays.chunks import budget, check_size
from wellcal._arrays.namespaces import Array, NDArray, attribute, from_numpy, namespace
from wellcal._arrays.seeds import fresh_generator

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
        levels = self.constant(numeric_array(u, name)) if isinstance(u, (list, tuple)) else u
        shape = attribute(levels, "shape", ())
        n = len(self)
        if not isinstance(shape, tuple) or self.event_shape != ():
            return quantile(self, u)
        must_be_levels(numeric_array(levels, name), name)
        if not shape:
            return quantile(self, u)
        axes = len(cast("Any", shape))
        if axes > 1 and (shape[-1] == n or shape[-1] != 1):
            return quantile(self, u)  # which says what is wrong with levels that do not fit
        array = numeric_array(levels, name)
        count = int(array.shape[0])
        if axes == 1 and n * count > budget.most:
            raise ValueError(
                f"{name} has {count:,} levels, which would make {n:,} x {count:,} quantiles, a row "
                f"for each prediction; for one level for each of them give a first axis, {name}[None, :]"
            )
        xp = namespace(array)
        column = array[:, None] if axes == 1 else array
        found = quantile(self, xp.broadcast_to(column, (*column.shape[:-1], n)))
        return namespace(found).permute_dims(found, (1, 0)) if axes == 1 else found

    return shared


class Distributions:
    """A batch as distributions: which methods it has, draws from it, and its spread.

    Everything here follows from what a family defines; :class:`wellcal.Predictions` is the batch itself.
    """

    if TYPE_CHECKING:
        # What a batch is.
        @property
        def event_shape(self) -> tuple[int, ...]: ...
        @property
        def like(self) -> Array: ...
        def __len__(self) -> int: ...
        def constant(self, values: object) -> Array: ...

        # Families define those that they have: ask `supports` before calling one.
        def mean(self) -> Array: ...
        def variance(self) -> Array: ...
        def log_prob(self, y: Array) -> Array: ...
        def cdf(self, y: Array) -> Array: ...
        def quantile(self, u: Array) -> Array: ...
        def upper_quantile(self, q: Array) -> Array: ...
        def class_probs(self) -> Array: ...

    def supports(self, what: str) -> bool:
        """Whether these predictions have a method: "cdf", "quantile", "log_prob", "sample" and so on.

        Examples
        --------
        >>> import numpy as np, wellcal as wc
        >>> wc.Samples(np.zeros((5, 2))).supports("cdf"), wc.Samples(np.zeros((5, 2, 3))).supports("cdf")
        (True, False)
        """
        return self.missing(what) is None

    def missing(self, what: str) -> str | None:
        """Why these predictions lack a method, as a sentence; None where they have it.

        Families override it where a method exists for some batches only.
        """
        one_of(what, "method of predictions", CAPABILITIES)
        name, cls = type(self).__name__, type(self)
        if what == "sample":
            return None if cls.draw is not Distributions.draw else f"{name} cannot be sampled"
        if what == "interquartile_range" and cls.interquartile_range is Distributions.interquartile_range:
            usable = self.event_shape == () and self.supports("quantile")
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
        return self._out(drawn if size is not None else drawn[0])

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        """NumPy draws of shape ``(size, n) + event_shape``."""
        raise TypeError(f"{type(self).__name__} cannot be sampled")

    def _out(self, drawn: NDArray) -> Array:
        like = self.like
        if drawn.dtype.kind not in "biuf":
            return drawn  # only NumPy holds strings and objects
        return self.constant(drawn) if drawn.dtype.kind == "f" else from_numpy(drawn, like)

    def interquartile_range(self) -> Array:
        """Distance between the quartiles: ``(n,)``, or ``(n, d)`` by coordinate for vectors.

        Not differentiated in general: length scales, which are made from it, are constants.
        """
        self.require("interquartile_range")
        return self.quantile(0.75) - self.quantile(0.25)
