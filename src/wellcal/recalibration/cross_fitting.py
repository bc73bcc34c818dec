"""Calibration before and after recalibration, on cases that were not used for fitting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.checks import described, one_of, whole_number
from wellcal._arrays.namespaces import Array, NDArray, take_rows
from wellcal._arrays.progress import Listener, Stages, reported
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.seeds import as_generator
from wellcal.comparison.differences import Difference, change_in_words, paired
from wellcal.hypotests import TestResult, calibration_test
from wellcal.hypotests.findings.reasons import ALPHA
from wellcal.kernels.base import Kernel
from wellcal.measures.estimate import Estimate
from wellcal.measures.presentation import Presentable, Row, plain
from wellcal.measures.scores.casewise import log_prob_of_cases, nll
from wellcal.predictions import Predictions
from wellcal.predictions.batches import concatenate
from wellcal.problem.defaults import default_kernel
from wellcal.recalibration.recalibrator import OBJECTIVES, TemperatureScaling, numpy_data

FOLDS = 5
"""Folds that cases are cut into, where they are not few."""

_FITTING = 0.3  # of the time that a test of all cases takes


@dataclass(frozen=True, eq=False, repr=False)
class CrossFitted(Presentable):
    """Calibration before and after recalibration, on cases that were not used for fitting.

    Attributes
    ----------
    before, after
        Tests of the predictions as given and of the recalibrated ones, of the same cases (all of them, but
        in a report of many) and with one kernel. See Notes for what the p-value of `after` is.
    nll_before, nll_after
        Mean negative log-likelihoods of the same predictions.
    gained
        Their difference, before less after, with an interval from paired cases: recalibration helps where
        that is above zero. None where a likelihood is zero.
    fold_pvalues
        p-values of each fold by itself, recalibrated by the others.
    pvalue_bound
        Twice the median of `fold_pvalues`, at most 1.
    temperatures
        Temperature of each fold, found on the others.
    predictions
        Recalibrated predictions in NumPy, in the order of the cases: each by a temperature in which its
        own target played no part.
    folds
        Fold of each case, ``(n,)``.
    scaling
        The recalibration fitted to all cases: the one to use from now on.

    Notes
    -----
    `before` is an ordinary test: exact where its method is.

    Each of `fold_pvalues` is, too: given the other folds the temperature is a constant, and the hypothesis
    is that the model *at that temperature* is calibrated. It misses the best temperature by a sampling
    error, and the test is right to notice. Folds share fitting data, so their p-values depend on each other;
    `pvalue_bound` is a p-value whatever that dependence is, and has little power.

    `after` pools all folds and has the power of all cases. Its p-value is approximate: the temperatures
    carry a trace of the targets that other folds are tested on. Where one temperature was the right remedy
    it was too large rather than too small in simulations (250 data sets in each of four settings: rejections
    at alpha = 0.05 were 1 to 4 % pooled, 4 to 9 % for single folds; ``benchmarks/recalibration_studies.py``).
    A large one does not mean that a temperature was the remedy. It says nothing about `scaling` itself, which
    has seen all targets; for that, keep cases aside.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=200)
    >>> found = cross_fit(rng.normal(mu, 1.0), wc.Normal(mu, np.full(200, 0.5)), rng=0)
    >>> found.before.pvalue < 0.01, float(found.nll_after) < float(found.nll_before)
    (True, True)
    >>> round(found.scaling.temperature_)
    4
    """

    before: TestResult
    after: TestResult
    nll_before: Estimate
    nll_after: Estimate
    fold_pvalues: NDArray
    temperatures: NDArray
    predictions: Predictions
    folds: NDArray
    scaling: TemperatureScaling
    gained: Difference | None = None

    @property
    def helps(self) -> bool:
        """Whether recalibration lowers the NLL by more than chance."""
        return self.gained is not None and self.gained.confidence_interval().low > 0.0

    @property
    def pvalue_bound(self) -> float:
        """Twice the median p-value of the folds, at most 1 (Rüger, 1978)."""
        return min(1.0, 2.0 * float(np.median(self.fold_pvalues)))

    @property
    def verdict(self) -> str:
        """What recalibration does, in one sentence."""
        before, after = self.before, self.after
        sure = f"({after.pvalue_statement}, approximate)"
        score = "" if self.gained is None else f"; {change_in_words(self.gained)}"
        if before.pvalue <= ALPHA:
            found = f"miscalibrated before ({before.pvalue_statement})"
            if after.pvalue <= ALPHA:
                what = "helps, and is not enough" if self.helps else "is not enough"
                return f"Recalibration on other cases {what}: {found}, and after {sure}{score}."
            then = f"no miscalibration found after {sure}"
            return f"Recalibration on other cases mends it: {found}, {then}{score}."
        found = f"no miscalibration found before ({before.pvalue_statement})"
        if after.pvalue <= ALPHA:
            return f"Recalibration on other cases makes it worse: {found}, miscalibrated after {sure}{score}."
        return f"Recalibration on other cases has nothing to mend: {found}, nor after {sure}{score}."

    def to_dict(self) -> dict[str, Any]:
        """All but predictions, as plain values, ready for JSON."""
        return {
            "verdict": self.verdict,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "nll_before": plain(float(self.nll_before)),
            "nll_after": plain(float(self.nll_after)),
            "gained": None if self.gained is None else self.gained.to_dict(),
            "fold_pvalues": self.fold_pvalues.tolist(),
            "pvalue_bound": self.pvalue_bound,
            "temperatures": self.temperatures.tolist(),
            "folds": self.folds.tolist(),
            "scaling": self.scaling.to_dict(),
        }

    def _headline(self) -> str:
        return self.verdict

    def _score(self) -> str:
        told = f"{float(self.nll_before):.4g} before, {float(self.nll_after):.4g} after"
        return told if self.gained is None else f"{told}; lower by {self.gained.phrase}"

    def _rows(self) -> list[Row]:
        before, after = self.before, self.after
        each = ", ".join(f"{T:.3g}" for T in self.temperatures)
        folds, n = len(self.temperatures), len(self.folds)
        return [
            ("predictions", f"{self.scaling.family_}, {n:,} cases, cross-fitted in {folds} folds"),
            ("SKCE", f"{float(before.estimate):.4g} before, {float(after.estimate):.4g} after"),
            ("NLL", self._score()),
            ("before", f"{before.pvalue_statement} ({before.method})"),
            ("after", f"{after.pvalue_statement} (approximate: folds share fitting data)"),
            ("by folds", f"at most {self.pvalue_bound:.3g} after (twice the median of folds)"),
            ("temperature", f"{each}; {self.scaling.temperature_:.3g} on all cases"),
        ]


@reported
def cross_fit(
    y: object,
    pred: object,
    *,
    scaling: TemperatureScaling | None = None,
    objective: str = "nll",
    folds: int | None = None,
    kernel: Kernel | None = None,
    method: str = "auto",
    rng: int | np.random.Generator | None = None,
    n_resamples: int | None = None,
    before: TestResult | None = None,
    tested: NDArray | None = None,
    progress: bool | Listener | None = None,
    **fit_options: Any,
) -> CrossFitted:
    """Calibration before and after temperature scaling, on cases not used for fitting.

    The cases are cut at random into K folds. The temperature for each fold is fitted to the others, so that
    no prediction is recalibrated by its own target.

    Parameters
    ----------
    y
        Observed targets, one for each prediction; cases must be independent, and none of them may have
        served to train the model.
    pred
        Predictions, as for :meth:`wellcal.TemperatureScaling.fit`.
    scaling
        A `TemperatureScaling` whose parameters are used; it is not changed. None takes the defaults.
    objective, fit_options
        As in :meth:`wellcal.TemperatureScaling.fit`.
    folds
        Number of folds K, each of at least two cases; None for five, or as many as there can be.
    kernel
        Kernel of the tests before and after, and of the objective "skce". None takes the default of the
        predictions as given, so that both errors are on one scale.
    method, rng, n_resamples
        As in :func:`wellcal.calibration_test`; `rng` decides on the folds too.
    before
        A test of these cases that was run already: it stands for the one before, and its kernel is the one
        of both. None runs it.
    tested
        Positions of the cases that the tests see, of very many; None for all. Temperatures and likelihoods,
        whose time is linear in the number of cases, are of all, and `before` is a test of just these.
    progress
        As in :func:`wellcal.calibration_test`.

    Returns
    -------
    CrossFitted
        Both tests, likelihoods, temperatures, recalibrated predictions, and the recalibration to use from
        now on. Its documentation says what each p-value means.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=150)
    >>> y = rng.normal(mu, 1.0)
    >>> found = cross_fit(y, wc.Normal(mu, 0.5 * np.ones(150)), rng=1, n_resamples=199)
    >>> found.before.pvalue < 0.01 < found.after.pvalue
    True
    """
    one_of(objective, "objective", OBJECTIVES)
    template = TemperatureScaling() if scaling is None else scaling
    if not isinstance(template, TemperatureScaling):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"scaling must be a TemperatureScaling, found {described(scaling)}")
    targets, predictions = numpy_data(y, pred)
    for_test = as_generator(rng)
    generator = for_test.spawn(1)[0]
    seen = slice(None) if tested is None else tested
    n_tested = len(predictions) if tested is None else len(tested)
    if folds is None:
        folds = max(min(FOLDS, n_tested // 2), 2)
    fold_of = _folds_of(len(predictions), tested, folds, generator)
    if before is not None:
        kernel = _tested(before, n_tested, kernel)
    chosen = default_kernel(predictions[seen]) if kernel is None else kernel
    if objective == "skce":
        fit_options = {"kernel": chosen, **fit_options}
    options: dict[str, Any] = {"kernel": chosen, "method": method, "n_resamples": n_resamples}

    def fitted(rows: Any) -> TemperatureScaling:
        new = type(template)(**template.get_params())
        return new.fit(take_rows(targets, rows), predictions[rows], objective, **fit_options)

    stages = Stages("recalibration", 2.0 + (before is None) + _FITTING * (folds + 1.0))
    if before is None:  # with the numbers that a test by itself would have drawn: one model, one p-value
        with stages.part(1.0):
            before = calibration_test(take_rows(targets, seen), predictions[seen], rng=for_test, **options)
    parts: list[Predictions] = []
    order: list[NDArray] = []
    temperatures: list[float] = []
    pvalues: list[float] = []
    for fold in range(folds):
        own, others = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
        with stages.part(_FITTING):
            from_others = fitted(others)
        recalibrated = from_others.transform(predictions[own])
        known = slice(None) if tested is None else np.isin(own, tested, assume_unique=True)
        with stages.part(1.0 / folds):
            some = take_rows(targets, own[known]), recalibrated[known]
            test = calibration_test(*some, rng=generator, **options)
        parts.append(recalibrated)
        order.append(own)
        temperatures.append(from_others.temperature_)
        pvalues.append(test.pvalue)
    joined = concatenate(parts, [f"fold {k}" for k in range(folds)], "folds")
    after = joined[np.argsort(np.concatenate(order))]
    with stages.part(1.0):
        then = calibration_test(take_rows(targets, seen), after[seen], rng=generator, **options)
    with stages.part(_FITTING):
        of_all = fitted(np.arange(len(predictions)))
    found = CrossFitted(
        before=before,
        after=then,
        nll_before=nll(targets, predictions),
        nll_after=nll(targets, after),
        fold_pvalues=np.array(pvalues),
        temperatures=np.array(temperatures),
        predictions=after,
        folds=fold_of,
        scaling=of_all,
        gained=_gained(targets, predictions, after),
    )
    stages.end()
    return found


def _gained(targets: Array, before: Predictions, after: Predictions) -> Difference | None:
    """The negative log-likelihood before less after, case by case."""
    if not before.supports("log_prob"):
        return None
    with np.errstate(all="ignore"):
        checked = before.check_targets(targets)
        first, second = (-np.asarray(log_prob_of_cases(checked, batch)) for batch in (before, after))
    return paired("NLL", first, second) if np.isfinite([first, second]).all() else None


def _folds_of(n: int, tested: NDArray | None, folds: Any, rng: np.random.Generator) -> NDArray:
    """Fold of each case; those that are tested are spread over all folds alike."""
    fold_of = draw_folds(n, folds, rng)
    if tested is not None:
        fold_of[tested] = draw_folds(len(tested), folds, rng)
    return fold_of


def _tested(before: Any, n: int, kernel: Kernel | None) -> Kernel | None:
    """The kernel of a test that was run before."""
    if not isinstance(before, TestResult):
        raise TypeError(f"before must be what calibration_test returns, found {described(before)}")
    if before.n_samples != n:
        raise ValueError(f"before must be a test of these {how_many(n)}, found one of {before.n_samples}")
    if kernel is not None:
        raise ValueError("give either kernel or before, which has a kernel already")
    return before.kernel


def draw_folds(n: int, folds: Any, rng: np.random.Generator) -> NDArray:
    """Fold of each of n cases: at random, of sizes that differ by at most one.

    Examples
    --------
    >>> np.bincount(draw_folds(11, 3, np.random.default_rng(0)))
    array([4, 4, 3])
    """
    if n < 4:
        raise ValueError(f"folds of at least two cases each need four cases or more, found {n}")
    return rng.permutation(np.arange(n) % whole_number(folds, "folds", least=2, most=n // 2))
