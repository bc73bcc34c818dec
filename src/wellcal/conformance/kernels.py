"""Laws that kernels obey."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellcal._array import Array, asarray, from_numpy, namespace, take_rows, to_numpy
from wellcal._ops import EPSILON, ops_for
from wellcal.adapters import as_predictions
from wellcal.conformance.report import Broken, Check, NDArray, Report, require, require_close, run
from wellcal.distances import prediction_kernel
from wellcal.expansion import Side, Targets, is_objects
from wellcal.kernels.base import Kernel, Scaled, Sum, Tensor, space_of
from wellcal.kernels.guarantees import Guarantees
from wellcal.kernels.matrix import values_matrix
from wellcal.kernels.targets import Joint
from wellcal.pairing import Notes, plan
from wellcal.predictions import Bernoulli, Categorical, Mixture, Predictions, Quantiles, Samples
from wellcal.predictions.base import as_generator
from wellcal.problem import prepare
from wellcal.quadrature import Lowering

_FEW = 6  # predictions that are compared with simulation
_BLOCK = 20  # draws that meet all of as many others: a cheap average, of which there are many
_STANDARD_ERRORS = 5.0
_FIXED = Lowering(nodes=64)  # the same atoms for the same prediction, whatever else is in the batch


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
    wellcal.conformance.report.ConformanceError: positive definiteness of the targets: the matrix of 40 points has ...
    """
    batch = as_predictions(predictions)
    subject = f"{kernel!r} with {type(batch).__name__}"
    return run(subject, _laws(kernel, Sample.of(batch, as_generator(rng), points, draws)))


def _laws(kernel: Kernel, sample: Sample) -> Iterator[tuple[str, Check]]:
    space = space_of(kernel)
    if space == "targets":
        yield from _target_laws(kernel, sample)
    elif space == "predictions":
        yield from _prediction_laws(kernel, sample)
    else:
        for part in _tensors(kernel):
            yield from _named("of the predictions", _prediction_laws(part.predictions, sample))
            yield from _named("of the targets", _target_laws(part.targets, sample))
        yield from _pair_laws(kernel, sample)


def _named(side: str, laws: Iterator[tuple[str, Check]]) -> Iterator[tuple[str, Check]]:
    return ((f"{law} {side}", check) for law, check in laws if law != "guarantees")


def _tensors(kernel: Kernel) -> list[Tensor]:
    if isinstance(kernel, Sum):
        return [part for k in kernel.kernels for part in _tensors(k)]
    if isinstance(kernel, Scaled):
        return _tensors(kernel.kernel)
    return [kernel] if isinstance(kernel, Tensor) else []


# -- where kernels are evaluated -------------------------------------------------------------


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
        few = spread(batch, _FEW)
        size = max(2, draws // _BLOCK) * _BLOCK
        targets = batch.sample(rng)
        scattered = to_numpy(few.sample(rng, -(-points // len(few))))
        flat = scattered.reshape(-1, *few.event_shape)[:points]
        owner = np.tile(np.arange(len(few)), len(scattered))[:points]
        seen = as_seen(few[owner], flat)
        return cls(batch, few, targets, to_numpy(few.sample(rng, size)), seen, rng)

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
    dtype = str(batch._like.dtype)
    return EPSILON if "64" in dtype or "object" in dtype else 2.0**-23


def as_seen(predictions: Predictions, targets: NDArray) -> Array:
    """Targets of matching predictions as kernels see them: numbers beside the predictions, labels or objects."""
    if isinstance(predictions, Quantiles):
        edges = np.concatenate([[0.0], predictions.levels, [1.0]])
        middles = 0.5 * (edges[1:] + edges[:-1])
        targets = middles[to_numpy(predictions.bins(targets))]  # only bins are compared
    if is_objects(targets):
        return targets
    return from_numpy(targets.astype(np.float64), predictions._like)


def _matrix(kernel: Kernel, x: Array, y: Array) -> NDArray:
    ops = ops_for(namespace() if is_objects(x) else namespace(x))
    return to_numpy(values_matrix(ops, kernel, x, y)).astype(np.float64)


def _rows(x: Array, i: int) -> Array:
    return take_rows(x, slice(i, i + 1))


def _pairing(kernel: Kernel, p: Side, q: Side, expectations: str | Lowering) -> tuple[NDArray, float]:
    """Pairings of all pairs, and the estimated error of numerical expectations."""
    notes = Notes()
    scheme = plan(kernel, [p, q], expectations=expectations, notes=notes, relative=True)
    (a, left), (b, right) = scheme.rows([(1.0, p)]), scheme.rows([(1.0, q)])
    owner = p.predictions if isinstance(p, Targets) else p
    value = to_numpy(scheme.form(left, right).tile(owner._ops, a, b)).astype(np.float64)
    return value, float(np.nan_to_num(notes.error))


# -- laws of kernels on targets --------------------------------------------------------------


def _target_laws(kernel: Kernel, sample: Sample) -> Iterator[tuple[str, Check]]:
    matrix: list[NDArray] = []

    def gram() -> NDArray:
        if not matrix:
            matrix.append(_matrix(kernel, sample.points, sample.points))
        return matrix[0]

    yield "pointwise", lambda: _pointwise(kernel, sample, gram())
    yield "finite values", lambda: _finite(gram(), "point")
    yield "symmetry", lambda: _symmetric(gram(), "point")
    yield "positive definiteness", lambda: _definite_on_targets(kernel, sample, gram())
    yield "point masses", lambda: _point_masses(kernel, sample)
    yield "linearity", lambda: _linear(kernel, sample)
    yield "simulation", lambda: simulated(kernel, sample)
    yield "guarantees", lambda: _guarantees(kernel, sample.batch)


def _pointwise(kernel: Kernel, sample: Sample, gram: NDArray) -> None:
    x, count = sample.points, int(sample.points.shape[0])
    if gram.shape != (count, count):
        raise Broken(f"{count} points and {count} points gave values of shape {gram.shape}")
    for i, j in ((0, count - 1), (count // 2, count // 3), (count - 1, count - 1)):
        alone = _matrix(kernel, _rows(x, i), _rows(x, j))[0, 0]
        if not (
            abs(alone - gram[i, j]) <= 1e-12 * abs(gram[i, j])
            or (alone != alone and gram[i, j] != gram[i, j])
        ):
            raise Broken(
                f"the value for points {i} and {j} is {gram[i, j]:.10g} among {count} points, "
                f"but {alone:.10g} for these two alone"
            )


def _finite(values: NDArray, what: str) -> None:
    require(np.isfinite(values), lambda at: f"the value for {what}s {at[0]} and {at[1]} is {values[at]}")


def _symmetric(values: NDArray, what: str) -> None:
    require_close(
        values,
        values.T,
        1e-12 * np.abs(values).max(),
        f"the value for two {what}s",
        "that for them exchanged",
    )


def _definite_on_targets(kernel: Kernel, sample: Sample, gram: NDArray) -> str | None:
    declared = kernel.guarantees(sample.batch).positive_definite
    paired, error = _pairing(kernel, sample.few, sample.few, _FIXED)
    reason = _definite(gram, f"{len(gram)} points", declared)
    # Errors of numerical expectations are harmless where both sides have the same atoms.
    return reason or _definite(paired, f"pairings of {len(paired)} predictions", declared)


def _definite(values: NDArray, what: str, declared: bool | None) -> str | None:
    if declared is False:
        return "guarantees say that the kernel is not positive definite"
    smallest = float(np.linalg.eigvalsh(0.5 * (values + values.T))[0])
    allowed = 1e-10 * len(values) * float(np.abs(values).max())
    if smallest >= -allowed:
        return None
    claim = ", though guarantees say that it is positive definite" if declared else ""
    raise Broken(
        f"the matrix of {what} has the eigenvalue {smallest:.3g}, and {-allowed:.3g} is allowed{claim}; an indefinite "
        "kernel gives no calibration error (if that is meant, let guarantees say positive_definite=False)"
    )


def _point_masses(kernel: Kernel, sample: Sample) -> str | None:
    few, rng = sample.few, sample.rng
    raw = few.sample(rng)
    checked = Targets(few.check_targets(raw), few)
    seen = as_seen(few, to_numpy(raw))
    expected = _matrix(kernel, seen, seen)
    tolerance = 1e-10 * np.abs(expected).max()
    found, _ = _pairing(kernel, checked, checked, "auto")
    require_close(found, expected, tolerance, "the pairing of two targets", "the value of the kernel")
    masses = _diracs(few, raw, seen)
    if masses is None:
        return None
    found, _ = _pairing(kernel, masses, masses, "auto")
    require_close(found, expected, tolerance, "the pairing of two point masses", "the value of the kernel")
    with_masses, _ = _pairing(kernel, few, masses, _FIXED)
    with_targets, _ = _pairing(kernel, few, checked, _FIXED)
    tolerance = max(1e-9, 1e2 * rounding(few)) * max(np.abs(with_targets).max(), np.abs(expected).max())
    require_close(with_masses, with_targets, tolerance, "the pairing with a point mass", "that with a target")
    return None


def _diracs(few: Predictions, raw: Array, seen: Array) -> Predictions | None:
    """Point masses at targets, as predictions, or None where no family has them."""
    if isinstance(few, Bernoulli):
        return Bernoulli(_as_floats(raw, few.probs))
    if isinstance(few, Categorical):
        one_hot = np.eye(few.probs.shape[1])[to_numpy(few.check_targets(raw))]
        return few._with(probs=_as_floats(one_hot, few.probs))
    if isinstance(few, Quantiles) or (isinstance(few, Mixture) and few.shares_labels):
        return None
    return Samples(seen[:, None, ...], kind="atoms")


def _as_floats(values: Array, like: Array) -> Array:
    return asarray(to_numpy(values).astype(np.float64), xp=namespace(like), dtype=like.dtype)


def _linear(kernel: Kernel, sample: Sample) -> str | None:
    few = sample.few
    if few._targets in ("bins", "objects"):
        return f"{type(few).__name__} of {few._targets} have no mixtures"
    other = few[np.arange(len(few))[::-1]]
    mixed = Mixture([few, other], [0.3, 0.7])
    found, _ = _pairing(kernel, mixed, few, _FIXED)
    expected = 0.3 * _pairing(kernel, few, few, _FIXED)[0] + 0.7 * _pairing(kernel, other, few, _FIXED)[0]
    tolerance = max(1e-9, 1e2 * rounding(few)) * np.abs(expected).max()
    require_close(
        found, expected, tolerance, "the pairing with a mixture", "the weighted sum over its components"
    )
    return None


def simulated(kernel: Kernel, sample: Sample) -> None:
    """Compare pairings with averages over draws."""
    few = sample.few
    found, error = _pairing(kernel, few, few, "auto")
    size = len(sample.drawn)
    for i in range(len(few)):
        for j in range(i, len(few)):
            # Two independent halves, so that a prediction is not compared with its own draws.
            half = size // 2
            x, y = (
                take_rows(sample.draws_of(i), slice(half)),
                take_rows(sample.draws_of(j), slice(half, None)),
            )
            blocks = np.stack([_matrix(kernel, take_rows(x, k), take_rows(y, k)) for k in _blocks(half)])
            means = blocks.mean(axis=(1, 2))
            standard_error = float(means.std(ddof=1)) / np.sqrt(len(means))
            # What happens less often than once in all draws has no standard error: the last term allows for it.
            allowed = _STANDARD_ERRORS * standard_error + 4.0 * error + 10.0 * np.abs(blocks).max() / half
            if not abs(found[i, j] - means.mean()) <= allowed:
                raise Broken(
                    f"the pairing of predictions {i} and {j} is {found[i, j]:.6g}, but {half} draws from each give "
                    f"{means.mean():.6g} +- {standard_error:.2g}"
                )


def _blocks(size: int) -> list[slice]:
    return [slice(start, start + _BLOCK) for start in range(0, size - _BLOCK + 1, _BLOCK)]


def _guarantees(kernel: Kernel, predictions: Predictions) -> None:
    found: Any = kernel.guarantees(predictions)
    if not isinstance(found, Guarantees):
        raise Broken(f"guarantees returned {found!r}")
    for name in ("positive_definite", "characteristic", "bounded"):
        if getattr(found, name) not in (True, False, None):
            raise Broken(f"guarantees say {name}={getattr(found, name)!r}: it must be True, False or None")


# -- laws of kernels on predictions ----------------------------------------------------------


def _prediction_matrix(kernel: Kernel, batch: Predictions) -> NDArray:
    form, rows = prediction_kernel(kernel, batch, expectations=_FIXED)
    return to_numpy(form.tile(batch._ops, rows, rows)).astype(np.float64)


def _prediction_laws(kernel: Kernel, sample: Sample) -> Iterator[tuple[str, Check]]:
    batch = sample.batch
    matrix: list[NDArray] = []

    def gram() -> NDArray:
        if not matrix:
            matrix.append(_prediction_matrix(kernel, batch))
        return matrix[0]

    yield "pointwise", lambda: _pointwise_on_predictions(kernel, batch, gram())
    yield "finite values", lambda: _finite(gram(), "prediction")
    yield "symmetry", lambda: _symmetric(gram(), "prediction")
    yield (
        "positive definiteness",
        lambda: _definite(gram(), f"{len(batch)} predictions", kernel.guarantees(batch).positive_definite),
    )
    yield "guarantees", lambda: _guarantees(kernel, batch)


def _pointwise_on_predictions(kernel: Kernel, batch: Predictions, gram: NDArray) -> None:
    n = len(batch)
    if gram.shape != (n, n):
        raise Broken(f"{n} predictions and {n} predictions gave values of shape {gram.shape}")
    some = np.unique(np.linspace(0, n - 1, 3).astype(int))
    alone = _prediction_matrix(kernel, batch[some])
    tolerance = 1e-9 * np.nan_to_num(np.abs(gram)).max()
    require_close(
        alone, gram[np.ix_(some, some)], tolerance, "a value among few predictions", "that among many"
    )
    form, rows = prediction_kernel(kernel, batch, expectations=_FIXED)
    diagonal = to_numpy(form.paired(batch._ops, rows, rows)).astype(np.float64)
    require_close(
        diagonal, np.diag(gram).copy(), tolerance, "a value for a prediction with itself", "that among all"
    )


# -- laws of kernels on pairs ----------------------------------------------------------------


def _pair_laws(kernel: Kernel, sample: Sample) -> Iterator[tuple[str, Check]]:
    matrix: list[NDArray] = []

    def h() -> NDArray:
        if not matrix:
            matrix.append(_h_matrix(kernel, sample.batch, sample.targets)[0])
        return matrix[0]

    yield "finite values", lambda: _finite(h(), "case")
    yield "symmetry", lambda: _symmetric(h(), "case")
    yield (
        "positive definiteness",
        lambda: _definite(
            h(), f"h between {len(sample.batch)} cases", kernel.guarantees(sample.batch).positive_definite
        ),
    )
    yield "simulation", lambda: _simulated_h(kernel, sample)
    yield "guarantees", lambda: _guarantees(kernel, sample.batch)


def _h_matrix(
    kernel: Kernel, batch: Predictions, targets: Array, expectations: str | Lowering = _FIXED
) -> tuple[NDArray, float]:
    problem = prepare(targets, batch, kernel, expectations=expectations)
    h = to_numpy(problem.tile(problem.rows, problem.rows)).astype(np.float64)
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
        sample.known[name] = _prediction_matrix(kernel.predictions, few)
    return sample.known[name][i, j] * _matrix(kernel.targets, y, z)


def _simulated_h(kernel: Kernel, sample: Sample) -> None:
    few, half = sample.few, len(sample.drawn) // 2
    raw = few.sample(sample.rng)
    seen = as_seen(few, to_numpy(raw))
    found, error = _h_matrix(kernel, few, raw, "auto")
    for i in range(len(few)):
        for j in range(i + 1, len(few)):
            x, y = (
                take_rows(sample.draws_of(i), slice(half)),
                take_rows(sample.draws_of(j), slice(half, None)),
            )
            a, b = _rows(seen, i), _rows(seen, j)
            fixed = _pair_values(kernel, i, a, j, b, sample)[0, 0]
            terms: list[float] = []
            largest = abs(fixed)
            for k in _blocks(half):
                z, w = take_rows(x, k), take_rows(y, k)
                both = _pair_values(kernel, i, z, j, w, sample)
                left = _pair_values(kernel, i, z, j, b, sample)
                right = _pair_values(kernel, i, a, j, w, sample)
                terms.append(float(both.mean() - left.mean() - right.mean() + fixed))
                largest = max(largest, *(float(np.abs(v).max()) for v in (both, left, right)))
            mean, standard_error = float(np.mean(terms)), float(np.std(terms, ddof=1)) / np.sqrt(len(terms))
            allowed = _STANDARD_ERRORS * standard_error + 4.0 * error + 40.0 * largest / half
            if not abs(found[i, j] - mean) <= allowed:
                raise Broken(
                    f"h between predictions {i} and {j} is {found[i, j]:.6g}, but {half} draws from each give "
                    f"{mean:.6g} +- {standard_error:.2g}"
                )
