"""What foreign objects become: an ordered list of adapters, to which users add their own."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from wellcal._arrays.namespaces import refuse_elsewhere
from wellcal._arrays.row_errors import retell
from wellcal.predictions.base import Predictions

Converter = Callable[[Any], object]


@dataclass(frozen=True)
class Adapter:
    """How one kind of object becomes predictions; see :meth:`Adapters.register`."""

    recognises: Callable[[Any], bool]
    convert: Converter
    kind: str
    in_lists: bool


class Adapters:
    """Adapters, of which the one that was registered last is asked first.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> class Forecast:
    ...     low, high = np.array([0.0, 1.0]), np.array([2.0, 5.0])
    >>> with ADAPTERS.restored():
    ...
    ...     @ADAPTERS.register(Forecast, kind="a Forecast")
    ...     def from_forecast(forecast):
    ...         return wc.Normal(0.5 * (forecast.low + forecast.high), (forecast.high - forecast.low) / 2.56)
    ...
    ...     wc.as_predictions(Forecast())
    <Normal: 2 predictions>
    """

    def __init__(self) -> None:
        self._adapters: list[Adapter] = []

    def register(
        self, recognises: type | Callable[[Any], bool], *, kind: str, in_lists: bool = True
    ) -> Callable[[Converter], Converter]:
        """Decorator of a function that converts an object to predictions, or to what becomes predictions.

        Parameters
        ----------
        recognises
            The class of such objects, or a function that says whether an object is one.
        kind
            How errors name such objects, such as "a frozen scipy.stats distribution".
        in_lists
            Whether a list of them, one for each prediction, is understood too.
        """
        test = _is_instance(recognises) if isinstance(recognises, type) else recognises

        def decorate(convert: Converter) -> Converter:
            self._adapters.insert(0, Adapter(test, convert, kind, in_lists))
            return convert

        return decorate

    def find(self, obj: object) -> Adapter | None:
        """The adapter that understands an object, or None."""
        return next((adapter for adapter in self._adapters if _recognised(adapter, obj)), None)

    def understood(self) -> str:
        """What there are adapters for, as a list in words."""
        return "; ".join(["wellcal predictions", *(adapter.kind for adapter in reversed(self._adapters))])

    @contextmanager
    def restored(self) -> Generator[None]:
        """Forget what is registered within a ``with`` block, when it ends: for tests and examples."""
        before = list(self._adapters)
        try:
            yield
        finally:
            self._adapters = before


def _recognised(adapter: Adapter, obj: object) -> bool:
    try:
        return adapter.recognises(obj)
    except Exception as error:
        raise TypeError(
            f"predictions of type {type(obj).__name__} cannot be looked at: whether they are {adapter.kind} "
            f"ended with {type(error).__name__}: {error}"
        ) from error


def is_predictions(obj: object) -> bool:
    """Whether an object is a batch; one that fails while it is asked for its class is none."""
    try:
        return isinstance(obj, Predictions)
    except Exception:
        return False


def _is_model(obj: object) -> bool:
    """Whether an object can predict, if it is told from what."""
    try:
        return any(callable(getattr(obj, name, None)) for name in ("predict", "predict_proba", "pred_dist"))
    except Exception:  # a question is no reason for another error
        return False


def _is_instance(cls: type) -> Callable[[Any], bool]:
    return lambda obj: isinstance(obj, cls)


ADAPTERS = Adapters()


def converted(obj: object) -> Predictions:
    """An object as predictions, by the adapter that recognises it."""
    if is_predictions(obj):
        return cast("Predictions", obj)
    refuse_elsewhere(obj, "the object")
    adapter = ADAPTERS.find(obj)
    if adapter is None:
        raise TypeError(
            f"predictions of type {type(obj).__name__} are not understood; "
            + ("is it a fitted model? give wc.as_predictions(model, X); else " if _is_model(obj) else "")
            + f"give {ADAPTERS.understood()}. A model that only gives samples is wc.Samples(values)"
        )
    try:
        made = adapter.convert(obj)
    except (TypeError, ValueError):
        raise
    except Exception as error:  # it looks like something that it is not
        raise TypeError(
            f"predictions of type {type(obj).__name__} look like {adapter.kind}, but cannot be read as such "
            f"({type(error).__name__}: {error}); give {ADAPTERS.understood()}"
        ) from error
    return converted(made)


def converted_argument(obj: object, name: str) -> Predictions:
    """What a user gave as the argument `name`, as predictions; errors say which argument it was.

    Examples
    --------
    >>> from wellcal.predictions.adapters import as_predictions
    >>> converted_argument([0.5, 1.5], "pred")
    Traceback (most recent call last):
    wellcal.RowError: pred: probs must lie in [0, 1] in row 1: found 1.5; point predictions have no ...
    """
    if is_predictions(obj):
        return cast("Predictions", obj)
    try:
        return converted(obj)
    except (TypeError, ValueError) as error:
        retell(error, f"{name}: ")
