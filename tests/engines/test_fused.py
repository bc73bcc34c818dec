"""Sums over pairs of tensors, by Triton and by PyTorch, and their derivatives, beside plain matrices."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import wellcal as wc
from wellcal._arrays import chunks
from wellcal._arrays.chunks import limited
from wellcal.engines import Fused, Tiled, fused, tensor_pairs, triton_pairs
from wellcal.engines.line_gradients import LineFeatures
from wellcal.engines.pair_gradients import sum_with_derivatives
from wellcal.engines.pair_terms import PairTerm
from wellcal.engines.rounded_pairs import correction_of, products_of, shortened, sums_of
from wellcal.expectations import gaussian_features
from wellcal.expectations.differences import OnALine
from wellcal.expectations.gaussian_features import FeatureGrid
from wellcal.expectations.tensor_features import line_features
from wellcal.kernels import ExpDistance, Gaussian, Laplacian, Wasserstein
from wellcal.problem import defaults
from wellcal.problem.problem import Problem, prepare
from wellcal.torch import SKCELoss

KERNELS = Path(triton_pairs.__file__).with_name("triton_kernels.py")
SHAPES = {  # cases, coordinates, features, degree of the distance, its exponent
    "normals": (130, 2, 18, 2, 0.5),
    "events": (100, 1, 2, 1, 1.0),
    "classes": (130, 6, 66, 1, 1.0),
    "smooth": (130, 3, 5, 2, 1.0),
    "power": (70, 2, 9, 2, 0.8),
}


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Any]:
    """The kernels for Triton's interpreter, which has to be asked for before Triton itself is imported.

    Whoever has imported it before finds it again as it was; its compiled part exists once in a process, and
    stays.
    """
    before = _of_triton()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        for name in before:
            del sys.modules[name]
        spec = importlib.util.spec_from_file_location("interpreted_kernels", KERNELS)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    for name in _of_triton():
        del sys.modules[name]
    sys.modules.update(before)


def _of_triton() -> dict[str, Any]:
    """Modules of Triton that can be loaded again."""
    return {
        name: module
        for name, module in sys.modules.items()
        if name.split(".")[0] == "triton" and not name.startswith("triton._C")
    }


@pytest.fixture
def interpreted(interpreter: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Engines start these kernels."""
    monkeypatch.setattr(triton_pairs, "kernels", lambda: interpreter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of logarithms of zero, in NumPy
        yield interpreter


def _term(name: str, seed: int = 0) -> PairTerm:
    n, coordinates, features, degree, exponent = SHAPES[name]
    rng = np.random.default_rng(seed)
    points, values = rng.normal(size=(n, coordinates)), rng.normal(size=(n, features))
    points[3], values[5] = points[7], 0.0
    return PairTerm(torch.tensor(points), torch.tensor(values), degree, exponent, 1.5)


def _matrix(term: PairTerm) -> np.ndarray[Any, Any]:
    """h of all pairs as the definition has it, zero on the diagonal."""
    x, f = term.points.numpy(), term.features.numpy()
    distance = (np.abs(x[:, None] - x[None]) ** term.degree).sum(axis=2)
    h = term.factor * np.exp(-(distance**term.exponent)) * (f @ f.T)
    np.fill_diagonal(h, 0.0)
    return h


def _agree(found: Any, expected: Any, h: np.ndarray[Any, Any], share: float) -> None:
    """Up to a share of the sum of sizes of what was added up."""
    size = np.abs(h).sum() if np.ndim(expected) == 0 else np.abs(h).sum(axis=1).max()
    assert np.abs(found.numpy() - expected).max() <= share * size


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("name", SHAPES)
def test_kernels_agree_with_the_matrix(name: str, double: bool, interpreted: Any) -> None:
    term, share = _term(name), 1e-15 if double else 3e-7
    h = _matrix(term)
    layout = triton_pairs.laid_out(term, double)
    _agree(triton_pairs.pair_sums(layout, rows=False)[0], 0.5 * h.sum(), h, share)
    total, rows = triton_pairs.pair_sums(layout, rows=True)
    _agree(total, 0.5 * h.sum(), h, share)
    _agree(rows, h.sum(axis=1), h, share)
    vectors = torch.tensor(np.random.default_rng(1).normal(size=(term.n, 3)))
    _agree(triton_pairs.pair_products(layout, vectors), h @ vectors.numpy(), 3.0 * h, share)


@pytest.mark.parametrize("name", SHAPES)
def test_tiles_agree_with_the_matrix(name: str) -> None:
    term = _term(name)
    h = _matrix(term)
    for cache in (None, 64):
        with limited(cache=cache):
            total, rows = tensor_pairs.pair_sums(term, rows=True)
            vectors = torch.tensor(np.random.default_rng(1).normal(size=(term.n, 3)))
            products = tensor_pairs.pair_products(term, vectors)
        _agree(total, 0.5 * h.sum(), h, 1e-15)
        _agree(rows, h.sum(axis=1), h, 1e-15)
        _agree(products, h @ vectors.numpy(), 3.0 * h, 1e-15)


@pytest.mark.parametrize("triton", [True, False])
def test_parts_of_the_pairs_add_up(triton: bool, interpreted: Any) -> None:
    term = _term("normals")
    for rows in (True, False):
        whole = sums_of([term, term], rows=rows, double=True, triton=triton)
        with limited(cache=256):  # several tiles to share
            shared = sums_of(
                [term, term], rows=rows, double=True, triton=triton, devices=["cpu", "cpu", "cpu"]
            )
        torch.testing.assert_close(shared, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("triton", [True, False])
def test_tiles_of_both_precisions_tell_the_bias(triton: bool, interpreted: Any) -> None:
    """A term that is wrong by a fixed share has a bias of that share of the mean."""
    term = _term("normals", seed=3)
    features = term.features + 1.0
    exact = replace(term, features=features)
    wrong = replace(term, features=features * (1.0 + 1e-3) ** 0.5)
    mean = _matrix(exact).sum() / (term.n * (term.n - 1.0))
    found = correction_of([exact], [wrong], triton=triton, tiles=(16,))
    assert found.bias == pytest.approx(-1e-3 * mean, rel=0.05)
    assert correction_of([exact], [exact], triton=triton, tiles=(16,)).error < 1e-4


def test_little_features_are_left_out() -> None:
    term = _term("normals")
    features = term.features.clone()
    features[:, 4] *= 1e-8
    (short,) = shortened([replace(term, features=features)])
    assert short.features.shape[1] == term.features.shape[1] - 1


def test_products_of_several_terms() -> None:
    terms = [_term("normals"), _term("normals", seed=1)]
    vectors = torch.ones((130, 1), dtype=torch.float64)
    found = products_of(terms, vectors, double=True, triton=False)
    h = sum(_matrix(term) for term in terms)
    _agree(found[:, 0], h.sum(axis=1), h, 1e-14)


# -- the engine ----------------------------------------------------------------------------------


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


FAMILIES = ("normals", "two terms", "Laplace", "events", "classes", "mixtures", "ensembles")


def _tensors(pred: Any) -> Any:
    return pred.map_arrays(lambda a: torch.tensor(np.array(a)))


def _null_deviation(problem: Problem) -> float:
    """Standard deviation of the sum over pairs, where predictions are calibrated."""
    h = np.asarray(problem.values(slice(0, 400), slice(400, 800)))
    return float(np.sqrt(np.mean(h**2) * 0.5 * N * (N - 1.0)))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_engine_agrees_with_tiles_of_numpy(name: str) -> None:
    y, pred, kernel = _cases(name)
    kernel = wc.default_kernel(pred) if kernel is None else kernel
    problem = prepare(y, pred, kernel)
    expected = Tiled(precision="float64").triangle(problem)
    size = Tiled(precision="float64").triangle(prepare(y, pred, kernel)).rows
    size = np.abs(size).sum() + _null_deviation(problem)
    there = prepare(torch.tensor(np.array(y)), _tensors(pred), kernel)
    found = Fused(precision="float64").triangle(there)
    assert abs(float(found.total) - expected.total) <= 1e-12 * size
    assert np.abs(found.rows - expected.rows).max() <= 1e-11 * size
    assert float(Fused(precision="float64").total(there)) == pytest.approx(float(found.total), rel=1e-9)
    assert Fused(precision="float64").describe(there)["kernels"] == "PyTorch"
    mixed = Fused(precision="mixed")
    rounded = mixed.triangle(there)
    said = mixed.describe(there)
    assert "float32" in said["precision"]
    assert said["precision_error"] < 1e-3
    assert abs(float(rounded.total) - expected.total) <= 0.01 * _null_deviation(problem)


def test_kernels_of_triton_serve_the_engine(interpreted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wellcal.engines.rounded_pairs.TILES", (4,))
    y, pred, _ = _cases("events")
    problem = prepare(torch.tensor(y), _tensors(pred), wc.default_kernel(pred))
    exact = float(Fused(precision="float64").total(problem))
    engine = Fused(precision="mixed", triton=True)
    assert abs(float(engine.total(problem)) - exact) <= 1e-4 * _null_deviation(problem)
    said = engine.describe(problem)
    assert said["kernels"].startswith("Triton ")
    assert "16 bits" in said["precision"]


def test_products_of_the_engine() -> None:
    y, pred, kernel = _cases("normals")
    problem = prepare(torch.tensor(y), _tensors(pred), kernel)
    vectors = torch.tensor(np.random.default_rng(0).normal(size=(N, 2)))
    h = problem.values(slice(0, N), slice(0, N)).fill_diagonal_(0.0)
    for precision, share in (("float64", 1e-13), ("mixed", 1e-6)):
        found = Fused(precision=precision).products(problem, vectors)
        assert (found - h @ vectors).abs().max() <= share * (h.abs() @ vectors.abs()).max()
    laplace = prepare(torch.tensor(y), _tensors(pred), ExpDistance(Wasserstein()) @ Laplacian())
    assert Fused().products(laplace, vectors) is None


def test_without_features_tiles_stay() -> None:
    y, pred, _ = _cases("normals")
    kernel = ExpDistance(Wasserstein()) @ Laplacian()
    expected = wc.skce(y, pred, kernel=kernel, engine="tiled")
    found = wc.skce(torch.tensor(y), _tensors(pred), kernel=kernel, engine="fused")
    assert float(found) == pytest.approx(expected.value, rel=1e-9)
    assert "tile" in found.provenance


def test_several_devices_share_the_pairs() -> None:
    y, pred, kernel = _cases("normals")
    options: dict[str, Any] = {"kernel": kernel, "precision": "float64"}
    with limited(cache=20_000):
        one = wc.skce(torch.tensor(y), _tensors(pred), engine=Fused(), **options)
        two = wc.skce(torch.tensor(y), _tensors(pred), engine=Fused(devices=["cpu", "cpu"]), **options)
    assert float(two) == pytest.approx(float(one), rel=1e-10)
    assert two.standard_error == pytest.approx(one.standard_error, rel=1e-10)
    assert two.provenance["devices"] == ["cpu", "cpu"]


def test_pairs_that_are_not_shared_are_told() -> None:
    rate = torch.linspace(0.5, 4.0, 200, dtype=torch.float64)
    for y, pred in (
        (torch.round(rate), wc.Poisson(rate)),
        (rate, wc.Normal(rate.clone().requires_grad_(), torch.ones(200))),
    ):
        found = wc.skce(y, pred, engine=Fused(devices=["cpu", "cpu"])).provenance
        assert "devices" not in found
        assert "not shared" in found["devices_note"]
        assert "devices_note" not in wc.skce(y, pred, engine=Fused()).provenance


def test_weights_and_the_biased_estimate() -> None:
    y, pred, kernel = _cases("normals")
    weights = np.random.default_rng(0).uniform(0.5, 2.0, N)
    for options in (
        {"weights": weights},
        {"estimator": "biased"},
        {"estimator": "biased", "weights": weights},
    ):
        expected = wc.skce(y, pred, kernel=kernel, engine="tiled", **options)
        found = wc.skce(torch.tensor(y), _tensors(pred), kernel=kernel, engine="fused", **options)
        assert float(found) == pytest.approx(expected.value, rel=1e-10)
        assert found.provenance["engine"] == "fused"


def test_what_the_engine_refuses() -> None:
    y, pred, kernel = _cases("normals")
    with pytest.raises(ValueError, match="it needs tensors of PyTorch"):
        wc.skce(y, pred, kernel=kernel, engine="fused")
    for wrong in ("cuda", False, [0.5], torch.tensor(1.0)):
        with pytest.raises(TypeError, match=r'devices must be a list such as \["cuda:0", "cuda:1"\], found'):
            Fused(devices=wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="triton must be True, False or None"):
        Fused(triton=np.zeros(3))  # pyright: ignore[reportArgumentType]
    p = torch.linspace(0.1, 0.9, 200, dtype=torch.float64)
    with pytest.raises(ValueError, match="devices must be names such as \"cuda:0\", found 'cudda'"):
        wc.skce((p > 0.5).long(), wc.Bernoulli(p), engine=Fused(devices=["cudda"]))
    absent = "cuda:0" if not torch.cuda.is_available() else f"cuda:{torch.cuda.device_count()}"
    for y, pred in (
        ((p > 0.5).long(), wc.Bernoulli(p)),
        (torch.round(4.0 * p), wc.Poisson(p)),  # not in products: tiles
    ):
        for device in (absent, "meta"):
            with pytest.raises(ValueError, match=f"devices must be there, found '{device}'"):
                wc.skce(y, pred, engine=Fused(devices=["cpu", device]))
    with pytest.raises(ValueError, match="devices must be a list"):
        Fused(devices=[])
    with pytest.raises(ValueError, match="unknown precision"):
        Fused(precision="half")


# -- derivatives ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["normals", "two terms", "events", "classes"])
def test_gradients_are_those_of_tiles(name: str) -> None:
    y, pred, kernel = _cases(name)
    kernel = wc.default_kernel(pred) if kernel is None else kernel
    some = np.r_[0:130, 3]  # two predictions are equal
    gradients: list[Any] = []
    values: list[Any] = []
    for engine in (Tiled(), Fused()):
        free: list[Any] = []

        def leaf(array: Any, free: list[Any] = free) -> Any:
            free.append(torch.tensor(np.array(array), requires_grad=True))
            return free[-1]

        batch = pred[some].map_arrays(leaf)
        found = wc.skce(torch.tensor(np.array(y)[some]), batch, kernel=kernel, engine=engine)
        found.value.backward()
        gradients.append([x.grad for x in free])
        values.append(found)
    assert values[1].provenance["kernels"] == "PyTorch"
    assert float(values[1].value.detach()) == pytest.approx(float(values[0].value.detach()), rel=1e-9)
    assert values[1].standard_error == pytest.approx(values[0].standard_error, rel=1e-9)
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-8, atol=1e-13)


def test_gradients_can_be_differentiated_again() -> None:
    y, pred, kernel = _cases("normals")
    targets, scale = torch.tensor(y[:130]), torch.tensor(pred.scale[:130])
    seconds: list[Any] = []
    for engine in (Tiled(), Fused()):
        loc = torch.tensor(pred.loc[:130], requires_grad=True)
        value = wc.skce(targets, wc.Normal(loc, scale), kernel=kernel, engine=engine).value
        (first,) = torch.autograd.grad(value, loc, create_graph=True)
        (first**2).sum().backward()
        seconds.append(loc.grad)
    torch.testing.assert_close(seconds[1], seconds[0], rtol=1e-7, atol=1e-15)


@pytest.mark.parametrize("name", SHAPES)
def test_derivatives_do_not_depend_on_tiles(name: str) -> None:
    term = _term(name)
    whole = tensor_pairs.pair_gradients(term)
    torch.testing.assert_close(whole[0].numpy(), _matrix(term).sum(axis=1), rtol=1e-10, atol=1e-10)
    with limited(cache=64):
        parts = tensor_pairs.pair_gradients(term)
    torch.testing.assert_close(parts, whole, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["normals", "events", "classes", "power"])
def test_kernels_of_derivatives_agree_with_tensors(name: str, interpreted: Any) -> None:
    term = _term(name)
    with limited(cache=1600):  # tiles of 80 cases: on the diagonal and beside it, and a rest of blocks
        expected = tensor_pairs.pair_gradients(term)
        found = tensor_pairs.pair_gradients(term, triton=True)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_which_kernels_took_derivatives_is_told(interpreted: Any) -> None:
    logits = torch.tensor(np.random.default_rng(3).normal(size=(130, 3)), requires_grad=True)
    y, pred = logits.detach().argmax(dim=1), wc.Categorical(logits.softmax(dim=1))
    told = [wc.skce(y, pred, engine=Fused(triton=triton)).provenance["kernels"] for triton in (True, False)]
    assert told[0].startswith("PyTorch, distances by Triton 3.")
    assert told[1] == "PyTorch"


def test_features_of_normals_have_their_derivatives() -> None:
    rng = np.random.default_rng(2)
    loc, log_scale = (torch.tensor(rng.normal(size=(4, 1)), requires_grad=True) for _ in range(2))
    centres = torch.tensor(np.linspace(-2.0, 2.0, 5))

    def features(loc: Any, log_scale: Any) -> Any:
        return line_features(loc, (2.0 * log_scale).exp(), centres, 0.7, 1.3)

    draws = rng.normal(loc.detach().numpy(), np.exp(log_scale.detach().numpy()), size=(200_000, 4, 1))
    values = 1.3 * np.exp(-(((draws - centres.numpy()) / 0.7) ** 2))
    error = values.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(features(loc, log_scale).detach().numpy() - values.mean(axis=0)) < 5.0 * error)
    assert torch.autograd.gradcheck(features, (loc, log_scale))
    assert torch.autograd.gradgradcheck(features, (loc, log_scale))
    # One that is constant has none.
    assert torch.autograd.gradcheck(lambda loc: features(loc, log_scale.detach()), (loc,))
    assert torch.autograd.gradgradcheck(lambda loc: features(loc, log_scale.detach()), (loc,))


def test_kernels_of_features_on_a_line_have_their_derivatives(interpreted: Any) -> None:
    rng = np.random.default_rng(2)
    loc, variance = (torch.tensor(rng.gamma(2.0, size=18)) for _ in range(2))
    targets, slopes = torch.tensor(rng.normal(size=18)), torch.tensor(rng.normal(size=(18, 9)))
    grid = FeatureGrid(0.7, (np.arange(-4.0, 5.0) * 0.4,), (0.3,))
    found = LineFeatures.of(OnALine(loc, variance, targets, grid, 1.3))
    assert found is not None
    expected = 1.3 * (
        grid.of_normals(loc[:, None], variance[:, None]) - grid.of_points(targets[:, None, None], None)
    )
    torch.testing.assert_close(found.differences(), expected, rtol=1e-13, atol=1e-14)
    loc.requires_grad_(), variance.requires_grad_()
    steps = found.by_steps(loc, variance)
    torch.testing.assert_close(steps.detach(), expected, rtol=1e-13, atol=1e-14)
    derivatives = torch.autograd.grad((steps * slopes).sum(), (loc, variance))
    torch.testing.assert_close(found.slopes(slopes), derivatives, rtol=1e-12, atol=1e-13)
    many = FeatureGrid(0.7, (np.arange(300.0),), (0.0,))
    assert LineFeatures.of(OnALine(loc, variance, targets, many, 1.0)) is None


@pytest.mark.parametrize("fixed", ["scale", "loc", "neither"])
def test_sums_of_normals_on_a_line_have_derivatives_of_derivatives(fixed: str, interpreted: Any) -> None:
    rng = np.random.default_rng(3)
    given = {
        name: torch.tensor(rng.gamma(2.0, size=130), requires_grad=name != fixed) for name in ("loc", "scale")
    }
    y = torch.tensor(rng.normal(size=130))
    kernel = ExpDistance(Wasserstein(), lengthscale=1.5) @ Gaussian(0.8)
    needed = [array for array in given.values() if array.requires_grad]
    found = []
    for engine in (Tiled(), Fused(triton=True)):
        value = wc.skce(y, wc.Normal(**given), kernel=kernel, engine=engine).value
        first = torch.autograd.grad(value, needed, create_graph=True)
        found.append((*first, *torch.autograd.grad(sum((g**2).sum() for g in first), needed)))
    torch.testing.assert_close(found[1], found[0], rtol=1e-7, atol=1e-13)


@pytest.mark.parametrize("factor", [1.0, 2.5])
def test_gradients_of_normals_by_three_kernels(factor: float, interpreted: Any) -> None:
    rng = np.random.default_rng(4)
    given = torch.tensor(rng.normal(size=200), requires_grad=True)
    y, found = torch.tensor(rng.normal(size=200)), []
    pred = wc.Normal(given, (0.3 * given).exp())
    kernel = factor * wc.default_kernel(pred)
    for engine in (Tiled(), Fused(triton=True), Fused(triton=False)):
        value = wc.skce(y, pred, kernel=kernel, engine=engine)
        (gradient,) = torch.autograd.grad(value.value, given, retain_graph=True)
        found.append((value.value.detach(), gradient))
        if engine == Fused(triton=True):
            assert value.provenance["kernels"].startswith("PyTorch, pairs by Triton 3.")
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=1e-8, atol=1e-13)


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
        value = wc.skce((y * 1024.0).round() / 1024.0 + away, pred, kernel=kernel, engine=Fused(triton=False))
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
    found = wc.skce(y, pred, kernel=kernel, engine=Fused(triton=False))
    assert found.provenance["engine"] == "fused"
    others = wc.skce(y[1:], pred[1:], kernel=kernel, engine=Tiled()).value * (199 * 198) / (200 * 199)
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


@pytest.mark.parametrize(("family", "most"), [("normals", 106), ("classes", 140)])
def test_a_step_of_training_is_few_launches(family: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in for a card counts, too; without Triton, classes take eight launches for each."""
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
    for module in (defaults, fused, chunks, gaussian_features, tensor_pairs):
        monkeypatch.setattr(module, "is_on_accelerator", lambda x: isinstance(x, torch.Tensor))
    with _Launches() as seen:
        found = step()
    assert found[0] == pytest.approx(expected[0], rel=1e-9)
    torch.testing.assert_close(found[1], expected[1], rtol=1e-8, atol=1e-14)
    assert seen.count <= most
    assert seen.waits <= 6  # looks at what was given, and the value itself


def test_without_a_gradient_there_are_no_derivatives() -> None:
    y, pred, kernel = _cases("normals")
    constant = prepare(torch.tensor(y), _tensors(pred), kernel)
    assert sum_with_derivatives(constant) is None
    loc = torch.tensor(pred.loc, requires_grad=True)
    varying = prepare(torch.tensor(y), wc.Normal(loc, torch.tensor(pred.scale)), kernel)
    with torch.no_grad():
        assert sum_with_derivatives(varying) is None
        assert float(Fused().total(varying)) == pytest.approx(float(Fused().total(constant)), rel=1e-10)
        assert Fused().describe(varying)["kernels"] == "PyTorch"


# -- graphics cards ------------------------------------------------------------------------------


COMPILING = """
import sys, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from wellcal.engines import triton_kernels

few = ("pair_slopes", "line_differences", "line_slopes")
kernels = [(name, False) for name in ("row_sums", "l1_tile", "signed_sums", *few)]
for name, split in [("row_sums", True), ("products", True), *kernels]:
    kernel, wide = getattr(triton_kernels, name), "fp32" if split else "fp64"
    given = dict(x=f"*{wide}", high="*fp16" if split else "*fp64", out="*fp64", vectors=f"*{wide}")
    given |= dict(low=given["high"], y="*fp64", weights="*fp64", rows="*fp64", numbers="*fp64")
    given |= dict(by_points="*fp64", by_features="*fp64", by_loc="*fp64", by_variance="*fp64")
    given |= dict(products="*fp64", loc="*fp64", variance="*fp64", targets="*fp64")
    fixed = dict(PAIRS=0, DEGREE=2, FEW=2, ROOT=2, EXPONENT=1.0)
    fixed |= dict(SPLIT=split, ONE=split, BLOCK=64 if split else 16, BK=32, BR=16, ROWS=8, COLUMNS=16)
    fixed |= dict(D=2) if name == "pair_slopes" else {}
    names = kernel.arg_names
    fixed = {k: v for k, v in fixed.items() if k in names}
    signature = {k: "constexpr" if k in fixed else given.get(k, "i32") for k in names}
    source = ASTSource(kernel, signature, {(names.index(k),): v for k, v in fixed.items()})
    found = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    assert ("wgmma" in found.asm["ptx"]) == split and found.asm["cubin"]
print("compiled")
"""


def test_kernels_compile_for_a_graphics_card_that_is_not_here() -> None:
    """The interpreter forgives what the compiler does not: types, shapes and names inside loops."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", COMPILING], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "compiled\n", done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("name", SHAPES)
def test_kernels_on_the_device(name: str, double: bool) -> None:
    term, share = _term(name), 1e-15 if double else 1e-6
    h = _matrix(term)
    layout = triton_pairs.laid_out(term.to("cuda"), double)
    _agree(triton_pairs.pair_sums(layout, rows=False)[0].cpu(), 0.5 * h.sum(), h, share)
    total, rows = triton_pairs.pair_sums(layout, rows=True)
    assert rows is not None
    _agree(total.cpu(), 0.5 * h.sum(), h, share)
    _agree(rows.cpu(), h.sum(axis=1), h, share)
    vectors = torch.tensor(np.random.default_rng(1).normal(size=(term.n, 3)), device="cuda")
    found = triton_pairs.pair_products(layout, vectors).cpu()
    _agree(found, h @ vectors.cpu().numpy(), 3.0 * h, share)


@pytest.mark.gpu
@pytest.mark.parametrize("name", SHAPES)
def test_derivatives_on_the_device(name: str) -> None:
    term = _term(name)
    expected = tensor_pairs.pair_gradients(term)
    for triton in (True, False):
        with limited(device=80**2):  # tiles on the diagonal and beside it
            found = tensor_pairs.pair_gradients(term.to("cuda"), triton=triton)
        torch.testing.assert_close(tuple(part.cpu() for part in found), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.gpu
@pytest.mark.parametrize("name", FAMILIES)
def test_the_engine_on_the_device(name: str) -> None:
    y, pred, kernel = _cases(name)
    kernel = wc.default_kernel(pred) if kernel is None else kernel
    expected = Tiled(precision="float64").triangle(prepare(y, pred, kernel))
    there = prepare(
        torch.tensor(np.array(y), device="cuda"), _tensors(pred).map_arrays(lambda a: a.cuda()), kernel
    )
    deviation = _null_deviation(prepare(y, pred, kernel))
    for triton in (None, False):
        for precision, share in (("float64", 1e-10), ("mixed", 0.01)):
            engine = Fused(precision=precision, triton=triton)
            found = engine.triangle(there)
            assert found.total.device.type == "cuda"
            assert abs(float(found.total) - expected.total) <= share * deviation
            assert engine.describe(there)["kernels"].startswith("PyTorch" if triton is False else "Triton")


@pytest.mark.gpu
def test_the_engine_is_chosen_on_the_device() -> None:
    y, pred, kernel = _cases("normals")
    batch = _tensors(pred).map_arrays(lambda a: a.cuda())
    found = wc.skce(torch.tensor(y, device="cuda"), batch, kernel=kernel)
    assert found.provenance["engine"] == "fused"
    loc = batch.loc.clone().requires_grad_()
    wc.skce(torch.tensor(y, device="cuda"), wc.Normal(loc, batch.scale), kernel=kernel).value.backward()
    here = torch.tensor(pred.loc, requires_grad=True)
    wc.skce(torch.tensor(y), wc.Normal(here, torch.tensor(pred.scale)), kernel=kernel).value.backward()
    torch.testing.assert_close(loc.grad.cpu(), here.grad, rtol=1e-8, atol=1e-13)
