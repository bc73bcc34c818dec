"""`calibration_test`: one door to all tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import described, flag, one_of
from wellcal._arrays.namespaces import NDArray, handed_over
from wellcal._arrays.progress import Listener, Progress, as_progress, reported
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.warnings import advise
from wellcal.engines import Engine
from wellcal.expectations.lowering import Lowering
from wellcal.hypotests.automatic import choose
from wellcal.hypotests.e_values import Evidence, EvidenceLater
from wellcal.hypotests.findings.reasons import ALPHA
from wellcal.hypotests.method import AUTO, METHODS, Method, Outcome
from wellcal.hypotests.methods import Omnibus
from wellcal.hypotests.methods.exact import Statistic
from wellcal.hypotests.parts.vectors import coordinates_looked_at
from wellcal.hypotests.result import TestResult
from wellcal.hypotests.sensitivity import smallest_error
from wellcal.hypotests.setup import Setup, check_resamples, make_setup
from wellcal.hypotests.tolerance import WITHIN, run_tolerance_test
from wellcal.kernels.base import Kernel
from wellcal.measures._skce import BlockSize
from wellcal.measures.deviations import Cases
from wellcal.measures.estimate import Estimate


@handed_over
@reported
def calibration_test(
    y: object,
    pred: object,
    *,
    kernel: Kernel | Sequence[Kernel] | None = None,
    method: str | Method = "auto",
    rng: int | np.random.Generator | None = None,
    n_resamples: int | None = None,
    block_size: BlockSize = None,
    locations: object = None,
    statistic: Statistic | None = None,
    groups: object = None,
    tolerance: float | None = None,
    expectations: str | Lowering = "auto",
    engine: str | Engine = "auto",
    keep_null: bool = False,
    progress: bool | Listener | Progress | None = None,
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
        "omnibus"            exact; smallest p-value of parts for all ordinary errors
        "exact"              exact; Monte Carlo over targets drawn from the predictions
        "aggregated"         exact; smallest p-value over a family of kernels
        "regularised"        exact; deviations at locations in units of their spread
        "pearson"            asymptotic; three cumulants of the quadratic statistic
        "bootstrap"          asymptotic; Arcones and Giné, the paper's
        "multiplier"         asymptotic; random signs, one for each case or each of `groups`
        "spectrum"           asymptotic; eigenvalues of the matrix of h
        "gamma"              asymptotic; two moments
        "block"              asymptotic; means of blocks, linear in n for fixed block size
        "cme"                exact; deviations at a few locations, linear in n
        "distribution_free"  a bound that holds at every n, and is hardly ever small
        "consistency"        consistency resampling of predictions and targets
        ===================  ==========================================================================

        or a method with options of its own, such as ``wellcal.hypotests.Block(variance="pairs")``, or one
        that you wrote: a subclass of :class:`wellcal.hypotests.Method`, by its name or as a value.
    rng
        Seed or generator. The same seed gives the same p-value; None is the default seed, 0, of all
        functions, so that they agree about the same cases. Give each test a seed of its own where p-values
        of several data sets are combined, and where a simulation repeats it.
    n_resamples
        Resamples, for methods that draw them. A number is what the p-value rests on, no more and no fewer; a
        warning says how long it takes where that is long. None takes 999, and "auto" fewer beyond
        50,000 cases, 199 at least; where the targets are beyond all of them, "omnibus", which "auto" takes,
        draws on for a smaller p-value, up to 99,999. For both, a number to begin with and another to draw on
        to: ``method=wellcal.hypotests.Omnibus(most_resamples=99_999)``.
    block_size
        For "block", "distribution_free" and ``statistic="block"``.
    locations
        For "cme", "regularised", "omnibus" and ``statistic="cme"``: their number, or
        ``(predictions, targets)``.
    statistic
        For "exact" and "consistency": "skce", "block", "cme", or a function ``f(y, pred)`` that returns a
        number, large where the model is miscalibrated. For "bootstrap": "skce", or "authors" for that of
        the paper's code.
    groups
        Label of the cluster of each case (patient, account), where cases of one cluster depend on each
        other. "omnibus", which "auto" takes, and "multiplier" honour it, with random signs for clusters:
        valid for many clusters, not exact. Where no cluster has more than one case it changes nothing.
    tolerance
        Test ``KCE <= tolerance`` instead of exact calibration, in units of KCE: an error that is small enough
        is then no reason to reject. It reads the confidence interval of KCE, draws nothing that depends on
        `rng`, and returns a :class:`ToleranceResult`; options of methods have no meaning with it. See
        :func:`equivalence_test` for the other way round.
    expectations, engine
        As in :func:`wellcal.skce`.
    keep_null
        Whether the result holds the values of the statistic under calibration.
    progress
        Whether to show how far a long run is; None does where standard error is a terminal. A function is
        called as ``progress(what, done, total)``, and ends the run by raising an error. A
        `wellcal.hypotests.progress.Progress` also says where and how often.

    Returns
    -------
    TestResult
        p-value, statistic, estimate, effect size, kernel with its guarantees, and what was chosen.

    Notes
    -----
    The test asks whether targets follow their predictions *given the prediction*. It is a test for the
    cases at hand: they must be independent, and none of them may have served to fit or recalibrate the
    model.

    There are no weights of cases: a calibrated model has no error under any weights. A weighted statistic
    is a matter of ``method="exact"``, with ``statistic=lambda y, pred: wc.skce(y, pred, weights=w)``.

    Arithmetic is NumPy's, wherever the arrays come from, but for 10,000 or more cases of tensors on a
    graphics card: their targets are drawn and summed there, by the generator of the device.

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
    count = None if n_resamples is None else check_resamples(n_resamples)
    keep_null = flag(keep_null, "keep_null")
    one, several = split_kernels(kernel)
    options = {"block_size": block_size, "locations": locations, "statistic": statistic, "kernels": several}
    given = {name: value for name, value in options.items() if value is not None}
    if tolerance is not None:
        check_no_options(method, given)
        return run_tolerance_test(y, pred, WITHIN, tolerance, one, groups, expectations, engine)
    chosen = resolve(method, given)
    check_groups(chosen, groups)
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
        few_pairs=chosen is not None and chosen.few_pairs,
        progress=as_progress(progress),
    )
    reasons: dict[str, Any] = {}
    if chosen is None:
        choice = choose(setup)
        chosen = choice.method
        if locations is not None and "locations" in _options_of(type(chosen)):
            chosen = replace(chosen, locations=locations)
        reasons = {"chosen": choice.reason, "alternatives": choice.alternatives}
        setup = replace(setup, n_resamples=choice.n_resamples)
    setup = replace(setup, linear=chosen.linear)
    _check_enough(chosen, setup, "the test" if reasons else f"method={chosen.name!r}")
    _warn_of_few_resamples(chosen, setup)
    return result_of(chosen, setup, chosen.run(setup), reasons, keep_null)


# -- the method and its options --------------------------------------------------------------


def resolve(method: object, options: dict[str, Any]) -> Method | None:
    """The method with its options, or None for "auto"."""
    if isinstance(method, str):
        name = one_of(method, "method", [AUTO, *sorted(METHODS)])
        chosen = None if name == AUTO else METHODS[name]()
    elif isinstance(method, Method):
        chosen = method
    else:
        raise TypeError(
            f"method must be a name or a method such as wellcal.hypotests.Block(), found {described(method)}"
        )
    known = {"locations"} if chosen is None else _options_of(type(chosen))
    for option in options:
        if option not in known:
            raise ValueError(_without_meaning(option, AUTO if chosen is None else chosen.name))
    return chosen if chosen is None or not options else replace(chosen, **options)


def check_no_options(method: object, options: dict[str, Any]) -> None:
    """With a tolerance there is one method, without options."""
    if not (isinstance(method, str) and method == AUTO):
        raise ValueError(
            f'tolerance has no meaning for method={described(method)}: leave method="auto", or leave out '
            "tolerance"
        )
    for option in options:
        what = "a list of kernels" if option == "kernels" else option
        raise ValueError(f"{what} has no meaning with tolerance: leave out one of them")


def _options_of(method: type[Method]) -> set[str]:
    return {field.name for field in fields(method)}


def _without_meaning(option: str, method: str) -> str:
    takers = ", ".join(sorted(name for name, kind in METHODS.items() if option in _options_of(kind)))
    if option == "kernels":
        return (
            f"a list of kernels has no meaning for method={method!r}; give one kernel, or their sum, or take "
            f"a method for several: {takers}"
        )
    return f"{option} has no meaning for method={method!r}; methods that take it: {takers}"


def split_kernels(kernel: object) -> tuple[Kernel | None, tuple[Kernel, ...] | None]:
    """The kernel that estimate and effect size are reported with, and all of a list."""
    if not isinstance(kernel, (list, tuple)):
        return cast("Kernel | None", kernel), None
    kernels = tuple(cast("Sequence[Kernel]", kernel))
    if not kernels:
        raise ValueError("kernel is an empty list: give at least one kernel, or None for the default")
    return kernels[0], kernels


# -- what a method needs ---------------------------------------------------------------------


def _warn_of_few_resamples(method: Method, setup: Setup) -> None:
    count = setup.n_resamples
    if not method.resamples or 1.0 / (count + 1.0) <= ALPHA:
        return
    least = 1.0 / (method.most_drawn(setup) + 1.0)
    if least > ALPHA:
        advise(
            f"with n_resamples={count} no p-value is below {least:.2g}: the test cannot reject at alpha = "
            f"{ALPHA:g}; take n_resamples=999"
        )


def check_groups(method: Method | None, groups: object) -> None:
    if groups is None or method is None or method.clusters:
        return
    able = ", ".join(sorted(name for name, kind in METHODS.items() if kind.clusters))
    raise ValueError(
        f"method={method.name!r} takes cases as independent and cannot honour groups; "
        f"methods that can: {able}"
    )


def _check_enough(method: Method, setup: Setup, who: str) -> None:
    fewest = max(method.fewest, 2)  # the estimate that is reported needs a pair
    if setup.n_samples < fewest:
        raise ValueError(f"{who} needs at least {how_many(fewest)}, found {setup.n_samples}; collect more")


# -- the result ------------------------------------------------------------------------------


def result_of(
    method: Method,
    setup: Setup,
    outcome: Outcome,
    reasons: dict[str, Any],
    keep_null: bool,
    n_samples: int | None = None,
    known_evidence: Evidence | None = None,
) -> TestResult:
    """What a method found, as a result.

    Where the setup has only some of the `n_samples` cases that were tested, it knows the estimate and the
    mean of h_ii of all (`Setup.knowing`), and `known_evidence` is theirs; findings are made of those it has.
    """
    evidence = EvidenceLater(setup.targets, setup.given, setup.groups)
    if known_evidence is not None:
        evidence = evidence.knowing(known_evidence)
    missed = n_samples is None and isinstance(method, Omnibus) and outcome.pvalue > ALPHA
    known = {**reasons, **outcome.provenance, **setup.problem.notes.as_dict()}
    if isinstance(method, Omnibus):
        known |= coordinates_looked_at(math.prod(setup.predictions.event_shape))
    if "n_resamples" in known and setup.seed is not None:
        known["seed"] = setup.seed
    result = TestResult(
        statistic=float(outcome.statistic),
        pvalue=float(outcome.pvalue),
        method=method.name,
        statistic_label=outcome.label,
        # Where the test needed none, an estimate takes longer than the test: it is made when it is asked for.
        estimate=EstimateLater(setup) if outcome.estimate is None else outcome.estimate,
        effect_size=EffectSizeLater(setup, outcome.estimate),
        n_samples=setup.n_samples if n_samples is None else n_samples,
        kernel=setup.kernel,
        guarantees=setup.kernel.guarantees(setup.predictions),
        null=_kept_null(outcome) if keep_null else None,
        provenance=ProvenanceLater(
            known, evidence, setup.cases if missed else None, setup.pooled is not None
        ),
        pvalue_floor=_floor(method, setup, outcome),
        log_e_value=evidence.log_e,
        findings=outcome.findings,
    )
    return result.with_given(setup.targets, setup.given)


def _kept_null(outcome: Outcome) -> NDArray | None:
    return outcome.null() if callable(outcome.null) else outcome.null


@dataclass(frozen=True, eq=False)
class EstimateLater:
    """The estimate beside a test, made when it is called."""

    setup: Setup

    def __call__(self) -> Estimate:
        """The estimate."""
        return self.setup.estimate


@dataclass(frozen=True, eq=False)
class EffectSizeLater:
    """The effect size of an estimate, or of that beside a test, made when it is called."""

    setup: Setup
    estimate: Estimate | None

    def __call__(self) -> float | None:
        """The effect size."""
        return self.setup.effect_size(self.setup.estimate if self.estimate is None else self.estimate)


@dataclass(frozen=True, eq=False)
class ProvenanceLater:
    """What was chosen, and what else there is to say, made when it is called.

    Attributes
    ----------
    known
        What the test knew.
    evidence
        Which may have a reason why there is none.
    missed
        The cases of a test that found nothing: the smallest error that it would have found is told. Or None.
    pooled
        Whether their predictions are draws, pooled with targets.
    """

    known: dict[str, Any]
    evidence: EvidenceLater
    missed: Cases | None
    pooled: bool = False

    def __call__(self) -> dict[str, Any]:
        """All of it, in one dictionary."""
        reason = self.evidence.found.reason
        least = None if self.missed is None else smallest_error(self.missed, pooled=self.pooled)
        return {
            **self.known,
            **({} if reason is None else {"no e-value": reason}),
            **({} if least is None else {"smallest_error": asdict(least)}),
        }


def _floor(method: Method, setup: Setup, outcome: Outcome) -> float | None:
    """The smallest p-value that resampling could have given; None where it did not decide."""
    if outcome.floor is not None:
        return float(outcome.floor) or None
    least = 1.0 / (setup.n_resamples + 1.0)
    # A method of a user's that says nothing of resamples is taken to draw them, unless it evidently did not.
    return least if method.resamples and outcome.pvalue >= least * (1.0 - 1e-9) else None
