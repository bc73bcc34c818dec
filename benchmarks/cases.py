"""What is measured: seeded inputs, small enough in description to be rebuilt by a child process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import wellcal as wc
from wellcal.kernels import ExpDistance, Gaussian, Kernel, Wasserstein
from wellcal.problem.defaults import default_kernel

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class NormalCase:
    """n univariate normal predictions under the paper's kernel, exp(-W_2) times a Gaussian, both of scale 1.

    The targets are less spread out than predicted, so that the true error is not zero.
    """

    n: int

    @property
    def title(self) -> str:
        return f"{self.n:,} normals"

    @property
    def pairs(self) -> int:
        return self.n * (self.n - 1) // 2

    @cached_property
    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Means, standard deviations and targets, ``(n,)`` each."""
        rng = np.random.default_rng(self.n)
        mu = rng.normal(size=self.n)
        sigma = rng.uniform(0.5, 1.5, self.n)
        return mu, sigma, mu + 0.8 * sigma * rng.normal(size=self.n)

    @property
    def kernel(self) -> Kernel:
        return ExpDistance(Wasserstein()) @ Gaussian()

    def first(self, n: int) -> NormalCase:
        """A case of the same kind with at most n predictions."""
        return NormalCase(min(n, self.n))


@dataclass(frozen=True)
class ClassCase:
    """n vectors of class probabilities under the default kernel, exp(-TV / scale) times Delta.

    `scale` is what wellcal's default chooses. It is stored, so that the other competitors get it for nothing
    while wellcal is timed with the choice: `ClassCase.with_default_scale` finds it.
    """

    n: int
    classes: int
    scale: float

    @property
    def title(self) -> str:
        return f"{self.n:,} x {self.classes:,} class probabilities"

    @property
    def pairs(self) -> int:
        return self.n * (self.n - 1) // 2

    @cached_property
    def arrays(self) -> tuple[FloatArray, IntArray]:
        """Probabilities ``(n, classes)`` and labels ``(n,)``, drawn from them flattened by a square root."""
        rng = np.random.default_rng(self.n + self.classes)
        probabilities = np.exp(2.0 * rng.normal(size=(self.n, self.classes)))
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        flattened = np.cumsum(np.sqrt(probabilities), axis=1)
        threshold = rng.random((self.n, 1)) * flattened[:, -1:]
        return probabilities, np.sum(flattened < threshold, axis=1)

    @classmethod
    def with_default_scale(cls, n: int, classes: int) -> ClassCase:
        probabilities, _ = cls(n, classes, 1.0).arrays
        kernel: Any = default_kernel(wc.Categorical(probabilities))
        return cls(n, classes, kernel.predictions.lengthscale)

    def first(self, n: int) -> ClassCase:
        """A case of the same kind with at most n predictions."""
        return ClassCase(min(n, self.n), self.classes, self.scale)


Case = NormalCase | ClassCase
