"""An engine of your own: who visits the pairs of cases, and how.

This one cuts the triangle of pairs into bands and sums them in single precision, after the terms of h have
been cancelled in double precision. It shows what an engine is for: another machine, another array
library, another trade of accuracy against time. Two methods are enough.

    python examples/your_own_engine.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import wellcal as wc
from wellcal import extend


@dataclass(frozen=True)
class Banded(extend.Engine):
    """Bands of rows against all later cases, summed in single precision."""

    height: int = 64
    name: ClassVar[str] = "banded"

    def supports(self, problem: extend.Problem) -> extend.Support:
        """NumPy only: gradients would be lost."""
        if not isinstance(problem.arrays[0], np.ndarray):
            return extend.Support(False, "it sums NumPy arrays only")
        return extend.Support(True)

    def triangle(self, problem: extend.Problem) -> extend.Sums:
        """Sums of h over all pairs i < j: in all, and for each case."""
        rows = np.zeros(problem.n)
        for start in range(0, problem.n - 1, self.height):
            stop = min(start + self.height, problem.n - 1)
            h = problem.values(slice(start, stop), slice(start + 1, problem.n))
            h = np.triu(h).astype(np.float32)  # row start + r, column start + 1 + c: i < j
            rows[start:stop] += h.sum(axis=1)
            rows[start + 1 :] += h.sum(axis=0)
        return extend.Sums(0.5 * rows.sum(), rows)


def main() -> None:
    """The same estimate by another engine, as an object and by name."""
    rng = np.random.default_rng(0)
    mu = rng.normal(size=500)
    y, pred = rng.normal(mu, 1.0), wc.Normal(mu, np.full(500, 0.7))
    usual, own = wc.skce(y, pred), wc.skce(y, pred, engine=Banded())
    print(f"tiled  {float(usual):.9f} +- {usual.standard_error:.6f}")
    print(f"banded {float(own):.9f} +- {own.standard_error:.6f}")
    print("relative difference below 1e-6:", abs(float(own) / float(usual) - 1.0) < 1e-6)

    extend.engine(Banded(height=128), priority=1.0)  # from now on "auto" takes it where it can
    found = wc.calibration_test(y, pred, method="multiplier", rng=1)
    print("auto is", wc.skce(y, pred).provenance["engine"], "and a test with it has p =", found.pvalue)


if __name__ == "__main__":
    main()
