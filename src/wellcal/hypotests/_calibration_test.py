"""`calibration_test`: one door to all tests."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, cast

import numpy as np

from wellcal.engines import Engine
from wellcal.expectations.lowering import Lowering
from wellcal.hypotests.base import Method, Outcome, Setup
from wellcal.hypotests.choose import choose
from wellcal.hypotests.methods.asymptotic import Bootstrap, Multiplier, Spectrum
from wellcal.hypotests.methods.block import Block
from wellcal.hypotests.methods.combined import Aggregated, Omnibus, Regularised
from wellcal.hypotests.methods.consistency import Consistency
from wellcal.hypotests.methods.cumulants import Gamma, Pearson
from wellcal.hypotests.methods.distribution_free import DistributionFree
from wellcal.hypotests.methods.exact import Exact, Statistic
from wellcal.hypotests.methods.mean_embedding import MeanEmbedding
from wellcal.hypotests.progress import Progress
from wellcal.hypotests.result import TestResult
from wellcal.hypotests.setup import make_setup
from wellcal.kernels.base import Kernel
from wellcal.measures._skce import BlockSize
from wellcal.problem.weights import refuse_weights

METHODS: dict[str, type] = {
    method.name: method
    for method in (
        Exact,
        Bootstrap,
        Multiplier,
        Spectrum,
        Pearson,
        Gamma,
        Block,
        MeanEmbedding,
        Aggregated,
        Regularised,
        Omnibus,
        DistributionFree,
        Consistency,
    )
}
"""Methods by name, beside "auto"."""

_LEVELS = (0.05, 0.01)  # that a p-value should be able to reach


def calibration_test(
    y: object,
    pred: object,
    *,
    kernel: Kernel | Sequence[Kernel] | None = None,
    method: str | Method = "auto",
    rng: int | np.random.Generator | None = None,
    n_resamples: int = 999,
    block_size: BlockSize = None,
    locations: Any = None,
    statistic: Statistic | None = None,
    groups: object = None,
    weights: object = None,
    expectations: str | Lowering = "auto",
    engine: str | Engine = "auto",
    keep_null: bool = False,
    progress: bool | None = None,
) -> TestResult:
    """Test the hypothesis that a model is calibrated.

    Parameters
    ----------
    y
        Observed targets, one for each prediction.
    pred
        Predictions: a batch such as ``wc.Normal(mu, sigma)``, or anything that
        :func:`wellcal.as_predictions` understands.
    kernel
        Kernel on pairs of prediction and target; None chooses one for the family, with scales from the
        predictions. A list of kernels is for ``method="aggregated"``.
    method
        ===================  ==========================================================================
        "auto"               the strongest exact test that fits a budget of operations
        "omnibus"            exact; smallest p-value of SKCE, locations, centre and surprise
        "exact"              exact; Monte Carlo over targets drawn from the predictions
        "aggregated"         exact; smallest p-value over a family of kernels
        "regularised"        exact; deviations at locations in units of their spread
        "pearson"            asymptotic; three cumulants of the quadratic statistic
        "bootstrap"          asymptotic; Arcones and Giné, the paper's
        "multiplier"         asymptotic; random signs, one for each case or each of `groups`
        "spectrum"           asymptotic; eigenvalues of the matrix of h
        "gamma"              asymptotic; two moments
        "block"              asymptotic; means of blocks, linear in n for fixed block size
        "cme"                asymptotic; Hotelling's statistic at a few locations
        "distribution_free"  a bound that holds at every n, and is hardly ever small
        "consistency"        consistency resampling of predictions and targets
        ===================  ==========================================================================

        or a method with options of its own, such as ``wellcal.hypotests.Block(variance="pairs")``.
    rng
        Seed or generator. The same seed gives the same p-value.
    n_resamples
        Resamples, for methods that draw them; the most that "auto" draws.
    block_size
        For "block", "distribution_free" and ``statistic="block"``.
    locations
        For "cme", "regularised", "omnibus" and ``statistic="cme"``: their number, or
        ``(predictions, targets)``.
    statistic
        For "exact" and "consistency": "skce", "block", "cme", or a function ``f(y, pred)`` that returns a
        number, large where the model is miscalibrated.
    groups
        Label of the cluster of each case (patient, account), where cases of one cluster depend on each
        other. Only "multiplier", and "auto", honour it.
    weights
        Refused, with the reason: a calibrated model has no error under any weights.
    expectations, engine
        As in :func:`wellcal.skce`.
    keep_null
        Whether the result holds the values of the statistic under calibration.
    progress
        Whether to show progress; None does where standard error is a terminal.

    Returns
    -------
    TestResult
        p-value, statistic, estimate, effect size, kernel with its guarantees, and what was chosen.

    Notes
    -----
    The test asks whether targets follow their predictions *given the prediction*. It is a test for the
    cases at hand: they must be independent, and none of them may have served to fit or recalibrate the
    model.

    All arithmetic is NumPy's, wherever the arrays come from.

    References
    ----------
    Widmann, Lindsten, Zachariah (2021), "Calibration tests beyond classification".

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=100)
    >>> y = rng.normal(mu, 1.0)
    >>> bool(wc.calibration_test(y, wc.Normal(mu, np.ones(100)), rng=1).pvalue > 0.05)
    True
    >>> bool(wc.calibration_test(y, wc.Normal(mu, 0.6 * np.ones(100)), rng=1).pvalue < 0.01)
    True
    """
    refuse_weights(
        weights,
        "a test of calibration",
        "a calibrated model has no error under any weights; for a weighted statistic take method='exact' and "
        "statistic=lambda y, pred: float(wc.skce(y, pred, weights=w))",
    )
    count = check_resamples(n_resamples)
    options = {"block_size": block_size, "locations": locations, "statistic": statistic}
    several, one = _split_kernels(kernel)
    chosen = _resolve(method, {name: value for name, value in options.items() if value is not None})
    if several is not None:
        if not isinstance(chosen, Aggregated):
            raise ValueError('a list of kernels is for method="aggregated"; give one kernel, or their sum')
        chosen = replace(chosen, kernels=several)
    _check_groups(chosen, groups)
    setup = make_setup(
        y,
        pred,
        one,
        rng=rng,
        n_resamples=count,
        groups=groups,
        expectations=expectations,
        engine=engine,
        pool=chosen is None or chosen.exchanges_draws,
        progress=Progress(progress),
    )
    reasons: dict[str, Any] = {}
    if chosen is None:
        choice = choose(setup)
        chosen = choice.method
        if locations is not None and isinstance(chosen, Omnibus):
            chosen = replace(chosen, locations=locations)
        reasons = {"chosen": choice.reason, "alternatives": choice.alternatives}
        setup = replace(setup, n_resamples=choice.n_resamples)
    _check_enough(chosen, setup)
    _warn_of_few_resamples(chosen, setup.n_resamples)
    outcome = chosen.run(setup)
    return _result(chosen, setup, outcome, reasons, keep_null)


def _resolve(method: object, options: dict[str, Any]) -> Any:
    """The method with its options, or None for "auto"."""
    if method == "auto":
        unusable = [name for name in options if name != "locations"]
        if unusable:
            raise ValueError(
                f'{unusable[0]} has no meaning for method="auto"; name a method that takes it: '
                f"{', '.join(_takers(unusable[0]))}"
            )
        return None
    if isinstance(method, str):
        if method not in METHODS:
            raise ValueError(f"unknown method {method!r}; known are auto, {', '.join(METHODS)}")
        value: Any = METHODS[method]()
    elif type(method) in METHODS.values():
        value = method
    else:
        raise TypeError(
            f"method must be a name or a method such as wellcal.hypotests.Block(), found {method!r}"
        )
    names = {field.name for field in fields(value)}
    for name in options:
        if name not in names:
            raise ValueError(
                f"{name} has no meaning for method={value.name!r}; methods that take it: "
                f"{', '.join(_takers(name))}"
            )
    return replace(value, **options) if options else value


def _takers(option: str) -> list[str]:
    return [name for name, kind in METHODS.items() if option in {field.name for field in fields(kind)}]


def _split_kernels(kernel: Any) -> tuple[tuple[Kernel, ...] | None, Kernel | None]:
    """A list of kernels, and the one that estimate and effect size are reported with."""
    if isinstance(kernel, Kernel) or kernel is None or not isinstance(kernel, (list, tuple)):
        return None, kernel
    kernels = tuple(cast("Sequence[Kernel]", kernel))
    if not kernels:
        raise ValueError("kernel is an empty list: give at least one kernel, or None for the default")
    return kernels, kernels[0]


def check_resamples(n_resamples: Any) -> int:
    """`n_resamples` as a whole number of at least one."""
    whole = isinstance(n_resamples, (int, np.integer)) and not isinstance(n_resamples, bool)
    if not whole or n_resamples < 1:
        raise ValueError(f"n_resamples must be a whole number of at least 1, found {n_resamples!r}")
    return int(n_resamples)


def _warn_of_few_resamples(method: Any, count: int) -> None:
    out_of_reach = [level for level in _LEVELS if 1.0 / (count + 1.0) > level]
    if method.resamples and out_of_reach:
        warnings.warn(
            f"with n_resamples={count} no p-value is below {1.0 / (count + 1.0):.2g}: the test cannot "
            f"reject at level {' or '.join(map(str, out_of_reach))}; take n_resamples=999",
            UserWarning,
            stacklevel=3,
        )


def _check_groups(method: Any, groups: object) -> None:
    if groups is None or method is None or method.clusters:
        return
    able = ", ".join(name for name, kind in METHODS.items() if cast("Any", kind).clusters)
    raise ValueError(
        f"method={method.name!r} takes cases as independent and cannot honour groups; "
        f"methods that can: {able}"
    )


def _check_enough(method: Any, setup: Setup) -> None:
    if setup.n < method.fewest:
        raise ValueError(
            f"method={method.name!r} needs at least {method.fewest} cases, found {setup.n}; collect more"
        )


def _result(
    method: Any, setup: Setup, outcome: Outcome, reasons: dict[str, Any], keep_null: bool
) -> TestResult:
    estimate = setup.estimate if outcome.estimate is None else outcome.estimate
    return TestResult(
        statistic=float(outcome.statistic),
        pvalue=float(outcome.pvalue),
        method=method.name,
        statistic_label=outcome.label,
        estimate=estimate,
        effect_size=_effect_size(setup, estimate),
        n_samples=setup.n,
        kernel=setup.problem.kernel,
        guarantees=setup.problem.kernel.guarantees(setup.predictions),
        null=outcome.null if keep_null else None,
        provenance={**reasons, **outcome.provenance, **setup.problem.notes.as_dict()},
    )


def _effect_size(setup: Setup, estimate: Any) -> float | None:
    """SKCE / mean h_ii, or None where too few draws leave h_ii unknown, or even negative."""
    if estimate.name != "SKCE":
        estimate = setup.estimate
    mean = float(np.mean(setup.diagonal))
    if mean == 0.0:
        return 0.0
    return float(estimate) / mean if mean > 0.0 else None  # nan compares as false
