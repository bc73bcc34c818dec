"""Temperature scaling: fitting, errors, storage, array libraries, cross-fitting."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from scipy import optimize
from sklearn.base import clone

import wellcal as wc
from wellcal._arrays.chunks import limited
from wellcal._arrays.namespaces import to_numpy
from wellcal.kernels import Callable, ExpDistance, Gaussian, MaximumMeanDiscrepancy, Wasserstein
from wellcal.recalibration import NotFittedError, TemperatureScaling, apply_temperature, cross_fit
from wellcal.recalibration.objectives import minimise

rng = np.random.default_rng(11)
N = 60
MU, SIGMA = rng.normal(size=N), np.exp(rng.normal(0.0, 0.3, N))
Y = rng.normal(MU, SIGMA)
LOGITS = 2.0 * rng.normal(size=(N, 4))
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
LABELS = np.array([rng.choice(4, p=row) for row in PROBS])
VECTORS = rng.normal(size=(N, 2))
COV = np.array([[1.0, 0.3], [0.3, 0.5]])
SHARP = wc.Normal(MU, 0.5 * SIGMA)
WORDS = np.array(["a", "b", "c", "d"])

COINS = rng.uniform(0.05, 0.95, N)

CASES: dict[str, tuple[Any, Any]] = {
    "Bernoulli": ((rng.uniform(size=N) < COINS).astype(int), apply_temperature(wc.Bernoulli(COINS), 0.4)),
    "Categorical": (LABELS, apply_temperature(wc.Categorical(PROBS), 0.4)),
    "Categorical with classes": (WORDS[LABELS], apply_temperature(wc.Categorical(PROBS, WORDS), 2.5)),
    "Normal": (Y, SHARP),
    "DiagonalNormal": (VECTORS, wc.DiagonalNormal(0.5 * VECTORS, np.full((N, 2), 0.3))),
    "MultivariateNormal": (VECTORS, wc.MultivariateNormal(0.5 * VECTORS, np.tile(4.0 * COV, (N, 1, 1)))),
    "Laplace": (Y, wc.Laplace(MU, 0.4 * SIGMA)),
    "PowerExponential": (Y, wc.PowerExponential(MU, 3.0 * SIGMA, 1.5)),
    "PowerExponential of vectors": (
        VECTORS,
        wc.PowerExponential(0.5 * VECTORS, shape=1.5, cov=np.tile(0.2 * COV, (N, 1, 1))),
    ),
    "Beta": (rng.beta(2.0, 3.0, N), wc.Beta(np.full(N, 6.0), np.full(N, 9.0))),
    "Dirichlet": (rng.dirichlet([1.0, 2.0, 3.0], N), wc.Dirichlet(np.tile([3.0, 6.0, 9.0], (N, 1)))),
    "Mixture": (Y, wc.Mixture([wc.Normal(MU, 0.4 * SIGMA), wc.Laplace(MU + 0.1, 0.4 * SIGMA)])),
}
CLOSED = [
    "Bernoulli",
    "Categorical",
    "Categorical with classes",
    "Normal",
    "DiagonalNormal",
    "Laplace",
    "Mixture",
]
SMALL = wc.Lowering(nodes=24, points=16)


# -- fitting ------------------------------------------------------------------------------------


def test_the_likelihood_of_normals_has_a_known_optimum() -> None:
    scaling = TemperatureScaling().fit(Y, SHARP)
    z = (Y - MU) / (0.5 * SIGMA)
    assert scaling.temperature_ == pytest.approx(np.mean(z**2), rel=1e-7)
    assert scaling.objective_ == "nll"
    assert scaling.before_ == pytest.approx(-np.mean(SHARP.log_prob(Y)), rel=1e-13)
    assert scaling.after_ == pytest.approx(-np.mean(scaling.transform(SHARP).log_prob(Y)), rel=1e-13)


def test_the_likelihood_of_laplace_has_a_known_optimum() -> None:
    y, pred = CASES["Laplace"]
    scaling = TemperatureScaling().fit(y, pred)
    assert scaling.temperature_ == pytest.approx(np.mean(np.abs(y - pred.loc) / pred.scale), rel=1e-7)


def test_classes_against_a_direct_minimum() -> None:
    logs = np.log(CASES["Categorical"][1].probs)

    def direct(u: float) -> float:
        scaled = logs / np.exp(u)
        return float(np.mean(np.log(np.exp(scaled).sum(axis=1)) - scaled[np.arange(N), LABELS]))

    best = optimize.minimize_scalar(direct, bounds=(-4, 4), method="bounded", options={"xatol": 1e-10})
    scaling = TemperatureScaling().fit(*CASES["Categorical"])
    assert scaling.temperature_ == pytest.approx(np.exp(best.x), rel=1e-6)
    assert scaling.after_ == pytest.approx(best.fun, rel=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_likelihood_is_better_and_stationary(name: str) -> None:
    y, pred = CASES[name]
    scaling = TemperatureScaling().fit(y, pred)
    assert scaling.after_ < scaling.before_ - 1e-3
    for factor in (0.999, 1.001):
        moved = apply_temperature(pred, factor * scaling.temperature_)
        assert -np.mean(moved.log_prob(y)) > scaling.after_ - 1e-12
    assert scaling.n_samples_ == N


@pytest.mark.parametrize("name", CLOSED)
def test_calibration_error_is_never_worse(name: str) -> None:
    y, pred = CASES[name]
    scaling = TemperatureScaling().fit(y, pred, "skce")
    kernel = scaling.kernel_
    assert kernel == wc.default_kernel(pred)
    assert scaling.before_ == pytest.approx(float(wc.skce(y, pred, kernel=kernel)), rel=1e-12)
    after = float(wc.skce(y, scaling.transform(pred), kernel=kernel))
    assert scaling.after_ == pytest.approx(after, rel=1e-12)
    assert scaling.after_ < scaling.before_


@pytest.mark.parametrize("name", ["PowerExponential", "Beta"])
def test_calibration_error_by_quadrature(name: str) -> None:
    y, pred = CASES[name]
    few = slice(0, 30)
    scaling = TemperatureScaling().fit(y[few], pred[few], "skce", expectations=SMALL)
    assert scaling.after_ < scaling.before_


@pytest.mark.parametrize("objective", ["nll", "skce"])
def test_never_worse_over_many_small_data_sets(objective: str) -> None:
    kept = 0
    for seed in range(15):
        draw = np.random.default_rng(seed)
        mu = draw.normal(size=8)
        y, pred = draw.normal(mu), wc.Normal(mu, 1.0)
        scaling = TemperatureScaling(bounds=(0.05, 20.0))
        scaling.fit(y, pred, objective)
        assert scaling.after_ <= scaling.before_
        if objective == "skce":
            after = wc.skce(y, scaling.transform(pred), kernel=scaling.kernel_)
            assert float(after) <= scaling.before_ + 1e-15
            kept += scaling.temperature_ == 1.0
    assert kept < 15


def test_skce_does_not_flatten_balanced_classes() -> None:
    """Uniform predictions of balanced classes are calibrated: the objective must not take that way out."""
    draw = np.random.default_rng(1)
    logits = 2.0 * draw.normal(size=(300, 3))
    honest = wc.Categorical(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True))
    y = honest.sample(draw)
    sharp = apply_temperature(honest, 0.4)
    kernel = wc.default_kernel(sharp)
    flat = float(wc.skce(y, apply_temperature(sharp, 1e4), kernel=kernel))
    scaling = TemperatureScaling().fit(y, sharp, "skce")
    assert flat < float(wc.skce(y, sharp, kernel=kernel))  # the way out is there
    assert 1.5 < scaling.temperature_ < 4.0


def test_blocks_fit_too() -> None:
    scaling = TemperatureScaling().fit(Y, SHARP, "skce", estimator="block", block_size=6)
    kernel = wc.default_kernel(SHARP)
    value = wc.skce(Y, scaling.transform(SHARP), kernel=kernel, estimator="block", block_size=6)
    assert scaling.after_ == pytest.approx(float(value), rel=1e-12)
    assert 1.5 < scaling.temperature_ < 12.0


def test_more_cases_than_are_stored() -> None:
    stored = TemperatureScaling().fit(Y, SHARP, "skce")
    with limited(work=50):
        direct = TemperatureScaling().fit(Y, SHARP, "skce")
    assert direct.temperature_ == pytest.approx(stored.temperature_, rel=1e-8)


def test_sums_of_kernels() -> None:
    kernel = 0.5 * (ExpDistance(Wasserstein()) @ Gaussian()) + ExpDistance(Wasserstein(), 2.0) @ Gaussian(0.3)
    scaling = TemperatureScaling().fit(Y, SHARP, "skce", kernel=kernel)
    assert scaling.after_ < scaling.before_
    assert scaling.kernel_ == kernel


def test_a_perfect_fit_is_warned_of() -> None:
    y = np.argmax(PROBS, axis=1)
    with pytest.warns(UserWarning, match="still falls at temperature"):
        scaling = TemperatureScaling(bounds=(0.1, 10.0)).fit(y, wc.Categorical(PROBS))
    assert scaling.temperature_ == pytest.approx(0.1, rel=2e-3)


def test_minimise_takes_the_deeper_valley() -> None:
    def two(T: float) -> float:
        u = np.log(T)
        return -np.exp(-((u - 3.0) ** 2)) - 0.5 * np.exp(-(u**2))

    bounds, grid = (1e-4, 1e4), np.geomspace(1e-4, 1e4, 38)
    assert minimise(two, grid, bounds, tolerance=1e-9)[0] == pytest.approx(np.exp(3.0), rel=2e-3)
    assert minimise(two, (1.0,), bounds, tolerance=1e-4)[0] < 1.5
    assert minimise(two, (1.0, 10.0), bounds, tolerance=1e-4)[0] == pytest.approx(np.exp(3.0), rel=2e-3)
    at_end = minimise(lambda T: -T, (1.0,), (0.5, 5.0), tolerance=1e-4)
    assert at_end == (pytest.approx(5.0, rel=1e-3), True)


# -- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pred",
    [
        wc.Poisson(np.ones(3)),
        wc.StudentT(3.0, np.zeros(3), 1.0),
        wc.Samples(np.zeros((3, 4))),
        wc.Mixture([wc.Gamma(np.ones(3), 1.0)]),
    ],
)
def test_families_without_closed_form(pred: Any) -> None:
    families = "Poisson|StudentT|Samples|components of Gamma"
    message = rf"no closed form for .*({families}); it has one for Bernoulli, .*"
    with pytest.raises(TypeError, match=message + "Dirichlet.*, and for a Mixture"):
        TemperatureScaling().fit(np.ones(3), pred)
    with pytest.raises(TypeError, match=message):
        apply_temperature(pred, 2.0)


def test_before_fit() -> None:
    scaling = TemperatureScaling()
    for call in (lambda: scaling.transform(SHARP), lambda: scaling.save("nowhere.json"), scaling.to_dict):
        with pytest.raises(NotFittedError, match=r"call fit\(y, pred\) before"):
            call()
    assert not Path("nowhere.json").exists()


def test_another_family() -> None:
    scaling = TemperatureScaling().fit(Y, SHARP)
    with pytest.raises(TypeError, match="fitted to Normal, found Laplace"):
        scaling.transform(CASES["Laplace"][1])
    mixed = TemperatureScaling().fit(*CASES["Mixture"])
    with pytest.raises(TypeError, match="fitted to Mixture of Laplace, Normal, found Mixture of Normal"):
        mixed.transform(wc.Mixture([SHARP]))


def test_impossible_targets_are_named() -> None:
    with pytest.raises(ValueError, match=r"log density of y is not finite in row 1.*skce"):
        TemperatureScaling().fit([0, 1], wc.Categorical(np.array([[0.5, 0.5], [1.0, 0.0]])))
    with pytest.raises(ValueError, match=r"at temperature 2 is infinite in row 2"):
        TemperatureScaling().fit([0.2, 0.3, 0.0], wc.Beta(np.ones(3), 2.0))
    probs = np.concatenate([CASES["Categorical"][1].probs, [[1.0, 0.0, 0.0, 0.0]]])
    scaling = TemperatureScaling().fit([*LABELS, 3], wc.Categorical(probs), "skce")
    assert scaling.after_ < scaling.before_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "brier"}, "unknown objective 'brier'; known are nll, skce"),
        ({"kernel": ExpDistance(Wasserstein()) @ Gaussian()}, 'for objective="skce" only'),
        (
            {"objective": "skce", "estimator": "biased"},
            "unknown estimator 'biased'; known are unbiased, block",
        ),
        ({"objective": "skce", "block_size": 3}, 'for estimator="block" only'),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TemperatureScaling().fit(Y, SHARP, **options)


@pytest.mark.parametrize("bounds", [(2.0, 1.0), (0.0, 1.0), 3.0, (1.0,)])
def test_bad_bounds(bounds: Any) -> None:
    with pytest.raises(ValueError, match="bounds must be"):
        TemperatureScaling(bounds=bounds).fit(Y, SHARP)


def test_order_rows_and_temperatures() -> None:
    with pytest.raises(TypeError, match="truth first"):
        TemperatureScaling().fit(SHARP, Y)
    bad = Y.copy()
    bad[3] = np.nan
    with pytest.raises(ValueError, match="y is not finite in row 3"):
        TemperatureScaling().fit(bad, SHARP)
    for T in (0.0, -1.0, np.inf):
        with pytest.raises(ValueError, match="temperature must be positive and finite"):
            apply_temperature(SHARP, T)
    steep = wc.PowerExponential(np.zeros(2), 1.0, np.array([1.0, 0.002]))
    with pytest.raises(ValueError, match="beyond the range of its floating-point type in row 1"):
        apply_temperature(steep, 9.0)


def test_kernels_that_do_not_factor() -> None:
    joint = wc.kernels.Joint(lambda p, y, q, z: np.ones((len(p), len(q))))
    with pytest.raises(TypeError, match="sum of products"):
        TemperatureScaling().fit(Y, SHARP, "skce", kernel=joint)


def test_fitting_cannot_be_traced() -> None:
    with pytest.raises(TypeError, match=r"outside of jax\.jit"):
        jax.jit(lambda m: TemperatureScaling().fit(Y, wc.Normal(m, jnp.ones(N))).temperature_)(
            jnp.asarray(MU)
        )


# -- the way of scikit-learn ----------------------------------------------------------------------


def test_scikit_learn_knows_its_way_around() -> None:
    scaling = TemperatureScaling(bounds=(0.1, 10.0))
    assert clone(scaling).bounds == (0.1, 10.0)
    assert scaling.set_params(bounds=(0.01, 100.0)).get_params() == {"bounds": (0.01, 100.0)}
    with pytest.raises(ValueError, match="no parameter 'T'"):
        scaling.set_params(T=1.0)
    assert not scaling.__sklearn_is_fitted__()
    assert scaling.fit(Y, SHARP) is scaling
    assert scaling.__sklearn_is_fitted__()
    assert not hasattr(clone(scaling), "temperature_")


def test_representations() -> None:
    scaling = TemperatureScaling()
    assert repr(scaling) == "TemperatureScaling(bounds=(0.0001, 10000.0))"
    text = repr(scaling.fit(Y, SHARP))
    assert "for Normal\n" in text
    assert "on the cases it was fitted to" in text
    assert "each component by itself" in repr(TemperatureScaling().fit(*CASES["Mixture"]))


# -- storage ------------------------------------------------------------------------------------


def test_save_and_load(tmp_path: Path) -> None:
    scaling = TemperatureScaling(bounds=(0.01, 100.0)).fit(Y, SHARP, "skce")
    path = tmp_path / "scaling.json"
    scaling.save(path)
    assert os.listdir(tmp_path) == ["scaling.json"]
    loaded = TemperatureScaling.load(path)
    assert vars(loaded) == scaling.__getstate__()  # all but the cases
    assert np.array_equal(loaded.transform(SHARP).scale, scaling.transform(SHARP).scale)
    assert json.loads(path.read_text())["temperature"] == scaling.temperature_


def test_a_kernel_with_a_function_is_not_stored(tmp_path: Path) -> None:
    on_targets = Callable(lambda x, y: np.exp(-np.abs(np.subtract.outer(x, y))), vectorized=True)
    kernel = ExpDistance(Wasserstein()) @ on_targets
    scaling = TemperatureScaling().fit(Y[:12], SHARP[:12], "skce", kernel=kernel, expectations=SMALL)
    scaling.save(tmp_path / "s.json")
    loaded = TemperatureScaling.load(tmp_path / "s.json")
    assert loaded.kernel_ is None
    assert loaded.temperature_ == scaling.temperature_


def test_a_crash_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "scaling.json"
    scaling = TemperatureScaling().fit(Y, SHARP)
    scaling.save(path)
    before = path.read_text()

    def fails(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fails)
    scaling.temperature_ = 5.0
    with pytest.raises(OSError, match="no space left"):
        scaling.save(path)
    assert path.read_text() == before
    assert os.listdir(tmp_path) == ["scaling.json"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "not a stored TemperatureScaling"),
        ('{"kind": "wellcal.Monitor"}', "not a stored TemperatureScaling"),
        ('{"kind": "wellcal.TemperatureScaling", "version": 2}', "stored in version 2"),
        ('{"kind": "wellcal.TemperatureScaling", "version": 1, "bounds": [1, 2]}', "temperature is missing"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"bad.json.*{message}"):
        TemperatureScaling.load(path)


# -- array libraries ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_results_live_where_predictions_lived(name: str) -> None:
    pred = CASES[name][1]
    expected = apply_temperature(pred, 2.5)
    strict = type(array_api_strict.asarray(0.0))
    for convert, kind in ((torch.tensor, torch.Tensor), (array_api_strict.asarray, strict)):
        found = apply_temperature(pred.map_arrays(convert), 2.5)
        assert isinstance(found.like, kind)
        np.testing.assert_allclose(to_numpy(found.like), expected.like, rtol=1e-12)
    with jax.enable_x64(True):
        found = jax.jit(lambda p: apply_temperature(p, 2.5))(pred.map_arrays(jnp.asarray))
        np.testing.assert_allclose(np.asarray(found.like), expected.like, rtol=1e-12)


@pytest.mark.parametrize("name", ["Normal", "Categorical", "Beta"])
def test_fitting_tensors_is_fitting_arrays(name: str) -> None:
    y, pred = CASES[name]
    expected = TemperatureScaling().fit(y, pred).temperature_
    tensors = pred.map_arrays(lambda a: torch.tensor(a, requires_grad=True))
    assert TemperatureScaling().fit(torch.tensor(y), tensors).temperature_ == pytest.approx(
        expected, rel=1e-12
    )
    single = pred.map_arrays(lambda a: a.astype(np.float32))
    assert TemperatureScaling().fit(list(y), single).temperature_ == pytest.approx(expected, rel=1e-5)
    assert apply_temperature(single, 2.0).like.dtype == np.float32


@pytest.mark.parametrize("name", CASES)
def test_gradients_flow_to_parameters_and_temperature(name: str) -> None:
    y, pred = CASES[name]
    leaves: list[torch.Tensor] = []

    def leaf(array: Any) -> torch.Tensor:
        leaves.append(torch.tensor(array, requires_grad=True))
        return leaves[-1]

    T = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    scaled = apply_temperature(pred.map_arrays(leaf), T)
    scaled.log_prob(torch.tensor(y) if y.dtype.kind != "U" else y).mean().backward()
    step = 1e-5
    up, down = (float(np.mean(apply_temperature(pred, 2.0 + h).log_prob(y))) for h in (step, -step))
    assert float(T.grad) == pytest.approx((up - down) / (2 * step), rel=1e-6)
    used = [leaf for leaf in leaves if leaf.grad is not None]
    assert used
    assert all(torch.isfinite(leaf.grad).all() for leaf in used)


def test_gradients_at_impossible_classes() -> None:
    probs = torch.tensor([[0.0, 0.4, 0.6], [1.0, 0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    apply_temperature(wc.Categorical(probs), 2.0).probs[:, 1].sum().backward()
    assert torch.isfinite(probs.grad).all()
    p = torch.tensor([0.0, 1.0, 0.5], dtype=torch.float64, requires_grad=True)
    apply_temperature(wc.Bernoulli(p), 0.01).probs.sum().backward()
    assert torch.isfinite(p.grad).all()


# -- cross-fitting --------------------------------------------------------------------------------


def test_cross_fitting_keeps_cases_apart() -> None:
    found = cross_fit(Y, SHARP, folds=4, rng=3, n_resamples=99)
    assert np.bincount(found.folds).tolist() == [15, 15, 15, 15]
    for fold in range(4):
        own = found.folds == fold
        alone = TemperatureScaling().fit(Y[~own], SHARP[~own])
        assert found.temperatures[fold] == alone.temperature_
        np.testing.assert_allclose(
            found.predictions.scale[own], alone.transform(SHARP[own]).scale, rtol=1e-14
        )
    assert found.scaling.temperature_ == TemperatureScaling().fit(Y, SHARP).temperature_
    assert found.before.kernel == found.after.kernel == wc.default_kernel(SHARP)
    after = wc.skce(Y, found.predictions, kernel=found.after.kernel)
    assert float(found.after.estimate) == pytest.approx(float(after), rel=1e-10)
    assert float(found.nll_after) == pytest.approx(-np.mean(found.predictions.log_prob(Y)), rel=1e-12)
    assert found.before.pvalue <= 0.05 < found.after.pvalue
    assert found.pvalue_bound == min(1.0, 2.0 * np.median(found.fold_pvalues))
    assert found.pvalue_bound > 0.05


def test_the_target_of_a_case_has_no_part_in_its_prediction() -> None:
    first = cross_fit(Y, SHARP, rng=3, n_resamples=99)
    changed = Y.copy()
    changed[0] += 5.0
    second = cross_fit(changed, SHARP, rng=3, n_resamples=99)
    own = first.folds == first.folds[0]
    assert np.array_equal(first.predictions.scale[own], second.predictions.scale[own])
    assert not np.any(first.predictions.scale[~own] == second.predictions.scale[~own])


def test_cross_fitting_of_labels_by_calibration_error() -> None:
    y, pred = CASES["Categorical with classes"]
    found = cross_fit(list(y), pred, objective="skce", folds=3, rng=0, n_resamples=99)
    assert found.scaling.kernel_ == found.before.kernel
    assert found.predictions.labels().tolist() == WORDS.tolist()
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["scaling"]["temperature"] == found.scaling.temperature_
    text = repr(found)
    assert "60 cases, cross-fitted in 3 folds" in text
    assert "approximate" in text


def test_cross_fitting_with_parameters_of_its_own() -> None:
    scaling = TemperatureScaling(bounds=(0.9, 1.1))
    with pytest.warns(UserWarning, match="still falls"):
        found = cross_fit(Y, SHARP, scaling=scaling, folds=2, rng=0, n_resamples=99)
    assert found.temperatures.max() <= 1.1
    assert not hasattr(scaling, "temperature_")


@pytest.mark.parametrize("folds", [1, 31, 2.5, True])
def test_bad_folds(folds: Any) -> None:
    with pytest.raises(ValueError, match="folds must be a whole number between 2 and 30, found"):
        cross_fit(Y, SHARP, folds=folds)


def test_few_cases_have_few_folds() -> None:
    found = cross_fit(Y[:7], SHARP[:7], rng=0, n_resamples=19)
    assert np.bincount(found.folds).tolist() == [3, 2, 2]


def test_mmd_kernels_serve_too() -> None:
    kernel = ExpDistance(MaximumMeanDiscrepancy(Gaussian()), power=2.0) @ Gaussian()
    assert TemperatureScaling().fit(Y, SHARP, "skce", kernel=kernel).temperature_ > 1.5


def test_recalibration_helps_where_the_gain_is_more_than_chance() -> None:
    """NLL of 5.45 before and 5.449 after is no help: the paired difference says so."""
    far = np.random.default_rng(0)
    mu, one = far.normal(size=200), np.ones(200)
    z = far.exponential(size=200)
    skewed = mu + (z - z.mean()) / z.std()
    none = cross_fit(skewed, wc.Normal(mu, one), rng=0, n_resamples=199)
    assert none.before.rejected and none.after.rejected  # noqa: PT018
    assert not none.helps
    ends = none.gained.confidence_interval()
    assert ends.low < 0.0 < ends.high
    assert "is not enough: miscalibrated before" in none.verdict
    assert "NLL does not change clearly" in none.verdict
    gap = none.gained.first - none.gained.second
    assert gap == pytest.approx(float(none.nll_before) - float(none.nll_after))
    some = cross_fit(2.0 * skewed - mu, wc.Normal(mu, one), rng=0, n_resamples=199)
    assert some.helps
    assert re.search(
        r"helps, and is not enough: .*NLL falls from [\d.]+ to [\d.]+, by [\d.]+ \(", some.verdict
    )
    assert "gained" in some.to_dict()
