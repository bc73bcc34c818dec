"""Where the witness is looked at by default: a few predictions, each with a row of targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.predictions import Predictions, Quantiles
from wellcal.problem.locations import Locations, as_locations, draw_locations
from wellcal.witnesses.summaries import summaries_of

_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)  # of cases, ordered by a summary, where predictions are taken
_SCORES = np.linspace(-2.5, 2.5, 11)  # normal scores of the levels at which their targets are
_MOST_CLASSES = 10
DRAWN = 40
"""Locations that are drawn where targets have no order."""


def witness_locations(given: object, predictions: Predictions, rng: np.random.Generator) -> Locations:
    """Locations that a user gave, or a number of them to be drawn, or None for the grid."""
    if given is not None:
        return as_locations(given, predictions, rng)
    if not has_a_grid(predictions):
        return draw_locations(predictions, DRAWN, rng)
    return _of_classes(predictions) if predictions.kind == "classes" else _of_numbers(predictions)


def has_a_grid(predictions: Predictions) -> bool:
    """Whether predictions and targets can be put in an order."""
    if predictions.kind == "classes":
        return True
    numbers = predictions.event_shape == () and predictions.supports("quantile")
    return numbers and bool(summaries_of(predictions))


def _representatives(values: NDArray) -> NDArray:
    """Cases at given shares of the order of a summary."""
    order = np.argsort(values, kind="stable")
    return order[[int(share * (len(values) - 1) + 0.5) for share in _SHARES]]


def _of_classes(predictions: Any) -> Locations:
    probabilities = np.asarray(to_numpy(predictions.class_probs()))
    common = np.sort(np.argsort(-probabilities.sum(axis=0), kind="stable")[:_MOST_CLASSES])
    cases = np.concatenate([_representatives(probabilities[:, c]) for c in common])
    return Locations(predictions[cases], np.repeat(common, len(_SHARES)), (predictions, cases))


def _of_numbers(predictions: Predictions) -> Locations:
    cases = _representatives(summaries_of(predictions)[0].values)
    chosen: Any = predictions[cases]
    if isinstance(chosen, Quantiles):
        edges = chosen.bin_edges()
        targets = 0.5 * (edges[:, 1:] + edges[:, :-1])
    else:
        levels = np.broadcast_to(special.ndtr(_SCORES)[:, None], (len(_SCORES), len(cases)))
        targets = np.asarray(to_numpy(chosen.quantile(levels))).T
    index = np.repeat(cases, targets.shape[1])
    repeated: Any = predictions[index]
    return Locations(repeated, repeated.check_targets(targets.reshape(-1)), (predictions, index))
