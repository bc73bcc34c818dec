"""A straight line through a sine: quantiles that look calibrated, and a model that is not."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import cast

import numpy as np

from reproduction.experiments.decisions import both_bootstrap_pvalues
from reproduction.ranks import ALPHA as FALSE_ALARM
from reproduction.tasks import FloatArray, Record, Task, generator, pieces
from wellcal import Normal, calibration_test, quantile_calibration
from wellcal.engines import Tiled
from wellcal.hypotests import Bootstrap
from wellcal.kernels import paper_kernel

TRAINING_CASES = 100
VALIDATION_CASES = 50
NOISE = 0.15
ALPHA = 0.05
MODELS = ("straight line", "true distribution")
CHECKS = ("bootstrap", "exact", "quantiles", "bootstrap, n SKCE_u")
"""The paper's bootstrap test, the exact test, the usual check, and the bootstrap test with our statistic."""
_STREAM, _TEST_STREAM = 1, 10
_SECONDS_PER_REPETITION = 0.05
_PER_PIECE = 20


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment."""

    bootstrap_resamples: int
    repetitions: int
    resamples: int


FULL = Sizes(100_000, 1000, 999)
QUICK = Sizes(10_000, 40, 199)


@dataclass(frozen=True)
class Fit:
    """Training and validation data, and the line that least squares finds."""

    train_x: FloatArray
    train_y: FloatArray
    x: FloatArray
    y: FloatArray
    offset: float
    slope: float
    spread: float

    def predict(self, x: FloatArray) -> Normal:
        """Predictions of the fitted line, all with the spread of its residuals."""
        return Normal(self.offset + self.slope * x, np.full(len(x), self.spread))


def true_distribution(x: FloatArray) -> Normal:
    """Y given X: N(sin(pi x), (0.15 |1 + x|)^2)."""
    return Normal(np.sin(np.pi * x), NOISE * np.abs(1.0 + x))


def draw_fit(seed: int, repetition: int) -> Fit:
    """Data of one repetition and the least squares fit; the spread is the residuals' standard deviation."""
    rng = generator(seed, _STREAM, repetition)
    train_x = rng.uniform(-1.0, 1.0, TRAINING_CASES)
    train_y = true_distribution(train_x).sample(rng)
    x = rng.uniform(-1.0, 1.0, VALIDATION_CASES)
    y = true_distribution(x).sample(rng)
    design = np.stack([np.ones_like(train_x), train_x], axis=1)
    coefficients = cast("FloatArray", np.linalg.lstsq(design, train_y)[0])
    residuals = train_y - design @ coefficients
    spread = float(np.std(residuals, ddof=1))
    offset, slope = (float(c) for c in coefficients)
    return Fit(train_x, train_y, x, y, offset, slope, spread)


def quantile_check(y: FloatArray, pred: Normal) -> float:
    """p-value of the usual check that P_i(Y <= y_i) are uniform, by Kolmogorov and Smirnov, exact."""
    from scipy import stats  # which takes longer to import than all the rest

    largest = float(quantile_calibration(y, pred))
    return float(stats.kstwo.sf(largest, len(y)))


def tasks(sizes: Sizes, seed: int) -> list[Task]:
    """All tasks, in no order."""
    counts = (sizes.repetitions, sizes.bootstrap_resamples, max(9999, sizes.resamples))
    out = [Task("shown", shown, (seed, *counts), 3.0)]
    for part in pieces(sizes.repetitions, _PER_PIECE):
        arguments = (seed, part.start, part.stop, sizes.resamples)
        cost = _SECONDS_PER_REPETITION * len(part)
        out.append(Task(f"repetitions {part.start}-{part.stop}", repeat, arguments, cost))
    return out


def typical_repetition(seed: int, repetitions: int) -> int:
    """The repetition whose quantile curve has the median distance from the diagonal."""
    fits = (draw_fit(seed, repetition) for repetition in range(repetitions))
    distances = [float(quantile_calibration(fit.y, fit.predict(fit.x))) for fit in fits]
    return int(np.argsort(distances, kind="stable")[(repetitions - 1) // 2])


def shown(seed: int, repetitions: int, bootstrap_resamples: int, resamples: int) -> Record:
    """The repetition that the figures show: p-values with many bootstrap samples and of the exact test."""
    repetition = typical_repetition(seed, repetitions)
    fit = draw_fit(seed, repetition)
    pred = fit.predict(fit.x)
    return {
        "repetition": repetition,
        **_pvalues(seed, 0, fit.y, pred, "bootstrap", bootstrap_resamples),
        **_pvalues(seed, 0, fit.y, pred, "exact", resamples),
        "quantiles": quantile_check(fit.y, pred),
    }


def repeat(seed: int, start: int, stop: int, resamples: int) -> Record:
    """p-values of all checks in repetitions start .. stop - 1, for the line and for the true distribution."""
    pvalues: dict[str, dict[str, list[float]]] = {m: {check: [] for check in CHECKS} for m in MODELS}
    for repetition in range(start, stop):
        fit = draw_fit(seed, repetition)
        x, y = fit.x, fit.y
        for model, pred in zip(MODELS, (fit.predict(x), true_distribution(x)), strict=True):
            for check in ("bootstrap", "exact"):
                for name, pvalue in _pvalues(seed, 1 + repetition, y, pred, check, resamples).items():
                    pvalues[model][name].append(pvalue)
            pvalues[model]["quantiles"].append(quantile_check(y, pred))
    return {"start": start, "pvalues": pvalues}


def _pvalues(
    seed: int, place: int, y: FloatArray, pred: Normal, method: str, resamples: int
) -> dict[str, float]:
    result = calibration_test(
        y,
        pred,
        kernel=paper_kernel,
        method=Bootstrap(statistic="authors") if method == "bootstrap" else method,
        rng=generator(seed, _TEST_STREAM, place, CHECKS.index(method)),
        n_resamples=resamples,
        engine=Tiled(threads=1),
        progress=False,
        keep_null=True,
    )
    if method != "bootstrap":
        return {method: result.pvalue}
    found = both_bootstrap_pvalues(result)
    return {method: found["authors"], "bootstrap, n SKCE_u": found["skce"]}


@dataclass(frozen=True)
class Summary:
    """What the experiment found.

    Attributes
    ----------
    fit
        Data and line of the repetition that is shown.
    pvalues
        Of the checks there.
    rejections
        Number of p-values of at most 0.05, by model and check.
    repetitions
        Of how many.
    sizes
        Of the experiment.
    """

    fit: Fit
    pvalues: dict[str, float]
    rejections: dict[tuple[str, str], int]
    repetitions: int
    sizes: Sizes


def summarise(records: dict[str, Record], sizes: Sizes, seed: int) -> Summary:
    """Tables from the records of all tasks."""
    rejections: dict[tuple[str, str], int] = defaultdict(int)
    for record in records.values():
        for model, checks in record.get("pvalues", {}).items():
            for check, values in checks.items():
                rejections[model, check] += int(np.sum(np.asarray(values) <= ALPHA))
    fit = draw_fit(seed, records["shown"]["repetition"])
    pvalues = {check: records["shown"][check] for check in CHECKS}
    return Summary(fit, pvalues, dict(rejections), sizes.repetitions, sizes)


def problems(summary: Summary) -> list[str]:
    """The paper's test rejects its line: a surprise, if it seldom does so in repetitions."""
    share = summary.rejections["straight line", "bootstrap"] / summary.repetitions
    if share > FALSE_ALARM:
        return []
    return [f"ols: published p < 0.05, which is so in {share:.1%} of repetitions"]
