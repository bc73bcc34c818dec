"""What a measure is while cases still come: a value that grows, merges, and becomes a result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from wellcal._arrays.namespaces import NDArray
from wellcal.measures.estimate import Estimate


class Accumulator(ABC):
    """Sums over the cases seen so far. It is a frozen value: what grows is a new one."""

    @abstractmethod
    def updated(self, y: Any, pred: Any, weights: NDArray | None) -> Self:
        """The sums with some cases more."""

    @abstractmethod
    def merged(self, other: Any) -> Self:
        """The sums of this one and of another of its class, which has seen other cases."""

    @abstractmethod
    def result(self) -> Estimate:
        """The measure of all cases seen."""


def refuse_weights(weights: NDArray | None, what: str, reason: str) -> None:
    """Refuse weights where a measure has none."""
    if weights is not None:
        raise ValueError(f"weights have no meaning for {what}: {reason}")
