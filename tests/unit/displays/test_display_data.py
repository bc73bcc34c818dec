"""Reliability and PIT displays: their data against other ways to compute them, and how models differ."""

import re
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.text import Text

import wellcal as wc
from wellcal.displays import (
    CoverageDisplay,
    PITDisplay,
    QuantileCalibrationDisplay,
    ReliabilityDisplay,
    ResidualDisplay,
    base,
    style,
    to_svg,
)
from wellcal.displays.axes import NAME, Canvas, in_title
from wellcal.displays.base import envelope
from wellcal.displays.shortening import cut_apart


def names_on(ax: Any) -> list[str]:
    """Names of models, at their curves or in the legend."""
    texts = ax.texts if ax.get_legend() is None else ax.get_legend().get_texts()
    return [text.get_text() for text in texts if ax.get_legend() or text.get_label() == NAME]


def binary(n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 0.7, n).round(2)  # rounded: there are ties
    return (rng.random(n) < p).astype(int), p


def draw_nothing(monkeypatch: pytest.MonkeyPatch, display: Any) -> None:
    monkeypatch.setattr(display, "plot", lambda self, ax=None, **options: self)


# -- reliability ------------------------------------------------------------------------------------


def test_bins_are_of_equal_counts_with_their_means(monkeypatch: pytest.MonkeyPatch):
    draw_nothing(monkeypatch, ReliabilityDisplay)
    rng = np.random.default_rng(0)
    p = rng.random(120)  # no ties
    y = rng.random(120) < p
    (curve,) = ReliabilityDisplay.from_predictions(y, p, n_bins=6, rng=0).curves
    order = np.argsort(p).reshape(6, 20)
    np.testing.assert_allclose(curve.predicted, p[order].mean(axis=1))
    np.testing.assert_allclose(curve.observed, y[order].mean(axis=1))
    assert curve.counts.tolist() == [20] * 6
    assert curve.histogram.sum() == 120


def test_the_histogram_has_rounded_probabilities_in_the_cells_they_are_written_in() -> None:
    p = np.repeat(np.arange(21) / 20, 50)
    for given in (p, 1.0 - np.flip(p), np.cumsum(np.append(0.0, np.full(20, 0.05))).repeat(50).clip(0, 1)):
        display = ReliabilityDisplay.from_predictions(np.tile([0, 1], 525), given, rng=0)
        assert display.curves[0].histogram.tolist() == [50] * 19 + [100]


def test_the_histogram_stands_under_the_probabilities_of_the_diagram() -> None:
    display = ReliabilityDisplay.from_predictions(*binary(80), rng=0)
    ax, (below,) = display.ax_, display.ax_.child_axes
    display.figure_.canvas.draw()
    for p in (0.0, 0.5, 1.0):
        across = [axes.transData.transform((p, 0.0))[0] for axes in (ax, below)]
        assert across[0] == pytest.approx(across[1], abs=1e-6), "in pixels"


def test_equal_predictions_share_a_bin_and_empty_ones_are_not_drawn():
    y, p = np.array([0, 1, 0, 1, 1, 1, 0, 1] * 10), np.repeat([0.25, 0.75], 40)
    display = ReliabilityDisplay.from_predictions(y, p, n_bins=10, rng=0)
    (curve,) = display.curves
    np.testing.assert_allclose(curve.predicted, [0.25, 0.75])
    points = [line for line in display.ax_.lines if line.get_marker() == "o" and len(line.get_xdata())]
    assert [len(line.get_xdata()) for line in points] == [2]
    below = display.ax_.child_axes[0]
    drawn = below.patches[0].get_data().values
    assert np.isfinite(drawn).sum() == 2, "cells of the histogram without cases are left out"


def test_isotonic_curve_is_the_nearest_that_never_falls(monkeypatch: pytest.MonkeyPatch):
    draw_nothing(monkeypatch, ReliabilityDisplay)
    y, p = binary(80)
    x, fitted = ReliabilityDisplay.from_predictions(y, p, rng=0).curves[0].isotonic
    means = [y[p == value].mean() for value in x]
    sizes = [np.sum(p == value) for value in x]
    # The max-min formula: the largest over starts of the smallest mean over ends.
    for k, value in enumerate(fitted):
        best = max(
            min(np.average(means[i:j], weights=sizes[i:j]) for j in range(k + 1, len(x) + 1))
            for i in range(k + 1)
        )
        assert value == pytest.approx(best)


def test_smooth_curve_is_the_diagonal_and_the_local_mean_of_residuals(monkeypatch: pytest.MonkeyPatch):
    draw_nothing(monkeypatch, ReliabilityDisplay)
    rng = np.random.default_rng(1)
    p = rng.uniform(0.3, 0.7, 400)
    y = rng.random(400) < 0.8 * p
    x, found = ReliabilityDisplay.from_predictions(y, p, rng=0).curves[0].smooth
    bandwidth = 1.06 * p.std() * 400**-0.2
    at = np.array([0.4, 0.5, 0.6])
    weights = np.exp(-0.5 * ((at[:, None] - p) / bandwidth) ** 2)
    expected = at + weights @ (y - p) / weights.sum(axis=1)
    np.testing.assert_allclose(np.interp(at, x, found), expected, atol=0.005)


def test_bands_hold_calibrated_models(monkeypatch: pytest.MonkeyPatch):
    """Of 200 calibrated models 160 are expected inside of 80% bands: 143 to 176 with probability 0.996."""
    draw_nothing(monkeypatch, ReliabilityDisplay)
    rng, bins, bars, paths = np.random.default_rng(0), 0, 0, 0
    bar_band = path_band = None
    for _ in range(200):
        p = rng.random(200)
        options: Any = {"n_bins": 4, "level": 0.8, "n_resamples": 99, "rng": rng}
        (curve,) = ReliabilityDisplay.from_predictions(rng.random(200) < p, p, **options).curves
        bins += not curve.outside.any()
        display = PITDisplay(rng.random(200), n_bins=5, level=0.8)
        if bar_band is None or path_band is None:  # they depend on the number of cases alone
            bar_band, path_band = display.heights()[1:], display.differences()[2:]
        heights = np.histogram(display.values, 5, (0.0, 1.0))[0] / 40.0
        bars += bool(np.all((heights >= bar_band[0]) & (heights <= bar_band[1])))
        shares = np.linspace(0.0, 1.0, 101)
        found = np.mean(display.values[:, None] <= shares, axis=0) - shares
        paths += bool(np.all((found >= path_band[0] - 1e-12) & (found <= path_band[1] + 1e-12)))
    # Counts are discrete, so that a band may hold somewhat more than it must.
    assert all(143 <= held <= 184 for held in (bins, bars, paths)), (bins, bars, paths)


@pytest.mark.parametrize(("curves", "places"), [(99, 45), (199, 15), (999, 15), (999, 50)])
def test_bands_hold_calibrated_models_also_at_more_places_than_draws_tell(curves: int, places: int) -> None:
    """Beyond the outermost draws at many places there are more others than a band leaves out."""
    rng = np.random.default_rng(0)
    for level in (0.95, 0.99):
        inside: list[float] = []
        for _ in range(100):
            low, high = envelope(rng.binomial(10_000, 0.3, (curves, places)).astype(float), level)
            others = rng.binomial(10_000, 0.3, (500, places))
            inside.append(float(np.mean(((others >= low) & (others <= high)).all(axis=1))))
        assert np.mean(inside) == pytest.approx(level, abs=0.4 * (1.0 - level))


def test_bands_are_left_by_models_that_are_wrong(monkeypatch: pytest.MonkeyPatch):
    draw_nothing(monkeypatch, ReliabilityDisplay)
    y, p = binary(600)
    (curve,) = ReliabilityDisplay.from_predictions(y, np.clip(p + 0.2, 0.0, 1.0), rng=0).curves
    assert np.all(curve.observed[curve.outside] < curve.low[curve.outside])
    assert curve.outside.sum() >= 5


CLASSES = ("ant", "bee", "cat")


@pytest.mark.parametrize(
    ("options", "words", "probs", "hits"),
    [
        ({}, ["the most probable class was right"], [[0.7, 0.5, 0.6]], [[1, 0, 1]]),
        ({"label": "bee"}, ["bee"], [[0.2, 0.5, 0.3]], [[0, 1, 0]]),
        ({"grade": "bee"}, ["bee or above"], [[0.3, 0.6, 0.9]], [[0, 1, 1]]),
        (
            {"reduce": "cumulative"},
            ["bee or above", "cat or above"],
            [[0.3, 0.6, 0.9], [0.1, 0.1, 0.6]],
            None,
        ),
        ({"reduce": "classwise"}, list(CLASSES), [[0.7, 0.4, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.6]], None),
    ],
)
def test_events_of_classes(monkeypatch: pytest.MonkeyPatch, options: Any, words: Any, probs: Any, hits: Any):
    draw_nothing(monkeypatch, ReliabilityDisplay)
    pred = wc.Categorical([[0.7, 0.2, 0.1], [0.4, 0.5, 0.1], [0.1, 0.3, 0.6]], classes=CLASSES)
    y = ["ant", "bee", "cat"]
    if not options:
        y = ["ant", "cat", "cat"]
    curves = ReliabilityDisplay.from_predictions(y, pred, n_bins=3, rng=0, **options).curves
    assert [curve.event for curve in curves] == words
    for k, curve in enumerate(curves):
        np.testing.assert_allclose(curve.predicted, np.unique(probs[k]))
        if hits is not None:
            np.testing.assert_allclose(curve.observed, np.array(hits[k])[np.argsort(probs[k])])


def test_grades_are_ordered_by_their_support(monkeypatch: pytest.MonkeyPatch):
    draw_nothing(monkeypatch, ReliabilityDisplay)
    pred = wc.Categorical([[0.1, 0.6, 0.3], [0.5, 0.3, 0.2]], support=[5.0, 1.0, 2.0])
    curves = ReliabilityDisplay.from_predictions([1.0, 5.0], pred, n_bins=2, rng=0).curves
    assert [curve.event for curve in curves] == ["2 or above", "5 or above"]
    np.testing.assert_allclose(curves[0].predicted, [0.4, 0.7])
    np.testing.assert_allclose(curves[0].observed, [0.0, 1.0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda d: d([0.0, 1.0], wc.Normal([0.0, 1.0], 1.0)),
            TypeError,
            "for predictions of classes, found Normal",
        ),
        (
            lambda d: d([0, 1], [0.1, 0.2], label=2),
            ValueError,
            "label must be one of the classes, 0, 1, found 2",
        ),
        (
            lambda d: d([0, 1], [0.1, 0.2], label=1, grade=1),
            ValueError,
            "give one of reduce, label and grade",
        ),
        (lambda d: d([0, 1], [0.1, 0.2], reduce="top"), ValueError, "reduce"),
        (
            lambda d: d([0, 1], [0.1, 0.2], result=0.3),
            TypeError,
            "result must be what calibration_test returns",
        ),
    ],
)
def test_what_a_diagram_cannot_show(call: Any, error: type[Exception], message: str):
    with pytest.raises(error, match=re.escape(message)):
        call(ReliabilityDisplay.from_predictions)


# -- PIT ---------------------------------------------------------------------------------------------


def test_values_of_normals_are_those_of_their_distribution_functions(monkeypatch: pytest.MonkeyPatch):
    draw_nothing(monkeypatch, PITDisplay)
    y = np.linspace(-2.0, 2.0, 50)
    display = PITDisplay.from_predictions(y, wc.Normal(np.zeros(50), 1.0), n_bins=5)
    u = wc.Normal(np.zeros(50), 1.0).cdf(y)
    heights, low, high = display.heights()
    np.testing.assert_allclose(heights, np.histogram(u, 5, (0.0, 1.0))[0] / 10.0)
    assert np.all(low < 1.0) and np.all(high > 1.0)  # noqa: PT018
    shares, found, _, _ = display.differences()
    np.testing.assert_allclose(found, [np.mean(u <= share) - share for share in shares])


def test_ranks_among_draws_fill_their_bars(monkeypatch: pytest.MonkeyPatch):
    """Nine draws and the outcome make ten ranks: each case is in the bar of its rank."""
    draw_nothing(monkeypatch, PITDisplay)
    rng = np.random.default_rng(0)
    draws, y = rng.normal(size=(400, 9)), rng.normal(size=400)
    display = PITDisplay.from_predictions(y, wc.Samples(draws), rng=0)
    assert display.n_bins == 10
    ranks = np.sum(draws < y[:, None], axis=1)
    np.testing.assert_allclose(display.heights()[0], np.bincount(ranks, minlength=10) / 40.0)
    assert display.what == "draws"


# -- drawing -----------------------------------------------------------------------------------------


def test_several_models_on_one_axes_differ_and_share_a_legend():
    y, p = binary(200)
    first = ReliabilityDisplay.from_predictions(y, p, name="forest", rng=0)
    assert first.ax_.get_legend() is None
    second = ReliabilityDisplay.from_predictions(y, p**2, name="boosting", rng=0, ax=first.ax_)
    assert second.ax_ is first.ax_ is second.axes_[0]
    assert names_on(first.ax_) == ["forest", "boosting"]
    one, two = Canvas(first.ax_).shown.handles
    assert one.get_color() != two.get_color()
    assert one.get_linestyle() != two.get_linestyle()
    assert one.get_marker() != two.get_marker()
    labels = [text for text in first.ax_.texts if "calibrated" in text.get_text()]
    assert len(labels) == 1, "the band is labelled once"
    first.ax_.clear()
    again = ReliabilityDisplay.from_predictions(y, p, name="alone", rng=0, ax=first.ax_)
    assert names_on(again.ax_) == [], "cleared axes show nothing"


def title_of(display: Any) -> str:
    return display.ax_.get_title(loc="left").replace("\n", " ")


@pytest.mark.usefixtures("titled")
def test_title_is_the_verdict_of_the_one_test(monkeypatch: pytest.MonkeyPatch):
    """By default, with the seed that was given; and the same cases are tested once."""
    y = np.random.default_rng(5).normal(size=60)
    pred = wc.Normal(np.full(60, 0.25), 1.0)
    result = wc.calibration_test(y, pred, rng=3)
    assert result.rejected
    assert "resamples_of_all_parts" not in result.provenance, "more sets would take long"
    display = CoverageDisplay.from_predictions(y, pred, rng=3)
    assert display.verdict == result.verdict
    assert title_of(display) == in_title(result.verdict)
    monkeypatch.setattr(base, "calibration_test", None)
    assert PITDisplay.from_predictions(y, pred, rng=3).verdict == result.verdict
    with pytest.raises(TypeError, match="not callable"):
        PITDisplay.from_predictions(y + 1e-9, pred, rng=3, test=True)


@pytest.mark.usefixtures("titled")
def test_verdicts_are_those_of_the_settings_too():
    """Draws and atoms have the same arrays, and are not the same prediction."""
    rng = np.random.default_rng(0)
    y, draws = rng.normal(size=40), rng.normal(size=(40, 3))
    found = [
        PITDisplay.from_predictions(y, wc.Samples(draws, kind=kind), rng=1).verdict
        for kind in ("draws", "atoms")
    ]
    assert found[0] != found[1]


def test_without_a_test_the_title_says_what_is_seen():
    """For many cases, or where none is wanted; and it never calls a model miscalibrated."""
    rng = np.random.default_rng(0)
    y, p = rng.normal(size=400), rng.random(400)
    off, bad = wc.Normal(np.full(400, 1.0), 1.0), np.clip(p + 0.3, 0.0, 1.0)
    seen = {
        "lie outside of the band": [
            ReliabilityDisplay.from_predictions(rng.random(400) < p, bad),
            PITDisplay.from_predictions(y, off),
            ResidualDisplay.from_predictions(y, wc.Normal(np.full(400, 2.0), 1.0 + 0.1 * p)),
        ],
        "leaves the band": [
            PITDisplay.from_predictions(y, off, kind="ecdf"),
            QuantileCalibrationDisplay.from_predictions(y, off, test=False),
        ],
        "outside of the band": [CoverageDisplay.from_predictions(y, wc.Normal(np.zeros(400), 0.3))],
        "All 20 bars lie in the band": [PITDisplay.from_predictions(y, wc.Normal(np.zeros(400), 1.0))],
        "stays in the band": [PITDisplay.from_predictions(y, wc.Normal(np.zeros(400), 1.0), kind="ecdf")],
    }
    for words, displays in seen.items():
        for display in displays:
            assert words in title_of(display), type(display)
            assert display.verdict is None
            assert "alibrated (" not in title_of(display)


def test_titles_of_several_models():
    rng = np.random.default_rng(0)
    y = rng.normal(size=60)
    result = wc.calibration_test(y, wc.Normal(np.full(60, 2.0), 1.0), rng=0, n_resamples=999)
    display = PITDisplay.from_predictions(y, wc.Normal(np.full(60, 2.0), 1.0), result=result, kind="ecdf")
    title = display.ax_.get_title(loc="left").replace("\n", " ")
    assert title.startswith("Miscalibrated (p <= ")
    assert "resamples" not in title
    assert display.verdict == result.verdict
    PITDisplay.from_predictions(y, wc.Normal(np.zeros(60), 1.0), kind="ecdf", name="B", ax=display.ax_)
    assert display.ax_.get_title(loc="left").startswith("model 1: Miscalibrated (p <= ")
    assert title_of(display).endswith("B: The curve stays in the band of calibrated models.")


def test_each_class_has_its_axes_or_shares_given_ones():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(5), 100)
    y = [rng.choice(5, p=row) for row in probs]
    apart = ReliabilityDisplay.from_predictions(y, probs, reduce="classwise", rng=0)
    assert apart.axes_.shape == (2, 3)
    assert [bool(ax.axison) for ax in apart.axes_.flat] == [True] * 5 + [False]
    _, ax = pyplot.subplots()
    together = apart.plot(ax)
    assert len(names_on(together.ax_)) == 5
    assert title_of(together).count("lie in the band") == 1, "one model, one statement"
    assert apart.finding.endswith("bins lie in the band of calibrated models, one event at a time.")
    of_one = ReliabilityDisplay.computed(y, probs, label=0, test=False, rng=0)
    assert of_one.finding.endswith("bins lie in the band of calibrated models.")


def test_themes_follow_the_block_and_the_paper():
    y, p = binary(60)
    with style("dark"):
        dark = ReliabilityDisplay.from_predictions(y, p, rng=0)
    light = ReliabilityDisplay.from_predictions(y, p, rng=0)
    colours = [display.ax_.yaxis.label.get_color() for display in (dark, light)]
    assert colours[0] > "#d" > colours[1]
    later = ReliabilityDisplay.from_predictions(y, p, rng=0, ax=dark.ax_)
    assert later.ax_.yaxis.label.get_color() == colours[0], "the axes are still dark"
    with pytest.raises(ValueError, match="theme"), style("sepia"):
        pass


def test_svg_has_text_and_the_colours_of_its_page():
    y, p = binary(60)
    picture = to_svg(ReliabilityDisplay.from_predictions(y, p, rng=0).figure_)
    assert "how often it happened" in picture
    assert "currentColor" in picture
    assert "var(--wc-band" in picture
    assert "#ffffff" not in picture
    assert "http-equiv" not in picture


def test_draws_beside_densities_are_no_reason_to_call_all_of_them_draws():
    y, draws = np.zeros(30), np.random.default_rng(0).normal(size=(30, 9))
    display = PITDisplay.from_predictions(y, wc.Samples(draws), name="draws", rng=0)
    assert "in its draws" in display.ax_.get_xlabel()
    PITDisplay.from_predictions(y, wc.Normal(np.zeros(30), 1.0), name="normal", ax=display.ax_, rng=0)
    PITDisplay.from_predictions(y, wc.Samples(draws), name="more", ax=display.ax_, rng=0)
    assert "in its prediction" in display.ax_.get_xlabel()
    small = " ".join(text.get_text() for text in display.ax_.texts).replace("\n", " ")
    assert "probability integral transform or ranks among draws" in small
    assert small.count("cases;") == 1


@pytest.mark.parametrize("first", [0, 1])
def test_histograms_on_the_same_axes_have_as_many_bars_and_one_band(first):
    rng = np.random.default_rng(3)
    y = rng.normal(size=400)
    narrow = wc.Samples(0.6 * rng.normal(size=(400, 20)))
    models = [("normal", wc.Normal(np.zeros(400), 1.0)), ("draws", narrow)]
    ax = None
    for name, pred in (models[first], models[1 - first]):
        display = PITDisplay.from_predictions(y, pred, name=name, test=False, ax=ax, rng=0)
        ax = display.ax_
    assert {len(one.get_data().values) for one in ax.patches} == {7}, "21 ranks, three of them in a bar"
    assert len(ax.collections) == 1, "a band that is that of both"
    assert "7 bars" in " ".join(text.get_text() for text in ax.texts).replace("\n", " ")
    title = ax.get_title(loc="left")
    assert "normal: All 7 bars" in title, title
    assert "draws: 5 of 7 bars" in title, "what was seen where it was alone"


def test_grades_are_ordered_by_their_support_not_by_their_columns():
    rng = np.random.default_rng(2)
    probs, names = rng.dirichlet(np.ones(3), 50), np.array(["low", "mid", "high"])
    y = names[rng.integers(0, 3, 50)]
    columns = [2, 0, 1]  # as scikit-learn has them: high, low, mid
    one, other = (
        ReliabilityDisplay.computed(
            y,
            wc.Categorical(probs[:, order], classes=names[order], support=np.array([1, 2, 3])[order]),
            test=False,
        )
        for order in ([0, 1, 2], columns)
    )
    assert [curve.event for curve in other.curves] == ["mid or above", "high or above"]
    for a, b in zip(one.curves, other.curves, strict=True):
        np.testing.assert_allclose(b.predicted, a.predicted)
        np.testing.assert_allclose(b.observed, a.observed)


def test_spreads_that_differ_by_rounding_are_one_spread():
    mean = np.linspace(-3.0, 3.0, 60)
    levels = [0.1, 0.25, 0.5, 0.75, 0.9]
    pred = wc.Quantiles(levels, wc.Normal(mean, np.full(60, 0.1)).quantile(levels))
    shown = ResidualDisplay.computed(mean + 0.01, pred, test=False)
    assert np.ptp(pred.quantile(0.75) - pred.quantile(0.25)) > 0.0
    assert shown.against == "mean"


def test_residuals_that_are_drawn_at_the_edge_are_counted():
    mean = np.linspace(-3.0, 3.0, 60)
    for far, told in ((0, None), (1, "1 residual"), (2, "2 residuals")):
        y = np.where(np.arange(60) < far, mean + 9.0, mean)
        ax = ResidualDisplay.from_predictions(y, wc.Normal(mean, np.ones(60)), test=False).ax_
        text = " ".join(" ".join(each.get_text() for each in ax.figure.findobj(Text)).split())
        assert ("at the edge" in text) == bool(told)
        assert not told or f"; {told} beyond 4 drawn at the edge." in text


# -- names side by side ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        [f"A rather long class name that people really have, number {k}" for k in range(12)],
        [f"a long beginning that all names have, {k}, and a long end that all of them have" for k in "xyz"],
        [f"{k}: a long name with its own beginning" for k in range(3)],
        ["a" * 40 + k + "b" * 40 + other + "c" * 40 for k in "12" for other in "34"],
        ["short", "another one", "a name that is so long that it does not fit"],
    ],
)
def test_names_that_are_cut_side_by_side_stay_different(names: list[str]) -> None:
    cut = cut_apart(names, 26)
    assert len(set(cut)) == len(names)
    assert all(len(text) <= 26 for text in cut)
    assert [text for text in cut if "…" not in text] == [name for name in names if len(name) <= 26]


def test_panels_of_classes_with_long_names_are_told_apart() -> None:
    names = [f"A rather long class name that people really have, number {k}" for k in range(4)]
    y = np.array(names * 10)
    pred = wc.Categorical(np.full((40, 4), 0.25), classes=names)
    display = ReliabilityDisplay.from_predictions(y, pred, reduce="classwise", test=False, rng=0)
    titles = [ax.get_title(loc="left") for ax in display.axes_.flat]
    assert [title[-8:] for title in titles] == [f"number {k}" for k in range(4)]
