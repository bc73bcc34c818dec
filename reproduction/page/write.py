"""The page that sets our numbers beside the published ones."""

from __future__ import annotations

from pathlib import Path

from reproduction.catalogue import EXPERIMENTS
from reproduction.compare import ALPHA
from reproduction.page.machine import describe_machine
from reproduction.page.markdown import paragraph, table
from reproduction.run import Finished
from reproduction.store import write_through
from reproduction.tasks import Settings


def matches(found: list[Finished]) -> dict[str, tuple[int, int]]:
    """For each experiment with published numbers: how many of them are matched, of how many."""
    return {
        each.experiment.name: each.experiment.count(each.summary)
        for each in found
        if each.experiment.count is not None
    }


def write_page(settings: Settings, found: list[Finished], out: Path) -> Path:
    """Draw the figures, and write ``reproduction.md`` into the folder `out`; its path."""
    lines = _head(settings, found) + _overview(matches(found))
    for each in found:
        names = each.experiment.draw(each.summary, out / "reproduction" / "figures")
        lines += [f"## {each.experiment.title}", "", *each.experiment.section(each.summary, names)]
    path = out / "reproduction.md"
    write_through(path, "\n".join(lines).encode())
    return path


def _head(settings: Settings, found: list[Finished]) -> list[str]:
    names = [each.experiment.name for each in found]
    named = "all" if len(names) == len(EXPERIMENTS) else " ".join(names)
    command = f"python -m reproduction {named} --seed {settings.seed}{' --quick' * settings.quick}"
    minutes = ", ".join(f"{each.experiment.name} {each.seconds / 60:.1f}" for each in found)
    rows = {**describe_machine(), "command": f"`{command}`", "minutes on one core": minutes}
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


def _overview(matched: dict[str, tuple[int, int]]) -> list[str]:
    if not matched:
        return []
    rows = [[name, str(total), str(some), str(total - some)] for name, (some, total) in matched.items()]
    return [
        *paragraph(
            f"""
            Bounds are simultaneous: in each experiment a faithful reproduction shows any mismatch at all
            with probability {ALPHA:g} at most (Bonferroni), given the chance in our numbers and in the
            published ones.
            """
        ),
        *table(["experiment", "published numbers", "matched", "not matched"], rows),
    ]
