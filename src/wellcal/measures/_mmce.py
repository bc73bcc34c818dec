"""Maximum mean calibration error: the kernel calibration error of confidences."""

from __future__ import annotations

from dataclasses import replace

from wellcal.engines import Engine
from wellcal.kernels import Delta, ExpDistance, Kernel, TotalVariation
from wellcal.measures._confidence import confidence
from wellcal.measures._kce import kce
from wellcal.measures.estimate import Estimate, about_cases
from wellcal.predictions.alignment import per_case

LENGTHSCALE = 0.4
"""Of the Laplacian kernel on confidences.

Kumar, Sarawagi and Jain state a width of 0.2, by which their code means ``exp(-|r - r'| / (2 * 0.2))``.
"""


@about_cases
def mmce(
    y: object,
    pred: object,
    *,
    kernel: Kernel | None = None,
    weights: object = None,
    engine: str | Engine = "auto",
) -> Estimate:
    r"""Maximum mean calibration error: KCE of the most probable class.

    .. math:: \mathrm{MMCE}^2 = \frac{1}{n^2} \sum_{i,j} (c_i - r_i) (c_j - r_j)\, \exp(-|r_i - r_j| / 0.4)

    where :math:`r_i` is the largest probability of case i and :math:`c_i` is 1 where its class was observed.

    Parameters
    ----------
    y
        Observed classes.
    pred
        Predictions of classes, as for :func:`wellcal.confidence`.
    kernel
        Kernel on pairs of a Bernoulli prediction and its target, as for :func:`wellcal.kce`. None is the
        kernel above, ``0.5 * ExpDistance(TotalVariation(), lengthscale=0.4) @ Delta()``: under `Delta` both
        outcomes of a binary target count, hence the half.
    weights
        How much each case counts, as for :func:`wellcal.kce`.
    engine
        Name of an engine, or an engine.

    Returns
    -------
    Estimate
        The root of the biased estimate of the square, with its kernel.

    References
    ----------
    A. Kumar, S. Sarawagi, U. Jain (2018). Trainable calibration measures for neural networks from kernel
    mean embeddings. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(mmce([0, 1], np.array([[0.8, 0.2], [0.3, 0.7]]))), 6)
    0.236356
    """
    correct, top = confidence(y, pred)
    if kernel is None:
        kernel = 0.5 * (ExpDistance(TotalVariation(), lengthscale=LENGTHSCALE) @ Delta())
    counted = per_case(weights, "weights", y, pred)
    return replace(kce(correct, top, kernel=kernel, weights=counted, engine=engine), name="MMCE")
