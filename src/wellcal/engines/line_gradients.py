"""Features of normals on a line less those of targets, and their derivatives, by one kernel of Triton each.

A step of training with few cases takes as long as its kernels are many, whatever they do. Left to PyTorch,
these features and their derivatives are forty of them.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import Array, from_numpy
from wellcal.engines import triton_pairs
from wellcal.expectations.differences import OnALine
from wellcal.expectations.gaussian_features import NORM
from wellcal.expectations.tensor_features import features_by_steps, gradients_of

_ROWS = 16  # of cases
_MOST_FEATURES = 256  # which are in registers, for so many cases


def line_differences(line: OnALine) -> Array | None:
    """Features ``(n, M)``, whose gradients flow to locations and variances; None for too many of them."""
    grid = line.grid
    if grid.size > _MOST_FEATURES:
        return None
    numbers = np.concatenate([[grid.lengthscale, grid.origin[0], NORM * line.factor], grid.centres[0]])
    given = from_numpy(numbers, line.loc)
    return _function().apply(line.loc, line.variance, line.targets, given)


def _options(count: int) -> dict[str, int]:
    return {"ROWS": _ROWS, "BK": triton_pairs.power_of_two(count), "num_warps": 4}


@cache
def _function() -> Any:
    # No type can be given: the base class is PyTorch's, which is not imported for its sake.
    torch = sys.modules["torch"]

    class LineDifferences(torch.autograd.Function):
        """Features from locations and variances ``(n,)``; targets have no gradient."""

        @staticmethod
        def forward(ctx: Any, loc: Array, variance: Array, targets: Array, numbers: Array) -> Array:
            n, count = len(loc), len(numbers) - 3
            out = loc.new_empty((n, count))
            given = [array.contiguous() for array in (loc, variance, targets)]
            triton_pairs.start(
                "line_differences", -(-n // _ROWS), *given, numbers, out, n, count, **_options(count)
            )
            ctx.save_for_backward(loc, variance, numbers)
            return out

        @staticmethod
        def backward(ctx: Any, *outputs: Array) -> tuple[Any, ...]:
            loc, variance, numbers = ctx.saved_tensors
            n, count = len(loc), len(numbers) - 3
            if torch.is_grad_enabled():  # gradients that are to be differentiated again
                return (*_again(loc, variance, numbers, outputs[0]), None, None)
            by_loc, by_variance = (torch.empty(n, dtype=loc.dtype, device=loc.device) for _ in range(2))
            given = [array.contiguous() for array in (loc, variance, numbers, outputs[0])]
            triton_pairs.start(
                "line_slopes", -(-n // _ROWS), *given, by_loc, by_variance, n, count, **_options(count)
            )
            return by_loc, by_variance, None, None

    return LineDifferences


def _again(loc: Array, variance: Array, numbers: Array, output: Array) -> list[Array | None]:
    """Derivatives by locations and variances, by operations that PyTorch differentiates."""
    scale, origin, factor = (float(number) for number in numbers[:3])
    features = features_by_steps(loc[:, None] - origin, variance[:, None], numbers[3:], scale, factor)
    return gradients_of(features, (loc, variance), output)
