"""Published numbers among repeats, in words and cells of tables."""

from __future__ import annotations

from typing import Any

from reproduction.page.markdown import number, paragraph
from reproduction.ranks import ALPHA, Placed
from reproduction.verdict import Verdict

HEAD = ["published", "bounds", "repeats below", "p"]
"""Heads of the columns of `cells`."""


def cells(found: Placed) -> list[str]:
    """The published number, where it is accepted, its rank, and its corrected p-value."""
    if found.left_out:
        pvalue = "left out"
    else:
        pvalue = f"{found.corrected:.3f}" if found.matched else f"**{found.corrected:.3f}**"
    return [
        number(found.published),
        f"{number(found.low)} .. {number(found.high)}",
        f"{found.below:g} of {found.count}",
        pvalue,
    ]


def overview(verdict: Verdict) -> list[str]:
    """What is matched and what is not, and what could not have failed, by name."""
    ranking = verdict.ranking
    total, compared = len(ranking.cells), len(ranking.compared)
    matched = compared - len(ranking.missed)
    lines = paragraph(
        f"""
        {matched} of {compared} published numbers are matched. All of them together have p =
        {ranking.pooled:.3f}, and {"are matched" if ranking.pooled_matched else "**are not matched**"} (level
        {0.5 * ALPHA:g}).
        """
    )
    if verdict.missed:
        lines += ["Not matched:", "", *(f"- {verdict.label(key)}" for key in verdict.missed), ""]
    if verdict.known:
        lines += ["Not matched, and why:", ""]
        lines += [f"- {verdict.label(key)}: {known.reason}" for key, known in verdict.known.items()]
        lines.append("")
    if ranking.left_out:
        lines += paragraph(
            f"""
            {total - compared} more are left out, because their bounds cover all possible values, so that
            they could not fail: {"; ".join(_grouped(verdict, ranking.left_out))}.
            """
        )
    return lines + _outside(list(ranking.compared.values()))


def _grouped(verdict: Verdict, keys: list[Any]) -> list[str]:
    """Names of numbers, those that differ in their last part only in one."""
    groups: dict[str, list[str]] = {}
    for key in keys:
        head, _, tail = verdict.label(key).rpartition(", ")
        groups.setdefault(head, []).append(tail)
    return [f"{head}, {', '.join(tails)}" if head else ", ".join(tails) for head, tails in groups.items()]


def _outside(found: list[Placed]) -> list[str]:
    """Numbers beyond all repeats: some are to be expected."""
    repeats = found[0].count
    beyond = sum(cell.below in (0.0, float(repeats)) for cell in found)
    expected = 2.0 * len(found) / (repeats + 1.0)
    return paragraph(
        f"""
        {beyond} of them lie{"s" * (beyond == 1)} below or above all {repeats} repeats, where
        {len(found)} × 2 / {repeats + 1} = {expected:.1f} are expected of one more repeat.
        """
    )
