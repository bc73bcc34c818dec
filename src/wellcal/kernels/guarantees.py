"""What is proven about a kernel for a family of predictions, and by whom."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from wellcal._arrays.namespaces import is_traced, to_numpy
from wellcal.kernels.base import Kernel, Product, Radial, Scaled, Sum, Tensor, space_of
from wellcal.kernels.metrics import (
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
from wellcal.kernels.targets import Callable, Delta, Joint
from wellcal.predictions import (
    Bernoulli,
    Categorical,
    DiagonalNormal,
    Laplace,
    LogNormal,
    Mixture,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Poisson,
    Predictions,
    Quantiles,
    Samples,
)

_BERG = "Berg, Christensen, Ressel (1984), Corollary 3.3.3 and Proposition 3.2.7"
_MICCHELLI = "Micchelli, Xu, Zhang (2006), Theorem 17"
_ZIEGEL = "Ziegel, Ginsbourger, Dümbgen (2022), on radial kernels on Hilbert spaces"
_SRIPERUMBUDUR = "Sriperumbudur, Fukumizu, Lanckriet (2011)"
_SZABO = "Szabo, Sriperumbudur (2018), Theorem 5"
_STEINWART = "Steinwart, Ziegel (2021), Corollary 3.15"


@dataclass(frozen=True)
class Guarantees:
    """What is proven about a kernel: True (proven), False (refuted) or None (not known).

    Attributes
    ----------
    positive_definite
        The kernel is a valid kernel, so that SKCE is a squared norm.
    characteristic
        The calibration error is zero only for a calibrated model.
    bounded
        Assumption (K2) of the paper holds by itself. Where this is not True, that the kernel is
        integrable under the model and the data is the user's to check.
    universal
        The stronger property that products need, that finite signed measures have different embeddings:
        characteristic times characteristic is not enough (Szabo and Sriperumbudur, 2018, Example 1).
    reasons
        What proves, or refutes, each statement.
    """

    positive_definite: bool | None
    characteristic: bool | None
    bounded: bool | None
    universal: bool | None = None
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        def word(value: bool | None) -> str:
            return {True: "proven", False: "refuted", None: "not known"}[value]

        lines = [
            f"positive definite: {word(self.positive_definite)}",
            f"characteristic: {word(self.characteristic)}",
            f"bounded: {word(self.bounded)}",
        ]
        return "\n".join([*lines, *(f"  - {reason}" for reason in self.reasons)])


def guarantees_of(kernel: Kernel, predictions: Predictions) -> Guarantees:
    """What is proven about `kernel`, be it on targets, on predictions or on pairs."""
    found = _statements(kernel, predictions)
    draws = any(isinstance(c, Samples) and c.kind == "draws" for c in _components(predictions))
    if draws and space_of(kernel) == "pairs" and _THINNING not in found.reasons:
        return replace(found, reasons=(*found.reasons, _THINNING))
    return found


_THINNING = "draws must be independent of each other: thin those of a Markov chain first"


def _statements(kernel: Kernel, predictions: Predictions) -> Guarantees:
    if isinstance(kernel, Tensor):
        return _tensor(kernel, predictions)
    if isinstance(kernel, Scaled):
        return guarantees_of(kernel.kernel, predictions)
    if isinstance(kernel, (Sum, Product)):
        return _combined(kernel, [guarantees_of(k, predictions) for k in kernel.kernels])
    if isinstance(kernel, ExpDistance):
        return _exp_distance(kernel, predictions)
    if isinstance(kernel, (Callable, Joint)):
        return _declared(kernel)
    if isinstance(kernel, Delta):
        return _delta(predictions)
    if isinstance(kernel, Radial):
        return _radial(kernel, predictions)
    return Guarantees(None, None, None, None, (f"nothing is known about {kernel!r}",))


def _declared(kernel: Callable | Joint) -> Guarantees:
    reasons = [
        "as declared by the user" if kernel.positive_definite is not None else "a user's function: not known"
    ]
    if not kernel.bounded:
        reasons.append("boundedness is not known: that assumption (K2) holds is the user's to check")
    return Guarantees(kernel.positive_definite, kernel.characteristic, kernel.bounded, None, tuple(reasons))


def _components(predictions: Predictions) -> tuple[Predictions, ...]:
    return predictions.components if isinstance(predictions, Mixture) else (predictions,)


def is_discrete(predictions: Predictions) -> bool:
    """Whether targets lie in a countable set given by the family."""
    discrete = (Bernoulli, Categorical, Poisson, NegativeBinomial, Quantiles)
    return all(isinstance(component, discrete) for component in _components(predictions))


def _delta(predictions: Predictions) -> Guarantees:
    if is_discrete(predictions):
        reason = (
            f"Delta is strictly positive definite on a countable set, so c0-universal ({_SRIPERUMBUDUR}, 3.3)"
        )
        return Guarantees(True, True, True, True, (reason,))
    if any(isinstance(component, Samples) for component in _components(predictions)):
        reason = "Delta is characteristic on a countable set; whether sampled targets lie in one is not known"
        return Guarantees(True, None, True, None, (reason,))
    reason = "Delta cannot tell continuous distributions apart: every pairing is 0"
    return Guarantees(True, False, True, False, (reason,))


def _radial(kernel: Radial, predictions: Predictions) -> Guarantees:
    if type(kernel).__module__ != "wellcal.kernels.targets":
        return Guarantees(None, None, None, None, (f"nothing is known about the user's kernel {kernel!r}",))
    if not all(map(_is_numeric, _components(predictions))):
        return Guarantees(None, None, True, None, (f"{kernel!r} needs numeric targets",))
    reason = f"{type(kernel).__name__} is universal on R^d ({_MICCHELLI}; {_SRIPERUMBUDUR})"
    return Guarantees(True, True, True, True, (reason,))


def _is_numeric(predictions: Predictions) -> bool:
    if isinstance(predictions, Categorical):
        return predictions.support_values() is not None
    return not (isinstance(predictions, Samples) and predictions.holds_objects)


def _combined(kernel: Sum | Product, parts: list[Guarantees]) -> Guarantees:
    # A part that is not a kernel does not refute the whole: only what is proven of all parts carries over.
    positive_definite = True if all(p.positive_definite for p in parts) else None
    bounded = _all(p.bounded for p in parts)
    reasons = tuple(dict.fromkeys(reason for p in parts for reason in p.reasons))
    if isinstance(kernel, Sum):
        # Measures that no part tells apart are those that the sum does not: one part that tells all is
        # enough, but parts that each miss some may miss none together.
        universal = True if positive_definite and any(p.universal for p in parts) else None
        characteristic = True if positive_definite and any(p.characteristic for p in parts) else None
        return Guarantees(positive_definite, characteristic, bounded, universal, reasons)
    radial = all(
        isinstance(k, Radial) and type(k).__module__ == "wellcal.kernels.targets" for k in kernel.kernels
    )
    if radial:
        reasons = (*reasons, "a product of radial kernels has a spectral measure of full support")
        return Guarantees(positive_definite, True, bounded, True, reasons)
    reasons = (*reasons, "a product of kernels need not be characteristic where its factors are")
    return Guarantees(positive_definite, None, bounded, None, reasons)


def _tensor(kernel: Tensor, predictions: Predictions) -> Guarantees:
    on_predictions = _on_predictions(kernel.predictions, predictions)
    on_targets = guarantees_of(kernel.targets, predictions)
    reasons = [*on_predictions.reasons, *on_targets.reasons]
    characteristic: bool | None = None
    if False in (on_predictions.characteristic, on_targets.characteristic):
        characteristic = False
        reasons.append("a tensor product is not characteristic where a factor is not")
    elif on_predictions.universal and on_targets.universal:
        characteristic = True
        theorem = _STEINWART if isinstance(predictions, (Bernoulli, Categorical)) else _SZABO
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


def _on_predictions(kernel: Kernel, predictions: Predictions) -> Guarantees:
    """A radial kernel on the left of @ acts on the Euclidean distance of parameters."""
    if isinstance(kernel, (Sum, Product)):
        return _combined(kernel, [_on_predictions(k, predictions) for k in kernel.kernels])
    if isinstance(kernel, Scaled):
        return _on_predictions(kernel.kernel, predictions)
    if isinstance(kernel, Radial):
        if type(kernel).__module__ != "wellcal.kernels.targets":
            return _radial(kernel, predictions)
        return _metric_kernel(Euclidean(), 1.0, predictions)
    if isinstance(kernel, Delta):
        return Guarantees(None, None, None, None, ("Delta() is not a kernel on predictions",))
    return guarantees_of(kernel, predictions)


def _exp_distance(kernel: ExpDistance, predictions: Predictions) -> Guarantees:
    return _metric_kernel(kernel.metric, kernel.power, predictions)


def _metric_kernel(metric: Metric, power: float, predictions: Predictions) -> Guarantees:
    if isinstance(metric, MixtureWasserstein):
        return _mixture_wasserstein(metric, power, predictions)
    if isinstance(metric, MaximumMeanDiscrepancy):
        return _maximum_mean_discrepancy(metric, predictions)
    if not _is_available(metric, predictions):
        reason = f"{metric!r} is not available for {type(predictions).__name__} predictions"
        return Guarantees(None, None, None, None, (reason,))
    if isinstance(metric, TotalVariation):
        return _negative_type(metric, "it is an L1 distance of probabilities")
    if isinstance(metric, Wasserstein):
        return _wasserstein(metric, predictions)
    why = "the Euclidean distance of what it takes from the parameters, which are told apart by it"
    if isinstance(metric, Hellinger):
        why = "the L2 distance of square roots of densities"
    return _hilbertian(metric, why)


def _is_available(metric: Metric, predictions: Predictions) -> bool:
    """Whether the distance can be evaluated for the family."""
    finite = all(isinstance(c, (Bernoulli, Categorical)) for c in _components(predictions))
    if isinstance(metric, TotalVariation):
        return finite
    if isinstance(metric, Euclidean):
        families = (Bernoulli, Categorical, Normal, DiagonalNormal, Laplace, Poisson, Quantiles)
        return isinstance(predictions, families)
    if isinstance(metric, Hellinger):
        return finite or isinstance(predictions, (Normal, DiagonalNormal, LogNormal, Poisson))
    if isinstance(metric, RootCovariance):
        return isinstance(predictions, (Normal, DiagonalNormal, MultivariateNormal))
    if isinstance(metric, Wasserstein):
        if metric.order == 2 and isinstance(predictions, (DiagonalNormal, MultivariateNormal)):
            return True
        scalar = predictions.event_shape == () and all(map(_is_numeric, _components(predictions)))
        return scalar and predictions.supports("quantile")
    return True


def _wasserstein(metric: Wasserstein, predictions: Predictions) -> Guarantees:
    if isinstance(predictions, MultivariateNormal):
        if covariances_commute(predictions):
            return _hilbertian(metric, "the covariances of these predictions commute")
        reason = (
            "the 2-Wasserstein distance between normals is not Hilbertian where covariances do not commute: "
            "four nearly degenerate covariances at 0, 45, 90 and 135 degrees refute it; take RootCovariance()"
        )
        return Guarantees(False, None, True, None, (reason,))
    sorted_draws = isinstance(predictions, Samples) and predictions.weights is None
    by_parameters = (Normal, Laplace, DiagonalNormal) if metric.order == 2 else (Poisson,)
    why = f"the L{metric.order} distance of quantile functions"
    found = _hilbertian(metric, why) if metric.order == 2 else _negative_type(metric, f"it is {why}")
    if sorted_draws or isinstance(predictions, (Quantiles, *by_parameters)):
        return found
    caveat = "it is evaluated at finitely many quantiles, which need not tell all distributions apart"
    return Guarantees(True, None, True, None, (found.reasons[0], caveat))


def _mixture_wasserstein(metric: MixtureWasserstein, power: float, predictions: Predictions) -> Guarantees:
    components = _components(predictions)
    if len(components) == 1:
        return _metric_kernel(metric.components, power, components[0])
    reason = (
        "MixtureWasserstein is not Hilbertian: uniform two-point mixtures on the vertices of a square "
        "refute the paper's theorem, so exp(-d^power) can have negative eigenvalues"
    )
    # A square fits among components with two parameters or more whose distance is Euclidean.
    square = isinstance(components[0], (Normal, Laplace, DiagonalNormal, MultivariateNormal))
    square = square and isinstance(metric.components, (Wasserstein, Euclidean, RootCovariance))
    return Guarantees(False if square and power >= 1.0 else None, None, True, None, (reason,))


def _hilbertian(metric: Metric, why: str) -> Guarantees:
    reasons = (
        f"{metric!r} is Hilbertian: {why} ({_BERG})",
        f"exp(-d^power) of a Hilbertian distance is integrally strictly positive definite ({_ZIEGEL})",
    )
    return Guarantees(True, True, True, True, reasons)


def _negative_type(metric: Metric, why: str) -> Guarantees:
    """The same for a distance whose root is Hilbertian, for power <= 1."""
    reasons = (
        f"{metric!r} is of negative type: {why}, so exp(-d^power) is valid for power <= 1 ({_BERG})",
        f"and integrally strictly positive definite, for the root is Hilbertian ({_ZIEGEL})",
    )
    return Guarantees(True, True, True, True, reasons)


def _maximum_mean_discrepancy(metric: MaximumMeanDiscrepancy, predictions: Predictions) -> Guarantees:
    inner = guarantees_of(metric.kernel, predictions)
    reason = f"an MMD is the distance of mean embeddings, so Hilbertian where its kernel is valid ({_BERG})"
    if not inner.positive_definite:
        return Guarantees(None, None, True, None, (*inner.reasons, reason))
    if inner.characteristic:
        proof = f"it is injective, so exp(-d^power) is integrally strictly positive definite ({_ZIEGEL})"
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


def _all(values: Iterable[bool | None]) -> bool | None:
    known = list(values)
    return False if False in known else (None if None in known else True)
