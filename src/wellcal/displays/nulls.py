"""The statistic of a test among those of calibrated models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.seeds import DEFAULT_SEED
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.axes import WIDE, Canvas
from wellcal.displays.base import Display, checked_result
from wellcal.displays.percentages import percent
from wellcal.hypotests import calibration_test
from wellcal.hypotests.method import METHODS
from wellcal.hypotests.pvalues import EVIDENCE, MOST_EVIDENCE
from wellcal.hypotests.resampling.targets import users_form
from wellcal.hypotests.result import TestResult

_STEP = 0.17  # between the words of models, as a share of the axes
_FAR = 0.8  # widths of the null to either side within which a statistic is drawn where it is
_DRAWN = 999  # draws of a null that was not kept, at most
_MOST_BARS = 400  # beyond those of most draws
_MANY = 200  # draws, from which a few that are far away are not drawn

QUESTION = "Could a calibrated model have done this?"

_DISTANCE = "how far outcomes are from their predictions"
WORDS = {
    "n SKCE_u": _DISTANCE,
    "n SKCE_b": _DISTANCE,
    "SKCE_B": _DISTANCE,
    "n UCME^2": _DISTANCE,
    EVIDENCE: "strongest evidence of any part of the test",
}
"""What statistics are, in words, by their labels; others are called as they are."""


@dataclass(repr=False)
class NullDisplay(Display):
    """The statistic of a test, and what it would have been for calibrated models.

    Parameters
    ----------
    null
        Statistics of targets that were drawn from the predictions.
    statistic
        That of the observed targets.
    statistic_label
        What it is.
    verdict
        What the test said, for the title.
    name
        Name of the model.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 50)
    >>> found = wc.calibration_test(mu + 0.9, wc.Normal(mu, 1.0), method="exact", keep_null=True, rng=0)
    >>> display = NullDisplay.from_result(found)
    >>> bool(np.all(display.null < display.statistic))
    True
    """

    null: NDArray
    statistic: float
    statistic_label: str = "statistic"
    verdict: str | None = None
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        y: object,
        pred: object,
        *,
        name: str | None = None,
        ax: Any = None,
        rng: int | np.random.Generator | None = None,
        **options: Any,
    ) -> NullDisplay:
        """Run a test, keep what its statistic would have been for calibrated models, and draw both.

        Parameters
        ----------
        y, pred
            Targets and predictions.
        name, ax, rng
            As for all displays: see :mod:`wellcal.displays`.
        options
            For :func:`wellcal.calibration_test`, such as ``method="exact"``.
        """
        options["keep_null"] = True
        found = calibration_test(y, pred, rng=rng, **options)
        return cls.from_result(found, name=name, ax=ax)

    @classmethod
    def from_result(cls, result: Any, *, name: str | None = None, ax: Any = None) -> NullDisplay:
        """Draw what :func:`wellcal.calibration_test` returned.

        A result that was made without ``keep_null=True`` is tested again, if it remembers its cases.
        """
        found = checked_result(result)
        kept = with_null(found)
        null = np.asarray(kept.null, dtype=np.float64)
        return cls(null, kept.statistic, found.statistic_label, found.verdict, name).plot(ax)

    @property
    def finding(self) -> str:
        """How many calibrated models are as far out, in a sentence."""
        beyond = int(np.sum(self.null >= self.statistic))
        return f"{beyond:,} of {len(self.null):,} calibrated models are as far out as this one."

    def plot(self, ax: Any = None) -> NullDisplay:
        """Draw a histogram of the null, and a line at the statistic."""
        with style():
            ax = axes_or_new(ax, WIDE)
            canvas = Canvas(ax)
            look, theme = canvas.look, canvas.theme
            # Logarithms of p-values that are no number any more have no place, of draws as of the model.
            placed = self.null[np.abs(self.null) < self._most]
            finite = placed if len(placed) else self.null[np.isfinite(self.null)]
            # A few draws far away would press all others into a corner.
            ends = (
                np.quantile(finite, [0.002, 0.998]) if len(finite) > _MANY else (finite.min(), finite.max())
            )
            low, high = float(ends[0]), float(ends[1])
            reach = _FAR * ((high - low) or 1.0)
            far = abs(self.statistic) >= self._most or not low - reach <= self.statistic <= high + reach
            # A statistic far away, too: then an arrow leads there.
            right_of = self.statistic > high
            shown = (high + 0.15 * reach if right_of else low - 0.15 * reach) if far else self.statistic
            low, high = min(low, shown), max(high, shown)
            at: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "zorder": 3}
            colour = theme.in_words(look.colour) if theme.paper == "#ffffff" else theme.ink
            room = 0.06 * (high - low)
            left, right_end = low - room, high + room
            if not canvas.first:  # what is there stays in sight
                left, right_end = min(left, ax.get_xlim()[0]), max(right_end, ax.get_xlim()[1])
            ax.set_xlim(left, right_end)
            # On a wider axis there is room for more draws of the models before this one, too.
            nulls: list[_Draws] = canvas.shown.parts.setdefault("nulls", [])
            nulls.append(_Draws(finite, float(ends[0]), float(ends[1]), len(self.null)))
            for artist in canvas.shown.parts.pop("bars", []):
                artist.remove()
            bars = [one.bars(left, right_end) for one in nulls]
            canvas.shown.parts["bars"] = [
                ax.stairs(shares, edges, fill=True, color=theme.band, zorder=1.0) for shares, edges in bars
            ]
            drawn, edges = bars[-1]
            most_high = 1.25 * max(float(np.nanmax(shares)) for shares, _ in bars)
            ax.set_ylim(0.0, most_high)
            ax.set_yticks([tick for tick in ax.get_yticks() if 0.0 <= tick <= min(1.0, most_high)])  # shares
            below = _STEP * len(canvas.shown.names)  # words of several models stand below each other
            if far:
                (handle,) = ax.plot([], [], **look.line)
                ax.annotate(
                    "",
                    (1.0 if right_of else 0.0, 0.85 - below),
                    xycoords="axes fraction",
                    xytext=(-70.0 if right_of else 70.0, 0.0),
                    textcoords="offset points",
                    arrowprops={"arrowstyle": "->", "color": look.colour, "linewidth": 1.6},
                )
            else:
                (handle,) = ax.plot([shown] * 2, [0.0, 0.97], **look.line, **at)
            right = (far and not right_of) or (not far and shown < 0.5 * (low + high))
            edge = (1.0 if right_of else 0.0) if far else shown
            ax.annotate(
                self._called(far, canvas.first),
                (edge, 0.96 - below),
                xycoords=("axes fraction" if far else "data", "axes fraction"),
                xytext=(5.0 if right else -5.0, 0.0),
                textcoords="offset points",
                ha="left" if right else "right",
                va="top",
                fontsize=9.0,
                color=colour,
            )
            middle = 0.5 * (edges[:-1] + edges[1:])
            upto = np.nancumsum(drawn)
            bar = int(np.searchsorted(upto, 0.7 * float(upto[-1])))
            top = float(drawn[bar])
            start, wide = float(middle[bar]) + 0.06 * (high - low), 0.3 * (high - low)
            if not far and start - 0.06 * (high - low) < shown < start + wide:  # beyond the line of the model
                start = shown + 0.03 * (high - low)
            height = top + 0.18 * float(np.nanmax(drawn))
            if far and right_of:  # the arrow and its words stand above
                height = min(height, 0.75 * 1.25 * float(np.nanmax(drawn)))
            to = (start, height)
            canvas.label("calibrated models", (float(middle[bar]), top), to, ha="left")
            canvas.add(self.name, handle)
            canvas.say(self.name, self.statement)
            words = WORDS.get(self.statistic_label)
            ax.set_xlabel(f"{words}  (far: to the right)" if words else self.statistic_label, color=theme.ink)
            ax.set_ylabel("share of calibrated models", color=theme.ink)
            ax.yaxis.set_major_formatter(percent)
            canvas.title()
            named = f"{self.name}: " if self.name and len(canvas.shown.names) == 1 else ""
            beyond = len(self.null) - nulls[-1].within(left, right_end)
            out = f", {beyond:,} of them beyond the axis" if beyond else ""
            what = f"; the axis is {self.statistic_label}" if words else ""
            canvas.note(f"{named}{len(self.null):,} sets of targets drawn from the predictions{out}{what}.")
        self._drawn(ax)
        return self

    @property
    def _most(self) -> float:
        """From here on a number means that there is none."""
        return MOST_EVIDENCE if self.statistic_label == EVIDENCE else np.inf

    def _called(self, far: bool, alone: bool) -> str:
        """What stands at the statistic: the name, where several models may be shown."""
        name = self.name or ("this model" if alone else "this model, too")
        if not far:
            return name
        number = f", at {self.statistic:.3g}" if abs(self.statistic) < self._most else ""
        return f"{name}{number}: off this scale"


class _Draws(NamedTuple):
    """What is drawn of a null: its numbers, between which of them most lie, and how many there are in all."""

    values: NDArray
    low: float
    high: float
    total: int

    def _inside(self, left: float, right: float) -> NDArray:
        return self.values[(self.values >= left) & (self.values <= right)]

    def within(self, left: float, right: float) -> int:
        """How many of them an axis shows."""
        return len(self._inside(left, right))

    def bars(self, left: float, right: float) -> tuple[NDArray, NDArray]:
        """Shares of all that an axis shows, NaN where there is none, and edges of the bars.

        Bars are as wide as most of the numbers need, also for the few that lie farther out.
        """
        inside = self._inside(left, right)
        most = self._inside(self.low, self.high)
        counts, edges = np.histogram(most, bins=int(np.clip(len(most) ** 0.5, 8, 40)))
        width = float(edges[1] - edges[0])
        least, largest = np.min(inside, initial=edges[0]), np.max(inside, initial=edges[-1])
        before, after = float(edges[0] - least), float(largest - edges[-1])
        if before > 0.0 or after > 0.0:
            width = max(width, (before + after) / _MOST_BARS)
            first = np.arange(-int(np.ceil(before / width)), 0) * width + edges[0]
            last = np.arange(1, int(np.ceil(after / width)) + 1) * width + edges[-1]
            edges = np.concatenate([first, edges, last])
            edges[0], edges[-1] = min(edges[0], least), max(edges[-1], largest)  # but for rounding
            counts = np.histogram(inside, bins=edges)[0]
        return np.where(counts > 0, counts, np.nan) / self.total, edges


def with_null(found: TestResult) -> TestResult:
    """The same test with the values of its statistic under calibration, drawn again where they were not kept.

    Examples
    --------
    >>> import wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 50)
    >>> found = wc.calibration_test(mu + 0.9, wc.Normal(mu, 1.0), method="exact", n_resamples=99, rng=0)
    >>> found.null is None, len(with_null(found).null)
    (True, 99)
    """
    if found.null is not None and len(found.null):
        return found
    remedy = (
        "call wellcal.displays.NullDisplay.from_predictions(y, pred), or give the result of "
        'calibration_test(y, pred, method="exact", keep_null=True)'
    )
    if found.given is None or "clusters" in found.provenance:
        why = "does not know its cases any more" if found.given is None else "is of cases in clusters"
        raise ValueError(f"result has no values of the statistic under calibration, and {why}; {remedy}")
    targets, predictions = found.given
    count = min(_DRAWN, found.provenance.get("n_resamples", _DRAWN))
    seed = found.provenance.get("seed", DEFAULT_SEED)
    options: dict[str, Any] = {"kernel": found.kernel, "n_resamples": count, "rng": seed}
    if found.method not in METHODS:
        raise ValueError(
            f"result has no values of the statistic under calibration (method {found.method!r}); {remedy}"
        )
    y = users_form(predictions, targets)
    # What was chosen is chosen again: of one method there are several, over all pairs and without them.
    method = "auto" if "chosen" in found.provenance else found.method
    again = calibration_test(y, predictions, method=method, keep_null=True, **options)
    if again.null is None or not len(again.null) or again.statistic_label != found.statistic_label:
        raise ValueError(
            f"result has no values of the statistic under calibration: method {found.method!r} draws none; "
            f"{remedy}"
        )
    return again
