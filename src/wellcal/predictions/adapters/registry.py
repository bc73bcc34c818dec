"""Adapters: an ordered list of conversions of other libraries' objects, to which users add their own."""

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
    """Conversion of one kind of object to predictions; see :meth:`Adapters.register`."""

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
        """Decorate a function that converts an object to predictions, or to what becomes predictions.

        Parameters
        ----------
        recognises
            The class of such objects, or a function that is true for them.
        kind
            Name of such objects in errors, such as "a frozen scipy.stats distribution".
        in_lists
            Whether a list of them, one for each prediction, is understood too.
        """

        def test(obj: Any) -> bool:
            return isinstance(obj, recognises) if isinstance(recognises, type) else recognises(obj)

        def decorate(convert: Converter) -> Converter:
            self._adapters.insert(0, Adapter(test, convert, kind, in_lists))
            return convert

        return decorate

    def find(self, obj: object) -> Adapter | None:
        """Return the adapter that recognises an object, or None."""
        for adapter in self._adapters:
            try:
                if adapter.recognises(obj):
                    return adapter
            except Exception as error:
                raise TypeError(
                    f"predictions of type {type(obj).__name__} cannot be looked at: whether they are "
                    f"{adapter.kind} ended with {type(error).__name__}: {error}"
                ) from error
        return None

    def understood(self) -> str:
        """List the kinds of objects that are understood."""
        return "; ".join(["wellcal predictions", *(adapter.kind for adapter in reversed(self._adapters))])

    @contextmanager
    def restored(self) -> Generator[None]:
        """Remove adapters at the end of a ``with`` block that were registered in it."""
        before = list(self._adapters)
        try:
            yield
        finally:
            self._adapters = before


ADAPTERS = Adapters()


def converted(obj: object) -> Predictions:
    """Convert an object to predictions by the adapter that recognises it."""
    if issubclass(type(obj), Predictions):
        return cast("Predictions", obj)
    refuse_elsewhere(obj, "the object")
    adapter, name = ADAPTERS.find(obj), type(obj).__name__
    if adapter is None:
        is_model = any(hasattr(type(obj), method) for method in ("predict", "predict_proba", "pred_dist"))
        hint = "is it a fitted model? give wc.as_predictions(model, X); else " if is_model else ""
        raise TypeError(
            f"predictions of type {name} are not understood; {hint}give {ADAPTERS.understood()}. A model "
            "that only gives samples is wc.Samples(values)"
        )
    try:
        made = adapter.convert(obj)
    except Exception as error:
        if isinstance(error, (TypeError, ValueError)):
            raise
        raise TypeError(
            f"predictions of type {name} look like {adapter.kind}, but cannot be read as such "
            f"({type(error).__name__}: {error}); give {ADAPTERS.understood()}"
        ) from error
    return converted(made)


def converted_argument(obj: object, name: str) -> Predictions:
    """Convert an argument of a user to predictions; errors name the argument.

    Examples
    --------
    >>> from wellcal.predictions.adapters import as_predictions
    >>> converted_argument([0.5, 1.5], "pred")
    Traceback (most recent call last):
    wellcal.RowError: pred: probs must lie in [0, 1] in row 1: found 1.5; point predictions have no ...
    """
    try:
        return converted(obj)
    except (TypeError, ValueError) as error:
        retell(error, f"{name}: ")
