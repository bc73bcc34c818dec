"""One experiment after another: tasks, records, summaries, figures, and the page."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import wellcal
from reproduction.experiments import decisions, estimators, friedman, ols
from reproduction.schedule import Advance, run_stages, total_cost
from reproduction.store import Store
from reproduction.tasks import Settings, Task

EXPERIMENTS = ("ols", "estimators", "tests", "friedman")

_FORMAT = 1
"""Number of the form of records: files of another form are refused."""


@dataclass(frozen=True)
class Experiment:
    """An experiment: its name, its sizes in words, its tasks, and how records become a summary."""

    name: str
    settings: Settings
    sizes: str
    stages: Sequence[Sequence[Task]]
    summarise: Callable[[dict[str, Any], Settings], Any]

    @property
    def cost(self) -> float:
        """Expected seconds on one core."""
        return total_cost(self.stages)


@dataclass
class Outcome:
    """Summaries of experiments by name, and the time that each took on one core, in seconds."""

    settings: Settings
    summaries: dict[str, Any] = field(default_factory=lambda: {})
    seconds: dict[str, float] = field(default_factory=lambda: {})


def results_folder(out: Path, settings: Settings) -> Path:
    """Where records of runs under `settings` are kept."""
    return out / "reproduction" / ("results-quick" if settings.quick else "results")


def _networks_folder(out: Path, settings: Settings) -> Path:
    """Where networks are kept while they are trained."""
    return results_folder(out, settings) / "networks"


def figures_folder(out: Path) -> Path:
    """Where figures go; the page beside it refers to them."""
    return out / "reproduction" / "figures"


def make_experiment(name: str, settings: Settings, out: Path) -> Experiment:
    """The experiment of that name."""
    module: Any = {"ols": ols, "estimators": estimators, "tests": decisions, "friedman": friedman}[name]
    place = (_networks_folder(out, settings),) if name == "friedman" else ()
    stages = module.stages(settings, *place)
    return Experiment(name, settings, repr(module.plan(settings)), stages, module.summarise)


def run_experiment(
    experiment: Experiment,
    out: Path,
    outcome: Outcome,
    pool: ProcessPoolExecutor,
    *,
    advance: Advance | None = None,
) -> None:
    """Run what is left of an experiment, and add its summary to `outcome`."""
    settings = experiment.settings
    stored = {
        "experiment": experiment.name,
        "seed": settings.seed,
        "sizes": experiment.sizes,
        "version": wellcal.__version__,
        "format": _FORMAT,
    }
    with Store(results_folder(out, settings) / f"{experiment.name}.jsonl", stored) as store:
        run_stages(experiment.stages, store, pool, advance=advance)
        records = {task.key: store.records[task.key] for stage in experiment.stages for task in stage}
        outcome.summaries[experiment.name] = experiment.summarise(records, settings)
        outcome.seconds[experiment.name] = sum(store.seconds.values())
    if experiment.name == "friedman":
        shutil.rmtree(_networks_folder(out, settings), ignore_errors=True)


def draw_figures(outcome: Outcome, out: Path) -> dict[str, list[str]]:
    """Draw the figures of all experiments in `outcome`; their names by experiment."""
    from reproduction.page import figures

    draw: dict[str, Callable[[Any, Path], list[str]]] = {
        "ols": figures.draw_ols,
        "estimators": figures.draw_estimators,
        "tests": figures.draw_tests,
        "friedman": figures.draw_friedman,
    }
    return {name: draw[name](summary, figures_folder(out)) for name, summary in outcome.summaries.items()}
