"""The conformance checks: everything in the library passes them, and each of them can fail."""

from __future__ import annotations

import pickle
from collections.abc import Callable as Function
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal import kernels
from wellcal.conformance import ConformanceError, Report, check_kernel, check_predictions
from wellcal.expectations.rules.elements import CLOSED_FORMS, Normals, Points, rule
from wellcal.kernels import (
    Callable,
    Delta,
    Euclidean,
    ExpDistance,
    Gaussian,
    Hellinger,
    Joint,
    Laplacian,
    Matern,
    MaximumMeanDiscrepancy,
    MixtureWasserstein,
    Radial,
    RationalQuadratic,
    RootCovariance,
    TotalVariation,
    Wasserstein,
)
from wellcal.predictions import family, parameter, positive

N = 12
RNG = np.random.default_rng(20)
LOC, SCALE = RNG.normal(size=N), RNG.uniform(0.5, 1.5, N)
SHAPE, OTHER = RNG.uniform(1.5, 4.0, N), RNG.uniform(1.5, 4.0, N)
LOCS, SCALES = RNG.normal(size=(N, 3)), RNG.uniform(0.5, 1.5, (N, 3))
FACTORS = RNG.normal(size=(N, 3, 3))
COV = FACTORS @ FACTORS.transpose(0, 2, 1) + 0.3 * np.eye(3)
PROBS, WEIGHTS = RNG.dirichlet(np.ones(4), N), RNG.dirichlet(np.ones(5), N)
VALUES = RNG.normal(size=(N, 5))
NORMAL = wc.Normal(LOC, SCALE)
CATEGORICAL = wc.Categorical(PROBS)

ALL_LAWS = (
    "sampling",
    "indexing",
    "independence",
    "targets",
    "moments",
    "inverse",
    "probability integral transform",
    "density",
    "expectations",
    "calibration error",
)
VECTORS = {"inverse", "probability integral transform", "density"}
NO_DENSITY = {"density"}
NAMES = {"independence", "moments", "inverse", "probability integral transform"}

FAMILIES: dict[str, tuple[wc.Predictions, set[str]]] = {
    "Bernoulli": (wc.Bernoulli(RNG.uniform(size=N)), set()),
    "Categorical": (CATEGORICAL, set()),
    "Categorical with classes": (wc.Categorical(PROBS, classes=["a", "b", "c", "d"]), NAMES),
    "Categorical with support": (wc.Categorical(PROBS, support=[-1.0, 0.0, 2.0, 5.0]), set()),
    "Categorical with vectors": (
        wc.Categorical(PROBS, support=[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [2.0, 2.0]]),
        {"inverse", "probability integral transform"},
    ),
    "Normal": (NORMAL, set()),
    "Normal and points": (wc.Normal(LOC, np.where(np.arange(N) % 2, SCALE, 0.0)), set()),
    "DiagonalNormal": (wc.DiagonalNormal(LOCS, SCALES), VECTORS),
    "MultivariateNormal": (wc.MultivariateNormal(LOCS, COV), VECTORS),
    "Laplace": (wc.Laplace(LOC, SCALE), set()),
    "Poisson": (wc.Poisson(3.0 * SCALE), set()),
    "Poisson of rare events": (wc.Poisson(1e-5 * SCALE), {"independence"}),
    "NegativeBinomial": (wc.NegativeBinomial(3.0 * SCALE, 0.5 * SCALE), set()),
    "StudentT": (wc.StudentT(5.0 + SHAPE, LOC, SCALE), set()),
    "StudentT without moments": (wc.StudentT(0.5 * SHAPE, LOC, SCALE), set()),
    "Gamma": (wc.Gamma(SHAPE, SCALE), set()),
    "Gamma with infinite densities": (wc.Gamma(0.3 * SHAPE, SCALE), set()),
    "LogNormal": (wc.LogNormal(LOC, 0.5 * SCALE), set()),
    "Beta": (wc.Beta(SHAPE, OTHER), set()),
    "Beta with infinite densities": (wc.Beta(0.3 * SHAPE, 0.3 * OTHER), set()),
    "Dirichlet": (wc.Dirichlet(SCALES), VECTORS),
    "PowerExponential": (wc.PowerExponential(LOC, SCALE, SHAPE), set()),
    "PowerExponential with cusps": (wc.PowerExponential(LOC, SCALE, 0.3 * SHAPE), set()),
    "PowerExponential of vectors": (wc.PowerExponential(LOCS, shape=SHAPE, cov=COV), VECTORS),
    "Mixture": (wc.Mixture([NORMAL, wc.Laplace(-LOC, OTHER)], [0.3, 0.7]), set()),
    "Mixture of classes": (wc.Mixture([CATEGORICAL, wc.Categorical(PROBS[::-1])]), set()),
    "Mixture of vectors": (
        wc.Mixture([wc.DiagonalNormal(LOCS, SCALES), wc.MultivariateNormal(-LOCS, COV)]),
        VECTORS,
    ),
    "Mixture of points and densities": (
        wc.Mixture([NORMAL, wc.Samples(VALUES)], [0.3, 0.7]),
        NO_DENSITY,
    ),
    "Samples": (wc.Samples(VALUES), NO_DENSITY),
    "Samples with weights": (wc.Samples(VALUES, WEIGHTS, kind="atoms"), NO_DENSITY),
    "Samples of vectors": (wc.Samples(RNG.normal(size=(N, 5, 3))), VECTORS),
    "Quantiles": (wc.Quantiles([0.1, 0.2, 0.5, 0.8], np.sort(PROBS, axis=1)), {"moments", "density"}),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_conforms(name: str) -> None:
    pred, absent = FAMILIES[name]
    report = check_predictions(pred)
    assert set(report.skipped) == absent
    assert set(report.passed) == set(ALL_LAWS) - absent
    assert report.subject == type(pred).__name__


@pytest.mark.parametrize("name", FAMILIES)
def test_every_default_kernel_conforms(name: str) -> None:
    pred, _ = FAMILIES[name]
    report = check_kernel(wc.default_kernel(pred), pred)
    unmixable = {"linearity of the targets"} if isinstance(pred, wc.Quantiles) else set()
    assert set(report.skipped) == unmixable


def test_objects_conform_with_a_kernel_of_their_own() -> None:
    words = np.array(["ab", "ac", "bc", "cc", "ca"], dtype=object)[RNG.integers(0, 5, (N, 4))]
    pred = wc.Samples(words)
    same_initial = Callable(lambda a, b: 0.5 * (a[0] == b[0]) + 0.5 * (a == b), positive_definite=True)
    kernel = ExpDistance(MaximumMeanDiscrepancy(same_initial), power=2.0) @ same_initial
    report = check_predictions(pred, kernel=kernel, draws=400)
    assert set(report.passed) == {"indexing", "sampling", "targets", "expectations", "calibration error"}
    assert set(check_kernel(kernel, pred, draws=400).skipped) == {"linearity of the targets"}
    with pytest.raises(ConformanceError, match="Samples of objects have no default kernel") as caught:
        check_predictions(pred)
    assert caught.value.law == "expectations"


@pytest.mark.parametrize(
    "convert",
    [torch.as_tensor, lambda x: torch.tensor(x, requires_grad=True), lambda x: x.astype(np.float32)],
    ids=["torch", "gradients", "single precision"],
)
def test_other_arrays_conform(convert: Function[[np.ndarray], Any]) -> None:
    for pred in (wc.Normal(convert(LOC), convert(SCALE)), wc.Gamma(convert(SHAPE), convert(SCALE))):
        assert not check_predictions(pred).skipped
        assert not check_kernel(wc.default_kernel(pred), pred).skipped


def test_jax_arrays_conform() -> None:
    with jax.enable_x64(True):
        pred = wc.Bernoulli(jnp.asarray([0.2, 0.5, 0.9]))
        assert not check_predictions(pred, draws=200).skipped
        assert not check_kernel(Delta(), pred, draws=100, points=10).skipped


# -- kernels of the library ---------------------------------------------------------------------------

TARGET_KERNELS = [
    Gaussian(1.3),
    Laplacian(0.8),
    Matern(1.5, 1.2),
    RationalQuadratic(0.7, 2.0),
    Gaussian() + 0.5 * Laplacian(),
    Gaussian() * Laplacian(2.0),
]


@pytest.mark.parametrize("kernel", TARGET_KERNELS, ids=repr)
@pytest.mark.parametrize(
    "name", ["Normal", "DiagonalNormal", "Categorical with support", "Samples", "Poisson"]
)
def test_every_kernel_on_targets_conforms(kernel: kernels.Kernel, name: str) -> None:
    report = check_kernel(kernel, FAMILIES[name][0])
    assert len(report.passed) == 8
    assert not report.skipped


def test_other_smoothness_and_delta_conform() -> None:
    assert not check_kernel(Matern(0.7, 1.0), CATEGORICAL).skipped
    for name in ("Bernoulli", "Categorical", "Categorical with classes", "Poisson", "Samples"):
        assert not check_kernel(Delta(), FAMILIES[name][0]).skipped


@pytest.mark.parametrize(
    ("metric", "power", "names"),
    [
        (Euclidean(), 2.0, ["Normal", "DiagonalNormal", "Laplace", "Bernoulli", "Categorical", "Poisson"]),
        (TotalVariation(), 1.0, ["Bernoulli", "Categorical"]),
        (Hellinger(), 2.0, ["Bernoulli", "Categorical", "Normal", "DiagonalNormal", "LogNormal", "Poisson"]),
        (Wasserstein(), 2.0, ["Normal", "DiagonalNormal", "Laplace", "Gamma", "Samples", "Quantiles"]),
        (Wasserstein(1), 1.0, ["Normal", "Poisson", "Gamma", "Samples"]),
        (RootCovariance(), 2.0, ["Normal", "MultivariateNormal"]),
        (MaximumMeanDiscrepancy(Gaussian()), 2.0, ["Normal", "Mixture", "Beta", "Dirichlet", "Poisson"]),
    ],
    ids=repr,
)
def test_every_metric_conforms(metric: kernels.Metric, power: float, names: list[str]) -> None:
    for name in names:
        report = check_kernel(ExpDistance(metric, 0.7, power), FAMILIES[name][0])
        assert len(report.passed) == 5, name


def test_what_is_refuted_need_not_be_positive_definite() -> None:
    # The two-point mixtures on the vertices of a square, which refute the paper's theorem.
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    pairs = [(0, 3), (1, 2), (0, 1), (0, 2), (1, 3), (2, 3)]
    members = [wc.DiagonalNormal(corners[[pair[k] for pair in pairs]], 1e-6) for k in (0, 1)]
    kernel = ExpDistance(MixtureWasserstein(), power=2.0)
    report = check_kernel(kernel, wc.Mixture(members))
    assert set(report.skipped) == {"positive definiteness"}

    @dataclass(frozen=True)
    class Claimed(ExpDistance):
        def guarantees(self, predictions: wc.Predictions) -> kernels.Guarantees:
            return kernels.Guarantees(True, None, True)

    with pytest.raises(ConformanceError, match=r"eigenvalue -.*though guarantees say") as caught:
        check_kernel(Claimed(MixtureWasserstein(), power=2.0), wc.Mixture(members))
    assert caught.value.law == "positive definiteness"


def test_kernels_on_pairs_conform() -> None:
    paper = kernels.paper_kernel
    both = paper + 0.5 * (ExpDistance(Euclidean()) @ Laplacian())
    report = check_kernel(both, NORMAL)
    assert len(report.passed) == 2 * (4 + 7) + 5
    radial_of_parameters = Gaussian(0.5) @ Gaussian()
    assert not check_kernel(radial_of_parameters, NORMAL).skipped

    def joint(P: Any, y: Any, Q: Any, z: Any) -> Any:
        d = np.abs(P.probs[:, None] - Q.probs[None, :]).sum(-1) / 2 + (y[:, None] != z[None, :])
        return np.exp(-d)

    report = check_kernel(Joint(joint, positive_definite=True), CATEGORICAL)
    assert set(report.passed) == {
        "finite values",
        "symmetry",
        "positive definiteness",
        "simulation",
        "guarantees",
    }


# -- broken kernels ---------------------------------------------------------------------------------------


def broken(law: str, kernel: kernels.Kernel, pred: wc.Predictions = NORMAL, match: str = "law|:") -> None:
    with pytest.raises(ConformanceError, match=match) as caught:
        check_kernel(kernel, pred, draws=1000)
    assert caught.value.law == law


def vectorized(function: Function[[Any, Any], Any], **declared: Any) -> Callable:
    """A kernel from a function of coordinates that broadcast."""
    return Callable(lambda x, y: function(x[:, None], y[None, :]), vectorized=True, **declared)


def test_a_kernel_that_looks_at_its_batch_is_caught() -> None:
    kernel = Callable(
        lambda x, y: np.exp(-np.abs(x[:, None] - y[None, :]) / (1 + np.ptp(x))), vectorized=True
    )
    broken(
        "pointwise",
        kernel,
        match=r"the value for points 0 and 39 alone is .* at index \(0, 0\), but that among",
    )


def test_a_kernel_that_returns_the_wrong_shape_is_caught() -> None:
    broken("pointwise", Callable(lambda x, y: np.ones(len(x)), vectorized=True), match="raised ValueError")


def test_infinite_values_are_caught() -> None:
    def inverse(x: Any, y: Any) -> Any:
        with np.errstate(divide="ignore"):
            return 1.0 / np.abs(x - y)

    broken("finite values", vectorized(inverse), match="the value for points 0 and 0 is inf")


def test_an_asymmetric_kernel_is_caught() -> None:
    broken("symmetry", vectorized(lambda x, y: np.exp(-((x - 2.0 * y) ** 2))), match="they differ by")


@pytest.mark.parametrize("declared", [True, None])
def test_an_indefinite_kernel_is_caught(declared: bool | None) -> None:
    kernel = vectorized(lambda x, y: 1.0 * (np.abs(x - y) < 1.0), positive_definite=declared)
    claim = "though guarantees say that it is positive definite" if declared else "allowed; an indefinite"
    broken("positive definiteness", kernel, match=claim)


def test_an_indefinite_kernel_that_says_so_is_not_refused() -> None:
    kernel = vectorized(lambda x, y: 1.0 * (np.abs(x - y) < 1.0), positive_definite=False)
    report = check_kernel(kernel, FAMILIES["Samples"][0])
    assert report.skipped == {
        "positive definiteness": "guarantees say that the kernel is not positive definite"
    }


def test_a_kernel_that_is_positive_definite_at_points_only_is_caught() -> None:
    # A registered closed form can be wrong where values at points are right.
    @dataclass(frozen=True)
    class Off(Radial):
        def radial(self, ops: Any, squared: Any) -> Any:
            return ops.exp(-0.5 * squared)

    with registered(Off, lambda ops, k, a, b: -1.0 / (1.0 + (a.x[0] - b.x[0]) ** 2)):
        broken("positive definiteness", Off(), match="pairings of 6 predictions")


@contextmanager
def registered(kernel: type[kernels.Kernel], form: Function[..., Any]) -> Iterator[None]:
    """A closed form for normals that is forgotten afterwards."""
    with CLOSED_FORMS.restored():
        rule(kernel, Normals, Points)(form)
        rule(kernel, Normals, Normals)(form)
        yield


def test_targets_that_the_kernel_does_not_see_as_they_are_are_caught() -> None:
    class Doubled(Logistic):
        def check_targets(self, y: object, name: str = "y") -> Any:
            return 2.0 * super().check_targets(y, name)

    broken("point masses", Gaussian(), Doubled(LOC, SCALE), match="the pairing of two targets is")


def test_a_kernel_that_is_wrong_in_large_batches_only_is_caught() -> None:
    def chunked(x: Any, y: Any) -> Any:
        values = np.exp(-0.5 * (x - y) ** 2)
        values[500:] = 0.0  # as if the last chunk were forgotten
        return values

    broken("linearity", vectorized(chunked), match="the pairing with a mixture is .* the weighted sum")


def test_a_wrong_closed_form_is_caught() -> None:
    @dataclass(frozen=True)
    class Rescaled(Radial):
        def radial(self, ops: Any, squared: Any) -> Any:
            return ops.exp(-0.5 * squared)

    def right(ops: Any, kernel: Any, a: Any, b: Any) -> Any:
        variance = 1.0 + a.v[0] + (b.v[0] if isinstance(b, Normals) else 0.0)
        return ops.exp(-0.5 * (a.x[0] - b.x[0]) ** 2 / variance) / ops.sqrt(variance)

    with registered(Rescaled, right):
        assert not check_kernel(Rescaled(), NORMAL).skipped
    with registered(Rescaled, lambda *given: 0.8 * right(*given)):
        broken(
            "simulation", Rescaled(), match=r"the pairing of predictions 0 and 0 is .* draws from each give"
        )


def test_guarantees_that_do_not_answer_are_caught() -> None:
    @dataclass(frozen=True)
    class Boastful(Gaussian):
        def guarantees(self, predictions: wc.Predictions) -> Any:
            return kernels.Guarantees(True, "surely", True)  # pyright: ignore

    @dataclass(frozen=True)
    class Silent(Gaussian):
        def guarantees(self, predictions: wc.Predictions) -> Any:
            return type("Nothing", (), {"positive_definite": True})()

    broken("guarantees", Boastful(), match="characteristic='surely': it must be")
    broken("guarantees", Silent(), match="guarantees returned")


def on_predictions(function: Function[[Any, Any], Any], **declared: Any) -> kernels.Kernel:
    """A kernel on pairs whose left factor is a function of two batches of normals."""
    return Callable(lambda P, Q: function(P.loc[:, None], Q.loc[None, :]), **declared) @ Gaussian()


def test_broken_kernels_on_predictions_are_caught() -> None:
    side = "of the predictions"
    broken(f"symmetry {side}", on_predictions(lambda x, y: np.exp(-((x - 2.0 * y) ** 2))))
    indefinite = on_predictions(lambda x, y: 1.0 * (np.abs(x - y) < 1.0), positive_definite=True)
    broken(f"positive definiteness {side}", indefinite, match="the matrix of 12 predictions")
    broken(f"finite values {side}", on_predictions(lambda x, y: np.full(np.broadcast(x, y).shape, np.nan)))
    relative = on_predictions(lambda x, y: np.exp(-np.abs(x - y) / (1 + np.ptp(x))))
    broken(f"pointwise {side}", relative, match="a value among few predictions is")


def test_broken_factors_on_targets_are_caught() -> None:
    kernel = ExpDistance(Wasserstein()) @ vectorized(lambda x, y: np.exp(-((x - 2.0 * y) ** 2)))
    broken("symmetry of the targets", kernel)
    broken("symmetry of the targets", kernels.paper_kernel + 2.0 * kernel)


def joint(function: Function[[Any, Any, Any, Any], Any], **declared: Any) -> Joint:
    """A kernel on pairs from a function of class probabilities (n, 1, C), (1, m, C) and labels."""
    return Joint(
        lambda P, y, Q, z: function(P.probs[:, None], y[:, None], Q.probs[None, :], z[None, :]), **declared
    )


def test_broken_joint_kernels_are_caught() -> None:
    def valid(p: Any, y: Any, q: Any, z: Any) -> Any:
        return np.exp(-np.abs(p - q).sum(-1)) * (y == z)

    assert not check_kernel(joint(valid), CATEGORICAL, draws=400).skipped
    skew = joint(lambda p, y, q, z: valid(p, y, q, z) * (1.0 + p[..., 0]))
    broken("symmetry", skew, CATEGORICAL)
    indefinite = joint(lambda p, y, q, z: -valid(p, y, q, z), positive_definite=True)
    broken("positive definiteness", indefinite, CATEGORICAL, match="h between 12 cases")
    holes = joint(lambda p, y, q, z: np.where(y > 1, np.nan, valid(p, y, q, z)))
    broken("finite values", holes, CATEGORICAL, match="the value for cases")
    # The four terms of h are sums over a batch: a function that looks at it is none of pairs.
    relative = joint(lambda p, y, q, z: valid(p, y, q, z) / (1.0 + len(y)))
    broken("simulation", relative, CATEGORICAL, match=r"h between predictions \d and \d is")


# -- broken families ---------------------------------------------------------------------------------------


@family
class Logistic(wc.Predictions):
    """A user's family, without a mistake: those below make one each."""

    loc: Any = parameter()
    scale: Any = parameter(positive)

    def mean(self) -> Any:
        return self.loc

    def variance(self) -> Any:
        return (np.pi * self.scale) ** 2 / 3.0

    def cdf(self, y: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-(y - self.loc) / self.scale))

    def quantile(self, u: Any) -> Any:
        with np.errstate(divide="ignore"):
            return self.loc + self.scale * (np.log(u) - np.log1p(-u))

    def log_prob(self, y: Any) -> Any:
        z = np.abs(y - self.loc) / self.scale
        return -z - 2.0 * np.log1p(np.exp(-z)) - np.log(self.scale)

    def draw(self, rng: np.random.Generator, size: int) -> Any:
        return rng.logistic(self.loc, self.scale, (size, len(self)))


@family
class Drawn(wc.Predictions):
    """A user's family of vectors that can only be sampled."""

    loc: Any = parameter(ndim=2)

    @property
    def event_shape(self) -> tuple[int, ...]:
        return (3,)

    def interquartile_range(self) -> Any:
        return np.ones_like(self.loc)

    def draw(self, rng: np.random.Generator, size: int) -> Any:
        return rng.uniform(-1.0, 1.0, (size, len(self), 3)) + self.loc


@dataclass(frozen=True, repr=False, eq=False)
class Geometric(wc.Predictions):
    """A user's family of counts 1, 2, ..."""

    p: Any
    array_fields: ClassVar[tuple[str, ...]] = ("p",)
    continuous: ClassVar[bool] = False

    def mean(self) -> Any:
        return 1.0 / self.p

    def variance(self) -> Any:
        return (1.0 - self.p) / self.p**2

    def log_prob(self, y: Any) -> Any:
        possible = (y >= 1) & (np.floor(y) == y)
        return np.where(
            possible, np.log(self.p) + (np.where(possible, y, 1.0) - 1.0) * np.log1p(-self.p), -np.inf
        )

    def cdf(self, y: Any) -> Any:
        return -np.expm1(np.maximum(np.floor(y), 0.0) * np.log1p(-self.p))

    def quantile(self, u: Any) -> Any:
        with np.errstate(divide="ignore"):
            count = np.maximum(np.ceil(np.log1p(-np.asarray(u)) / np.log1p(-self.p)), 1.0)
        return np.where((count > 1) & (self.cdf(count - 1.0) >= u), count - 1.0, count)

    def draw(self, rng: np.random.Generator, size: int) -> Any:
        return rng.geometric(self.p, (size, len(self))).astype(float)


def test_users_own_families_conform() -> None:
    assert not check_predictions(Logistic(LOC, SCALE)).skipped
    assert not check_predictions(Geometric(RNG.uniform(0.2, 0.8, N))).skipped
    assert set(check_predictions(Drawn(LOCS)).skipped) == VECTORS | {"moments"}
    assert not check_kernel(ExpDistance(Wasserstein()) @ Gaussian(), Logistic(LOC, SCALE)).skipped


def caught(law: str, pred: wc.Predictions, match: str = "", **options: Any) -> None:
    with pytest.raises(ConformanceError, match=match) as error:
        check_predictions(pred, **options)
    assert error.value.law == law


def changed(base: type[Any] = Logistic, **members: Any) -> Any:
    """A family with one member replaced."""
    family = type("Changed", (base,), members)
    if base is Geometric:
        return family(np.linspace(0.2, 0.8, N))
    return family(LOCS) if base is Drawn else family(LOC, SCALE)


def test_forgotten_arrays_are_caught() -> None:
    caught("indexing", changed(array_fields=("loc",)), match="raised ValueError")


def test_wrong_rows_are_caught() -> None:
    def wrong_rows(self: Any, index: Any) -> Any:
        rows = np.atleast_1d(np.arange(len(self))[index])
        return type(self)(self.loc[rows], self.scale[np.sort(rows)])

    caught("indexing", changed(__getitem__=wrong_rows), match=r"variance of \[slice\(None, None, -1\)\] is")
    short = changed(__getitem__=lambda self, index: type(self)(self.loc[:1], self.scale[:1]))
    caught("indexing", short, match=r"\[slice\(None, None, None\)\] of .* expected 12 predictions")
    other = changed(__getitem__=lambda self, index: Logistic(self.loc[index], self.scale[index]))
    caught("indexing", other, match="predictions of the same type")


def test_draws_that_do_not_follow_their_rows_are_caught() -> None:
    def by_position(self: Any, rng: np.random.Generator, size: int) -> Any:
        return rng.uniform(size=(size, len(self), 3)) + np.arange(len(self))[:, None]

    caught("indexing", changed(Drawn, draw=by_position), match="draws of rows reversed")


def test_iteration_by_other_steps_is_caught() -> None:
    caught("indexing", changed(__iter__=lambda self: iter([self])), match="iteration")


def test_batches_that_cannot_be_remembered_are_caught() -> None:
    @dataclass(frozen=True)
    class Comparable(Logistic):
        pass

    caught("indexing", Comparable(LOC, SCALE), match="unhashable")


def test_one_prediction_is_not_enough() -> None:
    caught("indexing", NORMAL[:1], match="at least two predictions are needed")


def test_wrong_shapes_of_draws_are_caught() -> None:
    def transposed(self: Any, rng: Any = None, size: Any = None) -> Any:
        return wc.Predictions.sample(self, rng, size).T

    caught("sampling", changed(sample=transposed), match=r"shape \(12, 64\), expected \(64, 12\)")


def test_draws_with_a_memory_are_caught() -> None:
    own = np.random.default_rng(5)
    forgetful = changed(draw=lambda self, rng, size: own.logistic(self.loc, self.scale, (size, len(self))))
    caught("sampling", forgetful, match="seed 1 gave .* and then .* at index")


def test_draws_that_ignore_the_seed_are_caught() -> None:
    def fixed(self: Any, rng: Any, size: int) -> Any:
        return np.random.default_rng(5).logistic(self.loc, self.scale, (size, len(self)))

    caught("sampling", changed(draw=fixed), match="seeds 1 and 2 gave the same draws")


def test_draws_that_are_not_finite_are_caught() -> None:
    def holes(self: Any, rng: np.random.Generator, size: int) -> Any:
        drawn = rng.logistic(self.loc, self.scale, (size, len(self)))
        return np.where(np.arange(size)[:, None] == 7, np.inf, drawn)

    caught("sampling", changed(draw=holes, interquartile_range=lambda self: self.scale), match="not finite")


def test_noise_that_predictions_share_is_caught() -> None:
    def shared(self: Any, rng: np.random.Generator, size: int) -> Any:
        return self.loc + self.scale * rng.logistic(size=(size, 1))

    caught("independence", changed(draw=shared), match="draws of neighbouring predictions from 0")


def test_draws_that_depend_on_their_predecessors_are_caught() -> None:
    def antithetic(self: Any, rng: np.random.Generator, size: int) -> Any:
        noise = rng.logistic(size=((size + 1) // 2, len(self)))
        return self.loc + self.scale * np.stack([noise, -noise], axis=1).reshape(-1, len(self))[:size]

    caught("independence", changed(draw=antithetic), match="successive draws of prediction 0")


def test_targets_that_are_refused_or_taken_wrongly_are_caught() -> None:
    def picky(self: Any, y: Any, name: str = "y") -> Any:
        if np.any(np.asarray(y) < 0):
            raise ValueError(f"{name} must not be negative")
        return y

    def reals(self: Any, y: Any, name: str = "y") -> Any:
        if len(y) != len(self) or np.ndim(y) != 1:
            raise ValueError("wrong shape")
        return y

    def any_shape(self: Any, y: Any, name: str = "y") -> Any:
        if len(y) != len(self):
            raise ValueError("wrong length")
        return y

    caught("targets", changed(check_targets=picky), match="raised ValueError: y must not be negative")
    caught("targets", changed(check_targets=lambda self, y, name="y": y[:3]), match="gave 3 targets for 12")
    caught("targets", changed(check_targets=lambda self, y, name="y": y), match="took one target too few")
    caught("targets", changed(check_targets=any_shape), match=r"took targets of shape \(12, 1\)")
    caught("targets", changed(check_targets=reals), match="took a target that is not a number")


def test_wrong_moments_are_caught() -> None:
    caught("moments", changed(mean=lambda self: self.loc + 0.3), match="the mean is .* at index")
    caught("moments", changed(variance=lambda self: self.scale**2), match="the variance is .* at index")


def test_a_quantile_that_is_no_inverse_is_caught() -> None:
    shifted = changed(quantile=lambda self, u: Logistic.quantile(self, u) + 0.01)
    caught("inverse", shifted, match=r"quantile\(0.001\) of prediction 0 is .*, but cdf goes from")
    falling = changed(quantile=lambda self, u: Logistic.quantile(self, 1.0 - u))
    caught("inverse", falling, match="quantile falls between levels 0.001 and 0.05 of prediction 0")
    late = changed(Geometric, quantile=lambda self, u: Geometric.quantile(self, u) + 1.0)
    caught("inverse", late, match="of prediction 0 is")


def test_a_cdf_of_another_distribution_is_caught() -> None:
    def cdf(self: Any, y: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-(y - self.loc) / (1.3 * self.scale)))

    def quantile(self: Any, u: Any) -> Any:
        with np.errstate(divide="ignore"):
            return self.loc + 1.3 * self.scale * (np.log(u) - np.log1p(-u))

    law = "probability integral transform"
    caught(law, changed(cdf=cdf, quantile=quantile), match="prediction 0 is not uniform")
    above_one = changed(cdf=lambda self, y: 1.1 * Logistic.cdf(self, y), quantile=None)
    caught(law, above_one, match=r"it must rise within \[0, 1\]")
    counts = changed(Geometric, cdf=lambda self, y: Geometric.cdf(self, y - 1.0), quantile=None)
    caught(law, counts, match="is not uniform", kernel=ExpDistance(Wasserstein()) @ Gaussian())


def test_wrong_densities_are_caught() -> None:
    def unnormalised(self: Any, y: Any) -> Any:
        return Logistic.log_prob(self, y) + np.log(self.scale) * (self.scale > 1.0)

    def moved(self: Any, y: Any) -> Any:
        return Logistic.log_prob(self, y - 0.1)

    caught("density", changed(log_prob=unnormalised), match="the integral of the density is .* at index")
    caught("density", changed(log_prob=moved), match="between two quantiles is .* but that of cdf is")
    caught(
        "density",
        changed(log_prob=unnormalised, quantile=None, cdf=None),
        match="integral of the density",
    )
    flat = changed(log_prob=lambda self, y: Logistic.log_prob(self, y) if np.ndim(y) == 1 else 0.0 * self.loc)
    caught("density", flat, match=r"log_prob has shape \(8,\) for targets of shape \(97, 8\)")


def test_wrong_probabilities_are_caught() -> None:
    too_many = changed(Geometric, log_prob=lambda self, y: Geometric.log_prob(self, y) + 0.1)
    caught("density", too_many, match="probabilities of prediction 0 sum to 1.1")
    late = changed(Geometric, log_prob=lambda self, y: Geometric.log_prob(self, y - 1.0))
    caught("density", late, match="the frequency among 4000 draws, by value and prediction, is")


def test_draws_from_another_distribution_are_caught_without_a_cdf() -> None:
    def wide(self: Any, rng: np.random.Generator, size: int) -> Any:
        return rng.logistic(self.loc, 1.5 * self.scale, (size, len(self)))

    absent = dict.fromkeys(("cdf", "log_prob", "mean", "variance"))
    caught("expectations", changed(draw=wide, **absent), match="the pairing of predictions 0 and 0 is")


def test_families_without_a_default_kernel_are_caught() -> None:
    nothing = changed(Drawn, interquartile_range=wc.Predictions.interquartile_range)
    caught("expectations", nothing, match="has no interquartile range")
    report = check_predictions(nothing, kernel=ExpDistance(MaximumMeanDiscrepancy(Gaussian())) @ Gaussian())
    assert "calibration error" in report.passed


def test_impossible_calibration_errors_are_caught() -> None:
    undefined = joint(lambda p, y, q, z: np.where((y == z) & (y == 0), np.nan, 1.0))
    caught("calibration error", CATEGORICAL, match="the unbiased SKCE is nan", kernel=undefined)
    negative = joint(lambda p, y, q, z: -1.0 * (y == z), positive_definite=True)
    caught("calibration error", CATEGORICAL, match="the biased SKCE is negative", kernel=negative)


def test_errors_of_methods_are_not_taken_for_absence() -> None:
    def buggy(self: Any) -> Any:
        raise TypeError("unsupported operand type(s) for +: 'int' and 'str'")

    caught("indexing", changed(mean=buggy), match="raised TypeError: unsupported operand")
    assert not check_predictions(changed(variance=None)).skipped


def test_methods_of_some_batches_only() -> None:
    def missing(self: Any, what: str) -> str | None:
        return "its shape is too small" if what == "mean" else wc.Predictions.missing(self, what)

    def refused(self: Any) -> Any:
        raise TypeError("its shape is too small")

    assert not check_predictions(changed(mean=refused, missing=missing)).skipped
    caught("indexing", changed(mean=refused), match="raised TypeError: its shape is too small")


# -- reports -----------------------------------------------------------------------------------------------


def test_reports_are_readable() -> None:
    report = check_predictions(Drawn(LOCS))
    assert isinstance(report, Report)
    lines = str(report).splitlines()
    assert lines[0] == "Drawn: 6 laws hold"
    assert "  holds: expectations" in lines
    assert "  not applicable: inverse (targets are vectors)" in lines
    with pytest.raises(AttributeError):
        report.subject = "other"  # type: ignore[misc]


def test_errors_say_law_place_and_size() -> None:
    kernel = vectorized(lambda x, y: np.exp(-((x - 2.0 * y) ** 2)))
    with pytest.raises(ConformanceError) as error:
        check_kernel(kernel, NORMAL)
    message = str(error.value)
    assert message.startswith("symmetry: the value for two points is ")
    assert "they differ by" in message
    assert message.endswith("[Callable(<lambda>) with Normal]")
    assert isinstance(error.value, AssertionError)
    assert str(pickle.loads(pickle.dumps(error.value))) == message


def test_results_do_not_depend_on_when_they_are_asked_for() -> None:
    first, second = (check_predictions(NORMAL, rng=3, draws=200) for _ in range(2))
    assert first == second
