"""Roles of columns inferred from their names.

Names decide. Where they leave a choice, or say nothing, the error says how to name the role.
"""

from __future__ import annotations

import itertools
import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellcal.columns.column_names import level_of
from wellcal.columns.frames import Table, names_text
from wellcal.columns.number_texts import says_number
from wellcal.columns.selection import select
from wellcal.predictions.column_roles import ColumnReading, Role, resolve, roles_by_keyword, rounding_of_sums
from wellcal.predictions.fields import Parameter
from wellcal.predictions.samples import Samples

TARGETS = ("y", "y_true", "target", "label", "actual")
"""Names that columns of targets usually have."""

_LIKELY = {"class", "count", "obs", "observed", "outcome", "response", "result", "true", "truth"} | {*TARGETS}
_NUMBERED = f"({'|'.join(TARGETS)})_?[0-9]+"

Reading = tuple[dict[str, Any], ColumnReading]
"""A role as it is given, and the columns that it stands for."""


@dataclass(frozen=True)
class GuessedRoles:
    """Roles of columns that :func:`guess_roles` proposes.

    Parameters
    ----------
    target
        The column of targets; several, as a tuple, for vectors.
    roles
        The role of the predictions: ``wc.as_predictions(frame, **guess.roles)``.
    unused
        Columns that are neither.

    Examples
    --------
    >>> import pandas as pd, wellcal as wc
    >>> wc.guess_roles(pd.DataFrame({"y": [2, 3], "rate": [1.5, 2.5], "id": [1, 2]}))
    GuessedRoles(target='y', roles={'poisson': 'rate'}, unused=('id',))
    """

    target: str | tuple[str, ...]
    roles: dict[str, Any]
    unused: tuple[str, ...]
    _words: str = field(default="", repr=False)

    def words(self) -> str:
        """Describe the roles in words, to be shown before they are used."""
        left = f"; not used: {names_text(self.unused)}" if self.unused else ""
        targets = self.target if isinstance(self.target, str) else ", ".join(self.target)
        return f"target: {targets}; {self._words}{left}"

    def __str__(self) -> str:
        return self.words()


def guess_roles(frame: object, target: str | Sequence[str] | None = None) -> GuessedRoles:
    """Say which columns look like targets and predictions, by their names.

    Targets are called y, y_true, target, label or actual; vectors y_0, y_1 and so on. Predictions are columns
    with the usual names of a family's parameters: mu and sigma (mean, loc; sd, std, scale), p_* (prob_*,
    probs_*, proba_*), q* with levels, draw_* (sample_*; a column of lists called draws or samples), rate
    (lambda), p (prob, probs, proba, probability), in small letters or large; for vectors mu_* and sigma_*, or
    mu_* and cov_*. Without such a column, y_std stands for std, y_prob for prob and so on, and pred or y_pred
    for a mean that has a spread. Columns that are called by the classes are probabilities if they contain all
    targets and their sums are one, up to rounding. If two readings are possible, or none is, the error says
    so, and nothing is chosen. A family that derives from another, with the same parameters, is not guessed.

    Parameters
    ----------
    frame
        A data frame of pandas, polars or pyarrow.
    target
        The column of targets, or columns of vectors, if they are known.

    Examples
    --------
    >>> import pandas as pd, wellcal as wc
    >>> frame = pd.DataFrame({"id": [1, 2], "y": [0.3, 1.2], "mu": [0.0, 1.0], "sigma": [1.0, 2.0]})
    >>> guess = wc.guess_roles(frame)
    >>> print(guess)
    target: y; normal: loc = mu, scale = sigma; not used: 'id'
    >>> wc.as_predictions(frame, **guess.roles)
    <Normal: 2 predictions>
    """
    table = Table(frame)
    if not len(table):
        raise ValueError("the data frame has no rows: at least one is needed")
    targets = list(select(table.names, target_columns(table) if target is None else target, "target").names)
    rest = [name for name in table.names if name not in targets]
    readings = _readings(table, rest, len(targets) > 1) or _class_columns(table, targets, rest)
    if not readings:
        raise ValueError(
            "no columns have names that say what was predicted, such as mu and sigma, p_*, q_0.1, draw_* "
            f"or rate; the columns are {names_text(table.names, 12)}; say it, e.g. normal=('mu', 'sigma'), "
            "probs=['no', 'yes'] or samples='s0:s99'"
        )
    if len(readings) > 1:
        choices = " or ".join(f"[{reading.words()}]" for _, reading in readings)
        ((keyword, value),) = readings[0][0].items()
        example = f"{keyword}={reprlib.repr(value)}"
        raise ValueError(f"the columns can be read as {choices}; say which, e.g. {example}")
    roles, reading = readings[0]
    if numbers := [name for name in reading.columns if not table.holds_lists(name)]:
        table.numbers_or_nan(numbers)
    unused = tuple(name for name in rest if name not in reading.columns)
    return GuessedRoles(targets[0] if len(targets) == 1 else tuple(targets), roles, unused, reading.words())


def target_columns(table: Table) -> str | tuple[str, ...]:
    """Return the column with the name of a target, or numbered ones; raise if none is clear."""
    named = [name for name in table.names if name.lower() in TARGETS]
    if len(named) == 1:
        return named[0]
    if named:
        choices = " or ".join(map(repr, named))
        raise ValueError(f"the targets may be {choices}; say which, e.g. target={named[0]!r}")
    numbered = [name for name in table.names if re.fullmatch(_NUMBERED, name.lower())]
    if len(numbered) > 1 and len({name.rstrip("0123456789") for name in numbered}) == 1:
        return tuple(numbered)
    likely = [name for name in table.names if _LIKELY & set(re.split(r"[^a-z]+", name.lower()))]
    example = f"{likely[0]!r}, if it is that one" if likely else ""
    raise ValueError(
        f"no column is called {', '.join(TARGETS[:-1])} or {TARGETS[-1]}; the columns are "
        f"{names_text(table.names, 12)}; say which holds the targets with target={example}"
    )


# -- by names ------------------------------------------------------------------------------------------


def _readings(table: Table, columns: Sequence[str], vectors: bool) -> list[Reading]:
    """All roles that the names of columns fit."""
    return [
        ({role.keyword: value}, resolve(table.names, role.keyword, value))
        for role in roles_by_keyword().values()
        if role.declared and _of_vectors(role) == vectors
        for value in _values(role, columns, table)
    ]


def _of_vectors(role: Role) -> bool:
    """True if targets are vectors: a parameter is one, and stands neither for classes nor for draws."""
    if role.of_roles or issubclass(role.family, Samples):
        return False
    return any(role.parameters[name].ndim > 1 and not role.parameters[name].named for name in role.needed)


def _values(role: Role, columns: Sequence[str], table: Table) -> list[Any]:
    """Values of a role that the names of columns fit, as `resolve` takes them."""
    patterns = _of_vectors(role)  # the parts that stars stand for tell which columns belong together
    candidates = [_candidates(role.parameters[name], columns, table, patterns) for name in role.needed]
    if role.of_roles:
        return []
    return [values[0] if len(values) == 1 else values for values in itertools.product(*candidates)]


def _candidates(spec: Parameter, columns: Sequence[str], table: Table, patterns: bool) -> list[Any]:
    """Columns that may be this parameter: single ones, or several with one beginning."""
    lists = {name for name in columns if name.lower() in spec.usual and table.holds_lists(name)}
    if spec.ndim == 1:
        second = [f"y_{name}" for name in spec.usual] + ["pred", "y_pred"] * ("mean" in spec.usual)
        usual = [name for name in columns if name.lower() in spec.usual and name not in lists]
        return usual or [name for name in columns if name.lower() in second]
    found: list[Any] = sorted(lists)
    for begin in (glob[:-1] for glob in spec.usual if glob.endswith("*")):
        many = [name for name in columns if name.lower().startswith(begin) and len(name) > len(begin)]
        many = [name for name in many if spec.named != "levels" or level_of(name) is not None]
        written = sorted({f"{name[: len(begin)]}*" for name in many})
        if len(many) > 1:
            as_globs = patterns or spec.named == "classes"
            found.append(many if not as_globs else written[0] if len(written) == 1 else written)
    return found


# -- by classes ----------------------------------------------------------------------------------------


def _class_columns(table: Table, targets: Sequence[str], rest: list[str]) -> list[Reading]:
    """Probabilities in columns that are called as the targets are, or in all columns.

    That is what ``pd.DataFrame(classifier.predict_proba(X), columns=classifier.classes_)`` has. The data
    confirm it: all targets are among the names, and sums are one up to rounding. Missing values are ignored.
    """
    if len(targets) > 1 or table.holds_lists(targets[0]):
        return []
    there = Table(table.rows_where(~table.missing(targets[0])))
    try:
        y = there.labels(targets[0])
    except TypeError:
        return []
    labels, numeric = set(map(str, y.tolist())), y.dtype.kind in "iuf"
    named = [name for name in rest if name in labels or (numeric and says_number(name))]
    for names in (named, rest):
        if len(names) < 2 or not labels or not _are_among(labels, names):
            continue
        if names is rest and not all(map(table.is_numeric, names)):
            continue
        rows = table.numbers_or_nan(names)
        rows = rows[~np.isnan(rows).any(axis=1)]
        gaps = np.abs(rows.sum(axis=1) - 1.0)
        if len(rows) and (rows >= 0.0).all() and gaps.max() <= rounding_of_sums(len(names)):
            return [({"probs": names}, resolve(table.names, "probs", names))]
    return []


def _are_among(labels: set[str], names: list[str]) -> bool:
    numbers = {float(name) for name in names if says_number(name)}
    return all(label in names or (says_number(label) and float(label) in numbers) for label in labels)
