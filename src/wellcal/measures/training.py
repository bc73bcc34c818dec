"""Squared kernel calibration error as a loss: its value alone, its options, and predictions of 16 bits."""

from __future__ import annotations

from typing import Any, cast

from wellcal._arrays.checks import one_of
from wellcal._arrays.namespaces import Array, is_array, namespace
from wellcal.engines import choose_engine
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel
from wellcal.measures._skce import BlockSize, check_block_options, check_enough, estimate_blocks
from wellcal.predictions import Predictions
from wellcal.predictions.adapters import converted_argument
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


def widen_half(x: Any) -> Any:
    """Return a tensor of PyTorch or JAX of 16-bit numbers in 32 bits; anything else as it is.

    Examples
    --------
    >>> import torch
    >>> widen_half(torch.ones(1, dtype=torch.bfloat16)).dtype, widen_half(3.0)
    (torch.float32, 3.0)
    """
    if not is_array(x) or str(x.dtype).rpartition(".")[2] not in ("float16", "bfloat16"):
        return x
    xp = namespace(x)
    return xp.astype(x, xp.float32)


def wide_predictions(pred: object, name: str = "pred") -> Predictions:
    """Return `pred` as predictions whose parameters have at least 32 bits, with gradients.

    Arrays are widened before a family is made of them: its checks would refuse probabilities of 16 bits,
    whose sums miss one by more than they allow, and there is no Cholesky factor in 16 bits. Such
    probabilities are divided by their sum.
    """
    if isinstance(pred, tuple):
        return converted_argument(tuple(widen_half(part) for part in cast("tuple[Any, ...]", pred)), name)
    wide = widen_half(pred)
    if wide is not pred and wide.ndim == 2:
        wide = wide / wide.sum(1)[:, None]
    predictions = converted_argument(wide, name)
    halves: list[Any] = []
    predictions.map_arrays(lambda array: halves.append(widen_half(array) is not array) or array)
    return predictions.map_arrays(widen_half) if any(halves) else predictions


def check_training_options(estimator: str, block_size: BlockSize) -> None:
    """Options of losses and metrics: estimators whose mean over mini-batches is the SKCE."""
    one_of(
        estimator,
        "estimator",
        ("unbiased", "block"),
        or_else="(the biased estimate of few cases rewards predictions that are too certain)",
    )
    check_block_options(estimator, block_size, None)
