"""Classes, labels and supports of Bernoulli and categorical predictions."""

from __future__ import annotations

from typing import Any

import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats

import wellcal.predictions as wp
from wellcal._arrays.namespaces import to_numpy

RNG = np.random.default_rng(3)
PROBS = RNG.dirichlet(np.ones(4), 5)
INDEX = np.array([3, 0, 2, 1, 1])


@pytest.mark.parametrize(
    ("classes", "support"),
    [
        (None, None),
        (["d", "b", "a", "c"], None),
        ([10, 5, 7, 1], None),
        ([0.5, 0.25, 0.1, 3.0], None),
        ([True, "yes", None, 2], None),
        (np.array(["x", "y", "zz", "w"], dtype=object), None),
        (torch.tensor([4, 3, 2, 1]), None),
        (None, [5.0, 0.1, -2.0, 3.0]),
        (None, [4, 3, 2, 1]),
        (None, [[0.0, 1.0], [1.0, 0.0], [0.1, 0.1], [2.0, 2.0]]),
    ],
    ids=str,
)
@pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor, array_api_strict.asarray, jnp.asarray])
def test_labels_become_indices_and_samples_are_labels(classes: Any, support: Any, convert: Any) -> None:
    pred = wp.Categorical(convert(PROBS), classes, support)
    labels = pred.labels()
    expected = classes if classes is not None else support if support is not None else range(4)
    assert labels.tolist() == np.asarray(expected, dtype=labels.dtype).tolist()
    y = labels[INDEX]
    for given in (y, y.tolist()):
        found = pred.check_targets(given)
        assert isinstance(found, type(convert(INDEX)))
        assert "int" in str(found.dtype)
        assert np.array_equal(to_numpy(found), INDEX)
    chosen = to_numpy(convert(PROBS))[np.arange(5), INDEX]
    assert_allclose(to_numpy(pred.log_prob(y)), np.log(chosen), rtol=1e-6)
    drawn = pred.sample(0)
    again = to_numpy(pred.check_targets(drawn))
    assert np.array_equal(to_numpy(pred.sample(0)), to_numpy(drawn))
    if labels.dtype.kind in "OU":
        assert isinstance(drawn, np.ndarray)
        assert drawn.tolist() == labels[again].tolist()
    else:
        assert isinstance(drawn, type(convert(INDEX)))
        assert_allclose(to_numpy(drawn), labels[again], rtol=1e-6)


def test_whole_floats_and_booleans_are_class_numbers() -> None:
    pred = wp.Categorical(PROBS)
    assert pred.check_targets([3.0, 0.0, 2.0, 1.0, 1.0]).tolist() == INDEX.tolist()
    two = wp.Categorical(PROBS[:, :2] / PROBS[:, :2].sum(1, keepdims=True))
    assert two.check_targets([True, False, True, True, False]).tolist() == [1, 0, 1, 1, 0]
    with pytest.raises(
        TypeError, match=r"y has the names 'a', and the .* Categorical\(probs, classes=\('a', \.\.\.\)\)"
    ):
        pred.check_targets(["a"] * 5)


def test_support_values() -> None:
    assert wp.Bernoulli([0.5]).support_values().tolist() == [0.0, 1.0]
    assert wp.Bernoulli([0.5]).labels().tolist() == [0, 1]
    assert wp.Categorical(PROBS).support_values().tolist() == [0.0, 1.0, 2.0, 3.0]
    assert wp.Categorical(PROBS, [3, 1, 2, 0]).support_values().tolist() == [3.0, 1.0, 2.0, 0.0]
    assert wp.Categorical(PROBS, list("abcd")).support_values() is None
    for pred in (wp.Categorical(PROBS), wp.Categorical(PROBS, support=[3, 1, 2, 0])):
        assert pred.support_values().dtype == np.float64


def test_probabilities_are_kept_as_given() -> None:
    probs = PROBS * (1.0 + 3e-7)
    assert np.array_equal(wp.Categorical(probs).class_probs(), probs)
    assert_allclose(wp.Bernoulli([0.2, 0.7]).class_probs(), [[0.8, 0.2], [0.3, 0.7]])


def test_numbers_of_a_support_against_scipy() -> None:
    support = np.array([5.0, -2.0, 0.5, 3.0])
    pred = wp.Categorical(PROBS, support=support)
    order = np.argsort(support)
    for i, p in enumerate(PROBS):
        reference = stats.rv_discrete(values=(np.arange(4), p[order]))
        values = support[order]
        assert_allclose(pred.mean()[i], p @ support, rtol=1e-14)
        assert_allclose(pred.variance()[i], p @ (support - p @ support) ** 2, rtol=1e-14)
        for u in (0.01, 0.3, 0.5, 0.99):
            assert pred.quantile(u)[i] == values[int(reference.ppf(u))]
        for k, value in enumerate(values):
            assert_allclose(pred.cdf(value)[i], reference.cdf(k), rtol=1e-14)
            assert_allclose(pred.cdf(np.nextafter(value, -9.0))[i], reference.cdf(k - 1), atol=1e-16)


def test_quantiles_stay_inside_the_support_that_has_mass() -> None:
    pred = wp.Categorical([[0.0, 0.5, 0.5, 0.0], [0.1, 0.2, 0.7, 0.0]], support=[1, 2, 3, 4])
    assert pred.quantile(0.0).tolist() == [2.0, 1.0]
    assert pred.quantile(1.0).tolist() == [3.0, 3.0]
    # 0.1 + 0.2 is a little more than 0.3, and 0.7 + (0.1 + 0.2) a little less than 1: neither may matter.
    assert pred.quantile(0.3)[1] == 2.0
    with pytest.raises(ValueError, match=r"u must be numbers between 0 and 1, found 1\.2"):
        pred.quantile(1.2)
    assert set(np.unique(pred.sample(0, 2000))) == {1.0, 2.0, 3.0}


def test_vectors_as_support() -> None:
    support = RNG.normal(size=(4, 2))
    pred = wp.Categorical(PROBS, support=support)
    assert pred.event_shape == (2,)
    assert_allclose(pred.mean(), PROBS @ support)
    assert_allclose(pred.variance(), PROBS @ support**2 - (PROBS @ support) ** 2)
    for k in range(2):
        one = wp.Categorical(PROBS, support=support[:, k])
        assert_allclose(pred.interquartile_range()[:, k], one.interquartile_range())
    for method in (pred.cdf, pred.quantile):
        with pytest.raises(TypeError, match="Categorical of vectors has no"):
            method(0.5)
    with pytest.raises(ValueError, match="not among the classes in row 0"):
        pred.check_targets(np.zeros((5, 2)))
    with pytest.raises(ValueError, match="must be 2-dimensional"):
        pred.check_targets(np.zeros(5))


@pytest.mark.parametrize("method", ["mean", "variance", "interquartile_range", "cdf", "quantile"])
def test_labels_are_not_numbers(method: str) -> None:
    for classes in (list("abcd"), [1, 2, 3, 4]):
        pred = wp.Categorical(PROBS, classes)
        with pytest.raises(TypeError, match=r"its classes are names; give the numbers .* as support="):
            getattr(pred, method)(*([0.5] if method in ("cdf", "quantile") else []))


def test_log_prob_of_what_cannot_occur() -> None:
    assert np.all(wp.Categorical(PROBS).log_prob(4) == -np.inf)
    assert np.all(wp.Categorical(PROBS, list("abcd")).log_prob("e") == -np.inf)
    assert_allclose(wp.Categorical(PROBS, list("abcd")).log_prob("b"), np.log(PROBS[:, 1]))
    assert_allclose(wp.Categorical([[0.0, 1.0]]).log_prob([0]), -np.inf)
    twice = wp.Categorical(PROBS).log_prob(np.stack([INDEX, INDEX]))
    assert_allclose(twice, np.log([PROBS[np.arange(5), INDEX]] * 2))
    with pytest.raises(ValueError, match=r"y must be a label or end in shape \(5,\), found shape \(4,\)"):
        wp.Categorical(PROBS).log_prob([0, 1, 2, 3])


def test_single_precision_targets_find_double_precision_supports() -> None:
    pred = wp.Categorical(PROBS, support=[0.1, 0.2, 0.3, 0.7])
    y = np.array([0.7, 0.1, 0.3, 0.2, 0.2], dtype=np.float32)
    assert pred.check_targets(y).tolist() == INDEX.tolist()


def test_labels_under_jit() -> None:
    with jax.enable_x64(True):
        pred = wp.Categorical(jnp.asarray(PROBS), [3, 1, 2, 0])
        found = jax.jit(lambda p, y: p.check_targets(y))(pred, jnp.asarray([0, 3, 2, 1, 1]))
        assert found.tolist() == INDEX.tolist()
        named = wp.Categorical(jnp.asarray(PROBS), list("abcd"))
        with pytest.raises(TypeError, match="looked up outside of jit"):
            jax.jit(lambda p, y: p.check_targets(y))(named, jnp.zeros(5))


def test_sampling_frequencies() -> None:
    probs = np.array([[0.0, 0.3, 0.0, 0.7, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]])
    drawn = wp.Categorical(probs).sample(1, 40_000)
    frequencies = np.stack([(drawn == k).mean(0) for k in range(5)], axis=1)
    assert np.all(frequencies[probs == 0.0] == 0.0)
    assert_allclose(frequencies, probs, atol=5 * np.sqrt(0.21 / 40_000))
