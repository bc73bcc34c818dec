"""Expectations of two-sided exponentials, to full precision at all scales and coincidences of rates.

Closed forms with exponentials are sums over partial fractions, which are 0/0 where two rates agree
and cancel where they nearly do. Here every such quotient is a divided difference, written as a sum of
positive terms, so that no case is special. Those of ``exp(-r z)`` need ``phi``; those of the scaled
complementary error function ``erfcx`` come from one polynomial, whose divided differences Horner's
rule gives without a division.

All functions are elementwise, broadcast, and are differentiable wherever the library is. Distances
are ``z >= 0``, variances ``>= 0``, rates ``> 0``; all but the distance may be Python numbers.
Derivatives hold at equal rates too: rates are ordered by ``minimum`` and ``maximum``, which share a
derivative evenly between equals, and what follows is symmetric in them.
"""

from __future__ import annotations

import math

from wellcal._arrays.namespaces import Array, asarray, device_of, is_array, namespace
from wellcal._arrays.ops import Ops

_VANISHING = -750.0
"""An exponent below those of all double-precision numbers."""

_REACH = 0.25
"""The polynomial for erfcx holds for x >= -_REACH."""

_MAP = 3.0
"""The half line is mapped to t = (x + _REACH - _MAP) / (x + _REACH + _MAP) in [-1, 1).

At 3 the coefficients fall fastest.
"""

_ERFCX = (
    1.1619725776744123,
    -1.114582374508436,
    0.8767187585704043,
    -0.5550259375988748,
    0.2707503624866632,
    -0.09121066053268842,
    0.013222157447656303,
    0.004952781161211306,
    -0.002954999297407653,
    4.551522221430991e-05,
    0.00039835863050804543,
    -5.862212709811334e-05,
    -5.6963718554106166e-05,
    1.2288536189134267e-05,
    9.66602231921825e-06,
    -1.98006977670054e-06,
    -1.891651454708167e-06,
    2.427639664396976e-07,
    3.7747399640573354e-07,
    -1.592831353046009e-08,
    -6.263957994929991e-08,
    -3.015989840989817e-10,
    5.9319982304759965e-09,
)
"""(x + _REACH + _MAP) erfcx(x) in powers of t: its Chebyshev interpolant in 60 digits, cut at degree 22.

The relative error is 1e-15 for the function and 4e-15 for its divided differences.
"""

_SERIES_BELOW = 0.125
_PHI_SERIES = tuple((-1.0) ** k / math.factorial(k + 1) for k in range(12))
"""phi(x) in powers of x. Cut here, a divided difference on [0, _SERIES_BELOW] is right to 1e-17."""


_REMOTE = 1e154
"""A distance of a thousand of the largest scales, where exponentials are 0; its square still is a number."""

_WIDE = 1e150
"""A distance in units of a scale at which expectations are 0 to a hundred and fifty digits."""

_LONG = 1e30
"""A distance in units of a scale from where on quotients have reached their limits to rounding."""


def distance(ops: Ops, x: Array, y: Array) -> Array:
    """``|x - y|``, at most as large as is of interest: infinities would not cancel."""
    return _at_most(ops, ops.abs(x - y), _REMOTE)


def signed_distance(ops: Ops, x: Array, y: Array) -> Array:
    """``x - y``, no further from 0 than is of interest."""
    return -_at_most(ops, -_at_most(ops, x - y, _REMOTE), _REMOTE)


def _at_most(ops: Ops, x: Array, bound: float, share: float = 0.4995) -> Array:
    """`x` up to a bound, and up to a power of the largest number of its precision."""
    return ops.minimum(x, _array(min(bound, float(ops.xp.finfo(x.dtype).max) ** share), x))


def laplace_point(ops: Ops, z: Array, rate: Array, kernel_rate: Array) -> Array:
    """``E exp(-c |Z - y|)`` for Z ~ Laplace with rate a at distance z from y.

    With m = min(a, c) it is ``a / (a + c) * exp(-m z) * (1 + m z phi(|a - c| z))``.

    Parameters
    ----------
    z
        Distance of the location of Z from y.
    rate, kernel_rate
        a, one over the scale of Z, and c.

    Examples
    --------
    >>> import numpy as np
    >>> from wellcal._arrays.namespaces import namespace
    >>> from wellcal._arrays.ops import ops_for
    >>> laplace_point(ops_for(namespace()), np.array([0.0, 1.0]), 1.0, 1.0).round(6)
    array([0.5     , 0.367879])
    """
    low, high = _ordered(ops, _array(rate, z), _array(kernel_rate, z))
    decay = low * z
    return rate / (rate + kernel_rate) * (ops.exp(-decay) * (1.0 + decay * ops.phi((high - low) * z)))


def laplace_laplace(ops: Ops, z: Array, rate_a: Array, rate_b: Array, kernel_rate: Array) -> Array:
    """``E exp(-c |Z - Z'|)`` for independent Laplace variables with rates a and b at distance z.

    It is ``2 c a^2 b^2 g[a, b, c]``, a divided difference of
    ``g(r) = exp(-r z) / ((r + a) (r + b) (r + c))``. The Leibniz rule splits it; the differences of
    the second factor are products of sums of rates, and with the rates sorted, r1 <= r2 <= r3, the
    whole simplifies to

        a b / ((r1 + r3) (r2 + r3)) * exp(-r1 z)
            * ((1 + r3 / (r1 + r2)) (1 + r1 z phi(x)) + r1 r2 z^2 psi(x, y))

    where x = (r2 - r1) z, y = (r3 - r1) z and psi(x, y) is the divided difference of exp(-u) at 0, x, y.

    Parameters
    ----------
    z
        Distance of the two locations.
    rate_a, rate_b, kernel_rate
        One over the scale of either variable, and c.

    Examples
    --------
    >>> import numpy as np
    >>> from wellcal._arrays.namespaces import namespace
    >>> from wellcal._arrays.ops import ops_for
    >>> laplace_laplace(ops_for(namespace()), np.array([0.0, 1.0]), 1.0, 1.0, 1.0)
    array([0.375     , 0.32189451])
    """
    r1, r2, r3 = sorted_rates(ops, rate_a, rate_b, kernel_rate, z)
    x, y = _at_most(ops, (r2 - r1) * z, _LONG), _at_most(ops, (r3 - r1) * z, _LONG)
    phi_x = ops.phi(x)
    decay = _at_most(ops, r1 * z, -2.0 * _VANISHING)
    reach = _at_most(ops, r2 * z, _LONG)
    bracket = (1.0 + r3 / (r1 + r2)) * (1.0 + decay * phi_x) + decay * reach * psi(ops, x, y, phi_x)
    return rate_a * rate_b / ((r1 + r3) * (r2 + r3)) * (ops.exp(-decay) * bracket)


def normal_exponential(ops: Ops, z: Array, variance: Array, rate: Array) -> Array:
    """``F(r) = E exp(-r |D|)`` for D ~ N(z, variance); ``exp(-r z)`` where the variance is 0.

    In units of s = sqrt(2 variance), with rho = r s / 2 and zeta = z / s,

        F = exp(-zeta^2) / 2 * (erfcx(rho + zeta) + erfcx(rho - zeta)).

    Where rho < zeta the second erfcx grows beyond bounds; the reflection
    ``erfcx(-x) = 2 exp(x^2) - erfcx(x)`` then gives ``exp(-r (z - r variance / 2))`` less a smaller term.

    Parameters
    ----------
    z, variance
        Absolute mean and variance of D.
    rate
        r.

    Examples
    --------
    >>> import numpy as np
    >>> from wellcal._arrays.namespaces import namespace
    >>> from wellcal._arrays.ops import ops_for
    >>> normal_exponential(ops_for(namespace()), np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0]), 1.0)
    array([1.        , 0.52315658, 0.36787944])
    """
    z, variance = _in_units(ops, z, _array(variance, z), rate)
    width, weight = _gauss(ops, z, variance)
    rho, zeta = 0.5 * width, z / width
    reflected = variance < z
    x = rho - zeta
    value = erfcx(ops, ops.where(reflected, -x, x))
    bulk = weight * (erfcx(ops, rho + zeta) + ops.where(reflected, -value, value))
    return bulk + ops.exp(ops.where(reflected, 0.5 * variance - z, _VANISHING))


def normal_two_rates(ops: Ops, z: Array, variance: Array, rate_a: Array, rate_b: Array) -> Array:
    """``G(a, b) = (a F(b) - b F(a)) / (a - b)``, for F of :func:`normal_exponential`.

    Where a = b it is the limit ``F(a) - a F'(a)``. For Z ~ Laplace with rate a and Z' normal,
    ``E exp(-c |Z - Z'|) = a / (a + c) * G(a, c)`` with ``D = E Z - Z'``; the density of the difference of
    two Laplace variables has the same shape. In the units of :func:`normal_exponential`, for a <= b,
    with h = (b - a) s / 2 and W(x, y) the negative divided difference of erfcx,

        G = exp(-zeta^2) / 2 * sum over x = rho + zeta, rho - zeta of (erfcx(x) + rho W(x, x + h)).

    For x < 0 the parts of erfcx that grow are again taken out; their divided difference needs only phi.

    Parameters
    ----------
    z, variance
        Absolute mean and variance of D.
    rate_a, rate_b
        a and b; the function is symmetric in them.

    Examples
    --------
    >>> import numpy as np
    >>> from wellcal._arrays.namespaces import namespace
    >>> from wellcal._arrays.ops import ops_for
    >>> normal_two_rates(ops_for(namespace()), np.array([1.0, 1.0]), np.array([0.0, 1.0]), 1.0, 1.0)
    array([0.73575888, 0.68524776])
    """
    low, high = _ordered(ops, _array(rate_a, z), _array(rate_b, z))
    z, variance = _in_units(ops, z, _array(variance, z), low)
    gap = _at_most(ops, (high - low) / low, _WIDE)
    width, weight = _gauss(ops, z, variance)
    rho, step, zeta = 0.5 * width, 0.5 * gap * width, z / width

    x = rho + zeta
    value, slope = erfcx_difference(ops, x, x + step)
    bulk = value + rho * slope

    # Reflecting only below -_REACH leaves no short step from x < 0 to y > 0, whose two parts would cancel.
    reflected = variance + _REACH * width < z
    crossing = (variance + gap * variance > z) & reflected
    both = reflected & ~crossing
    x = rho - zeta
    y = x + step
    x, y = ops.where(reflected, -x, x), ops.where(both, -y, y)
    y = ops.maximum(y, -2.0 * _REACH * ops.one(y))  # is less only where `weight` is 0
    value, slope = erfcx_difference(ops, x, y)
    # Across 0 it is (2 - erfcx(-x) - erfcx(y)) / h, and erfcx(y) follows from the difference.
    across = (2.0 - 2.0 * value + (y - x) * slope) / ops.where(crossing, step, 1.0)
    bulk = bulk + ops.where(reflected, -value, value) + rho * ops.where(crossing, across, slope)

    # The parts taken out, e(r) = exp(-r (z - r v / 2)) and its difference up to b, or to z / v where y > 0.
    excess = ops.where(reflected, z - variance, 0.0)
    mean = 0.5 * (excess + ops.where(both, z - (variance + gap * variance), 0.0))
    mean = mean * ops.where(crossing, excess / ops.where(crossing, gap * variance, 1.0), 1.0)
    exponent = ops.where(reflected, -0.5 * (z + excess), _VANISHING)
    return weight * bulk + ops.exp(exponent) * (1.0 + mean * ops.phi(gap * mean))


def _in_units(ops: Ops, z: Array, variance: Array, rate: Array) -> tuple[Array, Array]:
    """Distance and variance in units of ``1 / rate``, and no larger than makes a difference."""
    return _at_most(ops, rate * z, _WIDE), _at_most(ops, rate * variance * rate, _WIDE**2, 0.98)


def _gauss(ops: Ops, z: Array, variance: Array) -> tuple[Array, Array]:
    """``sqrt(2 v)`` and ``exp(-z^2 / (2 v)) / 2``; small v is raised to where the latter just is 0."""
    square = z * z
    floor = math.sqrt(ops.xp.finfo(z.dtype).smallest_normal)  # the square of its inverse is finite
    variance = ops.maximum(variance, (-0.5 / _VANISHING) * square) + floor
    return ops.sqrt(2.0 * variance), 0.5 * ops.exp(-0.5 * square / variance)


def erfcx(ops: Ops, x: Array) -> Array:
    """``exp(x^2) erfc(x)`` for x >= -_REACH, with accurate derivatives in every library."""
    inverse = 1.0 / (x + (_REACH + _MAP))
    return inverse * _horner(ops, _ERFCX, 1.0 - (2.0 * _MAP) * inverse)


def erfcx_difference(ops: Ops, x: Array, y: Array) -> tuple[Array, Array]:
    """``erfcx(x)`` and the positive ``(erfcx(x) - erfcx(y)) / (y - x)``, -erfcx'(x) where y = x."""
    inverse_x, inverse_y = 1.0 / (x + (_REACH + _MAP)), 1.0 / (y + (_REACH + _MAP))
    s, t = 1.0 - (2.0 * _MAP) * inverse_x, 1.0 - (2.0 * _MAP) * inverse_y
    value, slope = _horner_difference(ops, _ERFCX, s, t)
    return inverse_x * value, inverse_x * inverse_y * (value - (2.0 * _MAP) * inverse_y * slope)


def psi(ops: Ops, x: Array, y: Array, phi_x: Array) -> Array:
    """Divided difference of exp(-u) at 0, x and y, 0 <= x <= y; `phi_x` is phi(x)."""
    # The bound keeps the unused quotient finite; it lies below the threshold, lest a tie halve a derivative.
    direct = (phi_x - ops.exp(-x) * ops.phi(y - x)) / ops.maximum(y, 0.5 * _SERIES_BELOW * ops.one(y))

    def series(x: Array, y: Array) -> Array:
        bound = _SERIES_BELOW * ops.one(y)
        return -_horner_difference(ops, _PHI_SERIES, ops.minimum(x, bound), ops.minimum(y, bound))[1]

    return ops.amend(direct, y < _SERIES_BELOW, (x, y), series)


def _horner(ops: Ops, coefficients: tuple[float, ...], x: Array) -> Array:
    """Value at x of a polynomial (lowest coefficient first)."""
    value = coefficients[-1] * x + coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        value = _multiply_add(ops, value, x, coefficient)
    return value


def _horner_difference(ops: Ops, coefficients: tuple[float, ...], x: Array, y: Array) -> tuple[Array, Array]:
    """Value at x, and divided difference at x and y, of a polynomial (lowest coefficient first)."""
    value = coefficients[-1] * x + coefficients[-2]
    slope = coefficients[-1] * y + value
    for coefficient in coefficients[-3:0:-1]:
        value = _multiply_add(ops, value, x, coefficient)
        slope = _multiply_add(ops, slope, y, value)
    return _multiply_add(ops, value, x, coefficients[0]), slope


def _multiply_add(ops: Ops, product: Array, factor: Array, term: Array) -> Array:
    """``product * factor + term``, in place where no derivative is recorded: fresh memory costs more."""
    if ops.differentiable:
        return product * factor + term
    product *= factor
    product += term
    return product


def sorted_rates(ops: Ops, a: Array, b: Array, c: Array, like: Array) -> tuple[Array, Array, Array]:
    """Three rates in increasing order.

    A sorting network, not three independent order statistics: each exchange shares the derivative of
    equal rates evenly, so that their composition does too.
    """
    low, high = _ordered(ops, _array(a, like), _array(b, like))
    middle, largest = _ordered(ops, high, _array(c, like))
    smallest, middle = _ordered(ops, low, middle)
    return smallest, middle, largest


def _ordered(ops: Ops, a: Array, b: Array) -> tuple[Array, Array]:
    return ops.minimum(a, b), ops.maximum(a, b)


def _array(x: Array, like: Array) -> Array:
    """`x`, if a Python number, as an array in the library, on the device and in the dtype of `like`."""
    if is_array(x):
        return x
    return asarray(x, xp=namespace(like), device=device_of(like), dtype=like.dtype)
