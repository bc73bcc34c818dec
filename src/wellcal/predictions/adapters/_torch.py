"""Objects of torch.distributions as predictions, with gradients to their parameters."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wellcal._arrays.namespaces import Array
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
    Predictions,
    StudentT,
)

_FLATTEN = "flatten the leading axes of its parameters into one"


@dataclass(frozen=True)
class _Family:
    """A family of ours and its parameters, each of shape ``batch_shape + ...``."""

    build: Callable[..., Predictions]
    parameters: tuple[Array, ...]
    batch_shape: tuple[int, ...]

    def at(self, position: Any) -> Predictions:
        """Predictions from the parameters at an index into the batch axes."""
        return self.build(*(parameter[position] for parameter in self.parameters))


def is_torch(obj: object) -> bool:
    """Whether an object is one of torch.distributions."""
    torch = sys.modules.get("torch")  # whoever made such an object has imported it
    return torch is not None and isinstance(obj, torch.distributions.Distribution)


def from_torch(obj: Any) -> Predictions:
    """A distribution of torch.distributions as predictions."""
    if isinstance(obj, _torch().MixtureSameFamily):
        return _from_mixture(obj)
    family = _family(obj)
    if len(family.batch_shape) > 1:
        raise ValueError(
            f"torch.distributions.{type(obj).__name__} has batch shape {family.batch_shape}, and a batch of "
            f"predictions has one axis; {_FLATTEN}, or make a vector of the last axis with "
            "torch.distributions.Independent(distribution, 1)"
        )
    return family.at(... if family.batch_shape else None)


def _torch() -> Any:
    """The module torch.distributions."""
    return sys.modules["torch"].distributions


# -- families -----------------------------------------------------------------------------------------


def _family(obj: Any) -> _Family:
    torch = _torch()
    if isinstance(obj, torch.Independent):
        return _independent(obj)
    for kind, (build, parameters) in _FAMILIES.items():
        if isinstance(obj, getattr(torch, kind)):
            return _Family(build, parameters(obj), tuple(obj.batch_shape))
    raise TypeError(
        f"torch.distributions.{type(obj).__name__} has no family here: draw from it and give "
        "wc.Samples(values) with values of shape (n, S), or (n, S, d) for vectors"
    )


def _independent(obj: Any) -> _Family:
    """A normal distribution with an axis for the coordinates of a vector; nothing else has a family."""
    base, axes = obj, 0
    while isinstance(base, _torch().Independent):
        axes += base.reinterpreted_batch_ndims
        base = base.base_dist
    if axes == 0:
        return _family(base)
    if not isinstance(base, _torch().Normal):
        raise TypeError(
            f"Independent({type(base).__name__}) is a distribution of vectors that has no family here: only "
            "independent normals have. Judge its coordinates one by one, or draw from it and give "
            "wc.Samples(values) with values of shape (n, S, d)"
        )
    if axes > 1:
        raise ValueError(
            f"Independent(Normal) predicts arrays of shape {tuple(obj.event_shape)}, and targets are numbers "
            "or vectors; flatten these axes into one"
        )
    return _Family(DiagonalNormal, (base.loc, base.scale), tuple(obj.batch_shape))


def _negative_binomial(obj: Any) -> tuple[Array, Array]:
    # Whichever was given is an attribute of the instance; the other is computed from it with clipping.
    odds = obj.probs / (1.0 - obj.probs) if "probs" in vars(obj) else obj.logits.exp()
    return obj.total_count * odds, 1.0 / obj.total_count


def _normal_vectors(obj: Any) -> tuple[Array, Array]:
    if "covariance_matrix" in vars(obj):
        return obj.loc, obj.covariance_matrix
    # As in torch's density, entries above the diagonal of the root play no part and have no gradient.
    root = obj.scale_tril.tril()
    return obj.loc, root @ root.mT


_FAMILIES: dict[str, tuple[Callable[..., Predictions], Callable[[Any], tuple[Array, ...]]]] = {
    "Normal": (Normal, lambda d: (d.loc, d.scale)),
    "Laplace": (Laplace, lambda d: (d.loc, d.scale)),
    "LogNormal": (LogNormal, lambda d: (d.loc, d.scale)),
    "StudentT": (StudentT, lambda d: (d.df, d.loc, d.scale)),
    "Cauchy": (StudentT, lambda d: (d.scale.new_ones(d.scale.shape), d.loc, d.scale)),
    "Gamma": (Gamma, lambda d: (d.concentration, 1.0 / d.rate)),
    "Exponential": (Gamma, lambda d: (d.rate.new_ones(d.rate.shape), 1.0 / d.rate)),
    "Beta": (Beta, lambda d: (d.concentration1, d.concentration0)),
    "Poisson": (Poisson, lambda d: (d.rate,)),
    "NegativeBinomial": (NegativeBinomial, _negative_binomial),
    "Bernoulli": (Bernoulli, lambda d: (d.probs,)),
    "Categorical": (Categorical, lambda d: (d.probs,)),
    "Dirichlet": (Dirichlet, lambda d: (d.concentration,)),
    "MultivariateNormal": (MultivariateNormal, _normal_vectors),
    "LowRankMultivariateNormal": (MultivariateNormal, lambda d: (d.loc, d.covariance_matrix)),
}


# -- mixtures -----------------------------------------------------------------------------------------


def _from_mixture(obj: Any) -> Predictions:
    """Components lie along the last batch axis of the component distribution."""
    components = obj.component_distribution
    if isinstance(components, _torch().MixtureSameFamily):
        raise TypeError("a MixtureSameFamily of mixtures is not understood; write it as one mixture")
    family = _family(components)
    weights = obj.mixture_distribution.probs
    if len(family.batch_shape) > 2 or weights.ndim > 2:
        raise ValueError(
            f"MixtureSameFamily has components of batch shape {family.batch_shape}, and a batch of "
            f"predictions has one axis besides that of the components; {_FLATTEN}"
        )
    rows = slice(None) if len(family.batch_shape) == 2 else None
    members = [family.at((rows, k)) for k in range(int(weights.shape[-1]))]
    n = len(members[0])
    if weights.ndim == 2 and weights.shape[0] != n:
        if weights.shape[0] != 1:
            raise ValueError(
                f"MixtureSameFamily has weights for {weights.shape[0]} mixtures and components for {n}; "
                "expand the components"
            )
        weights = weights[0]
    return Mixture(members, weights)
