"""What sums over pairs need to know of a problem in products: points, features, and one number for each.

Of such a problem h is a sum of terms ``factor * exp(-(sum_c |x_ic - x_jc|^degree)^exponent) <f_i, f_j>``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from wellcal._arrays.namespaces import Array
from wellcal._arrays.rows import Rows
from wellcal.expectations.bilinear import FiniteForm, Form
from wellcal.expectations.distances import EmbeddingDistance
from wellcal.expectations.mmd import MeanDiscrepancy, NormedRows
from wellcal.expectations.on_predictions import ExpDistanceForm
from wellcal.problem.problem import Problem


@dataclass(frozen=True)
class PairTerm:
    """One term of h, in tensors.

    Attributes
    ----------
    points
        ``(n, D)``, in units of the length scale.
    features
        Differences of expected features ``(n, M)``.
    degree, exponent
        Distances are ``sum_c |x_ic - x_jc|^degree``, 1 or 2; the kernel is ``exp(-distance^exponent)``.
    factor
        Of the term.
    """

    points: Array
    features: Array
    degree: int
    exponent: float
    factor: float

    @property
    def n(self) -> int:
        """Number of cases."""
        return int(self.features.shape[0])

    def of(self, cases: Any) -> PairTerm:
        """The same for some cases: a slice, or positions in a tensor."""
        return replace(self, points=self.points[cases], features=self.features[cases])

    def to(self, *where: Any) -> PairTerm:
        """The same on another device, or in another precision."""
        return replace(self, points=self.points.to(*where), features=self.features.to(*where))


def as_pair_terms(problem: Problem, *, centred: bool = True) -> list[PairTerm] | None:
    """Terms of a problem whose targets meet as products; None where its predictions meet otherwise.

    The origin of points is their median if `centred`, which sums in less than double precision need, and one
    of them otherwise, which is sooner had.

    Examples
    --------
    >>> import torch, wellcal as wc
    >>> from wellcal.problem.problem import prepare
    >>> (term,) = as_pair_terms(prepare(torch.tensor([1, 0, 1]), wc.Bernoulli(torch.tensor([0.2, 0.7, 0.9]))))
    >>> term.points.shape, term.features.shape, term.degree, term.exponent
    (torch.Size([3, 1]), torch.Size([3, 2]), 1, 1.0)
    """
    found: list[PairTerm] = []
    for term, rows in zip(problem.terms, problem.rows, strict=True):
        points = _points(term.on_predictions, rows.on_predictions, centred)
        form = term.on_targets
        if points is None or not isinstance(form, FiniteForm) or form.gram is not None:
            return None
        if not isinstance(term.factor, float):
            return None
        on_predictions = cast("ExpDistanceForm", term.on_predictions)
        degree = on_predictions.inner.degree
        found.append(
            PairTerm(
                points / on_predictions.lengthscale,
                rows.on_targets.weights,
                int(degree),
                on_predictions.power / degree,
                term.factor,
            )
        )
    return found


def _points(form: Form | None, rows: Rows, centred: bool) -> Array | None:
    """Predictions as points whose distance the kernel takes; None where they are none."""
    if not isinstance(form, ExpDistanceForm) or not isinstance(form.lengthscale, float):
        return None
    inner = form.inner
    if isinstance(inner, MeanDiscrepancy):
        if not isinstance(inner.form, FiniteForm) or inner.form.gram is not None:
            return None
        return cast("NormedRows", rows).inner.weights  # their difference is the embedding's
    if not isinstance(inner, EmbeddingDistance):
        return None
    # Distances do not depend on the origin, and what is small is rounded less.
    constant = rows.detach()
    return rows - (constant.median(dim=0).values if centred else constant[0])
