"""Hints in errors about targets and predictions: swapped, one-hot, logits, percentages.

After an error, the values are searched for a mistake that people make. One mistake would raise no error, and
is refused here: probabilities of two classes in the place of (mu, sigma).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import plain_array
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.row_errors import RowError, retell

_SWAPPED = "did you swap y and {0}? the order is (y, {0}), truth first"
_ONE_HOT = "is y one-hot? give y.argmax(axis=1)"
_PERCENT = "are these percentages? divide by 100"
_OTHERWISE = (
    "; point predictions have no spread: give (mu, sigma)",
    "; draws from the predictions are wc.Samples(x)",
)
_LOGITS = (
    "are these logits? give 1 / (1 + np.exp(-x))",
    "are these logits? give their softmax, np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)",
)
_NEAR = 0.05  # distance of sums from one, or from 100 per cent, that rounding explains


def raise_with_hint(error: TypeError | ValueError, y: object, pred: object, name: str = "pred") -> None:
    """Raise an error about targets and predictions again with a hint, if there is one.

    Examples
    --------
    >>> raise_with_hint(ValueError("y is refused"), [[0, 1], [1, 0]], [[0.2, 0.8], [0.7, 0.3]])
    Traceback (most recent call last):
    ValueError: y is refused; is y one-hot? give y.argmax(axis=1)
    """
    hint = input_hint(y, pred, name)
    if hint and hint != _ONE_HOT and isinstance(error, RowError):
        raise error.retold("", hint) from error  # the remedy for a wrong row does not help
    if hint:
        retell(error, more=hint)


def refuse_class_pairs(y: Any, pred: Any, name: str = "pred") -> None:
    """Refuse the probabilities of two classes in the place of (mu, sigma): the verdict would be on normals.

    Examples
    --------
    >>> refuse_class_pairs([1, 0, 0], ([0.4, 0.9, 0.5], [0.6, 0.1, 0.5]))
    Traceback (most recent call last):
    ValueError: pred: a tuple of predictions is (mu, sigma), and these add up to one in each row while ...
    """
    pair = cast("tuple[Any, ...]", pred) if type(pred) is tuple else ()
    if len(pair) != 2 or not all(isinstance(part, (list, np.ndarray)) for part in pair):
        return
    first, second = map(_array, pair)
    if first.ndim != 1 or first.shape != second.shape or {first.dtype.kind, second.dtype.kind} != {"f"}:
        return
    ordinary = len(np.unique(first)) > 2 and bool(((first >= 0.0) & (first <= 1.0)).all())
    if not ordinary or not np.allclose(first + second, 1.0, rtol=0.0, atol=1e-6):
        return
    targets = _array(y)
    if targets.dtype.kind in "fiub" and bool(np.isin(targets, (0, 1)).all()):
        raise ValueError(
            f"{name}: a tuple of predictions is (mu, sigma), and these add up to one in each row while "
            "targets are 0 or 1; are these probabilities of two classes? give wc.Bernoulli(p)"
        )


def input_hint(y: Any, pred: Any, name: str = "pred") -> str:
    """Return a hint about targets and predictions that were refused; "" if there is none.

    Examples
    --------
    >>> input_hint([0.2, 0.7], [0, 1])
    'did you swap y and pred? the order is (y, pred), truth first'
    >>> input_hint([0, 3], [0.2, 0.7])
    ''
    """
    try:
        if _is_distribution(pred):
            return ""
        if _is_distribution(y) or (issubclass(type(y), tuple) and all(np.ndim(part) > 0 for part in y)):
            return _SWAPPED.format(name)
        targets, predicted = _array(y), _array(pred)
        if targets.dtype.kind not in "fiub":
            return ""
        one_hot = _is_one_hot(targets)
        if targets.ndim == 1:
            labels = predicted.dtype.kind != "f" or bool((predicted == np.floor(predicted)).all())
            swapped = predicted.ndim == 1 and labels and _are_probabilities(targets)
        else:  # probabilities of classes, or draws along one of the first two axes
            same = targets.ndim == predicted.ndim + 1 and len(predicted) in targets.shape[:2]
            swapped = same and 1 not in targets.shape and not one_hot and not _are_probabilities(predicted)
        return _SWAPPED.format(name) if swapped else _ONE_HOT if one_hot else ""
    except Exception:  # a hint is no reason for another error
        return ""


def with_probability_hint(error: ValueError, probs: object) -> ValueError:
    """Return the error with a hint about values that are no probabilities.

    Examples
    --------
    >>> print(with_probability_hint(ValueError("the sum must be one"), [[20.0, 80.0]]))
    the sum must be one; are these percentages? divide by 100
    """
    try:
        hint = probability_hint(_array(probs).astype(np.float64))
    except Exception:  # a hint is no reason for another error
        hint = ""
    if hint and isinstance(error, RowError):
        return error.retold("", hint)
    return ValueError(f"{error}; {hint}") if hint else error


def probability_hint(values: NDArray) -> str:
    """Return a hint about values ``(n,)`` or ``(n, C)`` that are no probabilities; "" if there is none.

    Examples
    --------
    >>> probability_hint(np.array([-1.0, 2.0]))
    'are these logits? give 1 / (1 + np.exp(-x)); point predictions have no spread: give (mu, sigma)'
    >>> probability_hint(np.array([[10.3, 9.7, 11.2], [8.1, 8.8, 9.2]]))
    'draws from the predictions are wc.Samples(x)'
    """
    if values.ndim not in (1, 2) or not values.size or not np.isfinite(values).all():
        return ""
    rows = values.ndim - 1
    sums = values.sum(axis=1) if rows else np.zeros(0)
    if values.min() < -_NEAR:
        return _LOGITS[rows] + _OTHERWISE[rows]
    if rows and (values.shape[1] == 1 or np.median(sums) <= 1.0 + _NEAR):
        return ""  # the shape is wrong, or a row, or a class is missing
    if np.allclose(sums, 100.0, rtol=_NEAR) if rows else values.max() <= 100 and np.median(values) > 1:
        return _PERCENT + ("" if rows else _OTHERWISE[0])
    return _OTHERWISE[rows].removeprefix("; ") if rows or values.max() > 1.0 + _NEAR else ""


def _is_distribution(x: Any) -> bool:
    one = x[0] if issubclass(type(x), list) and x else x
    return any(hasattr(one, name) for name in ("cdf", "logpdf", "log_prob"))


def _is_one_hot(targets: NDArray) -> bool:
    if targets.ndim != 2 or targets.shape[1] < 2:
        return False
    return bool(((targets == 0) | (targets == 1)).all() and (targets.sum(axis=1) == 1).all())


def _are_probabilities(x: NDArray) -> bool:
    return x.dtype.kind == "f" and bool(((x >= 0) & (x <= 1)).all() and ((x > 0) & (x < 1)).any())


def _array(x: Any) -> NDArray:
    return to_numpy(plain_array(x, "x"))
