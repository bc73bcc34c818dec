"""Figures: the data are in the object, drawing leaves global settings alone, colours can be told apart."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb

import wellcal as wc
from wellcal.displays import (
    CYCLE,
    MARKERS,
    Curve,
    CurvesDisplay,
    DensityDisplay,
    ProportionsDisplay,
    QuantileCalibrationDisplay,
    style,
)

mpl.use("agg")
Y = np.array([-1.0, 0.0, 0.3, 2.0])
PRED = wc.Normal(np.zeros(4), 1.0)
DISPLAYS = {
    "quantiles": lambda: QuantileCalibrationDisplay(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.4, 1.0])),
    "density": lambda: DensityDisplay(np.arange(3.0), np.arange(4.0), np.ones((4, 3))),
    "curves": lambda: CurvesDisplay([Curve([1, 2], [3, 4], "a"), Curve([1, 2], [4, 5], "b", [3, 4], [5, 6])]),
    "proportions": lambda: ProportionsDisplay(["a", "b"], {"x": [1, 2], "y": [0, 10]}, 10, level=0.05),
}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


@pytest.mark.parametrize("make", DISPLAYS.values(), ids=DISPLAYS)
def test_plot_on_given_axes_or_new_ones(make):
    _, ax = pyplot.subplots()
    display = make()
    assert display.ax_ is None
    assert display.plot(ax) is display
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert make().plot().ax_ is not ax


@pytest.mark.parametrize("make", DISPLAYS.values(), ids=DISPLAYS)
def test_global_settings_stay_as_they_were(make):
    before = dict(mpl.rcParams)
    make().plot()
    assert dict(mpl.rcParams) == before


def test_quantile_curve_of_predictions():
    display = QuantileCalibrationDisplay.from_predictions(Y, PRED, name="mine")
    below = np.mean(PRED.cdf(Y)[None, :] <= display.levels[:, None], axis=1)
    np.testing.assert_allclose(display.frequencies, below)
    assert "mine" in [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_densities_of_a_model():
    x, y = np.linspace(-1, 1, 4), np.linspace(-2, 2, 5)
    display = DensityDisplay.from_model(lambda x: wc.Normal(x, 0.5), x, y)
    assert display.density[2, 3] == pytest.approx(
        np.exp(-0.5 * (0.0 - 1.0) ** 2 / 0.25) / 0.5 / np.sqrt(2 * np.pi)
    )
    assert display.plot(largest=1.0).image_.get_clim() == (0.0, 1.0)


def test_published_values_are_open_markers_of_the_same_shape():
    ax = CurvesDisplay([Curve([1, 2], [3, 4], "a", published=[3.1, np.nan])]).plot().ax_
    ours, theirs = ax.get_lines()
    assert ours.get_marker() == theirs.get_marker()
    assert theirs.get_markerfacecolor() == "none"


def test_colours_differ_in_lightness_or_shape():
    """Every pair of curves differs in its marker, and neighbours in lightness too."""
    assert len(set(MARKERS)) == len(MARKERS) >= len(CYCLE) == len(set(CYCLE))
    light = [np.dot([0.2126, 0.7152, 0.0722], np.array(to_rgb(colour)) ** 2.2) for colour in CYCLE]
    assert np.abs(np.diff(light)).min() > 0.03


def test_the_same_figure_is_the_same_file(tmp_path):
    from wellcal.reproduce.figures import save

    for folder in ("a", "b"):
        save(DISPLAYS["curves"]().plot().figure_, tmp_path / folder, "figure")
    for suffix in ("svg", "png"):
        first, second = (tmp_path / folder / f"figure.{suffix}" for folder in ("a", "b"))
        assert first.read_bytes() == second.read_bytes()


def test_style_is_a_context():
    with style() as found:
        assert found.rcParams["legend.frameon"] is False


def test_matplotlib_is_imported_when_a_figure_is_drawn():
    code = "import wellcal.displays, wellcal.scores, sys; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
