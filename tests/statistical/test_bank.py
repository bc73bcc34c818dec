"""The bank of errors: an error of size zero is none, and its rivals keep their level."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import special

from benchmarks.bank import levels
from benchmarks.bank.alternatives import ALTERNATIVES
from benchmarks.bank.designs import DESIGNS, Design
from benchmarks.bank.rivals import statistics
from benchmarks.bank.seen import Seen
from benchmarks.bank.settings import FULL

from . import designs

CASES = 16_000


def transforms(name: str) -> dict[str, np.ndarray]:
    """The PIT of an error of size zero, and what shows whether it depends on the prediction."""
    rng = np.random.default_rng(71)
    seen = Seen(*ALTERNATIVES[name].draw(CASES, rng, 0.0), rng)
    if seen.pred.supports("class_probs"):
        below = np.sum(seen.probs * (np.arange(seen.probs.shape[1]) < seen.y[:, None]), axis=1)
        u = below + np.sum(seen.probs * seen.hits, axis=1) * rng.uniform(size=CASES)
        high = seen.probs[:, 0] > np.median(seen.probs[:, 0])
    else:
        u, high = special.ndtr(seen.z), seen.ranks > 0.0
    return {name: u, f"{name}, by the prediction": np.where(high, u, 1.0 - u)}


def test_errors_of_size_zero_are_none() -> None:
    found = {key: u for name in ALTERNATIVES for key, u in transforms(name).items()}
    assert len(found) == 2 * len(ALTERNATIVES)
    designs.check_uniforms("errors of size zero", found, find=0.04)


def rejections(design: Design) -> Iterator[dict[str, bool]]:
    """Of the rivals of a calibrated model, whose null distributions come from other data sets."""
    null = levels.null_statistics(design, 100, 1999, workers=1)
    rng = np.random.default_rng(72)
    while True:
        y, pred = design.calibrated(100, rng)
        found = levels.pvalues(statistics(y, pred, design.rivals, rng), null)
        yield dict(zip(design.rivals, found <= FULL.alpha, strict=True))


def test_rivals_keep_their_level() -> None:
    """Of probabilities, which are the quickest; all null distributions are made by the same few lines."""
    design = DESIGNS["binary"]
    designs.check_rates("rivals of the bank", design.rivals, rejections(design))
