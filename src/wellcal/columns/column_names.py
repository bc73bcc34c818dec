"""Meaning of names of columns: classes that probabilities belong to, and levels of quantiles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from wellcal._arrays.namespaces import NDArray
from wellcal.columns.frames import names_text
from wellcal.columns.number_texts import says_number

_LEVEL = re.compile(r"[^0-9]*?(\d*\.\d+|\d+(?:\.\d*)?)\s*(%?)", re.ASCII)
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})", re.ASCII)
TRUTH = {"true": True, "false": False}


def class_labels(parts: Sequence[str], targets: NDArray | None = None) -> list[Any]:
    """Convert names of classes to labels of the type of `targets`; to whole numbers if all of them are.

    Examples
    --------
    >>> import numpy as np
    >>> class_labels(["cat", "dog"]), class_labels(["0", "1"])
    (['cat', 'dog'], [0, 1])
    >>> class_labels(["0", "1"], np.array(["1", "0", "1"]))
    ['0', '1']
    >>> class_labels(["True", "False"], np.array([True, False]))
    [True, False]
    """
    kind = "i" if targets is None else targets.dtype.kind
    if kind == "b" and all(part.lower() in TRUTH for part in parts):
        return [TRUTH[part.lower()] for part in parts]
    if kind in "biuf" and all(_WHOLE.fullmatch(part) for part in parts):
        return [int(part) for part in parts]
    if targets is None or kind not in "iuf" or not all(map(says_number, parts)):
        return list(parts)
    numbers = [float(part) for part in parts]
    if twice := {x for x in numbers if numbers.count(x) > 1}:
        same = [part for part in dict.fromkeys(parts) if float(part) == min(twice)]
        raise ValueError(
            f"the classes {names_text(same)} are one number, and the targets are numbers; give targets "
            "as texts that are written as the classes are"
        )
    return numbers


def only_texts(names: Sequence[str]) -> bool:
    """True if one of the names of classes would be lost among numbers: ``V27`` is none, and ``01`` not 1.

    Examples
    --------
    >>> only_texts(["250", "V27"]), only_texts(["01", "02"]), only_texts(["0", "0.5"]), only_texts(["True"])
    (True, True, False, False)
    >>> only_texts(["250.0", "250.00"]), only_texts(["1.1", "1.10"]), only_texts(["-1", "1.0"])
    (True, True, False)
    """
    usual = {
        form for name in names if says_number(name) for form in (repr(float(name)), f"{float(name):.0f}")
    }
    numbers = [float(name) for name in names if name in usual]
    of_truth = all(name.lower() in TRUTH for name in names)
    return not of_truth and len(set(numbers)) < len(set(names))


def labels_like(classes: Any, targets: NDArray | None) -> Any:
    """Return labels as they are, but texts, as on a command line, of the type of `targets`.

    Examples
    --------
    >>> import numpy as np
    >>> labels_like(["0", "1"], np.array([1, 0])), labels_like(["0", "1"], None)
    ([0, 1], ['0', '1'])
    """
    listed = cast("Sequence[Any]", classes) if issubclass(type(classes), (list, tuple)) else [None]
    texts = targets is not None and all(isinstance(name, str) for name in listed)
    return class_labels(listed, targets) if texts else classes


def level_of(name: str) -> float | None:
    """Read the level that the name of a column ends with, between 0 and 1; None if it says none.

    ``q_0.1`` and ``q10`` are the level 0.1, ``q2.5`` and ``q_2.5%`` are 0.025. Three digits without a point
    may be percents or thousandths, so that ``q100`` says nothing.

    Examples
    --------
    >>> [level_of(name) for name in ("q_0.1", "q10", "q05", "q97.5", "q_2.5%", "quality", "q100")]
    [0.1, 0.1, 0.05, 0.975, 0.025, None, None]
    """
    match = _LEVEL.fullmatch(name.strip())
    if match is None or ("." not in match[1] and len(match[1]) > 2):
        return None
    share = "." in match[1] and not match[2] and float(match[1]) <= 1
    level = float(match[1] if share else f"{match[1]}e-2")  # rounded once: 2.5 / 100 is not 0.025
    return level if 0 < level < 1 else None


def levels(names: Sequence[str], role: str) -> list[float]:
    """Read levels from names of columns, or raise with the way to give them.

    Examples
    --------
    >>> levels(["q10", "q50", "q90"], "quantiles")
    [0.1, 0.5, 0.9]
    """
    remedy = f"give them as {role}={{0.1: 'low', 0.9: 'high'}}"
    read = [level for name in names if (level := level_of(name)) is not None]
    if len(read) < len(names):
        unread = [name for name in names if level_of(name) is None]
        raise ValueError(
            f"{role}: {names_text(unread)} say no level between 0 and 1, as q_0.1 and q10 do; {remedy}"
        )
    percents = sorted(round(100 * level) for level in read)
    counted = percents == list(range(1, len(percents) + 1)) and len(percents) < 50
    if not any(sign in name for name in names for sign in ".%") and (max(percents) <= 4 or counted):
        raise ValueError(
            f"{role}: {names_text(names)} may be percents, or quantiles that are numbered, such as "
            f"quartiles and deciles; {remedy}"
        )
    return read
