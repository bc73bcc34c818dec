"""The demonstration: a stranger's first contact. `make demo` runs all of it; here it has one small task."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import wellcal as wc
from wellcal import demo


def small() -> demo.Task:
    """Normal predictions whose spreads are a fifth of what they should be."""
    mu = np.linspace(-1.0, 1.0, 12)
    y = np.random.default_rng(0).normal(mu, 5.0)
    return demo.Task("small", "How far <is> it?", "Twelve cases.", y, {"narrow": wc.Normal(mu, np.ones(12))})


class Links(HTMLParser):
    """Addresses that a page leads to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found.add(dict(attrs)["href"] or "")


def test_writes_reports_and_prints_their_verdicts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """Lines fit a terminal, and the index leads to what was written."""
    monkeypatch.setattr(demo, "TASKS", (small,))
    folder = tmp_path / "new" / "folder"
    assert demo.main(folder) == 0
    printed = capsys.readouterr()
    assert not printed.err
    lines = printed.out.splitlines()
    assert max(len(line) for line in lines if str(folder) not in line) <= 100
    assert "How far <is> it?" in lines
    assert any(line.startswith("  Miscalibrated (p ") for line in lines)
    assert sorted(path.name for path in folder.iterdir()) == ["index.html", "small.html"]
    index = (folder / "index.html").read_text(encoding="utf-8")
    links = Links()
    links.feed(index)
    assert links.found == {"small.html"}
    assert "How far &lt;is&gt; it?" in index
    assert "How far <is> it?" not in index


def test_tells_three_stories():
    """A classifier, a regressor and its ensemble, counts; each with a name of its own."""
    assert [make.__name__ for make in demo.TASKS] == ["digits", "diabetes", "visits"]


@pytest.mark.parametrize(("module", "name"), [("sklearn", "scikit-learn"), ("jinja2", "jinja2")])
def test_names_the_remedy_where_a_package_is_missing(
    module: str,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
):
    monkeypatch.setitem(sys.modules, module, None)
    assert demo.main(tmp_path / "nowhere") == 1
    told = capsys.readouterr().err
    assert name in told
    assert "pip install 'wellcal[demo]'" in told
    assert not (tmp_path / "nowhere").exists()
