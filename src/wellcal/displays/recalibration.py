"""Before and after recalibration, on one axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wellcal._arrays.checks import described
from wellcal.displays.base import Display
from wellcal.displays.reliability import ReliabilityDisplay
from wellcal.displays.uniformity import PITDisplay
from wellcal.predictions.base import Predictions, check_inputs


@dataclass(repr=False)
class RecalibrationDisplay(Display):
    """What recalibration did, on cases that it had not seen.

    Reliability diagrams for classes, and PIT-ECDF differences for all else.

    Parameters
    ----------
    before, after
        Displays of the predictions as given, and of the recalibrated ones.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=150)
    >>> y, pred = rng.normal(mu, 1.0), wc.Normal(mu, 0.5 * np.ones(150))
    >>> found = wc.recalibration.cross_fit(y, pred, rng=1, n_resamples=199)
    >>> display = RecalibrationDisplay.from_result(found)
    >>> display.before.name, display.after.name
    ('before', 'after')
    """

    before: ReliabilityDisplay | PITDisplay
    after: ReliabilityDisplay | PITDisplay

    @classmethod
    def from_result(
        cls,
        result: Any,
        y: object = None,
        pred: object = None,
        *,
        ax: Any = None,
        rng: Any = 0,
        **options: Any,
    ) -> RecalibrationDisplay:
        """Draw what :func:`wellcal.recalibration.cross_fit` returned, or what a fitted scaling does.

        Parameters
        ----------
        result
            What `cross_fit` returned, with the recalibrated predictions and both tests; or a fitted
            :class:`wellcal.TemperatureScaling`, with which nothing is tested.
        y, pred
            None takes the targets and predictions that `cross_fit`, or `fit` of a scaling, was given; a
            result that was stored does not have them. For a scaling, others of its family may be given.
        ax
            Where to draw it.
        rng
            Seed or generator of bands, and of values of counts.
        options
            For `from_predictions` of the display, such as ``reduce=``.
        """
        if y is None and pred is None:
            y, pred = _cases_of(result)
        _, given = check_inputs(y, pred)
        aligned, predictions = given.align(y), given.with_index(None)
        display: Any = ReliabilityDisplay if predictions.kind == "classes" else PITDisplay
        if display is PITDisplay:
            options = {"kind": "ecdf", **options}
        shown: list[Any] = []
        for name, batch, told in _parts(result, predictions):
            made = display.from_predictions(aligned, batch, name=name, ax=ax, rng=rng, **told, **options)
            shown, ax = [*shown, made], made.ax_
        before, after = shown
        drawn = cls(before, after)
        drawn._drawn(ax)
        return drawn

    def plot(self, ax: Any = None) -> RecalibrationDisplay:
        """Draw both on given axes or on new ones."""
        shown: Any = self.before.plot(ax).ax_
        self.after.plot(shown)
        self._drawn(shown)
        return self


def _cases_of(result: Any) -> tuple[Any, Any]:
    """Targets and predictions that a scaling, or that of `cross_fit`, was fitted to."""
    found = getattr(getattr(result, "scaling", result), "fitting_cases", None)
    if found is None:
        _check(result)
        raise ValueError(
            "result was stored, and its cases were not: give them, as in from_result(result, y, pred)"
        )
    return found


def _check(result: Any) -> None:
    fitted = getattr(result, "temperature_", None) is not None
    if not fitted and any(getattr(result, name, None) is None for name in ("before", "after", "predictions")):
        raise TypeError(
            "result must be what cross_fit returns, or a fitted TemperatureScaling, found "
            f"{described(result)}"
        )


def _parts(result: Any, predictions: Predictions) -> list[tuple[str, Predictions, dict[str, Any]]]:
    """Names, predictions and what is said of them, before and after."""
    _check(result)
    if getattr(result, "temperature_", None) is not None:
        told: dict[str, Any] = {"test": False}
        return [("before", predictions, told), ("after", result.transform(predictions), told)]
    after = result.predictions.with_index(None)
    return [("before", predictions, {"result": result.before}), ("after", after, {"result": result.after})]
