"""A problem as its structure and its numbers: programs are compiled for the first, and take the second.

Length scales, factors and arrays are arguments of a compiled program, so that another one of them compiles
nothing. Everything else about the terms of a kernel, and the tree of their rows, is the structure, a value
by which a program is found again.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import Array, Namespace, is_array
from wellcal._arrays.rows import NODE, Rows
from wellcal.expectations.bilinear import FiniteForm, WeightRows
from wellcal.expectations.mmd import MeanDiscrepancy
from wellcal.expectations.on_predictions import ExpDistanceForm
from wellcal.expectations.rules.elements import CLOSED_FORMS
from wellcal.kernels.base import walk
from wellcal.predictions import Predictions
from wellcal.problem.problem import Problem, Term, TermRows

_PLAIN = (bool, int, float, str, bytes, type, types.NoneType)
_FEW, _MANY = 16, 64  # features: so few, or a multiple of so many
_NUMBER = "number"
"""What stands in a structure for a number or an array."""


class _UnknownError(Exception):
    """Something whose numbers cannot be told from its structure."""


@dataclass(frozen=True)
class Structure:
    """What a program is compiled for.

    Attributes
    ----------
    terms, rows
        Trees of classes, fields and plain values, with a mark in the place of each number.
    rules
        How often closed forms were registered: a program knows those that it was compiled with.
    """

    terms: Hashable
    rows: Hashable
    rules: int

    def problem(self, numbers: Sequence[Array], arrays: Sequence[Array], xp: Namespace) -> Problem:
        """A problem with these numbers, and these arrays as its rows: to be evaluated, and nothing else."""
        terms, rows = _built(self.terms, iter(numbers)), _built(self.rows, iter(arrays))
        nothing: Any = None
        return Problem(arrays[0].shape[0], rows, terms, nothing, nothing, xp, None)


def split(problem: Problem) -> tuple[Structure, list[Array]] | None:
    """The structure of a problem, and the numbers of its terms. Arrays of its rows are numbers as well.

    None where they cannot be told apart: a class may then hold an array that its fields do not show.

    Examples
    --------
    >>> import wellcal as wc
    >>> from wellcal.kernels import ExpDistance, Gaussian, Wasserstein
    >>> from wellcal.problem.problem import prepare
    >>> def parts(n, scale):
    ...     kernel = ExpDistance(Wasserstein(), scale) @ Gaussian()
    ...     return split(prepare(np.zeros(n), wc.Normal(np.zeros(n), np.ones(n)), kernel))
    >>> some, others = parts(3, 0.5), parts(4, 2.0)
    >>> some[0] == others[0], others[1]
    (True, [1.0, 2.0, 1.0])
    """
    if not all(part.pure for part in walk(problem.kernel)):
        return None
    numbers: list[Array] = []
    try:
        terms = _outlined(problem.terms, numbers.append, scale=False)
        rows = _outlined(problem.rows, lambda _: None, scale=False)
    except _UnknownError:
        return None
    return Structure(terms, rows, CLOSED_FORMS.changes), numbers


def evened(problem: Problem) -> Problem:
    """A problem in feature form with one of few numbers of features, those that are added being zero.

    How many there are depends on the data: 27 to 49 for most, other draws of which differ by four or five. A
    program would be compiled for each number, and again wherever a boundary is crossed, so that
    boundaries are far apart: 16, 64, 128, 192 and so on. A product of 64 takes a tenth longer than one of 48.
    """
    terms: list[Term] = []
    rows: list[TermRows] = []
    for term, own in zip(problem.terms, problem.rows, strict=True):
        on_targets, targets = _evened(term.on_targets, own.on_targets)
        on_predictions, predictions = _evened(term.on_predictions, own.on_predictions)
        terms.append(replace(term, on_targets=on_targets, on_predictions=on_predictions))
        rows.append(TermRows(targets, predictions))
    return replace(problem, terms=tuple(terms), rows=tuple(rows))


def _evened(form: Any, rows: Rows) -> tuple[Any, Rows]:
    if isinstance(form, ExpDistanceForm) and isinstance(form.inner, MeanDiscrepancy):
        inner, own = _evened(form.inner.form, rows.inner)
        return replace(form, inner=replace(form.inner, form=inner)), rows._replace(inner=own)
    weights = getattr(rows, "weights", None)
    if not isinstance(form, FiniteForm) or form.gram is not None or type(weights) is not np.ndarray:
        return form, rows
    size = weights.shape[1]
    missing = _FEW - size if size <= _FEW else -size % _MANY
    return FiniteForm(None, form.size + missing), WeightRows(np.pad(weights, ((0, 0), (0, missing))))


def _outlined(value: Any, keep: Callable[[Array], None], *, scale: bool) -> Hashable:
    """The structure of a value, whose numbers go to `keep`; `scale` says that a float is one of them."""
    if is_array(value):
        if isinstance(value, np.ndarray) and cast("Any", value).dtype.kind not in "fiub":
            raise _UnknownError
        keep(value)
        return _NUMBER
    if scale and isinstance(value, float):
        keep(value)
        return _NUMBER
    if isinstance(value, NODE):
        parts = tuple(_outlined(part, keep, scale=False) for part in value)
        return (value.__class__, parts)
    if isinstance(value, _PLAIN):
        return (cast("Any", value).__class__, value)  # 1, 1.0 and True are equal, and differ
    if isinstance(value, types.FunctionType) and value.__closure__ is None:
        return (types.FunctionType, value)
    if is_dataclass(value) and not isinstance(value, (type, Predictions)):
        cls = value.__class__
        own = ((name, getattr(value, name), is_scale) for name, is_scale in _fields(cls))
        return (cls, tuple((name, _outlined(part, keep, scale=is_scale)) for name, part, is_scale in own))
    raise _UnknownError


@lru_cache(maxsize=256)
def _fields(cls: type) -> tuple[tuple[str, bool], ...]:
    """Fields of a class, and whether each is a scale: it may be an array, and nobody looks at its value."""
    return tuple((field.name, field.type == "Scale") for field in fields(cls))


def _built(outline: Any, numbers: Iterator[Array]) -> Any:
    """The value whose structure is given, with these numbers in their places."""
    if outline is _NUMBER or outline == _NUMBER:
        return next(numbers)
    cls, content = cast("tuple[Any, Any]", outline)
    if cls is types.FunctionType or issubclass(cls, _PLAIN):
        return content
    if issubclass(cls, NODE):
        parts = [_built(part, numbers) for part in content]
        return cls(*parts) if hasattr(cls, "_fields") else tuple(parts)
    # Without its constructor, which looks at values: they were checked when the first of its kind was made.
    made = object.__new__(cls)
    for name, part in content:
        object.__setattr__(made, name, _built(part, numbers))
    return made
