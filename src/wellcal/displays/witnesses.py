"""Where predictions are wrong: groups of cases, what was expected of them and what happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.checks import described, whole_number
from wellcal._arrays.round_numbers import how_many
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.axes import WIDE, Canvas
from wellcal.displays.base import Display, rows_off
from wellcal.witnesses import Witness

QUESTION = "Where is the model wrong?"


@dataclass(repr=False)
class WitnessDisplay(Display):
    """Groups of cases, and how far what happened is from what was expected.

    Parameters
    ----------
    rows
        What each group is, in words, the most striking first.
    statistics
        How far it is off, in standard deviations under calibration.
    pvalues
        Adjusted for all that was looked at.
    sizes
        Numbers of cases.
    alpha
        Error rate: groups with a p-value of at most that are filled.
    n_samples
        Number of all cases.
    looked_at
        Which groups were looked at, where these are not all kinds; or None.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 60)
    >>> display = WitnessDisplay.from_result(wc.witness(mu + 0.8, wc.Normal(mu, np.ones(60)), rng=0))
    >>> display.statistics[0] > 3.0
    True
    """

    rows: tuple[str, ...]
    statistics: tuple[float, ...]
    pvalues: tuple[float, ...]
    sizes: tuple[int, ...]
    alpha: float = 0.05
    n_samples: int = 0
    looked_at: str | None = None

    @classmethod
    def from_result(cls, result: Any, *, most: int = 8, ax: Any = None) -> WitnessDisplay:
        """Draw what :func:`wellcal.witness` returned: `most` groups and segments at most."""
        if not isinstance(result, Witness):
            raise TypeError(f"result must be what witness returns, found {described(result)}")
        groups = list({group.statement: group for group in (*result.groups, *result.segments)}.values())
        if not groups:
            raise ValueError("result has no groups: none were looked at")
        groups = groups[: whole_number(most, "most", least=1)]
        return cls(
            tuple(group.statement for group in groups),
            tuple(group.statistic for group in groups),
            tuple(group.pvalue for group in groups),
            tuple(group.n_samples for group in groups),
            result.alpha,
            result.provenance.get("seen", result.n_samples),
            result.provenance.get("groups"),
        ).plot(ax)

    @property
    def finding(self) -> str:
        """How many groups do not follow their predictions, in a sentence."""
        found = sum(pvalue <= self.alpha for pvalue in self.pvalues)
        if not found and self.looked_at is not None:
            return "Nothing that was looked at is further from its predictions than chance allows."
        return rows_off(found, len(self.rows), "group")

    def plot(self, ax: Any = None) -> WitnessDisplay:
        """Draw one row for each group."""
        with style():
            ax = axes_or_new(ax, (WIDE[0], 1.35 + 0.42 * len(self.rows)))
            canvas = Canvas(ax)
            look, theme = canvas.look, canvas.theme
            values = np.asarray(self.statistics, dtype=np.float64)
            shown = np.asarray(self.pvalues) <= self.alpha
            ax.axvline(0.0, color=theme.ideal, linewidth=0.8, zorder=1.2)
            nothing = np.zeros_like(values)
            handle = canvas.rows(list(self.rows), look.colour, values, nothing, values, shown)
            finite = np.abs(values[np.isfinite(values)])
            reach = 1.15 * max(3.0, float(finite.max()) if len(finite) else 3.0)
            left, right = (-reach if values.min() < 0 else -0.5), (reach if values.max() > 0 else 0.5)
            ax.set_xlim(left, right)
            ax.set_xlabel("observed less expected, in standard deviations", color=theme.ink)
            canvas.add(None, handle)
            canvas.head(self.finding)
            canvas.note(
                f"{how_many(self.n_samples)}; filled: shown at an error rate of {self.alpha:g} over all "
                f"groups that were looked at{'' if self.looked_at is None else f': {self.looked_at}'}."
            )
        self._drawn(ax)
        return self
