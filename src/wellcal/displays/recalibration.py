"""Before and after recalibration, on one axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wellcal._arrays.checks import described
from wellcal.displays.base import Display
from wellcal.displays.reliability import ReliabilityDisplay
from wellcal.displays.uniformity import PITDisplay
from wellcal.expectations.decompose import targets_are_indices
from wellcal.predictions.base import check_inputs


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
    >>> found = wc.scaling.cross_fit(y, pred, rng=1, n_resamples=199)
    >>> display = RecalibrationDisplay.from_result(found, y, pred)
    >>> display.before.name, display.after.name
    ('before', 'after')
    """

    before: ReliabilityDisplay | PITDisplay
    after: ReliabilityDisplay | PITDisplay

    @classmethod
    def from_result(
        cls, result: Any, y: object, pred: object, *, ax: Any = None, rng: Any = 0, **options: Any
    ) -> RecalibrationDisplay:
        """Draw what :func:`wellcal.scaling.cross_fit` returned.

        Parameters
        ----------
        result
            It holds the recalibrated predictions and both tests.
        y, pred
            The targets and predictions that it was given.
        ax
            Where to draw it.
        rng
            Seed or generator of bands, and of values of counts.
        options
            For `from_predictions` of the display, such as ``reduce=``.
        """
        if any(getattr(result, name, None) is None for name in ("before", "after", "predictions")):
            raise TypeError(f"result must be what cross_fit returns, found {described(result)}")
        _, predictions = check_inputs(y, pred)
        display: Any = ReliabilityDisplay if targets_are_indices(predictions) else PITDisplay
        if display is PITDisplay:
            options = {"kind": "ecdf", **options}
        aligned = predictions.align(y)
        before = display.from_predictions(
            aligned,
            predictions.with_index(None),
            name="before",
            result=result.before,
            ax=ax,
            rng=rng,
            **options,
        )
        ax = before.ax_
        after = display.from_predictions(
            aligned,
            result.predictions.with_index(None),
            name="after",
            result=result.after,
            ax=ax,
            rng=rng,
            **options,
        )
        made = cls(before, after)
        made._drawn(ax)
        return made

    def plot(self, ax: Any = None) -> RecalibrationDisplay:
        """Draw both on given axes or on new ones."""
        shown: Any = self.before.plot(ax).ax_
        self.after.plot(shown)
        self._drawn(shown)
        return self
