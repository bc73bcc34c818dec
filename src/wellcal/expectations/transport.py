"""Optimal transport between the components of mixtures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

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
from wellcal.expectations.bilinear import Cost, Distance
from wellcal.kernels.metrics import MixtureWasserstein

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
    def cost(self) -> Cost:
        """Costs between components, and the solution of a transport problem."""
        inner, pairs = self.inner.cost, self.size**2
        return Cost(pairs * (inner.evaluations + 8.0), pairs * (inner.entries + 8), inner.calls_user)

    def __call__(self, ops: Ops, a: TransportRows, b: TransportRows) -> Array:
        """Return costs of optimal couplings of all pairs of rows."""
        costs = self._costs(ops, a, b)
        weights_a = ops.xp.broadcast_to(a.weights[..., :, None, :], costs.shape[:-1])
        weights_b = ops.xp.broadcast_to(b.weights[..., None, :, :], costs.shape[:-1])
        return self._cost(ops, costs, weights_a, weights_b)

    def _costs(self, ops: Ops, a: TransportRows, b: TransportRows) -> Array:
        """Costs d^s between all components, along two trailing axes."""
        exponent = self.metric.order / self.inner.degree
        columns: list[Array] = []
        for k in range(self.size):
            row = [
                ops.power(self.inner(ops, a.components[k], b.components[m]), exponent)
                for m in range(self.size)
            ]
            columns.append(ops.xp.stack(row, axis=-1))
        return ops.xp.stack(columns, axis=-2)

    def _cost(self, ops: Ops, costs: Array, weights_a: Array, weights_b: Array) -> Array:
        fixed = stop_gradient(costs), stop_gradient(weights_a), stop_gradient(weights_b)
        for weights in (weights_a, weights_b):
            costs = right_derivatives(costs, 1, _WEIGHTS, behind=weights)
        total = ops.xp.sum(costs * self._solved(False, *fixed), axis=(-2, -1))
        # JAX does not say whether a derivative may be asked for.
        if not ops.differentiable or not any(
            getattr(w, "requires_grad", True) for w in (weights_a, weights_b)
        ):
            return total
        potentials = self._solved(True, *fixed)
        # Couplings move with the weights, and potentials with the costs.
        weights_a, weights_b = (right_derivatives(weights, 1, _WEIGHTS) for weights in (weights_a, weights_b))
        for weights, constant, rows in ((weights_a, fixed[1], 0), (weights_b, fixed[2], 1)):
            total = total + ops.xp.sum((weights - constant) * potentials[..., rows, :], axis=-1)
        return total

    def _solved(self, dual: bool, costs: Array, weights_a: Array, weights_b: Array) -> Array:
        """Couplings ``(..., K, K)`` or potentials ``(..., 2, K)`` by NumPy; components are equally many."""
        xp, solve = namespace(costs), partial(solve_all, self.metric, dual)
        if is_numpy(xp):
            return solve(costs, weights_a, weights_b)
        if is_jax(xp):
            size = tuple(costs.shape)
            shape = (*size[:-2], 2, size[-1]) if dual else size
            return called_back(solve, costs, weights_a, weights_b, shape=shape, dtype=costs.dtype)
        solved = solve(to_numpy(costs), to_numpy(weights_a), to_numpy(weights_b))
        return asarray(solved, xp=xp, device=device_of(costs), dtype=costs.dtype)


def solve_all(
    metric: MixtureWasserstein, dual: bool, costs: NDArray, weights_a: NDArray, weights_b: NDArray
) -> NDArray:
    """Return optimal couplings ``(..., K, K)`` or, for `dual`, potentials ``(..., 2, K)``.

    Potentials are the derivatives of the optimal cost by the weights, up to a constant shared between the
    two, which does not matter for weights whose sum is fixed.
    """
    from scipy.optimize import linear_sum_assignment  # slow to load, and seldom needed

    size = costs.shape[-1]
    flat = np.ascontiguousarray(costs, dtype=np.float64).reshape(-1, size, size)
    left, right = (np.asarray(w, dtype=np.float64).reshape(-1, size) for w in (weights_a, weights_b))
    assigned = metric.solver == "exact" and not dual and np.ptp(left) <= _EQUAL_WEIGHTS >= np.ptp(right)
    out = np.zeros((len(flat), 2 if dual else size, size))
    for index, cost in enumerate(flat):
        if assigned:
            rows, columns = linear_sum_assignment(cost)
            out[index, rows, columns] = 1.0 / size
        else:
            out[index] = _solve(metric, dual, cost, left[index], right[index])
    return out.reshape(*costs.shape[:-2], *out.shape[1:])


_EQUAL_WEIGHTS = 1e-12


def _solve(metric: MixtureWasserstein, dual: bool, cost: NDArray, p: NDArray, q: NDArray) -> NDArray:
    ot = _import_ot()
    p, q = p / p.sum(), q / q.sum()
    if metric.solver == "exact":
        coupling, log = ot.emd(p, q, cost, log=True)
        return np.stack([log["u"], log["v"]]) if dual else coupling
    largest = float(cost.max())
    if largest == 0.0:
        return np.zeros((2, len(p))) if dual else np.outer(p, q)
    unit = metric.regularisation
    coupling, log = ot.sinkhorn(
        p, q, cost / largest, unit, method="sinkhorn_log", numItermax=10_000, log=True
    )
    return np.stack([log["log_u"], log["log_v"]]) * (unit * largest) if dual else coupling


def _import_ot() -> Any:
    try:
        import ot  # pyright: ignore[reportMissingTypeStubs]  # it ships no types
    except ImportError:
        raise ImportError(
            "MixtureWasserstein with unequal weights or Sinkhorn needs POT: pip install 'wellcal[ot]'"
        ) from None
    return ot
