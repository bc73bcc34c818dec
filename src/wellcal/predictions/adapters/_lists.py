"""Lists of single distributions as one batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import has, is_array
from wellcal.predictions import Predictions
from wellcal.predictions.adapters._scipy import check_single, stack_frozen
from wellcal.predictions.adapters._scipy_continuous import ScipyContinuous
from wellcal.predictions.adapters.registry import ADAPTERS, converted
from wellcal.predictions.batches import concatenate


def is_list_of_objects(obj: object) -> bool:
    """Whether `obj` is a list with something other than numbers, rows of numbers or NumPy arrays."""
    if not isinstance(obj, list):
        return False
    items = cast("list[Any]", obj)
    plain = (int, float, complex, str, bytes, np.generic, np.ndarray, Sequence)
    return any(not isinstance(item, plain) and not has(item, "__array__") for item in items) or any(
        is_array(item) and not isinstance(item, np.ndarray) for item in items
    )


def from_list(items: list[Any]) -> Predictions:
    """Single distributions of one family, one for each prediction."""
    for position, item in enumerate(items):
        if isinstance(item, Predictions):
            raise TypeError(
                "a list of predictions is ambiguous: an ensemble is wc.Mixture(list); for more cases, "
                "build one batch from the concatenated parameters"
            )
        if is_array(item):
            raise TypeError("a list of arrays is not understood: stack them into one array of probabilities")
        adapter = ADAPTERS.find(item)
        if adapter is None or not adapter.in_lists:
            raise TypeError(
                f"item {position} of the list is of type {type(item).__name__}, which is not understood; "
                f"give {ADAPTERS.understood()}"
            )
    stacked = stack_frozen(items)
    if stacked is not None:
        return stacked
    batches = [converted(item) for item in items]
    for position, batch in enumerate(batches):
        check_single(len(batch), position)
    if len(batches) > 1 and all(isinstance(batch, ScipyContinuous) for batch in batches):
        raise TypeError(
            "a list of these scipy.stats distributions cannot be joined; give one distribution whose "
            "parameters are arrays with one entry for each prediction"
        )
    names = [f"item {position}" for position in range(len(batches))]
    return concatenate(batches, names, "distributions in a list")
