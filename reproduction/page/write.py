"""The page that sets our numbers beside the published ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from reproduction.compare import LEVEL
from reproduction.page import sections
from reproduction.page.machine import describe_machine
from reproduction.page.markdown import paragraph, table
from reproduction.page.section_friedman import friedman_counts, friedman_section
from reproduction.run import EXPERIMENTS, Outcome
from reproduction.store import write_through

_TITLES = {
    "ols": "Ordinary least squares",
    "estimators": "Estimators of SKCE",
    "tests": "Calibration tests",
    "friedman": "Friedman 1: ten networks and their ensemble",
}
_SECTIONS: dict[str, Callable[[Any, list[str]], list[str]]] = {
    "ols": sections.ols_section,
    "estimators": sections.estimators_section,
    "tests": sections.tests_section,
    "friedman": friedman_section,
}
_COUNTS: dict[str, Callable[[Any], tuple[int, int]]] = {
    "estimators": sections.estimators_counts,
    "tests": sections.tests_counts,
    "friedman": friedman_counts,
}


def verdicts(outcome: Outcome) -> list[str]:
    """One line for each experiment with published numbers: how many of them are matched."""
    lines: list[str] = []
    for name, summary in outcome.summaries.items():
        if name in _COUNTS:
            matched, total = _COUNTS[name](summary)
            lines.append(f"{name}: {matched} of {total} published numbers matched")
    return lines


def write_page(outcome: Outcome, figures: dict[str, list[str]], out: Path) -> Path:
    """Write ``reproduction.md`` into the folder `out`; its path."""
    path = out / "reproduction.md"
    write_through(path, "\n".join(_page(outcome, figures)).encode())
    return path


def _page(outcome: Outcome, figures: dict[str, list[str]]) -> list[str]:
    lines = [
        "# Reproduction of the paper",
        "",
        *paragraph(
            """
            The experiments of *Calibration tests beyond classification* (Widmann, Lindsten and Zachariah,
            ICLR 2021, appendix "Experiments"), run with wellcal, beside the numbers that the authors
            published with their own Julia implementation. This page is written by `make reproduce`,
            figures and all; open markers in figures are published numbers.
            """
        ),
    ]
    if outcome.settings.quick:
        lines += ["**A quick run: few data sets, small sizes, wide bounds.**", ""]
    lines += _head(outcome)
    lines += _overview(outcome)
    for name in EXPERIMENTS:
        if name in outcome.summaries:
            lines += [f"## {_TITLES[name]}", ""]
            lines += _SECTIONS[name](outcome.summaries[name], figures[name])
    return lines


def _head(outcome: Outcome) -> list[str]:
    facts = describe_machine()
    settings = outcome.settings
    names = "all" if len(outcome.summaries) == len(EXPERIMENTS) else " ".join(outcome.summaries)
    command = f"python -m reproduction {names} --seed {settings.seed}" + (
        " --quick" if settings.quick else ""
    )
    rows = [[key, value] for key, value in facts.items()]
    minutes = ", ".join(f"{name} {seconds / 60:.1f}" for name, seconds in outcome.seconds.items())
    rows += [["command", f"`{command}`"], ["minutes on one core", minutes]]
    lines = table(["run", ""], rows)
    lines[1] = "|---|---|"
    return lines


def _overview(outcome: Outcome) -> list[str]:
    rows = [
        [name, str(total), str(matched), str(total - matched)]
        for name, (matched, total) in (
            (name, _COUNTS[name](summary)) for name, summary in outcome.summaries.items() if name in _COUNTS
        )
    ]
    if not rows:
        return []
    return [
        *paragraph(
            f"""
            Bounds are simultaneous: in each experiment a faithful reproduction shows any mismatch at all
            with probability {LEVEL:g} at most (Bonferroni), given the chance in our numbers and in the
            published ones.
            """
        ),
        *table(["experiment", "published numbers", "matched", "not matched"], rows),
    ]
