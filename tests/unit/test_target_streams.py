"""Targets that are drawn from predictions: the same, however cases are cut into parts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.problem import target_resampling
from wellcal.problem.target_resampling import TargetStream, why_not_resampled

sys.path.insert(0, str(Path(__file__).parent))
from test_families_common import EXAMPLES

DRAWN = [name for name, example in EXAMPLES.items() if why_not_resampled(example.build()) is None]
KEY = (3, 5)


def whole_and_parts(pred: Any, y: Any, block: int, cut: int) -> tuple[Any, Any]:
    stream, n = TargetStream(KEY, block), len(pred)
    whole = list(stream.sets(pred, y, 7))
    first = stream.sets(pred[:cut], y[:cut], 7, start=0, total=n)
    second = stream.sets(pred[cut:], y[cut:], 7, start=cut, total=n)
    parts = [np.concatenate(both, axis=1) for both in zip(first, second, strict=True)]
    return np.concatenate(whole), np.concatenate(parts)


@pytest.mark.parametrize("name", DRAWN)
def test_parts_of_the_cases_have_the_targets_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_resampling, "MOST_NUMBERS", 18)  # some sets at a time
    pred = EXAMPLES[name].build()
    y = pred.check_targets(EXAMPLES[name].targets)
    whole, parts = whole_and_parts(pred, y, 2, 4)
    assert whole.shape == (7, *y.shape)
    assert whole.dtype == y.dtype
    assert np.array_equal(whole, parts)


def test_most_families_are_drawn() -> None:
    assert len(DRAWN) >= 20


def test_blocks_sets_and_streams_differ() -> None:
    """No number comes twice: not in another block, another batch of sets, or the next stream."""
    pred, y = wc.Normal(np.zeros(8), 1.0), np.zeros(8)
    rng = np.random.default_rng(0)
    sets = [np.concatenate(list(TargetStream.of(rng, 2).sets(pred, y, 250))) for _ in range(2)]
    assert len(np.unique(sets)) == 2 * 250 * 8
    again = np.concatenate(list(TargetStream.of(np.random.default_rng(0), 2).sets(pred, y, 250)))
    assert np.array_equal(again, sets[0])


def test_a_part_begins_with_a_block() -> None:
    pred, y = wc.Normal(np.zeros(3), 1.0), np.zeros(3)
    with pytest.raises(ValueError, match="start must be a multiple of 2, found 3"):
        next(TargetStream(KEY, 2).sets(pred, y, 1, start=3, total=6))


def test_many_cases_come_in_blocks() -> None:
    """The tests themselves draw so: targets of the first block stay when more cases come after it."""
    n = target_resampling.BLOCK
    rng = np.random.default_rng(1)
    mean = rng.gamma(2.0, 2.0, n + 5)
    stream = TargetStream(KEY)
    options: Any = {"total": n + 5}
    y = rng.poisson(mean).astype(float)
    (whole,) = stream.sets(wc.Poisson(mean), y, 2)
    (first,) = stream.sets(wc.Poisson(mean[:n]), y[:n], 2, **options)
    (last,) = stream.sets(wc.Poisson(mean[n:]), y[n:], 2, start=n, **options)
    assert np.array_equal(whole, np.concatenate([first, last], axis=1))
