"""Columns of a data frame as predictions: one keyword for each family, made from its declared parameters.

A family declares its parameters as fields (:mod:`wellcal.predictions.fields`). From these follow how many
columns its role takes, in which order, and which of them are vectors, for families of a user's own as well.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import check_rows, is_number, one_of
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.row_errors import retell
from wellcal.columns.column_names import class_labels, labels_like, levels
from wellcal.columns.frames import Table, names_text
from wellcal.columns.selection import Selection, select
from wellcal.predictions.base import FAMILIES, Predictions
from wellcal.predictions.fields import Parameter
from wellcal.predictions.input_hints import probability_hint
from wellcal.predictions.samples import Samples

GRADES = "grades"
"""Option: names of classes from the lowest to the highest, in any order of their columns."""

Source = Selection | float
"""Origin of a parameter: columns, or a number for all rows."""


@dataclass(frozen=True)
class Role:
    """Meaning of columns under one keyword: the parameters of a family.

    Parameters
    ----------
    keyword
        The keyword, such as ``"normal"``.
    family
        The class.
    """

    keyword: str
    family: type[Predictions]

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Parameters that columns are given for, by their names in the constructor."""
        declared = self.family.parameter_fields
        chosen = self.family.column_parameters or declared
        return {spec.called or name: spec for name in chosen if not (spec := declared[name]).computed}

    @property
    def declared(self) -> bool:
        """True if the family declares parameters itself, and does not only inherit those of another."""
        own = vars(self.family).get("__annotations__", {})
        return any(name in own for name in self.family.parameter_fields)

    @property
    def needed(self) -> list[str]:
        """Parameters without a default."""
        chosen = self.family.column_parameters
        return [name for name, spec in self.parameters.items() if chosen or not spec.optional]

    @property
    def of_roles(self) -> bool:
        """True if it is made of other roles, as a mixture is."""
        return bool(self.family.batch_fields)

    @cached_property
    def options(self) -> list[str]:
        """Further arguments of the constructor, which are no columns."""
        columns = {*self.parameters, *self.family.parameter_fields, *self.family.batch_fields, "axis"}
        options = [name for name in inspect.signature(self.family).parameters if name not in columns]
        return [*options, *([GRADES] if "support" in options else [])]

    def takes(self) -> str:
        """Describe the value of the role in words."""
        if self.of_roles:
            return "a list of roles, such as [{'normal': ('mu_1', 'sigma_1')}, {'poisson': 'rate'}]"
        kinds = {n: f"{n} ({'a column' if s.ndim == 1 else 'columns'})" for n, s in self.parameters.items()}
        return ", ".join(kind if n in self.needed else f"{kind} if wanted" for n, kind in kinds.items())


def roles_by_keyword() -> dict[str, Role]:
    """Roles of all families by keyword, those of the package first.

    Examples
    --------
    >>> roles = roles_by_keyword()
    >>> roles["normal"].takes()
    'loc (a column), scale (a column)'
    >>> roles["probs"].family.__name__
    'Categorical'
    """
    return dict(_roles_of(tuple(FAMILIES)))


@lru_cache(maxsize=1)
def _roles_of(families: tuple[type[Predictions], ...]) -> dict[str, Role]:
    named = [cls for cls in families if is_dataclass(cls) and not cls.__name__.startswith("_")]
    roles = [Role(vars(cls).get("column_role") or _snake_case(cls.__name__), cls) for cls in named]
    roles.sort(key=lambda role: not role.family.__module__.startswith("wellcal."))
    return {role.keyword: role for role in roles if role.needed or role.of_roles}


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


# -- which columns --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnReading:
    """Columns of a frame for a role, before a value is read; see :func:`resolve`."""

    role: Role
    sources: dict[str, Source]
    options: dict[str, Any]
    parts: tuple[ColumnReading, ...] = ()
    weights: tuple[Source, ...] = ()
    rounded: bool = False
    """True if probabilities of classes are divided by their sum."""

    def normalised(self) -> ColumnReading:
        """Return the same columns, with probabilities of classes divided by their sum, which is about 1."""
        return replace(self, rounded=True, parts=tuple(part.normalised() for part in self.parts))

    @property
    def labels_from(self) -> str | None:
        """Parameter whose columns name the classes; None if they are given, or there are none."""
        if {"classes", "support"} & set(self.options):
            return None
        specs = self.role.parameters
        return next((name for name in self.sources if specs[name].named == "classes"), None)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read, each once."""
        sources = [*self.sources.values(), *self.weights]
        own = [name for source in sources if isinstance(source, Selection) for name in source.names]
        return tuple(dict.fromkeys([*own, *(name for part in self.parts for name in part.columns)]))

    @property
    def vectors(self) -> Selection | None:
        """Columns of the first parameter that is a vector; None if all of them are numbers."""
        if self.parts:
            return self.parts[0].vectors
        vectors = [source for name, source in self.sources.items() if self.role.parameters[name].ndim == 2]
        return next((source for source in vectors if isinstance(source, Selection)), None)

    def words(self) -> str:
        """Describe the origin of each parameter: ``normal: loc = mu, scale = sigma``."""
        if self.parts:
            weights = [f" of weight {_source_text(source)}" for source in self.weights] or [""] * len(
                self.parts
            )
            inner = [f"({part.words()}){weight}" for part, weight in zip(self.parts, weights, strict=True)]
            return f"{self.role.keyword}: {' + '.join(inner)}"
        sources = ", ".join(f"{name} = {_source_text(source)}" for name, source in self.sources.items())
        return f"{self.role.keyword}: {sources}"

    def batch(self, table: Table, targets: NDArray | None = None) -> Predictions:
        """Make the predictions; names of classes are of the type of `targets`."""
        if len(table) == 0:
            raise ValueError("the data frame has no rows: at least one is needed")
        values = {name: table.vectors(name) for name in self.columns if table.holds_lists(name)}
        names = [name for name in self.columns if name not in values]
        numbers = table.numbers(names) if names else np.empty((len(table), 0))
        values |= {name: numbers[:, k] for k, name in enumerate(names)}
        return self._made(values, len(table), targets).with_index(table.index)

    def _made(self, values: Mapping[str, NDArray], n: int, targets: NDArray | None) -> Predictions:
        family: Any = self.role.family
        given: dict[str, Any] = dict(self.options)
        grades = given.pop(GRADES, None)
        if issubclass(family, Samples):
            given["axis"] = 1  # columns hold the draws, also if there are as many as rows
        for name, source in self.sources.items():
            given[name] = self._array(name, source, values)
        if self.labels_from is not None:
            named = cast("Selection", self.sources[self.labels_from])
            if values[named.names[0]].ndim == 1:  # a list of probabilities has no names
                given["classes"] = class_labels(named.parts, targets)
        elif "classes" in given:
            given["classes"] = labels_like(given["classes"], targets)
        if grades is not None:
            given["support"] = _support(class_labels([str(grade) for grade in grades], targets), given)
        try:
            if not self.parts:
                return family(**given)
            batches = [part._made(values, n, targets) for part in self.parts]
            if self.weights:
                columns = (values[w.names[0]] if isinstance(w, Selection) else w for w in self.weights)
                given["weights"] = np.column_stack([np.broadcast_to(column, n) for column in columns])
            return family(batches, **given)
        except (TypeError, ValueError) as error:
            retell(error, f"{self.words()}: ")

    def _array(self, name: str, source: Source, values: Mapping[str, NDArray]) -> Any:
        if not isinstance(source, Selection):
            return source
        spec, columns = self.role.parameters[name], [values[column] for column in source.names]
        if spec.ndim == 1:
            if columns[0].ndim > 1:
                what = f"{self.role.keyword}, {name}: column {source.names[0]!r}"
                raise TypeError(f"{what} holds lists, and needs one number in each row; name another column")
            return columns[0]
        rows = np.column_stack(columns)
        if spec.ndim == 2:
            return with_sum_one(rows, name) if self.rounded and spec.named == "classes" else rows
        return _matrices(rows, len(self.vectors.names) if self.vectors else 1, f"{self.role.keyword}, {name}")


def only_role(roles: Mapping[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    """Return the one role that was given, its value, and options of its family; None counts as not given.

    Examples
    --------
    >>> only_role({"quantiles": "q*", "sort": True, "normal": None})
    ('quantiles', 'q*', {'sort': True})
    """
    known = roles_by_keyword()
    options = {keyword: value for keyword, value in roles.items() if value is not None}
    given = [(keyword, options.pop(keyword)) for keyword in list(options) if keyword in known]
    for option in options:
        taking = [keyword for keyword, role in known.items() if option in role.options]
        one_of(option, "role of columns", [*known, *([option] if taking else [])])
        if len(given) == 1 and given[0][0] not in taking:
            raise TypeError(f"{option}= is for {' and '.join(taking)}, found {given[0][0]}; leave it out")
    if len(given) != 1:
        found = " and ".join(keyword for keyword, _ in given) or "none"
        raise TypeError(
            f"exactly one role of columns is needed, such as normal=('mu', 'sigma'), found {found}"
        )
    return *given[0], options


def resolve(
    names: Sequence[str], keyword: str, value: object, options: Mapping[str, Any] | None = None
) -> ColumnReading:
    """Select the columns of a role among `names`.

    Parameters
    ----------
    names
        Names of all columns.
    keyword, value
        The role, as in :func:`wellcal.as_predictions`.
    options
        Further arguments of the family, such as ``{"sort": True}``.

    Examples
    --------
    >>> reading = resolve(["y", "m", "s"], "normal", ("m", "s"))
    >>> reading.words(), reading.columns
    ('normal: loc = m, scale = s', ('m', 's'))
    >>> resolve(["y", "m", "s"], "student_t", (4, "m", "s")).words()
    'student_t: df = 4, loc = m, scale = s'
    """
    role = roles_by_keyword()[one_of(keyword, "role of columns", roles_by_keyword())]
    if role.of_roles:
        return _resolve_parts(names, role, value)
    given, specs = _by_parameter(role, value), role.parameters
    options = {**{name: x for name, x in given.items() if name not in specs}, **(options or {})}
    if isinstance(grades := options.get(GRADES), str):
        listed = [name.strip() for name in grades.split(",")]
        raise TypeError(f"{GRADES} must be a list of names, found {grades!r}; give {GRADES}={listed!r}")
    sources: dict[str, Source] = {}
    first: Selection | None = None
    for name in (name for name in specs if name in given):
        spec, source = specs[name], _source(names, role, name, specs[name], given[name])
        if isinstance(source, Selection) and spec.ndim == 2 and not spec.own_length:
            if first is not None:
                source = source.in_order_of(first, f"{keyword}: the columns of its parameters")
            first = first or source
        if isinstance(source, Selection) and spec.named == "levels" and "levels" not in options:
            pairs = zip(levels(source.names, keyword), source.names, source.parts, strict=True)
            options["levels"], by_level, parts = map(list, zip(*sorted(pairs), strict=True))
            source = Selection(tuple(by_level), tuple(parts), source.by_pattern)
        sources[name] = source
    if not any(isinstance(source, Selection) for source in sources.values()):
        raise TypeError(f"{keyword}: only numbers were given; at least one parameter must be a column")
    return ColumnReading(role, sources, options)


def _by_parameter(role: Role, value: object) -> dict[str, Any]:
    """Split the value of a role into parameters and options, by name."""
    names, needed = list(role.parameters), role.needed
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value)
        levels_of = next((name for name, spec in role.parameters.items() if spec.named == "levels"), None)
        if levels_of is not None and items and all(map(is_number, items)):
            if not all(isinstance(column, (str, int)) for column in items.values()):
                raise TypeError(f"{role.keyword}: each level has the name of one column")
            return {levels_of: [items[level] for level in sorted(items)], "levels": sorted(items)}
        for key in items:
            one_of(key, f"parameter of {role.keyword}", [*names, *role.options])
        if absent := [name for name in needed if name not in items]:
            raise ValueError(f"{role.keyword}: no column was named for {' and '.join(absent)}")
        return {key: x for key, x in items.items() if x is not None}
    if len(needed) == 1 and (role.parameters[needed[0]].ndim > 1 or not isinstance(value, (list, tuple))):
        return {needed[0]: value}
    entries = list(cast("Sequence[Any]", value)) if isinstance(value, (list, tuple)) else [value]
    if not len(needed) <= len(entries) <= len(names):
        count = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
        raise ValueError(f"{role.keyword} takes {role.takes()}; found {count}")
    return {name: x for name, x in zip(names, entries, strict=False) if x is not None}


def _source(names: Sequence[str], role: Role, name: str, spec: Parameter, wanted: object) -> Source:
    what = f"{role.keyword}, {name}" if len(role.parameters) > 1 else role.keyword
    if spec.ndim < 3 and spec.named is None and is_number(wanted) and str(wanted) not in names:
        number = float(cast("Any", wanted))
        if not math.isfinite(number):
            raise ValueError(f"{what} must be a finite number or a column, found {wanted}")
        return number
    selected = select(names, wanted, what)
    if spec.ndim == 1 and len(selected.names) != 1:
        raise ValueError(f"{what} is one column, found {len(selected.names)}: {names_text(selected.names)}")
    return selected


def _resolve_parts(names: Sequence[str], role: Role, value: object) -> ColumnReading:
    if not issubclass(type(value), (list, tuple)) or not value:
        raise TypeError(f"{role.keyword} takes {role.takes()}, found {type(value).__name__} {value!r:.40}")
    parts: list[ColumnReading] = []
    weights: list[Source] = []
    for k, item in enumerate(cast("Sequence[Any]", value)):
        if not isinstance(item, Mapping):
            raise TypeError(f"{role.keyword}: part {k} must be a role, such as {{'normal': ('mu', 'sigma')}}")
        given = dict(cast("Mapping[str, Any]", item))
        weight = given.pop("weight", None)
        parts.append(resolve(names, *only_role(given)))
        if weight is not None:
            weights.append(_source(names, role, "weight", Parameter(), weight))
    if weights and len(weights) < len(parts):
        count = f"{len(weights)} of {len(parts)} parts"
        raise ValueError(f"{role.keyword}: {count} have a weight; give all of them one, or none")
    return ColumnReading(role, {}, {}, tuple(parts), tuple(weights))


def _support(grades: list[Any], given: Mapping[str, Any]) -> list[int]:
    """Return places of classes among their names from the lowest to the highest."""
    classes = list(given.get("classes", range(len(grades))))
    if set(classes) != set(grades) or len(classes) != len(grades):
        found, wanted = (names_text(list(map(str, names))) for names in (grades, classes))
        problem = f"{GRADES} must name all classes from the lowest to the highest, found {found}"
        raise ValueError(f"{problem} for the classes {wanted}")
    return [grades.index(label) for label in classes]


def _matrices(rows: NDArray, d: int, what: str) -> NDArray:
    """Make matrices (d, d) of columns: all entries row by row, or the lower triangle row by row."""
    if rows.shape[1] == d * d:
        return rows.reshape(len(rows), d, d)
    if rows.shape[1] != d * (d + 1) // 2:
        triangle = f"{d * (d + 1) // 2} for its lower triangle"
        raise ValueError(f"{what} takes {d * d} columns of a matrix, or {triangle}, found {rows.shape[1]}")
    low = np.tril_indices(d)
    matrices = np.empty((len(rows), d, d), dtype=rows.dtype)
    matrices[:, low[0], low[1]] = matrices[:, low[1], low[0]] = rows
    return matrices


def _source_text(source: Source) -> str:
    if not isinstance(source, Selection):
        return f"{source:g}"
    names = source.names
    return names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]} ({len(names)} columns)"


def rounding_of_sums(classes: int) -> float:
    """Return how far rounding to two decimals may take a sum of probabilities from 1, within 0.01 and 0.1.

    Examples
    --------
    >>> [rounding_of_sums(classes) for classes in (2, 7, 1000)]
    [0.01, 0.035, 0.1]
    """
    return min(max(0.005 * classes, 0.01), 0.1) + 1e-7 * classes


def with_sum_one(rows: NDArray, name: str) -> NDArray:
    """Divide rows by their sums if rounding explains that these are not 1, and raise otherwise.

    Examples
    --------
    >>> with_sum_one(np.array([[0.33, 0.33, 0.33]]), "probs").sum()
    np.float64(1.0)
    >>> with_sum_one(np.array([[0.33, 0.33, 0.3]]), "probs")
    Traceback (most recent call last):
    wellcal.RowError: the sum of probs must be one within 0.015 for normalise=True in row 0: found 0.96; ...
    """
    sums, reach = rows.sum(axis=1, keepdims=True), rounding_of_sums(rows.shape[1])
    able = (rows >= 0.0).all(axis=1, keepdims=True)  # the family refuses negative ones
    check_rows(
        f"the sum of {name}",
        sums[:, 0],
        ((np.abs(sums - 1.0) <= reach) | ~able)[:, 0],
        f"must be one within {reach:.2g} for normalise=True",
        probability_hint(rows)
        or f"rounding of {rows.shape[1]} classes does not explain that: look at that row",
        argument=name,
    )
    return np.divide(rows, sums, out=rows.copy(), where=able)


def from_columns(frame: object, roles: Mapping[str, Any]) -> Predictions:
    """Read columns of a data frame as predictions: :func:`wellcal.as_predictions` with a role."""
    chosen = only_role(roles)
    table = Table(frame)
    return resolve(table.names, *chosen).batch(table)
