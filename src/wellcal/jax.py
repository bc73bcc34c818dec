"""Calibration in JAX: measures that compile, and a loss for training.

`skce`, `kce` and `ucme` are those of :mod:`wellcal`. After importing this module predictions may cross
``jax.jit``, ``jax.grad`` and ``jax.vmap`` as arguments; kernels, which are values that can be hashed, are
static arguments: ``jax.jit(skce, static_argnames=("kernel", "estimator", "block_size"))``.

Inside ``jit`` values cannot be looked at. Expectations without a closed form then have 64 nodes for each
prediction (or those of ``expectations=wc.Lowering(nodes=...)``), instead of as many as each one needs, and
``provenance["expectation_error"]`` is NaN: see :doc:`/training`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from wellcal._arrays.checks import numeric_array, real_number
from wellcal._arrays.namespaces import run_jax_hooks
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel
from wellcal.measures._kce import kce
from wellcal.measures._skce import BlockSize, skce
from wellcal.measures._ucme import ucme
from wellcal.measures.training import check_training_options, wide_predictions, widen_half
from wellcal.predictions.base import check_truth_first

__all__ = ["kce", "skce", "skce_loss", "ucme"]

run_jax_hooks()  # families become pytrees now, and not only when the first array is met


def skce_loss(
    y: object,
    pred: object,
    *,
    weight: float | jax.Array = 1.0,
    kernel: Kernel | None = None,
    estimator: str = "unbiased",
    block_size: BlockSize = None,
    expectations: str | Lowering = "auto",
) -> jax.Array:
    """Unbiased estimate of the squared kernel calibration error of a mini-batch, to be added to a loss.

    The functional form of :class:`wellcal.torch.SKCELoss`, whose documentation says what to expect of it.

    Parameters
    ----------
    y
        Observed targets.
    pred
        Predictions of JAX arrays, or anything that :func:`wellcal.as_predictions` understands.
    weight
        Factor of the estimate.
    kernel
        None chooses one for each mini-batch, with scales from its predictions and without gradients. To keep
        one for all of training, make it beforehand: ``wc.default_kernel(pred)``.
    estimator, block_size, expectations
        "unbiased" or "block"; the rest as in :func:`wellcal.skce`.

    Returns
    -------
    Array
        A scalar of at least 32 bits. Arithmetic is in double precision where JAX has it enabled and in
        single precision with compensated sums elsewhere, also for predictions in 16 bits.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, wellcal as wc
    >>> y = jnp.ones(4)
    >>> gradient = jax.jit(jax.grad(lambda mu: skce_loss(y, wc.Normal(mu, jnp.ones(4)))))(jnp.zeros(4))
    >>> bool((gradient < 0).all())
    True
    """
    check_training_options(estimator, block_size)
    check_truth_first(y)
    # A number of JAX's keeps its gradient, and may be traced; that of any other library is its value.
    factor: Any = numeric_array(weight, "weight") if isinstance(weight, jax.Array) else None
    if factor is None:
        factor = real_number(weight, "weight")
    elif factor.ndim != 0:
        raise TypeError(f"weight must be a number, found an array of shape {tuple(factor.shape)}")
    estimate = skce(
        widen_half(y),
        wide_predictions(pred),
        kernel=kernel,
        estimator=estimator,
        block_size=block_size,
        expectations=expectations,
    )
    if not isinstance(estimate.value, (float, jax.Array)):
        raise TypeError(f"pred must be made of JAX's arrays, found {type(estimate.value).__name__}")
    return factor * jnp.asarray(estimate.value)  # pyright: ignore[reportUnknownMemberType]  # JAX leaves it open
