"""Programs of JAX: compiled once for what problems have in common, whatever their numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wellcal as wc
from wellcal.engines import Tiled
from wellcal.engines.jax_loop import evened
from wellcal.expectations.bilinear import FiniteForm, WeightRows
from wellcal.expectations.rules.elements import CLOSED_FORMS
from wellcal.extend import Normals, Points, closed_form
from wellcal.kernels import ExpDistance, Gaussian, Radial, Wasserstein
from wellcal.kernels.base import Scale
from wellcal.problem.problem import prepare

from .examples import jax_x64, mean_size

KERNEL = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)
PROGRAMS = Tiled(threads=1)
"""Few pairs are otherwise summed in NumPy, where the arrays lie."""
_COMPILED = "/jax/core/compile/backend_compile_duration"


@contextmanager
def compilations() -> Generator[list[str]]:
    """Everything that JAX compiles within the block, operations outside of programs included."""
    found: list[str] = []

    def listen(event: str, duration: float, **_: Any) -> None:
        if event == _COMPILED:
            found.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


@pytest.fixture(autouse=True)
def double_precision() -> Generator[None]:
    with jax_x64():
        yield


def normals(n: int) -> tuple[np.ndarray, Any]:
    rng = np.random.default_rng(n)
    loc, scale = rng.normal(size=n), rng.uniform(0.5, 1.5, n)
    return rng.normal(loc, scale), wc.Normal(loc, scale)


def classes(n: int) -> tuple[np.ndarray, Any]:
    rng = np.random.default_rng(n)
    return rng.integers(0, 4, n), wc.Categorical(rng.dirichlet(np.ones(4), n))


def events(n: int) -> tuple[np.ndarray, Any]:
    rng = np.random.default_rng(n)
    p = rng.random(n)
    return rng.random(n) < p, wc.Bernoulli(p)


def counts(n: int) -> tuple[np.ndarray, Any]:
    rng = np.random.default_rng(n)
    rate = rng.uniform(1.0, 5.0, n)
    return rng.poisson(rate), wc.Poisson(rate)


def vectors(n: int) -> tuple[np.ndarray, Any]:
    rng = np.random.default_rng(n)
    loc, scale = rng.normal(size=(n, 3)), rng.uniform(0.5, 1.5, (n, 3))
    return rng.normal(loc, scale), wc.DiagonalNormal(loc, scale)


def mixtures(n: int) -> tuple[np.ndarray, Any]:
    y, pred = normals(n)
    other = wc.Normal(pred.loc + 1.0, 0.5 * pred.scale)
    weights = np.random.default_rng(1).dirichlet(np.ones(2), n)
    return y, wc.Mixture([pred, other], weights)


def draws(n: int) -> tuple[np.ndarray, Any]:
    rng = np.random.default_rng(n)
    loc = rng.normal(size=n)
    return rng.normal(loc), wc.Samples(rng.normal(loc[:, None], 1.0, (n, 6)))


def in_jax(y: np.ndarray, pred: Any) -> tuple[Any, Any]:
    """The same arrays in JAX, where they are put without being compiled for."""
    return jax.device_put(y), pred.map_arrays(jax.device_put)


def assert_agrees(y: np.ndarray, pred: Any, *, engine: Any = PROGRAMS, **options: Any) -> None:
    found = wc.skce(*in_jax(y, pred), engine=engine, **options)
    expected = wc.skce(y, pred, **options)
    few = slice(0, 200)
    size = mean_size(y[few], pred[few], kernel=expected.kernel)
    assert isinstance(found.value, jax.Array)
    assert abs(float(found) - float(expected)) <= 1e-12 * size
    if expected.standard_error is not None:
        assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-9)


# -- how often ------------------------------------------------------------------------------------------


def test_what_is_compiled_is_heard_of() -> None:
    """Without this, lists would be empty under a JAX that names its events otherwise."""
    given = jax.device_put(np.zeros(3))
    with compilations() as found:
        jax.jit(lambda x: 2.0 * x + 1.0)(given)
    assert found


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        (normals, (1000, 1001, 1010)),
        (normals, (300, 301, 310)),
        (classes, (300, 301, 310)),
        (events, (1000, 1001, 1010)),
        (counts, (1000, 1001)),
        (vectors, (1000, 1003)),
        (mixtures, (1000, 1003)),
        (draws, (700, 705, 719)),
    ],
)
def test_nearby_numbers_of_cases_share_a_program(
    make: Callable[[int], tuple[np.ndarray, Any]], sizes: tuple[int, ...]
) -> None:
    """Checks, default kernels, preparation and standard errors compile nothing either."""
    assert_agrees(*make(sizes[0]))
    for n in sizes[1:]:
        given = in_jax(*make(n))
        with compilations() as found:
            wc.skce(*given, engine=PROGRAMS)
        assert found == []
        assert_agrees(*make(n))


@pytest.mark.parametrize(
    ("make", "n"), [(normals, 1000), (classes, 300), (counts, 1000), (vectors, 300), (mixtures, 1000)]
)
def test_so_do_they_on_a_device_of_their_own(
    make: Callable[[int], tuple[np.ndarray, Any]], n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processor stands in for a graphics card: values are copied, and sums are made on the device."""
    monkeypatch.setattr("wellcal._arrays.namespaces.is_processor", lambda device: False)
    assert_agrees(*make(n))
    given = in_jax(*make(n + 1))
    with compilations() as found:
        said = wc.skce(*given).provenance
    assert found == []
    assert "arrays" not in said  # as it is where all is read by NumPy


@pytest.mark.parametrize("make", [normals, mixtures])
def test_other_data_with_more_or_fewer_features_share_a_program(
    make: Callable[[int], tuple[np.ndarray, Any]],
) -> None:
    """How many features there are depends on the data, and goes up and down with the number of cases."""
    features: set[int] = set()
    assert_agrees(*make(1000))
    for n in (1001, 1002, 1015, 1017, 1020, 1023):
        given = in_jax(*make(n))
        with compilations() as found:
            features.add(wc.skce(*given, engine=PROGRAMS).provenance["features"])
        assert found == []
    assert len(features) > 1
    assert_agrees(*make(1023))


def test_features_come_in_few_numbers() -> None:
    def sizes(count: int) -> tuple[int, int]:
        form, rows = FiniteForm(None, count), WeightRows(np.ones((3, count)))
        problem = prepare(np.zeros(3), wc.Normal(np.zeros(3), np.ones(3)), KERNEL)
        term, own = replace(problem.terms[0], on_targets=form), problem.rows[0]._replace(on_targets=rows)
        found = evened(replace(problem, terms=(term,), rows=(own,)))
        weights = found.rows[0].on_targets.weights
        assert np.array_equal(weights[:, :count], np.ones((3, count)))
        assert not weights[:, count:].any()
        return found.terms[0].on_targets.size, weights.shape[1]  # pyright: ignore

    assert [sizes(n) for n in (1, 16, 17, 64, 65, 129)] == [(n, n) for n in (16, 16, 64, 64, 128, 192)]


@pytest.mark.parametrize("make", [normals, events])
def test_nearby_numbers_of_blocks_share_a_program(make: Callable[[int], tuple[np.ndarray, Any]]) -> None:
    """Of the same size: the list of pairs of a block is part of the program."""
    assert_agrees(*make(300), estimator="block")
    for n in (301, 310):
        given = in_jax(*make(n))
        with compilations() as found:
            wc.skce(*given, estimator="block", engine=PROGRAMS)
        assert found == []


def test_neither_does_the_biased_estimate_compile_again() -> None:
    assert_agrees(*normals(150), kernel=KERNEL, estimator="biased")
    given = in_jax(*normals(153))
    with compilations() as found:
        wc.skce(*given, kernel=KERNEL, estimator="biased", engine=PROGRAMS)
    assert found == []


@pytest.mark.parametrize("estimator", ["unbiased", "block"])
def test_other_numbers_of_a_kernel_compile_nothing(estimator: str) -> None:
    y, pred = normals(150)
    options: dict[str, Any] = {"estimator": estimator}
    assert_agrees(y, pred, kernel=3.0 * KERNEL, **options)
    given, other = in_jax(y, pred), 2.0 * (ExpDistance(Wasserstein(), 0.1) @ Gaussian(3.3))
    with compilations() as found:
        wc.skce(*given, kernel=other, engine=PROGRAMS, **options)
    assert found == []
    assert_agrees(y, pred, kernel=other, **options)


def test_another_kernel_is_another_program() -> None:
    y, pred = normals(150)
    for kernel in (KERNEL, ExpDistance(Wasserstein(), 0.8, power=2) @ Gaussian(0.9), KERNEL + 2.0 * KERNEL):
        assert_agrees(y, pred, kernel=kernel)


def test_gradients_outside_of_jit_share_a_program() -> None:
    def gradient(n: int, scale: float) -> Any:
        y, pred = in_jax(*normals(n))
        kernel = ExpDistance(Wasserstein(), scale) @ Gaussian()
        return jax.grad(lambda m: wc.skce(y, wc.Normal(m, pred.scale), kernel=kernel).value)(pred.loc)

    gradient(150, 0.5)
    with compilations() as found:
        second = gradient(150, 2.0)
    assert found == []
    assert not np.allclose(second, gradient(150, 0.5))


# -- what is computed -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 63, 64, 65, 127, 128, 129, 257])
def test_padding_adds_nothing(n: int) -> None:
    assert_agrees(*normals(n), kernel=KERNEL)


@pytest.mark.parametrize("block_size", [2, 7, 70])
def test_padding_adds_nothing_to_blocks(block_size: int) -> None:
    assert_agrees(*normals(151), kernel=KERNEL, estimator="block", block_size=block_size)


def test_weights_are_traced_where_predictions_are_known() -> None:
    y, pred = normals(40)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, 40)
    known_y, known = in_jax(y, pred)
    found = jax.jit(lambda w: wc.skce(known_y, known, kernel=KERNEL, weights=w).value)(
        jax.device_put(weights)
    )
    assert float(found) == pytest.approx(float(wc.skce(y, pred, kernel=KERNEL, weights=weights)), rel=1e-10)
    assert_agrees(y, pred, kernel=KERNEL, weights=weights)


def test_single_precision_loses_nothing_before_terms_cancel() -> None:
    """What is prepared for each case is prepared in double precision, and rounded then."""
    y, pred = normals(1000)
    exact = wc.skce(y, pred, kernel=KERNEL)
    jax.config.update("jax_enable_x64", False)
    found = wc.skce(*in_jax(y, pred), kernel=KERNEL)
    assert found.value.dtype == jnp.float32
    assert abs(float(found) - float(exact)) <= 1e-4 * exact.standard_error


@pytest.mark.parametrize("make", [normals, classes, vectors, mixtures])
def test_few_pairs_of_known_values_need_no_program(make: Callable[[int], tuple[np.ndarray, Any]]) -> None:
    y, pred = make(61)  # a number that no other test has compiled for
    kernel = wc.default_kernel(pred)
    given = in_jax(y, pred)
    with compilations() as found:
        wc.skce(*given, kernel=kernel)
    assert found == []
    assert_agrees(y, pred, kernel=kernel, engine="auto")
    jax.config.update("jax_enable_x64", False)
    assert wc.skce(*in_jax(y, pred), kernel=kernel).value.dtype == jnp.float32


# -- what is not remembered -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bell(Radial):
    """A kernel with a closed form that looks at the value of its scale."""

    lengthscale: Scale = 1.0
    pure: ClassVar[bool] = True

    def radial(self, ops: Any, squared: Any) -> Any:
        return ops.exp(-squared / math.pow(self.lengthscale, 2))


def bell_of_normals(ops: Any, kernel: Bell, a: Any, b: Any) -> Any:
    square = math.pow(kernel.lengthscale, 2)
    variance = a.v[0] + (b.v[0] if isinstance(b, Normals) else 0.0)
    spread = square + 2.0 * variance
    return ops.exp(-((a.x[0] - b.x[0]) ** 2) / spread) * (square / spread) ** 0.5


def test_a_closed_form_may_look_at_the_value_of_a_scale() -> None:
    with CLOSED_FORMS.restored():
        for other in (Normals, Points):
            closed_form(Bell, Normals, other, scalar=True)(bell_of_normals)
        for scale in (0.5, 2.0):
            assert_agrees(*normals(30), kernel=ExpDistance(Wasserstein()) @ Bell(scale))


def test_a_closed_form_that_was_replaced_is_not_remembered() -> None:
    kernel = ExpDistance(Wasserstein()) @ Gaussian(0.7)
    assert_agrees(*normals(30), kernel=kernel)

    def value() -> float:
        return float(wc.skce(*in_jax(*normals(30)), kernel=kernel, engine=PROGRAMS))

    before = value()
    with CLOSED_FORMS.restored():
        closed_form(Gaussian, Points, Points, replace=True)(lambda ops, k, a, b: 0.0 * (a.x[0] - b.x[0]))
        assert value() != pytest.approx(before)
        assert_agrees(*normals(30), kernel=kernel)
    assert value() == before


@dataclass(frozen=True)
class Hidden(Radial):
    """A kernel with a number that no field shows."""

    factor: ClassVar[float] = 1.0

    def radial(self, ops: Any, squared: Any) -> Any:
        return ops.exp(-self.factor * squared)


def test_a_kernel_that_may_hold_more_than_its_fields_is_compiled_anew(monkeypatch: Any) -> None:
    y, _ = normals(20)
    pred = wc.Samples(np.random.default_rng(0).normal(size=(20, 3)))
    for factor in (1.0, 3.0):
        monkeypatch.setattr(Hidden, "factor", factor)
        assert_agrees(y, pred, kernel=ExpDistance(Wasserstein()) @ Hidden())


def test_default_scales_of_traced_counts_are_programs_of_one_size() -> None:
    """Each tile of pairs was a part of the program: 120 counts took more than 45 seconds to compile."""

    def scale(rate: Any) -> Any:
        return wc.default_kernel(wc.Poisson(rate)).predictions.lengthscale

    rates = [np.exp(np.random.default_rng(0).normal(size=n)) for n in (20, 90)]
    sizes = {jax.make_jaxpr(scale)(rate).pretty_print(use_color=False).count("\n") for rate in rates}
    assert max(sizes) < 1.05 * min(sizes)
    for rate in rates:
        assert float(jax.jit(scale)(rate)) == pytest.approx(scale(rate), rel=1e-9)
