"""Planted errors, and whether the comparison with published numbers sees them.

Small versions of the experiments are run with an error in them, and must be rejected. Without it their
numbers are those of the experiments themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reproduction import published
from reproduction.experiments import decisions, estimators, friedman
from reproduction.experiments.plant import Plant
from reproduction.ranks import Ranking, rank
from reproduction.tasks import Record, Task

_MODULES: dict[str, Any] = {"friedman": friedman, "estimators": estimators, "tests": decisions}


@dataclass(frozen=True)
class Error:
    """An error, and the experiment in which it is planted.

    Attributes
    ----------
    plant
        The error.
    experiment
        Name of the experiment.
    sizes
        Of the small version.
    """

    plant: Plant
    experiment: str
    sizes: Any


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment: errors by name."""

    errors: dict[str, Error]


def _decisions(data_sets: dict[int, int], repeats: int, **options: Any) -> decisions.Sizes:
    return decisions.Sizes(data_sets, 1000, {}, {}, repeats, **options)


def _sizes(repeats: int, iterations: tuple[int, ...], cases: tuple[int, ...], sets: int) -> Sizes:
    calibrated: Any = {"models": ("calibrated",), "dimensions": (1,)}
    errors = {
        "learning rate × 2": Error(
            Plant(learning_rate=2.0), "friedman", friedman.Sizes(repeats, iterations, scores=True)
        ),
        "scale of k_P × 1.25": Error(
            Plant(lengthscale=1.25), "estimators", estimators.Sizes(cases, published.DATA_SETS, repeats, 0)
        ),
        "predicted standard deviations × 1.05": Error(
            Plant(spread=1.05), "tests", _decisions({256: 0}, repeats, tests=("CME",), **calibrated)
        ),
        "the other bootstrap statistic": Error(
            Plant(statistic="skce"), "tests", _decisions({4: sets}, repeats, tests=("SKCE (B = n)",))
        ),
    }
    return Sizes(errors)


FULL = _sizes(199, (1, 10, 20, 50, 100), (4, 16, 64), 10_000)
QUICK = _sizes(99, (20,), (4, 16), 2000)


def tasks(sizes: Sizes, seed: int) -> list[Task]:
    """Tasks of all experiments."""
    out: list[Task] = []
    for name, error in sizes.errors.items():
        some: list[Task] = _MODULES[error.experiment].tasks(error.sizes, seed, error.plant)
        out += [Task(f"{name}: {t.key}", t.function, t.arguments, t.cost) for t in some]
    return out


@dataclass(frozen=True)
class Summary:
    """What the experiment found: by error, published numbers among repeats with the error in them."""

    found: dict[str, Ranking[Any]]
    sizes: Sizes


def summarise(records: dict[str, Record], sizes: Sizes, seed: int) -> Summary:
    """Rankings from the records of all tasks."""
    found: dict[str, Ranking[Any]] = {}
    for name, error in sizes.errors.items():
        head, module = f"{name}: ", _MODULES[error.experiment]
        some = {key.removeprefix(head): record for key, record in records.items() if key.startswith(head)}
        found[name] = rank(module.summarise(some, error.sizes, seed).numbers, group=module.method_of)
    return Summary(found, sizes)


def problems(summary: Summary) -> list[str]:
    """Errors that were not seen."""
    return [f"planted: {name} is not caught" for name, found in summary.found.items() if found.matched]
