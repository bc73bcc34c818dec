"""Foreign objects as predictions: the batch must be the distribution that was given."""

from __future__ import annotations

from typing import Any

import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.distributions as td
from numpy.testing import assert_allclose
from scipy import stats

import wellcal.predictions as wp
from wellcal.predictions.adapters import ADAPTERS, ScipyContinuous, as_predictions

from ..statistical.designs import check_uniform

RNG = np.random.default_rng(31)
N, D, K = 5, 3, 4
LEVELS = np.array([1e-9, 0.03, 0.5, 0.8, 1.0 - 1e-9])[:, None]


def positive(*shape: int) -> np.ndarray:
    return np.exp(RNG.normal(0.0, 0.5, shape))


LOC, SCALE, SHAPE, OTHER = RNG.normal(size=N), positive(N), 1.0 + positive(N), 1.0 + positive(N)
PROBS = RNG.uniform(0.1, 0.9, N)
FACTOR = RNG.normal(size=(N, D, D))
COV = FACTOR @ FACTOR.transpose(0, 2, 1) + 0.2 * np.eye(D)
MEANS = RNG.normal(size=(N, D))
CLASS_PROBS = RNG.dirichlet(np.ones(K), N)


class _Model:
    """Fitted, and told nothing to predict from."""

    def predict(self, X: Any) -> Any:
        raise NotImplementedError


# -- predictions and arrays ----------------------------------------------------------------------------


def test_predictions_pass_through() -> None:
    pred = wp.Normal(LOC, SCALE)
    assert as_predictions(pred) is pred


class Frame:
    """What matters of a data frame: it has values and labels, and is no array."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.columns = values, [f"class {j}" for j in range(values.shape[-1])]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)


@pytest.mark.parametrize("wrap", [np.asarray, list, np.ndarray.tolist, Frame])
def test_probabilities(wrap: Any) -> None:
    binary = as_predictions(wrap(PROBS))
    assert type(binary) is wp.Bernoulli
    assert_allclose(binary.probs, PROBS)
    classes = as_predictions(wrap(CLASS_PROBS))
    assert type(classes) is wp.Categorical
    assert_allclose(classes.probs, CLASS_PROBS)


@pytest.mark.parametrize("wrap", [np.asarray, np.ndarray.tolist, Frame])
def test_pairs(wrap: Any) -> None:
    scalar = as_predictions((wrap(LOC), wrap(SCALE)))
    assert type(scalar) is wp.Normal
    assert_allclose(scalar.loc, LOC)
    assert_allclose(scalar.scale, SCALE)
    diagonal = as_predictions((wrap(MEANS), wrap(np.exp(MEANS))))
    assert type(diagonal) is wp.DiagonalNormal
    assert_allclose(diagonal.scale, np.exp(MEANS))
    full = as_predictions((wrap(MEANS), wrap(COV)))
    assert type(full) is wp.MultivariateNormal
    assert_allclose(full.cov, COV)


def test_pairs_with_one_number() -> None:
    common = as_predictions((LOC, 0.5))
    assert_allclose(common.scale, np.full(N, 0.5))
    centred = as_predictions((0, np.exp(MEANS)))
    assert type(centred) is wp.DiagonalNormal
    assert_allclose(centred.loc, np.zeros((N, D)))
    sigma = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    pred = as_predictions((torch.as_tensor(LOC), sigma))
    pred.log_prob(torch.as_tensor(LOC)).sum().backward()
    assert_allclose(sigma.grad, -N / 0.5)  # d/ds of -log s at the mean, N times


@pytest.mark.parametrize("n", [1, D])
def test_square_pairs_are_told_apart_by_dimension(n: int) -> None:
    loc = np.zeros((n, n))
    assert type(as_predictions((loc, np.ones((n, n))))) is wp.DiagonalNormal
    assert type(as_predictions((loc, np.stack([np.eye(n)] * n)))) is wp.MultivariateNormal


def test_arrays_stay_in_their_library() -> None:
    tensor = torch.tensor(CLASS_PROBS, requires_grad=True)
    probs = as_predictions(tensor).probs
    assert torch.equal(probs, tensor)
    probs.sum().backward()
    assert tensor.grad is not None
    assert isinstance(as_predictions((jnp.asarray(LOC), 1.0)).loc, jax.Array)
    strict = array_api_strict.asarray(PROBS)
    assert type(as_predictions(strict).probs) is type(strict)

    def likelihood(mu: Any, sigma: Any) -> Any:
        return jnp.sum(as_predictions((mu, sigma)).log_prob(jnp.zeros(N)))

    gradient = jax.jit(jax.grad(likelihood))(jnp.asarray(LOC), jnp.asarray(SCALE))
    assert_allclose(gradient, -LOC / SCALE**2, rtol=1e-4)


# -- scipy.stats, older infrastructure -------------------------------------------------------------------

FROZEN: dict[str, tuple[type[wp.Predictions], Any]] = {
    "norm": (wp.Normal, stats.norm(LOC, SCALE)),
    "norm, keywords": (wp.Normal, stats.norm(scale=SCALE, loc=LOC)),
    "norm, one default": (wp.Normal, stats.norm(LOC)),
    "norm, integers": (wp.Normal, stats.norm(np.arange(N), 2)),
    "laplace": (wp.Laplace, stats.laplace(LOC, scale=SCALE)),
    "t": (wp.StudentT, stats.t(SHAPE, LOC, SCALE)),
    "t, mixed": (wp.StudentT, stats.t(4.0, loc=LOC)),
    "gamma": (wp.Gamma, stats.gamma(SHAPE, scale=SCALE)),
    "gamma, positional": (wp.Gamma, stats.gamma(SHAPE, 0, SCALE)),
    "gamma, shifted": (ScipyContinuous, stats.gamma(SHAPE, loc=LOC, scale=SCALE)),
    "expon": (wp.Gamma, stats.expon(scale=SCALE)),
    "lognorm": (wp.LogNormal, stats.lognorm(SCALE, scale=OTHER)),
    "lognorm, shifted": (ScipyContinuous, stats.lognorm(SCALE, LOC, OTHER)),
    "beta": (wp.Beta, stats.beta(SHAPE, b=OTHER)),
    "beta, stretched": (ScipyContinuous, stats.beta(SHAPE, OTHER, LOC, SCALE)),
    "gennorm": (wp.PowerExponential, stats.gennorm(SHAPE, LOC, SCALE)),
    "uniform": (ScipyContinuous, stats.uniform(LOC, SCALE)),
    "weibull_min": (ScipyContinuous, stats.weibull_min(c=SHAPE, scale=SCALE)),
    "skewnorm": (ScipyContinuous, stats.skewnorm(LOC, 1.0, SCALE)),
    "histogram": (ScipyContinuous, stats.rv_histogram(np.histogram(LOC, bins=3))(loc=LOC)),
}

COUNTS: dict[str, tuple[type[wp.Predictions], Any]] = {
    "poisson": (wp.Poisson, stats.poisson(SCALE)),
    "nbinom": (wp.NegativeBinomial, stats.nbinom(SHAPE, PROBS)),
    "nbinom, keywords": (wp.NegativeBinomial, stats.nbinom(p=PROBS, n=3)),
    "nbinom, certain": (wp.NegativeBinomial, stats.nbinom(SHAPE, 1.0)),
    "bernoulli": (wp.Bernoulli, stats.bernoulli(PROBS)),
    "bernoulli, shifted": (wp.Categorical, stats.bernoulli(PROBS, loc=1)),
    "binom": (wp.Categorical, stats.binom(6, PROBS)),
    "binom, own numbers of trials": (wp.Categorical, stats.binom([1, 2, 3, 4, 5], 0.3)),
    "randint": (wp.Categorical, stats.randint([0, -1, 2, 3, 1], 6)),
    "hypergeom": (wp.Categorical, stats.hypergeom(np.arange(7, 12), 4, 5)),
}


@pytest.mark.parametrize("name", FROZEN)
def test_frozen_continuous(name: str) -> None:
    family, frozen = FROZEN[name]
    pred: Any = as_predictions(frozen)
    assert type(pred) is family
    assert len(pred) == N
    y = frozen.ppf(np.array([1e-6, 0.2, 0.5, 0.9])[:, None])
    assert_allclose(pred.log_prob(y), frozen.logpdf(y), rtol=1e-9, atol=1e-12)
    assert_allclose(pred.cdf(y), frozen.cdf(y), rtol=1e-9)
    assert_allclose(pred.quantile((LEVELS + np.zeros(N))[None])[0], frozen.ppf(LEVELS), rtol=1e-6)
    assert_allclose(pred.mean(), frozen.mean(), rtol=1e-12, atol=1e-12)
    assert_allclose(pred.variance(), frozen.var(), rtol=1e-9)
    assert_allclose(pred.upper_quantile(1e-12), frozen.isf(1e-12), rtol=1e-6)


@pytest.mark.parametrize("name", COUNTS)
def test_frozen_discrete(name: str) -> None:
    family, frozen = COUNTS[name]
    pred: Any = as_predictions(frozen)
    assert type(pred) is family
    assert len(pred) == N
    top = 1 if family is wp.Bernoulli else 6
    values = np.arange(top + 1.0)
    if family is wp.Categorical:
        # Beyond the support a Categorical has no log probability to give.
        values = values[(values >= pred.support[0]) & (values <= pred.support[-1])]
    y = values[:, None] + np.zeros(N)
    with np.errstate(divide="ignore"):
        assert_allclose(np.exp(pred.log_prob(y)), frozen.pmf(y), rtol=1e-10, atol=1e-14)
    assert_allclose(pred.cdf(y), frozen.cdf(y), rtol=1e-10)
    assert_allclose(pred.mean(), frozen.mean(), rtol=1e-12)
    assert_allclose(pred.variance(), frozen.var(), rtol=1e-10, atol=1e-14)


def test_frozen_with_a_table_of_values() -> None:
    table = stats.rv_discrete(values=([1, 2.5, 4], [0.2, 0.3, 0.5]))
    pred = as_predictions(table(loc=1.0))
    assert_allclose(pred.support, [2.0, 3.5, 5.0])
    assert_allclose(pred.probs, [[0.2, 0.3, 0.5]])


def test_frozen_certain_of_one_value() -> None:
    pred = as_predictions(stats.randint(3, 4))
    assert_allclose(pred.support, [3.0, 4.0])
    assert_allclose(pred.probs, [[1.0, 0.0]])


def test_scalar_parameters_are_a_batch_of_one() -> None:
    for frozen in (stats.norm(), stats.uniform(), stats.poisson(2), stats.binom(3, 0.5), stats.Normal()):
        pred = as_predictions(frozen)
        assert len(pred) == 1
        assert_allclose(pred.mean(), [frozen.mean()])


def test_precision_is_kept() -> None:
    single = LOC.astype(np.float32)
    assert as_predictions(stats.norm(single)).scale.dtype == np.float32
    assert as_predictions(stats.norm(single, SCALE)).loc.dtype == np.float64
    assert as_predictions(stats.norm(1, 2)).loc.dtype == np.float64


def test_frozen_vectors() -> None:
    normal = stats.multivariate_normal(MEANS[0], COV[0])
    pred: Any = as_predictions(normal)
    assert type(pred) is wp.MultivariateNormal
    assert_allclose(pred.log_prob(MEANS[1:2]), [normal.logpdf(MEANS[1])], rtol=1e-12)
    dirichlet = stats.dirichlet(SHAPE)
    pred = as_predictions(dirichlet)
    assert type(pred) is wp.Dirichlet
    y = RNG.dirichlet(SHAPE)
    assert_allclose(pred.log_prob(y[None]), [dirichlet.logpdf(y)], rtol=1e-12)
    assert_allclose(pred.mean(), [dirichlet.mean()])


# -- lists -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["norm", "gennorm", "lognorm", "beta", "t"])
def test_list_of_frozen(name: str) -> None:
    family, frozen = FROZEN[name]
    batch: Any = as_predictions(frozen)
    joined: Any = as_predictions([_row(frozen, i) for i in range(N)])
    assert type(joined) is family
    assert_allclose(joined.log_prob(batch.quantile(0.3)), batch.log_prob(batch.quantile(0.3)), rtol=1e-12)


def _row(frozen: Any, i: int) -> Any:
    args = [np.broadcast_to(a, (N,))[i] for a in frozen.args]
    return frozen.dist(*args, **{key: np.broadcast_to(a, (N,))[i] for key, a in frozen.kwds.items()})


def test_list_of_frozen_counts_and_vectors() -> None:
    counts = as_predictions([stats.nbinom(n, p) for n, p in zip(SHAPE, PROBS, strict=True)])
    assert_allclose(counts.mean(), stats.nbinom(SHAPE, PROBS).mean())
    binomial = as_predictions([stats.binom(1, p) for p in (0.3, 0.5)])
    assert_allclose(binomial.probs[0], [0.7, 0.3])
    full = as_predictions([stats.multivariate_normal(m, c) for m, c in zip(MEANS, COV, strict=True)])
    assert_allclose(full.log_prob(MEANS), wp.MultivariateNormal(MEANS, COV).log_prob(MEANS))
    assert_allclose(full.chol, np.linalg.cholesky(COV))
    simplex = as_predictions([stats.dirichlet(row) for row in np.exp(MEANS)])
    assert_allclose(simplex.concentration, np.exp(MEANS))


def test_list_of_variables() -> None:
    normal = as_predictions([stats.Normal(mu=m, sigma=s) for m, s in zip(LOC, SCALE, strict=True)])
    assert type(normal) is wp.Normal
    assert_allclose(normal.loc, LOC)
    mixtures = [
        stats.Mixture([stats.Normal(mu=m, sigma=1.0), stats.Normal(mu=0.0, sigma=s)], weights=[w, 1.0 - w])
        for m, s, w in zip(LOC, SCALE, PROBS, strict=True)
    ]
    pred: Any = as_predictions(mixtures)
    assert type(pred) is wp.Mixture
    assert_allclose(pred.log_prob(LOC), [m.logpdf(y) for m, y in zip(mixtures, LOC, strict=True)])
    assert_allclose(pred.mean(), [m.mean() for m in mixtures], rtol=1e-12, atol=1e-14)


def test_list_of_torch_distributions_keeps_gradients() -> None:
    loc = torch.tensor(LOC, requires_grad=True)
    pred = as_predictions([td.Normal(m, torch.tensor(2.0, dtype=torch.float64)) for m in loc])
    assert type(pred) is wp.Normal
    (pred.loc**2).sum().backward()
    assert_allclose(loc.grad, 2.0 * LOC)


# -- scipy.stats, newer infrastructure ---------------------------------------------------------------------

make_gamma: Any = stats.make_distribution(stats.gamma)
VARIABLES: dict[str, tuple[type[wp.Predictions], Any]] = {
    "Normal": (wp.Normal, stats.Normal(mu=LOC, sigma=SCALE)),
    "Normal, one number": (wp.Normal, stats.Normal(mu=LOC, sigma=2)),
    "Uniform": (ScipyContinuous, stats.Uniform(a=LOC, b=LOC + SCALE)),
    "made from gamma": (ScipyContinuous, make_gamma(a=SHAPE)),
    "shifted and scaled": (ScipyContinuous, make_gamma(a=SHAPE) * SCALE + 1.0),
    "truncated": (ScipyContinuous, stats.truncate(stats.Normal(mu=LOC, sigma=SCALE), lb=-1.0)),
}


@pytest.mark.parametrize("name", VARIABLES)
def test_variables(name: str) -> None:
    family, variable = VARIABLES[name]
    pred: Any = as_predictions(variable)
    assert type(pred) is family
    assert len(pred) == N
    y = variable.icdf(np.array([0.01, 0.4, 0.9])[:, None])
    assert_allclose(pred.log_prob(y), variable.logpdf(y), rtol=1e-10, atol=1e-12)
    assert_allclose(pred.cdf(y), variable.cdf(y), rtol=1e-9)
    assert_allclose(pred.quantile(0.25), variable.icdf(0.25), rtol=1e-9)
    assert_allclose(pred.upper_quantile(1e-6), variable.iccdf(1e-6), rtol=1e-9)
    assert_allclose(pred.mean(), variable.mean(), rtol=1e-9)
    assert_allclose(pred.variance(), variable.variance(), rtol=1e-7)


def test_variable_without_parameters() -> None:
    pred = as_predictions(stats.Logistic())
    assert type(pred) is ScipyContinuous
    assert_allclose(pred.cdf([0.3]), [stats.Logistic().cdf(0.3)])


def test_mixture_of_variables() -> None:
    mixture = stats.Mixture(
        [stats.Normal(mu=-1.0, sigma=1.0), stats.Normal(mu=2.0, sigma=0.5)], weights=[0.3, 0.7]
    )
    pred: Any = as_predictions(mixture)
    assert type(pred) is wp.Mixture
    assert len(pred) == 1
    y = np.linspace(-3.0, 3.0, 7)[:, None]
    assert_allclose(pred.log_prob(y), mixture.logpdf(y), rtol=1e-12)
    assert_allclose(pred.cdf(y), mixture.cdf(y), rtol=1e-12)
    unlike = stats.Mixture([stats.Normal(mu=-1.0, sigma=1.0), stats.Uniform(a=0.0, b=1.0)])
    assert_allclose(as_predictions(unlike).cdf([0.5]), [unlike.cdf(0.5)], rtol=1e-12)


def test_binomial_variable() -> None:
    variable = stats.Binomial(n=[4, 4, 4, 2, 3], p=PROBS)
    pred: Any = as_predictions(variable)
    assert type(pred) is wp.Categorical
    assert_allclose(pred.support, np.arange(5.0))
    assert_allclose(pred.probs, variable.pmf(np.arange(5.0)[:, None]).T, rtol=1e-12)
    assert_allclose(pred.mean(), variable.mean(), rtol=1e-12)


# -- the generic family --------------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", [stats.uniform(LOC, SCALE), stats.Uniform(a=LOC, b=LOC + SCALE)])
@pytest.mark.parametrize(
    "index", [slice(1, 4), [3, 0], [2, 2, 0, 2, 4], np.array([True, False, True, True, False]), -1]
)
def test_generic_family_can_be_indexed(distribution: Any, index: Any) -> None:
    pred = ScipyContinuous(distribution)
    part = pred[index]
    chosen = np.atleast_1d(np.arange(N)[index])
    u = RNG.uniform(size=(3, len(chosen)))
    assert_allclose(part.quantile(u), LOC[chosen] + SCALE[chosen] * u, rtol=1e-12)
    y = LOC[chosen] + 0.25 * SCALE[chosen]
    assert_allclose(part.cdf(y), np.full(len(chosen), 0.25), rtol=1e-12)
    assert_allclose(part.log_prob(y), -np.log(SCALE[chosen]), rtol=1e-12, atol=1e-14)
    assert_allclose(part.mean(), LOC[chosen] + 0.5 * SCALE[chosen], rtol=1e-12)
    assert_allclose(part.medians, part.mean(), rtol=1e-12)
    assert_allclose(part[:1].mean(), part.mean()[:1])


def test_generic_family_of_one_can_be_repeated() -> None:
    for distribution in (stats.uniform(1.0, 2.0), stats.Uniform(a=1.0, b=3.0)):
        part = ScipyContinuous(distribution)[[0, 0, 0]]
        assert_allclose(part.quantile(0.25), np.full(3, 1.5))
        assert_allclose(part.variance(), np.full(3, 1.0 / 3.0))


@pytest.mark.parametrize("distribution", [stats.uniform(LOC, SCALE), stats.Uniform(a=LOC, b=LOC + SCALE)])
def test_generic_family_is_sampled(distribution: Any) -> None:
    pred = ScipyContinuous(distribution)
    draws = pred.sample(np.random.default_rng(1), 4000)
    assert draws.shape == (4000, N)
    for i in range(N):
        check_uniform(
            "sampling of scipy's families", stats.uniform(LOC[i], SCALE[i]).cdf(draws[:, i]), find=0.06
        )
    assert np.abs(np.corrcoef(draws.T) - np.eye(N)).max() < 0.08
    twice = pred[[0, 0]].sample(3, 5)
    assert not np.any(twice[:, 0] == twice[:, 1])
    assert_allclose(pred.sample(3, 2), pred.sample(3, 2))


def test_generic_family_in_a_mixture() -> None:
    pred = wp.Mixture([as_predictions(stats.uniform(LOC, SCALE)), wp.Normal(LOC, SCALE)], [0.25, 0.75])
    expected = 0.25 * stats.uniform(LOC, SCALE).cdf(LOC + 0.1) + 0.75 * stats.norm(LOC, SCALE).cdf(LOC + 0.1)
    assert_allclose(pred.cdf(LOC + 0.1), expected, rtol=1e-12)
    assert_allclose(pred.cdf(pred.quantile(0.3)), np.full(N, 0.3), rtol=1e-9)


# -- errors ----------------------------------------------------------------------------------------------

NORMALS = [stats.norm(0.0, 1.0), stats.norm(1.0, 1.0)]
T = torch.ones

BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "None": (
        None,
        TypeError,
        r"NoneType are not understood; give .*probabilities.*scipy.stats.*torch.*Samples",
    ),
    "text": ("0.5", TypeError, "str are not understood"),
    "no model": (object(), TypeError, "object are not understood; give wellcal predictions"),
    "a model": (_Model(), TypeError, r"_Model.*model\? give wc.as_predictions\(model, X\)"),
    "one column": (PROBS[:, None], ValueError, r"Bernoulli\(probs\[:, 0\]\)"),
    "one number": (np.float64(0.5), ValueError, r"\(n,\) or \(n, C\), found shape \(\)"),
    "three axes": (np.ones((2, 2, 2)), ValueError, r"found shape \(2, 2, 2\); .*wc.Samples"),
    "ragged": ([[0.5, 0.5], [1.0]], ValueError, "ragged"),
    "no probability": ([0.2, 1.5], ValueError, "row 1"),
    "pair, unequal": ((LOC, SCALE[:-1]), ValueError, r"found \(5,\) and \(4,\)"),
    "pair, column": ((LOC, SCALE[:, None]), ValueError, r"found \(5,\) and \(5, 1\); nothing is broadcast"),
    "pair, row of scales": ((MEANS, SCALE), ValueError, r"found \(5, 3\) and \(5,\)"),
    "pair, wrong covariances": ((MEANS, COV[:, :2, :2]), ValueError, r"and \(5, 2, 2\)"),
    "pair of numbers": ((0.0, 1.0), ValueError, r"found \(\) and \(\)"),
    "pair, negative scale": ((LOC, -SCALE), ValueError, "scale must not be negative in row 0"),
    "pair, ragged": (([[1.0], [1.0, 2.0]], 1.0), ValueError, "mu is ragged"),
    "triple": ((LOC, SCALE, SHAPE), ValueError, "found 3 entries"),
    "pair of distributions": (tuple(NORMALS), TypeError, "wc.Mixture"),
    "pair of predictions": ((wp.Normal(LOC, SCALE),) * 2, TypeError, "wc.Mixture"),
    "list of predictions": ([wp.Normal(LOC, SCALE)] * 2, TypeError, r"wc.Mixture\(list\)"),
    "list of batches": ([stats.norm(LOC), stats.norm(LOC)], ValueError, "item 0 of the list is a batch of 5"),
    "list of torch batches": ([td.Normal(T(2), T(2))] * 2, ValueError, "item 0 of the list is a batch of 2"),
    "list of families": ([*NORMALS, stats.gamma(2.0)], TypeError, "Normal as item 0 and Gamma as item 2"),
    "list of lengths": ([stats.dirichlet([1, 1]), stats.dirichlet([1, 1, 1])], ValueError, "item 1"),
    "list of supports": (
        [stats.Binomial(n=2, p=0.5), stats.Binomial(n=3, p=0.5)],
        ValueError,
        "same support",
    ),
    "list of generic": ([stats.Uniform(a=0.0, b=1.0)] * 2, TypeError, "parameters are arrays"),
    "list of frozen generic": ([stats.weibull_min(2.0)] * 2, TypeError, "parameters are arrays"),
    "list of mixtures": (
        [stats.Mixture([stats.Normal(mu=0.0, sigma=1.0)] * k) for k in (1, 2)],
        ValueError,
        "weight zero",
    ),
    "list of libraries": ([stats.norm(), td.Normal(T(()), T(()))], TypeError, "numpy, torch"),
    "list of tensors": ([T(2) / 2, T(2) / 2], TypeError, "stack them"),
    "list with a model": ([stats.norm(), object()], TypeError, "item 1 of the list is of type object"),
    "unfrozen": (stats.norm, TypeError, r"stats.norm\(loc="),
    "crossed parameters": (stats.norm(LOC[:, None], SCALE), ValueError, r"broadcast to shape \(5, 5\)"),
    "crossed generic": (stats.uniform(LOC[:, None], SCALE), ValueError, r"broadcast to shape \(5, 5\)"),
    "crossed variables": (stats.Uniform(a=MEANS, b=9.0), ValueError, r"broadcast to shape \(5, 3\)"),
    "crossed normals": (stats.Normal(mu=MEANS, sigma=1.0), ValueError, r"broadcast to shape \(5, 3\)"),
    "crossed binomials": (stats.binom(3, MEANS**2 / 99), ValueError, r"broadcast to shape \(5, 3\)"),
    "generic out of range": (stats.uniform(LOC, [1, 1, -1, 1, 1]), ValueError, "uniform .* in row 2"),
    "variable out of range": (stats.Uniform(a=[0.0, 1.0], b=0.5), ValueError, "Uniform .* in row 1"),
    "normal out of range": (stats.norm(LOC, [1, 1, -1, 1, 1]), ValueError, "scale .* row 2"),
    "binomial out of range": (stats.binom(-3, 0.5), ValueError, "out of range"),
    "endless counts": (stats.zipf(2.0), TypeError, "zipf .* wc.Samples"),
    "many counts": (stats.binom(5000, 0.5), TypeError, "from 0 to 5000.*wc.Samples"),
    "shifted Poisson": (stats.poisson(2.0, loc=1), TypeError, "poisson .* wc.Samples"),
    "values between": (stats.rv_discrete(values=([0, 0.5], [0.5, 0.5]))(loc=[0, 1]), TypeError, "wc.Samples"),
    "unknown vectors": (stats.multivariate_t(np.zeros(2)), TypeError, "multivariate_t .* wc.Samples"),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_name_the_remedy(name: str) -> None:
    obj, error, message = BAD[name]
    with pytest.raises(error, match=message):
        as_predictions(obj)


def test_generic_family_rejects_what_is_not_continuous() -> None:
    with pytest.raises(TypeError, match="continuous"):
        ScipyContinuous(stats.poisson(2.0))
    with pytest.raises(TypeError, match="continuous"):
        ScipyContinuous(2.0)


# -- adapters of one's own -----------------------------------------------------------------------------------


class Forecast:
    """What a user's model returns."""

    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = np.atleast_1d(low), np.atleast_1d(high)


def from_forecast(forecast: Forecast) -> Any:
    return forecast.low, forecast.high - forecast.low  # a pair, which becomes Normal


def test_adapters_of_ones_own() -> None:
    with pytest.raises(TypeError, match="Forecast are not understood"):
        as_predictions(Forecast(LOC, LOC + SCALE))
    with ADAPTERS.restored():
        ADAPTERS.register(Forecast, kind="a Forecast")(from_forecast)
        pred = as_predictions(Forecast(LOC, LOC + SCALE))
        assert type(pred) is wp.Normal
        assert_allclose(pred.scale, SCALE)
        one_by_one = as_predictions([Forecast(a, b) for a, b in zip(LOC, LOC + SCALE, strict=True)])
        assert_allclose(one_by_one.loc, LOC)
        with pytest.raises(ValueError, match="item 1 of the list is a batch of 5"):
            as_predictions([Forecast(0.0, 1.0), Forecast(LOC, LOC + 1.0)])
        with pytest.raises(TypeError, match=r"found distributions in it"):
            as_predictions((Forecast(0.0, 1.0), Forecast(0.0, 1.0)))
        with pytest.raises(TypeError, match="a Forecast"):
            as_predictions(None)
        # The one registered last is asked first, also before those that come with the package.
        ADAPTERS.register(lambda obj: hasattr(obj, "dist"), kind="anything frozen")(lambda obj: [0.5])
        assert type(as_predictions(stats.norm(LOC, SCALE))) is wp.Bernoulli
    assert type(as_predictions(stats.norm(LOC, SCALE))) is wp.Normal


class Closed:
    """An object that fails at every question, and when it is to be printed."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")

    def __repr__(self) -> str:
        raise RuntimeError("no text")


class Shut(Closed):
    """One that does not even say what class it is of."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


def test_objects_that_fail_when_they_are_asked_are_refused() -> None:
    # Nothing but the call may see them: a test that fails would try to print them.
    for made in (Closed, Shut):
        for given in (made(), [made()], (made(), made())):
            with pytest.raises(TypeError, match=r"predictions|list|mu|sigma"):
                as_predictions(given)


def test_an_adapter_that_fails_is_named() -> None:
    with ADAPTERS.restored():
        ADAPTERS.register(lambda obj: obj.low < 0.0, kind="a Forecast")(from_forecast)
        with pytest.raises(TypeError, match="whether they are a Forecast ended with AttributeError"):
            as_predictions(np.array([0.5]))
