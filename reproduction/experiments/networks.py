"""Small fully connected networks, trained side by side.

All parameters of a network lie in one array, so that Adam is a dozen passes over it; the networks are
trained one after the other in each step, so that what they compute stays in the cache. This takes about half
the time of batched products over all networks, and gives the same numbers.
"""

from __future__ import annotations

import itertools

import numpy as np

from reproduction.tasks import FloatArray

LEARNING_RATE = 1e-3
DECAY = (0.9, 0.999)
EPSILON = 1e-8


class Networks:
    """K networks with ReLU between layers, and the state of Adam.

    Parameters
    ----------
    weights
        For each layer, ``(K, inputs, outputs)``. Offsets start at zero.
    learning_rate
        Of Adam.

    Attributes
    ----------
    weights, offsets
        For each layer, ``(K, inputs, outputs)`` and ``(K, outputs)``.
    steps
        Steps taken so far.
    """

    def __init__(self, weights: list[FloatArray], learning_rate: float = LEARNING_RATE) -> None:
        count = len(weights[0])
        shapes = [layer.shape[1:] for layer in weights]
        total = sum(inputs * outputs + outputs for inputs, outputs in shapes)
        self.learning_rate = learning_rate
        self.steps = 0
        self._parameters = np.zeros((count, total))
        self._gradients = np.zeros_like(self._parameters)
        self._means, self._squares = np.zeros_like(self._parameters), np.zeros_like(self._parameters)
        self.weights, self.offsets = _views(self._parameters, shapes)
        self._weight_gradients, self._offset_gradients = _views(self._gradients, shapes)
        for view, value in zip(self.weights, weights, strict=True):
            view[...] = value

    def predict(self, x: FloatArray) -> FloatArray:
        """Outputs ``(K, n)`` for inputs ``(n, d)``."""
        return np.stack([self._forward(k, x)[-1][:, 0] for k in range(len(self._parameters))])

    def _forward(self, k: int, x: FloatArray) -> list[FloatArray]:
        """Inputs of all layers of a network, and its output."""
        values: list[FloatArray] = [x]
        for index, (weight, offset) in enumerate(zip(self.weights, self.offsets, strict=True)):
            value = values[-1] @ weight[k]
            value += offset[k]
            values.append(np.maximum(value, 0.0, out=value) if index + 1 < len(self.weights) else value)
        return values

    def _backward(self, k: int, x: FloatArray, y: FloatArray) -> None:
        """Gradients of the mean squared error of a network."""
        values = self._forward(k, x)
        back = values.pop()
        back -= y[:, None]
        back *= 2.0 / len(y)
        for index in reversed(range(len(self.weights))):
            np.matmul(values[index].T, back, out=self._weight_gradients[index][k])
            np.sum(back, axis=0, out=self._offset_gradients[index][k])
            if index > 0:
                back = back @ self.weights[index][k].T
                back *= values[index] > 0.0

    def step(self, x: FloatArray, y: FloatArray) -> None:
        """One step of Adam on the mean squared error over all cases (Kingma and Ba, 2015)."""
        self.steps += 1
        first, second = DECAY
        rate = self.learning_rate / (1.0 - first**self.steps)
        correction = 1.0 / (1.0 - second**self.steps)
        for k, parameters in enumerate(self._parameters):
            self._backward(k, x, y)
            gradient, mean, square = self._gradients[k], self._means[k], self._squares[k]
            mean *= first
            mean += (1.0 - first) * gradient
            square *= second
            gradient *= gradient
            gradient *= 1.0 - second
            square += gradient
            root = np.sqrt(correction * square)
            root += EPSILON
            np.divide(mean, root, out=root)
            root *= rate
            parameters -= root


def _views(arrays: FloatArray, shapes: list[tuple[int, int]]) -> tuple[list[FloatArray], list[FloatArray]]:
    """Weights and offsets of each layer, as parts of one array."""
    weights: list[FloatArray] = []
    offsets: list[FloatArray] = []
    at = 0
    for inputs, outputs in shapes:
        weights.append(arrays[:, at : at + inputs * outputs].reshape(-1, inputs, outputs))
        at += inputs * outputs
        offsets.append(arrays[:, at : at + outputs])
        at += outputs
    return weights, offsets


def glorot_networks(
    rng: np.random.Generator, count: int, layers: tuple[int, ...], learning_rate: float = LEARNING_RATE
) -> Networks:
    """Networks with weights uniform on +-sqrt(6 / (inputs + outputs)), and zero offsets.

    See Glorot and Bengio (2010).

    Examples
    --------
    >>> networks = glorot_networks(np.random.default_rng(0), 10, (10, 200, 50, 1))
    >>> networks.predict(np.zeros((3, 10))).shape
    (10, 3)
    """
    weights: list[FloatArray] = []
    for inputs, outputs in itertools.pairwise(layers):
        bound = np.sqrt(6.0 / (inputs + outputs))
        weights.append(rng.uniform(-bound, bound, (count, inputs, outputs)))
    return Networks(weights, learning_rate)
