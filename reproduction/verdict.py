"""What an experiment says about the published numbers, and whether a run has to end with an error."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reproduction.known import KNOWN, Known
from reproduction.ranks import ALPHA, Ranking, Repeated, rank


@dataclass(frozen=True)
class Verdict:
    """Published numbers of an experiment among our repeats, and what is wrong.

    Attributes
    ----------
    ranking
        All numbers, placed.
    label
        How the page names a number.
    known
        Mismatches that were declared, by number, and are there.
    problems
        Sentences, one for each thing that is wrong; none if all is as it should be.
    """

    ranking: Ranking[Any]
    label: Callable[[Any], str]
    known: dict[Any, Known]
    problems: list[str]

    @property
    def missed(self) -> list[Any]:
        """Numbers that are not matched and not declared."""
        return [key for key in self.ranking.missed if key not in self.known]


def judge(
    name: str,
    numbers: Mapping[Any, Repeated],
    label: Callable[[Any], str],
    *,
    quick: bool,
    group: Callable[[Any], Hashable] | None = None,
    known: Sequence[Known] = KNOWN,
) -> Verdict:
    """Place the numbers of an experiment, and say what is wrong.

    A quick run has too few repeats to see a declared mismatch: there the list is not checked, and its
    numbers are set aside.

    Examples
    --------
    >>> import numpy as np
    >>> repeats = np.random.default_rng(0).normal(size=199)
    >>> numbers = {"a": Repeated(0.1, repeats), "b": Repeated(50.0, repeats[::-1])}
    >>> judge("x", numbers, str, quick=False).problems[0]
    'x: b is not matched: published 50, ours 0.0124, p = 0.005 after correction'
    >>> judge("x", numbers, str, quick=False, known=[Known("x", "b", "a slip of the pen")]).problems
    []
    >>> judge("x", numbers, str, quick=False, known=[Known("x", "a", "no reason")]).problems[-1]
    'x: a is declared as not matched (no reason), and is matched: take it off the list'
    """
    keys: dict[str, Hashable] = {label(key): key for key in numbers}
    listed = {
        keys[entry.number]: entry for entry in known if entry.experiment == name and entry.number in keys
    }
    ranking = rank(numbers, group=group, set_aside=frozenset(listed))
    problems: list[str] = []
    for key in ranking.missed:
        if key not in listed:
            cell = ranking.cells[key]
            problems.append(
                f"{name}: {label(key)} is not matched: published {cell.published:.3g}, ours {cell.ours:.3g}, "
                f"p = {cell.corrected:.2g} after correction"
            )
    if not ranking.pooled_matched:
        problems.append(
            f"{name}: all numbers together are not matched: p = {ranking.pooled:.2g}, at most {0.5 * ALPHA:g}"
        )
    if not quick:
        problems += _stale(name, keys, ranking, known)
    found = {key: entry for key, entry in listed.items() if key in ranking.missed}
    return Verdict(ranking, label, found, problems)


def _stale(name: str, keys: Mapping[str, Any], ranking: Ranking[Any], known: Sequence[Known]) -> list[str]:
    """Entries of the list of known mismatches that are none."""
    problems: list[str] = []
    for entry in known:
        if entry.experiment != name:
            continue
        if entry.number not in keys:
            problems.append(f"{name}: {entry.number} is declared as not matched, and is no published number")
        elif keys[entry.number] not in ranking.missed:
            problems.append(
                f"{name}: {entry.number} is declared as not matched ({entry.reason}), and is matched: "
                "take it off the list"
            )
    return problems
