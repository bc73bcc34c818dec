"""Reports: one verdict everywhere; groups and segments by name; bounded, and the same for a seed."""

from __future__ import annotations

import importlib
import json
import pickle
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import special
from scipy.stats import norm

import wellcal as wc
from wellcal.comparison.several import Pair
from wellcal.comparison.shares import SHARES
from wellcal.displays.axes import Canvas
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.findings.reasons import WITNESS
from wellcal.reporting import ModelReport, Report, ReportFigure
from wellcal.reporting.data import ModelData, family_in_words, gathered
from wellcal.reporting.examples import examples_of
from wellcal.reporting.family_pictures import kinds_for
from wellcal.reporting.first_screen import mending, where
from wellcal.reporting.mending import instead_of_temperature
from wellcal.reporting.numbers import error_of, numbers_of
from wellcal.reporting.result import coverage_in_words
from wellcal.reporting.segmenting import segments_from
from wellcal.reporting.tables import models_table

PLAN = importlib.import_module("wellcal.reporting._report")
RNG = np.random.default_rng(11)
N = 120
X = RNG.normal(size=N)
Y = RNG.normal(X, 1.0)
NARROW, HONEST = wc.Normal(X, np.full(N, 0.6)), wc.Normal(X, np.ones(N))
REGION = np.where(np.arange(N) % 2 == 0, "North", "South")
FAST: dict[str, Any] = {"rng": 0, "n_resamples": 99}
ENOUGH: dict[str, Any] = {"rng": 0, "n_resamples": 199}  # for six segments


@pytest.fixture(scope="module")
def full() -> Report:
    """All that there is to ask of two models."""
    models = {"forest": NARROW, "boosting": HONEST}
    return wc.report(Y, models, segments={"region": REGION, "x": X}, recalibrate=True, **ENOUGH)


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits)
    return powers / powers.sum(axis=1, keepdims=True)


def families() -> dict[str, tuple[Any, Any]]:
    """Targets and predictions of each family, and some of them wrong."""
    n, local = 40, np.random.default_rng(5)
    x = local.normal(size=n)
    probs = softmax(local.normal(size=(n, 3)))
    labels = np.array([local.choice(3, p=p) for p in probs])
    vectors = local.normal(size=(n, 2))
    return {
        "binary": ((local.random(n) < 0.5).astype(int), np.full(n, 0.1)),
        "classes": (
            np.array(["ant", "bee", "cat"])[labels],
            wc.Categorical(probs, classes=["ant", "bee", "cat"]),
        ),
        "grades": (labels + 1, wc.Categorical(probs, support=np.arange(1.0, 4.0))),
        "counts": (local.poisson(9.0, n), wc.Poisson(np.full(n, 4.0))),
        "mixtures": (x, wc.Mixture([wc.Normal(x + 1.0, np.ones(n)), wc.Normal(x + 3.0, np.ones(n))])),
        "samples": (3.0 * x, wc.Samples(local.normal(size=(n, 12)))),
        "quantiles": (x + 1.0, wc.Quantiles([0.1, 0.5, 0.9], np.tile([-1.28, 0.0, 1.28], (n, 1)))),
        "vectors": (vectors + 1.0, wc.DiagonalNormal(vectors, np.ones((n, 2)))),
    }


# -- one verdict ------------------------------------------------------------------------------------


@pytest.mark.parametrize("draws", [1, 5])
def test_the_error_of_draws_is_that_of_their_test(draws: int) -> None:
    """As atoms a few draws are no distribution that targets follow, and its interval would leave out zero."""
    y, said = Y[:25], wc.Samples(X[:25, None] + np.random.default_rng(2).normal(size=(25, draws)), axis=1)
    test = wc.calibration_test(y, said, n_resamples=19)
    found = error_of(gathered(y, said).models[0], test)
    assert float(found) == pytest.approx(test.estimate.deviations().root)
    assert (found.confidence_interval().low, found.kernel) == (0.0, test.kernel)
    assert found.confidence_interval(0.8).high < found.confidence_interval().high, "asked for later"
    assert (numbers_of(gathered(y, said).models[0])[0] is None) == (draws == 1)


@pytest.mark.parametrize("pred", [NARROW, HONEST], ids=["narrow", "honest"])
def test_the_verdict_is_that_of_the_test(pred: Any) -> None:
    """With the same seed, and so are findings and the yardstick."""
    found, alone = wc.report(Y, pred, **FAST), wc.calibration_test(Y, pred, **FAST)
    assert found.verdict == alone.verdict
    assert found.best.test.pvalue == alone.pvalue
    assert found.best.test.provenance["pvalues"] == alone.provenance["pvalues"]  # of the same resamples
    assert [str(finding) for finding in alone.findings] == [
        str(x) for x in found.findings if x.kind != "cases"
    ]
    assert found.best.yardstick == alone.yardstick
    assert found.best.rejected == (alone.pvalue <= 0.05)


def test_all_functions_agree_about_a_model(full: Report) -> None:
    """Comparison, recalibration and report run the same test: once, in a report."""
    assert full.comparison is not None
    for model in full.models:
        at = full.comparison.names.index(model.name)
        assert full.comparison.tests[at] is model.test
        assert model.mended is not None
        assert model.mended.cross_fitted.before is model.test
        assert (
            model.test.pvalue
            == wc.calibration_test(Y, {"forest": NARROW, "boosting": HONEST}[model.name], **ENOUGH).pvalue
        )


def test_nothing_is_said_of_groups_where_the_test_finds_nothing() -> None:
    found = wc.report(Y, HONEST, **FAST).best
    assert not found.rejected
    assert found.findings == ()
    assert found.worst_groups == ()
    assert found.witness is None
    assert "group" not in wc.report(Y, HONEST, **FAST).figures


def test_only_the_test_calls_a_model_miscalibrated() -> None:
    """A witness speaks of groups, and says what it tests; with segments, that it is more than calibration."""
    found = wc.witness(Y, NARROW, segments={"region": REGION}, rng=0, n_resamples=99)
    assert found.statements
    assert "iscalibrat" not in repr(found)
    assert "more than calibration" in repr(found)
    assert "more than calibration" not in repr(wc.witness(Y, NARROW, rng=0, n_resamples=99))
    status = wc.Monitor(rng=0).update(Y, NARROW)
    assert "tested" in dict(status.in_words().rows)


def test_a_report_sends_nobody_to_another_function() -> None:
    local = np.random.default_rng(0)
    mu = local.normal(size=10)
    y, pred = local.normal(mu, 2.0), wc.Normal(mu, np.ones(10))
    alone, found = wc.calibration_test(y, pred, rng=0), wc.report(y, pred, rng=0)
    assert WITNESS in alone.verdict
    assert found.verdict == alone.verdict.replace(f": {WITNESS}", "")
    assert WITNESS not in repr(found)
    assert not any(WITNESS in finding.sentence + finding.short for finding in found.findings)


# -- planted errors ---------------------------------------------------------------------------------


def test_a_planted_error_is_found_and_named() -> None:
    local = np.random.default_rng(3)
    x = local.uniform(0.0, 8.0, 400)
    y = local.normal(x + np.where(x > 5.0, 1.5, 0.0), 1.0)
    found = wc.report(y, wc.Normal(x, np.ones(400)), **FAST)
    assert found.verdict.startswith("Miscalibrated (p")
    group = found.best.worst_groups[0]
    assert "where the predicted mean is above" in group.where
    assert 4.5 < float(re.search(r"above ([\d.]+)", group.where)[1]) < 5.5  # pyright: ignore[reportOptionalSubscript]
    assert len(group.examples) == 3
    for example in group.examples:
        assert x[example.row] > 4.5
        assert example.observed == f"{y[example.row]:.3g}"
    assert any(finding.kind == "cases" and group.statement == str(finding) for finding in found.findings)


def test_examples_show_what_is_said_of_their_group() -> None:
    """What contributes most to the error of all cases may be off to the other side."""
    local = np.random.default_rng(5)
    mu = local.uniform(0.0, 8.0, 300)
    y = local.normal(mu + np.where(mu > 5.0, 1.0, 0.0), 1.0)
    pred = wc.Normal(mu, np.ones(300))
    found = wc.witness(y, pred, 5, rng=0, n_resamples=99)
    group = found.groups[0]
    assert group.direction.startswith("targets exceed the predicted")
    assert group.observed > group.expected
    assert group.rule is not None
    other = replace(found, contributions=mu - y)  # those that are farthest below
    data = gathered(y, pred)
    told = examples_of(other, group, data, data.models[0], None, set())
    level = norm.ppf(group.rule.levels[0])
    assert len(told) == 3
    assert all(y[example.row] - mu[example.row] > level for example in told)


@pytest.mark.parametrize("often", [True, False])
def test_examples_of_a_class_tell_its_probability(often: bool) -> None:
    """Too often: it happened where it was least expected; too rarely: it did not where it was most."""
    local = np.random.default_rng(6)
    p = local.dirichlet(np.ones(4), 300)
    y = np.array([local.choice(4, p=row) for row in p])
    low = p[:, 2] < 0.3
    if often:
        y[low & (local.uniform(size=300) < 0.3)] = 2
    else:
        y[low & (y == 2)] = 0
    found = wc.report(np.array(list("abcd"))[y], wc.Categorical(p, classes=list("abcd")), **FAST)
    witness = found.best.witness
    assert witness is not None
    (k, *_) = [k for k, one in enumerate(witness.groups) if one.direction.startswith("class 'c' occurs")]
    group, inside = found.best.worst_groups[k], witness.groups[k].cases
    assert group.statement == witness.groups[k].statement
    assert [example.observed == "c" for example in group.examples] == [often] * 3
    assert all(re.match(r"[\d.]+% for c, ", example.predicted) for example in group.examples)
    ordered = np.sort(p[inside[(y[inside] == 2) == often], 2])
    chosen = np.sort(p[[example.row for example in group.examples], 2])
    assert chosen == pytest.approx(ordered[:3] if often else ordered[-3:])


def test_examples_of_groups_differ() -> None:
    found = wc.report(3.0 * Y, wc.Normal(X, np.ones(N)), **FAST)
    rows = [example.row for group in found.best.worst_groups for example in group.examples]
    assert len(rows) == len(set(rows)) > 3


def test_what_mending_would_do(full: Report) -> None:
    found = next(model for model in full.models if model.name == "forest").mended
    assert found is not None
    assert found.pvalue_before <= 0.05 < found.pvalue_after
    assert found.gained == pytest.approx(float(found.before) - float(found.after))
    assert found.interval.low > 0.0
    factor = float(re.search(r"spreads times ([\d.]+)", found.remedy)[1])  # pyright: ignore[reportOptionalSubscript]
    assert 1.4 < factor < 2.0
    assert "no miscalibration found then" in found.verdict
    assert "NLL falls from" in found.verdict


def test_what_cannot_be_mended_is_said() -> None:
    y, pred = families()["counts"]
    found = wc.report(y, pred, recalibrate=True, **FAST).best
    assert found.mended is None
    (told,) = found.left_out
    assert told.startswith(
        "Recalibration was not tried: temperature scaling has no closed form for Poisson; "
    )
    assert "take negative binomials (wc.NegativeBinomial)" in told
    assert mending(found).more == f"T{told.removeprefix('Recalibration was not tried: t')}"


@pytest.mark.parametrize(
    ("pred", "remedy"),
    [
        (wc.Quantiles([0.1, 0.5, 0.9], [[-1.0, 0.0, 1.0]]), "conformal prediction"),
        (wc.Samples([[0.0, 1.0]]), "move draws, and stretch them about their mean"),
        (wc.NegativeBinomial([2.0], [3.0]), "means and dispersions"),
        (wc.Gamma([2.0], [3.0]), "factors for means and spreads together"),
    ],
)
def test_where_no_temperature_is_known_something_else_is(pred: Any, remedy: str) -> None:
    assert remedy in instead_of_temperature(pred)


def test_a_remedy_for_draws_helps_where_it_is_followed() -> None:
    """Draws that are too low; and where nothing was found there is nothing to mend."""
    rng = np.random.default_rng(5)
    centre = rng.normal(size=300)
    y, draws = rng.normal(centre), rng.normal((centre - 0.5)[:, None], size=(300, 30))
    low = wc.report(y, wc.Samples(draws), recalibrate=True, **FAST).best
    assert "move draws, and stretch them" in low.left_out[0]
    moved = draws + np.mean(y[:150] - draws[:150].mean(axis=1))
    mean = moved.mean(axis=1, keepdims=True)
    factor = np.std((y - mean[:, 0])[:150]) / np.std((moved - mean)[:150])
    after = wc.report(
        y[150:], wc.Samples((mean + factor * (moved - mean))[150:]), recalibrate=True, **FAST
    ).best
    assert low.rejected
    assert not after.rejected
    assert after.left_out == (
        "Recalibration was not tried: temperature scaling has no closed form for Samples.",
    )


# -- several models ---------------------------------------------------------------------------------


def test_models_are_told_apart_by_name(full: Report) -> None:
    assert [model.name for model in full.models] == ["boosting", "forest"]
    assert full.verdict.startswith(
        "boosting is better calibrated than forest. boosting: no miscalibration found"
    )
    assert full.tied == ()
    assert "A - B" not in repr(full)
    text = wc.compare(Y, NARROW, HONEST, names=("forest", "boosting"), **FAST)
    assert text.verdict == "boosting is better calibrated than forest"
    assert "forest - boosting" in repr(text)
    assert not re.search(r"\bA\b|\bB\b", repr(text))
    with pytest.raises(ValueError, match="names must be two different names"):
        wc.compare(Y, NARROW, HONEST, names=("a", "a"))


def test_families_are_listed_in_the_order_of_the_models() -> None:
    counts = np.random.default_rng(0).poisson(4.0, 30)
    honest, far = wc.Poisson(np.full(30, 4.0)), wc.NegativeBinomial(np.full(30, 40.0), np.full(30, 20.0))
    found = wc.report(counts, {"far": far, "honest": honest}, **FAST)
    assert [model.name for model in found.models] == ["honest", "far"]
    assert found.family == f"{family_in_words(honest)}; {family_in_words(far)}"


@pytest.mark.parametrize("kind", ["draws", "numbers"])
def test_draws_for_intervals_are_made_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the test and for KCE alike."""
    room = importlib.import_module("wellcal.measures.deviations")
    pred: Any = wc.Normal(X + 0.4, np.full(N, 0.8))
    if kind == "draws":
        pred = wc.Samples(X[:, None] + 0.7 * np.random.default_rng(0).normal(size=(N, 8)) + 0.4)
    made, asked = room.deviations_of, []
    monkeypatch.setattr(room, "deviations_of", lambda *a, **o: asked.append(a) or made(*a, **o))
    found = wc.report(Y, pred, **FAST).best
    assert found.rejected
    assert found.test.estimate.confidence_interval().method == "mean embedding"
    assert len(asked) == 1
    squared, ends = found.test.estimate.confidence_interval(), found.kce.confidence_interval()
    assert (ends.low**2, ends.high**2) == pytest.approx((squared.low, squared.high))
    if kind == "numbers":
        assert ends == wc.kce(Y, pred, kernel=found.test.kernel).confidence_interval()


def test_ties_are_called_ties() -> None:
    found = wc.report(Y, {"one": HONEST, "two": wc.Normal(X, np.full(N, 1.01))}, **FAST)
    assert found.tied == (found.models[1].name,)
    assert "No difference in calibration is shown between one and two" in found.verdict
    assert found.comparison is not None
    cells = [row[-1] for row in models_table(found).rows]
    assert [cell.text for cell in cells] == ["tied for best", "a tie"]
    assert cells[1].under == "both may be calibrated"
    gaps = tuple(replace(gap, holds=True) for gap in found.comparison.pairs[0].differences)
    pairs = (replace(found.comparison.pairs[0], differences=gaps),)
    known = replace(found, comparison=replace(found.comparison, pairs=pairs))
    assert re.fullmatch(r"[-+][\d.e-]+ \(-[\d.e-]+ to [\d.e-]+\)", models_table(known).rows[1][-1].under)


def test_the_order_of_models_is_told_where_it_is_not_that_of_the_number(full: Report) -> None:
    assert full.comparison is not None
    (pair,) = full.comparison.pairs
    best, other = full.comparison.ranking
    third = f"{other} again"
    order = "Best first; where none is shown to be better: not miscalibrated, then better scores first"

    def against(name: str, value: float) -> Pair:
        gaps = tuple(replace(gap, first=value, second=0.0) for gap in pair.differences)
        return replace(pair, first=name, second=best, pvalue=0.001, differences=gaps)

    for size, said in ((0.5, "Best first"), (0.2, order)):
        pairs = (against(other, 0.3), against(third, size))
        test = full.comparison.tests[full.comparison.names.index(other)]
        estimate = full.comparison.estimates[full.comparison.names.index(other)]
        comparison = replace(
            full.comparison,
            names=(best, other, third),
            tests=(*full.comparison.tests, test),
            estimates=(*full.comparison.estimates, estimate),
            pairs=pairs,
        )
        models = (*full.models, replace(full.models[1], name=third))
        table = models_table(replace(full, comparison=comparison, models=models))
        assert table.caption.startswith(said)
        assert table.caption.startswith(order) == (said == order)


def test_all_numbers_are_against_the_model_that_is_told_first(full: Report) -> None:
    """Also where another one is better in the measure that is shown, and both are tied."""
    assert full.comparison is not None
    (pair,) = full.comparison.pairs
    assert models_table(full).header[-1].text == "Error in centre and spread, less that of boosting"
    turned = tuple(
        replace(gap, first=gap.second, second=gap.first) if gap.measure in SHARES else gap
        for gap in pair.differences
    )
    other = replace(full.comparison, pairs=(replace(pair, pvalue=0.5, differences=turned),))
    assert other.ranking == ("boosting", "forest")
    drawn = other.figures["comparison"].display
    assert drawn.rows == ("forest - boosting",)
    assert drawn.values[0] < 0.0


# -- segments ---------------------------------------------------------------------------------------


def test_verdicts_of_segments_say_how_many_they_do_not_name(full: Report) -> None:
    found = full.models[1].segments
    assert found is not None
    one = found.rejected[0]
    many = replace(found, segments=(one,) * 5)
    assert many.verdict == f"Miscalibrated in 5 segments of 5: {'; '.join([one.where] * 3)}; and 2 more."
    assert replace(found, segments=(one,) * 3).verdict.endswith(f"{one.where}; {one.where}.")
    assert "more than calibration" in repr(full)
    assert "more than calibration" not in repr(replace(full, models=(replace(full.best, segments=None),)))


def test_segments_are_tested_together(full: Report) -> None:
    found = full.models[1].segments
    assert found is not None
    names = [one.where for one in found.segments]
    assert names[:2] == ["for region = North", "for region = South"]
    assert all(re.fullmatch(r"where x is (below|between|[-\d.]+ or above).*", name) for name in names[2:])
    raw = [one.test.pvalue for one in found.segments if one.test is not None]
    adjusted = [one.pvalue for one in found.segments]
    assert min(adjusted) == pytest.approx(min(1.0, len(raw) * min(raw)))
    assert all(a >= b for a, b in zip(adjusted, raw, strict=True))
    assert "more than calibration" in found.hypothesis
    assert sum(one.n_samples for one in found.segments if one.variable == "x") == N


def test_an_error_of_some_segments_is_not_said_to_be_everywhere() -> None:
    """One region of five is off: all cases together are, too, and the others are not."""
    rng = np.random.default_rng(0)
    mean, region = rng.normal(size=900), np.array(list("ABCDE"))[np.arange(900) % 5]
    y = mean + np.where(region == "C", 2.0, 1.0) * rng.normal(size=900)
    pred = wc.Normal(mean, np.ones(900))
    found = wc.report(y, pred, segments={"region": region}, rng=0, n_resamples=99)
    (model,) = found.models
    assert model.segments is not None
    assert [one.where for one in model.segments.rejected] == ["for region = C"]
    assert model.worst_groups[0].kind == "all"
    assert model.where.startswith("in some segments, told below; all cases together: targets")
    assert where(model).href == "#segments"
    assert replace(model, segments=None).where.startswith("everywhere: ")
    assert where(replace(model, segments=None)).href == "#where"


def test_a_segment_alone_is_wrong() -> None:
    """Errors that cancel between segments of a variable that the model did not use."""
    y = HONEST.sample(1) + np.where(REGION == "North", 1.0, -1.0)
    wide = wc.Normal(X, np.full(N, np.sqrt(2.0)))
    found = wc.report(y, wide, segments={"region": REGION}, **FAST).best
    assert found.segments is not None
    assert [one.rejected for one in found.segments.segments] == [True, True]
    assert "too high" in found.segments.segments[0].verdict
    assert "too low" in found.segments.segments[1].verdict


def groups(given: Any, n: int = N) -> list[tuple[str, int]]:
    found, _ = segments_from(given, n, lambda x, name: x)
    return [(one.where, len(one.rows)) for one in found]


def test_numbers_are_cut_where_people_would() -> None:
    ages = np.arange(20, 80).repeat(2)
    assert groups({"age": ages}) == [
        ("where age is below 35", 30),
        ("where age is between 35 and 50", 30),
        ("where age is between 50 and 65", 30),
        ("where age is 65 or above", 30),
    ]
    assert groups({"rooms": np.arange(N) % 3}) == [(f"for rooms = {k}", 40) for k in range(3)]
    assert groups({"late": np.arange(N) < 20}) == [("where late", 20), ("where not late", 100)]
    with pytest.raises(ValueError, match=r"segments\['x'\] has no value in row 3 \(1 in all\)"):
        groups({"x": np.where(np.arange(N) == 3, np.nan, 1.0)})


def test_segments_from_data_frames() -> None:
    wanted = [("for region = North", 60), ("for region = South", 60)]
    assert groups({"region": list(REGION)}) == wanted
    assert groups(pd.DataFrame({"region": REGION})) == wanted
    assert groups(pl.DataFrame({"region": REGION})) == wanted
    assert groups(pd.Series(REGION, name="region")) == wanted
    assert groups(pl.Series("region", REGION)) == wanted
    found, left_out = segments_from({"region": REGION, "year": np.full(N, 2024)}, N, lambda x, name: x)
    assert [one.where for one in found] == [where for where, _ in wanted]
    assert left_out == ["year is the same in all cases, and tells none apart."]
    assert groups({"year": np.full(N, 2024)}) == [("for year = 2024", N)]


def test_cases_of_the_later_part_of_a_frame_have_its_labels() -> None:
    later = pd.DataFrame({"y": np.arange(9.0), "mu": np.arange(9.0), "sigma": 1.0})[4:]
    data = gathered(later.y, wc.Normal(later.mu, later.sigma))
    assert [data.label(row) for row in range(2)] == ["4", "5"]
    assert gathered(np.arange(9.0), wc.Normal(np.arange(9.0), 1.0)).label(0) is None
    first = later.reset_index(drop=True)
    assert gathered(first.y, wc.Normal(first.mu, first.sigma)).label(0) is None


def test_rows_are_matched_by_label() -> None:
    index = pd.Index([f"case {k}" for k in range(N)])
    order = np.random.default_rng(0).permutation(N)
    y = pd.Series(4.0 * Y, index=index).iloc[order]
    columns = pd.DataFrame({"mu": X, "region": REGION}, index=index)
    found = wc.report(y, wc.Normal(columns["mu"], 1.0), segments=columns[["region"]], **FAST)
    for group in found.best.worst_groups:
        for example in group.examples:
            row = int(str(example.label).removeprefix("case "))
            assert example.observed == f"{4.0 * Y[row]:.3g}"
    assert found.best.segments is not None
    tests = {one.where: one.test for one in found.best.segments.segments}
    north = np.flatnonzero(REGION[order] == "North")
    alone = wc.calibration_test(y.to_numpy()[north], wc.Normal(X[order][north], 1.0), **FAST)
    assert tests["for region = North"] == alone
    with pytest.raises(ValueError, match=r"segments\['region'\] has no index"):
        wc.report(y, wc.Normal(columns["mu"], 1.0), segments={"region": REGION}, **FAST)


# -- every family, every size -------------------------------------------------------------------------


@pytest.mark.parametrize("name", families())
def test_every_family_has_a_report(name: str) -> None:
    y, pred = families()[name]
    found = wc.report(y, pred, recalibrate=True, **FAST)
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.best.scores
    assert found.line.startswith("40 cases · ")
    assert repr(found).startswith(found.verdict)
    assert found.figures
    assert isinstance(next(iter(found.figures.values())), ReportFigure)
    expected = {
        "binary": "reliability",
        "classes": "reliability",
        "grades": "reliability",
        "samples": "histogram",
    }
    first = next(iter(found.figures))
    if found.best.rejected:
        assert first == "null" or found.figures[first].display.reach > 1.0
    elif name != "vectors":
        assert first == expected.get(name, "pit")


def test_words_of_families() -> None:
    words = {name: family_in_words(wc.as_predictions(pred)) for name, (_, pred) in families().items()}
    assert words == {
        "binary": "binary classification",
        "classes": "classification, 3 classes",
        "grades": "ordered grades, 3 of them",
        "counts": "counts, Poisson predictions",
        "mixtures": "numbers, mixtures of 2 normal parts",
        "samples": "numbers, 12 draws for each case",
        "quantiles": "numbers, 3 predicted quantiles",
        "vectors": "vectors of 2 numbers, diagonal normal predictions",
    }
    assert family_in_words(wc.Samples(np.zeros((3, 1)))) == "numbers, 1 draw for each case"
    assert family_in_words(wc.Categorical(np.full((2, 1000), 1e-3))) == "classification, 1,000 classes"


def test_coverage_is_told_of_intervals_that_were_predicted() -> None:
    rng = np.random.default_rng(0)
    mu = rng.normal(size=60)
    y = rng.normal(mu)
    for levels, told in (
        ([0.025, 0.5, 0.975], "intervals that promise 95% hold"),
        ([0.2, 0.9], None),
        ([0.1, 0.2], None),
        ([0.5], None),
    ):
        pred = wc.Quantiles(levels, mu[:, None] + special.ndtri(levels))
        coverage, quantiles = numbers_of(ModelData("one", y, pred))
        assert quantiles is not None
        assert (coverage is None) == (told is None) == ("coverage" not in [k.name for k in kinds_for(pred)])
        assert told is None or coverage_in_words(coverage).startswith(told)
    assert family_in_words(pred) == "numbers, 1 predicted quantile"
    counts, _ = numbers_of(ModelData("counts", rng.poisson(1.0, 60), wc.Poisson(np.ones(60))))
    assert coverage_in_words(counts).startswith("intervals that promise 90% (98.1% if calibrated) hold")


@pytest.mark.parametrize("n", [2, 3, 10])
def test_few_cases(n: int) -> None:
    found = wc.report(Y[:n], NARROW[:n], segments={"region": REGION[:n]}, recalibrate=True, **FAST)
    assert found.n_samples == n
    assert found.best.segments is not None
    assert found.best.segments.verdict == "No segment has enough cases for a test."
    assert "too few" in found.best.left_out[0]
    json.dumps(found.to_dict(), allow_nan=False)


def test_what_was_not_looked_for_looked_at_no_part_of_the_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PLAN, "SEARCHED", 40)
    found = wc.report(Y, HONEST, **FAST)
    assert not found.best.rejected
    assert found.best.where == "groups are not looked for where no miscalibration is found"
    assert where(found.best).more.startswith("Groups of cases are not looked for")
    assert not any("groups" in said for said in found.sampled)
    assert any(
        "The search for groups looked at 40 of" in said for said in wc.report(Y, NARROW, **FAST).sampled
    )


def test_groups_of_nearly_all_cases_are_no_place() -> None:
    found = wc.report(Y, wc.Normal(HONEST.loc, 0.4 * HONEST.scale), **FAST).best
    worst = replace(found.worst_groups[0], kind="split", statement="it is off where x is low", share=0.97)
    for share, start in ((0.97, "nearly everywhere: it is off"), (0.5, "it is off")):
        some = replace(found, worst_groups=(replace(worst, share=share),))
        assert some.where.startswith(start)
    everywhere = replace(worst, kind="all", statement="it is off in all cases (3 instead of 2)")
    some = replace(found, worst_groups=(everywhere,))
    assert some.where == "everywhere: it is off (3 instead of 2)"


def test_what_is_not_excluded_is_said_of_all_kinds_of_error() -> None:
    """A test says which error of one kind it would have shown: that is another number."""
    told = wc.report(Y, HONEST, **FAST).best.size
    assert told.startswith("errors of all kinds together: no further off than a model whose spreads are")


def test_a_bound_to_one_side_is_not_told_of_both() -> None:
    """What was not found has no side, also where the interval of KCE does not reach zero."""
    rng = np.random.default_rng(8)
    event = rng.dirichlet([1, 1, 2, 1], size=250)[:, 2]
    y = (rng.random(250) < event).astype(int)
    found = wc.report(y, wc.Bernoulli(np.clip(event + 0.1, 0, 1)), **FAST).best
    assert not found.rejected
    assert found.kce.confidence_interval().low > 0.0
    assert found.size.endswith(
        "temperature is 4.8 times too high (95% confidence); how far too low cannot be said from so few cases"
    )


def test_of_many_cases_a_part_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests and searches are bounded, scores are not, and the report says so."""
    monkeypatch.setattr(PLAN, "TESTED", 100)
    monkeypatch.setattr(PLAN, "SEARCHED", 40)
    monkeypatch.setattr(PLAN, "DRAWN", 110)
    found = wc.report(Y, {"forest": NARROW, "boosting": HONEST}, recalibrate=True, **FAST)
    assert found.n_samples == N
    assert {model.test.n_samples for model in found.models} == {50}
    assert found.comparison is not None
    assert found.comparison.n_samples == 40
    assert {model.scores["CRPS"].n_samples for model in found.models} == {N}
    forest = next(model for model in found.models if model.name == "forest")
    assert forest.mended is not None
    assert forest.mended.cross_fitted.before.n_samples == 40
    assert forest.witness is None or forest.witness.n_samples == 40
    assert "50 of 120 cases" in found.sampled[0]
    assert "\n  in part" in repr(found)
    assert "40 of 120 cases" in found.sampled[1]
    assert found.sampled[2] == "Pictures show 110 of 120 cases, drawn at random."
    assert wc.report(Y, NARROW, **{**FAST, "n_resamples": 19}).sampled != ()
    monkeypatch.setattr(importlib.import_module("wellcal.reporting.segmenting"), "MOST_CASES", 30)
    parts = wc.report(Y, NARROW, segments={"region": REGION}, **{**FAST, "n_resamples": 19})
    assert parts.sampled[-1] == "2 segments were tested on 30 of their cases, drawn at random."
    assert parts.best.segments is not None
    assert [one.test.n_samples for one in parts.best.segments.segments if one.test] == [30, 30]


def test_frequencies_and_slopes_are_those_of_all_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the test looks at a part of them: they are what the test of all cases says."""
    monkeypatch.setattr(PLAN, "TESTED", 600)
    rng = np.random.default_rng(2)
    p = rng.uniform(0.2, 0.8, 2000)
    often = (rng.random(2000) < p + 0.15).astype(int)
    y, mu = rng.normal(size=2000), 0.5 * np.ones(2000)
    draws = rng.normal(1.0, 1.0, (2000, 6))
    for targets, pred in ((often, wc.Bernoulli(p)), (y, wc.Normal(mu, 0.7)), (y, wc.Samples(draws))):
        found = wc.report(targets, pred, n_resamples=199, rng=0).best.test
        every = wc.calibration_test(targets, pred, n_resamples=199, rng=0)
        assert found.n_samples == 600
        sizes = {one.kind: (one.size, one.interval) for one in every.findings}
        told = {one.kind: (one.size, one.interval) for one in found.findings}
        assert told == {kind: sizes[kind] for kind in told}
        assert told
    found = wc.report(often, wc.Bernoulli(p), n_resamples=199, rng=0).best
    (first, *_) = found.findings
    assert first.size == pytest.approx(often.mean(), abs=1e-12)
    assert f"{100 * often.mean():.0f}%" in found.verdict


# -- the same for a seed, and bad input -----------------------------------------------------------------


def test_the_same_seed_gives_the_same_report() -> None:
    few, options = slice(0, 40), {"segments": {"region": REGION[:40]}, "recalibrate": True}
    drawn = wc.report(Y[few], NARROW[few], n_resamples=99, **options)
    again = wc.report(Y[few], NARROW[few], n_resamples=99, rng=drawn.choices.seed, **options)
    assert again.to_dict() == drawn.to_dict()
    other = wc.report(Y[few], NARROW[few], rng=1, n_resamples=99)
    assert other.choices.seed == 1
    assert other.best.test.to_dict() != drawn.best.test.to_dict()


def test_other_data_have_another_fingerprint() -> None:
    def fingerprint(y: Any, pred: Any) -> str:
        return importlib.import_module("wellcal.reporting.data").gathered(y, pred).fingerprint

    known = fingerprint(Y, NARROW)
    assert known == fingerprint(Y.tolist(), wc.Normal(X.tolist(), 0.6))
    assert len({known, fingerprint(Y + 1e-12, NARROW), fingerprint(Y, HONEST), fingerprint(-Y, NARROW)}) == 4


@pytest.mark.parametrize(
    ("y", "pred", "options", "message"),
    [
        (NARROW, Y, {}, "did you swap y and pred"),
        (np.where(np.arange(N) == 7, np.nan, Y), NARROW, {}, "y is not finite in row 7"),
        (Y, {}, {}, "pred is an empty dictionary"),
        (Y, {" ": HONEST}, {}, "the name of a model is empty"),
        (Y, {1: NARROW, "1": HONEST}, {}, "two models have the same name"),
        (Y[:1], NARROW[:1], {}, "at least 2 cases, found 1"),
        (Y[:2], {"a": NARROW[:2], "b": HONEST[:2]}, {}, "at least 3 cases, found 2"),
        (Y, NARROW, {"weights": np.ones(N)}, "weights: a report cannot honour them"),
        (Y, NARROW, {"segments": {"a": [1, 2]}}, "must have the same length, found 2 and 120"),
        (Y, NARROW, {"segments": "region"}, "found the one string 'region'"),
        (Y, NARROW, {"segments": {}}, "segments has no columns"),
        (Y, NARROW, {"recalibrate": "yes"}, "recalibrate must be"),
        (Y, NARROW, {"n_resamples": 5}, "take n_resamples="),
        (Y, NARROW, {"rng": "x"}, "rng must be a seed"),
    ],
)
def test_bad_input_ends_before_any_work(
    y: Any, pred: Any, options: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*args: Any, **given: Any) -> None:
        raise AssertionError("no test may run")

    monkeypatch.setattr(PLAN, "calibration_test", work)
    with pytest.raises((TypeError, ValueError), match=message):
        wc.report(y, pred, **options)


def test_errors_name_the_model() -> None:
    with pytest.raises(ValueError, match="scale") as raised:
        wc.report(Y, {"good": HONEST, "bad": (X, -np.ones(N))}, rng=0)
    assert "bad" in str(raised.value) + " ".join(getattr(raised.value, "__notes__", []))


# -- shown --------------------------------------------------------------------------------------------


def test_pictures_of_several_models_show_all_of_them(full: Report) -> None:
    names = list(full.figures)
    assert names[:2] == ["pit", "comparison"]
    display = full.figures["pit"].display
    assert set(Canvas(display.ax_).shown.names) == {"forest", "boosting"}
    forest: ModelReport = next(model for model in full.models if model.name == "forest")
    assert {"pit", "groups", "mended", "null"} <= set(forest.figures)
    assert full.figures["pit"] is full.figures["pit"]  # drawn once
    back = pickle.loads(pickle.dumps(full))
    assert back.to_dict() == full.to_dict()
    assert list(back.figures) == names


def test_texts_of_users_are_escaped(full: Report) -> None:
    name = "<script>alert(1)</script>"
    found = wc.report(Y, {name: NARROW}, segments={name: REGION}, **FAST)
    assert name not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()
    assert name in found.to_dict()["models"][0]["name"]


def test_where_does_not_deny_what_a_finding_says() -> None:
    """A trend says for which predictions it holds, also where no group stands out by itself."""
    found = wc.report(Y, NARROW, **FAST).best
    trend = Finding("a (1 to 2) where b", "trend of the spread", "a where b", 1.5, (1.0, 2.0), 0.95, 0.01)
    shown = replace(found, test=replace(found.test, findings=(trend,)), worst_groups=())
    assert shown.where == "a where b; no single group stands out beyond that"
    assert replace(shown, witness=None).where == "a where b"
    assert (where(shown).main, where(shown).more) == ("It depends on the prediction", "A where b.")


# -- clusters ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def patients() -> tuple[np.ndarray, wc.Normal, np.ndarray]:
    """Right predictions, of 30 patients whose 8 errors each have much in common."""
    local = np.random.default_rng(1)
    patient = np.repeat(np.arange(30), 8)
    x = local.normal(size=len(patient))
    y = x + 0.9 * local.normal(size=30)[patient] + 0.43 * local.normal(size=len(patient))
    return y, wc.Normal(x, np.ones(len(x))), patient


def test_clusters_are_honoured_by_all_that_can(patients: Any) -> None:
    y, pred, patient = patients
    alone, found = (wc.report(y, pred, groups=groups, **FAST).best for groups in (None, patient))
    assert alone.rejected
    assert not found.rejected
    wanted = wc.calibration_test(y, pred, groups=patient, keep_null=True, **FAST)
    assert found.test.pvalue == wanted.pvalue
    squared, interval = wanted.estimate.confidence_interval(), found.kce.confidence_interval()
    assert (interval.low, interval.high) == (max(squared.low, 0.0) ** 0.5, squared.high**0.5)
    for name, score in found.scores.items():
        assert score.value == alone.scores[name].value
        assert score.standard_error > 1.5 * alone.scores[name].standard_error
    scores = 0.5 * (y - pred.loc) ** 2
    sums = np.bincount(patient, weights=scores - scores.mean())
    assert found.scores["NLL"].standard_error == pytest.approx(np.sqrt((sums**2).sum() * 30 / 29) / len(y))
    assert len(wc.report(y, pred, groups=np.arange(len(y)), **FAST).best.left_out) == 0  # all stand alone


def test_what_cannot_honour_clusters_says_so(patients: Any) -> None:
    y, pred, patient = patients
    narrow = replace(pred, scale=0.3 * pred.scale)
    halves = {"half": np.where(patient < 15, "first", "second"), "who": np.where(patient < 29, "many", "one")}
    found = wc.report(y, narrow, groups=patient, recalibrate=True, segments=halves, **FAST)
    assert found.best.rejected
    assert found.best.witness is None
    assert found.best.mended is None
    told = " ".join(found.best.left_out)
    assert "Groups of cases were not looked for: the search takes cases as independent" in told
    page = found.to_html()
    for part in ('id="where"', 'id="segments"'):
        assert part in page
    about = page.partition('id="where"')[2].partition('id="segments"')[0]
    assert "Groups of cases were not looked for: the search" in about  # and no denial that there are any
    assert "shown to be worse" not in page
    told_first = where(found.best)
    assert re.fullmatch(r"Miscalibrated in \d segments? of 3", told_first.main)
    assert told_first.href == "#segments"
    without = where(replace(found.best, segments=None))
    assert (without.main, without.more[:10]) == ("Not looked for", "The search")
    assert "Recalibration was not tried: its folds take cases as independent" in told
    assert "too narrow for clusters" in told
    assert "clusters, of which there are 30, are independent" in found.choices.hypothesis
    assert found.best.segments is not None
    notes = [segment.note for segment in found.best.segments.segments]
    assert notes == ["", "", "", "8 cases are too few, 10 are needed"]
    with pytest.raises(ValueError, match="for one model at a time"):
        wc.report(y, {"a": pred, "b": narrow}, groups=patient, **FAST)
    with pytest.raises(ValueError, match="at least 2 clusters"):
        wc.report(y, pred, groups=np.zeros(len(y)), **FAST)


def test_a_segment_of_one_cluster_is_not_tested(patients: Any) -> None:
    y, pred, patient = patients
    found = wc.report(y, pred, groups=patient // 15, segments={"half": patient // 15}, **FAST).best.segments
    assert found is not None
    assert {segment.note for segment in found.segments} == {"all cases are of one cluster, two are needed"}


def test_scores_of_quantiles_in_clusters_are_means_of_cases(patients: Any) -> None:
    y, pred, patient = patients
    levels = np.array([0.1, 0.5, 0.9])
    quantiles = wc.Quantiles(levels, pred.quantile(levels))
    found = wc.report(y, quantiles, groups=patient, **FAST).best.scores["pinball loss"]
    alone = wc.pinball_loss(y, quantiles)  # whose levels do not reach 0.05 and 0.95
    assert float(alone) == float(wc.pinball_loss(y, quantiles, levels=levels))
    assert float(found) == float(alone)
    off = y[:, None] - pred.quantile(levels)
    losses = np.maximum(levels * off, (levels - 1.0) * off).mean(axis=1)
    sums = np.bincount(patient, weights=losses - losses.mean())
    wanted = np.sqrt((sums**2).sum() * 30 / 29) / losses.sum()
    assert found.standard_error / float(found) == pytest.approx(wanted)
