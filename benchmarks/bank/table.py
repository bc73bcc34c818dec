"""Tables of what a run has stored: power, losses against rivals, and type I error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import environment, results
from benchmarks.bank.alternatives import of_half
from benchmarks.bank.designs import DESIGNS
from benchmarks.bank.paired import Loss, standard_error
from benchmarks.bank.record import NULL, names_of_nulls, path_of
from benchmarks.bank.rivals import RIVALS
from benchmarks.bank.settings import FULL, Settings
from benchmarks.bank.store import load
from benchmarks.results import Section
from benchmarks.studies import Rate

Array = Any
NAME = "bank"


@dataclass(frozen=True)
class Row:
    """Rejections of all tests for one error and number of cases.

    Attributes
    ----------
    name, n
        The error, or calibrated model, and the number of cases.
    ours
        Rejections of `auto`, ``(sets,)``.
    rivals, parts
        Rejections of rivals, and of the parts of `auto` alone, by name.
    """

    name: str
    n: int
    ours: Array
    rivals: dict[str, Array]
    parts: dict[str, Array]

    @property
    def power(self) -> float:
        return float(np.mean(self.ours))

    @property
    def sets(self) -> int:
        return len(self.ours)

    def losses(self, settings: Settings) -> dict[str, Loss]:
        """Losses against those rivals whose power is neither small nor near to one."""
        return {
            rival: Loss.of(self.ours, rejected)
            for rival, rejected in self.rivals.items()
            if settings.least <= np.mean(rejected) <= settings.most and not RIVALS[rival].told
        }

    def failures(self, settings: Settings) -> list[str]:
        """Rivals that `auto` is too far behind, with certainty."""
        return [
            f"{self.name}, n = {self.n}: {rival}, {loss.value:.2f} behind, at least {bound:.2f}"
            for rival, loss in self.losses(settings).items()
            if (bound := loss.lower(settings.confidence)) > allowed(rival, settings)
        ]


def allowed(rival: str, settings: Settings) -> float:
    """How far `auto` may be behind a rival."""
    return settings.directed_margin if RIVALS[rival].directed else settings.margin


def read(folder: Path, names: Iterable[str], settings: Settings = FULL) -> list[Row]:
    """What is stored of these errors, smaller numbers of cases first."""
    rows: list[Row] = []
    listed = list(names)
    for n, _ in settings.sets:
        for name in listed:
            found = load(path_of(folder, name, n))
            if found is None or "pvalues" not in found:
                continue
            rivals = found["rival_pvalues"] <= settings.alpha
            parts = found["part_pvalues"] <= settings.alpha
            rows.append(
                Row(
                    name,
                    n,
                    found["pvalues"] <= settings.alpha,
                    dict(zip(found["rival_names"].tolist(), rivals.T, strict=True)),
                    dict(zip(found["part_names"].tolist(), parts.T, strict=True)),
                )
            )
    return rows


# -- power -----------------------------------------------------------------------------------


def power_table(rows: list[Row], settings: Settings = FULL) -> str:
    """A line for each error: `auto`, the best rivals, and the largest loss."""
    lines: list[tuple[str, ...]] = []
    for row in rows:
        power = {rival: float(np.mean(rejected)) for rival, rejected in row.rivals.items()}
        told = sorted(power, key=lambda rival: -power[rival])
        part = max(row.parts, key=lambda name: float(np.mean(row.parts[name])), default="")
        lines.append(
            (
                row.name,
                str(row.n),
                f"{row.power:.2f} ± {standard_error(row.power, row.sets):.2f}",
                f"{part} {np.mean(row.parts[part]):.2f}" if part else "",
                ", ".join(f"{rival} {power[rival]:.2f}" for rival in told[:4]),
                _loss_text(row, settings),
            )
        )
    header = ("error", "n", "auto", "best part", "rivals, the best four", "largest loss over what is allowed")
    return results.table(header, lines)


def _loss_text(row: Row, settings: Settings) -> str:
    losses = row.losses(settings)
    if not losses:
        return "no rival between"
    worst = max(losses, key=lambda rival: losses[rival].lower(settings.confidence) - allowed(rival, settings))
    loss = losses[worst]
    verdict = "" if loss.lower(settings.confidence) <= allowed(worst, settings) else " too far"
    bound = loss.lower(settings.confidence)
    return f"{worst} {loss.value:+.2f} (≥ {bound:+.2f}, allowed {allowed(worst, settings):.2f}){verdict}"


def average_table(rows: list[Row], settings: Settings = FULL) -> tuple[str, list[str]]:
    """Mean power of rivals and of `auto` over the errors they apply to, and the rivals that are ahead."""
    lines: list[tuple[str, ...]] = []
    behind: list[str] = []
    for rival in RIVALS:
        having = [row for row in rows if rival in row.rivals]
        if not having:
            continue
        ours, theirs = _means(having, rival)
        between = [row for row in having if rival in row.losses(settings)]
        if ours < theirs and not RIVALS[rival].told:
            behind.append(f"{rival}: {theirs:.3f} on average over {len(having)} rows, auto {ours:.3f}")
        there = "{:.2f} / {:.2f}".format(*_means(between, rival)) if between else ""
        kind = "knows a direction" if RIVALS[rival].directed else "no direction"
        kind = "is told the error" if RIVALS[rival].told else kind
        lines.append((rival, kind, str(len(having)), f"{ours:.2f} / {theirs:.2f}", str(len(between)), there))
    header = (
        "rival",
        "",
        "rows",
        "auto / rival",
        f"rows between {settings.least:g} and {settings.most:g}",
        "auto / rival there",
    )
    return results.table(header, lines), behind


def _means(rows: list[Row], rival: str) -> tuple[float, float]:
    ours = float(np.mean([row.power for row in rows]))
    return ours, float(np.mean([np.mean(row.rivals[rival]) for row in rows]))


# -- type I error ----------------------------------------------------------------------------


def type_one_table(rows: list[Row], settings: Settings = FULL) -> tuple[str, list[str]]:
    """Rejection rates of calibrated models, and those beyond their binomial bounds.

    The smallest of several p-values that tie stays below its level, so that bounds are from above.
    """
    lines: list[tuple[str, ...]] = []
    beyond: list[str] = []
    for row in rows:
        rate = Rate(int(np.sum(row.ours)), row.sets)
        within = rate.within(settings.alpha, settings.type_one_alpha / len(rows), upper_only=True)
        if not within:
            beyond.append(f"{row.name}, n = {row.n}: {rate} over {row.sets:,} data sets")
        rivals = [float(np.mean(rejected)) for rejected in row.rivals.values()]
        lines.append(
            (
                row.name.removeprefix(NULL),
                str(row.n),
                f"{rate} ± {standard_error(rate.value, row.sets):.3f}",
                "" if within else "too often",
                f"{min(rivals):.3f} to {max(rivals):.3f}",
            )
        )
    return results.table(("calibrated predictions", "n", "auto", "", "rivals"), lines), beyond


# -- the section -----------------------------------------------------------------------------


def section(folder: Path, half: str, settings: Settings = FULL) -> Section:
    """All tables of a run."""
    rows = read(folder, [error.name for error in of_half(half)], settings)
    calibrated = read(folder, names_of_nulls(), settings)
    if not rows and not calibrated:
        raise SystemExit(f"{folder} has nothing of this half; `run` it first")
    failures = [failure for row in rows for failure in row.failures(settings)]
    averages, behind = average_table(rows, settings)
    type_one, beyond = type_one_table(calibrated, settings)
    failures += behind + beyond
    body = (
        f"{len({row.name for row in rows})} errors ({_half_text(half)}), {len(DESIGNS)} kinds of "
        f"predictions; {_sets_text([*rows, *calibrated])};\n"
        f"{settings.resamples} resamples, alpha = {settings.alpha}. Sizes of errors "
        "were chosen by what rivals find, on other data sets. Rivals have\ntheir level from simulated null "
        "distributions. A loss is "
        "how much more often a rival rejects than `auto`, on the same data\nsets, in brackets its lower "
        f"{settings.confidence:.0%} bound; rivals whose power lies between {settings.least:g} and "
        f"{settings.most:g} are compared.\nAllowed are {settings.margin:g} for rivals that know no direction "
        f"(KS, AD, Neyman-4, Berkowitz, HL) and {settings.directed_margin:g} for\nthe others. Those that are "
        "told the error itself (RESET the curve, Breusch-Pagan the spread, others the class or\nthe "
        "coordinate) are shown and not compared.\n\n"
        f"{power_table(rows, settings)}\n\nMean power over errors, `auto` / rival:\n\n{averages}\n\n"
        f"Rejection rates of calibrated models; bounds: binomial, from above, "
        f"{settings.type_one_alpha:.0%} over all cells together.\n\n{type_one}\n\n"
        f"{_verdict(failures)}{_lacking(missing(folder, half, settings))}\n\n{environment.describe(None)}"
    )
    return Section(NAME, "A bank of errors, beside tests that specialists choose", body, tuple(failures))


def _sets_text(rows: list[Row]) -> str:
    """How many data sets there are for each number of cases."""
    found: dict[int, set[int]] = {}
    for row in rows:
        found.setdefault(row.n, set()).add(row.sets)
    return ", ".join(
        f"{' or '.join(f'{sets:,}' for sets in sorted(counts))} data sets at n = {n:,}"
        for n, counts in found.items()
    )


def missing(folder: Path, half: str, settings: Settings = FULL) -> list[str]:
    """What the settings want and a folder lacks."""
    names = [*(error.name for error in of_half(half)), *names_of_nulls()]
    found = {(row.name, row.n): row.sets for row in read(folder, names, settings)}
    return [
        f"{name}, n = {n}: {found.get((name, n), 0)} of {sets} data sets"
        for n, sets in settings.sets
        for name in names
        if found.get((name, n), 0) != sets
    ]


def _half_text(half: str) -> str:
    return {"all": "both halves of the bank"}.get(half, f'the half "{half}" of the bank')


def _lacking(cells: list[str]) -> str:
    """What a table does not show."""
    if not cells:
        return ""
    return f"\n\nNot run yet, {len(cells)} cells: {'; '.join(cell.rsplit(':', 1)[0] for cell in cells)}."


def _verdict(failures: list[str]) -> str:
    if not failures:
        return "All rows are within what is allowed."
    return "Not met:\n\n" + "\n".join(f"- {failure}" for failure in failures)


def main(folder: Path, half: str, write: bool, *, partial: bool = False) -> int:
    lacking = missing(folder, half)
    if write and lacking and not partial:
        raise SystemExit(f"not written, for the run is not complete: {'; '.join(lacking[:5])} ...")
    return results.tell(section(folder, half), write)
