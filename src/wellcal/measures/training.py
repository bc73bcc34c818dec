"""The squared kernel calibration error as a loss: its value alone, and the options that a loss may have."""

from __future__ import annotations

from wellcal._arrays.checks import one_of
from wellcal._arrays.namespaces import Array
from wellcal.engines import choose_engine
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel
from wellcal.measures._skce import BlockSize, check_block_options, check_enough, estimate_blocks
from wellcal.predictions.base import check_inputs
from wellcal.problem.defaults import default_kernel
from wellcal.problem.problem import prepare_checked


def training_value(
    y: object,
    pred: object,
    *,
    kernel: Kernel | None,
    estimator: str,
    block_size: BlockSize,
    expectations: str | Lowering,
) -> Array:
    """The value of :func:`skce` alone: a step of training waits for no standard error.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> y, pred = np.array([0, 1, 1]), wc.Bernoulli(np.array([0.2, 0.7, 0.9]))
    >>> value = training_value(
    ...     y, pred, kernel=None, estimator="unbiased", block_size=None, expectations="auto"
    ... )
    >>> bool(abs(value - wc.skce(y, pred).value) < 1e-15)
    True
    """
    targets, predictions = check_inputs(y, pred)
    if kernel is None:
        kernel = default_kernel(predictions, expectations=expectations)
    problem = prepare_checked(targets, predictions, kernel, expectations=expectations)
    runner = choose_engine("auto", problem)
    if estimator == "block":
        return estimate_blocks(problem, runner, block_size, None).value
    check_enough(problem.n, 2, estimator)
    return runner.total(problem) / (0.5 * problem.n * (problem.n - 1))


def check_training_options(estimator: str, block_size: BlockSize) -> None:
    """Options of losses and metrics: estimators whose mean over mini-batches is the SKCE."""
    one_of(
        estimator,
        "estimator",
        ("unbiased", "block"),
        or_else="(the biased estimate of few cases rewards predictions that are too certain)",
    )
    check_block_options(estimator, block_size, None)
