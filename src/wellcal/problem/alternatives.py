"""h as it is on average under another truth: targets drawn from Q_i where P_i was predicted.

By linearity ``E h_ij = k_P(P_i, P_j) <P_i - Q_i, P_j - Q_j>`` for i != j: the SKCE of an alternative needs no
simulation.
"""

from __future__ import annotations

import math

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.rows import Rows, slice_rows
from wellcal.expectations.bilinear import Form
from wellcal.expectations.expansion import plan
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.prediction_kernels import prediction_kernel
from wellcal.expectations.signed_measures import Side, SignedSum, Targets
from wellcal.kernels.algebra import Tensor
from wellcal.kernels.base import Kernel
from wellcal.predictions import Predictions
from wellcal.predictions.misspecification import Misspecified, as_atoms
from wellcal.problem.problem import expand


class OnAverage:
    """What a kernel sees of alternatives to predictions.

    Parameters
    ----------
    predictions
        What was predicted, in NumPy.
    kernel
        Kernel on pairs: a sum of products of kernels on predictions and on targets.
    expectations
        How expectations without a closed form are computed.

    Examples
    --------
    >>> import wellcal as wc
    >>> from wellcal.predictions.misspecification import misspecified
    >>> pred = wc.Normal(np.linspace(-1.0, 1.0, 30), np.ones(30))
    >>> seen = OnAverage(pred, wc.default_kernel(pred))
    >>> slight, strong = (seen.root(misspecified(pred, "spreads", ratio)) for ratio in (0.95, 0.7))
    >>> 0.0 < slight < strong
    True
    """

    def __init__(
        self, predictions: Predictions, kernel: Kernel, expectations: str | Lowering = "auto"
    ) -> None:
        self.n = len(predictions)
        self.expectations = expectations
        self.terms: list[tuple[float, NDArray, Kernel]] = []
        for factor, part in expand(kernel):
            if not isinstance(part, Tensor):
                raise TypeError(f"{part!r} does not separate predictions from targets")
            form, rows = prediction_kernel(part.predictions, predictions, expectations=expectations)
            on_predictions = _between(predictions, form, rows, rows)
            self.terms.append((float(factor), on_predictions, part.targets))
        self.predictions = predictions
        self.closed = all(_has_closed_form(kernel, predictions) for _, _, kernel in self.terms)

    def root(self, alternative: Misspecified) -> float:
        """KCE under an alternative: the root of the mean of E h over pairs of different cases."""
        return self.root_and_error(alternative)[0]

    def root_and_error(self, alternative: Misspecified) -> tuple[float, float]:
        """The same, and its standard error as a share of it, where these cases are a sample of very many.

        The mean over pairs is a U-statistic: four times the variance of its row means over the number of
        cases is its variance, and half of its relative error is that of the root.
        """
        alternative = self._comparable(alternative)
        measure: SignedSum = [(1.0, alternative.predicted), (-1.0, alternative.true)]
        matrix = self._matrix([alternative.predicted, alternative.true], measure, measure)
        rows = (matrix.sum(axis=1) - np.diagonal(matrix)) / (self.n - 1.0)
        mean = float(rows.mean())
        if not mean > 0.0:
            return 0.0, 0.0
        return math.sqrt(mean), float(np.std(rows, ddof=1)) / (mean * math.sqrt(self.n))

    def likeness(self, alternative: Misspecified, targets: NDArray) -> float:
        """How much observed deviations are like those of an alternative: inner product over its norm."""
        alternative = self._comparable(alternative)
        observed = Targets(alternative.index(targets), alternative.predicted)
        sides: list[Side] = [alternative.predicted, alternative.true, observed]
        seen: SignedSum = [(1.0, alternative.predicted), (-1.0, observed)]
        supposed: SignedSum = [(1.0, alternative.predicted), (-1.0, alternative.true)]
        inner = float(self._matrix(sides, seen, supposed).mean())
        norm = float(self._matrix(sides, supposed, supposed).mean())
        return inner / math.sqrt(norm) if norm > 0.0 else 0.0

    def _comparable(self, alternative: Misspecified) -> Misspecified:
        """The alternative by a few atoms for each case, where expectations have no closed form."""
        return alternative if self.closed else as_atoms(alternative)

    def _matrix(self, sides: list[Side], left: SignedSum, right: SignedSum) -> NDArray:
        out = np.zeros((self.n, self.n))
        for factor, on_predictions, kernel in self.terms:
            scheme = plan(kernel, sides, expectations=self.expectations)
            a, b = scheme.rows(left), scheme.rows(right)
            out += factor * on_predictions * _between(self.predictions, scheme.form(a, b), a, b)
        return out


def _has_closed_form(kernel: Kernel, predictions: Predictions) -> bool:
    try:
        plan(kernel, [predictions, predictions], expectations="closed")
    except ValueError:
        return False
    return True


def _between(predictions: Predictions, form: Form, a: Rows, b: Rows) -> NDArray:
    """A form between all rows of two batches."""
    n = len(predictions)
    chunks = in_chunks(n, n * form.cost.entries)
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([_tile(predictions, form, slice_rows(a, some), b) for some in chunks])


def _tile(predictions: Predictions, form: Form, a: Rows, b: Rows) -> NDArray:
    return np.asarray(to_numpy(form(predictions.ops, a, b)))
