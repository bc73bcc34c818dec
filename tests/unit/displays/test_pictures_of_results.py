"""Every result has a picture, or says why not; pictures of vectors, segments, tolerances and plans."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import special, stats

import wellcal as wc
from wellcal import displays
from wellcal.displays import (
    CoordinatesDisplay,
    CorrelationsDisplay,
    PowerDisplay,
    SegmentsDisplay,
    ToleranceDisplay,
    WitnessDisplay,
)
from wellcal.displays.naming import Box
from wellcal.measures.presentation import Presentable
from wellcal.reporting import ModelReport, Report
from wellcal.reporting.pictures import IN_WORDS, pictures
from wellcal.reporting.segmenting import segments_alone

RNG = np.random.default_rng(0)
N = 80
MU = RNG.normal(size=N)
Y = RNG.normal(MU, 1.0)
PRED = wc.Normal(MU, 1.0)
P = RNG.dirichlet(np.ones(3), N)
LABELS = (P.cumsum(axis=1) < RNG.random((N, 1))).sum(axis=1)
VECTORS = RNG.normal(size=(N, 2))


WITHOUT_CASES = {"tolerance", "discrepancy", "power"}
"""Pictures that need no more than what a result says."""


def results(kind: type[Presentable]) -> set[type[Presentable]]:
    found = {one for child in kind.__subclasses__() for one in results(child) | {child}}
    return {one for one in found if one.__module__.startswith("wellcal.")}


def test_every_result_has_pictures_or_says_why_not() -> None:
    assert {Report, ModelReport} <= results(Presentable)
    without = {kind for kind in results(Presentable) if pictures.find(kind) is None}
    assert without == set(IN_WORDS)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("reliability", lambda: wc.ece(LABELS, P)),
        ("reliability", lambda: wc.mce(LABELS, P)),
        ("reliability", lambda: wc.smooth_ece(LABELS, P, reduce="confidence")),
        ("reliability", lambda: wc.brier(LABELS, P)),
        ("reliability", lambda: wc.mmce(LABELS, P)),
        ("pit", lambda: wc.crps(Y, PRED)),
        ("pit", lambda: wc.nll(y=Y, pred=PRED)),
        ("pit", lambda: wc.mse(Y, PRED)),
        ("pit", lambda: wc.ucme(Y, PRED, locations=3)),
        ("histogram", lambda: wc.crps(Y, wc.Samples(RNG.normal(size=(N, 5))))),
        ("histogram", lambda: wc.kce(Y, wc.Samples(RNG.normal(size=(N, 5))))),
        ("coordinates", lambda: wc.energy_score(VECTORS, wc.DiagonalNormal(VECTORS, np.ones((N, 2))))),
        ("tolerance", lambda: wc.equivalence_test(Y, PRED, tolerance=0.1)),
        ("discrepancy", lambda: wc.local_discrepancy(Y, PRED)),
        (
            "power",
            lambda: wc.PowerPlan(9, 8, 9, 0.8, 0.05, "all is wrong", "auto", 199, 20, 99, ((9, 20, 16),)),
        ),
    ],
)
def test_results_have_the_picture_that_tells_most(name: str, make: Any) -> None:
    found = make()
    assert next(iter(found.figures)) == name
    stored = type(found).from_json(found.to_json()).figures
    assert list(stored) == [name] * (name in WITHOUT_CASES), "a stored result does not know its cases"


@pytest.mark.usefixtures("titled")
def test_pictures_of_clustered_cases_run_no_test_of_independent_ones() -> None:
    groups = np.repeat(np.arange(40), 2)
    found = wc.equivalence_test(Y + 1.0, PRED, tolerance=0.1, groups=groups)
    assert found.figures["pit"].display.verdict is None
    alone = wc.equivalence_test(Y + 1.0, PRED, tolerance=0.1)
    assert alone.figures["pit"].display.verdict.startswith("Miscalibrated (p ")


def test_what_an_estimate_remembers_is_what_it_was_made_from() -> None:
    y, p = LABELS.copy(), P.copy()
    found = wc.ece(y, p, reduce="classwise")
    y[:], p[:] = 0, 1.0 / 3.0
    display: Any = found.figures["reliability"].display
    assert len(display.curves) == 3
    assert display.curves[0].observed.mean() < 1.0
    assert wc.crps(Y, PRED, weights=np.ones(N)).figures == {}


@pytest.mark.parametrize("library", [np.array, torch.tensor, list], ids=["NumPy", "PyTorch", "lists"])
def test_what_was_given_may_be_changed_later(library: Any) -> None:
    y, mu, sigma = (library(array.tolist()) for array in (Y, MU, np.ones(N)))
    found = wc.crps(y, (mu, sigma))
    y[0] = mu[0] = sigma[0] = 9.0
    targets, (means, spreads) = found.given
    assert (float(targets[0]), float(means[0]), float(spreads[0])) == pytest.approx((Y[0], MU[0], 1.0))


def test_what_an_estimate_remembers_stays_where_it_is() -> None:
    """What is stored, and what travels to other processes, are numbers."""
    p = np.linspace(0.01, 0.99, 2000)
    for found in (wc.ece(p > 0.5, p), wc.brier(p > 0.5, p), wc.crps(Y, wc.Samples(MU[:, None] + [0.0, 1.0]))):
        assert found.given is not None
        assert len(found.to_json()) < 2000
        sent = pickle.dumps(found)
        assert len(sent) < 2000
        assert pickle.loads(sent) == found
        assert pickle.loads(sent).figures == {}


# -- vectors -----------------------------------------------------------------------------------------


def test_ranks_of_vectors_are_those_of_their_distributions() -> None:
    """Among many draws a rank is a value of the distribution function, of chi-squared for distances."""
    y = np.random.default_rng(1).normal(size=(400, 2))
    display = CoordinatesDisplay.from_predictions(
        y, wc.DiagonalNormal(np.zeros((400, 2)), np.ones((400, 2))), rng=0
    )
    assert display.values.shape == (400, 2)
    assert np.abs(display.values - stats.norm.cdf(y)).max() < 0.25
    far = stats.chi2.cdf((y**2).sum(axis=1), 2)
    assert np.abs(display.together - far).max() < 0.3
    assert np.abs(np.mean(display.together - far)) < 0.02
    assert not display.outside().any()
    assert display.finding == "All 3 curves stay in the band of calibrated models."


def test_distances_are_in_units_of_the_covariance() -> None:
    """Plain distances would call an outcome across the correlation near that lies far out, and vice versa."""
    rng, n = np.random.default_rng(4), 200
    covariance = np.array([[1.0, 0.95], [0.95, 1.0]])
    y = rng.multivariate_normal(np.zeros(2), covariance, n)
    pred = wc.MultivariateNormal(np.zeros((n, 2)), np.broadcast_to(covariance, (n, 2, 2)))
    display = CoordinatesDisplay.from_predictions(y, pred, rng=0)
    far = stats.chi2.cdf(np.sum(y * np.linalg.solve(covariance, y.T).T, axis=1), 2)
    assert np.abs(display.together - far).mean() < 0.08
    few = wc.Samples(rng.multivariate_normal(np.zeros(2), covariance, (n, 3)))
    alone = CoordinatesDisplay.from_predictions(y, few, rng=0)
    assert alone.n_draws == 3, "too few for a covariance"
    assert not alone.outside().any()


def test_only_distances_show_a_wrong_correlation() -> None:
    rng = np.random.default_rng(2)
    y = rng.normal(size=(400, 2)) @ np.array([[1.0, 0.9], [0.0, np.sqrt(1 - 0.81)]])
    pred = wc.DiagonalNormal(np.zeros((400, 2)), np.ones((400, 2)))
    assert CoordinatesDisplay.from_predictions(y, pred, rng=0).outside().tolist() == [False, False, True]
    draws = wc.Samples(rng.normal(size=(400, 30, 2)))
    display = CoordinatesDisplay.from_predictions(y, draws, rng=0, name="draws")
    assert display.outside().tolist() == [False, False, True]
    assert display.n_draws == 30
    with pytest.raises(TypeError, match="predictions of vectors, found Normal"):
        CoordinatesDisplay.from_predictions(Y, PRED)
    with pytest.raises(ValueError, match="level"):
        CoordinatesDisplay.from_predictions(y, pred, level=-1.0)


def test_of_many_coordinates_the_farthest_are_drawn_and_models_share_axes() -> None:
    y = np.random.default_rng(3).normal(size=(100, 9)) * np.r_[np.ones(8), 3.0]
    pred = wc.DiagonalNormal(np.zeros((100, 9)), np.ones((100, 9)))
    display = CoordinatesDisplay.from_predictions(y, pred, rng=0)
    names = {text.get_text() for text in display.ax_.get_legend().get_texts()}
    assert len(names) == 7
    assert {"coordinate 9", "how far out"} <= names
    one = display.plot(coordinates=False)
    one.name = "a"
    again = one.plot(one.ax_, coordinates=False)
    assert len([line for line in again.ax_.lines if len(line.get_xdata()) == 101]) == 2


def correlated(size: float, n: int = 120, seed: int = 1) -> tuple[Any, Any]:
    y = np.random.default_rng(seed).normal(size=(n, 3))
    y[:, 2] = size * y[:, 0] + np.sqrt(1.0 - size**2) * y[:, 2]
    return y, wc.DiagonalNormal(np.zeros((n, 3)), np.ones((n, 3)))


def test_correlations_are_those_of_findings() -> None:
    y, pred = correlated(0.6)
    found = wc.calibration_test(y, pred, n_resamples=199)
    (finding,) = found.findings
    display = CorrelationsDisplay.from_predictions(y, pred, result=found)
    assert display.pairs == ((1, 2), (1, 3), (2, 3))
    assert display.outside().tolist() == [False, True, False]
    assert display.correlations[1] == finding.size
    assert np.abs(display.predicted).max() < 0.02
    assert display.reach > 2.0
    assert display.finding == "1 of 3 correlations lie outside of the band of calibrated models."
    assert "coordinates 1 and 3 are correlated" in display.ax_.get_title(loc="left").replace("\n", " ")
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["1 and 2", "1 and 3", "2 and 3"]


def test_the_band_of_correlations_holds_calibrated_models() -> None:
    """Of correlated predictions, and of a few draws of them, as often as its level says."""
    rng = np.random.default_rng(4)
    true = np.array([[1.0, 0.7], [0.7, 2.0]])
    centre = rng.normal(size=(24, 2))
    pred = wc.MultivariateNormal(centre, np.tile(true, (24, 1, 1)))
    inside: dict[str, list[bool]] = {"normals": [], "draws": []}
    for _ in range(20):
        drawn = centre + rng.multivariate_normal(np.zeros(2), true, size=(8, 24))
        models = {"normals": pred, "draws": wc.Samples(np.moveaxis(drawn[1:], 0, 1))}
        for name, model in models.items():
            display = CorrelationsDisplay.computed(drawn[0], model, level=0.5, test=False, rng=rng)
            inside[name].append(not display.outside().any())
    # Of 20 with probability 0.5, 3 to 17 but for 4 in 10,000.
    assert all(3 <= sum(some) <= 17 for some in inside.values())
    (predicted,) = CorrelationsDisplay.computed(drawn[0], pred, test=False).predicted
    assert predicted == pytest.approx(true[0, 1] / np.sqrt(2.0), abs=0.06)


def test_models_share_axes_of_correlations_and_others_are_refused() -> None:
    y, pred = correlated(0.6)
    first = CorrelationsDisplay.from_predictions(y, pred, name="a", test=False)
    second = CorrelationsDisplay.from_predictions(y, pred, name="b", test=False, ax=first.ax_)
    marks = [line for line in second.ax_.lines if len(line.get_xdata()) == 3]
    assert len({(line.get_color(), line.get_marker()) for line in marks}) == 2
    assert not set(marks[0].get_xdata()) & set(marks[1].get_xdata()), "beside each other"
    fewer = wc.DiagonalNormal(np.zeros((120, 2)), np.ones((120, 2)))
    with pytest.raises(ValueError, match="ax shows coordinates 1 and 3, which these predictions do not have"):
        CorrelationsDisplay.from_predictions(y[:, :2], fewer, ax=first.ax_, test=False)
    one = wc.DiagonalNormal(np.zeros((120, 1)), np.ones((120, 1)))
    for targets, other in ((Y, PRED), (y[:, :1], one)):
        with pytest.raises(TypeError, match="for predictions of vectors with two coordinates or more"):
            CorrelationsDisplay.from_predictions(targets, other)
    assert "correlations" not in wc.calibration_test(y[:, :1], one, n_resamples=19).figures


def test_what_is_said_of_many_coordinates_says_of_how_many() -> None:
    """The first two of 40 are identical here, and the second is not looked at."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(60, 40))
    y[:, 1] = y[:, 0]
    pred = wc.DiagonalNormal(np.zeros((60, 40)), np.ones((60, 40)))
    shown = CorrelationsDisplay.computed(y, pred, test=False)
    assert "66 correlations of 12 of 40 coordinates lie" in shown.finding
    few = wc.DiagonalNormal(np.zeros((60, 12)), np.ones((60, 12)))
    assert "66 correlations lie" in CorrelationsDisplay.computed(y[:, :12], few, test=False).finding
    found = wc.calibration_test(y, pred, n_resamples=19)
    told = "all 40 for centres; 12 of them, evenly spaced, for spreads, shapes, correlations and trends"
    assert found.provenance["coordinates"] == told
    assert f"coordinates   {told}" in repr(found)
    assert "coordinates" not in wc.calibration_test(y[:, :12], few, n_resamples=19).provenance


# -- segments, tolerances, plans ---------------------------------------------------------------------


def small_print(display: Any) -> str:
    return " ".join(" ".join(text.get_text().split()) for text in display.ax_.texts)


def test_segments_in_rows() -> None:
    region = np.repeat(["north", "south"], N // 2)
    y = np.where(region == "north", Y + 1.2, Y)
    report = wc.report(y, PRED, segments={"region": region}, rng=0, n_resamples=99)
    assert list(report.best.segments.figures) == ["segments"]
    assert "segments" in report.figures
    display = SegmentsDisplay.from_result(report.best.segments)
    assert display.rejected == (True, False)
    assert display.finding.endswith("1 segment does not follow its predictions.")
    assert display.rows[0].startswith("for region = north, 40 cases (p <= ")
    assert all(
        0.0 <= low <= value <= high
        for low, value, high in zip(display.low, display.values, display.high, strict=True)
    )
    size = report.best.segments.segments[0].test.yardstick
    assert display.values[0] == pytest.approx(abs(size.ratio - 1.0), rel=0.02)
    assert display.low[0] <= abs(size.low - 1.0), "wider than for one segment alone"
    assert "shown" not in small_print(display)
    one = SegmentsDisplay.from_result(report.best.segments, most=1)
    assert len(one.rows) == 1
    assert "2 segments were tested, 1 is shown: that with the smallest p-value;" in small_print(one)
    with pytest.raises(TypeError, match=r"report\.best\.segments"):
        SegmentsDisplay.from_result(report)
    with pytest.raises(TypeError, match=r"report\.best\.segments"):
        SegmentsDisplay.from_result(wc.witness(y, PRED, segments={"region": region}))


def test_sizes_of_segments_are_those_of_their_tests() -> None:
    # Nearly certain probabilities have an SKCE about zero, and a slope far from 1.
    rng = np.random.default_rng(2)
    true = rng.normal(0.0, 2.5, 240)
    y = (rng.random(240) < special.expit(true)).astype(int)
    kind = np.repeat(["a", "b"], 120)
    pred = wc.Bernoulli(special.expit(6.0 * true))
    segments = segments_alone(y, pred, {"kind": kind}, n_resamples=199)
    display = SegmentsDisplay.from_result(segments)
    sizes = {f"{one.where}, ": one.test.yardstick for one in segments.segments}
    for row, value, low, high in zip(display.rows, display.values, display.low, display.high, strict=True):
        (size,) = (size for where, size in sizes.items() if row.startswith(where))
        assert value == size.share > 0.5
        # Wider than the interval of one segment alone, as 97.5% are than 95% of a normal distribution.
        assert [value - low, high - value] == pytest.approx(
            [
                1.1436 * (value - abs(size.low - 1.0)),
                min(1.1436 * (abs(size.high - 1.0) - value), 1.0 - value),
            ],
            rel=1e-3,
        )
    assert display.rejected == (True, True)
    assert display.measure == "as far off as if temperature was so wrong"


def test_intervals_of_segments_reach_as_far_as_either_side_does() -> None:
    """Where nothing was found an error may be on either side: which is likelier is a matter of chance."""
    rng = np.random.default_rng(0)
    mu = rng.normal(size=200)
    kind = np.repeat(["a", "b"], 100)
    segments = segments_alone(rng.normal(mu), wc.Normal(mu, np.ones(200)), {"kind": kind}, n_resamples=99)
    display = SegmentsDisplay.from_result(segments)
    assert display.rejected == (False, False)
    sizes = {f"{one.where}, ": one.test.yardstick for one in segments.segments}
    for row, high in zip(display.rows, display.high, strict=True):
        (size,) = (size for where, size in sizes.items() if row.startswith(where))
        assert len(size.bounds) == 2
        assert high >= max(np.inf if bound.open else abs(bound.ratio - 1.0) for bound in size.bounds)


def test_correlations_of_some_coordinates_say_of_which() -> None:
    y = np.random.default_rng(0).normal(size=(60, 14))
    pred = wc.DiagonalNormal(np.zeros((60, 14)), np.ones((60, 14)))
    display = CorrelationsDisplay.from_predictions(y, pred, test=False, rng=0)
    told = " ".join(" ".join(text.get_text().split()) for text in display.ax_.texts)
    assert "of 66 pairs that are farthest off, of 12 of the 14 coordinates;" in told


def test_a_segment_that_is_wrong_is_not_drawn_at_zero() -> None:
    display = SegmentsDisplay(
        ("a", "b"), (np.nan, 0.4), (0.0, 0.1), (0.3, 9.0), (True, True), "as far off as if", n_segments=2
    ).plot()
    (note,) = (
        text.get_text().replace("\n", " ") for text in display.ax_.texts if "were tested" in text.get_text()
    )
    assert "without a dot: miscalibrated, how far is not known" in note
    assert display.ax_.get_xlim()[1] < 4.0, "an end that is far away squeezes nothing"


def test_large_errors_of_segments_are_written_as_people_do() -> None:
    """What was seen on an axis: 1e+03%, 1.25e+03%."""
    measure = "as far off as if"
    display = SegmentsDisplay(("a",), (11.3,), (9.0,), (13.0,), (True,), measure, n_segments=1).plot()
    ticks = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    assert "1,000%" in ticks
    assert not any("e" in text for text in ticks)


def test_tolerances_and_plans() -> None:
    found = wc.equivalence_test(Y, PRED, tolerance=0.3)
    display = ToleranceDisplay.from_result(found, name="honest")
    assert (display.low, display.high, display.tolerance) == (found.low, found.high, 0.3)
    assert display.finding.endswith("lies below the tolerance.")
    plan = wc.PowerPlan(
        20, 15, None, 0.8, 0.05, "all is wrong", "auto", 199, 60, 99, ((40, 20, 20), (10, 40, 0))
    )
    power = PowerDisplay.from_result(plan)
    np.testing.assert_allclose(power.shares(), [0.0, 1.0])
    low, high = power.limits()
    np.testing.assert_allclose(low, [0.0, 0.025 ** (1 / 20)])
    np.testing.assert_allclose(high, [1.0 - 0.025 ** (1 / 40), 1.0])
    power.figure_.draw_without_rendering()
    (wanted,) = [text for text in power.ax_.texts if text.get_text() == "wanted: 80%"]
    assert wanted.get_window_extent().x0 > power.ax_.get_window_extent().x1, "where no bar crosses it"
    assert wanted.get_window_extent().x1 < power.figure_.bbox.x1
    for display_of, wrong in (
        (ToleranceDisplay, plan),
        (PowerDisplay, found),
        (displays.DiscrepancyDisplay, plan),
    ):
        with pytest.raises(TypeError, match="result must be what"):
            display_of.from_result(wrong)


# -- room --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ["W" * 200, "a long description of a group " * 12], ids=["wide", "long"])
def test_words_of_any_width_leave_the_axes_their_room(row: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of axes that collapse
        display = WitnessDisplay((row, row), (3.0, -4.0), (0.01, 0.2), (30, 20)).plot()
        display.figure_.draw_without_rendering()
    boxes = [
        Box(*text.get_window_extent().extents) for text in display.ax_.texts if text.get_fontsize() == 9.0
    ]
    width = display.figure_.get_size_inches()[0] * display.figure_.dpi
    assert all(box.right <= width for box in boxes)
    assert not boxes[0].meets(boxes[1])


@pytest.mark.parametrize(
    ("y", "pred"), [(Y, wc.Normal(MU, 0.5)), (LABELS, wc.Categorical(P)), (LABELS > 0, wc.Bernoulli(P[:, 0]))]
)
def test_a_scaling_is_shown_like_results(y: Any, pred: Any, tmp_path: Path) -> None:
    found = wc.TemperatureScaling().fit(y, pred)
    assert json.loads(found.to_json()) == found.to_dict()
    assert found.in_words().headline.startswith("TemperatureScaling: T = ")
    display = found.figures["fitted"].display
    assert (display.before.name, display.after.name) == ("before", "after")
    found.to_html(tmp_path / "scaling.html")
    page = (tmp_path / "scaling.html").read_text()
    assert "What did the temperature do to the cases that it was fitted to?" in page
    assert page.count("<svg") >= 1
    again = pickle.loads(pickle.dumps(found))  # without its cases
    assert again == found
    assert not again.figures
    assert "<svg" not in again.to_html()
    found.fit(y[:60], pred[:60])
    assert len(found.figures["fitted"].display.before.ax_.lines) > 0
    assert found.figures["fitted"].display is not display
    assert "bounds" in repr(wc.TemperatureScaling())


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_pictures_are_saved_as_people_expect(ending: str, tmp_path: Path) -> None:
    picture = wc.interval_coverage(Y, PRED).figures["coverage"]
    picture.savefig(tmp_path / f"coverage.{ending}")
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert (tmp_path / f"coverage.{ending}").read_bytes().startswith(begins)
    with pytest.raises(ValueError, match="supported"):
        picture.savefig(tmp_path / "coverage.xyz")
    assert not (tmp_path / "coverage.xyz").exists()
