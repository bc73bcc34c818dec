"""Figures of the page: the data are in the object, drawing leaves global settings alone, files repeat."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

import wellcal as wc
from reproduction import published
from reproduction.experiments import friedman
from reproduction.page import figures
from reproduction.page.displays import Curve, CurvesDisplay, DensityDisplay, ProportionsDisplay
from reproduction.page.figures import save

mpl.use("agg")
DISPLAYS = {
    "density": lambda: DensityDisplay(np.arange(3.0), np.arange(4.0), np.ones((4, 3))),
    "curves": lambda: CurvesDisplay([Curve([1, 2], [3, 4], "a"), Curve([1, 2], [4, 5], "b", [3, 4], [5, 6])]),
    "proportions": lambda: ProportionsDisplay(["a", "b"], {"x": [1, 2], "y": [0, 10]}, 10, reference=0.05),
}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


@pytest.mark.parametrize("make", DISPLAYS.values(), ids=DISPLAYS)
def test_plot_on_given_axes_or_new_ones(make):
    before = dict(mpl.rcParams)
    _, ax = pyplot.subplots()
    display = make()
    assert display.ax_ is None
    assert display.plot(ax) is display
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert make().plot().ax_ is not ax
    assert dict(mpl.rcParams) == before


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


def test_the_same_figure_is_the_same_file(tmp_path):
    for folder in ("a", "b"):
        save(DISPLAYS["curves"]().plot().figure_, tmp_path / folder, "figure")
    for suffix in ("svg", "png"):
        first, second = (tmp_path / folder / f"figure.{suffix}" for folder in ("a", "b"))
        assert first.read_bytes() == second.read_bytes()


def test_published_markers_of_models_and_ensembles():
    """At iterations with published numbers, for means over the models and for their ensemble."""
    x = np.array([0, 3, 10])
    trajectories = {
        (data, "MSE"): friedman.Trajectory(x, np.ones((3, 10)), {"ensemble": np.ones(3)})
        for data in friedman.CASES
    }
    summary = friedman.Summary({}, {}, trajectories, {}, {}, friedman.Sizes(1, (0, 10)))
    figure = figures._friedman_figure(summary, ("MSE", "MSE"), (0, 10), (8.0, 3.0))
    markers = [line for line in figure.axes[0].get_lines() if line.get_markerfacecolor() == "none"]
    known = published.friedman()
    expected = [
        value
        for data in friedman.CASES
        for value in (known[data, 10, "MSE"].mean, known[data, 10, "MSE"].ensemble)
    ]
    assert [line.get_ydata()[2] for line in markers] == expected
    assert all(np.isnan(line.get_ydata()[1]) for line in markers)
