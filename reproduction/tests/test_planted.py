"""Errors that are planted into small experiments are caught; without them nothing is found.

With 19 repeats, and at a level that so many can reach. ``python -m reproduction --quick`` plants the same
errors with 99 of them, and ends with an error where one is not caught.
"""

import functools

import numpy as np
import pytest

from reproduction import published, ranks
from reproduction.experiments import decisions, estimators, friedman, planted
from reproduction.experiments.plant import NOTHING, Plant
from reproduction.ranks import Repeated, rank
from wellcal.kernels import paper_kernel

REPEATS, ALPHA = 19, 0.1
MODULES = {"learning rate": friedman, "k_P": estimators, "spread": decisions, "statistic": decisions}
PLANTS = {
    "learning rate": Plant(learning_rate=2.0),
    "k_P": Plant(lengthscale=1.25),
    "spread": Plant(spread=1.05),
    "statistic": Plant(statistic="skce"),
}
SIZES = {
    "learning rate": friedman.Sizes(REPEATS, (20,), scores=True),
    "k_P": estimators.Sizes((4, 16), published.DATA_SETS, REPEATS, 0),
    "spread": decisions.Sizes(
        {256: 0}, 0, {}, {}, REPEATS, tests=("CME",), models=("calibrated",), dimensions=(1,)
    ),
    "statistic": decisions.Sizes(
        {4: 1500}, 1000, {}, {}, REPEATS, ("SKCE (B = n)",), models=("uncalibrated",), dimensions=(10,)
    ),
}


@pytest.fixture(autouse=True)
def level(monkeypatch):
    monkeypatch.setattr(ranks, "ALPHA", ALPHA)


@functools.cache
def ranking(name, plant):
    module, sizes = MODULES[name], SIZES[name]
    records = {task.key: task.function(*task.arguments) for task in module.tasks(sizes, 0, plant)}
    return rank(module.summarise(records, sizes, 0).numbers, group=module.method_of)


@pytest.mark.parametrize("name", PLANTS)
def test_planted_errors_are_caught(name):
    assert not ranking(name, PLANTS[name]).matched


@pytest.mark.parametrize("name", ["k_P", "statistic"])
def test_nothing_is_found_where_nothing_is_planted(name):
    assert ranking(name, NOTHING).matched


def test_nothing_planted_is_the_paper():
    assert NOTHING.kernel == paper_kernel
    assert (NOTHING.learning_rate, NOTHING.spread, NOTHING.statistic) == (1.0, 1.0, "authors")


@pytest.mark.parametrize("sizes", [planted.FULL, planted.QUICK])
def test_the_experiment_plants_each_of_them(sizes):
    assert [error.plant for error in sizes.errors.values()] == list(PLANTS.values())


def test_an_error_that_is_not_caught_is_a_problem():
    repeats = np.linspace(-1.0, 1.0, REPEATS)
    found = {name: rank({"cell": Repeated(at, repeats)}) for name, at in {"seen": 9.0, "missed": 0.0}.items()}
    assert planted.problems(planted.Summary(found, planted.QUICK)) == ["planted: missed is not caught"]


def test_training_may_be_evaluated_once() -> None:
    sizes = friedman.Sizes(repeats=2, compared=(20,))
    assert sizes.iterations == 20
    assert sizes.evaluated(0) == [20]
