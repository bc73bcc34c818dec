"""Foreign objects as batches of predictions.

Nothing foreign is imported here: an object of scipy.stats or torch.distributions brings its library along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import Array, is_array, namespace
from wellcal.predictions import (
    Bernoulli,
    Categorical,
    DiagonalNormal,
    MultivariateNormal,
    Normal,
    Predictions,
)
from wellcal.predictions.adapters._lists import join, single
from wellcal.predictions.adapters._scipy import from_scipy, stack_frozen
from wellcal.predictions.adapters._scipy_continuous import ScipyContinuous
from wellcal.predictions.adapters._torch import from_torch

__all__ = ["ScipyContinuous", "as_predictions"]

_UNDERSTOOD = (
    "wellcal predictions; probabilities of shape (n,) or (n, C); a tuple (mu, sigma); a frozen scipy.stats "
    "distribution; a torch.distributions object; or a list of single distributions of one family"
)


def as_predictions(obj: object) -> Predictions:
    """Turn what a model returned into a batch of predictions.

    =========================================  ====================================================
    given                                      becomes
    =========================================  ====================================================
    predictions                                themselves
    probabilities ``(n,)``                     `Bernoulli`
    probabilities ``(n, C)``                   `Categorical`; column labels of a data frame are left out
    ``(mu, sigma)``, both ``(n,)``             `Normal`; a number or 0-d array stands for all rows
    ``(mu, sigma)``, both ``(n, d)``           `DiagonalNormal`
    ``(mu, cov)``, ``(n, d)``, ``(n, d, d)``   `MultivariateNormal`
    frozen scipy.stats distribution            its family; any other continuous scalar distribution
                                               becomes `ScipyContinuous`, any other discrete one with a
                                               finite support a `Categorical` over its values
    torch.distributions object                 its family, with gradients to its parameters
    list of single distributions               one batch of their family
    =========================================  ====================================================

    Both of scipy.stats' infrastructures are understood, ``stats.norm(mu, sigma)`` and
    ``stats.Normal(mu=mu, sigma=sigma)``. A distribution with scalar parameters is a batch of one. An
    ensemble is not a list but a `Mixture`.

    Parameters
    ----------
    obj
        One of the above. Arrays stay in their library and on their device.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> as_predictions(np.array([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]))
    <Categorical: 3 predictions>
    >>> as_predictions((np.array([0.0, 1.0]), 0.5))
    <Normal: 2 predictions>
    >>> as_predictions(stats.gamma([1.0, 2.0, 3.0], scale=2.0)).mean()
    array([2., 4., 6.])
    >>> as_predictions([stats.norm(0.0, 1.0), stats.norm(2.0, 0.5)])
    <Normal: 2 predictions>
    """
    if isinstance(obj, Predictions):
        return obj
    if _comes_from(obj, "scipy.stats"):
        return from_scipy(obj)
    if _comes_from(obj, "torch.distributions"):
        return from_torch(obj)
    if isinstance(obj, tuple):
        return _from_pair(cast("tuple[Any, ...]", obj))
    if isinstance(obj, list) and _holds_objects(cast("list[Any]", obj)):
        return _from_list(cast("list[Any]", obj))
    if is_array(obj) or isinstance(obj, list) or hasattr(obj, "__array__"):
        return _from_probabilities(obj)
    raise TypeError(
        f"predictions of type {type(obj).__name__} are not understood; give {_UNDERSTOOD}. "
        "A model that only gives samples is wc.Samples(values)"
    )


def _comes_from(obj: object, module: str) -> bool:
    """Whether a class of `obj` or one that it derives from is defined in `module`."""
    return any(f"{cls.__module__}.".startswith(f"{module}.") for cls in type(obj).__mro__)


# -- arrays ------------------------------------------------------------------------------------------


def _array(x: object, name: str) -> Array:
    """`x` as an array of its own library; what only has ``__array__``, such as a data frame, is NumPy's."""
    if is_array(x):
        return x
    try:
        return np.asarray(x)
    except ValueError:
        raise ValueError(f"{name} is ragged: its rows have different lengths") from None


def _from_probabilities(obj: object) -> Predictions:
    array = _array(obj, "predictions")
    if array.ndim == 1:
        return Bernoulli(array)
    if array.ndim == 2:
        return Categorical(array)
    raise ValueError(
        "an array of predictions holds probabilities of shape (n,) or (n, C), "
        f"found shape {tuple(array.shape)}; draws from a model are wc.Samples(values)"
    )


def _from_pair(pair: tuple[Any, ...]) -> Predictions:
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
    mu, sigma = _array(pair[0], "mu"), _array(pair[1], "sigma")
    shapes = tuple(mu.shape), tuple(sigma.shape)
    if mu.ndim == 0 and sigma.ndim in (1, 2):
        mu = namespace(mu).broadcast_to(mu, shapes[1])
    elif sigma.ndim == 0 and mu.ndim in (1, 2):
        sigma = namespace(sigma).broadcast_to(sigma, shapes[0])
    found = tuple(mu.shape), tuple(sigma.shape)
    if found[0] == found[1] and mu.ndim in (1, 2):
        return Normal(mu, sigma) if mu.ndim == 1 else DiagonalNormal(mu, sigma)
    if mu.ndim == 2 and found[1] == (*found[0], found[0][1]):
        return MultivariateNormal(mu, sigma)
    raise ValueError(
        "a tuple (mu, sigma) must have shapes (n,) and (n,), (n, d) and (n, d), or (n, d) and (n, d, d) for "
        f"means and covariances, found {shapes[0]} and {shapes[1]}; nothing is broadcast but single numbers"
    )


# -- lists -------------------------------------------------------------------------------------------


def _is_distribution(x: object) -> bool:
    return _comes_from(x, "scipy.stats") or _comes_from(x, "torch.distributions")


def _holds_objects(items: list[Any]) -> bool:
    """Whether a list holds something else than numbers, rows of numbers or NumPy arrays."""
    plain = (int, float, complex, str, bytes, np.generic, np.ndarray, Sequence)
    return any(not isinstance(item, plain) and not hasattr(item, "__array__") for item in items) or any(
        is_array(item) and not isinstance(item, np.ndarray) for item in items
    )


def _from_list(items: list[Any]) -> Predictions:
    for position, item in enumerate(items):
        if isinstance(item, Predictions):
            raise TypeError(
                "a list of predictions is ambiguous: an ensemble is wc.Mixture(list); for more cases, "
                "build one batch from the concatenated parameters"
            )
        if is_array(item):
            raise TypeError("a list of arrays is not understood: stack them into one array of probabilities")
        if not _is_distribution(item):
            raise TypeError(
                f"item {position} of the list is of type {type(item).__name__}, which is not understood; "
                f"give {_UNDERSTOOD}"
            )
    stacked = stack_frozen(items)
    if stacked is not None:
        return stacked
    return join([single(as_predictions(item), position) for position, item in enumerate(items)])
