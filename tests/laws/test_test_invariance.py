"""What must not change the p-value of any test: units, order of cases, the way a method is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.hypotests import METHODS, Aggregated, Exact, Omnibus

N, D = 24, 2
RNG = np.random.default_rng(41)
LOC, LOC_2, SCALE = RNG.normal(size=N), RNG.normal(size=N), RNG.uniform(0.5, 1.5, N)
LOCS, SCALES = RNG.normal(size=(N, D)), RNG.uniform(0.5, 1.5, (N, D))
_factor = RNG.normal(size=(N, D, D))
COV = _factor @ _factor.transpose(0, 2, 1) + 0.3 * np.eye(D)
DRAWS, VECTOR_DRAWS = RNG.normal(LOC[:, None], 1.0, (N, 5)), RNG.normal(LOCS[:, None], 1.0, (N, 3, D))
Y, Y_VECTORS = 1.2 * RNG.normal(LOC, SCALE), LOCS + 1.2 * SCALES * RNG.normal(size=(N, D))

Build = Callable[[float, Any], Any]


@dataclass(frozen=True)
class Family:
    """Targets, and predictions for them in another unit: a x + b."""

    targets: np.ndarray
    build: Build
    lowered: bool = False

    def pvalue(
        self, method: Any, a: float = 1.0, b: Any = 0.0, *, order: Any = None, **options: Any
    ) -> float:
        if self.lowered:
            options["expectations"] = wc.Lowering(nodes=32)
        y, pred = a * self.targets + b, self.build(a, b)
        if order is not None:
            y, pred = y[order], pred[order]
        options = {"rng": 3, "n_resamples": 99, **options}
        return wc.calibration_test(y, pred, method=method, **options).pvalue


FAMILIES = {
    "Normal": Family(Y, lambda a, b: wc.Normal(a * LOC + b, a * SCALE)),
    "Laplace": Family(Y, lambda a, b: wc.Laplace(a * LOC + b, a * SCALE)),
    "StudentT": Family(Y, lambda a, b: wc.StudentT(np.full(N, 5.0), a * LOC + b, a * SCALE), lowered=True),
    "DiagonalNormal": Family(Y_VECTORS, lambda a, b: wc.DiagonalNormal(a * LOCS + b, a * SCALES)),
    "MultivariateNormal": Family(Y_VECTORS, lambda a, b: wc.MultivariateNormal(a * LOCS + b, a**2 * COV)),
    "Samples": Family(Y, lambda a, b: wc.Samples(a * DRAWS + b)),
    "Samples as atoms": Family(Y, lambda a, b: wc.Samples(a * DRAWS + b, kind="atoms")),
    "Samples of vectors": Family(Y_VECTORS, lambda a, b: wc.Samples(a * VECTOR_DRAWS + b)),
    "Mixture": Family(
        Y,
        lambda a, b: wc.Mixture([wc.Normal(a * LOC + b, a * SCALE), wc.Normal(a * LOC_2 + b, 2 * a * SCALE)]),
    ),
}
TESTS = {
    "auto": "auto",
    **{name: name for name in METHODS},
    "exact blocks": Exact("block", block_size=4),
    "exact locations": Exact("cme", locations=4),
}
ASYMPTOTIC = ("pearson", "gamma", "block", "cme", "distribution_free")
"""Their p-values are not counts: rounding may change the last digits."""
LARGER, SMALLER = (1000.0, -70_000.0), (1e-3, 0.0)
"""Units: millimetres with another zero, and kilometres."""
OF_ALL_FAMILIES = ("auto", "exact", "aggregated", "regularised", "cme", "pearson")
"""Methods that look at predictions in ways of their own, and one that only sees h."""
OF_ALL_METHODS = ("Normal", "Samples")
"""Families that methods treat in different ways; the others meet the methods above."""


def agree(method: str, found: float, expected: float) -> None:
    assert found == (pytest.approx(expected, rel=1e-9) if method in ASYMPTOTIC else expected)


@pytest.mark.filterwarnings("ignore:with n_resamples=49")
@pytest.mark.parametrize(
    ("name", "method"),
    [(n, m) for n in FAMILIES for m in TESTS if n in OF_ALL_METHODS or m in OF_ALL_FAMILIES],
)
def test_units_do_not_matter(name: str, method: str) -> None:
    """Metres or millimetres, Celsius or Kelvin."""
    family, options = FAMILIES[name], {"n_resamples": 49}
    expected = family.pvalue(TESTS[method], **options)
    for unit in (LARGER, SMALLER) if name == "Normal" else (LARGER,):
        agree(method, family.pvalue(TESTS[method], *unit, **options), expected)


@pytest.mark.parametrize("method", TESTS)
def test_units_do_not_matter_for_more_cases(method: str) -> None:
    """Beyond 64 cases normals go by features, whose grid the unit must not move."""
    n = 90
    rng = np.random.default_rng(n)
    loc, scale = rng.normal(size=n), rng.uniform(0.5, 1.5, n)
    y = rng.normal(loc, 1.1 * scale)
    options: dict[str, Any] = {"method": TESTS[method], "rng": 1, "n_resamples": 99}
    expected = wc.calibration_test(y, wc.Normal(loc, scale), **options).pvalue
    in_mm = wc.calibration_test(1e3 * y + 7e4, wc.Normal(1e3 * loc + 7e4, 1e3 * scale), **options).pvalue
    agree(method, in_mm, expected)


@pytest.mark.parametrize("method", ["auto", "exact", "regularised", "pearson"])
def test_each_coordinate_may_be_shifted_by_itself(method: str) -> None:
    family = FAMILIES["DiagonalNormal"]
    found = family.pvalue(method, 1000.0, np.array([5e3, -2e4]))
    agree(method, found, family.pvalue(method))


# -- order --------------------------------------------------------------------------------------------

ORDER = np.random.default_rng(5).permutation(N)


@pytest.mark.parametrize("method", ["pearson", "gamma", "spectrum"])
@pytest.mark.parametrize("name", FAMILIES)
def test_order_of_cases_does_not_matter(name: str, method: str) -> None:
    """Nothing is drawn for single cases, so that the p-value is a function of the set of cases."""
    family = FAMILIES[name]
    found, expected = family.pvalue(method, order=ORDER), family.pvalue(method)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("method", ["exact", "aggregated", "bootstrap", "multiplier", "consistency"])
def test_order_of_cases_changes_drawn_pvalues_by_chance_only(method: str) -> None:
    family = FAMILIES["Normal"]
    resamples = 199 if method == "consistency" else 1999
    first, second = (family.pvalue(method, order=o, n_resamples=resamples) for o in (ORDER, None))
    spread = np.sqrt(2.0 * second * (1.0 - second) / resamples)
    assert abs(first - second) <= 5.0 * spread + 2.0 / resamples


def test_a_statistic_without_order_and_its_own_targets() -> None:
    """The drawn values for permuted cases come from another part of the stream; the observed one stays."""
    y, pred = FAMILIES["Normal"].targets, FAMILIES["Normal"].build(1.0, 0.0)
    found = [
        wc.calibration_test(y[o], pred[o], method="exact", rng=0, n_resamples=99).statistic
        for o in (slice(None), ORDER)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_clusters_may_have_other_names_and_cases_another_order() -> None:
    family = FAMILIES["Normal"]
    labels = np.arange(N) // 3
    for method in ("auto", "multiplier"):
        expected = family.pvalue(method, groups=labels)
        assert family.pvalue(method, groups=[f"{k:03d}" for k in labels]) == expected
        assert family.pvalue(method, groups=np.arange(N)) == family.pvalue(method)
    assert family.pvalue("multiplier", order=ORDER, groups=labels[ORDER]) == expected


# -- one test asked for in several ways ---------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_aggregation_over_one_kernel_is_the_exact_test(name: str) -> None:
    family = FAMILIES[name]
    kernel = wc.default_kernel(family.build(1.0, 0.0))
    expected = family.pvalue("exact", kernel=kernel)
    assert family.pvalue("aggregated", kernel=[kernel]) == expected
    assert family.pvalue(Aggregated([kernel, kernel]), kernel=kernel) == expected
    assert family.pvalue("aggregated", kernel=[3.0 * kernel]) == expected
    assert family.pvalue(Aggregated([kernel, 2.0 * kernel]), kernel=kernel) == expected


@pytest.mark.parametrize("name", FAMILIES)
def test_auto_is_the_omnibus_test_of_few_cases(name: str) -> None:
    family = FAMILIES[name]
    assert family.pvalue("auto") == family.pvalue("omnibus") == family.pvalue(Omnibus())


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *((name, "exact") for name in FAMILIES),
        *(("Normal", method) for method in ("auto", "regularised", "omnibus", "aggregated")),
    ],
)
def test_seeds_reproduce(name: str, method: str) -> None:
    family = FAMILIES[name]
    assert family.pvalue(method, rng=7) == family.pvalue(method, rng=np.random.default_rng(7))


def test_scaling_the_kernel_changes_no_pvalue() -> None:
    family = FAMILIES["Normal"]
    kernel = wc.default_kernel(family.build(1.0, 0.0))
    for method in TESTS:
        if method != "distribution_free":
            found = family.pvalue(TESTS[method], kernel=1e-6 * kernel)
            assert found == pytest.approx(family.pvalue(TESTS[method], kernel=kernel), rel=1e-9), method
    bounded = [family.pvalue("distribution_free", kernel=factor * kernel) for factor in (1.0, 1e-6)]
    assert bounded[0] == pytest.approx(bounded[1], rel=1e-12)


def test_a_bernoulli_is_its_two_class_categorical() -> None:
    rng = np.random.default_rng(8)
    p = rng.uniform(size=N)
    labels = rng.integers(0, 2, N)
    for method in TESTS:
        options = {"method": TESTS[method], "rng": 0, "n_resamples": 99}
        one = wc.calibration_test(labels, wc.Bernoulli(p), **options)
        two = wc.calibration_test(labels, wc.Categorical(np.stack([1.0 - p, p], axis=1)), **options)
        assert one.pvalue == pytest.approx(two.pvalue, rel=1e-9), method
