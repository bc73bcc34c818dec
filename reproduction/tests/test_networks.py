"""Ten networks at once are ten networks: against PyTorch, layer for layer and step for step."""

import numpy as np
import pytest
import torch

from reproduction.experiments.networks import DECAY, EPSILON, LEARNING_RATE, glorot_networks

LAYERS = (10, 20, 7, 1)
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(size=(30, 10)), RNG.normal(size=30)


def torch_networks(networks):
    found = []
    for k in range(len(networks.weights[0])):
        layers = []
        for weight, offset in zip(networks.weights, networks.offsets, strict=True):
            layer = torch.nn.Linear(*weight.shape[1:], dtype=torch.float64)
            layer.weight.data = torch.tensor(weight[k].T.copy())
            layer.bias.data = torch.tensor(offset[k].copy())
            layers += [layer, torch.nn.ReLU()]
        found.append(torch.nn.Sequential(*layers[:-1]))
    return found


def test_training_follows_torch():
    networks = glorot_networks(np.random.default_rng(1), 3, LAYERS)
    others = torch_networks(networks)
    optimisers = [torch.optim.Adam(other.parameters()) for other in others]
    for _ in range(50):
        networks.step(X, Y)
        for other, optimiser in zip(others, optimisers, strict=True):
            optimiser.zero_grad()
            torch.mean((other(torch.tensor(X))[:, 0] - torch.tensor(Y)) ** 2).backward()
            optimiser.step()
    theirs = np.stack([other(torch.tensor(X))[:, 0].detach().numpy() for other in others])
    np.testing.assert_allclose(networks.predict(X), theirs, rtol=1e-9, atol=1e-12)


def test_initial_weights_are_uniform_and_offsets_zero():
    networks = glorot_networks(np.random.default_rng(2), 10, (10, 200, 50, 1))
    for weight in networks.weights:
        bound = np.sqrt(6.0 / sum(weight.shape[1:]))
        assert np.abs(weight).max() <= bound
        assert np.isclose(weight.std(), bound / np.sqrt(3.0), rtol=0.1)
    assert not any(offset.any() for offset in networks.offsets)


def batched_predictions(weights, offsets, x, y, steps, learning_rate):
    """All networks at once, a layer as one batched product: the formulas of Adam written down once more."""
    parameters = [np.array(value) for value in (*weights, *(offset[:, None] for offset in offsets))]
    means, squares = ([np.zeros_like(value) for value in parameters] for _ in range(2))
    count = len(weights)

    def forward():
        values = [np.broadcast_to(x, (len(parameters[0]), *x.shape))]
        for layer in range(count):
            value = np.einsum("kni,kio->kno", values[-1], parameters[layer]) + parameters[count + layer]
            values.append(np.maximum(value, 0.0) if layer + 1 < count else value)
        return values

    for step in range(1, steps + 1):
        values = forward()
        back = 2.0 * (values[-1] - y[:, None]) / len(y)
        gradients = [None] * (2 * count)
        for layer in reversed(range(count)):
            gradients[layer] = np.einsum("kni,kno->kio", values[layer], back)
            gradients[count + layer] = back.sum(axis=1, keepdims=True)
            back = np.einsum("kno,kio->kni", back, parameters[layer]) * (values[layer] > 0.0)
        for index, gradient in enumerate(gradients):
            means[index] = DECAY[0] * means[index] + (1.0 - DECAY[0]) * gradient
            squares[index] = DECAY[1] * squares[index] + (1.0 - DECAY[1]) * gradient**2
            unbiased = means[index] / (1.0 - DECAY[0] ** step), squares[index] / (1.0 - DECAY[1] ** step)
            parameters[index] = parameters[index] - learning_rate * unbiased[0] / (
                np.sqrt(unbiased[1]) + EPSILON
            )
    return forward()[-1][:, :, 0]


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_one_after_the_other_is_all_at_once(factor):
    networks = glorot_networks(np.random.default_rng(3), 4, LAYERS, factor * LEARNING_RATE)
    start = [weight.copy() for weight in networks.weights], [offset.copy() for offset in networks.offsets]
    for _ in range(60):
        networks.step(X, Y)
    known = batched_predictions(*start, X, Y, 60, factor * LEARNING_RATE)
    np.testing.assert_allclose(networks.predict(X), known, rtol=1e-9, atol=1e-12)
    assert networks.steps == 60
