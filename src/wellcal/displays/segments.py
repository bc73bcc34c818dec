"""Segments of cases, each by itself: how far off the model is there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.checks import described, whole_number
from wellcal._arrays.round_numbers import how_many
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.axes import WIDE, Canvas
from wellcal.displays.base import LEVEL, Display, rows_off
from wellcal.displays.percentages import percent
from wellcal.hypotests.findings.sizes import yardstick_with
from wellcal.hypotests.result import TestResult
from wellcal.measures.presentation import pvalue_sign
from wellcal.measures.wording import share_of, what_is_wrong

QUESTION = "In which segments is the model wrong?"
_MOST = 6
_LARGEST = 3.0  # share of an error beyond which an axis does not go, unless there is a dot
_KCE = "KCE"


@dataclass(repr=False)
class SegmentsDisplay(Display):
    """How far off a model is in segments of the cases, one row each, the clearest first.

    Parameters
    ----------
    rows
        What each segment is, in words.
    values, low, high
        The size of the error there, nan where it is not known, and its interval.
    rejected
        Whether the model is called miscalibrated there.
    measure
        What `values` are, in words.
    verdict
        What the tests found, for the title.
    level
        Probability with which all intervals hold together.
    n_segments
        Number of segments that were tested.

    Notes
    -----
    Sizes are those of :attr:`wellcal.TestResult.yardstick` of each segment: where an error in spreads (for
    classes in temperature, for counts in means) was found, and no other, its size, elsewhere that of a
    model which is as far off, to the likelier side; KCE where there is none. They have no direction; the
    verdict of a segment has.
    A segment that is miscalibrated although its KCE is estimated as zero has no size, but an interval.
    Intervals are wide enough to hold for all segments that were tested (Bonferroni), as the p-values that
    decide what is filled are adjusted for all of them.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu, region = rng.normal(size=200), np.repeat(["north", "south"], 100)
    >>> y = rng.normal(mu + (region == "north"), 1.0)
    >>> found = wc.report(y, wc.Normal(mu, 1.0), segments={"region": region}, rng=0, n_resamples=199)
    >>> display = SegmentsDisplay.from_result(found.best.segments)
    >>> display.rows[0], display.rejected
    ('for region = north, 100 cases (p <= 0.01)', (True, False))
    """

    rows: tuple[str, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    rejected: tuple[bool, ...]
    measure: str
    verdict: str | None = None
    level: float = LEVEL
    n_segments: int = 0

    @classmethod
    def from_result(cls, result: Any, *, most: int = _MOST, ax: Any = None) -> SegmentsDisplay:
        """Draw the segments of a report.

        Parameters
        ----------
        result
            ``segments`` of a model in a report.
        most
            Segments that are shown at most, those with the smallest p-values.
        ax
            Where to draw it.
        """
        segments: Sequence[Any] | None = getattr(result, "segments", None)
        if not isinstance(segments, tuple) or not all(hasattr(one, "test") for one in segments):
            raise TypeError(
                f"result must be the segments of a model in a report, such as report.best.segments, found "
                f"{described(result)}"
            )
        tested = [one for one in segments if one.test is not None and one.test.estimate.cases is not None]
        if not tested:
            raise ValueError(
                "result has no segments whose cases are known: none were tested, or it was stored"
            )
        worst = sorted(tested, key=lambda one: (one.pvalue, -_size(one.test)))
        shown = worst[: whole_number(most, "most", least=1)]
        alone = 1.0 - (1.0 - LEVEL) / len(tested)
        sizes, measure = _sizes(shown, alone)
        return cls(
            tuple(
                f"{one.where}, {how_many(one.n_samples)} ({pvalue_sign(one.pvalue, one.pvalue_floor)})"
                for one in shown
            ),
            tuple(size[0] for size in sizes),
            tuple(size[1] for size in sizes),
            tuple(size[2] for size in sizes),
            tuple(bool(one.rejected) for one in shown),
            measure,
            result.verdict,
            LEVEL,
            len(tested),
        ).plot(ax)

    @property
    def finding(self) -> str:
        """In how many segments the model is shown to be wrong, in a sentence."""
        return rows_off(sum(self.rejected), len(self.rows), "segment")

    def plot(self, ax: Any = None) -> SegmentsDisplay:
        """Draw one row for each segment."""
        with style():
            ax = axes_or_new(ax, (WIDE[0], 1.35 + 0.42 * len(self.rows)))
            canvas = Canvas(ax)
            values, low, high = (
                np.asarray(part, dtype=np.float64) for part in (self.values, self.low, self.high)
            )
            ax.axvline(0.0, color=canvas.theme.ideal, linewidth=0.8, zorder=1.2)
            known, ends = values[np.isfinite(values)], high[np.isfinite(high)]
            further = 1.0 if len(ends) == len(high) else 1.5
            ends = ends if self.measure == _KCE else np.minimum(ends, _LARGEST)
            largest = max(float(np.max(ends, initial=0.0)), further * float(np.max(known, initial=0.0)))
            reach = 1.08 * (largest or 1.0)
            handle = canvas.rows(
                list(self.rows), canvas.look.colour, values, low, np.minimum(high, reach), list(self.rejected)
            )
            ax.set_xlim(-0.02 * reach, reach)
            open_ends = high > reach
            if open_ends.any():
                places = np.asarray(handle.get_ydata())[open_ends]
                ends = {"marker": ">", "linestyle": "none", "markersize": 5.0, "clip_on": False}
                ax.plot(np.full(len(places), reach), places, color=canvas.look.colour, **ends)
            ax.locator_params(axis="x", nbins=6)
            if self.measure != _KCE:
                ax.xaxis.set_major_formatter(percent)
            called = "calibration error (KCE)" if self.measure == _KCE else self.measure
            ax.set_xlabel(called, color=canvas.theme.ink)
            canvas.add(None, handle)
            canvas.head(self.verdict or self.finding)
            beyond = "; arrow: or more" if open_ends.any() else ""
            beyond += (
                "; without a dot: miscalibrated, how far is not known" if len(known) < len(values) else ""
            )
            # Some may be left out; those with too few cases were not tested, and are not counted.
            shown = len(self.rows)
            which = "1 is shown: that" if shown == 1 else f"{shown} are shown: those"
            ends = "smallest p-value" if shown == 1 else "smallest p-values"
            less = f", {which} with the {ends}" if shown < self.n_segments else ""
            canvas.note(
                f"{self.n_segments:,} segments were tested{less}; {self.level:.0%} intervals that hold for "
                f"all of them together{beyond}; filled: miscalibrated, p-values adjusted for all of them."
            )
        self._drawn(ax)
        return self


def _size(test: TestResult) -> float:
    return test.effect_size or 0.0


_Size = tuple[float, float, float]


def _sizes(segments: Sequence[Any], level: float) -> tuple[list[_Size], str]:
    """Sizes of errors with their intervals, all in the same measure, and what it is called."""
    found = [_of_yardstick(one.test, level) for one in segments]
    shares = [size for size in found if size is not None]
    if len(shares) < len(segments):
        roots = (_root(one.test, level) for one in segments)
        return [_or_unknown(one, root) for one, root in zip(segments, roots, strict=True)], _KCE
    kinds = list(dict.fromkeys(kind for kind, _ in shares))
    wrong = what_is_wrong(kinds[0]) if len(kinds) == 1 else f"{' or '.join(kinds)} were"
    sides = [one.test.yardstick for one in segments]
    likelier = "" if all(one is not None and one.directed for one in sides) else ", to the likelier side"
    measure = f"as far off as if {wrong} so wrong{likelier}"
    return [_or_unknown(one, size) for one, (_, size) in zip(segments, shares, strict=True)], measure


def _of_yardstick(test: TestResult, level: float) -> tuple[str, _Size] | None:
    """What is wrong by the yardstick of a test, and its size, which is the test's, with a wider interval."""
    size, wide = test.yardstick, yardstick_with(test.estimate, test.findings, level)
    if size is None or wide is None:
        return None
    low = share_of(wide.low)
    high = max(math.inf if bound.open else share_of(bound.ratio) for bound in wide.bounds)
    return size.kind, (size.share, min(low, size.share), max(high, size.share))


def _root(test: TestResult, level: float) -> _Size:
    interval = test.estimate.confidence_interval(level)
    low, high = (math.sqrt(max(end, 0.0)) for end in (interval.low, interval.high))
    return float(np.clip(math.sqrt(max(float(test.estimate), 0.0)), low, high)), low, high


def _or_unknown(segment: Any, size: _Size) -> _Size:
    """A segment that is miscalibrated is not "0% wrong": an estimate of zero is no size."""
    return (math.nan, *size[1:]) if segment.rejected and size[0] == 0.0 else size
