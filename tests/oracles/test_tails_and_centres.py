"""Distribution functions, quantiles and scores where digits are easily lost: in tails, near medians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import special

import wellcal as wc

HALF = mp.mpf(1) / 2
NEAR = (1e-12, 1e-9, 1e-7, 1e-4, 0.01, 0.3, 0.4999, 0.5, 1.0, 2.0, 5.0)
FAR = (30.0, 1e3, 1e10, 1e150, 1e300)
LEVELS = (1e-300, 1e-20, 1e-6, 1e-3, 0.1, 0.25, 0.3, 0.49, 0.4999, 0.5 - 1e-9)


def student_tail(df: float, z: float) -> Any:
    """P(T > z) for z >= 0."""
    df, z = mp.mpf(df), mp.mpf(z)
    if z * z < df / 4:
        return HALF - mp.betainc(HALF, df / 2, 0, z * z / (df + z * z), regularized=True) / 2
    x = df / (df + z * z)
    if x < 1e-30:  # of the series in x only the first term counts
        return mp.exp(df / 2 * mp.log(x) - mp.log(df / 2) - mp.log(mp.beta(df / 2, HALF))) / 2
    return mp.betainc(df / 2, HALF, 0, x, regularized=True) / 2


def laplace_tail(_: float, z: float) -> Any:
    return mp.exp(-mp.mpf(z)) / 2


def power_exponential_tail(shape: float, z: float) -> Any:
    return mp.gammainc(1 / mp.mpf(shape), mp.mpf(z) ** mp.mpf(shape), mp.inf, regularized=True) / 2


def zeros_and_ones(of: Callable[..., Any], *parameters: Any) -> Any:
    return of(*(np.array([p]) for p in parameters))


SYMMETRIC: dict[str, tuple[Callable[[float], Any], Callable[[float, float], Any], tuple[float, ...]]] = {
    "StudentT": (
        lambda df: zeros_and_ones(wc.StudentT, df, 0.0, 1.0),
        student_tail,
        (0.1, 0.5, 1.0, 2.0, 3.7, 10.0, 100.0, 1e4, 1e8),
    ),
    "Laplace": (lambda _: zeros_and_ones(wc.Laplace, 0.0, 1.0), laplace_tail, (1.0,)),
    "PowerExponential": (
        lambda shape: zeros_and_ones(wc.PowerExponential, 0.0, 1.0, shape),
        power_exponential_tail,
        (0.3, 1.0, 2.0, 5.0),
    ),
}
CASES = [(name, shape) for name, (_, _, shapes) in SYMMETRIC.items() for shape in shapes]


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_distribution_functions(name: str, shape: float) -> None:
    make, tail_of, _ = SYMMETRIC[name]
    pred = make(shape)
    points = (*NEAR, *FAR) if name == "StudentT" and shape < 100 else NEAR
    with mp.workdps(40):
        for z in points:
            tail = tail_of(shape, z)
            below, above = (float(pred.cdf(np.array([x]))[0]) for x in (-z, z))
            if tail > 1e-290:
                assert abs(below - tail) <= 1e-13 * tail, z
            assert abs(above - (1 - tail)) <= 1e-14, z
            if z < 1e-3:  # what lies between the median and z has digits of its own
                assert abs((0.5 - below) - (HALF - tail)) <= 1.2e-16 + 1e-14 * (HALF - tail), z


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_quantiles(name: str, shape: float) -> None:
    make, tail_of, _ = SYMMETRIC[name]
    pred = make(shape)
    with mp.workdps(40):
        for u in LEVELS:
            q = -float(pred.quantile(u)[0])
            assert q == float(pred.upper_quantile(u)[0])
            if not np.isfinite(q) or (shape > 1e3 and u < 1e-20):
                continue
            if u > 0.499:  # relative to the distance from the median
                between = HALF - tail_of(shape, q)
                assert abs(between - (HALF - mp.mpf(u))) <= 2e-14 * between, u
            else:
                assert abs(tail_of(shape, q) - mp.mpf(u)) <= 5e-13 * mp.mpf(u) * max(1.0, shape), u


@pytest.mark.parametrize("df", [0.01, 0.1])
def test_student_quantiles_beyond_all_numbers_are_infinite_without_a_warning(df: float) -> None:
    pred = zeros_and_ones(wc.StudentT, df, 3.0, 1e-6)
    assert pred.quantile(1e-300)[0] == -np.inf
    assert pred.upper_quantile(1e-300)[0] == np.inf


def crps_by_definition(shape: float, y: float) -> float:
    """The integral of the squared difference of distribution functions, by tanh-sinh rules."""
    v = np.linspace(-4.2, 4.2, 401)
    u = 0.5 * np.pi * np.sinh(v)
    part = special.expit(2.0 * u)
    weight = (v[1] - v[0]) * np.pi * np.cosh(v) * part * special.expit(-2.0 * u)
    power = max(1.0 / shape, 1.0)  # x = t^power
    most = (60.0 + 4.0 / shape) ** (1.0 / (shape * power))  # beyond, squared tails do not count

    def integral(upper: bool, low: float, high: float) -> float:
        t = low + (high - low) * part
        tail = 0.5 * special.gammaincc(1.0 / shape, t ** (power * shape))
        value = (tail if upper else 1.0 - tail) ** 2 * power * t ** (power - 1.0)
        return float(np.sum(weight * (high - low) * value))

    end = min(y ** (1.0 / power), most)
    return integral(True, 0.0, most) + integral(False, 0.0, end) + integral(True, end, most) + y - end**power


@pytest.mark.parametrize("shape", [0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 6.0, 20.0])
@pytest.mark.parametrize("y", [0.0, 0.02, 0.9, 30.0, 1e6])
def test_crps_of_power_exponentials(shape: float, y: float) -> None:
    pred = zeros_and_ones(wc.PowerExponential, 0.0, 1.0, shape)
    assert float(wc.crps([y], pred)) == pytest.approx(crps_by_definition(shape, y), rel=1e-12)


@pytest.mark.parametrize("shape", [0.1, 0.3, 20.0])
def test_crps_of_power_exponentials_at_the_median(shape: float) -> None:
    """Half the mean of the smaller of two absolute values, in 30 digits."""
    with mp.workdps(30):
        order = 1 / mp.mpf(shape)
        k = min(2 * order, mp.mpf(1))  # in w = x^k nothing is infinite

        def density(w: Any) -> Any:
            x = w ** (1 / k)
            tail = mp.gammainc(order, x, mp.inf, regularized=True)
            return 2 * tail * mp.exp(-x) * w ** (2 * order / k - 1) / k

        cuts = [c**k for c in (0, order / 2, order, 2 * order, 4 * order + 20, 8 * order + 80)]
        exact = mp.quad(density, cuts) / mp.gamma(order) / 2
        found = float(wc.crps([0.0], zeros_and_ones(wc.PowerExponential, 0.0, 1.0, shape)))
        assert abs(found - exact) <= 1e-13 * exact


@pytest.mark.parametrize("shape", [0.1, 1.0, 20.0])
def test_crps_of_power_exponentials_at_other_locations_and_scales(shape: float) -> None:
    pred = zeros_and_ones(wc.PowerExponential, 3.0, 2.0, shape)
    plain = zeros_and_ones(wc.PowerExponential, 0.0, 1.0, shape)
    assert float(wc.crps([2.0], pred)) == pytest.approx(2.0 * float(wc.crps([0.5], plain)), rel=1e-13)
