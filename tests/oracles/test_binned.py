"""Binned calibration errors against plain loops, scikit-learn and torchmetrics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.calibration import calibration_curve
from torchmetrics.functional.classification import multiclass_calibration_error

import wellcal as wc
from wellcal import EqualMassBins, MedianVarianceBins, UniformBins, ece, mce, mmce

RNG = np.random.default_rng(21)
N, C = 300, 3
PROBS = RNG.dirichlet(np.ones(C), N)
Y = np.array([RNG.choice(C, p=p) for p in PROBS**2 / np.sum(PROBS**2, axis=1, keepdims=True)])

DISTANCES: dict[str, Any] = {
    "total_variation": lambda a, b: 0.5 * sum(abs(x - y) for x, y in zip(a, b, strict=True)),
    "euclidean": lambda a, b: math.dist(a, b),
    "squared_euclidean": lambda a, b: math.dist(a, b) ** 2,
}


def by_loops(y: Any, probs: Any, cells: Any, distance: Any) -> tuple[float, float]:
    """ECE and MCE, one bin and one case after the other."""
    distances: dict[int, float] = {}
    sizes: dict[int, int] = {}
    for cell in set(cells.tolist()):
        members = [i for i in range(len(y)) if cells[i] == cell]
        classes = range(probs.shape[1])
        observed = [sum(y[i] == c for i in members) / len(members) for c in classes]
        predicted = [math.fsum(probs[i, c] for i in members) / len(members) for c in classes]
        distances[cell], sizes[cell] = distance(observed, predicted), len(members)
    mean = math.fsum(sizes[cell] * distances[cell] for cell in sizes) / len(y)
    return mean, max(distances.values())


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("rule", [UniformBins(4), EqualMassBins(7), MedianVarianceBins(20)])
def test_all_classes_at_once(distance: str, rule: Any) -> None:
    mean, largest = by_loops(Y, PROBS, rule.cells(PROBS), DISTANCES[distance])
    assert ece(Y, PROBS, distance=distance, binning=rule, reduce="none").value == pytest.approx(
        mean, rel=1e-12
    )
    assert mce(Y, PROBS, distance=distance, binning=rule, reduce="none").value == pytest.approx(
        largest, rel=1e-12
    )


def test_uniform_cells_are_those_of_a_grid() -> None:
    cells = UniformBins(4).cells(PROBS)
    keys = [tuple(int(4 * p) for p in row) for row in PROBS]
    for i in range(N):
        for j in range(i):
            assert (keys[i] == keys[j]) == (cells[i] == cells[j])


@pytest.mark.parametrize("bins", [5, 15])
def test_confidence_against_torchmetrics(bins: int) -> None:
    """Apart from its treatment of probability 1, torchmetrics computes the same."""
    given = torch.as_tensor(PROBS), torch.as_tensor(Y)
    options: Any = {"num_classes": C, "n_bins": bins}
    for norm, measure in (("l1", ece), ("max", mce)):
        theirs = float(multiclass_calibration_error(*given, norm=norm, **options))
        ours = measure(Y, PROBS, reduce="confidence", n_bins=bins).value
        assert ours == pytest.approx(theirs, rel=1e-5)  # they compute in single precision
    theirs = float(multiclass_calibration_error(*given, norm="l2", **options))
    ours = ece(Y, PROBS, reduce="confidence", n_bins=bins, distance="squared_euclidean").value
    assert math.sqrt(0.5 * ours) == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize(("strategy", "binning"), [("uniform", "uniform"), ("quantile", "equal_mass")])
def test_two_classes_against_scikit_learn(strategy: Any, binning: str) -> None:
    hit, p = (Y == 0).astype(int), PROBS[:, 0]
    observed, predicted = calibration_curve(hit, p, n_bins=6, strategy=strategy)
    largest = mce(hit, p, binning=binning, n_bins=6).value
    assert largest == pytest.approx(np.max(np.abs(observed - predicted)), rel=1e-12)


# -- counts ----------------------------------------------------------------------------------

RATE = RNG.gamma(2.0, 2.0, 60)
COUNTS = RNG.poisson(RATE)
GRID = np.arange(0, 400)
COUNT_FAMILIES = {
    "Poisson": (wc.Poisson(RATE), stats.poisson(RATE[:, None])),
    "NegativeBinomial": (
        wc.NegativeBinomial(RATE, 0.4),
        stats.nbinom(1 / 0.4, 1 / (1 + 0.4 * RATE[:, None])),
    ),
}


@pytest.mark.parametrize("family", COUNT_FAMILIES)
@pytest.mark.parametrize("q", [1, 1.5, 2, 4, math.inf])
def test_powers_of_norms_for_counts(family: str, q: float) -> None:
    """The three forms of the paper's theorem: l_1, q-th powers of l_q norms, largest difference."""
    pred, reference = COUNT_FAMILIES[family]
    cells = EqualMassBins(4).cells(RATE[:, None])
    masses = reference.pmf(GRID)
    values, weights = [], []
    for cell in range(4):
        members = cells == cell
        observed = np.array([np.mean(COUNTS[members] == k) for k in GRID])
        gap = np.abs(observed - masses[members].mean(axis=0))
        values.append(gap.max() if math.isinf(q) else np.sum(gap**q))
        weights.append(members.mean())
    assert ece(COUNTS, pred, distance=q, binning=cells).value == pytest.approx(
        np.dot(weights, values), rel=1e-11
    )
    assert mce(COUNTS, pred, distance=q, binning=cells).value == pytest.approx(max(values), rel=1e-11)


def test_debiased_counts_against_all_pairs() -> None:
    """The squared norm of a mean, without bias: the mean of products over pairs of different cases."""
    pred, reference = COUNT_FAMILIES["Poisson"]
    residual = (COUNTS[:, None] == GRID).astype(float) - reference.pmf(GRID)
    products = residual @ residual.T
    expected = (products.sum() - np.trace(products)) / (60 * 59)
    found = ece(COUNTS, pred, distance=2, binning=np.zeros(60, dtype=int), estimator="debiased")
    assert found.value == pytest.approx(expected, rel=1e-9)


# -- mmce ------------------------------------------------------------------------------------


def kumar_mmce(probs: Any, y: Any) -> float:
    """MMCE_m as the authors' published code has it: a matrix of products, a width of 0.2 that is doubled."""
    predicted = probs.max(axis=1)
    c_minus_r = (probs.argmax(axis=1) == y).astype(float) - predicted
    kernel = np.exp(-1.0 * np.abs(predicted[:, None] - predicted[None, :]) / (2 * 0.2))
    return math.sqrt(np.sum(np.outer(c_minus_r, c_minus_r) * kernel) / len(y) ** 2)


def netcal_mmce(probs: Any, y: Any) -> float:
    """The same in netcal's way: pair by pair, with a rate of 2.5."""
    rows = [(max(p), int(np.argmax(p) == label)) for p, label in zip(probs.tolist(), y, strict=True)]
    pairs = [(c - r) * (d - s) * math.exp(-2.5 * abs(r - s)) for r, c in rows for s, d in rows]
    return math.sqrt(math.fsum(pairs) / len(rows) ** 2)


@pytest.mark.parametrize("reference", [kumar_mmce, netcal_mmce])
def test_mmce_agrees_with_its_authors_and_with_netcal(reference: Any) -> None:
    found = mmce(Y, PROBS)
    assert found.value == pytest.approx(reference(PROBS, Y), rel=1e-12)
    assert found.name == "MMCE"


def test_mmce_by_hand() -> None:
    # Confidences .8 (right) and .7 (wrong): residuals .2 and -.7, and a kernel of exp(-.1 / .4) between them.
    square = (0.2**2 + 0.7**2 - 2 * 0.2 * 0.7 * 0.7788007830714049) / 4
    found = mmce([0, 0], np.array([[0.8, 0.2], [0.3, 0.7]]))
    assert found.value == pytest.approx(math.sqrt(square), rel=1e-14)
