"""Laws that kernels on targets, on predictions and on pairs of both obey."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from wellcal._arrays.checks import whole_number
from wellcal._arrays.namespaces import Array, NDArray, asarray, from_numpy, namespace, take_rows, to_numpy
from wellcal._arrays.ops import ops_for
from wellcal._arrays.seeds import as_generator
from wellcal.conformance.report import Check, LawBrokenError, Report, require, require_close, run
from wellcal.expectations.bilinear import matching
from wellcal.expectations.expansion import Notes, plan
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.prediction_kernels import prediction_kernel
from wellcal.expectations.signed_measures import Side, Targets, is_objects
from wellcal.kernels.algebra import Scaled, Sum, Tensor
from wellcal.kernels.base import Kernel, space_of
from wellcal.kernels.base import check_kernel as check_kernel_type
from wellcal.kernels.guarantees import Guarantees
from wellcal.kernels.matrix import values_matrix
from wellcal.kernels.targets import Joint
from wellcal.predictions import Bernoulli, Categorical, Mixture, Predictions, Quantiles, Samples
from wellcal.predictions.adapters import converted_argument
from wellcal.problem.problem import prepare

FEW = 6  # predictions that are compared with simulation
BLOCK = 20  # draws that meet as many others: each block gives one independent average
FIXED = Lowering(nodes=64)  # the same atoms for the same prediction, whatever else is in the batch


def check_kernel(
    kernel: Kernel,
    predictions: object,
    *,
    rng: int | np.random.Generator | None = 0,
    points: int = 40,
    draws: int = 2000,
) -> Report:
    """Check a kernel of your own on predictions like yours.

    Parameters
    ----------
    kernel
        A kernel on targets, on predictions, or on pairs of both (``k_P @ k_Y``, sums of these, and
        :class:`wellcal.kernels.Joint`). Of a tensor product the factors are checked too.
    predictions
        Predictions, or what :func:`wellcal.as_predictions` understands. Targets at which the kernel is
        evaluated are drawn from them.
    rng
        Seed or generator of these draws.
    points
        Points, and at most so many predictions, on which the matrix of the kernel is looked at.
    draws
        Draws from each of a few predictions, with which expectations are compared.

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
    The laws of a kernel on targets:

    pointwise
        A value depends on its two arguments only, not on what else is in the batch.
    finite values, symmetry
        k(x, y) is finite and equals k(y, x), to 1e-12 of the largest value.
    positive definiteness
        No eigenvalue of the matrix of n points, or of pairings of predictions, is below
        ``-1e-10 * n * max |k|``. A kernel whose ``guarantees`` say that positive definiteness is refuted
        is exempt.
    point masses
        The pairing of point masses is the value of the kernel.
    linearity
        The pairing with a mixture is the weighted sum of pairings with its components.
    simulation
        Pairings agree with averages over draws, within five standard errors and the error estimate of
        numerical expectations.
    guarantees
        ``guarantees`` answers.

    Kernels on predictions and on pairs obey the first four; for pairs these are laws of the function h
    that calibration errors are averages of, and "simulation" compares h with draws.

    Examples
    --------
    A kernel that is a function of the distance, with nothing but its formula:

    >>> from dataclasses import dataclass
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.kernels import Callable, ExpDistance, Radial, Wasserstein
    >>> @dataclass(frozen=True)
    ... class Cauchy(Radial):
    ...     lengthscale: float = 1.0
    ...
    ...     def radial(self, ops, squared):
    ...         return 1.0 / (1.0 + squared / self.lengthscale**2)
    >>> pred = wc.Normal(np.linspace(-1.0, 1.0, 20), np.linspace(0.5, 2.0, 20))
    >>> print(check_kernel(Cauchy(2.0), pred))
    Cauchy(lengthscale=2.0) with Normal: 8 laws hold
      holds: pointwise
      holds: finite values
      holds: symmetry
      holds: positive definiteness
      holds: point masses
      holds: linearity
      holds: simulation
      holds: guarantees

    A function that is no kernel, though it looks like one:

    >>> box = Callable(lambda x, y: float(abs(x - y) < 1.0), positive_definite=True)
    >>> check_kernel(ExpDistance(Wasserstein()) @ box, pred, draws=100)
    Traceback (most recent call last):
    wellcal.conformance.report.ConformanceError: positive definiteness of the targets: the matrix of 40 ...
    """
    check_kernel_type(kernel, "kernel")
    batch = converted_argument(predictions, "predictions")
    sizes = (
        whole_number(points, "points", least=2, most=10_000),
        whole_number(draws, "draws", least=2, most=10**7),
    )
    subject = f"{kernel!r} with {type(batch).__name__}"
    return run(subject, _laws(kernel, Sample.of(batch, as_generator(rng), *sizes)))


def _laws(kernel: Kernel, sample: Sample) -> Iterator[tuple[str, Check]]:
    space = space_of(kernel)
    if space == "targets":
        yield from target_laws(kernel, sample)
    elif space == "predictions":
        yield from prediction_laws(kernel, sample)
    else:
        for part in _tensors(kernel):
            yield from _named("of the predictions", prediction_laws(part.predictions, sample))
            yield from _named("of the targets", target_laws(part.targets, sample))
        yield from pair_laws(kernel, sample)


def _named(side: str, laws: Iterator[tuple[str, Check]]) -> Iterator[tuple[str, Check]]:
    return ((f"{law} {side}", check) for law, check in laws if law != "guarantees")


def _tensors(kernel: Kernel) -> list[Tensor]:
    if isinstance(kernel, Sum):
        return [part for k in kernel.kernels for part in _tensors(k)]
    if isinstance(kernel, Scaled):
        return _tensors(kernel.kernel)
    return [kernel] if isinstance(kernel, Tensor) else []


# -- sample ----------------------------------------------------------------------------------


@dataclass
class Sample:
    """Predictions, and targets drawn from them."""

    batch: Predictions
    few: Predictions
    targets: Array  # one of each of the batch
    drawn: NDArray  # (S, few)
    points: Array
    rng: np.random.Generator
    known: dict[str, Any] = field(default_factory=lambda: {})

    @classmethod
    def of(cls, predictions: Predictions, rng: np.random.Generator, points: int, draws: int) -> Sample:
        """Draw from at most `points` of the predictions, and more often from a few."""
        batch = spread(predictions, points)
        few = spread(batch, FEW)
        size = max(2, draws // BLOCK) * BLOCK
        targets = batch.sample(rng)
        scattered = to_numpy(few.sample(rng, -(-points // len(few))))
        flat = scattered.reshape(-1, *few.event_shape)[:points]
        owner = np.tile(np.arange(len(few)), len(scattered))[:points]
        seen = as_seen(few[owner], flat)
        return cls(batch, few, targets, to_numpy(few.sample(rng, size)), seen, rng)

    def halves(self, i: int, j: int) -> Iterator[tuple[Array, Array]]:
        """Blocks of draws of predictions i and j, from different halves so that i may be j."""
        half = len(self.drawn) // 2
        for start in range(0, half - BLOCK + 1, BLOCK):
            first, second = slice(start, start + BLOCK), slice(half + start, half + start + BLOCK)
            yield take_rows(self.draws_of(i), first), take_rows(self.draws_of(j), second)

    def draws_of(self, i: int) -> Array:
        """Draws of one of the few predictions, as kernels see them."""
        if f"draws {i}" not in self.known:
            drawn = self.drawn[:, i]
            self.known[f"draws {i}"] = as_seen(self.few[np.full(len(drawn), i)], drawn)
        return self.known[f"draws {i}"]


def spread(predictions: Predictions, count: int) -> Predictions:
    """At most `count` of the predictions, evenly from the batch."""
    n = len(predictions)
    return predictions if n <= count else predictions[np.linspace(0, n - 1, count).astype(int)]


def rounding(batch: Predictions) -> float:
    """Relative rounding error of the predictions' precision."""
    dtype = str(batch.like.dtype)
    return float(np.finfo(np.float64).eps) if "64" in dtype or "object" in dtype else 2.0**-23


def as_seen(predictions: Predictions, targets: NDArray) -> Array:
    """Targets of matching predictions as kernels see them: numbers, or labels and objects as they are."""
    if isinstance(predictions, Quantiles):
        edges = np.concatenate([[0.0], predictions.levels, [1.0]])
        middles = 0.5 * (edges[1:] + edges[:-1])
        targets = middles[to_numpy(predictions.bins(targets))]  # only bins are compared
    if is_objects(targets):
        return targets
    return from_numpy(targets.astype(np.float64), predictions.like)


def matrix(kernel: Kernel, x: Array, y: Array) -> NDArray:
    """Values of a kernel between all pairs of points."""
    ops = ops_for(namespace() if is_objects(x) else namespace(x))
    return to_numpy(values_matrix(ops, kernel, x, y)).astype(np.float64)


def row(x: Array, i: int) -> Array:
    """Point i as a batch of one."""
    return take_rows(x, slice(i, i + 1))


def pairings(kernel: Kernel, p: Side, q: Side, expectations: str | Lowering) -> tuple[NDArray, float]:
    """Pairings of all pairs, and the estimated error of numerical expectations."""
    notes = Notes()
    scheme = plan(kernel, [p, q], expectations=expectations, notes=notes, relative=True)
    a, b = scheme.rows([(1.0, p)]), scheme.rows([(1.0, q)])
    owner = p.predictions if isinstance(p, Targets) else p
    value = to_numpy(scheme.form(a, b)(owner.ops, a, b)).astype(np.float64)
    return value, float(np.nan_to_num(notes.error))


def compare(found: float, averages: list[float], largest: float, error: float, what: str, draws: int) -> None:
    """Raise unless a number agrees with independent averages over draws.

    Five standard errors are allowed, four times the estimated `error` of numerical expectations, and what
    ten of `draws` contribute at most: a rare event may not have been seen.
    """
    mean, standard_error = float(np.mean(averages)), float(np.std(averages, ddof=1)) / np.sqrt(len(averages))
    allowed = 5.0 * standard_error + 4.0 * error + 10.0 * largest / draws
    if not abs(found - mean) <= allowed:
        raise LawBrokenError(
            f"{what} is {found:.6g}, but {draws} draws from each give {mean:.6g} +- {standard_error:.2g}"
        )


# -- laws of kernels on targets --------------------------------------------------------------


def target_laws(kernel: Kernel, sample: Sample) -> Iterator[tuple[str, Check]]:
    """Laws of a kernel on targets."""
    gram = cache(lambda: matrix(kernel, sample.points, sample.points))

    yield "pointwise", lambda: _pointwise(kernel, sample, gram())
    yield "finite values", lambda: finite(gram(), "point")
    yield "symmetry", lambda: symmetric(gram(), "point")
    yield "positive definiteness", lambda: _definite_on_targets(kernel, sample, gram())
    yield "point masses", lambda: _point_masses(kernel, sample)
    yield "linearity", lambda: _linear(kernel, sample)
    yield "simulation", lambda: simulated(kernel, sample)
    yield "guarantees", lambda: answers(kernel, sample.batch)


def _pointwise(kernel: Kernel, sample: Sample, gram: NDArray) -> None:
    x, count = sample.points, int(sample.points.shape[0])
    if gram.shape != (count, count):
        raise LawBrokenError(f"{count} points and {count} points gave values of shape {gram.shape}")
    tolerance = 1e-10 * np.abs(gram[np.isfinite(gram)]).max(initial=0.0)
    for i, j in ((0, count - 1), (count // 2, count // 3), (count - 1, count - 1)):
        alone = matrix(kernel, row(x, i), row(x, j))
        what = f"the value for points {i} and {j} alone"
        require_close(alone, gram[i : i + 1, j : j + 1], tolerance, what, f"that among {count} points")


def finite(values: NDArray, what: str) -> None:
    """Values are finite."""
    require(np.isfinite(values), lambda at: f"the value for {what}s {at[0]} and {at[1]} is {values[at]}")


def symmetric(values: NDArray, what: str) -> None:
    """A matrix equals its transpose."""
    require_close(
        values,
        values.T,
        1e-12 * np.abs(values).max(),
        f"the value for two {what}s",
        "that for them exchanged",
    )


def _definite_on_targets(kernel: Kernel, sample: Sample, gram: NDArray) -> str | None:
    declared = kernel.guarantees(sample.batch).positive_definite
    paired, _ = pairings(kernel, sample.few, sample.few, FIXED)
    reason = definite(gram, f"{len(gram)} points", declared)
    # Numerical expectations do no harm: with the same atoms on both sides they are those of a valid kernel.
    return reason or definite(paired, f"pairings of {len(paired)} predictions", declared)


def definite(values: NDArray, what: str, declared: bool | None) -> str | None:
    """A matrix has no negative eigenvalue, unless the kernel is declared to have some."""
    if declared is False:
        return "guarantees say that the kernel is not positive definite"
    smallest = float(np.linalg.eigvalsh(0.5 * (values + values.T))[0])
    allowed = 1e-10 * len(values) * float(np.abs(values).max())
    if smallest >= -allowed:
        return None
    claim = ", though guarantees say that it is positive definite" if declared else ""
    raise LawBrokenError(
        f"the matrix of {what} has the eigenvalue {smallest:.3g}, and {-allowed:.3g} is allowed{claim}; an "
        "indefinite kernel gives no calibration error (if it is meant, let guarantees say so)"
    )


def _point_masses(kernel: Kernel, sample: Sample) -> str | None:
    few, rng = sample.few, sample.rng
    raw = few.sample(rng)
    checked = Targets(few.check_targets(raw), few)
    seen = as_seen(few, to_numpy(raw))
    expected = matrix(kernel, seen, seen)
    tolerance = 1e-10 * np.abs(expected).max()
    found, _ = pairings(kernel, checked, checked, "auto")
    require_close(found, expected, tolerance, "the pairing of two targets", "the value of the kernel")
    masses = _diracs(few, raw, seen)
    if masses is None:
        return None
    found, _ = pairings(kernel, masses, masses, "auto")
    require_close(found, expected, tolerance, "the pairing of two point masses", "the value of the kernel")
    with_masses, _ = pairings(kernel, few, masses, FIXED)
    with_targets, _ = pairings(kernel, few, checked, FIXED)
    tolerance = max(1e-9, 1e2 * rounding(few)) * max(np.abs(with_targets).max(), np.abs(expected).max())
    require_close(with_masses, with_targets, tolerance, "the pairing with a point mass", "that with a target")
    return None


def _diracs(few: Predictions, raw: Array, seen: Array) -> Predictions | None:
    """Point masses at targets, as predictions, or None where no family has them."""
    if isinstance(few, Bernoulli):
        return Bernoulli(_as_floats(raw, few.probs))
    if isinstance(few, Categorical):
        one_hot = np.eye(few.probs.shape[1])[to_numpy(few.check_targets(raw))]
        return few.with_fields(probs=_as_floats(one_hot, few.probs))
    if isinstance(few, Quantiles) or (isinstance(few, Mixture) and few.shares_labels):
        return None
    return Samples(seen[:, None, ...], kind="atoms")


def _as_floats(values: Array, like: Array) -> Array:
    return asarray(to_numpy(values).astype(np.float64), xp=namespace(like), dtype=like.dtype)


def _linear(kernel: Kernel, sample: Sample) -> str | None:
    few = sample.few
    if few.target_kind in ("bins", "objects"):
        return f"{type(few).__name__} of {few.target_kind} have no mixtures"
    other = few[np.arange(len(few))[::-1]]
    mixed = Mixture([few, other], [0.3, 0.7])
    found, _ = pairings(kernel, mixed, few, FIXED)
    expected = 0.3 * pairings(kernel, few, few, FIXED)[0] + 0.7 * pairings(kernel, other, few, FIXED)[0]
    tolerance = max(1e-9, 1e2 * rounding(few)) * np.abs(expected).max()
    require_close(
        found, expected, tolerance, "the pairing with a mixture", "the weighted sum over its components"
    )
    return None


def simulated(kernel: Kernel, sample: Sample) -> None:
    """Compare pairings with averages over draws."""
    few = sample.few
    found, error = pairings(kernel, few, few, "auto")
    for i in range(len(few)):
        for j in range(i, len(few)):
            blocks = [matrix(kernel, x, y) for x, y in sample.halves(i, j)]
            largest = max(float(np.abs(block).max()) for block in blocks)
            what = f"the pairing of predictions {i} and {j}"
            averages = [float(block.mean()) for block in blocks]
            compare(found[i, j], averages, largest, error, what, len(sample.drawn) // 2)


def answers(kernel: Kernel, predictions: Predictions) -> None:
    """`guarantees` answers in its own words."""
    found: Any = kernel.guarantees(predictions)
    if not isinstance(found, Guarantees):
        raise LawBrokenError(f"guarantees returned {found!r}")
    for name in ("positive_definite", "characteristic", "bounded"):
        if getattr(found, name) not in (True, False, None):
            raise LawBrokenError(
                f"guarantees say {name}={getattr(found, name)!r}: it must be True, False or None"
            )


# -- laws of kernels on predictions ----------------------------------------------------------


def prediction_matrix(kernel: Kernel, batch: Predictions) -> NDArray:
    """Values of a kernel between all pairs of predictions."""
    form, rows = prediction_kernel(kernel, batch, expectations=FIXED)
    return to_numpy(form(batch.ops, rows, rows)).astype(np.float64)


def prediction_laws(kernel: Kernel, sample: Sample) -> Iterator[tuple[str, Check]]:
    """Laws of a kernel on predictions."""
    batch = sample.batch
    gram = cache(lambda: prediction_matrix(kernel, batch))

    yield "pointwise", lambda: _pointwise_on_predictions(kernel, batch, gram())
    yield "finite values", lambda: finite(gram(), "prediction")
    yield "symmetry", lambda: symmetric(gram(), "prediction")
    yield (
        "positive definiteness",
        lambda: definite(gram(), f"{len(batch)} predictions", kernel.guarantees(batch).positive_definite),
    )
    yield "guarantees", lambda: answers(kernel, batch)


def _pointwise_on_predictions(kernel: Kernel, batch: Predictions, gram: NDArray) -> None:
    n = len(batch)
    if gram.shape != (n, n):
        raise LawBrokenError(f"{n} predictions and {n} predictions gave values of shape {gram.shape}")
    some = np.unique(np.linspace(0, n - 1, 3).astype(int))
    alone = prediction_matrix(kernel, batch[some])
    tolerance = 1e-9 * np.nan_to_num(np.abs(gram)).max()
    require_close(
        alone, gram[np.ix_(some, some)], tolerance, "a value among few predictions", "that among many"
    )
    form, rows = prediction_kernel(kernel, batch, expectations=FIXED)
    diagonal = to_numpy(matching(form, batch.ops, rows, rows)).astype(np.float64)
    require_close(
        diagonal, np.diag(gram).copy(), tolerance, "a value for a prediction with itself", "that among all"
    )


# -- laws of kernels on pairs --------------------------------------------------------------


def pair_laws(kernel: Kernel, sample: Sample) -> Iterator[tuple[str, Check]]:
    """Laws of a kernel on pairs, as laws of the function h."""
    h = cache(lambda: _h_matrix(kernel, sample.batch, sample.targets)[0])

    yield "finite values", lambda: finite(h(), "case")
    yield "symmetry", lambda: symmetric(h(), "case")
    yield (
        "positive definiteness",
        lambda: definite(
            h(), f"h between {len(sample.batch)} cases", kernel.guarantees(sample.batch).positive_definite
        ),
    )
    yield "simulation", lambda: _simulated_h(kernel, sample)
    yield "guarantees", lambda: answers(kernel, sample.batch)


def _h_matrix(
    kernel: Kernel, batch: Predictions, targets: Array, expectations: str | Lowering = FIXED
) -> tuple[NDArray, float]:
    problem = prepare(targets, batch, kernel, expectations=expectations)
    h = to_numpy(problem.h(problem.rows, problem.rows)).astype(np.float64)
    return h, float(np.nan_to_num(problem.notes.error))


def _pair_values(kernel: Kernel, i: int, y: Array, j: int, z: Array, sample: Sample) -> NDArray:
    """k((P_i, y_s), (P_j, z_t)) for two of the few predictions and any number of targets."""
    if isinstance(kernel, Sum):
        parts = [_pair_values(k, i, y, j, z, sample) for k in kernel.kernels]
        return sum(parts[1:], start=parts[0])
    if isinstance(kernel, Scaled):
        return float(kernel.factor) * _pair_values(kernel.kernel, i, y, j, z, sample)
    few = sample.few
    if isinstance(kernel, Joint):
        left, right = few[np.full(y.shape[0], i)], few[np.full(z.shape[0], j)]
        return to_numpy(kernel.function(left, y, right, z)).astype(np.float64)
    assert isinstance(kernel, Tensor)
    name = f"prediction kernel {kernel.predictions!r}"
    if name not in sample.known:
        sample.known[name] = prediction_matrix(kernel.predictions, few)
    return sample.known[name][i, j] * matrix(kernel.targets, y, z)


def _simulated_h(kernel: Kernel, sample: Sample) -> None:
    few = sample.few
    raw = few.sample(sample.rng)
    seen = as_seen(few, to_numpy(raw))
    found, error = _h_matrix(kernel, few, raw, "auto")
    for i in range(len(few)):
        for j in range(i + 1, len(few)):
            a, b = row(seen, i), row(seen, j)
            fixed = _pair_values(kernel, i, a, j, b, sample)
            averages: list[float] = []
            largest = float(np.abs(fixed).max())
            for x, y in sample.halves(i, j):
                both = _pair_values(kernel, i, x, j, y, sample)
                left = _pair_values(kernel, i, x, j, b, sample)
                right = _pair_values(kernel, i, a, j, y, sample)
                averages.append(float(both.mean() - left.mean() - right.mean() + fixed.mean()))
                largest = max(largest, *(float(np.abs(v).max()) for v in (both, left, right)))
            what = f"h between predictions {i} and {j}"
            compare(found[i, j], averages, 4.0 * largest, error, what, len(sample.drawn) // 2)
