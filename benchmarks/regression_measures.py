"""Regression rows of kernels, expectations, estimators, measures and scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import wellcal as wc
from benchmarks.regression_data import CASES, MAKERS, case_weights, data, generator
from benchmarks.regression_rows import (
    BY_DISCREPANCY,
    EXACT,
    UNIT_TERMS,
    Rows,
    checksum,
    error_rows,
    row,
    score_rows,
    tolerance_of,
)
from wellcal import kernels as k

# -- estimators ----------------------------------------------------------------------------------


def estimators(names: list[str]) -> Rows:
    """All estimators of each family under its default kernel, and the length scales of that."""
    for name in names:
        y, pred = data(name)
        first = wc.skce(y, pred)
        kernel: Any = first.kernel
        allowed = tolerance_of(kernel)
        yield row(f"default kernel / {name} / scale on predictions", kernel.predictions.lengthscale, allowed)
        if hasattr(kernel.targets, "lengthscale"):
            yield row(f"default kernel / {name} / scale on targets", kernel.targets.lengthscale)
        yield from error_rows(f"skce unbiased / {name}", first)
        biased = wc.skce(y, pred, kernel=kernel, estimator="biased")
        yield row(f"skce biased / {name}", biased, allowed, UNIT_TERMS)
        yield row(f"kce / {name}", wc.kce(y, pred, kernel=kernel), allowed, UNIT_TERMS)
        size = 3 if len(pred) < CASES else None
        options: dict[str, Any] = {"estimator": "block", "block_size": size, "rng": 3}
        yield from error_rows(f"skce block / {name}", wc.skce(y, pred, kernel=kernel, **options))


def classes() -> Rows:
    yield from estimators(list(MAKERS)[:6])


def numbers() -> Rows:
    yield from estimators(list(MAKERS)[6:14])


def vectors_and_mixtures() -> Rows:
    yield from estimators(list(MAKERS)[14:])


# -- expectations --------------------------------------------------------------------------------

TARGET_KERNELS: dict[str, Any] = {
    "Gaussian": k.Gaussian(0.8),
    "Laplacian": k.Laplacian(0.8),
    "Matern 0.5": k.Matern(0.5, 0.8),
    "Matern 2.5": k.Matern(2.5, 0.8),
    "Matern 1.3": k.Matern(1.3, 0.8),
    "RationalQuadratic": k.RationalQuadratic(0.7, 0.8),
    "Delta": k.Delta(),
    "sum": k.Gaussian(0.5) + 0.5 * k.Laplacian(2.0),
    "product": k.Gaussian(0.5) * k.Laplacian(2.0),
    "fused product": k.Gaussian(0.5) * k.Gaussian(2.0),
    "scaled": 3.0 * k.Gaussian(0.8),
}


def target_kernels() -> Rows:
    """Kernel matrices between points, some of them equal."""
    rng = generator("points")
    numbers, points = rng.normal(size=7), rng.normal(size=(7, 3))
    for name, kernel in TARGET_KERNELS.items():
        yield row(f"kernel on numbers / {name}", checksum(kernel(numbers, numbers[:5])))
        yield row(f"kernel on vectors / {name}", checksum(kernel(points, points[:5])))


def short(name: str, n: int = 5) -> Any:
    """The first predictions of a family."""
    return data(name)[1][:n]


CLOSED_PAIRS = [
    ("Gaussian", "Normal", "Normal"),
    ("Laplacian", "Normal", "Normal"),
    ("Laplacian", "Laplace", "Laplace"),
    ("Gaussian", "Laplace", "Laplace"),
    ("Gaussian", "Normal", "Laplace"),
    ("Laplacian", "Normal", "Laplace"),
    ("Gaussian", "DiagonalNormal", "MultivariateNormal"),
    ("Gaussian", "MultivariateNormal", "MultivariateNormal"),
    ("Gaussian", "Poisson", "NegativeBinomial"),
    ("Laplacian", "Poisson", "Poisson"),
    ("Delta", "Categorical", "Categorical"),
    ("Matern 2.5", "Categorical, support", "Categorical, support"),
    ("sum", "Mixture of normals", "Normal"),
    ("Laplacian", "Mixture of Laplaces", "Mixture of normals"),
    ("Gaussian", "Mixture of vectors", "DiagonalNormal"),
    ("RationalQuadratic", "Samples, draws", "Samples, atoms"),
    ("Laplacian", "Samples, draws of vectors", "Samples, weighted atoms of vectors"),
    ("Gaussian", "Samples, draws", "Normal"),
    ("Delta", "Quantiles", "Quantiles"),
]

LOWERED_PAIRS = [
    ("Gaussian", "StudentT", "StudentT"),
    ("Laplacian", "Gamma", "Normal"),
    ("Gaussian", "LogNormal", "Beta"),
    ("Matern 0.5", "Normal", "Normal"),
    ("Matern 1.3", "Gamma", "Gamma"),
    ("product", "Normal", "Laplace"),
    ("RationalQuadratic", "Normal", "PowerExponential"),
    ("Gaussian", "Mixture of Normal and StudentT", "Samples, atoms"),
    ("Laplacian", "DiagonalNormal", "MultivariateNormal"),
    ("Gaussian", "Dirichlet", "Dirichlet"),
    ("Gaussian", "PowerExponential, vectors", "MultivariateNormal"),
]

NODES = wc.Lowering(nodes=64, points=32)


def pairings() -> Rows:
    """Expectations between two families, and between a family and targets."""
    for name, first, second in CLOSED_PAIRS:
        P, Q = short(first), short(second, 4)
        found = wc.pairing(TARGET_KERNELS[name], P, Q, expectations="closed")
        yield row(f"pairing / {name} / {first} x {second}", checksum(found))
    for name, first, second in LOWERED_PAIRS:
        P, Q = short(first), short(second, 4)
        found = wc.pairing(TARGET_KERNELS[name], P, Q, expectations=NODES)
        yield row(f"lowered pairing / {name} / {first} x {second}", checksum(found))
    for name, family in (
        ("Gaussian", "Normal"),
        ("Laplacian", "Laplace"),
        ("Gaussian", "MultivariateNormal"),
    ):
        y, pred = data(family)
        found = wc.pairing(TARGET_KERNELS[name], pred, y[:4])
        yield row(f"pairing / {name} / {family} x targets", checksum(found))
    far = wc.pairing(
        k.Laplacian(0.8), wc.Laplace(np.zeros(3), np.array([0.8, 0.8 + 1e-9, 2.0])), short("Laplace")
    )
    yield row("pairing / Laplacian / Laplace of nearly its scale", checksum(far))


# -- kernels on predictions ----------------------------------------------------------------------

METRICS: list[tuple[str, Any, float, list[str]]] = [
    (
        "Euclidean",
        k.Euclidean(),
        1.5,
        ["Bernoulli", "Categorical", "Normal", "DiagonalNormal", "Laplace", "Poisson"],
    ),
    ("TotalVariation", k.TotalVariation(), 0.7, ["Bernoulli", "Categorical"]),
    ("Hellinger", k.Hellinger(), 2.0, ["Bernoulli", "Categorical", "Normal", "Poisson"]),
    ("Wasserstein 1", k.Wasserstein(1), 1.0, ["Normal", "Laplace", "Samples, atoms"]),
    (
        "Wasserstein 2",
        k.Wasserstein(2),
        2.0,
        ["Normal", "Laplace", "MultivariateNormal", "Gamma", "StudentT", "Quantiles", "Samples, atoms"],
    ),
    ("RootCovariance", k.RootCovariance(), 1.5, ["MultivariateNormal"]),
    ("MixtureWasserstein 2", k.MixtureWasserstein(2.0), 1.0, ["Mixture of normals", "Mixture of Laplaces"]),
    ("MixtureWasserstein 1", k.MixtureWasserstein(1.0), 1.0, ["Mixture of Laplaces"]),
]

TRANSPORTED = 12  # cases where each pair is a transport problem


def on_targets(name: str) -> Any:
    """A kernel on targets with a closed form, of a length scale that no default chooses."""
    nominal = name in ("Bernoulli", "Categorical", "Quantiles")
    return k.Delta() if nominal else k.Laplacian(1.3) if name == "Laplace" else k.Gaussian(1.3)


def metrics() -> Rows:
    """SKCE under a kernel of each metric between predictions."""
    for title, metric, power, families in METRICS:
        for name in families:
            y, pred = data(name)
            n = TRANSPORTED if title.startswith("Mixture") else CASES
            kernel = k.ExpDistance(metric, lengthscale=0.9, power=power) @ on_targets(name)
            yield row(f"{title} / {name}", wc.skce(y[:n], pred[:n], kernel=kernel), EXACT, UNIT_TERMS)
    for name in (
        "Bernoulli",
        "Normal",
        "Laplace",
        "MultivariateNormal",
        "Poisson",
        "Gamma",
        "Samples, draws",
    ):
        y, pred = data(name)
        by_discrepancy = k.ExpDistance(k.MaximumMeanDiscrepancy(on_targets(name)), lengthscale=0.5, power=2.0)
        estimate = wc.skce(y, pred, kernel=by_discrepancy @ on_targets(name))
        yield row(f"MaximumMeanDiscrepancy / {name}", estimate, BY_DISCREPANCY, UNIT_TERMS)


def likeness(x: Any, y: Any) -> Any:
    """A vectorised kernel of a user."""
    return 1.0 / (1.0 + np.abs(np.asarray(x)[:, None] - np.asarray(y)[None, :]))


def pair_likeness(P: Any, y: Any, Q: Any, z: Any) -> Any:
    """A kernel on pairs that does not factor."""
    gap = (P.probs[:, None] - Q.probs[None, :]) ** 2
    return np.exp(-gap * (1.0 + (np.asarray(y)[:, None] == np.asarray(z)[None, :])))


def kernel_algebra() -> Rows:
    """Sums, products and multiples on either side and of pairs, and kernels that users write."""
    y, pred = data("Normal")
    near, far = k.ExpDistance(k.Wasserstein(), 0.5), k.ExpDistance(k.Wasserstein(), 2.0, power=1.5)
    combined: dict[str, Any] = {
        "the paper's": k.paper_kernel,
        "sum on predictions": (near + far) @ k.Gaussian(1.1),
        "product on predictions": (near * far) @ k.Gaussian(1.1),
        "sum on targets": near @ (k.Gaussian(0.5) + k.Laplacian(2.0)),
        "sum of pairs": near @ k.Gaussian(0.5) + 0.3 * (far @ k.Laplacian(2.0)),
        "product of pairs": (near @ k.Gaussian(0.5)) * (far @ k.Gaussian(2.0)),
        "multiple": 2.5 * (near @ k.Gaussian(0.5)),
        "Laplacian on parameters": k.Laplacian(0.7) @ k.Gaussian(1.1),
        "lowered Matern": near @ k.Matern(1.5, 1.1),
    }
    for name, kernel in combined.items():
        found = wc.skce(y, pred, kernel=kernel, expectations=NODES)
        yield from error_rows(f"kernel / {name} / Normal", found)
    y, pred = data("Samples, atoms")
    own = k.ExpDistance(k.Wasserstein(), 0.9) @ k.Callable(likeness, True)
    yield from error_rows("kernel / Callable / Samples, atoms", wc.skce(y, pred, kernel=own))
    y, pred = data("Bernoulli")
    yield from error_rows("kernel / Joint / Bernoulli", wc.skce(y, pred, kernel=k.Joint(pair_likeness)))
    y, pred = data("Normal")
    tiles = wc.skce(y, pred, kernel=k.paper_kernel, engine=wc.engines.Tiled(tile=(5, 8), threads=1))
    yield from error_rows("engine / small tiles / Normal", tiles)


def other_kernels() -> Rows:
    """Families whose default rests on the maximum mean discrepancy, without it: to full precision."""
    for name in ("StudentT", "PowerExponential", "Gamma", "LogNormal", "Beta", "Samples, atoms"):
        y, pred = data(name)
        kernel = k.ExpDistance(k.Wasserstein(), 0.9) @ k.Gaussian(1.1)
        estimate = wc.skce(y, pred, kernel=kernel, expectations=wc.Lowering(nodes=64))
        yield from error_rows(f"Wasserstein and Gaussian / {name}", estimate)


def nearly_equal() -> Rows:
    """Predictions that differ in the second digit, compared by the maximum mean discrepancy."""
    rng = generator("nearly equal")
    step = 0.03 * rng.normal(size=CASES)
    y = 1.5 * rng.normal(size=CASES) + 0.7
    one = np.ones(CASES)
    batches: dict[str, Any] = {
        "Normal": wc.Normal(0.3 + step, one),
        "Laplace": wc.Laplace(0.3 + step, one),
        "Mixture of normals": wc.Mixture([wc.Normal(step, one), wc.Normal(1.0 - step, 0.5 * one)]),
        "Samples, atoms": wc.Samples(rng.normal(size=(1, 6)) + step[:, None], kind="atoms"),
    }
    for name, pred in batches.items():
        on_y = k.Laplacian(1.2) if name == "Laplace" else k.Gaussian(1.2)
        kernel = k.ExpDistance(k.MaximumMeanDiscrepancy(on_y), lengthscale=0.03, power=1.0) @ on_y
        yield row(f"nearly equal / {name}", wc.skce(y, pred, kernel=kernel), BY_DISCREPANCY, UNIT_TERMS)
        default: Any = wc.default_kernel(wc.Mixture([pred]) if name == "Normal" else pred)
        yield row(f"nearly equal / {name} / scale", default.predictions.lengthscale, BY_DISCREPANCY)


# -- measures ------------------------------------------------------------------------------------


def weighted() -> Rows:
    """Cases that do not count alike."""
    w = case_weights()
    for name in ("Bernoulli", "Normal", "MultivariateNormal", "Samples, draws"):
        y, pred = data(name)
        found = wc.skce(y, pred, weights=w)
        yield from error_rows(f"weighted skce / {name}", found)
        biased = wc.kce(y, pred, weights=w, kernel=found.kernel)
        yield row(f"weighted kce / {name}", biased, tolerance_of(found.kernel), UNIT_TERMS)
    y, pred = data("Categorical")
    yield row("weighted mmce / Categorical", wc.mmce(y, pred, weights=w), EXACT, UNIT_TERMS)
    yield from score_rows("weighted brier / Categorical", wc.brier(y, pred, weights=w))
    y, pred = data("Normal")
    yield from score_rows("weighted nll / Normal", wc.nll(y, pred, weights=w))
    yield from score_rows("weighted mse / Normal", wc.mse(y, pred, weights=w))
    yield from score_rows("weighted crps / Normal", wc.crps(y, pred, weights=w))
    yield from score_rows("weighted energy score / Normal", wc.energy_score(y, pred, weights=w))
    yield from score_rows("weighted pinball loss / Normal", wc.pinball_loss(y, pred, weights=w))


def measures_of_classes() -> Rows:
    """Bins, smooth errors and the confidence reduction."""
    for name in ("Bernoulli", "Categorical"):
        y, pred = data(name)
        options: dict[str, dict[str, Any]] = {
            "default": {"reduce": "none"},
            "equal mass": {"binning": "equal_mass", "n_bins": 5, "reduce": "none"},
            "confidence": {"reduce": "confidence", "n_bins": 6, "binning": "uniform"},
            "classwise": {"reduce": "classwise"},
            "euclidean": {"distance": "euclidean", "reduce": "none"},
            "largest difference": {"distance": math.inf, "reduce": "none"},
        }
        for title, chosen in options.items():
            yield row(f"ece {title} / {name}", wc.ece(y, pred, **chosen), EXACT, UNIT_TERMS)
        unbiased = wc.ece(y, pred, distance="squared_euclidean", estimator="debiased", reduce="none")
        yield row(f"ece debiased / {name}", unbiased, EXACT, UNIT_TERMS)
        yield row(f"mce / {name}", wc.mce(y, pred, reduce="none"), EXACT, UNIT_TERMS)
        yield row(f"mmce / {name}", wc.mmce(y, pred), EXACT, UNIT_TERMS)
        smooth = wc.smooth_ece(y, pred, reduce="confidence", bandwidth=0.1)
        yield row(f"smooth ece, bandwidth given / {name}", smooth, EXACT, UNIT_TERMS)
        yield row(f"smooth ece / {name}", wc.smooth_ece(y, pred, reduce="confidence"), 1e-9, UNIT_TERMS)
    y, pred = data("Categorical")
    yield row(
        "smooth ece, classwise / Categorical", wc.smooth_ece(y, pred, reduce="classwise"), 1e-9, UNIT_TERMS
    )
    correct, top = wc.confidence(y, pred)
    yield row("confidence, right / Categorical", checksum(correct))
    yield row("confidence / Categorical", checksum(top.probs))
    yield from error_rows("confidence, skce / Categorical", wc.skce(correct, top))
    yield row("ece / Poisson", wc.ece(*data("Poisson")), EXACT, UNIT_TERMS)
    yield row("ece / Quantiles", wc.ece(*data("Quantiles")), EXACT, UNIT_TERMS)


def measures_at_places() -> Rows:
    """Embeddings at locations and discrepancies at predictions."""
    for name in ("Bernoulli", "Normal", "MultivariateNormal", "Mixture of normals", "Samples, atoms"):
        y, pred = data(name)
        kernel = wc.default_kernel(pred)
        allowed = tolerance_of(kernel)
        given = wc.ucme(y, pred, locations=(pred[:5], y[5:10]), kernel=kernel)
        yield row(f"ucme, given locations / {name}", given, allowed, UNIT_TERMS**2)
        drawn = wc.ucme(y, pred, locations=6, kernel=kernel, rng=2)
        yield row(f"ucme, drawn locations / {name}", drawn, allowed, UNIT_TERMS**2)
        local = wc.local_discrepancy(y, pred, pred[:6], kernel=kernel)
        yield row(f"local discrepancy / {name}", checksum(local.values), allowed)
    y, pred = data("Normal")
    everywhere = wc.local_discrepancy(y, pred, regularisation=0.01)
    yield row("local discrepancy, regularisation 0.01 / Normal", checksum(everywhere.values))


# -- scores --------------------------------------------------------------------------------------

WITH_DENSITY = [name for name in MAKERS if not name.startswith(("Samples", "Quantiles"))]
RANKED = [
    "Bernoulli",
    "Categorical, support",
    "Poisson",
    "NegativeBinomial",
    "Normal",
    "Laplace",
    "StudentT",
    "PowerExponential",
    "Gamma",
    "LogNormal",
    "Beta",
    "Mixture of normals",
    "Mixture of counts",
    "Samples, draws",
    "Samples, atoms",
]
WITH_MEAN = [
    "Poisson",
    "NegativeBinomial",
    "StudentT",
    "Gamma",
    "LogNormal",
    "Beta",
    "DiagonalNormal",
    "Dirichlet",
]
WITH_QUANTILES = ["Normal", "Laplace", "StudentT", "PowerExponential", "Gamma", "LogNormal", "Beta"]


def scores() -> Rows:
    """Proper scores of all families that have them."""
    for name in WITH_DENSITY:
        yield row(f"nll / {name}", wc.nll(*data(name)))
    for name in RANKED:
        yield row(f"crps / {name}", wc.crps(*data(name)))
    for name in WITH_MEAN:
        yield row(f"mse / {name}", wc.mse(*data(name)))
    for name in ("Bernoulli", "Categorical", "Categorical, classes", "Mixture of classes"):
        yield row(f"brier / {name}", wc.brier(*data(name)))
    for name in ("DiagonalNormal", "MultivariateNormal", "Samples, draws of vectors", "Normal", "Laplace"):
        yield row(f"energy score / {name}", wc.energy_score(*data(name)))
    y, pred = data("Samples, weighted atoms of vectors")
    yield row("energy score, power 1.5 / Samples, weighted atoms", wc.energy_score(y, pred, power=1.5))
    y, pred = data("Normal")
    yield from score_rows("nll / Normal, as a pair", wc.nll(y, (pred.loc, pred.scale)))


def quantile_measures() -> Rows:
    """Quantiles, coverage and the probability integral transform."""
    for name in WITH_QUANTILES:
        y, pred = data(name)
        yield row(f"pinball loss / {name}", wc.pinball_loss(y, pred))
        yield row(f"pit / {name}", checksum(wc.pit(y, pred)))
    for name in ("Poisson", "Bernoulli", "Categorical, support", "Samples, draws", "Mixture of counts"):
        y, pred = data(name)
        yield row(f"pit, randomised / {name}", checksum(wc.pit(y, pred, rng=4)))
    for name in ("Normal", "Gamma", "Mixture of normals"):
        y, pred = data(name)
        found = wc.quantile_calibration(y, pred)
        yield row(f"quantile calibration / {name}", found, EXACT, UNIT_TERMS)
        yield row(f"quantile calibration, frequencies / {name}", checksum(found.frequencies))
        covered = wc.interval_coverage(y, pred)
        yield row(f"interval coverage / {name}", covered, EXACT, UNIT_TERMS)
        yield row(f"interval coverage, proportions / {name}", checksum(covered.coverage))
        yield row(f"interval coverage, widths / {name}", checksum(covered.widths))


def family_functions() -> Rows:
    """What families compute of themselves: means, variances, distribution functions, quantiles."""
    for name in (
        "Normal",
        "Laplace",
        "StudentT",
        "PowerExponential",
        "Gamma",
        "LogNormal",
        "Beta",
        "Poisson",
    ):
        y, pred = data(name)
        yield row(f"mean / {name}", checksum(pred.mean()), EXACT, UNIT_TERMS)
        yield row(f"variance / {name}", checksum(pred.variance()))
        yield row(f"cdf / {name}", checksum(pred.cdf(y)))
        yield row(f"quantile / {name}", checksum(pred.quantile(0.3)), EXACT, UNIT_TERMS)
    for name in MAKERS:
        drawn = data(name)[1].sample(rng=6)
        if np.asarray(drawn).dtype.kind in "fiu":
            yield row(f"sample / {name}", checksum(drawn), EXACT, UNIT_TERMS)


SECTIONS = {
    "estimators: classes": classes,
    "estimators: numbers": numbers,
    "estimators: vectors and mixtures": vectors_and_mixtures,
    "kernels on targets": target_kernels,
    "expectations": pairings,
    "metrics": metrics,
    "kernel algebra": kernel_algebra,
    "other kernels": other_kernels,
    "nearly equal predictions": nearly_equal,
    "weights": weighted,
    "measures of classes": measures_of_classes,
    "measures at places": measures_at_places,
    "scores": scores,
    "quantiles": quantile_measures,
    "families": family_functions,
}
