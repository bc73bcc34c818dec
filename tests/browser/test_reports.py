"""Pages of reports as readers meet them: on a screen, paper, a telephone, with and without scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import wellcal as wc

from .conftest import Opened
from .examples import ENDING, HOSTILE, KINDS, QUOTED, N, made, page_text

Open = Callable[..., Opened]
SECTIONS = ["verdict", "findings", "size", "where", "scores", "choices", "cite", "data"]
PHONE = {"width": 375, "height": 740}


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    """A report of a kind as a file."""

    def write(kind: str) -> Path:
        path = tmp_path / f"{kind}.html"
        path.write_text(page_text(kind), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("kind", KINDS)
def test_says_its_verdict_and_asks_nobody(kind: str, open_page: Open, written: Callable[[str], Path]):
    """No request, no complaint, all sections, nothing drawn beyond the edge."""
    found = open_page(written(kind))
    page = found.page
    said = " ".join((page.locator("h1").text_content() or "").split())
    assert said == " ".join(made(kind).verdict.split())
    assert [page.locator(f"#{name}").count() for name in SECTIONS] == [1] * len(SECTIONS)
    several = len(made(kind).models) > 1
    assert page.locator(".tile").count() == (0 if several else 3)
    assert page.locator("#models tbody tr").count() == (len(made(kind).models) if several else 0)
    assert page.locator("#verdict svg").count() == 1
    assert page.locator("h1, .tile, #models, #verdict svg").evaluate_all(
        "found => found.every(e => e.getBoundingClientRect().top < 0.9 * innerHeight)"
    ), "the first screen has the verdict, a picture and three tiles, or a table of models"
    assert not found.wider_than_the_screen()
    links = page.locator("a").evaluate_all("found => found.map(e => e.getAttribute('href'))")
    assert links
    assert all(link.startswith("#") and page.locator(f"[id='{link[1:]}']").count() == 1 for link in links)
    repeated = page.evaluate(
        "() => { const ids = [...document.querySelectorAll('[id]')].map(e => e.id);"
        " return ids.filter((id, k) => ids.indexOf(id) !== k); }"
    )
    assert not repeated
    assert not found.requests
    assert not found.complaints


@pytest.mark.parametrize("kind", KINDS)
def test_a_telephone_need_not_scroll_sideways(kind: str, open_page: Open, written: Callable[[str], Path]):
    found = open_page(written(kind), viewport=PHONE, is_mobile=True, has_touch=True)
    assert found.page.evaluate("document.documentElement.clientWidth") == PHONE["width"]
    assert not found.wider_than_the_screen()
    assert not found.complaints
    ends = """found => found.flatMap(e => {
        const words = document.createRange();
        words.selectNodeContents(e);
        return [...words.getClientRects()].map(line => line.right);
    })"""
    assert all(end <= PHONE["width"] for end in found.page.locator("caption").evaluate_all(ends)), (
        "what is said of a table is read without moving the table"
    )


@pytest.mark.parametrize("width", [360, 1200])
def test_long_names_without_blanks_leave_room_for_the_rest(width: int, open_page: Open, tmp_path: Path):
    mu = np.linspace(-2.0, 2.0, 40)
    models = {"m" * 99: wc.Normal(mu, 1.0), "other": wc.Normal(mu, 2.0)}
    wc.report(np.roll(mu, 7), models, rng=0, n_resamples=39).to_html(tmp_path / "long.html")
    found = open_page(tmp_path / "long.html", viewport={"width": width, "height": 800})
    assert not found.wider_than_the_screen()
    values = found.page.locator(".choices td").evaluate_all("all => all.map(e => e.clientWidth)")
    assert min(values) > 0.5 * width
    names = found.page.locator(".words").evaluate_all("all => all.map(e => e.clientWidth)")
    assert max(names) < width, "numbers beside a name are a swipe away at most"


@pytest.mark.parametrize("kind", ["classes", "several"])
def test_names_stay_text(kind: str, open_page: Open, written: Callable[[str], Path]):
    """In words, tables, pictures and attributes."""
    found = open_page(written(kind))
    page = found.page
    assert page.locator("script").count() == 1
    assert page.locator("img, iframe, object, embed, form, base, meta[http-equiv=refresh]").count() == 0
    handlers = page.evaluate(
        "() => [...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
        ".filter(name => name.startsWith('on'))"
    )
    assert not handlers
    assert HOSTILE in (page.locator("main").text_content() or "")
    drawn = "\n".join(page.locator("svg text").all_text_contents())
    assert "<script>" in drawn
    if kind == "classes":
        told = page.locator("main").text_content() or ""
        assert QUOTED in told
        assert ENDING in told
    else:
        assert "$5 to $\\frac" in drawn
    assert not found.complaints


def test_the_policy_stops_what_is_slipped_in(open_page: Open, tmp_path: Path):
    """A script, a picture from elsewhere, a request: none of them comes through."""
    path = tmp_path / "tampered.html"
    slipped = (
        "<script>window.ran = true</script><p onclick='window.ran = true' id='p'>x</p>"
        "<img src='https://example.org/a.png'><link rel='stylesheet' href='https://example.org/a.css'>"
    )
    page = page_text("normals")
    assert page.count("</main>") == 1
    path.write_text(page.replace("</main>", f"{slipped}</main>"), encoding="utf-8")
    found = open_page(path)
    found.page.locator("#p").click()
    asked = found.page.evaluate("fetch('https://example.org/b').then(() => 'went', () => 'stopped')")
    assert asked == "stopped"
    assert found.page.evaluate("window.ran") is None
    assert not found.requests
    assert len(found.complaints) >= 4
    assert all("Content Security Policy" in said for said in found.complaints)


def test_dark_and_print(open_page: Open, written: Callable[[str], Path]):
    """Letters stand out from what they are written on, in pages and pictures; paper is white."""
    path = written("several")
    contrast = """() => {
        const light = (colour) => {
            const parts = colour.match(/[0-9.]+/g).slice(0, 3).map((part) => {
                const share = part / 255;
                return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
        };
        const paper = light(getComputedStyle(document.body).backgroundColor);
        const words = [...document.querySelectorAll("h1 span, h2, p, td, th, figcaption, svg text")];
        const inks = words.map((e) => {
            const style = getComputedStyle(e);
            return light(e instanceof SVGElement ? style.fill : style.color);
        });
        const ratios = inks.map((ink) => (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05));
        return [paper, Math.min(...ratios)];
    }"""
    for scheme, dark in (("light", False), ("dark", True)):
        page = open_page(path, color_scheme=scheme).page
        paper, least = page.evaluate(contrast)
        assert (paper < 0.1) is dark
        assert least >= 4.5, scheme
    page.emulate_media(media="print")
    paper, least = page.evaluate(contrast)
    assert paper == 1.0
    assert least >= 4.5
    assert not page.locator("nav").is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_small_multiples_have_all_of_the_paper(open_page: Open, tmp_path: Path):
    """Their letters are legible in print, where nobody enlarges them."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(5), size=N)
    y = (probs.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1)
    sharp = probs**2 / (probs**2).sum(axis=1, keepdims=True)
    path = tmp_path / "grades.html"
    wc.report(y, wc.Categorical(sharp, support=range(5)), n_resamples=199, rng=0).to_html(path)
    page = open_page(path, viewport={"width": 688, "height": 900}).page  # A4 without its margins
    page.emulate_media(media="print")
    sizes = page.locator("figure.wide svg").evaluate_all(
        "found => found.map(e => e.getBoundingClientRect().width / e.viewBox.baseVal.width)"
    )
    assert sizes
    assert min(sizes) > 0.9, "of pixels in points: letters of 9 points have 6 or more"


@pytest.mark.parametrize("kind", ["classes", "several"])
def test_all_can_be_read_without_scripts(kind: str, open_page: Open, written: Callable[[str], Path]):
    with_script = open_page(written(kind)).page
    without = open_page(written(kind), java_script_enabled=False).page
    texts = [page.locator("main").inner_text() for page in (with_script, without)]
    assert texts[0].replace("⤢", "").split() == texts[1].split()
    assert without.locator("svg").count() == with_script.locator("svg").count()
    assert without.locator("button").count() == 0
    assert without.locator("section.part").count() == with_script.locator("section.part:visible").count()


def test_tables_are_sorted_by_numbers(open_page: Open, written: Callable[[str], Path]):
    page = open_page(written("several")).page
    table = page.locator("#models table")
    column = table.locator("th").all_text_contents().index("Verdict")
    cells = table.locator(f"tbody td:nth-child({column + 1})")

    def values() -> list[float]:
        return [float(value) for value in cells.evaluate_all("found => found.map(e => e.dataset.value)")]

    before = values()
    button = table.locator("th button").nth(column)
    button.click()
    assert values() == sorted(before)
    assert table.locator("th").nth(column).get_attribute("aria-sort") == "ascending"
    button.press("Enter")
    assert values() == sorted(before, reverse=True)
    assert table.locator("th").nth(column).get_attribute("aria-sort") == "descending"
    table.locator("th button").first.click()
    names = table.locator("tbody td:first-child").all_text_contents()
    assert names == [model.name for model in made("several").models], "best first"


def test_pictures_are_enlarged_by_hand_and_by_keyboard(open_page: Open, written: Callable[[str], Path]):
    found = open_page(written("normals"))
    page = found.page
    picture, dialog = page.locator("#verdict svg"), page.locator("dialog")
    small = picture.bounding_box()
    assert small
    picture.click()
    assert dialog.is_visible()
    large = page.locator("dialog svg").bounding_box()
    assert large
    assert large["width"] > 1.2 * small["width"]
    assert large["y"] + large["height"] <= 800
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert picture.bounding_box() == small
    button = page.locator("#verdict button.enlarge")
    button.focus()
    page.keyboard.press("Enter")
    assert dialog.is_visible()
    page.locator("dialog button").click()
    assert not dialog.is_visible()
    assert page.locator("#verdict svg").count() == 1
    assert not found.complaints
