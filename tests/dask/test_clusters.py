"""Clustered cases, and tests with a tolerance, in partitions: the numbers of the same cases in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.dask.examples import cut, example, in_memory, partitioned

import wellcal as wc
from wellcal.hypotests import Omnibus

N = 2_150
LABELS = np.random.default_rng(3).integers(0, 500, N)
"""Clusters of some four cases, which lie in several partitions."""


pytestmark = pytest.mark.usefixtures("few_cases_are_many")


@pytest.fixture(autouse=True)
def _few_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of targets from which spreads are known, here as in memory: quicker, and as exact."""
    for room in ("hypotests.resampling.cluster_signs", "dask.clustering"):
        monkeypatch.setattr(f"wellcal.{room}.DRAWN", 19)


def few_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if cases did not fit into memory."""
    monkeypatch.setattr("wellcal.dask.sampling.AT_HAND", 500)


@pytest.mark.parametrize("family", ["normal", "bernoulli", "categorical", "poisson", "vectors", "draws"])
def test_signs_of_clusters(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    few_at_hand(monkeypatch)
    found = example(family, N)
    method = Omnibus(pairs=False, locations=3)
    options: dict[str, Any] = {"rng": 1, "n_resamples": 39, "method": method}
    expected = wc.calibration_test(*in_memory(found), groups=LABELS, **options)
    result = wc.calibration_test(*partitioned(found, 900), groups=cut(LABELS, 750), **options)
    assert (result.pvalue, result.pvalue_floor) == (expected.pvalue, expected.pvalue_floor)
    assert_allclose(result.statistic, expected.statistic, rtol=1e-9)
    for key in ("pvalues", "clusters", "largest_cluster", "null", "no e-value"):
        assert result.provenance[key] == expected.provenance[key]
    assert_allclose(float(result.estimate), float(expected.estimate), rtol=1e-10)
    assert_allclose(result.effect_size, expected.effect_size, rtol=1e-10)
    assert result.n_samples == N


def test_labels_are_texts_or_numbers_in_any_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    few_at_hand(monkeypatch)
    found = example("bernoulli", N)
    options: dict[str, Any] = {"rng": 1, "n_resamples": 99}
    # Numbers with as many digits: texts are in the same order.
    columns = (LABELS + 10_000, (LABELS + 10_000).astype(str), (LABELS + 10_000).astype(object))
    results = [
        wc.calibration_test(*partitioned(found, size), groups=cut(labels, 1100), **options)
        for labels, size in zip(columns, (N, 1100, (1, N - 1)), strict=True)
    ]
    assert len({result.pvalue for result in results}) == 1
    assert "signs of clusters" in results[0].provenance["chosen"]
    alone = wc.calibration_test(*partitioned(found, 1100), groups=cut(np.arange(N), 1100), **options)
    assert alone.pvalue == wc.calibration_test(*in_memory(found), **options).pvalue
    assert "clusters" not in alone.provenance


def test_findings_of_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    y, family, (mu, sigma) = example("normal", N)
    found = mu + 1.4 * (y - mu), family, (mu, sigma)
    options: dict[str, Any] = {"rng": 1, "n_resamples": 19, "method": Omnibus(pairs=False, locations=2)}
    expected = wc.calibration_test(*in_memory(found), groups=LABELS, **options)
    result = wc.calibration_test(*partitioned(found, 1100), groups=cut(LABELS, 1100), **options)
    assert result == expected, "cases that fit into memory are taken there"
    few_at_hand(monkeypatch)
    result = wc.calibration_test(*partitioned(found, 1100), groups=cut(LABELS, 1100), **options)
    assert "spreads are" in str(result.findings[0])


def test_clusters_that_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    few_at_hand(monkeypatch)
    y, pred = partitioned(example("normal", N), 1100)
    labels = cut(LABELS, 1100)
    with pytest.raises(ValueError, match="cannot honour groups"):
        wc.calibration_test(y, pred, groups=labels, method="block")
    with pytest.raises(ValueError, match=r"Multiplier.*not supported for 2,150 cases"):
        wc.calibration_test(y, pred, groups=labels, method="multiplier")
    with pytest.raises(ValueError, match="at least 2 clusters"):
        wc.calibration_test(y, pred, groups=cut(np.zeros(N), 1100))
    gaps = LABELS.astype(float)
    gaps[1103] = np.nan
    with pytest.raises(ValueError, match="partition 1: groups has no value in row 3"):
        wc.calibration_test(y, pred, groups=cut(gaps, 1100))
    monkeypatch.setattr("wellcal.dask.clustering.MOST_SIGNS", 10_000)
    with pytest.raises(ValueError, match="more signs than fit into memory; take n_resamples="):
        wc.calibration_test(y, pred, groups=labels, n_resamples=99)


@pytest.mark.parametrize("family", ["normal", "draws"])
def test_a_tolerance(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of cases that fit into memory, and of others, whose estimate is that over blocks in memory too."""
    monkeypatch.setattr("wellcal.hypotests.setup.ESTIMATE_BUDGET", 1.0)  # blocks, as of a million cases
    found = example(family, N)
    y, pred = partitioned(found, 900)
    tests = (wc.calibration_test, wc.equivalence_test)
    in_one_piece = [test(*in_memory(found), tolerance=0.02) for test in tests]
    for whole in (True, False):
        if not whole:
            few_at_hand(monkeypatch)
        for test, expected in zip(tests, in_one_piece, strict=True):
            result = test(y, pred, tolerance=0.02)
            assert type(result) is type(expected)
            assert (result.hypothesis, result.n_samples) == (expected.hypothesis, N)
            numbers = [(r.pvalue, r.statistic, r.low, r.high, r.effect_size) for r in (result, expected)]
            assert_allclose(*numbers, rtol=1e-8)
            assert ("partitions" in result.provenance) is not whole


def test_a_tolerance_with_clusters_needs_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    found = example("normal", 600)
    labels = LABELS[:600] // 20
    expected = wc.equivalence_test(*in_memory(found), groups=labels, tolerance=0.1)
    result = wc.equivalence_test(*partitioned(found, 200), groups=cut(labels, 200), tolerance=0.1)
    assert result == expected
    monkeypatch.setattr("wellcal.dask.sampling.AT_HAND", 100)
    with pytest.raises(ValueError, match=r"groups is not supported .*sample_cases"):
        wc.equivalence_test(*partitioned(found, 200), groups=cut(labels, 200), tolerance=0.1)
    with pytest.raises(ValueError, match="tolerance has no meaning for method"):
        wc.calibration_test(*partitioned(found, 200), method="block", tolerance=0.1)


@pytest.mark.parametrize("n", [250, 600])
def test_a_tolerance_of_few_wide_cases_has_blocks_enough(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of the usual size would be one or two, and their mean not known at all."""
    found = example("normal", n)
    monkeypatch.setattr("wellcal.dask.sampling.AT_HAND", 200)
    result = wc.equivalence_test(*partitioned(found, 100), tolerance=0.02)
    assert result.estimate.provenance["blocks"] >= 100
    memory = wc.equivalence_test(*in_memory(found), tolerance=0.02)
    spread = np.hypot(result.estimate.standard_error, memory.estimate.standard_error)
    assert abs(result.estimate.value - memory.estimate.value) < 4.0 * spread
    assert result.pvalue > 0.05


def test_a_tolerance_needs_a_hundred_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which cases that are too wide for memory have, too."""
    monkeypatch.setattr("wellcal.dask.sampling.AT_HAND", 200)
    monkeypatch.setattr("wellcal.dask.beside.MOST_NUMBERS", 100)  # as of very wide predictions
    result = wc.equivalence_test(*partitioned(example("normal", 5000), 2000), tolerance=0.02)
    assert result.estimate.provenance["blocks"] == 100
    monkeypatch.setattr("wellcal.dask.sampling.AT_HAND", 50)
    with pytest.raises(ValueError, match="needs at least 100 of them, so 200 cases, found 150 cases"):
        wc.equivalence_test(*partitioned(example("normal", 150), 100), tolerance=0.02)


def test_the_target_is_no_cluster() -> None:
    found = example("categorical", N)
    with pytest.raises(ValueError, match="groups is the target itself"):
        wc.calibration_test(*partitioned(found, 1100), groups=cut(found[0], 1100), rng=0, n_resamples=19)
