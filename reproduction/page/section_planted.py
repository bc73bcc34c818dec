"""The section of the page on planted errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduction.experiments import planted
from reproduction.page.markdown import paragraph, table
from reproduction.ranks import ALPHA
from reproduction.verdict import Verdict

_WHERE = {
    "learning rate × 2": "Friedman 1, up to iteration {iterations}: MSE, NLL and pinball loss",
    "scale of k_P × 1.25": "estimators, n up to {cases}",
    "predicted standard deviations × 1.05": "tests: CME, calibrated model, d = 1, n = 256",
    "the other bootstrap statistic": "tests: bootstrap, n = 4",
}


def draw_nothing(summary: planted.Summary, folder: Path) -> list[str]:
    """No figure."""
    return []


def planted_section(summary: planted.Summary, figures: list[str], verdict: Verdict | None) -> list[str]:
    """Whether each error is caught, and whether anything is found without it."""
    rows = [
        [
            name,
            _where(name, summary),
            f"{found.pooled:.3f}",
            f"{len(found.missed)} of {len(found.compared)}",
            "**not caught**" if found.matched else "caught",
        ]
        for name, found in summary.found.items()
    ]
    return [
        *paragraph(
            f"""
            Would a mistake of ours be seen? Each of these is planted into a small version of an experiment,
            whose published numbers are then ranked among repeats with the mistake in them. An error is caught
            if all numbers together, or one of them after correction, have a p-value of at most
            {0.5 * ALPHA:g}. Without it the numbers are those of the experiments above, which are matched or
            are named there.
            """
        ),
        *table(["error", "where", "all together, p", "numbers missed", "verdict"], rows),
    ]


def _where(name: str, summary: planted.Summary) -> str:
    sizes: Any = summary.sizes.errors[name].sizes
    values: dict[str, Any] = {}
    if "iterations" in _WHERE[name]:
        values["iterations"] = sizes.iterations
    if "cases" in _WHERE[name]:
        values["cases"] = max(sizes.cases)
    return _WHERE[name].format(**values)
