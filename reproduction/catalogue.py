"""All experiments: each in one place with its title, its sizes, its tasks, and its part of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from reproduction.experiments import decisions, estimators, friedman, ols, planted
from reproduction.page import figures, section_friedman, section_planted, sections
from reproduction.tasks import Record, Task
from reproduction.verdict import Verdict

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
        Full sizes, and small ones.
    tasks
        What there is to do, for sizes and a seed.
    summarise
        What was found, from the records of all tasks by key. Where numbers are published, it has `numbers`.
    draw
        Draws its figures into a folder, and returns their names.
    section
        Lines of the page, from what was found, the names of the figures, and the verdict on published
        numbers.
    label
        How the page names a published number; None where there are none.
    group
        The method that a published number belongs to.
    problems
        What is wrong apart from published numbers, in sentences.
    """

    name: str
    title: str
    full: Sizes
    quick: Sizes
    tasks: Callable[[Sizes, int], list[Task]]
    summarise: Callable[[dict[str, Record], Sizes, int], Summary]
    draw: Callable[[Summary, Path], list[str]]
    section: Callable[[Summary, list[str], Verdict | None], list[str]]
    label: Callable[[Any], str] | None = None
    group: Callable[[Any], str] | None = None
    problems: Callable[[Summary], list[str]] | None = None


_EXPERIMENTS: list[Experiment[Any, Any]] = [
    Experiment(
        "ols",
        "Ordinary least squares",
        ols.FULL,
        ols.QUICK,
        ols.tasks,
        ols.summarise,
        figures.draw_ols,
        sections.ols_section,
        problems=ols.problems,
    ),
    Experiment(
        "estimators",
        "Estimators of SKCE",
        estimators.FULL,
        estimators.QUICK,
        estimators.tasks,
        estimators.summarise,
        figures.draw_estimators,
        sections.estimators_section,
        sections.estimator_label,
        estimators.method_of,
    ),
    Experiment(
        "tests",
        "Calibration tests",
        decisions.FULL,
        decisions.QUICK,
        decisions.tasks,
        decisions.summarise,
        figures.draw_tests,
        sections.tests_section,
        sections.cell_label,
        decisions.method_of,
    ),
    Experiment(
        "friedman",
        "Friedman 1: ten networks and their ensemble",
        friedman.FULL,
        friedman.QUICK,
        friedman.tasks,
        friedman.summarise,
        figures.draw_friedman,
        section_friedman.friedman_section,
        section_friedman.friedman_label,
        friedman.method_of,
    ),
    Experiment(
        "planted",
        "Planted errors",
        planted.FULL,
        planted.QUICK,
        planted.tasks,
        planted.summarise,
        section_planted.draw_nothing,
        section_planted.planted_section,
        problems=planted.problems,
    ),
]

EXPERIMENTS = {experiment.name: experiment for experiment in _EXPERIMENTS}
"""Experiments by name, in the order of the page."""
