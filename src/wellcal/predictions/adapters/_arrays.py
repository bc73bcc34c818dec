"""Probabilities as predictions of classes, and pairs of arrays as normal predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import plain_array
from wellcal._arrays.namespaces import has, is_array, namespace
from wellcal._arrays.row_errors import retell
from wellcal.columns.frames import is_frame
from wellcal.columns.labels import labels_of
from wellcal.predictions import (
    Bernoulli,
    Categorical,
    DiagonalNormal,
    MultivariateNormal,
    Normal,
    Predictions,
)
from wellcal.predictions.adapters.registry import ADAPTERS
from wellcal.predictions.class_names import column_names


def is_table(obj: object) -> bool:
    """Whether an object is an array, a list, or something that becomes an array."""
    return is_array(obj) or isinstance(obj, list) or has(obj, "__array__")


def from_probabilities(obj: object) -> Predictions:
    """Probabilities of one of two classes, ``(n,)``, or of all classes, ``(n, C)``."""
    if is_frame(obj):
        return _from_frame(obj)
    array = plain_array(obj, "predictions")
    given = array if labels_of(obj) is None else obj
    if array.ndim == 1:
        return Bernoulli(given)
    if array.ndim == 2:
        return Categorical(given if column_names(obj) is None else obj)
    raise ValueError(
        "an array of predictions holds probabilities of shape (n,) or (n, C), "
        f"found shape {tuple(array.shape)}; draws from a model are wc.Samples(values)"
    )


def with_classes(probs: Any, classes: Any) -> Predictions:
    """Probabilities ``(n, C)`` of the classes of a model; classes that are numbered from 0 need no names.

    Examples
    --------
    >>> with_classes(np.array([[0.2, 0.8]]), ["no", "yes"]).labels()
    array(['no', 'yes'], dtype='<U3')
    >>> with_classes(np.array([[0.2, 0.3, 0.5]]), [0, 1, 2])
    <Categorical: 1 predictions>
    """
    names = np.asarray(classes)
    numbered = names.dtype.kind in "iub" and np.array_equal(names, np.arange(len(names)))
    batch = Categorical(probs, classes=None if numbered else names)
    if len(names) != 2:
        return batch
    return Bernoulli(batch.probs[:, 1], classes=batch.classes).with_index(batch.case_index)


def _from_frame(frame: Any) -> Predictions:
    """A data frame without a role: probabilities, with a column for each class.

    Where it holds something else, the error says which role its columns seem to have.
    """
    try:
        named = column_names(frame) is not None or labels_of(frame) is not None
        return Categorical(frame if named else plain_array(frame, "predictions"))
    except (TypeError, ValueError) as error:
        from wellcal.predictions.role_inference import proposed_role  # imports all families

        role = proposed_role(frame)
        if not role:
            remedy = "if not all columns are classes, name those that are: as_predictions(frame, probs=[...])"
            retell(error, more=remedy)
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"a data frame without a role holds a column of probabilities for each class, and this one does "
            f"not; its columns look like {role}"
        ) from error


def from_pair(pair: tuple[Any, ...]) -> Predictions:
    """Means with standard deviations or covariances."""
    if len(pair) != 2:
        raise ValueError(
            f"a tuple of predictions is (mu, sigma), found {len(pair)} entries; give probabilities as an "
            "array or a list, and an ensemble as wc.Mixture(members)"
        )
    if any(isinstance(part, Predictions) or _is_distribution(part) for part in pair):
        raise TypeError(
            "a tuple of predictions is (mu, sigma), found distributions in it; an ensemble is "
            "wc.Mixture([wc.as_predictions(member) for member in members])"
        )
    mu, sigma = plain_array(pair[0], "mu"), plain_array(pair[1], "sigma")
    shapes = tuple(mu.shape), tuple(sigma.shape)
    if mu.ndim == 0 and sigma.ndim in (1, 2):
        mu = namespace(mu).broadcast_to(mu, shapes[1])
    elif sigma.ndim == 0 and mu.ndim in (1, 2):
        sigma = namespace(sigma).broadcast_to(sigma, shapes[0])
    found = tuple(mu.shape), tuple(sigma.shape)
    mu, sigma = (
        part if labels_of(part) is not None else array for part, array in zip(pair, (mu, sigma), strict=True)
    )
    if found[0] == found[1] and mu.ndim in (1, 2):
        return Normal(mu, sigma) if mu.ndim == 1 else DiagonalNormal(mu, sigma)
    if mu.ndim == 2 and found[1] in ((*found[0], found[0][1]), (found[0][1],) * 2):
        return MultivariateNormal(mu, sigma)
    raise ValueError(
        "a tuple (mu, sigma) must have shapes (n,) and (n,), (n, d) and (n, d), or (n, d) and (n, d, d) or "
        f"(d, d) for means and covariances, found {shapes[0]} and {shapes[1]}; nothing is broadcast but "
        "single numbers and one covariance"
    )


def _is_distribution(x: object) -> bool:
    adapter = ADAPTERS.find(x)
    return adapter is not None and adapter.in_lists
