"""Predictions by quantiles at common levels."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.checks import check_levels, check_rows, flag, one_of, real_array
from wellcal._arrays.domains import Domain
from wellcal._arrays.namespaces import Array, NDArray, is_traced, namespace, to_numpy
from wellcal._arrays.special import draw_index, gather, integer_dtype
from wellcal.predictions.base import CAPABILITIES, Predictions, nonempty
from wellcal.predictions.fields import family, parameter
from wellcal.predictions.quantile_ties import Ties, refuse_ties


@family
class Quantiles(Predictions):
    """Predictions given by their quantiles at common levels.

    Such a prediction is known only up to the L + 1 bins between its quantiles: bin b holds the targets
    with ``values[b - 1] < y <= values[b]`` and has probability ``levels[b] - levels[b - 1]``, where the
    levels are continued by 0 and 1. What `cdf`, `quantile` and `sample` add inside of a bin is a
    representative, a uniform distribution, and no statement of the prediction. Outcomes must not fall on
    quantiles, as counts do: where calibration is judged, more than a few that do are refused.

    Parameters
    ----------
    levels
        Levels, ``(L,)``, strictly increasing and strictly between 0 and 1.
    values
        Quantiles at the levels, ``(n, L)``, non-decreasing in each row. Where two coincide the bin
        between them is empty, and a target equal to both falls into the bin below.
    sort
        Whether to bring `levels` into increasing order, with their columns, and then the values of each row:
        quantiles that were fitted one by one may cross.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Quantiles(levels=[0.1, 0.5, 0.9], values=np.array([[-1.0, 0.0, 3.0]]))
    >>> pred.bin_probs()
    array([0.1, 0.4, 0.4, 0.1])
    >>> pred.bins([0.5])
    array([2])
    >>> Quantiles(levels=[0.9, 0.5], values=np.array([[2.0, 1.0], [3.0, 3.5]]), sort=True).values
    array([[1. , 2. ],
           [3. , 3.5]])
    """

    levels: Any
    values: Array = parameter(ndim=2, usual=("q*",), named="levels")
    sort: InitVar[bool] = False

    target_domain: ClassVar[Domain] = Domain("bins")

    def __post_init__(self, sort: bool = False) -> None:
        levels = check_levels(self.levels, open_interval=True)
        values = real_array(self.values, "values", ndim=(2,))
        if values.shape[1] != len(levels):
            raise ValueError(
                f"values must have one column for each of the {len(levels)} levels, found shape "
                f"{tuple(values.shape)}" + ("; transpose?" if values.shape[0] == len(levels) else "")
            )
        if flag(sort, "sort"):  # a row in increasing order is the same, whichever order its columns had
            levels, values = np.sort(levels), namespace(values).sort(values, axis=1)
        again = np.sort(levels)[:-1][np.diff(np.sort(levels)) == 0]
        if len(again):
            raise ValueError(
                f"levels must differ, found {again[0]:g} twice; drop one of them, with its column of values"
            )
        if not np.all(np.diff(levels) > 0):
            raise ValueError(
                f"levels must be strictly increasing, found {levels}; sort them with their values, or give "
                "sort=True"
            )
        self.store(levels=levels, values=values)
        check_rows(
            "values",
            values,
            self.xp.all(values[:, 1:] >= values[:, :-1], axis=1),
            "cross (are not in increasing order)",
            "give sort=True to sort each row",
        )
        nonempty(self)

    def check_judged(self, targets: Array, earlier: Ties | None = None) -> Ties | None:
        """Reject targets where more than a few of them fall on their own quantiles."""
        if is_traced(targets) or is_traced(self.values):
            return earlier
        return refuse_ties(targets, self.levels, self.values, earlier)

    # -- bins --------------------------------------------------------------------------------

    def bin_probs(self) -> NDArray:
        """Probabilities of the bins, ``(L + 1,)``, the same for all predictions, as a NumPy array."""
        return np.diff(self.levels, prepend=0.0, append=1.0)

    def bins(self, y: Array) -> Array:
        """Bins 0 .. L into which targets `y` fall, ``(n,)``."""
        xp = self.xp
        above = self.argument(y, "y")[..., None] > self.values
        return xp.sum(xp.astype(above, integer_dtype(xp)), axis=-1)

    # -- representatives ---------------------------------------------------------------------

    def cdf(self, y: Array) -> Array:
        """Distribution function at `y`, interpolated linearly between the quantiles.

        Outside of them it is not known, and the lowest or highest level is returned.
        """
        xp, y = self.xp, self.argument(y, "y")
        below = xp.sum(xp.astype(self.values <= y[..., None], integer_dtype(xp)), axis=-1)
        return self._between(y, below, self.values, self._level_rows(), 0.0)

    def quantile(self, u: Array) -> Array:
        """Quantiles at levels `u` between the lowest and highest of `levels`, interpolated linearly."""
        xp, u = self.xp, self.argument(u, "u")
        first, last = float(self.levels[0]), float(self.levels[-1])
        rounding = 4.0 * float(xp.finfo(u.dtype).eps)
        if not is_traced(u) and not bool(xp.all((u >= first - rounding) & (u <= last + rounding))):
            raise ValueError(
                f"u must lie between the lowest and highest level, {first:g} and {last:g}: nothing is known "
                "of these predictions beyond; predict quantiles at more levels"
            )
        below = xp.sum(xp.astype(self.constant(self.levels) < u[..., None], integer_dtype(xp)), axis=-1)
        below = xp.broadcast_to(below, np.broadcast_shapes(tuple(below.shape), (len(self),)))
        return self._between(u, below, self._level_rows(), self.values, 1.0)

    def _level_rows(self) -> Array:
        return self.xp.broadcast_to(self.constant(self.levels), tuple(self.values.shape))

    def _between(self, x: Array, below: Array, table: Array, to: Array, if_equal: float) -> Array:
        """Interpolate `x`, with so many entries of its row of `table` below, linearly in rows of `to`."""
        xp, last = self.xp, len(self.levels) - 1
        left, right = xp.clip(below - 1, 0, last), xp.clip(below, 0, last)
        low, high = gather(table, left), gather(table, right)
        one, inside = xp.ones_like(high), high > low
        share = xp.where(inside, (x - low) / xp.where(inside, high - low, one), if_equal * one)
        share = xp.clip(share, 0.0, 1.0)
        return gather(to, left) * (1.0 - share) + gather(to, right) * share

    def interquartile_range(self) -> Array:
        """Interquartile ranges, ``(n,)``; where levels do not reach the quartiles, in proportion."""
        low, high = self._middle()
        self.require("interquartile_range")
        return (self.quantile(high) - self.quantile(low)) * (0.5 / (high - low))

    def _middle(self) -> tuple[float, float]:
        """The part of the levels between the quartiles."""
        return max(0.25, float(self.levels[0])), min(0.75, float(self.levels[-1]))

    def missing(self, what: str) -> str | None:
        """Return why these predictions lack a method: their levels may not reach the middle."""
        one_of(what, "method of predictions", CAPABILITIES)
        low, high = self._middle()
        if what == "interquartile_range" and low >= high:
            return "these Quantiles have no interquartile range: no two levels span the middle half"
        return super().missing(what)

    def bin_edges(self) -> NDArray:
        """Ends of the bins, ``(n, L + 2)``; outer bins, which have none, are as wide as their neighbours."""
        values = to_numpy(self.values).astype(np.float64)
        spread = values[:, -1:] - values[:, :1]
        spread = np.where(spread > 0, spread, 1.0)
        widths = np.diff(values, axis=1) if values.shape[1] > 1 else spread
        widths = np.where(widths > 0, widths, spread)
        return np.hstack([values[:, :1] - widths[:, :1], values, values[:, -1:] + widths[:, -1:]])

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        edges = self.bin_edges()
        rows = np.arange(len(self))
        chosen = draw_index(np.broadcast_to(self.bin_probs(), (len(self), edges.shape[1] - 1)), rng, size)
        low, high = edges[rows, chosen], edges[rows, chosen + 1]
        return np.minimum(high - rng.random((size, len(self))) * (high - low), high)
