"""What is written on a figure has room there, and rows of words do not hide each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

import wellcal as wc
from wellcal import displays

mpl.use("agg")
RNG = np.random.default_rng(0)
P = RNG.random(300)
HITS = RNG.random(300) < P
MU = RNG.normal(size=120)
Y = RNG.normal(MU, 1.3)
NARROW, RIGHT = wc.Normal(MU, 1.0), wc.Normal(MU, 1.3)
LONG = (
    "Miscalibrated (p <= 0.001, the smallest that 999 resamples can give): outcome 1 occurs 54% of the time "
    "where it was predicted between 57% and 98%, predicted 71% on average; and so on."
)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


def titled(display: Any) -> Any:
    """The same data, with a verdict of several lines."""
    display.verdict = LONG
    return display.plot()


def together(first: Any, second: Any) -> Any:
    for display, name in ((first, "a forest of many trees"), (second, "boosting")):
        display.name, display.verdict = name, LONG
    return second.plot(first.plot().ax_)


FIGURES: dict[str, Callable[[], Any]] = {
    "reliability": lambda: titled(displays.ReliabilityDisplay.from_predictions(HITS, P, rng=0)),
    "two models": lambda: together(
        displays.ReliabilityDisplay.from_predictions(HITS, P, rng=0),
        displays.ReliabilityDisplay.from_predictions(HITS, P**2, rng=0),
    ),
    "PIT": lambda: titled(displays.PITDisplay.from_predictions(Y, NARROW)),
    "two PIT": lambda: together(
        displays.PITDisplay.from_predictions(Y, NARROW), displays.PITDisplay.from_predictions(Y, RIGHT)
    ),
    "ECDF": lambda: titled(displays.PITDisplay.from_predictions(Y, NARROW, kind="ecdf")),
    "quantiles": lambda: titled(displays.QuantileCalibrationDisplay.from_predictions(Y, NARROW)),
    "coverage": lambda: titled(displays.CoverageDisplay.from_predictions(Y, NARROW)),
    "residuals": lambda: titled(displays.ResidualDisplay.from_predictions(Y, NARROW, name="narrow")),
    "comparison": lambda: displays.ComparisonDisplay(
        ("a network with a name of many words - another network with a name of many words", "a - b"),
        (0.1, -0.2),
        (-0.1, -0.3),
        (0.3, -0.1),
        "SKCE",
        LONG,
    ).plot(),
    "groups": lambda: displays.WitnessDisplay((LONG, "late"), (3.0, -4.0), (0.01, 0.2), (30, 20)).plot(),
}


@pytest.mark.parametrize("name", FIGURES)
def test_everything_is_inside_of_the_figure(name: str) -> None:
    figure = FIGURES[name]().figure_
    figure.draw_without_rendering()
    found, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(found.x0, found.y0) > -0.02
    assert found.x1 < width + 0.02
    assert found.y1 < height + 0.02


@pytest.mark.parametrize("name", ["comparison", "groups"])
def test_words_of_rows_are_apart(name: str) -> None:
    display = FIGURES[name]()
    display.figure_.draw_without_rendering()
    rows = [text for text in display.ax_.texts if text.get_fontsize() == 9.0]
    boxes = [text.get_window_extent() for text in rows]
    assert len(boxes) == 2
    assert not boxes[0].overlaps(boxes[1])


def test_the_band_is_in_the_legend_where_two_models_share_a_histogram() -> None:
    ax = FIGURES["two PIT"]().ax_
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["a forest of many trees", "boosting", "95% of calibrated models"]
    assert not [text for text in ax.texts if "stay in here" in text.get_text()]


def test_smooth_curves_are_drawn_where_there_are_cases() -> None:
    p = np.r_[np.full(200, 0.01), np.full(200, 0.99), 0.5]
    hits = np.r_[np.zeros(200), np.ones(201)]
    x, curve = displays.ReliabilityDisplay.from_predictions(hits, p, rng=0).curves[0].smooth
    assert np.isnan(curve[np.abs(x - 0.5) < 0.05]).all()
    assert np.isfinite(curve[[0, -1]]).all()


def test_a_display_says_which_it_is_and_holds_its_data_back() -> None:
    display = displays.CoverageDisplay.from_predictions(Y, NARROW, name="narrow")
    assert repr(display) == "<CoverageDisplay of 'narrow' with 120 cases>"
    assert repr(displays.PITDisplay(np.array([0.5]))) == "<PITDisplay>"


def test_levels_of_quantiles_are_markers() -> None:
    levels = [0.1, 0.5, 0.9]
    pred = wc.Quantiles(levels, NARROW.quantile(levels))
    display = displays.QuantileCalibrationDisplay.from_predictions(Y, pred)
    np.testing.assert_allclose(display.levels, levels)
    below = [np.mean(values >= Y) for values in NARROW.quantile(levels).T]
    np.testing.assert_allclose(display.frequencies, below)
