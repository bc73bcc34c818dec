"""Problems whose predictions are spanned by a few of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.threads import one_blas_thread
from wellcal.engines.spans import Span, Spread
from wellcal.expectations.bilinear import FiniteForm, WeightRows
from wellcal.expectations.mmd import MeanDiscrepancy, NormedRows
from wellcal.expectations.on_predictions import ExpDistanceForm
from wellcal.problem.feature_form import in_products
from wellcal.problem.problem import Problem, Term, TermRows
from wellcal.problem.telling_cases import chances_by


@dataclass
class Spans:
    """Predictions that span the others, for each term.

    Attributes
    ----------
    each
        A span for each term; none where predictions have no coordinates.
    """

    each: tuple[Span, ...]
    _whole: bool = False
    _tried: int = 0

    def whole(self, most: int) -> bool:
        """Whether so many hold all predictions to rounding, and no more than are worth it."""
        if self.each and not self._whole and most > self._tried:
            self._tried = most
            self._whole = all(span.reaches_all(min(most, span.spread.most_pivots())) for span in self.each)
        return self._whole

    def most(self, *, rounded: bool) -> int:
        """Predictions beyond which tiles are as quick, `rounded` to float32 or not."""
        return min(span.spread.most_pivots(rounded=rounded) for span in self.each)

    @property
    def size(self) -> int:
        """Predictions of the largest span."""
        return max(span.size for span in self.each)

    def left_by(self, count: int) -> float:
        """Mean squared distance of predictions from the span of so many of them at least."""
        for span in self.each:
            span.grow(count)
        return max(span.left for span in self.each)

    def chances(self) -> NDArray:
        """Chances of cases to be looked at: half alike, half by how far off their sums may be."""
        beyond = np.sum([span.beyond() for span in self.each], axis=0)
        return chances_by(np.ones(len(beyond)), beyond)

    def row_sums(self) -> NDArray:
        """Sums over all other cases, by the predictions that are there."""
        return np.sum([span.row_sums() for span in self.each], axis=0)

    def describe(self) -> dict[str, Any]:
        """For the provenance of a result: how many predictions there are, and how far the others are away.

        `span_left` is the mean squared distance of predictions from the span, of those that it was looked for
        among; the kernel of a prediction with itself is one.
        """
        left = max(span.left for span in self.each)
        return {"sums": f"a span of {self.size:,} predictions", "span_size": self.size, "span_left": left}


def spans_of(problem: Problem) -> Spans:
    """Those of a problem, which remembers them."""
    if "spans" not in problem.kept:
        with one_blas_thread():
            problem.kept["spans"] = _find(problem)
    return cast("Spans", problem.kept["spans"])


def _find(problem: Problem) -> Spans:
    exact = in_products(problem)
    pairs = () if exact is None else zip(exact.terms, exact.rows, strict=True)
    found = [_spread(term, rows) for term, rows in pairs]
    spreads = [spread for spread in found if spread is not None]
    if not found or len(spreads) < len(found):
        return Spans(())
    return Spans(tuple(map(Span, spreads)))


def _spread(term: Term, rows: TermRows) -> Spread | None:
    """Coordinates of predictions, and what meets at them; None where distances are of something else."""
    form = cast("ExpDistanceForm", term.on_predictions)
    distance, own = form.inner, rows.on_predictions
    if isinstance(distance, MeanDiscrepancy):
        if not isinstance(distance.form, FiniteForm) or distance.form.gram is not None:
            return None
        own = cast("WeightRows", cast("NormedRows", own).inner).weights
    weights = cast("WeightRows", rows.on_targets).weights
    rate = cast("float", form.lengthscale) ** -2.0
    return Spread(np.asarray(own), rate, weights, cast("float", term.factor))
