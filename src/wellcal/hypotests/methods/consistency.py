"""Consistency resampling: predictions with replacement, and targets from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.checks import call_given, one_of
from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.pvalues import monte_carlo_pvalue
from wellcal.hypotests.resampling.targets import draw_targets, number_of, unsampled_family, users_form
from wellcal.hypotests.setup import Setup
from wellcal.predictions import Predictions


@dataclass(frozen=True)
class Consistency(Method):
    """Consistency resampling: data sets of predictions drawn with replacement, and targets drawn from them.

    ``p = (1 + #{T_r >= T_0}) / (R + 1)`` for the statistic T of R such data sets. The kernel, length scales
    included, is that of the observed predictions.

    Parameters
    ----------
    statistic
        None: n times the unbiased SKCE. Or a function ``f(y, pred)`` that returns a number, large where
        the model is miscalibrated, of targets as ``pred.sample`` gives them; arrays are NumPy's.

    Notes
    -----
    This is a bootstrap, and not exact: predictions that occur twice make the drawn data sets differ from
    the observed one. For classes Widmann, Lindsten and Zachariah (2019) found that it underestimates
    p-values and rejects calibrated models too often. ``method="exact"`` keeps the predictions as they
    are, which makes it exact at every sample size for any statistic, at the same cost or less: prefer it.

    Predictions that are draws (``Samples``) are taken at their word: targets are drawn from the stored
    draws, which few draws make anti-conservative. Here too "exact" is right.

    References
    ----------
    Bröcker, Smith (2007), "Increasing the reliability of reliability diagrams"; Vaicenavicius et al.
    (2019), "Evaluating model calibration in classification".

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> pred = wc.Bernoulli(np.linspace(0.1, 0.9, 50))
    >>> wc.calibration_test(np.ones(50, int), pred, method="consistency", n_resamples=99, rng=0).pvalue
    0.01
    """

    statistic: Callable[[Any, Any], Any] | str | None = None

    name: ClassVar[str] = "consistency"
    exchanges_draws: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.statistic is not None and not callable(self.statistic):
            others = 'and functions f(y, pred); method="exact" knows others'
            one_of(self.statistic, "statistic", ("skce",), or_else=others)

    def run(self, setup: Setup) -> Outcome:
        """The p-value, and the values of the statistic over resampled data sets."""
        _check_sampled(setup.predictions)
        label, statistic = self._statistic(setup)
        observed = statistic(setup.targets, setup.predictions, "the observed data")
        null = np.empty(setup.n_resamples)
        setup.progress("resamples", 0, setup.n_resamples)
        for r in range(setup.n_resamples):
            predictions = setup.predictions[setup.rng.integers(setup.n_samples, size=setup.n_samples)]
            targets = draw_targets(predictions, setup.rng, 1, setup.targets)[0]
            null[r] = statistic(targets, predictions, f"resample {r + 1}")
            setup.progress("resamples", r + 1, setup.n_resamples)
        provenance = {"n_resamples": setup.n_resamples, "statistic": label}
        return Outcome(observed, monte_carlo_pvalue(observed, null), label, null=null, provenance=provenance)

    def _statistic(self, setup: Setup) -> tuple[str, Callable[[NDArray, Predictions, str], float]]:
        function = self.statistic
        if callable(function):
            name = getattr(function, "__name__", type(function).__name__)
            return name, lambda targets, predictions, what: _call(function, targets, predictions, what)

        def unbiased(targets: NDArray, predictions: Predictions, what: str) -> float:
            problem = setup.problem_of(targets, predictions)
            return 2.0 * float(setup.engine.triangle(problem).total) / (len(predictions) - 1.0)

        return "n SKCE_u", unbiased


def _check_sampled(predictions: Predictions) -> None:
    unsampled = unsampled_family(predictions)
    if unsampled is not None:
        raise TypeError(
            f'method="consistency" draws targets from the predictions, and {unsampled} cannot be sampled; '
            'give the family a method draw(rng, size), or take method="pearson" or "block"'
        )


def _call(
    function: Callable[[Any, Any], Any], targets: NDArray, predictions: Predictions, what: str
) -> float:
    """A user's statistic of targets in the form in which users have them."""
    return number_of(call_given(function, "statistic", users_form(predictions, targets), predictions), what)
