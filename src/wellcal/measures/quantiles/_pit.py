"""Where targets fall in their predictions: the probability integral transform."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.namespaces import Array, asarray, device_of, from_numpy, namespace, take_rows, widen
from wellcal._arrays.progress import following
from wellcal._arrays.seeds import generator_aside
from wellcal._arrays.special import gather, look_up
from wellcal.expectations.signed_measures import components_of
from wellcal.measures.quantiles.checks import check_standing
from wellcal.predictions import Bernoulli, Categorical, Normal, Quantiles, Samples


@following(None)
def pit(y: object, pred: object, *, rng: int | np.random.Generator | None = None) -> Array:
    r"""Probability integral transform: uniform for a calibrated model.

    .. math:: u_i = P_i(Y < y_i) + v_i\, P_i(Y = y_i), \quad v_i \sim \mathrm{U}(0, 1)

    Parameters
    ----------
    y
        Observed targets, one for each prediction.
    pred
        Predictions of numbers, counts, grades (in the order of their support) or two classes. More classes
        have no order, and so nothing that lies below the outcome: they are refused.
    rng
        Seed or generator of the :math:`v_i`, None for a default one; without effect on continuous
        predictions.

    Returns
    -------
    array
        Numbers ``(n,)`` between 0 and 1, without an index, in the order of the predictions: targets that
        have an index in another order are matched by their labels first.

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
    targets, predictions = check_standing(y, pred, "pit")
    below, upto = distribution_at(predictions, targets)
    xp = namespace(upto)
    shares = generator_aside(rng).random(len(predictions))
    v = asarray(shares, xp=xp, device=device_of(upto), dtype=upto.dtype)
    return xp.clip(below + v * (upto - below), 0.0, 1.0)


def distribution_at(predictions: Any, targets: Array) -> tuple[Array, Array]:
    """P(Y < y) and P(Y <= y), each ``(..., n)``, for targets, or sets of them, as `check_targets` has them.

    For draws these are ranks, ``#{x < y} / (S + 1)`` and ``(1 + #{x <= y}) / (S + 1)``; for quantiles the
    levels on both sides of the target.
    """
    if predictions.kind == "classes":
        return _class_distribution(predictions, targets)
    if isinstance(predictions, Quantiles):
        like = widen(predictions.values)
        edges = from_numpy(np.concatenate([[0.0], predictions.levels, [1.0]]), like)
        edges = namespace(like).astype(edges, like.dtype)
        bins = predictions.bins(targets)
        return look_up(edges, bins), look_up(edges, bins + 1)
    if predictions.kind == "draws":
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
        low = xp.sum(xp.where(part.values < y[..., None], weights, nothing), axis=-1)
        return low, xp.sum(xp.where(part.values <= y[..., None], weights, nothing), axis=-1)
    upto = widen(part.cdf(y))
    if part.target_kind == "counts":
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
    first: Any = predictions.parts[0]
    support = getattr(first, "support", None)
    if support is not None and np.ndim(support) == 1:
        order = np.argsort(support)
        probs = take_rows(xp.permute_dims(probs, (1, 0)), order)
        probs = xp.permute_dims(probs, (1, 0))
        index = look_up(from_numpy(np.argsort(order), probs), index)
    upto = gather(xp.cumulative_sum(probs, axis=1), index)
    return upto - gather(probs, index), upto


def _ranks(predictions: Samples, y: Array) -> tuple[Array, Array]:
    """How many draws are less than the target, and how many equal it."""
    values = widen(predictions.values)
    xp, y = namespace(values), widen(y)[..., None]
    return (
        xp.sum(xp.astype(values < y, values.dtype), axis=-1),
        xp.sum(xp.astype(values == y, values.dtype), axis=-1),
    )
