"""Few cases of thousands of classes: what is kept of drawn sets does not grow with the number of classes."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal._arrays.chunks import limited
from wellcal.hypotests import Omnibus
from wellcal.hypotests.parts.classes import ClassParts
from wellcal.hypotests.parts.families import parts_of
from wellcal.hypotests.setup import make_setup
from wellcal.kernels import Delta, ExpDistance, TotalVariation
from wellcal.problem.locations import as_locations

WIDE = 2000


def few_cases(classes: int, n: int = 20) -> tuple[Any, wc.Categorical]:
    """Labels that have nothing to do with the predictions, which are sure of themselves."""
    rng = np.random.default_rng(3)
    return rng.integers(0, classes, n), wc.Categorical(rng.dirichlet(np.full(classes, 0.05), n))


def class_parts(pred: wc.Categorical) -> ClassParts:
    parts = parts_of(pred)
    assert isinstance(parts, ClassParts)
    return parts


def peak_of(work: Any) -> tuple[Any, float]:
    """What `work` returns, and the MB that it took at most."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("classes", [5, 300])
def test_what_is_kept_of_a_set_gives_its_statistics(classes: int) -> None:
    _, pred = few_cases(classes)
    parts, rng = class_parts(pred), np.random.default_rng(0)
    sums = parts.sums(rng.integers(0, classes, (50, 20)))
    assert sums.shape == (50, parts.width)
    with limited(work=7 * classes):  # seven sets at a time
        rows = parts.remembered(sums)
    assert rows.shape == (50, 4)
    # Whatever other sets there are, what is kept of one is the same.
    np.testing.assert_array_equal(rows[10:20], parts.remembered(sums[10:20]))
    found = {part.name: part.values for part in parts.of_remembered(rows)}
    assert list(found) == ["surprise", "one class", "classes", "slopes"]
    p = np.asarray(pred.class_probs())
    residuals, slopes = sums[:, 1 : 1 + classes] - p.sum(axis=0), sums[:, 1 + classes :]
    if classes == 300:  # more than have their covariance looked at
        expected = (residuals**2 / (p * (1.0 - p)).sum(axis=0)).sum(axis=1)
    else:
        covariance = np.diag(p.sum(axis=0)) - p.T @ p
        expected = np.einsum("ri,ij,rj->r", residuals, np.linalg.pinv(covariance, rcond=1e-9), residuals)
    np.testing.assert_allclose(found["classes"], expected, rtol=1e-8)
    squares = slopes**2 / (p * (1.0 - p) * parts.slope**2).sum(axis=0)
    np.testing.assert_allclose(found["slopes"], squares.sum(axis=1), rtol=1e-8)


def test_memory_of_a_test_does_not_grow_with_sets_times_classes() -> None:
    """A thousand sets of two numbers for each of 2,000 classes would be 32 MB, and a square of these too."""
    y, pred = few_cases(WIDE)
    found, peak = peak_of(lambda: wc.calibration_test(y, pred, rng=0))
    assert found.pvalue <= 0.01
    assert peak < 25.0


def test_drawing_on_counts_the_classes() -> None:
    """Sums of a set of 20 labels are 4,001 numbers: these are what takes the time."""
    y, pred = few_cases(WIDE)
    setup = make_setup(y, pred, rng=0)
    assert Omnibus().most_drawn(setup) < 2000
    assert Omnibus().most_drawn(make_setup(*few_cases(5), rng=0)) == 99_999


def test_locations_make_no_square_of_classes() -> None:
    y, pred = few_cases(WIDE)
    setup = make_setup(y, pred, ExpDistance(TotalVariation()) @ Delta(), rng=0)
    where = as_locations(10, setup.predictions, np.random.default_rng(1))
    at, peak = peak_of(lambda: setup.at(where))
    assert peak < 8.0
    sets = np.stack([setup.targets, setup.targets[::-1]])
    kernel = np.asarray(setup.targets)[:, None] == np.asarray(where.targets)
    assert at.sums(sets).shape == (2, 10)
    own, other = (np.asarray(part.class_probs()) for part in (setup.predictions, where.predictions))
    weights = np.exp(-0.5 * np.abs(own[:, None] - other).sum(axis=2))
    expected = (weights * (kernel - own[:, np.asarray(where.targets)])).sum(axis=0)
    np.testing.assert_allclose(at.sums(sets)[0], expected, atol=1e-12)
