"""Roles of columns as they are written on a command line."""

from __future__ import annotations

from typing import Any

from wellcal._arrays.checks import one_of
from wellcal.columns.number_texts import says_number
from wellcal.columns.selection import listed
from wellcal.predictions.column_roles import roles_by_keyword


def role_from_text(keyword: str, text: str) -> Any:
    """Read the value of a role as it is written on a command line.

    Columns are separated by commas, the parameters of families of vectors by semicolons, and the parts of a
    mixture by plus signs, each with its weight after an at sign. A number stands for all rows. A name with a
    comma in it stands in quotation marks.

    Examples
    --------
    >>> role_from_text("student_t", "5,mu,sigma"), role_from_text("probs", "p_*")
    ((5.0, 'mu', 'sigma'), ['p_*'])
    >>> role_from_text("normal", '"yield, kg",sigma')
    ('yield, kg', 'sigma')
    >>> role_from_text("quantiles", "0.1=low,0.9=high")
    {0.1: 'low', 0.9: 'high'}
    >>> role_from_text("diagonal_normal", "mu_*;1")
    (['mu_*'], 1.0)
    >>> role_from_text("mixture", "normal:m1,s1@w1 + normal:m2,s2@w2")[1]
    {'normal': ('m2', 's2'), 'weight': 'w2'}
    """
    role = roles_by_keyword()[one_of(keyword, "role of columns", roles_by_keyword())]
    if role.of_roles:
        return [_part(item) for item in text.split("+")]
    specs = [role.parameters[name] for name in role.needed]
    entries = listed(text)
    if all(spec.ndim == 1 for spec in specs):
        values = tuple(map(_number_or_name, entries))
        return values[0] if len(values) == 1 else values
    if len(specs) == 1:
        by_level = specs[0].named == "levels" and all("=" in entry for entry in entries)
        return _levels(entries, keyword) if by_level else entries
    if ";" not in text:
        form = ";".join(f"{name}_*" for name in role.needed)
        raise ValueError(
            f"{keyword} takes {role.takes()}; write a semicolon between them, such as '{form}', found "
            f"{text!r}"
        )
    groups = [listed(group) for group in text.split(";")]
    numbers = [_number_or_name(group[0]) if len(group) == 1 else "" for group in groups]
    return tuple(
        number if isinstance(number, float) else group for number, group in zip(numbers, groups, strict=True)
    )


def _levels(entries: list[str], keyword: str) -> dict[float, str]:
    pairs = [entry.partition("=") for entry in entries]
    for level, _, _ in pairs:
        if not says_number(level):
            raise ValueError(f"{keyword}: {level!r} is no level; write 0.1=low,0.9=high")
    return {float(level): column.strip() for level, _, column in pairs}


def _part(text: str) -> dict[str, Any]:
    rest, _, weight = text.partition("@")
    keyword, colon, columns = rest.strip().partition(":")
    if not colon:
        raise ValueError(f"a part of a mixture is written as normal:mu,sigma@weight, found {text.strip()!r}")
    part: dict[str, Any] = {keyword.strip(): role_from_text(keyword.strip(), columns)}
    return part | ({"weight": _number_or_name(weight.strip())} if weight.strip() else {})


def _number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
