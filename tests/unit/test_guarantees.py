"""What is said to be proven about kernels, family by family, and that it is true."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal import kernels as k
from wellcal.expectations.distances import distance
from wellcal.expectations.prediction_kernels import prediction_kernel
from wellcal.kernels.guarantees import covariances_commute
from wellcal.problem.defaults import default_kernel

N = 6
RNG = np.random.default_rng(0)
LOC, SCALE = RNG.normal(size=N), RNG.uniform(0.5, 2.0, N)
VECTORS, SPREADS = RNG.normal(size=(N, 2)), RNG.uniform(0.5, 2.0, (N, 2))
ROOTS = RNG.normal(size=(N, 2, 2))
COV = ROOTS @ np.swapaxes(ROOTS, 1, 2) + 0.1 * np.eye(2)
PROBS = RNG.dirichlet(np.ones(3), N)

FAMILIES: dict[str, Any] = {
    "Bernoulli": wc.Bernoulli(PROBS[:, 0]),
    "Categorical": wc.Categorical(PROBS),
    "Categorical classes": wc.Categorical(PROBS, classes=["a", "b", "c"]),
    "Categorical support": wc.Categorical(PROBS, support=[1.0, 2.0, 5.0]),
    "Categorical vectors": wc.Categorical(PROBS, support=[[0.0, 1.0], [2.0, 1.0], [5.0, 0.0]]),
    "Normal": wc.Normal(LOC, SCALE),
    "DiagonalNormal": wc.DiagonalNormal(VECTORS, SPREADS),
    "MultivariateNormal": wc.MultivariateNormal(VECTORS, COV),
    "Laplace": wc.Laplace(LOC, SCALE),
    "Poisson": wc.Poisson(SCALE),
    "NegativeBinomial": wc.NegativeBinomial(SCALE, 0.5),
    "StudentT": wc.StudentT(np.full(N, 4.0), LOC, SCALE),
    "Gamma": wc.Gamma(SCALE, SCALE),
    "LogNormal": wc.LogNormal(LOC, SCALE),
    "Beta": wc.Beta(SCALE, SCALE),
    "Dirichlet": wc.Dirichlet(PROBS + 1.0),
    "PowerExponential": wc.PowerExponential(LOC, SCALE, np.full(N, 1.5)),
    "PowerExponential vectors": wc.PowerExponential(VECTORS, shape=np.full(N, 1.5), cov=COV),
    "Mixture": wc.Mixture([wc.Normal(LOC, SCALE), wc.Laplace(LOC, SCALE)]),
    "Mixture Laplace": wc.Mixture([wc.Laplace(LOC, SCALE), wc.Laplace(-LOC, SCALE)]),
    "Mixture vectors": wc.Mixture([wc.MultivariateNormal(VECTORS, COV), wc.DiagonalNormal(VECTORS, SPREADS)]),
    "Mixture classes": wc.Mixture([wc.Categorical(PROBS), wc.Categorical(PROBS[::-1])]),
    "Mixture counts": wc.Mixture([wc.Poisson(SCALE), wc.NegativeBinomial(SCALE, 0.5)]),
    "Samples": wc.Samples(RNG.normal(size=(N, 5))),
    "Samples atoms": wc.Samples(RNG.normal(size=(N, 3)), weights=PROBS, kind="atoms"),
    "Samples vectors": wc.Samples(RNG.normal(size=(N, 5, 2))),
    "Quantiles": wc.Quantiles([0.2, 0.5, 0.8], np.sort(RNG.normal(size=(N, 3)), axis=1)),
}
FAMILY = pytest.mark.parametrize("name", FAMILIES)
EVERY_TARGET_KERNEL = [k.Gaussian(), k.Laplacian(), k.Matern(1.5), k.Matern(0.8), k.RationalQuadratic()]
EVERY_METRIC: list[k.Metric] = [
    k.Euclidean(),
    k.TotalVariation(),
    k.Hellinger(),
    k.Wasserstein(),
    k.Wasserstein(1),
    k.RootCovariance(),
    k.MixtureWasserstein(),
    k.MaximumMeanDiscrepancy(k.Gaussian()),
]


def smallest_eigenvalue(kernel: k.Kernel, predictions: Any) -> float:
    form, rows = prediction_kernel(kernel, predictions)
    gram = np.asarray(form(predictions.ops, rows, rows))
    return float(np.linalg.eigvalsh(0.5 * (gram + gram.T))[0])


# -- defaults ----------------------------------------------------------------------------------------------


@FAMILY
def test_default_kernels_are_proven(name: str) -> None:
    predictions = FAMILIES[name]
    kernel = default_kernel(predictions)
    found = kernel.guarantees(predictions)
    assert found.positive_definite is True
    assert found.characteristic is True
    assert found.bounded is True
    assert found.reasons
    assert "proven" in str(found)
    assert "not known" not in str(found).split("\n  -")[0]
    assert smallest_eigenvalue(kernel.predictions, predictions) > -1e-12


def test_default_kernels_are_those_of_the_table() -> None:
    def kind(name: str) -> tuple[type, float, type]:
        kernel: Any = default_kernel(FAMILIES[name])
        assert isinstance(kernel, k.Tensor)
        assert isinstance(kernel.predictions, k.ExpDistance)
        return type(kernel.predictions.metric), kernel.predictions.power, type(kernel.targets)

    expected = {
        "Bernoulli": (k.TotalVariation, 1.0, k.Delta),
        "Categorical": (k.TotalVariation, 1.0, k.Delta),
        "Categorical classes": (k.TotalVariation, 1.0, k.Delta),
        "Categorical support": (k.TotalVariation, 1.0, k.Gaussian),
        "Categorical vectors": (k.TotalVariation, 1.0, k.Gaussian),
        "Normal": (k.Wasserstein, 1.0, k.Gaussian),
        "DiagonalNormal": (k.Wasserstein, 1.0, k.Gaussian),
        "Laplace": (k.Wasserstein, 1.0, k.Laplacian),
        "MultivariateNormal": (k.RootCovariance, 1.0, k.Gaussian),
        "Quantiles": (k.Wasserstein, 1.0, k.Delta),
    }
    for name, wanted in expected.items():
        assert kind(name) == wanted, name
    for name in set(FAMILIES) - set(expected) - {"Mixture Laplace", "Mixture classes"}:
        assert kind(name) == (k.MaximumMeanDiscrepancy, 2.0, k.Gaussian), name
    assert kind("Mixture Laplace") == (k.MaximumMeanDiscrepancy, 2.0, k.Laplacian)
    assert kind("Mixture classes") == (k.MaximumMeanDiscrepancy, 2.0, k.Delta)
    shared: Any = default_kernel(FAMILIES["Samples"])
    assert shared.predictions.metric.kernel == shared.targets


def test_default_scales_are_those_of_the_table() -> None:
    """Median distance between predictions; median interquartile range, times sqrt(d)."""
    kernel: Any = default_kernel(wc.Normal(LOC, SCALE))
    form, rows = distance(k.Wasserstein(), wc.Normal(LOC, SCALE))
    table = form(wc.Normal(LOC, SCALE).ops, rows, rows) ** 0.5
    assert kernel.predictions.lengthscale == pytest.approx(np.median(table[np.triu_indices(N, 1)]), rel=1e-14)
    assert kernel.targets.lengthscale == pytest.approx(1.3489795003921634 * np.median(SCALE), rel=1e-14)
    vectors: Any = default_kernel(wc.DiagonalNormal(np.zeros((4, 9)), np.ones((4, 9))))
    assert vectors.targets.lengthscale == pytest.approx(3 * 1.3489795003921634, rel=1e-14)
    assert vectors.predictions.lengthscale == 1.0  # all predictions are equal
    assert default_kernel(wc.Normal([0.0], [1.0])).predictions.lengthscale == 1.0


def test_default_scales_above_two_thousand_predictions() -> None:
    """A subsample with a fixed seed: the same every time, and near that of all."""
    rng = np.random.default_rng(1)
    P = wc.Normal(rng.normal(size=5000), rng.uniform(0.5, 2.0, 5000))
    first, again = default_kernel(P), default_kernel(P)
    assert first == again
    exact = np.median(1.3489795003921634 * P.scale)
    assert first.targets.lengthscale == pytest.approx(exact, rel=0.05)
    assert first.targets.lengthscale != exact


# -- kernels on targets ------------------------------------------------------------------------------------


@FAMILY
@pytest.mark.parametrize("kernel", EVERY_TARGET_KERNEL, ids=repr)
def test_radial_kernels_are_universal_where_targets_are_numbers(name: str, kernel: k.Kernel) -> None:
    """On R^d, and so on every closed subset: counts, simplices, supports."""
    found = kernel.guarantees(FAMILIES[name])
    labels = name == "Categorical classes"
    assert found.positive_definite is (None if labels else True)
    assert found.characteristic is (None if labels else True)
    assert found.bounded is True


def test_radial_kernels_need_numbers() -> None:
    for predictions in (
        wc.Samples([["a", "b"]]),
        wc.Mixture([wc.Categorical(PROBS, classes=["a", "b", "c"])] * 2),
    ):
        found = k.Gaussian().guarantees(predictions)
        assert found.positive_definite is None
        assert "numeric" in str(found)


@FAMILY
def test_delta_tells_countable_targets_apart_and_no_densities(name: str) -> None:
    found = k.Delta().guarantees(FAMILIES[name])
    countable = {"Bernoulli", "Poisson", "NegativeBinomial", "Quantiles", "Mixture classes", "Mixture counts"}
    assert found.positive_definite is True
    if name in countable or name.startswith("Categorical"):
        assert found.characteristic is True
    elif name.startswith("Samples"):
        assert found.characteristic is not True
    else:
        assert found.characteristic is False
        assert (k.ExpDistance(k.MaximumMeanDiscrepancy(k.Gaussian())) @ k.Delta()).guarantees(
            FAMILIES[name]
        ).characteristic is False


def test_delta_on_a_mixture_with_a_density() -> None:
    found = k.Delta().guarantees(wc.Mixture([wc.Poisson(SCALE), wc.Normal(LOC, SCALE)]))
    assert found.characteristic is False


# -- sums and products -------------------------------------------------------------------------------------


def test_sums() -> None:
    P = FAMILIES["Normal"]
    unknown = k.Callable(lambda x, y: 1.0)
    constant = k.Callable(lambda x, y: 1.0, positive_definite=True, characteristic=False, bounded=True)
    found = (k.Gaussian() + constant).guarantees(P)
    assert (found.positive_definite, found.characteristic, found.bounded) == (True, True, True)
    found = (k.Gaussian() + unknown).guarantees(P)
    assert (found.positive_definite, found.characteristic, found.bounded) == (None, None, None)
    # Two kernels that are each blind to something need not be blind to the same: indicators of sets, say.
    assert (constant + constant).guarantees(P).characteristic is not True
    assert (k.Delta() + k.Gaussian()).guarantees(P).characteristic is True


def test_sum_of_two_blind_kernels_can_see() -> None:
    """On three classes: projections on two coordinates of the simplex, blind each, together injective."""
    P = FAMILIES["Categorical"]
    parts = [
        k.Callable(lambda x, y, c=c: float(x == c and y == c), positive_definite=True, characteristic=False)
        for c in (0, 1)
    ]
    together = (parts[0] + parts[1])(np.arange(3.0), np.arange(3.0))
    difference = np.array([0.2, 0.3, -0.5])
    assert difference @ together @ difference > 0
    assert (parts[0] + parts[1]).guarantees(P).characteristic is not False


def test_products() -> None:
    P = FAMILIES["Normal"]
    found = (k.Gaussian() * k.Laplacian()).guarantees(P)
    assert (found.positive_definite, found.characteristic, found.bounded) == (True, True, True)
    declared = k.Callable(lambda x, y: 1.0, positive_definite=True, characteristic=True, bounded=True)
    found = (k.Gaussian() * declared).guarantees(P)
    assert (found.positive_definite, found.characteristic, found.bounded) == (True, None, True)


def test_multiples_change_nothing() -> None:
    for name, predictions in FAMILIES.items():
        kernel = default_kernel(predictions)
        assert (3.0 * kernel).guarantees(predictions).characteristic is True, name


# -- metrics -----------------------------------------------------------------------------------------------


@FAMILY
@pytest.mark.parametrize("metric", EVERY_METRIC, ids=repr)
def test_what_is_proven_can_be_evaluated_and_has_no_negative_eigenvalue(name: str, metric: k.Metric) -> None:
    predictions = FAMILIES[name]
    powers = [power for power in (0.5, 1.0, 2.0) if power <= metric.max_power]
    statements = [k.ExpDistance(metric, power=power).guarantees(predictions) for power in powers]
    assert all(found.reasons for found in statements)
    try:
        form, rows = distance(metric, predictions)
    except (TypeError, ValueError):
        for found in statements:
            assert found.positive_definite is not True, "proven of nothing"
            assert found.characteristic is None
        return
    table = np.asarray(form(predictions.ops, rows, rows)) ** (1.0 / form.degree)
    for power, found in zip(powers, statements, strict=True):
        expected: bool | None = True
        if isinstance(metric, k.MixtureWasserstein) and isinstance(predictions, wc.Mixture):
            expected = found.positive_definite if found.positive_definite is not True else False
        elif isinstance(metric, (k.Wasserstein, k.MixtureWasserstein)) and name == "MultivariateNormal":
            expected = False
        assert found.positive_definite is expected
        if found.positive_definite:
            for lengthscale in (0.2, 1.0, 5.0):
                gram = np.exp(-((table / lengthscale) ** power))
                assert np.linalg.eigvalsh(0.5 * (gram + gram.T))[0] > -1e-10


def test_powers_below_two_are_universal_too() -> None:
    """exp(-r^p) is a mixture of Gaussian kernels for every 0 < p < 2: nothing is lost with p = 1."""
    for power in (0.5, 1.0, 1.9, 2.0):
        kernel = k.ExpDistance(k.MaximumMeanDiscrepancy(k.Gaussian()), power=power) @ k.Gaussian()
        for name in ("Mixture", "Samples", "Gamma"):
            assert kernel.guarantees(FAMILIES[name]).characteristic is not False
    kernel = k.ExpDistance(k.MaximumMeanDiscrepancy(k.Gaussian()), power=2) @ k.Gaussian()
    assert kernel.guarantees(FAMILIES["Mixture"]).characteristic is True


def test_discrepancy_of_a_blind_kernel() -> None:
    """All normals have the same embedding under Delta: the metric tells nothing apart."""
    kernel = k.ExpDistance(k.MaximumMeanDiscrepancy(k.Delta()), power=2)
    assert kernel.guarantees(FAMILIES["Normal"]).characteristic is not True
    unknown = k.ExpDistance(k.MaximumMeanDiscrepancy(k.Callable(lambda x, y: 1.0)), power=2)
    found = unknown.guarantees(FAMILIES["Samples"])
    assert (found.positive_definite, found.characteristic) == (None, None)


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("power", [1.0, 2.0])
def test_mixture_wasserstein_is_refuted_and_rightly(order: float, power: float) -> None:
    metric = k.MixtureWasserstein(order)
    kernel = k.ExpDistance(metric, power=power) @ k.Gaussian()
    for predictions in (FAMILIES["Mixture vectors"], wc.Mixture([wc.Normal(LOC, SCALE)] * 2)):
        found = kernel.guarantees(predictions)
        assert found.positive_definite is False
        assert "not Hilbertian" in str(found)
    # Points of the (loc, scale) half plane on a grid: scalar normals are enough.
    grid = np.array(list(itertools.product(range(3), range(1, 4))), dtype=float)
    pairs = np.array(list(itertools.combinations_with_replacement(range(9), 2)))
    P = wc.Mixture([wc.Normal(*grid[pairs[:, c]].T) for c in (0, 1)])
    smallest = min(
        smallest_eigenvalue(k.ExpDistance(metric, lengthscale=s, power=power), P)
        for s in (2.0, 4.0, 8.0, 16.0)
    )
    assert smallest < -1e-3


def test_mixture_wasserstein_of_single_predictions_is_its_metric() -> None:
    for predictions in (FAMILIES["Normal"], wc.Mixture([FAMILIES["Normal"]])):
        assert k.ExpDistance(k.MixtureWasserstein()).guarantees(predictions).positive_definite is True


def test_wasserstein_between_full_covariances() -> None:
    kernel = k.ExpDistance(k.Wasserstein()) @ k.Gaussian()
    found = kernel.guarantees(FAMILIES["MultivariateNormal"])
    assert found.positive_definite is False
    assert "RootCovariance" in str(found)
    commuting = wc.MultivariateNormal(VECTORS, SCALE[:, None, None] * COV[:1])
    found = kernel.guarantees(commuting)
    assert (found.positive_definite, found.characteristic) == (True, True)
    found = (k.ExpDistance(k.RootCovariance()) @ k.Gaussian()).guarantees(FAMILIES["MultivariateNormal"])
    assert (found.positive_definite, found.characteristic) == (True, True)


def test_covariances_commute() -> None:
    rotation = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    together = np.stack([rotation @ np.diag(d) @ rotation.T for d in RNG.uniform(0.1, 5.0, (5, 3))])
    together = 0.5 * (together + np.swapaxes(together, 1, 2))
    assert covariances_commute(wc.MultivariateNormal(np.zeros((5, 3)), together))
    assert covariances_commute(wc.MultivariateNormal(np.zeros((2, 3)), np.stack([np.eye(3), together[0]])))
    moved = together.copy()
    moved[2] += 1e-4 * np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    assert not covariances_commute(wc.MultivariateNormal(np.zeros((5, 3)), moved))
    assert not covariances_commute(FAMILIES["MultivariateNormal"])


def test_wasserstein_of_vectors_is_not_claimed() -> None:
    """Between general distributions in the plane it is not Hilbertian, and it is not available."""
    for name in ("Samples vectors", "Mixture vectors", "Dirichlet", "Categorical vectors"):
        for order in (1, 2):
            found = k.ExpDistance(k.Wasserstein(order)).guarantees(FAMILIES[name])
            assert found.positive_definite is not True, name


# -- what a user brings ------------------------------------------------------------------------------------


def test_unknown_functions() -> None:
    P = FAMILIES["Normal"]
    found = (k.ExpDistance(k.Wasserstein()) @ k.Callable(lambda x, y: x * y)).guarantees(P)
    assert (found.positive_definite, found.characteristic, found.bounded) == (None, None, None)
    assert "(K2)" in str(found)
    assert "user's to check" in str(found)
    found = k.Joint(lambda P, y, Q, z: 1.0).guarantees(P)
    assert (found.positive_definite, found.characteristic, found.bounded) == (None, None, None)
    assert "(K2)" in str(found)


def test_declared_functions() -> None:
    P = FAMILIES["Normal"]
    linear = k.Callable(lambda x, y: x * y, positive_definite=True, characteristic=False, bounded=False)
    found = (k.ExpDistance(k.Wasserstein()) @ linear).guarantees(P)
    assert (found.positive_definite, found.characteristic, found.bounded) == (True, False, False)
    assert "(K2)" in str(found)
    assert "declared by the user" in str(found)
    bounded = k.Joint(
        lambda P, y, Q, z: 1.0, positive_definite=True, characteristic=True, bounded=True
    ).guarantees(P)
    assert (bounded.positive_definite, bounded.characteristic, bounded.bounded) == (True, True, True)
    assert "(K2)" not in str(bounded)


def test_characteristic_times_characteristic_is_not_enough() -> None:
    """Szabo and Sriperumbudur, Example 1: declared characteristic factors do not make their product so."""
    kernel = k.Callable(lambda x, y: 1.0, positive_definite=True, characteristic=True, bounded=True)
    found = (kernel @ k.Gaussian()).guarantees(FAMILIES["Normal"])
    assert found.characteristic is None
    assert "Szabo" in str(found)
    assert "Example 1" in str(found)


def test_szabo_example() -> None:
    """The example itself: k = 2 delta - 1 is characteristic on two points, its tensor square is not.

    It does not see constants, which probabilities never differ by; but on pairs the difference of two
    distributions can be a constant in one coordinate.
    """
    two_points = 2.0 * np.eye(2) - 1.0
    difference, constant = np.array([1.0, -1.0]), np.array([1.0, 1.0])
    assert difference @ two_points @ difference > 0
    on_pairs = np.kron(two_points, two_points)
    unseen = np.kron(difference, constant)
    assert unseen.sum() == 0
    assert unseen @ on_pairs @ unseen == 0


def test_own_radial_kernels_are_not_claimed() -> None:
    class Wave(k.Radial):
        def radial(self, ops: Any, squared: Any) -> Any:
            return 1.0 / (1.0 + squared)

    P = FAMILIES["Normal"]
    assert Wave().guarantees(P).positive_definite is None
    assert (k.ExpDistance(k.Wasserstein()) @ Wave()).guarantees(P).positive_definite is None
    assert (Wave() @ k.Gaussian()).guarantees(P).positive_definite is None
    assert ((Wave() + k.Gaussian()) @ k.Gaussian()).guarantees(P).positive_definite is None


def test_radial_kernels_on_parameters() -> None:
    for name in ("Normal", "Laplace", "DiagonalNormal", "Poisson", "Bernoulli"):
        found = (k.Gaussian() @ k.Gaussian()).guarantees(FAMILIES[name])
        assert (found.positive_definite, found.characteristic) == (True, True), name
    for name in ("Gamma", "Samples", "MultivariateNormal", "Mixture"):
        assert (k.Gaussian() @ k.Gaussian()).guarantees(FAMILIES[name]).characteristic is None, name


def test_draws_of_a_markov_chain_must_be_thinned() -> None:
    samples = FAMILIES["Samples"]
    assert samples.kind == "draws"
    assert "thin" in str(default_kernel(samples).guarantees(samples))
    assert str(default_kernel(samples).guarantees(samples)).count("thin") == 1
    atoms = FAMILIES["Samples atoms"]
    assert "thin" not in str(default_kernel(atoms).guarantees(atoms))
    mixture = wc.Mixture([samples, FAMILIES["Normal"]])
    assert "thin" in str(default_kernel(mixture).guarantees(mixture))
    assert "thin" in str(k.Joint(lambda P, y, Q, z: 1.0).guarantees(samples))


def test_printed() -> None:
    text = str(k.paper_kernel.guarantees(FAMILIES["Normal"]))
    assert text.splitlines()[:3] == ["positive definite: proven", "characteristic: proven", "bounded: proven"]
    assert math.isclose(text.count("\n  - "), len(k.paper_kernel.guarantees(FAMILIES["Normal"]).reasons))
