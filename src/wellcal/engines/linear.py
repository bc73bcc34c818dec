"""Sums over all pairs without the square: for predictions on a line, in a plane, or under a smooth kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from wellcal._arrays.checks import positive_number
from wellcal._arrays.namespaces import NDArray, is_numpy
from wellcal._arrays.threads import one_blas_thread
from wellcal.engines.banded import Banded, describe_bands, in_bands
from wellcal.engines.base import Support
from wellcal.engines.controls import Controls, ExactRows
from wellcal.engines.mixed import AUTO_FROM, LARGEST_ERROR
from wellcal.engines.multipoles import Kind
from wellcal.engines.planar import Planar
from wellcal.engines.reductions import Sums
from wellcal.engines.running_sums import MOST_RUNS, line_sums, runs_on_a_line
from wellcal.engines.spanning import Spans, spans_of
from wellcal.engines.tiled import Tiled
from wellcal.expectations.bilinear import Form, WeightRows
from wellcal.expectations.differences import may_have_features
from wellcal.expectations.distances import EmbeddingDistance
from wellcal.expectations.mmd import MeanDiscrepancy
from wellcal.expectations.on_predictions import ExpDistanceForm
from wellcal.problem.feature_form import FEWEST, in_products, known_features
from wellcal.problem.problem import Problem, Term
from wellcal.problem.telling_cases import uneven_chances
from wellcal.problem.weights import WeightedForm

FEWEST_ON_A_LINE = 2000
"""Cases from which "auto" takes running sums, which are exact to rounding."""

FEWEST_SPANNED = 4000
"""Cases from which "auto" takes a span of few predictions, where that holds all of them to rounding."""

FEWEST_NEARLY_SPANNED = 8000
"""Cases from which "auto" takes a span that holds predictions but for what control rows say: twice as many as
where tiles in float64 are as quick, for ensembles of 10 or 50."""

FEWEST_IN_A_PLANE = 20_000
"""Cases from which "auto" takes multipoles: below, tiles in float64 take less than two seconds."""

FEWEST_IN_BANDS = 10_000
"""The same where sharp predictions have so many features that tiles are left with closed forms."""

_ORDERS = (6, 8, 10, 13)  # nodes along a side of a box, few first
_PIVOTS = (64, 128, 256, 384, 512, 768, 1024)  # predictions that span the others, few first
_OUTGROWN = 20.0  # root of the cases for which errors of a span are as large as deviations times what is left
_NEARLY = 0.03  # mean squared distance from the fewest of them, above which hundreds would not do
_WHOLE, _FEW_WHOLE = 512, 128  # that hold all others to rounding; where less serves, no more than few
_DIFFERENT = "terms of the kernel would need sums of different kinds"
_TOO_ROUGH = "multipoles in float32 are too rough"
_NEAR = "a span of some predictions, held to control rows"


@dataclass(frozen=True)
class Linear(Tiled):
    """Engine whose sums over all pairs take a time that grows with n, not with its square.

    Where the kernel on predictions is ``exp(-(d / lengthscale) ** power)`` of a distance between points on a
    line or in a plane (probabilities of one event, rates, location and scale under the 2-Wasserstein
    distance), and the kernel on targets has finitely many features, the sum over all pairs is a kernel sum
    with one right-hand side for each feature. On a line it is made by running sums, exact to rounding; in
    a plane by multipoles, whose row sums are compared with exact ones: where they differ by more than
    `tolerance`, more nodes are taken, and tiles in the end. Sharp predictions have many features, which are
    taken in bands, each with the cases that reach it. Kernels ``exp(-(d / lengthscale) ** 2)`` of a distance
    in more dimensions, such as the MMD, are smooth: some predictions span all others, to rounding where few
    are enough, and else until row sums agree. Everything but :meth:`triangle` is done by tiles; where that
    is, too, the provenance says why (`engine_note`).

    Parameters
    ----------
    tile, threads, precision
        Those of :class:`Tiled`. Multipoles are in float32 unless the precision is "float64".
    tolerance
        Error of the sum that is allowed, in standard deviations of the sum. The provenance has it in those
        that calibrated predictions would have (`control_error`), and sums by a span are held to that. Where
        predictions are not calibrated, so that their own sum varies more, it is there in its own, too
        (`control_error_observed`), which multipoles are held to; in float32 also to a hundredth of the first,
        or else they are made in float64.

    Examples
    --------
    >>> import wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(10_000)
    >>> y = rng.random(10_000) < p
    >>> found = wc.skce(y, wc.Bernoulli(p), engine="linear")
    >>> found.provenance["engine"], found.provenance["sums"]
    ('linear', 'running sums on a line')
    >>> abs(found.value - wc.skce(y, wc.Bernoulli(p), engine="tiled").value) < 1e-15
    True
    """

    tolerance: float = field(default=1e-3, kw_only=True)
    name: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_number(self.tolerance, "tolerance")

    def supports(self, problem: Problem) -> Support:
        """Whether predictions have a place where sums need no square, and targets have features."""
        if not is_numpy(problem.xp):
            return Support(False, "it is for NumPy")
        if not problem.terms:
            return Support(False, "it has no pairs to visit")
        for term in problem.terms:
            if _place_of(term) is None:
                return Support(
                    False,
                    "it needs predictions that are points on a line or in a plane, under ExpDistance of a "
                    "Euclidean distance between them, or power=2 with such a distance or with the MMD",
                )
            if not _has_features(term.on_targets):
                return Support(False, "it needs a kernel on targets with finitely many features")
        return Support(True)

    def pays(self, problem: Problem) -> bool:
        """Whether there are so many cases that it is worth its set-up.

        On a line, where it is registered with the fewest cases that it is considered for, there are, unless
        predictions are sharp. So there are where few predictions span all others to rounding, and earlier for
        sharp predictions in a plane.
        """
        if not is_numpy(problem.xp):
            return False
        places = {_place_of(term) for term in problem.terms}
        if "span" in places:
            return places == {"span"} and problem.n >= FEWEST_SPANNED and self._can_span(problem)
        if places <= {"line"}:
            return problem.n >= FEWEST_IN_BANDS or self._bands(problem) is None
        if problem.n >= FEWEST_IN_A_PLANE:
            return True
        return problem.n >= FEWEST_IN_BANDS and self._bands(problem) is not None

    def triangle(self, problem: Problem) -> Sums:
        """Sums of h over all pairs i < j."""
        with one_blas_thread():
            found = self._without_the_square(problem)
            if found == _TOO_ROUGH:
                found = replace(self, precision="float64")._without_the_square(problem)
        if isinstance(found, str):
            problem.kept["linear"] = {"engine_note": f"not linear: {found}"}
            return super().triangle(problem)
        problem.kept["linear"] = found.said
        return found.sums

    def describe(self, problem: Problem) -> dict[str, Any]:
        """How sums were made, and how far their control rows were off."""
        said: dict[str, Any] = problem.kept.get("linear", {})
        if "engine" not in said:
            return {**super().describe(problem), "engine": Tiled.name, **said}
        features = known_features(problem)
        return ({} if features is None else features.describe()) | said

    def _without_the_square(self, problem: Problem) -> _Found | str:
        """Sums, or why there are none."""
        places = {_place_of(term) for term in problem.terms}
        if problem.n < 4 or None in places:
            return "cases are too few"
        bands = self._bands(problem)
        if bands is not None:
            return self._in_a_plane(problem, bands)
        exact = in_products(problem)
        if exact is None:
            few = problem.n < FEWEST
            return "cases are too few" if few else "features of the kernel on targets take longer than pairs"
        if "span" in places:
            return self._spanned(spans_of(problem), exact) if places == {"span"} else _DIFFERENT
        if places == {"line"}:
            return _on_a_line(exact)
        rows = zip(exact.terms, exact.rows, strict=True)
        return self._in_a_plane(exact, [Planar.of(term, own, self._kind) for term, own in rows])

    def _bands(self, problem: Problem) -> list[Banded] | None:
        """Terms in bands of features, where those are quicker; the first answer is remembered."""
        key = f"bands in {self._kind.__name__}"
        if key not in problem.kept:
            places = {_place_of(term) for term in problem.terms}
            problem.kept[key] = in_bands(problem, self._kind) if places <= {"line", "plane"} else None
        return problem.kept[key]

    def _can_span(self, problem: Problem) -> bool:
        """Whether few predictions span all others, to rounding, or nearly and for so many that it pays."""
        spans = spans_of(problem)
        if spans.whole(_WHOLE):
            return True
        enough = self.precision != "float64" and problem.n >= FEWEST_NEARLY_SPANNED
        return enough and bool(spans.each) and spans.left_by(_PIVOTS[0]) <= _NEARLY

    def _spanned(self, spans: Spans, exact: Problem) -> _Found | str:
        """Products with few predictions, if they span all others, or by more of them until controls agree."""
        few = self.precision != "float64" and exact.n >= FEWEST_IN_A_PLANE
        if spans.whole(_FEW_WHOLE if few else _WHOLE):
            said = {"engine": self.name, **spans.describe(), "precision": "float64: a span to rounding"}
            return _Found.of(spans.row_sums(), said)
        if self.precision == "float64" or not spans.each:
            return "a few predictions do not span the others to rounding"
        spans.left_by(_PIVOTS[0])
        controls = Controls.of(exact, spans.chances())
        allowed = self.tolerance * controls.unit.value  # never more than the sum's own deviation
        # For what is left: nearly all pairs are off to the same side, so that errors outgrow deviations.
        for_each_unit = math.sqrt(exact.n) / _OUTGROWN * controls.deviation
        most = spans.most(rounded=self.precision == "mixed" or exact.n >= AUTO_FROM)
        before = math.inf
        for count in _PIVOTS:
            if count < spans.size:
                continue  # there are more already
            if count > most:
                break
            left = spans.left_by(count)
            if left * for_each_unit > allowed:
                continue
            rows = spans.row_sums()
            error = controls.error(rows)
            if error <= allowed:
                said = {
                    "engine": self.name,
                    **spans.describe(),
                    "precision": _NEAR,
                    **controls.describe(error),
                }
                return _Found.of(rows, said)
            if error > 0.5 * before:
                break  # it is of cases that pivots are not looked for among, and falls no more
            before = error
            for_each_unit = 0.3 * error / left  # errors fall with what is left, and at times faster
        return "some hundred predictions do not span the others"

    @property
    def _kind(self) -> Kind:
        """Of numbers in multipoles."""
        return np.float64 if self.precision == "float64" else np.float32

    def _in_a_plane(self, exact: Problem, terms: Sequence[Planar] | Sequence[Banded]) -> _Found | str:
        """Multipoles of rising order, until control rows agree.

        Those of bands are added up beside the first sums, while the features of a band are there.
        """
        controls = None if any(isinstance(term, Banded) for term in terms) else Controls.of(exact)
        in_float64, error, deviation = self._kind is np.float64, math.inf, 0.0
        for order in _orders(exact.n, in_float64):
            watched, rows = ExactRows.of(exact.n, uneven_chances(exact)), np.zeros(exact.n)
            for term in terms:
                if isinstance(term, Planar):
                    rows += term.row_sums(order)
                else:
                    rows += term.row_sums(order, watched if controls is None else None)
            controls = Controls.from_rows(watched, exact) if controls is None else controls
            error, deviation = controls.error(rows), controls.deviation
            if error <= self.tolerance * deviation:
                if not in_float64 and error > max(self.tolerance, LARGEST_ERROR) * controls.unit.value:
                    return _TOO_ROUGH
                said = {
                    "engine": self.name,
                    **describe_bands([term for term in terms if isinstance(term, Banded)]),
                    "sums": f"multipoles of order {order}",
                    "precision": "float64" if in_float64 else "mixed: products in float32",
                    **controls.describe(error),
                }
                return _Found.of(rows, said)
        off = error / max(deviation, 1e-300)
        return f"by control rows multipoles are off by {off:.1e} standard deviations of the sum"


class _Found(NamedTuple):
    sums: Sums
    said: dict[str, Any]

    @classmethod
    def of(cls, rows: NDArray, said: dict[str, Any]) -> _Found:
        return cls(Sums(0.5 * math.fsum(rows), rows), said)


def _orders(n: int, exact: bool) -> tuple[int, ...]:
    """Orders to try: errors of rows add up, and many cases need smaller ones."""
    first = 2 if exact else 0 if n < 100_000 else 1 if n < 3_000_000 else 2
    return _ORDERS[first:]


def _has_features(form: Form) -> bool:
    return _has_features(form.inner) if isinstance(form, WeightedForm) else may_have_features(form)


def _place_of(term: Term) -> str | None:
    """Whether predictions are points on a line with a kernel that decays exponentially, or in a plane.

    Or in more dimensions with a kernel that is smooth, where some of them may span the others.
    """
    form = term.on_predictions
    if not isinstance(form, ExpDistanceForm):
        return None
    if not isinstance(form.lengthscale, float) or not isinstance(term.factor, float):
        return None
    distance = form.inner
    smooth = distance.degree == 2.0 and form.power == 2.0
    if isinstance(distance, MeanDiscrepancy):
        return "span" if smooth and may_have_features(distance.form) else None
    if not isinstance(distance, EmbeddingDistance):
        return None
    if distance.size == 1:
        return "line" if form.power == 1.0 else "plane"
    if distance.size == 2:
        return "plane" if distance.degree == 2.0 else None
    return "span" if smooth else None


# -- a line ------------------------------------------------------------------------------------------


def _on_a_line(exact: Problem) -> _Found | str:
    total, rows = 0.0, np.zeros(exact.n)
    for term, own in zip(exact.terms, exact.rows, strict=True):
        rate = 1.0 / cast("ExpDistanceForm", term.on_predictions).lengthscale
        x = np.asarray(own.on_predictions)[:, 0]
        if runs_on_a_line(x, rate) > MOST_RUNS:
            return "predictions are too far apart for running sums"
        part, of_rows = line_sums(x, _thin(cast("WeightRows", own.on_targets).weights), rate)
        total += cast("float", term.factor) * part
        rows += cast("float", term.factor) * of_rows
    return _Found(Sums(total, rows), {"engine": Linear.name, "sums": "running sums on a line"})


def _thin(weights: NDArray) -> NDArray:
    """A few columns with the same products: probabilities of two classes are one number."""
    if weights.shape[1] > 8:
        return weights
    products = weights.T @ weights
    values, vectors = np.linalg.eigh(products)
    some = values > 1e-15 * values[-1]
    return weights if some.all() else weights @ vectors[:, some]
