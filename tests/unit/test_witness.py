"""The witness: values and contributions by explicit sums, groups, segments, words, errors."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from scipy.special import expit, logit

import wellcal as wc
from wellcal.hypotests.findings.splits import Summary as Split_summary
from wellcal.hypotests.findings.splits import each_split
from wellcal.kernels import Callable, Delta, ExpDistance, Gaussian, Wasserstein
from wellcal.measures.round_numbers import round_between
from wellcal.problem.problem import prepare
from wellcal.problem.target_resampling import pool_draws
from wellcal.reporting.segmenting import segments_from
from wellcal.witnesses import Witness, witness
from wellcal.witnesses.axes import axis_of
from wellcal.witnesses.candidates import LARGEST_SHARE
from wellcal.witnesses.directions import directions_of_draws
from wellcal.witnesses.regions import grids_of
from wellcal.witnesses.scan import MaxTest
from wellcal.witnesses.segments import segments_of
from wellcal.witnesses.summaries import Summary, summaries_of_draws
from wellcal.witnesses.swapped import SwappedCandidates
from wellcal.witnesses.wording import how_often

N = 40
rng = np.random.default_rng(5)
MU, SIGMA = rng.normal(size=N), np.exp(0.2 * rng.normal(size=N))
Y = rng.normal(MU + 0.4, SIGMA)
PRED = wc.Normal(MU, SIGMA)
KERNEL = ExpDistance(Wasserstein()) @ Gaussian()
FAST = {"rng": 0, "n_resamples": 99}

PROBS = rng.dirichlet(np.ones(3), N)
VECTORS = rng.normal(size=(N, 2))
FAMILIES = {
    "Normal": (Y, PRED),
    "Bernoulli": (rng.integers(0, 2, N), wc.Bernoulli(PROBS[:, 0])),
    "Categorical": (
        np.array(["a", "b", "c"])[rng.integers(0, 3, N)],
        wc.Categorical(PROBS, classes=list("abc")),
    ),
    "ordinal": (rng.integers(1, 4, N), wc.Categorical(PROBS, support=[1, 2, 3])),
    "Poisson": (rng.poisson(4.0, N), wc.Poisson(np.exp(MU))),
    "Laplace": (Y, wc.Laplace(MU, SIGMA)),
    "StudentT without variance": (Y, wc.StudentT(1.5, MU, SIGMA)),
    "Gamma": (np.exp(Y), wc.Gamma(np.full(N, 2.0), np.exp(MU))),
    "Beta": (rng.uniform(0.1, 0.9, N), wc.Beta(np.full(N, 2.0), np.exp(MU))),
    "DiagonalNormal": (VECTORS, wc.DiagonalNormal(np.zeros((N, 2)), np.ones((N, 2)))),
    "MultivariateNormal": (VECTORS, wc.MultivariateNormal(np.zeros((N, 2)), np.tile(np.eye(2), (N, 1, 1)))),
    "Dirichlet": (PROBS, wc.Dirichlet(1.0 + PROBS[::-1])),
    "Mixture": (Y, wc.Mixture([PRED, wc.Normal(MU + 1.0, SIGMA)])),
    "atoms": (Y, wc.Samples(rng.normal(MU[:, None], 1.0, (N, 5)), kind="atoms")),
    "draws": (Y, wc.Samples(rng.normal(MU[:, None], 1.0, (N, 5)))),
    "draws of vectors": (VECTORS, wc.Samples(rng.normal(size=(N, 4, 2)))),
    "Quantiles": (Y, wc.Quantiles([0.1, 0.5, 0.9], MU[:, None] + np.array([-1.3, 0.0, 1.3]))),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(family):
    y, pred = FAMILIES[family]
    options = {"expectations": wc.Lowering(nodes=48, points=64)}
    found = witness(y, pred, **FAST, **options)
    estimate = wc.skce(y, pred, kernel=found.kernel, **options)
    assert float(found.estimate) == pytest.approx(estimate.value, rel=1e-9, abs=1e-14)
    assert found.estimate.standard_error == pytest.approx(estimate.standard_error, rel=1e-9)
    assert found.contributions.sum() == pytest.approx(estimate.value, rel=1e-9, abs=1e-13)
    np.testing.assert_allclose(found.scores / N, found.contributions, rtol=1e-10, atol=1e-16)
    assert len(found.locations[0]) == len(found.locations[1]) == len(found.values)
    assert found.groups
    # Of groups that say the same and are significant, another may be told than that of the smallest p-value.
    assert found.pvalue <= min(group.pvalue for group in found.groups) <= max(found.pvalue, found.alpha)
    assert ((found.pvalues <= found.alpha) == (np.abs(found.values) > found.high * (1 + 1e-9))).all()
    for group in found.groups:
        assert group.statement.startswith(group.direction)
        assert group.where in group.statement
        assert np.sign(group.statistic) == np.sign(group.observed - group.expected)
    json.dumps(found.to_dict(), allow_nan=False)


def test_scores_are_row_means_of_h():
    problem = prepare(Y, PRED, KERNEL)
    h = problem.h(problem.rows, problem.rows)
    np.fill_diagonal(h, 0.0)
    found = witness(Y, PRED, kernel=KERNEL, **FAST)
    np.testing.assert_allclose(found.scores, h.sum(axis=1) / (N - 1), rtol=1e-11)


def test_values_at_given_points():
    at = wc.Normal(np.array([0.0, 1.0]), np.array([1.0, 0.5])), np.array([0.3, -2.0])
    found = witness(Y, PRED, at, kernel=KERNEL, **FAST)
    distance = np.hypot(MU[:, None] - at[0].loc, SIGMA[:, None] - at[0].scale)
    gauss = np.exp(-0.5 * (Y[:, None] - at[1]) ** 2)
    variance = 1.0 + SIGMA[:, None] ** 2
    mean = np.exp(-0.5 * (MU[:, None] - at[1]) ** 2 / variance) / np.sqrt(variance)
    expected = np.mean(np.exp(-distance) * (gauss - mean), axis=0)
    np.testing.assert_allclose(found.values, expected, rtol=1e-11)
    assert found.locations[0] is at[0]
    np.testing.assert_array_equal(found.low, -found.high)
    weights = rng.gamma(1.0, size=N)
    weighted = witness(Y, PRED, at, kernel=KERNEL, weights=weights, **FAST)
    deviation = np.exp(-distance) * (gauss - mean)
    np.testing.assert_allclose(weighted.values, weights @ deviation / weights.sum(), rtol=1e-11)


def test_positive_where_targets_are_seen_more_often_than_promised():
    at = wc.Normal(np.zeros(2), np.ones(2)), np.array([-1.5, 1.5])
    found = witness(np.ones(N), wc.Normal(np.zeros(N), np.ones(N)), at, **FAST)
    assert found.values[0] < found.low[0] < 0 < found.high[1] < found.values[1]
    assert found.pvalues.max() <= 0.05


def test_number_of_drawn_locations():
    assert len(witness(Y, PRED, 7, **FAST).values) == 7


def test_weighted_contributions_add_up():
    weights = np.where(np.arange(N) < 5, 0.0, rng.gamma(1.0, size=N))
    found = witness(Y, PRED, weights=weights, **FAST)
    estimate = wc.skce(Y, PRED, kernel=found.kernel, weights=weights)
    assert found.contributions.sum() == pytest.approx(estimate.value, rel=1e-10)
    assert (found.contributions[:5] == 0.0).all()
    assert "worth" in repr(found)
    group = found.groups[0]
    if "exceed the predicted median" in group.direction:
        inside = group.cases
        assert group.observed == pytest.approx(
            np.average(Y[inside] > MU[inside], weights=weights[inside]), rel=1e-12
        )


# -- groups --------------------------------------------------------------------------------------------


def shifted(n=400, seed=1):
    local = np.random.default_rng(seed)
    mu = local.uniform(0.0, 8.0, n)
    return mu, local.normal(mu + np.where(mu > 4.0, 1.0, 0.0), 1.0)


def test_a_shift_of_large_predictions_is_told():
    mu, y = shifted()
    found = witness(y, wc.Normal(mu, np.ones(len(mu))), **FAST)
    first = found.groups[0]
    assert first.where.startswith("where the predicted mean is above")
    assert 3.0 < float(first.where.split()[-1]) < 7.0
    assert first.direction.startswith("targets exceed the predicted")
    assert first.pvalue == 0.01
    assert first.contribution == pytest.approx(found.contributions[first.cases].sum(), rel=1e-12)
    cut = float(first.where.split()[-1])
    np.testing.assert_array_equal(first.cases, np.flatnonzero(mu > cut))
    assert first.statement in found.statements
    assert first.statement in repr(found)
    assert found._repr_html_().startswith(
        "<p>These groups of cases do not follow their predictions (alpha = 0.05; "
    )


@pytest.mark.parametrize("seed", [1, 2, 7])
def test_overconfident_spread_is_told(seed):
    """Of all cases, though nearly all of them deviate more in units of their spread for two of the seeds."""
    local = np.random.default_rng(seed)
    mu = local.normal(size=300)
    found = witness(local.normal(mu, 2.0), wc.Normal(mu, np.ones(300)), **FAST)
    assert "targets lie outside the predicted central" in found.groups[0].direction
    assert "in all cases" in found.groups[0].statement


def test_a_class_that_occurs_half_as_often_is_told():
    local = np.random.default_rng(3)
    dog = local.uniform(0.0, 1.0, 600)
    y = np.where(local.uniform(size=600) < np.where(dog > 0.7, 0.5, 1.0) * dog, "dog", "cat")
    found = witness(y, wc.Categorical(np.stack([1 - dog, dog], axis=1), classes=["cat", "dog"]), **FAST)
    first = found.groups[0]
    assert first.direction.startswith("class 'dog' occurs")
    assert float(first.where.removeprefix("where its probability is above ").removesuffix("%")) > 65.0
    assert first.observed == pytest.approx(0.5 * first.expected, abs=0.08)


def test_vectors_are_told_by_coordinate():
    local = np.random.default_rng(4)
    y = local.normal(size=(200, 2)) + np.array([0.0, 1.0])
    found = witness(y, wc.DiagonalNormal(np.zeros((200, 2)), np.ones((200, 2))), **FAST)
    assert found.groups[0].direction.startswith("coordinate 2 of the targets lies on average")
    assert "above its predicted mean" in found.groups[0].direction


def test_objects_are_told_by_the_kernel():
    local = np.random.default_rng(6)
    words = np.array(["a", "b", "c", "d"], dtype=object)[local.integers(0, 4, (30, 6))]
    found = witness(
        ["e"] * 30,
        wc.Samples(words),
        kernel=Callable(lambda p, q: np.ones((len(p), len(q)))) @ Delta(),
        segments=["x"] * 15 + ["y"] * 15,
        **FAST,
    )
    assert found.groups[0].direction == "targets are less like their predictions than draws from these are"
    assert [s.where for s in found.segments] == ["in segment 'x'", "in segment 'y'"]


def test_reported_groups_do_not_repeat_each_other():
    mu, y = shifted()
    found = witness(y, wc.Normal(mu, np.ones(len(mu))), max_groups=20, **FAST)
    told = [(group.where, group.direction.split(" quantile")[0]) for group in found.groups]
    assert len(set(told)) == len(told)
    assert len(witness(y, wc.Normal(mu, np.ones(len(mu))), max_groups=2, **FAST).groups) == 2


def test_a_change_of_unit_changes_no_pvalue():
    mu, y = shifted(120)
    metres = witness(y, wc.Normal(mu, np.ones(120)), **FAST)
    inches = witness(39.37 * y, wc.Normal(39.37 * mu, np.full(120, 39.37)), **FAST)
    assert [g.pvalue for g in metres.groups] == [g.pvalue for g in inches.groups]
    for a, b in zip(metres.groups, inches.groups, strict=True):
        np.testing.assert_array_equal(a.cases, b.cases)
    np.testing.assert_allclose(metres.pvalues, inches.pvalues)


def told_by(words, values):
    """Cases that a description of one summary holds."""

    def told(text):
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)

    *_, name, number = words.rsplit(" ", 2)
    if name == "above":
        return values > told(number)
    if name == "below":
        return values < told(number)
    low = words.split(" is between ")[1].split(" and ")[0]
    return (values > told(low)) & (values < told(number))


def test_regions_tell_cases_apart_by_their_own_words():
    local = np.random.default_rng(8)
    s, t = local.normal(size=(2, 157))
    grids = grids_of([Summary("s", s), Summary("t", t)])
    assert [type(grid).__name__ for grid in grids] == ["Line", "Line", "Plane"]
    for grid, values in zip(grids, (s, t), strict=False):
        assert set(grid.kinds) == {"split", "interval"}
        for g in range(len(grid.kinds)):
            group = grid.group(g)
            np.testing.assert_array_equal(group.mask, told_by(group.where, values))
            assert group.kind == ("interval" if "between" in group.where else "split")
    plane = grids[2]
    for g in local.choice(len(plane.kinds), 200, replace=False):
        group = plane.group(int(g))
        first, second = group.where.split(" and t is ")
        mask = told_by(first, s) & told_by(f"where t is {second}", t)
        np.testing.assert_array_equal(group.mask, mask)


@pytest.mark.parametrize("index", [0, 2])
def test_sums_over_regions_are_sums_over_their_cases(index):
    local = np.random.default_rng(9)
    n, weights = 60, local.gamma(1.0, size=60)
    grid = grids_of([Summary(name, local.normal(size=n).round(1)) for name in "st"])[index]
    x = local.normal(size=(5, n))
    cells = np.asarray(x @ grid.membership(weights))
    masks = np.stack([grid.group(g).mask for g in range(len(grid.kinds))])
    expected = (x * weights) @ masks.T
    np.testing.assert_allclose(grid.totals(cells[0]), expected[0], atol=1e-12)
    groups = np.argsort(grid.piece, kind="stable")[::2]
    seen, units = np.zeros((len(groups), 5)), local.gamma(1.0, size=len(groups))
    for part, sums in grid.looked_up(groups, units)(np.ascontiguousarray(cells.T)):
        seen[part] = sums
    np.testing.assert_allclose(seen, (expected[:, groups] * units).T, atol=1e-12)
    variances = grid.variances(weights @ grid.membership(np.ones(n)))
    np.testing.assert_allclose(variances, masks @ weights, atol=1e-11)


def test_constant_summaries_and_ties_make_no_empty_groups():
    assert not grids_of([Summary("s", np.ones(20))])
    (line,) = grids_of([Summary("s", np.repeat([0.0, 1.0], [19, 1])), Summary("t", np.full(20, np.inf))])
    assert [line.group(g).mask.sum() for g in range(len(line.kinds))] == [19, 1]
    constant = witness(Y, wc.Normal(np.zeros(N), np.ones(N)), **FAST)
    assert {group.where for group in constant.groups} == {"in all cases"}


def jaccard(group, mask):
    found = np.zeros(len(mask), dtype=bool)
    found[group.cases] = True
    return np.count_nonzero(found & mask) / np.count_nonzero(found | mask)


@pytest.mark.parametrize("kind", ["interval", "box"])
def test_planted_regions_of_normals_are_found(kind):
    local = np.random.default_rng(11)
    mu, sigma = local.uniform(0.0, 8.0, 1000), local.uniform(0.5, 1.5, 1000)
    bad = (mu > 3.0) & (mu < (5.0 if kind == "interval" else 7.0))
    if kind == "box":
        bad &= sigma < 0.9
    found = witness(local.normal(mu + sigma * bad, sigma), wc.Normal(mu, sigma), 5, **FAST)
    first = found.groups[0]
    assert (first.kind, first.pvalue) == (kind, 0.01)
    assert "where the predicted mean is between " in first.statement
    assert ("and the predicted standard deviation is below 0." in first.statement) == (kind == "box")
    assert jaccard(first, bad) >= 0.7
    what = first.direction.split(" quantile")[0]
    again = [group for group in found.groups[1:] if group.direction.startswith(what)]
    assert all(np.isin(group.cases, first.cases).mean() < 0.9 for group in again)  # a part of it is no news


def test_a_planted_box_of_classes_is_found_between_cuts():
    local = np.random.default_rng(5)
    probs = local.dirichlet(np.ones(4), 1000)
    p, top = probs[:, 0], probs.max(axis=1)
    bad = (p > 0.22) & (p < 0.6) & (top > 0.53) & (top < 0.76)
    raised = np.where(bad, expit(logit(p) + 2.0), p)
    truth = probs * ((1.0 - raised) / (1.0 - p))[:, None]
    truth[:, 0] = raised
    y = (local.random((1000, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
    first = witness(y, wc.Categorical(probs), 5, **FAST).groups[0]
    assert (first.kind, first.pvalue <= 0.05) == ("box", True)
    assert jaccard(first, bad) >= 0.7
    one, other = first.where.split(" and the largest probability is ")
    mask = told_by(one, p) & told_by(f"where it is {other}", top)
    np.testing.assert_array_equal(np.flatnonzero(mask), first.cases)


def test_a_thousand_normals_are_looked_at_in_few_groups():
    """What the time of a call goes with: sums over candidates, in all sets of targets."""
    mu, sigma = np.random.default_rng(6).uniform(1.0, 2.0, (2, 1000))
    found = witness(mu, wc.Normal(mu, sigma), 5, rng=0, n_resamples=19)
    assert found.provenance["candidates"] <= 7 * (1 + 2 * 527 + 10_816)


def test_a_planted_interval_of_a_class_is_found():
    local = np.random.default_rng(12)
    p = local.uniform(0.0, 1.0, 1000)
    bad = (p > 0.3) & (p < 0.6)
    found = witness(local.random(1000) < np.where(bad, 0.6 * p, p), wc.Bernoulli(p), 5, **FAST)
    assert found.groups[0].where.startswith("where its probability is between ")
    assert jaccard(found.groups[0], bad) >= 0.7


# -- segments ------------------------------------------------------------------------------------------


class Column(list):
    """What a column of a data frame looks like from here."""

    name = "region"


class Frame:
    def __init__(self, **columns):
        self.columns = list(columns)
        self._data = columns

    def __getitem__(self, name):
        return self._data[name]


LABELS = ["north"] * 25 + ["south"] * 15


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        (LABELS, ["in segment 'north'", "in segment 'south'"]),
        (np.array(LABELS), ["in segment 'north'", "in segment 'south'"]),
        (Column(LABELS), ["for region = north", "for region = south"]),
        ({"region": LABELS}, ["for region = north", "for region = south"]),
        (
            Frame(region=np.array(LABELS, dtype=object)),
            ["for region = north", "for region = south"],
        ),
        ({"night": np.arange(N) < 20}, ["where night", "where not night"]),
        (np.repeat([3, 1], 20), ["in segment 1", "in segment 3"]),
        (
            {"age": np.arange(N)},
            [
                "where age is below 10",
                "where age is between 10 and 20",
                "where age is between 20 and 30",
                "where age is 30 or above",
            ],
        ),
        (torch.tensor([0] * 20 + [1] * 20), ["in segment 0", "in segment 1"]),
    ],
)
def test_segments(segments, expected):
    found = witness(Y, PRED, segments=segments, **FAST)
    assert [segment.where for segment in found.segments] == expected
    assert all(segment.kind == "segment" for segment in found.segments)
    assert sum(segment.n_samples for segment in found.segments) == N


def test_a_bad_segment_is_found():
    mu = rng.normal(size=200)
    bad = np.arange(200) % 4 == 0
    y = rng.normal(mu + np.where(bad, 1.5, 0.0), 1.0)
    found = witness(y, wc.Normal(mu, np.ones(200)), segments=np.where(bad, "b", "g"), **FAST)
    good = next(s for s in found.segments if s.where == "in segment 'g'")
    worst = next(s for s in found.segments if s.where == "in segment 'b'")
    assert worst.pvalue <= 0.05 < good.pvalue


def test_segments_come_in_the_order_in_which_they_were_given():
    """Whatever their sizes are, by which groups are compared with each other."""
    found = witness(Y, PRED, segments=["few"] * 12 + ["many"] * (N - 12), **FAST)
    assert [s.where for s in found.segments] == ["in segment 'few'", "in segment 'many'"]


def test_small_segments_are_named():
    found = witness(Y, PRED, segments=["rare"] * 3 + ["common"] * (N - 3), **FAST)
    assert found.provenance["segments too small"] == ["in segment 'rare'"]
    assert len(found.segments) == 1


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        (LABELS[:-1], "segments and predictions must have the same length, found 39 and 40"),
        ([None, *LABELS[1:]], r"segments has no value in row 0 \(1 in all\)"),
        ({"x": [1.0] * 4 + [float("nan")] * 36}, r"segments\['x'\] has no value in row 4 \(36 in all\)"),
        (np.ones((N, 2)), "segments must be 1-dimensional"),
    ],
)
def test_bad_segments(segments, message):
    with pytest.raises(ValueError, match=message):
        witness(Y, PRED, segments=segments, **FAST)


def test_segments_that_are_numbers_with_many_values():
    with pytest.raises(ValueError, match="1001 different labels for 1001 cases; give at most 1000"):
        segments_of([f"{k}" for k in range(1001)], 1001)
    assert [int(cases.mask.sum()) for cases in segments_of(np.arange(1001), 1001)] == [250, 250, 250, 251]
    with pytest.raises(TypeError, match="found the one string"):
        segments_of("region", 3)


def test_reports_make_the_same_segments():
    given = {"age": np.linspace(18.0, 77.0, N), "region": LABELS, "visits": np.arange(N) % 3}
    found, left_out = segments_from(given, N, lambda column, name: column)
    assert left_out == []
    of_witness = segments_of(given, N)
    assert [segment.where for segment in found] == [cases.where for cases in of_witness]
    for segment, cases in zip(found, of_witness, strict=True):
        assert np.flatnonzero(cases.mask).tolist() == segment.rows.tolist()


def test_cuts_on_grids_have_few_digits():
    """Probabilities on a grid, and one less them, are the same numbers up to rounding."""
    p = np.linspace(0.05, 0.95, 10_000)
    both = np.concatenate([p, 1.0 - p[::-1], p + 1e-16])
    axis = axis_of(Summary("the predicted probability", both), 31)
    assert len(axis.ordered) == 10_000
    assert np.bincount(axis.level).tolist() == [3] * 10_000
    for end in axis.ends[1:-1]:
        assert len(f"{axis.number(end):.15g}") <= 7
        assert np.count_nonzero(both < axis.number(end)) == 3 * end


def test_cuts_lie_on_no_case():
    """Counts: "below 4" does not mean "4 or below"."""
    values, cuts = np.arange(100.0), 0
    for split in each_split([Split_summary("predicted mean", values)]):
        name = split.name.removeprefix("where the predicted mean is ")
        if name.startswith("above"):
            cut = float(name.removeprefix("above "))
            assert cut not in values
            np.testing.assert_array_equal(split.inside, values > cut)
            cuts += 1
    assert cuts == 3


# -- multiplicity --------------------------------------------------------------------------------------


def test_max_test_by_hand():
    sums = np.array([[3.0, -4.0], [1.0, 0.0], [-1.0, 0.0], [1.0, 4.0]])
    test = MaxTest.of(sums)
    np.testing.assert_allclose(test.scale, [np.sqrt(3.0), np.sqrt(8.0)])
    np.testing.assert_allclose(test.largest, [np.sqrt(3.0), 1 / np.sqrt(3.0), 1 / np.sqrt(3.0), np.sqrt(2.0)])
    np.testing.assert_allclose(test.pvalues, [0.25, 0.5])
    np.testing.assert_allclose(test.half_width(0.25), test.scale * np.sqrt(2.0))


def test_sums_without_spread_show_nothing():
    test = MaxTest.of(np.zeros((5, 2)))
    assert (test.pvalues == 1.0).all()
    assert MaxTest.of(np.zeros((5, 0))).pvalues.shape == (0,)


# -- words ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("observed", "expected", "words"),
    [
        (0.31, 0.1, "three times as often as predicted"),
        (0.2, 0.1, "twice as often as predicted"),
        (0.13, 0.1, "1.3 times as often as predicted"),
        (0.05, 0.1, "half as often as predicted"),
        (0.034, 0.1, "a third as often as predicted"),
        (0.07, 0.1, "30% less often than predicted"),
        (0.0958, 0.1, "4% less often than predicted"),
        (0.104, 0.1, "4% more often than predicted"),
        (0.1, 0.1, "as often as predicted"),
        (6.1e-7, 0.1, "hardly ever"),
        (0.9, 7e-5, "12,900 times as often as predicted"),
        (0.0, 0.1, "in no case"),
        (0.5, 0.01, "50 times as often as predicted"),
    ],
)
def test_how_often(observed, expected, words):
    assert how_often(observed, expected) == words


def test_round_numbers_lie_between():
    local = np.random.default_rng(0)
    for _ in range(200):
        low, high = np.sort(local.normal(size=2) * 10.0 ** local.integers(-6, 6))
        found = round_between(low, high)
        assert low < found < high
        assert len(f"{found:.15g}") <= len(f"{high:.15g}")
    assert round_between(0.0, np.nextafter(0.0, 1.0)) == 0.0  # nothing lies between


def test_repr_of_a_calibrated_model():
    pred = wc.Normal(np.zeros(N), np.ones(N))
    found = witness(pred.sample(0), pred, **FAST)
    assert repr(found).startswith(
        "No group of cases is further from its predictions than chance allows (smallest p ="
    )
    assert isinstance(found, Witness)
    assert found.statements == ()


# -- libraries -----------------------------------------------------------------------------------------


def test_results_live_where_the_input_lived():
    plain = witness(Y, PRED, **FAST)
    tensor = witness(torch.tensor(Y), wc.Normal(torch.tensor(MU), torch.tensor(SIGMA)), **FAST)
    assert isinstance(tensor.contributions, torch.Tensor)
    np.testing.assert_allclose(tensor.values.numpy(), plain.values)
    with jax.enable_x64(True):
        array = witness(jnp.asarray(Y), wc.Normal(jnp.asarray(MU), jnp.asarray(SIGMA)), **FAST)
        assert isinstance(array.scores, jax.Array)
        np.testing.assert_allclose(np.asarray(array.scores), plain.scores)
    assert tensor.groups[0].statement == plain.groups[0].statement


# -- errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha must be between 0 and 1, found 0.0"),
        ({"quantile_levels": [0.5, 1.0]}, "quantile_levels must be numbers strictly between 0 and 1"),
        ({"min_cases": 0}, "min_cases must be a whole number of at least 1"),
        ({"n_resamples": 0}, "n_resamples must be a whole number between 1 and 100000000"),
        ({"n_resamples": 9}, "nothing can be shown at alpha=0.05; take n_resamples=399"),
        ({"weights": -np.ones(N)}, "weights must not be negative in row 0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        witness(Y, PRED, **{**FAST, **options})


def test_bad_cases():
    with pytest.raises(TypeError, match="truth first"):
        witness(PRED, Y)
    with pytest.raises(ValueError, match="at least 2 cases, found 1"):
        witness(Y[:1], PRED[:1], **FAST)
    with pytest.raises(ValueError, match="y is not finite in row 3"):
        witness(np.where(np.arange(N) == 3, np.nan, Y), PRED, **FAST)


@pytest.mark.parametrize("seed", [0, 3])
def test_told_groups_show_what_is_told_of_them(seed):
    """Cases that are told to be too high do not belong to a group that is too low, short as its name were."""
    some = np.random.default_rng(seed)
    mu = some.normal(size=(300, 2))
    y = mu + some.normal(size=(300, 2))
    y[:, 0] += np.where(mu[:, 0] < 0.0, 1.0, np.where(mu[:, 1] < 0.7, -1.15, 0.0))
    found = wc.witness(y, wc.DiagonalNormal(mu, np.ones((300, 2))), rng=0, n_resamples=99)
    sure = [group for group in found.groups if group.pvalue <= 0.05]
    assert {group.statistic > 0.0 for group in sure if group.direction.startswith("coordinate 1")} == {
        True,
        False,
    }
    assert min(abs(group.statistic) for group in sure) > 3.0


@pytest.mark.parametrize("seed", range(3))
def test_nearly_all_cases_are_no_group(seed: int) -> None:
    """They are told as all of them; what errs the other way among the few that are left is told, too."""
    rng = np.random.default_rng(seed)
    mu = rng.uniform(size=1500)
    few = mu < 0.03
    pred = wc.Normal(mu, np.ones(1500))
    found = wc.witness(rng.normal(mu + np.where(few, -0.5, 0.5), 1.0), pred, rng=0, n_resamples=199)
    shares = [group.n_samples / 1500 for group in found.groups if group.kind != "all"]
    assert all(share <= LARGEST_SHARE for share in shares)
    named = wc.witness(
        rng.normal(mu + 0.5, 1.0), pred, segments={"few": np.where(few, "few", "many")}, rng=0, n_resamples=99
    )
    assert "all" in [group.kind for group in named.groups]
    assert max(group.n_samples for group in named.segments) > LARGEST_SHARE * 1500  # somebody asked for it


def test_few_cases_that_err_the_other_way_are_told_beside_all() -> None:
    rng = np.random.default_rng(1)
    mu = rng.uniform(size=1500)
    y = rng.normal(mu + np.where(mu > 0.03, 0.5, -2.0), 1.0)
    groups = wc.witness(y, wc.Normal(mu, np.ones(1500)), rng=0, n_resamples=199).groups
    assert groups[0].where == "in all cases"
    assert any(group.n_samples < 0.05 * 1500 for group in groups[1:])


def test_hard_probabilities_are_told_by_what_they_called_impossible() -> None:
    p = np.repeat([0.0, 1.0], 50)
    y = np.where(np.arange(100) % 10 == 0, 1 - p, p)
    found = repr(wc.witness(y, p, rng=0, n_resamples=19))
    assert found.startswith("10 cases had probability 0 for what happened (of 100); in no group is enough")
    assert "adjusted for" not in found
    soft = repr(wc.witness(y, np.concatenate([p[:50], np.full(50, 0.9)]), rng=0, n_resamples=19))
    assert "impossible  5 cases had probability 0 for what happened" in soft
    assert "adjusted for" in soft


def told_and_counted(group, y, draws):
    """Cases and share of a group, counted by hand from the draws alone."""
    inside = np.ones(len(y), dtype=bool)
    known = {"the predicted mean": draws.mean(axis=1), "the predicted standard deviation": draws.std(axis=1)}
    for side in group.rule.sides:
        inside &= (known[side.summary] > side.low) & (known[side.summary] < side.high)
    at = [np.quantile(draws, level, axis=1, method="inverted_cdf") for level in group.rule.levels]
    if "outside" in group.direction:
        happened = (y < at[0]) | (y > at[1])
    else:
        happened = y > at[0] if "exceed" in group.direction else y < at[0]
    return np.flatnonzero(inside), happened[inside].mean()


@pytest.mark.parametrize("wrong", ["spread", "spread where it is large", "mean where it is large"])
def test_groups_of_draws_are_those_of_the_draws_alone(wrong):
    """An outcome does not choose its group: who has the draws finds these cases, and these shares."""
    random, n = np.random.default_rng(2), 300
    mu, sigma = 2.0 * random.normal(size=n), np.exp(0.7 * random.normal(size=n))
    if wrong == "spread":
        mu, sigma = 2.0 * random.normal(size=n), np.full(n, 0.5)
    large = np.ones(n) if wrong == "spread" else (sigma > 1.2 if wrong.startswith("spread") else mu > 1.0)
    draws = random.normal(mu[:, None], sigma[:, None], (n, 9))
    if wrong.startswith("spread"):
        y = random.normal(mu, np.where(large, 2.5, 1.0) * sigma)
    else:
        y = random.normal(mu + 1.5 * large * sigma, sigma)
    found = witness(y, wc.Samples(draws), 5, quantile_levels=(0.1, 0.9), **FAST)
    groups = [group for group in found.groups if group.pvalue <= found.alpha]
    assert (groups[0].kind == "all") == (wrong == "spread")
    for group in groups:
        cases, share = told_and_counted(group, y, draws)
        np.testing.assert_array_equal(group.cases, cases)
        assert group.observed == pytest.approx(share, rel=1e-12)
        assert len(cases) >= 10


def test_what_calibration_makes_of_a_group_of_draws():
    """Close draws leave out more targets than others: what is expected says so, and nothing is found."""
    random, n = np.random.default_rng(4), 3000
    mu = random.normal(size=n)
    draws, y = random.normal(mu[:, None], 1.0, (n, 5)), random.normal(mu)
    pool = pool_draws(y, wc.Samples(draws))
    (outside,) = [
        d for d in directions_of_draws(pool, (0.25, 0.75), summaries_of_draws(pool)) if "outside" in d.name
    ]
    scanned = SwappedCandidates([outside], pool.values, [], np.ones(n), 10)
    scanned.sums(y[None], np.full((1, n), 5))
    spread = draws.std(axis=1)
    for k in range(len(scanned)):
        candidate = scanned[k]
        sides = candidate.cases.sides
        if len(sides) == 1 and sides[0].summary == "the predicted standard deviation" and sides[0].high < 0.7:
            break
    inside = candidate.cases.mask
    np.testing.assert_array_equal(inside, (spread > sides[0].low) & (spread < sides[0].high))
    # Many other cases of the same kind tell what a calibrated model has there.
    more = random.normal(size=(200_000, 6))
    narrow = (more[:, :5].std(axis=1) > sides[0].low) & (more[:, :5].std(axis=1) < sides[0].high)
    low, high = np.sort(more[:, :5], axis=1)[:, [1, 3]].T
    true = ((more[:, 5] < low) | (more[:, 5] > high))[narrow].mean()
    assert true > 4.0 / 6.0 + 0.05
    assert scanned.promised(candidate) == pytest.approx(true, abs=0.03)


def test_outliers_do_not_blur_the_spread_of_draws():
    draws = np.random.default_rng(0).normal(size=(20, 6))
    pool = pool_draws(np.full(20, 1e12), wc.Samples(draws))
    mean, spread = summaries_of_draws(pool)
    np.testing.assert_allclose(spread.values, draws.std(axis=1), rtol=1e-12)
    np.testing.assert_allclose(mean.values, draws.mean(axis=1), rtol=1e-10, atol=1e-14)
    others = np.delete(pool.values, 2, axis=1)
    np.testing.assert_allclose(spread.swapped[:, 2], others.std(axis=1), rtol=1e-9)


@pytest.mark.parametrize("size", [2, 5, 9, 20])
@pytest.mark.parametrize("rounded", [False, True])
def test_intervals_of_draws_are_those_of_coverage(size, rounded):
    """One interval has one meaning: the share outside is the rest of what `interval_coverage` tells."""
    random = np.random.default_rng(size)
    draws, y = random.normal(size=(60, size)), random.normal(size=60)
    if rounded:
        draws, y = np.round(draws), np.round(y)
    found = directions_of_draws(pool_draws(y, wc.Samples(draws)), (0.1, 0.25, 0.75, 0.9))
    known = {d.name: d for d in found if "outside" in d.name}
    covered = wc.interval_coverage(y, wc.Samples(draws), levels=[0.5, 0.8])
    for level, inside, expected in zip(("50%", "80%"), covered.coverage, covered.expected, strict=True):
        direction = known[f"targets lie outside the predicted central {level} interval"]
        assert direction.of(y[None])[0].mean() == pytest.approx(1.0 - inside, abs=1e-12)
        if not rounded:
            assert direction.expected.mean() == pytest.approx(1.0 - expected, abs=1e-12)
