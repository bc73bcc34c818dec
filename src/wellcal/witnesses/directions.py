"""Directions of miscalibration that can be put in plain words.

A direction is a function of a prediction and its target whose expectation under the prediction is known:
that the target exceeds the predicted 90% quantile, say, which 10% of the targets should do. A sum over
cases of the function minus its expectation says how far, and which way, targets are from what was promised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.hypotests.findings.families import class_names
from wellcal.hypotests.parts.centres import centre_and_spread
from wellcal.hypotests.setup import Setup
from wellcal.kernels.algebra import Tensor
from wellcal.kernels.matrix import values_matrix
from wellcal.measures.score_units import DEVIATIONS
from wellcal.measures.wording import counted
from wellcal.predictions import Predictions, Quantiles, Samples
from wellcal.problem.problem import expand
from wellcal.witnesses.summaries import (
    MOST_CLASSES,
    Overview,
    Summary,
    summaries_of,
    summaries_of_draws,
)
from wellcal.witnesses.wording import how_far, how_often, shares_text

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Levels of the quantiles that targets are compared with."""

_MOST_COORDINATES = 10
_FEWEST_EVENTS = 3.0  # expected, of a thing that happens or does not, and as many where it does not


@dataclass(frozen=True)
class Direction:
    """A function of prediction and target with a known expectation.

    Attributes
    ----------
    of
        The function, from sets of targets ``(r, n, ...)`` to ``(r, n)``.
    expected
        Its expectation under each prediction, ``(n,)``.
    describe
        Takes the mean and the expected mean over some cases; returns what happens there, and both numbers.
    summaries
        Summaries whose regions are looked at in this direction.
    happens
        Whether the function is 1 where something happens and 0 elsewhere.
    name
        What it is about, the same for all batches of a family; empty where it cannot be found again.
    levels
        Levels of the quantiles that it compares targets with.
    label
        Number of the class that it is about; None where it is about none.
    """

    of: Callable[[NDArray], NDArray]
    expected: NDArray
    describe: Callable[[float, float], tuple[str, str]]
    summaries: tuple[Summary, ...]
    happens: bool = True
    name: str = ""
    levels: tuple[float, ...] = ()
    label: int | None = None

    def enough(self, yes: NDArray, count: NDArray) -> NDArray:
        """In which groups there is enough to expect, from sums of expectations and numbers of cases."""
        if not self.happens:
            return np.ones(len(count), dtype=bool)
        return np.minimum(yes, count - yes) >= _FEWEST_EVENTS - 1e-9  # 12 times 0.25 is enough


def directions_of(setup: Setup, levels: Sequence[float]) -> list[Direction]:
    """Directions for a batch of predictions."""
    if setup.predictions.target_kind == "objects":
        return _of_objects(setup)
    if isinstance(setup.predictions, Samples) and setup.pooled is not None:
        return directions_of_draws(setup.predictions, levels, summaries_of_draws(setup.predictions))
    return directions_in(setup.predictions, levels, Overview.of(setup.predictions))


def directions_in(
    predictions: Any, levels: Sequence[float], overview: Overview, most_classes: int | None = MOST_CLASSES
) -> list[Direction]:
    """Directions for some of the predictions of which there is an overview, not for objects.

    Of classes, so many are looked at; None for all of them.
    """
    if predictions.kind == "classes":
        return _of_classes(predictions, overview.common(most_classes))
    found = tuple(summaries_of(predictions, overview))
    if isinstance(predictions, Quantiles):
        return _of_given_quantiles(predictions, found)
    if predictions.event_shape == ():
        return _of_numbers(predictions, levels, found)
    return _of_vectors(predictions, found)


def directions_of_draws(
    pool: Samples, levels: Sequence[float], summaries: Sequence[Summary] = ()
) -> list[Direction]:
    """Directions for draws, not for objects, from the set in which each target is pooled with them.

    Quantiles are those of the draws, as everywhere: a target exceeds the k-th of them if and only if it
    exceeds the k-th member of the pooled set, and falls below it if and only if it falls below the next
    member. So whatever member is the target, one number says whether it does.
    """
    if pool.event_shape != ():
        return _of_vectors(pool, tuple(summaries))
    members = np.sort(np.asarray(to_numpy(pool.values)), axis=1)
    ranks = Samples(np.arange(1.0, members.shape[1])[None], axis=1)
    at = {u: members[:, int(ranks.quantile(u)[0]) - (u >= 0.5)] for u in levels}
    above = {u: np.mean(members > q[:, None], axis=1) for u, q in at.items() if u >= 0.5}
    below = {u: np.mean(members < q[:, None], axis=1) for u, q in at.items() if u < 0.5}
    return _tails(at, above, below, tuple(summaries))


def _event(subject: str) -> Callable[[float, float], tuple[str, str]]:
    def describe(observed: float, expected: float) -> tuple[str, str]:
        numbers = " instead of ".join(shares_text(observed, expected))
        return f"{subject} {how_often(observed, expected)}", numbers

    return describe


# -- numbers ---------------------------------------------------------------------------------


def _of_numbers(predictions: Any, levels: Sequence[float], summaries: tuple[Summary, ...]) -> list[Direction]:
    """Above upper quantiles, below lower ones, and outside of the interval between two of them."""
    at = {level: np.asarray(to_numpy(predictions.quantile(level))) for level in levels}
    above = {u: 1.0 - np.asarray(to_numpy(predictions.cdf(q))) for u, q in at.items() if u >= 0.5}
    # Counts and atoms put probability on the quantile itself, which is neither above nor below.
    below = {
        u: np.asarray(to_numpy(predictions.cdf(np.nextafter(q, np.asarray(-np.inf, q.dtype)))))
        for u, q in at.items()
        if u < 0.5
    }
    return _tails(at, above, below, summaries)


def _of_given_quantiles(predictions: Quantiles, summaries: tuple[Summary, ...]) -> list[Direction]:
    """The same at the levels of the prediction, at most nine of them."""
    levels = [float(level) for level in predictions.levels]
    chosen = sorted({int(k) for k in np.linspace(0, len(levels) - 1, min(9, len(levels))).round()})
    n = len(predictions)
    at = {levels[k]: np.asarray(predictions.values[:, k]) for k in chosen}
    above = {u: np.full(n, 1.0 - u) for u in at}
    return _tails(at, above, {u: np.full(n, u) for u in at}, summaries, closed=True)


def _tails(
    at: dict[float, NDArray],
    above: dict[float, NDArray],
    below: dict[float, NDArray],
    summaries: tuple[Summary, ...],
    *,
    closed: bool = False,
) -> list[Direction]:
    """Directions from quantiles with the probabilities above and below; `closed` counts them as below."""

    def over(q: NDArray) -> Callable[[NDArray], NDArray]:
        return lambda targets: targets > q

    def under(q: NDArray) -> Callable[[NDArray], NDArray]:
        return (lambda targets: targets <= q) if closed else (lambda targets: targets < q)

    found: list[Direction] = []
    for level, q in at.items():
        name = "predicted median" if level == 0.5 else f"predicted {_percent_level(level)} quantile"
        if level >= 0.5:
            what, of, expected = f"targets exceed the {name}", over(q), above[level]
        else:
            what, of, expected = f"targets fall below the {name}", under(q), below[level]
        found.append(Direction(of, expected, _event(what), summaries, name=what, levels=(level,)))
    for level in [u for u in at if u < 0.5]:
        other = next((u for u in at if abs(u + level - 1.0) < 1e-9), None)
        if other is not None:
            low, high = under(at[level]), over(at[other])
            subject = f"targets lie outside the predicted central {_percent_level(other - level)} interval"
            found.append(
                Direction(
                    lambda targets, low=low, high=high: low(targets) | high(targets),
                    below[level] + above[other],
                    _event(subject),
                    summaries,
                    name=subject,
                    levels=(level, other),
                )
            )
    return found


def _percent_level(level: float) -> str:
    return f"{100.0 * level:.4g}%"


# -- classes ---------------------------------------------------------------------------------


def _of_classes(predictions: Any, common: NDArray) -> list[Direction]:
    """That one of some classes occurs, and that the most probable one does."""
    probabilities = np.asarray(to_numpy(predictions.class_probs()), dtype=np.float64)
    names = class_names(predictions)
    top = np.argmax(probabilities, axis=1)
    confidence = probabilities[np.arange(len(top)), top]
    more: tuple[Summary, ...] = (Summary("the largest probability", confidence, share=True),)
    if probabilities.shape[1] == 2:
        common = np.array([1])  # the other class says the same
        more = ()
    found = [
        Direction(
            lambda targets, c=c: targets == c,
            probabilities[:, c],
            _event(f"{names[c]} occurs"),
            (Summary("its probability", probabilities[:, c], share=True), *more),
            name=f"{names[c]} occurs",
            label=int(c),
        )
        for c in np.sort(common)
    ]
    right = Direction(
        lambda targets: targets == top,
        confidence,
        _event("the most probable class is right"),
        (Summary("its probability", confidence, share=True),),
        name="the most probable class is right",
    )
    return [*found, right]


# -- vectors ---------------------------------------------------------------------------------


def _of_vectors(predictions: Predictions, summaries: tuple[Summary, ...]) -> list[Direction]:
    """Mean of each coordinate, and distance from the mean, in predicted standard deviations."""
    centre, spread = centre_and_spread(predictions)
    n, d = centre.shape

    def coordinate(c: int) -> Direction:
        def describe(observed: float, expected: float) -> tuple[str, str]:
            side = "above" if observed > expected else "below"
            size = counted(f"{abs(observed - expected):.2g}", f"predicted {DEVIATIONS}")
            text = f"coordinate {c + 1} of the targets lies on average {size} {side} its predicted mean"
            return text, f"mean {observed:.2g} instead of {expected:.2g}"

        return Direction(
            lambda targets: (targets[:, :, c] - centre[:, c]) / spread[:, c],
            np.zeros(n),
            describe,
            summaries,
            happens=False,
            name=f"coordinate {c + 1}",
        )

    def describe_distance(observed: float, expected: float) -> tuple[str, str]:
        ratio = np.sqrt(observed / expected) if expected > 0 else np.inf
        text = f"targets lie {how_far(float(ratio), 'the predicted mean')}"
        return text, f"mean square {observed:.2g} instead of {expected:.2g} predicted variances"

    with np.errstate(invalid="ignore"):
        variance = np.asarray(to_numpy(predictions.variance()), dtype=np.float64)
    distance = Direction(
        lambda targets: np.mean(((targets - centre) / spread) ** 2, axis=2),
        np.mean(np.where(np.isfinite(variance), variance, spread**2) / spread**2, axis=1),
        describe_distance,
        summaries,
        happens=False,
        name="distance",
    )
    return [*(coordinate(c) for c in range(min(d, _MOST_COORDINATES))), distance]


# -- objects ---------------------------------------------------------------------------------


def _of_objects(setup: Setup) -> list[Direction]:
    """How like its prediction a target is, by the kernel: E k_Y(Z, y)."""
    samples: Any = setup.predictions
    kernels = [part.targets for _, part in expand(setup.kernel) if isinstance(part, Tensor)]
    if not kernels:
        return []
    values, weights = samples.values, np.asarray(samples.atom_weights())
    known: list[dict[int, tuple[Any, float]]] = [{} for _ in range(len(samples))]  # keeps what it identifies

    def likeness(case: int, items: list[Any]) -> NDArray:
        memory = known[case]
        new = {id(item): item for item in items if id(item) not in memory}
        if new:
            column = np.empty(len(new), dtype=object)
            column[:] = list(new.values())
            matrix = np.asarray(values_matrix(setup.problem.ops, kernels[0], values[case], column))
            for (key, item), value in zip(new.items(), weights[case] @ matrix, strict=True):
                memory[key] = item, float(value)
        return np.array([memory[id(item)][1] for item in items])

    def of(targets: NDArray) -> NDArray:
        columns = [likeness(i, targets[:, i].tolist()) for i in range(targets.shape[1])]
        return np.stack(columns, axis=1)

    own = [likeness(i, values[i].tolist()) for i in range(len(samples))]
    expected = np.array([w @ v for w, v in zip(weights, own, strict=True)])

    def describe(observed: float, expected: float) -> tuple[str, str]:
        side = "more" if observed > expected else "less"
        numbers = f"mean kernel value {observed:.3g} instead of {expected:.3g}"
        return f"targets are {side} like their predictions than draws from these are", numbers

    return [Direction(of, expected, describe, (), happens=False)]
