"""Local discrepancies: how far predictions like a given one are from calibrated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wellcal._arrays.checks import positive_number
from wellcal._arrays.chunks import told_chunks
from wellcal._arrays.namespaces import Array, concat_rows, is_traced, namespace, to_numpy
from wellcal._arrays.ops import ops_for
from wellcal._arrays.progress import Listener, reported
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.rows import slice_rows
from wellcal._arrays.schema import Check, described, numbers, whole
from wellcal.engines import Engine, choose_engine
from wellcal.expectations.expansion import Notes, plan
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.prediction_kernels import prediction_kernel
from wellcal.expectations.signed_measures import Targets
from wellcal.kernels.algebra import Tensor
from wellcal.kernels.base import Kernel
from wellcal.measures.presentation import KERNEL, Presentable, Row
from wellcal.predictions import Predictions
from wellcal.predictions.adapters import converted_argument
from wellcal.predictions.base import check_inputs
from wellcal.predictions.batches import concatenate
from wellcal.predictions.serialization import predictions_from_dict, predictions_to_dict
from wellcal.problem.defaults import default_kernel
from wellcal.problem.locations import in_library_of
from wellcal.problem.problem import check_pair_kernel, outline

LARGEST = 8192
"""Cases whose n x n matrices are still stored: 512 MiB each."""


@dataclass(frozen=True, eq=False, repr=False)
class LocalDiscrepancy(Presentable):
    """Discrepancies at predictions.

    Attributes
    ----------
    values
        One for each prediction asked for, ``(m,)``, not negative.
    locations
        These predictions.
    regularisation
        The regularisation lambda that was used.
    n_samples
        Number of cases.
    kernel
        The kernel that was used.
    provenance
        How expectations were obtained.
    """

    values: Array
    locations: Predictions
    regularisation: float
    n_samples: int
    kernel: Kernel
    provenance: dict[str, Any]

    def __len__(self) -> int:
        return len(self.locations)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {**super().to_dict(), "locations": predictions_to_dict(self.locations)}

    def check_stored(self, name: str) -> None:
        self._check_lengths(name, "locations", len(self.locations), "values")

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of it."""
        return {
            "values": numbers(),
            "locations": predictions_from_dict,
            "regularisation": positive_number,
            "n_samples": whole(least=1),
            **KERNEL,
            "provenance": described({}),
        }

    def _headline(self) -> str:
        text = f"local discrepancy at {len(self)} predictions"
        if is_traced(self.values):
            return f"{text}  ({how_many(self.n_samples)})"
        found = to_numpy(self.values)
        how = f"{how_many(self.n_samples)}, regularisation {self.regularisation:.4g}"
        return f"{text}, {found.min():.4g} to {found.max():.4g}  ({how})"

    def _rows(self) -> list[Row]:
        return [("kernel", repr(self.kernel))]


@reported
def local_discrepancy(
    y: object,
    pred: object,
    locations: object = None,
    *,
    kernel: Kernel | None = None,
    regularisation: float | None = None,
    expectations: str | Lowering = "auto",
    progress: bool | Listener | None = None,
) -> LocalDiscrepancy:
    r"""Maximum conditional mean discrepancy (MCMD) at given predictions.

    .. math:: \mathrm{MCMD}(p) = \sup_{\|f\| \le 1} \big| \mathrm{E}(f(Y) | P_X = p) - \mathrm{E} f(Z) \big|,
              \quad Z \sim p,

    over the unit ball of the reproducing kernel Hilbert space of the kernel on targets. Where KCE is one
    number for a model, this says at which predictions it errs.

    Parameters
    ----------
    y
        Observed targets, one for each prediction.
    pred
        Predictions, as for :func:`wellcal.skce`.
    locations
        Predictions of the same family at which the discrepancy is wanted; None for those of all cases.
    kernel
        Tensor product of a kernel on predictions, by which cases are weighted, and a kernel on targets.
        None chooses one for the family, with scales from the predictions.
    regularisation
        Positive lambda of the ridge regression below; None is :math:`n^{-1/4}`.
    expectations, progress
        As for :func:`wellcal.skce`.

    Returns
    -------
    LocalDiscrepancy
        The estimates, differentiable.

    Notes
    -----
    The difference of conditional mean embeddings is estimated by ridge regression of the
    :math:`\delta_{y_i} - P_i` on the predictions, with weights
    :math:`w(p) = (K + n \lambda I)^{-1} k_P(p)` for the matrix K of :math:`k_P(P_i, P_j)`:

    .. math:: \widehat{\mathrm{MCMD}}(p)^2 = \sum_{i,j} w_i(p) w_j(p)
              \big\langle P_i - \delta_{y_i}, P_j - \delta_{y_j} \big\rangle_{k_Y}

    The distribution of Z given the prediction is known, so its expectations are exact at all cases, and both
    conditional embeddings are smoothed alike: a calibrated model has no discrepancy from smoothing. The
    estimate is biased upwards by noise, and towards zero by regularisation, far from all predictions most.

    There are no weights: it conditions on the prediction, which weights that depend on nothing else do not
    change.

    Cost: the matrices of all pairs are stored and one linear system is solved, O(n^3); more than 8192 cases
    are refused.

    References
    ----------
    J. Park, K. Muandet (2020). A measure-theoretic approach to kernel conditional mean embeddings. NeurIPS;
    consistent where lambda decreases to zero more slowly than :math:`n^{-1/2}`. Widmann, Lindsten,
    Zachariah (2021), section "Alternative approaches".

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.uniform(-2, 2, 300)
    >>> y = rng.normal(np.where(mu > 0, mu + 1, mu), 1.0)
    >>> where = wc.Normal(np.array([-1.5, 1.5]), np.ones(2))
    >>> found = local_discrepancy(y, wc.Normal(mu, np.ones(300)), where)
    >>> bool(found.values[1] > 3 * found.values[0])
    True
    """
    checked, predictions = check_inputs(y, pred)
    predictions.check_judged(checked)
    targets = Targets(checked, predictions)
    n = len(predictions)
    if n > LARGEST:
        raise ValueError(
            f"pred has {how_many(n)}, and local_discrepancy stores all pairs: at most {LARGEST}; take a "
            "subsample"
        )
    chosen = default_kernel(predictions, expectations=expectations) if kernel is None else kernel
    factors = check_pair_kernel(chosen)
    if not isinstance(factors, Tensor):
        raise TypeError(
            f"kernel must be one tensor product k_P @ k_Y here, found {chosen!r}: the kernel on predictions "
            "weights cases, the kernel on targets compares distributions"
        )
    ridge = n**-0.25 if regularisation is None else float(positive_number(regularisation, "regularisation"))
    where = (
        predictions
        if locations is None
        else in_library_of(predictions, converted_argument(locations, "locations"))
    )
    notes = Notes()
    engine = choose_engine("auto", outline(targets.values, predictions, chosen))
    weights = _weights(factors.predictions, predictions, where, n * ridge, engine, expectations, notes)
    scheme = plan(factors.targets, [predictions, targets], expectations=expectations, notes=notes)
    rows = scheme.rows([(1.0, predictions), (-1.0, targets)])
    gram = engine.rectangle(scheme.form(rows, rows), predictions.ops, rows, rows)
    xp = namespace(gram)
    squares = concat_rows(
        [
            xp.sum(weights[:, some] * (gram @ weights[:, some]), axis=0)
            for some in told_chunks(len(where), n, what="locations")
        ]
    )
    ops = ops_for(xp)
    # Rounding may leave a square below zero.
    values = ops.root(ops.where(squares > 0, squares, 0.0 * squares))
    return LocalDiscrepancy(values, where, ridge, n, chosen, notes.as_dict())


def _weights(
    kernel: Kernel,
    predictions: Predictions,
    where: Predictions,
    ridge: float,
    engine: Engine,
    expectations: str | Lowering,
    notes: Notes,
) -> Array:
    """``(K + ridge I)^-1 k(locations)``, ``(n, m)``."""
    n, ops = len(predictions), predictions.ops
    both = concatenate((predictions, where), ("pred", "locations"), "pred and locations")
    form, rows = prediction_kernel(kernel, both, expectations=expectations, notes=notes)
    own, other = slice_rows(rows, slice(0, n)), slice_rows(rows, slice(n, len(both)))
    matrix, right = (engine.rectangle(form, ops, own, side) for side in (own, other))
    return namespace(matrix).linalg.solve(matrix + ridge * _identity(matrix), right)


def _identity(like: Array) -> Array:
    xp = namespace(like)
    index = xp.cumulative_sum(xp.ones_like(like[:, 0]))
    return xp.astype(index[:, None] == index[None, :], like.dtype)
