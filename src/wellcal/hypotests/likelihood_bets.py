"""Fair bets on targets: likelihood ratios of alternatives that are fixed before a target is seen.

- *centre* and *spread* of numbers: the normal score z of the target is N(t, 1) or N(0, s^2) instead of
  N(0, 1). For normals, z is the standardised residual. For others it is that of F(y); where F jumps, from
  F(y-) to F(y), the bet is the mean over the jump. With q the density of the alternative on the scale of F
  and Q its integral that is (Q(F(y)) - Q(F(y-))) / (F(y) - F(y-)), with expectation Q(1) - Q(0) = 1: counts,
  quantiles, and ranks among draws need no sum over their support. Beyond `EDGE` the alternative is in
  proportion to the prediction, so that rounding of F next to 1 does not matter.
- *temperature*: q in proportion to p^b. Classes sum over classes; vectors have a closed form. Of mixtures
  each component is taken to the power, which is an alternative like any other.
- *classes*: the odds of one class are e^t times what was said.

Steps between alternatives are in proportion, and the first of them is as small as so many cases could show:
between two, at most a few per cent of the logarithm of the gain are lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.registry import Rules
from wellcal.expectations.signed_measures import components_of
from wellcal.measures.normal_scores import are_normal, residuals_of
from wellcal.measures.quantiles._pit import distribution_at
from wellcal.predictions import (
    Bernoulli,
    Categorical,
    DiagonalNormal,
    Dirichlet,
    MultivariateNormal,
    PowerExponential,
    Predictions,
    Quantiles,
    Samples,
)
from wellcal.predictions.base import keeps_distribution

EDGE = 1e-6
"""Probability at either end of a prediction within which bets do not change."""

MOST_CLASSES = 20
"""Classes that are bet on one by one: those that vary most, by the predictions."""

_RATIO = math.sqrt(2.0)  # of a step to the next, for numbers and classes
_RATIO_OF_COORDINATES = 2.0  # there are more bets for vectors
_LARGEST = {"centre": 3.0, "spread": 1.2, "temperature": 2.0, "class": 4.0}
_NARROW = 1e-8  # jumps of F that are as good as none
_FAR = 1e150  # normal scores whose squares are numbers

Bets = list[NDArray]
"""Logarithms of gains ``(m, K)`` on m cases, by kind."""

Bettor = Callable[[NDArray, Predictions], Bets]
"""From the targets and predictions of some cases to the gains on them."""


# -- alternatives ------------------------------------------------------------------------------


def steps(kind: str, n: int, ratio: float = _RATIO) -> NDArray:
    """Sizes of departures to bet on with n cases, each with both signs.

    Examples
    --------
    >>> steps("centre", 1)
    array([ 1.        ,  1.41421356,  2.        ,  2.82842712, -1.        ,
           -1.41421356, -2.        , -2.82842712])
    >>> len(steps("centre", 10_000)), len(steps("temperature", 10_000))
    (34, 28)
    """
    least = {"centre": 1.0, "spread": math.sqrt(0.5)}.get(kind, 2.0) / math.sqrt(n)
    most = _LARGEST[kind]
    count = 1 + max(0, math.floor(math.log(most / least) / math.log(ratio) + 1e-9))
    sizes = min(least, most) * ratio ** np.arange(count)
    return np.concatenate([sizes, -sizes])


def _scores_bet_on(n: int, ratio: float = _RATIO) -> list[tuple[NDArray, NDArray]]:
    """Centre and spread of normal scores, by kind."""
    shifts, spreads = steps("centre", n, ratio), np.exp(steps("spread", n, ratio))
    return [(shifts, np.ones_like(shifts)), (np.zeros_like(spreads), spreads)]


# -- by family ---------------------------------------------------------------------------------


def fair_bets(predictions: Predictions, n: int | None = None) -> Bettor:
    """Bets against a batch, as many cases are bet on: to be called with all of its cases or with some.

    Parameters
    ----------
    predictions
        A batch in NumPy against which there are bets (`why_no_bets`).
    n
        Number of cases; None takes that of the batch.

    Examples
    --------
    >>> import wellcal as wc
    >>> pred = wc.Bernoulli([0.3])
    >>> zero, one = (fair_bets(pred, 100)(np.array([y]), pred) for y in (0, 1))
    >>> all(np.allclose(0.7 * np.exp(a) + 0.3 * np.exp(b), 1.0) for a, b in zip(zero, one))
    True
    """
    count = len(predictions) if n is None else n
    found = _bettor(predictions, count)

    def bet(targets: NDArray, cases: Predictions) -> Bets:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            return found(targets, cases)

    return bet


def _bettor(predictions: Predictions, n: int) -> Bettor:
    if predictions.kind == "classes":
        return _on_classes(predictions, n)
    if predictions.event_shape == () or isinstance(predictions, Samples):
        return _on_numbers(predictions, n)
    powers = np.exp(steps("temperature", n))

    def on_vectors(targets: NDArray, cases: Predictions) -> Bets:
        together = [_log_power_ratio(targets, cases, powers)]
        z = _normal_scores(targets, cases)
        if z is None:
            return together
        kinds = _scores_bet_on(n, _RATIO_OF_COORDINATES)
        return together + [_log_normal_ratio(z[..., None], *kind).reshape(len(z), -1) for kind in kinds]

    return on_vectors


def bets_per_case(predictions: Predictions) -> int:
    """About how many numbers a case makes: how many cases to take at a time depends on it."""
    columns = math.prod(predictions.event_shape)
    classes = predictions.class_probs().shape[1] if predictions.kind == "classes" else 0
    draws = predictions.values.shape[1] if isinstance(predictions, Samples) else 0
    return draws * columns + 2 * len(steps("centre", len(predictions))) * (2 * columns + classes)


def why_no_bets(targets: NDArray, predictions: Predictions) -> str | None:
    """Why there is no fair bet against these predictions, or None.

    Examples
    --------
    >>> import wellcal as wc
    >>> why_no_bets(np.array([0.5]), wc.Samples([[0.0, 1.0]], kind="atoms"))
    'a target lies between atoms, where they have no density; draws (kind="draws") have ranks'
    """
    name = type(predictions).__name__
    if predictions.kind == "classes" or are_normal(predictions) or isinstance(predictions, Quantiles):
        return None
    if predictions.target_kind == "objects":
        return "objects have neither densities nor ranks to bet on"
    if isinstance(predictions, Samples):
        columns = _columns(targets, predictions) if predictions.kind == "atoms" else ()
        between = any(bool(np.any(upto <= below)) for below, upto in columns)
        told = 'a target lies between atoms, where they have no density; draws (kind="draws") have ranks'
        return told if between else None
    parts: list[Predictions] = list(predictions.parts)
    if predictions.event_shape != ():
        if any(_POWERS.find(type(part)) is None for part in parts):
            return f"no fair bet is known for vectors of {name}"
        edge = any(isinstance(part, Dirichlet) for part in parts) and bool(np.any(targets == 0.0))
        return "a target has a coordinate of zero, where there is no density" if edge else None
    if not predictions.supports("cdf"):
        return f"{name} has no distribution function to bet with"
    if not all(_jumps_are_known(part) for part in parts):
        return f"{name} is discrete, and where its distribution function jumps is not known"
    return None


def _jumps_are_known(part: Any) -> bool:
    known = part.continuous or part.target_kind == "counts"
    return known or isinstance(part, (Bernoulli, Categorical, Samples))


# -- classes -----------------------------------------------------------------------------------


def _on_classes(predictions: Predictions, n: int) -> Bettor:
    powers, odds = np.exp(steps("temperature", n)), steps("class", n)
    every = _class_probs(predictions)
    # What a class gains, the other of two loses: one bet is enough.
    classes = np.arange(1 if every.shape[1] == 2 else 0, every.shape[1])
    if len(classes) > MOST_CLASSES:
        varied = np.argsort(-np.sum(every * (1.0 - every), axis=0), kind="stable")
        classes = np.sort(varied[:MOST_CLASSES])

    def on_classes(targets: NDArray, cases: Predictions) -> Bets:
        probs = _class_probs(cases)
        logs = np.log(probs)
        observed = np.take_along_axis(logs, targets[:, None].astype(np.intp), axis=1)
        normalisers = np.stack([np.sum(np.exp(b * logs), axis=1) for b in powers], axis=1)
        temperature = (powers - 1.0) * observed - np.log(normalisers)
        hit = (targets[:, None] == classes)[..., None]
        tilted = hit * odds - np.log1p(probs[:, classes, None] * np.expm1(odds))
        return [temperature, tilted.reshape(len(probs), -1)]

    return on_classes


def _class_probs(predictions: Predictions) -> NDArray:
    probs = np.asarray(predictions.class_probs(), dtype=np.float64)
    return probs / np.sum(probs, axis=1, keepdims=True)


# -- numbers, and coordinates of draws ---------------------------------------------------------


def _on_numbers(predictions: Predictions, n: int) -> Bettor:
    vectors = predictions.event_shape != ()
    kinds = _scores_bet_on(n, _RATIO_OF_COORDINATES if vectors else _RATIO)

    def on_numbers(targets: NDArray, cases: Predictions) -> Bets:
        z = _normal_scores(targets, cases)
        if z is not None:
            return [_log_normal_ratio(z[:, None], *kind) for kind in kinds]
        columns = _columns(targets, cases)
        return [np.hstack([_log_mean_ratio(*column, *kind) for column in columns]) for kind in kinds]

    return on_numbers


def _columns(targets: NDArray, predictions: Predictions) -> list[tuple[NDArray, NDArray]]:
    """P(Y < y) and P(Y <= y) of each coordinate."""
    if predictions.event_shape == ():
        return [_distribution_function(predictions, targets)]
    samples = cast("Samples", predictions)
    return [
        _distribution_function(samples.with_fields(values=samples.values[:, :, k]), targets[:, k])
        for k in range(samples.event_shape[0])
    ]


def _distribution_function(predictions: Predictions, targets: NDArray) -> tuple[NDArray, NDArray]:
    below, upto = distribution_at(predictions, targets)
    if predictions.continuous:
        # Targets smaller than any number are zero, and those next to one are one: that has a probability.
        rounded = np.flatnonzero((targets == 0.0) | (targets == 1.0))
        if len(rounded):
            near, some = targets[rounded], predictions[rounded]
            below, upto = np.array(below), np.array(upto)
            below[rounded] = distribution_at(some, np.nextafter(near, -np.inf))[0]
            upto[rounded] = distribution_at(some, np.nextafter(near, np.inf))[1]
    elif isinstance(predictions, Samples) and predictions.weights is not None:
        total = np.sum(predictions.weights, axis=1)
        below, upto = below / total, upto / total
    return np.clip(below, 0.0, 1.0), np.clip(upto, 0.0, 1.0)


def _log_mean_ratio(below: NDArray, upto: NDArray, shift: NDArray, spread: NDArray) -> NDArray:
    """Log of the mean of N(shift, spread^2) over N(0, 1), as densities of F, between two values of F."""
    upper = below + upto > 1.0  # the smaller tail has more digits
    sign = np.where(upper, -1.0, 1.0)[:, None]
    low = np.where(upper, 1.0 - upto, below)[:, None]
    high = np.where(upper, 1.0 - below, upto)[:, None]
    shifts = sign * shift
    edge = float(special.ndtri(EDGE))
    tails = special.ndtr((edge - shift) / spread), special.ndtr((edge + shift) / spread)
    turned = upper[:, None]
    in_lower = np.where(turned, tails[1], tails[0])  # what the alternative has beyond each edge
    in_upper = np.where(turned, tails[0], tails[1])
    middle = special.ndtri(np.clip(0.5 * (low + high), EDGE, 0.5))
    inside = _log_normal_ratio(middle, shifts, spread)
    narrow = np.where(0.5 * (low + high) < EDGE, np.log(in_lower / EDGE), inside)
    jump = high - low
    wide = jump[:, 0] > _NARROW
    if not wide.any():
        return narrow
    low, high, shifts, jump = low[wide], high[wide], shifts[wide], jump[wide]
    ends = [special.ndtri(np.clip(end, EDGE, 1.0 - EDGE)) for end in (low, high)]
    first, last = (special.ndtr((end - shifts) / spread) for end in ends)
    beyond_low = (np.minimum(high, EDGE) - np.minimum(low, EDGE)) / EDGE
    beyond_high = (np.maximum(high, 1.0 - EDGE) - np.maximum(low, 1.0 - EDGE)) / EDGE
    held = last - first + beyond_low * in_lower[wide] + beyond_high * in_upper[wide]
    narrow[wide] = np.log(held / jump)
    return narrow


# -- normals -----------------------------------------------------------------------------------


def _normal_scores(targets: NDArray, predictions: Predictions) -> NDArray | None:
    """Residuals of normals, None of others. Those of points are far, or NaN where the target is the point."""
    residuals = residuals_of(predictions)
    return None if residuals is None else np.clip(residuals(targets), -_FAR, _FAR)


def _log_normal_ratio(z: NDArray, shift: NDArray, spread: NDArray) -> NDArray:
    """Log of the density of N(shift, spread^2) over that of N(0, 1); nothing is bet where z is NaN."""
    inverse = spread**-2.0
    ratio = 0.5 * (1.0 - inverse) * z**2 + inverse * shift * (z - 0.5 * shift) - np.log(spread)
    return np.where(np.isnan(z), 0.0, ratio)


# -- powers of densities of vectors ------------------------------------------------------------

_POWERS: Rules[Callable[[Any, NDArray, NDArray], NDArray]] = Rules(
    "a power of a density", serves=keeps_distribution
)
"""Functions of a batch, targets and powers b that return the log of p^b, normalised, over p, ``(m, B)``."""


def _log_power_ratio(targets: NDArray, predictions: Predictions, powers: NDArray) -> NDArray:
    """Of mixtures: with each component to the power."""
    parts = components_of(predictions)
    ratios: list[NDArray] = []
    for part, weight in parts:
        rule = _POWERS.find(type(part))
        assert rule is not None
        ratio = rule(part, targets, powers)
        if weight is not None:
            ratio = ratio + (np.log(weight) + part.log_prob(targets))[:, None]
        ratios.append(ratio)
    if parts[0][1] is None:
        return ratios[0]
    whole = cast("NDArray", special.logsumexp(np.stack(ratios), axis=0))
    return whole - np.asarray(predictions.log_prob(targets))[:, None]


@_POWERS.register(DiagonalNormal)
@_POWERS.register(MultivariateNormal)
def _of_normals(pred: Any, y: NDArray, powers: NDArray) -> NDArray:
    z = cast("NDArray", _normal_scores(y, pred))
    square = np.nansum(z**2, axis=1)[:, None]
    dimension = np.count_nonzero(~np.isnan(z), axis=1)[:, None]
    return 0.5 * (dimension * np.log(powers) - (powers - 1.0) * square)


@_POWERS.register(PowerExponential)
def _of_power_exponentials(pred: PowerExponential, y: NDArray, powers: NDArray) -> NDArray:
    fall = np.asarray(pred.log_prob(pred.loc)) - np.asarray(pred.log_prob(y))
    order = pred.event_shape[0] / np.asarray(pred.shape)
    return order[:, None] * np.log(powers) - (powers - 1.0) * fall[:, None]


@_POWERS.register(Dirichlet)
def _of_dirichlets(pred: Dirichlet, y: NDArray, powers: NDArray) -> NDArray:
    """With respect to dy / prod(y), which keeps the mean: the power of any concentration has an integral."""
    at_one = np.asarray(pred.log_prob(y))
    raised = [pred.with_fields(concentration=b * pred.concentration).log_prob(y) for b in powers]
    return np.stack([np.asarray(log) - at_one for log in raised], axis=1)
