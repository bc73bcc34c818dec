"""Small fully connected networks, many of them trained at once.

All arrays carry the networks along their first axis, so that a layer of all networks is one batched
product of matrices.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction.tasks import FloatArray

LEARNING_RATE = 1e-3
DECAY = (0.9, 0.999)
EPSILON = 1e-8


@dataclass
class Networks:
    """K networks with ReLU between layers, and the state of Adam.

    Attributes
    ----------
    weights, offsets
        For each layer, ``(K, inputs, outputs)`` and ``(K, 1, outputs)``.
    moments
        First and second moments of the gradients in the order of weights, then offsets.
    steps
        Steps taken so far.
    """

    weights: list[FloatArray]
    offsets: list[FloatArray]
    moments: list[tuple[FloatArray, FloatArray]]
    steps: int = 0

    @property
    def parameters(self) -> list[FloatArray]:
        """Weights, then offsets."""
        return [*self.weights, *self.offsets]

    def predict(self, x: FloatArray) -> FloatArray:
        """Outputs ``(K, n)`` for inputs ``(n, d)``."""
        return self._forward(x)[-1][:, :, 0]

    def _forward(self, x: FloatArray) -> list[FloatArray]:
        """Inputs of all layers, and the output."""
        values: list[FloatArray] = [np.broadcast_to(x, (len(self.weights[0]), *x.shape))]
        for index, (weight, offset) in enumerate(zip(self.weights, self.offsets, strict=True)):
            value = values[-1] @ weight
            value += offset
            values.append(np.maximum(value, 0.0, out=value) if index + 1 < len(self.weights) else value)
        return values

    def gradients(self, x: FloatArray, y: FloatArray) -> list[FloatArray]:
        """Gradients of the mean squared error of each network, in the order of `parameters`."""
        values = self._forward(x)
        back = (values.pop()[:, :, 0] - y)[:, :, None] * (2.0 / len(y))
        weights: list[FloatArray] = []
        offsets: list[FloatArray] = []
        for index in reversed(range(len(self.weights))):
            weights.append(np.swapaxes(values[index], 1, 2) @ back)
            offsets.append(np.sum(back, axis=1, keepdims=True))
            if index > 0:
                back = back @ np.swapaxes(self.weights[index], 1, 2)
                back *= values[index] > 0.0
        return [*reversed(weights), *reversed(offsets)]

    def step(self, x: FloatArray, y: FloatArray) -> None:
        """One step of Adam on the mean squared error over all cases (Kingma and Ba, 2015)."""
        self.steps += 1
        first, second = DECAY
        rate = LEARNING_RATE / (1.0 - first**self.steps)
        correction = 1.0 / (1.0 - second**self.steps)
        for parameter, gradient, (mean, square) in zip(
            self.parameters, self.gradients(x, y), self.moments, strict=True
        ):
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
            parameter -= root

    def state(self) -> dict[str, FloatArray]:
        """Everything that is needed to go on, as arrays."""
        arrays = {f"parameter{i}": value for i, value in enumerate(self.parameters)}
        for i, (mean, square) in enumerate(self.moments):
            arrays[f"mean{i}"], arrays[f"square{i}"] = mean, square
        return {**arrays, "steps": np.asarray(self.steps)}

    @classmethod
    def from_state(cls, state: Any) -> Networks:
        """Networks from what `state` returned."""
        count = sum(name.startswith("parameter") for name in state)
        parameters = [np.array(state[f"parameter{i}"]) for i in range(count)]
        moments = [(np.array(state[f"mean{i}"]), np.array(state[f"square{i}"])) for i in range(count)]
        return cls(parameters[: count // 2], parameters[count // 2 :], moments, int(state["steps"]))


def glorot_networks(rng: np.random.Generator, count: int, layers: tuple[int, ...]) -> Networks:
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
    offsets = [np.zeros((count, 1, outputs)) for outputs in layers[1:]]
    moments = [(np.zeros_like(value), np.zeros_like(value)) for value in (*weights, *offsets)]
    return Networks(weights, offsets, moments)
