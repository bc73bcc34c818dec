"""Ten networks at once are ten networks: against PyTorch, layer for layer and step for step."""

import numpy as np
import torch

from reproduction.experiments.networks import Networks, glorot_networks

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
            layer.bias.data = torch.tensor(offset[k, 0].copy())
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
    assert all(not offset.any() for offset in networks.offsets)


def test_a_saved_state_goes_on_to_the_last_digit():
    networks = glorot_networks(np.random.default_rng(3), 2, LAYERS)
    for _ in range(5):
        networks.step(X, Y)
    again = Networks.from_state({name: value.copy() for name, value in networks.state().items()})
    for _ in range(5):
        networks.step(X, Y)
        again.step(X, Y)
    assert np.array_equal(networks.predict(X), again.predict(X))
