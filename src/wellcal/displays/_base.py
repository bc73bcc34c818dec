"""What displays share: where they are drawn, what a test says of the model, and bands from resamples."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import described, flag, probability
from wellcal._arrays.equality import ByValue
from wellcal._arrays.namespaces import NDArray, stop_gradient, to_numpy
from wellcal.hypotests import calibration_test
from wellcal.hypotests.result import TestResult
from wellcal.measures.quantiles import pit

LEVEL = 0.95
"""Share of calibrated models whose whole curve lies in the band."""


class Display(ByValue):
    """Data of a figure, and where it was drawn."""

    ax_: Any = None
    figure_: Any = None

    def __repr__(self) -> str:
        """Which figure of which model: the arrays that it holds are for those who ask for them."""
        words = [type(self).__name__]
        words += [f"of {name!r}" for name in (getattr(self, "name", None),) if name]
        words += [f"with {count:,} cases" for count in (getattr(self, "n_samples", 0),) if count]
        return f"<{' '.join(words)}>"

    def _drawn(self, ax: Any) -> None:
        self.ax_, self.figure_ = ax, ax.figure


def shares_below(y: object, pred: object, rng: np.random.Generator) -> NDArray:
    """Shares of predictions that lie below the outcomes, in NumPy: :func:`wellcal.pit`."""
    return np.asarray(to_numpy(stop_gradient(pit(y, pred, rng=rng))), dtype=np.float64)


def verdict_of(y: object, pred: object, test: Any, result: Any, rng: Any) -> str | None:
    """What the title says of a model: that of a result, or of a test that is run now; else None."""
    if flag(test, "test") and result is not None:
        raise ValueError("give either test=True or result, which is that of a test that has been run")
    if test:
        return calibration_test(y, pred, rng=rng).verdict
    return None if result is None else test_result(result).verdict


def test_result(result: Any) -> TestResult:
    """`result`, or an error where it is not that of a test."""
    if not isinstance(result, TestResult):
        raise TypeError(
            f"result must be what calibration_test returns, a TestResult, found {described(result)}"
        )
    return result


def envelope(draws: NDArray, level: float) -> tuple[NDArray, NDArray]:
    """Bounds ``(B,)`` that hold as many of the curves ``(R, B)`` wholly as `level` says, at least.

    Of the curves at each place, as many are left out below as above, and equally many at all places.

    Parameters
    ----------
    draws
        Curves of calibrated models.
    level
        Share of such curves that stay within the bounds everywhere.

    Examples
    --------
    >>> draws = np.random.default_rng(0).random((999, 5))
    >>> low, high = envelope(draws, 0.9)
    >>> inside = ((draws >= low) & (draws <= high)).all(axis=1).mean()
    >>> bool(0.9 <= inside < 0.92)
    True
    """
    places = draws.shape[1]
    found = floor_of(np.concatenate([draws, -draws], axis=1), level)
    return found[:places], -found[places:]


def floor_of(draws: NDArray, level: float) -> NDArray:
    """Bounds ``(B,)`` above which as many of the curves ``(R, B)`` stay wholly as `level` says, at least.

    Examples
    --------
    >>> floor_of(np.arange(20.0)[:, None], 0.9)
    array([1.])
    """
    level = probability(level, "level")
    count = len(draws)
    ordered = np.sort(draws, axis=0)
    rank = np.full(count, count)
    for place in range(draws.shape[1]):
        rank = np.minimum(rank, np.searchsorted(ordered[:, place], draws[:, place], side="right"))
    # Of R curves and the observed one, alike under calibration, the share that may be left outside.
    left = max(0, count - int(np.ceil(level * (count + 1))))
    return ordered[int(np.sort(rank)[left]) - 1]
