"""Whether a batch behaves as one: sampling, indexing, independence and targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.ops import EPSILON
from wellcal.conformance.asking import ask, in_library, levels_of, often_varied
from wellcal.conformance.report import LawBrokenError, require, require_close
from wellcal.conformance.sample import rounding
from wellcal.predictions import Predictions

_STANDARD_ERRORS = 5.0
_METHODS = ("mean", "variance", "interquartile_range", "class_probs")

# -- sampling --------------------------------------------------------------------------------


def check_sampling(batch: Predictions) -> None:
    """Shapes of draws are right, and seeds decide on them."""
    n, event = len(batch), batch.event_shape
    one, many = batch.sample(1), batch.sample(1, size=64)
    for found, shape, call in (
        (one, (n, *event), "sample(1)"),
        (many, (64, n, *event), "sample(1, size=64)"),
    ):
        if tuple(found.shape) != shape:
            raise LawBrokenError(f"{call} has shape {tuple(found.shape)}, expected {shape}")
    first, again, other = (to_numpy(batch.sample(seed, size=64)) for seed in (1, 1, 2))
    require(first == again, lambda at: f"seed 1 gave {first[at]} and then {again[at]} at index {at}")
    if first.dtype.kind == "f" and not np.isfinite(first).all():
        raise LawBrokenError("sample gave values that are not finite")
    if first.dtype.kind in "biuf":
        certain = (first == first[:1]).all()
        if not certain and (first == other).all():
            raise LawBrokenError("seeds 1 and 2 gave the same draws: the given generator must be used")


def check_independence(draws: NDArray) -> str | None:
    """Draws of one prediction, and of neighbouring ones, are uncorrelated."""
    if draws.dtype.kind not in "biuf":
        return "targets are not numbers"
    size, n = draws.shape[:2]
    ranks = stats.rankdata(draws.reshape(size, n, -1), axis=0)
    resolved = often_varied(draws).reshape(n, -1)
    allowed = _STANDARD_ERRORS / np.sqrt(size)
    if not resolved.any():
        return "draws hardly vary"
    for first, second, both, what in (
        (ranks[1:], ranks[:-1], resolved, "successive draws of prediction"),
        (ranks[:, 1:], ranks[:, :-1], resolved[1:] & resolved[:-1], "draws of neighbouring predictions from"),
    ):
        correlation = np.where(both, _correlation(first, second), 0.0)
        require(
            np.abs(correlation) <= allowed,
            lambda at, c=correlation, w=what: (
                f"{w} {at[0]} have rank correlation {c[at]:.3g}, and {allowed:.2g} is allowed"
            ),
        )
    return None


def _correlation(x: NDArray, y: NDArray) -> NDArray:
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    with np.errstate(invalid="ignore"):
        return np.nan_to_num((x * y).sum(axis=0) / np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0)))


# -- batches ---------------------------------------------------------------------------------


def _indices(n: int) -> list[Any]:
    mask = np.zeros(n, dtype=bool)
    mask[::2] = True
    mask[-1] = True
    return [
        slice(None),
        slice(1, None),
        slice(None, None, -1),
        [n - 1, 0, 0],
        np.arange(n)[::-2],
        mask,
        n // 2,
        -1,
    ]


def _rows(n: int, index: Any) -> NDArray:
    return np.atleast_1d(np.arange(n)[index])


def check_indexing(batch: Predictions, rng: np.random.Generator) -> None:
    """Parts of a batch say of their rows what the whole batch says of them."""
    n = len(batch)
    if n < 2:
        raise LawBrokenError(f"at least two predictions are needed for a check, found {n}")
    hash(batch)  # batches are remembered by identity: eq=False
    y = to_numpy(batch.sample(rng))
    whole = _said(batch, y)
    for index in _indices(n):
        rows = _rows(n, index)
        part = batch[index]
        if len(part) != len(rows) or type(part) is not type(batch):
            raise LawBrokenError(
                f"[{index}] of {batch!r} gave {part!r}, expected {len(rows)} predictions of the same type"
            )
        if part.event_shape != batch.event_shape:
            raise LawBrokenError(
                f"[{index}] changed event_shape from {batch.event_shape} to {part.event_shape}"
            )
        said = _said(part, y[rows])
        if said.keys() != whole.keys():
            raise LawBrokenError(f"[{index}] supports {sorted(said)}, but the whole batch {sorted(whole)}")
        for name, value in said.items():
            expected = whole[name][rows] if whole[name].ndim else whole[name]
            scale = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
            tolerance = max(1e-9, 1e3 * rounding(batch)) * scale
            require_close(
                value, expected, tolerance, f"{name} of [{index}]", f"{name} of these rows of the batch"
            )
    _same_draws(batch, np.arange(n)[::-1], rng)
    if [len(one) for one in batch] != [1] * n:
        raise LawBrokenError("iteration does not give batches of one prediction")


def _said(batch: Predictions, y: NDArray) -> dict[str, NDArray]:
    """What a batch says about its rows, row by row."""
    answers = {method: ask(batch, method) for method in _METHODS}
    answers |= {method: ask(batch, method, y) for method in ("log_prob", "cdf")}
    answers["quantile"] = ask(batch, "quantile", float(levels_of(batch)[1]))
    return {name: value for name, value in answers.items() if value is not None}


def _same_draws(batch: Predictions, order: NDArray, rng: np.random.Generator, size: int = 1000) -> None:
    """Rows in another order are still drawn from their own distributions."""
    whole, part = to_numpy(batch.sample(rng, size)), to_numpy(batch[order].sample(rng, size))
    if whole.dtype.kind not in "biuf":
        return
    whole, part = whole[:, order].astype(np.float64), part.astype(np.float64)
    spread_of_means = np.sqrt((whole.var(axis=0) + part.var(axis=0)) / size)
    # What was drawn only once might as well never have been drawn.
    largest = np.abs(whole - np.median(whole, axis=0)).max(axis=0)
    largest = np.maximum(largest, np.abs(part - np.median(part, axis=0)).max(axis=0))
    slack = (1e2 * rounding(batch) + 4.0 * size * EPSILON) * np.abs(whole).max(axis=0)
    allowed = _STANDARD_ERRORS * spread_of_means + 10.0 * largest / size + slack
    require_close(
        part.mean(axis=0),
        whole.mean(axis=0),
        allowed,
        f"the mean of {size} draws of rows reversed",
        "of the rows",
    )


# -- targets ---------------------------------------------------------------------------------


def check_target_rules(batch: Predictions, rng: np.random.Generator) -> None:
    """Targets that were sampled are accepted, and wrong ones refused."""
    y = batch.sample(rng)
    checked = batch.check_targets(y)
    if checked.shape[0] != len(batch):
        raise LawBrokenError(f"check_targets gave {checked.shape[0]} targets for {len(batch)} predictions")
    values = to_numpy(y)
    _refuses(batch, values[:-1], "one target too few")
    if values.dtype.kind in "biuf":
        _refuses(batch, values[:, None], f"targets of shape {values[:, None].shape}")
        spoiled = values.astype(np.float64)
        spoiled[0] = np.nan
        _refuses(batch, spoiled, "a target that is not a number")


def _refuses(batch: Predictions, y: NDArray, what: str) -> None:
    try:
        batch.check_targets(in_library(batch, y))
    except (TypeError, ValueError):
        return
    raise LawBrokenError(f"check_targets took {what}")
