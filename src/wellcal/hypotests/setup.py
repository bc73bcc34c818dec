"""From a user's arguments to what methods work on."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import check_same_length
from wellcal._arrays.namespaces import NDArray, is_array, to_numpy
from wellcal.engines import Engine, choose_engine
from wellcal.expectations.lowering import Lowering, in_numpy
from wellcal.hypotests.base import Setup
from wellcal.hypotests.progress import Progress
from wellcal.kernels.base import Kernel
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.adapters import as_predictions
from wellcal.predictions.base import as_generator
from wellcal.predictions.inputs import check_truth_first
from wellcal.problem.defaults import default_kernel
from wellcal.problem.problem import prepare_checked


def make_setup(
    y: object,
    pred: object,
    kernel: Kernel | None = None,
    *,
    rng: int | np.random.Generator | None = None,
    n_resamples: int = 999,
    groups: object = None,
    expectations: str | Lowering = "auto",
    engine: str | Engine = "auto",
    pool: bool = False,
    progress: Progress | None = None,
) -> Setup:
    """Check input and prepare it, in NumPy.

    With `pool`, predictions that are draws are replaced by the draws pooled with their target, which
    are exchangeable under calibration.
    """
    check_truth_first(y)
    given = as_predictions(pred)
    targets = to_numpy(given.check_targets(y))
    predictions = batch = numpy_batch(given)
    draws: int | None = None
    if pool and isinstance(predictions, Samples) and predictions.kind == "draws":
        draws = int(predictions.values.shape[1])
        predictions = pool_draws(targets, predictions)
    chosen = default_kernel(predictions, expectations=expectations) if kernel is None else kernel
    problem = prepare_checked(targets, predictions, chosen, expectations=expectations)
    return Setup(
        targets=targets,
        predictions=predictions,
        given=batch,
        problem=problem,
        engine=choose_engine(engine, problem),
        rng=as_generator(rng),
        n_resamples=n_resamples,
        expectations=expectations,
        pooled=draws,
        groups=_clusters(groups, len(predictions)),
        progress=Progress() if progress is None else progress,
    )


def pool_draws(targets: NDArray, samples: Samples) -> Samples:
    """Each target among its draws, as S + 1 atoms of equal weight; the target comes last."""
    values = np.concatenate([np.asarray(samples.values), targets[:, None, ...]], axis=1)
    return Samples(values, kind="atoms")


def numpy_batch(predictions: Predictions) -> Predictions:
    """The same batch in NumPy; objects stay as they are."""
    if isinstance(predictions, Samples) and predictions.holds_objects:
        return predictions
    return in_numpy(predictions)


def _clusters(groups: Any, n: int) -> NDArray | None:
    """Clusters numbered 0 .. G - 1."""
    if groups is None:
        return None
    labels = to_numpy(groups) if is_array(groups) else np.asarray(groups)
    if labels.dtype.kind in "US" and not is_array(groups):
        labels = np.asarray(groups, dtype=object)  # a list of texts may have gaps, which are no texts
    if labels.ndim != 1:
        raise ValueError(f"groups must be 1-dimensional, one label for each case, found shape {labels.shape}")
    check_same_length(len(labels), "groups", n, "predictions")
    absent = labels != labels if labels.dtype.kind != "O" else np.array([_is_missing(x) for x in labels])
    missing = np.flatnonzero(absent)
    if len(missing):
        raise ValueError(
            f"groups has no label in row {missing[0]}; give cases that stand alone a label of their own"
        )
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError:  # labels of several types have no order
        numbers: dict[Any, int] = {}
        return np.array([numbers.setdefault(label, len(numbers)) for label in labels])


def _is_missing(label: Any) -> bool:
    """Whether a label is None, or one of the values that do not equal themselves."""
    same = label == label
    return label is None or not (isinstance(same, (bool, np.bool_)) and bool(same))
