"""Runs of experiments: from tasks to records on disk to what was found."""

from __future__ import annotations

import shutil
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wellcal
from reproduction.catalogue import Experiment
from reproduction.schedule import Advance, run_stages, total_cost
from reproduction.store import Store
from reproduction.tasks import Settings, Task

_FORMAT = 1
"""Number of the form of records: files of another form are refused."""


@dataclass(frozen=True)
class Finished:
    """An experiment, what it found, and the seconds that it took on one core."""

    experiment: Experiment[Any, Any]
    summary: Any
    seconds: float


class Run:
    """One experiment to be run, or continued where it stopped.

    Parameters
    ----------
    experiment
        Which one.
    settings
        What the results depend on.
    out
        Folder of the page; results and figures are kept next to it.
    """

    def __init__(self, experiment: Experiment[Any, Any], settings: Settings, out: Path) -> None:
        self.experiment = experiment
        self.settings = settings
        self.sizes: Any = experiment.quick if settings.quick else experiment.full
        self.folder = out / "reproduction" / ("results-quick" if settings.quick else "results")
        self.stages: list[list[Task]] = experiment.stages(self.sizes, settings.seed, self._kept)

    @property
    def path(self) -> Path:
        """The file of results."""
        return self.folder / f"{self.experiment.name}.jsonl"

    @property
    def _kept(self) -> Path:
        """Where tasks keep what later ones need."""
        return self.folder / f"{self.experiment.name}-kept"

    @property
    def cost(self) -> float:
        """Expected seconds on one core."""
        return total_cost(self.stages)

    def finish(self, pool: Executor, *, advance: Advance | None = None) -> Finished:
        """Run the tasks that are left, and sum up the records of all."""
        settings = {
            "experiment": self.experiment.name,
            "seed": self.settings.seed,
            "sizes": repr(self.sizes),
            "version": wellcal.__version__,
            "format": _FORMAT,
        }
        with Store(self.path, settings) as store:
            run_stages(self.stages, store, pool, advance=advance)
            records = {task.key: store.records[task.key] for stage in self.stages for task in stage}
            seconds = sum(store.seconds.values())
            shutil.rmtree(self._kept, ignore_errors=True)  # while nobody else can be running the experiment
        summary = self.experiment.summarise(records, self.sizes, self.settings.seed)
        return Finished(self.experiment, summary, seconds)
