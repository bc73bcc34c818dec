"""Pages of results other than reports, and what happens where there is no browser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wellcal as wc

from . import chromium
from .conftest import Opened
from .examples import HOSTILE


def _result(kind: str) -> Any:
    rng = np.random.default_rng(0)
    mu, one = rng.normal(size=120), np.ones(120)
    y = rng.normal(mu, 1.5)
    pred = wc.Normal(mu, one)
    if kind == "comparison":
        return wc.compare(
            y, {HOSTILE: pred, "wide": wc.Normal(mu, 2.0 * one), "narrow": wc.Normal(mu, 0.8 * one)}, rng=0
        )
    if kind == "monitor":
        monitor = wc.Monitor(rng=0)
        return monitor.update(y, pred)
    functions: dict[str, Callable[[], Any]] = {
        "test": lambda: wc.calibration_test(y, pred, rng=0),
        "estimate": lambda: wc.skce(y, pred),
        "coverage": lambda: wc.interval_coverage(y, pred),
        "quantiles": lambda: wc.quantile_calibration(y, pred),
        "witness": lambda: wc.witness(y, pred, rng=0, segments={HOSTILE: np.where(mu > 0, HOSTILE, "b")}),
    }
    return functions[kind]()


@pytest.mark.parametrize(
    "kind", ["test", "estimate", "coverage", "quantiles", "witness", "comparison", "monitor"]
)
def test_pages_of_results(kind: str, open_page: Callable[..., Opened], tmp_path: Path):
    result = _result(kind)
    path = tmp_path / "result.html"
    result.to_html(path)
    for options in ({}, {"viewport": {"width": 375, "height": 740}, "is_mobile": True}):
        found = open_page(path, **options)
        assert (found.page.locator("h1").text_content() or "").strip() == result.in_words().headline
        assert found.page.locator("svg").count() == len(result.figures)
        assert not found.wider_than_the_screen()
        assert not found.requests
        assert not found.complaints


def test_the_browser_is_installed_where_we_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By an apt-get that puts it in its place, and says how it was called."""
    apt, chrome = tmp_path / "apt-get", tmp_path / "chromium"
    apt.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n'
        f'[ "$1" = update ] || {{ echo "#!/bin/sh" > {chrome}; /bin/chmod +x {chrome}; }}\n'
    )
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert chromium.main() == 0
    assert chromium.executable() == str(chrome)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == ["update --quiet", "install --yes --no-install-recommends chromium"]
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    chrome.unlink()
    assert chromium.main() == 1
    assert (tmp_path / "calls").read_text().splitlines() == calls


def test_without_a_browser_the_line_to_run_is_told(tmp_path: Path):
    """And nothing is installed where we may not: here there is neither apt-get nor sudo."""
    done = subprocess.run(
        [sys.executable, chromium.__file__],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "sudo apt-get install --yes chromium" in done.stderr.replace("sudo apt-get update && ", "")
