"""What kind of error a test found, in words."""

from __future__ import annotations

import html
import pickle
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special

import wellcal as wc
from wellcal.hypotests import Omnibus, TestResult
from wellcal.hypotests.findings import families
from wellcal.hypotests.findings.binary import occurs, slope_finding
from wellcal.hypotests.findings.claims import Found, jackknife
from wellcal.hypotests.findings.class_slopes import class_slope
from wellcal.hypotests.findings.families import claims_of, findings_in, findings_of
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.findings.reasons import UNNAMED, Reasons
from wellcal.hypotests.findings.sizes import yardstick_with
from wellcal.hypotests.setup import make_setup
from wellcal.measures.log_odds import fitted_line
from wellcal.measures.yardstick import Yardstick
from wellcal.predictions.base import check_inputs
from wellcal.problem.target_resampling import draw_targets, pool_draws

from ...engines.examples import EXAMPLES
from .finding_designs import DESIGNS, LEVELS, N

DATA_SETS = 6


def told(y: Any, pred: Any) -> tuple[Finding, ...]:
    """Findings, whether or not a test rejects."""
    checked, batch = check_inputs(y, pred)
    targets = np.asarray(checked)
    if isinstance(batch, wc.Samples) and batch.kind == "draws":
        return findings_in(targets, pool_draws(targets, batch), True)
    return findings_in(targets, batch, False)


MU = np.random.default_rng(1).normal(3.0, 2.0, N)
NOISE = np.random.default_rng(2).normal(size=N)
PRED = wc.Normal(MU, np.ones(N))


def result(y: Any = MU + 1.3 * NOISE, pred: Any = PRED, **options: Any) -> TestResult:
    cheap = Omnibus(pairs=False, most_resamples=0)
    return wc.calibration_test(y, pred, **{"rng": 0, "n_resamples": 199, "method": cheap, **options})


# -- the right ones ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DESIGNS)
def test_findings_name_the_planted_error(name: str) -> None:
    """First in five of six data sets at least; their intervals hold the planted size in all but one."""
    planted = DESIGNS[name]
    named = missed = 0
    for seed in range(DATA_SETS):
        findings = told(*planted.make(np.random.default_rng([seed, 30])))
        if not findings or findings[0].kind not in planted.kinds:
            continue
        named, first = named + 1, findings[0]
        if planted.size is not None and first.kind != "range":
            low, high = first.interval
            missed += not low <= planted.size <= high
        if named == DATA_SETS - 1 and missed == 0:
            break  # whatever the last one says
    assert named >= DATA_SETS - 1
    assert missed <= 1


def test_some_sentences() -> None:
    some = {name: str(told(*DESIGNS[name].make(np.random.default_rng(5)))[0]) for name in DESIGNS}
    number = r"-?[\d.]+"
    patterns = {
        "too small": r"spreads are \d+% too small \(\d+% to \d+%\)",
        "too high": rf"targets are {number} standard deviations too high \({number} to {number}\)",
        "high for some": (
            rf"targets are {number} standard deviations too high \({number} to {number}\) "
            rf"where the predicted mean is above {number}"
        ),
        "tails": r"tails are heavier than predicted: .*",
        "peaks": r"targets avoid the middle of their predictions \(two peaks\): .*",
        "skewed": rf"targets are skewed to the right of their predictions \(skewness {number}, .*\)",
        "correlated": rf"coordinates 1 and 2 are correlated \({number}, .*\), predicted independent",
        "more correlated": r"coordinates 1 and 2 are more strongly correlated than predicted \(.*; .* 0.3\)",
        "one coordinate": r"coordinate 2: targets are .* too high \(.*\)",
        "dispersed": rf"counts are more dispersed than predicted \(variance ratio {number}, .*\)",
        "zeros": r"more zeros than predicted \(\d+% against \d+%; \d+% to \d+%\)",
        "extreme": rf"predicted probabilities are too extreme: slope {number} \({number} to {number}\)",
        "more often": r"outcome 1 occurs \d+% of the time \(\d+% to \d+%\), predicted \d+%",
        "few cats": r"class 'cat' occurs \d+% of the time \(\d+% to \d+%\), predicted \d+%",
        "hot": r"probabilities are too extreme: temperature is \d+% too low \(\d+% to \d+%\)",
        "quantiles": r"targets fall between their 10% and 90% quantiles \d+% of the time .*, expected 80%",
    }
    for name, pattern in patterns.items():
        assert re.fullmatch(pattern, some[name]), some[name]


@pytest.mark.parametrize("slope", [0.05, 0.2, 0.35, 1.0, 3.0])
def test_slopes_are_fitted_however_extreme_predictions_are(slope: float) -> None:
    """The likelihood has one maximum, which a search without derivatives finds too."""
    rng = np.random.default_rng(8)
    logit = rng.normal(0.5, 2.0 / slope, 150)
    y = (rng.uniform(size=150) < special.expit(slope * logit - 0.3)).astype(float)

    def loss(line: Any) -> float:
        odds = line[0] + line[1] / slope * logit
        return float(np.sum(np.logaddexp(0.0, odds) - y * odds))

    best = optimize.minimize(loss, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    assert fitted_line(y, logit) == pytest.approx([best.x[0], best.x[1] / slope], rel=1e-5)
    separated = fitted_line((logit > 0.0).astype(float), logit)
    assert np.isnan(separated).all()
    held = fitted_line(y, logit, np.full(150, 1 / 150), held=1e-9)
    assert held == pytest.approx(fitted_line(y, logit), rel=1e-4)
    sure = fitted_line((logit > 0.0).astype(float), logit, held=1e-6)
    assert np.isfinite(sure).all()
    assert sure[1] > 1.0


@pytest.mark.parametrize(("error", "told"), [(0.2, "are too extreme, or point"), (0.05, "point")])
def test_probabilities_point_the_wrong_way_where_the_interval_says_so(error: float, told: str) -> None:
    found = Found(-0.3, 1.0, error, 2.0, 10, 1e-4, 5.0)
    for finding in (slope_finding(found), class_slope(["class 0", "class 2"], 1, found)):
        assert f" {told} the wrong way: slope -0.3 (" in str(finding)


@pytest.mark.parametrize(("predicted", "start"), [(0.33, "perhaps class 0 occurs"), (0.4, "class 0 occurs")])
def test_what_the_interval_does_not_exclude_is_not_certain(predicted: float, start: str) -> None:
    """None of ten cases: Wilson's interval ends at 0.34, whatever a standard error of zero says."""
    found = occurs("class 0", "class", Found(-predicted, 0.0, 0.0, 2.26, 10, 0.001, 4.0), predicted)
    assert found.interval[1] == pytest.approx(0.338, abs=1e-3)
    assert str(found).startswith(start)
    assert found.short.startswith(start)


def test_a_trend_that_another_error_hides_from_the_test_is_told() -> None:
    """Bias where spreads are too large: squares have no trend, but about their centre they do."""
    mean, spread = np.linspace(-2.0, 2.0, 500), np.tile([0.5, 1.0, 1.5, 2.0], 125)
    y = np.random.default_rng(3).normal(1.8 * mean, spread**2)
    found = wc.calibration_test(y, wc.Normal(mean, spread), n_resamples=99)
    assert found.provenance["pvalues"]["trend of the spread"] > 0.05
    assert [finding.kind for finding in found.findings] == ["trend of the centre", "trend of the spread"]
    assert found.findings[1].by == "predicted spread"


def test_grades_are_called_grades() -> None:
    rng = np.random.default_rng(9)
    p = rng.dirichlet([2.0, 2.0, 2.0, 2.0], 400)
    y = np.minimum((p.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1) + (rng.random(400) < 0.4), 3)
    found = result(y + 1.0, wc.Categorical(p, support=[1, 2, 3, 4]))
    assert any(str(finding).startswith("grade 1 occurs ") for finding in found.findings)
    assert not any("class 1" in str(finding) for finding in found.findings)
    swapped = np.array([1, 0, 2, 3])[(p.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1).clip(0, 3)]
    found = result(swapped + 1.0, wc.Categorical(p, support=[1, 2, 3, 4]))
    assert any(finding.short == "grades 1 and 2 are taken for each other" for finding in found.findings)


def test_groups_that_follow_from_a_slope_are_not_told() -> None:
    rng = np.random.default_rng(4)
    logit = rng.normal(0.0, 3.0, 1500)
    y = (rng.uniform(size=1500) < special.expit(0.5 * logit)).astype(int)
    found = result(y, wc.Bernoulli(special.expit(logit)))
    assert found.provenance["pvalues"]["curve"] <= 0.01  # a part that asks for a closer look at groups
    assert [finding.kind for finding in found.findings] == ["slope"]
    bent = special.expit(0.5 * logit + np.where(np.abs(logit) < 1.0, 1.0, 0.0))
    y = (rng.uniform(size=1500) < bent).astype(int)
    assert "group" in {finding.kind for finding in result(y, wc.Bernoulli(special.expit(logit))).findings}


def test_two_sides_are_told_where_both_are_off() -> None:
    findings = told(MU + np.where(MU > 3.0, 1.5, 0.6) * NOISE, PRED)
    pattern = (
        r"spreads are \d+% too large \(.*\) where the predicted mean is below [\d.]+, and \d+% too small "
        r"\(.*\) elsewhere"
    )
    assert [finding.kind for finding in findings] == ["trend of the spread"]
    assert re.fullmatch(pattern, str(findings[0])), findings[0]


def test_what_follows_from_another_finding_is_not_told() -> None:
    """A shift makes squares larger, larger counts have fewer zeros, and mixed spreads have heavy tails."""
    assert [f.kind for f in told(MU + 0.8 + NOISE, PRED)] == ["shift"]
    rng = np.random.default_rng(3)
    mean = np.full(N, 1.5)
    assert [f.kind for f in told(rng.poisson(2.1, N), wc.Poisson(mean))] == ["shift"]
    draws = wc.Samples(rng.normal(MU[:, None], 1.0, (N, 15)))
    assert [f.kind for f in told(MU + 0.8 + NOISE, draws)] == ["above"]


def test_draws_are_compared_with_their_own_range() -> None:
    """15 draws and the target are exchangeable: two of sixteen are outside."""
    rng = np.random.default_rng(0)
    draws = wc.Samples(rng.normal(MU[:, None], 1.0, (N, 15)))
    pool = pool_draws(MU + NOISE, draws)
    claims = claims_of(pool, True)
    assert claims is not None
    above, outside, spread, *trends = claims.scores(draw_targets(pool, rng, 50, MU)).mean(axis=0)
    assert trends == pytest.approx([0.0] * len(trends), abs=0.03)
    assert above == pytest.approx(0.5, abs=0.02)
    assert outside == pytest.approx(2.0 / 16.0, abs=0.01)
    assert spread == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("spread", [0.6, 1.6])
def test_a_wrong_spread_of_few_draws_is_no_trend(spread: float) -> None:
    """An outcome that is far off pulls the mean of draws and outcome: that is not where cases lie."""
    rng = np.random.default_rng(1)
    mu = 0.2 * rng.normal(size=400)
    draws = mu[:, None] + rng.normal(size=(400, 5))
    found = told(mu + spread * rng.normal(size=400), wc.Samples(draws))
    assert [finding.by for finding in found] == [None]
    assert found[0].kind in ("spread", "range")


@pytest.mark.parametrize(("draws", "shift"), [(3, 1.0), (3, -2.0), (5, 3.0)])
def test_targets_of_few_draws_that_are_all_too_high_have_no_trend(draws: int, shift: float) -> None:
    """Among all members, the draws of such targets are low, and targets drawn from pools have trends."""
    rng = np.random.default_rng(6)
    mu = 0.5 * rng.normal(size=400)
    values = mu[:, None] + rng.normal(size=(400, draws))
    found = told(mu + shift + rng.normal(size=400), wc.Samples(values))
    assert [finding.kind for finding in found] == ["above"]


def test_a_trend_of_the_spread_is_told_beside_a_shift() -> None:
    rng = np.random.default_rng(6)
    mu = rng.normal(size=400)
    values = mu[:, None] + rng.normal(size=(400, 5))
    found = told(mu + 2.0 + np.exp(0.4 * mu) * rng.normal(size=400), wc.Samples(values))
    assert sorted(finding.kind for finding in found) == ["above", "trend of the spread"]


def test_vectors_of_draws_beyond_what_squares_hold_are_refused() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 5, 2))
    values[3] = 1e200
    with pytest.raises(ValueError, match=r"of row 3 are not.*change the unit"):
        wc.calibration_test(rng.normal(size=(40, 2)), wc.Samples(values), rng=0, n_resamples=19)


def test_cases_of_draws_are_told_by_the_draws_alone() -> None:
    """Whoever has the draws finds the same cases; draws that happen to be high lie above their targets."""
    rng = np.random.default_rng(1)
    mu = rng.normal(size=800)
    draws = mu[:, None] + rng.normal(size=(800, 5))
    y = 2.0 * mu + rng.normal(size=800)
    (found,) = [f for f in told(y, wc.Samples(draws)) if f.by is not None]
    place = "where the predicted mean is above "
    cut = float(str(found).split(place)[1].split(",")[0])
    pool = np.column_stack([draws, y])
    shares: list[tuple[float, float]] = []
    for k in range(6):  # each member as the target, the outcome last
        others = np.delete(pool, k, axis=1)
        above, inside = pool[:, k] > np.median(others, axis=1), others.mean(axis=1) > cut
        shares.append((float(np.sum(above & inside)), float(np.sum(inside))))
    assert found.size == pytest.approx(shares[-1][0] / shares[-1][1])
    happened, counted = np.sum(shares, axis=0)
    assert found.expected == pytest.approx(happened / counted)
    assert 0.4 < happened / counted < 0.48  # and not half
    assert f"expected {100 * happened / counted:.0f}% and " in str(found)


@pytest.mark.parametrize("digits", [1, 6])
def test_all_members_of_a_pool_are_treated_alike(digits: int) -> None:
    """Sets of targets have the same scores whichever member was observed: p-values by exchange are exact."""
    rng = np.random.default_rng(3)
    scale = np.exp(2.0 * rng.normal(size=(60, 1)))
    values = (scale * rng.normal(2.0, 1.0, (60, 9))).round(digits)
    swapped = rng.permuted(values, axis=1)
    sets = np.stack([rng.permuted(values, axis=1)[:, 0] for _ in range(5)])
    first, second = (claims_of(wc.Samples(one, kind="atoms"), True) for one in (values, swapped))
    assert first is not None
    assert second is not None
    assert first.names == second.names
    assert "width 2" in first.names  # spreads differ by more than chance
    np.testing.assert_allclose(first.scores(sets), second.scores(sets), atol=1e-9)


def vector_draws(seed: int, draws: int, spread: float) -> tuple[Any, Any]:
    rng = np.random.default_rng([seed, draws])
    mu = rng.normal(size=(N, 2))
    values = mu[:, None] + spread * rng.normal(size=(N, draws, 2))
    return mu + rng.normal(size=(N, 2)), wc.Samples(values)


@pytest.mark.parametrize(("draws", "spread"), [(5, 1.3), (8, 0.7), (20, 0.7)])
def test_spreads_of_vectors_of_draws_are_told_as_they_are(draws: int, spread: float) -> None:
    """Without the target, which widens its own pool: in units of that all of them would look smaller."""
    held = others = 0
    for seed in range(DATA_SETS):
        findings = told(*vector_draws(seed, draws, spread))
        first = [finding.interval for finding in findings if finding.kind == "spread"]
        held += bool(first) and first[0][0] <= spread <= first[0][1]
        others += len(findings) - len(first)
    assert held >= DATA_SETS - 2
    assert others <= 1


@pytest.mark.parametrize("shape", [(), (2,)])
def test_chance_in_a_few_draws_is_no_trend(shape: tuple[int, ...]) -> None:
    """Draws that happen to be high lie above their target, and spread less or more than they should."""
    false = 0
    for seed in range(DATA_SETS):
        rng = np.random.default_rng([seed, 4])
        mu = rng.normal(size=(N, *shape))
        values = mu[:, None] + rng.normal(size=(N, 5, *shape))
        findings = told(mu + rng.normal(size=(N, *shape)), wc.Samples(values))
        false += any(finding.kind.startswith("trend") for finding in findings)
    assert false <= 1


def test_shares_of_a_whole_are_not_all_too_high() -> None:
    """What one of them has too much, the others have too little."""
    rng = np.random.default_rng(2)
    concentration = np.exp(rng.normal(0.5, 0.3, (150, 3)))
    y = np.array([rng.dirichlet(row) for row in concentration])
    wrong = wc.Dirichlet(np.roll(concentration, 1, axis=0))
    draws = np.array([rng.dirichlet(row, 20) for row in np.roll(concentration, 1, axis=0)])
    for pred in (wrong, wc.Samples(draws)):
        claims = claims_of(pred, False)
        assert claims is not None
        assert "common shift" not in claims.tested
        assert not any(str(finding).startswith("all coordinates: targets") for finding in told(y, pred))
    normals = claims_of(wc.DiagonalNormal(np.zeros((4, 3)), np.ones((4, 3))), False)
    assert normals is not None
    assert "common shift" in normals.tested


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_family_has_findings_or_says_so(name: str) -> None:
    example = EXAMPLES[name]
    pred = example.family(*(np.concatenate([parameter] * 4) for parameter in example.parameters))
    y = np.concatenate([example.targets] * 4)
    if pred.supports("class_probs"):
        y = np.repeat(np.asarray(pred.labels())[1:2], len(y), axis=0)
    elif y.dtype.kind == "i":
        y = y + 5
    elif name == "Dirichlet":
        y = y[:, ::-1] ** 4 / np.sum(y**4, axis=1, keepdims=True)
    elif name == "Beta":
        y = y**4
    else:
        y = 3.0 * y + 4.0
    findings = told(y, pred)
    assert findings
    for finding in findings:
        assert "nan" not in finding.sentence
        assert finding.size is not None
        assert finding.interval is not None
        assert finding.interval[0] <= finding.size <= finding.interval[1]
        assert Finding.from_json(finding.to_json()) == finding


# -- none --------------------------------------------------------------------------------------------


def test_there_are_none_where_the_test_does_not_reject() -> None:
    found = result(MU + NOISE)
    assert found.pvalue > 0.05
    assert found.findings == ()
    assert found.smallest_error is not None
    first = repr(found).splitlines()[0]
    assert first == f"No miscalibration found ({found.pvalue_statement}). {found.smallest_error}."
    assert findings_of(make_setup(MU + 3.0, PRED), 0.0501) == ()


def test_calibrated_quantities_are_hardly_ever_called_wrong() -> None:
    """Without the test before them findings of calibrated models have an error rate of 0.05 too."""
    wrong = 0
    for seed in range(20):
        y = np.random.default_rng([seed, 31]).normal(MU)
        wrong += bool(told(y, PRED))
    assert wrong <= 4  # 0.003 to see more at a rate of 0.05


def test_wrong_spreads_do_not_make_other_findings() -> None:
    """Resamples of predictions that are too certain would call many means wrong: their own error does not."""
    kinds = [
        {f.kind for f in told(np.random.default_rng([seed, 32]).normal(MU, 3.0), PRED)} for seed in range(20)
    ]
    assert sum("spread" in found for found in kinds) >= 18
    assert sum(found != {"spread"} for found in kinds) <= 4


def test_what_is_likely_but_not_certain_says_so() -> None:
    """Spreads that are too small in 30 cases: off by themselves, not among all that is looked at."""
    few = slice(0, 30)
    y, pred = MU[few] + 1.35 * NOISE[few] / NOISE[few].std(), PRED[few]
    assert told(y, pred) == ()
    (found,) = findings_of(make_setup(y, pred), 0.01)()
    assert re.fullmatch(r"perhaps spreads are \d+% too small \(.*\)", str(found))
    assert found.kind == "spread"
    assert 0.002 < found.pvalue <= 0.05


def test_an_error_without_a_name_points_to_the_witness() -> None:
    found = findings_of(make_setup(MU + NOISE, PRED), 0.01)()
    assert [str(finding) for finding in found] == [UNNAMED]
    assert "wc.witness" in UNNAMED
    assert found[0].size is None


def test_objects_have_none_but_that() -> None:
    draws = np.empty((20, 4), dtype=object)
    for i, j in np.ndindex(draws.shape):
        draws[i, j] = frozenset({i, j})
    pred = wc.Samples(draws, kind="atoms")
    assert claims_of(pred, False) is None


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_cases_are_no_trouble(n: int) -> None:
    found = told(MU[:n] + 30.0 + NOISE[:n], wc.Normal(MU[:n], np.ones(n)))
    assert all("nan" not in finding.sentence for finding in found)


# -- clusters ----------------------------------------------------------------------------------------

CLUSTERS = np.repeat(np.arange(80), 5)
SHARED = 0.8 * np.random.default_rng(3).normal(size=80)[CLUSTERS] + 0.6 * NOISE


def in_clusters(y: Any, groups: Any) -> tuple[Finding, ...]:
    return findings_in(np.asarray(y), PRED, False, groups=groups)


@pytest.mark.parametrize("y", [MU + 0.8 + 1.6 * NOISE, MU + np.where(MU > 3.0, 1.5, 0.6) * NOISE])
def test_clusters_of_one_case_are_cases(y: Any) -> None:
    alone, each = in_clusters(y, None), in_clusters(y, np.arange(N))
    assert [finding.sentence for finding in each] == [finding.sentence for finding in alone]
    assert [f.interval for f in each] == [pytest.approx(f.interval, rel=1e-12) for f in alone]
    assert result(y, groups=np.arange(N)).findings == result(y).findings


def test_clusters_take_the_place_of_cases_in_intervals() -> None:
    """The standard error of a mean is that of the means of clusters, where all have the same size."""
    y = MU + 0.7 + SHARED
    found, alone = result(y, groups=CLUSTERS), result(y)
    first = found.findings[0]
    assert [first.kind, alone.findings[0].kind] == ["shift", "shift"]
    means = (y - MU).reshape(80, 5).mean(axis=1)
    (low, high), (near, far) = first.interval, alone.findings[0].interval
    assert high - low == pytest.approx(4.02 * means.std(ddof=1) / 80**0.5, rel=0.15)
    assert high - low > 1.5 * (far - near)
    assert "400 in 80 clusters: p-value and intervals are asymptotic" in repr(found)


def test_groups_of_a_trend_honour_clusters() -> None:
    """Five equal cases are one: the interval is that of a fifth of the cases."""
    some = np.repeat(np.arange(N // 5), 5)
    y, pred = (MU + 0.9 * (MU > 3.0) + NOISE)[some], PRED[some]
    clustered = findings_in(y, pred, False, groups=some)
    few = findings_in(y[::5], pred[::5], False)
    assert clustered[0].kind == few[0].kind == "trend of the centre"
    assert clustered[0].interval == pytest.approx(few[0].interval, abs=1e-9)
    assert clustered[0].sentence == few[0].sentence


def test_shares_of_clusters_have_wide_intervals() -> None:
    """Five equal cases are one: Wilson's interval is about that of a fifth of the cases."""
    some = np.repeat(np.arange(N // 5), 5)
    pred = wc.Quantiles(LEVELS, MU[:, None] + special.ndtri(LEVELS))[some]
    y = (MU + 1.8 * NOISE)[some]
    clustered = findings_in(y, pred, False, groups=some)[0]
    few = findings_in(y[::5], pred[::5], False)[0]
    assert clustered.kind == few.kind == "coverage"
    assert clustered.interval == pytest.approx(few.interval, abs=0.03)
    assert np.ptp(clustered.interval) == pytest.approx(np.ptp(few.interval), rel=0.2)


def test_dependence_within_clusters_is_no_finding() -> None:
    """Calibrated, but clusters share most of their noise: as independent cases many means look wrong."""
    wrong = {True: 0, False: 0}
    for seed in range(20):
        rng = np.random.default_rng([seed, 33])
        y = MU + 0.9 * rng.normal(size=80)[CLUSTERS] + np.sqrt(0.19) * rng.normal(size=N)
        for clustered in wrong:
            wrong[clustered] += bool(in_clusters(y, CLUSTERS if clustered else None))
    assert wrong[True] <= 4  # 0.003 to see more at a rate of 0.05
    assert wrong[False] >= 6


# -- results -----------------------------------------------------------------------------------------


def test_the_verdict_comes_first() -> None:
    found = result()
    first, *rest = repr(found).splitlines()
    assert first == f"Miscalibrated ({found.pvalue_statement}): {found.findings[0].sentence}."
    names = [line.split()[0] for line in rest]
    assert names[0] == "how"
    assert names.index("effect") < names.index("kernel") < names.index("method") < names.index("resamples")


def test_several_findings_are_told_one_by_one() -> None:
    found = result(MU + 0.8 + 1.6 * NOISE)
    assert {finding.kind for finding in found.findings} == {"shift", "spread"}
    lines = repr(found).splitlines()
    assert lines[0].endswith(f": {found.findings[0].short}; {found.findings[1].short}.")
    assert lines[1:3] == [f"  - {finding}" for finding in found.findings]
    page = found._repr_html_()
    places = [page.index(html.escape(text)) for text in (found.verdict, str(found.findings[1]), "kernel")]
    assert places == sorted(places)


@pytest.mark.parametrize(("spread", "side"), [(0.6, -1), (1.6, 1)])
def test_coverage_gives_the_yardstick_its_direction(spread: float, side: int) -> None:
    """Too few targets between two quantiles: the distance of these is too small."""
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    found = result(MU + NOISE, wc.Quantiles(levels, MU[:, None] + spread * special.ndtri(levels)))
    assert found.findings[0].kind == "coverage"
    assert found.findings[0].expected == pytest.approx(0.9)
    assert found.yardstick is not None
    assert found.yardstick.directed
    assert side * (found.yardstick.ratio - 1.0) > 0.0
    # Targets that are shifted leave an interval, too: a clearer finding of another kind takes the direction.
    clearer = replace(found.findings[0], kind="quantile")
    other = yardstick_with(found.estimate, [clearer, found.findings[0]])
    assert other is not None
    assert not other.directed
    assert TestResult.from_json(found.to_json()) == found
    old = found.findings[0].to_dict()
    del old["expected"]  # as it was stored before
    assert Finding.from_dict(old).expected is None


def test_small_errors_are_called_slight() -> None:
    found = result()
    slight = Yardstick("spreads", 0.98, 1.0, 0.96)
    (told,) = found.findings
    sentences = slight.sentence, f"all in all {slight.sentence}"  # of all cases, and of some coordinate
    for ratio, sentence in zip(((0.98, 0.96, 1.0), None), sentences, strict=True):
        estimate = replace(found.estimate, known_yardstick=slight)
        small = replace(found, estimate=estimate, findings=(replace(told, ratio=ratio),))
        first, second, *_ = repr(small).splitlines()
        assert first == f"Miscalibrated ({found.pvalue_statement}), but slightly: {sentence}."
        assert second == f"  - {told}"


@pytest.mark.parametrize("classes", [2, 3])
def test_what_never_happened_is_not_known_exactly(classes: int) -> None:
    """The standard error of a share is zero where none, or all, of the cases are of a kind."""
    p = np.full((20, classes), 0.1 / (classes - 1))
    p[:, 1] = 0.9
    pred = wc.Bernoulli(p[:, 1]) if classes == 2 else wc.Categorical(p)
    found = told(np.zeros(20, dtype=int), pred)
    never = [finding for finding in found if finding.size == 0.0]
    assert never
    assert all(0.05 < finding.interval[1] < 0.3 for finding in never), never


def test_a_wrong_unit_is_told_by_its_size() -> None:
    """Degrees that are not Celsius: the residuals are told as they are, or as a bound."""
    assert str(told(MU + 273.0 + 0.5 * NOISE, PRED)[0]).startswith("targets are 273.0 standard deviations")
    (far,) = told(MU + 273.0 + NOISE, wc.Laplace(MU, np.ones(len(MU))))
    assert str(far) == "targets are 8 standard deviations or more too high"


def test_tails_are_told_in_what_predictions_have() -> None:
    """Two standard deviations of normals; of others a central interval, since scores are none of theirs."""
    rng = np.random.default_rng(3)
    mu = 2.0 * rng.normal(size=600)
    y = rng.normal(mu)
    (found,) = told(y, wc.Laplace(mu, np.full(600, 0.707)))
    assert re.search(r"put right, .* are outside the predicted central 95% interval, 5% expected", str(found))
    # The same count with scales that put half of the targets where half of them should be.
    gap = np.abs(y - mu)
    outside = np.mean(gap > np.log(0.0455) / np.log(0.5) * np.median(gap))
    assert found.interval[0] <= outside <= found.interval[1]
    (peaks,) = told(mu + np.where(rng.random(600) < 0.5, -1.0, 1.0), wc.Laplace(mu, np.full(600, 0.9)))
    assert "in the predicted central 38% interval, with the spread put right, 38% expected" in str(peaks)
    heavy = mu + 0.8 * rng.standard_t(3.0, size=600)
    assert "beyond two standard deviations" in str(told(heavy, wc.Normal(mu, np.full(600, 1.2)))[-1])


def test_a_statistic_beyond_all_that_was_drawn_says_so() -> None:
    beyond = "-log10 of the smallest weighted p-value = 300 or more, far beyond all that was drawn"
    assert beyond in repr(result(MU + 3.0 * NOISE))
    assert "or more, far" not in repr(result(MU + NOISE))


def test_findings_do_not_depend_on_the_seed_of_the_test() -> None:
    assert result(rng=1).findings == result(rng=2).findings


def test_they_are_made_when_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, of the data that were tested, and in another process too."""
    made: list[int] = []

    def counted(*cases: Any, **options: Any) -> tuple[Finding, ...]:
        made.append(len(cases[0]))
        return findings_in(*cases, **options)

    monkeypatch.setattr(families, "findings_in", counted)
    y = MU + 1.3 * NOISE
    found, other = result(y), pickle.dumps(result(y))
    later = found.__dict__["findings"]
    assert {type(value) for value in vars(later).values()} == {
        np.ndarray,
        wc.Normal,
        bool,
        float,
        Reasons,
        type(None),
    }
    assert found.pvalue < 0.05
    assert made == []
    y += 5.0
    expected = told(MU + 1.3 * NOISE, PRED)
    assert found.findings == expected
    assert found.findings == expected
    assert made == [N]
    assert found.estimate.yardstick == result(MU + 1.3 * NOISE).estimate.yardstick
    assert pickle.loads(other).findings == expected
    assert not callable(found.__dict__["findings"])
    assert pickle.loads(pickle.dumps(found)) == found
    assert replace(found, n_samples=3).findings == expected


def test_stored_and_read_again() -> None:
    found = result()
    again = TestResult.from_json(found.to_json())
    assert again == found
    assert again.findings == found.findings
    assert repr(again) == repr(found)
    without = {key: value for key, value in found.to_dict().items() if key != "findings"}
    assert TestResult.from_dict(without).findings == ()
    with pytest.raises(ValueError, match=r"findings\[0\].kind must be a text"):
        TestResult.from_dict({**found.to_dict(), "findings": [{**found.findings[0].to_dict(), "kind": 3}]})


def test_other_methods_have_none() -> None:
    found = result(method="pearson")
    assert found.findings == ()
    assert repr(found).startswith(f"Miscalibrated ({found.pvalue_statement}).")


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    x = NOISE[:50]
    value, error, freedom = jackknife(lambda cases: x[cases].mean(keepdims=True), 50)
    assert value[0] == pytest.approx(x.mean())
    assert error[0] == pytest.approx(x.std(ddof=1) / np.sqrt(50.0))
    assert freedom == 49
