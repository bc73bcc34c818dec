"""Runs of experiments: from tasks to records on disk to what was found."""

from __future__ import annotations

import json
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wellcal
from reproduction.catalogue import Experiment
from reproduction.page.machine import describe_machine
from reproduction.schedule import Advance, run_tasks, total_cost
from reproduction.store import Store, StoreError, write_through
from reproduction.tasks import Settings, Task
from reproduction.verdict import Verdict, judge
from wellcal._arrays.schema import mapping, parse_json, reading, text

_FORMAT = 2
"""Number of the form of records: files of another form are refused."""


@dataclass(frozen=True)
class Finished:
    """An experiment that was run.

    Attributes
    ----------
    experiment, summary
        Which one, and what it found.
    seconds
        What it took on one core.
    verdict
        The published numbers among ours, if it has any.
    problems
        What is wrong, in sentences.
    """

    experiment: Experiment[Any, Any]
    summary: Any
    seconds: float
    verdict: Verdict | None
    problems: list[str]


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
        self.folder = results_folder(settings, out)
        self.tasks: list[Task] = experiment.tasks(self.sizes, settings.seed)

    @property
    def path(self) -> Path:
        """The file of results."""
        return self.folder / f"{self.experiment.name}.jsonl"

    @property
    def cost(self) -> float:
        """Expected seconds on one core."""
        return total_cost(self.tasks)

    def compute(self, pool: Executor, *, advance: Advance | None = None) -> tuple[dict[str, Any], float]:
        """Run the tasks that are left; the records of all, and the seconds they took on one core."""
        settings = {
            "experiment": self.experiment.name,
            "seed": self.settings.seed,
            "sizes": repr(self.sizes),
            "version": wellcal.__version__,
            "format": _FORMAT,
        }
        with Store(self.path, settings) as store:
            run_tasks(self.tasks, store, pool, advance=advance)
            records = {task.key: store.records[task.key] for task in self.tasks}
            return records, sum(store.seconds.values())

    def finish(self, pool: Executor, *, advance: Advance | None = None) -> Finished:
        """Run the tasks that are left, sum up the records of all, and compare with what was published."""
        records, seconds = self.compute(pool, advance=advance)
        summary = self.experiment.summarise(records, self.sizes, self.settings.seed)
        verdict, problems = None, self.experiment.problems(summary) if self.experiment.problems else []
        if self.experiment.label is not None:
            name, quick = self.experiment.name, self.settings.quick
            group = self.experiment.group
            verdict = judge(name, summary.numbers, self.experiment.label, quick=quick, group=group)
            problems = [*problems, *verdict.problems]
        return Finished(self.experiment, summary, seconds, verdict, problems)


def results_folder(settings: Settings, out: Path) -> Path:
    """Where results are kept, next to a page in `out`."""
    return out / "reproduction" / ("results-quick" if settings.quick else "results")


def machine_of(folder: Path) -> dict[str, str]:
    """What the results in a folder were made on: this machine, if they are made now."""
    path = folder / "machine.json"
    if not path.exists():
        write_through(path, json.dumps(describe_machine(), indent=1).encode())
    try:
        with reading("the description of a machine", path.name):
            return _facts(parse_json(path.read_bytes()), "it")
    except ValueError as error:
        raise StoreError(f"{error}; delete the file to have it written anew") from None


def _facts(plain: Any, name: str) -> dict[str, str]:
    return {key: text(value, key) for key, value in mapping(plain, name).items()}
