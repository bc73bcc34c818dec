"""Optimal transport between the components of mixtures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from wellcal._arrays.derivatives import right_derivatives
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    called_back,
    device_of,
    is_jax,
    is_numpy,
    namespace,
    stop_gradient,
    to_numpy,
)
from wellcal._arrays.ops import Ops
from wellcal._arrays.rows import Rows
from wellcal.expectations.bilinear import Distance
from wellcal.kernels.metrics import MixtureWasserstein

_Evaluation: TypeAlias = Callable[[Ops, Rows, Rows], Array]
"""`tile` or `paired` of a form."""

_Solver: TypeAlias = Callable[[MixtureWasserstein, NDArray, NDArray, NDArray], NDArray]
"""From costs and two sets of weights to couplings or potentials."""


_WEIGHTS = "weights of mixtures under MixtureWasserstein"
"""What couplings and potentials move with, which second derivatives would see."""


class TransportRows(NamedTuple):
    """Weights ``(n, K)`` of a mixture, and the rows of each component."""

    weights: Array
    components: tuple[Rows, ...]


@dataclass(frozen=True)
class TransportDistance:
    """``MW_s^s``: cost of an optimal coupling of components under ``d^s``.

    The coupling is a constant for differentiation: by the envelope theorem the derivative of the
    optimal cost is that of the cost at the optimal coupling, and with respect to the weights it is the
    dual potentials. For Sinkhorn's coupling, which is not optimal, both are approximations.
    """

    metric: MixtureWasserstein
    inner: Distance
    size: int

    @property
    def degree(self) -> float:
        """The order of the metric."""
        return self.metric.order

    @property
    def width(self) -> int:
        """Costs between components, and the solution of a transport problem."""
        return self.size**2 * (self.inner.width + 8)

    @property
    def calls_user(self) -> bool:
        """Whether the distance between components does."""
        return self.inner.calls_user

    def tile(self, ops: Ops, a: TransportRows, b: TransportRows) -> Array:
        """All pairs of rows."""
        shape = (a.weights.shape[0], b.weights.shape[0])
        weights_a = ops.xp.broadcast_to(a.weights[:, None, :], (*shape, self.size))
        weights_b = ops.xp.broadcast_to(b.weights[None, :, :], (*shape, self.size))
        return self._cost(ops, self._costs(ops, a, b, self.inner.tile), weights_a, weights_b)

    def paired(self, ops: Ops, a: TransportRows, b: TransportRows) -> Array:
        """Matching rows."""
        return self._cost(ops, self._costs(ops, a, b, self.inner.paired), a.weights, b.weights)

    def _costs(self, ops: Ops, a: TransportRows, b: TransportRows, evaluate: _Evaluation) -> Array:
        """Costs d^s between all components, along two trailing axes."""
        exponent = self.metric.order / self.inner.degree
        columns: list[Array] = []
        for k in range(self.size):
            row = [
                ops.power(evaluate(ops, a.components[k], b.components[m]), exponent) for m in range(self.size)
            ]
            columns.append(ops.xp.stack(row, axis=-1))
        return ops.xp.stack(columns, axis=-2)

    def _cost(self, ops: Ops, costs: Array, weights_a: Array, weights_b: Array) -> Array:
        fixed = stop_gradient(costs), stop_gradient(weights_a), stop_gradient(weights_b)
        for weights in (weights_a, weights_b):
            costs = right_derivatives(costs, 1, _WEIGHTS, behind=weights)
        total = ops.xp.sum(costs * self._solved(solve_all, False, *fixed), axis=(-2, -1))
        if not _may_vary(ops, weights_a) and not _may_vary(ops, weights_b):
            return total
        potentials = self._solved(potentials_all, True, *fixed)
        # Couplings move with the weights, and potentials with the costs.
        weights_a, weights_b = (right_derivatives(weights, 1, _WEIGHTS) for weights in (weights_a, weights_b))
        for weights, constant, rows in ((weights_a, fixed[1], 0), (weights_b, fixed[2], 1)):
            total = total + ops.xp.sum((weights - constant) * potentials[..., rows, :], axis=-1)
        return total

    def _solved(self, solver: _Solver, dual: bool, costs: Array, weights_a: Array, weights_b: Array) -> Array:
        """Couplings ``(..., K, K)`` or potentials ``(..., 2, K)`` by NumPy; components are equally many."""
        xp = namespace(costs)
        if is_numpy(xp):
            return solver(self.metric, costs, weights_a, weights_b)
        if is_jax(xp):
            size = tuple(costs.shape)
            shape = (*size[:-2], 2, size[-1]) if dual else size
            solve = partial(solver, self.metric)
            return called_back(solve, costs, weights_a, weights_b, shape=shape, dtype=costs.dtype)
        solved = solver(self.metric, to_numpy(costs), to_numpy(weights_a), to_numpy(weights_b))
        return asarray(solved, xp=xp, device=device_of(costs), dtype=costs.dtype)


def _may_vary(ops: Ops, weights: Array) -> bool:
    """Whether a derivative with respect to `weights` may be asked for; JAX does not say."""
    return ops.differentiable and getattr(weights, "requires_grad", True)


def solve_all(metric: MixtureWasserstein, costs: NDArray, weights_a: NDArray, weights_b: NDArray) -> NDArray:
    """Optimal couplings ``(..., K, L)`` for costs ``(..., K, L)`` and weights ``(..., K)``, ``(..., L)``."""
    from scipy.optimize import linear_sum_assignment  # slow to load, and seldom needed

    shape = costs.shape
    flat = np.ascontiguousarray(costs, dtype=np.float64).reshape(-1, *shape[-2:])
    left = np.asarray(weights_a, dtype=np.float64).reshape(-1, shape[-2])
    right = np.asarray(weights_b, dtype=np.float64).reshape(-1, shape[-1])
    uniform = shape[-2] == shape[-1] and np.ptp(left) <= 1e-12 and np.ptp(right) <= 1e-12
    out = np.zeros_like(flat)
    for index, cost in enumerate(flat):
        if metric.solver == "exact" and uniform:
            rows, columns = linear_sum_assignment(cost)
            out[index, rows, columns] = 1.0 / shape[-1]
        else:
            out[index] = _solve(metric, cost, left[index], right[index])
    return out.reshape(shape)


def potentials_all(
    metric: MixtureWasserstein, costs: NDArray, weights_a: NDArray, weights_b: NDArray
) -> NDArray:
    """Dual potentials ``(..., 2, K)``: derivatives of the optimal cost with respect to the weights.

    They satisfy ``u_k + v_l = cost_kl`` wherever mass moves. A constant shared between u and v is left
    open, and does not matter for weights whose sum is fixed; where weights are such that less than
    2 K - 1 pairs exchange mass, the cost has a kink and the smallest solution stands for all.
    """
    couplings = solve_all(metric, costs, weights_a, weights_b)
    size = costs.shape[-1]
    flat = np.asarray(costs, dtype=np.float64).reshape(-1, size, size)
    out = np.zeros((len(flat), 2 * size))
    for index, (cost, coupling) in enumerate(zip(flat, couplings.reshape(flat.shape), strict=True)):
        rows, columns = np.nonzero(coupling > 1e-14)
        equations = np.eye(size)[rows], np.eye(size)[columns]
        out[index] = np.linalg.lstsq(np.hstack(equations), cost[rows, columns])[0]
    return out.reshape(*costs.shape[:-2], 2, size)


def _solve(metric: MixtureWasserstein, cost: NDArray, p: NDArray, q: NDArray) -> NDArray:
    ot = _import_ot()
    p, q = p / p.sum(), q / q.sum()
    if metric.solver == "exact":
        return ot.emd(p, q, cost)
    largest = float(cost.max())
    if largest == 0.0:
        return np.outer(p, q)
    return ot.sinkhorn(p, q, cost / largest, metric.regularisation, method="sinkhorn_log", numItermax=10_000)


def _import_ot() -> Any:
    try:
        import ot  # pyright: ignore[reportMissingTypeStubs]  # it ships no types
    except ImportError:
        raise ImportError(
            "MixtureWasserstein with unequal weights or Sinkhorn needs POT: pip install 'wellcal[ot]'"
        ) from None
    return ot
