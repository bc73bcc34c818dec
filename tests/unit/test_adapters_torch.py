"""Objects of torch.distributions as predictions: the same likelihood, with gradients to their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.distributions as td
from numpy.testing import assert_allclose

import wellcal.predictions as wp
from wellcal._arrays.namespaces import to_numpy
from wellcal.predictions.adapters import as_predictions

RNG = np.random.default_rng(32)
N, D, K = 5, 3, 4


def positive(*shape: int) -> np.ndarray:
    return np.exp(RNG.normal(0.0, 0.5, shape))


LOC, SCALE, SHAPE, OTHER = RNG.normal(size=N), positive(N), 1.0 + positive(N), 1.0 + positive(N)
PROBS = RNG.uniform(0.1, 0.9, N)
FACTOR = RNG.normal(size=(N, D, D))
COV = FACTOR @ FACTOR.transpose(0, 2, 1) + 0.2 * np.eye(D)
MEANS = RNG.normal(size=(N, D))
CLASS_PROBS = RNG.dirichlet(np.ones(K), N)


def leaf(x: Any) -> torch.Tensor:
    return torch.tensor(np.asarray(x), dtype=torch.float64, requires_grad=True)


POSITIVE_Y = positive(N)
COUNT_Y = RNG.poisson(2.0, N).astype(float)
SIMPLEX_Y = RNG.dirichlet(np.ones(D), N)
LOGITS = np.log(PROBS / (1.0 - PROBS))
ROOT = np.linalg.cholesky(COV)

TORCH: dict[str, tuple[type[wp.Predictions], Any, tuple[Any, ...], Any]] = {
    "Normal": (wp.Normal, td.Normal, (LOC, SCALE), LOC + 1.0),
    "Laplace": (wp.Laplace, td.Laplace, (LOC, SCALE), LOC + 1.0),
    "LogNormal": (wp.LogNormal, td.LogNormal, (LOC, SCALE), POSITIVE_Y),
    "StudentT": (wp.StudentT, td.StudentT, (SHAPE, LOC, SCALE), LOC + 1.0),
    "Cauchy": (wp.StudentT, td.Cauchy, (LOC, SCALE), LOC + 1.0),
    "Gamma": (wp.Gamma, td.Gamma, (SHAPE, SCALE), POSITIVE_Y),
    "Exponential": (wp.Gamma, td.Exponential, (SCALE,), POSITIVE_Y),
    "Chi2": (wp.Gamma, td.Chi2, (SHAPE,), POSITIVE_Y),
    "Beta": (wp.Beta, td.Beta, (SHAPE, OTHER), PROBS),
    "Poisson": (wp.Poisson, td.Poisson, (SCALE,), COUNT_Y),
    "NegativeBinomial": (wp.NegativeBinomial, td.NegativeBinomial, (SHAPE, PROBS), COUNT_Y),
    "NegativeBinomial, logits": (
        wp.NegativeBinomial,
        lambda n, logits: td.NegativeBinomial(n, logits=logits),
        (SHAPE, LOGITS),
        COUNT_Y,
    ),
    "Bernoulli": (wp.Bernoulli, td.Bernoulli, (PROBS,), COUNT_Y > 1),
    "Bernoulli, logits": (wp.Bernoulli, lambda x: td.Bernoulli(logits=x), (LOGITS,), COUNT_Y > 1),
    "Categorical": (wp.Categorical, td.Categorical, (CLASS_PROBS,), COUNT_Y % K),
    "Categorical, logits": (wp.Categorical, lambda x: td.Categorical(logits=x), (CLASS_PROBS,), COUNT_Y % K),
    "Dirichlet": (wp.Dirichlet, td.Dirichlet, (np.exp(MEANS),), SIMPLEX_Y),
    "MultivariateNormal": (wp.MultivariateNormal, td.MultivariateNormal, (MEANS, COV), MEANS + 1.0),
    "MultivariateNormal, root": (
        wp.MultivariateNormal,
        lambda loc, root: td.MultivariateNormal(loc, scale_tril=root),
        (MEANS, ROOT),
        MEANS + 1.0,
    ),
    "LowRankMultivariateNormal": (
        wp.MultivariateNormal,
        td.LowRankMultivariateNormal,
        (MEANS, FACTOR[:, :, :2], np.exp(MEANS)),
        MEANS + 1.0,
    ),
    "Independent": (
        wp.DiagonalNormal,
        lambda loc, scale: td.Independent(td.Normal(loc, scale), 1),
        (MEANS, np.exp(MEANS)),
        MEANS + 1.0,
    ),
    "Independent of nothing": (
        wp.Laplace,
        lambda loc, scale: td.Independent(td.Laplace(loc, scale), 0),
        (LOC, SCALE),
        LOC + 1.0,
    ),
    "nested Independent": (
        wp.DiagonalNormal,
        lambda loc, scale: td.Independent(td.Independent(td.Normal(loc, scale), 0), 1),
        (MEANS, np.exp(MEANS)),
        MEANS + 1.0,
    ),
}

COMPONENT_LOC, COMPONENT_SCALE = RNG.normal(size=(N, K)), positive(N, K)
COMPONENT_MEANS, COMPONENT_COV = RNG.normal(size=(N, K, D)), np.stack([COV] * K, axis=1)
COMMON_WEIGHTS = CLASS_PROBS[0]


def mixture_of(component: Any) -> Any:
    return lambda weights, *parameters: td.MixtureSameFamily(td.Categorical(weights), component(*parameters))


MIXTURES: dict[str, tuple[type[wp.Predictions], Any, tuple[Any, ...], Any]] = {
    "normals": (
        wp.Normal,
        mixture_of(td.Normal),
        (CLASS_PROBS, COMPONENT_LOC, COMPONENT_SCALE),
        LOC,
    ),
    "normals with common weights": (
        wp.Normal,
        mixture_of(td.Normal),
        (COMMON_WEIGHTS, COMPONENT_LOC, COMPONENT_SCALE),
        LOC,
    ),
    "normals with one row of weights": (
        wp.Normal,
        mixture_of(td.Normal),
        (COMMON_WEIGHTS[None], COMPONENT_LOC, COMPONENT_SCALE),
        LOC,
    ),
    "student t": (
        wp.StudentT,
        mixture_of(td.StudentT),
        (CLASS_PROBS, 1.0 + COMPONENT_SCALE, COMPONENT_LOC, COMPONENT_SCALE),
        LOC,
    ),
    "counts": (wp.Poisson, mixture_of(td.Poisson), (CLASS_PROBS, COMPONENT_SCALE), COUNT_Y),
    "diagonal normals": (
        wp.DiagonalNormal,
        mixture_of(lambda loc, scale: td.Independent(td.Normal(loc, scale), 1)),
        (CLASS_PROBS, COMPONENT_MEANS, np.exp(COMPONENT_MEANS)),
        MEANS,
    ),
    "full normals": (
        wp.MultivariateNormal,
        mixture_of(td.MultivariateNormal),
        (CLASS_PROBS, COMPONENT_MEANS, COMPONENT_COV),
        MEANS,
    ),
}


def check_likelihood_and_gradients(build: Any, given: tuple[Any, ...], y: Any, pred_type: type) -> Any:
    """Log probabilities and their gradients to the leaves, against torch's own."""
    target = torch.as_tensor(np.asarray(y, dtype=float))
    ours, theirs = [leaf(x) for x in given], [leaf(x) for x in given]
    pred: Any = as_predictions(build(*ours))
    assert type(pred) is pred_type
    found, expected = pred.log_prob(target), build(*theirs).log_prob(target)
    assert_allclose(found.detach(), expected.detach(), rtol=1e-9)
    for a, b in zip(
        torch.autograd.grad(found.sum(), ours), torch.autograd.grad(expected.sum(), theirs), strict=True
    ):
        assert_allclose(to_numpy(a), to_numpy(b), rtol=1e-7, atol=1e-9)
    return pred


@pytest.mark.parametrize("name", TORCH)
def test_torch_distributions(name: str) -> None:
    family, build, given, y = TORCH[name]
    pred = check_likelihood_and_gradients(build, given, y, family)
    assert len(pred) == N
    original = build(*(leaf(x) for x in given))
    if name not in ("Categorical", "Categorical, logits", "Cauchy"):
        assert_allclose(pred.mean().detach(), original.mean.detach(), rtol=1e-9)


@pytest.mark.parametrize("name", MIXTURES)
def test_torch_mixtures(name: str) -> None:
    family, build, given, y = MIXTURES[name]
    pred = check_likelihood_and_gradients(build, given, y, wp.Mixture)
    assert {type(component) for component in pred.components} == {family}
    assert len(pred) == N
    assert len(pred.components) == K
    original = build(*(leaf(x) for x in given))
    assert_allclose(pred.mean().detach(), original.mean.detach(), rtol=1e-9)


def test_torch_scalar_parameters_are_a_batch_of_one() -> None:
    two = torch.tensor(2.0)
    for single in (
        td.Normal(two, two),
        td.Poisson(two),
        td.MultivariateNormal(torch.zeros(D), torch.eye(D)),
        td.Independent(td.Normal(torch.zeros(D), torch.ones(D)), 1),
        td.MixtureSameFamily(td.Categorical(torch.ones(K)), td.Normal(torch.zeros(K), torch.ones(K))),
        td.MixtureSameFamily(
            td.Categorical(torch.ones(K)), td.Independent(td.Normal(torch.zeros(K, D), torch.ones(K, D)), 1)
        ),
    ):
        pred: Any = as_predictions(single)
        assert len(pred) == 1
        assert_allclose(pred.mean(), single.mean[None])
        y = torch.ones(1, *single.event_shape)
        assert_allclose(pred.log_prob(y), single.log_prob(y), rtol=1e-5)


def test_torch_parameters_are_broadcast_by_torch() -> None:
    pred: Any = as_predictions(td.Normal(torch.as_tensor(LOC), 2.0))
    assert_allclose(pred.scale, np.full(N, 2.0))
    assert pred.loc.dtype == torch.float64


def test_torch_negative_binomial_keeps_small_probabilities() -> None:
    small = td.NegativeBinomial(torch.tensor([2.0]), probs=torch.tensor([1e-12]))
    assert_allclose(as_predictions(small).mean(), [2e-12], rtol=1e-6)


class OwnNormal(td.Normal):
    """A subclass, as other libraries define them."""


def test_torch_subclasses() -> None:
    assert type(as_predictions(OwnNormal(torch.zeros(2), torch.ones(2)))) is wp.Normal


# -- errors ----------------------------------------------------------------------------------------------

T = torch.ones

BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "two axes": (td.Normal(T(2, 3), T(2, 3)), ValueError, r"\(2, 3\), .*flatten.*Independent"),
    "unknown": (td.Uniform(0.0, T(2)), TypeError, "Uniform has no family here.*wc.Samples"),
    "independent": (td.Independent(td.Gamma(T(2, 3), T(2, 3)), 1), TypeError, r"Independent\(Gamma\)"),
    "arrays": (td.Independent(td.Normal(T(2, 3, 4), 1.0), 2), ValueError, r"shape \(3, 4\)"),
    "mixture axes": (
        td.MixtureSameFamily(td.Categorical(T(2, 3, 4)), td.Normal(T(2, 3, 4), 1.0)),
        ValueError,
        "flatten",
    ),
    "mixture weights": (
        td.MixtureSameFamily(td.Categorical(T(3, 4)), td.Normal(T(4), 1.0)),
        ValueError,
        "expand",
    ),
    "nested mixture": (
        td.MixtureSameFamily(
            td.Categorical(T(2)), td.MixtureSameFamily(td.Categorical(T(2, 3)), td.Normal(T(2, 3), 1.0))
        ),
        TypeError,
        "one mixture",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_name_the_remedy(name: str) -> None:
    obj, error, message = BAD[name]
    with pytest.raises(error, match=message):
        as_predictions(obj)
