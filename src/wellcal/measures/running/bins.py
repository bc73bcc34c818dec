"""Expected calibration error in bins that do not depend on the cases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.measures.binned.binning import UniformBins, as_binning, compact
from wellcal.measures.binned.calibration_error import (
    Binned,
    DiscreteTarget,
    discrete_targets,
    estimate_from_bins,
    mean_over_bins,
)
from wellcal.measures.binned.discrepancies import as_discrepancy
from wellcal.measures.binned.tables import BinTable, class_table
from wellcal.measures.estimate import Estimate
from wellcal.measures.running.accumulator import Accumulator, refuse_weights


@dataclass(frozen=True)
class _Sums:
    """Of one part of the question, by bin: cases, and probabilities and frequencies of each class."""

    sizes: NDArray
    predicted: NDArray
    observed: NDArray

    def plus(self, other: _Sums) -> _Sums:
        return _Sums(
            self.sizes + other.sizes, self.predicted + other.predicted, self.observed + other.observed
        )


@dataclass(frozen=True)
class RunningECE(Accumulator):
    """The expected calibration error in bins of equal width, as :func:`wellcal.ece` has it.

    Bins of equal mass need all predictions at once, so that counts and quantiles have none here.

    Parameters
    ----------
    n_bins
        Bins of a probability; None for ten.
    reduce
        As in :func:`wellcal.ece`.
    """

    n_bins: int | None = None
    reduce: str | None = None
    n: int = 0
    parts: tuple[_Sums, ...] = ()
    compared: str | None = None
    taken: str | None = None

    def updated(self, y: Any, pred: Any, weights: NDArray | None) -> Self:
        refuse_weights(weights, "ECE", "bins and their bias are those of cases that count alike")
        predictions, questions, taken, compared = discrete_targets(y, pred, self.reduce)
        parts = tuple(self._sums(question, len(predictions)) for question in questions)
        new = replace(self, n=len(predictions), parts=parts, compared=compared, taken=taken)
        return new if self.n == 0 else self.merged(new)

    def _rule(self, question: DiscreteTarget, n: int) -> UniformBins:
        rule = as_binning(None, self.n_bins, question.default, n)
        if not isinstance(rule, UniformBins) or question.features.shape[1] != 1 or question.probs is None:
            raise TypeError(
                "the bins of these predictions are chosen from all of them at once, so that ECE cannot be "
                "added up from parts; take wc.ece, or SKCE over blocks"
            )
        return rule

    def _sums(self, question: DiscreteTarget, n: int) -> _Sums:
        rule = self._rule(question, n)
        cells = rule.cells(np.asarray(to_numpy(question.features)))
        used, bins = compact(cells)
        table = class_table(question.probs, question.targets, bins, len(used), squares=False)
        sizes, predicted, observed = (
            np.asarray(to_numpy(part), dtype=np.float64)
            for part in (table.sizes, table.predicted, table.observed)
        )
        whole = _Sums(
            np.zeros(rule.n_bins),
            np.zeros((rule.n_bins, predicted.shape[1])),
            np.zeros((rule.n_bins, predicted.shape[1])),
        )
        whole.sizes[used] = sizes
        whole.predicted[used] = predicted * sizes[:, None]
        whole.observed[used] = np.rint(observed * sizes[:, None])
        return whole

    def merged(self, other: Self) -> Self:
        if self.n == 0 or other.n == 0:
            return other if self.n == 0 else self
        if [part.predicted.shape for part in self.parts] != [part.predicted.shape for part in other.parts]:
            raise ValueError("ECE: the parts have other classes, or other bins")
        together = tuple(a.plus(b) for a, b in zip(self.parts, other.parts, strict=True))
        return replace(self, n=self.n + other.n, parts=together)

    def result(self) -> Estimate:
        measure = as_discrepancy("total_variation")
        rule = UniformBins() if self.n_bins is None else UniformBins(self.n_bins)
        parts: list[Binned] = []
        for sums in self.parts:
            seen = sums.sizes > 0
            sizes = sums.sizes[seen]
            shares = (part[seen] / sizes[:, None] for part in (sums.predicted, sums.observed))
            distances = measure.plug_in(BinTable(sizes, *shares))
            parts.append(Binned(sizes, distances, rule, self.taken, self.n, self.compared))
        values = [mean_over_bins(part, False) for part in parts]
        return estimate_from_bins(values, parts, "ECE", "plug-in", measure)
