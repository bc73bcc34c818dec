"""Closed forms of Delta: the probability that two counts are equal."""

from __future__ import annotations

from wellcal._arrays.namespaces import Array
from wellcal._arrays.ops import Ops
from wellcal._arrays.special import poisson_log_prob
from wellcal.expectations.rules.elements import Points, Poissons, rule
from wellcal.kernels.targets import Delta


@rule(Delta, Poissons, Poissons)
def poisson_poisson(ops: Ops, kernel: Delta, a: Poissons, b: Poissons) -> Array:
    """``P(Z = Z') = exp(-(sqrt(a) - sqrt(b))^2) * i0e(2 sqrt(a b))``, from the Skellam distribution."""
    root_a, root_b = ops.root(a.rate), ops.root(b.rate)
    return ops.exp(-((root_a - root_b) ** 2)) * ops.i0e(2.0 * root_a * root_b)


@rule(Delta, Poissons, Points)
def poisson_point(ops: Ops, kernel: Delta, a: Poissons, b: Points) -> Array:
    """Poisson probability of the observed count."""
    y = b.x[0]
    certain = a.rate == 0
    value = ops.exp(poisson_log_prob(ops, y, ops.where(certain, ops.one(a.rate), a.rate)))
    # At rate 0 these are the first terms of exp(-r), r exp(-r) and of what follows, with their derivatives.
    linear = ops.where(y == 0, 1.0 - a.rate, ops.where(y == 1, a.rate + 0.0 * y, 0.0 * (a.rate + y)))
    return ops.where(certain, linear, value)
