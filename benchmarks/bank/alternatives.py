"""All errors of the bank, by name."""

from __future__ import annotations

from benchmarks.bank import classes, counts, ensembles, fresh, scalars, vectors
from benchmarks.bank.errors import HALVES, Error

ALTERNATIVES: dict[str, Error] = {
    error.name: error
    for module in (scalars, counts, classes, vectors, ensembles, fresh)
    for error in module.ERRORS
}


def of_half(half: str) -> list[Error]:
    """Errors of one half of the bank, or of both for "all"."""
    if half not in (*HALVES, "all"):
        raise ValueError(f"half must be one of {', '.join(HALVES)} or all, found {half!r}")
    return [error for error in ALTERNATIVES.values() if half in (error.half, "all")]
