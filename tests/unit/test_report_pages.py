"""Pages of results as text: what is in the file, and what must never be. Browsers look at them elsewhere."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.displays import NullDisplay, PITDisplay, to_svg
from wellcal.hypotests.findings.reasons import Reasons, unnamed
from wellcal.predictions.serialization import fingerprint
from wellcal.reporting import rendering
from wellcal.reporting.inline import inline_svg
from wellcal.reporting.pieces import SegmentReport, Segments
from wellcal.reporting.sections import SEE_ABOVE, SEE_FIRST, Album
from wellcal.reporting.segmenting import segments_alone
from wellcal.reporting.tables import coverage_table, estimate_cell, scores_table, sizes_table
from wellcal.reporting.telling import SHOWS
from wellcal.reporting.view import Tile

HOSTILE = """<script>alert(1)</script>" onclick='alert(2)' x=\""""
MU = np.linspace(-1.0, 1.0, 12)
Y = np.random.default_rng(0).normal(MU, 5.0)
Z = np.linspace(-1.0, 1.0, 60)


@pytest.fixture(scope="module")
def written() -> str:
    return wc.report(Y, {HOSTILE: wc.Normal(MU, np.ones(12))}, rng=0).to_html()


class Tags(HTMLParser):
    """All tags of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_policy_knows_the_script_and_nothing_else(written: str):
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', written)
    (script,) = re.findall(r"<script>(.*?)</script>", written, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    wanted = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}';"
    assert html.unescape(policy).startswith(wanted)
    assert written.index("Content-Security-Policy") < written.index("<style>")


def test_nothing_leads_out_of_the_page_and_names_stay_text(written: str):
    tags = Tags(written).found
    assert [tag for tag, _ in tags].count("script") == 1
    for tag, attributes in tags:
        assert not {name for name in attributes if name.startswith("on")}, tag
        for name in ("href", "src", "xlink:href"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:")), (tag, value)
    assert HOSTILE in html.unescape(written)
    assert HOSTILE.split('"')[0] not in written
    assert not re.search(r"url\(\s*['\"]?(?!#)", written)


def test_a_finding_about_some_probabilities_is_among_the_findings():
    """What a test says of groups of probabilities is a finding; groups of a witness are told below it."""
    rng = np.random.default_rng(0)
    probability = np.repeat([0.05, 0.35, 0.65, 0.95], 60)
    y = rng.random(240) < np.repeat([0.05, 0.65, 0.35, 0.95], 60)
    found = wc.report(y, wc.Bernoulli(probability), rng=0, n_resamples=99)
    assert found.best.test.findings[0].kind == "group"
    told = found.to_html().split('id="findings"')[1].split("</section>")[0]
    assert "where it was predicted" in told
    assert "No kind of error" not in told


def test_pictures_bring_nothing_but_shapes():
    given = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">
        <metadata>x</metadata><defs><style>* { color: red }</style></defs><script>a()</script>
        <foreignObject><p/></foreignObject><a xlink:href="https://example.org"><path d="M 0 0"/></a>
        <g id="one" onload="a()" style="fill: url(https://example.org/b)"/>
        <g clip-path="url(#two)"><use xlink:href="#three"/><use xlink:href="https://example.org/c"/></g>
        <image xlink:href="https://example.org/d.png"/><image xlink:href="data:image/png;base64,AA=="/>
        <text>a &lt;b&gt; #000000</text></svg>"""
    found = inline_svg(given, "p", 'say "x" & <y>')
    assert found == (
        '<svg role="img" aria-label="say &quot;x&quot; &amp; &lt;y&gt;"><defs /><g id="p-one" />'
        '<g clip-path="url(#p-two)"><use href="#p-three" /><use /></g><image />'
        '<image href="data:image/png;base64,AA==" /><text>a &lt;b&gt; #000000</text></svg>'
    )


def test_colours_of_a_picture_are_those_of_its_page_and_names_of_colours_stay_names():
    display = PITDisplay.from_predictions(Y, wc.Normal(MU, 5.0), name="#0072b2 for $x^2$", rng=0, test=False)
    before = to_svg(display.figure_)
    drawn = "".join(re.findall(r"<text[^>]*>([^<]*)</text>", before))  # comments say it in any case
    assert "#0072b2 for $x^2$" in drawn
    assert "var(--wc-blue, #0072b2)" in before
    without = to_svg(display.figure_, title=False)
    title = display.ax_.get_title(loc="left").partition("\n")[0]
    assert f">{title}</text>" in before
    assert f">{title}</text>" not in without
    again = to_svg(display.figure_)
    names = r"\b[mp][0-9a-f]{10}\b"  # made from positions, with all their digits
    assert re.sub(names, "", again) == re.sub(names, "", before)


def test_without_jinja2_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch):
    rendering.templates.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'wellcal\[report\]'"):
        wc.skce(Y, wc.Normal(MU, 1.0)).to_html()


def test_pages_are_written_whole(tmp_path: Path):
    estimate: Any = wc.skce(Y, wc.Normal(MU, 1.0))
    path = tmp_path / "page.html"
    assert estimate.to_html(path) is None, "a notebook would print it"
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert estimate.to_html().rstrip().endswith("</html>")
    assert [found.name for found in tmp_path.iterdir()] == ["page.html"]


def test_names_of_files_must_end_in_what_is_written(tmp_path: Path):
    found: Any = wc.skce(Y, wc.Normal(MU, 1.0))
    fitted = wc.TemperatureScaling().fit(Y, wc.Normal(MU, 1.0))
    for call, name, message in (
        (found.to_html, "x.pdf", r"x\.pdf: a page is written as \.html or \.htm, found the suffix \.pdf"),
        (found.save, "x.html", r"x\.html: a result is written as \.json, found the suffix \.html"),
        (wc.Monitor().save, "x.html", r"x\.html: a monitor is written as \.json"),
        (fitted.save, "x.pickle", r"x\.pickle: a recalibrator is written as \.json"),
    ):
        with pytest.raises(ValueError, match=message):
            call(tmp_path / name)
    assert not list(tmp_path.iterdir())
    found.save(tmp_path / "X.JSON")
    assert wc.Estimate.load(tmp_path / "X.JSON") == found


@pytest.mark.parametrize("statistic", [90.0, -90.0, float("inf")])
def test_a_statistic_far_away_leaves_its_null_to_be_seen(statistic: float):
    null = np.random.default_rng(0).normal(size=500)
    display = NullDisplay(null, statistic).plot()
    low, high = display.ax_.get_xlim()
    assert high - low < 3.0 * np.ptp(null)
    (told,) = [text.get_text() for text in display.ax_.texts if "this model" in text.get_text()]
    where = f", at {statistic:.3g}" if np.isfinite(statistic) else ""
    assert told == f"this model{where}: off this scale"


def test_characters_that_no_page_can_hold_have_a_sign_in_their_place(tmp_path: Path):
    bad, shown = "a\x07b\ud800", "a\ufffdb\ufffd"
    found = segments_alone(Y, wc.Normal(MU, 1.0), {bad: np.full(12, bad)}, n_resamples=19)
    page = found.to_html()
    assert "\x07" not in page
    assert len(re.findall(rf"<text[^>]*>for {shown} = {shown}, 12 cases", page)) == 1
    first = PITDisplay.from_predictions(Y, wc.Normal(MU, 1.0), name=bad, test=False)
    PITDisplay.from_predictions(Y, wc.Normal(MU, 2.0), name="\x00", test=False, ax=first.ax_)
    assert f">{shown}</text>" in to_svg(first.figure_)
    models = ((name, Y, wc.Normal(MU, 1.0)) for name in (bad, bad))
    assert len(fingerprint(models)) == 64
    for text in (repr(found), found._repr_html_()):  # terminals obey them
        assert shown in text
        assert "\x07" not in text
        assert "\ud800" not in text


def test_letters_of_all_scripts_are_text_without_a_warning(tmp_path: Path, recwarn: pytest.WarningsRecorder):
    """Readers of a page have fonts for them."""
    rng = np.random.default_rng(0)
    mu = rng.normal(size=40)
    models = {"\u6771\u4eac": wc.Normal(mu, 1.0), "\u4eac\u90fd": wc.Normal(mu, 3.0)}
    wc.report(rng.normal(mu), models, rng=0, n_resamples=99).to_html(tmp_path / "report.html")
    assert "\u4eac\u90fd</text>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not [said for said in recwarn if "Glyph" in str(said.message)]


def test_levels_with_the_same_interval_are_one_row():
    draws = wc.Samples(MU[:, None] + np.array([-1.0, 1.0]))
    ((level, covered, *_),) = coverage_table(wc.interval_coverage(Y, draws)).rows
    assert (level.text, level.value, covered.text) == ("50% to 95%", "0.5", "33.3%")
    assert len(coverage_table(wc.interval_coverage(Y, wc.Normal(MU, 1.0))).rows) == 4


def test_infinite_scores_have_no_interval():
    cell = estimate_cell(wc.nll([1, 1], wc.Bernoulli([0.0, 0.5])))
    assert (cell.text, cell.under) == ("inf", "")


def test_an_infinite_score_says_why_on_the_page_and_after_it():
    y = np.tile([0, 1], 15)
    report = wc.report(y, np.where(np.arange(30) < 3, 0.0, 0.4 + 0.2 * y), rng=0, n_resamples=19)
    why = "1 case had probability 0 for what happened"
    scores = [[cell.text, cell.under] for row in scores_table(report.models).rows for cell in row[1:]]
    assert ["inf", why] in scores
    assert f"NLL          inf: {why}" in repr(report)  # as it was before the page asked for intervals
    assert not report.best.scores["NLL"].intervals
    ends = wc.report([0, 1, 1], wc.Beta([2.0] * 3, [2.0] * 3), rng=0, n_resamples=19)
    assert re.search(r"NLL +inf: 3 cases had density 0 for what happened", repr(ends))


def test_the_page_has_the_sizes_that_the_text_has():
    y = (np.random.default_rng(0).uniform(size=60) < 0.5).astype(int)
    model = wc.report(y, np.full(60, 0.5) + 0.1 * Z, rng=0, n_resamples=19).best
    rows = {row[0].text: row[1] for row in sizes_table([model]).rows}
    assert rows["Expected calibration error (ECE)"].text == f"{float(model.ece):.3g}"
    told = rows["Errors of all kinds together"].text
    assert f"errors of all kinds together: {told[0].lower()}{told[1:-1]}" == model.size


def test_options_in_words_are_not_broken():
    page = (
        rendering.templates()
        .get_template("parts.html")
        .module.tile(Tile("t", "m", "Ask for it with recalibrate=True, or --recalibrate <x>."))
    )
    assert "<code>recalibrate=True</code>, or <code>--recalibrate</code> &lt;x&gt;." in page


def test_the_clearest_segment_is_named_first():
    """Though the other one had more resamples, and so a smaller p-value."""
    seen = [("few", 5.0, 0.001), ("many", 60.0, 0.004)]
    parts = [SegmentReport("at", k, 50, SimpleNamespace(statistic=s), p, 2) for k, s, p in seen]
    assert Segments(tuple(parts), "").verdict == "Miscalibrated in 2 segments of 2: many; few."


def test_a_segment_does_not_send_its_reader_to_a_witness_of_all_cases():
    found = unnamed(Reasons(leading="spread"), 0.01)
    assert "wc.witness(y, pred)" in found.sentence
    test: Any = SimpleNamespace(statistic=1.0, n_samples=30, pvalue=0.01, findings=(found,))
    (told,) = (segment := SegmentReport("at", "for at = 1", 30, test, 0.02, 2)).findings
    assert told.sentence == told.short
    assert told.sentence.endswith(", but no single kind of error stands out")
    assert segment.verdict.endswith(f": {told.sentence}.")


def test_segments_that_were_tested_in_part_say_so():
    test: Any = SimpleNamespace(statistic=1.0, n_samples=30, pvalue=0.4, findings=())
    some, all_ = (SegmentReport("at", f"for at = {n}", n, test, 0.8, 2) for n in (90, 30))
    assert some.verdict.startswith("No miscalibration found for at = 90 in the 30 cases tested (p = 0.8")
    assert all_.verdict.startswith("No miscalibration found for at = 30 (p = 0.8 for")
    assert Segments((all_, some), "").verdict == (
        "No miscalibration found in any of 2 segments, of each of which 30 cases at most were tested."
    )
    assert Segments((all_,), "").verdict == "No miscalibration found in any of 1 segment."


@pytest.mark.parametrize(
    ("first", "kind", "shown"),
    [
        ("reliability", "temperature", True),
        ("reliability", "frequency", True),
        ("reliability", "class", False),
        ("class", "confidence", False),
        ("reliability", "swapped", False),
        ("pit", "spread", True),
        ("pit", "quantile", True),
        ("pit", "trend of the centre", False),
        ("groups", "correlation", False),
    ],
)
def test_pictures_are_pointed_to_where_they_show_a_finding(first: str, kind: str, shown: bool):
    assert linked(album_with({first: 1.2}), kind, {}) == ([("#0", SEE_FIRST)] if shown else [])
    last = SHOWS[kind][-1]
    above = {last: SimpleNamespace(anchor="own", kind="Curve")}
    found = ("#0", SEE_FIRST) if shown else ("#own", f"{SEE_ABOVE}: Curve")
    assert linked(album_with({first: 1.2}), kind, above) == [found]
    # In which the model stays in its band, it does not show that it leaves it.
    assert linked(album_with({first: 1.0}), kind, {}) == []


def album_with(reaches: dict[str, float]) -> Any:
    """Pictures of all models that stand above findings, the first beside the verdict."""
    album: Any = object.__new__(Album)
    album.first = next(iter(reaches))
    album.all = {name: SimpleNamespace(reach=lambda _, far=far: far) for name, far in reaches.items()}
    album.above = {
        name: SimpleNamespace(anchor=str(place), kind=name.capitalize()) for place, name in enumerate(reaches)
    }
    album.take = lambda figures, name: name if name in figures else None
    return album


def linked(album: Any, kind: str, seen: dict[str, Any]) -> list[tuple[str, str]]:
    picture, links = album.showing(SHOWS[kind], {}, "model", seen)
    assert picture is None
    return [(link.href, link.text) for link in links]


@pytest.mark.parametrize(
    ("above", "reaches", "expected"),
    [
        ({"pit": 1.2}, {"coverage": 0.4, "histogram": 1.5}, "histogram"),  # the first one that shows it
        (
            {"pit": 1.7},
            {"coverage": 1.6, "histogram": 1.5},
            SEE_FIRST,
        ),  # the one beside the verdict is clearer
        ({"pit": 3.0}, {"coverage": 3.4, "histogram": 1.5}, "coverage"),  # farther is not clearer
        ({"pit": 1.2}, {"coverage": 0.4, "histogram": 0.9}, SEE_FIRST),  # none but the one beside the verdict
        ({"pit": 0.3, "coverage": 1.4}, {}, f"{SEE_ABOVE}: Coverage"),  # another one that all models share
        ({"pit": 1.1, "coverage": 2.9}, {}, f"{SEE_ABOVE}: Coverage"),  # which is far clearer
        ({"pit": 0.3}, {"coverage": 1.1}, "coverage"),
        ({"null": float("nan")}, {"coverage": 0.4, "histogram": 0.9}, None),  # none at all
        ({"null": float("nan")}, {}, None),
    ],
)
def test_a_finding_stands_beside_a_picture_that_shows_it(
    above: dict[str, float], reaches: dict[str, float], expected: str | None
):
    figures: Any = {name: SimpleNamespace(reach=lambda far=far: far) for name, far in reaches.items()}
    names = ("pit", "coverage", "histogram")
    picture, links = album_with(above).showing(names, figures, "model", {})
    assert [*([] if picture is None else [picture]), *(link.text for link in links)] == (
        [] if expected is None else [expected]
    )


def test_a_p_value_is_told_with_the_same_digits_and_sign_in_all_places():
    # The smallest p-value of these resamples is 4.75e-05: rounded up as a bound, and never told as 4.7e-05.
    rng = np.random.default_rng(0)
    outcomes, probs = rng.integers(0, 2, 60), rng.uniform(0.9, 0.99, 60)
    models = {"a": wc.Bernoulli(probs), "b": wc.Bernoulli(1.0 - probs)}
    found = wc.report(outcomes, models, n_resamples=21_052)
    assert found.models[0].test.pvalue_floor == pytest.approx(1 / 21_053)
    page = found.to_html()
    assert "4.7e-05" not in page
    assert page.count("p &lt;= 4.8e-05") >= 4


def test_a_finding_beyond_the_smallest_number_has_a_bound():
    mu = np.linspace(-1.0, 1.0, 60)
    found = wc.report(mu + 50.0, wc.Normal(mu, np.ones(60)), n_resamples=99)
    assert found.findings[0].pvalue == 0.0
    page = found.to_html()
    assert "e+00" not in page
    assert "By itself p &lt;= 2.3e-308" in page
    assert "p     <= 2.3e-308" in repr(found.findings[0])
