"""Evidence against calibration over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.checks import described
from wellcal._arrays.namespaces import NDArray
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.axes import WIDE, Canvas, in_title
from wellcal.displays.base import Display
from wellcal.monitoring import Monitor, MonitorChange, MonitorStatus

QUESTION = "Is the model still calibrated?"


@dataclass(repr=False)
class MonitorDisplay(Display):
    """The evidence of a monitor, case by case, with the alarm and when the change began.

    Parameters
    ----------
    cases
        Numbers of the cases, ``(n,)``, counted from 1.
    log_evidence
        Decimal logarithm of the e-value, or of the detector, after each of them.
    threshold
        Evidence at which there is an alarm.
    status
        Where the monitor stands, with its verdict for the title.
    name
        Name of the model.
    verdict
        What the title says; None takes that of the status.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> monitor = wc.Monitor(rng=0)
    >>> status = monitor.update(np.random.default_rng(0).normal(1.0, 1.0, 60), wc.Normal(np.zeros(60), 1.0))
    >>> display = MonitorDisplay.from_result(monitor)
    >>> display.status.alarm_at == int(display.cases[display.log_evidence >= np.log10(20.0)][0])
    True
    """

    cases: NDArray
    log_evidence: NDArray
    threshold: float
    status: MonitorStatus
    name: str | None = None
    verdict: str | None = None

    @classmethod
    def from_result(
        cls, result: Any, *, change: MonitorChange | None = None, name: str | None = None, ax: Any = None
    ) -> MonitorDisplay:
        """Draw the history of a :class:`wellcal.Monitor`.

        Parameters
        ----------
        result
            The monitor.
        change
            What its method `change` returned: the title then says what has changed, and by how much.
        name, ax
            As for all displays: see :mod:`wellcal.displays`.
        """
        if not isinstance(result, Monitor):
            raise TypeError(f"result must be a Monitor, which knows its history, found {described(result)}")
        if change is not None and not isinstance(change, MonitorChange):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"change must be what Monitor.change returns, found {described(change)}")
        verdict = None if change is None else change.verdict
        history = np.asarray(result.history, dtype=np.float64)
        if not len(history):
            raise ValueError("result has no history: no cases were seen, or history=0 keeps none")
        last = result.n_samples
        cases = np.arange(last - len(history) + 1, last + 1)
        smallest = np.finfo(np.float64).tiny
        logs = np.log10(np.maximum(history, smallest))
        return cls(cases, logs, float(result.threshold), result.status, name, verdict).plot(ax)

    def plot(self, ax: Any = None) -> MonitorDisplay:
        """Draw the evidence on a logarithmic scale."""
        with style():
            ax = axes_or_new(ax, WIDE)
            canvas = Canvas(ax)
            look, theme, status = canvas.look, canvas.theme, self.status
            alarm = float(np.log10(self.threshold))
            ax.axhline(alarm, color=theme.ideal, linewidth=0.8, zorder=1.2)
            (handle,) = ax.plot(self.cases, self.log_evidence, **look.line, zorder=2.5)
            low = min(-1.0, float(self.log_evidence.min()))
            high = max(alarm + 0.5, float(self.log_evidence.max()))
            low, high = low - 0.05 * (high - low), high + 0.12 * (high - low)
            first, last = float(self.cases[0]), float(self.cases[-1])
            ax.set(ylim=(low, high), xlim=(first, last + 0.01 * (last - first) + 1e-9))
            offset: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8.0, "color": theme.quiet}
            start, end = (abs(float(self.log_evidence[k]) - alarm) for k in (0, -1))
            aside = end > start  # where the curve is farther from the line
            ax.annotate(
                f"alarm at {self.threshold:,.3g}",
                (last if aside else first, alarm),
                xytext=(-4.0 if aside else 4.0, 3.0),
                ha="right" if aside else "left",
                va="bottom",
                **offset,
            )
            if status.onset is not None and status.onset_interval is not None and status.onset >= first:
                start, end = status.onset_interval
                ax.axvspan(max(start, first), end, color=theme.band, alpha=0.75, linewidth=0.0, zorder=0.8)
                ax.axvline(status.onset, color=theme.ideal, linewidth=0.8, zorder=1.2)
                wide = end - max(start, first) > 0.3 * (last - first)  # room for the words in the span itself
                left = not wide and status.onset > 0.5 * (first + last)
                ax.annotate(
                    "the change began here",
                    (max(start, first) if left or wide else end, high),
                    xytext=(-4.0 if left else 4.0, -3.0),
                    ha="right" if left else "left",
                    va="top",
                    **offset,
                )
            if status.alarm_at is not None and status.alarm_at >= first:
                reached = self.log_evidence[int(status.alarm_at - first)]
                ax.plot([status.alarm_at], [reached], **look.points, markersize=7.0, zorder=3)
            canvas.add(self.name, handle, (self.cases, self.log_evidence))
            canvas.say(self.name, in_title(self.verdict or status.verdict))
            ax.yaxis.set_major_locator(_whole())
            ax.yaxis.set_major_formatter(_power)
            ax.set_xlabel("cases, in the order of time", color=theme.ink)
            ax.set_ylabel("evidence against calibration", color=theme.ink)
            canvas.title()
            named = f"{self.name}: " if self.name else ""
            what = "e-detector" if status.pvalue is None else "e-value"
            spans = "" if status.onset is None else " Grey: where the change began, with 95% confidence."
            canvas.note(f"{named}{what} after each case; a calibrated model stays about 1 or below.{spans}")
            canvas.name_models()
        self._drawn(ax)
        return self


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _whole() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=6, integer=True)


def _power(exponent: float, _: object) -> str:
    """A power of ten, in figures where it is short.

    Examples
    --------
    >>> _power(3.0, 0), _power(-12.0, 1)
    ('1,000', '10⁻¹²')
    """
    whole = round(exponent)
    if -3 <= whole <= 4:
        return f"{10.0**whole:,g}"
    return "10" + str(whole).translate(_RAISED)
