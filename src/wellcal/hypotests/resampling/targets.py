"""Targets as they would be if the predictions were right: draws from the predictions themselves.

Given the predictions, the targets of a calibrated model are independent draws from them. For predictions
that are themselves draws, a target and its draws are exchangeable: the pooled set then stands for the
prediction, and its members are drawn with equal probability.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, from_numpy
from wellcal.hypotests.setup import Setup
from wellcal.predictions import Predictions
from wellcal.problem.target_resampling import (
    TargetStream,
    draw_targets,
    sets_on_device,
    unsampled_family,
    why_not_resampled,
)

__all__ = [
    "check_resampled",
    "draw_targets",
    "number_of",
    "target_sets",
    "unsampled_family",
    "users_form",
    "why_not_resampled",
]


# -- can they be drawn? ----------------------------------------------------------------------


def check_resampled(predictions: Predictions) -> None:
    """Raise an error where targets cannot be drawn from the predictions."""
    reason = why_not_resampled(predictions)
    if reason is not None:
        raise TypeError(f'{reason}, or take method="pearson" or "block", which draw no targets')


# -- sets of them ----------------------------------------------------------------------------


def placed_sets(setup: Setup) -> Iterator[Array]:
    """The same as `target_sets`, as tensors where the setup has a place for them."""
    if setup.place is None:
        return target_sets(setup)
    check_resampled(setup.predictions)
    return _placed(setup)


def _placed(setup: Setup) -> Iterator[Array]:
    yield from_numpy(setup.targets[None], setup.place)
    yield from placed_draws(setup, setup.n_resamples)


def placed_draws(setup: Setup, count: int) -> Iterator[Array]:
    """The same as `drawn_sets`, as tensors where the setup has a place for them."""
    if setup.place is None:
        yield from drawn_sets(setup, count)
        return
    drawn = sets_on_device(setup.predictions, setup.targets, count, setup.rng, setup.place)
    yield from _told(setup, drawn, count)


def target_sets(setup: Setup) -> Iterator[NDArray]:
    """The observed targets, and then as many sets drawn from the predictions as the test resamples.

    Under calibration all of these sets are exchangeable, so that the rank of any statistic of the observed
    one among those of the drawn ones makes an exact p-value: see :func:`monte_carlo_pvalue`.

    Parameters
    ----------
    setup
        The case, as `Method.run` gets it. Its generator gives the stream of random numbers.

    Returns
    -------
    Iterator
        Arrays ``(r, n, ...)`` of up to a hundred sets. The observed set is the first of the first array: it
        goes the same way as the drawn ones.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.hypotests.setup import make_setup
    >>> setup = make_setup(np.zeros(3), wc.Normal(np.zeros(3), np.ones(3)), n_resamples=199, rng=0)
    >>> [sets.shape for sets in target_sets(setup)]
    [(101, 3), (99, 3)]
    """
    check_resampled(setup.predictions)
    return _sets(setup)


def _sets(setup: Setup) -> Iterator[NDArray]:
    drawn = drawn_sets(setup, setup.n_resamples)
    yield np.concatenate([setup.targets[None], next(drawn)])
    yield from drawn


def drawn_sets(setup: Setup, count: int) -> Iterator[NDArray]:
    """So many sets of targets drawn from the predictions, up to a hundred at a time."""
    return _told(setup, TargetStream.of(setup.rng).sets(setup.predictions, setup.targets, count), count)


def _told(setup: Setup, drawn: Iterable[Array], count: int) -> Iterator[Array]:
    """Sets of targets as they are drawn; whatever is done with them moves the run on."""
    done = 0
    setup.progress("resamples", 0, count)
    for sets in drawn:
        setup.progress("resamples", done, count, until=done + len(sets))
        yield sets
        done += len(sets)
        setup.progress("resamples", done, count)


# -- a user's own statistic ------------------------------------------------------------------


def users_form(predictions: Predictions, targets: NDArray) -> NDArray:
    """Targets as a user gives them and `sample` returns them: labels, not their indices."""
    if predictions.kind != "classes":
        return targets
    labels: Any = predictions
    return labels.labels()[targets]


def number_of(returned: object, what: str) -> float:
    """What a user's statistic returned, as a number; an error that names the targets where it is not one."""
    try:
        value = float(cast("float", returned))
    except (TypeError, ValueError):
        raise TypeError(
            f"statistic must return a number, found {type(returned).__name__} for {what}"
        ) from None
    if np.isnan(value):
        raise ValueError(f"statistic returned nan for {what}; it must return a number for any targets")
    return value
