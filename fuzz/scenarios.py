"""Calibration problems that are right: targets, predictions, and everything else that a call may want."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

import wellcal as wc
from wellcal.kernels import Callable, Delta, ExpDistance, Gaussian, Laplacian, TotalVariation, Wasserstein


@dataclass
class Scenario:
    """One problem of n cases.

    Attributes
    ----------
    family
        Name of its family.
    make, parameters
        What makes predictions, and of which arrays by name.
    y
        Targets, drawn from the predictions.
    """

    family: str
    make: Any
    parameters: dict[str, Any]
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.pred = self.make(**self.parameters)
        self.n = len(self.pred)
        self.y: Any = self.pred.sample(self.rng)
        if self.family == "Dirichlet":
            self.y = self.y / self.y.sum(axis=1, keepdims=True)

    @property
    def weights(self) -> Any:
        return self.rng.uniform(0.5, 2.0, self.n)

    @property
    def groups(self) -> Any:
        return self.rng.integers(0, max(2, self.n // 2), self.n)

    @property
    def locations(self) -> Any:
        if self.rng.random() < 0.5:
            return int(self.rng.integers(1, 4))
        return self.pred[:3], self.y[:3]

    @property
    def is_discrete(self) -> bool:
        return self.family in ("Bernoulli", "Categorical", "classes")

    @property
    def kernel(self) -> Any:
        """A kernel that serves, or None for the default."""
        if self.rng.random() < 0.4 or self.family in ("objects",):
            return None if self.family != "objects" else Callable(_same) @ Callable(_equal)
        if self.is_discrete:
            return ExpDistance(TotalVariation()) @ Delta()
        if self.family in ("Normal", "DiagonalNormal", "Laplace"):
            return ExpDistance(Wasserstein()) @ (Laplacian() if self.family == "Laplace" else Gaussian())
        return None


def _same(p: Any, q: Any) -> float:
    return 1.0


def _equal(a: Any, b: Any) -> float:
    return 1.0 if a == b else 0.0


QUICK = ("Bernoulli", "Categorical", "classes", "Normal", "Laplace", "DiagonalNormal", "Samples", "Mixture")
SLOW = (
    "support",
    "MultivariateNormal",
    "Poisson",
    "NegativeBinomial",
    "StudentT",
    "Gamma",
    "LogNormal",
    "Beta",
    "Dirichlet",
    "PowerExponential",
    "atoms",
    "vectors",
    "Quantiles",
)


def scenario(rng: np.random.Generator, family: str | None = None) -> Scenario:
    """A problem of a family, of any family where none is given; quick ones more often."""
    if family is None:
        family = str(rng.choice(QUICK if rng.random() < 0.7 else SLOW))
    n = int(rng.integers(6, 11))
    real, positive, unit = rng.normal(size=n), rng.uniform(0.5, 2.0, n), rng.uniform(0.05, 0.95, n)
    table, simplex = rng.normal(size=(n, 2)), rng.dirichlet(np.ones(3), n)
    cov = np.stack([np.eye(2) * s for s in positive])
    choices: dict[str, tuple[Any, dict[str, Any]]] = {
        "Bernoulli": (wc.Bernoulli, {"probs": unit}),
        "Categorical": (wc.Categorical, {"probs": simplex}),
        "classes": (wc.Categorical, {"probs": simplex, "classes": ["a", "b", "c"]}),
        "support": (wc.Categorical, {"probs": simplex, "support": np.array([1.0, 2.0, 5.0])}),
        "Normal": (wc.Normal, {"loc": real, "scale": positive}),
        "Laplace": (wc.Laplace, {"loc": real, "scale": positive}),
        "DiagonalNormal": (wc.DiagonalNormal, {"loc": table, "scale": np.ones((n, 2))}),
        "MultivariateNormal": (wc.MultivariateNormal, {"loc": table, "cov": cov}),
        "Poisson": (wc.Poisson, {"rate": positive}),
        "NegativeBinomial": (wc.NegativeBinomial, {"mean": positive, "dispersion": unit}),
        "StudentT": (wc.StudentT, {"df": positive + 3.0, "loc": real, "scale": positive}),
        "Gamma": (wc.Gamma, {"shape": positive + 1.0, "scale": positive}),
        "LogNormal": (wc.LogNormal, {"mu": real, "sigma": 0.5 * positive}),
        "Beta": (wc.Beta, {"a": positive + 1.0, "b": positive + 1.0}),
        "Dirichlet": (wc.Dirichlet, {"concentration": simplex + 1.0}),
        "PowerExponential": (wc.PowerExponential, {"loc": real, "scale": positive, "shape": positive + 0.5}),
        "Samples": (wc.Samples, {"values": rng.normal(size=(n, 4))}),
        "atoms": (wc.Samples, {"values": rng.normal(size=(n, 3)), "weights": simplex, "kind": "atoms"}),
        "vectors": (wc.Samples, {"values": rng.normal(size=(n, 4, 2))}),
        "Quantiles": (
            wc.Quantiles,
            {"levels": np.array([0.1, 0.5, 0.9]), "values": np.sort(rng.normal(size=(n, 3)), axis=1)},
        ),
        "Mixture": (
            wc.Mixture,
            {
                "components": [wc.Normal(real, positive), wc.Normal(-real, 1.0)],
                "weights": np.array([0.4, 0.6]),
            },
        ),
    }
    make, parameters = choices[family]
    return Scenario(family, make, parameters, rng)


def as_foreign(problem: Scenario) -> Any:
    """Predictions as another library, or a user, would give them."""
    given = problem.parameters
    if problem.family == "Normal":
        pair = given["loc"], given["scale"]
        return [pair, stats.norm(*pair), pair[0] * 0.0 + 0.5][int(problem.rng.integers(2))]
    if problem.family in ("Bernoulli", "Categorical"):
        return given["probs"]
    return problem.pred
