"""What a finding must not say: an error that is another one's consequence, or not there."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import wellcal as wc
from benchmarks import false_findings as study
from wellcal.hypotests import Omnibus
from wellcal.hypotests.findings.binary import occurs
from wellcal.hypotests.findings.claims import Found
from wellcal.hypotests.findings.families import findings_in
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.findings.scalars import tails_finding
from wellcal.hypotests.findings.splits import Summary, mean_of
from wellcal.hypotests.findings.trends import shifts, trend_finding
from wellcal.problem.target_resampling import pool_draws

CHEAP = Omnibus(pairs=False, most_resamples=0)
N = 200


@pytest.mark.parametrize("dispersion", [0.0, 0.5])
def test_means_that_are_wrong_for_some_counts_are_no_dispersion(dispersion: float) -> None:
    """Counts are as dispersed about their means as they were predicted to be, or as was planted."""
    rng = np.random.default_rng(0)
    mean = np.exp(rng.uniform(0.0, 3.0, 1500))
    varied = mean * rng.gamma(1.0 / dispersion, dispersion, 1500) if dispersion else mean
    pred = wc.Poisson(np.where(mean > 4.5, 5.0 / 3.0, 1.0) * mean)
    found = findings_in(rng.poisson(varied), pred, False)
    assert "trend of the centre" in [finding.kind for finding in found]
    told = [finding for finding in found if finding.kind == "dispersion"]
    assert len(told) == (dispersion > 0.0)
    for finding in told:
        assert finding.size is not None
        assert finding.size > 1.5


@pytest.mark.parametrize("dispersion", [0.0, 0.2])
def test_counts_off_by_a_factor_have_no_trend_and_no_dispersion(dispersion: float) -> None:
    rng = np.random.default_rng(5)
    mean = np.exp(rng.normal(1.2, 0.5, N))
    if dispersion:
        varied = mean * rng.gamma(1.0 / dispersion, dispersion, N)
        pred: object = wc.NegativeBinomial(mean, np.full(N, dispersion))
    else:
        varied, pred = mean, wc.Poisson(mean)
    found = wc.calibration_test(rng.poisson(2.5 * varied), pred, method=CHEAP, rng=0, n_resamples=99)
    assert [finding.kind for finding in found.findings] == ["shift"]
    assert " times as high as predicted (2." in found.findings[0].sentence


def test_swapped_classes_are_not_told_to_be_too_many() -> None:
    """Each occurs as often as the other was predicted."""
    rng = np.random.default_rng(7)
    probs = special.softmax(2.0 * rng.normal(size=(N, 4)) + [0.7, -0.3, 0.0, 0.0], axis=1)
    upper = probs[:, [1, 0, 2, 3]].cumsum(axis=1)
    y = np.minimum((upper < rng.uniform(size=(N, 1))).sum(axis=1), 3)
    found = wc.calibration_test(y, wc.Categorical(probs), method=CHEAP, rng=0, n_resamples=99)
    assert [finding.kind for finding in found.findings] == ["swapped"]
    # The verdict has the short form, and the list all of it.
    assert found.verdict.endswith("classes 0 and 1 are taken for each other.")
    assert f"  - {found.findings[0].sentence}\n" in repr(found)


def test_few_data_sets_of_the_study() -> None:
    """A row with nothing but false findings would show."""
    seeds = np.random.SeedSequence(71).spawn(4)
    for name in ("normals: shift", "normals: spreads too small", "classes: too extreme"):
        found = [study.told(*map(np.random.default_rng, seed.spawn(2)), name=name) for seed in seeds]
        assert sum(any(study.false_in(name, one)) for one in found) <= 1, name


def test_what_the_study_counts() -> None:
    told = study.Told(True, ("shift", "trend of the centre", "levels"), False)
    assert study.false_in("normals: shift", told) == [False, True, False]
    assert study.false_in("normals: calibrated", told) == [True, True, False]


@pytest.mark.parametrize("values", [[0.0, 1.0], [0.0, 1.0, 1.0, 2.0, 2.0]], ids=["two values", "ties"])
def test_an_error_in_cases_with_one_prediction_is_not_told_of_all(values: list[float]) -> None:
    """Where predictions have few values, quantiles of these do not tell cases apart."""
    rng = np.random.default_rng(3)
    mean = rng.choice(values, 600)
    y, wrong = rng.normal(mean), mean == 0.0
    for pred, kind, size in (
        (wc.Normal(mean, np.where(wrong, 0.6, 1.0)), "trend of the spread", 0.6),
        (wc.Normal(mean - 0.5 * wrong, np.ones(600)), "trend of the centre", 0.5),
    ):
        (found,) = findings_in(y, pred, False)
        assert found.kind == kind
        assert " where the predicted mean is below " in found.sentence
        assert found.interval is not None
        assert found.interval[0] <= size <= found.interval[1]


def test_draws_that_tie_with_their_targets_scatter_less() -> None:
    """Most of rare counts are zeros among zeros, half above: their share is known well."""
    rng = np.random.default_rng(1)
    rate = np.exp(rng.uniform(np.log(0.005), np.log(0.1), 800))
    y, draws = rng.poisson(rate), rng.poisson(3.0 * rate[:, None], (800, 5))
    found = wc.calibration_test(y, wc.Samples(draws), method=CHEAP, rng=0, n_resamples=99).findings
    (above,) = (finding for finding in found if finding.kind == "above")
    assert above.interval is not None
    assert above.expected is not None
    assert above.interval[1] < above.expected
    assert above.sentence.startswith("targets fall above the median of their draws ")


def test_no_spread_is_told_of_draws_that_are_all_alike() -> None:
    """Where all draws are zeros nothing is predicted that a spread could be compared with."""
    told: list[str] = []
    for seed in (1000, 1001):
        rng = np.random.default_rng(seed)
        rate = np.exp(rng.uniform(np.log(0.005), np.log(0.1), 800))
        y, draws = rng.poisson(rate).astype(float), rng.poisson(3.0 * rate[:, None], (800, 5)).astype(float)
        found = findings_in(y, pool_draws(y, wc.Samples(draws)), True)
        told += [one.sentence for one in found if one.kind == "trend of the spread"]
    assert told == [
        sentence for sentence in told if sentence.endswith(" where the predicted mean is above 0.1")
    ]


def test_a_trend_about_a_line_of_its_own_is_no_spread() -> None:
    """Errors about the mean of draws hold the trend; about what goes with the prediction they do not."""
    told: list[list[str]] = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        mu = rng.normal(3.0, 2.0, 300)
        y = rng.normal(mu + 0.35 * (mu - 3.0), 1.0)
        pred = wc.Samples(rng.normal(mu[:, None], 1.0, (300, 20)))
        found = wc.calibration_test(y, pred, method=CHEAP, rng=0, n_resamples=99).findings
        told.append([finding.kind for finding in found])
    assert all("trend of the centre" in kinds for kinds in told)
    assert sum("spread" in kinds for kinds in told) <= 1


def test_a_spread_beside_a_trend_is_told_by_its_own_size() -> None:
    rng = np.random.default_rng(0)
    mu = rng.normal(3.0, 2.0, 400)
    y = rng.normal(mu + 0.4 * (mu - 3.0), 1.5)
    pred = wc.Samples(rng.normal(mu[:, None], 1.0, (400, 20)))
    found = wc.calibration_test(y, pred, method=CHEAP, rng=0, n_resamples=99).findings
    (spread,) = (finding for finding in found if finding.kind == "spread")
    assert spread.interval is not None
    assert spread.interval[0] <= 1.0 / 1.5 <= spread.interval[1]


@pytest.mark.parametrize("temperature", [1.0, 1.5])
def test_a_class_that_is_too_frequent_is_no_temperature(temperature: float) -> None:
    """Probabilities look too extreme where one class occurs too often; that is told where it is more."""
    told: list[list[str]] = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        logits = 1.5 * rng.normal(size=(1500, 3))
        upper = special.softmax(logits / temperature + [1.2, 0.0, 0.0], axis=1).cumsum(axis=1)
        y = np.minimum((upper < rng.uniform(size=(1500, 1))).sum(axis=1), 2)
        pred = wc.Categorical(special.softmax(logits, axis=1))
        found = wc.calibration_test(y, pred, method=CHEAP, rng=0, n_resamples=99).findings
        told.append([finding.kind for finding in found])
    assert all("class" in kinds for kinds in told)
    assert sum("temperature" in kinds for kinds in told) == 4 * (temperature > 1.0)


@pytest.mark.parametrize("events", [0, 1, 3])
def test_hardly_any_events_are_told_as_counts_that_are_too_low(events: int) -> None:
    """And not as spreads, of which so few say nothing."""
    rng = np.random.default_rng(0)
    y = np.zeros(N, dtype=int)
    y[:events] = 1
    rate = rng.uniform(0.5, 2.5, N)
    found = wc.calibration_test(y, wc.Poisson(rate), method=CHEAP, rng=0, n_resamples=99)
    (told,) = found.findings
    assert told.sentence.startswith("counts are 99")
    assert " lower than predicted (" in told.sentence
    assert told.interval is not None
    assert told.interval[0] <= max(events, 0.5) / rate.sum() <= told.interval[1]
    size = found.yardstick
    assert size is not None
    assert size.directed
    assert size.ratio > 50.0


def test_what_no_split_shows_is_not_certain() -> None:
    """A curve may be beyond doubt, and no half or quarter of the cases off by more than its interval."""
    values, mean = np.tile([-1.0, 1.0], 50), np.repeat(np.arange(10.0), 10)
    found = trend_finding(shifts(mean_of), values, [Summary("predicted mean", mean)], 2.0, 0.001)
    assert found is not None
    assert found.sentence.startswith("perhaps targets are ")
    assert found.interval is not None
    assert found.interval[0] <= 0.0 <= found.interval[1]


def test_tails_whose_share_may_be_right_are_not_certain() -> None:
    tails = Found(0.2, 0.12, 0.02, 2.0, 300, 1e-4, 4.0)
    middle = Found(0.4, 0.38, 0.03, 2.0, 300, 0.5, 0.5)
    for share, start in ((0.06, "perhaps tails are heavier"), (0.12, "tails are heavier")):
        beyond = Found(share, 0.05, 0.01, 2.0, 300, 0.1, 1.0)
        told = tails_finding(tails, {"_middle": middle, "_beyond": beyond}, True)
        assert told.sentence.startswith(start)


def test_an_outcome_that_always_occurs_does_so_all_the_time() -> None:
    """The difference to what was predicted is rounded."""
    off = Found(1.0 - 0.123 - 2e-16, 0.0, 0.0, 2.0, 20, 1e-4, 4.0)
    assert occurs("outcome 1", "group", off, 0.123).sentence.startswith("outcome 1 occurs 100% of the time (")


def test_no_event_where_a_few_were_predicted_has_the_interval_of_its_number() -> None:
    """None of six has probability .0025: an interval that holds what was predicted would deny the verdict."""
    y = np.zeros(3000, dtype=int)
    found = wc.calibration_test(y, wc.Poisson(np.full(3000, 0.002)), method=CHEAP, rng=0, n_resamples=999)
    (told,) = found.findings
    assert told.sentence == "counts are 92% lower than predicted (39% to over 99.99%)"


def _with_tails(draws: int = 0) -> list[list[str]]:
    """Kinds that are told of targets from a multivariate t distribution, whose predictions are normal."""
    told: list[list[str]] = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        mu = rng.normal(size=(300, 3))
        y = mu + rng.normal(size=(300, 3)) * np.sqrt(3.0 / rng.chisquare(5, (300, 1)))
        pred = wc.Samples(rng.normal(mu[:, None], 1.0, (300, draws, 3))) if draws else None
        pred = wc.DiagonalNormal(mu, np.ones((300, 3))) if pred is None else pred
        found = wc.calibration_test(y, pred, method=CHEAP, rng=0, n_resamples=99)
        told.append([finding.kind for finding in found.findings])
    return told


@pytest.mark.parametrize("draws", [0, 20], ids=["normals", "draws"])
def test_heavy_tails_of_all_coordinates_are_no_correlation_or_trend(draws: int) -> None:
    """Their squares and products differ more from one data set to the next than those of drawn targets."""
    told = [kinds for kinds in _with_tails(draws) if kinds]
    assert len(told) >= 4
    assert [kinds for kinds in told if kinds != ["tails"]] == []


def test_tails_of_all_coordinates_are_told_once() -> None:
    rng = np.random.default_rng(1)
    mu = rng.normal(size=(600, 3))
    y = mu + rng.standard_t(4, (600, 3)) / np.sqrt(2.0)
    found = findings_in(y, wc.DiagonalNormal(mu, np.ones((600, 3))), False)
    (tails,) = (one for one in found if one.kind == "tails")
    start = "all coordinates: tails are heavier than predicted"
    assert tails.short == start
    assert tails.sentence.startswith(f"{start}: with the spread put right, ")
    # Shares are known from 1,800 coordinates of 600 cases.
    assert tails.size is not None
    assert tails.interval is not None
    low, high = tails.interval
    assert 2.5 * np.sqrt(tails.size / 1800) < high - low < 6.0 * np.sqrt(tails.size / 1800)


def test_tails_of_one_coordinate_are_told_of_it() -> None:
    rng = np.random.default_rng(0)
    mu = rng.normal(size=(600, 3))
    y = rng.normal(mu)
    y[:, 1] = mu[:, 1] + rng.standard_t(3, 600) / np.sqrt(3.0)
    found = findings_in(y, wc.DiagonalNormal(mu, np.ones((600, 3))), False)
    assert [one.short for one in found if one.kind == "tails"] == [
        "coordinate 2: tails are heavier than predicted"
    ]


def test_spreads_that_are_wrong_for_some_are_no_tails_of_all() -> None:
    rng = np.random.default_rng(0)
    mu = rng.normal(size=(600, 3))
    y = rng.normal(mu, np.where(mu > 0.0, 1.5, 0.6))
    kinds = {one.kind for one in findings_in(y, wc.DiagonalNormal(mu, np.ones((600, 3))), False)}
    assert "trend of the spread" in kinds
    assert "tails" not in kinds


def test_one_of_many_pairs_of_classes_is_told_to_be_swapped() -> None:
    """Of ten classes each is the likeliest for some thirty cases, too few for one side of a pair alone."""
    told: list[tuple[str, tuple[int, ...] | None]] = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        logits = 1.5 * rng.normal(size=(300, 10))
        upper = special.softmax(logits[:, [1, 0, *range(2, 10)]], axis=1).cumsum(axis=1)
        y = np.minimum((upper < rng.uniform(size=(300, 1))).sum(axis=1), 9)
        pred = wc.Categorical(special.softmax(logits, axis=1))
        found = wc.calibration_test(y, pred, method=CHEAP, rng=0, n_resamples=99).findings
        told += [(finding.kind, finding.classes) for finding in found]
    assert told.count(("swapped", (0, 1))) >= 4


def test_a_class_that_points_the_wrong_way_is_not_swapped() -> None:
    """Nor are three classes that have each other's places in turn, of which no pair is swapped."""
    for order, sign in (([0, 1, 2, 3, 4, 5], -1.0), ([1, 2, 0, 3, 4, 5], 1.0)):
        rng = np.random.default_rng(0)
        logits = 1.5 * rng.normal(size=(400, 6))
        true = logits[:, order] * np.array([sign, 1.0, 1.0, 1.0, 1.0, 1.0])
        upper = special.softmax(true, axis=1).cumsum(axis=1)
        y = np.minimum((upper < rng.uniform(size=(400, 1))).sum(axis=1), 5)
        pred = wc.Categorical(special.softmax(logits, axis=1))
        found = wc.calibration_test(y, pred, method=CHEAP, rng=0, n_resamples=99).findings
        assert found
        assert "swapped" not in {finding.kind for finding in found}


@pytest.mark.parametrize(
    ("seed", "spread", "side"), [(16, 0.97, 1), (80, 1.03, -1)], ids=["more likely", "less likely"]
)
def test_how_likely_targets_are_gives_the_yardstick_its_side(seed: int, spread: float, side: int) -> None:
    rng = np.random.default_rng(seed)
    mu = rng.normal(size=(200, 14))
    y, pred = rng.normal(mu, spread), wc.DiagonalNormal(mu, np.ones((200, 14)))
    found = wc.calibration_test(y, pred, method=CHEAP, rng=seed, n_resamples=99)
    (told,) = found.findings
    assert told.expected is not None
    assert told.size is not None
    assert (told.size > told.expected) == (side > 0)
    assert Finding.from_dict(told.to_dict()).expected == told.expected
    size = found.yardstick
    assert size is not None
    assert size.directed
    assert (size.ratio > 1.0) == (side > 0)
