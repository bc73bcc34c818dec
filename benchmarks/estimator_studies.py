"""Studies of the estimators of the SKCE: bias and standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import integrate

import wellcal as wc
from benchmarks import environment
from benchmarks.data_sets import PREDICTED_SCALE, Data, synthetic
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.studies import generators, simulate
from wellcal.engines import Tiled
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein

ONE_THREAD = Tiled(threads=1)
PAPER_KERNEL = ExpDistance(Wasserstein()) @ Gaussian()
SIZES = (64, 256)
FAMILIES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "Categorical": lambda rng, n: wc.Categorical(rng.dirichlet(np.ones(4), n)),
    "Poisson": lambda rng, n: wc.Poisson(rng.gamma(2.0, 2.0, n)),
    "Laplace": lambda rng, n: wc.Laplace(rng.normal(size=n), rng.gamma(2.0, 0.5, n)),
    "Mixture": lambda rng, n: wc.Mixture([wc.Normal(rng.normal(size=n), np.ones(n)) for _ in range(3)]),
    "StudentT": lambda rng, n: wc.StudentT(4.0, rng.normal(size=n), np.ones(n)),
}


def expectations(family: str) -> Any:
    """A rule of fixed size for the family without a closed form: quicker, and as good for a mean of zero."""
    return wc.Lowering(nodes=32) if family == "StudentT" else "auto"


def unbiased_values(family: str, n: int, repeats: int, workers: int = 0) -> np.ndarray:
    """Unbiased estimates over data sets of a calibrated model: their mean is zero."""
    some = FAMILIES[family](generators(("kernel", family), 0)[0], 200)
    kernel = wc.default_kernel(some, expectations=expectations(family))
    run = partial(_unbiased, family=family, n=n, kernel=kernel)
    return np.array(simulate(("unbiased", family, n), run, repeats, workers))


def _unbiased(rng: np.random.Generator, _: object, *, family: str, n: int, kernel: Any) -> float:
    options: dict[str, Any] = {"expectations": expectations(family), "engine": ONE_THREAD}
    pred = FAMILIES[family](rng, n)
    return wc.skce(pred.sample(rng), pred, kernel=kernel, **options).value


def uncalibrated(n: int, rng: np.random.Generator) -> Data:
    """The paper's uncalibrated model in one dimension."""
    return synthetic("uncalibrated", 1, n, rng)


def truth() -> float:
    """The SKCE of the uncalibrated model with the paper's kernel, by integration over two predictions.

    Targets do not depend on the prediction: each pair adds k_P(c, c') <P_c - Q, P_c' - Q>, with Q the law of
    all targets.
    """
    centre, variance = 0.1, 2.0 * PREDICTED_SCALE**2

    def likeness(gap: float) -> float:
        return math.exp(-0.5 * gap**2 / (1.0 + variance)) / math.sqrt(1.0 + variance)

    def h(b: float, a: float) -> float:
        pairing = likeness(a - b) - likeness(a - centre) - likeness(b - centre) + likeness(0.0)
        return math.exp(-abs(a - b)) * pairing

    half, _ = integrate.dblquad(h, 0.0, 1.0, 0.0, lambda a: a, epsabs=1e-12)
    return 2.0 * half


def under_the_alternative(n: int, repeats: int, workers: int = 0) -> list[wc.Estimate]:
    """Estimates over data sets of the uncalibrated model."""
    return simulate(("alternative", n), partial(_alternative, n=n), repeats, workers)


def _alternative(rng: np.random.Generator, _: object, *, n: int) -> wc.Estimate:
    return wc.skce(*uncalibrated(n, rng), kernel=PAPER_KERNEL, engine=ONE_THREAD)


def stated_and_found(found: list[wc.Estimate]) -> tuple[float, float]:
    """The standard error that estimates state, in square mean, and the spread that they have."""
    stated = math.sqrt(np.mean([float(estimate.standard_error) ** 2 for estimate in found]))
    return stated, float(np.std([estimate.value for estimate in found], ddof=1))


def estimators(settings: Settings) -> Section:
    """Bias of unbiased estimates, and what their standard errors are worth."""
    load = environment.load_average()
    failures: list[str] = []
    rows: list[tuple[str, ...]] = []
    for family in FAMILIES:
        values = unbiased_values(family, 20, settings.data_sets)
        error = values.std(ddof=1) / math.sqrt(len(values))
        rows.append((family, f"{values.mean():.2e}", f"{error:.1e}"))
        if abs(values.mean()) > 4.0 * error:
            failures.append(f"{family}: mean {values.mean():.2e}, standard error {error:.1e}")
    exact = truth()
    alternative: list[tuple[str, ...]] = []
    for n in SIZES:
        found = under_the_alternative(n, settings.data_sets)
        stated, spread = stated_and_found(found)
        mean = float(np.mean([estimate.value for estimate in found]))
        alternative.append((str(n), f"{mean:.5f}", f"{spread:.5f}", f"{stated:.5f}"))
        if abs(mean - exact) > 4.0 * spread / math.sqrt(len(found)):
            failures.append(f"mean at n = {n}: {mean:.5f}, exact {exact:.5f}")
    header = ("n", "mean", "spread", "stated")
    body = (
        "Mean of unbiased estimates of calibrated models, 20 cases, "
        f"{settings.data_sets:,} data sets.\n\n"
        f"{table(('predictions', 'mean', 'standard error'), rows)}\n\n"
        f"The paper's uncalibrated model in one dimension, whose SKCE is {exact:.5f}: mean, spread and "
        f"stated standard\nerrors of {settings.data_sets:,} estimates.\n\n"
        f"{table(header, alternative)}\n\n{environment.describe(load)}"
    )
    return Section("estimators", "Estimators", body, tuple(failures))
