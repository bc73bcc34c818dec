"""Laws that kernels on targets, and kernels on predictions, obey."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, asarray, namespace, to_numpy
from wellcal.conformance.report import Check, LawBrokenError, require, require_close
from wellcal.conformance.sample import FIXED, Sample, as_seen, compare, matrix, pairings, rounding, row
from wellcal.expectations.decompose import Targets
from wellcal.expectations.on_predictions import prediction_kernel
from wellcal.kernels.base import Kernel
from wellcal.kernels.guarantees import Guarantees
from wellcal.predictions import Bernoulli, Categorical, Mixture, Predictions, Quantiles, Samples

# -- laws of kernels on targets --------------------------------------------------------------


def target_laws(kernel: Kernel, sample: Sample) -> Iterator[tuple[str, Check]]:
    """Laws of a kernel on targets."""
    known: list[NDArray] = []

    def gram() -> NDArray:
        if not known:
            known.append(matrix(kernel, sample.points, sample.points))
        return known[0]

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
    return to_numpy(form.tile(batch.ops, rows, rows)).astype(np.float64)


def prediction_laws(kernel: Kernel, sample: Sample) -> Iterator[tuple[str, Check]]:
    """Laws of a kernel on predictions."""
    batch = sample.batch
    known: list[NDArray] = []

    def gram() -> NDArray:
        if not known:
            known.append(prediction_matrix(kernel, batch))
        return known[0]

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
    diagonal = to_numpy(form.paired(batch.ops, rows, rows)).astype(np.float64)
    require_close(
        diagonal, np.diag(gram).copy(), tolerance, "a value for a prediction with itself", "that among all"
    )
