"""Where targets fall in their predictions: probability integral transform and coverage of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    from_numpy,
    namespace,
    take_rows,
    to_numpy,
    widen,
)
from wellcal._arrays.parameters import device_of
from wellcal._arrays.special import gather
from wellcal.expectations.decompose import components_of, targets_are_indices
from wellcal.measures.estimate import Estimate
from wellcal.measures.scores._common import check_levels
from wellcal.predictions import (
    Bernoulli,
    Categorical,
    NegativeBinomial,
    Normal,
    Poisson,
    Quantiles,
    Samples,
)
from wellcal.predictions.adapters import as_predictions
from wellcal.predictions.base import as_generator
from wellcal.predictions.inputs import check_truth_first
from wellcal.problem.weights import refuse_weights

COVERAGE_LEVELS = (0.5, 0.8, 0.9, 0.95)


def pit(y: object, pred: object, *, rng: int | np.random.Generator | None = None) -> Array:
    r"""Probability integral transform: uniform for a calibrated model.

    .. math:: u_i = P_i(Y < y_i) + v_i\, P_i(Y = y_i), \quad v_i \sim \mathrm{U}(0, 1)

    Parameters
    ----------
    y
        Observed targets, one for each prediction.
    pred
        Predictions of numbers, counts or classes (in the order of their support, else of the classes).
    rng
        Seed or generator of the :math:`v_i`; without effect on continuous predictions.

    Returns
    -------
    array
        Numbers ``(n,)`` between 0 and 1.

    Notes
    -----
    S draws (``Samples(kind="draws")``) and the target are S + 1 exchangeable numbers under calibration, so
    that :math:`u_i` is the rank of the target among them, spread uniformly: uniform for every S. For
    `Quantiles`, :math:`u_i` is uniform between the levels of the bin that holds the target.

    Uniform values are necessary for calibration and not sufficient: errors of different predictions may
    cancel.

    References
    ----------
    C. Czado, T. Gneiting, L. Held (2009). Predictive model assessment for count data.

    Examples
    --------
    >>> import numpy as np
    >>> pit(np.array([0.0, 1.0]), (np.zeros(2), np.ones(2))).round(4)
    array([0.5   , 0.8413])
    """
    check_truth_first(y)
    predictions: Any = as_predictions(pred)
    _check_scalar(predictions, "pit")
    targets = predictions.check_targets(y)
    below, upto = distribution_at(predictions, targets)
    xp = namespace(upto)
    v = asarray(as_generator(rng).random(len(predictions)), xp=xp, device=device_of(upto), dtype=upto.dtype)
    return xp.clip(below + v * (upto - below), 0.0, 1.0)


def distribution_at(predictions: Any, targets: Array) -> tuple[Array, Array]:
    """P(Y < y) and P(Y <= y), each ``(n,)``, for targets as `check_targets` returned them.

    For draws these are ranks, ``#{x < y} / (S + 1)`` and ``(1 + #{x <= y}) / (S + 1)``; for quantiles the
    levels beside the target.
    """
    if targets_are_indices(predictions):
        return _class_distribution(predictions, targets)
    if isinstance(predictions, Quantiles):
        like = widen(predictions.values)
        edges = from_numpy(np.concatenate([[0.0], predictions.levels, [1.0]]), like)
        edges = namespace(like).astype(edges, like.dtype)
        bins = predictions.bins(targets)
        return take_rows(edges, bins), take_rows(edges, bins + 1)
    if isinstance(predictions, Samples) and predictions.kind == "draws":
        xp, size = namespace(predictions.values), int(predictions.values.shape[1])
        less, equal = _ranks(predictions, targets)
        return less / (size + 1.0), (less + equal + xp.ones_like(less)) / (size + 1.0)
    below: Any = 0.0
    upto: Any = 0.0
    for part, weight in components_of(predictions):
        low, high = _component_distribution(part, targets)
        below = below + (low if weight is None else weight * low)
        upto = upto + (high if weight is None else weight * high)
    return below, upto


def _component_distribution(part: Any, y: Array) -> tuple[Array, Array]:
    xp = part.xp
    if isinstance(part, Samples):
        weights = widen(part.atom_weights())
        nothing = xp.zeros_like(weights)
        low = xp.sum(xp.where(part.values < y[:, None], weights, nothing), axis=1)
        return low, xp.sum(xp.where(part.values <= y[:, None], weights, nothing), axis=1)
    upto = widen(part.cdf(y))
    if isinstance(part, (Poisson, NegativeBinomial)):
        return widen(part.cdf(y - 1.0)), upto
    if isinstance(part, Normal):
        jump = (part.scale == 0) & (part.loc == y)
        return xp.where(jump, xp.zeros_like(upto), upto), upto
    if isinstance(part, (Bernoulli, Categorical)):  # among numbers of other families
        mass = xp.exp(widen(part.log_prob(y)))
        return upto - mass, upto
    return upto, upto


def _class_distribution(predictions: Any, index: Array) -> tuple[Array, Array]:
    probs = widen(predictions.class_probs())
    xp = namespace(probs)
    first: Any = components_of(predictions)[0][0]
    support = getattr(first, "support", None)
    if support is not None and np.ndim(support) == 1:
        order = np.argsort(support)
        probs = take_rows(xp.permute_dims(probs, (1, 0)), order)
        probs = xp.permute_dims(probs, (1, 0))
        index = take_rows(from_numpy(np.argsort(order), probs), index)
    upto = gather(xp.cumulative_sum(probs, axis=1), index)
    return upto - gather(probs, index), upto


def _ranks(predictions: Samples, y: Array) -> tuple[Array, Array]:
    """How many draws are less than the target, and how many equal it."""
    values = widen(predictions.values)
    xp, y = namespace(values), widen(y)[:, None]
    return (
        xp.sum(xp.astype(values < y, values.dtype), axis=1),
        xp.sum(xp.astype(values == y, values.dtype), axis=1),
    )


def _check_scalar(predictions: Any, what: str) -> None:
    if predictions.event_shape != ():
        raise TypeError(
            f"{what} needs predictions of numbers, found vectors of length {predictions.event_shape[0]}; "
            "take one coordinate at a time"
        )
    if not predictions.supports("cdf") and predictions.target_kind != "labels":
        raise TypeError(f"{what} needs predictions with cdf: {predictions.missing('cdf')}")


@dataclass(frozen=True, repr=False)
class IntervalCoverage(Estimate):
    """How often targets fall into central prediction intervals.

    Attributes
    ----------
    value
        Largest deviation of coverage from what was expected, over levels.
    levels
        Nominal levels, ``(T,)``.
    coverage
        Proportion of targets in the intervals, ``(T,)``.
    expected
        What a calibrated model would have on average, ``(T,)``: the level for continuous predictions, more
        for discrete ones, whose intervals cannot have every probability.
    widths
        Mean widths of the intervals, ``(T,)``.
    low, high
        Exact (Clopper-Pearson) confidence limits of the coverage, which hold for all levels together with
        probability 0.95 (Bonferroni), ``(T,)``.
    """

    levels: Any = None
    coverage: Any = None
    expected: Any = None
    widths: Any = None
    low: Any = None
    high: Any = None


def interval_coverage(
    y: object, pred: object, *, levels: Sequence[float] | Array | None = None, weights: object = None
) -> IntervalCoverage:
    r"""Coverage of central prediction intervals.

    .. math:: \frac1n \sum_i 1\{q_i(\tfrac{1 - \ell}{2}) \le y_i \le q_i(\tfrac{1 + \ell}{2})\}

    Parameters
    ----------
    y
        Observed targets ``(n,)``.
    pred
        Predictions of numbers with quantiles.
    levels
        Nominal levels of the intervals, strictly between 0 and 1; None takes 0.5, 0.8, 0.9, 0.95.
    weights
        Refused, with the reason.

    Returns
    -------
    IntervalCoverage
        Coverage, expected coverage, mean widths and confidence limits for each level.

    Notes
    -----
    For S draws with the target among them, k draws inside of an interval make an expected coverage of
    ``(k - 1) / (S + 1)``: less than the level where S is small.

    Examples
    --------
    >>> import numpy as np
    >>> found = interval_coverage(np.array([-3.0, 0.1, 0.5, 1.0]), (np.zeros(4), np.ones(4)), levels=[0.9])
    >>> found.coverage, found.widths.round(3)
    (array([0.75]), array([3.29]))
    """
    refuse_weights(
        weights,
        "interval_coverage",
        "its bands hold for cases that count alike; wc.pinball_loss takes weights",
    )
    check_truth_first(y)
    predictions: Any = as_predictions(pred)
    _check_scalar(predictions, "interval_coverage")
    targets = _numbers(predictions, predictions.check_targets(y))
    chosen = check_levels(COVERAGE_LEVELS if levels is None else levels, open_interval=True)
    rows: list[tuple[float, float, float]] = []
    for level in chosen:
        lower, upper = (predictions.quantile(u) for u in (0.5 - 0.5 * level, 0.5 + 0.5 * level))
        inside = to_numpy((targets >= lower) & (targets <= upper))
        expected = _expected(predictions, lower, upper, float(level))
        rows.append((float(inside.mean()), expected, float(to_numpy(widen(upper - lower)).mean())))
    coverage, expected, widths = (np.array(column) for column in zip(*rows, strict=True))
    n = len(predictions)
    low, high = clopper_pearson(np.rint(coverage * n), n, 0.05 / len(chosen))
    return IntervalCoverage(
        float(np.max(np.abs(coverage - expected))),
        None,
        "interval coverage",
        "largest deviation",
        n,
        levels=chosen,
        coverage=coverage,
        expected=expected,
        widths=widths,
        low=low,
        high=high,
    )


def clopper_pearson(hits: NDArray, n: int, error: float) -> tuple[NDArray, NDArray]:
    """Exact confidence limits of proportions from numbers of `hits` among n.

    Examples
    --------
    >>> low, high = clopper_pearson(np.array([0.0, 5.0]), 10, 0.05)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.1871]), array([0.3085, 0.8129]))
    """
    none, all_ = hits <= 0, hits >= n
    low = np.where(none, 0.0, special.betaincinv(np.where(none, 1.0, hits), n - hits + 1.0, 0.5 * error))
    high = np.where(all_, 1.0, special.betainccinv(hits + 1.0, np.where(all_, 1.0, n - hits), 0.5 * error))
    return low, high


def _numbers(predictions: Any, targets: Array) -> Array:
    if not targets_are_indices(predictions):
        return targets
    parts = [part for part, _ in components_of(predictions)]
    if any(isinstance(part, Categorical) and part.support is None for part in parts):
        raise TypeError(
            "interval_coverage needs predictions of numbers, found predictions of classes; give the numbers "
            "that classes stand for as support="
        )
    values = from_numpy(np.asarray(predictions.support_values()), predictions.like)
    return take_rows(values, targets)


def _expected(predictions: Any, lower: Array, upper: Array, level: float) -> float:
    """Mean probability of the intervals."""
    if isinstance(predictions, Samples) and predictions.kind == "draws":
        values = to_numpy(predictions.values)
        inside = (values >= to_numpy(lower)[:, None]) & (values <= to_numpy(upper)[:, None])
        return float(np.mean((inside.sum(axis=1) - 1.0) / (values.shape[1] + 1.0)))
    if predictions.continuous:
        return level
    batch: Any = predictions
    if targets_are_indices(batch):
        values = np.asarray(batch.support_values())
        inside = (values >= to_numpy(lower)[:, None]) & (values <= to_numpy(upper)[:, None])
        return float(np.mean(np.sum(np.where(inside, to_numpy(batch.class_probs()), 0.0), axis=1)))
    below, _ = distribution_at(predictions, lower)
    _, upto = distribution_at(predictions, upper)
    return float(to_numpy(widen(upto - below)).mean())
