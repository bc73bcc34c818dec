"""How large an error is: intervals that hold at zero, tests with a tolerance, yardsticks."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import wellcal as wc
from wellcal._arrays.chunks import limited
from wellcal.hypotests.findings.sizes import surely_not_slight
from wellcal.measures import deviations, yardstick
from wellcal.measures.deviations import Cases, deviations_of
from wellcal.measures.error_scale import Scale, scale_of
from wellcal.measures.wording import error_phrase, percent, wrong_by
from wellcal.predictions.misspecification import draw_misspecified, kind_of_error, kinds_for, misspecified
from wellcal.problem.alternatives import OnAverage
from wellcal.problem.problem import prepare

RNG = np.random.default_rng(20)
N = 60
MU = RNG.normal(size=N)
Y = RNG.normal(MU, 1.0)
HONEST, SHARP = wc.Normal(MU, np.ones(N)), wc.Normal(MU, np.full(N, 0.4))
KERNEL = wc.default_kernel(HONEST)


def families(n: int = 40) -> dict[str, wc.Predictions]:
    rng = np.random.default_rng(21)
    mu, positive = rng.normal(size=n), rng.gamma(2.0, 2.0, n)
    scores = np.array([-1.28, -0.52, 0.0, 0.52, 1.28])
    return {
        "Normal": wc.Normal(mu, np.ones(n)),
        "Laplace": wc.Laplace(mu, np.ones(n)),
        "StudentT": wc.StudentT(3.0, mu, np.ones(n)),
        "Bernoulli": wc.Bernoulli(rng.uniform(0.05, 0.95, n)),
        "Categorical": wc.Categorical(rng.dirichlet(np.ones(3), n)),
        "Poisson": wc.Poisson(positive),
        "Gamma": wc.Gamma(positive, np.ones(n)),
        "DiagonalNormal": wc.DiagonalNormal(rng.normal(size=(n, 2)), np.ones((n, 2))),
        "MultivariateNormal": wc.MultivariateNormal(rng.normal(size=(n, 2)), np.tile(np.eye(2), (n, 1, 1))),
        "Samples": wc.Samples(mu[:, None] + rng.normal(size=(n, 15))),
        "Mixture": wc.Mixture([wc.Normal(mu - 1.0, 0.5), wc.Normal(mu + 1.0, np.ones(n))]),
        "Quantiles": wc.Quantiles([0.1, 0.3, 0.5, 0.7, 0.9], mu[:, None] + scores),
    }


# -- intervals ---------------------------------------------------------------------------------------------


def matrix(y: np.ndarray, pred: wc.Predictions, kernel: wc.kernels.Kernel) -> np.ndarray:
    n = len(pred)
    return np.asarray(prepare(y, pred, kernel).values(slice(0, n), slice(0, n)))


def test_distances_are_those_of_the_written_formula() -> None:
    """Multipliers of the centred matrix, with another loop and the same random numbers."""
    found = deviations_of(Cases(Y, SHARP, KERNEL))
    h = matrix(Y, SHARP, KERNEL)
    centred = h - h.mean(axis=0) - h.mean(axis=1)[:, None] + h.mean()
    drawn = np.random.default_rng(0).standard_normal((999, N))
    expected = [np.sqrt(e @ centred @ e / N**2 * N / (N - 1.0)) for e in drawn]
    assert_allclose(found.multipliers, expected, rtol=1e-9)
    assert found.root == pytest.approx(np.sqrt(h.mean()), rel=1e-12)
    assert found.root == pytest.approx(float(wc.kce(Y, SHARP, kernel=KERNEL)), rel=1e-12)
    assert found.largest == pytest.approx(np.linalg.eigvalsh(centred)[-1] / N / (N - 1.0), rel=1e-6)


def test_drawn_targets_have_the_kce_of_one_data_set_each() -> None:
    found = deviations_of(Cases(Y, SHARP, KERNEL))
    sets = SHARP.draw(np.random.default_rng(0), len(found.drawn))
    for k in (0, 7, 998):
        assert found.drawn[k] == pytest.approx(float(wc.kce(sets[k], SHARP, kernel=KERNEL)), rel=1e-9)


def test_intervals_are_roots_and_squares() -> None:
    square, root = wc.skce(Y, SHARP, kernel=KERNEL), wc.kce(Y, SHARP, kernel=KERNEL)
    of_square, of_root = square.confidence_interval(), root.confidence_interval()
    assert_allclose((of_root.low**2, of_root.high**2), (of_square.low, of_square.high), rtol=1e-12)
    assert of_square == wc.skce(Y, SHARP, kernel=KERNEL, estimator="biased").confidence_interval()
    assert of_root.low < float(root) < of_root.high
    wider = root.confidence_interval(0.99)
    assert wider.low <= of_root.low < of_root.high < wider.high
    assert wc.kce(Y, HONEST).confidence_interval().low == 0.0
    assert of_root.method == "mean embedding"


def test_levels_beyond_the_resolution_take_a_bound() -> None:
    found = deviations_of(Cases(Y, SHARP, KERNEL))
    radii = [found.radius(level) for level in (0.5, 0.95, 0.999, 0.9999, 1.0 - 1e-9)]
    assert radii == sorted(radii)
    assert radii[-2] > found.multipliers.max()
    assert found.pvalue(-1.0) == 1.0
    assert found.pvalue(1e9) == found.floor == 1.0 / 1000.0


def test_the_pvalue_is_the_smallest_alpha_that_excludes() -> None:
    found = deviations_of(Cases(Y, SHARP, KERNEL))
    for distance in np.quantile(found.multipliers, [0.3, 0.9, 0.97]):
        p = found.pvalue(distance)
        assert found.radius(1.0 - p) <= distance < found.radius(1.0 - p + 0.5 / 1000.0)


def test_equal_weights_are_none_and_weights_of_zero_leave_out() -> None:
    plain = wc.skce(Y, SHARP, kernel=KERNEL).confidence_interval()
    assert_allclose(
        (plain.low, plain.high),
        (lambda i: (i.low, i.high))(
            wc.skce(Y, SHARP, kernel=KERNEL, weights=np.full(N, 3.0)).confidence_interval()
        ),
        rtol=1e-9,
    )
    weights = np.where(np.arange(N) < 40, 1.0, 0.0)
    some = deviations_of(Cases(Y, SHARP, KERNEL, weights=weights))
    alone = deviations_of(Cases(Y[:40], SHARP[:40], KERNEL))
    assert some.root == pytest.approx(alone.root, rel=1e-12)
    assert some.total == pytest.approx(alone.total, rel=1e-12)


def test_clusters_of_one_case_change_only_what_is_drawn() -> None:
    singles = deviations_of(Cases(Y, SHARP, KERNEL, groups=np.arange(N)))
    assert_allclose(singles.multipliers, deviations_of(Cases(Y, SHARP, KERNEL)).multipliers, rtol=1e-9)
    assert singles.drawn is None
    twice = np.concatenate([Y, Y]), wc.Normal(np.concatenate([MU, MU]), 0.4), np.tile(np.arange(N), 2)
    pairs = deviations_of(Cases(twice[0], twice[1], KERNEL, groups=twice[2]))
    assert_allclose(pairs.multipliers, singles.multipliers, rtol=1e-9)


def test_many_cases_take_a_part_of_them_and_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(22)
    mu = rng.normal(size=600)
    y, pred = rng.normal(mu, 1.0), wc.Normal(mu, np.full(600, 0.7))
    kernel = wc.default_kernel(pred)
    whole = deviations_of(Cases(y, pred, kernel))
    monkeypatch.setattr(deviations, "MOST_CASES", 200)
    for estimate in (wc.skce(y, pred, kernel=kernel), wc.kce(y, pred, kernel=kernel)):
        part = estimate.deviations()
        assert part is not None
        assert part.root == pytest.approx(whole.root, rel=1e-9), "the estimate is that of all pairs"
        assert part.radius(0.95) == pytest.approx(whole.radius(0.95), rel=0.15)


def test_intervals_travel_and_cases_do_not() -> None:
    estimate = wc.kce(Y, SHARP)
    interval = estimate.confidence_interval()
    back = wc.Estimate.from_json(estimate.to_json())
    assert (back, back.confidence_interval(), back.cases) == (estimate, interval, None)
    with pytest.raises(ValueError, match="no standard error is known"):
        back.confidence_interval(0.9)
    assert pickle.loads(pickle.dumps(estimate)).confidence_interval(0.9).high < interval.high


def test_later_changes_of_targets_change_nothing() -> None:
    y = Y.copy()
    estimate = wc.skce(y, SHARP)
    y[:] = 0.0
    assert estimate.confidence_interval() == wc.skce(Y, SHARP).confidence_interval()


def test_one_case_has_no_interval() -> None:
    with pytest.raises(ValueError, match="an interval needs at least 2 cases that count, found 1"):
        wc.kce(Y[:1], SHARP[:1]).confidence_interval()


def test_sets_in_small_parts_are_the_same() -> None:
    whole = deviations_of(Cases(Y, SHARP, KERNEL))
    with limited(work=5_000):
        parts = deviations_of(Cases(Y, SHARP, KERNEL))
    assert_allclose(parts.drawn, whole.drawn, rtol=1e-12)


# -- alternatives ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", families())
def test_expected_errors_are_those_of_drawn_targets(name: str) -> None:
    """E h over pairs beside unbiased estimates of targets that are drawn from the truth."""
    pred = families()[name]
    kind = kind_of_error(pred)
    assert kind is not None
    kernel = wc.default_kernel(pred)
    expected = OnAverage(pred, kernel).root(misspecified(pred, kind, 0.5))
    labels = pred.labels() if name in ("Bernoulli", "Categorical") else None
    sets = draw_misspecified(pred, kind, 0.5, np.random.default_rng(23), 60)
    values = [
        float(wc.skce(targets if labels is None else labels[targets], pred, kernel=kernel))
        for targets in sets
    ]
    error = np.std(values) / np.sqrt(len(values))
    # Few atoms stand for families without closed forms, and draws are not their distribution.
    slack = 0.15 if name in ("StudentT", "Samples") else 0.02
    assert np.mean(values) == pytest.approx(expected**2, abs=4.0 * error + slack * expected**2)


@pytest.mark.parametrize(
    "name", [name for name in families() if name not in ("StudentT", "Gamma", "Laplace")]
)
def test_yardsticks_find_the_error_that_was_made(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deviations, "DRAWN_BUDGET", 0.0)  # drawn targets matter near zero only
    pred = families(200)[name]
    kind = kind_of_error(pred)
    assert kind in kinds_for(pred)
    for ratio in (0.4, 2.5):
        y = draw_misspecified(pred, kind, ratio, np.random.default_rng(24), 1)[0]
        found = wc.skce(
            pred.labels()[y] if kind == "temperature" and pred.target_kind == "labels" else y, pred
        )
        yardstick = found.yardstick
        assert yardstick is not None
        assert yardstick.kind == kind
        assert (yardstick.ratio < 1.0) == (ratio < 1.0), "the side that the data are on"
        assert abs(np.log(yardstick.low)) < abs(np.log(ratio)) < abs(np.log(yardstick.high)) + 1e-9


def test_the_scale_is_inverted() -> None:
    scale = scale_of(wc.skce(Y, SHARP, kernel=KERNEL).cases)
    assert scale is not None
    assert scale.side == -1
    seen = OnAverage(SHARP, KERNEL)
    for ratio in (0.97, 0.83, 0.5, 0.2):
        assert scale.ratio(seen.root(misspecified(SHARP, "spreads", ratio))) == pytest.approx(ratio, rel=0.01)
    assert scale.ratio(0.0) == 1.0
    assert scale.ratio(1e9) == pytest.approx(0.1)
    assert Scale("spreads", 1, np.zeros(10)).ratio(0.1) == 1.0


def test_yardsticks_in_words() -> None:
    found = wc.calibration_test(Y, SHARP, rng=0, method="exact", n_resamples=99).yardstick
    assert found is not None
    assert found.sentence.startswith("as far off as a model whose spreads are ")
    assert found.size == "strong"
    assert [wc.Yardstick("spreads", r, 1.0, r).size for r in (0.96, 0.9, 1.3)] == [
        "slight",
        "moderate",
        "strong",
    ]
    assert wc.Yardstick("means", 0.1, 0.3, 0.1, beyond=True).sentence == (
        "further off than a model whose means are 90% too small (70% to 90% or more)"
    )
    large = [wc.Yardstick("spreads", *ratios) for ratios in ((3.41, 1.62, 9.0), (1.45, 1.06, 5.3))]
    assert [one.sentence.removeprefix("as far off as a model whose ") for one in large] == [
        "spreads are 3.4 times too large (1.6 to 9 times)",
        "spreads are 45% too large (6% to 430%)",
    ]
    # An estimate of zero has no direction.
    assert wc.Yardstick("spreads", 1.0, 1.0, 1.32).sentence == (
        "as far off as a model whose spreads are right, or 32% wrong at most"
    )
    # With both directions in the interval both are told.
    both = wc.Yardstick("spreads", 1.0, 1.0, 1.32, other=(1.0, 1.0, 0.8))
    assert both.sentence == (
        "as far off as a model whose spreads are right, or 32% too large or 20% too small at most"
    )
    other = wc.Yardstick("temperature", 1.05, 1.0, 1.1, other=(0.9, 1.0, 0.7))
    assert other.most_words() == "30% too low or 10% too high at most"
    known = wc.Yardstick("spreads", 0.8, 0.9, 0.7, other=(1.2, 1.1, 1.4))
    assert known.most_words() == "30% too small at most"
    assert error_phrase("shift", 0.25) == "targets are 0.25 standard deviations too high"
    assert percent(1.5) == "150%"
    assert wc.Yardstick.from_json(found.to_json()) == found


@pytest.mark.parametrize("ratio", [0.05, 0.6, 0.97, 1.02, 1.5, 1.99, 2.0, 4.0, 60.0])
def test_both_ends_of_an_interval_are_in_the_unit_of_its_middle(ratio: float) -> None:
    for near, far in ((1.1, 1.2), (1.3, 6.0), (1.05, 300.0), (2.5, 3.0)):
        for low, high in ((ratio / near, ratio * far), (ratio / far, ratio * near)):
            told, ends = error_phrase("spreads", ratio), wrong_by(low, high, ratio)
            assert ("times" in told) == ("times" in ends), ends
            assert ("%" in told) == ("%" in ends), ends


@pytest.mark.parametrize("probability", [0.5, 1.0])
def test_an_error_that_temperature_does_not_show_has_no_yardstick(probability: float) -> None:
    """A coin stays one at any temperature, which says nothing of how far off it is."""
    wrong, coin = np.zeros(N, dtype=int), wc.Bernoulli(np.full(N, probability))
    assert wc.calibration_test(wrong, coin, rng=0, n_resamples=99).yardstick is None
    verdict = wc.equivalence_test(wrong, coin, tolerance=2.0).verdict
    assert verdict.startswith("Calibrated within the tolerance: at 95% confidence KCE is below ")
    assert "as if" not in verdict


def test_ends_beyond_the_scale_are_bounds() -> None:
    far = wc.equivalence_test(Y + 5.0, HONEST, tolerance=5.0)
    found = far.estimate.yardstick
    assert found is not None
    assert found.high_beyond
    assert found.sentence.endswith("or more)")
    assert "at most" not in far.verdict
    within = wc.Yardstick("spreads", 0.98, 1.0, 0.96)
    assert within.slight
    assert not wc.Yardstick("spreads", 0.98, 1.0, 0.84).slight, "moderate at the end of its interval"
    assert not wc.Yardstick("spreads", 0.98, 1.0, 0.96, other=(1.02, 1.0, 1.2)).slight, "on the other side"
    assert not wc.Yardstick("spreads", 0.98, 1.0, 0.96, high_beyond=True).slight
    means = wc.Yardstick("means", 0.98, 0.984, 0.976, unit=10.0)
    assert (means.word, means.slight) == ("slight", True)
    many = replace(means, unit=70.0)  # counts of about 5,000
    assert (many.word, many.slight) == ("strong", False)
    assert many.sentence.endswith("means are 2.0% too small (1.6% to 2.4%), which is 1.4 standard deviations")
    assert replace(means, unit=11.0).word == "slight or more", "at the end of its interval"
    assert wc.Yardstick("spreads", 0.98, 1.0, 0.98, beyond=True).size == "strong"
    stored = within.to_dict()
    stored.pop("high_beyond")
    assert wc.Yardstick.from_dict(stored) == within, "as stored before"


def test_the_word_of_a_size_does_not_depend_on_the_side_that_is_told_first():
    """17% too small and 25% too large are as far off: the smaller one decides where there is no direction."""
    small, large = (0.83, 0.89, 0.76), (1.25, 1.14, 1.44)
    told = [
        wc.Yardstick("spreads", *own, other=other, directed=False)
        for own, other in ((small, large), (large, small))
    ]
    assert [one.word for one in told] == ["moderate", "moderate"]
    assert [told[0].towards(side).word for side in (-1, 1)] == ["moderate", "strong"]
    beyond = wc.Yardstick("spreads", 10.0, 1.1, 10.0, 0.95, True, True, small, directed=False)
    assert beyond.size == "moderate", "an error to the other side is no further off"


def test_yardsticks_are_stored_once_they_were_asked_for() -> None:
    estimate = wc.skce(Y, SHARP)
    assert wc.Estimate.from_json(estimate.to_json()).yardstick is None
    found = estimate.yardstick
    assert found is not None
    assert wc.Estimate.from_json(estimate.to_json()).yardstick == found


def test_results_that_reject_store_theirs() -> None:
    """They print it: what is read again must read the same."""
    result = wc.calibration_test(Y, SHARP, method="exact", rng=0, n_resamples=99)
    assert wc.TestResult.from_json(result.to_json()).yardstick == result.yardstick


def test_no_yardstick_where_there_is_no_such_error() -> None:
    words = wc.Samples([["a", "b"], ["b", "b"], ["a", "a"]])
    assert kind_of_error(words) is None
    assert kinds_for(words) == []
    assert wc.brier([1, 0], np.array([0.4, 0.3])).yardstick is None


# -- tolerances --------------------------------------------------------------------------------------------


def test_both_hypotheses_read_one_interval() -> None:
    interval = wc.kce(Y, SHARP).confidence_interval()
    for tolerance in (0.5 * interval.low, 0.9 * interval.high, 1.2 * interval.high):
        beyond = wc.calibration_test(Y, SHARP, tolerance=tolerance)
        within = wc.equivalence_test(Y, SHARP, tolerance=tolerance)
        assert (beyond.low, beyond.high) == pytest.approx((interval.low, interval.high), rel=1e-9)
        assert (beyond.pvalue <= 0.05) == (tolerance < interval.low)
        assert (within.pvalue <= 0.05) == (tolerance > interval.high)
        assert max(beyond.pvalue, within.pvalue) == 1.0
        found = wc.kce(Y, SHARP).deviations()
        distance = found.root - tolerance
        assert (beyond.pvalue, within.pvalue) == (found.pvalue(distance), found.pvalue(-distance))


def test_verdicts() -> None:
    sharp = wc.calibration_test(Y + 3.0, SHARP, tolerance=0.02)
    assert sharp.verdict.startswith("Miscalibrated beyond the tolerance (p <= 0.001, the smallest that")
    assert repr(sharp).splitlines()[0] == sharp.verdict
    honest = wc.equivalence_test(Y, HONEST, tolerance=1.0)
    assert honest.verdict.startswith("Calibrated within the tolerance: at 95% confidence KCE is below 0.")
    assert honest.verdict.endswith(
        "0.182, as if spreads were 54% too small at most, or 10 times too large or more: "
        "the tolerance is a large one."
    )
    assert "may be as large as" in wc.equivalence_test(Y, HONEST, tolerance=0.01).verdict
    assert "No miscalibration beyond" in wc.calibration_test(Y, HONEST, tolerance=0.01).verdict
    back = wc.ToleranceResult.from_json(honest.to_json())
    assert back == honest
    assert repr(back) == repr(honest)


def test_many_cases_take_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wellcal.hypotests.setup.ESTIMATE_BUDGET", 1.0)
    some = np.arange(250) % N
    y, pred = Y[some] + 2.0, SHARP[some]
    sharp = wc.calibration_test(y, pred, tolerance=1e-3)
    assert (sharp.estimate.estimator, sharp.estimate.blocks) == ("block", 125)
    assert sharp.pvalue_floor is None
    assert sharp.pvalue < 0.05 < wc.equivalence_test(y, pred, tolerance=1e-3).pvalue
    assert sharp.yardstick is not None
    # The p-value and the interval are those of the same law.
    end = sharp.estimate.confidence_interval(1.0 - 2.0 * sharp.pvalue).low
    assert end == pytest.approx(1e-6, abs=1e-9)


def test_few_cases_have_no_blocks_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """All their pairs are visited, whatever that takes."""
    monkeypatch.setattr("wellcal.hypotests.setup.ESTIMATE_BUDGET", 1.0)
    some = np.arange(199) % N
    assert wc.equivalence_test(Y[some], SHARP[some], tolerance=0.1).estimate.estimator == "unbiased"


def test_one_cluster_says_nothing() -> None:
    with pytest.raises(ValueError, match="groups must name at least 2 clusters"):
        wc.equivalence_test(Y, HONEST, tolerance=0.3, groups=np.zeros(N))


def test_clusters_are_honoured() -> None:
    groups = np.arange(N) // 3
    alone, clustered = (wc.equivalence_test(Y, HONEST, tolerance=0.3, groups=g) for g in (None, groups))
    assert clustered.high != alone.high


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": -0.1}, "tolerance must be a KCE, a finite number above 0, found -0.1"),
        ({"tolerance": np.inf}, "tolerance must be a KCE"),
        ({"tolerance": 0.1, "method": "exact"}, "tolerance has no meaning for method='exact'"),
        ({"tolerance": 0.1, "locations": 3}, "locations has no meaning with tolerance"),
        ({"tolerance": 0.1, "kernel": [KERNEL, KERNEL]}, "a list of kernels has no meaning with tolerance"),
    ],
)
def test_what_is_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wc.calibration_test(Y, HONEST, **options)


def test_a_tolerance_is_a_number() -> None:
    with pytest.raises(TypeError, match="tolerance must be a number"):
        wc.equivalence_test(Y, HONEST, tolerance="small")


@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("family", ["normals", "draws", "counts", "quantiles"])
def test_the_direction_of_a_small_error_is_that_of_many_cases(family: str, seed: int) -> None:
    """250 cases do not show in which direction spreads are 3% off; 8,000 do."""
    rng, n, ratio = np.random.default_rng(seed), 8000, (0.97, 1.03)[seed % 2]
    mu = rng.normal(size=n)
    y, pred = {
        "normals": lambda: (rng.normal(mu, 1.0), wc.Normal(mu, np.full(n, ratio))),
        "draws": lambda: (rng.normal(mu, 1.0), wc.Samples(rng.normal(mu[:, None], ratio, (n, 20)))),
        "counts": lambda: (rng.poisson(4.0, n), wc.Poisson(np.full(n, 4.0 * ratio))),
        "quantiles": lambda: (
            rng.normal(mu, 1.0),
            wc.Quantiles([0.1, 0.5, 0.9], mu[:, None] + ratio * np.array([-1.2816, 0.0, 1.2816])),
        ),
    }[family]()
    scale = scale_of(Cases(pred.check_targets(y), pred, wc.default_kernel(pred)))
    assert scale is not None
    assert scale.side == (1 if ratio > 1.0 else -1)


def test_a_small_share_of_large_counts_is_not_slight() -> None:
    """At 2% more than predicted, 90% intervals of counts around 10,000 hold hardly any."""
    mean = np.linspace(9e3, 1.1e4, 30)
    y = np.random.default_rng(0).poisson(1.02 * mean)
    found = wc.calibration_test(y, wc.Poisson(mean), n_resamples=99)
    assert "slightly" not in found.verdict
    assert found.yardstick is not None
    assert found.yardstick.word == "strong"
    assert wc.TestResult.from_json(found.to_json()).verdict == found.verdict
    certain = wc.Poisson(np.append(mean, np.zeros(30)))  # of which no share is anything
    with_zeros = wc.calibration_test(np.append(y, np.zeros(30)), certain, n_resamples=99)
    assert_allclose([finding.unit for finding in with_zeros.findings], np.sqrt(mean).mean())


@pytest.mark.parametrize(
    ("ratio", "ends", "told"),
    [(0.972, (0.971, 0.973), "2.8%"), (2.034, (2.031, 2.038), "2.034 times"), (0.98, (0.97, 1.03), "2%")],
)
def test_sizes_are_told_as_finely_as_their_intervals(
    ratio: float, ends: tuple[float, float], told: str
) -> None:
    """Of many cases "3% (2.7% to 2.9%)" would lie outside its own interval."""
    way = "small" if ratio < 1.0 else "large"
    assert error_phrase("spreads", ratio, ends=ends) == f"spreads are {told} too {way}"
    assert f" {told} too {way} (" in wc.Yardstick("means", ratio, *ends).sentence
    assert error_phrase("shift", -0.3132, ends=(-0.314, -0.312)).startswith("targets are 0.313 ")


def test_an_error_is_called_slight_where_its_interval_is_short() -> None:
    for high, word in ((0.96, "slight"), (0.9, "slight or more")):
        assert repr(wc.Yardstick("spreads", 0.97, 1.0, high)).endswith(f"size  {word}")
    assert repr(wc.Yardstick("spreads", 0.7, 0.9, 0.5)).endswith("size  strong")


def test_an_interval_with_all_sizes_says_none() -> None:
    """Not "further off than 90%, from 0% on", nor "right, or 90% wrong"."""
    all_sizes = "as far off as a model whose temperature is anything between right and 90% wrong or more"
    for ratio, beyond in ((0.1, True), (1.0, False)):
        found = wc.Yardstick("temperature", ratio, 1.0, 0.1, beyond=beyond, high_beyond=True)
        assert found.sentence == all_sizes
        assert found.word == "not known"
    known = wc.Yardstick("temperature", 0.1, 0.6, 0.1, beyond=True, high_beyond=True)
    assert known.sentence == "further off than a model whose temperature is 90% too low (40% to 90% or more)"
    assert known.word == "strong"


# -- the direction of a yardstick -----------------------------------------------------------------------


def test_a_yardstick_has_a_direction_where_the_finding_has_it() -> None:
    """Spreads that are too small here and too large there are not 20% too small."""
    far = np.random.default_rng(0)
    mu, one = far.normal(size=150), np.ones(150)
    narrow = wc.calibration_test(far.normal(mu), wc.Normal(mu, 0.6 * one), rng=0, n_resamples=99)
    assert "spreads are" in narrow.yardstick.sentence and "too small" in narrow.yardstick.sentence  # noqa: PT018
    for y in (far.normal(mu, np.exp(0.5 * np.sign(mu))), far.normal(mu + 0.5)):
        found = wc.calibration_test(y, wc.Normal(mu, one), rng=0, n_resamples=99)
        assert not any(finding.kind == "spread" for finding in found.findings)
        told = found.yardstick.sentence
        assert re.search(r"spreads are \d+% too small \(\d+% to \d+%\), or \S+ (times )?too large \(", told)
        again = wc.TestResult.from_json(found.to_json())
        assert again.yardstick.sentence == found.yardstick.sentence


def test_without_a_finding_an_error_has_no_direction() -> None:
    """Means that are off by .4 standard deviations are no spreads that are too small."""
    some = np.random.default_rng(3)
    mu = 2.0 * some.normal(size=300)
    y, pred = some.normal(mu, 1.0), wc.Normal(mu + 0.4, np.ones(300))
    size, within = wc.kce(y, pred).yardstick, wc.equivalence_test(y, pred, tolerance=0.25)
    assert size.low != 1.0
    for found in (size, within.estimate.yardstick):
        assert not found.directed
        assert re.search(r"too small \(.*\), or .* too large \(.* or more\)$", found.sentence)
    assert re.search(r"were \d+% too small at most, or 10 times too large or more", within.verdict)
    both = replace(size, other=(2.0, 1.2, 4.0), other_beyond=False)
    assert both.most_words() == f"4 times too large or {percent(1.0 - size.high)} too small at most"
    assert both.towards(-1).most_words() == f"{percent(1.0 - size.high)} too small at most"


def test_a_side_that_has_no_bound_is_told_beside_one_that_has() -> None:
    """A size is not that of both sides."""
    low = {"low": 1.07, "other": (0.41, 0.93, 0.1), "other_beyond": True, "directed": False}
    size = wc.Yardstick("temperature", 2.0, high=4.8, **low)
    assert size.most is None
    assert size.most_words() == "4.8 times too high at most, or 90% too low or more"
    assert size.sentence == (
        "as far off as a model whose temperature is 2 times too high (1.1 to 4.8 times), or 59% too low "
        "(7% to 90% or more)"
    )
    for known in (size.towards(1), size.towards(1).towards(None).towards(1)):
        assert known.most_words() == "4.8 times too high at most"
    # Beyond the scale at the estimate itself: as far off as that of one side, and of no error to the other.
    far = replace(size, other=(0.1, 0.93, 0.1))
    assert far.sentence.endswith("2 times too high (1.1 to 4.8 times), or 90% too low or more")
    assert far.towards(-1).sentence.startswith(
        "further off than a model whose temperature is 90% too low (7%"
    )
    none = replace(far, beyond=True, high_beyond=True)
    assert none.sentence.startswith("further off than a model whose temperature is 2 times too high (")
    zero = replace(size, ratio=1.0, low=1.0, other=(1.0, 1.0, 0.1))
    assert zero.sentence.endswith(
        "temperature is right, or 4.8 times too high at most, or 90% too low or more"
    )
    assert zero.word == "slight or more"
    near = wc.Yardstick("spreads", 0.98, 0.99, 0.96, other=(1.02, 1.01, 1.2), directed=False)
    assert not near.slight, "on the other side"


def test_upper_ends_hold_for_both_sides() -> None:
    """Whichever side chance favours: the larger of both errors that have this KCE."""
    mu = np.linspace(-1.0, 1.0, 500)
    z = np.random.default_rng(3).normal(size=500)
    z = (z - z.mean()) / z.std()
    pred = wc.Normal(mu, np.ones(500))
    found = [wc.kce(mu + factor * z, pred).yardstick for factor in (0.999, 1.001)]
    assert (found[0].high - 1.0) * (found[1].high - 1.0) < 0.0  # chance favours either side
    for size in found:
        assert size.most == max(size.high, size.other[2])
        assert size.most > 1.0
    assert found[0].most == pytest.approx(found[1].most, rel=0.05)
    open_side = replace(found[0], other_beyond=True)
    assert open_side.most is None


def test_over_dispersed_counts_are_measured_by_spreads() -> None:
    far = np.random.default_rng(0)
    rate = np.full(120, 5.0)
    over = wc.calibration_test(
        far.negative_binomial(2, 2 / 7, size=120), wc.Poisson(rate), rng=0, n_resamples=99
    )
    assert over.findings[0].kind == "dispersion"
    assert over.yardstick.kind == "spreads"
    # The variance is 3.5 times that of Poisson: spreads are 1 - 1 / sqrt(3.5) = 47% too small.
    assert over.yardstick.ratio == pytest.approx(0.53, abs=0.12)
    more = wc.calibration_test(far.poisson(1.3 * rate), wc.Poisson(rate), rng=0, n_resamples=99)
    assert (more.yardstick.kind, more.yardstick.directed) == ("means", True)
    fewer = wc.calibration_test(far.binomial(10, 0.5, size=120), wc.Poisson(rate), rng=0, n_resamples=99)
    # Half the variance of Poisson: spreads are sqrt(2) - 1 = 41% too large.
    assert (fewer.yardstick.kind, fewer.yardstick.directed) == ("spreads", True)
    assert fewer.yardstick.ratio == pytest.approx(2.0**0.5, abs=0.25)


def test_a_tolerance_beyond_every_simple_error_is_called_large() -> None:
    """Calibrated within what even spreads that are ten times too large do not exceed is not much."""
    some = np.random.default_rng(5)
    mu = some.normal(0.0, 2.0, 100)
    y, pred = some.normal(mu), wc.Normal(mu, np.ones(100))
    wide = wc.equivalence_test(y, pred, tolerance=0.4)
    assert wide.pvalue <= 0.05
    assert wide.tolerated is None
    assert "tolerance    0.4, as if spreads were 90% too small, or 10 times too large or more" in repr(wide)
    assert wide.verdict.endswith("10 times too large or more: the tolerance is a large one.")
    assert wc.ToleranceResult.from_json(wide.to_json()) == wide
    far = wc.equivalence_test(y, pred, tolerance=2.0)
    assert (far.tolerated, far.tolerated_otherwise) == (None, None)
    assert "tolerance    2, as if spreads were wrong by a factor of 10 or more" in repr(far)


def test_one_kce_has_one_size_beside_a_tolerance() -> None:
    """The yardstick is that of the KCE that is told, and a tolerance of just that KCE amounts to the same."""
    some = np.random.default_rng(5)
    mu = some.normal(size=120)
    y, pred = some.normal(mu), wc.Normal(mu, np.full(120, 0.7))
    kce = wc.equivalence_test(y, pred, tolerance=0.1).statistic
    found = wc.equivalence_test(y, pred, tolerance=kce, rng=0)
    size = found.estimate.known_yardstick
    assert size.ratio == pytest.approx(min(found.tolerated, found.tolerated_otherwise))  # spreads too small
    less = percent(1.0 - size.ratio)
    assert f"too large or {less} too small" in dict(found.in_words().rows)["tolerance"]
    assert f"spreads are {less} too small (" in dict(found.in_words().rows)["yardstick"]
    assert wc.ToleranceResult.from_json(found.to_json()) == found
    with pytest.raises(TypeError, match="rng"):
        wc.equivalence_test(y, pred, tolerance=0.1, rng="seed")


def test_tests_with_a_tolerance_say_that_clusters_are_asymptotic() -> None:
    some = np.random.default_rng(5)
    y, pred = some.normal(size=80), wc.Normal(np.zeros(80), np.ones(80))
    for found in (
        wc.equivalence_test(y, pred, tolerance=0.2, groups=np.repeat(np.arange(20), 4)),
        wc.calibration_test(y, pred, tolerance=0.2, groups=np.repeat(np.arange(20), 4)),
    ):
        assert "80 in 20 clusters: p-value and intervals are asymptotic" in repr(found)
    alone = wc.equivalence_test(y, pred, tolerance=0.2, groups=np.arange(80))
    assert "clusters" not in repr(alone)


def _wrong_by(ratio: float, kind: str, n: int = 120) -> tuple[np.ndarray, Any]:
    """Cases whose predictions are wrong by a ratio, all of them in the same way."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=n)
    if kind == "normal":
        return rng.normal(x, 1.0), wc.Normal(x, np.full(n, ratio))
    if kind == "classes":
        truth = np.exp(np.stack([x, -x, 0.3 * x], axis=1))
        truth /= truth.sum(axis=1, keepdims=True)
        said = truth ** (1.0 / ratio)
        y = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        return y, wc.Categorical(said / said.sum(axis=1, keepdims=True))
    mean = np.exp(1.0 + 0.5 * x)
    if kind == "dispersed":
        return rng.poisson(mean * rng.gamma(1.0 / ratio, ratio, size=n)), wc.Poisson(mean)
    return rng.poisson(mean), wc.Poisson(mean * ratio)


@pytest.mark.parametrize("kind", ["normal", "classes", "counts", "dispersed"])
def test_what_is_surely_not_slight_has_a_yardstick_that_is_not(kind: str) -> None:
    """And a verdict that is the same, whether or not the yardstick was found before it."""
    sure = []
    for ratio in (0.6, 0.97, 1.9):
        y, pred = _wrong_by(ratio, kind)
        first, second = (wc.calibration_test(y, pred, rng=0, n_resamples=99) for _ in range(2))
        sure.append(surely_not_slight(first.estimate, first.findings))
        size = second.yardstick
        assert size is None or not (sure[-1] and size.slight)
        if second.rejected:
            assert first.verdict == second.verdict
            assert (first.estimate.known_yardstick is None) == sure[-1]
    assert any(sure)


@pytest.mark.parametrize("kind", ["normal", "classes", "counts"])
def test_small_errors_alone_bound_the_yardstick(kind: str) -> None:
    y, pred = _wrong_by(1.3, kind, 40)
    cases = wc.skce(y, pred).cases
    scale = scale_of(cases)
    near = scale.roots[:4].max()
    sure = 0
    for root in np.linspace(0.1, 2.0, 12) * near:
        found = yardstick.yardstick_from(cases, float(root), (0.9 * float(root), 1.1 * float(root)), 0.95)
        if yardstick.surely_not_slight(cases, float(root)):
            sure += 1
            assert all(found.towards(side).size != "slight" for side in (-1, 1, None))
    assert 0 < sure < 12


# -- what a scale from some of the cases does not know ---------------------------------------------------


@pytest.fixture(scope="module")
def subsets() -> tuple[float, list[Scale]]:
    """KCE of a model with spreads 20% too small, from all predictions, and scales from 40 of them each."""
    some = np.random.default_rng(17)
    n, count = 900, 60
    mu, sd = some.normal(size=n), np.exp(0.6 * some.normal(size=n))
    pred = wc.Normal(mu, sd)
    kernel = wc.default_kernel(pred)
    root = OnAverage(pred, kernel).root(misspecified(pred, "spreads", 0.8))
    y = some.normal(mu, sd / 0.8)
    found: list[Scale] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wellcal.measures.error_scale.CASES", 40)
        for _ in range(count):
            order = some.permutation(n)
            scale = scale_of(Cases(y[order], pred[order], kernel), "spreads")
            assert scale is not None
            found.append(scale)
    return root, found


def test_the_error_of_a_scale_is_that_of_other_cases(subsets: tuple[float, list[Scale]]) -> None:
    _, scales = subsets
    for k in (2, 5, 8):
        spread = np.std(np.log([scale.roots[k] for scale in scales]), ddof=1)
        told = np.mean([np.asarray(scale.errors)[k] for scale in scales])
        assert spread == pytest.approx(told, rel=0.35)  # its own error is 9%, and the told one varies, too


def test_intervals_of_yardsticks_know_the_error_of_their_scale(subsets: tuple[float, list[Scale]]) -> None:
    """Where KCE is known that is all: 95% of them hold what is true, and of half as long ones fewer."""
    root, scales = subsets
    hits = {1.0: 0, 0.5: 0}
    for scale in scales:
        for part in hits:
            less = replace(scale, errors=part * np.asarray(scale.errors))
            low, high = sorted(less.ratio(end) for end in less.widened(root, (root, root), 0.95))
            hits[part] += low <= 0.8 <= high
    least = stats.binom.ppf(1e-3, len(scales), 0.95)
    assert hits[1.0] >= least
    assert hits[0.5] < least


def test_a_scale_from_all_cases_leaves_nothing_out() -> None:
    pred = wc.Normal(np.linspace(-1.0, 1.0, 60), np.linspace(0.5, 2.0, 60))
    scale = scale_of(Cases(np.zeros(60), pred, wc.default_kernel(pred)))
    assert scale is not None
    assert np.all(np.asarray(scale.errors) == 0.0)
    assert scale.widened(0.1, (0.05, 0.2), 0.95) == pytest.approx((0.05, 0.2), rel=1e-12)
    wide = replace(scale, errors=np.full(len(scale.roots), 0.1), other_errors=0.2)
    half = 1.959963984540054 * 0.1 * 0.1
    assert wide.widened(0.1, (0.05, 0.2), 0.95) == pytest.approx(
        (0.1 - np.hypot(0.05, half), 0.1 + np.hypot(0.1, half)), rel=1e-12
    )
    assert wide.widened(0.1, (0.05, 0.2), 0.95, other=True)[1] == pytest.approx(
        0.1 + np.hypot(0.1, 2.0 * half), rel=1e-12
    )
    assert wide.widened(0.1, (0.0, 0.2), 0.95)[0] == 0.0
