"""The page that sets our numbers beside the published ones."""

from __future__ import annotations

from pathlib import Path

from reproduction.catalogue import EXPERIMENTS
from reproduction.page.markdown import paragraph, table
from reproduction.ranks import ALPHA
from reproduction.run import Finished
from reproduction.store import write_through
from reproduction.tasks import Settings


def write_page(settings: Settings, found: list[Finished], out: Path, machine: dict[str, str]) -> Path:
    """Draw the figures, and write ``reproduction.md`` into the folder `out`; its path."""
    lines = _head(settings, found, machine) + _overview(found)
    for each in found:
        names = each.experiment.draw(each.summary, out / "reproduction" / "figures")
        lines += [
            f"## {each.experiment.title}",
            "",
            *each.experiment.section(each.summary, names, each.verdict),
        ]
    path = out / "reproduction.md"
    write_through(path, "\n".join(lines).encode())
    return path


def _head(settings: Settings, found: list[Finished], machine: dict[str, str]) -> list[str]:
    names = [each.experiment.name for each in found]
    named = "all" if len(names) == len(EXPERIMENTS) else " ".join(names)
    command = f"python -m reproduction {named} --seed {settings.seed}{' --quick' * settings.quick}"
    minutes = ", ".join(f"{each.experiment.name} {each.seconds / 60:.1f}" for each in found)
    rows = {**machine, "command": f"`{command}`", "minutes on one core": minutes}
    facts = table(["run", ""], rows.items())
    facts[1] = "|---|---|"
    return [
        "# Reproduction of the paper",
        "",
        *paragraph(
            """
            The experiments of *Calibration tests beyond classification* (Widmann, Lindsten and Zachariah,
            ICLR 2021, appendix "Experiments"), run with wellcal, beside the numbers that the authors
            published with their own Julia implementation. This page is written by `make reproduce`,
            figures and all; open markers in figures are published numbers.
            """
        ),
        *(["**A quick run: few data sets, small sizes, wide bounds.**", ""] if settings.quick else []),
        *facts,
    ]


def _overview(found: list[Finished]) -> list[str]:
    verdicts = {each.experiment.name: each.verdict for each in found if each.verdict is not None}
    if not verdicts:
        return []
    rows: list[list[str]] = []
    for name, verdict in verdicts.items():
        ranking = verdict.ranking
        total, compared = len(ranking.cells), len(ranking.compared)
        rows.append(
            [
                name,
                str(total),
                str(total - compared),
                str(compared - len(ranking.missed)),
                str(len(verdict.missed)),
                str(len(verdict.known)),
                f"{ranking.pooled:.3f}",
            ]
        )
    problems = [problem for each in found for problem in each.problems]
    return [
        "## Are the published numbers ours?",
        "",
        *paragraph(
            f"""
            If we do what the authors did, the published experiment is one more repeat of ours, and every
            rank among them has the same probability. Two tests in each experiment rest on that, and on
            nothing else: each at level {0.5 * ALPHA:g}, so that a faithful reproduction fails in an
            experiment with probability {ALPHA:g} at most. For each number: its distance from the mean of the
            others, in their standard deviations, among the largest such distance over all numbers in each
            repeat ("p" in the tables, which is corrected for their number that way; "bounds" are where it
            would have been accepted). For all numbers together: x' (S + I)⁻¹ x of these distances, with
            their correlations S, taken over all numbers and over those of each method, in standard
            deviations over repeats; the largest of these among repeats. Distances are measured on the scales
            of the paper's figures: logarithms for errors, variances, MSE, pinball loss and biased SKCE,
            inverse hyperbolic sines for NLL and unbiased SKCE, and Anscombe's angle for proportions and
            p-values. Seeds, numbers of repeats, scales and statistics were fixed before the first full run,
            after small runs in which the planted errors of the last section had to be caught; but for the
            sums over methods, which were added after it. Without them the other bootstrap statistic, put in
            place of the authors' in all of that run, had p = 0.03.
            """
        ),
        *table(
            [
                "experiment",
                "published numbers",
                "left out",
                "matched",
                "not matched",
                "explained",
                "all together, p",
            ],
            rows,
        ),
        *(
            ["**Not as it should be:**", "", *(f"- {problem}" for problem in problems), ""]
            if problems
            else paragraph("Nothing was found. What is planted on purpose is: see the last section.")
        ),
        *paragraph(
            """
            Not compared are published times, which are those of another machine and language, the ranges
            over the ten models of the Friedman problem (their means are), and what each experiment names
            below.
            """
        ),
    ]
