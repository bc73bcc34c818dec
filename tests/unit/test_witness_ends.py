"""Ends of groups that the witness tells: the likeliest ones, with p-values that hold for them."""

import numpy as np
import pytest
from scipy import optimize

from wellcal.witnesses.axes import Region, axis_of
from wellcal.witnesses.candidates import Candidate, Candidates
from wellcal.witnesses.directions import Direction
from wellcal.witnesses.refine import PRICE, SLACK, Deviation, best_side, refined, side_around, widest_gap
from wellcal.witnesses.scan import ScanTest
from wellcal.witnesses.summaries import Cases, Summary

N = 40


def deviation(local, happens, weights=None):
    expected = local.uniform(0.05, 0.9, N)
    observed = (local.random(N) < expected) - expected if happens else local.normal(size=N)
    variance = expected * (1.0 - expected) if happens else local.gamma(2.0, size=N)
    return Deviation(observed, expected, variance, np.ones(N) if weights is None else weights, happens)


def region_of(*columns):
    axes = tuple(axis_of(Summary("s", column), 4) for column in columns)
    return Region(axes, tuple((0, len(axis.ordered)) for axis in axes))


@pytest.mark.parametrize("weighted", [False, True])
def test_gains_of_events_are_likelihood_ratios(weighted):
    local = np.random.default_rng(1)
    weights = local.gamma(2.0, size=N) if weighted else np.ones(N)
    made = deviation(local, True, weights)
    p, y = made.expected, made.observed + made.expected
    odds = p / (1.0 - p) * np.exp(0.7 * weights)
    raised = odds / (1.0 + odds)
    ratio = y * np.log(raised / p) + (1.0 - y) * np.log((1.0 - raised) / (1.0 - p))
    np.testing.assert_allclose(made.gains(0.7), 2.0 * ratio, atol=1e-12)


@pytest.mark.parametrize("happens", [False, True])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_size_is_the_likeliest(happens, sign):
    local = np.random.default_rng(2)
    made = deviation(local, happens, local.gamma(2.0, size=N))
    mask = sign * made.observed > -0.3
    best = optimize.minimize_scalar(
        lambda size: -made.gains(size)[mask].sum(), bounds=sorted((0.0, sign * 3.0)), method="bounded"
    )
    assert made.size(mask, sign) == pytest.approx(best.x, abs=1e-4)


def test_a_side_is_the_best_of_all():
    local = np.random.default_rng(3)
    for _ in range(60):
        upto = np.concatenate([[0.0], np.cumsum(local.normal(0.3, 4.0, size=9))])
        first, last = best_side(upto)

        def value(a, b, upto=upto):
            return upto[b] - upto[a] - PRICE * ((a > 0) + (b < 9))

        assert value(first, last) == pytest.approx(
            max(value(a, b) for a in range(9) for b in range(a + 1, 10))
        )
        first, last = side_around(upto, (3, 5))
        every = max(value(a, b) for a in range(4) for b in range(5, 10))
        assert value(first, last) == pytest.approx(every)


def test_refined_ends_are_likelier_and_outwards_keep_all_cases():
    local = np.random.default_rng(4)
    x, y = local.normal(size=(2, N)).round(1)
    for happens in (False, True):
        made = deviation(local, happens)
        whole = region_of(x, y)
        ends = tuple((int(axis.ends[1]), int(axis.ends[3])) for axis in whole.axes)
        start = Region(whole.axes, ends)
        before = made.worth(start.mask, 1.0, 4)
        for outwards in (False, True):
            found = refined(made, start, 1.0, outwards=outwards)
            assert found.worth == pytest.approx(made.worth(found.region.mask, 1.0, sum(found.region.cuts)))
            assert found.worth >= before - 4 * SLACK
            assert not outwards or np.all(found.region.mask[start.mask])


def test_a_wide_gap_nearby_is_taken_whatever_the_unit():
    ordered = np.array([0.0, 1.0, 1.1, 1.9, 2.0, 3.5])
    loss = np.array([9.0, 0.0, 0.5, 1.9, 0.0, 3.0, 9.0])
    for unit in (1.0, 39.37, 1e-3):
        assert widest_gap(unit * ordered, 2, 1, 5, loss) == 1
        assert widest_gap(unit * ordered, 3, 2, 5, loss) == 3
    assert widest_gap(np.arange(6.0), 4, 1, 5, loss) == 4  # none is wider: it stays


def test_a_group_between_cuts_has_the_pvalue_of_one_within_it():
    local = np.random.default_rng(7)
    n = 200
    x, y = local.normal(size=(2, n))
    half = np.full(n, 0.5)
    errs = (x > -0.45) & (x < 0.85)

    def of(targets):
        return targets > 0.5

    summaries = (Summary("x", x), Summary("y", y))
    direction = Direction(of, half, lambda a, b: ("it happens", "so"), summaries)
    candidates = Candidates([direction], [], np.ones(n), 10)
    sets = local.random((100, n))
    sets[0] = np.where(errs, sets[0] ** 0.4, sets[0])
    test = ScanTest(candidates, candidates.sums(sets))
    told = test.striking(1, 0.05)[0]
    mask = told.candidate.cases.mask
    own = [candidates[k].cases.mask for k in range(len(candidates))]
    assert not any(np.array_equal(mask, other) for other in own)
    assert np.count_nonzero(mask & errs) >= 0.8 * np.count_nonzero(mask | errs)
    inside = [k for k in range(len(own)) if not np.any(own[k] & ~mask) and test.z[k] > 0.0]
    large = [k for k in inside if own[k].sum() >= 0.25 * mask.sum()]
    assert told.pvalue == min(test.pvalues[large]) <= 0.05
    assert told.z == pytest.approx((of(sets[0]) - half)[mask].sum() / np.sqrt(0.25 * mask.sum()))
    # A group without one case of the most significant candidate cannot have its p-value.
    weak = local.random((100, n))
    weak[0] = np.where(errs, weak[0] ** 0.75, weak[0])
    candidates = Candidates([direction], [], np.ones(n), 10)
    test = ScanTest(candidates, candidates.sums(weak))
    best = int(np.argmax(test.excess))
    fewer = own[best].copy()
    fewer[np.flatnonzero(fewer)[0]] = False
    grown = test.grown(Candidate(Cases("there", fewer, "interval"), direction), best)
    inside = [k for k in range(len(own)) if not np.any(own[k] & ~fewer) and test.z[k] * test.z[best] > 0.0]
    assert grown is not None
    assert grown.pvalue == min(test.pvalues[k] for k in inside if own[k].sum() >= 0.25 * fewer.sum())
    assert grown.pvalue > test.pvalues[best]
