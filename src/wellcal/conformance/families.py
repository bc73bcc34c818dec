"""Laws that families of predictions obey."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, cast

import numpy as np
from scipy import special, stats

from wellcal._arrays.checks import whole_number
from wellcal._arrays.namespaces import Array, NDArray, asarray, device_of, is_array, namespace, to_numpy
from wellcal._arrays.seeds import as_generator
from wellcal.conformance.kernels import FIXED, Sample, rounding, simulated, spread
from wellcal.conformance.report import Check, LawBrokenError, Report, require, require_close, run
from wellcal.kernels.algebra import Tensor
from wellcal.kernels.base import Kernel
from wellcal.measures._skce import skce
from wellcal.predictions import Predictions, Quantiles
from wellcal.predictions.adapters import converted_argument
from wellcal.problem.defaults import default_kernel

_FEW = 8  # predictions that are compared with simulation
_STANDARD_ERRORS = 5.0
_KS_LEVEL = 1e-6
_DENSITY_ERROR = 1e-4
_MOST_VALUES = 2000


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
        A batch of the family with at least two predictions, preferably ten different ones.
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
    :class:`wellcal.Predictions` says what a family defines. Laws about a method that a batch does not support
    do not apply.

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
        `cdf` at draws is uniform, after randomisation where it jumps (Kolmogorov-Smirnov test with error
        rate 1e-6).
    density
        `log_prob` integrates to one and, over intervals, to differences of `cdf` (scalar targets); where
        it is a probability, it agrees with frequencies of draws.
    expectations
        Expectations of the kernel on targets agree with draws.
    calibration error
        :func:`wellcal.skce` runs, gives finite values, and the biased estimate is not negative.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.predictions import family, parameter, positive
    >>> @family
    ... class Logistic(wc.Predictions):
    ...     loc: np.ndarray = parameter(unit="scale")
    ...     scale: np.ndarray = parameter(positive)
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
    batch = converted_argument(predictions, "predictions")
    size = whole_number(draws, "draws", least=2, most=10**7)
    return run(type(batch).__name__, _laws(batch, kernel, as_generator(rng), size))


def _laws(
    batch: Predictions, kernel: Kernel | None, rng: np.random.Generator, size: int
) -> Iterator[tuple[str, Check]]:
    few = spread(batch, _FEW)
    draws = cache(lambda: to_numpy(few.sample(rng, size)))
    chosen = cache(lambda: default_kernel(batch) if kernel is None else kernel)

    yield "sampling", lambda: _check_sampling(batch)
    yield "indexing", lambda: _check_indexing(batch, rng)
    yield "independence", lambda: _check_independence(draws())
    yield "targets", lambda: _check_target_rules(batch, rng)
    yield "moments", lambda: _check_moments(few, draws())
    yield "inverse", lambda: _check_inverse(few)
    yield "probability integral transform", lambda: _check_integral_transform(few, draws(), rng)
    yield "density", lambda: _check_density(few, draws())
    yield "expectations", lambda: _expectations(batch, chosen(), rng, size)
    yield "calibration error", lambda: _calibration_error(batch, chosen(), rng)


def _expectations(batch: Predictions, kernel: Kernel, rng: np.random.Generator, size: int) -> str | None:
    if not isinstance(kernel, Tensor):
        return "the kernel is not a tensor product"
    simulated(kernel.targets, Sample.of(batch, rng, _FEW, size))
    return None


def _calibration_error(batch: Predictions, kernel: Kernel, rng: np.random.Generator) -> None:
    some = spread(batch, 50)
    y = some.sample(rng)
    proven = kernel.guarantees(some).positive_definite
    draws = some.kind == "draws"
    for estimator in ("unbiased", "biased", "block"):
        # The choice of atoms takes most of the time: it is made once.
        expectations = "auto" if estimator == "unbiased" else FIXED
        value = float(skce(y, some, kernel=kernel, estimator=estimator, expectations=expectations))
        if not np.isfinite(value):
            raise LawBrokenError(f"the {estimator} SKCE is {value}")
        if estimator == "biased" and proven and not draws and value < -1e-12:
            raise LawBrokenError(f"the biased SKCE is negative, {value:.3g}, with {kernel!r}")


# -- answers of a family -------------------------------------------------------------------------------


def _ask(batch: Any, method: str, *arguments: NDArray | float) -> NDArray | None:
    """Return the answer of a method in NumPy, or None where the batch does not support it."""
    if not batch.supports(method):
        return None
    given = [_in_library(batch, x) if isinstance(x, np.ndarray) else x for x in arguments]
    return to_numpy(getattr(batch, method)(*given)).astype(np.float64)


def _in_library(batch: Predictions, x: NDArray) -> Array:
    """Convert numbers to the library and precision of the predictions; keep labels and objects."""
    like = batch.like
    if x.dtype.kind not in "biuf" or not is_array(like) or str(like.dtype) == "object":
        return x
    dtype = like.dtype if x.dtype.kind == "f" else None
    return asarray(x, xp=namespace(like), device=device_of(like), dtype=dtype)


def _levels_of(batch: Predictions) -> NDArray:
    if isinstance(batch, Quantiles):
        return np.linspace(float(batch.levels[0]), float(batch.levels[-1]), 9)
    return np.array([0.001, 0.05, 0.1, 0.25, 0.4, 0.5, 0.7, 0.9, 0.99, 0.999])


def _varies(draws: NDArray) -> NDArray:
    """True, by prediction and coordinate, if draws varied often enough to estimate their spread."""
    return (draws != np.median(draws, axis=0)).sum(axis=0) >= 30


# -- sampling ------------------------------------------------------------------------------------------


def _check_sampling(batch: Predictions) -> None:
    n, event = len(batch), batch.event_shape
    first, again, other = (to_numpy(batch.sample(seed, size=64)) for seed in (1, 1, 2))
    for drawn, shape, call in (
        (batch.sample(1), (n, *event), "sample(1)"),
        (first, (64, n, *event), "sample(1, size=64)"),
    ):
        if tuple(drawn.shape) != shape:
            raise LawBrokenError(f"{call} has shape {tuple(drawn.shape)}, expected {shape}")
    require(first == again, lambda at: f"seed 1 gave {first[at]} and then {again[at]} at index {at}")
    if first.dtype.kind == "f" and not np.isfinite(first).all():
        raise LawBrokenError("sample gave values that are not finite")
    varies = first.dtype.kind in "biuf" and (first != first[:1]).any()
    if varies and (first == other).all():
        raise LawBrokenError("seeds 1 and 2 gave the same draws: the given generator must be used")


def _check_independence(draws: NDArray) -> str | None:
    if draws.dtype.kind not in "biuf":
        return "targets are not numbers"
    size, n = draws.shape[:2]
    ranks = stats.rankdata(draws.reshape(size, n, -1), axis=0)
    resolved = _varies(draws).reshape(n, -1)
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


# -- indexing and targets ------------------------------------------------------------------------------


def _check_indexing(batch: Predictions, rng: np.random.Generator) -> None:
    """Parts of a batch answer for their rows as the whole batch does."""
    n = len(batch)
    if n < 2:
        raise LawBrokenError(f"at least two predictions are needed for a check, found {n}")
    hash(batch)  # memos hold batches by identity: eq=False
    y = to_numpy(batch.sample(rng))
    whole = _answers(batch, y)
    every_other = np.arange(n) % 2 == 0
    every_other[-1] = True
    some = (
        slice(None),
        slice(1, None),
        slice(None, None, -1),
        [n - 1, 0, 0],
        np.arange(n)[::-2],
        every_other,
    )
    for index in (*some, n // 2, -1):
        rows = np.atleast_1d(np.arange(n)[index])
        part = batch[index]
        if len(part) != len(rows) or type(part) is not type(batch):
            raise LawBrokenError(
                f"[{index}] of {batch!r} gave {part!r}, expected {len(rows)} predictions of the same type"
            )
        if part.event_shape != batch.event_shape:
            raise LawBrokenError(
                f"[{index}] changed event_shape from {batch.event_shape} to {part.event_shape}"
            )
        answers = _answers(part, y[rows])
        if answers.keys() != whole.keys():
            raise LawBrokenError(f"[{index}] supports {sorted(answers)}, but the whole batch {sorted(whole)}")
        for name, value in answers.items():
            expected = whole[name][rows] if whole[name].ndim else whole[name]
            scale = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
            tolerance = max(1e-9, 1e3 * rounding(batch)) * scale
            other = f"{name} of these rows of the batch"
            require_close(value, expected, tolerance, f"{name} of [{index}]", other)
    _check_draws_of_rows(batch, np.arange(n)[::-1], rng)
    if [len(one) for one in batch] != [1] * n:
        raise LawBrokenError("iteration does not give batches of one prediction")


def _answers(batch: Predictions, y: NDArray) -> dict[str, NDArray]:
    answers = {m: _ask(batch, m) for m in ("mean", "variance", "interquartile_range", "class_probs")}
    answers |= {method: _ask(batch, method, y) for method in ("log_prob", "cdf")}
    answers["quantile"] = _ask(batch, "quantile", float(_levels_of(batch)[1]))
    return {name: value for name, value in answers.items() if value is not None}


def _check_draws_of_rows(
    batch: Predictions, order: NDArray, rng: np.random.Generator, size: int = 1000
) -> None:
    """Rows in another order are still drawn from their own distributions."""
    whole, part = to_numpy(batch.sample(rng, size)), to_numpy(batch[order].sample(rng, size))
    if whole.dtype.kind not in "biuf":
        return
    whole, part = whole[:, order].astype(np.float64), part.astype(np.float64)
    spread_of_means = np.sqrt((whole.var(axis=0) + part.var(axis=0)) / size)
    # A value that was drawn once might as well not have been drawn.
    largest = np.maximum(*(np.abs(x - np.median(x, axis=0)).max(axis=0) for x in (whole, part)))
    slack = (1e2 * rounding(batch) + 4.0 * size * float(np.finfo(np.float64).eps)) * np.abs(whole).max(axis=0)
    allowed = _STANDARD_ERRORS * spread_of_means + 10.0 * largest / size + slack
    what = f"the mean of {size} draws of rows reversed"
    require_close(part.mean(axis=0), whole.mean(axis=0), allowed, what, "of the rows")


def _check_target_rules(batch: Predictions, rng: np.random.Generator) -> None:
    """The batch accepts targets that were sampled and refuses invalid ones."""
    y = batch.sample(rng)
    checked = batch.check_targets(y)
    if checked.shape[0] != len(batch):
        raise LawBrokenError(f"check_targets gave {checked.shape[0]} targets for {len(batch)} predictions")
    values = to_numpy(y)
    invalid = {"one target too few": values[:-1]}
    if values.dtype.kind in "biuf":
        invalid[f"targets of shape {values[:, None].shape}"] = values[:, None]
        invalid["a target that is not a number"] = np.concatenate([0.0 * values[:1] + np.nan, values[1:]])
    for what, targets in invalid.items():
        try:
            batch.check_targets(_in_library(batch, targets))
        except (TypeError, ValueError):
            continue
        raise LawBrokenError(f"check_targets took {what}")


# -- moments, quantiles and the distribution function ----------------------------------------------------


def _check_moments(few: Predictions, draws: NDArray) -> str | None:
    mean, variance = _ask(few, "mean"), _ask(few, "variance")
    if mean is None and variance is None:
        return "there is neither mean nor variance"
    size, x = len(draws), draws.astype(np.float64)
    drawn = x.mean(axis=0)
    slack = (1e2 * rounding(few) + 4.0 * size * float(np.finfo(np.float64).eps)) * np.abs(x).max(axis=0)
    if mean is not None:
        stated = np.zeros_like(drawn) if variance is None else np.where(np.isfinite(variance), variance, 0.0)
        allowed = _STANDARD_ERRORS * np.sqrt(np.maximum(stated, x.var(axis=0)) / size) + slack
        compared = np.where(np.isfinite(mean), mean, drawn)
        require_close(compared, drawn, allowed, "the mean", f"the mean of {size} draws")
    if variance is not None:
        squares = (x - drawn) ** 2
        expected = squares.mean(axis=0)
        allowed = _STANDARD_ERRORS * squares.std(axis=0) / np.sqrt(size) + slack**2 + 1e-12 * expected
        # Of rare counts nothing may have been drawn yet; a density has no such excuse.
        exists = np.isfinite(variance) & (_varies(x) | few.continuous)
        compared = np.where(exists, variance, expected)
        require_close(compared, expected, allowed, "the variance", f"the variance of {size} draws")
    return None


def _check_inverse(few: Predictions) -> str | None:
    levels = np.tile(_levels_of(few)[:, None], (1, len(few)))
    if few.event_shape != ():
        return "targets are vectors"
    quantiles = _ask(few, "quantile", levels)
    if quantiles is None or not few.supports("cdf"):
        return "there is no quantile, or no cdf"
    if quantiles.shape != levels.shape:
        raise LawBrokenError(f"quantile has shape {quantiles.shape} for levels of shape {levels.shape}")
    require(
        np.diff(quantiles, axis=0) >= 0,
        lambda at: (
            f"quantile falls between levels {levels[at]:g} and {levels[at[0] + 1, 0]:g} of prediction {at[1]}"
        ),
    )
    # A step to either side of the quantile allows for its rounding, and finds both ends of a jump of the cdf.
    width = quantiles[-1] - quantiles[0]
    accuracy = max(1e-9, 1e2 * rounding(few))
    step = accuracy * (np.abs(quantiles) + np.where(np.isfinite(width), width, 0.0)) + 1e-300
    below, above = (cast("NDArray", _ask(few, "cdf", quantiles + side)) for side in (-step, step))
    tolerance = max(1e-6, 1e2 * rounding(few))
    require(
        (below <= levels + tolerance) & (above >= levels - tolerance),
        lambda at: (
            f"quantile({levels[at]:g}) of prediction {at[1]} is {quantiles[at]:.10g}, but cdf goes from "
            f"{below[at]:.10g} to {above[at]:.10g} there"
        ),
    )
    return None


def _check_integral_transform(few: Predictions, draws: NDArray, rng: np.random.Generator) -> str | None:
    if few.event_shape != () or draws.dtype.kind not in "biuf":
        return "targets are not scalar numbers"
    y = draws.astype(to_numpy(_in_library(few, np.zeros(1))).dtype)
    at = _ask(few, "cdf", y)
    if at is None:
        return "there is no cdf"
    # A step that no library rounds away, as some do with subnormal numbers.
    step = (4.0 * rounding(few) * np.abs(y) + 1e-30).astype(y.dtype)
    before = cast("NDArray", _ask(few, "cdf", y - step))
    slack = 1e3 * rounding(few)
    require(
        (before >= -slack) & (at >= before - slack) & (at <= 1.0 + slack),
        lambda i: (
            f"cdf of prediction {i[1]} goes from {before[i]} to {at[i]} at {y[i]}: it must rise within [0, 1]"
        ),
    )
    uniform = np.sort(before + rng.random(y.shape) * (at - before), axis=0)
    size = len(uniform)
    # A cdf of Quantiles is not known outside its levels.
    low, high = (float(e) for e in (_levels_of(few)[[0, -1]] if isinstance(few, Quantiles) else (0.0, 1.0)))
    inside = (uniform > low + slack) & (uniform < high - slack)
    steps = np.arange(1, size + 1)[:, None] / size
    distance = np.where(inside, np.maximum(steps - uniform, uniform - (steps - 1.0 / size)), 0.0).max(axis=0)
    pvalue = cast("NDArray", stats.kstwo.sf(distance, size))
    require(
        pvalue >= _KS_LEVEL,
        lambda i: (
            f"cdf at {size} draws of prediction {i[0]} is not uniform: Kolmogorov-Smirnov distance "
            f"{distance[i]:.3g}, p = {pvalue[i]:.2g}"
        ),
    )
    return None


# -- densities and probabilities -------------------------------------------------------------------------


def _check_density(few: Predictions, draws: NDArray) -> str | None:
    """Integrate `log_prob` of scalars, or compare it with frequencies where it is a probability."""
    if not few.supports("log_prob"):
        return "there is no log_prob"
    if not few.continuous:
        return _check_frequencies(few, draws)
    if few.event_shape != ():
        return "densities of vectors are not integrated"
    return _check_integral(few, draws)


def _check_integral(few: Predictions, draws: NDArray) -> str | None:
    scores = np.linspace(-3.75, 3.75, 31)  # normal scores of the levels between which a density is integrated
    levels = np.tile(special.ndtr(scores)[:, None], (1, len(few)))
    edges = _ask(few, "quantile", levels)
    ends = _ask(few, "quantile", np.array([0.0, 1.0])[:, None] + 0.0 * levels[:2])
    if edges is None:
        edges = np.quantile(draws.astype(np.float64), special.ndtr(scores), axis=0)
    if ends is None or np.isnan(ends).any():
        ends = np.array([[-np.inf], [np.inf]]) + 0.0 * edges[:2]
    usable = (np.diff(edges, axis=0) > 1e-9 * np.abs(edges).max(axis=0)).all(axis=0)
    if not usable.any():
        return "the distributions are too concentrated to integrate a density"

    def density(x: NDArray) -> NDArray:
        log_density = cast("NDArray", _ask(few, "log_prob", x))
        if log_density.shape != x.shape:
            raise LawBrokenError(f"log_prob has shape {log_density.shape} for targets of shape {x.shape}")
        return np.exp(log_density)

    inner = np.stack([_integrate(density, low, high) for low, high in pairwise(edges)])
    width = edges[-1] - edges[0]
    tails = (
        np.where(
            np.isfinite(end), _integrate(density, edge, end, width), _integrate_tail(density, edge, step)
        )
        for edge, end, step in ((edges[0], ends[0], -width), (edges[-1], ends[1], width))
    )
    total = np.where(usable, inner.sum(axis=0) + sum(tails), 1.0)
    one = np.ones(len(few))
    require_close(total, one, _DENSITY_ERROR, "the integral of the density", "probability")
    cdf = _ask(few, "cdf", edges)
    if cdf is not None:
        expected = np.diff(cdf, axis=0)
        what = "the integral of the density between two quantiles"
        require_close(np.where(usable, inner, expected), expected, _DENSITY_ERROR, what, "that of cdf")
    return None


def _integrate(
    density: Callable[[NDArray], NDArray], a: NDArray, b: NDArray, otherwise: NDArray | float = 1.0
) -> NDArray:
    """Integrate between a and b by tanh-sinh quadrature: a density may be infinite at either end.

    (Takahasi, Mori, 1974.) Where b is infinite the result, over `otherwise`, has no meaning.
    """
    t = np.linspace(-3.6, 3.6, 97)
    from_end = 1.0 / (1.0 + np.exp(np.pi * np.sinh(np.abs(t))))  # distance from the nearer end, of (0, 1)
    weights = np.pi * np.cosh(t) * from_end * (1.0 - from_end) * (t[1] - t[0])
    b = np.where(np.isfinite(b), b, a + otherwise)
    share = np.where(t <= 0, from_end, -from_end)[:, None]
    x = np.where(share > 0, a, b) + share * (b - a)
    inside = (x > np.minimum(a, b)) & (x < np.maximum(a, b))
    values = np.where(inside, density(np.where(inside, x, 0.5 * (a + b))), 0.0)
    return (weights[:, None] * values).sum(axis=0) * np.abs(b - a)


def _integrate_tail(density: Callable[[NDArray], NDArray], edge: NDArray, step: NDArray) -> NDArray:
    """Integrate from an edge to infinity, in the direction of `step`, by exp-sinh quadrature."""
    t = np.linspace(-3.4, 3.4, 129)
    with np.errstate(over="ignore"):
        reach = np.exp(0.5 * np.pi * np.sinh(t))
        weights = 0.5 * np.pi * np.cosh(t) * reach * (t[1] - t[0])
    x = edge + reach[:, None] * step
    return (np.where(x == edge, 0.0, density(x)) * weights[:, None]).sum(axis=0) * np.abs(step)


def _check_frequencies(few: Predictions, draws: NDArray) -> str | None:
    size, n = draws.shape[:2]
    if draws.dtype.kind == "O":
        return "objects are not counted"
    values, which = np.unique(draws.reshape(size * n, *few.event_shape), axis=0, return_inverse=True)
    if len(values) > _MOST_VALUES:
        return f"more than {_MOST_VALUES} different values were drawn"
    probability = np.exp(cast("NDArray", _ask(few, "log_prob", np.repeat(values[:, None], n, axis=1))))
    cells = which.reshape(size, n) * n + np.arange(n)
    frequency = np.bincount(cells.ravel(), minlength=len(values) * n).reshape(len(values), n) / size
    total = probability.sum(axis=0)
    require(total <= 1.001, lambda at: f"probabilities of prediction {at[0]} sum to {total[at]:.6g}")
    allowed = 5.0 * np.sqrt(np.maximum(probability * (1.0 - probability), 0.0) / size) + 10.0 / size
    what = f"the frequency among {size} draws, by value and prediction,"
    require_close(frequency, probability, allowed, what, "exp(log_prob)")
    return None
