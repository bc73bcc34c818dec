"""Figures as they are first asked for: axes that are none, styles of matplotlib, classes, results alone."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.colors import to_rgb

import wellcal as wc
from wellcal import displays
from wellcal.reading import as_cases, read_cases

RNG = np.random.default_rng(0)
N = 60
MU = RNG.normal(size=N)
Y, PRED = RNG.normal(MU, 1.0), wc.Normal(MU, np.full(N, 0.5))
PROBS = RNG.dirichlet(np.ones(3), size=N)
LABELS = (PROBS.cumsum(axis=1) < RNG.random((N, 1))).sum(axis=1)
DRAWN: dict[str, Callable[..., Any]] = {
    "pit": lambda **o: displays.PITDisplay.from_predictions(Y, PRED, test=False, **o),
    "coverage": lambda **o: displays.CoverageDisplay.from_predictions(Y, PRED, test=False, **o),
    "reliability": lambda **o: displays.ReliabilityDisplay.from_predictions(
        LABELS, wc.Categorical(PROBS), test=False, **o
    ),
    "residuals": lambda **o: displays.ResidualDisplay.from_predictions(Y, PRED, test=False, **o),
    "correlations": lambda **o: displays.CorrelationsDisplay.from_predictions(
        np.c_[Y, Y], wc.DiagonalNormal(np.c_[MU, MU], np.ones((N, 2))), test=False, **o
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_axes_are_axes(name: str) -> None:
    figure, axes = plt.subplots(1, 2)
    for ax, found in (
        (3, "found 3; give axes, as plt"),
        (figure, "found a figure; give axes, as figure.subplots"),
        (axes, "found an array of 2; give axes, one of them"),
    ):
        with pytest.raises(TypeError, match="ax must be axes of matplotlib, or None") as caught:
            DRAWN[name](ax=ax)
        assert found in str(caught.value)


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize(("style", "paper"), [("dark_background", "black"), ("Solarize_Light2", "#FDF6E3")])
def test_figures_are_on_the_paper_of_the_style(name: str, style: str, paper: str) -> None:
    with plt.style.context(style):
        shown = DRAWN[name]()
        face = to_rgb(shown.figure_.get_facecolor())
        assert face == pytest.approx(to_rgb(paper), abs=0.003)
        assert to_rgb(shown.ax_.get_facecolor()) == face
        (title,) = shown.figure_.findobj(lambda artist: artist.get_gid() == "wellcal-title")
        assert title.get_text()
        assert (np.mean(to_rgb(title.get_color())) > 0.5) == (style == "dark_background")
        with displays.style("light"):  # what is said goes before the style
            assert to_rgb(DRAWN[name]().figure_.get_facecolor()) == (1.0, 1.0, 1.0)
    assert to_rgb(DRAWN[name]().figure_.get_facecolor()) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("display", [displays.PITDisplay, displays.CoverageDisplay, displays.ResidualDisplay])
def test_classes_without_an_order_are_shown_by_the_reliability_diagram(display: Any) -> None:
    mixture = wc.Mixture([wc.Categorical(PROBS), wc.Categorical(PROBS[:, ::-1])])
    for pred in (wc.Categorical(PROBS), mixture):
        with pytest.raises(TypeError, match=r"3 classes have none: a reliability diagram .* as support="):
            display.from_predictions(LABELS, pred)
    graded = wc.Categorical(PROBS, support=range(3))
    for y, pred in (
        (LABELS, graded),
        (LABELS, wc.Mixture([graded, graded])),
        (LABELS > 0, wc.Bernoulli(1.0 - PROBS[:, 0])),
    ):
        assert display.computed(y, pred, test=False).finding


@pytest.mark.parametrize("display", [displays.PITDisplay, displays.CoverageDisplay, displays.ResidualDisplay])
def test_vectors_are_shown_by_their_coordinates(display: Any) -> None:
    with pytest.raises(TypeError, match=r"found vectors of length 2; .*; CoordinatesDisplay .* shows all"):
        display.from_predictions(np.zeros((5, 2)), wc.DiagonalNormal(np.zeros((5, 2)), 1.0))


def test_recalibration_is_drawn_from_its_result_alone() -> None:
    found = wc.recalibration.cross_fit(Y, PRED, rng=0, n_resamples=39, folds=2, method="exact")
    alone = displays.RecalibrationDisplay.from_result(found)
    given = displays.RecalibrationDisplay.from_result(found, Y, PRED)
    assert alone.before == given.before
    assert alone.after == given.after
    assert alone.before.verdict == found.before.verdict
    fitted = wc.TemperatureScaling().fit(Y, PRED)
    alone = displays.RecalibrationDisplay.from_result(fitted)
    assert alone.after == displays.RecalibrationDisplay.from_result(fitted, Y, PRED).after
    stored = wc.TemperatureScaling.from_dict(fitted.to_dict())
    with pytest.raises(ValueError, match="result was stored, and its cases were not: give them"):
        displays.RecalibrationDisplay.from_result(stored)
    with pytest.raises(TypeError, match="result must be what cross_fit returns"):
        displays.RecalibrationDisplay.from_result(0.3)


def test_intervals_are_results() -> None:
    found = wc.skce(Y, PRED).confidence_interval()
    assert repr(found) in found.to_html()
    assert type(found).from_json(found.to_json()) == found
    assert pickle.loads(pickle.dumps(found)) == found


def test_an_enum_of_polars_has_an_order_wherever_it_is_met(tmp_path: Path) -> None:
    names = ["poor", "fair", "good"]
    columns = {f"p_{name}": PROBS[:, k] for k, name in enumerate(names)}
    grades = [names[k] for k in LABELS]
    enum = pl.DataFrame({"grade": pl.Series(grades, dtype=pl.Enum(names)), **columns})
    frame = pd.DataFrame({"grade": pd.Categorical(grades, names, ordered=True), **columns})
    enum.write_parquet(tmp_path / "grades.parquet")
    cases = [
        as_cases(enum, "grade", probs="p_*"),
        as_cases(frame, "grade", probs="p_*"),
        read_cases(tmp_path / "grades.parquet", "grade", probs="p_*"),
    ]
    for case in cases:
        assert case.pred.support.tolist() == [0.0, 1.0, 2.0]
    pred = wc.Categorical(PROBS, classes=names)
    values = {float(wc.skce(enum["grade"], pred)), *(float(wc.skce(case.y, case.pred)) for case in cases)}
    assert len(values) == 1
    assert float(wc.skce(grades, pred)) not in values
    ordered = wc.Categorical(PROBS[:, ::-1], classes=pl.Series(names[::-1], dtype=pl.Enum(names)))
    assert ordered.support.tolist() == [2.0, 1.0, 0.0]
