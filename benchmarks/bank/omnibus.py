"""Statistics of the parts of the omnibus test, stored so that weights can be chosen without new runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from wellcal.engines import Tiled
from wellcal.hypotests import Method, Omnibus, Outcome
from wellcal.hypotests.automatic import choose
from wellcal.hypotests.parts.families import parts_of
from wellcal.hypotests.setup import Setup, make_setup


def parts(y: Any, pred: Any, n_resamples: int, rng: np.random.Generator) -> dict[str, Any]:
    """Statistics by part, ``(R + 1,)`` each, the observed one first."""
    setup = make_setup(y, pred, n_resamples=n_resamples, rng=rng, pool=True, engine=Tiled(threads=1))
    return {part.name: part.values for part in Omnibus().evaluate(setup, parts_of(setup.predictions))}


@dataclass(frozen=True)
class AsAuto(Method):
    """What `auto` takes, without the resamples that make small p-values smaller still.

    Attributes
    ----------
    pairs
        Whether the SKCE is over all pairs; None leaves it to `auto`.
    """

    pairs: bool | None = None

    name: ClassVar[str] = "as auto"

    def run(self, setup: Setup) -> Outcome:
        """The p-value of the test that `auto` chooses."""
        chosen = choose(setup).method
        assert isinstance(chosen, Omnibus)
        pairs = chosen.pairs if self.pairs is None else self.pairs
        return replace(chosen, pairs=pairs, most_resamples=0).run(setup)


def decides() -> AsAuto:
    """What `auto` takes."""
    return AsAuto()


def by_pairs() -> AsAuto:
    """The same with all pairs."""
    return AsAuto(pairs=True)


def of_low_rank() -> AsAuto:
    """The same with a kernel of low rank."""
    return AsAuto(pairs=False)
