"""Sums over all pairs of ``k(x, x') <phi, phi'>`` as reductions, which visit each case and not each pair.

A sum is exact, or it replaces k by ``khat(x, x') = w(x)' C w(x')``. Everything that cases add to it is then
``W' phi``, which chunks of cases, partitions and streams add up; C is applied once at the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

from wellcal._arrays.chunks import Chunk, in_chunks
from wellcal._arrays.namespaces import Array, namespace
from wellcal._arrays.progress import reporter


@dataclass(frozen=True)
class DecayKernel:
    """Kernel ``exp(-(r / lengthscale) ** power)`` of a Euclidean distance r.

    Examples
    --------
    >>> import numpy as np
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


class State(NamedTuple):
    """Contribution of cases: ``W' phi``, and sums of khat(x, x) |phi|^2, also at half the resolution."""

    fields: Array
    own: float
    own_half: float


class KernelSum(ABC):
    """Sum over pairs of k(x, x') <phi, phi'>, built as a reduction over cases.

    Attributes
    ----------
    batch, columns
        Cases that are encoded at a time, and columns of phi that are taken at a time.
    """

    batch: Any
    columns: Any

    @abstractmethod
    def encode(self, points: Array) -> Any:
        """Return the weights of some cases."""

    @abstractmethod
    def chunk(self, encoded: Any, phi: Array) -> Any:
        """Return what some cases add to the sum."""

    def merge(self, first: Any, second: Any) -> Any:
        """Return what the cases of both chunks add."""
        return type(first)(*(a + b for a, b in zip(first, second, strict=True)))

    @abstractmethod
    def finish(self, state: Any) -> Finished:
        """Return the sum over all pairs of the cases that were added."""

    @abstractmethod
    def rows(self, encoded: Any, phi: Array, finished: Finished) -> Array:
        """Return the sums of some cases over all others."""


class PairSum(NamedTuple):
    """Sums over all other cases, ``(n,)``, and the sum over all pairs less that at half the resolution."""

    rows: Array
    bias: float


def sum_pairs(method: KernelSum, points: Array, phi: Array) -> PairSum:
    """Reduce cases in memory: some of them, and some columns of phi, at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from wellcal.engines.line_sums import LineSum
    >>> x, phi = np.array([[2.0], [0.0], [1.0]]), np.array([[1.0], [1.0], [2.0]])
    >>> rows, bias = sum_pairs(LineSum(1.0), x, phi)
    >>> bool(np.isclose(0.5 * rows.sum(), 4.0 * np.exp(-1.0) + np.exp(-2.0))), bias
    (True, 0.0)
    """
    chunks = list(in_chunks(len(points), within=method.batch))
    encodings: list[Any] = [None] * len(chunks)

    def encoded(k: int) -> Any:
        weights = method.encode(points[chunks[k]]) if encodings[k] is None else encodings[k]
        if len(chunks) == 1 or phi.shape[1] > method.columns:
            encodings[k] = weights
        return weights

    def report(cases: Chunk, columns: int) -> None:
        nonlocal done
        done += (cases.stop - cases.start) * columns
        if len(chunks) > 1 or phi.shape[1] > method.columns:
            tell("features in sums", done, 2 * phi.shape[0] * phi.shape[1])

    tell, done = reporter(), 0
    rows, bias = namespace(points).zeros_like(points[:, 0]), 0.0
    for start in range(0, phi.shape[1], method.columns):
        block = phi[:, start : start + method.columns]
        state = None
        for k, cases in enumerate(chunks):
            added = method.chunk(encoded(k), block[cases])
            state = added if state is None else method.merge(state, added)
            report(cases, block.shape[1])
        finished = method.finish(state)
        bias += finished.total - finished.half
        for k, cases in enumerate(chunks):
            rows[cases] += method.rows(encoded(k), block[cases], finished)
            report(cases, block.shape[1])
    return PairSum(rows, bias)
