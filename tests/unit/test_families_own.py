"""A family that is written outside of the package, in the way that a user would.

With nothing registered everything works by the generic paths; with rules of its own, by these.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import special, stats

import wellcal as wc
from wellcal._arrays.namespaces import to_numpy
from wellcal._arrays.special import quiet
from wellcal.conformance import ConformanceError, check_predictions
from wellcal.expectations.distances import distance
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein
from wellcal.measures.scores.row_functions import by_rows
from wellcal.measures.scores.rules import CRPS_RULES, ENERGY_RULES, MIXTURE_CRPS_RULES
from wellcal.predictions import (
    Domain,
    derived,
    family,
    nonnegative,
    parameter,
    positive,
    real,
    simplex,
    unit_interval,
    whole_numbers,
)
from wellcal.predictions.adapters import ADAPTERS, ScipyContinuous
from wellcal.predictions.batches import concatenate
from wellcal.predictions.serialization import predictions_from_dict, predictions_to_dict
from wellcal.predictions.temperatures import TEMPERATURES
from wellcal.recalibration import TemperatureScaling, apply_temperature


@family
class Weibull(wc.Predictions):
    """Nothing but the mathematics."""

    shape: Any = parameter(positive)
    scale: Any = parameter(positive)
    target_domain: ClassVar[Domain] = nonnegative

    def draw(self, rng: np.random.Generator, size: int) -> Any:
        return to_numpy(self.scale) * rng.weibull(to_numpy(self.shape), (size, len(self)))

    @quiet
    def quantile(self, u: Any) -> Any:
        return self.scale * (-self.ops.log1p(-self.argument(u, "u"))) ** (1.0 / self.shape)

    def cdf(self, y: Any) -> Any:
        z = self.argument(y, "y") / self.scale
        return -self.ops.expm1(-(self.ops.where(z > 0, z, 0.0 * z) ** self.shape))

    @quiet
    def log_prob(self, y: Any) -> Any:
        ops, z = self.ops, self.argument(y, "y") / self.scale
        possible = z >= 0
        z = ops.where(possible, z, ops.one(z))
        found = ops.log(self.shape / self.scale) + ops.xlogy(self.shape - 1.0 + 0.0 * z, z) - z**self.shape
        return ops.where(possible, found, -np.inf * ops.one(found))

    def mean(self) -> Any:
        return self.scale * self.ops.exp(self.ops.gammaln(1.0 + 1.0 / self.shape))

    def variance(self) -> Any:
        return self.scale**2 * self.ops.exp(self.ops.gammaln(1.0 + 2.0 / self.shape)) - self.mean() ** 2


RNG = np.random.default_rng(8)
N = 30
SHAPE, SCALE = RNG.uniform(0.8, 3.0, N), RNG.uniform(0.5, 2.0, N)
PRED = Weibull(SHAPE, SCALE)
Y = PRED.sample(1)


KERNEL = ExpDistance(Wasserstein()) @ Gaussian()


def closed_crps(pred: Any, y: Any) -> Any:
    below = special.gammainc(1.0 + 1.0 / pred.shape, (y / pred.scale) ** pred.shape)
    return y * (2.0 * pred.cdf(y) - 1.0) + pred.mean() * (2.0 ** (-1.0 / pred.shape) - 2.0 * below)


# -- declaration -------------------------------------------------------------------------------------


def test_parameters_follow_from_their_declaration() -> None:
    assert Weibull.array_fields == ("shape", "scale")
    assert_allclose(Weibull([1.0, 2.0], 3).scale, [3.0, 3.0])
    with pytest.raises(ValueError, match=r"shape must be positive in row 1: found 0\.; check"):
        Weibull([1.0, 0.0], 1.0)
    with pytest.raises(ValueError, match=r"must have the same shape, found \(2,\) and \(3,\)"):
        Weibull(np.ones(2), np.ones(3))
    assert len(Weibull(1.0, 1.0)) == 1
    with pytest.raises(ValueError, match="Weibull is empty"):
        Weibull([], 1.0)
    with pytest.raises(AttributeError):
        PRED.shape = SHAPE  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match="y must not be negative in row 0"):
        PRED.check_targets(-Y)
    assert_allclose(PRED.log_prob(Y), stats.weibull_min(SHAPE, scale=SCALE).logpdf(Y), rtol=1e-12)


@family
class Everything(wc.Predictions):
    """Each kind of parameter."""

    centre: Any = parameter(ndim=2, columns=2, if_fewer="give numbers to Weibull")
    share: Any = parameter(unit_interval, called="fraction", remedy="divide by 100")
    weights: Any = parameter(simplex, ndim=2, own_length=True, default=None)
    total: Any = derived()
    unit: str = "m"
    target_domain: ClassVar[Domain] = whole_numbers

    def __post_init__(self) -> None:
        super().__post_init__()
        self.store(total=self.centre.sum(axis=1) * self.share)


def test_all_kinds_of_parameters() -> None:
    pred = Everything(np.ones((3, 2)), 0.5, unit="km")
    assert pred.array_fields == ("centre", "share", "weights", "total")
    assert pred.weights is None
    assert_allclose(pred[1:].total, [1.0, 1.0])
    assert pred[1:].unit == "km"
    assert not pred.continuous
    assert Weibull.continuous
    assert Everything(np.ones((3, 2)), np.ones(3), np.full((3, 4), 0.25)).weights.shape == (3, 4)
    for arguments, message in (
        ((np.ones((3, 1)), 0.5), r"at least 2 columns, found shape \(3, 1\); give numbers to Weibull"),
        ((np.ones((3, 2)), [1.0, 50.0, 2.0]), r"fraction must lie in \[0, 1\] in row 1: .*; divide by 100"),
        ((np.ones((3, 2)), np.ones(2)), "fraction and centre must have the same length, found 2 and 3"),
        ((3.0, np.ones(2)), "centre must be 2-dimensional, found the number 3.0"),
        ((np.ones((2, 2)), 1.0, np.ones((2, 2))), "the sum of weights must be one"),
    ):
        with pytest.raises(ValueError, match=message):
            Everything(*arguments)
    with pytest.raises(ValueError, match="non-negative whole number"):
        wc.Poisson(np.ones(2)).check_targets([1.0, 0.5])


def test_a_domain_of_ones_own() -> None:
    below_one = Domain("below one", lambda x: x < 1, "must be below one", "take its inverse")

    @family
    class Small(wc.Predictions):
        at: Any = parameter(below_one)
        target_domain: ClassVar[Domain] = below_one

    with pytest.raises(ValueError, match=r"at must be below one in row 1: found 2\.; take its inverse"):
        Small([0.0, 2.0])
    with pytest.raises(ValueError, match="y must be below one in row 0"):
        Small([0.0, 0.5]).check_targets([1.0, 0.0])
    assert Small([0.0]).target_kind == "below one"
    assert Weibull.parameter_fields["shape"].domain is positive
    assert wc.Normal.parameter_fields["loc"].domain is real


# -- what it can do ----------------------------------------------------------------------------------


def test_supports() -> None:
    @family
    class Drawn(wc.Predictions):
        at: Any = parameter()

        def draw(self, rng: np.random.Generator, size: int) -> Any:
            return np.broadcast_to(self.at, (size, len(self)))

    pred = Drawn([1.0, 2.0])
    assert pred.supports("sample")
    assert [pred.supports(what) for what in ("mean", "cdf", "quantile", "interquartile_range")] == [False] * 4
    assert pred.missing("cdf") == "Drawn has no cdf"
    with pytest.raises(TypeError, match="Drawn has no quantile"):
        pred.require("quantile")
    with pytest.raises(TypeError, match="Drawn has no interquartile range"):
        pred.interquartile_range()
    with pytest.raises(ValueError, match=r"unknown method of predictions 'cfd'.*did you mean 'cdf'"):
        pred.supports("cfd")
    mixture = wc.Mixture([pred, wc.Normal([0.0, 1.0], 1.0)])
    assert mixture.supports("sample")
    assert mixture.missing("quantile") == "this Mixture has no quantile: Drawn has no cdf"
    assert all(PRED.supports(what) for what in ("sample", "mean", "variance", "log_prob", "cdf", "quantile"))
    assert not PRED.supports("upper_quantile")


@pytest.mark.parametrize(
    ("pred", "lacks"),
    [
        (wc.Normal(np.zeros(2), 1.0), {"class_probs"}),
        (wc.Poisson(np.ones(2)), {"class_probs", "upper_quantile"}),
        (wc.DiagonalNormal(np.zeros((2, 2)), 1.0), {"class_probs", "cdf", "quantile", "upper_quantile"}),
        (wc.Bernoulli([0.2, 0.3]), {"upper_quantile"}),
        (wc.Categorical(np.full((2, 2), 0.5)), {"upper_quantile"}),
        (
            wc.Categorical(np.full((2, 2), 0.5), classes=["a", "b"]),
            {"mean", "variance", "interquartile_range", "cdf", "quantile", "upper_quantile"},
        ),
        (
            wc.Categorical(np.full((2, 2), 0.5), support=[[0.0, 1.0], [1.0, 0.0]]),
            {"cdf", "quantile", "upper_quantile"},
        ),
        (wc.Samples(np.zeros((2, 3))), {"log_prob", "class_probs", "upper_quantile"}),
        (
            wc.Samples(np.zeros((2, 3, 2))),
            {"log_prob", "class_probs", "cdf", "quantile", "upper_quantile"},
        ),
        (
            wc.Samples([["a"], ["b"]]),
            {"mean", "variance", "log_prob", "cdf", "quantile", "upper_quantile", "interquartile_range"}
            | {"class_probs"},
        ),
        (
            wc.Quantiles([0.8, 0.9], np.zeros((2, 2))),
            {"mean", "variance", "log_prob", "upper_quantile", "interquartile_range", "class_probs"},
        ),
        (
            wc.PowerExponential(np.zeros((1, 2)), shape=2.0, cov=np.eye(2)[None]),
            {"cdf", "quantile", "upper_quantile", "class_probs"},
        ),
        (
            wc.Mixture([wc.Normal(np.zeros(2), 1.0), wc.Poisson(np.ones(2))]),
            {"log_prob", "upper_quantile", "class_probs"},
        ),
        (
            wc.Mixture([wc.Normal(np.zeros(2), 1.0), wc.Samples(np.zeros((2, 3)))]),
            {"log_prob", "upper_quantile", "class_probs"},
        ),
        (wc.Mixture([wc.Bernoulli([0.2, 0.3])] * 2), {"upper_quantile"}),
    ],
)
def test_what_families_say_of_themselves_is_true(pred: Any, lacks: set[str]) -> None:
    arguments = {
        "log_prob": (pred.sample(0),),
        "cdf": (0.5,),
        "quantile": (0.85,),
        "upper_quantile": (0.2,),
    }
    names = ("sample", "mean", "variance", "log_prob", "cdf", "quantile", "upper_quantile")
    for what in (*names, "interquartile_range", "class_probs"):
        assert pred.supports(what) == (what not in lacks), what
        if pred.supports(what):
            getattr(pred, what)(*arguments.get(what, ()))
        elif hasattr(pred, what):
            with pytest.raises(TypeError):
                getattr(pred, what)(*arguments.get(what, ()))


# -- generic paths -----------------------------------------------------------------------------------


def test_everything_works_with_nothing_registered() -> None:
    assert float(wc.skce(Y, PRED, estimator="biased")) >= 0
    result = wc.calibration_test(Y, PRED, method="exact", n_resamples=99, rng=0)
    assert 0.01 <= result.pvalue <= 1.0
    wrong = wc.calibration_test(Y, Weibull(SHAPE, 0.2 * SCALE), method="exact", n_resamples=99, rng=0)
    assert wrong.pvalue == 0.01
    score = wc.crps(Y, PRED)
    assert score.provenance["expectations"] == "lowered"
    assert score.value == pytest.approx(np.mean(closed_crps(PRED, Y)), rel=1e-9)
    assert float(wc.energy_score(Y, PRED, power=1.5)) > 0
    assert float(wc.nll(Y, PRED)) == pytest.approx(-np.mean(stats.weibull_min(SHAPE, scale=SCALE).logpdf(Y)))
    assert float(wc.pinball_loss(Y, PRED)) > 0
    assert float(wc.mse(Y, PRED)) > 0
    assert 0 < float(wc.quantile_calibration(Y, PRED)) < 0.5
    with pytest.raises(TypeError, match="no closed form for Weibull"):
        TemperatureScaling().fit(Y, PRED)
    with pytest.raises(TypeError, match="no closed form for a Mixture with components of Weibull"):
        apply_temperature(wc.Mixture([PRED, wc.Normal(np.zeros(N), 1.0)]), 2.0)


def test_mixtures_with_it() -> None:
    mixture = wc.Mixture([PRED, wc.Normal(SCALE, 0.5)], [0.25, 0.75])
    assert_allclose(mixture.mean(), 0.25 * PRED.mean() + 0.75 * SCALE)
    assert_allclose(mixture.cdf(mixture.quantile(0.3)), np.full(N, 0.3), rtol=1e-9)
    assert mixture.target_kind == "real"
    assert wc.Mixture([PRED, PRED]).target_kind == "nonnegative"
    assert float(wc.skce(Y, mixture, estimator="biased")) >= 0
    assert_allclose(float(wc.crps(Y, wc.Mixture([PRED, PRED]))), np.mean(closed_crps(PRED, Y)), rtol=1e-9)


def test_it_is_stored_sliced_and_joined() -> None:
    again = predictions_from_dict(json.loads(json.dumps(predictions_to_dict(PRED))))
    assert type(again) is Weibull
    assert np.array_equal(again.scale, SCALE)
    parts = [PRED[::2], PRED[1::2]]
    joined = concatenate(parts, ["even", "odd"], "both")
    assert_allclose(joined.shape, np.concatenate([SHAPE[::2], SHAPE[1::2]]))
    assert len(PRED[SHAPE > 1.5]) == (SHAPE > 1.5).sum()


def test_other_libraries_and_derivatives() -> None:
    tensors = [torch.tensor(x, requires_grad=True) for x in (SHAPE, SCALE)]
    pred = Weibull(*tensors)
    assert isinstance(pred.sample(0), torch.Tensor)
    value = wc.crps(torch.tensor(Y), pred).value
    value.backward()
    step = 1e-5
    for k, tensor in enumerate(tensors):
        up, down = ([SHAPE, SCALE] for _ in range(2))
        up[k], down[k] = up[k] + step, down[k] - step
        slope = (closed_crps(Weibull(*up), Y) - closed_crps(Weibull(*down), Y)) / (2.0 * step * N)
        assert_allclose(to_numpy(tensor.grad), slope, rtol=1e-6, atol=1e-9)
    with jax.enable_x64(True):
        batch = Weibull(jnp.asarray(SHAPE), jnp.asarray(SCALE))
        leaves, structure = jax.tree_util.tree_flatten(batch)
        assert len(leaves) == 2
        assert type(jax.tree_util.tree_unflatten(structure, leaves)) is Weibull
        options: Any = {"kernel": wc.default_kernel(PRED), "expectations": wc.Lowering(nodes=32)}
        found = jax.jit(lambda y, p: wc.skce(y, p, **options).value)(jnp.asarray(Y), batch)
        assert float(found) == pytest.approx(float(wc.skce(Y, PRED, **options)), rel=1e-9, abs=1e-12)


# -- rules of its own --------------------------------------------------------------------------------


class Known(Weibull):
    """The same with rules: they serve this very class."""


CRPS_RULES.register(Known)(by_rows(closed_crps))


@MIXTURE_CRPS_RULES.register(Known)
def mixture_crps(predictions: Any, y: Any) -> Any:
    return 7.0 + 0.0 * y


@ENERGY_RULES.register(Known)
def energy(predictions: Any, at: Any, power: float) -> Any:
    return power + 0.0 * at[:, 0]


@TEMPERATURES.register(Known)
def temperature(pred: Known, T: Any) -> Known:
    return Known(pred.shape, pred.scale * T ** (1.0 / pred.shape))


def test_rules_of_its_own_are_used() -> None:
    known = Known(SHAPE, SCALE)
    score = wc.crps(Y, known)
    assert score.provenance["expectations"] == "closed"
    assert score.value == pytest.approx(float(wc.crps(Y, PRED)), rel=1e-9)
    assert float(wc.crps(Y, wc.Mixture([known, known]))) == 7.0
    assert float(wc.crps(Y, wc.Mixture([known, PRED]))) == pytest.approx(float(wc.crps(Y, PRED)), rel=1e-9)
    assert float(wc.energy_score(Y, known, power=1.5)) == 1.5
    assert float(wc.energy_score(Y, wc.Mixture([known, known]), power=1.5)) == 1.5
    short = Known(SHAPE, 0.5 * SCALE)
    scaling = TemperatureScaling().fit(Y, short)
    assert scaling.temperature_ > 1.0
    assert scaling.family_ == "Known"
    assert float(wc.nll(Y, scaling.transform(short))) < float(wc.nll(Y, short))
    with pytest.raises(TypeError, match=r"no closed form for Weibull; it has one for .*Known"):
        apply_temperature(PRED, 2.0)
    with pytest.raises(ValueError, match="there is a CRPS of Known already"):
        CRPS_RULES.register(Known)(closed_crps)


def test_every_scipy_distribution_has_a_crps() -> None:
    generic = wc.as_predictions(stats.weibull_min(SHAPE, scale=SCALE))
    assert float(wc.crps(Y, generic)) == pytest.approx(np.mean(closed_crps(PRED, Y)), rel=1e-9)


# -- the example ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def example() -> Any:
    with pytest.MonkeyPatch.context() as patch, ADAPTERS.restored():
        patch.syspath_prepend(Path(__file__).parents[2] / "examples")
        yield importlib.import_module("your_own_family")


def test_what_the_example_registers_is_right(example: Any) -> None:
    pred = example.Weibull(SHAPE, SCALE)
    assert_allclose(pred.upper_quantile(1e-20), stats.weibull_min(SHAPE, scale=SCALE).isf(1e-20))
    assert float(wc.crps(Y, pred)) == pytest.approx(float(wc.crps(Y, PRED)), rel=1e-9)
    assert type(predictions_from_dict(predictions_to_dict(PRED))) is Weibull  # there are two of this name
    assert type(predictions_from_dict(predictions_to_dict(pred))) is example.Weibull
    frozen = stats.weibull_min(SHAPE, scale=SCALE)
    assert_allclose(wc.as_predictions(frozen).shape, SHAPE, rtol=1e-12)
    assert isinstance(wc.as_predictions(stats.weibull_min(SHAPE, loc=1.0)), ScipyContinuous)
    # Its atoms agree with those that every family with quantiles has.
    kernel, options = Gaussian(0.7), {"expectations": wc.Lowering(nodes=128)}
    assert_allclose(
        wc.pairing(kernel, pred, pred, **options), wc.pairing(kernel, PRED, PRED, **options), rtol=1e-9
    )
    # E|Q(U) - Q'(U)|^2 in gamma functions.
    form, rows = distance(Wasserstein(), pred)
    i, j = np.triu_indices(N, 1)
    second = SCALE**2 * special.gamma(1.0 + 2.0 / SHAPE)
    product = SCALE[i] * SCALE[j] * special.gamma(1.0 + 1.0 / SHAPE[i] + 1.0 / SHAPE[j])
    expected = np.sqrt(second[i] + second[j] - 2.0 * product)
    found = form(pred.ops, rows, rows)[i, j] ** (1.0 / form.degree)
    assert_allclose(found, expected, rtol=1e-7)
    assert repr(wc.default_kernel(pred)).startswith("ExpDistance(Wasserstein")
    assert wc.default_kernel(pred).guarantees(pred).positive_definite
    scale = torch.tensor(SCALE, requires_grad=True)
    value = wc.skce(torch.tensor(Y), example.Weibull(torch.tensor(SHAPE), scale), kernel=KERNEL).value
    value.backward()
    assert torch.isfinite(scale.grad).all()


# -- conformance -------------------------------------------------------------------------------------


def test_it_conforms() -> None:
    assert not check_predictions(PRED[:10]).skipped


@pytest.mark.parametrize(
    ("members", "law"),
    [
        ({"quantile": lambda self, u: 1.01 * Weibull.quantile(self, u)}, "inverse"),
        ({"mean": lambda self: self.scale}, "moments"),
        ({"draw": lambda self, rng, size: rng.weibull(self.shape, (size, len(self)))}, "moments"),
        ({"log_prob": lambda self, y: Weibull.log_prob(self, y) + 0.01}, "density"),
        ({"target_domain": unit_interval}, "targets"),
        ({"array_fields": ("shape",)}, "indexing"),
    ],
)
def test_mistakes_are_caught(members: dict[str, Any], law: str) -> None:
    wrong = type("Wrong", (Weibull,), members)
    with pytest.raises(ConformanceError) as caught:
        check_predictions(wrong(SHAPE[:10], SCALE[:10]))
    assert caught.value.law == law


def test_a_family_without_declared_parameters_conforms() -> None:
    """Arrays by name, whose values nothing checks."""

    @dataclass(frozen=True, repr=False, eq=False)
    class PlainLogistic(wc.Predictions):
        loc: Any
        scale: Any
        array_fields = ("loc", "scale")

        def cdf(self, y: Any) -> Any:
            return 1.0 / (1.0 + np.exp(-(y - self.loc) / self.scale))

        def quantile(self, u: Any) -> Any:
            with np.errstate(divide="ignore"):
                return self.loc + self.scale * (np.log(u) - np.log1p(-u))

        def draw(self, rng: np.random.Generator, size: int) -> Any:
            return rng.logistic(self.loc, self.scale, (size, len(self)))

    report = check_predictions(
        PlainLogistic(np.linspace(-1.0, 1.0, 10), np.linspace(0.5, 2.0, 10)), draws=1000
    )
    assert len(report.passed) == 8


def test_a_class_derived_from_a_family_has_its_own_atoms_and_distances() -> None:
    """Unless it says nothing new about the distributions."""

    class Shifted(wc.Normal):
        """Normals whose means are 5 higher than `loc` says."""

        def quantile(self, u: Any) -> Any:
            return super().quantile(u) + 5.0

        def upper_quantile(self, q: Any) -> Any:
            return super().upper_quantile(q) + 5.0

        def cdf(self, y: Any) -> Any:
            return super().cdf(np.asarray(y) - 5.0)

        def mean(self) -> Any:
            return super().mean() + 5.0

    class Renamed(wc.Normal):
        """Normals by another name."""

    loc, scale = np.linspace(-1.0, 1.0, 9), np.full(9, 0.8)
    y, kernel = np.sin(np.arange(9.0)), wc.default_kernel(wc.Normal(loc, scale))
    moved, same = wc.skce(y, wc.Normal(loc + 5.0, scale), kernel=kernel), wc.skce(y, wc.Normal(loc, scale))
    assert float(wc.skce(y, Shifted(loc, scale), kernel=kernel)) == pytest.approx(float(moved), abs=1e-6)
    assert float(wc.skce(y, Renamed(loc, scale))) == pytest.approx(float(same), abs=1e-6)
