"""`plan`: how many cases a test needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import optimize, special

from wellcal._arrays.checks import (
    check_same_length,
    described,
    one_of,
    probability,
    real_number,
    whole_number,
)
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.schema import Check, listed, number, optional, text, whole
from wellcal._arrays.seeds import as_generator
from wellcal.hypotests._calibration_test import calibration_test
from wellcal.hypotests.automatic import choose
from wellcal.hypotests.method import AUTO, Method
from wellcal.hypotests.methods import Omnibus
from wellcal.hypotests.resampling.targets import draw_targets, users_form
from wellcal.hypotests.setup import check_resamples, make_setup, numpy_batch
from wellcal.hypotests.smallest_error import information, needed
from wellcal.kernels.base import Kernel
from wellcal.measures.presentation import Presentable, Row
from wellcal.measures.yardstick import error_phrase
from wellcal.predictions import Predictions
from wellcal.predictions.adapters import converted_argument
from wellcal.predictions.alterations import SHIFT, draw_altered, kind_of_error, kinds_for
from wellcal.problem.drawn_targets import why_not_resampled

FEWEST = 5
"""Cases with which the search begins at least."""

_ROUND = 20  # data sets between two looks
_STRIDE = 3.0  # by which the number of cases changes at most between two looks


@dataclass(frozen=True, eq=False, repr=False)
class PowerPlan(Presentable):
    """How many cases a test needs to find an error.

    Attributes
    ----------
    n_samples
        The number of cases; None where more than `most` are needed.
    low, high
        Its 95% interval: the number is found by simulation.
    power, alpha
        The power that is wanted, and the error rate of the test.
    error
        The error, in words.
    method, n_resamples
        The test, and its resamples.
    data_sets
        Simulated data sets.
    most
        The largest number of cases that was considered.
    tried
        Numbers of cases, and for each the data sets and those in which the error was found.

    Examples
    --------
    >>> PowerPlan(95, 80, 110, 0.8, 0.05, "spreads are 20% too small", "auto", 199, 200, 10000)
    95 cases (80 to 110) show that spreads are 20% too small, with power 0.8
      test       auto, alpha = 0.05, 199 resamples
      simulated  200 data sets
    """

    n_samples: int | None
    low: int | None
    high: int | None
    power: float
    alpha: float
    error: str
    method: str
    n_resamples: int
    data_sets: int
    most: int
    tried: tuple[tuple[int, int, int], ...] = ()

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of it."""
        count = whole(least=1)
        return {
            "n_samples": optional(count),
            "low": optional(count),
            "high": optional(count),
            "power": number(least=0.0, most=1.0),
            "alpha": number(least=0.0, most=1.0),
            "error": text,
            "method": text,
            "n_resamples": count,
            "data_sets": count,
            "most": count,
            "tried": _tried,
        }

    def __int__(self) -> int:
        if self.n_samples is None:
            raise ValueError(f"more than {self.most:,} cases are needed; allow for more with most=")
        return self.n_samples

    def _headline(self) -> str:
        if self.n_samples is None:
            more = f"More than {self.most:,} cases are needed"
            return f"{more} to show that {self.error}, with power {self.power:g}"
        ends = f" ({self.low:,} to {self.high:,})" if self.low is not None and self.high is not None else ""
        return f"{self.n_samples:,} cases{ends} show that {self.error}, with power {self.power:g}"

    def _rows(self) -> list[Row]:
        test = f"{self.method}, alpha = {self.alpha:g}, {self.n_resamples:,} resamples"
        return [("test", test), ("simulated", f"{self.data_sets:,} data sets")]


def _tried(plain: Any, name: str) -> tuple[tuple[int, int, int], ...]:
    rows = listed(listed(whole(least=0), length=3))(plain, name)
    return tuple(cast("tuple[int, int, int]", tuple(row)) for row in rows)


def plan(
    pred: object,
    *,
    against: object,
    power: float = 0.8,
    alpha: float = 0.05,
    kernel: Kernel | None = None,
    method: str | Method = AUTO,
    n_resamples: int = 199,
    data_sets: int = 200,
    most: int = 10_000,
    rng: int | np.random.Generator | None = 0,
) -> PowerPlan:
    """Number of cases that a test needs to find an error of a given size.

    Targets are drawn from predictions that are altered by the error, for cases that are drawn from `pred`
    with replacement, and tested; the number of cases is then changed until the power is the one that is
    wanted.

    Parameters
    ----------
    pred
        Predictions like those that will be tested, some hundred of them.
    against
        The error to be found:

        - a number: what is predicted over what is true, in spreads, for classes in temperature, for
          counts and positive numbers in means; 0.8 is "20% too small";
        - ``{"shift": 0.3}``: targets that lie 0.3 predicted standard deviations too high; in the same way
          "spreads", "temperature" and "means", where the family has them;
        - predictions that are taken for the truth, one for each of `pred`.
    power
        The probability with which the error is to be found.
    alpha
        Error rate of the test.
    kernel, method, n_resamples
        As in :func:`calibration_test`.
    data_sets
        Data sets that are simulated in all. The more, the closer the answer: 200 leave about 15%.
    most
        The largest number of cases to consider.
    rng
        Seed or generator.

    Returns
    -------
    PowerPlan
        The number of cases with an interval, and what was tried.

    Notes
    -----
    Each look at the power takes a few data sets; the next number of cases is read from a curve
    ``Phi(a + b sqrt(n))`` that is fitted to all of them. Cost: `data_sets` tests.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> pred = wc.Normal(np.linspace(-1.0, 1.0, 100), np.ones(100))
    >>> found = wc.plan(pred, against={"shift": 1.0}, method="cme", data_sets=40, n_resamples=99)
    >>> 5 <= int(found) <= 60
    True
    """
    predictions = numpy_batch(converted_argument(pred, "pred"))
    wanted, rate = probability(power, "power"), probability(alpha, "alpha")
    count, resamples = whole_number(data_sets, "data_sets", least=_ROUND), check_resamples(n_resamples)
    largest = whole_number(most, "most", least=FEWEST)
    if 1.0 / (resamples + 1.0) > rate:
        raise ValueError(f"n_resamples={resamples} cannot reject at alpha = {rate:g}; take n_resamples=999")
    truth = truth_of(predictions, against)
    generator = as_generator(rng)

    def found(n: int) -> bool:
        index = generator.integers(len(predictions), size=n)
        batch = predictions[index]
        targets = truth.draw(index, batch, generator)
        test = _method(method, targets, batch, kernel, resamples)
        y = users_form(batch, targets)
        options = {"kernel": kernel, "n_resamples": resamples, "rng": generator, "progress": False}
        return calibration_test(y, batch, method=test, **options).pvalue <= rate

    search = Search(wanted, largest)
    n = min(max(truth.guess(wanted, rate), FEWEST), largest)
    done = 0
    while done < count:
        some = min(_ROUND, count - done)
        search.add(n, some, sum(found(n) for _ in range(some)))
        done += some
        if search.hopeless:
            break
        n = search.next(n)
    cases, low, high = search.answer()
    name = method if isinstance(method, str) else method.name
    return PowerPlan(
        cases, low, high, wanted, rate, truth.words, name, resamples, done, largest, tuple(search.tried)
    )


def _method(
    given: str | Method, targets: NDArray, batch: Predictions, kernel: Kernel | None, n_resamples: int
) -> str | Method:
    """The method that "auto" would take, without the resamples that only make a small p-value smaller."""
    if given != AUTO:
        return given
    setup = make_setup(users_form(batch, targets), batch, kernel, n_resamples=n_resamples, pool=True)
    chosen = choose(setup).method
    return replace(chosen, most_resamples=0) if isinstance(chosen, Omnibus) else chosen


# -- the truth -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Truth:
    """What targets are drawn from.

    Attributes
    ----------
    words
        The error, in words.
    draw
        From positions in the pilot, the predictions there, and a generator to targets.
    guess
        From power and error rate to a number of cases to begin with.
    """

    words: str
    draw: Callable[[NDArray, Predictions, np.random.Generator], NDArray]
    guess: Callable[[float, float], int]


def truth_of(predictions: Predictions, against: object) -> Truth:
    """What targets are drawn from, from what a user said of the error."""
    if isinstance(against, Mapping) or (
        not isinstance(against, (Predictions, np.ndarray, list)) and _is_number(against)
    ):
        return _altered_truth(predictions, against)
    other = numpy_batch(converted_argument(against, "against"))
    check_same_length(len(other), "against", len(predictions), "pred")
    if other.event_shape != predictions.event_shape or other.target_kind != predictions.target_kind:
        raise ValueError("against must predict targets of the same kind and shape as pred")
    reason = why_not_resampled(other)
    if reason is not None:
        raise TypeError(f"against: {reason}")

    def draw(index: NDArray, batch: Predictions, rng: np.random.Generator) -> NDArray:
        like = np.zeros(0, dtype=np.int64 if predictions.target_kind == "labels" else np.float64)
        return draw_targets(other[index], rng, 1, like)[0]

    return Truth("targets follow the other predictions", draw, lambda power, alpha: 50)


def _is_number(x: object) -> bool:
    return isinstance(x, (int, float, np.integer, np.floating)) and not isinstance(x, bool)


def _altered_truth(predictions: Predictions, against: object) -> Truth:
    known = kinds_for(predictions)
    if not known:
        raise TypeError(
            f"against: {type(predictions).__name__} has no error by a number; give predictions that are "
            "taken for the truth"
        )
    kind, amount = kind_of_error(predictions), against
    if isinstance(against, Mapping):
        items = list(cast("Mapping[Any, Any]", against).items())
        if len(items) != 1:
            raise ValueError(f"against must name one kind of error, found {len(items)}")
        kind, amount = one_of(items[0][0], "kind of error in against", known), items[0][1]
    assert kind is not None
    size = real_number(amount, "against")
    if kind == SHIFT:
        wrong, none = not math.isfinite(size), size == 0.0
    else:
        wrong, none = not 1e-3 <= size <= 1e3, size == 1.0
    if wrong or none:
        what = "a number other than 0" if kind == SHIFT else "a ratio between 0.001 and 1000 other than 1"
        raise ValueError(f"against must be {what} for {kind}, found {described(amount)}")
    chosen = kind

    def draw(index: NDArray, batch: Predictions, rng: np.random.Generator) -> NDArray:
        return draw_altered(batch, chosen, size, rng, 1)[0]

    def guess(power: float, alpha: float) -> int:
        moved = information(predictions, chosen) * (abs(size) if chosen == SHIFT else abs(math.log(size)))
        return int(min((needed(power, alpha) / max(moved, 1e-9)) ** 2, 1e9))

    return Truth(error_phrase(kind, size), draw, guess)


# -- the search ------------------------------------------------------------------------------


class Search:
    """Numbers of cases that were tried, and the curve through what was found with them.

    Examples
    --------
    >>> search = Search(0.8, 1000)
    >>> for n, found in ((50, 8), (100, 15), (150, 19)):
    ...     search.add(n, 20, found)
    >>> 80 < search.next(150) < 130
    True
    """

    def __init__(self, power: float, most: int) -> None:
        self.power, self.most = power, most
        self.tried: list[tuple[int, int, int]] = []

    def add(self, n: int, data_sets: int, found: int) -> None:
        """Remember how often the error was found."""
        self.tried.append((n, data_sets, found))

    @property
    def hopeless(self) -> bool:
        """Whether even the largest number of cases is clearly too small."""
        at_most = [(sets, found) for n, sets, found in self.tried if n == self.most]
        sets, found = (sum(column) for column in zip(*at_most, strict=True)) if at_most else (0, 0)
        return sets >= 2 * _ROUND and special.bdtrc(found, sets, self.power) > 0.999

    def next(self, n: int) -> int:
        """The number of cases to try next, not too far from the last."""
        found = self._solve(*self._fit()[0])
        bounded = min(max(found, n / _STRIDE), n * _STRIDE)
        return int(min(max(round(bounded), FEWEST), self.most))

    def answer(self) -> tuple[int | None, int | None, int | None]:
        """The number of cases, and the ends of its 95% interval."""
        (a, b), covariance = self._fit()
        found = self._solve(a, b)
        if found > self.most:
            return None, None, None
        root = math.sqrt(found)
        # The derivative of (z - a) / b with respect to a and b.
        slope = np.array([-1.0 / b, -root / b])
        error = math.sqrt(max(float(slope @ covariance @ slope), 0.0))
        low, high = (max(root + side * 1.96 * error, 1.0) ** 2 for side in (-1.0, 1.0))
        return max(math.ceil(found), 2), max(math.floor(low), 2), math.ceil(min(high, 1e12))

    def _solve(self, a: float, b: float) -> float:
        root = (float(special.ndtri(self.power)) - a) / b
        return max(root, 1.0) ** 2

    def _fit(self) -> tuple[tuple[float, float], NDArray]:
        """a and b of ``Phi(a + b sqrt(n))``, with a weak prior, and their covariance.

        A test that sees nothing rejects with its error rate: a is near -1.6, unless the data say otherwise.
        """
        n, sets, found = (np.array(column, float) for column in zip(*self.tried, strict=True))
        root = np.sqrt(n)
        centre = float((special.ndtri(self.power) + 1.6) / root.mean())

        def loss(x: NDArray) -> float:
            p = np.clip(special.ndtr(x[0] + math.exp(x[1]) * root), 1e-9, 1.0 - 1e-9)
            fit = -float(np.sum(found * np.log(p) + (sets - found) * np.log1p(-p)))
            return fit + 0.5 * ((x[0] + 1.6) / 1.0) ** 2 + 0.5 * ((x[1] - math.log(centre)) / 2.0) ** 2

        best: Any = optimize.minimize(loss, np.array([-1.6, math.log(centre)]), method="BFGS")
        b = math.exp(float(best.x[1]))
        jacobian = np.diag([1.0, b])
        return (float(best.x[0]), b), jacobian @ np.asarray(best.hess_inv) @ jacobian
