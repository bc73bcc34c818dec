"""Proportions with their intervals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellcal.displays import COLOURS, CYCLE, MARKERS, axes_or_new, style


@dataclass
class ProportionsDisplay:
    """Proportions in rows, one series for each group, with Wilson's 95 % intervals.

    Parameters
    ----------
    rows
        Names of the rows, from top to bottom.
    groups
        For each group its counts, one for each row.
    total
        Number of trials behind each count.
    xlabel
        Text below the axis.
    reference
        Where a vertical dashed line is drawn, or None.

    Attributes
    ----------
    ax_, figure_
        Where they were drawn, after `plot`.

    Examples
    --------
    >>> display = ProportionsDisplay(["a", "b"], {"first": [3, 5]}, 10).plot()
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['a', 'b']
    """

    rows: list[str]
    groups: dict[str, list[int]]
    total: int
    xlabel: str = "proportion"
    reference: float | None = None
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def plot(self, ax: Any = None) -> ProportionsDisplay:
        """Draw the proportions."""
        with style():
            self.ax_ = axes_or_new(ax, (5.5, 0.8 + 0.6 * len(self.rows)))
            self.figure_ = self.ax_.figure
            if self.reference is not None:
                self.ax_.axvline(self.reference, color=COLOURS["black"], linestyle="--", linewidth=1.2)
            height = np.arange(len(self.rows), dtype=float)
            shift = 0.16
            for index, (name, counts) in enumerate(self.groups.items()):
                rates = np.asarray(counts) / self.total
                low, high = zip(*(_interval(count, self.total) for count in counts), strict=True)
                at = height + shift * (index - 0.5 * (len(self.groups) - 1))
                self.ax_.errorbar(
                    rates, at, xerr=np.maximum(0.0, [rates - low, high - rates]), linestyle="", capsize=3,
                    marker=MARKERS[index], color=CYCLE[index], label=name,
                )  # fmt: skip
            self.ax_.set_yticks(height, self.rows)
            self.ax_.set(xlabel=self.xlabel, xlim=(-0.02, 1.02), ylim=(len(self.rows) - 0.5, -0.5))
        return self


def _interval(count: int, total: int) -> tuple[float, float]:
    from scipy import stats  # which takes longer to import than all the rest

    found = stats.binomtest(int(count), int(total)).proportion_ci(method="wilson")
    return float(found.low), float(found.high)
