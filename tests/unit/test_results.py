"""Estimates as values: printing, conversion, intervals, immutability, and passage through JAX."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats

import wellcal as wc
from wellcal.kernels import Callable, ExpDistance, Gaussian, Wasserstein
from wellcal.measures.estimate import Estimate
from wellcal.measures.intervals import Interval

KERNEL = ExpDistance(Wasserstein(), lengthscale=0.5) @ Gaussian(2.0)
FULL = Estimate(0.0123456789, 0.00123456, "SKCE", "unbiased", 150, KERNEL, {"expectations": "closed"})


def test_the_representation_says_what_how_and_with_what() -> None:
    assert repr(FULL).splitlines() == [
        "SKCE = 0.0123457 +- 0.001235  (unbiased, 150 cases)",
        "  kernel  ExpDistance(Wasserstein(order=2), lengthscale=0.5, power=1) @ Gaussian(lengthscale=2)",
    ]


def test_the_representation_leaves_out_what_is_not_known() -> None:
    assert repr(Estimate(-0.25)) == "SKCE = -0.25"
    assert repr(Estimate(0.5, None, "KCE", "biased", 3)) == "KCE = 0.5  (biased, 3 cases)"
    assert "left out" not in repr(Estimate(0.5, provenance={"dropped": 0}))


def test_one_number_is_one_line_in_notebooks() -> None:
    """The caption of a table without rows is as narrow as its longest word."""
    shown = Estimate(0.5, None, "NLL", "mean", 3)._repr_html_()
    assert shown == '<table><tr><td style="text-align:left">NLL = 0.5  (mean, 3 cases)</td></tr></table>'


def test_the_representation_reports_numerical_expectations_and_dropped_cases() -> None:
    provenance = {"lowered": ["rule one", "rule two"], "expectation_error": 1.23e-7, "dropped": 4}
    lines = repr(Estimate(0.5, provenance=provenance)).splitlines()
    assert "  expectations  numerical, estimated error 1.2e-07; rule one; rule two" in lines
    assert "  left out      the last 4 cases (incomplete block)" in lines
    provenance["expectation_error"] = math.nan
    assert "no error estimate" in repr(Estimate(0.5, provenance=provenance))


def test_notebooks_show_a_table() -> None:
    assert FULL._repr_html_().startswith("<table><caption>SKCE = 0.0123457 +- 0.001235  (unbiased, 150")
    assert '<td style="text-align:left">ExpDistance(' in FULL._repr_html_()


def test_to_dict_and_back() -> None:
    plain = json.loads(FULL.to_json(allow_nan=False))
    assert plain["value"] == FULL.value
    assert plain["kernel_text"] == repr(KERNEL)
    assert Estimate.from_dict(plain) == FULL
    tensor = Estimate(torch.tensor(0.25, requires_grad=True), jnp.asarray(0.5), "KCE", "biased", 3)
    assert Estimate.from_dict(tensor.to_dict()) == Estimate(0.25, 0.5, "KCE", "biased", 3)
    infinite = Estimate(math.inf, name="NLL")
    assert Estimate.from_dict(json.loads(infinite.to_json(allow_nan=False))) == infinite
    named = Estimate(0.5, kernel=Callable(lambda a, b: a @ b.T) @ Gaussian())
    assert Estimate.from_dict(named.to_dict()).kernel is None
    assert Estimate.from_dict(named.to_dict(), kernel=named.kernel) == named


def test_estimates_with_more_to_say_hand_it_on() -> None:
    found = wc.interval_coverage(Y, wc.Normal(MU, SIGMA))
    plain = json.loads(found.to_json(allow_nan=False))
    assert plain["levels"] == [0.5, 0.8, 0.9, 0.95]
    back = type(found).from_dict(plain)
    assert_allclose(back.coverage, found.coverage, rtol=0)
    assert back.value == found.value


def test_estimates_are_numbers() -> None:
    assert float(FULL) == FULL.value
    for value in (
        np.float64(0.25),
        np.array(0.25),
        torch.tensor(0.25, requires_grad=True),
        jnp.asarray(0.25),
    ):
        assert float(Estimate(value)) == 0.25
        assert repr(Estimate(value)) == "SKCE = 0.25"


def test_estimates_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        FULL.value = 0.0  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        FULL.confidence_interval().low = 0.0  # type: ignore[misc]


def test_estimates_do_not_share_their_provenance() -> None:
    Estimate(0.0).provenance["seen"] = True
    assert Estimate(0.0).provenance == {}


def test_intervals_are_those_of_the_normal_distribution() -> None:
    for level in (0.01, 0.5, 0.95, 0.9999):
        low, high = stats.norm.interval(level, FULL.value, FULL.standard_error)
        interval = FULL.confidence_interval(level)
        assert_allclose((interval.low, interval.high), (low, high), rtol=1e-12)
        assert interval == Interval(interval.low, interval.high, level)
    assert FULL.confidence_interval().level == 0.95
    exact = Estimate(1.0, 0.0).confidence_interval()
    assert exact.low == exact.high == 1.0


def test_intervals_of_tensors_are_numbers() -> None:
    for one in (torch.tensor, jnp.asarray, np.asarray):
        interval = Estimate(one(0.5), one(0.25)).confidence_interval(0.9)
        assert isinstance(interval.low, float)
        assert_allclose((interval.low, interval.high), stats.norm.interval(0.9, 0.5, 0.25), rtol=1e-6)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 95, math.nan])
def test_levels_are_probabilities(level: float) -> None:
    with pytest.raises(ValueError, match=f"level must be between 0 and 1, found {level}"):
        FULL.confidence_interval(level)


def test_no_interval_without_a_standard_error() -> None:
    with pytest.raises(ValueError, match="no standard error is known for the biased estimator of KCE"):
        Estimate(0.5, None, "KCE", "biased").confidence_interval()


# -- libraries --------------------------------------------------------------------------------------------

MU, SIGMA = np.linspace(-1.0, 1.0, 12), np.linspace(0.5, 1.5, 12)
Y = MU + 0.3 * np.cos(np.arange(12.0))


def test_values_are_of_the_library_of_the_input() -> None:
    numpy = wc.skce(Y, wc.Normal(MU, SIGMA), kernel=KERNEL)
    assert type(numpy.value) is float
    assert type(numpy.standard_error) is float
    mu = torch.tensor(MU, requires_grad=True)
    tensor = wc.skce(torch.tensor(Y), wc.Normal(mu, torch.tensor(SIGMA)), kernel=KERNEL)
    assert isinstance(tensor.value, torch.Tensor)
    assert tensor.value.shape == ()
    assert tensor.value.requires_grad
    assert_allclose(float(tensor), numpy.value, rtol=1e-12)
    assert_allclose(float(tensor.standard_error), numpy.standard_error, rtol=1e-10)
    assert not getattr(tensor.standard_error, "requires_grad", False)
    with jax.enable_x64(True):
        array = wc.skce(jnp.asarray(Y), wc.Normal(jnp.asarray(MU), jnp.asarray(SIGMA)), kernel=KERNEL)
        assert isinstance(array.value, jax.Array)
        assert array.value.shape == ()
        assert_allclose(float(array), numpy.value, rtol=1e-12)
        assert_allclose(float(array.standard_error), numpy.standard_error, rtol=1e-10)
        assert array.provenance["precision"] == "float64"
    single = wc.skce(jnp.asarray(Y), wc.Normal(jnp.asarray(MU), jnp.asarray(SIGMA)), kernel=KERNEL)
    assert single.value.dtype == jnp.float32
    assert single.provenance["precision"].startswith("float32")


def test_estimates_are_pytrees() -> None:
    with jax.enable_x64(True):

        def estimate(mu: Any) -> Estimate:
            return wc.skce(jnp.asarray(Y), wc.Normal(mu, jnp.asarray(SIGMA)), kernel=KERNEL)

        outside, inside = estimate(jnp.asarray(MU)), jax.jit(estimate)(jnp.asarray(MU))
        assert isinstance(inside, Estimate)
        assert inside.kernel == KERNEL
        assert inside.estimator == "unbiased"
        assert inside.n_samples == 12
        assert_allclose(float(inside), float(outside), rtol=1e-12)
        assert_allclose(float(inside.standard_error), float(outside.standard_error), rtol=1e-10)
        leaves, tree = jax.tree.flatten(outside)
        assert len(leaves) == 2
        assert jax.tree.unflatten(tree, leaves).provenance == outside.provenance
        doubled = jax.tree.map(lambda x: 2.0 * x, outside)
        assert_allclose(float(doubled), 2.0 * float(outside), rtol=1e-15)


def test_traced_estimates_can_be_printed() -> None:
    seen: list[str] = []

    @jax.jit
    def estimate(mu: Any) -> Any:
        result = wc.skce(jnp.asarray(Y), wc.Normal(mu, jnp.asarray(SIGMA)), kernel=KERNEL)
        seen.append(repr(result))
        return result.value

    estimate(jnp.asarray(MU))
    assert seen[0].startswith("SKCE = traced  (unbiased, 12 cases)")
