"""The paper's published numbers.

They were produced by the paper's authors with their own implementation, and published with its source
code (https://github.com/devmotion/Calibration_ICLR2021, folder ``experiments/data``); the folder `data`
says what each file holds.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

MODELS = ("calibrated", "uncalibrated")
DATA_SETS = 500
"""Data sets behind each published number."""


@dataclass(frozen=True)
class EstimatorCell:
    """Errors of one estimator: over 500 data sets of n cases of dimension d."""

    mean_error: float
    variance: float
    seconds: float


@dataclass(frozen=True)
class DecisionCell:
    """Errors of one test: over 500 data sets of n cases of dimension d."""

    errors: int
    seconds: float

    @property
    def rate(self) -> float:
        """Proportion of wrong decisions."""
        return self.errors / DATA_SETS


@dataclass(frozen=True)
class FriedmanCell:
    """One statistic at one iteration: over ten models, and of their ensemble."""

    mean: float
    low: float
    high: float
    ensemble: float


ESTIMATORS = ("SKCE", "SKCE (B = 2)", "SKCE (B = √n)", "SKCE (B = n)")
TESTS = ("SKCE (B = 2)", "SKCE (B = √n)", "SKCE (B = n)", "CME")
SIZES = (4, 16, 64, 256, 1024)
DIMENSIONS = (1, 10)
STATISTICS = ("MSE", "NLL", "pinball", "SKCE (biased)", "SKCE (unbiased)", "p-value")


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files("reproduction").joinpath("data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def estimator_errors() -> dict[tuple[str, int, int, str], EstimatorCell]:
    """Cells by model, dimension, number of cases and estimator.

    Examples
    --------
    >>> len(estimator_errors())
    80
    >>> estimator_errors()["calibrated", 1, 4, "SKCE"].seconds
    8.39e-07
    """
    return {
        (model, int(row["dim"]), int(row["nsamples"]), row["estimator"]): EstimatorCell(
            float(row["meanerror"]), float(row["variance"]), float(row["mintime"])
        )
        for model in MODELS
        for row in _rows(f"errors_{model}_model.csv")
    }


@cache
def decision_errors() -> dict[tuple[str, int, int, str], DecisionCell]:
    """Cells by model, dimension, number of cases and test.

    Examples
    --------
    >>> decision_errors()["uncalibrated", 10, 4, "CME"].errors
    229
    """
    return {
        (model, int(row["dim"]), int(row["nsamples"]), row["test"]): DecisionCell(
            round(DATA_SETS * float(row["testerror"])), float(row["mintime"])
        )
        for model in MODELS
        for row in _rows(f"tests_{model}_model.csv")
    }


@cache
def friedman() -> dict[tuple[str, int, str], FriedmanCell]:
    """Cells by data set ("train", "test"), iteration and statistic.

    Examples
    --------
    >>> sorted({iteration for _, iteration, _ in friedman()})[:6]
    [0, 1, 2, 5, 10, 20]
    """
    return {
        (row["dataset"], int(row["iteration"]), row["statistic"]): FriedmanCell(
            *(float(row[name]) for name in ("models_mean", "models_min", "models_max", "ensemble"))
        )
        for row in _rows("friedman_summary.csv")
    }
