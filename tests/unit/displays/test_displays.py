"""Figures: the data are in the object, drawing leaves global settings alone, colours can be told apart."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb

import wellcal as wc
from wellcal.displays import CYCLE, MARKERS, QuantileCalibrationDisplay, axes_or_new, style
from wellcal.displays.axes import Canvas

Y = np.array([-1.0, 0.0, 0.3, 2.0])
PRED = wc.Normal(np.zeros(4), 1.0)


def test_plot_on_given_axes_or_new_ones():
    _, ax = pyplot.subplots()
    display = QuantileCalibrationDisplay(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.4, 1.0]))
    assert display.ax_ is None
    assert display.plot(ax) is display
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.plot().ax_ is not ax


def test_global_settings_stay_as_they_were():
    before = dict(mpl.rcParams)
    QuantileCalibrationDisplay.from_predictions(Y, PRED)
    axes_or_new(None)
    assert dict(mpl.rcParams) == before


def test_quantile_curve_of_predictions():
    display = QuantileCalibrationDisplay.from_predictions(Y, PRED, name="mine")
    below = np.mean(PRED.cdf(Y)[None, :] <= display.levels[:, None], axis=1)
    np.testing.assert_allclose(display.frequencies, below)
    found = wc.quantile_calibration(Y, PRED, levels=display.levels)
    np.testing.assert_allclose((display.low, display.high), found.band())
    assert any("mine" in text.get_text() for text in display.ax_.texts)
    again = QuantileCalibrationDisplay.from_result(found, name="other", ax=display.ax_)
    assert Canvas(again.ax_).shown.names == ["mine", "other"]


def test_colours_differ_in_lightness_or_shape():
    """Every pair of curves differs in its marker, and neighbours in lightness too."""
    assert len(set(MARKERS)) == len(MARKERS) >= len(CYCLE) == len(set(CYCLE))
    light = [np.dot([0.2126, 0.7152, 0.0722], np.array(to_rgb(colour)) ** 2.2) for colour in CYCLE]
    assert np.abs(np.diff(light)).min() > 0.03


def test_style_is_a_context():
    with style() as found:
        assert found.rcParams["legend.frameon"] is False


def test_matplotlib_is_imported_when_a_figure_is_drawn():
    code = (
        "import wellcal as wc, sys; wc.displays.ReliabilityDisplay; wc.displays.PITDisplay([0.5]).heights();"
        "print('matplotlib' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_names_the_remedy_where_matplotlib_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'wellcal\[plot\]'"):
        QuantileCalibrationDisplay.from_predictions(Y, PRED)
