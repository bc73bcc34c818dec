"""``pairing(k, P, Q)``: E k(Z, Z') for all pairs, from one rule for each elementary pair."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import plain_array
from wellcal._arrays.chunks import told_chunks
from wellcal._arrays.namespaces import Array, NDArray, has, is_array, is_numpy
from wellcal._arrays.ops import ops_for
from wellcal._arrays.rows import first_array, slice_rows
from wellcal.expectations.expansion import plan
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.signed_measures import Side, Targets
from wellcal.kernels.base import Kernel, check_kernel
from wellcal.predictions import Predictions
from wellcal.predictions.adapters import converted_argument
from wellcal.predictions.target_spaces import check_one_space


def pairing(kernel: Kernel, P: object, Q: object, *, expectations: str | Lowering = "auto") -> Array:
    """E k(Z, Z') for Z ~ P_i and Z' ~ Q_j, for all pairs.

    Parameters
    ----------
    kernel
        Kernel on targets.
    P
        n predictions.
    Q
        m predictions of targets like those of P, of any family; or an array of m such targets.
    expectations
        "auto", "closed" (refuse what has no closed form) or a :class:`wellcal.Lowering`.

    Returns
    -------
    array
        ``(n, m)``, in the library of the predictions and in float64.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.kernels import Gaussian
    >>> P = wc.Normal(np.zeros(2), np.ones(2))
    >>> wc.pairing(Gaussian(), P, np.array([0.0])).round(4)
    array([[0.7071],
           [0.7071]])
    """
    check_kernel(kernel, "kernel")
    left = converted_argument(P, "P")
    right: Side
    if _is_targets(Q):
        right = Targets(_check_targets(left, Q), left)
    else:
        right = converted_argument(Q, "Q")
        check_one_space([left, right], ["P", "Q"])
    scheme = plan(kernel, [left, right], expectations=expectations, relative=True)
    a, b = scheme.rows([(1.0, left)]), scheme.rows([(1.0, right)])
    form, ops = scheme.form(a, b), ops_for(left.xp)
    with np.errstate(over="ignore", under="ignore"):  # of an exponent: its exponential is zero
        if not is_numpy(left.xp):
            return form(ops, a, b)
        entries = first_array(b).shape[0] * form.cost.entries
        chunks = told_chunks(len(left), entries, what="predictions")
        out: NDArray | None = None  # filled in place: parts beside the whole would be twice the memory
        for some in chunks:
            part = form(ops, slice_rows(a, some), b)
            out = np.empty((len(left), *part.shape[1:]), part.dtype) if out is None else out
            out[some] = part
        return out


def _is_targets(Q: object) -> bool:
    return is_array(Q) or isinstance(Q, list) or has(Q, "__array__")


def _check_targets(predictions: Predictions, targets: Any) -> Array:
    """Any number of targets, checked against the family rather than row by row."""
    targets = cast("Any", targets) if isinstance(targets, list) else plain_array(targets, "Q")
    if is_array(targets) and targets.ndim == 0:
        raise ValueError("Q must be several targets or predictions, found a single value; give a list of it")
    count = targets.shape[0] if is_array(targets) else len(targets)
    if count == 0:
        raise ValueError("Q is empty: at least one target is needed")
    return predictions[np.zeros(count, dtype=int)].check_targets(targets, "Q")
