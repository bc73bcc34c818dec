"""Gradients in PyTorch against finite differences: every family and way of visiting pairs, and coincidences.

Steps are taken in free coordinates (logits, Cholesky factors), so that parameters stay parameters.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from typing import Any

import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal.kernels import (
    Callable,
    Delta,
    Euclidean,
    ExpDistance,
    Gaussian,
    Hellinger,
    Kernel,
    Laplacian,
    MaximumMeanDiscrepancy,
    MixtureWasserstein,
    TotalVariation,
    Wasserstein,
)

from .examples import EXAMPLES, LABELS, LOC, LOC_2, LOCS, PROBS, SCALE, SCALE_2, SCALES, Example, Y

ROWS = np.array([0, 1, 2, 3])
TWICE = np.array([0, 1, 1])
"""Rows of which two are one prediction."""

ESTIMATORS = ("unbiased", "biased", "block")
CLOSED = [name for name, example in EXAMPLES.items() if not example.lowered]
LOWERED = {
    # Atoms, and the largest difference from the derivative of the rule with atoms that move: the error of
    # the rule itself, which a likelihood ratio shares but does not copy.
    "StudentT": (wc.Lowering(nodes=128), 1e-7),
    "Gamma": (wc.Lowering(nodes=128), 1e-7),
    "LogNormal": (wc.Lowering(nodes=128), 1e-7),
    "Beta": (wc.Lowering(nodes=128), 1e-6),
    "PowerExponential": (wc.Lowering(nodes=192), 2e-5),
    "Dirichlet": (wc.Lowering(points=256), 1e-3),
    "PowerExponential of vectors": (wc.Lowering(points=256), 4e-3),
}


def leaves(arrays: list[np.ndarray]) -> list[torch.Tensor]:
    return [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in arrays]


def check_gradient(
    function: Function[..., torch.Tensor], given: list[torch.Tensor], tolerance: float
) -> None:
    """Parameter by parameter, with what else PyTorch asks of a gradient."""
    options: dict[str, Any] = {"eps": 1e-6, "atol": tolerance, "rtol": 1e-5}
    assert torch.autograd.gradcheck(function, given, check_undefined_grad=False, **options)


def check_slopes(function: Function[..., torch.Tensor], given: list[torch.Tensor], tolerance: float) -> None:
    """Along two random directions in the space of all parameters, in which no wrong entry can hide."""
    rng, step = np.random.default_rng(0), 1e-6
    values = function(*given).reshape(-1)
    gradients = [torch.autograd.grad(value, given, retain_graph=True) for value in values]
    for _ in range(2):
        direction = [torch.tensor(rng.normal(size=tuple(x.shape))) for x in given]
        with torch.no_grad():
            ahead, behind = (
                function(*(x + sign * step * v for x, v in zip(given, direction, strict=True))).reshape(-1)
                for sign in (1.0, -1.0)
            )
        slopes = (ahead - behind) / (2.0 * step)
        found = torch.stack(
            [sum((g * v).sum() for g, v in zip(gradient, direction, strict=True)) for gradient in gradients]
        )
        torch.testing.assert_close(found, slopes, rtol=1e-5, atol=tolerance)


def value_of(example: Example, y: Any, kernel: Kernel, **options: Any) -> Function[..., torch.Tensor]:
    return lambda *free: wc.skce(y, example.from_free(*free), kernel=kernel, **options).value


# -- closed forms -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLOSED)
def test_gradients_match_finite_differences(name: str) -> None:
    example = EXAMPLES[name]
    free = leaves(example.free(ROWS))
    y = example.targets[ROWS]
    kernel = wc.default_kernel(example.build(rows=ROWS))

    def values(*given: torch.Tensor) -> torch.Tensor:
        pred = example.from_free(*given)
        estimators = ("biased", "block")  # the biased one has the pairs of the unbiased one, and the diagonal
        return torch.stack([wc.skce(y, pred, kernel=kernel, estimator=e).value for e in estimators])

    check_slopes(values, free, 1e-8)


@pytest.mark.parametrize("name", CLOSED)
def test_gradients_where_two_predictions_coincide(name: str) -> None:
    """A distance has a kink there: finite differences to both sides cancel, as the zero subgradient says."""
    example = EXAMPLES[name]
    free = leaves(example.free(TWICE))
    kernel = wc.default_kernel(example.build(rows=TWICE))
    check_slopes(value_of(example, example.targets[TWICE], kernel, estimator="biased"), free, 2e-7)


@pytest.mark.parametrize("name", EXAMPLES)
def test_default_kernels_are_constants_for_gradients(name: str) -> None:
    example = EXAMPLES[name]
    y, options = example.targets[TWICE], {"expectations": example.expectations}
    kernel = wc.default_kernel(example.build(rows=TWICE), **options)
    gradients: list[list[torch.Tensor]] = []
    for chosen in (kernel, None):
        free = leaves(example.free(TWICE))
        wc.skce(y, example.from_free(*free), kernel=chosen, **options).value.backward()
        gradients.append([x.grad for x in free])
    for fixed, default in zip(*gradients, strict=True):
        assert torch.isfinite(fixed).all()
        torch.testing.assert_close(default, fixed, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("family", "parameters", "kernel"),
    [
        (wc.Normal, (LOC, SCALE), ExpDistance(Wasserstein()) @ Gaussian()),
        (wc.Normal, (LOC, SCALE), ExpDistance(MaximumMeanDiscrepancy(Laplacian()), power=2.0) @ Laplacian()),
        (wc.DiagonalNormal, (LOCS, SCALES), ExpDistance(Wasserstein()) @ Gaussian()),
        (wc.Laplace, (LOC, SCALE), ExpDistance(Wasserstein()) @ Laplacian()),
        (wc.Laplace, (LOC, SCALE), ExpDistance(Wasserstein()) @ Gaussian()),
    ],
)
def test_gradients_where_targets_are_the_locations(family: Any, parameters: Any, kernel: Kernel) -> None:
    given = leaves([p[TWICE] for p in parameters])
    y = parameters[0][TWICE]
    check_slopes(lambda *p: wc.skce(y, family(*p), kernel=kernel, estimator="biased").value, given, 2e-7)


@pytest.mark.parametrize("family", [wc.Laplace, wc.Normal])
@pytest.mark.parametrize("kernel", [Laplacian(1.0), Gaussian(1.0)])
def test_gradients_where_rates_coincide(family: Any, kernel: Kernel) -> None:
    """All scales are those of the kernel: divided differences of three equal rates."""
    scale = np.ones(4)
    for loc in (np.array([0.0, 0.5, 0.5, 2.0]), np.zeros(4)):
        y = np.array([0.0, 0.1, 1.5, -1.0])
        for on_predictions in (
            ExpDistance(Euclidean()),
            ExpDistance(MaximumMeanDiscrepancy(kernel), power=2.0),
        ):
            chosen = on_predictions @ kernel
            check_slopes(
                lambda m, s, y=y, chosen=chosen: wc.skce(y, family(m, s), kernel=chosen).value,
                leaves([loc, scale]),
                5e-7,
            )


KERNELS: dict[str, tuple[str, Kernel]] = {
    "Hellinger": ("Normal", ExpDistance(Hellinger(), 0.7) @ Gaussian()),
    "Hellinger between classes": ("Categorical", ExpDistance(Hellinger(), 0.7, power=2.0) @ Delta()),
    "counts and Delta": ("Poisson", ExpDistance(Hellinger()) @ Delta()),
    "power 1.5": ("DiagonalNormal", ExpDistance(Euclidean(), power=1.5) @ Gaussian()),
    "Wasserstein between full covariances": (
        "MultivariateNormal",
        ExpDistance(Wasserstein()) @ Gaussian(2.0),
    ),
    "MMD with a Laplacian": (
        "Mixture",
        ExpDistance(MaximumMeanDiscrepancy(Laplacian()), power=2.0) @ Laplacian(),
    ),
    "transport between draws": ("Samples", ExpDistance(Wasserstein(), 0.5) @ Laplacian()),
    "transport between mixtures": ("Mixture", ExpDistance(MixtureWasserstein()) @ Gaussian()),
    "sum": (
        "Normal",
        2.0 * (ExpDistance(Wasserstein()) @ Gaussian())
        + ExpDistance(Hellinger()) @ (Laplacian() + Gaussian(3.0)),
    ),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_of_other_kernels(kernel: str) -> None:
    name, chosen = KERNELS[kernel]
    example = EXAMPLES[name]
    for rows, tolerance in ((ROWS, 1e-8), (TWICE, 5e-7)):
        value = value_of(example, example.targets[rows], chosen, estimator="biased")
        free = leaves(example.free(rows))
        if rows is TWICE and kernel == "transport between mixtures":
            # Near equal mixtures it grows like the root of a change of weights: no step is small enough.
            assert all(torch.isfinite(g).all() for g in torch.autograd.grad(value(*free), free))
        else:
            check_slopes(value, free, tolerance)


def test_gradients_of_coinciding_components() -> None:
    """A mixture with two equal components, and two equal mixtures."""
    w, m, s = np.array([[0.5, 0.5], [0.3, 0.7], [0.3, 0.7]]), LOC[:3].copy(), SCALE[:3].copy()
    m[2], s[2] = m[1], s[1]
    kernel = ExpDistance(MaximumMeanDiscrepancy(Gaussian()), power=2.0) @ Gaussian()

    def value(logits: Any, m1: Any, s1: Any, m2: Any, s2: Any) -> torch.Tensor:
        pred = wc.Mixture([wc.Normal(m1, s1), wc.Normal(m2, s2)], torch.softmax(logits, -1))
        return wc.skce(Y[:3], pred, kernel=kernel, estimator="biased").value

    check_slopes(value, leaves([np.log(w), m, s, m, s]), 1e-8)


# -- lowered families -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOWERED)
def test_likelihood_ratios_give_the_gradients_of_lowered_families(name: str) -> None:
    example, (options, tolerance) = EXAMPLES[name], LOWERED[name]
    rows = ROWS[:3]
    y = example.targets[rows]
    k = Gaussian(0.9)
    kernel = ExpDistance(MaximumMeanDiscrepancy(k), 0.4, power=2.0) @ k
    free = leaves(example.free(rows))
    value = value_of(example, y, kernel, expectations=options)
    gradients = torch.autograd.grad(value(*free), free)
    assert max(float(g.abs().max()) for g in gradients) > 5 * tolerance
    step = 1e-4
    with torch.no_grad():
        for x, gradient in zip(free, gradients, strict=True):
            flat = x.view(-1)
            for k in range(min(len(flat), 2 if x.ndim == 1 else 4)):
                before = float(flat[k])
                around = []
                for there in (before + step, before - step):
                    flat[k] = there
                    around.append(float(value(*free)))
                flat[k] = before
                assert abs((around[0] - around[1]) / (2 * step) - float(gradient.view(-1)[k])) <= tolerance


# -- kernels with parameters ------------------------------------------------------------------------------


def test_gradients_of_length_scales_and_factors() -> None:
    y = Y[ROWS]

    def values(a: Any, b: Any, c: Any, m: Any, s: Any) -> torch.Tensor:
        kernel = c * (ExpDistance(Wasserstein(), a) @ Gaussian(b)) + ExpDistance(Hellinger()) @ Laplacian(b)
        pred = wc.Normal(m, s)
        return torch.stack([wc.skce(y, pred, kernel=kernel, estimator=e).value for e in ESTIMATORS])

    scalars = [np.array(0.8), np.array(1.1), np.array(0.4)]
    check_gradient(values, leaves([*scalars, LOC[ROWS], SCALE[ROWS]]), 1e-8)
    fixed = [torch.tensor(LOC[ROWS]), torch.tensor(SCALE[ROWS])]
    check_gradient(lambda *k: values(*k, *fixed), leaves(scalars), 1e-8)


def test_gradients_of_the_kernel_of_classes() -> None:
    """The matrix of a kernel on a support is not a row of any case."""
    y, p = np.array([-1.0, 0.5, 2.0, 4.0])[LABELS[ROWS]], torch.tensor(PROBS[ROWS])

    def value(a: Any) -> torch.Tensor:
        pred = wc.Categorical(p, support=[-1.0, 0.5, 2.0, 4.0])
        return wc.skce(y, pred, kernel=ExpDistance(TotalVariation()) @ Gaussian(a), estimator="biased").value

    check_gradient(value, leaves([np.array(1.3)]), 1e-8)


def test_gradients_through_a_users_function() -> None:
    weight = np.array([0.7, -0.4])

    def value(w: Any, m: Any, s: Any) -> torch.Tensor:
        def on_predictions(P: Any, Q: Any) -> torch.Tensor:
            left, right = (w[0] * R.loc + w[1] * R.scale for R in (P, Q))
            return torch.exp(-((left[:, None] - right[None, :]) ** 2))

        return wc.skce(Y[ROWS], wc.Normal(m, s), kernel=Callable(on_predictions) @ Gaussian()).value

    check_gradient(value, leaves([weight, LOC[ROWS], SCALE[ROWS]]), 1e-8)


# -- how PyTorch asks for gradients --------------------------------------------------------------------------

KERNEL = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_second_derivatives(estimator: str) -> None:
    given = leaves([LOC[ROWS], SCALE[ROWS]])

    def value(m: Any, s: Any) -> torch.Tensor:
        return wc.skce(Y[ROWS], wc.Normal(m, s), kernel=KERNEL, estimator=estimator).value

    assert torch.autograd.gradgradcheck(value, given, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", EXAMPLES)
def test_gradients_to_be_differentiated_again_are_the_same(name: str) -> None:
    example = EXAMPLES[name]
    options: dict[str, Any] = {"expectations": example.expectations}
    kernel = wc.default_kernel(example.build(rows=ROWS), **options)
    found: list[Any] = []
    for again in (False, True):
        free = leaves(example.free(ROWS))
        value = value_of(example, example.targets[ROWS], kernel, **options)(*free)
        found.append(torch.autograd.grad(value, free, create_graph=again))
    torch.testing.assert_close(found[1], found[0], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("learned", ["all", "the kernel"])
def test_second_derivatives_where_rows_are_made_of_others_and_of_the_kernel(learned: str) -> None:
    weights = np.random.default_rng(0).normal(size=(4, 3))
    scalars, logits = (
        leaves([np.array(0.9), np.array(0.4)]),
        torch.tensor(weights, requires_grad=learned == "all"),
    )

    def value(a: Any, c: Any, x: Any = logits) -> torch.Tensor:
        kernel = c * (ExpDistance(MaximumMeanDiscrepancy(Gaussian(a)), power=2.0) @ Gaussian(a))
        pred = wc.Categorical(torch.softmax(x, -1), support=[-1.0, 0.5, 2.0])
        return wc.skce([0.5, -1.0, 2.0, 0.5], pred, kernel=kernel).value

    given = [*scalars, logits] if learned == "all" else scalars
    first = torch.autograd.grad(value(*given), given)
    torch.testing.assert_close(torch.autograd.grad(value(*given), given, create_graph=True), first)
    assert torch.autograd.gradgradcheck(value, given, atol=1e-6, rtol=1e-5)


def test_second_derivatives_by_full_covariances() -> None:
    example = EXAMPLES["MultivariateNormal"]
    kernel, free = wc.default_kernel(example.build(rows=ROWS)), leaves(example.free(ROWS))
    value = value_of(example, example.targets[ROWS], kernel)
    assert torch.autograd.gradgradcheck(value, free, atol=1e-6, rtol=1e-5)
    slopes = torch.autograd.grad(value(*free), free, create_graph=True)
    curves = torch.autograd.grad(sum((s**2).sum() for s in slopes), free, create_graph=True)
    with pytest.raises(NotImplementedError, match="full covariances are known twice"):
        torch.autograd.grad(sum((c**2).sum() for c in curves), free)


def _concentrations(rows: int, coordinates: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.5, 3.0, (rows, coordinates))


COV = np.array([[[2.0, 0.3], [0.3, 1.0]], [[1.0, 0.2], [0.2, 0.8]], [[0.5, 0.1], [0.1, 2.0]]])
POSITIVE = np.array([0.9, 1.4, 2.1])
EQUAL = np.full((3, 3), 1.0 / 3.0)
ONCE: dict[str, tuple[str, Function[[Any], Any], np.ndarray]] = {
    "few concentrations": (
        "concentration of Dirichlet",
        lambda x: wc.skce(EQUAL, wc.Dirichlet(x)),
        _concentrations(3, 3),
    ),
    "many concentrations": (
        "concentration of Dirichlet",
        lambda x: wc.skce(np.full((3, 6), 1.0 / 6.0), wc.Dirichlet(x), expectations=wc.Lowering(points=32)),
        _concentrations(3, 6),
    ),
    "scale": ("the loc", lambda x: wc.skce(POSITIVE, wc.PowerExponential(x, x, x)), POSITIVE),
    "shape": (
        "the shape",
        lambda x: wc.skce(POSITIVE, wc.PowerExponential(torch.zeros(3), torch.ones(3), x)),
        POSITIVE,
    ),
    "matrices": (
        "matrices of PowerExponential",
        lambda x: wc.skce(
            EQUAL[:, :2],
            wc.PowerExponential(torch.zeros(3, 2), shape=torch.ones(3), cov=x),
            expectations=wc.Lowering(points=32),
        ),
        COV,
    ),
    "locations": (
        "locations of vectors of PowerExponential",
        lambda x: wc.skce(
            EQUAL[:, :2],
            wc.PowerExponential(x, shape=torch.ones(3), cov=COV),
            expectations=wc.Lowering(points=32),
        ),
        EQUAL[:, :2] + 0.1,
    ),
    "rotations": (
        "covariances under the Wasserstein metric",
        lambda x: wc.skce(
            EQUAL[:, :2],
            wc.MultivariateNormal(torch.zeros(3, 2), x),
            kernel=ExpDistance(Wasserstein()) @ Gaussian(),
        ),
        COV,
    ),
    "couplings": (
        "weights of mixtures",
        lambda x: wc.skce(
            POSITIVE,
            wc.Mixture(
                [wc.Normal(x, x), wc.Normal(0.0 * x, 1.0 + 0.0 * x)], torch.stack([x, 4.0 - x], 1) / 4.0
            ),
            kernel=ExpDistance(MixtureWasserstein()) @ Gaussian(),
        ),
        POSITIVE,
    ),
    "scores": ("the parameters of this score", lambda x: wc.crps(POSITIVE, wc.Gamma(x, x)), POSITIVE),
}


@pytest.mark.parametrize("name", ONCE)
def test_second_derivatives_that_are_not_known_are_errors(name: str) -> None:
    told, measure, given = ONCE[name]
    (x,) = leaves([given])
    (slope,) = torch.autograd.grad(measure(x).value, x, create_graph=True)
    torch.testing.assert_close(slope, torch.autograd.grad(measure(x).value, x)[0])
    with pytest.raises(NotImplementedError, match=f"{told}.* once only; take differences"):
        torch.autograd.grad((slope**2).sum(), x)


@pytest.mark.parametrize("name", ["grad", "jacrev", "jacfwd", "vmap"])
def test_torch_func_is_told_the_way_to_autograd(name: str) -> None:
    def value(m: Any) -> torch.Tensor:
        return wc.skce(Y[ROWS], wc.Normal(m, SCALE[ROWS]), kernel=KERNEL).value

    given = torch.tensor(LOC[ROWS])
    with pytest.raises(RuntimeError, match=r"differentiate with torch\.autograd"):
        getattr(torch.func, name)(value)(given[None] if name == "vmap" else given)


def test_tiles_and_blocks_have_one_gradient() -> None:
    """Several tiles and lists of pairs against all pairs in one tile."""
    n = len(LOC)
    expected: list[torch.Tensor] | None = None
    for tile in ((1000, 1000), (1, 1), (4, 3)):
        m, s = leaves([LOC, SCALE])
        engine = wc.engines.Tiled(tile)
        wc.skce(Y, wc.Normal(m, s), kernel=KERNEL, engine=engine).value.backward()
        expected = expected or [m.grad, s.grad]
        torch.testing.assert_close([m.grad, s.grad], expected, rtol=1e-12, atol=1e-15)
    m, s = leaves([LOC, SCALE])
    wc.skce(Y, wc.Normal(m, s), kernel=KERNEL, estimator="block", block_size=n).value.backward()
    torch.testing.assert_close([m.grad, s.grad], expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("block_size", [2, 3, 5])
def test_gradients_of_blocks_are_means_of_gradients_within_them(block_size: int) -> None:
    m, s = leaves([LOC, SCALE])
    wc.skce(Y, wc.Normal(m, s), kernel=KERNEL, estimator="block", block_size=block_size).value.backward()
    count = len(LOC) // block_size
    a, b = leaves([LOC, SCALE])
    for k in range(count):
        rows = slice(k * block_size, (k + 1) * block_size)
        (wc.skce(Y[rows], wc.Normal(a[rows], b[rows]), kernel=KERNEL).value / count).backward()
    torch.testing.assert_close([m.grad, s.grad], [a.grad, b.grad], rtol=1e-12, atol=1e-15)


def test_only_what_asks_gets_a_gradient() -> None:
    m, s = torch.tensor(LOC, requires_grad=True), torch.tensor(SCALE)
    both = leaves([LOC, SCALE])
    wc.skce(Y, wc.Normal(m, s), kernel=KERNEL).value.backward()
    wc.skce(Y, wc.Normal(*both), kernel=KERNEL).value.backward()
    torch.testing.assert_close(m.grad, both[0].grad, rtol=1e-12, atol=1e-15)
    assert s.grad is None
    value = wc.skce(Y, wc.Normal(*both), kernel=KERNEL).value
    (alone,) = torch.autograd.grad(value, both[1:])
    torch.testing.assert_close(alone, both[1].grad, rtol=1e-12, atol=1e-15)


def test_a_graph_can_be_walked_twice() -> None:
    m, s = leaves([LOC, SCALE])
    value = wc.skce(Y, wc.Normal(m, s), kernel=KERNEL).value
    value.backward(retain_graph=True)
    once = m.grad.clone()
    value.backward()
    torch.testing.assert_close(m.grad, 2.0 * once, rtol=1e-12, atol=0)


def test_no_graph_where_none_is_wanted() -> None:
    m, s = leaves([LOC, SCALE])
    with torch.no_grad():
        assert not wc.skce(Y, wc.Normal(m, s)).value.requires_grad
    assert not wc.skce(Y, wc.Normal(m.detach(), s.detach())).value.requires_grad
    estimate = wc.skce(Y, wc.Normal(m, s))
    assert estimate.value.requires_grad
    assert not getattr(estimate.standard_error, "requires_grad", False)


def test_gradients_of_targets() -> None:
    """Targets that a model produces are parameters too."""
    m, s = torch.tensor(LOC[ROWS]), torch.tensor(SCALE[ROWS])
    check_gradient(lambda y: wc.skce(y, wc.Normal(m, s), kernel=KERNEL).value, leaves([Y[ROWS]]), 1e-8)


def test_kce_has_a_gradient_and_none_at_zero() -> None:
    given = leaves([LOC[ROWS], SCALE[ROWS]])
    check_gradient(lambda m, s: wc.kce(Y[ROWS], wc.Normal(m, s), kernel=KERNEL).value, given, 1e-8)
    probs = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    zero = wc.kce(
        np.array([0, 1]), wc.Categorical(probs), kernel=ExpDistance(TotalVariation()) @ Delta()
    ).value
    zero.backward()
    assert float(zero.detach()) == 0.0
    assert torch.equal(probs.grad, torch.zeros_like(probs))


# -- precision ------------------------------------------------------------------------------------------


def test_single_precision_parameters_are_computed_in_double() -> None:
    m, s = (torch.tensor(x, dtype=torch.float32, requires_grad=True) for x in (LOC, SCALE))
    estimate = wc.skce(torch.tensor(Y, dtype=torch.float32), wc.Normal(m, s), kernel=KERNEL)
    assert estimate.value.dtype == torch.float64
    assert estimate.provenance["precision"] == "float64"
    rounded = [x.astype(np.float32).astype(np.float64) for x in (Y, LOC, SCALE)]
    expected = wc.skce(rounded[0], wc.Normal(*rounded[1:]), kernel=KERNEL).value
    assert float(estimate) == pytest.approx(expected, rel=1e-10)
    estimate.value.backward()
    wide = leaves(rounded[1:])
    wc.skce(rounded[0], wc.Normal(*wide), kernel=KERNEL).value.backward()
    for narrow, exact in zip((m, s), wide, strict=True):
        assert narrow.grad.dtype == torch.float32
        size = float(exact.grad.abs().max())  # two terms of a gradient may cancel after rounding
        torch.testing.assert_close(narrow.grad.double(), exact.grad, rtol=0, atol=3e-7 * size)


def test_a_network_learns_from_the_loss() -> None:
    """A scale that is too small by half is found by descent."""
    generator = torch.Generator().manual_seed(0)
    m = torch.randn(200, generator=generator)
    y = m + torch.randn(200, generator=generator)
    log_scale = torch.tensor(np.log(0.5), dtype=torch.float32, requires_grad=True)
    optimiser = torch.optim.Adam([log_scale], lr=0.1)
    kernel = ExpDistance(Wasserstein()) @ Gaussian(0.5)
    losses = []
    for _ in range(20):
        optimiser.zero_grad()
        loss = wc.skce(y, wc.Normal(m, torch.exp(log_scale).expand(200)), kernel=kernel).value
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.2 * losses[0]
    assert float(log_scale.detach()) == pytest.approx(0.0, abs=0.25)


def test_two_families_in_one_mixture_of_coinciding_locations() -> None:
    """Normal and Laplace at one place, with scales that meet the kernel's."""
    kernel = ExpDistance(MaximumMeanDiscrepancy(Laplacian()), power=2.0) @ Laplacian()

    def value(m: Any, s: Any, m2: Any, s2: Any) -> torch.Tensor:
        pred = wc.Mixture([wc.Normal(m, s), wc.Laplace(m2, s2)])
        return wc.skce(LOC[:3], pred, kernel=kernel).value

    check_slopes(value, leaves([LOC[:3], SCALE[:3], LOC[:3], np.ones(3)]), 1e-8)
    check_slopes(value, leaves([LOC[:3], SCALE[:3], LOC_2[:3], SCALE_2[:3]]), 1e-8)
