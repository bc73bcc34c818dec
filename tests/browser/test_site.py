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

CUT_OFF = """() => [...document.querySelectorAll("article :is(p, li, pre, table, .wc-figure svg, mjx-container)")]
    .filter((e) => {
        if (e.closest("svg") && e.tagName !== "svg") return false;
        for (let at = e; !at.matches("article"); at = at.parentElement) {
            const way = getComputedStyle(at).overflowX;
            if (way === "auto" || way === "scroll") return false;
        }
        const room = document.documentElement.clientWidth;
        return e.tagName === "PRE" && e.scrollWidth > e.clientWidth + 1
            || e.getBoundingClientRect().right > room + 1;
    })
    .map((e) => e.outerHTML.slice(0, 120))"""
"""What reaches beyond its place and cannot be scrolled."""


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


@pytest.mark.parametrize("name", KINDS)
def test_page(reader: tuple[Page, list[str]], name: str) -> None:
    page, noticed = reader
    noticed.clear()
    page.goto((SITE / f"{name}.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert page.evaluate(CUT_OFF) == []
    assert page.locator("h1").count() >= 1
    assert not noticed


def test_the_look_finds_what_is_cut_off(reader: tuple[Page, list[str]]) -> None:
    """A block that is made to hide its end."""
    page, _ = reader
    page.goto((SITE / "quickstart.html").as_uri())
    page.evaluate(
        """() => {
            const block = document.querySelector("article pre");
            block.textContent = "x".repeat(400);
            block.style.overflowX = "hidden";
        }"""
    )
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
