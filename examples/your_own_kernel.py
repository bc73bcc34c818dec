"""A kernel of your own with a closed form, and a metric of your own, in one file.

The kernel on targets is the product of a Gaussian and a cosine, ``exp(-x^2 / (2 l^2)) cos(w x)``: it looks
for errors that come back at a period, such as targets that people round to whole numbers. Its expectation
under normals is known, so that `skce` needs no quadrature. The metric compares predicted means only.

    python examples/your_own_kernel.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import wellcal as wc
from wellcal import conformance, extend
from wellcal.kernels import ExpDistance, Metric, Radial

# -- the kernel: a frozen dataclass that says how it is evaluated -----------------------------------


@dataclass(frozen=True)
class Ripple(Radial):
    """``exp(-x^2 / (2 l^2)) cos(w x)`` of the distance x between two numbers."""

    lengthscale: float = 1.0
    frequency: float = 2.0 * np.pi

    def radial(self, ops: Any, squared: Any) -> Any:
        """The kernel at a squared distance."""
        wave = ops.xp.cos(self.frequency * ops.root(squared))
        return wave * ops.exp(-0.5 * squared / self.lengthscale**2)


# -- its closed form: E k(Z, Z') for two normals, and for a normal and a point ------------------------


@extend.closed_form(Ripple, extend.Normals, extend.Normals, scalar=True)
@extend.closed_form(Ripple, extend.Normals, extend.Points, scalar=True)
def ripple_of_normals(ops: Any, kernel: Ripple, a: Any, b: Any) -> Any:
    """The difference is D ~ N(m, v): the real part of E exp(-D^2 / (2 l^2) + i w D)."""
    m = a.x[0] - b.x[0]
    v = a.v[0] + (b.v[0] if isinstance(b, extend.Normals) else 0.0)
    spread = 1.0 + v / kernel.lengthscale**2
    exponent = -0.5 * (m**2 / kernel.lengthscale**2 + kernel.frequency**2 * v) / spread
    return ops.exp(exponent) * ops.xp.cos(kernel.frequency * m / spread) / ops.sqrt(spread)


# -- a metric: where predictions are points in a Euclidean space, columns are all it takes -------------


@dataclass(frozen=True)
class MeanDistance(Metric):
    """Distance of predicted means: Hilbertian, and blind to everything else."""


@extend.distance(MeanDistance, wc.Normal)
@extend.distance(MeanDistance, wc.Laplace)
def mean_distance(metric: MeanDistance, predictions: Any) -> Any:
    """The means as points on the line."""
    return predictions.mean()


def main() -> None:
    """Targets that were rounded to whole numbers: the usual kernel hardly sees it, this one does."""
    conformance.check_kernel(Ripple(), wc.Normal(np.linspace(-1.0, 1.0, 8), 0.7))
    rng = np.random.default_rng(0)
    mu = rng.normal(0.0, 2.0, 300)
    pred = wc.Normal(mu, np.ones(300))
    rounded = np.rint(rng.normal(mu, 1.0))
    for name, kernel in (
        ("default", None),
        ("ripple", ExpDistance(MeanDistance(), lengthscale=10.0) @ Ripple(lengthscale=3.0)),
    ):
        result = wc.calibration_test(rounded, pred, kernel=kernel, method="exact", n_resamples=199, rng=1)
        how = wc.skce(rounded, pred, kernel=kernel).provenance["expectations"]
        print(f"{name:8} p = {result.pvalue:.3f}  (expectations: {how})")


if __name__ == "__main__":
    main()
