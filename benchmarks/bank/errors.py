"""What an error is: targets whose law differs from the predictions, by a size of which 0 is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.bank.designs import DESIGNS, Design, Drawn

Array = Any
Targets = Callable[[Drawn, float, np.random.Generator], Array]
"""Targets for drawn predictions, given the size of the error."""

CHOOSE, CONFIRM = "choose", "confirm"
HALVES = (CHOOSE, CONFIRM)
"""Weights are chosen on one half of the bank; the other is looked at once, at the end.

What chooses was in two halves at first. The second of these was looked at, and parts were changed after that
look; both choose since, and `fresh` confirms.
"""


@dataclass(frozen=True)
class Error:
    """An alternative of the bank.

    Attributes
    ----------
    name
        What tables call it.
    family
        Name of the design that its predictions come from.
    half
        The half of the bank that it belongs to.
    targets
        Targets for drawn predictions and a size of the error; they follow the predictions at size 0.
    sizes
        Size of the error for each number of cases, chosen by what rivals find; `auto` had no part in it.
    """

    name: str
    family: str
    half: str
    targets: Targets
    sizes: dict[int, float]

    @property
    def design(self) -> Design:
        return DESIGNS[self.family]

    @property
    def rivals(self) -> tuple[str, ...]:
        """Names of the tests that suit its predictions."""
        return self.design.rivals

    def size_at(self, n: int) -> float:
        """Size for `n` cases: for more than the bank has, less by the root of the number of cases."""
        most = max(self.sizes)
        return self.sizes[most] * float(np.sqrt(most / n)) if n > most else self.sizes[n]

    def draw(self, n: int, rng: np.random.Generator, size: float | None = None) -> tuple[Array, Any]:
        """Targets and predictions; `size` of the error, or the one for `n` cases."""
        drawn = self.design.predict(n, rng)
        return self.targets(drawn, self.size_at(n) if size is None else size, rng), drawn.pred
