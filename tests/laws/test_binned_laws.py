"""Laws of binned calibration errors."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wellcal as wc
from wellcal import EqualMassBins, MedianVarianceBins, UniformBins
from wellcal.kernels import Callable, Delta

ece, mce = partial(wc.ece, reduce="none"), partial(wc.mce, reduce="none")  # of all probabilities
NAMES = ("total_variation", "euclidean", "squared_euclidean", 1, 3.0, math.inf)


@st.composite
def classes(draw: st.DrawFn, least: int = 2) -> tuple[Any, Any]:
    n, count = draw(st.integers(1, 40)), draw(st.integers(least, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    probs = rng.dirichlet(np.full(count, draw(st.sampled_from([0.1, 1.0, 10.0]))), n)
    return rng.integers(0, count, n), probs


RULES: list[Any] = [UniformBins(3), EqualMassBins(4), MedianVarianceBins(3)]


@given(classes(), st.sampled_from(RULES), st.sampled_from(NAMES))
@settings(max_examples=60, deadline=None)
def test_mean_is_at_most_maximum_and_both_are_errors(data: Any, rule: Any, distance: Any) -> None:
    y, probs = data
    mean, largest = (measure(y, probs, binning=rule, distance=distance).value for measure in (ece, mce))
    assert 0.0 <= mean <= largest * (1.0 + 1e-12)
    if distance == "total_variation":
        assert largest <= 1.0 + 1e-12


@given(classes(least=3), st.sampled_from([UniformBins(3), MedianVarianceBins(3)]), st.sampled_from(NAMES))
@settings(max_examples=40, deadline=None)
def test_names_of_classes_do_not_matter(data: Any, rule: Any, distance: Any) -> None:
    y, probs = data
    order = np.random.default_rng(0).permutation(probs.shape[1])
    renamed = np.argsort(order)[y]
    for measure in (ece, mce):
        value = measure(y, probs, binning=rule, distance=distance).value
        assert measure(renamed, probs[:, order], binning=rule, distance=distance).value == pytest.approx(
            value, rel=1e-10, abs=1e-14
        )


@given(classes(), st.sampled_from(RULES))
@settings(max_examples=40, deadline=None)
def test_order_of_cases_does_not_matter(data: Any, rule: Any) -> None:
    y, probs = data
    order = np.random.default_rng(0).permutation(len(y))
    value = ece(y, probs, binning=rule).value
    assert ece(y[order], probs[order], binning=rule).value == pytest.approx(value, rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("distance", NAMES)
def test_a_bernoulli_is_its_two_class_categorical(rule: Any, distance: Any) -> None:
    rng = np.random.default_rng(1)
    p = np.round(rng.random(60), 2)  # many on the edges of bins
    y = rng.integers(0, 2, 60)
    both = wc.Categorical(np.stack([1.0 - p, p], axis=1))
    for measure in (ece, mce):
        value = measure(y, wc.Bernoulli(p), binning=rule, distance=distance).value
        assert measure(y, both, binning=rule, distance=distance).value == value


@given(classes())
@settings(max_examples=40, deadline=None)
def test_relations_between_distances(data: Any) -> None:
    y, probs = data
    value = {d: ece(y, probs, binning="equal_mass", distance=d).value for d in NAMES}
    assert value[1] == pytest.approx(2.0 * value["total_variation"], rel=1e-12)
    assert value["squared_euclidean"] == pytest.approx(
        ece(y, probs, binning="equal_mass", distance=2).value, rel=1e-12
    )
    assert value["euclidean"] <= value[1] * (1 + 1e-12)
    assert value[math.inf] <= value["euclidean"] * (1 + 1e-12)


@given(classes())
@settings(max_examples=40, deadline=None)
def test_merged_bins_have_a_smaller_error(data: Any) -> None:
    """A convex distance of means is at most the mean of distances."""
    y, probs = data
    fine = EqualMassBins(8).cells(probs)
    for distance in NAMES:
        merged, split = (ece(y, probs, binning=b, distance=distance).value for b in (fine // 2, fine))
        assert merged <= split * (1 + 1e-12)


@pytest.mark.parametrize("classes", [2, 4])
def test_debiased_squares_are_unbiased_kernel_errors_within_bins(classes: int) -> None:
    rng = np.random.default_rng(5)
    probs, y = rng.dirichlet(np.ones(classes), 90), rng.integers(0, classes, 90)
    cells = EqualMassBins(3).cells(probs)
    constant = Callable(lambda a, b: np.ones((len(a), len(b)))) @ Delta()
    parts = [
        wc.skce(y[cells == c], wc.Categorical(probs[cells == c]), kernel=constant).value for c in range(3)
    ]
    found = ece(y, probs, binning=cells, distance="squared_euclidean", estimator="debiased").value
    assert found == pytest.approx(np.mean(parts), rel=1e-10)


def test_perfect_predictions_have_no_error() -> None:
    y = np.array([0, 1, 2, 1])
    probs = np.eye(3)[y]
    for measure in (ece, mce):
        assert measure(y, probs, binning="uniform").value == 0.0
    assert ece(np.zeros(3), wc.Poisson(np.zeros(3))).value == 0.0
