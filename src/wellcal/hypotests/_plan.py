"""`plan`: how many cases a test needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import probability, whole_number
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.progress import Listener, reported, reporter
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.schema import Check, listed, number, optional, text, whole
from wellcal._arrays.seeds import as_generator
from wellcal.hypotests._calibration_test import calibration_test
from wellcal.hypotests.automatic import choose
from wellcal.hypotests.method import AUTO, Method
from wellcal.hypotests.methods import Omnibus
from wellcal.hypotests.power_search import FEWEST, ROUND, Search
from wellcal.hypotests.resampling.targets import users_form
from wellcal.hypotests.setup import check_resamples, make_setup, numpy_batch
from wellcal.hypotests.truths import truth_of
from wellcal.kernels.base import Kernel
from wellcal.measures.presentation import Presentable, Row
from wellcal.predictions import Predictions
from wellcal.predictions.adapters import converted_argument


@dataclass(frozen=True, eq=False, repr=False)
class PowerPlan(Presentable):
    """How many cases a test needs to find an error.

    Attributes
    ----------
    n_samples
        The number of cases; None where more than `most` are needed.
    low, high
        Its 95% interval: the number is found by simulation. `high` is None where it lies beyond `most`.
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
            raise ValueError(f"more than {how_many(self.most)} are needed; allow for more with most=")
        return self.n_samples

    def _headline(self) -> str:
        if self.n_samples is None:
            more = f"More than {how_many(self.most)} are needed"
            return f"{more} to show that {self.error}, with power {self.power:g}"
        ends = ""
        if self.low is not None:
            ends = f" ({self.low:,} {'or more' if self.high is None else f'to {self.high:,}'})"
        return f"{how_many(self.n_samples)}{ends} show that {self.error}, with power {self.power:g}"

    def _rows(self) -> list[Row]:
        test = f"{self.method}, alpha = {self.alpha:g}, {self.n_resamples:,} resamples"
        return [("test", test), ("simulated", f"{self.data_sets:,} data sets")]


def _tried(plain: Any, name: str) -> tuple[tuple[int, int, int], ...]:
    rows = listed(listed(whole(least=0), length=3))(plain, name)
    return tuple(cast("tuple[int, int, int]", tuple(row)) for row in rows)


@reported
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
    rng: int | np.random.Generator | None = None,
    progress: bool | Listener | None = None,
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
        Seed or generator; None is the default seed, 0.
    progress
        Whether to show how far a long run is; None does where standard error is a terminal. A function is
        called as ``progress(what, done, total)``, and ends the run by raising an error.

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
    if wanted <= rate:
        raise ValueError(f"power must be above alpha = {rate:g}, which any test has, found {wanted:g}")
    count, resamples = whole_number(data_sets, "data_sets", least=ROUND), check_resamples(n_resamples)
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
        options: dict[str, Any] = {"kernel": kernel, "n_resamples": resamples, "rng": generator}
        return calibration_test(y, batch, method=test, **options).pvalue <= rate

    told = reporter()
    search = Search(wanted, largest)
    n = min(max(truth.guess(wanted, rate), FEWEST), largest)
    done = 0
    while done < count:
        some = min(ROUND, count - done)
        hits = 0
        for k in range(done, done + some):
            told("data sets", k, count, until=k + 1)
            hits += found(n)
        search.add(n, some, hits)
        done += some
        if search.hopeless:
            break
        n = search.next(n)
    told("data sets", count, count)
    cases, low, high = search.answer()
    name = method if isinstance(method, str) else method.name
    return PowerPlan(
        cases, low, high, wanted, rate, truth.words, name, resamples, done, largest, tuple(search.tried)
    )


def _method(
    given: str | Method, targets: NDArray, batch: Predictions, kernel: Kernel | None, n_resamples: int
) -> str | Method:
    """The method that "auto" would take, without the resamples that only refine its tails."""
    if not (isinstance(given, str) and given == AUTO):
        return given
    setup = make_setup(users_form(batch, targets), batch, kernel, n_resamples=n_resamples, pool=True)
    chosen = choose(setup).method
    return replace(chosen, tail_sets=0) if isinstance(chosen, Omnibus) else chosen
