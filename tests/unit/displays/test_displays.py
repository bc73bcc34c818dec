"""Figures: the data are in the object, drawing leaves global settings alone, colours can be told apart."""

import subprocess
import sys
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb

import wellcal as wc
from wellcal.displays import (
    CYCLE,
    MARKERS,
    NullDisplay,
    QuantileCalibrationDisplay,
    RecalibrationDisplay,
    ReliabilityDisplay,
    axes_or_new,
    style,
)
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
    with style():
        canvas = Canvas(axes_or_new(None))
    looks = [canvas.look_of(index) for index in range(49)]
    assert len({(look.colour, look.marker) for look in looks}) == len({str(look) for look in looks}) == 49


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


def _grades(n: int = 80) -> tuple[np.ndarray, wc.Categorical, wc.Categorical]:
    rng = np.random.default_rng(11)
    probs = rng.dirichlet(np.ones(4), size=n)
    y = (probs.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    sharp = probs**2 / np.sum(probs**2, axis=1, keepdims=True)
    names, values = ["none", "mild", "moderate", "severe"], np.arange(4.0)
    first, second = (wc.Categorical(p, classes=names, support=values) for p in (probs, sharp))
    return np.array(names)[y], first, second


def test_models_of_grades_share_their_axes() -> None:
    y, first, second = _grades()
    one = ReliabilityDisplay.from_predictions(y, first, name="one", test=False, rng=0)
    lines = [len(ax.lines) for ax in one.axes_.flat]
    two = ReliabilityDisplay.from_predictions(y, second, name="two", test=False, rng=0, ax=one.ax_)
    assert two.figure_ is one.figure_
    assert all(len(ax.lines) > before for ax, before in zip(two.axes_.flat, lines, strict=True))
    assert [text.get_text() for text in two.ax_.get_legend().get_texts()] == ["one", "two"]
    assert two.figure_.get_suptitle().count("\n") == 1  # a line for each
    with pytest.raises(ValueError, match="ax shows other events than these"):
        ReliabilityDisplay.from_predictions(y, second, reduce="classwise", test=False, rng=0, ax=one.ax_)


def test_grades_before_and_after_recalibration() -> None:
    y, _, sharp = _grades()
    found = wc.recalibration.cross_fit(y, sharp, rng=0, folds=2, n_resamples=39)
    display = RecalibrationDisplay.from_result(found, y, sharp, rng=0)
    assert len(display.figure_.axes) == len(display.before.curves) == 3
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["before", "after"]


def test_evidence_that_is_no_number_has_no_place() -> None:
    """300 is what the logarithm of a p-value of zero is called, of drawn sets, too."""
    null = np.concatenate([np.linspace(0.0, 2.0, 400), np.full(5, 300.0)])
    display = NullDisplay(null, 300.0, "-log10 of the smallest weighted p-value").plot()
    assert display.ax_.get_xlim()[1] < 4.0
    assert "5 of them beyond the axis" in _small_print(display)
    other = NullDisplay(null, 300.0, "n SKCE_u").plot()
    assert other.ax_.get_xlim()[1] > 300.0
    share = NullDisplay(np.zeros(50), 1.0).plot()
    assert max(share.ax_.get_yticks()) <= 1.0


def _small_print(display: Any) -> str:
    return " ".join(text.get_text() for text in display.ax_.texts).replace("\n", " ")
