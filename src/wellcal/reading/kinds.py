"""Columns of a text that are read as texts, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wellcal.reading.errors import library
from wellcal.reading.label_kinds import as_labels
from wellcal.reading.spellings import as_spelled


class ChangedKindError(ValueError):
    """A column goes on as something else than it begins with."""


@dataclass
class Kinds:
    """Columns that hold something else than pyarrow would find in them.

    Parameters
    ----------
    classes
        Columns of targets that are classes, with the names of these.
    spelled
        Columns with which nothing is computed, such as segments and groups: numbers only where these say all
        that is written.
    written
        Columns that are passed on as they are written.
    targets
        Columns of targets that are passed on, too: `kept` has their texts, and the table what these say.

    Examples
    --------
    >>> import pyarrow as pa
    >>> kinds = Kinds({"y": ("01", "02")}, ["zip"])
    >>> kinds.given_to(pa.table({"y": ["1"], "zip": ["02602"]}), ".").to_pydict()
    {'y': ['01'], 'zip': ['02602']}
    """

    classes: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    spelled: Sequence[str] = ()
    written: Sequence[str] = ()
    targets: Sequence[str] = ()
    kept: dict[str, Any] = field(default_factory=dict[str, Any], init=False)
    _begun: dict[str, str] = field(default_factory=dict[str, str], init=False)

    @property
    def texts(self) -> list[str]:
        """All of them, each once."""
        return list(dict.fromkeys([*self.classes, *self.spelled, *self.written, *self.targets]))

    def given_to(self, table: Any, decimal: str) -> Any:
        """The next rows of a file, with columns of texts as what they are."""
        self.kept = {name: table[name] for name in self.targets if name in table.column_names}
        for place, name in enumerate(table.column_names):
            if name in self.classes:
                table = table.set_column(place, name, as_labels(table[name], self.classes[name], decimal))
            elif name in self.spelled:
                table = table.set_column(place, name, self._as_begun(name, table[name], decimal))
            elif name in self.targets:
                table = table.set_column(place, name, as_spelled(table[name], decimal, exactly=False))
        return table

    def _as_begun(self, name: str, texts: Any, decimal: str) -> Any:
        """Labels of the kind that a column begins with: those of parts are then those of the whole file."""
        if self._begun.get(name) == _TEXTS:
            return texts
        found = as_spelled(texts, decimal)
        kind = _kind(found.type)
        if kind is not None and kind != self._begun.setdefault(name, kind):
            raise ChangedKindError(f"column {name!r} changes its kind from {self._begun[name]} to {kind}")
        return found


_TEXTS = "texts"


def _kind(type_: Any) -> str | None:
    """What a column holds, in words; None where it has no value yet."""
    types = library("pyarrow.types")
    if types.is_null(type_):
        return None
    if types.is_integer(type_) or types.is_floating(type_):
        return "numbers"
    if types.is_boolean(type_):
        return "truth values"
    return _TEXTS if types.is_string(type_) else "dates"
