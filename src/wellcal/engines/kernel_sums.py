"""Sums over all pairs of ``k(x, x') <phi, phi'>`` as reductions, which visit each case and not each pair.

A sum is exact, or it replaces k by ``khat(x, x') = w(x)' C w(x')``. Everything that cases add to it is then
``W' phi``, which chunks of cases, partitions and streams add up; C is applied once at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import Array, namespace


@dataclass(frozen=True)
class DecayKernel:
    """Kernel ``exp(-(r / lengthscale) ** power)`` of a Euclidean distance r.

    Examples
    --------
    >>> DecayKernel(2.0, 1.0)(np.array([0.0, 4.0])).round(3)
    array([1.   , 0.368])
    """

    lengthscale: float
    power: float

    def __call__(self, squared: Array) -> Array:
        """Return the kernel at squared distances."""
        scaled = squared * self.lengthscale**-2.0
        return namespace(squared).exp(-scaled if self.power == 2.0 else -(scaled ** (0.5 * self.power)))


class Finished(NamedTuple):
    """Sum over all pairs i < j, and what the sums of cases are made of.

    Attributes
    ----------
    total, half
        The sum, and the sum at half the resolution, which tells the bias.
    potential
        ``C W' phi``, for the sums of cases.
    """

    total: float
    half: float
    potential: Array


class KernelSum(Protocol):
    """Sum over pairs of k(x, x') <phi, phi'>, built as a reduction over cases.

    Attributes
    ----------
    batch, columns
        Cases that are encoded at a time, and columns of phi that are taken at a time.
    """

    @property
    def batch(self) -> int: ...

    @property
    def columns(self) -> int: ...

    def encode(self, points: Array) -> Any:
        """Return the weights of some cases."""
        ...

    def chunk(self, encoded: Any, phi: Array) -> Any:
        """Return what some cases add to the sum."""
        ...

    def merge(self, first: Any, second: Any) -> Any:
        """Return what the cases of both chunks add."""
        ...

    def finish(self, state: Any) -> Finished:
        """Return the sum over all pairs of the cases that were added."""
        ...

    def rows(self, encoded: Any, phi: Array, finished: Finished) -> Array:
        """Return the sums of some cases over all others."""
        ...


class PairSum(NamedTuple):
    """Sums over all other cases, ``(n,)``, and the sum over all pairs less that at half the resolution."""

    rows: Array
    bias: float


def sum_pairs(method: KernelSum, points: Array, phi: Array, *, single: bool = True) -> PairSum:
    """Reduce cases in memory: some columns of phi at a time, and as many cases as their weights allow.

    Examples
    --------
    >>> from wellcal.engines.line_sums import LineSum
    >>> x, phi = np.array([[2.0], [0.0], [1.0]]), np.array([[1.0], [1.0], [2.0]])
    >>> rows, bias = sum_pairs(LineSum(1.0), x, phi)
    >>> bool(np.isclose(0.5 * rows.sum(), 4.0 * np.exp(-1.0) + np.exp(-2.0))), bias
    (True, 0.0)
    """
    xp, (n, size) = namespace(phi), phi.shape
    chunks = list(in_chunks(n, within=method.batch))
    again = size > method.columns or len(chunks) == 1
    kept = [method.encode(points[cases]) for cases in chunks] if again else None

    def encoded() -> Iterator[tuple[slice, Any]]:
        weights = kept or (method.encode(points[cases]) for cases in chunks)
        return zip(chunks, weights, strict=True)

    rows = xp.zeros_like(points[:, 0])
    bias = 0.0
    for start in range(0, size, method.columns):
        block = phi[:, start : start + method.columns]
        block = xp.astype(block, xp.float32) if single else block
        state = None
        for cases, weights in encoded():
            added = method.chunk(weights, block[cases])
            state = added if state is None else method.merge(state, added)
        finished = method.finish(state)
        bias += finished.total - finished.half
        for cases, weights in encoded():
            rows[cases] += method.rows(weights, block[cases], finished)
    return PairSum(rows, bias)
