"""Measures of finitely many coordinates, whose bilinear form is a matrix product."""

from __future__ import annotations

from wellcal._arrays.namespaces import Array
from wellcal._arrays.rows import Rows
from wellcal.expectations.bilinear import FiniteForm
from wellcal.expectations.decompose import Side, SignedSum, signed_sum


class FinitePlan:
    """A plan that knows the coordinates of predictions and of targets: weights on a grid, or features."""

    def finite_form(self) -> FiniteForm:
        """The matrix product."""
        raise NotImplementedError

    def coordinates(self, side: Side) -> Array:
        """Coordinates ``(n, M)`` of predictions or targets."""
        raise NotImplementedError

    def rows(self, measure: SignedSum) -> Rows:
        """Coordinates of a measure."""
        return self.finite_form().rows(signed_sum(measure, self.coordinates))

    def form(self, left: Rows, right: Rows) -> FiniteForm:
        """The matrix product, whatever the rows."""
        return self.finite_form()
