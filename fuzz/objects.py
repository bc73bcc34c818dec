"""Objects of the public interface: families and their methods, kernels, engines, methods, losses."""

from __future__ import annotations

from typing import Any

import numpy as np

import wellcal as wc
from fuzz.functions import CASES, NUMBERS, RNG
from fuzz.scenarios import QUICK, SLOW, Scenario, scenario
from fuzz.subjects import Subject, Valid, of, one_of, pred_of
from wellcal import conformance, displays, engines, hypotests, kernels

FAMILIES = [
    Subject(
        f"{family} ({name})" if family != name else family,
        make,
        {parameter: (lambda s, p=parameter: s.parameters[p]) for parameter in parameters},
        {},
        (name,),
        called=("components", "weights") if name == "Mixture" else (),
    )
    for name, family, make, parameters in (
        (name, known.make.__name__, known.make, known.parameters)
        for name in (*QUICK, *SLOW)
        for known in [scenario(np.random.default_rng(0), name)]
    )
]


_TILES = {
    "tile": one_of(None, (16, 16)),
    "threads": one_of(None, 1),
    "precision": one_of("auto", "float64", "mixed"),
}
"""What engines that go by tiles are told."""

METHODS = [
    Subject(
        "Predictions.log_prob", lambda s, y: s.log_prob(y), {"s": of("pred"), "y": of("y")}, {}, NUMBERS[:2]
    ),
    Subject("Predictions.cdf", lambda s, y: s.cdf(y), {"s": of("pred"), "y": of("y")}, {}, NUMBERS),
    Subject(
        "Predictions.quantile", lambda s, u: s.quantile(u), {"s": of("pred"), "u": one_of(0.3)}, {}, NUMBERS
    ),
    Subject(
        "Predictions.sample",
        lambda s, rng, size: s.sample(rng=rng, size=size),
        {"s": of("pred"), "rng": one_of(0), "size": one_of(None, 2)},
    ),
    Subject("Predictions.check_targets", lambda s, y: s.check_targets(y), {"s": of("pred"), "y": of("y")}),
    Subject(
        "Predictions.supports",
        lambda s, what: s.supports(what),
        {"s": of("pred"), "what": one_of("cdf")},
        called=("method",),
    ),
    Subject(
        "Predictions[...]",
        lambda s, index: s[index],
        {"s": of("pred"), "index": one_of(0, [0, 1], slice(1, 3))},
        called=("prediction", "predictions", "mask"),
        also=(IndexError,),
    ),
    Subject(
        "Estimate.confidence_interval",
        lambda level: wc.skce([0.0, 1.0, 3.0], wc.Normal([0.0, 1.0, 2.0], 1.0)).confidence_interval(level),
        {"level": one_of(0.9)},
    ),
]

VALUES = [
    Subject("Gaussian", kernels.Gaussian, {"lengthscale": one_of(1.0)}),
    Subject("Laplacian", kernels.Laplacian, {"lengthscale": one_of(1.0)}),
    Subject("Matern", kernels.Matern, {"nu": one_of(1.5), "lengthscale": one_of(1.0)}),
    Subject(
        "RationalQuadratic", kernels.RationalQuadratic, {"alpha": one_of(1.0), "lengthscale": one_of(1.0)}
    ),
    Subject(
        "ExpDistance",
        kernels.ExpDistance,
        {"metric": one_of(kernels.Wasserstein()), "lengthscale": one_of(1.0), "power": one_of(1.0)},
    ),
    Subject("Wasserstein", kernels.Wasserstein, {"order": one_of(1, 2)}),
    Subject(
        "MixtureWasserstein",
        kernels.MixtureWasserstein,
        {"order": one_of(2.0)},
        {
            "components": one_of(kernels.Wasserstein()),
            "solver": one_of("exact"),
            "regularisation": one_of(0.01),
        },
    ),
    Subject("MaximumMeanDiscrepancy", kernels.MaximumMeanDiscrepancy, {"kernel": one_of(kernels.Gaussian())}),
    Subject("Sum", kernels.Sum, {"kernels": one_of((kernels.Gaussian(), kernels.Laplacian()))}),
    Subject("Product", kernels.Product, {"kernels": one_of((kernels.Gaussian(), kernels.Laplacian()))}),
    Subject(
        "Scaled",
        kernels.Scaled,
        {"factor": one_of(2.0), "kernel": one_of(kernels.Gaussian())},
        called=("factor",),
    ),
    Subject(
        "Tensor",
        kernels.Tensor,
        {
            "predictions": one_of(kernels.ExpDistance(kernels.Wasserstein())),
            "targets": one_of(kernels.Gaussian()),
        },
    ),
    Subject(
        "Callable", kernels.Callable, {"function": one_of(min)}, {"positive_definite": one_of(None, True)}
    ),
    Subject("Joint", kernels.Joint, {"function": one_of(min)}, {"bounded": one_of(None, True)}),
    Subject(
        "a kernel of two lists",
        lambda s, x, y: s(x, y),
        {"s": one_of(kernels.Gaussian(), kernels.Laplacian()), "x": of("y"), "y": of("y")},
        {},
        NUMBERS,
    ),
    Subject(
        "guarantees", lambda s, pred: s.guarantees(pred), {"s": one_of(kernels.Gaussian()), "pred": pred_of}
    ),
    Subject(
        "Lowering", wc.Lowering, {}, {"nodes": one_of(16), "tolerance": one_of(1e-6), "points": one_of(8)}
    ),
    Subject("UniformBins", wc.UniformBins, {"n_bins": one_of(3)}),
    Subject("EqualMassBins", wc.EqualMassBins, {"n_bins": one_of(3)}),
    Subject(
        "MedianVarianceBins", wc.MedianVarianceBins, {}, {"min_size": one_of(3), "max_bins": one_of(None, 4)}
    ),
    Subject("Tiled", engines.Tiled, {}, _TILES),
    Subject("Linear", engines.Linear, {}, {**_TILES, "tolerance": one_of(1e-3)}),
    Subject("choose_engine", engines.choose_engine, {"engine": one_of("auto", "tiled")}),
    Subject(
        "Block",
        hypotests.Block,
        {},
        {"block_size": one_of(2), "variance": one_of("pairs"), "shuffle": one_of(True)},
    ),
    Subject("Exact", hypotests.Exact, {}, {"statistic": one_of("skce"), "stop_after": one_of(None, 5)}),
    Subject(
        "monte_carlo_pvalue",
        hypotests.monte_carlo_pvalue,
        {"statistic": one_of(1.0), "null": one_of([0.0, 2.0])},
    ),
    Subject(
        "QuantileCalibrationDisplay",
        displays.QuantileCalibrationDisplay,
        {"levels": one_of([0.1, 0.9]), "frequencies": one_of([0.2, 0.8])},
    ),
    Subject("axes_or_new", displays.axes_or_new, {"ax": one_of(None)}),
    Subject(
        "check_kernel",
        conformance.check_kernel,
        {"kernel": one_of(kernels.Gaussian()), "predictions": one_of(wc.Normal([0.0, 1.0, 2.0], 1.0))},
        {**RNG, "points": one_of(10), "draws": one_of(50)},
        also=(conformance.ConformanceError,),
    ),
    Subject(
        "check_predictions",
        conformance.check_predictions,
        {"predictions": of("pred")},
        {**RNG, "draws": one_of(100)},
        ("Normal", "Bernoulli"),
        also=(conformance.ConformanceError,),
    ),
]


def _loss(y: Any, pred: Any, **options: Any) -> Any:
    from wellcal.torch import SKCELoss

    return SKCELoss(**options)(y, pred)


def _metric(preds: Any, target: Any, **options: Any) -> Any:
    from wellcal.torch import CalibrationMetric

    metric = CalibrationMetric(**options)
    metric.update(preds, target)
    return metric.compute()


def _tensors(s: Scenario) -> Any:
    import torch

    return wc.Normal(torch.tensor(s.parameters["loc"]), torch.tensor(s.parameters["scale"]))


def _tensor(s: Scenario) -> Any:
    import torch

    return torch.tensor(s.y)


def _jax_loss(**arguments: Any) -> Any:
    from wellcal.jax import skce_loss

    return skce_loss(**arguments)


TRAINING: dict[str, Valid] = {
    "weight": one_of(1.0, 2.0),
    "kernel": one_of(None),
    "estimator": one_of("unbiased"),
}
FRAMEWORKS = [
    Subject("SKCELoss", _loss, {"y": _tensor, "pred": _tensors}, TRAINING, ("Normal",), called=("SKCELoss",)),
    Subject(
        "CalibrationMetric",
        _metric,
        {"preds": _tensors, "target": _tensor},
        {"measure": one_of("skce", "pvalue"), "kernel": one_of(None), "estimator": one_of("unbiased")},
        ("Normal",),
        called=("CalibrationMetric", "predictions", "loc", "scale", "probs"),
    ),
    Subject("skce_loss", _jax_loss, CASES, TRAINING, ("Normal",)),
]
