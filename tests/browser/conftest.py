"""A browser, and pages that are opened in it: whatever they ask for, and whatever goes wrong, is kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

from .chromium import MISSING, executable


@dataclass
class Opened:
    """A page as a reader sees it."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def wider_than_the_screen(self) -> list[str]:
        """What reaches beyond the right edge, where it would make the page scroll sideways."""
        return self.page.evaluate(
            """() => {
                const { clientWidth, scrollWidth } = document.documentElement;
                if (scrollWidth <= clientWidth && innerWidth <= clientWidth + 20) return [];
                const beyond = [...document.querySelectorAll("body *")]
                    .filter((e) => e.getBoundingClientRect().right > clientWidth + 0.5)
                    .map((e) => e.outerHTML.slice(0, 120));
                return [`${scrollWidth} on a screen of ${clientWidth}`, ...beyond];
            }"""
        )


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = executable()
    if found is None:
        pytest.fail(MISSING, pytrace=False)
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=arguments)
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """Open a file in a window of its own; options are those of a context, such as `color_scheme`."""
    contexts: list[Any] = []

    def opened(path: Path, **options: Any) -> Opened:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        contexts.append(context)
        found = Opened(context.new_page())
        address = path.resolve().as_uri()

        def on_request(route: Route) -> None:
            if route.request.url.partition("#")[0] == address:
                route.continue_()
            else:
                found.requests.append(route.request.url)
                route.abort()

        context.route("**/*", on_request)
        found.page.on("console", lambda said: found.complaints.append(f"{said.type}: {said.text}"))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.goto(address)
        return found

    yield opened
    for context in contexts:
        context.close()
