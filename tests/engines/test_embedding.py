"""UCME in every array library: one value, derivatives, compilation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal import ucme
from wellcal._arrays.namespaces import to_numpy
from wellcal.kernels import Callable, Delta, ExpDistance, Gaussian, Joint, TotalVariation, Wasserstein
from wellcal.problem.locations import draw_locations

from .examples import EXAMPLES, LIBRARIES, LOC, SCALE, Example, Y, jax_x64

AT = slice(3, 8)  # some of the cases serve as locations


def value_in(example: Example, library: str, **options: Any) -> float:
    """UCME^2 at locations that are cases with the target of the next one."""
    convert, setting = LIBRARIES[library].convert, LIBRARIES[library].setting
    with setting():
        pred = example.build(convert)
        at = example.build(convert, AT), convert(np.roll(example.targets, 1, axis=0)[AT])
        found = ucme(
            convert(example.targets), pred, locations=at, expectations=example.expectations, **options
        )
        return float(to_numpy(found.value))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_family(name: str) -> None:
    example = EXAMPLES[name]
    expected = value_in(example, "read-only")
    assert 0.0 < expected < 1.0
    for library in ("torch",) if example.lowered else ("torch", "strict"):
        assert value_in(example, library) == pytest.approx(expected, rel=1e-9), library


@pytest.mark.parametrize("name", ["Bernoulli", "Categorical with classes", "Samples", "Quantiles"])
def test_families_in_jax(name: str) -> None:
    """Compiled as a whole, with the kernel of NumPy and locations that are constants."""
    example = EXAMPLES[name]
    words = example.targets.dtype.kind == "U"
    at = example.build(rows=AT), np.roll(example.targets, 1, axis=0)[AT]
    expected = ucme(example.targets, example.build(), locations=at)

    @jax.jit
    def compiled(y: Any, *parameters: Any) -> Any:
        targets = example.targets if words else y
        return ucme(targets, example.family(*parameters), locations=at, kernel=expected.kernel).value

    with jax_x64():
        y = jnp.zeros(1) if words else jnp.asarray(example.targets)
        found = compiled(y, *map(jnp.asarray, example.parameters))
    assert float(found) == pytest.approx(expected.value, rel=1e-9)


def test_values_have_the_type_of_their_library() -> None:
    at = wc.Normal(LOC[AT], SCALE[AT]), Y[AT]
    expected = ucme(Y, wc.Normal(LOC, SCALE), locations=at).value
    assert isinstance(expected, float)
    tensor = ucme(torch.as_tensor(Y), wc.Normal(torch.as_tensor(LOC), torch.as_tensor(SCALE)), locations=at)
    assert isinstance(tensor.value, torch.Tensor)
    assert tensor.value.ndim == 0
    with jax_x64():  # step by step, with the default kernel
        array = ucme(jnp.asarray(Y), wc.Normal(jnp.asarray(LOC), jnp.asarray(SCALE)), locations=at).value
    assert isinstance(array, jax.Array)
    assert float(array) == pytest.approx(expected, rel=1e-9)


def test_numpy_locations_serve_tensors() -> None:
    at = wc.Normal(LOC[AT], SCALE[AT]), Y[AT]
    expected = float(ucme(Y, wc.Normal(LOC, SCALE), locations=at))
    pred = wc.Normal(torch.as_tensor(LOC), torch.as_tensor(SCALE))
    assert float(ucme(Y, pred, locations=at)) == pytest.approx(expected, rel=1e-12)


def test_drawn_locations_are_the_same_in_every_library() -> None:
    expected = draw_locations(wc.Normal(LOC, SCALE), 6, rng=1)
    for library in ("torch", "jax", "strict"):
        with LIBRARIES[library].setting():
            convert = LIBRARIES[library].convert
            found: Any = draw_locations(wc.Normal(convert(LOC), convert(SCALE)), 6, rng=1)
            np.testing.assert_array_equal(to_numpy(found.predictions.loc), expected.predictions.loc)
            np.testing.assert_array_equal(to_numpy(found.targets), expected.targets)


# -- derivatives ------------------------------------------------------------------------------------------

KERNEL = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.7)


def of_parameters(xp: Any, loc: Any, scale: Any, y: Any) -> Any:
    at = wc.Normal(xp.asarray(LOC[AT] + 0.3), xp.asarray(SCALE[AT])), xp.asarray(Y[AT] - 0.2)
    return ucme(y, wc.Normal(loc, scale), locations=at, kernel=KERNEL).value


def test_torch_gradient() -> None:
    given = [torch.as_tensor(a).clone().requires_grad_(True) for a in (LOC, SCALE, Y)]
    assert torch.autograd.gradcheck(lambda *a: of_parameters(torch, *a), given, eps=1e-6, atol=1e-8)


def test_drawn_locations_are_constants() -> None:
    loc = torch.as_tensor(LOC).clone().requires_grad_(True)
    found = draw_locations(wc.Normal(loc, torch.as_tensor(SCALE)), 4, rng=0)
    assert not found.targets.requires_grad
    assert not found.predictions.loc.requires_grad  # pyright: ignore
    ucme(torch.as_tensor(Y), wc.Normal(loc, torch.as_tensor(SCALE)), locations=4, rng=0).value.backward()
    assert bool(torch.any(loc.grad != 0))


def test_jax_compiles_and_differentiates() -> None:
    with jax_x64():
        arguments = [jnp.asarray(a) for a in (LOC, SCALE, Y)]

        def function(*a: Any) -> Any:
            return of_parameters(jnp, *a)

        value, gradient = jax.jit(jax.value_and_grad(function))(*arguments)
    assert float(value) == pytest.approx(of_parameters(np, LOC, SCALE, Y), rel=1e-12)
    loc = torch.as_tensor(LOC).clone().requires_grad_(True)
    of_parameters(torch, loc, torch.as_tensor(SCALE), torch.as_tensor(Y)).backward()
    np.testing.assert_allclose(to_numpy(gradient), to_numpy(loc.grad), rtol=1e-9)


def test_locations_are_not_drawn_under_tracing() -> None:
    # Converted outside: JAX remembers a NumPy array that a failed trace converted, in single precision.
    y = jnp.asarray(Y)

    def function(loc: Any) -> Any:
        return ucme(y, wc.Normal(loc, jnp.ones(len(Y))), locations=3, kernel=KERNEL, rng=0).value

    with pytest.raises(TypeError, match="locations cannot be drawn"):
        jax.jit(function)(jnp.asarray(LOC))


# -- kernels of users -------------------------------------------------------------------------------------


def overlap(P: Any, Q: Any) -> Any:
    return P.probs @ Q.probs.T


def joint(P: Any, y: Any, Q: Any, z: Any) -> Any:
    return (P.probs @ Q.probs.T + 0.5) ** (1.0 + (y[:, None] - z[None, :]) ** 2)


@pytest.mark.parametrize(
    ("kernel", "library"),
    [
        (Callable(overlap) @ Delta(), "torch"),
        (Joint(joint), "torch"),
        (Joint(joint), "jax"),
        (ExpDistance(TotalVariation()) @ Gaussian(2.0), "jax"),
    ],
    ids=repr,
)
def test_kernels_of_users(kernel: Any, library: str) -> None:
    example = EXAMPLES["Categorical"]
    expected = value_in(example, "read-only", kernel=kernel)
    assert value_in(example, library, kernel=kernel) == pytest.approx(expected, rel=1e-12)
