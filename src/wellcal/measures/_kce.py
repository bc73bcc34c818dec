"""The kernel calibration error, the root of a squared one."""

from __future__ import annotations

import math
from typing import Any

from wellcal._arrays.namespaces import namespace
from wellcal._arrays.progress import Listener
from wellcal.engines import Engine
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel
from wellcal.measures._skce import skce
from wellcal.measures.estimate import Estimate


def kce(
    y: object,
    pred: object,
    *,
    kernel: Kernel | None = None,
    weights: object = None,
    expectations: str | Lowering = "auto",
    engine: str | Engine = "auto",
    precision: str = "auto",
    progress: bool | Listener | None = None,
) -> Estimate:
    """Kernel calibration error: the root of the biased estimate of its square.

    A negative biased estimate, which only draws can give, counts as zero.

    Parameters
    ----------
    y
        Observed targets, one for each prediction.
    pred
        Predictions: a batch such as ``wc.Normal(mu, sigma)``, or anything that
        :func:`wellcal.as_predictions` understands.
    kernel
        Kernel on pairs of prediction and target; None chooses one for the family, and reports it.
    weights
        How much each case counts, ``(n,)``.
    expectations, engine, precision, progress
        How it is computed: as for :func:`wellcal.skce`.

    Returns
    -------
    Estimate
        The root, with an interval that holds for calibrated models too.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> p = np.array([0.2, 0.7, 0.9, 0.4])
    >>> y = np.array([0, 1, 1, 0])
    >>> abs(float(wc.kce(y, wc.Bernoulli(p))) ** 2 - float(wc.skce(y, p, estimator="biased"))) < 1e-15
    True
    """
    square = skce(
        y,
        pred,
        kernel=kernel,
        estimator="biased",
        weights=weights,
        expectations=expectations,
        engine=engine,
        precision=precision,
        progress=progress,
    )
    value = square.value
    if isinstance(value, float):
        root: Any = math.sqrt(max(value, 0.0))
    else:
        xp = namespace(value)
        positive = value > 0
        root = xp.where(
            positive, xp.sqrt(xp.where(positive, value, xp.ones_like(value))), xp.zeros_like(value)
        )
    found = Estimate(root, None, "KCE", "biased", square.n_samples, square.kernel, square.provenance)
    if square.given is not None:
        found.with_given(*square.given)
    return found if square.cases is None else found.with_cases(square.cases)
