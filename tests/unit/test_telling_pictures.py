"""Beside the verdict stands a picture that shows the error: the model is seen to leave its band."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import special

import wellcal as wc
from wellcal.hypotests.findings.families import findings_in
from wellcal.reporting.family_pictures import Shown, album, farthest_class, kinds_for, kinds_with
from wellcal.reporting.result import GROUP
from wellcal.reporting.sections import NOT_SEEN, Album, report_view
from wellcal.reporting.telling import OF_PARTS, SHOWS, most_telling, shown_in

N = 500
MU = np.linspace(-2.0, 2.0, N)
SD = np.tile([0.5, 1.0, 1.5, 2.0], N // 4)
LOGITS = np.random.default_rng(1).normal(0.0, 1.5, (N, 4))

Design = Callable[[np.random.Generator], tuple[Any, Any]]


@pytest.fixture
def unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are drawn and not written, which takes most of the time: tests ask where they are."""
    blank = '<svg width="300pt" height="225pt" viewBox="0 0 300 225"></svg>'
    monkeypatch.setattr("wellcal.reporting.rendering.to_svg", lambda *_, **__: blank)


def drawn(rng: np.random.Generator, logits: Any) -> Any:
    upto = special.softmax(logits, axis=1).cumsum(axis=1)
    return np.minimum((upto < rng.uniform(size=(len(logits), 1))).sum(axis=1), logits.shape[1] - 1)


def vectors(rng: np.random.Generator, correlation: float, scale: float = 1.0) -> tuple[Any, Any]:
    cov = np.array([[1.0, correlation], [correlation, 1.0]])
    y = scale * rng.multivariate_normal([0.0, 0.0], cov, N)
    return y, wc.DiagonalNormal(np.zeros((N, 2)), np.ones((N, 2)))


def one_class(rng: np.random.Generator) -> tuple[Any, Any]:
    """The third class is said to be far more likely than it is."""
    p = special.softmax(LOGITS + np.array([0.0, 0.0, 1.5, 0.0]), axis=1)
    names = ["ant", "bee", "cat", "dog"]
    return np.array(names)[drawn(rng, LOGITS)], wc.Categorical(p, classes=names)


LEVELS = np.array([0.1, 0.5, 0.9])

# An error, and the pictures that may show it.
BANK: dict[str, tuple[set[str], Design]] = {
    "spread": ({"pit", "coverage"}, lambda rng: (rng.normal(MU, 1.4), wc.Normal(MU, np.ones(N)))),
    "wide": ({"pit", "coverage"}, lambda rng: (rng.normal(MU, 0.7), wc.Normal(MU, np.ones(N)))),
    "shift": ({"pit"}, lambda rng: (rng.normal(MU + 0.4, 1.0), wc.Normal(MU, np.ones(N)))),
    "skew": (
        {"pit", "histogram"},
        lambda rng: (MU + rng.gamma(1.0, size=N) - 1.0, wc.Normal(MU, np.ones(N))),
    ),
    "bias that goes with the mean": (
        {"residuals", "residuals by mean"},
        lambda rng: (rng.normal(1.5 * MU, SD), wc.Normal(MU, SD)),
    ),
    "spread that goes with the mean": (
        {"residuals", "residuals by mean"},
        lambda rng: (rng.normal(MU, SD * np.exp(0.35 * MU)), wc.Normal(MU, SD)),
    ),
    "spread that goes with the spread": (
        {"residuals"},
        lambda rng: (rng.normal(MU, SD**2), wc.Normal(MU, SD)),
    ),
    "counts": (
        {"pit", "coverage", "histogram"},
        lambda rng: (rng.negative_binomial(2, 0.25, N), wc.Poisson(np.full(N, 6.0))),
    ),
    "zeros": (
        {"histogram"},
        lambda rng: (rng.poisson(6.0, N) * (rng.uniform(size=N) > 0.25), wc.Poisson(np.full(N, 6.0))),
    ),
    "draws": (
        {"histogram", "coverage", "pit"},
        lambda rng: (rng.normal(MU, 1.5), wc.Samples(rng.normal(MU[:, None], 1.0, (N, 19)))),
    ),
    "quantiles": (
        {"quantiles", "coverage", "pit", "histogram"},
        lambda rng: (rng.normal(MU, 1.6), wc.Quantiles(LEVELS, MU[:, None] + special.ndtri(LEVELS))),
    ),
    "slope": (
        {"reliability"},
        lambda rng: (rng.uniform(size=N) < special.expit(0.7 * MU), wc.Bernoulli(special.expit(2.0 * MU))),
    ),
    "temperature": (
        {"reliability"},
        lambda rng: (drawn(rng, LOGITS), wc.Categorical(special.softmax(2.5 * LOGITS, axis=1))),
    ),
    "one class": ({"class"}, one_class),
    "grades": (
        {"grade"},
        lambda rng: (
            drawn(rng, LOGITS) + 1,
            wc.Categorical(special.softmax(2.5 * LOGITS, axis=1), support=[1, 2, 3, 4]),
        ),
    ),
    "correlation": ({"correlations"}, lambda rng: vectors(rng, 0.7)),
    "vectors": ({"coordinates"}, lambda rng: vectors(rng, 0.0, 1.5)),
}


@pytest.mark.parametrize("name", BANK)
def test_the_model_is_seen_to_leave_its_band(name: str) -> None:
    expected, make = BANK[name]
    y, pred = make(np.random.default_rng(11))
    found = wc.calibration_test(y, pred, n_resamples=199, keep_null=True)
    assert found.rejected
    first = next(iter(found.figures))
    assert first in expected
    shown = Shown(y, pred, found, None)
    (display,) = album([shown], kinds_with(shown, found.findings))[first].computed
    assert display.reach > 1.0
    assert not display.finding.startswith("All "), "what is drawn says so too"
    assert "stays in the band" not in display.finding
    assert list(found.figures)[-1] == "null"


@pytest.mark.parametrize("name", ["spread", "slope", "temperature", "correlation", "zeros"])
def test_a_calibrated_model_has_the_usual_picture(name: str) -> None:
    _, pred = BANK[name][1](np.random.default_rng(11))
    y = pred.sample(np.random.default_rng(3))
    found = wc.calibration_test(y, pred, n_resamples=99)
    assert not found.rejected
    usual = {"slope": "reliability", "temperature": "reliability", "correlation": "coordinates"}
    assert next(iter(found.figures)) == usual.get(name, "pit")


def weak() -> tuple[Any, Any]:
    """An error that a test sees, and no picture: spreads that go a little with the mean, in few cases."""
    rng = np.random.default_rng(8)
    mu = np.linspace(-2.0, 2.0, 120)
    return rng.normal(mu, np.exp(0.2 * mu)), wc.Normal(mu, np.ones(120))


def test_where_no_picture_shows_it_the_null_distribution_does() -> None:
    y, pred = weak()
    found = wc.report(y, pred, n_resamples=199)
    assert found.best.rejected
    others = [name for name in found.figures if name not in ("null", "groups", "map")]
    assert {"pit", "coverage", "residuals"} <= set(others)
    shown = Shown(y, pred, found.best.test, None)
    drawings = album([shown], kinds_with(shown, found.findings))
    assert set(drawings) == set(others)
    assert all(drawings[name].reaches[0] <= 1.0 for name in others)
    first = next(iter(found.figures))
    assert first == ("groups" if found.best.worst_groups else "null")
    null = found.figures["null"].display
    assert np.mean(null.null >= null.statistic) <= 0.05


@pytest.mark.usefixtures("unwritten")
def test_the_page_begins_with_it() -> None:
    y, pred = BANK["bias that goes with the mean"][1](np.random.default_rng(11))
    some = np.arange(0, N, 2)
    view = report_view(wc.report(y[some], pred[some], n_resamples=99))
    assert view["hero"].kind.startswith("Residuals")
    (findings,) = [part for part in view["parts"] if part.anchor == "findings"]
    (link,) = findings.blocks[0].links or [None]
    assert link is None or link.href == f"#{view['hero'].anchor}"


def test_residuals_are_asked_about_what_they_are_drawn_against() -> None:
    """The title is that of the axis, and the question too, whichever picture comes first."""
    mu, spreads, levels = MU[:30], SD[:30], MU[:30, None] + special.ndtri(LEVELS)
    draws = wc.Samples(np.random.default_rng(0).normal(mu[:, None], 1.0, (30, 9)))
    shown = {
        wc.Normal(mu, 1.0): ["predicted mean"],
        wc.Normal(mu, spreads): ["predicted spread", "predicted mean"],
        wc.Quantiles(LEVELS, levels): ["predicted 50% quantile"],
        draws: [
            "predicted spread, as told by half of the draws",
            "predicted mean, as told by one draw",
        ],
    }
    for pred, words in shown.items():
        drawings = album([Shown(mu + 0.3, pred, None, None, True)], kinds_for(pred)).values()
        drawings = [one for one in drawings if "against" in one.kind.options]
        assert [one.kind.title for one in drawings] == [f"Residuals against the {word}" for word in words]
        assert [one.computed[0].words for one in drawings] == words
        asked = ["spreads right" in one.kind.question for one in drawings]
        assert asked == ["spread" in word for word in words]


def test_several_models_share_the_picture_that_shows_all_that_are_off() -> None:
    """Skew is not seen in coverage, and a shift and spreads are."""
    rng = np.random.default_rng(5)
    mu, one = MU[::2], np.ones(N // 2)
    y = rng.normal(mu, 1.0)
    models = {"narrow": wc.Normal(mu, 0.6 * SD[::2] ** 0.1), "low": wc.Normal(mu - 0.6, one)}
    found = wc.report(y, {"right": wc.Normal(mu, one), **models}, n_resamples=99)
    assert [model.rejected for model in found.models] == [False, True, True]
    assert next(iter(found.figures)) in {"pit", "histogram", "quantiles"}
    seen = [wc.displays.PITDisplay.computed(y, pred, kind="ecdf", test=False) for pred in models.values()]
    assert all(display.reach > 1.0 for display in seen)


def test_residuals_of_several_models_have_no_common_band() -> None:
    rng = np.random.default_rng(5)
    mu, sd = MU[::3], SD[::3]
    y = rng.normal(1.6 * mu, sd)
    found = wc.report(y, {"flat": wc.Normal(mu, sd), "right": wc.Normal(1.6 * mu, sd)}, n_resamples=99)
    assert [model.rejected for model in found.models] == [False, True]
    assert next(iter(found.models[1].figures)) in {"residuals", "residuals by mean"}
    assert next(iter(found.figures)) not in {"residuals", "residuals by mean"}
    # So each model has its own, for those findings that nothing else shows.
    beside = Album(found).of_models[1]
    trend = next(finding for finding in found.models[1].findings if "trend" in finding.kind)
    assert set(shown_in(trend, beside)) & set(beside)


@pytest.mark.usefixtures("unwritten")
def test_a_finding_is_shown_where_its_own_model_leaves_the_band() -> None:
    """Three targets far off are no curve that leaves a band, whichever other model leaves it there."""
    rng = np.random.default_rng(1)
    mu, one = MU[:260], np.ones(260)
    y = mu + special.ndtri(rng.permutation((np.arange(260) + 0.5) / 260))
    y[[3, 40, 99]] += [20.0, -20.0, 20.0]
    found = wc.report(y, {"right": wc.Normal(mu, one), "low": wc.Normal(mu - 1.5, one)}, n_resamples=99)
    assert [model.name for model in found.models if model.rejected] == ["right", "low"]
    pit = found.figures["pit"]
    assert pit.reach("right") < 1.0 < pit.reach("low")
    assert np.isnan(pit.reach("another"))
    # The verdict tells of the better one, which no picture of both shows: what shows it is the comparison.
    assert next(iter(found.figures)) == "comparison"
    view = report_view(found)
    (part,) = [part for part in view["parts"] if part.anchor == "findings"]
    spread = part.blocks[0]
    assert spread.heading == "right"
    assert spread.title.endswith("because of 3 of 260 cases.")
    assert spread.texts[-1] == NOT_SEEN
    assert spread.picture is None
    assert not spread.links
    (shift,) = [block for block in part.blocks if "too high" in block.title]
    (compared,) = [one for one in view["parts"] if one.anchor == "compared"]
    kinds = {f"#{picture.anchor}": picture.kind for picture in compared.blocks[0].pictures}
    (link,) = shift.links
    assert link.text == f"A picture above shows it: {kinds[link.href]}"
    assert NOT_SEEN not in shift.texts


@pytest.mark.usefixtures("unwritten")
def test_what_no_picture_of_the_only_model_shows_is_said_to_be_so() -> None:
    y, pred = weak()
    found = wc.report(y, pred, n_resamples=99)
    (block,) = of_findings(found)
    assert found.best.findings[0].kind == "trend of the spread"
    assert block.picture is None
    assert block.texts[-1] == NOT_SEEN


def test_all_coordinates_together_reach_as_far_as_their_own_curve() -> None:
    """One coordinate of four that is shifted is not seen in how far out outcomes are."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=(200, 4)) + np.array([0.5, 0.0, 0.0, 0.0])
    pred = wc.DiagonalNormal(np.zeros((200, 4)), np.ones((200, 4)))
    drawings = album([Shown(y, pred, None, None, dependent=True)], kinds_for(pred))
    reach = {name: drawings[name].figure.reach() for name in ("coordinates", "together")}
    assert reach["together"] < 1.0 < reach["coordinates"]
    (display,) = drawings["together"].computed
    assert display.finding == "The only curve stays in the band of calibrated models."


def of_findings(report: Any) -> list[Any]:
    """What a page says of each finding."""
    return [
        block for part in report_view(report)["parts"] if part.anchor == "findings" for block in part.blocks
    ]


def test_a_finding_about_a_class_is_shown_by_the_picture_of_that_class() -> None:
    """Of several classes that are off the picture of one says nothing of another."""
    names = ["ant", "bee", "cat", "dog"]
    p = special.softmax(LOGITS + np.array([1.0, -1.0, 0.0, 0.0]), axis=1)
    y, pred = drawn(np.random.default_rng(2), LOGITS), wc.Categorical(p, classes=names)
    found = [one for one in findings_in(y, pred, False) if one.kind == "class"]
    assert len(found) > 1
    kinds = {kind.name: kind for kind in kinds_with(Shown(np.array(names)[y], pred, None, None), found)}
    for finding in found:
        (name,) = [name for name in shown_in(finding, kinds, found) if name in kinds and name != "classes"]
        own = str(finding).split("'")[1]
        assert kinds[name].options == {"label": own}
        assert kinds[name].question == f"Does {own} happen as often as the model says?"


@pytest.mark.usefixtures("unwritten")
def test_a_finding_about_a_grade_is_not_shown_by_another_grade_and_those_above_it() -> None:
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 900)
    y = drawn(rng, np.log(p))
    y = np.where((y == 0) & (rng.random(len(y)) < 0.4), 2, y)
    report = wc.report(y + 1, wc.Categorical(p, support=(1, 2, 3)), n_resamples=199, rng=0)
    view = report_view(report)
    shown = {view["hero"].anchor: view["hero"]}
    blocks = [block for part in view["parts"] if part.anchor == "findings" for block in part.blocks]
    assert view["hero"].caption.endswith(" or above happen as often as the model says?")
    shown |= {block.picture.anchor: block.picture for block in blocks if block.picture}
    told = [one for one in report.best.findings if one.kind != GROUP]
    assert any(one.kind == "class" for one in told)
    for finding, block in zip(told, blocks, strict=True):
        if finding.kind == "class":
            anchor = block.picture.anchor if block.picture else block.links[0].href.removeprefix("#")
            grade = 1 + (finding.classes or (-1,))[0]
            assert shown[anchor].caption == f"Does grade {grade} happen as often as the model says?"


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.usefixtures("unwritten")
def test_what_was_called_impossible_is_listed_and_has_no_picture(classes: int) -> None:
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.full(classes, 2.0), 300)
    y = np.array([rng.choice(classes, p=row) for row in p])
    p[[5, 8, 90, 200]] = np.eye(classes)[0]
    y[[5, 8, 90, 200]] = 1
    pred = wc.Bernoulli(p[:, 1]) if classes == 2 else wc.Categorical(p)
    (block,) = [b for b in of_findings(wc.report(y, pred, n_resamples=99)) if "probability 0" in b.title]
    assert block.picture is None
    assert not block.links
    (table,) = block.tables
    assert [row[0].text for row in table.rows] == ["row 5", "row 8", "row 90"]
    assert all(row[1].text.startswith("0% for 1") and row[2].text == "1" for row in table.rows)
    assert table.caption == "Such cases, and 1 more"


def test_the_first_picture_that_leaves_its_band_is_taken_unless_another_is_far_clearer() -> None:
    far = {"a": 0.9, "b": 1.4, "c": 2.9, "d": float("nan"), "e": float("inf")}
    assert most_telling("ab", far.__getitem__) == "b"
    assert most_telling("abc", far.__getitem__) == "c"
    assert most_telling("cbe", far.__getitem__) == "c"
    assert most_telling("ad", far.__getitem__) is None


def test_the_farthest_class_of_many() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(900, 15))
    y = drawn(rng, logits)
    wrong = logits.copy()
    wrong[:, 6] += 1.5
    pred = wc.Categorical(special.softmax(wrong, axis=1), classes=[f"class {k}" for k in range(15)])
    assert farthest_class(np.array([f"class {k}" for k in y]), pred) == "class 6"


def test_every_kind_of_finding_and_part_has_pictures_that_exist() -> None:
    known = {
        *("pit", "histogram", "coverage", "residuals", "residuals by mean", "quantiles"),
        *("reliability", "class", "grade", "classes", "coordinates", "together", "correlations"),
    }
    assert {name for names in (*SHOWS.values(), *OF_PARTS.values()) for name in names} <= known


def test_the_farthest_of_named_grades_is_found_by_their_order() -> None:
    rng = np.random.default_rng(0)
    names = np.array(["low", "medium", "high", "extreme"])  # by letters: extreme, high, low, medium
    y = rng.choice(4, size=600, p=[0.4, 0.3, 0.05, 0.25])
    pred = wc.Categorical(np.tile([0.4, 0.3, 0.2, 0.1], (600, 1)), classes=names, support=[1, 2, 3, 4])
    assert farthest_class(names[y], pred) == "extreme"
    letters = np.argsort(names)
    same = wc.Categorical(
        np.tile(np.array([0.4, 0.3, 0.2, 0.1])[letters], (600, 1)),
        classes=names[letters],
        support=np.arange(1, 5)[letters],
    )
    assert farthest_class(names[y], same) == "extreme"


def test_several_models_have_residuals_against_one_and_the_same() -> None:
    spreads, equal = wc.Normal(MU, SD), wc.Normal(MU, np.ones(N))
    for models, expected in (
        ((spreads, spreads), {"residuals": "spread", "residuals by mean": "mean"}),
        ((spreads, equal), {"residuals": "mean"}),
        ((equal, spreads), {"residuals": "mean"}),
        ((equal, wc.Normal(np.zeros(N), SD)), {}),
    ):
        kinds = kinds_for(*models)
        shown = {kind.name: kind.options["against"] for kind in kinds if kind.name.startswith("residuals")}
        assert shown == expected


def test_residuals_of_equal_predictions_are_no_picture() -> None:
    y = np.random.default_rng(0).normal(size=40)
    same, differ = wc.Normal(np.zeros(40), np.ones(40)), wc.Normal(np.arange(40.0), np.ones(40))
    for pred, expected in ((same, False), (differ, True)):
        kinds = kinds_with(Shown(y, pred, None, None), [])
        assert ("residuals" in [kind.name for kind in kinds]) == expected


@pytest.mark.parametrize(("bias", "power", "first"), [(1.8, 2.0, "centre"), (1.25, 2.0, "spread")])
@pytest.mark.usefixtures("unwritten")
def test_a_trend_is_seen_against_what_it_goes_with(bias: float, power: float, first: str) -> None:
    """Bias that goes with the mean and spread that goes with the spread, whichever is told first."""
    rng = np.random.default_rng(3)
    found = wc.report(rng.normal(bias * MU, SD**power), wc.Normal(MU, SD), n_resamples=99)
    told = [finding for finding in found.best.findings if finding.kind.startswith("trend")]
    assert told[0].kind == f"trend of the {first}"
    assert {finding.kind: finding.by for finding in told} == {
        "trend of the centre": "predicted mean",
        "trend of the spread": "predicted spread",
    }
    view = report_view(found)
    (part,) = [part for part in view["parts"] if part.anchor == "findings"]
    blocks = {finding.by: block for finding, block in zip(found.best.findings, part.blocks, strict=False)}
    shown = {view["hero"].anchor: view["hero"].kind}
    shown |= {block.picture.anchor: block.picture.kind for block in part.blocks if block.picture}
    for by, block in blocks.items():
        anchor = block.picture.anchor if block.picture else block.links[0].href.removeprefix("#")
        assert ("predicted mean" in shown[anchor]) == (by == "predicted mean"), block.title


def test_several_trends_by_the_spread_share_their_picture() -> None:
    there = ["pit", "residuals", "residuals by mean"]
    told = wc.calibration_test(np.zeros(30) + 3.0, wc.Normal(np.zeros(30), np.ones(30)), rng=0).findings[0]
    of = [
        replace(told, kind="trend of the spread", by=by)
        for by in ("predicted spread", "predicted mean", None)
    ]
    assert [shown_in(one, there) for one in of] == [("residuals",), ("residuals by mean",), tuple(there[1:])]
    assert shown_in(of[1], ["pit", "residuals"]) == tuple(there[1:]), "which is against the mean"


def test_of_many_cases_all_pictures_and_their_choice_look_at_some(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 400)
    y = np.where(rng.random(400) < 0.3, 2, (probs.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1))
    monkeypatch.setattr("wellcal.reporting.family_pictures.DRAWN", 150)
    seen: list[int] = []

    def counted(targets: Any, predictions: Any, **options: Any) -> Any:
        seen.append(len(targets))
        return computed(targets, predictions, **options)

    computed = wc.displays.ReliabilityDisplay.computed
    monkeypatch.setattr("wellcal.displays.ReliabilityDisplay.computed", counted)
    found = wc.calibration_test(y, wc.Categorical(probs), rng=0, n_resamples=99)
    assert found.figures
    assert len(seen) > 1  # all classes, to find the one that is farthest off, and what is shown
    assert set(seen) == {150}
