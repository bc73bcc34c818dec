"""Arrays, frames, pairs and lists as predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

import wellcal.predictions as wp
from wellcal._arrays.checks import plain_array
from wellcal._arrays.namespaces import has, is_array, namespace
from wellcal._arrays.row_errors import retell
from wellcal.columns.frames import is_frame
from wellcal.columns.labels import labels_of
from wellcal.predictions.adapters.registry import ADAPTERS, converted
from wellcal.predictions.adapters.scipy_stats import ScipyContinuous
from wellcal.predictions.base import Predictions
from wellcal.predictions.batches import concatenate
from wellcal.predictions.class_names import column_names

_ENSEMBLE = "an ensemble is wc.Mixture([wc.as_predictions(member) for member in members])"
_NO_ROLE = (
    "a data frame without a role holds a column of probabilities for each class and nothing else: say which "
    "columns are what, such as probs=['no', 'yes'] or normal=('mu', 'sigma')"
)


def is_table(obj: object) -> bool:
    """True if an object is an array, a list, or something that becomes an array."""
    return is_array(obj) or isinstance(obj, list) or has(obj, "__array__")


def from_probabilities(obj: object) -> Predictions:
    """Read probabilities of one of two classes, ``(n,)``, or of all classes, ``(n, C)``."""
    if is_frame(obj):
        return _from_frame(obj)
    array = plain_array(obj, "predictions")
    given = array if labels_of(obj) is None else obj
    if array.ndim == 1:
        return wp.Bernoulli(given)
    if array.ndim == 2:
        return wp.Categorical(given if column_names(obj) is None else obj)
    raise ValueError(
        "an array of predictions holds probabilities of shape (n,) or (n, C), "
        f"found shape {tuple(array.shape)}; draws from a model are wc.Samples(values)"
    )


def with_classes(probs: Any, classes: Any) -> Predictions:
    """Read probabilities ``(n, C)`` of the classes of a model; classes numbered from 0 need no names.

    Examples
    --------
    >>> with_classes(np.array([[0.2, 0.8]]), ["no", "yes"]).labels()
    array(['no', 'yes'], dtype='<U3')
    >>> with_classes(np.array([[0.2, 0.3, 0.5]]), [0, 1, 2])
    <Categorical: 1 predictions>
    """
    names = np.asarray(classes)
    numbered = names.dtype.kind in "iub" and np.array_equal(names, np.arange(len(names)))
    batch = wp.Categorical(probs, classes=None if numbered else names)
    if len(names) != 2:
        return batch
    return wp.Bernoulli(batch.probs[:, 1], classes=batch.classes).with_index(batch.case_index)


def _from_frame(frame: Any) -> Predictions:
    """Read a data frame without a role: a column of probabilities for each class."""
    try:
        named = column_names(frame) is not None or labels_of(frame) is not None
        return wp.Categorical(frame if named else plain_array(frame, "predictions"))
    except (TypeError, ValueError) as error:
        retell(error, more=_NO_ROLE)


def from_pair(pair: tuple[Any, ...]) -> Predictions:
    """Read means with standard deviations or covariances."""
    if len(pair) != 2:
        raise ValueError(
            f"a tuple of predictions is (mu, sigma), found {len(pair)} entries; give probabilities as a list"
        )
    adapters = [ADAPTERS.find(part) for part in pair if not isinstance(part, Predictions)]
    if len(adapters) < len(pair) or any(adapter is not None and adapter.in_lists for adapter in adapters):
        raise TypeError(f"a tuple of predictions is (mu, sigma), found distributions in it; {_ENSEMBLE}")
    mu, sigma = plain_array(pair[0], "mu"), plain_array(pair[1], "sigma")
    given = tuple(mu.shape), tuple(sigma.shape)
    if mu.ndim == 0 and sigma.ndim in (1, 2):
        mu = namespace(mu).broadcast_to(mu, given[1])
    elif sigma.ndim == 0 and mu.ndim in (1, 2):
        sigma = namespace(sigma).broadcast_to(sigma, given[0])
    shape, other = tuple(mu.shape), tuple(sigma.shape)
    mu, sigma = (
        part if labels_of(part) is not None else array for part, array in zip(pair, (mu, sigma), strict=True)
    )
    if shape == other and len(shape) in (1, 2):
        return wp.Normal(mu, sigma) if len(shape) == 1 else wp.DiagonalNormal(mu, sigma)
    if len(shape) == 2 and other in ((*shape, shape[1]), (shape[1], shape[1])):
        return wp.MultivariateNormal(mu, sigma)
    raise ValueError(
        "a tuple (mu, sigma) must have shapes (n,) and (n,), (n, d) and (n, d), or (n, d) and (n, d, d), "
        f"found {given[0]} and {given[1]}; nothing is broadcast but single numbers and one covariance (d, d)"
    )


# -- lists of single distributions ---------------------------------------------------------------------


def is_list_of_objects(obj: object) -> bool:
    """True for a list with something other than numbers, rows of numbers or NumPy arrays."""
    plain = (int, float, complex, str, bytes, np.generic, np.ndarray, Sequence)
    items = cast("list[Any]", obj) if isinstance(obj, list) else []
    return any(
        not isinstance(item, plain) and (is_array(item) or not has(item, "__array__")) for item in items
    )


def from_list(items: list[Any]) -> Predictions:
    """Join single distributions of one family, one for each prediction."""
    for position, item in enumerate(items):
        if isinstance(item, Predictions):
            raise TypeError("a list of predictions is ambiguous: an ensemble is wc.Mixture(list)")
        if is_array(item):
            raise TypeError("a list of arrays is not understood: stack them into one array of probabilities")
        adapter = ADAPTERS.find(item)
        if adapter is None or not adapter.in_lists:
            kind = type(item).__name__
            raise TypeError(f"item {position} of the list is of type {kind}; give {ADAPTERS.understood()}")
    batches = {f"item {position}": converted(item) for position, item in enumerate(items)}
    for name, batch in batches.items():
        if len(batch) != 1:
            raise ValueError(f"{name} of the list is a batch of {len(batch)} distributions; {_ENSEMBLE}")
    if len(batches) > 1 and all(isinstance(batch, ScipyContinuous) for batch in batches.values()):
        raise TypeError("these distributions cannot be joined; give one whose parameters are arrays")
    return concatenate(list(batches.values()), list(batches), "distributions in a list")
