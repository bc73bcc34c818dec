"""Asymptotic methods warn where few cases carry their statistic, and are silent where many do."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.hypotests import MeanEmbedding, Pearson
from wellcal.hypotests.few_cases import directions_of, effective_cases
from wellcal.hypotests.setup import make_setup
from wellcal.kernels import paper_kernel

sys.path.insert(0, str(Path(__file__).parents[3]))  # benchmarks are not part of the installed package

from benchmarks.data_sets import HARD, QUANTILES, hard, synthetic

SETS = 5
RARE = [name for name in HARD if name.startswith(("Bernoulli", "Poisson"))]


def told(y: Any, pred: Any, method: Any, **options: Any) -> list[str]:
    """What a test warns of; a refusal is one, too."""
    with warnings.catch_warnings(record=True, action="always") as seen:
        try:
            wc.calibration_test(y, pred, method=method, rng=0, n_resamples=99, **options)
        except ValueError as error:
            return [str(error)]
    return [str(warning.message) for warning in seen]


@pytest.mark.parametrize("setting", [*HARD, QUANTILES])
@pytest.mark.parametrize("reference", ["F", "chi2"])
def test_limits_of_cme_warn(setting: str, reference: str) -> None:
    for seed in range(SETS):
        found = told(*hard(setting, 30, np.random.default_rng(seed)), MeanEmbedding(reference=reference))
        assert len(found) == 1
        assert f'reference="{reference}": ' in found[0]
        assert 'reference="exact"' in found[0]


@pytest.mark.parametrize("setting", [*HARD, QUANTILES])
def test_the_default_has_nothing_to_warn_of(setting: str) -> None:
    assert not told(*hard(setting, 30, np.random.default_rng(0)), "cme")


@pytest.mark.parametrize("setting", RARE)
def test_pearson_warns(setting: str) -> None:
    for seed in range(SETS):
        found = told(*hard(setting, 30, np.random.default_rng(seed)), "pearson")
        assert len(found) == 1
        assert "n SKCE_u is carried by few cases" in found[0]
        assert 'method="exact"' in found[0]


@pytest.mark.parametrize("traces", ["exact", "hutchinson"])
@pytest.mark.parametrize(("together", "warns"), [(3, True), (100, False)])
def test_pearson_warns_where_few_of_many_meet(traces: str, together: int, warns: bool) -> None:
    """All others are alone, and have h_ii as large."""
    loc = 100.0 * np.arange(500.0)
    loc[:together] = 0.0
    y = np.random.default_rng(0).normal(loc)
    found = told(y, wc.Normal(loc, np.ones(500)), Pearson(traces=traces), kernel=paper_kernel)
    assert len(found) == warns
    assert all("n SKCE_u is carried by few cases: it varies as that of" in said for said in found)


@pytest.mark.parametrize("n", [64, 256])
@pytest.mark.parametrize("d", [1, 10])
def test_pearson_is_silent_in_the_paper_s_setting(d: int, n: int) -> None:
    for seed in range(3):
        case = synthetic("calibrated", d, n, np.random.default_rng(seed))
        assert not told(*case, "pearson", kernel=paper_kernel)


@pytest.mark.parametrize(("d", "n", "warns"), [(10, 64, False), (10, 256, False), (1, 64, True)])
def test_limits_of_cme_in_the_paper_s_setting(d: int, n: int, warns: bool) -> None:
    """In ten dimensions they hold from 64 cases on; in one, F rejects 0.3 of calibrated models there."""
    found = [
        told(
            *synthetic("calibrated", d, n, np.random.default_rng(seed)),
            MeanEmbedding(reference="F"),
            kernel=paper_kernel,
        )
        for seed in range(SETS)
    ]
    assert sum(map(bool, found)) == (SETS if warns else 0)


# -- how many cases ---------------------------------------------------------------------------------


def test_effective_cases_of_two_classes_by_hand() -> None:
    p = np.array([0.5, 0.1, 0.001, 0.2])
    kernel = wc.kernels.ExpDistance(wc.kernels.TotalVariation()) @ wc.kernels.Delta()
    setup = make_setup(np.zeros(4, dtype=int), wc.Bernoulli(p), kernel)
    # h_ii is twice the squared distance of the target from the probability.
    first = np.sum(2 * p * (1 - p) ** 2 + 2 * (1 - p) * p**2)
    second = np.sum(4 * p * (1 - p) ** 4 + 4 * (1 - p) * p**4)
    assert effective_cases(setup) == pytest.approx(first**2 / second, rel=1e-9)


@pytest.mark.parametrize("targets", [0, 1])
def test_observed_targets_do_not_matter(targets: int) -> None:
    pred = wc.Bernoulli(np.full(40, 0.01))
    found = effective_cases(make_setup(np.full(40, targets), pred))
    assert found == pytest.approx(0.4, rel=0.05)


def test_counts_are_enumerated_or_drawn() -> None:
    few, many = (effective_cases(make_setup(np.zeros(40), wc.Poisson(np.full(40, m)))) for m in (1e-6, 20.0))
    assert few < 1e-3
    assert 10.0 < many <= 40.0


def test_without_draws_what_was_observed_counts() -> None:
    class Unsampled(wc.Normal):
        def supports(self, what: str) -> bool:
            return what != "sample" and super().supports(what)

    y = np.zeros(40)
    y[0] = 50.0
    setup = make_setup(y, Unsampled(np.zeros(40), np.ones(40)))
    h = setup.diagonal
    assert effective_cases(setup) == pytest.approx(h.sum() ** 2 / (h**2).sum())


def test_cases_in_a_direction() -> None:
    rng = np.random.default_rng(0)
    normal = directions_of(rng.normal(size=(2000, 6)) @ rng.normal(size=(6, 6)))
    assert normal.cases == pytest.approx(2000 / 8, rel=0.1)
    assert abs(normal.excess) < 1e-3
    one = np.zeros((50, 3))
    one[[3, 7, 20], [0, 1, 2]] = 1.0
    single = directions_of(one)
    assert single.cases == pytest.approx(1.0, rel=0.1)
    assert single.few
    assert directions_of(np.ones((9, 2))).few


def test_copies_of_locations_are_no_directions() -> None:
    x = np.random.default_rng(0).normal(size=(100, 3))
    twice = directions_of(np.concatenate([x, x, np.zeros((100, 1))], axis=1))
    assert twice.cases == pytest.approx(directions_of(x).cases, rel=1e-9)


def test_point_predictions_are_tested() -> None:
    """Normals without a spread have no features that could differ: arrays of rows may be empty."""
    mu = np.random.default_rng(0).normal(size=120)
    points = wc.Normal(mu, np.zeros(120))
    assert wc.calibration_test(mu + 0.5, points, rng=0, n_resamples=99).pvalue <= 0.05
    assert wc.calibration_test(mu, points, rng=0, n_resamples=99).pvalue == 1.0
