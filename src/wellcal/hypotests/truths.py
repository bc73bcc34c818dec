"""What targets follow where predictions are wrong: an error of some size, or other predictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import check_same_length, described, one_of, real_number
from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.sensitivity import PRICE, information, needed
from wellcal.hypotests.setup import numpy_batch
from wellcal.measures.wording import error_phrase
from wellcal.predictions import Predictions
from wellcal.predictions.adapters import converted_argument
from wellcal.predictions.misspecification import SHIFT, draw_misspecified, kind_of_error, kinds_for
from wellcal.problem.target_resampling import draw_targets, why_not_resampled


@dataclass(frozen=True, eq=False)
class Truth:
    """What targets are drawn from.

    Attributes
    ----------
    words
        The error, in words.
    draw
        From positions in the pilot, the predictions there, and a generator to targets.
    guess
        From power and error rate to a number of cases to begin with.
    """

    words: str
    draw: Callable[[NDArray, Predictions, np.random.Generator], NDArray]
    guess: Callable[[float, float], int]


def truth_of(predictions: Predictions, against: object) -> Truth:
    """What targets are drawn from, from what a user said of the error."""
    if isinstance(against, Mapping) or _is_number(against):
        return _altered_truth(predictions, cast("Any", against))
    if against is None or isinstance(against, (str, bytes, bool)):
        raise TypeError(
            'against must be a number, such as 0.8 for "20% too small", a kind of error with its size, such '
            f'as {{"shift": 0.3}}, or predictions that are taken for the truth, found {described(against)}'
        )
    other = numpy_batch(converted_argument(cast("Any", against), "against"))
    check_same_length(len(other), "against", len(predictions), "pred")
    if other.event_shape != predictions.event_shape or other.target_kind != predictions.target_kind:
        raise ValueError("against must predict targets of the same kind and shape as pred")
    reason = why_not_resampled(other)
    if reason is not None:
        raise TypeError(f"against: {reason}")

    def draw(index: NDArray, batch: Predictions, rng: np.random.Generator) -> NDArray:
        like = np.zeros(0, dtype=np.int64 if predictions.target_kind == "labels" else np.float64)
        return draw_targets(other[index], rng, 1, like)[0]

    return Truth("targets follow the other predictions", draw, lambda power, alpha: 50)


def _is_number(x: object) -> bool:
    return isinstance(x, (int, float, np.integer, np.floating)) and not isinstance(x, bool)


def _altered_truth(predictions: Predictions, against: object) -> Truth:
    known = kinds_for(predictions)
    if not known:
        raise TypeError(
            f"against: {type(predictions).__name__} has no error by a number; give predictions that are "
            "taken for the truth"
        )
    kind, amount = kind_of_error(predictions), against
    if isinstance(against, Mapping):
        items = list(cast("Mapping[Any, Any]", against).items())
        if len(items) != 1:
            raise ValueError(f"against must name one kind of error, found {len(items)}")
        kind, amount = one_of(items[0][0], "kind of error in against", known), items[0][1]
    assert kind is not None
    size = real_number(amount, "against")
    if kind == SHIFT:
        wrong, none = not math.isfinite(size), size == 0.0
    else:
        wrong, none = not 1e-3 <= size <= 1e3, size == 1.0
    if wrong or none:
        what = "a number other than 0" if kind == SHIFT else "a ratio between 0.001 and 1000 other than 1"
        raise ValueError(f"against must be {what} for {kind}, found {described(amount)}")
    chosen = kind

    def draw(index: NDArray, batch: Predictions, rng: np.random.Generator) -> NDArray:
        return draw_misspecified(batch, chosen, size, rng, 1)[0]

    def guess(power: float, alpha: float) -> int:
        moved = information(predictions, chosen) * (abs(size) if chosen == SHIFT else abs(math.log(size)))
        return int(min((needed(power, alpha / PRICE) / max(moved, 1e-9)) ** 2, 1e9))

    return Truth(error_phrase(kind, size), draw, guess)
