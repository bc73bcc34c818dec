"""Expected features of normals on a line for tensors with gradients, and their derivatives in closed form.

A training step on a graphics card takes as long as its steps are many. Left to PyTorch, features and their
derivatives are fifty of them; here they are twenty.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from wellcal._arrays.namespaces import Array


def line_features(loc: Array, variance: Array, centres: Array, lengthscale: float, norm: float) -> Array:
    """``E norm exp(-(Z - c)^2 / l^2)`` of normals Z, ``(n, 1)`` each, at centres c ``(M,)``: ``(n, M)``.

    Examples
    --------
    >>> import torch
    >>> loc, variance = torch.zeros(1, 1, dtype=torch.float64), torch.full((1, 1), 1.5, dtype=torch.float64)
    >>> line_features(loc, variance, torch.tensor([0.0, 2.0], dtype=torch.float64), 1.0, 1.0)
    tensor([[0.5000, 0.1839]], dtype=torch.float64)
    """
    return _function().apply(loc, variance, centres, lengthscale, norm)


def features_by_steps(loc: Array, variance: Array, centres: Array, lengthscale: float, norm: float) -> Array:
    """The same by operations that PyTorch differentiates as often as it likes."""
    spread = 1.0 + 2.0 * variance / lengthscale**2
    return norm * (-(((loc - centres) / lengthscale) ** 2) / spread).exp() / spread.sqrt()


def gradients_of(value: Array, arrays: tuple[Array, ...], output: Array) -> list[Array | None]:
    """Gradients that can be differentiated again; None for arrays that have none."""
    needed = [a for a in arrays if a.requires_grad]
    found = iter(sys.modules["torch"].autograd.grad(value, needed, output, create_graph=True))
    return [next(found) if a.requires_grad else None for a in arrays]


@cache
def _function() -> Any:
    # No type can be given: the base class is PyTorch's, which is not imported for its sake.
    torch = sys.modules["torch"]

    class LineFeatures(torch.autograd.Function):
        """Features from locations and variances; with s the spread below and z = (m - c) / (l sqrt(s)).

        They are ``norm exp(-z^2) / sqrt(s)``. Logarithmic derivatives are ``-2 z / (l sqrt(s))`` by m, and
        ``(2 z^2 - 1) / (l^2 s)`` by the variance.
        """

        @staticmethod
        def forward(
            ctx: Any, loc: Array, variance: Array, centres: Array, lengthscale: float, norm: float
        ) -> Array:
            root = variance.mul(2.0 / lengthscale**2).add_(1.0).rsqrt_()
            z = (loc - centres).mul_(root).mul_(1.0 / lengthscale)
            features = (z * z).neg_().exp_().mul_(root * norm)
            ctx.save_for_backward(loc, variance, centres, root, z, features)
            ctx.numbers = lengthscale, norm
            return features

        @staticmethod
        def backward(ctx: Any, *outputs: Array) -> tuple[Any, ...]:
            loc, variance, centres, root, z, features = ctx.saved_tensors
            lengthscale, norm = ctx.numbers
            if torch.is_grad_enabled():  # gradients that are to be differentiated again
                again = features_by_steps(loc, variance, centres, lengthscale, norm)
                return (*gradients_of(again, (loc, variance), outputs[0]), None, None, None)
            weights = outputs[0] * features
            total = weights.sum(dim=1, keepdim=True)
            by_z = weights.mul_(z)
            by_loc = by_z.sum(dim=1, keepdim=True).mul_(root).mul_(-2.0 / lengthscale)
            by_square = by_z.mul_(z).sum(dim=1, keepdim=True)
            by_variance = by_square.mul_(2.0).sub_(total).mul_(root).mul_(root).div_(lengthscale**2)
            return by_loc, by_variance, None, None, None

    return LineFeatures
