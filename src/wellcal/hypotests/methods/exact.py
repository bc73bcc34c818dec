"""Exact Monte Carlo tests with one statistic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.checks import call_given, described, one_of, whole_number
from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.hotellings_statistic import (
    embedding_statistics,
    embedding_sums,
    prepare_locations,
    rounding_of,
)
from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.pvalues import monte_carlo_pvalue, sequential_pvalue
from wellcal.hypotests.resampling.statistics import BlockStatistic, skce_statistic
from wellcal.hypotests.resampling.targets import (
    check_resampled,
    draw_targets,
    number_of,
    target_sets,
    users_form,
)
from wellcal.hypotests.setup import Setup
from wellcal.measures._skce import BlockSize, resolve_block_size
from wellcal.predictions import Samples

Statistic = str | Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Exact(Method):
    """Monte Carlo over targets drawn from the predictions: exact at every sample size.

    Given the predictions, the targets of a calibrated model are independent draws from them. With R sets
    of such draws, ``p = (1 + #{T_r >= T_0}) / (R + 1)`` satisfies P(p <= a) <= a for any statistic T, any
    kernel and any number of cases. Predictions that are draws (``Samples(kind="draws")``) exchange their
    target with a member of the pooled draws instead.

    Parameters
    ----------
    statistic
        "skce" (n times the unbiased SKCE), "block" (the same over blocks), "cme" (Q of
        :class:`MeanEmbedding`) or a function ``f(y, pred)`` that returns a number, large where the model is
        miscalibrated.
    block_size
        For "block", as in :func:`wellcal.skce`.
    locations
        For "cme": their number, or ``(predictions, targets)``.
    stop_after
        Stop once so many drawn sets have a statistic as large as the observed one. The p-value stays
        valid (Besag and Clifford, 1991), and hopeless cases end early; None draws all sets. "cme" looks
        at all sets together, and ends no earlier.

    Notes
    -----
    Two conditions: nothing may be tuned on the targets, and targets must be independent given all
    predictions, which autoregressive forecasts are not.

    Examples
    --------
    The largest error as the statistic:

    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> pred = wc.Normal(mu, np.ones(100))
    >>> def largest_error(y, pred):
    ...     return np.max(np.abs(y - pred.loc))
    >>> wc.calibration_test(mu + 5.0, pred, method="exact", statistic=largest_error, rng=0).pvalue
    0.001
    """

    statistic: Statistic = "skce"
    block_size: BlockSize = None
    locations: object = None
    stop_after: int | None = None

    name: ClassVar[str] = "exact"

    def __post_init__(self) -> None:
        if not callable(self.statistic):
            one_of(self.statistic, "statistic", ("skce", "block", "cme"), or_else="and functions f(y, pred)")
        name = None if callable(self.statistic) else self.statistic  # functions are not asked what they equal
        for option, taker in (("block_size", "block"), ("locations", "cme")):
            if getattr(self, option) is not None and name != taker:
                found = described(self.statistic)
                raise ValueError(f'{option} is for statistic="{taker}", found it with statistic={found}')
        object.__setattr__(self, "linear", name in ("block", "cme"))
        if self.stop_after is not None:
            object.__setattr__(self, "stop_after", whole_number(self.stop_after, "stop_after", least=1))

    def run(self, setup: Setup) -> Outcome:
        """The p-value, and the drawn values of the statistic."""
        check_resampled(setup.predictions)
        label, blocks = self._values(setup)
        found: list[NDArray] = []
        provenance: dict[str, Any] = {"n_resamples": setup.n_resamples, "statistic": label}
        for values in blocks:
            found.append(values)
            if self.stop_after is not None:
                early = sequential_pvalue(np.concatenate(found), self.stop_after)
                if early is not None:
                    pvalue, drawn = early
                    together = np.concatenate(found)
                    provenance.update(n_resamples=drawn, stopped=f"after {drawn} of {setup.n_resamples} sets")
                    return self._outcome(setup, label, together[: drawn + 1], pvalue, provenance)
        together = np.concatenate(found)
        pvalue = monte_carlo_pvalue(float(together[0]), together[1:])
        return self._outcome(setup, label, together, pvalue, provenance)

    def _outcome(
        self, setup: Setup, label: str, values: NDArray, pvalue: float, provenance: dict[str, Any]
    ) -> Outcome:
        # The reported SKCE is that of `skce`, to rounding the same as the one that was compared.
        observed = setup.n_samples * float(setup.estimate) if self._is_unbiased(setup) else float(values[0])
        return Outcome(observed, pvalue, label, null=values[1:], provenance=provenance)

    def _is_unbiased(self, setup: Setup) -> bool:
        return self.statistic == "skce" and setup.estimate.estimator == "unbiased"

    def _values(self, setup: Setup) -> tuple[str, Iterator[NDArray]]:
        """What the statistic is, and its values over sets of targets, the observed one first."""
        if callable(self.statistic):
            name = getattr(self.statistic, "__name__", "statistic")
            return name, _of_function(setup, self.statistic)
        if self.statistic == "skce":
            return "n SKCE_u", map(skce_statistic(setup), target_sets(setup))
        if self.statistic == "block":
            statistic = BlockStatistic(setup, resolve_block_size(self.block_size, setup.n_samples))
            return statistic.label, map(statistic, target_sets(setup))
        at = prepare_locations(setup, self.locations)
        return "Q", iter([embedding_statistics(embedding_sums(setup, at), rounding_of(at))])


def _of_function(setup: Setup, function: Callable[[Any, Any], Any]) -> Iterator[NDArray]:
    """A user's statistic, set by set, of targets in the form in which users have them."""
    for r in range(setup.n_resamples + 1):
        y, predictions = _exchanged(setup, r > 0)
        what = "the observed targets" if r == 0 else f"drawn targets (set {r})"
        value = number_of(call_given(function, "statistic", y, predictions), what)
        setup.progress("resamples", r, setup.n_resamples)
        yield np.array([value])


def _exchanged(setup: Setup, drawn: bool) -> tuple[Any, Any]:
    """Observed or drawn targets with the predictions they belong to."""
    predictions: Any = setup.predictions
    if setup.pooled is not None:
        pool: NDArray = np.asarray(predictions.values)
        n, size = pool.shape[:2]
        chosen: NDArray = setup.rng.integers(size, size=n) if drawn else np.full(n, size - 1)
        others = (chosen[:, None] + np.arange(1, size)[None, :]) % size
        return pool[np.arange(n), chosen], Samples(
            pool[np.arange(n)[:, None], np.sort(others, axis=1)], axis=1
        )
    targets = setup.targets
    if drawn:
        targets = draw_targets(predictions, setup.rng, 1, targets)[0]
    return users_form(predictions, targets), predictions
