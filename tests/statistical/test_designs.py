"""The checks of statistical claims: their own error rates, by enumeration, and planted errors found."""

from __future__ import annotations

import re
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from . import designs
from .designs import BUDGET, CHECKS, POWER, SHARE, Rate

RATES = sorted({line.design for line in CHECKS.values() if line.design is not None}, key=str)


def test_all_checks_together_stay_within_the_budget() -> None:
    assert sum(line.count for line in CHECKS.values()) * SHARE <= BUDGET


@pytest.mark.parametrize("design", RATES, ids=str)
def test_each_design_has_the_error_rates_that_it_states(design: Rate) -> None:
    """By enumeration of all its paths: false alarms at the null and below it, and power at the doubled."""
    assert design.exact(0.9 * design.null).alarm <= design.exact(design.null).alarm <= SHARE
    assert design.exact(design.doubled).alarm >= POWER


def test_enumeration_by_hand() -> None:
    """A design small enough to go through all of its sequences of errors."""
    design = Rate(0.01, 0.9)
    most = design.most
    assert most <= 8
    for rate in (0.01, 0.3, 0.9):
        alarm = trials = 0.0
        for code in range(2**most):
            errors = [bool(code >> k & 1) for k in range(most)]
            chance = rate ** sum(errors) * (1 - rate) ** (most - sum(errors))
            verdict = design.run(errors)
            alarm += chance * verdict.alarm
            trials += chance * verdict.trials
        exact = design.exact(rate)
        assert (exact.alarm, exact.trials) == pytest.approx((alarm, trials), rel=1e-12)


@pytest.mark.parametrize("design", [Rate(0.05), Rate(0.2)], ids=str)
def test_a_doubled_rate_is_found_as_often_as_enumeration_says(design: Rate) -> None:
    rng = np.random.default_rng(61)
    alarms = sum(design.run(iter(rng.random(design.most) < design.doubled)).alarm for _ in range(500))
    designs.check_share("the tool", alarms, 500, design.exact(design.doubled).alarm, find=0.8)


def test_several_rates_end_where_each_would() -> None:
    rng = np.random.default_rng(62)
    errors = rng.random((3000, 2)) < [0.04, 0.2]
    together = designs.run_rates({"a": Rate(0.05), "b": Rate(0.1)}, ({"a": a, "b": b} for a, b in errors))
    assert together == {"a": Rate(0.05).run(errors[:, 0]), "b": Rate(0.1).run(errors[:, 1])}
    assert not together["a"].alarm
    assert together["b"].alarm


def test_too_few_errors_to_decide_are_not_a_pass() -> None:
    with pytest.raises(ValueError, match="2 trials are too few"):
        Rate(0.05).run([False, False])
    with pytest.raises(ValueError, match="too few trials"):
        designs.run_rates({"a": Rate(0.05)}, [{"a": False}])
    with pytest.raises(ValueError, match="0 < null < doubled < 1"):
        Rate(0.6)


# -- samples of fixed size ---------------------------------------------------------------------------


def test_means_too_far_off_are_found() -> None:
    values = np.random.default_rng(63).normal(size=200)
    bound, found = designs.mean_bound(200, 0.1)
    assert stats.t.sf(bound / 0.1, 199) == pytest.approx(0.5 * SHARE)
    assert stats.norm.sf((bound - found) / 0.1) == pytest.approx(POWER)
    with pytest.raises(AssertionError, match=r"the tool: .* expected 0.6"):
        unbooked(designs.check_mean, values, 0.6, find=1.0)
    with pytest.raises(AssertionError, match=r"a departure of 0.4.* is found, none of 0.1"):
        unbooked(designs.check_mean, values, 0.0, find=0.1)


def test_transforms_that_are_not_uniform_are_found() -> None:
    values = np.random.default_rng(64).random(6000)
    assert designs.uniform_power(6000, 0.045) >= POWER
    unbooked(designs.check_uniform, values, find=0.045)
    with pytest.raises(AssertionError, match="off by"):
        unbooked(designs.check_uniform, values**1.2, find=0.045)
    with pytest.raises(AssertionError, match=r"find a departure of 0.02 at"):
        unbooked(designs.check_uniform, values, find=0.02)


def test_counts_and_shares_and_spreads_that_are_wrong_are_found() -> None:
    unbooked(designs.check_counts, [510, 490], [500, 500], find=0.2)
    with pytest.raises(AssertionError, match="chi-square"):
        unbooked(designs.check_counts, [600, 400], [500, 500], find=0.2)
    with pytest.raises(AssertionError, match="is found at"):
        unbooked(designs.check_counts, [60, 40], [50, 50], find=0.2)
    unbooked(designs.check_share, 110, 2000, 0.05, find=0.1)
    with pytest.raises(AssertionError, match="200 of 2000"):
        unbooked(designs.check_share, 200, 2000, 0.05, find=0.1)
    with pytest.raises(AssertionError, match=r"100 cases find 0.1 at"):
        unbooked(designs.check_share, 5, 100, 0.05, find=0.1)
    with pytest.raises(AssertionError, match="root mean square 2"):
        unbooked(designs.check_spread, [2.0, -2.0] * 20, 1.0, find=2.0)


def unbooked(check, *arguments, **options) -> None:
    """A check that is not entered into the books."""
    before = designs._spent.copy()
    designs._spent["the tool"] = 0
    try:
        check("the tool", *arguments, **options)
    finally:
        designs._spent.clear()
        designs._spent.update(before)


# -- the books -----------------------------------------------------------------------------------------


def test_checks_that_are_not_in_the_books_are_refused() -> None:
    with pytest.raises(LookupError, match="'something else' is not among CHECKS"):
        designs.check_rate("something else", repeat(False))
    before = designs._spent.copy()
    designs._spent["debiased errors"] = CHECKS["debiased errors"].count
    try:
        with pytest.raises(LookupError, match="may be checked 1 times"):
            designs.check_mean("debiased errors", [1.0, 2.0], 1.5, find=1.0)
    finally:
        designs._spent.clear()
        designs._spent.update(before)


def test_no_statistical_bound_is_written_elsewhere() -> None:
    """A bound from a quantile, or of some standard errors, has an error rate that nobody counts."""
    own = re.compile(r"\.isf\(|\.ppf\(|\.interval\(|kstest|ks_2samp|chisquare\(|sem\(|< [345](\.0)? \* ")
    here = Path(__file__).parent
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in here.glob("test_*.py")
        if path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if own.search(line)
    ]
    assert not found


def test_every_line_of_the_books_is_used() -> None:
    """A line without a check would be a claim that nobody looks at."""
    text = "".join(path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py"))
    formats = ("power of auto: ", "bands: ")
    unused = [name for name in CHECKS if f'"{name}"' not in text and not name.startswith(formats)]
    assert not unused
    assert all(f'f"{start}' in text for start in chain(formats))
