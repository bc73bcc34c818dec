"""Cases from a file, as the options say: roles that were guessed are shown before they are used."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from wellcal.cli.options import ReadOptions
from wellcal.cli.screen import read_from, say

ROWS = 1 << 17
"""Rows of a part of a file at most."""

_SMALL, _FIRST = 1_000_000, 100  # bytes of a table whose family does not matter, and rows that say what it is


def roles_of(given: ReadOptions) -> dict[str, dict[str, Any]]:
    """The role of the columns of each model, by a letter; empty where it is to be guessed."""
    if len(given.roles) > 1:
        flags = " and ".join(f"--{name.replace('_', '-')}" for name in given.roles)
        raise ValueError(f"one family is predicted, found {flags}; give one of them")
    first = _role(given, *next(iter(given.roles.items()))) if given.roles else _options(given)
    others = [_role(given, name, text) for name, text in given.versus]
    return {_letter(k): role for k, role in enumerate([first, *others])}


def _role(given: ReadOptions, keyword: str, text: str) -> dict[str, Any]:
    """A role with what is said of its family: names of classes, whether quantiles are sorted."""
    from wellcal.cli.role_texts import role_from_text
    from wellcal.predictions.column_roles import roles_by_keyword

    for name in ("classes", "grades"):
        if getattr(given, name) is not None and name not in roles_by_keyword()[keyword].options:
            raise ValueError(f"--{name} is for predictions of classes, found --{keyword.replace('_', '-')}")
    return {keyword: role_from_text(keyword, text), **_options(given)}


def _options(given: ReadOptions) -> dict[str, Any]:
    from wellcal.columns.selection import listed

    found: dict[str, Any] = {"sort": True} if given.sort else {}
    for name in ("classes", "grades"):
        if (text := getattr(given, name)) is not None:
            found[name] = listed(text)
    return found


def _letter(k: int) -> str:
    return chr(ord("A") + k) if k < 26 else f"model {k + 1}"


def others_of(given: ReadOptions) -> dict[str, str]:
    """All further columns with something for each case, and the options that name them."""
    singles = {"--groups": given.groups, "--weights": given.weights}
    named = {name: option for option, name in singles.items() if name is not None}
    return dict.fromkeys(given.segments or (), "--segments") | named


def read(
    given: ReadOptions,
    names: Sequence[str] | None = None,
    tested: int | None = None,
    searched: bool = False,
    other_columns: str = "inferred",
) -> Any:
    """All cases of a file, a :class:`wellcal.reading.ModelCases`; says what was guessed, and dropped.

    Parameters
    ----------
    given
        The options.
    names
        Names of the models in the place of letters.
    tested
        Cases that are tested at most, of all models together; None for all, of each.
    searched
        Whether groups of cases are looked for.
    other_columns
        What all other columns of a text are, as in :func:`wellcal.reading.read_models`.
    """
    from wellcal.reading import read_models
    from wellcal.reading.sizes import memory_size, refuse_too_large

    roles = roles_of(given)
    if names is not None:
        if len(names) != len(roles) or len(set(names)) < len(names):
            raise ValueError(f"--names must be {len(roles)} different names, found {','.join(names)}")
        roles = dict(zip(names, roles.values(), strict=True))
    limit = None if given.memory is None else memory_size(given.memory)
    count = len(roles) if tested is None else 1
    refuse_too_large(given.file, given.format, limit, _family(given), tested, count, searched)
    cases = read_models(
        given.file,
        given.target,
        models=roles,
        others=others_of(given),
        drop_missing=given.drop_missing,
        normalise=given.normalise,
        other_columns=other_columns,
        options=given.text_options,
    )
    read_from(given.file, cases.rows, given.format)
    told = list(cases.taken.values())
    say_guessed(given, told[0])
    if given.drop_missing:
        say_dropped(cases.dropped, cases.dropped + len(cases.y))
    return cases


def _family(given: ReadOptions) -> str | None:
    """The role of the predictions; of a file that is not small it is guessed from its first rows."""
    from wellcal.columns.frames import Table
    from wellcal.predictions.role_inference import guess_roles
    from wellcal.reading import read_batches
    from wellcal.reading.sizes import file_size

    if given.roles:
        return next(iter(given.roles))
    size = file_size(given.file, given.format)
    if size is None or size.rows is None or size.table < _SMALL:  # arrays would be read whole for it
        return None
    try:
        with contextlib.closing(read_batches(given.file, rows=_FIRST, **given.text_options)) as parts:
            return next(iter(guess_roles(Table(next(parts)), given.target).roles))
    except (ValueError, TypeError, OSError):  # whoever reads it says what is wrong
        return None


def say_guessed(given: ReadOptions, taken: str) -> None:
    """What was guessed of that which was taken, and nothing that was given."""
    target, _, predictions = taken.partition("; ")
    guessed = [target] * (given.target is None) + [predictions] * (not given.roles)
    if guessed:
        say(f"Guessed from the names of columns: {'; '.join(guessed)}.")


def say_dropped(dropped: int, total: int) -> None:
    """How many rows were left out."""
    rows = f"{dropped:,} of {total:,} rows" if dropped else "No rows"
    say(
        f"{rows} dropped: values are missing in them." if dropped else "No rows dropped: no value is missing."
    )


def batches(given: ReadOptions) -> Generator[Any]:
    """Cases of a file in parts, :class:`wellcal.reading.Cases`; says what was guessed, and dropped."""
    from wellcal.reading import case_batches

    ((_, role),) = roles_of(given).items()
    parts = case_batches(
        given.file,
        given.target,
        others=others_of(given),
        drop_missing=given.drop_missing,
        normalise=given.normalise,
        options={**given.text_options, "rows": ROWS},
        **role,
    )
    dropped = seen = 0
    for part in parts:
        if not seen:
            say_guessed(given, part.taken)
        dropped, seen = dropped + part.dropped, seen + len(part.y)
        yield part
    if given.drop_missing:
        say_dropped(dropped, dropped + seen)


def column_of(cases: Any, name: str | None) -> Any:
    """A further column of the cases, or None."""
    return None if name is None else cases.others[name]


def segment_columns(cases: Any, given: ReadOptions) -> dict[str, Any] | None:
    """Labels of segments by the name of their column, or None."""
    from wellcal.columns.selection import listed

    known: Mapping[str, Any] = cases.others
    names = [name for text in given.segments or () for name in ([text] if text in known else listed(text))]
    return {name: known[name] for name in names} if names else None


def described(given: ReadOptions, cases: Any) -> dict[str, Any]:
    """What was read, for JSON."""
    taken: Mapping[str, str] = cases.taken
    return {
        "file": given.file,
        "cases": len(cases.y),
        "dropped": cases.dropped,
        "taken": dict(taken) if len(taken) > 1 else next(iter(taken.values())),
    }
