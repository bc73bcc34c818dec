"""One kernel for several models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel
from wellcal.predictions import Bernoulli, Categorical, Mixture, Predictions
from wellcal.predictions.batches import concatenate
from wellcal.problem.defaults import SUBSAMPLE, default_kernel

TWO = ("pred_a", "pred_b")
"""What two models are called where they have no names."""


def pooled_kernel(
    *batches: Predictions, names: Sequence[str] = TWO, expectations: str | Lowering = "auto"
) -> Kernel:
    """Default kernel of several batches together, of one family or of several.

    Examples
    --------
    >>> from wellcal.predictions import Laplace, Normal
    >>> import numpy as np
    >>> a, b = Normal(np.arange(4.0), 1.0), Laplace(np.arange(4.0), 1.0)
    >>> type(pooled_kernel(a, b).predictions.metric).__name__
    'MaximumMeanDiscrepancy'
    """
    pooled = _pooled(batches, names)
    if pooled is not None:
        return default_kernel(pooled, expectations=expectations)
    try:
        mixture = _alternatives(batches)
    except (TypeError, ValueError) as error:
        models = [f"{name}, {type(batch).__name__}" for name, batch in zip(names, batches, strict=True)]
        listed = f"both {models[0]}, and {models[1]}" if len(models) == 2 else f"all of {'; '.join(models)}"
        raise TypeError(
            f"no kernel is known that serves {listed}: {error}; give all in one family, for example as "
            "Samples, or give kernel="
        ) from error
    return default_kernel(mixture, expectations=expectations)


def _pooled(batches: Sequence[Predictions], names: Sequence[str]) -> Predictions | None:
    """All in one batch, where they are of one family."""
    classes = (Bernoulli, Categorical)
    if all(isinstance(batch, classes) for batch in batches) and len({type(batch) for batch in batches}) > 1:
        given: list[Any] = list(batches)
        if not all(np.array_equal(given[0].labels(), batch.labels()) for batch in given):
            return None
        named = next(batch for batch in given if isinstance(batch, Categorical))
        batches = [Categorical(batch.class_probs(), named.classes, named.support) for batch in given]
    try:
        return concatenate(batches, names, " and ".join(names))
    except (TypeError, ValueError):
        return None


def _alternatives(batches: Sequence[Predictions]) -> Mixture:
    """All in one batch of mixtures, each of one component that counts."""
    if len({batch.kind == "classes" for batch in batches}) > 1:
        raise ValueError("some of them predict classes and the others do not")
    count, n = len(batches), len(batches[0])
    m = min(n, SUBSAMPLE // count)
    chosen = np.sort(np.random.default_rng(0).choice(n, m, replace=False))
    index = np.tile(chosen, count)
    weights = np.repeat(np.eye(count), m, axis=0)
    return Mixture([batch[index] for batch in batches], weights)
