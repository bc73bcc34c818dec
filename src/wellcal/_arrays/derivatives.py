"""Arrays whose derivatives are right so many times, and refuse to be taken once more."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from wellcal._arrays.namespaces import Array, is_jax, is_torch, namespace


def right_derivatives(x: Array, times: int, of: str, behind: Array | None = None) -> Array:
    """`x` with so many derivatives that are right in what follows; one more raises an error.

    For expressions that agree with a function at a point in value and in so many derivatives, such as
    ``f(x0) + f'(x0) (x - x0)``: their further derivatives are numbers, and wrong.

    Parameters
    ----------
    x
        What is differentiated by, where it enters such an expression.
    times
        Derivatives that are right: 1 or more.
    of
        What it is, in words, for the error.
    behind
        The array by which derivatives are few, where it is not `x` itself.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> square = 9.0 + 6.0 * (right_derivatives(x, 1, "x") - 3.0)
    >>> (slope,) = torch.autograd.grad(square, x, create_graph=True)
    >>> torch.autograd.grad(slope, x)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    NotImplementedError: derivatives by x are known once only; ...
    """
    xp, source = namespace(x), x if behind is None else behind
    if is_torch(xp):
        wanted = x.requires_grad and source.requires_grad and sys.modules["torch"].is_grad_enabled()
        return _torch_function().apply(x, source, times, (times, of)) if wanted else x
    return _jax_function(times, of)(x, source) if is_jax(xp) else x


def _refuse(times: int, of: str) -> None:
    known = {1: "once", 2: "twice"}.get(times, f"{times} times")
    raise NotImplementedError(
        f"derivatives by {of} are known {known} only; take differences of the gradient over small steps "
        "for those beyond, or hold it constant where they are not meant (detach(), jax.lax.stop_gradient)"
    )


@cache
def _torch_function() -> Any:
    torch = sys.modules["torch"]

    class Limited(torch.autograd.Function):
        """A value or one of its derivatives, behind which is `source`, whether it depends on that or not."""

        @staticmethod
        def forward(ctx: Any, value: Array, source: Array, left: int, told: tuple[int, str]) -> Array:
            ctx.save_for_backward(source)
            ctx.left, ctx.told = left, told
            return value.view_as(value)

        @staticmethod
        def backward(ctx: Any, *outputs: Array) -> tuple[Any, ...]:
            if ctx.left == 0:
                _refuse(*ctx.told)
            (source,) = ctx.saved_tensors
            again = torch.is_grad_enabled()
            found = Limited.apply(outputs[0], source, ctx.left - 1, ctx.told) if again else outputs[0]
            return found, None, None, None

    return Limited


@cache
def _jax_function(times: int, of: str) -> Any:
    import jax

    numpy: Any = jax.numpy

    # A factor of one on tangents: transposition keeps nothing of a rule on tangents themselves.
    def factor(left: int) -> Any:
        @jax.custom_jvp
        def one(x: Array) -> Array:
            return numpy.ones((), x.dtype)

        @one.defjvp
        def slope(primals: Any, tangents: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
            if left == 0:
                _refuse(times, of)
            (x,), (moved,) = primals, tangents
            return one(x), 0.0 * numpy.sum(moved) * factor(left - 1)(x)

        return one

    @jax.custom_jvp
    def limited(x: Array, source: Array) -> Array:
        return x

    @limited.defjvp
    def slope(primals: Any, tangents: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        return limited(*primals), tangents[0] * factor(times - 1)(primals[1])

    return limited
