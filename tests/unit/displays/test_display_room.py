"""What is written on a figure has room there, and rows of words do not hide each other."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal import displays
from wellcal.displays.axes import NAME, TITLE, Canvas

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


def titled(display: Any) -> Any:
    """The same data, with a verdict of several lines."""
    display.verdict = LONG
    return display.plot()


def together(first: Any, second: Any) -> Any:
    for display, name in ((first, "a forest of many trees"), (second, "boosting")):
        display.name, display.verdict = name, LONG
    return second.plot(first.plot().ax_)


def correlations(name: str) -> Any:
    pairs = tuple(combinations(range(1, 5), 2))
    values, half = np.linspace(-0.5, 0.9, 6), np.full(6, 0.2)
    return displays.CorrelationsDisplay(pairs, values, 0.0 * half, -half, half, name)


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
    "correlations": lambda: titled(correlations("a")),
    "two correlations": lambda: together(correlations("a"), correlations("b")),
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
    assert_all_inside(FIGURES[name]().figure_)


@pytest.mark.parametrize("words", ["All bins lie in the band.", " ".join(9 * ["Of many words."])])
def test_nothing_is_cut_off_when_a_figure_is_drawn_for_the_first_time(words: str) -> None:
    """What hangs on a square, and its own place in the figure, are found in steps."""
    for display in (
        displays.ReliabilityDisplay.from_predictions(HITS, P, rng=0),
        displays.CoverageDisplay.from_predictions(Y, NARROW),
    ):
        display.verdict = words
        figure = display.plot().figure_
        figure.draw_without_rendering()
        found = figure.get_tightbbox()
        assert min(found.x0, found.y0) > 0.02
        assert found.y1 < figure.get_figheight() - 0.02


@pytest.mark.parametrize("name", ["comparison", "groups"])
def test_words_of_rows_are_apart(name: str) -> None:
    display = FIGURES[name]()
    display.figure_.draw_without_rendering()
    rows = [text for text in display.ax_.texts if text.get_fontsize() == 9.0]
    boxes = [text.get_window_extent() for text in rows]
    assert len(boxes) == 2
    assert not boxes[0].overlaps(boxes[1])


OWN: dict[str, Callable[[Any], Any]] = {
    name: (lambda ax, make=make: make().plot(ax))
    for name, make in ((name, cache(make)) for name, make in FIGURES.items())
    if not name.startswith("two")
}
OWN["two models"] = lambda ax: [
    displays.ReliabilityDisplay.from_predictions(HITS, p, name=name, ax=ax, rng=0)
    for name, p in (("a forest of many trees", P), ("boosting", P**2))
]


@pytest.mark.parametrize("name", OWN)
def test_axes_of_a_user_make_room_for_all_that_is_written(name: str) -> None:
    """Nothing is lost where the figure is saved as it is, and nothing written into the axes beside it."""
    from matplotlib import pyplot

    figure, ax = pyplot.subplots()
    OWN[name](ax)
    assert_all_inside(figure)
    figure, grid = pyplot.subplots(2, 2, figsize=(9.0, 8.0))
    for other in grid.flat:
        other.plot([0.0, 1.0])
    OWN[name](grid[1, 0])
    OWN[name](grid[0, 0])
    assert_all_inside(figure)
    boxes = [other.get_tightbbox() for other in grid.flat]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


@pytest.mark.parametrize("name", ["PIT", "ECDF", "quantiles", "coverage"])
def test_words_along_axes_of_a_user_leave_them_their_size(name: str) -> None:
    """Longer than the axes they would make these smaller, and reach beyond them all the more."""
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(2, 3, figsize=(12.0, 8.0))
    OWN[name](grid[0, 1])
    figure.draw_without_rendering()
    ax = grid[0, 1]
    assert ax.get_window_extent().width > 1.8 * figure.dpi
    for axis, end in ((ax.xaxis, "width"), (ax.yaxis, "height")):
        words = getattr(axis.label.get_window_extent(), end)
        assert words < 1.25 * getattr(ax.get_window_extent(), end)
    before = ax.get_xlabel().replace("\n", " ")
    OWN[name](ax)
    assert ax.get_xlabel().replace("\n", " ") == before


def test_axes_of_a_user_stay_where_a_layout_or_somebody_else_puts_them() -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.0))
    left, right = figure.subfigures(1, 2)
    display = displays.PITDisplay.from_predictions(Y, NARROW, ax=left.subplots())
    assert display.ax_.get_tightbbox().x1 < right.bbox.x0 + 2.0
    # A layout that is asked for later is followed.
    figure, first = drawn_on_given_axes(Figure())
    figure.tight_layout()
    assert first.ax_.get_position().height > 0.75
    assert_all_inside(figure)
    figure = Figure(figsize=(9.0, 4.5))
    for ax in figure.subplots(1, 2):
        displays.ReliabilityDisplay.from_predictions(HITS, P**2, ax=ax, rng=0)
    for lay_out in (figure.tight_layout, lambda: figure.set_layout_engine("constrained")):
        lay_out()
        assert_all_inside(figure)
    # One that is there already arranges the axes itself, and given room they have it back.
    figure, _ = drawn_on_given_axes(Figure(layout="constrained"))
    assert_all_inside(figure)
    figure, again = drawn_on_given_axes(Figure(figsize=(12.0, 9.0)))
    given = again.ax_.get_position(original=True)
    assert given.y0 == pytest.approx(figure.subplotpars.bottom)
    again.ax_.set_position([0.3, 0.3, 0.4, 0.4])
    again.plot(again.ax_)
    assert again.ax_.get_position(original=True).bounds == pytest.approx((0.3, 0.3, 0.4, 0.4))


def drawn_on_given_axes(figure: Any) -> tuple[Any, Any]:
    return figure, displays.PITDisplay.from_predictions(Y, NARROW, ax=figure.subplots())


def assert_all_inside(figure: Any) -> None:
    figure.draw_without_rendering()
    found, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(found.x0, found.y0) > -0.02
    assert found.x1 < width + 0.02
    assert found.y1 < height + 0.02


def test_names_of_models_have_the_colours_of_their_lines() -> None:
    """As they are, or as dark as small words have to be on white paper."""
    from matplotlib.colors import to_rgb

    for curves in ([np.full(9, 0.2), np.full(9, 0.5)], [np.full(9, 0.5), np.full(9, 0.51)]):
        ax = crowded(curves, "ab")
        legend = ax.get_legend()
        named = (
            [text for text in ax.texts if text.get_label() == NAME] if legend is None else legend.get_texts()
        )
        blue, orange = (np.array(to_rgb(text.get_color())) for text in named)
        assert np.allclose(blue, to_rgb("#0072B2"))
        assert orange[0] > 1.3 * orange[1] > 6 * orange[2]
        assert orange @ [0.2126, 0.7152, 0.0722] < 0.45


def crowded(curves: Any, names: Any) -> Any:
    """Axes with one curve for each name."""
    ax = displays.axes_or_new(None, (4.0, 4.0))
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    canvas = Canvas(ax)
    for name, y in zip(names, curves, strict=True):
        (handle,) = ax.plot(np.linspace(0.0, 0.8, len(y)), y, **canvas.look.line)
        canvas.add(name, handle, (np.linspace(0.0, 0.8, len(y)), y))
        canvas.say(name, "All lie in the band.")
    canvas.title()
    canvas.name_models()
    return ax


def test_names_stand_at_the_ends_of_curves_where_there_is_room() -> None:
    ax = crowded([np.full(9, 0.2), np.full(9, 0.5), np.full(9, 0.8)], "abc")
    assert ax.get_legend() is None
    names = [text for text in ax.texts if text.get_label() == NAME]
    assert [text.get_text() for text in names] == ["a", "b", "c"]
    assert [round(text.xy[0], 3) for text in names] == [0.8] * 3
    # Room for two of three is no room: one legend for all.
    ax = crowded([np.full(9, 0.5), np.full(9, 0.51), np.full(9, 0.8)], "abc")
    assert not [text for text in ax.texts if text.get_label() == NAME]
    assert len(ax.get_legend().get_texts()) == 3


def test_a_legend_hides_nothing() -> None:
    """In an empty corner; above the axes where all are taken, with the title above it."""
    waves = [np.sin(np.linspace(0.0, 40.0, 400)) * 0.45 + 0.5 + shift for shift in (0.0, 0.02, 0.04)]
    ax = crowded(waves, ["first", "second", "third"])
    ax.figure.draw_without_rendering()
    legend, box = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert legend.y0 >= box.y1
    title = next(text for text in ax.findobj(lambda artist: artist.get_gid() == TITLE))
    assert title.get_window_extent().y0 >= legend.y1
    assert ax.figure.get_tightbbox().y1 <= ax.figure.get_size_inches()[1] + 0.02


@pytest.mark.parametrize("name", ["two models", "two PIT"])
def test_names_hide_no_curve_and_no_words(name: str) -> None:
    ax = FIGURES[name]().ax_
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts if text.get_text().strip()]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    if ax.get_legend() is None:
        named = [text.get_window_extent() for text in ax.texts if text.get_label() == NAME]
        assert len(named) == 2
        for curve in Canvas(ax).shown.curves:
            drawn = ax.transData.transform(curve)
            assert not any(box.contains(*point) for box in named for point in drawn)


def test_the_band_is_labelled_once() -> None:
    ax = FIGURES["two PIT"]().ax_
    assert sum("stay in here" in text.get_text() for text in ax.texts) == 1


def test_the_isotonic_curve_is_that_of_a_model_alone() -> None:
    display = displays.ReliabilityDisplay.from_predictions(HITS, P, rng=0)
    assert sum(line.get_alpha() == 0.6 for line in display.ax_.lines) == 1
    assert "thin: isotonic" in " ".join(text.get_text() for text in display.ax_.child_axes[0].texts)
    both = displays.ReliabilityDisplay.from_predictions(HITS, P**2, rng=0, ax=display.ax_)
    assert not [line for line in both.ax_.lines if line.get_alpha() == 0.6]
    wanted = displays.ReliabilityDisplay.from_predictions(HITS, P, rng=0, isotonic=False)
    assert not [line for line in wanted.ax_.lines if line.get_alpha() == 0.6]


@pytest.mark.parametrize(("n", "bins"), [(130, 3), (440, 7), (3000, 10)])
def test_bands_of_residuals_are_apart(n: int, bins: int) -> None:
    """In as many bins as that allows: more cases, more bins."""
    rng = np.random.default_rng(0)
    sd = rng.uniform(0.5, 2.0, n)
    display = displays.ResidualDisplay.from_predictions(rng.normal(0.0, sd), wc.Normal(np.zeros(n), sd))
    _, _, low, high = display.lines()
    assert low.shape == (3, bins)
    assert np.all(high[0] < low[1])
    assert np.all(high[1] < low[2])


def test_smooth_curves_are_drawn_where_there_are_cases() -> None:
    p = np.r_[np.full(200, 0.01), np.full(200, 0.99), 0.5]
    hits = np.r_[np.zeros(200), np.ones(201)]
    x, curve = displays.ReliabilityDisplay.from_predictions(hits, p, rng=0).curves[0].smooth
    assert np.isnan(curve[np.abs(x - 0.5) < 0.43]).all()
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


def test_names_of_any_width_leave_the_axes_their_room() -> None:
    with warnings.catch_warnings(action="error"):  # matplotlib warns of axes that collapse
        display = displays.PITDisplay.from_predictions(Y, NARROW, name="m" * 99)
        display = displays.PITDisplay.from_predictions(Y, RIGHT, name="boosting", ax=display.ax_)
        display.figure_.draw_without_rendering()
    axes, whole = display.ax_.get_window_extent(), display.figure_.bbox
    assert axes.width > 0.7 * whole.width
    legend = display.ax_.get_legend().get_window_extent()
    assert legend.x1 <= whole.x1
    assert sum(text.get_text().count("m") for text in display.ax_.get_legend().get_texts()) == 99
