"""The documentation in a browser: no page wider than a phone, no code cut off, no other site asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
MISSING = "The documentation is not built. Run\n\n    make docs"
PHONE = {"width": 375, "height": 700}
DESK = {"width": 1280, "height": 800}

KINDS = (
    "index",
    "guide",
    "what_is_calibration",
    "which_function",
    "other_packages",
    "reading_the_numbers",
    "quickstart",
    "families",
    "tests",
    "design",
    "gallery/index",
    "gallery/plot_1_classifier",
    "gallery/plot_6_counts",
    "gallery/plot_8_ensemble",
    "api/index",
    "api/measures",
    "api/generated/wellcal.skce",
    "api/generated/wellcal.calibration_test",
    "api/generated/wellcal.Categorical",
    "research/benchmarks",
    "reproduction",
    "search",
)
"""A page of every kind, and those with the widest tables."""

CUT_OFF = """() => {
    const room = document.documentElement.clientWidth;
    const elsewhere = "dialog, .bd-header, .bd-sidebar-primary, .skip-link, script, style, noscript";
    const inside = (e) => e.parentElement.closest("svg, mjx-container, " + elsewhere);
    const reachable = (e) => {
        for (let at = e; !at.matches("article, body"); at = at.parentElement) {
            const { overflowX, textOverflow } = getComputedStyle(at);
            if (overflowX === "auto" || overflowX === "scroll" || textOverflow === "ellipsis") return true;
        }
        return false;
    };
    const found = [];
    const look = (box, element, what) => {
        if (box.width > 0 && (box.right > room + 1 || box.left < -1) && !reachable(element)) found.push(what);
    };
    const range = document.createRange();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text; (text = texts.nextNode()); ) {
        if (!text.data.trim() || inside(text)) continue;
        range.selectNodeContents(text);
        look(range.getBoundingClientRect(), text.parentElement, text.data.trim().slice(0, 80));
    }
    for (const e of document.querySelectorAll("img, svg, mjx-container, pre, table, .wc-figure")) {
        if (!inside(e)) look(e.getBoundingClientRect(), e, e.outerHTML.slice(0, 80));
        const hides = e.tagName === "PRE" && ["hidden", "clip"].includes(getComputedStyle(e).overflowX);
        if (hides && e.scrollWidth > e.clientWidth + 1) found.push(e.outerHTML.slice(0, 80));
    }
    return found;
}"""
"""What reaches beyond the screen where nobody can scroll, and blocks that hide their end."""

FAINT = """() => {
    const lightness = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((c) => {
            const share = Number(c) / 255;
            return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const paper = lightness(getComputedStyle(document.body).backgroundColor);
    return [...document.querySelectorAll("article .wc-figure svg text")].filter((text) => {
        const ink = lightness(getComputedStyle(text).fill);
        return Math.max(ink, paper) / Math.min(ink, paper) < 4.5;
    }).map((text) => text.textContent);
}"""
"""Words in figures whose contrast with the page is below that of WCAG 2, level AA."""

SWAP = """(source) => {
    const article = new DOMParser().parseFromString(source, "text/html").querySelector("article");
    if (!article) return false;
    for (const formula of article.querySelectorAll(".math")) formula.remove();
    document.querySelector("article").replaceWith(article);
    return true;
}"""
"""Another page's text, without its formulas, in place of this one's: quicker than to open it."""


@pytest.fixture(scope="module", params=[PHONE, DESK], ids=["phone", "desk"])
def reader(browser: Browser, request: pytest.FixtureRequest) -> Iterator[tuple[Page, list[str]]]:
    """A window, and what was asked of other sites or complained of in it."""
    if not (SITE / "index.html").exists():
        pytest.fail(MISSING, pytrace=False)
    context = browser.new_context(viewport=request.param, color_scheme="dark")
    page, noticed = context.new_page(), []
    page.on("request", lambda asked: asked.url.startswith("http") and noticed.append(asked.url))
    page.on("requestfailed", lambda asked: noticed.append(f"not there: {asked.url}"))
    page.on("console", lambda said: said.type == "error" and noticed.append(said.text))
    page.on("pageerror", lambda error: noticed.append(str(error)))
    yield page, noticed
    context.close()


def test_no_page_is_cut_off_on_a_phone(browser: Browser) -> None:
    """All pages, the index and the sources too: their articles, one after the other, in one window."""
    if not (SITE / "index.html").exists():
        pytest.fail(MISSING, pytrace=False)
    paths = [path for path in sorted(SITE.rglob("*.html")) if "_static" not in path.parts]
    found: dict[str, list[str]] = {}
    without: list[str] = []
    with browser.new_context(viewport=PHONE) as context:
        page = context.new_page()
        page.goto((SITE / "genindex.html").as_uri())
        for path in paths:
            name = path.relative_to(SITE).as_posix()
            if not page.evaluate(SWAP, path.read_text(encoding="utf-8")):
                without.append(name)
            elif beyond := page.evaluate(CUT_OFF):
                found[name] = beyond[:3]
    assert not found
    assert without == ["search.html"]  # which is one of those that are opened below
    assert len(paths) > 300


def test_the_reference_shows_no_addresses_of_functions() -> None:
    """Nor what else Python shows of a default value that is a function, nor names of constants of ours."""
    pages = sorted((SITE / "api" / "generated").glob("*.html"))
    assert len(pages) > 100
    shown = ("&lt;function", "&lt;lambda", " at 0x", "functools.partial(", "&lt;factory", '"pre">LEVEL<')
    assert not [
        page.name for page in pages if any(text in page.read_text(encoding="utf-8") for text in shown)
    ]


@pytest.mark.parametrize("name", KINDS)
def test_page(reader: tuple[Page, list[str]], name: str) -> None:
    page, noticed = reader
    noticed.clear()
    page.goto((SITE / f"{name}.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert page.evaluate(CUT_OFF) == []
    assert page.evaluate(FAINT) == []
    assert page.locator("h1").count() >= 1
    assert not noticed


@pytest.mark.parametrize(
    "harm",
    [
        """block.textContent = "x".repeat(400); block.style.overflowX = "hidden";""",
        """heading.textContent = "x".repeat(400); heading.style.overflowWrap = "normal";""",
        """text.innerHTML = "<b style='text-wrap: nowrap'>" + "x ".repeat(400);""",
        """text.innerHTML = "<img style='max-width: none; width: 4000px'>";""",
    ],
    ids=["block", "heading", "text", "picture"],
)
def test_the_look_finds_what_is_cut_off(reader: tuple[Page, list[str]], harm: str) -> None:
    """A block that is made to hide its end, and others that are made to reach too far."""
    page, _ = reader
    page.goto((SITE / "quickstart.html").as_uri())
    assert page.evaluate(CUT_OFF) == []
    places = """const [block, heading, text] = ["pre", "h1", "p"]
        .map((e) => document.querySelector(`article ${e}`));"""
    page.evaluate(f"() => {{ {places} {harm} }}")
    assert page.evaluate(CUT_OFF)


def test_every_example_is_in_the_gallery_with_a_picture(reader: tuple[Page, list[str]]) -> None:
    page, _ = reader
    page.goto((SITE / "gallery" / "index.html").as_uri())
    examples = sorted((SITE.parents[2] / "examples" / "gallery").glob("plot_*.py"))
    assert page.locator(".sphx-glr-thumbcontainer").count() == len(examples) >= 9
    for path in examples:
        page.goto((SITE / "gallery" / f"{path.stem}.html").as_uri())
        assert page.locator("article .wc-figure svg").count() >= 1, path.stem
        assert not page.locator("article").get_by_text("Traceback").count()
