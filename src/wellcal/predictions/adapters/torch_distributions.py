"""Objects of torch.distributions as predictions, with gradients to their parameters."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import wellcal.predictions as wp
from wellcal._arrays.namespaces import Array

_FLATTEN = "flatten the leading axes of its parameters into one"
_DRAW = "draw from it and give wc.Samples(values) with values of shape (n, S), or (n, S, d) for vectors"

Parameters = tuple[Callable[..., wp.Predictions], tuple[Array, ...]]
"""A family and its parameters, each of shape ``batch_shape + ...``."""


def is_torch(obj: object) -> bool:
    """True if an object is one of torch.distributions."""
    torch = sys.modules.get("torch")  # whoever made such an object has imported it
    return torch is not None and isinstance(obj, torch.distributions.Distribution)


def from_torch(obj: Any) -> wp.Predictions:
    """Convert a distribution of torch.distributions to predictions."""
    if isinstance(obj, sys.modules["torch"].distributions.MixtureSameFamily):
        return _from_mixture(obj)
    build, parameters = _parameters(obj)
    batch_shape = tuple(obj.batch_shape)
    if len(batch_shape) > 1:
        raise ValueError(
            f"{type(obj).__name__} has batch shape {batch_shape}, and predictions have one axis; {_FLATTEN}, "
            "or make a vector of the last axis with torch.distributions.Independent(distribution, 1)"
        )
    return build(*(x if batch_shape else x[None] for x in parameters))


def _from_mixture(obj: Any) -> wp.Predictions:
    """Convert a mixture, whose components lie along the last batch axis of its component distribution."""
    components, weights = obj.component_distribution, obj.mixture_distribution.probs
    if isinstance(components, type(obj)):
        raise TypeError("a MixtureSameFamily of mixtures is not understood; write it as one mixture")
    build, parameters = _parameters(components)
    batch_shape = tuple(components.batch_shape)
    if len(batch_shape) > 2 or weights.ndim > 2:
        raise ValueError(
            f"MixtureSameFamily has components of batch shape {batch_shape}, and predictions have one axis "
            f"besides that of the components; {_FLATTEN}"
        )
    rows = slice(None) if len(batch_shape) == 2 else None
    members = [build(*(x[rows, k] for x in parameters)) for k in range(int(weights.shape[-1]))]
    n = len(members[0])
    if weights.ndim == 2 and len(weights) not in (1, n):
        raise ValueError(
            f"MixtureSameFamily has weights for {len(weights)} mixtures and components for {n}; expand the "
            "components"
        )
    return wp.Mixture(members, weights[0] if weights.ndim == 2 and len(weights) < n else weights)


def _parameters(obj: Any) -> Parameters:
    torch: Any = sys.modules["torch"].distributions
    base, axes = obj, 0
    while isinstance(base, torch.Independent):
        axes += base.reinterpreted_batch_ndims
        base = base.base_dist
    if axes and not isinstance(base, torch.Normal):
        raise TypeError(f"only normals may be independent, found Independent({type(base).__name__}); {_DRAW}")
    if axes > 1:
        shape = tuple(obj.event_shape)
        raise ValueError(f"Independent(Normal) predicts arrays of shape {shape}; flatten these axes into one")
    if axes:
        return wp.DiagonalNormal, (base.loc, base.scale)
    for kind, (build, parameters) in _FAMILIES.items():
        if isinstance(base, getattr(torch, kind)):
            return build, parameters(base)
    raise TypeError(f"torch.distributions.{type(base).__name__} has no family here; {_DRAW}")


def _negative_binomial(obj: Any) -> tuple[Array, Array]:
    # The given one is an attribute of the instance; the other is computed from it with clipping.
    odds = obj.probs / (1.0 - obj.probs) if "probs" in vars(obj) else obj.logits.exp()
    return obj.total_count * odds, 1.0 / obj.total_count


def _normal_vectors(obj: Any) -> tuple[Array, Array]:
    if "covariance_matrix" in vars(obj):
        return obj.loc, obj.covariance_matrix
    root = obj.scale_tril.tril()  # entries above the diagonal have no gradient in torch's density either
    return obj.loc, root @ root.mT


_FAMILIES: dict[str, tuple[Callable[..., wp.Predictions], Callable[[Any], tuple[Array, ...]]]] = {
    "Normal": (wp.Normal, lambda d: (d.loc, d.scale)),
    "Laplace": (wp.Laplace, lambda d: (d.loc, d.scale)),
    "LogNormal": (wp.LogNormal, lambda d: (d.loc, d.scale)),
    "StudentT": (wp.StudentT, lambda d: (d.df, d.loc, d.scale)),
    "Cauchy": (wp.StudentT, lambda d: (d.scale.new_ones(d.scale.shape), d.loc, d.scale)),
    "Gamma": (wp.Gamma, lambda d: (d.concentration, 1.0 / d.rate)),
    "Exponential": (wp.Gamma, lambda d: (d.rate.new_ones(d.rate.shape), 1.0 / d.rate)),
    "Beta": (wp.Beta, lambda d: (d.concentration1, d.concentration0)),
    "Poisson": (wp.Poisson, lambda d: (d.rate,)),
    "NegativeBinomial": (wp.NegativeBinomial, _negative_binomial),
    "Bernoulli": (wp.Bernoulli, lambda d: (d.probs,)),
    "Categorical": (wp.Categorical, lambda d: (d.probs,)),
    "Dirichlet": (wp.Dirichlet, lambda d: (d.concentration,)),
    "MultivariateNormal": (wp.MultivariateNormal, _normal_vectors),
    "LowRankMultivariateNormal": (wp.MultivariateNormal, lambda d: (d.loc, d.covariance_matrix)),
}
