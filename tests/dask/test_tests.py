"""The test of cases in partitions has the p-value of the same cases in memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import dask
import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.dask.examples import example, in_memory, partitioned, tied

import wellcal as wc
from wellcal.dask.building import as_cases
from wellcal.hypotests import Block, Omnibus
from wellcal.kernels import ExpDistance, Gaussian, Laplacian, Wasserstein

N = 4_300
"""Three blocks of random numbers, of 2,048 cases each: the last one is not full."""

pytestmark = [
    pytest.mark.filterwarnings("ignore:with n_resamples:UserWarning"),
    pytest.mark.usefixtures("few_cases_are_many"),
]


def assert_same_test(found: Any, expected: Any) -> None:
    assert found.pvalue == expected.pvalue
    assert found.pvalue_floor == expected.pvalue_floor
    assert_allclose(found.statistic, expected.statistic, rtol=1e-9)
    assert found.kernel == expected.kernel
    assert (found.method, found.n_samples) == (expected.method, expected.n_samples)
    for key in ("pvalues", "pvalue_floors", "n_resamples"):
        assert found.provenance[key] == expected.provenance[key]


@pytest.mark.parametrize("family", ["normal", "bernoulli", "categorical", "draws"])
def test_partitions_change_no_pvalue(family: str) -> None:
    found = example(family, N)
    options: dict[str, Any] = {"rng": 1, "n_resamples": 19 if family == "normal" else 9}
    expected = wc.calibration_test(*in_memory(found), **options)
    sizes = (1500, (2500, 1, 1799)) if family == "normal" else (1500,)
    for size in sizes:
        assert_same_test(wc.calibration_test(*partitioned(found, size), **options), expected)


def test_a_first_partition_without_cases_changes_no_pvalue() -> None:
    found = example("bernoulli", 2_150)
    options: dict[str, Any] = {"rng": 1, "n_resamples": 9}
    expected = wc.calibration_test(*in_memory(found), **options)
    for sizes in ((0, 1150, 1000), (0, 0, 2000, 0, 150, 0)):
        assert_same_test(wc.calibration_test(*partitioned(found, sizes), **options), expected)


def test_unasked_there_are_as_many_resamples_as_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget of operations decides, which is made small; and 999 where it leaves too few."""
    found = example("bernoulli", 2_150)
    monkeypatch.setattr("wellcal.hypotests.automatic.FEWEST_RESAMPLES", 9)
    monkeypatch.setattr("wellcal.hypotests.automatic.LINEAR_BUDGET", 12.5 * 136 * 2_150)
    monkeypatch.setattr("wellcal.hypotests.resampling.more_resamples.MOST_DRAWS", 0)
    expected = wc.calibration_test(*in_memory(found), rng=3)
    assert expected.provenance["n_resamples"] == 12, "the example must take fewer than 999"
    assert_same_test(wc.calibration_test(*partitioned(found, 1100), rng=3), expected)
    monkeypatch.setattr("wellcal.hypotests.automatic.LINEAR_BUDGET", 1.0)
    monkeypatch.setattr("wellcal.dask.testing.DEFAULT_RESAMPLES", 11)
    assert wc.calibration_test(*partitioned(found, 1100), rng=3).provenance["n_resamples"] == 11


def test_the_null_is_the_same_too() -> None:
    found = example("bernoulli", 2_150)
    options: dict[str, Any] = {"rng": 2, "n_resamples": 39, "keep_null": True}
    expected = wc.calibration_test(*in_memory(found), **options)
    result = wc.calibration_test(*partitioned(found, 1100), **options)
    assert_same_test(result, expected)
    assert_allclose(result.null, expected.null, rtol=1e-9)


def test_kernels_of_several_terms_locations_and_another_method() -> None:
    found = example("normal", 2_150)
    kernel = ExpDistance(Wasserstein()) @ Gaussian() + 0.5 * ExpDistance(Wasserstein()) @ Laplacian(2.0)
    options: dict[str, Any] = {"rng": 0, "n_resamples": 9, "kernel": kernel}
    at = (wc.Normal([0.0, 1.0], 1.0), [0.5, 2.0])
    for more in ({}, {"method": "regularised", "locations": 5}, {"method": "regularised", "locations": at}):
        expected = wc.calibration_test(*in_memory(found), **options, **more)
        assert_same_test(wc.calibration_test(*partitioned(found, 1100), **options, **more), expected)


def test_clear_cases_draw_on_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wellcal.dask.sampling.AT_HAND", 1000)
    y, family, (mu, sigma) = example("normal", 2_150)
    found = (mu + 2.0 * (y - mu), family, (mu, sigma))
    method = Omnibus(pairs=False, most_resamples=200)
    options: dict[str, Any] = {"rng": 0, "n_resamples": 19, "method": method}
    expected = wc.calibration_test(*in_memory(found), **options)
    result = wc.calibration_test(*partitioned(found, 1100), **options)
    assert expected.provenance["n_resamples"] == 199, "the example must draw on"
    assert_same_test(result, expected)
    assert any("spread" in str(finding) for finding in result.findings)
    assert "1,000 of 2,150 cases" in result.provenance["sample"]
    assert_same_beside(result, expected)


def assert_same_beside(found: Any, expected: Any) -> None:
    """What is told beside the p-value, of all cases."""
    for name in ("effect_size", "log_e_value"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-10)
    own, other = found.estimate, expected.estimate
    assert (own.estimator, own.n_samples, own.kernel) == (other.estimator, other.n_samples, other.kernel)
    numbers = [(float(one), one.standard_error) for one in (own, other)]
    assert_allclose(*numbers, rtol=1e-10)
    for key in ("blocks", "block_size", "dropped", "shuffled"):
        assert own.provenance[key] == other.provenance[key]


@pytest.mark.parametrize("family", ["normal", "bernoulli", "draws", "vectors"])
def test_what_is_told_beside_the_pvalue_is_that_of_all_cases(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether all of them are taken into memory, or only a few are."""
    y, kind, parameters = example(family, 2_150)
    wrong = y if family == "bernoulli" else 1.2 * y
    options: dict[str, Any] = {"rng": 1, "n_resamples": 19, "method": Omnibus(pairs=False, locations=2)}
    expected = wc.calibration_test(*in_memory((wrong, kind, parameters)), **options)
    result = wc.calibration_test(*partitioned((wrong, kind, parameters), 900), **options)
    assert_same_beside(result, expected)
    assert (result.findings, result.yardstick) == (expected.findings, expected.yardstick)
    assert "sample" not in result.provenance
    monkeypatch.setattr("wellcal.dask.sampling.AT_HAND", 1000)
    monkeypatch.setattr("wellcal.dask.beside.BUCKET", 2500)  # several tasks for blocks
    result = wc.calibration_test(*partitioned((wrong, kind, parameters), 900), **options)
    assert_same_beside(result, expected)
    assert "findings" in result.provenance["sample"]


def test_of_too_many_cases_the_estimate_is_that_of_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first blocks in the random order of all cases: the same for any partitions."""
    monkeypatch.setattr("wellcal.dask.sampling.AT_HAND", 1000)
    monkeypatch.setattr("wellcal.dask.beside.MOST_NUMBERS", 9000)
    found = example("normal", 2_150)
    options: dict[str, Any] = {"rng": 0, "n_resamples": 9, "method": "regularised", "locations": 2}
    results = [wc.calibration_test(*partitioned(found, size), **options) for size in (700, 1100)]
    first, second = (result.estimate for result in results)
    assert first.n_samples == second.n_samples == 7 * 256
    assert_allclose(float(first), float(second), rtol=1e-10)
    whole = wc.calibration_test(*in_memory(found), **options).estimate
    assert abs(float(first) - float(whole)) < 5.0 * first.standard_error


def test_sums_of_many_classes_come_in_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    found = example("categorical", 2_150)
    options: dict[str, Any] = {"rng": 3, "n_resamples": 150}
    cheap = {"method": Omnibus(pairs=False, locations=2)}
    expected = wc.calibration_test(*in_memory(found), **options, **cheap)
    monkeypatch.setattr("wellcal.dask.testing.MOST_KEPT", 1)
    assert_same_test(wc.calibration_test(*partitioned(found, 1100), **options, **cheap), expected)


def test_ranks_in_several_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    found = example("normal", 2_150)
    options: dict[str, Any] = {
        "rng": 0,
        "n_resamples": 9,
        "method": Omnibus(pairs=False, locations=2, tail_sets=0),
    }
    expected = wc.calibration_test(*partitioned(found, 1100), **options)
    monkeypatch.setattr("wellcal.dask.ranks.BUCKET", 500)
    assert_same_test(wc.calibration_test(*partitioned(found, 600), **options), expected)


def test_few_cases_are_taken_into_memory() -> None:
    found = example("normal", 300)
    for method in ("auto", "pearson", "block"):
        expected = wc.calibration_test(*in_memory(found), rng=1, n_resamples=99, method=method)
        result = wc.calibration_test(*partitioned(found, 120), rng=1, n_resamples=99, method=method)
        assert (result.pvalue, result.statistic) == (expected.pvalue, expected.statistic)
        assert result.provenance == expected.provenance


def test_methods_over_all_pairs_are_refused_for_many_cases() -> None:
    y, pred = partitioned(example("normal", 2_150), 1100)
    for method in ("pearson", "omnibus", "exact"):
        with pytest.raises(ValueError, match=r'not supported for 2,150 cases.*take method="auto"'):
            wc.calibration_test(y, pred, method=method)


def test_threads_change_no_pvalue() -> None:
    found = example("bernoulli", 5_000)
    options: dict[str, Any] = {"rng": 5, "n_resamples": 5}
    expected = wc.calibration_test(*partitioned(found, 2500), **options)
    with dask.config.set(scheduler="threads", num_workers=2):
        assert_same_test(wc.calibration_test(*partitioned(found, 1600), **options), expected)


def test_the_seed_matters() -> None:
    found = partitioned(example("bernoulli", 2_150), 1100)
    values = {wc.calibration_test(*found, rng=seed, n_resamples=9).statistic for seed in (0, 1)}
    assert len(values) == 2
    assert np.all(np.isfinite(list(values)))


@pytest.mark.parametrize("family", ["normal", "draws"])
def test_means_of_blocks(family: str) -> None:
    found = example(family, 2_150)
    for method in ("block", Block(30, quantiles="t")):
        expected = wc.calibration_test(*in_memory(found), method=method)
        result = wc.calibration_test(*partitioned(found, 1100), method=method)
        assert_allclose([result.statistic, result.pvalue], [expected.statistic, expected.pvalue], rtol=1e-8)
        assert_allclose(float(result.estimate), float(expected.estimate), rtol=1e-8)
        assert result.kernel == expected.kernel
        assert result.provenance["blocks"] == expected.provenance["blocks"]
    with pytest.raises(ValueError, match="not supported for 2,150 cases"):
        wc.calibration_test(*partitioned(found, 1100), method=Block(shuffle=True))
    with pytest.raises(ValueError, match="take smaller ones"):
        wc.calibration_test(*partitioned(found, 1100), method="block", block_size=2_150)


@pytest.mark.parametrize(
    "judged",
    [
        partial(wc.calibration_test, n_resamples=2),
        partial(wc.calibration_test, n_resamples=9, method="regularised", locations=2),
        partial(wc.calibration_test, method="block"),
        partial(wc.calibration_test, tolerance=0.1),
        partial(wc.equivalence_test, tolerance=0.1),
    ],
)
def test_outcomes_on_quantiles_are_counted_over_all_cases(
    judged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether those at hand have none of too many, or all of a few that are no matter: as in memory."""
    monkeypatch.setattr("wellcal.dask.sampling.AT_HAND", 300)
    found = example("quantiles", 2_150)
    sampled = as_cases(*partitioned(found, 900)).sampled(300, 0)
    unseen = np.setdiff1d(np.arange(2_150), sampled)[::50]
    said = f"in {len(unseen)} of 2,150 cases, first in row {unseen[0]}:"
    for cases in (partitioned(tied(found, unseen), 900), in_memory(tied(found, unseen))):
        with pytest.raises(wc.RowError, match=said):
            judged(*cases)
    assert judged(*partitioned(tied(found, sampled[:10]), 900)).n_samples == 2_150
