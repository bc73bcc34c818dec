"""All experiments: each in one place with its title, its sizes, its tasks, and its part of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from reproduction.experiments import decisions, estimators, friedman, ols
from reproduction.page import figures, section_friedman, sections
from reproduction.tasks import Record, Task

Sizes = TypeVar("Sizes")
Summary = TypeVar("Summary")


@dataclass(frozen=True)
class Experiment(Generic[Sizes, Summary]):
    """An experiment of the paper.

    Attributes
    ----------
    name, title
        On the command line, and on the page.
    full, quick
        The paper's sizes, and small ones.
    stages
        Tasks for sizes, a seed, and a folder in which they may keep what later ones need: lists of tasks that
        may run side by side, each of which waits for the lists before it.
    summarise
        What was found, from the records of all tasks by key.
    draw
        Draws its figures into a folder, and returns their names.
    section
        Lines of the page, from what was found and the names of the figures.
    count
        How many published numbers are matched, of how many; None where none are published.
    """

    name: str
    title: str
    full: Sizes
    quick: Sizes
    stages: Callable[[Sizes, int, Path], list[list[Task]]]
    summarise: Callable[[dict[str, Record], Sizes, int], Summary]
    draw: Callable[[Summary, Path], list[str]]
    section: Callable[[Summary, list[str]], list[str]]
    count: Callable[[Summary], tuple[int, int]] | None = None


_EXPERIMENTS: list[Experiment[Any, Any]] = [
    Experiment(
        "ols",
        "Ordinary least squares",
        ols.FULL,
        ols.QUICK,
        ols.stages,
        ols.summarise,
        figures.draw_ols,
        sections.ols_section,
    ),
    Experiment(
        "estimators",
        "Estimators of SKCE",
        estimators.FULL,
        estimators.QUICK,
        estimators.stages,
        estimators.summarise,
        figures.draw_estimators,
        sections.estimators_section,
        sections.estimators_count,
    ),
    Experiment(
        "tests",
        "Calibration tests",
        decisions.FULL,
        decisions.QUICK,
        decisions.stages,
        decisions.summarise,
        figures.draw_tests,
        sections.tests_section,
        sections.tests_count,
    ),
    Experiment(
        "friedman",
        "Friedman 1: ten networks and their ensemble",
        friedman.FULL,
        friedman.QUICK,
        friedman.stages,
        friedman.summarise,
        figures.draw_friedman,
        section_friedman.friedman_section,
        section_friedman.friedman_count,
    ),
]

EXPERIMENTS = {experiment.name: experiment for experiment in _EXPERIMENTS}
"""Experiments by name, in the order of the page."""
