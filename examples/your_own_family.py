"""A family of your own in one file: Weibull distributions of lifetimes.

The class alone is enough for every measure and test: expectations are then taken by quadrature through the
quantile function. What is registered below makes some of them exact or quicker, and adds temperature scaling.

    python examples/your_own_family.py
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import special, stats

import wellcal as wc
from wellcal import conformance, extend
from wellcal.extend import parameter, positive, quiet, to_numpy
from wellcal.kernels import Wasserstein

# -- the family: parameters with their domains, and what is known of the distributions -----------------


@extend.family
class Weibull(wc.Predictions):
    """Weibull distributions of a lifetime: ``P(Y > y) = exp(-(y / scale)**shape)``."""

    shape: Any = parameter(positive)
    scale: Any = parameter(positive)

    target_domain: ClassVar[extend.Domain] = extend.nonnegative

    def draw(self, rng: np.random.Generator, size: int) -> Any:
        """NumPy draws, (size, n)."""
        return to_numpy(self.scale) * rng.weibull(to_numpy(self.shape), (size, len(self)))

    @quiet  # the quantile at level 1 is infinite, and NumPy need not warn
    def quantile(self, u: Any) -> Any:
        """Quantiles at levels `u`."""
        return self._at_hazard(-self.ops.log1p(-self.argument(u, "u")))

    @quiet
    def upper_quantile(self, q: Any) -> Any:
        """Quantiles at levels 1 - q, to full precision for tiny q."""
        return self._at_hazard(-self.ops.log(self.argument(q, "q")))

    def _at_hazard(self, hazard: Any) -> Any:
        return self.scale * hazard ** (1.0 / self.shape)

    def cdf(self, y: Any) -> Any:
        """Distribution function at `y`."""
        return -self.ops.expm1(-self._hazard(y))

    def _hazard(self, y: Any) -> Any:
        z = self.argument(y, "y") / self.scale
        return self.ops.where(z > 0, z, 0.0 * z) ** self.shape

    @quiet
    def log_prob(self, y: Any) -> Any:
        """Log density at `y`; minus infinity for negative `y`."""
        ops, z = self.ops, self.argument(y, "y") / self.scale
        possible = z >= 0
        z = ops.where(possible, z, ops.one(z))
        found = ops.log(self.shape / self.scale) + ops.xlogy(self.shape - 1.0 + 0.0 * z, z) - z**self.shape
        return ops.where(possible, found, -np.inf * ops.one(found))

    def mean(self) -> Any:
        """Means, (n,)."""
        return self.scale * self._moment(1.0)

    def variance(self) -> Any:
        """Variances, (n,)."""
        return self.scale**2 * (self._moment(2.0) - self._moment(1.0) ** 2)

    def _moment(self, order: float) -> Any:
        return self.ops.exp(self.ops.gammaln(1.0 + order / self.shape))


# -- its CRPS: E|Z - y| - E|Z - Z'| / 2, where min(Z, Z') is Weibull with scale * 2**(-1 / shape) --------


@extend.crps(Weibull)
@extend.by_rows  # written for NumPy: this adds the other libraries, and derivatives
def weibull_crps(pred: Weibull, y: np.ndarray) -> np.ndarray:
    """Scores of n cases."""
    below = special.gammainc(1.0 + 1.0 / pred.shape, (y / pred.scale) ** pred.shape)
    smaller = 2.0 ** (-1.0 / pred.shape)  # E min(Z, Z') / E Z
    return y * (2.0 * pred.cdf(y) - 1.0) + pred.mean() * (smaller - 2.0 * below)


# -- its atoms: the trapezoidal rule in the normal score, with atoms that move with the parameters ----------


def nodes_of(pred: Weibull, count: int) -> tuple[Any, Any]:
    """Quantiles (n, S) at equally spaced normal scores, and their weights (S,)."""
    scores = np.linspace(-8.25, 8.25, 2 * count + 1)[1::2]
    log_hazard = pred.constant(np.log(-special.log_ndtr(-scores)))
    weights = pred.constant(special.softmax(-0.5 * scores**2))
    return pred.scale[:, None] * pred.ops.exp(log_hazard / pred.shape[:, None]), weights


@extend.lowering(Weibull)
def weibull_atoms(pred: Weibull, nodes: int, points: int) -> extend.Atoms:
    """Atoms for expectations that have no closed form."""
    values, weights = nodes_of(pred, nodes)
    weights = pred.xp.broadcast_to(weights, values.shape)
    return extend.Atoms(values, weights, f"quantiles at {nodes} normal scores", nested=True)


# -- its distance: that of quantile functions, as one of points with a coordinate for each quantile ----------


@extend.distance(Wasserstein, Weibull)
def weibull_distance(metric: Wasserstein, pred: Weibull) -> Any:
    """Coordinates, and 1.0 where their differences are to be added without squares."""
    values, weights = nodes_of(pred, 128)
    return (weights * values, 1.0) if metric.order == 1 else weights**0.5 * values


@extend.default_metric(Weibull)
def weibull_metric(on_targets: Any) -> tuple[Wasserstein, float]:
    """The metric of the default kernel, and its power."""
    return Wasserstein(), 1.0


# -- its temperature: densities with respect to y**(shape - 1) dy, to the power 1 / T ---------------------


@extend.temperature(Weibull)
def weibull_temperature(pred: Weibull, T: Any) -> Weibull:
    """Less certain for T > 1; the shape stays."""
    return Weibull(pred.shape, pred.scale * T ** (1.0 / pred.shape))


# -- where it comes from: frozen distributions of scipy.stats become this family --------------------------


def is_weibull(obj: Any) -> bool:
    """Whether an object is stats.weibull_min(...) that begins at zero."""
    dist = getattr(obj, "dist", None)
    return isinstance(dist, type(stats.weibull_min)) and not np.any(obj.support()[0])


@extend.adapter(is_weibull, kind="a frozen stats.weibull_min")
def from_scipy(frozen: Any) -> Weibull:
    """Parameters from two quantiles, which does not depend on how they were given."""
    low, high = np.atleast_1d(frozen.ppf(-np.expm1(-1.0)), frozen.ppf(-np.expm1(-2.0)))
    return Weibull(np.log(2.0) / np.log(high / low), low)


def main() -> None:
    """Check the family, then judge and mend a model whose lifetimes are too short."""
    rng = np.random.default_rng(0)
    shape, scale = rng.uniform(0.8, 3.0, 300), rng.uniform(0.5, 2.0, 300)
    print(conformance.check_predictions(Weibull(shape[:10], scale[:10])))

    y = Weibull(shape, scale).sample(rng)
    model = wc.as_predictions(stats.weibull_min(shape, scale=0.7 * scale))
    print(f"\nCRPS   {float(wc.crps(y, model)):.4f} ({wc.crps(y, model).provenance['expectations']})")
    for name, pred in (
        ("as it is", model),
        ("scaled", wc.TemperatureScaling().fit(y, model).transform(model)),
    ):
        result = wc.calibration_test(y, pred, rng=1, n_resamples=199)
        print(f"{name:9} SKCE {float(result.estimate):+.4f}, p = {result.pvalue:.3f}")


if __name__ == "__main__":
    main()
