"""Tell whether a probabilistic model's predictions can be taken at their word.

A prediction is a distribution. wellcal measures how far predicted distributions are from what
happened, given the prediction, for classes, numbers, vectors, counts, ensembles and samples:

>>> import numpy as np, wellcal as wc
>>> mu = np.linspace(-1.0, 1.0, 50)
>>> estimate = wc.skce(mu, wc.Normal(mu, np.ones(50)))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wellcal import conformance, displays, engines, extend, hypotests, kernels, reading, recalibration
    from wellcal import dask as dask
    from wellcal import jax as jax
    from wellcal import torch as torch
    from wellcal._arrays.row_errors import RowError
    from wellcal.comparison import Comparison, Comparisons, compare
    from wellcal.expectations._pairing import pairing
    from wellcal.expectations.lowering import Lowering
    from wellcal.hypotests import (
        PowerPlan,
        TestResult,
        ToleranceResult,
        calibration_test,
        equivalence_test,
        plan,
    )
    from wellcal.measures._confidence import confidence
    from wellcal.measures._kce import kce
    from wellcal.measures._local_discrepancy import local_discrepancy
    from wellcal.measures._mmce import mmce
    from wellcal.measures._skce import skce
    from wellcal.measures._smooth_ece import smooth_ece
    from wellcal.measures._ucme import ucme
    from wellcal.measures.binned import (
        Binning,
        BinTable,
        EqualMassBins,
        MedianVarianceBins,
        UniformBins,
        ece,
        mce,
    )
    from wellcal.measures.estimate import Estimate
    from wellcal.measures.quantiles import interval_coverage, pit, quantile_calibration
    from wellcal.measures.running import Measured, RunningMeasures
    from wellcal.measures.scores import brier, crps, energy_score
    from wellcal.measures.scores.casewise import mse, nll, pinball_loss
    from wellcal.measures.yardstick import Yardstick
    from wellcal.monitoring import Monitor, MonitorChange, MonitorStatus
    from wellcal.predictions import (
        Bernoulli,
        Beta,
        Categorical,
        DiagonalNormal,
        Dirichlet,
        Gamma,
        Laplace,
        LogNormal,
        Mixture,
        MultivariateNormal,
        NegativeBinomial,
        Normal,
        Poisson,
        PowerExponential,
        Predictions,
        Quantiles,
        Samples,
        StudentT,
    )
    from wellcal.predictions.adapters import as_predictions
    from wellcal.predictions.role_inference import GuessedRoles, guess_roles
    from wellcal.problem.defaults import default_kernel
    from wellcal.recalibration import TemperatureScaling
    from wellcal.reporting import Report, report
    from wellcal.witnesses import Witness, witness

__version__ = "0.1.0"

# Names are fetched from their rooms when they are first used: `import wellcal` costs next to nothing.
_HOMES = {
    "_arrays.row_errors": ("RowError",),
    "comparison": ("Comparison", "Comparisons", "compare"),
    "expectations._pairing": ("pairing",),
    "expectations.lowering": ("Lowering",),
    "hypotests": (
        "PowerPlan",
        "TestResult",
        "ToleranceResult",
        "calibration_test",
        "equivalence_test",
        "plan",
    ),
    "measures._confidence": ("confidence",),
    "measures._local_discrepancy": ("local_discrepancy",),
    "measures._mmce": ("mmce",),
    "measures._kce": ("kce",),
    "measures._skce": ("skce",),
    "measures._smooth_ece": ("smooth_ece",),
    "measures._ucme": ("ucme",),
    "measures.binned": (
        "BinTable",
        "Binning",
        "EqualMassBins",
        "MedianVarianceBins",
        "UniformBins",
        "ece",
        "mce",
    ),
    "measures.estimate": ("Estimate",),
    "measures.quantiles": ("interval_coverage", "pit", "quantile_calibration"),
    "measures.running": ("Measured", "RunningMeasures"),
    "measures.scores": ("brier", "crps", "energy_score"),
    "measures.scores.casewise": ("mse", "nll", "pinball_loss"),
    "measures.yardstick": ("Yardstick",),
    "monitoring": ("Monitor", "MonitorChange", "MonitorStatus"),
    "predictions": (
        "Bernoulli",
        "Beta",
        "Categorical",
        "DiagonalNormal",
        "Dirichlet",
        "Gamma",
        "Laplace",
        "LogNormal",
        "Mixture",
        "MultivariateNormal",
        "NegativeBinomial",
        "Normal",
        "Poisson",
        "PowerExponential",
        "Predictions",
        "Quantiles",
        "Samples",
        "StudentT",
    ),
    "predictions.adapters": ("as_predictions",),
    "predictions.role_inference": ("GuessedRoles", "guess_roles"),
    "problem.defaults": ("default_kernel",),
    "reporting": ("Report", "report"),
    "recalibration": ("TemperatureScaling",),
    "witnesses": ("Witness", "witness"),
}
_HOME = {name: f"wellcal.{room}" for room, names in _HOMES.items() for name in names}
_SUBPACKAGES = (
    "conformance",
    "dask",
    "displays",
    "engines",
    "extend",
    "hypotests",
    "jax",
    "kernels",
    "reading",
    "recalibration",
    "torch",
)

# Not in it: torch, jax and dask, which `from wellcal import *` must not need.
__all__ = [
    "Bernoulli",
    "Beta",
    "BinTable",
    "Binning",
    "Categorical",
    "Comparison",
    "Comparisons",
    "DiagonalNormal",
    "Dirichlet",
    "EqualMassBins",
    "Estimate",
    "Gamma",
    "GuessedRoles",
    "Laplace",
    "LogNormal",
    "Lowering",
    "Measured",
    "MedianVarianceBins",
    "Mixture",
    "Monitor",
    "MonitorChange",
    "MonitorStatus",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "Poisson",
    "PowerExponential",
    "PowerPlan",
    "Predictions",
    "Quantiles",
    "Report",
    "RowError",
    "RunningMeasures",
    "Samples",
    "StudentT",
    "TemperatureScaling",
    "TestResult",
    "ToleranceResult",
    "UniformBins",
    "Witness",
    "Yardstick",
    "__version__",
    "as_predictions",
    "brier",
    "calibration_test",
    "compare",
    "confidence",
    "conformance",
    "crps",
    "default_kernel",
    "displays",
    "ece",
    "energy_score",
    "engines",
    "equivalence_test",
    "extend",
    "guess_roles",
    "hypotests",
    "interval_coverage",
    "kce",
    "kernels",
    "local_discrepancy",
    "mce",
    "mmce",
    "mse",
    "nll",
    "pairing",
    "pinball_loss",
    "pit",
    "plan",
    "quantile_calibration",
    "reading",
    "recalibration",
    "report",
    "skce",
    "smooth_ece",
    "ucme",
    "witness",
]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        try:
            return importlib.import_module(f"wellcal.{name}")
        except ModuleNotFoundError as missing:
            raise AttributeError(f"wellcal.{name} needs {missing.name}, which is not installed") from missing
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    importlib.import_module("wellcal.expectations")  # it registers what families and kernels know
    found = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBPACKAGES})
