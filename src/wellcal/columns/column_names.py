"""What names of columns say: which classes probabilities belong to, and which levels quantiles."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, cast

from wellcal._arrays.namespaces import NDArray
from wellcal.columns.frames import shown_names
from wellcal.columns.number_texts import says_number

_LEVEL = re.compile(r"[^0-9]*?(\d*\.\d+|\d+(?:\.\d*)?)\s*(%?)", re.ASCII)
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})", re.ASCII)
TRUTH = {"true": True, "false": False}


def class_labels(parts: Sequence[str], targets: NDArray | None = None) -> list[Any]:
    """Names of classes as labels of the kind that `targets` are; whole numbers where all of them are.

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
    kind = None if targets is None else targets.dtype.kind
    if kind == "b" and all(part.lower() in TRUTH for part in parts):
        return [TRUTH[part.lower()] for part in parts]
    if kind in (None, "b", "i", "u", "f") and all(_WHOLE.fullmatch(part) for part in parts):
        return [int(part) for part in parts]
    if kind is not None and kind in "iuf":
        if not all(map(says_number, parts)):
            return list(parts)
        numbers = [float(part) for part in parts]
        if len(set(numbers)) < len(set(parts)):
            twice = next(x for k, x in enumerate(numbers) if x in numbers[:k])
            same = [part for part, x in zip(parts, numbers, strict=True) if x == twice]
            raise ValueError(
                f"the classes {shown_names(same)} are one number, and the targets are numbers; give targets "
                "as texts that are written as the classes are"
            )
        return numbers
    return list(parts)


def only_texts(names: Sequence[str]) -> bool:
    """Whether one of the names of classes would be lost among numbers: ``V27`` is none, and ``01`` not 1.

    Nor are ``250.0`` and ``250.00`` two of them.

    Examples
    --------
    >>> only_texts(["250", "V27"]), only_texts(["01", "02"]), only_texts(["0", "0.5"]), only_texts(["True"])
    (True, True, False, False)
    >>> only_texts(["250.0", "250.00"]), only_texts(["1.1", "1.10"]), only_texts(["-1", "1.0"])
    (True, True, False)
    """
    if all(name.lower() in TRUTH for name in names):
        return False
    if not all(map(says_number, names)):
        return True
    numbers = [float(name) for name in names]
    alike = len(set(numbers)) < len(set(names))
    return alike or not all(map(_is_spelled, names, numbers))


def _is_spelled(name: str, number: float) -> bool:
    """Whether a name is how a finite number is usually written, with or without a point where it is whole."""
    if not math.isfinite(number):
        return False
    return name == repr(number) or (number.is_integer() and name == str(int(number)))


def labels_like(classes: Any, targets: NDArray | None) -> Any:
    """Labels as they were given; texts, which a command line has only, are of the kind that `targets` are.

    Examples
    --------
    >>> import numpy as np
    >>> labels_like(["0", "1"], np.array([1, 0])), labels_like(["0", "1"], None)
    ([0, 1], ['0', '1'])
    """
    if targets is None or not isinstance(classes, (list, tuple)):
        return classes
    names = cast("Sequence[Any]", classes)
    return class_labels(names, targets) if all(isinstance(name, str) for name in names) else names


def free_name(name: str, taken: Sequence[str]) -> str:
    """`name`, with a number after it where it is taken.

    Examples
    --------
    >>> free_name("scale", ["y"]), free_name("scale", ["y", "scale"])
    ('scale', 'scale_2')
    """
    numbered = (f"{name}_{k}" for k in itertools.count(2))
    return next(free for free in itertools.chain([name], numbered) if free not in taken)


def level_of(name: str) -> float | None:
    """The level that the name of a column ends with, between 0 and 1; None where it says none.

    ``q_0.1`` and ``q10`` are the level 0.1, ``q2.5`` and ``q_2.5%`` are 0.025. Three digits without a point
    may be percents or thousandths, so that ``q100`` says nothing.

    Examples
    --------
    >>> [level_of(name) for name in ("q_0.1", "q10", "q05", "q97.5", "q_2.5%", "quality", "q100")]
    [0.1, 0.1, 0.05, 0.975, 0.025, None, None]
    """
    match = _LEVEL.fullmatch(name.strip())
    if match is None:
        return None
    text, percent = match[1], bool(match[2])
    value = float(text)
    if "." not in text and len(text) > 2:
        return None
    in_percent = percent or "." not in text or value > 1
    level = _shifted(text) if in_percent else value
    return level if 0 < level < 1 else None


def _shifted(percents: str) -> float:
    """Percents as a level, rounded once: 2.5 / 100 is not 0.025 in binary."""
    return float(f"{percents}e-2")


def _are_counted(found: Sequence[float]) -> bool:
    """Whether levels are 1, 2, 3 ... percent, and end before a half: numbers of deciles, or of draws."""
    percents = sorted(round(100 * level) for level in found)
    return percents == list(range(1, len(percents) + 1)) and len(percents) < 50


def levels(names: Sequence[str], role: str) -> list[float]:
    """Levels that the names of columns say, or an error that tells how to give them.

    Examples
    --------
    >>> levels(["q10", "q50", "q90"], "quantiles")
    [0.1, 0.5, 0.9]
    """
    remedy = f"give them as {role}={{0.1: 'low', 0.9: 'high'}}"
    found = [level_of(name) for name in names]
    unread = [name for name, level in zip(names, found, strict=True) if level is None]
    if unread:
        raise ValueError(
            f"{role}: {shown_names(unread)} say no level between 0 and 1, as q_0.1 and q10 do; {remedy}"
        )
    known = [level for level in found if level is not None]
    if not any(sign in name for name in names for sign in ".%") and (
        max(known) <= 0.04 or _are_counted(known)
    ):
        raise ValueError(
            f"{role}: {shown_names(names)} may be percents, or quantiles that are numbered, such as "
            f"quartiles and deciles; {remedy}"
        )
    if len(set(known)) < len(known):
        level = next(x for k, x in enumerate(known) if x in known[:k])
        same = [name for name, x in zip(names, known, strict=True) if x == level]
        raise ValueError(f"{role}: {shown_names(same)} say the same level {level:g}; {remedy}")
    return known
