"""The confidence reduction."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import wellcal as wc

PROBS = np.random.default_rng(3).dirichlet(np.ones(4), 30)
LABELS = np.random.default_rng(4).integers(4, size=30)


@pytest.mark.parametrize("convert", [np.asarray, torch.asarray, jnp.asarray], ids=["numpy", "torch", "jax"])
def test_top_class_and_its_probability(convert):
    correct, top = wc.confidence(convert(LABELS), wc.Categorical(convert(PROBS)))
    np.testing.assert_array_equal(np.asarray(correct), PROBS.argmax(1) == LABELS)
    np.testing.assert_allclose(np.asarray(top.probs), PROBS.max(1), rtol=1e-6)
    assert type(top.probs) is type(convert(PROBS))


def test_gradient_flows_to_the_top_probability():
    probs = torch.tensor(PROBS, requires_grad=True)
    wc.confidence(LABELS, wc.Categorical(probs))[1].probs.sum().backward()
    np.testing.assert_array_equal(probs.grad.numpy(), np.eye(4)[PROBS.argmax(1)])


def test_ties_go_to_the_first_class():
    correct, top = wc.confidence([0, 1], np.full((2, 2), 0.5))
    np.testing.assert_array_equal(correct, [1, 0])
    np.testing.assert_array_equal(top.probs, [0.5, 0.5])


def test_bernoulli_below_one_half_predicts_zero():
    correct, top = wc.confidence([0, 1, 1], wc.Bernoulli(np.array([0.2, 0.2, 0.9])))
    np.testing.assert_array_equal(correct, [1, 0, 1])
    np.testing.assert_allclose(top.probs, [0.8, 0.8, 0.9])


def test_labels():
    correct, _ = wc.confidence(
        ["b", "a"], wc.Categorical(np.array([[0.9, 0.1], [0.8, 0.2]]), classes=["a", "b"])
    )
    np.testing.assert_array_equal(correct, [0, 1])


def test_every_measure_takes_the_reduction():
    estimate = wc.skce(*wc.confidence(LABELS, PROBS))
    by_hand = wc.skce(1 * (PROBS.argmax(1) == LABELS), wc.Bernoulli(PROBS.max(1)))
    assert estimate.value == by_hand.value


def test_other_families_are_refused():
    with pytest.raises(TypeError, match="Bernoulli or Categorical predictions, found Normal"):
        wc.confidence([0.0], wc.Normal([0.0], [1.0]))
