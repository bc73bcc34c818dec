"""Sums over pairs by the kernels of `triton_kernels.py`: how arrays are laid out for them, and started."""

from __future__ import annotations

import math
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from wellcal._arrays.namespaces import Array
from wellcal.engines.pair_terms import PairTerm

_LOG2_E = math.log2(math.e)
_PROGRAMS = 4096  # at least so many are started, so that all processors have work until the end
_LARGEST = 2.0**14  # of a feature in float16, scaled: whatever is small has digits below it
_CHUNK = 64  # features at a time, where they are many


@cache
def has_triton() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None


def kernels() -> Any:
    """The module of kernels, imported when the first one is started."""
    return import_module("wellcal.engines.triton_kernels")


@dataclass(frozen=True)
class Layout:
    """A term as kernels read it.

    Attributes
    ----------
    n, padded
        Number of cases, and with those that fill the last block.
    points
        ``(D, padded)``, scaled so that the kernel is a power of two.
    high, low
        Features ``(padded, M)`` in two halves, or ``(M, padded)`` and the points again.
    scale
        What sums are multiplied by.
    options
        Constants that kernels are compiled for.
    """

    n: int
    padded: int
    points: Array
    high: Array
    low: Array
    scale: float
    features: int
    options: dict[str, Any]

    @property
    def blocks(self) -> int:
        """Blocks of cases."""
        return self.padded // int(self.options["BLOCK"])


def block_of(term: PairTerm, double: bool) -> int:
    """Cases in a block: more where distances take long, to read less."""
    return 128 if term.points.shape[1] > 2 and not double else 64


def laid_out(term: PairTerm, double: bool, block: int | None = None) -> Layout:
    """A term for the kernels, in float64 or in halves."""
    torch = sys.modules["torch"]
    block = block_of(term, double) if block is None else block
    padded = -(-term.n // block) * block
    few = int(term.points.shape[1]) if term.points.shape[1] <= 2 else 0
    degree = term.degree
    kind = torch.float64 if double else torch.float32
    unit = _LOG2_E ** (1.0 / (degree * term.exponent))
    points = _padded((term.points * unit).mT.to(kind), few or _multiple(term.points.shape[1], 4), padded)
    options: dict[str, Any] = {
        "DEGREE": degree,
        "FEW": few,
        "ROOT": _root_of(term),
        # A number would come as one of 32 bits. Where it is not read, it is the same for all.
        "EXPONENT": 1.0 if term.exponent in (0.5, 1.0) else term.exponent,
        "SPLIT": not double,
        "BLOCK": block,
    }
    count = int(term.features.shape[1])
    if double:
        features = _padded(term.features.mT.to(kind), _multiple(count, 4), padded)
        options |= {"ONE": False, "BK": 16}
        return Layout(term.n, padded, points, features, points, term.factor, features.shape[0], options)
    chunk = power_of_two(count)
    one = chunk <= _CHUNK
    size = chunk if one else _multiple(count, _CHUNK)
    largest = float(term.features.abs().max())
    scale = 2.0 ** math.floor(math.log2(_LARGEST / largest)) if largest > 0.0 else 1.0
    wide = _padded(term.features * scale, padded, size)
    high = wide.half()
    low = (wide - high).half()
    options |= {"ONE": one, "BK": min(chunk, _CHUNK)}
    return Layout(term.n, padded, points, high, low, term.factor / scale**2, size, options)


def _root_of(term: PairTerm) -> int:
    """How kernels take a power of a distance: 1 for none, 2 for the root, 0 for others."""
    return {1.0: 1, 0.5: 2}.get(term.exponent, 0)


def power_of_two(count: int) -> int:
    """The least power of two from 16 on that is not below a count."""
    return max(16, 1 << (count - 1).bit_length())


def _multiple(count: int, of: int) -> int:
    return -(-count // of) * of


def _padded(values: Array, height: int, width: int) -> Array:
    """A contiguous array of that shape, with zeros behind what is there."""
    if tuple(values.shape) == (height, width):
        return values.contiguous()
    out = values.new_zeros((height, width))
    out[: values.shape[0], : values.shape[1]] = values
    return out


def _start(
    layout: Layout, pairs: int, grid: tuple[int, int], out: Array, part: tuple[int, int] = (0, 1)
) -> None:
    torch = sys.modules["torch"]
    wide = layout.options["BLOCK"] == 128 or not layout.options["SPLIT"]
    arguments = (layout.points, layout.high, layout.low, out, layout.padded, layout.points.shape[0])
    numbers = (layout.features, layout.blocks, grid[1], *part)
    with _on_device_of(torch, out):
        kernels().row_sums[grid](
            *arguments,
            *numbers,
            PAIRS=pairs,
            **layout.options,
            num_warps=8 if wide else 4,
            num_stages=3 if layout.options["ONE"] else 2,
        )


def _on_device_of(torch: Any, like: Array) -> Any:
    """Kernels start on the current device: here that of the arrays."""
    if like.device.type != "cuda" or like.device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(like.device)


def start(name: str, programs: int, like: Array, *arguments: Any, **options: Any) -> None:
    """Start a kernel by its name on the device of its first argument."""
    with _on_device_of(sys.modules["torch"], like):
        getattr(kernels(), name)[(programs,)](like, *arguments, **options)


def pair_sums(layout: Layout, *, rows: bool, part: tuple[int, int] = (0, 1)) -> tuple[Array, Array | None]:
    """Sum over pairs i < j, and where asked for the sum of each case over all others, ``(n,)``, in float64.

    Of the blocks of rows only every ``part[1]``-th is taken, from ``part[0]`` on: sums of all parts add up.
    """
    own_kernels = kernels()
    own = len(range(part[0], layout.blocks, part[1]))
    strips = min(layout.blocks, -(-_PROGRAMS // max(1, own)))
    out = layout.points.new_zeros((strips, layout.padded), dtype=sys.modules["torch"].float64)
    if own:
        _start(layout, own_kernels.SQUARE if rows else own_kernels.TRIANGLE, (own, strips), out, part)
    sums = layout.scale * out.sum(dim=0)
    return (0.5 * sums.sum(), sums[: layout.n]) if rows else (sums.sum(), None)


def couple_means(layout: Layout) -> Array:
    """Means of h over the pairs of blocks 0 and 1, 2 and 3, ...: one for each couple, in float64."""
    size, couples = int(layout.options["BLOCK"]), layout.blocks // 2
    out = layout.points.new_empty((couples, size), dtype=sys.modules["torch"].float64)
    _start(layout, kernels().COUPLES, (couples, 1), out)
    return layout.scale * out.sum(dim=1) / size**2


_VECTORS = {True: 16, False: 4}  # at a time, with tensor cores and without


def pair_products(layout: Layout, vectors: Array) -> Array:
    """``sum_{j != i} h_ij v_j`` of vectors ``(n, R)``, in float64."""
    torch = sys.modules["torch"]
    split = bool(layout.options["SPLIT"])
    each = _VECTORS[split]
    count = _multiple(int(vectors.shape[1]), each)
    given = _padded(vectors.to(layout.points.dtype), layout.padded, count)
    out = given.new_empty(given.shape, dtype=torch.float64)
    arguments = (layout.points, layout.high, layout.low, given, out, layout.padded, layout.points.shape[0])
    with _on_device_of(torch, out):
        kernels().products[(layout.blocks, count // each)](
            *arguments,
            layout.features,
            count,
            layout.blocks,
            **layout.options,
            BR=each,
            num_warps=8 if layout.options["BLOCK"] == 128 or not split else 4,
            num_stages=2,
        )
    return layout.scale * out[: layout.n, : vectors.shape[1]]


# -- L1 distances of tiles, for derivatives ------------------------------------------------------

_SIDE = 32  # of the blocks of a tile


def l1_distances(a: Array, b: Array) -> Array:
    """``sum_c |a_ic - b_jc|`` of all pairs, ``(n, D)`` and ``(m, D)`` to ``(n, m)``."""
    torch = sys.modules["torch"]
    (n, size), m = a.shape, int(b.shape[0])
    out = a.new_empty((n, m))
    with _on_device_of(torch, out):
        kernels().l1_tile[(-(-n // _SIDE), -(-m // _SIDE))](
            a.mT.contiguous(), b.mT.contiguous(), out, n, m, size, BLOCK=_SIDE, num_warps=4
        )
    return out


def signed_sums(a: Array, b: Array, weights: Array) -> Array:
    """``sum_j w_ij sign(a_ic - b_jc)`` of weights ``(n, m)``, which need not be contiguous: ``(n, D)``."""
    torch = sys.modules["torch"]
    (n, size), m = a.shape, int(b.shape[0])
    out = a.new_empty((size, n))
    with _on_device_of(torch, out):
        kernels().signed_sums[(-(-n // _SIDE), size)](
            a.mT.contiguous(), b.mT.contiguous(), weights, out, n, m, *weights.stride(),
            BLOCK=_SIDE, num_warps=4,
        )  # fmt: skip
    return out.mT


# -- all derivatives of few cases ----------------------------------------------------------------

FEW_CASES = 2048
"""Cases whose pairs all meet in one kernel: for more, tiles stay in a cache."""


def in_one_kernel(term: PairTerm) -> bool:
    """Whether derivatives of a term are taken of all pairs at once."""
    return term.n <= FEW_CASES and term.points.shape[1] <= 2 and term.points.dtype == term.features.dtype


def pair_gradients(term: PairTerm) -> tuple[Array, Array, Array]:
    """Sums of cases over all others ``(n,)``, and derivatives of the sum by features and by points."""
    torch = sys.modules["torch"]
    points, features = term.points.contiguous(), term.features
    n, size = points.shape
    rows, by_points = points.new_empty(n), torch.empty_like(points)
    square = features @ features.mT
    start(
        "pair_slopes", -(-n // 4), points, square, rows, by_points, n,
        D=size, DEGREE=term.degree, ROOT=_root_of(term), EXPONENT=term.exponent,
        ROWS=4, COLUMNS=128, num_warps=4,
    )  # fmt: skip
    found = rows, square @ features, by_points
    return found if term.factor == 1.0 else tuple(values.mul_(term.factor) for values in found)
