"""Public functions of targets and predictions at 10, 3,000 and 60,000 cases: no threshold hides a crash."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.hypotests import METHODS
from wellcal.kernels import Gaussian

SIZES = (10, 3_000, 60_000)
FEW = {"n_resamples": 19, "rng": 0}
MADE = "from_predictions"

Call = Callable[[Any, Any], Any]


@cache
def cases(family: str, n: int) -> tuple[Any, Any]:
    """Draw n targets from predictions of the family."""
    rng = np.random.default_rng(n)
    mu = rng.normal(size=n)
    if family == "Normal":
        return rng.normal(mu), wc.Normal(mu, np.ones(n))
    if family == "Poisson":
        rate = (0.3 * np.exp(0.3 * mu)).round(2) + 0.05
        return rng.poisson(rate), wc.Poisson(rate)
    probs = rng.random(n)
    return (rng.random(n) < probs).astype(int), wc.Bernoulli(probs)


def running(y: Any, pred: Any) -> Any:
    measures = wc.RunningMeasures()
    measures.update(y, pred)
    return measures.result()


def monitored(y: Any, pred: Any) -> Any:
    monitor = wc.Monitor(memory=2_500, draws=9, rng=0)
    monitor.update(y[:2_600], pred[:2_600])  # each case meets those in memory
    return monitor.status


def drawn(name: str) -> Call:
    """Return a call that draws a display, without a test where it can go without."""
    make = getattr(wc.displays, name).from_predictions
    options = {"rng": 0} if name == "NullDisplay" else {"rng": 0, "test": False}
    return lambda y, pred: make(y, pred, **options)


def with_method(method: str) -> Call:
    """Return a call of a method of testing with few resamples, where it has any."""
    options = FEW if METHODS[method].resamples else {"rng": 0}
    return lambda y, pred: wc.calibration_test(y, pred, method=method, **options)


CALLS: dict[str, Call] = {
    "brier": wc.brier,
    "calibration_test": lambda y, pred: wc.calibration_test(y, pred, **FEW),
    "compare": lambda y, pred: wc.compare(y, pred, pred[::-1], n_resamples=39, rng=0),
    "confidence": lambda y, pred: wc.confidence(y, pred)[1].mean(),
    "crps": wc.crps,
    "ece": wc.ece,
    "energy_score": wc.energy_score,
    "equivalence_test": lambda y, pred: wc.equivalence_test(y, pred, tolerance=0.1, rng=0),
    "interval_coverage": wc.interval_coverage,
    "kce": lambda y, pred: wc.kce(y, pred).confidence_interval(),
    "local_discrepancy": lambda y, pred: wc.local_discrepancy(y, pred, pred[:4]),
    "mce": wc.mce,
    "mmce": wc.mmce,
    "mse": wc.mse,
    "nll": wc.nll,
    "pinball_loss": wc.pinball_loss,
    "pit": lambda y, pred: wc.pit(y, pred, rng=0),
    "quantile_calibration": wc.quantile_calibration,
    "report": lambda y, pred: wc.report(np.roll(y, 1), pred, **FEW),
    "recalibration.cross_fit": lambda y, pred: wc.recalibration.cross_fit(y, pred, folds=2, **FEW),
    "skce": wc.skce,
    "smooth_ece": lambda y, pred: wc.smooth_ece(y, pred, reduce="confidence"),
    "ucme": lambda y, pred: wc.ucme(y, pred, locations=4, rng=0),
    "witness": lambda y, pred: wc.witness(np.roll(y, 1), pred, **FEW),
    # Functions of predictions alone, methods of classes, and displays.
    "as_predictions": lambda y, pred: wc.as_predictions(pred),
    "default_kernel": lambda y, pred: wc.default_kernel(pred),
    "pairing": lambda y, pred: wc.pairing(Gaussian(), pred, pred[:4]),
    "plan": lambda y, pred: wc.plan(pred, against=pred[::-1], n_resamples=19, data_sets=20, most=10, rng=0),
    "Monitor": monitored,
    "RunningMeasures": running,
    "TemperatureScaling": lambda y, pred: wc.TemperatureScaling().fit(y, pred).transform(pred),
    **{name: drawn(name) for name in wc.displays.__all__ if hasattr(getattr(wc.displays, name), MADE)},
    **{f"method {name}": with_method(name) for name in METHODS},
}
"""A call for each public function, with small settings for slow ones."""

SLOW = {f"method {name}" for name in METHODS if not METHODS[name].linear} | {"NullDisplay"}
"""Calls that visit all pairs many times: of 3,000 normals they take a second, and of 60,000 cases minutes."""

SLOWER = {"method aggregated", "method spectrum"}
"""Calls that take seconds for 3,000 cases: all pairs for many kernels, or all eigenvalues."""

LIMITED = {"local_discrepancy": "at most 8192"}
"""Calls that refuse 60,000 cases, and their words."""


def outcome(name: str, family: str, n: int) -> str:
    """Return "a result", "refused" where the function is not for the family, or what went wrong."""
    try:
        return "a result" if repr(CALLS[name](*cases(family, n))) else "nothing"
    except TypeError as refused:
        return "refused" if family in str(refused) else str(refused)


@pytest.mark.parametrize("family", ["Normal", "Bernoulli", "Poisson"])
@pytest.mark.parametrize("name", CALLS)
def test_what_works_for_ten_cases_works_for_many(name: str, family: str) -> None:
    first = outcome(name, family, SIZES[0])
    assert first in ("a result", "refused")
    for n in SIZES[1:]:
        if name in SLOWER or (name in SLOW and (n == SIZES[-1] or family != "Normal")):
            continue
        if n == SIZES[-1] and name in LIMITED:
            with pytest.raises(ValueError, match=LIMITED[name]):
                outcome(name, family, n)
            continue
        assert outcome(name, family, n) == first


def test_no_public_function_is_left_out() -> None:
    """Functions of targets or predictions, that is: those of columns and kernels have no number of cases."""
    rooms = {"": wc, "recalibration.": wc.recalibration, "hypotests.": wc.hypotests}
    found = {
        f"{room}{name}".removeprefix("hypotests.")
        for room, module in rooms.items()
        for name in module.__all__
        if inspect.isfunction(of := getattr(module, name))
        and {"y", "pred"} & set(inspect.signature(of).parameters)
    }
    assert found <= set(CALLS) | {"recalibration.apply_temperature"}, "it is `TemperatureScaling.transform`"
