"""A test of your own: Neyman's smooth test of the probability integral transform, exact at every sample size.

If a model is calibrated, u = F(y), its distribution function at the target, is uniform on [0, 1]. Neyman
(1937) takes the first K polynomials that are orthonormal under the uniform distribution and sums up the
squares of their means over the cases: the first sees a wrong centre, the second a wrong spread, and so on.

A method is a frozen dataclass that derives from `Method`: options are fields, and `run` turns a prepared case
into an outcome. Here it draws sets of targets from the predictions and compares the statistic of the observed
targets with those of the drawn ones. Nothing about the distribution of the statistic needs to be known, ties
are taken care of, and any family with a distribution function will do: normals, counts, mixtures, draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import legendre

import wellcal as wc
from wellcal.hypotests import Method, Outcome, Setup, monte_carlo_pvalue, target_sets


@dataclass(frozen=True)
class NeymanSmooth(Method):
    """Neyman's smooth test with `order` polynomials."""

    order: int = 4

    name: ClassVar[str] = "neyman_smooth"  # by which it can be asked for

    def run(self, setup: Setup) -> Outcome:
        """The exact p-value of Neyman's statistic."""
        # Blocks of sets of targets, (r, n) each. The very first set is the observed one.
        blocks = [self.statistic(setup.predictions, sets) for sets in target_sets(setup)]
        observed, *null = np.concatenate(blocks).tolist()
        return Outcome(
            statistic=observed,
            pvalue=monte_carlo_pvalue(observed, np.array(null)),
            label=f"Neyman's statistic of order {self.order}",
            null=np.array(null),
            provenance={"n_resamples": setup.n_resamples, "order": self.order},
        )

    def statistic(self, predictions: Any, targets: np.ndarray) -> np.ndarray:
        """``sum_k (sum_i p_k(u_i))^2 / n`` of sets ``(r, n)``; p_k are orthonormal."""
        u = predictions.cdf(targets)
        total = np.zeros(len(u))
        for k in range(1, self.order + 1):
            p_k = np.sqrt(2 * k + 1) * legendre.legval(2 * u - 1, np.eye(k + 1)[k])
            total += p_k.sum(axis=1) ** 2 / u.shape[1]
        return total


def main() -> None:
    rng = np.random.default_rng(0)
    mu = rng.normal(size=200)
    y = rng.normal(mu, 1.0)

    # Given as a value, with an option; or by its name.
    honest = wc.calibration_test(y, wc.Normal(mu, np.ones(200)), method=NeymanSmooth(order=3), rng=1)
    print(honest)
    timid = wc.calibration_test(y, wc.Normal(mu, np.full(200, 1.4)), method="neyman_smooth", rng=1)
    print(f"\nspread 1.4 times too large: p = {timid.pvalue:.3g}")

    # The error rate holds for few cases too, and for an ensemble of five draws for each of them.
    pvalues = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        centre = rng.normal(size=20)
        ensemble = wc.Samples(rng.normal(centre[:, None], 1.0, (20, 5)))
        test = wc.calibration_test(
            rng.normal(centre), ensemble, method=NeymanSmooth(), rng=seed, n_resamples=99
        )
        pvalues.append(test.pvalue)
    share = float(np.mean(np.array(pvalues) <= 0.05))
    print(f"calibrated ensembles rejected at alpha = 0.05: {share:.1%} of {len(pvalues)}")


if __name__ == "__main__":
    main()
