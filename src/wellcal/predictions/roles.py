"""Columns of a data frame as predictions: one keyword for each family, made from its declared parameters.

A family declares its parameters as fields (:mod:`wellcal.predictions.fields`). From these follow how many
columns its role takes, in which order, and which of them are vectors, for families of a user's own as well.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import one_of
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.parameters import is_number
from wellcal._arrays.row_errors import retell
from wellcal.columns.column_names import class_labels, free_name, labels_like, levels
from wellcal.columns.frames import Table, shown_names
from wellcal.columns.selection import Selection, select
from wellcal.predictions.base import FAMILIES, Predictions
from wellcal.predictions.fields import Parameter
from wellcal.predictions.rounded_sums import with_sum_one
from wellcal.predictions.samples import Samples

GRADES = "grades"
"""Names of classes from the lowest to the highest, whatever the order of their columns."""

_OF_ARRAYS = ("axis",)  # what constructors ask of arrays, and names of columns have said already

Source = Selection | float
"""Where a parameter comes from: columns, or a number for all rows."""


@dataclass(frozen=True)
class Role:
    """What columns mean under one keyword: the parameters of a family.

    Parameters
    ----------
    keyword
        The keyword, such as ``"normal"``.
    family
        The class.
    """

    keyword: str
    family: type[Predictions]

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Parameters that columns are given for, by their names in the constructor."""
        declared = self.family.parameter_fields
        chosen = self.family.column_parameters or declared
        return {spec.called or name: spec for name in chosen if not (spec := declared[name]).computed}

    @property
    def built_in(self) -> bool:
        """Whether the family is one of the package, and not a user's."""
        return self.family.__module__.partition(".")[0] == __name__.partition(".")[0]

    @property
    def declared(self) -> bool:
        """Whether the family has declared its parameters itself, and not all of them are those of another."""
        return any(
            name in vars(self.family).get("__annotations__", {}) for name in self.family.parameter_fields
        )

    @property
    def needed(self) -> list[str]:
        """Parameters without a default."""
        chosen = self.family.column_parameters
        return [name for name, spec in self.parameters.items() if chosen or not spec.optional]

    @property
    def of_roles(self) -> bool:
        """Whether it is made of other roles, as a mixture is."""
        return bool(self.family.batch_fields)

    @property
    def options(self) -> list[str]:
        """What else the constructor takes, which is no column."""
        own = (*self.family.parameter_fields, *self.family.batch_fields)
        declared = {*self.parameters, *own, *_OF_ARRAYS}
        found = [name for name in inspect.signature(self.family).parameters if name not in declared]
        return [*found, *([GRADES] if "support" in found else [])]

    def takes(self) -> str:
        """What it takes, in words."""
        if self.of_roles:
            return (
                "a list of roles, such as [{'normal': ('mu_1', 'sigma_1')}, {'normal': ('mu_2', 'sigma_2')}]"
            )
        kinds = [
            f"{name} ({'a column' if s.ndim == 1 else 'columns'})" for name, s in self.parameters.items()
        ]
        return ", ".join(
            kinds[: len(self.needed)] + [f"{kind} if wanted" for kind in kinds[len(self.needed) :]]
        )


def known_roles() -> dict[str, Role]:
    """Roles of all families that there are, by keyword; those of the package go before a user's.

    Examples
    --------
    >>> roles = known_roles()
    >>> roles["normal"].takes()
    'loc (a column), scale (a column)'
    >>> roles["probs"].family.__name__
    'Categorical'
    """
    return dict(_roles_of(tuple(cls for cls in FAMILIES if is_dataclass(cls))))


@lru_cache(maxsize=1)
def _roles_of(families: tuple[type[Predictions], ...]) -> dict[str, Role]:
    """The same for these: a class says all of it when it is made, and a small file asks fifteen times."""
    found: dict[str, Role] = {}
    for own in (False, True):
        for cls in families:
            if cls.__name__.startswith("_"):
                continue
            keyword = vars(cls).get("column_role") or _snake_case(cls.__name__)
            role = Role(keyword, cls)
            if role.built_in is not own and (role.needed or role.of_roles):
                found[keyword] = role
    return found


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


# -- which columns --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnReading:
    """Columns of a frame that were found for a role, before a value is read; see :func:`resolve`."""

    role: Role
    sources: dict[str, Source]
    options: dict[str, Any]
    parts: tuple[ColumnReading, ...] = ()
    weights: tuple[Source, ...] = ()
    labels_from: str | None = field(default=None)
    rounded: bool = False
    """Whether probabilities of classes are divided by their sum."""
    grades: tuple[Any, ...] = ()
    """Names of the classes from the lowest to the highest; none where they have no order."""

    def normalised(self) -> ColumnReading:
        """The same columns, with probabilities of classes divided by their sum, which is about 1."""
        return replace(self, rounded=True, parts=tuple(part.normalised() for part in self.parts))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read, each once."""
        sources = [*self.sources.values(), *self.weights]
        own = [name for source in sources if isinstance(source, Selection) for name in source.names]
        return tuple(dict.fromkeys([*own, *(name for part in self.parts for name in part.columns)]))

    @property
    def vectors(self) -> Selection | None:
        """Columns of the first parameter that is a vector; None where all of them are numbers."""
        if self.parts:
            return self.parts[0].vectors
        specs = self.role.parameters
        found = [s for name, s in self.sources.items() if specs[name].ndim == 2 and isinstance(s, Selection)]
        return found[0] if found else None

    def words(self) -> str:
        """What is taken from where: ``normal: loc = mu, scale = sigma``."""
        if self.parts:
            weights = [f" of weight {_shown(source)}" for source in self.weights] or [""] * len(self.parts)
            inner = [f"({part.words()}){weight}" for part, weight in zip(self.parts, weights, strict=True)]
            return f"{self.role.keyword}: {' + '.join(inner)}"
        taken = ", ".join(f"{name} = {_shown(source)}" for name, source in self.sources.items())
        return f"{self.role.keyword}: {taken}"

    def batch(self, table: Table, targets: NDArray | None = None) -> Predictions:
        """The predictions, with names of classes of the kind that `targets` are."""
        if len(table) == 0:
            raise ValueError("the data frame has no rows: at least one is needed")
        lists = [name for name in self.columns if table.holds_lists(name)]
        names = [name for name in self.columns if name not in lists]
        numbers = table.numbers(names) if names else np.empty((len(table), 0))
        values = {name: numbers[:, k] for k, name in enumerate(names)}
        values |= {name: table.vectors(name) for name in lists}
        return self._made(values, len(table), targets).with_index(table.index)

    def _made(self, values: Mapping[str, NDArray], n: int, targets: NDArray | None) -> Predictions:
        family: Any = self.role.family
        given: dict[str, Any] = dict(self.options)
        if issubclass(family, Samples):
            given["axis"] = 1  # columns hold the draws, also where there are as many as rows
        for name, source in self.sources.items():
            given[name] = self._array(name, source, values)
        if self.labels_from is not None:
            found = cast("Selection", self.sources[self.labels_from])
            if values[found.names[0]].ndim == 1:  # a list of probabilities has no names
                given["classes"] = class_labels(found.parts, targets)
        elif "classes" in given:
            given["classes"] = labels_like(given["classes"], targets)
        try:
            if not self.parts:
                return self._graded(family(**given), targets)
            batches = [part._made(values, n, targets) for part in self.parts]
            if self.weights:
                columns = [_column(source, values, n) for source in self.weights]
                given["weights"] = np.column_stack(columns)
            return family(batches, **given)
        except (TypeError, ValueError) as error:
            retell(error, f"{self.words()}: ")

    def _graded(self, made: Any, targets: NDArray | None) -> Any:
        if not self.grades:
            return made
        wanted = class_labels([str(grade) for grade in self.grades], targets)
        found = made.ordered_as(wanted)
        if found is None:
            raise ValueError(
                f"{GRADES} must name all classes from the lowest to the highest, found "
                f"{shown_names([str(grade) for grade in wanted])} for the classes "
                f"{shown_names([str(label) for label in made.labels().tolist()])}"
            )
        return found

    def written(self, pred: Predictions, taken: Sequence[str] = ()) -> dict[str, NDArray]:
        """Columns that hold `pred`, by name: what `batch` would read these predictions from.

        A parameter that was one number for all rows becomes a column of its own name, with a number after it
        where that is `taken` by a column that holds something else.

        Examples
        --------
        >>> import wellcal as wc
        >>> found = resolve(["y", "m"], "normal", ("m", 2.0))
        >>> {name: x.tolist() for name, x in found.written(wc.Normal([0.5], [3.0])).items()}
        {'m': [0.5], 'scale': [3.0]}
        >>> list(found.written(wc.Normal([0.5], [3.0]), ["y", "m", "scale"]))
        ['m', 'scale_2']
        """
        found: dict[str, NDArray] = {}
        batch: Any = pred
        for part, component in zip(self.parts, getattr(batch, "components", ()), strict=bool(self.parts)):
            found.update(part.written(component, [*taken, *found]))
        fields_of = {spec.called or name: name for name, spec in self.role.family.parameter_fields.items()}
        for name, source in self.sources.items():
            values = np.asarray(getattr(batch, fields_of[name]), dtype=np.float64)
            if not isinstance(source, Selection):
                if values.ndim == 1 or self.vectors is None:
                    found[free_name(name, taken)] = values
                else:
                    names = [free_name(f"{name}_{part}", taken) for part in self.vectors.parts]
                    found.update({column: values[:, k] for k, column in enumerate(names)})
                continue
            if values.ndim == 3:
                d = values.shape[1]
                low = np.tril_indices(d)
                whole = len(source.names) == d * d
                values = values.reshape(len(values), -1) if whole else values[:, low[0], low[1]]
            columns = values[:, None] if values.ndim == 1 else values
            if len(source.names) == 1 < columns.shape[1]:  # a column of lists
                found[source.names[0]] = columns
            else:
                found.update({column: columns[:, k] for k, column in enumerate(source.names)})
        return found

    def _array(self, name: str, source: Source, values: Mapping[str, NDArray]) -> Any:
        if not isinstance(source, Selection):
            return source
        ndim = self.role.parameters[name].ndim
        if ndim == 1:
            found = values[source.names[0]]
            if found.ndim > 1:
                raise TypeError(
                    f"{self.role.keyword}, {name}: column {source.names[0]!r} holds lists, and one number is "
                    "needed in each row; name another column"
                )
            return found
        rows = np.column_stack([values[column] for column in source.names])
        if ndim == 2:
            classes = self.rounded and self.role.parameters[name].named == "classes"
            return with_sum_one(rows, name) if classes else rows
        d = 1 if self.vectors is None else len(self.vectors.names)
        return _matrices(rows, d, f"{self.role.keyword}, {name}")


def only_role(roles: Mapping[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    """The one role that was given, its value, and options of its family; None counts as not given.

    Examples
    --------
    >>> only_role({"quantiles": "q*", "sort": True, "normal": None})
    ('quantiles', 'q*', {'sort': True})
    """
    known = known_roles()
    given = {keyword: value for keyword, value in roles.items() if value is not None}
    found = [keyword for keyword in given if keyword in known]
    options = {keyword: value for keyword, value in given.items() if keyword not in known}
    for keyword in options:
        taking = [name for name, role in known.items() if keyword in role.options]
        one_of(keyword, "role of columns", [*known, *([keyword] if taking else [])])
        if len(found) == 1 and found[0] not in taking:
            raise TypeError(f"{keyword}= is for {' and '.join(taking)}, found {found[0]}; leave it out")
    if len(found) != 1:
        words = " and ".join(found) if found else "none"
        raise TypeError(
            f"exactly one role of columns is needed, such as normal=('mu', 'sigma'), found {words}"
        )
    return found[0], given[found[0]], options


def resolve(
    names: Sequence[str], keyword: str, value: object, options: Mapping[str, Any] | None = None
) -> ColumnReading:
    """Find the columns of a role among `names`.

    Parameters
    ----------
    names
        Names of all columns.
    keyword, value
        The role, as in :func:`wellcal.as_predictions`.
    options
        What else the family takes, such as ``{"sort": True}``.

    Examples
    --------
    >>> found = resolve(["y", "m", "s"], "normal", ("m", "s"))
    >>> found.words(), found.columns
    ('normal: loc = m, scale = s', ('m', 's'))
    >>> resolve(["y", "m", "s"], "student_t", (4, "m", "s")).words()
    'student_t: df = 4, loc = m, scale = s'
    """
    role = known_roles()[one_of(keyword, "role of columns", known_roles())]
    if role.of_roles:
        return _resolve_parts(names, role, value)
    given = _by_parameter(role, value)
    specs = role.parameters
    options = {**{name: x for name, x in given.items() if name not in specs}, **(options or {})}
    grades = _listed(options.pop(GRADES, ()))
    sources: dict[str, Source] = {}
    labels_from: str | None = None
    first: Selection | None = None
    for name, spec in specs.items():
        if name not in given:
            continue
        source = _source(names, role, name, spec, given[name])
        if isinstance(source, Selection) and spec.ndim == 2 and not spec.own_length:
            if first is not None:
                source = source.in_order_of(first, f"{keyword}: the columns of its parameters")
            first = source if first is None else first
        if isinstance(source, Selection) and spec.named == "levels" and "levels" not in options:
            source, options["levels"] = _by_level(source, keyword)
        if isinstance(source, Selection) and spec.named == "classes":
            labels_from = None if {"classes", "support"} & set(options) else name
        sources[name] = source
    if not any(isinstance(source, Selection) for source in sources.values()):
        raise TypeError(f"{keyword}: only numbers were given; at least one parameter must be a column")
    return ColumnReading(role, sources, options, labels_from=labels_from, grades=grades)


def _listed(grades: Any) -> tuple[Any, ...]:
    """Names of grades one by one: a text would be taken for its letters."""
    if isinstance(grades, str):
        names = [name.strip() for name in grades.split(",")]
        raise TypeError(f"{GRADES} must be a list of names, found {grades!r}; give {GRADES}={names!r}")
    return tuple(grades)


def _by_parameter(role: Role, value: object) -> dict[str, Any]:
    """What was given for each parameter and option, by name."""
    known = [*role.parameters, *role.options]
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value)
        by_level = _level_keys(role, items)
        if by_level is not None:
            return by_level
        for key in items:
            one_of(key, f"parameter of {role.keyword}", known)
        absent = [name for name in role.needed if name not in items]
        if absent:
            raise ValueError(f"{role.keyword}: no column was named for {' and '.join(absent)}")
        return {key: x for key, x in items.items() if x is not None}
    names, needed = list(role.parameters), role.needed
    if len(needed) == 1 and (role.parameters[needed[0]].ndim > 1 or not isinstance(value, (list, tuple))):
        return {needed[0]: value}
    entries = list(cast("Sequence[Any]", value)) if isinstance(value, (list, tuple)) else [value]
    if not len(needed) <= len(entries) <= len(names):
        raise ValueError(
            f"{role.keyword} takes {role.takes()}; found {len(entries)} "
            f"{'entry' if len(entries) == 1 else 'entries'}"
        )
    return {name: x for name, x in zip(names, entries, strict=False) if x is not None}


def _level_keys(role: Role, items: Mapping[Any, Any]) -> dict[str, Any] | None:
    """``{0.1: "low", 0.9: "high"}`` as levels and columns; None where the keys are no numbers."""
    vector = next((name for name, spec in role.parameters.items() if spec.named == "levels"), None)
    if vector is None or not items:
        return None
    try:
        numbers = {float(key): column for key, column in items.items()}
    except (TypeError, ValueError):
        return None
    if len(numbers) < len(items):
        raise ValueError(f"{role.keyword}: a level was given twice")
    if not all(isinstance(column, (str, int)) for column in numbers.values()):
        raise TypeError(f"{role.keyword}: each level has the name of one column")
    found = sorted(numbers)
    return {vector: [numbers[level] for level in found], "levels": found}


def _source(names: Sequence[str], role: Role, name: str, spec: Parameter, wanted: object) -> Source:
    what = f"{role.keyword}, {name}" if len(role.parameters) > 1 else role.keyword
    if spec.ndim < 3 and spec.named is None and is_number(wanted) and str(wanted) not in names:
        number = float(cast("Any", wanted))
        if not math.isfinite(number):
            raise ValueError(f"{what} must be a finite number or a column, found {wanted}")
        return number
    found = select(names, wanted, what)
    if spec.ndim == 1 and len(found.names) != 1:
        raise ValueError(f"{what} is one column, found {len(found.names)}: {shown_names(found.names)}")
    return found


def _by_level(source: Selection, keyword: str) -> tuple[Selection, list[float]]:
    found = levels(source.names, keyword)
    order = sorted(range(len(found)), key=found.__getitem__)
    columns = tuple(source.names[k] for k in order)
    return Selection(columns, tuple(source.parts[k] for k in order), source.by_pattern), [
        found[k] for k in order
    ]


def _resolve_parts(names: Sequence[str], role: Role, value: object) -> ColumnReading:
    items = list(cast("Sequence[Any]", value)) if isinstance(value, (list, tuple)) else []
    if not items:
        found = "none" if isinstance(value, (list, tuple)) else type(value).__name__
        raise TypeError(f"{role.keyword} takes {role.takes()}, found {found}")
    parts: list[ColumnReading] = []
    weights: list[Source] = []
    for k, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise TypeError(f"{role.keyword}: part {k} must be a role, such as {{'normal': ('mu', 'sigma')}}")
        given = dict(cast("Mapping[str, Any]", item))
        weight = given.pop("weight", None)
        parts.append(resolve(names, *only_role(given)))
        if weight is not None:
            weights.append(_source(names, role, "weight", Parameter(), weight))
    if weights and len(weights) < len(parts):
        raise ValueError(
            f"{role.keyword}: {len(weights)} of {len(parts)} parts have a weight; give all of them one, or "
            "none"
        )
    return ColumnReading(role, {}, {}, tuple(parts), tuple(weights))


def _column(source: Source, values: Mapping[str, NDArray], n: int) -> NDArray:
    return values[source.names[0]] if isinstance(source, Selection) else np.full(n, source)


def _matrices(rows: NDArray, d: int, what: str) -> NDArray:
    """Columns as matrices (d, d): all entries row by row, or the lower triangle row by row."""
    if rows.shape[1] == d * d:
        return rows.reshape(len(rows), d, d)
    if rows.shape[1] != d * (d + 1) // 2:
        raise ValueError(
            f"{what} takes {d * d} columns, the entries of a matrix row by row, or {d * (d + 1) // 2} for "
            f"its lower triangle, found {rows.shape[1]}"
        )
    found = np.empty((len(rows), d, d), dtype=rows.dtype)
    low = np.tril_indices(d)
    found[:, low[0], low[1]] = rows
    found[:, low[1], low[0]] = rows
    return found


def _shown(source: Source) -> str:
    if not isinstance(source, Selection):
        return f"{source:g}"
    names = source.names
    return names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]} ({len(names)} columns)"


def from_columns(frame: object, roles: Mapping[str, Any]) -> Predictions:
    """Columns of a data frame as predictions: :func:`wellcal.as_predictions` with a role."""
    chosen = only_role(roles)
    table = Table(frame)
    return resolve(table.names, *chosen).batch(table)
