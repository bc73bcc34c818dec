"""What a witness tells."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal.kernels.base import Kernel
from wellcal.kernels.plain import kernel_to_dict
from wellcal.measures.estimate import Estimate
from wellcal.measures.presentation import html_table, plain, pvalue_text, text_rows
from wellcal.predictions import Predictions

_MOST_LISTED = 10  # groups and segments in a printed result


@dataclass(frozen=True, eq=False)
class Group:
    """Cases that are told by a few words, and how they are miscalibrated.

    Attributes
    ----------
    statement
        All of it in one sentence.
    where, direction
        Which cases, and what happens there.
    observed, expected
        Mean over the cases of what the direction measures, and its expectation under the predictions.
    statistic
        Their difference in units of its standard deviation under calibration; the sign is that of the
        difference.
    pvalue
        Adjusted for all groups and directions that were looked at.
    contribution
        Part of the estimate that comes from the cases: the sum of their contributions.
    cases
        Their positions, in order.
    kind
        "all", "split" or "segment".
    """

    statement: str
    where: str
    direction: str
    observed: float
    expected: float
    statistic: float
    pvalue: float
    contribution: float
    cases: NDArray
    kind: str

    @property
    def n_cases(self) -> int:
        """Number of cases."""
        return len(self.cases)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, but for which cases they are."""
        names = ("statement", "where", "direction", "observed", "expected", "statistic", "pvalue")
        return {
            **{name: getattr(self, name) for name in names},
            "contribution": self.contribution,
            "n_cases": self.n_cases,
            "kind": self.kind,
        }

    def __repr__(self) -> str:
        return f"{self.statement}; p = {pvalue_text(self.pvalue)}"


@dataclass(frozen=True, eq=False)
class Witness:
    """Where, and in which direction, predictions are miscalibrated.

    Attributes
    ----------
    estimate
        Unbiased SKCE.
    scores
        ``(n - 1)^-1 sum_{j != i} h_ij`` for each case, ``(n,)``: large for a case whose deviation is shared
        by cases with similar predictions.
    contributions
        Parts of the estimate, ``(n,)``, which add up to it: scores / n.
    at
        Predictions and targets at which the witness was looked at, J of them.
    values
        The witness there, ``(J,)``: positive where targets are seen more often than promised.
    low, high
        Band, ``(J,)``, that contains the whole witness of a calibrated model with probability
        ``1 - level``.
    pvalues
        p-values there, ``(J,)``, adjusted for all J.
    groups
        The most miscalibrated groups of cases, the most striking first, without those that tell the same
        again.
    segments
        The segments that were given, in their order, each in its most striking direction.
    pvalue
        Smallest adjusted p-value of all groups and segments: that of a test of calibration.
    level
        Probability of a false statement among those that are made; n_resamples sets of targets decide.
    kernel, n_samples, n_resamples, provenance
        The kernel, the number of cases and of resamples, and how all was computed.
    """

    estimate: Estimate
    scores: Array
    contributions: Array
    at: tuple[Predictions, Any]
    values: Array
    low: Array
    high: Array
    pvalues: Array
    groups: tuple[Group, ...]
    segments: tuple[Group, ...]
    pvalue: float
    level: float
    n_samples: int
    n_resamples: int
    kernel: Kernel | None = None
    provenance: dict[str, Any] = field(default_factory=lambda: {})

    @property
    def statements(self) -> tuple[str, ...]:
        """What is shown at the level: groups, then segments."""
        found = [g for g in (*self.groups, *self.segments) if g.pvalue <= self.level]
        return tuple(dict.fromkeys(g.statement for g in found))

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON, but for the predictions of `at`."""
        arrays = ("scores", "contributions", "values", "low", "high", "pvalues")
        error = self.estimate.standard_error
        return {
            "statements": list(self.statements),
            "pvalue": self.pvalue,
            "level": self.level,
            "n_samples": self.n_samples,
            "n_resamples": self.n_resamples,
            "estimate": {
                "name": self.estimate.name,
                "estimator": self.estimate.estimator,
                "value": float(self.estimate),
                "standard_error": None if error is None else float(to_numpy(error)),
            },
            "groups": [group.to_dict() for group in self.groups],
            "segments": [group.to_dict() for group in self.segments],
            "at_targets": plain(np.asarray(to_numpy(self.at[1]))),
            **{name: to_numpy(getattr(self, name)).tolist() for name in arrays},
            "kernel": None if self.kernel is None else kernel_to_dict(self.kernel),
            "kernel_text": None if self.kernel is None else repr(self.kernel),
            "provenance": plain(self.provenance),
        }

    def to_json(self, **options: Any) -> str:
        """`to_dict` as JSON; `options` are those of ``json.dumps``."""
        return json.dumps(self.to_dict(), **options)

    # -- for people --------------------------------------------------------------------------

    def __repr__(self) -> str:
        lines = [self._headline(), *(f"  - {text}" for text in self._listed())]
        return "\n".join([*lines, *text_rows(self._rows())])

    def _repr_html_(self) -> str:
        """A list and a table for notebooks."""
        items = "".join(f"<li>{html.escape(text)}</li>" for text in self._listed())
        return f"<p>{html.escape(self._headline())}</p><ul>{items}</ul>{html_table(self._rows())}"

    def _headline(self) -> str:
        cases = f"({self.n_samples:,} cases)"
        if not (self.groups or self.segments):
            return f"Witness: no groups were looked at {cases}"
        if not self.statements:
            return (
                f"Witness: no group of cases is shown to be miscalibrated; "
                f"smallest p = {pvalue_text(self.pvalue)} {cases}"
            )
        return f"Witness: miscalibrated at level {self.level:g} {cases}"

    def _listed(self) -> list[str]:
        shown = {g.statement: repr(g) for g in (*self.groups, *self.segments) if g.pvalue <= self.level}
        texts = list(shown.values())
        more = [f"and {len(texts) - _MOST_LISTED} more"] if len(texts) > _MOST_LISTED else []
        return texts[:_MOST_LISTED] + more

    def _rows(self) -> list[tuple[str, str]]:
        error = self.estimate.standard_error
        spread = "" if error is None else f" +- {float(to_numpy(error)):.2g}"
        outside = int(np.count_nonzero(to_numpy(self.pvalues) <= self.level))
        looked = self.provenance.get("candidates", 0)
        rows = [
            ("estimate", f"SKCE = {float(self.estimate):.4g}{spread}"),
            ("band", f"left at {outside} of {len(self.at[0])} locations"),
            (
                "p-values",
                f"adjusted for {looked} pairs of group and direction, {self.n_resamples:,} resamples",
            ),
        ]
        if self.kernel is not None:
            rows.append(("kernel", repr(self.kernel)))
        if "weights" in self.provenance:
            rows.append(("weights", str(self.provenance["weights"])))
        return rows
