"""Planted errors, and whether the comparison with published numbers sees them.

Small versions of the experiments are run with an error in them, and without: the first must be rejected, the
second must not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reproduction import published
from reproduction.experiments import decisions, estimators, friedman
from reproduction.experiments.plant import NOTHING, Plant
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
    """Sizes of the experiment.

    Attributes
    ----------
    errors
        By name.
    control
        Whether the same is run without an error.
    """

    errors: dict[str, Any]
    control: bool


def _decisions(data_sets: dict[int, int], repeats: int, **options: Any) -> decisions.Sizes:
    return decisions.Sizes(data_sets, 1000, {}, {}, repeats, **options)


def _sizes(
    repeats: int, iterations: tuple[int, ...], cases: tuple[int, ...], sets: int, *, control: bool
) -> Sizes:
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
    return Sizes(errors, control)


FULL = _sizes(199, (1, 10, 20, 50, 100), (4, 16, 64), 10_000, control=True)
QUICK = _sizes(99, (1, 10, 20), (4, 16), 2000, control=False)


def tasks(sizes: Sizes, seed: int) -> list[Task]:
    """Tasks of all experiments."""
    out: list[Task] = []
    for name, error in sizes.errors.items():
        for planted in (True, False) if sizes.control else (True,):
            plant = error.plant if planted else NOTHING
            some: list[Task] = _MODULES[error.experiment].tasks(error.sizes, seed, plant)
            out += [Task(f"{name}, {planted}: {t.key}", t.function, t.arguments, t.cost) for t in some]
    return out


@dataclass(frozen=True)
class Found:
    """One error.

    Attributes
    ----------
    planted, control
        Published numbers among repeats with the error, and without it.
    """

    planted: Ranking[Any]
    control: Ranking[Any] | None


@dataclass(frozen=True)
class Summary:
    """What the experiment found, by error."""

    found: dict[str, Found]
    sizes: Sizes


def summarise(records: dict[str, Record], sizes: Sizes, seed: int) -> Summary:
    """Rankings from the records of all tasks."""

    def ranking(name: str, error: Error, planted: bool) -> Ranking[Any]:
        head = f"{name}, {planted}: "
        some = {key.removeprefix(head): record for key, record in records.items() if key.startswith(head)}
        return rank(_MODULES[error.experiment].summarise(some, error.sizes, seed).numbers)

    return Summary(
        {
            name: Found(
                ranking(name, error, planted=True),
                ranking(name, error, planted=False) if sizes.control else None,
            )
            for name, error in sizes.errors.items()
        },
        sizes,
    )


def problems(summary: Summary) -> list[str]:
    """Errors that were not seen, and errors that were seen where there are none."""
    out: list[str] = []
    for name, found in summary.found.items():
        if found.planted.matched:
            out.append(f"planted: {name} is not caught")
        if found.control is not None and not found.control.matched:
            out.append(f"planted: {name} is found where it was not planted")
    return out
