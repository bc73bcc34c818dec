"""What is proven about ``exp(-d^power)`` for a metric d, and where the metric is available."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from wellcal._arrays.namespaces import is_traced, to_numpy
from wellcal._arrays.registry import Rules
from wellcal.kernels.metrics import (
    DISTANCES,
    Euclidean,
    Hellinger,
    MaximumMeanDiscrepancy,
    Metric,
    MixtureWasserstein,
    RootCovariance,
    TotalVariation,
    Wasserstein,
)
from wellcal.kernels.outcomes import are_numbers, components
from wellcal.kernels.proofs import BERG, ZIEGEL, Guarantees, Hilbertian, NegativeType, Proof
from wellcal.predictions import (
    Bernoulli,
    Categorical,
    DiagonalNormal,
    Laplace,
    Mixture,
    MultivariateNormal,
    Normal,
    Poisson,
    Predictions,
    Quantiles,
    Samples,
)

METRIC_STATEMENTS: Rules[Callable[[Any, float, Predictions], Guarantees]] = Rules("a statement", exact=True)
"""What is proven about ``exp(-d^power)`` for metrics of a class, where it depends on the predictions."""


def guarantees_of_metric(metric: Metric, power: float, predictions: Predictions) -> Guarantees:
    """What is proven about ``exp(-d^power)`` between these predictions."""
    rule = METRIC_STATEMENTS.find(type(metric))
    if rule is not None:
        return rule(metric, power, predictions)
    if not is_available(metric, predictions):
        return _not_available(metric, predictions)
    if metric.proof is None:
        reason = f"nothing is known about the user's metric {metric!r}: its class declares no proof"
        return Guarantees(None, None, True, None, (reason,))
    return _as_proven(metric, metric.proof)


def _as_proven(metric: Metric, proof: Proof) -> Guarantees:
    statements = (proof.positive_definite, proof.characteristic, True, proof.universal)
    return Guarantees(*statements, proof.reasons(metric))


def _not_available(metric: Metric, predictions: Predictions) -> Guarantees:
    reason = f"{metric!r} is not available for {type(predictions).__name__} predictions"
    return Guarantees(None, None, None, None, (reason,))


# -- where a metric is available -------------------------------------------------------------

Condition: TypeAlias = Callable[[Any, Any], bool]

CONDITIONS: Rules[Condition] = Rules("a condition", exact=True)
"""What must hold for a metric and a batch, where a distance is there for some batches only.

Rules by the classes that the distance is registered for in `DISTANCES`; without one it is there for all.
"""


@CONDITIONS.register(TotalVariation, Mixture)
@CONDITIONS.register(Hellinger, Mixture)
def _predicts_classes(metric: Metric, predictions: Predictions) -> bool:
    return all(isinstance(part, (Bernoulli, Categorical)) for part in components(predictions))


@CONDITIONS.register(Wasserstein, Predictions)
@CONDITIONS.register(Wasserstein, Samples)
def _has_quantiles(metric: Wasserstein, predictions: Predictions) -> bool:
    return predictions.event_shape == () and are_numbers(predictions) and predictions.supports("quantile")


@CONDITIONS.register(Wasserstein, DiagonalNormal)
@CONDITIONS.register(Wasserstein, MultivariateNormal)
def _is_of_order_2(metric: Wasserstein, predictions: Predictions) -> bool:
    return metric.order == 2


def is_available(metric: Metric, predictions: Predictions) -> bool:
    """Whether the distance can be evaluated for these predictions.

    What is said about the nearest classes decides: that there is a distance, or under which condition.
    """
    registered = set(DISTANCES)
    for key in product(type(metric).__mro__, type(predictions).__mro__):
        condition = CONDITIONS.find(*key)
        if condition is not None:
            return condition(metric, predictions)
        if key in registered:
            return True
    return False


# -- metrics about which more depends on the predictions --------------------------------------

_EXACT: dict[type[Predictions], Condition] = {
    Normal: _is_of_order_2,
    Laplace: _is_of_order_2,
    DiagonalNormal: _is_of_order_2,
    Poisson: lambda metric, _: metric.order == 1,
    Samples: lambda _, samples: samples.weights is None,
    Quantiles: lambda _, __: True,
    Predictions: lambda _, __: False,
}
"""Where the Wasserstein distance is exact, not taken from finitely many quantiles."""


def _is_exact(metric: Wasserstein, predictions: Predictions) -> bool:
    """Whether it is: what is said about the nearest class decides, and a distance that was registered is."""
    registered = set(DISTANCES)
    for family in type(predictions).__mro__:
        if family in _EXACT:
            return _EXACT[family](metric, predictions)
        if (Wasserstein, family) in registered:
            return True
    return False


@METRIC_STATEMENTS.register(Wasserstein)
def _wasserstein(metric: Wasserstein, power: float, predictions: Predictions) -> Guarantees:
    if not is_available(metric, predictions):
        return _not_available(metric, predictions)
    if isinstance(predictions, MultivariateNormal):
        if covariances_commute(predictions):
            return _as_proven(metric, Hilbertian("the covariances of these predictions commute"))
        reason = (
            "the 2-Wasserstein distance between normals is not Hilbertian where covariances do not commute: "
            "four nearly degenerate covariances at 0, 45, 90 and 135 degrees refute it; take RootCovariance()"
        )
        return Guarantees(False, None, True, None, (reason,))
    if predictions.event_shape != () and not isinstance(predictions, DiagonalNormal):
        reason = f"{metric!r} between distributions of vectors need not be Hilbertian"
        return Guarantees(None, None, True, None, (reason,))
    why = f"the L{metric.order} distance of quantile functions"
    found = _as_proven(metric, Hilbertian(why) if metric.order == 2 else NegativeType(f"it is {why}"))
    if _is_exact(metric, predictions):
        return found
    caveat = "it is evaluated at finitely many quantiles, which need not tell all distributions apart"
    return Guarantees(True, None, True, None, (found.reasons[0], caveat))


@METRIC_STATEMENTS.register(MixtureWasserstein)
def _mixture_wasserstein(metric: MixtureWasserstein, power: float, predictions: Predictions) -> Guarantees:
    parts = components(predictions)
    if len(parts) == 1:
        return guarantees_of_metric(metric.components, power, parts[0])
    reason = (
        "MixtureWasserstein is not Hilbertian: uniform two-point mixtures on the vertices of a square "
        "refute the paper's theorem, so exp(-d^power) can have negative eigenvalues"
    )
    # A square fits among components with two parameters or more whose distance is Euclidean.
    square = isinstance(parts[0], (Normal, Laplace, DiagonalNormal, MultivariateNormal))
    square = square and type(metric.components) in (Wasserstein, Euclidean, RootCovariance)
    return Guarantees(False if square and power >= 1.0 else None, None, True, None, (reason,))


@METRIC_STATEMENTS.register(MaximumMeanDiscrepancy)
def _maximum_mean_discrepancy(
    metric: MaximumMeanDiscrepancy, power: float, predictions: Predictions
) -> Guarantees:
    inner = metric.kernel.guarantees(predictions)
    reason = f"an MMD is the distance of mean embeddings, so Hilbertian where its kernel is valid ({BERG})"
    if not inner.positive_definite:
        return Guarantees(None, None, True, None, (*inner.reasons, reason))
    if inner.characteristic:
        proof = f"it is injective, so exp(-d^power) is integrally strictly positive definite ({ZIEGEL})"
        return Guarantees(True, True, True, True, (*inner.reasons, reason, proof))
    caveat = "its kernel is not known to be characteristic, so that different predictions may have distance 0"
    return Guarantees(True, None, True, None, (*inner.reasons, reason, caveat))


def covariances_commute(predictions: MultivariateNormal) -> bool:
    """Whether all covariances share their eigenvectors, up to rounding.

    A random combination of the covariances has, almost surely, exactly the common eigenvectors;
    all commute if they are diagonal in its basis.
    """
    if is_traced(predictions.cov):
        return False
    cov = to_numpy(predictions.cov).astype(np.float64)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, len(cov))
    _, basis = np.linalg.eigh(np.einsum("i,ijk->jk", weights, cov))
    rotated = np.einsum("ji,njk,kl->nil", basis, cov, basis)
    off = rotated - np.einsum("nii->ni", rotated)[:, :, None] * np.eye(cov.shape[1])
    largest = np.abs(cov).max(axis=(1, 2))
    return bool((np.abs(off).max(axis=(1, 2)) <= 1e-9 * largest).all())
