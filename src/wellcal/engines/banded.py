"""A term of h in the plane whose targets have many features: sums by multipoles, band by band of features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wellcal._arrays.chunks import Chunk, in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.progress import reporter
from wellcal._arrays.rows import Rows
from wellcal.engines.controls import ExactRows
from wellcal.engines.multipoles import Kind
from wellcal.engines.planar import Planar
from wellcal.expectations.bilinear import FiniteForm, Form, WeightRows
from wellcal.expectations.compression import compressed
from wellcal.expectations.feature_bands import Band, Bands, bands_of
from wellcal.problem.problem import Problem, TermRows
from wellcal.problem.weights import WeightedForm, WeightedRows

_OF_A_FEATURE = 100.0  # evaluations that take as long as one feature of a case in multipoles
_OF_A_BAND = 4e5  # the same for what a band takes beside its cases


@dataclass(frozen=True)
class _InBands:
    """Bands of a form, and weights of the cases."""

    bands: Bands
    weights: NDArray | None

    @classmethod
    def of(cls, form: Form, rows: Rows) -> _InBands | None:
        if isinstance(form, WeightedForm):
            weighted: WeightedRows = rows
            inner = cls.of(form.inner, weighted.inner)
            if inner is None:
                return None
            own = np.asarray(weighted.weights)
            return cls(inner.bands, own if inner.weights is None else own * inner.weights)
        found = bands_of(form, rows)
        return None if found is None else cls(found, None)

    def __iter__(self) -> Iterator[Band]:
        for band in self.bands:
            yield band if self.weights is None else _weighted(band, self.weights[band.cases])


def _weighted(band: Band, weights: NDArray) -> Band:
    plain = band.source

    def of(cases: Chunk | NDArray) -> NDArray:
        return weights[cases][:, None] * np.asarray(plain.of(cases))

    return Band(band.cases, replace(plain, of=of))


@dataclass
class Banded:
    """One term.

    Attributes
    ----------
    problem
        The problem of this term alone.
    inside
        Its features.
    kind
        Of the numbers in products.
    lost
        Largest share of the energy of features that was left out, so far.
    """

    problem: Problem
    inside: _InBands
    kind: Kind
    lost: float = field(default=0.0, init=False)

    @property
    def effort(self) -> float:
        """What sums take, in evaluations."""
        bands = self.inside.bands
        pairs = len(bands.alone) * float(bands.n) * self.problem.terms[0].on_targets.cost.evaluations
        return _OF_A_FEATURE * bands.meetings + _OF_A_BAND * bands.count + pairs

    def row_sums(self, order: int, exact: ExactRows | None = None) -> NDArray:
        """Sums of the term over all other cases; those of some of them without multipoles go to `exact`."""
        out = self._of_those_alone()
        if exact is not None:
            exact.sums[:] += out[exact.cases]
        (term,), (rows,) = self.problem.terms, self.problem.rows
        points, done, told = np.asarray(rows.on_predictions), 0.0, reporter()
        total = self.inside.bands.meetings
        for band in self.inside:
            told("bands of features", done, total)
            found = compressed(band.source)
            self.lost = max(self.lost, found.lost)
            own = TermRows(WeightRows(found.values), points[band.cases])
            plain = replace(term, on_targets=FiniteForm(None, found.values.shape[1]))
            out[band.cases] += Planar.of(plain, own, self.kind).row_sums(order)
            if exact is not None:
                in_band = replace(self.problem, n=len(band.cases), terms=(plain,), rows=(own,))
                exact.add(in_band, band.cases)
            done += len(band.cases) * float(band.source.size)
        told("bands of features", total, total)
        return out

    def _of_those_alone(self) -> NDArray:
        """Sums of the pairs of cases that are in no band, with each other and with all others."""
        alone, n = self.inside.bands.alone, self.problem.n
        out = np.zeros(n)
        is_alone = np.zeros(n, dtype=bool)
        is_alone[alone] = True
        for some in in_chunks(len(alone), n * self.problem.cost.entries):
            with np.errstate(over="ignore", under="ignore"):
                h = np.array(self.problem.values(alone[some], slice(0, n)))
            h[np.arange(len(h)), alone[some]] = 0.0
            out[alone[some]] += h.sum(axis=1)
            out += np.where(is_alone, 0.0, h.sum(axis=0))
        return out


def in_bands(problem: Problem, kind: Kind) -> list[Banded] | None:
    """All terms in bands of features; None where these are not quicker than all features, or all pairs."""
    found: list[Banded] = []
    for k, (term, rows) in enumerate(zip(problem.terms, problem.rows, strict=True)):
        inside = _InBands.of(term.on_targets, rows.on_targets)
        if inside is None or not inside.bands.pays:
            return None
        alone = replace(problem, terms=(problem.terms[k],), rows=(problem.rows[k],))
        found.append(Banded(alone, inside, kind))
    pairs = 0.5 * float(problem.n) ** 2 * problem.cost.evaluations
    return found if sum(term.effort for term in found) < pairs else None


def describe_bands(terms: list[Banded]) -> dict[str, Any]:
    """For the provenance of a result."""
    if not terms:
        return {}
    bands = [term.inside.bands for term in terms]
    return {
        "features": max(own.size for own in bands),
        "bands": sum(own.count for own in bands),
        "lost_energy": max(term.lost for term in terms),
    }
