"""Sums over pairs of tensors by products of features, and their derivatives, against plain matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import wellcal as wc
from wellcal._arrays import chunks
from wellcal._arrays.chunks import limited
from wellcal._arrays.namespaces import to_numpy
from wellcal.engines import Linear, Tiled, torch_pairs
from wellcal.engines.torch_pairs import PairTerm, pair_gradients, pair_sums
from wellcal.kernels import ExpDistance, Gaussian, Laplacian, Wasserstein
from wellcal.problem.feature_form import closed_forms
from wellcal.problem.problem import Problem, prepare
from wellcal.torch import SKCELoss

SHAPES = {  # cases, coordinates, features, degree of the distance, its exponent
    "normals": (130, 2, 18, 2, 0.5),
    "events": (100, 1, 2, 1, 1.0),
    "classes": (130, 6, 66, 1, 1.0),
    "smooth": (130, 3, 5, 2, 1.0),
    "power": (70, 2, 9, 2, 0.8),
}


def _term(name: str, seed: int = 0) -> PairTerm:
    n, coordinates, features, degree, exponent = SHAPES[name]
    rng = np.random.default_rng(seed)
    points, values = rng.normal(size=(n, coordinates)), rng.normal(size=(n, features))
    points[3], values[5] = points[7], 0.0
    return PairTerm(torch.tensor(points), torch.tensor(values), 1.0, degree, exponent, 1.5)


def _matrix(term: PairTerm) -> np.ndarray[Any, Any]:
    """h of all pairs as the definition has it, zero on the diagonal."""
    x, f = term.points.numpy(), term.features.numpy()
    distance = (np.abs(x[:, None] - x[None]) ** term.degree).sum(axis=2)
    h = term.factor * np.exp(-(distance**term.exponent)) * (f @ f.T)
    np.fill_diagonal(h, 0.0)
    return h


def _agree(found: Any, expected: Any, h: np.ndarray[Any, Any], share: float) -> None:
    """Compare up to a share of the sum of sizes of what was added up."""
    size = np.abs(h).sum() if np.ndim(expected) == 0 else np.abs(h).sum(axis=1).max()
    assert np.abs(found.cpu().numpy() - expected).max() <= share * size


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def _on(device: str, term: PairTerm) -> PairTerm:
    given = (term.points.to(device), term.features.to(device))
    return PairTerm(*given, term.lengthscale, term.degree, term.exponent, term.factor)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SHAPES)
def test_tiles_agree_with_the_matrix(name: str, device: str) -> None:
    term = _term(name)
    h = _matrix(term)
    for size in (2**20, 64):
        with limited(cache=size, device=size):
            rows = pair_sums(_on(device, term))
        _agree(rows, h.sum(axis=1), h, 1e-15)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SHAPES)
def test_derivatives_do_not_depend_on_tiles(name: str, device: str) -> None:
    term = _term(name)
    whole = pair_gradients(term)
    torch.testing.assert_close(whole[0].numpy(), _matrix(term).sum(axis=1), rtol=1e-10, atol=1e-10)
    for size in (80**2, 64):
        with limited(cache=size, device=size):
            parts = tuple(part.cpu() for part in pair_gradients(_on(device, term)))
        torch.testing.assert_close(parts, whole, rtol=1e-10, atol=1e-10)


# -- whole problems ------------------------------------------------------------------------------


N = 1100


def _cases(name: str) -> tuple[Any, Any, Any]:
    """Targets, predictions in NumPy, and the kernel."""
    rng = np.random.default_rng(0)
    loc, scale = rng.normal(size=N), np.exp(0.3 * rng.normal(size=N))
    y = rng.normal(loc, scale)
    if name == "classes":
        probs = rng.dirichlet(np.ones(6), N)
        pred: Any = wc.Categorical(probs)
        return (probs.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1).clip(0, 5), pred, None
    if name == "many classes":
        probs = rng.dirichlet(np.ones(70), N)
        return rng.integers(0, 70, N), wc.Categorical(probs), None
    if name == "events":
        p = rng.random(N)
        return (rng.random(N) < p).astype(int), wc.Bernoulli(p), None
    if name == "mixtures":
        return y, wc.Mixture([wc.Normal(loc, scale), wc.Normal(loc + 1.0, scale)], weights=[0.9, 0.1]), None
    if name == "ensembles":
        return y, wc.Samples(rng.normal(loc, scale, (20, N)).T), None
    if name == "Laplace":
        return y, wc.Laplace(loc, scale), ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)
    kernel = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)
    both = kernel + 0.5 * (ExpDistance(Wasserstein(), 2.0, power=1.5) @ Gaussian(2.0))
    return y, wc.Normal(loc, scale), both if name == "two terms" else kernel


FAMILIES = ("normals", "two terms", "Laplace", "events", "classes", "many classes", "mixtures", "ensembles")


def _tensors(pred: Any, device: str = "cpu") -> Any:
    return pred.map_arrays(lambda a: torch.tensor(np.array(a), device=device))


def _null_deviation(problem: Problem) -> float:
    """Standard deviation of the sum over pairs, where predictions are calibrated."""
    h = np.asarray(problem.values(slice(0, 400), slice(400, 800)))
    return float(np.sqrt(np.mean(h**2) * 0.5 * N * (N - 1.0)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", FAMILIES)
def test_sums_agree_with_tiles_of_numpy(name: str, device: str) -> None:
    y, pred, kernel = _cases(name)
    kernel = wc.default_kernel(pred) if kernel is None else kernel
    problem = prepare(y, pred, kernel)
    expected = Tiled(precision="float64").triangle(problem)
    size = np.abs(expected.rows).sum() + _null_deviation(problem)
    there = prepare(torch.tensor(np.array(y), device=device), _tensors(pred, device), kernel)
    found = Tiled(precision="float64").triangle(there)
    assert found.total.device.type == device
    assert abs(float(found.total) - expected.total) <= 1e-12 * size
    assert np.abs(to_numpy(found.rows) - expected.rows).max() <= 1e-11 * size
    mixed = Tiled(precision="mixed")
    rounded = mixed.triangle(there)
    said = mixed.describe(there)
    assert "float32" in said["precision"]
    assert said["control_error"] < 1e-3
    assert abs(float(rounded.total) - expected.total) <= 0.01 * _null_deviation(problem)


def test_without_features_closed_forms_stay() -> None:
    y, pred, _ = _cases("normals")
    kernel = ExpDistance(Wasserstein()) @ Laplacian()
    expected = wc.skce(y, pred, kernel=kernel, engine="tiled")
    found = wc.skce(torch.tensor(y), _tensors(pred), kernel=kernel, precision="mixed")
    assert float(found) == pytest.approx(expected.value, rel=1e-9)
    assert "control_error" not in found.provenance


def test_weights_and_the_biased_estimate() -> None:
    y, pred, kernel = _cases("normals")
    weights = np.random.default_rng(0).uniform(0.5, 2.0, N)
    for options in (
        {"weights": weights},
        {"estimator": "biased"},
        {"estimator": "biased", "weights": weights},
    ):
        expected = wc.skce(y, pred, kernel=kernel, engine="tiled", **options)
        found = wc.skce(torch.tensor(y), _tensors(pred), kernel=kernel, **options)
        assert float(found) == pytest.approx(expected.value, rel=1e-10)
        assert found.provenance["features"] > 0


# -- without the square --------------------------------------------------------------------------


def _plane(n: int, device: str = "cpu") -> tuple[Any, Any]:
    rng = np.random.default_rng(2)
    loc, scale = rng.normal(size=n), 0.6 * np.exp(0.3 * rng.normal(size=n))
    y = torch.tensor(rng.normal(loc, scale), device=device)
    return y, wc.Normal(torch.tensor(loc, device=device), torch.tensor(scale, device=device))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("family", ["normals", "events", "two terms"])
def test_a_grid_serves_tensors(family: str, device: str) -> None:
    rng = np.random.default_rng(3)
    y, pred = _plane(6000, device)
    kernel = wc.default_kernel(pred)
    if family == "events":
        p = torch.tensor(rng.random(6000), device=device)
        y, pred, kernel = (torch.rand_like(p) < p).long(), wc.Bernoulli(p), wc.default_kernel(wc.Bernoulli(p))
    if family == "two terms":
        kernel = kernel + 0.5 * (ExpDistance(Wasserstein(), 2.0, power=1.5) @ Gaussian(2.0))
    problem = prepare(y, pred, kernel)
    exact = Tiled(precision="float64").triangle(problem)
    unit = float(np.sqrt(0.5 * 6000 * np.var(to_numpy(exact.rows))))
    for precision in ("auto", "float64"):
        engine = Linear(precision=precision)
        found = engine.triangle(problem)
        said = engine.describe(problem)
        assert (said["engine"], said["sums"]) == ("linear", "a grid")
        assert said["control_error"] < 1e-2
        assert abs(float(found.total) - float(exact.total)) <= 2.0 * said["control_error"] * unit
        assert found.total.device.type == device


def test_a_grid_gives_way_to_tiles() -> None:
    """Ten thousand length scales apart, most pairs are near where the grid is too coarse."""
    y, pred = _plane(1500)
    kernel = ExpDistance(Wasserstein(), 1e-5) @ Gaussian()
    problem = prepare(y, pred, kernel)
    exact = Tiled(precision="float64").triangle(problem)
    found = Linear().triangle(problem)
    assert float(found.total) == pytest.approx(float(exact.total), abs=1e-2 * 1500)


def test_linear_refuses_tensors_with_gradients_and_more_dimensions() -> None:
    y, pred = _plane(200)
    learned = wc.Normal(pred.loc.clone().requires_grad_(), pred.scale)
    for given, targets in ((learned, y), (wc.Categorical(torch.full((200, 5), 0.2)), torch.zeros(200))):
        with pytest.raises(ValueError, match="for tensors it needs predictions in a plane"):
            wc.skce(targets.long() if given is not learned else targets, given, engine="linear")
    with torch.no_grad():  # as in validation
        found = wc.skce(y, learned, engine="linear")
    assert float(found) == pytest.approx(float(wc.skce(y, pred)), abs=1e-2 * found.standard_error)


@pytest.mark.gpu
def test_a_device_takes_the_grid() -> None:
    y, pred = _plane(50_000, "cuda")
    found = wc.skce(y, pred)
    exact = wc.skce(y, pred, engine="tiled", precision="float64")
    assert found.provenance["sums"] == "a grid"
    assert abs(float(found) - float(exact)) <= 1e-2 * exact.standard_error
    assert found.standard_error == pytest.approx(exact.standard_error, rel=1e-3)


@pytest.mark.gpu
def test_a_device_rounds_where_it_pays() -> None:
    rng = np.random.default_rng(0)
    probs = torch.tensor(rng.dirichlet(np.ones(100), 25_000), device="cuda")
    y = torch.multinomial(probs, 1)[:, 0]
    found = wc.skce(y, wc.Categorical(probs))
    exact = wc.skce(y, wc.Categorical(probs), precision="float64")
    assert found.provenance["control_error"] < 1e-3
    assert "control_error" not in exact.provenance
    assert float(found) == pytest.approx(float(exact), rel=1e-4)


# -- derivatives ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["normals", "two terms", "events", "classes", "many classes", "mixtures"])
def test_gradients_are_those_of_closed_forms(name: str) -> None:
    y, pred, kernel = _cases(name)
    kernel = wc.default_kernel(pred) if kernel is None else kernel
    some = np.r_[0:130, 3]  # two predictions are equal
    gradients: list[Any] = []
    values: list[Any] = []

    def run() -> None:
        free: list[Any] = []

        def leaf(array: Any) -> Any:
            free.append(torch.tensor(np.array(array), requires_grad=True))
            return free[-1]

        batch = pred[some].map_arrays(leaf)
        values.append(wc.skce(torch.tensor(np.array(y)[some]), batch, kernel=kernel))
        values[-1].value.backward()
        gradients.append([x.grad for x in free])

    run()
    with closed_forms():
        run()
    assert float(values[1].value.detach()) == pytest.approx(float(values[0].value.detach()), rel=1e-9)
    assert values[1].standard_error == pytest.approx(values[0].standard_error, rel=1e-9)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("fixed", ["scale", "loc", "neither"])
def test_gradients_can_be_differentiated_again(fixed: str) -> None:
    rng = np.random.default_rng(3)
    given = {
        name: torch.tensor(rng.gamma(2.0, size=130), requires_grad=name != fixed) for name in ("loc", "scale")
    }
    y = torch.tensor(rng.normal(size=130))
    kernel = ExpDistance(Wasserstein(), lengthscale=1.5) @ Gaussian(0.8)
    needed = [array for array in given.values() if array.requires_grad]
    found: list[Any] = []

    def run() -> None:
        value = wc.skce(y, wc.Normal(**given), kernel=kernel).value
        first = torch.autograd.grad(value, needed, create_graph=True)
        found.append((*first, *torch.autograd.grad(sum((g**2).sum() for g in first), needed)))

    run()
    with closed_forms():
        run()
    torch.testing.assert_close(found[0], found[1], rtol=1e-7, atol=1e-13)


@pytest.mark.parametrize("factor", [1.0, 2.5])
def test_gradients_of_parameters_that_depend_on_each_other(factor: float) -> None:
    rng = np.random.default_rng(4)
    given = torch.tensor(rng.normal(size=200), requires_grad=True)
    y = torch.tensor(rng.normal(size=200))
    pred = wc.Normal(given, (0.3 * given).exp())
    kernel = factor * wc.default_kernel(pred)
    (found,) = torch.autograd.grad(wc.skce(y, pred, kernel=kernel).value, given, retain_graph=True)
    exact = wc.skce(y, pred, kernel=kernel, engine=Tiled(tile=(200, 200))).value
    torch.testing.assert_close(found, torch.autograd.grad(exact, given)[0], rtol=1e-8, atol=1e-13)


def test_gradients_do_not_depend_on_the_origin() -> None:
    rng = np.random.default_rng(5)
    loc, scale, y = (
        torch.tensor(values) for values in (*rng.gamma(2.0, size=(2, 200)), rng.normal(size=200))
    )
    kernel = ExpDistance(Wasserstein(), lengthscale=1.5) @ Gaussian(0.8)
    found = []
    for away in (0.0, 2.0**20):  # numbers that are exact at both places
        own = (loc * 1024.0).round() / 1024.0 + away
        pred = wc.Normal(own.requires_grad_(), scale)
        value = wc.skce((y * 1024.0).round() / 1024.0 + away, pred, kernel=kernel)
        found.append(torch.autograd.grad(value.value, own)[0])
    size = float(found[0].abs().max())
    torch.testing.assert_close(found[1], found[0], rtol=0.0, atol=1e-12 * size)


def test_gradients_do_not_suffer_from_one_that_is_far_away() -> None:
    rng = np.random.default_rng(5)
    loc, scale, y = (
        torch.tensor(values) for values in (*rng.gamma(2.0, size=(2, 200)), rng.normal(size=200))
    )
    loc[0] = y[0] = 2.0**19
    kernel = ExpDistance(Wasserstein(), lengthscale=1.5) @ Gaussian(30.0)
    pred = wc.Normal(loc.requires_grad_(), scale)
    found = wc.skce(y, pred, kernel=kernel)
    exact = Tiled(tile=(200, 200))  # closed forms
    others = wc.skce(y[1:], pred[1:], kernel=kernel, engine=exact).value * (199 * 198) / (200 * 199)
    gradient, expected = (torch.autograd.grad(sums, loc)[0][1:] for sums in (found.value, others))
    torch.testing.assert_close(gradient, expected, rtol=0.0, atol=1e-10 * float(expected.abs().max()))


class _Launches(TorchDispatchMode):
    """Counts operations that begin work on a device, and those that wait for it."""

    VIEWS = {"view", "expand", "unsqueeze", "squeeze", "slice", "select", "transpose", "t", "detach"}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.count = self.waits = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func).split(".")[1]
        self.waits += name == "_local_scalar_dense"
        self.count += name not in self.VIEWS
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("family", "most"), [("normals", 160), ("classes", 120)])
def test_a_step_of_training_is_few_launches(family: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each launch takes some microseconds on a device, and a step of few cases as long as its launches."""
    rng = np.random.default_rng(4)
    shape = (200,) if family == "normals" else (200, 10)
    given = torch.tensor(rng.normal(size=shape), requires_grad=True)
    y = torch.tensor(rng.normal(size=200) if family == "normals" else rng.integers(10, size=200))
    loss = SKCELoss()

    def step() -> tuple[float, Any]:
        pred = (
            wc.Normal(given, (0.3 * given).exp())
            if family == "normals"
            else wc.Categorical(given.softmax(dim=1))
        )
        value = loss(y, pred)
        (gradient,) = torch.autograd.grad(value, given)
        return float(value.detach()), gradient

    expected = step()
    for module in (chunks, torch_pairs):
        monkeypatch.setattr(module, "is_on_accelerator", lambda x: isinstance(x, torch.Tensor))
    with _Launches() as seen:
        found = step()
    assert found[0] == pytest.approx(expected[0], rel=1e-9)
    torch.testing.assert_close(found[1], expected[1], rtol=1e-8, atol=1e-14)
    assert seen.count <= most
    assert seen.waits <= 6  # looks at what was given, and the value itself


def test_without_a_gradient_there_are_no_derivatives() -> None:
    y, pred, kernel = _cases("normals")
    targets, scale = torch.tensor(y), torch.tensor(pred.scale)
    constant = wc.skce(targets, wc.Normal(torch.tensor(pred.loc), scale), kernel=kernel)
    loc = torch.tensor(pred.loc, requires_grad=True)
    with torch.no_grad():
        varying = wc.skce(targets, wc.Normal(loc, scale), kernel=kernel)
    assert not varying.value.requires_grad
    assert varying.provenance["features"] == constant.provenance["features"]
    assert float(varying) == pytest.approx(float(constant), rel=1e-10)


def test_a_learned_length_scale_has_a_gradient_for_many_cases() -> None:
    y, pred, _ = _cases("normals")
    scale = torch.tensor(0.8, requires_grad=True, dtype=torch.float64)
    kernel = ExpDistance(Wasserstein(), scale) @ Gaussian(0.9)
    wc.skce(torch.tensor(y), _tensors(pred), kernel=kernel).value.backward()
    with torch.no_grad():
        ahead, behind = (
            float(wc.skce(y, pred, kernel=ExpDistance(Wasserstein(), 0.8 + step) @ Gaussian(0.9)))
            for step in (1e-5, -1e-5)
        )
    assert float(scale.grad) == pytest.approx((ahead - behind) / 2e-5, rel=1e-5)


@pytest.mark.gpu
def test_gradients_on_the_device_are_those_of_the_processor() -> None:
    y, pred, kernel = _cases("normals")
    batch = _tensors(pred, "cuda")
    loc = batch.loc.clone().requires_grad_()
    wc.skce(torch.tensor(y, device="cuda"), wc.Normal(loc, batch.scale), kernel=kernel).value.backward()
    here = torch.tensor(pred.loc, requires_grad=True)
    wc.skce(torch.tensor(y), wc.Normal(here, torch.tensor(pred.scale)), kernel=kernel).value.backward()
    torch.testing.assert_close(loc.grad.cpu(), here.grad, rtol=1e-8, atol=1e-13)
