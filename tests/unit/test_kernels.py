"""Kernels as values: their algebra, their matrices, and their values against scikit-learn."""

from __future__ import annotations

import math
from typing import Any

import array_api_strict
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
import torch
from sklearn.gaussian_process import kernels as sklearn_kernels

import wellcal as wc
from wellcal import kernels as k
from wellcal._arrays.namespaces import namespace, to_numpy
from wellcal.kernels.base import space_of

X = np.random.default_rng(0).normal(size=(7, 3))
Y = np.random.default_rng(1).normal(size=(5, 3))
Y[0] = X[0]


# -- values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lengthscale", [0.05, 0.7, 30.0])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (k.Gaussian, lambda s: sklearn_kernels.RBF(s)),
        (k.Laplacian, lambda s: sklearn_kernels.Matern(s, nu=0.5)),
        *(
            (lambda s, nu=nu: k.Matern(nu, s), lambda s, nu=nu: sklearn_kernels.Matern(s, nu=nu))
            for nu in (0.5, 1.5, 2.5, 0.3, 1.0, 3.7, 3.5, 7.5)
        ),
        *(
            (lambda s, a=a: k.RationalQuadratic(a, s), lambda s, a=a: sklearn_kernels.RationalQuadratic(s, a))
            for a in (0.2, 1.0, 5.0)
        ),
    ],
)
def test_against_scikit_learn(ours: Any, theirs: Any, lengthscale: float) -> None:
    x, y = X, Y[1:]  # scikit-learn's general Matern kernel moves coinciding points apart
    np.testing.assert_allclose(ours(lengthscale)(x, y), theirs(lengthscale)(x, y), rtol=1e-10, atol=1e-14)
    scalars = theirs(lengthscale)(x[:, :1], y[:, :1])
    np.testing.assert_allclose(ours(lengthscale)(x[:, 0], y[:, 0]), scalars, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 4.5, 0.8, 12.3])
def test_matern_at_and_near_zero(nu: float) -> None:
    """1 at 0, and there continuous; for nu > 1 it falls like 1 - nu r^2 / (2 (nu - 1) l^2)."""
    kernel = k.Matern(nu, 2.0)
    assert kernel([0.0], [0.0])[0, 0] == 1.0
    assert kernel([0.0], [1e-12])[0, 0] == pytest.approx(1.0, abs=1e-8)
    if nu > 1.5:
        r = 1e-4
        fall = 1.0 - kernel([0.0], [r])[0, 0]
        assert fall == pytest.approx(nu * r**2 / (2 * (nu - 1) * 4.0), rel=1e-3)


def test_matern_half_integers_are_the_general_formula() -> None:
    for nu in (0.5, 2.5, 6.5):
        near = k.Matern(nu * (1 + 1e-9), 0.9)(X, Y)
        np.testing.assert_allclose(k.Matern(nu, 0.9)(X, Y), near, rtol=1e-7)


def test_matern_approaches_the_gaussian() -> None:
    for nu in (59.7, 60.0):
        np.testing.assert_allclose(k.Matern(nu, 0.9)(X, Y), k.Gaussian(0.9)(X, Y), atol=4e-3)
    with pytest.raises(ValueError, match=r"nu must be at most 60.*Gaussian"):
        k.Matern(61.0)


@pytest.mark.parametrize("nu", [0.3, 1.0, 2.2, 3.7, 20.0, 33.3, 59.9])
def test_general_matern_against_many_digits(nu: float) -> None:
    """From distances where the Bessel function overflows to those where it vanishes."""
    distances = [0.0, 1e-300, 1e-30, 1e-12, 1e-8, 1e-5, 1e-4, 1e-3, 0.1, 1.0, 10.0, 100.0]
    found = k.Matern(nu)([0.0], distances)[0]
    with mp.workdps(60):
        for r, value in zip(distances[1:], found[1:], strict=True):
            s = mp.sqrt(2 * mp.mpf(nu)) * mp.mpf(r)
            exact = 2 ** (1 - mp.mpf(nu)) / mp.gamma(nu) * s**nu * mp.besselk(nu, s)
            assert float(abs(mp.mpf(float(value)) - exact)) <= 1e-11 * float(exact), r
    assert found[0] == 1.0


@pytest.mark.parametrize(
    "kernel",
    [
        k.Gaussian(0.5),
        k.Laplacian(0.5),
        k.Matern(0.5),
        k.Matern(2.5),
        k.Matern(0.7),
        k.RationalQuadratic(0.4),
        k.Delta(),
    ],
    ids=repr,
)
def test_all_are_one_at_distance_zero_and_symmetric(kernel: Any) -> None:
    gram = kernel(X, X)
    assert np.all(np.diagonal(gram) == 1.0)
    np.testing.assert_array_equal(gram, gram.T)
    assert np.linalg.eigvalsh(gram)[0] > -1e-12
    assert np.all((gram >= 0) & (gram <= 1))


def test_delta() -> None:
    np.testing.assert_array_equal(k.Delta()([0, 1, 2], [1, 1, 5]), [[0, 0, 0], [1, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(k.Delta()([[0, 1], [1, 1]], [[0, 1]]), [[1], [0]])
    np.testing.assert_array_equal(k.Delta()(np.array(["a", "b"]), np.array(["b"])), [[0.0], [1.0]])


def test_far_from_the_origin() -> None:
    """Differences first: |x|^2 + |y|^2 - 2 x y would have lost all digits here."""
    x = np.array([1e8, 1e8 + 1.0])
    np.testing.assert_allclose(k.Gaussian()(x, x), k.Gaussian()([0.0, 1.0], [0.0, 1.0]), rtol=1e-15)


# -- libraries ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        k.Gaussian(0.5),
        k.Laplacian(0.5),
        k.Matern(2.5, 0.4),
        k.RationalQuadratic(0.4),
        k.Delta(),
        2.0 * k.Gaussian() + k.Delta(),
    ],
    ids=repr,
)
def test_matrices_stay_in_their_library(kernel: Any) -> None:
    expected = kernel(X, Y)
    for convert in (torch.asarray, array_api_strict.asarray, jnp.asarray):
        found = kernel(convert(X), convert(Y))
        assert namespace(found) is namespace(convert(X))
        np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-5 if convert is jnp.asarray else 1e-14)


def test_general_matern_says_where_it_works() -> None:
    with pytest.raises(ValueError, match=r"NumPy arrays only.*nu = 0\.5, 1\.5"):
        k.Matern(0.7)(torch.asarray(X), torch.asarray(Y))


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match="targets of one shape"):
        k.Gaussian()(X, Y[:, :2])
    with pytest.raises(ValueError, match="targets of one shape"):
        k.Gaussian()(X[:, 0], Y)
    with pytest.raises(ValueError, match="not finite in row 1"):
        k.Gaussian()([0.0, math.nan], [0.0])
    with pytest.raises(TypeError, match="needs numeric targets"):
        k.Gaussian()(np.array(["a"]), np.array(["b"]))


# -- a user's function -------------------------------------------------------------------------------------


def test_callable_one_by_one_and_vectorised() -> None:
    plain = k.Callable(lambda x, y: float(np.minimum(np.abs(x), np.abs(y)).sum()))
    at_once = k.Callable(
        lambda x, y: np.minimum(np.abs(x)[:, None], np.abs(y)[None]).sum(axis=2), vectorized=True
    )
    np.testing.assert_allclose(plain(X, Y), at_once(X, Y), rtol=1e-14)
    np.testing.assert_allclose(
        (2.0 * plain + k.Gaussian())(X, Y), 2 * at_once(X, Y) + k.Gaussian()(X, Y), rtol=1e-14
    )
    np.testing.assert_allclose((plain * k.Gaussian())(X, Y), at_once(X, Y) * k.Gaussian()(X, Y), rtol=1e-14)


def test_callable_on_objects() -> None:
    common = k.Callable(lambda x, y: float(len(set(x) & set(y))))
    np.testing.assert_array_equal(common(["ab", "xyz"], ["bc", "a", ""]), [[1, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(common([(1, 2), (3,)], [(1, 3)]), [[1], [1]])
    with_delta = common + k.Delta()
    np.testing.assert_array_equal(with_delta(["ab", "b"], ["ab"]), [[3], [1]])


def test_callable_of_the_wrong_shape() -> None:
    bad = k.Callable(lambda x, y: np.ones(3), vectorized=True)
    with pytest.raises(ValueError, match=r"returned shape \(3,\) for batches of 7 and 5"):
        bad(X, Y)
    with pytest.raises(TypeError, match="function must be callable"):
        k.Callable(3)  # pyright: ignore[reportArgumentType]


# -- algebra -----------------------------------------------------------------------------------------------


A, B, C = k.Gaussian(0.5), k.Laplacian(2.0), k.Matern(1.5, 0.7)
ON_PREDICTIONS = k.ExpDistance(k.Wasserstein())


def test_sum_product_and_multiple_are_pointwise() -> None:
    a, b, c = (kernel(X, Y) for kernel in (A, B, C))
    np.testing.assert_allclose((A + B)(X, Y), a + b, rtol=1e-15)
    np.testing.assert_allclose((A * B)(X, Y), a * b, rtol=1e-15)
    np.testing.assert_allclose((3.0 * A)(X, Y), 3 * a, rtol=1e-15)
    np.testing.assert_allclose((A * 3)(X, Y), 3 * a, rtol=1e-15)
    np.testing.assert_allclose(((A + B) * (2.0 * C + A))(X, Y), (a + b) * (2 * c + a), rtol=1e-13)
    np.testing.assert_allclose(((A + B) * C * C)(X, Y), (a + b) * c * c, rtol=1e-13)


def test_associative_and_flat() -> None:
    assert (A + B) + C == A + (B + C) == k.Sum((A, B, C))
    assert (A * B) * C == A * (B * C) == k.Product((A, B, C))
    assert 2.0 * (3.0 * A) == 6.0 * A == (A * 3.0) * 2.0
    assert (2.0 * A) * (3.0 * B) == 6.0 * (A * B)
    assert k.Scaled(1.5, k.Tensor(A, B)) == 1.5 * (A @ B)


def test_products_that_are_again_named_kernels() -> None:
    assert isinstance(k.Gaussian(3.0) * k.Gaussian(4.0), k.Gaussian)
    np.testing.assert_allclose((k.Gaussian(3.0) * k.Gaussian(4.0)).lengthscale, 2.4, rtol=1e-15)
    assert k.Laplacian(2.0) * k.Laplacian(2.0) == k.Laplacian(1.0)
    for other in (A, B, C, k.Delta()):
        assert k.Delta() * other == other * k.Delta() == k.Delta()
    assert (2.0 * k.Delta()) * A == 2.0 * k.Delta()
    custom = k.Callable(lambda x, y: 1.0)
    assert isinstance(k.Delta() * custom, k.Product)


def test_distributes_over_sums_so_that_closed_forms_survive() -> None:
    expanded = (A + 2.0 * k.Gaussian(1.0)) * k.Gaussian(2.0)
    assert isinstance(expanded, k.Sum)
    P = wc.Normal(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    closed = wc.pairing(expanded, P, P, expectations="closed")
    parts = wc.pairing(A * k.Gaussian(2.0), P, P) + 2.0 * wc.pairing(k.Gaussian(1.0) * k.Gaussian(2.0), P, P)
    np.testing.assert_allclose(closed, parts, rtol=1e-15)


def test_products_of_tensor_products() -> None:
    product = (ON_PREDICTIONS @ A) * (k.ExpDistance(k.Hellinger()) @ k.Gaussian(1.0))
    assert isinstance(product, k.Tensor)
    assert product.predictions == k.Product((ON_PREDICTIONS, k.ExpDistance(k.Hellinger())))
    assert isinstance(product.targets, k.Gaussian)


def test_kernels_are_values() -> None:
    assert k.Gaussian(2) == k.Gaussian(2.0) != k.Gaussian(1.0)
    assert hash(A + B) == hash(k.Gaussian(0.5) + k.Laplacian(2.0))
    assert (
        len({A, k.Gaussian(0.5), B, ON_PREDICTIONS @ A, k.ExpDistance(k.Wasserstein()) @ k.Gaussian(0.5)})
        == 3
    )
    with pytest.raises(AttributeError):
        A.lengthscale = 3.0  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (k.Gaussian(), "Gaussian(lengthscale=1)"),
        (k.Laplacian(0.25), "Laplacian(lengthscale=0.25)"),
        (k.Matern(1.5, 2.0), "Matern(nu=1.5, lengthscale=2)"),
        (k.RationalQuadratic(0.5), "RationalQuadratic(alpha=0.5, lengthscale=1)"),
        (k.Delta(), "Delta()"),
        (k.Callable(math.dist), "Callable(dist)"),
        (k.Joint(math.dist), "Joint(dist)"),
        (A + B, "Gaussian(lengthscale=0.5) + Laplacian(lengthscale=2)"),
        (2.0 * (A + B), "2 * (Gaussian(lengthscale=0.5) + Laplacian(lengthscale=2))"),
        (A * B, "Gaussian(lengthscale=0.5) * Laplacian(lengthscale=2)"),
        (
            ON_PREDICTIONS @ A,
            "ExpDistance(Wasserstein(order=2), lengthscale=1, power=1) @ Gaussian(lengthscale=0.5)",
        ),
        (A @ (A + B), "Gaussian(lengthscale=0.5) @ (Gaussian(lengthscale=0.5) + Laplacian(lengthscale=2))"),
        (3.0 * (A @ B), "3 * (Gaussian(lengthscale=0.5) @ Laplacian(lengthscale=2))"),
    ],
)
def test_representations(kernel: k.Kernel, text: str) -> None:
    assert repr(kernel) == text


def test_paper_kernel() -> None:
    assert k.paper_kernel == k.ExpDistance(k.Wasserstein(order=2), lengthscale=1.0, power=1.0) @ k.Gaussian(
        1.0
    )


# -- spaces and errors -------------------------------------------------------------------------------------


def test_spaces() -> None:
    assert space_of(A) == space_of(A + B) == space_of(2.0 * A * B) == "targets"
    assert space_of(ON_PREDICTIONS) == space_of(2.0 * ON_PREDICTIONS + A) == "predictions"
    assert (
        space_of(ON_PREDICTIONS @ A)
        == space_of(k.Joint(min))
        == space_of(ON_PREDICTIONS @ A + k.Joint(min))
        == "pairs"
    )


def test_tensor_products_in_the_wrong_order() -> None:
    with pytest.raises(TypeError, match="right side of @ must be a kernel on targets"):
        A @ ON_PREDICTIONS
    with pytest.raises(TypeError, match="left side of @ is already a kernel on pairs"):
        (ON_PREDICTIONS @ A) @ B
    with pytest.raises(TypeError, match="right side of @ is already a kernel on pairs"):
        ON_PREDICTIONS @ k.Joint(min)


def test_spaces_do_not_mix() -> None:
    for combine in (lambda a, b: a + b, lambda a, b: a * b):
        with pytest.raises(TypeError, match="kernel on pairs of prediction and target"):
            combine(ON_PREDICTIONS @ A, A)
    with pytest.raises(TypeError):
        A + 1.0  # pyright: ignore[reportOperatorIssue]
    with pytest.raises(TypeError):
        A @ 2.0  # pyright: ignore[reportOperatorIssue]


@pytest.mark.parametrize("factor", [-1.0, 0.0, math.nan, math.inf])
def test_factors_are_positive(factor: float) -> None:
    with pytest.raises(ValueError, match="the factor of a kernel must be positive and finite"):
        factor * A


@pytest.mark.parametrize(
    "make", [k.Gaussian, k.Laplacian, lambda s: k.Matern(1.5, s), lambda s: k.RationalQuadratic(1.0, s)]
)
@pytest.mark.parametrize("lengthscale", [0.0, -1.0, math.nan, math.inf])
def test_length_scales_are_positive(make: Any, lengthscale: float) -> None:
    with pytest.raises(ValueError, match="lengthscale must be positive and finite"):
        make(lengthscale)


def test_other_parameters_are_checked() -> None:
    with pytest.raises(ValueError, match="nu must be positive"):
        k.Matern(0.0)
    with pytest.raises(ValueError, match="alpha must be positive"):
        k.RationalQuadratic(-2.0)
    with pytest.raises(TypeError, match="lengthscale must be a number"):
        k.Gaussian("wide")
    with pytest.raises(ValueError, match="lengthscale must be a number, found an array"):
        k.Gaussian(np.ones(3))


def test_length_scales_of_numpy_scalars_multiply() -> None:
    assert np.float64(2.0) * A == 2.0 * A
    assert k.Gaussian(np.float32(0.5)) == A


def test_pairing_and_skce_say_which_kernel_they_need() -> None:
    P = wc.Normal(np.zeros(3), np.ones(3))
    with pytest.raises(TypeError, match="a kernel on targets is needed here"):
        wc.pairing(ON_PREDICTIONS, P, P)
    with pytest.raises(TypeError, match="kernel_on_predictions @ kernel_on_targets"):
        wc.skce(np.zeros(3), P, kernel=A)
    with pytest.raises(TypeError, match="kernel_on_predictions @ kernel_on_targets"):
        wc.skce(np.zeros(3), P, kernel=ON_PREDICTIONS)
    with pytest.raises(TypeError, match="kernel must be a kernel"):
        wc.skce(np.zeros(3), P, kernel="gaussian")  # pyright: ignore[reportArgumentType]


# -- kernels on predictions --------------------------------------------------------------------------------


def test_radial_kernels_on_parameters() -> None:
    """On the left of @ a radial kernel is one of the Euclidean distance of parameters."""
    rng = np.random.default_rng(2)
    P = wc.Normal(rng.normal(size=20), rng.uniform(0.5, 2, 20))
    y = rng.normal(size=20)
    as_radial = wc.skce(y, P, kernel=k.Laplacian(0.7) @ A).value
    as_distance = wc.skce(y, P, kernel=k.ExpDistance(k.Euclidean(), lengthscale=0.7) @ A).value
    assert as_radial == pytest.approx(as_distance, rel=1e-12)
    as_radial = wc.skce(y, P, kernel=k.Gaussian(0.7) @ A).value
    width = math.sqrt(2.0) * 0.7
    as_distance = wc.skce(y, P, kernel=k.ExpDistance(k.Euclidean(), lengthscale=width, power=2) @ A).value
    assert as_radial == pytest.approx(as_distance, rel=1e-12)


def test_linear_in_the_kernel() -> None:
    rng = np.random.default_rng(3)
    P = wc.Normal(rng.normal(size=20), rng.uniform(0.5, 2, 20))
    y = rng.normal(size=20)
    one, two = ON_PREDICTIONS @ A, k.ExpDistance(k.Hellinger()) @ B
    values = [wc.skce(y, P, kernel=kernel).value for kernel in (one, two, 2.0 * one + 0.5 * two)]
    assert values[2] == pytest.approx(2 * values[0] + 0.5 * values[1], rel=1e-12)


def test_sums_and_products_on_predictions() -> None:
    rng = np.random.default_rng(4)
    P = wc.Normal(rng.normal(size=10), rng.uniform(0.5, 2, 10))
    y = rng.normal(size=10)
    first, second = k.ExpDistance(k.Wasserstein()), k.ExpDistance(k.Hellinger(), lengthscale=0.5)

    def by_hand(x: Any, z: Any) -> np.ndarray:
        w = np.hypot(x.loc[:, None] - z.loc, x.scale[:, None] - z.scale)
        t = x.scale[:, None] ** 2 + z.scale**2
        overlap = np.sqrt(2 * x.scale[:, None] * z.scale / t) * np.exp(
            -((x.loc[:, None] - z.loc) ** 2) / (4 * t)
        )
        h = np.sqrt(np.maximum(0.0, 1 - overlap))
        return 2 * np.exp(-w) * np.exp(-2 * h) + np.exp(-w)

    kernel = (2.0 * first * second + first) @ A
    expected = wc.skce(y, P, kernel=k.Callable(by_hand, vectorized=True) @ A).value
    assert wc.skce(y, P, kernel=kernel).value == pytest.approx(expected, rel=1e-7)


# -- kernels that do not factor ----------------------------------------------------------------------------


def tv(P: Any, Q: Any) -> np.ndarray:
    return 0.5 * np.abs(P.probs[:, None, :] - Q.probs[None, :, :]).sum(axis=2)


def joint_of_classes(P: Any, y: Any, Q: Any, z: Any) -> np.ndarray:
    return np.exp(-tv(P, Q)) * (np.asarray(y)[:, None] == np.asarray(z)[None, :])


@pytest.mark.parametrize("estimator", ["unbiased", "biased", "block"])
def test_joint_kernel_that_factors_after_all(estimator: str) -> None:
    rng = np.random.default_rng(5)
    probs = rng.dirichlet(np.ones(3), 12)
    y = rng.integers(3, size=12)
    plain = k.ExpDistance(k.TotalVariation()) @ k.Delta()
    for P, targets in (
        (wc.Categorical(probs), y),
        (wc.Categorical(probs, classes=["a", "b", "c"]), np.array(["a", "b", "c"])[y]),
    ):
        expected = wc.skce(targets, P, kernel=plain, estimator=estimator)
        found = wc.skce(targets, P, kernel=k.Joint(joint_of_classes), estimator=estimator)
        assert found.value == pytest.approx(expected.value, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize("kind", ["draws", "atoms"])
def test_joint_kernel_on_samples(estimator: str, kind: str) -> None:
    rng = np.random.default_rng(6)
    values, y = rng.normal(size=(8, 5)), rng.normal(size=8)
    P = wc.Samples(values, kind=kind)

    def joint(P: Any, y: Any, Q: Any, z: Any) -> np.ndarray:
        means = np.exp(-np.abs(P.values.mean(axis=1)[:, None] - Q.values.mean(axis=1)[None, :]))
        return means * np.exp(-((y[:, None] - z[None, :]) ** 2) / (2 * 0.7**2))

    on_predictions = k.Callable(
        lambda P, Q: np.exp(-np.abs(P.values.mean(axis=1)[:, None] - Q.values.mean(axis=1)[None, :])),
        vectorized=True,
    )
    expected = wc.skce(y, P, kernel=on_predictions @ k.Gaussian(0.7), estimator=estimator).value
    found = wc.skce(y, P, kernel=k.Joint(joint), estimator=estimator).value
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_joint_kernel_that_does_not_factor() -> None:
    """Against the definition: a sum over all pairs of classes of both predictions."""
    rng = np.random.default_rng(7)
    probs = rng.dirichlet(np.ones(3), 6)
    y = rng.integers(3, size=6)

    def joint(P: Any, y: Any, Q: Any, z: Any) -> np.ndarray:
        """Gaussian in the probability that each prediction gives to its own target."""
        own = P.probs[np.arange(len(y)), np.asarray(y).astype(int)]
        other = Q.probs[np.arange(len(z)), np.asarray(z).astype(int)]
        return np.exp(-((own[:, None] - other[None, :]) ** 2))

    weights = probs - np.eye(3)[y]
    h = np.array(
        [
            [
                sum(
                    weights[i, a] * weights[j, b] * math.exp(-((probs[i, a] - probs[j, b]) ** 2))
                    for a in range(3)
                    for b in range(3)
                )
                for j in range(6)
            ]
            for i in range(6)
        ]
    )
    P = wc.Categorical(probs)
    assert wc.skce(y, P, kernel=k.Joint(joint), estimator="biased").value == pytest.approx(
        h.mean(), rel=1e-12
    )
    off = (h.sum() - np.trace(h)) / 30
    assert wc.skce(y, P, kernel=k.Joint(joint)).value == pytest.approx(off, rel=1e-12)
    both = wc.skce(y, P, kernel=2.0 * k.Joint(joint) + k.ExpDistance(k.TotalVariation()) @ k.Delta()).value
    factored = wc.skce(y, P, kernel=k.ExpDistance(k.TotalVariation()) @ k.Delta()).value
    assert both == pytest.approx(2 * off + factored, rel=1e-12)


def test_joint_kernel_of_the_wrong_shape() -> None:
    with pytest.raises(ValueError, match=r"returned shape \(\)"):
        wc.skce([0, 1], wc.Bernoulli(np.array([0.2, 0.6])), kernel=k.Joint(lambda P, y, Q, z: 1.0))
