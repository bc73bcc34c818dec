"""Displays of coverage, residuals and results: their data, and what they say."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Annotation
from scipy import stats

import wellcal as wc
from wellcal.displays import (
    ComparisonDisplay,
    CoverageDisplay,
    MonitorDisplay,
    NullDisplay,
    RecalibrationDisplay,
    ResidualDisplay,
    WitnessDisplay,
    WitnessMapDisplay,
)

RNG = np.random.default_rng(0)
N = 120
MU, SD = RNG.normal(size=N), RNG.uniform(0.5, 2.0, N)
Y = RNG.normal(MU, SD)
PRED, NARROW = wc.Normal(MU, SD), wc.Normal(MU, 0.5 * SD)


def texts(display: Any) -> str:
    ax = display.ax_
    parts = [ax.get_title(loc="left"), *(text.get_text() for text in ax.texts)]
    return " | ".join(parts).replace("\n", " ")


# -- coverage ----------------------------------------------------------------------------------------


def test_coverage_is_that_of_the_intervals():
    display = CoverageDisplay.from_predictions(Y, NARROW, name="narrow")
    found = wc.interval_coverage(Y, NARROW, levels=display.levels)
    np.testing.assert_allclose(display.coverage, found.coverage)
    assert np.all(display.coverage[6:] < display.low[6:])
    again = CoverageDisplay.from_result(wc.interval_coverage(Y, PRED), name="right", ax=display.ax_)
    np.testing.assert_allclose(again.coverage, wc.interval_coverage(Y, PRED).coverage)
    assert {"narrow", "right"} <= {text.get_text() for text in again.ax_.texts}


def test_coverage_of_counts_and_draws_is_what_is_expected_on_average(monkeypatch: pytest.MonkeyPatch):
    """Intervals of counts hold more than they promise, those of few draws less: as much as is expected."""
    monkeypatch.setattr(CoverageDisplay, "plot", lambda self, ax=None: self)
    rng, n = np.random.default_rng(1), 4000
    draws = rng.normal(size=(n, 5))
    for y, pred in (
        (rng.poisson(0.7, n), wc.Poisson(np.full(n, 0.7))),
        (rng.normal(size=n), wc.Samples(draws)),
    ):
        found = CoverageDisplay.from_predictions(y, pred, rng=0)
        assert np.all((found.coverage >= found.low) & (found.coverage <= found.high))
        assert np.all(found.high - found.low < 0.06)


def test_the_picture_of_counts_shows_the_intervals_of_the_table():
    rng = np.random.default_rng(0)
    mu = rng.gamma(4.0, 0.6, 300)
    y, pred = rng.poisson(mu * rng.gamma(1.5, 1 / 1.5, 300)), wc.Poisson(mu)
    table = wc.interval_coverage(y, pred)
    low, high = stats.poisson.ppf(0.05, mu), stats.poisson.ppf(0.95, mu)
    held = np.mean((low <= y) & (y <= high))
    expected = np.mean(stats.poisson.cdf(high, mu) - stats.poisson.cdf(low - 1, mu))
    told = f"promise 90% ({100 * expected:.1f}% if calibrated) held {100 * held:.3g}% of the outcomes"
    for shown in (
        CoverageDisplay.from_predictions(y, pred, levels=table.levels, test=False),
        CoverageDisplay.from_result(table),
    ):
        np.testing.assert_allclose(shown.coverage, table.coverage)
        np.testing.assert_allclose(
            shown.ax_.lines[-1].get_xydata(), np.stack([table.expected, table.coverage], 1)
        )
        assert told in shown.finding
        assert "at what they hold if calibrated" in texts(shown)


def test_coverage_of_quantiles_is_at_their_own_intervals(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CoverageDisplay, "plot", lambda self, ax=None: self)
    levels = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    values = MU[:, None] + SD[:, None] * stats.norm.ppf(levels)
    found = CoverageDisplay.from_predictions(Y, wc.Quantiles(levels, values), rng=0)
    np.testing.assert_allclose(found.levels, [0.5, 0.8])
    inside = [np.mean((values[:, i] < Y) & (values[:, 4 - i] >= Y)) for i in (1, 0)]
    np.testing.assert_allclose(found.coverage, inside)


# -- residuals ---------------------------------------------------------------------------------------


def test_residuals_of_normals_and_their_quantiles():
    display = ResidualDisplay.from_predictions(Y, PRED, n_bins=4, name="normals")
    np.testing.assert_allclose(display.residuals, (Y - MU) / SD)
    np.testing.assert_allclose(display.predicted, SD)
    x, lines, low, high = display.lines()
    order = np.argsort(SD).reshape(4, 30)
    inside = np.sort(((Y - MU) / SD)[order], axis=1)
    np.testing.assert_allclose(x, SD[order].mean(axis=1))
    np.testing.assert_allclose(lines, inside[:, [2, 15, 27]].T)  # of 30: the 3rd, 16th and 28th
    assert np.all((low < lines) & (lines < high))
    assert display.ax_.get_xlabel() == "predicted spread"


def test_bands_of_residuals_hold_calibrated_models():
    """Of 100 models 80 or more are expected inside of 80% bands: less than 67 have odds of 1e-3."""
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(100):
        display = ResidualDisplay(rng.random(100), rng.normal(size=100), n_bins=4, level=0.8)
        _, lines, low, high = display.lines()
        held += bool(np.all((lines >= low) & (lines <= high)))
    assert 67 <= held <= 97


def test_equal_spreads_are_shown_against_the_mean(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ResidualDisplay, "plot", lambda self, ax=None: self)
    display = ResidualDisplay.from_predictions(Y, wc.Normal(MU, np.ones(N)))
    assert display.against == "mean"
    np.testing.assert_allclose(display.predicted, MU)


@pytest.mark.parametrize("against", ["spread", "mean"])
def test_bands_of_residuals_hold_calibrated_draws(against: str):
    """Bins by few draws alone would be left by half of the models, or nearly all of them by their means.

    Of 40 models 38 or more are expected inside of 95% bands: less than 33 have odds of 2e-3.
    """
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(40):
        together = rng.uniform(0.8, 1.2, (400, 1)) * rng.normal(size=(400, 6))
        draws = wc.Samples(together[:, 1:], axis=1)
        display = ResidualDisplay.computed(together[:, 0], draws, against=against, n_bins=6, test=False)
        _, lines, low, high = display.lines()
        held += bool(np.all((lines >= low) & (lines <= high)))
    assert held >= 33
    told = {"spread": "two draws", "mean": "one draw"}[against]
    assert display.words == f"predicted {against}, as told by {told}"
    if against == "mean":
        assert np.all(np.sum(together[:, 1:] == display.predicted[:, None], axis=1) == 1)


@pytest.mark.parametrize("factor", [0.4, 2.5])
def test_draws_of_a_wrong_spread_have_no_trend_of_the_centre(factor: float):
    """Against the mean of draws and outcome, outcomes that are far off pull their cases along."""
    rng = np.random.default_rng(1)
    mean = 0.5 * rng.normal(size=4000)
    pred = wc.Samples(mean[:, None] + rng.normal(size=(4000, 4)))
    y = mean + factor * rng.normal(size=4000)
    display = ResidualDisplay.computed(y, pred, against="mean", test=False)
    _, lines, low, high = display.lines()
    outside = (lines < low) | (lines > high)
    assert np.all(np.abs(lines[1]) < 0.2)
    assert outside[[0, 2]].all(), "an error of spreads is seen as one"
    assert np.all((lines[2] > high[2]) == (factor > 1.0))


def test_ranks_do_not_depend_on_the_order_of_draws():
    """Sorted draws are draws: the first of them is no draw taken at random."""
    rng = np.random.default_rng(2)
    together = rng.normal(size=(2000, 6))
    pred = wc.Samples(np.sort(together[:, 1:], axis=1))
    for against in ("mean", "spread"):
        shown = ResidualDisplay.computed(together[:, 0], pred, against=against, test=False)
        assert stats.kstest(shown.residuals, "norm").pvalue > 0.01
        assert abs(np.corrcoef(shown.predicted, shown.residuals)[0, 1]) < 0.07


@pytest.mark.parametrize(
    ("draws", "against", "axis", "note"),
    [
        (1, "mean", "mean of draws and outcome", "among 1 draw, too few to take some for the axis"),
        (2, "mean", "predicted mean, as told by one draw", "among 1 other draw;"),
        (2, "spread", "spread of draws and outcome", "among 2 draws, too few to take some for the axis"),
        (3, "spread", "predicted spread, as told by two draws", "among 1 other draw;"),
        (9, "spread", "predicted spread, as told by half of the draws", "among 5 other draws;"),
    ],
)
def test_few_draws_say_what_they_are_drawn_against(draws: int, against: str, axis: str, note: str):
    values = np.random.default_rng(0).normal(size=(N, draws))
    pred = wc.Samples(values, axis=1)
    shown = ResidualDisplay.from_predictions(Y, pred, against=against, test=False)
    assert shown.ax_.get_xlabel() == axis
    assert shown.ax_.get_ylabel() == "residual, as a normal score"
    small = " ".join(text.get_text() for text in shown.ax_.texts).replace("\n", " ")
    assert f"normal score: of the rank of the outcome {note}" in small


def test_only_residuals_of_normals_are_in_predicted_spreads():
    """Of exponentials, the normal score of an outcome is another number than its distance in spreads."""
    shown = ResidualDisplay.from_predictions(Y, PRED, test=False, name="normal")
    np.testing.assert_allclose(shown.residuals, (Y - PRED.mean()) / PRED.variance() ** 0.5, atol=1e-6)
    assert shown.ax_.get_ylabel() == "residual, in predicted spreads"
    pred = wc.Gamma(np.ones(N), np.exp(MU))
    with_gamma = ResidualDisplay.from_predictions(np.abs(Y), pred, test=False, name="g", ax=shown.ax_)
    assert with_gamma.ax_.get_ylabel() == "residual, as a normal score"
    small = " ".join(text.get_text() for text in shown.ax_.texts).replace("\n", " ")
    assert "normal score: of the share of its prediction that lies below the outcome;" in small


@pytest.mark.parametrize("df", [1.0, 1.5, np.linspace(1.1, 6.0, N)])
@pytest.mark.filterwarnings("error")
def test_residuals_without_moments_are_shown_by_quartiles(df: Any):
    heavy = wc.StudentT(df, MU, SD)
    by_spread = ResidualDisplay.computed(Y, heavy, test=False)
    assert (by_spread.against, by_spread.words) == ("spread", "predicted spread, by quartiles")
    quartiles = stats.t.ppf(0.75, df) - stats.t.ppf(0.25, df)
    np.testing.assert_allclose(by_spread.predicted, quartiles * SD / (2.0 * stats.norm.ppf(0.75)))
    by_mean = ResidualDisplay.computed(Y, heavy, against="mean", test=False)
    np.testing.assert_allclose(by_mean.predicted, MU, atol=1e-12)
    assert by_mean.words == ("predicted median" if np.min(df) == 1.0 else "predicted mean")


def test_residuals_of_quantiles_need_no_quartiles():
    ends = np.stack([MU - SD, MU + SD], axis=1)
    shown = ResidualDisplay.computed(Y, wc.Quantiles([0.4, 0.7], ends), test=False)
    np.testing.assert_allclose(shown.predicted, 2.0 * SD)
    assert shown.words == "distance from the 40% to the 70% quantile"
    shown = ResidualDisplay.computed(Y, wc.Quantiles([0.9], ends[:, 1:]), test=False)
    np.testing.assert_allclose(shown.predicted, MU + SD)
    assert (shown.against, shown.words) == ("mean", "predicted 90% quantile")


def test_residuals_of_two_models_are_against_the_same():
    equal = wc.Normal(MU, np.ones(N))
    shown = ResidualDisplay.from_predictions(Y, PRED, test=False)
    with pytest.raises(ValueError, match=r"against the predicted spread, and .* with against=\"mean\""):
        ResidualDisplay.from_predictions(Y, equal, test=False, ax=shown.ax_)
    shown = ResidualDisplay.from_predictions(Y, PRED, against="mean", test=False)
    both = ResidualDisplay.from_predictions(Y, equal, against="mean", test=False, ax=shown.ax_)
    assert both.ax_.get_xlabel() == "predicted mean"
    draws = wc.Samples(Y[:, None] + np.arange(3.0), axis=1)
    three = ResidualDisplay.from_predictions(Y, draws, against="mean", test=False, ax=shown.ax_)
    assert three.ax_.get_xlabel() == "predicted mean or predicted mean, as told by one draw"


def band_ends(display: Any) -> list[tuple[float, float]]:
    """Where the bands of the middle line begin and end."""
    corners = [one.get_paths()[0].vertices for one in display.ax_.collections if "Poly" in type(one).__name__]
    return [(min(x), max(x)) for x, y in (part.T for part in corners) if min(y) < 0.0 < max(y)]


def test_every_model_has_bands_of_residuals():
    shown = ResidualDisplay.from_predictions(Y, PRED, against="mean", test=False)
    far = ResidualDisplay.from_predictions(
        Y, wc.Normal(MU + 9.0, SD), against="mean", test=False, ax=shown.ax_
    )
    for display, ends in zip((shown, far), band_ends(far), strict=True):
        np.testing.assert_allclose(ends, display.lines()[0][[0, -1]])


def test_equal_predictions_have_a_band_that_is_seen():
    for place, ends in ((3.0, (2.94, 3.06)), (0.0, (-0.02, 0.02))):
        shown = ResidualDisplay.from_predictions(Y, wc.Normal(np.full(N, place), np.ones(N)), test=False)
        np.testing.assert_allclose(band_ends(shown), [ends])
    shown = ResidualDisplay.from_predictions(Y, PRED, n_bins=1, test=False)
    np.testing.assert_allclose(np.ptp(band_ends(shown)), np.ptp(SD))


# -- results -----------------------------------------------------------------------------------------


def test_null_and_statistic():
    found = wc.calibration_test(Y, PRED, method="exact", n_resamples=99, keep_null=True, rng=0)
    display = NullDisplay.from_result(found, name="right")
    assert display.null is not None and np.array_equal(display.null, found.null)  # noqa: PT018
    assert any(np.array_equal(line.get_xdata(), [found.statistic] * 2) for line in display.ax_.lines)
    assert texts(display).startswith(found.verdict.split(",")[0].split(")")[0])
    assert "how far outcomes are" in display.ax_.get_xlabel()
    assert "n SKCE_u" in texts(display)
    with pytest.raises(ValueError, match=r"from_predictions\(y, pred\)"):
        NullDisplay.from_result(replace(found, null=None))  # it does not know its cases either


def test_a_null_that_was_not_kept_is_drawn_again():
    found = wc.calibration_test(Y, NARROW, method="exact", n_resamples=99, rng=5)
    display = NullDisplay.from_result(found)
    assert display.statistic == pytest.approx(found.statistic)
    assert len(display.null) == 99
    direct = NullDisplay.from_predictions(Y, NARROW, method="exact", n_resamples=99, rng=5)
    assert direct.statistic == pytest.approx(found.statistic)
    with pytest.raises(ValueError, match="'pearson' draws none; call"):
        NullDisplay.from_result(wc.calibration_test(Y, NARROW, method="pearson"))


def test_the_null_that_was_tested_is_drawn_also_without_all_pairs():
    rng = np.random.default_rng(4)
    mu = rng.normal(size=300)
    found = wc.calibration_test(rng.normal(mu), wc.Normal(mu, np.ones(300)))
    assert "low rank" in found.provenance["chosen"]
    display = NullDisplay.from_result(found)
    assert display.statistic == found.statistic
    assert np.mean(display.null >= display.statistic) == pytest.approx(found.pvalue, abs=2e-3)


def test_a_statistic_far_away_leaves_the_null_its_shape():
    """An arrow leads there, and the null fills the better part of the axis."""
    null = np.random.default_rng(0).chisquare(3, 500)
    for statistic, words in ((12.0, "this model"), (90.0, "this model, at 90: off this scale")):
        ax = NullDisplay(null, statistic, "n SKCE_u").plot().ax_
        low, high = ax.get_xlim()
        assert np.ptp(np.quantile(null, [0.01, 0.99])) > 0.4 * (high - low)
        assert words in {text.get_text() for text in ax.texts}
    limit = NullDisplay(null, 300.0, "-log10 of the smallest weighted p-value").plot().ax_
    assert "this model: off this scale" in {text.get_text() for text in limit.texts}
    beyond = NullDisplay(null, 900.0, "n SKCE_u").plot().ax_  # which is no logarithm
    assert "this model, at 900: off this scale" in {text.get_text() for text in beyond.texts}


def bars_of(ax):
    """Shares that are drawn of each null."""
    return [float(np.nansum(patch.get_data().values)) for patch in ax.patches if hasattr(patch, "get_data")]


@pytest.mark.parametrize(("statistic", "beyond"), [(0.5, 4), (1.5, 3), (60.0, 4)])
def test_draws_of_a_null_are_drawn_or_beyond_the_axis(statistic, beyond):
    """What lies between the ends of most draws and those of the axis is neither far nor left out."""
    null = np.concatenate([np.linspace(-1.0, 1.0, 1994), [1.05, 1.4, 3.9, 40.0, -1.04, -30.0]])
    display = NullDisplay(null, statistic).plot()
    low, high = display.ax_.get_xlim()
    assert np.sum((null < low) | (null > high)) == beyond
    assert f"drawn from the predictions, {beyond} of them beyond the axis" in texts(display)
    assert bars_of(display.ax_) == [pytest.approx(1.0 - beyond / 2000)]


def test_a_wider_axis_shows_more_draws_of_the_models_before():
    null = np.concatenate([np.linspace(-1.0, 1.0, 499), [6.0]])
    ax = NullDisplay(null, 0.5, name="first").plot().ax_
    assert bars_of(ax) == [pytest.approx(0.998)]
    NullDisplay(6.0 * null[:-1], 3.0, name="wide").plot(ax)
    assert bars_of(ax) == [pytest.approx(1.0), pytest.approx(1.0)]


def test_differences_of_models():
    models = {"right": PRED, "narrow": NARROW, "flat": wc.Normal(MU, np.ones(N))}
    found = wc.compare(Y, models, rng=0, n_resamples=199)
    display = ComparisonDisplay.from_result(found, measure="NLL")
    scores = {name: float(wc.nll(Y, pred)) for name, pred in models.items()}
    order = sorted(models, key=lambda name: scores[name])
    assert display.rows == tuple(f"{name} - {order[0]}" for name in order[1:]), "one row a model"
    np.testing.assert_allclose(display.values, [scores[name] - scores[order[0]] for name in order[1:]])
    given = ComparisonDisplay.from_result(found, measure="NLL", against="narrow")
    assert set(given.rows) == {"right - narrow", "flat - narrow"}
    with pytest.raises(ValueError, match="against"):
        ComparisonDisplay.from_result(found, against="beauty")
    assert all(
        low < value < high for low, value, high in zip(display.low, display.values, display.high, strict=True)
    )
    assert texts(display).startswith(found.verdict[:30])
    clearest = ComparisonDisplay.from_result(found)
    assert max(clearest.low) > 0, "the default measure shows what the verdict says"
    with pytest.raises(ValueError, match="measure"):
        ComparisonDisplay.from_result(found, measure="beauty")


def test_groups_of_a_witness():
    found = wc.witness(Y + 1.0, PRED, rng=0, n_resamples=99)
    display = WitnessDisplay.from_result(found, most=2)
    assert display.rows == tuple(group.statement for group in found.groups[:2])
    assert display.statistics == tuple(group.statistic for group in found.groups[:2])
    assert "Neither of the 2 groups that are shown follows" in texts(display)
    places = WitnessMapDisplay.from_result(found)
    np.testing.assert_allclose(places.predicted, found.locations[0].mean())
    np.testing.assert_array_equal(places.outside, found.pvalues <= 0.05)
    assert sum(len(drawn.get_offsets()) for drawn in places.ax_.collections) == len(found.values)


def test_trace_of_a_monitor():
    monitor = wc.Monitor(rng=0, history=100)
    monitor.update(Y + 2.0 * SD, PRED)
    display = MonitorDisplay.from_result(monitor, name="shifted")
    assert display.cases[0] == 21 and display.cases[-1] == N  # noqa: PT018
    np.testing.assert_allclose(10.0**display.log_evidence, monitor.history)
    assert texts(display).startswith("Miscalibrated (p ")
    told = MonitorDisplay.from_result(monitor, change=monitor.change(rng=0, n_resamples=19))
    assert "standard deviations too high" in texts(told), "the drift is in the title"
    with pytest.raises(ValueError, match="no history"):
        MonitorDisplay.from_result(wc.Monitor())


def test_before_and_after_recalibration():
    found = wc.recalibration.cross_fit(Y, NARROW, rng=0, n_resamples=99, folds=2, method="exact")
    display = RecalibrationDisplay.from_result(found, Y, NARROW)
    np.testing.assert_allclose(display.before.values, NARROW.cdf(Y))
    np.testing.assert_allclose(display.after.values, found.predictions.cdf(Y))
    assert texts(display).startswith("before: Miscalibrated (p ")
    assert ". after: No miscalibration found (p = " in texts(display)
    assert display.plot().ax_ is not display.before.figure_


@pytest.mark.parametrize(
    "display",
    [CoverageDisplay, NullDisplay, ComparisonDisplay, WitnessDisplay, WitnessMapDisplay, MonitorDisplay],
    ids=lambda display: display.__name__,
)
def test_other_results_are_refused(display: Any):
    with pytest.raises(TypeError, match=re.escape("result must be ")):
        display.from_result(0.3)
    with pytest.raises(TypeError, match="result must be what cross_fit returns"):
        RecalibrationDisplay.from_result(0.3, Y, PRED)


def test_a_comparison_shows_the_measure_that_shows_most_of_what_its_title_says():
    rng = np.random.default_rng(11)
    mu = 2.0 * rng.normal(size=400)
    y = mu + 1.3 * rng.normal(size=400)
    one = np.ones(400)
    models = {"a": wc.Normal(mu, one), "b": wc.Normal(mu + 0.5, 1.5 * one), "c": wc.Laplace(mu, 0.5 * one)}
    found = wc.compare(y, models)
    assert [(pair.first, pair.second) for pair in found.shown] == [("a", "c"), ("b", "c")]
    display = ComparisonDisplay.from_result(found)  # the SKCE of a and c is clearest, and that of b is not
    assert (display.measure, display.rows) == ("centre and spread", ("b - a", "c - a"))
    assert [low > 0.0 for low in display.low] == [False, True]
    assert display.by_others == ("b - c is shown, too",)
    assert found.measure == display.measure
    given = ComparisonDisplay.from_result(found, measure="SKCE")
    assert given.by_others == ("b - c is shown by the error in centre and spread",)


def test_several_models_in_one_null_distribution_have_their_names_and_room():
    null = np.random.default_rng(0).normal(size=500)
    ax = NullDisplay(null, 1.0, name="near").plot().ax_
    before = ax.get_xlim()
    for name, statistic in (("far", 80.0), ("farther", 90.0)):
        NullDisplay(null / 4.0, statistic, name=name).plot(ax)
    words = {text.get_text(): text.xy[1] for text in ax.texts if isinstance(text, Annotation)}
    told = ["near", "far, at 80: off this scale", "farther, at 90: off this scale"]
    assert set(told) <= set(words)
    assert any(text.startswith("500 sets of targets") for text in words), "of all models, not of the last"
    heights = [words[text] for text in told]
    assert min(-np.diff(heights)) > 0.1
    assert ax.get_xlim()[0] <= before[0]
    assert ax.get_xlim()[1] >= before[1]
