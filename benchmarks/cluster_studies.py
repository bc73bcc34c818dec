"""Studies of tests with `groups`: error rates where cases of a cluster depend on each other, and power."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import special, stats

import wellcal as wc
from benchmarks import environment
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.studies import ALPHA, rates
from wellcal.engines import Tiled

ONE_THREAD = Tiled(threads=1)
RESAMPLES = 199
SIZE = 5
"""Cases of a cluster."""

SHARED = 0.7
"""Correlation of normal scores of targets within a cluster, for calibrated models."""

SHARED_ERROR = 0.3
"""The same for models with an error, so that clusters of 5 are worth 2.3 cases."""

FAMILIES = ("Normal", "Poisson", "Bernoulli", "Categorical")
ERRORS = ("too narrow", "slope", "skew")


def scores(clusters: int, share: float, rng: np.random.Generator) -> Any:
    """Standard normal scores that are correlated within clusters."""
    common = np.repeat(rng.normal(size=clusters), SIZE)
    return np.sqrt(share) * common + np.sqrt(1.0 - share) * rng.normal(size=clusters * SIZE)


def calibrated(family: str, clusters: int, rng: np.random.Generator) -> Any:
    """Targets and predictions of a calibrated model."""
    z = scores(clusters, SHARED, rng)
    x, u = rng.normal(size=len(z)), special.ndtr(z)
    if family == "Normal":
        return x + z, wc.Normal(x, np.ones(len(z)))
    if family == "Poisson":
        mean = 3.0 * np.exp(0.5 * x)
        return stats.poisson.ppf(u, mean), wc.Poisson(mean)
    if family == "Bernoulli":
        p = special.expit(x)
        return (u < p).astype(int), wc.Bernoulli(p)
    p = special.softmax(rng.normal(size=(len(z), 4)), axis=1)
    return (u[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1), wc.Categorical(p)


def miscalibrated(error: str, clusters: int, rng: np.random.Generator) -> Any:
    """Targets and predictions of normals with an error."""
    z = scores(clusters, SHARED_ERROR, rng)
    x = rng.normal(size=len(z))
    if error == "too narrow":
        z = 1.22 * z
    elif error == "slope":
        z = z + 0.3 * x
    else:  # a gamma distribution of shape 4, of mean 0 and variance 1
        z = (stats.gamma.ppf(special.ndtr(z), 4.0) - 4.0) / 2.0
    return x + z, wc.Normal(x, np.ones(len(z)))


def tested(y: Any, pred: Any, *, rng: np.random.Generator) -> dict[str, float]:
    """p-values with clusters, by `auto` and by `multiplier`, and of `auto` without them."""
    clusters = np.repeat(np.arange(len(pred) // SIZE), SIZE)
    options: Any = {"n_resamples": RESAMPLES, "engine": ONE_THREAD}
    found = {
        "auto": {"groups": clusters},
        "multiplier": {"groups": clusters, "method": "multiplier"},
        "auto without groups": {},
    }
    return {
        name: wc.calibration_test(y, pred, rng=child, **options, **own).pvalue
        for (name, own), child in zip(found.items(), rng.spawn(3), strict=True)
    }


def clusters(settings: Settings) -> Section:
    """Error rates and power of tests with clusters."""
    load = environment.load_average()
    levels: list[tuple[str, ...]] = []
    powers: list[tuple[str, ...]] = []
    failures: list[str] = []
    names: tuple[str, ...] = ()
    for family in FAMILIES:
        for count in settings.cluster_counts:
            draw = partial(calibrated, family)
            found = rates(("clusters", family, count), draw, count, tested, settings.cluster_sets)
            names = tuple(found)
            levels.append((family, str(count), *map(str, found.values())))
            if count >= 50 and not found["auto"].between(0.0, 0.06, 0.01 / 8):
                failures.append(f"clusters, {family}, {count}: {found['auto']}")
    for error in ERRORS:
        for count in settings.cluster_counts:
            draw = partial(miscalibrated, error)
            found = rates(("clusters", error, count), draw, count, tested, settings.cluster_sets)
            powers.append((error, str(count), *(str(found[name]) for name in names[:2])))
            if found["auto"].value < found["multiplier"].value < 0.95:
                failures.append(f"power with clusters, {error}, {count}: {found['auto']}")
    body = (
        f"Rejection rates at alpha = {ALPHA}, {settings.cluster_sets:,} data sets a cell, {RESAMPLES} "
        f"resamples, clusters of {SIZE} cases. Models are\ncalibrated, and normal scores of targets are "
        f"correlated within clusters ({SHARED}). Signs of clusters are valid for many\nof them; from 50 on "
        "the rate is held to 0.06.\n\n"
        f"{table(('predictions', 'clusters', *names), levels)}\n\n"
        f"Power for normals with an error, correlation {SHARED_ERROR}.\n\n"
        f"{table(('error', 'clusters', *names[:2]), powers)}\n\n"
        + (
            "Out of bounds: " + "; ".join(failures) + "."
            if failures
            else "All cells are within their bounds."
        )
        + f"\n\n{environment.describe(load)}"
    )
    return Section("clusters", "Clusters of dependent cases", body, tuple(failures))
