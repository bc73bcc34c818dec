"""Targets as they would be if the predictions were right: draws from the predictions themselves.

Given the predictions, the targets of a calibrated model are independent draws from them. For predictions
that are themselves draws, a target and its draws are exchangeable: the pooled set then stands for the
prediction, and its members are drawn with equal probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.special import draw_index
from wellcal.expectations.decompose import components_of, targets_are_indices
from wellcal.hypotests.base import Setup
from wellcal.predictions import Mixture, Predictions, Samples


def why_not_resampled(predictions: Predictions) -> str | None:
    """Why targets cannot be drawn from the predictions so that a test is exact, or None."""
    for component, _ in components_of(predictions):
        if not component.supports("sample"):
            return f"{type(component).__name__} cannot be sampled; give the family a method draw(rng, size)"
        in_mixture = isinstance(predictions, Mixture)
        if in_mixture and isinstance(component, Samples) and component.kind == "draws":
            return (
                'a Mixture with Samples(kind="draws") cannot be resampled exactly: draws stand for a '
                'distribution that is not known; take kind="atoms" if they are the prediction'
            )
    return None


def check_resampled(predictions: Predictions) -> None:
    """An error where targets cannot be drawn from the predictions."""
    reason = why_not_resampled(predictions)
    if reason is not None:
        raise TypeError(f'{reason}, or take method="pearson" or "block", which draw no targets')


def draw_targets(predictions: Predictions, rng: np.random.Generator, size: int, like: NDArray) -> NDArray:
    """Targets ``(size, n, ...)`` in the form that `check_targets` returns, of the dtype of `like`."""
    if targets_are_indices(predictions):
        family: Any = predictions
        return draw_index(to_numpy(family.class_probs()), rng, size).astype(like.dtype, copy=False)
    drawn = predictions.draw(rng, size)
    return drawn if drawn.dtype == object else drawn.astype(like.dtype, copy=False)


def users_form(predictions: Predictions, targets: NDArray) -> Any:
    """Targets as a user gives them and `sample` returns them: labels, not their indices."""
    if not targets_are_indices(predictions):
        return targets
    labels: Any = predictions
    return labels.labels()[targets]


def number_of(returned: Any, what: str) -> float:
    """What a user's statistic returned as a number, or an error that tells for which targets it is none."""
    try:
        value = float(returned)
    except (TypeError, ValueError):
        raise TypeError(
            f"statistic must return a number, found {type(returned).__name__} for {what}"
        ) from None
    if np.isnan(value):
        raise ValueError(f"statistic returned nan for {what}; it must return a number for any targets")
    return value


_BLOCK_ENTRIES = 2_000_000  # numbers drawn at a time
_BLOCK_SETS = 100


def target_sets(setup: Setup) -> Iterator[NDArray]:
    """The observed targets and then `n_resamples` drawn ones, in blocks ``(r, n, ...)`` of moderate size.

    The observed set is the first of the first block: it goes the same way as the drawn ones.
    """
    size = max(1, min(_BLOCK_SETS, _BLOCK_ENTRIES // max(1, setup.targets.size)))
    left, first = setup.n_resamples, True
    setup.progress("resamples", 0, setup.n_resamples)
    while left > 0 or first:
        count = min(left, size)
        drawn = draw_targets(setup.predictions, setup.rng, count, setup.targets)
        yield np.concatenate([setup.targets[None], drawn]) if first else drawn
        left, first = left - count, False
        setup.progress("resamples", setup.n_resamples - left, setup.n_resamples)
