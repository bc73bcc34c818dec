"""Checks of statistical claims whose own errors are known: how often they alarm falsely, and what they find.

Seeds are fixed, so that a run says the same each time. The rates here are those of choosing seeds, or of a
change to the code that draws other random numbers.

- `Rate` looks at a stream of errors (rejections of a true hypothesis, say) until it is clear whether they
  come at their rate or at twice that: few data sets where all is well, many where it is not.
- `check_mean`, `check_uniform`, `check_counts` and `check_share` are for samples of fixed size. Each is told
  what it must `find` with probability 0.9, and refuses a sample that is too small for it.

Every check may raise a false alarm with probability `SHARE`. `CHECKS` lists how many there are, and
`test_designs.py` that all of them together stay within `BUDGET`. A check that is not in the list, or is made
more often than it says, is an error.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

BUDGET = 1e-3
"""Probability of a false alarm in one run of all tests."""

SHARE = 3e-6
"""That of each check."""

POWER = 0.9
"""Probability with which a check finds what it is for."""
_ALARM = -math.log(SHARE)
_PASS = math.log(0.075)  # less than 1 - POWER: some of that goes into the end after `most` trials

# -- rates, one data set after the other -------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """How a sequential check ended."""

    alarm: bool
    errors: int
    trials: int

    @property
    def rate(self) -> float:
        return self.errors / self.trials


@dataclass(frozen=True)
class Exact:
    """What a design does at a rate, by enumeration of its paths."""

    alarm: float
    trials: float


@dataclass(frozen=True)
class Rate:
    """Sequential check that errors come at a rate of at most `null`, and not at `doubled`.

    Wald's test of the two rates: it alarms when their likelihood ratio reaches ``1 / SHARE``. That
    happens with probability `SHARE` at most at every rate up to `null`, however long one goes on (Ville's
    inequality), and also where data sets depend on each other, as long as the rate given the earlier ones
    stays below. It passes when the ratio falls to 0.075, or after `most` trials, the least number with
    which `doubled` is found with probability `POWER`.

    Examples
    --------
    >>> design = Rate(0.05)
    >>> design.doubled
    0.1
    >>> design.exact(0.1).alarm >= 0.9 and design.exact(0.05).alarm <= 5e-6
    True
    >>> round(design.exact(0.05).trials)
    157
    """

    null: float
    find: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.null < self.doubled < 1.0:
            raise ValueError(f"rates must be 0 < null < doubled < 1, found {self.null}, {self.doubled}")

    @property
    def doubled(self) -> float:
        return 2.0 * self.null if self.find is None else self.find

    @cached_property
    def _steps(self) -> tuple[float, float]:
        """What an error, and what none, adds to the logarithm of the likelihood ratio."""
        return math.log(self.doubled / self.null), math.log((1.0 - self.doubled) / (1.0 - self.null))

    def decide(self, errors: int, trials: int) -> bool | None:
        """True for an alarm, False for a pass, None to go on; `most` not counted."""
        up, down = self._steps
        ratio = errors * up + (trials - errors) * down
        if ratio >= _ALARM:
            return True
        return False if ratio <= _PASS else None

    def paths(self, rate: float) -> Iterator[tuple[float, float]]:
        """After each trial: probability of an alarm so far, and of going on."""
        up, down = self._steps
        going, alarms = np.ones(1), 0.0  # by number of errors
        trials = 0
        while True:
            trials += 1
            going = np.append(going * (1.0 - rate), 0.0) + np.append(0.0, going * rate)
            errors = np.arange(trials + 1)
            ratio = errors * up + (trials - errors) * down
            high, low = ratio >= _ALARM, ratio <= _PASS
            alarms += float(going[high].sum())
            going[high | low] = 0.0
            yield alarms, float(going.sum())

    @cached_property
    def most(self) -> int:
        """Trials after which it passes at the latest."""
        for trials, (alarms, going) in enumerate(self.paths(self.doubled), start=1):
            if alarms >= POWER:
                return trials
            if alarms + going < POWER:
                break
        raise ValueError(f"{self} cannot have a power of {POWER}")

    def exact(self, rate: float) -> Exact:
        """Probability of an alarm, and mean number of trials, at a rate."""
        paths = list(islice(self.paths(rate), self.most))
        trials = 1.0 + sum(going for _, going in paths[:-1])
        return Exact(paths[-1][0], trials)

    def run(self, errors: Iterable[Any]) -> Verdict:
        """Take as many of the `errors` as are needed."""
        seen = 0
        trials = 0
        for trials, error in enumerate(errors, start=1):
            seen += bool(error)
            decision = self.decide(seen, trials)
            if decision is not None or trials == self.most:
                return Verdict(bool(decision), seen, trials)
        raise ValueError(f"{trials} trials are too few, {self.most} may be needed")


# -- the books -------------------------------------------------------------------------------


class Line(NamedTuple):
    """How many checks of a kind there are at most, and the design of those of rates."""

    count: int
    design: Rate | None = None


CHECKS: dict[str, Line] = {
    "the tool": Line(4),
    # The rate of an exact test is at most alpha. Found is what twice alpha gives where p-values tie: less.
    "exact tests, each family": Line(30, Rate(0.2, 0.39)),
    "exact tests, all families": Line(5, Rate(0.05, 0.088)),
    "exact tests are not cautious": Line(5, Rate(0.56, 0.75)),
    "cme of few effective cases, each": Line(3, Rate(0.2)),
    "cme of few effective cases, with ties": Line(2, Rate(0.05, 0.088)),
    "cme of few effective cases, all": Line(1, Rate(0.05, 0.088)),
    # The largest rate of misses that is wanted, and twice that or half the way to none found.
    "power of auto: uncalibrated, d = 1": Line(1, Rate(0.03)),
    "power of auto: uncalibrated, d = 10": Line(1, Rate(0.1)),
    "power of auto: spread, d = 1": Line(1, Rate(0.45, 0.725)),
    "power of auto: spread, d = 10": Line(1, Rate(0.05)),
    "power of auto: shift, d = 1": Line(1, Rate(0.12)),
    "power of auto: shift, d = 10": Line(1, Rate(0.5, 0.75)),
    # What is known of tests that are not exact, with the error of knowing it, and 2 alpha.
    "asymptotic tests": Line(7, Rate(0.062, 0.09)),
    "asymptotic tests, at 0.2": Line(9, Rate(0.23, 0.365)),
    "three cumulants": Line(2, Rate(0.065, 0.095)),
    "three cumulants are not cautious": Line(2, Rate(0.83, 0.9)),
    "comparison, equal errors": Line(1, Rate(0.06, 0.095)),
    "comparison is not cautious": Line(1, Rate(0.56, 0.75)),
    "comparison, both calibrated": Line(1, Rate(0.4, 0.6)),
    "comparison, missed differences": Line(1, Rate(0.1)),
    "witness, false statements": Line(8, Rate(0.1, 0.19)),
    "witness is not cautious": Line(8, Rate(0.92, 0.97)),
    "witness, false beside true": Line(1, Rate(0.13, 0.3)),
    "witness, missed segments": Line(1, Rate(0.1)),
    "monitor, false alarms": Line(3, Rate(0.2)),
    "monitor, fair bets over many steps": Line(3),
    "monitor, e-value at a fixed time": Line(3),
    "monitor, fair bets": Line(3),
    "monitor, missed shifts": Line(2, Rate(0.1)),
    "monitor, missed late changes": Line(3, Rate(0.2, 0.5)),
    "monitor, missed onsets": Line(3, Rate(0.15, 0.4)),
    "monitor, detector at a fixed time": Line(1),
    "e-values reach 1 / alpha": Line(5, Rate(0.2)),
    "recalibration, all folds": Line(1, Rate(0.2, 0.34)),
    "recalibration, one fold": Line(1, Rate(0.24, 0.4)),
    "recalibration, missed before": Line(1, Rate(0.1)),
    "recalibration, missed after": Line(1, Rate(0.2)),
    "temperatures": Line(4),
    "uniform transforms": Line(7),
    "coverage": Line(12),
    "bands: kolmogorov": Line(1, Rate(0.06, 0.12)),
    "bands: equal_precision": Line(1, Rate(0.1, 0.19)),
    "intervals miss": Line(4, Rate(0.05)),
    # Values of blocks are skewed: the level of 5% is one of 7% with a hundred of them.
    "blocks miss": Line(2, Rate(0.075, 0.13)),
    "debiased errors": Line(1),
    "fair scores": Line(1),
    "published errors": Line(12),
    "unbiased estimates": Line(13),
    "stated errors": Line(2),
    # The level of a critical value that is simulated with 1,999 sets is off by 0.022, with SHARE.
    "rivals of the bank": Line(3, Rate(0.072, 0.13)),
    "errors of size zero": Line(1),
    # Elsewhere in the suite.
    "counts of draws with replacement": Line(1),
    "moments of sums of chi-squares": Line(6),
    "spectrum by simulation": Line(1),
    "random traces": Line(1),
    "sampled traces": Line(2),
    "Hotelling's statistic": Line(1),
    "widened locations": Line(2),
    "sampling of scipy's families": Line(10),
    "exchanged draws": Line(2),
    "all sets of targets": Line(4),
    "estimates from draws": Line(3),
    "vectors by simulation": Line(64),
}
"""All checks in the suite."""

_spent: Counter[str] = Counter()


def spend(check: str) -> Line:
    """Enter a check into the books."""
    line = CHECKS.get(check)
    if line is None:
        raise LookupError(
            f"{check!r} is not among CHECKS in designs.py: give it a line, and stay within BUDGET"
        )
    _spent[check] += 1
    if _spent[check] > line.count:
        raise LookupError(f"{check!r} may be checked {line.count} times (CHECKS in designs.py), not more")
    return line


def rate_of(check: str) -> Rate:
    """The design of a check of rates."""
    design = CHECKS[check].design
    assert design is not None, f"{check!r} has no rate"
    return design


# -- checks of rates -------------------------------------------------------------------------


def check_rate(name: str, errors: Iterable[Any]) -> Verdict:
    """Errors come at their rate; fail where it is too large. Only as many are asked for as are needed."""
    return check_rates(name, [""], ({"": error} for error in errors))[""]


def check_rates(name: str, cells: Sequence[str], errors: Iterable[Mapping[str, Any]]) -> dict[str, Verdict]:
    """The same for several kinds of error on the same data sets, which are taken until all are decided."""
    for _ in cells:
        spend(name)
    design = rate_of(name)
    found = run_rates(dict.fromkeys(cells, design), errors)
    wrong = [f"{cell} {v.errors} of {v.trials}" for cell, v in found.items() if v.alarm]
    assert not wrong, f"{name}, errors at a rate above {design.null:.3g}: {'; '.join(wrong)}"
    return found


def run_rates(designs: Mapping[str, Rate], errors: Iterable[Mapping[str, Any]]) -> dict[str, Verdict]:
    """How several designs end on the same data sets."""
    seen: Counter[str] = Counter()
    found: dict[str, Verdict] = {}
    for trials, outcome in enumerate(errors, start=1):
        for cell, design in designs.items():
            if cell in found:
                continue
            seen[cell] += bool(outcome[cell])
            decision = design.decide(seen[cell], trials)
            if decision is not None or trials == design.most:
                found[cell] = Verdict(bool(decision), seen[cell], trials)
        if len(found) == len(designs):
            return found
    raise ValueError(f"too few trials: {max(design.most for design in designs.values())} may be needed")


# -- samples of fixed size -----------------------------------------------------------------------


def mean_bound(size: int, error: float) -> tuple[float, float]:
    """How far a mean may be off, and which departure is found with probability `POWER`."""
    bound = float(stats.t.isf(0.5 * SHARE, size - 1)) * error
    return bound, bound + float(stats.norm.ppf(POWER)) * error


def check_mean(name: str, values: Any, expected: float, *, find: float) -> None:
    """The mean of independent values, or of martingale differences, is as expected; `find` is a departure."""
    values = np.asarray(values, float)
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    check_value(name, float(values.mean()), expected, error=error, size=len(values), find=find)


def check_value(
    name: str, value: float, expected: float, *, error: float, size: int, find: float, slack: float = 0.0
) -> None:
    """A number, nearly normal with a standard error from `size` values, is as expected.

    Parameters
    ----------
    name
        Its line in `CHECKS`.
    value, expected
        The number, and what it is if all is well.
    error, size
        Standard error of the number, and of how many values it is.
    find
        The departure from what is expected that must be found.
    slack
        By how much `expected` itself may be off.
    """
    spend(name)
    bound, found = mean_bound(size, error)
    assert found + slack <= find, f"{name}: a departure of {found + slack:.3g} is found, none of {find:.3g}"
    assert abs(value - expected) <= bound + slack, (
        f"{name}: {value:.4g}, expected {expected:.4g} +- {bound + slack:.2g}"
    )


def check_spread(name: str, values: Any, expected: float, *, find: float) -> None:
    """Normal values around zero have at most the expected standard deviation, and not `find` times that."""
    spend(name)
    values = np.asarray(values, float)
    bound = float(stats.chi2.isf(SHARE, len(values)))
    power = float(stats.chi2.sf(bound / find**2, len(values)))
    assert power >= POWER, f"{name}: {len(values)} values find a factor of {find:.3g} at {power:.2f} only"
    square = float(np.sum((values / expected) ** 2))
    assert square <= bound, (
        f"{name}: root mean square {np.sqrt(np.mean(values**2)):.3g}, expected {expected:.3g}"
    )


def uniform_bound(size: int, samples: int = 1) -> float:
    """Largest distance of an empirical distribution function from the true one, over several samples."""
    return float(stats.kstwo.isf(SHARE / samples, size))


def uniform_power(size: int, departure: float, samples: int = 1) -> float:
    """Least probability of finding a distribution function that is off by `departure` somewhere."""
    middle = 0.5 * (1.0 + departure)  # the least power, for there a count varies most
    least = math.ceil(size * (middle - departure + uniform_bound(size, samples)))
    return float(stats.binom.sf(least - 1, size, middle))


def check_uniform(name: str, values: Any, *, find: float) -> None:
    """Values are uniform on [0, 1]; a distribution function that is off by `find` somewhere is found."""
    check_uniforms(name, {"": values}, find=find)


def check_uniforms(name: str, samples: Mapping[str, Any], *, find: float) -> None:
    """Each of several samples is uniform; they share the probability of one check."""
    spend(name)
    for cell, sample in samples.items():
        values = np.asarray(sample, float)
        title = f"{name}: {cell}: " if cell else f"{name}: "
        power = uniform_power(len(values), find, len(samples))
        assert power >= POWER, (
            f"{title}{len(values)} values find a departure of {find:.3g} at {power:.2f} only"
        )
        distance = float(stats.kstest(values, "uniform").statistic)
        bound = uniform_bound(len(values), len(samples))
        assert distance <= bound, f"{title}off by {distance:.3g}, at most {bound:.3g} is chance"


def check_same(name: str, a: Any, b: Any, *, find: float) -> None:
    """Two samples of one size have one distribution; functions that are `find` apart are found."""
    spend(name)
    size = len(a) // 2  # as of one sample whose distribution is known
    assert len(a) == len(b)
    power = uniform_power(size, find)
    assert power >= POWER, f"{name}: 2 x {len(a)} values find a departure of {find:.3g} at {power:.2f} only"
    found = stats.ks_2samp(a, b)
    assert found.pvalue >= SHARE, f"{name}: {found.statistic:.3g} apart, p = {found.pvalue:.1e}"


def counts_power(expected: Any, find: float) -> float:
    """Power of the chi-square test where each expected count is off by a factor ``1 -+ find``."""
    expected = np.asarray(expected, float)
    degrees = len(expected) - 1
    return float(stats.ncx2.sf(stats.chi2.isf(SHARE, degrees), degrees, find**2 * expected.sum()))


def check_counts(name: str, counts: Any, expected: Any, *, find: float) -> None:
    """Counts are as expected; a relative error of `find` in each is found."""
    spend(name)
    power = counts_power(expected, find)
    assert power >= POWER, f"{name}: a factor of {1 + find:.3g} is found at {power:.2f} only"
    square = float(stats.chisquare(counts, expected).statistic)
    bound = float(stats.chi2.isf(SHARE, len(np.asarray(expected)) - 1))
    assert square <= bound, f"{name}: chi-square {square:.3g}, at most {bound:.3g} is chance"


def share_bounds(size: int, probability: float) -> tuple[int, int]:
    """Counts between which a binomial stays."""
    low = int(stats.binom.ppf(0.5 * SHARE, size, probability))
    return low, int(stats.binom.isf(0.5 * SHARE, size, probability))


def check_share(name: str, count: int, size: int, probability: float, *, find: float) -> None:
    """A count of `size` independent cases has its probability; that of `find` instead is found."""
    spend(name)
    low, high = share_bounds(size, probability)
    power = float(stats.binom.sf(high, size, find) + stats.binom.cdf(low - 1, size, find))
    assert power >= POWER, f"{name}: {size} cases find {find:.3g} at {power:.2f} only"
    assert low <= count <= high, f"{name}: {count} of {size}, expected {probability:.3g} of all"
