"""Closed forms of the Laplacian kernel on scalar targets."""

from __future__ import annotations

from wellcal._arrays.namespaces import Array
from wellcal._arrays.ops import Ops
from wellcal.expectations.rules import exponentials
from wellcal.expectations.rules.elements import Laplaces, Normals, Points, rule
from wellcal.kernels.targets import Laplacian


@rule(Laplacian, Laplaces, Points, scalar=True)
def laplace_point(ops: Ops, kernel: Laplacian, a: Laplaces, b: Points) -> Array:
    """E exp(-|Z - y| / l) for a Laplace variable (paper, appendix "Laplace distributions")."""
    return exponentials.laplace_point(
        ops, exponentials.distance(ops, a.x[0], b.x[0]), 1.0 / a.scale, 1.0 / kernel.lengthscale
    )


@rule(Laplacian, Laplaces, Laplaces, scalar=True)
def laplace_laplace(ops: Ops, kernel: Laplacian, a: Laplaces, b: Laplaces) -> Array:
    """E exp(-|Z - Z'| / l): the paper's five cases in one formula without removable singularities."""
    z = exponentials.distance(ops, a.x[0], b.x[0])
    return exponentials.laplace_laplace(ops, z, 1.0 / a.scale, 1.0 / b.scale, 1.0 / kernel.lengthscale)


@rule(Laplacian, Normals, Normals, scalar=True)
@rule(Laplacian, Normals, Points, scalar=True)
def normal(ops: Ops, kernel: Laplacian, a: Normals, b: Normals | Points) -> Array:
    """E exp(-|D| / l) for the normal difference D of the two."""
    variance = a.v[0] + b.v[0] if isinstance(b, Normals) else a.v[0] + 0.0 * b.x[0]
    return exponentials.normal_exponential(
        ops, exponentials.distance(ops, a.x[0], b.x[0]), variance, 1.0 / kernel.lengthscale
    )


@rule(Laplacian, Laplaces, Normals, scalar=True)
def laplace_normal(ops: Ops, kernel: Laplacian, a: Laplaces, b: Normals) -> Array:
    """E exp(-|Z - Z'| / l) for a Laplace and a normal variable."""
    rate, kernel_rate = 1.0 / a.scale, 1.0 / kernel.lengthscale
    z = exponentials.distance(ops, a.x[0], b.x[0])
    variance = b.v[0] + 0.0 * z
    return rate / (rate + kernel_rate) * exponentials.normal_two_rates(ops, z, variance, rate, kernel_rate)
