"""Two models on the same cases: which is better calibrated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import special

from wellcal._arrays.checks import probability
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.schema import Check, described, flag, listed, number, whole
from wellcal._arrays.seeds import as_generator
from wellcal.engines import Engine
from wellcal.expectations.decompose import targets_are_indices
from wellcal.expectations.lowering import Lowering
from wellcal.hypotests import calibration_test
from wellcal.hypotests.result import TestResult
from wellcal.hypotests.setup import Setup, make_setup, numpy_batch
from wellcal.kernels.base import Kernel
from wellcal.measures.by_case import contributions
from wellcal.measures.estimate import Estimate, Interval, estimate_text
from wellcal.measures.presentation import KERNEL, Presentable, Row, plain, pvalue_phrase, within
from wellcal.predictions import Bernoulli, Categorical, Mixture, Predictions
from wellcal.predictions.base import check_inputs, check_truth_first
from wellcal.predictions.batches import concatenate
from wellcal.predictions.cases import per_case, same_cases
from wellcal.predictions.spaces import check_one_space
from wellcal.problem.defaults import SUBSAMPLE, default_kernel
from wellcal.problem.weights import check_weights, effective_size

_NAMES = ("pred_a", "pred_b")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Presentable):
    """What a comparison of two models on the same cases found.

    Attributes
    ----------
    estimate
        SKCE_A - SKCE_B with its standard error: negative where A is better calibrated.
    a, b
        SKCE of each model under the common kernel.
    pvalue
        Two-sided p-value of equal calibration errors, valid also where both are zero: the larger of
        `difference_pvalue` and twice the smaller p-value of `tests`.
    difference_pvalue
        p-value of the standardised difference alone, which takes for granted that at least one model is
        miscalibrated.
    statistic
        The difference in units of its standard error.
    degrees_of_freedom
        Of the t distribution that it is compared with: cases less one, or what weighted cases are worth.
    tests
        What :func:`wellcal.calibration_test` found of A and of B.
    degenerate
        Whether neither test rejects at an error rate of ``1 - level``. The difference is then no more than
        noise around zero, and neither its standard error nor its interval means anything.
    level
        Nominal coverage of the interval. Tests reject at an error rate of ``1 - level``.
    n_samples, kernel, provenance
        Number of cases, the common kernel, and how all was computed.

    Examples
    --------
    >>> import wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=100)
    >>> y = rng.normal(mu, 1.0)
    >>> found = wc.compare(y, wc.Normal(mu, np.ones(100)), wc.Normal(mu + 1.0, np.ones(100)), rng=0)
    >>> found.verdict, found.degenerate
    ('A is better calibrated', False)
    >>> found.confidence_interval().high < 0.0
    True
    """

    estimate: Estimate
    a: Estimate
    b: Estimate
    statistic: float
    pvalue: float
    difference_pvalue: float
    degrees_of_freedom: float
    tests: tuple[TestResult, TestResult]
    degenerate: bool
    level: float
    n_samples: int
    kernel: Kernel | None = None
    provenance: dict[str, Any] = field(default_factory=lambda: {})

    not_read: ClassVar[tuple[str, ...]] = ("verdict", "interval")
    called: ClassVar[Mapping[str, str]] = {"difference": "estimate"}

    def confidence_interval(self, level: float | None = None) -> Interval:
        """t interval of SKCE_A - SKCE_B; it does not hold where the comparison is `degenerate`."""
        level = self.level if level is None else probability(level, "level")
        value, error = float(self.estimate), float(self.estimate.standard_error)
        half = float(special.stdtrit(self.degrees_of_freedom, 0.5 + 0.5 * level)) * error
        return Interval(value - half, value + half, level)

    @property
    def verdict(self) -> str:
        """The finding in words."""
        if self.degenerate:
            return "neither model is shown to be miscalibrated, nor any difference between them"
        if self.pvalue > 1.0 - self.level:
            return "no difference in calibration is shown"
        return f"{'A' if float(self.estimate) < 0 else 'B'} is better calibrated"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        interval = self.confidence_interval()
        found = super().to_dict()
        return {
            "verdict": self.verdict,
            "difference": found.pop("estimate"),
            "interval": plain([interval.low, interval.high]),
            **found,
        }

    def check_stored(self, name: str) -> None:
        if self.estimate.standard_error is None:
            raise ValueError(f"{name and name + '.'}difference.standard_error must be a number, found None")

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of a comparison."""
        estimate, rate = within(Estimate, kernel), number(least=0.0, most=1.0)
        return {
            "difference": estimate,
            "a": estimate,
            "b": estimate,
            "statistic": number(infinite=True, nan=True),
            "pvalue": rate,
            "difference_pvalue": rate,
            "degrees_of_freedom": number(least=0.0, infinite=True),
            "tests": listed(within(TestResult, kernel), length=2),
            "degenerate": flag,
            "level": probability,
            "n_samples": whole(least=1),
            **KERNEL,
            "provenance": described({}),
        }

    def _headline(self) -> str:
        return f"Comparison: {self.verdict}; {pvalue_phrase(self.pvalue)} ({self.n_samples:,} cases)"

    def _rows(self) -> list[Row]:
        rows: list[Row] = []
        for name, estimate, test in zip("AB", (self.a, self.b), self.tests, strict=True):
            tested = f"calibration test: {test.pvalue_statement} ({test.method})"
            rows.append((f"SKCE of {name}", f"{estimate_text(estimate)}; {tested}"))
        text = estimate_text(self.estimate)
        if not self.degenerate:
            found = self.confidence_interval()
            text += f", {self.level:.0%} interval {found.low:.4g} to {found.high:.4g}"
        rows.append(("A - B", text))
        if self.degenerate:
            rows.append(
                ("note", "its standard error does not hold: both models may be calibrated (see degenerate)")
            )
        if self.kernel is not None:
            rows.append(("kernel", f"{self.kernel!r}"))
        if "weights" in self.provenance:
            rows.append(("weights", str(self.provenance["weights"])))
        return rows


def compare(
    y: object,
    pred_a: object,
    pred_b: object,
    *,
    kernel: Kernel | None = None,
    level: float = 0.95,
    weights: object = None,
    rng: int | np.random.Generator | None = None,
    n_resamples: int = 999,
    expectations: str | Lowering = "auto",
    engine: str | Engine = "auto",
) -> Comparison:
    r"""Compare the calibration of two models on the same cases.

    The estimate is the U-statistic of the difference :math:`q_{ij} = h^A_{ij} - h^B_{ij}`,

    .. math:: \mathrm{SKCE}_A - \mathrm{SKCE}_B \approx \frac{1}{n (n - 1)} \sum_{i \ne j} q_{ij},
              \qquad \text{standard error } \sqrt{4 \zeta_1 / n},

    with :math:`\zeta_1` the variance of the row means of q. Errors that both models share, because they
    see the same targets, cancel in q. The difference in units of its standard error is compared with a t
    distribution of n - 1 degrees of freedom.

    Parameters
    ----------
    y
        Observed targets, one for each case.
    pred_a, pred_b
        Predictions of the two models for these cases: batches such as ``wc.Normal(mu, sigma)``, or anything
        that :func:`wellcal.as_predictions` understands.
    kernel
        One kernel on pairs of prediction and target for both models. None chooses one for the family, with
        scales from the predictions of both; models of different families are compared by the maximum mean
        discrepancy between predictions, which all of them have.
    level
        Nominal coverage of the interval. Whether a model differs from a calibrated one is decided at an
        error rate of ``1 - level``.
    weights
        How much each case counts, as in :func:`wellcal.skce`. The calibration tests do not use them: a
        calibrated model has no error under any weights.
    rng, n_resamples
        For the calibration tests.
    expectations, engine
        As in :func:`wellcal.skce`.

    Returns
    -------
    Comparison
        Difference with standard error and interval, a two-sided p-value, and the tests of both models.

    Notes
    -----
    Where both models are calibrated the U-statistic is degenerate: it is of order 1/n and not normal.
    Equal calibration errors can mean that, or two equal errors other than zero. The null hypothesis is the
    union of the two, and its p-value the larger of theirs (an intersection-union test): that of the
    standardised difference, and ``2 min(p_A, p_B)`` of calibration tests of both models.

    These are the tests that ``calibration_test(y, pred)`` makes of each model, with the same `kernel`,
    `n_resamples` and seed: both agree about whether a model is miscalibrated. Without `kernel` each has
    the default of its own predictions, while both estimates have the common one. All arithmetic is
    NumPy's. Cost: two calibration tests, and O(n^2) pairs for the difference.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=200)
    >>> y = rng.normal(mu, 1.0)
    >>> honest, shifted = wc.Normal(mu, np.ones(200)), wc.Normal(mu + 0.5, np.ones(200))
    >>> found = compare(y, honest, shifted, rng=1)
    >>> found.verdict
    'A is better calibrated'
    >>> bool(found.pvalue < 0.01 and found.confidence_interval().high < 0.0)
    True
    """
    level = probability(level, "level")
    seeds = _seeds(rng)
    options: dict[str, Any] = {"expectations": expectations, "engine": engine, "n_resamples": n_resamples}
    check_truth_first(y, ", ".join(_NAMES))
    given = pred_a, pred_b
    pred_a, pred_b = same_cases(y, {"pred_a": pred_a, "pred_b": pred_b})
    weights = per_case(weights, "weights", y, pred_a)
    common = kernel
    if common is None:
        common = pooled_kernel(*_checked_pair(y, pred_a, pred_b), expectations=expectations)
    setups = [_setup(name, y, p, common, options) for name, p in zip(_NAMES, (pred_a, pred_b), strict=True)]
    check_one_space([setup.predictions for setup in setups], _NAMES)
    n = setups[0].n_samples
    if n < 3:
        raise ValueError(f"a comparison needs at least 3 cases, found {n}; collect more")
    w = None if weights is None else check_weights(weights, n, np.ones(n), at_least=3)
    parts, difference = _difference(setups, w)
    statistic = _standardised(float(difference), float(difference.standard_error))
    degrees = max(1.0, (n if w is None else effective_size(w)) - 1.0)
    alone = 2.0 * float(special.stdtr(degrees, -abs(statistic)))
    a, b = (  # in their own order: with one seed each is the test that it would be alone
        calibration_test(y, pred, kernel=kernel, rng=seed, progress=False, **options)
        for pred, seed in zip(given, seeds, strict=True)
    )
    smaller = min(a.pvalue, b.pvalue)
    return Comparison(
        estimate=difference,
        a=parts[0],
        b=parts[1],
        statistic=statistic,
        pvalue=max(alone, min(1.0, 2.0 * smaller)),
        difference_pvalue=alone,
        degrees_of_freedom=degrees,
        tests=(a, b),
        degenerate=smaller > 1.0 - level,
        level=level,
        n_samples=n,
        kernel=common,
        provenance=difference.provenance,
    )


def _seeds(rng: int | np.random.Generator | None) -> Sequence[int | np.random.Generator]:
    """What the two tests get as `rng`: a seed itself, so that each is the test that it makes elsewhere.

    They may share it. 2 min(p_A, p_B) is valid however the two depend on each other.
    """
    generator = as_generator(rng)
    return generator.spawn(2) if rng is None or isinstance(rng, np.random.Generator) else (rng, rng)


# -- the difference --------------------------------------------------------------------------


def _difference(setups: list[Setup], weights: NDArray | None) -> tuple[list[Estimate], Estimate]:
    """SKCE of both, and their difference with the standard error of the U-statistic of h_A - h_B."""
    a, b = (contributions(setup.problem, setups[0].engine, weights) for setup in setups)
    provenance = _together(a.estimate.provenance, b.estimate.provenance)
    return [a.estimate, b.estimate], a.minus(b, "SKCE_A - SKCE_B", provenance)


def _standardised(value: float, error: float) -> float:
    """``value / error``; models that agree in all cases differ by nothing."""
    if error > 0.0:
        return value / error
    return 0.0 if value == 0.0 else math.copysign(math.inf, value)


def _together(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """What was noted of both models together; where they differ, of each."""
    same = {name: item for name, item in a.items() if name in b and b[name] == item}
    for model, notes in (("A", a), ("B", b)):
        same.update({f"{name} of {model}": item for name, item in notes.items() if name not in same})
    return same


def _setup(name: str, y: object, pred: object, kernel: Kernel, options: dict[str, Any]) -> Setup:
    try:
        return make_setup(y, pred, kernel, **options)
    except (TypeError, ValueError) as error:
        error.add_note(f"This was found in {name}; the kernel must serve both models.")
        raise


# -- one kernel for both ---------------------------------------------------------------------


def _checked_pair(y: object, pred_a: object, pred_b: object) -> tuple[Predictions, Predictions]:
    """Both batches in NumPy, for these targets."""
    batches: list[Predictions] = []
    for name, pred in zip(_NAMES, (pred_a, pred_b), strict=True):
        try:
            _, batch = check_inputs(y, pred, ", ".join(_NAMES))
        except (TypeError, ValueError) as error:
            error.add_note(f"This was found for the predictions of {name}.")
            raise
        batches.append(numpy_batch(batch))
    return batches[0], batches[1]


def pooled_kernel(a: Predictions, b: Predictions, *, expectations: str | Lowering = "auto") -> Kernel:
    """Default kernel of two batches together, of one family or of two.

    Examples
    --------
    >>> from wellcal.predictions import Laplace, Normal
    >>> import numpy as np
    >>> a, b = Normal(np.arange(4.0), 1.0), Laplace(np.arange(4.0), 1.0)
    >>> type(pooled_kernel(a, b).predictions.metric).__name__
    'MaximumMeanDiscrepancy'
    """
    pooled = _pooled(a, b)
    if pooled is not None:
        return default_kernel(pooled, expectations=expectations)
    try:
        mixture = _alternatives(a, b)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"no kernel is known that serves both pred_a, {type(a).__name__}, and pred_b, "
            f"{type(b).__name__}: {error}; give both in one family, for example as Samples, or give kernel="
        ) from error
    return default_kernel(mixture, expectations=expectations)


def _pooled(a: Predictions, b: Predictions) -> Predictions | None:
    """Both in one batch, where they are of one family."""
    classes = (Bernoulli, Categorical)
    if isinstance(a, classes) and isinstance(b, classes) and type(a) is not type(b):
        if not np.array_equal(a.labels(), b.labels()):
            return None
        named: Any = a if isinstance(a, Categorical) else b
        a, b = (Categorical(p.class_probs(), named.classes, named.support) for p in (a, b))
    try:
        return concatenate([a, b], _NAMES, "pred_a and pred_b")
    except (TypeError, ValueError):
        return None


def _alternatives(a: Predictions, b: Predictions) -> Mixture:
    """Both in one batch of mixtures, each of one component that counts."""
    if targets_are_indices(a) != targets_are_indices(b):
        raise ValueError("one of them predicts classes and the other does not")
    m = min(len(a), SUBSAMPLE // 2)
    chosen = np.sort(np.random.default_rng(0).choice(len(a), m, replace=False))
    index = np.concatenate([chosen, chosen])
    from_a = (np.arange(2 * m) < m).astype(np.float64)
    return Mixture([a[index], b[index]], np.stack([from_a, 1.0 - from_a], axis=1))
