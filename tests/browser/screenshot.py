"""The first screen of a page as an image: ``python tests/browser/screenshot.py PAGE IMAGE``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from chromium import MISSING, executable  # a neighbour: this file is run, not imported
from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1280, 800


def main(page: str, image: str) -> int:
    """Write the image; 1 without a browser."""
    found = executable()
    if found is None:
        print(MISSING, file=sys.stderr)
        return 1
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        opened = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        opened.goto(Path(page).resolve().as_uri())
        opened.screenshot(path=image)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
