"""Regression rows of hypothesis tests, comparison, witness, monitor, recalibration and array libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

import wellcal as wc
from benchmarks.regression_data import CASES, case_weights, data, generator, too_certain
from benchmarks.regression_rows import (
    BY_DISCREPANCY,
    EXACT,
    UNIT_TERMS,
    Rows,
    checksum,
    error_rows,
    row,
    tolerance_of,
)
from wellcal import hypotests
from wellcal import kernels as k

RESAMPLES = 99  # enough to reach the level 0.01
LOCATIONS = 3

FLAT_VALLEY = 5e-7
"""Of a temperature by likelihood, and of what is computed at it.

The search stops at 1e-9, but near its minimum the likelihood is the same to rounding: inputs that differ in
their last digit give temperatures that differ by up to 4e-8. The likelihood itself is compared to all digits.
"""

COARSE_SEARCH = 1e-9
"""Of a temperature by calibration error: the search stops at 1e-4, on a path that roundings hardly move."""

# -- tests ---------------------------------------------------------------------------------------

METHODS: dict[str, dict[str, Any]] = {
    "auto": {},
    "omnibus": {},
    "exact": {},
    "aggregated": {},
    "regularised": {"locations": 5},
    "pearson": {},
    "bootstrap": {},
    "multiplier": {},
    "spectrum": {},
    "gamma": {},
    "block": {"block_size": 4},
    "cme": {"locations": LOCATIONS},
    "distribution_free": {},
    "consistency": {},
}
SOME_METHODS = ["omnibus", "exact", "pearson", "block"]


def tested(name: str, method: Any, **options: Any) -> Any:
    y, pred = data(name)
    return wc.calibration_test(y, pred, method=method, rng=5, n_resamples=RESAMPLES, **options)


def test_rows(title: str, result: Any) -> Rows:
    """Statistic and p-value.

    A p-value counts resamples and is then the same to the last digit, or is the tail of a distribution: far
    out its relative error is that of the statistic many times over, while its absolute error is small.
    """
    allowed = tolerance_of(result.kernel)
    yield row(f"{title} / statistic", result.statistic, allowed, UNIT_TERMS)
    yield row(f"{title} / p-value", result.pvalue, allowed, UNIT_TERMS)


def methods_on(name: str, methods: list[str]) -> Rows:
    for method in methods:
        yield from test_rows(f"test {method} / {name}", tested(name, method, **METHODS[method]))
    first = tested(name, "pearson")
    allowed = tolerance_of(first.kernel)
    yield row(f"test / {name} / estimate", first.estimate, allowed, UNIT_TERMS)
    yield row(f"test / {name} / effect size", first.effect_size, allowed, UNIT_TERMS)


def tests_of_classes() -> Rows:
    yield from methods_on("Categorical", list(METHODS))
    yield from methods_on("Bernoulli", SOME_METHODS)
    yield from methods_on("Poisson", SOME_METHODS)


def tests_of_numbers() -> Rows:
    yield from methods_on("Normal", list(METHODS))
    yield from methods_on("Laplace", SOME_METHODS)
    yield from methods_on("Gamma", ["exact", "pearson"])


def tests_of_vectors_and_samples() -> Rows:
    yield from methods_on("Samples, draws", [name for name in METHODS if name != "consistency"])
    yield from methods_on("MultivariateNormal", SOME_METHODS)
    yield from methods_on("Mixture of normals", SOME_METHODS)


def mean_surprise(y: Any, pred: Any) -> float:
    """A statistic of a user."""
    return float(np.mean((y - pred.loc) ** 2 / pred.scale**2))


def tests_with_options() -> Rows:
    """Methods with options of their own, clusters of cases, and several kernels."""
    methods: dict[str, Any] = {
        "Block, pairs": hypotests.Block(4, variance="pairs"),
        "Block, t": hypotests.Block(4, quantiles="t", shuffle=True),
        "Block, weighted chi2": hypotests.Block(n_blocks=3, null="weighted_chi2"),
        "MeanEmbedding, F": hypotests.MeanEmbedding(LOCATIONS, reference="F"),
        "MeanEmbedding, chi2": hypotests.MeanEmbedding(LOCATIONS, reference="chi2"),
        "Exact, block": hypotests.Exact("block", block_size=4),
        "Exact, cme": hypotests.Exact("cme", locations=LOCATIONS),
        "Exact, function": hypotests.Exact(mean_surprise),
        "Exact, stop early": hypotests.Exact(stop_after=3),
        "Multiplier, normal": hypotests.Multiplier("normal"),
        "Pearson, hutchinson": hypotests.Pearson("hutchinson", probes=8),
        "Omnibus, locations": hypotests.Omnibus(locations=5),
        "DistributionFree, biased": hypotests.DistributionFree("biased"),
        "Consistency, function": hypotests.Consistency(mean_surprise),
    }
    for title, method in methods.items():
        yield from test_rows(f"test {title} / Normal", tested("Normal", method))
    clusters = generator("clusters").integers(12, size=CASES)
    for method in ("multiplier", "auto"):
        yield from test_rows(f"test {method}, groups / Normal", tested("Normal", method, groups=clusters))
    several = [k.ExpDistance(k.Wasserstein(), scale) @ k.Gaussian(scale) for scale in (0.5, 1.0, 2.0)]
    yield from test_rows("test aggregated, kernels / Normal", tested("Normal", "aggregated", kernel=several))
    y, pred = data("Normal")
    kept = wc.calibration_test(y, pred, method="exact", rng=5, n_resamples=RESAMPLES, keep_null=True)
    # A sum of many values of order one, on either side of zero.
    yield row("test exact / Normal / null", checksum(kept.null), EXACT, 10.0)


# -- which, where, since when --------------------------------------------------------------------


def comparisons() -> Rows:
    """Two models on the same cases, of one family and of two, and with weights."""
    y, pred = data("Normal")
    narrow, heavy = wc.Normal(pred.loc - 0.3, 0.5 * pred.scale), wc.Laplace(pred.loc, pred.scale)
    found = {
        "Normal x Normal": wc.compare(y, pred, narrow, rng=7, n_resamples=RESAMPLES),
        "Normal x Laplace": wc.compare(y, pred, heavy, rng=7, n_resamples=RESAMPLES),
        "weights": wc.compare(y, pred, narrow, weights=case_weights(), rng=7, n_resamples=RESAMPLES),
    }
    y, pred = data("Categorical")
    uniform = wc.Categorical(np.full((CASES, 4), 0.25))
    found["Categorical x Categorical"] = wc.compare(y, pred, uniform, rng=7, n_resamples=RESAMPLES)
    for title, comparison in found.items():
        allowed = tolerance_of(comparison.kernel)
        yield from error_rows(f"compare / {title}", comparison.estimate, allowed)
        yield row(f"compare / {title} / statistic", comparison.statistic, allowed, UNIT_TERMS)
        yield row(f"compare / {title} / p-value", comparison.pvalue, allowed, UNIT_TERMS)
        yield row(
            f"compare / {title} / p-value of the difference",
            comparison.difference_pvalue,
            allowed,
            UNIT_TERMS,
        )


def witnesses() -> Rows:
    """Values, contributions and p-values of the witness."""
    for name in ("Normal", "Categorical", "Mixture of normals", "Samples, draws"):
        y, pred = data(name)
        found = wc.witness(y, pred, (pred[:4], y[4:8]), rng=8, n_resamples=RESAMPLES)
        yield from witness_rows(f"witness / {name}", found)
    y, pred = data("Normal")
    grid = wc.witness(y, pred, segments=np.arange(CASES) % 2, rng=8, n_resamples=RESAMPLES)
    yield from witness_rows("witness, grid and segments / Normal", grid)
    weighted = wc.witness(y, pred, (pred[:4], y[4:8]), weights=case_weights(), rng=8, n_resamples=RESAMPLES)
    yield from witness_rows("witness, weights / Normal", weighted)


def witness_rows(title: str, found: Any) -> Rows:
    allowed = tolerance_of(found.kernel)
    yield from error_rows(title, found.estimate)
    yield row(f"{title} / contributions", checksum(found.contributions), allowed, UNIT_TERMS)
    yield row(f"{title} / first contribution", found.contributions[0], allowed, UNIT_TERMS)
    yield row(f"{title} / values", checksum(found.values), allowed, UNIT_TERMS)
    yield row(
        f"{title} / band", checksum(np.asarray(found.high) - np.asarray(found.low)), allowed, UNIT_TERMS
    )
    yield row(f"{title} / p-values", checksum(found.pvalues), allowed)
    yield row(f"{title} / p-value", found.pvalue, allowed)


def monitors() -> Rows:
    """Evidence after a stream of cases in two batches, the second one case long."""
    for name in ("Normal", "Bernoulli", "Samples, draws"):
        y, pred = data(name)
        kernel = wc.default_kernel(pred)
        monitor = wc.Monitor(kernel, rng=9)
        monitor.update(y[:-1], pred[:-1])
        monitor.update(y[-1:], pred[-1:])
        # Bets are standardised, which divides roundings of the witness by its spread, and add up over cases.
        yield row(f"monitor / {name}", monitor.log_e_value, tolerance_of(kernel), 1.0)
        yield row(
            f"monitor / {name} / history", checksum(np.log(monitor.history)), tolerance_of(kernel), 10.0
        )
    y, pred = data("Normal")
    warm = wc.Monitor(warmup=10, rng=9)
    warm.update(y, pred)
    yield row("monitor, kernel from the first cases / Normal", warm.log_e_value, EXACT, 1.0)


# -- recalibration -------------------------------------------------------------------------------

SCALED = ["Normal", "Laplace", "MultivariateNormal", "PowerExponential", "Beta", "Mixture of normals"]


def recalibration() -> Rows:
    """Temperatures, what they do to predictions, and cross-fitting."""
    samples = {name: data(name) for name in SCALED} | {"Categorical": too_certain()}
    for name, (y, pred) in samples.items():
        yield row(
            f"apply temperature / {name} / nll", wc.nll(y, wc.recalibration.apply_temperature(pred, 1.7))
        )
        fitted = wc.TemperatureScaling().fit(y, pred)
        yield row(f"temperature by nll / {name}", fitted.temperature_, FLAT_VALLEY)
        yield row(f"temperature by nll / {name} / nll", wc.nll(y, fitted.transform(pred)))
    for name in ("Normal", "Categorical"):
        y, pred = samples[name]
        fitted = wc.TemperatureScaling().fit(y, pred, objective="skce")
        yield row(f"temperature by skce / {name}", fitted.temperature_, COARSE_SEARCH)
    y, pred = data("Normal")
    crossed = wc.recalibration.cross_fit(y, pred, folds=3, method="exact", rng=10, n_resamples=RESAMPLES)
    yield row("cross fit / Normal / temperatures", checksum(crossed.temperatures), FLAT_VALLEY)
    yield row("cross fit / Normal / p-values of folds", checksum(crossed.fold_pvalues))
    yield row("cross fit / Normal / estimate before", crossed.before.estimate, EXACT, UNIT_TERMS)
    yield row("cross fit / Normal / estimate after", crossed.after.estimate, FLAT_VALLEY)
    yield row("cross fit / Normal / p-value before", crossed.before.pvalue)
    yield row("cross fit / Normal / p-value after", crossed.after.pvalue)
    yield row("cross fit / Normal / nll after", crossed.nll_after, FLAT_VALLEY)


# -- array libraries -----------------------------------------------------------------------------


def gradient_rows(title: str, value: Any, gradient: Any, tolerance: float = EXACT) -> Rows:
    yield row(title, value, tolerance, UNIT_TERMS)
    # Derivatives of a mean over cases: each is 1 / n of terms of order one.
    yield row(f"{title}, gradient", checksum(gradient), tolerance, UNIT_TERMS)


def in_torch() -> Rows:
    """Double precision in PyTorch: values and gradients."""
    import torch

    from wellcal.torch import CalibrationMetric, SKCELoss

    y, pred = data("Normal")
    target, scale = torch.from_numpy(y), torch.from_numpy(pred.scale)
    for title, kernel in (("default", None), ("paper", k.paper_kernel)):
        loc = torch.from_numpy(pred.loc).requires_grad_()
        loss = wc.skce(target, wc.Normal(loc, scale), kernel=kernel).value
        loss.backward()
        yield from gradient_rows(f"torch / skce, {title} / Normal", loss.detach(), loc.grad)
    loc = torch.from_numpy(pred.loc).requires_grad_()
    loss = SKCELoss(weight=2.0, estimator="block", block_size=4)(target, wc.Normal(loc, scale))
    loss.backward()
    yield from gradient_rows("torch / SKCELoss, block / Normal", loss.detach(), loc.grad)
    yield row("torch / crps / Normal", wc.crps(target, wc.Normal(loc, scale)).value.detach())
    y, pred = data("Categorical")
    probs = torch.from_numpy(pred.probs).requires_grad_()
    loss = wc.kce(torch.from_numpy(y), wc.Categorical(probs)).value
    loss.backward()
    yield from gradient_rows("torch / kce / Categorical", loss.detach(), probs.grad)
    metric = CalibrationMetric()
    metric.update(torch.from_numpy(pred.probs), torch.from_numpy(y))
    yield row("torch / CalibrationMetric / Categorical", metric.compute(), EXACT, UNIT_TERMS)
    y, pred = data("Samples, atoms")
    values = torch.from_numpy(pred.values).requires_grad_()
    loss = wc.skce(torch.from_numpy(y), wc.Samples(values, kind="atoms")).value
    loss.backward()
    yield from gradient_rows("torch / skce / Samples, atoms", loss.detach(), values.grad, BY_DISCREPANCY)


def in_jax() -> Rows:
    """Double precision in JAX, enabled for these rows only: values and a gradient."""
    import jax
    import jax.numpy as jnp

    from wellcal.jax import skce_loss

    def loss(mu: Any, scale: Any, target: Any) -> Any:
        return skce_loss(target, wc.Normal(mu, scale), kernel=k.paper_kernel)

    def error(probs: Any, target: Any) -> Any:
        return wc.kce(target, wc.Bernoulli(probs)).value

    with jax.enable_x64(True):
        y, pred = data("Normal")
        value, gradient = jax.jit(jax.value_and_grad(loss))(*map(jnp.asarray, (pred.loc, pred.scale, y)))
        yield from gradient_rows("jax / skce_loss / Normal", value, gradient)
        y, pred = data("Bernoulli")
        found = jax.jit(error)(jnp.asarray(pred.probs), jnp.asarray(y))
        yield row("jax / kce / Bernoulli", found, EXACT, UNIT_TERMS)


SECTIONS = {
    "tests: classes": tests_of_classes,
    "tests: numbers": tests_of_numbers,
    "tests: vectors and samples": tests_of_vectors_and_samples,
    "tests: options": tests_with_options,
    "comparison": comparisons,
    "witness": witnesses,
    "monitor": monitors,
    "recalibration": recalibration,
    "torch": in_torch,
    "jax": in_jax,
}
