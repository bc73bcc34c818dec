"""The result of a test."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.kernels.base import Kernel
from wellcal.kernels.guarantees import Guarantees
from wellcal.kernels.plain import kernel_from_dict
from wellcal.measures.estimate import Estimate, estimate_text
from wellcal.measures.presentation import Presentable, Row, at_floor, pvalue_phrase, pvalue_text


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
        of resampling: ``1 / (n_resamples + 1)`` for one statistic. The smallest p-value of several statistics
        has a higher one, since each of them has a set of targets that is the first in it: it is the p-value
        that the observed targets would have if the deciding statistic were beyond all resamples.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 50)
    >>> result = wc.calibration_test(mu + 0.9, wc.Normal(mu, np.ones(50)), rng=0)
    >>> result.pvalue, result.method
    (0.001, 'omnibus')
    >>> result.at_floor, result.pvalue_statement
    (True, 'p <= 0.001, the smallest that 999 resamples can give')
    >>> TestResult.from_json(result.to_json()).pvalue
    0.001
    """

    __test__ = False  # its name begins like that of a test case, which it is not

    statistic: float
    pvalue: float
    method: str
    statistic_label: str
    estimate: Estimate
    effect_size: float | None
    n_samples: int
    kernel: Kernel | None = None
    guarantees: Guarantees | None = None
    null: NDArray | None = None
    provenance: dict[str, Any] = field(default_factory=lambda: {})
    pvalue_floor: float | None = None

    @property
    def at_floor(self) -> bool:
        """Whether the p-value is the smallest that its resamples can give: a bound, not a value."""
        return at_floor(self.pvalue, self.pvalue_floor)

    @property
    def pvalue_statement(self) -> str:
        """The p-value as a phrase: "p = 0.02", or "p <= 0.001, the smallest that 999 resamples can give"."""
        return pvalue_phrase(self.pvalue, self.pvalue_floor, self.provenance.get("n_resamples"))

    # -- for machines ------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {"method": self.method, **super().to_dict(), "at_floor": self.at_floor}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> TestResult:
        """The result again. A kernel that holds a function comes back as None."""
        kernel = None if plain["kernel"] is None else kernel_from_dict(plain["kernel"])
        given: dict[str, Any] | None = plain["guarantees"]
        proven = None if given is None else {**given, "reasons": tuple(given["reasons"])}
        return cls(
            statistic=float(plain["statistic"]),
            pvalue=plain["pvalue"],
            method=plain["method"],
            statistic_label=plain["statistic_label"],
            estimate=Estimate.from_dict(plain["estimate"], kernel=kernel),
            effect_size=plain["effect_size"],
            n_samples=plain["n_samples"],
            kernel=kernel,
            guarantees=None if proven is None else Guarantees(**cast("Any", proven)),
            null=None if plain["null"] is None else np.asarray(plain["null"], dtype=np.float64),
            provenance=plain["provenance"],
            pvalue_floor=plain.get("pvalue_floor"),
        )

    @classmethod
    def from_json(cls, text: str) -> TestResult:
        """The result that `to_json` wrote."""
        return cls.from_dict(json.loads(text))

    # -- for people --------------------------------------------------------------------------

    def _headline(self) -> str:
        return f"Calibration test: {self.pvalue_statement} ({self.n_samples:,} cases, {self.method})"

    def _rows(self) -> list[Row]:
        effect = "not known: too few draws for each prediction"
        if self.effect_size is not None:
            effect = f"{self.effect_size:.3g}  (SKCE / mean h_ii; about 0 if calibrated)"
        estimate = self.estimate
        rows = [
            ("tested", "targets follow their predictions, given the prediction"),
            ("effect size", effect),
            ("estimate", f"{estimate.name} = {estimate_text(estimate)}  ({_estimator_text(estimate)})"),
            ("statistic", f"{self.statistic_label} = {self.statistic:.4g}"),
        ]
        if self.kernel is not None:
            rows.append(("kernel", repr(self.kernel)))
        if self.guarantees is not None:
            rows.append(("proven", _proven_text(self.guarantees)))
        if "pvalues" in self.provenance:
            rows.append(("parts", _parts_text(self.provenance)))
        told = [name for name in ("chosen", "alternatives") if name in self.provenance]
        rows.extend((name, str(self.provenance[name])) for name in told)
        if "n_resamples" in self.provenance:
            rows.append(("resamples", f"{self.provenance['n_resamples']:,}"))
        noted = [name for name in ("lowered", "dropped") if estimate.provenance.get(name)]
        rows.extend((name, _short(estimate.provenance[name])) for name in noted)
        return rows


def _estimator_text(estimate: Estimate) -> str:
    found = estimate.provenance
    if "blocks" not in found:
        return estimate.estimator
    order = " in random order" if found.get("shuffled") else ""
    return f"unbiased, {found['blocks']:,} blocks of {found['block_size']:,} cases{order}"


def _parts_text(provenance: dict[str, Any]) -> str:
    """p-values of the parts of a test; those at their floor as bounds."""
    floors = provenance.get("pvalue_floors", {})
    signs = {True: " <= ", False: " "}
    return ", ".join(
        f"{name}{signs[at_floor(value, floors.get(name))]}{pvalue_text(value)}"
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
