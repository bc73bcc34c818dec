"""Two runs of the bank side by side: what is lost where a kernel of low rank stands in for all pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import environment, results
from benchmarks.bank.alternatives import ALTERNATIVES
from benchmarks.bank.paired import Loss
from benchmarks.bank.settings import FULL, Settings
from benchmarks.bank.table import Row, read
from benchmarks.results import Section

ALLOWED = 0.05
"""How much less may be found without all pairs."""


def losses(pairs: list[Row], low_rank: list[Row]) -> list[tuple[Row, Row, Loss]]:
    """Rows of both runs, on the data sets that both have."""
    other = {(row.name, row.n): row for row in low_rank}
    found: list[tuple[Row, Row, Loss]] = []
    for row in pairs:
        beside = other.get((row.name, row.n))
        if beside is not None:
            sets = min(row.sets, beside.sets)
            found.append((row, beside, Loss.of(beside.ours[:sets], row.ours[:sets])))
    return found


def section(pairs: Path, low_rank: Path, settings: Settings = FULL) -> Section:
    """A line for each error, those that lose most first."""
    rows = losses(*(read(folder, ALTERNATIVES, settings) for folder in (pairs, low_rank)))
    if not rows:
        raise SystemExit(f"{pairs} and {low_rank} have no error in common")
    rows.sort(key=lambda row: -row[2].value)
    lines: list[tuple[str, ...]] = []
    failures: list[str] = []
    for row, beside, loss in rows:
        sets = min(row.sets, beside.sets)
        if sets != settings.low_rank_sets:
            failures.append(
                f"{row.name}, n = {row.n}: {sets} data sets, {settings.low_rank_sets} are planned"
            )
        bound = loss.lower(settings.confidence)
        if bound > ALLOWED:
            failures.append(f"{row.name}, n = {row.n}: {loss.value:.2f} lost, at least {bound:.2f}")
        powers = (np.mean(each.ours[:sets]) for each in (row, beside))
        lines.append(
            (
                row.name,
                str(row.n),
                str(sets),
                *(f"{power:.2f}" for power in powers),
                f"{loss.value:+.3f} (≥ {bound:+.3f})",
            )
        )
    mean = float(np.mean([loss.value for _, _, loss in rows]))
    body = (
        "Power of `auto` with the SKCE over all pairs, and with a kernel of low rank, on the same data\n"
        f"sets; {settings.resamples} resamples, alpha = {settings.alpha}. In brackets the lower "
        f"{settings.confidence:.0%} bound of what is lost; allowed are {ALLOWED:g}. On average over errors "
        f"{mean:+.3f} are lost.\n\n"
        + results.table(("error", "n", "data sets", "all pairs", "low rank", "lost"), lines)
        + (
            "\n\nNo error loses more than is allowed."
            if not failures
            else "\n\nNot met:\n\n" + "\n".join(f"- {failure}" for failure in failures)
        )
        + f"\n\n{environment.describe(None)}"
    )
    return Section("bank-low-rank", "The bank without all pairs", body, tuple(failures))
