"""Witnesses of cases in partitions: of a sample of these."""

from __future__ import annotations

from typing import Any


def witness(y: object, pred: object, *arguments: Any, **options: Any) -> Any:
    """Refuse, with the remedy: groups are searched case by case."""
    raise TypeError(
        "witness looks at single cases, and is not supported for cases in partitions; take a sample of them, "
        "for which its statements are exact: wc.witness(*wellcal.dask.sample_cases(y, pred, 100_000, rng=0))"
    )
