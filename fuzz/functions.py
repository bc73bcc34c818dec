"""Functions of the public interface: measures, tests, and models that are watched or recalibrated."""

from __future__ import annotations

from typing import Any

import wellcal as wc
from fuzz.scenarios import QUICK, Scenario, as_foreign
from fuzz.subjects import Subject, Valid, of, one_of, pred_of
from wellcal import kernels, recalibration

CASES: dict[str, Valid] = {"y": of("y"), "pred": pred_of}
RNG: dict[str, Valid] = {"rng": one_of(0, 1, None)}
EXPECTATIONS: dict[str, Valid] = {"expectations": one_of("auto", wc.Lowering(nodes=16))}
ENGINE: dict[str, Valid] = {"engine": one_of("auto", "tiled")}
KERNEL: dict[str, Valid] = {"kernel": of("kernel")}
WEIGHTS: dict[str, Valid] = {"weights": of("weights")}
CLASSES = ("Bernoulli", "Categorical", "classes")
NUMBERS = ("Normal", "Laplace", "Samples", "Mixture", "Gamma", "StudentT", "Poisson")
LEVELS: dict[str, Valid] = {"levels": one_of([0.1, 0.5, 0.9], (0.25, 0.75))}
TEST: dict[str, Valid] = {"n_resamples": one_of(19, 99)}


def _location_predictions(s: Scenario) -> Any:
    return s.pred[:3]


MEASURES = [
    Subject(
        "skce",
        wc.skce,
        CASES,
        {
            **KERNEL,
            **WEIGHTS,
            **EXPECTATIONS,
            **ENGINE,
            "estimator": one_of("unbiased", "biased", "block"),
            "block_size": one_of(None, 2, "sqrt"),
            "rng": one_of(None),
            "progress": one_of(False),
        },
    ),
    Subject("kce", wc.kce, CASES, {**KERNEL, **WEIGHTS, **EXPECTATIONS, **ENGINE, "progress": one_of(False)}),
    Subject(
        "ucme", wc.ucme, {**CASES, "locations": of("locations")}, {**KERNEL, **RNG, **EXPECTATIONS, **ENGINE}
    ),
    Subject(
        "ece",
        wc.ece,
        CASES,
        {
            "distance": one_of("total_variation", "euclidean", 2),
            "binning": one_of("uniform", "equal_mass", wc.UniformBins(3)),
            "n_bins": one_of(None, 3),
            "reduce": one_of(None, "confidence", "classwise"),
            "estimator": one_of("plug-in"),
        },
        CLASSES,
    ),
    Subject(
        "mce",
        wc.mce,
        CASES,
        {
            "distance": one_of("total_variation", 1),
            "binning": one_of("equal_mass"),
            "reduce": one_of(None, "classwise"),
        },
        CLASSES,
    ),
    Subject("mmce", wc.mmce, CASES, {**WEIGHTS, **ENGINE, "kernel": one_of(None)}, CLASSES),
    Subject(
        "smooth_ece",
        wc.smooth_ece,
        CASES,
        {"bandwidth": one_of(None, 0.1), "reduce": one_of("confidence")},
        CLASSES,
    ),
    Subject("confidence", wc.confidence, CASES, {}, CLASSES),
    Subject("nll", wc.nll, CASES, WEIGHTS),
    Subject("mse", wc.mse, CASES, WEIGHTS, NUMBERS),
    Subject("crps", wc.crps, CASES, {**WEIGHTS, "fair": one_of(None, False)}, NUMBERS),
    Subject("brier", wc.brier, CASES, {**WEIGHTS, "scale_by_half": one_of(None, True)}, CLASSES),
    Subject("pinball_loss", wc.pinball_loss, CASES, {**WEIGHTS, **LEVELS}, NUMBERS),
    Subject(
        "energy_score",
        wc.energy_score,
        CASES,
        {**WEIGHTS, "power": one_of(1.0, 0.5), "fair": one_of(None)},
        NUMBERS,
    ),
    Subject("pit", wc.pit, CASES, RNG, NUMBERS),
    Subject("quantile_calibration", wc.quantile_calibration, CASES, LEVELS, NUMBERS),
    Subject("interval_coverage", wc.interval_coverage, CASES, LEVELS, NUMBERS),
    Subject(
        "local_discrepancy",
        wc.local_discrepancy,
        CASES,
        {
            **KERNEL,
            **EXPECTATIONS,
            "locations": _location_predictions,
            "regularisation": one_of(None, 0.1),
            "progress": one_of(False),
        },
    ),
    Subject("default_kernel", wc.default_kernel, {"pred": pred_of}, EXPECTATIONS),
    Subject(
        "pairing",
        wc.pairing,
        {"kernel": one_of(kernels.Gaussian(), kernels.Laplacian()), "P": of("pred"), "Q": of("y")},
        EXPECTATIONS,
        NUMBERS,
    ),
    Subject("as_predictions", lambda obj: wc.as_predictions(obj), {"obj": as_foreign}),
]

TESTS = [
    Subject(
        "calibration_test with a tolerance",
        wc.calibration_test,
        {**CASES, "tolerance": one_of(0.05, 0.5)},
        {**KERNEL, **EXPECTATIONS, **ENGINE, "groups": of("groups")},
        QUICK,
    ),
    Subject(
        "plan",
        wc.plan,
        {
            "pred": pred_of,
            "against": one_of(0.5, 2.0),
            "method": one_of("exact"),
            "n_resamples": one_of(19),
            "data_sets": one_of(20),
            "most": one_of(10, 20),
        },
        {**RNG, "power": one_of(0.5, 0.8), "alpha": one_of(0.05, 0.1), "progress": one_of(False)},
        QUICK,
    ),
    Subject(
        "equivalence_test",
        wc.equivalence_test,
        {**CASES, "tolerance": one_of(0.05, 0.5)},
        {**KERNEL, **EXPECTATIONS, **ENGINE, "groups": of("groups"), "progress": one_of(False)},
        QUICK,
    ),
    Subject(
        "calibration_test",
        wc.calibration_test,
        CASES,
        {
            **KERNEL,
            **RNG,
            **TEST,
            **EXPECTATIONS,
            **ENGINE,
            "method": one_of("auto", "exact", "bootstrap", "spectrum", "pearson", "block", "cme", "gamma"),
            "keep_null": one_of(True),
            "progress": one_of(False),
        },
    ),
    Subject(
        "calibration_test of clusters",
        wc.calibration_test,
        {**CASES, "method": one_of("multiplier"), "groups": of("groups")},
        TEST,
        QUICK,
    ),
    Subject(
        "calibration_test of blocks",
        wc.calibration_test,
        {**CASES, "method": one_of("block", "distribution_free"), "block_size": one_of(2, "sqrt")},
        TEST,
        QUICK,
    ),
    Subject(
        "calibration_test at locations",
        wc.calibration_test,
        {**CASES, "method": one_of("cme", "regularised", "omnibus"), "locations": of("locations")},
        {**TEST, **RNG},
        QUICK,
    ),
    Subject(
        "calibration_test of a statistic",
        wc.calibration_test,
        {**CASES, "method": one_of("exact", "consistency"), "statistic": one_of("skce", lambda y, pred: 1.0)},
        TEST,
        QUICK,
    ),
    Subject(
        "compare",
        wc.compare,
        {"y": of("y"), "pred_a": pred_of, "pred_b": of("pred")},
        {**KERNEL, **WEIGHTS, **RNG, **TEST, **EXPECTATIONS, **ENGINE, "level": one_of(0.9)},
        QUICK,
    ),
    Subject(
        "compare of several",
        lambda y, pred, **options: wc.compare(y, {"a": pred, "b": pred}, **options),
        CASES,
        {**KERNEL, **WEIGHTS, **RNG, "level": one_of(0.9)},
        QUICK,
    ),
    Subject(
        "report",
        wc.report,
        CASES,
        {**RNG, "segments": of("groups"), "recalibrate": one_of(True), "progress": one_of(False)},
        QUICK,
    ),
    Subject(
        "witness",
        wc.witness,
        CASES,
        {
            **KERNEL,
            **WEIGHTS,
            **RNG,
            **EXPECTATIONS,
            **ENGINE,
            "locations": of("locations"),
            "segments": of("groups"),
            "alpha": one_of(0.1),
            "quantile_levels": one_of((0.25, 0.75)),
            "min_cases": one_of(2),
            "max_groups": one_of(3),
            "n_resamples": one_of(39),
            "progress": one_of(False),
        },
        QUICK,
    ),
]


def _monitored(y: Any, pred: Any, **options: Any) -> Any:
    return wc.Monitor(**options).update(y, pred)


def _fitted(y: Any, pred: Any, **options: Any) -> Any:
    return wc.TemperatureScaling().fit(y, pred, **options)


def _transformed(pred: Any, bounds: Any = (0.1, 10.0)) -> Any:
    known = wc.Normal([0.0, 1.0, 2.0], 1.0)
    return wc.TemperatureScaling(bounds=bounds).fit([0.5, 0.5, 1.5], known).transform(pred)


MODELS = [
    Subject(
        "Monitor.update",
        _monitored,
        CASES,
        {
            **KERNEL,
            **RNG,
            **ENGINE,
            "alpha": one_of(0.1),
            "warmup": one_of(2, 4),
            "draws": one_of(9, 19),
            "memory": one_of(5, 50),
            "history": one_of(0, 10),
            "expectations": one_of(None),
        },
        QUICK,
    ),
    Subject(
        "Monitor",
        wc.Monitor,
        {},
        {**RNG, "reference": of("pred"), "draws": one_of(9), "run_length": one_of(50.0)},
        QUICK,
    ),
    Subject(
        "TemperatureScaling.fit",
        _fitted,
        CASES,
        {
            "objective": one_of("nll", "skce"),
            **ENGINE,
            **EXPECTATIONS,
            "estimator": one_of("unbiased"),
            "progress": one_of(False),
        },
        ("Normal", "Laplace", "Bernoulli", "Categorical", "classes", "Mixture"),
    ),
    Subject(
        "TemperatureScaling.transform",
        _transformed,
        {"pred": pred_of},
        {"bounds": one_of((0.5, 2.0))},
        ("Normal",),
    ),
    Subject(
        "apply_temperature",
        recalibration.apply_temperature,
        {"pred": pred_of, "temperature": one_of(2.0)},
        {},
        ("Normal", "Laplace", "Bernoulli", "Categorical", "Mixture", "Beta"),
    ),
    Subject(
        "cross_fit",
        recalibration.cross_fit,
        CASES,
        {**RNG, **TEST, "folds": one_of(2, 3), "objective": one_of("nll"), "method": one_of("exact", "auto")},
        ("Normal", "Bernoulli"),
    ),
]
