"""A map of the witness: which outcomes come more often than promised, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.checks import described
from wellcal._arrays.namespaces import NDArray, stop_gradient, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.axes import WIDE, Canvas
from wellcal.displays.base import Display
from wellcal.witnesses import Witness

QUESTION = "Which outcomes come more often than the model said, and where?"
_LARGEST, _SMALLEST = 90.0, 6.0  # areas of markers, in square points


@dataclass(repr=False)
class WitnessMapDisplay(Display):
    """Outcomes that come more, or less, often than the model said, by what it predicted.

    Parameters
    ----------
    predicted
        Predicted means of the locations, ``(J,)``.
    targets
        Outcomes there, ``(J,)``.
    values
        The witness there, ``(J,)``: positive where outcomes are seen more often than promised.
    outside
        Whether it is outside of the band of calibrated models, which holds all of them at once.
    alpha
        Error rate of the band.
    n_samples
        Number of cases.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 60)
    >>> found = wc.witness(mu + 0.8, wc.Normal(mu, np.ones(60)), rng=0)
    >>> display = WitnessMapDisplay.from_result(found)
    >>> display.ax_.get_xlabel(), len(display.values) == len(found.values)
    ('predicted mean', True)
    """

    predicted: NDArray
    targets: NDArray
    values: NDArray
    outside: NDArray
    alpha: float = 0.05
    n_samples: int = 0

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None) -> WitnessMapDisplay:
        """Draw what :func:`wellcal.witness` returned for predictions of numbers or counts."""
        if not isinstance(result, Witness):
            raise TypeError(f"result must be what witness returns, found {described(result)}")
        predictions, targets = result.locations
        if (
            predictions.target_kind == "labels"
            or predictions.event_shape != ()
            or not predictions.supports("mean")
        ):
            raise TypeError(
                f"result: a map is for predictions of numbers with a mean, found "
                f"{type(predictions).__name__}; WitnessDisplay shows groups of all kinds of cases"
            )
        arrays = (predictions.mean(), targets, result.values)
        x, y, values = (np.asarray(to_numpy(stop_gradient(part)), dtype=np.float64) for part in arrays)
        outside = np.asarray(to_numpy(result.pvalues)) <= result.alpha
        return cls(x, y, values, outside, result.alpha, result.n_samples).plot(ax)

    @property
    def finding(self) -> str:
        """At how many places outcomes do not follow the predictions, in a sentence."""
        found, places = int(self.outside.sum()), len(self.values)
        if not found:
            return "Nowhere do outcomes come more, or less, often than chance allows."
        return f"Outcomes come more, or less, often than the model said at {found} of {places} places."

    def plot(self, ax: Any = None) -> WitnessMapDisplay:
        """Draw triangles that point up where outcomes come more often than promised, and down where less."""
        with style():
            ax = axes_or_new(ax, WIDE)
            canvas = Canvas(ax)
            theme, largest = canvas.theme, float(np.abs(self.values).max()) or 1.0
            ends = [float(self.predicted.min()), float(self.predicted.max())]
            canvas.ideal(ends, ends)
            for index, (words, marker, chosen) in enumerate(
                (("more often", "^", self.values >= 0), ("less often", "v", self.values < 0))
            ):
                colour = canvas.look_of(3 * index).colour  # blue and vermilion
                for filled in (True, False):
                    rows = chosen & (self.outside == filled)
                    sizes = _SMALLEST + (_LARGEST - _SMALLEST) * np.abs(self.values[rows]) / largest
                    face = colour if filled else "none"
                    points: dict[str, Any] = {"marker": marker, "edgecolors": colour, "facecolors": face}
                    ax.scatter(
                        self.predicted[rows],
                        self.targets[rows],
                        s=sizes,
                        **points,
                        linewidths=0.8,
                        zorder=2.5,
                    )
                (handle,) = ax.plot([], [], color=colour, marker=marker, linestyle="none")
                canvas.add(words, handle, None, (self.predicted[chosen], self.targets[chosen]))
            ax.set_xlabel("predicted mean", color=theme.ink)
            ax.set_ylabel("outcome", color=theme.ink)
            found = int(self.outside.sum())
            canvas.head(self.finding)
            canvas.note(
                f"{how_many(self.n_samples)}; size: how much; filled: outside of the band of calibrated "
                f"models at an error rate of {self.alpha:g}, {found} of {len(self.values)} places. Line: "
                "outcome as predicted."
            )
            canvas.name_models()
        self._drawn(ax)
        return self
