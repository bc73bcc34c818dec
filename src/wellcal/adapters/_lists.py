"""Lists of single distributions as one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from wellcal._array import concat_rows, namespace
from wellcal.adapters._scipy_continuous import ScipyContinuous
from wellcal.predictions import Predictions
from wellcal.predictions._parameters import same_dtype


def single(batch: Predictions, position: int) -> Predictions:
    """`batch`, which must be one distribution: a list of batches could also mean an ensemble."""
    check_single(len(batch), position)
    return batch


def check_single(n: int, position: int) -> None:
    """Reject an item of a list that is not one distribution."""
    if n != 1:
        raise ValueError(
            f"item {position} of the list is a batch of {n} distributions; a list holds one distribution for "
            "each prediction. An ensemble is wc.Mixture([wc.as_predictions(member) for member in members])"
        )


def join(batches: Sequence[Predictions]) -> Predictions:
    """Batches of one family, one after the other."""
    first: Any = batches[0]
    for position, batch in enumerate(batches):
        if type(batch) is not type(first):
            raise TypeError(
                f"a list must hold distributions of one family, found {type(first).__name__} as item 0 and "
                f"{type(batch).__name__} as item {position}"
            )
        if batch.event_shape != first.event_shape:
            raise ValueError(
                "distributions in a list must have targets of one shape, "
                f"found {first.event_shape} in item 0 and {batch.event_shape} in item {position}"
            )
    if len(batches) == 1:
        return first
    if isinstance(first, ScipyContinuous):
        raise TypeError(
            "a list of these scipy.stats distributions cannot be joined; give one distribution whose "
            "parameters are arrays with one entry for each prediction"
        )
    _check_shared(batches)
    changed: dict[str, Any] = {}
    for name in first._children:
        groups = [getattr(batch, name) for batch in batches]
        if len({len(group) for group in groups}) > 1:
            raise ValueError(
                "mixtures in a list must have the same number of components; add components of weight zero"
            )
        changed[name] = tuple(join(members) for members in zip(*groups, strict=True))
    for name in first._arrays:
        arrays = [getattr(batch, name) for batch in batches]
        if arrays[0] is not None:
            namespace(*arrays)  # two libraries are an error
            changed[name] = concat_rows(same_dtype(arrays))
    return first._with(**changed)


def _check_shared(batches: Sequence[Predictions]) -> None:
    """Reject distributions that differ in what a batch has in common, such as the support."""
    first: Any = batches[0]
    own = {*first._arrays, *first._children}
    for name in [field.name for field in fields(first) if field.name not in own]:
        for position, batch in enumerate(batches):
            if not np.array_equal(getattr(batch, name), getattr(first, name)):
                raise ValueError(
                    f"distributions in a list must have the same {name}, "
                    f"and that of item {position} differs from that of item 0"
                )
