"""Statistics of the parts of the omnibus test, stored so that weights can be chosen without new runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal.engines import Tiled
from wellcal.hypotests.methods import Omnibus
from wellcal.hypotests.parts.families import parts_of
from wellcal.hypotests.setup import make_setup


def parts(y: Any, pred: Any, n_resamples: int, rng: np.random.Generator) -> dict[str, Any]:
    """Statistics by part, ``(R + 1,)`` each, the observed one first."""
    setup = make_setup(y, pred, n_resamples=n_resamples, rng=rng, pool=True, engine=Tiled(threads=1))
    return {part.name: part.values for part in Omnibus().evaluate(setup, parts_of(setup.predictions))}


def decides() -> Omnibus:
    """What `auto` takes at these sizes, without the resamples that make small p-values smaller still."""
    return Omnibus(most_resamples=0)
