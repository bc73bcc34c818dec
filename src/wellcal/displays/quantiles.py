"""Quantile calibration: how often targets fall below predicted quantiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellcal._arrays.equality import ByValue
from wellcal._arrays.namespaces import Array, to_numpy
from wellcal.displays._style import COLOURS, axes_or_new, style
from wellcal.measures.quantiles import quantile_calibration
from wellcal.predictions import Predictions


@dataclass
class QuantileCalibrationDisplay(ByValue):
    """Proportion of targets below predicted quantiles against the level of the quantiles.

    Parameters
    ----------
    levels, frequencies
        As in the result of :func:`wellcal.quantile_calibration`.
    name
        Label of the curve.

    Attributes
    ----------
    ax_, figure_
        Where the curve was drawn, after `plot`.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> y = np.random.default_rng(0).normal(size=50)
    >>> display = QuantileCalibrationDisplay.from_predictions(y, wc.Normal(np.zeros(50), 1.0))
    >>> display.ax_.get_xlabel()
    'quantile level'
    """

    levels: Array
    frequencies: Array
    name: str = "model"
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_predictions(
        cls, y: object, pred: Predictions | object, *, name: str = "model", ax: Any = None
    ) -> QuantileCalibrationDisplay:
        """Compute the curve from targets and predictions, and draw it."""
        found = quantile_calibration(y, pred, levels=np.linspace(0.0, 1.0, 1001))
        return cls(found.levels, found.frequencies, name).plot(ax)

    def plot(self, ax: Any = None, **options: Any) -> QuantileCalibrationDisplay:
        """Draw the curve and the diagonal; `options` go to ``Axes.step``."""
        with style():
            self.ax_ = axes_or_new(ax, (4.0, 4.0))
            self.figure_ = self.ax_.figure
            self.ax_.plot(
                [0, 1], [0, 1], color=COLOURS["green"], linestyle="--", label="calibrated quantiles"
            )
            chosen = {"color": COLOURS["orange"], "label": self.name, "where": "post", **options}
            self.ax_.step(to_numpy(self.levels), to_numpy(self.frequencies), **chosen)
            self.ax_.set(
                xlabel="quantile level",
                ylabel="cumulative probability",
                xlim=(0, 1),
                ylim=(0, 1),
                aspect="equal",
            )
            self.ax_.set_xticks(np.linspace(0, 1, 5))
            self.ax_.set_yticks(np.linspace(0, 1, 5))
            self.ax_.legend(loc="upper left")
        return self
