"""The squared kernel calibration error of a mini-batch as a loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from wellcal._arrays.checks import one_of, real_number
from wellcal._arrays.schema import reading
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel
from wellcal.kernels.serialization import kernel_from_dict, kernel_to_dict
from wellcal.measures._skce import BlockSize
from wellcal.measures.training import (
    check_training_options,
    training_value,
    wide_predictions,
    widen_half,
)
from wellcal.predictions import Predictions
from wellcal.predictions.base import check_truth_first
from wellcal.problem.defaults import default_kernel
from wellcal.problem.problem import check_pair_kernel


class SKCELoss(nn.Module):
    """Unbiased estimate of the squared kernel calibration error of a mini-batch, to be added to a loss.

    ``loss = nll + SKCELoss(weight=10.0)(y, pred)`` trains for likelihood and calibration. The expected value
    over mini-batches is the SKCE of the model, so that small batches do not bias what is learned; a
    single value may be negative. On its own it is not a loss to train with: a model that always predicts the
    distribution of all targets is calibrated.

    Parameters
    ----------
    weight
        Factor of the estimate. SKCE lies between 0 and 2 for kernels that are at most 1, and is rather
        0.001 to 0.1 for a miscalibrated model: weights are of the order 1 to 100.
    kernel
        None chooses a kernel for each mini-batch, with scales from its predictions (and without gradients);
        "first" chooses it for the first mini-batch and keeps it; a kernel is used as it is. See Notes.
    estimator
        "unbiased", over all pairs of the mini-batch, or "block", over pairs within blocks.
    block_size
        For "block": as in :func:`wellcal.skce`.
    expectations
        As in :func:`wellcal.skce`. For families without closed form a :class:`wellcal.Lowering` of a fixed
        size is quicker than "auto".

    Notes
    -----
    No choice of the kernel was best where they were compared (documentation, "Training"): that of the first
    mini-batch helped least where SKCE helps, and harmed least where it harms. Scales that follow the
    predictions, which None takes, need no knowledge of the problem and fit at every stage of training. Those
    of the first mini-batch are scales of an untrained network: where they are far too small or too large,
    SKCE has no gradient to speak of. With None values are not on one scale along training: compare models on
    held-out data with one kernel, not by this loss.

    Kernel arithmetic is in double precision, also under ``torch.autocast``, which leaves that alone, and for
    predictions in 16 bits. Compute standard deviations and probabilities in 32 bits all the same
    (``.float()`` before ``softplus`` or ``softmax``): what 16 bits have lost does not come back.

    Cost: O(n^2) pairs of a mini-batch of n cases, or O(n block_size).

    Examples
    --------
    >>> import torch, wellcal as wc
    >>> mu = torch.zeros(4, requires_grad=True)
    >>> loss = SKCELoss(weight=2.0)(torch.ones(4), wc.Normal(mu, torch.ones(4)))
    >>> loss.backward()
    >>> bool((mu.grad < 0).all())
    True
    """

    def __init__(
        self,
        *,
        weight: float = 1.0,
        kernel: Kernel | str | None = None,
        estimator: str = "unbiased",
        block_size: BlockSize = None,
        expectations: str | Lowering = "auto",
    ) -> None:
        super().__init__()
        check_training_options(estimator, block_size)
        if isinstance(kernel, str):
            one_of(kernel, "kernel", ("first",), or_else="or a kernel, or None")
        elif kernel is not None:
            check_pair_kernel(kernel)
        self.weight = real_number(weight, "weight")
        self.kernel = kernel
        self.estimator = estimator
        self.block_size = block_size
        self.expectations = expectations
        self._first: Kernel | None = None

    def forward(self, y: object, pred: object) -> torch.Tensor:
        """Weighted SKCE of a mini-batch of at least two cases.

        Parameters
        ----------
        y
            Observed targets.
        pred
            Predictions of tensors, or anything that :func:`wellcal.as_predictions` understands: a tensor of
            probabilities, ``(mu, sigma)``, or a ``torch.distributions`` object.

        Returns
        -------
        Tensor
            A scalar of the precision of the predictions, and of 32 bits at least.
        """
        check_truth_first(y)
        predictions = wide_predictions(pred)
        like = predictions.like
        if not isinstance(like, torch.Tensor):
            raise TypeError(f"pred must be made of tensors, found {type(like).__name__}")
        if len(predictions) < 2:
            raise ValueError(
                "SKCELoss needs mini-batches of at least 2 cases, found 1; set drop_last=True in the "
                "DataLoader"
            )
        value = training_value(
            widen_half(y),
            predictions,
            kernel=self._kernel(predictions),
            estimator=self.estimator,
            block_size=self.block_size,
            expectations=self.expectations,
        )
        return (value if self.weight == 1.0 else self.weight * value).to(like.dtype)

    def _kernel(self, predictions: Predictions) -> Kernel | None:
        if not isinstance(self.kernel, str):
            return self.kernel
        if self._first is None:
            self._first = default_kernel(predictions, expectations=self.expectations)
        return self._first

    def get_extra_state(self) -> Any:
        """The kernel of the first mini-batch, so that ``state_dict`` carries it."""
        return None if self._first is None else kernel_to_dict(self._first)

    def set_extra_state(self, state: Any) -> None:
        """Take over what `get_extra_state` returned."""
        with reading("the state of an SKCELoss"):
            self._first = None if state is None else kernel_from_dict(state)

    def extra_repr(self) -> str:
        """Options, for the representation of a model."""
        block = f", block_size={self.block_size!r}" if self.estimator == "block" else ""
        kernel = "default of each mini-batch" if self.kernel is None else repr(self.kernel)
        return f"weight={self.weight:g}, kernel={kernel}, estimator={self.estimator!r}{block}"
