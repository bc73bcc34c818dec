"""What a witness finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from wellcal._arrays.checks import probability
from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.schema import (
    Check,
    Schema,
    described,
    listed,
    number,
    numbers,
    optional,
    text,
    whole,
    word,
)
from wellcal.kernels.base import Kernel
from wellcal.measures.estimate import Estimate, estimate_text
from wellcal.measures.presentation import (
    KERNEL,
    Presentable,
    Row,
    at_floor,
    plain,
    pvalue_phrase,
    pvalue_text,
    within,
)
from wellcal.predictions import Predictions
from wellcal.predictions.serialization import (
    array_from_dict,
    array_to_dict,
    predictions_from_dict,
    predictions_to_dict,
)
from wellcal.witnesses.summaries import Side

_MOST_LISTED = 10  # groups and segments in a printed result

TESTED_TOGETHER = "for all cases together: calibration_test"


class Rule(NamedTuple):
    """A group without its cases: sides of summaries, and the direction with levels of its quantiles.

    `label` is the number of the class that the direction is about, if it is about one.
    """

    sides: tuple[Side, ...]
    direction: str
    levels: tuple[float, ...]
    label: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Group(Presentable):
    """Cases that a few words describe, and how they are miscalibrated.

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
        "all", "segment", "split" (above or below a number), "interval" or "box".
    n_resamples
        Resamples that the p-value is from, which is never below ``1 / (n_resamples + 1)``.
    n_all
        Number of cases, where `cases` are a random sample of them; else None.
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
    n_resamples: int | None = None
    n_all: int | None = None

    @property
    def n_samples(self) -> int:
        """Number of cases."""
        return len(self.cases) if self.n_all is None else self.n_all

    def described_by(self, rule: Rule | None, deviations: NDArray | None = None) -> Self:
        """The same, which knows how to find such cases among others, and what each of its own is off by."""
        self.__dict__.update(_rule=rule, _deviations=deviations)
        return self

    @property
    def rule(self) -> Rule | None:
        """Which cases are in it, and what is looked at in them; None for segments, and of stored groups."""
        return self.__dict__.get("_rule")

    @property
    def deviations(self) -> NDArray | None:
        """What the direction measures in each of the cases, less its expectation; None where nobody knows."""
        return self.__dict__.get("_deviations")

    not_read: ClassVar[tuple[str, ...]] = ("n_samples", "at_floor")

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {**super().to_dict(), "n_samples": self.n_samples, "at_floor": self.at_floor}

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of a group."""
        any_number = number(infinite=True, nan=True)
        return {
            **dict.fromkeys(("statement", "where", "direction"), text),
            **dict.fromkeys(("observed", "expected", "statistic", "contribution"), any_number),
            "pvalue": number(least=0.0, most=1.0),
            "cases": numbers(whole_ones=True),
            "n_resamples": optional(whole(least=1)),
            "n_all": optional(whole(least=0)),
            "kind": word("all", "segment", "split", "interval", "box"),
        }

    @property
    def at_floor(self) -> bool:
        """Whether the p-value is the smallest that its resamples can give."""
        return at_floor(self.pvalue, _floor(self.n_resamples))

    def _headline(self) -> str:
        return f"{self.statement}; {pvalue_phrase(self.pvalue, _floor(self.n_resamples), self.n_resamples)}"


def _floor(n_resamples: int | None) -> float | None:
    """The smallest p-value of so many resamples."""
    return None if n_resamples is None else 1.0 / (n_resamples + 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Witness(Presentable):
    """Where, and in which direction, predictions are miscalibrated.

    Attributes
    ----------
    estimate
        Unbiased SKCE.
    scores
        ``(n - 1)^-1 sum_{j != i} h_ij`` for each case, ``(n,)``: large for a case whose deviation is shared
        by cases with similar predictions.
    contributions
        Parts of the estimate, ``(n,)``, which add up to it: scores / n. Of cases in partitions a sample has
        an estimate, scores and contributions, and is listed as the cases of groups.
    locations
        Predictions and targets at which the witness was evaluated, J of them.
    values
        The witness there, ``(J,)``: positive where targets are seen more often than promised.
    low, high
        Band, ``(J,)``, that contains the whole witness of a calibrated model with probability
        ``1 - alpha``.
    pvalues
        p-values there, ``(J,)``, adjusted for all J.
    groups
        The most miscalibrated groups of cases, the most striking first, without those that say the same
        again.
    segments
        The segments that were given, in their order, each in its most striking direction.
    pvalue
        Smallest adjusted p-value of all groups and segments: that of a test of calibration.
    alpha
        Probability of any false statement, where the model is calibrated.
    kernel, n_samples, n_resamples, provenance
        The kernel, the number of cases and of resamples, and how all was computed.

    Examples
    --------
    >>> import wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 60)
    >>> found = wc.witness(mu + 0.8, wc.Normal(mu, np.ones(60)), rng=0)
    >>> len(found.statements) > 0, found.groups[0].pvalue
    (True, 0.001)
    >>> bool(np.isclose(found.contributions.sum(), float(found.estimate)))
    True
    """

    estimate: Estimate
    scores: Array
    contributions: Array
    locations: tuple[Predictions, Any]
    values: Array
    low: Array
    high: Array
    pvalues: Array
    groups: tuple[Group, ...]
    segments: tuple[Group, ...]
    pvalue: float
    alpha: float
    n_samples: int
    n_resamples: int
    kernel: Kernel | None = None
    provenance: dict[str, Any] = field(default_factory=lambda: {})

    not_read: ClassVar[tuple[str, ...]] = ("statements", "location_targets", "at_floor")

    @property
    def statements(self) -> tuple[str, ...]:
        """What is shown at the error rate `alpha`: groups, then segments."""
        return tuple(self._found())

    def _found(self) -> dict[str, Group]:
        """Groups and segments that are called miscalibrated, by what is said of them."""
        groups = (*self.groups, *self.segments)
        return {group.statement: group for group in groups if group.pvalue <= self.alpha}

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON; locations that are objects only as text."""
        return {
            "statements": list(self.statements),
            **super().to_dict(),
            "locations": _locations_to_dict(*self.locations),
            "at_floor": at_floor(self.pvalue, _floor(self.n_resamples)),
            "location_targets": plain(np.asarray(to_numpy(self.locations[1]))),
        }

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of a witness."""
        curves = ("scores", "contributions", "values", "low", "high", "pvalues")
        groups = listed(within(Group, None))
        return {
            "estimate": within(Estimate, kernel),
            **dict.fromkeys(curves, numbers()),
            "locations": _locations_from_dict,
            "groups": groups,
            "segments": groups,
            "pvalue": number(least=0.0, most=1.0),
            "alpha": probability,
            "n_samples": whole(least=1),
            "n_resamples": whole(least=0),
            **KERNEL,
            "provenance": described({"candidates": whole(least=0)}),
        }

    def check_stored(self, name: str) -> None:
        # Of cases in partitions a sample has scores, and the estimate.
        size = self.estimate.n_samples if "sample" in self.provenance else self.n_samples
        self._check_lengths(name, "n_samples", size, "scores", "contributions")
        self._check_lengths(name, "locations", len(self.locations[0]), "values", "low", "high", "pvalues")
        if len(self.locations[1]) != len(self.locations[0]):
            raise ValueError(f"{name and name + '.'}locations must have as many targets as predictions")

    # -- for people --------------------------------------------------------------------------

    def _headline(self) -> str:
        cases = how_many(self.n_samples)
        if not (self.groups or self.segments):
            if lost := self.provenance.get("impossible"):
                return (
                    f"{lost} (of {self.n_samples:,}); in no group is enough left to chance to look for more."
                )
            return f"No groups were looked at ({cases})."
        if not self.statements and self._looked_at is not None:
            none = "Neither all cases together nor any segment is in any direction further from its"
            if not self.segments:
                none = "All cases together are in no direction further from their"
            return (
                f"{none} predictions than chance allows (smallest p = {pvalue_text(self.pvalue)}; {cases}); "
                "at groups by prediction nobody looked."
            )
        if not self.statements:
            return (
                f"No group of cases is further from its predictions than chance allows (smallest p = "
                f"{pvalue_text(self.pvalue)}; {cases})."
            )
        return f"These groups of cases do not follow their predictions (alpha = {self.alpha:g}; {cases}):"

    @property
    def _looked_at(self) -> str | None:
        """Which groups were looked at, where these are not all kinds: of draws in partitions; else None."""
        return self.provenance.get("groups")

    @property
    def _hypothesis(self) -> str:
        """What is rejected where a group is told, and what that has to do with calibration."""
        where = "in every group"
        if self._looked_at is not None:
            where = "over all cases and in every segment" if self.segments else "over all cases"
        said = f"targets follow their predictions {where}; {TESTED_TOGETHER}"
        if not self.segments:
            return said
        return (
            f"{said}; within segments of variables that the model did not use that is more than calibration"
        )

    def _points(self) -> list[str]:
        texts = [repr(group) for group in self._found().values()]
        more = [f"and {len(texts) - _MOST_LISTED} more"] if len(texts) > _MOST_LISTED else []
        return texts[:_MOST_LISTED] + more

    def _rows(self) -> list[Row]:
        outside = int(np.count_nonzero(to_numpy(self.pvalues) <= self.alpha))
        looked = self.provenance.get("candidates", 0)
        rows = [
            ("estimate", f"SKCE = {estimate_text(self.estimate)}"),
            ("band", f"left at {outside} of {len(self.locations[0])} locations"),
        ]
        if self.groups or self.segments:
            pairs = f"{how_many(looked, 'pair')} of group and direction"
            rows.append(("tested", self._hypothesis))
            if self._looked_at is not None:
                rows.append(("groups", self._looked_at))
            rows.append(("p-values", f"adjusted for {pairs}, {self.n_resamples:,} resamples"))
            if lost := self.provenance.get("impossible"):
                rows.append(("impossible", str(lost)))
        if self.kernel is not None:
            rows.append(("kernel", repr(self.kernel)))
        if "weights" in self.provenance:
            rows.append(("weights", str(self.provenance["weights"])))
        return rows


_LOCATIONS = Schema({"predictions": predictions_from_dict, "targets": array_from_dict})


def _locations_to_dict(predictions: Predictions, targets: Any) -> Any:
    try:
        return {"predictions": predictions_to_dict(predictions), "targets": array_to_dict(targets)}
    except TypeError:  # objects: to be looked at, and not to be read again
        return repr(predictions)


def _locations_from_dict(plain: Any, name: str) -> tuple[Predictions, Any]:
    found = _LOCATIONS(plain, name)
    return found["predictions"], found["targets"]
