"""Roles of columns guessed by their names and kinds, and roles as they are written on a command line."""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import one_of
from wellcal._arrays.domains import whole_numbers
from wellcal.columns.column_names import level_of
from wellcal.columns.frames import Table, shown_names
from wellcal.columns.selection import listed, select
from wellcal.predictions.fields import Parameter
from wellcal.predictions.fitting import (
    EXACT,
    called_by_classes,
    columns_of_probabilities,
    fitting_readings,
    misfit,
)
from wellcal.predictions.roles import ColumnReading, Role, known_roles, resolve
from wellcal.predictions.samples import Samples

TARGETS = ("y", "y_true", "target", "label", "actual")
"""Names that columns of targets usually have."""

COUNTED = ("count", "counts")
"""Names of targets where counts are predicted: elsewhere these may be anything."""

LIKELY = {
    *("actual", "actuals", "answer", "class", "happened", "observation", "observed", "obs", "outcome"),
    *("real", "realised", "realized", "response", "result", "target", "true", "truth", "y"),
}
"""Words in names of columns that are likely to hold targets, for the example of an error."""

_NUMBERED = f"(?:{'|'.join(TARGETS)})_?[0-9]+"
_POINTS = ("pred", "y_pred")  # predictions by a single number: means, where a spread stands beside them
_MOST_READINGS = 20
_FEWEST_DRAWS = 5  # that are called by a letter


@dataclass(frozen=True)
class GuessedRoles:
    """What :func:`guess_roles` would take from where.

    Parameters
    ----------
    target
        The column of targets; several, as a tuple, where these are vectors.
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
        """What would be taken, in words, to be shown before it is used."""
        left = f"; not used: {shown_names(self.unused)}" if self.unused else ""
        targets = self.target if isinstance(self.target, str) else ", ".join(self.target)
        return f"target: {targets}; {self._words}{left}"

    def __str__(self) -> str:
        return self.words()


def guess_roles(frame: object, target: str | Sequence[str] | None = None) -> GuessedRoles:
    """Say which columns look like targets and predictions, by their names and kinds.

    Targets are called y, y_true, target, label or actual, or count where a rate is predicted; vectors y_0,
    y_1 and so on. Predictions are columns with the usual names of a family's parameters: mu and sigma (mean,
    loc; sd, std, scale), p_* (prob_*, probs_*, proba_*), q* with levels, draw_* (sample_*, s0 to s4 and
    beyond; a column of lists called draws or samples), rate (lambda), p (prob, probs, proba, probability), in
    small letters or large; for vectors mu_* and sigma_*, or mu_* and cov_*. Where no column has such a name,
    y_std stands for std, y_prob for prob and so on, and pred or y_pred for a mean that has a spread. Columns
    that are called by the classes are probabilities if they add up to one, or to what rounding makes of it,
    and all targets are among their names. Readings that the targets do not fit, such as a rate where these
    are texts, or one probability where they are many numbers that are not whole, are left aside. Where two
    readings fit, or none does, the error says which, and nothing is chosen. A family that derives from
    another, with the same parameters, is not guessed.

    Parameters
    ----------
    frame
        A data frame of pandas, polars or pyarrow.
    target
        The column of targets, or columns of vectors, where they are known.

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
    known = target_columns(table) if target is None else target
    targets = select(table.names, known, "target").names
    rest = {name: name.lower() for name in table.names if name not in targets}
    vectors = len(targets) > 1
    usable = {name: low for name, low in rest.items() if table.is_numeric(name) or table.holds_lists(name)}
    named = _readings(table, usable, vectors)
    found = fitting_readings(table, targets, named)
    if not found and (classes := called_by_classes(table, targets)):
        found = [({"probs": classes}, resolve(table.names, "probs", classes))]
    commas = "" if found else table.about_commas(list(rest))
    if named and not found:
        raise misfit(table, targets, named, commas)
    if not found:
        for _, reading in _readings(table, rest, vectors):
            table.numbers(reading.columns)  # they have the names, and an error says why they hold no numbers
        raise ValueError(
            "no columns have names that say what was predicted, such as mu and sigma, p_*, q_0.1, draw_* "
            f"or rate; the columns are {shown_names(table.names, 12)}; {_no_single_numbers(table, rest)}"
            + (commas or f"say it, e.g. {_example(table, targets)}")
        )
    if len(found) > 1:
        readings = " or ".join(f"[{reading.words()}]" for _, reading in found[:4])
        more = f" or {len(found) - 4} more" if len(found) > 4 else ""
        ((keyword, value),) = found[0][0].items()
        example = f"{keyword}={_short(table, value)!r}"
        raise ValueError(f"the columns can be read as {readings}{more}; say which, e.g. {example}")
    roles, reading = found[0]
    used = {*targets, *reading.columns}
    left = tuple(name for name in table.names if name not in used)
    return GuessedRoles(targets if vectors else next(iter(targets)), roles, left, reading.words())


def _no_single_numbers(table: Table, columns: dict[str, str]) -> str:
    """Which columns have the name of a parameter, and hold lists or truth values; empty if none does."""
    usual = {
        name
        for role in known_roles().values()
        for spec in role.parameters.values()
        if spec.ndim == 1
        for name in spec.usual
    }
    found = [name for name, low in columns.items() if low in usual and not table.is_numeric(name)]
    hold = "lists, and no single numbers" if any(map(table.holds_lists, found)) else "no numbers"
    return f"{shown_names(found)} hold{'s' if len(found) == 1 else ''} {hold}; " if found else ""


def _example(table: Table, targets: Sequence[str]) -> str:
    """A role that the columns may have, by their values, as an example: nothing is taken for granted."""
    rest = [name for name in table.names if name not in targets and table.is_numeric(name)]
    if len(classes := columns_of_probabilities(table, targets)) > 1:
        return f"probs={_short(table, classes)!r}"
    beginnings = Counter(re.sub(r"[0-9.]+%?$", "", name) for name in rest if level_of(name) is not None)
    if beginnings and (common := beginnings.most_common(1)[0])[1] > 1:
        pattern = re.compile(rf"{re.escape(common[0])}[0-9.]+%?")
        alike = [name for name in rest if pattern.fullmatch(name)]
        # By numbers, and not by levels: .1 and .10 are different.
        counted = f"{common[0]}0" in rest or f"{common[0]}1" in rest or _say_the_same_level(alike)
        value = f"{common[0]}*" if common[0] else _short(table, alike)  # a star alone is the target, too
        return f"{'samples' if counted else 'quantiles'}={value!r}"
    if len(rest) == 1 == len(targets):
        try:
            both = table.numbers_or_nan([*targets, *rest])
        except TypeError:
            return f"bernoulli={rest[0]!r}"
        y, x = both[~np.isnan(both).any(axis=1)].T
        if len(x) and x.min() >= 0.0 and (y >= 0.0).all() and (y == np.floor(y)).all():
            return f"{'bernoulli' if x.max() <= 1.0 else 'poisson'}={rest[0]!r}"
    return "normal=('mu', 'sigma')"


def _say_the_same_level(names: Sequence[str]) -> bool:
    found = [level for name in names if (level := level_of(name)) is not None]
    return len(set(found)) < len(found)


def proposed_role(frame: object) -> str:
    """What the columns of a frame look like, with the role to give; empty where their names say nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> proposed_role(pd.DataFrame({"mu": [0.0], "sigma": [1.0]}))
    "[normal: loc = mu, scale = sigma], which is as_predictions(frame, normal=('mu', 'sigma'))"
    """
    try:
        table = Table(frame)
    except (ImportError, TypeError, ValueError):
        return ""
    usable = [name for name in table.names if table.is_numeric(name) or table.holds_lists(name)]
    columns = {name: name.lower() for name in usable}
    found = [
        (roles, reading)
        for vectors in (False, True)
        for roles, reading in _readings(table, columns, vectors)
        # All columns as classes is what a frame without a role is already.
        if "probs" not in roles or len(reading.columns) < len(table.names)
    ]
    told = [
        f"[{reading.words()}], which is as_predictions(frame, {keyword}={_short(table, value)!r})"
        for roles, reading in found[:2]
        for keyword, value in roles.items()
    ]
    return "; or ".join(told) or _classes_among(table)


def _classes_among(table: Table) -> str:
    """The same for columns that add up to one and have any names, beside others."""
    numbers = [name for name in table.names if table.is_numeric(name)]
    if not numbers:
        return ""
    values = table.numbers_or_nan(numbers)
    inside: list[int] = np.flatnonzero(((values >= 0.0) & (values <= 1.0)).all(axis=0)).tolist()
    names = [numbers[k] for k in inside]
    if not 1 < len(names) < len(table.names) or (abs(values[:, inside].sum(axis=1) - 1.0) > EXACT).any():
        return ""
    words = resolve(table.names, "probs", names).words()
    return f"[{words}], which is as_predictions(frame, probs={_short(table, names)!r})"


def _short(table: Table, value: Any) -> Any:
    """Many columns as a range, where they are one."""
    if not isinstance(value, list):
        return value
    columns = cast("list[str]", value)
    text = f"{columns[0]}:{columns[-1]}"
    try:
        return text if list(select(table.names, text, "range").names) == columns else columns
    except ValueError:
        return columns


def _readings(
    table: Table, columns: dict[str, str], vectors: bool
) -> list[tuple[dict[str, Any], ColumnReading]]:
    """All roles that the names of columns fit, these by their names in small letters."""
    found: list[tuple[dict[str, Any], ColumnReading]] = []
    for role in known_roles().values():
        usual = role.built_in or role.declared  # others have the names of another, and their own keyword
        if usual and _of_vectors(role) == vectors:
            found.extend(
                ({role.keyword: value}, resolve(table.names, role.keyword, value))
                for value in _values(role, columns, table)
            )
    return found


def _of_vectors(role: Role) -> bool:
    """Whether targets are vectors: a parameter is one, and stands neither for classes nor for a sample."""
    if role.of_roles or issubclass(role.family, Samples):
        return False
    return any(spec.ndim > 1 and spec.named is None for spec in map(role.parameters.get, role.needed) if spec)


def target_columns(table: Table) -> str | tuple[str, ...]:
    """The column that is called as targets are, or columns that are numbered; an error if none is clear."""
    found = [name for name in table.names if name.lower() in TARGETS]
    if len(found) == 1:
        return found[0]
    numbered = [name for name in table.names if re.fullmatch(_NUMBERED, name.lower())]
    if not found and len(numbered) > 1 and len({name.rstrip("0123456789") for name in numbered}) == 1:
        return tuple(numbered)
    if not found and (counts := _counts_beside_rates(table)) is not None:
        return counts
    if found:
        raise ValueError(
            f"the targets may be {' or '.join(map(repr, found))}; say which, e.g. target={found[0]!r}"
        )
    likely = next((name for name in table.names if LIKELY & set(re.split(r"[^a-z]+", name.lower()))), None)
    raise ValueError(
        f"no column is called {', '.join(TARGETS[:-1])} or {TARGETS[-1]}; the columns are "
        f"{shown_names(table.names, 12)}; say which holds the targets with target="
        + ("" if likely is None else f"{likely!r}, if it is that one")
    )


def _counts_beside_rates(table: Table) -> str | None:
    """The column of counts, where all that the others can be is predictions of counts."""
    found = [name for name in table.names if name.lower() in COUNTED]
    if len(found) != 1:
        return None
    rest = {name: name.lower() for name in table.names if name not in found and table.is_numeric(name)}
    families = [
        known_roles()[keyword].family for roles, _ in _readings(table, rest, False) for keyword in roles
    ]
    counts = [family.target_domain is whole_numbers for family in families]
    return found[0] if counts and all(counts) else None


def _values(role: Role, columns: dict[str, str], table: Table) -> list[Any]:
    """Values of a role that the names of columns fit, as `resolve` takes them."""
    paired = _of_vectors(role)  # by what the stars of their parameters stand for
    candidates = [_candidates(role.parameters[name], columns, table, paired) for name in role.needed]
    if role.of_roles or not all(candidates):
        return []
    chosen = itertools.islice(itertools.product(*candidates), _MOST_READINGS)
    return [values[0] if len(values) == 1 else values for values in chosen]


def _candidates(spec: Parameter, columns: dict[str, str], table: Table, paired: bool) -> list[Any]:
    """Columns that may be this parameter: single ones, or several that match one glob."""
    if spec.ndim == 1:
        single = {name: low for name, low in columns.items() if not table.holds_lists(name)}
        usual = [name for name, low in single.items() if low in spec.usual]
        return usual or [name for name, low in single.items() if _second_choice(low, spec)]
    found: list[Any] = []
    for glob in spec.usual:
        fitting = set(fnmatch.filter(columns.values(), glob))
        matched = [name for name, low in columns.items() if low in fitting]
        if "*" not in glob:  # the name of one column, which holds them all
            found.extend(name for name in matched if table.holds_lists(name))
            continue
        if spec.named == "levels":
            matched = [name for name in matched if level_of(name) is not None]
        if "[0-9]" in glob:
            matched = _alone(glob.removesuffix("[0-9]*"), matched, columns)
        if len(matched) > 1:
            found.append(_pattern(glob, matched) if paired or spec.named == "classes" else matched)
    return found


def _second_choice(name: str, spec: Parameter) -> bool:
    """Whether a column may be this parameter where none has its usual name: of y_std, y_pred and such."""
    of_target = name.startswith("y_") and name.removeprefix("y_") in spec.usual
    return of_target or (name in _POINTS and "mean" in spec.usual)


def _alone(letter: str, matched: Sequence[str], columns: dict[str, str]) -> list[str]:
    """Columns of a letter and a number, if they are many, and no other columns have the same numbers.

    Those of s1, s2 beside m1, m2 are spreads of the parts of a mixture, and no draws.
    """
    numbers: dict[str, set[str]] = {}
    for low in columns.values():
        beginning = low.rstrip("0123456789")
        numbers.setdefault(beginning, set()).add(low[len(beginning) :])
    own = numbers.pop(letter, set())
    if len(own) < _FEWEST_DRAWS or own in numbers.values():
        return []
    return [name for name in matched if name[len(letter) :].isdecimal()]


def _pattern(glob: str, matched: Sequence[str]) -> Any:
    """The glob itself, for what its star stands for; with the beginning as it is written in the frame."""
    written = {name[: len(glob) - 1] for name in matched}
    return [f"{beginning}*" for beginning in sorted(written)] if len(written) > 1 else f"{written.pop()}*"


# -- as texts ------------------------------------------------------------------------------------------


def role_from_text(keyword: str, text: str) -> Any:
    """The value of a role as it is written on a command line.

    Columns are separated by commas, the parameters of families of vectors by semicolons, and the parts of a
    mixture by plus signs, each with its weight after an at sign. What is no column but a number stands for
    all rows. A name with a comma in it stands in quotation marks.

    Examples
    --------
    >>> role_from_text("normal", "mu,sigma")
    ('mu', 'sigma')
    >>> role_from_text("student_t", "5,mu,sigma")
    (5.0, 'mu', 'sigma')
    >>> role_from_text("normal", '"yield, kg",sigma')
    ('yield, kg', 'sigma')
    >>> role_from_text("probs", "p_*")
    ['p_*']
    >>> role_from_text("quantiles", "0.1=low,0.9=high")
    {0.1: 'low', 0.9: 'high'}
    >>> role_from_text("diagonal_normal", "mu_*;sigma_*")
    (['mu_*'], ['sigma_*'])
    >>> role_from_text("diagonal_normal", "mu_*;1")
    (['mu_*'], 1.0)
    >>> role_from_text("mixture", "normal:m1,s1@w1 + normal:m2,s2@w2")[1]
    {'normal': ('m2', 's2'), 'weight': 'w2'}
    """
    role = known_roles()[one_of(keyword, "role of columns", known_roles())]
    if role.of_roles:
        return [_part(item) for item in text.split("+")]
    specs = [role.parameters[name] for name in role.needed]
    if len(specs) == 1 and specs[0].ndim > 1:
        entries = listed(text)
        if specs[0].named == "levels" and all("=" in entry for entry in entries):
            return _levels(entries, keyword)
        return entries
    if any(spec.ndim > 1 for spec in specs):
        if ";" not in text:
            form = ";".join(f"{name}_*" for name in role.needed)
            raise ValueError(
                f"{keyword} takes {role.takes()}; write a semicolon between them, such as '{form}', found "
                f"{text!r}"
            )
        return tuple(_numbers_or_names(group) for group in text.split(";"))
    values = tuple(_number_or_name(entry) for entry in listed(text))
    return values[0] if len(values) == 1 else values


def _levels(entries: list[str], keyword: str) -> dict[float, str]:
    found: dict[float, str] = {}
    for entry in entries:
        level, _, column = entry.partition("=")
        try:
            found[float(level)] = column.strip()
        except ValueError:
            raise ValueError(f"{keyword}: {level!r} is no level; write 0.1=low,0.9=high") from None
    return found


def _part(text: str) -> dict[str, Any]:
    rest, _, weight = text.partition("@")
    keyword, colon, columns = rest.strip().partition(":")
    if not colon:
        raise ValueError(f"a part of a mixture is written as normal:mu,sigma@weight, found {text.strip()!r}")
    part: dict[str, Any] = {keyword.strip(): role_from_text(keyword.strip(), columns)}
    if weight.strip():
        part["weight"] = _number_or_name(weight.strip())
    return part


def _numbers_or_names(text: str) -> Any:
    entries = listed(text)
    number = _number_or_name(entries[0]) if len(entries) == 1 else None
    return number if isinstance(number, float) else entries


def _number_or_name(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text
