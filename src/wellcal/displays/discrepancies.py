"""Local discrepancies against what was predicted."""

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
from wellcal.measures._local_discrepancy import LocalDiscrepancy

QUESTION = "For which predictions do outcomes differ from them most?"


@dataclass(repr=False)
class DiscrepancyDisplay(Display):
    """How far outcomes are from predictions, by what was predicted.

    Parameters
    ----------
    predicted
        Predicted means, for classes the largest probabilities, ``(m,)``.
    values
        Local discrepancies there, ``(m,)``.
    what
        What `predicted` is, in words.
    n_samples
        Number of cases.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 60)
    >>> found = wc.local_discrepancy(mu + (mu > 0), wc.Normal(mu, np.ones(60)))
    >>> display = DiscrepancyDisplay.from_result(found)
    >>> bool(display.values[-1] > display.values[0]), display.what
    (True, 'predicted mean')
    """

    predicted: NDArray
    values: NDArray
    what: str = "predicted mean"
    n_samples: int = 0

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None) -> DiscrepancyDisplay:
        """Draw what :func:`wellcal.local_discrepancy` returned for predictions of classes or numbers."""
        if not isinstance(result, LocalDiscrepancy):
            raise TypeError(f"result must be what local_discrepancy returns, found {described(result)}")
        at: Any = result.locations
        if not shown_against(at):
            raise TypeError(
                f"result: the figure is for predictions of classes, or of numbers with a mean, found "
                f"{type(at).__name__}; values and locations have all of it"
            )
        classes = at.kind == "classes"
        found = at.class_probs().max(axis=1) if classes else at.mean()
        x, values = (
            np.asarray(to_numpy(stop_gradient(part)), dtype=np.float64) for part in (found, result.values)
        )
        what = "largest predicted probability" if classes else "predicted mean"
        return cls(x, values, what, result.n_samples).plot(ax)

    @property
    def finding(self) -> str:
        """Where the discrepancy is largest, in a sentence."""
        k = int(np.argmax(self.values))
        return (
            f"Outcomes differ most from predictions where the {self.what} is about {self.predicted[k]:.3g}."
        )

    def plot(self, ax: Any = None) -> DiscrepancyDisplay:
        """Draw one point for each prediction."""
        with style():
            ax = axes_or_new(ax, WIDE)
            canvas = Canvas(ax)
            faint = float(np.clip(150.0 / len(self.values), 0.2, 1.0))
            points = {**canvas.look.points, "markersize": 4.0, "alpha": faint}
            (handle,) = ax.plot(self.predicted, self.values, **points, zorder=2.5)
            ax.set_ylim(0.0, 1.08 * (float(self.values.max()) or 1.0))
            ax.set_xlabel(self.what, color=canvas.theme.ink)
            ax.set_ylabel("local discrepancy", color=canvas.theme.ink)
            canvas.add(None, handle)
            canvas.head(self.finding)
            canvas.note(
                f"{how_many(self.n_samples)}; how far outcomes of similar predictions are from them. Chance "
                "alone makes it larger than zero, most where there are few."
            )
        self._drawn(ax)
        return self


def shown_against(predictions: Any) -> bool:
    """Whether predictions have one number each that values can be drawn against."""
    if predictions.kind == "classes":
        return True
    return bool(predictions.event_shape == () and predictions.supports("mean"))
