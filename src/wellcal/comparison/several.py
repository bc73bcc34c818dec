"""More than two models on the same cases: a table, with intervals that hold together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.checks import probability
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.schema import Check, described, listed, number, text, whole
from wellcal.comparison.differences import Difference, simultaneous_critical
from wellcal.comparison.models import Models, gate
from wellcal.comparison.result import (
    MORE_SAID,
    MOST_NAMES,
    NO_INTERVALS,
    ahead,
    either_way,
    intervals_in_words,
    names_in_words,
    side_by_side,
    some_only,
    told_beside,
)
from wellcal.comparison.shares import (
    SHARES,
    called,
    clearest,
    compared_pvalue,
    differences_of,
    most_shown,
    opposed,
    shares_of,
)
from wellcal.hypotests.result import TestResult
from wellcal.kernels.base import Kernel
from wellcal.measures.estimate import Estimate, estimate_text
from wellcal.measures.presentation import KERNEL, Presentable, Row, pvalue_sign, within

_MOST_TOLD = 4  # models of which all pairs are told in a table
_IN_A_SENTENCE = 3  # models of which all pairs are told in a sentence


@dataclass(frozen=True, eq=False, repr=False)
class Pair(Presentable):
    """Two of several models.

    Attributes
    ----------
    first, second
        Their names.
    pvalue
        Of equal calibration errors, times the number of pairs.
    differences
        In all measures, with intervals that hold for all pairs together: those of calibration for all
        measures of it, too, so that they exclude zero only where the pair is shown to differ.
    """

    first: str
    second: str
    pvalue: float
    differences: tuple[Difference, ...]

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of a pair."""
        return {
            "first": text,
            "second": text,
            "pvalue": number(least=0.0, most=1.0),
            "differences": listed(within(Difference, kernel)),
        }

    @property
    def better(self) -> str:
        """The one whose calibration error is smaller, in the measure that shows it most clearly.

        Where another measure says the opposite neither is better all in all: `opposed`.
        """
        return self.first if clearest(self.differences).value < 0 else self.second

    @property
    def opposed(self) -> Difference | None:
        """A difference in calibration that says the opposite of the clearest one, where there is one."""
        return opposed(self.differences)

    @property
    def worse(self) -> str:
        """The other one."""
        return self.second if self.better == self.first else self.first

    def _headline(self) -> str:
        parts = [f"{called(found.measure)} {found.phrase}" for found in self.differences]
        return f"{self.first} - {self.second}: {'; '.join(parts)}; {pvalue_sign(self.pvalue)}"


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons(Presentable):
    """What a comparison of several models on the same cases found.

    Attributes
    ----------
    names
        Models in the order in which they were given.
    estimates
        SKCE of each under the common kernel.
    tests
        What :func:`wellcal.calibration_test` found of each.
    pairs
        All pairs of models. Intervals hold for all pairs together with probability `level`, where not both
        models of a pair are calibrated; p-values are those of single pairs times their number (Bonferroni),
        so that they say the same as the intervals.
    level
        Nominal coverage. A difference is said to be shown at an error rate of ``1 - level`` over all pairs.
    n_samples, kernel, provenance
        Number of cases, the common kernel, and how all was computed.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu, one = rng.normal(size=200), np.ones(200)
    >>> y = rng.normal(mu, 1.0)
    >>> honest, shifted, blunt = wc.Normal(mu, one), wc.Normal(mu + 1.0, one), wc.Normal(mu, 9.0 * one)
    >>> found = wc.compare(y, {"honest": honest, "shifted": shifted, "blunt": blunt}, rng=0)
    >>> found.verdict
    'honest is better calibrated than shifted and blunt; shifted is better calibrated than blunt'
    >>> found.ranking
    ('honest', 'shifted', 'blunt')
    """

    names: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    tests: tuple[TestResult, ...]
    pairs: tuple[Pair, ...]
    level: float
    n_samples: int
    kernel: Kernel | None = None
    provenance: dict[str, Any] = field(default_factory=lambda: {})

    not_read: ClassVar[tuple[str, ...]] = ("verdict", "ranking")

    @property
    def shown(self) -> tuple[Pair, ...]:
        """Pairs that differ."""
        return tuple(pair for pair in self.pairs if pair.pvalue <= 1.0 - self.level)

    @property
    def decided(self) -> tuple[Pair, ...]:
        """Pairs of which one is better calibrated: no measure of calibration says the opposite."""
        return tuple(pair for pair in self.shown if pair.opposed is None)

    @property
    def measure(self) -> str:
        """The measure of calibration that shows differences of the most pairs, and most clearly."""
        return most_shown([pair.differences for pair in self.pairs])

    @property
    def better_in_scores(self) -> list[str]:
        """Which of two models has the better scores, in a sentence, for the pairs that are told."""
        said = (ahead((pair.first, pair.second), pair.differences, other=True) for pair in self.told)
        parts = [text for texts in said for text in texts]
        return [f"{'; '.join(parts)}{MORE_SAID}"] if parts else []

    @property
    def told(self) -> tuple[Pair, ...]:
        """All pairs of a few models; of more, those of the first in the ranking."""
        if len(self.names) <= _MOST_TOLD:
            return self.pairs
        best = self.ranking[0]
        return tuple(pair for pair in self.pairs if best in (pair.first, pair.second))

    @property
    def ranking(self) -> tuple[str, ...]:
        """Models, best first: none stands before one that is shown to be better calibrated.

        Of those that may come next, models that are not shown to be miscalibrated come before others, then
        the one with the better score, which also counts how much a model says; by SKCE without one.
        """
        values = {name: float(estimate) for name, estimate in zip(self.names, self.estimates, strict=True)}
        for pair in self.pairs:
            score = next((found for found in pair.differences if found.measure not in SHARES), None)
            if score is not None:
                values |= {pair.first: score.first, pair.second: score.second}
        wrong = {
            name: test.pvalue <= 1.0 - self.level for name, test in zip(self.names, self.tests, strict=True)
        }
        order: list[str] = []
        rest = sorted(self.names, key=lambda name: (wrong[name], values[name]))
        while rest:
            beaten = {pair.worse for pair in self.decided if pair.better in rest}
            order.append(next((name for name in rest if name not in beaten), rest[0]))
            rest.remove(order[-1])
        return tuple(order)

    @property
    def verdict(self) -> str:
        """The finding in words: of a few models all pairs, of more who is best, and who is tied with it."""
        if not self.shown:
            only = some_only(self.names, self.tests, self.level)
            return f"No difference in calibration is shown between {_some(self.names, 'models')}{only}"
        return self._best_of_many() if len(self.names) > _IN_A_SENTENCE else self._who_is_better()

    @property
    def tied(self) -> tuple[str, ...]:
        """Models that are not shown to be worse than the first in the ranking, in its order."""
        best, *others = self.ranking
        worse = {pair.worse for pair in self.decided if pair.better == best}
        return tuple(name for name in others if name not in worse)

    def _best_of_many(self) -> str:
        best, *others = self.ranking
        pairs = f"{len(self.shown)} of {len(self.pairs)} pairs differ"
        either = [pair for pair in self.shown if pair.opposed and best in (pair.first, pair.second)]
        unlike = [pair.second if pair.first == best else pair.first for pair in either]
        tied = [name for name in self.tied if name not in unlike]
        worse = [name for name in others if name not in self.tied]
        parts = [f"{best} is better calibrated than {_some(worse, 'others')}"] if worse else []
        if unlike:
            parts.append(f"whether {best} or {_some(unlike, 'others')} is closer depends on the measure")
        if tied and parts:
            parts.append(f"{_some(tied, 'others')} {'is' if len(tied) == 1 else 'are'} tied with it")
        parts = parts or [f"No difference in calibration is shown between {best} and the others"]
        return "; ".join([*parts, pairs])

    def _who_is_better(self) -> str:
        than: dict[tuple[str, ...], list[str]] = {}  # who is better than some
        for name in self.ranking:
            worse = tuple(pair.worse for pair in self.decided if pair.better == name)
            if worse:
                than.setdefault(worse, []).append(name)
        parts = [
            f"{names_in_words(better)} {'is' if len(better) == 1 else 'are'} better calibrated than "
            f"{names_in_words(worse)}"
            for worse, better in than.items()
        ]
        parts += [
            either_way((pair.first, pair.second), pair.differences) for pair in self.shown if pair.opposed
        ]
        ties = [pair for pair in self.pairs if pair not in self.shown]
        if ties:
            said = names_in_words([f"{pair.first} and {pair.second}" for pair in ties], ", or ")
            parts.append(f"no difference is shown between {said}")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {"verdict": self.verdict, "ranking": list(self.ranking), **super().to_dict()}

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of a comparison."""
        return {
            "names": listed(text),
            "estimates": listed(within(Estimate, kernel)),
            "tests": listed(within(TestResult, kernel)),
            "pairs": listed(within(Pair, kernel)),
            "level": probability,
            "n_samples": whole(least=1),
            **KERNEL,
            "provenance": described({}),
        }

    def check_stored(self, name: str) -> None:
        count = len(self.names)
        self._check_lengths(name, "names", count, "estimates", "tests")
        found = [(pair.first, pair.second) for pair in self.pairs]
        if found != list(combinations(self.names, 2)):
            raise ValueError(f"{name and name + '.'}pairs must be all pairs of names, in their order")

    def _headline(self) -> str:
        return f"{self.verdict} ({len(self.names)} models, {how_many(self.n_samples)})."

    def _points(self) -> list[str]:
        return side_by_side(self.names, self.tests)

    def _rows(self) -> list[Row]:
        rows: list[Row] = []
        for name in self.ranking:
            index = self.names.index(name)
            test, estimate = self.tests[index], self.estimates[index]
            tested = f"calibration test: {test.pvalue_statement}"
            rows.append((name, f"SKCE {estimate_text(estimate)}; {tested}"))
        for pair in self.told:
            parts = [f"{called(found.measure)} {found.phrase}" for found in pair.differences]
            text_of = f"{'; '.join(parts)}; {pvalue_sign(pair.pvalue)}"
            rows.append((f"{pair.first} - {pair.second}", text_of))
        rows += [("scores", text) for text in self.better_in_scores]
        if self.pairs:
            differences = self.pairs[0].differences
            words = intervals_in_words(differences, self.level, len(self.pairs))
            many = "; p-values times the number of pairs" if len(self.pairs) > 1 else ""
            rows.append(("intervals", f"{words}{many}"))
            rows += told_beside(differences, self.provenance)
        if not all(found.holds for pair in self.pairs for found in pair.differences):
            rows.append(("note", NO_INTERVALS))
        if self.kernel is not None:
            rows.append(("kernel", f"{self.kernel!r}"))
        return rows


def _some(names: Sequence[str], what: str) -> str:
    """Names in words, or how many there are of `what`."""
    return names_in_words(names) if len(names) <= MOST_NAMES else f"{len(names)} {what}"


def compare_several(models: Models) -> Comparisons:
    """All pairs of models, with intervals that hold together."""
    pairs = list(combinations(range(len(models.models)), 2))
    critical = {
        measure: simultaneous_critical(
            np.stack([models.terms(measure, i, j) for i, j in pairs], axis=1), models.degrees, models.level
        )
        for measure in models.measures
        if measure not in shares_of(models.measures)
    }
    found: list[tuple[Difference, ...]] = []
    pvalues: list[float] = []
    for i, j in pairs:
        differences = differences_of(models, i, j, len(pairs), critical)
        found.append(differences)
        tests = models.models[i].test, models.models[j].test
        pvalues.append(min(1.0, len(pairs) * max(compared_pvalue(differences), gate(tests))))
    names = tuple(model.name for model in models.models)
    return Comparisons(
        names=names,
        estimates=tuple(model.parts.estimate for model in models.models),
        tests=tuple(model.test for model in models.models),
        pairs=tuple(
            Pair(names[i], names[j], pvalue, differences)
            for (i, j), pvalue, differences in zip(pairs, pvalues, found, strict=True)
        ),
        level=models.level,
        n_samples=models.n_samples,
        kernel=models.kernel,
        provenance={
            "adjusted": "Bonferroni",
            "intervals": "for all pairs together",
            **models.left_out(names),
        },
    )
