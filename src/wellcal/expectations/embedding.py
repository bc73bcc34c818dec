"""Embedding of measures: the four terms of h cancel here, once, and what is left is a matrix product.

With features psi of the kernel on targets, ``k(z, z') = <psi(z), psi(z')>``, a prediction and its target
leave the difference ``phi_i = E psi(Z_i) - psi(y_i)``, and h_ij is ``k_P(P_i, P_j) <phi_i, phi_j>``. Numbers
of size one are subtracted n times instead of n^2 times, so that float32 is enough for the products. Such
differences are smooth, and a few dozen principal components hold all but rounding of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from wellcal._arrays.chunks import Chunk, budget, entries_for, in_chunks
from wellcal._arrays.namespaces import Array, NDArray, concat_rows, from_numpy, take_rows, to_numpy
from wellcal._arrays.rows import Rows
from wellcal.expectations.bilinear import (
    ElementForm,
    FiniteForm,
    Form,
    Measure,
    WeightedForm,
    WeightedRows,
    WeightRows,
)
from wellcal.expectations.features import (
    MOST_FEATURES,
    FeatureGrid,
    features_on,
    gaussian_summands,
    needed_features,
)
from wellcal.expectations.rules.elements import Laplaces, Normals, Points

LOST = 1e-15
"""Share of the energy of all cases in components that are left out: products change by less than 1e-13."""

_FEW = 8  # features that stay as they are
_ENOUGH = 0.8  # of the features: a rotation that keeps more is not worth its time
_TERMS = 16.0  # of a matrix product that take as long as one evaluation
_DEAR = 4.0  # evaluations for a feature, from which it is not made twice
_KEPT = 2**27  # entries of such features: 1 GiB
_SAVED = 0.5  # of the time of all pairs, that features save as a rule


class Embedding(NamedTuple):
    """Vectors whose products are the pairings of measures.

    Attributes
    ----------
    values
        ``(n, M)``, after the cancellation.
    lost
        Share of the energy, the sum of squares, that is not in them.
    """

    values: Array
    lost: float


@dataclass(frozen=True)
class Features:
    """Features of the measures of n cases, made for some of them at a time.

    Attributes
    ----------
    n, size
        Number of cases, and of features.
    of
        Features ``(len(cases), size)`` of a slice of cases, or of positions in NumPy.
    each
        Cost of the features of one case, in evaluations.
    dimension
        Coordinates of targets.
    """

    n: int
    size: int
    of: Callable[[Chunk | NDArray], Array]
    each: float
    dimension: int = 1


def may_have_features(form: Form) -> bool:
    """Return True if `features_of` may find features, as far as the form tells without its rows."""
    if isinstance(form, WeightedForm):
        return may_have_features(form.inner)
    if isinstance(form, ElementForm):
        return form.dimension <= 2 and gaussian_summands(form.kernel) is not None
    return isinstance(form, FiniteForm)


def features_of(form: Form, rows: Rows) -> Features | None:
    """Return features of measures whose bilinear form is given; None where it has no finite ones.

    Rows are arrays of NumPy, or tensors, whose features are tensors on the same device.

    Examples
    --------
    >>> from wellcal.expectations.signed_measures import Components
    >>> from wellcal.kernels import Gaussian
    >>> at = Components(Points((np.array([[0.0], [0.5]]),)), 1.0)
    >>> features = features_of(ElementForm.between(Gaussian(), 1, (at,), (at,)), (at,)).of(slice(0, 2))
    >>> bool(abs(features[0] @ features[1] - np.exp(-0.125)) < 1e-13)
    True
    """
    if isinstance(form, WeightedForm):
        weighted = cast("WeightedRows", rows)
        plain = features_of(form.inner, weighted.inner)
        if plain is None:
            return None

        def of(cases: Any) -> Array:
            return take_rows(weighted.weights, cases)[:, None] * plain.of(cases)

        return replace(plain, of=of)
    if isinstance(form, ElementForm):
        return _of_elements(form, rows)
    if not isinstance(form, FiniteForm) or form.size > MOST_FEATURES:
        return None
    weights = cast("WeightRows", rows).weights
    if form.gram is None:
        return Features(len(weights), form.size, lambda cases: take_rows(weights, cases), 0.25)
    values, vectors = np.linalg.eigh(to_numpy(form.gram))
    some = values > 1e-17 * values[-1]  # rounding of the largest
    root = from_numpy(np.asarray(vectors[:, some] * np.sqrt(values[some])), weights)
    size = int(root.shape[1])
    each = size * form.size / _TERMS
    return Features(len(weights), size, lambda cases: take_rows(weights, cases) @ root, each)


def _of_elements(form: ElementForm, rows: Measure) -> Features | None:
    """Return features of points, normals and Laplace distributions under sums of Gaussian kernels."""
    kinds, summands = {part.kind for part in rows}, gaussian_summands(form.kernel)
    if summands is None or form.dimension > 2 or not kinds <= {Points, Normals, Laplaces}:
        return None
    if Laplaces in kinds and form.dimension > 1:
        return None
    grids: list[tuple[float, FeatureGrid]] = []
    for factor, kernel in summands:
        found = needed_features(float(cast("Any", kernel).lengthscale), rows)
        if found is None:
            return None
        grids.append((math.sqrt(factor), found[0]))
    size = sum(grid.size for _, grid in grids)
    dear = 8.0 if Laplaces in kinds else 2.0
    each = dear * sum(part.size for part in rows) * size
    return Features(len(rows[0].leaf), size, partial(features_on, grids, rows), each, form.dimension)


def embed(form: Form, rows: Rows, pairs: float = math.inf, *, centred: bool = False) -> Embedding | None:
    """Return vectors whose products are the values of a form, if that is quicker for so many `pairs`.

    Differences of vectors that are `centred` about their mean are the same, and their norms smaller.
    """
    features = features_of(form, rows)
    if features is None or features.size > MOST_FEATURES:
        return None
    n, size = features.n, features.size
    cost = form.cost.evaluations
    less = min(n, size)
    making = 2.0 * n * features.each + n * size * less / _TERMS + 0.1 * less**3
    # Features in a plane span far fewer directions than there are.
    if making > _SAVED * pairs * cost or size / _TERMS > 4.0 ** (features.dimension - 1) * 2.0 * cost:
        return None
    if centred:
        features = _about_the_mean(features)
    found = principal_components(features)
    plain = form.inner if isinstance(form, WeightedForm) else form
    now = plain.size if isinstance(plain, FiniteForm) else _TERMS * cost
    return found if found.values.shape[1] < now else None


def _about_the_mean(features: Features) -> Features:
    some = np.unique(np.linspace(0, features.n - 1, 256).astype(int))
    centre = features.of(some).mean(axis=0)

    def of(cases: Any) -> Array:
        return features.of(cases) - centre

    return replace(features, of=of)


def principal_components(features: Features) -> Embedding:
    """Return features of all cases in as few coordinates as hold them to rounding.

    Directions come from the Gram matrix of all cases, which is made in chunks.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 300)[:, None] ** np.arange(30)
    >>> values, lost = principal_components(Features(300, 30, lambda cases: x[cases], 1.0))
    >>> values.shape[1] < 20, lost <= LOST, bool(np.abs(values @ values.T - x @ x.T).max() < 1e-12)
    (True, True, True)
    """
    n, size, of = features.n, features.size, features.of
    chunks = list(in_chunks(n, size, within=entries_for(of(slice(0, 1)), budget.cache)))
    dear = features.each > _DEAR * size and n * size <= _KEPT
    if len(chunks) == 1 or n < size or dear:
        of = partial(take_rows, concat_rows([of(cases) for cases in chunks]))
    if n < size:
        chunks = [slice(0, n)]
    if size <= _FEW:
        return Embedding(concat_rows([of(cases) for cases in chunks]), 0.0)
    gram: Array = 0.0
    for cases in chunks:
        part = of(cases)
        gram = gram + (part @ part.T if n < size else part.T @ part)
    values, vectors = np.linalg.eigh(to_numpy(gram))
    sums = np.cumsum(np.maximum(values, 0.0))
    kept = sums > LOST * sums[-1]
    kept[-1] = True
    if np.count_nonzero(kept) > _ENOUGH * size:
        return Embedding(concat_rows([of(cases) for cases in chunks]), 0.0)
    lost = 0.0 if kept.all() or sums[-1] == 0.0 else float(sums[~kept][-1] / sums[-1])
    vectors = np.ascontiguousarray(vectors[:, kept][:, ::-1])
    if n < size:  # of one side of the matrix, the other side is not needed
        return Embedding(from_numpy(vectors * np.sqrt(values[kept][::-1]), of(slice(0, 1))), lost)
    basis = from_numpy(vectors, of(slice(0, 1)))
    return Embedding(concat_rows([of(cases) @ basis for cases in chunks]), lost)
