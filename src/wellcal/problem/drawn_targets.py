"""Targets drawn from predictions: whether that can be done, and the draws in the form of checked targets."""

from __future__ import annotations

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.special import draw_index
from wellcal.predictions import (
    Bernoulli,
    Beta,
    Categorical,
    DiagonalNormal,
    Gamma,
    Laplace,
    LogNormal,
    Mixture,
    MultivariateNormal,
    Normal,
    Poisson,
    Predictions,
    Samples,
    StudentT,
)

IN_TURN: frozenset[type[Predictions]] = frozenset(
    {
        Bernoulli,
        Beta,
        Categorical,
        DiagonalNormal,
        Gamma,
        Laplace,
        LogNormal,
        MultivariateNormal,
        Normal,
        Poisson,
        Samples,
        StudentT,
    }
)
"""Families that take random numbers row after row: those of one row are the same, whatever comes with it."""


def unsampled_family(predictions: Predictions) -> str | None:
    """Name of the family, among the components of a mixture too, that cannot be sampled, or None."""
    for component in predictions.parts:
        if not component.supports("sample"):
            return type(component).__name__
    return None


def why_not_resampled(predictions: Predictions) -> str | None:
    """Why targets cannot be drawn from the predictions so that a test is exact, or None."""
    unsampled = unsampled_family(predictions)
    if unsampled is not None:
        return f"{unsampled} cannot be sampled; give the family a method draw(rng, size)"
    parts = list(predictions.parts) if isinstance(predictions, Mixture) else []
    if any(part.kind == "draws" for part in parts):
        return (
            'a Mixture with Samples(kind="draws") cannot be resampled exactly: draws stand for a '
            'distribution that is not known; take kind="atoms" if they are the prediction'
        )
    return None


def draw_targets(predictions: Predictions, rng: np.random.Generator, size: int, like: NDArray) -> NDArray:
    """Targets ``(size, n, ...)`` in the form that `check_targets` returns, of the dtype of `like`."""
    if predictions.kind == "classes":
        return draw_index(to_numpy(predictions.class_probs()), rng, size).astype(like.dtype, copy=False)
    drawn = predictions.draw(rng, size)
    return drawn if drawn.dtype == object else drawn.astype(like.dtype, copy=False)


def draw_in_turn(predictions: Predictions, rng: np.random.Generator, size: int, like: NDArray) -> NDArray:
    """The same ``(size, n, ...)``, drawn for one case after the other: as for each of them alone.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> pred, rng = wc.Normal(np.arange(3.0), 1.0), np.random.default_rng
    >>> alone = draw_in_turn(pred[:1], rng(0), 4, np.zeros(1))
    >>> bool((draw_in_turn(pred, rng(0), 4, np.zeros(3))[:, :1] == alone).all())
    True
    """
    n = len(predictions)
    if n == 1:
        return draw_targets(predictions, rng, size, like)
    if type(predictions) not in IN_TURN:
        return np.concatenate([draw_targets(one, rng, size, like) for one in predictions], axis=1)
    drawn = draw_targets(predictions[np.repeat(np.arange(n), size)], rng, 1, like)[0]
    return np.swapaxes(drawn.reshape(n, size, *drawn.shape[1:]), 0, 1)


# -- predictions that are draws --------------------------------------------------------------


def stretch(draws: int) -> float:
    """How much further a target lies from the mean of its draws than from that of the pool it is part of."""
    return 1.0 + 1.0 / draws


def pool_draws(targets: NDArray, samples: Samples) -> Samples:
    """Each target among its draws, as S + 1 atoms of equal weight; the target comes last."""
    values = np.concatenate([np.asarray(samples.values), targets[:, None, ...]], axis=1)
    return Samples(values, kind="atoms", axis=1)


def moments_of_others(pool: NDArray) -> tuple[NDArray, NDArray]:
    """Mean and standard deviation of the draws, for each member of a pool ``(n, m, ...)`` as the target.

    The target itself comes last: what belongs to it is what the model's own draws say. An outcome must not
    choose its own group, and a person who has the draws must find the same cases.

    Examples
    --------
    >>> mean, spread = moments_of_others(np.array([[1.0, 3.0, 9.0]]))
    >>> mean, spread
    (array([[6., 5., 2.]]), array([[3., 4., 1.]]))
    """
    values = np.asarray(pool, dtype=np.float64)
    left = values.shape[1] - 1
    middle = np.median(values, axis=1, keepdims=True)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = values - middle  # squares of large numbers that are about the same would leave no digits
        mean = _sum_of_others(apart) / left
        variance = np.maximum(_sum_of_others(apart**2) / left - mean**2, 0.0)
        return mean + middle, np.sqrt(variance)


def _sum_of_others(values: NDArray) -> NDArray:
    """For each member of a set ``(n, m, ...)`` the sum of the others: an outlier leaves nothing behind."""
    before, after = np.zeros_like(values), np.zeros_like(values)
    np.cumsum(values[:, :-1], axis=1, out=before[:, 1:])
    np.cumsum(values[:, :0:-1], axis=1, out=after[:, -2::-1])
    return before + after
