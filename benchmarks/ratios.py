"""Ratios of times that must not fall: a table of them is stored, and a run is compared with it."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from wellcal._arrays.files import write_whole

RATIOS = Path(__file__).with_name("ratios.csv")
HEADER = ("name", "ratio", "margin")
MARGIN = 0.35
"""Share of a stored ratio by which a run may stay below it: so much differ CPU ratios on a busy machine."""


@dataclass(frozen=True)
class Stored:
    """A ratio, and the share of it by which another run may stay below."""

    ratio: float
    margin: float

    @property
    def least(self) -> float:
        return self.ratio * (1.0 - self.margin)


def read(path: Path = RATIOS) -> dict[str, Stored]:
    """Stored ratios by name; none where there is no file."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {
            row["name"]: Stored(float(row["ratio"]), float(row["margin"])) for row in csv.DictReader(file)
        }


def write(found: dict[str, float], path: Path = RATIOS) -> None:
    """Store ratios; margins that were stored stay."""
    before = read(path)
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(HEADER)
    for name in sorted(found):
        margin = before[name].margin if name in before else MARGIN
        lines.writerow((name, f"{found[name]:.3g}", f"{margin:g}"))
    write_whole(path, text.getvalue())


def fallen(found: dict[str, float], stored: dict[str, Stored]) -> list[str]:
    """What to say of each ratio below its margin. What is not stored, or was not found, is not compared."""
    return [
        f"{name}: {ratio:.2f}, stored are {stored[name].ratio:.2f} and at least {stored[name].least:.2f}"
        for name, ratio in found.items()
        if name in stored and not ratio >= stored[name].least
    ]
