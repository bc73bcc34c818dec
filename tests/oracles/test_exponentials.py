"""Expectations of two-sided exponentials against 100-digit arithmetic, and the laws they obey."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import array_api_strict
import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
import torch

from wellcal._arrays.namespaces import namespace, to_numpy
from wellcal._arrays.ops import Ops, ops_for
from wellcal.expectations.rules import exponentials
from wellcal.expectations.rules.exponentials import (
    laplace_laplace,
    laplace_point,
    normal_exponential,
    normal_two_rates,
)

NUMPY = ops_for(namespace())
RELATIVE_ERROR = 1e-12
SMALLEST = 1e-290
DIFFERENCES = (0.0, 1e-16, 1e-12, 1e-8, 1e-4, 1e-2)
SPLIT = mp.mpf(10) ** -30

Columns = tuple[np.ndarray, ...]


@pytest.fixture(autouse=True)
def hundred_digits() -> Iterator[None]:
    with mp.workdps(100):
        yield


# -- oracles: textbook partial fractions, their cancellation paid for in digits --------------------------


def distinct(*rates: Any) -> list[Any]:
    """The rates, equal ones moved apart by 1e-30 relative: it takes 60 of the 100 digits."""
    result: list[Any] = []
    for rate in map(mp.mpf, rates):
        while rate in result:
            rate *= 1 + SPLIT
        result.append(rate)
    return result


def oracle_laplace_point(z: Any, a: Any, c: Any) -> Any:
    a, c = distinct(a, c)
    return a * (a * mp.exp(-c * z) - c * mp.exp(-a * z)) / (a * a - c * c)


def oracle_laplace_laplace(z: Any, a: Any, b: Any, c: Any) -> Any:
    a, b, c = rates = distinct(a, b, c)
    total = mp.mpf(0)
    for r in rates:
        others = [q for q in rates if q != r]
        total += mp.exp(-r * z) / (2 * r * mp.fprod(q * q - r * r for q in others))
    return 2 * c * a * a * b * b * total


def oracle_normal_exponential(z: Any, variance: Any, r: Any) -> Any:
    z, v, r = mp.mpf(z), mp.mpf(variance), mp.mpf(r)
    if v == 0:
        return mp.exp(-r * z)
    s = mp.sqrt(2 * v)
    near = mp.exp(r * r * v / 2 - r * z) * mp.erfc((r * v - z) / s)
    return (near + mp.exp(r * r * v / 2 + r * z) * mp.erfc((r * v + z) / s)) / 2


def oracle_normal_two_rates(z: Any, variance: Any, a: Any, b: Any) -> Any:
    a, b = distinct(a, b)
    at_a, at_b = oracle_normal_exponential(z, variance, a), oracle_normal_exponential(z, variance, b)
    return (a * at_b - b * at_a) / (a - b)


ORACLES: dict[Callable[..., Any], Callable[..., Any]] = {
    laplace_point: oracle_laplace_point,
    laplace_laplace: oracle_laplace_laplace,
    normal_exponential: oracle_normal_exponential,
    normal_two_rates: oracle_normal_two_rates,
}
ALL = pytest.mark.parametrize("function", list(ORACLES), ids=lambda f: f.__name__)


def expectation(density: Callable[[Any], Any], g: Callable[[Any], Any], breaks: list[Any], reach: Any) -> Any:
    """Integral of ``density * g`` on [-reach, reach], with kinks at `breaks`."""
    points = [-reach, *sorted(set(breaks)), reach]
    return mp.quad(lambda x: density(x) * g(x), points)


def laplace_density(rate: Any, at: Any = 0) -> Callable[[Any], Any]:
    return lambda x: rate / 2 * mp.exp(-rate * abs(x - at))


def normal_density(variance: Any, at: Any = 0) -> Callable[[Any], Any]:
    return lambda x: mp.exp(-((x - at) ** 2) / (2 * variance)) / mp.sqrt(2 * mp.pi * variance)


@pytest.mark.parametrize(("a", "c"), [(1.5, 0.5), (0.8, 0.8), (0.25, 2.0)])
def test_oracle_laplace_point_is_the_integral(a: float, c: float) -> None:
    z = 1.25
    oracle = oracle_laplace_point(z, a, c)
    with mp.workdps(20):
        integral = expectation(laplace_density(a, z), lambda x: mp.exp(-c * abs(x)), [0, z], 150)
    assert float(abs(integral / oracle - 1)) < 1e-15


@pytest.mark.parametrize(("a", "b", "c"), [(1.5, 0.75, 1.0), (2.0, 2.0, 2.0), (1.0, 3.0, 1.0)])
def test_oracle_laplace_laplace_is_the_integral(a: float, b: float, c: float) -> None:
    z = 1.25
    oracle = oracle_laplace_laplace(z, a, b, c)
    with mp.workdps(70):
        integral = expectation(
            laplace_density(b), lambda y: oracle_laplace_point(abs(y - z), a, c), [0, z], 70
        )
    assert float(abs(integral / oracle - 1)) < 1e-15


@pytest.mark.parametrize(("z", "v", "r"), [(0.0, 1.0, 1.0), (2.0, 0.5, 1.5), (0.5, 4.0, 3.0)])
def test_oracle_normal_exponential_is_the_integral(z: float, v: float, r: float) -> None:
    oracle = oracle_normal_exponential(z, v, r)
    with mp.workdps(20):
        integral = expectation(normal_density(v, z), lambda d: mp.exp(-r * abs(d)), [-3, 0, z, 3], 40)
    assert float(abs(integral / oracle - 1)) < 1e-15


@pytest.mark.parametrize(("a", "c"), [(1.5, 0.5), (0.8, 0.8)])
def test_oracle_normal_two_rates_is_the_integral(a: float, c: float) -> None:
    """Against what it is for: the Laplacian kernel between a Laplace and a normal variable."""
    z, v = 1.25, 0.5
    oracle = a / (mp.mpf(a) + c) * oracle_normal_two_rates(z, v, a, c)
    with mp.workdps(70):
        integral = expectation(
            normal_density(v), lambda y: oracle_laplace_point(abs(y - z), a, c), [-3, 0, z, 3], 9
        )
    assert float(abs(integral / oracle - 1)) < 1e-15


# -- arguments -------------------------------------------------------------------------------------------


def distances(rng: np.random.Generator, scales: np.ndarray) -> np.ndarray:
    """One for each row of scales: 0, tiny, anywhere up to 30 of some scale, and 30 of the largest."""
    n = len(scales)
    some = scales[np.arange(n), rng.integers(scales.shape[1], size=n)]
    options = [
        np.zeros(n),
        10.0 ** rng.uniform(-15, 0, n) * some,
        30.0 * rng.random(n) * some,
        30.0 * rng.random(n) * scales.max(axis=1),
        30.0 * scales.max(axis=1),
    ]
    return np.choose(np.arange(n) % len(options), options)


def random_columns(function: Callable[..., Any], n: int = 400, seed: int = 7) -> Columns:
    """Scales of all quantities log-uniform on [1e-3, 1e3]."""
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.uniform(-3, 3, (n, 3))
    if function is laplace_laplace:
        return distances(rng, scales), *(1.0 / scales.T)
    if function is laplace_point:
        return distances(rng, scales[:, :2]), *(1.0 / scales.T[:2])
    if function is normal_exponential:
        return distances(rng, scales[:, :2]), scales[:, 0] ** 2, 1.0 / scales[:, 1]
    return distances(rng, scales), scales[:, 0] ** 2, 1.0 / scales[:, 1], 1.0 / scales[:, 2]


def coincident_columns(function: Callable[..., Any]) -> Columns:
    """Rates that agree or nearly do, near and far; for normals also rate * variance = z, and variance 0."""
    rows: list[tuple[float, ...]] = []
    steps = (0.0, 1e-9, 0.3, 2.0, 12.0, 30.0)
    if function is laplace_point:
        for r, d, t in itertools.product((1e-3, 0.7, 1e3), DIFFERENCES, steps):
            rows += [(t / r, r, r * (1 - d)), (t / r, r * (1 - d), r)]
    elif function is laplace_laplace:
        for r, d, e, t in itertools.product((1e-3, 0.7), DIFFERENCES, DIFFERENCES, steps):
            rows.append((t / r, r, r * (1 - d), r * (1 - e)))
        for d, far, t in itertools.product(DIFFERENCES, (1e-3, 0.4, 1e3), steps):
            near = (0.9, 0.9 * (1 - d))
            rows += [(t, *near, far), (t, near[0], far, near[1]), (t, far, *near), (t / far, *near, far)]
    elif function is normal_exponential:
        for r, s, t in itertools.product((1e-3, 0.7, 1e3), (0.0, 1e-3, 0.05, 1.0, 5.0, 1e3), steps):
            rows.append((t * max(s, 1 / r), s * s, r))
        for rho, d in itertools.product((0.01, 0.4, 3.0, 20.0, 36.0), DIFFERENCES):
            rows += [(rho * 1.5 * (1 + d), 1.5**2, rho / 1.5), (rho * 1.5 * (1 - d), 1.5**2, rho / 1.5)]
    else:
        for r, d, s, t in itertools.product((1e-3, 0.7, 1e3), DIFFERENCES, (0.0, 1e-3, 0.6, 4.0, 1e3), steps):
            rows.append((t * max(s, 1 / r), s * s, r, r * (1 - d)))
        for rho, d, e in itertools.product((0.01, 0.4, 3.0, 20.0, 36.0), DIFFERENCES, DIFFERENCES):
            z, v, r = rho * 1.5, 1.5**2, rho / 1.5
            rows += [(z, v, r * (1 + d), r * (1 - e)), (z, v, r * (1 + d), r * (1 + e))]
        for rho, low, high in itertools.product((0.4, 1.0, 3.0, 20.0), (0.01, 0.5, 0.8), (1.0, 1.2, 50.0)):
            rows.append((rho * 1.5, 1.5**2, rho / 1.5 * high, rho / 1.5 * low))
    return tuple(np.array(rows).T.copy())


def oracle_values(function: Callable[..., Any], columns: Columns) -> list[Any]:
    oracle = ORACLES[function]
    return [oracle(*map(mp.mpf, map(float, row))) for row in zip(*columns, strict=True)]


@ALL
@pytest.mark.parametrize("columns", [random_columns, coincident_columns])
def test_relative_error(function: Callable[..., Any], columns: Callable[..., Columns]) -> None:
    arguments = columns(function)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        values = function(NUMPY, *arguments)
    expected = oracle_values(function, arguments)
    errors = [
        float(abs(mp.mpf(float(value)) / oracle - 1))
        for value, oracle in zip(values, expected, strict=True)
        if oracle > SMALLEST
    ]
    assert len(errors) > 0.5 * len(expected)
    assert len(errors) >= 100
    worst = int(np.argmax(errors))
    assert errors[worst] < RELATIVE_ERROR, f"{errors[worst]:.1e}"


def test_erfcx_polynomial_and_its_divided_differences() -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(-0.25, 6.0, 150), 10.0 ** rng.uniform(-3, 6, 150)])
    step = np.where(np.arange(300) % 3 == 0, 0.0, 10.0 ** rng.uniform(-12, 2, 300))
    values, slopes = exponentials.erfcx_difference(NUMPY, x, x + step)
    assert np.allclose(exponentials.erfcx(NUMPY, x), values, rtol=1e-15, atol=0)

    def erfcx(x: Any) -> Any:
        return mp.exp(x * x) * mp.erfc(x)

    for a, b, value, slope in zip(x, x + step, values, slopes, strict=True):
        a, b = mp.mpf(float(a)), mp.mpf(float(b))
        derivative = 2 * a * erfcx(a) - 2 / mp.sqrt(mp.pi)
        expected = -derivative if a == b else (erfcx(a) - erfcx(b)) / (b - a)
        assert float(abs(value / erfcx(a) - 1)) < 2e-15
        assert float(abs(slope / expected - 1)) < 1e-14


# -- laws ------------------------------------------------------------------------------------------------


def test_symmetric_in_the_rates() -> None:
    z, a, b, c = random_columns(laplace_laplace)
    np.testing.assert_array_equal(laplace_laplace(NUMPY, z, a, b, c), laplace_laplace(NUMPY, z, b, a, c))
    # Up to the factor c a^2 b^2 it is symmetric in all three.
    swapped = laplace_laplace(NUMPY, z, c, b, a)
    np.testing.assert_allclose(laplace_laplace(NUMPY, z, a, b, c) * c, swapped * a, rtol=1e-14)
    z, v, a, b = random_columns(normal_two_rates)
    np.testing.assert_array_equal(normal_two_rates(NUMPY, z, v, a, b), normal_two_rates(NUMPY, z, v, b, a))


def test_a_concentrated_variable_is_a_point() -> None:
    z, a, c, v = (np.array(column) for column in zip(*itertools.product(
        (0.0, 1e-6, 0.3, 5.0, 40.0), (0.01, 0.5, 7.0), (0.02, 0.5, 3.0), (1e-4, 0.3, 9.0),
    ), strict=True))  # fmt: skip
    sharp = 1e18 + 0.0 * z
    law = {"rtol": 1e-13, "atol": 0}  # a rounding of the exponent, up to 360 here
    np.testing.assert_allclose(laplace_laplace(NUMPY, z, a, sharp, c), laplace_point(NUMPY, z, a, c), **law)
    np.testing.assert_allclose(laplace_point(NUMPY, z, sharp, c), np.exp(-c * z), **law)
    np.testing.assert_allclose(
        normal_two_rates(NUMPY, z, v, sharp, c), normal_exponential(NUMPY, z, v, c), **law
    )
    for tiny in (0.0, 1e-40):
        np.testing.assert_allclose(normal_exponential(NUMPY, z, tiny + 0.0 * z, c), np.exp(-c * z), **law)
        two = normal_two_rates(NUMPY, z, tiny + 0.0 * z, a, c)
        m, gap = np.minimum(a, c), np.abs(a - c) * z
        phi = np.where(gap == 0, 1.0, -np.expm1(-gap) / np.where(gap == 0, 1.0, gap))
        np.testing.assert_allclose(two, np.exp(-m * z) * (1 + m * z * phi), **law)
        np.testing.assert_allclose(a / (a + c) * two, laplace_point(NUMPY, z, a, c), **law)


@ALL
def test_values_lie_in_0_1_and_fall_with_distance(function: Callable[..., Any]) -> None:
    _, *parameters = random_columns(function, n=60, seed=11)
    scale = np.maximum(1.0 / parameters[-1], 1e-2)
    steps = np.concatenate([[0.0], np.geomspace(1e-6, 40.0, 400)])[:, None]
    values = function(NUMPY, steps * scale, *parameters)
    assert np.all(values <= 1.0 + 1e-15)
    assert np.all(values >= 0.0)
    assert np.all(values[0] > 0.0)
    assert np.all(values[1:] <= values[:-1] * (1.0 + 1e-13))


# -- array libraries -------------------------------------------------------------------------------------


@contextmanager
def double_precision_jax() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


LIBRARIES: dict[str, tuple[Callable[[np.ndarray], Any], Callable[[], Any]]] = {
    "torch": (torch.asarray, nullcontext),
    "jax": (jnp.asarray, double_precision_jax),
    "strict": (array_api_strict.asarray, nullcontext),
}


def both_kinds(function: Callable[..., Any]) -> Columns:
    pairs = zip(random_columns(function), coincident_columns(function), strict=True)
    return tuple(np.concatenate(pair) for pair in pairs)


@ALL
@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries_agree(function: Callable[..., Any], library: str) -> None:
    convert, context = LIBRARIES[library]
    columns = both_kinds(function)
    for column in columns:
        column.flags.writeable = False
    expected = function(NUMPY, *columns)
    with context():
        arrays = [convert(column.copy()) for column in columns]
        ops: Ops = ops_for(namespace(*arrays))
        value = jax.jit(lambda *a: function(ops, *a))(*arrays) if library == "jax" else function(ops, *arrays)
        assert namespace(value) is namespace(*arrays)
        np.testing.assert_allclose(to_numpy(value), expected, rtol=1e-13, atol=1e-300)


def test_jax_step_by_step() -> None:
    columns = random_columns(normal_two_rates, n=50)
    with double_precision_jax():
        arrays = [jnp.asarray(column) for column in columns]
        value = np.asarray(normal_two_rates(ops_for(namespace(*arrays)), *arrays))
    np.testing.assert_allclose(value, normal_two_rates(NUMPY, *columns), rtol=1e-13, atol=1e-300)


@ALL
def test_broadcasting_and_python_numbers(function: Callable[..., Any]) -> None:
    rng = np.random.default_rng(5)
    z = rng.exponential(1.0, (4, 3))
    parameters = [rng.uniform(0.5, 2.0, (4, 1)), rng.uniform(0.5, 2.0, (1, 3)), 0.8]
    count = len(random_columns(function, n=1)) - 1
    parameters = parameters[-count:]
    expected = function(NUMPY, z, *(p + 0.0 * z for p in parameters))
    np.testing.assert_allclose(function(NUMPY, z, *parameters), expected, rtol=1e-15)
    tensors = [torch.asarray(p) if isinstance(p, np.ndarray) else p for p in parameters]
    ops = ops_for(namespace(torch.ones(1)))
    np.testing.assert_allclose(function(ops, torch.asarray(z), *tensors).numpy(), expected, rtol=1e-14)
    numbers = [0.8] * count
    np.testing.assert_allclose(
        function(NUMPY, z, *numbers), function(NUMPY, z, *(p + 0.0 * z for p in numbers)), rtol=1e-15
    )


@ALL
def test_single_precision_jax(function: Callable[..., Any]) -> None:
    """Without float64 the same expressions hold to single precision, coincidences included."""
    columns = tuple(c[::7] for c in coincident_columns(function))
    moderate = np.all([(c == 0) | ((c > 1e-2) & (c < 1e2)) for c in columns], axis=0)
    columns = tuple(c[moderate].astype(np.float32) for c in columns)
    with jax.enable_x64(False):
        ops = ops_for(namespace(jnp.ones(1)))
        values = np.asarray(jax.jit(lambda *a: function(ops, *a))(*map(jnp.asarray, columns)))
    assert values.dtype == np.float32
    expected = function(NUMPY, *(c.astype(np.float64) for c in columns))
    np.testing.assert_allclose(values, expected, rtol=2e-4, atol=1e-30)


# -- derivatives -----------------------------------------------------------------------------------------


def torch_gradients(function: Callable[..., Any], columns: Columns) -> list[np.ndarray]:
    tensors = [torch.tensor(column, requires_grad=True) for column in columns]
    total = function(ops_for(namespace(*tensors)), *tensors).sum()
    return [g.numpy() for g in torch.autograd.grad(total, tensors)]


ROWS = 512
"""Arguments of one call of a compiled gradient, so that each function is compiled once."""


@cache
def compiled_gradient(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    def total(*arrays: Any) -> Any:
        return function(ops_for(namespace(*arrays)), *arrays).sum()

    return jax.jit(jax.grad(total, argnums=tuple(range(count))))


def jax_gradients(function: Callable[..., Any], columns: Columns) -> list[np.ndarray]:
    n, parts = len(columns[0]), []
    with jax.enable_x64(True):
        for start in range(0, n, ROWS):
            rows = np.minimum(np.arange(start, start + ROWS), n - 1)
            parts.append(compiled_gradient(function, len(columns))(*(column[rows] for column in columns)))
        return [np.concatenate(gradient)[:n] for gradient in zip(*parts, strict=True)]


GRADIENTS = pytest.mark.parametrize("gradients", [torch_gradients, jax_gradients])


@pytest.fixture(scope="module")
def derivatives() -> Callable[[Callable[..., Any]], tuple[Columns, list[list[Any]]]]:
    """Arguments, and central differences in 120 digits of the oracle in the logarithm of each."""
    known: dict[Callable[..., Any], tuple[Columns, list[list[Any]]]] = {}

    def of(function: Callable[..., Any]) -> tuple[Columns, list[list[Any]]]:
        if function not in known:
            columns = both_kinds(function)
            keep = function(NUMPY, *columns) > SMALLEST
            if function in (normal_exponential, normal_two_rates):
                keep &= columns[1] > 0
            chosen = np.flatnonzero(keep)
            chosen = chosen[:: max(1, len(chosen) // 100)]
            columns = tuple(column[chosen] for column in columns)
            known[function] = (
                columns,
                [
                    [log_derivative(ORACLES[function], row, k) for row in zip(*columns, strict=True)]
                    for k in range(len(columns))
                ],
            )
        return known[function]

    return of


@cache
def log_derivative(oracle: Callable[..., Any], row: tuple[float, ...], k: int) -> Any:
    with mp.workdps(120):
        step = mp.mpf(10) ** -20
        point = [mp.mpf(float(x)) for x in row]
        sides = [[*point[:k], point[k] * (1 + sign * step), *point[k + 1 :]] for sign in (1, -1)]
        return (oracle(*sides[0]) - oracle(*sides[1])) / (2 * step)


@ALL
@GRADIENTS
def test_derivatives(
    function: Callable[..., Any], gradients: Callable[..., list[np.ndarray]], derivatives: Any
) -> None:
    """Derivatives in log arguments hold 1e-10 relative, or 1e-14 of the value where they are that small."""
    columns, expected = derivatives(function)
    values = function(NUMPY, *columns)
    for column, gradient, oracle in zip(columns, gradients(function, columns), expected, strict=True):
        assert np.all(np.isfinite(gradient))
        found = [mp.mpf(float(g)) * mp.mpf(float(x)) for g, x in zip(gradient, column, strict=True)]
        error = np.array([float(abs(f - o)) for f, o in zip(found, oracle, strict=True)])
        size = np.array([float(abs(o)) for o in oracle])
        np.testing.assert_array_less(error, 1e-10 * size + 1e-14 * values + 1e-300)


@ALL
@GRADIENTS
def test_derivatives_at_equal_rates_and_exact_ties(
    function: Callable[..., Any], gradients: Callable[..., list[np.ndarray]]
) -> None:
    """Where an ordering or a branch is decided by a tie, all arguments being 1 or nearly."""
    arguments = len(random_columns(function, n=1))
    rows = list(itertools.product((0.25, 1.0, 2.0), repeat=arguments))
    columns = tuple(np.array(rows).T.copy())
    for k, gradient in enumerate(gradients(function, columns)):
        expected = [float(log_derivative(ORACLES[function], row, k)) / row[k] for row in rows]
        np.testing.assert_allclose(gradient, expected, rtol=1e-11)


@ALL
@GRADIENTS
def test_derivatives_stay_finite(
    function: Callable[..., Any], gradients: Callable[..., list[np.ndarray]]
) -> None:
    """Far outside the range of accuracy, at distance 0 and at variance 0."""
    grids: list[tuple[float, ...]] = [(0.0, 1e-320, 1e-100, 1e-8, 1.0, 27.3, 3e7, 1e20)]
    rates = (1e-6, 1e-3, 1.0, 1.0 + 2.0**-52, 40.0, 1e8)
    count = len(random_columns(function, n=1))
    if function in (normal_exponential, normal_two_rates):
        grids.append((0.0, 1e-320, 1e-300, 1e-160, 1e-20, 1.0, 1e6, 1e15))
    grids += [rates] * (count - len(grids))
    columns = tuple(np.array(list(itertools.product(*grids))).T.copy())
    assert np.all(np.isfinite(function(NUMPY, *columns)))
    for gradient in gradients(function, columns):
        assert np.all(np.isfinite(gradient))


@GRADIENTS
def test_even_functions_of_the_difference_are_flat_at_0(gradients: Callable[..., list[np.ndarray]]) -> None:
    ones = np.array([0.3, 1.0, 2.0])
    for function in ORACLES:
        count = len(random_columns(function, n=1))
        gradient = gradients(function, (0.0 * ones, *([ones] * (count - 1))))[0]
        np.testing.assert_allclose(gradient, 0.0, atol=1e-15)
