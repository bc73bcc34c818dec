"""Properties of kernels that are proven for a family of predictions, with citations.

What is proven of a kernel or metric class stands in its body as `proof`, or is registered in `STATEMENTS`
where it depends on the predictions. Both hold for the very class: one derived from it is another function.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from wellcal._arrays.namespaces import is_traced, to_numpy
from wellcal._arrays.registry import Rules
from wellcal.kernels.algebra import Combination, Scaled, Sum, Tensor, fold
from wellcal.kernels.base import Kernel, Radial, TargetKernel
from wellcal.kernels.metrics import (
    DISTANCES,
    Euclidean,
    ExpDistance,
    Hellinger,
    MaximumMeanDiscrepancy,
    Metric,
    MixtureWasserstein,
    RootCovariance,
    TotalVariation,
    Wasserstein,
)
from wellcal.kernels.proofs import (
    BERG,
    SRIPERUMBUDUR,
    STEINWART,
    SZABO,
    ZIEGEL,
    Guarantees,
    Hilbertian,
    NegativeType,
    Proof,
    UniversalOnReals,
)
from wellcal.kernels.targets import Callable, Delta, Joint
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

__all__ = ["METRIC_STATEMENTS", "STATEMENTS", "Guarantees", "guarantees_of"]

STATEMENTS: Rules[Function[[Any, Predictions], Guarantees]] = Rules("a statement", exact=True)
"""What is proven about kernels of a class, for predictions: rules by exact class."""

METRIC_STATEMENTS: Rules[Function[[Any, float, Predictions], Guarantees]] = Rules("a statement", exact=True)
"""What is proven about ``exp(-d^power)`` for metrics of a class, where it depends on the predictions."""

_THINNING = "draws must be independent of each other: thin those of a Markov chain first"
_UNBOUNDED = "boundedness is not known: that assumption (K2) holds is the user's to check"


def guarantees_of(kernel: Kernel, predictions: Predictions) -> Guarantees:
    """Return what is proven about a kernel on targets, on predictions or on pairs."""
    if isinstance(kernel, Combination):
        return fold(kernel, lambda leaf: leaf.guarantees(predictions), _combined)
    rule = STATEMENTS.find(type(kernel))
    if rule is not None:
        answer = rule(kernel, predictions)
    elif isinstance(kernel, (Callable, Joint)):
        known = kernel.positive_definite is not None
        reason = "as declared by the user" if known else "a user's function: not known"
        reasons = (reason,) if kernel.bounded else (reason, _UNBOUNDED)
        answer = Guarantees(kernel.positive_definite, kernel.characteristic, kernel.bounded, reasons=reasons)
    else:
        answer = _declared_by_class(kernel, predictions)
    draws = any(part.kind == "draws" for part in predictions.parts)
    if kernel.space == "pairs" and draws and _THINNING not in answer.reasons:
        return replace(answer, reasons=(*answer.reasons, _THINNING))
    return answer


def _unknown(reason: str, *reasons: str, bounded: bool | None = None) -> Guarantees:
    return Guarantees(None, None, bounded, reasons=(reason, *reasons))


def _declared_by_class(kernel: Kernel, predictions: Predictions) -> Guarantees:
    proof = kernel.proof
    if proof is None:
        return _nothing_declared(kernel)
    if isinstance(kernel, TargetKernel) and kernel.needs_numbers and not _has_numbers(predictions):
        return _unknown(f"{kernel!r} needs numeric targets", bounded=_is_bounded(kernel))
    return _as_proven(kernel, proof, _is_bounded(kernel))


def _as_proven(subject: Kernel | Metric, proof: Proof, bounded: bool | None = True) -> Guarantees:
    reasons = proof.reasons(subject) if bounded else (*proof.reasons(subject), _UNBOUNDED)
    return Guarantees(proof.positive_definite, proof.characteristic, bounded, proof.universal, reasons)


def _is_bounded(kernel: Kernel) -> bool | None:
    if kernel.supremum is not None:
        return True
    return None if kernel.proof is None else kernel.proof.bounded


def _nothing_declared(kernel: Kernel) -> Guarantees:
    nothing = f"nothing is known about the user's kernel {kernel!r}: its class declares no proof"
    largest = () if kernel.supremum is None else (f"as declared: its largest value is {kernel.supremum:g}",)
    return _unknown(nothing, *largest, bounded=_is_bounded(kernel))


def _has_numbers(predictions: Predictions) -> bool:
    """True if targets are numbers, or vectors of numbers, rather than labels or objects."""

    def is_number(part: Any) -> bool:
        if part.target_kind == "labels":
            return hasattr(part, "support_values") and part.support_values() is not None
        return part.target_kind != "objects"

    return all(map(is_number, predictions.parts))


# -- on targets ------------------------------------------------------------------------------


@STATEMENTS.register(Delta)
def _delta(kernel: Delta, predictions: Predictions) -> Guarantees:
    if any(isinstance(part, Samples) for part in predictions.parts):  # draws may come from a density or not
        reason = "Delta is characteristic on a countable set; whether sampled targets lie in one is not known"
        return Guarantees(True, None, True, reasons=(reason,))
    if all(part.target_kind == "bins" or not part.continuous for part in predictions.parts):
        reason = (
            f"Delta is strictly positive definite on a countable set, so c0-universal ({SRIPERUMBUDUR}, 3.3)"
        )
        return Guarantees(True, True, True, True, (reason,))
    reason = "Delta cannot tell continuous distributions apart: every pairing is 0"
    return Guarantees(True, False, True, False, (reason,))


# -- sums, multiples and products ------------------------------------------------------------


def _combined(kernel: Combination, parts: list[Guarantees]) -> Guarantees:
    if isinstance(kernel, Scaled):
        return parts[0]
    # A part that is not a kernel does not refute the whole: only what is proven of all parts carries over.
    positive_definite = True if all(p.positive_definite for p in parts) else None
    bounded = _all(p.bounded for p in parts)
    reasons = tuple(dict.fromkeys(reason for p in parts for reason in p.reasons))
    if isinstance(kernel, Sum):
        # The sum distinguishes two measures where any part does: one part that distinguishes all is
        # enough, and parts that each miss some may miss none together.
        universal = True if positive_definite and any(p.universal for p in parts) else None
        characteristic = True if positive_definite and any(p.characteristic for p in parts) else None
        return Guarantees(positive_definite, characteristic, bounded, universal, reasons)
    if all(map(_mixes_gaussians, kernel.parts)) and all(p.universal for p in parts):
        reasons = (*reasons, "a product of radial kernels has a spectral measure of full support")
        return Guarantees(positive_definite, True, bounded, True, reasons)
    reasons = (*reasons, "a product of kernels need not be characteristic where its factors are")
    return Guarantees(positive_definite, None, bounded, None, reasons)


def _mixes_gaussians(kernel: Kernel) -> bool:
    return kernel.proof is not None and kernel.proof.gaussian_mixture


@STATEMENTS.register(Tensor)
def _tensor(kernel: Tensor, predictions: Predictions) -> Guarantees:
    on_predictions = fold(kernel.predictions, lambda leaf: _on_predictions(leaf, predictions), _combined)
    on_targets = kernel.targets.guarantees(predictions)
    reasons = [*on_predictions.reasons, *on_targets.reasons]
    characteristic: bool | None = None
    if False in (on_predictions.characteristic, on_targets.characteristic):
        characteristic = False
        reasons.append("a tensor product is not characteristic where a factor is not")
    elif on_predictions.universal and on_targets.universal:
        characteristic = True
        theorem = STEINWART if isinstance(predictions, (Bernoulli, Categorical)) else SZABO
        reasons.append(f"universal times universal is universal, so characteristic ({theorem})")
    else:
        reasons.append(
            "characteristic times characteristic is not enough (Szabo, Sriperumbudur, 2018, Example 1), "
            "and universality of both factors is not proven here"
        )
    if on_predictions.bounded is not True or on_targets.bounded is not True:
        reasons.append(
            "a factor is not known to be bounded: that assumption (K2) holds is the user's to check"
        )
    return Guarantees(
        positive_definite=_all((on_predictions.positive_definite, on_targets.positive_definite)),
        characteristic=characteristic,
        bounded=_all((on_predictions.bounded, on_targets.bounded)),
        universal=_all((on_predictions.universal, on_targets.universal)),
        reasons=tuple(dict.fromkeys(reasons)),
    )


def _all(values: Iterable[bool | None]) -> bool | None:
    known = list(values)
    return False if False in known else (None if None in known else True)


# -- on predictions --------------------------------------------------------------------------


def _on_predictions(kernel: Kernel, predictions: Predictions) -> Guarantees:
    """A radial kernel on the left of @ acts on the Euclidean distance of parameters."""
    if isinstance(kernel, Delta):
        return _unknown("Delta() is not a kernel on predictions")
    if not isinstance(kernel, Radial):
        return kernel.guarantees(predictions)
    proof = kernel.proof
    if proof is None:
        return _nothing_declared(kernel)
    if not proof.gaussian_mixture:
        caveat = "whether that holds on parameters of predictions, in any dimension, is not known"
        return _unknown(*proof.reasons(kernel), caveat, bounded=_is_bounded(kernel))
    answer = guarantees_of_metric(Euclidean(), 1.0, predictions)
    if isinstance(proof, UniversalOnReals):
        return answer
    return replace(answer, reasons=(*proof.reasons(kernel), *answer.reasons))


@STATEMENTS.register(ExpDistance)
def _exp_distance(kernel: ExpDistance, predictions: Predictions) -> Guarantees:
    return guarantees_of_metric(kernel.metric, kernel.power, predictions)


def guarantees_of_metric(metric: Metric, power: float, predictions: Predictions) -> Guarantees:
    """Return what is proven about ``exp(-d^power)`` between these predictions."""
    rule = METRIC_STATEMENTS.find(type(metric))
    if rule is not None:
        return rule(metric, power, predictions)
    if not is_available(metric, predictions):
        return _not_available(metric, predictions)
    if metric.proof is None:
        nothing = f"nothing is known about the user's metric {metric!r}: its class declares no proof"
        return _unknown(nothing, bounded=True)
    return _as_proven(metric, metric.proof)


def _not_available(metric: Metric, predictions: Predictions) -> Guarantees:
    return _unknown(f"{metric!r} is not available for {type(predictions).__name__} predictions")


# -- where a metric is available -------------------------------------------------------------

Condition: TypeAlias = Function[[Any, Any], bool]

CONDITIONS: Rules[Condition] = Rules("a condition", exact=True)
"""What must hold for a metric and a batch, where a distance is there for some batches only.

Rules by the classes that the distance is registered for in `DISTANCES`; without one it is there for all.
"""


@CONDITIONS.register(TotalVariation, Mixture)
@CONDITIONS.register(Hellinger, Mixture)
def _predicts_classes(metric: Metric, predictions: Predictions) -> bool:
    return all(isinstance(part, (Bernoulli, Categorical)) for part in predictions.parts)


@CONDITIONS.register(Wasserstein, Predictions)
@CONDITIONS.register(Wasserstein, Samples)
def _has_quantiles(metric: Wasserstein, predictions: Predictions) -> bool:
    return predictions.event_shape == () and _has_numbers(predictions) and predictions.supports("quantile")


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
        return _unknown(reason, bounded=True)
    why = f"the L{metric.order} distance of quantile functions"
    found = _as_proven(metric, Hilbertian(why) if metric.order == 2 else NegativeType(f"it is {why}"))
    if _is_exact(metric, predictions):
        return found
    caveat = "it is evaluated at finitely many quantiles, which need not tell all distributions apart"
    return Guarantees(True, None, True, None, (found.reasons[0], caveat))


@METRIC_STATEMENTS.register(MixtureWasserstein)
def _mixture_wasserstein(metric: MixtureWasserstein, power: float, predictions: Predictions) -> Guarantees:
    parts = predictions.parts
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
        return _unknown(*inner.reasons, reason, bounded=True)
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
