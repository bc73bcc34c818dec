"""What people mix up at first contact, as questions that are added to an error.

Nothing here decides anything: it is asked after an error, looks at what was given, and returns words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import plain_array
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.row_errors import RowError, retell
from wellcal.columns.number_texts import says_number

_ROUNDED = 0.05  # how far sums of probabilities are from one where these were rounded, or cut
_PERCENTS = 2.0  # how far sums of percentages are from 100 then
_DIGITS = 1e-6  # how far computing takes a probability below 0 or above 1
_POINTS = (
    "are these point predictions? they have no spread: give (mu, sigma), quantiles (wc.Quantiles), draws "
    "(wc.Samples), for counts wc.Poisson, for classes the probability of each"
)
_SWAP = "did you swap y and {0}? the order is (y, {0}), truth first"
_CLASSES = (
    "are these predicted classes? they do not say how sure the model is: give the probability of each class"
)
_BOTH = "are these probabilities of two classes? give wc.Bernoulli(p), where p is the probability of a 1"
_FEWEST = 3  # cases that can tell probabilities of two classes from means and spreads
_ABOVE_ONE = "a probability is above 1: is it a percentage or a logit, or is that row wrong?"


def asked(error: TypeError | ValueError, y: object, pred: object, name: str = "pred") -> None:
    """Raise an error about targets and predictions again with a question, where one suggests itself.

    Examples
    --------
    >>> asked(ValueError("pred is refused"), [1.3, 0.2, 4.1], [1.0, 0.5, 3.0])
    Traceback (most recent call last):
    ValueError: pred is refused; are these point predictions? they have no spread: give (mu, sigma), ...
    """
    question = likely_mistake(y, pred, name)
    if question in (_POINTS, _CLASSES, _SWAP.format(name)) and isinstance(error, RowError):
        raise error.retold("", question) from error  # what makes probabilities of logits is no remedy then
    if question:
        retell(error, more=question)


def likely_mistake(y: object, pred: object, name: str = "pred") -> str:
    """A question about targets and predictions that were refused; empty where nothing suggests itself.

    Examples
    --------
    >>> likely_mistake([0.2, 0.7], [0, 1])
    'did you swap y and pred? the order is (y, pred), truth first'
    >>> likely_mistake([[1.2, 0.3, 2.0], [4.0, 4.4, 5.1]], [1.3, 4.1])
    'did you swap y and pred? the order is (y, pred), truth first'
    >>> likely_mistake([[0, 1], [1, 0]], [[0.2, 0.8], [0.7, 0.3]])
    'is y one-hot? give y.argmax(axis=1)'
    >>> likely_mistake([0, 3], [0.2, 0.7]), likely_mistake([0.0, 1.0, np.nan], [0.2, 0.7, 0.4])
    ('', '')
    """
    try:
        if _swapped(y, pred):
            return _SWAP.format(name)
        if _of_two_classes(y, pred):
            return _BOTH
        if _one_hot(_numbers(y)):
            return "is y one-hot? give y.argmax(axis=1)"
        if _names(y) and _names(pred):
            return _CLASSES
        return _POINTS if _points(_numbers(y), pred) else ""
    except Exception:  # a question is no reason for another error
        return ""


def refuse_classes_as_numbers(y: object, pred: object, name: str = "pred") -> None:
    """Refuse a pair that is read as means and spreads, and adds up to one beside events; `asked` asks more.

    Examples
    --------
    >>> refuse_classes_as_numbers([1, 0, 0], ([0.4, 0.9, 0.5], [0.6, 0.1, 0.5]))
    Traceback (most recent call last):
    ValueError: pred: a tuple of predictions is (mu, sigma), and these add up to one in each row beside ...
    """
    try:
        mistaken = _of_two_classes(y, pred)
    except Exception:  # what cannot be looked at is not refused for it
        return
    if mistaken:
        raise ValueError(
            f"{name}: a tuple of predictions is (mu, sigma), and these add up to one in each row beside "
            "targets that are 0 or 1"
        )


def _of_two_classes(y: Any, pred: Any) -> bool:
    """Whether targets are events, and predictions a pair of different numbers that add up to one."""
    if not issubclass(type(pred), tuple) or len(pred) != 2:
        return False
    first, second = (_numbers(part) for part in pred)
    if first.ndim != 1 or first.shape != second.shape or len(np.unique(first)) < _FEWEST:
        return False
    targets = _numbers(y)
    events = targets.dtype.kind in "fiub" and bool(np.isin(targets, (0, 1)).all())
    return events and bool(
        (np.abs(first + second - 1.0) <= _DIGITS).all() and ((first >= 0.0) & (first <= 1.0)).all()
    )


def _swapped(y: Any, pred: Any) -> bool:
    """Whether targets look like probabilities, parameters or draws, and predictions like observations."""
    given = getattr(pred, "probs", pred)
    known = _describes(given)  # they stand where they belong, and would be an array of objects
    if issubclass(type(y), tuple) and len(y) == 2 and all(np.ndim(part) > 0 for part in y):  # (mu, sigma)
        return not known and _numbers(pred).ndim in (1, 2)
    if _describes(y):
        return True
    if known:
        return False
    targets = _numbers(y)
    if targets.dtype.kind not in "fiub":
        return False
    predicted = to_numpy(plain_array(given, "pred"))
    fractions = bool(((targets > 0) & (targets < 1)).any())
    possible = bool(((targets >= 0) & (targets <= 1)).all())
    if targets.ndim > 1:
        if targets.ndim != predicted.ndim + 1:
            return False
        if len(targets) == len(predicted) and fractions and possible:
            return True
        # Draws, along one of the first two axes: targets of more dimensions than predictions are none.
        drawn = len(predicted) in targets.shape[:2] and 1 not in targets.shape and not _one_hot(targets)
        return drawn and not _are_probabilities(predicted)
    return predicted.ndim == 1 and fractions and possible and _are_labels(predicted)


def _one_hot(targets: NDArray) -> bool:
    """Whether each row has a one at its class, and zeros elsewhere."""
    if targets.ndim != 2 or targets.shape[1] < 2 or targets.dtype.kind not in "fiub":
        return False
    return bool(((targets == 0) | (targets == 1)).all() and (targets.sum(axis=1) == 1).all())


def _points(targets: NDArray, pred: Any) -> bool:
    """Whether targets are numbers, and predictions one number for each, which is no probability."""
    if targets.ndim != 1 or targets.dtype.kind not in "fiu":
        return False
    known = targets[np.isfinite(targets)]  # events of which some are missing are events
    if len(np.unique(known)) <= 2 and _are_labels(known):
        return False
    given = getattr(pred, "probs", pred)
    if issubclass(type(given), tuple) or _describes(given):
        return False
    predicted = to_numpy(plain_array(given, "pred"))
    if predicted.dtype.kind not in "fiub" or predicted.shape not in (targets.shape, (len(targets), 1)):
        return False
    return not _are_labels(known) or bool(((predicted < 0) | (predicted > 1)).any())


def _describes(y: Any) -> bool:
    """Whether an object describes a distribution: of scipy.stats, of torch, or a list of such."""
    one = y[0] if issubclass(type(y), list) and y else y
    return any(hasattr(one, word) for word in ("cdf", "logpdf", "log_prob"))


def _are_probabilities(x: NDArray) -> bool:
    return bool(((x >= 0) & (x <= 1)).all() and ((x > 0) & (x < 1)).any())


def _names(x: Any) -> bool:
    """Whether these are texts, one for each case, that are no numbers."""
    entries = _numbers(x)
    if entries.ndim != 1 or entries.dtype.kind not in "UTO":
        return False
    return all(isinstance(entry, str) and not says_number(entry) for entry in entries.tolist())


def _are_labels(x: NDArray) -> bool:
    return x.dtype.kind not in "f" or bool((x == np.floor(x)).all())


def _numbers(x: Any) -> NDArray:
    return to_numpy(plain_array(x, "y"))


class asking_what:  # noqa: N801 - used as a function
    """Adds to an error about probabilities the question what they are, where their values suggest one.

    Examples
    --------
    >>> with asking_what([-1.0, 2.0]):
    ...     raise ValueError("probs must lie in [0, 1]")
    Traceback (most recent call last):
    ValueError: probs must lie in [0, 1]; are these logits? give 1 / (1 + np.exp(-x))
    """

    def __init__(self, probs: object) -> None:
        self.probs = probs

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, ValueError):
            return
        try:
            array = _numbers(self.probs).astype(np.float64)
            question = not_probabilities(array) if array.size and np.isfinite(array).all() else ""
        except Exception:  # a question is no reason for another error
            return
        if question:
            # What is no probability does not become one by what makes probabilities sum to one.
            if isinstance(error, RowError):
                raise error.retold("", question) from None
            raise ValueError(f"{error}; {question}") from None


def not_probabilities(array: NDArray) -> str:
    """What probabilities that are none may be, and how to make some of them; empty where nothing fits.

    Examples
    --------
    >>> print(not_probabilities(np.array([[1.5, -0.3], [2.0, 0.1]])))
    are these logits? give their softmax, np.exp(x) / np.exp(x).sum(axis=1, keepdims=True); or draws from the
    predictions? give wc.Samples(x)
    >>> not_probabilities(np.log([[0.25, 0.75]]))
    'are these log probabilities? give np.exp(x)'
    >>> not_probabilities(np.array([20.0, 90.0]))
    'are these percentages? divide by 100'
    >>> not_probabilities(np.array([[0.2, 0.9, 0.4], [0.8, 0.1, 0.6]]))
    'are these transposed? each column sums to one: give x.T, with a row for each case'
    >>> not_probabilities(np.array([[10.3, 9.7, 11.2], [8.1, 8.8, 9.2]]))
    'are these draws from the predictions? give wc.Samples(x)'
    >>> not_probabilities(np.array([0.3, 1.0 + 1e-15]))
    'is it rounding? give x.clip(0, 1)'
    """
    beyond = max(0.0, -float(array.min()), float(array.max()) - 1.0)
    if 0.0 < beyond <= _DIGITS:
        return "is it rounding? give x.clip(0, 1)"
    if array.ndim == 2:
        if (array >= 0).all() and np.allclose(array.sum(axis=0), 1.0, atol=1e-3):
            return "are these transposed? each column sums to one: give x.T, with a row for each case"
        if (array <= 0).all() and np.allclose(np.exp(array).sum(axis=1), 1.0, atol=1e-3):
            return "are these log probabilities? give np.exp(x)"
        if array.shape[1] == 1:  # what is wrong is the shape
            return ""
        if (array < 0).any():
            return (
                "are these logits? give their softmax, np.exp(x) / np.exp(x).sum(axis=1, keepdims=True); or "
                "draws from the predictions? give wc.Samples(x)"
            )
        sums = array.sum(axis=1)
        if np.allclose(sums, 100.0, atol=_PERCENTS):
            return "are these percentages? divide by 100"
        above = bool((array > 1).any())
        if above and len(array) > 1 and np.allclose(sums, sums[0], atol=_ROUNDED):
            return f"these are shares of {sums[0]:.4g}: divide each row by its sum"
        if np.allclose(sums, sums[0], atol=_ROUNDED) or abs(np.median(sums) - 1.0) <= _ROUNDED:
            # They are shares of something else than one, or most rows are probabilities.
            return _ABOVE_ONE if above else ""
        draws = "are these draws from the predictions? give wc.Samples(x)"
        if above and (array != np.floor(array)).any():
            return draws
        return f"{draws}; or votes or scores of classes? divide each row by its sum"
    if (array < 0).any():
        logits = "logits? give 1 / (1 + np.exp(-x))"
        logarithms = "log probabilities? give np.exp(x); or " if (array <= 0).all() else ""
        return f"are these {logarithms}{logits}"
    return "are these percentages? divide by 100" if (array <= 100).all() and (array > 1).mean() > 0.5 else ""
