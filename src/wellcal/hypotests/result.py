"""The result of a test."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self, cast

from wellcal._arrays import DEFAULT_SEED
from wellcal._arrays.checks import flag
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.schema import (
    Check,
    Schema,
    described,
    listed,
    mapping,
    number,
    numbers,
    optional,
    text,
    whole,
)
from wellcal.hypotests.e_values import e_value_text
from wellcal.hypotests.findings.finding import Finding, together
from wellcal.hypotests.findings.reasons import ALPHA
from wellcal.hypotests.findings.sizes import surely_not_slight, yardstick_with
from wellcal.hypotests.pvalues import EVIDENCE, MOST_EVIDENCE
from wellcal.hypotests.sensitivity import SmallestError
from wellcal.kernels.base import Kernel
from wellcal.kernels.guarantees import Guarantees
from wellcal.measures.estimate import Estimate, WhenAsked, estimate_text, left_out_rows
from wellcal.measures.presentation import (
    KERNEL,
    Presentable,
    Row,
    at_floor,
    plain,
    pvalue_phrase,
    pvalue_sign,
    within,
)
from wellcal.measures.yardstick import Yardstick
from wellcal.predictions import Predictions


def _no_estimate() -> Estimate:
    raise AttributeError("this result has no estimate")


_NO_ESTIMATE: WhenAsked[Estimate] = WhenAsked(_no_estimate)
_NO_EFFECT_SIZE: WhenAsked[float | None] = WhenAsked(None)
_NO_FINDINGS: WhenAsked[tuple[Finding, ...]] = WhenAsked(())
_NO_PROVENANCE: WhenAsked[dict[str, Any]] = WhenAsked(partial(dict[str, Any]))
_NO_E_VALUE: WhenAsked[float] = WhenAsked(math.nan)


@dataclass(frozen=True, eq=False, repr=False)
class TestResult(Presentable):
    """What a test of calibration found.

    Attributes
    ----------
    statistic
        Value of the statistic, and `statistic_label` what it is.
    pvalue
        Probability of a statistic at least as large if the model were calibrated. Never zero.
    estimate
        The estimated calibration error: the unbiased SKCE over all pairs of cases, or, for methods whose cost
        is linear in the number of cases, its unbiased mean over blocks of cases in random order; `estimator`
        and the provenance of the estimate say which.
    effect_size
        The estimate of SKCE over the mean of h_ii, which depends neither on the unit of the targets nor on
        the scale of the kernel: about 0 for a calibrated model (also below it), and 1 where
        all targets differ from their predictions in the same way. None where too few draws for each
        prediction leave h_ii unknown.
    method
        Name of the method.
    kernel, guarantees
        The kernel, and what is proven about it for these predictions.
    n_samples
        Number of cases.
    null
        Values of the statistic under calibration, where they were drawn and asked for.
    provenance
        What was chosen, and why.
    pvalue_floor
        The smallest p-value that the resamples of the test could have given, or None where it is not a matter
        of resampling: ``1 / (n_resamples + 1)``.
    log_e_value
        Logarithm of `e_value`; NaN where there is none, and ``provenance["no e-value"]`` says why.
    findings
        What kind of error it is, in sentences with numbers and intervals, the clearest first. A calibrated
        model has any with probability 0.05 at most: there are none where the p-value is above 0.05, and none
        for methods other than "omnibus". With `groups` their intervals are those of clusters.

    Notes
    -----
    Findings, the e-value and what `provenance` says of an error that would have been found are made when
    somebody looks: at them, at the result as text, or at what is stored of it. Until then the result holds on
    to targets and predictions for them, as its estimate does.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 50)
    >>> result = wc.calibration_test(mu + 0.9, wc.Normal(mu, np.ones(50)), rng=0)
    >>> result.pvalue, result.method
    (1e-05, 'omnibus')
    >>> result.at_floor, result.pvalue_statement
    (True, 'p <= 1.0e-05, the smallest that 99,999 resamples can give')
    >>> print(result.findings[-1])
    targets are 0.9 standard deviations too high (exactly 0.9)
    >>> TestResult.from_json(result.to_json()).pvalue
    1e-05
    """

    __test__ = False  # its name begins like that of a test case, which it is not

    statistic: float
    pvalue: float
    method: str
    statistic_label: str
    estimate: WhenAsked[Estimate] = _NO_ESTIMATE
    effect_size: WhenAsked[float | None] = _NO_EFFECT_SIZE
    n_samples: int = 0
    kernel: Kernel | None = None
    guarantees: Guarantees | None = None
    null: NDArray | None = None
    provenance: WhenAsked[dict[str, Any]] = _NO_PROVENANCE
    pvalue_floor: float | None = None
    log_e_value: WhenAsked[float] = _NO_E_VALUE
    findings: WhenAsked[tuple[Finding, ...]] = _NO_FINDINGS

    not_read: ClassVar[tuple[str, ...]] = ("at_floor", "e_value")
    added: ClassVar[Mapping[str, Any]] = {"pvalue_floor": None, "log_e_value": math.nan, "findings": ()}

    def __getstate__(self) -> dict[str, Any]:
        """What travels to other processes: numbers, and not what they are made of."""
        return {**super().__getstate__(), "estimate": self.estimate, "effect_size": self.effect_size}

    def with_given(self, targets: NDArray, predictions: Predictions) -> Self:
        """The same result, which remembers the targets and predictions that it is about, for pictures."""
        self.__dict__["_given"] = (targets, predictions)
        return self

    @property
    def given(self) -> tuple[NDArray, Predictions] | None:
        """Targets, as computations use them, and predictions; None where they are not known any more."""
        return self.__dict__.get("_given")

    @property
    def at_floor(self) -> bool:
        """Whether the p-value is the smallest that its resamples can give: a bound, not a value."""
        return at_floor(self.pvalue, self.pvalue_floor)

    @property
    def rejected(self) -> bool:
        """Whether the hypothesis is rejected at the error rate of all verdicts, 5%."""
        return self.pvalue <= ALPHA

    @property
    def pvalue_statement(self) -> str:
        """The p-value as a phrase: "p = 0.02", or "p <= 0.001, the smallest that 999 resamples can give"."""
        return pvalue_phrase(self.pvalue, self.pvalue_floor, self.provenance.get("n_resamples"))

    @property
    def yardstick(self) -> Yardstick | None:
        """How far off the model is, as the size of a simple error: :attr:`wellcal.Estimate.yardstick`.

        Where the only finding is an error in spreads, temperature or means of all cases, it is the size that
        the finding tells. Otherwise the calibration error leads to it: it has a direction where a finding
        says that the error has it in all cases, and elsewhere sizes to both sides are told.
        """
        return yardstick_with(self.estimate, self.findings)

    @property
    def e_value(self) -> float:
        """What a bet of one against calibration has become: about 1 or less if the model is calibrated.

        Whatever the method, it has been fixed before the targets were seen, and its expectation under
        calibration is 1 at most: it reaches ``1 / alpha`` with probability alpha at most. It needs no
        resamples, has no floor, and e-values of several data sets may be multiplied, also where the next
        data set was collected because of the last. It may be infinite, where a target was excluded, or
        larger than any number: `log_e_value` is not.

        Examples
        --------
        >>> import numpy as np, wellcal as wc
        >>> mu = np.linspace(-1.0, 1.0, 50)
        >>> result = wc.calibration_test(mu + 0.9, wc.Normal(mu, np.ones(50)), rng=0)
        >>> round(float(np.log10(result.e_value)), 1)
        7.3
        """
        with contextlib.suppress(OverflowError):
            return math.exp(self.log_e_value)
        return math.inf

    @property
    def smallest_error(self) -> SmallestError | None:
        """The smallest simple error that the test would have found with power 0.8, where it found none.

        An approximation, for the omnibus test only, by what cases are worth where they come in clusters;
        :func:`wellcal.plan` simulates.
        """
        found = self.provenance.get("smallest_error")
        return None if found is None else SmallestError(**found)

    # -- for machines ------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        self._size()  # what is stored says how large an error is
        derived = {"at_floor": self.at_floor, "e_value": plain(self.e_value)}
        return {"method": self.method, **super().to_dict(), **derived}

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of a result."""
        shown: dict[str, Check] = {
            "pvalues": _numbers_by_name,
            "pvalue_floors": _numbers_by_name,
            "n_resamples": whole(least=0),
            "seed": whole(least=0),
            "smallest_error": _SMALLEST_ERROR,
        }
        return {
            "method": text,
            "statistic": number(infinite=True),
            "pvalue": number(least=0.0, most=1.0),
            "statistic_label": text,
            "estimate": within(Estimate, kernel),
            "effect_size": optional(number(infinite=True, nan=True)),
            "n_samples": whole(least=1),
            **KERNEL,
            "guarantees": optional(_guarantees),
            "null": optional(numbers()),
            "provenance": described(shown),
            "pvalue_floor": optional(number(least=0.0, most=1.0)),
            "log_e_value": number(infinite=True, nan=True),
            "findings": listed(within(Finding, kernel)),
        }

    # -- for people --------------------------------------------------------------------------

    @property
    def verdict(self) -> str:
        """What the test found, in one sentence."""
        if not self.pvalue <= ALPHA:
            missed = "" if self.smallest_error is None else f" {self.smallest_error}."
            return f"No miscalibration found ({self.pvalue_statement}).{missed}"
        found = f"Miscalibrated ({self.pvalue_statement})"
        size = None if surely_not_slight(self.estimate, self.findings) else self._size()
        if size is not None and size.slight:
            # An estimate of zero is no size: findings have one.
            told = size.sentence if size.ratio != 1.0 else together(self.findings)
            return f"{found}, but slightly: {told or size.sentence}."
        return f"{found}: {together(self.findings)}." if self.findings else f"{found}."

    def _size(self) -> Yardstick | None:
        """How large the error is, where there is one."""
        return self.yardstick if self.pvalue <= ALPHA else None

    def _headline(self) -> str:
        return self.verdict

    def _points(self) -> list[str]:
        sentences = [finding.sentence for finding in self.findings]
        return [] if len(sentences) == 1 and self.verdict.endswith(f": {sentences[0]}.") else sentences

    def _rows(self) -> list[Row]:
        estimate, provenance = self.estimate, self.provenance
        rows: list[Row] = []
        size = self._size()
        if size is not None:
            rows.append(("how large", f"{size.word}: {size.sentence}"))
        if not math.isnan(self.log_e_value):
            rows.append(("e-value", f"{e_value_text(self.log_e_value)}  (about 1 or less if calibrated)"))
        effect = "not known: too few draws for each prediction"
        if self.effect_size is not None:
            effect = f"{self.effect_size:.3g}  (SKCE / mean h_ii; about 0 if calibrated)"
        rows += [
            ("effect size", effect),
            ("estimate", f"{estimate.name} = {estimate_text(estimate)}  ({_estimator_text(estimate)})"),
            ("tested", "targets follow their predictions, given the prediction"),
            ("cases", f"{self.n_samples:,}{clusters_text(provenance)}"),
        ]
        if self.kernel is not None:
            rows.append(("kernel", repr(self.kernel)))
        if self.guarantees is not None:
            rows.append(("proven", _proven_text(self.guarantees)))
        rows.append(("method", self.method))
        told = f"{self.statistic_label} = {self.statistic:.4g}"
        if self.statistic_label == EVIDENCE and self.statistic >= MOST_EVIDENCE:
            told += " or more, far beyond all that was drawn"
        rows.append(("statistic", told))
        if "pvalues" in provenance:
            rows.append(("parts", _parts_text(provenance)))
        told = [name for name in ("coordinates", "chosen", "alternatives") if name in provenance]
        rows.extend((name, str(provenance[name])) for name in told)
        if "n_resamples" in provenance:
            seed = f", seed {seed_text(provenance['seed'])}" if "seed" in provenance else ""
            rows.append(("resamples", f"{provenance['n_resamples']:,}{seed}"))
        if estimate.provenance.get("lowered"):
            rows.append(("lowered", _short(estimate.provenance["lowered"])))
        return [*rows, *left_out_rows(estimate.provenance)]


def clusters_text(provenance: Mapping[str, Any]) -> str:
    """How many clusters cases come in, where they do, and what that means for what is said."""
    if "clusters" not in provenance:
        return ""
    return f" in {provenance['clusters']:,} clusters: p-value and intervals are asymptotic, for many clusters"


def _estimator_text(estimate: Estimate) -> str:
    found = estimate.provenance
    if "blocks" not in found:
        return estimate.estimator
    order = " in random order" if found.get("shuffled") else ""
    return f"unbiased, {found['blocks']:,} blocks of {found['block_size']:,} cases{order}"


_PROVEN = Schema(
    {
        "positive_definite": optional(flag),
        "characteristic": optional(flag),
        "bounded": optional(flag),
        "universal": optional(flag),
        "reasons": listed(text),
    },
)


_SMALLEST_ERROR = Schema(
    {
        "kind": text,
        "share": number(least=0.0),
        "n_samples": whole(least=1),
        "power": number(least=0.0, most=1.0),
        "alpha": number(least=0.0, most=1.0),
        "clusters": optional(whole(least=1)),
        "beyond": flag,
    },
    {"clusters": None, "beyond": False},
)


def _guarantees(plain: Any, name: str) -> Guarantees:
    return Guarantees(**_PROVEN(plain, name))


def _numbers_by_name(plain: Any, name: str) -> dict[str, float]:
    check = number(infinite=True, nan=True)
    return {key: check(value, f"{name}.{key}") for key, value in mapping(plain, name).items()}


def _parts_text(provenance: dict[str, Any]) -> str:
    """p-values of the parts of a test; those at their floor as bounds."""
    floors = provenance.get("pvalue_floors", {})
    return ", ".join(
        f"{name} {pvalue_sign(value, floors.get(name)).removeprefix('p ').removeprefix('= ')}"
        for name, value in provenance["pvalues"].items()
    )


def _proven_text(found: Guarantees) -> str:
    def word(value: bool | None) -> str:
        return {True: "yes", False: "no, refuted", None: "not known"}[value]

    return (
        f"positive definite: {word(found.positive_definite)}; "
        f"sees every miscalibration: {word(found.characteristic)}"
    )


def _short(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "; ".join(map(str, cast("tuple[object, ...]", value)))
    return str(value)


def seed_text(seed: int | None) -> str:
    """A seed in words.

    Examples
    --------
    >>> seed_text(0), seed_text(7), seed_text(None)
    ('0 (default)', '7', 'a generator that was given')
    """
    if seed is None:
        return "a generator that was given"
    return f"{seed} (default)" if seed == DEFAULT_SEED else str(seed)
