"""The confidence reduction, against NumPy's argmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import wellcal as wc
from wellcal._arrays.namespaces import to_numpy

RNG = np.random.default_rng(6)
PROBS = RNG.dirichlet(np.ones(4), 50)
LABELS = RNG.integers(0, 4, 50)
CORRECT = (PROBS.argmax(axis=1) == LABELS).astype(int)

LIBRARIES: dict[str, Callable[[Any], Any]] = {
    "numpy": np.asarray,
    "torch": torch.as_tensor,
    "jax": jnp.asarray,
    "strict": array_api_strict.asarray,
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_against_argmax(library: str) -> None:
    convert = LIBRARIES[library]
    with jax.enable_x64(True):
        probs, labels = convert(PROBS), convert(LABELS)
        for pred in (probs, wc.Categorical(probs)):
            correct, top = wc.confidence(labels, pred)
            assert isinstance(correct, type(probs))
            assert isinstance(top, wc.Bernoulli)
            assert isinstance(top.probs, type(probs))
            assert_array_equal(to_numpy(correct), CORRECT)
            assert_array_equal(to_numpy(top.probs), PROBS.max(axis=1))


def test_labels_and_support() -> None:
    classes = np.array(["ant", "bee", "cat", "dog"])
    correct, top = wc.confidence(classes[LABELS], wc.Categorical(PROBS, classes=classes))
    assert_array_equal(correct, CORRECT)
    assert_array_equal(top.probs, PROBS.max(axis=1))
    support = np.array([5.0, -1.0, 2.5, 0.0])
    correct, _ = wc.confidence(support[LABELS], wc.Categorical(PROBS, support=support))
    assert_array_equal(correct, CORRECT)


def test_ties_go_to_the_first_class() -> None:
    probs = np.array([[0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [1 / 3, 1 / 3, 1 / 3], [0.4, 0.4, 0.2]])
    for convert in LIBRARIES.values():
        with jax.enable_x64(True):
            correct, top = wc.confidence(convert(np.array([0, 2, 0, 1])), convert(probs))
        assert_array_equal(to_numpy(correct), [1, 0, 1, 0])
        assert_array_equal(to_numpy(top.probs), [0.4, 0.4, 1 / 3, 0.4])


@pytest.mark.parametrize("library", LIBRARIES)
def test_binary_predictions_below_one_half_are_of_the_other_class(library: str) -> None:
    convert = LIBRARIES[library]
    p = np.array([0.1, 0.1, 0.8, 0.8, 0.5, 0.5, 0.0, 1.0])
    y = np.array([0, 1, 0, 1, 0, 1, 0, 0])
    with jax.enable_x64(True):
        for pred in (convert(p), wc.Bernoulli(convert(p))):
            correct, top = wc.confidence(convert(y), pred)
            # One half is a tie, which goes to class 0.
            assert_array_equal(to_numpy(correct), [1, 0, 0, 1, 1, 0, 1, 0])
            assert_allclose(to_numpy(top.probs), [0.9, 0.9, 0.8, 0.8, 0.5, 0.5, 1.0, 1.0], rtol=1e-15)
        two, _ = wc.confidence(convert(y), convert(np.stack([1 - p, p], axis=1)))
        assert_array_equal(to_numpy(two), to_numpy(correct))


def test_booleans_are_classes() -> None:
    correct, _ = wc.confidence([True, False], wc.Bernoulli(np.array([0.7, 0.7])))
    assert_array_equal(correct, [1, 0])


def test_the_result_goes_into_every_measure() -> None:
    estimate = wc.skce(*wc.confidence(LABELS, PROBS))
    expected = wc.skce(CORRECT, wc.Bernoulli(PROBS.max(axis=1)))
    assert float(estimate) == float(expected)


def test_gradients_reach_the_probability_of_the_top_class_only() -> None:
    logits = torch.tensor(np.log(PROBS), requires_grad=True)
    probs = torch.softmax(logits, dim=1)
    probs.retain_grad()
    _, top = wc.confidence(torch.as_tensor(LABELS), probs)
    top.probs.sum().backward()
    expected = np.zeros_like(PROBS)
    expected[np.arange(50), PROBS.argmax(axis=1)] = 1.0
    assert_array_equal(to_numpy(probs.grad), expected)
    loss = wc.skce(*wc.confidence(torch.as_tensor(LABELS), torch.softmax(logits, dim=1))).value
    loss.backward()
    assert bool(torch.isfinite(logits.grad).all())
    assert float(logits.grad.abs().max()) > 0


def test_under_jit() -> None:
    with jax.enable_x64(True):

        @jax.jit
        def reduce(probs: Any, labels: Any) -> Any:
            correct, top = wc.confidence(labels, wc.Categorical(probs))
            return correct, top.probs

        correct, top = reduce(jnp.asarray(PROBS), jnp.asarray(LABELS))
        assert_array_equal(correct, CORRECT)
        assert_array_equal(top, PROBS.max(axis=1))


def test_other_predictions_and_labels_are_refused() -> None:
    with pytest.raises(
        TypeError, match="confidence needs Bernoulli or Categorical predictions, found Normal"
    ):
        wc.confidence(np.zeros(3), wc.Normal(np.zeros(3), np.ones(3)))
    with pytest.raises(ValueError, match="y is not among the classes in row 1: found 4"):
        wc.confidence([0, 4], PROBS[:2])
    with pytest.raises(ValueError, match="y and predictions must have the same length, found 3 and 50"):
        wc.confidence([0, 1, 2], PROBS)
