"""Laws that families of predictions obey."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats

from wellcal._arrays.namespaces import Array, NDArray, asarray, is_array, namespace, to_numpy
from wellcal._arrays.ops import EPSILON
from wellcal._arrays.parameters import device_of
from wellcal.conformance.densities import check_density
from wellcal.conformance.report import Check, LawBrokenError, Report, require, require_close, run
from wellcal.conformance.sample import Sample, rounding, spread
from wellcal.conformance.spaces import simulated
from wellcal.kernels.base import Kernel, Tensor
from wellcal.measures._skce import skce
from wellcal.predictions import Predictions, Quantiles, Samples
from wellcal.predictions.adapters import as_predictions
from wellcal.predictions.base import as_generator
from wellcal.problem.defaults import default_kernel

_FEW = 8  # predictions that are compared with simulation
_STANDARD_ERRORS = 5.0
_KS_LEVEL = 1e-6
_ABSENT = re.compile(r"\b(has|have) no\b")
_METHODS = ("mean", "variance", "interquartile_range", "class_probs")


def check_predictions(
    predictions: object,
    *,
    kernel: Kernel | None = None,
    rng: int | np.random.Generator | None = 0,
    draws: int = 4000,
) -> Report:
    """Check a family of your own.

    Parameters
    ----------
    predictions
        A batch of the family with at least two predictions, better ten that differ.
    kernel
        Kernel on pairs for a round trip through :func:`wellcal.skce`; the family's default where None.
    rng
        Seed or generator.
    draws
        Draws from each of a few predictions, with which the rest is compared.

    Returns
    -------
    Report
        Laws that hold, and those that do not apply.

    Raises
    ------
    ConformanceError
        At the first law that is broken, with the place and the size of the error.

    Notes
    -----
    A subclass of :class:`wellcal.Predictions` is a ``dataclass(frozen=True, repr=False, eq=False)``. It
    names in `array_fields` those of its fields that have one entry for each prediction, and defines `draw`;
    `event_shape` where targets are vectors; `check_targets` where they are not just any real numbers; and
    ``continuous = False`` where `log_prob` is a probability. `mean`, `variance`, `log_prob`, `cdf` and
    `quantile` are welcome. A method that exists for some batches only raises a TypeError elsewhere, with the
    words that the batch "has no" such thing; laws about it then do not apply.

    sampling
        Shapes are ``(n,) + event_shape`` and ``(size, n) + event_shape``; the same seed gives the same
        draws, another seed others.
    indexing
        Slices, lists, masks and single rows give batches of the right length that say of their rows what the
        whole batch says of them.
    independence
        Draws of one prediction, and of neighbouring predictions, are uncorrelated.
    targets
        `check_targets` takes what was sampled, and refuses other lengths, shapes and NaN.
    moments
        `mean` and `variance` agree with draws, within five standard errors.
    inverse
        `quantile` is the inverse of `cdf`, and both are non-decreasing.
    probability integral transform
        `cdf` at draws is uniform, where it jumps after randomisation (Kolmogorov-Smirnov test at level 1e-6).
    density
        `log_prob` integrates to one and, over intervals, to differences of `cdf` (scalar targets); where
        it is a probability, it agrees with frequencies of draws.
    expectations
        Expectations of the kernel on targets agree with draws.
    calibration error
        :func:`wellcal.skce` runs, gives finite values, and the biased estimate is not negative.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from typing import Any
    >>> import numpy as np, wellcal as wc
    >>> @dataclass(frozen=True, repr=False, eq=False)
    ... class Logistic(wc.Predictions):
    ...     loc: Any
    ...     scale: Any
    ...     array_fields = ("loc", "scale")
    ...
    ...     def cdf(self, y):
    ...         return 1.0 / (1.0 + np.exp(-(y - self.loc) / self.scale))
    ...
    ...     def quantile(self, u):
    ...         with np.errstate(divide="ignore"):
    ...             return self.loc + self.scale * (np.log(u) - np.log1p(-u))
    ...
    ...     def draw(self, rng, size):
    ...         return rng.logistic(self.loc, self.scale, (size, len(self)))
    >>> pred = Logistic(np.linspace(-1.0, 1.0, 10), np.linspace(0.5, 2.0, 10))
    >>> print(check_predictions(pred))
    Logistic: 8 laws hold
      holds: sampling
      holds: indexing
      holds: independence
      holds: targets
      holds: inverse
      holds: probability integral transform
      holds: expectations
      holds: calibration error
      not applicable: moments (there is neither mean nor variance)
      not applicable: density (there is no log_prob)

    A mistake in the sampler, which draws with twice the scale:

    >>> class Wrong(Logistic):
    ...     def draw(self, rng, size):
    ...         return rng.logistic(self.loc, 2.0 * self.scale, (size, len(self)))
    >>> check_predictions(Wrong(pred.loc, pred.scale))
    Traceback (most recent call last):
    wellcal.conformance.report.ConformanceError: probability integral transform: cdf at 4000 draws of ...
    """
    batch = as_predictions(predictions)
    return run(type(batch).__name__, _laws(batch, kernel, as_generator(rng), draws))


def _laws(
    batch: Predictions, kernel: Kernel | None, rng: np.random.Generator, size: int
) -> Iterator[tuple[str, Check]]:
    few = spread(batch, _FEW)
    drawn: list[NDArray] = []

    def draws() -> NDArray:
        if not drawn:
            drawn.append(to_numpy(few.sample(rng, size)))
        return drawn[0]

    yield "sampling", lambda: _sampling(batch)
    yield "indexing", lambda: _indexing(batch, rng)
    yield "independence", lambda: _independence(draws())
    yield "targets", lambda: _targets(batch, rng)
    yield "moments", lambda: _moments(few, draws())
    yield "inverse", lambda: _inverse(few)
    yield "probability integral transform", lambda: _integral_transform(few, draws(), rng)
    yield "density", lambda: check_density(few, draws(), ask)
    yield "expectations", lambda: _expectations(batch, kernel, rng, size)
    yield "calibration error", lambda: _calibration_error(batch, kernel, rng)


# -- asking a family -------------------------------------------------------------------------


def ask(batch: Any, method: str, *arguments: NDArray | float) -> NDArray | None:
    """What `method` returns, as NumPy numbers; None where the batch has no such method."""
    function = getattr(batch, method, None)
    if function is None:
        return None
    given = [beside(batch, x) if isinstance(x, np.ndarray) else x for x in arguments]
    try:
        value = function(*given)
    except TypeError as error:
        if _ABSENT.search(str(error)):
            return None
        raise
    return to_numpy(value).astype(np.float64)


def beside(batch: Predictions, x: NDArray) -> Array:
    """`x` in the library and precision of the predictions; labels and objects as they are."""
    like = batch.like
    if x.dtype.kind not in "biuf" or not is_array(like) or str(like.dtype) == "object":
        return x
    dtype = like.dtype if x.dtype.kind == "f" else None
    return asarray(x, xp=namespace(like), device=device_of(like), dtype=dtype)


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


def _indexing(batch: Predictions, rng: np.random.Generator) -> None:
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
            raise LawBrokenError(f"[{index}] can say {sorted(said)}, but the whole batch {sorted(whole)}")
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
    answers["quantile"] = ask(batch, "quantile", float(_levels(batch)[1]))
    return {name: value for name, value in answers.items() if value is not None}


def _same_draws(batch: Predictions, order: NDArray, rng: np.random.Generator, size: int = 1000) -> None:
    """Rows in another order are still drawn from their own distributions."""
    whole, part = to_numpy(batch.sample(rng, size)), to_numpy(batch[order].sample(rng, size))
    if whole.dtype.kind not in "biuf":
        return
    whole, part = whole[:, order].astype(np.float64), part.astype(np.float64)
    spread_of_means = np.sqrt((whole.var(axis=0) + part.var(axis=0)) / size)
    # What was drawn once in all may as well have been drawn never.
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


# -- sampling --------------------------------------------------------------------------------


def _sampling(batch: Predictions) -> None:
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


def _resolved(draws: NDArray) -> NDArray:
    """Whether a row varied often enough to speak of its spread, by prediction and coordinate."""
    return (draws != np.median(draws, axis=0)).sum(axis=0) >= 30


def _independence(draws: NDArray) -> str | None:
    if draws.dtype.kind not in "biuf":
        return "targets are not numbers"
    size, n = draws.shape[:2]
    ranks = stats.rankdata(draws.reshape(size, n, -1), axis=0)
    resolved = _resolved(draws).reshape(n, -1)
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


# -- targets ---------------------------------------------------------------------------------


def _targets(batch: Predictions, rng: np.random.Generator) -> None:
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
        batch.check_targets(beside(batch, y))
    except (TypeError, ValueError):
        return
    raise LawBrokenError(f"check_targets took {what}")


# -- distribution ----------------------------------------------------------------------------


def _moments(few: Predictions, draws: NDArray) -> str | None:
    mean, variance = ask(few, "mean"), ask(few, "variance")
    if mean is None and variance is None:
        return "there is neither mean nor variance"
    size = len(draws)
    x = draws.astype(np.float64)
    drawn = x.mean(axis=0)
    slack = (1e2 * rounding(few) + 4.0 * size * EPSILON) * np.abs(x).max(axis=0)
    if mean is not None:
        stated = np.zeros_like(drawn) if variance is None else np.where(np.isfinite(variance), variance, 0.0)
        allowed = _STANDARD_ERRORS * np.sqrt(np.maximum(stated, x.var(axis=0)) / size) + slack
        exists = np.isfinite(mean)
        require_close(np.where(exists, mean, drawn), drawn, allowed, "the mean", f"the mean of {size} draws")
    if variance is not None:
        squares = (x - drawn) ** 2
        allowed = (
            _STANDARD_ERRORS * squares.std(axis=0) / np.sqrt(size) + slack**2 + 1e-12 * squares.mean(axis=0)
        )
        # Of rare counts nothing may have been drawn yet; a density has no such excuse.
        exists = np.isfinite(variance) & (_resolved(x) | few.continuous)
        spread_of_draws = squares.mean(axis=0)
        require_close(
            np.where(exists, variance, spread_of_draws),
            spread_of_draws,
            allowed,
            "the variance",
            f"the variance of {size} draws",
        )
    return None


def _levels(batch: Predictions) -> NDArray:
    """Levels at which quantiles can be asked for."""
    if isinstance(batch, Quantiles):
        return np.linspace(batch.levels[0], batch.levels[-1], 9)
    return np.array([0.001, 0.05, 0.1, 0.25, 0.4, 0.5, 0.7, 0.9, 0.99, 0.999])


def _inverse(few: Predictions) -> str | None:
    levels = np.tile(_levels(few)[:, None], (1, len(few)))
    if few.event_shape != ():
        return "targets are vectors"
    quantiles = ask(few, "quantile", levels)
    if quantiles is None or ask(few, "cdf", quantiles) is None:
        return "there is no quantile, or no cdf"
    if quantiles.shape != levels.shape:
        raise LawBrokenError(f"quantile has shape {quantiles.shape} for levels of shape {levels.shape}")
    require(
        np.diff(quantiles, axis=0) >= 0,
        lambda at: (
            f"quantile falls between levels {levels[at]:g} and {levels[at[0] + 1, 0]:g} of prediction {at[1]}"
        ),
    )
    # A step beside the quantile allows for its rounding, and finds the two ends of a jump of the cdf.
    width = quantiles[-1] - quantiles[0]
    accuracy = max(1e-9, 1e2 * rounding(few))
    step = accuracy * (np.abs(quantiles) + np.where(np.isfinite(width), width, 0.0)) + 1e-300
    below, above = ask(few, "cdf", quantiles - step), ask(few, "cdf", quantiles + step)
    assert below is not None
    assert above is not None
    tolerance = max(1e-6, 1e2 * rounding(few))

    def describe(at: tuple[int, ...]) -> str:
        return (
            f"quantile({levels[at]:g}) of prediction {at[1]} is {quantiles[at]:.10g}, but cdf goes from "
            f"{below[at]:.10g} to {above[at]:.10g} there"
        )

    require((below <= levels + tolerance) & (above >= levels - tolerance), describe)
    return None


def _integral_transform(few: Predictions, draws: NDArray, rng: np.random.Generator) -> str | None:
    if few.event_shape != () or draws.dtype.kind not in "biuf":
        return "targets are not scalar numbers"
    y = draws.astype(to_numpy(beside(few, np.zeros(1))).dtype)
    at = ask(few, "cdf", y)
    if at is None:
        return "there is no cdf"
    # A step that no library rounds away, as some do with subnormal numbers.
    before = ask(few, "cdf", y - (4.0 * rounding(few) * np.abs(y) + 1e-30).astype(y.dtype))
    assert before is not None
    slack = 1e3 * rounding(few)
    require(
        (before >= -slack) & (at >= before - slack) & (at <= 1.0 + slack),
        lambda i: (
            f"cdf of prediction {i[1]} goes from {before[i]} to {at[i]} at {y[i]}: it must rise within [0, 1]"
        ),
    )
    uniform = np.sort(before + rng.random(y.shape) * (at - before), axis=0)
    size = len(uniform)
    low, high = (float(e) for e in (_levels(few)[[0, -1]] if isinstance(few, Quantiles) else (0.0, 1.0)))
    inside = (uniform > low + slack) & (
        uniform < high - slack
    )  # beyond its levels a cdf of Quantiles is not known
    steps = np.arange(1, size + 1)[:, None] / size
    distance = np.where(inside, np.maximum(steps - uniform, uniform - (steps - 1.0 / size)), 0.0).max(axis=0)
    pvalue = stats.kstwo.sf(distance, size)
    require(
        pvalue >= _KS_LEVEL,
        lambda i: (
            f"cdf at {size} draws of prediction {i[0]} is not uniform: Kolmogorov-Smirnov distance "
            f"{distance[i]:.3g}, p = {pvalue[i]:.2g}"
        ),
    )
    return None


# -- calibration -----------------------------------------------------------------------------


def _kernel(batch: Predictions, kernel: Kernel | None) -> Kernel:
    return default_kernel(batch) if kernel is None else kernel


def _expectations(
    batch: Predictions, kernel: Kernel | None, rng: np.random.Generator, size: int
) -> str | None:
    chosen = _kernel(batch, kernel)
    if not isinstance(chosen, Tensor):
        return "the kernel is not a tensor product"
    simulated(chosen.targets, Sample.of(batch, rng, _FEW, size))
    return None


def _calibration_error(batch: Predictions, kernel: Kernel | None, rng: np.random.Generator) -> None:
    some = spread(batch, 50)
    y = some.sample(rng)
    chosen = _kernel(some, kernel)
    for estimator in ("unbiased", "biased", "block"):
        value = float(skce(y, some, kernel=chosen, estimator=estimator))
        if not np.isfinite(value):
            raise LawBrokenError(f"the {estimator} SKCE is {value}")
        draws = isinstance(some, Samples) and some.kind == "draws"
        valid = chosen.guarantees(some).positive_definite
        if estimator == "biased" and valid and not draws and value < -1e-12:
            raise LawBrokenError(f"the biased SKCE is negative, {value:.3g}, with {chosen!r}")
