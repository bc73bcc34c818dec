"""Omnibus with clusters: sums with signs by their definition, error rates, and what is impossible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import wellcal as wc
from wellcal.hypotests import Omnibus
from wellcal.hypotests.parts.families import parts_of
from wellcal.hypotests.passes import dense
from wellcal.hypotests.resampling.cluster_signs import (
    draw_ordinary,
    signed_parts,
    signed_skce,
    signs_of,
    without_skewness,
)
from wellcal.hypotests.setup import make_setup

pytestmark = pytest.mark.filterwarnings("ignore:.* clusters are few")
GROUPS = np.arange(60) // 5


def setup_of(seed: int, share: float = 1.0, **options: Any) -> Any:
    """Calibrated normals whose targets go together within clusters of five."""
    rng = np.random.default_rng(seed)
    mu = rng.normal(size=60)
    z = np.sqrt(share) * rng.normal(size=12)[GROUPS] + np.sqrt(1.0 - share) * rng.normal(size=60)
    return make_setup(mu + z, wc.Normal(mu, np.ones(60)), rng=seed, n_resamples=99, **options)


def test_sums_with_signs_by_their_definition() -> None:
    setup = setup_of(0, 0.9, groups=GROUPS)
    parts = parts_of(setup.predictions)
    assert parts is not None
    signs = signs_of(setup, 12)
    assert np.all(signs[0] == 1)
    drawn = draw_ordinary(setup, parts, None, GROUPS)
    seen: list[Any] = []
    parts.statistics = lambda sums: seen.append(sums) or iter(())  # type: ignore[method-assign]
    signed_parts(setup, parts, signs, GROUPS, drawn)
    terms = np.concatenate(list(parts.terms(setup.targets)), axis=1)  # polynomials of mean 0
    by_cluster = np.stack([terms[g == GROUPS].sum(axis=0) for g in range(12)])
    plain = by_definition(signs, by_cluster)
    np.testing.assert_allclose(seen[0][0], plain[0], rtol=1e-9, atol=1e-9)
    spread = np.sqrt(np.sum(by_cluster**2, axis=0))
    factor = np.maximum(drawn.spreads / spread, 1.0)
    np.testing.assert_allclose(seen[0][1:], plain[1:] * factor, rtol=1e-9, atol=1e-9)
    # A mean of clusters varies more than one of independent cases, and is then left as it is.
    assert factor[0] == 1.0
    assert factor.max() > 1.0


def by_definition(signs: Any, terms: Any) -> Any:
    """Hall's transformation of studentised sums, set by set, in units of the sums."""
    out = np.empty((len(signs), terms.shape[1]))
    for r, own in enumerate(signs):
        signed = own[:, None] * terms
        root = np.sqrt(np.sum(signed**2, axis=0))
        t, g = signed.sum(axis=0) / root, stats.skew(signed, axis=0) / np.sqrt(len(terms))
        out[r] = root * (t + g * t**2 / 3.0 + g**2 * t**3 / 27.0 + g / 6.0)
    return out


def test_sums_of_symmetric_terms_are_left_as_they_are() -> None:
    terms = np.array([[-2.0, -1.7], [-1.0, -0.7], [1.0, 1.3], [2.0, 2.3]])  # symmetric about their means
    signs = np.array([[1, 1, 1, 1], [-1, -1, -1, -1]])
    np.testing.assert_allclose(without_skewness(signs, terms), signs @ terms, atol=1e-14)
    skewed = np.random.default_rng(0).exponential(size=(20, 3)) - 1.0
    found = without_skewness(np.array([np.ones(20), -np.ones(20)]), skewed)
    np.testing.assert_allclose(found[0], -found[1], rtol=1e-13)
    assert np.all(without_skewness(np.ones((1, 5)), np.zeros((5, 1))) == 0.0)
    np.testing.assert_allclose(without_skewness(np.ones((1, 5)), np.ones((5, 1))), 5.0)


def test_sums_of_skewed_terms_keep_their_level() -> None:
    """Squares of normals, 50 at a time: sets with signs alone reject in nearly 0.08 of all cases."""
    rng = np.random.default_rng(3)
    terms = rng.normal(size=(50, 2_000)) ** 2 - 1.0  # 2,000 data sets side by side
    signs = np.concatenate([np.ones((1, 50)), rng.choice([-1.0, 1.0], size=(199, 50))])
    rates: list[float] = []
    for sums in (signs @ terms, without_skewness(signs, terms)):
        sizes: Any = np.abs(sums)
        rates.append(float(((sizes >= sizes[0]).mean(axis=0) <= 0.05).mean()))
    assert rates[0] > 0.065
    assert 0.035 < rates[1] < 0.06  # 0.05 and three standard errors below, 0.06 as in the study above


def test_skce_is_taken_between_clusters() -> None:
    setup = setup_of(1, groups=GROUPS)
    signs = signs_of(setup, 12)
    found, sums = signed_skce(setup, signs, GROUPS, 0.5)
    h = dense(setup, "this test") * (GROUPS[:, None] != GROUPS)
    expected = [float(s[GROUPS] @ h @ s[GROUPS]) for s in signs.astype(float)]
    np.testing.assert_allclose(found.values, expected, rtol=1e-9, atol=1e-11)
    assert 2.0 * float(sums.total) == pytest.approx(h.sum(), abs=1e-9)


def test_clusters_of_like_cases_do_not_count_as_more_cases() -> None:
    rejected = {"clustered": 0, "alone": 0}
    for seed in range(60):
        for name, groups in (("clustered", GROUPS), ("alone", None)):
            rejected[name] += Omnibus(most_resamples=0).run(setup_of(seed, groups=groups)).pvalue <= 0.05
    assert rejected["clustered"] <= 12  # 0.09 with so few clusters: more than 12 of 60 once in 1000
    assert rejected["alone"] >= 30


@pytest.mark.parametrize("family", ["classes", "two classes"])
def test_what_cannot_happen_is_found(family: str) -> None:
    p = np.full((60, 3), 1.0 / 3.0)
    p[:30] = [0.5, 0.5, 0.0]
    y = np.tile([0, 1, 1, 0, 2], 12)
    y[:30] = np.tile([0, 1], 15)
    if family == "two classes":
        p, y = np.stack([1.0 - p[:, 2], p[:, 2]], axis=1), (y == 2).astype(int)
    fine = wc.calibration_test(y, wc.Categorical(p), groups=GROUPS, rng=0, n_resamples=199)
    y[0] = p.shape[1] - 1
    found = wc.calibration_test(y, wc.Categorical(p), groups=GROUPS, rng=0, n_resamples=199)
    assert np.isfinite([fine.pvalue, found.pvalue]).all()
    if family == "classes":
        assert found.provenance["pvalues"]["surprise"] == 0.005 < fine.provenance["pvalues"]["surprise"]


@pytest.mark.parametrize("kind", ["Poisson", "Quantiles", "draws", "vectors"])
def test_families_whose_expectations_are_drawn(kind: str) -> None:
    rng = np.random.default_rng(4)
    mu = rng.normal(size=60)
    pairs: dict[str, Any] = {
        "Poisson": (rng.poisson(np.exp(mu)), wc.Poisson(np.exp(mu))),
        "Quantiles": (
            mu + rng.normal(size=60),
            wc.Quantiles([0.25, 0.5, 0.75], mu[:, None] + [-0.67, 0.0, 0.67]),
        ),
        "draws": (mu + rng.normal(size=60), wc.Samples(mu[:, None] + rng.normal(size=(60, 9)))),
        "vectors": (
            mu[:, None] + rng.normal(size=(60, 2)),
            wc.MultivariateNormal(np.stack([mu, mu], axis=1), np.broadcast_to(np.eye(2), (60, 2, 2))),
        ),
    }
    y, pred = pairs[kind]
    found = wc.calibration_test(y, pred, groups=GROUPS, rng=0, n_resamples=199)
    assert found.pvalue > 0.01
    assert min(found.provenance["pvalues"].values()) > 0.005
