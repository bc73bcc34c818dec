"""Densities of a scalar target along a scalar feature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reproduction.tasks import FloatArray
from wellcal import Normal
from wellcal.displays import COLOURS, axes_or_new, style


@dataclass
class DensityDisplay:
    """A heat map of predicted densities.

    Parameters
    ----------
    x, y
        Grids of feature and target, ``(a,)`` and ``(b,)``.
    density
        Densities, ``(b, a)``.
    points
        Data to draw on top, ``(x, y)``, or None.
    title
        Above the axes.

    Attributes
    ----------
    ax_, figure_, image_
        Where it was drawn, after `plot`, and the image, for a colour bar.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> x, y = np.linspace(-1.0, 1.0, 5), np.linspace(-2.0, 2.0, 9)
    >>> display = DensityDisplay.from_model(lambda x: wc.Normal(x, np.ones_like(x)), x, y)
    >>> display.density.shape
    (9, 5)
    """

    x: FloatArray
    y: FloatArray
    density: FloatArray
    points: tuple[FloatArray, FloatArray] | None = None
    title: str = ""
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)
    image_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_model(
        cls,
        predict: Callable[[FloatArray], Normal],
        x: FloatArray,
        y: FloatArray,
        *,
        points: tuple[FloatArray, FloatArray] | None = None,
        title: str = "",
    ) -> DensityDisplay:
        """Evaluate the densities that `predict` gives for the features `x`; nothing is drawn yet."""
        grid = np.broadcast_to(y[:, None], (len(y), len(x)))
        density = np.exp(predict(x).log_prob(grid))
        return cls(x, y, density, points, title)

    def plot(self, ax: Any = None, *, largest: float | None = None) -> DensityDisplay:
        """Draw the densities; those of `largest` and above have the brightest colour."""
        with style():
            self.ax_ = axes_or_new(ax)
            self.figure_ = self.ax_.figure
            extent = (float(self.x[0]), float(self.x[-1]), float(self.y[0]), float(self.y[-1]))
            self.image_ = self.ax_.imshow(
                self.density,
                origin="lower",
                extent=extent,
                aspect="auto",
                vmin=0.0,
                vmax=largest,
            )
            if self.points is not None:
                self.ax_.scatter(
                    *self.points, s=14, color=COLOURS["orange"], edgecolors="white", linewidths=0.5, zorder=3
                )
            self.ax_.set(xlabel="X", ylabel="Y", title=self.title, xlim=extent[:2], ylim=extent[2:])
        return self
